package chrome

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// recorded is a profile with one of everything that a trace can carry. Bars: 0 has all
// figures, also those that are zero; 1 has none that is known.
func recorded() *profile.Profile {
	link := timeline.Link{FromLane: 0, FromBar: 0, ToLane: 1, ToBar: 0}
	return &profile.Profile{
		Schema: profile.SchemaV1, Created: "2026-11-22T00:00:00Z",
		Model:    profile.Model{Name: "m", SHA256: "abc"},
		Target:   profile.Target{ID: "board", Kind: profile.TargetDevice},
		Settings: profile.Settings{Version: "9"},
		Totals:   profile.Totals{Latency: profile.Value(profile.Measured, 0.005, "")},
		Layers: []profile.Layer{{
			Op: "CONV_2D", Name: "c", State: profile.Ran, Scope: "s", Graph: "g", Kernel: "k", MACs: new(int64(12)),
			Inputs: []profile.Tensor{{Name: "x", DType: "int8", Shape: []int64{1, 2}}, {Absent: true}}, Outputs: []profile.Tensor{{Name: "y", DType: "int32", Shape: []int64{3}}},
		}},
		Quantities: []profile.Quantity{{Key: "conflicts", Name: "Conflicts", Adds: true}},
		Incomplete: []profile.Missing{{Cause: profile.ByRecord, Text: "cut"}},
		Timeline: &timeline.Timeline{
			Origin: "power on", Method: "trace unit", Iterations: new(int64(7)), Dropped: new(int64(2)),
			Names: []string{"first", "in"}, Subnets: []string{"sub"},
			Lanes: []timeline.Lane{
				{
					Name: "unit", Kind: timeline.Engine, Group: "core 0", Starts: []float64{0.001, 0.003}, Durations: []float64{0.001, 0.002},
					Layers: []int32{0, -1}, Labels: []int32{-1, 0}, Iterations: []int32{0, -1}, Subnets: []int32{0, -1}, Directions: []int32{1, -1},
					Bytes: []int64{0, -1}, Utilisation: []float64{0, -1}, Stalls: []float64{0.0005, 0}, Figures: map[string][]float64{"conflicts": {0, -1}},
				},
				{Name: "layers", Kind: timeline.Layer, Starts: []float64{0.002}, Durations: []float64{0.0015}, Layers: []int32{0}},
			},
			Counters: []timeline.Counter{
				{Name: "bandwidth", Unit: "B/s", Times: []float64{0.0005}, Values: []float64{1.5}},
				{Name: "depth", Group: "core 0", Times: []float64{0.006}, Values: []float64{3}},
			},
			Links:    []timeline.Link{link},
			Memories: []timeline.Memory{{Name: "sram"}},
		},
	}
}

// The trace of a profile that has one of everything, event by event.
func TestEverything(t *testing.T) {
	t.Parallel()
	p := recorded()
	text := write(t, p)
	read(t, text)
	var got struct {
		OtherData   map[string]string
		TraceEvents []map[string]any
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	head := map[string]string{
		"writer": "opmeter 9", "model": "m", "model_sha256": "abc", "target": "board", "created": "2026-11-22T00:00:00Z", "times": "trace unit", "origin": "power on",
		"iterations_run": "7", "records_dropped": "2", "left_out": "accesses to 1 memories", "incomplete": got.OtherData["incomplete"],
	}
	if d := cmp.Diff(head, got.OtherData); d != "" {
		t.Errorf("head (-want +got):\n%s", d)
	}
	if got.OtherData["incomplete"] == "" {
		t.Error("the trace does not say that records are missing")
	}
	type m = map[string]any
	const whole, core = 1.0, 2.0
	layer := m{
		"layer": 0.0, "forward_time": "1.5ms", "input_tensor_name": "x", "input_type": "int8", "input_shape": "1*2",
		"output_tensor_name": "y", "output_type": "int32", "output_shape": "3", "attributes": "", "op": "CONV_2D", "scope": "s", "graph": "g", "kernel": "k", "macs": 12.0,
	}
	meta := func(name string, pid, tid float64, key string, v any) m {
		return m{"ph": "M", "name": name, "pid": pid, "tid": tid, "args": m{key: v}}
	}
	want := []m{
		meta("process_name", whole, 0, "name", "m on board"), meta("process_sort_index", whole, 0, "sort_index", 1.0),
		meta("process_name", core, 0, "name", "core 0"), meta("process_sort_index", core, 0, "sort_index", 2.0),
		meta("process_labels", whole, 0, "labels", "trace unit"),
		meta("thread_name", whole, 1, "name", "inference"), meta("thread_sort_index", whole, 1, "sort_index", 1.0),
		meta("thread_name", core, 2, "name", "unit"), meta("thread_sort_index", core, 2, "sort_index", 2.0),
		meta("thread_name", whole, 3, "name", "layers"), meta("thread_sort_index", whole, 3, "sort_index", 3.0),
		// Counters may begin before the model does.
		{"ph": "C", "name": "bandwidth", "pid": whole, "tid": 0.0, "ts": 500.0, "args": m{"B/s": 1.5}},
		{"ph": "X", "name": "model_inference", "cat": "inference", "pid": whole, "tid": 1.0, "ts": 1000.0, "dur": 4000.0, "args": m{"model": "m", "latency_us": 5000.0}},
		{"ph": "X", "name": "c", "cat": "CONV_2D", "pid": core, "tid": 2.0, "ts": 1000.0, "dur": 1000.0, "args": m{
			"iteration": 0.0, "subnet": "sub", "direction": "in", "moved_bytes": 0.0, "utilisation": 0.0, "stall_us": 500.0, "bar_conflicts": 0.0, "layer": 0.0,
		}},
		{"ph": "X", "name": "stall", "cat": "stall", "pid": core, "tid": 2.0, "ts": 1000.0, "dur": 500.0},
		{"ph": "s", "name": "link", "cat": "link", "id": 1.0, "pid": core, "tid": 2.0, "ts": 1000.0},
		{"ph": "X", "name": "c", "cat": "CONV_2D", "pid": whole, "tid": 3.0, "ts": 2000.0, "dur": 1500.0, "args": layer},
		{"ph": "f", "bp": "e", "name": "link", "cat": "link", "id": 1.0, "pid": whole, "tid": 3.0, "ts": 2000.0},
		{"ph": "X", "name": "first", "pid": core, "tid": 2.0, "ts": 3000.0, "dur": 2000.0, "args": m{}},
		{"ph": "C", "name": "depth", "pid": core, "tid": 0.0, "ts": 6000.0, "args": m{"count": 3.0}},
	}
	for i, w := range want {
		if i >= len(got.TraceEvents) {
			t.Fatalf("only %d events", i)
		}
		g := got.TraceEvents[i]
		if w["name"] == "first" { // what the category of a bar without layer is, is told elsewhere
			delete(g, "cat")
		}
		if d := cmp.Diff(w, g); d != "" {
			t.Errorf("event %d (-want +got):\n%s", i, d)
		}
	}
	if len(got.TraceEvents) != len(want) {
		t.Errorf("%d events, want %d", len(got.TraceEvents), len(want))
	}
}

// On the computer itself shapes were planned before: recorded bars say so, as traces of
// the Neural Engine's profiler do.
func TestReshapeTime(t *testing.T) {
	t.Parallel()
	for kind, want := range map[profile.TargetKind]any{profile.TargetHost: "0ms", profile.TargetDevice: nil} {
		p := recorded()
		p.Target.Kind = kind
		n := 0
		for _, e := range read(t, write(t, p)) {
			if e.Args["forward_time"] == nil {
				continue
			}
			n++
			if e.Args["reshape_time"] != want {
				t.Errorf("%s: reshape_time is %v, want %v", kind, e.Args["reshape_time"], want)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d bars of layers", kind, n)
		}
	}
}

// At the limit every bar carries all of its layer, beyond it the first one only.
func TestArgumentsLimit(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{FullArgs: FullArgs, FullArgs + 1: 1} {
		l := timeline.Lane{Name: "l", Kind: timeline.Layer, Starts: make([]float64, n), Durations: make([]float64, n), Layers: make([]int32, n)}
		for i := range n {
			l.Starts[i] = float64(i)
		}
		p := &profile.Profile{Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "t"}, Layers: []profile.Layer{{Op: "A"}}, Timeline: &timeline.Timeline{Lanes: []timeline.Lane{l}}}
		if full := bytes.Count(write(t, p), []byte(`"op":"A"`)); full != want {
			t.Errorf("of %d bars %d have all arguments, want %d", n, full, want)
		}
	}
}

// Nothing ran: the trace has names only.
func TestEmpty(t *testing.T) {
	t.Parallel()
	for _, e := range read(t, write(t, &profile.Profile{Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "t"}})) {
		if e.Ph != "M" || e.Name == "thread_name" {
			t.Errorf("%+v", e)
		}
	}
}
