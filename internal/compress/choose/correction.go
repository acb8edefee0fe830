package choose

import (
	"cmp"

	"github.com/opmeter/opmeter/study"
)

// Limits of a factor: beyond them it is noise, or has other causes than the curves.
const (
	minFactor = 0.05
	maxFactor = 20
)

// Correct compares the prediction of a plan with its measurement and returns the correction for
// the next plan, based on the one that the plan was made with. added is the speed-up that the
// plan was chosen by ([AdditiveSpeedup]), 0 for none. It compares speed-ups rather than times,
// because both times of a speed-up are measured interleaved. Without a measurement it returns the
// old correction.
func Correct(p *study.Plan, added float64, m Metric, old study.Correction) study.Correction {
	if p.Measured == nil {
		return old
	}
	out := study.Correction{Gain: cmp.Or(old.Gain, 1), Loss: cmp.Or(old.Loss, 1), Extra: old.Extra}
	did, is := p.Measured.Speedup.Best()
	if is && added > 0 && did > 0 && added != 1 {
		out.Gain = clamp(out.Gain*(1-1/did)/(1-1/added), minFactor, maxFactor)
	}
	said, ok := p.Predicted.Loss.Best()
	did, is = p.Measured.Loss.Best()
	if !is {
		return out
	}
	// A ratio of zero noise cannot be expressed: no loss was predicted.
	if said = m.Bound(said); !ok {
		said = 0
	}
	did = max(0, m.Bound(did))
	changed := 0
	for _, c := range p.Choices {
		if !c.Change.IsZero() {
			changed++
		}
	}
	switch {
	case said > 0:
		f := clamp(did/said, minFactor, maxFactor)
		out.Loss, out.Extra = clamp(out.Loss*f, minFactor, maxFactor), out.Extra*f
	case changed > 0:
		out.Extra += did / float64(changed)
	}
	return out
}

func clamp(v, lo, hi float64) float64 { return max(lo, min(hi, v)) }

// correctRatio corrects a time ratio; the result is not negative.
func correctRatio(c study.Correction, r interval) interval {
	g := cmp.Or(c.Gain, 1)
	at := func(v float64) float64 { return max(0, 1-g*(1-v)) }
	return interval{at(r.lo), at(r.mid), at(r.hi)}
}

// correctLoss corrects an additive loss.
func correctLoss(c study.Correction, v interval) interval {
	return v.scale(cmp.Or(c.Loss, 1)).plus(interval{c.Extra, c.Extra, c.Extra})
}
