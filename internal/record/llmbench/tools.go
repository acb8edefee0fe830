package llmbench

import (
	"fmt"
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// tool says where the results of a tool have settings and figures.
type tool struct {
	format, engine string
	settings       []setting
	// options are members that are kept as options of the engine, by the last part of their path.
	options []string
	figures []figure
	// figuresOf replaces figures where they depend on the test.
	figuresOf func(test *jsontree.Value) []figure
	// label tells the tests of a file apart.
	label func(test *jsontree.Value) string
	// population says that standard deviations divide by n, not by n-1.
	population bool
	// method says how figures with a spread were made, scope what times include.
	method, scope string
}

// setting is a member that has a place in the profile, see [at].
type setting struct {
	at  string
	set func(d *draft.Draft, v *jsontree.Value)
}

// figure is a member that is a number or an object with statistics, see [at].
type figure struct {
	at string
	q  profile.Quantity
	// scale is the factor to the unit of q; 0 takes the unit that the member names.
	scale float64
	// meanOnly leaves out the other statistics: those of a rate over short intervals are not those
	// of its mean.
	meanOnly bool
	method   string
}

// parts are the names of the parts of a figure.
var parts = []struct {
	at string
	of func(m *profile.Metric) **float64
}{
	{"mean|avg", func(m *profile.Metric) **float64 { return &m.Mean }},
	{"median|p50|percentiles.p50", func(m *profile.Metric) **float64 { return &m.Median }},
	{"std_dev|std|stddev", func(m *profile.Metric) **float64 { return &m.StdDev }},
	{"min", func(m *profile.Metric) **float64 { return &m.Min }},
	{"max", func(m *profile.Metric) **float64 { return &m.Max }},
	{"p90|percentiles.p90", func(m *profile.Metric) **float64 { return &m.P90 }},
	{"p95|percentiles.p95", func(m *profile.Metric) **float64 { return &m.P95 }},
	{"p99|percentiles.p99", func(m *profile.Metric) **float64 { return &m.P99 }},
}

// metric reads a number, or an object with statistics; nil if it has no figure.
func (t *tool) metric(v *jsontree.Value, scale float64, meanOnly bool) *profile.Metric {
	if x, ok := v.Float(); ok {
		return draft.Metric(profile.Value(profile.Imported, draft.Scaled(x, scale), ""))
	}
	var values []float64
	for _, s := range v.Get("samples").List() {
		if x, ok := s.Float(); ok {
			values = append(values, draft.Scaled(x, scale))
		}
	}
	if len(values) > 1 {
		m, _ := draft.Samples(values, "of the recorded repetitions")
		return m
	}
	m := &profile.Metric{}
	for _, p := range parts {
		if x, ok := at(v, p.at).Float(); ok && !(meanOnly && p.of(m) != &m.Mean) {
			*p.of(m) = new(draft.Scaled(x, scale))
		}
	}
	if n, ok := at(v, "count|n").Int(); ok {
		if n <= 0 {
			return nil // statistics of nothing are zeros
		}
		m.N = &n
	}
	if t.population && m.StdDev != nil && m.N != nil {
		if *m.N < 2 {
			m.StdDev = nil
		} else {
			*m.StdDev *= math.Sqrt(float64(*m.N) / float64(*m.N-1))
		}
	}
	return draft.Metric(m)
}

// Quantities that only some benchmarks have.
var (
	prefill   = profile.Quantity{Key: "prefill_tokens_per_s"}
	decode    = profile.Quantity{Key: "decode_tokens_per_s"}
	ttft      = profile.Quantity{Key: "ttft_s"}
	tpot      = profile.Quantity{Key: "tpot_s"}
	together  = tokenRate("tokens_per_s", "Tokens per second, prompt and output", "Tokens of prompt and output divided by the time of both.")
	outputs   = tokenRate("output_tokens_per_s", "Output tokens per second, all requests", "Output tokens of all requests together per second of the benchmark.")
	prompts   = tokenRate("prompt_tokens_per_s", "Prompt tokens per second, all requests", "Prompt tokens of all requests together per second of the benchmark.")
	perUser   = tokenRate("request_tokens_per_s", "Output tokens per second of a request", "Output tokens of a request divided by its whole time, that to the first token included.")
	requests  = profile.Quantity{Key: "requests_per_s", Unit: "/s", Name: "Requests per second", Group: "Load", Better: 1}
	request   = seconds("request_s", "Time of a request", "Time from the start of a request to its last token.")
	perToken  = seconds("request_per_token_s", "Time of a request per output token", "Time of a request divided by its output tokens, that to the first token included.")
	second    = seconds("second_token_s", "Time from the first to the second token", "")
	tokenise  = seconds("tokenization_s", "Time of the tokenizer for a prompt", "")
	sampling  = seconds("sampling_s", "Time of sampling for a token", "")
	wall      = seconds("generation_s", "Time of prompt and output", "Time from the prompt to the last token, tokenizer and sampling included.")
	inputLen  = profile.Quantity{Key: "prompt_tokens", Name: "Prompt tokens", Group: "Language model"}
	outputLen = profile.Quantity{Key: "output_tokens", Name: "Output tokens", Group: "Language model"}
	depth     = profile.Quantity{Key: "context_tokens", Name: "Context tokens", Group: "Language model", Doc: "Tokens in the cache before the test."}
	inFlight  = profile.Quantity{Key: "concurrent_requests", Name: "Requests at the same time", Group: "Load"}
	usedHost  = profile.Quantity{Key: "system_memory_bytes", Unit: "B", Name: "Largest memory in use, whole computer", Group: "Memory", Better: -1}
	usedGPU   = profile.Quantity{Key: "gpu_memory_bytes", Unit: "B", Name: "Largest memory in use on the GPU", Group: "Memory", Better: -1}
)

func tokenRate(key, name, doc string) profile.Quantity {
	return profile.Quantity{Key: key, Unit: "/s", Name: name, Group: "Language model", Better: 1, Doc: doc}
}

func seconds(key, name, doc string) profile.Quantity {
	return profile.Quantity{Key: key, Unit: "s", Name: name, Group: "Time", Better: -1, Doc: doc}
}

// first is the text of a value, or of the first element of a list.
func first(v *jsontree.Value) string {
	if l := v.List(); len(l) > 0 {
		v = l[0]
	}
	if e := v.Get("name"); e != nil {
		v = e
	}
	return draft.Text(v.Str())
}

func setName(d *draft.Draft, v *jsontree.Value) {
	if s := first(v); s != "" {
		d.P.Model.Name = s
	}
}

func setEngine(d *draft.Draft, v *jsontree.Value)  { d.P.Settings.Engine = first(v) }
func setVersion(d *draft.Draft, v *jsontree.Value) { d.P.Settings.EngineVersion = first(v) }

// setCount returns a setter of a number from 0.
func setCount(of func(p *profile.Profile) **int64) func(d *draft.Draft, v *jsontree.Value) {
	return func(d *draft.Draft, v *jsontree.Value) { *of(d.P) = draft.Count(v.Int()) }
}

func threads(p *profile.Profile) **int64 { return &p.Settings.Threads }
func batch(p *profile.Profile) **int64   { return &p.Settings.Batch }
func runs(p *profile.Profile) **int64    { return &p.Settings.Runs }
func warmups(p *profile.Profile) **int64 { return &p.Settings.WarmupRuns }

func setPeak(d *draft.Draft, v *jsontree.Value) {
	if n := draft.Count(v.Int()); n != nil {
		d.P.Memory = &profile.Memory{ProcessPeakBytes: n}
	}
}

// host returns the description of the computer.
func host(d *draft.Draft) *profile.Host {
	if d.P.Host == nil {
		d.P.Host = &profile.Host{}
	}
	return d.P.Host
}

var llama = tool{
	format: "llama-bench", engine: "llama.cpp",
	settings: []setting{
		{"model_type|model_filename", setName},
		{"model_size", setCount(func(p *profile.Profile) **int64 { return &p.Model.FileBytes })},
		{"model_n_params", setCount(func(p *profile.Profile) **int64 { return &p.Totals.Params })},
		{"backends|backend", func(d *draft.Draft, v *jsontree.Value) { d.P.Target.Accelerator = first(v) }},
		{"n_threads|threads", setCount(threads)},
		{"cpu_info", func(d *draft.Draft, v *jsontree.Value) { host(d).CPUModel = first(v) }},
		{"build_commit", setVersion},
	},
	options: []string{
		"model_filename", "build_number", "gpu_info", "n_prompt", "n_gen", "n_depth", "n_batch", "n_ubatch", "n_gpu_layers", "n_cpu_moe", "type_k", "type_v", "split_mode",
		"main_gpu", "no_kv_offload", "flash_attn", "tensor_split", "tensor_buft_overrides", "use_mmap", "embeddings", "no_op_offload", "no_host", "devices",
		"cpu_mask", "cpu_strict", "poll", "mul_mat_q", "low_vram", "test_time", "size", "params",
	},
	figuresOf: llamaFigures,
	label:     llamaTest,
	method:    "mean of the repetitions; standard deviation with divisor n-1",
	scope:     "llama-bench evaluates random tokens: tokenizer and sampling are not included. The time to the first token is that of the whole prompt.",
}

// llamaTest names a test as llama-bench does, such as pp512, tg128 @ d1024.
func llamaTest(v *jsontree.Value) string {
	count := func(key string) int64 { n, _ := v.Get(key).Int(); return n }
	var names []string
	for _, p := range []struct{ name, key string }{{"pp", "n_prompt"}, {"tg", "n_gen"}} {
		if n := count(p.key); n > 0 {
			names = append(names, fmt.Sprintf("%s%d", p.name, n))
		}
	}
	name := strings.Join(names, "+")
	if n := count("n_depth"); n > 0 {
		name += fmt.Sprintf(" @ d%d", n)
	}
	return name
}

// llamaFigures are the figures of a test: of a prompt, of generated tokens or of both.
func llamaFigures(v *jsontree.Value) []figure {
	n, _ := v.Get("n_prompt").Int()
	gen, _ := v.Get("n_gen").Int()
	spread := func(unit string) *jsontree.Value {
		s := &jsontree.Value{Kind: jsontree.Object}
		for name, key := range map[string]string{"mean": "avg_", "stddev": "stddev_", "samples": "samples_"} {
			if e := v.Get(key + unit); e != nil {
				put(s, name, e)
			}
		}
		return s
	}
	put(v, "rate", spread("ts"))
	put(v, "time", spread("ns"))
	lengths := []figure{{at: "n_depth", q: depth, scale: 1}}
	if n > 0 {
		lengths = append(lengths, figure{at: "n_prompt", q: inputLen, scale: 1})
	}
	if gen > 0 {
		lengths = append(lengths, figure{at: "n_gen", q: outputLen, scale: 1})
	}
	switch {
	case n > 0 && gen > 0:
		return append(lengths, figure{at: "rate", q: together, scale: 1}, figure{at: "time", q: wall, scale: 1e-9})
	case n > 0:
		return append(lengths, figure{at: "rate", q: prefill, scale: 1}, figure{at: "time", q: ttft, scale: 1e-9})
	case gen > 0:
		return append(lengths, figure{at: "rate", q: decode, scale: 1}, figure{at: "time", q: tpot, scale: 1e-9 / float64(gen)})
	}
	return nil
}

// ortPrompt is the title of the first figures on the console of model_benchmark.
const ortPrompt = "Prompt processing (time to first token)"

var ortGenAI = tool{
	format: "onnxruntime-genai", engine: "ONNX Runtime GenAI",
	settings: []setting{
		{"config.model_info.full_name", setName},
		{"config.batch_size|Batch Size|batch size", setCount(batch)},
		{"metadata.package_version", setVersion},
		{"metadata.device", func(d *draft.Draft, v *jsontree.Value) { d.P.Target.Accelerator = first(v) }},
		{"Peak working set size (bytes)", setPeak},
	},
	options: []string{"config.precision", "config.max_length", "Max Length", "metadata.package_name"},
	figures: []figure{
		{at: "metrics.prompt_processing_throughput_tps|Prompt Processing Throughput (tps)|" + ortPrompt + ".rate", q: prefill, scale: 1},
		{at: "metrics.token_generation_throughput_tps|Token Generation Throughput (tps)|Token generation.rate", q: decode, scale: 1},
		{at: "metrics.prompt_processing_latency_ms|Prompt Processing Latency (ms)|Prompt Latency (ms)", q: ttft, scale: 1e-3},
		{at: ortPrompt, q: ttft, scale: 1e-6},
		{at: "metrics.token_generation_latency_ms|Token Generation Latency (ms)", q: tpot, scale: 1e-3},
		{at: "Token generation", q: tpot, scale: 1e-6},
		{at: "metrics.tokenization_latency_ms|Tokenization Latency (ms)", q: tokenise, scale: 1e-3},
		{at: "metrics.sampling_latency_ms|Sampling Latency (ms)", q: sampling, scale: 1e-3},
		{at: "Token sampling", q: sampling, scale: 1e-6},
		{at: "metrics.wall_clock_time_s|Wall Clock Time (s)", q: wall, scale: 1},
		{at: "E2E generation (entire generation loop)", q: wall, scale: 1e-3},
		{at: "config.prompt_length|Prompt Length|prompt tokens", q: inputLen, scale: 1},
		{at: "config.tokens_generated|Tokens Generated|tokens to generate", q: outputLen, scale: 1},
		{at: "metrics.peak_cpu_memory_gb|peak_cpu_memory (GiB)", q: usedHost, scale: 1 << 30},
		{at: "metrics.peak_gpu_memory_gb|peak_gpu_memory (GiB)", q: usedGPU, scale: 1 << 30},
	},
	label: func(v *jsontree.Value) string {
		var out []string
		for _, p := range []struct{ at, name string }{{"config.batch_size|Batch Size|batch size", "batch"}, {"config.prompt_length|Prompt Length|prompt tokens", "prompt"}, {"config.tokens_generated|Tokens Generated|tokens to generate", "output"}} {
			if n, ok := at(v, p.at).Int(); ok {
				out = append(out, fmt.Sprintf("%s %d", p.name, n))
			}
		}
		return strings.Join(out, ", ")
	},
	method: "mean of the repetitions; standard deviation with divisor n-1",
	scope:  "The rates are those of all sequences of a batch together. Tokenizer and sampling are not included in the times of prompt and tokens.",
}

var guideLLM = tool{
	format: "guidellm", engine: "",
	settings: []setting{
		{"config.backend.model|worker.backend_model|report.args.model|report.args.backend.model", setName},
		{"report.metadata.guidellm_version", func(d *draft.Draft, v *jsontree.Value) {
			d.P.Settings.Libraries = map[string]string{"guidellm": first(v)}
		}},
		{"metrics.request_totals.errored|request_totals.errored", func(d *draft.Draft, v *jsontree.Value) {
			if n, _ := v.Int(); n > 0 {
				d.Found("guidellm.errors", profile.Problem, "%d requests failed. The figures are those of the others.", n)
			}
		}},
	},
	options: []string{"config.strategy", "args.strategy", "report.args.data", "duration"},
	figures: []figure{
		{at: "metrics.time_to_first_token_ms.successful", q: ttft, scale: 1e-3},
		{at: "metrics.inter_token_latency_ms.successful", q: tpot, scale: 1e-3},
		{at: "metrics.time_per_output_token_ms.successful", q: perToken, scale: 1e-3},
		{at: "metrics.request_latency.successful", q: request, scale: 1},
		{at: "metrics.requests_per_second.successful", q: requests, scale: 1, meanOnly: true},
		{at: "metrics.output_tokens_per_second.successful", q: outputs, scale: 1, meanOnly: true},
		{at: "metrics.prompt_tokens_per_second.successful", q: prompts, scale: 1, meanOnly: true},
		{at: "metrics.tokens_per_second.successful", q: together, scale: 1, meanOnly: true},
		{at: "metrics.request_concurrency.successful", q: inFlight, scale: 1, meanOnly: true},
		{at: "metrics.prompt_token_count.successful", q: inputLen, scale: 1},
		{at: "metrics.output_token_count.successful", q: outputLen, scale: 1},
	},
	label: func(v *jsontree.Value) string {
		s := at(v, "config.strategy|args.strategy")
		kind := first(at(s, "type_|kind"))
		for _, key := range []string{"streams", "max_concurrency", "rate"} {
			if x, ok := s.Get(key).Float(); ok {
				return strings.TrimSpace(fmt.Sprintf("%s %.4g", kind, x))
			}
		}
		return kind
	},
	population: true,
	method:     "of the requests that succeeded; standard deviation converted to divisor n-1",
	scope:      "The times are those of requests to a server: network, queue, tokenizer and sampling are included.",
}

var genAIPerf = tool{
	format: "genai-perf", engine: "",
	settings: []setting{
		{"input_config.endpoint.model_names|input_config.models.items|input_config.model_names|input_config.model", setName},
	},
	options: []string{
		"input_config.loadgen.concurrency", "input_config.perf_analyzer.stimulus", "input_config.concurrency", "input_config.request_rate",
		"input_config.endpoint.type", "input_config.endpoint.backend", "input_config.backend",
	},
	figures: []figure{
		{at: "time_to_first_token", q: ttft},
		{at: "inter_token_latency", q: tpot},
		{at: "prefill_throughput_per_user", q: prefill, scale: 1},
		{at: "output_token_throughput_per_user", q: decode, scale: 1},
		{at: "output_token_throughput_per_request", q: perUser, scale: 1},
		{at: "output_token_throughput", q: outputs, scale: 1},
		{at: "time_to_second_token", q: second},
		{at: "request_latency", q: request},
		{at: "request_throughput", q: requests, scale: 1},
		{at: "input_sequence_length", q: inputLen, scale: 1},
		{at: "output_sequence_length", q: outputLen, scale: 1},
	},
	label: func(*jsontree.Value) string { return "" },
	// The files do not say of how many values a figure is, so that the divisor stays.
	method: "of the requests; standard deviation with divisor n",
	scope:  "The times are those of requests to a server: network, queue, tokenizer and sampling are included.",
}

var mlperfClient = tool{
	format: "mlperf-client", engine: "",
	settings: []setting{
		{"Model Name|Scenario Name", setName},
		{"Execution Provider Name", setEngine},
		{"Device Type", func(d *draft.Draft, v *jsontree.Value) { d.P.Target.Accelerator = first(v) }},
		{"Iterations", setCount(runs)},
		{"WarmUp", setCount(warmups)},
		{"BuildVer", func(d *draft.Draft, v *jsontree.Value) {
			d.P.Settings.Libraries = map[string]string{"mlperf-client": first(v)}
		}},
		{"Error Message", func(d *draft.Draft, v *jsontree.Value) {
			if s := first(v); s != "" {
				d.Found("mlperf-client.error", profile.Problem, "The benchmark says: %s.", strings.TrimRight(s, ". \n"))
			}
		}},
	},
	options: []string{"category", "Model Path", "EP Configuration", "Config", "ConfigFile", "Results Verified"},
	figures: []figure{
		{at: "figures.Avg Time to First Token", q: ttft, scale: 1, method: "mean of the prompts of the category"},
		{at: "figures.Geomean Time to First Token", q: ttft, scale: 1, method: "geometric mean of the categories"},
		{at: "figures.Avg 2nd+ Token Generation Rate", q: decode, scale: 1, method: "mean of the prompts of the category"},
		{at: "figures.Geomean 2nd+ Token Generation Rate", q: decode, scale: 1, method: "geometric mean of the categories"},
		{at: "figures.Avg Input Tokens", q: inputLen, scale: 1},
		{at: "figures.Avg Generated Tokens", q: outputLen, scale: 1},
	},
	label: func(v *jsontree.Value) string { return first(v.Get("category")) },
	scope: "The time to the first token and the rate of the tokens after it include sampling. The result has no spread.",
}
