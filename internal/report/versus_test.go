package report_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pprofformat "github.com/google/pprof/profile"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// compared is a comparison of n runs of two layers, with names that want to do harm.
func compared(t *testing.T, n int) *compare.Table {
	t.Helper()
	var runs []compare.Named
	for k := range n {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}, Settings: profile.Settings{Engine: fmt.Sprintf("engine %d", k)}}
		total := 0.0
		for i, op := range []string{"Conv", "=<script>|\x1b[31m"} {
			s := float64(k+1) * float64(i+1) * 1e-3
			total += s
			p.Layers = append(p.Layers, profile.Layer{
				Index: int64(i), Op: op, Name: "a/rather/long/name/of/an/operator/of/the/network", State: profile.Ran,
				Latency:    &profile.Metric{Kind: profile.Measured, Median: &s, CI95: &[2]float64{s * .99, s * 1.01}},
				Provenance: &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: int64(i)}}},
			})
		}
		p.Totals.Latency = &profile.Metric{Kind: profile.Measured, Median: &total, CI95: &[2]float64{total * .99, total * 1.01}}
		runs = append(runs, compare.Named{Profile: p})
	}
	x, err := compare.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestVersusTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report.WriteVersus(&b, compared(t, 2), "table", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"engine 1 takes 2.00x as long as engine 0 (6.00 vs 3.00 ms; 95 % CI 1.96 to 2.04)",
		"net: latency of one inference, 2 runs, ratios to engine 0",
		// half of it is sqrt(0.01² + 0.01² + 0.014²) = 2 %
		"latency 3.00 ms 6.00 ms 2.00 ▲ interval ± 1.0 % ± 1.0 % 1.96–2.04",
		"Conv a/rather/long/name/of/an/operator/of/the/network 1.00 ms 2.00 ms 2.00 ▲ +1.00 ms",
		"total 3.00 ms 6.00 ms 2.00 ▲ +3.00 ms",
		"2 of 2 rows differ",
	} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("a name reaches the terminal raw")
	}
}

// TestVersusIncomparable writes a run with another batch in all formats: the figures are there, and
// no format has a verdict of times.
func TestVersusIncomparable(t *testing.T) {
	t.Parallel()
	x := compared(t, 2)
	ps := x.Profiles
	ps[0].Settings.Batch, ps[1].Settings.Batch = new(int64(1)), new(int64(8))
	x, err := compare.New([]compare.Named{{Profile: ps[0]}, {Profile: ps[1]}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		format string
		want   []string
	}{
		{"table", []string{"latencies do not compare, other batch sizes (6.00 vs 3.00 ms)", "(2.00)", "Times do not compare."}},
		{"markdown", []string{"latencies do not compare, other batch sizes", "(2.00)"}},
		{"csv", []string{"incomparable", "false,batch"}},
		{"json", []string{`"verdict": "incomparable"`, `"time": "batch"`}},
	} {
		var b bytes.Buffer
		if err := report.WriteVersus(&b, x, c.format, report.VersusOptions{}); err != nil {
			t.Fatal(err)
		}
		s := b.String()
		for _, want := range c.want {
			if !strings.Contains(s, want) {
				t.Errorf("%s: lacks %q", c.format, want)
			}
		}
		s = strings.ReplaceAll(s, "▲ slower or more", "") // the legend
		for _, not := range []string{"2.00 ▲", "takes 2.00x", `"slower"`, ",slower,", "rows differ"} {
			if strings.Contains(s, not) {
				t.Errorf("%s: has %q", c.format, not)
			}
		}
	}
}

// TestVersusExact compares counts: those that are close have digits that tell them apart, equal
// ones have no sign.
func TestVersusExact(t *testing.T) {
	t.Parallel()
	count := func(params, macs int64) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
		p.Layers = []profile.Layer{{Op: "Conv", State: profile.Ran, MACs: &macs, Params: &params}}
		p.Totals.MACs, p.Totals.Params = &macs, &params
		return p
	}
	x, err := compare.New([]compare.Named{{Name: "a", Profile: count(100000, 5000)}, {Name: "b", Profile: count(100040, 5000)}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.WriteVersus(&b, x, "table", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"parameters 100.00 k 100.04 k 1.0004 ▲", "Conv 5.00 k 5.00 k 1.00 0 same? total 5.00 k 5.00 k 1.00 0", "All rows have equal multiply-accumulates."} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
}

// TestVersusAlone names rows that one run lacks apart from those that differ. A short table of
// gathered rows leaves out those that are hardly a part of the total.
func TestVersusAlone(t *testing.T) {
	t.Parallel()
	count := func(ops []string, macs ...int64) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
		total := int64(0)
		for i, n := range macs {
			total += n
			p.Layers = append(p.Layers, profile.Layer{Index: int64(i), Op: ops[i], Name: strings.ToLower(ops[i]), State: profile.Ran, MACs: &n})
		}
		p.Totals.MACs = &total
		return p
	}
	a, b := count([]string{"Conv", "Relu", "Add", "Mul"}, 5000, 2, 2, 2), count([]string{"Conv", "Relu", "Add", "Mul", "QuantizeLinear"}, 5000, 2, 2, 2, 4)
	for _, c := range []struct {
		options compare.Options
		top     int
		want    []string
	}{
		{compare.Options{}, 0, []string{"All rows of both have equal multiply-accumulates; in one run alone: quantizelinear +4.00."}},
		{compare.Options{By: compare.ByOp}, 20, []string{"(4 other rows) 6.00 10.0 +4.00", "1 of 5 rows: --all shows all"}},
	} {
		x, err := compare.With([]compare.Named{{Name: "a", Profile: a}, {Name: "b", Profile: b}}, c.options)
		if err != nil {
			t.Fatal(err)
		}
		var w bytes.Buffer
		if err := report.WriteVersus(&w, x, "table", report.VersusOptions{Top: c.top}); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(strings.Fields(w.String()), " ")
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%+v: lacks %q:\n%s", c.options, want, w.String())
			}
		}
	}
}

// TestVersusNarrow fits any number of runs into narrow terminals: none is left out.
// TestVersusKinds names what was measured, imported and estimated, with engine and target.
func TestVersusKinds(t *testing.T) {
	t.Parallel()
	var runs []compare.Named
	for k, target := range []profile.Target{
		{ID: "host", Kind: profile.TargetHost},
		{ID: "host", Kind: profile.TargetImport, Engine: "ONNX Runtime"},
		{ID: "stm32h743", Kind: profile.TargetSimulator, Engine: "tflm-cmsis-nn"},
		{ID: "board", Kind: profile.TargetDevice},
	} {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: target}
		p.Totals.Latency = profile.Value(profile.Measured, float64(k+1)*1e-3, "")
		runs = append(runs, compare.Named{Name: fmt.Sprintf("r%d", k), Profile: p})
	}
	x, err := compare.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.WriteVersus(&b, x, "table", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"! r0: measured; r1: imported (ONNX Runtime); r2: estimated for stm32h743 (tflm-cmsis-nn). Times do not compare.", "figures measured imported estimated measured engine ONNX Runtime tflm-cmsis-nn machine host host stm32h743 board",
	} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestVersusOutputs says by how much outputs differ.
func TestVersusOutputs(t *testing.T) {
	t.Parallel()
	x := compared(t, 4)
	for k, d := range []profile.Difference{
		{With: "opmeter", State: profile.Rounding, Steps: new(1.0), Same: new(0.9)},
		{With: "opmeter", State: profile.Differs, Steps: new(3.0), Same: new(0.75)},
		{With: "opmeter", State: profile.NotComparable, Cause: &profile.Cause{Code: profile.ByType, Text: "int8 here, uint8 there"}},
	} {
		r := &x.Runs[k+1]
		r.Outputs, r.With, r.Difference = d.State, d.With, &d
	}
	x.Notes = append(x.Notes, compare.Note{Code: compare.OtherResults, Runs: []int{2, 3}})
	var b bytes.Buffer
	if err := report.WriteVersus(&b, x, "table", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"outputs rounding, 1 step differ, 3 steps not compared latency",
		"engine 2: outputs differ from those of opmeter by more than rounding (up to 3 quantisation steps in 25 % of the elements); engine 3: outputs could not be compared with those of opmeter (int8 here, uint8 there).",
	} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestVersusNarrow(t *testing.T) {
	t.Parallel()
	for _, runs := range []int{2, 3, 5, 9} {
		for _, width := range []int{60, 80, 100, 200} {
			var b bytes.Buffer
			if err := report.WriteVersus(&b, compared(t, runs), "table", report.VersusOptions{Width: width, Top: 1, Sort: "difference"}); err != nil {
				t.Fatal(err)
			}
			for l := range strings.Lines(b.String()) {
				if text.Width(strings.TrimSuffix(l, "\n")) > width {
					t.Errorf("%d runs: wider than %d: %q", runs, width, l)
				}
			}
			for k := range runs {
				if strings.Count(b.String(), fmt.Sprintf("engine %d", k)) < 2 {
					t.Errorf("%d runs in %d columns: engine %d is in one table only:\n%s", runs, width, k, b.String())
				}
			}
			if !strings.Contains(b.String(), "1 of 2 rows") {
				t.Errorf("does not say that rows are left out:\n%s", b.String())
			}
		}
	}
}

func TestVersusFiles(t *testing.T) {
	t.Parallel()
	x := compared(t, 3)
	dir := t.TempDir()
	for _, ending := range []string{".txt", ".csv", ".json", ".md", ".html"} {
		path := filepath.Join(dir, "x"+ending)
		if err := report.VersusFile(path, x, report.VersusOptions{Top: 1}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		switch ending {
		case ".csv":
			rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
			// Groups, what is in no layer, totals, latency, waterfalls.
			if err != nil || len(rows) != 1+2*3+2*3+3+2*3 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			if got, want := strings.Join(rows[3], ","), "operators,0,Conv,a/rather/long/name/of/an/operator/of/the/network,1,exact,engine 2,0.003,0.00297,"; !strings.HasPrefix(got, want) {
				t.Errorf("row %q, want %q", got, want)
			}
			if strings.HasPrefix(rows[4][2], "=") {
				t.Error("a name is a formula")
			}
		case ".json":
			var back compare.Table
			if err := jsonx.Unmarshal(data, &back); err != nil || back.Schema != compare.SchemaV1 || len(back.Groups) != 2 || back.Groups[1].Ratios[2].Verdict != compare.Slower {
				t.Errorf("%v: %+v", err, back)
			}
		case ".html":
			// Names are in the data only, which are base64.
			if bytes.Contains(data, []byte("=<script>")) || !bytes.Contains(data, []byte(`data-part="document"`)) || !bytes.Contains(data, []byte("<title>net · opmeter</title>")) {
				t.Errorf("the page:\n%.2000s", data)
			}
		case ".md":
			if n := strings.Count(string(data), "\n| "); n != 2+3+2+2+1 {
				t.Errorf("%d rows:\n%s", n, data)
			}
		}
	}
	if err := report.VersusFile(filepath.Join(dir, "x.opmeter"), x, report.VersusOptions{}); err == nil {
		t.Error("an unknown ending is taken")
	}
	if err := report.WriteVersus(&bytes.Buffer{}, x, "table", report.VersusOptions{Sort: "x"}); err == nil {
		t.Error("an unknown order is taken")
	}
}

// TestVersusQuantity names what is compared, abbreviations as they are written.
func TestVersusQuantity(t *testing.T) {
	t.Parallel()
	var runs []compare.Named
	for k := range 2 {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "chip", Kind: profile.TargetSimulator}}
		macs := int64(1000 * (k + 1))
		p.Layers = []profile.Layer{{Op: "Conv", Name: "a", State: profile.Ran, MACs: &macs, CPUCycles: profile.Value(profile.Estimated, float64(macs), "")}}
		p.Totals.MACs, p.Totals.CPUCycles = &macs, p.Layers[0].CPUCycles
		runs = append(runs, compare.Named{Name: fmt.Sprintf("r%d", k), Profile: p})
	}
	for key, want := range map[string]string{"": "net: CPU cycles of one inference", "macs": "r1: multiply-accumulates 2.00x that of r0 (2.00 vs 1.00 k)"} {
		x, err := compare.With(runs, compare.Options{Quantity: key})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := report.WriteVersus(&b, x, "table", report.VersusOptions{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
		for _, format := range []string{"bench", "pprof", "xlsx"} {
			b.Reset()
			if err := report.WriteVersus(&b, x, format, report.VersusOptions{}); err != nil || b.Len() == 0 {
				t.Errorf("%s: %d bytes, %v", format, b.Len(), err)
			}
		}
	}
}

// TestVersusBench has one line of a row and process, under one name in both runs though the layers
// have others.
func TestVersusBench(t *testing.T) {
	t.Parallel()
	made := func(name string, s float64) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
		p.Totals.Latency = profile.Value(profile.Measured, s, "")
		p.Totals.LatencySamples = []float64{s, s, s}
		p.Layers = []profile.Layer{{Op: "Conv", Name: name, State: profile.Ran, Latency: profile.Value(profile.Measured, s/2, ""), Provenance: &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: 0}}}}}
		return p
	}
	x, err := compare.New([]compare.Named{
		{Name: "old", Profile: made("a b", 2e-6), Repeats: []*profile.Profile{made("a b", 3e-6)}},
		{Name: "new", Profile: made("c", 4e-6)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.WriteVersus(&b, x, "bench", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `
run: old
BenchmarkModel/row=all 3 2000 ns/op
BenchmarkModel/row=0:a_b 3 1000 ns/op
BenchmarkModel/row=all 3 3000 ns/op
BenchmarkModel/row=0:a_b 3 1500 ns/op

run: new
BenchmarkModel/row=all 3 4000 ns/op
BenchmarkModel/row=0:a_b 3 2000 ns/op
`
	if !strings.HasSuffix(b.String(), want) || !strings.HasPrefix(b.String(), "# Compare with: benchstat -col run FILE\n") {
		t.Errorf("%s", b.String())
	}
}

// TestVersusChance: a row without an interval is not one that differs by no more than chance.
func TestVersusChance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bounded int // rows with an interval
		want    string
	}{
		{0, ""},
		{1, "No row differs by more than chance among 1 row with an interval."},
		{2, "No row differs by more than chance among 2 rows."},
	} {
		x := compared(t, 2)
		for i := range x.Groups {
			r := &x.Groups[i].Ratios[1]
			r.Verdict = compare.Open
			if i >= c.bounded {
				r.Low, r.High, r.P = nil, nil, nil
			}
		}
		var b bytes.Buffer
		if err := report.WriteVersus(&b, x, "table", report.VersusOptions{}); err != nil {
			t.Fatal(err)
		}
		if s := b.String(); !strings.Contains(s, c.want) || c.want == "" && strings.Contains(s, "chance among 2") {
			t.Errorf("%d rows with an interval: lacks %q:\n%s", c.bounded, c.want, s)
		}
	}
}

// TestVersusMissing: at any width, a column of the table is shown or named as not shown.
func TestVersusMissing(t *testing.T) {
	t.Parallel()
	x := compared(t, 2)
	for i := range x.Groups {
		x.Groups[i].Matches[1] = compare.Match{Kind: "quantised", Certain: true}
		x.Groups[i].Reasons[1] = []compare.Reason{{Code: compare.ByKernel, FirstText: "gemm.f32.avx512", ThisText: "gemm.int8.avx512"}}
	}
	for _, width := range []int{30, 40, 60, 80, 100, 150, 0} {
		var b bytes.Buffer
		if err := report.WriteVersus(&b, x, "table", report.VersusOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		_, rows, _ := strings.Cut(b.String(), "operators")
		head, rest, _ := strings.Cut(rows, "\n")
		said := strings.Join(strings.Fields(rest), " ")
		for _, column := range []string{"name", "engine 0", "engine 1", "ratio", "change", "match", "why"} {
			if !strings.Contains(head, column) && !strings.Contains(said, column+",") && !strings.Contains(said, column+" ▲ slower") {
				t.Errorf("%d columns: %q is neither shown nor missed:\n%s", width, column, b.String())
			}
		}
		// A reason is cut at its end.
		for l := range strings.Lines(rest) {
			if i, k := strings.Index(l, "kernel"), strings.Index(l, "…"); i >= 0 && k > i && !strings.HasSuffix(strings.TrimRight(l, "\n"), "…") {
				t.Errorf("%d columns: cut in the middle: %s", width, l)
			}
		}
		if complete := !strings.Contains(said, "not shown"); complete != (width == 0 || width == 150) {
			t.Errorf("%d columns: complete %v:\n%s", width, complete, b.String())
		}
	}
}

// TestVersusDigits: counts that differ are not written as equal.
func TestVersusDigits(t *testing.T) {
	t.Parallel()
	counted := func(n int64) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
		p.Layers = []profile.Layer{{Op: "Conv", Name: "c", State: profile.Ran, WeightsBytes: &n}}
		p.Totals.WeightsBytes = &n
		return p
	}
	for _, c := range []struct {
		b    int64
		want string
	}{
		{2176124, "b: weights 0.99999x that of a (2176124 vs 2176140 B)"},
		{1088070, "b: weights 0.500x that of a (1.04 vs 2.08 MiB)"},
		{2176140, "b: weights equal to a (2.08 MiB)"},
	} {
		x, err := compare.New([]compare.Named{{Name: "a", Profile: counted(2176140)}, {Name: "b", Profile: counted(c.b)}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := report.WriteVersus(&b, x, "table", report.VersusOptions{}); err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(b.String(), "\n")
		if line != c.want {
			t.Errorf("%q, want %q", line, c.want)
		}
	}
}

// TestVersusNumbers: one row differs, and one model is another.
func TestVersusNumbers(t *testing.T) {
	t.Parallel()
	x := compared(t, 2)
	x.Groups[1].Ratios[1].Verdict = compare.Open
	var b bytes.Buffer
	if err := report.WriteVersus(&b, x, "table", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); !strings.Contains(s, "1 of 2 rows differs: ") {
		t.Errorf("rows:\n%s", s)
	}
	y := compared(t, 5)
	for k := range y.Runs {
		y.Runs[k].Model = fmt.Sprint("m", k)
	}
	y.Notes = []compare.Note{{Code: compare.OtherModel, Runs: []int{1}}}
	if got := words.VersusModels(y); got != "m0, m1, m2, m3, 1 other" {
		t.Error(got)
	}
	almost := &profile.Difference{State: profile.Differs, SNR: new(-0.3)}
	if got := words.Outputs(&compare.Run{Outputs: almost.State, Difference: almost}) + "; " + almost.Magnitude(); got != "differ, 0 dB; SNR 0 dB" {
		t.Error(got)
	}
}

// TestVersusExplained has figures with as many digits as explain the ratio that is shown.
func TestVersusExplained(t *testing.T) {
	t.Parallel()
	timed := func(s float64) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
		m := &profile.Metric{Kind: profile.Measured, Median: &s, CI95: &[2]float64{s * .999, s * 1.001}}
		p.Layers = []profile.Layer{{Op: "Conv", Name: "c", State: profile.Ran, Latency: m}}
		p.Totals.Latency = m
		return p
	}
	for _, c := range []struct {
		b    float64
		want string
	}{
		{1.2265e-3, "latency 1.22 ms 1.23 ms 1.01 ?"},
		{1.2244e-3, "latency 1.216 ms 1.224 ms 1.01 ?"}, // 1.22 and 1.22 would not explain it
		{1.2156e-3, "latency 1.22 ms 1.22 ms 1.00 ="},
	} {
		x, err := compare.New([]compare.Named{{Name: "a", Profile: timed(1.2155e-3)}, {Name: "b", Profile: timed(c.b)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"table", "markdown"} {
			var b bytes.Buffer
			if err := report.WriteVersus(&b, x, format, report.VersusOptions{}); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "|", "")), " ")
			if ratio := strings.HasSuffix(strings.Fields(c.want)[5], "1"); ratio && strings.Contains(got, "(1.22 vs 1.22 ms") {
				t.Errorf("%s: the first line does not explain its ratio:\n%s", format, b.String())
			}
			for _, what := range []string{"latency", "Conv c", "total"} {
				if want := strings.TrimSuffix(strings.TrimSuffix(strings.Replace(c.want, "latency", what, 1), " ?"), " ="); !strings.Contains(got, want) {
					t.Errorf("%s: lacks %q:\n%s", format, want, b.String())
				}
			}
		}
	}
}

// TestVersusSameEstimates answers that estimates of the same layers are equal, and says of others
// that their bands overlap.
func TestVersusSameEstimates(t *testing.T) {
	t.Parallel()
	made := func(shape int64) *profile.Profile {
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "chip", Kind: profile.TargetSimulator}}
		p.Settings.TargetSHA256 = strings.Repeat("0", 64)
		m := &profile.Metric{Kind: profile.Estimated, Median: new(2.0), Band: &[2]float64{1, 4}}
		p.Layers = []profile.Layer{{Op: "Conv", Name: "c", State: profile.Ran, Latency: m, Outputs: []profile.Tensor{{Name: "y", DType: "int8", Shape: []int64{1, shape}}}}}
		p.Totals.Latency = m
		return p
	}
	for _, c := range []struct {
		shape int64
		want  []string
	}{
		{4, []string{"b takes as long as a (2.00 s): estimates of the same layers are equal", "All rows have equal latency.", "Conv c 2.00 s 2.00 s 1.00 = 0 s"}},
		{5, []string{"b is not measurably faster or slower than a", "1.00 ? 0 s resized? bands overlap", "! b: rows stay undecided where the 90 % bands of estimates overlap"}},
	} {
		x, err := compare.New([]compare.Named{{Name: "a", Profile: made(4)}, {Name: "b", Profile: made(c.shape)}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := report.WriteVersus(&b, x, "table", report.VersusOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
				t.Errorf("%d: lacks %q:\n%s", c.shape, want, b.String())
			}
		}
	}
}

// TestVersusMachines names the machines that one model was measured on.
func TestVersusMachines(t *testing.T) {
	t.Parallel()
	ps := compared(t, 2).Profiles
	for k, p := range ps {
		p.Host = &profile.Host{CPUModel: fmt.Sprint("cpu", k), Fingerprint: fmt.Sprint("print", k)}
		p.Model.SHA256 = strings.Repeat("0", 64)
	}
	x, err := compare.New([]compare.Named{{Name: "a", Profile: ps[0]}, {Name: "b", Profile: ps[1]}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.WriteVersus(&b, x, "table", report.VersusOptions{}); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"b [cpu1, engine 1] takes 2.00x as long as a [cpu0, engine 0] (6.00 vs 3.00 ms; 95 % CI 1.96 to 2.04) · compares the machines and engines, not the model", "! b: the model of a on another machine; ratios of times compare the machines."} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
}

// TestVersusContinued divides many runs into tables that fit. Only the first one has the first run.
func TestVersusContinued(t *testing.T) {
	t.Parallel()
	for width, most := range map[int]int{80: 3, 100: 3, 140: 2, 0: 1} {
		var b bytes.Buffer
		if err := report.WriteVersus(&b, compared(t, 6), "table", report.VersusOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		s := b.String()
		if n := strings.Count(s, "\nfigure ") + strings.Count(s, "\n(continued) "); strings.Count(s, "\nfigure ") != 1 || strings.Count(s, "\noperators ") != 1 || n > 2*most {
			t.Errorf("%d columns: %d tables:\n%s", width, n, s)
		}
		for l := range strings.Lines(s) {
			if strings.HasPrefix(l, "(continued)") && strings.Contains(l, "engine 0") {
				t.Errorf("%d columns: the first run again: %s", width, l)
			}
		}
	}
}

// TestVersusExportsSayApart has the reason in formats without verdicts, too, if times do not
// compare.
func TestVersusExportsSayApart(t *testing.T) {
	t.Parallel()
	ps := compared(t, 2).Profiles
	const want = "engine 1 does not compare with engine 0: other batch sizes"
	for _, apart := range []bool{false, true} {
		ps[0].Settings.Batch, ps[1].Settings.Batch = new(int64(1)), new(int64(1))
		if apart {
			*ps[1].Settings.Batch = 8
		}
		x, err := compare.New([]compare.Named{{Profile: ps[0]}, {Profile: ps[1]}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := report.WriteVersus(&b, x, "bench", report.VersusOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "\n# "+want+"\n"); got != apart {
			t.Errorf("bench: %v, want %v:\n%s", got, apart, b.String())
		}
		b.Reset()
		if err := report.WriteVersus(&b, x, "pprof", report.VersusOptions{}); err != nil {
			t.Fatal(err)
		}
		f, err := pprofformat.ParseData(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(f.Comments, want); got != apart {
			t.Errorf("pprof: %v, want %v: %q", got, apart, f.Comments)
		}
	}
}
