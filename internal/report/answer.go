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
type differences struct{ engines, kinds, targets, dtypes, threads, models bool }

func differing(t *compare.Table) (d differences) {
	first := &t.Runs[0]
	for i := range t.Runs {
		r := &t.Runs[i]
		d.engines = d.engines || r.Engine != first.Engine
		d.kinds = d.kinds || words.VersusSource(r) != words.VersusSource(first)
		d.targets = d.targets || r.Target != first.Target
		d.dtypes = d.dtypes || r.DType != first.DType
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
	for _, s := range []string{only(d.models && r.Model != r.Name, r.Model), d.kind(r), d.dtype(r), d.target(r), d.engine(r)} {
		if s != "" {
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

// answers says in a sentence for each run whether it is faster than the first one.
func answers(t *compare.Table) []string {
	d := differing(t)
	var out []string
	for i := range t.Runs[1:] {
		out = append(out, answer(t, d, &t.Runs[i+1]))
	}
	return out
}

func answer(t *compare.Table, d differences, r *compare.Run) string {
	first := &t.Runs[0]
	a, b := d.label(r), d.label(first)
	if r.Ratio.Value == nil || r.Total.Value == nil || first.Total.Value == nil {
		return fmt.Sprintf("%s and %s: no ratio, since the total of one is missing or incomplete", a, b)
	}
	show := func(v float64) string { return versusFigure(t, &v) }
	figures := pairOf(*r.Total.Value, " vs ", *first.Total.Value, show)
	ratio := *r.Ratio.Value
	if !slices.Contains(profile.Costs(), t.Quantity) {
		return answerFigure(t, a, b, r, figures)
	}
	// A ratio below 1 is told as speed, one above 1 as time.
	phrase, low, high := "takes %sx as long as", r.Ratio.Low, r.Ratio.High
	if ratio < 1 {
		phrase, ratio = "is %sx as fast as", 1/ratio
		if low != nil && high != nil {
			low, high = new(1 / *high), new(1 / *low)
		}
	}
	known := low != nil && high != nil
	var s string
	differs := false
	switch {
	case r.Ratio.Verdict == compare.Alike:
		s = fmt.Sprintf("%s is as fast as %s within 5 %%", a, b)
	case known && *low <= 1 && *high >= 1:
		s = fmt.Sprintf("%s is not measurably faster or slower than %s", a, b)
	default:
		differs = true
		s = fmt.Sprintf("%s %s %s", a, fmt.Sprintf(phrase, words.Ratio(ratio)), b)
	}
	s += " (" + figures
	switch {
	case !known:
		s += "; interval unknown"
	case !differs:
		s += fmt.Sprintf("; ratio %s, %s %s to %s", words.Ratio(*r.Ratio.Value), words.VersusInterval(r.Ratio.Interval), words.Ratio(*r.Ratio.Low), words.Ratio(*r.Ratio.High))
	default:
		s += fmt.Sprintf("; %s %s to %s", words.VersusInterval(r.Ratio.Interval), words.Ratio(*low), words.Ratio(*high))
	}
	s += ")"
	if r.Trust == profile.Unreliable || first.Trust == profile.Unreliable {
		s += " · unstable: repeat the measurement"
	}
	return s
}

// answerFigure is the answer for a quantity that is not a cost in time.
func answerFigure(t *compare.Table, a, b string, r *compare.Run, figures string) string {
	what := versusWhat(t)
	if r.Ratio.Interval == compare.Exact && *r.Ratio.Value == 1 {
		return fmt.Sprintf("%s: %s equal to %s (%s)", a, what, b, versusFigure(t, r.Total.Value))
	}
	s := fmt.Sprintf("%s: %s %sx that of %s (%s", a, what, words.Ratio(*r.Ratio.Value), b, figures)
	if r.Ratio.Interval != compare.Exact && r.Ratio.Low != nil {
		s += fmt.Sprintf("; %s %s to %s", words.VersusInterval(r.Ratio.Interval), words.Ratio(*r.Ratio.Low), words.Ratio(*r.Ratio.High))
	}
	return s + ")"
}
