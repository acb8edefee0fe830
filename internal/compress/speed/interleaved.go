package speed

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/profile"
)

// Compared is the result of interleaved runs of two models: inference times in seconds and the
// speed-up of the second, or the reason why it does not run.
type Compared struct {
	Before, After, Speedup *profile.Metric
	Err                    error
}

// Compare runs the unchanged model and one with the same inputs interleaved.
func Compare(ctx context.Context, before, after *graph.Model, o Options) (*Compared, error) {
	all, err := CompareMany(ctx, before, []*graph.Model{after}, o)
	if err != nil {
		return nil, err
	}
	return &all[0], all[0].Err
}

// CompareMany runs the unchanged model and several changed ones interleaved, all in each round,
// so that disturbances affect all of them. Time is per changed model. A model that does not run
// has its own error.
func CompareMany(ctx context.Context, before *graph.Model, after []*graph.Model, o Options) ([]Compared, error) {
	release, err := loop.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	defer loop.Quiet(machine.HeapGrowth())()
	r := &run{m: before, o: &o, ctx: ctx}
	o.Time = cmp.Or(o.Time, UsualTime)
	if r.dense, err = r.session(before, nil); err != nil {
		return nil, err
	}
	defer r.dense.s.Close()
	out := make([]Compared, len(after))
	var ready []*model
	var at []int
	for i, m := range after {
		x, err := r.session(m, []int{})
		if err == nil {
			defer x.s.Close()
			err = checkRuns(x.s.Steps(), r.dense.s.Steps())
		}
		if out[i].Err = err; err == nil {
			ready, at = append(ready, x), append(at, i)
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if len(ready) == 0 {
		return out, nil
	}
	r.progress("warming up", 0)
	if err := r.warmUp(); err != nil {
		return nil, err
	}
	r.progress("measuring interleaved", 0)
	was, now, err := r.interleave(ready...)
	if err != nil {
		return nil, err
	}
	whole := func(t *groupTimes) float64 { return t.whole }
	for k, i := range at {
		gain := make([]float64, len(was))
		for g := range was {
			gain[g] = was[g].whole / now[k][g].whole
		}
		out[i].Before, out[i].After = metric(column(was, whole), "groups of runs"), metric(column(now[k], whole), "groups of runs")
		out[i].Speedup = metric(gain, "pairs of interleaved groups of runs")
	}
	return out, nil
}

// checkRuns reports a node that does not run, if more nodes fail in the changed model than in the
// unchanged one: the rest would not be a comparable model.
func checkRuns(changed, unchanged []engine.Step) error {
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

// interleave runs models and the unchanged one in the order ABBA until the time is over; several
// models in the order A B C C B A.
func (r *run) interleave(xs ...*model) (before []groupTimes, after [][]groupTimes, err error) {
	n := r.groupSize()
	after = make([][]groupTimes, len(xs))
	limit := r.o.Time * time.Duration(1+len(xs)) / 2
	for begin := time.Now(); len(before) < 2*minPairs || time.Since(begin) < limit && len(before) < 2*maxPairs; {
		for k := range 2 * (1 + len(xs)) {
			k = min(k, 2*len(xs)+1-k) // forward and back
			x, to := r.dense, &before
			if k > 0 {
				x, to = xs[k-1], &after[k-1]
			}
			t, err := r.runGroup(x, n)
			if err != nil {
				return nil, nil, err
			}
			*to = append(*to, t)
		}
	}
	return before, after, nil
}
