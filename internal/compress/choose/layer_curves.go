package choose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Options are the input of a plan.
type Options struct {
	Layers []study.Layer
	// Speed may be nil where the cost does not need it.
	Speed *study.Speed
	Loss  *study.Loss
	Goal  study.Goal
	// Limit is the number of bytes for [study.Goal].Fit; Goal.Cost says of which memory.
	Limit float64
	// Keep maps layers that stay unchanged to the causes ([BoundaryLayers] finds the first layer
	// and heads). Layers of the goal's Exclude need not be included.
	Keep map[int]study.Cause
	// WithoutStructures and WithoutFormats exclude changes.
	WithoutStructures []study.Structure
	WithoutFormats    []study.Format
	// Only restricts the changes of a performance profile, nil for all changes and the levels
	// between them.
	Only []study.Change
	// Upper applies loss bounds to the upper end of the interval of the plan's loss. Drops of
	// layers are taken as independent for that. Ends of other losses are added linearly, since
	// they come from the same samples and may all err on one side.
	Upper bool
	// Costs returns time, energy, RAM or flash of a layer with a change where they come neither
	// from Speed nor from counting; false where unknown.
	Costs func(layer int, c study.Change) (float64, bool)
	// Correct scales curves by the results of earlier plans.
	Correct study.Correction
}

// Point is one change of a layer.
type Point struct {
	Change study.Change
	// Cost and Loss are of the layer; losses are additive ([Metric]).
	Cost, Loss float64
	loss       interval
	// side is its effect on times, tied the layers that must have the same change.
	side timeEffect
	tied []int
}

// Curve has the possible changes of a layer, the unchanged layer first.
type Curve struct {
	Layer  int
	Points []Point
	// Cause says why there is only the first point.
	Cause study.Cause
}

// problem is the optimisation problem of a plan.
type problem struct {
	Options
	metric Metric
	kind   string
	// fixed is the cost of the model outside of its layers.
	fixed  float64
	curves []Curve
	// bases are the times of unchanged layers, 0 where unknown. coupled says that points affect
	// other layers.
	bases   []float64
	coupled bool
	// timeModel says how savings add up.
	timeModel timeModel
	// timeProfile is the performance profile with times where Speed has energies.
	timeProfile *study.Speed
	// width linearises the combined margin of drops.
	width float64
	// maxEnumerated is the number of plans up to which all are enumerated.
	maxEnumerated int
	// held are layers whose point is fixed while others are chosen, such as tied ones.
	held map[int]int
	// quick skips the work that only closes small gaps.
	quick bool
}

// Curves returns the curves that plans are chosen from, by layer, corrected and with additive
// losses.
func Curves(o Options) ([]Curve, error) {
	p, err := newProblem(o)
	if err != nil {
		return nil, err
	}
	return p.curves, nil
}

func newProblem(o Options) (*problem, error) {
	p := &problem{Options: o, maxEnumerated: maxChoices, timeProfile: o.Speed}
	if o.Loss == nil {
		return nil, fmt.Errorf("a plan needs a loss profile")
	}
	var err error
	if p.metric, err = MetricOf(o.Loss); err != nil {
		return nil, err
	}
	if p.kind, err = kindOf(&o); err != nil {
		return nil, err
	}
	if p.fromProfile() && o.Speed == nil {
		return nil, fmt.Errorf("a plan for %s needs a performance profile", p.kind)
	}
	if p.fromProfile() && p.kind == Energy {
		if p.Speed = withEnergy(o.Speed); p.Speed == nil {
			return nil, fmt.Errorf("the performance profile %q has no energy figures", o.Speed.Name)
		}
	}
	p.timeModel = p.fitTimeModel()
	p.curves = make([]Curve, len(o.Layers))
	if p.fromProfile() {
		p.fixed = p.findBases()
	}
	for i := range o.Layers {
		p.curves[i] = p.curve(i)
	}
	return p, nil
}

// kindOf returns the cost of the goal.
func kindOf(o *Options) (string, error) {
	g := o.Goal
	set := 0
	for _, is := range []bool{g.Speedup != nil, g.MaxLoss != nil, g.Sparsity != nil, g.Size != nil, g.Fit != ""} {
		if is {
			set++
		}
	}
	if set != 1 {
		return "", fmt.Errorf("a plan has one goal: a speed-up, a loss, a sparsity, a size or a target; %d are given", set)
	}
	switch {
	case g.Speedup != nil && !(*g.Speedup > 0):
		return "", fmt.Errorf("a speed-up is above 0, not %v", *g.Speedup)
	case g.Sparsity != nil && !(*g.Sparsity >= 0 && *g.Sparsity <= 1):
		return "", fmt.Errorf("a sparsity is from 0 to 1, not %v", *g.Sparsity)
	case g.Speedup != nil:
		return Time, nil
	case g.Sparsity != nil:
		return nonzero, nil
	case g.Size != nil:
		return Size, nil
	}
	kind := cmp.Or(g.Cost, Time)
	if g.Fit != "" {
		kind = cmp.Or(g.Cost, Flash)
	}
	if !slices.Contains([]string{Time, MACs, Size, Flash, Energy, RAM}, kind) {
		return "", fmt.Errorf("a cost is time, energy, ram, flash, macs or size, not %q", kind)
	}
	if kind == RAM && o.Costs == nil {
		return "", fmt.Errorf("ram is not additive over layers: it must be planned")
	}
	return kind, nil
}

// measured reports whether the performance profile has measured times.
func (p *problem) measured() bool { return p.Speed.Timed() }

// fromProfile reports whether costs come from the performance profile, timed whether they are
// times.
func (p *problem) fromProfile() bool { return (p.kind == Time || p.kind == Energy) && p.Costs == nil }

func (p *problem) timed() bool { return p.fromProfile() && p.kind == Time }

// withEnergy returns a profile with energies in place of times; nil if it has none.
func withEnergy(s *study.Speed) *study.Speed {
	if s.Energy == nil {
		return nil
	}
	out := *s
	out.Latency, out.Layers, out.Points = s.Energy, slices.Clone(s.Layers), slices.Clone(s.Points)
	bases := map[int]float64{}
	for i := range out.Layers {
		l := &out.Layers[i]
		l.Latency = l.Energy
		bases[l.Layer], _ = l.Energy.Best()
	}
	for i := range out.Points {
		useEnergy(&out.Points[i], bases)
	}
	return &out
}

// useEnergy replaces the times of a point by energies, relative to bases of unchanged layers.
// Where the energy of an affected layer is unknown the point gets the cause [study.NoData].
func useEnergy(x *study.SpeedPoint, bases map[int]float64) {
	none := study.SpeedPoint{Layer: x.Layer, Change: x.Change, Cause: cmp.Or(x.Cause, study.NoData)}
	if x.Cause == study.NoKernel && x.Energy != nil {
		x.Cause = "" // concerns time
	}
	if x.RestS != nil && x.RestJ == nil {
		*x = none
		return
	}
	x.Latency, x.Ratio, x.RestS, x.Affected = x.Energy, nil, x.RestJ, slices.Clone(x.Affected)
	for i := range x.Affected {
		o := &x.Affected[i]
		v, ok := o.Energy.Best()
		if !ok || bases[o.Layer] <= 0 {
			*x = none
			return
		}
		o.Ratio = profile.Value(profile.Estimated, v/bases[o.Layer], "ratio of two estimates")
		if b := o.Energy.Band; b != nil {
			o.Ratio.Band = &[2]float64{b[0] / bases[o.Layer], b[1] / bases[o.Layer]}
		}
	}
}

// base returns the cost of an unchanged layer in the performance profile.
func (p *problem) base(layer int) (float64, bool) {
	for _, t := range p.Speed.Layers {
		if t.Layer != layer {
			continue
		}
		if p.Speed.Counted {
			if t.Ops == nil {
				return 0, false
			}
			return float64(*t.Ops), true
		}
		return t.Latency.Best()
	}
	return 0, false
}

// cost returns the cost of a layer with a change where it is not measured.
func (p *problem) cost(layer int, c study.Change) (float64, bool) {
	switch {
	case p.fromProfile():
		return p.base(layer)
	case p.Costs != nil && (p.kind == Time || p.kind == Energy || p.kind == RAM || p.kind == Flash):
		return p.Costs(layer, c)
	}
	return countedCost(p.kind, &p.Layers[layer], c)
}

// findBases finds the times of unchanged layers, and returns the time outside of layers.
func (p *problem) findBases() float64 {
	p.bases = make([]float64, len(p.Layers))
	for i := range p.Layers {
		p.bases[i], _ = p.base(i)
	}
	return p.outsideLayers()
}

// changeKind is a change without its level.
type changeKind struct {
	structure study.Structure
	format    study.Format
}

// levelCurve has values by rising level.
type levelCurve []levelValue

type levelValue struct {
	level float64
	interval
}

// at interpolates the value at a level between known ones.
func (k levelCurve) at(level float64) (interval, bool) {
	for i, v := range k {
		switch {
		case v.level == level:
			return v.interval, true
		case v.level > level && i == 0:
			return interval{}, false
		case v.level > level:
			return k[i-1].lerp(v.interval, (level-k[i-1].level)/(v.level-k[i-1].level)), true
		}
	}
	return interval{}, false
}

func (k *levelCurve) add(level float64, v interval) {
	i, found := slices.BinarySearchFunc(*k, level, func(e levelValue, l float64) int { return cmp.Compare(e.level, l) })
	if !found {
		*k = slices.Insert(*k, i, levelValue{level, v})
	}
}

// curve collects the points of a layer.
func (p *problem) curve(i int) Curve {
	l := &p.Layers[i]
	c := Curve{Layer: i}
	base, ok := p.cost(i, study.Change{})
	c.Points = []Point{{Cost: base, side: timeEffect{own: unity}}}
	switch {
	case p.Keep[i] != "":
		c.Cause = p.Keep[i]
	case slices.Contains(p.Goal.Exclude, i):
		c.Cause = study.Excluded
	case l.Fixed != "":
		c.Cause = l.Fixed
	case !ok:
		c.Cause = study.NoData
	}
	if c.Cause != "" {
		return c
	}
	losses := p.losses(i)
	if p.fromProfile() {
		p.timedPoints(&c, base, losses)
	} else {
		p.countedPoints(&c, losses)
	}
	for k := range c.Points {
		x := &c.Points[k]
		p.coupled = p.coupled || x.side.affectsOthers() || x.tied != nil
	}
	if len(c.Points) == 1 {
		c.Cause = p.causeOf(i)
	}
	return c
}

// allowed reports whether changes of a kind may be chosen.
func (p *problem) allowed(g changeKind) bool {
	return g != changeKind{} && !slices.Contains(p.WithoutStructures, g.structure) && !slices.Contains(p.WithoutFormats, g.format)
}

// lossCurve has the additive losses of a layer by level, and the layers that must have the same
// change; the first of these layers carries the loss of all.
type lossCurve struct {
	levelCurve
	with []int
}

// losses returns the losses of a layer by kind. A structure and a format that were not measured
// together have the sum of both.
func (p *problem) losses(i int) map[changeKind]lossCurve {
	out := map[changeKind]lossCurve{}
	for _, x := range p.Loss.Points {
		if x.Layer != i || x.Change.IsZero() {
			continue
		}
		if v, ok := p.metric.loss(x.Value); ok {
			g := changeKind{x.Change.Structure, x.Change.Format}
			k := out[g]
			if k.with = x.With; len(k.with) > 0 && slices.Min(k.with) < i {
				v = interval{}
			}
			k.add(x.Change.Level, correctLoss(p.Correct, v))
			out[g] = k
		}
	}
	for g, k := range out {
		if g.format == study.OriginalFormat && g.structure != study.TwoOfFour {
			k.add(0, interval{})
			out[g] = k
		}
	}
	for s, k := range maps.Clone(out) {
		for f, v := range maps.Clone(out) {
			both := changeKind{s.structure, f.format}
			if s.format != study.OriginalFormat || f.structure != study.Dense || s.structure == study.Dense || len(out[both].levelCurve) > 0 {
				continue
			}
			sum := lossCurve{with: k.with}
			for _, e := range k.levelCurve {
				sum.add(e.level, e.plus(v.levelCurve[0].interval))
			}
			out[both] = sum
		}
	}
	return out
}

// effectCurves returns the effects of a layer's changes on times, by kind and level: on the layer
// itself relative to the unchanged one, and on other layers.
func (p *problem) effectCurves(layer int) map[changeKind]*effectCurves {
	out := map[changeKind]*effectCurves{}
	base, _ := p.base(layer)
	for k := range p.Speed.Points {
		x := &p.Speed.Points[k]
		if x.Layer != layer || p.Only != nil && !slices.Contains(p.Only, x.Change) {
			continue
		}
		r, ok := readInterval(x.Ratio)
		if v, is := readInterval(x.Latency); !ok && is && base > 0 && !p.Speed.Counted {
			r, ok = v.scale(1/base), true
		}
		if ok && p.measured() && (x.Cause == study.NoKernel || x.Cause == study.Unsettled) && len(x.Affected) == 0 {
			r = unity // the same kernel runs: a difference is noise
		}
		if ok {
			g := changeKind{x.Change.Structure, x.Change.Format}
			if out[g] == nil {
				out[g] = &effectCurves{others: map[int]levelCurve{}}
			}
			out[g].add(x, r, p.correction())
		}
	}
	return out
}

// correction combines the factor between measured and mixed models ([timeModel]) with the
// correction by earlier plans.
func (p *problem) correction() study.Correction {
	c := p.Correct
	c.Gain = cmp.Or(c.Gain, 1) * p.timeModel.gain
	return c
}

// timedPoints adds the points with known time and loss, at the levels of either, in the range
// that both cover.
func (p *problem) timedPoints(c *Curve, base float64, losses map[changeKind]lossCurve) {
	gains := p.effectCurves(c.Layer)
	for _, g := range groups(gains) {
		if !p.allowed(g) {
			continue
		}
		var levels []float64
		for _, k := range []levelCurve{gains[g].own, losses[g].levelCurve} {
			for _, e := range k {
				levels = append(levels, e.level)
			}
		}
		slices.Sort(levels)
		for _, level := range slices.Compact(levels) {
			s, ok := gains[g].at(level)
			loss, is := losses[g].at(level)
			if ok && is && (level > 0 || g.format != study.OriginalFormat) {
				c.add(g, level, s.own.mid*base+s.extraTime(p.bases), loss)
				x := &c.Points[len(c.Points)-1]
				if x.side, x.tied = s, gains[g].tied; x.tied == nil {
					x.tied = losses[g].with
				}
			}
		}
	}
}

// countedPoints adds the points with known loss.
func (p *problem) countedPoints(c *Curve, losses map[changeKind]lossCurve) {
	for _, g := range groups(losses) {
		if !p.allowed(g) {
			continue
		}
		for _, e := range losses[g].levelCurve {
			change := study.Change{Structure: g.structure, Level: e.level, Format: g.format}
			v, ok := p.cost(c.Layer, change)
			if ok && (e.level > 0 || g.format != study.OriginalFormat) {
				c.add(g, e.level, v, e.interval)
				c.Points[len(c.Points)-1].tied = losses[g].with
			}
		}
	}
}

func (c *Curve) add(g changeKind, level, cost float64, loss interval) {
	c.Points = append(c.Points, Point{Change: study.Change{Structure: g.structure, Level: level, Format: g.format}, Cost: cost, Loss: loss.mid, loss: loss, side: timeEffect{own: unity}})
}

// groups returns the keys in a fixed order: finest structure first, widest format first.
func groups[T any](m map[changeKind]T) []changeKind {
	at := func(g changeKind) (int, int) {
		return slices.Index(study.Structures(), g.structure), slices.Index(study.Formats(), g.format)
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b changeKind) int {
		as, af := at(a)
		bs, bf := at(b)
		return cmp.Or(cmp.Compare(as, bs), cmp.Compare(af, bf), cmp.Compare(a.structure, b.structure), cmp.Compare(a.format, b.format))
	})
}

// causeOf returns why a layer has no points: the most frequent cause in its profile, or no data.
func (p *problem) causeOf(i int) study.Cause {
	best, count := study.NoData, map[study.Cause]int{}
	if !p.fromProfile() {
		return best
	}
	for _, x := range p.Speed.Points {
		if x.Layer != i || x.Cause == "" {
			continue
		}
		if count[x.Cause]++; best == study.NoData || count[x.Cause] > count[best] {
			best = x.Cause
		}
	}
	return best
}
