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

// Errors of models that cannot be compressed.
var (
	// ErrNoWeights reports that no operator has constant weights.
	ErrNoWeights = errors.New("the model has no weights: no operator with constant weights is in it")
	// ErrAllZero reports that no weights are left to prune.
	ErrAllZero = errors.New("all weights of the model are zero already")
)

// OptionError reports that an option does not fit the study or the model.
type OptionError struct {
	// Option is the field of the options.
	Option string
	// Text says why, and what would fit.
	Text string
}

// Error names the option and what would fit.
func (e *OptionError) Error() string { return e.Option + ": " + e.Text }

func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, args...)}
}

// Options configure the work on a study.
type Options struct {
	// Feed generates inputs where no data is given. Its batch is the file's, unless a profile has
	// another.
	Feed inputs.Options
	// Identity returns the hashes of the model.
	Identity func() (*describe.Identity, error)
	// Progress is called with the current phase and its progress from 0 to 1. May be nil.
	Progress func(phase string, fraction float64)
}

// Job is work on one study. It is for one goroutine at a time.
type Job struct {
	// File is the study, Layers the model's layers in the study's order.
	File   *study.File
	Layers []*weights.Layer

	m *graph.Model
	o Options
	p *plan.Plan
}

// Open finds the layers of a model and opens its study, or creates one.
func Open(m *graph.Model, path string, o Options) (*Job, error) {
	j := &Job{m: weights.ExpandConstantOfShape(m, o.Feed.MaxBytes), o: o}
	of, err := j.describe()
	if err != nil {
		return nil, err
	}
	if j.File, err = study.Open(path, of); err != nil {
		return nil, err
	}
	return j, nil
}

// describe finds the layers and returns an empty study of the model.
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

// Study returns the current content of the study.
func (j *Job) Study() *study.Study { return j.File.Study() }

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

func (j *Job) progress(phase string, f float64) {
	if j.o.Progress != nil {
		j.o.Progress(phase, f)
	}
}

// engineOptions are the options of engine sessions.
func (j *Job) engineOptions(threads int) engine.Options {
	return engine.Options{Registry: operators.Registry(), Threads: max(threads, 1), MaxBytes: j.o.Feed.MaxBytes}
}

// inputOptions are the options of generated inputs with a batch size.
func (j *Job) inputOptions(batch int) inputs.Options {
	f := j.o.Feed
	if batch > 0 {
		f.Batch = batch
	}
	return f
}

// contextError returns the context's error where it has ended, else err.
func contextError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// inputs generates the inputs of a batch size.
func (j *Job) inputs(batch int) ([]*tensor.Tensor, error) {
	ins, _, err := inputs.Inputs(j.m, j.inputOptions(batch))
	return ins, err
}

// inputShapes formats the shapes of inputs of a batch size; "" where they are unknown.
func (j *Job) inputShapes(batch int) string {
	ins, _, err := inputs.Shapes(j.m, j.inputOptions(batch))
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

// shapeSuffix ends the name of a profile with other shapes than the file's: "-1x80", "-batch=2".
func (j *Job) shapeSuffix() string {
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(j.o.Feed.Shapes)) {
		s.WriteString("-" + tensor.FormatShape(j.o.Feed.Shapes[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(j.o.Feed.Dims)) {
		fmt.Fprintf(&s, "-%s=%d", name, j.o.Feed.Dims[name])
	}
	return s.String()
}
