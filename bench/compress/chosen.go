package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/study"
)

// few is how many samples losses of models without data are found with: what matters is which
// plans come of them.
const few = 16

// goals are those that times of chosen plans are looked at for: speed-ups, and losses as errors
// of outputs.
func goals() (all []study.Goal) {
	for _, v := range []float64{1.5, 2, 3} {
		all = append(all, study.Goal{Speedup: &v})
	}
	for _, v := range []float64{.05, .2, .5} {
		all = append(all, study.Goal{MaxLoss: &v})
	}
	return all
}

// chosen makes plans for all goals, as far as the study does not have them, and measures their
// models once more: what a plan tells of itself is the fastest of several.
func (n *network) chosen(ctx context.Context) (out []timed, err error) {
	changes, err := compress.Grid(true, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	o := n.lossOptions()
	o.Method, o.Changes = study.OutputError, changes
	if !n.data {
		o.Data.Options.Limit = few
	}
	lost, err := n.job.Loss(ctx, *o)
	if err != nil {
		return nil, err
	}
	for _, g := range goals() {
		name := "chosen, loss"
		if g.Speedup != nil {
			name = fmt.Sprintf("chosen, %g times", *g.Speedup)
		} else {
			name += fmt.Sprintf(" %g", *g.MaxLoss)
		}
		p := n.job.Study().Plan(name)
		if p == nil {
			p, err = n.job.Plan(ctx, compress.PlanOptions{Name: name, Loss: lost.Name, Goal: g, Try: o})
			if _, ok := errors.AsType[*compress.OptionError](err); ok {
				fmt.Printf("%s\t%s\tcannot be had\n", n.name, name)
				continue
			}
			if err != nil {
				return out, err
			}
		}
		if !slices.ContainsFunc(p.Choices, func(c study.Choice) bool { return !c.Change.IsZero() }) {
			fmt.Printf("%s\t%s\tchanges nothing\n", n.name, name)
			continue
		}
		a, err := n.job.Apply(ctx, p.Name, nil, false)
		if err != nil {
			return out, err
		}
		_, _, again, err := n.job.BenchHere(ctx, a.Graph, 1, n.batch, long)
		if err != nil {
			return out, err
		}
		out = append(out, timed{n.name, p, again})
	}
	return out, nil
}
