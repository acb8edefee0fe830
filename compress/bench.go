package compress

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/compress"
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
		dir, err := os.MkdirTemp("", "opmeter-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		file := c.in.Base()
		file = filepath.Join(dir, strings.TrimSuffix(file, filepath.Ext(file))+"-compressed."+c.in.Graph.Format)
		if err := a.Write(file); err != nil {
			return nil, err
		}
		if changed, err = opmeter.Open(file); err != nil {
			return nil, err
		}
		defer changed.Close()
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
	p := study.BenchPoint{Engine: "opmeter", Threads: threads, Batch: batch}
	if e != nil {
		p.Engine = e.Name
		if e.Version != "" {
			p.Engine += " " + e.Version
		}
	}
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
	var order opmeter.Interleaver
	var ps [2]*profile.Profile
	var errs [2]error
	var wait sync.WaitGroup
	for i, m := range []*opmeter.Model{c.m, changed} {
		o := opmeter.Options{
			Engine: e, Threads: threads, Inputs: opmeter.Inputs{Batch: batch}, Time: t, Interleaver: &order, SkipPeaks: true,
		}
		wait.Go(func() { ps[i], errs[i] = opmeter.Profile(ctx, m, o) })
	}
	wait.Wait()
	for _, err := range errs { // the first suffices if an engine accepts neither
		if err != nil {
			return nil, nil, nil, err
		}
	}
	a, b := &ps[0].Totals, &ps[1].Totals
	return a.Latency, b.Latency, compress.PairedSpeedup(a.LatencySamples, b.LatencySamples), nil
}
