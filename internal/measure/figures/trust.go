package figures

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/quality"
	"github.com/opmeter/opmeter/profile"
)

// Limits of the verdicts about a computer, as in docs/reference/measurement-quality.md, in
// addition to those of internal/measure/quality: above the first a latency is fair, above the
// second it is unreliable. Fractions of the time unless stated otherwise.
const (
	fairSpeed, badSpeed         = 0.1, .5   // spread of the speed between its deciles
	badWaiting                  = 0.1       // fraction of the time waiting for a processor
	fairStolen, badStolen       = 0.01, .05 // stolen by the hypervisor
	fairInstruments             = 0.25      // profiling overhead
	fairReconcile, badReconcile = 0.1, .25  // difference of the layers' sum and plain runs
	fairBusy                    = 0.5       // load average per processor before the runs
	noted                       = 0.1       // disturbed part that is reported
)

// Errors of a time that no run shows, as standard deviations. They were determined by bench/repeat
// over its six networks.
const (
	// processSpread is the difference between processes on an idle machine, as a fraction of the
	// time, virtualSpread that on a virtual machine: neighbours use the same caches and memory,
	// which neither a clock nor the reference loop shows.
	processSpread, virtualSpread = 0.005, 0.02
	// exponentSpread is the deviation from one of the exponent with which inferences follow the
	// reference loop.
	exponentSpread = 0.08
)

// Spread returns the relative standard deviation between processes that time the same work, which
// no process shows.
func Spread(virtual bool) float64 {
	if virtual {
		return virtualSpread
	}
	return processSpread
}

// Errors of a latency that no run shows, with a probability of 95 %. They come from bench/disturbed
// on a virtual machine of two processors: of 20 profiles alone 19 differed from the median of five
// by 7 % at most, of those beside four programs that compute by 26 %. With 0.05 for busyError, 95 %
// of 220 profiles were within 0.72 of their tolerance.
const (
	// disturbedError is the error if all of the time is disturbed. Undisturbed inferences between
	// preemptions find the caches filled with other data.
	disturbedError = 0.15
	// busyError is the error for each runnable thread of other programs per processor, which
	// compete for caches and memory even if they leave this processor alone. Beyond mostBusy they
	// wait instead.
	busyError = 0.035
	mostBusy  = 3.0
)

// Trust judges a run, whose threads were to be pinned if pin is set. The totals and layers must be
// set already. divided has the shares of the layers; nil if other code computed them.
func (r *Run) Trust(p *profile.Profile, pin bool, divided *Division) *profile.Trust {
	if r.Plain.Used == 0 {
		return nil
	}
	var d quality.Doubts
	st := r.judgeSeries(&d, p)
	judgeMachine(&d, p, r.Result, pin)
	judgeAgreement(&d, p, divided)
	shares := d.Shares(p, divided.usable(len(r.Profiled)))
	t := d.Trust(r.tolerance(p, &st), shares)
	t.Interval = profile.OfRepeats
	steady := st.Steady != nil && *st.Steady
	if !steady || t.Verdict != profile.Good {
		t.Interval = profile.OfThisRun
	}
	mode := r.Plain.Modes[r.Plain.Headline]
	t.Blocks = new(int64(min(mode.Runs, stats.MostBlocks)))
	t.Undisturbed, t.Disturbed = new(int64(r.Plain.All-r.Plain.Disturbed)), new(int64(r.Plain.Disturbed))
	if len(r.Plain.Modes) > 1 {
		t.Modes, t.ModesBySpeed = modes(&r.Plain), r.Plain.BySpeed
	}
	t.Quote = recommended(t)
	return t
}

// tolerance returns what the latency may differ by from that on the quiet machine. The interval of
// a run shows its own variation, and the spread of processes; the other errors
// are those that stay the same during a run.
func (r *Run) tolerance(p *profile.Profile, st *stats.Stability) float64 {
	errors := []float64{quality.HalfWidth(p.Totals.Latency), r.speedError(), disturbedError * r.disturbed(p.Host), r.modeError()}
	if st.Steady != nil && !*st.Steady {
		// A repeated run may be at the last level all the time.
		errors = append(errors, max(math.Abs(st.Change), math.Abs(st.Drift)))
	}
	if h := p.Host; h != nil {
		if s := h.Before; s != nil && s.LoadAverage != nil && h.CPUs != nil && *h.CPUs > 0 {
			errors = append(errors, busyError*min(*s.LoadAverage/float64(*h.CPUs), mostBusy))
		}
	}
	return quality.Tolerance(errors...)
}

// speedError is half of the speed's spread while the machine was at the stated mode: a repeated run
// may have the speed at either end all the time.
func (r *Run) speedError() float64 {
	var speeds, times []float64
	for _, s := range r.Samples(loop.ReferenceRound) {
		if s.Speed > 0 && r.Plain.ModeOf(s.Seconds) == r.Plain.Headline {
			speeds, times = append(speeds, s.Speed), append(times, s.Seconds)
		}
	}
	if len(speeds) == 0 {
		return 0
	}
	return speedSpread(speeds, times) / 2
}

// speedSpread is how far the machine's speed moved, relative to its median, as far as the
// inferences moved, too: otherwise the reference loop was disturbed, or it needs what they do not.
func speedSpread(speeds, times []float64) float64 {
	return min(relativeSpread(speeds), relativeSpread(times))
}

// disturbed is the part of the time or of the inferences that other programs disturbed, the larger
// one: short inferences fit between preemptions.
func (r *Run) disturbed(h *profile.Host) float64 {
	part := 0.0
	if n := len(r.Result.Disturbed); n > 0 {
		part = float64(r.Plain.Disturbed) / float64(n)
	}
	if w := r.Waited(); w > part { // not for NaN
		part = w
	}
	if took := watched(h, r.Result); h != nil && h.StolenS != nil && took > 0 {
		part = max(part, min(1, *h.StolenS/took))
	}
	return part
}

// modeError is the distance to the other modes if nothing explains them: a repeated run may have
// another one as the most frequent.
func (r *Run) modeError() float64 {
	if r.Plain.BySpeed {
		return 0
	}
	stated, far := r.Plain.Modes[r.Plain.Headline].Median, 0.0
	for _, m := range r.Plain.Modes {
		far = max(far, math.Abs(m.Median/stated-1))
	}
	return far
}

// modes describes the speeds that the machine ran at.
func modes(l *estimator.Latency) []profile.Mode {
	var out []profile.Mode
	for i, m := range l.Modes {
		o := profile.Mode{Part: m.Part, LatencyS: m.Median, Headline: i == l.Headline}
		if m.Speed > 0 {
			o.Speed = new(m.Speed)
		}
		if !math.IsNaN(m.Low) {
			o.CI95 = &[2]float64{m.Low, m.High}
		}
		out = append(out, o)
	}
	return out
}

// recommended returns the key of the recommended figure: the latency, unless there are too few runs
// for any.
func recommended(t *profile.Trust) string {
	for _, d := range t.Doubts {
		if d.Code == profile.DoubtFewRuns && d.Verdict == profile.Unreliable {
			return ""
		}
	}
	return "latency_s"
}

// judgeSeries judges the times of the mode that the latency comes from, and returns whether they
// were stable.
func (r *Run) judgeSeries(d *quality.Doubts, p *profile.Profile) stats.Stability {
	var times, speeds []float64
	for _, t := range r.Plain.Times {
		if r.Plain.ModeOf(t) == r.Plain.Headline {
			times = append(times, t)
		}
	}
	st := stats.Judge(times)
	d.Series(p.Totals.Latency, len(times), &st)
	if speeds = r.Speeds(loop.ReferenceRound); len(speeds) >= quality.FewRuns && len(r.Plain.Modes) < 2 {
		d.Above(profile.DoubtSpeed, speedSpread(speeds, times), fairSpeed, badSpeed)
	}
	judgeModes(d, &r.Plain)
	if r.Plain.Worked {
		d.Add(profile.DoubtWaiting, profile.Fair, float64(r.Plain.Disturbed)/float64(r.Plain.All), 0)
	} else if part := r.disturbed(nil); part > noted {
		// Figures come from the others: what remains of it is in the tolerance.
		d.Add(profile.DoubtWaiting, profile.Good, part, noted)
	}
	if r.GC > 0 {
		d.Add(profile.DoubtCollector, profile.Fair, float64(r.GC), 0)
	}
	return st
}

// judgeModes judges separate groups of times that the machine's speed does not explain.
func judgeModes(d *quality.Doubts, l *estimator.Latency) {
	n := len(l.Modes)
	if n < 2 || l.BySpeed {
		return
	}
	v := profile.Fair
	if l.Modes[n-1].Median > (1+quality.BadChange)*l.Modes[0].Median {
		v = profile.Unreliable
	}
	d.Add(profile.DoubtModes, v, float64(n), 1)
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
	took := watched(h, res)
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

// watched returns the time that the counters of a computer cover, of which short runs are a small
// part; that of all runs if it is not known.
func watched(h *profile.Host, res *loop.Result) float64 {
	if h != nil && h.WatchedS != nil {
		return *h.WatchedS
	}
	return totalTime(res)
}

// totalTime returns the time of all runs.
func totalTime(res *loop.Result) float64 {
	return stats.Sum(res.Plain)*float64(res.Batch) + stats.Sum(res.Profiled)
}

// judgeAgreement judges the agreement of passes and layers, and missing layers.
func judgeAgreement(d *quality.Doubts, p *profile.Profile, divided *Division) {
	d.Layers(p)
	r := p.Reconcile
	if r == nil || *r.PlainS <= 0 {
		return
	}
	// Only if significant: the interval excludes zero.
	o := r.OverheadS
	if o != nil && o.CI95 != nil && o.CI95[0] > 0 {
		d.Above(profile.DoubtInstruments, *o.Median / *r.PlainS, fairInstruments, 0)
		return
	}
	if divided != nil && !divided.recorded {
		return // layers that divide the latency add up to it
	}
	if diff := math.Abs(*r.WallS / *r.PlainS - 1); diff > 0 {
		// Profiling overhead does not explain it: other programs do.
		d.Above(profile.DoubtReconcile, diff, fairReconcile, badReconcile)
	}
}

func deciles(s []float64) (low, high float64) {
	sorted := sortedCopy(s)
	return stats.Quantile(sorted, 0.1), stats.Quantile(sorted, 0.9)
}
