package sparsify

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/study"
)

// matcher returns a predicate for a name in a recipe: of a weight or an operator's first output,
// a pattern after "re:" that matches its beginning, or one of the keywords for all.
func matcher(name string) (func(l *study.Layer) bool, error) {
	if name == "__ALL__" || name == "__ALL_PRUNABLE__" {
		return func(l *study.Layer) bool { return l.Fixed == "" }, nil
	}
	if pattern, ok := strings.CutPrefix(name, "re:"); ok {
		re, err := regexp.Compile("^(?:" + pattern + ")")
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		return func(l *study.Layer) bool { return re.MatchString(l.Weight) || re.MatchString(l.ID) }, nil
	}
	return func(l *study.Layer) bool { return l.Weight == name || l.ID == name || l.Name == name }, nil
}

// Exclusions is a list of excluded layers.
type Exclusions struct {
	// Names are of operators, weights or outputs, Types of operators.
	Names, Types []string
	// Patterns match a whole name.
	Patterns []*regexp.Regexp
}

// Match returns the positions of excluded layers, and names that no layer has.
func (x *Exclusions) Match(layers []study.Layer) (out []int, unmatched []string) {
	used := map[string]bool{}
	for i, l := range layers {
		names := []string{l.Name, l.ID, l.Weight}
		hit := slices.Contains(x.Types, l.Op)
		for _, n := range x.Names {
			if slices.Contains(names, n) {
				hit, used[n] = true, true
			}
		}
		for _, p := range x.Patterns {
			if slices.ContainsFunc(names, p.MatchString) {
				hit, used[p.String()] = true, true
			}
		}
		if hit {
			out = append(out, i)
		}
	}
	for _, n := range x.Names {
		if !used[n] {
			unmatched = append(unmatched, n)
		}
	}
	return out, unmatched
}

// ParseExclusions parses, from JSON or YAML, NNCF's ignored_scopes ("{re}" before a pattern) and
// ignored_scope (names, patterns, types), and Neural Compressor's op_name_dict and op_type_dict
// (fp32 entries) and lists of excluded operators. Errors are [FileError] with the line.
func ParseExclusions(data []byte, file string) (*Exclusions, error) {
	d, top, err := parse(data, file, maxBytes)
	if err != nil {
		return nil, err
	}
	x := &Exclusions{}
	found, err := d.exclusions(x, top)
	if err == nil && !found {
		err = d.bad(top, "a list of layers to exclude was expected: ignored_scopes, ignored_scope, op_name_dict or excluded_op_names")
	}
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (d *document) exclusions(x *Exclusions, n *yaml.Node) (found bool, err error) {
	n = real(n)
	if n.Kind == yaml.SequenceNode {
		for _, c := range n.Content {
			inner, err := d.exclusions(x, c)
			if err != nil {
				return found, err
			}
			found = found || inner
		}
		return found, nil
	}
	if n.Kind != yaml.MappingNode {
		return false, nil
	}
	for k, v := range members(n) {
		here := true
		switch k.Value {
		case "ignored_scopes":
			err = d.scopes(x, v, k.Value, "{re}")
		case "ignored_scope":
			err = d.ignored(x, v)
		case "excluded_op_names", "excluded", "exclude":
			err = d.scopes(x, v, k.Value, "")
		case "op_name_dict", "op_type_dict":
			err = d.kept(x, v, k.Value)
		default:
			here, err = d.exclusions(x, v)
		}
		if err != nil {
			return found, err
		}
		found = found || here
	}
	return found, nil
}

// scopes reads names. With a mark, the marked names are patterns; without one, all may be.
func (d *document) scopes(x *Exclusions, n *yaml.Node, what, mark string) error {
	names, err := d.texts(n, what)
	if err != nil {
		return err
	}
	for _, s := range names {
		pattern, marked := strings.CutPrefix(s, mark)
		if mark != "" && !marked {
			x.Names = append(x.Names, s)
			continue
		}
		if err := d.pattern(x, n, what, pattern, mark == ""); err != nil {
			return err
		}
	}
	return nil
}

// pattern adds a pattern. One that may be a plain name counts as a name too, and need not be a
// valid pattern.
func (d *document) pattern(x *Exclusions, n *yaml.Node, what, pattern string, plain bool) error {
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	switch {
	case plain && (err != nil || regexp.QuoteMeta(pattern) == pattern):
		x.Names = append(x.Names, pattern)
	case err != nil:
		return d.bad(n, "%s: %q is not a pattern: %v", what, pattern, err)
	default:
		x.Patterns = append(x.Patterns, re)
		if plain {
			x.Patterns = append(x.Patterns, regexp.MustCompile("^"+regexp.QuoteMeta(pattern)+"$"))
		}
	}
	return nil
}

func (d *document) ignored(x *Exclusions, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return d.bad(n, "ignored_scope: names, patterns or types were expected, not %s", kind(n))
	}
	for k, v := range members(n) {
		what := "ignored_scope: " + k.Value
		var names []string
		var err error
		switch k.Value {
		case "names":
			names, err = d.texts(v, what)
			x.Names = append(x.Names, names...)
		case "types":
			names, err = d.texts(v, what)
			x.Types = append(x.Types, names...)
		case "patterns":
			names, err = d.texts(v, what)
			for _, p := range names {
				if err == nil {
					err = d.pattern(x, v, what, p, false)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// kept reads a dictionary of operators and returns those whose weights stay fp32.
func (d *document) kept(x *Exclusions, n *yaml.Node, what string) error {
	if n.Kind != yaml.MappingNode {
		return d.bad(n, "%s: a mapping of operators was expected, not %s", what, kind(n))
	}
	for k, v := range members(n) {
		if !fp32(v) {
			continue
		}
		if what == "op_type_dict" {
			x.Types = append(x.Types, k.Value)
		} else if err := d.pattern(x, k, what, k.Value, true); err != nil {
			return err
		}
	}
	return nil
}

// fp32 reports whether an entry {weight: {dtype: [fp32]}} keeps floats.
func fp32(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for k, v := range members(n) {
		if k.Value != "weight" || v.Kind != yaml.MappingNode {
			continue
		}
		for k, v := range members(v) {
			if k.Value == "dtype" && (v.Value == "fp32" || len(v.Content) == 1 && real(v.Content[0]).Value == "fp32") {
				return true
			}
		}
	}
	return false
}

// NNCF writes excluded layers as an NNCF configuration.
func NNCF(layers []study.Layer, excluded []int) ([]byte, error) {
	return jsonx.MarshalIndent(struct {
		Scopes []string `json:"ignored_scopes"`
	}{names(layers, excluded)})
}

// NeuralCompressor writes excluded layers as a configuration of Neural Compressor: operators that
// stay fp32 and are not pruned.
func NeuralCompressor(layers []study.Layer, excluded []int) []byte {
	var b bytes.Buffer
	ns := names(layers, excluded)
	for _, part := range []struct{ head, line string }{
		{"op_name_dict", "  %s:\n    activation: {dtype: [fp32]}\n    weight: {dtype: [fp32]}\n"},
		{"excluded_op_names", "  - %s\n"},
	} {
		if len(ns) == 0 {
			empty := map[string]string{"op_name_dict": "{}", "excluded_op_names": "[]"}[part.head]
			fmt.Fprintf(&b, "%s: %s\n", part.head, empty)
			continue
		}
		fmt.Fprintf(&b, "%s:\n", part.head)
		for _, n := range ns {
			fmt.Fprintf(&b, part.line, jsonx.AppendString(nil, n))
		}
	}
	return b.Bytes()
}

// names are those of operators, each once.
func names(layers []study.Layer, at []int) []string {
	out := []string{}
	for _, i := range at {
		if i >= 0 && i < len(layers) && !slices.Contains(out, layers[i].Name) {
			out = append(out, layers[i].Name)
		}
	}
	return out
}
