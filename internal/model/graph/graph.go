package graph

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Domains of operators. ONNX's default domain is the empty string.
const (
	ONNX         = ""
	ONNXML       = "ai.onnx.ml"
	ONNXTraining = "ai.onnx.preview.training"
	Microsoft    = "com.microsoft"
	Own          = "opmeter" // operators that plans insert; never in a file
	TFLite       = "tflite"
	TFLiteCustom = "tflite.custom"
)

// RoundsRows is an attribute that readers set on products with block-quantised weights: 1 if the
// runtime of the format rounds activations to 8 bits in each block.
const RoundsRows = "rounds_rows"

// Model is a complete model file.
type Model struct {
	Format      string // "tflite", "onnx" or "gguf"
	Path        string // as given; for an archive "archive.zip!member"
	Name        string // graph or description name in the file, may be empty
	Producer    string
	Description string
	FileBytes   int64          // size of the model file, without external data
	IRVersion   int            // ONNX IR version or TFLite schema version
	Opsets      map[string]int // ONNX: operator-set version by domain ("" default)
	// Graphs lists the main graph first, then TFLite's further subgraphs in file order, or ONNX's
	// nested subgraphs in order of discovery.
	Graphs     []*Graph
	Signatures []Signature
	// Selected is the signature that Select was called with, empty for none.
	Selected string
	Metadata []Metadata
	// Warnings are defects that the reader tolerated, one sentence each.
	Warnings []string
	// Notes are facts about the file for its reader, one sentence each.
	Notes []string
	// Content is the model encoded in its format where Path is not such a file: a model from an
	// archive, a description or memory. It is nil where Path has the content.
	Content []byte
	// BesideBytes is the size of the external data that the constants refer to.
	BesideBytes int64
	// Absent says which external data is missing: the constants in it have no elements. It is nil
	// for a complete model.
	Absent error
	// Convert gives constants their elements where Open leaves them in the form of the file: large
	// weights are not converted for a count. It may be called again; nil where nothing is left.
	Convert func() error
	// Beside lists the files with external data of an ONNX model, nil for none, and BesideFileBytes
	// is the sum of their sizes.
	Beside          []string
	BesideFileBytes int64
	// Language has figures of a language model beside its graph, nil for other models.
	Language *Language
	// Close releases mappings; constants are invalid afterwards. May be nil.
	Close func() error
	// Check fails if a file that the model was read from has changed since. May be nil.
	Check func() error
}

// ShortName is the file's base name without extensions, or the graph's own name for a model
// without a file.
func (m *Model) ShortName() string {
	name := m.Path
	if _, member, ok := strings.Cut(name, "!"); ok {
		name = member
	}
	name = filepath.Base(name)
	for _, end := range []string{".tflite", ".onnx", ".gguf", ".yaml", ".yml"} {
		name = strings.TrimSuffix(name, end)
	}
	if name == "" || name == "." {
		name = m.Name
	}
	if name == "" {
		name = "model"
	}
	return name
}

// Complete gives all constants their elements. The error is Absent, or what cannot be converted.
func (m *Model) Complete() error {
	if m.Absent == nil && m.Convert != nil {
		return m.Convert()
	}
	return m.Absent
}

// ONNX reports whether the operators are those of ONNX.
func (m *Model) ONNX() bool { return m.Format == "onnx" || m.Format == "gguf" }

// Main is the graph that an inference runs.
func (m *Model) Main() *Graph { return m.Graphs[0] }

// Language describes a language model.
type Language struct {
	// Types lists the element types of the weights with their sizes in the file, the largest first.
	Types []Coded
	// CacheElements is the number of elements that each token adds to the caches of keys and
	// values, 0 without them. CacheFormula explains it.
	CacheElements int64
	CacheFormula  string
	// StateElements is the number of elements of recurrent states, which no token adds to.
	StateElements int64
	// Experts is the number of experts in a layer, 0 for none, and UsedExperts those of a token.
	Experts, UsedExperts int64
	// ActiveParams is the number of parameters that a token uses.
	ActiveParams int64
}

// Metadata is a named blob stored with the graph.
type Metadata struct {
	Name string
	Data []byte
}

// Signature names inputs and outputs of a TFLite subgraph.
type Signature struct {
	Key             string
	Graph           int
	Inputs, Outputs []SignatureTensor
}

// SignatureTensor maps a public name to a value of the signature's graph.
type SignatureTensor struct {
	Name  string
	Value int
}

// Graph is a list of nodes in topological order.
type Graph struct {
	Index   int // position in Model.Graphs
	Name    string
	Values  []*Value // Values[i].ID == i
	Inputs  []int    // value ids; without ONNX initialisers that double as inputs
	Outputs []int
	Nodes   []*Node
	// Captures lists values of the parent graph that this subgraph reads by name.
	Captures []Capture
	Parent   *Graph // enclosing graph of an ONNX subgraph, nil otherwise
}

// Capture connects a value of a subgraph to a value of the enclosing graph.
type Capture struct{ Inner, Outer int }

// Value is an edge of the graph.
type Value struct {
	ID   int
	Name string
	Type tensor.Type // Invalid if the file does not declare it
	// Shape as declared in the file, -1 for unknown or named dimensions. Only valid with
	// HasShape.
	Shape    []int
	HasShape bool
	// Placeholder is the shape that a TFLite file stores for a value with unknown dimensions,
	// usually with ones in their place; nil for other values.
	Placeholder []int
	DimNames    []string       // symbolic names, "" for unnamed dimensions; nil if all are
	Const       *tensor.Tensor // nil unless the value is a constant of the file
	Variable    bool           // TFLite variable tensor: keeps its value between runs
	// Scratch is memory that a custom operator of a compiled TFLite file lists among its inputs:
	// no node writes it, and nothing can be read from it.
	Scratch bool
	Quant   *tensor.Quant
	// Elem is the element type of a container value.
	Elem tensor.Type
	// Sparse has the encoding of a sparse constant, nil for dense ones. Const is then the dense
	// expansion.
	Sparse *Sparse
	// Offset is the offset of the constant's bytes in the file, -1 if unknown.
	Offset int64
	// Coded says how the file stores a constant that its reader converts, nil for others.
	Coded *Coded
}

// StoredBytes returns the size of a constant in the file.
func (v *Value) StoredBytes() int64 {
	switch {
	case v.Coded != nil:
		return v.Coded.Bytes
	case v.Sparse != nil:
		return int64(v.Sparse.StoredBytes)
	}
	return int64(v.Const.Bytes())
}

// Coded is the form of a constant in the file.
type Coded struct {
	Type string // of the elements, such as "Q4_K"
	// Weights is the number of weights, 0 for a part of another constant such as its scales.
	Weights int64
	// Bytes is the size in the file.
	Bytes int64
}

// Sparse describes how a sparse TFLite constant was stored.
type Sparse struct {
	TraversalOrder []int
	BlockMap       []int
	// levels that list their stored indices, by TraversalOrder; other levels store all indices
	Compressed     []bool
	Blocks         []int // sizes of the blocks along the axes of BlockMap
	StoredElements int   // non-zero elements in the file
	StoredBytes    int   // bytes of the stored values, without indices
}

// Node is one operator.
type Node struct {
	Index   int // position in Graph.Nodes
	Name    string
	Domain  string
	Op      string // TFLite builtin name such as "CONV_2D", or ONNX op type
	Version int    // TFLite operator version, or ONNX operator-set version of the domain
	Inputs  []int  // value ids, -1 where an optional input is absent
	Outputs []int  // value ids, -1 where an optional output is absent
	Attrs   Attrs
	// Table is the name of the option table that a TFLite file holds for the node, empty without
	// one: "ReshapeOptions".
	Table string
	// Function is the path of model functions that this node was inlined from, outermost first,
	// empty otherwise.
	Function []string
	// Scope is the path of the module that the file names for the node, parts separated by "/",
	// empty if it names none.
	Scope string
}

// Key is the displayed operator name with its domain, such as "CONV_2D", "Conv",
// "com.microsoft:MatMulNBits", "CUSTOM:Foo".
func (n *Node) Key() string {
	switch n.Domain {
	case ONNX, TFLite:
		return n.Op
	case TFLiteCustom:
		return "CUSTOM:" + n.Op
	}
	return n.Domain + ":" + n.Op
}

// Attrs holds a node's attributes. ONNX attributes keep their names; TFLite
// options use the schema's field names in snake_case with enumerations as
// upper-case names ("SAME", "RELU6"). Values have one of the types int64,
// float32, string, []byte, []int64, []float32, []string, *tensor.Tensor,
// []*tensor.Tensor, GraphRef, []GraphRef, bool.
type Attrs map[string]any

// GraphRef is an attribute that refers to a graph of the model.
type GraphRef int //nolint:revive // Ref alone would not say to what

// Int returns an integer attribute, or def if it is absent.
func (a Attrs) Int(name string, def int) int {
	switch v := a[name].(type) {
	case int64:
		return int(v)
	case bool:
		if v {
			return 1
		}
		return 0
	}
	return def
}

// Bool returns a boolean attribute (ONNX uses integers), or def.
func (a Attrs) Bool(name string, def bool) bool {
	switch v := a[name].(type) {
	case bool:
		return v
	case int64:
		return v != 0
	}
	return def
}

// Float returns a float attribute, or def if it is absent.
func (a Attrs) Float(name string, def float32) float32 {
	if v, ok := a[name].(float32); ok {
		return v
	}
	return def
}

// Str returns a string attribute, or def if it is absent.
func (a Attrs) Str(name, def string) string {
	switch v := a[name].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return def
}

// Ints returns an integer list as ints, nil if it is absent.
func (a Attrs) Ints(name string) []int {
	v, ok := a[name].([]int64)
	if !ok {
		return nil
	}
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
	}
	return out
}

// Floats returns a float list, nil if it is absent.
func (a Attrs) Floats(name string) []float32 { v, _ := a[name].([]float32); return v }

// Strs returns a string list, nil if it is absent.
func (a Attrs) Strs(name string) []string { v, _ := a[name].([]string); return v }

// Tensor returns a tensor attribute, nil if it is absent.
func (a Attrs) Tensor(name string) *tensor.Tensor { v, _ := a[name].(*tensor.Tensor); return v }

// Graph returns the index of a graph attribute in Model.Graphs.
func (a Attrs) Graph(name string) (int, bool) {
	v, ok := a[name].(GraphRef)
	return int(v), ok
}

// Has reports whether the attribute is present.
func (a Attrs) Has(name string) bool { _, ok := a[name]; return ok }

// Validate checks what every consumer relies on: ids in range, nodes ordered so
// that inputs exist before they are read, graph attributes in range. The error
// names graph, node and value.
func (m *Model) Validate() error {
	if len(m.Graphs) == 0 {
		return fmt.Errorf("model has no graph")
	}
	for _, g := range m.Graphs {
		if err := g.validate(len(m.Graphs)); err != nil {
			return fmt.Errorf("graph %d %q: %w", g.Index, g.Name, err)
		}
	}
	return nil
}

// EachInput visits the values that a node reads, also through its subgraphs.
func (m *Model) EachInput(n *Node, visit func(id int)) {
	for _, id := range n.Inputs {
		if id >= 0 {
			visit(id)
		}
	}
	body := func(r GraphRef) {
		for _, c := range m.Graphs[r].Captures {
			visit(c.Outer)
		}
	}
	for _, a := range n.Attrs {
		switch a := a.(type) {
		case GraphRef:
			body(a)
		case []GraphRef:
			for _, r := range a {
				body(r)
			}
		}
	}
}

func (g *Graph) validate(graphs int) error {
	ready := make([]bool, len(g.Values))
	in := func(id int) bool { return id >= 0 && id < len(g.Values) }
	for i, v := range g.Values {
		if v.ID != i {
			return fmt.Errorf("value %d has id %d", i, v.ID)
		}
		ready[i] = v.Const != nil || v.Variable || v.Scratch
	}
	for _, id := range g.Inputs {
		if !in(id) {
			return fmt.Errorf("input %d is not a value (there are %d)", id, len(g.Values))
		}
		ready[id] = true
	}
	for _, c := range g.Captures {
		if !in(c.Inner) {
			return fmt.Errorf("captured value %d is not a value", c.Inner)
		}
		ready[c.Inner] = true
	}
	for i, n := range g.Nodes {
		where := func() string { return fmt.Sprintf("node %d (%s %q)", i, n.Key(), n.Name) }
		if n.Index != i {
			return fmt.Errorf("%s has index %d", where(), n.Index)
		}
		for k, id := range n.Inputs {
			switch {
			case id == -1:
			case !in(id):
				return fmt.Errorf("%s: input %d is value %d of %d", where(), k, id, len(g.Values))
			case !ready[id]:
				return fmt.Errorf("%s: input %d (%q) is read before it is made: the graph has a cycle or a missing node", where(), k, g.Values[id].Name)
			}
		}
		for k, id := range n.Outputs {
			if id == -1 {
				continue
			}
			if !in(id) {
				return fmt.Errorf("%s: output %d is value %d of %d", where(), k, id, len(g.Values))
			}
			ready[id] = true
		}
		for name, a := range n.Attrs {
			if r, ok := a.(GraphRef); ok && (int(r) < 0 || int(r) >= graphs) {
				return fmt.Errorf("%s: attribute %q names graph %d of %d", where(), name, int(r), graphs)
			}
		}
	}
	for k, id := range g.Outputs {
		if id == -1 {
			continue
		}
		if !in(id) {
			return fmt.Errorf("output %d is value %d of %d", k, id, len(g.Values))
		}
		if !ready[id] {
			return fmt.Errorf("output %d (%q) is never made", k, g.Values[id].Name)
		}
	}
	return nil
}
