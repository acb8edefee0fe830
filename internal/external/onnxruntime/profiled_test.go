package onnxruntime

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// relus is a model of a chain of n Relus.
func relus(t testing.TB, n int) string {
	x := newNet()
	x.input("t0", tensor.Float32, 64)
	last := "t0"
	for i := range n {
		next := "t" + string(rune('1'+i))
		x.node("n"+next, []string{"Relu", "Neg"}[i%2], nil, []string{next}, last)
		last = next
	}
	x.output(last, tensor.Float32, []int{64})
	return x.save(t)
}

func recording(t testing.TB, l *library, file string, ins ...external.Tensor) (*profiled, string) {
	t.Helper()
	folder := t.TempDir()
	s, err := l.Load(&external.Task{Model: file, Format: "onnx", Threads: 1, Folder: folder, Profiled: true, Inputs: ins, Options: []external.Option{{Key: "optimization", Value: "none"}}})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*profiled), folder
}

func files(t testing.TB, folder string) int {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// runs is how many inferences a recorded run is over, the first one included.
func runs(r *runlog.Run) int { return len(r.Profile.Totals.LatencySamples) }

// TestProfiled records runs over several sessions of the library, leaves out what is to be
// forgotten, and leaves no file.
func TestProfiled(t *testing.T) {
	t.Parallel()
	file := relus(t, 4)
	x := external.Tensor{Name: "t0", DType: "float32", Shape: []int{64}, Data: make([]byte, 256)}
	each(t, func(t *testing.T, l *library) {
		p, folder := recording(t, l, file, x)
		if r, err := p.Records(); err != nil || r != nil {
			t.Errorf("%v, %v before a run", r, err)
		}
		do := func(n int) {
			for range n {
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
				if err := p.AfterRun(0, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		do(1) // not recorded: Records ended the session
		do(3)
		if err := p.Reset(); err != nil {
			t.Fatal(err)
		}
		before := p.Remaining()
		do(5)
		if p.Remaining() != before-5 {
			t.Errorf("%d runs remain after 5 of %d", p.Remaining(), before)
		}
		r, err := p.Records()
		if err != nil {
			t.Fatal(err)
		}
		// The first inference counts separately.
		if runs(r) != 4 || len(r.Profile.Layers) != 4 || r.Profile.Phases == nil || r.Profile.Phases.FirstRunS == nil {
			t.Errorf("%d runs of %d layers", runs(r), len(r.Profile.Layers))
		}
		for i, op := range []string{"Relu", "Neg", "Relu", "Neg"} {
			if h := r.Hints[i]; r.Profile.Layers[i].Op != op || len(h.Outputs) != 1 || h.Outputs[0] != "t"+string(rune('1'+i)) || len(h.Inputs) != 1 || h.Inputs[0] != "t"+string(rune('0'+i)) {
				t.Errorf("%s: %+v", r.Profile.Layers[i].Op, h)
			}
		}
		// A session that is full gives way at once, and nothing of it is lost.
		p.left = 0
		do(1) // not recorded
		p.left = 1
		do(2)
		p.left = 0
		if r, err = p.Records(); err != nil || runs(r) != 6 {
			t.Fatalf("%d runs, %v", runs(r), err)
		}
		do(2)
		if r, err = p.Records(); err != nil || runs(r) != 8 {
			t.Fatalf("%d runs, %v", runs(r), err)
		}
		b, err := p.Clone()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
		if r, err := b.(external.Profiled).Records(); err != nil || runs(r) != 1 {
			t.Errorf("beside: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if n := files(t, folder); n != 0 {
			t.Errorf("%d files are left", n)
		}
	})
}

// TestRefused leaves nothing of a session that could not be made.
func TestRefused(t *testing.T) {
	t.Parallel()
	l := open(t, "1.32.0")
	folder := t.TempDir()
	_, err := l.Load(&external.Task{Model: relus(t, 2), Format: "onnx", Threads: 1, Folder: folder, Profiled: true, Inputs: []external.Tensor{{Name: "t0", DType: "int8", Shape: []int{64}, Data: make([]byte, 64)}}})
	if code(err) != external.Rejected || files(t, folder) != 0 {
		t.Errorf("%v, %d files", err, files(t, folder))
	}
}

// joined are models with their kinds of join: layouts, fusion, quantisation, bodies, weights
// beside the file, half precision.
var joined = []string{
	"real/keijiro_blazeface_front.onnx", "real/mltr13_resnet.onnx", "real/silero_vad_16k_op15.onnx", "real/gtcrn_simple.onnx",
	"real/winml_SqueezeNet_fp16.onnx", "real/ultraface_rfb320.onnx", "synthetic/synth_mlp_external_data.onnx", "synthetic/synth_bert_tiny_fp32.onnx",
	"mcu/mlperf_kai_kws_ref_model_int8.onnx", "real/dtln_model_2.onnx",
}

// TestJoined finds 95 % of the recorded time in the model exactly or by tensor, at all levels.
func TestJoined(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *library) {
		for _, name := range joined {
			path := material.Path(t, "models", filepath.FromSlash(name))
			base, ins, _ := fed(t, path)
			for _, level := range []string{"none", "basic", "extended", "all"} {
				task := &external.Task{Model: path, Format: "onnx", Threads: 1, Folder: t.TempDir(), Profiled: true, Inputs: ins, Options: []external.Option{{Key: "optimization", Value: level}}}
				s, err := l.Load(task)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for range 3 {
					if err := s.Run(); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
				}
				r, err := s.(external.Profiled).Records()
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				join.Fill(r.Profile, base, join.Find(base.Layers, r.Profile.Layers, r.Hints))
				all, sure, heavy := 0.0, 0.0, 0
				for i := range r.Profile.Layers {
					row := &r.Profile.Layers[i]
					if row.Latency == nil {
						continue
					}
					all += *row.Latency.Median
					if c := row.Provenance.Confidence; c == profile.Exact || c == profile.ByTensor {
						sure += *row.Latency.Median
					}
					if row.MACs != nil && *row.MACs > 0 && !row.Provenance.Inserted {
						heavy++
					}
				}
				if !(sure >= 0.95*all) || heavy == 0 {
					t.Errorf("%s at %s: %.1f %% is sure, %d rows multiply", name, level, 100*sure/all, heavy)
				}
			}
		}
	})
}

// sizes are shapes of inputs that models leave open and that 1 does not do for.
var sizes = map[string]map[string][]int{"silero_vad_16k_op15.onnx": {"input": {1, 512}, "state": {2, 1, 128}}}

// fed describes a model and makes inputs; the session is opmeter's own.
func fed(t testing.TB, path string) (*profile.Profile, []external.Tensor, *opmeter.Session) {
	t.Helper()
	m, err := opmeter.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	in := opmeter.Inputs{Shapes: sizes[filepath.Base(path)]}
	base, err := opmeter.Count(m, in)
	if err != nil {
		t.Fatal(err)
	}
	s, err := opmeter.NewSession(m, opmeter.RunOptions{Inputs: in})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var ins []external.Tensor
	for _, x := range s.Inputs() {
		ins = append(ins, external.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape, Data: slices.Clone(x.Data), Strings: x.Strings})
	}
	return base, ins, s
}

// TestOutputs compares what the releases make with what opmeter's own engine makes.
func TestOutputs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *library) {
		for _, name := range []string{"keijiro_blazeface_front.onnx", "ultraface_rfb320.onnx", "silero_vad_16k_op15.onnx", "dtln_model_2.onnx", "yunet_n_320_320.onnx", "tract_lgbm_classifier_tensor.onnx"} {
			path := material.Path(t, "models", "real", name)
			_, ins, own := fed(t, path)
			if err := own.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			s, err := l.Load(&external.Task{Model: path, Format: "onnx", Threads: 2, Folder: t.TempDir(), Inputs: ins})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time outputs are written again
				if err := s.Run(); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.Outputs()
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range own.Outputs() {
				if got[i].Name != want.Name || got[i].DType != want.DType || !slices.Equal(got[i].Shape, want.Shape) {
					t.Errorf("%s: %s %s%v, want %s %s%v", name, got[i].Name, got[i].DType, got[i].Shape, want.Name, want.DType, want.Shape)
					continue
				}
				// sums of float32 in another order, through many layers
				if d := apart(got[i], want); !(d <= 1e-3) {
					t.Errorf("%s: %s is %g of its largest element off", name, want.Name, d)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// apart is the largest difference of two tensors, as a part of the largest element.
func apart(a external.Tensor, b opmeter.Tensor) float64 {
	if a.DType != "float32" {
		if bytes.Equal(a.Data, b.Data) && slices.Equal(a.Strings, b.Strings) {
			return 0
		}
		return math.NaN()
	}
	most, diff := 1e-3, 0.0 // what is next to nothing is compared as it is
	for i := 0; i+4 <= len(b.Data); i += 4 {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data[i:])))
		y := float64(math.Float32frombits(binary.LittleEndian.Uint32(b.Data[i:])))
		if math.IsNaN(x) != math.IsNaN(y) {
			return math.NaN()
		}
		if !math.IsNaN(x) {
			most, diff = max(most, math.Abs(y)), max(diff, math.Abs(x-y))
		}
	}
	return diff / most
}
