package pool

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestPlaces compares positions of maxima found line by line with those of float64, found window
// by window.
func TestPlaces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(1, 3).Draw(t, "rank")
		shape := []int{1, 2}
		var kernel, strides, dilations, pads []int64
		for range rank {
			k, d := rapid.Int64Range(1, 3).Draw(t, "kernel"), rapid.Int64Range(1, 2).Draw(t, "dilation")
			kernel, dilations = append(kernel, k), append(dilations, d)
			strides = append(strides, rapid.Int64Range(1, 3).Draw(t, "stride"))
			pads = append(pads, rapid.Int64Range(0, k-1).Draw(t, "pad"))
			shape = append(shape, int(d*(k-1))+1+rapid.IntRange(0, 9).Draw(t, "more"))
		}
		pads = append(pads, pads...)
		single, double, whole := tensor.New(tensor.Float32, shape...), tensor.New(tensor.Float64, shape...), tensor.New(tensor.Int8, shape...)
		special := rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.Inf(-1), math.Inf(1), math.NaN()}).Draw(t, "special")
		for i := range single.Len() {
			v := float64(rapid.IntRange(-3, 3).Draw(t, "v"))
			tensor.Of[int8](whole)[i] = int8(v)
			if rapid.IntRange(0, 9).Draw(t, "rare") == 0 {
				v = special
			}
			tensor.Of[float32](single)[i], tensor.Of[float64](double)[i] = float32(v), v
		}
		node := optest.Node{Op: "MaxPool", Version: 12, Outputs: 2, Attrs: graph.Attrs{
			"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads, "storage_order": int64(rapid.IntRange(0, 1).Draw(t, "order")),
			"ceil_mode": int64(rapid.IntRange(0, 1).Draw(t, "ceil")),
		}}
		run := func(x *tensor.Tensor) (values []float64, places []int64) {
			out, err := optest.Run(Defs(), node, x)
			if err != nil {
				t.Fatal(err)
			}
			if values, err = tensor.All[float64](out[0]); err != nil {
				t.Fatal(err)
			}
			return values, tensor.Of[int64](out[1])
		}
		compare := func(x, reference *tensor.Tensor) {
			values, places := run(x)
			want, at := run(reference)
			if diff := cmp.Diff(at, places); diff != "" {
				t.Fatalf("places of %v: %s", x.Type, diff)
			}
			for i, v := range values {
				if w := want[i]; !math.IsInf(w, -1) && math.Float64bits(v) != math.Float64bits(w) && v == v {
					t.Fatalf("element %d of %v is %v, want %v", i, x.Type, v, w)
				}
			}
		}
		compare(single, double)
		for i, v := range tensor.Of[int8](whole) {
			tensor.Of[float64](double)[i] = float64(v)
		}
		compare(whole, double)
	})
}
