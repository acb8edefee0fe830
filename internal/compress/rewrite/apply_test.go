package rewrite_test

import (
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// dense is a matrix multiplication with 4 inputs and 2 outputs, of an old operator set.
func dense(opset int) *graph.Model {
	value := func(id int, name string, shape ...int) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: shape, HasShape: true}
	}
	g := &graph.Graph{Name: "g", Inputs: []int{0}, Outputs: []int{3}, Values: []*graph.Value{value(0, "x", 1, 4), value(1, "w", 4, 2), value(2, "p", 1, 2), value(3, "y", 1, 2)}}
	g.Values[1].Const = tensor.From(tensor.Float32, []int{4, 2}, []float32{1, -2, 3, -4, 5, -6, 7, -8})
	g.Nodes = []*graph.Node{
		{Name: "product", Op: "MatMul", Version: opset, Inputs: []int{0, 1}, Outputs: []int{2}},
		{Index: 1, Name: "clip", Op: "Clip", Version: opset, Inputs: []int{2}, Outputs: []int{3}, Attrs: graph.Attrs{"min": float32(0), "max": float32(6)}},
	}
	return &graph.Model{Format: "onnx", IRVersion: 4, Opsets: map[string]int{"": opset}, Graphs: []*graph.Graph{g}}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	m := dense(9)
	l := weights.Find(m, nil)[0]
	for _, tt := range []struct {
		name, want string
		changes    []rewrite.Change
	}{
		{"no layer", "no layer", []rewrite.Change{{}}},
		{"another model", "another model", []rewrite.Change{{Layer: weights.Find(dense(9), nil)[0]}}},
		{"level", "level 1.5, want 0 to 1", []rewrite.Change{{Layer: l, Change: study.Change{Level: 1.5}}}},
		{"no number", "level NaN", []rewrite.Change{{Layer: l, Change: study.Change{Level: math.NaN()}}}},
		{"structure", `no structure "rows"`, []rewrite.Change{{Layer: l, Change: study.Change{Structure: "rows"}}}},
		{"format", `no format "w3"`, []rewrite.Change{{Layer: l, Change: study.Change{Format: "w3"}}}},
		{"matrix", "3 weights, want 8", []rewrite.Change{{Layer: l, Matrix: make([]float32, 3)}}},
		{"infinite", "weight 0 is +Inf", []rewrite.Change{{Layer: l, Matrix: []float32{float32(math.Inf(1)), 0, 0, 0, 0, 0, 0, 0}}}},
		{"twice", "two changes", []rewrite.Change{{Layer: l}, {Layer: l}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := rewrite.Apply(m, tt.changes, rewrite.Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestRaised stores weights of an old operator set with per-channel scales: the model is
// upgraded, including Clip.
func TestRaised(t *testing.T) {
	t.Parallel()
	m := dense(9)
	l := weights.Find(m, nil)[0]
	next, effects, err := rewrite.Apply(m, []rewrite.Change{{Layer: l, Change: study.Change{Format: study.Weight8}}}, rewrite.Options{})
	if err != nil || effects[0].Cause != "" {
		t.Fatal(effects, err)
	}
	g := next.Main()
	if next.Opsets[""] != 13 || g.Nodes[0].Op != "DequantizeLinear" || g.Nodes[2].Op != "Clip" || len(g.Nodes[2].Inputs) != 3 || len(g.Nodes[2].Attrs) != 0 {
		t.Errorf("operator set %d, nodes %+v", next.Opsets[""], g.Nodes[2])
	}
	if m.Opsets[""] != 9 || len(m.Main().Nodes[1].Inputs) != 1 || m.Main().Values[1].Const == nil {
		t.Error("the model itself was changed")
	}
	got := weights.Find(next, nil)[0]
	if q := got.Quant; q == nil || len(q.Scale) != 2 || q.Axis != 1 || q.Scale[1] != 8.0/127 {
		t.Errorf("scales %+v", got.Quant)
	}
}

// TestRanges supplies activation ranges: the quantisation follows them.
func TestRanges(t *testing.T) {
	t.Parallel()
	m := dense(13)
	m.Main().Nodes[1].Op, m.Main().Nodes[1].Attrs = "Relu", nil
	l := weights.Find(m, nil)[0]
	next, effects, err := rewrite.Apply(m, []rewrite.Change{{Layer: l, Change: study.Change{Format: study.Int8}}}, rewrite.Options{Ranges: map[string]rewrite.Range{"x": {-1, 1.55}, "y": {0, 2.55}}})
	if err != nil || effects[0].Cause != "" {
		t.Fatal(effects, err)
	}
	want := map[string]float64{"x_scale": 0.01, "x_zero": -28, "y_scale": 0.01, "y_zero": -128}
	for _, v := range next.Main().Values {
		if w, ok := want[v.Name]; ok {
			if got := tensor.At(v.Const, 0); math.Abs(got-w) > 1e-8 {
				t.Errorf("%s is %v, want %v", v.Name, got, w)
			}
			delete(want, v.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("there is no %v", want)
	}
}

// TestGiven prunes with given weights: the units that are zero in them are removed.
func TestGiven(t *testing.T) {
	t.Parallel()
	m := dense(13)
	l := weights.Find(m, nil)[0]
	next, effects, err := rewrite.Apply(m, []rewrite.Change{{Layer: l, Change: study.Change{Structure: study.Unstructured, Level: 0.5}, Matrix: []float32{0, 3.5, 0, 7, 0, 0, -6, -8}}}, rewrite.Options{})
	if err != nil || effects[0].Zeros != 4 || effects[0].Weights != 8 || effects[0].Nodes[0] != "product" {
		t.Fatalf("%+v, %v", effects, err)
	}
	got := tensor.Of[float32](next.Main().Values[1].Const)
	for i, w := range []float32{0, 0, 3.5, 0, 0, -6, 7, -8} {
		if got[i] != w {
			t.Errorf("weights %v", got)
		}
	}
}
