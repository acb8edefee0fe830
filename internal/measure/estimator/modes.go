package estimator

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// Sample is a timed inference of the plain pass.
type Sample struct {
	// Seconds is its duration.
	Seconds float64
	// Work is its CPU time in seconds, NaN or 0 if unknown.
	Work float64
	// Speed is the machine's speed at that time, by the reference loop; 0 if unknown.
	Speed float64
	// Disturbed says that the system reported a disturbance, such as a preemption.
	Disturbed bool
}

// Mode is a group of inferences of about the same duration.
type Mode struct {
	// Part is the fraction of the undisturbed inferences that belong to it.
	Part float64
	// Median is their duration in seconds; Low and High enclose that of a repeated measurement
	// with 95 % probability, NaN if there are too few.
	Median, Low, High float64
	// Speed is the median of the machine's speed, NaN if unknown.
	Speed float64
	// Runs is the number of inferences.
	Runs int
}

// Latency is the duration of an inference.
type Latency struct {
	// Used is the number of inferences that the figures come from, Disturbed the number of
	// disturbed ones among All. Worked says that CPU times take the place of durations, because too
	// few inferences were undisturbed.
	Used, Disturbed, All int
	Worked               bool
	// Modes are the durations that the inferences had, the fastest first; one if they do not form
	// separate groups. Headline is the index of the one to state: that in which the machine was
	// fastest by the reference loop, or the most frequent one if the loop shows no difference.
	Modes    []Mode
	Headline int
	// BySpeed says that the machine's speed explains the modes.
	BySpeed bool
	// Times are the durations in seconds that the figures come from, of all modes, in
	// chronological order; Bounds separate the modes.
	Times  []float64
	Bounds []float64
}

// Limits of modes. Two groups are separate if each has at least leastPart of the inferences, their
// medians differ by at least leastGap, and the distance of the medians is at least separation
// times the spread within the groups (Ashman's D, 2 for two normal distributions that are
// just separable).
const (
	leastPart  = 0.1
	leastGap   = 0.05
	separation = 3.0
	// mostModes bounds their number: frequency states beyond that are a continuum.
	mostModes = 4
	// leastMode is the least number of inferences of a mode.
	leastMode = 8
)

// Measure computes the latency from samples in chronological order; no mode without samples. If
// too few are undisturbed, the CPU times of all take their place, as far as they are known.
// floor is the relative standard deviation between repeated measurements that one of them does not
// show.
func Measure(samples []Sample, floor float64) Latency {
	var l Latency
	n := len(samples)
	samples = l.calm(samples)
	l.Used, l.All = len(samples), n
	if len(samples) == 0 {
		return l
	}
	l.Times = durations(samples)
	l.Bounds = split(l.Times)
	for i := range len(l.Bounds) + 1 {
		l.Modes = append(l.Modes, l.mode(samples, i, floor))
	}
	l.choose()
	return l
}

// calm leaves out disturbed samples if enough others remain. Otherwise CPU times take the place of
// durations, and the half of the samples where they are lower is kept: a preemption also costs the
// CPU time to refill caches.
func (l *Latency) calm(samples []Sample) []Sample {
	out := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return s.Disturbed })
	if l.Disturbed = len(samples) - len(out); len(out) >= min(MinUndisturbed, len(samples)) {
		return out
	}
	out = slices.Clone(samples)
	for i, s := range out {
		if s.Disturbed && s.Work > 0 {
			out[i].Seconds, l.Worked = min(s.Seconds, s.Work), true
		}
	}
	if l.Worked && len(out) >= MinUndisturbed {
		limit := stats.Median(durations(out))
		out = slices.DeleteFunc(out, func(s Sample) bool { return s.Seconds > limit })
	}
	return out
}

func durations(samples []Sample) []float64 {
	out := make([]float64, len(samples))
	for i, s := range samples {
		out[i] = s.Seconds
	}
	return out
}

// ModeOf returns the index of the mode that a duration in seconds belongs to.
func (l *Latency) ModeOf(seconds float64) int {
	i, equal := slices.BinarySearch(l.Bounds, seconds)
	if equal {
		i++
	}
	return i
}

// mode describes the samples of a mode.
func (l *Latency) mode(samples []Sample, i int, floor float64) Mode {
	var times, speeds []float64
	for _, s := range samples {
		if l.ModeOf(s.Seconds) != i {
			continue
		}
		times = append(times, s.Seconds)
		if s.Speed > 0 {
			speeds = append(speeds, s.Speed)
		}
	}
	m := Mode{Part: float64(len(times)) / float64(len(samples)), Median: stats.Median(times), Low: math.NaN(), High: math.NaN(), Speed: stats.Median(speeds), Runs: len(times)}
	if r, ok := stats.Repeated(times, 0); ok {
		half := (r.High - r.Low) / 2
		if len(times) < 5*stats.MostBlocks {
			half *= medianSpread // blocks of a few samples spread like means
		}
		half = math.Hypot(half, stats.RepeatedFloor(floor)*m.Median)
		m.Low, m.High = max(0, m.Median-half), m.Median+half
	}
	return m
}

// split returns the bounds between the groups of durations, in ascending order.
func split(times []float64) []float64 {
	s := make([]float64, 0, len(times))
	for _, t := range times {
		if t > 0 {
			s = append(s, math.Log(t))
		}
	}
	slices.Sort(s)
	var bounds []float64
	parts := [][]float64{s}
	least := max(leastMode, int(leastPart*float64(len(s))))
	for len(parts) < mostModes {
		// The part whose split separates best is split next.
		best, at, where := separation, -1, 0
		for i, p := range parts {
			if cut, d := bestCut(p, least); d > best {
				best, at, where = d, i, cut
			}
		}
		if at < 0 {
			break
		}
		p := parts[at]
		bounds = append(bounds, math.Exp((p[where-1]+p[where])/2))
		parts = slices.Replace(parts, at, at+1, p[:where], p[where:])
	}
	slices.Sort(bounds)
	return bounds
}

// bestCut returns the index that splits sorted values into the two groups of least total variance
// (Otsu's method), and the distance of their medians in units of the spread within them; 0 if the
// groups are not separate.
func bestCut(s []float64, least int) (cut int, distance float64) {
	n := len(s)
	if n < 2*least {
		return 0, 0
	}
	// Outliers would dominate variances: those beyond Tukey's fences do not take part.
	o := stats.Tukey(s)
	from, to := o.LowSevere, n-o.HighSevere
	sum := make([]float64, n+1)
	for i, v := range s {
		sum[i+1] = sum[i] + v
	}
	best := math.Inf(-1)
	for i := max(least, from+1); i <= min(n-least, to-1); i++ {
		a, b := float64(i-from), float64(to-i)
		ma, mb := (sum[i]-sum[from])/a, (sum[to]-sum[i])/b
		if between := a * b * (mb - ma) * (mb - ma); between > best {
			best, cut = between, i
		}
	}
	if cut == 0 {
		return 0, 0
	}
	low, high := s[:cut], s[cut:]
	gap := stats.Quantile(high, 0.5) - stats.Quantile(low, 0.5)
	spread := math.Sqrt((square(width(low)) + square(width(high))) / 2)
	if gap < math.Log1p(leastGap) || !valley(s, cut) {
		return cut, 0
	}
	if spread == 0 {
		return cut, math.Inf(1)
	}
	return cut, gap / spread
}

// width is the standard deviation of normal values with the same quartiles.
func width(sorted []float64) float64 {
	return (stats.Quantile(sorted, 0.75) - stats.Quantile(sorted, 0.25)) / 1.349
}

func square(v float64) float64 { return v * v }

// valley reports whether values are rare at the cut: within a quarter of the distance of the
// medians around it there are less than a tenth of the smaller group.
func valley(s []float64, cut int) bool {
	a, b := stats.Quantile(s[:cut], 0.5), stats.Quantile(s[cut:], 0.5)
	middle := (s[cut-1] + s[cut]) / 2
	from, _ := slices.BinarySearch(s, middle-(b-a)/8)
	to, _ := slices.BinarySearch(s, middle+(b-a)/8)
	return to-from <= min(cut, len(s)-cut)/10
}

// choose selects the mode to state.
func (l *Latency) choose() {
	if len(l.Modes) < 2 {
		return
	}
	fast, slow := l.Modes[0], l.Modes[len(l.Modes)-1]
	// The loop explains the modes if its speed changes by at least half as much as the durations.
	if fast.Speed > 0 && slow.Speed > 0 && math.Log(fast.Speed/slow.Speed) >= math.Log(slow.Median/fast.Median)/2 {
		l.BySpeed = true
		for i, m := range l.Modes {
			if m.Speed > l.Modes[l.Headline].Speed {
				l.Headline = i
			}
		}
		return
	}
	for i, m := range l.Modes {
		if m.Runs > l.Modes[l.Headline].Runs {
			l.Headline = i
		}
	}
}
