package host

import (
	"math"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/internal/stats"
	"github.com/opmeter/opmeter/profile"
)

// record moves what was measured into the profile.
func (b *builder) record(res *measure.Result, rec *measure.Recorder, calls []int64) {
	p := b.p
	p.Settings.Runs = new(int64(b.o.Runs))
	if b.o.Runs == 0 {
		p.Settings.Runs = nil
	}
	if b.o.Time > 0 {
		p.Settings.TimeS = new(b.o.Time.Seconds())
	}
	p.Settings.Passes = "abba"
	p.Settings.GarbageCollector = "off"
	method := "plain pass, monotonic clock"
	if res.Batch > 1 {
		method = "plain pass, monotonic clock, samples are means of groups of runs"
	}
	p.Totals.Latency = profile.FromSummary(profile.Measured, res.Latency(), method)
	b.phases().Warmup = &profile.Warmup{
		TimeS: new(res.WarmupTime), Count: new(int64(res.WarmupRuns)),
		Steady: res.Stability.Steady, Reason: res.Stability.Reason,
	}
	p.Host.GCDuringRuns = new(int64(res.GC))
	if b.o.Samples {
		p.Totals.LatencySamples = res.Plain
	}
	b.findRun(res)
	n := rec.Runs()
	if n == 0 {
		return
	}
	method = "instrumented pass"
	if rec.Sampled() {
		method = "instrumented pass; quantiles of a random sample of its runs"
	}
	for i := range p.Layers {
		l, st := &p.Layers[i], b.slots[i].step
		if st.State != engine.Runs {
			continue
		}
		l.Latency = profile.FromSummary(profile.Measured, rec.Metric(i), method)
		if c := float64(calls[i]) / float64(n); c != 1 {
			l.Calls = new(c)
		}
		if b.o.Samples {
			l.Samples = rec.Samples(i)
		}
	}
	b.shares()
	b.totalsOfBodies(rec)
	b.reconcile(res, rec)
}

// shares divides the time among the layers by their medians, which a few
// disturbed runs do not move. Layers that are not called equally often in every
// run (branches) are taken by their means.
func (b *builder) shares() {
	times := make([]float64, len(b.p.Layers))
	var sum float64
	for i := range b.p.Layers {
		l := &b.p.Layers[i]
		if l.Latency == nil {
			continue
		}
		if m := l.Latency; l.Calls != nil && *l.Calls != math.Trunc(*l.Calls) && m.Mean != nil {
			times[i] = *m.Mean
		} else if v, ok := m.Best(); ok {
			times[i] = v
		}
		sum += times[i]
	}
	if sum <= 0 {
		return
	}
	for i := range b.p.Layers {
		if l := &b.p.Layers[i]; l.Latency != nil {
			l.Share = new(times[i] / sum)
		}
	}
}

// totalsOfBodies gives control-flow layers their time with what they run.
func (b *builder) totalsOfBodies(rec *measure.Recorder) {
	total := make([]float64, len(b.slots))
	for i := len(b.slots) - 1; i >= 0; i-- {
		if b.slots[i].step.State == engine.Runs {
			total[i] += rec.Mean(i)
		}
		if p := b.slots[i].parent; p >= 0 {
			total[p] += total[i]
		}
	}
	for i, s := range b.slots {
		if l := &b.p.Layers[i]; len(s.bodies) > 0 && l.Latency != nil {
			l.Self = l.Latency
			l.Total = &profile.Metric{Kind: profile.Measured, Mean: new(total[i]), Method: "sum of the means of the layer and those inside it"}
		}
	}
}

func (b *builder) reconcile(res *measure.Result, rec *measure.Recorder) {
	if len(res.Profiled) == 0 || len(res.Plain) == 0 {
		return
	}
	_, ops, _ := rec.Totals()
	wall := stats.Mean(res.Profiled)
	r := &profile.Reconcile{
		WallS: new(wall), OperatorsS: new(ops), GapsS: new(wall - ops),
		PlainS: new(stats.Median(res.Plain)), ProfiledS: new(stats.Median(res.Profiled)),
		OverheadS: profile.FromSummary(profile.Measured, res.Overhead(), "instrumented minus plain, paired over ABBA turns"),
	}
	r.OverheadPerOperatorS = profile.FromSummary(profile.Measured, res.Clock.EventCost(), "empty events")
	b.p.Reconcile = r
}
