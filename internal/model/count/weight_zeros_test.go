package count

import (
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
)

// weights makes a fully connected operator over a constant.
func weighing(c *tensor.Tensor, q *tensor.Quant) (*graph.Graph, *graph.Node) {
	return &graph.Graph{Values: []*graph.Value{{}, {Const: c, Type: c.Type, Quant: q}}},
		&graph.Node{Op: "FULLY_CONNECTED", Domain: graph.TFLite, Inputs: []int{0, 1}}
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
		got := WeightZeros(g, n, &budget)
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
		if z := WeightZeros(g, n, &tt.budget); z != nil {
			t.Errorf("%s: %+v, want nothing", tt.name, z)
		}
	}
	// Convolutions have no blocks.
	g, n := weighing(tensor.New(tensor.Float32, 2, 3, 3, 2), nil)
	n.Op = "CONV_2D"
	budget := int64(100)
	if z := WeightZeros(g, n, &budget); z == nil || *z.Weights != 1 || z.Blocks != nil {
		t.Errorf("convolution: %+v, want all zero and no blocks", z)
	}
	four := tensor.New(tensor.Int4, 2, 2)
	four.Data[0], four.Data[1] = 0xf0, 0x0f
	g, n = weighing(four, &tensor.Quant{Scale: []float32{1}, Zero: []int64{-1}})
	if z := WeightZeros(g, n, &budget); z == nil || *z.Weights != 0.5 {
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
		z := WeightZeros(g, n, &budget)
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
				if WeightZeros(g, n, &budget) == nil {
					b.Fatal("nothing")
				}
			}
		})
	}
}
