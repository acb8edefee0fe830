package openvino_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/openvino"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

func dir(t *testing.T, name string) string {
	t.Helper()
	return material.Path(t, "raw", "traces", "openvino", name)
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12 } // order of additions

func get(p *profile.Profile, i int) float64 { v, _ := p.Layers[i].Latency.Best(); return v }

// TestDetailed compares with the file: means over its blocks, of both times.
func TestDetailed(t *testing.T) {
	t.Parallel()
	path := dir(t, "synthetic_benchmark_detailed_counters_report.csv")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	real, blocks := map[string][]float64{}, 0
	for _, l := range strings.Split(string(b), "\n") {
		f := strings.Split(l, ";")
		if f[0] == "layerName" {
			blocks++
		} else if len(f) > 5 && f[0] != "Total" {
			v, _ := strconv.ParseFloat(f[4], 64)
			real[f[0]] = append(real[f[0]], v/1e3)
		}
	}
	p := records.Read(t, openvino.Format(), records.Files(t, path), record.Options{})[0]
	if len(p.Layers) != len(real) || *p.Settings.Runs != int64(blocks) || blocks != 2 {
		t.Fatalf("%d layers of %d in %d requests", len(p.Layers), len(real), blocks)
	}
	for i, state := range []profile.State{profile.NotReached, profile.Ran, profile.Ran, profile.NotReached, profile.Folded} {
		l := &p.Layers[i]
		if l.State != state {
			t.Errorf("%s is %s, want %s", l.Name, l.State, state)
		}
		if vs := real[l.Name]; state == profile.Ran && (!near(*l.Latency.Mean, (vs[0]+vs[1])/2) || len(l.Samples) != 2) {
			t.Errorf("%s takes %+v, want mean of %v", l.Name, l.Latency, vs)
		}
	}
	if m := p.Totals.Latency; !near(*m.Mean, (1.38+1.371)/2/1e3) {
		t.Errorf("%+v", m)
	}
	if p.Layers[2].Kernel != "jit_avx512_FP32" || p.Layers[4].Option("exec_status") != "OPTIMIZED_OUT" {
		t.Errorf("%+v", p.Layers)
	}
}

// TestTogether: the report of the whole run goes to the counters of its name.
func TestTogether(t *testing.T) {
	t.Parallel()
	ps := records.Read(t, openvino.Format(), records.Files(t, dir(t, "synthetic_benchmark_detailed_counters_report.csv"), dir(t, "synthetic_benchmark_report.csv")), record.Options{})
	if len(ps) != 1 {
		t.Fatalf("%d runs", len(ps))
	}
	p := ps[0]
	if m := p.Totals.Latency; !near(*m.Median, 1.52e-3) || !near(*m.Mean, 1.54e-3) || !near(*m.Min, 1.4e-3) || !near(*m.Max, 3.21e-3) || *m.N != 5000 || p.Model.Name != "model" || len(p.Layers) != 5 {
		t.Errorf("%+v", m)
	}
	if v, _ := p.Totals.Value("inferences_per_s"); v != 652.1 {
		t.Error(v)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]float64{
		"synthetic_benchmark_detailed_counters_report.json":     {0, 0.246e-3, 1.134e-3},
		"synthetic_benchmark_sort_detailed_counters_report.csv": {1.134e-3, 0.246e-3},
		"python_counters_console_from_issue_16701.txt":          {0, 0.246e-3, 1.134e-3, 0},
	} {
		p := records.Read(t, openvino.Format(), records.Files(t, dir(t, name)), record.Options{})[0]
		if len(p.Layers) != len(want) {
			t.Fatalf("%s: %d layers", name, len(p.Layers))
		}
		for i, w := range want {
			if !near(get(p, i), w) {
				t.Errorf("%s: layer %d takes %g, want %g", name, i, get(p, i), w)
			}
		}
		if v, _ := p.Totals.Latency.Best(); !near(v, 1.38e-3) {
			t.Errorf("%s: total %g", name, v)
		}
	}
}

// TestTraps: names that were cut and so repeated, C++ consoles, columns of debug builds,
// processor and device times apart, JSON of sorted counters.
func TestTraps(t *testing.T) {
	t.Parallel()
	read := func(text string) *profile.Profile {
		return records.Read(t, openvino.Format(), []*record.File{record.Bytes("x.txt", []byte(text))}, record.Options{})[0]
	}
	p := read("Very/long/name/of/a/layer/that...   EXECUTED       layerType: Conv   realTime: 1500   cpu: 20   execType: jit\nVery/long/name/of/a/layer/that...   EXECUTED       layerType: Conv   realTime: 500   cpu: 500   execType: jit\nTotal time: 2000 microseconds\n")
	if len(p.Layers) != 2 || !near(get(p, 0), 1.5e-3) || !near(get(p, 1), 0.5e-3) {
		t.Errorf("%+v", p.Layers)
	}
	if v, _ := p.Layers[0].Value("cpu_time_s"); !near(v, 20e-6) {
		t.Errorf("processor %g", v)
	}
	p = read("a/b   Status.EXECUTEDlayerType: Conv  realTime: 1 day, 0:00:01.5cpu: 0:00:00  execType: undef\n")
	if !near(get(p, 0), 86401.5) {
		t.Error(get(p, 0))
	}
	p = read("layerName;execStatus;layerType;execType;numaId;realTime (ms);cpuTime (ms);\na;b;EXECUTED;Conv;jit;1;2.0;1.0;\nTotal;;;;;2;1;\n")
	if v, _ := p.Layers[0].Value("numaid"); p.Layers[0].Name != "a;b" || v != 1 || !near(get(p, 0), 2e-3) {
		t.Errorf("%+v", p.Layers[0])
	}
	p = read(`{"detailed_performance":[{"nodes":[{"name":"a","status":"EXECUTED","node_type":"Conv","exec_type":"x","real_time":1,"cpu_time":1,"%":75.5,"more":"text"}],"total_real_time":1,"total_cpu_time":1}]}`)
	if v, _ := p.Layers[0].Value("recorded_share"); v != 0.755 || p.Layers[0].Option("more") != "text" {
		t.Errorf("%+v", p.Layers[0])
	}
	p = read(`{"cmd_options":{"m":"net.xml"},"configuration_setup":{"target_device":"CPU"},"execution_results":{"latency_median":2.5,"latency_avg":2.6,"throughput":400,"iterations_num":100,"compile_model_time":33}}`)
	if m := p.Totals.Latency; *m.Median != 2.5e-3 || *m.N != 100 || *p.Phases.PlanS != 0.033 {
		t.Errorf("%+v", m)
	}
}

// TestUnknown: where the time of an executed layer is unknown, so is the sum. Times have the unit
// of their column, and a decimal comma where it cannot be a thousands separator.
func TestUnknown(t *testing.T) {
	t.Parallel()
	row := func(time string) string {
		return "a  Status.EXECUTED layerType: Conv execType: x realTime (ms): " + time + " cpuTime (ms): 1.0\n" +
			"b  Status.EXECUTED layerType: If execType: x realTime (ms): 0.001000 cpuTime (ms): 0.001000\n"
	}
	const total = "Total time:     0.005101 seconds\nTotal CPU time: 0.005101 seconds\n"
	const head = "layerName;execStatus;layerType;execType;cpuTime (us);realTime (us)\n"
	for name, c := range map[string]struct {
		text    string
		want    float64 // seconds, 0 for absent
		a       float64 // of the first layer
		partial bool
	}{
		"comma":           {row("5,100000") + total, 5.101e-3, 5.1e-3, false},
		"ambiguous":       {row("5,100") + total, 5.101e-3, 0, true},
		"nan, a total":    {row("nan") + total, 5.101e-3, 0, true},
		"nan, no total":   {row("nan"), 0, 0, true},
		"microseconds":    {head + "a;EXECUTED;Conv;jit;100;1500\nb;NOT_RUN;Conv;jit;0;0\n", 1.5e-3, 1.5e-3, false},
		"NaN in the CSV":  {head + "b;EXECUTED;Conv;jit;100;1500\na;EXECUTED;Conv;jit;1;NaN\n", 0, 1.5e-3, true},
		"total in CSV":    {head + "b;EXECUTED;Conv;jit;100;1500\na;EXECUTED;Conv;jit;1;NaN\nTotal;;;;1;2000\n", 2e-3, 1.5e-3, true},
		"no unit":         {strings.ReplaceAll(head, " (us)", "") + "a;EXECUTED;Conv;jit;100;1500\n", 0, 0, true},
		"comma in a cell": {strings.ReplaceAll(head, "(us)", "(ms)") + "a;EXECUTED;Conv;jit;1;1,5\nb;EXECUTED;Conv;jit;1;2.5\n", 4e-3, 1.5e-3, false},
	} {
		p := records.Read(t, openvino.Format(), []*record.File{record.Bytes("x.txt", []byte(c.text))}, record.Options{})[0]
		v, known := p.Totals.Latency.Best()
		if known != (c.want > 0) || !near(v, c.want) || !near(get(p, 0), c.a) {
			t.Errorf("%s: %g s, first layer %g s", name, v, get(p, 0))
		}
		found := slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == "record.incomplete" })
		if found != c.partial || len(p.Layers[0].Name) != 1 {
			t.Errorf("%s: %+v", name, p.Findings)
		}
	}
}

// jsonRequests is a report of requests that take milliseconds.
func jsonRequests(ms ...int) string {
	var list []string
	for _, v := range ms {
		list = append(list, fmt.Sprintf(`{"nodes":[{"name":"a","status":"EXECUTED","node_type":"Conv","exec_type":"x","real_time":%d,"cpu_time":1}],"total_real_time":%d,"total_cpu_time":1}`, v, v))
	}
	return `{"detailed_performance":[` + strings.Join(list, ",") + "]}\n"
}

// TestApart: blocks of other devices, of repeated runs and of requests in one file.
func TestApart(t *testing.T) {
	t.Parallel()
	row := func(name, exec string, us int) string {
		return fmt.Sprintf("%s  EXECUTED  layerType: Conv  realTime: %d  cpu: %d  execType: %s\n", name, us, us, exec)
	}
	block := row("a", "x", 1000) + row("b", "x", 2000)
	for name, c := range map[string]struct {
		text string
		want []float64 // seconds of each run
		runs int64     // of the first
		warn bool
	}{
		"other devices":      {"## GPU\n" + block + "\n## CPU\n" + row("a", "y", 100) + row("b", "y", 200), []float64{3e-3, 0.3e-3}, 0, false},
		"other names":        {block + "Total time: 3000 microseconds\n" + row("c", "x", 500), []float64{3e-3, 0.5e-3}, 0, false},
		"no text between":    {block + block + block, []float64{3e-3, 3e-3, 3e-3}, 0, true},
		"blank line between": {block + "\n" + block, []float64{3e-3, 3e-3}, 0, true},
		"one run, two parts": {row("a", "x", 1000) + "\n" + row("b", "x", 2000), []float64{3e-3}, 0, false},
		"requests":           {"Performance counts for 0-th infer request\n" + block + "Performance counts for 1-th infer request\n" + block, []float64{3e-3}, 2, false},
		"requests again":     {"Performance counts for 0-th infer request\n" + block + "Performance counts for 0-th infer request\n" + block, []float64{3e-3, 3e-3}, 0, true},
		"documents":          {jsonRequests(1, 2) + jsonRequests(1), []float64{1.5e-3, 1e-3}, 2, true},
		"logged, quoted":     {"> [ INFO ] " + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n> [ INFO ] "), []float64{3e-3}, 0, false},
	} {
		ps := records.Read(t, openvino.Format(), []*record.File{record.Bytes("x.txt", []byte(c.text))}, record.Options{})
		if len(ps) != len(c.want) {
			t.Errorf("%s: %d profiles, want %d", name, len(ps), len(c.want))
			continue
		}
		for i, p := range ps {
			if v, _ := p.Totals.Latency.Best(); !near(v, c.want[i]) {
				t.Errorf("%s: run %d takes %g s, want %g", name, i, v, c.want[i])
			}
			warn := slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == "record.runs" && f.Severity == profile.Warning })
			if warn != c.warn {
				t.Errorf("%s: %+v", name, p.Findings)
			}
		}
		if n := ps[0].Settings.Runs; (c.runs > 0) != (n != nil) || n != nil && *n != c.runs {
			t.Errorf("%s: %v inferences, want %d", name, n, c.runs)
		}
	}
}

// TestSorted: counters that the tool wrote a second time, sorted, are not a second run.
func TestSorted(t *testing.T) {
	t.Parallel()
	head, a, b := "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms);\n", "a;EXECUTED;Conv;jit;1;1;\n", "b;EXECUTED;Conv;jit;2;2;\n"
	file := func(name, text string) *record.File { return record.Bytes(name, []byte(text)) }
	for name, c := range map[string]struct {
		second string
		want   int
	}{"sorted": {head + b + a, 1}, "other times": {head + strings.Replace(b, ";2;", ";3;", 1) + a, 2}, "in the same order": {head + a + b, 2}} {
		ps := records.Read(t, openvino.Format(), []*record.File{file("r.csv", head+a+b), file("s.csv", c.second)}, record.Options{})
		if len(ps) != c.want || ps[0].Layers[0].Name != "a" {
			t.Errorf("%s: %d runs, want %d", name, len(ps), c.want)
		}
	}
}

// TestConsole reads the console of today's Python program, with the summary that it prints, and
// the summary alone.
func TestConsole(t *testing.T) {
	t.Parallel()
	end := "[ INFO ] Execution Devices:['CPU']\n[ INFO ] Count:            40 iterations\n[ INFO ] Duration:         70.13 ms\n[ INFO ] Latency:\n" +
		"[ INFO ]    Median:        1.38 ms\n[ INFO ]    Average:       1.58 ms\n[ INFO ]    Min:           1.04 ms\n[ INFO ]    Max:           3.25 ms\n[ INFO ] Throughput:   570.38 FPS\n"
	text := "[Step 4/11] Reading model files\n[ INFO ] Read model took 34.79 ms\n[ INFO ] Compile model took 115.97 ms\n[Step 11/11] Dumping statistics report\n" +
		"Performance counters for 0-th infer request:\n" +
		"conv1   Status.EXECUTED layerType: Convolution          execType: jit_avx2_f32     realTime (ms): 5.100000 cpuTime (ms): 4.100000\n" +
		"if_1    Status.EXECUTED layerType: If   execType: unknown_f32      realTime (ms): 0.001000 cpuTime (ms): 0.001000\n" +
		"relu1   Status.OPTIMIZED_OUT layerType: ReLU            execType: unknown_f32      realTime (ms): 0.000000 cpuTime (ms): 0.000000\n" +
		"Total time:     5.101 milliseconds\nTotal CPU time: 4.101 milliseconds\n\n"
	for _, text := range []string{text + end, end} {
		ps := records.Read(t, openvino.Format(), []*record.File{record.Bytes("x.log", []byte(text))}, record.Options{})
		if len(ps) != 1 {
			t.Fatalf("%d profiles", len(ps))
		}
		p := ps[0]
		if m := p.Totals.Latency; !near(*m.Median, 1.38e-3) || !near(*m.Mean, 1.58e-3) || !near(*m.Min, 1.04e-3) || !near(*m.Max, 3.25e-3) || *m.N != 40 {
			t.Errorf("%+v", m)
		}
		if v, _ := p.Totals.Value("inferences_per_s"); v != 570.38 {
			t.Errorf("%g inferences/s", v)
		}
		if len(text) == len(end) {
			continue
		}
		if !near(*p.Phases.LoadS, 34.79e-3) || !near(*p.Phases.PlanS, 115.97e-3) || len(p.Layers) != 3 {
			t.Fatalf("%+v, %d layers", p.Phases, len(p.Layers))
		}
		cpu, _ := p.Layers[0].Value("cpu_time_s")
		if l := p.Layers[0]; !near(get(p, 0), 5.1e-3) || !near(cpu, 4.1e-3) || l.Op != "Convolution" || l.Kernel != "jit_avx2_f32" || p.Layers[2].State != profile.Folded {
			t.Errorf("%+v", p.Layers)
		}
	}
}

func FuzzOpenVINO(f *testing.F) {
	f.Add([]byte("layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms); %;\na;EXECUTED;Conv;jit;1;2;3;\nTotal;;;;1;2;100;\n\n"))
	f.Add([]byte("Performance counters for 0-th infer request:\na  Status.EXECUTED layerType: Conv execType: x realTime (ms): 5.1 cpuTime (ms): 5.1\nTotal time: 5.1 milliseconds\n[ INFO ] Count:   40 iterations\n[ INFO ]    Median:        1.38 ms\nThroughput:   570.38 FPS\n"))
	f.Add([]byte("a  Status.EXECUTEDlayerType: Conv  realTime: 0:00:01.5cpu: 0:00:00  execType: undef\n"))
	f.Add([]byte(`{"detailed_performance":[{"nodes":[{"name":"a","status":"EXECUTED","node_type":"Conv","exec_type":"x","real_time":1,"cpu_time":1}],"total_real_time":1}]}`))
	f.Add([]byte("Command line parameters\nm;a.xml;\n\nExecution results\nlatency (ms);1.5;\n\nGroup Latencies\nData shape;Median;Average;Min;Max\n[1];1;2;0;3\n"))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, openvino.Format(), "a.csv", b) })
}
