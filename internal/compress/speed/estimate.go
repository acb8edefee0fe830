package speed

import (
	"context"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// TargetOptions say what to estimate, like [Options].
type TargetOptions struct {
	Target   *chip.Target
	Options  chip.Options
	Feed     inputs.Options
	Changes  []study.Change
	Have     func(study.Change) bool
	Progress func(phase string, fraction float64)
}

// gains says which changes the cycle models of targets can answer for: they have no loops that leave single
// zeros out.
func gains(c study.Change) bool {
	switch c.Structure {
	case study.Dense, study.Channel, study.Filter:
		return true
	}
	return false
}

// Estimate finds what layers would take on a target that is not there, like [Measure]: ratios are of
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
				t.Limit = limit(all[n].Roof)
			}
			out.Layers = append(out.Layers, t)
		}
		if err := yield(out); err != nil {
			return err
		}
	}
	for i, c := range o.Changes {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.IsZero() || o.Have != nil && o.Have(c) {
			continue
		}
		if o.Progress != nil {
			o.Progress("estimating "+Words(c), float64(i)/float64(len(o.Changes)))
		}
		out := &study.SpeedPoints{}
		if !gains(c) {
			for k := range layers {
				out.Points = append(out.Points, study.SpeedPoint{Layer: k, Change: c, Cause: study.NoKernel})
			}
		} else if c.Structure.Removes() {
			out.Points, err = o.grouped(ctx, m, layers, dense, c)
		} else {
			out.Points, err = o.changed(ctx, m, layers, dense, c)
		}
		if err != nil {
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

// allLayers are those of all graphs, by node, the main one's first: nil for nodes of bodies that the profile has not.
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

// latency sums the times of nodes, energy what they use; nil where that is not known of one.
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

func (o *TargetOptions) changed(ctx context.Context, m *graph.Model, layers []*weights.Layer, dense *profile.Profile, c study.Change) ([]study.SpeedPoint, error) {
	changed, effects, err := Changed(m, layers, c)
	if err != nil {
		return nil, err
	}
	p, err := o.Profile(ctx, changed)
	if err != nil {
		return nil, err
	}
	stands, before, after := traces(m, changed), allLayers(dense, m), allLayers(p, changed)
	out := make([]study.SpeedPoint, len(layers))
	for i, l := range layers {
		out[i] = study.SpeedPoint{Layer: i, Change: c, Cause: effects[i].Cause}
		if effects[i].Cause == "" {
			nodes := standing(stands, readers(l))
			compare(&out[i], latency(before, readers(l)), latency(after, nodes))
			out[i].Energy = energy(after, nodes)
		}
	}
	return out, nil
}

// grouped estimates a change that makes layers smaller, group by group like [Measure].
func (o *TargetOptions) grouped(ctx context.Context, m *graph.Model, layers []*weights.Layer, dense *profile.Profile, c study.Change) ([]study.SpeedPoint, error) {
	points := unchangeable(layers, c)
	own := map[int]bool{}
	for _, l := range layers {
		for _, n := range readers(l) {
			own[n] = true
		}
	}
	for _, gs := range coloured(rewrite.Groups(m, layers, c.Structure), layers) {
		changed, effects, err := groupChanged(m, layers, c, gs)
		if err != nil {
			return nil, err
		}
		p, err := o.Profile(ctx, changed)
		if err != nil {
			return nil, err
		}
		stands, before, after := traces(m, changed), allLayers(dense, m), allLayers(p, changed)
		for _, g := range gs {
			lead := &points[g.Layers[0]]
			var others []study.AffectedLayer
			for i, l := range layers {
				x := study.SpeedPoint{Layer: i, Change: c}
				member := slices.Contains(g.Layers, i)
				if !member && !slices.ContainsFunc(readers(l), func(n int) bool { return slices.Contains(g.Nodes, n) }) {
					continue
				}
				if x.Cause = effects[i].Cause; x.Cause == "" {
					nodes := standing(stands, readers(l))
					compare(&x, latency(before, readers(l)), latency(after, nodes))
					x.Energy = energy(after, nodes)
				}
				switch {
				case member:
					x.With = with(g.Layers, i)
					points[i] = x
				case x.Ratio != nil:
					others = append(others, study.AffectedLayer{Layer: i, Ratio: x.Ratio, Energy: x.Energy})
				}
			}
			if lead.Ratio == nil {
				continue
			}
			lead.Affected = others
			rest := slices.DeleteFunc(slices.Clone(g.Nodes), func(n int) bool { return own[n] })
			nodes := standing(stands, rest)
			lead.RestS = more(latency(before, rest), latency(after, nodes))
			lead.RestJ = more(energy(before, rest), energy(after, nodes))
		}
	}
	return points, nil
}

// compare completes a point. Errors of both estimates are those of one model, so that most of them cancel: the band of the
// ratio is that of the changed one, which is on the safe side.
func compare(p *study.SpeedPoint, before, after *profile.Metric) {
	b, ok := before.Best()
	a, ok2 := after.Best()
	if !ok || !ok2 || b <= 0 {
		p.Cause = study.NotRun
		return
	}
	p.Latency = after
	p.Ratio = profile.Value(profile.Estimated, a/b, "estimates of both")
	if after.Band != nil {
		p.Ratio.Band = &[2]float64{after.Band[0] / b, after.Band[1] / b}
	}
	if a >= b {
		p.Cause = study.NoKernel
	}
}

// more is the difference of two estimates, nil where one is not known.
func more(before, after *profile.Metric) *profile.Metric {
	was, ok := before.Best()
	is, ok2 := after.Best()
	if !ok || !ok2 {
		return nil
	}
	return profile.Value(profile.Estimated, is-was, "estimates of both")
}

// standing are the nodes of a changed model that stand for some of the unchanged one.
func standing(stands, nodes []int) []int {
	var out []int
	for i, n := range stands {
		if slices.Contains(nodes, n) {
			out = append(out, i)
		}
	}
	return out
}

// limit is a bound in the words of a study.
func limit(r *profile.Roof) string {
	switch r.Bound {
	case profile.BoundCompute, profile.BoundMemory:
		return string(r.Bound)
	case profile.BoundNeither:
		return "overhead"
	}
	return ""
}

// Count has operations in place of times: what layers would gain if all that is left out saved its share of the
// work. Formats change no operations.
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
		_, effects, err := rewriteAll(m, layers, c)
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

// rewriteAll is [Changed] with nothing taken out, so that zeros can be counted.
func rewriteAll(m *graph.Model, layers []*weights.Layer, c study.Change) (*graph.Model, []rewrite.Effect, error) {
	changes := make([]rewrite.Change, len(layers))
	for i, l := range layers {
		changes[i] = rewrite.Change{Layer: l, Change: study.Change{Structure: c.Structure, Level: c.Level}}
	}
	return rewrite.Apply(m, changes, rewrite.Options{})
}
