package compress

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// BenchOptions configures [Job.Bench].
type BenchOptions struct {
	// Plan names the plan whose model is compared, "" for the last one. Model is compared in its
	// place, nil for none.
	Plan  string
	Model *opmeter.Model
	// Name of the comparison, "" for that of the plan or model.
	Name string
	// Engines, Threads and Batches are measured in all combinations. A nil engine is opmeter's own,
	// a batch of 0 that of the file. Empty lists mean opmeter's own engine, 1 thread, and the batch
	// of the file.
	Engines          []*engine.Engine
	Threads, Batches []int
	// Time of each comparison, 0 for 1.6 s, or for external engines 2 s each.
	Time time.Duration
}

// Bench compares a compressed model with the unchanged one in interleaved runs, for every engine,
// number of threads and batch. A combination that fails is kept with the reason and does not keep
// the others from being measured. Combinations of an earlier call are not measured again.
func (c *Job) Bench(ctx context.Context, o BenchOptions) (*study.Bench, error) {
	changed, name := o.Model, o.Name
	if changed == nil {
		a, err := c.Apply(ctx, ApplyOptions{Plan: o.Plan})
		if err != nil {
			return nil, err
		}
		var done func()
		if err := c.do(func() (err error) { changed, done, err = c.written(a.a); return err }); err != nil {
			return nil, err
		}
		defer done()
		if name == "" {
			if name, err = c.j.PlanName(o.Plan); err != nil {
				return nil, c.failed(err, "")
			}
		}
	} else if name == "" {
		name = bridge.Of(changed).Base()
	}
	for _, e := range orDefault(o.Engines, nil) {
		for _, t := range orDefault(o.Threads, 1) {
			for _, b := range orDefault(o.Batches, 0) {
				if err := c.benchPoint(ctx, changed, name, e, t, b, o.Time); err != nil {
					return c.Study().Bench(name), err
				}
			}
		}
	}
	return c.Study().Bench(name), nil
}

// orDefault returns the list, or one with a single value if it is empty.
func orDefault[T any](list []T, v T) []T {
	if len(list) == 0 {
		return []T{v}
	}
	return list
}

// benchPoint measures one combination, unless the study has it.
func (c *Job) benchPoint(ctx context.Context, changed *opmeter.Model, name string, e *engine.Engine, threads, batch int, t time.Duration) error {
	p := study.BenchPoint{Engine: engineName(e), Threads: threads, Batch: batch}
	in := bridge.Of(changed)
	id, err := in.Identity()
	if err != nil {
		return c.failed(err, "")
	}
	if c.j.HasBenchPoint(name, id.File, p.Engine, threads, batch) {
		return nil
	}
	if e == nil {
		err = c.do(func() error {
			return in.Reading(func() (err error) {
				p.Before, p.After, p.Speedup, err = c.j.BenchHere(ctx, in.Graph, threads, batch, t)
				return err
			})
		})
	} else {
		p.Before, p.After, p.Speedup, err = c.benchExternal(ctx, changed, e, threads, batch, t)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		p.Error = err.Error()
	}
	return c.failed(c.j.Bench(name, id.File, p), c.j.File.Path())
}

// benchExternal measures both models with an external engine in interleaved runs.
func (c *Job) benchExternal(ctx context.Context, changed *opmeter.Model, e *engine.Engine, threads, batch int, t time.Duration) (before, after, speedup *profile.Metric, err error) {
	ps, err := c.interleaved(ctx, []*opmeter.Model{c.m, changed}, e, threads, batch, t)
	if err != nil {
		return nil, nil, nil, err
	}
	a, b := &ps[0].Totals, &ps[1].Totals
	return a.Latency, b.Latency, compress.PairedSpeedup(a.LatencySamples, b.LatencySamples), nil
}

// interleaved profiles models with an external engine in interleaved runs.
func (c *Job) interleaved(ctx context.Context, models []*opmeter.Model, e *engine.Engine, threads, batch int, t time.Duration) ([]*profile.Profile, error) {
	var order opmeter.Interleaver
	ps, errs := make([]*profile.Profile, len(models)), make([]error, len(models))
	var wait sync.WaitGroup
	for i, m := range models {
		in := c.inputs
		in.Batch = batch
		o := opmeter.Options{
			Engine: e, Threads: threads, Inputs: in, Time: t, Interleaver: &order, SkipPeaks: true,
		}
		wait.Go(func() { ps[i], errs[i] = opmeter.Profile(ctx, m, o) })
	}
	wait.Wait()
	for _, err := range errs { // the first suffices if an engine accepts neither
		if err != nil {
			return nil, err
		}
	}
	return ps, nil
}

// engineName is the name of an engine with its version, as studies store it.
func engineName(e *engine.Engine) string {
	switch {
	case e == nil:
		return "opmeter"
	case e.Version != "":
		return e.Name + " " + e.Version
	}
	return e.Name
}

// external returns an engine in the form that profiles and plans take, nil for opmeter's own.
func (c *Job) external(e *engine.Engine) *compress.External {
	if e == nil {
		return nil
	}
	return &compress.External{Name: engineName(e), Compare: func(ctx context.Context, changed *graph.Model, threads, batch int, t time.Duration) (*speed.Pair, error) {
		models := []*opmeter.Model{c.m}
		p := &speed.Pair{}
		if changed != nil {
			m, done, err := c.written(&compress.Applied{Graph: changed})
			if err != nil {
				return nil, err
			}
			defer done()
			models = append(models, m)
			p.Changed = bridge.Of(m).Graph
		}
		ps, err := c.interleaved(ctx, models, e, threads, batch, t)
		if err != nil {
			return nil, err
		}
		p.Before, p.After = ps[0], ps[len(ps)-1]
		return p, nil
	}}
}

// written writes a changed model to a temporary file and opens it. done closes and removes it.
func (c *Job) written(a *compress.Applied) (m *opmeter.Model, done func(), err error) {
	dir, remove, err := subprocess.Folder("")
	if err != nil {
		return nil, nil, err
	}
	file := c.in.Base()
	file = filepath.Join(dir, strings.TrimSuffix(file, filepath.Ext(file))+"-compressed."+c.in.Graph.Format)
	if err = a.Write(file); err == nil {
		m, err = opmeter.Open(file)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return m, func() { _ = m.Close(); remove() }, nil
}
