package opmeter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// BenchOptions say what is compared with the unchanged model, and where.
type BenchOptions struct {
	// Plan is applied, "" for the last one; or Model is compared, nil for none.
	Plan  string
	Model *Model
	// Name of the comparison, "" for that of plan or model.
	Name string
	// Engines run the models, each with each number of threads and size of batch; nil stands for opmeter's own, which an empty list has, as
	// empty lists of the others stand for 1 thread and the batch of the file.
	Engines          []*Engine
	Threads, Batches []int
	// Time of each comparison, 0 for 1.6 s, or for engines of others 2 s each.
	Time time.Duration
}

// Bench compares a compressed model with the unchanged one, in turns: every engine, number of threads and batch. What fails is kept with the
// reason and keeps nothing else from being measured. Points that are there from an earlier call stay.
func (c *Compression) Bench(ctx context.Context, o BenchOptions) (*study.Bench, error) {
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
		file := base(c.m.g.Path)
		file = filepath.Join(dir, strings.TrimSuffix(file, filepath.Ext(file))+"-compressed."+c.m.g.Format)
		if err := a.Write(file); err != nil {
			return nil, err
		}
		if changed, err = Open(file); err != nil {
			return nil, err
		}
		defer changed.Close()
		if name == "" {
			if name, err = c.j.PlanName(o.Plan); err != nil {
				return nil, c.failed(err, "")
			}
		}
	} else if name == "" {
		name = base(changed.g.Path)
	}
	engines, threads, batches := o.Engines, o.Threads, o.Batches
	if len(engines) == 0 {
		engines = []*Engine{nil}
	}
	if len(threads) == 0 {
		threads = []int{1}
	}
	if len(batches) == 0 {
		batches = []int{0}
	}
	for _, e := range engines {
		for _, t := range threads {
			for _, b := range batches {
				if err := c.benchPoint(ctx, changed, name, e, t, b, o.Time); err != nil {
					return c.Study().Bench(name), err
				}
			}
		}
	}
	return c.Study().Bench(name), nil
}

// benchPoint measures one point, unless it is there.
func (c *Compression) benchPoint(ctx context.Context, changed *Model, name string, e *Engine, threads, batch int, t time.Duration) error {
	p := study.BenchPoint{Engine: "opmeter", Threads: threads, Batch: batch}
	if e != nil {
		p.Engine = e.Name
		if e.Version != "" {
			p.Engine += " " + e.Version
		}
	}
	id, err := changed.identity()
	if err != nil {
		return c.failed(err, "")
	}
	if c.j.HasBenchPoint(name, id.File, p.Engine, threads, batch) {
		return nil
	}
	if e == nil {
		err = c.do(func() error {
			return changed.reading(func() (err error) {
				p.Before, p.After, p.Speedup, err = c.j.BenchHere(ctx, changed.g, threads, batch, t)
				return err
			})
		})
	} else {
		p.Before, p.After, p.Speedup, err = c.visits(ctx, changed, e, threads, batch, t)
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

// visits measures both models with an engine of others, in turns.
func (c *Compression) visits(ctx context.Context, changed *Model, e *Engine, threads, batch int, t time.Duration) (before, after, speedup *profile.Metric, err error) {
	var turns Turns
	var ps [2]*profile.Profile
	var errs [2]error
	var wait sync.WaitGroup
	for i, m := range []*Model{c.m, changed} {
		o := Options{Engine: e, Threads: threads, Inputs: Inputs{Batch: batch}, Time: t, Turns: &turns, bare: true}
		wait.Go(func() { ps[i], errs[i] = Profile(ctx, m, o) })
	}
	wait.Wait()
	for _, err := range errs { // the first says enough where an engine takes neither
		if err != nil {
			return nil, nil, nil, err
		}
	}
	a, b := &ps[0].Totals, &ps[1].Totals
	return a.Latency, b.Latency, compress.PairedSpeedup(a.LatencySamples, b.LatencySamples), nil
}
