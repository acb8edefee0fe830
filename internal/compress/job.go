package compress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/study"
)

// Errors of models that nothing can be done with.
var (
	// ErrNoWeights tells that no operator has constant weights.
	ErrNoWeights = errors.New("the model has no weights: no operator with constant weights is in it")
	// ErrAllZero tells that nothing is left to be pruned.
	ErrAllZero = errors.New("all weights of the model are zero already")
)

// OptionError tells that an option does not fit the study or the model.
type OptionError struct {
	// Option is the field of the options.
	Option string
	// Text says why and what would fit.
	Text string
}

// Error names the option and what would fit.
func (e *OptionError) Error() string { return e.Option + ": " + e.Text }

func wrong(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, args...)}
}

// Options say how a study is worked on.
type Options struct {
	// Feed makes inputs where nobody gives data. Its batch is that of the file, unless a profile has another.
	Feed inputs.Options
	// Identity finds the hashes of the model.
	Identity func() (*describe.Identity, error)
	// Progress is told what is being done and how far it is, from 0 to 1. May be nil.
	Progress func(phase string, fraction float64)
}

// Job is a study that is being worked on. It is for one goroutine at a time.
type Job struct {
	// File is the study, Layers the model's layers as it numbers them.
	File   *study.File
	Layers []*weights.Layer

	m *graph.Model
	o Options
	p *plan.Plan
}

// Open finds the layers of a model and opens its study, which is begun where there is none.
func Open(m *graph.Model, path string, o Options) (*Job, error) {
	j := &Job{m: weights.Filled(m, o.Feed.MaxBytes), o: o}
	of, err := j.describe()
	if err != nil {
		return nil, err
	}
	if j.File, err = study.Open(path, of); err != nil {
		return nil, err
	}
	return j, nil
}

// describe finds the layers and what a study begins with.
func (j *Job) describe() (*study.Study, error) {
	ins, src, err := inputs.Shapes(j.m, j.o.Feed)
	if err != nil {
		return nil, err
	}
	if j.p, err = plan.Make(j.m, ins, plan.Options{Registry: operators.Registry(), MaxBytes: j.o.Feed.MaxBytes}); err != nil {
		return nil, err
	}
	j.Layers = weights.All(j.p.Shaped(), j.shape)
	if len(j.Layers) == 0 {
		return nil, ErrNoWeights
	}
	if !slices.ContainsFunc(j.Layers, func(l *weights.Layer) bool { return l.Fixed != study.AllZero }) {
		return nil, ErrAllZero
	}
	d, err := describe.Model(j.p, j.p.Slots(), j.o.Identity)
	if err != nil {
		return nil, err
	}
	describe.Fed(d, src)
	of := &study.Study{Created: now(), Model: d.Model}
	for _, l := range j.Layers {
		of.Layers = append(of.Layers, l.Layer)
	}
	return of, nil
}

// Close closes the study.
func (j *Job) Close() error { return j.File.Close() }

// Study is what is known.
func (j *Job) Study() *study.Study { return j.File.Study() }

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

func (j *Job) progress(phase string, f float64) {
	if j.o.Progress != nil {
		j.o.Progress(phase, f)
	}
}

// engineOptions make sessions.
func (j *Job) engineOptions(threads int) engine.Options {
	return engine.Options{Registry: operators.Registry(), Threads: max(threads, 1), MaxBytes: j.o.Feed.MaxBytes}
}

// feed is how inputs of a batch are made.
func (j *Job) feed(batch int) inputs.Options {
	f := j.o.Feed
	if batch > 0 {
		f.Batch = batch
	}
	return f
}

// stopped is the context's error where that ended, else the given one.
func stopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// inputs are those of a batch.
func (j *Job) inputs(batch int) ([]*tensor.Tensor, error) {
	ins, _, err := inputs.Inputs(j.m, j.feed(batch))
	return ins, err
}

// shapes are those of inputs of a batch, in words; "" where they cannot be had.
func (j *Job) shapes(batch int) string {
	ins, _, err := inputs.Shapes(j.m, j.feed(batch))
	if err != nil {
		return ""
	}
	g := j.m.Main()
	list := make([]string, len(ins))
	for i, x := range ins {
		list[i] = g.Values[g.Inputs[i]].Name + " " + tensor.FormatShape(x.Shape)
	}
	return strings.Join(list, ", ")
}

// asked ends the name of a profile that is of other shapes than those of the file: "-1x80", "-batch=2".
func (j *Job) asked() string {
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(j.o.Feed.Shapes)) {
		s.WriteString("-" + tensor.FormatShape(j.o.Feed.Shapes[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(j.o.Feed.Dims)) {
		fmt.Fprintf(&s, "-%s=%d", name, j.o.Feed.Dims[name])
	}
	return s.String()
}
