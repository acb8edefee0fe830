package tflm_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tflm"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

func read(t *testing.T, text string, clock float64) []*profile.Profile {
	t.Helper()
	o := record.Options{}
	if clock > 0 {
		o.Clocks = map[string]float64{"": clock}
	}
	return records.Read(t, tflm.Format(), []*record.File{record.Bytes("board.log", []byte(text))}, o)
}

func file(t *testing.T, name string, clock float64) []*profile.Profile {
	t.Helper()
	b, err := os.ReadFile(material.Path(t, "raw", "traces", "tflm", name))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(b), clock)
}

func total(p *profile.Profile, key string) (s float64) {
	for i := range p.Layers {
		v, _ := p.Layers[i].Value(key)
		s += v
	}
	return s
}

// ticks adds up lines of the profiler between two marks.
func ticks(t *testing.T, name, from, to string) (n int, sum float64) {
	t.Helper()
	b, err := os.ReadFile(material.Path(t, "raw", "traces", "tflm", name))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), from)
	if to != "" {
		text, _, _ = strings.Cut(text, to)
	}
	for _, l := range strings.Split(text, "\n") {
		var tag string
		var v float64
		if k, _ := fmt.Sscanf(strings.TrimSpace(l), "%s took %f ticks", &tag, &v); k == 2 && !strings.Contains(tag, "Iterations") {
			n++
			sum += v
		}
	}
	return n, sum
}

// finding returns the text of a finding.
func finding(p *profile.Profile, id string) string {
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

func TestFiles(t *testing.T) {
	t.Parallel()
	ps := file(t, "pico_person_detection_ticks.txt", 0)
	n1, s1 := ticks(t, "pico_person_detection_ticks.txt", "Without multicore", "Multi-core")
	n2, s2 := ticks(t, "pico_person_detection_ticks.txt", "Multi-core CONV2D and", "")
	if len(ps) != 2 || len(ps[0].Layers) != n1 || len(ps[1].Layers) != n2 || total(ps[0], "ticks") != s1 || total(ps[1], "ticks") != s2 {
		t.Fatalf("%d runs, sums %g %g, want %g %g", len(ps), total(ps[0], "ticks"), total(ps[1], "ticks"), s1, s2)
	}
	if d := ps[1].Model.Description; d != "Multi-core CONV2D and Depthwise Conv" {
		t.Error(d)
	}
	if v, _ := ps[0].Totals.Latency.Best(); v != 0.823 {
		t.Errorf("the printed milliseconds of the whole: %g", v)
	}
	if l := ps[0].Layers[28]; l.Latency != nil { // 220 ticks (0 ms)
		t.Errorf("a time that was cut to nothing is not known: %+v", l.Latency)
	}
	if s := finding(ps[0], "tflm.clock"); !strings.Contains(s, "--clock 1000000,") {
		t.Error(s)
	}
	ps = file(t, "pico_person_detection_ticks.txt", 1e6)
	if got := total(ps[0], "latency_s"); math.Abs(got-s1/1e6) > 1e-12 || *ps[0].Target.ClockHz != 1e6 {
		t.Errorf("with the clock: %g", got)
	}
	if s := finding(file(t, "pico_person_detection_ticks.txt", 2e6)[0], "tflm.clock"); !strings.Contains(s, "contradicts") {
		t.Error(s)
	}
}

func TestBenchmark(t *testing.T) {
	t.Parallel()
	p := file(t, "tflm_benchmark_readme_log.md", 0)[0]
	n, s := ticks(t, "tflm_benchmark_readme_log.md", "Input CRC32", "Unique Tag")
	if p.Model.Name != "person_detect" || len(p.Layers) != n || n != 31 || total(p, "ticks") != s {
		t.Fatalf("%d layers, %g ticks, want %d, %g", len(p.Layers), total(p, "ticks"), n, s)
	}
	if *p.Totals.RAMBytes != 84436 || *p.Memory.PersistentBytes != 29140 || *p.Memory.ArenaBytes != 55296 || *p.Model.FileBytes != 300568 {
		t.Errorf("%+v", p.Memory)
	}
	l := &p.Layers[2] // Op#2 CONV_2D(T#51, T#10, T#53[…]) -> [T#54]
	if l.Name != "MobilenetV1/MobilenetV1/Conv2d_1_pointwise/Relu6" || fmt.Sprint(l.Outputs[0].Shape) != "[1 48 48 16]" || l.Outputs[0].DType != "int8" || len(l.Inputs) != 3 {
		t.Errorf("%+v", l)
	}
	if v, _ := p.Totals.Value("init_tflite_microinterpreter_allocatetensors_ticks"); v != 363531 {
		t.Errorf("initialisation %g", v)
	}
	if s := finding(p, "tflm.clock"); !strings.Contains(s, "--clock 25000000,") {
		t.Error(s)
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	p := file(t, "microprofiler_log_csv.txt", 1e6)[0]
	if len(p.Layers) != 5 || total(p, "ticks") != 224622+175917+249561+84958+145817 || p.Layers[2].Op != "CONV_2D" {
		t.Errorf("%+v", p.Layers)
	}
	p = file(t, "microprofiler_ticks_per_tag_csv.txt", 0)[0]
	if v, _ := p.Totals.Value("recorded_ticks"); len(p.Layers) != 5 || total(p, "ticks") != v || v != 371724 {
		t.Errorf("%g", v)
	}
	p = file(t, "linux_keyword_benchmark_size.csv", 0)[0]
	if *p.Totals.FlashBytes != 88597+1920 || len(p.Timeline.Counters) != 4 || len(p.Timeline.Counters[0].Values) != 119 {
		t.Errorf("%+v", p.Totals)
	}
}

// TestTraps: noise of the console, several inferences, counters that wrap, ends of lines.
func TestTraps(t *testing.T) {
	t.Parallel()
	line := func(tag string, ticks, ms int64) string {
		return fmt.Sprintf("%s took %d ticks (%d ms).", tag, ticks, ms)
	}
	once := func(k int64) string {
		return strings.Join([]string{line("CONV_2D", 1000*k, k), line("FULLY_CONNECTED", 500*k, 0), line("SOFTMAX", 10, 0)}, "\r\n") + "\r\n"
	}
	p := read(t, "boot\r\n"+once(1)+once(3)+"heap ok\r\n"+once(2), 1e6)
	if len(p) != 1 || len(p[0].Layers) != 3 || *p[0].Settings.Runs != 3 {
		t.Fatalf("%d runs: %+v", len(p), p[0].Layers)
	}
	m := p[0].Layers[0].Latency
	if *m.Median != 2e-3 || *m.Min != 1e-3 || *m.Max != 3e-3 || *m.N != 3 || len(p[0].Totals.LatencySamples) != 3 {
		t.Errorf("%+v", m)
	}
	p = read(t, "[info] task CONV_2D took -1294967296 ticks (3000 ms).<br />\nDEPTHWISE_CONV_2D took 5 ticks (0 ms)", 1e6)
	if v := total(p[0], "ticks"); v != 3e9+5 || p[0].Layers[0].Op != "CONV_2D" || len(p[0].Layers) != 2 {
		t.Errorf("32 bits that are printed as signed: %g %+v", v, p[0].Layers)
	}
	p = read(t, "\x00\x1b[0;32mI (1234) net: CONV_2D took 7 ticks (0 ms).\x1b[0m\rADD_N took 1 ticks (0 ms).\r\n", 1e6)
	if v := total(p[0], "ticks"); v != 8 || p[0].Layers[0].Op != "CONV_2D" {
		t.Errorf("colours, prefixes, both ends of lines: %g %+v", v, p[0].Layers)
	}
	p = read(t, "CONV_2D took 0 ticks (0 ms).\nSOFTMAX took 0 ticks (0 ms).\n", 0)
	if s := finding(p[0], "tflm.ticks"); s == "" {
		t.Error("a clock that did not run")
	}
	p = read(t, "Iterations:\nPersonDataIterations(2) took 400 ticks (0 ms)\n"+strings.Repeat("CONV_2D took 120 ticks (0 ms).\nCONV_2D took 60 ticks (0 ms).\n", 2), 1e6)
	if v, _ := p[0].Totals.Latency.Best(); len(p[0].Layers) != 2 || v != 200e-6 {
		t.Errorf("inferences that a benchmark counts: %g %+v", v, p[0].Layers)
	}
	p = read(t, "\"Event\",\"Tag\",\"Ticks\"\n0,CONV_2D,5\n1,SOFTMAX,6\n0,CONV_2D,7\n1,SOFTMAX,8\n", 0)
	if len(p) != 1 || len(p[0].Layers) != 2 || *p[0].Settings.Runs != 2 {
		t.Errorf("a counter that begins again: %+v", p)
	}
	p = read(t, "[RecordingMicroAllocator] Arena allocation total 84436 bytes\n[RecordingMicroAllocator] Arena allocation head 55296 bytes\n[RecordingMicroAllocator] Arena allocation tail 29140 bytes\nA_B took 1 ticks (0 ms).\n", 0)
	if *p[0].Totals.RAMBytes != 84436 || *p[0].Memory.ArenaBytes != 55296 || *p[0].Memory.PersistentBytes != 29140 {
		t.Errorf("%+v", p[0].Memory)
	}
	p = read(t, "A_B took 1 ticks (0 ms).\nC_D took 2 ticks (0 ms).\n\nX_Y took 3 ticks (0 ms).\n", 0)
	if len(p) != 2 {
		t.Errorf("%d runs of two models", len(p))
	}
}

// TestWholes separates the times of inferences and of their preparation from those of operators.
func TestWholes(t *testing.T) {
	t.Parallel()
	ops := "QUANTIZE took 3753 ticks (3 ms).\nSVDF took 37998 ticks (37 ms).\nethos-u took 100 ticks (0 ms).\n"
	ps := read(t, "InitializeKeywordRunner took 152689 ticks (152 ms).\n\nKeywordRunNIerations(1) took 152628 ticks (152 ms)\n"+ops+"\nKeywordRunNIerations(2) took 304000 ticks (304 ms)\n"+ops+ops, 1e6)
	if len(ps) != 2 {
		t.Fatalf("%d runs", len(ps))
	}
	for i, want := range []float64{0.152628, 0.152} {
		p := ps[i]
		if v, _ := p.Totals.Latency.Best(); v != want || len(p.Layers) != 3 || p.Layers[2].Op != "ethos-u" {
			t.Errorf("run %d: %g s, %d layers", i, v, len(p.Layers))
		}
	}
	if v, _ := ps[0].Totals.Value("init_initializekeywordrunner_s"); v != 0.152689 {
		t.Errorf("preparation %g", v)
	}
	p := read(t, "CONV_2D took 70 ticks (0 ms).\nSOFTMAX took 10 ticks (0 ms).\nModel invoke took 85 ticks (0 ms).\n", 1e3)[0]
	if v, _ := p.Totals.Latency.Best(); v != 85e-3 || len(p.Layers) != 2 {
		t.Errorf("%g s, %d layers", v, len(p.Layers))
	}
	// So do lines that stand apart, after each inference or before it.
	ops = "CONV_2D took 70 ticks (0 ms).\nSOFTMAX took 10 ticks (0 ms).\n"
	for name, text := range map[string]string{
		"after":  ops + "\nInvoke took 90 ticks (0 ms).\n\n" + ops + "\nInvoke took 100 ticks (0 ms).\n",
		"before": "AllocateTensors took 500 ticks (0 ms).\n\nInvoke took 90 ticks (0 ms).\n\n" + ops + "\nInvoke took 100 ticks (0 ms).\n\n" + ops,
	} {
		p = read(t, text, 1e3)[0]
		m := p.Totals.Latency
		if m == nil || m.N == nil || *m.N != 2 || *m.Min != 90e-3 || *m.Max != 100e-3 || len(p.Layers) != 2 || total(p, "ticks") != 80 {
			t.Errorf("%s: %+v, %d layers", name, m, len(p.Layers))
		}
	}
	// An operator of an accelerator takes most of the time and is none of these.
	p = read(t, "CONV_2D took 70 ticks (0 ms).\nethos-u took 1000 ticks (0 ms).\n", 1e3)[0]
	if len(p.Layers) != 2 || total(p, "ticks") != 1070 {
		t.Errorf("%d layers", len(p.Layers))
	}
	// Each model of a log has its own analysis.
	ps = read(t, "=== a.tflite ===\nCONV_2D took 70 ticks (0 ms).\n=== b.tflite ===\nCONV_2D took 80 ticks (0 ms).\n", 1e3)
	if len(ps) != 2 || ps[0].Model.Name != "a" || ps[1].Model.Name != "b" || total(ps[1], "ticks") != 80 {
		t.Errorf("%d runs of two models", len(ps))
	}
	if ps = read(t, "## -O2\nCONV_2D took 70 ticks (0 ms).\nADD took 1 ticks (0 ms).\n## -Os\nCONV_2D took 80 ticks (0 ms).\nADD took 1 ticks (0 ms).\n", 1e3); len(ps) != 2 || ps[1].Model.Description != "-Os" || !records.Found(ps[0], "record.runs") {
		t.Errorf("%d runs of two builds", len(ps))
	}
}

// TestWraps: counts of 32 bits that are printed as negative, and counts that no counter has.
func TestWraps(t *testing.T) {
	t.Parallel()
	text := "CONV_2D took -1742123456 ticks (-17421 ms).\nDEPTHWISE_CONV_2D took 1200000 ticks (12 ms).\nSOFTMAX took 2000 ticks (0 ms).\n"
	p := read(t, text, 0)[0]
	if v := total(p, "latency_s"); math.Abs(v-25.54) > 1e-9 || total(p, "ticks") != 2552843840+1202000 || !records.Found(p, "tflm.wrapped") {
		t.Errorf("%g s: %+v", v, p.Findings)
	}
	if v := total(read(t, text, 1e8)[0], "latency_s"); math.Abs(v-25.5404584) > 1e-9 {
		t.Errorf("%g s by the clock", v)
	}
	// No clock is implied: no operator has a time, or their sum would be shown as the whole.
	p = read(t, "CONV_2D took -5 ticks (0 ms).\nDEPTHWISE_CONV_2D took 1200000 ticks (12 ms).\n", 0)[0]
	if p.Totals.Latency != nil || total(p, "latency_s") != 0 || total(p, "ticks") != 4294967291+1200000 {
		t.Errorf("%+v", p.Totals.Latency)
	}
	for _, bad := range []string{"18446744073709551616", "-9000000000"} {
		p = read(t, "CONV_2D took "+bad+" ticks (1 ms).\nSOFTMAX took 2000 ticks (2 ms).\n", 1e6)[0]
		if _, ok := p.Layers[0].Value("ticks"); ok || len(p.Incomplete) != 1 || !records.Found(p, "tflm.unread") {
			t.Errorf("%s: %+v", bad, p.Layers[0])
		}
	}
	p = read(t, "CONV_2D took 5 ticks (0 ms).\nADD took x ticks (0 ms).\nMUL took ? ticks\nSOFTMAX took 2000 ticks (2 ms).\n", 1e6)[0]
	if len(p.Layers) != 2 || len(p.Incomplete) != 1 || *p.Incomplete[0].Want != 2 {
		t.Errorf("lines that cannot be read: %+v", p.Incomplete)
	}
	p = read(t, "\"Event\",\"Tag\",\"Ticks\"\n0,CONV_2D,-5\n1,SOFTMAX,99999999999999999999\n", 1e6)[0]
	if len(p.Layers) != 2 || total(p, "ticks") != 4294967291 || len(p.Incomplete) != 1 || !records.Found(p, "tflm.wrapped") {
		t.Errorf("%+v", p.Incomplete)
	}
}

// TestUnknownTicks: a row whose ticks cannot be read keeps its layer, and the sum is unknown.
func TestUnknownTicks(t *testing.T) {
	t.Parallel()
	head := "\"Event\",\"Tag\",\"Ticks\"\n0,CONV_2D,1000\n"
	for _, c := range []struct {
		row  string
		want float64 // 0 for unknown
	}{{"nan", 0}, {"1e400", 0}, {"", 0}, {"abc", 0}, {`"1,000"`, 1000}, {`"70"`, 70}, {"1.5", 0}} {
		p := read(t, head+"1,ADD,"+c.row+"\n2,MUL,5\n", 0)[0]
		if len(p.Layers) != 3 {
			t.Fatalf("%s: %d layers", c.row, len(p.Layers))
		}
		v, known := p.Layers[1].Value("ticks")
		_, whole := p.Totals.Value("ticks")
		if v != c.want || known != (c.want > 0) || whole != known || len(p.Incomplete) > 0 == known {
			t.Errorf("%s: %g ticks, sum known %v, %+v", c.row, v, whole, p.Incomplete)
		}
	}
}

// TestOtherTables reads CSVs that firmware and scripts of others write, with columns of any name.
func TestOtherTables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		clock   float64
		runs    int
		ticks   float64
		seconds float64
	}{
		"microseconds":  {"index,operator,time_us\n0,CONV_2D,1500\n1,SOFTMAX,20.5\nTotal,,1520.5\n", 0, 1, 0, 1520.5e-6},
		"ticks, ms":     {"Layer Name;opType;Cycle Count;Time (ms)\nconv1;CONV_2D;100;1.5\nfc;FULLY_CONNECTED;50;0.5\n", 0, 1, 150, 2e-3},
		"clock":         {"op\tticks\nCONV_2D\t100\nSOFTMAX\t50\n", 1e3, 1, 150, 150e-3},
		"by content":    {"what,avgCycles\nCONV_2D,100\nRESHAPE,5\nmyCustomOp,7\n", 0, 1, 112, 0},
		"units":         {"Layer #; Kernel ; avg [cycles]; Exec time [µs]; comment\n0; CONV_2D ; 1,200 ; 12.5 ; a\n1; SOFTMAX ; 100 ; 1.5 ; b\n", 0, 1, 1300, 14e-6},
		"spread":        {"op,start_us,min_us,total_us,avg_us,max_us\nCONV_2D,0,1,30,3,9\nSOFTMAX,5,1,20,2,9\n", 0, 1, 0, 5e-6},
		"other case":    {"Layer,Latency [us]\nConv2D,1500\nDepthwiseConv2D,250\nSoftmax,50\n", 0, 1, 0, 1800e-6},
		"index restart": {"#,Tag,Ticks\n0,CONV_2D,100\n1,SOFTMAX,50\n0,CONV_2D,300\n1,SOFTMAX,50\n", 0, 1, 250, 0},
		"iterations":    {"iteration,op,ticks\n1,CONV_2D,100\n1,SOFTMAX,50\n2,CONV_2D,300\n2,SOFTMAX,50\n", 0, 1, 250, 0},
		"two models":    {"#,Tag,Ticks\n0,CONV_2D,100\n1,SOFTMAX,50\n0,FULLY_CONNECTED,300\n1,SOFTMAX,50\n", 0, 2, 150, 0},
		"two tables":    {"op,ticks\nCONV_2D,100\nSOFTMAX,50\nop,ticks\nCONV_2D,300\nSOFTMAX,50\n", 0, 2, 150, 0},
	} {
		ps := read(t, c.text, c.clock)
		if len(ps) != c.runs {
			t.Errorf("%s: %d runs, want %d", name, len(ps), c.runs)
			continue
		}
		if v := total(ps[0], "ticks"); v != c.ticks {
			t.Errorf("%s: %g ticks, want %g", name, v, c.ticks)
		}
		if v := total(ps[0], "latency_s"); math.Abs(v-c.seconds) > 1e-12 {
			t.Errorf("%s: %g s, want %g", name, v, c.seconds)
		}
	}
	p := read(t, "op,ticks\nCONV_2D,1e400\nSOFTMAX,-3\nRESHAPE,5\n", 0)[0]
	if _, whole := p.Totals.Value("ticks"); len(p.Layers) != 3 || len(p.Incomplete) != 2 || whole {
		t.Errorf("%+v %+v", p.Layers, p.Incomplete)
	}
	for _, text := range []string{"name,price\nCONV_2D,5\n", "op,ticks\nfoo,5\n", "op,share\nCONV_2D,5\n"} {
		if s := tflm.Format().Match(record.Bytes("x.csv", []byte(text))); s != record.No {
			t.Errorf("%q is taken for a record", text)
		}
	}
}

// TestTableRows: the sum of a table without the figure of an operator is not that of the whole; a
// sum that the table prints is.
func TestTableRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		clock   float64
		layers  int
		ticks   float64 // 0 for unknown
		seconds float64
		warned  bool
	}{
		"no figure":    {"#,op,ticks\n0,CONV_2D,100\n1,ADD,n/a\n2,SOFTMAX,50\n", 1e3, 3, 0, 0, true},
		"cut":          {"#,op,ticks\n0,CONV_2D,100\n1,ADD\n2,SOFTMAX,50\n", 1e3, 3, 0, 0, true},
		"own operator": {"op,time_us\nCONV_2D,100\nmyOp,?\n", 0, 2, 0, 0, true},
		"printed":      {"#,op,ticks\n0,CONV_2D,100\n1,ADD,?\n2,SOFTMAX,50\nTotal,,500\n", 1e3, 3, 500, 0.5, true},
		"printed time": {"op,time_us\nCONV_2D,100\nADD,\nTotal,500\n", 0, 2, 0, 500e-6, true},
		"too small":    {"op,ticks\nCONV_2D,100\nADD,?\nTotal,7\n", 0, 2, 0, 0, true},
		"twice":        {"#,op,ticks\n0,CONV_2D,100\n1,ADD,?\n0,CONV_2D,100\n1,ADD,7\n", 0, 2, 107, 0, false},
		"text":         {"op,ticks\nCONV_2D,100\nADD,50\ndone in time\n", 0, 2, 150, 0, false},
		"MEAN":         {"op,ticks\nCONV_2D,100\nMEAN,50\nTotal,150\nMean,75\n", 0, 2, 150, 0, false},
	} {
		p := read(t, c.text, c.clock)[0]
		v, known := p.Totals.Value("ticks")
		s, timed := p.Totals.Value("latency_s")
		if len(p.Layers) != c.layers || v != c.ticks || known != (c.ticks > 0) || math.Abs(s-c.seconds) > 1e-12 || timed != (c.seconds > 0) {
			t.Errorf("%s: %d layers, %g ticks, %g s", name, len(p.Layers), v, s)
		}
		if records.Found(p, "tflm.unread") != c.warned || c.warned && len(p.Incomplete) == 0 {
			t.Errorf("%s: %+v, %+v", name, p.Findings, p.Incomplete)
		}
	}
}

func FuzzTFLM(f *testing.F) {
	f.Add([]byte("A_B took 1 ticks (0 ms).\nC_D took -2 ticks (0 ms).\n\"Unique Tag\",\"Total ticks across all events with that tag.\"\nA_B, 5\n\"total number of ticks\", 5\n"))
	f.Add([]byte("\"Event\",\"Tag\",\"Ticks\"\n0,CONV_2D,5\n1,SOFTMAX,6\n"))
	f.Add([]byte("date,sha,text,data,bss,total\n2022-01-10 22:39:00.301510,c5,1,2,3,6\n"))
	f.Add([]byte("=== a.tflite ===\nOp#0 CONV_2D(T#1, T#2[1]) -> [T#0]\nT#0(x) shape:[1, 2], type:INT8\nCONV_2D took 5 ticks (0 ms)\n        Total | 84436 |   100.00\n"))
	f.Add([]byte("index,operator,time_us,Cycles\n0,CONV_2D,1500,3\n1,SOFTMAX,20.5,x\n0,CONV_2D,1500,3\n"))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, tflm.Format(), "a.log", b) })
}
