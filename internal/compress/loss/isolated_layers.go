package loss

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// submodel returns a model of some nodes, and of the nodes that compute constants for them.
// Values keep their ids; inputs are the values that it reads from outside.
func submodel(m *graph.Model, nodes []int) (p *graph.Model, inputs []int) {
	g := m.Main()
	made := map[int]int{}
	for i, n := range g.Nodes {
		for _, id := range n.Outputs {
			if id >= 0 {
				made[id] = i
			}
		}
	}
	in := make([]bool, len(g.Nodes))
	known := map[int]bool{}
	var constant func(id int) bool
	constant = func(id int) bool {
		if id < 0 || g.Values[id].Const != nil {
			return true
		}
		at, ok := made[id]
		if !ok {
			return false
		}
		if c, seen := known[at]; seen {
			return c
		}
		known[at] = false
		c := len(weights.Subgraphs(g.Nodes[at])) == 0 // these may read any value
		for _, id := range g.Nodes[at].Inputs {
			c = c && constant(id)
		}
		known[at] = c
		return c
	}
	var add func(at int)
	add = func(at int) {
		if in[at] {
			return
		}
		in[at] = true
		for _, id := range g.Nodes[at].Inputs {
			if id >= 0 && g.Values[id].Const == nil {
				if k, ok := made[id]; ok && constant(id) {
					add(k)
				}
			}
		}
	}
	part := *g
	part.Nodes, part.Inputs, part.Outputs = nil, nil, nil
	for _, k := range nodes {
		add(k)
		for _, id := range g.Nodes[k].Outputs {
			if id >= 0 {
				part.Outputs = append(part.Outputs, id)
			}
		}
	}
	have := map[int]bool{}
	for i, n := range g.Nodes {
		if !in[i] {
			continue
		}
		c := *n
		c.Index = len(part.Nodes)
		part.Nodes = append(part.Nodes, &c)
		for _, id := range n.Inputs {
			if v := max(id, 0); id >= 0 && !have[id] && g.Values[v].Const == nil && !g.Values[v].Variable && !g.Values[v].Scratch {
				part.Inputs = append(part.Inputs, id)
			}
		}
		for _, id := range n.Outputs {
			have[id] = true
		}
	}
	slices.Sort(part.Inputs)
	part.Inputs = slices.Compact(part.Inputs)
	out := *m
	out.Content, out.Close, out.Signatures = nil, nil, nil
	out.Graphs = slices.Clone(m.Graphs)
	out.Graphs[0] = &part
	return &out, part.Inputs
}

// errMemory ends a pass that exceeds the memory limit.
var errMemory = errors.New("exceeds the memory limit")

// runIsolated finds the points of a layer by running its operators in isolation with each change.
func (j *Job) runIsolated(ctx context.Context, layer int) error {
	l, cs := j.Layers[layer], j.missingChanges(layer)
	only, ids := submodel(j.Model, l.Nodes)
	kept := make([][]*tensor.Tensor, j.Data.Runs())
	bytes := 0
	unrun := false
	err := runPass(ctx, j.Model, j.Data, ids, j.Threads, func(run int, v values) error {
		for _, id := range ids {
			t := v(id)
			if t == nil || !t.Known() {
				unrun = true
				return nil
			}
			kept[run] = append(kept[run], t.Clone())
			bytes += len(t.Data)
		}
		if bytes > j.limit() {
			return errMemory
		}
		return nil
	})
	switch {
	case errors.Is(err, errMemory):
		return j.reportCause(layer, cs, study.NoMemory)
	case err != nil:
		return err
	case unrun:
		return j.reportCause(layer, cs, study.NotRun)
	}
	base, err := j.outputsOf(ctx, only, kept)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return j.reportCause(layer, cs, study.NotRun)
	}
	w := l.Read(nil)
	scores := mask.Magnitudes(w) // the energy of its inputs is unknown
	orders := map[study.Structure]*mask.Order{}
	for _, c := range cs {
		p := study.LossPoint{Layer: layer, Change: c}
		if orders[c.Structure] == nil && c.Structure != study.Dense {
			orders[c.Structure], p.Cause = mask.New(l, scores, c.Structure)
		}
		if p.Cause == "" {
			err := j.isolatedPoint(ctx, &p, only, kept, base, w, orders[c.Structure])
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				p.Cause = study.NotRun
			}
		}
		if err := j.Point(p); err != nil {
			return err
		}
	}
	return nil
}

// isolatedPoint finds one point.
func (j *Job) isolatedPoint(ctx context.Context, p *study.LossPoint, only *graph.Model, kept [][]*tensor.Tensor, base [][]float64, w []float32, order *mask.Order) error {
	l, c := j.Layers[p.Layer], p.Change
	mat := slices.Clone(w)
	if order != nil {
		order.Zero(mat, c.Level)
	}
	local := *l
	for i, n := range only.Main().Nodes { // positions refer to the submodel
		if slices.Equal(n.Outputs, j.Model.Main().Nodes[l.Node].Outputs) {
			local.Node, local.Nodes = i, []int{i}
		}
	}
	if len(l.Nodes) > 1 && c.Format != study.OriginalFormat {
		p.Cause = study.NoFormat
		return nil
	}
	if len(l.Nodes) > 1 {
		local.Nodes = nil
	}
	m, effects, err := rewrite.Apply(only, []rewrite.Change{{Layer: &local, Change: study.Change{Format: c.Format}, Matrix: mat}}, rewrite.Options{})
	if err != nil {
		return err
	}
	if p.Cause = effects[0].Cause; p.Cause != "" {
		return nil
	}
	got, err := j.outputsOf(ctx, m, kept)
	if err != nil {
		return err
	}
	n := len(base)
	num, den := make([]float64, n), make([]float64, n)
	for i := range base {
		num[i], den[i] = squaredDistance(got[i], base[i])
	}
	f := func(times []float32) float64 { return ratio(num, den, times) }
	v := f(nil)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		p.Cause = study.NotRun
		return nil
	}
	lo, hi := BootstrapInterval(n, j.Seed, f)
	p.Value = metricValue(profile.Measured, v, j.Data.Len(), lo, hi, "operator run in isolation, weights chosen by magnitude; interval by resampling samples")
	return nil
}

// squaredDistance returns the squared norms of the difference and of want.
func squaredDistance(got, want []float64) (num, den float64) {
	for i, w := range want {
		if i < len(got) {
			num += (got[i] - w) * (got[i] - w)
		}
		den += w * w
	}
	return num, den
}

// outputsOf returns the first outputs of a model for recorded inputs, as real numbers.
func (j *Job) outputsOf(ctx context.Context, m *graph.Model, kept [][]*tensor.Tensor) ([][]float64, error) {
	o := engine.Options{Registry: operators.Registry(), Threads: j.Threads}
	s, err := newSession(m, kept[0], j.Data, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out [][]float64
	err = runEach(ctx, s, m, j.Data.WithInputs(kept), func(int) error {
		t := withQuant(s.Output(0), m.Main().Values[m.Main().Outputs[0]])
		if t == nil || !t.Known() || !t.Type.IsNumber() {
			return fmt.Errorf("%s has no numeric output", m.Main().Nodes[len(m.Main().Nodes)-1].Key())
		}
		out = append(out, toReal(t))
		return nil
	})
	return out, err
}
