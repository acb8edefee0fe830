package rewrite

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// onnxFormats stores weights of ONNX models in other formats.
type onnxFormats struct{ *edit }

func (f *onnxFormats) opset() int { return f.m.Opsets[graph.ONNX] }

func (f *onnxFormats) make(op string, attrs graph.Attrs, in []int, out ...int) *graph.Node {
	return &graph.Node{Name: f.freshName(f.g.Values[out[0]].Name, "/"+op), Op: op, Version: f.opset(), Inputs: in, Outputs: out, Attrs: attrs}
}

// store stores a layer's weights in another format.
func (f *onnxFormats) store(l *weights.Layer, mat []float32, to study.Format) study.Cause {
	switch to {
	case study.Half:
		c := toFloat16(l, mat)
		if c == nil {
			return study.NoFormat
		}
		f.storeBehind(l, c, "float16", func(id, out int) *graph.Node {
			return f.make("Cast", graph.Attrs{"to": int64(1)}, []int{id}, out)
		})
		return ""
	case study.Weight8:
		return f.storeDequantized(l, mat, tensor.Int8)
	case study.Weight4:
		if f.matMulNBits(l, mat) || f.gatherBlockQuantized(l, mat) {
			return ""
		}
		if f.opset() < 21 {
			return study.NoFormat
		}
		return f.storeDequantized(l, mat, tensor.Int4)
	case study.Int8:
		return f.int8(l, mat)
	case study.Dynamic8:
		return f.dynamic8(l, mat)
	}
	return study.NoFormat
}

// storeBehind stores a constant and derives the layer's constant from it with a node. Where the
// layer is not float32, a Cast restores its type.
func (f *onnxFormats) storeBehind(l *weights.Layer, c *tensor.Tensor, end string, node func(id, out int) *graph.Node) {
	name := f.g.Values[l.Value].Name
	id := f.addConst(f.freshName(name, "_"+end), c)
	v := f.mutableValue(l.Value)
	typ := l.Const.Type
	v.Const, v.Sparse, v.Quant, v.HasShape, v.Shape, v.Type = nil, nil, nil, true, l.Const.Shape, typ
	out := l.Value
	if typ != tensor.Float32 && !(typ == tensor.Float16 && c.Type == tensor.Float16) {
		out = f.addValue(f.freshName(name, "_float"), tensor.Float32, l.Const.Shape).ID
	}
	n := node(id, out)
	f.insertAfter(n, id)
	if out != l.Value {
		f.insertAfter(f.make("Cast", graph.Attrs{"to": dataTypes[typ]}, []int{out}, l.Value), out)
	}
}

// dataTypes are the codes of element types in ONNX files.
var dataTypes = map[tensor.Type]int64{tensor.Float32: 1, tensor.Float16: 10, tensor.Float64: 11, tensor.BFloat16: 16}

// storeDequantized stores quantised weights behind DequantizeLinear, with a scale per output from
// operator set 13 on.
func (f *onnxFormats) storeDequantized(l *weights.Layer, mat []float32, t tensor.Type) study.Cause {
	if f.opset() < 10 {
		return study.NoFormat
	}
	q := quantiseSymmetric(l, mat, t, f.opset() >= 13, nil)
	f.storeQuantised(l, q)
	return ""
}

// storeQuantised replaces a layer's constant by quantised weights.
func (f *onnxFormats) storeQuantised(l *weights.Layer, q *quantWeights) {
	f.storeBehind(l, q.c, "quantized", func(id, out int) *graph.Node {
		shape, zshape, attrs := []int{}, []int{}, graph.Attrs{}
		if len(q.scale) > 1 {
			shape, zshape, attrs = []int{len(q.scale)}, []int{len(q.scale)}, graph.Attrs{"axis": int64(q.axis)}
		}
		name := f.g.Values[l.Value].Name
		scale := f.addConst(f.freshName(name, "_scale"), tensor.From(tensor.Float32, shape, q.scale))
		zero := f.addConst(f.freshName(name, "_zero"), tensor.New(q.c.Type, zshape...))
		return f.make("DequantizeLinear", attrs, []int{id, scale, zero}, out)
	})
}

// blockSize is the number of 4-bit weights that share a scale.
const blockSize = 32

// packBlock packs weights as 4-bit values with a zero point of 8 and returns their scale, rounded
// to type t. Unused nibbles are zero weights.
func packBlock(dst []byte, part []float32, t tensor.Type) (scale float32) {
	most := 0.0
	for _, x := range part {
		most = max(most, abs(x))
	}
	s := float32(most / maxCode(4))
	if t == tensor.Float16 {
		s = tensor.F16ToF32(tensor.F32ToF16(s))
	}
	if !(s > 0) {
		s = 1
	}
	line := make([]uint8, 2*len(dst))
	for i := range line {
		line[i] = 8
		if i < len(part) {
			line[i] += uint8(min(max(int(math.RoundToEven(float64(part[i])/float64(s))), -7), 7))
		}
	}
	tensor.Pack(&tensor.Tensor{Type: tensor.Uint4, Shape: []int{len(line)}, Data: dst}, line)
	return s
}

// supportsGather4 reports whether all operators of a layer can look up rows of a 4-bit table.
func supportsGather4(g *graph.Graph, l *weights.Layer) bool {
	if l.Const.Type != tensor.Float32 && l.Const.Type != tensor.Float16 || len(l.Const.Shape) != 2 || l.Const.Shape[1]%2 != 0 || !l.CoversConstant() {
		return false
	}
	for _, at := range l.Nodes {
		n := g.Nodes[at]
		if n.Op != "Gather" || n.Domain != graph.ONNX || n.Inputs[0] != l.Value || n.Attrs.Int("axis", 0) != 0 {
			return false
		}
	}
	return true
}

// gatherBlockQuantized converts Gather nodes on a table to GatherBlockQuantized, with 4-bit
// values in blocks along a row. It is false where that is not possible.
func (f *onnxFormats) gatherBlockQuantized(l *weights.Layer, mat []float32) bool {
	if !supportsGather4(f.g, l) {
		return false
	}
	rows, cols := l.Const.Shape[0], l.Const.Shape[1]
	table := make([]float32, rows*cols)
	for r := range l.Rows {
		for c, x := range mat[r*l.Cols:][:l.Cols] {
			table[l.Row[r]+l.Col[c]] = x
		}
	}
	per := (cols + blockSize - 1) / blockSize
	packed := tensor.New(tensor.Uint8, rows, cols/2)
	scales := make([]float32, rows*per)
	for r := range rows {
		for b := range per {
			lo, hi := r*cols+b*blockSize, r*cols+min(cols, (b+1)*blockSize)
			scales[r*per+b] = packBlock(packed.Data[lo/2:hi/2], table[lo:hi], l.Const.Type)
		}
	}
	id, sid := f.addBlocks(l, packed, scales, rows, per)
	for _, at := range l.Nodes {
		n := f.mutableNode(at)
		n.Op, n.Domain, n.Version = "GatherBlockQuantized", graph.Microsoft, 1
		n.Inputs = []int{id, n.Inputs[1], sid}
		n.Attrs = graph.Attrs{"bits": int64(4), "block_size": int64(blockSize), "gather_axis": int64(0), "quantize_axis": int64(1)}
	}
	return true
}

// addBlocks adds the packed weights and the scales of a layer, for an operator of ONNX Runtime,
// whose operator domain it adds to the model.
func (f *onnxFormats) addBlocks(l *weights.Layer, packed *tensor.Tensor, scales []float32, shape ...int) (id, sid int) {
	if f.m.Opsets[graph.Microsoft] == 0 {
		f.m.Opsets[graph.Microsoft] = 1
	}
	name, st := f.g.Values[l.Value].Name, tensor.New(l.Const.Type, shape...)
	tensor.WriteFloat32(st, 0, scales)
	return f.addConst(f.freshName(name, "_quantized"), packed), f.addConst(f.freshName(name, "_scales"), st)
}

// matMulNBits converts matrix multiplications to MatMulNBits, with 4-bit values in blocks of
// inputs. It is false where that is not possible.
func (f *onnxFormats) matMulNBits(l *weights.Layer, mat []float32) bool {
	for _, at := range l.Nodes {
		n := f.g.Nodes[at]
		switch {
		case n.Domain != graph.ONNX || n.Op != "MatMul" && n.Op != "Gemm" || l.Input != 1 || len(l.Sources[0].Chain) > 0 && l.MixedLayouts:
			return false
		case n.Op == "Gemm" && (n.Attrs.Float("alpha", 1) != 1 || n.Attrs.Float("beta", 1) != 1 || n.Attrs.Bool("transA", false)):
			return false
		}
	}
	if l.MixedLayouts || l.Groups != 1 || l.Taps != 1 || l.Const.Type != tensor.Float32 && l.Const.Type != tensor.Float16 || len(l.Const.Shape) != 2 {
		return false
	}
	per := (l.Cols + blockSize - 1) / blockSize
	packed := tensor.New(tensor.Uint8, l.Rows, per, blockSize/2)
	scales := make([]float32, l.Rows*per)
	for r := range l.Rows {
		for b := range per {
			part := mat[r*l.Cols+b*blockSize : r*l.Cols+min(l.Cols, (b+1)*blockSize)]
			scales[r*per+b] = packBlock(packed.Data[(r*per+b)*blockSize/2:][:blockSize/2], part, l.Const.Type)
		}
	}
	id, sid := f.addBlocks(l, packed, scales, l.Rows*per)
	for _, at := range l.Nodes {
		n := f.mutableNode(at)
		bias := -1
		if n.Op == "Gemm" && len(n.Inputs) > 2 {
			bias = n.Inputs[2]
		}
		n.Op, n.Domain, n.Version = "MatMulNBits", graph.Microsoft, 1
		n.Inputs = []int{n.Inputs[0], id, sid}
		n.Attrs = graph.Attrs{"K": int64(l.Cols), "N": int64(l.Rows), "bits": int64(4), "block_size": int64(blockSize)}
		if bias >= 0 {
			out := n.Outputs[0]
			v := f.g.Values[out]
			sum := f.addValue(f.freshName(v.Name, "/product"), v.Type, nil)
			sum.Shape, sum.HasShape, sum.DimNames = v.Shape, v.HasShape, v.DimNames
			n.Outputs[0] = sum.ID
			f.made[sum.ID] = n
			f.insertAfter(f.make("Add", nil, []int{sum.ID, bias}, out), sum.ID)
		}
	}
	return true
}

// int8 quantises the data, weights, bias and output of an operator.
func (f *onnxFormats) int8(l *weights.Layer, mat []float32) study.Cause {
	if f.opset() < 10 || l.MixedLayouts || l.Const.Type != tensor.Float32 {
		return study.NoFormat
	}
	if isLookup(f.edit, l, "Gather") {
		f.gather(l, mat)
		return ""
	}
	for _, at := range l.Nodes {
		switch n := f.g.Nodes[at]; {
		case n.Domain != graph.ONNX || !slices.Contains([]string{"Conv", "ConvTranspose", "Gemm", "MatMul"}, n.Op):
			return study.NoFormat
		case n.Op == "Gemm" && (n.Attrs.Float("alpha", 1) != 1 || n.Attrs.Float("beta", 1) != 1):
			return study.NoFormat
		}
	}
	for _, at := range l.Nodes { // check ranges first, so that a failure changes nothing
		if !f.rangesKnown(f.dataInput(at, l), f.activationOutput(at)) {
			return study.NotRun
		}
	}
	least := make([]float32, l.Rows)
	for _, at := range l.Nodes {
		if b := f.floatBias(at, l); b != nil {
			raiseMinScales(least, b, f.scale(f.dataInput(at, l)))
		}
	}
	q := quantiseSymmetric(l, mat, tensor.Int8, f.opset() >= 13 && f.g.Nodes[l.Node].Op != "ConvTranspose", least)
	f.storeQuantised(l, q)
	for _, at := range l.Nodes {
		in := f.quantiseActivation(f.dataInput(at, l), at)
		f.bias(at, l, q, in)
		f.quantiseActivation(f.activationOutput(at), -1)
	}
	return ""
}

// gather makes lookups return quantised values, followed by DequantizeLinear.
func (f *onnxFormats) gather(l *weights.Layer, mat []float32) {
	q := quantiseSymmetric(l, mat, tensor.Int8, false, nil)
	name := f.g.Values[l.Value].Name
	id := f.addConst(f.freshName(name, "_quantized"), q.c)
	scale := f.addConst(f.freshName(name, "_scale"), tensor.From(tensor.Float32, []int{}, q.scale))
	zero := f.addConst(f.freshName(name, "_zero"), tensor.New(tensor.Int8))
	for _, at := range l.Nodes {
		n := f.mutableNode(at)
		out := n.Outputs[0]
		v := addQuantisedOutput(f.edit, out)
		n.Inputs[0], n.Outputs[0], f.made[v.ID] = id, v.ID, n
		f.insertAfter(f.make("DequantizeLinear", nil, []int{v.ID, scale, zero}, out), v.ID)
		if _, ok := f.activations[out]; !ok {
			f.activations[out] = activationQuant{v.ID, q.scale[0], 0}
		}
	}
}

// dataInput returns the input that an operator multiplies with the weights.
func (f *onnxFormats) dataInput(at int, l *weights.Layer) int { return f.g.Nodes[at].Inputs[1-l.Input] }

// activationOutput returns an operator's output, after the activation function that follows it.
func (f *onnxFormats) activationOutput(at int) int {
	out := f.g.Nodes[at].Outputs[0]
	if r := f.readers(out); len(r) == 1 && !f.visibleOutside(out) {
		if n := f.g.Nodes[r[0]]; n.Op == "Relu" || n.Op == "Clip" && n.Inputs[0] == out {
			return n.Outputs[0]
		}
	}
	return out
}

// quantiseActivation inserts QuantizeLinear and DequantizeLinear at a value.
func (f *onnxFormats) quantiseActivation(id, reader int) activationQuant {
	if c, ok := f.activations[id]; ok {
		return c
	}
	r, _ := f.ranges.rangeOf(id)
	var c activationQuant
	c.scale, c.zero = AffineParams(r)
	v := f.g.Values[id]
	scale := f.addConst(f.freshName(v.Name, "_scale"), tensor.From(tensor.Float32, []int{}, []float32{c.scale}))
	zero := f.addConst(f.freshName(v.Name, "_zero"), tensor.From(tensor.Int8, []int{}, []int8{int8(c.zero)}))
	q := f.addValue(f.freshName(v.Name, "_quantized"), tensor.Int8, v.Shape)
	q.HasShape, q.DimNames = v.HasShape, v.DimNames
	next := f.addValue(f.freshName(v.Name, "_dequantized"), tensor.Float32, v.Shape)
	next.HasShape, next.DimNames = v.HasShape, v.DimNames
	c.id = q.ID
	if n := f.made[id]; n != nil {
		// The producer gets a new output, so that the name stays with the value that is read.
		from := next.ID
		if i := slices.Index(f.g.Nodes, n); i >= 0 {
			n = f.mutableNode(i)
		}
		n.Outputs[slices.Index(n.Outputs, id)] = from
		f.made[from], f.made[id] = n, nil
		f.activations[from] = c // key for the producer's new output
		f.insertAfter(f.make("QuantizeLinear", nil, []int{from, scale, zero}, q.ID), from)
		f.insertAfter(f.make("DequantizeLinear", nil, []int{q.ID, scale, zero}, id), q.ID)
	} else {
		f.redirect(id, next.ID)
		f.insertAfter(f.make("QuantizeLinear", nil, []int{id, scale, zero}, q.ID), -1)
		f.insertAfter(f.make("DequantizeLinear", nil, []int{q.ID, scale, zero}, next.ID), q.ID)
		f.activations[next.ID] = c
	}
	f.activations[id] = c
	return c
}

// bias quantises an operator's constant bias to int32 with the scale of the products. A bias that
// does not fit stays unchanged.
func (f *onnxFormats) bias(at int, l *weights.Layer, q *quantWeights, in activationQuant) {
	n := f.g.Nodes[at]
	values := f.floatBias(at, l)
	if values == nil {
		return
	}
	c := f.g.Values[n.Inputs[2]].Const
	scales := make([]float32, len(q.scale))
	for i, s := range q.scale {
		scales[i] = s * in.scale
	}
	b := quantiseBias(values, func(i int) float64 { return float64(scales[q.at[i]]) })
	if b == nil {
		return
	}
	name := f.g.Values[n.Inputs[2]].Name
	shape, attrs := []int{}, graph.Attrs{}
	if len(scales) > 1 {
		shape, attrs = []int{len(scales)}, graph.Attrs{"axis": int64(0)}
	}
	id := f.addConst(f.freshName(name, "_quantized"), b)
	scale := f.addConst(f.freshName(name, "_scale"), tensor.From(tensor.Float32, shape, scales))
	out := f.addValue(f.freshName(name, "_dequantized"), tensor.Float32, c.Shape)
	f.insertAfter(f.make("DequantizeLinear", attrs, []int{id, scale}, out.ID), -1)
	f.mutableNode(at).Inputs[2] = out.ID
}

// floatBias returns a constant bias with an element per output, nil if absent.
func (f *onnxFormats) floatBias(at int, l *weights.Layer) []float32 {
	n := f.g.Nodes[at]
	if n.Op == "MatMul" || len(n.Inputs) < 3 || n.Inputs[2] < 0 || l.Input != 1 || l.Groups > 1 && n.Op == "ConvTranspose" {
		return nil
	}
	c := f.g.Values[n.Inputs[2]].Const
	if c == nil || c.Type != tensor.Float32 || c.Len() != l.Rows || len(c.Shape) != 1 {
		return nil
	}
	return tensor.Of[float32](c)
}

func abs(x float32) float64 { return float64(max(x, -x)) }
