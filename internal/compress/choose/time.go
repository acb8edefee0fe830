package choose

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/study"
)

// Layers are measured among others with the same change, and run among others with other ones. What that makes of their sum is found with
// models whose layers have different changes ([study.Mixed]): a factor on all that changes save, since caches hold what other layers
// need; and what it takes to convert activations where a layer of 8 bits reads or is read by one of other numbers, by
// the number of elements that do. What is left of the error, of each model by the figures of the others, is the width of the interval.

// model says how times of layers add up.
type model struct {
	// gain multiplies what changes save, convert is the share of the unchanged model's time that it takes to convert all that layers
	// put out. spread is the error that is left, by what was saved, and width how many errors to either side nine of ten times are within.
	gain, convert, spread, width float64
}

// unmixed is for profiles without mixed models: within 0.3 of what was saved were nine of ten random plans of nine networks.
var unmixed = model{gain: 1, spread: 0.3 / normal, width: normal}

// normal is how many standard errors to either side hold nine of ten.
const normal = 1.645

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

// add finds what layers take by all changes that reach them, and adds that up; false where a change's time is not known, or where layers that must
// have the same change do not. Layers with the same change were measured in the same turns: what disturbed one disturbed all, so that their
// errors add up. Those of other turns are independent.
func (p *problem) add(changes []study.Change) (f forecast, ok bool) {
	sides := make([]side, len(p.Layers))
	turns := map[study.Change]float64{}
	for i := range sides {
		if sides[i].own = one; i >= len(changes) || changes[i].IsZero() {
			continue
		}
		c := changes[i]
		gain := p.gains(i)[group{c.Structure, c.Format}]
		if _, known := p.base(i); !known || gain == nil || slices.ContainsFunc(gain.tied, func(l int) bool { return l >= len(changes) || changes[l] != c }) {
			return f, false
		}
		s, known := gain.at(c.Level)
		if !known {
			return f, false
		}
		sides[i] = s
		turns[c] += p.bases[i]*s.own.wide() + s.rest.wide()
		for _, o := range s.others {
			turns[c] += p.bases[o.layer] * o.ratio.wide()
		}
	}
	of, rest := left(sides)
	f.ends = p.total(of, rest)
	f.time = f.ends.mid
	f.saved = math.Abs(p.beyond(rest.mid) - p.beyond(0))
	for i, r := range of {
		f.saved += p.bases[i] * math.Abs(1-r.mid)
	}
	for _, e := range turns {
		f.noise = math.Hypot(f.noise, e/(2*1.96))
	}
	f.converted = converted(p.Layers, changes)
	return f, true
}

func (v interval) wide() float64 { return v.hi - v.lo }

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

// error is that of a forecast by one standard error: of what is left where layers add up, of the measured layers, and of a measurement; t is
// the time forecast.
func (m *model) error(f *forecast, t, whole float64) float64 {
	return math.Hypot(math.Hypot(m.spread*(f.saved+apart*whole), f.noise), repeat*t+moment)
}

// sample is a mixed model: how much longer it took than added up, what was saved, and what is converted, as shares of the unchanged model's
// time, by what the error grows with.
type sample struct {
	error, saved, converted float64
	scale                   float64 // what they are divided by
	forecast                forecast
}

// model finds how times add up. Errors that are left are of forecasts by the other models, each of them measured in turns of its own, as plans are: the
// next one's is within them by the rule of rank (n+1) 0.9, whatever their distribution is, if it is drawn as they are.
func (p *problem) model() model {
	whole, ok := p.Speed.Latency.Best()
	if !ok || whole <= 0 {
		return unmixed
	}
	var all []sample
	var of []study.MixedModel
	for _, m := range p.Speed.Mixed {
		if s, ok := p.sample(&m, model{gain: 1}); ok {
			all, of = append(all, s), append(of, m)
		}
	}
	if len(all) < fewest {
		return unmixed
	}
	var out model
	out.gain, out.convert = fit(all)
	out.gain = 1 - out.gain
	left := make([]sample, len(all))
	errors, times := make([]float64, len(all)), make([]float64, len(all))
	squares := 0.0
	for k := range all {
		a, b := fit(slices.Delete(slices.Clone(all), k, k+1))
		s, _ := p.sample(&of[k], model{gain: 1 - a})
		e := s.error - b*s.converted
		squares += e * e
		left[k], errors[k] = s, math.Abs(e)*s.scale*whole
		times[k] = s.forecast.time + b*s.forecast.converted*whole
	}
	out.spread = math.Sqrt(squares / float64(len(all)))
	for k := range errors {
		errors[k] /= out.error(&left[k].forecast, times[k], whole)
	}
	out.width = max(1, stats.Conformal(errors, 0.9)) // no less than a measurement repeats to
	return out
}

// sample compares a mixed model with its forecast by the product of all factors, but for conversions; false where that is not known.
func (p *problem) sample(m *study.MixedModel, by model) (s sample, ok bool) {
	q := &problem{Options: Options{Layers: p.Layers, Speed: p.Speed}, kind: Time, sums: by}
	q.rest()
	v, ok := m.Ratio.Best()
	f, is := q.add(m.Changes)
	if !ok || !is {
		return s, false
	}
	whole, _ := p.Speed.Latency.Best()
	scale := f.saved/whole + apart
	return sample{(v - f.time/whole) / scale, f.saved / whole / scale, f.converted / scale, scale, f}, true
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
	t.mid += p.sums.convert * f.converted * whole
	wide := p.sums.width * p.sums.error(&f, t.mid, whole)
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
	whole := p.rest()
	f, ok := p.add(changes)
	if !ok || f.time <= 0 {
		return 0, false
	}
	for i := range p.Layers {
		v, _ := p.base(i)
		whole += v
	}
	return whole / f.time, true
}
