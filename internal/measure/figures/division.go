package figures

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/profile"
)

// Division divides the latency of an inference among its steps: each takes its share of it. The
// times add up to the latency, whatever the speed of the machine was while they were recorded.
type Division struct {
	// Latency is the latency that is divided, in seconds.
	Latency float64
	estimator.Breakdown
	kind profile.Kind
	runs []estimator.Inference
	// recorded says that the latency is that of the same inferences.
	recorded bool
	// corrected says that disturbed inferences have valid times, too.
	corrected bool
}

// Divide divides a latency of the plain pass by the shares of a recorder's instrumented inferences.
func Divide(latency float64, steps int, rec *loop.Recorder) *Division {
	d := DivideRecorded(profile.Measured, latency, steps, rec)
	d.recorded = false
	for i := range d.Steps {
		widen(&d.Steps[i])
	}
	widen(&d.Gaps)
	return d
}

// DivideRecorded is [Divide] for the latency of the recorded inferences themselves.
func DivideRecorded(kind profile.Kind, latency float64, steps int, rec *loop.Recorder) *Division {
	runs := rec.Inferences()
	return &Division{Latency: latency, Breakdown: estimator.Shares(steps, runs), kind: kind, runs: runs, recorded: true, corrected: rec.Corrected}
}

// Standard deviations of a share between processes, which one process does not show, relative to
// the share s and to the root of s(1-s): caches and addresses move time between steps. Determined
// by bench/disturbed.
const (
	shareSpread = 0.02
	movedSpread = 0.005
	// normal95 is half of the interval that holds 95 % of normal values.
	normal95 = 1.96
)

// widen adds the spread between processes to the interval of a share.
func widen(s *estimator.Share) {
	floor := normal95 * math.Hypot(shareSpread*s.Part, movedSpread*math.Sqrt(max(0, s.Part*(1-s.Part))))
	s.Low, s.High = max(0, s.Part-math.Hypot(s.Part-s.Low, floor)), min(1, s.Part+math.Hypot(s.High-s.Part, floor))
}

// Time returns the time of a step in seconds.
func (d *Division) Time(step int) float64 { return d.Steps[step].Part * d.whole() }

// whole returns what the parts are parts of, in seconds: the latency, or of recorded inferences
// whose steps ran at the same time the sum of the steps.
func (d *Division) whole() float64 {
	if d.recorded {
		return d.Latency * d.Overlap
	}
	return d.Latency
}

// Samples returns the time of a step in each recorded inference: its part of that inference times
// the latency, so that changes of the machine's speed cancel. Recorded inferences keep their own
// times.
func (d *Division) Samples(step int) []float64 {
	out := make([]float64, len(d.runs))
	for i, r := range d.runs {
		switch {
		case step >= len(r.Steps):
		case d.recorded:
			out[i] = float64(r.Steps[step]) / 1e9
		case r.Wall > 0:
			out[i] = float64(r.Steps[step]) / float64(r.Wall) * d.Latency
		}
	}
	return out
}

// Metric returns the time of a step. Its interval is that of its share.
func (d *Division) Metric(step int) *profile.Metric {
	m := profile.FromSummary(d.kind, stats.Summarize(d.Samples(step)), "share of the inference, times the latency")
	if m == nil {
		return nil
	}
	s, whole := d.Steps[step], d.whole()
	m.Median, m.CI95 = new(d.Time(step)), nil
	leaveOut(m)
	if !math.IsNaN(s.Low) {
		m.CI95 = &[2]float64{min(s.Low*whole, *m.Median), max(s.High*whole, *m.Median)}
	}
	return m
}

// leaveOut removes the extremes and percentiles that the median is beyond. If most inferences were
// disturbed, a step may take a greater part of an undisturbed one than of any that was recorded.
func leaveOut(m *profile.Metric) {
	const rounding = 1e-9 // of the product of share and latency
	for _, p := range []*float64{m.Min, m.Max} {
		if math.Abs(*m.Median-*p) <= rounding**p {
			*m.Median = *p
		}
	}
	if *m.Min > *m.Median {
		m.Min = nil
	}
	for _, p := range []**float64{&m.P90, &m.P95, &m.P99, &m.Max} {
		if *p != nil && **p < *m.Median {
			*p = nil
		}
	}
}

// Reconcile returns the sums of the steps and of the gaps between them, nil without a division.
func (d *Division) Reconcile() *profile.Reconcile {
	if d == nil {
		return nil
	}
	whole := d.whole()
	gaps := d.Gaps.Part * whole
	return &profile.Reconcile{WallS: &whole, OperatorsS: new(whole - gaps), GapsS: &gaps}
}

// usable returns the number of inferences that the shares can come from: the undisturbed ones, and
// the disturbed ones whose times were corrected; without a division the given number of
// instrumented ones, whose disturbances nobody saw.
func (d *Division) usable(instrumented int) int {
	if d == nil {
		return instrumented
	}
	n := 0
	for i := range d.runs {
		if d.corrected || !d.runs[i].Disturbed {
			n++
		}
	}
	return n
}
