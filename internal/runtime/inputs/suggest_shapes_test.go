package inputs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// consumed is a model of one input that an operator reads, with weights.
func consumed(op string, shape []int, weights []int, t tensor.Type) *graph.Model {
	g := &graph.Graph{Values: []*graph.Value{
		{Name: "x", Type: t, Shape: shape, HasShape: true},
		{ID: 1, Name: "w", Type: tensor.Float32, Shape: weights, HasShape: true, Const: tensor.New(tensor.Float32, weights...)},
		{ID: 2, Name: "y"},
	}, Inputs: []int{0}, Outputs: []int{2}}
	ins := []int{0, 1}
	if op == "Gather" {
		ins = []int{1, 0}
	}
	g.Nodes = []*graph.Node{{Op: op, Version: 17, Inputs: ins, Outputs: []int{2}}}
	return asModel(g)
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		m    *graph.Model
		o    Options
		want *Hint
	}{
		{"image", consumed("Conv", []int{-1, 3, -1, -1}, []int{4, 3, 3, 3}, tensor.Float32), Options{}, &Hint{Shapes: [][]int{{1, 3, 224, 224}}}},
		{"tokens", consumed("Gather", []int{-1, -1}, []int{300, 8}, tensor.Int64), Options{}, &Hint{Shapes: [][]int{{1, 128}}}},
		{"wave", consumed("Conv", []int{-1, 1, -1}, []int{4, 1, 9}, tensor.Float32), Options{}, &Hint{Shapes: [][]int{{1, 1, 16000}}}},
		{"sequence", consumed("MatMul", []int{-1, -1, 8}, []int{8, 4}, tensor.Float32), Options{}, &Hint{Shapes: [][]int{{1, 128, 8}}}},
		{"state", consumed("MatMul", []int{2, -1, 8}, []int{8, 4}, tensor.Float32), Options{}, &Hint{Shapes: [][]int{{2, 1, 8}}}},
		{"given", consumed("Conv", []int{-1, 3, -1, -1}, []int{4, 3, 3, 3}, tensor.Float32), Options{Shapes: map[string][]int{"x": {1, 3, 9, 9}}}, nil},
		{"nothing open", consumed("Conv", []int{1, 3, 9, 9}, []int{4, 3, 3, 3}, tensor.Float32), Options{}, nil},
		{
			"names that inputs share", open([]string{"batch", "seq"}, []string{"batch", "seq"}, []string{"batch", "seq", "4"}),
			Options{},
			&Hint{Order: []string{"batch", "seq"}, Dims: map[string]int{"batch": 1, "seq": 512}},
		},
		{
			"names, one of them given", open([]string{"batch", "seq"}, []string{"batch", "seq"}, []string{"batch", "seq", "4"}),
			Options{Dims: map[string]int{"seq": 7}},
			&Hint{Order: []string{"batch", "seq"}, Dims: map[string]int{"batch": 1, "seq": 7}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			xs, src, err := Shapes(tt.m, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, Suggest(tt.m, xs, src, tt.o)); d != "" {
				t.Errorf("hint (-want +got):\n%s", d)
			}
		})
	}
}

// unhelped lists a model whose open dimensions are the lengths of lists of bounds, and one with
// branches for two sample rates, for which no size is valid in both.
var unhelped = map[string]bool{"aeq_single_slice.tflite": true, "silero_vad.onnx": true}

// TestHintsSuit plans every reference model with open dimensions with the suggested sizes: no
// operator may contradict them.
func TestHintsSuit(t *testing.T) {
	t.Parallel()
	n := 0
	err := filepath.WalkDir(material.Path(t, "models"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, ".onnx") && !strings.HasSuffix(p, ".tflite") || unhelped[filepath.Base(p)] {
			return err
		}
		m, err := modelfile.Open(p)
		if err != nil {
			return nil // some files are not models
		}
		if m.Close != nil {
			defer func() { _ = m.Close() }()
		}
		xs, src, err := Shapes(m, Options{})
		if err != nil {
			t.Errorf("%s: %v", p, err)
			return nil
		}
		h := Suggest(m, xs, src, Options{})
		if h == nil {
			return nil
		}
		n++
		o := Options{Dims: h.Dims, Shapes: map[string][]int{}}
		for k, s := range h.Shapes {
			if s != nil {
				o.Shapes[m.Main().Values[m.Main().Inputs[k]].Name] = s
			}
		}
		if xs, src, err = Shapes(m, o); err != nil {
			t.Errorf("%s: %v", p, err)
			return nil
		}
		for k := range src {
			if src[k].Assumed != nil {
				t.Errorf("%s: the hint leaves input %d open", p, k)
			}
		}
		if c := contradictions(m, xs, o); c != 0 {
			t.Errorf("%s: %d operators contradict the shapes of the hint", p, c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 20 {
		t.Errorf("%d models have open dimensions, of at least 20", n)
	}
}
