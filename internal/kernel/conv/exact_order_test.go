package conv

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
)

// TestOrder checks the property that makes TFLite's float results bit-exact: one accumulator per
// output, products added in order, the bias last.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	fill := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	same := func(what string, i int, got, want float32) {
		t.Helper()
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%s element %d is %v, in order it is %v", what, i, got, want)
		}
	}
	pool := workers.New(1, nil)
	defer pool.Close()
	for _, m := range []int{1, 3, 5} {
		const n, k = 19, 77
		a, b, bias := fill(m*k), fill(n*k), fill(n)
		g := gemm.Params{M: m, N: n, K: k, TransB: true, BiasN: bias, Exact: true}
		direct, packed := make([]float32, m*n), make([]float32, m*n)
		gemm.Multiply(pool, g, a, b, direct)
		gemm.MultiplyPacked(pool, g, a, gemm.PackB(k, n, b, 0, true), packed)
		for i := range direct {
			var s float32
			for j := range k {
				s += float32(a[i/n*k+j] * b[i%n*k+j])
			}
			s += bias[i%n]
			same("Gemm", i, direct[i], s)
			same("GemmPacked", i, packed[i], s)
		}
	}
	s := Shape{N: 1, C: 17, H: 7, W: 7, OC: 18, OH: 7, OW: 7, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1, Groups: 1}
	x, w, bias := fill(49*17), fill(18*9*17), fill(18)
	y := make([]float32, 49*18)
	NewNHWC(s, w, bias, activation.Clamp{}).Run(pool, x, y)
	d := s
	d.OC = d.C
	z := make([]float32, 49*17)
	NewDepthwiseNHWC(d, w[:9*17], bias[:17], activation.Clamp{}).Run(pool, x, z)
	for p := range 49 {
		for o := range 18 {
			var sum, deep float32
			for t := range 9 {
				iy, ix := p/7+t/3-1, p%7+t%3-1
				if iy < 0 || iy > 6 || ix < 0 || ix > 6 {
					continue
				}
				in := x[(iy*7+ix)*17:][:17]
				for c, v := range in {
					sum += float32(v * w[(o*9+t)*17+c])
				}
				if o < 17 {
					deep += float32(in[o] * w[t*17+o])
				}
			}
			same("Conv", p*18+o, y[p*18+o], sum+bias[o])
			if o < 17 {
				same("depthwise", p*17+o, z[p*17+o], deep+bias[o])
			}
		}
	}
}
