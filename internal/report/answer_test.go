package report

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// TestAnswers has one sentence for each comparison: which run is faster, by how much, and how sure.
func TestAnswers(t *testing.T) {
	t.Parallel()
	f := func(v float64) *float64 { return &v }
	n := func(v int64) *int64 { return &v }
	run := func(name string, total float64) compare.Run {
		return compare.Run{Name: name, Model: "net", DType: "float32", Target: "host", Engine: "opmeter", Threads: n(1), Total: compare.Figure{Value: &total, Low: f(0.9 * total), High: f(1.1 * total)}}
	}
	faster := compare.Ratio{Value: f(0.5), Low: f(0.4), High: f(0.6), Verdict: compare.Faster}
	for _, c := range []struct {
		name   string
		ratio  compare.Ratio
		change func(first, r *compare.Run)
		want   string
	}{
		{"faster", compare.Ratio{Value: f(0.8), Low: f(0.75), High: f(0.85), Verdict: compare.Faster}, nil, "b is 1.25x as fast as a (162 vs 199 µs; 95 % CI 1.18 to 1.33)"},
		{"slower", compare.Ratio{Value: f(1.25), Low: f(1.2), High: f(1.3), Verdict: compare.Slower}, nil, "b takes 1.25x as long as a (162 vs 199 µs; 95 % CI 1.20 to 1.30)"},
		{"an estimate", compare.Ratio{Value: f(2), Low: f(1), High: f(4), Interval: compare.Band90, Verdict: compare.Open}, func(_, r *compare.Run) { r.Total.Interval = compare.Band90 }, "b is not measurably faster or slower than a: the estimate of b holds within ± 10.0 % (162 vs 199 µs; ratio 2.00, 90 % band 1.00 to 4.00)"},
		{"a lopsided estimate", compare.Ratio{Value: f(2), Low: f(1), High: f(4), Interval: compare.Band90, Verdict: compare.Open}, func(_, r *compare.Run) {
			r.Total.Interval, r.Total.Low, r.Total.High = compare.Band90, f(88e-6), f(374e-6)
		}, "b is not measurably faster or slower than a: the 90 % band of b is 88.0 to 374 µs (162 vs 199 µs; ratio 2.00, 90 % band 1.00 to 4.00)"},
		{"equal", compare.Ratio{Value: f(1), Low: f(0.96), High: f(1.04), Verdict: compare.Alike}, nil, "b is as fast as a within 5 % (162 vs 199 µs; ratio 1.00, 95 % CI 0.960 to 1.04)"},
		{"undecided", compare.Ratio{Value: f(0.9), Low: f(0.7), High: f(1.2), Verdict: compare.Open}, func(_, r *compare.Run) { r.Tolerance = f(0.17) }, "b is not measurably faster or slower than a: another process of b may differ by 17.0 % (162 vs 199 µs; ratio 0.900, 95 % CI 0.700 to 1.20)"},
		{"disturbed", compare.Ratio{Value: f(0.9), Low: f(0.7), High: f(1.2), Verdict: compare.Open}, func(x, _ *compare.Run) { x.Trust, x.Tolerance = profile.Unreliable, f(0.3) }, "b is not measurably faster or slower than a: a was disturbed and may be off by 30.0 % (162 vs 199 µs; ratio 0.900, 95 % CI 0.700 to 1.20)"},
		{"profiles", compare.Ratio{Value: f(0.9), Low: f(0.7), High: f(1.2), Verdict: compare.Open}, func(_, r *compare.Run) { r.Repeats = 3 }, "b is not measurably faster or slower than a: the 3 profiles of b leave ± 10.0 % (162 vs 199 µs; ratio 0.900, 95 % CI 0.700 to 1.20)"},
		{"no interval", compare.Ratio{Value: f(0.5), Verdict: compare.Open}, func(_, r *compare.Run) { r.Total.Low = nil }, "b and a: undecided, b has too few runs for an interval (162 vs 199 µs; ratio 0.500)"},
		{"unreliable", compare.Ratio{Value: f(0.5), Low: f(0.4), High: f(0.6), Verdict: compare.Faster}, func(_, r *compare.Run) { r.Trust = profile.Unreliable }, "b is 2.00x as fast as a (162 vs 199 µs; 95 % CI 1.67 to 2.50) · unstable: repeat the measurement"},
		{"no ratio", compare.Ratio{}, nil, "b and a: no ratio, since the total of one is missing or incomplete"},
		{"instructions", compare.Ratio{Value: f(0.5), Low: f(0.5), High: f(0.5), Interval: compare.Exact, Verdict: compare.Less}, nil, "b is 2.00x as fast as a (162 vs 199 µs)"},
		{"equal instructions", compare.Ratio{Value: f(1), Low: f(1), High: f(1), Interval: compare.Exact, Verdict: compare.Alike}, nil, "b takes as long as a (162 µs)"},
		{"other shapes", compare.Ratio{Value: f(0.5), Low: f(0.4), High: f(0.6), Verdict: compare.Incomparable}, func(_, r *compare.Run) {
			r.WhyNot = map[compare.Topic]compare.NoteCode{compare.Time: compare.OtherShapes}
		}, "b and a: latencies do not compare, other input shapes (162 vs 199 µs)"},
		{"threads", faster, func(_, r *compare.Run) { r.Threads = n(2) }, "b [2 threads] is 2.00x as fast as a [1 thread] (162 vs 199 µs; 95 % CI 1.67 to 2.50)"},
		{"types", faster, func(_, r *compare.Run) { r.DType = "int8" }, "b [int8] is 2.00x as fast as a [float32] (162 vs 199 µs; 95 % CI 1.67 to 2.50)"},
		{"all", faster, func(_, r *compare.Run) { r.Model, r.Target, r.Engine, r.Threads = "other", "chip", "tflm", nil }, "b [other, chip, tflm] is 2.00x as fast as a [net, host, opmeter] (162 vs 199 µs; 95 % CI 1.67 to 2.50)"},
		{"one word for several", faster, func(_, r *compare.Run) { r.Source, r.Target, r.Engine = compare.Imported, "imported", "imported" }, "b [imported] is 2.00x as fast as a [host, opmeter] (162 vs 199 µs; 95 % CI 1.67 to 2.50)"},
		{"named after the engine", faster, func(x, r *compare.Run) { r.Engine, r.Name, x.Name = "tflm", "tflm", "opmeter" }, "tflm is 2.00x as fast as opmeter (162 vs 199 µs; 95 % CI 1.67 to 2.50)"},
	} {
		x := &compare.Table{Quantity: "latency_s", Unit: "s", Topic: compare.Time, Runs: []compare.Run{run("a", 199e-6), run("b", 162e-6)}}
		x.Runs[0].Total.Low = f(190e-6)
		x.Runs[1].Ratio = c.ratio
		if c.change != nil {
			c.change(&x.Runs[0], &x.Runs[1])
		}
		if got := answers(x); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestAnswersDecide says what would decide between measured runs, and only there.
func TestAnswersDecide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		source  compare.Source
		verdict compare.Verdict
		want    int
	}{
		{"measured", compare.Measured, compare.Open, 2},
		{"estimated", compare.Estimated, compare.Open, 1},
		{"decided", compare.Measured, compare.Faster, 1},
		{"not compared", compare.Measured, compare.Incomparable, 1},
	} {
		run := compare.Run{Name: "a", Source: c.source, Total: compare.Figure{Value: new(1.0), Low: new(0.9), High: new(1.1)}}
		x := &compare.Table{Quantity: "latency_s", Unit: "s", Topic: compare.Time, Runs: []compare.Run{run, run}}
		x.Runs[1].Ratio = compare.Ratio{Value: new(1.0), Low: new(0.8), High: new(1.2), Verdict: c.verdict}
		if got := answers(x); len(got) != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestAnswerUndecidedRate says that a ratio of rates is open, in the unit of the quantity.
func TestAnswerUndecidedRate(t *testing.T) {
	t.Parallel()
	figure := func(v float64) compare.Figure { return compare.Figure{Value: &v} }
	p := &profile.Profile{}
	x := &compare.Table{
		Quantity: "ops_per_s", Unit: "/s", Topic: compare.Time, Profiles: []*profile.Profile{p, p},
		Runs: []compare.Run{{Name: "a", Total: figure(101e9)}, {Name: "b", Total: figure(135e9), Ratio: compare.Ratio{Value: new(1.33), Low: new(0.9), High: new(1.9), Verdict: compare.Open}}},
	}
	if got, want := answers(x)[0], "b and a: operations per second undecided (ratio 1.33, 135 vs 101 Gop/s; 95 % CI 0.900 to 1.90)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := versusTitle(x); got != "operations per second" {
		t.Error(got)
	}
	x.Runs[1].Ratio.Verdict = compare.More
	if got, want := answers(x)[0], "b: operations per second 1.33x that of a (135 vs 101 Gop/s; 95 % CI 0.900 to 1.90)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPlusMinus writes both ends of an interval whose middle is not the figure.
func TestPlusMinus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    compare.Figure
		want string
	}{
		{compare.Figure{Value: new(10.0), Low: new(9.0), High: new(11.0)}, "± 10.0 %"},
		{compare.Figure{Value: new(11.8), Low: new(6.38), High: new(27.2), Interval: compare.Band90}, "6.38 to 27.2 s (90 % band)"},
		{compare.Figure{Value: new(10.0), Low: new(10.0), High: new(10.0)}, "± 0.0 %"},
	} {
		if got := plusMinus(c.f, "95 % CI", Duration); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestWholeShares writes figures without a unit below 1 without a prefix.
func TestWholeShares(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0.0909: "0.0909", 0.95: "0.95", 0.3: "0.3", 0: "0", 12: "12", 2.5e6: "2.50 M"} {
		row := &compare.Row{Figures: []compare.Figure{{Value: &v}}}
		if got := versusWholeCells(row)[0]; got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// TestLegendOfCounts speaks of chance only where something was measured or estimated.
func TestLegendOfCounts(t *testing.T) {
	t.Parallel()
	x := &compare.Table{Runs: []compare.Run{{Source: compare.Counted}, {Source: compare.Counted}}}
	if s := words.VersusLegend(x); strings.Contains(s, "chance") {
		t.Error(s)
	}
	x.Runs[1].Source = compare.Estimated
	if s := words.VersusLegend(x); !strings.Contains(s, "chance") {
		t.Error(s)
	}
}

// TestTooLargeNote says of a target in the words of its finding that it does not run the model.
func TestTooLargeNote(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Findings: []profile.Finding{
		{ID: "target.flash", Severity: profile.Info, Text: "The model fits."},
		{ID: "target.ram", Severity: profile.Problem, Text: "The activation peak of 384 KiB does not fit."},
	}}
	x := &compare.Table{Runs: []compare.Run{{Name: "a"}, {Name: "b"}}, Profiles: []*profile.Profile{{}, p}}
	if got, want := words.VersusNote(x, &compare.Note{Code: compare.TooLarge, Runs: []int{1}}), "b: The activation peak of 384 KiB does not fit."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
