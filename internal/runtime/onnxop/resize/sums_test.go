package resize

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestRowsInSinglePrecision compares interpolation in single precision, which adds up rows with
// SIMD, with that in double precision, for any axes that grow and shrink.
func TestRowsInSinglePrecision(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(2, 5).Draw(t, "rank")
		in := rapid.SliceOfN(rapid.IntRange(1, 9), rank, rank).Draw(t, "in")
		sizes := make([]int64, rank)
		for i := range sizes {
			sizes[i] = int64(in[i])
			if rapid.IntRange(0, 2).Draw(t, "changes") > 0 {
				sizes[i] = int64(rapid.IntRange(1, 20).Draw(t, "size"))
			}
		}
		attrs := graph.Attrs{
			"mode":                           rapid.SampledFrom([]string{"linear", "cubic"}).Draw(t, "mode"),
			"coordinate_transformation_mode": rapid.SampledFrom([]string{"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}).Draw(t, "places"),
			"antialias":                      int64(rapid.IntRange(0, 1).Draw(t, "antialias")),
		}
		narrow, wide := tensor.New(tensor.Float32, in...), tensor.New(tensor.Float64, in...)
		for _, x := range []*tensor.Tensor{narrow, wide} {
			tensor.Fill(x, func(i int) float64 { return float64(i * 37 % 101) })
		}
		node := optest.Node{Op: "Resize", Version: 19, Attrs: attrs, Const: []bool{false, true, true, true}}
		list := tensor.From(tensor.Int64, []int{rank}, sizes)
		want, err := optest.Run(Defs(), node, wide, nil, nil, list)
		if err != nil {
			t.Fatal(err)
		}
		got, err := optest.Run(Defs(), node, narrow, nil, nil, list)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float64, want[0].Len())
		for i := range values {
			values[i] = tensor.At(want[0], i)
		}
		// Weights are rounded to single precision; numbers are up to 100, and five axes round one
		// after the other.
		if why := optest.Differ(got[0], values, 2e-4, 0); why != "" {
			t.Fatalf("%v of %v to %v: %s", attrs, in, sizes, why)
		}
	})
}
