package report

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// recommended is the recommended figure where that is not the latency.
func recommended(p *profile.Profile) string {
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
		s += ", 95 % CI of this run " + inSeconds(m.CI95)
	}
	return s
}

// normalised is the normalised latency, and the speed of the machine.
func normalised(p *profile.Profile) string {
	m := p.Totals.Figure("reference_latency_s")
	v, ok := m.Best()
	if !ok {
		return ""
	}
	s := Duration(v)
	if m.CI95 != nil {
		s += ", 95 % CI of repeated runs " + inSeconds(m.CI95)
	}
	if k := p.Totals.Figure("machine_speed"); k != nil && k.Median != nil {
		s += fmt.Sprintf("; machine at %s of reference speed", Percent(*k.Median))
		if k.Min != nil && k.Max != nil && *k.Min < *k.Max {
			s += fmt.Sprintf(" (%s)", Range(*k.Min, *k.Max, Percent))
		}
	}
	return s
}

// agrees is the relative difference below which unprofiled and profiled inferences count as equal.
const agrees = 0.1

// reconcile compares the sum of the layers with the end-to-end latency.
func reconcile(r *profile.Reconcile) string {
	if r == nil || r.OperatorsS == nil || r.WallS == nil || r.GapsS == nil || *r.WallS <= 0 {
		return ""
	}
	s := Duration(*r.OperatorsS)
	if *r.GapsS > 0.0005**r.WallS {
		s += fmt.Sprintf(" + %s between layers = %s", Duration(*r.GapsS), Duration(*r.WallS))
	}
	if r.PlainS == nil || *r.PlainS <= 0 {
		return s
	}
	s += "; unprofiled median " + Duration(*r.PlainS)
	switch {
	case math.Abs(*r.WallS / *r.PlainS - 1) <= agrees:
	case significant(r.OverheadS) && *r.WallS > *r.PlainS:
		s += " (without profiling overhead)"
	case *r.WallS < *r.PlainS:
		s += " (the difference is other programs)"
	default:
		s += " (other programs disturbed the profiled runs more)"
	}
	if o := r.OverheadS; significant(o) {
		if v, _ := o.Best(); v > 0 {
			s += fmt.Sprintf("; profiling overhead %s (%s)", Duration(v), Percent(v / *r.PlainS))
		}
	} else if per, ok := r.OverheadPerOperatorS.Best(); ok {
		s += fmt.Sprintf("; profiling overhead not measurable (%s per operator)", Duration(per))
	}
	return s
}

// significant reports whether an interval leaves out zero.
func significant(m *profile.Metric) bool {
	return m != nil && m.CI95 != nil && (m.CI95[0] > 0 || m.CI95[1] < 0)
}
