package compress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/study"
)

// PlanOptions say what a plan is for.
type PlanOptions struct {
	// Name of the plan, "" for one made of the goal. A plan of the name is replaced.
	Name string
	// Speed and Loss name the profiles, "" for the last ones.
	Speed, Loss string
	// Goal is what is asked for; one without any is a usual one: see [usualGoal].
	Goal study.Goal
	// Target is that of Goal.Fit, whose memories the model has to fit into, or whose working memory is to be least; nil for this computer.
	Target *chip.Target
	// Ends lets the first layer and those that make outputs change, too.
	Ends bool
	// WithoutStructures and WithoutFormats leave changes out.
	WithoutStructures []study.Structure
	WithoutFormats    []study.Format
	// Sparsify plans by the rules of that tool, with its settings; nil for opmeter's.
	Sparsify *sparsify.Settings
	// Try has the data that the plan's model is run on, nil to measure its time only. Unrun measures nothing.
	Try     *LossOptions
	Unrun   bool
	Threads int
	// Time is how long each plan that is measured takes turns with the unchanged model, 0 for four times the usual time.
	Time time.Duration
}

// usualGoal is what a plan is for where nobody says: to lose little where that has a meaning, else to be half as fast
// again.
func usualGoal(p *study.Loss) study.Goal {
	most := map[string]float64{loss.Accuracy: .01, loss.Top1: .02, loss.Cosine: .01, loss.KL: .02, loss.RelativeError: .05, loss.SNR: 20}
	if v, ok := most[p.Metric]; ok && !p.Random && p.Method != study.OneShot {
		return study.Goal{MaxLoss: &v}
	}
	return study.Goal{Speedup: new(1.5)}
}

// asked reports whether a goal says anything.
func asked(g *study.Goal) bool {
	return g.Speedup != nil || g.MaxLoss != nil || g.Sparsity != nil || g.Size != nil || g.Fit != ""
}

// goalName is a name for a plan.
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

// Plan chooses a change for each layer, applies and runs the result, corrects the choice once by what was found, and keeps it.
func (j *Job) Plan(ctx context.Context, o PlanOptions) (*study.Plan, error) {
	s := j.Study()
	sp, lo, err := j.profiles(o.Speed, o.Loss)
	if err != nil {
		return nil, err
	}
	if o.Sparsify != nil {
		return j.compat(ctx, &o, sp, lo)
	}
	if lo == nil {
		return nil, wrong("Loss", "a plan needs a loss profile: make one first")
	}
	usual := !asked(&o.Goal)
	if usual {
		g := usualGoal(lo)
		g.Cost, g.Exclude = o.Goal.Cost, o.Goal.Exclude
		o.Goal = g
	}
	if o.Goal.Cost == choose.Energy && (sp == nil || sp.Energy == nil) {
		return nil, tellsEnergy(sp)
	}
	o.Goal.WithoutStructures, o.Goal.WithoutFormats, o.Goal.Ends = o.WithoutStructures, o.WithoutFormats, o.Ends
	e, err := j.tries(ctx, &o, lo)
	if err != nil {
		return nil, err
	}
	c := choose.Options{
		Layers: s.Layers, Speed: sp, Loss: smooth(lo), Goal: o.Goal,
		WithoutStructures: o.WithoutStructures, WithoutFormats: o.WithoutFormats,
	}
	if !o.Ends {
		c.Keep = choose.Ends(j.m, s.Layers)
	}
	if o.Goal.Fit != "" || o.Goal.Cost == choose.RAM {
		return j.roomy(ctx, &o, c, e, sp)
	}
	plans, err := j.find(ctx, &c, e, usual)
	if err != nil {
		return nil, err
	}
	wins := better
	if searches(&c, e) {
		wins = quicker // all keep to the bound
	}
	p, err := j.race(ctx, &o, plans, e, sp, wins)
	if err != nil {
		return nil, err
	}
	for _, d := range j.others(c, p, e) {
		again, err := j.find(ctx, &d, e, false)
		if _, ok := errors.AsType[*OptionError](err); ok {
			continue
		}
		if err != nil {
			return nil, err
		}
		again[0].Goal = p.Goal
		if p, err = j.race(ctx, &o, []*study.Plan{p, again[0]}, e, sp, better); err != nil {
			return nil, err
		}
	}
	p.Name, p.Created = cmp.Or(o.Name, goalName(&p.Goal, "")), now()
	if err := j.File.Append(study.Record{Plan: p}); err != nil {
		return nil, err
	}
	return p, j.replace(p)
}

// roomy makes, tries and keeps a plan for little memory.
func (j *Job) roomy(ctx context.Context, o *PlanOptions, c choose.Options, e *judge, sp *study.Speed) (p *study.Plan, err error) {
	switch {
	case o.Goal.Fit != "":
		p, err = j.fit(ctx, o, c)
	default:
		if o.Target == nil && sp != nil && sp.Target != "host" {
			set, err := chip.Load("")
			if err == nil {
				o.Target, err = set.Find(sp.Target)
			}
			if err != nil {
				return nil, wrong("Cost", "the memory of %s: %s", sp.Target, err.Error())
			}
		}
		p, err = j.least(ctx, o, c, e)
	}
	if err != nil {
		return nil, err
	}
	if err := j.tryPlans(ctx, o, []*study.Plan{p}, e, sp); err != nil {
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
			return nil, nil, wrong("Speed", "the study has no performance profile %q", speed)
		}
	}
	if n := len(s.Losses); n > 0 {
		lo = s.Losses[n-1]
	}
	if loss != "" {
		if lo = s.Loss(loss); lo == nil {
			return nil, nil, wrong("Loss", "the study has no loss profile %q", loss)
		}
	}
	return sp, lo, nil
}

// find makes plans that may be the best, the one that is by the profiles first: by running what comes into question for a bound on the loss,
// where there are data for that.
func (j *Job) find(ctx context.Context, c *choose.Options, e *judge, usual bool) (all []*study.Plan, err error) {
	if searches(c, e) {
		all, err = j.search(ctx, *c, e)
	} else {
		var p *study.Plan
		if p, err = j.choose(c, usual); err == nil {
			all = append([]*study.Plan{p}, j.alternatives(c, p)...)
		}
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all[1:], func(a, b *study.Plan) int {
		x, _ := a.Predicted.Speedup.Best()
		y, _ := b.Predicted.Speedup.Best()
		return cmp.Compare(y, x)
	})
	before, err := j.earlier(ctx, c, all[0], e)
	return slices.Insert(all, 1, before...), err
}

// choose makes a plan; one of the usual goal takes what can be had.
func (j *Job) choose(c *choose.Options, usual bool) (*study.Plan, error) {
	p, err := choose.Plan(*c)
	if e, ok := errors.AsType[*choose.UnreachableError](err); ok {
		if usual && c.Goal.Speedup != nil {
			// What can be had; where nothing gains anything the plan says so, layer by layer.
			c.Goal.Speedup = new(max(1, math.Floor(e.Best*98)/100))
			p, err = choose.Plan(*c)
		} else {
			return nil, wrong("Goal", "%s", e.Error())
		}
	}
	if err != nil {
		return nil, wrong("Goal", "%s", err.Error())
	}
	return p, nil
}

// tries is what losses of plans are found with, nil where they are not.
func (j *Job) tries(ctx context.Context, o *PlanOptions, lo *study.Loss) (*judge, error) {
	if o.Unrun {
		return nil, nil
	}
	return j.judge(ctx, o.Try, lo)
}

// weigh counts what is zero in a changed model.
func (j *Job) weigh(c *changedModel, p *study.Plan, out *study.Outcome) {
	zeros := int64(0)
	for i := range j.Layers {
		zeros += j.Layers[i].Zeros
	}
	for i, e := range c.effects {
		if e.Cause != "" {
			continue
		}
		l := j.Layers[c.layers[i]]
		zeros += e.Zeros - l.Zeros + l.Weights() - e.Weights // what was taken out counts as zero
	}
	out.Zeros, out.Bytes = &zeros, p.Predicted.Bytes
}

// off is by how much a speed-up may be less than it was chosen for.
const off = .97

// others are options to choose by again where a plan did other than it promised: by the difference, and where layers of integers among
// others cost what their conversions take, without integers.
func (j *Job) others(c choose.Options, p *study.Plan, e *judge) (out []choose.Options) {
	if p.Measured == nil {
		return nil
	}
	added, _ := choose.Added(c, changesOf(p))
	// What was searched for keeps to its bound already, and all times by one factor have the same order.
	if m, err := choose.MetricOf(c.Loss); err == nil && !searches(&c, e) {
		d := c
		if d.Correct = choose.Correct(p, added, m, choose.Correction{}); d.Correct != (choose.Correction{Gain: 1, Loss: 1}) {
			out = append(out, d)
		}
	}
	did, ok := p.Measured.Speedup.Best()
	mixed := slices.ContainsFunc(p.Choices, func(x study.Choice) bool { return x.Change.Format == study.Int8 })
	if ok && mixed && did < off*added {
		c.WithoutFormats = append(slices.Clone(c.WithoutFormats), study.Int8)
		_, err := choose.Plan(c)
		if e, ok := errors.AsType[*choose.UnreachableError](err); ok && c.Goal.Speedup != nil && e.Best > 1 {
			c.Goal.Speedup = new(math.Floor(e.Best*98) / 100)
		}
		out = append(out, c)
	}
	return out
}

// better reports whether a second plan keeps to the goal where the first one does not, or is cheaper and keeps to it, too.
func better(again, first *study.Plan) bool {
	a, b := keeps(again), keeps(first)
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

// keeps reports whether a plan does what its goal asks for, as far as that was measured.
func keeps(p *study.Plan) bool {
	g := &p.Goal
	if v, ok := p.Measured.Speedup.Best(); ok && g.Speedup != nil {
		return v >= *g.Speedup
	}
	if v, ok := p.Measured.Loss.Best(); ok && g.MaxLoss != nil {
		return p.Adds == choose.Noise && v >= *g.MaxLoss || p.Adds != choose.Noise && v <= *g.MaxLoss
	}
	return true
}

// compat plans by Sparsify's rules.
func (j *Job) compat(ctx context.Context, o *PlanOptions, sp *study.Speed, lo *study.Loss) (*study.Plan, error) {
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
	e, err := j.tries(ctx, o, lo)
	if err != nil {
		return nil, err
	}
	if err := j.tryPlans(ctx, o, []*study.Plan{p}, e, sp); err != nil {
		return nil, err
	}
	return p, j.File.Append(study.Record{Plan: p})
}

// dims are those of a value, -1 for what is not known.
func (j *Job) dims(id int) []int {
	if id >= len(j.m.Main().Values) {
		return nil
	}
	if t := j.p.Main.Known(id); t != nil {
		return t.Shape
	}
	return nil
}
