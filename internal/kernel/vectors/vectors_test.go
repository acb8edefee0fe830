package vectors

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestSums compares dot products at several offsets, and weighted sums of vectors, with plain
// loops.
func TestSums(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	x := make([]float32, 2000)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for range 200 {
		n, many := r.IntN(300), r.IntN(30)
		from, weights := make([]int, many), make([]float32, many)
		for i := range from {
			from[i], weights[i] = r.IntN(len(x)-n), float32(r.NormFloat64())
		}
		sums, vector := make([]float32, many), make([]float32, n)
		a := x[100:][:n]
		Dots(sums, a, x, from)
		for i, f := range from {
			want, size := 0.0, 0.0
			for k, v := range a {
				want += float64(v) * float64(x[f+k])
				size += math.Abs(float64(v) * float64(x[f+k]))
			}
			// Each sum and product is rounded to 24 bits; a lane holds an eighth of them.
			if math.Abs(float64(sums[i])-want) > size*float64(n)*0x1p-24 {
				t.Fatalf("%d of %d sums over %d: %v, want %v", i, many, n, sums[i], want)
			}
		}
		var s Sum
		s.Of(vector, x, from, weights)
		// Rows equal single sums, and nothing is written between them.
		const lines = 3
		stepX, stepDst := r.IntN(4), n+r.IntN(3)
		further := append(slices.Clone(x), make([]float32, lines*stepX)...)
		both := make([]float32, lines*stepDst+1)
		want := slices.Clone(both)
		s.Lines(both, stepDst, further, stepX, n, lines, from, weights)
		for l := range lines {
			s.Of(want[l*stepDst:][:n], further[l*stepX:], from, weights)
		}
		if !slices.Equal(both, want) {
			t.Fatalf("%d lines of %d values: %v, want %v", lines, n, both, want)
		}
		for k, got := range vector {
			want, size := 0.0, 0.0
			for i, f := range from {
				want += float64(weights[i]) * float64(x[f+k])
				size += math.Abs(float64(weights[i]) * float64(x[f+k]))
			}
			if math.Abs(float64(got)-want) > size*float64(many)*0x1p-23 {
				t.Fatalf("value %d of %d, %d vectors: %v, want %v", k, n, many, got, want)
			}
		}
	}
}

// TestLags compares autocorrelation sums with a plain loop, lane by lane, on every instruction
// set.
func TestLags(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	check := func(t *testing.T) {
		for range sets.Rounds(200) {
			lanes := LagLanes * (1 + r.IntN(3))
			x := make([]float32, 400+lanes)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			places, distances := make([]int, r.IntN(60)), make([]int, r.IntN(20))
			for i := range places {
				places[i] = 100 + r.IntN(200)
			}
			for i := range distances {
				distances[i] = r.IntN(200) - 100
			}
			l := NewLags(places, distances)
			sums := make([]float32, l.Len()*lanes)
			for i := range sums {
				sums[i] = float32(i % 5)
			}
			l.Add(sums, x, lanes)
			for i, got := range sums {
				want, size := float64(i%5), float64(i%5)
				for _, p := range places {
					v := float64(x[p+i%lanes])
					if k := i / lanes; k > 0 {
						v *= float64(x[p+distances[k-1]+i%lanes])
					}
					want += v
					size += math.Abs(v)
				}
				// Each sum and product is rounded to 24 bits.
				if math.Abs(float64(got)-want) > size*float64(len(places)+1)*0x1p-24 {
					t.Fatalf("%d places, %d distances, %d lanes: sum %d is %v, want %v", len(places), len(distances), lanes, i, got, want)
				}
			}
		}
	}
	sets.Every(t, func(t *testing.T, plain func(func())) {
		check(t)
		plain(func() { check(t) })
	})
}
