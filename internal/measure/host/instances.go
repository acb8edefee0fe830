package host

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// maxInstances is the number of instances whose individual figures a merged profile has.
const maxInstances = 64

// Merge combines the profiles of instances that ran the same model concurrently in one process.
// Figures are over all of them, with the individual ones beside. The timeline has the lanes of
// all on one clock; starts is the time 0 of each by that clock, in nanoseconds.
func Merge(ps []*profile.Profile, starts []int64) *profile.Profile {
	if len(ps) == 0 {
		return nil
	}
	out := *ps[0]
	out.Layers = append([]profile.Layer(nil), ps[0].Layers...)
	out.Settings.Instances = new(int64(len(ps)))
	out.Totals.Figures = map[string]*profile.Metric{}
	out.Timeline = nil
	keys := instanceQuantities(&out, len(ps))
	var all []*profile.Metric
	var samples [][]float64
	for k, p := range ps {
		all, samples = append(all, p.Totals.Latency), append(samples, p.Totals.LatencySamples)
		if k < len(keys) && p.Totals.Latency != nil {
			_ = out.Totals.Set(keys[k], p.Totals.Latency)
		}
	}
	out.Totals.Latency, out.Totals.LatencySamples = mergeSamples(all, samples)
	for i := range out.Layers {
		l := &out.Layers[i]
		of, taken := make([]*profile.Metric, 0, len(ps)), make([][]float64, 0, len(ps))
		own := map[string]*profile.Metric{}
		for key, m := range l.Figures {
			own[key] = m
		}
		for k, p := range ps {
			if i >= len(p.Layers) || p.Layers[i].Latency == nil {
				continue
			}
			of, taken = append(of, p.Layers[i].Latency), append(taken, p.Layers[i].Samples)
			if k < len(keys) {
				own[keys[k]] = p.Layers[i].Latency
			}
		}
		if len(of) > 0 {
			l.Latency, l.Samples = mergeSamples(of, taken)
		}
		if l.Figures = own; len(own) == 0 {
			l.Figures = nil
		}
	}
	out.Timeline = instanceLanes(ps, starts)
	if rate, window, ok := jointThroughput(out.Timeline); ok {
		_ = out.Totals.Set("inferences_per_s", profile.Value(profile.Measured, rate, fmt.Sprintf("%d instances over %.3g s in which all ran", len(ps), window)))
	}
	out.Findings = append(append([]profile.Finding(nil), ps[0].Findings...), profile.Finding{
		ID: "instances.merged", Severity: profile.Info,
		Text: fmt.Sprintf("%d instances ran the model at the same time. Figures are over the inferences of all, the first of each left out.", len(ps)),
	})
	return &out
}

// instanceQuantities describes the figures of single instances and returns their keys.
func instanceQuantities(p *profile.Profile, n int) []string {
	p.Quantities = append([]profile.Quantity(nil), p.Quantities...)
	var keys []string
	for k := range min(n, maxInstances) {
		key := fmt.Sprintf("instance_%d_s", k)
		keys = append(keys, key)
		p.Quantities = append(p.Quantities, profile.Quantity{
			Key: key, Unit: "s", Head: fmt.Sprintf("instance %d", k), Name: fmt.Sprintf("Time in instance %d", k), Group: "Instances", Adds: true, Better: -1,
			Doc: fmt.Sprintf("Time in instance %d alone.", k),
		})
	}
	return keys
}

// mergeSamples summarises the samples of several series as one. Number, mean and extremes are
// over all.
func mergeSamples(ms []*profile.Metric, samples [][]float64) (*profile.Metric, []float64) {
	var kept []float64
	var n int64
	var sum float64
	low, high := math.Inf(1), math.Inf(-1)
	for i, m := range ms {
		kept = append(kept, samples[i]...)
		if m == nil || m.N == nil || m.Mean == nil || m.Min == nil || m.Max == nil {
			continue
		}
		n += *m.N
		sum += *m.Mean * float64(*m.N)
		low, high = min(low, *m.Min), max(high, *m.Max)
	}
	s := stats.Summarize(kept)
	if n > s.N {
		s.N, s.Mean, s.Min, s.Max = n, sum/float64(n), low, high
	}
	m := profile.FromSummary(profile.Measured, s, "all instances")
	if m == nil {
		return nil, nil
	}
	// The samples of instances are not a time series: their confidence interval is not known.
	m.CI95 = nil
	return m, kept
}

// instanceLanes puts the lanes of all instances on one clock, in a group each.
func instanceLanes(ps []*profile.Profile, starts []int64) *timeline.Timeline {
	zero := int64(math.MaxInt64)
	for _, s := range starts {
		zero = min(zero, s)
	}
	t := &timeline.Timeline{
		Origin: "start of the first inference of the first instance", Iterations: new(int64(0)), Dropped: new(int64(0)),
		Method: "clock read at the boundaries of operators, one clock for all instances",
	}
	names := map[string]int32{}
	for k, p := range ps {
		if p.Timeline == nil {
			continue
		}
		shift := float64(starts[k]-zero) / 1e9
		for _, l := range p.Timeline.Lanes {
			l.Group = fmt.Sprintf("instance %d", k)
			at := make([]float64, len(l.Starts))
			for i, s := range l.Starts {
				at[i] = s + shift
			}
			l.Starts = at
			if l.Labels != nil {
				labels := make([]int32, len(l.Labels))
				for i, n := range l.Labels {
					labels[i] = -1
					if n >= 0 {
						labels[i] = named(t, names, p.Timeline.Names[n])
					}
				}
				l.Labels = labels
			}
			t.Lanes = append(t.Lanes, l)
		}
		for _, x := range []struct{ to, from *int64 }{{t.Iterations, p.Timeline.Iterations}, {t.Dropped, p.Timeline.Dropped}} {
			if x.from != nil {
				*x.to += *x.from
			}
		}
	}
	if len(t.Lanes) == 0 {
		return nil
	}
	return t
}

func named(t *timeline.Timeline, names map[string]int32, s string) int32 {
	i, ok := names[s]
	if !ok {
		i = int32(len(t.Names))
		names[s] = i
		t.Names = append(t.Names, s)
	}
	return i
}

// jointThroughput returns the number of inferences per second over the time in which all
// instances ran, after their first inferences. Inferences that cross an edge count by the
// fraction within.
func jointThroughput(t *timeline.Timeline) (rate, window float64, ok bool) {
	if t == nil {
		return 0, 0, false
	}
	from, to := 0.0, math.Inf(1)
	for i := range t.Lanes {
		if l := &t.Lanes[i]; l.Kind == timeline.Iteration {
			n := len(l.Starts)
			if n < 2 {
				return 0, 0, false
			}
			from, to = max(from, l.Starts[1]), min(to, l.Starts[n-1]+l.Durations[n-1])
		}
	}
	if window = to - from; !(window > 0) || math.IsInf(window, 0) {
		return 0, 0, false
	}
	count := 0.0
	for i := range t.Lanes {
		l := &t.Lanes[i]
		if l.Kind != timeline.Iteration {
			continue
		}
		for k, s := range l.Starts {
			if d := l.Durations[k]; d > 0 {
				count += max(0, min(s+d, to)-max(s, from)) / d
			}
		}
	}
	return count / window, window, true
}
