package llmbench_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/llmbench"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

const (
	llamaJSON = `[
  {
    "build_commit": "8cf427ff", "build_number": 5163, "cpu_info": "Test CPU", "gpu_info": "", "backends": "CPU",
    "model_filename": "models/tiny.gguf", "model_type": "llama 1B Q4_0", "model_size": 636000000, "model_n_params": 1100000000,
    "n_batch": 2048, "n_ubatch": 512, "n_threads": 4, "type_k": "f16", "type_v": "f16", "n_gpu_layers": 0, "flash_attn": false,
    "n_prompt": 512, "n_gen": 0, "n_depth": 0, "test_time": "2026-05-01T10:00:00Z",
    "avg_ns": 4000000000, "stddev_ns": 100000000, "avg_ts": 128.053333, "stddev_ts": 3.202333,
    "samples_ns": [ 3900000000, 4000000000, 4100000000 ],
    "samples_ts": [ 131.282, 128.0, 124.878 ]
  },
  {
    "backends": "CPU", "model_filename": "models/tiny.gguf", "model_type": "llama 1B Q4_0", "n_threads": 4, "n_prompt": 0, "n_gen": 128, "n_depth": 1024,
    "avg_ns": 6400000000, "stddev_ns": 64000000, "avg_ts": 20.0, "stddev_ts": 0.2, "samples_ns": [ 6400000000 ], "samples_ts": [ 20.0 ]
  }
]
`
	llamaJSONL = `{"backends": "CPU", "model_type": "llama 1B Q4_0", "n_threads": 4, "n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ns": 4000000000, "stddev_ns": 0, "avg_ts": 128.0, "stddev_ts": 0.5, "samples_ns": [4000000000],"samples_ts": [128.0]}
{"backends": "CPU", "model_type": "llama 1B Q4_0", "n_threads": 4, "n_prompt": 0, "n_gen": 128, "n_depth": 0, "avg_ns": 6400000000, "stddev_ns": 0, "avg_ts": 20.0, "stddev_ts": 0.25, "samples_ns": [6400000000],"samples_ts": [20.0]}
`
	llamaCSV = `build_commit,build_number,cpu_info,gpu_info,backends,model_filename,model_type,model_size,model_n_params,n_batch,n_ubatch,n_threads,n_prompt,n_gen,n_depth,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts
"8cf427ff","5163","Test CPU","","CPU","models/tiny.gguf","llama 1B Q4_0","636000000","1100000000","2048","512","4","512","0","0","2026-05-01T10:00:00Z","4000000000","100000000","128.000000","0.500000"
"8cf427ff","5163","Test CPU","","CPU","models/tiny.gguf","llama 1B Q4_0","636000000","1100000000","2048","512","4","0","128","0","2026-05-01T10:00:00Z","6400000000","64000000","20.000000","0.250000"
`
	llamaMarkdown = `ggml_cuda_init: found 1 CUDA devices:
| model                          |       size |     params | backend    | threads |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | ------: | --------------: | -------------------: |
| qwen2 1.5B Q4_0                | 885.97 MiB |     1.54 B | CPU        |       4 |           pp512 |         86.41 ± 1.07 |
| qwen2 1.5B Q4_0                | 885.97 MiB |     1.54 B | CPU        |       4 |   tg128 @ d2048 |         12.13 ± 0.06 |
| qwen2 1.5B Q4_0                | 885.97 MiB |     1.54 B | CPU        |       4 |     pp512+tg128 |         39.91 ± 0.30 |

build: 8cf427ff (5163)
`
	ortConsole = `Running iterations (5)...
Batch size: 1, prompt tokens: 128, tokens to generate: 128
Prompt processing (time to first token):
	avg (us):       400000
	avg (tokens/s): 320
	p50 (us):       398000
	stddev (us):    7500.5
	n:              5 * 128 token(s)
Token generation:
	avg (us):       90000
	avg (tokens/s): 11.1111
	p50 (us):       89800
	stddev (us):    7.364e+03
	n:              635 * 1 token(s)
Token sampling:
	avg (us):       30.5
	avg (tokens/s): 32786.9
	p50 (us):       27.75
	stddev (us):    5.25
	n:              5 * 1 token(s)
E2E generation (entire generation loop):
	avg (ms):       11830
	p50 (ms):       11800
	stddev (ms):    22
	n:              5
Peak working set size: 2500000000 bytes (2.33 GB)
`
	ortCSV = `Batch Size,Prompt Length,Tokens Generated,Max Length,Tokenization Throughput (tps),Tokenization Latency (ms),Prompt Processing Throughput (tps),Prompt Processing Latency (ms),Token Generation Throughput (tps),Token Generation Latency (ms),Sampling Throughput (tps),Sampling Latency (ms),Wall Clock Throughput (tps),Wall Clock Time (s)
1,64,128,192,200000,0.32,640,100,20,50,10000,0.1,29.5,6.5
2,64,128,192,200000,0.32,800,160,32,62.5,10000,0.1,40,9.6
`
	ortTransposed = "Batch Size,1.0\nPrompt Length,64.0\nPrompt Processing Throughput (tps),640.0\nPrompt Processing Latency (ms),100.0\nToken Generation Throughput (tps),20.0\nToken Generation Latency (ms),50.0\n"
	ortNormalised = `trigger_date,config.backend,config.batch_size,config.precision,config.model_info.full_name,config.prompt_length,config.tokens_generated,metadata.device,metadata.package_version,metrics.prompt_processing_throughput_tps,metrics.prompt_processing_latency_ms,metrics.token_generation_throughput_tps,metrics.token_generation_latency_ms,metrics.peak_cpu_memory_gb
2026-05-01 10:00:00,onnxruntime-genai,1,int4,phi-3,64,128,cpu,0.9.0,640,100,20,50,1.5
`
	ortJSON   = `[{"config": {"backend": "onnxruntime-genai", "batch_size": 1, "precision": "int4", "prompt_length": 64, "tokens_generated": 128, "model_info": {"full_name": "phi-3"}}, "metadata": {"device": "cpu", "package_version": "0.9.0"}, "metrics": {"prompt_processing_throughput_tps": 640, "prompt_processing_latency_ms": 100, "token_generation_throughput_tps": 20, "token_generation_latency_ms": 50, "peak_cpu_memory_gb": 1.5}, "trigger_date": "2026-05-01 10:00:00"}]`
	guideJSON = `{"metadata": {"version": 1, "guidellm_version": "0.5.0"}, "args": {"target": "http://localhost:8000", "model": "tiny", "data": ["prompt_tokens=256"]},
 "benchmarks": [
  {"type_": "generative_benchmark", "config": {"strategy": {"type_": "concurrent", "streams": 4}, "backend": {"model": "org/tiny"}}, "duration": 30.0,
   "requests": {"successful": [{"output": "a } ] \" text", "tokens": [1, 2]}]},
   "metrics": {"request_totals": {"successful": 9, "errored": 2, "incomplete": 0, "total": 11},
    "time_to_first_token_ms": {"successful": {"mean": 80.0, "median": 75.0, "mode": 70.0, "variance": 81.0, "std_dev": 9.0, "min": 60.0, "max": 120.0, "count": 10, "total_sum": 800.0, "percentiles": {"p001": 60.0, "p50": 75.0, "p90": 110.0, "p95": 115.0, "p99": 119.0}}, "errored": {"mean": 0.0, "count": 0}},
    "inter_token_latency_ms": {"successful": {"mean": 20.0, "median": 19.0, "std_dev": 3.0, "min": 15.0, "max": 30.0, "count": 1270, "percentiles": {"p50": 19.0}}},
    "time_per_output_token_ms": {"successful": {"mean": 21.0, "median": 20.5, "std_dev": 3.0, "min": 15.0, "max": 30.0, "count": 1280}},
    "request_latency": {"successful": {"mean": 2.6, "median": 2.5, "std_dev": 0.3, "min": 2.0, "max": 3.0, "count": 10}},
    "output_tokens_per_second": {"successful": {"mean": 190.0, "median": 3000.0, "std_dev": 99.0, "min": 0.0, "max": 90000.0, "count": 1280}},
    "tokens_per_second": {"successful": {"mean": 0.0, "median": 0.0, "std_dev": 0.0, "min": 0.0, "max": 0.0, "count": 0}},
    "prompt_token_count": {"successful": {"mean": 256.0, "median": 256.0, "std_dev": 0.0, "min": 256.0, "max": 256.0, "count": 10}}}},
  {"type_": "generative_benchmark", "config": {"strategy": {"type_": "constant", "rate": 2.5}, "backend": {"model": "org/tiny"}},
   "metrics": {"time_to_first_token_ms": {"successful": {"mean": 90.0, "median": 85.0, "std_dev": 9.0, "min": 60.0, "max": 120.0, "count": 1}}}}
 ]}`
	perfJSON = `{"request_throughput": {"unit": "requests/sec", "avg": 13.5}, "request_latency": {"unit": "ms", "avg": 6500.0, "p50": 5800.0, "p90": 8594.0, "p95": 8980.0, "p99": 9381.0, "min": 4996.0, "max": 9383.0, "std": 1171.0},
 "time_to_first_token": {"unit": "ms", "avg": 1588.0, "p50": 787.0, "p95": 4051.0, "min": 382.0, "max": 4121.0, "std": 900.0}, "inter_token_latency": {"unit": "ms", "avg": 51.0, "p50": 50.0, "p99": 60.0, "min": 46.0, "max": 61.0, "std": 1.5},
 "output_token_throughput_per_user": {"unit": "tokens/sec/user", "avg": 19.5, "p50": 20.0}, "output_token_throughput": {"unit": "tokens/sec", "avg": 1274.5}, "goodput": null,
 "output_sequence_length": {"unit": "tokens", "avg": 96.5, "p50": 97.0}, "input_config": {"endpoint": {"model_names": ["openai/tiny"], "type": "chat"}, "loadgen": {"concurrency": 100}}}`
	perfCSV    = "Metric,avg,min,max,p99,p95,p90,p75,p50,p25\r\nTime To First Token (ms),\"1,588.00\",382.00,\"4,121.00\",\"4,119.00\",\"4,051.00\",\"3,695.00\",\"2,439.00\",787.00,659.00\r\nInter Token Latency (ms),51.00,46.00,61.00,60.00,59.00,58.00,52.00,50.00,49.00\r\nOutput Sequence Length,96.50,91.00,97.00,97.00,97.00,97.00,97.00,97.00,97.00\r\n\r\nMetric,Value\r\nOutput Token Throughput (per sec),1274.50\r\nRequest Throughput (per sec),13.50\r\n"
	clientJSON = `{"BuildVer": "1.5", "Config": "Configuration tested by MLCommons", "Scenario Name": "Llama3", "Model Name": "Llama 3.1 8B", "Execution Provider Name": "OrtGenAI", "EP Configuration": {"device_type": "GPU"}, "Iterations": 3, "WarmUp": 1, "Benchmark Success": true, "Error Message": "", "Device Type": "GPU", "overall_results": {"Geomean Time to First Token": 0.5, "Geomean 2nd+ Token Generation Rate": 40.0, "Avg Input Tokens": 900, "Avg Generated Tokens": 200}, "category_results": {"Code Analysis": {"Avg Time to First Token": 0.8, "Avg 2nd+ Token Generation Rate": 38.5, "Avg Input Tokens": 1500, "Avg Generated Tokens": 210}, "Creative Writing": {"Avg Time to First Token": 0.2, "Avg 2nd+ Token Generation Rate": 0.0, "Avg Input Tokens": 100, "Avg Generated Tokens": 1}}}
{"Scenario Name": "Phi3.5", "Model Name": "Phi 3.5", "Execution Provider Name": "OrtGenAI", "Benchmark Success": false, "Error Message": "out of memory", "overall_results": null, "category_results": null}
`
)

func format(t testing.TB, name string) *record.Format {
	t.Helper()
	for _, f := range llmbench.Formats() {
		if f.Name == name {
			return f
		}
	}
	t.Fatal(name)
	return nil
}

// best are figures by which a run is checked: the value that reports show.
type best map[string]float64

// TestFormats reads each form of each tool. The figures are those of the texts above.
func TestFormats(t *testing.T) {
	t.Parallel()
	const ort, perf = "onnxruntime-genai", "genai-perf"
	row := best{"prefill_tokens_per_s": 640, "ttft_s": 0.1, "decode_tokens_per_s": 20, "tpot_s": 0.05, "prompt_tokens": 64}
	tests := []struct {
		name, format, file, text string
		models                   []string
		want                     []best
	}{
		{"json", "llama-bench", "a.json", llamaJSON, []string{"llama 1B Q4_0, pp512", "llama 1B Q4_0, tg128 @ d1024"}, []best{
			{"prefill_tokens_per_s": 128, "ttft_s": 4, "prompt_tokens": 512, "context_tokens": 0, "params": 1.1e9},
			{"decode_tokens_per_s": 20, "tpot_s": 0.05, "output_tokens": 128, "context_tokens": 1024},
		}},
		{"jsonl", "llama-bench", "a.jsonl", llamaJSONL, []string{"llama 1B Q4_0, pp512", "llama 1B Q4_0, tg128"}, []best{{"prefill_tokens_per_s": 128, "ttft_s": 4}, {"decode_tokens_per_s": 20, "tpot_s": 0.05}}},
		{"csv", "llama-bench", "a.csv", llamaCSV, []string{"llama 1B Q4_0, pp512", "llama 1B Q4_0, tg128"}, []best{{"prefill_tokens_per_s": 128, "ttft_s": 4, "params": 1.1e9}, {"decode_tokens_per_s": 20, "tpot_s": 0.05}}},
		{"markdown", "llama-bench", "a.md", llamaMarkdown, []string{"qwen2 1.5B Q4_0, pp512", "qwen2 1.5B Q4_0, tg128 @ d2048", "qwen2 1.5B Q4_0, pp512+tg128"}, []best{
			{"prefill_tokens_per_s": 86.41}, {"decode_tokens_per_s": 12.13, "context_tokens": 2048}, {"tokens_per_s": 39.91, "prompt_tokens": 512, "output_tokens": 128},
		}},
		{"console", ort, "a.txt", ortConsole, []string{"a"}, []best{{"prefill_tokens_per_s": 320, "ttft_s": 0.398, "decode_tokens_per_s": 11.1111, "tpot_s": 0.0898, "sampling_s": 27.75e-6, "generation_s": 11.8, "prompt_tokens": 128}}},
		{"table", ort, "a.csv", ortCSV, []string{"a, batch 1, prompt 64, output 128", "a, batch 2, prompt 64, output 128"}, []best{row, {"prefill_tokens_per_s": 800, "decode_tokens_per_s": 32}}},
		{"transposed", ort, "a.csv", ortTransposed, []string{"a"}, []best{row}},
		{"normalised", ort, "a.csv", ortNormalised, []string{"phi-3"}, []best{row}},
		{"json", ort, "a.json", ortJSON, []string{"phi-3"}, []best{{"prefill_tokens_per_s": 640, "ttft_s": 0.1, "decode_tokens_per_s": 20, "tpot_s": 0.05, "prompt_tokens": 64, "system_memory_bytes": 1.5 * (1 << 30)}}},
		{"json", "guidellm", "benchmarks.json", guideJSON, []string{"org/tiny, concurrent 4", "org/tiny, constant 2.5"}, []best{
			{"ttft_s": 0.075, "tpot_s": 0.019, "request_per_token_s": 0.0205, "request_s": 2.5, "output_tokens_per_s": 190, "prompt_tokens": 256}, {"ttft_s": 0.085},
		}},
		{"json", perf, "a.json", perfJSON, []string{"openai/tiny"}, []best{{"ttft_s": 0.787, "tpot_s": 0.05, "decode_tokens_per_s": 20, "request_s": 5.8, "requests_per_s": 13.5, "output_tokens_per_s": 1274.5, "output_tokens": 97}}},
		{"csv", perf, "a.csv", perfCSV, []string{"a"}, []best{{"ttft_s": 0.787, "tpot_s": 0.05, "requests_per_s": 13.5, "output_tokens_per_s": 1274.5, "output_tokens": 97}}},
		{"json", "mlperf-client", "results.json", clientJSON, []string{"Llama 3.1 8B, all categories", "Llama 3.1 8B, Code Analysis", "Llama 3.1 8B, Creative Writing"}, []best{
			{"ttft_s": 0.5, "decode_tokens_per_s": 40}, {"ttft_s": 0.8, "decode_tokens_per_s": 38.5, "prompt_tokens": 1500}, {"ttft_s": 0.2},
		}},
	}
	for _, x := range tests {
		t.Run(x.format+"/"+x.name, func(t *testing.T) {
			t.Parallel()
			ps := records.Read(t, format(t, x.format), []*record.File{record.Bytes(x.file, []byte(x.text))}, record.Options{})
			if len(ps) != len(x.want) {
				t.Fatalf("%d runs, want %d", len(ps), len(x.want))
			}
			for i, p := range ps {
				if p.Model.Name != x.models[i] || !records.Found(p, "llm.scope") || p.Totals.Latency != nil {
					t.Errorf("run %d: %q, want %q; latency %v, findings %+v", i, p.Model.Name, x.models[i], p.Totals.Latency, p.Findings)
				}
				for key, want := range x.want[i] {
					if v, ok := p.Totals.Value(key); !ok || math.Abs(v-want) > 1e-12*want {
						t.Errorf("run %d: %s is %g, want %g", i, key, v, want)
					}
				}
			}
		})
	}
}

func read(t *testing.T, name, file, text string) []*profile.Profile {
	t.Helper()
	return records.Read(t, format(t, name), []*record.File{record.Bytes(file, []byte(text))}, record.Options{})
}

// TestSpread: the statistics of the tools, with their estimators and the divisor of deviations.
func TestSpread(t *testing.T) {
	t.Parallel()
	ps := read(t, "llama-bench", "a.json", llamaJSON)
	if m := ps[0].Totals.Figure("prefill_tokens_per_s"); *m.N != 3 || m.Estimator() != "median" || math.Abs(*m.Mean-128.053333) > 1e-6 || math.Abs(*m.StdDev-3.202333) > 1e-6 {
		t.Errorf("samples: %+v", m)
	}
	if m := ps[1].Totals.Figure("tpot_s"); m.N != nil || m.Estimator() != "mean" || *m.StdDev != 0.0005 || !strings.Contains(m.Method, "n-1") {
		t.Errorf("one sample: %+v", m)
	}
	if m := read(t, "llama-bench", "a.md", llamaMarkdown)[0].Totals.Figure("prefill_tokens_per_s"); m.Estimator() != "mean" || *m.StdDev != 1.07 {
		t.Errorf("markdown: %+v", m)
	}
	ps = read(t, "guidellm", "a.json", guideJSON)
	if m := ps[0].Totals.Figure("ttft_s"); *m.N != 10 || math.Abs(*m.StdDev-0.009*math.Sqrt(10./9)) > 1e-15 || *m.P99 != 0.119 {
		t.Errorf("divisor n: %+v", m)
	}
	if m := ps[1].Totals.Figure("ttft_s"); m.StdDev != nil {
		t.Errorf("one value has a deviation of %g", *m.StdDev)
	}
	if m := ps[0].Totals.Figure("output_tokens_per_s"); m.Median != nil || m.Max != nil {
		t.Errorf("rates over short intervals: %+v", m)
	}
	if m := read(t, "genai-perf", "a.json", perfJSON)[0].Totals.Figure("ttft_s"); *m.StdDev != 0.9 || !strings.Contains(m.Method, "divisor n") {
		t.Errorf("unknown n: %+v", m)
	}
}

// TestSettings: what was run, and how.
func TestSettings(t *testing.T) {
	t.Parallel()
	p := read(t, "llama-bench", "a.csv", llamaCSV)[0]
	s := &p.Settings
	if *s.Threads != 4 || s.EngineVersion != "8cf427ff" || s.EngineOptions["n_ubatch"] != "512" || p.Host.CPUModel != "Test CPU" || p.Target.Accelerator != "CPU" || *p.Model.FileBytes != 636000000 {
		t.Errorf("llama-bench: %+v", s)
	}
	if s := read(t, "llama-bench", "a.md", llamaMarkdown)[0].Settings; *s.Threads != 4 || s.EngineOptions["size"] != "885.97 MiB" {
		t.Errorf("markdown: %+v", s)
	}
	p = read(t, "onnxruntime-genai", "a.txt", ortConsole)[0]
	if *p.Memory.ProcessPeakBytes != 2500000000 || *p.Settings.Batch != 1 {
		t.Errorf("model_benchmark: %+v", p.Settings)
	}
	if s := read(t, "onnxruntime-genai", "a.csv", ortNormalised)[0].Settings; s.EngineVersion != "0.9.0" || s.EngineOptions["precision"] != "int4" {
		t.Errorf("benchmark_e2e: %+v", s)
	}
	p = read(t, "guidellm", "a.json", guideJSON)[0]
	if p.Settings.EngineOptions["strategy"] != "{type_:concurrent,streams:4}" || p.Settings.Libraries["guidellm"] != "0.5.0" || !records.Found(p, "guidellm.errors") {
		t.Errorf("guidellm: %+v", p.Settings)
	}
	p = read(t, "mlperf-client", "a.json", clientJSON)[1]
	if *p.Settings.Runs != 3 || *p.Settings.WarmupRuns != 1 || p.Settings.Engine != "OrtGenAI" || p.Settings.EngineOptions["category"] != "Code Analysis" {
		t.Errorf("mlperf-client: %+v", p.Settings)
	}
}

// TestEqualTests: tests with equal names are told apart by their settings, by numbers without any.
func TestEqualTests(t *testing.T) {
	t.Parallel()
	row := func(threads int, keys, time string) string {
		return fmt.Sprintf(`{"model_type": "m", "n_prompt": 0, "n_gen": 8, "avg_ts": 20.0, "n_threads": %d, "type_k": %q, "test_time": %q}`, threads, keys, time)
	}
	text := "[" + strings.Join([]string{
		row(4, "f16", "a"), row(8, "f16", "b"), row(8, "q8_0", "c"), row(8, "q8_0", "d"),
		`{"model_type": "m", "n_prompt": 8, "n_gen": 0, "n_threads": 2, "avg_ts": 20.0}`,
	}, ",") + "]"
	var names []string
	for _, p := range read(t, "llama-bench", "a.json", text) {
		names = append(names, p.Model.Name)
	}
	want := []string{"m, tg8, threads 4, type_k f16", "m, tg8, threads 8, type_k f16", "m, tg8, threads 8, type_k q8_0 1", "m, tg8, threads 8, type_k q8_0 2", "m, pp8"}
	if !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}

// TestDamaged: what is readable of a damaged file is kept, and counted; a file without a figure is
// an error.
func TestDamaged(t *testing.T) {
	t.Parallel()
	i := strings.LastIndex(llamaJSON, `"avg_ts": 20`)
	if ps := read(t, "llama-bench", "a.json", llamaJSON[:i]); len(ps) == 0 || len(ps[0].Incomplete) == 0 {
		t.Errorf("cut: %d runs", len(ps))
	}
	i = strings.Index(guideJSON, `"constant"`)
	if ps := read(t, "guidellm", "a.json", guideJSON[:i]); len(ps) != 1 || len(ps[0].Incomplete) == 0 {
		t.Errorf("cut: %d runs", len(ps))
	}
	for name, text := range map[string]string{
		"llama-bench":       `[{"n_prompt": 0, "n_gen": 0, "avg_ts": 5}]`,
		"guidellm":          `{"metadata": {"guidellm_version": "1"}, "benchmarks": []}`,
		"genai-perf":        `{"request_throughput": {"unit": "requests/sec"}, "request_latency": {"avg": null}}`,
		"onnxruntime-genai": `[{"metrics": {"token_generation_throughput_tps": NaN}}]`,
	} {
		_, err := records.Try(t, format(t, name), []*record.File{record.Bytes("a.json", []byte(text))}, record.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "a.json: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	failed := clientJSON[strings.Index(clientJSON, "\n")+1:]
	if _, err := records.Try(t, format(t, "mlperf-client"), []*record.File{record.Bytes("a.json", []byte(failed))}, record.Options{}); err == nil || !strings.Contains(err.Error(), "no benchmark of the file succeeded") {
		t.Errorf("failed benchmarks: %v", err)
	}
}

func FuzzLLMBench(f *testing.F) {
	for _, text := range []string{llamaJSON, llamaJSONL, llamaCSV, llamaMarkdown, ortConsole, ortCSV, ortTransposed, ortNormalised, ortJSON, guideJSON, perfJSON, perfCSV, clientJSON} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, x := range llmbench.Formats() {
			records.Fuzz(t, x, "a.json", b)
		}
	})
}
