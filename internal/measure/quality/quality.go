// Package quality says how far measured times can be relied upon, whoever measured them:
// the limits, and the doubts that the times themselves and the completeness of a profile
// raise. What a machine did meanwhile is judged by whoever watched it.
package quality

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// Limits of the verdicts, as docs/profile.md states them: above the first a latency is
// fair, above the second it is not to be used. Parts of the time where nothing else
// stands there.
const (
	// FewRuns is the number of runs below which a latency is fair.
	FewRuns = 10
	// TooFewRuns is that below which it is not to be used.
	TooFewRuns = 3

	fairInterval, badInterval = 0.03, .1 // half of the 95 % interval
	fairChange, badChange     = 0.05, .25
	fairSpread, badSpread     = 0.1, .5 // coefficient of variation
)

// Doubts collects reasons for a verdict.
type Doubts []profile.Doubt

// Above notes a figure that exceeds the limits of good and of fair; a second limit of
// 0 is none.
func (d *Doubts) Above(code profile.DoubtCode, v, fair, bad float64) {
	switch {
	case bad > 0 && v > bad:
		d.Add(code, profile.DoNotUse, v, bad)
	case v > fair:
		d.Add(code, profile.Fair, v, fair)
	}
}

// Add notes a figure and what it was judged by.
func (d *Doubts) Add(code profile.DoubtCode, v profile.Verdict, value, limit float64) {
	*d = append(*d, profile.Doubt{Code: code, Verdict: v, Value: new(value), Limit: new(limit)})
}

// Series judges times in the order in which they were taken, the figure that they
// make, and what tests of them say.
func (d *Doubts) Series(m *profile.Metric, n int, st *stats.Stability) {
	switch {
	case n < TooFewRuns:
		d.Add(profile.DoubtFewRuns, profile.DoNotUse, float64(n), TooFewRuns)
	case n < FewRuns:
		d.Add(profile.DoubtFewRuns, profile.Fair, float64(n), FewRuns)
	}
	if m != nil && m.CI95 != nil && m.Median != nil && *m.Median > 0 {
		d.Above(profile.DoubtInterval, (m.CI95[1]-m.CI95[0])/2 / *m.Median, fairInterval, badInterval)
	}
	if n >= 2 {
		d.Above(profile.DoubtSpread, st.CV, fairSpread, badSpread)
	}
	if st.Steady != nil && !*st.Steady {
		if st.Changed() {
			d.Above(profile.DoubtStep, math.Abs(st.Change), fairChange, badChange)
		} else {
			d.Above(profile.DoubtDrift, math.Abs(st.Drift), fairChange, badChange)
		}
	}
	if st.Modes > 1 {
		d.Add(profile.DoubtModes, profile.Fair, float64(st.Modes), 1)
	}
}

// Layers judges layers that did not run, or of which nothing came.
func (d *Doubts) Layers(p *profile.Profile) {
	idle, ran := 0, 0
	for i := range p.Layers {
		switch l := &p.Layers[i]; {
		case l.Constant:
		case l.State.Idle():
			idle++
		case l.State == profile.Ran:
			ran++
		}
	}
	switch {
	case idle > ran:
		d.Add(profile.DoubtIncomplete, profile.DoNotUse, float64(idle), float64(ran))
	case idle > 0:
		d.Add(profile.DoubtIncomplete, profile.Fair, float64(idle), 0)
	}
}
