package speedscope

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// recorded has two runs of three layers, the last in a body of the second, and waiting.
func recorded() *profile.Profile {
	ms := func(v float64) *profile.Metric { return profile.Value(profile.Measured, v/1e3, "") }
	return &profile.Profile{
		Model: profile.Model{Name: "m", Path: "m.onnx"}, Target: profile.Target{ID: "t"}, Settings: profile.Settings{Version: "9"},
		Layers: []profile.Layer{
			{Index: 0, Op: "CONV", Name: "c", Scope: "a/b", State: profile.Ran, Latency: ms(2), Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Node: 6}}}},
			{Index: 1, Op: "IF", State: profile.Ran, Latency: ms(1)},
			{Index: 2, Op: "ADD", Name: "d", State: profile.Ran, Parent: new(int64(1)), Latency: ms(3)},
			{Index: 3, Op: "MUL", State: profile.Folded, Latency: ms(9)},
			{Index: 4, Op: "SUB", State: profile.Ran},
		},
		Timeline: &timeline.Timeline{Names: []string{"run"}, Lanes: []timeline.Lane{
			{Name: "iterations", Kind: timeline.Iteration, Starts: []float64{0, 10}, Durations: []float64{5, 6}, Iterations: []int32{3, 4}, Labels: []int32{0, 0}},
			{Name: "layers", Kind: timeline.Layer, Starts: []float64{1, 11, 12, 15}, Durations: []float64{2, 2, 1, 1}, Layers: []int32{0, 0, -1, 1}, Iterations: []int32{3, 4, 3, 3}, Stalls: []float64{0.5, 0, 0, 0}},
			{Name: "empty", Kind: timeline.Engine},
		}},
	}
}

// The whole file of a profile that is worked out by hand.
func TestWhole(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	ev := func(kind string, at, frame float64) m { return m{"type": kind, "at": at * 1e9, "frame": frame} }
	frames := []any{m{"name": "c", "file": "m.onnx", "line": 7.0}, m{"name": "stall"}, m{"name": "layers"}, m{"name": "IF", "file": "m.onnx", "line": 2.0}, m{"name": "m"}, m{"name": "a"}, m{"name": "a/b"}, m{"name": "d", "file": "m.onnx", "line": 3.0}}
	want := m{
		"$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "opmeter 9", "name": "m on t", "activeProfileIndex": 0.0,
		"profiles": []any{
			// The shorter of two runs is number 3; its bars in the lane begin at one second.
			m{"type": "evented", "name": "median run (iteration 3, one of 2): layers", "unit": "nanoseconds", "startValue": 0.0, "endValue": 15e9, "events": []any{
				ev("O", 0, 0), ev("O", 0, 1), ev("C", 0.5, 1), ev("C", 2, 0), ev("O", 11, 2), ev("C", 12, 2), ev("O", 14, 3), ev("C", 15, 3),
			}},
			m{"type": "sampled", "name": "best figure of every layer, by scope", "unit": "nanoseconds", "startValue": 0.0, "endValue": 6e6, "samples": []any{[]any{4.0, 5.0, 6.0, 0.0}, []any{4.0, 3.0}, []any{4.0, 3.0, 7.0}}, "weights": []any{2e6, 1e6, 3e6}},
		},
		"shared": m{"frames": frames},
	}
	read := func(p *profile.Profile) m {
		t.Helper()
		var b bytes.Buffer
		if err := Write(&b, p); err != nil {
			t.Fatal(err)
		}
		var got m
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%v in %s", err, b.Bytes())
		}
		return got
	}
	// Anonymous events come as plain maps.
	plain := func(v any) any {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var out any
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if d := cmp.Diff(plain(want), plain(read(recorded()))); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	// Without a file there are no lines; without other lanes the iterations are shown.
	p := recorded()
	p.Model.Path, p.Settings.Version = "", ""
	p.Timeline.Lanes = p.Timeline.Lanes[:1]
	got := read(p)
	if got["exporter"] != "opmeter" {
		t.Errorf("exporter %q", got["exporter"])
	}
	first := got["profiles"].([]any)[0].(m)
	if first["name"] != "median run (iteration 3, one of 2): iterations" || len(first["events"].([]any)) != 2 {
		t.Errorf("%v", first)
	}
	if f := got["shared"].(m)["frames"].([]any)[0].(m); len(f) != 1 || f["name"] != "run" {
		t.Errorf("frame %v", f)
	}
	// Lanes without iterations are whole recordings.
	p = recorded()
	p.Timeline.Lanes = p.Timeline.Lanes[1:2]
	if first = read(p)["profiles"].([]any)[0].(m); first["name"] != "whole recording: layers" || len(first["events"].([]any)) != 10 {
		t.Errorf("%v", first)
	}
	p.Timeline = nil
	if first = read(p)["profiles"].([]any)[0].(m); first["name"] != "one inference laid out from figures, not recorded: layers" {
		t.Errorf("%v", first["name"])
	}
}
