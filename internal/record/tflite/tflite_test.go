package tflite_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tflite"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

// near compares sums of figures with three decimals of a millisecond: only the order of
// additions differs.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }

func sum(p *profile.Profile) (s float64) {
	for i := range p.Layers {
		v, _ := p.Layers[i].Latency.Best()
		s += v
	}
	return s
}

// rows reads the first table of operators behind a mark: the averages of its rows, milliseconds, by
// the position of the column, counted from the left.
func rows(t *testing.T, text, mark, sep string, column int) (n int, total float64) {
	t.Helper()
	_, rest, ok := strings.Cut(text, mark)
	if !ok {
		t.Fatalf("no %q", mark)
	}
	head := false
	for _, l := range strings.Split(rest, "\n") {
		low := strings.ToLower(strings.TrimSpace(l))
		if strings.HasPrefix(low, "[node type]") || strings.HasPrefix(low, "node type,") {
			if head {
				break
			}
			head = true
			continue
		}
		f := strings.Split(strings.TrimPrefix(l, "\t"), sep)
		if !head || len(f) < column+3 {
			if head && strings.TrimSpace(l) == "" {
				break
			}
			continue
		}
		var v float64
		if _, err := fmt.Sscan(strings.TrimSpace(f[column]), &v); err != nil {
			continue
		}
		n++
		total += v
	}
	return n, total
}

// TestSums compares with the tables of the files, read once more here.
func TestSums(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, mark, sep string
		column          int
		total           float64 // microseconds, of an inference
	}{
		{"litert_benchmark_readme_log.md", "= Run Order =", "\t", 3, 79760.9},
		{"mimxrt1160_anomaly_newlib_ld_quirk.txt", "Operator-wise Profiling Info", "\t", 3, 58.311},
		{"mnv3_seg_gpu_delegate_op_profile.txt", "Operator-wise Profiling Info", "\t", 3, 8680.33},
		{"derived_csv_with_start_column.csv", "Operator-wise Profiling Info", ", ", 3, 45.5075},
		{"derived_csv_without_start_column.csv", "Operator-wise Profiling Info", ", ", 2, 4567},
	} {
		path := material.Path(t, "raw", "traces", "tflite", tt.file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n, want := rows(t, string(text), tt.mark, tt.sep, tt.column)
		p := records.Read(t, tflite.Format(), records.Files(t, path), record.Options{})[0]
		total, _ := p.Totals.Latency.Best()
		if n == 0 || len(p.Layers) != n || !near(sum(p), want/1e3) || !near(total, tt.total/1e6) {
			t.Errorf("%s: %d layers %g s, total %g; want %d, %g ms and %g us", tt.file, len(p.Layers), sum(p), total, n, want, tt.total)
		}
	}
}

func only(t *testing.T, text string) (*profile.Profile, *runlog.Run) {
	t.Helper()
	return at(t, text, 0, 1)
}

func at(t *testing.T, text string, i, n int) (*profile.Profile, *runlog.Run) {
	t.Helper()
	f := record.Bytes("log.txt", []byte(text))
	if tflite.Format().Match(f) == record.No {
		t.Fatal("not recognised")
	}
	runs, err := tflite.Format().Read(t.Context(), &record.Input{Files: []*record.File{f}})
	if err != nil || len(runs) != n {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	return records.Collect(t, runs[i]), runs[i]
}

// delegated is a log with prefixes of logcat, bodies of control flow, a delegate with
// its inner operators, percentiles, several outputs.
const delegated = `04-05 12:34:56.789  1234  5678 I tflite  : STARTING!
04-05 12:34:56.789  1234  5678 I tflite  : Graph: [/data/local/tmp/net.tflite]
04-05 12:34:56.789  1234  5678 I tflite  : #threads used for CPU inference: [4]
04-05 12:34:56.789  1234  5678 I tflite  : Initialized session in 2.5ms.
04-05 12:34:56.789  1234  5678 I tflite  : count=10 first=900 curr=500 min=400 max=900 avg=500 std=10 p5=410 median=480 p95=850
04-05 12:34:56.789  1234  5678 I tflite  : count=50 first=700 curr=600 min=500 max=2e+03 avg=1.2e+03 std=20 p5=510 median=1100 p95=1900
04-05 12:34:56.789  1234  5678 I tflite  : Inference timings in us: Init: 2500, First inference: 900, Warmup (avg): 500, Inference (avg): 1200
04-05 12:34:56.789  1234  5678 I tflite  : Memory footprint delta from the start of the tool (MB): init=1.5 overall=2
04-05 12:34:56.789  1234  5678 I tflite  : Operator-wise Profiling Info for Regular Benchmark Runs:
04-05 12:34:56.789  1234  5678 I tflite  : Primary graph (name: main) profile:
04-05 12:34:56.789  1234  5678 I tflite  : ============================== Run Order ==============================
04-05 12:34:56.789  1234  5678 I tflite  : 	             [node type]	  [first]	 [avg ms]	     [%]	  [cdf%]	  [mem KB]	[times called]	[Name]
04-05 12:34:56.789  1234  5678 I tflite  : 	   TfLiteXNNPackDelegate	    0.500	    0.400	 40.000%	 40.000%	     1.000	        1	[a, b]:7
04-05 12:34:56.789  1234  5678 I tflite  : 	                   WHILE	    0.500	    0.300	 30.000%	 70.000%	     0.000	        1	[loop]:8
04-05 12:34:56.789  1234  5678 I tflite  : 	           CONV_2D/3x3opt	    0.100	    0.100	 30.000%	100.000%	     0.000	        2	[x:0]:9
04-05 12:34:56.789  1234  5678 I tflite  : 
04-05 12:34:56.789  1234  5678 I tflite  : Timings (microseconds): count=50 first=1000 curr=900 min=800 max=1100 avg=900 std=5
04-05 12:34:56.789  1234  5678 I tflite  : Memory (bytes): count=0
04-05 12:34:56.789  1234  5678 I tflite  : 3 nodes observed
04-05 12:34:56.789  1234  5678 I tflite  : Subgraph (index: 1, name: body) profile:
04-05 12:34:56.789  1234  5678 I tflite  : ============================== Run Order ==============================
04-05 12:34:56.789  1234  5678 I tflite  : 	             [node type]	  [first]	 [avg ms]	     [%]	  [cdf%]	  [mem KB]	[times called]	[Name]
04-05 12:34:56.789  1234  5678 I tflite  : 	                     ADD	    0.050	    0.050	100.000%	100.000%	     0.000	        4	[y]:0
04-05 12:34:56.789  1234  5678 I tflite  : Subgraph (index: 1, name: body) Timings (microseconds): count=50 curr=200
04-05 12:34:56.789  1234  5678 I tflite  : 1 nodes observed
04-05 12:34:56.789  1234  5678 I tflite  : Delegate internal: 
04-05 12:34:56.789  1234  5678 I tflite  : ============================== Run Order ==============================
04-05 12:34:56.789  1234  5678 I tflite  : 	             [node type]	  [first]	 [avg ms]	     [%]	  [cdf%]	  [mem KB]	[times called]	[Name]
04-05 12:34:56.789  1234  5678 I tflite  : 	        DelegateOpInvoke	    0.300	    0.300	100.000%	100.000%	     0.000	        1	Delegate/Convolution (NHWC, F32) GEMM:0
04-05 12:34:56.789  1234  5678 I tflite  : Timings (microseconds): count=50 first=300 curr=300 min=300 max=300 avg=300 std=0
`

func TestDelegates(t *testing.T) {
	t.Parallel()
	p, r := only(t, delegated)
	if p.Model.Name != "net" || *p.Settings.Threads != 4 || len(p.Layers) != 5 {
		t.Fatalf("%+v", p.Layers)
	}
	get := func(i int) float64 { v, _ := p.Layers[i].Latency.Best(); return v }
	// 0.4 ms with 0.3 inside, 0.3 with 4 x 0.05 inside, 2 x 0.1, and what is inside.
	for i, want := range []float64{1e-4, 1e-4, 2e-4, 2e-4, 3e-4} {
		if !near(get(i), want) {
			t.Errorf("layer %d takes %g, want %g", i, get(i), want)
		}
	}
	if v, _ := p.Layers[0].Total.Best(); !near(v, 4e-4) {
		t.Errorf("the delegate with what is inside: %g", v)
	}
	if *p.Layers[3].Parent != 1 || p.Layers[3].Graph != "body" || *p.Layers[4].Parent != 0 || p.Layers[2].Kernel != "3x3opt" || *p.Layers[2].Calls != 2 {
		t.Errorf("%+v", p.Layers)
	}
	// its node is not a node of the model
	if d := cmp.Diff(runlog.Hint{Outputs: []string{"a", "b"}}, r.Hints[0]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"x:0"}, r.Hints[2].Outputs); d != "" || *r.Hints[2].Index != 9 {
		t.Error(d)
	}
	m := p.Totals.Latency
	if *m.N != 50 || !near(*m.Median, 1.1e-3) || !near(*m.Mean, 1.2e-3) || !near(*m.P95, 1.9e-3) || !near(*m.Max, 2e-3) {
		t.Errorf("%+v", m)
	}
	if ph := p.Phases; !near(*ph.PlanS, 2.5e-3) || !near(*ph.FirstRunS, 9e-4) || *ph.Warmup.Count != 10 {
		t.Errorf("%+v", ph)
	}
	if v, _ := p.Totals.Value("memory_delta_bytes"); v != 2<<20 {
		t.Errorf("memory %g", v)
	}
	if v, _ := p.Layers[0].Value("memory_change_bytes"); v != 1000 {
		t.Errorf("memory of a layer %g", v)
	}
}

// TestSeveral: a log of several runs, one of which has no first table, and rows that are broken.
func TestSeveral(t *testing.T) {
	t.Parallel()
	text := delegated + "STARTING!\nOperator-wise Profiling Info for Regular Benchmark Runs:\n" +
		"node type, first, avg_ms, %, cdf%, mem KB, times called, name\nCONV_2D, 1, 0.5, 100%, 100%, 0, 1, [a, b, c]:1\n\n" +
		"Number of nodes executed: 1\nnode type, count, avg_ms, avg %, cdf %, mem KB, times called\nCONV_2D, 1, 0.01, 100%, 100%, 0, 1\n" +
		"STARTING!\nnode type, count, avg_ms, avg %, cdf %, mem KB, times called\nCONV_2D, 3, 0.7, 100%, 100%, 0, 1\n"
	p, r := at(t, text, 1, 3)
	if len(p.Layers) != 1 || !near(sum(p), 5e-4) || len(r.Hints[0].Outputs) != 3 {
		t.Errorf("sums are those of the operators, not of the summary: %+v", p.Layers)
	}
	p, _ = at(t, text, 2, 3)
	if len(p.Layers) != 1 || !near(sum(p), 7e-4) || len(p.Findings) == 0 || p.Findings[0].ID != "record.cut" {
		t.Errorf("a log with the sums only: %+v", p.Layers)
	}
}

// TestPrefixes reads a log as other programs and documents show it: the right values are those of
// the plain log.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	plain := strings.ReplaceAll(delegated, "04-05 12:34:56.789  1234  5678 I tflite  : ", "")
	want, _ := only(t, plain)
	prefixed := func(by string) string {
		return by + strings.ReplaceAll(strings.TrimSuffix(plain, "\n"), "\n", "\n"+by) + "\n"
	}
	for name, text := range map[string]string{
		"logcat": delegated, "tab": prefixed("\t"), "blanks": prefixed("    "), "quoted": prefixed("> "), "list, quoted": prefixed("   > > "),
		"iOS":        prefixed("2022-09-06 13:15:37.000000+0900 TFLiteBenchmark[54612:4020499] "),
		"syslog":     prefixed("Sep  6 13:15:37 phone benchmark[54612]: "),
		"CI":         prefixed("2022-09-06T13:15:37.1234567Z "),
		"level":      prefixed("\tINFO: "),
		"tabs gone":  strings.ReplaceAll(plain, "\t", "  "),
		"two tabs":   prefixed("\t\t"),
		"serial":     prefixed("13:15:37.123 -> "),
		"terminated": strings.ReplaceAll(plain, "\n", "\r\n"),
	} {
		got, _ := only(t, text)
		if d := cmp.Diff(want.Layers, got.Layers); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(want.Totals, got.Totals); d != "" || len(got.Incomplete) > 0 {
			t.Errorf("%s: %s %+v", name, d, got.Incomplete)
		}
	}
}

// TestUnknownMean: neither the warm-up, the last nor the shortest run stands for the mean.
func TestUnknownMean(t *testing.T) {
	t.Parallel()
	warm := "count=67 first=8781 curr=7197 min=6335 max=9775 avg=7514.93 std=419\n"
	measured := "count=67 first=7176 curr=7505 min=6373 max=7775 avg=nan std=256\n"
	end := "Inference timings in us: Init: 16772, First inference: 8781, Warmup (avg): 7514.93, Inference (avg): nan\n"
	p, _ := only(t, warm+measured+end)
	if p.Totals.Latency != nil || len(p.Findings) == 0 || p.Findings[0].ID != "record.incomplete" {
		t.Errorf("%+v, %+v", p.Totals.Latency, p.Findings)
	}
	if v, _ := p.Totals.Value("latency_min_s"); !near(v, 6373e-6) {
		t.Errorf("shortest %g s", v)
	}
	table := "Operator-wise Profiling Info for Regular Benchmark Runs:\n============================== Run Order ==============================\n" +
		"\t[node type]\t[first]\t[avg ms]\t[%]\t[cdf%]\t[mem KB]\t[times called]\t[Name]\n\tADD\t1.0\t1.5\t60%\t60%\t0\t1\t[a]:0\n\tMUL\t1.0\t1\t40%\t100%\t0\t1\t[b]:1\n\n"
	timings := "Timings (microseconds): count=67 first=9 curr=9 min=9 max=9 avg=2600 std=0\n"
	for name, c := range map[string]struct {
		text      string
		operators float64 // 0 for the latency, as the record has no other
	}{
		"with operators": {warm + measured + end + table, 2.5e-3},
		"with their sum": {warm + measured + end + table + timings, 2.6e-3},
		"summary alone":  {end + table, 2.5e-3},
		"no summary":     {table + timings, 0},
		"table alone":    {table, 0},
	} {
		p, _ := only(t, c.text)
		v, _ := p.Totals.Value("recorded_operators_s")
		_, known := p.Totals.Value("latency_s")
		if known != (c.operators == 0) || c.operators > 0 && (!near(v, c.operators) || p.Reconcile != nil) || len(p.Layers) != 2 || !near(*p.Layers[0].Share, 0.6) {
			t.Errorf("%s: latency known %v, operators %g s", name, known, v)
		}
	}
	median := strings.Replace(measured, "\n", " median=7100\n", 1)
	if p, _ := only(t, warm+median+table); p.Totals.Latency == nil || !near(*p.Totals.Latency.Median, 7100e-6) || len(p.Findings) > 0 && p.Findings[0].ID == "record.incomplete" {
		t.Errorf("the median is the latency: %+v", p.Totals.Latency)
	}
}

// TestLostRows: each row with a time that cannot be read counts and keeps its layer, those after it
// are read. The sum without it is not the latency.
func TestLostRows(t *testing.T) {
	t.Parallel()
	head := "Operator-wise Profiling Info for Regular Benchmark Runs:\n============================== Run Order ==============================\n" +
		"\t[node type]\t[first]\t[avg ms]\t[%]\t[cdf%]\t[mem KB]\t[times called]\t[Name]\n"
	row := func(ms string) string { return "\tADD\t1.0\t" + ms + "\t10%\t10%\t0\t1\t[a]:0\n" }
	p, r := only(t, head+row("1.5")+row("oops")+row("?")+"W some text between\n"+row("2.5"))
	if len(p.Layers) != 4 || p.Layers[1].Latency != nil || p.Totals.Latency != nil || !near(sum(p), 4e-3) || len(r.Lost) != 1 || *r.Lost[0].Records != 2 {
		t.Errorf("%d layers, %+v", len(p.Layers), r.Lost)
	}
}

// TestRepeated: logs of several runs that follow one another without a heading are not added up.
func TestRepeated(t *testing.T) {
	t.Parallel()
	one := func(us int) string {
		return fmt.Sprintf("count=5 first=9 curr=9 min=9 max=9 avg=9 std=0\ncount=50 first=%d curr=%d min=%d max=%d avg=%d std=0\nInference timings in us: Init: 1, First inference: 9, Warmup (avg): 9, Inference (avg): %d\n", us, us, us, us, us, us)
	}
	table := "\t[node type]\t[first]\t[avg ms]\t[%]\t[cdf%]\t[mem KB]\t[times called]\t[Name]\n\tADD\t1.0\t1.5\t10%\t10%\t0\t1\t[a]:0\n"
	order := "= Run Order =\n" + table
	for name, text := range map[string]string{"summaries": one(100) + one(300), "with tables": one(100) + order + "\n" + one(300) + order} {
		for i, want := range []float64{100e-6, 300e-6} {
			p, _ := at(t, text, i, 2)
			if v, _ := p.Totals.Latency.Best(); !near(v, want) || !records.Found(p, "record.runs") {
				t.Errorf("%s: run %d takes %g s, want %g", name, i, v, want)
			}
		}
	}
	if p, _ := at(t, order+"\n"+order, 1, 2); !near(sum(p), 1.5e-3) {
		t.Errorf("tables: %g s", sum(p))
	}
}

func msg(fields ...[]byte) (out []byte) {
	for _, f := range fields {
		out = append(out, f...)
	}
	return out
}
func text(n protowire.Number, s string) []byte { return sub(n, []byte(s)) }
func sub(n protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
}

func number(n protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), uint64(v))
}

func float(n protowire.Number, v float32) []byte {
	return binary.LittleEndian.AppendUint32(protowire.AppendTag(nil, n, protowire.Fixed32Type), math.Float32bits(v))
}

func profiling() []byte {
	op := func(kind, name string, order, sum, count, called int64) []byte {
		return msg(text(1, kind), sub(2, msg(number(1, 9), number(3, sum/count), float(4, 2), number(6, 1), number(7, sum), number(8, sum), number(9, count))), number(4, called), text(5, name), number(6, order))
	}
	graph := msg(text(1, "main"), number(2, 0), sub(3, op("SOFTMAX", "[s]:1", 1, 301, 100, 2)), sub(3, op("TfLiteGpuDelegateV2", "[c]:0", 0, 12345, 1000, 1)))
	return msg(text(1, "net"), sub(2, sub(1, msg(sub(3, op("AllocateTensors", "AllocateTensors/0", 0, 147, 1, 1))))), sub(3, msg(sub(1, graph), sub(2, msg(text(1, "gpu"), sub(2, op("conv", "Delegate/conv:0", 0, 5000, 1000, 1)))))))
}

func TestProto(t *testing.T) {
	t.Parallel()
	p, r := only(t, string(profiling()))
	if len(p.Layers) != 3 || p.Model.Name != "net" || p.Layers[0].Op != "TfLiteGpuDelegateV2" || p.Layers[0].Placement.On != "gpu" {
		t.Fatalf("operators in the order in which they ran: %+v", p.Layers)
	}
	// Averages are cut to whole microseconds: 12345/1000, and 301/100 twice.
	for i, want := range []float64{12.345e-6 - 5e-6, 6.02e-6, 5e-6} {
		if v, _ := p.Layers[i].Latency.Best(); !near(v, want) {
			t.Errorf("layer %d takes %g, want %g", i, v, want)
		}
	}
	if v, _ := p.Totals.Value("init_allocatetensors_s"); !near(v, 147e-6) || *r.Hints[1].Index != 1 || *p.Layers[2].Parent != 0 {
		t.Errorf("initialisation %g, %+v", v, r.Hints)
	}
	result := msg(text(1, "net"), sub(2, msg(float(1, 2), float(2, 1), float(3, 4), float(5, 1.5), float(8, 10), float(9, 3))), sub(3, msg(number(1, 100), float(3, 2))), sub(4, msg(float(1, 3), number(2, 50), number(3, 5))))
	p, _ = only(t, string(result))
	if m := p.Totals.Latency; !near(*m.Mean, 2e-3) || !near(*m.Median, 1.5e-3) || *m.N != 50 || !near(*p.Phases.PlanS, 1e-2) || *p.Phases.Warmup.Count != 5 {
		t.Errorf("%+v %+v", m, p.Phases)
	}
	edge := func(id int64, name string) []byte {
		return sub(2, msg(number(1, id), text(2, name), number(3, 9), sub(4, []byte{1, 8, 8, 3}), number(7, 192)))
	}
	node := func(id int64, kind string, out byte, more ...[]byte) []byte {
		return sub(3, msg(append([][]byte{number(1, id), text(3, kind), sub(5, []byte{out})}, more...)...))
	}
	details := msg(text(1, "net"), sub(2, msg(number(1, 0), edge(0, "a"), edge(1, "b"), node(0, "CONV_2D", 0, number(9, 2)), node(1, "ADD", 1), node(2, "", 0, sub(8, msg(text(1, "TfLiteXNNPackDelegate"), sub(2, []byte{0})))), number(5, 1))))
	p, r = only(t, string(details))
	if len(p.Layers) != 3 || p.Layers[0].State != profile.Fused || *p.Layers[0].FusedInto != 2 || p.Layers[2].Op != "TfLiteXNNPackDelegate" {
		t.Fatalf("%+v", p.Layers)
	}
	if o := p.Layers[1].Outputs[0]; o.Name != "b" || o.DType != "int8" || len(o.Shape) != 4 || *o.Bytes != 192 || *r.Hints[1].Index != 1 {
		t.Errorf("%+v", o)
	}
}

// TestProtoFile holds the figures of a real message: sums and counts of its statistics.
func TestProtoFile(t *testing.T) {
	t.Parallel()
	p := records.Read(t, tflite.Format(), records.Files(t, material.Path(t, "raw", "traces", "tflite", "derived_op_profile.pb")), record.Options{})[0]
	if len(p.Layers) != 3 || !near(sum(p), 28e-6) {
		t.Errorf("%d layers, %g s", len(p.Layers), sum(p))
	}
}

func FuzzTFLite(f *testing.F) {
	f.Add([]byte(delegated))
	f.Add(profiling())
	f.Add([]byte("Operator-wise Profiling Info for Regular Benchmark Runs:\nnode type, first, avg_ms, %, cdf%, mem KB, times called, name\nA, 1, 2, 3%, 4%, 5, 6, [a, b]:1\n"))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, tflite.Format(), "a.txt", b) })
}
