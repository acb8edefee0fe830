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
	// effects has an entry for each choice that changes something; layers has its layer at the
	// same index.
	effects []rewrite.Effect
	layers  []int
	// output errors before and after compensation: see [Job.compensate]
	compensated map[int][2]float64
}

// applied builds the model of a plan. Ranges of int8 activations come from the plan, else from
// the data, else from synthetic inputs. With correct, the remaining weights compensate for pruned
// ones.
func (j *Job) applied(ctx context.Context, p *study.Plan, o *LossOptions, correct bool) (c changedModel, err error) {
	var changes []rewrite.Change
	var integers []*weights.Layer
	for _, x := range p.Choices {
		if x.Change.IsZero() {
			continue
		}
		changes = append(changes, rewrite.Change{Layer: j.Layers[x.Layer], Change: x.Change})
		c.layers = append(c.layers, x.Layer)
		if x.Change.Format == study.Int8 {
			integers = append(integers, j.Layers[x.Layer])
		}
	}
	j.applyErrorMasks(p, changes, c.layers)
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
				return c, contextError(ctx, err)
			}
		}
		if correct {
			if c.compensated, err = j.compensate(ctx, changes, c.layers, o); err != nil {
				return c, contextError(ctx, err)
			}
		}
	}
	c.m, c.effects, err = rewrite.Apply(j.m, changes, rewrite.Options{Remove: true, Ranges: ranges})
	return c, err
}

// applyErrorMasks prunes layers by error on the data, as their loss profile did. Layers without
// stored energies are pruned by magnitude.
func (j *Job) applyErrorMasks(p *study.Plan, changes []rewrite.Change, at []int) {
	lo := j.Study().Loss(p.Loss)
	if lo == nil {
		return
	}
	for i := range changes {
		x := &changes[i]
		means := lo.InputEnergyOf(at[i])
		// one-shot has its own rule
		if x.Structure == study.Dense || means == nil || lo.Method == study.OneShot && x.Structure == study.Unstructured {
			continue
		}
		mat := x.Layer.Read(nil)
		if mask.Prune(x.Layer, mat, loss.ErrorScores(mat, x.Layer.Rows, x.Layer.Cols, means), x.Change) == "" {
			x.Matrix = mat
		}
	}
}

// compensate adjusts the remaining weights of layers that are pruned and not otherwise changed.
// gains are the output errors of these layers before and after, by layer.
func (j *Job) compensate(ctx context.Context, changes []rewrite.Change, at []int, o *LossOptions) (gains map[int][2]float64, err error) {
	mats := make([][]float32, len(j.Layers))
	for i := range changes {
		x := &changes[i]
		if x.Structure == study.Dense || x.Structure.Removes() || x.Format != study.OriginalFormat {
			continue
		}
		if x.Matrix != nil {
			mats[at[i]] = x.Matrix
			continue
		}
		mat := x.Layer.Read(nil)
		if mask.Prune(x.Layer, mat, mask.Magnitudes(mat), x.Change) == "" {
			mats[at[i]] = mat
		}
	}
	found, err := loss.CompensateErrors(ctx, j.m, j.Layers, mats, false, o.Data.used, o.Threads, min(j.o.Feed.MaxBytes, mostCompensation), func(share float64, doing string) { j.progress("correcting: "+doing, share) })
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

// plan finds a plan by name, "" for the last one.
func (j *Job) plan(name string) (*study.Plan, error) {
	all := j.Study().Plans
	switch {
	case len(all) == 0:
		return nil, optionError("Plan", "the study has no plan")
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
	return nil, optionError("Plan", "the study has no plan %q: it has %q", name, names)
}

// Applied is a compressed model.
type Applied struct {
	// Graph is the model. It is valid as long as the job's model.
	Graph *graph.Model
	// Refused maps layers that could not be changed as planned to the reasons.
	Refused map[int]study.Cause
	// Corrected has the relative squared errors of layer outputs on the data, before and after
	// error compensation, by layer.
	Corrected map[int][2]float64
}

// mostCompensation bounds the memory of a pass that compensates errors: the session and the samples
// need the rest.
const mostCompensation = 1 << 30

// Apply builds the model of a plan; "" is the last one. o has the data for activation ranges and
// for error compensation; nil for none.
func (j *Job) Apply(ctx context.Context, name string, o *LossOptions, correct bool) (*Applied, error) {
	if correct && (o == nil || o.Data == nil) {
		return nil, optionError("Correct", "error compensation needs data")
	}
	p, err := j.plan(name)
	if err != nil {
		return nil, err
	}
	c, err := j.applied(ctx, p, o, correct)
	if err != nil {
		return nil, err
	}
	out := &Applied{Graph: c.m, Refused: map[int]study.Cause{}, Corrected: c.compensated}
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

// Write writes the model as a file of its format, with a second file for external constants: see
// [rewrite.Write].
func (a *Applied) Write(path string) error { return rewrite.Write(a.Graph, path) }

// errNothing reports that no change of a plan could be made.
var errNothing = errors.New("no layer can be changed as planned")
