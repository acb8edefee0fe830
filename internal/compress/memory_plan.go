package compress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/study"
)

// Peak activation memory does not add up over layers, so no additive solver can minimise it.
// Plans are generated with additive proxy costs instead, and the memory of each resulting model
// is then planned.

// maxMemoryPlans is the number of plans of a Pareto front whose memory is planned.
const maxMemoryPlans = 24

// memoryPlan is a plan with the memory use of its model.
type memoryPlan struct {
	plan       *study.Plan
	loss       float64 // as it adds up
	ram, flash *study.MemoryUse
}

// memoryShare returns the larger of RAM use and flash use relative to their limits. Memories
// without a limit are ignored.
func (r *memoryPlan) memoryShare() float64 {
	most := 0.0
	for _, m := range []*study.MemoryUse{r.ram, r.flash} {
		if m != nil && m.Limit != nil && *m.Limit > 0 {
			most = max(most, float64(m.Bytes)/float64(*m.Limit))
		}
	}
	return most
}

// memory plans the memory of a model. For a target it does what opmeter fit does, on the file
// that would be written; without a target it returns the peak activation memory on this computer.
func (j *Job) memory(ctx context.Context, m *graph.Model, t *chip.Target) (ram, flash *study.MemoryUse, err error) {
	if t == nil {
		ins, _, err := inputs.Shapes(m, j.inputOptions(0))
		if err != nil {
			return nil, nil, err
		}
		p, err := plan.Make(m, ins, plan.Options{Registry: operators.Registry(), MaxBytes: j.o.Feed.MaxBytes})
		if err != nil {
			return nil, nil, err
		}
		d, err := describe.Model(p, p.Slots(), nil)
		if err != nil || d.Memory.PeakBytes == nil {
			return nil, nil, err
		}
		return &study.MemoryUse{Bytes: *d.Memory.PeakBytes}, nil, nil
	}
	data, err := rewrite.Encode(m)
	if err != nil {
		return nil, nil, err
	}
	file, err := modelfile.Parse("model."+m.Format, data)
	if err != nil {
		return nil, nil, err
	}
	o := speed.TargetOptions{Target: t, Feed: j.inputOptions(0)}
	p, err := o.Profile(ctx, file)
	if err != nil {
		return nil, nil, err
	}
	size := func(n chip.Bytes, ok bool) *int64 {
		if !ok {
			return nil
		}
		return new(int64(n))
	}
	switch {
	case p.Totals.RAMBytes != nil:
		ram = &study.MemoryUse{Bytes: *p.Totals.RAMBytes, Limit: size(t.RAM())}
	case p.Memory != nil && p.Memory.PeakBytes != nil:
		ram = &study.MemoryUse{Bytes: *p.Memory.PeakBytes, Limit: size(t.RAM()), AtLeast: true}
	}
	if n := p.Totals.FlashBytes; n != nil {
		flash = &study.MemoryUse{Bytes: *n, Limit: size(t.Flash())}
		if flash.Limit == nil {
			flash.Limit = size(t.ExternalFlash())
		} else if rt := t.Runtime(""); rt.Code != nil {
			flash.Bytes += int64(rt.Code[0]) // the least that a program has
		}
	}
	return ram, flash, nil
}

// planTargetMemory records in plans for a target what their models take of its memories, beside the
// unchanged model: time may be bought with RAM.
func (j *Job) planTargetMemory(ctx context.Context, o *PlanOptions, plans []*study.Plan, models []*graph.Model, sp *study.Speed) error {
	if sp == nil || sp.Target == "host" || sp.Counted {
		return nil
	}
	t := o.Target
	if t == nil || t.ID != sp.Target {
		set, err := chip.Load("")
		if err != nil {
			return err
		}
		if t, err = set.Find(sp.Target); err != nil {
			return nil //nolint:nilerr // a target of a folder that this command was not given
		}
	}
	ram, flash, err := j.memory(ctx, j.m, t)
	if err != nil {
		return contextError(ctx, err)
	}
	bytes := func(m *study.MemoryUse) *int64 {
		if m == nil {
			return nil
		}
		return &m.Bytes
	}
	for i, p := range plans {
		if p.Predicted.RAM, p.Predicted.Flash, err = j.memory(ctx, models[i], t); err != nil {
			return contextError(ctx, err)
		}
		if p.Predicted.RAM != nil {
			p.Predicted.RAM.Unchanged = bytes(ram)
		}
		if p.Predicted.Flash != nil {
			p.Predicted.Flash.Unchanged = bytes(flash)
		}
	}
	return nil
}

// memoryProxyCost returns an additive cost that leads to less memory. It sums each layer's output
// size, raised to a power so that large outputs dominate (the largest are live together), and
// adds weight bytes with the given share.
func memoryProxyCost(layers []study.Layer, power, weights float64) func(int, study.Change) (float64, bool) {
	put := func(l *study.Layer, c study.Change) float64 {
		if l.MACs == nil || l.Cols == 0 {
			return 0
		}
		n := float64(*l.MACs) / float64(l.Cols)
		if c.Structure.Removes() {
			n *= 1 - c.Level
		}
		if c.Format == study.Int8 {
			n /= 4
		}
		return math.Pow(n, power)
	}
	acts, bytes := 0.0, 0.0
	for i := range layers {
		acts += put(&layers[i], study.Change{})
		bytes += float64(choose.Bytes(&layers[i], study.Change{}))
	}
	return func(i int, c study.Change) (float64, bool) {
		v := weights * float64(choose.Bytes(&layers[i], c)) / max(bytes, 1)
		if acts > 0 {
			v += (1 - weights) * put(&layers[i], c) / acts
		}
		return v, true
	}
}

// memoryPlans returns plans between the unchanged model and little memory, with their memory use.
func (j *Job) memoryPlans(ctx context.Context, o *PlanOptions, c choose.Options, t *chip.Target) (out []memoryPlan, err error) {
	type lead struct{ power, weights float64 }
	list := []lead{{1, 0}, {2, 0}, {4, 0}}
	if t != nil && o.Goal.Fit != "" {
		list = append(list, lead{1, 1}, lead{1, .5}, lead{4, .5}, lead{4, .8})
	}
	m, err := choose.MetricOf(c.Loss)
	if err != nil {
		return nil, optionError("Goal", "%s", err.Error())
	}
	d := c
	d.Goal = study.Goal{MaxLoss: new(1.), Cost: choose.RAM, Exclude: c.Goal.Exclude}
	d.Costs = memoryProxyCost(c.Layers, 1, 0)
	most, err := lossUpperBound(d)
	if err != nil {
		return nil, optionError("Goal", "%s", err.Error())
	}
	*d.Goal.MaxLoss, _ = m.UserLoss(most)
	seen := map[string]bool{}
	for k, l := range list {
		d.Costs = memoryProxyCost(c.Layers, l.power, l.weights)
		all, err := choose.Plan(d)
		if err != nil {
			return nil, optionError("Goal", "%s", err.Error())
		}
		for i := range min(len(all.Front), maxMemoryPlans) {
			f := &all.Front[i*max(len(all.Front)-1, 1)/max(min(len(all.Front), maxMemoryPlans)-1, 1)]
			key := fmt.Sprint(f.Changes)
			if seen[key] {
				continue
			}
			seen[key] = true
			j.progress("planning memory", (float64(k)+float64(i)/maxMemoryPlans)/float64(len(list)))
			p, err := choose.PlanFromChanges(d, f.Changes)
			if err != nil {
				return nil, optionError("Goal", "%s", err.Error())
			}
			p.Goal = c.Goal
			model, err := j.applied(ctx, p, o.Try, false)
			if err != nil {
				return nil, err
			}
			r := memoryPlan{plan: p, loss: f.Loss}
			if r.ram, r.flash, err = j.memory(ctx, model.m, t); err != nil {
				return nil, contextError(ctx, err)
			}
			p.Predicted.RAM, p.Predicted.Flash = r.ram, r.flash
			out = append(out, r)
		}
	}
	return out, nil
}

// planToFit returns the plan of least loss that fits the target's memory.
func (j *Job) planToFit(ctx context.Context, o *PlanOptions, c choose.Options) (*study.Plan, error) {
	all, err := j.memoryPlans(ctx, o, c, o.Target)
	if err != nil {
		return nil, err
	}
	sorting.Stable(all, func(a, b memoryPlan) int { return cmp.Compare(a.loss, b.loss) })
	for i := range all {
		if all[i].memoryShare() <= 1 {
			return all[i].plan, nil
		}
	}
	if len(all) == 0 {
		return nil, optionError("Fit", "the memory use of all plans is unknown")
	}
	near := slices.MinFunc(all, func(a, b memoryPlan) int { return cmp.Compare(a.memoryShare(), b.memoryShare()) })
	var takes []string
	for _, x := range []struct {
		what string
		m    *study.MemoryUse
	}{{"RAM", near.ram}, {"flash", near.flash}} {
		if x.m != nil && x.m.Limit != nil {
			takes = append(takes, fmt.Sprintf("%d of %d bytes of %s", x.m.Bytes, *x.m.Limit, x.what))
		}
	}
	return nil, optionError("Fit", "no plan fits %s: the nearest takes %s", o.Goal.Fit, strings.Join(takes, " and "))
}

// planLeastMemory returns the plan with the least peak activation memory within a loss bound.
func (j *Job) planLeastMemory(ctx context.Context, o *PlanOptions, c choose.Options, e *evaluator) (*study.Plan, error) {
	if c.Goal.MaxLoss == nil {
		return nil, optionError("Goal", "minimising memory needs a loss bound: set one")
	}
	m, err := choose.MetricOf(c.Loss)
	if err != nil {
		return nil, optionError("Goal", "%s", err.Error())
	}
	all, err := j.memoryPlans(ctx, o, c, o.Target)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r memoryPlan) bool { return r.ram == nil })
	sorting.Stable(all, func(a, b memoryPlan) int {
		return cmp.Or(cmp.Compare(a.loss, b.loss), cmp.Compare(a.ram.Bytes, b.ram.Bytes))
	})
	var front []memoryPlan // in order of falling memory use
	for _, r := range all {
		if len(front) == 0 || r.ram.Bytes < front[len(front)-1].ram.Bytes {
			front = append(front, r)
		}
	}
	if len(front) == 0 {
		return nil, optionError("Goal", "the memory of this model cannot be planned: sizes depend on data")
	}
	p, tried, err := lastWithin(len(front), func(k int) (*study.Plan, bool, error) {
		r := &front[k]
		if !searchesByRunning(&c, e) {
			return r.plan, r.loss <= m.Bound(*c.Goal.MaxLoss)*(1+1e-9), nil
		}
		keeps, err := j.planWithinBound(ctx, e, r.plan, *c.Goal.MaxLoss)
		return r.plan, keeps, err
	})
	if err != nil {
		return nil, err
	}
	if p == nil {
		lost, _ := tried.Predicted.Loss.Best()
		return nil, optionError("Goal", "no plan keeps the loss within %.4g: the lowest loss is %.4g", *c.Goal.MaxLoss, lost)
	}
	for _, r := range slices.Backward(front) {
		p.Front = append(p.Front, study.FrontPoint{Cost: float64(r.ram.Bytes), Loss: r.loss, Changes: changesOf(r.plan), Chosen: r.plan == p})
	}
	return p, nil
}

// changesOf lists the changes of a plan by layer.
func changesOf(p *study.Plan) []study.Change {
	out := make([]study.Change, len(p.Choices))
	for i, x := range p.Choices {
		out[i] = x.Change
	}
	return out
}

// missingEnergyError names the targets that have energy figures. It is for profiles without them.
func missingEnergyError(sp *study.Speed) error {
	set, err := chip.Load("")
	if err != nil {
		return err
	}
	var ids []string
	for _, t := range set.List() {
		if t.Energy != nil {
			ids = append(ids, t.ID)
		}
	}
	name := "none"
	if sp != nil {
		name = fmt.Sprintf("%q", sp.Name)
	}
	return optionError("Cost", "energy needs a performance profile of a target with energy figures (%s), not %s", strings.Join(ids, ", "), name)
}
