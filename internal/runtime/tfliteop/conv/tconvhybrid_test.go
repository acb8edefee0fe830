package conv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestHybridTranspose: floats by 8-bit weights: each product is scaled twice and added
// separately, inputs in order, then channels, then taps.
func TestHybridTranspose(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 9))
	for _, s := range []struct {
		n, h, w, c, oc, oh, ow, k, stride int
		one, biased, infinite             bool
	}{
		{1, 3, 4, 5, 3, 6, 8, 3, 2, false, true, false},
		{2, 4, 3, 9, 8, 8, 6, 4, 2, false, false, false},
		{1, 2, 2, 3, 2, 2, 2, 2, 1, true, true, false},
		{1, 5, 1, 2, 11, 15, 3, 2, 3, false, true, false}, // gaps between windows
		// several registers of sums and of inputs
		{1, 2, 3, 37, 21, 4, 6, 4, 2, false, true, false},
		{1, 2, 3, 4, 5, 4, 6, 3, 2, false, true, true}, // zeros times infinity
	} {
		pad := func(in, out int) int { return max(0, (in-1)*s.stride+s.k-out) / 2 }
		x, w, b := make([]float64, s.n*s.h*s.w*s.c), make([]float64, s.oc*s.k*s.k*s.c), make([]float64, s.oc)
		for i := range x {
			if x[i] = float64(float32(r.NormFloat64())); r.IntN(3) == 0 {
				x[i] = 0
			}
		}
		for i := range w {
			w[i] = float64(r.IntN(255) - 127)
		}
		for i := range b {
			b[i] = float64(float32(r.NormFloat64()))
		}
		scales := make([]float32, s.oc)
		for i := range scales {
			scales[i] = 0.01 + r.Float32()/50
		}
		if s.one {
			scales = scales[:1]
		}
		if s.infinite {
			scales[1] = float32(math.Inf(1))
		}
		want := make([]float64, s.n*s.oh*s.ow*s.oc)
		batch := s.h * s.w * s.c
		for n := range s.n {
			q, from := make([]float32, batch), make([]float32, batch)
			for i := range from {
				from[i] = float32(x[n*batch+i])
			}
			scale, _ := layer.QuantiseRow(q, from, true)
			acc := make([]float32, s.oh*s.ow*s.oc)
			for p := range batch {
				y, xx, i := p/s.c/s.w, p/s.c%s.w, p%s.c
				for ky := range s.k {
					for kx := range s.k {
						oy, ox := y*s.stride-pad(s.h, s.oh)+ky, xx*s.stride-pad(s.w, s.ow)+kx
						if oy < 0 || oy >= s.oh || ox < 0 || ox >= s.ow {
							continue
						}
						for o := range s.oc {
							v := q[p] * float32(w[((o*s.k+ky)*s.k+kx)*s.c+i])
							v = float32(v * scales[min(o, len(scales)-1)])
							v = float32(v * scale)
							acc[(oy*s.ow+ox)*s.oc+o] += v
						}
					}
				}
			}
			for i, v := range acc {
				if s.biased {
					v += float32(b[i%s.oc])
				}
				want[n*len(acc)+i] = float64(max(v, 0))
			}
		}
		in := []*tensor.Tensor{
			optest.Row(tensor.Int32, nil, float64(s.n), float64(s.oh), float64(s.ow), float64(s.oc)),
			optest.Of(tensor.Int8, optest.Affine(0, scales...), []int{s.oc, s.k, s.k, s.c}, w...),
			optest.Of(tensor.Float32, nil, []int{s.n, s.h, s.w, s.c}, x...),
		}
		if s.biased {
			in = append(in, optest.Of(tensor.Float32, nil, []int{s.oc}, b...))
		}
		attrs := graph.Attrs{"stride_h": int64(s.stride), "stride_w": int64(s.stride), "fused_activation_function": "RELU"}
		optest.Exactly(t, fmt.Sprint(s), Defs(), optest.Lite("TRANSPOSE_CONV", attrs, tensor.Float32, nil), []int{s.n, s.oh, s.ow, s.oc}, want, in...)
	}
}
