package track_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

func slice(start, dur int64, layer int32) track.Slice {
	return track.Slice{Start: start, Dur: dur, Bytes: -1, Layer: layer, Iteration: -1, Label: -1, Type: -1}
}

// TestNest finds parents, own times, and rows for what overlaps in part.
func TestNest(t *testing.T) {
	t.Parallel()
	var tr track.Trace
	n := tr.Track(timeline.Thread, "", "t")
	for _, s := range []track.Slice{slice(10, 5, 1), slice(0, 30, 0), slice(10, 5, 2), slice(20, 20, 3), slice(15, 0, 4), slice(25, 5, 5), slice(35, -1, 6)} {
		tr.Add(n, s)
	}
	tr.Nest()
	k := tr.Tracks[n]
	var layers []int32
	for _, s := range k.Slices {
		layers = append(layers, s.Layer)
	}
	// By start, the first one that was added outside; 3 overlaps 0 in part.
	if d := cmp.Diff([]int32{0, 1, 2, 4, 3, 5, 6}, layers); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int32{-1, 0, 1, 0, -1, 0, -1}, k.Parents); d != "" {
		t.Error(d)
	}
	// 30 - 5 - 0 - 5; 5 - 5; the open one takes nothing from what it is in.
	if d := cmp.Diff([]int64{20, 0, 5, 0, 20, 5, 5}, k.Self); d != "" {
		t.Error(d)
	}
	if tr.Opened() != 1 || k.Slices[6].Dur != 5 {
		t.Errorf("%d open, the last one lasts %d", tr.Opened(), k.Slices[6].Dur)
	}
	for ts, want := range map[int64]int32{-1: -1, 0: 0, 12: 2, 17: 0, 26: 5, 33: 4, 40: 6, 41: -1} {
		if got := k.At(ts); got != want {
			t.Errorf("at %d is %d, want %d", ts, got, want)
		}
	}
	for ts, want := range map[int64]int32{-5: 0, 10: 1, 11: 3, 36: -1} {
		if got := k.Next(ts); got != want {
			t.Errorf("next to %d is %d, want %d", ts, got, want)
		}
	}
	tl := tr.Timeline("", "")
	if len(tl.Lanes) != 2 || tl.Lanes[1].Name != "t (2)" {
		t.Errorf("%+v", tl.Lanes)
	}
	if err := tl.Validate(7); err != nil {
		t.Error(err)
	}
}

// TestTally adds own times up by iteration.
func TestTally(t *testing.T) {
	t.Parallel()
	var tr track.Trace
	n := tr.Track(timeline.Thread, "", "t")
	aside := tr.Track(timeline.Host, "", "u")
	tr.Tracks[aside].Aside = true
	for i := range int64(3) {
		tr.Add(n, slice(100*i, 50, 0))
		tr.Add(n, slice(100*i+10, 10+i, 1))
		tr.Add(aside, slice(100*i, 7, 1))
	}
	tr.Nest()
	steps := []track.Step{{Start: 0, End: 60}, {Start: 100, End: 160}, {Start: 200, End: 205}}
	for _, s := range tr.All() {
		s.Iteration = track.InStep(steps, s.Start)
	}
	var tally runlog.Tally
	tr.Tally(&tally, []int64{60, 60, 60}, -1)
	p := &profile.Profile{Layers: make([]profile.Layer, 2)}
	tally.Fill(p)
	// The first iteration counts separately; of the third only the outer slice began in time.
	if d := cmp.Diff([]float64{39e-9, 11e-9, 38e-9, 0}, append(append([]float64{}, p.Layers[0].Samples[0], p.Layers[1].Samples[0]), p.Layers[0].Samples[1], p.Layers[1].Samples[1])); d != "" {
		t.Error(d)
	}
}

// TestLimit keeps what begins first, and says so.
func TestLimit(t *testing.T) {
	t.Parallel()
	tr := track.Trace{Limit: 4}
	a, b := tr.Track(timeline.Thread, "", "a"), tr.Track(timeline.Stream, "", "b")
	for i := range int64(5) {
		tr.Add(a, slice(10*i, 5, 0))
		tr.Add(b, slice(10*i+5, 5, 0))
	}
	tr.Nest()
	tr.Links = []track.Link{{FromTrack: a, From: 0, ToTrack: b, To: 0}, {FromTrack: a, From: 1, ToTrack: b, To: 4}}
	tl := tr.Timeline("", "recorded")
	if len(tl.Lanes[0].Starts) != 2 || len(tl.Lanes[1].Starts) != 2 || *tl.Dropped != 6 || tl.Method != "recorded; the 4 bars that begin in the first 2e-08 s are kept" {
		t.Errorf("%d and %d bars, %d dropped, %s", len(tl.Lanes[0].Starts), len(tl.Lanes[1].Starts), *tl.Dropped, tl.Method)
	}
	if d := cmp.Diff([]timeline.Link{{FromLane: 0, FromBar: 0, ToLane: 1, ToBar: 0}}, tl.Links); d != "" {
		t.Error(d)
	}
}

// TestAnyTimes makes valid timelines of slices anywhere in 30 years.
func TestAnyTimes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var tr track.Trace
		n := tr.Track(timeline.Thread, "", "")
		span := int64(1) << (4 + r.IntN(58))
		for range r.IntN(60) {
			s := slice(r.Int64N(span)-span/2, r.Int64N(1<<r.IntN(60)), -1)
			if r.IntN(10) == 0 {
				s.Dur = -1
			}
			tr.Add(n, s)
			if r.IntN(3) == 0 { // one that begins and ends with it
				tr.Add(n, slice(s.Start, max(0, s.Dur)/2, -1))
				tr.Add(n, slice(s.Start+max(0, s.Dur)/2, max(0, s.Dur)-max(0, s.Dur)/2, -1))
			}
		}
		c := tr.Counter("", "c", "")
		for range r.IntN(5) {
			tr.Value(c, r.Int64N(span), r.Float64())
		}
		tr.Nest()
		if tl := tr.Timeline("", ""); tl != nil {
			if err := tl.Validate(0); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

func TestStem(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"worker0.123.pt.trace.json": "worker0.123", "a.pftrace": "a", ".json": ".json", "x": "x", "": "unnamed", "m.speedscope.json": "m", "Trace.JSON.gz": "Trace",
	} {
		if got := track.Stem(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestAnyFigures makes valid timelines of bars whose arguments are any number, and keeps those that
// say something.
func TestAnyFigures(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"iteration", "layer", "moved_bytes", "utilisation", "stall_s", "stall_us", "bar_bank_conflicts", "latency_s", "other"} {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 0.5, 1e9, 1e20, math.MaxFloat64, -math.MaxFloat64} {
			var tr track.Trace
			n := tr.Track(timeline.Engine, "", "core")
			s, own, b := slice(0, 5, -1), track.Own{}, track.NewOwnBar()
			b.Number("stall_s", 0.25)
			b.Number("bar_cycles", 17)
			b.Number(key, v)
			own.Apply(&tr, n, &s, b, []byte("MatMul"), []byte("engine"))
			tr.Add(n, s)
			tr.Nest()
			tl := tr.Timeline("", "")
			if err := tl.Validate(1); err != nil {
				t.Errorf("%s %v: %v", key, v, err)
			}
			l := &tl.Lanes[0]
			if d := cmp.Diff([]float64{17}, l.Figures["cycles"]); d != "" || len(l.Stalls) != 1 {
				t.Errorf("%s %v: others are lost: %s, stalls %v", key, v, d, l.Stalls)
			}
			_, kept := l.Figures["bank_conflicts"]
			if want := key == "bar_bank_conflicts" && !math.IsNaN(v) && !math.IsInf(v, 0); kept != want {
				t.Errorf("%s %v: kept is %v", key, v, kept)
			}
		}
	}
}
