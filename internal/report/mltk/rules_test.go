package mltk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

func n64(v int64) *int64 { return &v }

func est(v float64) *profile.Metric { return profile.Value(profile.Estimated, v, "") }

// kws is an estimate of three layers on an accelerator, the last of which it refuses, and
// one of a body, which the profiler does not know.
func kws() *profile.Profile {
	t := func(shape ...int64) profile.Tensor { return profile.Tensor{DType: "int8", Shape: shape} }
	p := &profile.Profile{
		Model:  profile.Model{Name: "kws", FileBytes: n64(2000), Inputs: []profile.Tensor{t(1, 49, 10)}, Outputs: []profile.Tensor{t(1, 4), {DType: "float32"}}},
		Target: profile.Target{ID: "chip", Kind: profile.TargetSimulator, Accelerator: "mvp", ClockHz: new(1e6)},
		Totals: profile.Totals{RAMBytes: n64(3000)},
		Memory: &profile.Memory{PersistentBytes: n64(1000), ArenaBytes: n64(2000), StepLayers: []int64{-1, 0, 1, 2}, Plan: []profile.Buffer{
			{Name: "in;x", Bytes: 1000, Offset: 0, First: 0, Last: 1}, {Name: "mid", Bytes: 500, Offset: 1000, First: 1, Last: 2}, {Name: "out", Bytes: 4, Offset: 1996, First: 3, Last: 4},
		}},
	}
	add := func(op string, l profile.Layer) {
		l.Index, l.Op, l.State = int64(len(p.Layers)), op, profile.Ran
		p.Layers = append(p.Layers, l)
	}
	add("CONV_2D", profile.Layer{
		MLTKOps: n64(4000), MLTKMACs: n64(2000), Placement: &profile.Placement{On: "mvp"}, CPUCycles: est(100), AcceleratorCycles: est(900), SimulatorCycles: est(800), Latency: est(5), Energy: est(2e-6),
		Inputs: []profile.Tensor{t(1, 49, 10), {Absent: true}, t(8, 3, 3)}, Outputs: []profile.Tensor{t(1, 25, 8)},
		Options: []profile.Option{{Key: "padding", Value: "same"}, {Key: "stride", Value: "2x2"}, {Key: "activation", Value: "relu_n1"}}, Figures: map[string]*profile.Metric{"accelerator_programs": est(3), "accelerator_stalls": est(7), "accelerator_no_ops": est(0)},
	})
	add("SOFTMAX", profile.Layer{MLTKOps: n64(20), MLTKMACs: n64(0), Placement: &profile.Placement{On: profile.CPU, Cause: profile.ByOperator}, CPUCycles: est(300), Latency: est(5), Energy: est(1e-6), Outputs: []profile.Tensor{t()}})
	add("ADD", profile.Layer{Placement: &profile.Placement{On: profile.CPU, Cause: profile.ByLimit}, CPUCycles: est(600), Latency: est(5), Options: []profile.Option{{Key: "x", Value: "y"}}})
	add("MUL", profile.Layer{Parent: n64(2), MLTKOps: n64(1e6), Latency: est(9), CPUCycles: est(1e6)})
	return p
}

func written(t *testing.T, write func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestText has the layout of the profiler with the figures worked out: times are those of
// the longer of processor and accelerator at the clock.
func TestText(t *testing.T) {
	t.Parallel()
	text := func(o Options) string {
		return written(t, func(b *bytes.Buffer) error { return Text(b, kws(), o) })
	}
	want := `Profiling Summary
Name: kws
Accelerator: MVP
Input Shape: 1x49x10
Input Data Type: int8
Output Shape: 1x4,0
Output Data Type: int8,float32
Flash, Model File Size (bytes): 2.0k
RAM, Runtime Memory Size (bytes): 3.0k
Operation Count: 4.0k
Multiply-Accumulate Count: 2.0k
Layer Count: 3
Unsupported Layer Count: 1
Accelerator Cycle Count: 800.0
CPU Cycle Count: 1.0k
CPU Utilization (%): 58.8
Clock Rate (hz): 1.0M
Time (s): 1.7m
Energy (J): 3.0u
J/Op: 746.3p
J/MAC: 1.5n
Ops/s: 2.4M
MACs/s: 1.2M
Inference/s: 588.2

Model Layers
+-------+---------+--------+--------+------------+------------+------------+----------+---------------+--------------+-------------------------------------------+------------+----------------+
| Index | OpCode  | # Ops  | # MACs | Acc Cycles | CPU Cycles | Energy (J) | Time (s) | Input Shape   | Output Shape | Options                                   | Supported? | Error Msg      |
+-------+---------+--------+--------+------------+------------+------------+----------+---------------+--------------+-------------------------------------------+------------+----------------+
| 0     | conv_2d | 4.0k   | 2.0k   | 800.0      | 100.0      | 2.0u       | 800.0u   | 1x49x10,8x3x3 | 1x25x8       | Padding:Same stride:2x2 activation:Relu_N1 | True       |                |
| 1     | softmax | 20.0   | 0      | 0          | 300.0      | 1.0u       | 300.0u   |               | 0            | Type=softmaxoptions                       | True       |                |
| 2     | add     | None   | None   | 0          | 600.0      | None       | 600.0u   |               |              | Type=none                                 | False      | limit exceeded |
+-------+---------+--------+--------+------------+------------+------------+----------+---------------+--------------+-------------------------------------------+------------+----------------+
`
	squeeze := func(s string) string { // widths of columns follow from their cells
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '-' }), "-")
		return strings.Join(strings.Fields(s), " ")
	}
	if got := text(Options{Estimates: true}); squeeze(got) != squeeze(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Lines of the table are equally long.
	var long []int
	for _, l := range strings.Split(text(Options{Estimates: true}), "\n") {
		if strings.HasPrefix(l, "|") || strings.HasPrefix(l, "+") {
			long = append(long, len(l))
		}
	}
	if len(long) != 7 || slices.Min(long) != slices.Max(long) {
		t.Errorf("lines of %v characters", long)
	}
	// Estimates are shown where they are asked for: without, what is simulated is left.
	got := text(Options{})
	if strings.Contains(got, "Time (s)") || strings.Contains(got, "CPU Cycle") || strings.Contains(got, "Energy") || !strings.Contains(got, "Accelerator Cycle Count: 800.0\n") || !strings.Contains(got, "| Index | OpCode  | # Ops | # MACs | Acc Cycles | Input Shape ") {
		t.Errorf("without estimates:\n%s", got)
	}
	raw := text(Options{Estimates: true, Raw: true})
	for _, want := range []string{"(bytes): 2000\n", "Operation Count: 4020\n", "CPU Utilization (%): 58.8235294117", "Time (s): 0.0017", "Energy (J): 3e-06\n", "J/Op: 7.462686567164179e-10\n", "Clock Rate (hz): 1000000\n", "Inference/s: 588.2352941176471\n"} {
		if !strings.Contains(raw, want) {
			t.Errorf("raw, no %q in\n%s", want, raw)
		}
	}
	if !strings.Contains(raw, "| None           |") {
		t.Errorf("raw, the message of a supported layer:\n%s", raw)
	}
	full := text(Options{Full: true})
	for _, want := range []string{
		"Accelerator Programs: 3.0\n", "Accelerator Stalls: 7.0\n", "| Acc Cycles | Accelerator Programs | Accelerator Stalls |",
		"\nMemory Plan\nTotal: 3.0k\nPersistent: 1.0k\nBuffers: 2.0k\n",
		// 2000 bytes in 64 columns: half of it, a quarter from there, and the last column.
		"inputs     " + strings.Repeat("0", 32) + strings.Repeat(".", 32) + "  1.0k\n",
		"0 conv_2d  " + strings.Repeat("0", 32) + strings.Repeat("1", 16) + strings.Repeat(".", 16) + "  1.5k\n",
		"1 softmax  " + strings.Repeat(".", 32) + strings.Repeat("1", 16) + strings.Repeat(".", 16) + "  500.0\n",
		"2 add      " + strings.Repeat(".", 63) + "2  4.0\n",
		"outputs    " + strings.Repeat(".", 63) + "2  4.0\nLegend:\n",
		"|   | Offset | Size  | Buffer |", "| 0 | 0      | 1.0k  | in     |", "| 1 | 1.0k   | 500.0 | mid    |", "| 2 | 2.0k   | 4.0   | out    |",
	} {
		if !strings.Contains(full, want) {
			t.Errorf("full, no %q in\n%s", want, full)
		}
	}
	if strings.Contains(full, "No Ops") || strings.Contains(full, "Instructions") {
		t.Errorf("counts that no layer has:\n%s", full)
	}
	p := kws()
	p.Incomplete = []profile.Missing{{Cause: profile.ByError, Text: "cut"}}
	if got := written(t, func(b *bytes.Buffer) error { return Text(b, p, Options{Estimates: true}) }); !strings.HasSuffix(got, "\nIncomplete: an error: cut\n") {
		t.Errorf("incomplete:\n%s", got)
	}
	if got := written(t, func(b *bytes.Buffer) error { return Text(b, p, Options{}) }); strings.Contains(got, "Incomplete") {
		t.Errorf("incomplete without times:\n%s", got)
	}
	// Texts of files are made safe; an accelerator may be named.
	got = text(Options{Text: strings.ToUpper, Accelerator: "npu", Full: true})
	if !strings.Contains(got, "Name: KWS\nAccelerator: NPU\n") || !strings.Contains(got, "| CONV_2D |") || !strings.Contains(got, "| MID    |") {
		t.Errorf("safe texts:\n%s", got)
	}
}

// TestJSONAndCSV have plain numbers by key, the same as the text.
func TestJSONAndCSV(t *testing.T) {
	t.Parallel()
	var doc struct {
		Summary, SummaryLabels, LayerLabels map[string]any
		Layers                              []map[string]any
		Plan                                map[string]any `json:"memory_plan"`
		Incomplete                          *string
	}
	read := func(text string) {
		t.Helper()
		doc.Summary, doc.Layers, doc.Plan = nil, nil, nil
		var raw map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &raw); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		for key, to := range map[string]any{"summary": &doc.Summary, "summary_labels": &doc.SummaryLabels, "layer_labels": &doc.LayerLabels, "layers": &doc.Layers} {
			if err := json.Unmarshal(raw[key], to); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
		}
		if raw["memory_plan"] != nil {
			if err := json.Unmarshal(raw["memory_plan"], &doc.Plan); err != nil {
				t.Fatal(err)
			}
		}
	}
	read(written(t, func(b *bytes.Buffer) error { return JSON(b, kws(), Options{Estimates: true, Full: true}) }))
	for key, want := range map[string]any{"name": "kws", "accelerator": "mvp", "tflite_size": 2000.0, "ops": 4020.0, "macs": 2000.0, "n_layers": 3.0, "n_unsupported_layers": 1.0, "accelerator_cycles": 800.0, "cpu_cycles": 1000.0, "cpu_clock_rate": 1e6, "accelerator_programs": 3.0} {
		if doc.Summary[key] != want {
			t.Errorf("summary, %s: %v, want %v", key, doc.Summary[key], want)
		}
	}
	// a sum of three
	if v, ok := doc.Summary["time"].(float64); !ok || !(math.Abs(v-0.0017) <= 1e-15) {
		t.Errorf("time %v, want 0.0017", doc.Summary["time"])
	}
	if doc.SummaryLabels["tflite_size"] != "Flash, Model File Size (bytes)" || doc.LayerLabels["cpu_cycles"] != "CPU Cycles" || len(doc.LayerLabels) != len(doc.Layers[0]) {
		t.Errorf("labels %v, %v", doc.SummaryLabels, doc.LayerLabels)
	}
	if l := doc.Layers[2]; l["opcode"] != "add" || l["ops"] != nil || l["accelerator_cycles"] != 0.0 || l["supported"] != false || l["error_msg"] != "limit exceeded" || l["time"] != 0.0006 {
		t.Errorf("the last layer: %v", l)
	}
	if l := doc.Layers[0]; l["error_msg"] != nil || l["supported"] != true {
		t.Errorf("the first layer: %v", l)
	}
	if b := doc.Plan["buffers"].([]any); doc.Plan["total"] != 3000.0 || doc.Plan["persistent"] != 1000.0 || doc.Plan["buffers_size"] != 2000.0 || len(b) != 3 || fmt.Sprint(b[1]) != "map[end:2 name:mid offset:1000 size:500 start:1]" {
		t.Errorf("plan %v", doc.Plan)
	}
	csv := written(t, func(b *bytes.Buffer) error {
		return CSV(b, kws(), Options{Text: func(s string) string { return "<" + s + ">" }})
	})
	want := `name,accelerator,input_shape,input_dtype,output_shape,output_dtype,tflite_size,runtime_memory_size,ops,macs,n_layers,n_unsupported_layers,accelerator_cycles
<kws>,<MVP>,<1x49x10>,<int8>,"<1x4,0>","<int8,float32>",2000,3000,4020,2000,3,1,800

index,opcode,ops,macs,accelerator_cycles,input_shape,output_shape,options,supported,error_msg
0,<conv_2d>,4000,2000,800,"<1x49x10,8x3x3>",<1x25x8>,<Padding:Same stride:2x2 activation:Relu_N1>,True,
1,<softmax>,20,0,0,<>,<0>,<Type=softmaxoptions>,True,
2,<add>,,,0,<>,<>,<Type=none>,False,<limit exceeded>
`
	if csv != want {
		t.Errorf("got\n%s\nwant\n%s", csv, want)
	}
}

// TestFolder writes two files whose names say what was measured and where.
func TestFolder(t *testing.T) {
	t.Parallel()
	for kind, want := range map[profile.TargetKind]string{profile.TargetSimulator: "simulated", profile.TargetDevice: "embedded", profile.TargetHost: "host"} {
		dir := filepath.Join(t.TempDir(), "a", "b")
		p := kws()
		p.Target.Kind = kind
		names, err := Folder(dir, p, Options{Accelerator: "../NPU"})
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Join(dir, "profiling_report-npu-"+want)
		if !slices.Equal(names, []string{base + ".txt", base + ".json"}) {
			t.Errorf("%s: %q", kind, names)
		}
		text, err := os.ReadFile(names[0])
		if err != nil || !strings.HasPrefix(string(text), "Profiling Summary\nName: kws\n") {
			t.Errorf("%s: %.40q, %v", kind, text, err)
		}
		var doc struct {
			Summary map[string]any
			Layers  []map[string]any
		}
		data, err := os.ReadFile(names[1])
		if err == nil {
			err = json.Unmarshal(data, &doc)
		}
		// Both have prefixes, unless plain numbers were asked for.
		if err != nil || doc.Summary["tflite_size"] != "2.0k" || doc.Summary["n_layers"] != 3.0 || doc.Layers[0]["error_msg"] != "" || doc.Layers[2]["error_msg"] != "limit exceeded" {
			t.Errorf("%s: %v, %v", kind, doc, err)
		}
	}
	p := kws()
	p.Target.Accelerator = ""
	if names, err := Folder(t.TempDir(), p, Options{Raw: true}); err != nil || filepath.Base(names[0]) != "profiling_report-simulated.txt" {
		t.Errorf("without accelerator: %q, %v", names, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(file, p, Options{}); err == nil {
		t.Error("a file is taken for a folder")
	}
}

// TestMeasure has which figures of a layer are shown: simulated cycles before measured
// ones, times of a simulator from cycles, of others as they are, with the bodies'.
func TestMeasure(t *testing.T) {
	t.Parallel()
	real := func(v float64) *profile.Metric { return profile.Value(profile.Measured, v, "") }
	value := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	for _, c := range []struct {
		name     string
		l        profile.Layer
		kind     profile.TargetKind
		clock    float64
		o        Options
		acc, cpu int64
		time     float64 // -1 for none
	}{
		{"nothing", profile.Layer{}, profile.TargetHost, 0, Options{Estimates: true}, -1, -1, -1},
		{"measured", profile.Layer{Latency: real(2), CPUCycles: real(7.6), AcceleratorCycles: real(9.4)}, profile.TargetDevice, 1, Options{}, 9, 8, 2},
		{"estimated cycles are not those of the accelerator", profile.Layer{AcceleratorCycles: est(9)}, profile.TargetDevice, 1, Options{Estimates: true}, -1, -1, -1},
		{"simulated before measured", profile.Layer{AcceleratorCycles: real(9), SimulatorCycles: est(5.5)}, profile.TargetDevice, 1, Options{}, 6, -1, -1},
		{"not on it", profile.Layer{Placement: &profile.Placement{On: profile.CPU}}, profile.TargetDevice, 1, Options{}, 0, -1, -1},
		{"on it", profile.Layer{Placement: &profile.Placement{On: "npu"}}, profile.TargetDevice, 1, Options{}, -1, -1, -1},
		{"estimates not asked for", profile.Layer{Latency: est(2), CPUCycles: est(7)}, profile.TargetSimulator, 1, Options{}, -1, -1, -1},
		{"by cycles", profile.Layer{Latency: est(2), CPUCycles: est(7)}, profile.TargetSimulator, 2, Options{Estimates: true}, -1, 7, 3.5},
		{"by the longer", profile.Layer{Latency: est(2), CPUCycles: est(7), SimulatorCycles: est(9)}, profile.TargetSimulator, 2, Options{Estimates: true}, 9, 7, 4.5},
		{"by the longer, the processor", profile.Layer{Latency: est(2), CPUCycles: est(9), SimulatorCycles: est(7)}, profile.TargetSimulator, 2, Options{Estimates: true}, 7, 9, 4.5},
		{"without a clock", profile.Layer{Latency: est(2), CPUCycles: est(7)}, profile.TargetSimulator, 0, Options{Estimates: true}, -1, 7, 2},
		{"without cycles", profile.Layer{Latency: est(2)}, profile.TargetSimulator, 2, Options{Estimates: true}, -1, -1, 2},
		{"a chip's time", profile.Layer{Latency: real(2), CPUCycles: real(7)}, profile.TargetDevice, 2, Options{}, -1, 7, 2},
		{"with bodies", profile.Layer{Latency: real(2), Total: real(5)}, profile.TargetHost, 0, Options{}, -1, -1, 5},
	} {
		p := &profile.Profile{Target: profile.Target{Kind: c.kind, ClockHz: &c.clock}}
		m := measure(p, &c.l, c.o)
		time := -1.0
		if m.time != nil {
			time = *m.time
		}
		if value(m.acc) != c.acc || value(m.cpu) != c.cpu || time != c.time {
			t.Errorf("%s: %d and %d cycles, %v s, want %d, %d and %v", c.name, value(m.acc), value(m.cpu), time, c.acc, c.cpu, c.time)
		}
	}
}

// TestNumbers writes numbers as the profiler's tools do.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 1: "1.0", 999.94: "999.9", 1000: "1.0k", 2835000: "2.8M", 3e9: "3.0G", 4e12: "4.0T", 5e15: "5000.0T", 0.0355: "35.5m", 1e-3: "1.0m", 9.99e-4: "999.0u", 2e-6: "2.0u", 3e-9: "3.0n", 4e-12: "4.0p", 5e-15: "0.0p", -1500: "-1.5k",
	} {
		if got := prefixed(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, "None"}, {true, "True"}, {false, "False"}, {int64(7), "7"}, {"x", "x"}, {0.0, "0.0"}, {2.0, "2.0"}, {2.5, "2.5"}, {1e-4, "0.0001"}, {9e-5, "9e-05"}, {-9e-5, "-9e-05"}, {1e15, "1000000000000000.0"}, {1e16, "1e+16"},
	} {
		if got := plain(c.v, "None"); got != c.want {
			t.Errorf("%v: %q, want %q", c.v, got, c.want)
		}
	}
	for _, c := range []struct {
		f    field
		want any
	}{
		{field{key: "index", value: int64(12345)}, int64(12345)},
		{field{key: "cpu_utilization", value: 12.345}, "12.3"},
		{field{key: "inf_per_sec", value: 1234.56}, "1234.6"},
		{field{key: "ops", value: int64(12345)}, "12.3k"},
		{field{key: "ops", value: nil}, nil},
		{field{key: "name", value: "x"}, "x"},
		{field{key: "supported", value: true}, true},
	} {
		if got := units(c.f); got != c.want {
			t.Errorf("%+v: %v, want %v", c.f, got, c.want)
		}
	}
	if per(3, nil) != nil || per(3, n64(0)) != 0.0 || per(3, n64(2)) != 1.5 || rate(nil, 2) != nil || rate(n64(3), 2) != 1.5 {
		t.Error("quotients")
	}
	for key, want := range map[string]string{"accelerator_no_ops": "Accelerator No Ops", "x": "X", "": "", "a__b": "A  B"} {
		if got := title(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
	if got := written(t, func(b *bytes.Buffer) error {
		var s strings.Builder
		boxed(&s, nil)
		boxed(&s, [][]string{{"a", "bb"}, {"日本", "c"}})
		_, err := b.WriteString(s.String())
		return err
	}); got != "+------+----+\n| a    | bb |\n+------+----+\n| 日本 | c  |\n+------+----+\n" {
		t.Errorf("a table:\n%s", got)
	}
	for _, c := range []struct {
		l    profile.Layer
		want string
	}{
		{profile.Layer{Op: "ADD"}, "Type=none"},
		{profile.Layer{Op: "EXPAND_DIMS", OptionTable: "ExpandDimsOptions"}, "Type=expanddimsoptions"},
		{profile.Layer{Op: "CONCATENATION", OptionTable: "ConcatenationOptions", Options: []profile.Option{{Key: "axis", Value: "3"}}}, "Type=concatenationoptions"},
		{profile.Layer{Op: "RESHAPE"}, "Type=none"},
		{profile.Layer{Op: "RESHAPE", OptionTable: "ReshapeOptions"}, "Type=reshapeoptions"},
		{profile.Layer{Op: "TRANSPOSE_CONV", OptionTable: "TransposeConvOptions", Options: []profile.Option{{Key: "padding", Value: "same"}, {Key: "stride", Value: "2x2"}, {Key: "activation", Value: "none"}}}, "Padding:Same stride:2x2"},
		{profile.Layer{Op: "MEAN", Options: []profile.Option{{Key: "activation", Value: "relu"}}}, "Type=reduceroptions"},
		{profile.Layer{Op: "ADD", Options: []profile.Option{{Key: "activation", Value: "relu6"}}}, "Activation:Relu6"},
		{profile.Layer{Op: "ADD", Options: []profile.Option{{Key: "stride_x", Value: "a_b"}, {Key: "activation", Value: "sign_bit"}}}, "Stride X:a_b activation:Sign_Bit"},
	} {
		if got := options(&c.l); got != c.want {
			t.Errorf("%+v: %q, want %q", c.l, got, c.want)
		}
	}
	for _, c := range []struct {
		l    profile.Layer
		want bool
	}{
		{profile.Layer{}, false}, {profile.Layer{State: profile.Unsupported}, true}, {profile.Layer{Placement: &profile.Placement{Cause: profile.ByType, Text: "x"}}, false}, {profile.Layer{Placement: &profile.Placement{Cause: profile.ByLimit, Text: "x"}}, true},
	} {
		if got := message(&c.l) != ""; got != c.want {
			t.Errorf("%+v: a message %v, want %v", c.l, got, c.want)
		}
	}
}
