package libm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestSlices checks that slice functions are bit-exact with scalar ones, for values of all
// magnitudes and lengths off whole registers, on each instruction set.
func TestSlices(t *testing.T) {
	for _, c := range []struct {
		name string
		to   func(dst, src []float32)
		one  func(float32) float32
	}{{"exp", ExpTo, Exp}, {"log", LogTo, Log}, {"sigmoid", SigmoidTo, Sigmoid}, {"tanh", TanhTo, Tanh}, {"elu", EluTo, elu}, {"sin", SinTo, Sin}, {"cos", CosTo, Cos}} {
		for _, set := range simd.Available() {
			undo := simd.Use(set)
			src, dst := make([]float32, 0, 1021), make([]float32, 1022)
			for _, limit := range []float32{expAbove, expBelow, sigmoidTop, sigmoidBottom, 89, -104, -18.714973, -1.0397207, -0.34657359, math.Pi / 4, 3 * math.Pi / 4, 0x1p-12, 120, 0, 0x1.04845ep+5, -0x1.f8cbb2p+5} {
				for i := range 9 {
					src = append(src, math.Float32frombits(math.Float32bits(limit)+uint32(i)-4))
				}
			}
			for bits := uint64(0); bits < 1<<32; bits += 20011 {
				src = append(src, math.Float32frombits(uint32(bits)))
				if n := len(src); n >= 1+int(bits%1021) || bits+20011 >= 1<<32 || n == cap(src) {
					dst[n] = 7
					c.to(dst[:n], src)
					for i, x := range src {
						want := c.one(x)
						if math.Float32bits(dst[i]) != math.Float32bits(want) && (dst[i] == dst[i] || want == want) {
							t.Fatalf("%v: %s(%v) of %d is %v, want %v", set, c.name, x, n, dst[i], want)
						}
					}
					if dst[n] != 7 {
						t.Fatalf("%v: %s of %d wrote behind the end", set, c.name, n)
					}
					src = src[:0]
				}
			}
			undo()
		}
	}
}

// TestExpDivide compares with ExpOf and divisions.
func TestExpDivide(t *testing.T) {
	everySet(t, func(t *testing.T, r *rand.Rand) {
		if !HasExpDivide() {
			t.Skip("no kernel")
		}
		for n := range 40 {
			src, others, by := numbers(r, n), numbers(r, n), float32(r.ExpFloat64())
			want, got, quotients := make([]float32, n), make([]float32, n), slices.Clone(others)
			ExpOf(want, src, 0.5, 2)
			ExpDivide(got, src, 0.5, 2, quotients, by)
			for i := range others {
				others[i] /= by
			}
			same(t, n, got, want)
			same(t, n, quotients, others)
		}
	})
}

// TestSoftmaxColumns compares with the definition, computed in plain Go.
func TestSoftmaxColumns(t *testing.T) {
	everySet(t, func(t *testing.T, r *rand.Rand) {
		if !HasSoftmaxColumns(simd.SoftmaxColumns) {
			t.Skip("no kernel")
		}
		for range 100 {
			lines, inner, blocks := 1+r.IntN(20), simd.SoftmaxColumns*(1+r.IntN(3)), 1+r.IntN(3)
			src := numbers(r, lines*inner*blocks)
			want, got := make([]float32, len(src)), slices.Clone(src)
			for b := range blocks {
				for col := range inner {
					at := func(line int) int { return (b*lines+line)*inner + col }
					top, sum := src[at(0)], float32(0)
					for k := range lines {
						top = max(top, src[at(k)])
					}
					for k := range lines {
						want[at(k)] = Exp(float32(src[at(k)]-top) * 0.5)
						sum += want[at(k)]
					}
					for k := range lines {
						want[at(k)] /= sum
					}
				}
			}
			all := blocks * inner / simd.SoftmaxColumns
			half := r.IntN(all + 1)
			SoftmaxColumns(got, got, lines, inner, 0, half, 0.5)
			SoftmaxColumns(got, got, lines, inner, half, all, 0.5)
			same(t, lines, got, want)
		}
	})
}

// everySet runs f with each instruction set.
func everySet(t *testing.T, f func(t *testing.T, r *rand.Rand)) {
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			f(t, rand.New(rand.NewPCG(4, 1)))
		})
	}
}

// numbers returns n numbers, some of them special.
func numbers(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		if v[i] = float32(r.NormFloat64() * []float64{1, 30}[r.IntN(2)]); r.IntN(100) == 0 {
			v[i] = []float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e30, -1e30}[r.IntN(6)]
		}
	}
	return v
}

// same compares bits. All NaN are equal.
func same(t *testing.T, n int, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%d values: number %d is %v, want %v", n, i, got[i], want[i])
		}
	}
}
