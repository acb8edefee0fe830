package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

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

// count is the number of parts that split makes at most.
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

// split cuts at most limit times (negative: always). An empty delimiter stands
// for runs of white space, of which none is left at the beginning.
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
	switch a := c.Node.Attrs.Str("case_change_action", "NONE"); a {
	case "NONE", "LOWER", "UPPER":
	default:
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

// prepareMatch compiles the pattern: Go's syntax is RE2's.
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
