package opmeter

import (
	"context"
	"errors"
	"time"

	"github.com/opmeter/opmeter/internal/compress"
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
	// Study is the file; there must be a name. One that is not there is begun.
	Study string
	// Inputs set shapes, and what is fed where there is no data.
	Inputs Inputs
	// MaxMemory bounds the memory of the model's values, as [Options] has it.
	MaxMemory int64
	// Progress is told what is being done and how far it is, from 0 to 1. May be nil.
	Progress func(phase string, fraction float64)
}

// Compression is a model with its study: what would make it smaller or faster, and what that
// costs. Whatever is found is in the study's file when the method that finds it returns, also where its context ended: the same
// call goes on from there. It is for one goroutine at a time.
type Compression struct {
	m *Model
	j *compress.Job
}

// OpenCompression opens the study of a model, or begins it. Errors are a [ModelError], also for models without weights or with none but
// zeros, an [OptionError], or a [StudyError] where the study is of another model or another process works on it.
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

// SpeedOptions say what a performance profile is of. The zero value measures the usual changes here with one thread.
type SpeedOptions struct {
	// Name tells it from others of the study, "" for one made of the settings, such as "host-t2".
	Name string
	// On estimates for hardware that is not there, nil measures here. Of Estimate only what names the runtime counts.
	On       *Target
	Estimate EstimateOptions
	// Counted has operations stand for times, and runs nothing.
	Counted bool
	// Batch is the first dimension of inputs, 0 for that of the file; Threads compute, 0 for 1.
	Batch, Threads int
	// Levels of sparsity, Structures and Formats that are tried; nil for the usual ones, empty for none.
	Levels     []float64
	Structures []study.Structure
	Formats    []study.Format
	// Time is how long each changed model and the unchanged one take turns, 0 for 0.4 s.
	Time time.Duration
}

// Speed makes a performance profile, or goes on with the one of its name: the times of layers, unchanged and with each
// change in all layers at once, of runs that take turns.
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
