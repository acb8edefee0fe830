//go:build linux && (amd64 || arm64)

package openvino_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/openvino"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// childModel makes the test program run one model and tell of it: some models crash the engine.
const childModel = "OPMETER_TEST_OPENVINO_MODEL"

func TestMain(m *testing.M) {
	if file := os.Getenv(childModel); file != "" {
		runtime.LockOSThread()
		if err := json.NewEncoder(os.Stdout).Encode(inspect(file)); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// libraries finds libopenvino_c of every release in the engines' folder.
func libraries(t testing.TB) []string {
	t.Helper()
	dir := os.Getenv("OPMETER_TEST_ENGINES")
	found, _ := filepath.Glob(filepath.Join(dir, "openvino-*", "openvino", "libs", "libopenvino_c.so*"))
	if dir == "" || len(found) == 0 {
		material.Skip(t, "no OpenVINO: set OPMETER_TEST_ENGINES to a folder of unpacked packages, one openvino-VERSION each")
	}
	slices.Sort(found)
	return found
}

// newest is the newest of them.
func newest(t testing.TB) string {
	t.Helper()
	all := libraries(t)
	return all[len(all)-1]
}

// ownRow is how rows are found that the engine put in by itself, with what they serve.
const ownRow = "own"

// told is what a child tells of a model.
type told struct {
	Code    external.Code
	Text    string
	Shares  map[string]float64 // of the time of executed nodes, by how they were found
	Missing []string           // what was not found, with its share
	Ran     int                // executed nodes, those too short for a time as well
	Lost    map[string]int     // of these, those that were not found, by operator
	// share of the model's multiplications that rows do, -1 where it has none
	MACs float64
	// largest difference of outputs to the native engine's, of their range
	Diff    float64
	Outputs string // what cannot be compared
}

// inspect runs a model with both engines.
func inspect(file string) *told {
	r := &told{}
	fail := func(err error) *told {
		r.Text = err.Error()
		if e, ok := errors.AsType[*external.Error](err); ok {
			r.Code = e.Code
		}
		return r
	}
	lib, err := openvino.Open(os.Getenv("OPMETER_TEST_OPENVINO_LIBRARY"))
	if err != nil {
		return fail(err)
	}
	m, err := opmeter.Open(file)
	if err != nil {
		return fail(err)
	}
	native, err := opmeter.NewSession(m, opmeter.RunOptions{})
	if err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp("", "openvino")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	task := &external.Task{Model: file, Format: m.Format(), Threads: 1, Profiled: true, Folder: dir}
	if p := os.Getenv("OPMETER_TEST_OPENVINO_PRECISION"); p != "" {
		task.Options = []external.Option{{Key: "INFERENCE_PRECISION_HINT", Value: p}}
	}
	for _, in := range native.Inputs() {
		task.Inputs = append(task.Inputs, external.Tensor{Name: in.Name, DType: in.DType, Shape: in.Shape, Data: in.Data, Strings: in.Strings})
	}
	s, err := lib.Load(task)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = s.Close() }()
	p := s.(external.Profiled)
	joins := os.Getenv("OPMETER_TEST_OPENVINO_JOINS") != "" // alone, in fewer runs
	for i := range 12 {
		if joins && i == 4 {
			break
		}
		began := time.Now()
		if err := s.Run(); err != nil {
			return fail(err)
		}
		if err := p.AfterRun(int64(time.Since(began)), false); err != nil {
			return fail(err)
		}
		if i == 0 && !joins {
			if err := r.compare(s, native, m); err != nil {
				return fail(err)
			}
		}
	}
	run, err := p.Records()
	if err != nil {
		return fail(err)
	}
	described, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		return fail(err)
	}
	r.share(run.Profile, described, join.Find(described.Layers, run.Profile.Layers, run.Hints))
	return r
}

// share adds up the time of executed nodes by how they were found.
func (r *told) share(p, described *profile.Profile, ms []join.Match) {
	join.Fill(p, described, ms)
	r.Shares, r.Lost = map[string]float64{}, map[string]int{}
	all, had := int64(0), map[int]int64{}
	for i := range described.Layers {
		if n := described.Layers[i].MACs; n != nil {
			all += *n
		}
	}
	for _, m := range ms {
		for _, l := range m.Layers {
			if n := described.Layers[l].MACs; n != nil {
				had[l] = *n
			}
		}
	}
	r.MACs = -1
	if all > 0 {
		r.MACs = 0
		for _, n := range had {
			r.MACs += float64(n) / float64(all)
		}
	}
	total := 0.0
	for i := range p.Layers {
		v, _ := p.Layers[i].Latency.Best()
		total += v
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		how := string(l.Provenance.Confidence)
		if l.Provenance.Inserted {
			how = ownRow
		}
		found := how == string(profile.Exact) || how == string(profile.ByTensor) || how == ownRow
		if l.State == profile.Ran {
			r.Ran++
			if !found {
				r.Lost[l.Op]++
			}
		}
		v, ok := l.Latency.Best()
		if !ok {
			continue
		}
		r.Shares[how] += v / total
		if !found && v/total > 0.01 {
			r.Missing = append(r.Missing, fmt.Sprintf("%.3f %s %s %s", v/total, l.Op, l.Name, how))
		}
	}
}

// compare runs the native engine and finds the largest difference.
func (r *told) compare(s external.Session, native *opmeter.Session, m *opmeter.Model) error {
	got, err := s.Outputs()
	if err != nil {
		return err
	}
	ctx, cancel := contextOf()
	defer cancel()
	if err := native.Run(ctx); err != nil {
		r.Outputs = "native: " + err.Error()
		return nil
	}
	want := native.Outputs()
	if len(got) != len(want) {
		r.Outputs = fmt.Sprintf("%d outputs, native has %d", len(got), len(want))
		return nil
	}
	for i := range want {
		a, b := floats(got[i].DType, got[i].Data), floats(want[i].DType, want[i].Data)
		if got[i].DType != want[i].DType || !slices.Equal(got[i].Shape, want[i].Shape) || len(a) != len(b) {
			r.Outputs += fmt.Sprintf("output %d (%s): %s %v, native %s %s %v; ", i, got[i].Name, got[i].DType, got[i].Shape, want[i].Name, want[i].DType, want[i].Shape)
			continue
		}
		low, high, most := math.Inf(1), math.Inf(-1), 0.0
		for k := range a {
			if math.IsNaN(a[k]) && math.IsNaN(b[k]) || a[k] == b[k] {
				continue
			}
			d := math.Abs(a[k] - b[k])
			if math.IsNaN(d) {
				d = math.Inf(1)
			}
			most = max(most, d)
		}
		for _, v := range b {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
		span := max(high-low, math.Abs(high), math.Abs(low))
		if most > 0 {
			d := most / span
			if !(d <= 1e9) {
				d = 1e9
			}
			r.Diff = max(r.Diff, d)
		}
	}
	return nil
}

// floats reads elements as numbers.
func floats(dtype string, b []byte) (out []float64) {
	typ, _ := tensor.ParseType(dtype)
	switch typ {
	case tensor.Float32:
		for i := 0; i+4 <= len(b); i += 4 {
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))))
		}
	case tensor.Float64:
		for i := 0; i+8 <= len(b); i += 8 {
			out = append(out, math.Float64frombits(binary.LittleEndian.Uint64(b[i:])))
		}
	case tensor.Int64, tensor.Uint64:
		for i := 0; i+8 <= len(b); i += 8 {
			out = append(out, float64(int64(binary.LittleEndian.Uint64(b[i:]))))
		}
	case tensor.Int32:
		for i := 0; i+4 <= len(b); i += 4 {
			out = append(out, float64(int32(binary.LittleEndian.Uint32(b[i:]))))
		}
	case tensor.Int16:
		for i := 0; i+2 <= len(b); i += 2 {
			out = append(out, float64(int16(binary.LittleEndian.Uint16(b[i:]))))
		}
	case tensor.Int8:
		for _, v := range b {
			out = append(out, float64(int8(v)))
		}
	default:
		for _, v := range b {
			out = append(out, float64(v))
		}
	}
	return out
}

// ask runs a model in a child.
func ask(t testing.TB, library, file string) *told {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := contextOf()
	defer cancel()
	c := exec.CommandContext(ctx, self)
	c.Env = append(os.Environ(), childModel+"="+file, "OPMETER_TEST_OPENVINO_LIBRARY="+library)
	b, err := c.Output()
	r := &told{}
	if err != nil {
		text := ""
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			text = strings.SplitN(string(e.Stderr), "\n", 2)[0]
		}
		return &told{Code: external.Crashed, Text: fmt.Sprintf("%v: %s", err, text)}
	}
	if at := strings.LastIndex(strings.TrimSpace(string(b)), "\n"); at > 0 {
		b = b[at+1:]
	}
	if err := json.Unmarshal(b, r); err != nil {
		t.Fatalf("%s: %v: %s", file, err, b)
	}
	return r
}

// contextOf bounds what a model may take.
func contextOf() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 2*time.Minute)
}

// TestAll prints what becomes of every model.
func TestAll(t *testing.T) {
	if os.Getenv("OPMETER_TEST_OPENVINO_ALL") == "" {
		t.Skip("set OPMETER_TEST_OPENVINO_ALL to list all models")
	}
	library := newest(t)
	for _, file := range models(t) {
		r := ask(t, library, file)
		name := filepath.Base(file)
		if r.Text != "" {
			fmt.Printf("%s: %s %s\n", name, r.Code, r.Text)
			continue
		}
		ok := r.found()
		fmt.Printf("%s: joined %.3f (%v) diff %.2g %s %v\n", name, ok, r.Shares, r.Diff, r.Outputs, r.Missing)
	}
}

// found is the share of the time of rows whose operators are known exactly or by tensor, or that
// the engine put in for one that is.
func (r *told) found() float64 {
	return r.Shares[string(profile.Exact)] + r.Shares[string(profile.ByTensor)] + r.Shares[ownRow]
}

// reached are models with their kinds of join: the share of the multiplications that is found at
// least, and what is not found. Where that is nothing, all of the time is found, however long
// each node took in a few runs.
var reached = []struct {
	name string
	macs float64
	lost map[string]int // nodes by operator
}{
	// Batch normalisation folded into convolutions, whose names are gone; sums fused.
	{"real/onnx_light_resnet50.onnx", 1, nil},
	{"real/onnx_light_shufflenet.onnx", 1, nil},
	{"real/ch_PP-OCRv4_det_infer.onnx", 1, nil},
	// Attention and normalisation as one row each.
	{"synthetic/synth_bert_tiny_fp32.onnx", 1, nil},
	{"real/ultraface_rfb320.onnx", 1, nil},
	// Quantised: steps of numbers and changes of form are the engine's own.
	{"real/coral_mnv1_025_128_uint8.tflite", 1, nil},
	{"real/mcunet_vww.tflite", 1, nil},
	{"real/mlperf_tiny_kws_int8.tflite", 1, nil},
	{"mcu/tinymaix_mnist_valid_q.tflite", 1, nil},
	// Transpositions moved; two of its resizings are one row each among changes of form.
	{"real/tfsup_deeplabv3_fp32.tflite", 1, nil},
	// A GRU of both directions runs as two rows, and neither is the operator: the four that the
	// model has stand alone with their multiplications, and so do what cuts their inputs into
	// groups, what puts both directions together, and the changes of form around them, of which
	// some processors need more than others.
	{"real/gtcrn_simple.onnx", 0.9, map[string]int{"GRUSequence": 8, "VariadicSplit": 2, "Unsqueeze": 8, "Concat": 4, changes: -1}},
}

// changes are nodes that change the form of a tensor; -1 of them is any number.
const changes = "Reorder"

// TestReached holds what was reached: all nodes but those that are named, and all that
// multiplies. No time counts.
func TestReached(t *testing.T) {
	library := newest(t)
	t.Setenv("OPMETER_TEST_OPENVINO_JOINS", "1")
	for _, c := range reached {
		r := ask(t, library, material.Path(t, "models", filepath.FromSlash(c.name)))
		if r.Text != "" {
			t.Errorf("%s: %s %s", c.name, r.Code, r.Text)
			continue
		}
		// Shares are sums of parts, each rounded.
		if !(r.MACs >= c.macs-1e-9) {
			t.Errorf("%s: %.3f of the multiplications are found, want %.2f", c.name, r.MACs, c.macs)
		}
		lost := 0
		for op, n := range r.Lost {
			lost += n
			if want := c.lost[op]; n != want && want >= 0 {
				t.Errorf("%s: %d of %s are not found, want %d: %v", c.name, n, op, want, r.Missing)
			}
		}
		// Nine tenths of the nodes in any case.
		if r.Ran == 0 || 10*lost > r.Ran {
			t.Errorf("%s: %d of %d executed nodes are not found: %v", c.name, lost, r.Ran, r.Lost)
		}
		t.Logf("%s: %d nodes, not found %v", c.name, r.Ran, r.Lost)
	}
}

// models lists the models of the reference material.
func models(t testing.TB) (files []string) {
	t.Helper()
	for _, dir := range []string{"real", "synthetic", "mcu"} {
		for _, end := range []string{"*.onnx", "*.tflite"} {
			list, _ := filepath.Glob(filepath.Join(material.Path(t, "models", dir), end))
			files = append(files, list...)
		}
	}
	if want := os.Getenv("OPMETER_TEST_OPENVINO_ALL"); want != "" && want != "1" {
		files = slices.DeleteFunc(files, func(f string) bool { return !strings.Contains(f, want) })
	}
	return files
}
