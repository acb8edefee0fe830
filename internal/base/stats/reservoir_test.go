package stats

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReservoirKeepsAll adds no more values than fit: nothing is left out, and the
// summary is that of the values.
func TestReservoirKeepsAll(t *testing.T) {
	t.Parallel()
	in := []float64{5, 1, 4, 2, 3, 9}
	r := NewReservoir(len(in))
	if r.N() != 0 || r.Sum() != 0 || !math.IsNaN(r.Mean()) || !math.IsNaN(r.Min()) || !math.IsNaN(r.Max()) || r.Summary().N != 0 {
		t.Errorf("figures of nothing: %+v", r)
	}
	for _, v := range in {
		r.Add(v)
	}
	values, places := r.Kept()
	if !slices.Equal(values, in) || !slices.Equal(places, []int64{0, 1, 2, 3, 4, 5}) || r.Sampled() {
		t.Errorf("kept %v at %v", values, places)
	}
	if d := cmp.Diff(Summarize(in), r.Summary()); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
}

// TestReservoirSamples adds many more than fit.
func TestReservoirSamples(t *testing.T) {
	t.Parallel()
	const limit, n = 1000, 50_000
	fill := func() *Reservoir {
		r := NewReservoir(limit)
		for i := range n {
			r.Add(float64(2*i + 1))
		}
		return r
	}
	r := fill()
	values, places := r.Kept()
	if len(values) != limit || len(places) != limit || !r.Sampled() || r.N() != n {
		t.Fatalf("%d values and %d places of %d", len(values), len(places), r.N())
	}
	for i, p := range places {
		if values[i] != float64(2*p+1) || i > 0 && p <= places[i-1] {
			t.Fatalf("value %v at place %d after place %d", values[i], p, places[max(0, i-1)])
		}
	}
	if r.Sum() != n*n || r.Mean() != n || r.Min() != 1 || r.Max() != 2*n-1 {
		t.Errorf("sum %v, mean %v, from %v to %v", r.Sum(), r.Mean(), r.Min(), r.Max())
	}
	s := r.Summary()
	if s.N != n || s.Kept != limit || s.Mean != n || s.Min != 1 || s.Max != 2*n-1 || s.P99 == nil {
		t.Errorf("summary %+v", s)
	}
	again, _ := fill().Kept()
	if !slices.Equal(values, again) {
		t.Error("the same series gave another sample")
	}
}

// TestReservoirIsUniform counts how often each place of a series is kept, over
// series of one reservoir after another's stream of random numbers: with Pearson's
// test against equal shares.
func TestReservoirIsUniform(t *testing.T) {
	t.Parallel()
	const limit, n, rounds = 10, 50, 20_000
	hits := make([]float64, n)
	r := NewReservoir(limit)
	for range rounds {
		// The series begins anew, the random numbers go on.
		r.values, r.places, r.n = r.values[:0], r.places[:0], 0
		for i := range n {
			r.Add(float64(i))
		}
		_, places := r.Kept()
		for _, p := range places {
			hits[p]++
		}
	}
	want := float64(rounds) * limit / n
	chi := 0.0
	for _, h := range hits {
		chi += (h - want) * (h - want) / want
	}
	// Chi square with 49 degrees of freedom is above 95 once in 10,000 times; places
	// that exclude each other make it smaller still.
	if chi > 95 {
		t.Errorf("chi square is %.1f for the places %v", chi, hits)
	}
}

func TestReservoirBounds(t *testing.T) {
	t.Parallel()
	r := NewReservoir(-3)
	for i := range 100 {
		r.Add(float64(i))
	}
	if values, _ := r.Kept(); len(values) != 1 || r.N() != 100 {
		t.Errorf("%d values kept of %d", len(values), r.N())
	}
}

func TestReservoirDoesNotAllocate(t *testing.T) {
	r := NewReservoir(100)
	if n := testing.AllocsPerRun(1000, func() { r.Add(1) }); n != 0 {
		t.Errorf("%v allocations a value", n)
	}
}
