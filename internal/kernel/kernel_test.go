package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
)

func random(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = r.Float32()*2 - 1
	}
	return v
}

func near(t *testing.T, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-4*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("element %d: got %g, want %g", i, got[i], want[i])
		}
	}
}

func TestGemm(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		g := GemmParams{M: 1 + r.IntN(20)*r.IntN(2), N: 1 + r.IntN(40), K: r.IntN(50), TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0, Accumulate: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			g.BiasN = random(r, g.N)
		}
		if r.IntN(2) == 0 {
			g.BiasM = random(r, g.M)
		}
		if r.IntN(2) == 0 {
			g.Act = activation.Clamp{On: true, Min: -0.5, Max: float32(math.Inf(1))}
		}
		a, b, c := random(r, g.M*g.K), random(r, g.K*g.N), random(r, g.M*g.N)
		want := make([]float32, len(c))
		for m := range g.M {
			for n := range g.N {
				var s float64
				for k := range g.K {
					ai, bi := m*g.K+k, k*g.N+n
					if g.TransA {
						ai = k*g.M + m
					}
					if g.TransB {
						bi = n*g.K + k
					}
					s += float64(a[ai]) * float64(b[bi])
				}
				if g.Accumulate {
					s += float64(c[m*g.N+n])
				}
				if g.BiasN != nil {
					s += float64(g.BiasN[n])
				}
				if g.BiasM != nil {
					s += float64(g.BiasM[m])
				}
				if g.Act.On {
					s = max(s, float64(g.Act.Min))
				}
				want[m*g.N+n] = float32(s)
			}
		}
		packed := slices.Clone(c)
		Gemm(pool, g, a, b, c)
		near(t, c, want)
		GemmPacked(pool, g, a, PackB(g.K, g.N, b, 0, g.TransB), packed)
		near(t, packed, want)
	}
}

// naive convolves in NCHW with float64 sums.
func naive(s ConvShape, x, w, bias []float32, act activation.Clamp) []float32 {
	g := max(s.Groups, 1)
	cg, og := s.C/g, s.OC/g
	y := make([]float32, s.N*s.OC*s.OH*s.OW)
	for i := range y {
		ox, oy, o, n := i%s.OW, i/s.OW%s.OH, i/s.OW/s.OH%s.OC, i/s.OW/s.OH/s.OC
		var sum float64
		if bias != nil {
			sum = float64(bias[o])
		}
		for c := range cg {
			for ky := range s.KH {
				for kx := range s.KW {
					iy, ix := oy*s.StrideH-s.PadT+ky*s.DilH, ox*s.StrideW-s.PadL+kx*s.DilW
					if iy < 0 || ix < 0 || iy >= s.H || ix >= s.W {
						continue
					}
					sum += float64(x[((n*s.C+o/og*cg+c)*s.H+iy)*s.W+ix]) * float64(w[((o*cg+c)*s.KH+ky)*s.KW+kx])
				}
			}
		}
		if act.On {
			sum = min(max(sum, float64(act.Min)), float64(act.Max))
		}
		y[i] = float32(sum)
	}
	return y
}

func toNHWC(x []float32, n, c, area int) []float32 {
	y := make([]float32, len(x))
	for i := range x {
		p, ch, b := i%area, i/area%c, i/area/c
		y[(b*area+p)*c+ch] = x[i]
	}
	return y
}

func TestConv(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 3} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			pool := workers.New(threads, nil)
			defer pool.Close()
			r := rand.New(rand.NewPCG(3, 4))
			for i := range 300 {
				groups := []int{1, 1, 2, 5}[r.IntN(4)]
				cg, og := 1+r.IntN(5), 1+r.IntN(5)
				if r.IntN(3) == 0 {
					cg = 1
				}
				s := ConvShape{
					N: 1 + r.IntN(2), C: groups * cg, H: 1 + r.IntN(9), W: 1 + r.IntN(9), OC: groups * og,
					KH: 1 + r.IntN(3), KW: 1 + r.IntN(3), StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3),
					DilH: 1 + r.IntN(2), DilW: 1 + r.IntN(2), PadT: r.IntN(3), PadL: r.IntN(3), Groups: groups,
				}
				s.OH, s.OW = 1+r.IntN(8), 1+r.IntN(8)
				if i%10 == 0 { // enough channels for Winograd
					s = ConvShape{
						N: s.N, C: groups * (15 + cg), OC: groups * (15 + og), H: s.H, W: s.W, OH: 4 + r.IntN(8), OW: 4 + r.IntN(8),
						KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: s.PadT, PadL: s.PadL, Groups: groups,
					}
					cg += 15
				}
				x, w := random(r, s.N*s.C*s.H*s.W), random(r, s.OC*cg*s.KH*s.KW)
				var bias []float32
				if r.IntN(2) == 0 {
					bias = random(r, s.OC)
				}
				var act activation.Clamp
				if r.IntN(2) == 0 {
					act = activation.Clamp{On: true, Min: 0, Max: 0.7}
				}
				want := naive(s, x, w, bias, act)
				y := random(r, len(want))
				NewConvNCHW(s, w, bias, act).Run(pool, x, y)
				near(t, y, want)

				wn := toNHWC(w, s.OC, cg, s.KH*s.KW)
				xn := toNHWC(x, s.N, s.C, s.H*s.W)
				wantN := toNHWC(want, s.N, s.OC, s.OH*s.OW)
				y = random(r, len(want))
				NewConvNHWC(s, wn, bias, act).Run(pool, xn, y)
				near(t, y, wantN)
				if cg == 1 {
					// Weights [1,KH,KW,OC].
					wd := make([]float32, len(w))
					for o := range s.OC {
						for k := range s.KH * s.KW {
							wd[k*s.OC+o] = w[o*s.KH*s.KW+k]
						}
					}
					y = random(r, len(want))
					NewDepthwiseNHWC(s, wd, bias, act).Run(pool, xn, y)
					near(t, y, wantN)
				}
			}
		})
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, n := range []int{64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := make([]float32, n*n)
			c := make([]float32, n*n)
			quickest(b, "GFLOP/s", 2*float64(n*n*n), func() { Gemm(nil, GemmParams{M: n, N: n, K: n}, v, v, c) })
		})
	}
}

func BenchmarkGemmRow(b *testing.B) {
	const n = 256
	v, c := make([]float32, n*n), make([]float32, n)
	w := PackB(n, n, v, 0, false)
	quickest(b, "GFLOP/s", 2*n*n, func() { GemmPacked(nil, GemmParams{M: 1, N: n, K: n}, v, w, c) })
}

func BenchmarkConv(b *testing.B) {
	s := ConvShape{N: 1, C: 64, H: 56, W: 56, OC: 64, OH: 56, OW: 56, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1}
	x, w, y := make([]float32, 64*56*56), make([]float32, 64*64*9), make([]float32, 64*56*56)
	d := s
	d.Groups = 64
	direct := s
	direct.DilH, direct.PadT = 2, 2 // as much work, without Winograd
	for _, c := range []struct {
		name string
		macs int
		k    *Conv
	}{
		{"nchw", 64 * 64 * 9 * 56 * 56, NewConvNCHW(direct, w, nil, activation.Clamp{})},
		{"nhwc", 64 * 64 * 9 * 56 * 56, NewConvNHWC(s, w, nil, activation.Clamp{})},
		{"winograd-nchw", 64 * 64 * 9 * 56 * 56, NewConvNCHW(s, w, nil, activation.Clamp{})},
		{"depthwise-nchw", 64 * 9 * 56 * 56, NewConvNCHW(d, w[:64*9], nil, activation.Clamp{})},
		{"depthwise-nhwc", 64 * 9 * 56 * 56, NewConvNHWC(d, w[:64*9], nil, activation.Clamp{})},
	} {
		b.Run(c.name, func(b *testing.B) {
			quickest(b, "GFLOP/s", 2*float64(c.macs), func() { c.k.Run(nil, x, y) })
		})
	}
}
