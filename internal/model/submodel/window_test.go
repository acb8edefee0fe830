package submodel_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/submodel"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// windowModels are models of both formats: with branches, in half precision, quantised. None has
// pairs of DequantizeLinear and QuantizeLinear, between which the engine computes in integers: a
// stretch that begins between them is computed in floating point.
var windowModels = []string{
	"mlperf_tiny_resnet8_int8.tflite", "mlperf_tiny_resnet8_fp32.tflite", "mp_face_detection_short_range.tflite",
	"winml_SqueezeNet_fp16.onnx", "yunet_n_320_320.onnx", "winml_mnist.onnx",
}

// TestWindows takes nodes out of models with those before them and by themselves: given what they
// read in the whole model, the nodes of a stretch make exactly what they make there.
func TestWindows(t *testing.T) {
	t.Parallel()
	for _, name := range windowModels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			windows(t, filepath.Join(material.Path(t, "models", "real"), name))
		})
	}
}

func windows(t *testing.T, path string) {
	s, err := submodel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	m, err := opmeter.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	folder := t.TempDir()
	all, files := run(t, m, opmeter.Inputs{}, folder)
	whole := map[string]*opmeter.Operator{} // by the name of the first output
	for i := range all {
		if len(all[i].Outputs) > 0 {
			whole[all[i].Outputs[0].Name] = &all[i]
		}
	}
	n, made := len(all), 0
	for at := 0; at < n; at += max(1, n/6) {
		for _, context := range [][]int{s.Predecessors([]int{at}), nil} {
			w, err := s.Window([]int{at}, context)
			if e, ok := errors.AsType[*submodel.Error](err); ok && (e.Code == submodel.Between || e.Code == submodel.NoOutput) {
				continue
			}
			if err != nil {
				t.Fatalf("node %d: %v", at, err)
			}
			in := map[string]string{}
			var given []submodel.Given
			if w.Needs != nil {
				needs := opened(t, folder, path, w.Needs)
				session, err := opmeter.NewSession(needs, opmeter.RunOptions{Inputs: inputs(needs, files), Exact: true})
				if err != nil {
					t.Fatal(err)
				}
				if err := session.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				for i, x := range session.Outputs() {
					in[x.Name] = filepath.Join(folder, "needs-"+string(rune('a'+i))+".npy")
					f, err := os.Create(in[x.Name])
					if err == nil {
						err = errors.Join(x.WriteNPY(f), f.Close())
					}
					if err != nil {
						t.Fatal(err)
					}
					for _, v := range s.Model().Main().Values {
						if v.Name == x.Name {
							given = append(given, submodel.Given{Name: x.Name, Type: v.Type, Shape: x.Shape})
							break
						}
					}
				}
				session.Close()
				_ = needs.Close()
			}
			for name, f := range files {
				in[name] = f
			}
			with, without, err := w.Models(given)
			if err != nil {
				t.Fatalf("node %d: %v", at, err)
			}
			if without != nil && context == nil {
				t.Errorf("node %d: a stretch of nothing", at)
			}
			parts := []*submodel.Model{with}
			if without != nil {
				parts = append(parts, without)
			}
			for k, part := range parts {
				made++
				p := opened(t, folder, path, part)
				have, _ := run(t, p, inputs(p, in), "")
				_ = p.Close()
				found := false
				for i := range have {
					if len(have[i].Outputs) == 0 {
						continue
					}
					name := have[i].Outputs[0].Name
					found = found || len(all[at].Outputs) > 0 && name == all[at].Outputs[0].Name
					have[i].Node = whole[name].Node // it stands at another place here
					same(t, &have[i], whole[name])
				}
				if found != (k == 0) {
					t.Errorf("node %d, part %d: the node itself is in it: %v", at, k, found)
				}
			}
		}
	}
	if made < 4 {
		t.Errorf("%d stretches of %d nodes", made, n)
	}
}

// opened opens a part of a model in a folder.
func opened(t *testing.T, folder, path string, part *submodel.Model) *opmeter.Model {
	t.Helper()
	name := filepath.Join(folder, "part"+filepath.Ext(path))
	_ = os.Remove(name)
	if err := os.WriteFile(name, part.Data, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := opmeter.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// inputs are the files for the inputs that a part has.
func inputs(m *opmeter.Model, files map[string]string) opmeter.Inputs {
	in := opmeter.Inputs{Files: map[string]string{}}
	for _, x := range m.Inputs() {
		if f, ok := files[x.Name]; ok {
			in.Files[x.Name] = f
		}
	}
	return in
}
