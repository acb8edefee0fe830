package sparsify

import (
	"math"
	"slices"
)

// Settings are those of Sparsify's pruning modifier.
type Settings struct {
	MaskType string
	// Sparsity is the share of all parameters that is to become zero.
	Sparsity float64
	// Balance is 1 to look at loss alone, 0 to look at performance alone. The performance side
	// is inverted: a layer's cost is the time it would save, and cheap layers are pruned first,
	// so that those with the least to gain are pruned hardest ([Inverted]).
	Balance float64
	// MinSparsity, MinGain and MinRecovery drop layers that stay below; 0 is off. MinGain is a
	// factor of time, so that its default lets layers through that become slower.
	MinSparsity, MinGain, MinRecovery float64
}

// Inverted names the defect of the slider between loss and performance, for people.
const Inverted = "the performance side is inverted: layers with the least time to save are pruned first"

// Defaults are Sparsify's.
func Defaults() Settings {
	return Settings{MaskType: "unstructured", Sparsity: 0.85, Balance: 1, MinSparsity: 0.4, MinGain: 0.6, MinRecovery: -1}
}

// BalanceUnsaid is the balance where a caller gives a sparsity and no balance.
const BalanceUnsaid = 0.5

const (
	maxSparsity  = 0.95 // of a layer
	sensitiveAt  = 0.95 // where sensitivities are read off, whatever is chosen
	baselineGoal = 0.85 // sparsity of the allocation that recovery compares with
)

// SensitivityLevels are those of the curves of [Layer].
func SensitivityLevels() []float64 { return []float64{0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99} }

// Allocation is a sparsity for each prunable node, and what Sparsify expects of it.
type Allocation struct {
	Layers []Layer
	Model  Estimates
}

// Layer is one prunable node. Figures are nil where there is no data.
type Layer struct {
	NodeID string
	// Sparsity is nil for a layer that stays as it is.
	Sparsity *float64
	// BaselineSparsity is that of an allocation by loss alone.
	BaselineSparsity *float64
	// PerfSensitivities and LossSensitivities are by [SensitivityLevels].
	PerfSensitivities, LossSensitivities []*float64
	Estimates
}

// Estimates are of a layer or of the model; times are in seconds.
type Estimates struct {
	Recovery, LossSensitivity, PerfSensitivity *float64
	Time, TimeBaseline, TimeGain               *float64
	Params, ParamsBaseline, Compression        *float64
	Flops, FlopsBaseline, FlopsGain            *float64
}

// evaluated is a node with its series.
type evaluated struct {
	node                             *Node
	params, flops, perf, loss, times *series
	byFlops                          bool
	layer                            Layer
}

// Allocate chooses sparsities as Sparsify does. perf and loss may be nil: FLOPs then stand for
// times, and the estimate from sizes for the loss. A layer that a profile does not have costs
// nothing.
func Allocate(a *Analysis, perf, loss *Profile, s Settings) *Allocation {
	e := newEvaluator(a, perf, loss)
	for i, v := range e.optimised(baselineGoal, 1) {
		e.nodes[i].layer.BaselineSparsity = clipped(v)
	}
	for i, v := range e.optimised(s.Sparsity, s.Balance) {
		e.nodes[i].layer.Sparsity = e.kept(i, v, s)
	}
	return e.allocation(perf)
}

// Evaluate estimates given sparsities by node id.
func Evaluate(a *Analysis, perf, loss *Profile, sparsity map[string]float64) *Allocation {
	e := newEvaluator(a, perf, loss)
	for i, v := range e.optimised(baselineGoal, 1) {
		e.nodes[i].layer.BaselineSparsity = clipped(v)
		if at, ok := sparsity[e.nodes[i].node.ID]; ok {
			e.nodes[i].layer.Sparsity = &at
		}
	}
	return e.allocation(perf)
}

type evaluator struct {
	nodes      []*evaluated
	perf, loss scale
}

func newEvaluator(a *Analysis, perf, loss *Profile) *evaluator {
	e := &evaluator{}
	for _, n := range a.Nodes {
		if !n.Prunable {
			continue
		}
		v := &evaluated{node: n, layer: Layer{NodeID: n.ID}}
		line := func(from, to float64, rising bool) *series {
			return newSeries(Measurements{entry("0.0", from), entry("1.0", to)}, "0.0", n.Params, rising)
		}
		v.params = line(float64(n.Params), float64(n.Params-n.PrunableParams), false)
		v.flops = &series{}
		if n.Flops != nil && *n.Flops != 0 {
			v.flops = line(*n.Flops, 0, false)
		}
		v.times = measured(perf, n, false)
		if v.perf = v.times; perf == nil {
			v.perf, v.byFlops = v.flops, true
		}
		v.loss = measured(loss, n, true)
		if loss == nil && n.PrunableEquationSensitivity != nil {
			v.loss = line(0, *n.PrunableEquationSensitivity, true)
		}
		e.perf.add(v.perf)
		e.loss.add(v.loss)
		e.nodes = append(e.nodes, v)
	}
	return e
}

// measured is the series of a profile, empty where it lacks the node.
func measured(p *Profile, n *Node, rising bool) *series {
	if p == nil || p.Analysis.Pruning == nil {
		return &series{rising: rising}
	}
	out := &series{rising: rising}
	for _, op := range p.Analysis.Pruning.Ops {
		if op.ID == n.ID {
			out = newSeries(op.Measurements, op.BaselineKey, n.Params, rising)
		}
	}
	return out
}

// optimised fills the budget: pairs of layer and level are walked through by rising cost (in the
// order of the layers where they cost the same) up to the first that goes beyond it.
func (e *evaluator) optimised(sparsity, balance float64) []*float64 {
	type pair struct {
		node  int
		level float64
		cost  float64
	}
	var pairs []pair
	total := 0.0
	for i, v := range e.nodes {
		total += float64(v.node.Params)
		loss, perf := v.loss.costs(&e.loss, false), v.perf.costs(&e.perf, v.byFlops)
		for k := range loss {
			pairs = append(pairs, pair{i, float64(k) / 100, balance*loss[k] + (1-balance)*perf[k]})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		switch {
		case a.cost < b.cost:
			return -1
		case a.cost > b.cost:
			return 1
		}
		return 0
	})
	out := make([]*float64, len(e.nodes))
	zeroed := make([]float64, len(e.nodes))
	sum := 0.0
	for _, p := range pairs {
		now := math.RoundToEven(p.level * float64(e.nodes[p.node].node.Params))
		sum += now - zeroed[p.node]
		zeroed[p.node] = now
		if sum > sparsity*total {
			break
		}
		out[p.node] = new(p.level)
	}
	return out
}

// clipped is a sparsity within the limit of a layer.
func clipped(at *float64) *float64 {
	if at == nil {
		return nil
	}
	return new(min(*at, maxSparsity))
}

// kept applies what drops layers: the first one, convolutions in groups, the three filters. What
// they would have taken goes to no other. Gain and recovery are those of the sparsity before it is
// clipped.
func (e *evaluator) kept(i int, at *float64, s Settings) *float64 {
	if at == nil {
		return nil
	}
	v := e.nodes[i]
	if g, ok := integers(v.node.Attributes["group"]); i == 0 || ok && g[0] > 1 {
		return nil
	}
	gain, recovery := v.perf.gain(at), v.recovery(at)
	switch {
	case s.MinSparsity != 0 && *clipped(at) < s.MinSparsity,
		s.MinGain != 0 && gain != nil && *gain < s.MinGain,
		s.MinRecovery != 0 && recovery < s.MinRecovery:
		return nil
	}
	return clipped(at)
}

// recovery is how the loss at a sparsity compares with that at the baseline sparsity: 1 for the
// same, less for more loss. It is no probability and may be beyond 0..1.
func (v *evaluated) recovery(at *float64) float64 {
	base, now := v.loss.sensitivity(v.layer.BaselineSparsity), v.loss.sensitivity(at)
	switch {
	case at == nil || *at == 0, base == nil && now == nil, base != nil && now != nil && *base == *now:
		return 1
	case base == nil || *base == 0 || now == nil:
		return 0
	}
	return (*base-*now) / *base + 1
}

func (e *evaluator) allocation(perf *Profile) *Allocation {
	out := &Allocation{}
	for _, v := range e.nodes {
		l := &v.layer
		l.Recovery = new(v.recovery(l.Sparsity))
		for _, s := range SensitivityLevels() {
			l.PerfSensitivities = append(l.PerfSensitivities, v.perf.sensitivity(&s))
			l.LossSensitivities = append(l.LossSensitivities, v.loss.sensitivity(&s))
		}
		l.LossSensitivity, l.PerfSensitivity = v.loss.sensitivity(new(sensitiveAt)), v.perf.sensitivity(new(sensitiveAt))
		l.Time, l.TimeBaseline, l.TimeGain = v.times.value(l.Sparsity), v.times.base, v.times.gain(l.Sparsity)
		l.Params, l.ParamsBaseline, l.Compression = v.params.value(l.Sparsity), v.params.base, v.params.gain(l.Sparsity)
		l.Flops, l.FlopsBaseline, l.FlopsGain = v.flops.value(l.Sparsity), v.flops.base, v.flops.gain(l.Sparsity)
		out.Layers = append(out.Layers, *l)
	}
	out.Model = model(out.Layers, perf)
	return out
}

// model adds up: plain means of recoveries and sensitivities, sums of the rest; the time saved by
// layers is taken from the unpruned time of the pruning runs, and that share of the baseline's.
func model(ls []Layer, perf *Profile) Estimates {
	var m Estimates
	m.Recovery = mean(ls, func(l *Layer) *float64 { return l.Recovery })
	m.LossSensitivity = mean(ls, func(l *Layer) *float64 { return l.LossSensitivity })
	m.PerfSensitivity = mean(ls, func(l *Layer) *float64 { return l.PerfSensitivity })
	saved, any := 0.0, false
	var params, paramsBase, flops, flopsBase float64
	add := func(to *float64, v *float64) {
		if v != nil {
			*to += *v
		}
	}
	for _, l := range ls {
		add(&params, l.Params)
		add(&paramsBase, l.ParamsBaseline)
		add(&flops, l.Flops)
		add(&flopsBase, l.FlopsBaseline)
		if l.Time != nil && l.TimeBaseline != nil {
			saved, any = saved+*l.TimeBaseline-*l.Time, true
		}
	}
	m.Params, m.ParamsBaseline, m.Flops, m.FlopsBaseline = &params, &paramsBase, &flops, &flopsBase
	ratio := func(a, b float64) *float64 {
		if a == 0 || b == 0 {
			return nil
		}
		return new(a / b)
	}
	m.Compression, m.FlopsGain = ratio(paramsBase, params), ratio(flopsBase, flops)
	base, dense, ok := perf.times()
	if base != 0 {
		m.TimeBaseline = &base
	}
	if ok && any && base != 0 && dense != 0 && saved != dense {
		m.Time = new(base * ((dense - saved) / dense))
		m.TimeGain = new(base / *m.Time)
	}
	return m
}

func mean(ls []Layer, of func(*Layer) *float64) *float64 {
	sum, n := 0.0, 0
	for i := range ls {
		if v := of(&ls[i]); v != nil {
			sum, n = sum+*v, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}
