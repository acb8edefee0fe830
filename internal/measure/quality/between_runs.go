package quality

import (
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// fewSpeeds is the number of earlier measurements below which they say nothing.
const fewSpeeds = 3

// Log keeps the speeds of earlier measurements. Add adds one, unless it is 0, and returns the
// earlier ones.
type Log interface {
	Add(speed float64, at time.Time) (earlier []float64)
}

// BetweenRuns adds to a verdict what the speed of the machine changes between measurements, which
// lasts longer than one of them: a repeated run may have the speed of any earlier one. Other
// programs slow the reference loop, too: the speed is known only if the measurement is good and was
// not disturbed.
func BetweenRuns(p *profile.Profile, log Log, at time.Time) {
	speed, ok := Speed(p)
	if !ok {
		return
	}
	disturbed := p.Trust.Verdict != profile.Good || slices.ContainsFunc(p.Trust.Doubts, func(d profile.Doubt) bool { return slices.Contains(disturbing, d.Code) })
	if disturbed {
		speed = 0
	}
	earlier := log.Add(speed, at)
	if p.Trust.Tolerance == nil || len(earlier) < fewSpeeds {
		return
	}
	if disturbed {
		speed = stats.Median(earlier)
	}
	t := p.Trust
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

// disturbing are the reasons with which the reference loop does not show the machine's speed.
var disturbing = []profile.DoubtCode{
	profile.DoubtFewRuns, profile.DoubtWaiting, profile.DoubtStolen, profile.DoubtThrottled, profile.DoubtQuota, profile.DoubtBusy, profile.DoubtThreads,
}

// Speed returns the machine's speed at the stated latency: that of its mode, if the speed explains
// the modes.
func Speed(p *profile.Profile) (float64, bool) {
	if p.Trust == nil {
		return 0, false
	}
	if t := p.Trust; t.ModesBySpeed {
		for _, m := range t.Modes {
			if m.Headline && m.Speed != nil {
				return *m.Speed, true
			}
		}
	}
	v, ok := p.Totals.Value("machine_speed")
	return v, ok && v > 0
}
