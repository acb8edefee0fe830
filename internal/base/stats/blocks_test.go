package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStudent compares with published tables of the distribution.
func TestStudent(t *testing.T) {
	t.Parallel()
	for freedom, want := range map[int]float64{1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 19: 2.093, 60: 2.000, 1000: 1.962} {
		// Tables have three digits after the point; the expansion is good to a thousandth.
		if got := StudentQuantile(0.05, float64(freedom)); !(math.Abs(got-want) <= 0.001*want+0.0005) {
			t.Errorf("%d degrees of freedom: %.4f, want %.3f", freedom, got, want)
		}
	}
}

func TestMidmean(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   []float64
		want float64
	}{
		{[]float64{7}, 7},
		{[]float64{1, 2, 6}, 3}, // of three no quarter can be left out
		{[]float64{1000, 2, 4, -1000}, 3},
		{[]float64{8, 1, 2, 3, 4, 5, 6, 7}, 4.5},
	} {
		in := slices.Clone(tt.in)
		if got := Midmean(in); got != tt.want || !slices.Equal(in, tt.in) {
			t.Errorf("%v: %v, want %v", tt.in, got, tt.want)
		}
	}
	if !math.IsNaN(Midmean(nil)) {
		t.Error("of nothing is a number")
	}
}

// TestRepeatedOfFew: below three blocks there is a middle and no interval.
func TestRepeatedOfFew(t *testing.T) {
	t.Parallel()
	for _, in := range [][]float64{nil, {1}, {1, 2}} {
		if r, ok := Repeated(in, 0); ok || r.Blocks != len(in) || r.Low != 0 || r.High != 0 {
			t.Errorf("%v: %+v, %v", in, r, ok)
		}
	}
	// Three blocks of 1, 2 and 3: standard error sqrt(1/3), no correlation above zero,
	// t of two degrees of freedom.
	r, ok := Repeated([]float64{2, 3, 1}, 0)
	half := math.Sqrt2 * 4.302652729749464 * math.Sqrt(1.0/3)
	if !ok || r.Middle != 2 || r.Blocks != 3 || !(math.Abs(r.High-2-half) <= 1e-9) || !(math.Abs(2-r.Low-half) <= 1e-9) {
		t.Errorf("%+v, want 2 ± %v", r, half)
	}
	// A series without spread has the floor alone.
	r, _ = Repeated([]float64{5, 5, 5, 5}, 0.01)
	if half := math.Sqrt2 * 1.959964 * 0.05; r.Middle != 5 || !(math.Abs(r.High-5-half) <= 1e-9) || !(math.Abs(5-r.Low-half) <= 1e-9) {
		t.Errorf("floor: %+v, want 5 ± %v", r, half)
	}
}

// TestRepeatedHolds draws pairs of series from one source: the interval of the first
// holds the middle of the second in 95 % of cases where samples are independent, and in
// most where neighbours are alike, which is what an interval of single samples gets
// wrong.
func TestRepeatedHolds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		correlation float64
		least, most float64
	}{
		// The middle is a little less sure than a mean of normal samples, and only
		// correlations above zero count, which pull in opposite directions.
		{"independent", 0, 0.93, 0.985},
		{"neighbours alike", 0.9, 0.90, 0.99},
		// As long as a third of the series: blocks cannot make up for all of it.
		{"drifting", 0.99, 0.75, 0.99},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, 4))
			series := func() []float64 {
				s := make([]float64, 400)
				x := r.NormFloat64()
				for i := range s {
					x = tt.correlation*x + math.Sqrt(1-tt.correlation*tt.correlation)*r.NormFloat64()
					s[i] = 10 + x
				}
				return s
			}
			const rounds = 2000
			hit := 0
			for range rounds {
				a, ok := Repeated(series(), 0)
				b, _ := Repeated(series(), 0)
				if ok && a.Low <= b.Middle && b.Middle <= a.High {
					hit++
				}
			}
			if c := float64(hit) / rounds; !(c >= tt.least && c <= tt.most) {
				t.Errorf("held %.3f, want %.3f to %.3f", c, tt.least, tt.most)
			}
		})
	}
}

// TestRepeatedWithstands: a quarter of disturbed blocks does not move the middle.
func TestRepeatedWithstands(t *testing.T) {
	t.Parallel()
	s := make([]float64, 200)
	for i := range s {
		s[i] = 1 + 0.001*float64(i%7)
		if i/50 == 2 {
			s[i] = 100
		}
	}
	r, ok := Repeated(s, 0)
	if !ok || !(r.Middle >= 1 && r.Middle <= 1.007) {
		t.Errorf("middle %v", r.Middle)
	}
}
