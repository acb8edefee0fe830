package choose

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Ways in which losses of layers add up to that of the model, as [study.Plan] names them. None is
// more than an approximation: it takes what layers lose as independent of each other.
const (
	// Errors: relative squared errors add up, as those of independent errors do.
	Errors = "errors"
	// Drops: what is lost of accuracy, agreement or a user's metric adds up.
	Drops = "drops"
	// Noise: ratios of signal to noise become powers of noise by that of the signal, which add up.
	Noise = "noise"
	// Angles: one less the cosine adds up, which for small angles is half the noise's power.
	Angles = "angles"
	// Divergences: Kullback-Leibler divergences add up; for small ones they grow as powers of noise.
	Divergences = "divergences"
	// Ranks: figures that say no more than which layer is more sensitive add up for want of better.
	Ranks = "ranks"
)

// Metric makes additive losses of the figures of a loss profile, and figures of these.
type Metric struct {
	// Adds is the way in which losses add up.
	Adds   string
	base   float64
	higher bool
}

// MetricOf returns the metric of a profile. It fails where the figure of the unchanged model is
// needed and not known.
func MetricOf(s *study.Loss) (Metric, error) {
	base, known := s.Base.Best()
	m := Metric{Adds: Drops, base: base, higher: s.Higher}
	switch s.Metric {
	case "relative_error":
		m.Adds = Errors
	case "snr_db":
		m.Adds = Noise
		return m, nil
	case "kl":
		m.Adds = Divergences
	case "magnitude", "sensitivity":
		m.Adds = Ranks
	case "cosine":
		m.Adds, m.higher = Angles, true
	case "top1":
		m.higher = true
	}
	if !known && m.higher {
		if m.Adds != Angles && s.Metric != "top1" {
			return m, fmt.Errorf("loss profile %q: the %s of the unchanged model is not known", s.Name, s.Metric)
		}
		m.base = 1 // the unchanged model agrees with itself
	}
	return m, nil
}

// Loss is the additive loss of a figure. Gains count as no loss: a plan promises no model that is
// better than the one it starts from.
func (m Metric) Loss(v float64) float64 {
	switch {
	case m.Adds == Noise:
		return math.Pow(10, -v/10)
	case m.higher:
		return max(0, m.base-v)
	}
	return max(0, v-m.base)
}

// Bound is the additive loss of a bound on the loss as users give it: decibels that are to remain
// of a ratio, for all others how much may be lost.
func (m Metric) Bound(v float64) float64 {
	if m.Adds == Noise {
		return m.Loss(v)
	}
	return v
}

// Shown is the loss as users give bounds on it, the inverse of [Metric.Bound]; false for
// the infinite ratio of no noise.
func (m Metric) Shown(loss float64) (float64, bool) {
	if m.Adds == Noise {
		return -10 * math.Log10(loss), loss > 0
	}
	return loss, true
}

// interval is a figure with the ends of its interval, both itself where it has none.
type interval struct{ lo, mid, hi float64 }

func (v interval) plus(w interval) interval { return interval{v.lo + w.lo, v.mid + w.mid, v.hi + w.hi} }

func (v interval) times(f float64) interval { return interval{v.lo * f, v.mid * f, v.hi * f} }

// mix is the value between two, at a share of the way.
func (v interval) mix(w interval, share float64) interval {
	return v.times(1 - share).plus(w.times(share))
}

// spread reads a metric.
func spread(m *profile.Metric) (interval, bool) {
	v, ok := m.Best()
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return interval{}, false
	}
	ends := m.CI95
	if ends == nil {
		ends = m.Band
	}
	if ends == nil {
		return interval{v, v, v}, true
	}
	return interval{min(v, ends[0]), v, max(v, ends[1])}, true
}

// loss reads the additive loss of a metric with its interval.
func (m Metric) loss(v *profile.Metric) (interval, bool) {
	s, ok := spread(v)
	if !ok {
		return s, false
	}
	a, b := m.Loss(s.lo), m.Loss(s.hi)
	return interval{min(a, b), m.Loss(s.mid), max(a, b)}, true
}
