package norm

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestLRN: y = x / (bias + alpha/size · sum of squares)^beta over size channels, with the smaller
// half of the other channels before.
func TestLRN(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		size              int
		alpha, beta, bias any // nil: the default of the standard
		shape             []int
	}{
		{"defaults", 3, nil, nil, nil, []int{2, 4, 3, 2}},
		{"one channel", 1, float32(0.5), float32(2), float32(1), []int{1, 3, 2}},
		{"even", 2, float32(2), float32(1), float32(3), []int{2, 5, 2}},
		{"four", 4, float32(1), float32(0.75), float32(2), []int{1, 6, 1, 3}},
		{"wider than the channels", 9, float32(9), float32(0.5), float32(0.5), []int{2, 3, 2}},
		{"no beta", 3, float32(1), float32(0), float32(1), []int{1, 3}},
	} {
		attrs, alpha, beta, bias := graph.Attrs{"size": int64(c.size)}, 1e-4, 0.75, 1.0
		for name, v := range map[string]struct {
			given any
			use   *float64
		}{"alpha": {c.alpha, &alpha}, "beta": {c.beta, &beta}, "bias": {c.bias, &bias}} {
			if f, ok := v.given.(float32); ok {
				attrs[name], *v.use = f, float64(f)
			}
		}
		n := 1
		for _, d := range c.shape {
			n *= d
		}
		ch, area := c.shape[1], 1
		for _, d := range c.shape[2:] {
			area *= d
		}
		x, want := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = float64(i*7%19) - 9
		}
		for i := range x {
			k, sum := i/area%ch, 0.0
			for j := range ch {
				if d := j - k; float64(d) >= -math.Floor(float64(c.size-1)/2) && float64(d) <= math.Ceil(float64(c.size-1)/2) {
					v := x[i+d*area]
					sum += v * v
				}
			}
			want[i] = x[i] / math.Pow(bias+alpha/float64(c.size)*sum, beta)
		}
		for _, typ := range []tensor.Type{tensor.Float32, tensor.Float64} {
			out, err := optest.Run(Defs(), optest.Node{Op: "LRN", Version: 13, Attrs: attrs}, optest.Of(typ, nil, c.shape, x...))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			optest.Near(t, c.name, out[0], want, 0, 1e-6)
		}
	}
	for _, size := range []int64{0, -3} {
		optest.Refused(t, "size", Defs(), optest.Node{Op: "LRN", Version: 13, Attrs: graph.Attrs{"size": size}}, "size ", optest.Of(tensor.Float32, nil, []int{1, 2}))
	}
	optest.Refused(t, "rank", Defs(), optest.Node{Op: "LRN", Version: 13, Attrs: graph.Attrs{"size": int64(1)}}, "input 3", optest.Of(tensor.Float32, nil, []int{3}))
}
