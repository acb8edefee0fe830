package gate

import (
	"math"
	"testing"
	"time"

	"github.com/opmeter/opmeter/profile"
)

func TestExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		rule        Rule
		base, fresh float64
		allowed     float64
		want        Verdict
	}{
		{"equal", Rule{Better: Lower}, 10, 10, 0, Equal},
		{"one more", Rule{Better: Lower}, 1e9, 1e9 + 1, 0, Worse},
		{"one less", Rule{Better: Lower}, 1e9, 1e9 - 1, 0, Better},
		{"margin holds", Rule{Better: Lower, Margin: 0.05}, 100, 105, 5, Within},
		{"margin exceeded", Rule{Better: Lower, Margin: 0.05}, 100, 105.1, 5, Worse},
		{"floor is larger", Rule{Better: Lower, Margin: 0.05, Floor: 20}, 100, 120, 20, Within},
		{"margin is larger", Rule{Better: Lower, Margin: 0.5, Floor: 20}, 100, 151, 50, Worse},
		{"higher is better", Rule{Better: Higher}, 100, 99, 0, Worse},
		{"higher got better", Rule{Better: Higher}, 100, 101, 0, Better},
		{"any change", Rule{Better: Same}, 100, 99, 0, Worse},
		{"from nothing", Rule{Better: Lower, Margin: 1}, 0, 1, 0, Worse},
	} {
		if allowed, got := c.rule.exact(c.base, c.fresh); got != c.want || allowed != c.allowed {
			t.Errorf("%s: %s with %v, want %s with %v", c.name, got, allowed, c.want, c.allowed)
		}
	}
}

// A time is worse or not worse only where its whole interval is; the larger one of margin and floor
// is allowed.
func TestMeasured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		rule      Rule
		low, high float64
		want      Verdict
	}{
		{"clearly worse", Rule{Margin: 0.05}, 1.06, 1.09, Worse},
		{"lower end at the margin", Rule{Margin: 0.05}, 1.05, 1.09, Undecided},
		{"across the margin", Rule{Margin: 0.05}, 0.99, 1.06, Undecided},
		{"upper end at the margin", Rule{Margin: 0.05}, 0.99, 1.05, Undecided},
		{"equivalent", Rule{Margin: 0.05}, 0.98, 1.02, Equal},
		{"slower, within the margin", Rule{Margin: 0.05}, 1.01, 1.04, Within},
		{"faster", Rule{Margin: 0.05}, 0.7, 0.8, Better},
		{"faster or equal, wide", Rule{Margin: 0.05}, 0.5, 1.04, Equal},
		{"floor allows more", Rule{Margin: 0.05, Floor: 1e-4}, 1.06, 1.08, Within},
		{"no interval", Rule{Margin: 0.05}, math.NaN(), math.NaN(), Undecided},
	} {
		row := Measured(&c.rule, 1e-3, 1e-3, Interval{Ratio: (c.low + c.high) / 2, Low: c.low, High: c.high})
		if row.Verdict != c.want || (c.want == Undecided) != (row.Why != "") {
			t.Errorf("%s: %s (%s), want %s", c.name, row.Verdict, row.Why, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	rules := []Rule{
		{Figure: "macs", Better: Lower, Required: true},
		{Figure: "ram_bytes", Better: Lower, Required: true},
		{Figure: "instructions", Better: Lower, Required: true, Target: "emulate:*"},
		{Figure: "params", Better: Lower},
	}
	side := func(f map[string]float64) *Side { return &Side{Figures: f} }
	verdicts := func(base, fresh *Side, known bool) map[string]Verdict {
		out := map[string]Verdict{}
		for _, r := range Judge(rules, base, fresh, known) {
			out[r.Figure] = r.Verdict
		}
		return out
	}
	for _, c := range []struct {
		name        string
		base, fresh *Side
		known       bool
		want        map[string]Verdict
	}{
		{"worse and equal", side(map[string]float64{"macs": 1, "params": 2, "instructions": 5}), side(map[string]float64{"macs": 2, "params": 2, "instructions": 5}), true, map[string]Verdict{"macs": Worse, "params": Equal, "instructions": Equal}},
		{"a figure of this target is unknown", side(nil), side(map[string]float64{"macs": 2}), true, map[string]Verdict{"macs": New, "instructions": Undecided}},
		{"a figure became unknown", side(map[string]float64{"macs": 1, "instructions": 1}), side(map[string]float64{"instructions": 1}), true, map[string]Verdict{"macs": Undecided, "instructions": Equal}},
		{"a new model", nil, side(map[string]float64{"macs": 2, "instructions": 5}), true, map[string]Verdict{"macs": New, "instructions": New}},
		{"no base", nil, side(map[string]float64{"macs": 2, "instructions": 5}), false, map[string]Verdict{"macs": Undecided, "instructions": Undecided}},
	} {
		got := verdicts(c.base, c.fresh, c.known)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		for k, v := range c.want {
			if got[k] != v {
				t.Errorf("%s: %s is %s, want %s", c.name, k, got[k], v)
			}
		}
	}
}

// Figures that are optional or ignored do not decide, and an acknowledgement ends with its day.
func TestDecide(t *testing.T) {
	t.Parallel()
	result := func(rows ...Row) *Result {
		return &Result{Jobs: []Job{{Model: "models/kws.tflite", Target: Host, Figures: rows}}}
	}
	worse := Row{Figure: "macs", Name: "MACs", Required: true, Verdict: Worse}
	open := Row{Figure: "latency_s", Name: "Time", Required: true, Verdict: Undecided}
	optional := Row{Figure: "params", Verdict: Worse}
	store := &Store{Ignores: []Ignore{{Figure: "macs", Model: "kws*", Until: "2030-06-30", Reason: "known"}}}
	before, last, after := time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2030, 6, 30, 23, 59, 59, 0, time.UTC), time.Date(2030, 7, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		rows  []Row
		now   time.Time
		want  Verdict
		notes int
	}{
		{"optional", []Row{optional}, before, Equal, 0},
		{"undecided", []Row{open, optional}, before, Undecided, 0},
		{"ignored", []Row{worse}, before, Equal, 0},
		{"last day", []Row{worse}, last, Equal, 0},
		{"expired", []Row{worse, open}, after, Worse, 1},
	} {
		r := result(c.rows...)
		r.Acknowledge(store, c.now)
		r.Decide()
		if r.Verdict != c.want || len(r.Jobs[0].Notes) != c.notes {
			t.Errorf("%s: %s, notes %q", c.name, r.Verdict, r.Jobs[0].Notes)
		}
	}
}

// A floor that swallows the margin is named with what it allows.
func TestCoarse(t *testing.T) {
	t.Parallel()
	r := &Rule{Figure: Latency, Margin: 0.05, Floor: 20e-6}
	if got := r.Coarse(50e-6); got != "the floor of 20.0 µs allows +40.0 % of 50.0 µs: use a smaller one, so that the margin of +5.0 % decides" {
		t.Errorf("%q", got)
	}
	for _, base := range []float64{0, 1e-3, 400e-6} {
		if got := r.Coarse(base); got != "" {
			t.Errorf("%g s: %q", base, got)
		}
	}
	for _, rule := range Default().For("a.onnx", Host) {
		if rule.Figure == Latency && (rule.Allowance(50e-6) > 0.051*50e-6 || rule.Coarse(10e-6) != "") {
			t.Errorf("the built-in floor of %g s decides for models of 10 and 50 µs", rule.Floor)
		}
	}
}

// An unknown figure and a stand-in are explained by what the estimate found.
func TestReasons(t *testing.T) {
	t.Parallel()
	side := func(id, text string) *Side {
		return NewSide(&profile.Profile{Findings: []profile.Finding{{ID: id, Severity: profile.Warning, Text: text}}})
	}
	rules := []Rule{{Figure: "ram_bytes", Target: "stm32l4r5", Better: Lower, Required: true}}
	rows := Judge(rules, side("x", ""), side("target.memory", "RAM is not known for a file of ONNX."), true)
	if len(rows) != 1 || rows[0].Why != "the figure is not known for this version: RAM is not known for a file of ONNX." {
		t.Errorf("%+v", rows)
	}
	timed := func(id, text string) *Side {
		p := side(id, text).Profile
		p.Totals.Latency = &profile.Metric{Kind: profile.Estimated, Median: new(0.09)}
		p.Totals.MACs = new(int64(7))
		return NewSide(p)
	}
	int8, int16 := timed("x", ""), timed("target.types", "8 layers compute in int16: int8 figures are used.")
	for _, c := range []struct {
		base, fresh *Side
		want        Verdict
		why         string
	}{
		{int8, int16, Undecided, "a stand-in for the new version: 8 layers compute in int16: int8 figures are used."},
		{int16, int8, Undecided, "a stand-in for the base: 8 layers compute in int16: int8 figures are used."},
		{int16, int16, Equal, ""},
		{int8, int8, Equal, ""},
	} {
		rows := Judge([]Rule{{Figure: Latency, Better: Lower}, {Figure: "macs", Better: Lower}}, c.base, c.fresh, true)
		if len(rows) != 2 || rows[0].Verdict != c.want || rows[0].Why != c.why || rows[1].Verdict != Equal {
			t.Errorf("%+v, want %s: %s", rows, c.want, c.why)
		}
	}
}

// The first line names what cannot be read before what has no base: each model once.
func TestAnswerOrder(t *testing.T) {
	t.Parallel()
	row := Row{Figure: "macs", Name: "MACs", Required: true, Verdict: Undecided, Why: noBase}
	r := &Result{Jobs: []Job{
		{Model: "lfs.onnx", Target: Host, Figures: []Row{row, row, row, row}},
		{Model: "n2.onnx", Target: Host, Error: "cannot be read"},
	}}
	r.Decide()
	if got := r.Answer(); got != "Undecided: n2.onnx on host: cannot be read; lfs.onnx on host has no base." {
		t.Error(got)
	}
	r.Jobs = append(r.Jobs, Job{Model: "gone.onnx", Target: Host, Removed: true})
	r.Decide()
	if got := r.Answer(); got != "Worse: gone.onnx on host is gone. Not judged: n2.onnx on host: cannot be read." {
		t.Error(got)
	}
}
