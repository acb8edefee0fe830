package xlsx

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workbook"
	"github.com/opmeter/opmeter/internal/report/whatif"
	"github.com/opmeter/opmeter/profile"
)

// told is a profile in which everything that the summary has is set.
func told() *profile.Profile {
	many := []profile.Tensor{{Name: "x", DType: "int8", Shape: []int64{1, 3}, Declared: []int64{-1, 3}}}
	for i := range 8 {
		many = append(many, profile.Tensor{Name: fmt.Sprintf("y%d", i), DType: "int8", Shape: []int64{2}})
	}
	p := &profile.Profile{
		Created: "2026-01-02T03:04:05Z",
		Model: profile.Model{
			Name: "net", Path: "dir/net.tflite", Format: "tflite", FormatVersion: new(int64(3)), FileBytes: new(int64(4096)), SHA256: "abc", Producer: "maker", Description: "words",
			Inputs: many, Outputs: []profile.Tensor{{Name: "z", DType: "float32", Shape: []int64{1, 10}}},
		},
		Target: profile.Target{ID: "this", Kind: "host", Accelerator: "npu", Engine: "kernels", ClockHz: new(2e9)},
		Host:   &profile.Host{CPUModel: "cpu", Cores: new(int64(4)), MemoryBytes: new(int64(8 << 30)), OS: "linux", Arch: "amd64", Kernel: "6.1", Governor: "performance", Virtual: "kvm", Fingerprint: "f00"},
		Settings: profile.Settings{
			Version: "1.2", Engine: "own", EngineVersion: "3", KernelSet: "avx2", Threads: new(int64(2)), PinnedCPUs: []int64{0, 2}, Runs: new(int64(50)), TimeS: new(1.5), WarmupRuns: new(int64(5)), WarmupS: new(0.25),
			Batch: new(int64(1)), InputKind: "normal", Seed: new(uint64(1<<64 - 1)), Passes: "interleaved", GarbageCollector: "off",
		},
		Totals: profile.Totals{
			Ops: new(int64(8150)), MACs: new(int64(4000)), MACsExecuted: new(int64(3900)), Params: new(int64(77)), WeightsBytes: new(int64(88)), BytesRead: new(int64(568)), BytesWritten: new(int64(999)),
			RAMBytes: new(int64(512)), FlashBytes: new(int64(1024)), UncountedLayers: new(int64(2)), UnsupportedLayers: new(int64(1)),
			Latency: &profile.Metric{
				Kind: profile.Measured, N: new(int64(50)), Median: new(2.5), Mean: new(3.0), Min: new(1.5), Max: new(9.0), P90: new(4.0), P95: new(5.0), P99: new(6.0), StdDev: new(0.5),
				CI95: &[2]float64{2.25, 2.75}, Method: "interleaved",
			},
			Energy: &profile.Metric{Kind: profile.Estimated, Median: new(0.5), Band: &[2]float64{0.25, 1}}, CPUCycles: profile.Value(profile.Counted, 1e9, "counter"), AcceleratorCycles: profile.Value(profile.Simulated, 500, ""),
			Figures: map[string]*profile.Metric{"own_k": profile.Value(profile.Measured, 3.25, ""), "operations_own": profile.Value(profile.Measured, 1, "")}, LatencySamples: []float64{2, 3},
		},
		Quantities: []profile.Quantity{{Key: "own_k", Unit: "K", Name: "temperature"}, {Key: "operations_own", Name: "operations", Whole: true}},
		Reconcile:  &profile.Reconcile{WallS: new(2.125), OperatorsS: new(1.75), GapsS: new(0.375), OverheadS: profile.Value(profile.Estimated, 0.0625, "by the number of readings")},
		Phases:     &profile.Phases{LoadS: new(0.5), PlanS: new(0.25), FirstRunS: new(4.0), Warmup: &profile.Warmup{TimeS: new(8.0), Reason: "steady"}},
		Findings:   []profile.Finding{{Severity: profile.Warning, Text: "slow"}, {Severity: profile.Problem, Text: "wrong"}, {Severity: profile.Info, Text: "as usual"}},
		Incomplete: []profile.Missing{{Cause: "odd", Text: "half"}},
		Layers: []profile.Layer{
			{Op: "Conv", State: profile.Ran, Latency: profile.Value(profile.Measured, 0.125, ""), Samples: []float64{1, 2, 3}},
			{Op: "Add", State: profile.Ran, Latency: profile.Value(profile.Measured, 0.5, "")},
			{Op: "Conv", State: profile.Ran, Latency: profile.Value(profile.Measured, 0.375, "")},
			// Work of a layer whose time is lost is not a part of a rate.
			{Op: "Relu", State: profile.Lost, Ops: new(int64(50)), BytesRead: new(int64(8)), BytesWritten: new(int64(8))},
		},
	}
	return p
}

// TestSummary has every line of the summary: sums of layers are formulas where they are
// the total, rates are formulas of figures above them.
func TestSummary(t *testing.T) {
	t.Parallel()
	f := written(t, told(), four(), &whatif.Table{})
	want := []string{
		"Profile of net",
		"Incomplete|odd: half",
		"",
		"Results",
		"figure|value|unit|kind|remark",
		"layers|=COUNTA(Layers!$B$2:$B$5)||counted|without 1 layers that cannot run",
		"operations|=SUM(Layers!$F$2:$F$5)|ops|counted|without 2 layers that cannot be counted",
		"multiply-accumulates|4000|MACs|counted|without 2 layers that cannot be counted",
		"MACs without padding|3900|MACs|counted",
		"parameters|77||counted|each counted once",
		"weights|88|bytes|counted|as stored",
		"bytes read|=SUM(Layers!$H$2:$H$5)|bytes|counted|each operand once per layer",
		"bytes written|999|bytes|counted", // the layers make 136
		"RAM|512|bytes|counted|working memory of an inference",
		"flash|1024|bytes|counted",
		"latency (median)|2.5|s|measured|95 % CI 2.25 to 2.75; 50 samples; interleaved",
		"latency (min)|1.5|s|measured",
		"latency (mean)|3|s|measured",
		"latency (p90)|4|s|measured",
		"latency (p95)|5|s|measured",
		"latency (p99)|6|s|measured",
		"latency (max)|9|s|measured",
		"latency (standard deviation)|0.5|s|measured",
		"sum of layers|=SUM(Layers!$C$2:$C$5)|s|measured|shares of layers refer to this sum",
		"energy|0.5|J|estimated|90 % band 0.25 to 1",
		"CPU cycles|1000000000|cycles|counted|counter",
		"accelerator cycles|500|cycles|simulated",
		"temperature|3.25|K|measured",
		"operations (operations_own)|1||measured",
		"inferences per second|=1/B16|1/s|measured",
		"operations per second|=(B7-50)/B16|ops/s|measured",
		"multiply-accumulates per second|=B8/B16|MACs/s|measured",
		"bytes per second|=((B12-8)+(B13-8))/B16|bytes/s|measured",
		"operations per byte|=(B7-50)/((B12-8)+(B13-8))|ops/byte|counted",
		"energy per operation|=B25/(B7-50)|J/op|estimated",
		"energy per multiply-accumulate|=B25/B8|J/MAC|estimated",
		"mean power|=B25/B16|W|estimated",
		"CPU utilisation|=MIN(1,B26/(2000000000*B16))||measured|cycles over clock times latency",
		"sum of layers and gaps|2.125|s|measured|the latency, which the shares divide",
		"time in operators|1.75|s|measured",
		"time not in layers|0.375|s|measured",
		"profiling overhead|0.0625|s|estimated|by the number of readings",
		"load|0.5|s|measured",
		"compile|0.25|s|measured",
		"first run|4|s|measured",
		"warm-up|8|s|measured|steady",
		"",
		"Findings",
		"warning|slow",
		"problem|wrong",
		string(profile.Info) + "|as usual",
		"",
		"Model",
		"name|net",
		"file|dir/net.tflite",
		"format|tflite version 3",
		"file size|4096|bytes",
		"SHA-256|abc",
		"producer|maker",
		"description|words",
		"input|x int8 ?x3 as 1x3",
		"input|y0 int8 2", "input|y1 int8 2", "input|y2 int8 2", "input|y3 int8 2", "input|y4 int8 2", "input|y5 int8 2", "input|y6 int8 2",
		"|and 1 more",
		"output|z float32 1x10",
		"",
		"Target",
		"target|this",
		"kind|host",
		"accelerator|npu",
		"engine|kernels",
		"clock|2000000000|Hz",
		"processor|cpu",
		"cores|4",
		"memory|8589934592|bytes",
		"system|linux amd64 6.1",
		"governor|performance",
		"virtual machine|kvm",
		"fingerprint|f00",
		"",
		"Settings",
		"date|2026-01-02T03:04:05Z",
		"opmeter|1.2",
		"engine|own 3",
		"kernels|avx2",
		"threads|2",
		"pinned to CPUs|0 2",
		"requested runs|50",
		"requested time|1.5|s",
		"requested warm-up|5|runs",
		"requested warm-up|0.25|s",
		"batch|1",
		"inputs|normal",
		"seed|18446744073709551615",
		"passes|interleaved",
		"garbage collector|off",
		"",
		"About this workbook",
	}
	got := shown(t, f, "Summary")
	equal(t, "Summary", got[:min(len(got), len(want))], want)
	if n := len(want) + 3; len(got) != n || !strings.HasPrefix(got[n-2], "Samples|The profile holds 5 samples;") {
		t.Errorf("the summary ends with %q", got[len(want):])
	}
	computed(t, f)
	row := func(name string) int {
		return 1 + slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, name+"|") })
	}
	for name, want := range map[string]string{
		"file size": "#,##0", "clock": "#,##0", "requested time": "0.###", "layers": "#,##0", "operations": "#,##0", "energy": "0.000E+00", "CPU cycles": "#,##0",
		"temperature": "#,##0.000", "operations (operations_own)": "#,##0", "inferences per second": "#,##0.00", "operations per byte": "0.00", "energy per operation": "0.000E+00", "CPU utilisation": "0.0%",
		// Five digits of a second, which is what the layers take, and two of the figure itself.
		"latency (median)": "0.0000", "profiling overhead": "0.0000", "sum of layers and gaps": "0.0000",
	} {
		if x := formatAt(t, f, "Summary", at(1, row(name))); x != want {
			t.Errorf("%s is shown as %q, want %q", name, x, want)
		}
	}
	// The name that formulas of other sheets go by.
	sum := ""
	for _, n := range f.GetDefinedName() {
		if n.Name == "layer_time_s" {
			sum = n.RefersTo
		}
	}
	if want := fmt.Sprintf("Summary!$B$%d", row("sum of layers")); sum != want {
		t.Errorf("layer_time_s is %s, want %s", sum, want)
	}
	for name, color := range map[string]string{"warning": "B26B00", "problem": "B3261E", string(profile.Info): ""} {
		if s := looks(t, f, "Summary", at(0, row(name))); !s.Font.Bold || s.Font.Color != color {
			t.Errorf("%s: %+v, want %q", name, s.Font, color)
		}
	}
	merged, err := f.GetMergeCells("Summary")
	if err != nil {
		t.Fatal(err)
	}
	// What is missing, three findings and three texts at the end go over the sheet.
	if len(merged) != 7 || merged[0].GetStartAxis() != "B2" || merged[0].GetEndAxis() != "E2" {
		t.Errorf("merged: %v", merged)
	}
	for i, want := range []float64{34, 20, 12, 12, 80} {
		if w, err := f.GetColWidth("Summary", workbook.ColumnName(i)); err != nil || w != want {
			t.Errorf("column %d is %v wide, want %v (%v)", i, w, want, err)
		}
	}
	about, err := f.GetDocProps()
	if err != nil || about.Creator != "opmeter" || about.Title != "Profile of net" || about.Created != "2026-01-02T03:04:05Z" || about.Modified != about.Created {
		t.Errorf("about: %+v, %v", about, err)
	}
	if want := []string{"Summary", "Layers", "By operator", "Sparse what-if", "Columns"}; !slices.Equal(f.GetSheetList(), want) {
		t.Errorf("sheets %q, want %q", f.GetSheetList(), want)
	}
}

// TestSummaryOfLittle leaves out what is not known.
func TestSummaryOfLittle(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Model: profile.Model{Name: "net", Format: "onnx"}, Target: profile.Target{ID: "this"}, Created: "some day"}
	f := written(t, p, []Column{col("op", nil), col("latency_s", nil)}, &whatif.Table{})
	got := shown(t, f, "Summary")
	equal(t, "Summary", got[:15], []string{
		"Profile of net", "", "Results", "figure|value|unit|kind|remark", "", "Model", "name|net", "format|onnx", "",
		"Target", "target|this", "", "Settings", "date|some day", "",
	})
	if len(got) != 19 || got[17] != "Samples|The profile holds no samples of single runs." {
		t.Errorf("the summary ends with %q", got[15:])
	}
	// A date that is none is not the workbook's.
	if about, err := f.GetDocProps(); err != nil || about.Created == "some day" {
		t.Errorf("about: %+v, %v", about, err)
	}
	// Eight inputs are all told.
	p.Model.Inputs = make([]profile.Tensor, 8)
	for i := range p.Model.Inputs {
		p.Model.Inputs[i].Name = "x"
	}
	f = written(t, p, []Column{col("op", nil), col("latency_s", nil)}, &whatif.Table{})
	if s := strings.Join(shown(t, f, "Summary"), "\n"); strings.Count(s, "input|x") != 8 || strings.Contains(s, "more") {
		t.Errorf("eight inputs: %s", s)
	}
}

// TestHeights gives texts over several lines the height of these, up to what a row can
// have: 27 lines of 15 points.
func TestHeights(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]float64{1: 15, 118: 15, 119: 30, 118 * 27: 405, 118 * 40: 405} {
		p := &profile.Profile{Incomplete: []profile.Missing{{Cause: profile.CauseCode(strings.Repeat("x", n))}}}
		f := written(t, p, []Column{col("op", nil), col("latency_s", nil)}, &whatif.Table{})
		if h, err := f.GetRowHeight("Summary", 2); err != nil || h != want {
			t.Errorf("%d characters: %v high, want %v (%v)", n, h, want, err)
		}
	}
	for n, want := range map[int]float64{80: 15, 81: 30, 80 * 27: 405, 80 * 28: 405} {
		p := &profile.Profile{Totals: profile.Totals{Latency: profile.Value(profile.Measured, 1, strings.Repeat("x", n))}}
		f := written(t, p, []Column{col("op", nil), col("latency_s", nil)}, &whatif.Table{})
		row := 1 + slices.IndexFunc(shown(t, f, "Summary"), func(s string) bool { return strings.HasPrefix(s, "latency|") })
		if h, err := f.GetRowHeight("Summary", row); err != nil || h != want {
			t.Errorf("a remark of %d characters: %v high, want %v (%v)", n, h, want, err)
		}
	}
}

// TestSmallTimes shows no time as zero beside a large one.
func TestSmallTimes(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{
		Totals:    profile.Totals{Latency: profile.Value(profile.Measured, 30, "")},
		Reconcile: &profile.Reconcile{WallS: new(0.0), GapsS: new(-3e-6), OperatorsS: new(31.0)},
		Layers:    []profile.Layer{{Latency: profile.Value(profile.Measured, 30, "")}},
	}
	f := written(t, p, []Column{col("op", []string{"A"}), col("latency_s", []string{"30"})}, &whatif.Table{})
	got := shown(t, f, "Summary")
	for name, want := range map[string]string{"latency": "0.000", "sum of layers and gaps": "0.000", "time not in layers": "0.0000000", "time in operators": "0.000"} {
		row := 1 + slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, name+"|") })
		if x := formatAt(t, f, "Summary", at(1, row)); x != want {
			t.Errorf("%s is shown as %q, want %q", name, x, want)
		}
	}
}

// TestSparseSheet has the what-if of two products of one shape, one that is sparse
// already, one whose weights nobody looked at and one that has no weights.
func TestSparseSheet(t *testing.T) {
	t.Parallel()
	tab := &whatif.Table{
		Shapes: []whatif.Shape{{Name: "8x64", Ratios: [4]float64{4, 3, 2, 1}}, {Name: "16x64", Ratios: [4]float64{8, 1, 1, 0}}},
		Rows: []whatif.Row{
			{
				Op: "MatMul", PostOp: []string{"relu", "add"}, Name: "a", Inputs: whatif.Ports{Names: []string{"x", "w"}, Shapes: []string{"1x8", "8x64"}, Types: []string{"fp32", "fp32"}},
				Outputs: whatif.Ports{Names: []string{"y"}, Shapes: []string{"1x64"}, Types: []string{"fp32"}}, WeightShape: "8x64", Block: "1x16", BlockSparsity: new(0.25), ElementSparsity: new(0.5),
				Blocks: map[string]float64{"1x16": 0.25, "rows": 0.125}, Shape: 0, Latency: new(0.008), Target: new(0.9),
			},
			{Op: "Gemm", WeightShape: "16x64", Block: "1x16", Shape: 1, Latency: new(0.002), Target: new(0.5)},
			{Op: "Gemm", WeightShape: "16x64", Block: "1x16", Shape: 1, Latency: new(0.004)},
			{Op: "MatMul", WeightShape: "8x64", Shape: 0, Target: new(0.7)},
			{Op: "Add", Shape: -1, Latency: new(0.016)},
		},
	}
	f := written(t, &profile.Profile{}, []Column{col("op", nil), col("latency_s", nil)}, tab)
	got := shown(t, f, "Sparse what-if")
	equal(t, "totals", got[3:6], []string{
		"total latency(ms)|=SUM($M$14:$M$18)|total aim to sparse latency(ms)|=SUM($P$14:$P$18)|sparse improve|=IF(D4>0,B4/D4,\"\")",
		"sparse support latency(ms)|=SUMIFS($M$14:$M$18,$L$14:$L$18,TRUE)|aim to sparse support latency(ms)|=SUMIFS($P$14:$P$18,$L$14:$L$18,TRUE)",
		"sparse support latency ratio|=IF(B4>0,B5/B4,\"\")|aim to sparse support latency ratio|=IF(D4>0,D5/D4,\"\")",
	})
	// 8 ms at 90 % are 2, a ratio of zero leaves 2 as they are, so do no target and no
	// weights: 30 ms become 24, of which 14 and 8 can be sparse.
	for cell, want := range map[string]string{"B4": "30", "D4": "24", "F4": "1.25", "B5": "14", "D5": "8", "B6": "0.4666666666666667", "D6": "0.3333333333333333"} {
		if x := stored(t, f, sparseSheet, cell); !strings.HasPrefix(x, want[:min(len(want), 10)]) {
			t.Errorf("%s: %s, want %s", cell, x, want)
		}
	}
	equal(t, "ratios", got[8:11], []string{"weight shape|90% 4x1 perf ratio|80% 4x1 perf ratio|70% 4x1 perf ratio|others", "8x64|4|3|2|1", "16x64|8|1|1|0"})
	ratio := func(row, shape int) string {
		return fmt.Sprintf(`=IF(N%d="","",IF(N%d=90%%,$B$%d,IF(N%d=80%%,$C$%d,IF(N%d=70%%,$D$%d,$E$%d))))`, row, row, shape, row, shape, row, shape, shape)
	}
	aim := func(row int) string { return fmt.Sprintf("=IF(N(O%d)>0,M%d/O%d,M%d)", row, row, row, row) }
	equal(t, "operators", got[11:], []string{
		"",
		"operator type|post op|operator name|input tensor name|input shape|input dtype|output tensor name|output shape|output dtype|weight shape|weight sparse ratio|sparse support|operator latency (ms)|aim to weight sparse ratio|sparse kernel pref ratio|aim to sparse latency(ms)|sparse block|element sparsity|1x4|4x1|1x16|4x16|2:4|rows|columns",
		"MatMul|relu;add|a|x;w|1x8;8x64|fp32;fp32|y|1x64|fp32|8x64|0.25|1|8|0.9|" + ratio(14, 10) + "|" + aim(14) + "|1x16|0.5|||0.25|||0.125",
		"Gemm|||||||||16x64|unknown|1|2|0.5|" + ratio(15, 11) + "|" + aim(15) + "|1x16",
		"Gemm|||||||||16x64|unknown|1|4||" + ratio(16, 11) + "|" + aim(16) + "|1x16",
		"MatMul|||||||||8x64|unknown|1||0.7|" + ratio(17, 10),
		"Add||||||||||||16|||=M18",
	})
	for cell, want := range map[string]string{"O14": "4", "P14": "2", "O15": "0", "P15": "2", "O16": "", "P16": "4", "O17": "2", "P17": "", "P18": "16"} {
		if x := stored(t, f, sparseSheet, cell); x != want {
			t.Errorf("%s: %s, want %s", cell, x, want)
		}
	}
	// Formulas: 7 of totals, 4 ratios and 4 times.
	if n := computed(t, f); n != 15 {
		t.Errorf("%d formulas, want 15", n)
	}
	// Formats: milliseconds with five digits of the longest, 30.000.
	for cell, want := range map[string]string{"B4": "0.000", "F4": "0.000", "B6": "0.0%", "B10": "0.00", "K14": "0.00%", "M14": "0.000", "N14": "0%", "O14": "0.00", "P14": "0.000", "R14": "0.00%", "U14": "0.00%"} {
		if x := formatAt(t, f, sparseSheet, cell); x != want {
			t.Errorf("%s is shown as %q, want %q", cell, x, want)
		}
	}
	// What is to be edited is yellow, also where it is empty.
	for cell, edit := range map[string]bool{"A10": false, "B10": true, "E11": true, "M14": false, "N14": true, "N16": true, "O14": false, "N18": false} {
		s := looks(t, f, sparseSheet, cell)
		if yellow := len(s.Fill.Color) == 1 && s.Fill.Color[0] == "FFF6CC" && len(s.Border) == 4; yellow != edit {
			t.Errorf("%s is to be edited: %v, want %v", cell, yellow, edit)
		}
	}
	rules, err := f.GetDataValidations(sparseSheet)
	if err != nil {
		t.Fatal(err)
	}
	var limits []string
	for _, r := range rules {
		limits = append(limits, fmt.Sprint(r.Sqref, " ", r.Type, " ", r.Operator, " ", r.Formula1, " ", r.Formula2))
	}
	if want := []string{"B10:E11 decimal  0.001 1000000", "N14:N18 decimal  0 1"}; !slices.Equal(limits, want) && !slices.Equal(limits, []string{"B10:E11 decimal between 0.001 1000000", "N14:N18 decimal between 0 1"}) {
		t.Errorf("limits %q, want %q", limits, want)
	}
	bars, err := f.GetConditionalFormats(sparseSheet)
	if err != nil || len(bars) != 2 || bars["M14:M18"] == nil || bars["P14:P18"] == nil {
		t.Errorf("bars %v, %v", bars, err)
	}
	filter := ""
	for _, n := range f.GetDefinedName() {
		if n.Scope == sparseSheet {
			filter = n.RefersTo
		}
	}
	if filter != "'Sparse what-if'!$A$13:$Y$18" {
		t.Errorf("filter of %s", filter)
	}
	// Columns in which nothing is known are out of sight: R to Y are zeros by element and
	// blocks.
	for i, want := range []bool{true, false, false, true, false, false, true, false} {
		if v, err := f.GetColVisible(sparseSheet, workbook.ColumnName(17+i)); err != nil || v != want {
			t.Errorf("column %s is shown: %v, want %v (%v)", workbook.ColumnName(17+i), v, want, err)
		}
	}
	for cell, right := range map[string]bool{"A13": false, "J13": false, "K13": true, "P13": true, "Q13": false, "R13": true, "A9": false, "B9": true, "E9": true} {
		if s := looks(t, f, sparseSheet, cell); (s.Alignment.Horizontal == "right") != right {
			t.Errorf("head %s: %+v", cell, s.Alignment)
		}
	}
	for row, want := range map[int]float64{1: 26, 9: 20, 13: 48} {
		if h, err := f.GetRowHeight(sparseSheet, row); err != nil || h != want {
			t.Errorf("row %d is %v high, want %v (%v)", row, h, want, err)
		}
	}
}

// TestSparseWithoutTimes says that nothing can be estimated, in as many rows.
func TestSparseWithoutTimes(t *testing.T) {
	t.Parallel()
	tab := &whatif.Table{Shapes: []whatif.Shape{{Name: "8x64", Ratios: whatif.Defaults}}, Rows: []whatif.Row{{Op: "MatMul", WeightShape: "8x64", Target: new(0.9)}}}
	f := written(t, &profile.Profile{}, []Column{col("op", nil), col("latency_s", nil)}, tab)
	got := shown(t, f, sparseSheet)
	equal(t, "rows", got[3:10], []string{"No operator of this profile has a time: nothing can be estimated.", "", "", "", "", "weight shape|90% 4x1 perf ratio|80% 4x1 perf ratio|70% 4x1 perf ratio|others", "8x64|4|4|4|1"})
	if x := formulaAt(t, f, sparseSheet, "O13"); !strings.Contains(x, "$B$10") {
		t.Errorf("the ratio is %s", x)
	}
}

// TestSheetSize counts what the what-if's tables need, together and with 100 rows around them.
func TestSheetSize(t *testing.T) {
	t.Parallel()
	one := []Column{col("op", []string{"A"}), col("latency_s", []string{""})}
	tab := &whatif.Table{Shapes: make([]whatif.Shape, 1), Rows: make([]whatif.Row, workbook.MaxRows-100)}
	if err := write(io.Discard, &profile.Profile{}, one, tab); err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Errorf("a row too many: %v", err)
	}
}

// TestColumnsSheet explains every column, quantities with their units.
func TestColumnsSheet(t *testing.T) {
	t.Parallel()
	own := profile.Quantity{Key: "own", Unit: "K", Name: "Temperature"}
	long := profile.Quantity{Key: "long", Doc: strings.Repeat("w", 131)}
	f := written(t, &profile.Profile{}, []Column{
		col("op", nil),
		{Key: "latency_s", Quantity: &profile.Quantity{Key: "latency_s", Unit: "s", Doc: "How long."}},
		{Key: "own", Quantity: &own},
		{Key: "part", Quantity: &profile.Quantity{Key: "part", Unit: "1", Doc: "A part."}},
		{Key: "long", Quantity: &long},
		{Key: "nobody_knows", Text: true},
	}, &whatif.Table{})
	got := shown(t, f, columnsSheet)
	if want := 1 + 6 + len(sparseMeaning); len(got) != want {
		t.Errorf("%d lines, want %d", len(got), want)
	}
	equal(t, "Columns", got[:5], []string{"sheet|column|meaning", "Layers|op|" + Meaning["op"], "Layers|latency_s|How long. Unit: s.", "Layers|own|Temperature Unit: K.", "Layers|part|A part."})
	if got[7] != "Sparse what-if|90% 4x1 perf ratio|"+sparseMeaning[0][1] {
		t.Errorf("row 8 is %q", got[7])
	}
	for row, want := range map[int]float64{1: 22, 2: 15, 6: 30} {
		if h, err := f.GetRowHeight(columnsSheet, row); err != nil || h != want {
			t.Errorf("row %d is %v high, want %v (%v)", row, h, want, err)
		}
	}
}
