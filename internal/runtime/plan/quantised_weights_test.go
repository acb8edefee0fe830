package plan_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestCodedWeights multiplies by weights that are quantised in the file, few and many of them,
// with scales per block, per column, or per tensor.
func TestCodedWeights(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		floats := func(by float64, shape ...int) *tensor.Tensor {
			x := tensor.New(tensor.Float32, shape...)
			for i := range x.Len() {
				tensor.Of[float32](x)[i] = float32(by * r.NormFloat64())
			}
			return x
		}
		kind := rapid.SampledFrom([]tensor.Type{tensor.Int4, tensor.Uint4, tensor.Int8, tensor.Uint8}).Draw(t, "type")
		codes := func(shape ...int) *tensor.Tensor {
			x := tensor.New(kind, shape...)
			for i := range x.Data {
				x.Data[i] = uint8(r.Uint32())
			}
			return x
		}
		rows, k, n := rapid.SampledFrom([]int{1, 2, 7}).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "k"), rapid.IntRange(1, 40).Draw(t, "n")
		if rapid.Bool().Draw(t, "many") {
			k, n = 380+k, 350+n
		}
		of, attrs := []int(nil), graph.Attrs{}
		switch rapid.IntRange(0, 2).Draw(t, "scales") {
		case 1:
			of, attrs["axis"] = []int{n}, int64(1)
		case 2:
			block := rapid.SampledFrom([]int{8, 16, 32, 48}).Draw(t, "block")
			of, attrs = []int{(k + block - 1) / block, n}, graph.Attrs{"axis": int64(-2), "block_size": int64(block)}
		}
		in := []int{b.constant(codes(k, n)), b.constant(floats(1e-5, of...))}
		if kind.Bits() == 4 {
			in[1] = b.constant(floats(1e-4, of...))
		}
		if rapid.Bool().Draw(t, "zeros") {
			in = append(in, b.constant(codes(of...)))
		}
		w := b.node("DequantizeLinear", attrs, in...)
		b.g.Nodes[0].Version = 21
		y, fused := b.node("MatMul", nil, b.input(floats(1, 1, rows, k)), w), 1
		if rapid.Bool().Draw(t, "bias") {
			y, fused = b.node("Add", nil, y, b.constant(floats(1, n))), 2
		}
		b.g.Outputs = []int{y}
		steps := joined(t, b)
		at := len(steps) - fused
		if s := steps[at]; s.Runs == nil || s.Runs.Op != "CodesMatMul" {
			t.Fatalf("the product runs %v", s.Runs)
		}
	})
}

// TestNoCodedWeights lists weights that have other readers, that are not constant, or whose
// blocks run along columns.
func TestNoCodedWeights(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		variable bool
		read     bool
		axis     int64
	}{{"variable", true, false, 0}, {"read", false, true, 0}, {"along columns", false, false, 1}} {
		b := newNet()
		codes := tensor.New(tensor.Int8, 8, 8)
		id := b.value(tensor.Int8, codes)
		if tt.variable {
			b = newNet()
			id = b.input(codes)
		}
		shape := []int{8, 8}
		shape[tt.axis] = 2
		w := b.node("DequantizeLinear", graph.Attrs{"axis": tt.axis, "block_size": int64(4)}, id, b.constant(tensor.New(tensor.Float32, shape...)))
		b.g.Nodes[0].Version = 21
		y := b.node("MatMul", nil, b.input(tensor.New(tensor.Float32, 2, 8)), w)
		if b.g.Outputs = []int{y}; tt.read {
			b.g.Outputs = append(b.g.Outputs, w)
		}
		_, steps := run(t, b, false)
		for _, s := range steps {
			if s.Runs != nil && s.Runs.Op == "CodesMatMul" {
				t.Errorf("%s: the product reads codes", tt.name)
			}
		}
	}
}
