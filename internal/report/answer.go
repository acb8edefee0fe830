package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// differences says in which of their properties the runs of a comparison differ.
type differences struct{ engines, kinds, targets, dtypes, threads, models, machines bool }

func differing(t *compare.Table) (d differences) {
	first := &t.Runs[0]
	for i := range t.Runs {
		r := &t.Runs[i]
		d.engines = d.engines || r.Engine != first.Engine
		d.kinds = d.kinds || words.VersusSource(r) != words.VersusSource(first)
		d.targets = d.targets || r.Target != first.Target
		d.dtypes = d.dtypes || r.DType != first.DType
		d.machines = d.machines || t.OtherMachines(i) && r.Machine != first.Machine
		d.models = d.models || r.Model != first.Model
		d.threads = d.threads || r.Threads != nil && first.Threads != nil && *r.Threads != *first.Threads
	}
	return d
}

func (d differences) engine(r *compare.Run) string {
	return only(d.engines && r.Engine != r.Name, r.Engine)
}

func (d differences) target(r *compare.Run) string {
	return only(d.targets && r.Target != r.Name, r.Target)
}

// kind is how the figures of a run came about, where that differs.
func (d differences) kind(r *compare.Run) string { return only(d.kinds, words.VersusSource(r)) }

func (d differences) dtype(r *compare.Run) string { return only(d.dtypes, r.DType) }

func only(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

// label names a run with the properties in which it differs from others: "two [2 threads]".
func (d differences) label(r *compare.Run) string {
	var parts []string
	for _, s := range []string{only(d.models && r.Model != r.Name, r.Model), only(d.machines, r.Machine), d.kind(r), d.dtype(r), d.target(r), d.engine(r)} {
		if s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	if d.threads && r.Threads != nil {
		parts = append(parts, words.Plural(*r.Threads, "thread"))
	}
	if len(parts) == 0 {
		return r.Name
	}
	return r.Name + " [" + strings.Join(parts, ", ") + "]"
}

// answers says in a sentence for each run whether it is faster than the first one. What would
// decide follows if that is open.
func answers(t *compare.Table) []string {
	d := differing(t)
	var out []string
	for i := range t.Notes {
		if n := &t.Notes[i]; n.Code == compare.Unrelated {
			out = append(out, words.VersusNote(t, n))
		}
	}
	open := false
	for k := 1; k < len(t.Runs); k++ {
		r := &t.Runs[k]
		out = append(out, answer(t, d, k))
		open = open || !t.OtherMachines(k) && r.Ratio.Verdict == compare.Open && r.Ratio.Value != nil && r.Source == compare.Measured && t.Runs[0].Source == compare.Measured
	}
	if open && slices.Contains(profile.Costs(), t.Quantity) {
		out = append(out, "To decide: opmeter ab, or six or more interleaved profiles of each side: opmeter compare A1 A2 … -- B1 B2 …")
	}
	return out
}

func answer(t *compare.Table, d differences, k int) string {
	first, r := &t.Runs[0], &t.Runs[k]
	a, b := d.label(r), d.label(first)
	show := func(v float64) string { return versusFigure(t, &v) }
	if why := words.VersusWhyNot(t, k, t.Topic); why != "" {
		return fmt.Sprintf("%s and %s: %s do not compare, %s%s", a, b, versusWhats(t), why, bothFigures(r, first, show))
	}
	if r.Ratio.Value == nil || r.Total.Value == nil || first.Total.Value == nil {
		return fmt.Sprintf("%s and %s: no ratio, since the total of one is missing or incomplete", a, b)
	}
	cells := versusCells([]compare.Figure{first.Total, r.Total}, []compare.Ratio{{}, r.Ratio}, versusPrecise(t))
	figures := pairOfTexts(cells[1], " vs ", cells[0])
	ratio := *r.Ratio.Value
	if !slices.Contains(profile.Costs(), t.Quantity) {
		return answerFigure(t, a, b, r, figures)
	}
	between := func(before string, low, high float64) string {
		if r.Ratio.Interval == compare.Exact {
			return "(" + figures + ")"
		}
		return fmt.Sprintf("(%s; %s%s %s to %s)", figures, before, words.VersusInterval(r.Ratio.Interval), words.Ratio(low), words.Ratio(high))
	}
	if r.Ratio.Low == nil || r.Ratio.High == nil {
		return fmt.Sprintf("%s and %s: undecided, %s (%s; ratio %s)", a, b, undecided(t, r), figures, words.Ratio(ratio))
	}
	low, high, same := *r.Ratio.Low, *r.Ratio.High, "ratio "+words.Ratio(ratio)+", "
	var s string
	switch {
	case r.Ratio.Interval == compare.Exact && ratio == 1:
		return fmt.Sprintf("%s takes as long as %s (%s)", a, b, show(*r.Total.Value))
	case versusSame(&r.Ratio):
		return fmt.Sprintf("%s takes as long as %s (%s): estimates of the same layers are equal", a, b, show(*r.Total.Value))
	case r.Ratio.Verdict == compare.Alike:
		return fmt.Sprintf("%s is as fast as %s within 5 %% %s", a, b, between(same, low, high))
	case !versusDiffers(r.Ratio.Verdict):
		return fmt.Sprintf("%s is not measurably faster or slower than %s: %s %s", a, b, undecided(t, r), between(same, low, high))
	case ratio < 1: // told as speed
		s = fmt.Sprintf("%s is %sx as fast as %s %s", a, words.Ratio(1/ratio), b, between("", 1/high, 1/low))
	default: // told as time
		s = fmt.Sprintf("%s takes %sx as long as %s %s", a, words.Ratio(ratio), b, between("", low, high))
	}
	if t.OtherMachines(k) {
		s += " · compares the machines" + only(d.engines, " and engines") + ", not the model"
	}
	if r.Trust == profile.Unreliable || first.Trust == profile.Unreliable {
		s += " · unstable: repeat the measurement"
	}
	return s
}

// versusNotes are the limits of a comparison that the answers do not say.
func versusNotes(t *compare.Table) []string {
	out := []string{}
	for i := range t.Notes {
		if n := &t.Notes[i]; n.Code != compare.Unrelated {
			out = append(out, words.VersusNote(t, n))
		}
	}
	return out
}

// undecided says what leaves a ratio open: the side with the widest error.
func undecided(t *compare.Table, r *compare.Run) string {
	var widest *compare.Run
	worst := 0.0
	for _, x := range []*compare.Run{r, &t.Runs[0]} {
		f := &x.Total
		if f.Low == nil || f.High == nil {
			return x.Name + " has too few runs for an interval"
		}
		e := (*f.High - *f.Low) / 2 / *f.Value
		if x.Tolerance != nil && x.Repeats == 0 {
			e = max(e, *x.Tolerance)
		}
		if widest == nil || e > worst {
			worst, widest = e, x
		}
	}
	switch x := widest; {
	case x.Total.Interval == compare.Band90:
		if f := &x.Total; lopsided(f) {
			return fmt.Sprintf("the 90 %% band of %s is %s", x.Name, Range(*f.Low, *f.High, func(v float64) string { return versusFigure(t, &v) }))
		}
		return fmt.Sprintf("the estimate of %s holds within ± %s", x.Name, Percent(worst))
	case x.Repeats > 1:
		return fmt.Sprintf("the %d profiles of %s leave ± %s", x.Repeats, x.Name, Percent(worst))
	case x.Trust == profile.Unreliable:
		return fmt.Sprintf("%s was disturbed and may be off by %s", x.Name, Percent(worst))
	default:
		return fmt.Sprintf("another process of %s may differ by %s", x.Name, Percent(worst))
	}
}

// bothFigures are the totals of two runs, in brackets, "" if one is absent.
func bothFigures(r, first *compare.Run, show func(float64) string) string {
	if r.Total.Value == nil || first.Total.Value == nil {
		return ""
	}
	return " (" + pairOf(*r.Total.Value, " vs ", *first.Total.Value, show) + ")"
}

// versusWhats names what is compared, of several runs.
func versusWhats(t *compare.Table) string {
	what := versusWhat(t)
	switch {
	case what == "latency":
		return "latencies"
	case strings.HasSuffix(what, "s"):
		return what
	}
	return "figures of " + what
}

// answerFigure is the answer for a quantity that is not a cost in time.
func answerFigure(t *compare.Table, a, b string, r *compare.Run, figures string) string {
	what := versusWhat(t)
	if r.Ratio.Interval == compare.Exact && *r.Ratio.Value == 1 {
		return fmt.Sprintf("%s: %s equal to %s (%s)", a, what, b, versusFigure(t, r.Total.Value))
	}
	ratio := words.Ratio(*r.Ratio.Value)
	if r.Ratio.Interval == compare.Exact {
		ratio, _, _ = strings.Cut(versusRatio(r.Ratio), " ")
		// Counts that look equal have all digits.
		if v, first := r.Total.Value, t.Runs[0].Total.Value; versusFigure(t, v) == versusFigure(t, first) {
			figures = pairOf(*v, " vs ", *first, func(v float64) string { return strings.TrimSpace(words.Fixed(v, 0) + " " + t.Unit) })
		}
	}
	s := fmt.Sprintf("%s: %s %sx that of %s (%s", a, what, ratio, b, figures)
	if r.Ratio.Verdict == compare.Open {
		s = fmt.Sprintf("%s and %s: %s undecided (ratio %s, %s", a, b, what, ratio, figures)
	}
	if r.Ratio.Interval != compare.Exact && r.Ratio.Low != nil {
		s += fmt.Sprintf("; %s %s to %s", words.VersusInterval(r.Ratio.Interval), words.Ratio(*r.Ratio.Low), words.Ratio(*r.Ratio.High))
	}
	return s + ")"
}
