package words

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Verdict is the word for a verdict, "" for none.
func Verdict(v profile.Verdict) string {
	if v == profile.DoNotUse {
		return "do not use"
	}
	return string(v)
}

// Origin is the word for figures that nobody here can vouch for: those of another
// tool's record. It is "" for all others.
func Origin(p *profile.Profile) string {
	if p.Target.Kind == profile.TargetImport {
		return "imported"
	}
	return ""
}

// Doubts lists the reasons for a verdict, the gravest first; "" for none.
func Doubts(t *profile.Trust) string {
	if t == nil {
		return ""
	}
	out := make([]string, len(t.Doubts))
	for i := range t.Doubts {
		out[i] = doubt(&t.Doubts[i])
	}
	return strings.Join(out, "; ")
}

// doubt says what a reason is.
func doubt(d *profile.Doubt) string {
	v := 0.0
	if d.Value != nil {
		v = *d.Value
	}
	part := percent(v)
	switch d.Code {
	case profile.DoubtFewRuns:
		return "only " + Plural(int64(v), "run")
	case profile.DoubtInterval:
		return "the 95 % interval is ±" + part
	case profile.DoubtSpread:
		return "times vary by " + part + " (coefficient of variation)"
	case profile.DoubtStep:
		return "the time changed by " + part + " during the runs"
	case profile.DoubtDrift:
		return "the time drifted by " + part + " during the runs"
	case profile.DoubtModes:
		return "the runs fall into two groups of times"
	case profile.DoubtSpeed:
		return "the machine's speed varied by " + part
	case profile.DoubtWaiting:
		return "other programs had the processor for " + part + " of the time"
	case profile.DoubtStolen:
		return "the hypervisor took " + part + " of the time"
	case profile.DoubtThrottled:
		return "the processor throttled for heat " + times(v)
	case profile.DoubtQuota:
		return fmt.Sprintf("a quota stopped the program for %.2g s", v)
	case profile.DoubtBusy:
		return fmt.Sprintf("the machine was busy before (load %.1f a processor)", v)
	case profile.DoubtGovernor:
		return "the frequency follows the load"
	case profile.DoubtBattery:
		return "the machine runs from its battery"
	case profile.DoubtThreads:
		return fmt.Sprintf("%.2g threads share a processor", v)
	case profile.DoubtCollector:
		return "the garbage collector ran " + times(v)
	case profile.DoubtInstruments:
		return "the instruments add " + part
	case profile.DoubtReconcile:
		return "layers and plain runs differ by " + part
	case profile.DoubtIncomplete:
		return Plural(int64(v), "layer") + " did not run"
	case profile.DoubtNotPinned:
		return "threads could not be bound"
	case profile.DoubtLost:
		return "of " + part + " of the inferences something was lost on the way"
	}
	return string(d.Code)
}

func times(v float64) string {
	if v == 1 {
		return "once"
	}
	return Plural(int64(v), "time")
}

// percent writes a part with two digits.
func percent(v float64) string {
	p := 100 * v
	if p >= 99.5 {
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(p, 'g', 2, 64) + " %"
}

// Quote names the figure that a verdict offers to be quoted, "" for the latency itself
// and for none.
func Quote(t *profile.Trust) string {
	if t == nil {
		return ""
	}
	switch t.Quote {
	case "undisturbed_latency_s":
		return "undisturbed runs"
	case "processor_s":
		return "processor time"
	}
	return ""
}

// Holds says what the 95 % interval of a latency holds.
func Holds(t *profile.Trust) string {
	if t != nil && t.Interval == profile.OfThisRun {
		return "95 % of this run between"
	}
	return "95 % between"
}
