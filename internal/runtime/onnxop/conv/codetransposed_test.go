package conv

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestCodesTransposed compares quantised transposed convolutions with those of real numbers;
// scales are powers of two so that nothing is rounded.
func TestCodesTransposed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		groups, axes := draw("groups", 1, 2), draw("axes", 1, 2)
		x, w := []int{draw("images", 1, 2), groups * draw("channels", 1, 5)}, []int{0, draw("results", 1, 5)}
		w[0] = x[1]
		m := groups * w[1]
		var stride, dilation, pads, ends, extra []int64
		for range axes {
			k, s := draw("kernel", 1, 5), draw("stride", 1, 4)
			x, w, stride = append(x, draw("size", 1, 9)), append(w, k), append(stride, int64(s))
			dilation = append(dilation, int64(draw("dilation", 1, 3)))
			pads, ends, extra = append(pads, int64(draw("pad", 0, k-1))), append(ends, int64(draw("end", 0, k-1))), append(extra, int64(draw("extra", 0, s-1)))
		}
		for i := range axes {
			if stride[i]*int64(x[2+i]-1)+extra[i]+int64(w[2+i]-1)*dilation[i]+1-pads[i]-ends[i] <= 0 {
				t.Skip("no result")
			}
		}
		attrs := graph.Attrs{"group": int64(groups), "strides": stride, "dilations": dilation, "pads": append(pads, ends...), "output_padding": extra}
		kinds := rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8})
		codes := func(name string, kind tensor.Type, shape ...int) *tensor.Tensor {
			v := tensor.New(kind, shape...)
			copy(v.Data, rapid.SliceOfN(rapid.Byte(), len(v.Data), len(v.Data)).Draw(t, name))
			return v
		}
		xk, wk, yk := kinds.Draw(t, "x type"), kinds.Draw(t, "w type"), kinds.Draw(t, "y type")
		xq, xz, wq, wz, yz := codes("x", xk, x...), codes("x zero", xk), codes("w", wk, w...), codes("w zero", wk), codes("y zero", yk)
		less := func(q, z *tensor.Tensor) *tensor.Tensor {
			v := tensor.New(tensor.Float64, q.Shape...)
			for i := range v.Len() {
				tensor.Put(v, i, tensor.At(q, i)-tensor.At(z, 0))
			}
			return v
		}
		bias, scales := tensor.New(tensor.Int32, m), tensor.New(tensor.Float32, m)
		for i := range m {
			tensor.Of[int32](bias)[i], tensor.Of[float32](scales)[i] = int32(draw("bias", -5000, 5000)), float32(int(1)<<draw("scale", 0, 3))
		}
		in := []*tensor.Tensor{xq, f32(nil, 0.5), xz, wq, scales, wz, f32(nil, 128), yz, bias}
		real := []*tensor.Tensor{less(xq, xz), less(wq, wz)}
		want, err := optest.Run(Defs(), optest.Node{Op: "ConvTranspose", Version: 11, Attrs: attrs}, real...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := optest.Run(Defs(), optest.Node{Domain: graph.Own, Op: "QLinearConvTranspose", Version: 1, Attrs: attrs, Const: []bool{3: true, 5: true, 8: false}}, in...)
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := 0.0, 255.0
		if yk == tensor.Int8 {
			lo, hi = -128, 127
		}
		area := tensor.Elements(want[0].Shape[2:])
		var all []float64
		for i := range want[0].Len() {
			o := i / area % m
			v := (tensor.At(want[0], i) + tensor.At(bias, o)) * 0.5 * tensor.At(scales, o) / 128
			all = append(all, min(max(math.RoundToEven(v)+tensor.At(yz, 0), lo), hi))
		}
		if why := optest.Differ(got[0], all, 0, 0); why != "" {
			t.Fatal(why)
		}
	})
}
