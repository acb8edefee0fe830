package figures

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/profile"
)

func sortedCopy(s []float64) []float64 {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// Blocked sets the metric's confidence interval around its median from blocks of a time series,
// nil if there are too few. spread is that between processes ([Spread]).
func Blocked(m *profile.Metric, series []float64, spread float64) *profile.Metric {
	if m == nil || m.Median == nil {
		return m
	}
	m.CI95 = nil
	if r, ok := stats.Repeated(series, spread); ok {
		half := (r.High - r.Low) / 2
		// No median is below the smallest sample.
		m.CI95 = &[2]float64{max(*m.Min, *m.Median-half), *m.Median + half}
	}
	return m
}

// speedDistance returns how far from reference speed the machine was in one of ten groups, as a
// logarithm. A repeated run may have that speed all the time, and the further it is, the less
// certain is the time of a normalised inference.
func speedDistance(speeds []float64) float64 {
	low, high := deciles(speeds)
	return max(math.Abs(math.Log(low)), math.Abs(math.Log(high)))
}

// Whole returns the figures of the whole model that follow from groups of runs in addition to the
// latency, by key.
func (r *Run) Whole() map[string]*profile.Metric {
	res := r.Result
	out := map[string]*profile.Metric{}
	put := func(key string, m *profile.Metric) {
		if m != nil {
			out[key] = m
		}
	}
	speeds := res.Speeds(loop.ReferenceRound)
	put("machine_speed", profile.Summarize(profile.Measured, speeds, "reference loop "+loop.ReferenceName+", between the groups of plain runs"))
	if at := res.AtReference(loop.ReferenceRound); explained(at, speeds) {
		how := "processor time"
		if math.IsNaN(res.Groups[0].CPU) {
			how = "time"
		}
		m := profile.Summarize(profile.Measured, at, how+" of groups of plain runs, divided by that of the reference loop beside them")
		floor := math.Hypot(r.spread, exponentSpread*speedDistance(speeds))
		m.CI95 = nil
		if i, ok := stats.Repeated(at, floor); ok {
			m.Median, m.CI95 = new(min(max(i.Middle, *m.Min), *m.Max)), &[2]float64{max(0, i.Low), i.High}
			m.Method += fmt.Sprintf("; interval for a repeated run, from %d blocks", i.Blocks)
		}
		put("reference_latency_s", m)
	}
	work := res.Processor()
	put("processor_s", Blocked(profile.Summarize(profile.Measured, work, "plain pass, means over groups of runs"), work, r.spread))
	return out
}

// Limits of a normalised latency: the spread that the speed must explain, in parts of the spread of
// the times, and the number of groups that tell.
const (
	explainedSpread = 0.8
	leastGroups     = 16
)

// explained reports whether the machine's speed explains how the times of groups vary: times
// normalised by it spread less than they did before, among the even and among the odd groups.
// Unrelated speeds add their own spread, and both halves do not agree with the times by chance.
func explained(normalised, speeds []float64) bool {
	if len(normalised) < leastGroups || len(speeds) != len(normalised) {
		return false
	}
	for first := range 2 {
		var before, after []float64
		for i := first; i < len(speeds); i += 2 {
			before, after = append(before, normalised[i]/speeds[i]), append(after, normalised[i])
		}
		if !(relativeSpread(after) < explainedSpread*relativeSpread(before)) {
			return false
		}
	}
	return true
}

// relativeSpread is the distance of the deciles relative to the median.
func relativeSpread(s []float64) float64 {
	low, high := deciles(s)
	return (high - low) / stats.Median(s)
}

// Kept returns all samples, or as many as a profile keeps by default.
func Kept(samples []float64, all bool) []float64 {
	if all || len(samples) <= profile.KeptSamples {
		return samples
	}
	r := stats.NewReservoir(profile.KeptSamples)
	for _, v := range samples {
		r.Add(v)
	}
	values, _ := r.Kept()
	return values
}

// Run is a measurement with the latency that follows from its plain pass.
type Run struct {
	*loop.Result
	Plain estimator.Latency
	// spread is that between processes.
	spread float64
}

// Evaluate computes the latency of a measurement. spread is that between processes ([Spread]).
func Evaluate(res *loop.Result, spread float64) *Run {
	return &Run{Result: res, Plain: estimator.Measure(res.Samples(loop.ReferenceRound), spread), spread: spread}
}

// Latency returns the time of an inference in the plain pass, nil without one: the median of the
// undisturbed inferences, or of those at one of several speeds, with its interval.
func (r *Run) Latency() *profile.Metric {
	l := &r.Plain
	how := "plain pass, undisturbed inferences"
	if l.Worked {
		how = "plain pass, lower half of the CPU times of disturbed inferences"
	}
	if r.Batch > 1 {
		how += ", each sample the mean of several runs"
	}
	return latencyMetric(l, how)
}

// Reconcile completes the sums of an instrumented inference with the times of both passes, nil if
// one of them is missing.
func (r *Run) Reconcile(sums *profile.Reconcile) *profile.Reconcile {
	if len(r.Profiled) == 0 || r.Plain.Used == 0 || sums == nil {
		return nil
	}
	out := *sums
	out.PlainS, out.ProfiledS = new(stats.Median(r.Result.Plain)), new(stats.Median(r.Profiled))
	out.OverheadS = profile.FromSummary(profile.Measured, r.Overhead(), "paired groups of plain and instrumented runs")
	out.OverheadPerOperatorS = profile.FromSummary(profile.Measured, r.Clock.EventCost(), "clock read and stored in a loop")
	return &out
}
