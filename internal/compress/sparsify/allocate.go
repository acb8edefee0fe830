package sparsify

import (
	"cmp"
	"math"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Settings are the settings of Sparsify's pruning modifier.
type Settings struct {
	MaskType string
	// Sparsity is the target share of zero parameters.
	Sparsity float64
	// Balance is 1 to use loss only, 0 to use performance only. The performance side is inverted:
	// a layer's cost is the time it would save, and cheap layers are pruned first. So layers with
	// the least to gain are pruned most ([Inverted]).
	Balance float64
	// MinSparsity, MinGain and MinRecovery drop layers below them; 0 disables them. MinGain is a
	// time ratio, so its default accepts layers that become slower.
	MinSparsity, MinGain, MinRecovery float64
}

// Inverted describes the defect of the slider between loss and performance.
const Inverted = "the performance side is inverted: layers with the least time to save are pruned first"

// Defaults returns Sparsify's default settings.
func Defaults() Settings {
	return Settings{MaskType: "unstructured", Sparsity: 0.85, Balance: 1, MinSparsity: 0.4, MinGain: 0.6, MinRecovery: -1}
}

// BalanceUnsaid is the balance for callers that only set a sparsity.
const BalanceUnsaid = 0.5

const (
	maxSparsity  = 0.95 // of a layer
	sensitiveAt  = 0.95 // level of the reported sensitivities, whatever is chosen
	baselineGoal = 0.85 // sparsity of the allocation that recovery is relative to
)

// SensitivityLevels are the levels of the curves of [Layer].
func SensitivityLevels() []float64 { return []float64{0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99} }

// Allocation is a sparsity for each prunable node, with Sparsify's estimates.
type Allocation struct {
	Layers []Layer
	Model  Estimates
}

// Layer is one prunable node. Figures are nil where there is no data.
type Layer struct {
	NodeID string
	// Sparsity is nil for an unchanged layer.
	Sparsity *float64
	// BaselineSparsity is the sparsity in an allocation by loss alone.
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

// nodeSeries is a node with its series.
type nodeSeries struct {
	node                             *Node
	params, flops, perf, loss, times *series
	byFlops                          bool
	layer                            Layer
}

// Allocate chooses sparsities as Sparsify does. perf and loss may be nil: FLOPs then replace
// times, and the size-based estimate the loss. A layer that is missing in a profile costs
// nothing.
func Allocate(a *Analysis, perf, loss *Profile, s Settings) *Allocation {
	e := newEvaluator(a, perf, loss)
	for i, v := range e.fillBudget(baselineGoal, 1) {
		e.nodes[i].layer.BaselineSparsity = clipped(v)
	}
	for i, v := range e.fillBudget(s.Sparsity, s.Balance) {
		e.nodes[i].layer.Sparsity = e.applyFilters(i, v, s)
	}
	return e.allocation(perf)
}

// Evaluate estimates given sparsities by node id.
func Evaluate(a *Analysis, perf, loss *Profile, sparsity map[string]float64) *Allocation {
	e := newEvaluator(a, perf, loss)
	for i, v := range e.fillBudget(baselineGoal, 1) {
		e.nodes[i].layer.BaselineSparsity = clipped(v)
		if at, ok := sparsity[e.nodes[i].node.ID]; ok {
			e.nodes[i].layer.Sparsity = &at
		}
	}
	return e.allocation(perf)
}

type evaluator struct {
	nodes      []*nodeSeries
	perf, loss scale
}

func newEvaluator(a *Analysis, perf, loss *Profile) *evaluator {
	e := &evaluator{}
	for _, n := range a.Nodes {
		if !n.Prunable {
			continue
		}
		v := &nodeSeries{node: n, layer: Layer{NodeID: n.ID}}
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

// measured returns the series of a profile, empty if it lacks the node.
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

// fillBudget takes pairs of layer and level by rising cost (in layer order for equal costs), up
// to the first that exceeds the budget.
func (e *evaluator) fillBudget(sparsity, balance float64) []*float64 {
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
	sorting.Stable(pairs, func(a, b pair) int { return cmp.Compare(a.cost, b.cost) })
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

// clipped limits a sparsity to the maximum of a layer.
func clipped(at *float64) *float64 {
	if at == nil {
		return nil
	}
	return new(min(*at, maxSparsity))
}

// applyFilters drops layers: the first one, grouped convolutions, and those below the three
// minimums. Their share of the budget is not redistributed. Gain and recovery use the sparsity
// before clipping.
func (e *evaluator) applyFilters(i int, at *float64, s Settings) *float64 {
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

// recovery compares the loss at a sparsity with that at the baseline sparsity: 1 for equal, less
// for more loss. It is not a probability and may leave 0..1.
func (v *nodeSeries) recovery(at *float64) float64 {
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

// model aggregates layers: plain means of recoveries and sensitivities, sums of the rest. The
// saved time of layers is subtracted from the unpruned time of the pruning runs; that ratio is
// applied to the baseline.
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
