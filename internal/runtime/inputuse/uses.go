package inputuse

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// Kind says what elements stand for.
type Kind string

// Kinds of use.
const (
	Shape    Kind = "shape"    // dimensions of a result
	Bounds   Kind = "bounds"   // where a part begins or ends, and its size
	Paddings Kind = "paddings" // elements added at the edges
	Axes     Kind = "axes"     // axes of a tensor
	Indices  Kind = "indices"  // places in a table or along an axis
	Mask     Kind = "mask"     // which positions count
	Length   Kind = "length"   // how much of a sequence counts
	Count    Kind = "count"    // a number of things to make: repeats, best ones, classes
	Choice   Kind = "choice"   // compared with a constant, such as a sample rate
)

// Use is what is asked of a tensor's elements. One of Values, Fill and Below is set.
type Use struct {
	Kind Kind
	// Values are the elements in order.
	Values []int
	// Fill is the value of every element.
	Fill *int
	// Below bounds elements that may differ: 0 to Below-1.
	Below int
}

// anything stands for an element of Values that may be what it likes.
const anything = math.MinInt

// Of says for each input of the main graph what it is used for, nil where nothing is
// asked of it. The model has the shapes that a plan knows (see [plan.Plan.Shaped]).
// Inputs whose use asks for two things get the one that comes first in the file.
func Of(m *graph.Model) []*Use {
	g := m.Main()
	f := &finder{m: m, busy: make([]bool, len(m.Graphs)), done: make([][]*Use, len(m.Graphs)), literals: make([]map[int]*tensor.Tensor, len(m.Graphs))}
	found := f.graph(g)
	out := make([]*Use, len(g.Inputs))
	for k, id := range g.Inputs {
		if u := found[id]; u != nil {
			out[k] = u.settled(g.Values[id])
		}
	}
	return out
}

// settled is what the use asks of an input, nil for nothing that it could hold.
func (u *Use) settled(v *graph.Value) *Use {
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
	busy []bool // graphs that are being looked at: one that runs itself ends
	// done has what was found, by graph: one that calls the next twice, and so on, would
	// take twice the time of the next.
	done [][]*Use
	// literals holds the tensors of nodes that are constants, by graph and value.
	literals []map[int]*tensor.Tensor
}

// fixed is the constant behind a value, nil where it is none.
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

// literals lists what nodes named Constant make.
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

// graph returns what is asked of each value of a graph.
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
		c.passOn()
		c.demand()
	}
	f.done[g.Index] = found
	return found
}

// bodies joins what the graphs that a node runs ask of its inputs and of captured
// values.
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
		first, skip := 0, 0 // the node's input that is the body's first one after skip
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
			continue // elements of what it scans are parts of the input
		}
		for k := first; k < len(c.n.Inputs); k++ {
			if at := k - first + skip; at < len(body.Inputs) {
				c.join(c.n.Inputs[k], found[body.Inputs[at]])
			}
		}
	}
}

// call is a node with what is asked of the values of its graph.
type call struct {
	f     *finder
	g     *graph.Graph
	n     *graph.Node
	found []*Use
}

// in is the value of input k, nil where it is absent.
func (c *call) in(k int) *graph.Value {
	if k < 0 || k >= len(c.n.Inputs) || c.n.Inputs[k] < 0 || c.n.Inputs[k] >= len(c.g.Values) {
		return nil
	}
	return c.g.Values[c.n.Inputs[k]]
}

// shape is the shape of input k, nil where it is not known in full; that of a scalar
// is empty.
func (c *call) shape(k int) []int { return whole(c.in(k)) }

func whole(v *graph.Value) []int {
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

// result is the shape of output k, nil where it is not known in full.
func (c *call) result(k int) []int {
	if k >= len(c.n.Outputs) || c.n.Outputs[k] < 0 || c.n.Outputs[k] >= len(c.g.Values) {
		return nil
	}
	return whole(c.g.Values[c.n.Outputs[k]])
}

// length is the number of elements of input k, -1 where it is not known.
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

// most bounds constants whose elements are looked at.
const most = 1 << 12

// fixed is input k where that is a constant with elements, nil otherwise.
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

// constant returns the elements of input k where it is a short constant of whole
// numbers.
func (c *call) constant(k int) ([]int, bool) {
	t := c.fixed(k)
	if t == nil || !t.Type.IsInteger() || t.Len() > most {
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

// number is the one element of constant k, of whatever type.
func (c *call) number(k int) (float64, bool) {
	t := c.fixed(k)
	if t == nil || t.Len() != 1 {
		return 0, false
	}
	var one [1]float64
	tensor.Read(one[:], t, 0)
	return one[0], true
}

// ask asks something of input k, unless that is a constant.
func (c *call) ask(k int, u *Use) {
	if v := c.in(k); v != nil && c.f.fixed(c.g, c.n.Inputs[k]) == nil {
		c.join(c.n.Inputs[k], u)
	}
}

// values asks for the elements of input k. Wrong numbers of them ask for nothing.
func (c *call) values(k int, kind Kind, values []int) {
	if n := c.length(k); n >= 0 && n == len(values) {
		c.ask(k, &Use{Kind: kind, Values: values})
	}
}

func (c *call) fill(k int, kind Kind, v int) { c.ask(k, &Use{Kind: kind, Fill: &v}) }

// below asks for indices, nothing where no index is allowed.
func (c *call) below(k int, kind Kind, n int) {
	if n > 0 {
		c.ask(k, &Use{Kind: kind, Below: n})
	}
}

// strength orders uses of one value: what says more about it wins.
func (u *Use) strength() int {
	switch {
	case u.Kind == Choice:
		return 0 // any value is good for a comparison
	case u.Kind == Mask:
		return 1 // what is an index as well is no mask
	case u.Below > 0:
		return 2
	}
	return 3
}

// join adds a use to what is asked of a value already. Callers go backward: what they
// bring is earlier in the file.
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
