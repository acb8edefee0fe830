package sparsify

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// AnalyseZoo makes SparseZoo's analysis of the main graph. Zeros are relative to the zero point.
// As in SparseZoo, grouped convolutions are divided by the groups a second time, and
// normalisations count nothing, since they are assumed to be folded. Rows of a matrix
// multiplication are those of all outer dimensions.
func AnalyseZoo(m *graph.Model, shapes func(id int) []int, layers []*weights.Layer) *Zoo {
	z := &Zoo{ModelName: m.Path, NodeCounts: map[string]int{}, Nodes: []ZooNode{}, Parameters: newSum[ZooZeros](), Operations: ZooOps{newSum[ZooSkips](), newSum[ZooSkips]()}}
	b := &zoo{g: m.Main(), shapes: shapes, of: map[int][]*weights.Layer{}}
	for _, l := range layers {
		if l.Graph > 0 {
			continue
		}
		for _, n := range append([]int{l.Node}, l.Nodes...) {
			if !slices.Contains(b.of[n], l) {
				b.of[n] = append(b.of[n], l)
			}
		}
	}
	for _, n := range b.g.Nodes {
		x := b.node(n)
		z.Nodes = append(z.Nodes, x)
		z.NodeCounts[n.Op]++
		for _, c := range []*ZooNodes{&z.AllNodes, pick(x.Prunable, &z.Parameterized, &z.NonParameterized)} {
			c.Total++
			c.Quantized += one(x.Quantized)
			c.Pruned += one(x.Sparse)
			c.Prunable += one(x.Prunable)
		}
		z.Parameters.add(x.Summary)
		z.Operations.Ops.add(x.Operations.Ops)
		z.Operations.MACs.add(x.Operations.MACs)
	}
	return z
}

func pick[T any](is bool, a, b T) T {
	if is {
		return a
	}
	return b
}

func one(is bool) int { return pick(is, 1, 0) }

const (
	single = "single"
	block4 = "block4"
)

func newSum[T zooCounts[T]]() ZooSum[T] {
	var none T
	return ZooSum[T]{BlockStructure: map[string]T{single: none, block4: none}, Precision: map[string]T{}}
}

func (s *ZooSum[T]) add(more ZooSum[T]) {
	s.Total, s.Pruned = s.Total+more.Total, s.Pruned+more.Pruned
	addAll(s.BlockStructure, more.BlockStructure)
	addAll(s.Precision, more.Precision)
}

// addAll adds entries to sums by name.
func addAll[T zooCounts[T]](sums, more map[string]T) {
	for k, v := range more {
		sums[k] = sums[k].plus(v)
	}
}

var products = map[string]bool{"Gemm": true, "MatMul": true, "MatMulInteger": true, "QLinearMatMul": true}

type zoo struct {
	g      *graph.Graph
	shapes func(id int) []int
	of     map[int][]*weights.Layer
}

func (b *zoo) value(id int) ZooValue {
	v := b.g.Values[id]
	x := ZooValue{Name: v.Name, Type: v.Type.String()}
	s := b.shapes(id)
	if v.Const != nil {
		s = v.Const.Shape
	}
	if s != nil || v.Const != nil {
		x.Shape = dims(s)
	}
	return x
}

func (b *zoo) node(n *graph.Node) ZooNode {
	x := ZooNode{Name: n.Name, OpType: n.Op, Inputs: []ZooValue{}, Outputs: []ZooValue{}, Parameters: []ZooParameter{}, Summary: newSum[ZooZeros](), ZeroPoint: 0}
	for _, id := range n.Inputs {
		if id >= 0 {
			x.Inputs = append(x.Inputs, b.value(id))
		}
	}
	for _, id := range n.Outputs {
		if id >= 0 {
			x.Outputs = append(x.Outputs, b.value(id))
		}
	}
	if len(x.Outputs) > 0 {
		x.NodeID = x.Outputs[0].Name
	}
	ops := newSum[ZooSkips]()
	macs := newSum[ZooSkips]()
	for _, l := range b.of[n.Index] {
		mat := l.Read(nil)
		zero, blocks := int64(0), ZooZeros{}
		for tap := range l.Taps {
			n, b := inTapBlocks(mat, l, tap)
			zero, blocks = zero+n, blocks.plus(b)
		}
		p := ZooParameter{Alias: "weight", Name: l.Weight, Type: l.Type, Summary: summary(l.Type, zero, l.Weights(), blocks)}
		for _, d := range l.Shape {
			p.Shape = append(p.Shape, int64(d))
		}
		x.Parameters = append(x.Parameters, p)
		x.Summary.add(p.Summary)
		x.Prunable, x.Sparse = true, x.Sparse || zero > 0
		if q := l.Quant; q != nil {
			x.Quantized, x.ZeroPoint = true, zeroPoint(q)
		}
		one, four := b.weightOps(n, l, mat)
		add(&ops, &macs, l.Type, one, four, fourBlock(zero, l.Weights(), blocks))
	}
	if p, ok := b.bias(n); ok && x.Prunable {
		x.Parameters = append(x.Parameters, p)
		x.Summary.Total += p.Summary.Total
		addAll(x.Summary.Precision, p.Summary.Precision)
		d := ZooSkips{Dense: b.size(n.Outputs)}
		add(&ops, nil, p.Type, d, d, false)
	}
	if d, kind := b.others(n); d > 0 {
		s := ZooSkips{Dense: d}
		add(&ops, pick(products[n.Op], &macs, nil), kind, s, s, false)
	}
	x.Operations = ZooOps{ops, macs}
	return x
}

// add adds operations to both counts; half of the operations with weights are
// multiply-accumulates.
func add(ops, macs *ZooCount, kind string, one, four ZooSkips, blocks bool) {
	put := func(c *ZooCount, one, four ZooSkips) {
		is := pick(blocks, four, one)
		q := ZooCount{Total: is.Dense + is.Sparse, Pruned: is.Sparse, BlockStructure: map[string]ZooSkips{single: one, block4: four}, Precision: map[string]ZooSkips{kind: is}}
		c.add(q)
	}
	put(ops, one, four)
	if macs != nil {
		half := func(s ZooSkips) ZooSkips { return ZooSkips{Dense: s.Dense / 2, Sparse: s.Sparse / 2} }
		put(macs, half(one), half(four))
	}
}

func summary(kind string, zero, n int64, blocks ZooZeros) ZooParams {
	p, z := newSum[ZooZeros](), ZooZeros{}.plus(ZooZeros{Zero: zero, NonZero: n - zero})
	p.Total, p.Pruned = n, zero
	p.BlockStructure[single], p.BlockStructure[block4] = z, ZooZeros{}.plus(blocks)
	p.Precision[kind] = z
	return p
}

func zeroPoint(q *tensor.Quant) any {
	switch {
	case len(q.Zero) == 0:
		return 0
	case slices.ContainsFunc(q.Zero, func(z int64) bool { return z != q.Zero[0] }):
		return q.Zero
	}
	return q.Zero[0]
}

// inTapBlocks counts zeros, and zero blocks of four neighbouring input channels, at one kernel
// position. Elements missing in an incomplete block count as non-zero.
func inTapBlocks(mat []float32, l *weights.Layer, tap int) (zero int64, blocks ZooZeros) {
	for r := range l.Rows {
		row := mat[r*l.Cols:][:l.Cols]
		for c := 0; c < l.Channels; c += 4 {
			n := int64(0)
			for k := c; k < min(c+4, l.Channels); k++ {
				if row[k*l.Taps+tap] == 0 {
					n++
				}
			}
			zero += n
			if n == 4 {
				blocks.Zero++
			} else {
				blocks.NonZero++
			}
		}
	}
	return zero, blocks
}

// fourBlock reports whether a layer counts as block-pruned: some blocks are zero, and their share
// is nearly that of zero weights.
func fourBlock(zero, n int64, blocks ZooZeros) bool {
	if n == 0 || blocks.Zero == 0 {
		return false
	}
	s := float64(blocks.Zero) / float64(blocks.Zero+blocks.NonZero)
	return math.Abs(s-float64(zero)/float64(n)) <= 0.05
}

// weightOps counts operations with weights: singly and by blocks, of which each counts as four.
func (b *zoo) weightOps(n *graph.Node, l *weights.Layer, mat []float32) (one, four ZooSkips) {
	var positions func(tap int) int64
	group := int64(1)
	switch {
	case products[n.Op]:
		rows := int64(1)
		if l.Data >= 0 {
			if s := b.shapes(l.Data); len(s) > 1 {
				for _, d := range s[:len(s)-1] {
					rows *= int64(max(1, d))
				}
			}
		}
		positions = func(int) int64 { return rows }
	case n.Op == "Conv" || n.Op == "ConvInteger" || n.Op == "QLinearConv":
		positions = b.positions(n, l)
		group = int64(max(1, n.Attrs.Int("group", 1)))
	}
	if positions == nil {
		return one, four
	}
	for tap := range l.Taps {
		zero, blocks := inTapBlocks(mat, l, tap)
		at := 2 * positions(tap)
		one.Sparse += at * zero
		one.Dense += at * (int64(l.Rows*l.Channels) - zero)
		four.Sparse += at * 4 * blocks.Zero
		four.Dense += at * 4 * blocks.NonZero
	}
	return ZooSkips{Dense: one.Dense / group, Sparse: one.Sparse / group}, ZooSkips{Dense: four.Dense / group, Sparse: four.Sparse / group}
}

// positions counts, for a kernel position of a convolution, the outputs for which it is not on
// padding; nil if shapes are unknown.
func (b *zoo) positions(n *graph.Node, l *weights.Layer) func(tap int) int64 {
	if l.Data < 0 || len(n.Outputs) == 0 || len(l.Shape) < 3 {
		return nil
	}
	in, out := b.shapes(l.Data), b.shapes(n.Outputs[0])
	kernel := l.Shape[2:]
	if len(in) != len(l.Shape) || len(out) != len(l.Shape) {
		return nil
	}
	list := func(name string, def int) []int {
		if v := n.Attrs.Ints(name); len(v) >= len(kernel) {
			return v
		}
		return slices.Repeat([]int{def}, 2*len(kernel))
	}
	strides, dilations, pads := list("strides", 1), list("dilations", 1), list("pads", 0)
	same := n.Attrs.Str("auto_pad", "NOTSET")
	counts := make([][]int64, len(kernel))
	for a, size := range kernel {
		pad := pads[a]
		if all := (out[a+2]-1)*strides[a] + (size-1)*dilations[a] + 1 - in[a+2]; same == "SAME_UPPER" && all > 0 {
			pad = all / 2
		} else if same == "SAME_LOWER" && all > 0 {
			pad = (all + 1) / 2
		}
		for k := range size {
			// Outputs o with 0 <= o*stride - pad + k*dilation < in.
			from := pad - k*dilations[a]
			lo := max(0, int(math.Ceil(float64(from)/float64(max(1, strides[a])))))
			hi := min(out[a+2]-1, int(math.Floor(float64(in[a+2]-1+from)/float64(max(1, strides[a])))))
			counts[a] = append(counts[a], int64(max(0, hi-lo+1)))
		}
	}
	return func(tap int) int64 {
		p := int64(1)
		for a := len(kernel) - 1; a >= 0; a-- {
			p *= counts[a][tap%kernel[a]]
			tap /= kernel[a]
		}
		return p
	}
}

// bias is the constant bias of an operator.
func (b *zoo) bias(n *graph.Node) (p ZooParameter, ok bool) {
	at := map[string]int{"Conv": 2, "Gemm": 2, "QLinearConv": 8}[n.Op]
	if at == 0 || at >= len(n.Inputs) || n.Inputs[at] < 0 {
		return p, false
	}
	v := b.g.Values[n.Inputs[at]]
	if v.Const == nil || !v.Const.Known() || !v.Const.Type.IsNumber() {
		return p, false
	}
	p = ZooParameter{Alias: "bias", Name: v.Name, Type: v.Const.Type.String()}
	for _, d := range v.Const.Shape {
		p.Shape = append(p.Shape, int64(d))
	}
	size := int64(v.Const.Len())
	p.Summary = summary(p.Type, zeros(v.Const), size, ZooZeros{})
	p.Summary.Pruned = 0
	return p, true
}

// others counts operations without weights, with their type.
func (b *zoo) others(n *graph.Node) (ops int64, kind string) {
	if len(n.Outputs) == 0 || n.Outputs[0] < 0 || len(n.Inputs) == 0 {
		return 0, ""
	}
	kind = b.g.Values[n.Outputs[0]].Type.String()
	switch n.Op {
	case "Add", "Mul", "Div", "Sub", "Clip", "Relu", "LeakyRelu", "Sigmoid", "Tanh":
		ops = b.size(n.Outputs)
	case "GlobalAveragePool", "GlobalMaxPool":
		ops = b.size(n.Inputs)
	case "MaxPool", "AveragePool":
		ops = b.size(n.Outputs[:1])
		for _, k := range n.Attrs.Ints("kernel_shape") {
			ops *= int64(k)
		}
	}
	if products[n.Op] {
		// Without weights the second operand counts as weights.
		if len(b.of[n.Index]) == 0 && len(n.Inputs) > 1 && n.Inputs[0] >= 0 && n.Inputs[1] >= 0 {
			if s := b.shapes(n.Inputs[0]); len(s) > 1 {
				ops = 2 * int64(max(1, s[len(s)-2])) * b.size(n.Inputs[1:2])
			}
		}
	}
	return ops, kind
}

// size multiplies the dimensions of all values, unknown ones as 1; 0 if a shape is unknown.
func (b *zoo) size(ids []int) int64 {
	p := int64(1)
	for _, id := range ids {
		if id < 0 {
			continue
		}
		s := b.shapes(id)
		if s == nil {
			return 0
		}
		for _, d := range s {
			p *= int64(max(1, d))
		}
	}
	return p
}
