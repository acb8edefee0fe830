package rewrite_test

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// huge are models with generated weights that take seconds to run.
var huge = []string{"vgg19", "resnet50", "alexnet", "zfnet", "inception", "light_", "qwen35", "conformer", "lyragan", "deeplab"}

// each opens the reference models of folders, duplicates once.
func each(t *testing.T, most int64, folders []string, skip []string, do func(t *testing.T, file string, m *graph.Model)) {
	seen := map[[sha256.Size]byte]bool{}
	for _, folder := range folders {
		for _, end := range []string{"*.onnx", "*.tflite"} {
			files, err := filepath.Glob(filepath.Join(material.Path(t, "models", folder), end))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if slices.ContainsFunc(skip, func(s string) bool { return strings.Contains(file, s) }) {
					continue
				}
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if sum := sha256.Sum256(b); seen[sum] {
					continue
				} else {
					seen[sum] = true
				}
				t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
					// Tests of many changes take small models, all where all material must be
					// there.
					if int64(len(b)) > most && !material.Required() {
						t.Skip("a large model: set OPMETER_REQUIRE")
					}
					m, err := modelfile.Open(file)
					if err != nil {
						t.Skip(err)
					}
					if m.Close != nil {
						defer func() { _ = m.Close() }()
					}
					do(t, file, m)
				})
			}
		}
	}
}

func open(t *testing.T, file string) *graph.Model {
	t.Helper()
	m, err := modelfile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if m.Close != nil {
		t.Cleanup(func() { _ = m.Close() })
	}
	return m
}

// run runs a model once and returns the session, nil if it cannot run on its own.
func run(t *testing.T, m *graph.Model, in []*tensor.Tensor, o engine.Options) *engine.Session {
	t.Helper()
	o.Registry, o.Threads = operators.Registry(), 1
	s, err := engine.New(m, in, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Close)
	if err := s.Run(t.Context()); err != nil {
		t.Fatalf("run: %v", err)
	}
	return s
}

// runs reports whether a model runs on synthetic inputs, with all its outputs.
func runs(t *testing.T, m *graph.Model, in []*tensor.Tensor) bool {
	t.Helper()
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Threads: 1})
	if err != nil {
		return false
	}
	defer s.Close()
	if s.Run(t.Context()) != nil {
		return false
	}
	for i := range m.Main().Outputs {
		if s.Output(i) == nil {
			return false
		}
	}
	return true
}

func madeInputs(t *testing.T, m *graph.Model) []*tensor.Tensor {
	t.Helper()
	in, _, err := inputs.Inputs(m, inputs.Options{Seed: 1})
	if err != nil {
		t.Skip(err)
	}
	return in
}

// parse reads a written model.
func parse(t *testing.T, m *graph.Model) *graph.Model {
	t.Helper()
	b, err := rewrite.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	var back *graph.Model
	if m.Format == "tflite" {
		back, err = tflite.Parse(b, "written.tflite")
	} else {
		back, err = onnx.Parse(b, "written.onnx", "")
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func equal(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	if (got == nil) != (want == nil) {
		t.Errorf("%s: %v, want %v", what, got, want)
		return
	}
	if got == nil {
		return
	}
	if got.Type != want.Type || !slices.Equal(got.Shape, want.Shape) || !slices.Equal(got.Strings, want.Strings) {
		t.Errorf("%s: %v %v, want %v %v", what, got.Type, got.Shape, want.Type, want.Shape)
		return
	}
	if n := got.Type.Bytes(got.Len()); !got.Type.IsContainer() && !bytes.Equal(got.Data[:n], want.Data[:n]) {
		t.Errorf("%s differs", what)
	}
}

// TestRoundTrip writes all reference models and reads them again: the results are the same.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	each(t, 4<<20, []string{"real", "mcu", "synthetic"}, huge, func(t *testing.T, _ string, m *graph.Model) {
		back := parse(t, m)
		in := madeInputs(t, m)
		if !runs(t, m, in) {
			t.Skip("does not run by itself")
		}
		want, got := run(t, m, in, engine.Options{}), run(t, back, in, engine.Options{})
		for i := range m.Main().Outputs {
			equal(t, "output", got.Output(i), want.Output(i))
		}
	})
}

// TestKept writes changed models and checks everything besides the operators: names of inputs and
// outputs, metadata, signatures, producer, description, name.
func TestKept(t *testing.T) {
	t.Parallel()
	each(t, 4<<20, []string{"real", "mcu"}, huge, func(t *testing.T, _ string, m *graph.Model) {
		var changes []rewrite.Change
		for _, l := range weights.All(m, nil) {
			changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Format: study.Half}})
		}
		next, _, err := rewrite.Apply(m, changes, rewrite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		back := parse(t, next)
		names := func(m *graph.Model) (out []string) {
			for _, id := range slices.Concat(m.Main().Inputs, m.Main().Outputs) {
				if id >= 0 {
					out = append(out, m.Main().Values[id].Name)
				}
			}
			return out
		}
		if got, want := names(back), names(m); !slices.Equal(got, want) {
			t.Errorf("names %q, want %q", got, want)
		}
		if back.Producer != m.Producer || back.Description != m.Description || back.Name != m.Name || len(back.Graphs) != len(m.Graphs) {
			t.Errorf("%q, %q, %q, want %q, %q, %q", back.Producer, back.Description, back.Name, m.Producer, m.Description, m.Name)
		}
		if !reflect.DeepEqual(back.Metadata, m.Metadata) || !reflect.DeepEqual(back.Signatures, m.Signatures) || !maps.Equal(back.Opsets, m.Opsets) {
			t.Errorf("%v, %v, want %v, %v", back.Signatures, back.Opsets, m.Signatures, m.Opsets)
		}
	})
}

// TestTooLarge encodes a model that exceeds the file size limit.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	c := tensor.New(tensor.Uint8, 1<<24)
	g := &graph.Graph{}
	for i := range 1 << 7 {
		g.Values = append(g.Values, &graph.Value{ID: i, Const: c})
	}
	if _, err := rewrite.Encode(&graph.Model{Format: "onnx", Name: "net", Graphs: []*graph.Graph{g}}); err == nil || !strings.Contains(err.Error(), "2 GiB") {
		t.Errorf("error %v", err)
	}
}

// TestBeside writes a model with external constants: they are external again, page-aligned, and
// the model is the same. Its own source is not overwritten, and nothing appears if the second
// file cannot be written.
func TestBeside(t *testing.T) {
	t.Parallel()
	m := open(t, material.Path(t, "models", "synthetic", "synth_mlp_external_data.onnx"))
	if len(m.Beside) != 1 {
		t.Fatalf("files beside the model: %q", m.Beside)
	}
	var changes []rewrite.Change
	for _, l := range weights.All(m, nil) {
		changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Structure: study.Unstructured, Level: 0.5}})
	}
	next, _, err := rewrite.Apply(m, changes, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "small.onnx")
	if err := rewrite.Write(next, path); err != nil {
		t.Fatal(err)
	}
	back := open(t, path)
	if len(back.Beside) != 1 || filepath.Base(back.Beside[0]) != "small.onnx.data" || back.FileBytes > 1<<14 {
		t.Errorf("%d bytes, and beside %q", back.FileBytes, back.Beside)
	}
	in := madeInputs(t, m)
	want, got := run(t, next, in, engine.Options{}), run(t, back, in, engine.Options{})
	for i := range m.Main().Outputs {
		equal(t, "output", got.Output(i), want.Output(i))
	}
	if err := rewrite.Write(back, path); err == nil || !strings.Contains(err.Error(), "would replace it") {
		t.Errorf("writing over its own constants: %v", err)
	}
	other := filepath.Join(dir, "other.onnx")
	if err := os.Mkdir(other+".data", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := rewrite.Write(next, other); err == nil {
		t.Error("a folder stands where the constants are to be")
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a model without its constants")
	}
}

// TestSuffix runs the part that depends on some operators on values stored by a run of the
// complete model.
func TestSuffix(t *testing.T) {
	t.Parallel()
	each(t, 4<<20, []string{"real", "mcu", "synthetic"}, huge, func(t *testing.T, _ string, m *graph.Model) {
		in := madeInputs(t, m)
		if !runs(t, m, in) {
			t.Skip("does not run by itself")
		}
		layers := weights.Find(m, nil)
		var whole *engine.Session
		for _, k := range slices.Compact([]int{0, len(layers) / 2, len(layers) - 1}) {
			if k < 0 || k >= len(layers) {
				continue
			}
			if whole == nil {
				whole = run(t, m, in, engine.Options{KeepAll: true, Exact: true})
			}
			s, ids, err := rewrite.Suffix(m, layers[k].Nodes)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			kept := make([]*tensor.Tensor, len(ids))
			for i, id := range ids {
				if kept[i] = whole.Value(id); kept[i] == nil {
					t.Fatalf("value %d %q was not kept", id, m.Main().Values[id].Name)
				}
			}
			t.Logf("%d of %d nodes, %d inputs", len(s.Main().Nodes), len(m.Main().Nodes), len(ids))
			part := run(t, s, kept, engine.Options{KeepAll: true, Exact: true})
			for i := range m.Main().Outputs {
				equal(t, layers[k].Name+": output", part.Output(i), whole.Output(i))
			}
		}
	})
}
