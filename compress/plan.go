package compress

import (
	"cmp"
	"context"
	"time"

	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/study"
	"github.com/opmeter/opmeter/target"
)

// PlanOptions configures [Job.Plan].
type PlanOptions struct {
	// Name of the plan, "" for one made of the goal. A plan of the same name is replaced.
	Name string
	// Speed and Loss name the profiles that the plan is made from, "" for the last ones.
	Speed, Loss string
	// Goal is what the plan must reach. The zero value asks for a small loss if the loss has a
	// meaning, otherwise for 1.5 times the speed.
	Goal study.Goal
	// Fit is the target of Goal.Fit, whose flash and RAM the model has to fit into.
	Fit *target.Target
	// On is the target whose working memory is minimised if Goal.Cost is "ram", nil for this
	// computer.
	On *target.Target
	// Engine is the one of the performance profile, in which plans are measured, nil for opmeter's
	// own.
	Engine *engine.Engine
	// Ends lets the first layer and those that make outputs change, too.
	Ends bool
	// WithoutStructures and WithoutFormats are excluded from the plan.
	WithoutStructures []study.Structure
	WithoutFormats    []study.Format
	// Sparsify plans by the rules of that tool, nil for those of opmeter.
	Sparsify *SparsifyOptions
	// Data holds the samples that plans are chosen by, and those that only the chosen plan is run
	// on; nil measures the plan's time only.
	Data *LossOptions
	// Unrun keeps the plan from being tried.
	Unrun bool
	// Time is how long each measured plan is interleaved with the unchanged model, 0 for 1.6 s.
	Time time.Duration
}

// SparsifyOptions are the settings of Sparsify's rules. As in that tool, the slider between loss
// and performance is inverted.
type SparsifyOptions struct {
	// Sparsity of all weights, 0 for 0.85. Balance is 1 for loss alone and 0 for performance, nil
	// for 1.
	Sparsity float64
	Balance  *float64
}

// Plan chooses a change for each layer by the profiles of the study. It runs the resulting model
// and chooses again with the difference. To keep a bound on the loss, it runs models of several
// plans on the data. The study keeps the plans.
func (c *Job) Plan(ctx context.Context, o PlanOptions) (p *study.Plan, err error) {
	x := compress.PlanOptions{
		Name: o.Name, Speed: o.Speed, Loss: o.Loss, Goal: o.Goal, External: c.external(o.Engine), Ends: o.Ends, WithoutStructures: o.WithoutStructures, WithoutFormats: o.WithoutFormats, SkipRun: o.Unrun, Time: o.Time,
	}
	if t := cmp.Or(o.Fit, o.On); t != nil {
		if x.Target, err = bridge.Chip(t); err != nil {
			return nil, err
		}
	}
	if t := o.Fit; t != nil {
		x.Goal.Fit = t.ID
		if t.FlashBytes == nil && t.ExternalFlashBytes == nil && t.RAMBytes == nil {
			return nil, wrong("Fit", "%s has no memory sizes", t.ID)
		}
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

// ApplyOptions configures [Job.Apply].
type ApplyOptions struct {
	// Plan is the name of the plan, "" for the last one.
	Plan string
	// Data calibrates the ranges of 8-bit activations; nil takes generated inputs.
	Data *DataOptions
	// Correct adjusts the remaining weights of pruned layers so that the layers' outputs on Data
	// are nearest to those of the unchanged model.
	Correct bool
}

// AppliedPlan is the model of a plan.
type AppliedPlan struct {
	c *Job
	a *compress.Applied
	// Refused maps layers that stayed unchanged, though the plan changes them, to the reason.
	Refused map[int]study.Cause
	// Corrected holds by layer the relative squared error of its own outputs on the data, without
	// and with [ApplyOptions].Correct.
	Corrected map[int][2]float64
}

// Apply makes the model of a plan.
func (c *Job) Apply(ctx context.Context, o ApplyOptions) (*AppliedPlan, error) {
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

// Write writes the model as a file in the format of the study's model, whole or not at all. The
// [Job] must still be open. An ONNX model with constants in a file beside it, or with more than the
// 2 GiB of one file, gets a second file: the name and ".data".
func (p *AppliedPlan) Write(path string) error {
	return p.c.do(func() error { return p.a.Write(path) })
}

// ZeroStorage says what the zero weights of a written model cost in its file.
type ZeroStorage struct {
	// Weights and Zeros count the weights of layers. Bytes is what they take in the file, Sparse
	// what they would take as non-zero values with column indices.
	Weights, Zeros, Bytes, Sparse int64
	// File is the size of the file, Compressed its size under gzip; 0 for files over 256 MiB.
	File, Compressed int64
}

// ZeroStorage counts the zero weights of a model that [AppliedPlan.Write] wrote to a file.
func (p *AppliedPlan) ZeroStorage(path string) (z ZeroStorage, err error) {
	err = p.c.do(func() error {
		x, err := p.a.ZeroStorage(path)
		z = ZeroStorage(x)
		return err
	})
	return z, err
}
