package benchtext_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/benchtext"
	"github.com/opmeter/opmeter/internal/report/gobench"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

func format(t testing.TB, name string) *record.Format {
	t.Helper()
	for _, f := range benchtext.Formats() {
		if f.Name == name {
			return f
		}
	}
	t.Fatal(name)
	return nil
}

// scales of ten and the order of additions
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(1, math.Abs(a)) }

func stats(t *testing.T, name string) string {
	t.Helper()
	return material.Path(t, "raw", "traces", "stats", name)
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(stats(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGoBench(t *testing.T) {
	t.Parallel()
	sum, n := map[string]float64{}, map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^Benchmark(\w+)-2\s+\d+\s+(\d+) ns/op`).FindAllStringSubmatch(text(t, "go_bench_10x.txt"), -1) {
		v, _ := strconv.ParseFloat(m[2], 64)
		sum[m[1]] += v
		n[m[1]]++
	}
	p := records.Read(t, format(t, "go-bench"), records.Files(t, stats(t, "go_bench_10x.txt")), record.Options{})[0]
	if len(p.Layers) != len(sum) || *p.Settings.Threads != 2 || p.Host.CPUModel != "Intel(R) Xeon(R) Processor" {
		t.Fatalf("%+v", p.Layers)
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		if !near(*l.Latency.Mean, sum[l.Name]/n[l.Name]/1e9) || len(l.Samples) != 10 {
			t.Errorf("%s: %+v, want mean of %g", l.Name, l.Latency, sum[l.Name]/n[l.Name])
		}
	}
	two := records.Read(t, format(t, "go-bench"), []*record.File{record.Bytes("x", []byte("pkg: a\nBenchmarkX-4 10 5 ns/op 16 B/op 2 allocs/op 3.5 my-unit\nBenchmarkBad-4 10 5 ns/op 16\nPASS\npkg: b\nBenchmarkX-4 10 7 ns/op 100 MB/s\n"))}, record.Options{})
	if len(two) != 2 || two[0].Model.Name != "a" || two[1].Model.Name != "b" || len(two[0].Incomplete) == 0 {
		t.Fatalf("%+v", two)
	}
	for key, want := range map[string]float64{"allocated_bytes": 16, "allocations": 2, "my_unit": 3.5, "latency_s": 5e-9} {
		if v, _ := two[0].Layers[0].Value(key); !near(v, want) {
			t.Errorf("%s is %g, want %g", key, v, want)
		}
	}
}

// TestRoundTrip reads what opmeter writes as Go benchmarks: each layer with its median
// time, its work and its figures.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	p := sample.Large(12, 100, 0)
	p.Settings.Threads = new(int64(3))
	p.Layers[3].Energy = profile.Value(profile.Estimated, 2e-6, "")
	var b bytes.Buffer
	if err := gobench.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	got := records.Read(t, format(t, "go-bench"), []*record.File{record.Bytes("x.txt", b.Bytes())}, record.Options{})[0]
	if *got.Settings.Threads != 3 || got.Model.Name != p.Model.Name || len(got.Layers) != len(p.Layers) {
		t.Fatalf("%d layers of %d", len(got.Layers), len(p.Layers))
	}
	for i := range p.Layers {
		want, l := &p.Layers[i], &got.Layers[i]
		median, _ := want.Latency.Best()
		read, _ := l.Latency.Best()
		// Times are written to the picosecond.
		if math.Abs(read-median) > 1e-12 || *l.MACs != *want.MACs || l.Name != gobench.Name(want.Name) {
			t.Errorf("layer %d: %g s and %d MACs, want %g and %d (%s)", i, read, *l.MACs, median, *want.MACs, l.Name)
		}
	}
	if v, _ := got.Layers[3].Energy.Best(); v != 2e-6 {
		t.Errorf("energy %g", v)
	}
}

func TestHyperfine(t *testing.T) {
	t.Parallel()
	var doc struct {
		Results []struct {
			Command                                      string
			Mean, Median, Stddev, User, System, Min, Max float64
			Times                                        []float64
		}
	}
	if err := json.Unmarshal([]byte(text(t, "hyperfine_1.15_two_commands.json")), &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hyperfine_1.15_two_commands.json", "hyperfine_1.15_two_commands.csv"} {
		ps := records.Read(t, format(t, "hyperfine"), records.Files(t, stats(t, name)), record.Options{})
		if len(ps) != len(doc.Results) {
			t.Fatalf("%d runs", len(ps))
		}
		for i, r := range doc.Results {
			m := ps[i].Totals.Latency
			cpu, _ := ps[i].Totals.Value("processor_s")
			if *m.Mean != r.Mean || *m.Median != r.Median || *m.StdDev != r.Stddev || *m.Min != r.Min || *m.Max != r.Max || cpu != r.User+r.System || ps[i].Model.Name != r.Command {
				t.Errorf("%s: %+v, want %+v", name, m, r)
			}
			if strings.HasSuffix(name, "json") && (len(ps[i].Totals.LatencySamples) != len(r.Times) || *m.N != int64(len(r.Times))) {
				t.Errorf("%d samples", len(ps[i].Totals.LatencySamples))
			}
		}
	}
	p := records.Read(t, format(t, "hyperfine"), []*record.File{record.Bytes("x.json", []byte(`{"results":[{"command":"a","mean":1,"times":[1,1],"exit_codes":[0,3],"memory_usage_byte":[10,20],"parameters":{"n":"4"}}]}`))}, record.Options{})[0]
	if *p.Memory.ProcessPeakBytes != 20 || p.Findings[0].ID != "hyperfine.exit" {
		t.Errorf("%+v", p.Findings)
	}
}

// TestHyperfineUnknown: the shortest time is not the latency, and negative times are none.
func TestHyperfineUnknown(t *testing.T) {
	t.Parallel()
	text := "command,mean,stddev,median,user,system,min,max\na,nan,0,1e400,0,0,0.1,0.2\nb,-1,0,-1,0,0,0.3,0.4\n"
	ps := records.Read(t, format(t, "hyperfine"), []*record.File{record.Bytes("x.csv", []byte(text))}, record.Options{})
	if len(ps) != 2 {
		t.Fatalf("%d runs", len(ps))
	}
	for i, want := range [][2]float64{{0.1, 0.2}, {0.3, 0.4}} {
		least, _ := ps[i].Totals.Value("latency_min_s")
		most, _ := ps[i].Totals.Value("latency_max_s")
		if ps[i].Totals.Latency != nil || least != want[0] || most != want[1] || len(ps[i].Incomplete) == 0 {
			t.Errorf("%+v, %g to %g, lost %+v", ps[i].Totals.Latency, least, most, ps[i].Incomplete)
		}
	}
}

// TestNCNN adds up every row of the tables.
func TestNCNN(t *testing.T) {
	t.Parallel()
	sum, n := 0.0, 0
	for _, m := range regexp.MustCompile(`(?m)^\s*\S+\s+min =\s*[\d.]+\s+max =\s*[\d.]+\s+avg =\s*([\d.]+)\s*$`).FindAllStringSubmatch(text(t, "ncnn_benchmark_tables.md"), -1) {
		v, _ := strconv.ParseFloat(m[1], 64)
		sum += v / 1e3
		n++
	}
	ps := records.Read(t, format(t, "ncnn"), records.Files(t, stats(t, "ncnn_benchmark_tables.md")), record.Options{})
	got, layers := 0.0, 0
	for _, p := range ps {
		if len(p.Layers) == 0 {
			layers++
			got += *p.Totals.Latency.Mean
		}
		for i := range p.Layers {
			layers++
			got += *p.Layers[i].Latency.Mean
		}
	}
	if layers != n || n != 8554 || math.Abs(got-sum) > 1e-9*sum || len(ps) < 200 {
		t.Errorf("%d rows, %g s in %d runs, want %d and %g", layers, got, len(ps), n, sum)
	}
	if p := ps[1]; *p.Settings.Threads != 2 || *p.Settings.Runs != 64 || !strings.HasPrefix(p.Target.Description, "NVIDIA Jetson AGX Orin") || len(p.Layers) != 33 {
		t.Errorf("%+v", p.Settings)
	}
	p := records.Read(t, format(t, "ncnn"), []*record.File{record.Bytes("x", []byte("loop_count = 4\nnum_threads = 1\n  mine  min =    1.50  max =    2.50  avg =    2.00\n"))}, record.Options{})[0]
	if v, _ := p.Totals.Latency.Best(); p.Model.Name != "mine" || v != 2e-3 || len(p.Layers) != 0 {
		t.Errorf("one network: %+v", p.Totals)
	}
}

func TestMNN(t *testing.T) {
	t.Parallel()
	log := "Sort by node name !\nNode Name \tOp Type \tAvg(ms) \t% \tFlops Rate \t\nconv1 \tConvolution \t1.500000 \t75.000000 \t90.000000 \t\npool \tPooling \t0.500000 \t25.000000 \t10.000000 \t\n" +
		"Sort by time cost !\nNode Type \tAvg(ms) \t% \tCalled times \tFlops Rate \t\nPooling \t0.500000 \t25.000000 \t1.000000 \t10.000000 \t\nConvolution \t1.500000 \t75.000000 \t1.000000 \t90.000000 \t\ntotal time : 2.000000 ms, total mflops : 3.500000 \n"
	p := records.Read(t, format(t, "mnn"), []*record.File{record.Bytes("x", []byte(log))}, record.Options{})[0]
	if len(p.Layers) != 2 || p.Layers[0].Name != "conv1" || p.Layers[0].Op != "Convolution" || *p.Layers[0].Latency.Mean != 1.5e-3 {
		t.Errorf("%+v", p.Layers)
	}
	if v, _ := p.Totals.Value("recorded_flops"); v != 3.5e6 || *p.Totals.Latency.Mean != 2e-3 {
		t.Errorf("%g", v)
	}
	cut := strings.Replace(log, "conv1 \tConvolution \t1.500000 \t75.000000 \t90.000000 \t\n", "conv1 \tConvolution \t1.500000 \n", 1)
	if p = records.Read(t, format(t, "mnn"), []*record.File{record.Bytes("x", []byte(cut))}, record.Options{})[0]; len(p.Layers) != 1 || len(p.Incomplete) != 1 || *p.Incomplete[0].Want != 1 {
		t.Errorf("a row that is cut: %+v %+v", p.Layers, p.Incomplete)
	}
	_, types, _ := strings.Cut(log, "Sort by time cost !\n")
	if p = records.Read(t, format(t, "mnn"), []*record.File{record.Bytes("x", []byte(types))}, record.Options{})[0]; len(p.Layers) != 2 || p.Layers[1].Op != "Convolution" {
		t.Errorf("%+v", p.Layers)
	}
}

// TestMNNBenchmark reads networks that benchmark.out times, with two settings in one log.
func TestMNNBenchmark(t *testing.T) {
	t.Parallel()
	one := func(threads int, avg float64) string {
		return fmt.Sprintf("MNN benchmark\nForward type: **CPU** thread=%d** precision=2** sparsity=0** sparseBlockOC=1\n--------> Benchmarking... loop = 50, warmup = 10\n[ - ] squeezenetv1.1.mnn          max =    7.250 ms  min =    6.500 ms  avg = %8.3f ms\n[ - ] ./models/resnet-v2-50.mnn    max =   95.000 ms  min =   84.000 ms  avg =   88.000 ms\n", threads, avg)
	}
	ps := records.Read(t, format(t, "mnn"), []*record.File{record.Bytes("x", []byte(one(1, 6.75)+one(4, 6.625)))}, record.Options{})
	if len(ps) != 2 || len(ps[0].Layers) != 2 || *ps[0].Settings.Threads != 1 || *ps[1].Settings.Threads != 4 || *ps[0].Settings.Runs != 50 {
		t.Fatalf("%d profiles", len(ps))
	}
	if m, l := ps[1].Layers[0].Latency, ps[1].Layers[1]; *m.Mean != 6.625e-3 || *m.Min != 6.5e-3 || *m.Max != 7.25e-3 || l.Name != "resnet-v2-50" || ps[0].Target.Description != "CPU" {
		t.Errorf("%+v, %+v", m, l)
	}
	// Networks that come again are another call, also without settings.
	_, rows, _ := strings.Cut(one(1, 6.75), "warmup = 10\n")
	if ps = records.Read(t, format(t, "mnn"), []*record.File{record.Bytes("x", []byte(rows+rows))}, record.Options{}); len(ps) != 2 || len(ps[1].Layers) != 2 {
		t.Errorf("%d profiles", len(ps))
	}
	ncnn := "  a  min =    1.50  max =    2.50  avg =    2.00\n  b  min =    1.50  max =    2.50  avg =    2.00\n"
	if ps = records.Read(t, format(t, "ncnn"), []*record.File{record.Bytes("x", []byte(ncnn+ncnn))}, record.Options{}); len(ps) != 2 || len(ps[1].Layers) != 2 {
		t.Errorf("%d profiles of two calls of benchncnn", len(ps))
	}
}

func TestNeuron(t *testing.T) {
	t.Parallel()
	log := "Runtime Status (LEVEL 1) - Summary\nTotal Execution Time: 200.0 ms over 100 times inference.\nTime,Ratio,ExeTimes,Time/Inf.,Description\n200.0,100,100,2.0,Inference\n\n" +
		"Runtime Status (LEVEL 2) - Summary\nTotal Execution Time: 190.0 ms over 100 times inference.\nTime,Ratio,ExeTimes,Time/Inf.,Description\n150.0,79,100,1.5,Execute on APU\n40.0,21,100,0.4,Copy\n"
	p := records.Read(t, format(t, "neuron-runtime"), []*record.File{record.Bytes("x", []byte(log))}, record.Options{})[0]
	if len(p.Layers) != 2 || *p.Layers[0].Latency.Mean != 1.5e-3 || *p.Totals.Latency.Mean != 2e-3 || *p.Settings.Runs != 100 {
		t.Errorf("%+v", p.Layers)
	}
	if v, _ := p.Totals.Value("level_1_inference_s"); v != 2e-3 {
		t.Errorf("%g", v)
	}
}

// TestGoPrefixed reads a benchmark's text in the log of a job.
func TestGoPrefixed(t *testing.T) {
	t.Parallel()
	log := "2024-01-02T03:04:05.123Z pkg: a\n2024-01-02T03:04:05.123Z BenchmarkX-4   \t 10\t 5 ns/op\n2024-01-02T03:04:05.123Z BenchmarkX-4   \t 10\t 7 ns/op\n"
	p := records.Read(t, format(t, "go-bench"), []*record.File{record.Bytes("x", []byte(log))}, record.Options{})[0]
	if v, _ := p.Layers[0].Latency.Best(); len(p.Layers) != 1 || v != 6e-9 {
		t.Errorf("%g s", v)
	}
}

func FuzzBenchText(f *testing.F) {
	f.Add([]byte("pkg: a\nBenchmarkX-4 10 5 ns/op 16 B/op 3 MACs/s\nBenchmarkModel/layer=0:a 1 2 ns/op 5 MACs/s\n"))
	f.Add([]byte(`{"results":[{"command":"a","mean":1,"times":[1,2],"exit_codes":[0]}]}`))
	f.Add([]byte("command,mean,stddev,median,user,system,min,max\na,1,2,3,4,5,6,7\n"))
	f.Add([]byte("### x\nloop_count = 4\n a  min =    1.50  max =    2.50  avg =    2.00\n b  min =    1.50  max =    2.50  avg =    2.00\n"))
	f.Add([]byte("Node Name \tOp Type \tAvg(ms) \t% \tFlops Rate \t\nc \tC \t1.5 \t75 \t9 \t\ntotal time : 2 ms, total mflops : 3 \n"))
	f.Add([]byte("A (LEVEL 2) - Summary\nTotal Execution Time: 190.0 ms over 100 times inference.\nTime,Ratio,ExeTimes,Time/Inf.,Description\n1,2,3,4,x\n"))
	f.Add([]byte("Forward type: **CPU** thread=4** precision=2\n[ - ] a.mnn    max =    7.250 ms  min =    6.500 ms  avg =    6.750 ms\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, x := range benchtext.Formats() {
			records.Fuzz(t, x, "a.txt", b)
		}
	})
}
