package host

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// TestRecording follows a run with nested loops: owners before their nested steps.
func TestRecording(t *testing.T) {
	t.Parallel()
	step := func(g, n int, st plan.State) plan.Slot {
		return plan.Slot{Step: plan.Step{Graph: g, Node: &graph.Node{Index: n}, State: st}}
	}
	ss := []plan.Slot{step(0, 0, plan.Runs), step(1, 0, plan.Runs), step(2, 0, plan.Runs), step(0, 1, plan.Folded), step(0, 2, plan.Runs)}
	tm := &engine.Timing{Bodies: [][]engine.BodyTime{nil, make([]engine.BodyTime, 1), make([]engine.BodyTime, 1)}}
	r := newRecording(ss, 3, tm, 0)
	for run := range int64(2) {
		at := 1000 + 500*run
		tm.Bounds = []int64{at, at + 100, at + 100, at + 130}
		tm.Events = append(tm.Events[:0],
			engine.BodyEvent{Graph: 1, Start: at + 10, End: at + 40}, engine.BodyEvent{Graph: 2, Start: at + 20, End: at + 30},
			engine.BodyEvent{Graph: 1, Start: at + 40, End: at + 100}, engine.BodyEvent{Graph: 2, Start: at + 40, End: at + 100})
		r.add(tm, false)
	}
	got := r.timeline()
	p := &profile.Profile{
		Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost},
		Layers: make([]profile.Layer, len(ss)), Timeline: got,
	}
	for i := range p.Layers {
		p.Layers[i] = profile.Layer{Index: int64(i), Op: "X", State: profile.Ran}
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	ops := got.Lanes[1]
	if d := cmp.Diff([]int32{0, 1, 2, 1, 2, 4, 0, 1, 2, 1, 2, 4}, ops.Layers); d != "" {
		t.Errorf("layers (-want +got):\n%s", d)
	}
	for i, want := range []float64{0, 10, 20, 40, 40, 100, 500, 510, 520, 540, 540, 600} {
		if math.Abs(ops.Starts[i]-want*1e-9) > 1e-15 {
			t.Errorf("bar %d starts at %g s, want %g ns", i, ops.Starts[i], want)
		}
	}
	if d := cmp.Diff([]float64{0, 500e-9}, got.Lanes[0].Starts); d != "" {
		t.Errorf("iterations (-want +got):\n%s", d)
	}
}

// TestTimelineLimit keeps whole inferences within a limit, and one that exceeds it.
func TestTimelineLimit(t *testing.T) {
	t.Parallel()
	ss := []plan.Slot{{Step: plan.Step{Node: &graph.Node{}, State: plan.Runs}}, {Step: plan.Step{Node: &graph.Node{Index: 1}, State: plan.Runs}}}
	// An inference takes 3: itself and two operators.
	for most, want := range map[int]int{0: 100, 24: 8, 1: 1} {
		tm := &engine.Timing{}
		r := newRecording(ss, 2, tm, most)
		for run := range int64(100) {
			tm.Bounds = []int64{run * 10, run*10 + 4, run*10 + 9}
			r.add(tm, false)
		}
		got := r.timeline()
		if n := len(got.Lanes[0].Starts); n != want || len(got.Lanes[1].Starts) != 2*n {
			t.Errorf("limit %d: %d inferences with %d operators, want %d", most, n, len(got.Lanes[1].Starts), want)
		}
	}
}

// TestTimelineOfLoop records a real run with bodies.
func TestTimelineOfLoop(t *testing.T) {
	t.Parallel()
	o := options()
	p, err := profiled(t.Context(), looped(), o)
	if err != nil || p.Timeline != nil {
		t.Fatalf("without samples: timeline %v, %v", p.Timeline, err)
	}
	o.Samples = true
	if p, err = profiled(t.Context(), looped(), o); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	tl := p.Timeline
	if tl == nil || *tl.Iterations != 3 || *tl.Dropped != 0 || len(tl.Lanes) != 2 {
		t.Fatalf("timeline %+v", tl)
	}
	// The loop, then three times Identity and MatMul in it.
	one := []int32{0, 1, 2, 1, 2, 1, 2}
	var want []int32
	for range 3 {
		want = append(want, one...)
	}
	if d := cmp.Diff(want, tl.Lanes[1].Layers); d != "" {
		t.Errorf("layers (-want +got):\n%s", d)
	}
	if len(tl.Lanes[0].Starts) != 3 || tl.Lanes[0].Starts[0] != 0 || tl.Lanes[0].Starts[1] <= 0 {
		t.Errorf("iterations start at %v", tl.Lanes[0].Starts)
	}
	// Samples are the parts of the bars, times the latency.
	whole := *p.Totals.Latency.Median
	for i, d := range tl.Lanes[0].Durations {
		var sum float64
		for _, l := range p.Layers {
			sum += l.Samples[i]
		}
		if math.Abs(sum-whole) > 1e-3*whole { // what lies between the layers
			t.Errorf("iteration %d lasts %g s, its samples add up to %g of %g", i, d, sum, whole)
		}
	}
}

// TestMemoryOverTime follows two inferences of three layers, one of them in a body.
func TestMemoryOverTime(t *testing.T) {
	t.Parallel()
	live := func(n int64) *int64 { return &n }
	p := &profile.Profile{
		Layers: []profile.Layer{{LiveBytes: live(64)}, {LiveBytes: live(999), Parent: live(0)}, {LiveBytes: live(64)}, {LiveBytes: live(32)}},
		Timeline: &timeline.Timeline{Lanes: []timeline.Lane{
			{Starts: []float64{0, 10}, Durations: []float64{4, 4}, Iterations: []int32{0, 5}},
			{Starts: []float64{0, 1, 2, 3, 10, 12, 13}, Durations: make([]float64, 7), Layers: []int32{0, 1, 2, 3, 0, 2, 3}, Iterations: []int32{0, 0, 0, 0, 5, 5, 5}},
		}},
	}
	memoryOverTime(p.Timeline, p.Layers)
	c := p.Timeline.Counters[0]
	if d := cmp.Diff([]float64{0, 3, 4, 10, 13, 14}, c.Times); d != "" {
		t.Errorf("times (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]float64{64, 32, 0, 64, 32, 0}, c.Values); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}
