package choose

import (
	"cmp"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Ways in which losses of layers add up to the loss of the model, as named in [study.Plan]. All
// are approximations: they take the losses of layers as independent.
const (
	// Errors: relative squared errors add up, as independent errors do.
	Errors = "errors"
	// Drops: drops of accuracy, agreement or a user's metric add up.
	Drops = "drops"
	// Noise: signal-to-noise ratios are converted to relative noise powers, which add up.
	Noise = "noise"
	// Angles: one minus the cosine adds up; for small angles it is half the noise power.
	Angles = "angles"
	// Divergences: Kullback-Leibler divergences add up; small ones grow like noise power.
	Divergences = "divergences"
	// Ranks: sensitivities that only rank layers are added for lack of a better rule.
	Ranks = "ranks"
)

// adds says how losses by a metric add up; [Drops] add up otherwise.
var adds = map[string]string{
	"relative_error": Errors, "snr_db": Noise, "kl": Divergences, "magnitude": Ranks, "sensitivity": Ranks, "cosine": Angles,
}

// Metric converts figures of a loss profile to additive losses and back.
type Metric struct {
	// Adds says how losses add up.
	Adds   string
	base   float64
	higher bool
}

// MetricOf returns the metric of a profile. It fails where the figure of the unchanged model is
// needed but unknown.
func MetricOf(s *study.Loss) (Metric, error) {
	base, known := s.Base.Best()
	agreement := s.Metric == "cosine" || s.Metric == "top1"
	m := Metric{Adds: cmp.Or(adds[s.Metric], Drops), base: base, higher: s.Higher || agreement}
	if !known && m.higher && m.Adds != Noise {
		if !agreement {
			return m, fmt.Errorf("loss profile %q: the %s of the unchanged model is unknown", s.Name, s.Metric)
		}
		m.base = 1 // the unchanged model agrees with itself
	}
	return m, nil
}

// Loss returns the additive loss of a figure. Gains count as no loss: a plan never promises a
// model better than the original.
func (m Metric) Loss(v float64) float64 {
	switch {
	case m.Adds == Noise:
		return math.Pow(10, -v/10)
	case m.higher:
		return max(0, m.base-v)
	}
	return max(0, v-m.base)
}

// Bound converts a user's bound on the loss to an additive loss: a remaining ratio in decibels,
// or for other metrics the permitted drop.
func (m Metric) Bound(v float64) float64 {
	if m.Adds == Noise {
		return m.Loss(v)
	}
	return v
}

// UserLoss converts an additive loss to the form of users' bounds, the inverse of [Metric.Bound].
// It is false for the infinite ratio of zero noise.
func (m Metric) UserLoss(loss float64) (float64, bool) {
	if m.Adds == Noise {
		return -10 * math.Log10(loss), loss > 0
	}
	return loss, true
}

// interval is a figure with the ends of its interval, both equal to it if it has none.
type interval struct{ lo, mid, hi float64 }

func (v interval) plus(w interval) interval { return interval{v.lo + w.lo, v.mid + w.mid, v.hi + w.hi} }

func (v interval) scale(f float64) interval { return interval{v.lo * f, v.mid * f, v.hi * f} }

// lerp interpolates between two intervals.
func (v interval) lerp(w interval, share float64) interval {
	return v.scale(1 - share).plus(w.scale(share))
}

// readInterval reads a metric.
func readInterval(m *profile.Metric) (interval, bool) {
	v, ok := m.Best()
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return interval{}, false
	}
	ends := cmp.Or(m.CI95, m.Band)
	if ends == nil {
		return interval{v, v, v}, true
	}
	return interval{min(v, ends[0]), v, max(v, ends[1])}, true
}

// loss returns the additive loss of a metric with its interval.
func (m Metric) loss(v *profile.Metric) (interval, bool) {
	s, ok := readInterval(v)
	if !ok {
		return s, false
	}
	a, b := m.Loss(s.lo), m.Loss(s.hi)
	return interval{min(a, b), m.Loss(s.mid), max(a, b)}, true
}
