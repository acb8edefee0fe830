package deepsparse_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/deepsparse"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12 } // a division by 1000

func TestFiles(t *testing.T) {
	t.Parallel()
	p := records.Read(t, deepsparse.Format(), records.Files(t, material.Path(t, "raw", "traces", "deepsparse", "benchmark_yolov5_2core_from_issue_1193.json")), record.Options{})[0]
	m := p.Totals.Latency
	if !near(*m.Median, .26941132550018665) || !near(*m.Mean, .2679830554084727) || *m.N != 448 || !near(*m.P99, .2775078529293151) || *p.Settings.Threads != 2 || *p.Settings.Batch != 1 {
		t.Errorf("%+v", m)
	}
	for key, want := range map[string]float64{"items_per_s": 7.4622653287999965, "latency_p99_9_s": .2875190300730301, "latency_p25_0_s": .2653186567499688, "benchmark_num_streams": 2, "benchmark_fraction_of_supported_ops": 1, "benchmark_s": 60.03538875399954} {
		if v, _ := p.Totals.Value(key); !near(v, want) {
			t.Errorf("%s is %g, want %g", key, v, want)
		}
	}
	p = records.Read(t, deepsparse.Format(), records.Files(t, material.Path(t, "raw", "traces", "deepsparse", "synthetic_analyze.json")), record.Options{})[0]
	if len(p.Layers) != 3 || *p.Layers[2].Parent != 1 || len(p.Totals.LatencySamples) != 3 {
		t.Fatalf("%+v", p.Layers)
	}
	// 0.246 and 1.134 ms, of the latter 1.1 inside.
	for i, want := range []float64{.246e-3, .034e-3, 1.1e-3} {
		if v, _ := p.Layers[i].Latency.Best(); !near(v, want) {
			t.Errorf("layer %d takes %g, want %g", i, v, want)
		}
	}
	l := &p.Layers[2]
	if v, _ := l.Value("sparsity_activations"); v != .42 || fmt.Sprint(l.Outputs[0].Shape) != "[1 32 32 32]" || l.Option("kernel_dims") != "n=32 c=16 h=3 w=3" {
		t.Errorf("%+v", l)
	}
	if v, _ := l.Value("recorded_ops_per_s"); v != 2e10 {
		t.Errorf("rate %g", v)
	}
}

// TestCSV: columns in any order, maps as columns.
func TestCSV(t *testing.T) {
	t.Parallel()
	text := "kernel_dims_w,average_run_time_in_ms,canonical_name,output_dims_h,output_dims_n,output_dims_c,output_dims_w,name,kernel_dims_h,activation_sparsity,note\n" +
		"5,0.5,Conv_1,7,1,64,9,conv,3,0.25,x\n,0.25,\"a,b\",,,,,pool,,,\n"
	p := records.Read(t, deepsparse.Format(), []*record.File{record.Bytes("l.csv", []byte(text))}, record.Options{})[0]
	if len(p.Layers) != 2 || fmt.Sprint(p.Layers[0].Outputs[0].Shape) != "[1 64 7 9]" || p.Layers[0].Option("kernel_dims") != "h=3 w=5" || p.Layers[1].Name != "a,b" || p.Layers[0].Option("note") != "x" {
		t.Errorf("%+v", p.Layers)
	}
	if v, _ := p.Totals.Latency.Best(); !near(v, .75e-3) {
		t.Errorf("sum %g", v)
	}
}

// TestConsole reads what the tool prints, of one run and of a batch job.
func TestConsole(t *testing.T) {
	t.Parallel()
	one := func(batch int, mean float64) string {
		return fmt.Sprintf("2022-09-01 12:00:00 deepsparse.benchmark.benchmark_model INFO     Starting 'sync' performance measurements for 10 seconds\n"+
			"Original Model Path: zoo:cv/classification/resnet/base\nBatch Size: %d\nScenario: sync\nThroughput (items/sec): 55.1905\nLatency Mean (ms/batch): %g\nLatency Median (ms/batch): 18.5\nLatency Std (ms/batch): 0.25\nIterations: 552\n", batch, mean)
	}
	text := one(1, 18.1) + one(64, 1159.5)
	for _, text := range []string{text, ">> " + strings.ReplaceAll(text, "\n", "\n>> ")} {
		ps := records.Read(t, deepsparse.Format(), []*record.File{record.Bytes("x.log", []byte(text))}, record.Options{})
		if len(ps) != 2 {
			t.Fatalf("%d profiles", len(ps))
		}
		m := ps[1].Totals.Latency
		if *m.Mean != 1.1595 || *m.Median != 18.5e-3 || *m.StdDev != 0.25e-3 || *m.N != 552 || *ps[1].Settings.Batch != 64 || *ps[0].Settings.Batch != 1 || !strings.HasPrefix(ps[0].Model.Name, "base") {
			t.Errorf("%+v, %s", m, ps[0].Model.Name)
		}
		if v, _ := ps[0].Totals.Value("items_per_s"); v != 55.1905 {
			t.Errorf("%g items/s", v)
		}
	}
	report := func(mean float64) string {
		return fmt.Sprintf(`{"orig_model_path":"a.onnx","benchmark_result":{"items_per_sec":5,"mean":%g}}`+"\n", mean)
	}
	if ps := records.Read(t, deepsparse.Format(), []*record.File{record.Bytes("x.json", []byte(report(10)+report(30)))}, record.Options{}); len(ps) != 2 || *ps[1].Totals.Latency.Mean != 30e-3 {
		t.Errorf("%d profiles of two reports", len(ps))
	}
	p := records.Read(t, deepsparse.Format(), []*record.File{record.Bytes("x.json", []byte(`{"benchmark_result":{"items_per_sec":NaN,"mean":5,"std":1e400,"median":Infinity}}`))}, record.Options{})[0]
	if *p.Totals.Latency.Mean != 5e-3 || p.Totals.Latency.StdDev != nil || len(p.Incomplete) != 1 || *p.Incomplete[0].Want != 3 {
		t.Errorf("%+v %+v", p.Totals.Latency, p.Incomplete)
	}
	table := "canonical_name,name,average_run_time_in_ms\na,conv,1.5\n"
	if ps := records.Read(t, deepsparse.Format(), []*record.File{record.Bytes("x.csv", []byte(table+table))}, record.Options{}); len(ps) != 2 || len(ps[1].Layers) != 1 {
		t.Errorf("%d profiles of two tables", len(ps))
	}
}

func FuzzDeepSparse(f *testing.F) {
	f.Add([]byte("Original Model Path: a\nBatch Size: 4\nThroughput (items/sec): 5.5\nLatency Mean (ms/batch): 1.5\nIterations: 3\n"))
	f.Add([]byte(`{"layer_info":[{"name":"a","canonical_name":"b","average_run_time_in_ms":1,"output_dims":{"n":1},"sub_layer_info":[{"name":"c","average_run_time_in_ms":0.5}]}],"average_total_time":1,"iteration_times":[1,2]}`))
	f.Add([]byte(`{"benchmark_result":{"items_per_sec":1,"median":2,"iterations":3,"99.9%":4},"engine":"x"}`))
	f.Add([]byte("canonical_name,average_run_time_in_ms,kernel_dims_h\na,1,2\n"))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, deepsparse.Format(), "a.json", b) })
}
