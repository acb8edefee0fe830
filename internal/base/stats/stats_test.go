package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var near = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) })

func TestSummarize(t *testing.T) {
	t.Parallel()
	if s := Summarize(nil); s.N != 0 || !math.IsNaN(s.Median) || !math.IsNaN(s.Mean) || !math.IsNaN(s.Min) || !math.IsNaN(s.Max) || s.StdDev != nil || s.Outliers != nil {
		t.Errorf("of nothing: %+v", s)
	}
	p := func(v float64) *float64 { return &v }
	tests := []struct {
		name string
		in   []float64
		want Summary
	}{
		{"one", []float64{3}, Summary{N: 1, Kept: 1, Median: 3, Mean: 3, Min: 3, Max: 3}},
		{"two", []float64{4, 2}, Summary{N: 2, Kept: 2, Median: 3, Mean: 3, Min: 2, Max: 4, StdDev: p(math.Sqrt2), MAD: p(1)}},
		// Six samples are the fewest with an interval of the median: its extremes.
		{"six", []float64{6, 1, 5, 2, 4, 3}, Summary{N: 6, Kept: 6, Median: 3.5, Mean: 3.5, Min: 1, Max: 6, StdDev: p(math.Sqrt(3.5)), MAD: p(1.5), CI95: &[2]float64{1, 6}, Outliers: new(int64(0))}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := slices.Clone(tt.in)
			if d := cmp.Diff(tt.want, Summarize(in), near); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if !slices.Equal(in, tt.in) {
				t.Error("the samples were changed")
			}
		})
	}
}

func TestPercentilesNeedSamples(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n             int
		p90, p95, p99 bool
	}{{35, false, false, false}, {36, true, false, false}, {71, true, false, false}, {72, true, true, false}, {367, true, true, false}, {368, true, true, true}} {
		s := make([]float64, tt.n)
		for i := range s {
			s[i] = float64(i)
		}
		m := Summarize(s)
		if (m.P90 != nil) != tt.p90 || (m.P95 != nil) != tt.p95 || (m.P99 != nil) != tt.p99 {
			t.Errorf("%d samples: p90 %v, p95 %v, p99 %v", tt.n, m.P90, m.P95, m.P99)
		}
	}
	if n := MinSamples(0.999); n != 3688 {
		t.Errorf("p99.9 needs %d", n)
	}
	if a, b := MinSamples(0), MinSamples(1); a != math.MaxInt || b != math.MaxInt {
		t.Errorf("the extremes need %d and %d", a, b)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	s := []float64{10, 20, 30, 40}
	for _, tt := range []struct{ p, want float64 }{{0, 10}, {1, 40}, {0.5, 25}, {0.25, 17.5}, {1.0 / 3, 20}, {-1, 10}, {2, 40}} {
		if got := Quantile(s, tt.p); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("Quantile(%v) = %v, want %v", tt.p, got, tt.want)
		}
	}
	if !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("of nothing is a number")
	}
}

// TestConformal holds the bound of one more sample against its promise: among n
// samples it is the one of rank (n+1)*coverage, where that is an integer close to
// it, and the largest where there are too few.
func TestConformal(t *testing.T) {
	t.Parallel()
	in := []float64{3, 1, 2}
	if got := Conformal(in, 0.9); got != 3 || !slices.Equal(in, []float64{3, 1, 2}) {
		t.Errorf("of three: %v, and the samples are %v", got, in)
	}
	if !math.IsNaN(Conformal(nil, 0.9)) {
		t.Error("of nothing is a number")
	}
	r := rand.New(rand.NewPCG(5, 6))
	const rounds = 20_000
	hit := 0
	for range rounds {
		s := make([]float64, 29)
		for i := range s {
			s[i] = r.ExpFloat64()
		}
		if r.ExpFloat64() <= Conformal(s, 0.9) {
			hit++
		}
	}
	// The definition interpolates, so that the share may be a tenth of a rank off; the
	// rest is four standard deviations of the count.
	if c := float64(hit) / rounds; math.Abs(c-0.9) > 0.1/30+4*math.Sqrt(0.09/rounds) {
		t.Errorf("coverage %.4f", c)
	}
}

// TestMedianRank compares with published tables of the sign test's interval.
func TestMedianRank(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 5: 0, 6: 1, 8: 1, 9: 2, 10: 2, 11: 2, 12: 3, 15: 4, 20: 6, 25: 8, 30: 10, 50: 18, 100: 40, 1000: 469} {
		if got := medianRank(n); got != want {
			t.Errorf("medianRank(%d) = %d, want %d", n, got, want)
		}
	}
	// The approximation continues the exact values without a step.
	if d := medianRank(1002) - medianRank(1000); d < 0 || d > 2 {
		t.Errorf("step of %d at 1000", d)
	}
}

// TestMedianInterval checks the promised coverage on skewed samples.
func TestMedianInterval(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 4000
	hit := 0
	for range rounds {
		s := make([]float64, 25)
		for i := range s {
			s[i] = r.ExpFloat64()
		}
		slices.Sort(s)
		lo, hi, ok := MedianInterval(s)
		if !ok {
			t.Fatal("no interval")
		}
		if lo <= math.Ln2 && math.Ln2 <= hi {
			hit++
		}
	}
	if c := float64(hit) / rounds; c < 0.945 || c > 0.975 {
		t.Errorf("coverage %.3f", c)
	}
}

func TestTukey(t *testing.T) {
	t.Parallel()
	s := []float64{-100, -8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 22, 100}
	// Quartiles 2.25 and 8.75: inner fences -7.5 and 18.5, outer -17.25 and 28.25.
	want := Outliers{LowSevere: 1, LowMild: 1, HighMild: 1, HighSevere: 1}
	if d := cmp.Diff(want, Tukey(s)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestMeanKeepsDigits(t *testing.T) {
	t.Parallel()
	s := make([]float64, 1_000_000)
	for i := range s {
		s[i] = 0.1
	}
	if m := Mean(s); math.Abs(m-0.1) > 1e-17 {
		t.Errorf("mean %.20f", m)
	}
}

func TestTrend(t *testing.T) {
	t.Parallel()
	up := []float64{1, 2, 3, 100, 5, 6, 7, 8, 9, 10}
	if s := TheilSen(up); s != 1 {
		t.Errorf("slope %v", s)
	}
	// S = 45 - 2*6 = 33, variance 125: z = 32/sqrt(125).
	if p, want := MannKendall(up), math.Erfc(32/math.Sqrt(125)/math.Sqrt2); math.Abs(p-want) > 1e-12 {
		t.Errorf("MannKendall %v, want %v", p, want)
	}
	if p := MannKendall([]float64{1, 1, 1, 1, 1}); p != 1 {
		t.Errorf("constant series: %v", p)
	}
	if s := TheilSen([]float64{7}); s != 0 {
		t.Errorf("slope of one sample %v", s)
	}
}

func TestPettitt(t *testing.T) {
	t.Parallel()
	s := make([]float64, 40)
	for i := range s {
		s[i] = float64(i % 3)
		if i >= 15 {
			s[i] += 10
		}
	}
	at, p := Pettitt(s)
	if at != 15 || p > 1e-5 {
		t.Errorf("change at %d with p %v", at, p)
	}
	if _, p := Pettitt([]float64{1, 1, 1, 1}); p != 1 {
		t.Errorf("constant series: %v", p)
	}
	if at, p := Pettitt(nil); at != 0 || p != 1 {
		t.Errorf("of nothing: %d, %v", at, p)
	}
}

func TestAutocorrelation(t *testing.T) {
	t.Parallel()
	alternating := []float64{1, -1, 1, -1, 1, -1, 1, -1}
	if r := Autocorrelation(alternating, 1); math.Abs(r+7.0/8) > 1e-12 {
		t.Errorf("alternating: %v", r)
	}
	if r := Autocorrelation([]float64{2, 2, 2}, 1); r != 0 {
		t.Errorf("constant: %v", r)
	}
}

// TestJudge holds the verdicts against simulated series.
func TestJudge(t *testing.T) {
	t.Parallel()
	series := func(n int, noise float64, level func(i int) float64) []float64 {
		r := rand.New(rand.NewPCG(7, 8))
		s := make([]float64, n)
		for i := range s {
			s[i] = level(i) * (1 + noise*r.NormFloat64())
		}
		return s
	}
	flat := func(int) float64 { return 1 }
	yes, no := new(true), new(false)
	tests := []struct {
		name     string
		s        []float64
		steady   *bool
		unstable bool
		modes    int
	}{
		{"few", series(9, 0.01, flat), nil, false, 1},
		{"steady", series(100, 0.01, flat), yes, false, 1},
		{"steady and noisy", series(100, 0.1, flat), yes, true, 1},
		{"steady and long", series(5000, 0.01, flat), yes, false, 1},
		{"drift", series(100, 0.01, func(i int) float64 { return 1 + 0.1*float64(i)/100 }), no, true, 1},
		{"small drift does not matter", series(100, 0.001, func(i int) float64 { return 1 + 0.01*float64(i)/100 }), yes, false, 1},
		{"step", series(100, 0.01, func(i int) float64 {
			if i < 30 {
				return 1.2
			}
			return 1
		}), no, true, 2},
		{"two modes in turn", series(100, 0.005, func(i int) float64 { return 1 + 0.3*float64(i%2) }), yes, true, 2},
		{"constant", series(100, 0, flat), yes, false, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := Judge(tt.s)
			if d := cmp.Diff(tt.steady, j.Steady); d != "" || j.Unstable != tt.unstable || j.Modes != tt.modes {
				t.Errorf("%+v", j)
			}
			if (j.Reason == "") != (tt.steady == yes) {
				t.Errorf("reason %q", j.Reason)
			}
		})
	}
	if j := Judge(series(100, 0.01, lowered)); j.ChangeAt < 29 || j.ChangeAt > 31 || math.Abs(j.Change+1.0/6) > 0.02 {
		t.Errorf("change by %v at %d", j.Change, j.ChangeAt)
	}
}

func lowered(i int) float64 {
	if i < 30 {
		return 1.2
	}
	return 1
}

// TestJudgeRarelyCriesWolf counts false alarms on independent samples.
func TestJudgeRarelyCriesWolf(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	alarms := 0
	for range 500 {
		s := make([]float64, 50)
		for i := range s {
			s[i] = 1 + 0.1*r.NormFloat64()
		}
		if j := Judge(s); !*j.Steady {
			alarms++
		}
	}
	if alarms > 20 {
		t.Errorf("%d false alarms in 500 steady series", alarms)
	}
}
