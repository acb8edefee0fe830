package signal

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

func TestFFT32(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	tried := 0
	for n := 1; n <= 1000; n++ {
		for _, inverse := range []bool{false, true} {
			f := newFFT32(n, inverse)
			if f == nil {
				continue
			}
			tried++
			in, scratch := make([]c32, n), make([]c32, n)
			exact, want := make([]complex128, n), make([]complex128, n)
			for i := range in {
				in[i] = c32{r.Float32() - 0.5, r.Float32() - 0.5}
				im := float64(in[i].im)
				if inverse {
					im = -im
				}
				exact[i] = complex(float64(in[i].re), im)
			}
			g := newFFT(n)
			g.forward(want, exact, make([]complex128, g.scratch()))
			for i, v := range f.transform(in, scratch) {
				got := complex(float64(v.re), float64(v.im))
				w := want[i]
				if inverse {
					w = cmplx.Conj(w)
				}
				if d := cmplx.Abs(got - w); !(d <= 2e-6*math.Sqrt(float64(n))) {
					t.Fatalf("length %d inverse %v: bin %d is %v, want %v", n, inverse, i, got, w)
				}
			}
		}
	}
	if newFFT32(7, false) != nil || tried < 100 {
		t.Errorf("%d lengths", tried)
	}
}
