package speed

import (
	"cmp"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// A layer that loses filters makes its readers smaller. To attribute each gain to its change,
// layers are changed by pruning group (see [rewrite.Groups]). Groups without a common step share
// a model, so two to four models are enough for most networks.

// group is a pruning group with the steps whose times it changes.
type group struct {
	rewrite.Group
	parts []int // indices in the run's list, ascending
	rest  int   // the part of steps without weights, -1 for none
}

// maxModels bounds the models per change: densely connected networks would need one per layer.
// Groups with the most work come first; the others get no figures.
const maxModels = 8

// groupsByModel distributes groups to models without common nodes (greedy colouring).
func groupsByModel(all []rewrite.Group, layers []*weights.Layer) [][]rewrite.Group {
	work := func(g rewrite.Group) (n int64) {
		for _, i := range g.Layers {
			if layers[i].MACs != nil {
				n += *layers[i].MACs
			}
		}
		return n
	}
	sorting.Stable(all, func(a, b rewrite.Group) int { return cmp.Compare(work(b), work(a)) })
	var out [][]rewrite.Group
	var touched []map[int]bool
	for _, g := range all {
		k := 0
		for k < len(out) && slices.ContainsFunc(g.Nodes, func(n int) bool { return touched[k][n] }) {
			k++
		}
		if k == maxModels {
			continue
		}
		if k == len(out) {
			out, touched = append(out, nil), append(touched, map[int]bool{})
		}
		out[k] = append(out[k], g)
		for _, n := range g.Nodes {
			touched[k][n] = true
		}
	}
	return out
}

// findGroups finds the parts that the groups of all structures affect, before any model is timed.
// Nodes outside of layers form a part of their own.
func (r *run) findGroups() {
	r.groups = map[study.Structure][][]group{}
	own := map[int]int{} // parts by node
	for i := range r.parts {
		for _, n := range r.parts[i].nodes {
			own[n] = i
		}
	}
	steps := r.dense.s.Steps()
	for _, c := range r.o.Changes {
		if _, ok := r.groups[c.Structure]; ok || !c.Structure.Removes() {
			continue
		}
		all := rewrite.Groups(r.m, r.layers, c.Structure)
		for k := range all { // groups are distinct only if the steps that compute their nodes are
			g := &all[k]
			for _, n := range g.Nodes {
				if s := stepOf(steps, n); s >= 0 && s != n {
					g.Nodes = append(g.Nodes, s)
				}
			}
			slices.Sort(g.Nodes)
			g.Nodes = slices.Compact(g.Nodes)
		}
		models := groupsByModel(all, r.layers)
		out := make([][]group, len(models))
		for k, gs := range models {
			for _, g := range gs {
				x := group{Group: g, rest: -1}
				parts := map[int]bool{}
				var rest []int
				for _, n := range g.Nodes {
					if i, ok := own[n]; ok {
						parts[i] = true
					} else {
						rest = append(rest, n)
					}
				}
				x.parts = slices.Sorted(maps.Keys(parts))
				if len(rest) > 0 {
					x.rest = len(r.parts)
					r.parts = append(r.parts, timedPart{step: -1, nodes: rest})
				}
				out[k] = append(out[k], x)
			}
		}
		r.groups[c.Structure] = out
	}
}

// measureGroups measures a change that makes layers smaller, group by group.
func (r *run) measureGroups(c study.Change) error {
	points := unchangeable(r.layers, c)
	for _, i := range r.rest {
		points[i].Cause = study.NotRun
	}
	for _, gs := range r.groups[c.Structure] {
		if err := r.measureGroupModel(c, gs, points); err != nil {
			return err
		}
	}
	return r.yield(&study.SpeedPoints{Points: points})
}

// unchangeable returns points of a change that no layer can have.
func unchangeable(layers []*weights.Layer, c study.Change) []study.SpeedPoint {
	points := make([]study.SpeedPoint, len(layers))
	for i, l := range layers {
		points[i] = study.SpeedPoint{Layer: i, Change: c, Cause: cmp.Or(l.Fixed, study.Coupled)}
	}
	return points
}

// measureGroupModel measures one model with the change of some groups.
func (r *run) measureGroupModel(c study.Change, gs []group, points []study.SpeedPoint) error {
	plain := make([]rewrite.Group, len(gs))
	for i, g := range gs {
		plain[i] = g.Group
	}
	m, effects, err := groupChanged(r.m, r.layers, c, plain)
	if err != nil {
		return err
	}
	x, before, after, err := r.compareWith(m, c)
	if err != nil {
		return err
	}
	for _, g := range gs {
		lead := g.Layers[0]
		var others []study.AffectedLayer
		for _, i := range g.parts {
			p := &r.parts[i]
			ratio := metric(ratios(before, after, i), "pairs of interleaved groups of runs")
			for k, l := range p.layers {
				if !slices.Contains(g.Layers, l) {
					others = append(others, study.AffectedLayer{Layer: l, Ratio: ratio})
					continue
				}
				pt := &points[l]
				if pt.Cause = effects[l].Cause; pt.Cause == "" && len(x.steps[i]) == 0 {
					pt.Cause = study.NotRun
				}
				if pt.Kernel = x.kernel(p, i); pt.Cause == "" {
					pt.Ratio = ratio
					pt.Latency = metric(column(after, func(t *groupTimes) float64 { return t.parts[i] * p.shares[k] }), p.method())
				}
			}
		}
		for _, l := range g.Layers {
			points[l].With = rewrite.OtherMembers(g.Layers, l)
		}
		if points[lead].Cause != "" {
			continue
		}
		points[lead].Affected = others
		if i := g.rest; i >= 0 {
			more := make([]float64, len(before))
			for k := range before {
				more[k] = after[k].parts[i] - before[k].parts[i]
			}
			points[lead].RestS = metric(more, "pairs of interleaved groups of runs")
		}
	}
	return nil
}

// groupChanged makes the model with a change of all layers of some groups. Effects are by layer.
func groupChanged(m *graph.Model, layers []*weights.Layer, c study.Change, gs []rewrite.Group) (*graph.Model, map[int]rewrite.Effect, error) {
	var changes []rewrite.Change
	var at []int
	for _, g := range gs {
		for _, l := range g.Layers {
			changes, at = append(changes, rewrite.Change{Layer: layers[l], Change: c}), append(at, l)
		}
	}
	out, effects, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
	by := map[int]rewrite.Effect{}
	for i, e := range effects {
		by[at[i]] = e
	}
	return out, by, err
}
