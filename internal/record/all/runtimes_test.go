package all_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/all"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
	publicrecord "github.com/opmeter/opmeter/record"
)

// of is the format that is surest of a file, and whether another is as sure.
func of(f *record.File) (best *record.Format, tie bool) {
	sure := record.No
	for _, x := range all.Formats() {
		switch s := x.Match(f); {
		case s > sure:
			best, sure, tie = x, s, false
		case s == sure && s != record.No:
			tie = true
		}
	}
	return best, tie
}

// TestEveryFile: each file of runtimes and vendor tools belongs to one format, and makes a run.
func TestEveryFile(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"tflite": "tflite-benchmark", "tflm": "tflm", "openvino": "openvino", "trt": "tensorrt", "deepsparse": "deepsparse", "vela": "vela", "stm32": "stedgeai",
		"model-explorer": "model-explorer", "stats/go_bench_10x.txt": "go-bench", "stats/hyperfine_1.15_two_commands.json": "hyperfine",
		"stats/hyperfine_1.15_two_commands.csv": "hyperfine", "stats/ncnn_benchmark_tables.md": "ncnn",
	}
	n := 0
	for _, dir := range []string{"tflite", "tflm", "openvino", "trt", "deepsparse", "vela", "stm32", "stats", "model-explorer"} {
		for _, path := range records.In(t, material.Path(t, "raw", "traces", dir)) {
			name := want[dir]
			if name == "" {
				name = want[dir+"/"+filepath.Base(path)]
			}
			for _, f := range records.Files(t, path) {
				n++
				format, tie := of(f)
				if format == nil || format.Name != name || tie {
					t.Errorf("%s: recognised as %v (tie %v), want %s", path, format, tie, name)
					continue
				}
				runs, err := format.Read(context.Background(), &record.Input{Files: []*record.File{f}})
				if err != nil || len(runs) == 0 {
					t.Errorf("%s: %d runs, %v", path, len(runs), err)
				}
				for _, r := range runs {
					records.Collect(t, r)
				}
			}
		}
	}
	if n < 45 {
		t.Errorf("only %d files", n)
	}
}

// TestModel: the log of a board leads to the operators of its model, by their positions.
func TestModel(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open(material.Path(t, "models", "real", "tflm_person_detect.tflite"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got, err := publicrecord.Import(t.Context(), material.Path(t, "raw", "traces", "tflm", "tflm_benchmark_readme_log.md"), publicrecord.Options{Model: m, ClocksHz: map[string]float64{"": 25e6}})
	if err != nil || len(got.Profiles) != 1 {
		t.Fatal(err)
	}
	p := got.Profiles[0]
	for i := range p.Layers {
		l := &p.Layers[i]
		if v := l.Provenance; v == nil || v.Confidence != profile.Exact || len(v.SourceNodes) != 1 || v.SourceNodes[0].Node != int64(i) || l.Latency == nil || l.MACs == nil {
			t.Errorf("layer %d: %+v", i, v)
		}
	}
	if *p.Totals.MACs == 0 || len(p.Layers) != 31 {
		t.Errorf("%d MACs of %d layers", *p.Totals.MACs, len(p.Layers))
	}
}

// TestOthers: none of the formats takes files that are not its own.
func TestOthers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", "[]", "hello\n", "a,b,c\n1,2,3\n", `{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]}`, "\x00\x01\x02\x03\x04", strings.Repeat("x ", 10_000)} {
		if f, _ := of(record.Bytes("some.txt", []byte(text))); f != nil && f.Name != "chrome" && !strings.Contains(f.Name, "trace") {
			t.Errorf("%.40q is taken for %s", text, f.Name)
		}
	}
}

// TestLike: files that have the shape of another format, too, go to the one that knows more of
// them.
func TestLike(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"otherData": {}, "traceEvents": [{"cat":"inference","dur":9,"name":"model_inference","ph":"X","pid":0,"tid":"inference","ts":0}]}`: "neural-engine",
		`{"summary":{"name":"a","runtime_memory_size":1,"n_unsupported_layers":0},"layers":[]}`:                                              "mltk",
		"goos: linux\nBenchmarkModel/layer=all 1 5 ns/op\n":                                                                                  "go-bench",
		`{"main":{"results":{"1":{"value":1}},"gradient":[]}}`:                                                                               "model-explorer",
		"Starting Model Profiler\nName: a\n":                                                                                                 "mltk",
		"INFO: Inference timings in us: Init: 1, First inference: 2, Warmup (avg): 3, Inference (avg): 4\n":                                  "tflite-benchmark",
	} {
		if f, tie := of(record.Bytes("a", []byte(text))); f == nil || f.Name != want || tie {
			t.Errorf("%s: %v, want %s", text, f, want)
		}
	}
}

// TestFormats: names are unique, in order, and every format says what it is.
func TestFormats(t *testing.T) {
	t.Parallel()
	last := ""
	for _, f := range all.Formats() {
		if f.Name <= last || f.Title == "" || f.Files == "" || len(f.Gives) == 0 || f.Match == nil || f.Read == nil {
			t.Errorf("%+v after %q", f, last)
		}
		last = f.Name
	}
}
