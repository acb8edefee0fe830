package compress

import (
	"context"
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// changedModel is a model with a plan applied.
type changedModel struct {
	m *graph.Model
	// effects are by choice of the plan that changes something, of the layers at the same places.
	effects []rewrite.Effect
	layers  []int
	gains   map[int][2]float64 // of corrections: see [Job.correct]
}

// applied makes the model of a plan. 8-bit activations have the ranges that the plan has, else those that they reach on the data, else
// those of made data.
// With correct, weights that are left make up for those that are gone.
func (j *Job) applied(ctx context.Context, p *study.Plan, o *LossOptions, correct bool) (c changedModel, err error) {
	var changes []rewrite.Change
	remove, integers := false, []*weights.Layer(nil)
	for _, x := range p.Choices {
		if x.Change.IsZero() {
			continue
		}
		changes = append(changes, rewrite.Change{Layer: j.Layers[x.Layer], Change: x.Change})
		c.layers = append(c.layers, x.Layer)
		remove = remove || x.Change.Structure.Removes()
		if x.Change.Format == study.Int8 {
			integers = append(integers, j.Layers[x.Layer])
		}
	}
	j.chosen(p, changes, c.layers)
	var ranges map[string]rewrite.Range
	for name, r := range p.Ranges {
		if ranges == nil {
			ranges = map[string]rewrite.Range{}
		}
		ranges[name] = rewrite.Range{Lo: r[0], Hi: r[1]}
	}
	if o != nil && o.Data != nil && len(integers)+len(changes) > 0 {
		if err := o.Data.open(j); err != nil {
			return c, err
		}
		if len(integers) > 0 && ranges == nil {
			if ranges, err = loss.Ranges(ctx, j.m, integers, o.Data.used, o.Ranges, o.Threads); err != nil {
				return c, stopped(ctx, err)
			}
		}
		if correct {
			if c.gains, err = j.correct(ctx, changes, c.layers, o); err != nil {
				return c, stopped(ctx, err)
			}
		}
	}
	c.m, c.effects, err = rewrite.Apply(j.m, changes, rewrite.Options{Remove: remove, Ranges: ranges})
	return c, err
}

// chosen makes the weights of layers whose profile of loss chose them by error on the data, as it did: of others the magnitude counts.
func (j *Job) chosen(p *study.Plan, changes []rewrite.Change, at []int) {
	lo := j.Study().Loss(p.Loss)
	if lo == nil {
		return
	}
	for i := range changes {
		x := &changes[i]
		means := lo.Energy(at[i])
		if x.Structure == study.Dense || means == nil || lo.Method == study.OneShot && x.Structure == study.Unstructured { // whose rule is its own
			continue
		}
		mat := x.Layer.Read(nil)
		if order, cause := mask.New(x.Layer, loss.Scores(mat, x.Layer.Rows, x.Layer.Cols, means), x.Structure); cause == "" {
			order.Zero(mat, x.Level)
			x.Matrix = mat
		}
	}
}

// correct finds weights that make up for pruned ones, of layers that are pruned and nothing else. gains are the errors of these layers' outputs
// before and after, by layer.
func (j *Job) correct(ctx context.Context, changes []rewrite.Change, at []int, o *LossOptions) (gains map[int][2]float64, err error) {
	mats := make([][]float32, len(j.Layers))
	for i := range changes {
		x := &changes[i]
		if x.Structure == study.Dense || x.Structure.Removes() || x.Format != study.Same {
			continue
		}
		if x.Matrix != nil {
			mats[at[i]] = x.Matrix
			continue
		}
		mat := x.Layer.Read(nil)
		scores := make([]float32, len(mat))
		for k, v := range mat {
			scores[k] = max(v, -v)
		}
		if order, cause := mask.New(x.Layer, scores, x.Structure); cause == "" {
			order.Zero(mat, x.Level)
			mats[at[i]] = mat
		}
	}
	found, err := loss.Correct(ctx, j.m, j.Layers, mats, false, o.Data.used, o.Threads, j.o.Feed.MaxBytes, func(share float64, doing string) { j.progress("correcting: "+doing, share) })
	if err != nil {
		return nil, err
	}
	gains = map[int][2]float64{}
	for i := range changes {
		if c := found[at[i]]; c != nil && mats[at[i]] != nil && c.After < c.Before {
			changes[i].Matrix = c.Matrix
			gains[at[i]] = [2]float64{c.Before, c.After}
		}
	}
	return gains, nil
}

// Plan finds a plan by name, "" for the last one.
func (j *Job) plan(name string) (*study.Plan, error) {
	all := j.Study().Plans
	switch {
	case len(all) == 0:
		return nil, wrong("Plan", "the study has no plan")
	case name == "":
		return all[len(all)-1], nil
	}
	if p := j.Study().Plan(name); p != nil {
		return p, nil
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return nil, wrong("Plan", "the study has no plan %q, but %q", name, names)
}

// Applied is a compressed model.
type Applied struct {
	// Graph is the model, valid as long as the job's.
	Graph *graph.Model
	// Refused are layers that stayed as they are though the plan changes them, with the reasons.
	Refused map[int]study.Cause
	// Corrected are relative squared errors of layers' outputs on the data, without and with the correction of what is left.
	Corrected map[int][2]float64
}

// Apply makes the model of a plan; "" is the last one. o has the data for ranges of activations, and for the correction of what is left;
// nil for none.
func (j *Job) Apply(ctx context.Context, name string, o *LossOptions, correct bool) (*Applied, error) {
	if correct && (o == nil || o.Data == nil) {
		return nil, wrong("Correct", "weights are corrected on data: give some")
	}
	p, err := j.plan(name)
	if err != nil {
		return nil, err
	}
	c, err := j.applied(ctx, p, o, correct)
	if err != nil {
		return nil, err
	}
	out := &Applied{Graph: c.m, Refused: map[int]study.Cause{}, Corrected: c.gains}
	for i, e := range c.effects {
		if e.Cause != "" {
			out.Refused[c.layers[i]] = e.Cause
		}
	}
	if len(c.effects) > 0 && len(out.Refused) == len(c.effects) {
		return nil, fmt.Errorf("the plan %q changes nothing: %w", p.Name, errNothing)
	}
	return out, nil
}

// Write writes it as a file of its format, with a second one for constants where they do not lie in it: see [rewrite.Write].
func (a *Applied) Write(path string) error { return rewrite.Write(a.Graph, path) }

// errNothing tells that no change of a plan could be made.
var errNothing = errors.New("no layer can be changed as it says")
