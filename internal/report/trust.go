package report

import (
	"fmt"

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
	if iv := m.Interval(); iv != nil {
		s += ", 95 % CI of this run " + inSeconds(iv)
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
	if iv := m.Interval(); iv != nil {
		s += ", 95 % CI of repeated runs " + inSeconds(iv)
	}
	if k := p.Totals.Figure("machine_speed"); k != nil && k.Median != nil {
		s += fmt.Sprintf("; machine at %s of reference speed", Percent(*k.Median))
		if k.Min != nil && k.Max != nil && *k.Min < *k.Max {
			s += fmt.Sprintf(" (%s)", Range(*k.Min, *k.Max, Percent))
		}
	}
	return s
}

// reconcile is the sum of the layers with what makes it the latency, and the profiling overhead.
func reconcile(r *profile.Reconcile) string {
	if r == nil || r.OperatorsS == nil || r.WallS == nil || r.GapsS == nil || *r.WallS <= 0 {
		return ""
	}
	s := Duration(*r.OperatorsS)
	if *r.GapsS > 0.0005**r.WallS {
		s += fmt.Sprintf(" + %s not in layers = %s", Duration(*r.GapsS), Duration(*r.WallS))
	}
	if r.PlainS == nil || *r.PlainS <= 0 {
		return s
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
