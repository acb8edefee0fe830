package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/mltk"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/testing/update"
	"github.com/opmeter/opmeter/profile"
)

// options makes a list of options of texts like "padding:same stride:2x2".
func options(s string) []profile.Option {
	var out []profile.Option
	for _, o := range strings.Fields(s) {
		key, value, _ := strings.Cut(o, ":")
		out = append(out, profile.Option{Key: key, Value: value})
	}
	return out
}

// measured is a time with its spread.
func measured(s float64) *profile.Metric {
	return &profile.Metric{
		Kind: profile.Measured, N: new(int64(50)), Median: new(s), Mean: new(1.01 * s), Min: new(0.9 * s),
		Max: new(1.5 * s), P90: new(1.1 * s), StdDev: new(0.05 * s), CI95: &[2]float64{0.98 * s, 1.02 * s},
	}
}

func tensorOf(name string, dims ...int64) profile.Tensor {
	return profile.Tensor{Name: name, DType: "float32", Shape: dims}
}

// hostile are names as a file may hold them.
var hostile = []string{
	`quoted "name", with comma`,
	"<script>alert(1)</script>&amp;",
	"=HYPERLINK(\"http://example.invalid\")",
	"-2+3", "@sum", "+1",
	"bell\a escape\x1b[31m line\nfeed\ttab\x00",
	"right-to-left \u202eelif.exe",
	"a|b_c*d`e[f](g)\\h",
	"日本語の層 ✓",
	strings.Repeat("long/", 2000),
	"not utf-8 \xff\xfe",
}

// fixed is a made-up profile with everything that a report shows.
func fixed() *profile.Profile {
	p := &profile.Profile{
		Schema: profile.SchemaV1, Created: "2026-01-02T03:04:05Z",
		Model: profile.Model{
			Name: "net|<b>", Path: "dir/net.onnx", Format: "onnx", FileBytes: new(int64(54321)),
			Inputs: []profile.Tensor{tensorOf("image", 1, 3, 32, 32)}, Outputs: []profile.Tensor{tensorOf("scores", 1, 10)},
		},
		Target: profile.Target{ID: "host", Kind: profile.TargetHost, Engine: "opmeter", Peaks: []profile.Peak{
			{DType: "float32", Kernel: "go", OpsPerSecond: 2e9, ProcessorOpsPerSecond: new(2e11), ProcessorSet: "avx512f"}, {DType: "int8", OpsPerSecond: 3e9},
		}},
		Settings: profile.Settings{Threads: new(int64(2))},
		Host:     &profile.Host{CPUModel: "Test CPU"},
		Totals: profile.Totals{
			Layers: new(int64(6)), Ops: new(int64(2_500_000)), MACs: new(int64(1_200_000)), MACsExecuted: new(int64(1_100_000)),
			Params: new(int64(4567)), WeightsBytes: new(int64(18268)), RAMBytes: new(int64(65536)), FlashBytes: new(int64(54321)),
			UncountedLayers: new(int64(1)), UnsupportedLayers: new(int64(1)), Latency: measured(1.5e-3),
			Figures: map[string]*profile.Metric{
				"undisturbed_latency_s": {Kind: profile.Measured, N: new(int64(40)), Median: new(1.4e-3), CI95: &[2]float64{1.3e-3, 1.5e-3}},
				"reference_latency_s":   {Kind: profile.Measured, N: new(int64(50)), Median: new(1.21e-3), CI95: &[2]float64{1.1e-3, 1.3e-3}},
				"machine_speed":         {Kind: profile.Measured, N: new(int64(50)), Median: new(0.8), Min: new(0.6), Max: new(0.9)},
			},
		},
		Phases:    &profile.Phases{LoadS: new(1e-4), PlanS: new(2e-4), FirstRunS: new(3e-3), Warmup: &profile.Warmup{TimeS: new(0.5), Count: new(int64(300))}},
		Reconcile: &profile.Reconcile{WallS: new(1.51e-3), OperatorsS: new(1.509e-3), GapsS: new(1e-6), PlainS: new(1.5e-3), ProfiledS: new(1.51e-3), OverheadS: profile.Value(profile.Measured, 1e-6, "")},
		Trust: &profile.Trust{
			Verdict: profile.Fair, Fit: profile.FitShares, Tolerance: new(0.12), Quote: "undisturbed_latency_s", Interval: profile.OfThisRun, Blocks: new(int64(20)),
			Doubts: []profile.Doubt{
				{Code: profile.DoubtWaiting, Verdict: profile.Fair, Value: new(0.08), Limit: new(0.02)},
				{Code: profile.DoubtBusy, Verdict: profile.Good, Value: new(1.3), Limit: new(0.5)},
			},
		},
		Findings: []profile.Finding{
			{ID: "time.operators", Severity: profile.Info, Text: "Time by operator: Conv 90 % in 1 layer."},
			{ID: "measure.unstable", Severity: profile.Warning, Text: "Times vary by 5.0 %: " + strings.Repeat("words that have to be wrapped ", 6) + "end."},
			{ID: "model.unsupported", Severity: profile.Problem, Text: "Mystery cannot run in 1 layer.\x1b[0m", Layers: []int64{3}},
		},
	}
	add := func(op, name string, l profile.Layer) {
		l.Index, l.Op, l.Name = int64(len(p.Layers)), op, name
		l.State = cmp.Or(l.State, profile.Ran)
		p.Layers = append(p.Layers, l)
	}
	add("Conv", "block/conv", profile.Layer{
		Scope: "block", Options: options("kernel:3x3 stride:1x1"), Inputs: []profile.Tensor{tensorOf("image", 1, 3, 32, 32)}, Outputs: []profile.Tensor{tensorOf("c", 1, 16, 32, 32)},
		Ops: new(int64(2_400_000)), MACs: new(int64(1_200_000)), Params: new(int64(448)), BytesRead: new(int64(14080)), BytesWritten: new(int64(65536)),
		Latency: measured(1.35e-3), Share: new(0.9), Roof: &profile.Roof{Bound: profile.BoundCompute, DType: "float32", Level: "L2", OpsPerSecond: new(2e9), BytesPerSecond: new(5e9), Use: new(0.9)},
	})
	add("Relu", "block/relu", profile.Layer{Scope: "block", State: profile.Fused, FusedInto: new(int64(0))})
	add("Shape", "shape", profile.Layer{State: profile.Folded})
	add("Mystery", "m", profile.Layer{Domain: "com.example", State: profile.Unsupported, Cause: &profile.Cause{Code: profile.ByOperator, Text: "version 1"}})
	add("Loop", "loop", profile.Layer{Latency: measured(1e-4), Share: new(0.0667), Outputs: []profile.Tensor{tensorOf("l", 1, -1)}})
	add("Softmax", "softmax", profile.Layer{Parent: new(int64(4)), Graph: "body", Latency: measured(5e-5), Share: new(0.0333), Calls: new(4.0), Outputs: []profile.Tensor{tensorOf("scores", 1, 10)}})
	for i, r := range profile.Ranks(p.Layers) {
		l := &p.Layers[i]
		if l.Rank = r; r != nil {
			l.ShareCI95 = &[2]float64{l.Latency.CI95[0] / 1.5e-3, l.Latency.CI95[1] / 1.5e-3}
		}
	}
	return p
}

// accelerated is a made-up estimate for a chip with an accelerator: layers that
// it takes, and one for every reason why not.
func accelerated() *profile.Profile {
	n := func(v int64) *int64 { return &v }
	f := func(v float64) *profile.Metric { return profile.Value(profile.Estimated, v, "") }
	cpu := func(cause profile.CauseCode, text string) *profile.Placement {
		return &profile.Placement{On: profile.CPU, Cause: cause, Text: text}
	}
	p := &profile.Profile{
		Schema: profile.SchemaV1,
		Model: profile.Model{
			Name: "kws", Format: "tflite", FileBytes: n(21288), Inputs: []profile.Tensor{tensorOf("mfcc", 1, 49, 10, 1)}, Outputs: []profile.Tensor{tensorOf("scores", 1, 4)},
		},
		Target: profile.Target{ID: "chip", Kind: profile.TargetSimulator, ClockHz: new(78e6), Accelerator: "mvp", Engine: "tflm"},
		Totals: profile.Totals{
			Layers: n(5), Ops: n(2_000_000), MACs: n(900_000), MLTKOps: n(1_900_000), MLTKMACs: n(900_000), FlashBytes: n(21288), RAMBytes: n(11_200),
			UnsupportedLayers: n(1), Latency: f(6e-3), CPUCycles: f(118e3), AcceleratorCycles: f(404e3), SimulatorCycles: f(324e3), Energy: f(56e-6),
		},
		Memory: &profile.Memory{ArenaBytes: n(10_000), PeakBytes: n(9_900), PersistentBytes: n(1_200), ScratchBytes: n(3_920), Planner: "tflm", AlignBytes: n(16), StepLayers: []int64{-1, 0, 1, 2, 3, 4}, Plan: []profile.Buffer{
			{Name: "mfcc", Bytes: 490, Offset: 8000, First: 0, Last: 1},
			{Name: "conv/Relu;conv/BiasAdd;" + strings.Repeat("conv/", 20), Bytes: 4000, Offset: 4000, First: 1, Last: 2},
			{Name: "scratch of CONV_2D", Bytes: 3920, Offset: 0, First: 1, Last: 1, Scratch: true},
			{Name: "scores", Bytes: 4, Offset: 0, First: 5, Last: 6},
		}},
	}
	add := func(op string, l profile.Layer) {
		l.Index, l.Op, l.Name = int64(len(p.Layers)), op, strings.ToLower(op)
		l.State = cmp.Or(l.State, profile.Ran)
		if l.Domain == "" {
			l.MLTKOps, l.MLTKMACs = n(380_000), n(180_000)
		}
		l.Ops, l.MACs, l.LiveBytes, l.Outputs = n(400_000), n(180_000), n(9_900), []profile.Tensor{tensorOf("t", 1, 4)}
		p.Layers = append(p.Layers, l)
	}
	add("CONV_2D", profile.Layer{Placement: &profile.Placement{On: "mvp"}, Latency: f(5e-3), CPUCycles: f(88e3), AcceleratorCycles: f(380e3), SimulatorCycles: f(300e3), Figures: map[string]*profile.Metric{"accelerator_programs": f(6), "accelerator_instructions": f(280_000), "accelerator_stalls": f(20_000), "accelerator_no_ops": f(0)}, Energy: f(50e-6), Share: new(0.9), Options: options("padding:same stride:2x2 activation:relu")})
	add("CONV_2D", profile.Layer{Placement: cpu(profile.ByLimit, "Output vector stride (2048) exceeded (max=2047)"), Latency: f(5e-4), CPUCycles: f(2e4), Energy: f(5e-6), Share: new(0.05)})
	add("MUL", profile.Layer{Placement: cpu(profile.ByType, "MVP takes int8, this layer has int16"), State: profile.NoEstimate, Cause: &profile.Cause{Code: profile.ByNoFigures}})
	add("RESHAPE", profile.Layer{Placement: cpu(profile.ByOperator, "not an MVP operator"), Latency: f(2e-4), CPUCycles: f(1e4), Share: new(0.05)})
	add("Mystery", profile.Layer{Domain: "custom", Placement: cpu(profile.ByOperator, "not an MVP operator"), State: profile.NoEstimate, Cause: &profile.Cause{Code: profile.ByOperator, Text: "custom operators are not known"}})
	return p
}

// withHostileNames adds a layer for every bad name.
func withHostileNames() *profile.Profile {
	p := fixed()
	for _, n := range hostile {
		p.Layers = append(p.Layers, profile.Layer{Index: int64(len(p.Layers)), Op: "Neg", State: profile.Ran, Name: n, Options: []profile.Option{{Key: n, Value: n}}, Outputs: []profile.Tensor{tensorOf(n, 4)}})
	}
	p.Model.Name, p.Model.Inputs[0].Name = hostile[6], hostile[7]
	return p
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, format string
		o            Options
		p            *profile.Profile
	}{
		{"table.txt", "table", Options{}, fixed()},
		{"table_80.txt", "table", Options{Width: 80}, fixed()},
		{"table_details_80.txt", "table", Options{Width: 80, Details: true}, fixed()},
		{"table_120_all.txt", "table", Options{Width: 120, All: true}, fixed()},
		{"table_top.txt", "table", Options{Width: 100, Sort: "time", Top: 2}, fixed()},
		{"table_by_op.txt", "table", Options{Width: 100, By: "op"}, fixed()},
		{"table_by_scope.txt", "table", Options{By: "scope", Sort: "macs"}, fixed()},
		{"profile.md", "markdown", Options{}, fixed()},
		{"profile.csv", "csv", Options{}, fixed()},
		{"profile.yaml", "yaml", Options{}, fixed()},
		{"accelerated_80.txt", "table", Options{Width: 80, Memory: true}, accelerated()},
		{"accelerated_120.txt", "table", Options{Width: 120, Details: true}, accelerated()},
		{"accelerated_by_op.txt", "table", Options{By: "op"}, accelerated()},
		{"accelerated.csv", "csv", Options{}, accelerated()},
		{"accelerated.md", "markdown", Options{Memory: true}, accelerated()},
		{"mltk.txt", "mltk", Options{}, accelerated()},
		{"mltk_full.txt", "mltk", Options{MLTK: mltk.Options{Full: true, Estimates: true}}, accelerated()},
		{"mltk_raw.txt", "mltk", Options{MLTK: mltk.Options{Raw: true, Estimates: true}}, accelerated()},
		{"mltk_host.txt", "mltk", Options{}, fixed()},
		{"mltk.json", "mltk-json", Options{MLTK: mltk.Options{Full: true, Estimates: true}}, accelerated()},
		{"mltk.csv", "mltk-csv", Options{MLTK: mltk.Options{Estimates: true}}, accelerated()},
		{"hostile_120.txt", "table", Options{Width: 120, Details: true}, withHostileNames()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := Write(&b, tt.p, tt.format, tt.o); err != nil {
				t.Fatal(err)
			}
			update.File(t, filepath.Join("testdata", tt.name), b.Bytes())
		})
	}
}

// TestWidth demands that no line is wider than the terminal.
func TestWidth(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 100, 120, 200} {
		for _, o := range []Options{{}, {All: true}, {By: "op"}, {By: "scope"}, {Color: true}} {
			o.Width = width
			var b bytes.Buffer
			if err := Write(&b, withHostileNames(), "table", o); err != nil {
				t.Fatal(err)
			}
			for _, l := range strings.Split(b.String(), "\n") {
				if n := text.Width(l); n > width {
					t.Errorf("%+v: line of %d columns: %q", o, n, l)
				}
			}
		}
	}
}

// TestHostileNames looks for what names must not do to a terminal, a spreadsheet
// or a page.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	out := map[string]string{}
	for _, f := range []string{"table", "markdown", "csv", "yaml", "json", "mltk", "mltk-csv"} {
		var b bytes.Buffer
		if err := Write(&b, withHostileNames(), f, Options{}); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[f] = b.String()
	}
	for f, s := range out {
		for _, bad := range []string{"\x1b", "\a", "\x00", "\u202e"} {
			if strings.Contains(s, bad) {
				t.Errorf("%s lets %q through", f, bad)
			}
		}
	}
	if strings.Contains(out["markdown"], "<script>") {
		t.Error("markdown lets a tag through")
	}
	rows, err := csv.NewReader(strings.NewReader(out["csv"])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + len(withHostileNames().Layers); len(rows) != want {
		t.Errorf("csv has %d rows, want %d", len(rows), want)
	}
	for _, r := range rows {
		for _, c := range r {
			if c != "" && strings.ContainsRune("=+@", rune(c[0])) {
				t.Errorf("csv has a formula: %q", c)
			}
		}
	}
	var b bytes.Buffer
	if err := Write(&b, withHostileNames(), "mltk-json", Options{MLTK: mltk.Options{Full: true}}); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := jsonx.Unmarshal(b.Bytes(), &m); err != nil {
		t.Errorf("mltk-json cannot be read: %v", err)
	}
	var y map[string]any
	if err := yaml.Unmarshal([]byte(out["yaml"]), &y); err != nil {
		t.Errorf("yaml cannot be read: %v", err)
	}
	p, err := profile.Decode(strings.NewReader(out["json"]))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Layers[6].Name; got != hostile[0] {
		t.Errorf("json: name %q, want %q", got, hostile[0])
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, got, want string }{
		{"nanoseconds", Duration(87.6e-9), "87.6 ns"},
		{"rounds up to the next unit", Duration(999.96e-6), "1.00 ms"},
		{"hours stay seconds", Duration(7200), "7200 s"},
		{"zero", Duration(0), "0 s"},
		{"negative", Duration(-1.5e-3), "-1.50 ms"},
		{"count", Count(999), "999"},
		{"count of thousands", Count(2660), "2.66 k"},
		{"bytes", Bytes(1023), "1023 B"},
		{"binary bytes", Bytes(1536), "1.50 KiB"},
		{"percent", Percent(0.1234), "12.3 %"},
		{"quantity", Quantity(2.5e9, "Hz"), "2.50 GHz"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	m := NewList(&b, ListOptions{Width: 100, Measured: true, Files: []string{"a.tflite", "b.tflite", "c.onnx", "dir/good.onnx"}})
	for i, text := range []string{
		`a.tflite: Model.buffers[3] at byte 12: offset 77 leads outside the 500 bytes`,
		`b.tflite: Model.subgraphs[0].name at byte 99: offset 1 leads outside the 9000 bytes`,
		`c.onnx: the file is empty`,
	} {
		path, why, _ := strings.Cut(text, ": ")
		if err := m.Add(ListRow{Path: path, Err: &textError{text}}); err != nil {
			t.Fatalf("%d %s: %v", i, why, err)
		}
	}
	if err := m.Add(ListRow{Path: "dir/good.onnx", TargetRow: TargetRow{Profile: fixed()}}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	update.File(t, filepath.Join("testdata", "list_100.txt"), b.Bytes())
}

type textError struct{ s string }

func (e *textError) Error() string { return e.s }

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := fixed()
	// Node data and models with metadata need to know where layers come from.
	_, of := profiled(t)
	of(p)
	err := File(filepath.Join(dir, "p.pdf"), fixed(), Options{})
	if err == nil {
		t.Fatal("unknown ending: no error")
	}
	for _, f := range formats() {
		for _, e := range f.endings {
			if !strings.Contains(err.Error(), e) {
				t.Errorf("unknown ending: %v does not name %s", err, e)
			}
		}
	}
	if err := File(filepath.Join(dir, "none", "p.csv"), fixed(), Options{}); err == nil {
		t.Error("a folder that does not exist: no error")
	}
	if err := File(filepath.Join(dir, "p.txt"), fixed(), Options{Sort: "size"}); err == nil || !strings.Contains(err.Error(), "cannot sort by") {
		t.Errorf("unknown order: %v", err)
	}
	want := 0
	for _, f := range formats() {
		for _, e := range f.endings {
			want++
			if err := File(filepath.Join(dir, "p"+e), p, Options{Top: 1, Width: 40}); err != nil {
				t.Errorf("%s: %v", e, err)
			}
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != want {
		t.Errorf("%d files, want %d and no temporary ones: %v", len(left), want, err)
	}
}
