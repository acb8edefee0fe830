package netspec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Limits of a description, which may be untrusted.
const (
	maxSpecBytes = 1 << 20
	maxLayers    = 10000
	maxRepeat    = 1000
	maxElements  = 1 << 30 // of one tensor
	maxWeights   = 1 << 30 // bytes of all weights
)

// Describes reports whether text looks like a network description, possibly a faulty one: it maps
// keys to values, and the key layers is among them.
func Describes(r io.Reader) bool {
	data, err := io.ReadAll(io.LimitReader(r, maxSpecBytes))
	if err != nil {
		return false
	}
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
		if doc.Content[0].Content[i].Value == "layers" {
			return true
		}
	}
	return false
}

// Spec describes a network.
type Spec struct {
	// Name of the model.
	Name string `yaml:"name"`
	// Input is the only input.
	Input Input `yaml:"input"`
	// Type is "float32" or "int8".
	Type string `yaml:"type"`
	// Seed of the random weights.
	Seed uint64 `yaml:"seed"`
	// Layers in order; the last one produces the output.
	Layers []Layer `yaml:"layers"`
}

// Input describes the model's input.
type Input struct {
	Name  string `yaml:"name"`
	Shape []int  `yaml:"shape"` // including the batch; images as [N,H,W,C]
}

// Layer is one layer, or with Repeat a repeated block of layers.
type Layer struct {
	Op   string   `yaml:"op"`
	Name string   `yaml:"name"`
	From []string `yaml:"from"` // names of layers; "prev" (default) or "block"

	Filters    int     `yaml:"filters"`
	Kernel     Pair    `yaml:"kernel"`
	Stride     Pair    `yaml:"stride"`
	Dilation   Pair    `yaml:"dilation"`
	Padding    string  `yaml:"padding"`
	Activation string  `yaml:"activation"`
	Multiplier int     `yaml:"multiplier"`
	Units      int     `yaml:"units"`
	Heads      int     `yaml:"heads"`
	Axis       *int    `yaml:"axis"`
	Shape      []int   `yaml:"shape"`
	Perm       []int   `yaml:"perm"`
	Pad        [][]int `yaml:"pad"`
	Bias       *bool   `yaml:"bias"`
	KeepDims   bool    `yaml:"keep_dims"`
	Alpha      float32 `yaml:"alpha"`

	Repeat int     `yaml:"repeat"`
	Layers []Layer `yaml:"layers"`

	line int
}

// Pair is a height and a width, written as one number or as [height, width].
type Pair [2]int

// UnmarshalYAML reads a number or a list of two.
func (p *Pair) UnmarshalYAML(n *yaml.Node) error {
	var one int
	if n.Kind == yaml.ScalarNode {
		if err := n.Decode(&one); err != nil {
			return fmt.Errorf("line %d: %q is neither a number nor [height, width]", n.Line, n.Value)
		}
		*p = Pair{one, one}
		return nil
	}
	var two []int
	if err := n.Decode(&two); err != nil || len(two) != 2 {
		return fmt.Errorf("line %d: a number or [height, width] was expected", n.Line)
	}
	*p = Pair{two[0], two[1]}
	return nil
}

func (p Pair) or(def int) Pair {
	for i := range p {
		if p[i] == 0 {
			p[i] = def
		}
	}
	return p
}

// UnmarshalYAML reads a layer, records its line and rejects unknown keys.
func (l *Layer) UnmarshalYAML(n *yaml.Node) error {
	type plain Layer
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a layer is written as {op: conv, …}", n.Line)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; !layerKeys[k.Value] {
			return fmt.Errorf("line %d: a layer has no %q", k.Line, k.Value)
		}
	}
	if err := n.Decode((*plain)(l)); err != nil {
		return err
	}
	l.line = n.Line
	return nil
}

var layerKeys = func() map[string]bool {
	m := map[string]bool{}
	for _, k := range strings.Fields("op name from filters kernel stride dilation padding activation multiplier units heads axis shape perm pad bias keep_dims alpha repeat layers") {
		m[k] = true
	}
	return m
}()

// Parse reads a description. Errors name the line.
func Parse(r io.Reader) (*Spec, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSpecBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSpecBytes {
		return nil, fmt.Errorf("description is larger than %d bytes", maxSpecBytes)
	}
	var s Spec
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("description is empty")
		}
		return nil, plain(err)
	}
	switch s.Type {
	case "":
		s.Type = "float32"
	case "float32", "int8":
	default:
		return nil, fmt.Errorf("type %q: use float32 or int8", s.Type)
	}
	if s.Input.Name == "" {
		s.Input.Name = "input"
	}
	if len(s.Input.Shape) == 0 {
		return nil, errors.New("input has no shape: write input: {shape: [1, 32, 32, 3]}")
	}
	if len(s.Layers) == 0 {
		return nil, errors.New("there are no layers")
	}
	return &s, nil
}

// mostErrors bounds the errors that are shown of one description.
const mostErrors = 3

var (
	unknownKey = lazyregexp.New(`field (.*) not found in type \S+`)
	wrongValue = lazyregexp.New("(?s)cannot construct !!(\\w+)(?: `.*`)? into (\\S+)")
)

// kinds are the words for tags and types in errors of the YAML library.
var kinds = map[string]string{
	"map": "a map", "seq": "a list", "str": "a text", "int": "a number", "float": "a number", "bool": "true or false", "null": "nothing",
	"string": "a text", "int32": "a number", "uint64": "a number that is at least 0", "float64": "a number", "float32": "a number",
	"[]int": "a list of numbers", "[]netspec.Layer": "a list of layers", "netspec.Input": "a map with name and shape",
}

func kind(word string) string {
	if k, ok := kinds[word]; ok {
		return k
	}
	return "another value"
}

// plain says what the YAML library found in the terms of a description.
func plain(err error) error {
	all, ok := errors.AsType[*yaml.LoadErrors](err)
	if !ok {
		return err
	}
	var list []string
	for i, e := range all.Errors {
		if i == mostErrors {
			list = append(list, fmt.Sprintf("%d more", len(all.Errors)-i))
			break
		}
		text := e.Message
		if !strings.HasPrefix(text, "line ") && e.Mark.Line > 0 {
			text = fmt.Sprintf("line %d: %s", e.Mark.Line, text)
		}
		if m := wrongValue.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("%s%s, expected %s", text[:strings.Index(text, m[0])], kind(m[1]), kind(m[2]))
		}
		list = append(list, unknownKey.ReplaceAllString(text, `unknown key "$1"`))
	}
	return errors.New(strings.Join(list, "; "))
}
