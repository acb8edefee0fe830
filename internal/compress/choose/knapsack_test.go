package choose

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// brute finds the least value by trying everything.
func brute(items [][]option, bound float64) (best float64, ok bool) {
	best = math.Inf(1)
	var try func(i int, value, weight float64)
	try = func(i int, value, weight float64) {
		if !withinBound(weight, bound) {
			return
		}
		if i == len(items) {
			best = min(best, value)
			return
		}
		for _, o := range items[i] {
			try(i+1, value+o.value, weight+o.weight)
		}
	}
	try(0, 0, 0)
	return best, !math.IsInf(best, 1)
}

func drawItems(t *rapid.T, most, options int) [][]option {
	coarse := rapid.Bool().Draw(t, "coarse") // many ties
	figure := func(name string) float64 {
		if coarse {
			return float64(rapid.IntRange(0, 5).Draw(t, name))
		}
		return rapid.Float64Range(0, 10).Draw(t, name)
	}
	items := make([][]option, rapid.IntRange(1, most).Draw(t, "items"))
	for i := range items {
		var os []option
		for k := range rapid.IntRange(1, options).Draw(t, "options") {
			os = append(os, option{value: figure("value"), weight: figure("weight"), index: k})
		}
		items[i] = frontier(os)
	}
	return items
}

// TestSolveIsBest compares with an exhaustive search: such small cases are solved exactly.
func TestSolveIsBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := drawItems(t, 6, 6)
		bound := rapid.Float64Range(0, 40).Draw(t, "bound")
		want, feasible := brute(items, bound)
		got, ok := solve(items, bound)
		if ok != feasible {
			t.Fatalf("feasible %v, want %v", ok, feasible)
		}
		if !ok {
			return
		}
		if !got.exact || math.Abs(got.value-want) > 1e-9 || got.lower > want+1e-9 || !withinBound(totalWeight(items, got.pick), bound) || got.value != totalValue(items, got.pick) {
			t.Fatalf("value %v (exact %v, lower %v), want %v; weight %v of %v", got.value, got.exact, got.lower, want, totalWeight(items, got.pick), bound)
		}
	})
}

// TestSolveMany is the same with more layers than rapid likes to draw.
func TestSolveMany(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		items := make([][]option, 3+r.IntN(4))
		most := 0.0
		for i := range items {
			var os []option
			for k := range 6 {
				os = append(os, option{value: math.Floor(r.Float64()*50) / 5, weight: math.Floor(r.Float64()*50) / 5, index: k})
			}
			items[i] = frontier(os)
			most += items[i][len(items[i])-1].weight
		}
		bound := r.Float64() * most
		want, feasible := brute(items, bound)
		got, ok := solve(items, bound)
		if ok != feasible || ok && (math.Abs(got.value-want) > 1e-9 || !got.exact || !withinBound(totalWeight(items, got.pick), bound)) {
			t.Fatalf("bound %v: %+v (%v), want %v (%v)\n%v", bound, got, ok, want, feasible, items)
		}
	}
}

// TestSearchIsClose leaves the exact part out: what is found lies near the best, and the bound
// below it.
func TestSearchIsClose(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := drawItems(t, 6, 6)
		bound := rapid.Float64Range(0, 40).Draw(t, "bound")
		want, feasible := brute(items, bound)
		if !feasible {
			return
		}
		pick := make([]int, len(items))
		newRelaxed(items, 0, bound).localSearch(pick)
		if v := totalValue(items, pick); v < want-1e-9 || !withinBound(totalWeight(items, pick), bound) {
			t.Fatalf("value %v below the best %v, or weight %v beyond %v", v, want, totalWeight(items, pick), bound)
		}
	})
}

// TestLarge has as many layers and points as a real model: the gap is small and said.
func TestLarge(t *testing.T) {
	t.Parallel()
	items := make([][]option, 60)
	r := uint64(1)
	random := func() float64 {
		r = r*6364136223846793005 + 1442695040888963407
		return float64(r>>11) / (1 << 53)
	}
	for i := range items {
		var os []option
		size, tender := random(), random()
		for k := range 400 {
			s := float64(k%100) / 100
			os = append(os, option{value: size * (1 - s*(0.5+random()/2)), weight: tender * (s*s + 0.1*random()) * 0.01, index: k})
		}
		os[0] = option{value: size}
		items[i] = frontier(os)
	}
	for _, bound := range []float64{0.001, 0.01, 0.05} {
		got, ok := solve(items, bound)
		if !ok || !withinBound(totalWeight(items, got.pick), bound) {
			t.Fatalf("bound %v: not kept", bound)
		}
		// The relaxation is off by at most one step of one of sixty layers; local search leaves
		// far less.
		if gap := got.value/got.lower - 1; gap > 0.001 || gap < 0 {
			t.Errorf("bound %v: value %v, lower %v, gap %v", bound, got.value, got.lower, gap)
		}
		again, _ := solve(items, bound)
		for i := range got.pick {
			if got.pick[i] != again.pick[i] {
				t.Fatalf("bound %v: picks differ", bound)
			}
		}
		t.Logf("bound %v: value %.6f, lower %.6f, exact %v", bound, got.value, got.lower, got.exact)
	}
}
