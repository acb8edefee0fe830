package inputs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/synth"
)

// inputs is a graph of two inputs: an image with an open batch, and indices into a table of 7
// rows.
func inputs() *graph.Graph {
	g := &graph.Graph{
		Values: []*graph.Value{
			{Name: "image", Type: tensor.Float32, Shape: []int{-1, 4, 4, 3}, HasShape: true},
			{Name: "ids", Type: tensor.Int64, Shape: []int{1, 50}, HasShape: true},
			{Name: "table", Type: tensor.Float32, Shape: []int{7, 2}, HasShape: true, Const: tensor.New(tensor.Float32, 7, 2)},
			{Name: "rows", Type: tensor.Float32},
		},
		Inputs:  []int{0, 1},
		Outputs: []int{3},
	}
	for i, v := range g.Values {
		v.ID = i
	}
	g.Nodes = []*graph.Node{{Op: "Gather", Version: 17, Inputs: []int{2, 1}, Outputs: []int{3}}}
	return g
}

func asModel(g *graph.Graph) *graph.Model {
	return &graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}, Opsets: map[string]int{"": 17}}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.npy")
	if err := npy.WriteFile(file, tensor.From(tensor.Float32, []int{2, 4, 4, 3}, make([]float32, 96))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		o      Options
		shapes [][]int
		kinds  []string
		err    string
	}{
		{name: "open dimensions are one", shapes: [][]int{{1, 4, 4, 3}, {1, 50}}, kinds: []string{"random", "random"}},
		{name: "zeros", o: Options{Zeros: true}, shapes: [][]int{{1, 4, 4, 3}, {1, 50}}, kinds: []string{"zeros", "zeros"}},
		{name: "batch", o: Options{Batch: 5}, shapes: [][]int{{5, 4, 4, 3}, {5, 50}}, kinds: []string{"random", "random"}},
		{name: "shape goes before batch", o: Options{Batch: 5, Shapes: map[string][]int{"image": {2, 8, 8, 3}}}, shapes: [][]int{{2, 8, 8, 3}, {5, 50}}, kinds: []string{"random", "random"}},
		{name: "file", o: Options{Files: map[string]string{"image": file}}, shapes: [][]int{{2, 4, 4, 3}, {1, 50}}, kinds: []string{"file", "random"}},
		{name: "overrides", o: Options{Overrides: synth.Overrides{Dims: map[string][]int{"ids": {3}}}}, shapes: [][]int{{1, 4, 4, 3}, {3}}, kinds: []string{"random", "random"}},
		{name: "unknown name", o: Options{Shapes: map[string][]int{"img": {1}}}, err: `shape: the model has no input "img"; its inputs are "image", "ids"`},
		{name: "unknown file", o: Options{Files: map[string]string{"img": "x"}}, err: `input: the model has no input "img"`},
		{name: "wrong rank", o: Options{Shapes: map[string][]int{"ids": {1}}}, err: `shape: input "ids" has rank 2 (1x50), and 1 has rank 1`},
		{name: "wrong type", o: Options{Files: map[string]string{"ids": file}}, err: `holds float32, and input "ids" takes int64`},
		{name: "absent file", o: Options{Files: map[string]string{"ids": file + "x"}}, err: "x.npyx"},
		{name: "too large", o: Options{Shapes: map[string][]int{"ids": {1 << 20, 1 << 20}}}, err: "too large"},
		{name: "beyond the limit", o: Options{MaxBytes: 100}, err: `input "image": needs`},
		{name: "beyond the limit together", o: Options{MaxBytes: 500}, err: `input "ids": needs`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			xs, src, err := Inputs(asModel(inputs()), tt.o)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var shapes [][]int
			var kinds []string
			for i, x := range xs {
				shapes = append(shapes, x.Shape)
				kinds = append(kinds, src[i].Kind)
			}
			if d := cmp.Diff(tt.shapes, shapes); d != "" {
				t.Errorf("shapes (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.kinds, kinds); d != "" {
				t.Errorf("sources (-want +got):\n%s", d)
			}
		})
	}
}

// TestIndices keeps random indices within the table that they index, and generates the same
// inputs from the same seed.
func TestIndices(t *testing.T) {
	t.Parallel()
	a, _, err := Inputs(asModel(inputs()), Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := Inputs(asModel(inputs()), Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a[0].Data, b[0].Data); d != "" {
		t.Errorf("the same seed gives other inputs:\n%s", d)
	}
	seen := map[int64]bool{}
	for _, i := range tensor.Of[int64](a[1]) {
		if i < 0 || i >= 7 {
			t.Fatalf("index %d into a table of 7 rows", i)
		}
		seen[i] = true
	}
	if len(seen) < 4 {
		t.Errorf("only %d different indices", len(seen))
	}
}
