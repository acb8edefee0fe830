package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Reservoir keeps a uniform random sample of at most a given number of values from a series of
// any length, in preallocated memory, with the index of each in the series. Count, sum and
// extremes cover all values. The selection depends on the number of values only, so that a series
// always gives the same sample. It is not safe for concurrent use.
type Reservoir struct {
	values   []float64
	places   []int64 // of values, in the series
	n        int64
	total    total
	min, max float64
	random   *rand.Rand
}

// NewReservoir returns a reservoir of limit values, 16 bytes each; a limit below 1 is 1.
func NewReservoir(limit int) *Reservoir {
	limit = max(1, limit)
	return &Reservoir{
		values: make([]float64, 0, limit), places: make([]int64, 0, limit),
		min: math.NaN(), max: math.NaN(),
		random: rand.New(rand.NewPCG(1, 2)), // any constant seed
	}
}

// Add adds the next value of the series. It does not allocate.
func (r *Reservoir) Add(v float64) {
	if r.n == 0 {
		r.min, r.max = v, v
	} else {
		r.min, r.max = min(r.min, v), max(r.max, v)
	}
	r.total.add(v)
	place := r.n
	r.n++
	if len(r.values) < cap(r.values) {
		r.values, r.places = append(r.values, v), append(r.places, place)
		return
	}
	// Vitter's algorithm R: the newest of n values is kept with probability limit/n and replaces
	// a random one.
	if at := r.random.Int64N(r.n); at < int64(len(r.values)) {
		r.values[at], r.places[at] = v, place
	}
}

// N is the number of values added.
func (r *Reservoir) N() int64 { return r.n }

// Sampled reports whether values were dropped.
func (r *Reservoir) Sampled() bool { return r.n > int64(len(r.values)) }

// Sum of all values, 0 for none.
func (r *Reservoir) Sum() float64 { return r.total.sum }

// Mean of all values, NaN for none.
func (r *Reservoir) Mean() float64 { return r.total.sum / float64(r.n) }

// Min is the minimum of all values, NaN for none.
func (r *Reservoir) Min() float64 { return r.min }

// Max is the maximum of all values, NaN for none.
func (r *Reservoir) Max() float64 { return r.max }

// Kept returns copies of the values kept, in the order of the series, and their ascending indices
// in it, from 0. Both have the same length.
func (r *Reservoir) Kept() (values []float64, places []int64) {
	order := make([]int, len(r.values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(r.places[a], r.places[b]) })
	values, places = make([]float64, len(order)), make([]int64, len(order))
	for i, at := range order {
		values[i], places[i] = r.values[at], r.places[at]
	}
	return values, places
}

// Summary describes the series: count, mean and extremes of all values, the rest from the values
// kept.
func (r *Reservoir) Summary() Summary {
	s := Summarize(r.values)
	if r.Sampled() {
		s.N, s.Mean, s.Min, s.Max = r.n, r.Mean(), r.min, r.max
	}
	return s
}
