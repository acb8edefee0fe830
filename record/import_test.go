package record_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/tpurecords"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/record"
)

// put writes files below a new folder.
func put(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const ortRecord = `[{"cat" : "Node","pid" :7,"tid" :7,"dur" :30,"ts" :5,"ph" : "X","name" :"a_kernel_time","args" : {"op_name" : "Relu","node_index" : "0"}}]`

func packed(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestImport reads a folder of records, packed ones and what is none.
func TestImport(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string][]byte{"a/one.json": []byte(ortRecord), "b/two.json.gz": packed(t, ortRecord), "b/notes.txt": []byte("nothing")})
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	read := int64(0)
	got, err := record.Import(t.Context(), dir, record.Options{Created: at, Progress: func(n int64) { read += n }})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Profiles) != 2 || len(got.Skipped) != 1 || filepath.Base(got.Skipped[0]) != "notes.txt" {
		t.Fatalf("%d profiles, skipped %q", len(got.Profiles), got.Skipped)
	}
	for i, name := range []string{"one", "two"} {
		p := got.Profiles[i]
		if p.Model.Name != name || p.Model.Format != "onnxruntime" || p.Target.Kind != profile.TargetImport || p.Created != "2026-01-02T03:04:05Z" {
			t.Errorf("%+v %+v %s", p.Model, p.Target, p.Created)
		}
		if v, _ := p.Totals.Latency.Best(); v != 30e-6 || p.Totals.Latency.Kind != profile.Imported {
			t.Errorf("%s: %v", name, p.Totals.Latency)
		}
	}
	if read != 2*int64(len(ortRecord)) {
		t.Errorf("progress told of %d bytes, want %d", read, 2*len(ortRecord))
	}
}

// TestImportMixed reads the records of several tools in one log.
func TestImportMixed(t *testing.T) {
	t.Parallel()
	parts := []string{
		"[05/08/2024-14:05:14] [I] === Performance summary ===\n[05/08/2024-14:05:14] [I] Throughput: 690.1 qps\n" +
			"[05/08/2024-14:05:14] [I] Latency: min = 1.40 ms, max = 2.10 ms, mean = 1.60 ms, median = 1.58 ms\n",
		"INFO: Inference timings in us: Init: 16772, First inference: 8781, Warmup (avg): 7514, Inference (avg): 7000\n",
		"conv1  Status.EXECUTED layerType: Conv execType: x realTime (ms): 5.1 cpuTime (ms): 5.1\nTotal time: 5.1 milliseconds\n",
		"CONV_2D took 2500 ticks (2 ms).\nSOFTMAX took 1500 ticks (1 ms).\n",
	}
	for first := range parts {
		text := strings.Join(append(slices.Clone(parts[first:]), parts[:first]...), "")
		got, err := record.Import(t.Context(), put(t, map[string][]byte{"log.txt": []byte(text)}), record.Options{})
		if err != nil {
			t.Fatal(err)
		}
		latency := map[string]float64{}
		for _, p := range got.Profiles {
			latency[p.Model.Format], _ = p.Totals.Latency.Best()
		}
		want := map[string]float64{"tensorrt": 1.58e-3, "tflite-benchmark": 7e-3, "openvino": 5.1e-3, "tflm": 3e-3}
		for format, v := range want {
			// The unit is converted by a division.
			if d := latency[format] - v; d > 1e-12 || d < -1e-12 || len(got.Profiles) != len(parts) || len(got.Skipped) != 0 {
				t.Errorf("%s takes %g s, want %g; %d profiles", format, latency[format], v, len(got.Profiles))
			}
		}
	}
}

// TestImportFolders makes one run of what a tool puts into several folders.
func TestImportFolders(t *testing.T) {
	t.Parallel()
	const table = "weight shape,90% 4x1 perf ratio,80% 4x1 perf ratio,70% 4x1 perf ratio,others\n" +
		"operator type,post op,operator name,input tensor name,input shape,input dtype,output tensor name,output shape,output dtype,weight shape,weight sparse ratio,sparse support,operator latency (ms),aim to weight sparse ratio,sparse kernel pref ratio,aim to sparse latency(ms)\n" +
		"Softmax,,s,x,1x4,fp32,y,1x4,fp32,,0.00%,,2.000, ,,2.000\n"
	const trace = `{"otherData": {}, "traceEvents": [{"cat": "inference", "dur": 2000, "name": "model_inference", "ph": "X", "pid": 0, "tid": "inference", "ts": 0},
{"cat": "iteration", "dur": 2000, "name": "Iteration0", "ph": "X", "pid": 0, "tid": "Iteration", "ts": 0},
{"cat": "Softmax", "dur": 2000, "name": "s", "ph": "X", "pid": 0, "tid": "Operator", "ts": 0, "args": {"reshape_time": "0ms", "forward_time": "2ms", "input_tensor_name": "x", "input_type": "fp32", "input_shape": "1*4", "output_tensor_name": "y", "output_type": "fp32", "output_shape": "1*4", "attributes": ""}}]}`
	dir := put(t, map[string][]byte{
		"engine_profiling/profiling_csv/profiling_2022-12-01_10-00-00_0.csv":    []byte(table),
		"engine_profiling/profiling_trace/profiling_2022-12-01_10-00-00_0.json": []byte(trace),
	})
	got, err := record.Import(t.Context(), dir, record.Options{})
	if err != nil || len(got.Profiles) != 1 || got.Profiles[0].Timeline == nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestImportErrors have types that tell what they are about.
func TestImportErrors(t *testing.T) {
	t.Parallel()
	own := []byte("{\n  \"schema\": \"" + profile.SchemaV1 + "\",\n  \"layers\": []\n}")
	dir := put(t, map[string][]byte{"empty.json": nil, "none.txt": []byte("x"), "ort.json": []byte(ortRecord), "own.json": own})
	for name, c := range map[string]struct {
		path string
		o    record.Options
		want string
	}{
		"empty":     {"empty.json", record.Options{}, "is empty"},
		"no record": {"none.txt", record.Options{}, "not a profile or trace"},
		"own JSON":  {"own.json", record.Options{}, "opmeter report shows it"},
		"another":   {"none.txt", record.Options{Format: "onnxruntime"}, "none.txt"},
	} {
		_, err := record.Import(t.Context(), filepath.Join(dir, c.path), c.o)
		if e, ok := errors.AsType[*record.Error](err); !ok || !strings.Contains(err.Error(), c.want) || filepath.Base(e.File) != c.path {
			t.Errorf("%s: %v", name, err)
		}
	}
	folder := put(t, map[string][]byte{"a.json": own, "b.opmeter": []byte("\x89OPM\r\n"), "note.txt": []byte("x")})
	if _, err := record.Import(t.Context(), folder, record.Options{}); err == nil || !strings.Contains(err.Error(), "2 of 3 files are saved profiles: name the files") {
		t.Errorf("a folder of saved profiles: %v", err)
	}
	if _, err := record.Import(t.Context(), filepath.Join(dir, "absent"), record.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	for _, o := range []record.Options{{Format: "nothing"}, {ClocksHz: map[string]float64{"": 0}}, {ClocksHz: map[string]float64{"tiu": -1}}, {Arch: "bm1684x"}, {ClocksHz: map[string]float64{"": 1e6}}} {
		_, err := record.Import(t.Context(), filepath.Join(dir, "ort.json"), o)
		if _, ok := errors.AsType[*opmeter.OptionError](err); !ok {
			t.Errorf("%+v: %v", o, err)
		}
	}
	_, err := record.VendorFiles(t.Context(), filepath.Join(dir, "ort.json"), record.Options{})
	if _, ok := errors.AsType[*record.Error](err); !ok {
		t.Error(err)
	}
}

// TestImportCommands looks into a directory of a tensor processor.
func TestImportCommands(t *testing.T) {
	t.Parallel()
	made := tpurecords.Make(tpurecords.Options{})
	dir := put(t, made.Files)
	_, err := record.Import(t.Context(), dir, record.Options{Arch: "unheard"})
	if e, ok := errors.AsType[*opmeter.OptionError](err); !ok || !strings.Contains(e.Text, "BM1684X") {
		t.Errorf("an unknown chip: %v", err)
	}
	_, err = record.Import(t.Context(), dir, record.Options{Arch: "bm1688"})
	if e, ok := errors.AsType[*record.Error](err); !ok || e.File != dir {
		t.Errorf("another chip: %v", err)
	}
	if got, err := record.Import(t.Context(), dir, record.Options{Arch: "bm1688", ForceArch: true}); err != nil || len(got.Profiles) != 1 {
		t.Errorf("another chip, forced: %v", err)
	}
	var list bytes.Buffer
	if err := record.WriteCommands(t.Context(), dir, record.Options{}, &list); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for l := range strings.Lines(list.String()) {
		if !strings.HasPrefix(l, "#") {
			lines++
		}
	}
	if want := len(made.Subnets[0].Commands); lines < want {
		t.Errorf("%d lines for %d commands", lines, want)
	}
	if _, err := record.CheckCommands(t.Context(), dir, record.Options{}, &list); err != nil {
		t.Error(err)
	}
	files, err := record.VendorFiles(t.Context(), dir, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range files {
		names[f.Name] = len(f.Data) > 0
	}
	for _, want := range []string{"profile_data.js", "layer.csv", "instruction.csv"} {
		if !names[want] {
			t.Errorf("no %s among %d files", want, len(files))
		}
	}
}

// TestImportJoin finds the models of real profiles of ONNX Runtime in them: at least 95 of
// 100 recorded operators by name or tensor. What is missing the engine put in by itself.
func TestImportJoin(t *testing.T) {
	t.Parallel()
	for file, model := range map[string]string{
		"magika_t1_20runs.json.gz":               "magika_standard_v3_3.onnx",
		"silero_vad_subgraphs_t1_50runs.json.gz": "silero_vad.onnx",
	} {
		m, err := opmeter.Open(material.Path(t, "models", "real", model))
		if err != nil {
			t.Fatal(err)
		}
		got, err := record.Import(t.Context(), material.Path(t, "raw", "traces", "ort", file), record.Options{Model: m})
		if err != nil {
			t.Fatal(err)
		}
		p := got.Profiles[0]
		sure, shaped := 0, 0
		for i := range p.Layers {
			l := &p.Layers[i]
			if c := l.Provenance.Confidence; c == profile.Exact || c == profile.ByTensor {
				sure++
			}
			if len(l.Outputs) > 0 && l.Outputs[0].Name != "" {
				shaped++
			}
		}
		if n := len(p.Layers); 100*sure < 95*n || 100*shaped < 95*n {
			t.Errorf("%s: of %d operators %d are found for sure, %d have the model's tensors", file, n, sure, shaped)
		}
		if p.Model.SHA256 == "" || p.Totals.MACs == nil || p.Totals.Params == nil {
			t.Errorf("%s: lacks what the model tells: %+v", file, p.Totals)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
