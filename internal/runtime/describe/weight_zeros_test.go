package describe

import (
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
)

// weights makes a fully connected operator over a constant.
func weighing(c *tensor.Tensor, q *tensor.Quant) (*graph.Graph, *graph.Node) {
	return &graph.Graph{Values: []*graph.Value{{}, {Const: c, Type: c.Type, Quant: q}}},
		&graph.Node{Op: "FULLY_CONNECTED", Domain: graph.TFLite, Inputs: []int{0, 1}}
}

// zerosOf is what a node's weights say about zeros.
func zerosOf(g *graph.Graph, n *graph.Node, budget *int64) *profile.Sparsity {
	return weightZeros(g, weights.ReadingOf(g, weights.Producers(g), n), budget)
}

// plain is the definition: for every block look at every element.
func plain(rows, cols int, zero func(r, c int) bool) *profile.Sparsity {
	z := &profile.Sparsity{Blocks: map[string]float64{}}
	share := func(bh, bw int, is func(zeros, all int) bool) (float64, bool) {
		n, all := 0, 0
		for r := 0; r+bh <= rows; r += bh {
			for c := 0; c+bw <= cols; c += bw {
				k := 0
				for i := range bh {
					for j := range bw {
						if zero(r+i, c+j) {
							k++
						}
					}
				}
				all++
				if is(k, bh*bw) {
					n++
				}
			}
		}
		return float64(n) / float64(all), all > 0
	}
	whole := func(k, all int) bool { return k == all }
	elements, _ := share(1, 1, whole)
	z.Weights = &elements
	for name, b := range map[string][2]int{"1x4": {1, 4}, "4x1": {4, 1}, "1x16": {1, 16}, "4x16": {4, 16}, "rows": {1, cols}, "columns": {rows, 1}} {
		if v, ok := share(b[0], b[1], whole); ok {
			z.Blocks[name] = v
		}
	}
	if v, ok := share(1, 4, func(k, _ int) bool { return k >= 2 }); ok {
		z.Blocks["2:4"] = v
	}
	return z
}

func TestWeightZeros(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 13).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "cols")
		// Few values, so that whole blocks of zeros come up; runs of one value, too.
		v, run := make([]int, rows*cols), rapid.SampledFrom([]int{1, 4, 16, 64}).Draw(t, "run")
		for i := range v {
			if i%run == 0 {
				v[i] = rapid.IntRange(0, 2).Draw(t, "v")
			} else {
				v[i] = v[i-1]
			}
		}
		kind := rapid.SampledFrom([]tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16, tensor.Int8, tensor.Uint8, tensor.Int16}).Draw(t, "type")
		zero := 0
		if kind.IsInteger() {
			zero = rapid.IntRange(0, 2).Draw(t, "zero")
		}
		c := tensor.New(kind, rows, cols)
		for i, x := range v {
			switch kind {
			case tensor.Float32:
				tensor.Of[float32](c)[i] = float32(math.Copysign(float64(x), -1)) // -0 is zero, too
			case tensor.Float64:
				tensor.Of[float64](c)[i] = float64(x)
			case tensor.Float16, tensor.Int16:
				tensor.Words[uint16](c)[i] = uint16(x)
			default:
				tensor.Words[uint8](c)[i] = uint8(x)
			}
		}
		var q *tensor.Quant
		if kind.IsInteger() {
			q = &tensor.Quant{Scale: []float32{1, 1}, Zero: []int64{int64(zero), int64(zero)}}
		}
		g, n := weighing(c, q)
		budget := int64(rows * cols)
		got := zerosOf(g, n, &budget)
		want := plain(rows, cols, func(r, c int) bool { return v[r*cols+c] == zero })
		if got == nil || *got.Weights != *want.Weights || !maps.Equal(got.Blocks, want.Blocks) {
			t.Fatalf("%dx%d of %v: %+v, want %+v", rows, cols, kind, got, want)
		}
		if budget != 0 {
			t.Fatalf("budget is %d, want 0", budget)
		}
	})
}

func TestWeightZerosUnknown(t *testing.T) {
	t.Parallel()
	eight := tensor.New(tensor.Int8, 4, 4)
	for _, tt := range []struct {
		name   string
		c      *tensor.Tensor
		q      *tensor.Quant
		op     string
		budget int64
	}{
		{"integers without quantisation", eight, nil, "FULLY_CONNECTED", 100},
		{"different zero points", eight, &tensor.Quant{Scale: []float32{1, 1}, Zero: []int64{0, 1}}, "FULLY_CONNECTED", 100},
		{"another operator", tensor.New(tensor.Float32, 4, 4), nil, "ADD", 100},
		{"over the budget", tensor.New(tensor.Float32, 4, 4), nil, "FULLY_CONNECTED", 15},
		{"empty", tensor.New(tensor.Float32, 0, 4), nil, "FULLY_CONNECTED", 100},
	} {
		g, n := weighing(tt.c, tt.q)
		n.Op = tt.op
		if z := zerosOf(g, n, &tt.budget); z != nil {
			t.Errorf("%s: %+v, want nothing", tt.name, z)
		}
	}
	// Convolutions have no blocks.
	g, n := weighing(tensor.New(tensor.Float32, 2, 3, 3, 2), nil)
	n.Op = "CONV_2D"
	budget := int64(100)
	if z := zerosOf(g, n, &budget); z == nil || *z.Weights != 1 || z.Blocks != nil {
		t.Errorf("convolution: %+v, want all zero and no blocks", z)
	}
	four := tensor.New(tensor.Int4, 2, 2)
	four.Data[0], four.Data[1] = 0xf0, 0x0f
	g, n = weighing(four, &tensor.Quant{Scale: []float32{1}, Zero: []int64{-1}})
	if z := zerosOf(g, n, &budget); z == nil || *z.Weights != 0.5 {
		t.Errorf("4-bit: %+v, want half", z)
	}
}

// TestWeightZerosBehind looks through what unpacks a constant.
func TestWeightZerosBehind(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"DENSIFY", "DEQUANTIZE", "ADD"} {
		g, n := weighing(tensor.New(tensor.Float16, 4, 4), nil)
		g.Values[1].Sparse = &graph.Sparse{StoredBytes: 6}
		g.Values = append(g.Values, &graph.Value{})
		g.Values = append(g.Values, &graph.Value{})
		g.Nodes = []*graph.Node{{Op: op, Domain: graph.TFLite, Inputs: []int{1}, Outputs: []int{2}}, {Op: "DEQUANTIZE", Domain: graph.TFLite, Inputs: []int{2}, Outputs: []int{3}}, n}
		n.Inputs[1] = 3
		budget := int64(100)
		z := zerosOf(g, n, &budget)
		if op == "ADD" {
			if z != nil {
				t.Errorf("a sum: %+v, want nothing", z)
			}
			continue
		}
		if z == nil || *z.Weights != 1 || !z.Encoded || *z.StoredBytes != 6 {
			t.Errorf("%s: %+v, want all zero, 6 bytes stored", op, z)
		}
	}
}

func BenchmarkWeightZeros(b *testing.B) {
	for _, kind := range []tensor.Type{tensor.Float32, tensor.Int8} {
		b.Run(kind.String(), func(b *testing.B) {
			c := tensor.New(kind, 1024, 1024)
			for i := range c.Data {
				c.Data[i] = byte(i % 7)
			}
			g, n := weighing(c, &tensor.Quant{Scale: []float32{1}, Zero: []int64{0}})
			b.SetBytes(int64(len(c.Data)))
			for b.Loop() {
				budget := int64(1 << 30)
				if zerosOf(g, n, &budget) == nil {
					b.Fatal("nothing")
				}
			}
		})
	}
}

// TestWhichWeights looks at the constant operand, the usual one first, through operators
// that unpack, widen or move it.
func TestWhichWeights(t *testing.T) {
	t.Parallel()
	half := func(zeros int) *graph.Value { // of sixteen
		c := tensor.New(tensor.Float32, 4, 4)
		for i := range 16 - zeros {
			tensor.Of[float32](c)[i] = 1
		}
		return &graph.Value{Type: tensor.Float32, Const: c}
	}
	empty := func() *graph.Value { return &graph.Value{Type: tensor.Float32} }
	variable := half(8)
	variable.Variable = true
	short := half(8)
	short.Const.Data = short.Const.Data[:60]
	unknown := &graph.Value{Type: tensor.Float32, Const: &tensor.Tensor{Type: tensor.Float32, Shape: []int{4, 4}}}
	unpack := func(op string, in, out int) *graph.Node {
		return &graph.Node{Op: op, Domain: graph.TFLite, Inputs: []int{in}, Outputs: []int{out}}
	}
	for _, c := range []struct {
		name   string
		n      graph.Node
		before []*graph.Node
		values []*graph.Value
		budget int64
		share  float64 // -1 for nothing
	}{
		{"the second", graph.Node{Op: "MatMul", Inputs: []int{0, 1}}, nil, []*graph.Value{half(4), half(8)}, 16, 0.5},
		{"the first, without it", graph.Node{Op: "MatMul", Inputs: []int{0, 1}}, nil, []*graph.Value{half(4), empty()}, 16, 0.25},
		{"a convolution has one place", graph.Node{Op: "Conv", Inputs: []int{0, 1}}, nil, []*graph.Value{half(4), empty()}, 16, -1},
		{"absent", graph.Node{Op: "MatMul", Inputs: []int{0, -1}}, nil, []*graph.Value{half(4)}, 16, 0.25},
		{"one operand", graph.Node{Op: "MatMul", Inputs: []int{0}}, nil, []*graph.Value{half(4)}, 16, 0.25},
		{"not in the graph", graph.Node{Op: "MatMul", Inputs: []int{0, 1}}, nil, []*graph.Value{half(4)}, 16, 0.25},
		{"a variable", graph.Node{Op: "Conv", Inputs: []int{0, 1}}, nil, []*graph.Value{empty(), variable}, 16, -1},
		{"without elements at hand", graph.Node{Op: "Conv", Inputs: []int{0, 1}}, nil, []*graph.Value{empty(), unknown}, 16, -1},
		{"cut", graph.Node{Op: "Conv", Inputs: []int{0, 1}}, nil, []*graph.Value{empty(), short}, 16, -1},
		{"within the budget", graph.Node{Op: "Conv", Inputs: []int{0, 1}}, nil, []*graph.Value{empty(), half(8)}, 16, 0.5},
		{"beyond it", graph.Node{Op: "Conv", Inputs: []int{0, 1}}, nil, []*graph.Value{empty(), half(8)}, 15, -1},
		{"widened", graph.Node{Op: "CONV_2D", Domain: graph.TFLite, Inputs: []int{0, 1}}, []*graph.Node{unpack("DEQUANTIZE", 2, 1)}, []*graph.Value{empty(), empty(), half(8)}, 16, 0.5},
		{"unpacked and widened", graph.Node{Op: "CONV_2D", Domain: graph.TFLite, Inputs: []int{0, 1}}, []*graph.Node{unpack("DENSIFY", 3, 2), unpack("DEQUANTIZE", 2, 1)}, []*graph.Value{empty(), empty(), empty(), half(8)}, 16, 0.5},
		{"through three", graph.Node{Op: "CONV_2D", Domain: graph.TFLite, Inputs: []int{0, 1}}, []*graph.Node{unpack("DENSIFY", 4, 3), unpack("DENSIFY", 3, 2), unpack("DEQUANTIZE", 2, 1)}, []*graph.Value{empty(), empty(), empty(), empty(), half(8)}, 16, 0.5},
		{"of an operator that changes them", graph.Node{Op: "Conv", Inputs: []int{0, 1}}, []*graph.Node{{Op: "Neg", Inputs: []int{2}, Outputs: []int{1}}}, []*graph.Value{empty(), empty(), half(8)}, 16, -1},
		{"transposed", graph.Node{Op: "Gemm", Inputs: []int{0, 1}}, []*graph.Node{{Op: "Transpose", Inputs: []int{2}, Outputs: []int{1}}}, []*graph.Value{empty(), empty(), half(8)}, 16, 0.5},
		{"of nothing", graph.Node{Op: "CONV_2D", Domain: graph.TFLite, Inputs: []int{0, 1}}, []*graph.Node{{Op: "DEQUANTIZE", Outputs: []int{1}}, {Op: "DEQUANTIZE", Inputs: []int{2}}}, []*graph.Value{empty(), empty(), half(8)}, 16, -1},
		{"of an absent one", graph.Node{Op: "CONV_2D", Domain: graph.TFLite, Inputs: []int{0, 1}}, []*graph.Node{unpack("DEQUANTIZE", -1, 1)}, []*graph.Value{empty(), empty()}, 16, -1},
		{"of one that is absent", graph.Node{Op: "CONV_2D", Domain: graph.TFLite, Inputs: []int{0, 1}}, []*graph.Node{unpack("DEQUANTIZE", 2, 1)}, []*graph.Value{empty(), empty()}, 16, -1},
	} {
		g := &graph.Graph{Values: c.values, Nodes: c.before}
		before := c.budget
		z := zerosOf(g, &c.n, &c.budget)
		switch {
		case c.share < 0 && (z != nil || c.budget != before):
			t.Errorf("%s: %+v with %d left of %d, want nothing", c.name, z, c.budget, before)
		case c.share >= 0 && (z == nil || *z.Weights != c.share || c.budget != before-16 || z.Encoded):
			t.Errorf("%s: %+v with %d left of %d, want %v", c.name, z, c.budget, before, c.share)
		}
	}
}

// TestManyZeros counts over more elements than are marked at a time, of every type.
func TestManyZeros(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, piece - 1, piece, piece + 1, 2*piece + 13} {
		c := tensor.New(tensor.Int8, 1, n, 1, 1)
		want := 0
		for i := range c.Data {
			c.Data[i] = byte(i%3) + 5
			if i%3 == 0 {
				want++
			}
		}
		g := &graph.Graph{Values: []*graph.Value{{}, {Type: tensor.Int8, Const: c, Quant: &tensor.Quant{Zero: []int64{5, 5}}}}}
		budget := int64(n)
		z := zerosOf(g, &graph.Node{Op: "CONV_2D", Domain: graph.TFLite, Inputs: []int{0, 1}}, &budget)
		if z == nil || *z.Weights != float64(want)/float64(n) || z.Blocks != nil {
			t.Errorf("%d elements: %+v, want %d zeros", n, z, want)
		}
	}
	// Zero points are compared as the type has them; none and other types say nothing.
	for _, x := range []struct {
		typ  tensor.Type
		data []byte
		zero []int64
		want float64
	}{
		{tensor.Int8, []byte{0xfd, 0, 0xfd, 3}, []int64{-3}, 0.5},
		{tensor.Uint8, []byte{200, 0, 1, 2}, []int64{200}, 0.25},
		{tensor.Int16, []byte{0xfe, 0xff, 0, 0, 0xfe, 0xff, 0xfe, 0}, []int64{-2}, 0.5},
		{tensor.Int4, []byte{0x3f, 0xf3}, []int64{-1}, 0.5},
		{tensor.BFloat16, []byte{0, 0x80, 0, 0, 1, 0, 0, 0}, nil, 0.75},
		{tensor.Float64, append(make([]byte, 31), 0x80), nil, 1},
		{tensor.Int8, []byte{0, 0, 0, 0}, nil, -1},
		{tensor.Int32, make([]byte, 16), []int64{0}, -1},
	} {
		v := &graph.Value{Type: x.typ, Const: &tensor.Tensor{Type: x.typ, Shape: []int{1, 4}, Data: x.data}}
		if x.typ.IsInteger() || x.zero != nil {
			v.Quant = &tensor.Quant{Zero: x.zero}
		}
		budget := int64(4)
		z := zerosOf(&graph.Graph{Values: []*graph.Value{{}, v}}, &graph.Node{Op: "Gemm", Inputs: []int{0, 1}}, &budget)
		if x.want < 0 && z != nil || x.want >= 0 && (z == nil || *z.Weights != x.want) {
			t.Errorf("%v %v: %+v, want %v", x.typ, x.data, z, x.want)
		}
	}
	budget := int64(100)
	unquantised := &graph.Value{Type: tensor.Int8, Const: tensor.New(tensor.Int8, 4, 4)}
	if z := zerosOf(&graph.Graph{Values: []*graph.Value{{}, unquantised}}, &graph.Node{Op: "Gemm", Inputs: []int{0, 1}}, &budget); z != nil || budget != 100 {
		t.Errorf("without a zero point: %+v, %d left", z, budget)
	}
}
