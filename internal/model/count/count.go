package count

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Work is the work of one execution of an operator. A nil figure is unknown: the operator has no
// rule, a shape is unknown, or the figure depends on the data.
type Work struct {
	// Ops is the number of arithmetic operations; a multiply-accumulate is two.
	Ops *int64
	// MACs is the number of multiply-accumulates, padding taps included.
	MACs *int64
	// MACsExecuted is MACs without taps on padding (convolution) or outside of the output
	// (transposed convolution).
	MACsExecuted *int64
	// MLTKOps and MLTKMACs are the counts of the Silicon Labs MLTK profiler with its omissions;
	// nil for models other than TFLite.
	MLTKOps, MLTKMACs *int64
	// Params is the number of constant elements that are weights. Integer constants without
	// quantisation (shapes, axes, indices) do not count, except as operands of integer matrix
	// multiplications.
	Params *int64
	// WeightBytes is the size of the weights as stored.
	WeightBytes *int64
	// BytesRead and BytesWritten are the sizes of the operands, each counted once; lookups read
	// only the rows that they return, rotary embeddings the rows of their tokens, and products of
	// experts the matrices of as many experts as rows can choose.
	BytesRead, BytesWritten *int64
}

// Count returns the work of one execution of node n of graph g. In and out correspond to the
// node's inputs and outputs: types and shapes must be set where known; absent optional ones are
// nil. Elements are used where known and relevant. A control flow operator has no work of its
// own; see [Calls].
func Count(m *graph.Model, g *graph.Graph, n *graph.Node, in, out []*tensor.Tensor) Work {
	c := &call{m: m, g: g, n: n, ins: in, outs: out}
	var w Work
	if r := find(n); r != nil {
		a := r.f(c)
		if !c.bad {
			w.MACs, w.MACsExecuted, w.Ops = known(a.macs), known(a.exec), known(a.ops)
		}
	}
	c.bad = false
	if n.Domain == graph.TFLite || n.Domain == graph.TFLiteCustom {
		w.MLTKOps, w.MLTKMACs = mltk(c)
	}
	c.traffic(&w)
	return w
}

// Has reports whether there is a rule for the node's operator.
func Has(n *graph.Node) bool { return find(n) != nil }

// amount is the result of a rule; unknown stands for a data-dependent figure.
type amount struct{ ops, macs, exec int64 }

const unknown = -1

func known(v int64) *int64 {
	if v < 0 {
		return nil
	}
	return &v
}

// call gives rules checked access to a node. Anything missing, malformed or too large sets bad,
// so that rules read like formulas.
type call struct {
	m         *graph.Model
	g         *graph.Graph
	n         *graph.Node
	ins, outs []*tensor.Tensor
	bad       bool
}

// shape returns the dimensions of t, nil if unknown.
func shape(t *tensor.Tensor) []int {
	if t == nil || t.Type == tensor.Invalid || t.Type.IsContainer() {
		return nil
	}
	if _, err := tensor.CheckShape(t.Type, t.Shape); err != nil {
		return nil
	}
	if t.Shape == nil {
		return []int{}
	}
	return t.Shape
}

func (c *call) tensor(list []*tensor.Tensor, i int) *tensor.Tensor {
	if i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

// in returns the shape of input i, which must exist.
func (c *call) in(i int) []int { return c.need(shape(c.tensor(c.ins, i))) }

// out returns the shape of output i, which must exist.
func (c *call) out(i int) []int { return c.need(shape(c.tensor(c.outs, i))) }

func (c *call) need(s []int) []int {
	if s == nil {
		c.bad = true
	}
	return s
}

// has reports whether the optional input i is given.
func (c *call) has(i int) bool { return c.tensor(c.ins, i) != nil }

// nin and nout are the numbers of elements of an input and an output.
func (c *call) nin(i int) int64  { return c.mul(wide(c.in(i))...) }
func (c *call) nout(i int) int64 { return c.mul(wide(c.out(i))...) }

// opt is nin for an optional input: 0 when it is absent.
func (c *call) opt(i int) int64 {
	if !c.has(i) {
		return 0
	}
	return c.nin(i)
}

// dim returns dimension k of a shape, counted from the end when negative.
func (c *call) dim(s []int, k int) int64 {
	if k < 0 {
		k += len(s)
	}
	if k < 0 || k >= len(s) {
		c.bad = true
		return 0
	}
	return int64(s[k])
}

// rank checks that a shape has at least n dimensions.
func (c *call) rank(s []int, n int) bool {
	if len(s) < n {
		c.bad = true
		return false
	}
	return true
}

func wide(s []int) []int64 {
	out := make([]int64, len(s))
	for i, d := range s {
		out[i] = int64(d)
	}
	return out
}

// limit keeps all figures exact in float64, as JSON readers need.
const limit = 1 << 53

// mul multiplies; a product over the limit or a negative factor is unknown.
func (c *call) mul(v ...int64) int64 {
	p := int64(1)
	for _, x := range v {
		if x == 0 {
			return 0
		}
	}
	for _, x := range v {
		if x < 0 || p > limit/x {
			c.bad = true
			return 0
		}
		p *= x
	}
	return p
}

// product makes the amount of an operator that is macs multiply-accumulates and
// extra operations.
func product(macs, exec, extra int64) amount {
	return amount{ops: 2*macs + extra, macs: macs, exec: exec}
}

// opsOnly makes the amount of an operator without multiply-accumulates.
func opsOnly(ops int64) amount { return amount{ops: ops} }

// attr returns an integer attribute that must not be negative.
func (c *call) attr(name string, def int) int64 {
	v := c.n.Attrs.Int(name, def)
	if v < 0 {
		c.bad = true
		return 0
	}
	return int64(v)
}

// ints returns the elements of an integer input, nil if unknown.
func (c *call) ints(i int) []int64 {
	t := c.tensor(c.ins, i)
	if !t.Known() || shape(t) == nil {
		return nil
	}
	switch t.Type {
	case tensor.Int64:
		return tensor.Of[int64](t)
	case tensor.Int32:
		v := tensor.Of[int32](t)
		out := make([]int64, len(v))
		for k, x := range v {
			out[k] = int64(x)
		}
		return out
	}
	return nil
}

// truth returns a known bool input.
func (c *call) truth(i int) (v, ok bool) {
	t := c.tensor(c.ins, i)
	if !t.Known() || t.Type != tensor.Bool || len(t.Data) == 0 {
		return false, false
	}
	return t.Data[0] != 0, true
}

// traffic sets parameters and bytes.
func (c *call) traffic(w *Work) {
	params, stored, read, written := int64(0), int64(0), int64(0), int64(0)
	readKnown, writtenKnown := true, true
	seen := map[int]bool{}
	for i, t := range c.ins {
		if t == nil {
			readKnown = readKnown && absent(c.n.Inputs, i)
			continue
		}
		b, ok := c.readOf(i)
		if shapesOnly[c.n.Op] {
			b = 0
		}
		readKnown = readKnown && ok
		read += b
		if i >= len(c.n.Inputs) || c.n.Inputs[i] < 0 || c.n.Inputs[i] >= len(c.g.Values) || seen[c.n.Inputs[i]] {
			continue
		}
		seen[c.n.Inputs[i]] = true
		v := c.g.Values[c.n.Inputs[i]]
		if !Weight(c.n, i, v) {
			continue
		}
		params += Params(c.n, i, v)
		stored += v.StoredBytes()
	}
	for i, t := range c.outs {
		if t == nil {
			writtenKnown = writtenKnown && absent(c.n.Outputs, i)
			continue
		}
		b, ok := bytesOf(t)
		writtenKnown = writtenKnown && ok
		written += b
	}
	w.Params, w.WeightBytes = &params, &stored
	if readKnown {
		w.BytesRead = &read
	}
	if writtenKnown {
		w.BytesWritten = &written
	}
}

// readOf returns the bytes that the operator reads of input i.
func (c *call) readOf(i int) (bytes int64, ok bool) {
	t, out := c.tensor(c.ins, i), c.tensor(c.outs, 0)
	switch {
	case lookups[c.n.Op] && i == 0:
		return bytesOf(out)
	case embeddings[c.n.Op] && i >= 2 && i <= 4:
		if s := shape(out); s != nil && t != nil {
			return int64(t.Type.Bytes(tensor.Elements(s))), true
		}
		return 0, false
	case slices.Contains(rotaryTables[tableUser{c.n.Domain, c.n.Op}], i):
		bytes, ok = bytesOf(t)
		x, table := shape(c.tensor(c.ins, 0)), shape(t)
		if ok && len(x) >= 3 && len(table) == 2 { // a row for each token
			rows := c.mul(int64(x[0]), int64(x[len(x)-2]))
			bytes = min(bytes, int64(t.Type.Bytes(int(min(rows, int64(table[0])))*table[1])))
		}
		return bytes, ok
	case c.n.Op == "ExpertMatMul" && i >= 1 && i <= 3:
		// Each product has another expert at most.
		bytes, ok = bytesOf(t)
		n, experts := int64(c.n.Attrs.Int("N", 0)), int64(c.n.Attrs.Int("experts", 0))
		if s := shape(out); s != nil && n > 0 && experts > 0 {
			products := int64(tensor.Elements(s)) / n
			return bytes / experts * min(products, experts), ok
		}
		return 0, false
	case c.experts() && i >= 2:
		// Each row chooses k experts, and the chosen ones are read once.
		bytes, ok = bytesOf(t)
		if s := shape(t); len(s) > 1 && s[0] > 0 {
			if n := c.choices(); !c.bad {
				return bytes / int64(s[0]) * min(n, int64(s[0])), ok
			}
		}
		return 0, false
	case c.n.Op == "GatherBlockQuantized" && i != 1:
		all, have := c.tensor(c.ins, 0), shape(out)
		bytes, ok = bytesOf(t)
		if !ok || have == nil || shape(all) == nil {
			return 0, false
		}
		codes := tensor.Elements(shape(all))
		if bits := c.n.Attrs.Int("bits", 4); all.Type == tensor.Uint8 && bits > 0 && bits <= 8 {
			codes *= 8 / bits
		}
		if n := tensor.Elements(have); n < codes {
			// scales and zero points belong to the quantised values
			bytes = int64(math.Ceil(float64(bytes) * float64(n) / float64(codes)))
		}
		return bytes, true
	}
	return bytesOf(t)
}

// absent reports whether a node has no operand i. An operand without a tensor is unknown instead.
func absent(ids []int, i int) bool { return i >= len(ids) || ids[i] < 0 }

// Weight distinguishes constants that node n reads as weights, as operand i, from shapes, axes and
// indices.
func Weight(n *graph.Node, i int, v *graph.Value) bool {
	if v.Const == nil || v.Variable || v.Coded != nil && v.Coded.Weights == 0 {
		return false
	}
	switch v.Type {
	case tensor.Int32, tensor.Int64, tensor.Bool:
		// Operand 0 of DequantizeLinear is a bias of a quantised model.
		return v.Quant != nil || integerProducts[n.Op] || n.Op == "DequantizeLinear" && i == 0
	case tensor.String, tensor.Resource, tensor.Variant:
		return false
	}
	return !v.Type.IsContainer()
}

// packedWeights lists, by operator, the operands with bytes of several weights each and the
// attribute with the bits of a weight.
var packedWeights = map[string]struct {
	operands []int
	bits     string
}{
	"MatMulNBits":          {[]int{1, 3}, "bits"},
	"MatMulNBitsMlp":       {[]int{3, 6}, "bits"},
	"MatMulNBitsQkv":       {[]int{3, 6, 9}, "bits"},
	"GatherBlockQuantized": {[]int{0, 3}, "bits"},
	"QMoE":                 {[]int{2, 5, 8, 11, 12, 13}, "expert_weight_bits"},
	"MatMulBnb4":           {[]int{1}, ""},
}

// Params returns the number of weights in the constant v, operand i of node n: several for each
// byte where the operator packs them, without those that only fill a block.
func Params(n *graph.Node, i int, v *graph.Value) int64 {
	if v.Coded != nil {
		return v.Coded.Weights
	}
	all := int64(v.Const.Len())
	p, ok := packedWeights[n.Op]
	if !ok || n.Domain != graph.Microsoft || v.Type != tensor.Uint8 || !slices.Contains(p.operands, i) {
		return all
	}
	bits := int64(n.Attrs.Int(p.bits, 4))
	if bits < 1 || bits > 8 || all > limit {
		return all
	}
	all = all * 8 / bits
	k, columns, block := int64(n.Attrs.Int("K", 0)), int64(n.Attrs.Int("N", 0)), int64(n.Attrs.Int("block_size", 0))
	if k < 1 || columns < 1 || k > limit/columns {
		return all
	}
	if i == 1 {
		return min(all, k*columns)
	}
	if i == 3 && block > 0 {
		return min(all, (k+block-1)/block*columns)
	}
	return all
}

var integerProducts = map[string]bool{
	"QLinearConv": true, "ConvInteger": true, "MatMulInteger": true, "QLinearMatMul": true,
	"CONV_2D": true, "DEPTHWISE_CONV_2D": true, "FULLY_CONNECTED": true, "TRANSPOSE_CONV": true,
}

// lookups read only the returned part of their first input.
var lookups = map[string]bool{
	"Gather": true, "GatherND": true, "GatherElements": true, "Slice": true, "DynamicSlice": true, "SequenceAt": true,
	"GATHER": true, "GATHER_ND": true, "EMBEDDING_LOOKUP": true, "SLICE": true, "STRIDED_SLICE": true, "STABLEHLO_SLICE": true,
	"STABLEHLO_DYNAMIC_SLICE": true, "STABLEHLO_GATHER": true,
}

type tableUser struct{ domain, op string }

// rotaryTables lists, by operator, the operands with the cosines and sines of all positions. Only
// the rows of the tokens in operand 0 are read.
var rotaryTables = map[tableUser][]int{
	{"", "RotaryEmbedding"}:                  {1, 2},
	{graph.Microsoft, "RotaryEmbedding"}:     {2, 3},
	{graph.Microsoft, "GroupQueryAttention"}: {7, 8},
	{graph.Microsoft, "PagedAttention"}:      {8, 9},
	{graph.Microsoft, "SparseAttention"}:     {9, 10},
}

// embeddings read as much of each of their tables (inputs 2 to 4) as they return.
var embeddings = map[string]bool{"EmbedLayerNormalization": true, "QEmbedLayerNormalization": true}

// shapesOnly read only the shape, not the elements.
var shapesOnly = map[string]bool{"Shape": true, "Size": true, "SHAPE": true, "RANK": true, "ZEROS_LIKE": true}

func bytesOf(t *tensor.Tensor) (int64, bool) {
	if t == nil {
		return 0, false
	}
	switch {
	case t.Type == tensor.Resource || t.Type == tensor.Variant:
		return 0, true
	case t.Type == tensor.String, t.Type.IsContainer():
		if !t.Known() {
			return 0, false
		}
		return int64(t.Bytes()), true
	}
	s := shape(t)
	if s == nil {
		return 0, false
	}
	return int64(t.Type.Bytes(tensor.Elements(s))), true
}

// log2 rounds up; 0 for one and below.
func log2(n int64) int64 {
	if n <= 1 {
		return 0
	}
	return int64(math.Ceil(math.Log2(float64(n))))
}
