package sparsify

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"go.yaml.in/yaml/v4"
)

// FileError is an error in a file of another tool.
type FileError struct {
	File string
	Line int    // from 1, 0 where the whole file is meant
	Text string // what was expected
}

// Error names file, line and what was expected.
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
	}
	return e.File + ": " + e.Text
}

// Limits of a text, which may be untrusted.
const (
	maxBytes = 4 << 20
	maxDepth = 32
)

// maxNodes bounds the visited values; those behind an alias count each time.
func maxNodes(bytes int) int { return 1<<16 + bytes }

// document is a YAML text being read.
type document struct {
	file string
	left int // nodes that may still be visited
	vars map[string]*yaml.Node
}

// parse reads one YAML document of at most the given size and checks the limits.
func parse(data []byte, file string, most int) (*document, *yaml.Node, error) {
	d := &document{file: file, left: maxNodes(len(data)), vars: map[string]*yaml.Node{}}
	if len(data) > most {
		return nil, nil, &FileError{File: file, Text: fmt.Sprintf("is %d bytes long, at most %d were expected", len(data), most)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, nil, &FileError{File: file, Text: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(doc.Content) == 0 {
		return nil, nil, &FileError{File: file, Text: "is empty"}
	}
	if err := d.visitAll(doc.Content[0], 0); err != nil {
		return nil, nil, err
	}
	return d, doc.Content[0], nil
}

// visitAll visits all nodes once like a reader, so that readers need not count.
func (d *document) visitAll(n *yaml.Node, depth int) error {
	if d.left--; d.left < 0 {
		return d.bad(n, "aliases multiply the text beyond what its length allows")
	}
	if depth > maxDepth {
		return d.bad(n, "values nest deeper than %d", maxDepth)
	}
	if n.Kind == yaml.AliasNode {
		return d.visitAll(n.Alias, depth+1)
	}
	for _, c := range n.Content {
		if err := d.visitAll(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) bad(n *yaml.Node, format string, args ...any) error {
	return &FileError{File: d.file, Line: n.Line, Text: fmt.Sprintf(format, args...)}
}

// real resolves an alias.
func real(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// kind returns the displayed kind of a node.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(n.Value)
}

// members yields names and values of a mapping.
func members(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], real(n.Content[i+1])) {
				return
			}
		}
	}
}

// number reads a number, a variable's value or an expression: eval(a + 2 * b).
func (d *document) number(n *yaml.Node, what string) (float64, error) {
	return d.numberIn(n, what, 0)
}

func (d *document) numberIn(n *yaml.Node, what string, depth int) (float64, error) {
	n = real(n)
	if n.Kind != yaml.ScalarNode {
		return 0, d.bad(n, "%s: a number was expected, not %s", what, kind(n))
	}
	text := strings.TrimSpace(n.Value)
	if inner, ok := strings.CutPrefix(text, "eval("); ok && strings.HasSuffix(inner, ")") && depth < maxDepth {
		e := &expression{d: d, n: n, what: what, text: strings.TrimSuffix(inner, ")"), depth: depth + 1}
		v, err := e.sum()
		if err == nil && e.peek() != 0 {
			err = d.bad(n, "%s: %q cannot be computed: an operator was expected at %q", what, n.Value, e.text[e.at:])
		}
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			err = d.bad(n, "%s: %q is not finite", what, n.Value)
		}
		return v, err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, d.bad(n, "%s: a number was expected, not %q", what, n.Value)
	}
	return v, nil
}

// expression is arithmetic over numbers and variables.
type expression struct {
	d     *document
	n     *yaml.Node
	what  string
	text  string
	at    int
	depth int
}

func (e *expression) peek() byte {
	for e.at < len(e.text) && (e.text[e.at] == ' ' || e.text[e.at] == '\t') {
		e.at++
	}
	if e.at == len(e.text) {
		return 0
	}
	return e.text[e.at]
}

func (e *expression) sum() (float64, error) {
	v, err := e.product()
	for err == nil && (e.peek() == '+' || e.peek() == '-') {
		op := e.text[e.at]
		e.at++
		var w float64
		if w, err = e.product(); op == '-' {
			w = -w
		}
		v += w
	}
	return v, err
}

func (e *expression) product() (float64, error) {
	v, err := e.term()
	for err == nil && (e.peek() == '*' || e.peek() == '/') {
		op := e.text[e.at]
		e.at++
		var w float64
		if w, err = e.term(); op == '/' {
			w = 1 / w
		}
		v *= w
	}
	return v, err
}

var word = lazyregexp.New(`^(?:[A-Za-z_]\w*|[0-9.]+(?:[eE][-+]?[0-9]+)?)`)

func (e *expression) term() (float64, error) {
	if e.depth++; e.depth > maxDepth {
		return 0, e.d.bad(e.n, "%s: %q nests too deep", e.what, e.n.Value)
	}
	defer func() { e.depth-- }()
	switch c := e.peek(); c {
	case '-':
		e.at++
		v, err := e.term()
		return -v, err
	case '(':
		e.at++
		v, err := e.sum()
		if err == nil && e.peek() != ')' {
			err = e.d.bad(e.n, "%s: %q lacks a closing bracket", e.what, e.n.Value)
		}
		e.at++
		return v, err
	}
	w := word.FindString(e.text[min(e.at, len(e.text)):])
	if w == "" {
		return 0, e.d.bad(e.n, "%s: %q cannot be computed: a number or a name was expected", e.what, e.n.Value)
	}
	e.at += len(w)
	if v, err := strconv.ParseFloat(w, 64); err == nil {
		return v, nil
	}
	v := e.d.vars[w]
	if v == nil {
		return 0, e.d.bad(e.n, "%s: there is no variable %q", e.what, w)
	}
	return e.d.numberIn(v, w, e.depth)
}

// texts reads a list of strings, or one.
func (d *document) texts(n *yaml.Node, what string) ([]string, error) {
	n = real(n)
	if n.Kind == yaml.ScalarNode && n.Value != "" && n.Tag != "!!null" {
		return []string{n.Value}, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, d.bad(n, "%s: a list of names was expected, not %s", what, kind(n))
	}
	out := make([]string, 0, len(n.Content))
	for _, c := range n.Content {
		if c = real(c); c.Kind != yaml.ScalarNode || c.Value == "" {
			return nil, d.bad(c, "%s: a name was expected, not %s", what, kind(c))
		}
		out = append(out, c.Value)
	}
	return out, nil
}

// truth parses a boolean as written by Python and YAML.
func (d *document) truth(n *yaml.Node, what string) (bool, error) {
	n = real(n)
	words := []string{"false", "no", "off", "true", "yes", "on"}
	i := slices.Index(words, strings.ToLower(n.Value))
	if n.Kind != yaml.ScalarNode || i < 0 {
		return false, d.bad(n, "%s: true or false was expected, not %s", what, kind(n))
	}
	return i > 2, nil
}
