package sparsify

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// point is a value of a layer at a sparsity.
type point struct{ sparsity, value float64 }

// series is a layer's values over sparsity.
type series struct {
	points []point // raw, in order of sparsity
	saved  []point // made monotone; of a falling series what is saved from its highest value
	base   *float64
	rising bool
}

// newSeries reads values in stored order: it makes them monotone with a running extreme in that
// order, then sorts them by the number of weights that a sparsity zeroes. That is the order of
// sparsities unless there are few weights.
func newSeries(ms Measurements, baseKey string, params int64, rising bool) *series {
	s := &series{rising: rising}
	if len(ms) == 0 {
		return s
	}
	last, most := math.NaN(), math.Inf(-1)
	var smooth []point
	for _, m := range ms {
		if m.Name == baseKey {
			s.base = new(m.Value)
		}
		at, ok := level(m.Name)
		if !ok {
			continue
		}
		if math.IsNaN(last) || rising && m.Value >= last || !rising && m.Value <= last {
			last = m.Value
		}
		most = max(most, last)
		s.points = append(s.points, point{at, m.Value})
		smooth = append(smooth, point{at, last})
	}
	byWeights := func(a, b point) int {
		return int(math.Trunc(a.sparsity*float64(params))) - int(math.Trunc(b.sparsity*float64(params)))
	}
	sorting.Stable(s.points, byWeights)
	sorting.Stable(smooth, byWeights)
	for _, p := range smooth {
		if !rising {
			p.value = most - p.value
		}
		s.saved = append(s.saved, p)
	}
	return s
}

// interpolate is linear between points and beyond the last one; points are sorted by sparsity
// first, as SparseML does.
func interpolate(ps []point, at float64) float64 {
	ps = slices.Clone(ps)
	sorting.Stable(ps, func(a, b point) int { return cmp.Compare(a.sparsity, b.sparsity) })
	if len(ps) == 1 {
		return ps[0].value
	}
	i := 0
	for i < len(ps)-2 && ps[i+1].sparsity < at {
		i++
	}
	a, b := ps[i], ps[i+1]
	if b.sparsity == a.sparsity {
		return b.value
	}
	// In this order: costs that round alike are taken in the order of layers.
	return a.value + (at-a.sparsity)*((b.value-a.value)/(b.sparsity-a.sparsity))
}

// value is the estimate at a sparsity, the baseline's for nil and 0.
func (s *series) value(at *float64) *float64 {
	switch {
	case len(s.points) == 0:
		return nil
	case at == nil || *at == 0:
		return s.base
	}
	return new(interpolate(s.points, *at))
}

// gain is the baseline divided by the estimate; 0 if one of them is zero.
func (s *series) gain(at *float64) *float64 {
	switch {
	case len(s.points) == 0:
		return nil
	case at == nil || *at == 0:
		return new(1.0)
	}
	v := s.value(at)
	if *v == 0 || s.base == nil || *s.base == 0 {
		return new(0.0)
	}
	return new(*s.base / *v)
}

// sensitivity is the distance of the estimate from the baseline: above it for a rising series,
// below it for a falling one.
func (s *series) sensitivity(at *float64) *float64 {
	if len(s.points) == 0 || at == nil || *at == 0 || s.base == nil {
		return nil
	}
	v := *s.value(at) - *s.base
	if !s.rising {
		v = -v
	}
	return &v
}

// scale maps the values of all layers to 0..1.
type scale struct{ lo, hi *float64 }

func (c *scale) add(s *series) {
	for _, p := range s.saved {
		if c.lo == nil || p.value < *c.lo {
			c.lo = new(p.value)
		}
		if c.hi == nil || p.value > *c.hi {
			c.hi = new(p.value)
		}
	}
}

func (c *scale) of(v float64) float64 {
	if c.lo == nil {
		return v
	}
	v -= *c.lo
	if r := *c.hi - *c.lo; r != 0 {
		v /= r
	}
	return v
}

// costs returns the costs of levels 0 to 99 %, none for a layer without data. With most, each
// level has the cost of the most expensive one.
func (s *series) costs(c *scale, most bool) [100]float64 {
	var out [100]float64
	if len(s.saved) == 0 {
		return out
	}
	ps := slices.Clone(s.saved)
	top := math.Inf(-1)
	for _, p := range ps {
		top = max(top, p.value)
	}
	for i := range ps {
		if most {
			ps[i].value = top
		}
		ps[i].value = c.of(ps[i].value)
	}
	for i := range out {
		out[i] = interpolate(ps, float64(i)/100)
	}
	return out
}
