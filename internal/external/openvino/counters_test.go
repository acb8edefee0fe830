//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import (
	"math/rand/v2"
	"testing"
)

// TestMean plays the engine: times of runs are cut to whole microseconds and added up, the sum
// over the runs is cut again. The true mean has to lie within what mean says.
func TestMean(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		typical := 0.2 + 50*r.Float64()
		base, runs := int64(r.IntN(30)), int64(1+r.IntN(200))
		var sum, before, began, true float64
		for i := range base + runs {
			v := typical * (0.7 + 0.6*r.Float64())
			if i == base {
				began = before
			}
			before += float64(int64(v))
			sum = before
			if i >= base {
				true += v
			}
		}
		if base+runs > 0 && runs > 0 && base == 0 {
			began = 0
		}
		from := int64(0)
		if base > 0 {
			from = int64(began) / base
		}
		got, half, ok := mean(base, base+runs, from, int64(sum)/(base+runs))
		if !ok {
			continue
		}
		want := true / float64(runs) / 1e6
		if !(got-half <= want+1e-15 && want <= got+half+1e-15) { // rounding of the sums
			t.Fatalf("%g ± %g s after %d of %d runs, truth is %g", got, half, base, base+runs, want)
		}
	}
	if v, half, ok := mean(0, 100, 0, 7); !ok || !(v > 7.99e-6 && v < 8.01e-6) || !(half < 1.01e-6) {
		t.Errorf("a mean of 7 whole microseconds is %g ± %g", v, half)
	}
	for _, c := range [][4]int64{{0, 100, 0, 0}, {5, 5, 3, 3}, {90, 100, 5, 4}} {
		if v, _, ok := mean(c[0], c[1], c[2], c[3]); ok {
			t.Errorf("%v: %g is made of nothing", c, v)
		}
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	got := brief("Exception from src/inference/src/cpp/core.cpp:84:\nException from src/x.cpp:1:\nCheck 'a' failed at b.cpp:3:\nthe reason\n\n", -1)
	if got != "the reason" {
		t.Error(got)
	}
	if got := brief("Exception from src/x.cpp:1:\nCheck 'a' failed at b.cpp:3:\n", -1); got != "Check 'a' failed at b.cpp:3:" {
		t.Error(got)
	}
	if got := brief(" \n", -7); got != "status -7" {
		t.Error(got)
	}
}
