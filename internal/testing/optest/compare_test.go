package optest

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestDiffer breaks outputs in the ways in which operators break.
func TestDiffer(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	f := func(v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, []int{len(v)}, v) }
	for _, c := range []struct {
		name     string
		got      *tensor.Tensor
		want     []float64
		abs, rel float64
		same     bool
	}{
		{"equal", f(1, 2), []float64{1, 2}, 0, 0, true},
		{"near", f(1, 2.5), []float64{1, 2}, 0.5, 0, true},
		{"near in proportion", f(100), []float64{99}, 0, 0.02, true},
		{"far", f(1, 2.75), []float64{1, 2}, 0.5, 0, false},
		{"last of them", f(0, 0, 0, 1), []float64{0, 0, 0, 0}, 0.5, 0, false},
		{"NaN", f(1, float32(nan)), []float64{1, 2}, 9, 9, false},
		{"NaN that is wanted", f(float32(nan)), []float64{nan}, 0, 0, true},
		{"number where NaN is wanted", f(1), []float64{nan}, 9, 9, false},
		{"infinity", f(float32(inf)), []float64{1}, 9, 9, false},
		{"infinity that is wanted", f(float32(inf)), []float64{inf}, 0, 0, true},
		{"the other infinity", f(float32(-inf)), []float64{inf}, 9, 9, false},
		{"number where infinity is wanted", f(1), []float64{inf}, 9, 9, false},
		{"empty", f(), []float64{1}, 9, 9, false},
		{"both empty", f(), nil, 0, 0, true},
		{"longer", f(1, 2), []float64{1}, 9, 9, false},
		{"nothing", nil, []float64{1}, 9, 9, false},
		{"integers", tensor.From(tensor.Int8, []int{2}, []int8{-3, 4}), []float64{-3, 4}, 0, 0, true},
	} {
		if why := Differ(c.got, c.want, c.abs, c.rel); (why == "") != c.same {
			t.Errorf("%s: %q, the same is %v", c.name, why, c.same)
		}
	}
}
