package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/choose"
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
	return p, s, n.job.MeasureMixes(ctx, compress.RandomMixes(p, len(n.job.Layers), randomPlans, randomSeed), &o, held.job.File, s)
}

// coverage counts how well times are predicted.
type coverage struct {
	off    []float64 // errors of times
	within int
	// raced are how much more plans are said to gain by their race than they do when measured
	// once more.
	raced []float64
}

func (c *coverage) print(net, plan string, said, did *profile.Metric) {
	x, ok := said.Best()
	y, is := did.Best()
	if !ok || !is {
		return
	}
	e := y/x - 1
	c.off = append(c.off, e)
	in := said.Band != nil && y >= said.Band[0] && y <= said.Band[1]
	if in {
		c.within++
	}
	fmt.Printf("%s\t%s\t%s\t%s\t%+.1f %%\t%v\n", net, plan, spread(said, 1, "%.3f"), spread(did, 1, "%.3f"), 100*e, in)
}

// plan prints a plan that was chosen.
func (c *coverage) plan(f timed) {
	c.print(f.net, f.plan.Name, f.plan.Predicted.Speedup, f.measured)
	if f.plan.Measured == nil {
		return
	}
	x, ok := f.plan.Measured.Speedup.Best()
	y, is := f.measured.Best()
	if ok && is {
		c.raced = append(c.raced, x/y-1)
	}
}

func (c *coverage) sum(of string) {
	if len(c.off) == 0 {
		return
	}
	size := make([]float64, len(c.off))
	for i, e := range c.off {
		size[i] = math.Abs(e)
	}
	fmt.Printf("%s: median error %.1f %% over %d plans, median with its sign %+.1f %%; %d within the interval, %.0f %%\n",
		of, 100*stats.Median(size), len(size), 100*stats.Median(c.off), c.within, 100*float64(c.within)/float64(len(size)))
	if len(c.raced) > 0 {
		fmt.Printf("%s: measured in the race to be %+.1f %% as fast in the median as when measured once more\n", of, 100*stats.Median(c.raced))
	}
}

// times compares predicted with measured times, of plans that were made, of ones chosen for
// several goals and of random ones.
func times(ctx context.Context, nets []*network, found []timed, dir string) error {
	fmt.Println("\nPredicted against measured time of compressed models")
	fmt.Println("network\tplan\tpredicted speed-up\tmeasured\tpredicted time by the measured one\twithin the interval")
	var chosen, random coverage
	for _, f := range found {
		chosen.plan(f)
	}
	for _, n := range nets {
		held, err := open(n.path, filepath.Join(dir, n.name+".held.study"))
		if err != nil {
			return err
		}
		defer held.close()
		p, s, err := n.random(ctx, held)
		if over := n.failed(ctx, err); over {
			break
		}
		if err != nil {
			continue
		}
		for k, m := range s.Mixed {
			name := fmt.Sprintf("random %d", k)
			if slices.ContainsFunc(m.Changes, func(c study.Change) bool { return c.Format == study.Int8 }) {
				name += ", int8"
			}
			random.print(n.name, name, choose.Forecast(p, n.job.Study().Layers, m.Changes).Speedup, compress.Reciprocal(m.Ratio))
		}
	}
	for _, n := range nets {
		if p := n.job.Study().Speeds; len(p) == 0 || !p[len(p)-1].Done {
			continue
		}
		plans, err := n.chosen(ctx)
		for _, f := range plans {
			chosen.plan(f)
		}
		if n.failed(ctx, err) {
			break
		}
	}
	random.sum("random plans")
	chosen.sum("chosen plans")
	return nil
}

// failed says why times of a network are missing, and reports whether the time is over.
func (n *network) failed(ctx context.Context, err error) bool {
	switch {
	case ctx.Err() != nil:
		fmt.Printf("%s: stopped: with -keep the same command goes on\n", n.name)
		return true
	case err != nil:
		fmt.Printf("%s: %v\n", n.name, err)
	}
	return false
}
