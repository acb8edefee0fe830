package tensorrt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tensorrt"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

func read(t *testing.T, name, text string) []*profile.Profile {
	t.Helper()
	return records.Read(t, tensorrt.Format(), []*record.File{record.Bytes(name, []byte(text))}, record.Options{})
}

func best(p *profile.Profile, key string) float64 { v, _ := p.Totals.Value(key); return v }

// TestDocuments: lists of times and profiles of several batches in one file.
func TestDocuments(t *testing.T) {
	t.Parallel()
	times := func(ms float64, n int) string {
		var rows []string
		for i := range n {
			rows = append(rows, fmt.Sprintf(`{"startComputeMs":%g,"endComputeMs":%g,"computeMs":%g,"latencyMs":%g}`, float64(i)*ms, float64(i+1)*ms, ms, ms))
		}
		return "[" + strings.Join(rows, ",") + "]\n"
	}
	profiled := func(ms float64) string {
		return fmt.Sprintf(`[{"count":5},{"name":"a","timeMs":%g,"averageMs":%g,"percentage":100}]`+"\n", 5*ms, ms)
	}
	ps := read(t, "n.json", times(3, 20)+times(20, 10))
	if len(ps) != 2 || !near(best(ps[0], "latency_s"), 3e-3) || !near(best(ps[1], "latency_s"), 20e-3) || *ps[1].Totals.Latency.N != 10 || *ps[0].Totals.Latency.Max != *ps[0].Totals.Latency.Min {
		t.Fatalf("%d profiles: %+v", len(ps), ps[0].Totals.Latency)
	}
	if ps[0].Model.Name == ps[1].Model.Name {
		t.Errorf("both are called %s", ps[0].Model.Name)
	}
	// As many profiles of layers as lists of times: they are joined in their order.
	ps = read(t, "n.json", profiled(2)+profiled(18)+times(3, 20)+times(20, 10))
	if len(ps) != 2 || !near(best(ps[1], "latency_s"), 20e-3) || !near(*ps[1].Layers[0].Latency.Mean, 18e-3) || ps[1].Timeline == nil {
		t.Fatalf("%d profiles", len(ps))
	}
	// With other numbers nothing is joined, and this is said.
	ps = read(t, "n.json", profiled(2)+profiled(18)+times(3, 20))
	if len(ps) != 3 || ps[0].Totals.Latency != nil && ps[0].Totals.Latency.N != nil && *ps[0].Totals.Latency.N == 20 || !near(best(ps[2], "latency_s"), 3e-3) || !records.Found(ps[0], "tensorrt.documents") {
		t.Fatalf("%d profiles: %+v", len(ps), ps[0].Findings)
	}
	// Descriptions of several engines do not become layers of all runs.
	info := func(name string) string { return `{"Layers":[{"Name":"` + name + `","LayerType":"T"}]}` }
	ps = read(t, "n.json", profiled(2)+profiled(18)+info("a")+info("b"))
	if len(ps) != 2 || len(ps[0].Layers) != 1 || len(ps[1].Layers) != 2 || ps[0].Layers[0].Op != "T" {
		t.Fatalf("%d profiles: %+v", len(ps), ps[0].Layers)
	}
}

// newSummary is the end of trtexec's output since release 8.
func newSummary(median float64) string {
	return fmt.Sprintf("[05/08/2024-14:05:14] [I] === Performance summary ===\n"+
		"[05/08/2024-14:05:14] [I] Throughput: 690.1 qps\n"+
		"[05/08/2024-14:05:14] [I] Latency: min = 1.40 ms, max = 90.10 ms, mean = 1.60 ms, median = %g ms, percentile(90%%) = 81.70 ms, percentile(95%%) = 81.75 ms, percentile(99%%) = 81.90 ms\n"+
		"[05/08/2024-14:05:14] [I] H2D Latency: min = 0.01 ms, max = 0.03 ms, mean = 0.02 ms, median = 0.02 ms, percentile(99%%) = 0.03 ms\n"+
		"[05/08/2024-14:05:14] [I] Total Host Walltime: 3.5 s\n[05/08/2024-14:05:14] [I] \n", median)
}

const newProfile = "[05/08/2024-14:05:14] [I] === Profile (2000 iterations ) ===\n" +
	"[05/08/2024-14:05:14] [I]    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer\n" +
	"[05/08/2024-14:05:14] [I]       20.00       0.0100       0.0095       0.6   Reformatting CopyNode for Input Tensor 0 to conv1 + bn1\n" +
	"[05/08/2024-14:05:14] [I]     1000.00       0.5000       0.4990      31.2   conv1 + bn1\n" +
	"[05/08/2024-14:05:14] [I]     1020.00       0.5100       0.5085     100.0   Total\n[05/08/2024-14:05:14] [I] \n"

// TestConsole reads the console of two generations, and several runs of a batch job.
func TestConsole(t *testing.T) {
	t.Parallel()
	ps := read(t, "x.txt", newSummary(1.58)+newProfile)
	p := ps[0]
	m := p.Totals.Latency
	if len(ps) != 1 || !near(*m.Median, 1.58e-3) || !near(*m.P90, 81.7e-3) || !near(*m.P99, 81.9e-3) || !near(*m.Min, 1.4e-3) || best(p, "inferences_per_s") != 690.1 || !near(best(p, "summary_h2d_latency_s"), 0.02e-3) {
		t.Fatalf("%d: %+v", len(ps), m)
	}
	if l := p.Layers; len(l) != 2 || !near(*l[1].Latency.Median, 0.499e-3) || !near(*l[1].Latency.Mean, 0.5e-3) || l[1].Name != "conv1 + bn1" || l[0].Op != "Reformat" || *p.Settings.Runs != 2000 || len(p.Incomplete) > 0 {
		t.Fatalf("%+v", l)
	}
	options := func(batch int) string {
		return fmt.Sprintf("&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=a.onnx --batch=%d\n[I] === Model Options ===\n[I] Model: dir/a.onnx\n[I] === Inference Options ===\n[I] Batch: %d\n[I] === Device Information ===\n[I] Selected Device: Orin\n", batch, batch)
	}
	ps = read(t, "x.txt", options(1)+newSummary(1.5)+newProfile+options(8)+newSummary(9.5)+newProfile)
	if len(ps) != 2 || *ps[0].Settings.Batch != 1 || *ps[1].Settings.Batch != 8 || !near(*ps[1].Totals.Latency.Median, 9.5e-3) || len(ps[1].Layers) != 2 || ps[1].Target.Description != "Orin" {
		t.Fatalf("%d profiles: %+v", len(ps), ps[0].Settings)
	}
	// Summaries without commands.
	if ps = read(t, "x.txt", newSummary(1.5)+newSummary(9.5)+newSummary(20)); len(ps) != 3 || !near(*ps[2].Totals.Latency.Median, 20e-3) {
		t.Fatalf("%d profiles", len(ps))
	}
	old := "[I] Average on 10 runs - GPU latency: 1.5 ms - Host latency: 1.6 ms (end to end 2.7 ms, enqueue 0.9 ms)\n[I] Host Latency\n[I] min: 1.64058 ms (end to end 1.66368 ms)\n[I] max: 6.2915 ms (end to end 7.65552 ms)\n[I] mean: 1.66069 ms (end to end 3.00909 ms)\n[I] median: 1.65601 ms (end to end 3.01636 ms)\n[I] percentile: 1.67065 ms at 99% (end to end 3.03931 ms at 99%)\n[I] throughput: 0 qps\n[I] walltime: 3.00461 s\n[I] Enqueue Time\n[I] min: 0.5 ms\n[I] max: 1.5 ms\n[I] median: 0.9 ms\n[I] GPU Compute\n[I] min: 1.5 ms\n[I] max: 6 ms\n[I] mean: 1.55 ms\n" +
		"[I] === Profile (63 iterations ) ===\n[I]                 Layer   Time (ms)   Avg. Time (ms)   Time %\n[I]     Conv_0 + Relu_1       12.6           0.20     40.0\n[I]              fc 1          18.9           0.30     60.0\n[I]               Total       31.5           0.50    100.0\n"
	ps = read(t, "x.txt", old+strings.ReplaceAll(old, "median: 1.65601", "median: 2.5"))
	if len(ps) != 2 || !near(*ps[0].Totals.Latency.Median, 1.65601e-3) || !near(*ps[1].Totals.Latency.Median, 2.5e-3) || !near(*ps[0].Totals.Latency.P99, 1.67065e-3) {
		t.Fatalf("%d profiles: %+v", len(ps), ps[0].Totals.Latency)
	}
	if _, ok := ps[0].Totals.Value("inferences_per_s"); ok {
		t.Error("an unknown throughput of 0 was kept")
	}
	if l := ps[0].Layers; len(l) != 2 || l[1].Name != "fc 1" || !near(*l[1].Latency.Mean, 0.3e-3) || !near(best(ps[0], "summary_gpu_compute_s"), 1.55e-3) {
		t.Fatalf("%+v", l)
	}
	if p := read(t, "x.txt", "[I] Average on 10 runs - GPU latency: 1 ms - Host latency: 2 ms (end to end 2 ms)\n[I] Average on 30 runs - GPU latency: 1 ms - Host latency: 4 ms (end to end 2 ms)\n")[0]; !near(*p.Totals.Latency.Mean, 3.5e-3) || *p.Totals.Latency.N != 40 {
		t.Errorf("%+v", p.Totals.Latency)
	}
}
