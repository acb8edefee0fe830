//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package litert

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// native is a model with the inputs and, once run, the outputs of opmeter's own engine.
type native struct {
	model   *opmeter.Model
	session *opmeter.Session
	task    *external.Task
}

func opened(t *testing.T, path string) *native {
	t.Helper()
	m, err := opmeter.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := opmeter.NewSession(m, opmeter.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	n := &native{model: m, session: s, task: task(path)}
	for _, x := range s.Inputs() {
		n.task.Inputs = append(n.task.Inputs, external.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape, Data: append([]byte(nil), x.Data...), Strings: x.Strings})
	}
	return n
}

// joined is how much of the recorded time has been joined, exactly or by tensor, and how much
// there is.
func (n *native) joined(t *testing.T, r *runlog.Run) (share, sum float64) {
	t.Helper()
	base, err := opmeter.Count(n.model, opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	join.Fill(r.Profile, base, join.Find(base.Layers, r.Profile.Layers, r.Hints))
	sure := 0.0
	for i := range r.Profile.Layers {
		l := &r.Profile.Layers[i]
		v, _ := l.Latency.Best()
		v += 1e-9 // of operators that take less than the profiler's unit, each counts alike
		sum += v
		if c := l.Provenance.Confidence; c == profile.Exact || c == profile.ByTensor {
			sure += v
		} else {
			t.Logf("%s: %s %q %s: %g us", filepath.Base(n.task.Model), l.Op, l.Kernel, c, v*1e6)
		}
	}
	return sure / sum, sum
}

// refused are reference models that LiteRT 2.3 does not run, with what it says. One more it
// crashes on, its own Python interface included: it writes the outputs of ultraface_rfb320 beyond
// the buffers that it asked for.
var refused = map[string]string{
	"coral_bodypix_uint8": "PosenetDecoderOp", "mp_face_landmark_with_attention": "TransformTensorBilinear", "tflm_audio_preprocessor_float": "SignalWindow", "tflm_audio_preprocessor_int8": "SignalWindow",
	"coral_lstm_mnist_ptq": "variable", "tflm_dtln_noise_suppression": "variable", "tflm_keyword_scrambled": "variable", "tflm_micro_speech_lstm": "variable", "tflm_trained_lstm": "variable", "tflm_trained_lstm_int8": "variable",
	"tflm_person_detect":      "does not compile", // quantised dimension out of range
	"basicpitch_nmp":          "failed",           // outputs of open size take no buffers
	"tinymaix_mbnet96_0.25_q": "failed",
}

// TestJoined runs the reference models: nine tenths of the time belong to operators of the
// model, exactly or by tensor.
func TestJoined(t *testing.T) {
	lib := engine(t)
	for _, folder := range []string{"real", "mcu"} {
		files, err := filepath.Glob(filepath.Join(material.Path(t, "models", folder), "*.tflite"))
		if err != nil || len(files) < 30 {
			t.Fatalf("%d models, %v", len(files), err)
		}
		for _, f := range files {
			name := strings.TrimSuffix(filepath.Base(f), ".tflite")
			if name == "ultraface_rfb320" || testing.Short() && !strings.HasPrefix(name, "ml") {
				continue
			}
			t.Run(folder+"/"+name, func(t *testing.T) { joins(t, lib, f, refused[name]) })
		}
	}
}

func joins(t *testing.T, lib external.Library, path, says string) {
	n := opened(t, path)
	n.task.Profiled = true
	r, err := records(lib, n.task)
	switch {
	case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
		t.Errorf("got %v, want an error with %q", err, says)
	case says != "":
	case err != nil:
		t.Error(err)
	case r == nil:
		t.Error("nothing was recorded")
	default:
		share, sum := n.joined(t, r)
		want := 0.9
		if sum < 1e-5 {
			want = 0.75 // of ten of the profiler's units no share is sure
		}
		if !(share >= want) {
			t.Errorf("%.3f of %g s is joined exactly or by tensor", share, sum)
		}
	}
}

// records runs a task with the profiler on.
func records(lib external.Library, k *external.Task) (*runlog.Run, error) {
	s, err := lib.Load(k)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	p, ok := s.(external.Profiled)
	if !ok || p.Remaining() >= 0 {
		return nil, fmt.Errorf("%T is not a profiled session with room", s)
	}
	for range 3 {
		if err := p.Run(); err != nil {
			return nil, err
		}
		if err := p.AfterRun(-1, false); err != nil {
			return nil, err
		}
	}
	return p.Records()
}

// TestForget: what was recorded before does not count, and recording goes on.
func TestForget(t *testing.T) {
	lib := engine(t)
	k := opened(t, material.Path(t, "models", "real", "mlperf_tiny_kws_int8.tflite")).task
	k.Profiled = true
	s, err := lib.Load(k)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	p := s.(external.Profiled)
	run := func(n int) {
		for range n {
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			if err := p.AfterRun(1e9, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(3)
	if err := p.Reset(); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Records(); r != nil || err != nil {
		t.Fatalf("got %v, %v", r, err)
	}
	run(5)
	r, err := p.Records()
	if err != nil || r == nil {
		t.Fatal(err)
	}
	// The first one counts separately.
	if m := r.Profile.Totals.Latency; m == nil || m.N == nil || *m.N != 4 || *m.Mean != 1 {
		t.Errorf("got %+v", m)
	}
	run(1)
	again, err := p.Records()
	if err != nil || *again.Profile.Totals.Latency.N != 5 || len(again.Profile.Layers) != len(r.Profile.Layers) {
		t.Errorf("got %+v, %v", again, err)
	}
}

// TestReference: TFLite's reference kernels and opmeter's own compute the same bytes of
// quantised models that hold no sums, which TFLite rounds twice.
func TestReference(t *testing.T) {
	lib := engine(t)
	for _, name := range []string{"mlperf_tiny_kws_int8", "mlperf_tiny_vww96_int8", "tflm_hello_world_int8", "tflm_micro_speech_quantized", "coral_mnv1_025_128_uint8"} {
		t.Run(name, func(t *testing.T) {
			n := opened(t, material.Path(t, "models", "real", name+".tflite"))
			n.task.Options = []external.Option{{Key: "kernel", Value: "reference"}}
			if d, err := n.differs(lib); err != nil || d != 0 {
				t.Errorf("outputs differ by up to %g, %v", d, err)
			}
		})
	}
	// Floating point: other orders of summation. What is left is a few units in the last place of
	// values about 1, 2^-23 each, over networks of some ten layers.
	for _, name := range []string{"mlperf_tiny_resnet8_fp32", "mlperf_tiny_vww96_fp32", "tfsup_mobilenet_v1_025_224_fp32"} {
		t.Run(name, func(t *testing.T) {
			n := opened(t, material.Path(t, "models", "real", name+".tflite"))
			if d, err := n.differs(lib); err != nil || !(d <= 1e-5) {
				t.Errorf("outputs differ by up to %g, %v", d, err)
			}
		})
	}
}

// differs is the largest difference between outputs of this engine and opmeter's own.
func (n *native) differs(lib external.Library) (most float64, err error) {
	s, err := lib.Load(n.task)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }()
	if err := s.Run(); err != nil {
		return 0, err
	}
	out, err := s.Outputs()
	if err != nil {
		return 0, err
	}
	if err := n.session.Run(context.Background()); err != nil {
		return 0, err
	}
	for i, want := range n.session.Outputs() {
		if i >= len(out) || len(out[i].Data) != len(want.Data) || out[i].DType != want.DType {
			return 0, fmt.Errorf("output %d: %+v", i, out)
		}
		a, b := numbers(out[i].DType, out[i].Data), numbers(want.DType, want.Data)
		for k := range a {
			if d := math.Abs(a[k] - b[k]); !(d <= most) {
				most = d
			}
		}
	}
	return most, nil
}

func numbers(dtype string, b []byte) (out []float64) {
	switch dtype {
	case "int8":
		for _, x := range b {
			out = append(out, float64(int8(x))) //nolint:gosec // two's complement
		}
	case "uint8":
		for _, x := range b {
			out = append(out, float64(x))
		}
	case "float32":
		for ; len(b) >= 4; b = b[4:] {
			out = append(out, float64(math.Float32frombits(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24)))
		}
	default:
		out = append(out, math.NaN())
	}
	return out
}
