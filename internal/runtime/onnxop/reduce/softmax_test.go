package reduce

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestColumns compares columns of single precision, which are normalised in vectors or turned
// into rows, with those of double precision.
func TestColumns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := []int{rapid.IntRange(1, 3).Draw(t, "outer"), rapid.IntRange(1, 40).Draw(t, "n"), rapid.SampledFrom([]int{2, 7, 8, 16, 21, 31, 32, 33, 100, 256, 300}).Draw(t, "inner")}
		name := rapid.SampledFrom([]string{"Softmax", "LogSoftmax", "Hardmax"}).Draw(t, "op")
		narrow, wide := tensor.New(tensor.Float32, shape...), tensor.New(tensor.Float64, shape...)
		step := rapid.IntRange(1, 1000).Draw(t, "step")
		for _, x := range []*tensor.Tensor{narrow, wide} {
			tensor.Fill(x, func(i int) float64 { return float64(i*step%401-200) / 16 })
		}
		node := optest.Node{Op: name, Version: 13, Attrs: graph.Attrs{"axis": int64(1)}}
		want, err := optest.Run(Defs(), node, wide)
		if err != nil {
			t.Fatal(err)
		}
		got, err := optest.Run(Defs(), node, narrow)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float64, want[0].Len())
		for i := range values {
			values[i] = tensor.At(want[0], i)
		}
		// An exponential of up to 25 is wrong by that many units in the last place at most, a
		// logarithm by a few of numbers up to 30.
		if why := optest.Differ(got[0], values, 1e-5, 1e-5); why != "" {
			t.Fatalf("%s of %v: %s", name, shape, why)
		}
	})
}
