package vectors

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// LagLanes divides the number of lanes of [Lags].
const LagLanes = simd.LagLanes

// Lags computes sums, over a list of positions, of products of values with the values at given
// distances, for adjacent lanes: the autocorrelation of channels over [H,W,C].
type Lags struct {
	places, lags []int
	first, end   int // range of the values that are read, without the lanes
}

// NewLags prepares sums over places of products with values at distances, both in values; no
// place plus a distance is negative.
func NewLags(places, distances []int) *Lags {
	l := &Lags{places: places, lags: distances}
	if len(places) > 0 {
		far := append([]int{0}, distances...)
		l.first, l.end = slices.Min(places)+slices.Min(far), slices.Max(places)+slices.Max(far)
	}
	return l
}

// Len returns the number of rows of sums: one for the values themselves, then one per distance.
func (l *Lags) Len() int { return 1 + len(l.lags) }

// Add adds the sums of x to rows of lanes sums; [LagLanes] divides lanes. It computes in float32,
// in the order of places.
func (l *Lags) Add(sums, x []float32, lanes int) {
	if len(l.places) == 0 {
		return
	}
	_, _, _ = x[l.first], x[l.end+lanes-1], sums[l.Len()*lanes-1]
	f := simd.WindowKernels()
	parts := max(1, (len(l.lags)+simd.MaxLags-1)/simd.MaxLags)
	for part := range parts {
		lo, hi := part*len(l.lags)/parts, (part+1)*len(l.lags)/parts
		if f == nil || !f.Lags(sums[lo*lanes:], lanes, x, l.places, l.lags[lo:hi], lanes, part == 0) {
			addLags(sums[lo*lanes:], x, l.places, l.lags[lo:hi], lanes, part == 0)
		}
	}
}

// addLags is [simd.Windows.Lags] in plain Go.
func addLags(sums, x []float32, places, lags []int, lanes int, plain bool) {
	for _, p := range places {
		own := x[p:][:lanes]
		if plain {
			for i, v := range own {
				sums[i] += v
			}
		}
		for k, d := range lags {
			to := sums[(k+1)*lanes:][:lanes]
			for i, v := range x[p+d:][:lanes] {
				to[i] += own[i] * v
			}
		}
	}
}
