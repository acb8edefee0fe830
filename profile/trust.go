package profile

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Verdict is the quality of the latency of the whole model. What follows for a profile is its
// [Fit]. The rule is in docs/reference/measurement-quality.md.
type Verdict string

// Verdicts, from the best to the worst.
const (
	Good       Verdict = "good"       // fit for comparing at [Trust.Tolerance], at most 10 %
	Fair       Verdict = "fair"       // off by 10 % or more: not for comparing
	Unreliable Verdict = "unreliable" // off by 25 % or more: not reproducible
)

// Fit says what a measurement is good for.
type Fit string

// What a measurement is good for, the most first.
const (
	// FitComparing: the latency may be compared with that of another run at [Trust.Tolerance].
	FitComparing Fit = "comparing"
	// FitShares: the shares of the layers hold, the latency is only known to the tolerance.
	FitShares Fit = "shares"
	// FitNothing: neither holds, the measurement is to be repeated.
	FitNothing Fit = "nothing"
)

var fits = []string{string(FitComparing), string(FitShares), string(FitNothing)}

var verdicts = []string{string(Good), string(Fair), string(Unreliable)}

// AtLeast reports whether v is as good as the other verdict or better. The empty
// verdict, of what was not measured, is.
func (v Verdict) AtLeast(other Verdict) bool {
	return slices.Index(verdicts, string(v)) <= slices.Index(verdicts, string(other))
}

// DoubtCode names a reason for a verdict below [Good].
type DoubtCode string

// Reasons to doubt a latency. Value and Limit of a [Doubt] are what is said behind.
const (
	DoubtFewRuns  DoubtCode = "few_runs"  // number of runs
	DoubtInterval DoubtCode = "interval"  // half of the 95 % interval as a part of the time
	DoubtSpread   DoubtCode = "spread"    // scaled median absolute deviation as a part of the median
	DoubtStep     DoubtCode = "step"      // change of level during the runs, as a part
	DoubtDrift    DoubtCode = "drift"     // change over all runs, as a part
	DoubtModes    DoubtCode = "two_modes" // two separate groups of times
	// spread of the machine's speed during the runs, as a part
	DoubtSpeed DoubtCode = "speed"
	// what the machine's speed differs by from that of earlier measurements, as a part
	DoubtEarlier DoubtCode = "earlier_speed"
	// part of the time in which other programs used the processor
	DoubtWaiting DoubtCode = "waiting"
	DoubtStolen  DoubtCode = "stolen" // part of the time that the hypervisor took
	// number of times that the processor throttled for heat
	DoubtThrottled   DoubtCode = "throttled"
	DoubtQuota       DoubtCode = "quota"       // seconds for which a quota stopped the program
	DoubtBusy        DoubtCode = "busy"        // load average for each processor before the runs
	DoubtGovernor    DoubtCode = "governor"    // a frequency policy that follows the load
	DoubtBattery     DoubtCode = "battery"     // runs from its battery
	DoubtThreads     DoubtCode = "threads"     // threads for each processor
	DoubtCollector   DoubtCode = "collector"   // garbage collections during the runs
	DoubtInstruments DoubtCode = "instruments" // profiling overhead as a fraction of the time
	// what sum of the layers and plain runs differ by, as a part
	DoubtReconcile  DoubtCode = "reconcile"
	DoubtIncomplete DoubtCode = "incomplete" // layers that did not run
	DoubtNotPinned  DoubtCode = "not_pinned" // threads could not be bound as asked
	// part of the inferences of which something was lost on the way
	DoubtLost DoubtCode = "lost"
	// what the latency of a repeated run may differ by, as a part, by all causes together
	DoubtTolerance DoubtCode = "tolerance"
	// number of undisturbed inferences that the shares of the layers come from
	DoubtShareRuns DoubtCode = "share_runs"
	// half of the widest 95 % interval of a layer's share, as a part of the inference
	DoubtShares DoubtCode = "shares"
)

// doubtsOfShares are the reasons to doubt the shares of the layers.
var doubtsOfShares = []DoubtCode{DoubtShareRuns, DoubtShares, DoubtInstruments}

var doubtCodes = []string{
	string(DoubtFewRuns), string(DoubtInterval), string(DoubtSpread), string(DoubtStep), string(DoubtDrift), string(DoubtModes), string(DoubtSpeed), string(DoubtEarlier),
	string(DoubtWaiting), string(DoubtStolen), string(DoubtThrottled), string(DoubtQuota), string(DoubtBusy), string(DoubtGovernor), string(DoubtBattery), string(DoubtThreads),
	string(DoubtCollector), string(DoubtInstruments), string(DoubtReconcile), string(DoubtIncomplete), string(DoubtNotPinned), string(DoubtLost),
	string(DoubtTolerance), string(DoubtShareRuns), string(DoubtShares),
}

// Scope says what an interval is to hold.
type Scope string

// Scopes of intervals.
const (
	OfRepeats Scope = "repeats" // the figure of a repeated run, too
	OfThisRun Scope = "run"     // what this run would have shown with more of the same
)

// Trust says how far the measured latency can be relied upon, and why not further.
type Trust struct {
	// Verdict is that about the latency of the whole model.
	Verdict Verdict `json:"verdict"`
	// Fit says what the measurement is good for.
	Fit Fit `json:"fit,omitzero"`
	// Tolerance is what the latency may differ by from that on the quiet machine, as a fraction of
	// it: a probability of 95 %. Absent if unknown.
	Tolerance *float64 `json:"tolerance,omitzero"`
	// Doubts are the reasons for it, the gravest first; some may be there beside
	// the best verdict.
	Doubts []Doubt `json:"doubts,omitzero"`
	// Quote is the key of the figure of the totals to quote: "latency_s", or where the
	// machine was disturbed "undisturbed_latency_s" or "processor_s". Absent where
	// none can be quoted.
	Quote string `json:"quote,omitzero"`
	// Interval says what the 95 % interval of latency_s holds.
	Interval Scope `json:"interval,omitzero"`
	// Blocks is the number of stretches of the run that the intervals come from.
	Blocks *int64 `json:"blocks,omitzero"`
	// Undisturbed is the number of inferences during which the system reported no
	// disturbance, Disturbed that of the others. Figures come from the first, unless
	// there are too few.
	Undisturbed *int64 `json:"undisturbed,omitzero"`
	Disturbed   *int64 `json:"disturbed,omitzero"`
	// Modes are the latencies of separate groups of inferences, the fastest first;
	// absent where there is one group.
	Modes []Mode `json:"modes,omitzero"`
	// ModesBySpeed says that the machine's speed by the reference loop explains the modes.
	ModesBySpeed bool `json:"modes_by_speed,omitzero"`
}

// Mode is a group of inferences of about the same duration, such as at one of the
// speeds that the machine ran at.
type Mode struct {
	// Part is the fraction of the inferences.
	Part float64 `json:"part"`
	// LatencyS is their median and CI95 its 95 % interval, in seconds.
	LatencyS float64     `json:"latency_s"`
	CI95     *[2]float64 `json:"ci95,omitzero"`
	// Speed is the machine's speed by the reference loop.
	Speed *float64 `json:"speed,omitzero"`
	// Headline says that the latency of the profile is this one.
	Headline bool `json:"headline,omitzero"`
}

// Doubt is a reason not to rely on a latency.
type Doubt struct {
	// Code names it.
	Code DoubtCode `json:"code"`
	// Verdict is the best one that it leaves.
	Verdict Verdict `json:"verdict"`
	// Value is the figure that gave rise to it, in the unit of its code, absent
	// if unknown. Limit is what it was judged by.
	Value *float64 `json:"value,omitzero"`
	Limit *float64 `json:"limit,omitzero"`
}

// NewTrust gives the verdict that doubts leave, with these in order.
func NewTrust(doubts []Doubt) *Trust {
	t := &Trust{Verdict: Good, Doubts: slices.Clone(doubts)}
	rank := func(v Verdict) int { return slices.Index(verdicts, string(v)) }
	sorting.Stable(t.Doubts, func(a, b Doubt) int { return rank(b.Verdict) - rank(a.Verdict) })
	if len(t.Doubts) > 0 {
		t.Verdict = t.Doubts[0].Verdict
	}
	return t
}

// SharesDoubted reports whether there is a reason to doubt the shares of the layers.
func (t *Trust) SharesDoubted() bool {
	return t != nil && slices.ContainsFunc(t.Doubts, func(d Doubt) bool { return slices.Contains(doubtsOfShares, d.Code) })
}

func (c *checker) trust(t *Trust) {
	if t == nil {
		return
	}
	c.word("trust.verdict", string(t.Verdict), verdicts...)
	if t.Fit != "" {
		c.word("trust.fit", string(t.Fit), fits...)
	}
	c.reals("trust", realNamed{"tolerance", t.Tolerance})
	if t.Interval != "" {
		c.word("trust.interval", string(t.Interval), string(OfRepeats), string(OfThisRun))
	}
	if t.Quote != "" && !isKey(t.Quote) {
		c.fail("trust.quote:", "%v", badKey(t.Quote))
	}
	c.counts("trust", named{"blocks", t.Blocks}, named{"undisturbed", t.Undisturbed}, named{"disturbed", t.Disturbed})
	for i, m := range t.Modes {
		at := fmt.Sprintf("trust.modes[%d]", i)
		c.fraction(at+".part", &m.Part)
		c.reals(at, realNamed{"latency_s", &m.LatencyS}, realNamed{"speed", m.Speed})
		if m.CI95 != nil {
			c.reals(at+".ci95", realNamed{"low", &m.CI95[0]}, realNamed{"high", &m.CI95[1]})
		}
	}
	for i, d := range t.Doubts {
		at := fmt.Sprintf("trust.doubts[%d]", i)
		c.word(at+".code", string(d.Code), doubtCodes...)
		c.word(at+".verdict", string(d.Verdict), verdicts...)
		if !d.Verdict.AtLeast(t.Verdict) {
			c.fail(at+".verdict", "is %q below that of the whole, %q", d.Verdict, t.Verdict)
		}
		c.reals(at, realNamed{"value", d.Value}, realNamed{"limit", d.Limit})
	}
}
