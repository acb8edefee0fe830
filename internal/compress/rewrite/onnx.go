package rewrite

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// onnxFormats stores weights of ONNX models as other numbers.
type onnxFormats struct{ *edit }

func (f *onnxFormats) opset() int { return f.m.Opsets[graph.ONNX] }

func (f *onnxFormats) make(op string, attrs graph.Attrs, in []int, out ...int) *graph.Node {
	return &graph.Node{Name: f.name(f.g.Values[out[0]].Name, "/"+op), Op: op, Version: f.opset(), Inputs: in, Outputs: out, Attrs: attrs}
}

// store gives a layer's weights another format.
func (f *onnxFormats) store(l *weights.Layer, mat []float32, to study.Format) study.Cause {
	switch to {
	case study.Half:
		c := half(l, mat)
		if c == nil {
			return study.NoFormat
		}
		f.behind(l, c, "float16", func(id, out int) *graph.Node {
			return f.make("Cast", graph.Attrs{"to": int64(1)}, []int{id}, out)
		})
		return ""
	case study.Weight8:
		return f.dequantized(l, mat, tensor.Int8)
	case study.Weight4:
		if f.nbits(l, mat) || f.fetched4(l, mat) {
			return ""
		}
		if f.opset() < 21 {
			return study.NoFormat
		}
		return f.dequantized(l, mat, tensor.Int4)
	case study.Int8:
		return f.int8(l, mat)
	}
	return study.NoFormat
}

// behind stores a constant and makes the layer's one of it by a node. Where that is no float32, a
// Cast makes it what it was.
func (f *onnxFormats) behind(l *weights.Layer, c *tensor.Tensor, end string, node func(id, out int) *graph.Node) {
	name := f.g.Values[l.Value].Name
	id := f.constant(f.name(name, "_"+end), c)
	v := f.value(l.Value)
	typ := l.Const.Type
	v.Const, v.Sparse, v.Quant, v.HasShape, v.Shape, v.Type = nil, nil, nil, true, l.Const.Shape, typ
	out := l.Value
	if typ != tensor.Float32 && !(typ == tensor.Float16 && c.Type == tensor.Float16) {
		out = f.add(f.name(name, "_float"), tensor.Float32, l.Const.Shape).ID
	}
	n := node(id, out)
	f.place(n, id)
	if out != l.Value {
		f.place(f.make("Cast", graph.Attrs{"to": dataTypes[typ]}, []int{out}, l.Value), out)
	}
}

// dataTypes are the numbers of element types in ONNX files.
var dataTypes = map[tensor.Type]int64{tensor.Float32: 1, tensor.Float16: 10, tensor.Float64: 11, tensor.BFloat16: 16}

// dequantized stores codes behind DequantizeLinear: with a scale for each output where the operator set
// has that, 13 and above.
func (f *onnxFormats) dequantized(l *weights.Layer, mat []float32, t tensor.Type) study.Cause {
	if f.opset() < 10 {
		return study.NoFormat
	}
	q := symmetric(l, mat, t, f.opset() >= 13, nil)
	f.codes(l, q)
	return ""
}

// codes puts codes in the place of a layer's constant.
func (f *onnxFormats) codes(l *weights.Layer, q *codes) {
	f.behind(l, q.c, "quantized", func(id, out int) *graph.Node {
		shape, zshape, attrs := []int{}, []int{}, graph.Attrs{}
		if len(q.scale) > 1 {
			shape, zshape, attrs = []int{len(q.scale)}, []int{len(q.scale)}, graph.Attrs{"axis": int64(q.axis)}
		}
		name := f.g.Values[l.Value].Name
		scale := f.constant(f.name(name, "_scale"), tensor.From(tensor.Float32, shape, q.scale))
		zero := f.constant(f.name(name, "_zero"), tensor.New(q.c.Type, zshape...))
		return f.make("DequantizeLinear", attrs, []int{id, scale, zero}, out)
	})
}

// block is how many weights share a scale in 4 bits.
const block = 32

// packBlock packs weights as codes around 8 and returns their scale, as a type has it. What is left of the bytes is zero.
func packBlock(dst []byte, part []float32, t tensor.Type) (scale float32) {
	most := 0.0
	for _, x := range part {
		most = max(most, abs(x))
	}
	s := float32(most / top(4))
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
			line[i] = code4(part[i], s)
		}
	}
	tensor.Pack(&tensor.Tensor{Type: tensor.Uint4, Shape: []int{len(line)}, Data: dst}, line)
	return s
}

// fetches4 reports whether all operators of a layer can fetch codes of four bits from its table.
func fetches4(g *graph.Graph, l *weights.Layer) bool {
	if l.Const.Type != tensor.Float32 && l.Const.Type != tensor.Float16 || len(l.Const.Shape) != 2 || l.Const.Shape[1]%2 != 0 || !l.Whole() {
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

// fetched4 turns fetches of rows of a table into GatherBlockQuantized, which holds codes of four bits in blocks along a row:
// false where the layer is none.
func (f *onnxFormats) fetched4(l *weights.Layer, mat []float32) bool {
	if !fetches4(f.g, l) {
		return false
	}
	rows, cols := l.Const.Shape[0], l.Const.Shape[1]
	table := make([]float32, rows*cols)
	for r := range l.Rows {
		for c, x := range mat[r*l.Cols:][:l.Cols] {
			table[l.Row[r]+l.Col[c]] = x
		}
	}
	per := (cols + block - 1) / block
	packed := tensor.New(tensor.Uint8, rows, cols/2)
	scales := make([]float32, rows*per)
	for r := range rows {
		for b := range per {
			lo, hi := r*cols+b*block, r*cols+min(cols, (b+1)*block)
			scales[r*per+b] = packBlock(packed.Data[lo/2:hi/2], table[lo:hi], l.Const.Type)
		}
	}
	name := f.g.Values[l.Value].Name
	st := tensor.New(l.Const.Type, rows, per)
	tensor.WriteFloat32(st, 0, scales)
	id, sid := f.constant(f.name(name, "_quantized"), packed), f.constant(f.name(name, "_scales"), st)
	for _, at := range l.Nodes {
		n := f.node(at)
		n.Op, n.Domain, n.Version = "GatherBlockQuantized", graph.Microsoft, 1
		n.Inputs = []int{id, n.Inputs[1], sid}
		n.Attrs = graph.Attrs{"bits": int64(4), "block_size": int64(block), "gather_axis": int64(0), "quantize_axis": int64(1)}
	}
	f.contrib()
	return true
}

// contrib has the model use the operators of ONNX Runtime.
func (f *onnxFormats) contrib() {
	if f.m.Opsets[graph.Microsoft] == 0 {
		f.m.Opsets[graph.Microsoft] = 1
	}
}

// nbits turns products by matrices into MatMulNBits, which holds codes of four bits in blocks of inputs:
// false where the layer is none.
func (f *onnxFormats) nbits(l *weights.Layer, mat []float32) bool {
	for _, at := range l.Nodes {
		n := f.g.Nodes[at]
		switch {
		case n.Domain != graph.ONNX || n.Op != "MatMul" && n.Op != "Gemm" || l.Input != 1 || len(l.Sources[0].Chain) > 0 && l.Mixed:
			return false
		case n.Op == "Gemm" && (n.Attrs.Float("alpha", 1) != 1 || n.Attrs.Float("beta", 1) != 1 || n.Attrs.Bool("transA", false)):
			return false
		}
	}
	if l.Mixed || l.Groups != 1 || l.Taps != 1 || l.Const.Type != tensor.Float32 && l.Const.Type != tensor.Float16 || len(l.Const.Shape) != 2 {
		return false
	}
	per := (l.Cols + block - 1) / block
	packed := tensor.New(tensor.Uint8, l.Rows, per, block/2)
	scales := make([]float32, l.Rows*per)
	for r := range l.Rows {
		for b := range per {
			part := mat[r*l.Cols+b*block : r*l.Cols+min(l.Cols, (b+1)*block)]
			scales[r*per+b] = packBlock(packed.Data[(r*per+b)*block/2:][:block/2], part, l.Const.Type)
		}
	}
	name := f.g.Values[l.Value].Name
	st := tensor.New(l.Const.Type, l.Rows*per)
	tensor.WriteFloat32(st, 0, scales)
	id, sid := f.constant(f.name(name, "_quantized"), packed), f.constant(f.name(name, "_scales"), st)
	for _, at := range l.Nodes {
		n := f.node(at)
		bias := -1
		if n.Op == "Gemm" && len(n.Inputs) > 2 {
			bias = n.Inputs[2]
		}
		n.Op, n.Domain, n.Version = "MatMulNBits", graph.Microsoft, 1
		n.Inputs = []int{n.Inputs[0], id, sid}
		n.Attrs = graph.Attrs{"K": int64(l.Cols), "N": int64(l.Rows), "bits": int64(4), "block_size": int64(block)}
		if bias >= 0 {
			out := n.Outputs[0]
			v := f.g.Values[out]
			sum := f.add(f.name(v.Name, "/product"), v.Type, nil)
			sum.Shape, sum.HasShape, sum.DimNames = v.Shape, v.HasShape, v.DimNames
			n.Outputs[0] = sum.ID
			f.made[sum.ID] = n
			f.place(f.make("Add", nil, []int{sum.ID, bias}, out), sum.ID)
		}
	}
	f.contrib()
	return true
}

// int8 puts codes around an operator: on its data, its weights, its bias and what it makes.
func (f *onnxFormats) int8(l *weights.Layer, mat []float32) study.Cause {
	if f.opset() < 10 || l.Mixed || l.Const.Type != tensor.Float32 {
		return study.NoFormat
	}
	if lookedUp(f.edit, l, "Gather") {
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
	for _, at := range l.Nodes { // ranges first, so that nothing is half done
		for _, id := range []int{f.data(at, l), f.end(at)} {
			if _, ok := f.coded[id]; !ok {
				if _, ok := f.ranges.of(id); !ok {
					return study.Unrun
				}
			}
		}
	}
	least := make([]float32, l.Rows)
	for _, at := range l.Nodes {
		if b := f.floatBias(at, l); b != nil {
			leastScales(least, b, f.scale(f.data(at, l)))
		}
	}
	q := symmetric(l, mat, tensor.Int8, f.opset() >= 13 && f.g.Nodes[l.Node].Op != "ConvTranspose", least)
	f.codes(l, q)
	for _, at := range l.Nodes {
		in := f.activation(f.data(at, l), at)
		f.bias(at, l, q, in)
		f.activation(f.end(at), -1)
	}
	return ""
}

// gather has operators fetch codes, of which DequantizeLinear makes floats.
func (f *onnxFormats) gather(l *weights.Layer, mat []float32) {
	q := symmetric(l, mat, tensor.Int8, false, nil)
	name := f.g.Values[l.Value].Name
	id := f.constant(f.name(name, "_quantized"), q.c)
	scale := f.constant(f.name(name, "_scale"), tensor.From(tensor.Float32, []int{}, q.scale))
	zero := f.constant(f.name(name, "_zero"), tensor.New(tensor.Int8))
	for _, at := range l.Nodes {
		n := f.node(at)
		out := n.Outputs[0]
		v := fetched(f.edit, out)
		n.Inputs[0], n.Outputs[0], f.made[v.ID] = id, v.ID, n
		f.place(f.make("DequantizeLinear", nil, []int{v.ID, scale, zero}, out), v.ID)
		if _, ok := f.coded[out]; !ok {
			f.coded[out] = coded{v.ID, q.scale[0], 0}
		}
	}
}

// data is what an operator multiplies with the weights.
func (f *onnxFormats) data(at int, l *weights.Layer) int { return f.g.Nodes[at].Inputs[1-l.Input] }

// end is what an operator makes, with the activation function that follows it.
func (f *onnxFormats) end(at int) int {
	out := f.g.Nodes[at].Outputs[0]
	if r := f.readers(out); len(r) == 1 && !f.outside(out) {
		if n := f.g.Nodes[r[0]]; n.Op == "Relu" || n.Op == "Clip" && n.Inputs[0] == out {
			return n.Outputs[0]
		}
	}
	return out
}

// activation makes a value pass through codes.
func (f *onnxFormats) activation(id, reader int) coded {
	if c, ok := f.coded[id]; ok {
		return c
	}
	r, _ := f.ranges.of(id)
	var c coded
	c.scale, c.zero = affine(r)
	v := f.g.Values[id]
	scale := f.constant(f.name(v.Name, "_scale"), tensor.From(tensor.Float32, []int{}, []float32{c.scale}))
	zero := f.constant(f.name(v.Name, "_zero"), tensor.From(tensor.Int8, []int{}, []int8{int8(c.zero)}))
	q := f.add(f.name(v.Name, "_quantized"), tensor.Int8, v.Shape)
	q.HasShape, q.DimNames = v.HasShape, v.DimNames
	next := f.add(f.name(v.Name, "_dequantized"), tensor.Float32, v.Shape)
	next.HasShape, next.DimNames = v.HasShape, v.DimNames
	c.id = q.ID
	if n := f.made[id]; n != nil {
		// The maker gets another output, so that the name stays with what is read.
		from := next.ID
		if i := slices.Index(f.g.Nodes, n); i >= 0 {
			n = f.node(i)
		}
		n.Outputs[slices.Index(n.Outputs, id)] = from
		f.made[from], f.made[id] = n, nil
		f.coded[from] = c // what is asked for by the maker's output now
		f.place(f.make("QuantizeLinear", nil, []int{from, scale, zero}, q.ID), from)
		f.place(f.make("DequantizeLinear", nil, []int{q.ID, scale, zero}, id), q.ID)
	} else {
		for _, at := range f.readers(id) {
			n := f.node(at)
			for k, in := range n.Inputs {
				if in == id {
					n.Inputs[k] = next.ID
				}
			}
		}
		f.place(f.make("QuantizeLinear", nil, []int{id, scale, zero}, q.ID), -1)
		f.place(f.make("DequantizeLinear", nil, []int{q.ID, scale, zero}, next.ID), q.ID)
		f.coded[next.ID] = c
	}
	f.coded[id] = c
	return c
}

// bias stores an operator's constant bias as 32-bit codes whose scale is that of the products. One that
// does not fit stays as it is.
func (f *onnxFormats) bias(at int, l *weights.Layer, q *codes, in coded) {
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
	b := biasCodes(values, func(i int) float64 {
		if len(scales) == 1 {
			return float64(scales[0])
		}
		return float64(scales[q.at[i]])
	})
	if b == nil {
		return
	}
	name := f.g.Values[n.Inputs[2]].Name
	shape, attrs := []int{}, graph.Attrs{}
	if len(scales) > 1 {
		shape, attrs = []int{len(scales)}, graph.Attrs{"axis": int64(0)}
	}
	id := f.constant(f.name(name, "_quantized"), b)
	scale := f.constant(f.name(name, "_scale"), tensor.From(tensor.Float32, shape, scales))
	out := f.add(f.name(name, "_dequantized"), tensor.Float32, c.Shape)
	f.place(f.make("DequantizeLinear", attrs, []int{id, scale}, out.ID), -1)
	f.node(at).Inputs[2] = out.ID
}

// floatBias is a constant bias with an element for each output, nil where there is none.
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

// code4 is the unsigned code of four bits around 8.
func code4(x, scale float32) uint8 {
	return uint8(min(max(int(math.RoundToEven(float64(x)/float64(scale))), -7), 7) + 8)
}
