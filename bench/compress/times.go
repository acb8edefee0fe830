package main

import (
	"context"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/stats"
	"github.com/opmeter/opmeter/study"
)

// times compares predicted with measured times, of plans that were made and of further ones for speed-ups.
func times(ctx context.Context, nets []*network, found []timed) error {
	for _, n := range nets {
		if !n.data {
			if err := n.profile(ctx); err != nil {
				fmt.Printf("%s: %v\n", n.name, err)
				continue
			}
		}
		for _, goal := range []float64{1.3, 1.6} {
			o := compress.PlanOptions{Goal: study.Goal{Speedup: &goal}, Name: fmt.Sprintf("as fast %g", goal)}
			if n.data {
				o.Try = n.lossOptions()
			}
			p, err := n.job.Plan(ctx, o)
			if err != nil {
				fmt.Printf("%s, %g times as fast: %v\n", n.name, goal, err)
				continue
			}
			a, err := n.job.Apply(ctx, p.Name, nil, false)
			if err != nil {
				return fmt.Errorf("%s: %w", n.name, err)
			}
			_, _, s, err := n.job.BenchHere(ctx, a.Graph, 1, n.batch, long)
			if err != nil {
				return fmt.Errorf("%s: %w", n.name, err)
			}
			found = append(found, timed{n.name, p, s})
		}
	}
	table(found)
	return nil
}

// table prints predicted times against those measured.
func table(found []timed) {
	fmt.Println("\nPredicted against measured time of compressed models")
	fmt.Println("network\tplan\tpredicted speed-up\tmeasured\terror of the time\twithin the interval")
	var off []float64
	within := 0
	for _, f := range found {
		said, ok := f.plan.Predicted.Speedup.Best()
		did, is := f.measured.Best()
		if !ok || !is {
			continue
		}
		e := did/said - 1
		off = append(off, math.Abs(e))
		b := f.plan.Predicted.Speedup.Band
		in := b != nil && did >= b[0] && did <= b[1]
		if in {
			within++
		}
		fmt.Printf("%s\t%s\t%s\t%s\t%+.1f %%\t%v\n", f.net, f.plan.Name, spread(f.plan.Predicted.Speedup, 1, "%.3f"), spread(f.measured, 1, "%.3f"), 100*e, in)
	}
	if len(off) > 0 {
		fmt.Printf("median error %.1f %% over %d plans; %d of %d within the interval\n", 100*stats.Median(off), len(off), within, len(off))
	}
}
