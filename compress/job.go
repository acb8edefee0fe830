package compress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/study"
)

// Options configures [Open].
type Options struct {
	// Study is the path of the study's file; it is required. [Open] creates the file if it is
	// absent.
	Study string
	// Inputs sets shapes, and generates inputs where no data is given. The zero value takes the
	// model's own shapes.
	Inputs opmeter.Inputs
	// MaxMemory bounds the memory of the model's values, as in [opmeter.Options].
	MaxMemory int64
	// Progress is called with the current phase and its progress from 0 to 1. May be nil.
	Progress func(phase string, fraction float64)
}

// Job is a model with its study: which changes would make it smaller or faster, and their cost in
// accuracy. When a method returns, the study's file holds its results, even if the context ended:
// the same call then continues. A Job is for one goroutine at a time.
type Job struct {
	m      *opmeter.Model
	in     *bridge.Model
	inputs opmeter.Inputs
	j      *compress.Job
}

// Open opens or creates the study of a model. Errors are an [opmeter.ModelError], also for models
// without weights or with zeros only, an [opmeter.OptionError], or a [StudyError] if the study is
// of another model or in use by another process.
func Open(m *opmeter.Model, o Options) (*Job, error) {
	if o.Study == "" {
		return nil, wrong("Study", "give a file")
	}
	c := &Job{m: m, in: bridge.Of(m), inputs: o.Inputs}
	f, err := bridge.Feed(&o.Inputs, c.in)
	if err != nil {
		return nil, err
	}
	if f.MaxBytes, err = c.in.MemoryLimit(o.MaxMemory); err != nil {
		return nil, bridge.Failed(c.in.Graph.Path, err)
	}
	c.in.Identify()
	err = c.in.Reading(func() (err error) {
		c.j, err = compress.Open(c.in.Graph, o.Study, compress.Options{Feed: f, Identity: c.in.Identity, Progress: o.Progress})
		return err
	})
	if err != nil {
		return nil, c.failed(err, o.Study)
	}
	return c, nil
}

// Study returns the study. It must not be changed.
func (c *Job) Study() *study.Study { return c.j.Study() }

// Damage lists the parts of the study's file that [Open] could not read.
func (c *Job) Damage() []study.Damage { return c.j.File.Damage() }

// Close closes the study's file.
func (c *Job) Close() error { return c.j.Close() }

// failed gives an error its public type; nil stays nil.
func (c *Job) failed(err error, file string) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*compress.OptionError](err); ok {
		return &opmeter.OptionError{Option: e.Option, Text: e.Text, Err: err}
	}
	if e, ok := errors.AsType[*study.BusyError](err); ok {
		return &StudyError{File: file, Busy: true, PID: e.PID, Err: err}
	}
	if _, ok := errors.AsType[*study.ModelMismatchError](err); ok || errors.Is(err, study.ErrNotStudy) {
		return &StudyError{File: file, Err: err}
	}
	if _, ok := errors.AsType[*samples.DataError](err); ok {
		return &DataError{err}
	}
	if _, ok := errors.AsType[*sparsify.FileError](err); ok {
		return &DataError{err}
	}
	return bridge.Failed(c.in.Graph.Path, err)
}

// do calls fn, which reads the model.
func (c *Job) do(fn func() error) error {
	return c.failed(c.in.Reading(fn), c.j.File.Path())
}

// Compress makes a performance profile, a loss profile and a plan, in this order, and continues an
// earlier call that was stopped. The plan is tried on the data of l, which is opened first: a wrong
// file is an error before anything is measured.
func (c *Job) Compress(ctx context.Context, s SpeedOptions, l LossOptions, p PlanOptions) (*study.Plan, error) {
	data := l.compress(nil)
	if err := c.do(func() error { return c.j.CheckData(ctx, &data) }); err != nil {
		return nil, err
	}
	speed, err := c.Speed(ctx, s)
	if err != nil {
		return nil, err
	}
	l.Away = s.On != nil
	loss, err := c.Loss(ctx, l)
	if err != nil {
		return nil, err
	}
	p.Speed, p.Loss, p.On, p.Time, p.Engine = speed.Name, loss.Name, cmp.Or(p.On, s.On), cmp.Or(p.Time, s.Time), s.Engine
	if p.Data == nil {
		p.Data = &l
	}
	return c.Plan(ctx, p)
}

// Exclude returns the positions of layers, given by their names, those of their weights or outputs,
// or their positions from 0. An [opmeter.OptionError] reports a name that no layer has.
func (c *Job) Exclude(names []string) ([]int, error) {
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

// StudyError reports a fault of a study's file.
type StudyError struct {
	File string
	// Busy says that another process uses the file, PID which one, 0 if unknown.
	Busy bool
	PID  int
	Err  error
}

// Error names the file and the reason.
func (e *StudyError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *StudyError) Unwrap() error { return e.Err }

// DataError reports a fault in data, labels, or a file of another tool.
type DataError struct{ Err error }

// Error names file, place and what was expected.
func (e *DataError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *DataError) Unwrap() error { return e.Err }

// wrong returns the error for an option.
func wrong(option, format string, args ...any) error {
	return &opmeter.OptionError{Option: option, Text: fmt.Sprintf(format, args...)}
}
