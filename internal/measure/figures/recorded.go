package figures

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/measure/quality"
	"github.com/opmeter/opmeter/profile"
)

// RecordedModes returns the modes of inferences that another clock timed, such as that of a board,
// and the latency of the stated one; nil if all inferences took about the same time. The times are
// in seconds and in chronological order. It adds the doubt that follows. method says how the times
// were taken.
func RecordedModes(times []float64, method string, d *quality.Doubts) (*profile.Metric, []profile.Mode) {
	samples := make([]estimator.Sample, len(times))
	for i, t := range times {
		samples[i].Seconds = t
	}
	l := estimator.Measure(samples, 0)
	if len(l.Modes) < 2 {
		return nil, nil
	}
	judgeModes(d, &l)
	return latencyMetric(&l, method), modes(&l)
}

// latencyMetric returns the latency at the stated mode with its interval, nil without inferences.
// how says how the times were taken.
func latencyMetric(l *estimator.Latency, how string) *profile.Metric {
	m := profile.FromSummary(profile.Measured, stats.Summarize(l.Times), how)
	if m == nil {
		return nil
	}
	mode := l.Modes[l.Headline]
	m.Median, m.CI95 = &mode.Median, nil
	if !math.IsNaN(mode.Low) {
		m.CI95 = &[2]float64{mode.Low, mode.High}
	}
	if len(l.Modes) > 1 {
		if m.Method != "" {
			m.Method += "; "
		}
		m.Method += "median of one of several speeds"
	}
	return m
}
