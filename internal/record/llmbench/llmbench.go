// Package llmbench reads results of benchmarks of language models: llama-bench, ONNX Runtime GenAI,
// GuideLLM, GenAI-Perf with its successor AIPerf, and MLPerf Client. A test is a run with figures
// of the whole model and without layers.
//
// All readers make a tree of values of each test. A table per tool says which member is which
// quantity or setting.
//
// Sources of the formats: tools/llama-bench of llama.cpp; benchmark/python and benchmark/c of
// onnxruntime-genai; the schemas of GuideLLM; genai_perf/export_data of GenAI-Perf and the guide to
// profile exports of AIPerf; src/CIL/benchmark_logger.cpp of MLPerf Client.
package llmbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Limits of files. A result of GuideLLM holds all requests beside the figures.
const (
	maxBytes     = 64 << 20
	maxBenchmark = 256 << 20
)

var gives = []string{"prefill_tokens_per_s", "decode_tokens_per_s", "ttft_s", "tpot_s"}

// Formats lists the readers.
func Formats() []*record.Format {
	return []*record.Format{
		{
			Name: "llama-bench", Title: "llama-bench of llama.cpp", Files: "llama-bench -o json, jsonl, csv or md; a run for each test",
			Gives: append(gives[:4:4], "samples"), Match: matchLlama, Read: reader(&llama, readLlama),
		},
		{
			Name: "onnxruntime-genai", Title: "ONNX Runtime GenAI benchmark", Files: "CSV and JSON of benchmark_e2e.py and benchmark_multimodal.py, console output of model_benchmark; a run for each row",
			Gives: append(gives[:4:4], "memory"), Match: matchORT, Read: reader(&ortGenAI, readORT),
		},
		{
			Name: "guidellm", Title: "GuideLLM", Files: "benchmarks.json; a run for each benchmark",
			Gives: []string{"ttft_s", "tpot_s"}, Match: matchGuide, Read: reader(&guideLLM, readGuide),
		},
		{
			Name: "genai-perf", Title: "GenAI-Perf and AIPerf", Files: "profile_export_genai_perf and profile_export_aiperf, .json or .csv",
			Gives: gives, Match: matchPerf, Read: reader(&genAIPerf, readPerf),
		},
		{
			Name: "mlperf-client", Title: "MLPerf Client", Files: "Logs/results.json; a run for all categories together and one for each category",
			Gives: []string{"decode_tokens_per_s", "ttft_s"}, Match: matchClient, Read: reader(&mlperfClient, readClient),
		},
	}
}

// use takes the tree of a test.
type use func(test *jsontree.Value)

// reader makes the [record.Format].Read of a tool. tests finds the tests of a file.
func reader(t *tool, tests func(ctx context.Context, f *record.File, use use) error) func(context.Context, *record.Input) ([]*runlog.Run, error) {
	return record.RunsPerFile(func(ctx context.Context, _ *record.Input, f *record.File) (runs []*runlog.Run, err error) {
		var ds []*draft.Draft
		var labels []string
		without := int64(0)
		err = tests(ctx, f, func(v *jsontree.Value) {
			if len(ds) >= draft.MaxRuns {
				without++
				return
			}
			if d := t.draft(f, v); !d.Empty() {
				d.Dropped.Add(draft.NotFinite, v.Odd())
				ds, labels = append(ds, d), append(labels, t.label(v))
			} else {
				without++
			}
		})
		if len(ds) == 0 {
			return draft.NotEmpty(nil, err)
		}
		for i, d := range ds {
			if len(ds) > 1 && labels[i] != "" {
				d.P.Model.Name = draft.Text(d.P.Model.Name + ", " + labels[i])
			}
		}
		tell(ds)
		ds[0].Dropped.Add("tests without a figure", without)
		if err != nil {
			ds[0].Dropped.Add(fmt.Sprintf("the text is damaged: %v", err), 1)
		}
		draft.Apart(ds, false)
		for _, d := range ds {
			runs = append(runs, d.Run())
		}
		return runs, nil
	})
}

// tell adds to equal names the settings in which the tests differ, such as "threads 8".
func tell(ds []*draft.Draft) {
	equal := map[string][]*draft.Draft{}
	for _, d := range ds {
		equal[d.P.Model.Name] = append(equal[d.P.Model.Name], d)
	}
	for _, list := range equal {
		values := map[string]map[string]bool{}
		for _, d := range list {
			for key, text := range settingsOf(d.P) {
				if values[key] == nil {
					values[key] = map[string]bool{}
				}
				values[key][text] = true
			}
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if len(values[key]) < 2 {
				continue
			}
			for _, d := range list {
				if text := settingsOf(d.P)[key]; text != "" {
					d.P.Model.Name = draft.Text(d.P.Model.Name + ", " + text)
				}
			}
		}
	}
}

// settingsOf describes the settings of a run by their names.
func settingsOf(p *profile.Profile) map[string]string {
	out := map[string]string{}
	for key, v := range p.Settings.EngineOptions {
		if key != "test_time" {
			out[key] = key + " " + v
		}
	}
	for key, n := range map[string]*int64{"threads": p.Settings.Threads, "batch": p.Settings.Batch} {
		if n != nil {
			out[key] = fmt.Sprintf("%s %d", key, *n)
		}
	}
	if a := p.Target.Accelerator; a != "" {
		out["accelerator"] = a
	}
	return out
}

// documents calls use with the JSON documents of a file; a document that is a list has several.
func documents(f *record.File, use use) (err error) {
	var damaged error
	err = f.EachJSON(maxBytes, func(v *jsontree.Value, fault error) {
		damaged = cmp.Or(damaged, fault)
		if v.Kind != jsontree.List {
			use(v)
		}
		for _, e := range v.List() {
			use(e)
		}
	})
	return cmp.Or(err, damaged)
}

func isLlamaHead(c textscan.Columns) bool {
	return c.At("n_prompt") >= 0 && c.At("avg_ts") >= 0 || c.At("model") == 0 && c.At("test") > 0 && c.At("t/s") > 0
}

func matchLlama(f *record.File) record.Sure {
	if h := f.JSONHead("[{"); h != nil {
		return record.Certain.If(h.Has(`"n_prompt"`, `"avg_ts"`))
	}
	return record.Certain.If(record.FindLine(f, func(l string) bool { return isLlamaHead(textscan.NewColumns(cells(l))) }, "avg_ts", "t/s"))
}

func readLlama(_ context.Context, f *record.File, use use) error {
	if f.JSONHead("[{") != nil {
		return documents(f, use)
	}
	return table(f, isLlamaHead, func(row *jsontree.Value) { use(llamaRow(row)) })
}

// The first column of results of ONNX Runtime GenAI depends on the version.
func isORTHead(c textscan.Columns) bool {
	return c.At("Token Generation Throughput (tps)", "metrics.token_generation_throughput_tps") >= 0
}

func matchORT(f *record.File) record.Sure {
	if h := f.JSONHead("[{"); h != nil {
		return record.Certain.If(h.Has(`"token_generation_throughput_tps"`))
	}
	return record.Certain.If(record.FindLine(f, func(l string) bool {
		return isORTHead(textscan.NewColumns(cells(l))) || strings.HasPrefix(strings.TrimSpace(textscan.Strip(l)), ortPrompt)
	}, "Token Generation Throughput (tps)", "metrics.token_generation_throughput_tps", ortPrompt))
}

func readORT(_ context.Context, f *record.File, use use) error {
	switch {
	case f.JSONHead("[{") != nil:
		return documents(f, use)
	case textscan.Any(f.Head, ortPrompt):
		return console(f, use)
	case record.FindLine(f, func(l string) bool { c := cells(l); return len(c) == 2 && c[0] == "Token Generation Throughput (tps)" }, "Token Gen"):
		return columns(f, use)
	}
	return table(f, isORTHead, use)
}

func matchGuide(f *record.File) record.Sure {
	h := f.JSONHead("{")
	return record.Certain.If(h.Has(`"benchmarks"`) && (h.Has(`"guidellm_version"`) || h.HasAny(`"generative_benchmark"`, `"time_to_first_token_ms"`, `"rate_type"`)))
}

// readGuide skips the list of requests of a benchmark, which is most of the file.
func readGuide(ctx context.Context, f *record.File, use use) error {
	report := &jsontree.Value{Kind: jsontree.Object}
	res, err := f.ScanJSON(ctx, jsonscan.Options{Stream: jsonscan.Keys("benchmarks"), MaxValue: maxBenchmark}, func(key string, text []byte) {
		if key != "benchmarks" && key != "" {
			if v, err := jsontree.Parse(text); err == nil {
				put(report, key, v)
			}
			return
		}
		b := &jsontree.Value{Kind: jsontree.Object}
		c := jsonscan.Cursor{Text: text}
		for c.Next() {
			if string(c.Key) == "requests" {
				continue
			}
			if v, err := jsontree.Parse(c.Value()); err == nil {
				put(b, string(c.Key), v)
			}
		}
		put(b, "report", report)
		use(b)
	})
	switch {
	case err != nil:
		return err
	case res.Cut:
		return fmt.Errorf("byte %d: the text ends within a value", res.Bytes)
	case res.Large > 0:
		return fmt.Errorf("%d benchmarks are larger than %d MiB", res.Large, maxBenchmark>>20)
	}
	return nil
}

const perfHead = "Metric,avg,min,max,"

func matchPerf(f *record.File) record.Sure {
	if h := f.JSONHead("{"); h != nil {
		return record.Certain.If(h.Has(`"request_throughput"`, `"request_latency"`, `"avg"`))
	}
	return record.Certain.If(record.FindLine(f, func(l string) bool { return strings.HasPrefix(l, perfHead) }, perfHead))
}

func readPerf(_ context.Context, f *record.File, use use) error {
	if f.JSONHead("{") != nil {
		return documents(f, use)
	}
	return statistics(f, use)
}

func matchClient(f *record.File) record.Sure {
	return record.Certain.If(f.JSONHead("[{").Has(`"Execution Provider Name"`, `"Scenario Name"`, `"Benchmark Success"`))
}

// errFailed is the error for a file whose benchmarks all failed.
var errFailed = errors.New("no benchmark of the file succeeded: see its \"Error Message\"")

func readClient(_ context.Context, f *record.File, use use) error {
	failed, all := 0, 0
	err := documents(f, func(v *jsontree.Value) {
		all++
		if v.Get("Benchmark Success").Str() == "false" {
			failed++
		}
		categories := v.Get("category_results")
		test := func(category string, figures *jsontree.Value) {
			if figures == nil || figures.Kind != jsontree.Object {
				return
			}
			t := &jsontree.Value{Kind: jsontree.Object}
			for key, e := range v.Members() {
				if e != categories {
					put(t, key, e)
				}
			}
			put(t, "category", &jsontree.Value{Kind: jsontree.String, Text: category})
			put(t, "figures", figures)
			use(t)
		}
		test("all categories", v.Get("overall_results"))
		for category, figures := range categories.Members() {
			test(category, figures)
		}
	})
	if err == nil && all > 0 && failed == all {
		return errFailed
	}
	return err
}

// put adds a member to an object.
func put(to *jsontree.Value, key string, e *jsontree.Value) {
	to.Keys, to.Items = append(to.Keys, key), append(to.Items, e)
}

// at returns the first member that exists of paths separated by "|". The parts of a path are
// separated by dots; a member may also have the whole path as its key.
func at(v *jsontree.Value, paths string) *jsontree.Value {
	for path := range strings.SplitSeq(paths, "|") {
		e := v.Get(path)
		if e == nil {
			e = v
			for key := range strings.SplitSeq(path, ".") {
				e = e.Get(key)
			}
		}
		if e != nil && e.Kind != jsontree.Null {
			return e
		}
	}
	return nil
}

// draft makes the run of a test.
func (t *tool) draft(f *record.File, v *jsontree.Value) *draft.Draft {
	d := draft.New(t.format, draft.Stem(f), t.engine)
	d.P.Settings.EngineOptions = map[string]string{}
	for _, s := range t.settings {
		if e := at(v, s.at); e != nil {
			s.set(d, e)
		}
	}
	for _, o := range t.options {
		if e := at(v, o); e != nil {
			key := o[strings.LastIndexByte("."+o, '.'):]
			d.P.Settings.EngineOptions[draft.Key(key)] = draft.Text(e.Brief())
		}
	}
	if len(d.P.Settings.EngineOptions) == 0 {
		d.P.Settings.EngineOptions = nil
	}
	figures := t.figures
	if t.figuresOf != nil {
		figures = t.figuresOf(v)
	}
	for _, g := range figures {
		t.set(d, g, v)
	}
	if !d.Empty() {
		d.Found("llm.scope", profile.Info, "%s", t.scope)
	}
	return d
}

// set sets the quantity of a figure.
func (t *tool) set(d *draft.Draft, g figure, v *jsontree.Value) {
	e := at(v, g.at)
	if e == nil {
		return
	}
	scale := g.scale
	if scale == 0 {
		scale = cmp.Or(units[strings.ToLower(at(e, "unit").Str())], 1)
	}
	m := t.metric(e, scale, g.meanOnly)
	q, ok := profile.Lookup(g.q.Key)
	if !ok {
		q = g.q
	}
	// A time or rate of 0 says that there was nothing to measure.
	if x, ok := m.Best(); !ok || x == 0 && q.Unit != "" {
		return
	}
	if m.Method == "" && g.method != "" {
		m.Method = g.method
	} else if m.Method == "" && m.Estimator() != "value" {
		m.Method = t.method
	}
	d.TotalMetric(g.q, m)
}

// units are the units of times that results name.
var units = map[string]float64{"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s": 1, "sec": 1, "seconds": 1}
