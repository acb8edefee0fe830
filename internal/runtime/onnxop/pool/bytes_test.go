package pool

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestLargestCodes compares quantised max pooling over one to three axes with that of real
// numbers.
func TestLargestCodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		shape, attrs := []int{draw("images", 1, 2), draw("channels", 1, 5)}, graph.Attrs{}
		var k, stride, dil, pads []int64
		for range draw("axes", 1, 3) {
			n := draw("kernel", 1, 3)
			k, stride, dil, pads = append(k, int64(n)), append(stride, int64(draw("stride", 1, 3))), append(dil, int64(draw("dilation", 1, 2))), append(pads, int64(draw("pad", 0, n-1)))
			shape = append(shape, draw("size", 5, 20))
		}
		attrs["kernel_shape"], attrs["strides"], attrs["dilations"], attrs["pads"] = k, stride, dil, append(pads, pads...)
		x := tensor.New(rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8}).Draw(t, "type"), shape...)
		seed := draw("seed", 1, 100)
		for i := range x.Data {
			x.Data[i] = byte(i * i * seed >> 3)
		}
		wide := tensor.New(tensor.Float64, shape...)
		for i := range wide.Len() {
			tensor.Put(wide, i, tensor.At(x, i))
		}
		node := optest.Node{Op: "MaxPool", Version: 22, Attrs: attrs}
		got, err := optest.Run(Defs(), node, x)
		if err != nil {
			t.Fatal(err)
		}
		want, err := optest.Run(Defs(), node, wide)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want[0].Len() {
			if g, w := tensor.At(got[0], i), tensor.At(want[0], i); g != w && !math.IsInf(w, 0) {
				t.Fatalf("code %d is %v, want %v", i, g, w)
			}
		}
	})
}
