package ml

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

var defs = Defs()

func floats(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func texts(v ...string) *tensor.Tensor {
	x := tensor.New(tensor.String, len(v))
	copy(x.Strings, v)
	return x
}

// stump is a forest of two trees with one branch each: x[0] <= 1 and x[1] > 0.
func stump(prefix string, ids []int64, weights []float32) graph.Attrs {
	a := graph.Attrs{
		"nodes_treeids": []int64{0, 0, 0, 1, 1, 1}, "nodes_nodeids": []int64{0, 1, 2, 0, 1, 2},
		"nodes_featureids": []int64{0, 0, 0, 1, 0, 0}, "nodes_values": []float32{1, 0, 0, 0, 0, 0},
		"nodes_modes":                     []string{"BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"},
		"nodes_truenodeids":               []int64{1, 0, 0, 1, 0, 0},
		"nodes_falsenodeids":              []int64{2, 0, 0, 2, 0, 0},
		"nodes_missing_value_tracks_true": []int64{1, 0, 0, 0, 0, 0},
	}
	a[prefix+"_treeids"], a[prefix+"_nodeids"] = []int64{0, 0, 1, 1}, []int64{1, 2, 1, 2}
	a[prefix+"_ids"], a[prefix+"_weights"] = ids, weights
	return a
}

func TestModels(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	reg := stump("target", []int64{0, 0, 0, 0}, []float32{1, 2, 10, 20})
	base := stump("target", []int64{0, 0, 0, 0}, []float32{1, 2, 10, 20})
	base["base_values"], base["aggregate_function"] = []float32{100}, "MAX"
	class := stump("class", []int64{0, 1, 2, 0}, []float32{1, 1, 2, 2})
	class["classlabels_strings"] = []string{"a", "b", "c"}
	for _, c := range []struct {
		name, op string
		version  int
		attrs    graph.Attrs
		in       *tensor.Tensor
		want     []float32
		labels   []string
	}{
		{"regressor", "TreeEnsembleRegressor", 3, reg, floats([]int{4, 2}, 1, 1, 2, 0, nan, 1, 0, nan), []float32{11, 22, 11, 21}, nil},
		{"regressor max", "TreeEnsembleRegressor", 3, base, floats([]int{1, 2}, 1, 1), []float32{110}, nil},
		{"classifier", "TreeEnsembleClassifier", 3, class, floats([]int{2, 2}, 1, 1, 2, 0), nil, []string{"c", "a"}},
		{"scaler", "Scaler", 1, graph.Attrs{"offset": []float32{1, 2}, "scale": []float32{2, 3}}, floats([]int{1, 2}, 2, 4), []float32{2, 6}, nil},
		{"binarizer", "Binarizer", 1, graph.Attrs{"threshold": float32(1)}, floats([]int{3}, 0, 1, 2), []float32{0, 0, 1}, nil},
		{"imputer", "Imputer", 1, graph.Attrs{"imputed_value_floats": []float32{5}, "replaced_value_float": nan}, floats([]int{1, 2}, nan, 1), []float32{5, 1}, nil},
		{"normalizer L1", "Normalizer", 1, graph.Attrs{"norm": "L1"}, floats([]int{1, 2}, -1, 3), []float32{-0.25, 0.75}, nil},
		{"normalizer L2", "Normalizer", 1, graph.Attrs{"norm": "L2"}, floats([]int{1, 2}, -3, 4), []float32{-0.6, 0.8}, nil},
		{"normalizer MAX", "Normalizer", 1, graph.Attrs{"norm": "MAX"}, floats([]int{1, 2}, -3, 4), []float32{-0.75, 1}, nil},
		{"regression", "LinearRegressor", 1, graph.Attrs{"coefficients": []float32{2, 3}, "intercepts": []float32{1}}, floats([]int{1, 2}, 1, 10), []float32{33}, nil},
		{"one hot", "OneHotEncoder", 1, graph.Attrs{"cats_strings": []string{"x", "y"}}, texts("y", "z"), []float32{0, 1, 0, 0}, nil},
		{"machine", "SVMRegressor", 1, graph.Attrs{
			"kernel_type": "POLY", "kernel_params": []float32{1, 1, 2}, "n_supports": int64(1),
			"support_vectors": []float32{1, 2}, "coefficients": []float32{2}, "rho": []float32{-3},
		}, floats([]int{1, 2}, 1, 1), []float32{29}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := optest.Run(defs, optest.Node{Domain: graph.ONNXML, Op: c.op, Version: c.version, Attrs: c.attrs}, c.in)
			if err != nil {
				t.Fatal(err)
			}
			if c.labels != nil {
				if d := cmp.Diff(c.labels, out[0].Strings); d != "" {
					t.Error(d)
				}
				return
			}
			if d := cmp.Diff(c.want, tensor.Of[float32](out[0])); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestZipMap(t *testing.T) {
	t.Parallel()
	n := optest.Node{Domain: graph.ONNXML, Op: "ZipMap", Version: 1, Attrs: graph.Attrs{"classlabels_strings": []string{"a", "b"}}}
	out, err := optest.Run(defs, n, floats([]int{2, 2}, 1, 2, 3, 4))
	if err != nil {
		t.Fatal(err)
	}
	if len(out[0].Elems) != 2 {
		t.Fatalf("%d maps", len(out[0].Elems))
	}
	m := out[0].Elems[1]
	if d := cmp.Diff([]string{"a", "b"}, m.Elems[0].Strings); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float32{3, 4}, tensor.Of[float32](m.Elems[1])); d != "" {
		t.Error(d)
	}
}

func TestLabelEncoder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		attrs graph.Attrs
		want  []int64
	}{
		{"version 1", graph.Attrs{"classes_strings": []string{"b", "a"}, "default_int64": int64(9)}, []int64{1, 0, 9}},
		{"version 2", graph.Attrs{"keys_strings": []string{"a", "b"}, "values_int64s": []int64{5, 6}}, []int64{5, 6, -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := optest.Run(defs, optest.Node{Domain: graph.ONNXML, Op: "LabelEncoder", Version: 2, Attrs: c.attrs}, texts("a", "b", "c"))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, tensor.Of[int64](out[0])); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestBrokenTrees: cycles and children that do not exist are errors, not endless walks.
func TestBrokenTrees(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(a graph.Attrs){
		"cycle":         func(a graph.Attrs) { a["nodes_truenodeids"] = []int64{0, 0, 0, 1, 0, 0} },
		"missing child": func(a graph.Attrs) { a["nodes_truenodeids"] = []int64{7, 0, 0, 1, 0, 0} },
		"shared child":  func(a graph.Attrs) { a["nodes_truenodeids"] = []int64{2, 0, 0, 1, 0, 0} },
		"feature":       func(a graph.Attrs) { a["nodes_featureids"] = []int64{9, 0, 0, 1, 0, 0} },
		"target":        func(a graph.Attrs) { a["target_ids"] = []int64{0, 1, 0, 0} },
		"mode":          func(a graph.Attrs) { a["nodes_modes"] = []string{"X", "LEAF", "LEAF", "LEAF", "LEAF", "LEAF"} },
		"length":        func(a graph.Attrs) { a["nodes_values"] = []float32{1} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := stump("target", []int64{0, 0, 0, 0}, []float32{1, 2, 10, 20})
			change(a)
			if _, err := optest.Run(defs, optest.Node{Domain: graph.ONNXML, Op: "TreeEnsembleRegressor", Version: 3, Attrs: a}, floats([]int{1, 2}, 1, 1)); err == nil {
				t.Error("no error")
			}
		})
	}
}
