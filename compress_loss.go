package opmeter

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/study"
)

// DataOptions say where samples of a model's inputs come from. Without a path inputs are random: what is found with them tells at
// best which layers bear more than others.
type DataOptions struct {
	// Path is a .npy, .npz or .csv file, an image, or a folder of .npy files or images, whose folders are classes
	// where it has any.
	Path string
	// Inputs are such paths by the name of an input.
	Inputs map[string]string
	// Labels is a .npy, .csv or .txt file with a label for each sample; Column the column of a table, or the array of a
	// .npz, that has labels.
	Labels, Column string
	// Mean and Std make numbers of images: (pixel/255 - Mean)/Std, one for all channels or one each.
	Mean, Std []float32
	// Samples is the most that are taken, 0 for 256.
	Samples int
	// Seed draws them, and divides them into those that profiles use and those that plans are tried on.
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

// LossOptions say what a loss profile is of. The zero value takes [study.OutputError] on random inputs.
type LossOptions struct {
	// Name tells it from others of the study, "" for that of method or metric.
	Name string
	// Method, "" for [study.EndToEnd], for [study.Calibrated] where that takes long and there are no labels, and for [study.OutputError] on
	// random inputs; Metric "" for accuracy where there are labels, else the usual one of the method and the model's outputs;
	// Choice of the weights that become zero: "magnitude" or "error", "" for the first.
	Method         study.Method
	Metric, Choice string
	Data           DataOptions
	// Levels, Structures and Formats are as [SpeedOptions] has them.
	Levels     []float64
	Structures []study.Structure
	Formats    []study.Format
	// Away takes the usual ones of performance profiles of hardware that is not there.
	Away    bool
	Threads int
	// Command is a program with arguments that computes a metric: it gets a folder with out_0.npy and so on, and
	// labels.npy, and prints a number. Its time is CommandTime at most, 0 for a minute.
	Command     []string
	CommandTime time.Duration
}

func (o *LossOptions) compress(changes []study.Change) compress.LossOptions {
	return compress.LossOptions{
		Name: o.Name, Method: o.Method, Metric: o.Metric, Choice: o.Choice, Data: o.Data.data(), Changes: changes, Threads: o.Threads,
		Command: o.Command, CommandTime: o.CommandTime, Seed: o.Data.Seed,
	}
}

// Loss makes a loss profile, or goes on with the one of its name: what outputs lose when one layer is changed. Errors are a
// [DataError], [OptionError], [ModelError] or [NodeError].
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
	// Goal is what is asked for; without one a plan loses little where the loss has a meaning, and is half as fast again
	// where it has none.
	Goal study.Goal
	// Fit is the target of Goal.Fit, whose flash and RAM the model has to fit into.
	Fit *Target
	// On is the target whose working memory is to be small where Goal.Cost is "ram", nil for this computer.
	On *Target
	// Ends lets the first layer and those that make outputs change, too.
	Ends bool
	// Without are structures and formats that are left out.
	WithoutStructures []study.Structure
	WithoutFormats    []study.Format
	// Sparsify plans by the rules of that tool, for a sparsity and a balance between loss (1) and performance (0).
	Sparsify *SparsifyOptions
	// Data is what the plan is tried on, those of its samples that profiles did not use; nil tries its time only.
	Data *LossOptions
	// Unrun tries nothing.
	Unrun bool
	// Time is how long each plan that is measured takes turns with the unchanged model, 0 for 1.6 s.
	Time time.Duration
}

// SparsifyOptions are the settings of Sparsify's rules. Its slider between loss and performance is inverted, and so it is here.
type SparsifyOptions struct {
	// Sparsity of all weights, 0 for 0.85; Balance is 1 for loss alone and 0 for performance, nil for 1.
	Sparsity float64
	Balance  *float64
}

// Plan chooses a change for each layer, by the profiles of the study, runs the model that comes out, and chooses once more by the
// difference. A bound on the loss is kept on the data by running models of several plans. Plans are kept in the study.
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
	// Correct changes pruned layers' weights that are left so that the layers' outputs on Data are nearest to those of the unchanged model.
	Correct bool
}

// AppliedPlan is the model of a plan.
type AppliedPlan struct {
	c *Compression
	a *compress.Applied
	// Refused are layers that stayed as they are though the plan changes them.
	Refused map[int]study.Cause
	// Corrected are relative squared errors of layers' own outputs on the data, without and with [ApplyOptions].Correct.
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

// Write writes the model as a file of the format of the study's model, whole or not at all, while the [Compression] is open. An ONNX
// model that has constants in a file beside it, or more than the 2 GiB of one file, gets a second file: the name and ".data".
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

// Import reads a profile of Sparsify or a recipe of SparseML into the study, or a list of layers that other tools are to leave out.
// The error is a [DataError].
func (c *Compression) Import(data []byte, file, name string) (i *ImportedStudy, err error) {
	err = c.do(func() error { i, err = c.j.Import(data, file, name); return err })
	return i, err
}

// Compress makes a performance profile, a loss profile and a plan, in this order, and goes on where an earlier call was stopped.
// The plan is tried on the data of l.
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

// Exclude finds layers by their names, those of their weights or outputs, or their positions from 0. An [OptionError] names what no
// layer has.
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
