// Package text implements ONNX's operators on strings.
package text

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

var onlyStrings = []tensor.Type{tensor.String}

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		{Name: "StringConcat", Since: 20, Types: onlyStrings, Infer: inferConcat, Prepare: op.Simple(runConcat)},
		{Name: "StringSplit", Since: 20, Types: onlyStrings, Infer: inferSplit, Prepare: op.Simple(runSplit)},
		{Name: "StringNormalizer", Since: 10, Types: onlyStrings, Infer: inferNormalizer, Prepare: op.Simple(runNormalizer)},
		{Name: "RegexFullMatch", Since: 20, Types: onlyStrings, Infer: inferMatch, Prepare: prepareMatch},
		{
			Name: "TfIdfVectorizer", Since: 9, Types: []tensor.Type{tensor.String, tensor.Int32, tensor.Int64},
			Infer: op.Needs(1, inferTfIdf), Prepare: prepareTfIdf,
		},
		{Domain: graph.Microsoft, Name: "Tokenizer", Since: 1, Types: onlyStrings, Infer: inferTokenizer, Prepare: prepareTokenizer},
	}
}

func needStrings(c *op.Call, n int) error {
	if err := c.NeedInputs(n); err != nil {
		return err
	}
	for i := range n {
		if c.In[i].Type != tensor.String {
			return fmt.Errorf("input %d is %v, not string", i, c.In[i].Type)
		}
	}
	return nil
}

func inferConcat(c *op.Call) error {
	if err := needStrings(c, 2); err != nil {
		return err
	}
	return elem.InferBroadcast(c, tensor.String, 0, 1)
}

func runConcat(c *op.Call) error {
	a, b, y := c.In[0], c.In[1], c.Out[0]
	w, err := broadcast.New(y.Shape, a.Shape, b.Shape)
	if err != nil {
		return err
	}
	n := 0
	for r := w.Runs(0, w.Len); r.Next(); {
		for i := range r.N {
			n += 16 + len(a.Strings[r.Off[0]+i*w.Step[0]]) + len(b.Strings[r.Off[1]+i*w.Step[1]])
		}
	}
	if err := c.AffordText(n); err != nil {
		return err
	}
	for r := w.Runs(0, w.Len); r.Next(); {
		for i := range r.N {
			y.Strings[r.Dst+i] = a.Strings[r.Off[0]+i*w.Step[0]] + b.Strings[r.Off[1]+i*w.Step[1]]
		}
	}
	return nil
}

func inferSplit(c *op.Call) error {
	if err := needStrings(c, 1); err != nil {
		return err
	}
	return op.ErrDynamic
}

func runSplit(c *op.Call) error {
	x := c.In[0]
	by, limit := c.Node.Attrs.Str("delimiter", ""), c.Node.Attrs.Int("maxsplit", -1)
	pieces := 0
	for _, s := range x.Strings {
		pieces += count(s, by)
	}
	if err := c.AffordText(16 * pieces); err != nil {
		return err
	}
	parts := make([][]string, len(x.Strings))
	longest := 0
	for i, s := range x.Strings {
		parts[i] = split(s, by, limit)
		longest = max(longest, len(parts[i]))
	}
	if c.Wants(0) {
		y, err := c.Make(0, tensor.String, append(slices.Clone(x.Shape), longest))
		if err != nil {
			return err
		}
		for i, p := range parts {
			copy(y.Strings[i*longest:], p)
		}
	}
	if c.Wants(1) {
		z, err := c.Make(1, tensor.Int64, slices.Clone(x.Shape))
		if err != nil {
			return err
		}
		for i, p := range parts {
			tensor.Of[int64](z)[i] = int64(len(p))
		}
	}
	return nil
}

// count returns the maximum number of parts that split makes.
func count(s, by string) int {
	if by != "" {
		return strings.Count(s, by) + 1
	}
	n := 0
	for range strings.FieldsSeq(s) {
		n++
	}
	return n
}

// split cuts at most limit times (negative: always). An empty delimiter stands for runs of white
// space; leading white space is dropped.
func split(s, by string, limit int) []string {
	if by != "" {
		if limit < 0 {
			return strings.Split(s, by)
		}
		return strings.SplitN(s, by, limit+1)
	}
	if limit < 0 {
		return strings.Fields(s)
	}
	var out []string
	for s = strings.TrimLeftFunc(s, unicode.IsSpace); s != ""; s = strings.TrimLeftFunc(s, unicode.IsSpace) {
		end := strings.IndexFunc(s, unicode.IsSpace)
		if len(out) == limit || end < 0 {
			return append(out, s)
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

func inferNormalizer(c *op.Call) error {
	if err := needStrings(c, 1); err != nil {
		return err
	}
	s := c.In[0].Shape
	if len(s) != 1 && (len(s) != 2 || s[0] != 1) {
		return fmt.Errorf("input is %s, not C or 1xC", tensor.FormatShape(s))
	}
	if a := c.Node.Attrs.Str("case_change_action", "NONE"); !slices.Contains([]string{"NONE", "LOWER", "UPPER"}, a) {
		return fmt.Errorf("case_change_action is %q", a)
	}
	return op.ErrDynamic
}

func runNormalizer(c *op.Call) error {
	fold := strings.ToLower
	if c.Node.Attrs.Bool("is_case_sensitive", false) {
		fold = func(s string) string { return s }
	}
	stop := map[string]bool{}
	for _, w := range c.Node.Attrs.Strs("stopwords") {
		stop[fold(w)] = true
	}
	change := func(s string) string { return s }
	switch c.Node.Attrs.Str("case_change_action", "NONE") {
	case "LOWER":
		change = strings.ToLower
	case "UPPER":
		change = strings.ToUpper
	}
	var kept []string
	for _, s := range c.In[0].Strings {
		if len(stop) == 0 || !stop[fold(s)] {
			kept = append(kept, change(s))
		}
	}
	if len(kept) == 0 {
		kept = []string{""}
	}
	shape := slices.Clone(c.In[0].Shape)
	shape[len(shape)-1] = len(kept)
	y, err := c.Make(0, tensor.String, shape)
	if err != nil {
		return err
	}
	copy(y.Strings, kept)
	return nil
}

func inferMatch(c *op.Call) error {
	if err := needStrings(c, 1); err != nil {
		return err
	}
	return c.Result(tensor.Bool, slices.Clone(c.In[0].Shape))
}

// prepareMatch compiles the pattern: Go has the syntax of RE2.
func prepareMatch(c *op.Call) (op.Run, error) {
	re, err := pattern(c.Node.Attrs.Str("pattern", ""))
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return func(c *op.Call) error {
		for i, s := range c.In[0].Strings {
			c.Out[0].Data[i] = 0
			if re.MatchString(s) {
				c.Out[0].Data[i] = 1
			}
		}
		return nil
	}, nil
}

// Bounds of patterns. A matcher keeps state for each instruction of a pattern's program, and its
// time is the number of instructions times the length of the text. RE2, which has the same
// syntax, bounds the program too.
const (
	maxPattern = 64 << 10 // bytes
	maxProgram = 50_000   // instructions
)

// pattern compiles a pattern to match whole texts.
func pattern(p string) (*regexp.Regexp, error) {
	tree, err := parsed(p)
	if err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + tree + `)\z`)
}

// parsed checks a pattern and removes its groups: their matches are not needed, and a matcher
// would store them for every group and instruction.
func parsed(p string) (string, error) {
	if len(p) > maxPattern {
		return "", fmt.Errorf("has %d bytes, at most %d are taken", len(p), maxPattern)
	}
	tree, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return "", short(err)
	}
	tree = ungrouped(tree)
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return "", short(err)
	}
	if len(prog.Inst) > maxProgram {
		return "", fmt.Errorf("takes %d instructions, at most %d are taken", len(prog.Inst), maxProgram)
	}
	return tree.String(), nil
}

// short shortens the expression in the error of a pattern.
func short(err error) error {
	var e *syntax.Error
	if errors.As(err, &e) && len(e.Expr) > 60 {
		return fmt.Errorf("%v: `%.60s…`", e.Code, e.Expr)
	}
	return err
}

// ungrouped removes the groups of a pattern and keeps their content.
func ungrouped(re *syntax.Regexp) *syntax.Regexp {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	for i, s := range re.Sub {
		re.Sub[i] = ungrouped(s)
	}
	return re
}

// Tokenizer: texts [C] or [N,C], each of which becomes a row of its tokens, padded with pad_value
// to the longest. Tokens are the matches of tokenexp, or the parts between separators. Separators
// are patterns and apply one after the other; an empty separator splits all characters. Tokens of
// fewer than mincharnum characters are dropped. With mark, rows begin with STX and end with ETX.

func inferTokenizer(c *op.Call) error {
	if err := needStrings(c, 1); err != nil {
		return err
	}
	if r := c.In[0].Rank(); r < 1 || r > 2 {
		return fmt.Errorf("input is %s, not C or NxC", tensor.FormatShape(c.In[0].Shape))
	}
	return op.ErrDynamic
}

// tokenizer splits texts into tokens.
type tokenizer struct {
	token      *regexp.Regexp // nil if there are separators
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

// cut returns the tokens of a text.
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
