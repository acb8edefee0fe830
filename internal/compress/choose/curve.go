package choose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Options say what a plan is made of.
type Options struct {
	Layers []study.Layer
	// Speed may be nil where the cost does not come from it.
	Speed *study.Speed
	Loss  *study.Loss
	Goal  study.Goal
	// Limit is the number of bytes that [study.Goal].Fit stands for; Goal.Cost says of what.
	Limit float64
	// Keep are layers, by position, that stay as they are, with the reason ([Ends] finds the first
	// layer and heads). Those of the goal's Exclude need not be in it.
	Keep map[int]study.Cause
	// WithoutStructures and WithoutFormats leave changes out.
	WithoutStructures []study.Structure
	WithoutFormats    []study.Format
	// Only are the changes of a performance profile that may be chosen, nil for all and the levels between them.
	Only []study.Change
	// Upper has bounds on the loss hold for the upper end of the interval of the plan's loss.
	// Drops of layers are taken as independent for that; ends of other losses are added up, since
	// they come from the same samples and may all lie on one side.
	Upper bool
	// Costs gives time, energy, RAM or flash of a layer with a change where they come neither from
	// Speed nor from counting; false where it is not known.
	Costs func(layer int, c study.Change) (float64, bool)
	// Correct scales curves by what earlier plans did.
	Correct Correction
}

// Point is one way to treat a layer.
type Point struct {
	Change study.Change
	// Cost and Loss are of the layer; losses are additive ones ([Metric]).
	Cost, Loss float64
	loss       interval
	// side is what it does beyond the layer, tied the layers that must have the same change.
	side side
	tied []int
}

// Curve are the ways to treat a layer, the unchanged one first.
type Curve struct {
	Layer  int
	Points []Point
	// Cause says why there is none but the first.
	Cause study.Cause
}

// problem is what a plan is chosen from.
type problem struct {
	Options
	metric Metric
	kind   string
	// fixed is the cost of the model outside of its layers.
	fixed  float64
	curves []Curve
	// bases are the times of unchanged layers, 0 where they are not known; sides says that points do something beyond their layers.
	bases []float64
	sides bool
	// sums says how far what changes save adds up.
	sums model
	// clock is the performance profile where Speed has energies.
	clock *study.Speed
	// width is the one that upper ends of drops are made additive with.
	width float64
	// few is how many plans are looked through one by one.
	few int
	// held are layers that keep one of their points while others are chosen, such as those that are tied.
	held map[int]int
	// quick has plans made without what only closes small gaps.
	quick bool
}

// Curves returns the curves that plans are chosen from, by layer, corrected and with losses as
// they add up.
func Curves(o Options) ([]Curve, error) {
	p, err := newProblem(o)
	if err != nil {
		return nil, err
	}
	return p.curves, nil
}

func newProblem(o Options) (*problem, error) {
	p := &problem{Options: o, few: maxChoices, clock: o.Speed}
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
	if p.profiled() && o.Speed == nil {
		return nil, fmt.Errorf("a plan for %s needs a performance profile", p.kind)
	}
	if p.profiled() && p.kind == Energy {
		if p.Speed = energies(o.Speed); p.Speed == nil {
			return nil, fmt.Errorf("the performance profile %q tells no energy", o.Speed.Name)
		}
	}
	p.sums = model{gain: 1}
	if p.here() {
		p.sums = p.model()
	}
	p.curves = make([]Curve, len(o.Layers))
	if p.profiled() {
		p.fixed = p.rest()
	}
	for i := range o.Layers {
		p.curves[i] = p.curve(i)
	}
	return p, nil
}

// kindOf is the cost that the goal speaks of.
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
		return "", fmt.Errorf("ram does not add up over layers: it is planned")
	}
	return kind, nil
}

// here says whether there is a performance profile of times that were measured.
func (p *problem) here() bool { return p.Speed.Timed() }

// profiled says whether costs come from the performance profile, timed whether they are times.
func (p *problem) profiled() bool { return (p.kind == Time || p.kind == Energy) && p.Costs == nil }

func (p *problem) timed() bool { return p.profiled() && p.kind == Time }

// energies has energy in the place of time; nil where a profile does not tell any.
func energies(s *study.Speed) *study.Speed {
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

// useEnergy has a point tell energies by those of unchanged layers. Where one is not known of what becomes smaller with the layer the change is no
// choice, for want of a figure.
func useEnergy(x *study.SpeedPoint, bases map[int]float64) {
	none := study.SpeedPoint{Layer: x.Layer, Change: x.Change, Cause: cmp.Or(x.Cause, study.NoData)}
	if x.Cause == study.NoKernel && x.Energy != nil {
		x.Cause = "" // of time
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
		o.Ratio = profile.Value(profile.Estimated, v/bases[o.Layer], "estimates of both")
		if b := o.Energy.Band; b != nil {
			o.Ratio.Band = &[2]float64{b[0] / bases[o.Layer], b[1] / bases[o.Layer]}
		}
	}
}

// base is the cost of an unchanged layer in the performance profile.
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

// cost is that of a layer where it is no measured one with a change.
func (p *problem) cost(layer int, c study.Change) (float64, bool) {
	switch {
	case p.profiled():
		return p.base(layer)
	case p.Costs != nil && (p.kind == Time || p.kind == Energy || p.kind == RAM || p.kind == Flash):
		return p.Costs(layer, c)
	}
	return counted(p.kind, &p.Layers[layer], c)
}

// rest is what the model takes beyond its layers, whose times it finds.
func (p *problem) rest() float64 {
	p.bases = make([]float64, len(p.Layers))
	for i := range p.Layers {
		p.bases[i], _ = p.base(i)
	}
	return p.outside()
}

// group is what points of a curve share.
type group struct {
	structure study.Structure
	format    study.Format
}

// known are values by level, rising.
type known []entry

type entry struct {
	level float64
	interval
}

// at is the value at a level between known ones.
func (k known) at(level float64) (interval, bool) {
	for i, v := range k {
		switch {
		case v.level == level:
			return v.interval, true
		case v.level > level && i == 0:
			return interval{}, false
		case v.level > level:
			return k[i-1].mix(v.interval, (level-k[i-1].level)/(v.level-k[i-1].level)), true
		}
	}
	return interval{}, false
}

func (k *known) add(level float64, v interval) {
	i, found := slices.BinarySearchFunc(*k, level, func(e entry, l float64) int { return cmp.Compare(e.level, l) })
	if !found {
		*k = slices.Insert(*k, i, entry{level, v})
	}
}

// curve gathers the points of a layer.
func (p *problem) curve(i int) Curve {
	l := &p.Layers[i]
	c := Curve{Layer: i}
	base, ok := p.cost(i, study.Change{})
	c.Points = []Point{{Cost: base, side: side{own: one}}}
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
	if p.profiled() {
		p.timedPoints(&c, base, losses)
	} else {
		p.countedPoints(&c, losses)
	}
	for k := range c.Points {
		x := &c.Points[k]
		p.sides = p.sides || x.side.reaches() || x.tied != nil
	}
	if len(c.Points) == 1 {
		c.Cause = p.why(i)
	}
	return c
}

// allowed says whether changes of a group may be chosen.
func (p *problem) allowed(g group) bool {
	return g != group{} && !slices.Contains(p.WithoutStructures, g.structure) && !slices.Contains(p.WithoutFormats, g.format)
}

// lost are the additive losses of a layer by level, and the layers that must have the same change: the first of them has the loss of all.
type lost struct {
	known
	with []int
}

// losses are those of a layer by group. A structure and numbers that were not tried together have the sum of both.
func (p *problem) losses(i int) map[group]lost {
	out := map[group]lost{}
	for _, x := range p.Loss.Points {
		if x.Layer != i || x.Change.IsZero() {
			continue
		}
		if v, ok := p.metric.loss(x.Value); ok {
			g := group{x.Change.Structure, x.Change.Format}
			k := out[g]
			if k.with = x.With; len(k.with) > 0 && slices.Min(k.with) < i {
				v = interval{}
			}
			k.add(x.Change.Level, p.Correct.loss(v))
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
			both := group{s.structure, f.format}
			if s.format != study.OriginalFormat || f.structure != study.Dense || s.structure == study.Dense || len(out[both].known) > 0 {
				continue
			}
			sum := lost{with: k.with}
			for _, e := range k.known {
				sum.add(e.level, e.plus(v.known[0].interval))
			}
			out[both] = sum
		}
	}
	return out
}

// gains are what changes of a layer do to times, by group and level: of the layer by the unchanged one, and of what else they reach.
func (p *problem) gains(layer int) map[group]*sideCurves {
	out := map[group]*sideCurves{}
	base, _ := p.base(layer)
	for k := range p.Speed.Points {
		x := &p.Speed.Points[k]
		if x.Layer != layer || p.Only != nil && !slices.Contains(p.Only, x.Change) {
			continue
		}
		r, ok := spread(x.Ratio)
		if v, is := spread(x.Latency); !ok && is && base > 0 && !p.Speed.Counted {
			r, ok = v.times(1/base), true
		}
		if ok {
			g := group{x.Change.Structure, x.Change.Format}
			if out[g] == nil {
				out[g] = &sideCurves{others: map[int]known{}}
			}
			out[g].add(x, r, p.correction())
		}
	}
	return out
}

// correction is what makes times of layers with a change those that they have among others ([model]), and by what earlier plans did.
func (p *problem) correction() Correction {
	c := p.Correct
	c.Gain = or1(c.Gain) * p.sums.gain
	return c
}

// timedPoints are those of which both time and loss are known, at the levels of either between
// the first and the last of both.
func (p *problem) timedPoints(c *Curve, base float64, losses map[group]lost) {
	gains := p.gains(c.Layer)
	for _, g := range groups(gains) {
		if !p.allowed(g) {
			continue
		}
		var levels []float64
		for _, k := range []known{gains[g].own, losses[g].known} {
			for _, e := range k {
				levels = append(levels, e.level)
			}
		}
		slices.Sort(levels)
		for _, level := range slices.Compact(levels) {
			s, ok := gains[g].at(level)
			loss, is := losses[g].at(level)
			if ok && is && (level > 0 || g.format != study.OriginalFormat) {
				c.add(g, level, s.own.mid*base+s.adds(p.bases), loss)
				x := &c.Points[len(c.Points)-1]
				if x.side, x.tied = s, gains[g].tied; x.tied == nil {
					x.tied = losses[g].with
				}
			}
		}
	}
}

// countedPoints are those of which the loss is known.
func (p *problem) countedPoints(c *Curve, losses map[group]lost) {
	for _, g := range groups(losses) {
		if !p.allowed(g) {
			continue
		}
		for _, e := range losses[g].known {
			change := study.Change{Structure: g.structure, Level: e.level, Format: g.format}
			v, ok := p.cost(c.Layer, change)
			if ok && (e.level > 0 || g.format != study.OriginalFormat) {
				c.add(g, e.level, v, e.interval)
				c.Points[len(c.Points)-1].tied = losses[g].with
			}
		}
	}
}

func (c *Curve) add(g group, level, cost float64, loss interval) {
	c.Points = append(c.Points, Point{Change: study.Change{Structure: g.structure, Level: level, Format: g.format}, Cost: cost, Loss: loss.mid, loss: loss, side: side{own: one}})
}

// groups are the keys in a fixed order: finest structure first, widest numbers first.
func groups[T any](m map[group]T) []group {
	at := func(g group) (int, int) {
		return slices.Index(study.Structures(), g.structure), slices.Index(study.Formats(), g.format)
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b group) int {
		as, af := at(a)
		bs, bf := at(b)
		return cmp.Or(cmp.Compare(as, bs), cmp.Compare(af, bf), cmp.Compare(a.structure, b.structure), cmp.Compare(a.format, b.format))
	})
}

// why says why a layer has no points: what its profile says of all changes, or nothing known.
func (p *problem) why(i int) study.Cause {
	cause := study.Cause("")
	if !p.profiled() {
		return study.NoData
	}
	for _, x := range p.Speed.Points {
		if x.Layer != i || x.Cause == "" {
			continue
		}
		if cause != "" && x.Cause != cause {
			return study.NoData
		}
		cause = x.Cause
	}
	return cmp.Or(cause, study.NoData)
}
