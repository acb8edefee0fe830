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
	"github.com/opmeter/opmeter/internal/compress/weights"
	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/operators"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// whole is how models are run that are compared: so that a part of a model computes what the whole does, to the bit.
func whole(threads int) engine.Options {
	return engine.Options{Registry: operators.Registry(), Threads: threads, KeepAll: true, Exact: true}
}

// suffixOf is the part of a changed model that depends on the change: on the layer's operators, and on what the change
// added.
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

// trial is a layer's changes from values that are kept.
type trial struct {
	layer   int
	changes []study.Change
	inputs  []int // that the suffixes read
	bytes   int   // a run
}

// endToEnd runs the model from each changed layer on.
func (j *Job) endToEnd(ctx context.Context) (*profile.Metric, error) {
	cmp, sizes, err := j.unchanged(ctx)
	if err != nil {
		return nil, err
	}
	base, err := cmp.base(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.ranges(ctx); err != nil {
		return nil, err
	}
	trials, total, err := j.trials(sizes)
	if err != nil {
		return nil, err
	}
	energy, err := j.energies(ctx, trials)
	if err != nil {
		return nil, err
	}
	done := 0
	for len(trials) > 0 {
		n, runs := j.block(trials)
		if err := j.some(ctx, trials[:n], runs, cmp, energy, func(what string) {
			done++
			j.tell(float64(done)/float64(total), "%s", what)
		}); err != nil {
			return base, err
		}
		trials = trials[n:]
	}
	return base, nil
}

// unchanged runs the model as it is: its outputs, and the sizes of all values.
func (j *Job) unchanged(ctx context.Context) (*comparison, []int, error) {
	g := j.Model.Main()
	sizes := make([]int, len(g.Values))
	c := &comparison{job: j, g: g}
	j.ran = map[int]bool{0: true}
	o := whole(j.Threads)
	o.Body = func(body int, _ func(id int) *tensor.Tensor) { j.ran[body] = true }
	err := runWith(ctx, j.Model, j.Data, o, func(run int, s *engine.Session) error {
		if run == 0 {
			for id := range g.Values {
				if t := s.Value(id); t != nil {
					sizes[id] = t.Held()
				}
			}
		}
		j.tell(0, "sample %d of %d unchanged", (run+1)*j.Data.Batch, j.Data.Len())
		return c.keep(copied(s, g))
	})
	return c, sizes, err
}

// runAll runs a whole model over samples.
func runAll(ctx context.Context, m *graph.Model, data *samples.Set, threads int, f func(run int, s *engine.Session) error) error {
	return runWith(ctx, m, data, whole(threads), f)
}

func runWith(ctx context.Context, m *graph.Model, data *samples.Set, o engine.Options, f func(run int, s *engine.Session) error) error {
	s, err := engine.New(m, data.Inputs(0), o)
	if err != nil {
		return err
	}
	defer s.Close()
	keeps := stateful(m)
	for run := range data.Runs() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := start(s, data.Inputs(run), keeps && run > 0); err != nil {
			return err
		}
		if err := s.Run(ctx); err != nil {
			return fmt.Errorf("sample %d: %w", run*data.Batch+1, err)
		}
		if err := f(run, s); err != nil {
			return err
		}
	}
	return nil
}

// copied are the outputs of a run, nil where one could not be computed.
func copied(s *engine.Session, g *graph.Graph) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(g.Outputs))
	for i, id := range g.Outputs {
		if t := quantified(s.Output(i), g.Values[id]); t != nil && t.Known() {
			out[i] = t.Clone()
		}
	}
	return out
}

// runs reports whether a graph that has a layer ran on the data.
func (j *Job) runs(l *weights.Layer) bool {
	return j.ran[l.Graph] || slices.ContainsFunc(l.Twins, func(t *weights.Layer) bool { return j.ran[t.Graph] })
}

// trials lists what is to be done, with what it needs.
func (j *Job) trials(sizes []int) (out []*trial, total int, err error) {
	for i, l := range j.Layers {
		cs := j.wanted(i)
		if len(cs) == 0 {
			continue
		}
		if why := fixed(l, cs); why != "" {
			if err := j.causes(i, cs, why); err != nil {
				return nil, 0, err
			}
			continue
		}
		if !j.runs(l) { // outputs on these data say nothing of it
			if err := j.causes(i, cs, study.Unrun); err != nil {
				return nil, 0, err
			}
			continue
		}
		bytes := 0
		_, ids, err := rewrite.Suffix(j.Model, l.Main)
		if err != nil {
			if err := j.causes(i, cs, study.Unrun); err != nil {
				return nil, 0, err
			}
			continue
		}
		for _, c := range farthest(cs) {
			if more, err := j.reads(l, c); err == nil { // else it fails when it is tried, and has its cause then
				ids = append(ids, more...)
			}
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		for _, id := range ids {
			bytes += sizes[id]
		}
		t := &trial{layer: i, changes: cs, inputs: ids, bytes: bytes}
		out = append(out, t)
		total += len(cs)
	}
	return out, total, nil
}

// farthest are changes that may reach beyond the layer's own weights: of each format, and of channels and filters the
// highest level.
func farthest(cs []study.Change) []study.Change {
	var out []study.Change
	for _, c := range cs {
		if c.Structure != study.Channel && c.Structure != study.Filter {
			c.Structure, c.Level = study.Dense, 0
		}
		k := slices.IndexFunc(out, func(o study.Change) bool { return o.Structure == c.Structure && o.Format == c.Format })
		switch {
		case c.IsZero():
		case k < 0:
			out = append(out, c)
		default:
			out[k].Level = max(out[k].Level, c.Level)
		}
	}
	return out
}

// reads are the values that the model reads from what a change changes on.
func (j *Job) reads(l *weights.Layer, c study.Change) ([]int, error) {
	m, effects, err := rewrite.Apply(j.Model, []rewrite.Change{{Layer: l, Change: c}}, rewrite.Options{Ranges: j.found})
	if err != nil || effects[0].Cause != "" {
		return nil, err
	}
	_, ids, err := suffixOf(j.Model, m, l.Main)
	return ids, err
}

// ranges finds those of activations where a change needs them.
func (j *Job) ranges(ctx context.Context) (err error) {
	var some []*weights.Layer
	for i, l := range j.Layers {
		if slices.ContainsFunc(j.wanted(i), func(c study.Change) bool { return c.Format == study.Int8 }) {
			some = append(some, l)
		}
	}
	if len(some) > 0 {
		j.found, err = Ranges(ctx, j.Model, some, j.Data, j.Ranges, j.Threads)
	}
	return err
}

// energies finds the energy of the layers' inputs where weights are chosen by it.
func (j *Job) energies(ctx context.Context, trials []*trial) (map[int]*moments, error) {
	out := map[int]*moments{}
	if j.Settings.Choice != ByError {
		return out, nil
	}
	var us []*unit
	for _, t := range trials {
		l := j.Layers[t.layer]
		if ps, ok := productsOf(j.Model, l); ok {
			us = append(us, &unit{products: ps, layers: []*member{{index: t.layer, layer: l, products: ps}}})
		}
	}
	if err := j.sums(ctx, us, true, 0, 0); err != nil {
		return nil, err
	}
	for _, u := range us {
		if u.failed != nil {
			continue
		}
		at := u.layers[0].index
		out[at] = u.m
		if err := j.energy(at, u.m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// block says how many of the trials are done with the values of one pass, and with how many runs at a time.
func (j *Job) block(trials []*trial) (n, runs int) {
	all := j.Data.Runs()
	seen := map[int]bool{}
	bytes := 0
	for n < len(trials) {
		t := trials[n]
		if n > 0 && bytes+t.bytes > j.limit()/all {
			break
		}
		for _, id := range t.inputs {
			seen[id] = true
		}
		bytes += t.bytes
		n++
	}
	return n, max(1, min(all, j.limit()/max(bytes, 1)))
}

// attempt is a change that is being tried.
type attempt struct {
	trial  *trial
	change study.Change
	cause  study.Cause
	result *result
	// model is what depends on the change and inputs what it reads, whole the whole changed model.
	model, whole *graph.Model
	inputs       []int
}

// some does some trials, by groups of runs whose values are kept.
func (j *Job) some(ctx context.Context, trials []*trial, runs int, c *comparison, energy map[int]*moments, done func(string)) error {
	all := j.Data.Runs()
	parts := (all + runs - 1) / runs
	// With one group a change is done with when the samples are; with several its results wait for the next group.
	var waiting []*attempt
	for p := range parts {
		lo, hi := p*runs, min((p+1)*runs, all)
		kept, err := j.kept(ctx, trials, lo, hi)
		if err != nil {
			return err
		}
		at := 0
		for _, t := range trials {
			for _, change := range t.changes {
				if err := ctx.Err(); err != nil {
					return err
				}
				var a *attempt
				if p == 0 {
					a = &attempt{trial: t, change: change, result: c.begin()}
					waiting = append(waiting, a)
				} else {
					a = waiting[at]
				}
				at++
				err := j.try(ctx, a, kept, lo, hi, energy[t.layer])
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil { // of this change: the others go on
					a.cause, a.model, a.whole = study.Unrun, nil, nil
				}
				if p < parts-1 {
					continue
				}
				if err := j.finish(ctx, a); err != nil {
					return err
				}
				done(j.Layers[t.layer].Name)
			}
		}
	}
	return nil
}

// kept are the values of some runs that trials read.
func (j *Job) kept(ctx context.Context, trials []*trial, lo, hi int) ([]map[int]*tensor.Tensor, error) {
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
	// From the inputs alone nothing has to be run.
	if !slices.ContainsFunc(ids, func(id int) bool { return !slices.Contains(g.Inputs, id) }) {
		for run := range out {
			out[run] = map[int]*tensor.Tensor{}
			for k, id := range g.Inputs {
				out[run][id] = data.Inputs(run)[k]
			}
		}
		return out, nil
	}
	err := runAll(ctx, j.Model, data, j.Threads, func(run int, s *engine.Session) error {
		out[run] = map[int]*tensor.Tensor{}
		for k, id := range g.Inputs {
			out[run][id] = data.Inputs(run)[k]
		}
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
func (j *Job) try(ctx context.Context, a *attempt, kept []map[int]*tensor.Tensor, lo, hi int, energy *moments) error {
	if a.cause != "" {
		return nil
	}
	if a.model == nil {
		if err := j.make(a, energy); err != nil || a.cause != "" {
			return err
		}
	}
	ins := make([]*tensor.Tensor, len(a.inputs))
	take := func(run int) bool {
		for i, id := range a.inputs {
			ins[i] = kept[run][id]
			if ins[i] == nil {
				return false
			}
		}
		return true
	}
	if !take(0) { // the change reaches further back than what is kept
		a.model, a.inputs = a.whole, a.whole.Main().Inputs
		ins = make([]*tensor.Tensor, len(a.inputs))
		if !take(0) {
			a.cause = study.Unrun
			return nil
		}
	}
	s, err := engine.New(a.model, ins, whole(j.Threads))
	if err != nil {
		return err
	}
	defer s.Close()
	keeps := stateful(a.model)
	for run := range hi - lo {
		if !take(run) {
			a.cause = study.Unrun
			return nil
		}
		if err := start(s, ins, keeps && run > 0); err != nil {
			return err
		}
		if err := s.Run(ctx); err != nil {
			return err
		}
		if err := a.result.add(lo+run, copied(s, a.model.Main())); err != nil {
			return err
		}
	}
	if hi == j.Data.Runs() {
		a.model, a.whole = nil, nil
	}
	return nil
}

// make makes the changed model.
func (j *Job) make(a *attempt, energy *moments) error {
	l := j.Layers[a.trial.layer]
	mat := l.Read(nil)
	if s := a.change.Structure; s != study.Dense {
		if j.Settings.Method == study.OneShot && s == study.Unstructured {
			sparsify.Prune(mat, a.change.Level)
		} else {
			order, why := mask.New(l, scoresOf(mat, l.Rows, energy, j.Settings.Choice == ByError), s)
			if why != "" {
				a.cause = why
				return nil
			}
			order.Zero(mat, a.change.Level)
		}
	}
	m, effects, err := rewrite.Apply(j.Model, []rewrite.Change{{Layer: l, Change: a.change, Matrix: mat}}, rewrite.Options{Ranges: j.found})
	if err != nil {
		return err
	}
	if a.cause = effects[0].Cause; a.cause != "" {
		return nil
	}
	a.whole = m
	a.model, a.inputs, err = suffixOf(j.Model, m, l.Main)
	return err
}

// finish gives a point.
func (j *Job) finish(ctx context.Context, a *attempt) error {
	p := study.LossPoint{Layer: a.trial.layer, Change: a.change, Cause: a.cause}
	if a.cause == "" {
		var err error
		if p.Value, p.More, err = a.result.metric(ctx); err != nil {
			return fmt.Errorf("layer %q: %w", j.Layers[p.Layer].Name, err)
		}
		if p.Value == nil {
			p.Cause = study.Unrun
		}
	}
	a.result = nil
	return j.Point(p)
}
