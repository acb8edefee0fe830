package firefox

import (
	"fmt"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// recorded has two lanes: iterations, and layers with a bar within another that waits.
func recorded() *profile.Profile {
	return &profile.Profile{
		Created: "2026-01-02T03:04:05Z", Model: profile.Model{Name: "m", Path: "m.onnx"}, Target: profile.Target{ID: "t"}, Settings: profile.Settings{Version: "9"}, Host: &profile.Host{CPUModel: "cpu", OS: "linux", Arch: "amd64"},
		Layers: []profile.Layer{
			{Index: 0, Op: "CONV", Name: "c", State: profile.Ran, Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Node: 6}}}}, {Index: 1, Op: "ADD", State: profile.Ran}, {Index: 2, Op: "CONV", State: profile.Ran},
		},
		Timeline: &timeline.Timeline{
			Method: "trace unit", Origin: "power on", Names: []string{"run", "in"}, Lanes: []timeline.Lane{
				{Name: "iterations", Kind: timeline.Iteration, Starts: []float64{0.001}, Durations: []float64{0.009}, Labels: []int32{0}, Iterations: []int32{5}},
				{
					Name: "layers", Kind: timeline.Layer, Group: "core", Starts: []float64{0.001, 0.002, 0.006}, Durations: []float64{0.004, 0.0015, 0.00325}, Layers: []int32{0, 1, -1}, Labels: []int32{-1, -1, 1},
					Iterations: []int32{5, 5, -1}, Stalls: []float64{0.002, 0.0005, 0}, Bytes: []int64{0, -1, 7},
				},
			},
			Counters: []timeline.Counter{{Name: "k", Times: []float64{0}, Values: []float64{1}}}, Memories: []timeline.Memory{{Name: "s"}},
		},
	}
}

func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// ints reads optional numbers, -1 for null.
func ints(list []*int) (out []int) {
	for _, p := range list {
		if p == nil {
			out = append(out, -1)
			continue
		}
		out = append(out, *p)
	}
	return out
}

// The whole file of a profile that is worked out by hand.
func TestWhole(t *testing.T) {
	t.Parallel()
	f := read(t, recorded())
	m := &f.Meta
	if m.StartTime != 1767323045000 || m.Product != "m on t" || m.ImportedFrom != "opmeter 9" || m.CPUName != "cpu" || m.Oscpu != "linux amd64" || m.Version != 28 || m.Interval != 1 || !m.Symbolicated || !m.UsesOnlyOneStackType {
		t.Errorf("meta %+v", m)
	}
	var categories []string
	for _, c := range m.Categories {
		categories = append(categories, c.Name+" "+c.Color)
	}
	same(t, "categories", categories, []string{"Other grey", "CONV blue", "ADD green"})
	var extra []string
	for _, e := range m.Extra[0].Entries {
		extra = append(extra, e.Label+": "+e.Value)
	}
	same(t, "remarks", extra, []string{"Times: trace unit", "Time 0: power on", "Not in this file: 1 counters, 0 links, accesses to 1 memories"})
	if len(f.Threads) != 2 {
		t.Fatalf("%d threads", len(f.Threads))
	}
	a, b := &f.Threads[0], &f.Threads[1]
	if a.Name != "iterations" || a.IsMainThread || a.TID != 1 || a.ProcessName != "" || b.Name != "layers" || !b.IsMainThread || b.TID != 2 || b.ProcessName != "core" {
		t.Errorf("threads %q and %q", a.Name, b.Name)
	}
	same(t, "texts of the iterations", a.StringArray, []string{"run", "m.onnx"})
	same(t, "iterations", a.Samples.Time, []float64{1})
	same(t, "length of iterations", a.Samples.Weight, []float64{9})

	same(t, "texts", b.StringArray, []string{"c", "ADD", "stall", "in", "m.onnx"})
	// 1 to 2 in c, to 2.5 waiting in ADD in c, to 3.5 in ADD, to 5 in c, 6 to 9.25 in another.
	same(t, "times", b.Samples.Time, []float64{1, 2, 2.5, 3.5, 6})
	same(t, "weights", b.Samples.Weight, []float64{1, 0.5, 1, 1.5, 3.25})
	same(t, "stacks", b.Samples.Stack, []int{0, 2, 1, 0, 3})
	same(t, "frames of stacks", b.StackTable.Frame, []int{0, 1, 2, 3})
	same(t, "prefixes", ints(b.StackTable.Prefix), []int{-1, 0, 1, -1})
	same(t, "categories of stacks", b.StackTable.Category, []int{1, 2, 0, 0})
	same(t, "categories of frames", b.FrameTable.Category, []int{1, 2, 0, 0})
	same(t, "functions", b.FrameTable.Func, []int{0, 1, 2, 3})
	same(t, "lines", ints(b.FrameTable.Line), []int{7, 2, -1, -1})
	same(t, "names of functions", b.FuncTable.Name, []int{0, 1, 2, 3})
	same(t, "files", ints(b.FuncTable.FileName), []int{4, 4, 4, 4})
	same(t, "lines of functions", ints(b.FuncTable.LineNumber), []int{7, 2, -1, -1})
	same(t, "markers", b.Markers.Name, []int{0, 1, 2, 3})
	same(t, "starts", b.Markers.StartTime, []float64{1, 2, 2, 6})
	same(t, "ends", b.Markers.EndTime, []float64{5, 3.5, 2.5, 9.25})
	same(t, "categories of markers", b.Markers.Category, []int{1, 2, 0, 0})
	var data []string
	for _, d := range b.Markers.Data {
		data = append(data, fmt.Sprint(d))
	}
	same(t, "data", data, []string{
		"map[bytes:0 iteration:5 layer:0 op:CONV stall:2 type:Bar]", "map[iteration:5 layer:1 op:ADD stall:0.5 type:Bar]", "map[]", "map[bytes:7 op:" + string(timeline.Layer) + " type:Bar]",
	})

	// Without a file, a date or a machine nothing is said of them.
	p := recorded()
	p.Model.Path, p.Created, p.Host, p.Settings.Version = "", "some day", nil, ""
	p.Timeline.Counters, p.Timeline.Memories, p.Timeline.Origin = nil, nil, ""
	p.Timeline.Lanes = p.Timeline.Lanes[:1]
	f = read(t, p)
	if m := &f.Meta; m.StartTime != 0 || m.CPUName != "" || m.Oscpu != "" || m.ImportedFrom != "opmeter" || len(m.Extra[0].Entries) != 1 {
		t.Errorf("little is known: %+v", m)
	}
	if !f.Threads[0].IsMainThread {
		t.Error("the only thread is not the first to be shown")
	}
	same(t, "no files", ints(f.Threads[0].FuncTable.FileName), []int{-1})
	same(t, "no texts of files", f.Threads[0].StringArray, []string{"run"})
}

// Operators have categories of their own, a hundred in all; others share the grey one.
func TestCategories(t *testing.T) {
	t.Parallel()
	p := recorded()
	p.Layers = nil
	for i := range 120 {
		p.Layers = append(p.Layers, profile.Layer{Index: int64(i), Op: fmt.Sprint("op", i%110), State: profile.Ran})
	}
	p.Timeline.Lanes[1].Layers = []int32{98, 99, -1}
	f := read(t, p)
	if n := len(f.Meta.Categories); n != 100 || f.Meta.Categories[99].Name != "op98" || f.Meta.Categories[11].Color != "blue" || f.Meta.Categories[10].Color != "darkgrey" {
		t.Errorf("%d categories: %+v", n, f.Meta.Categories[9:13])
	}
	same(t, "categories", f.Threads[1].Markers.Category, []int{99, 0, 0, 0})
}

// Milliseconds are written exactly.
func TestMillisExact(t *testing.T) {
	t.Parallel()
	p := recorded()
	l := &p.Timeline.Lanes[1]
	l.Starts, l.Durations, l.Layers, l.Labels, l.Iterations, l.Stalls, l.Bytes = []float64{1e-9, 0.001000001, 1.5}, []float64{1e-9, 1e-7, 0.25}, nil, nil, nil, nil, nil
	m := &read(t, p).Threads[1].Markers
	same(t, "starts", m.StartTime, []float64{0.000001, 1.000001, 1500})
	same(t, "ends", m.EndTime, []float64{0.000002, 1.000101, 1750})
}
