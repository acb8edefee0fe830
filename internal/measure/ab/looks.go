package ab

import (
	"math"
	"slices"
)

// falseAlarms is the probability that equal alternatives are called different, over all looks and
// comparisons.
const falseAlarms = 0.05

// mostLooks bounds how often the samples are evaluated.
const mostLooks = 5

// leastSpent is the least probability that is worth a look.
const leastSpent = 1e-6

// looks spends a probability of false alarms over evaluations of growing samples, in proportion to
// their size (Lan and DeMets, Discrete sequential boundaries for clinical trials, Biometrika 70,
// 1983). The values of the looks are those of a random walk with independent normal steps: each
// bound is found by integration over the walks that stayed within the bounds before it (Armitage,
// McPherson and Rowe, Journal of the Royal Statistical Society A 132, 1969).
type looks struct {
	tail  float64 // to be spent in all
	spent float64
	size  int // of the sample at the last look
	// density is the probability density of walks that stayed within, on a grid of equal steps
	// from -bound to bound.
	density []float64
	bound   float64
}

// grid is the number of steps of the density. Bounds are exact to four digits with it.
const grid = 256

// next returns the tail of the interval at a look at a sample of a size, of a planned size; 0 if
// there is nothing to look at or to spend. The last look spends the rest.
func (l *looks) next(size, planned int, last bool) (tail float64) {
	spend := l.tail - l.spent
	if !last {
		spend = l.tail*min(1, float64(size)/float64(planned)) - l.spent
	}
	if size <= l.size || spend < leastSpent {
		return 0
	}
	step := math.Sqrt(float64(size - l.size))
	bound := l.find(spend, step)
	l.density = l.walk(bound, step)
	l.bound, l.size = bound, size
	l.spent += spend
	return math.Erfc(bound / math.Sqrt(2*float64(size)))
}

// find returns the bound that a walk exceeds at its next step with a probability.
func (l *looks) find(probability, step float64) float64 {
	low, high := 0.0, 9*math.Sqrt(float64(l.size)+step*step)
	for range 50 {
		if mid := (low + high) / 2; l.beyond(mid, step) > probability {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// beyond is the probability that a walk that stayed within is outside a bound after a step.
func (l *looks) beyond(bound, step float64) float64 {
	outside := func(from float64) float64 {
		return (math.Erfc((bound-from)/step/math.Sqrt2) + math.Erfc((bound+from)/step/math.Sqrt2)) / 2
	}
	if l.density == nil {
		return outside(0)
	}
	return l.integrate(outside)
}

// walk returns the density after a step on a grid within a bound.
func (l *looks) walk(bound, step float64) []float64 {
	out := make([]float64, grid+1)
	for i := range out {
		at := bound * (2*float64(i)/grid - 1)
		normal := func(from float64) float64 {
			z := (at - from) / step
			return math.Exp(-z*z/2) / (step * math.Sqrt(2*math.Pi))
		}
		if out[i] = normal(0); l.density != nil {
			out[i] = l.integrate(normal)
		}
	}
	return out
}

// integrate is the integral of the density times a function, by Simpson's rule.
func (l *looks) integrate(f func(from float64) float64) float64 {
	h, sum := 2*l.bound/grid, 0.0
	for i, d := range l.density {
		weight := 2.0
		switch {
		case i == 0 || i == grid:
			weight = 1
		case i%2 == 1:
			weight = 4
		}
		sum += weight * d * f(-l.bound+h*float64(i))
	}
	return sum * h / 3
}

// schedule returns the sizes of the samples that are evaluated, from the least to the most.
func schedule(least, most int) []int {
	if most <= least {
		return []int{least}
	}
	growth := math.Pow(float64(most)/float64(least), 1/float64(mostLooks-1))
	var out []int
	for i := range mostLooks {
		out = append(out, int(math.Round(float64(least)*math.Pow(growth, float64(i)))))
	}
	return slices.Compact(out)
}

// lastTail is the tail of the interval at the last look, if all looks of a schedule happen.
func lastTail(tail float64, schedule []int) (last float64) {
	l, most := looks{tail: tail}, schedule[len(schedule)-1]
	for i, size := range schedule {
		last = l.next(size, most, i == len(schedule)-1)
	}
	return last
}
