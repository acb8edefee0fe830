package loss

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Ends of rates are those where the score test just says yes, closed forms where no sample or
// every one is seen.
func TestRate(t *testing.T) {
	t.Parallel()
	const z2 = z95 * z95
	for _, tt := range []struct {
		name         string
		k, n, lo, hi float64
	}{
		{"none", 0, 100, 0, z2 / (100 + z2)},
		{"all", 20, 20, 20 / (20 + z2), 1},
		// Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I.
		{"81 of 263", 81, 263, 0.2553, 0.3662},
		{"15 of 148", 15, 148, 0.0624, 0.1605},
		{"one sample", 1, 1, math.NaN(), math.NaN()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lo, hi := wilsonInterval(tt.k, tt.n)
			near := func(a, b float64) bool { return math.Abs(a-b) < 5e-5 || a != a && b != b }
			if !near(lo, tt.lo) || !near(hi, tt.hi) {
				t.Errorf("%v to %v, want %v to %v", lo, hi, tt.lo, tt.hi)
			}
		})
	}
}

// Differences on the same samples: equal to what a search for the likeliest shares under a
// difference gives, symmetric, and with a length where no sample differs.
func TestDifference(t *testing.T) {
	t.Parallel()
	const z2 = z95 * z95
	if lo, hi := tangoInterval(0, 0, 179); math.Abs(hi-z2/(179+z2)) > 1e-9 || math.Abs(lo+hi) > 1e-9 {
		t.Errorf("none of 179: %v to %v", lo, hi)
	}
	for _, tt := range [][3]float64{{1, 0, 179}, {12, 2, 50}, {7, 0, 50}, {5, 5, 40}, {30, 1, 31}} {
		b, c, n := tt[0], tt[1], tt[2]
		lo, hi := tangoInterval(b, c, n)
		other, end := tangoInterval(c, b, n)
		if math.Abs(lo+end) > 1e-9 || math.Abs(hi+other) > 1e-9 {
			t.Errorf("%v: %v to %v, the other way %v to %v", tt, lo, hi, other, end)
		}
		if seen := (b - c) / n; lo >= seen || hi <= seen {
			t.Errorf("%v: %v to %v around %v", tt, lo, hi, seen)
		}
		for _, d := range []float64{lo, hi} {
			if d > 0.999 || d < -0.999 {
				continue
			}
			// The likeliest share q of samples that only the second has, beside q+d of the first.
			best, q := math.Inf(-1), 0.0
			for i := range 200001 {
				x := max(0, -d) + (1-math.Abs(d))/2*float64(i)/200000
				like := func(k, p float64) float64 {
					if k == 0 {
						return 0
					}
					return k * math.Log(p)
				}
				if l := like(b, x+d) + like(c, x) + like(n-b-c, 1-2*x-d); l > best {
					best, q = l, x
				}
			}
			z := (b - c - n*d) / math.Sqrt(n*(2*q+d-d*d))
			if math.Abs(math.Abs(z)-z95) > 1e-3 { // steps of the search
				t.Errorf("%v: at %v the score is %v", tt, d, z)
			}
		}
	}
}

// Intervals of shares hold what they promise of rare errors, of which samples drawn again know
// nothing.
func TestRatesHold(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 5))
	for _, p := range []float64{0.002, 0.01, 0.1} {
		const n, times = 150, 2000
		alone, same := 0, 0
		for range times {
			b, c := 0.0, 0.0
			for range n {
				if u := r.Float64(); u < p {
					b++
				} else if u > 1-p/2 {
					c++
				}
			}
			if lo, hi := wilsonInterval(b, n); lo <= p && p <= hi {
				alone++
			}
			if lo, hi := tangoInterval(b, c, n); lo <= p/2 && p/2 <= hi {
				same++
			}
		}
		// 95 of 100 in the mean over shares; single ones lie some 2 of 100 to either side.
		if alone < times*92/100 || same < times*92/100 {
			t.Errorf("share %v: %d and %d of %d hold", p, alone, same, times)
		}
	}
}
