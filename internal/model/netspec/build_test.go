package netspec_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/netspec"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func example(t *testing.T, name string) *graph.Model {
	t.Helper()
	m, err := netspec.File(filepath.Join(material.Root(), "examples", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestExamplesRun builds every example, in its own type and the other one, and
// runs each operator of it.
func TestExamplesRun(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(material.Root(), "examples", "*.yaml"))
	if err != nil || len(files) < 8 {
		t.Fatalf("examples: %v %v", files, err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			m, err := netspec.File(f)
			if err != nil {
				t.Fatal(err)
			}
			data, err := tflite.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) < 1<<22 { // the large ones take long and show nothing more
				again, err := netspec.File(f)
				if err != nil {
					t.Fatal(err)
				}
				if twice, err := tflite.Encode(again); err != nil || !bytes.Equal(data, twice) {
					t.Error("the same description gives other bytes")
				}
			}
			p, err := tflite.Parse(data, "built")
			if err != nil {
				t.Fatal(err)
			}
			// The state of an LSTM is made for the described batch.
			batch := 2
			if strings.Contains(f, "lstm") {
				batch = 1
			}
			in, _, err := inputs.Inputs(p, inputs.Options{Seed: 1, Batch: batch})
			if err != nil {
				t.Fatal(err)
			}
			s, err := engine.New(p, in, engine.Options{Registry: operators.Registry(), Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, st := range s.Steps() {
				if st.Err != nil {
					t.Errorf("node %d %s: %v", st.Node.Index, st.Node.Op, st.Err)
				}
			}
			if err := s.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			if out := s.Output(0); constant(out) {
				t.Errorf("all outputs are equal: the weights make nothing of the input")
			}
		})
	}
}

func constant(x *tensor.Tensor) bool {
	if x.Type == tensor.Int8 {
		v := tensor.Of[int8](x)
		for _, e := range v {
			if e != v[0] {
				return false
			}
		}
		return true
	}
	v := tensor.Of[float32](x)
	for _, e := range v {
		if e != v[0] {
			return false
		}
	}
	return true
}

// outline lists operators with input and output shapes and MACs.
func outline(m *graph.Model) []string {
	g := m.Main()
	shape := func(id int) string {
		if id < 0 {
			return "-"
		}
		v := g.Values[id]
		if v.Placeholder != nil {
			return tensor.FormatShape(v.Placeholder)
		}
		return tensor.FormatShape(v.Shape)
	}
	var out []string
	for _, n := range g.Nodes {
		l := []string{n.Op, shape(n.Inputs[0]), shape(n.Outputs[0])}
		if w := count.Count(m, g, n, placed(g, n.Inputs), placed(g, n.Outputs)); w.MACs != nil {
			l = append(l, tensor.FormatShape([]int{int(*w.MACs)}))
		}
		out = append(out, strings.Join(l, " "))
	}
	return out
}

func placed(g *graph.Graph, ids []int) []*tensor.Tensor {
	out := count.Declared(g, ids)
	for i, id := range ids {
		if id >= 0 && g.Values[id].Placeholder != nil && out[i] != nil {
			c := *out[i]
			c.Shape = g.Values[id].Placeholder
			out[i] = &c
		}
	}
	return out
}

// TestLikeTheOriginals compares the built MLPerf Tiny networks with the published
// model files: same operators, shapes and MACs.
func TestLikeTheOriginals(t *testing.T) {
	t.Parallel()
	for name, original := range map[string]string{
		"resnet8": "mlperf_tiny_resnet8_int8", "ds_cnn": "mlperf_tiny_kws_int8", "mobilenet_v1": "mlperf_tiny_vww96_int8",
		"autoencoder": "mlperf_tiny_ad01_int8",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := tflite.Open(material.Path(t, "models", "real", original+".tflite"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = o.Close() }()
			if d := cmp.Diff(outline(o), outline(example(t, name))); d != "" {
				t.Errorf("built network differs from the original (-want +got):\n%s", d)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	const head = "input: {shape: [1, 8, 8, 3]}\nlayers:\n"
	for _, c := range []struct{ name, spec, want string }{
		{"empty", "", "empty"},
		{"no input", "layers: [{op: conv}]", "input has no shape"},
		{"no layers", "input: {shape: [1]}", "no layers"},
		{"type", "type: int3\n" + head + "  - {op: softmax}", `type "int3"`},
		{"unknown key", head + "  - {op: conv, filtres: 3}", `line 3: a layer has no "filtres"`},
		{"unknown layer", head + "  - {op: convolve}", "line 3: convolve: no such layer"},
		{"missing filters", head + "  - {op: conv, kernel: 3}", "filters is missing"},
		{"kernel too large", head + "  - {op: conv, filters: 2, kernel: 9, padding: valid}", "does not fit"},
		{"unknown name", head + "  - {op: add, from: [x, prev]}", `no layer named "x"`},
		{"one input", head + "  - {op: add}", "name them with from"},
		{"shapes", head + "  - {op: conv, name: a, filters: 2, kernel: 1}\n  - {op: conv, name: b, filters: 3, kernel: 1}\n  - {op: add, from: [a, b]}", "do not broadcast"},
		{"too large", "input: {shape: [100000, 100000, 100, 3]}\nlayers: [{op: softmax}]", "too large"},
		{"too many", head + "  - {repeat: 1000, layers: [{repeat: 1000, layers: [{op: softmax}]}]}", "more than 10000 layers"},
		{"pair", head + "  - {op: conv, filters: 2, kernel: [1, 2, 3]}", "[height, width]"},
		{"padding", head + "  - {op: conv, filters: 2, padding: full}", "use same or valid"},
		{"activation", head + "  - {op: conv, filters: 2, activation: gelu}", `activation "gelu"`},
		{"heads", "input: {shape: [1, 4, 10]}\nlayers: [{op: attention, heads: 3}]", "multiple of 3 heads"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := netspec.Parse(strings.NewReader(c.spec))
			if err == nil {
				_, err = netspec.Model(s)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("input: {shape: [1, 4, 4, 2]}\nlayers: [{op: conv, filters: 2, kernel: [1, 2]}, {repeat: 2, layers: [{op: add, from: [block, prev]}]}]"))
	f.Add([]byte("type: int8\ninput: {shape: [1, 4, 8]}\nlayers: [{op: attention, heads: 2}, {op: layer_norm}, {op: lstm, units: 3}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := netspec.Parse(bytes.NewReader(data))
		if err != nil {
			return
		}
		// Small networks only: the point is the reader, not the arithmetic.
		if tensor.Elements(s.Input.Shape) > 1<<12 || len(data) > 2000 || bytes.Contains(data, []byte("000")) {
			return
		}
		m, err := netspec.Model(s)
		if err != nil {
			return
		}
		if _, err := tflite.Encode(m); err != nil {
			t.Errorf("built, but cannot be written: %v", err)
		}
	})
}
