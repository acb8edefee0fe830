package conv

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestPhases compares transposed convolutions with constant weights in single precision, which
// use a convolution per phase, with those in double precision, which add up the contributions of
// each input position.
func TestPhases(t *testing.T) {
	t.Parallel()
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(1, 3).Draw(t, "rank")
		list := func(what string, lo, hi int) []int {
			return rapid.SliceOfN(rapid.IntRange(lo, hi), rank, rank).Draw(t, what)
		}
		wide := func(v []int) []int64 {
			out := make([]int64, len(v))
			for i := range v {
				out[i] = int64(v[i])
			}
			return out
		}
		groups := rapid.IntRange(1, 2).Draw(t, "groups")
		cg, mg := rapid.IntRange(2, 6).Draw(t, "cg"), rapid.IntRange(1, 5).Draw(t, "mg")
		in, k, stride, dilation := list("in", 4, 13), list("kernel", 1, 5), list("strides", 1, 4), list("dilations", 1, 2)
		pads, extra := rapid.SliceOfN(rapid.IntRange(0, 3), 2*rank, 2*rank).Draw(t, "pads"), make([]int, rank)
		for i := range extra {
			extra[i] = rapid.IntRange(0, stride[i]-1).Draw(t, "more")
			if rapid.IntRange(0, 1).Draw(t, "usual") == 1 { // as they are in networks
				k[i] = max(k[i], stride[i])
				pads[i], pads[rank+i], dilation[i] = k[i]/2, k[i]/2, 1
			}
		}
		attrs := graph.Attrs{"group": int64(groups), "strides": wide(stride), "dilations": wide(dilation), "pads": wide(pads), "output_padding": wide(extra)}
		fill := func(step int, shape ...int) (narrow, double *tensor.Tensor) {
			narrow, double = tensor.New(tensor.Float32, shape...), tensor.New(tensor.Float64, shape...)
			for _, x := range []*tensor.Tensor{narrow, double} {
				tensor.Fill(x, func(i int) float64 { return float64((i*step+step)%7 - 3) })
			}
			return narrow, double
		}
		n := rapid.IntRange(1, 2).Draw(t, "n")
		x, x64 := fill(5, append([]int{n, groups * cg}, in...)...)
		w, w64 := fill(3, append([]int{groups * cg, mg}, k...)...)
		b, b64 := fill(2, groups*mg)
		node := optest.Node{Op: "ConvTranspose", Version: 22, Attrs: attrs, Const: []bool{false, true, true}}
		want, err := optest.Run(Defs(), node, x64, w64, b64)
		if err != nil {
			t.Skip(err) // no results are left
		}
		got, err := optest.Run(Defs(), node, x, w, b)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float64, want[0].Len())
		for i := range values {
			values[i] = tensor.At(want[0], i)
		}
		// Sums of up to 750 products below ten, which Winograd rounds.
		if why := optest.Differ(got[0], values, 1e-3, 0); why != "" {
			t.Fatalf("%v of %v with %v: %s", attrs, x.Shape, w.Shape, why)
		}
		taken++
	})
	if taken == 0 {
		t.Error("nothing was computed")
	}
}
