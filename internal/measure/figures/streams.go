package figures

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/measure/loadgen"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Limits for findings about streams.
const (
	fairStreams  = 0.8  // throughput of the slowest stream relative to the fastest
	minLateShare = 0.01 // fraction of late inferences
	minScaling   = 1.1  // times the throughput of sequential inferences
)

// Streams returns the figures of streams, by key. spread is that between processes ([Spread]).
func Streams(res *loadgen.Result, spread float64) map[string]*profile.Metric {
	out := map[string]*profile.Metric{}
	value := func(key string, v float64, how string) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[key] = profile.Value(profile.Measured, v, how)
		}
	}
	times := func(key string, s stats.Summary, samples []float64, how string) {
		if m := profile.FromSummary(profile.Measured, s, how); m != nil {
			if samples != nil {
				m = Blocked(m, samples, spread)
			}
			out[key] = m
		}
	}
	if res.Inferences > 0 {
		value("inferences_per_s", res.PerSecond, fmt.Sprintf("%d streams over %.3g s in which all ran", len(res.Streams), res.Window))
		setInterval(out["inferences_per_s"], res.Rates, spread)
		value("loaded_processor_s", res.Busy/res.PerSecond, "processor time of the process divided by the inferences")
	}
	// Each stream is a separate time series: an interval follows only from a single stream.
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

// setInterval sets the confidence interval of a throughput for a repeated run, from the
// throughputs of parts of the window in chronological order; none if there are too few.
func setInterval(m *profile.Metric, parts []float64, spread float64) {
	if m == nil || m.Median == nil {
		return
	}
	r, ok := stats.Repeated(parts, spread)
	if !ok || math.IsNaN(r.High-r.Low) || math.IsInf(r.High-r.Low, 0) {
		return
	}
	half := (r.High - r.Low) / 2
	m.CI95 = &[2]float64{max(0, *m.Median-half), *m.Median + half}
	m.Method += fmt.Sprintf("; interval for a repeated run, from %d parts of that time", r.Blocks)
}

// Cold returns the time of cold inferences, nil without any: the median of the undisturbed ones.
func Cold(res *loadgen.Result, how string, spread float64) *profile.Metric {
	samples := make([]estimator.Sample, len(res.Samples))
	for i, t := range res.Samples {
		samples[i].Seconds = t
		samples[i].Disturbed = res.Disturbed != nil && res.Disturbed[i]
	}
	l := estimator.Measure(samples, spread)
	if l.Disturbed > 0 && l.Used < len(samples) {
		how += "; undisturbed inferences"
	}
	m := latencyMetric(&l, how)
	if m != nil && m.CI95 != nil { // of a few inferences: no median is below the shortest
		m.CI95[0] = max(m.CI95[0], *m.Min)
	}
	return m
}

// StreamLanes adds a lane for each stream to a timeline. zero is time 0 in nanoseconds of the
// clock that timed the streams. Earlier inferences are omitted.
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

// ColdFindings compares a cold inference, whose time has the given key, with a warm one. what is
// the beginning of a sentence about that time.
func ColdFindings(p *profile.Profile, key, what string) []profile.Finding {
	warm, ok := p.Totals.Latency.Best()
	m := p.Totals.Figure(key)
	if !ok || !(warm > 0) || m == nil || m.Median == nil {
		return nil
	}
	if p.Trust != nil && p.Trust.Verdict == profile.Unreliable {
		return nil // the warm time is unreliable
	}
	return []profile.Finding{Finding("time.cold", profile.Info, nil, "%s %s, %.3g times as long as a warm one.", what, FormatTime(*m.Median), *m.Median/warm)}
}

// StreamFindings compares throughput and latency under load with single inferences. p has the
// figures of sequential inferences; cpus is the number of processors, 0 if unknown.
func StreamFindings(p *profile.Profile, res *loadgen.Result, threads, cpus int) []profile.Finding {
	var out []profile.Finding
	n := len(res.Streams)
	// Unreliable figures are not compared.
	sure := p.Trust == nil || p.Trust.Verdict != profile.Unreliable
	alone, ok := p.Totals.Latency.Best()
	if ok && sure && alone > 0 && n > 1 && len(res.Samples) > 0 && res.Response.N == 0 && res.PerSecond > 0 {
		times, longer := res.PerSecond*alone, res.Latency.Median/alone
		severity, hardly := profile.Info, ""
		if times < minScaling {
			severity, hardly = profile.Warning, " Additional streams only add waiting time."
		}
		out = append(out, Finding("streams.scaling", severity, nil, "%d streams: %.3g times the throughput of sequential inferences, at %.3g times the latency.%s", n, times, longer, hardly))
	}
	if f := res.Fairness; f < fairStreams { // not for NaN
		out = append(out, Finding("streams.unfair", profile.Warning, nil, "The slowest stream completed %.0f %% as many inferences as the fastest: latencies over all streams are a mixture.", 100*f))
	}
	if used := n * threads; cpus > 0 && used > cpus && n > 1 {
		out = append(out, Finding("streams.crowded", profile.Info, nil, "%s of %s on %s: oversubscribed, streams wait for each other.", Plural(n, "stream"), Plural(threads, "thread"), Plural(cpus, "processor")))
	}
	if res.Unstarted > 0 {
		out = append(out, Finding("rate.unstarted", profile.Warning, nil, "Overload: of %d scheduled inferences %d had not started at the end. The streams achieve %.4g per second, so that waiting times keep growing.", res.Due, res.Unstarted, res.PerSecond))
	} else if res.Due > 0 && float64(res.Late) > minLateShare*float64(res.Due) {
		out = append(out, Finding("rate.late", profile.Info, nil, "Of %d inferences, %d were scheduled before a stream was free.", res.Due, res.Late))
	}
	unsteady := 0
	for i := range res.Streams {
		if s := res.Streams[i].Stability.Steady; s != nil && !*s {
			unsteady++
		}
	}
	if unsteady > 0 {
		out = append(out, Finding("streams.unsteady", profile.Warning, nil, "Latencies of %s of %d drifted during the window: the figures under load may not be reproducible.", Plural(unsteady, "stream"), n))
	}
	return out
}
