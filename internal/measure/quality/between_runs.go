package quality

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// fewSpeeds is the number of earlier measurements below which they say nothing.
const fewSpeeds = 3

// BetweenRuns adds to a verdict what the speed of the machine changes between measurements, which
// lasts longer than one of them: a repeated run may have the speed of any earlier one.
func BetweenRuns(p *profile.Profile, earlier []float64) {
	t := p.Trust
	speed, ok := Speed(p)
	if t == nil || t.Tolerance == nil || !ok || len(earlier) < fewSpeeds {
		return
	}
	off := make([]float64, len(earlier))
	for i, s := range earlier {
		off[i] = math.Abs(speed/s - 1)
	}
	slices.Sort(off)
	e := stats.Quantile(off, 0.95)
	d := Doubts(slices.DeleteFunc(slices.Clone(t.Doubts), func(x profile.Doubt) bool { return x.Code == profile.DoubtTolerance }))
	d.Above(profile.DoubtEarlier, e, Comparable, 0)
	shares := slices.ContainsFunc(p.Layers, func(l profile.Layer) bool { return l.Share != nil })
	n := d.Trust(Tolerance(*t.Tolerance, e), shares)
	t.Verdict, t.Fit, t.Doubts, t.Tolerance = n.Verdict, n.Fit, n.Doubts, n.Tolerance
}

// Speed returns the machine's speed at the stated latency: that of its mode, if the speed explains
// the modes.
func Speed(p *profile.Profile) (float64, bool) {
	if t := p.Trust; t != nil && t.ModesBySpeed {
		for _, m := range t.Modes {
			if m.Headline && m.Speed != nil {
				return *m.Speed, true
			}
		}
	}
	v, ok := p.Totals.Value("machine_speed")
	return v, ok && v > 0
}
