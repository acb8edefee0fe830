package cortexm

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/graph"
)

// Model is the structural cycle model.
type Model struct{}

var _ chip.CycleModel = Model{}

// Costs implements [chip.CycleModel].
func (Model) Costs(m *graph.Model, g *graph.Graph, t *chip.Target, rt *chip.Runtime, _ chip.Options) (*chip.Costs, error) {
	e, err := NewEstimator(t, rt)
	if err != nil {
		return nil, fmt.Errorf("target %s, runtime %s: %w", t.ID, rt.Name, err)
	}
	layers := Layers(m, g, e.kernels)
	costs := &chip.Costs{Layers: make([]chip.LayerCost, len(layers)), Method: "structural model, " + rt.Name}
	sum := &parts{e: e}
	missing := 0
	for i := range layers {
		l := &layers[i]
		costs.Layers[i] = e.Layer(l, g.Nodes[i].Key())
		if costs.Layers[i].Missing != nil {
			missing++
			continue
		}
		sum.add(l)
	}
	if missing == len(layers) {
		return costs, nil
	}
	// The call itself is charged to the first layer that has a figure.
	for i := range costs.Layers {
		if c := &costs.Layers[i]; c.Missing == nil {
			low, high := math.Exp(-e.single), math.Exp(e.single)
			if v := c.CPU.Value; v > 0 {
				low, high = c.CPU.Low/v, c.CPU.High/v
			}
			c.CPU = chip.Scaled(c.CPU.Value+e.integer[Call], low, high)
			c.Latency = c.CPU
			break
		}
	}
	costs.CPU, costs.Remarks = sum.total()
	costs.Latency = costs.CPU
	costs.Energy = t.Energy.Inference(costs.CPU)
	return costs, nil
}

// Estimator has the figures of one runtime on one target.
type Estimator struct {
	t              *chip.Target
	rt             *chip.Runtime
	kernels        Kernels
	integer, float Vector
	// half-widths of bands in logarithms, by term.
	integerHalf, floatHalf Vector
	near, far, single      float64
	level                  float64 // half-width that all kernels in floating point share
	from                   string  // where their figures come from
	seen                   []Vector
	pruned                 bool
	slow                   memory
}

// NewEstimator reads the figures of a runtime.
func NewEstimator(t *chip.Target, rt *chip.Runtime) (*Estimator, error) {
	coef, err := Coefficients(rt)
	if err != nil {
		return nil, err
	}
	f := rt.Cortexm
	e := &Estimator{t: t, rt: rt, integer: coef, kernels: Kernels{f.Family, f.Tier}, pruned: f.Pruned}
	e.near, e.far, e.single = f.Integer.Near, f.Integer.Far, f.Integer.Layer
	e.slow = slowMemory(t)
	if f.Float != nil {
		e.float, e.level, e.from = Vector(f.Float.Cycles), f.Float.Near, f.Float.From
	}
	for _, m := range f.Seen {
		e.seen = append(e.seen, Vector(m))
	}
	for i, name := range Names {
		own := f.Integer.Bands[i]
		e.integerHalf[i] = e.single
		switch {
		case own != 0:
			e.integerHalf[i], e.floatHalf[i] = own, math.Hypot(e.level, own)
		case f.Float == nil:
		case strings.HasPrefix(name, f.Float.Measured):
			e.floatHalf[i] = f.Float.Near
		default:
			e.floatHalf[i] = f.Float.Far
		}
	}
	e.float[Call], e.float[Op] = coef[Call], coef[Op]
	e.floatHalf[Op] = e.single
	return e, nil
}

// terms returns work, cost and half-widths of a layer.
func (e *Estimator) terms(l *Layer) (work, coef, half Vector) {
	work = l.Work
	if e.pruned {
		work = l.Live
	}
	if l.Float {
		return work, e.float, e.floatHalf
	}
	return work, e.integer, e.integerHalf
}

// Layer estimates one layer; op names the operator in reasons.
func (e *Estimator) Layer(l *Layer, op string) chip.LayerCost {
	out := chip.LayerCost{Simulated: -1, Kernel: l.Kernel, Missing: l.Missing}
	if out.Missing != nil {
		return out
	}
	work, coef, half := e.terms(l)
	wait := e.slow.cycles(l)
	cycles, width := coef.Dot(work)+wait, 0.0
	for k, w := range work {
		if w > 0 && coef[k] == 0 && (k >= PlainMAC || l.Float && k != ConvGather && k != PointGather) {
			what, code := "kernels in plain C for ", chip.MissingData
			if l.Float {
				what, code = "float32 ", chip.MissingType
			}
			out.Missing = &chip.Missing{Code: code, Text: fmt.Sprintf("no measurement of %s%s on %s to estimate from", what, op, e.t.Core.Name)}
			return out
		}
		width += half[k] * coef[k] * w
	}
	if cycles > 0 {
		width = (width + wait*slowHalf) / cycles
	}
	out.CPU = chip.Scaled(cycles, math.Exp(-width), math.Exp(width))
	out.Latency = out.CPU
	return out
}

// parts adds up layers by what their errors have in common.
type parts struct {
	e      *Estimator
	work   Vector // integer layers, terms with optimised kernels
	waits  float64
	own    [2]Vector // cycles of the terms with bands of their own: integer, float
	halves [2]Vector
}

func (p *parts) add(l *Layer) {
	work, coef, half := p.e.terms(l)
	p.waits += p.e.slow.cycles(l)
	kind := 0
	if l.Float {
		kind = 1
	}
	for k, w := range work {
		if k == Op || !l.Float && k < PlainMAC {
			p.work[k] += w
			continue
		}
		p.own[kind][k] += coef[k] * w
		p.halves[kind][k] = half[k]
	}
}

// total adds the parts. Errors of one part go together, those of different parts
// do not, so that their squares add up.
func (p *parts) total() (*chip.Figure, []string) {
	e := p.e
	var remarks []string
	distance := Nearest(Mix(Prior(e.kernels.Family, e.kernels.Tier), p.work), e.seen)
	p.work[Call] = 1
	base := e.integer.Dot(p.work) + p.waits
	half := Half(e.near, e.far, distance, Overhead(e.integer, p.work))
	if p.waits > 0.2*base {
		half = math.Max(half, slowHalf)
		remarks = append(remarks, "weights are read from slow memory, which is a rough estimate")
	}
	total, below, above := base, square(base*(1-math.Exp(-half))), square(base*(math.Exp(half)-1))
	add := func(c, half float64) {
		below += square(c * (1 - math.Exp(-half)))
		above += square(c * (math.Exp(half) - 1))
	}
	var plain, float float64
	for k := range p.own[0] {
		plain += p.own[0][k]
		add(p.own[0][k], p.halves[0][k])
		float += p.own[1][k]
	}
	// All kernels in floating point share the error of the core's level; what is left
	// of a kind's error is its own.
	level := e.level
	add(float, level)
	for k, c := range p.own[1] {
		add(c, math.Sqrt(max(square(p.halves[1][k])-square(level), 0)))
	}
	total += plain + float
	if e.near < e.far && distance > FarAway/2 && base > total/2 {
		remarks = append(remarks, fmt.Sprintf("the mix of operators is unlike the networks that %s was calibrated on, so the band is wider", e.rt.Name))
	}
	if plain > 0.1*total {
		remarks = append(remarks, fmt.Sprintf("%.0f %% of the cycles are in operators without an optimised kernel; their cost is that of plain C on other cores, which is a rough estimate", 100*plain/total))
	}
	if float > 0.1*total {
		remarks = append(remarks, fmt.Sprintf("%.0f %% of the cycles are in floating point, estimated from %s", 100*float/total, e.from))
	}
	return &chip.Figure{Value: total, Low: max(total-math.Sqrt(below), total*math.Exp(-3)), High: total + math.Sqrt(above)}, remarks
}

func square(v float64) float64 { return v * v }

// Coefficients reads the cycles of integer kernels of a runtime.
func Coefficients(rt *chip.Runtime) (Vector, error) {
	if rt == nil || rt.Cortexm == nil {
		return Vector{}, errors.New("has no figures of the cycle model cortexm")
	}
	v := Vector(rt.Cortexm.Integer.Cycles)
	for i, c := range v {
		if c < 0 || math.IsNaN(c) || math.IsInf(c, 0) {
			return v, fmt.Errorf("cycles of %s are %v; a cost cannot be negative or unlimited", Names[i], c)
		}
	}
	return v, nil
}

// slowHalf is the half-width of the band where waiting for memory matters: boards
// differ by a factor of two.
const slowHalf = 0.7

// memory is where weights are read from, when reading them is slow.
type memory struct{ cost, cache float64 }

// slowMemory finds the memory that holds the model: external flash of a chip that
// has none inside, with a stated cost of reading.
func slowMemory(t *chip.Target) memory {
	if _, ok := t.Flash(); ok {
		return memory{}
	}
	for i := range t.Memories {
		if x := &t.Memories[i]; x.Role == "external-flash" && x.ReadCyclesPerByte != nil {
			return memory{*x.ReadCyclesPerByte, float64(x.Cache)}
		}
	}
	return memory{}
}

// cycles spent waiting for a layer's weights: once when a quarter of the cache holds
// them, at every pass otherwise. The rest of the cache is for code and for what
// falls on the same lines.
func (s memory) cycles(l *Layer) float64 {
	if s.cost == 0 {
		return 0
	}
	if l.WeightBytes <= s.cache/4 {
		return s.cost * l.WeightBytes
	}
	return s.cost * l.WeightBytes * l.Passes
}
