package weights

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/study"
)

// Find lists the weights of a model's main graph in the order of their first operators. shapes
// returns the shape of a value, or nil where unknown; it may be nil itself. A constant that
// several operators read is one layer.
func Find(m *graph.Model, shapes func(id int) []int) []*Layer {
	f := newFinder(m.Main(), shapes)
	for _, n := range f.g.Nodes {
		f.node(n)
	}
	for _, l := range f.list {
		l.MainNodes, l.GlobalNodes = l.Nodes, l.Nodes
	}
	finish(m, map[int]*finder{0: f}, f.list)
	return f.list
}

func newFinder(g *graph.Graph, shapes func(id int) []int) *finder {
	return &finder{g: g, made: Producers(g), shapes: shapes, by: map[int]*Layer{}, uses: map[[2]int]bool{}}
}

// node adds the weights of a node.
func (f *finder) node(n *graph.Node) {
	if f.bothConst(n) {
		return
	}
	for _, p := range operandsOf(n) {
		if hasInput(n, p.input) && f.addOperand(n, p) && eitherOperand[n.Op] {
			break
		}
	}
}

// eitherOperand lists matrix multiplications that can have their weights at either operand.
var eitherOperand = map[string]bool{
	"Gemm": true, "FusedGemm": true, "MatMul": true, "FusedMatMul": true, "FusedMatMulActivation": true,
	"QLinearMatMul": true, "MatMulInteger": true, "BATCH_MATMUL": true,
}

// finder finds the weights of one graph.
type finder struct {
	g      *graph.Graph
	made   []*graph.Node
	shapes func(id int) []int
	list   []*Layer
	by     map[int]*Layer  // by constant
	uses   map[[2]int]bool // node and input at which weights are read
}

func (f *finder) shape(id int) []int {
	if id < 0 || id >= len(f.g.Values) {
		return nil
	}
	if f.shapes != nil {
		if s := f.shapes(id); s != nil {
			return s
		}
	}
	v := f.g.Values[id]
	if !v.HasShape || slices.ContainsFunc(v.Shape, func(d int) bool { return d < 0 }) {
		return nil
	}
	return v.Shape
}

// bothConst reports whether both operands of a matrix multiplication are constant; that is not a
// layer.
func (f *finder) bothConst(n *graph.Node) bool {
	if !eitherOperand[n.Op] {
		return false
	}
	for _, p := range operandsOf(n) {
		if !hasInput(n, p.input) {
			return false
		}
		if s, _ := follow(f.g, f.made, n.Inputs[p.input]); s == nil {
			return false
		}
	}
	return true
}

func operandAt(ids []int, i int) int {
	if i < 0 || i >= len(ids) {
		return -1
	}
	return ids[i]
}

// addOperand adds the weights at an operand. It is false if absent.
func (f *finder) addOperand(n *graph.Node, p operand) bool {
	s, at := follow(f.g, f.made, n.Inputs[p.input])
	if s == nil || at.quantised {
		return false
	}
	l := &Layer{Value: s.Value, Const: f.g.Values[s.Value].Const, Data: operandAt(n.Inputs, p.data), Sources: []*Source{s}}
	l.elems = l.Const
	if !f.quantise(l, n, p, &at) || l.elems.Len() == 0 || len(l.elems.Data) < l.elems.Type.Bytes(l.elems.Len()) {
		return false
	}
	to, ok := p.layout(n, at.v, f.shape(l.Data))
	if !ok {
		return false
	}
	taps := max(to.taps.count(), 1)
	l.Row = to.rows.offsets()
	l.Col = append(append(view{}, to.channels...), to.taps...).offsets()
	l.Channels = to.channels.count()
	v := f.g.Values[s.Value]
	name := ""
	if len(n.Outputs) > 0 && n.Outputs[0] >= 0 {
		name = f.g.Values[n.Outputs[0]].Name
	}
	l.Layer = study.Layer{
		Node: n.Index, Nodes: []int{n.Index}, Input: p.input, ID: name, Name: n.Name, Op: n.Key(),
		Weight: v.Name, Shape: l.Const.Shape, Type: l.Const.Type.String(),
		Rows: len(l.Row), Cols: len(l.Col), Taps: taps, Groups: to.groups,
	}
	if l.Name == "" {
		l.Name = name
	}
	if n.Op == "MatMulNBits" { // the last block may extend beyond the inputs
		l.Cols = min(l.Cols, max(n.Attrs.Int("K", l.Cols), 1))
		l.Col, l.Channels = l.Col[:l.Cols], l.Cols
	}
	l.Params = l.Weights() + f.bias(n, p, l.Rows)
	l.MACs = f.macs(n, p, l)
	if at.unknownQuant || !l.q.valid() {
		l.Fixed = study.NoZero
	}
	f.uses[[2]int{n.Index, p.input}] = true
	f.add(l, n)
	return true
}

// add merges a layer with an existing one of the same constant.
func (f *finder) add(l *Layer, n *graph.Node) {
	have := f.by[l.Value]
	if have == nil {
		f.by[l.Value] = l
		f.list = append(f.list, l)
		return
	}
	same := have.Rows == l.Rows && have.Cols == l.Cols && have.Taps == l.Taps && have.Groups == l.Groups &&
		slices.Equal(have.Row, l.Row) && slices.Equal(have.Col, l.Col)
	// Different parts of one constant are not the same weights.
	if have.Rows*have.Cols != l.Rows*l.Cols || !same && !have.CoversConstant() || (have.Quant == nil) != (l.Quant == nil) {
		have.Fixed = study.Shared
	}
	nodes, sources := append(have.Nodes, l.Nodes...), append(have.Sources, l.Sources...)
	macs := have.MACs
	switch {
	case macs == nil || l.MACs == nil:
		macs = nil
	default:
		macs = new(*macs + *l.MACs)
	}
	mixed := have.MixedLayouts || !same
	// A lookup table that is also a dense layer's matrix is described as in the dense layer.
	if !same && lookups[f.g.Nodes[have.Node].Op] && !lookups[n.Op] && have.Fixed == "" {
		*have = *l
	}
	have.Nodes, have.Sources, have.MACs, have.MixedLayouts = nodes, sources, macs, mixed
	if i := slices.Index(have.Nodes, have.Node); i > 0 {
		have.Nodes[0], have.Nodes[i] = have.Nodes[i], have.Nodes[0]
		have.Sources[0], have.Sources[i] = have.Sources[i], have.Sources[0]
	}
}

var lookups = map[string]bool{"Gather": true, "EmbedLayerNormalization": true, "GATHER": true, "EMBEDDING_LOOKUP": true, "EMBEDDING_LOOKUP_SPARSE": true}

// quantise sets the quantisation of a layer. It is false for integers that are not weights.
func (f *finder) quantise(l *Layer, n *graph.Node, p operand, at *tracedView) bool {
	switch n.Op {
	case "MatMulNBits":
		return f.packedMatMul(l, n, at)
	case "GatherBlockQuantized":
		return f.packedGather(l, n, at)
	}
	rank := len(at.v)
	axis := p.axis
	if axis < 0 {
		axis += rank
	}
	if n.Op == "QGemm" && n.Attrs.Bool("transB", false) {
		axis = 0 // of outputs, which come first
	}
	switch {
	case p.scale > 0 && at.q == nil:
		q, ok := quantOf(constOperand(f.g, n, p.scale), constOperand(f.g, n, p.zero), hasInput(n, p.zero), axis, 0)
		if ok && n.Op == "DynamicQuantizeLSTM" && len(q.Scale) > 1 && rank == 3 && at.v[0].size > 1 {
			// a scale for each gate of each direction: a block covers all inputs
			if q.Axis = 0; len(q.Scale) > at.v[0].size {
				q.Axis, q.Block = 1, at.v[1].size
			}
		}
		at.q, at.qv, at.unknownQuant = q, at.v, at.unknownQuant || !ok
	case p.zero > 0 && at.q == nil:
		zero := constOperand(f.g, n, p.zero)
		one := tensor.From(tensor.Float32, nil, []float32{1})
		if zero != nil && zero.Len() > 1 {
			one = tensor.New(tensor.Float32, zero.Len())
			tensor.Fill(one, func(int) float64 { return 1 })
		}
		q, ok := quantOf(one, zero, hasInput(n, p.zero), axis, 0)
		at.q, at.qv, at.unknownQuant = q, at.v, at.unknownQuant || !ok
	case n.Op == "Gather" && at.q == nil && l.Const.Type.IsInteger():
		if q := f.dequantizerAfter(n); q != nil {
			at.q, at.qv = q, at.v
		}
	}
	if !l.Const.Type.IsFloat() && (!l.Const.Type.IsInteger() || at.q == nil && !at.unknownQuant) {
		return false
	}
	if at.q != nil && len(at.q.Scale) > 1 && !at.qv.regular() {
		return false
	}
	l.setQuant(at)
	return true
}

// dequantizerAfter returns the per-tensor quantisation of a DequantizeLinear after a lookup
// operator, or nil.
func (f *finder) dequantizerAfter(n *graph.Node) *tensor.Quant {
	out := operandAt(n.Outputs, 0)
	for _, r := range f.g.Nodes {
		if out >= 0 && r.Op == "DequantizeLinear" && len(r.Inputs) > 1 && r.Inputs[0] == out {
			if q, ok := dequantizer(f.g, r, 0); ok && len(q.Scale) == 1 {
				return q
			}
		}
	}
	return nil
}

// setQuant converts the axis of a quantisation to the constant's own shape.
func (l *Layer) setQuant(at *tracedView) {
	if at.q == nil {
		return
	}
	l.q = scaler{at.q, at.qv}
	q := *at.q
	if len(q.Scale) > 1 && q.Axis >= 0 && q.Axis < len(at.qv) {
		d := at.qv[q.Axis]
		q.Axis = slices.IndexFunc(contiguous(l.Const.Shape), d.same)
	}
	l.Quant = &q
}

// bias counts the elements of a constant bias: the operator's own, or that of an Add which is the
// only reader of a MatMul.
func (f *finder) bias(n *graph.Node, p operand, rows int) int64 {
	if p.bias > 0 {
		if id := operandAt(n.Inputs, p.bias); id >= 0 {
			if s := SourceOf(f.g, f.made, id); s != nil {
				return int64(f.g.Values[s.Value].Const.Len())
			}
		}
		return 0
	}
	if n.Op != "MatMul" || len(n.Outputs) == 0 {
		return 0
	}
	var reader *graph.Node
	for _, r := range f.g.Nodes {
		if slices.Contains(r.Inputs, n.Outputs[0]) {
			if reader != nil {
				return 0
			}
			reader = r
		}
	}
	if reader == nil || reader.Op != "Add" || len(reader.Inputs) != 2 {
		return 0
	}
	for _, id := range reader.Inputs {
		if id >= 0 && id != n.Outputs[0] {
			if s := SourceOf(f.g, f.made, id); s != nil && f.g.Values[s.Value].Const.Len() == rows {
				return int64(rows)
			}
		}
	}
	return 0
}

// macs returns the multiply-accumulates of an operator with its weights, padding included; nil
// where shapes are unknown.
func (f *finder) macs(n *graph.Node, p operand, l *Layer) *int64 {
	var times int
	switch data := f.shape(operandAt(n.Inputs, max(p.data, 0))); p.repeats {
	case never:
		return new(int64(0))
	case perOutput:
		if len(n.Outputs) == 0 {
			return nil
		}
		out := f.shape(n.Outputs[0])
		if out == nil || l.Rows == 0 {
			return nil
		}
		times = tensor.Elements(out) / l.Rows
	case perInput:
		if data == nil {
			return nil
		}
		times = tensor.Elements(data) / max(l.Channels*l.Groups, 1)
	case perStep:
		if len(data) == 0 {
			return nil
		}
		times = tensor.Elements(data[:len(data)-1])
	}
	return new(int64(times) * l.Weights())
}

// finish counts zeros, and marks weights that cannot be changed because of other readers. by maps
// graph indices to finders.
func finish(m *graph.Model, by map[int]*finder, list []*Layer) {
	of := map[*tensor.Tensor][][2]int{} // graph and value id of each constant
	readers := make([][][]*graph.Node, len(m.Graphs))
	captured := make([][]bool, len(m.Graphs))
	for i, g := range m.Graphs {
		readers[i], captured[i] = make([][]*graph.Node, len(g.Values)), make([]bool, len(g.Values))
		for _, n := range g.Nodes {
			for _, id := range n.Inputs {
				if id >= 0 {
					readers[i][id] = append(readers[i][id], n)
				}
			}
		}
		for id, v := range g.Values {
			if v.Const != nil {
				of[v.Const] = append(of[v.Const], [2]int{i, id})
			}
		}
	}
	for _, b := range m.Graphs {
		if at := slices.Index(m.Graphs, b.Parent); at >= 0 && b.Parent != nil {
			for _, c := range b.Captures {
				captured[at][c.Outer] = true
			}
		}
	}
	var others func(i, id int) bool
	known := map[[2]int]bool{} // already visited
	others = func(i, id int) bool {
		if known[[2]int{i, id}] {
			return false
		}
		known[[2]int{i, id}] = true
		if captured[i][id] || slices.Contains(m.Graphs[i].Outputs, id) {
			return true
		}
		for _, n := range readers[i][id] {
			for k, in := range n.Inputs {
				switch {
				case in != id || by[i] != nil && by[i].uses[[2]int{n.Index, k}] || ReadsShapeOnly(n):
				case k == 0 && MovesElements(n) || isConcat(n):
					if others(i, n.Outputs[0]) {
						return true
					}
				default:
					return true
				}
			}
		}
		return false
	}
	var mat []float32
	for _, l := range list {
		clear(known)
		for _, at := range of[l.Const] {
			if others(at[0], at[1]) {
				l.Fixed = study.Shared
			}
		}
		if l.Fixed == study.NoZero {
			continue
		}
		mat = l.Read(mat)
		l.Zeros = 0
		for _, x := range mat {
			if x == 0 {
				l.Zeros++
			}
		}
		if l.Fixed == "" && !l.zeroInRange() {
			l.Fixed = study.NoZero
		}
		if l.Fixed == "" && l.Zeros == l.Weights() {
			l.Fixed = study.AllZero
		}
	}
}

// zeroInRange reports whether every zero point is a value of the type.
func (l *Layer) zeroInRange() bool {
	if l.q.q == nil || !l.elems.Type.IsInteger() {
		return true
	}
	lo, hi := codeRange(l.elems.Type)
	return !slices.ContainsFunc(l.q.q.Zero, func(z int64) bool { return float64(z) < lo || float64(z) > hi })
}
