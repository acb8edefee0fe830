package figures

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/quality"
	"github.com/opmeter/opmeter/profile"
)

func layer(index int, op string, share float64) profile.Layer {
	return profile.Layer{Index: int64(index), Op: op, State: profile.Ran, Share: new(share)}
}

func TestDominant(t *testing.T) {
	t.Parallel()
	even := func(n int) (ls []profile.Layer) {
		for i := range n {
			ls = append(ls, layer(i, "Add", 1/float64(n)))
		}
		return ls
	}
	for _, c := range []struct {
		name   string
		layers []profile.Layer
		want   []string // identifier, text
		about  [][]int64
	}{
		{"one layer", even(1), nil, nil},
		{"two operators are nearly all", []profile.Layer{layer(0, "Add", 0.04), layer(1, "Conv", 0.5), layer(2, "Conv", 0.42), layer(3, "Relu", 0.04)}, []string{
			"time.operators Time by operator: Conv 92 % in 2 layers.",
			"time.layers 1 layer of 4 makes up 50 % of the time: #1 Conv.",
		}, [][]int64{{1, 2}, {1}}},
		{"three at most", []profile.Layer{layer(0, "A", 0.1), layer(1, "B", 0.2), layer(2, "C", 0.3), layer(3, "D", 0.4)}, []string{
			"time.operators Time by operator: D 40 % in 1 layer, C 30 % in 1 layer, B 20 % in 1 layer.",
			"time.layers 2 layers of 4 make up 70 % of the time: #3 D, #2 C.",
		}, [][]int64{{3, 2, 1}, {3, 2}}},
		{"layers without a time do not count", append([]profile.Layer{{Index: 9, Op: "Q"}}, layer(0, "A", 0.75), profile.Layer{Index: 1, Domain: "com.x", Op: "B", Share: new(0.25)}), []string{
			"time.operators Time by operator: A 75 % in 1 layer, com.x:B 25 % in 1 layer.",
			"time.layers 1 layer of 2 makes up 75 % of the time: #0 A.",
		}, [][]int64{{0, 1}, {0}}},
		{"ten layers are named", slices.Concat(even(10), even(9)), []string{
			"time.operators Time by operator: Add 100 % in 19 layers.",
			"time.layers 10 layers of 19 make up 55 % of the time: #0 Add, #1 Add, #2 Add, #3 Add, #4 Add, #5 Add, #6 Add, #7 Add, #8 Add, #9 Add.",
		}, nil},
		{"flat", even(32), []string{
			"time.operators Time by operator: Add 100 % in 32 layers.",
			"time.flat No single layer stands out: it takes 16 of 32 layers to make up half of the time.",
		}, nil},
	} {
		if c.name == "ten layers are named" {
			for i := range c.layers {
				c.layers[i].Index = int64(i)
				if c.layers[i].Share = new(0.05); i < 10 {
					c.layers[i].Share = new(0.055)
				}
			}
		}
		got := dominant(&profile.Profile{Layers: c.layers})
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", c.name, got)
			continue
		}
		for i, f := range got {
			if f.ID+" "+f.Text != c.want[i] || f.Severity != profile.Info || c.about != nil && !slices.Equal(f.Layers, c.about[i]) {
				t.Errorf("%s: %+v, want %q", c.name, f, c.want[i])
			}
		}
	}
}

func TestShared(t *testing.T) {
	t.Parallel()
	timed := func(v ...float64) []profile.Layer {
		ls := make([]profile.Layer, len(v))
		for i, x := range v {
			if x >= 0 {
				ls[i].Latency = profile.Value(profile.Measured, x, "")
			}
		}
		return ls
	}
	ls := timed(1, -1, 3)
	got := withShares(ls)
	if *got[0].Share != 0.25 || got[1].Share != nil || *got[2].Share != 0.75 || ls[0].Share != nil {
		t.Errorf("shares %v, %v, %v", got[0].Share, got[1].Share, got[2].Share)
	}
	if small := withShares(timed(0.001, 0.003)); *small[0].Share != 0.25 || *small[1].Share != 0.75 {
		t.Errorf("shares of milliseconds %v, %v", *small[0].Share, *small[1].Share)
	}
	for _, l := range withShares(timed(0, 0)) {
		if l.Share != nil {
			t.Errorf("a share %v of nothing", *l.Share)
		}
	}
}

func TestShortTimes(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		1.2345: "1.23 s", 12.345: "12.3 s", 123.45: "2m3s", 0.9999: "1 s", 0.12345: "123 ms", 0.012345: "12.3 ms", 172.4e-6: "172 µs", 1.2345e-6: "1.23 µs", 9e-9: "9 ns", 0: "0 s",
	} {
		if got := FormatTime(v); got != want {
			t.Errorf("%v s: %q, want %q", v, got, want)
		}
	}
}

// TestOverheadLimits: the reporting limits must be exceeded, not only met.
func TestOverheadLimits(t *testing.T) {
	t.Parallel()
	say := func(gaps, cost, low, high float64) int {
		return len(overhead(&profile.Reconcile{
			PlainS: new(1.0), WallS: new(1.0), GapsS: &gaps, OverheadS: &profile.Metric{Kind: profile.Measured, Median: &cost, CI95: &[2]float64{low, high}},
		}))
	}
	for _, c := range []struct {
		gaps, cost, low, high float64
		n                     int
	}{
		{0.01, 0, -1, 1, 0},
		{0.011, 0, -1, 1, 1},
		{0, 0.01, 0.005, 0.02, 0},
		{0, 0.011, 0.005, 0.02, 1},
		{0, 0.5, 0, 1, 0},   // an interval that begins at zero
		{0, -0.5, -1, 0, 0}, // or ends there
		{0, -0.5, -1, -0.001, 1},
		{0.5, 0.5, 0.4, 0.6, 2},
	} {
		if got := say(c.gaps, c.cost, c.low, c.high); got != c.n {
			t.Errorf("%+v: %d findings", c, got)
		}
	}
	if overhead(&profile.Reconcile{WallS: new(1.0), PlainS: new(0.0), GapsS: new(1.0)}) != nil {
		t.Error("plain runs without a time")
	}
}

func TestKept(t *testing.T) {
	t.Parallel()
	many := make([]float64, profile.KeptSamples+1)
	if n := len(Kept(many, true)); n != profile.KeptSamples+1 {
		t.Errorf("all: %d", n)
	}
	if n := len(Kept(many, false)); n != profile.KeptSamples {
		t.Errorf("%d of %d kept", n, len(many))
	}
	if n := len(Kept(many[1:], false)); n != profile.KeptSamples {
		t.Errorf("%d kept", n)
	}
}

func TestBlocked(t *testing.T) {
	t.Parallel()
	if Blocked(nil, nil, processSpread) != nil {
		t.Error("an interval around nothing")
	}
	m := Blocked(&profile.Metric{Median: new(1.0), Min: new(0.9), CI95: &[2]float64{0, 9}}, []float64{1}, processSpread)
	if m.CI95 != nil {
		t.Errorf("an interval %v of one sample", *m.CI95)
	}
	wild := make([]float64, 40)
	for i := range wild {
		wild[i] = 1
		if i >= 20 {
			wild[i] = 3
		}
	}
	m = Blocked(&profile.Metric{Median: new(2.0), Min: new(1.0)}, wild, processSpread)
	r, _ := stats.Repeated(wild, processSpread)
	if half := (r.High - r.Low) / 2; m.CI95 == nil || m.CI95[0] != max(1, 2-half) || m.CI95[1] != 2+half || !(half > 1) {
		t.Errorf("interval %v, half of it %v", m.CI95, half)
	}
	none := &profile.Metric{CI95: &[2]float64{1, 2}}
	if Blocked(none, wild, processSpread).CI95 == nil {
		t.Error("what has no median keeps its interval")
	}
}

func TestWholeFigures(t *testing.T) {
	t.Parallel()
	_, res := speedy(40)
	if got := Evaluate(res, processSpread).Whole(); !strings.HasPrefix(got["reference_latency_s"].Method, "processor time of groups") || !strings.Contains(got["reference_latency_s"].Method, "from 20 blocks") {
		t.Errorf("method %q", got["reference_latency_s"].Method)
	}
	for i := range res.Groups {
		res.Groups[i].CPU = math.NaN()
	}
	for i := range res.Slots {
		res.Slots[i].CPU = math.NaN()
	}
	if m := Evaluate(res, processSpread).Whole()["reference_latency_s"]; m != nil && !strings.HasPrefix(m.Method, "time of groups") {
		t.Errorf("method %q", m.Method)
	}
}

// TestDoubtLimits meets limits exactly, or exceeds them slightly.
func TestDoubtLimits(t *testing.T) {
	t.Parallel()
	type spoil func(p *profile.Profile, res *loop.Result)
	for _, c := range []struct {
		name string
		runs int
		do   spoil
		code profile.DoubtCode
		want profile.Verdict
	}{
		{"ten runs", 10, nil, profile.DoubtFewRuns, ""},
		{"three runs", 3, nil, profile.DoubtFewRuns, profile.Fair},
		{"load of half of the processors", 40, func(p *profile.Profile, _ *loop.Result) { p.Host.Before.LoadAverage = new(2.0) }, profile.DoubtBusy, ""},
		{"load of a little more", 40, func(p *profile.Profile, _ *loop.Result) { p.Host.Before.LoadAverage = new(2.1) }, profile.DoubtBusy, profile.Good},
		{"not throttled", 40, func(p *profile.Profile, _ *loop.Result) { p.Host.Throttled = new(int64(0)) }, profile.DoubtThrottled, ""},
		{"no quota", 40, func(p *profile.Profile, _ *loop.Result) { p.Host.QuotaThrottledS = new(0.0) }, profile.DoubtQuota, ""},
		{"on mains", 40, func(p *profile.Profile, _ *loop.Result) { p.Host.OnBattery = new(false) }, profile.DoubtBattery, ""},
		{"quota for less than a tenth of 80 ms", 40, func(p *profile.Profile, _ *loop.Result) { p.Host.QuotaThrottledS = new(0.0079) }, profile.DoubtQuota, profile.Fair},
		{"quota for more", 40, func(p *profile.Profile, _ *loop.Result) { p.Host.QuotaThrottledS = new(0.0081) }, profile.DoubtQuota, profile.Unreliable},
		{"batches count whole", 40, func(p *profile.Profile, res *loop.Result) {
			// 40 samples of 9 runs and 40 runs: 400 ms, of which 5 are not above 5 %.
			res.Batch, p.Host.StolenS = 9, new(0.0041)
		}, profile.DoubtStolen, profile.Fair},
		{"batches count whole, fewer", 40, func(p *profile.Profile, res *loop.Result) { res.Batch, p.Host.StolenS = 9, new(0.0039) }, profile.DoubtStolen, ""},
		{"half did not run", 40, func(p *profile.Profile, _ *loop.Result) {
			p.Layers = []profile.Layer{{State: profile.Skipped}, {State: profile.Ran}, {State: profile.Failed, Constant: true}, {State: profile.Fused}}
		}, profile.DoubtIncomplete, profile.Fair},
		{"constants do not count", 40, func(p *profile.Profile, _ *loop.Result) {
			p.Layers = []profile.Layer{{State: profile.Ran}, {State: profile.Failed, Constant: true}}
		}, profile.DoubtIncomplete, ""},
		{"passes a tenth apart", 40, func(p *profile.Profile, _ *loop.Result) { p.Reconcile.WallS = new(1.09e-3) }, profile.DoubtReconcile, ""},
		{"passes no time at all", 40, func(p *profile.Profile, _ *loop.Result) {
			p.Reconcile.PlainS, p.Reconcile.WallS = new(0.0), new(5.0)
		}, profile.DoubtReconcile, ""},
		{"certain instruments are not blamed on others", 40, func(p *profile.Profile, _ *loop.Result) {
			p.Reconcile.WallS = new(1.2e-3)
			p.Reconcile.OverheadS = &profile.Metric{Kind: profile.Measured, Median: new(2e-4), CI95: &[2]float64{1e-4, 3e-4}}
		}, profile.DoubtReconcile, ""},
	} {
		p, res := calm(c.runs)
		if c.do != nil {
			c.do(p, res)
		}
		got := judged(p, res, false)
		at := slices.IndexFunc(got.Doubts, func(d profile.Doubt) bool { return d.Code == c.code })
		if (at >= 0) != (c.want != "") || at >= 0 && got.Doubts[at].Verdict != c.want {
			t.Errorf("%s: doubts %+v, want %q", c.name, got.Doubts, c.want)
		}
	}
	p, res := calm(40)
	if res.Pinned = true; len(judged(p, res, true).Doubts) != 0 {
		t.Error("bound as asked, and a doubt")
	}
	p.Host = nil
	if got := judged(p, res, false); got.Verdict != profile.Good {
		t.Errorf("nothing known of the computer: %+v", got)
	}
}

// TestIntervalDoubt: half of the latency's interval, as a fraction of the latency, is judged.
func TestIntervalDoubt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		median *float64
		ci     *[2]float64
		want   profile.Verdict
	}{
		{new(2.0), &[2]float64{1.81, 2.19}, ""},
		{new(2.0), &[2]float64{1.7, 2.3}, profile.Fair},
		{new(2.0), &[2]float64{1.4, 2.6}, profile.Unreliable},
		{new(2.0), nil, ""},
		{nil, &[2]float64{1.6, 2.4}, ""},
		{new(0.0), &[2]float64{-1, 1}, ""},
	} {
		p, res := calm(40)
		p.Totals.Latency = &profile.Metric{Kind: profile.Measured, Median: c.median, CI95: c.ci}
		var d quality.Doubts
		Evaluate(res, processSpread).judgeSeries(&d, p)
		at := slices.IndexFunc(d, func(x profile.Doubt) bool { return x.Code == profile.DoubtInterval })
		if (at >= 0) != (c.want != "") || at >= 0 && d[at].Verdict != c.want {
			t.Errorf("median %v, interval %v: %+v, want %q", c.median, c.ci, d, c.want)
		}
	}
}
