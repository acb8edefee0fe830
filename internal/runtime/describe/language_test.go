package describe

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// TestLanguage: weights that the reader converts have the size of the file, and the figures of the
// model follow from what the reader says.
func TestLanguage(t *testing.T) {
	t.Parallel()
	value := func(id int, name string, c *tensor.Tensor) *graph.Value {
		v := &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: []int{1, 4}, HasShape: true, Const: c, Offset: -1}
		if c != nil {
			v.Type, v.Shape = c.Type, c.Shape
		}
		return v
	}
	w, scale := value(1, "w", tensor.New(tensor.Float32, 4, 8)), value(2, "w.scale", tensor.New(tensor.Float32, 8))
	w.Coded, scale.Coded = &graph.Coded{Type: "Q4_0", Weights: 32, Bytes: 18}, &graph.Coded{Type: "Q4_0"}
	m := &graph.Model{
		Format: "gguf", Opsets: map[string]int{graph.ONNX: 23},
		Graphs: []*graph.Graph{{
			Values: []*graph.Value{value(0, "x", nil), w, scale, {ID: 3, Name: "y", Offset: -1}, {ID: 4, Name: "z", Offset: -1}},
			Inputs: []int{0}, Outputs: []int{4},
			Nodes: []*graph.Node{
				{Index: 0, Name: "y", Op: "MatMul", Version: 23, Inputs: []int{0, 1}, Outputs: []int{3}},
				{Index: 1, Name: "z", Op: "Mul", Version: 23, Inputs: []int{3, 2}, Outputs: []int{4}},
			},
		}},
		Notes: []string{"One of two models."},
		Language: &graph.Language{
			Types:         []graph.Coded{{Type: "Q4_0", Weights: 32, Bytes: 18}, {Type: "F32", Weights: 8, Bytes: 32}},
			CacheElements: 2048, CacheFormula: "16 layers × 2 × 2 heads × 32", StateElements: 1000, Experts: 8, UsedExperts: 2, ActiveParams: 16,
		},
	}
	p, err := plan.Make(m, []*tensor.Tensor{tensor.New(tensor.Float32, 1, 4)}, plan.Options{Registry: operators.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := Model(p, p.Slots(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if *out.Totals.Params != 32 || *out.Totals.WeightsBytes != 18 || *out.Layers[0].WeightsBytes != 18 || *out.Layers[1].Params != 0 {
		t.Errorf("%d parameters in %d bytes; layers %d bytes, %d parameters", *out.Totals.Params, *out.Totals.WeightsBytes, *out.Layers[0].WeightsBytes, *out.Layers[1].Params)
	}
	for key, want := range map[string]float64{"bits_per_weight": 10, "cache_bytes_per_token": 4096, "active_params": 16} {
		if v, ok := out.Totals.Value(key); !ok || v != want {
			t.Errorf("%s is %g, want %g", key, v, want)
		}
	}
	var text []string
	for _, f := range out.Findings {
		text = append(text, f.Text)
	}
	for _, want := range []string{
		"One of two models.", "10 bits on average; Q4_0 4.5 bits (32 weights, 18 B), F32 32 bits (8 weights, 32 B).", "2 of 8 experts of a layer: 16 of 32 parameters.",
		"2.05 k elements to the caches of keys and values (16 layers × 2 × 2 heads × 32): 4 KiB in float16.", "1 k elements for any number of tokens: 3.91 KiB in float32.",
	} {
		if !strings.Contains(strings.Join(text, "\n"), want) {
			t.Errorf("%q is missing in\n%s", want, strings.Join(text, "\n"))
		}
	}
}
