package spans

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

func layer(parent int64, seconds float64) profile.Layer {
	l := profile.Layer{Op: "X", State: profile.Ran}
	if parent >= 0 {
		l.Parent = &parent
	}
	if seconds >= 0 {
		l.Latency = profile.Value(profile.Estimated, seconds, "")
	}
	return l
}

func TestLaidOut(t *testing.T) {
	t.Parallel()
	// A layer; a loop with two layers, one of them without a figure; an If without
	// a figure of its own and a layer in it; a layer that is not reached.
	ls := []profile.Layer{layer(-1, 1), layer(-1, 2), layer(1, 4), layer(1, -1), layer(-1, -1), layer(4, 8), layer(-1, 16)}
	ls[6].State, ls[6].Calls = profile.NotReached, new(0.0)
	p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "t", Kind: profile.TargetSimulator}, Layers: ls}
	for i := range ls {
		ls[i].Index = int64(i)
	}
	v := Of(p)
	p.Timeline = v.Timeline
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if v.Recorded || !strings.Contains(v.Method, "not recorded") {
		t.Errorf("recorded %v, method %q", v.Recorded, v.Method)
	}
	l := v.Lanes[1]
	if d := cmp.Diff([]int32{0, 1, 2, 4, 5}, l.Layers); d != "" {
		t.Errorf("layers: %s", d)
	}
	if d := cmp.Diff([]float64{0, 1, 3, 7, 7}, l.Starts); d != "" {
		t.Errorf("starts: %s", d)
	}
	if d := cmp.Diff([]float64{1, 6, 4, 8, 8}, l.Durations); d != "" {
		t.Errorf("durations: %s", d)
	}
	if got := v.Lanes[0].Durations[0]; got != 15 {
		t.Errorf("the inference lasts %g s, want 15", got)
	}
	if v := Of(&profile.Profile{}); v.Size() != 0 || v.Timeline == nil {
		t.Errorf("a profile without figures: %+v", v)
	}
}

// TestEvents checks order, nesting and completeness of the events of random
// timelines.
func TestEvents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		p := sample.Random(rand.New(rand.NewPCG(seed, 0)))
		if err := p.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		v := Of(p)
		check(t, seed, v)
		check(t, seed, v.Thin(v.Size()/2))
	}
}

func check(t *testing.T, seed uint64, v *View) {
	t.Helper()
	open := make([][]Bar, len(v.Lanes))
	count := map[EventKind]int{}
	stalls, last := 0, int64(0)
	out := map[int]bool{}
	for e := range v.Events() {
		if e.At < last {
			t.Fatalf("seed %d: %+v after %d", seed, e, last)
		}
		last = e.At
		count[e.Kind]++
		b := e.Bar
		switch e.Kind {
		case Begin:
			if b.Stall {
				stalls++
			}
			if n := len(open[b.Lane]); n != b.Depth {
				t.Fatalf("seed %d: bar %+v begins within %d others", seed, b, n)
			} else if n > 0 && (open[b.Lane][n-1].Start > b.Start || open[b.Lane][n-1].End < b.End) {
				t.Fatalf("seed %d: bar %+v is not within %+v", seed, b, open[b.Lane][n-1])
			}
			open[b.Lane] = append(open[b.Lane], b)
		case End:
			n := len(open[b.Lane]) - 1
			if n < 0 || open[b.Lane][n] != b || e.At != b.End {
				t.Fatalf("seed %d: %+v ends, open are %+v", seed, b, open[b.Lane])
			}
			open[b.Lane] = open[b.Lane][:n]
		case LinkFrom:
			out[e.Item] = true
		case LinkTo:
			if !out[e.Item] || e.At < b.Start || e.At > b.End {
				t.Fatalf("seed %d: arrow %+v arrives before it left or outside its bar", seed, e)
			}
		}
	}
	values := 0
	for _, c := range v.Counters {
		values += len(c.Times)
	}
	if n := v.Size() + stalls; count[Begin] != n || count[End] != n || count[Value] != values || count[LinkFrom] != count[LinkTo] || count[LinkFrom] > len(v.Links) {
		t.Fatalf("seed %d: %v events of %d bars, %d stalls, %d values, %d links", seed, count, v.Size(), stalls, values, len(v.Links))
	}
}

func TestThin(t *testing.T) {
	t.Parallel()
	v := Of(sample.Large(10, 100, 10_000))
	if v.Size() != 1100 || v.Thin(1100) != v {
		t.Fatalf("%d bars", v.Size())
	}
	w := v.Thin(300)
	if w.Size() != 275 || w.LeftOut != 825 || !strings.HasSuffix(w.Method, "one in 4 is in this file") {
		t.Errorf("%d bars, %d left out, %q", w.Size(), w.LeftOut, w.Method)
	}
	if d := cmp.Diff([]int32{0, 4, 8}, w.Lanes[0].Iterations[:3]); d != "" {
		t.Errorf("iterations: %s", d)
	}
	// Without iterations, by time.
	v.Lanes[1].Iterations = nil
	w = v.Thin(300)
	if w.Size() > 300 || w.Size() < 290 || w.LeftOut != 1100-w.Size() || !strings.Contains(w.Method, "only bars that start before") {
		t.Errorf("%d bars, %d left out, %q", w.Size(), w.LeftOut, w.Method)
	}
	if v.Method != "made up" || len(v.Lanes[1].Starts) != 1000 {
		t.Error("the original was changed")
	}
}

func TestMedianRun(t *testing.T) {
	t.Parallel()
	v := Of(sample.Large(10, 101, 10_000))
	run, n, of := v.MedianRun()
	shorter := 0
	for _, d := range v.Lanes[0].Durations {
		if d < v.Lanes[0].Durations[n] {
			shorter++
		}
	}
	if of != 101 || shorter != 50 || run.Size() != 11 || run.Lanes[1].Iterations[0] != n {
		t.Errorf("iteration %d of %d is longer than %d others and has %d bars", n, of, shorter, run.Size())
	}
	v.Lanes[0].Kind = timeline.Host
	if run, _, of := v.MedianRun(); run != v || of != 0 {
		t.Error("without iterations, a part was taken")
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Layers: []profile.Layer{layer(-1, 1), layer(0, 1), layer(1, 1)}}
	p.Layers[2].Scope = "/a//b/c"
	scopes, parents := Path(p, 2)
	if d := cmp.Diff([]string{"/a", "/a/", "/a//b", "/a//b/c"}, scopes); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{0, 1}, parents); d != "" {
		t.Error(d)
	}
}

// TestClocks puts lanes of three clocks beside each other: the timeline's own, one
// that runs slow by a known offset, and one of which nothing is known.
func TestClocks(t *testing.T) {
	t.Parallel()
	lane := func(clock string, starts ...float64) timeline.Lane {
		l := timeline.Lane{Name: clock + " lane", Kind: timeline.Engine, Clock: clock, Starts: starts}
		for range starts {
			l.Durations, l.Stalls = append(l.Durations, 0.5), append(l.Stalls, 0.25)
		}
		return l
	}
	p := &profile.Profile{Timeline: &timeline.Timeline{
		Method: "recorded", Clocks: []timeline.Clock{{Name: "slow", OffsetS: new(100.0), Rate: new(2.0)}, {Name: "apart"}},
		Lanes:    []timeline.Lane{lane("", 3, 4), lane("slow", 102, 103), lane("apart", 7000, 7001)},
		Counters: []timeline.Counter{{Name: "c", Clock: "slow", Times: []float64{101}, Values: []float64{1}}},
	}}
	v := Of(p)
	for i, want := range [][3]float64{{3, 4, 0.5}, {4, 6, 1}, {3, 4, 0.5}} {
		l := &v.Lanes[i]
		if got := [3]float64{l.Starts[0], l.Starts[1], l.Durations[0]}; got != want {
			t.Errorf("%s: starts and length %v, want %v", l.Name, got, want)
		}
	}
	if got := v.Lanes[1].Stalls[0]; got != 0.5 {
		t.Errorf("a wait lasts %g s, want 0.5", got)
	}
	if got := v.Counters[0].Times[0]; got != 2 {
		t.Errorf("the counter is at %g s, want 2", got)
	}
	if want := "recorded; times by the clock apart can be compared among themselves only"; v.Method != want {
		t.Errorf("method %q, want %q", v.Method, want)
	}
	if p.Timeline.Lanes[1].Starts[0] != 102 {
		t.Error("the profile was changed")
	}
	if one := v.Lane(1); len(one.Lanes) != 1 || one.Lanes[0].Name != "slow lane" || len(one.Links) != 0 {
		t.Errorf("one lane: %+v", one.Timeline)
	}
}
