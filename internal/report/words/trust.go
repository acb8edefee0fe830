package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// FitCell is [Fit] for a cell of a table: "±2 %", "shares" or "repeat"; "" for none.
func FitCell(t *profile.Trust) string {
	switch {
	case t.Fit == profile.FitComparing && t.Tolerance != nil:
		return "±" + tolerance(*t.Tolerance)
	case t.Fit == profile.FitShares:
		return "shares"
	case t.Fit == profile.FitNothing || t.Verdict == profile.Unreliable:
		return "repeat"
	case t.Verdict == profile.Good:
		return "comparing"
	case t.Verdict == profile.Fair:
		return "doubtful"
	}
	return ""
}

// Fit says what a measurement is good for: "fit for comparing at ±2 %"; "" for none.
func Fit(t *profile.Trust) string {
	if t == nil || t.Verdict == "" {
		return ""
	}
	total := ""
	if t.Tolerance != nil {
		total = "±" + tolerance(*t.Tolerance)
	}
	switch {
	case t.Fit == profile.FitComparing && total != "":
		return "fit for comparing at " + total
	case t.Fit == profile.FitShares && total != "":
		return "fit for shares, total " + total
	case t.Fit == profile.FitShares:
		return "fit for shares alone"
	case t.Fit == profile.FitNothing && t.Verdict == profile.Fair && total != "":
		return "not fit for comparing, total " + total
	}
	// A file without these fields has the verdict alone.
	switch t.Verdict {
	case profile.Good:
		return "fit for comparing"
	case profile.Unreliable:
		return "unstable: repeat"
	}
	return "not fit for comparing"
}

// tolerance writes a part as per cent, rounded up: a smaller figure would promise too much.
func tolerance(v float64) string {
	p := 100 * v
	if p < 2 {
		return Fixed(math.Ceil(10*p-1e-9)/10, 1) + " %"
	}
	return Fixed(math.Ceil(p-1e-9), 0) + " %"
}

// Modes describes the speeds that the machine ran at, and which one the latency is; "" for one.
// show writes a time in seconds.
func Modes(p *profile.Profile, show func(float64) string) string {
	t := p.Trust
	if t == nil || len(t.Modes) < 2 {
		return ""
	}
	parts := make([]string, len(t.Modes))
	stated := ""
	for i, m := range t.Modes {
		parts[i] = show(m.LatencyS) + " in " + percent(m.Part)
		if i == 0 {
			parts[i] += " of the inferences"
		}
		if m.Headline {
			stated = show(m.LatencyS)
		}
	}
	count := Plural(int64(len(parts)), "speed")
	if n := len(parts); n < len(numbers) {
		count = numbers[n] + " speeds"
	}
	s := count + ": " + strings.Join(parts, ", ") + "; stated is " + stated
	if t.ModesBySpeed {
		return s + ", the speed at which the reference loop runs fastest"
	}
	s += ", the most frequent (the reference loop does not explain them)"
	if h := p.Host; h != nil && h.SMT != nil && *h.SMT {
		s += "; a program on the other hardware thread of a core may be the cause"
	}
	return s
}

var numbers = []string{2: "two", 3: "three", 4: "four"}

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
		return "latency varies by " + part
	case profile.DoubtStep:
		return "latency shifted by " + part + " during the runs"
	case profile.DoubtDrift:
		return "latency drifted by " + part + " during the runs"
	case profile.DoubtModes:
		return "latencies fall into separate groups that the machine's speed does not explain"
	case profile.DoubtSpeed:
		return "machine speed varied by " + part
	case profile.DoubtEarlier:
		return "machine speed differs by " + part + " from earlier measurements"
	case profile.DoubtWaiting:
		return "other programs disturbed " + part + " of the inferences"
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
	case profile.DoubtTolerance:
		if d.Value == nil {
			return "error of the total unknown"
		}
		return "a repeated run may differ by " + part
	case profile.DoubtShareRuns:
		return "shares come from only " + Plural(int64(v), "undisturbed run")
	case profile.DoubtShares:
		if d.Value == nil {
			return "error of the shares unknown"
		}
		return "shares are only known to ±" + part + " of the inference"
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
	{profile.DoubtEarlier, "CPU speed changes between runs", "fix the CPU frequency, or compare with opmeter ab"},
	{profile.DoubtBattery, "running on battery", "plug in the power supply and repeat"},
	{profile.DoubtCollector, "garbage collector ran", "repeat with --time 10s"},
}

// symptoms are reasons that have a cause among the others.
var symptoms = []profile.DoubtCode{
	profile.DoubtInterval, profile.DoubtSpread, profile.DoubtStep, profile.DoubtDrift, profile.DoubtModes, profile.DoubtReconcile,
	profile.DoubtTolerance,
}

// Quality says what a measurement is good for with the main reason, such as "unstable: repeat
// (machine busy)"; "" for none. What is fit for comparing has no reason.
func Quality(t *profile.Trust) string {
	s := Fit(t)
	if why, _ := Reason(t); why != "" {
		return s + " (" + why + ")"
	}
	return s
}

// SharesDoubt is the reason to doubt the shares of the layers, "" for none.
func SharesDoubt(t *profile.Trust) string {
	if !t.SharesDoubted() {
		return ""
	}
	for i := range t.Doubts {
		if one := (&profile.Trust{Doubts: t.Doubts[i : i+1]}); one.SharesDoubted() {
			return doubt(&t.Doubts[i])
		}
	}
	return ""
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
