// Package quality judges the reliability of measured times, for any source: the limits, and the
// doubts that follow from the times themselves and from the completeness of a profile. The state
// of the machine during the measurement is judged by the code that observed it.
package quality

import (
	"math"
	"slices"

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

	// Comparable is the tolerance above which a latency is not fit for comparing: changes that
	// users look for are smaller.
	Comparable = 0.1
	// Unknown is the tolerance above which a latency is not known at all.
	Unknown = 0.25

	fairInterval, badInterval = Comparable, Unknown // half-width of the 95 % interval
	fairChange                = 0.05
	// Of the scaled median absolute deviation: a tail leaves the median as it is.
	fairSpread, badSpread = 0.1, .5
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
	d.Above(profile.DoubtInterval, HalfWidth(m), fairInterval, badInterval)
	if n >= 2 {
		d.Above(profile.DoubtSpread, st.RobustCV, fairSpread, badSpread)
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

// Limits of what shares of layers need.
const (
	// shareRuns is the number of undisturbed inferences that they come from: fewer are not set
	// apart from disturbed ones.
	shareRuns = 10
	// shareHalf is the half-width of a share's 95 % interval, in parts of the inference. Layers of
	// larger shares than that are then told from those without.
	shareHalf = 0.05
)

// Shares judges the layers' shares by their own evidence: the number of undisturbed inferences that
// they come from, and the widest of their intervals. A layer's share is its time relative to the
// sum of all. It reports whether there are shares.
func (d *Doubts) Shares(p *profile.Profile, undisturbed int) bool {
	sum, widest := 0.0, 0.0
	known, bounded := 0, true
	for i := range p.Layers {
		m := p.Layers[i].Latency
		v, ok := m.Best()
		if !ok {
			continue
		}
		known++
		sum += v
		if m.CI95 == nil {
			bounded = bounded && m.N == nil // a count by a simulator has no interval
			continue
		}
		widest = max(widest, (m.CI95[1]-m.CI95[0])/2)
	}
	if known == 0 || !(sum > 0) {
		return false
	}
	if undisturbed < shareRuns {
		d.Add(profile.DoubtShareRuns, profile.Good, float64(undisturbed), shareRuns)
	}
	switch {
	case !bounded && undisturbed >= shareRuns:
		*d = append(*d, profile.Doubt{Code: profile.DoubtShares, Verdict: profile.Good, Limit: new(shareHalf)})
	case known > 1 && widest/sum > shareHalf:
		d.Add(profile.DoubtShares, profile.Good, widest/sum, shareHalf)
	}
	return true
}

// Tolerance combines independent errors of a latency, each as a fraction of it with a probability
// of 95 %. It is NaN if one is not known.
func Tolerance(errors ...float64) float64 {
	square := 0.0
	for _, e := range errors {
		square += e * e
	}
	return math.Sqrt(square)
}

// HalfWidth returns the half of a metric's 95 % interval as a fraction of its median, NaN if it
// has none.
func HalfWidth(m *profile.Metric) float64 {
	if m == nil || m.CI95 == nil || m.Median == nil || !(*m.Median > 0) {
		return math.NaN()
	}
	return (m.CI95[1] - m.CI95[0]) / 2 / *m.Median
}

// Trust says what figures are good for. tolerance is that of the latency, NaN if unknown, and
// shares says whether there are shares of layers.
func (d Doubts) Trust(tolerance float64, shares bool) *profile.Trust {
	t := profile.NewTrust(d)
	// Where another reason lowers the verdict, the tolerance that follows from it says no more.
	switch {
	case tolerance > Unknown && t.Verdict != profile.Unreliable:
		d.Add(profile.DoubtTolerance, profile.Unreliable, tolerance, Unknown)
	case tolerance > Comparable && t.Verdict == profile.Good:
		d.Add(profile.DoubtTolerance, profile.Fair, tolerance, Comparable)
	case math.IsNaN(tolerance) && t.Verdict == profile.Good:
		d = append(d, profile.Doubt{Code: profile.DoubtTolerance, Verdict: profile.Fair, Limit: new(Comparable)})
	}
	t = profile.NewTrust(d)
	switch {
	case math.IsNaN(tolerance) || math.IsInf(tolerance, 0):
	case t.Verdict == profile.Unreliable: // most reasons have no figure of what they cost
		t.Tolerance = new(max(tolerance, Unknown))
	case t.Verdict == profile.Fair:
		t.Tolerance = new(max(tolerance, Comparable))
	default:
		t.Tolerance = &tolerance
	}
	switch {
	case t.Verdict == profile.Good:
		t.Fit = profile.FitComparing
	case shares && !t.SharesDoubted() && !mostMissing(d):
		t.Fit = profile.FitShares
	default:
		t.Fit = profile.FitNothing
	}
	return t
}

// mostMissing reports whether most layers did not run, or most inferences lost something: shares of
// the rest say little.
func mostMissing(d Doubts) bool {
	return slices.ContainsFunc(d, func(x profile.Doubt) bool {
		return x.Verdict == profile.Unreliable && (x.Code == profile.DoubtIncomplete || x.Code == profile.DoubtLost)
	})
}
