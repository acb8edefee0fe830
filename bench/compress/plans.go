package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// taken is how many samples profiles take, as the command does where nobody says.
const taken = 256

// lossOptions are those of the command where nobody says.
func (n *network) lossOptions() *compress.LossOptions {
	o := &compress.LossOptions{Data: &compress.Data{}}
	if n.data {
		o.Data.Options = n.use
	}
	o.Data.Options.Limit = taken
	return o
}

// profile makes both profiles as the command does.
func (n *network) profile(ctx context.Context) error {
	changes, err := compress.Grid(true, nil, nil, nil)
	if err != nil {
		return err
	}
	if _, err := n.job.Speed(ctx, compress.SpeedOptions{Changes: changes, Batch: n.batch}); err != nil {
		return err
	}
	magnitude := compress.LossOptions{Method: study.Magnitude, Changes: changes}
	if _, err := n.job.Loss(ctx, magnitude); err != nil {
		return err
	}
	o := n.lossOptions()
	o.Changes = changes
	_, err = n.job.Loss(ctx, *o)
	return err
}

func profiles(ctx context.Context, nets []*network) error {
	for _, n := range nets {
		if err := n.profile(ctx); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	return nil
}

// timed is a plan with the speed-up that its model has.
type timed struct {
	net      string
	plan     *study.Plan
	measured *profile.Metric
}

// rival is a changed model that may be the fastest of its kind.
type rival struct {
	name  string
	m     *graph.Model
	plan  *study.Plan // nil for uniform sparsity
	used  float64     // what it loses on the use data
	upper float64     // the same, gains as no loss, and 1.645 standard errors up, as opmeter bounds
	tried bool
	speed *profile.Metric
}

func (r *rival) tell(lost *profile.Metric) {
	r.used, r.tried = lost.Best()
	r.upper = max(r.used, 0)
	if lost.CI95 != nil {
		r.upper += 1.645 * (lost.CI95[1] - r.used) / 1.96
	}
}

// contest is what models of a network are compared with.
type contest struct {
	n          *network
	used, test *loss.Trial
}

// plans compares plans at equal accuracy.
func plans(ctx context.Context, nets []*network) ([]timed, error) {
	fmt.Println("\nPlans at equal accuracy: the fastest of each kind that keeps the drop on the use data, 1.645 standard errors to spare; drop on held-out samples; speed-up of opmeter's, interleaved")
	fmt.Println("network\tdrop\tkind\tmodel\tspeed-up\tdrop on use data\tdrop on held-out\topmeter's against it")
	var out []timed
	for _, n := range nets {
		got, err := n.contest(ctx)
		if err != nil {
			return out, fmt.Errorf("%s: %w", n.name, err)
		}
		out = append(out, got...)
	}
	return out, nil
}

func (n *network) contest(ctx context.Context) (out []timed, err error) {
	c := &contest{n: n}
	limited := n.use
	limited.Limit = taken
	if c.used, err = n.trial(ctx, limited); err != nil {
		return nil, err
	}
	if c.test, err = n.trial(ctx, n.test); err != nil {
		return nil, err
	}
	uniform, theirs, err := c.rivals(ctx)
	if err != nil {
		return nil, err
	}
	for _, drop := range []float64{.01, .02, .05} {
		var ours []*rival
		for _, kind := range []string{"opmeter", "opmeter, sparsity only"} {
			o := compress.PlanOptions{Name: fmt.Sprintf("%s %g", kind, drop), Goal: study.Goal{MaxLoss: &drop}, Try: n.lossOptions()}
			if kind != "opmeter" {
				o.WithoutFormats = study.Formats()[1:]
			}
			p, err := n.job.Plan(ctx, o)
			if err != nil {
				return out, err
			}
			r, err := c.planned(ctx, kind, p)
			if err != nil {
				return out, err
			}
			if err := c.measure(ctx, r, long); err != nil {
				return out, err
			}
			out = append(out, timed{n.name, p, r.speed})
			ours = append(ours, r)
			if err := c.print(ctx, drop, kind, r, nil); err != nil {
				return out, err
			}
		}
		for _, k := range []struct {
			name string
			of   []*rival
		}{{"uniform", uniform}, {"Sparsify", theirs}} {
			best, err := c.fastest(ctx, k.of, drop)
			if err != nil {
				return out, err
			}
			if best == nil {
				fmt.Printf("%s\t%g %%\t%s\tnone keeps the drop\n", n.name, 100*drop, k.name)
				continue
			}
			if err := c.print(ctx, drop, k.name, best, ours); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func (n *network) trial(ctx context.Context, o samples.Options) (*loss.Trial, error) {
	set, err := samples.Open(n.m, o)
	if err != nil {
		return nil, err
	}
	j := loss.Job{Model: n.m, Layers: n.job.Layers, Data: set, Settings: study.LossSettings{Method: study.EndToEnd, Metric: loss.Accuracy, Higher: true}}
	return j.Trial(ctx)
}

// rivals are uniform sparsity, with and without the first and last layers, and Sparsify's
// allocator at several settings.
func (c *contest) rivals(ctx context.Context) (uniform, theirs []*rival, err error) {
	keep := choose.BoundaryLayers(c.n.m, c.n.job.Study().Layers)
	for _, v := range compress.Levels()[1:] {
		for _, ends := range []bool{false, true} {
			var cs []rewrite.Change
			for i, l := range c.n.job.Layers {
				if ends || keep[i] == "" {
					cs = append(cs, rewrite.Change{Layer: l, Change: study.Change{Structure: study.Unstructured, Level: v}})
				}
			}
			m, _, err := rewrite.Apply(c.n.m, cs, rewrite.Options{})
			if err != nil {
				return nil, nil, err
			}
			uniform = append(uniform, &rival{name: fmt.Sprintf("%g %%%s", 100*v, map[bool]string{true: ", ends too"}[ends]), m: m})
		}
		for _, b := range []float64{1, sparsify.BalanceUnsaid, 0} {
			s := sparsify.Defaults()
			s.Sparsity, s.Balance = v, b
			p, err := c.n.job.Plan(ctx, compress.PlanOptions{Name: fmt.Sprintf("sparsify %g %g", v, b), Loss: string(study.Magnitude), Sparsify: &s, SkipRun: true})
			if err != nil {
				return nil, nil, err
			}
			r, err := c.planned(ctx, fmt.Sprintf("%g %%, balance %g", 100*v, b), p)
			if err != nil {
				return nil, nil, err
			}
			theirs = append(theirs, r)
		}
	}
	for _, r := range append(uniform, theirs...) {
		x, err := c.used.Try(ctx, r.m)
		if err != nil {
			return nil, nil, err
		}
		r.tell(x.Lost)
	}
	return uniform, theirs, nil
}

// planned is the model of a plan.
func (c *contest) planned(ctx context.Context, name string, p *study.Plan) (*rival, error) {
	a, err := c.n.job.Apply(ctx, p.Name, nil, false)
	if err != nil && strings.Contains(err.Error(), "changes nothing") || err == nil && a.Graph == nil {
		return &rival{name: name, m: c.n.m, plan: p, tried: true}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &rival{name: name, m: a.Graph, plan: p}
	x, err := c.used.Try(ctx, a.Graph)
	if err == nil {
		r.tell(x.Lost)
	}
	return r, err
}

// Times of comparisons: to find the fastest of a kind, and for the table.
const (
	quick = 150 * time.Millisecond
	long  = 600 * time.Millisecond
)

func (c *contest) measure(ctx context.Context, r *rival, each time.Duration) (err error) {
	_, _, r.speed, err = c.n.job.BenchHere(ctx, r.m, 1, c.n.batch, each)
	return err
}

// fastest is that of those which keep the drop.
func (c *contest) fastest(ctx context.Context, of []*rival, drop float64) (best *rival, err error) {
	for _, r := range of {
		if !r.tried || r.upper > drop+1e-9 {
			continue
		}
		if r.speed == nil {
			if err := c.measure(ctx, r, quick); err != nil {
				return nil, err
			}
		}
		if best == nil || *r.speed.Median > *best.speed.Median {
			best = r
		}
	}
	if best != nil {
		err = c.measure(ctx, best, long)
	}
	return best, err
}

// print prints a line: a model, and how much faster those of opmeter are.
func (c *contest) print(ctx context.Context, drop float64, kind string, r *rival, ours []*rival) error {
	held, err := c.test.Try(ctx, r.m)
	if err != nil {
		return err
	}
	fmt.Printf("%s\t%g %%\t%s\t%s\t%s\t%.2f %%\t%s", c.n.name, 100*drop, kind, r.name, spread(r.speed, 1, "%.2f"), 100*r.used, spread(held.Lost, 100, "%.2f"))
	for _, o := range ours {
		ins, _, err := inputs.Inputs(c.n.m, inputs.Options{Batch: c.n.batch})
		if err != nil {
			return err
		}
		x, err := speed.Compare(ctx, r.m, o.m, speed.Options{Engine: engine.Options{Registry: operators.Registry(), Threads: 1}, Inputs: ins, Time: long})
		if err != nil {
			return err
		}
		fmt.Printf("\t%s: %s", o.name, spread(x.Speedup, 1, "%.2f"))
	}
	fmt.Println()
	return nil
}

// spread is a figure with its interval.
func spread(m *profile.Metric, unit float64, format string) string {
	v, ok := m.Best()
	if !ok {
		return "—"
	}
	ends := m.CI95
	if ends == nil {
		ends = m.Band
	}
	s := fmt.Sprintf(format, unit*v)
	if ends != nil {
		s += fmt.Sprintf(" ("+format+" to "+format+")", unit*ends[0], unit*ends[1])
	}
	return s
}
