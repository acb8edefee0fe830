package figures

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loadgen"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

func ids(fs []profile.Finding) (out []string) {
	for _, f := range fs {
		out = append(out, f.ID)
	}
	return out
}

func TestStreams(t *testing.T) {
	t.Parallel()
	times := []float64{0.010, 0.010, 0.020, 0.020, 0.030, 0.030}
	res := &loadgen.Result{
		Streams: []loadgen.Stream{{Spans: []loadgen.Span{{Start: 900, End: 1000}, {Start: 1000, End: 1_001_000}, {Start: 2_001_000, End: 3_001_000}}}, {}},
		Window:  2, Inferences: 300, PerSecond: 150, Fairness: 0.5, Busy: 1.5, Latency: stats.Summarize(times), Samples: times,
		Response: stats.Summarize(nil), Waiting: stats.Summarize(nil),
	}
	got := Streams(res, processSpread)
	for key, want := range map[string]float64{"inferences_per_s": 150, "loaded_latency_s": 0.020, "stream_fairness": 0.5, "loaded_processor_s": 0.01} {
		if v, ok := got[key].Best(); !ok || math.Abs(v-want) > 1e-15 { // one division
			t.Errorf("%s is %v, want %v", key, v, want)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d figures: %v", len(got), got)
	}
	// Every figure is in the table of quantities, as a figure of the whole model.
	for key := range got {
		if q, ok := profile.Lookup(key); !ok || !q.Model {
			t.Errorf("%s: %+v", key, q)
		}
	}
	p := &profile.Profile{Totals: profile.Totals{Latency: profile.Value(profile.Measured, 0.007, "")}}
	// 150 per second are 1.05 times 1/7 ms.
	fs := StreamFindings(p, res, 2, 2)
	if s := ids(fs); len(s) != 3 || s[0] != "streams.scaling" || fs[0].Severity != profile.Warning || s[1] != "streams.unfair" || s[2] != "streams.crowded" {
		t.Errorf("%+v", fs)
	}
	p.Trust = &profile.Trust{Verdict: profile.Unreliable}
	if s := ids(StreamFindings(p, res, 1, 2)); len(s) != 1 {
		t.Errorf("compared with what cannot be relied upon: %v", s)
	}
	line := &timeline.Timeline{}
	StreamLanes(line, res, 1000)
	if len(line.Lanes) != 1 || len(line.Lanes[0].Starts) != 2 || line.Lanes[0].Starts[0] != 0 || line.Lanes[0].Starts[1] != 0.002 || line.Lanes[0].Durations[1] != 0.001 {
		t.Errorf("%+v", line.Lanes)
	}
	if err := line.Validate(0); err != nil {
		t.Error(err)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	res := &loadgen.Result{
		Streams: []loadgen.Stream{{}}, Window: 1, Inferences: 100, PerSecond: 100, Fairness: math.NaN(), Busy: math.NaN(),
		Latency: stats.Summarize([]float64{0.01}), Response: stats.Summarize([]float64{0.5}), Waiting: stats.Summarize([]float64{0.49}), Due: 200, Late: 99, Unstarted: 100,
	}
	got := Streams(res, processSpread)
	for key, want := range map[string]float64{"response_s": 0.5, "waiting_s": 0.49, "due_inferences": 200, "late_inferences": 99, "unstarted_inferences": 100} {
		if v, ok := got[key].Best(); !ok || v != want {
			t.Errorf("%s is %v, want %v", key, v, want)
		}
	}
	if got["stream_fairness"] != nil || got["loaded_processor_s"] != nil {
		t.Errorf("figures of nothing: %v", got)
	}
	if s := ids(StreamFindings(&profile.Profile{}, res, 1, 1)); len(s) != 1 || s[0] != "rate.unstarted" {
		t.Errorf("%v", s)
	}
	res.Unstarted = 0
	if s := ids(StreamFindings(&profile.Profile{}, res, 1, 1)); len(s) != 1 || s[0] != "rate.late" {
		t.Errorf("%v", s)
	}
	// Stopped before the window opened: no figures.
	nan := math.NaN()
	none := stats.Summarize(nil)
	if got := Streams(&loadgen.Result{Window: nan, PerSecond: nan, Fairness: nan, Busy: nan, Latency: none, Response: none, Waiting: none}, processSpread); len(got) != 0 {
		t.Errorf("figures of nothing: %v", got)
	}
}

func TestCold(t *testing.T) {
	t.Parallel()
	m := Cold(&loadgen.Result{Latency: stats.Summarize([]float64{0.02, 0.03, 0.04}), Samples: []float64{0.02, 0.03, 0.04}}, "how", processSpread)
	p := &profile.Profile{Totals: profile.Totals{Latency: profile.Value(profile.Measured, 0.01, "")}}
	if err := p.Totals.Set("cold_latency_s", m); err != nil || *m.Median != 0.03 {
		t.Fatal(err, m)
	}
	if fs := ColdFindings(p, "cold_latency_s", "With cold caches an inference takes"); len(fs) != 1 || fs[0].Text != "With cold caches an inference takes 30 ms, 3 times as long as a warm one." {
		t.Errorf("%+v", fs)
	}
	if fs := ColdFindings(p, "cold_start_s", "It takes"); fs != nil {
		t.Errorf("%+v", fs)
	}
}

// Cold inferences that the system disturbed do not count if enough others are there.
func TestColdDisturbed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calm, hit int
		want      float64
		method    string
	}{
		{15, 25, 0.02, "how; undisturbed inferences"},
		{3, 25, 0.09, "how"}, // too few
		{15, 0, 0.02, "how"},
	} {
		res := &loadgen.Result{}
		for i := range c.calm + c.hit {
			hit := (i+1)*c.hit/(c.calm+c.hit) > i*c.hit/(c.calm+c.hit)
			res.Disturbed = append(res.Disturbed, hit)
			res.Samples = append(res.Samples, map[bool]float64{false: 0.02, true: 0.09}[hit])
		}
		if m := Cold(res, "how", processSpread); *m.Median != c.want || m.Method != c.method {
			t.Errorf("%d and %d: %g by %q, want %g by %q", c.calm, c.hit, *m.Median, m.Method, c.want, c.method)
		}
	}
	if m := Cold(&loadgen.Result{}, "how", processSpread); m != nil {
		t.Errorf("of nothing: %+v", m)
	}
}

// TestThroughputInterval: a throughput has the confidence interval of a repeated run, from parts
// of the window.
func TestThroughputInterval(t *testing.T) {
	t.Parallel()
	streams := func(parts ...float64) *profile.Metric {
		none := stats.Summarize(nil)
		return Streams(&loadgen.Result{
			Streams: make([]loadgen.Stream, 2), Window: 1, Inferences: 100, PerSecond: 100, Rates: parts, Fairness: math.NaN(), Busy: math.NaN(), Latency: none, Response: none, Waiting: none,
		}, processSpread)["inferences_per_s"]
	}
	// Three parts with a standard deviation of 10 and no correlation of neighbours; Student's
	// quantile of two degrees of freedom, 0.5 % by which processes differ, and both runs have the
	// error.
	half := math.Sqrt2 * math.Hypot(4.302652729749464*10/math.Sqrt(3), 1.959964*0.5)
	m := streams(100, 110, 90)
	if m == nil || *m.Median != 100 || m.CI95 == nil || !(math.Abs(m.CI95[0]-(100-half)) <= 1e-9) || !(math.Abs(m.CI95[1]-(100+half)) <= 1e-9) {
		t.Errorf("%+v, want 100 ± %v", m, half)
	}
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	// A throughput is never negative.
	if m := streams(10, 190, 100); m.CI95 == nil || m.CI95[0] != 0 {
		t.Errorf("%+v", m.CI95)
	}
	for _, parts := range [][]float64{nil, {100}, {100, 100}, {100, math.NaN(), 100}} {
		if m := streams(parts...); m == nil || m.CI95 != nil || *m.Median != 100 {
			t.Errorf("%v: %+v", parts, m)
		}
	}
}
