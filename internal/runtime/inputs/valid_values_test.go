package inputs

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/synth"
)

// suited is a model in which one input determines a shape that bounds another: the second selects
// rows of a tensor made from the first.
func suited(t tensor.Type) *graph.Model {
	g := &graph.Graph{
		Values: []*graph.Value{
			{Name: "size", Type: t, Shape: []int{2}, HasShape: true},
			{Name: "rows", Type: tensor.Int32, Shape: []int{6}, HasShape: true},
			{Name: "whole", Type: tensor.Int64, Shape: []int{2}, HasShape: true},
			{Name: "table", Type: tensor.Float32, Shape: []int{5, 3}, HasShape: true},
			{Name: "picked", Type: tensor.Float32},
		},
		Inputs: []int{0, 1}, Outputs: []int{4},
		Nodes: []*graph.Node{
			{Op: "Cast", Version: 17, Inputs: []int{0}, Outputs: []int{2}, Attrs: graph.Attrs{"to": int64(7)}},
			{Index: 1, Op: "ConstantOfShape", Version: 17, Inputs: []int{2}, Outputs: []int{3}},
			{Index: 2, Op: "Gather", Version: 17, Inputs: []int{3, 1}, Outputs: []int{4}},
		},
	}
	for i, v := range g.Values {
		v.ID = i
	}
	return asModel(g)
}

func numbers(t *testing.T, x *tensor.Tensor) []int {
	t.Helper()
	wide := make([]float64, x.Len())
	tensor.Read(wide, x, 0)
	out := make([]int, len(wide))
	for i, v := range wide {
		out[i] = int(v)
		if float64(out[i]) != v {
			t.Fatalf("%v is not an integer", v)
		}
	}
	return out
}

func TestSuit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		size  tensor.Type
		o     Options
		want  []int // elements of the first input
		below int   // bound of the second, 0 for the generator's own
		kinds []string
	}{
		{"made", tensor.Int32, Options{}, []int{5, 3}, 5, []string{"made", "random"}},
		{"wide ones", tensor.Int64, Options{Seed: 9}, []int{5, 3}, 5, []string{"made", "random"}},
		{"in floating point", tensor.Float32, Options{}, []int{5, 3}, 5, []string{"made", "random"}},
		{"zeros as they were asked for", tensor.Int32, Options{Zeros: true}, []int{0, 0}, 1, []string{"zeros", "zeros"}},
		{"a fill goes before it", tensor.Int32, Options{Overrides: synth.Overrides{Fill: map[string]synth.Fill{"size": {Const: new(4.0)}}}}, []int{4, 4}, 0, []string{"random", "random"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			xs, src, err := Inputs(suited(tt.size), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := numbers(t, xs[0]); !slices.Equal(got, tt.want) {
				t.Errorf("size %v, want %v", got, tt.want)
			}
			if tt.below > 0 {
				for _, i := range numbers(t, xs[1]) {
					if i < 0 || i >= tt.below {
						t.Errorf("row %d of %d", i, tt.below)
					}
				}
			}
			if d := cmp.Diff(tt.kinds, []string{src[0].Kind, src[1].Kind}); d != "" {
				t.Errorf("kinds (-want +got):\n%s", d)
			}
		})
	}
}

// TestSuitedShapes: the shapes are known without a run, as estimates require.
func TestSuitedShapes(t *testing.T) {
	t.Parallel()
	xs, _, err := Shapes(suited(tensor.Int32), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !xs[0].Known() || xs[1].Known() {
		t.Errorf("elements of the size: %v, of the rows: %v; want those of the size alone", xs[0].Known(), xs[1].Known())
	}
}
