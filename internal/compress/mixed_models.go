package compress

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// mixedModels is the number of mixed models of a performance profile. A 90 % error bound needs at
// least nine; with ten to twelve it does not depend on the largest error alone.
const mixedModels = 12

// RandomMixes draws random changes for all layers, as plans choose them: one to three kinds of
// changes, and for each layer one of them that gains, or none for one layer in four. Layers that
// must have the same change get that of the first of them.
//
// Every other mix prefers int8 where it gains, so that the cost of conversions shows. The result
// is shorter than n where nothing gains.
func RandomMixes(p *study.Speed, layers, n int, seed uint64) [][]study.Change {
	type kind struct {
		structure study.Structure
		format    study.Format
	}
	var kinds []kind
	of := map[kind][][]study.SpeedPoint{} // by layer
	for _, x := range p.Points {
		if v, ok := x.Ratio.Best(); !ok || v >= 1 || x.Cause != "" || x.Layer >= layers {
			continue
		}
		k := kind{x.Change.Structure, x.Change.Format}
		if of[k] == nil {
			kinds, of[k] = append(kinds, k), make([][]study.SpeedPoint, layers)
		}
		of[k][x.Layer] = append(of[k][x.Layer], x)
	}
	if len(kinds) == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var out [][]study.Change
	for range 10 * n { // some mixes change nothing
		rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		if k := slices.Index(kinds, kind{"", study.Int8}); k > 0 && len(out)%2 == 1 {
			kinds[0], kinds[k] = kinds[k], kinds[0]
		}
		taken := kinds[:min(1+rng.IntN(3), len(kinds))]
		mix := make([]study.Change, layers)
		for i := range mix {
			var may []study.SpeedPoint
			for _, k := range taken {
				may = append(may, of[k][i]...)
			}
			if len(may) > 0 && rng.IntN(4) > 0 {
				assign(mix, may[rng.IntN(len(may))])
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

// assign gives a layer a change, and the same change to the layers coupled with it. It does
// nothing where one of them has a change already or an earlier layer decides.
func assign(mix []study.Change, x study.SpeedPoint) {
	if !mix[x.Layer].IsZero() {
		return
	}
	for _, l := range x.With {
		if l < x.Layer || l >= len(mix) || !mix[l].IsZero() {
			return
		}
	}
	mix[x.Layer] = x.Change
	for _, l := range x.With {
		mix[l] = x.Change
	}
}

// mixedModel applies a change per layer.
func (j *Job) mixedModel(mix []study.Change) (*graph.Model, error) {
	var changes []rewrite.Change
	for i, c := range mix {
		if c.IsZero() {
			continue
		}
		changes = append(changes, rewrite.Change{Layer: j.Layers[i], Change: c})
	}
	m, effects, err := rewrite.Apply(j.m, changes, rewrite.Options{Remove: true})
	for i, e := range effects {
		if err == nil && e.Cause != "" {
			err = fmt.Errorf("%s does not support the change: %s", changes[i].Layer.Name, e.Cause)
		}
	}
	return m, err
}

// MeasureMixes measures the models of [RandomMixes] that a profile in a file still lacks, and
// appends them. Each is measured interleaved with the unchanged model, and both are prepared
// anew, as for a plan: memory placement is part of the error to be estimated.
func (j *Job) MeasureMixes(ctx context.Context, all [][]study.Change, o *SpeedOptions, file *study.File, p *study.Speed) error {
	for len(p.Mixed) < len(all) {
		found := study.MixedModel{Changes: all[len(p.Mixed)]}
		// incompatible changes give no figure
		if m, err := j.mixedModel(found.Changes); err == nil {
			// The time of a whole model is steadier than layer times, so half the time is enough.
			t := cmp.Or(o.Time, speed.UsualTime) / 2
			if o.External != nil {
				t = cmp.Or(o.Time, externalTime)
			}
			got, err := j.compareMany(ctx, o.External, []*graph.Model{m}, max(o.Threads, 1), o.Batch, t)
			if err != nil {
				return err
			}
			found.Ratio = Reciprocal(got[0].Speedup)
		}
		if err := file.Append(study.Record{SpeedPoints: &study.SpeedPoints{Name: p.Name, Mixed: []study.MixedModel{found}}}); err != nil {
			return err
		}
	}
	return nil
}

// Reciprocal returns the reciprocal of a measured ratio, with its interval.
func Reciprocal(m *profile.Metric) *profile.Metric {
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
