package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/stats"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Random plans of a network. They are drawn with another seed than those that the profile has.
const (
	randomPlans = 8
	randomSeed  = 1
)

// random measures random plans, as far as the study held does not have them yet.
func (n *network) random(ctx context.Context, held *network) (p, s *study.Speed, err error) {
	changes, err := compress.Grid(true, nil, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	o := compress.SpeedOptions{Changes: changes, Batch: n.batch}
	if p, err = n.job.Speed(ctx, o); err != nil {
		return nil, nil, err
	}
	if held.job.Study().Speed(p.Name) == nil {
		if err := held.job.File.Append(study.Record{Speed: &study.Speed{SpeedSettings: p.SpeedSettings}}); err != nil {
			return nil, nil, err
		}
	}
	s = held.job.Study().Speed(p.Name)
	return p, s, n.job.RunMixes(ctx, compress.Mixes(p, len(n.job.Layers), randomPlans, randomSeed), &o, held.job.File, s)
}

// coverage counts how well times are predicted.
type coverage struct {
	off    []float64
	within int
}

func (c *coverage) print(net, plan string, said, did *profile.Metric) {
	x, ok := said.Best()
	y, is := did.Best()
	if !ok || !is {
		return
	}
	e := x/y - 1
	c.off = append(c.off, math.Abs(e))
	in := said.Band != nil && y >= said.Band[0] && y <= said.Band[1]
	if in {
		c.within++
	}
	fmt.Printf("%s\t%s\t%s\t%s\t%+.1f %%\t%v\n", net, plan, spread(said, 1, "%.3f"), spread(did, 1, "%.3f"), 100*e, in)
}

// times compares predicted with measured times, of plans that were made and of random ones.
func times(ctx context.Context, nets []*network, found []timed, dir string) error {
	fmt.Println("\nPredicted against measured time of compressed models")
	fmt.Println("network\tplan\tpredicted speed-up\tmeasured\terror of the time\twithin the interval")
	var c coverage
	for _, f := range found {
		c.print(f.net, f.plan.Name, f.plan.Predicted.Speedup, f.measured)
	}
	for _, n := range nets {
		held, err := open(n.path, filepath.Join(dir, n.name+".held.study"))
		if err != nil {
			return err
		}
		defer held.close()
		p, s, err := n.random(ctx, held)
		if ctx.Err() != nil {
			fmt.Printf("%s: stopped: with -keep the same command goes on\n", n.name)
			break
		}
		if err != nil {
			fmt.Printf("%s: %v\n", n.name, err)
			continue
		}
		for k, m := range s.Mixed {
			name := fmt.Sprintf("random %d", k)
			if slices.ContainsFunc(m.Changes, func(c study.Change) bool { return c.Format == study.Int8 }) {
				name += ", int8"
			}
			c.print(n.name, name, choose.Forecast(p, n.job.Study().Layers, m.Changes).Speedup, compress.Inverse(m.Ratio))
		}
	}
	if len(c.off) > 0 {
		fmt.Printf("median error %.1f %% over %d plans; %d of %d within the interval\n", 100*stats.Median(c.off), len(c.off), c.within, len(c.off))
	}
	return nil
}
