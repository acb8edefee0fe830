package figures

import (
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/profile"
)

// calm is a run of n inferences of a millisecond on an idle machine, with the matching profile of
// one layer.
func calm(n int) (*profile.Profile, *loop.Result) {
	res := &loop.Result{Batch: 1, Disturbed: make([]bool, n), Work: make([]float64, n)}
	for i := range n {
		// Alternating by a tenth of a per cent: a steady series with few ties.
		t := 1e-3 * (1 + 0.001*math.Sin(float64(i)*2.4))
		res.Plain = append(res.Plain, t)
		res.Work[i] = t
		res.Profiled = append(res.Profiled, t)
		res.Groups = append(res.Groups, loop.Group{From: i, To: i + 1, Slot: i, Took: t, CPU: t, Processor: t})
		res.Slots = append(res.Slots, loop.Slot{Took: loop.ReferenceRound, CPU: loop.ReferenceRound})
	}
	res.Slots = append(res.Slots, loop.Slot{Took: loop.ReferenceRound, CPU: loop.ReferenceRound})
	p := &profile.Profile{
		Layers:    []profile.Layer{{State: profile.Ran}},
		Host:      &profile.Host{CPUs: new(int64(4)), Before: &profile.HostState{LoadAverage: new(0.1)}},
		Settings:  profile.Settings{Threads: new(int64(1))},
		Reconcile: &profile.Reconcile{WallS: new(1e-3), OperatorsS: new(1e-3), GapsS: new(0.0), PlainS: new(1e-3), ProfiledS: new(1e-3)},
	}
	return p, res
}

// judged finishes a run as package host does.
func judged(p *profile.Profile, res *loop.Result, pin bool) *profile.Trust {
	run := Evaluate(res, Spread(p.Host != nil && p.Host.Virtual != ""))
	p.Totals.Latency = run.Latency()
	for key, m := range run.Whole() {
		if err := p.Totals.Set(key, m); err != nil {
			panic(err)
		}
	}
	return run.Trust(p, pin, nil)
}

// TestTrustAtRest: these runs have no reason for a lower verdict.
func TestTrustAtRest(t *testing.T) {
	t.Parallel()
	p, res := calm(40)
	got := judged(p, res, false)
	if got.Verdict != profile.Good || len(got.Doubts) != 0 || got.Quote != "latency_s" || got.Interval != profile.OfRepeats || *got.Blocks != 20 {
		t.Errorf("%+v", got)
	}
	// On a virtual machine processes differ by more: the interval and the tolerance contain it.
	l := Evaluate(res, Spread(true)).Latency()
	if half, want := (l.CI95[1]-l.CI95[0])/2 / *l.Median, math.Sqrt2*1.959964*0.02; half < want || half > 1.01*want {
		t.Errorf("on a virtual machine: interval of ±%v, expected %v and little more", half, want)
	}
	if Evaluate(&loop.Result{}, processSpread).Trust(p, false, nil) != nil {
		t.Error("a verdict on nothing")
	}
}

// TestDoubts disturbs a calm run in one way at a time, on either side of the limits in
// docs/reference/measurement-quality.md.
func TestDoubts(t *testing.T) {
	t.Parallel()
	type spoil func(p *profile.Profile, res *loop.Result)
	scale := func(from, to int, by float64) spoil {
		return func(_ *profile.Profile, res *loop.Result) {
			for i := from; i < to; i++ {
				res.Plain[i] *= by
			}
		}
	}
	host := func(f func(h *profile.Host)) spoil { return func(p *profile.Profile, _ *loop.Result) { f(p.Host) } }
	disturbed := func(n int) spoil {
		return func(_ *profile.Profile, res *loop.Result) {
			for i := range n {
				res.Disturbed[i], res.Plain[i] = true, 3*res.Plain[i]
			}
		}
	}
	speed := func(by float64) spoil {
		return func(_ *profile.Profile, res *loop.Result) {
			for i := range res.Slots {
				now := 1 + (by-1)*(1+math.Sin(float64(i)*0.2))/2
				res.Slots[i].CPU *= now
				if i < len(res.Plain) {
					res.Plain[i] *= now
				}
			}
		}
	}
	// Other work slowed the reference loop, not the inferences.
	loopOnly := func(_ *profile.Profile, res *loop.Result) {
		for i := range res.Slots {
			res.Slots[i].CPU *= 1 + math.Mod(float64(i)*0.618034, 1)
		}
	}
	instruments := func(low, middle, high float64) spoil {
		return func(p *profile.Profile, _ *loop.Result) {
			p.Reconcile.WallS = new(1e-3 + middle)
			p.Reconcile.OverheadS = &profile.Metric{Kind: profile.Measured, Median: &middle, CI95: &[2]float64{low, high}}
		}
	}
	states := func(idle, ran int) spoil {
		return func(p *profile.Profile, _ *loop.Result) {
			p.Layers = nil
			for i := range idle + ran {
				s := profile.Ran
				if i < idle {
					s = profile.Unsupported
				}
				p.Layers = append(p.Layers, profile.Layer{State: s})
			}
		}
	}
	for _, tt := range []struct {
		name string
		runs int
		pin  bool
		do   spoil
		code profile.DoubtCode
		want profile.Verdict
	}{
		{"nine runs", 9, false, nil, profile.DoubtFewRuns, profile.Fair},
		{"two runs", 2, false, nil, profile.DoubtFewRuns, profile.Unreliable},
		{"a step up by 4 per cent", 40, false, scale(20, 40, 1.04), profile.DoubtStep, ""},
		{"a step up by 8 per cent", 40, false, scale(20, 40, 1.08), profile.DoubtModes, profile.Fair},
		{"a step down by 30 per cent", 40, false, scale(20, 40, 0.7), profile.DoubtModes, profile.Unreliable},
		{"a short step up by 8 per cent", 40, false, scale(33, 40, 1.08), profile.DoubtStep, profile.Fair},
		{"durations all over from 1 to 1.6 ms", 40, false, func(_ *profile.Profile, res *loop.Result) {
			for i := range res.Plain {
				res.Plain[i] *= 1 + 0.6*math.Mod(float64(i)*0.618034, 1)
			}
		}, profile.DoubtSpread, profile.Fair},
		{"two far outliers leave the median as it is", 40, false, scale(7, 9, 10), profile.DoubtSpread, ""},
		{"one run of 20 disturbed", 40, false, disturbed(2), profile.DoubtWaiting, ""},
		{"ten undisturbed runs", 40, false, disturbed(30), profile.DoubtWaiting, profile.Good},
		{"nine undisturbed runs", 40, false, disturbed(31), profile.DoubtWaiting, profile.Fair},
		{"speed moved by 5 per cent", 40, false, speed(1.05), profile.DoubtSpeed, ""},
		{"speed moved by a quarter", 40, false, speed(1.25), profile.DoubtSpeed, profile.Fair},
		{"speed fell to a half", 40, false, speed(2), profile.DoubtSpeed, profile.Unreliable},
		{"only the reference loop fell to a half", 40, false, loopOnly, profile.DoubtSpeed, ""},
		// All runs together took 80 ms.
		{"stolen less than a hundredth", 40, false, host(func(h *profile.Host) { h.StolenS = new(0.0007) }), profile.DoubtStolen, ""},
		{"stolen 2 per cent of the time that was watched", 40, false, host(func(h *profile.Host) { h.StolenS, h.WatchedS = new(0.04), new(2.0) }), profile.DoubtStolen, profile.Fair},
		{"stolen less than a hundredth of it", 40, false, host(func(h *profile.Host) { h.StolenS, h.WatchedS = new(0.01), new(2.0) }), profile.DoubtStolen, ""},
		{"stolen 2 per cent", 40, false, host(func(h *profile.Host) { h.StolenS = new(0.0016) }), profile.DoubtStolen, profile.Fair},
		{"stolen 10 per cent", 40, false, host(func(h *profile.Host) { h.StolenS = new(0.008) }), profile.DoubtStolen, profile.Unreliable},
		{"heat", 40, false, host(func(h *profile.Host) { h.Throttled = new(int64(1)) }), profile.DoubtThrottled, profile.Unreliable},
		{"a quota", 40, false, host(func(h *profile.Host) { h.QuotaThrottledS = new(0.001) }), profile.DoubtQuota, profile.Fair},
		{"a quota for long", 40, false, host(func(h *profile.Host) { h.QuotaThrottledS = new(0.05) }), profile.DoubtQuota, profile.Unreliable},
		{"load before", 40, false, host(func(h *profile.Host) { h.Before.LoadAverage = new(4.0) }), profile.DoubtBusy, profile.Good},
		{"frequency policy", 40, false, host(func(h *profile.Host) { h.Governor = "powersave" }), profile.DoubtGovernor, profile.Good},
		{"a quiet policy", 40, false, host(func(h *profile.Host) { h.Governor = "performance" }), profile.DoubtGovernor, ""},
		{"battery", 40, false, host(func(h *profile.Host) { h.OnBattery = new(true) }), profile.DoubtBattery, profile.Fair},
		{"more threads than processors", 40, false, func(p *profile.Profile, _ *loop.Result) { p.Settings.Threads = new(int64(5)) }, profile.DoubtThreads, profile.Unreliable},
		{"as many threads as processors", 40, false, func(p *profile.Profile, _ *loop.Result) { p.Settings.Threads = new(int64(4)) }, profile.DoubtThreads, ""},
		{"collector", 40, false, func(_ *profile.Profile, res *loop.Result) { res.GC = 1 }, profile.DoubtCollector, profile.Fair},
		{"instruments within chance", 40, false, instruments(-1e-3, 3e-4, 1e-3), profile.DoubtInstruments, ""},
		{"instruments that cost little", 40, false, instruments(1e-5, 2e-5, 3e-5), profile.DoubtInstruments, ""},
		{"instruments that cost half", 40, false, instruments(4e-4, 5e-4, 6e-4), profile.DoubtInstruments, profile.Fair},
		{"passes that differ by chance", 40, false, func(p *profile.Profile, _ *loop.Result) { p.Reconcile.WallS = new(1.2e-3) }, profile.DoubtReconcile, profile.Fair},
		{"passes that differ much", 40, false, func(p *profile.Profile, _ *loop.Result) { p.Reconcile.WallS = new(0.5e-3) }, profile.DoubtReconcile, profile.Unreliable},
		{"a layer that did not run", 40, false, states(1, 2), profile.DoubtIncomplete, profile.Fair},
		{"most did not run", 40, false, states(3, 2), profile.DoubtIncomplete, profile.Unreliable},
		{"not bound", 40, true, nil, profile.DoubtNotPinned, profile.Fair},
	} {
		p, res := calm(tt.runs)
		if tt.do != nil {
			tt.do(p, res)
		}
		got := judged(p, res, tt.pin)
		at := slices.IndexFunc(got.Doubts, func(d profile.Doubt) bool { return d.Code == tt.code })
		switch {
		case at < 0 && tt.want != "":
			t.Errorf("%s: no doubt %s in %+v", tt.name, tt.code, got.Doubts)
		case at >= 0 && got.Doubts[at].Verdict != tt.want:
			t.Errorf("%s: %s (%v) leaves %q, want %q", tt.name, tt.code, *got.Doubts[at].Value, got.Doubts[at].Verdict, tt.want)
		case at >= 0 && !tt.want.AtLeast(got.Verdict):
			t.Errorf("%s: the verdict is %s", tt.name, got.Verdict)
		}
		p.Trust = got
		p.Schema, p.Target.Kind, p.Target.ID, p.Model.Name = profile.SchemaV1, profile.TargetHost, "host", "m"
		for i := range p.Layers {
			p.Layers[i].Index, p.Layers[i].Op = int64(i), "X"
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestDisturbedRuns: figures come from undisturbed runs, else from CPU times, and with too few runs
// nothing is recommended.
func TestDisturbedRuns(t *testing.T) {
	t.Parallel()
	disturb := func(every int) (*profile.Profile, *loop.Result) {
		p, res := calm(40)
		for i := range res.Plain {
			if i%every != 0 {
				res.Plain[i] *= 3
				res.Disturbed[i] = true
			}
		}
		return p, res
	}
	p, res := disturb(2)
	got := judged(p, res, false)
	if m := p.Totals.Latency; got.Verdict != profile.Good || *got.Undisturbed != 20 || *got.Disturbed != 20 || *m.N != 20 || !(*m.Max <= 1.01e-3) {
		t.Errorf("every second run disturbed: %+v, %+v", got, m)
	}
	p, res = disturb(8)
	got = judged(p, res, false)
	if m := p.Totals.Latency; got.Verdict != profile.Fair || *got.Undisturbed != 5 || *got.Disturbed != 35 || *m.N >= 40 || *m.N < 20 || !(*m.Max <= 1.01e-3) {
		t.Errorf("five undisturbed runs: %+v, %+v", got, m)
	}
	for i := range res.Work { // a system without CPU time
		res.Work[i] = math.NaN()
	}
	p.Totals = profile.Totals{}
	if got := judged(p, res, false); got.Verdict == profile.Good || *p.Totals.Latency.Median < 2e-3 {
		t.Errorf("nothing but wall time: %+v", got)
	}
	p, res = calm(2)
	if got := judged(p, res, false); got.Quote != "" {
		t.Errorf("two runs: quote %q", got.Quote)
	}
}

// TestModes states the speeds that the machine ran at.
func TestModes(t *testing.T) {
	t.Parallel()
	p, res := calm(60)
	for i := range 20 {
		res.Plain[i] *= 1.6
		res.Slots[i].CPU *= 1.6
	}
	res.Slots[20].CPU *= 1.6
	got := judged(p, res, false)
	if len(got.Modes) != 2 || !got.Modes[0].Headline || got.Modes[1].Part != 1.0/3 || !(*got.Modes[1].Speed < 0.7) || math.Abs(*p.Totals.Latency.Median-1e-3) > 2e-6 {
		t.Errorf("%+v, latency %v", got.Modes, *p.Totals.Latency.Median)
	}
}

// speedy is a calm run of a machine whose speed varies by one per cent, which inferences
// and reference loop follow.
func speedy(n int) (*profile.Profile, *loop.Result) {
	p, res := calm(n)
	for i := range res.Plain {
		by := 1 + 0.01*math.Sin(float64(i)*0.2)
		res.Plain[i], res.Work[i], res.Groups[i].CPU = res.Plain[i]*by, res.Work[i]*by, res.Groups[i].CPU*by
		res.Slots[i] = loop.Slot{Took: loop.ReferenceRound * by, CPU: loop.ReferenceRound * by}
	}
	return p, res
}

// TestReferenceFigure: a millisecond at half of the reference speed is half a
// millisecond, normalised, and less certain with growing distance.
func TestReferenceFigure(t *testing.T) {
	t.Parallel()
	width := func(slow float64) (v, half float64) {
		_, res := speedy(40)
		for i := range res.Slots {
			res.Slots[i].CPU *= slow
		}
		figures := Evaluate(res, processSpread).Whole()
		m, s := figures["reference_latency_s"], figures["machine_speed"]
		if m == nil || s == nil || m.CI95 == nil || !(math.Abs(*s.Median*slow-1) <= 0.01) {
			t.Fatalf("%+v at speed %+v", m, s)
		}
		// A repeated run may be on either side, also below the minimum of this one.
		if low, high := *m.Median-m.CI95[0], m.CI95[1]-*m.Median; !(math.Abs(low-high) <= 1e-12) || !(m.CI95[0] < *m.Min) {
			t.Errorf("interval %v around %v", *m.CI95, *m.Median)
		}
		return *m.Median, (m.CI95[1] - m.CI95[0]) / 2 / *m.Median
	}
	if d := speedDistance([]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}); d != 0 {
		t.Errorf("normalised the distance is %v", d)
	}
	// Eleven speeds: the deciles are the second and the last but one.
	if d := speedDistance([]float64{0.1, 0.5, 1, 1, 1, 1, 1, 1, 1, 1.1, 9}); !(math.Abs(d-math.Ln2) <= 1e-12) {
		t.Errorf("half speed in a tenth of the groups: distance %v", d)
	}
	one, near := width(1)
	half, far := width(2)
	// The series itself varies by a tenth of a per cent.
	if !(math.Abs(one-1e-3) <= 2e-6) || !(math.Abs(half-0.5e-3) <= 1e-6) {
		t.Errorf("%v and %v normalised, want 1 ms and 0.5 ms", one, half)
	}
	if !(near < 0.02) || !(far > 2*near) {
		t.Errorf("intervals ±%v normalised and ±%v at half of it", near, far)
	}
}

// sharesOf gives a profile layers of the given parts, whose intervals have the given half-width.
func sharesOf(p *profile.Profile, half float64, parts ...float64) {
	p.Layers = nil
	for i, v := range parts {
		m := &profile.Metric{Kind: profile.Measured, N: new(int64(40)), Median: new(v * 1e-3), CI95: &[2]float64{(v - half) * 1e-3, (v + half) * 1e-3}}
		p.Layers = append(p.Layers, profile.Layer{Index: int64(i), Op: "X", State: profile.Ran, Latency: m})
	}
}

// TestFit: what a measurement is good for follows from the errors of the total and, apart from
// them, from those of the shares.
func TestFit(t *testing.T) {
	t.Parallel()
	slower := func(_ *profile.Profile, res *loop.Result) { // a step that only the times show
		for i := 33; i < 40; i++ {
			res.Plain[i] *= 1.08
		}
	}
	for _, c := range []struct {
		name     string
		half     float64 // of the shares' intervals
		recorded int     // instrumented inferences
		do       func(p *profile.Profile, res *loop.Result)
		verdict  profile.Verdict
		fit      profile.Fit
		low      float64 // limits of the tolerance
		high     float64
		settled  bool
	}{
		{"at rest", 0.01, 40, nil, profile.Good, profile.FitComparing, 0.013, 0.02, true},
		{"on a virtual machine", 0.01, 40, func(p *profile.Profile, _ *loop.Result) { p.Host.Virtual = "KVM" }, profile.Good, profile.FitComparing, 0.05, 0.06, true},
		{"busy before", 0.01, 40, func(p *profile.Profile, _ *loop.Result) { p.Host.Before.LoadAverage = new(8.0) }, profile.Good, profile.FitComparing, 0.07, 0.075, true},
		{"busy, more than counts", 0.01, 40, func(p *profile.Profile, _ *loop.Result) { p.Host.Before.LoadAverage = new(800.0) }, profile.Fair, profile.FitShares, 0.105, 0.11, true},
		{"every second disturbed", 0.01, 40, func(_ *profile.Profile, res *loop.Result) {
			for i := range res.Plain {
				res.Disturbed[i] = i%2 == 0
			}
		}, profile.Good, profile.FitComparing, 0.075, 0.08, true},
		{"unsteady", 0.01, 40, slower, profile.Fair, profile.FitShares, 0.1, 0.12, true},
		{"throttled", 0.01, 40, func(p *profile.Profile, _ *loop.Result) { p.Host.Throttled = new(int64(1)) }, profile.Unreliable, profile.FitShares, 0.25, 0.25, true},
		{"few instrumented inferences", 0.01, 9, nil, profile.Good, profile.FitComparing, 0.013, 0.02, false},
		{"wide shares", 0.06, 40, nil, profile.Good, profile.FitComparing, 0.013, 0.02, false},
		{"unsteady, wide shares", 0.06, 40, slower, profile.Fair, profile.FitNothing, 0.1, 0.12, false},
		{"most did not run", 0.01, 40, func(p *profile.Profile, _ *loop.Result) {
			p.Layers[1].State, p.Layers[2].State = profile.Unsupported, profile.Unsupported
		}, profile.Unreliable, profile.FitNothing, 0.25, 0.25, true},
	} {
		p, res := calm(40)
		res.Profiled = res.Profiled[:c.recorded]
		sharesOf(p, c.half, 0.5, 0.3, 0.2)
		if c.do != nil {
			c.do(p, res)
		}
		got := judged(p, res, false)
		if got.Verdict != c.verdict || got.Fit != c.fit || got.SharesDoubted() == c.settled {
			t.Errorf("%s: %s, %s, %+v", c.name, got.Verdict, got.Fit, got.Doubts)
		}
		if got.Tolerance == nil || *got.Tolerance < c.low || *got.Tolerance > c.high {
			t.Errorf("%s: tolerance %v, want %v to %v", c.name, *got.Tolerance, c.low, c.high)
		}
		p.Trust = got
		if warned := slices.ContainsFunc(Findings(p), func(f profile.Finding) bool { return f.ID == "time.unsettled" }); warned == c.settled {
			t.Errorf("%s: warned of the shares: %v", c.name, warned)
		}
	}
	// No layer has a time: nothing is said about shares.
	p, res := calm(40)
	slower(p, res)
	if got := judged(p, res, false); got.Fit != profile.FitNothing || got.SharesDoubted() {
		t.Errorf("without layers: %+v", got)
	}
}

// TestUnexplainedModes: two speeds that the reference loop does not show are a doubt, and another
// run may be at the other one.
func TestUnexplainedModes(t *testing.T) {
	t.Parallel()
	p, res := calm(60)
	for i := range 20 {
		res.Plain[3*i] *= 1.6
		res.Work[3*i] *= 1.6
	}
	got := judged(p, res, false)
	at := slices.IndexFunc(got.Doubts, func(d profile.Doubt) bool { return d.Code == profile.DoubtModes })
	if len(got.Modes) != 2 || got.ModesBySpeed || !got.Modes[0].Headline || at < 0 || !(*got.Tolerance > 0.6) {
		t.Errorf("%+v, tolerance %v", got, *got.Tolerance)
	}
}

// TestNormalisedIsProved: a normalised latency is given where the loop explains how times vary.
func TestNormalisedIsProved(t *testing.T) {
	t.Parallel()
	noise := func(i int) float64 { return 1 + 0.02*math.Sin(float64(i)*2.4) }
	for _, c := range []struct {
		name string
		do   func(res *loop.Result)
		want bool
	}{
		{"a constant speed", func(*loop.Result) {}, false},
		{"a loop that varies alone", func(res *loop.Result) {
			for i := range res.Slots {
				res.Slots[i].CPU *= 1 + 0.05*math.Sin(float64(i)*0.2)
			}
		}, false},
		{"noise unrelated to the loop", func(res *loop.Result) {
			for i := range res.Groups {
				res.Groups[i].CPU *= noise(i)
				res.Slots[i].CPU *= 1 + 0.02*math.Sin(float64(i)*0.3)
			}
		}, false},
		{"a loop that runs the other way", func(res *loop.Result) {
			for i := range res.Groups {
				by := 1 + 0.05*math.Sin(float64(i)*0.2)
				res.Groups[i].CPU, res.Slots[i].CPU = res.Groups[i].CPU*by, res.Slots[i].CPU/by
			}
		}, false},
		{"two speeds", func(res *loop.Result) {
			for i := range res.Groups {
				if i >= 20 {
					res.Groups[i].CPU, res.Slots[i].CPU = 1.5*res.Groups[i].CPU, 1.5*res.Slots[i].CPU
				}
			}
			res.Slots[40].CPU *= 1.5
		}, true},
	} {
		_, res := calm(40)
		c.do(res)
		if got := Evaluate(res, processSpread).Whole()["reference_latency_s"] != nil; got != c.want {
			t.Errorf("%s: given: %v", c.name, got)
		}
	}
	_, res := speedy(40)
	if Evaluate(res, processSpread).Whole()["reference_latency_s"] == nil {
		t.Error("a speed that varies: absent")
	}
	if _, res = speedy(leastGroups - 1); Evaluate(res, processSpread).Whole()["reference_latency_s"] != nil {
		t.Error("given from few groups")
	}
}
