package loss

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// exactOptions run models so that a part of a model is bit-exact with the complete model.
func exactOptions(threads int) engine.Options {
	return engine.Options{Registry: operators.Registry(), Threads: threads, KeepAll: true, Exact: true}
}

// suffixOf returns the part of a changed model that depends on the change: on the layer's
// operators, and on nodes that the change added.
func suffixOf(old, m *graph.Model, l []int) (*graph.Model, []int, error) {
	g, was := m.Main(), old.Main()
	ours := map[int]bool{}
	for _, k := range l {
		for _, id := range was.Nodes[k].Outputs {
			ours[id] = id >= 0
		}
	}
	var nodes []int
	for i, n := range g.Nodes {
		other := func(id int) bool {
			return id >= 0 && id < len(was.Values) && g.Values[id].Const != was.Values[id].Const
		}
		if slices.ContainsFunc(n.Outputs, func(id int) bool { return id >= len(was.Values) || ours[id] }) || slices.ContainsFunc(n.Inputs, other) {
			nodes = append(nodes, i)
		}
	}
	return rewrite.Suffix(m, nodes)
}

// endToEnd runs the model from each changed layer on.
func (j *Job) endToEnd(ctx context.Context) (*profile.Metric, error) {
	cmp, sizes, err := j.runUnchanged(ctx)
	if err != nil {
		return nil, err
	}
	base, err := cmp.base(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.findRanges(ctx); err != nil {
		return nil, err
	}
	trials, total, err := j.trials(sizes)
	if err != nil {
		return nil, err
	}
	energy, err := j.inputEnergies(ctx, trials)
	if err != nil {
		return nil, err
	}
	done := 0
	for len(trials) > 0 {
		n, runs := j.nextBlock(trials)
		if err := j.runTrials(ctx, trials[:n], runs, cmp, energy, func(what string) {
			done++
			j.progress(float64(done)/float64(total), "%s", what)
		}); err != nil {
			return base, err
		}
		trials = trials[n:]
	}
	return base, nil
}

// runUnchanged runs the unchanged model, and returns its outputs and the sizes of all values.
func (j *Job) runUnchanged(ctx context.Context) (*comparison, []int, error) {
	g := j.Model.Main()
	sizes := make([]int, len(g.Values))
	c := &comparison{job: j, g: g}
	j.ran = map[int]bool{0: true}
	o := exactOptions(j.Threads)
	o.Body = func(body int, _ func(id int) *tensor.Tensor) { j.ran[body] = true }
	err := runWith(ctx, j.Model, j.Data, o, func(run int, s *engine.Session) error {
		if run == 0 {
			for id := range g.Values {
				if t := s.Value(id); t != nil {
					sizes[id] = t.Held()
				}
			}
		}
		j.progress(0, "sample %d of %d unchanged", (run+1)*j.Data.Batch, j.Data.Len())
		return c.keep(copyOutputs(s, g))
	})
	return c, sizes, err
}

// runAll runs a complete model over samples.
func runAll(ctx context.Context, m *graph.Model, data *samples.Set, threads int, f func(run int, s *engine.Session) error) error {
	return runWith(ctx, m, data, exactOptions(threads), f)
}

// runWith runs a model over samples and calls f after each run.
func runWith(ctx context.Context, m *graph.Model, data *samples.Set, o engine.Options, f func(run int, s *engine.Session) error) error {
	s, err := newSession(m, data.Inputs(0), data, o)
	if err != nil {
		return err
	}
	defer s.Close()
	return runEach(ctx, s, m, data, func(run int) error { return f(run, s) })
}

// copyOutputs copies the outputs of a run, nil where one could not be computed.
func copyOutputs(s *engine.Session, g *graph.Graph) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(g.Outputs))
	for i, id := range g.Outputs {
		if t := withQuant(s.Output(i), g.Values[id]); t != nil && t.Known() {
			out[i] = t.Clone()
		}
	}
	return out
}

// findRanges finds the activation ranges that changes need, unless they are known.
func (j *Job) findRanges(ctx context.Context) (err error) {
	if j.found != nil {
		return nil
	}
	var some []*weights.Layer
	for i, l := range j.Layers {
		if slices.ContainsFunc(j.missingChanges(i), func(c study.Change) bool { return c.Format == study.Int8 }) {
			some = append(some, l)
		}
	}
	if len(some) > 0 {
		j.found, err = Ranges(ctx, j.Model, some, j.Data, j.Ranges, j.Threads)
	}
	return err
}

// inputEnergies finds the energies of layer inputs for pruning by error.
func (j *Job) inputEnergies(ctx context.Context, trials []*trial) (map[int]*moments, error) {
	out := map[int]*moments{}
	if j.Settings.Choice != ByError {
		return out, nil
	}
	var us []*momentGroup
	seen := map[int]bool{}
	for _, t := range trials {
		for _, i := range t.layers {
			l := j.Layers[i]
			if ps, ok := linearOpsOf(j.Model, l); ok && !seen[i] {
				us = append(us, &momentGroup{products: ps, layers: []*groupLayer{{index: i, layer: l, products: ps}}})
			}
			seen[i] = true
		}
	}
	if err := j.collectMoments(ctx, us, true, 0, 0); err != nil {
		return nil, err
	}
	for _, u := range us {
		if u.failed != nil {
			continue
		}
		at := u.layers[0].index
		out[at] = u.m
		if err := j.reportEnergy(at, u.m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// attempt is a change being tried.
type attempt struct {
	trial  *trial
	change study.Change
	cause  study.Cause
	result *result
	// model is the part that depends on the change, inputs are the values it reads, whole is the
	// complete changed model.
	model, whole *graph.Model
	inputs       []int
}

// runTrials runs some trials, by groups of runs whose values are stored.
func (j *Job) runTrials(ctx context.Context, trials []*trial, runs int, c *comparison, energy map[int]*moments, done func(string)) error {
	all := j.Data.Runs()
	parts := (all + runs - 1) / runs
	// With one group a change is finished after the samples; with several its results wait for
	// the next group.
	var waiting []*attempt
	for _, t := range trials {
		for _, change := range t.changes {
			waiting = append(waiting, &attempt{trial: t, change: change, result: c.newResult()})
		}
	}
	for p := range parts {
		lo, hi := p*runs, min((p+1)*runs, all)
		kept, err := j.keepValues(ctx, trials, lo, hi)
		if err != nil {
			return err
		}
		for _, a := range waiting {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := j.try(ctx, a, kept, lo, hi, energy)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil { // concerns this change only
				a.cause, a.model, a.whole = study.NotRun, nil, nil
			}
			if p < parts-1 {
				continue
			}
			if err := j.finish(ctx, a); err != nil {
				return err
			}
			done(j.Layers[a.trial.layers[0]].Name)
		}
	}
	return nil
}

// keepValues stores the values of some runs that trials read.
func (j *Job) keepValues(ctx context.Context, trials []*trial, lo, hi int) ([]map[int]*tensor.Tensor, error) {
	need := map[int]bool{}
	for _, t := range trials {
		for _, id := range t.inputs {
			need[id] = true
		}
	}
	ids := slices.Sorted(maps.Keys(need))
	g := j.Model.Main()
	var picked []int
	for r := lo; r < hi; r++ {
		picked = append(picked, r)
	}
	data := j.Data.Pick(picked)
	out := make([]map[int]*tensor.Tensor, hi-lo)
	for run := range out {
		out[run] = map[int]*tensor.Tensor{}
		for k, id := range g.Inputs {
			out[run][id] = data.Inputs(run)[k]
		}
	}
	// Inputs are available without running the model.
	if !slices.ContainsFunc(ids, func(id int) bool { return !slices.Contains(g.Inputs, id) }) {
		return out, nil
	}
	err := runAll(ctx, j.Model, data, j.Threads, func(run int, s *engine.Session) error {
		for _, id := range ids {
			if t := s.Value(id); out[run][id] == nil && t != nil && t.Known() {
				out[run][id] = t.Clone()
			}
		}
		return nil
	})
	return out, err
}

// try runs the model from a changed layer on.
func (j *Job) try(ctx context.Context, a *attempt, kept []map[int]*tensor.Tensor, lo, hi int, energy map[int]*moments) error {
	if a.cause != "" {
		return nil
	}
	if a.model == nil {
		if err := j.makeModel(a, energy); err != nil || a.cause != "" {
			return err
		}
	}
	ins := storedInputs(kept, a.inputs)
	if len(ins) == 0 { // the change needs earlier values than those stored
		a.model, a.inputs = a.whole, a.whole.Main().Inputs
		ins = storedInputs(kept, a.inputs)
	}
	if len(ins) < hi-lo {
		a.cause = study.NotRun
		return nil
	}
	err := runAll(ctx, a.model, j.Data.WithInputs(ins), j.Threads, func(run int, s *engine.Session) error {
		return a.result.add(lo+run, copyOutputs(s, a.model.Main()))
	})
	if err == nil && hi == j.Data.Runs() {
		a.model, a.whole = nil, nil
	}
	return err
}

// storedInputs returns values by run, up to the first run that lacks one.
func storedInputs(kept []map[int]*tensor.Tensor, ids []int) (all [][]*tensor.Tensor) {
	for _, of := range kept {
		ins := make([]*tensor.Tensor, len(ids))
		for i, id := range ids {
			if ins[i] = of[id]; ins[i] == nil {
				return all
			}
		}
		all = append(all, ins)
	}
	return all
}

// makeModel makes the changed model.
func (j *Job) makeModel(a *attempt, energy map[int]*moments) (err error) {
	changes := make([]rewrite.Change, len(a.trial.layers))
	for k, i := range a.trial.layers {
		x := rewrite.Change{Layer: j.Layers[i], Change: a.change}
		if x.Matrix, a.cause = j.prunedWeights(x.Layer, a.change, energy[i]); a.cause != "" {
			return nil
		}
		changes[k] = x
	}
	a.whole, a.model, a.inputs, a.cause, err = j.applyChanges(a.trial.layers, changes)
	return err
}

// prunedWeights returns a layer's pruned weights, nil for pruning by magnitude.
func (j *Job) prunedWeights(l *weights.Layer, c study.Change, energy *moments) ([]float32, study.Cause) {
	if j.Settings.Method == study.OneShot && c.Structure == study.Unstructured {
		mat := l.Read(nil)
		sparsify.Prune(mat, c.Level)
		return mat, ""
	}
	if c.Structure == study.Dense || j.Settings.Choice != ByError || energy == nil {
		return nil, ""
	}
	mat := l.Read(nil)
	if why := mask.Prune(l, mat, scoresOf(mat, l.Rows, energy, true), c); why != "" {
		return nil, why
	}
	return mat, ""
}

// finish reports the points of an attempt's layers.
func (j *Job) finish(ctx context.Context, a *attempt) error {
	p := study.LossPoint{Change: a.change, Cause: a.cause}
	if a.cause == "" {
		var err error
		if p.Value, p.More, err = a.result.metric(ctx); err != nil {
			return fmt.Errorf("layer %q: %w", j.Layers[a.trial.layers[0]].Name, err)
		}
		if p.Value == nil {
			p.Cause = study.NotRun
		}
	}
	a.result = nil
	for _, i := range a.trial.layers {
		p.Layer, p.With = i, rewrite.OtherMembers(a.trial.layers, i)
		if err := j.Point(p); err != nil {
			return err
		}
	}
	return nil
}
