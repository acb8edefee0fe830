package inputs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/synth"
)

// open is a graph of inputs with named dimensions; fixed ones are written as numbers.
func open(inputs ...[]string) *graph.Model {
	g := &graph.Graph{}
	for k, dims := range inputs {
		v := &graph.Value{ID: k, Name: string(rune('a' + k)), Type: tensor.Float32, HasShape: true, Shape: []int{}, DimNames: []string{}}
		for _, d := range dims {
			n, name := -1, d
			if d >= "0" && d <= "9~" {
				n, name = int(d[0]-'0'), ""
			}
			v.Shape, v.DimNames = append(v.Shape, n), append(v.DimNames, strings.Trim(name, "?"))
		}
		g.Values = append(g.Values, v)
		g.Inputs = append(g.Inputs, k)
	}
	return asModel(g)
}

func TestDims(t *testing.T) {
	t.Parallel()
	cache := [][]string{{"batch", "seq"}, {"batch", "total_seq"}, {"batch", "4", "past_seq", "8"}}
	for _, tt := range []struct {
		name    string
		inputs  [][]string
		o       Options
		shapes  [][]int
		assumed [][]bool
		err     string
	}{
		{
			name: "nobody said", inputs: [][]string{{"?", "3", "?", "?"}},
			shapes: [][]int{{1, 3, 1, 1}}, assumed: [][]bool{{true, false, true, true}},
		},
		{
			name: "a dimension of several inputs", inputs: [][]string{{"batch", "n"}, {"n", "2"}}, o: Options{Dims: map[string]int{"n": 7}},
			shapes: [][]int{{1, 7}, {7, 2}}, assumed: [][]bool{{true, false}, nil},
		},
		{
			name: "a shape tells others", inputs: [][]string{{"batch", "n"}, {"n", "2"}}, o: Options{Shapes: map[string][]int{"a": {3, 5}}},
			shapes: [][]int{{3, 5}, {5, 2}}, assumed: [][]bool{nil, nil},
		},
		{
			name: "overrides tell others", inputs: [][]string{{"batch", "n"}, {"n", "2"}}, o: Options{Overrides: synth.Overrides{Dims: map[string][]int{"a": {3, 5}}}},
			shapes: [][]int{{3, 5}, {5, 2}}, assumed: [][]bool{nil, nil},
		},
		{
			name: "the name goes before a shape", inputs: [][]string{{"batch", "n"}, {"n", "2"}}, o: Options{Dims: map[string]int{"n": 7}, Shapes: map[string][]int{"a": {3, 5}}},
			shapes: [][]int{{3, 5}, {7, 2}}, assumed: [][]bool{nil, nil},
		},
		{
			name: "cache of one", inputs: cache,
			shapes: [][]int{{1, 1}, {1, 2}, {1, 4, 1, 8}}, assumed: [][]bool{{true, true}, {true, true}, {true, false, true, false}},
		},
		{
			name: "total follows", inputs: cache, o: Options{Dims: map[string]int{"seq": 5, "past_seq": 9, "batch": 1}},
			shapes: [][]int{{1, 5}, {1, 14}, {1, 4, 9, 8}}, assumed: [][]bool{nil, nil, nil},
		},
		{
			name: "total is given", inputs: cache, o: Options{Dims: map[string]int{"total_seq": 6, "batch": 2}},
			shapes: [][]int{{2, 1}, {2, 6}, {2, 4, 1, 8}}, assumed: [][]bool{{false, true}, nil, {false, false, true, false}},
		},
		{
			name: "the cache follows", inputs: cache, o: Options{Dims: map[string]int{"total_seq": 8, "seq": 3, "batch": 1}},
			shapes: [][]int{{1, 3}, {1, 8}, {1, 4, 5, 8}}, assumed: [][]bool{nil, nil, nil},
		},
		{
			name: "an empty cache follows", inputs: cache, o: Options{Dims: map[string]int{"total_seq": 8, "seq": 8, "batch": 1}},
			shapes: [][]int{{1, 8}, {1, 8}, {1, 4, 0, 8}}, assumed: [][]bool{nil, nil, nil},
		},
		{
			name: "a total with other parts", inputs: cache, o: Options{Dims: map[string]int{"total_seq": 8, "seq": 8, "past_seq": 1}},
			err: `dim: "total_seq" is 8, but its parts (past_seq + seq) add up to 9`,
		},
		{
			name: "a total of less than a part", inputs: cache, o: Options{Dims: map[string]int{"total_seq": 8, "seq": 9}},
			err: `dim: "total_seq" is 8, which is less than its parts`,
		},
		{
			name: "a buffer longer than the total", inputs: cache, o: Options{Dims: map[string]int{"total_seq": 8, "seq": 1}, Shapes: map[string][]int{"c": {1, 4, 16, 8}}},
			shapes: [][]int{{1, 1}, {1, 8}, {1, 4, 16, 8}}, assumed: [][]bool{nil, nil, nil},
		},
		{
			name: "total by short names", inputs: [][]string{{"batch", "seq"}, {"batch", "total"}, {"past"}}, o: Options{Dims: map[string]int{"seq": 5, "past": 3, "batch": 1}},
			shapes: [][]int{{1, 5}, {1, 8}, {3}}, assumed: [][]bool{nil, nil, nil},
		},
		{
			name: "totals of two things", inputs: [][]string{{"seq_len", "key_len"}, {"total"}, {"past"}}, o: Options{Dims: map[string]int{"past": 3}},
			shapes: [][]int{{1, 1}, {1}, {3}}, assumed: [][]bool{{true, true}, {true}, nil},
		},
		{
			name: "sum and product", inputs: [][]string{{"n"}, {"n + 1", "n*2"}, {"n+m*3", "m"}}, o: Options{Dims: map[string]int{"n": 4}},
			shapes: [][]int{{4}, {5, 8}, {7, 1}}, assumed: [][]bool{nil, nil, {true, true}},
		},
		{
			name: "a sum of what nobody knows", inputs: [][]string{{"n + k"}},
			shapes: [][]int{{1}}, assumed: [][]bool{{true}},
		},
		{
			name: "batch", inputs: [][]string{{"batch", "n"}, {"2", "batch"}}, o: Options{Batch: 8},
			shapes: [][]int{{8, 1}, {2, 8}}, assumed: [][]bool{{false, true}, nil},
		},
		{
			name: "an unknown name", inputs: [][]string{{"batch", "n"}}, o: Options{Dims: map[string]int{"height": 7}},
			err: `dim: the model has no dimension "height"; its open ones are "batch", "n"`,
		},
		{
			name: "no names", inputs: [][]string{{"?", "3"}}, o: Options{Dims: map[string]int{"n": 7}},
			err: `dim: the model has no dimension "n"; none of its inputs has a named one`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			xs, src, err := Shapes(open(tt.inputs...), tt.o)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var shapes [][]int
			var assumed [][]bool
			for k := range xs {
				shapes, assumed = append(shapes, xs[k].Shape), append(assumed, src[k].Assumed)
			}
			if d := cmp.Diff(tt.shapes, shapes); d != "" {
				t.Errorf("shapes (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.assumed, assumed); d != "" {
				t.Errorf("assumed (-want +got):\n%s", d)
			}
		})
	}
}
