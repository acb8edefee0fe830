package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/study"
)

// drawn is how many models with changes drawn at random a network has its predicted times compared on: half with filters only, half with all
// changes.
const drawn = 12

// randoms compares predicted with measured times of models with random changes, network by network.
func randoms(ctx context.Context, nets []*network) error {
	for _, n := range nets {
		found, err := n.random(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		table(found)
	}
	return nil
}

// random compares predicted with measured times of models with changes drawn at random.
func (n *network) random(ctx context.Context) (out []timed, err error) {
	changes, err := compress.Grid(true, []float64{.4, .6, .8, .9}, nil, nil)
	if err != nil {
		return nil, err
	}
	sp, err := n.job.Speed(ctx, compress.SpeedOptions{Name: "random", Changes: changes, Batch: n.batch})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(1, uint64(len(sp.Points))))
	for k := range drawn {
		var changes []study.Change
		for range 100 { // until something changes
			changes = draw(r, sp, len(n.job.Layers), k%2 == 0)
			if slices.ContainsFunc(changes, func(c study.Change) bool { return !c.IsZero() }) {
				break
			}
		}
		said, ok := choose.Predict(n.job.Study().Layers, sp, changes)
		if !ok {
			continue
		}
		var cs []rewrite.Change
		for i, c := range changes {
			if !c.IsZero() {
				cs = append(cs, rewrite.Change{Layer: n.job.Layers[i], Change: c})
			}
		}
		m, _, err := rewrite.Apply(n.m, cs, rewrite.Options{Remove: true})
		if err != nil {
			return out, err
		}
		_, _, s, err := n.job.BenchHere(ctx, m, 1, n.batch, long)
		if err != nil {
			return out, err
		}
		kind := map[bool]string{true: "filters", false: "mixed"}[k%2 == 0]
		out = append(out, timed{n.name, &study.Plan{Name: fmt.Sprintf("random %d, %s", k, kind), Predicted: *said}, s})
	}
	return out, nil
}

// draw changes every other layer in a way that was measured. What is tied has the same change.
func draw(r *rand.Rand, sp *study.Speed, layers int, filters bool) []study.Change {
	out := make([]study.Change, layers)
	for i := range out {
		var of []study.SpeedPoint
		for _, x := range sp.Points {
			if x.Layer == i && x.Ratio != nil && (!filters || x.Change.Structure == study.Filter) && x.Change.Level <= .9 {
				of = append(of, x)
			}
		}
		if len(of) == 0 || r.IntN(2) == 0 || !out[i].IsZero() {
			continue
		}
		x := of[r.IntN(len(of))]
		if slices.ContainsFunc(x.With, func(l int) bool { return l < i }) {
			continue // the first of them decides
		}
		out[i] = x.Change
		for _, l := range x.With {
			out[l] = x.Change
		}
	}
	return out
}
