package choose

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/stats"
	"github.com/opmeter/opmeter/study"
)

// Layers are measured among others with the same change, and run among others with other ones. What that makes of their sum is found with
// models whose layers have different changes ([study.Mixed]): a factor on all that changes save, since caches hold what other layers
// need; and what it takes to convert activations where a layer of 8 bits reads or is read by one of other numbers, by
// the number of elements that do. What is left of the error, of each model by the figures of the others, is the width of the interval.

// model says how times of layers add up.
type model struct {
	// gain multiplies what changes save, convert is the share of the unchanged model's time that it takes to convert all that layers
	// put out. width is a bound on the error that is left, by what was saved.
	gain, convert, width float64
}

// unmixed is for profiles without mixed models: an error that nine of ten random plans of nine networks were within.
var unmixed = model{gain: 1, width: 0.3}

// fewest is how many mixed models it takes to find a model.
const fewest = 4

// forecast is the time of a model with a change for each layer as the times of its layers add up.
type forecast struct {
	// time is what the model takes, in the unit of the profile, ends where it lies if all layers err to the same side, noise its standard
	// error as far as intervals of layers tell it, saved how far changes take layers' times from what they were, and
	// converted the share of what layers put out that is converted.
	time, noise, saved, converted float64
	ends                          interval
}

// add puts the times of layers together, each by the ratios of all changes that reach it ([problem.product]); false where one is not known. Layers
// with the same change were measured in the same turns: what disturbed one disturbed all, so that their errors add up. Those of other
// turns are independent.
func (p *problem) add(changes []study.Change) (f forecast, ok bool) {
	p.rest() // finds the times of unchanged layers
	of := make([]interval, len(changes))
	for i := range of {
		of[i] = one
	}
	var rest interval
	turns := map[study.Change]float64{}
	for i, c := range changes {
		if c.IsZero() {
			continue
		}
		base, known := p.base(i)
		if !known {
			return f, false
		}
		g := group{c.Structure, c.Format}
		ratios, sides := p.measured(i, base)
		r, known := ratios[g].at(c.Level)
		if !known {
			return f, false
		}
		s := sides[g].at(c.Level)
		of[i], rest = of[i].by(r), rest.plus(s.rest)
		const both = 2 * 1.96 // standard errors between the ends of an interval of 95 %
		turns[c] += (base*(r.hi-r.lo) + s.rest.hi - s.rest.lo) / both
		for _, o := range s.others {
			of[o.layer] = of[o.layer].by(o.ratio)
			turns[c] += p.bases[o.layer] * (o.ratio.hi - o.ratio.lo) / both
		}
	}
	f.ends = p.product(of, rest)
	f.time = f.ends.mid
	f.saved = math.Abs(rest.mid)
	for i, r := range of {
		f.saved += p.bases[i] * math.Abs(1-r.mid)
	}
	for _, e := range turns {
		f.noise = math.Hypot(f.noise, e)
	}
	f.converted = converted(p.Layers, changes)
	return f, true
}

// converted is the share of what layers put out that is between layers of activations of 8 bits and others, taken as if each
// layer read the one before.
func converted(layers []study.Layer, changes []study.Change) float64 {
	crossed, all, last := 0.0, 0.0, 0.0
	was := false
	for i, c := range changes {
		is := c.Format == study.Int8
		l := &layers[i]
		n := 0.0
		if l.MACs != nil && l.Cols > 0 {
			n = float64(*l.MACs) / float64(l.Cols)
		}
		if i == 0 {
			last = n // what it reads is not known
		}
		if is != was {
			crossed += last
		}
		all, last, was = all+n, n, is
	}
	if was {
		crossed += last
	}
	if all == 0 {
		return 0
	}
	return crossed / all
}

// Errors grow with what is saved; besides, a part of the whole time is off whatever is changed.
const (
	apart  = 0.1    // of the whole time counts as if it were saved
	repeat = 0.01   // of a model's time: by so much medians of other turns differ
	moment = 100e-9 // seconds: what it takes to call an inference and read the clock moves with where a model lies in memory
)

// sample is a mixed model: how much longer it took than added up, what was saved, and what is converted, as shares of the unchanged model's
// time, by what the error grows with.
type sample struct{ error, saved, converted float64 }

// model finds how times add up.
func (p *problem) model() model {
	plain := &problem{Options: Options{Layers: p.Layers, Speed: p.Speed}, kind: Time, sums: model{gain: 1}}
	whole, ok := p.Speed.Latency.Best()
	if !ok || whole <= 0 {
		return unmixed
	}
	var all []sample
	for _, m := range p.Speed.Mixed {
		v, is := m.Ratio.Best()
		if f, ok := plain.add(m.Changes); ok && is {
			scale := whole / (f.saved + apart*whole)
			all = append(all, sample{(v - f.time/whole) * scale, f.saved / whole * scale, f.converted * scale})
		}
	}
	if len(all) < fewest {
		return unmixed
	}
	a, b := fit(all)
	var left []float64
	for k, s := range all {
		a, b := fit(slices.Delete(slices.Clone(all), k, k+1))
		left = append(left, math.Abs(s.error-a*s.saved-b*s.converted))
	}
	return model{gain: 1 - a, convert: b, width: stats.Conformal(left, 0.9)}
}

// fit finds error = a saved + b converted by least squares; conversions make nothing faster.
func fit(all []sample) (a, b float64) {
	var ss, sc, cc, es, ec float64
	for _, x := range all {
		ss, sc, cc = ss+x.saved*x.saved, sc+x.saved*x.converted, cc+x.converted*x.converted
		es, ec = es+x.error*x.saved, ec+x.error*x.converted
	}
	if d := ss*cc - sc*sc; d > 1e-9*ss*cc {
		if a, b = (es*cc-ec*sc)/d, (ec*ss-es*sc)/d; b >= 0 {
			return a, b
		}
	}
	if ss == 0 {
		return 0, 0
	}
	return es / ss, 0
}

// forecast is the time of a model with a change for each layer, with the interval that nine of ten are within; false where it is not known.
func (p *problem) forecast(changes []study.Change) (t interval, ok bool) {
	f, ok := p.add(changes)
	if !ok || !p.here() {
		return f.ends, ok
	}
	t.mid = f.time
	if f.saved == 0 {
		t.lo, t.hi = t.mid, t.mid
		return t, true
	}
	whole, _ := p.Speed.Latency.Best()
	const normal = 1.645 // standard errors to either side hold nine of ten
	t.mid += p.sums.convert * f.converted * whole
	wide := math.Hypot(math.Hypot(p.sums.width*(f.saved+apart*whole), normal*f.noise), repeat*t.mid+moment)
	t.lo, t.hi = max(0, t.mid-wide), t.mid+wide
	return t, true
}

// Forecast predicts the time of a model with a change for each layer; nothing is set where that is not known.
func Forecast(s *study.Speed, layers []study.Layer, changes []study.Change) (o study.Outcome) {
	p := &problem{Options: Options{Speed: s, Layers: layers}, kind: Time}
	p.sums = model{gain: 1}
	if p.here() {
		p.sums = p.model()
	}
	p.fixed = p.rest()
	p.time(&o, changes)
	return o
}

// Added is how many times as fast a model is by the times of its layers alone, which plans are chosen by: they leave out what it takes to
// convert activations, which is no layer's own. False where it is not known.
func Added(o Options, changes []study.Change) (speedup float64, ok bool) {
	p := &problem{Options: o, kind: Time}
	p.Costs, p.Only, p.sums = nil, nil, model{gain: 1}
	if o.Speed == nil {
		return 0, false
	}
	if p.here() {
		p.sums = p.model()
	}
	f, ok := p.add(changes)
	if !ok || f.time <= 0 {
		return 0, false
	}
	whole := p.rest()
	for i := range p.Layers {
		v, _ := p.base(i)
		whole += v
	}
	return whole / f.time, true
}
