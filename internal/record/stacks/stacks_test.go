package stacks_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// TestSums compares sums over the tree with sums over the samples themselves, recursion and
// all.
func TestSums(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 7))
		var set stacks.Set
		hits, _ := set.Count(stacks.Samples, 1)
		names := []string{"a", "b", "c", "d"}
		own, with := map[string]float64{}, map[string]float64{}
		for range 100 {
			place := stacks.Root
			seen := map[string]bool{}
			last := ""
			for range 1 + r.IntN(6) {
				last = names[r.IntN(len(names))]
				seen[last] = true
				place = set.Call(place, set.Function(stacks.Function{Name: last}))
			}
			n := float64(1 + r.IntN(5))
			set.Add(hits, place, n)
			own[last] += n
			for name := range seen {
				with[name] += n
			}
		}
		run := &runlog.Run{Profile: &profile.Profile{Model: profile.Model{Name: "x"}}}
		var none track.Trace
		stacks.Finish(run, &set, &none, "")
		p := records.Collect(t, run)
		if d := cmp.Diff(own, records.Layers(p, "samples")); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
		if d := cmp.Diff(with, records.Layers(p, "samples_with_callees")); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
	}
}

// TestChart makes one bar of a function that stays on the stack.
func TestChart(t *testing.T) {
	t.Parallel()
	var set stacks.Set
	var tr track.Trace
	column, _ := set.Count(stacks.Time, 1e-9)
	main := set.Call(stacks.Root, set.Function(stacks.Function{Name: "main"}))
	f := set.Call(main, set.Function(stacks.Function{Name: "f"}))
	g := set.Call(main, set.Function(stacks.Function{Name: "g"}))
	c := stacks.Chart{Set: &set, Trace: &tr, Track: tr.Track(timeline.Thread, "", "t")}
	// In any order: main 0-40 and 50-55, f 10-30, g 30-40.
	c.Spread(column, []stacks.Weighted{{At: 50, Place: main}, {At: 0, Place: main}, {At: 10, Place: f}, {At: 20, Place: f}, {At: 30, Place: g}, {At: 40, Place: stacks.Root}}, 5)
	run := &runlog.Run{Profile: &profile.Profile{Model: profile.Model{Name: "x"}}}
	stacks.Finish(run, &set, &tr, "")
	p := records.Collect(t, run)
	near := map[string]float64{"main": 15e-9, "f": 20e-9, "g": 10e-9}
	if d := cmp.Diff(near, records.Layers(p, "latency_s"), approx); d != "" {
		t.Error(d)
	}
	want := map[string]records.Sum{"main": {Count: 2, Seconds: 45e-9}, "f": {Count: 1, Seconds: 20e-9}, "g": {Count: 1, Seconds: 10e-9}}
	if d := cmp.Diff(want, records.Bars(p), approx); d != "" {
		t.Error(d)
	}
}

// approx allows for the rounding of sums of nanoseconds.
var approx = cmp.Comparer(func(a, b float64) bool { return a-b < 1e-18 && b-a < 1e-18 })

// TestDeep leaves out what is too deep, and does not hang.
func TestDeep(t *testing.T) {
	t.Parallel()
	var set stacks.Set
	hits, _ := set.Count(stacks.Samples, 1)
	place := stacks.Root
	f := set.Function(stacks.Function{Name: "f"})
	for range stacks.MaxDepth + 10 {
		place = set.Call(place, f)
	}
	set.Add(hits, place, 3)
	run := &runlog.Run{Profile: &profile.Profile{Model: profile.Model{Name: "x"}}}
	var none track.Trace
	stacks.Finish(run, &set, &none, "")
	p := records.Collect(t, run)
	if len(p.Layers) != 1 || records.Layers(p, "samples_with_callees")["f"] != 3 || len(p.Incomplete) != 1 {
		t.Errorf("%+v %+v", p.Layers, p.Incomplete)
	}
}
