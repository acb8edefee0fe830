package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Reservoir keeps a uniform random sample of at most a given number of values out
// of a series of any length, in memory taken beforehand, with the place of each in
// the series. Number, sum and extremes are of all values. The choice depends on the
// number of values alone, so that a series gives the same sample every time. It is
// not for use by several goroutines at once.
type Reservoir struct {
	values   []float64
	places   []int64 // of values, in the series
	n        int64
	total    total
	min, max float64
	random   *rand.Rand
}

// NewReservoir makes a reservoir of limit values, 16 bytes each; below 1 is 1.
func NewReservoir(limit int) *Reservoir {
	limit = max(1, limit)
	return &Reservoir{
		values: make([]float64, 0, limit), places: make([]int64, 0, limit),
		min: math.NaN(), max: math.NaN(),
		random: rand.New(rand.NewPCG(1, 2)), // any seed does, if it is always the same
	}
}

// Add takes the next value of the series. It does not allocate.
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
	// Vitter's algorithm R: the newest of n values stays with probability limit/n, in
	// the place of any.
	if at := r.random.Int64N(r.n); at < int64(len(r.values)) {
		r.values[at], r.places[at] = v, place
	}
}

// N is the number of values added.
func (r *Reservoir) N() int64 { return r.n }

// Sampled says whether values were left out.
func (r *Reservoir) Sampled() bool { return r.n > int64(len(r.values)) }

// Sum of all values, 0 for none.
func (r *Reservoir) Sum() float64 { return r.total.sum }

// Mean of all values, NaN for none.
func (r *Reservoir) Mean() float64 { return r.total.sum / float64(r.n) }

// Min is the least of all values, NaN for none.
func (r *Reservoir) Min() float64 { return r.min }

// Max is the greatest of all values, NaN for none.
func (r *Reservoir) Max() float64 { return r.max }

// Kept returns copies of the values kept, in the order of the series, and the place
// of each in it, from 0 and ascending. Both have the same length.
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

// Summary describes the series: number, mean and extremes of all values, the rest of
// those kept.
func (r *Reservoir) Summary() Summary {
	s := Summarize(r.values)
	if r.Sampled() {
		s.N, s.Mean, s.Min, s.Max = r.n, r.Mean(), r.min, r.max
	}
	return s
}
