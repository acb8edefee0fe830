package speed

import (
	"context"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// comparison has the times of the unchanged and of a changed model, whatever their source.
type comparison interface {
	// point completes the point of a layer, which nodes of the unchanged model compute.
	point(p *study.SpeedPoint, nodes []int)
	// rest completes the point of the first layer of a group by the nodes that change with it and
	// belong to no layer.
	rest(lead *study.SpeedPoint, nodes []int)
}

// comparer compares the unchanged model with a changed one.
type comparer func(ctx context.Context, changed *graph.Model) (comparison, error)

// points returns the points of a change for all layers.
func points(ctx context.Context, m *graph.Model, layers []*weights.Layer, c study.Change, compare comparer) ([]study.SpeedPoint, error) {
	if c.Structure.Removes() {
		return groupPoints(ctx, m, layers, c, compare)
	}
	changed, effects, err := ApplyToAll(m, layers, c)
	if err != nil {
		return nil, err
	}
	x, err := compare(ctx, changed)
	if err != nil {
		return nil, err
	}
	out := make([]study.SpeedPoint, len(layers))
	for i, l := range layers {
		out[i] = study.SpeedPoint{Layer: i, Change: c, Cause: effects[i].Cause}
		if effects[i].Cause == "" {
			x.point(&out[i], readers(l))
		}
	}
	return out, nil
}

// groupPoints is [points] for a change that makes layers smaller, group by group like [Measure].
func groupPoints(ctx context.Context, m *graph.Model, layers []*weights.Layer, c study.Change, compare comparer) ([]study.SpeedPoint, error) {
	out := unchangeable(layers, c)
	own := map[int]bool{}
	for _, l := range layers {
		for _, n := range readers(l) {
			own[n] = true
		}
	}
	for _, gs := range groupsByModel(rewrite.Groups(m, layers, c.Structure), layers) {
		changed, effects, err := groupChanged(m, layers, c, gs)
		if err != nil {
			return nil, err
		}
		x, err := compare(ctx, changed)
		if err != nil {
			return nil, err
		}
		for _, g := range gs {
			var others []study.AffectedLayer
			for i, l := range layers {
				p := study.SpeedPoint{Layer: i, Change: c}
				member := slices.Contains(g.Layers, i)
				if !member && !slices.ContainsFunc(readers(l), func(n int) bool { return slices.Contains(g.Nodes, n) }) {
					continue
				}
				if p.Cause = effects[i].Cause; p.Cause == "" {
					x.point(&p, readers(l))
				}
				switch {
				case member:
					p.With = rewrite.OtherMembers(g.Layers, i)
					out[i] = p
				case p.Ratio != nil:
					others = append(others, study.AffectedLayer{Layer: i, Ratio: p.Ratio, Energy: p.Energy})
				}
			}
			lead := &out[g.Layers[0]]
			if lead.Ratio == nil {
				continue
			}
			lead.Affected = others
			x.rest(lead, slices.DeleteFunc(slices.Clone(g.Nodes), func(n int) bool { return own[n] }))
		}
	}
	return out, nil
}
