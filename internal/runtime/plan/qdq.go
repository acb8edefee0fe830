package plan

import (
	"errors"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// qdq lowers floating-point operators between DequantizeLinear and QuantizeLinear in ONNX files
// to operators on 8-bit integers, which is what such files mean.
func qdq(g *Graph) {
	tabulate(g, false)
	g.InferAll()
	if l := newLowering(g); l != nil {
		l.lowerAll()
		g.InferAll()
	}
}

// Quantised finds the nodes of a graph that the pass "qdq" computes in integers, by the declared
// types and shapes, and the conversions that disappear. It is for estimates that run nothing:
// constants whose elements would have to be computed first are assumed to be valid.
func Quantised(f *graph.Graph) (integer, gone map[*graph.Node]bool) {
	integer, gone = map[*graph.Node]bool{}, map[*graph.Node]bool{}
	g, err := newGraph(&graph.Model{Graphs: []*graph.Graph{f}}, f, nil, nil, Options{}, Host{})
	if err != nil {
		return integer, gone
	}
	for i, n := range f.Nodes {
		fixed := len(n.Inputs) > 0
		for _, id := range n.Inputs {
			fixed = fixed && (id < 0 || g.Fixed[id])
		}
		for _, id := range n.Outputs {
			if id >= 0 {
				v := f.Values[id]
				g.maker[id], g.Fixed[id] = i+1, fixed
				g.Values[id] = &tensor.Tensor{Type: v.Type, Shape: v.Shape}
			}
		}
	}
	tabulate(g, true)
	l := newLowering(g)
	if l == nil {
		return integer, gone
	}
	l.lenient = true
	l.lowerAll()
	for i := range g.Tasks {
		t := &g.Tasks[i]
		n := f.Nodes[i]
		switch {
		case t.State == Fused && converts(n) != 0:
			gone[n] = true
		case t.State == Fused || t.Lowered:
			integer[n] = true
		}
	}
	return integer, gone
}

// converts returns -1 for QuantizeLinear, 1 for DequantizeLinear and 0 for others.
func converts(n *graph.Node) int {
	if n.Domain != graph.ONNX && n.Domain != graph.Microsoft {
		return 0
	}
	switch n.Op {
	case "QuantizeLinear":
		return -1
	case "DequantizeLinear":
		return 1
	}
	return 0
}

// lowering is the state of the pass "qdq" for a graph.
type lowering struct {
	g       *Graph
	uses    []int   // readers of each value, see [Graph.readers]
	readers [][]int // tasks that read each value
	lenient bool    // constants without elements are assumed valid
	taken   map[int]int
}

func newLowering(g *Graph) *lowering {
	if !slices.ContainsFunc(g.File.Nodes, func(n *graph.Node) bool { return converts(n) > 0 }) {
		return nil
	}
	return loweringOf(g)
}

func loweringOf(g *Graph) *lowering {
	l := &lowering{g: g, uses: g.readers(), readers: make([][]int, len(g.Values)), taken: map[int]int{}}
	for i := range g.Tasks {
		for _, id := range g.Tasks[i].Node.Inputs {
			if id >= 0 {
				l.readers[id] = append(l.readers[id], i)
			}
		}
	}
	return l
}

// lowerAll lowers every task that it can. Conversions without remaining readers are fused into
// the first task that reads their input instead.
func (l *lowering) lowerAll() {
	g := l.g
	for i := range g.Tasks {
		t := &g.Tasks[i]
		n := t.Node
		if t.State != Runs || t.final || t.Lowered || n.Domain != graph.ONNX || converts(n) != 0 || len(n.Inputs) == 0 || len(n.Outputs) == 0 || n.Outputs[0] < 0 {
			continue
		}
		if rule := rules[n.Op]; rule != nil {
			l.lower(i, rule)
		}
	}
	uses := g.readers()
	for i := range g.Tasks {
		t := &g.Tasks[i]
		into, ok := l.taken[i]
		if ok && t.State != Fused && uses[t.Node.Outputs[0]] == 0 {
			t.State, t.Into, t.Err, t.Ready = Fused, into, nil, false
			g.Tasks[into].Fused = append(g.Tasks[into].Fused, i)
			slices.Sort(g.Tasks[into].Fused)
		}
	}
}

// quantised is an 8-bit tensor with its scale and zero point: the input of DequantizeLinear or
// the output of QuantizeLinear.
type quantised struct {
	task           int // conversion task
	x, scale, zero int // value ids; zero is -1 where absent
	kind           tensor.Type
	s              []float32 // nil if the elements are unknown
	z              []int64
	axis           int
}

// perTensor reports whether one scale holds for all elements.
func (q *quantised) perTensor() bool { return len(q.s) <= 1 }

// quantisation reads scale and zero point of a conversion. It returns nil if they are not
// constant or not supported by the integer operators.
func (l *lowering) quantisation(i int) *quantised {
	n := l.g.Tasks[i].Node
	if len(n.Inputs) < 2 || n.Inputs[0] < 0 || n.Inputs[1] < 0 || len(n.Outputs) == 0 || n.Outputs[0] < 0 || n.Attrs.Int("block_size", 0) != 0 {
		return nil
	}
	q := &quantised{task: i, x: n.Inputs[0], scale: n.Inputs[1], zero: -1, axis: n.Attrs.Int("axis", 1)}
	if len(n.Inputs) > 2 {
		q.zero = n.Inputs[2]
	}
	if converts(n) < 0 {
		q.x = n.Outputs[0]
	}
	s, ok := l.elements(q.scale)
	if !ok {
		return nil
	}
	if s != nil {
		if s.Type != tensor.Float32 || s.Len() == 0 || len(s.Shape) > 1 {
			return nil
		}
		q.s = tensor.Of[float32](s)
		for _, v := range q.s {
			if !(v > 0) || v > 1e30 {
				return nil
			}
		}
	}
	if x := l.g.Values[q.x]; x != nil {
		q.kind = x.Type
	}
	if q.zero < 0 {
		if q.kind == tensor.Invalid && converts(n) < 0 {
			q.kind = tensor.Uint8
		}
		return q
	}
	z, ok := l.elements(q.zero)
	if !ok {
		return nil
	}
	if z != nil {
		if q.kind = z.Type; len(z.Shape) > 1 || s != nil && z.Len() != s.Len() {
			return nil
		}
		ints, err := op.Ints(z)
		if err != nil {
			return nil
		}
		for _, v := range ints {
			q.z = append(q.z, int64(v))
		}
	}
	return q
}

// elements returns a constant with its elements; nil and true for one whose elements are assumed
// to be valid.
func (l *lowering) elements(id int) (*tensor.Tensor, bool) {
	g := l.g
	if id < 0 || !g.Fixed[id] || g.Values[id] == nil {
		return nil, false
	}
	if x := g.Values[id]; x.Known() {
		return x, true
	}
	if l.lenient {
		return nil, true
	}
	if g.compute(id, g.opts.FoldBytes, 0) != nil {
		return nil, false
	}
	return g.Values[id], true
}

func is8Bit(t tensor.Type) bool { return t == tensor.Int8 || t == tensor.Uint8 }

// dequantisedFrom returns the 8-bit tensor behind a value that DequantizeLinear computes, nil for
// other values.
func (l *lowering) dequantisedFrom(id int) *quantised {
	q := l.conversion(id)
	if q == nil || !is8Bit(q.kind) {
		return nil
	}
	return q
}

// conversion is [lowering.dequantisedFrom] for any type.
func (l *lowering) conversion(id int) *quantised {
	if id < 0 || l.g.maker[id] == 0 {
		return nil
	}
	i := l.g.maker[id] - 1
	if t := &l.g.Tasks[i]; converts(t.Node) <= 0 || t.State != Runs && t.State != Folded {
		return nil
	}
	return l.quantisation(i)
}

// quantisedTo returns the 8-bit tensor into which the only reader of a value converts it.
func (l *lowering) quantisedTo(id int) *quantised {
	if id < 0 || l.uses[id] != 1 || len(l.readers[id]) != 1 {
		return nil
	}
	i := l.readers[id][0]
	t := &l.g.Tasks[i]
	if converts(t.Node) >= 0 || t.State != Runs || t.final || t.Node.Inputs[0] != id {
		return nil
	}
	if q := l.quantisation(i); q != nil && is8Bit(q.kind) && q.perTensor() {
		return q
	}
	return nil
}

// result describes an operator's result: an optional clamp, then the quantisation to 8 bits.
type result struct {
	*quantised
	clamp int // task of the clamp, -1 if absent
	act   activation.Clamp
}

func (l *lowering) result(i int) *result {
	id := l.g.Tasks[i].Node.Outputs[0]
	if q := l.quantisedTo(id); q != nil {
		return &result{quantised: q, clamp: -1}
	}
	if l.uses[id] != 1 || len(l.readers[id]) != 1 {
		return nil
	}
	j := l.readers[id][0]
	t := &l.g.Tasks[j]
	act, ok := l.g.clampOf(t.Node)
	if !ok || t.State != Runs || t.final || len(t.Node.Outputs) != 1 || t.Node.Inputs[0] != id {
		return nil
	}
	if q := l.quantisedTo(t.Node.Outputs[0]); q != nil {
		return &result{quantised: q, clamp: j, act: act}
	}
	return nil
}

// lower lowers task i, and what follows it, to integers if a rule applies.
func (l *lowering) lower(i int, rule rule) {
	g := l.g
	n := g.Tasks[i].Node
	if slices.ContainsFunc(n.Outputs[1:], func(id int) bool { return id >= 0 }) {
		return
	}
	out := l.result(i)
	values := len(g.Values)
	if out == nil {
		l.lowerOpen(i, values)
		return
	}
	b := &builder{lowering: l, n: n, out: out}
	m := rule(b)
	if m == nil || b.failed {
		l.truncateValues(values)
		return
	}
	m.Index, m.Name, m.Function = n.Index, n.Name, n.Function
	y := out.x
	var clip *graph.Node
	if out.clamp >= 0 {
		if clip = l.clip(out); clip != nil {
			y = l.g.temporary(g.Graph.Values[n.Outputs[0]].Name, out.kind)
			clip.Inputs[0] = y
		}
	}
	m.Outputs = []int{y}
	if !l.kernelAccepts(m, is8Bit) || clip != nil && g.opts.Registry != nil && g.opts.Registry.Find(clip.Domain, clip.Op, clip.Version) == nil {
		l.truncateValues(values)
		return
	}
	gone := []int{out.task}
	switch {
	case clip != nil:
		g.replace(out.clamp, clip, out.task)
		g.Tasks[out.clamp].Lowered, g.Tasks[out.clamp].pair = true, i+1
		gone = nil
		g.Tasks[i].pair = out.clamp + 1
	case out.clamp >= 0:
		gone = append(gone, out.clamp)
	}
	g.replace(i, m, gone...)
	g.Tasks[i].Lowered = true
	l.markTaken(b.sources, i)
}

// lowerOpen lowers a MatMul of 8-bit values whose result stays in floating point to integer
// accumulation. The scales that multiply the sums are as exact as the scales of the operands.
func (l *lowering) lowerOpen(i, values int) {
	g := l.g
	n := g.Tasks[i].Node
	if n.Op != "MatMul" {
		return
	}
	b := &builder{lowering: l, n: n}
	m := openMatMul(b)
	if m == nil {
		l.truncateValues(values)
		return
	}
	m.Index, m.Name, m.Function, m.Outputs = n.Index, n.Name, n.Function, n.Outputs
	if !l.kernelAccepts(m, tensor.Type.IsFloat) {
		l.truncateValues(values)
		return
	}
	g.replace(i, m)
	g.Tasks[i].Lowered = true
	l.markTaken(b.sources, i)
}

// markTaken records that task i reads values before their conversion.
func (l *lowering) markTaken(from []*quantised, i int) {
	for _, q := range from {
		if _, ok := l.taken[q.task]; !ok {
			l.taken[q.task] = i
		}
	}
}

// kernelAccepts asks the integer operator whether it supports its inputs and returns the expected
// output type.
func (l *lowering) kernelAccepts(n *graph.Node, makes func(tensor.Type) bool) bool {
	g := l.g
	if g.opts.Registry == nil {
		return true
	}
	d := g.opts.Registry.Find(n.Domain, n.Op, n.Version)
	if d == nil {
		return false
	}
	c := &op.Call{Model: g.model, Graph: g.Graph, Node: n, Limit: g.opts.MaxBytes, Out: []*tensor.Tensor{{}}}
	for _, id := range n.Inputs {
		x := g.value(id)
		if x != nil && x.Type == tensor.Invalid {
			return true // known only at run time
		}
		if id >= 0 && x == nil {
			return false
		}
		c.In, c.Fixed = append(c.In, x), append(c.Fixed, id < 0 || g.Fixed[id])
	}
	err := Guard(func() error { return d.Infer(c) })
	return err == nil && makes(c.Out[0].Type) || errors.Is(err, op.ErrDynamic)
}

// truncateValues removes values that were added for a lowering that failed.
func (l *lowering) truncateValues(values int) {
	g := l.g
	if len(g.Values) > values {
		g.Graph.Values, g.Values, g.Fixed, g.maker, g.dirty = g.Graph.Values[:values], g.Values[:values], g.Fixed[:values], g.maker[:values], g.dirty[:values]
	}
}

func (l *lowering) constant(x *tensor.Tensor) int {
	return l.g.add(&graph.Value{Type: x.Type, Shape: x.Shape, HasShape: true, Const: x, Offset: -1}, x)
}
