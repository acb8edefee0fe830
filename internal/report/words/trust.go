package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Verdict is the word for a verdict, "" for none.
func Verdict(v profile.Verdict) string { return string(v) }

// Origin is "imported" for a record of another tool, whose quality is not known here, and "" for
// all other profiles.
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

// doubt describes one reason.
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
		return "95 % CI is ±" + part
	case profile.DoubtSpread:
		return "latency varies by " + part + " (CV)"
	case profile.DoubtStep:
		return "latency shifted by " + part + " during the runs"
	case profile.DoubtDrift:
		return "latency drifted by " + part + " during the runs"
	case profile.DoubtModes:
		return "latencies fall into two groups"
	case profile.DoubtSpeed:
		return "machine speed varied by " + part
	case profile.DoubtWaiting:
		return "preempted by other programs for " + part + " of the time"
	case profile.DoubtStolen:
		return "the hypervisor took " + part + " of the time"
	case profile.DoubtThrottled:
		return "CPU throttled by heat " + times(v)
	case profile.DoubtQuota:
		return fmt.Sprintf("a CPU quota stopped the program for %.2g s", v)
	case profile.DoubtBusy:
		return fmt.Sprintf("machine busy before the runs (load average %.1f per CPU)", v)
	case profile.DoubtGovernor:
		return "CPU frequency follows the load"
	case profile.DoubtBattery:
		return "running on battery"
	case profile.DoubtThreads:
		return fmt.Sprintf("%.2g threads per CPU", v)
	case profile.DoubtCollector:
		return "garbage collector ran " + times(v)
	case profile.DoubtInstruments:
		return "profiling overhead " + part
	case profile.DoubtReconcile:
		return "sum of layers and end-to-end latency differ by " + part
	case profile.DoubtIncomplete:
		return Plural(int64(v), "layer") + " did not run"
	case profile.DoubtNotPinned:
		return "threads could not be pinned"
	case profile.DoubtLost:
		return "data lost in " + part + " of the inferences"
	}
	return string(d.Code)
}

// qualityCauses are the reasons that explain a spread, a shift or a wide interval, in short words
// and in the order in which they are named. advice is what to do about them.
var qualityCauses = []struct {
	code         profile.DoubtCode
	word, advice string
}{
	{profile.DoubtThreads, "more threads than CPUs", "use fewer --threads than the computer has CPUs"},
	{profile.DoubtQuota, "CPU quota reached", "raise the CPU quota of the container"},
	{profile.DoubtThrottled, "CPU throttled by heat", "let the computer cool down and repeat"},
	{profile.DoubtWaiting, "machine busy", "close other programs and repeat with --time 10s"},
	{profile.DoubtStolen, "machine busy (hypervisor)", "repeat on a machine of your own, or with --time 10s"},
	{profile.DoubtBusy, "machine busy", "close other programs and repeat with --time 10s"},
	{profile.DoubtSpeed, "CPU speed changed", "fix the CPU frequency, or repeat with --time 10s"},
	{profile.DoubtBattery, "running on battery", "plug in the power supply and repeat"},
	{profile.DoubtCollector, "garbage collector ran", "repeat with --time 10s"},
}

// symptoms are reasons that have a cause among the others.
var symptoms = []profile.DoubtCode{
	profile.DoubtInterval, profile.DoubtSpread, profile.DoubtStep, profile.DoubtDrift, profile.DoubtModes, profile.DoubtReconcile,
}

// Quality is the verdict with its main reason, such as "unreliable (machine busy)"; "" for none.
// The verdict good has no reason.
func Quality(t *profile.Trust) string {
	if t == nil || t.Verdict == "" {
		return ""
	}
	if why, _ := Reason(t); why != "" {
		return Verdict(t.Verdict) + " (" + why + ")"
	}
	return Verdict(t.Verdict)
}

// Reason is the main reason of a verdict other than good in short words, and how to make the
// measurement more reliable. Where the gravest reason is a symptom, its cause is named.
func Reason(t *profile.Trust) (why, advice string) {
	if t == nil || t.Verdict == profile.Good || len(t.Doubts) == 0 {
		return "", ""
	}
	d := &t.Doubts[0]
	symptom := slices.Contains(symptoms, d.Code)
	for _, c := range qualityCauses {
		for i := range t.Doubts {
			if t.Doubts[i].Code == c.code && (symptom || d.Code == c.code) {
				return c.word, c.advice
			}
		}
	}
	switch d.Code {
	case profile.DoubtIncomplete, profile.DoubtLost, profile.DoubtNotPinned, profile.DoubtInstruments:
		return doubt(d), ""
	}
	return doubt(d), "measure longer: --time 10s"
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
		return Fixed(p, 0) + " %"
	}
	return strconv.FormatFloat(p, 'g', 2, 64) + " %"
}

// Quote names the recommended figure, "" where that is the latency itself and if absent.
func Quote(t *profile.Trust) string {
	if t == nil {
		return ""
	}
	switch t.Quote {
	case "undisturbed_latency_s":
		return "undisturbed runs"
	case "processor_s":
		return "CPU time"
	}
	return ""
}

// Interval names the 95 % confidence interval of a latency: of this run alone, or of repeated runs.
func Interval(t *profile.Trust) string {
	if t != nil && t.Interval == profile.OfThisRun {
		return "95 % CI of this run"
	}
	return "95 % CI"
}
