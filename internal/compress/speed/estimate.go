package speed

import (
	"context"
	"slices"

	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// TargetOptions configure an estimate, like [Options].
type TargetOptions struct {
	Target   *chip.Target
	Options  chip.Options
	Feed     inputs.Options
	Changes  []study.Change
	Have     func(study.Change) bool
	Progress func(phase string, fraction float64)
}

// Estimate estimates the times of layers on a target, like [Measure]. Ratios are of two
// estimates, with the band of the changed one.
func Estimate(ctx context.Context, m *graph.Model, layers []*weights.Layer, o TargetOptions, yield func(*study.SpeedPoints) error) error {
	dense, err := o.Profile(ctx, m)
	if err != nil {
		return err
	}
	if o.Have == nil || !o.Have(study.Change{}) {
		out := &study.SpeedPoints{Latency: dense.Totals.Latency, Energy: dense.Totals.Energy}
		all := allLayers(dense, m)
		for i, l := range layers {
			t := study.LayerTime{Layer: i, Latency: latency(all, readers(l)), Energy: energy(all, readers(l))}
			if n := readers(l)[0]; n < len(all) && all[n] != nil && all[n].Roof != nil {
				t.Limit = bottleneck(all[n].Roof)
			}
			out.Layers = append(out.Layers, t)
		}
		if err := yield(out); err != nil {
			return err
		}
	}
	compare := func(ctx context.Context, changed *graph.Model) (comparison, error) {
		p, err := o.Profile(ctx, changed)
		if err != nil {
			return nil, err
		}
		return &estimatedTimes{allLayers(dense, m), allLayers(p, changed), allOriginalNodes(m, changed)}, nil
	}
	for i, c := range o.Changes {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.IsZero() || o.Have != nil && o.Have(c) {
			continue
		}
		if o.Progress != nil {
			o.Progress("estimating "+Describe(c), float64(i)/float64(len(o.Changes)))
		}
		out := &study.SpeedPoints{}
		// The cycle models have no sparse kernels.
		if c.Structure != study.Dense && !c.Structure.Removes() {
			for k := range layers {
				out.Points = append(out.Points, study.SpeedPoint{Layer: k, Change: c, Cause: study.NoKernel})
			}
		} else if out.Points, err = points(ctx, m, layers, c, compare); err != nil {
			return err
		}
		if err := yield(out); err != nil {
			return err
		}
	}
	return yield(&study.SpeedPoints{Done: true})
}

// Profile estimates a model.
func (o *TargetOptions) Profile(ctx context.Context, m *graph.Model) (*profile.Profile, error) {
	ready, err := estimate.Prepare(m, o.Feed, nil)
	if err != nil {
		return nil, err
	}
	return source.Collect(ctx, &estimate.Source{Model: ready, Target: o.Target, Options: o.Options}, source.Options{})
}

// allLayers returns the layers of all graphs by node, main graph first: nil for nodes of
// subgraphs that the profile lacks.
func allLayers(p *profile.Profile, m *graph.Model) []*profile.Layer {
	var out []*profile.Layer
	for i := range p.Layers {
		if p.Layers[i].Parent == nil {
			out = append(out, &p.Layers[i])
		}
	}
	if len(out) != len(m.Main().Nodes) {
		return out
	}
	first := make([]int, len(m.Graphs))
	for i, g := range m.Graphs[1:] {
		first[i+1] = len(out)
		out = append(out, make([]*profile.Layer, len(g.Nodes))...)
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Parent == nil || l.Provenance == nil {
			continue
		}
		for _, s := range l.Provenance.SourceNodes {
			if s.Graph > 0 && s.Graph < int64(len(first)) && s.Node >= 0 && s.Node < int64(len(m.Graphs[s.Graph].Nodes)) {
				out[first[s.Graph]+int(s.Node)] = l
			}
		}
	}
	return out
}

// latency sums the times of nodes, energy their energies; nil where one is unknown.
func latency(all []*profile.Layer, nodes []int) *profile.Metric {
	return sum(all, nodes, func(l *profile.Layer) *profile.Metric { return l.Latency })
}

func energy(all []*profile.Layer, nodes []int) *profile.Metric {
	return sum(all, nodes, func(l *profile.Layer) *profile.Metric { return l.Energy })
}

func sum(all []*profile.Layer, nodes []int, of func(*profile.Layer) *profile.Metric) *profile.Metric {
	sum, band, known := 0.0, [2]float64{}, false
	for _, n := range nodes {
		if n >= len(all) || all[n] == nil {
			return nil
		}
		l := all[n]
		m := of(l)
		v, ok := m.Best()
		if !ok && (l.State == profile.Fused || l.Constant) {
			continue
		}
		if !ok {
			return nil
		}
		known = true
		sum += v
		if b := m.Band; b != nil {
			band[0], band[1] = band[0]+b[0], band[1]+b[1]
		} else {
			band[0], band[1] = band[0]+v, band[1]+v
		}
	}
	if !known {
		return nil
	}
	out := profile.Value(profile.Estimated, sum, "sum over the layer's operators")
	out.Band = &band
	return out
}

// estimatedTimes are the layers of two estimates by node; stands has the unchanged node of each
// changed one.
type estimatedTimes struct {
	before, after []*profile.Layer
	stands        []int
}

func (x *estimatedTimes) point(p *study.SpeedPoint, nodes []int) {
	now := correspondingNodes(x.stands, nodes)
	setRatio(p, latency(x.before, nodes), latency(x.after, now))
	p.Energy = energy(x.after, now)
}

func (x *estimatedTimes) rest(lead *study.SpeedPoint, nodes []int) {
	now := correspondingNodes(x.stands, nodes)
	lead.RestS = difference(latency(x.before, nodes), latency(x.after, now))
	lead.RestJ = difference(energy(x.before, nodes), energy(x.after, now))
}

// setRatio completes a point. The errors of both estimates come from one model and mostly cancel.
// The band of the ratio is that of the changed estimate, which is conservative.
func setRatio(p *study.SpeedPoint, before, after *profile.Metric) {
	b, ok := before.Best()
	a, ok2 := after.Best()
	if !ok || !ok2 || b <= 0 {
		p.Cause = study.NotRun
		return
	}
	p.Latency = after
	p.Ratio = profile.Value(profile.Estimated, a/b, "ratio of two estimates")
	if after.Band != nil {
		p.Ratio.Band = &[2]float64{after.Band[0] / b, after.Band[1] / b}
	}
	if a >= b {
		p.Cause = study.NoKernel
	}
}

// difference returns the difference of two estimates, nil where one is unknown.
func difference(before, after *profile.Metric) *profile.Metric {
	was, ok := before.Best()
	is, ok2 := after.Best()
	if !ok || !ok2 {
		return nil
	}
	return profile.Value(profile.Estimated, is-was, "difference of two estimates")
}

// correspondingNodes returns the nodes of a changed model that correspond to nodes of the
// unchanged one.
func correspondingNodes(stands, nodes []int) []int {
	var out []int
	for i, n := range stands {
		if slices.Contains(nodes, n) {
			out = append(out, i)
		}
	}
	return out
}

// bottleneck returns a roofline bound as a study names it.
func bottleneck(r *profile.Roof) string {
	switch r.Bound {
	case profile.BoundCompute, profile.BoundMemory:
		return string(r.Bound)
	case profile.BoundOverhead:
		return "overhead"
	}
	return ""
}

// Count uses operation counts in place of times: the gain if all skipped operations saved their
// share of the work. Formats do not change the number of operations.
func Count(m *graph.Model, layers []*weights.Layer, changes []study.Change, have func(study.Change) bool, yield func(*study.SpeedPoints) error) error {
	first := &study.SpeedPoints{}
	for i, l := range layers {
		t := study.LayerTime{Layer: i}
		if l.MACs != nil {
			t.Ops = new(2 * *l.MACs)
		}
		first.Layers = append(first.Layers, t)
	}
	if err := yield(first); err != nil {
		return err
	}
	for _, c := range changes {
		if c.IsZero() || have != nil && have(c) {
			continue
		}
		_, effects, err := applyToAll(m, layers, study.Change{Structure: c.Structure, Level: c.Level}, false)
		if err != nil {
			return err
		}
		out := &study.SpeedPoints{}
		for i, l := range layers {
			p := study.SpeedPoint{Layer: i, Change: c, Cause: effects[i].Cause}
			if n := l.Weights() - l.Zeros; p.Cause == "" && n > 0 {
				p.Ratio = profile.Value(profile.Counted, float64(effects[i].Weights-effects[i].Zeros)/float64(n), "weights that are not zero")
			}
			out.Points = append(out.Points, p)
		}
		if err := yield(out); err != nil {
			return err
		}
	}
	return yield(&study.SpeedPoints{Done: true})
}
