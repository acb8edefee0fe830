package compress

import (
	"context"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/study"
	"github.com/opmeter/opmeter/target"
)

// SpeedOptions configures [Job.Speed]. The zero value measures the default changes on this computer
// with one thread.
type SpeedOptions struct {
	// Name of the performance profile in the study, "" for one made of the settings, such as
	// "host-t2".
	Name string
	// On is the target to estimate for, nil to measure on this computer. Estimate names the
	// runtime; its inputs are not used.
	On       *target.Target
	Estimate opmeter.EstimateOptions
	// Engine measures, nil for opmeter's own. Its profiler reports the times of layers.
	Engine *engine.Engine
	// Counted takes the number of operations in place of times, and runs nothing.
	Counted bool
	// Batch is the first dimension of inputs, 0 for that of the file. Threads is the number of
	// threads that compute, 0 for 1.
	Batch, Threads int
	// Levels of sparsity, Structures and Formats that are tried; nil for the default ones, empty
	// for none.
	Levels     []float64
	Structures []study.Structure
	Formats    []study.Format
	// Time is how long each changed model and the unchanged one are interleaved, 0 for 0.4 s, or
	// 0.5 s each for external engines.
	Time time.Duration
}

// Speed makes a performance profile, or continues the one of the same name. It holds the times of
// layers, unchanged and with each change in all layers at once, from interleaved runs.
func (c *Job) Speed(ctx context.Context, o SpeedOptions) (p *study.Speed, err error) {
	if err := (&opmeter.RunOptions{Threads: o.Threads}).Validate(); err != nil {
		return nil, err
	}
	changes, err := c.j.Grid(o.On == nil, o.Levels, o.Structures, o.Formats)
	if err != nil {
		return nil, c.failed(err, "")
	}
	if o.Engine != nil && (o.On != nil || o.Counted) {
		return nil, wrong("Engine", "an engine measures on this computer: leave out the target and counting")
	}
	s := compress.SpeedOptions{Name: o.Name, External: c.external(o.Engine), Counted: o.Counted, Batch: o.Batch, Threads: o.Threads, Changes: changes, Time: o.Time}
	if o.On != nil {
		if s.Target, err = bridge.Chip(o.On); err != nil {
			return nil, err
		}
		s.Runs = chip.Options{Runtime: o.Estimate.Runtime, Build: o.Estimate.Build, Clock: chip.Hertz(o.Estimate.ClockHz), Name: o.Estimate.Name}
	}
	err = c.do(func() error { p, err = c.j.Speed(ctx, s); return err })
	return p, err
}

// DataOptions names samples of a model's inputs. Without a path inputs are random; losses measured
// with them show at best which layers tolerate more than others.
type DataOptions struct {
	// Path is a .npy, .npz or .csv file, an image, or a folder of .npy files or images. Folders in
	// it are classes.
	Path string
	// Inputs are such paths by the name of an input.
	Inputs map[string]string
	// Labels is a .npy, .csv or .txt file with a label for each sample. Column is the column of a
	// table, or the array of a .npz file, that holds the labels.
	Labels, Column string
	// Mean and Std normalise images: (pixel/255 - Mean)/Std, one value for all channels or one
	// each.
	Mean, Std []float32
	// Samples is the largest number of samples, 0 for 256 to 2048, by the time that the model
	// takes; profiles then use at most 256.
	Samples int
	// Seed selects them, and splits them into those that profiles and plans are chosen by, and
	// those on which the chosen plan is checked.
	Seed uint64
}

func (o *DataOptions) data() *compress.Data {
	return &compress.Data{Options: samples.Options{Path: o.Path, Inputs: o.Inputs, Labels: o.Labels, Column: o.Column, Mean: o.Mean, Std: o.Std, Limit: o.Samples, Seed: o.Seed}}
}

// LossOptions configures [Job.Loss]. The zero value takes [study.OutputError] on random inputs.
type LossOptions struct {
	// Name of the loss profile in the study, "" for that of the method or metric.
	Name string
	// Method is "" for [study.EndToEnd], for [study.Calibrated] if that takes long and there are no
	// labels, and for [study.OutputError] on random inputs.
	Method study.Method
	// Metric is "" for accuracy if there are labels, otherwise for the default of the method and
	// the model's outputs. Choice selects the weights that become zero: "magnitude" or "error", ""
	// for the first.
	Metric, Choice string
	// Data holds the samples.
	Data DataOptions
	// Levels, Structures and Formats are those of [SpeedOptions].
	Levels     []float64
	Structures []study.Structure
	Formats    []study.Format
	// Away takes the default changes of estimated performance profiles.
	Away bool
	// Threads is the number of threads that compute, 0 for 1.
	Threads int
	// Command is a program with arguments that computes a metric. Its last argument is a folder
	// with out_0.npy and so on, and labels.npy; it prints a number. CommandTime bounds its run time,
	// 0 for a minute.
	Command     []string
	CommandTime time.Duration
}

func (o *LossOptions) compress(changes []study.Change) compress.LossOptions {
	return compress.LossOptions{
		Name: o.Name, Method: o.Method, Metric: o.Metric, Choice: o.Choice, Data: o.Data.data(), Changes: changes, Threads: o.Threads,
		Command: o.Command, CommandTime: o.CommandTime, Seed: o.Data.Seed,
	}
}

// Loss makes a loss profile, or continues the one of the same name: the loss of the outputs when
// one layer is changed. Errors are a [DataError], [opmeter.OptionError], [opmeter.ModelError] or
// [opmeter.NodeError].
func (c *Job) Loss(ctx context.Context, o LossOptions) (p *study.Loss, err error) {
	if err := (&opmeter.RunOptions{Threads: o.Threads}).Validate(); err != nil {
		return nil, err
	}
	changes, err := c.j.Grid(!o.Away, o.Levels, o.Structures, o.Formats)
	if err != nil {
		return nil, c.failed(err, "")
	}
	err = c.do(func() error { p, err = c.j.Loss(ctx, o.compress(changes)); return err })
	return p, err
}
