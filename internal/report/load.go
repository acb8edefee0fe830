package report

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// underLoad says what several streams, or a fixed rate, gave.
func underLoad(p *profile.Profile) string {
	t := &p.Totals
	v, ok := t.Figure("inferences_per_s").Best()
	if !ok {
		return ""
	}
	s := perSecond(v) + " inferences/s"
	if n := p.Settings.Streams; n != nil {
		s += " in " + words.Plural(*n, "stream")
	}
	if b := p.Settings.Batch; b != nil && *b > 1 {
		s += fmt.Sprintf(" of batch %d (%s items/s)", *b, perSecond(v*float64(*b)))
	}
	if between := t.Figure("inferences_per_s").CI95; between != nil {
		s += ", " + words.Interval(p.Trust) + " " + Range(between[0], between[1], perSecond)
	}
	s += percentiles("; latency ", t.Figure("loaded_latency_s"))
	if f, ok := t.Figure("stream_fairness").Best(); ok {
		s += fmt.Sprintf("; the slowest stream runs at %s of the fastest", Percent(f))
	}
	if w, ok := t.Figure("loaded_processor_s").Best(); ok {
		s += fmt.Sprintf("; %s CPU time each", Duration(w))
	}
	return s
}

// response says how inferences at a fixed rate were answered.
func response(p *profile.Profile) string {
	t := &p.Totals
	s := strings.TrimPrefix(percentiles(", ", t.Figure("response_s")), ", ")
	if s == "" {
		return ""
	}
	if r := p.Settings.RatePerS; r != nil {
		s += fmt.Sprintf(", from the due time, at %s/s", perSecond(*r))
	}
	if w, ok := t.Figure("waiting_s").Best(); ok {
		s += fmt.Sprintf("; queueing %s", Duration(w))
	}
	due, _ := t.Figure("due_inferences").Best()
	late, _ := t.Figure("late_inferences").Best()
	left, _ := t.Figure("unstarted_inferences").Best()
	if due > 0 {
		s += fmt.Sprintf("; of %.0f due, %.0f started late, %.0f never", due, late, left)
	}
	return s
}

// cold says what cold inferences took.
func cold(p *profile.Profile) string {
	begin := " from creating the session to the first result, caches empty, model file already open"
	if p.Settings.EngineLibrary != "" {
		begin = " from the model file to the first result, caches empty, engine library already loaded"
	}
	var parts []string
	for _, x := range []struct{ key, how string }{{"cold_latency_s", " with empty caches"}, {"cold_start_s", begin}} {
		if s := percentiles("", p.Totals.Figure(x.key)); s != "" {
			parts = append(parts, s+x.how)
		}
	}
	return strings.Join(parts, "; ")
}

// percentiles is the median of a time with the percentiles that there are, "" for none.
func percentiles(lead string, m *profile.Metric) string {
	if m == nil || m.Median == nil {
		return ""
	}
	s := lead + Duration(*m.Median) + " median"
	for _, x := range []struct {
		name string
		v    *float64
	}{{"p90", m.P90}, {"p95", m.P95}, {"p99", m.P99}, {"max", m.Max}} {
		if x.v != nil {
			s += ", " + x.name + " " + Duration(*x.v)
		}
	}
	if m.N != nil {
		s += fmt.Sprintf(" (%s)", runs(*m.N))
	}
	return s
}

// perSecond writes a rate with three digits.
func perSecond(v float64) string {
	if v >= 1000 {
		return Quantity(v, "")
	}
	return digits(v)
}
