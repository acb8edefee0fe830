package speed

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/machine"
	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/profile"
)

// Compared is what turns of two models tell: times of an inference in seconds, and how many times as fast the second is.
type Compared struct{ Before, After, Speedup *profile.Metric }

// Compare runs two models in turns: the unchanged one and one that takes the same inputs.
func Compare(ctx context.Context, before, after *graph.Model, o Options) (*Compared, error) {
	release, err := measure.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	defer measure.Quiet(machine.HeapRoom())()
	r := &run{m: before, o: &o, ctx: ctx}
	if o.Time == 0 {
		o.Time = UsualTime
	}
	if r.dense, err = r.session(before, nil); err != nil {
		return nil, err
	}
	defer r.dense.s.Close()
	x, err := r.session(after, []int{})
	if err != nil {
		return nil, err
	}
	defer x.s.Close()
	if err := failsMore(x.s.Steps(), r.dense.s.Steps()); err != nil {
		return nil, err
	}
	r.progress("warming up", 0)
	if err := r.warm(); err != nil {
		return nil, err
	}
	r.progress("measuring in turns", 0)
	was, now, err := r.turns(x)
	if err != nil {
		return nil, err
	}
	whole := func(t *times) float64 { return t.whole }
	gain := make([]float64, len(was))
	for i := range was {
		gain[i] = was[i].whole / now[i].whole
	}
	return &Compared{metric(column(was, whole), "groups of runs"), metric(column(now, whole), "groups of runs"), metric(gain, "pairs of groups in turns")}, nil
}

// failsMore tells what does not run of a changed model where more does not than of the unchanged one: what is left is no
// such model, and no time of it one to compare.
func failsMore(changed, unchanged []engine.Step) error {
	var first error
	n := 0
	for i := range changed {
		if s := &changed[i]; s.Err != nil {
			if n++; first == nil {
				first = fmt.Errorf("the compressed model does not run on these inputs: %s: %w", cmp.Or(s.Node.Name, s.Node.Key()), s.Err)
			}
		}
	}
	for i := range unchanged {
		if unchanged[i].Err != nil {
			n--
		}
	}
	if n > 0 {
		return first
	}
	return nil
}

// turns runs a model and the unchanged one in the order ABBA until the time is over.
func (r *run) turns(x *model) (before, after []times, err error) {
	n := r.size()
	for begin := time.Now(); len(before) < 2*least || time.Since(begin) < r.o.Time && len(before) < 2*most; {
		for _, next := range []struct {
			x  *model
			to *[]times
		}{{r.dense, &before}, {x, &after}, {x, &after}, {r.dense, &before}} {
			t, err := r.runs(next.x, n)
			if err != nil {
				return nil, nil, err
			}
			*next.to = append(*next.to, t)
		}
	}
	return before, after, nil
}
