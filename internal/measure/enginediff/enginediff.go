// Package enginediff compares where two engines spend the time of the same model: how long an
// inference takes, which operators are first, and which layers one engine takes far longer for.
package enginediff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/profile"
)

// Limits from which on a layer counts as one that an engine takes far longer for: its share of
// the inference and its time are so many times those of the other engine, and the share is not
// small. The share cancels the speed of the engines as a whole. Shares of short measurements vary
// by a tenth, and what a profiler adds to short operators can double their times.
const (
	minShareRatio = 3
	minTimeRatio  = 2
	minShare      = 0.05
	// mostNamed is how many layers a finding names.
	mostNamed = 3
)

// Compare summarises the profile of another engine for a profile of the same model. The findings
// name the layers that one of the engines takes far longer for. q has the layers that the engine
// executed, matched with the model's operators.
func Compare(p, q *profile.Profile, other profile.OtherEngine) (profile.OtherEngine, []profile.Finding) {
	other.Latency = q.Totals.Latency
	own, theirs := total(p.Layers), total(q.Layers)
	if !(own > 0) || !(theirs > 0) {
		return other, nil
	}
	gs := groups(p.Layers, q.Layers)
	other.Operators = operators(gs, q.Layers, theirs)
	return other, findings(p, gs, own, theirs, other.Name())
}

// total returns the sum of the layers' times in seconds.
func total(ls []profile.Layer) (sum float64) {
	for i := range ls {
		v, _ := ls[i].Latency.Best()
		sum += v
	}
	return sum
}

// group is a smallest set of layers of both engines that compute the same nodes of the model:
// engines fuse nodes in different ways.
type group struct {
	own, theirs []int
	// Times in seconds, and whether they are complete and the layers were matched reliably.
	ownTime, theirTime float64
	sure               bool
	// lead is the own layer that takes most of the time, op its operator.
	lead int
	op   string
}

// place is a node's position in the model file.
type place struct{ graph, node int64 }

// groups returns the groups in the order of the own layers. Layers of the other engine that belong
// to no node of the model are in none.
func groups(own, theirs []profile.Layer) []*group {
	f := forest{}
	ours := map[place][]int{}
	for i := range own {
		if to := own[i].FusedInto; to != nil && *to >= 0 && *to < int64(len(own)) {
			f.join(i, int(*to))
		}
		for _, n := range sources(&own[i]) {
			at := place{n.Graph, n.Node}
			ours[at] = append(ours[at], i)
			f.join(i, ours[at][0])
		}
	}
	for k := range theirs {
		for _, n := range sources(&theirs[k]) {
			for _, i := range ours[place{n.Graph, n.Node}] {
				f.join(len(own)+k, i)
			}
		}
	}
	by := map[int]*group{}
	var out []*group
	for i := range own {
		g := by[f.root(i)]
		if g == nil {
			g = &group{sure: true}
			by[f.root(i)] = g
			out = append(out, g)
		}
		g.own = append(g.own, i)
	}
	for k := range theirs {
		if g := by[f.root(len(own)+k)]; g != nil {
			g.theirs = append(g.theirs, k)
		}
	}
	for _, g := range out {
		g.measure(own, theirs)
	}
	return out
}

// sources returns the nodes of the model that a layer computes.
func sources(l *profile.Layer) []profile.SourceNode {
	if l.Provenance == nil || l.Provenance.Inserted {
		return nil
	}
	return l.Provenance.SourceNodes
}

func (g *group) measure(own, theirs []profile.Layer) {
	most := -1.0
	for _, i := range g.own {
		v, ok := own[i].Latency.Best()
		g.ownTime += v
		g.sure = g.sure && (ok || own[i].State.Elsewhere())
		if v > most {
			most, g.lead, g.op = v, i, figures.Operator(&own[i])
		}
	}
	g.sure = g.sure && len(g.theirs) > 0
	for _, k := range g.theirs {
		l := &theirs[k]
		v, ok := l.Latency.Best()
		g.theirTime += v
		reliable := []profile.Confidence{profile.Exact, profile.ByTensor, profile.ByName}
		g.sure = g.sure && (ok || l.State.Elsewhere()) && slices.Contains(reliable, l.Provenance.Confidence)
	}
}

// operators returns the shares of the other engine's operators.
func operators(gs []*group, theirs []profile.Layer, sum float64) []profile.OperatorShare {
	name := make([]string, len(theirs))
	for k := range theirs {
		name[k] = figures.Operator(&theirs[k])
	}
	for _, g := range gs {
		for _, k := range g.theirs {
			name[k] = g.op
		}
	}
	var out []profile.OperatorShare
	for k := range theirs {
		v, ok := theirs[k].Latency.Best()
		if !ok {
			continue
		}
		i := slices.IndexFunc(out, func(s profile.OperatorShare) bool { return s.Op == name[k] })
		if i < 0 {
			i = len(out)
			out = append(out, profile.OperatorShare{Op: name[k]})
		}
		out[i].Share += v / sum
	}
	for i := range out {
		out[i].Share = min(out[i].Share, 1) // a rounding above
	}
	sorting.Stable(out, func(a, b profile.OperatorShare) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// findings names the layers that one of the engines takes far longer for.
func findings(p *profile.Profile, gs []*group, own, theirs float64, other string) []profile.Finding {
	var out []profile.Finding
	mine := longer(gs, func(g *group) (a, b side) {
		return side{g.ownTime, g.ownTime / own}, side{g.theirTime, g.theirTime / theirs}
	})
	if len(mine) > 0 {
		out = append(out, finding(p, mine, "opmeter's own engine takes far longer than "+other+" for"))
	}
	yours := longer(gs, func(g *group) (a, b side) {
		return side{g.theirTime, g.theirTime / theirs}, side{g.ownTime, g.ownTime / own}
	})
	if len(yours) > 0 {
		out = append(out, finding(p, yours, other+" takes far longer than opmeter's own engine for"))
	}
	return out
}

// side is what one engine takes for a group: seconds, and their share of the inference.
type side struct{ time, share float64 }

func (s side) String() string {
	return fmt.Sprintf("%s, %.1f %%", figures.FormatTime(s.time), 100*s.share)
}

// slow is a group that one engine takes far longer for.
type slow struct {
	*group
	a, b side
}

// longer returns the groups for which the first side is far longer, the greatest share first.
func longer(gs []*group, sides func(*group) (a, b side)) []slow {
	var out []slow
	for _, g := range gs {
		a, b := sides(g)
		if g.sure && b.time > 0 && a.share >= minShare && a.share >= minShareRatio*b.share && a.time >= minTimeRatio*b.time {
			out = append(out, slow{g, a, b})
		}
	}
	sorting.Stable(out, func(x, y slow) int { return cmp.Compare(y.a.share, x.a.share) })
	return out
}

func finding(p *profile.Profile, ss []slow, what string) profile.Finding {
	f := profile.Finding{ID: "engine.layers", Severity: profile.Info}
	var names []string
	for _, s := range ss {
		for _, i := range s.own {
			f.Layers = append(f.Layers, p.Layers[i].Index)
		}
		if len(names) < mostNamed {
			names = append(names, fmt.Sprintf("#%d %s (%s of an inference instead of %s)", p.Layers[s.lead].Index, s.op, s.a, s.b))
		}
	}
	f.Text = what + " " + strings.Join(names, ", ")
	if n := len(ss) - len(names); n > 0 {
		f.Text += fmt.Sprintf(" and %d more", n)
	}
	f.Text += "."
	slices.Sort(f.Layers)
	return f
}

// forest is a set of disjoint sets of numbers.
type forest map[int]int

func (f forest) root(i int) int {
	for {
		up, ok := f[i]
		if !ok || up == i {
			return i
		}
		i = up
	}
}

func (f forest) join(a, b int) {
	if a, b = f.root(a), f.root(b); a != b {
		f[max(a, b)] = min(a, b)
	}
}
