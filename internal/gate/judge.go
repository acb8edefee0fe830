package gate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/profile"
)

// Side is what is known about one version of a model on a target.
type Side struct {
	// Profile has the layers; nil where only figures are stored.
	Profile *profile.Profile
	Figures map[string]float64
}

// NewSide takes the figures of a profile.
func NewSide(p *profile.Profile) *Side { return &Side{p, Values(p)} }

// noBase is why all figures of a job without a base are undecided.
const noBase = "there is no base to compare with"

// Judge compares the exact figures of a job by the rules that apply to it. base is nil for a model
// that the base does not have; known says that the base could be read at all.
func Judge(rules []Rule, base, fresh *Side, known bool) []Row {
	var out []Row
	for i := range rules {
		if rules[i].Measured() {
			continue
		}
		if row, ok := judge(&rules[i], base, fresh, known); ok {
			out = append(out, row)
		}
	}
	return out
}

// judge applies one rule; ok is false where the rule is for other targets.
func judge(rule *Rule, base, fresh *Side, known bool) (row Row, ok bool) {
	row = rule.row()
	row.Kind = kindOf(fresh.Profile, rule.Figure)
	row.New = fresh.value(rule.Figure)
	if base != nil {
		row.Base = base.value(rule.Figure)
	}
	switch {
	case row.New == nil && row.Base == nil && rule.Target == "":
		return row, false
	case !known:
		row.Verdict, row.Why = Undecided, noBase
	case row.New == nil && (row.Base != nil || rule.Target != ""):
		row.Verdict, row.Why = Undecided, fresh.unknown(rule.Figure)
	case row.Base == nil && base != nil && rule.Figure == OutputError:
		row.Verdict, row.Why = Undecided, "the outputs of the base are not known"
	case row.Base == nil:
		row.Verdict = New
	default:
		row.Allowed, row.Verdict = rule.exact(*row.Base, *row.New)
		if why := borrowed(base, fresh); why != "" && row.Kind == profile.Estimated {
			row.Verdict, row.Why = Undecided, why
		}
	}
	return row, true
}

// reasons are the findings of an estimate that say why a figure is unknown. The first one that a
// profile has is taken.
var reasons = map[string][]string{
	"ram_bytes":   {"target.memory", "target.refused", "target.incomplete"},
	"flash_bytes": {"target.flash", "target.refused", "target.incomplete"},
	Latency:       {"target.refused", "target.incomplete"},
}

// unknown says that a figure is unknown, and why where the profile says so.
func (s *Side) unknown(key string) string {
	const what = "the figure is not known for this version"
	for _, id := range reasons[key] {
		if f := s.finding(id); f != nil {
			return what + ": " + f.Text
		}
	}
	return what
}

// finding is the first finding of a rule, nil without one.
func (s *Side) finding(id string) *profile.Finding {
	if s.Profile == nil {
		return nil
	}
	i := slices.IndexFunc(s.Profile.Findings, func(f profile.Finding) bool { return f.ID == id })
	if i < 0 {
		return nil
	}
	return &s.Profile.Findings[i]
}

// standIn is the finding of an estimate whose figures are those of another element type.
const standIn = "target.types"

// borrowed says that an estimate of one side only is that of another element type, "" if it is not:
// the difference of the two is not known then.
func borrowed(base, fresh *Side) string {
	a, b := base.finding(standIn), fresh.finding(standIn)
	if (a == nil) == (b == nil) {
		return ""
	}
	name, f := "base", a
	if f == nil {
		name, f = "new version", b
	}
	return "a stand-in for the " + name + ": " + f.Text
}

func (s *Side) value(key string) *float64 {
	if v, ok := s.Figures[key]; ok {
		return &v
	}
	return nil
}

// Without is the row of a figure that was not measured.
func (r *Rule) Without(v Verdict, why string) Row {
	row := r.row()
	row.Kind, row.Verdict, row.Why = profile.Measured, v, why
	return row
}

// row is the part of a row that follows from its rule.
func (r *Rule) row() Row {
	q, _ := Lookup(r.Figure)
	return Row{Figure: r.Figure, Name: q.Name, Unit: q.Unit, Better: r.Better, Required: r.Required}
}

// Allowance is the largest change for the worse that a rule allows: the larger one of margin and
// floor.
func (r *Rule) Allowance(base float64) float64 { return max(r.Margin*math.Abs(base), r.Floor) }

// Coarse says that the floor of a rule allows much more than its margin, "" if it does not: such a
// floor was meant for larger figures.
func (r *Rule) Coarse(base float64) string {
	if !(base > 0) || r.Floor <= 2*r.Margin*base || r.Floor < 0.1*base {
		return ""
	}
	q, _ := Lookup(r.Figure)
	return fmt.Sprintf("the floor of %s allows %s of %s: use a smaller one, so that the margin of %s decides",
		Amount(r.Floor, q.Unit), percent(r.Floor/base), Amount(base, q.Unit), percent(r.Margin))
}

// exact judges figures without noise.
func (r *Rule) exact(base, fresh float64) (allowed float64, v Verdict) {
	allowed = r.Allowance(base)
	worse := fresh - base
	switch r.Better {
	case Higher:
		worse = -worse
	case Same:
		worse = math.Abs(worse)
	}
	switch {
	case worse == 0:
		return allowed, Equal
	case worse < 0:
		return allowed, Better
	case worse <= allowed:
		return allowed, Within
	}
	return allowed, Worse
}

// Interval is what a measurement says of the ratio of two versions, the new one by the base.
type Interval struct {
	Ratio, Low, High float64
	// Detectable is the smallest relative change that it shows in 95 of 100 runs, 0 if unknown.
	Detectable float64
}

// Measured judges a figure by the interval of a ratio: worse if the whole interval of the ratio
// is above the allowance, not worse if the whole interval is below it. Both are tested; what is
// neither is undecided.
func Measured(rule *Rule, base, fresh float64, c Interval) Row {
	row := rule.row()
	row.Kind = profile.Measured
	row.Base, row.New = &base, &fresh
	row.Ratio, row.Low, row.High = &c.Ratio, &c.Low, &c.High
	row.Allowed = rule.Allowance(base)
	limit := 1 + row.Allowed/base
	switch {
	case !(base > 0) || math.IsNaN(c.Low) || math.IsNaN(c.High):
		row.Verdict, row.Why = Undecided, "the samples give no interval"
		return row
	case c.Low > limit:
		row.Verdict = Worse
	case c.High > limit || c.High == limit:
		row.Verdict = Undecided
		row.Why = fmt.Sprintf("up to %s cannot be excluded", percent(c.High-1))
		row.Hidden = new(c.High - 1)
	case c.High < 1:
		row.Verdict = Better
	case c.Low > 1:
		row.Verdict = Within
	default:
		row.Verdict = Equal
	}
	if c.Detectable > 0 {
		row.Detectable = &c.Detectable
	}
	return row
}

// Acknowledge marks the figures that are ignored on a day. Acknowledgements that expired are noted
// where the figure is worse or undecided.
func (r *Result) Acknowledge(s *Store, now time.Time) {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		for k := range j.Figures {
			f := &j.Figures[k]
			if f.Verdict != Worse && f.Verdict != Undecided {
				continue
			}
			expired := ""
			for n := range s.Ignores {
				g := &s.Ignores[n]
				switch {
				case !g.about(j.Model, j.Target, f.Figure):
				case g.holds(now):
					f.Ignored = g
				default:
					expired = g.Until
				}
			}
			if f.Ignored == nil && expired != "" {
				j.Notes = append(j.Notes, fmt.Sprintf("%s was ignored until %s, which is over", f.Name, expired))
			}
		}
	}
}
