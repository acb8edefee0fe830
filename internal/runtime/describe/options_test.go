package describe

import (
	"fmt"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestBounds: limits of a Clip are options, as attributes and as constants of the file.
func TestBounds(t *testing.T) {
	t.Parallel()
	limit := func(v float32) *graph.Value {
		c := tensor.New(tensor.Float32)
		tensor.Of[float32](c)[0] = v
		return &graph.Value{Type: tensor.Float32, Const: c}
	}
	g := &graph.Graph{Values: []*graph.Value{{}, limit(0), limit(6), {}}}
	for _, c := range []struct {
		op     string
		attrs  graph.Attrs
		inputs []int
		want   string
	}{
		{"Clip", graph.Attrs{"min": float32(0), "max": float32(6)}, []int{0}, "[{min 0} {max 6}]"},
		{"Clip", nil, []int{0, 1, 2}, "[{min 0} {max 6}]"},
		{"Clip", nil, []int{0, -1, 2}, "[{max 6}]"},
		{"Clip", nil, []int{0, 1, 3}, "[{min 0}]"}, // computed
		{"Clip", nil, []int{0}, "[]"},
		{"Where", nil, []int{0, 1, 2}, "[]"},
	} {
		n := &graph.Node{Op: c.op, Inputs: c.inputs, Attrs: c.attrs}
		if got := fmt.Sprint(append(Options(n), bounds(g, n)...)); got != c.want {
			t.Errorf("%s %v %v: %s, want %s", c.op, c.attrs, c.inputs, got, c.want)
		}
	}
}
