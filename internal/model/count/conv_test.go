package count

import (
	"math/rand/v2"
	"testing"
)

// TestInside compares with trying every output position and tap.
func TestInside(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		a := axis{in: r.Int64N(12), out: r.Int64N(12), kernel: r.Int64N(7), stride: 1 + r.Int64N(4), dilation: 1 + r.Int64N(4), before: r.Int64N(9) - 3}
		want := int64(0)
		for o := range a.out {
			for k := range a.kernel {
				if p := o*a.stride + k*a.dilation - a.before; p >= 0 && p < a.in {
					want++
				}
			}
		}
		if got := a.inside(); got != want {
			t.Fatalf("%+v: %d, want %d", a, got, want)
		}
	}
}
