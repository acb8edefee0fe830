package figures

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loadgen"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Limits of what is said about streams.
const (
	fairStreams  = 0.8  // what the slowest computes beside the fastest
	lateWorth    = 0.01 // part of the inferences that are late
	scalesHardly = 1.1  // times the throughput of one inference after the other
)

// Streams lists the figures of streams, by key.
func Streams(res *loadgen.Result) map[string]*profile.Metric {
	out := map[string]*profile.Metric{}
	value := func(key string, v float64, how string) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[key] = profile.Value(profile.Measured, v, how)
		}
	}
	times := func(key string, s stats.Summary, samples []float64, how string) {
		if m := profile.FromSummary(profile.Measured, s, how); m != nil {
			if samples != nil {
				m = Blocked(m, samples)
			}
			out[key] = m
		}
	}
	if res.Inferences > 0 {
		value("inferences_per_s", res.PerSecond, fmt.Sprintf("%d streams over %.3g s in which all ran", len(res.Streams), res.Window))
		repeatable(out["inferences_per_s"], res.Rates)
		value("loaded_processor_s", res.Busy/res.PerSecond, "processor time of the process divided by the inferences")
	}
	// Streams are series of their own: the interval is that of the least steady one only where
	// there is one.
	samples := res.Samples
	if len(res.Streams) > 1 {
		samples = nil
	}
	times("loaded_latency_s", res.Latency, samples, "all streams, inferences that began in the window")
	value("stream_fairness", res.Fairness, "inferences of the slowest stream divided by those of the fastest one")
	times("response_s", res.Response, nil, "from when an inference was due")
	times("waiting_s", res.Waiting, nil, "from when an inference was due to its start")
	if res.Due > 0 {
		value("due_inferences", float64(res.Due), "")
		value("late_inferences", float64(res.Late), "")
		value("unstarted_inferences", float64(res.Unstarted), "")
	}
	return out
}

// repeatable puts the interval that a repeated run falls into around a throughput, from those of parts of
// the window in order of time; none where there are too few.
func repeatable(m *profile.Metric, parts []float64) {
	if m == nil || m.Median == nil {
		return
	}
	r, ok := stats.Repeated(parts, processSpread)
	if !ok || math.IsNaN(r.High-r.Low) || math.IsInf(r.High-r.Low, 0) {
		return
	}
	half := (r.High - r.Low) / 2
	m.CI95 = &[2]float64{max(0, *m.Median-half), *m.Median + half}
	m.Method += fmt.Sprintf("; interval for a repeated run, from %d parts of that time", r.Blocks)
}

// Cold is the time of cold inferences, nil for none.
func Cold(res *loadgen.Result, how string) *profile.Metric {
	m := profile.FromSummary(profile.Measured, res.Latency, how)
	if m == nil {
		return nil
	}
	return Blocked(m, res.Samples)
}

// StreamLanes adds a lane for each stream, with times from zero on, in nanoseconds of the
// clock that the streams were timed with. What ran before zero is left out.
func StreamLanes(t *timeline.Timeline, res *loadgen.Result, zero int64) {
	name := int32(-1)
	for i := range res.Streams {
		l := timeline.Lane{Name: fmt.Sprintf("stream %d", i), Kind: timeline.Iteration, Group: "streams"}
		for _, s := range res.Streams[i].Spans {
			if s.Start < zero {
				continue
			}
			if name < 0 {
				name = int32(len(t.Names))
				t.Names = append(t.Names, "inference under load")
			}
			l.Starts = append(l.Starts, float64(s.Start-zero)/1e9)
			l.Durations = append(l.Durations, float64(s.End-s.Start)/1e9)
			l.Labels = append(l.Labels, name)
		}
		if len(l.Starts) > 0 {
			t.Lanes = append(t.Lanes, l)
		}
	}
}

// ColdFindings compares a cold inference, whose time stands under a key, with a warm one. what is
// the beginning of a sentence about that time.
func ColdFindings(p *profile.Profile, key, what string) []profile.Finding {
	warm, ok := p.Totals.Latency.Best()
	m := p.Totals.Figure(key)
	if !ok || !(warm > 0) || m == nil || m.Median == nil {
		return nil
	}
	if p.Trust != nil && p.Trust.Verdict == profile.Unreliable {
		return nil // the warm time cannot be relied upon
	}
	return []profile.Finding{Finding("time.cold", profile.Info, nil, "%s %s, %.3g times as long as a warm one.", what, short(*m.Median), *m.Median/warm)}
}

// StreamFindings says what streams did to throughput and times. p has the figures of one
// inference after the other, cpus is the number of processors, 0 where that is not known.
func StreamFindings(p *profile.Profile, res *loadgen.Result, threads, cpus int) []profile.Finding {
	var out []profile.Finding
	n := len(res.Streams)
	// What cannot be relied upon is not compared.
	sure := p.Trust == nil || p.Trust.Verdict != profile.Unreliable
	alone, ok := p.Totals.Latency.Best()
	if ok && sure && alone > 0 && n > 1 && len(res.Samples) > 0 && res.Response.N == 0 && res.PerSecond > 0 {
		times, longer := res.PerSecond*alone, res.Latency.Median/alone
		severity, hardly := profile.Info, ""
		if times < scalesHardly {
			severity, hardly = profile.Warning, " More streams only make each inference wait."
		}
		out = append(out, Finding("streams.scaling", severity, nil, "%d streams compute %.3g times as many inferences a second as one after the other; each takes %.3g times as long.%s", n, times, longer, hardly))
	}
	if f := res.Fairness; f < fairStreams { // not for NaN
		out = append(out, Finding("streams.unfair", profile.Warning, nil, "The slowest stream computed %.0f %% of what the fastest one did: times of all streams together are a mixture.", 100*f))
	}
	if used := n * threads; cpus > 0 && used > cpus && n > 1 {
		out = append(out, Finding("streams.crowded", profile.Info, nil, "%s of %s share %s: streams wait for each other.", Plural(n, "stream"), Plural(threads, "thread"), Plural(cpus, "processor")))
	}
	if res.Unstarted > 0 {
		out = append(out, Finding("rate.unstarted", profile.Warning, nil, "Of %d inferences that were due %d had not begun at the end: the streams manage %.4g a second, and waiting times grow for as long as the load lasts.", res.Due, res.Unstarted, res.PerSecond))
	} else if res.Due > 0 && float64(res.Late) > lateWorth*float64(res.Due) {
		out = append(out, Finding("rate.late", profile.Info, nil, "Of %d inferences %d were due before a stream was free.", res.Due, res.Late))
	}
	unsteady := 0
	for i := range res.Streams {
		if s := res.Streams[i].Stability.Steady; s != nil && !*s {
			unsteady++
		}
	}
	if unsteady > 0 {
		out = append(out, Finding("streams.unsteady", profile.Warning, nil, "The times of %s of %d changed in the course of the window: another run may show other figures under load.", Plural(unsteady, "stream"), n))
	}
	return out
}
