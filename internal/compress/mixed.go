package compress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Mixed models of a performance profile: how many there are, and how many run in the same turns.
const (
	mixedModels = 8
	mixedTurns  = 4
)

// Mixes draws changes for all layers, as plans choose them: from one to three kinds of changes, and of them for each layer one that gains,
// or none for one layer in four; layers that lose filters together have the same. Every other one has layers of 8-bit activations where these gain: what it takes to convert them is to
// be found. It has fewer than n where nothing gains.
func Mixes(p *study.Speed, layers, n int, seed uint64) [][]study.Change {
	type kind struct {
		structure study.Structure
		format    study.Format
	}
	var kinds []kind
	of := map[kind][][]study.Change{} // by layer
	tied := map[study.Change]map[int][]int{}
	for _, x := range p.Points {
		if v, ok := x.Ratio.Best(); !ok || v >= 1 || x.Cause != "" || x.Layer >= layers {
			continue
		}
		k := kind{x.Change.Structure, x.Change.Format}
		if of[k] == nil {
			kinds, of[k] = append(kinds, k), make([][]study.Change, layers)
		}
		of[k][x.Layer] = append(of[k][x.Layer], x.Change)
		if x.With != nil {
			if tied[x.Change] == nil {
				tied[x.Change] = map[int][]int{}
			}
			tied[x.Change][x.Layer] = x.With
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var out [][]study.Change
	for range 10 * n { // some change nothing
		rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		if k := slices.Index(kinds, kind{"", study.Int8}); k > 0 && len(out)%2 == 1 {
			kinds[0], kinds[k] = kinds[k], kinds[0]
		}
		taken := kinds[:min(1+rng.IntN(3), len(kinds))]
		mix := make([]study.Change, layers)
		for i := range mix {
			var may []study.Change
			for _, k := range taken {
				may = append(may, of[k][i]...)
			}
			if len(may) > 0 && rng.IntN(4) > 0 {
				mix[i] = may[rng.IntN(len(may))]
			}
		}
		for i, c := range mix {
			for _, k := range tied[c][i] {
				mix[k] = c
			}
		}
		if slices.ContainsFunc(mix, func(c study.Change) bool { return !c.IsZero() }) {
			if out = append(out, mix); len(out) == n {
				break
			}
		}
	}
	return out
}

// mixedModel is a model with a change for each layer.
func (j *Job) mixedModel(mix []study.Change) (*graph.Model, error) {
	var changes []rewrite.Change
	remove := false
	for i, c := range mix {
		if c.IsZero() {
			continue
		}
		changes = append(changes, rewrite.Change{Layer: j.Layers[i], Change: c})
		remove = remove || c.Structure == study.Channel || c.Structure == study.Filter
	}
	m, effects, err := rewrite.Apply(j.m, changes, rewrite.Options{Remove: remove})
	if err != nil {
		return nil, err
	}
	for i, e := range effects {
		if e.Cause != "" {
			return nil, fmt.Errorf("%s: %s", changes[i].Layer.Name, e.Cause)
		}
	}
	return m, nil
}

// mixed measures models whose layers have different changes, as far as the profile does not have them yet.
func (j *Job) mixed(ctx context.Context, o *SpeedOptions, p *study.Speed) error {
	all := Mixes(p, len(j.Layers), mixedModels, 0)
	for len(p.Mixed) < len(all) {
		next := all[len(p.Mixed):min(len(p.Mixed)+mixedTurns, len(all))]
		found, err := j.RunMixes(ctx, next, o)
		if err != nil {
			return err
		}
		if err := j.File.Append(study.Record{SpeedPoints: &study.SpeedPoints{Name: p.Name, Mixed: found}}); err != nil {
			return err
		}
	}
	return nil
}

// RunMixes measures models of [Mixes], all in the same turns.
func (j *Job) RunMixes(ctx context.Context, mixes [][]study.Change, o *SpeedOptions) ([]study.Mixed, error) {
	ins, err := j.inputs(o.Batch)
	if err != nil {
		return nil, err
	}
	out := make([]study.Mixed, len(mixes))
	var models []*graph.Model
	var at []int
	for i, mix := range mixes {
		out[i].Changes = mix
		if m, err := j.mixedModel(mix); err == nil { // changes that do not go together tell nothing
			models, at = append(models, m), append(at, i)
		}
	}
	if len(models) == 0 {
		return out, nil
	}
	got, err := speed.Several(ctx, j.m, models, speed.Options{Engine: j.engineOptions(o.Threads), Inputs: ins, Time: o.Time, Progress: j.o.Progress})
	if err != nil {
		return nil, err
	}
	for k, i := range at {
		if s := got[k].Speedup; s != nil {
			out[i].Ratio = inverse(s)
		}
	}
	return out, nil
}

// inverse is the reciprocal of a measured quotient, with its interval.
func inverse(m *profile.Metric) *profile.Metric {
	v, ok := m.Best()
	if !ok || v <= 0 {
		return nil
	}
	out := profile.Value(profile.Measured, 1/v, m.Method)
	out.N = m.N
	if m.CI95 != nil && m.CI95[0] > 0 {
		out.CI95 = &[2]float64{1 / m.CI95[1], 1 / m.CI95[0]}
	}
	return out
}
