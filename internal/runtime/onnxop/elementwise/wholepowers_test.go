package elementwise

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestWholePowers: integer parts of powers equal those computed individually, also for integer
// powers.
func TestWholePowers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	for _, s := range simd.Available() {
		undo := simd.Use(s)
		for _, y := range []float64{0, 0.5, -0.5, 1, 1.5, 2, 2.5, 3, -1, -2, 1.0 / 3, 2.0 / 3, 0.1, 7.25, 20, 100} {
			a := make([]int64, 3000)
			for i := range a {
				switch {
				case i < 1000:
					a[i] = int64(i - 30)
				case i%2 == 0:
					root := r.Int64N(1 << 20)
					a[i] = root * root
				default:
					a[i] = r.Int64N(1<<r.IntN(63)+1) - 5
				}
			}
			got := make([]int64, len(a))
			if !wholePowers(got, a, y) {
				continue
			}
			for i, x := range a {
				if want := realPow(x, y); got[i] != want {
					t.Fatalf("%v: %d^%v is %d, want %d", s, x, y, got[i], want)
				}
			}
		}
		undo()
	}
}
