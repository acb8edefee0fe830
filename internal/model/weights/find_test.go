package weights_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// builder makes graphs.
type builder struct {
	m *graph.Model
	g *graph.Graph
}

func newBuilder(format string) *builder {
	g := &graph.Graph{Name: "g"}
	return &builder{&graph.Model{Format: format, Graphs: []*graph.Graph{g}}, g}
}

func (b *builder) value(shape ...int) int {
	id := len(b.g.Values)
	b.g.Values = append(b.g.Values, &graph.Value{ID: id, Name: fmt.Sprintf("v%d", id), Type: tensor.Float32, Shape: shape, HasShape: true})
	return id
}

func (b *builder) constant(c *tensor.Tensor, q *tensor.Quant) int {
	id := b.value(c.Shape...)
	v := b.g.Values[id]
	v.Type, v.Const, v.Quant = c.Type, c, q
	return id
}

// count is a constant of 0, 1, 2 ...
func (b *builder) count(t tensor.Type, shape ...int) int {
	c := tensor.New(t, shape...)
	tensor.Fill(c, func(i int) float64 { return float64(i) })
	return b.constant(c, nil)
}

func (b *builder) ints(v ...int64) int {
	return b.constant(tensor.From(tensor.Int64, []int{len(v)}, v), nil)
}

func (b *builder) floats(v ...float32) int {
	return b.constant(tensor.From(tensor.Float32, []int{len(v)}, v), nil)
}

func (b *builder) node(op string, attrs graph.Attrs, out int, in ...int) int {
	n := &graph.Node{Index: len(b.g.Nodes), Name: fmt.Sprintf("n%d", len(b.g.Nodes)), Op: op, Version: 21, Inputs: in, Outputs: []int{out}, Attrs: attrs}
	switch {
	case b.m.Format == "tflite":
		n.Domain = graph.TFLite
	case microsoft[op]:
		n.Domain = graph.Microsoft
	}
	b.g.Nodes = append(b.g.Nodes, n)
	return out
}

var microsoft = map[string]bool{"MatMulNBits": true, "Attention": true, "QAttention": true, "DynamicQuantizeLSTM": true, "GatherBlockQuantized": true, "QEmbedLayerNormalization": true}

// want is what a layer is to be like; mat are the first weights of its matrix.
type want struct {
	node                               int
	rows, cols, taps, groups, channels int
	mat                                []float32
	zeros                              int64
	macs                               int64 // -1 where it is not known
	fixed                              study.Cause
	nodes                              int
}

// TestFind looks at one operator after the other, with weights that count up from 0.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, format string
		build        func(b *builder)
		want         []want
	}{
		{"convolution", "onnx", func(b *builder) {
			b.node("Conv", nil, b.value(1, 2, 5, 5), b.value(1, 3, 5, 5), b.count(tensor.Float32, 2, 3, 1, 2), b.count(tensor.Float32, 2))
		}, []want{{0, 2, 6, 2, 1, 3, []float32{0, 1, 2, 3, 4, 5, 6}, 1, 300, "", 1}}},
		{"grouped", "onnx", func(b *builder) {
			b.node("Conv", graph.Attrs{"group": int64(2)}, b.value(1, 4, 3), b.value(1, 6, 3), b.count(tensor.Float32, 4, 3, 1))
		}, []want{{0, 4, 3, 1, 2, 3, []float32{0, 1, 2, 3}, 1, 36, "", 1}}},
		{"transposed in groups", "onnx", func(b *builder) {
			b.node("ConvTranspose", graph.Attrs{"group": int64(2)}, b.value(1, 2, 8), b.value(1, 4, 4), b.count(tensor.Float32, 4, 1, 2))
		}, []want{{0, 2, 4, 2, 2, 2, []float32{0, 1, 2, 3, 4, 5, 6, 7}, 1, 32, "", 1}}},
		{"dense, transposed", "onnx", func(b *builder) {
			b.node("Gemm", graph.Attrs{"transB": int64(1)}, b.value(7, 2), b.value(7, 3), b.count(tensor.Float32, 2, 3))
		}, []want{{0, 2, 3, 1, 1, 3, []float32{0, 1, 2, 3, 4, 5}, 1, 42, "", 1}}},
		{"right operand", "onnx", func(b *builder) {
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), b.count(tensor.Float32, 3, 2))
		}, []want{{0, 2, 3, 1, 1, 3, []float32{0, 2, 4, 1, 3, 5}, 1, 42, "", 1}}},
		{"left operand", "onnx", func(b *builder) {
			b.node("MatMul", nil, b.value(2, 7), b.count(tensor.Float32, 2, 3), b.value(3, 7))
		}, []want{{0, 2, 3, 1, 1, 3, []float32{0, 1, 2, 3, 4, 5}, 1, 42, "", 1}}},
		{"a product of constants", "onnx", func(b *builder) {
			b.node("MatMul", nil, b.value(2, 2), b.count(tensor.Float32, 2, 3), b.count(tensor.Float32, 3, 2))
		}, nil},
		{"many matrices", "onnx", func(b *builder) {
			b.node("MatMul", nil, b.value(2, 7, 2), b.value(2, 7, 3), b.count(tensor.Float32, 2, 3, 2))
		}, []want{{0, 4, 3, 1, 2, 3, []float32{0, 2, 4, 1, 3, 5, 6, 8, 10}, 1, 84, "", 1}}},
		{"behind Transpose, Reshape and Cast", "onnx", func(b *builder) {
			w := b.count(tensor.Float16, 6)
			w = b.node("Reshape", nil, b.value(2, 3), w, b.ints(2, 3))
			w = b.node("Transpose", graph.Attrs{"perm": []int64{1, 0}}, b.value(3, 2), w)
			w = b.node("Cast", graph.Attrs{"to": int64(1)}, b.value(3, 2), w)
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), w)
		}, []want{{3, 2, 3, 1, 1, 3, []float32{0, 1, 2, 3, 4, 5}, 1, 42, "", 1}}},
		{"behind DequantizeLinear, zero points of channels", "onnx", func(b *builder) {
			w := b.node("DequantizeLinear", graph.Attrs{"axis": int64(0)}, b.value(2, 3, 1), b.count(tensor.Uint8, 2, 3, 1), b.floats(2, 10), b.constant(tensor.From(tensor.Uint8, []int{2}, []uint8{1, 4}), nil))
			b.node("Conv", nil, b.value(1, 2, 5), b.value(1, 3, 5), w)
		}, []want{{1, 2, 3, 1, 1, 3, []float32{-2, 0, 2, -10, 0, 10}, 2, 30, "", 1}}},
		{"scales that are not constant", "onnx", func(b *builder) {
			w := b.node("DequantizeLinear", nil, b.value(2, 3, 1), b.count(tensor.Uint8, 2, 3, 1), b.value())
			b.node("Conv", nil, b.value(1, 2, 5), b.value(1, 3, 5), w)
		}, []want{{1, 2, 3, 1, 1, 3, nil, 0, 30, study.NoZero, 1}}},
		{"integers", "onnx", func(b *builder) {
			b.node("ConvInteger", nil, b.value(1, 2, 5), b.value(1, 3, 5), b.count(tensor.Uint8, 2, 3, 1), b.value(), b.constant(tensor.From(tensor.Uint8, []int{2}, []uint8{1, 4}), nil))
		}, []want{{0, 2, 3, 1, 1, 3, []float32{-1, 0, 1, -1, 0, 1}, 2, 30, "", 1}}},
		{"integers without a zero point", "onnx", func(b *builder) {
			b.node("MatMulInteger", nil, b.value(7, 2), b.value(7, 3), b.count(tensor.Int8, 3, 2))
		}, []want{{0, 2, 3, 1, 1, 3, []float32{0, 2, 4, 1, 3, 5}, 1, 42, "", 1}}},
		{"codes of four bits", "onnx", func(b *builder) {
			w := tensor.New(tensor.Uint8, 2, 1, 8)
			for i := range w.Data {
				w.Data[i] = byte(i*2 | (i*2+1)<<4)
			}
			b.node("MatMulNBits", graph.Attrs{"K": int64(3), "N": int64(2), "bits": int64(4), "block_size": int64(16)}, b.value(7, 2), b.value(7, 3), b.constant(w, nil), b.floats(1, 2))
		}, []want{{0, 2, 3, 1, 1, 3, []float32{-8, -7, -6}, 0, 42, "", 1}}},
		{"recurrent", "onnx", func(b *builder) {
			b.node("LSTM", nil, b.value(5, 1, 1, 2), b.value(5, 1, 3), b.count(tensor.Float32, 1, 8, 3), b.count(tensor.Float32, 1, 8, 2))
		}, []want{{0, 8, 3, 1, 1, 3, []float32{0, 1, 2}, 1, 120, "", 1}, {0, 8, 2, 1, 1, 2, []float32{0, 1}, 1, 80, "", 1}}},
		{"attention", "onnx", func(b *builder) {
			b.node("Attention", nil, b.value(1, 5, 2), b.value(1, 5, 3), b.count(tensor.Float32, 3, 6), b.count(tensor.Float32, 6))
		}, []want{{0, 6, 3, 1, 1, 3, []float32{0, 6, 12}, 1, 90, "", 1}}},
		{"attention, codes", "onnx", func(b *builder) {
			b.node("QAttention", nil, b.value(1, 5, 2), b.value(1, 5, 3), b.count(tensor.Int8, 3, 6), b.count(tensor.Float32, 6), b.floats(1), b.floats(1, 2, 3, 4, 5, 6), -1, -1, b.constant(tensor.From(tensor.Int8, []int{}, []int8{6}), nil))
		}, []want{{0, 6, 3, 1, 1, 3, []float32{-6, 0, 6, -10, 2}, 1, 90, "", 1}}},
		{"recurrent codes, a scale for each gate of both directions", "onnx", func(b *builder) {
			scale := b.count(tensor.Float32, 2, 4)
			zero := b.constant(tensor.New(tensor.Int8, 2, 4), nil)
			b.node("DynamicQuantizeLSTM", nil, b.value(5, 2, 1, 1), b.value(5, 1, 3), b.count(tensor.Int8, 2, 3, 4), b.count(tensor.Int8, 2, 1, 4), -1, -1, -1, -1, -1, scale, zero, b.floats(1, 10), b.constant(tensor.New(tensor.Int8, 2), nil))
		}, []want{
			{0, 8, 3, 1, 1, 3, []float32{0, 0, 0, 1, 5, 9, 4, 12, 20, 9, 21, 33, 48, 64, 80}, 3, 120, "", 1},
			{0, 8, 1, 1, 2, 1, []float32{0, 1, 2, 3, 40, 50, 60, 70}, 1, 40, "", 1},
		}},
		{"embeddings, codes", "onnx", func(b *builder) {
			ins := []int{b.value(1, 2), -1, b.count(tensor.Uint8, 4, 2), b.count(tensor.Uint8, 3, 2), -1, b.count(tensor.Uint8, 2), b.count(tensor.Uint8, 2), -1}
			for range 5 {
				ins = append(ins, b.floats(2))
			}
			for range 5 {
				ins = append(ins, b.constant(tensor.From(tensor.Uint8, []int{}, []uint8{3}), nil))
			}
			b.node("QEmbedLayerNormalization", nil, b.value(1, 2, 2), ins...)
		}, []want{{0, 2, 4, 1, 1, 4, []float32{-6, -2, 2, 6, -4, 0, 4, 8}, 1, 0, "", 1}, {0, 2, 3, 1, 1, 3, []float32{-6, -2, 2}, 1, 0, "", 1}}},
		{"an embedding in blocks of four bits", "onnx", func(b *builder) {
			w := tensor.From(tensor.Uint8, []int{2, 2}, []uint8{0x98, 0x0f, 0x21, 0x43})
			scale := b.constant(tensor.From(tensor.Float32, []int{2, 2}, []float32{1, 2, 3, 4}), nil)
			zero := b.constant(tensor.From(tensor.Uint8, []int{2, 1}, []uint8{0xf8, 0x31}), nil)
			b.node("GatherBlockQuantized", graph.Attrs{"block_size": int64(2), "bits": int64(4), "quantize_axis": int64(1)}, b.value(1, 4), b.constant(w, nil), b.value(1), scale, zero)
		}, []want{{0, 4, 2, 1, 1, 2, []float32{0, 0, 1, 3, 0, 0, -30, 4}, 4, 0, "", 1}}},
		{"blocks of four bits behind DequantizeLinear, transposed", "onnx", func(b *builder) {
			c := tensor.New(tensor.Uint4, 4, 2)
			tensor.Pack(c, []uint8{1, 2, 3, 4, 5, 6, 7, 8})
			zero := tensor.New(tensor.Uint4, 2, 2)
			tensor.Pack(zero, []uint8{1, 0, 7, 6})
			w := b.node("DequantizeLinear", graph.Attrs{"axis": int64(0), "block_size": int64(2)}, b.value(4, 2), b.constant(c, nil), b.constant(tensor.From(tensor.Float32, []int{2, 2}, []float32{1, 2, 3, 4}), nil), b.constant(zero, nil))
			w = b.node("Transpose", graph.Attrs{"perm": []int64{1, 0}}, b.value(2, 4), w)
			b.node("Gemm", graph.Attrs{"transB": int64(1)}, b.value(7, 2), b.value(7, 4), w)
		}, []want{{2, 2, 4, 1, 1, 4, []float32{0, 2, -6, 0, 4, 8, 0, 8}, 3, 56, "", 1}}},
		{"gates in another order", "onnx", func(b *builder) {
			w := b.count(tensor.Float32, 8, 3)
			var parts []int
			for _, at := range [][2]int64{{0, 2}, {6, 99}, {-6, 6}} {
				parts = append(parts, b.node("Slice", nil, b.value(), w, b.ints(at[0]), b.ints(at[1]), b.ints(0)))
				b.g.Values[parts[len(parts)-1]].HasShape = false
			}
			w = b.node("Concat", graph.Attrs{"axis": int64(0)}, b.value(8, 3), parts...)
			w = b.node("Unsqueeze", nil, b.value(1, 8, 3), w, b.ints(0))
			b.node("LSTM", nil, b.value(5, 1, 1, 2), b.value(5, 1, 3), w, b.value(1, 8, 2))
		}, []want{{5, 8, 3, 1, 1, 3, []float32{0, 1, 2, 3, 4, 5, 18, 19, 20, 21, 22, 23, 6, 7, 8}, 1, 120, "", 1}}},
		{"one of two that lie in one constant", "onnx", func(b *builder) {
			w := b.count(tensor.Float32, 2, 3, 2)
			w = b.node("Slice", nil, b.value(1, 3, 2), w, b.ints(1), b.ints(2), b.ints(0))
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), b.node("Squeeze", nil, b.value(3, 2), w, b.ints(0)))
		}, []want{{2, 2, 3, 1, 1, 3, []float32{6, 8, 10, 7, 9, 11}, 0, 42, "", 1}}},
		{"both of two that lie in one constant", "onnx", func(b *builder) {
			w := b.count(tensor.Float32, 6, 2)
			for k := range int64(2) {
				b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), b.node("Slice", nil, b.value(3, 2), w, b.ints(3*k), b.ints(3*k+3), b.ints(0)))
			}
		}, []want{{1, 2, 3, 1, 1, 3, []float32{0, 2, 4}, 1, 84, study.Shared, 2}}},
		{"twice the same", "onnx", func(b *builder) {
			w := b.count(tensor.Float32, 3, 2)
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 6), b.node("Concat", graph.Attrs{"axis": int64(0)}, b.value(6, 2), w, w))
		}, nil},
		{"a part that is added too", "onnx", func(b *builder) {
			w := b.count(tensor.Float32, 6, 2)
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), b.node("Slice", nil, b.value(3, 2), w, b.ints(0), b.ints(3), b.ints(0)))
			b.node("Neg", nil, b.value(3, 2), b.node("Slice", nil, b.value(3, 2), w, b.ints(3), b.ints(6), b.ints(0)))
		}, []want{{1, 2, 3, 1, 1, 3, []float32{0, 2, 4}, 1, 42, study.Shared, 1}}},
		{"rounded by Quant", "onnx", func(b *builder) {
			w := b.node("Quant", nil, b.value(3, 2), b.count(tensor.Float32, 3, 2), b.floats(1), b.floats(0), b.floats(8))
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), w)
		}, []want{{1, 2, 3, 1, 1, 3, []float32{0, 2, 4}, 1, 42, "", 1}}},
		{"an embedding that is a head", "onnx", func(b *builder) {
			w := b.count(tensor.Float32, 4, 3)
			b.node("Gather", nil, b.value(1, 3), w, b.value(1))
			b.node("MatMul", nil, b.value(7, 4), b.value(7, 3), b.node("Transpose", nil, b.value(3, 4), w))
		}, []want{{2, 4, 3, 1, 1, 3, []float32{0, 1, 2, 3}, 1, 84, "", 2}}},
		{"one that two read", "onnx", func(b *builder) {
			w := b.count(tensor.Float32, 3, 2)
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), w)
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), w)
		}, []want{{0, 2, 3, 1, 1, 3, nil, 1, 84, "", 2}}},
		{"one that is added too", "onnx", func(b *builder) {
			w := b.count(tensor.Float32, 3, 2)
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), w)
			b.node("Add", nil, b.value(3, 2), b.value(3, 2), w)
		}, []want{{0, 2, 3, 1, 1, 3, nil, 1, 42, study.Shared, 1}}},
		{"one that is an output too", "onnx", func(b *builder) {
			w := b.count(tensor.Float32, 3, 2)
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), w)
			b.g.Outputs = []int{w}
		}, []want{{0, 2, 3, 1, 1, 3, nil, 1, 42, study.Shared, 1}}},
		{"nothing but zeros", "onnx", func(b *builder) {
			b.node("MatMul", nil, b.value(7, 2), b.value(7, 3), b.constant(tensor.New(tensor.Float32, 3, 2), nil))
		}, []want{{0, 2, 3, 1, 1, 3, nil, 6, 42, study.AllZero, 1}}},
		{"indices of a shape", "onnx", func(b *builder) {
			b.node("Gather", nil, b.value(1), b.ints(1, 2, 3), b.value(1))
		}, nil},
		{"convolution, channels last", "tflite", func(b *builder) {
			b.node("CONV_2D", nil, b.value(1, 5, 5, 2), b.value(1, 5, 5, 3), b.count(tensor.Float32, 2, 1, 2, 3), b.count(tensor.Float32, 2))
		}, []want{{0, 2, 6, 2, 1, 3, []float32{0, 3, 1, 4, 2, 5}, 1, 300, "", 1}}},
		{"depthwise", "tflite", func(b *builder) {
			b.node("DEPTHWISE_CONV_2D", graph.Attrs{"depth_multiplier": int64(2)}, b.value(1, 5, 5, 4), b.value(1, 5, 5, 2), b.count(tensor.Float32, 1, 1, 2, 4))
		}, []want{{0, 4, 2, 2, 2, 1, []float32{0, 4, 1, 5}, 1, 200, "", 1}}},
		{"dense integers, zero points of outputs", "tflite", func(b *builder) {
			c := tensor.New(tensor.Int8, 2, 3)
			tensor.Fill(c, func(i int) float64 { return float64(i) })
			b.node("FULLY_CONNECTED", nil, b.value(7, 2), b.value(7, 3), b.constant(c, &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{1, 5}}))
		}, []want{{0, 2, 3, 1, 1, 3, []float32{-1, 0, 1, -4, -2, 0}, 2, 42, "", 1}}},
		{"integers without scales", "tflite", func(b *builder) {
			b.node("FULLY_CONNECTED", nil, b.value(7, 2), b.value(7, 3), b.count(tensor.Int8, 2, 3))
		}, nil},
		{"behind DENSIFY and DEQUANTIZE", "tflite", func(b *builder) {
			w := b.node("DENSIFY", nil, b.value(2, 3), b.count(tensor.Float16, 2, 3))
			b.node("FULLY_CONNECTED", nil, b.value(7, 2), b.value(7, 3), b.node("DEQUANTIZE", nil, b.value(2, 3), w))
		}, []want{{2, 2, 3, 1, 1, 3, []float32{0, 1, 2}, 1, 42, "", 1}}},
		{"a zero point that is not a code", "tflite", func(b *builder) {
			b.node("FULLY_CONNECTED", nil, b.value(7, 2), b.value(7, 3), b.constant(tensor.New(tensor.Int8, 2, 3), &tensor.Quant{Scale: []float32{1}, Zero: []int64{200}}))
		}, []want{{0, 2, 3, 1, 1, 3, nil, 0, 42, study.NoZero, 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(tt.format)
			tt.build(b)
			got := weights.Find(b.m, nil)
			if len(got) != len(tt.want) {
				t.Fatalf("%d layers, want %d", len(got), len(tt.want))
			}
			for i, l := range got {
				w := tt.want[i]
				macs := int64(-1)
				if l.MACs != nil {
					macs = *l.MACs
				}
				if l.Node != w.node || l.Rows != w.rows || l.Cols != w.cols || l.Taps != w.taps || l.Groups != w.groups || l.Channels != w.channels || l.Zeros != w.zeros || macs != w.macs || l.Fixed != w.fixed || len(l.Nodes) != w.nodes {
					t.Errorf("%+v, %d channels, %d macs, want %+v", l.Layer, l.Channels, macs, w)
				}
				mat := l.Read(nil)
				if !slices.Equal(mat[:len(w.mat)], w.mat) {
					t.Errorf("weights %v, want %v", mat, w.mat)
				}
				if c := l.Write(mat); !bytes.Equal(c.Data, l.Const.Data) || c.Type != l.Const.Type {
					t.Error("what was not changed is not as it was")
				}
				if w.fixed == "" { // every second one zero
					for k := 0; k < len(mat); k += 2 {
						mat[k] = 0
					}
					next := weights.Find(weights.WithConstants(b.m, map[int]*tensor.Tensor{l.Value: l.Write(mat)}), nil)
					if got := next[i].Read(nil); !slices.Equal(got, mat) {
						t.Errorf("weights %v, want %v", got, mat)
					}
				}
			}
		})
	}
}

// TestWrite changes weights: zeros become the zero point, others the nearest code, and what stays
// keeps its bits.
func TestWrite(t *testing.T) {
	t.Parallel()
	b := newBuilder("tflite")
	c := tensor.From(tensor.Int8, []int{2, 2}, []int8{10, 20, 30, 40})
	b.node("FULLY_CONNECTED", nil, b.value(7, 2), b.value(7, 2), b.constant(c, &tensor.Quant{Scale: []float32{1, 0.5}, Zero: []int64{3, -7}}))
	l := weights.Find(b.m, nil)[0]
	mat := l.Read(nil)
	mat[0], mat[3] = 0, -3.3
	if got := tensor.Of[int8](l.Write(mat)); !slices.Equal(got, []int8{3, 20, 30, -14}) {
		t.Errorf("codes %v", got)
	}
	if mat[3] = 1e9; tensor.Of[int8](l.Write(mat))[3] != 127 {
		t.Error("a weight beyond the last code")
	}
	next := weights.WithConstants(b.m, map[int]*tensor.Tensor{l.Value: l.Write(mat)})
	if b.m.Main().Values[l.Value].Const != c || next.Main().Values[l.Value].Const == c || next.Main().Nodes[0] != b.m.Main().Nodes[0] {
		t.Error("the model that was changed is not another")
	}
}
