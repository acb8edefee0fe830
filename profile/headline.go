package profile

import (
	"cmp"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Headline is the figure to quote for an inference.
type Headline struct {
	// Key names the quantity: "latency_s", "undisturbed_latency_s" or "processor_s"; where no time
	// is known the cycles, instructions or ticks that stand for it.
	Key string
	// Value is the figure, in the unit of the quantity. Low and High are its 95 % confidence
	// interval, or the band of an estimate; both are Value if neither is known.
	Value, Low, High float64
	// Verdict is the quality of the measurement, "" if it was not judged.
	Verdict Verdict
}

// Headline returns what reports show as the latency. ok is false if the profile has no such figure:
// nothing ran, or most of the model did not run (see [Profile.Unrun]).
func (p *Profile) Headline() (h Headline, ok bool) {
	key, m := p.Cost()
	if t := p.Trust; t != nil {
		h.Verdict = t.Verdict
		if r := p.Totals.Figure(t.Quote); key == "latency_s" && t.Quote != "" && r != nil {
			if _, has := r.Best(); has {
				key, m = t.Quote, r
			}
		}
	}
	v, ok := m.Best()
	if !ok {
		return Headline{}, false
	}
	h.Key, h.Value, h.Low, h.High = key, v, v, v
	if iv := m.Interval(); iv != nil {
		h.Low, h.High = iv[0], iv[1]
	}
	return h, true
}

// LayerTime is the time of a layer in one inference.
type LayerTime struct {
	Layer *Layer
	// Seconds is over all calls, without the layers of its bodies. Share is the fraction of the
	// sum of all layers.
	Seconds, Share float64
}

// Slowest returns the layers with a time, the slowest first, at most n of them, or all for n < 0.
// It is empty for a profile without times.
func (p *Profile) Slowest(n int) []LayerTime {
	var out []LayerTime
	sum := 0.0
	for i := range p.Layers {
		if v, ok := p.Layers[i].Latency.Best(); ok {
			out = append(out, LayerTime{Layer: &p.Layers[i], Seconds: v})
			sum += v
		}
	}
	sorting.Stable(out, func(a, b LayerTime) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for i := range out {
		if sum > 0 {
			out[i].Share = out[i].Seconds / sum
		}
	}
	if n >= 0 && n < len(out) {
		out = out[:n]
	}
	return out
}
