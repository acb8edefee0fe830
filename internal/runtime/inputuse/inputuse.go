package inputuse

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// Kind says what elements represent.
type Kind string

// Kinds of use.
const (
	Shape    Kind = "shape"    // dimensions of a result
	Bounds   Kind = "bounds"   // start, end or size of a slice
	Paddings Kind = "paddings" // numbers of padding elements
	Axes     Kind = "axes"     // axes of a tensor
	Indices  Kind = "indices"  // indices into a table or along an axis
	Mask     Kind = "mask"     // valid positions
	Length   Kind = "length"   // valid length of a sequence
	Count    Kind = "count"    // a number of results: repeats, top elements, classes
	Choice   Kind = "choice"   // compared with a constant, such as a sample rate
)

// Use is what a tensor's elements must be. One of Values, Fill and Below is set.
type Use struct {
	Kind Kind
	// Values are the elements in order.
	Values []int
	// Fill is the value of every element.
	Fill *int
	// Below bounds elements that may differ: 0 to Below-1.
	Below int
}

// anything stands for an arbitrary element of Values.
const anything = math.MinInt

// Of returns the use of each input of the main graph, nil if the model requires nothing of it.
// The model has the shapes that a plan knows (see [plan.Plan.Shaped]). An input with two
// different uses gets the one that comes first in the file.
func Of(m *graph.Model) []*Use {
	g := m.Main()
	f := &finder{m: m, busy: make([]bool, len(m.Graphs)), done: make([][]*Use, len(m.Graphs)), literals: make([]map[int]*tensor.Tensor, len(m.Graphs))}
	found := f.graph(g)
	out := make([]*Use, len(g.Inputs))
	for k, id := range g.Inputs {
		if u := found[id]; u != nil {
			out[k] = u.resolve(g.Values[id])
		}
	}
	return out
}

// resolve returns the use adapted to an input, nil if the input cannot hold it.
func (u *Use) resolve(v *graph.Value) *Use {
	c := *u
	if u.Values == nil {
		return &c
	}
	n, err := tensor.CheckShape(v.Type, v.Shape)
	if err != nil || n != len(u.Values) {
		return nil
	}
	c.Values = slices.Clone(u.Values)
	for i, x := range c.Values {
		if x == anything {
			c.Values[i] = 0
			if u.Kind == Shape || u.Kind == Count {
				c.Values[i] = 1
			}
		}
	}
	return &c
}

// finder follows uses back through the graphs of a model.
type finder struct {
	m    *graph.Model
	busy []bool // graphs in progress, to stop recursion
	// done caches the results by graph. Without it, graphs that call the next one twice each
	// would take exponential time.
	done [][]*Use
	// literals holds the tensors of Constant nodes, by graph and value.
	literals []map[int]*tensor.Tensor
}

// fixed returns the constant behind a value, nil if it is not constant.
func (f *finder) fixed(g *graph.Graph, id int) *tensor.Tensor {
	for range len(f.m.Graphs) {
		v := g.Values[id]
		if v.Const != nil && !v.Variable {
			return v.Const
		}
		if f.literals[g.Index] == nil {
			f.literals[g.Index] = literals(g)
		}
		if t := f.literals[g.Index][id]; t != nil {
			return t
		}
		at := slices.IndexFunc(g.Captures, func(c graph.Capture) bool { return c.Inner == id })
		if at < 0 || g.Parent == nil || g.Captures[at].Outer < 0 || g.Captures[at].Outer >= len(g.Parent.Values) {
			return nil
		}
		g, id = g.Parent, g.Captures[at].Outer
	}
	return nil
}

// literals lists the values of Constant nodes.
func literals(g *graph.Graph) map[int]*tensor.Tensor {
	out := map[int]*tensor.Tensor{}
	for _, n := range g.Nodes {
		if n.Op != "Constant" || n.Domain != graph.ONNX || len(n.Outputs) != 1 || n.Outputs[0] < 0 {
			continue
		}
		id := n.Outputs[0]
		if x, ok := n.Attrs["value_int"].(int64); ok {
			out[id] = tensor.From(tensor.Int64, []int{}, []int64{x})
		} else if x, ok := n.Attrs["value_ints"].([]int64); ok {
			out[id] = tensor.From(tensor.Int64, []int{len(x)}, x)
		} else if x, ok := n.Attrs["value_float"].(float32); ok {
			out[id] = tensor.From(tensor.Float32, []int{}, []float32{x})
		} else if t := n.Attrs.Tensor("value"); t != nil {
			out[id] = t
		}
	}
	return out
}

// graph returns the use of each value of a graph.
func (f *finder) graph(g *graph.Graph) []*Use {
	if found := f.done[g.Index]; found != nil {
		return found
	}
	found := make([]*Use, len(g.Values))
	if f.busy[g.Index] {
		return found
	}
	f.busy[g.Index] = true
	defer func() { f.busy[g.Index] = false }()
	for _, n := range slices.Backward(g.Nodes) {
		c := &call{f: f, g: g, n: n, found: found}
		f.bodies(c)
		c.propagate()
		c.require()
	}
	f.done[g.Index] = found
	return found
}

// bodies adds what the graphs that a node runs require of its inputs and of captured values.
func (f *finder) bodies(c *call) {
	for _, b := range plan.Bodies(c.n) {
		if b <= 0 || b >= len(f.m.Graphs) {
			continue
		}
		body := f.m.Graphs[b]
		found := f.graph(body)
		if body.Parent != nil && body.Parent.Index == c.g.Index {
			for _, x := range body.Captures {
				if x.Outer >= 0 && x.Outer < len(c.found) {
					c.join(x.Outer, found[x.Inner])
				}
			}
		}
		first, skip := 0, 0 // node input that becomes the body's first input after skip
		switch c.n.Op {
		case "IF", "STABLEHLO_CASE":
			first = 1
		case "Loop":
			first, skip = 2, 2
		case "WHILE", "STABLEHLO_WHILE", "CALL", "STABLEHLO_COMPOSITE", "Scan":
		default:
			continue
		}
		if c.n.Op == "Scan" {
			continue // scanned elements are slices of the input
		}
		for k := first; k < len(c.n.Inputs); k++ {
			if at := k - first + skip; at < len(body.Inputs) {
				c.join(c.n.Inputs[k], found[body.Inputs[at]])
			}
		}
	}
}

// call is a node together with the uses of the values of its graph.
type call struct {
	f     *finder
	g     *graph.Graph
	n     *graph.Node
	found []*Use
}

// in returns input k, nil if it is absent.
func (c *call) in(k int) *graph.Value {
	if k < 0 || k >= len(c.n.Inputs) || c.n.Inputs[k] < 0 || c.n.Inputs[k] >= len(c.g.Values) {
		return nil
	}
	return c.g.Values[c.n.Inputs[k]]
}

// shape returns the shape of input k, nil if it is not fully known. The shape of a scalar is
// empty.
func (c *call) shape(k int) []int { return knownShape(c.in(k)) }

func knownShape(v *graph.Value) []int {
	switch {
	case v == nil:
		return nil
	case v.Const != nil:
		return append([]int{}, v.Const.Shape...)
	case !v.HasShape || slices.ContainsFunc(v.Shape, func(d int) bool { return d < 0 }):
		return nil
	}
	return append([]int{}, v.Shape...)
}

// result returns the shape of output k, nil if it is not fully known.
func (c *call) result(k int) []int {
	if k >= len(c.n.Outputs) || c.n.Outputs[k] < 0 || c.n.Outputs[k] >= len(c.g.Values) {
		return nil
	}
	return knownShape(c.g.Values[c.n.Outputs[k]])
}

// length returns the number of elements of input k, -1 if it is not known.
func (c *call) length(k int) int {
	s := c.shape(k)
	if s == nil {
		return -1
	}
	return product(s)
}

func product(s []int) int {
	n := 1
	for _, d := range s {
		if d < 0 || d > 0 && n > math.MaxInt32/d {
			return -1
		}
		n *= d
	}
	return n
}

// maxConstant bounds constants whose elements are read.
const maxConstant = 1 << 12

// fixed returns input k if it is a constant with elements, nil otherwise.
func (c *call) fixed(k int) *tensor.Tensor {
	if c.in(k) == nil {
		return nil
	}
	t := c.f.fixed(c.g, c.n.Inputs[k])
	if t == nil || !t.Known() || !t.Type.IsInteger() && !t.Type.IsFloat() || len(t.Data) < t.Type.Bytes(t.Len()) {
		return nil
	}
	return t
}

// constant returns the elements of input k if it is a short integer constant.
func (c *call) constant(k int) ([]int, bool) {
	t := c.fixed(k)
	if t == nil || !t.Type.IsInteger() || t.Len() > maxConstant {
		return nil, false
	}
	wide := make([]int64, t.Len())
	tensor.Read(wide, t, 0)
	out := make([]int, len(wide))
	for i, x := range wide {
		out[i] = int(x)
	}
	return out, true
}

// number returns the single element of constant k, of any type.
func (c *call) number(k int) (float64, bool) {
	t := c.fixed(k)
	if t == nil || t.Len() != 1 {
		return 0, false
	}
	var one [1]float64
	tensor.Read(one[:], t, 0)
	return one[0], true
}

// ask records a use of input k, unless that is a constant.
func (c *call) ask(k int, u *Use) {
	if v := c.in(k); v != nil && c.f.fixed(c.g, c.n.Inputs[k]) == nil {
		c.join(c.n.Inputs[k], u)
	}
}

// values requires the elements of input k. If their number does not match, it requires nothing.
func (c *call) values(k int, kind Kind, values []int) {
	if n := c.length(k); n >= 0 && n == len(values) {
		c.ask(k, &Use{Kind: kind, Values: values})
	}
}

func (c *call) fill(k int, kind Kind, v int) { c.ask(k, &Use{Kind: kind, Fill: &v}) }

// below requires indices below n, nothing if no index is valid.
func (c *call) below(k int, kind Kind, n int) {
	if n > 0 {
		c.ask(k, &Use{Kind: kind, Below: n})
	}
}

// strength orders uses of one value: the more specific one wins.
func (u *Use) strength() int {
	switch {
	case u.Kind == Choice:
		return 0 // any value is valid for a comparison
	case u.Kind == Mask:
		return 1 // a value that is also an index is not a mask
	case u.Below > 0:
		return 2
	}
	return 3
}

// join adds a use to a value. Callers go backwards, so that a later call is for an earlier node
// of the file.
func (c *call) join(id int, u *Use) {
	if u == nil || id < 0 || id >= len(c.found) {
		return
	}
	old := c.found[id]
	switch {
	case old == nil || u.strength() > old.strength():
		c.found[id] = u
	case u.strength() < old.strength():
	case u.Below > 0:
		c.found[id] = &Use{Kind: u.Kind, Below: min(u.Below, old.Below)}
	case u.Values != nil && len(u.Values) == len(old.Values):
		both := slices.Clone(u.Values)
		for i, x := range both {
			if x == anything {
				both[i] = old.Values[i]
			}
		}
		c.found[id] = &Use{Kind: u.Kind, Values: both}
	default:
		c.found[id] = u
	}
}
