package speed

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Pair has profiles of the unchanged and of a changed model by another engine, measured
// interleaved.
type Pair struct {
	Before, After *profile.Profile
	// Changed is the changed model as the engine read it.
	Changed *graph.Model
}

// ExternalOptions configure a measurement by another engine, like [Options].
type ExternalOptions struct {
	Changes  []study.Change
	Have     func(study.Change) bool
	Progress func(phase string, fraction float64)
	// Compare profiles the unchanged model and a changed one interleaved; without one the
	// unchanged model alone.
	Compare func(ctx context.Context, changed *graph.Model) (*Pair, error)

	fastest float64 // latency of the unchanged model in any pair
}

// methodExternal is the displayed method of times by another engine.
const methodExternal = "profiler of the engine, operators that compute the layer"

// MeasureExternal finds the times of layers in another engine, like [Measure]: by the operators
// that the engine reports, assigned to those of the model.
func MeasureExternal(ctx context.Context, m *graph.Model, layers []*weights.Layer, o ExternalOptions, yield func(*study.SpeedPoints) error) error {
	if o.Have == nil || !o.Have(study.Change{}) {
		p, err := o.steadyPair(ctx, nil)
		if err != nil {
			return err
		}
		if err := yield(externalUnchanged(p.Before, m, layers)); err != nil {
			return err
		}
	}
	for i, c := range o.Changes {
		if c.IsZero() || o.Have != nil && o.Have(c) {
			continue
		}
		if o.Progress != nil {
			o.Progress("measuring "+Describe(c), float64(i)/float64(len(o.Changes)))
		}
		ps, err := points(ctx, m, layers, c, func(ctx context.Context, changed *graph.Model) (comparison, error) { return o.compare(ctx, m, changed) })
		if err != nil {
			return err
		}
		if err := yield(&study.SpeedPoints{Points: ps}); err != nil {
			return err
		}
	}
	return nil
}

// externalUnchanged returns the times of the unchanged model.
func externalUnchanged(p *profile.Profile, m *graph.Model, layers []*weights.Layer) *study.SpeedPoints {
	out := &study.SpeedPoints{Latency: p.Totals.Latency}
	times := engineTimes(p, m)
	for i, l := range layers {
		if t := times.sum(readers(l)); t != nil {
			out.Layers = append(out.Layers, study.LayerTime{Layer: i, Latency: t, Kernel: times.kernel(readers(l))})
		}
	}
	return out
}

// comparedTimes are the times of both models of a [Pair] by node; stands has the unchanged node
// of each changed one.
type comparedTimes struct {
	before, after nodeTimes
	stands        []int
}

func (o *ExternalOptions) compare(ctx context.Context, m, changed *graph.Model) (comparison, error) {
	p, err := o.steadyPair(ctx, changed)
	if err != nil {
		return nil, err
	}
	return &comparedTimes{engineTimes(p.Before, m), engineTimes(p.After, p.Changed), allOriginalNodes(m, p.Changed)}, nil
}

// Limits of a pair that was disturbed, and the number of attempts to get another one.
const (
	disturbedRatio = 1.5
	pairAttempts   = 3
)

// steadyPair compares again where other processes held one model up: the engine's times of
// operators are scaled to whole inferences. It returns the pair that was disturbed least.
func (o *ExternalOptions) steadyPair(ctx context.Context, changed *graph.Model) (best *Pair, err error) {
	least := math.Inf(1)
	for range pairAttempts {
		p, err := o.Compare(ctx, changed)
		if err != nil {
			return nil, err
		}
		worst := max(disturbance(p.Before), disturbance(p.After))
		if t, ok := middle(p.Before.Totals.Latency); ok && t > 0 {
			o.fastest = min(t, cmp.Or(o.fastest, t))
			worst = max(worst, t/o.fastest)
		}
		if worst < least || best == nil {
			least, best = worst, p
		}
		if least <= disturbedRatio {
			break
		}
	}
	return best, nil
}

// disturbance is the upper end of the interval of a latency divided by its median, and at least 1.
func disturbance(p *profile.Profile) float64 {
	t := p.Totals.Latency
	if v, ok := middle(t); ok && v > 0 && t.CI95 != nil {
		return max(1, t.CI95[1]/v)
	}
	return 1
}

// middle returns the median of a metric, with which its interval goes, else its best figure.
func middle(m *profile.Metric) (float64, bool) {
	if m != nil && m.Median != nil {
		return *m.Median, true
	}
	return m.Best()
}

func (x *comparedTimes) point(p *study.SpeedPoint, nodes []int) {
	now := correspondingNodes(x.stands, nodes)
	before, after := x.before.sum(nodes), x.after.sum(now)
	b, ok := before.Best()
	a, ok2 := after.Best()
	if !ok || !ok2 || b <= 0 || a <= 0 {
		p.Cause = study.NoData
		return
	}
	p.Latency, p.Kernel = after, x.after.kernel(now)
	p.Ratio = profile.Value(profile.Measured, a/b, "both models interleaved; "+methodExternal)
	if before.CI95 == nil || after.CI95 == nil || before.CI95[0] <= 0 {
		return
	}
	p.Ratio.CI95 = &[2]float64{after.CI95[0] / before.CI95[1], after.CI95[1] / before.CI95[0]}
	switch {
	case p.Ratio.CI95[0] >= 1:
		p.Cause = study.NoGain
	case p.Ratio.CI95[1] >= 1:
		p.Cause = study.Unsettled
	}
}

func (x *comparedTimes) rest(lead *study.SpeedPoint, nodes []int) {
	if slices.ContainsFunc(lead.Affected, func(a study.AffectedLayer) bool { r, _ := a.Ratio.Best(); return r < 1 }) {
		lead.Cause = "" // the gain is that of its readers
	}
	was, is := x.before.sum(nodes), x.after.sum(correspondingNodes(x.stands, nodes))
	if a, ok := was.Best(); ok {
		if b, ok := is.Best(); ok {
			lead.RestS = profile.Value(profile.Measured, b-a, methodExternal)
		}
	}
}

// nodeTime is the time that an engine spent on a node, with the ends of its interval.
type nodeTime struct {
	mid, lo, hi float64
	kernel      string
}

// nodeTimes are times by position in the node lists of all graphs; NaN where the engine reports
// none.
type nodeTimes []nodeTime

// engineTimes assigns the operators of an engine to the nodes of the model: a fused operator to
// all that it computes, by their shares. Operators that the engine inserted belong to no node.
func engineTimes(p *profile.Profile, m *graph.Model) nodeTimes {
	first := make([]int, len(m.Graphs)+1)
	for i, g := range m.Graphs {
		first[i+1] = first[i] + len(g.Nodes)
	}
	out := make(nodeTimes, first[len(m.Graphs)])
	for i := range out {
		out[i].mid = math.NaN()
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Provenance == nil || l.Provenance.Inserted {
			continue
		}
		v, lo, hi, ok := operatorTime(l)
		if !ok {
			continue
		}
		from := l.Provenance.SourceNodes
		for k := range from {
			s := &from[k]
			share := 1 / float64(len(from))
			if s.Share != nil {
				share = *s.Share
			}
			if s.Graph < 0 || s.Graph >= int64(len(m.Graphs)) || s.Node < 0 || s.Node >= int64(len(m.Graphs[s.Graph].Nodes)) {
				continue
			}
			t := &out[first[s.Graph]+int(s.Node)]
			if math.IsNaN(t.mid) {
				*t = nodeTime{kernel: l.Op}
			}
			t.mid, t.lo, t.hi = t.mid+share*v, t.lo+share*lo, t.hi+share*hi
		}
	}
	return out
}

// operatorTime returns the time of an operator with its 95 % interval. The median of a profile is
// not rounded to the resolution of the engine's clock.
func operatorTime(l *profile.Layer) (mid, lo, hi float64, ok bool) {
	if mid, ok = l.Latency.Best(); l.Latency != nil && l.Latency.Median != nil {
		mid = *l.Latency.Median
	}
	lo, hi = mid, mid
	if ok && l.Latency.CI95 != nil {
		lo, hi = l.Latency.CI95[0], l.Latency.CI95[1]
	}
	return mid, lo, hi, ok && mid > 0
}

// sum adds the times of nodes; nil where the engine reports none of them.
func (t nodeTimes) sum(nodes []int) *profile.Metric {
	var s nodeTime
	known := false
	for _, n := range nodes {
		if n < 0 || n >= len(t) || math.IsNaN(t[n].mid) {
			continue
		}
		known = true
		s.mid, s.lo, s.hi = s.mid+t[n].mid, s.lo+t[n].lo, s.hi+t[n].hi
	}
	if !known {
		return nil
	}
	m := profile.Value(profile.Measured, s.mid, methodExternal)
	m.CI95 = &[2]float64{min(s.lo, s.mid), max(s.hi, s.mid)}
	return m
}

// kernel names the engine's operator that takes most of the time of nodes.
func (t nodeTimes) kernel(nodes []int) (name string) {
	most := 0.0
	for _, n := range nodes {
		if n >= 0 && n < len(t) && t[n].mid > most {
			most, name = t[n].mid, t[n].kernel
		}
	}
	return name
}
