package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func close12(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-12*math.Max(1, math.Abs(want))) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestSpread has figures that can be worked out by hand.
func TestSpread(t *testing.T) {
	t.Parallel()
	s := []float64{2, 4, 4, 4, 5, 5, 7, 9} // mean 5, squares of differences 32
	close12(t, "sum", Sum(s), 40)
	close12(t, "mean", Mean(s), 5)
	close12(t, "standard deviation", StdDev(s), math.Sqrt(32.0/7))
	close12(t, "coefficient of variation", CV(s), math.Sqrt(32.0/7)/5)
	close12(t, "median", Median(s), 4.5)
	close12(t, "absolute deviation", MAD(s), 0.5) // 2.5 0.5 0.5 0.5 0.5 0.5 2.5 4.5
	if !math.IsNaN(StdDev(s[:1])) || !math.IsNaN(MAD(nil)) || !math.IsNaN(Median(nil)) || Sum(nil) != 0 {
		t.Error("spread of too few")
	}
	// With compensation 1 survives beside 1e16, where every second one is lost without.
	many := append([]float64{1e16}, slices.Repeat([]float64{1}, 1000)...)
	if got := Sum(many); got != 1e16+1000 {
		t.Errorf("sum %v, want %v", got, 1e16+1000)
	}
	// Exactly on a fence is inside it. Quartiles 0 and 4: fences -6, 10, -12 and 16.
	for v, want := range map[float64]Outliers{-6: {}, -6.5: {LowMild: 1}, -12: {LowMild: 1}, -12.5: {LowSevere: 1}, 10: {}, 10.5: {HighMild: 1}, 16: {HighMild: 1}, 16.5: {HighSevere: 1}} {
		in := []float64{0, 0, 0, 2, 4, 4, 4}
		if v < 0 {
			in = append([]float64{v, 0}, in[1:]...)
			in = append(in, 4)
		} else {
			in = append([]float64{0}, append(in[:6:6], 4, v)...)
		}
		if q1, q3 := Quantile(in, 0.25), Quantile(in, 0.75); q1 != 0 || q3 != 4 {
			t.Fatalf("quartiles of %v are %v and %v", in, q1, q3)
		}
		o := Tukey(in)
		if o != want {
			t.Errorf("%v: %+v, want %+v", v, o, want)
		}
		if o.Mild() != want.LowMild+want.HighMild || o.Severe() != want.LowSevere+want.HighSevere {
			t.Errorf("%v: %d mild, %d severe", v, o.Mild(), o.Severe())
		}
	}
	if got := Summarize([]float64{0, 0, 0, 4, 4, 4, 4, 100, -100}).Outliers; got == nil || *got != 2 {
		t.Errorf("outliers %v, want 2", got)
	}
	for n, want := range map[int]bool{3: false, 4: true} {
		if got := Summarize(slices.Repeat([]float64{1}, n)).Outliers; (got != nil) != want {
			t.Errorf("outliers of %d samples: %v", n, got)
		}
	}
	// Samples evenly from 0 to 100 have their percentiles at these.
	line := make([]float64, 401)
	for i := range line {
		line[i] = float64(i) / 4
	}
	m := Summarize(line)
	for name, x := range map[string][2]float64{"p90": {*m.P90, 90}, "p95": {*m.P95, 95}, "p99": {*m.P99, 99}, "median": {m.Median, 50}, "least": {m.Min, 0}, "greatest": {m.Max, 100}, "deviation": {*m.MAD, 25}} {
		close12(t, name, x[0], x[1])
	}
}

// pettitt is the test by its definition: for each place the signs of all pairs across it.
func pettitt(s []float64) (u []float64) {
	u = make([]float64, len(s))
	for at := 1; at < len(s); at++ {
		for _, a := range s[:at] {
			for _, b := range s[at:] {
				switch {
				case a < b:
					u[at]--
				case a > b:
					u[at]++
				}
			}
		}
	}
	return u
}

// TestTrendsByDefinition compares with sums over all pairs, on series with many ties.
func TestTrendsByDefinition(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 32))
	for range 400 {
		s := make([]float64, 2+r.IntN(30))
		for i := range s {
			s[i] = float64(r.IntN(6))
			if i > len(s)/2 {
				s[i] += float64(r.IntN(3))
			}
		}
		n := float64(len(s))
		u := pettitt(s)
		k, sharpest := 0.0, 0.0
		for i := 1; i < len(s); i++ {
			k = max(k, math.Abs(u[i]))
			sharpest = max(sharpest, math.Abs(u[i])/math.Sqrt(float64(i)*(n-float64(i))))
		}
		at, p := Pettitt(s)
		close12(t, "Pettitt's probability", p, math.Min(1, 2*math.Exp(-6*k*k/(n*n*n+n*n))))
		if sharpest > 0 {
			close12(t, "the sharpest change", math.Abs(u[at])/math.Sqrt(float64(at)*(n-float64(at))), sharpest)
		} else if at != 0 {
			t.Errorf("a change at %d of a constant series", at)
		}

		// Mann and Kendall: the variance without ties less that of each group of equals.
		sum, slopes := 0.0, []float64(nil)
		count := map[float64]float64{}
		for i := range s {
			count[s[i]]++
			for j := range i {
				slopes = append(slopes, (s[i]-s[j])/float64(i-j))
				if s[i] != s[j] {
					sum += math.Copysign(1, s[i]-s[j])
				}
			}
		}
		variance := n * (n - 1) * (2*n + 5) / 18
		for _, c := range count {
			variance -= c * (c - 1) * (2*c + 5) / 18
		}
		want := 1.0
		if n >= 4 && variance > 1e-9 && sum != 0 {
			want = math.Erfc((math.Abs(sum) - 1) / math.Sqrt(variance) / math.Sqrt2)
		}
		close12(t, "Mann and Kendall's probability", MannKendall(s), want)
		close12(t, "slope", TheilSen(s), Median(slopes))
	}
	if got := MannKendall([]float64{1, 2, 3}); got != 1 {
		t.Errorf("a trend of three: %v", got)
	}
	if got := MannKendall([]float64{1, 2, 3, 4}); !(got < 1) { // z = 5/sqrt(26/3)
		t.Errorf("a trend of four: %v", got)
	}
	if got := TheilSen([]float64{3, 5}); got != 2 {
		t.Errorf("slope of two: %v", got)
	}
	// 2 exp(-6/12) is above 1
	if at, p := Pettitt([]float64{1, 2}); at != 1 || !(math.Abs(p-1) <= 1e-12) {
		t.Errorf("a change of two: %d, %v", at, p)
	}
	if at, _ := Pettitt([]float64{1}); at != 0 {
		t.Errorf("a change of one at %d", at)
	}
}

// TestAutocorrelationByHand has lags of one and two: differences from the mean are
// -1.5, -0.5, 0.5 and 1.5.
func TestAutocorrelationByHand(t *testing.T) {
	t.Parallel()
	s := []float64{1, 2, 3, 4}
	close12(t, "itself", Autocorrelation(s, 0), 1)
	close12(t, "one later", Autocorrelation(s, 1), 1.25/5)
	close12(t, "two later", Autocorrelation(s, 2), -1.5/5)
	close12(t, "three later", Autocorrelation(s, 3), -2.25/5)
	close12(t, "beyond the end", Autocorrelation(s, 4), 0)
}

// TestModes tells two groups from one: from 20 samples on, with a tenth on either side,
// five times as far apart as each spreads, and by more than a fortieth.
func TestModes(t *testing.T) {
	t.Parallel()
	group := func(n int, at, spread float64) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = at + spread*float64(i%2)
		}
		return s
	}
	for _, c := range []struct {
		name string
		s    []float64
		want int
	}{
		{"two groups", append(group(10, 1, 0), group(10, 2, 0)...), 2},
		{"19 samples", append(group(9, 1, 0), group(10, 2, 0)...), 1},
		{"a tenth above", append(group(18, 1, 0), group(2, 2, 0)...), 2},
		{"a tenth below", append(group(2, 1, 0), group(18, 2, 0)...), 2},
		{"less than a tenth", append(group(19, 1, 0), group(1, 2, 0)...), 1},
		{"less than a tenth of many", append(group(91, 1, 0), group(9, 2, 0)...), 1},
		{"a tenth of many", append(group(90, 1, 0), group(10, 2, 0)...), 2},
		{"close", append(group(10, 1, 0), group(10, 1.024, 0)...), 1},
		{"just apart", append(group(10, 1, 0), group(10, 1.027, 0)...), 2},
		{"none", group(20, 1, 0), 1},
		// The spread of ten at 0 and s in turn is 0.527 s; the gap is 1 less s.
		{"spread wide", append(group(10, 1, 0.3), group(10, 2, 0)...), 1},
		{"spread less", append(group(10, 1, 0.25), group(10, 2, 0)...), 2},
		{"the other spread wide", append(group(10, 1, 0), group(10, 2, 0.45)...), 1},
		{"the other spread less", append(group(10, 1, 0), group(10, 2, 0.3)...), 2},
	} {
		in := slices.Clone(c.s)
		slices.Reverse(in) // the order does not matter
		if got := Modes(in); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestJudgeFigures has the figures behind verdicts, and what is told.
func TestJudgeFigures(t *testing.T) {
	t.Parallel()
	line := make([]float64, 41) // from 1 to 1.4
	for i := range line {
		line[i] = 1 + float64(i)/100
	}
	j := Judge(line)
	close12(t, "coefficient of variation", j.CV, 0.01*math.Sqrt(41*42/12.0)/1.2)
	close12(t, "from the median", j.RobustCV, 1.4826*0.10/1.2)
	close12(t, "limit", j.AutoLimit, 2/math.Sqrt(41))
	if !(math.Abs(j.Drift-0.4/1.2) <= 1e-9) || !(j.DriftP < 1e-9) || j.N != 41 || !j.Unstable || !(j.Lag1 > 0.8) {
		t.Errorf("drift %v (%v) of %d, correlation %v", j.Drift, j.DriftP, j.N, j.Lag1)
	}
	// Half of it is a step, which is told first.
	if !j.Changed() || !strings.HasPrefix(j.Reason, "the time changes by +") {
		t.Errorf("a line: %q", j.Reason)
	}
	// A change of level at a known place, upwards and downwards, of 3 % and of 2 %.
	step := func(n, at int, by float64) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = 1
			if i >= at {
				s[i] = 1 + by
			}
		}
		return s
	}
	for _, c := range []struct {
		n, at int
		by    float64
		want  string
	}{
		{60, 20, 0.03, "the time changes by +3.0 % at run 21 of 60"},
		{60, 20, -0.03, "the time changes by -3.0 % at run 21 of 60"},
		{60, 20, 0.02, ""},
		{60, 20, -0.02, ""},
		// looked at in 500 blocks
		{5000, 2000, 0.5, "the time changes by +50.0 % at run 2001 of 5000"},
		{501, 250, 0.5, ""},
	} {
		j := Judge(step(c.n, c.at, c.by))
		if c.n == 501 { // blocks of one and of two: the place is known to one run
			if j.ChangeAt < 249 || j.ChangeAt > 251 {
				t.Errorf("%+v: at %d", c, j.ChangeAt)
			}
			continue
		}
		if j.Steady == nil || *j.Steady != (c.want == "") || j.Reason != c.want || j.ChangeAt != c.at {
			t.Errorf("%+v: %q at %d", c, j.Reason, j.ChangeAt)
		}
		close12(t, "change", j.Change, c.by)
	}
	// A drift alone counts where the change is small: halves of a line of 4 % are 2 %
	// apart.
	small := make([]float64, 100)
	for i := range small {
		small[i] = 1 + 0.04*float64(i)/99
	}
	if j := Judge(small); j.Steady == nil || *j.Steady || j.Changed() || j.Reason != "the time drifts by +3.9 % over 100 runs" {
		t.Errorf("a drift of 4 %%: %+v", j)
	}
	slices.Reverse(small)
	if j := Judge(small); j.Steady == nil || *j.Steady || j.Reason != "the time drifts by -3.9 % over 100 runs" {
		t.Errorf("a drift downwards: %+v", j)
	}
	// Nine are too few to tell, ten are enough; the spread of two is told.
	for n, enough := range map[int]bool{0: false, 1: false, 2: false, 9: false, 10: true} {
		j := Judge(slices.Repeat([]float64{2}, n))
		if (j.Steady != nil) != enough || j.DriftP != 1 || j.ChangeP != 1 || j.Modes != 1 || j.N != n {
			t.Errorf("%d runs: %+v", n, j)
		}
		if want := fmt.Sprintf("%d runs are too few to tell a steady state (10 are needed)", n); !enough && j.Reason != want {
			t.Errorf("%d runs: %q", n, j.Reason)
		}
	}
	if j := Judge([]float64{1, 3}); !(math.Abs(j.CV-math.Sqrt2/2) <= 1e-12) || !j.Unstable || !(math.Abs(j.RobustCV-1.4826/2) <= 1e-12) {
		t.Errorf("two runs: %+v", j)
	}
	if j := Judge([]float64{5}); j.CV != 0 || j.Unstable {
		t.Errorf("one run: %+v", j)
	}
	// A fortieth is the limit of what is called unstable.
	for _, c := range []struct {
		d        float64
		unstable bool
	}{{0.0249, false}, {0.0251, true}} {
		// Two samples d*sqrt 2 apart around 1 deviate by d.
		if j := Judge([]float64{1 - c.d/math.Sqrt2, 1 + c.d/math.Sqrt2}); j.Unstable != c.unstable {
			t.Errorf("%v: unstable %v", c.d, j.Unstable)
		}
	}
}

// TestRepeatedByHand has the interval of a repeated series for series whose blocks are
// known.
func TestRepeatedByHand(t *testing.T) {
	t.Parallel()
	half := func(tq, sd, n, rho, floor float64) float64 {
		return math.Sqrt2 * math.Hypot(tq*sd/math.Sqrt(n)*math.Sqrt((1+rho)/(1-rho)), 1.959964*floor)
	}
	ramp := func(n int) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = float64(i + 1)
		}
		return s
	}
	for _, c := range []struct {
		name         string
		series       []float64
		floor        float64
		middle, half float64
		blocks       int
	}{
		// Correlation 1.25/5; Student's quantile of three degrees of freedom.
		{"four", ramp(4), 0, 2.5, half(3.182446, math.Sqrt(5.0/3), 4, 0.25, 0), 4},
		{"four, falling together with a floor", []float64{4, 3, 2, 1}, 0.1, 2.5, half(3.182446, math.Sqrt(5.0/3), 4, 0.25, 0.25), 4},
		// Alternating neighbours are not taken to be surer: 1 and 3 in turn deviate by
		// sqrt(4/3).
		{"four in turn", []float64{1, 3, 1, 3}, 0, 2, half(3.182446, math.Sqrt(4.0/3), 4, 0, 0), 4},
		// Twenty in a line have a correlation of 0.85, of which 0.8 counts.
		{"twenty", ramp(20), 0, 10.5, half(2.093024, math.Sqrt(35), 20, 0.8, 0), 20},
		// Forty are twenty blocks of two, in the middle of each.
		{"forty", ramp(40), 0, 20.5, half(2.093024, 2*math.Sqrt(35), 20, 0.8, 0), 20},
	} {
		r, ok := Repeated(c.series, c.floor)
		// The quantile is good to a thousandth.
		if !ok || r.Blocks != c.blocks || !(math.Abs(r.Middle-c.middle) <= 1e-12) || !(math.Abs(r.High-r.Middle-c.half) <= 0.001*c.half) || !(math.Abs(r.Middle-r.Low-c.half) <= 0.001*c.half) {
			t.Errorf("%s: %+v, want %v ± %v of %d blocks", c.name, r, c.middle, c.half, c.blocks)
		}
	}
	// Quantiles of tables, to a thousandth.
	for v, want := range map[int]float64{1: 12.706205, 2: 4.302653, 3: 3.182446, 4: 2.776445, 7: 2.364624, 12: 2.178813, 30: 2.042272} {
		if got := StudentQuantile(0.05, float64(v)); !(math.Abs(got-want) <= 0.001*want) {
			t.Errorf("%d degrees of freedom: %v, want %v", v, got, want)
		}
	}
}

// TestThinned makes medians of blocks that hold every sample once.
func TestThinned(t *testing.T) {
	t.Parallel()
	line := make([]float64, 1000)
	for i := range line {
		line[i] = float64(i)
	}
	if got := thinned(line, 1000); len(got) != 1000 {
		t.Errorf("%d of as many", len(got))
	}
	got := thinned(line, 500)
	if len(got) != 500 {
		t.Fatalf("%d blocks", len(got))
	}
	for i, v := range got {
		if v != float64(2*i)+0.5 {
			t.Fatalf("block %d is %v", i, v)
		}
	}
	if got := thinned(line[:7], 3); !slices.Equal(got, []float64{0.5, 2.5, 5}) { // 0 1, 2 3, 4 5 6
		t.Errorf("seven in three: %v", got)
	}
}

// TestMedianIntervalByHand is the interval by ranks of the sign test: of six samples the
// extremes, of nine the second from either end.
func TestMedianIntervalByHand(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]float64{6: {1, 6}, 8: {1, 8}, 9: {2, 8}, 12: {3, 10}, 20: {6, 15}} {
		s := make([]float64, n)
		for i := range s {
			s[i] = float64(i + 1)
		}
		lo, hi, ok := MedianInterval(s)
		if !ok || lo != want[0] || hi != want[1] {
			t.Errorf("of %d: %v to %v, want %v", n, lo, hi, want)
		}
	}
	if _, _, ok := MedianInterval([]float64{1, 2, 3, 4, 5}); ok {
		t.Error("an interval of five")
	}
}
