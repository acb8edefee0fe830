package pool

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestFloats compares SIMD pooling over one to three axes in single precision with double
// precision, which is computed position by position. Sums of integers are exact.
func TestFloats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(1, 3).Draw(t, "rank")
		list := func(what string, lo, hi, n int) []int64 {
			v := rapid.SliceOfN(rapid.IntRange(lo, hi), n, n).Draw(t, what)
			out := make([]int64, n)
			for i := range v {
				out[i] = int64(v[i])
			}
			return out
		}
		shape := []int{rapid.IntRange(1, 2).Draw(t, "n"), rapid.IntRange(1, 3).Draw(t, "c")}
		shape = append(shape, rapid.SliceOfN(rapid.IntRange(5, 19), rank, rank).Draw(t, "in")...)
		attrs := graph.Attrs{
			"kernel_shape": list("kernel", 1, 3, rank), "strides": list("strides", 1, 3, rank), "dilations": list("dilations", 1, 2, rank),
			"pads": list("pads", 0, 2, 2*rank), "ceil_mode": int64(rapid.IntRange(0, 1).Draw(t, "ceil")),
		}
		name := rapid.SampledFrom([]string{"MaxPool", "AveragePool"}).Draw(t, "op")
		if name == "AveragePool" {
			attrs["count_include_pad"] = int64(rapid.IntRange(0, 1).Draw(t, "include"))
		}
		narrow, wide := tensor.New(tensor.Float32, shape...), tensor.New(tensor.Float64, shape...)
		step := rapid.IntRange(1, 1000).Draw(t, "step")
		for _, x := range []*tensor.Tensor{narrow, wide} {
			tensor.Fill(x, func(i int) float64 { return float64(i*step%201 - 100) })
		}
		node := optest.Node{Op: name, Version: 22, Attrs: attrs}
		got, err := optest.Run(Defs(), node, narrow)
		if err != nil {
			t.Fatal(err)
		}
		want, err := optest.Run(Defs(), node, wide)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float64, want[0].Len())
		for i := range values {
			values[i] = tensor.At(want[0], i)
		}
		// a quotient up to 100 is rounded once
		if why := optest.Differ(got[0], values, 0, 1e-5); why != "" {
			t.Fatalf("%s %v of %v: %s", name, attrs, shape, why)
		}
	})
}
