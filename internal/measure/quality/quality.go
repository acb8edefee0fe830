// Package quality judges the reliability of measured times, for any source: the limits, and the
// doubts that follow from the times themselves and from the completeness of a profile. The state
// of the machine during the measurement is judged by the code that observed it.
package quality

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// Limits of the verdicts, as in docs/reference/measurement-quality.md: above the first a latency
// is fair, above the second it is unreliable. Fractions of the time unless stated otherwise.
const (
	// FewRuns is the number of runs below which a latency is fair.
	FewRuns = 10
	// TooFewRuns is the number of runs below which a latency is unreliable.
	TooFewRuns = 3
	// BadChange is the change of a latency during the runs above which it is unreliable.
	BadChange = 0.25

	fairInterval, badInterval = 0.03, .1 // half-width of the 95 % interval
	fairChange                = 0.05
	fairSpread, badSpread     = 0.1, .5 // coefficient of variation
)

// Doubts collects the reasons for a verdict.
type Doubts []profile.Doubt

// Above records a figure that exceeds the limits of good and of fair; a second limit of 0 means
// none.
func (d *Doubts) Above(code profile.DoubtCode, v, fair, bad float64) {
	switch {
	case bad > 0 && v > bad:
		d.Add(code, profile.Unreliable, v, bad)
	case v > fair:
		d.Add(code, profile.Fair, v, fair)
	}
}

// Add records a figure and its limit.
func (d *Doubts) Add(code profile.DoubtCode, v profile.Verdict, value, limit float64) {
	*d = append(*d, profile.Doubt{Code: code, Verdict: v, Value: new(value), Limit: new(limit)})
}

// Series judges times in chronological order: their number, the figure derived from them, and the
// results of stability tests.
func (d *Doubts) Series(m *profile.Metric, n int, st *stats.Stability) {
	switch {
	case n < TooFewRuns:
		d.Add(profile.DoubtFewRuns, profile.Unreliable, float64(n), TooFewRuns)
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
			d.Above(profile.DoubtStep, math.Abs(st.Change), fairChange, BadChange)
		} else {
			d.Above(profile.DoubtDrift, math.Abs(st.Drift), fairChange, BadChange)
		}
	}
	if st.Modes > 1 {
		d.Add(profile.DoubtModes, profile.Fair, float64(st.Modes), 1)
	}
}

// Layers judges layers that did not run, or that have no figures.
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
		d.Add(profile.DoubtIncomplete, profile.Unreliable, float64(idle), float64(ran))
	case idle > 0:
		d.Add(profile.DoubtIncomplete, profile.Fair, float64(idle), 0)
	}
}
