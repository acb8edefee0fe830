package plan

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Limits of planning nested graphs: real models stay below 10 % of peak.
const (
	maxDepth  = 64 // nesting depth
	maxShapes = 8  // plans per graph, for different shapes
)

// bodies plans the graphs that control flow runs, once per combination of shapes.
type bodies struct {
	done  map[string]*Graph
	plans []int  // by graph: number of plans made
	busy  []bool // by graph: planning in progress, to stop recursion
	depth int
	// tripWork is the number of nodes computed to count iterations.
	tripWork int
	// malformed is the first node of the bodies that breaks a rule of the format.
	malformed *MalformedError
}

// unknown stands for a value of which nothing is known.
func unknown() *tensor.Tensor { return &tensor.Tensor{} }

// known reports whether type and shape of a value are fully known.
func known(t *tensor.Tensor) bool {
	return t != nil && t.Type != tensor.Invalid && !slices.ContainsFunc(t.Shape, func(d int) bool { return d < 0 })
}

// run plans graph i of the model for inputs and returns its outputs, with unknown ones where
// nothing is known; nil when the graph cannot be planned.
func (b *bodies) run(g *Graph, i int, in []*tensor.Tensor) []*tensor.Tensor {
	if i <= 0 || i >= len(g.model.Graphs) {
		return nil
	}
	f := g.model.Graphs[i]
	if len(in) != len(f.Inputs) || len(f.Captures) > 0 && (f.Parent == nil || f.Parent.Index != g.File.Index) {
		return nil
	}
	key := signature(g, f, in)
	p := b.done[key]
	if p == nil {
		if b.busy[i] || b.depth >= maxDepth || b.plans[i] >= maxShapes {
			return nil
		}
		b.busy[i], b.depth, b.plans[i] = true, b.depth+1, b.plans[i]+1
		p = b.plan(g, f, in)
		b.busy[i], b.depth = false, b.depth-1
		if p == nil {
			return nil
		}
		b.done[key] = p
	}
	g.inner = append(g.inner, p)
	out := make([]*tensor.Tensor, len(f.Outputs))
	for k, id := range f.Outputs {
		if out[k] = unknown(); id >= 0 && known(p.Values[id]) {
			out[k] = describe(p.Values[id])
		}
	}
	return out
}

func (b *bodies) plan(g *Graph, f *graph.Graph, in []*tensor.Tensor) *Graph {
	p, err := newGraph(g.model, f, in, g, g.opts, Host{})
	if err != nil {
		return nil
	}
	p.bodies = b
	p.apply()
	if b.malformed == nil {
		b.malformed = p.malformed
	}
	return p
}

// signature identifies a plan of a graph by the shapes of inputs and captured values, and by
// captured constants.
func signature(g *Graph, f *graph.Graph, in []*tensor.Tensor) string {
	k := binary.AppendVarint(nil, int64(f.Index))
	add := func(t *tensor.Tensor) {
		if t == nil {
			k = append(k, 0xff, 0xff)
			return
		}
		k = append(k, byte(t.Type), byte(len(t.Shape)))
		for _, d := range t.Shape {
			k = binary.AppendVarint(k, int64(d))
		}
	}
	for _, t := range in {
		add(t)
	}
	for _, c := range f.Captures {
		if c.Outer < 0 || c.Outer >= len(g.Values) {
			continue
		}
		t := g.Values[c.Outer]
		add(t)
		if g.Fixed[c.Outer] {
			k = binary.AppendUvarint(k, uint64(uintptr(unsafe.Pointer(t))))
		}
	}
	return string(k)
}

// planBodies plans the graphs that a control-flow task runs. If the task itself is dynamic, its
// outputs get the inferred shapes.
func (b *bodies) planBodies(g *Graph, t *Task) {
	refs := Bodies(t.Node)
	if len(refs) == 0 {
		return
	}
	mark := len(g.inner)
	out := b.outputs(g, t, refs)
	t.ran = slices.Clone(g.inner[min(mark, len(g.inner)):])
	b.countScans(g, t, out)
	if !t.Dynamic {
		return
	}
	for k, x := range t.Call.Out {
		if x == nil || k >= len(out) || out[k] == nil || out[k].Type == tensor.Invalid || g.Graph.Values[t.Node.Outputs[k]].Variable {
			continue
		}
		if !known(out[k]) {
			g.claims[t.Node.Outputs[k]] = out[k]
			continue
		}
		if t.Call.AffordTensor(out[k].Type, out[k].Shape) == nil {
			x.Type, x.Shape = out[k].Type, out[k].Shape
		}
	}
}

// countScans sets the first dimension of the scan outputs of an ONNX Loop: its iterations.
func (b *bodies) countScans(g *Graph, t *Task, out []*tensor.Tensor) {
	if t.Node.Domain != graph.ONNX || t.Node.Op != "Loop" {
		return
	}
	from := max(0, len(t.Call.In)-2)
	if !slices.ContainsFunc(out[min(from, len(out)):], known0) {
		return
	}
	calls := g.calls(t, t.Node)
	if len(calls) != 1 || calls[0].Times == nil || *calls[0].Times > math.MaxInt32 {
		return
	}
	for _, y := range out[from:] {
		if known0(y) {
			y.Shape[0] = int(*calls[0].Times)
		}
	}
}

// known0 reports whether only the first dimension of a value is unknown.
func known0(t *tensor.Tensor) bool {
	return t != nil && t.Type != tensor.Invalid && len(t.Shape) > 0 && t.Shape[0] < 0 && !slices.ContainsFunc(t.Shape[1:], func(d int) bool { return d < 0 })
}

func (b *bodies) outputs(g *Graph, t *Task, refs []int) []*tensor.Tensor {
	n, in := t.Node, t.Call.In
	if n.Domain == graph.ONNX {
		switch n.Op {
		case "If":
			return b.branches(g, t, []string{"then_branch", "else_branch"}, nil)
		case "Loop":
			return b.loop(g, t)
		case "Scan":
			if n.Version >= 9 {
				return b.scan(g, t)
			}
		}
	}
	if n.Domain == graph.TFLite {
		switch n.Op {
		case "IF":
			return b.branches(g, t, []string{"then_subgraph_index", "else_subgraph_index"}, in[min(1, len(in)):])
		case "STABLEHLO_CASE":
			var out []*tensor.Tensor
			for i, r := range refs {
				out = merge(out, b.run(g, r, in[min(1, len(in)):]), i == 0)
			}
			return out
		case "WHILE", "STABLEHLO_WHILE":
			return b.while(g, t)
		case "CALL", "STABLEHLO_COMPOSITE", "CALL_ONCE":
			return b.run(g, refs[0], in[:min(len(in), inputs(g.model, refs[0]))])
		}
	}
	// The arguments that other operators pass to their graphs are unknown.
	for _, r := range refs {
		args := make([]*tensor.Tensor, inputs(g.model, r))
		for k := range args {
			args[k] = unknown()
		}
		b.run(g, r, args)
	}
	return nil
}

func inputs(m *graph.Model, i int) int {
	if i < 0 || i >= len(m.Graphs) {
		return 0
	}
	return len(m.Graphs[i].Inputs)
}

// branches plans both branches; when the condition is constant, the shapes are those of the
// branch that runs.
func (b *bodies) branches(g *Graph, t *Task, attrs []string, in []*tensor.Tensor) []*tensor.Tensor {
	var outs [2][]*tensor.Tensor
	for i, name := range attrs {
		if r, ok := t.Node.Attrs.Graph(name); ok {
			outs[i] = b.run(g, r, in)
		}
	}
	if t.Call.Const(0) {
		_ = g.compute(t.Node.Inputs[0], g.opts.FoldBytes, 0) // on failure either branch may run
	}
	if c := t.Call.Input(0); t.Call.Const(0) && c.Known() && c.Type == tensor.Bool && len(c.Data) == 1 {
		if c.Data[0] != 0 {
			return outs[0]
		}
		return outs[1]
	}
	return merge(outs[0], outs[1], false)
}

// merge keeps what two lists of values have in common. With first it returns b.
func merge(a, b []*tensor.Tensor, first bool) []*tensor.Tensor {
	if first {
		return b
	}
	out := make([]*tensor.Tensor, min(len(a), len(b)))
	for k := range out {
		out[k] = agree(a[k], b[k])
	}
	return out
}

// agree returns what two values have in common: equal dimensions, -1 where they differ.
func agree(a, b *tensor.Tensor) *tensor.Tensor {
	if a == nil || b == nil || a.Type != b.Type || len(a.Shape) != len(b.Shape) {
		return unknown()
	}
	c := describe(a)
	for i, d := range b.Shape {
		if c.Shape[i] != d {
			c.Shape[i] = -1
		}
	}
	return c
}

// stabiliseShapes plans a body until its loop-carried values keep their shapes between
// iterations. A dimension that changes is unknown from then on. turn plans one iteration: it maps
// the states to the next ones.
func stabiliseShapes(states []*tensor.Tensor, turn func(states []*tensor.Tensor) (next []*tensor.Tensor)) bool {
	for range len(states) + 1 {
		next := turn(states)
		if len(next) < len(states) {
			return false
		}
		stable := true
		for k, s := range states {
			if s == nil || s.Type == tensor.Invalid {
				continue
			}
			if n := next[k]; n == nil || n.Type != s.Type || !slices.Equal(n.Shape, s.Shape) {
				states[k], stable = unknown(), false
			}
		}
		if stable {
			return true
		}
	}
	return false
}

func (b *bodies) while(g *Graph, t *Task) []*tensor.Tensor {
	cond, ok := t.Node.Attrs.Graph("cond_subgraph_index")
	body, also := t.Node.Attrs.Graph("body_subgraph_index")
	if !ok || !also {
		return nil
	}
	states := withoutElements(t.Call.In)
	mark := len(g.inner)
	if !stabiliseShapes(states, func(s []*tensor.Tensor) []*tensor.Tensor {
		g.inner = g.inner[:mark]
		return b.run(g, body, s)
	}) {
		return nil
	}
	b.run(g, cond, states)
	return states
}

// withoutElements copies values without elements, which differ between iterations.
func withoutElements(in []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(in))
	for i, t := range in {
		out[i] = describe(t)
	}
	return out
}

// loop plans the body of ONNX Loop. Its results are the loop-carried states and the scan outputs,
// which have one position per iteration.
func (b *bodies) loop(g *Graph, t *Task) []*tensor.Tensor {
	r, ok := t.Node.Attrs.Graph("body")
	if !ok || r <= 0 || r >= len(g.model.Graphs) {
		return nil
	}
	f := g.model.Graphs[r]
	states := withoutElements(t.Call.In[min(2, len(t.Call.In)):])
	if len(f.Inputs) != len(states)+2 {
		return nil
	}
	var out []*tensor.Tensor
	mark := len(g.inner)
	stable := stabiliseShapes(states, func(s []*tensor.Tensor) []*tensor.Tensor {
		g.inner = g.inner[:mark]
		args := append([]*tensor.Tensor{scalar(f, 0, tensor.Int64), scalar(f, 1, tensor.Bool)}, s...)
		if out = b.run(g, r, args); len(out) < 1+len(s) {
			return nil
		}
		return out[1 : 1+len(s)]
	})
	if !stable {
		return nil
	}
	for _, y := range out[1+len(states):] {
		if known(y) && !y.Type.IsContainer() {
			y = &tensor.Tensor{Type: y.Type, Shape: slices.Insert(slices.Clone(y.Shape), 0, -1)}
		} else {
			y = unknown()
		}
		states = append(states, y)
	}
	return states
}

// scalar returns a body's counter or condition. Some exporters declare them with the shape [1].
func scalar(f *graph.Graph, input int, t tensor.Type) *tensor.Tensor {
	if v := f.Values[f.Inputs[input]]; v.HasShape && len(v.Shape) == 1 {
		return &tensor.Tensor{Type: t, Shape: []int{1}}
	}
	return &tensor.Tensor{Type: t}
}

// scan plans the body of ONNX Scan since version 9.
func (b *bodies) scan(g *Graph, t *Task) []*tensor.Tensor {
	a := t.Node.Attrs
	r, ok := a.Graph("body")
	ins := a.Int("num_scan_inputs", 0)
	n := len(t.Call.In) - ins
	if !ok || ins < 1 || n < 0 || r <= 0 || r >= len(g.model.Graphs) {
		return nil
	}
	length, rows := -1, make([]*tensor.Tensor, ins)
	for k, x := range t.Call.In[n:] {
		rows[k] = unknown()
		if !known(x) {
			continue
		}
		axis, err := op.Axis(at(a.Ints("scan_input_axes"), k), len(x.Shape))
		if err != nil {
			return nil
		}
		length = x.Shape[axis]
		rows[k] = &tensor.Tensor{Type: x.Type, Shape: slices.Delete(slices.Clone(x.Shape), axis, axis+1)}
	}
	states := withoutElements(t.Call.In[:n])
	var out []*tensor.Tensor
	mark := len(g.inner)
	if !stabiliseShapes(states, func(s []*tensor.Tensor) []*tensor.Tensor {
		g.inner = g.inner[:mark]
		out = b.run(g, r, slices.Concat(s, rows))
		return out
	}) || len(out) < n {
		return nil
	}
	for k, y := range out[n:] {
		z := unknown()
		if known(y) && length != 0 {
			if axis, err := op.Axis(at(a.Ints("scan_output_axes"), k), len(y.Shape)+1); err == nil {
				z = &tensor.Tensor{Type: y.Type, Shape: slices.Insert(slices.Clone(y.Shape), axis, length)}
			}
		}
		states = append(states, z)
	}
	return states
}

func at(list []int, i int) int {
	if i < len(list) {
		return list[i]
	}
	return 0
}
