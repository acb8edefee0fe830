package rewrite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/litert"
	"github.com/opmeter/opmeter/internal/external/onnxruntime"
	"github.com/opmeter/opmeter/internal/external/tflite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// foreign opens the newest library of an external engine available to tests.
func foreign(t *testing.T, pattern string, open func(string) (external.Library, error)) external.Library {
	t.Helper()
	dir := os.Getenv("OPMETER_TEST_ENGINES")
	found, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if dir == "" || len(found) == 0 {
		material.Skip(t, pattern+" is absent: set OPMETER_TEST_ENGINES to a folder of unpacked packages")
	}
	lib, err := open(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// ask runs a model in an external engine.
func ask(t *testing.T, lib external.Library, m *graph.Model, in []*tensor.Tensor) ([]external.Tensor, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m."+m.Format)
	if err := rewrite.Write(m, path); err != nil {
		return nil, err
	}
	task := &external.Task{Model: path, Format: m.Format, Threads: 1, Folder: t.TempDir()}
	// plain loops, which are what opmeter's integers are equal to
	if slices.ContainsFunc(lib.About().Options, func(o external.OptionInfo) bool { return o.Key == "kernel" }) && m.Format == "tflite" {
		task.Options = []external.Option{{Key: "kernel", Value: "reference"}}
	}
	// products with weights behind DequantizeLinear are of floats, and not of activations that it
	// quantises on its own
	if m.Format == "onnx" {
		task.Options = []external.Option{{Key: "session.qdq_matmulnbits_accuracy_level", Value: "1"}}
	}
	for i, x := range in {
		task.Inputs = append(task.Inputs, external.Tensor{Name: m.Main().Values[m.Main().Inputs[i]].Name, DType: x.Type.String(), Shape: x.Shape, Data: x.Data})
	}
	s, err := lib.Load(task)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	if err := s.Run(); err != nil {
		return nil, err
	}
	return s.Outputs()
}

// changed are the tested changes.
var changed = []study.Change{
	{Structure: study.Unstructured, Level: 0.5},
	{Structure: study.Unstructured, Level: 0.3, Format: study.Half},
	{Structure: study.Unstructured, Level: 0.3, Format: study.Weight8},
	{Structure: study.Unstructured, Level: 0.3, Format: study.Weight4},
	{Structure: study.Unstructured, Level: 0.3, Format: study.Int8},
	{Structure: study.Unstructured, Level: 0.3, Format: study.Dynamic8},
	{Structure: study.Filter, Level: 0.5},
	{Structure: study.Channel, Level: 0.5, Format: study.Int8},
}

// TestEngines loads and runs models in external engines with all weights changed, channels and
// filters removed.
func TestEngines(t *testing.T) {
	for _, tt := range []struct {
		name, library string
		open          func(string) (external.Library, error)
		models        []string
	}{
		{"onnxruntime", "onnxruntime-1.32.*/onnxruntime/capi/libonnxruntime.so.1.*", onnxruntime.Open, []string{
			"basicpitch_nmp", "dtln_model_2", "genai_tiny_gpt2_past", "gtcrn_simple", "keijiro_blazeface_front", "mltr13_kws_ref_model", "mltr13_resnet",
			"pytorch_super_resolution", "ultraface_rfb320", "winml_mnist", "mltr13_vww_96_float", "winml_SqueezeNet_fp16", "shark_quantizedmlp",
		}},
		{"litert", "ai_edge_litert-2.*/ai_edge_litert/libLiteRt.so", litert.Open, []string{
			"coral_mnv1_025_128_uint8", "dtln_model_2", "mlperf_tiny_ad01_fp32", "mlperf_tiny_kws_fp32", "mlperf_tiny_kws_int8", "mlperf_tiny_resnet8_fp32", "mlperf_tiny_resnet8_int8",
			"mlperf_tiny_vww96_fp32", "mp_face_detection_short_range", "mp_face_detection_full_range_sparse", "tfsup_mobilenet_v1_025_224_fp32", "tfsup_movie_review", "tfsup_dilated_conv", "coral_mnv2_224_uint8", "mp_hand_landmark_lite", "lyra_quantizer",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lib := foreign(t, tt.library, tt.open)
			end := map[string]string{"onnxruntime": "onnx", "litert": "tflite"}[tt.name]
			for _, name := range tt.models {
				for _, c := range changed {
					t.Run(fmt.Sprintf("%s/%s%s", name, c.Structure, c.Format), func(t *testing.T) {
						m := open(t, material.Path(t, "models", "real", name+"."+end))
						agree(t, lib, m, madeInputs(t, m), c)
					})
				}
			}
			if end == "onnx" {
				m := open(t, material.Path(t, "models", "synthetic", "synth_mlp_external_data.onnx"))
				for _, c := range changed {
					t.Run(fmt.Sprintf("beside/%s%s", c.Structure, c.Format), func(t *testing.T) { agree(t, lib, m, madeInputs(t, m), c) })
				}
			}
			for _, c := range changed {
				t.Run(fmt.Sprintf("tables/%s%s", c.Structure, c.Format), func(t *testing.T) { agree(t, lib, tables(end), places(), c) })
			}
			bodies := map[string]func() *graph.Model{"onnx": branches, "tflite": liteBranches}[end]()
			for _, c := range changed {
				for _, way := range []bool{true, false} {
					t.Run(fmt.Sprintf("bodies/%v/%s%s", way, c.Structure, c.Format), func(t *testing.T) { agree(t, lib, bodies, ways(bodies, way), c) })
				}
			}
			for i := range 8 { // networks in bodies
				m := rapid.Custom(func(t *rapid.T) *graph.Model { return wrapped(t, draw(t)) }).Example(i)
				if m.Format != end {
					continue
				}
				for _, c := range changed {
					t.Run(fmt.Sprintf("wrapped %d/%s%s", i, c.Structure, c.Format), func(t *testing.T) { agree(t, lib, m, madeInputs(t, m), c) })
				}
			}
			for i := range 24 { // hidden units and heads
				m := rapid.Custom([]func(*rapid.T) *graph.Model{recurrent, attention, fused}[i%3]).Example(i)
				// States of operators of TFLite are nothing that this interface of LiteRT takes.
				if m.Format != end || m.Format == "tflite" && i%3 == 0 {
					continue
				}
				t.Run(fmt.Sprintf("drawn %d", i), func(t *testing.T) {
					agree(t, lib, m, madeInputs(t, m), study.Change{Structure: study.Filter, Level: 0.5})
				})
			}
		})
	}
}

// TestEnginesTogether runs recurrent operators with integer weights and float activations in
// TensorFlow Lite, which supports variable tensors.
func TestEnginesTogether(t *testing.T) {
	lib := foreign(t, "tfjs_tflite_node-*/package/cc_deps/"+runtime.GOOS+"_"+runtime.GOARCH+"/libtensorflowlite_c.*", tflite.Open)
	// the other is not well formed: its state is too small for its filters
	for _, name := range liteRecurrent[:1] {
		m := open(t, material.Path(t, "models", "tflite_ops", name+".tflite"))
		t.Run(name, func(t *testing.T) { agree(t, lib, m, madeInputs(t, m), study.Change{Format: study.Weight8}) })
	}
	for i := range 16 {
		m := rapid.Custom(recurrent).Example(i)
		if m.Format == "tflite" {
			t.Run(fmt.Sprintf("drawn %d", i), func(t *testing.T) {
				agree(t, lib, m, madeInputs(t, m), study.Change{Structure: study.Filter, Level: 0.5})
			})
		}
	}
}

func agree(t *testing.T, lib external.Library, m *graph.Model, in []*tensor.Tensor, c study.Change) {
	t.Helper()
	layers := weights.All(m, nil)
	changes := make([]rewrite.Change, len(layers))
	for i, l := range layers {
		changes[i] = rewrite.Change{Layer: l, Change: c}
	}
	next, _, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := ask(t, lib, next, in)
	if err != nil {
		t.Fatal(err)
	}
	ours := run(t, next, in, engine.Options{Exact: true})
	// The same weights as floats: how far rounding takes the outputs.
	exact := ours
	if c.Format != study.OriginalFormat && c.Format != study.Half {
		for i := range changes {
			changes[i].Format = study.OriginalFormat
		}
		floats, _, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
		if err != nil {
			t.Fatal(err)
		}
		exact = run(t, floats, in, engine.Options{Exact: true})
	}
	for i := range m.Main().Outputs {
		want := ours.Output(i)
		if theirs[i].DType != want.Type.String() {
			t.Errorf("output %d is %s, want %v", i, theirs[i].DType, want.Type)
			continue
		}
		got := &tensor.Tensor{Type: want.Type, Shape: want.Shape, Data: theirs[i].Data}
		if len(got.Data) < want.Type.Bytes(want.Len()) {
			t.Errorf("output %d has shape %v, want %v", i, theirs[i].Shape, want.Shape)
			continue
		}
		if want.Type != tensor.Float32 {
			if before := unchanged(t, lib, m, in)[i]; string(got.Data) != string(want.Data[:want.Type.Bytes(want.Len())]) && before {
				t.Errorf("output %d differs, and does not in the unchanged model", i)
			}
			continue
		}
		// Floats are added up in other orders: 90 dB is 15 of the 24 bits of a sum. Where that
		// moves a code of 8 bits, and through it the codes of later layers, it does no more than
		// rounding to codes does: the engines are not further apart than twice what rounding does
		// to the outputs.
		least := min(90, snr(want, exact.Output(i))-6)
		// nothing but zeros are not dB apart
		if s := snr(got, want); !(s >= least) && string(got.Data) != string(want.Data) {
			t.Errorf("output %d is %.1f dB from opmeter's, want %.1f", i, s, least)
		}
	}
}

// unchanged reports for which outputs of a model the engine is bit-exact with opmeter: its
// integer kernels differ between versions from those of the reference values.
func unchanged(t *testing.T, lib external.Library, m *graph.Model, in []*tensor.Tensor) []bool {
	t.Helper()
	theirs, err := ask(t, lib, m, in)
	if err != nil {
		t.Fatal(err)
	}
	ours := run(t, m, in, engine.Options{Exact: true})
	out := make([]bool, len(theirs))
	for i := range out {
		want := ours.Output(i)
		out[i] = string(theirs[i].Data) == string(want.Data[:want.Type.Bytes(want.Len())])
	}
	return out
}
