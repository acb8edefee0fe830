package pprof

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	format "github.com/google/pprof/profile"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// read writes p and reads it with the format's own library.
func read(t *testing.T, p *profile.Profile) *format.Profile {
	t.Helper()
	f, err := format.ParseData(write(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// stack is a sample's frames from the inside out, each with its line and the kind of
// thing that it is.
func stack(s *format.Sample) (out []string) {
	for _, l := range s.Location {
		f := l.Line[0].Function
		kind, _, _ := strings.Cut(f.SystemName, ":")
		frame := kind + " " + f.Name
		if n := l.Line[0].Line; n != 0 {
			frame += " " + string(rune('0'+n))
		}
		out = append(out, frame)
	}
	return out
}

// The whole file of a profile that has every figure: those of a layer without them are
// zero, and layers that are not work of the inference are left out.
func TestWhole(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{
		Created: "2026-01-02T03:04:05Z", Model: profile.Model{Name: "m", Path: "dir/m.tflite"}, Target: profile.Target{ID: "board", Engine: "tflm"},
		Totals: profile.Totals{Latency: profile.Value(profile.Measured, 0.75, "")},
		Layers: []profile.Layer{
			{
				Index: 0, Op: "ADD", State: profile.Ran, Scope: "ADD", Latency: profile.Value(profile.Measured, 0.25, "cycle counter"),
				MACs: new(int64(12)), BytesRead: new(int64(30)), BytesWritten: new(int64(4)), CPUCycles: profile.Value(profile.Measured, 7, ""), AcceleratorCycles: profile.Value(profile.Measured, 9, ""), Energy: profile.Value(profile.Measured, 3e-6, ""),
				WeightsBytes: new(int64(0)), Kernel: "k", Graph: "g", Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Node: 5}}},
				Outputs: []profile.Tensor{{Name: "y", DType: "int8", Shape: []int64{2, 3}}, {Name: "z", DType: "int32"}},
			},
			{Index: 1, Op: "MUL", Name: "twin", State: profile.Ran, Latency: profile.Value(profile.Measured, 0.5, ""), Outputs: []profile.Tensor{{DType: "int8"}}},
			{Index: 2, Op: "MUL", Name: "twin", State: profile.Folded},
			{Index: 3, Op: "MUL", Name: "later", State: profile.NotReached},
			{Index: 4, Op: "MUL", Name: "off", State: profile.Skipped},
		},
	}
	f := read(t, p)
	var types []string
	for _, s := range f.SampleType {
		types = append(types, s.Type+" "+s.Unit)
	}
	type sample struct {
		Stack  []string
		Values []int64
		Label  map[string][]string
		Number map[string][]int64
		Unit   map[string][]string
	}
	var got []sample
	for _, s := range f.Sample {
		got = append(got, sample{stack(s), s.Value, s.Label, s.NumLabel, s.NumUnit})
	}
	if d := cmp.Diff([]string{"inferences count", "wall nanoseconds", "bytes bytes", "macs count", "cpu_cycles count", "accelerator_cycles count", "energy nanojoules"}, types); d != "" {
		t.Error(d)
	}
	want := []sample{
		{
			// Scope and kind of one name are two frames, as is the operator.
			[]string{"operator ADD #0 6", "scope ADD", "kind ADD", "model m"},
			[]int64{1, 250e6, 34, 12, 7, 9, 3000},
			map[string][]string{"op_type": {"ADD"}, "provider": {"tflm"}, "device": {"board"}, "kernel": {"k"}, "graph": {"g"}, "dtype": {"int8"}, "output_shape": {"2x3"}},
			map[string][]int64{"layer": {0}, "node_index": {5}, "parameter_size": {0}},
			map[string][]string{"layer": {"count"}, "node_index": {"count"}, "parameter_size": {"bytes"}},
		},
		{
			// The name is shared with a layer that is left out, and yet says which.
			[]string{"operator twin #1 2", "kind MUL", "model m"},
			[]int64{1, 500e6, 0, 0, 0, 0, 0},
			map[string][]string{"op_type": {"MUL"}, "provider": {"tflm"}, "device": {"board"}, "dtype": {"int8"}},
			map[string][]int64{"layer": {1}},
			map[string][]string{"layer": {"count"}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
	if f.TimeNanos != time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano() || f.DurationNanos != 750e6 {
		t.Errorf("made at %d, %d ns long", f.TimeNanos, f.DurationNanos)
	}
	if f.DefaultSampleType != "wall" || f.PeriodType.Type != "wall" || f.PeriodType.Unit != "nanoseconds" || f.Period != 1 {
		t.Errorf("default %q, period %d %v: figures are nanoseconds themselves", f.DefaultSampleType, f.Period, f.PeriodType)
	}
	if d := cmp.Diff([]string{"per-operator profile of one inference of m on board", "wall: measured, best figure of each layer. cycle counter"}, f.Comments); d != "" {
		t.Error(d)
	}
	// Nothing is left for a reader to look up: it has no binary to look in.
	if len(f.Mapping) != 1 || !f.Mapping[0].HasFunctions || !f.Mapping[0].HasFilenames || !f.Mapping[0].HasLineNumbers || f.Mapping[0].File != "dir/m.tflite" {
		t.Errorf("mappings %v", f.Mapping)
	}
	for _, l := range f.Location {
		if l.Mapping != f.Mapping[0] || l.Address < f.Mapping[0].Start || l.Address >= f.Mapping[0].Limit {
			t.Errorf("location %d is at %d, outside the model", l.ID, l.Address)
		}
		if fn := l.Line[0].Function; fn.Filename != "dir/m.tflite" || fn.StartLine != l.Line[0].Line {
			t.Errorf("%q lies in %q from line %d, want line %d", fn.Name, fn.Filename, fn.StartLine, l.Line[0].Line)
		}
	}
}

// Without a path the model goes by its name; without times there are no figures but the
// two that are always there.
func TestBare(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "t"}, Incomplete: []profile.Missing{{Cause: profile.ByEnd, Text: "stopped"}}, Layers: []profile.Layer{{Op: "ADD", Name: "a", State: profile.Ran}, {Index: 1, Op: "ADD", Name: "a\xff", State: profile.Ran}}}
	f := read(t, p)
	if len(f.SampleType) != 2 || f.SampleType[0].Type != "inferences" || f.SampleType[1].Type != "wall" {
		t.Errorf("figures %v", f.SampleType)
	}
	for i, s := range f.Sample {
		if d := cmp.Diff([]int64{1, 0}, s.Value); d != "" {
			t.Errorf("layer %d: %s", i, d)
		}
	}
	if f.Mapping[0].File != "m" || f.TimeNanos != 0 || f.DurationNanos != 0 {
		t.Errorf("%q, made at %d, %d ns long", f.Mapping[0].File, f.TimeNanos, f.DurationNanos)
	}
	if len(f.Comments) != 2 || f.Comments[1] != "incomplete: "+words.Incomplete(p) {
		t.Errorf("comments %q", f.Comments)
	}
	if got := stack(f.Sample[1])[0]; !strings.HasPrefix(got, "operator a\ufffd") {
		t.Errorf("a name that is not UTF-8 is %q", got)
	}
	// What 64 bits cannot hold stays positive.
	p.Layers[0].Latency = profile.Value(profile.Estimated, 1e30, "")
	if v := read(t, p).Sample[0].Value[1]; v < 1<<61 {
		t.Errorf("1e30 s are %d ns", v)
	}
	var none bytes.Buffer
	if err := Write(&none, &profile.Profile{}); err != nil || none.Len() == 0 {
		t.Errorf("a profile without layers: %d bytes, %v", none.Len(), err)
	}
}
