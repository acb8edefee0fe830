package measure

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/profile"
)

// Findings says what a reader must know about the quality of a measurement:
// unsteady, unstable or few runs, a disturbed machine, missing pinning. threads is
// the number of threads that computed. host may be nil.
func Findings(res *Result, host *profile.Host, threads int) []profile.Finding {
	f := &findings{}
	f.series(res)
	f.pinning(res, threads)
	if res.GC > 0 {
		f.add("measure.gc", profile.Warning, "The garbage collector ran %d times within timed regions.", res.GC)
	}
	if host != nil {
		f.machine(res, host, threads)
	}
	return f.list
}

type findings struct{ list []profile.Finding }

func (f *findings) add(id string, s profile.Severity, format string, args ...any) {
	f.list = append(f.list, profile.Finding{ID: id, Severity: s, Text: fmt.Sprintf(format, args...)})
}

// series is about the samples themselves.
func (f *findings) series(res *Result) {
	s := res.Stability
	if s.N == 0 {
		f.add("measure.none", profile.Problem, "No run was measured.")
		return
	}
	switch {
	case s.Steady == nil:
		f.add("measure.few_samples", profile.Warning, "Only %d runs were measured: %d are needed to tell a steady state and 36 for the 90th percentile.", s.N, minTrend)
	case !*s.Steady:
		f.add("measure.no_steady_state", profile.Warning, "No steady state was reached: %s. Figures depend on when they were taken.", s.Reason)
	}
	if s.Unstable {
		f.add("measure.unstable", profile.Warning, "Times vary by %.1f %% (coefficient of variation; %.1f %% without outliers): above %.1f %% small differences mean nothing.", 100*s.CV, 100*s.RobustCV, 100*UnstableCV)
	}
	if s.Modes > 1 {
		f.add("measure.two_modes", profile.Warning, "Times fall into two separate groups: the median stands for neither. Look at the distribution.")
	}
	if s.Steady != nil && math.Abs(s.Lag1) > max(s.AutoLimit, 0.3) {
		f.add("measure.autocorrelated", profile.Info, "Neighbouring runs are alike (autocorrelation %.2f): intervals are narrower than they should be.", s.Lag1)
	}
	if s.N >= 4 {
		o := Tukey(sorted(res.Plain))
		if share := float64(o.Severe()) / float64(s.N); share > 0.05 {
			f.add("measure.outliers", profile.Info, "%d of %d runs are far outside the rest (%d slower, %d faster). They are kept.", o.Severe(), s.N, o.HighSevere, o.LowSevere)
		}
	}
	if res.Batch > 1 {
		f.add("measure.batched", profile.Info, "A run is too short for the clock: each sample is the mean of %d runs.", res.Batch)
	}
}

func (f *findings) pinning(res *Result, threads int) {
	switch {
	case res.PinError != nil:
		f.add("measure.not_pinned", profile.Info, "Threads were not bound to processors: %v.", res.PinError)
	case !res.Pinned:
		f.add("measure.not_pinned", profile.Info, "Threads were not bound to processors: the scheduler may move them.")
	}
}

// machine is about what else the computer did.
func (f *findings) machine(res *Result, h *profile.Host, threads int) {
	total := 0.0
	for _, t := range res.Plain {
		total += t * float64(res.Batch)
	}
	for _, t := range res.Profiled {
		total += t
	}
	if h.StolenS != nil && *h.StolenS > 0.01*total && *h.StolenS > 0 {
		f.add("machine.stolen", profile.Warning, "The hypervisor gave %.2f s of processor time to others during %.2f s of measurement.", *h.StolenS, total)
	}
	if h.QuotaThrottledS != nil && *h.QuotaThrottledS > 0 {
		f.add("machine.quota", profile.Warning, "The control group's quota stopped the process for %.2f s.", *h.QuotaThrottledS)
	}
	if h.CPUQuota != nil && *h.CPUQuota < float64(threads) {
		f.add("machine.quota_small", profile.Warning, "The control group grants %.1f processors to %d threads.", *h.CPUQuota, threads)
	}
	if h.Throttled != nil && *h.Throttled > 0 {
		f.add("machine.throttled", profile.Warning, "The processor throttled %d times for heat.", *h.Throttled)
	}
	if h.OnBattery != nil && *h.OnBattery {
		f.add("machine.battery", profile.Warning, "The machine runs from its battery, which may lower its frequency.")
	}
	if h.Governor != "" && h.Governor != "performance" {
		f.add("machine.governor", profile.Info, "The frequency governor is %q: the frequency follows the load.", h.Governor)
	}
	if b, a := h.Before, h.After; b != nil {
		if h.CPUs != nil && b.LoadAverage != nil && *b.LoadAverage > 0.5*float64(*h.CPUs) {
			f.add("machine.busy", profile.Warning, "The machine was busy before the start: %.1f threads wanted its %d processors.", *b.LoadAverage, *h.CPUs)
		}
		if a != nil && b.FrequencyHz != nil && a.FrequencyHz != nil && *b.FrequencyHz > 0 {
			if d := *a.FrequencyHz / *b.FrequencyHz - 1; math.Abs(d) > 0.05 {
				f.add("machine.frequency", profile.Info, "The processor's frequency was %.2f GHz before and %.2f GHz after the runs.", *b.FrequencyHz/1e9, *a.FrequencyHz/1e9)
			}
		}
	}
	if h.InvoluntarySwitches != nil && len(res.Plain) > 0 {
		if n := len(res.Plain)*res.Batch + len(res.Profiled); *h.InvoluntarySwitches > int64(n) {
			f.add("machine.preempted", profile.Warning, "The process lost its processor %d times during %d runs.", *h.InvoluntarySwitches, n)
		}
	}
	if h.CPUs != nil && int64(threads) > *h.CPUs {
		f.add("measure.oversubscribed", profile.Warning, "%d threads share %d processors.", threads, *h.CPUs)
	}
}
