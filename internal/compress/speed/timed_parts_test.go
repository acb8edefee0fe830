package speed

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
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
