package figures

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/profile"
)

func sortedCopy(s []float64) []float64 {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// Blocked sets the metric's confidence interval around its median from blocks of a time series,
// nil if there are too few.
func Blocked(m *profile.Metric, series []float64) *profile.Metric {
	if m == nil || m.Median == nil {
		return m
	}
	m.CI95 = nil
	if r, ok := stats.Repeated(series, processSpread); ok {
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
func Whole(res *loop.Result) map[string]*profile.Metric {
	out := map[string]*profile.Metric{}
	put := func(key string, m *profile.Metric) {
		if m != nil {
			out[key] = m
		}
	}
	speeds := res.Speeds(loop.ReferenceRound)
	put("machine_speed", profile.Summarize(profile.Measured, speeds, "reference loop "+loop.ReferenceName+", between the groups of plain runs"))
	if at := res.AtReference(loop.ReferenceRound); len(at) > 0 {
		how := "processor time"
		if math.IsNaN(res.Groups[0].CPU) {
			how = "time"
		}
		m := profile.Summarize(profile.Measured, at, how+" of groups of plain runs, divided by that of the reference loop beside them")
		floor := math.Hypot(processSpread, exponentSpread*speedDistance(speeds))
		m.CI95 = nil
		if r, ok := stats.Repeated(at, floor); ok {
			m.Typical, m.CI95 = new(r.Middle), &[2]float64{max(0, r.Low), r.High}
			m.Method += fmt.Sprintf("; interval for a repeated run, from %d blocks", r.Blocks)
		}
		put("reference_latency_s", m)
	}
	if calm := res.Undisturbed(); len(calm) >= minUndisturbed {
		put("undisturbed_latency_s", Blocked(profile.Summarize(profile.Measured, calm, "plain runs of groups in which no other program used the processor"), calm))
	}
	work := res.Processor()
	put("processor_s", Blocked(profile.Summarize(profile.Measured, work, "plain pass, means over groups of runs"), work))
	return out
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

// Latency returns the time of an inference in the plain pass, nil without one.
func Latency(res *loop.Result) *profile.Metric {
	how := "plain pass"
	if res.Batch > 1 {
		how += ", each sample the mean of several runs"
	}
	m := profile.FromSummary(profile.Measured, res.Latency(), how)
	if m == nil {
		return nil
	}
	return Blocked(m, res.Plain)
}

// Reconcile completes the sums of an instrumented inference with the times of both passes, nil if
// one of them is missing.
func Reconcile(res *loop.Result, sums *profile.Reconcile) *profile.Reconcile {
	if len(res.Profiled) == 0 || len(res.Plain) == 0 || sums == nil {
		return nil
	}
	r := *sums
	r.PlainS, r.ProfiledS = new(stats.Median(res.Plain)), new(stats.Median(res.Profiled))
	r.OverheadS = profile.FromSummary(profile.Measured, res.Overhead(), "paired groups of plain and instrumented runs")
	r.OverheadPerOperatorS = profile.FromSummary(profile.Measured, res.Clock.EventCost(), "clock read and stored in a loop")
	return &r
}
