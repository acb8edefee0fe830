package opmeter

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// StudyError tells what is wrong with a study's file.
type StudyError struct {
	File string
	// Busy says that another process works on it, PID which one, 0 where that is not known.
	Busy bool
	PID  int
	Err  error
}

// Error names the file and what is wrong.
func (e *StudyError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StudyError) Unwrap() error { return e.Err }

// CompressionOptions say how a study is worked on. The zero value takes the model's own shapes.
type CompressionOptions struct {
	// Study is the file; there must be a name. One that is absent is begun.
	Study string
	// Inputs set shapes, and what is fed where there is no data.
	Inputs Inputs
	// MaxMemory bounds the memory of the model's values, as [Options] has it.
	MaxMemory int64
	// Progress is told what is being done and how far it is, from 0 to 1. May be nil.
	Progress func(phase string, fraction float64)
}

// Compression is a model with its study: what would make it smaller or faster, and what that
// costs. Whatever is found is in the study's file when the method that finds it returns, also
// where its context ended: the same call goes on from there. It is for one goroutine at a time.
type Compression struct {
	m *Model
	j *compress.Job
}

// OpenCompression opens the study of a model, or begins it. Errors are a [ModelError], also for
// models without weights or with none but zeros, an [OptionError], or a [StudyError] where the
// study is of another model or another process works on it.
func OpenCompression(m *Model, o CompressionOptions) (*Compression, error) {
	if o.Study == "" {
		return nil, wrong("Study", "give a file")
	}
	f, err := o.Inputs.feed(m)
	if err != nil {
		return nil, err
	}
	f.MaxBytes = m.memory(o.MaxMemory)
	c := &Compression{m: m}
	m.identify()
	err = m.reading(func() (err error) {
		c.j, err = compress.Open(m.g, o.Study, compress.Options{Feed: f, Identity: m.identity, Progress: o.Progress})
		return err
	})
	if err != nil {
		return nil, c.failed(err, o.Study)
	}
	return c, nil
}

// Study is what is known. It must not be changed.
func (c *Compression) Study() *study.Study { return c.j.Study() }

// Damage lists what of the study could not be read when it was opened.
func (c *Compression) Damage() []study.Damage { return c.j.File.Damage() }

// Close closes the study's file.
func (c *Compression) Close() error { return c.j.Close() }

// failed gives errors their public types.
func (c *Compression) failed(err error, file string) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*compress.OptionError](err); ok {
		return &OptionError{Option: e.Option, Text: e.Text, Err: err}
	}
	if e, ok := errors.AsType[*study.BusyError](err); ok {
		return &StudyError{File: file, Busy: true, PID: e.PID, Err: err}
	}
	if _, ok := errors.AsType[*study.ModelMismatchError](err); ok || errors.Is(err, study.ErrNotStudy) {
		return &StudyError{File: file, Err: err}
	}
	if e := dataError(err); e != nil {
		return e
	}
	return failed(c.m.g.Path, err)
}

// do runs work that reads the model.
func (c *Compression) do(fn func() error) error {
	return c.failed(c.m.reading(fn), c.j.File.Path())
}

// SpeedOptions say what a performance profile is of. The zero value measures the usual changes
// here with one thread.
type SpeedOptions struct {
	// Name tells it from others of the study, "" for one made of the settings, such as "host-t2".
	Name string
	// On estimates for hardware that is absent, nil measures here. Of Estimate only what names
	// the runtime counts.
	On       *Target
	Estimate EstimateOptions
	// Counted has operations stand for times, and runs nothing.
	Counted bool
	// Batch is the first dimension of inputs, 0 for that of the file; Threads compute, 0 for 1.
	Batch, Threads int
	// Levels of sparsity, Structures and Formats that are tried; nil for the usual ones, empty
	// for none.
	Levels     []float64
	Structures []study.Structure
	Formats    []study.Format
	// Time is how long each changed model and the unchanged one are interleaved, 0 for 0.4 s.
	Time time.Duration
}

// Speed makes a performance profile, or goes on with the one of its name: the times of layers,
// unchanged and with each change in all layers at once, of runs that are interleaved.
func (c *Compression) Speed(ctx context.Context, o SpeedOptions) (p *study.Speed, err error) {
	if err := validThreads(o.Threads); err != nil {
		return nil, err
	}
	changes, err := compress.Grid(o.On == nil, o.Levels, o.Structures, o.Formats)
	if err != nil {
		return nil, c.failed(err, "")
	}
	s := compress.SpeedOptions{Name: o.Name, Counted: o.Counted, Batch: o.Batch, Threads: o.Threads, Changes: changes, Time: o.Time}
	if o.On != nil {
		if o.On.t == nil {
			return nil, noTarget()
		}
		s.Target, s.Runs = o.On.t, o.Estimate.chip()
	}
	err = c.do(func() error { p, err = c.j.Speed(ctx, s); return err })
	return p, err
}

// DataOptions say where samples of a model's inputs come from. Without a path inputs are random:
// what is found with them tells at best which layers bear more than others.
type DataOptions struct {
	// Path is a .npy, .npz or .csv file, an image, or a folder of .npy files or images, whose
	// folders are classes where it has any.
	Path string
	// Inputs are such paths by the name of an input.
	Inputs map[string]string
	// Labels is a .npy, .csv or .txt file with a label for each sample; Column the column of a
	// table, or the array of a .npz, that has labels.
	Labels, Column string
	// Mean and Std make numbers of images: (pixel/255 - Mean)/Std, one for all channels or one
	// each.
	Mean, Std []float32
	// Samples is the most that are taken, 0 for 256.
	Samples int
	// Seed draws them, and divides them into those that profiles use and those that plans are
	// tried on.
	Seed uint64
}

// usualSamples is how many samples are taken where nobody says.
const usualSamples = 256

func (o *DataOptions) data() *compress.Data {
	d := &compress.Data{Options: samples.Options{Path: o.Path, Inputs: o.Inputs, Labels: o.Labels, Column: o.Column, Mean: o.Mean, Std: o.Std, Limit: o.Samples, Seed: o.Seed}}
	if d.Options.Limit == 0 {
		d.Options.Limit = usualSamples
	}
	return d
}

// DataError tells what is wrong with data, labels, or a file of another tool.
type DataError struct{ Err error }

// Error names file, place and what was expected.
func (e *DataError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DataError) Unwrap() error { return e.Err }

// LossOptions say what a loss profile is of. The zero value takes [study.OutputError] on random
// inputs.
type LossOptions struct {
	// Name tells it from others of the study, "" for that of method or metric.
	Name string
	// Method, "" for [study.EndToEnd], for [study.Calibrated] where that takes long and there are
	// no labels, and for [study.OutputError] on random inputs; Metric "" for accuracy where there
	// are labels, else the usual one of the method and the model's outputs; Choice of the weights
	// that become zero: "magnitude" or "error", "" for the first.
	Method         study.Method
	Metric, Choice string
	Data           DataOptions
	// Levels, Structures and Formats are as [SpeedOptions] has them.
	Levels     []float64
	Structures []study.Structure
	Formats    []study.Format
	// Away takes the usual ones of performance profiles of hardware that is absent.
	Away    bool
	Threads int
	// Command is a program with arguments that computes a metric: it gets a folder with out_0.npy
	// and so on, and labels.npy, and prints a number. Its time is CommandTime at most, 0 for a
	// minute.
	Command     []string
	CommandTime time.Duration
}

func (o *LossOptions) compress(changes []study.Change) compress.LossOptions {
	return compress.LossOptions{
		Name: o.Name, Method: o.Method, Metric: o.Metric, Choice: o.Choice, Data: o.Data.data(), Changes: changes, Threads: o.Threads,
		Command: o.Command, CommandTime: o.CommandTime, Seed: o.Data.Seed,
	}
}

// Loss makes a loss profile, or goes on with the one of its name: what outputs lose when one
// layer is changed. Errors are a [DataError], [OptionError], [ModelError] or [NodeError].
func (c *Compression) Loss(ctx context.Context, o LossOptions) (p *study.Loss, err error) {
	if err := validThreads(o.Threads); err != nil {
		return nil, err
	}
	changes, err := compress.Grid(!o.Away, o.Levels, o.Structures, o.Formats)
	if err != nil {
		return nil, c.failed(err, "")
	}
	err = c.do(func() error { p, err = c.j.Loss(ctx, o.compress(changes)); return err })
	return p, err
}

// PlanOptions say what a plan is for.
type PlanOptions struct {
	// Name of the plan, "" for one made of the goal; a plan of the name is replaced.
	Name string
	// Speed and Loss name the profiles that it is made from, "" for the last ones.
	Speed, Loss string
	// Goal is what is asked for; without one a plan loses little where the loss has a meaning,
	// and is half as fast again where it has none.
	Goal study.Goal
	// Fit is the target of Goal.Fit, whose flash and RAM the model has to fit into.
	Fit *Target
	// On is the target whose working memory is to be small where Goal.Cost is "ram", nil for this
	// computer.
	On *Target
	// Ends lets the first layer and those that make outputs change, too.
	Ends bool
	// Without are structures and formats that are left out.
	WithoutStructures []study.Structure
	WithoutFormats    []study.Format
	// Sparsify plans by the rules of that tool, for a sparsity and a balance between loss (1) and
	// performance (0).
	Sparsify *SparsifyOptions
	// Data is what the plan is tried on, those of its samples that profiles did not use; nil
	// tries its time only.
	Data *LossOptions
	// Unrun tries nothing.
	Unrun bool
	// Time is how long each plan that is measured is interleaved with the unchanged model, 0 for
	// 1.6 s.
	Time time.Duration
}

// SparsifyOptions are the settings of Sparsify's rules. Its slider between loss and performance
// is inverted, and so it is here.
type SparsifyOptions struct {
	// Sparsity of all weights, 0 for 0.85; Balance is 1 for loss alone and 0 for performance, nil
	// for 1.
	Sparsity float64
	Balance  *float64
}

// Plan chooses a change for each layer, by the profiles of the study, runs the model that comes
// out, and chooses once more by the difference. A bound on the loss is kept on the data by
// running models of several plans. Plans are kept in the study.
func (c *Compression) Plan(ctx context.Context, o PlanOptions) (p *study.Plan, err error) {
	x := compress.PlanOptions{
		Name: o.Name, Speed: o.Speed, Loss: o.Loss, Goal: o.Goal, Ends: o.Ends, WithoutStructures: o.WithoutStructures, WithoutFormats: o.WithoutFormats, SkipRun: o.Unrun, Time: o.Time,
	}
	if o.Fit != nil {
		x.Goal.Fit = o.Fit.ID
		if o.Fit.t == nil {
			return nil, noTarget()
		}
		if o.Fit.FlashBytes == nil && o.Fit.ExternalFlashBytes == nil && o.Fit.RAMBytes == nil {
			return nil, wrong("Fit", "nothing is known of the memories of %s", o.Fit.ID)
		}
		x.Target = o.Fit.t
	} else if o.On != nil {
		x.Target = o.On.t
	}
	if o.Data != nil {
		l := o.Data.compress(nil)
		x.Try = &l
	}
	if s := o.Sparsify; s != nil {
		d := sparsify.Defaults()
		if s.Sparsity > 0 {
			d.Sparsity = s.Sparsity
		}
		if s.Balance != nil {
			d.Balance = *s.Balance
		}
		x.Sparsify = &d
	}
	err = c.do(func() error { p, err = c.j.Plan(ctx, x); return err })
	return p, err
}

// ApplyOptions say which plan becomes a model, and how.
type ApplyOptions struct {
	// Plan is its name, "" for the last one.
	Plan string
	// Data tells from where to where activations of 8 bits reach; nil makes some.
	Data *DataOptions
	// Correct changes pruned layers' weights that are left so that the layers' outputs on Data
	// are nearest to those of the unchanged model.
	Correct bool
}

// AppliedPlan is the model of a plan.
type AppliedPlan struct {
	c *Compression
	a *compress.Applied
	// Refused are layers that stayed as they are though the plan changes them.
	Refused map[int]study.Cause
	// Corrected are relative squared errors of layers' own outputs on the data, without and with
	// [ApplyOptions].Correct.
	Corrected map[int][2]float64
}

// Apply makes the model of a plan.
func (c *Compression) Apply(ctx context.Context, o ApplyOptions) (*AppliedPlan, error) {
	var l *compress.LossOptions
	if o.Data != nil {
		l = &compress.LossOptions{Data: o.Data.data()}
	}
	var out *AppliedPlan
	err := c.do(func() error {
		a, err := c.j.Apply(ctx, o.Plan, l, o.Correct)
		if err == nil {
			out = &AppliedPlan{c, a, a.Refused, a.Corrected}
		}
		return err
	})
	return out, err
}

// Write writes the model as a file of the format of the study's model, whole or not at all, while
// the [Compression] is open. An ONNX model that has constants in a file beside it, or more than
// the 2 GiB of one file, gets a second file: the name and ".data".
func (p *AppliedPlan) Write(path string) error {
	return p.c.do(func() error { return p.a.Write(path) })
}

// ExportOptions say what of a study is written for another tool.
type ExportOptions = compress.ExportOptions

// Exports lists the kinds that [Compression.Export] writes.
func Exports() []string { return compress.Exports() }

// Export writes a part of the study for another tool; lost is what that cannot say.
func (c *Compression) Export(o ExportOptions) (data []byte, lost []string, err error) {
	err = c.do(func() error { data, lost, err = c.j.Export(o); return err })
	return data, lost, err
}

// ImportedStudy says what a file of another tool became.
type ImportedStudy = compress.Imported

// Import reads a profile of Sparsify or a recipe of SparseML into the study, or a list of layers
// that other tools are to leave out. The error is a [DataError].
func (c *Compression) Import(data []byte, file, name string) (i *ImportedStudy, err error) {
	err = c.do(func() error { i, err = c.j.Import(data, file, name); return err })
	return i, err
}

// Compress makes a performance profile, a loss profile and a plan, in this order, and goes on
// where an earlier call was stopped. The plan is tried on the data of l.
func (c *Compression) Compress(ctx context.Context, s SpeedOptions, l LossOptions, p PlanOptions) (*study.Plan, error) {
	speed, err := c.Speed(ctx, s)
	if err != nil {
		return nil, err
	}
	l.Away = s.On != nil
	loss, err := c.Loss(ctx, l)
	if err != nil {
		return nil, err
	}
	p.Speed, p.Loss, p.On, p.Time = speed.Name, loss.Name, cmp.Or(p.On, s.On), cmp.Or(p.Time, s.Time)
	if p.Data == nil {
		p.Data = &l
	}
	return c.Plan(ctx, p)
}

// dataError gives errors of data their public type.
func dataError(err error) error {
	if _, ok := errors.AsType[*samples.DataError](err); ok {
		return &DataError{err}
	}
	if _, ok := errors.AsType[*sparsify.FileError](err); ok {
		return &DataError{err}
	}
	return nil
}

// Exclude finds layers by their names, those of their weights or outputs, or their positions from
// 0. An [OptionError] names what no layer has.
func (c *Compression) Exclude(names []string) ([]int, error) {
	var out []int
	for _, n := range names {
		found := false
		for i := range c.Study().Layers {
			if c.Study().Layers[i].HasName(n, i) {
				found = true
				if !slices.Contains(out, i) {
					out = append(out, i)
				}
			}
		}
		if !found {
			return nil, wrong("Exclude", "no layer is called %q, by its name, operator, weights, output or number", n)
		}
	}
	return out, nil
}

// BenchOptions say what is compared with the unchanged model, and where.
type BenchOptions struct {
	// Plan is applied, "" for the last one; or Model is compared, nil for none.
	Plan  string
	Model *Model
	// Name of the comparison, "" for that of plan or model.
	Name string
	// Engines run the models, in all combinations of threads and size of batch; nil stands for
	// opmeter's own, which an empty list has, as empty lists of the others stand for 1 thread and
	// the batch of the file.
	Engines          []*Engine
	Threads, Batches []int
	// Time of each comparison, 0 for 1.6 s, or for external engines 2 s each.
	Time time.Duration
}

// Bench compares a compressed model with the unchanged one, in turns: every engine, number of
// threads and batch. What fails is kept with the reason and keeps nothing else from being
// measured. Points that are there from an earlier call stay.
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

// visits measures both models with an external engine, in turns.
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
