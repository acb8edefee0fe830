package host

import (
	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/internal/stats"
	"github.com/opmeter/opmeter/profile"
)

// Limits above which the machine's own doings are worth a word.
const (
	stolenLimit   = 0.01 // part of the measured time
	switchesLimit = 1.0  // involuntary switches a second
	busyLimit     = 0.5  // load average per processor before the runs
)

// run reports what makes the figures of a run less certain.
func run(p *profile.Profile, res *measure.Result, o *Options) []profile.Finding {
	var out []profile.Finding
	find := func(id string, sev profile.Severity, format string, args ...any) {
		out = append(out, finding(id, sev, nil, format, args...))
	}
	st := res.Stability
	if st.Steady != nil && !*st.Steady {
		find("measure.not-steady", profile.Warning, "No steady state: %s. Longer runs or a quieter machine may help.", st.Reason)
	} else if st.Steady == nil && st.Reason != "" {
		find("measure.few-runs", profile.Info, "%s: more runs would tell.", capital(st.Reason))
	}
	if st.Unstable {
		find("measure.unstable", profile.Warning, "Times vary by %.1f %% (coefficient of variation; above %.1f %% counts as unstable). The median and its interval are the figures to use.", 100*st.CV, 100*stats.UnstableCV)
	}
	if st.Modes > 1 {
		find("measure.two-modes", profile.Info, "The runs fall into two separate groups of times: one median does not describe both.")
	}
	if st.N >= 36 && st.Lag1 > st.AutoLimit && st.Lag1 > 0.3 {
		find("measure.dependent", profile.Info, "Neighbouring runs are alike (autocorrelation %.2f): the interval is narrower than it should be.", st.Lag1)
	}
	if res.GC > 0 {
		find("measure.gc", profile.Warning, "The garbage collector ran %d times within timed regions.", res.GC)
	}
	if len(p.Settings.PinnedCPUs) > 0 && !res.Pinned && res.PinError != nil {
		find("measure.not-pinned", profile.Warning, "Threads could not be bound to processors: %v.", res.PinError)
	} else if o.Pin && len(p.Settings.PinnedCPUs) == 0 {
		find("measure.not-pinned", profile.Warning, "Threads could not be bound: there are fewer processors than threads, or the system does not allow it.")
	}
	return append(out, state(p, res)...)
}

// state reports what the machine did meanwhile.
func state(p *profile.Profile, res *measure.Result) []profile.Finding {
	h := p.Host
	if h == nil {
		return nil
	}
	var out []profile.Finding
	find := func(id string, sev profile.Severity, format string, args ...any) {
		out = append(out, finding(id, sev, nil, format, args...))
	}
	var took float64
	for _, t := range res.Plain {
		took += t * float64(res.Batch)
	}
	for _, t := range res.Profiled {
		took += t
	}
	if s := h.StolenS; s != nil && took > 0 && *s > stolenLimit*took {
		find("machine.stolen", profile.Warning, "The hypervisor took %.2g s of processor time away during %.2g s of runs.", *s, took)
	}
	if n := h.Throttled; n != nil && *n > 0 {
		find("machine.throttled", profile.Warning, "The processor throttled for heat %d times during the runs.", *n)
	}
	if s := h.QuotaThrottledS; s != nil && *s > 0 {
		find("machine.quota", profile.Warning, "The control group's quota stopped the program for %.2g s during the runs.", *s)
	}
	if n := h.InvoluntarySwitches; n != nil && took > 0 && float64(*n) > switchesLimit*took && *n > 5 {
		find("machine.switched", profile.Info, "Other programs took the processor %d times during the runs.", *n)
	}
	if s := h.Before; s != nil && s.LoadAverage != nil && h.CPUs != nil && *s.LoadAverage > busyLimit*float64(*h.CPUs) {
		find("machine.busy", profile.Info, "The machine was busy before the runs: load average %.1f on %d processors.", *s.LoadAverage, *h.CPUs)
	}
	if h.Governor != "" && h.Governor != "performance" {
		find("machine.governor", profile.Info, "The frequency governor is %q: times depend on how it follows the load.", h.Governor)
	}
	if h.OnBattery != nil && *h.OnBattery {
		find("machine.battery", profile.Warning, "The machine runs from its battery: its speed may be limited.")
	}
	if n := p.Settings.Threads; n != nil && h.CPUs != nil && *n > *h.CPUs {
		find("machine.threads", profile.Warning, "%d threads share %d processors: times include waiting.", *n, *h.CPUs)
	}
	return out
}

func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
