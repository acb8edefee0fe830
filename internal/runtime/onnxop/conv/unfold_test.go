package conv

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
)

// TestUnfold compares unfolded patches, from any position on, with their definition element by
// element, in one to three dimensions; strides, dilations and padding may put whole lines
// outside.
func TestUnfold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		axis := func(what string, lo, hi, rank int) []int {
			return rapid.SliceOfN(rapid.IntRange(lo, hi), rank, rank).Draw(t, what)
		}
		rank, channels := rapid.IntRange(1, 3).Draw(t, "rank"), rapid.IntRange(1, 2).Draw(t, "channels")
		v := &window.Window{
			In: axis("in", 1, 6, rank), Out: axis("out", 1, 7, rank), Kernel: axis("kernel", 1, 3, rank),
			Stride: axis("stride", 1, 3, rank), Dilation: axis("dilation", 1, 4, rank), Begin: axis("begin", 0, 7, rank),
		}
		area, taps, positions := tensor.Elements(v.In), tensor.Elements(v.Kernel), tensor.Elements(v.Out)
		x := make([]float32, channels*area)
		for i := range x {
			x[i] = float32(i + 1)
		}
		p0 := rapid.IntRange(0, positions-1).Draw(t, "first")
		np := rapid.IntRange(1, positions-p0).Draw(t, "positions")
		got, want := make([]float32, channels*taps*np), make([]float32, 0, channels*taps*np)
		tap, at := make([]int, rank), make([]int, rank)
		for r := range channels * taps {
			for i := range np {
				tensor.Unravel(r%taps, v.Kernel, tap)
				tensor.Unravel(p0+i, v.Out, at)
				pos, inside := 0, true
				for d := range rank {
					q := at[d]*v.Stride[d] - v.Begin[d] + tap[d]*v.Dilation[d]
					inside = inside && q >= 0 && q < v.In[d]
					pos = pos*v.In[d] + q
				}
				var e float32
				if inside {
					e = x[r/taps*area+pos]
				}
				want = append(want, e)
			}
		}
		for i := range got {
			got[i] = -1
		}
		unfold(nil, v, got, x, channels, p0, np)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
