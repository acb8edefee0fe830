package figures

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/quality"
	"github.com/opmeter/opmeter/profile"
)

// Limits of the verdicts about a computer, as docs/reference/measurement-quality.md states them beside those of
// internal/measure/quality: above the first a latency is fair, above the second it is not to be used.
// Parts of the time where nothing else stands there.
const (
	fairSpeed, badSpeed         = 0.1, .5   // spread of the speed between its deciles
	fairWaiting, badWaiting     = 0.02, .1  // without a processor
	fairStolen, badStolen       = 0.01, .05 // taken by the hypervisor
	fairInstruments             = 0.25      // added by the instruments
	fairReconcile, badReconcile = 0.1, .25  // between sum of the layers and plain runs
	fairBusy                    = 0.5       // load average per processor before the runs
)

// leastUndisturbed is the number of undisturbed runs from which their time is offered.
const leastUndisturbed = 10

// Errors of a time at reference speed that no run shows, as standard deviations:
// what differs between processes on a machine at rest, a part of the time, and by how
// much the exponent with which inferences follow the reference loop differs from one.
// Both are what bench/repeat found over its six networks.
const (
	processSpread  = 0.005
	exponentSpread = 0.08
)

// Trust judges a run, whose threads were to be bound where pin says so. The figures of
// the totals are in place.
func Trust(p *profile.Profile, res *loop.Result, pin bool) *profile.Trust {
	if len(res.Plain) == 0 {
		return nil
	}
	var d quality.Doubts
	series(&d, p, res)
	computer(&d, p, res, pin)
	agreement(&d, p)
	t := profile.NewTrust(d)
	t.Interval = profile.OfRepeats
	steady := res.Stability.Steady != nil && *res.Stability.Steady
	// A guest's speed is its host's to set: a run does not show what another would meet.
	if !steady || t.Verdict != profile.Good || p.Host != nil && p.Host.Virtual != "" {
		t.Interval = profile.OfThisRun
	}
	if r, ok := stats.Repeated(res.Plain, 0); ok {
		t.Blocks = new(int64(r.Blocks))
	}
	t.Quote = quote(p, t)
	return t
}

// quote names the figure to quote.
func quote(p *profile.Profile, t *profile.Trust) string {
	if t.Verdict == profile.Good {
		return "latency_s"
	}
	// Too few runs are too few of any kind.
	for _, d := range t.Doubts {
		if d.Code == profile.DoubtFewRuns && d.Verdict == profile.Unreliable {
			return ""
		}
	}
	for _, key := range []string{"undisturbed_latency_s", "processor_s"} {
		if p.Totals.Figure(key) != nil {
			return key
		}
	}
	if t.Verdict == profile.Fair {
		return "latency_s"
	}
	return ""
}

// series judges the times themselves.
func series(d *quality.Doubts, p *profile.Profile, res *loop.Result) {
	d.Series(p.Totals.Latency, len(res.Plain), &res.Stability)
	if s := res.Speeds(loop.ReferenceRound); len(s) >= quality.FewRuns {
		low, high := deciles(s)
		d.Above(profile.DoubtSpeed, (high-low)/stats.Median(s), fairSpeed, badSpeed)
	}
	d.Above(profile.DoubtWaiting, res.Waited(), fairWaiting, badWaiting)
	if res.GC > 0 {
		d.Add(profile.DoubtCollector, profile.Fair, float64(res.GC), 0)
	}
}

// computer judges what the machine did meanwhile.
func computer(d *quality.Doubts, p *profile.Profile, res *loop.Result, pin bool) {
	if pin && !res.Pinned {
		*d = append(*d, profile.Doubt{Code: profile.DoubtNotPinned, Verdict: profile.Fair})
	}
	h := p.Host
	if h == nil {
		return
	}
	took := took(res)
	if h.WatchedS != nil {
		took = *h.WatchedS // the counters are those of this time, of which short runs are a small part
	}
	if h.StolenS != nil && took > 0 {
		d.Above(profile.DoubtStolen, *h.StolenS/took, fairStolen, badStolen)
	}
	if h.Throttled != nil && *h.Throttled > 0 {
		d.Add(profile.DoubtThrottled, profile.Unreliable, float64(*h.Throttled), 0)
	}
	if s := h.QuotaThrottledS; s != nil && *s > 0 && took > 0 {
		v := profile.Fair
		if *s > badWaiting*took {
			v = profile.Unreliable
		}
		d.Add(profile.DoubtQuota, v, *s, 0)
	}
	if s := h.Before; s != nil && s.LoadAverage != nil && h.CPUs != nil && *h.CPUs > 0 {
		// The runs themselves show what the load did to them: this alone spoils nothing.
		if load := *s.LoadAverage / float64(*h.CPUs); load > fairBusy {
			d.Add(profile.DoubtBusy, profile.Good, load, fairBusy)
		}
	}
	if h.Governor != "" && h.Governor != "performance" {
		*d = append(*d, profile.Doubt{Code: profile.DoubtGovernor, Verdict: profile.Good})
	}
	if h.OnBattery != nil && *h.OnBattery {
		*d = append(*d, profile.Doubt{Code: profile.DoubtBattery, Verdict: profile.Fair})
	}
	if n := p.Settings.Threads; n != nil && h.CPUs != nil && *n > *h.CPUs {
		d.Add(profile.DoubtThreads, profile.Unreliable, float64(*n)/float64(*h.CPUs), 1)
	}
}

// took is the time of all runs.
func took(res *loop.Result) float64 {
	return stats.Sum(res.Plain)*float64(res.Batch) + stats.Sum(res.Profiled)
}

// agreement judges how the passes and the layers agree, and what is missing.
func agreement(d *quality.Doubts, p *profile.Profile) {
	d.Layers(p)
	r := p.Reconcile
	if r == nil || *r.PlainS <= 0 {
		return
	}
	// Only what is significant: the interval leaves out zero.
	o := r.OverheadS
	if o != nil && o.CI95 != nil && o.CI95[0] > 0 {
		d.Above(profile.DoubtInstruments, *o.Median / *r.PlainS, fairInstruments, 0)
	} else if diff := math.Abs(*r.WallS / *r.PlainS - 1); diff > 0 {
		// The instruments do not explain it: other programs do.
		d.Above(profile.DoubtReconcile, diff, fairReconcile, badReconcile)
	}
}

func deciles(s []float64) (low, high float64) {
	sorted := sortedCopy(s)
	return stats.Quantile(sorted, 0.1), stats.Quantile(sorted, 0.9)
}
