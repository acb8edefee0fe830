package cortexm

import (
	"errors"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
)

// Model is the structural cycle model.
type Model struct{}

var _ chip.CycleModel = Model{}

// Costs implements [chip.CycleModel].
func (Model) Costs(m *graph.Model, g *graph.Graph, t *chip.Target, rt *chip.Runtime, opt chip.Options) (*chip.Costs, error) {
	e, err := NewEstimator(t, rt, opt)
	if err != nil {
		return nil, fmt.Errorf("target %s, runtime %s: %w", t.ID, rt.Name, err)
	}
	layers := Layers(m, g, e.kernels)
	method := "structural model, " + rt.Name
	if opt.Build != "" {
		method += ", built " + opt.Build
	}
	if opt.Flash != "" {
		method += ", model in " + opt.Flash
	}
	costs := &chip.Costs{Layers: make([]chip.LayerCost, len(layers)), Method: method}
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
	// The call overhead is charged to the first layer that has a figure.
	for i := range costs.Layers {
		if c := &costs.Layers[i]; c.Missing == nil {
			low, high := math.Exp(-e.single), math.Exp(e.single)
			if v := c.CPU.Value; v > 0 {
				low, high = c.CPU.Low/v, c.CPU.High/v
			}
			c.CPU = chip.Scaled(c.CPU.Value+sum.call(), low, high)
			c.Latency = c.CPU
			break
		}
	}
	costs.CPU, costs.Remarks = sum.total()
	costs.Latency = costs.CPU
	costs.Energy = t.Energy.Inference(costs.CPU)
	return costs, nil
}

// figures are the coefficients of one class of types. Widths are half-widths of bands in
// logarithms.
type figures struct {
	coef, half          Vector      // half of a single layer, by term
	near, far, overhead float64     // of all kernels of the class together
	level               [Terms]bool // terms whose error is that of the class
	from                string      // where figures come from, "" for those of int8
	rise                Vector      // cycles that a build may add, which was not measured on the board
}

// Estimator holds the figures of one runtime on one target.
type Estimator struct {
	t       *chip.Target
	rt      *chip.Runtime
	kernels Kernels
	by      [types]figures
	single  float64
	seen    []Vector
	pruned  bool
	slow    memory
	soft    bool // floating point is computed in software
}

// NewEstimator reads the figures of a runtime for the build and the place of the model in the
// options.
func NewEstimator(t *chip.Target, rt *chip.Runtime, opt chip.Options) (*Estimator, error) {
	coef, err := Coefficients(rt)
	if err != nil {
		return nil, err
	}
	f := rt.Cortexm
	e := &Estimator{t: t, rt: rt, kernels: Kernels{f.Family, f.Tier}, pruned: f.Pruned, single: f.Integer.Layer, slow: slowMemory(t, opt.Flash)}
	for _, m := range f.Seen {
		e.seen = append(e.seen, Vector(m))
	}
	whole := figures{coef: coef, near: f.Integer.Near, far: f.Integer.Far, overhead: f.Integer.Overhead}
	for k, own := range f.Integer.Bands {
		whole.half[k], whole.level[k] = e.single, own == 0
		if own != 0 {
			whole.half[k] = own
		}
	}
	e.by[Int8] = whole
	e.by[Int16], e.by[Float] = e.typed(f.Int16), e.typed(f.Float)
	if f.Int16 == nil {
		// The figures of int8, with the additional error of another type.
		e.by[Int16] = whole
		e.by[Int16].near, e.by[Int16].far = math.Hypot(whole.near, otherType), math.Hypot(whole.far, otherType)
	}
	e.soft = t.Core.FPU == "none" || opt.Build == noFPU
	if b := rt.Build(opt.Build); b != nil {
		e.built(b)
	}
	return e, nil
}

// noFPU is the build that leaves the unit for floating point unused.
const noFPU = "no-fpu"

// otherType is the half-width for using int8 figures for kernels with 16-bit activations. On
// Cortex-M4 with CMSIS-NN they differ by up to 1.35, on cores without such kernels by more.
const otherType = 0.5

// typed reads the figures of a class of types other than int8.
func (e *Estimator) typed(f *chip.Typed) (out figures) {
	if f == nil {
		return out
	}
	whole := e.by[Int8]
	out = figures{coef: Vector(f.Cycles), near: f.Near, far: f.Near, overhead: f.Overhead, from: f.From}
	for k, name := range Names {
		out.half[k] = f.Far
		switch own := e.rt.Cortexm.Integer.Bands[k]; {
		case f.Has(name):
			out.half[k], out.level[k] = f.Near, true
		case own != 0:
			out.half[k] = math.Hypot(f.Near, own)
		}
	}
	for _, k := range []int{Call, Op} {
		out.level[k], out.half[k] = true, e.single
		if out.coef[k] == 0 {
			out.coef[k] = whole.coef[k]
		}
	}
	return out
}

// built applies the factors of a build configuration.
func (e *Estimator) built(b *chip.Build) {
	wide := &b.Int16
	if *wide == (chip.Terms{}) {
		wide = &b.Integer
	}
	bounds := [types]*chip.Terms{&b.IntegerBound, &b.IntegerBound, &b.FloatBound}
	for t, factors := range [types]*chip.Terms{&b.Integer, wide, &b.Float} {
		f, changed := &e.by[t], false
		for k, factor := range bounds[t] {
			if factor > 1 {
				f.rise[k] = f.coef[k] * (factor - 1)
			}
		}
		for k, factor := range factors {
			if factor != 0 {
				f.coef[k] *= factor
				changed = true
			}
		}
		if !changed {
			continue
		}
		f.near, f.far = math.Hypot(f.near, b.Band), math.Hypot(f.far, b.Band)
		for k := range f.half {
			f.half[k] = math.Hypot(f.half[k], b.Band)
		}
	}
}

// work returns the work of a layer as the runtime does it.
func (e *Estimator) work(l *Layer) Vector {
	if e.pruned {
		return l.Live
	}
	return l.Work
}

// typeOf returns the class of figures that apply to a layer. Without a unit for floating point,
// quantising costs what software makes of its division and rounding.
func (e *Estimator) typeOf(l *Layer) Type {
	if l.FromFloat && e.soft && e.by[Float].coef[PlainElement] > 0 {
		return Float
	}
	return l.Type
}

// Layer estimates one layer; op names the operator in reasons.
func (e *Estimator) Layer(l *Layer, op string) chip.LayerCost {
	out := chip.LayerCost{Simulated: -1, Kernel: l.Kernel, Missing: l.Missing}
	if out.Missing != nil {
		return out
	}
	typ := e.typeOf(l)
	work, f := e.work(l), &e.by[typ]
	wait := e.slow.cycles(l)
	cycles, width := f.coef.Dot(work)+wait, 0.0
	for k, w := range work {
		if w > 0 && f.coef[k] == 0 && (k >= PlainMAC || typ == Float && k != ConvGather && k != PointGather && k != ConvWindow) {
			what, code := "kernels in plain C for ", chip.MissingData
			if typ == Float {
				what, code = "float32 ", chip.MissingType
			}
			out.Missing = &chip.Missing{Code: code, Text: fmt.Sprintf("no measurement of %s%s on %s to estimate from", what, op, e.t.Core.Name)}
			return out
		}
		width += f.half[k] * f.coef[k] * w
	}
	if cycles > 0 {
		width = (width + wait*slowHalf) / cycles
	}
	out.CPU = chip.Scaled(cycles, math.Exp(-width), math.Exp(width))
	if cycles > 0 {
		out.CPU.High *= 1 + f.rise.Dot(work)/cycles
	}
	out.Latency = out.CPU
	return out
}

// parts sums layers by their common error sources.
type parts struct {
	e      *Estimator
	layers [types]int
	work   [types]Vector // terms whose error is that of the class of types
	waits  float64
	own    [types]Vector // cycles of the terms with bands of their own
	rise   float64       // cycles that the build may add
}

func (p *parts) add(l *Layer) {
	typ := p.e.typeOf(l)
	f := &p.e.by[typ]
	p.waits += p.e.slow.cycles(l)
	p.layers[typ]++
	p.rise += f.rise.Dot(p.e.work(l))
	for k, w := range p.e.work(l) {
		if f.level[k] {
			p.work[typ][k] += w
		} else {
			p.own[typ][k] += f.coef[k] * w
		}
	}
}

// main returns the class of types that most layers compute in.
func (p *parts) main() Type {
	at := Int8
	for t, n := range p.layers {
		if n > p.layers[at] {
			at = Type(t)
		}
	}
	return at
}

// call returns the overhead of an inference apart from its operators.
func (p *parts) call() float64 { return p.e.by[p.main()].coef[Call] }

// total adds the parts. Errors within a part are correlated, errors of different parts are
// independent, so that their squares add up.
func (p *parts) total() (*chip.Figure, []string) {
	e := p.e
	var remarks []string
	p.work[p.main()][Call] = 1
	var total, below, above, plain float64
	var of [types]float64
	add := func(c, half float64) {
		total += c
		below += square(c * (1 - math.Exp(-half)))
		above += square(c * (math.Exp(half) - 1))
	}
	widen := func(c, half float64) {
		add(c, half)
		total -= c
	}
	distance := Nearest(Mix(Prior(e.kernels.Family, e.kernels.Tier), p.work[Int8]), e.seen)
	for t := range e.by {
		f, work := &e.by[t], p.work[t]
		base := f.coef.Dot(work)
		apart := 0.0
		if Type(t) == Int8 {
			apart = distance
			base += p.waits
		}
		half := f.Half(apart, work)
		if Type(t) == Int8 && p.waits > 0.2*base {
			half = math.Max(half, slowHalf)
			remarks = append(remarks, "weights are read from slow memory, which is a rough estimate")
		}
		of[t] = base
		for _, c := range p.own[t] {
			of[t] += c
		}
		if Type(t) == Int8 {
			add(base, half)
			for k, c := range p.own[t] {
				add(c, f.half[k])
				plain += c
			}
			continue
		}
		// All kernels of a class share the error of its level; the remaining error of a kind is
		// independent.
		add(of[t], half)
		for _, kind := range kernelTerms {
			// The terms of one kernel err together.
			c, wide := 0.0, 0.0
			for k := kind[0]; k < kind[1]; k++ {
				c += p.own[t][k]
				wide = max(wide, f.half[k])
			}
			widen(c, math.Sqrt(max(square(wide)-square(half), 0)))
		}
	}
	if f := &e.by[Int8]; f.near < f.far && distance > FarAway/2 && of[Int8]-plain > total/2 {
		remarks = append(remarks, fmt.Sprintf("the mix of operators is unlike the networks that %s was calibrated on, so the band is wider", e.rt.Name))
	}
	if plain > 0.1*total {
		remarks = append(remarks, fmt.Sprintf("%.0f %% of the cycles are in operators without an optimised kernel; their cost is that of plain C on other cores, which is a rough estimate", 100*plain/total))
	}
	for _, t := range []Type{Int16, Float} {
		if of[t] > 0.1*total && e.by[t].from != "" {
			name := map[Type]string{Int16: "16-bit integers", Float: "floating point"}[t]
			remarks = append(remarks, fmt.Sprintf("%.0f %% of the cycles are in %s, estimated from %s", 100*of[t]/total, name, e.by[t].from))
		}
	}
	out := &chip.Figure{Value: total, Low: max(total-math.Sqrt(below), total*math.Exp(-3)), High: total + math.Sqrt(above)}
	if rise := p.rise + e.by[p.main()].rise[Call]; rise > 0 && total > 0 {
		out.High *= 1 + rise/total
		remarks = append(remarks, fmt.Sprintf("what this build costs was not measured on this board: the estimate is that of the default build, and its band reaches to %.2g times as much, the most that other boards measured", 1+rise/total))
	}
	return out, remarks
}

// Half returns the half-width of the band of work at a distance from the calibration data.
func (f *figures) Half(distance float64, work Vector) float64 {
	return Half(f.near, f.far, f.overhead, distance, Overhead(f.coef, work))
}

// kernelTerms are the ranges of terms that belong to one kernel.
var kernelTerms = [][2]int{
	{Call, ConvMAC},
	{ConvMAC, PointMAC},
	{PointMAC, DepthwiseMAC},
	{DepthwiseMAC, DenseMAC},
	{DenseMAC, PoolElement},
	{PoolElement, Element},
	{Element, TableElement},
	{TableElement, MoveElement},
	{MoveElement, PlainMAC},
	{PlainMAC, PlainElement},
	{PlainElement, PlainTable},
	{PlainTable, PlainReduce},
	{PlainReduce, PlainMove},
	{PlainMove, Terms},
}

func square(v float64) float64 { return v * v }

// Coefficients reads the cycle coefficients of integer kernels of a runtime.
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

// slowHalf is the half-width of the band where waiting for memory matters: boards differ by a
// factor of two.
const slowHalf = 0.7

// memory is slow memory that weights are read from.
type memory struct{ cost, cache float64 }

// slowMemory returns the memory that holds the model, if it is slow: external flash with a known
// read cost, of a chip without internal flash or where the options say so.
func slowMemory(t *chip.Target, flash string) memory {
	_, internal := t.Flash()
	m := t.SerialFlash()
	if m == nil || flash == chip.FlashRAM || internal && flash != chip.FlashExternal {
		return memory{}
	}
	return memory{*m.ReadCyclesPerByte, float64(m.Cache)}
}

// cycles returns the cycles spent waiting for a layer's weights: once if they fit a quarter of
// the cache, in every pass otherwise. The rest of the cache holds code and data that maps to the
// same lines.
func (s memory) cycles(l *Layer) float64 {
	if s.cost == 0 {
		return 0
	}
	if l.WeightBytes <= s.cache/4 {
		return s.cost * l.WeightBytes
	}
	return s.cost * l.WeightBytes * l.Passes
}
