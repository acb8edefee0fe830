package report

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// quoted is the figure to quote where that is not the latency.
func quoted(p *profile.Profile) string {
	name := words.Quote(p.Trust)
	if name == "" {
		return ""
	}
	m := p.Totals.Figure(p.Trust.Quote)
	v, ok := m.Best()
	if !ok {
		return ""
	}
	s := fmt.Sprintf("%s, %s of %s", Duration(v), m.Estimator(), name)
	if m.CI95 != nil {
		s += fmt.Sprintf(", 95 %% of this run between %s and %s", Duration(m.CI95[0]), Duration(m.CI95[1]))
	}
	return s
}

// atReference is the time at reference speed and the speed of the machine.
func atReference(p *profile.Profile) string {
	m := p.Totals.Figure("reference_latency_s")
	v, ok := m.Best()
	if !ok {
		return ""
	}
	s := Duration(v)
	if m.CI95 != nil {
		s += fmt.Sprintf(", 95 %% of repeated runs between %s and %s", Duration(m.CI95[0]), Duration(m.CI95[1]))
	}
	if k := p.Totals.Figure("machine_speed"); k != nil && k.Median != nil {
		s += fmt.Sprintf("; the machine ran at %s of it", Percent(*k.Median))
		if k.Min != nil && k.Max != nil && *k.Min < *k.Max {
			s += fmt.Sprintf(" (%s to %s)", Percent(*k.Min), Percent(*k.Max))
		}
	}
	return s
}

// agrees is the part by which plain and instrumented inferences may differ and still
// be called alike.
const agrees = 0.1

// reconcile compares the sum of the layers with the time of whole inferences.
func reconcile(r *profile.Reconcile) string {
	if r == nil || r.OperatorsS == nil || r.WallS == nil || r.GapsS == nil || *r.WallS <= 0 {
		return ""
	}
	s := "the layers' typical times add up to " + Duration(*r.OperatorsS)
	if *r.GapsS > 0.0005**r.WallS {
		s += fmt.Sprintf(", with %s between them to %s", Duration(*r.GapsS), Duration(*r.WallS))
	}
	if r.PlainS == nil || *r.PlainS <= 0 {
		return s
	}
	switch plain := Duration(*r.PlainS); {
	case math.Abs(*r.WallS / *r.PlainS - 1) <= agrees:
		s += fmt.Sprintf("; the median of plain runs is %s", plain)
	case significant(r.OverheadS) && *r.WallS > *r.PlainS:
		s += fmt.Sprintf("; the median of plain runs is %s, without the cost of the instruments", plain)
	case *r.WallS < *r.PlainS:
		s += fmt.Sprintf("; the rest of the plain runs' median of %s is other programs", plain)
	default:
		s += fmt.Sprintf("; other programs disturbed these runs more than the plain ones, whose median is %s", plain)
	}
	if o := r.OverheadS; significant(o) {
		if v, _ := o.Best(); v > 0 {
			s += fmt.Sprintf("; the instruments add %s (%s)", Duration(v), Percent(v / *r.PlainS))
		}
	} else if per, ok := r.OverheadPerOperatorS.Best(); ok {
		s += fmt.Sprintf("; the instruments add nothing that shows (%s an operator)", Duration(per))
	}
	return s
}

// significant reports whether an interval leaves out zero.
func significant(m *profile.Metric) bool {
	return m != nil && m.CI95 != nil && (m.CI95[0] > 0 || m.CI95[1] < 0)
}
