package choose

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/study"
)

// Layers are measured in models where all layers have the same change, but run in models with
// different changes. The effect on the sum of times is estimated from models with mixed changes
// ([study.MixedModel]). It has two parts: a factor on all savings, since caches hold what other
// layers need, and the cost of converting activations between int8 layers and others, by the
// number of elements. The remaining errors, each model predicted from the others, give the
// interval width.

// timeModel describes how times of layers add up.
type timeModel struct {
	// gain multiplies the savings of changes. convert is the time to convert all layer outputs,
	// as a share of the unchanged model's time. spread is the remaining error per saved time, and
	// width the number of standard errors on either side that covers nine of ten times.
	gain, convert, spread, width float64
}

// defaultTimeModel is for profiles without mixed models: nine of ten random plans of nine
// networks were within 0.3 of the savings.
var defaultTimeModel = timeModel{gain: 1, spread: 0.3 / z90, width: z90}

// z90 is the number of standard errors on either side that covers nine of ten.
const z90 = 1.645

// minMixedModels is the minimum number of mixed models for a fit.
const minMixedModels = 4

// layerForecast is the time of a model with a change for each layer, as the sum of its layer
// times.
type layerForecast struct {
	// time is the model's time in the unit of the profile, ends its interval if all layers err on
	// the same side, and noise its standard error from the layers' intervals. saved is the total
	// change of layer times, and converted the share of layer outputs that is converted.
	time, noise, saved, converted float64
	ends                          interval
}

// addUp sums the times of layers under all changes that affect them. It is false where a change's
// time is unknown, or where layers that must have the same change do not. Layers with the same
// change were measured together: a disturbance affects all of them, so their errors add up
// linearly. Errors of different changes are independent.
func (p *problem) addUp(changes []study.Change) (f layerForecast, ok bool) {
	sides := make([]timeEffect, len(p.Layers))
	turns := map[study.Change]float64{}
	for i := range sides {
		if sides[i].own = unity; i >= len(changes) || changes[i].IsZero() {
			continue
		}
		c := changes[i]
		gain := p.effectCurves(i)[changeKind{c.Structure, c.Format}]
		if _, known := p.base(i); !known || gain == nil || slices.ContainsFunc(gain.tied, func(l int) bool { return l >= len(changes) || changes[l] != c }) {
			return f, false
		}
		s, known := gain.at(c.Level)
		if !known {
			return f, false
		}
		sides[i] = s
		turns[c] += p.bases[i]*s.own.width() + s.rest.width()
		for _, o := range s.others {
			turns[c] += p.bases[o.layer] * o.ratio.width()
		}
	}
	// Smaller inputs were measured with unchanged readers. A reader in another format may gain
	// anything between that and nothing.
	for i := range sides {
		for _, o := range sides[i].others {
			if o.layer < len(changes) && changes[o.layer].Format != study.OriginalFormat && o.ratio.mid < 1 {
				turns[changes[i]] += 2 * p.bases[o.layer] * sides[o.layer].own.mid * (1 - o.ratio.mid)
			}
		}
	}
	of, rest := combineEffects(sides)
	f.ends = p.modelTime(of, rest)
	f.time = f.ends.mid
	f.saved = math.Abs(p.outsideWith(rest.mid) - p.outsideWith(0))
	for i, r := range of {
		f.saved += p.bases[i] * math.Abs(1-r.mid)
	}
	for _, e := range turns {
		f.noise = math.Hypot(f.noise, e/(2*1.96))
	}
	f.converted = convertedShare(p.Layers, changes)
	return f, true
}

func (v interval) width() float64 { return v.hi - v.lo }

// convertedShare is the share of layer outputs between int8 layers and others, as if each layer
// read the previous one.
func convertedShare(layers []study.Layer, changes []study.Change) float64 {
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
			last = n // size of its input is unknown
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

// Errors grow with the savings; in addition a part of the total time is uncertain for any change.
const (
	overheadShare = 0.1  // of the total time counts as if it were saved
	repeatability = 0.01 // of a model's time: difference between medians of separate measurements
	// seconds: call and clock overhead varies with the memory placement of a model
	callJitter = 100e-9
)

// standardError is the standard error of a forecast: of the additive model, of the measured
// layers, and of a measurement. t is the forecast time.
func (m *timeModel) standardError(f *layerForecast, t, whole float64) float64 {
	return math.Hypot(math.Hypot(m.spread*(f.saved+overheadShare*whole), f.noise), repeatability*t+callJitter)
}

// mixedSample is a mixed model: its additional time over the sum, the savings, and the
// conversions, as shares of the unchanged model's time divided by scale, with which the error
// grows.
type mixedSample struct {
	error, saved, converted float64
	scale                   float64 // common divisor
	forecast                layerForecast
}

// fitTimeModel fits how times add up. The errors are leave-one-out forecasts, each model measured
// separately as plans are. The next error is within them by the conformal rule of rank (n+1) 0.9,
// whatever their distribution, if it is drawn like them. Without measured times, they just add up.
func (p *problem) fitTimeModel() timeModel {
	if !p.measured() {
		return timeModel{gain: 1}
	}
	whole, ok := p.Speed.Latency.Best()
	if !ok || whole <= 0 {
		return defaultTimeModel
	}
	var all []mixedSample
	var of []study.MixedModel
	for _, m := range p.Speed.Mixed {
		if s, ok := p.sample(&m, timeModel{gain: 1}); ok {
			all, of = append(all, s), append(of, m)
		}
	}
	if len(all) < minMixedModels {
		return defaultTimeModel
	}
	var out timeModel
	out.gain, out.convert = fit(all)
	out.gain = 1 - out.gain
	left := make([]mixedSample, len(all))
	errors, times := make([]float64, len(all)), make([]float64, len(all))
	squares := 0.0
	for k := range all {
		a, b := fit(slices.Delete(slices.Clone(all), k, k+1))
		s, _ := p.sample(&of[k], timeModel{gain: 1 - a})
		e := s.error - b*s.converted
		squares += e * e
		left[k], errors[k] = s, math.Abs(e)*s.scale*whole
		times[k] = s.forecast.time + b*s.forecast.converted*whole
	}
	out.spread = math.Sqrt(squares / float64(len(all)))
	for k := range errors {
		errors[k] /= out.standardError(&left[k].forecast, times[k], whole)
	}
	out.width = max(1, stats.Conformal(errors, 0.9)) // not below the repeatability of a measurement
	return out
}

// sample compares a mixed model with its forecast by the product of all factors, without
// conversions; false where it is unknown.
func (p *problem) sample(m *study.MixedModel, by timeModel) (s mixedSample, ok bool) {
	q := &problem{Options: Options{Layers: p.Layers, Speed: p.Speed}, kind: Time, timeModel: by}
	q.findBases()
	v, ok := m.Ratio.Best()
	f, is := q.addUp(m.Changes)
	if !ok || !is {
		return s, false
	}
	whole, _ := p.Speed.Latency.Best()
	scale := f.saved/whole + overheadShare
	return mixedSample{(v - f.time/whole) / scale, f.saved / whole / scale, f.converted / scale, scale, f}, true
}

// fit fits error = a·saved + b·converted by least squares; b is not negative.
func fit(all []mixedSample) (a, b float64) {
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

// forecast returns the time of a model with a change for each layer, with its 90 % interval;
// false where unknown.
func (p *problem) forecast(changes []study.Change) (t interval, ok bool) {
	f, ok := p.addUp(changes)
	if !ok || !p.measured() {
		return f.ends, ok
	}
	t.mid = f.time
	if f.saved == 0 {
		t.lo, t.hi = t.mid, t.mid
		return t, true
	}
	whole, _ := p.Speed.Latency.Best()
	t.mid += p.timeModel.convert * f.converted * whole
	wide := p.timeModel.width * p.timeModel.standardError(&f, t.mid, whole)
	t.lo, t.hi = max(0, t.mid-wide), t.mid+wide
	return t, true
}

// Forecast predicts the time of a model with a change for each layer; the fields stay empty where
// it is unknown.
func Forecast(s *study.Speed, layers []study.Layer, changes []study.Change) (o study.Outcome) {
	p := &problem{Options: Options{Speed: s, Layers: layers}, kind: Time}
	p.timeModel = p.fitTimeModel()
	p.fixed = p.findBases()
	p.predictTime(&o, changes)
	return o
}

// AdditiveSpeedup is the speed-up by the times of layers alone, which plans are chosen by. It
// excludes the conversion of activations, which belongs to no single layer. False where unknown.
func AdditiveSpeedup(o Options, changes []study.Change) (speedup float64, ok bool) {
	p := &problem{Options: o, kind: Time}
	p.Costs, p.Only = nil, nil
	if o.Speed == nil {
		return 0, false
	}
	p.timeModel = p.fitTimeModel()
	whole := p.findBases()
	f, ok := p.addUp(changes)
	if !ok || f.time <= 0 {
		return 0, false
	}
	for _, v := range p.bases {
		whole += v
	}
	return whole / f.time, true
}
