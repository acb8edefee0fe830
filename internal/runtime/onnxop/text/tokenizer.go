package text

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Tokenizer: texts [C] or [N,C], each of which becomes a row of its tokens, filled up with
// pad_value to the longest. Tokens are what tokenexp matches, or what separators, patterns too,
// leave between them, one after the other; an empty separator cuts between all characters. Those
// of fewer than mincharnum characters are left out. With mark, rows begin with STX and end with
// ETX.

func inferTokenizer(c *op.Call) error {
	if err := needStrings(c, 1); err != nil {
		return err
	}
	if r := c.In[0].Rank(); r < 1 || r > 2 {
		return fmt.Errorf("input is %s, not C or NxC", tensor.FormatShape(c.In[0].Shape))
	}
	return op.ErrDynamic
}

// tokenizer cuts texts into tokens.
type tokenizer struct {
	token      *regexp.Regexp // nil where separators count
	separators []*regexp.Regexp
	least      int // characters of a token
}

func prepareTokenizer(c *op.Call) (op.Run, error) {
	a := c.Node.Attrs
	t := tokenizer{least: a.Int("mincharnum", 1)}
	exp, by := a.Str("tokenexp", ""), a.Strs("separators")
	if (exp == "") == (len(by) == 0) {
		return nil, fmt.Errorf("one of tokenexp and separators is needed, %q and %d are given", exp, len(by))
	}
	if exp != "" {
		by = []string{exp}
	}
	for _, p := range by {
		tree, err := parsed(p)
		if err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		re, err := regexp.Compile(tree)
		if err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		t.separators = append(t.separators, re)
	}
	if exp != "" {
		t.token = t.separators[0]
	}
	pad, mark := a.Str("pad_value", ""), a.Bool("mark", false)
	return func(c *op.Call) error { return t.run(c, pad, mark) }, nil
}

func (t *tokenizer) run(c *op.Call, pad string, mark bool) error {
	x := c.In[0]
	rows := make([][]string, len(x.Strings))
	longest, all := 0, 0
	for i, s := range x.Strings {
		rows[i] = t.cut(s)
		all += 16 * len(rows[i])
		if err := c.AffordText(all); err != nil {
			return err
		}
		longest = max(longest, len(rows[i]))
	}
	if mark && longest > 0 {
		longest += 2
	}
	y, err := c.Make(0, tensor.String, append(slices.Clone(x.Shape), longest))
	if err != nil {
		return err
	}
	for i, tokens := range rows {
		row := y.Strings[i*longest:][:longest]
		if mark && longest > 0 {
			tokens = slices.Concat([]string{"\x02"}, tokens, []string{"\x03"})
		}
		for n := copy(row, tokens); n < longest; n++ {
			row[n] = pad
		}
	}
	return nil
}

// cut gives the tokens of a text.
func (t *tokenizer) cut(s string) []string {
	parts := []string{s}
	if t.token != nil {
		parts = t.token.FindAllString(s, -1)
	} else {
		for _, by := range t.separators {
			var next []string
			for _, p := range parts {
				next = append(next, by.Split(p, -1)...)
			}
			parts = next
		}
	}
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" || utf8.RuneCountInString(p) < t.least })
}
