package conv

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestVolumes compares quantised 3D convolutions with their definition; scales are 1 so that
// nothing is rounded.
func TestVolumes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		groups := draw("groups", 1, 3)
		cg, og, n := draw("channels", 1, 5), draw("results", 1, 5), draw("images", 1, 2)
		var in, k, stride, dil, pads, out []int
		for _, axis := range []string{"d", "h", "w"} {
			in, k, stride, dil = append(in, draw(axis, 1, 6)), append(k, draw("k"+axis, 1, 3)), append(stride, draw("s"+axis, 1, 2)), append(dil, draw("l"+axis, 1, 2))
			pads = append(pads, draw("p"+axis, 0, 3))
		}
		for i := range 3 {
			span := in[i] + 2*pads[i] - (k[i]-1)*dil[i] - 1
			if span < 0 {
				t.Skip("no result")
			}
			out = append(out, span/stride[i]+1)
		}
		kind := rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8}).Draw(t, "type")
		codes := func(name string, kind tensor.Type, shape ...int) *tensor.Tensor {
			x := tensor.New(kind, shape...)
			copy(x.Data, rapid.SliceOfN(rapid.Byte(), len(x.Data), len(x.Data)).Draw(t, name))
			return x
		}
		c, m := groups*cg, groups*og
		x, xz := codes("x", kind, n, c, in[0], in[1], in[2]), codes("zero", kind)
		w := codes("w", tensor.Int8, m, cg, k[0], k[1], k[2])
		want := make([]float64, 0, n*m*out[0]*out[1]*out[2])
		for i := range cap(want) {
			at := make([]int, 5)
			tensor.Unravel(i, []int{n, m, out[0], out[1], out[2]}, at)
			sum := 0.0
			for j := range cg * k[0] * k[1] * k[2] {
				tap := make([]int, 4)
				tensor.Unravel(j, []int{cg, k[0], k[1], k[2]}, tap)
				pos, inside := at[0]*c+at[1]/og*cg+tap[0], true
				for a := range 3 {
					p := at[2+a]*stride[a] - pads[a] + tap[1+a]*dil[a]
					inside = inside && p >= 0 && p < in[a]
					pos = pos*in[a] + p
				}
				if inside {
					sum += (tensor.At(x, pos) - tensor.At(xz, 0)) * tensor.At(w, at[1]*cg*k[0]*k[1]*k[2]+j)
				}
			}
			want = append(want, sum)
		}
		wide := func(v []int) (l []int64) {
			for _, x := range v {
				l = append(l, int64(x))
			}
			return l
		}
		attrs := graph.Attrs{"group": int64(groups), "strides": wide(stride), "dilations": wide(dil), "pads": wide(append(pads, pads...))}
		sums, err := optest.Run(Defs(), optest.Node{Op: "ConvInteger", Version: 10, Attrs: attrs}, x, w, xz)
		if err != nil {
			t.Fatal(err)
		}
		if why := optest.Differ(sums[0], want, 0, 0); why != "" {
			t.Fatal("sums: ", why)
		}
		one := f32(nil, 1)
		got, err := optest.Run(Defs(), optest.Node{Op: "QLinearConv", Version: 10, Attrs: attrs, Const: []bool{3: rapid.Bool().Draw(t, "constant"), 5: true}},
			x, one, xz, w, one, tensor.New(tensor.Int8), one, tensor.New(tensor.Int8))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range want {
			want[i] = min(max(v, -128), 127)
		}
		if why := optest.Differ(got[0], want, 0, 0); why != "" {
			t.Fatal("codes: ", why)
		}
	})
}
