package figures

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/quality"
	"github.com/opmeter/opmeter/profile"
)

// Limits of the verdicts about a computer, as in docs/reference/measurement-quality.md, in
// addition to those of internal/measure/quality: above the first a latency is fair, above the
// second it is unreliable. Fractions of the time unless stated otherwise.
const (
	fairSpeed, badSpeed         = 0.1, .5   // spread of the speed between its deciles
	fairWaiting, badWaiting     = 0.02, .1  // fraction of the time waiting for a processor
	fairStolen, badStolen       = 0.01, .05 // stolen by the hypervisor
	fairInstruments             = 0.25      // profiling overhead
	fairReconcile, badReconcile = 0.1, .25  // difference of the layers' sum and plain runs
	fairBusy                    = 0.5       // load average per processor before the runs
)

// minUndisturbed is the minimum number of undisturbed runs for which their time is recommended.
const minUndisturbed = 10

// Errors of a normalised time that no run shows, as standard deviations: the difference between
// processes on an idle machine, as a fraction of the time, and the deviation from one of the
// exponent with which inferences follow the reference loop. Both were determined by bench/repeat
// over its six networks.
const (
	processSpread  = 0.005
	exponentSpread = 0.08
)

// Trust judges a run, whose threads were to be pinned if pin is set. The totals must be set
// already.
func Trust(p *profile.Profile, res *loop.Result, pin bool) *profile.Trust {
	if len(res.Plain) == 0 {
		return nil
	}
	var d quality.Doubts
	judgeSeries(&d, p, res)
	judgeMachine(&d, p, res, pin)
	judgeAgreement(&d, p)
	t := profile.NewTrust(d)
	t.Interval = profile.OfRepeats
	steady := res.Stability.Steady != nil && *res.Stability.Steady
	// The host determines the speed of a virtual machine: a run does not show what another one
	// would get.
	if !steady || t.Verdict != profile.Good || p.Host != nil && p.Host.Virtual != "" {
		t.Interval = profile.OfThisRun
	}
	if r, ok := stats.Repeated(res.Plain, 0); ok {
		t.Blocks = new(int64(r.Blocks))
	}
	t.Quote = recommended(p, t)
	return t
}

// recommended returns the key of the recommended figure.
func recommended(p *profile.Profile, t *profile.Trust) string {
	if t.Verdict == profile.Good {
		return "latency_s"
	}
	// Too few runs are too few for any figure.
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

// judgeSeries judges the times themselves.
func judgeSeries(d *quality.Doubts, p *profile.Profile, res *loop.Result) {
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

// judgeMachine judges the state of the machine during the runs.
func judgeMachine(d *quality.Doubts, p *profile.Profile, res *loop.Result, pin bool) {
	if pin && !res.Pinned {
		*d = append(*d, profile.Doubt{Code: profile.DoubtNotPinned, Verdict: profile.Fair})
	}
	h := p.Host
	if h == nil {
		return
	}
	took := totalTime(res)
	if h.WatchedS != nil {
		took = *h.WatchedS // the counters cover this time, of which short runs are a small part
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
		// The runs show the effect of the load: it does not lower the verdict by itself.
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

// totalTime returns the time of all runs.
func totalTime(res *loop.Result) float64 {
	return stats.Sum(res.Plain)*float64(res.Batch) + stats.Sum(res.Profiled)
}

// judgeAgreement judges the agreement of passes and layers, and missing layers.
func judgeAgreement(d *quality.Doubts, p *profile.Profile) {
	d.Layers(p)
	r := p.Reconcile
	if r == nil || *r.PlainS <= 0 {
		return
	}
	// Only if significant: the interval excludes zero.
	o := r.OverheadS
	if o != nil && o.CI95 != nil && o.CI95[0] > 0 {
		d.Above(profile.DoubtInstruments, *o.Median / *r.PlainS, fairInstruments, 0)
	} else if diff := math.Abs(*r.WallS / *r.PlainS - 1); diff > 0 {
		// Profiling overhead does not explain it: other programs do.
		d.Above(profile.DoubtReconcile, diff, fairReconcile, badReconcile)
	}
}

func deciles(s []float64) (low, high float64) {
	sorted := sortedCopy(s)
	return stats.Quantile(sorted, 0.1), stats.Quantile(sorted, 0.9)
}
