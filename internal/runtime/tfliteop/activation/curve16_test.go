package activation

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestCurve16 checks the SIMD logistic function and tanh for all 16-bit numbers, for scales that
// are powers of two and others.
func TestCurve16(t *testing.T) {
	t.Parallel()
	e := simd.ElementKernels()
	src, dst := make([]int16, 1<<16), make([]int16, 1<<16)
	for i := range src {
		src[i] = int16(i + math.MinInt16)
	}
	for _, tanh := range []bool{false, true} {
		f, most := fixed.Logistic16, 0
		if tanh {
			f, most = fixed.Tanh16, 1
		}
		for _, scale := range []float32{1. / 4096, 1. / 2048, 1e-5, 3e-4, 0.0017, 1, 7.5} {
			m, shift := fixed.Activation16(scale, most)
			n := len(src) - 5
			done := e.Curve16(dst[:n], src, linesOf(tanh, m, shift))
			for i, v := range src[:done] {
				if want := f(v, m, shift); dst[i] != want {
					t.Fatalf("tanh %v of %d at scale %v: %d, want %d", tanh, v, scale, dst[i], want)
				}
			}
			if done == n && dst[n] != 0 {
				t.Fatal("wrote behind the end")
			}
		}
	}
}

// TestPieces16: piecewise linear tables are bit-exact with plain Go for all 16-bit numbers, for
// smooth ones and ones that jump from end to end.
func TestPieces16(t *testing.T) {
	t.Parallel()
	f, r := simd.TableKernels16(), rand.New(rand.NewPCG(6, 46))
	if f == nil {
		t.Skip("plain Go")
	}
	src, dst := make([]int16, 1<<16), make([]int16, 1<<16)
	for i := range src {
		src[i] = int16(i + math.MinInt16)
	}
	for i := range 20 {
		table := fixed.NewTable16(1./4096, 0, 1./1024, 0, math.Expm1)
		if i > 0 {
			for k := range table {
				table[k] = int16(r.IntN(1 << 16))
			}
		}
		from := r.IntN(40)
		n := len(src) - from - 1 - r.IntN(20)
		dst[n] = 0
		f.Table(dst[:n], src[from:], (*[513]int16)(table))
		for k, v := range src[from : from+n] {
			if want := table.At(v); dst[k] != want {
				t.Fatalf("table %d: %d gives %d, want %d", i, v, dst[k], want)
			}
		}
		if dst[n] != 0 {
			t.Fatal("wrote behind the end")
		}
		dst[n] = src[n]
	}
}
