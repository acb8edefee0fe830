package compress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/study"
)

// PlanOptions configure a plan.
type PlanOptions struct {
	// Name of the plan, "" for one made of the goal. An existing plan of that name is replaced.
	Name string
	// Speed and Loss name the profiles, "" for the last ones.
	Speed, Loss string
	// Goal is the goal of the plan; an empty one is replaced by [defaultGoal].
	Goal study.Goal
	// Target is the target of Goal.Fit, or the one whose peak memory is minimised; nil for this
	// computer.
	Target *chip.Target
	// External is the engine of the performance profile, nil for opmeter's own.
	External *External
	// Ends allows changes of the first layer and of layers that produce model outputs.
	Ends bool
	// WithoutStructures and WithoutFormats exclude changes.
	WithoutStructures []study.Structure
	WithoutFormats    []study.Format
	// Sparsify plans by the rules of Sparsify with these settings; nil for opmeter's.
	Sparsify *sparsify.Settings
	// Try has the data that the plan's model is run on, nil to measure time only. Unrun measures
	// nothing.
	Try     *LossOptions
	SkipRun bool
	Threads int
	// Time is how long each plan is measured, interleaved with the unchanged model; 0 for four
	// times the default.
	Time time.Duration
}

// defaultGoal is a small loss where the metric has an absolute meaning, else a speed-up of 1.5.
func defaultGoal(p *study.Loss) study.Goal {
	most := map[string]float64{loss.Accuracy: .01, loss.Top1: .02, loss.Cosine: .01, loss.KL: .02, loss.RelativeError: .05, loss.SNR: 20}
	if v, ok := most[p.Metric]; ok && !p.Random && p.Method != study.OneShot {
		return study.Goal{MaxLoss: &v}
	}
	return study.Goal{Speedup: new(study.DefaultSpeedup)}
}

// checkMaxLoss refuses a loss bound that no plan can break.
func checkMaxLoss(g *study.Goal, p *study.Loss) error {
	if g.MaxLoss != nil && *g.MaxLoss >= 1 && (p.Metric == loss.Accuracy || p.Metric == loss.Top1) {
		return optionError("Goal", "a loss of %g %%: %s falls by less than 100 %%, so nothing is bounded", 100**g.MaxLoss, strings.ReplaceAll(p.Metric, "_", " "))
	}
	return nil
}

// hasTarget reports whether a goal asks for anything.
func hasTarget(g *study.Goal) bool {
	return g.Speedup != nil || g.MaxLoss != nil || g.Sparsity != nil || g.Size != nil || g.Fit != ""
}

// goalName is the default name of a plan.
func goalName(g *study.Goal, compat string) string {
	switch {
	case compat != "":
		return compat
	case g.Speedup != nil:
		return fmt.Sprintf("speedup-%g", *g.Speedup)
	case g.MaxLoss != nil:
		return fmt.Sprintf("loss-%g", *g.MaxLoss)
	case g.Sparsity != nil:
		return fmt.Sprintf("sparsity-%g", *g.Sparsity)
	case g.Size != nil:
		return fmt.Sprintf("size-%d", *g.Size)
	}
	return "fit-" + g.Fit
}

// Plan chooses a change for each layer, applies and measures the result, corrects the choice once
// by the measurement, and stores the plan.
func (j *Job) Plan(ctx context.Context, o PlanOptions) (*study.Plan, error) {
	s := j.Study()
	sp, lo, err := j.profiles(o.Speed, o.Loss)
	if err != nil {
		return nil, err
	}
	if o.SkipRun {
		o.External = nil
	} else if o.External, err = externalFor(sp, o.External); err != nil {
		return nil, err
	}
	if o.Sparsify != nil {
		return j.sparsifyPlan(ctx, &o, sp, lo)
	}
	if lo == nil {
		return nil, optionError("Loss", "a plan needs a loss profile: make one first")
	}
	usual := !hasTarget(&o.Goal)
	if usual {
		g := defaultGoal(lo)
		g.Cost, g.Exclude, g.Default = o.Goal.Cost, o.Goal.Exclude, true
		o.Goal = g
	}
	if err := checkMaxLoss(&o.Goal, lo); err != nil {
		return nil, err
	}
	if o.Goal.Cost == choose.Energy && (sp == nil || sp.Energy == nil) {
		return nil, missingEnergyError(sp)
	}
	o.Goal.WithoutStructures, o.Goal.WithoutFormats, o.Goal.Ends = o.WithoutStructures, o.WithoutFormats, o.Ends
	e, err := j.newEvaluator(ctx, &o, lo)
	if err != nil {
		return nil, err
	}
	c := choose.Options{
		Layers: s.Layers, Speed: sp, Loss: smoothedLoss(lo), Goal: o.Goal,
		WithoutStructures: o.WithoutStructures, WithoutFormats: o.WithoutFormats,
	}
	if !o.Ends {
		c.Keep = choose.BoundaryLayers(j.m, s.Layers)
	}
	if o.Goal.Fit != "" || o.Goal.Cost == choose.RAM {
		return j.planMemory(ctx, &o, c, e, sp)
	}
	if searchesByRunning(&c, e) {
		c.Keep = keptBoundaries(c.Keep, c.Loss, *o.Goal.MaxLoss)
	}
	plans, err := j.candidatePlans(ctx, &c, e, usual)
	if err != nil {
		return nil, err
	}
	wins := better
	if searchesByRunning(&c, e) {
		wins = faster // all keep to the bound
	}
	p, err := j.measurePlans(ctx, &o, plans, e, sp, wins)
	if err != nil {
		return nil, err
	}
	for _, d := range j.retryOptions(c, p, e) {
		again, err := j.candidatePlans(ctx, &d, e, false)
		if _, ok := errors.AsType[*OptionError](err); ok {
			continue
		}
		if err != nil {
			return nil, err
		}
		again[0].Goal = p.Goal
		if p, err = j.measurePlans(ctx, &o, []*study.Plan{p, again[0]}, e, sp, better); err != nil {
			return nil, err
		}
	}
	if searchesByRunning(&c, e) {
		if p, err = j.saferPlan(ctx, &o, c, p, e, sp); err != nil {
			return nil, err
		}
	}
	if m, err := choose.MetricOf(c.Loss); err == nil {
		p.Front = choose.ReconcileFront(p.Front, m.MaxLoss())
	}
	p.Name, p.Created = cmp.Or(o.Name, goalName(&p.Goal, "")), now()
	if err := j.File.Append(study.Record{Plan: p}); err != nil {
		return nil, err
	}
	return p, j.replaceBeaten(p)
}

// saferPlan returns a plan that keeps to its bound on the held-out samples: the given one, or one
// that is chosen for a part of the bound. If all of them exceed it, the given one
// stays, and reports say so.
func (j *Job) saferPlan(ctx context.Context, o *PlanOptions, c choose.Options, p *study.Plan, e *evaluator, sp *study.Speed) (*study.Plan, error) {
	if e.held == e.tried || p.Measured == nil {
		return p, nil
	}
	bound := *p.Goal.MaxLoss
	for _, share := range []float64{.7, .4, .2} {
		if _, known := p.Measured.Loss.Best(); meetsGoal(p) || !known {
			return p, nil
		}
		c.Goal.MaxLoss = new(share * bound)
		if e.metric == loss.SNR { // decibels of noise power
			c.Goal.MaxLoss = new(bound - 10*math.Log10(share))
		}
		plans, err := j.candidatePlans(ctx, &c, e, false)
		if _, ok := errors.AsType[*OptionError](err); ok {
			break // nothing loses so little
		}
		if err != nil {
			return nil, err
		}
		for _, x := range plans {
			x.Goal = p.Goal
		}
		q, err := j.measurePlans(ctx, o, plans, e, sp, faster)
		if err != nil {
			return nil, err
		}
		if meetsGoal(q) {
			return q, nil
		}
	}
	return p, nil
}

// planMemory makes, evaluates and stores a plan for little memory.
func (j *Job) planMemory(ctx context.Context, o *PlanOptions, c choose.Options, e *evaluator, sp *study.Speed) (p *study.Plan, err error) {
	switch {
	case o.Goal.Fit != "":
		p, err = j.planToFit(ctx, o, c)
	default:
		if o.Target == nil && sp != nil && sp.Target != "host" {
			set, err := chip.Load("")
			if err == nil {
				o.Target, err = set.Find(sp.Target)
			}
			if err != nil {
				return nil, optionError("Cost", "the memory of %s: %s", sp.Target, err.Error())
			}
		}
		p, err = j.planLeastMemory(ctx, o, c, e)
	}
	if err != nil {
		return nil, err
	}
	if err := j.evaluatePlans(ctx, o, []*study.Plan{p}, e, sp); err != nil {
		return nil, err
	}
	p.Name, p.Created = cmp.Or(o.Name, goalName(&p.Goal, "")), now()
	return p, j.File.Append(study.Record{Plan: p})
}

// profiles finds profiles by name, the last ones for "".
func (j *Job) profiles(speed, loss string) (sp *study.Speed, lo *study.Loss, err error) {
	s := j.Study()
	if n := len(s.Speeds); n > 0 {
		sp = s.Speeds[n-1]
	}
	if speed != "" {
		if sp = s.Speed(speed); sp == nil {
			return nil, nil, optionError("Speed", "the study has no performance profile %q", speed)
		}
	}
	if n := len(s.Losses); n > 0 {
		lo = s.Losses[n-1]
	}
	if loss != "" {
		if lo = s.Loss(loss); lo == nil {
			return nil, nil, optionError("Loss", "the study has no loss profile %q", loss)
		}
	}
	return sp, lo, nil
}

// candidatePlans makes plans that may be the best, the best by the profiles first. For a loss
// bound with data, candidates are found by running models.
func (j *Job) candidatePlans(ctx context.Context, c *choose.Options, e *evaluator, usual bool) (all []*study.Plan, err error) {
	if searchesByRunning(c, e) {
		all, err = j.search(ctx, *c, e)
	} else {
		var p *study.Plan
		if p, err = j.choosePlan(c, usual); err == nil {
			all = append([]*study.Plan{p}, j.uniformPlans(c, p)...)
		}
	}
	if err != nil {
		return nil, err
	}
	sorting.Stable(all[1:], func(a, b *study.Plan) int {
		x, _ := a.Predicted.Speedup.Best()
		y, _ := b.Predicted.Speedup.Best()
		return cmp.Compare(y, x)
	})
	before, err := j.earlierPlans(ctx, c, all[0], e)
	return slices.Insert(all, 1, before...), err
}

// choosePlan makes a plan. For the default goal it takes the highest speed-up that can be
// reached.
func (j *Job) choosePlan(c *choose.Options, usual bool) (*study.Plan, error) {
	p, err := choose.Plan(*c)
	if e, ok := errors.AsType[*choose.UnreachableError](err); ok {
		if usual && c.Goal.Speedup != nil {
			// Take what can be reached; where nothing gains, the plan gives the reason for each
			// layer.
			c.Goal.Speedup = new(max(1, math.Floor(e.Best*98)/100))
			p, err = choose.Plan(*c)
		} else {
			return nil, optionError("Goal", "%s", e.Error())
		}
	}
	if err != nil {
		return nil, optionError("Goal", "%s", err.Error())
	}
	return p, nil
}

// countZeros sets the number of zero weights of a changed model.
func (j *Job) countZeros(c *changedModel, p *study.Plan, out *study.Outcome) {
	zeros := int64(0)
	for i := range j.Layers {
		zeros += j.Layers[i].Zeros
	}
	for i, e := range c.effects {
		if e.Cause != "" {
			continue
		}
		l := j.Layers[c.layers[i]]
		zeros += e.Zeros - l.Zeros + l.Weights() - e.Weights // removed weights count as zero
	}
	out.Zeros, out.Bytes = &zeros, p.Predicted.Bytes
}

// speedupTolerance is the share of the predicted speed-up that a measured one has to reach.
const speedupTolerance = .97

// retryOptions returns options for another choice where a plan missed its prediction: corrected
// by the difference, and without int8 where mixed int8 layers pay for their conversions.
func (j *Job) retryOptions(c choose.Options, p *study.Plan, e *evaluator) (out []choose.Options) {
	if p.Measured == nil {
		return nil
	}
	added, _ := choose.AdditiveSpeedup(c, changesOf(p))
	// A searched plan keeps to its bound already, and one common factor does not change the order
	// of times.
	if m, err := choose.MetricOf(c.Loss); err == nil && !searchesByRunning(&c, e) {
		d := c
		if d.Correct = choose.Correct(p, added, m, study.Correction{}); d.Correct != (study.Correction{Gain: 1, Loss: 1}) {
			out = append(out, d)
		}
	}
	did, ok := p.Measured.Speedup.Best()
	mixed := slices.ContainsFunc(p.Choices, func(x study.Choice) bool { return x.Change.Format == study.Int8 })
	if ok && mixed && did < speedupTolerance*added {
		c.WithoutFormats = append(slices.Clone(c.WithoutFormats), study.Int8)
		_, err := choose.Plan(c)
		if e, ok := errors.AsType[*choose.UnreachableError](err); ok && c.Goal.Speedup != nil && e.Best > 1 {
			c.Goal.Speedup = new(math.Floor(e.Best*98) / 100)
		}
		out = append(out, c)
	}
	return out
}

// better reports whether plan again meets the goal where first does not, or meets it too and is
// cheaper.
func better(again, first *study.Plan) bool {
	a, b := meetsGoal(again), meetsGoal(first)
	if a != b {
		return a
	}
	x, ok := again.Measured.Speedup.Best()
	y, ok2 := first.Measured.Speedup.Best()
	lost, known := again.Measured.Loss.Best()
	was, known2 := first.Measured.Loss.Best()
	switch {
	case again.Goal.Speedup != nil && a && known && known2:
		return lost < was
	case ok && ok2:
		return x > y
	}
	return false
}

// meetsGoal reports whether a plan meets its goal, as far as that was measured.
func meetsGoal(p *study.Plan) bool {
	g := &p.Goal
	if v, ok := p.Measured.Speedup.Best(); ok && g.Speedup != nil {
		return v >= *g.Speedup
	}
	if v, ok := p.Measured.Loss.Best(); ok && g.MaxLoss != nil {
		return p.Adds == choose.Noise && v >= *g.MaxLoss || p.Adds != choose.Noise && v <= *g.MaxLoss
	}
	return true
}

// sparsifyPlan plans by Sparsify's rules.
func (j *Job) sparsifyPlan(ctx context.Context, o *PlanOptions, sp *study.Speed, lo *study.Loss) (*study.Plan, error) {
	s := j.Study()
	structure := study.Unstructured
	var perf, losses *sparsify.Profile
	if sp.Timed() {
		perf = sparsify.FromSpeed(sp, s.Layers, structure)
	}
	if lo != nil {
		losses = sparsify.FromLoss(lo, s.Layers, structure)
	}
	a := sparsify.Analyse(j.m, j.dims, s.Layers, true)
	p, _ := sparsify.Plan(a, s.Layers, perf, losses, *o.Sparsify)
	p.Name, p.Created = cmp.Or(o.Name, "sparsify"), now()
	if sp != nil && perf != nil {
		p.Speed = sp.Name
	}
	if lo != nil {
		p.Loss = lo.Name
	}
	e, err := j.newEvaluator(ctx, o, lo)
	if err != nil {
		return nil, err
	}
	if err := j.evaluatePlans(ctx, o, []*study.Plan{p}, e, sp); err != nil {
		return nil, err
	}
	return p, j.File.Append(study.Record{Plan: p})
}

// dims returns the shape of a value, with -1 for unknown dimensions.
func (j *Job) dims(id int) []int {
	if id >= len(j.m.Main().Values) {
		return nil
	}
	if t := j.p.Main.Known(id); t != nil {
		return t.Shape
	}
	return nil
}
