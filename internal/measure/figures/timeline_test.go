package figures

import (
	"fmt"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile/timeline"
)

// recorded makes a timeline of inferences: times has the seconds of each layer in each of them.
func recorded(times [][]float64) *timeline.Timeline {
	whole := timeline.Lane{Name: "iterations", Kind: timeline.Iteration}
	ops := timeline.Lane{Name: "operators", Kind: timeline.Layer}
	t := &timeline.Timeline{Method: "clock"}
	at := 0.0
	for n, layers := range times {
		t.Names = append(t.Names, fmt.Sprintf("iteration %d", n))
		whole.Starts, whole.Labels, whole.Iterations = append(whole.Starts, at), append(whole.Labels, int32(n)), append(whole.Iterations, int32(n))
		begin := at
		for layer, s := range layers {
			ops.Starts, ops.Durations = append(ops.Starts, at), append(ops.Durations, s)
			ops.Layers, ops.Iterations = append(ops.Layers, int32(layer)), append(ops.Iterations, int32(n))
			at += s
		}
		whole.Durations = append(whole.Durations, at-begin)
	}
	t.Lanes = []timeline.Lane{whole, ops}
	return t
}

// TestRepresentative: the inference of median length may have layers far from their medians. The
// one that is nearest in all layers is kept, and no disturbed one.
func TestRepresentative(t *testing.T) {
	t.Parallel()
	times := [][]float64{
		{5, 2, 5}, // of median length, but its layers are not typical
		{2, 5, 5},
		{3, 4, 5}, // disturbed, and at the medians
		{3, 4, 5.125},
		{3.5, 4, 5}, // at the medians of the others
		{9, 9, 9},
	}
	for _, tt := range []struct {
		name string
		calm func(int32) bool
		want int64
	}{
		{"undisturbed", func(n int32) bool { return n != 2 }, 4},
		{"unknown", nil, 2},
		{"all disturbed", func(int32) bool { return false }, 2},
	} {
		got := SampleTimeline(recorded(times), 4, tt.calm)
		if got.Representative == nil || *got.Representative != tt.want {
			t.Errorf("%s: %v, want %d", tt.name, got.Representative, tt.want)
			continue
		}
		if n := got.Lanes[0].Iterations; len(n) != 1 || int64(n[0]) != tt.want || got.Names[got.Lanes[0].Labels[0]] != fmt.Sprintf("iteration %d", tt.want) || len(got.Names) != 1 {
			t.Errorf("%s: kept %v, names %v", tt.name, n, got.Names)
		}
		if want := fmt.Sprintf("clock; sample of 1 of 6 inferences, spread evenly, with the representative one (iteration %d)", tt.want); got.Method != want {
			t.Errorf("%s: %q", tt.name, got.Method)
		}
		if err := got.Validate(3); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestSampleSize: the sample is bounded by the layers and not by the number of inferences, and
// keeps one inference of any size.
func TestSampleSize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ runs, layers, bars, want int }{
		{5, 3, 4000, 5}, {100, 3, 4000, 16}, {5000, 3, 4000, 16}, {200, 900, 4000, 4}, {20, 50, 10, 1},
	} {
		times := make([][]float64, tt.runs)
		for i := range times {
			for range tt.layers {
				times[i] = append(times[i], 1)
			}
		}
		got := SampleTimeline(recorded(times), tt.bars, nil)
		if n := len(got.Lanes[0].Starts); n != tt.want || len(got.Lanes[1].Starts) != n*tt.layers || len(got.Names) != n {
			t.Errorf("%+v: %d inferences, %d operators, %d names", tt, n, len(got.Lanes[1].Starts), len(got.Names))
		}
		if !strings.Contains(got.Method, fmt.Sprintf("sample of %d of %d inferences", tt.want, tt.runs)) {
			t.Errorf("%+v: %q", tt, got.Method)
		}
	}
}

// TestSampleWithoutInferences keeps the first bars of a timeline that does not tell inferences
// apart, and its links between these.
func TestSampleWithoutInferences(t *testing.T) {
	t.Parallel()
	l := timeline.Lane{Name: "x", Kind: timeline.Thread, Starts: []float64{0, 1, 2}, Durations: []float64{1, 1, 1}}
	got := SampleTimeline(&timeline.Timeline{Lanes: []timeline.Lane{l}, Links: []timeline.Link{{ToBar: 1}, {FromBar: 1, ToBar: 2}}}, 2, nil)
	if len(got.Lanes[0].Starts) != 2 || len(got.Links) != 1 || got.Representative != nil || got.Method != "; of bars of no inference the first ones, without 1" {
		t.Errorf("%+v", got)
	}
	if SampleTimeline(nil, 1, nil) != nil {
		t.Error("a sample of nothing")
	}
}
