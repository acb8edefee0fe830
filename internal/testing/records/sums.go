package records

import (
	"cmp"

	"github.com/opmeter/opmeter/profile"
)

// Sum is what bars or layers of one name come to.
type Sum struct {
	Count   int
	Seconds float64
}

// Bars sums up a timeline by what stands on its bars.
func Bars(p *profile.Profile) map[string]Sum {
	out := map[string]Sum{}
	if p.Timeline == nil {
		return out
	}
	for i := range p.Timeline.Lanes {
		l := &p.Timeline.Lanes[i]
		for j := range l.Starts {
			name := ""
			switch {
			case j < len(l.Labels) && l.Labels[j] >= 0:
				name = p.Timeline.Names[l.Labels[j]]
			case j < len(l.Layers) && l.Layers[j] >= 0:
				y := &p.Layers[l.Layers[j]]
				name = cmp.Or(y.Name, y.Op)
			}
			s := out[name]
			out[name] = Sum{s.Count + 1, s.Seconds + l.Durations[j]}
		}
	}
	return out
}

// Layers sums up a figure by the names of layers, or their operators if it has none.
func Layers(p *profile.Profile, key string) map[string]float64 {
	out := map[string]float64{}
	for i := range p.Layers {
		l := &p.Layers[i]
		if v, ok := l.Value(key); ok {
			out[cmp.Or(l.Name, l.Op)] += v
		}
	}
	return out
}
