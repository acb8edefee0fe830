package speed

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// chain makes a graph of operators that each read the output of the one before.
func chain(names ...string) *graph.Graph {
	g := &graph.Graph{Values: []*graph.Value{{Name: "x"}}}
	for i := 0; i < len(names); i += 2 {
		g.Values = append(g.Values, &graph.Value{Name: names[i+1]})
		at := len(g.Values) - 1
		g.Nodes = append(g.Nodes, &graph.Node{Index: i / 2, Op: names[i], Inputs: []int{at - 1}, Outputs: []int{at}})
	}
	return g
}

func TestTrace(t *testing.T) {
	t.Parallel()
	from := chain("Conv", "a", "Conv", "b", "Relu", "c")
	for _, tt := range []struct {
		name string
		to   *graph.Graph
		want []int
	}{
		{"the same", chain("Conv", "a", "Conv", "b", "Relu", "c"), []int{0, 1, 2}},
		{"conversions around", chain("QuantizeLinear", "x_q", "Conv", "a_q", "DequantizeLinear", "a", "Conv", "b", "Relu", "c"), []int{0, 0, 0, 1, 2}},
		{"numbers handed on", chain("QUANTIZE", "x_q", "Conv", "a_q", "Conv", "b_q_2", "DEQUANTIZE", "b", "Relu", "c"), []int{0, 0, 1, 1, 2}},
		{"a conversion before the next", chain("Conv", "a", "QuantizeLinear", "a_q", "Conv", "b", "Relu", "c"), []int{0, 1, 1, 2}},
		{"nothing known", chain("Conv", "z"), []int{-1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := originalNodes(from, tt.to); !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestInferenceOfParts adds layers and all other operators up to the time of an inference, so that
// shares add up to one. Parts without layers belong to the others already.
func TestInferenceOfParts(t *testing.T) {
	t.Parallel()
	parts := []timedPart{{layers: []int{0}}, {layers: []int{1, 2}}, {nodes: []int{7}}}
	// Interruptions make the whole run longer than its parts are in most runs.
	g := groupTimes{whole: 9, parts: []float64{3, 1, .5}, rest: 2}
	if got := g.inference(parts); got != 3+1+2 {
		t.Errorf("%v, want 6", got)
	}
}

// TestTraceOfDynamicInt8 counts quantisation, product and scales to the layer.
func TestTraceOfDynamicInt8(t *testing.T) {
	t.Parallel()
	g := &graph.Graph{Inputs: []int{0}, Outputs: []int{6}}
	for i, name := range []string{"x", "w", "a", "b", "v", "bias", "c"} {
		v := &graph.Value{ID: i, Name: name, Type: tensor.Float32, Shape: []int{4, 4}, HasShape: true, Offset: -1}
		switch name {
		case "bias":
			v.Shape = []int{4}
			v.Const = tensor.From(tensor.Float32, v.Shape, []float32{1, 2, 3, 4})
		case "w", "v":
			v.Const = tensor.New(tensor.Float32, 4, 4)
			tensor.Fill(v.Const, func(i int) float64 { return float64(i) })
		}
		g.Values = append(g.Values, v)
	}
	g.Nodes = []*graph.Node{
		{Op: "MatMul", Version: 13, Inputs: []int{0, 1}, Outputs: []int{2}},
		{Index: 1, Op: "Relu", Version: 13, Inputs: []int{2}, Outputs: []int{3}},
		{Index: 2, Op: "Gemm", Version: 13, Inputs: []int{3, 4, 5}, Outputs: []int{6}},
	}
	m := &graph.Model{Format: "onnx", Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{g}}
	next, effects, err := ApplyToAll(m, weights.Find(m, nil), study.Change{Format: study.Dynamic8})
	if err != nil || len(effects) != 2 {
		t.Fatal(effects, err)
	}
	got := map[int][]string{}
	for i, at := range originalNodes(g, next.Main()) {
		got[at] = append(got[at], next.Main().Nodes[i].Op)
	}
	product := []string{"DynamicQuantizeLinear", "MatMulInteger", "Cast", "Mul", "Mul"}
	want := map[int][]string{0: product, 1: {"Relu"}, 2: append(slices.Clone(product), "Add")}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
