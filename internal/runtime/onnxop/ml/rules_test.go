package ml

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func longs(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }

func shaped(x *tensor.Tensor, shape ...int) *tensor.Tensor { x.Shape = shape; return x }

// run runs an operator of the domain and fails the test where it does not run.
func run(t *testing.T, op string, attrs graph.Attrs, outputs int, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, err := optest.Run(defs, optest.Node{Domain: graph.ONNXML, Op: op, Version: 5, Attrs: attrs, Outputs: outputs}, in...)
	if err != nil {
		t.Fatalf("%s %v: %v", op, attrs, err)
	}
	return out
}

func refuse(t *testing.T, want, op string, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	_, err := optest.Run(defs, optest.Node{Domain: graph.ONNXML, Op: op, Version: 5, Attrs: attrs, Outputs: 2}, in...)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %v: %v, want %q", op, attrs, err, want)
	}
}

// near compares scores, which are rounded to float32: a relative 2^-22.
func near(t *testing.T, what string, got *tensor.Tensor, want ...float64) {
	t.Helper()
	if why := optest.Differ(got, want, 1e-7, 1.0/(1<<22)); why != "" {
		t.Errorf("%s: %s", what, why)
	}
}

func TestLabelEncoderColumns(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	f64 := func(v ...float64) *tensor.Tensor { return tensor.From(tensor.Float64, []int{len(v)}, v) }
	for _, tt := range []struct {
		name  string
		attrs graph.Attrs
		in    *tensor.Tensor
		want  *tensor.Tensor
	}{
		{"numbers to names", graph.Attrs{"classes_strings": []string{"x", "y"}}, longs(1, 0, 2), texts("y", "x", "_Unused")},
		{"numbers to names, another default", graph.Attrs{"keys_int64s": []int64{7, 8}, "values_strings": []string{"x", "y"}, "default_string": "none"}, longs(8, 9), texts("y", "none")},
		{"the first of equal keys", graph.Attrs{"keys_int64s": []int64{7, 7}, "values_int64s": []int64{1, 2}}, longs(7, 6), longs(1, -1)},
		{"exact integers", graph.Attrs{"keys_int64s": []int64{1<<53 + 1}, "values_int64s": []int64{1<<62 + 1}, "default_int64": int64(5)}, longs(1<<53+1, 1<<53), longs(1<<62+1, 5)},
		{"floats", graph.Attrs{"keys_floats": []float32{1.5, nan}, "values_floats": []float32{2, 3}, "default_float": float32(9)}, floats([]int{3}, 1.5, nan, 1), floats([]int{3}, 2, 3, 9)},
		{"floats without NaN", graph.Attrs{"keys_floats": []float32{1.5}, "values_int64s": []int64{4}}, floats([]int{2}, 1.5, nan), longs(4, -1)},
		{"tensors", graph.Attrs{"keys_tensor": f64(1, 2), "values_tensor": texts("a", "b")}, f64(2, 3), texts("b", "_Unused")},
		{"tensor of defaults", graph.Attrs{"keys_tensor": texts("a"), "values_tensor": f64(4), "default_tensor": f64(8)}, texts("a", "b"), f64(4, 8)},
		{"short values", graph.Attrs{"keys_strings": []string{"a"}, "values_tensor": tensor.From(tensor.Int16, []int{1}, []int16{-5}), "default_tensor": tensor.From(tensor.Int16, []int{1}, []int16{6})}, texts("a", "b"), tensor.From(tensor.Int16, []int{2}, []int16{-5, 6})},
	} {
		got := run(t, "LabelEncoder", tt.attrs, 1, tt.in)[0]
		if got.Type != tt.want.Type || !cmp.Equal(got.Shape, tt.want.Shape) || !cmp.Equal(got.Data, tt.want.Data) || !cmp.Equal(got.Strings, tt.want.Strings) {
			t.Errorf("%s: %v %v %q, want %v %v", tt.name, got.Type, got.Data, got.Strings, tt.want.Data, tt.want.Strings)
		}
	}
	// Where no default is given, that of floats is minus zero, as the standard has it.
	zero := run(t, "LabelEncoder", graph.Attrs{"keys_strings": []string{"a"}, "values_floats": []float32{1}}, 1, texts("b"))[0]
	if v := tensor.Of[float32](zero)[0]; v != 0 || !math.Signbit(float64(v)) {
		t.Errorf("default %v", v)
	}
	for want, attrs := range map[string]graph.Attrs{
		"2 keys and 1 values":                         {"keys_strings": []string{"a", "b"}, "values_int64s": []int64{1}},
		"keys are missing":                            {"values_int64s": []int64{1}},
		"values are missing":                          {"keys_strings": []string{"a"}},
		"input of string with keys of int64":          {"keys_int64s": []int64{1}, "values_int64s": []int64{1}},
		"default does not have the type of the value": {"keys_strings": []string{"a"}, "values_int64s": []int64{1}, "default_tensor": shaped(texts("x"), 1)},
	} {
		refuse(t, want, "LabelEncoder", attrs, texts("a"))
	}
	// A default of several elements is none.
	two := run(t, "LabelEncoder", graph.Attrs{"keys_strings": []string{"a"}, "values_int64s": []int64{1}, "default_tensor": longs(5, 6)}, 1, texts("b"))[0]
	near(t, "default of two", two, -1)
}

func TestCategoryMapper(t *testing.T) {
	t.Parallel()
	cats := graph.Attrs{"cats_strings": []string{"a", "b", "a"}, "cats_int64s": []int64{3, 4, 5}}
	near(t, "numbers", run(t, "CategoryMapper", cats, 1, texts("b", "a", "c"))[0], 4, 3, -1)
	if got := run(t, "CategoryMapper", cats, 1, longs(5, 4, 6))[0]; !cmp.Equal(got.Strings, []string{"a", "b", "_Unused"}) {
		t.Errorf("names %q", got.Strings)
	}
	cats["default_int64"], cats["default_string"] = int64(9), "no"
	near(t, "default", run(t, "CategoryMapper", cats, 1, shaped(texts("x"), 1, 1))[0], 9)
	if got := run(t, "CategoryMapper", cats, 1, longs(7))[0]; !cmp.Equal(got.Strings, []string{"no"}) {
		t.Errorf("names %q", got.Strings)
	}
	refuse(t, "input of float32", "CategoryMapper", cats, floats([]int{1}, 1))
	refuse(t, "1 names and 2 numbers", "CategoryMapper", graph.Attrs{"cats_strings": []string{"a"}, "cats_int64s": []int64{3, 4}}, texts("a"))
	refuse(t, "input 0 is missing", "CategoryMapper", cats, nil)
}

func TestOneHot(t *testing.T) {
	t.Parallel()
	out := run(t, "OneHotEncoder", graph.Attrs{"cats_int64s": []int64{3, 5, 7}}, 1, shaped(longs(5, 3, 4, 7), 2, 2))[0]
	near(t, "integers", out, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1)
	if !cmp.Equal(out.Shape, []int{2, 2, 3}) {
		t.Errorf("shape %v", out.Shape)
	}
	near(t, "floats are cut off", run(t, "OneHotEncoder", graph.Attrs{"cats_int64s": []int64{0, 1}}, 1, floats([]int{1}, 1.75))[0], 0, 1)
	strict := graph.Attrs{"cats_strings": []string{"a", "b"}, "zeros": int64(0)}
	near(t, "names", run(t, "OneHotEncoder", strict, 1, texts("b", "a"))[0], 0, 1, 1, 0)
	refuse(t, "element 1 has no category", "OneHotEncoder", strict, texts("b", "c"))
	refuse(t, "2 categories for input of int64", "OneHotEncoder", strict, longs(1))
	refuse(t, "1 categories for input of string", "OneHotEncoder", graph.Attrs{"cats_int64s": []int64{1}}, texts("a"))
	refuse(t, "0 categories", "OneHotEncoder", nil, longs(1))
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	x := floats([]int{2, 2}, 1, 2, 3, 4)
	for _, tt := range []struct {
		op    string
		attrs graph.Attrs
		in    *tensor.Tensor
		want  []float64
	}{
		{"Scaler", graph.Attrs{"offset": []float32{1}, "scale": []float32{10}}, x, []float64{0, 10, 20, 30}},
		{"Scaler", graph.Attrs{"offset": []float32{1, 2}, "scale": []float32{10}}, x, []float64{0, 0, 20, 20}},
		{"Scaler", graph.Attrs{"offset": []float32{0.5}, "scale": []float32{2, 4}}, longs(1, 2), []float64{1, 6}},
		{"Binarizer", nil, floats([]int{3}, -1, 0, 0.5), []float64{0, 0, 1}},
		{"Imputer", graph.Attrs{"imputed_value_floats": []float32{7, 8}, "replaced_value_float": float32(3)}, x, []float64{1, 2, 7, 4}},
		{"Imputer", graph.Attrs{"imputed_value_floats": []float32{7, 8}}, floats([]int{2, 2}, 1, 0, 0, 4), []float64{1, 8, 7, 4}},
		{"Imputer", graph.Attrs{"imputed_value_int64s": []int64{9}, "replaced_value_int64": int64(2), "imputed_value_floats": []float32{5}}, longs(2, 3, 0), []float64{9, 3, 0}},
		{"Imputer", graph.Attrs{"imputed_value_int64s": []int64{9}, "replaced_value_int64": int64(2)}, tensor.From(tensor.Int32, []int{2}, []int32{2, 3}), []float64{9, 3}},
		{"Imputer", graph.Attrs{"imputed_value_floats": []float32{7}, "replaced_value_float": float32(3)}, floats([]int{1}, float32(math.NaN())), []float64{math.NaN()}},
		{"Normalizer", nil, floats([]int{2, 2}, 1, 4, 3, 2), []float64{0.25, 1, 1, 2.0 / 3}},
		{"Normalizer", graph.Attrs{"norm": "L1"}, floats([]int{2, 2}, 0, 0, -2, 2), []float64{0, 0, -0.5, 0.5}},
		{"Normalizer", graph.Attrs{"norm": "L2"}, floats([]int{2}, 6, -8), []float64{0.6, -0.8}},
	} {
		near(t, tt.op, run(t, tt.op, tt.attrs, 1, tt.in)[0], tt.want...)
	}
	refuse(t, "3 values of offset for 2 features", "Scaler", graph.Attrs{"offset": []float32{1, 2, 3}, "scale": []float32{1}}, x)
	refuse(t, "0 values of scale for 2 features", "Scaler", graph.Attrs{"offset": []float32{1}}, x)
	refuse(t, "0 values of imputed values", "Imputer", nil, x)
	refuse(t, `norm "L3"`, "Normalizer", graph.Attrs{"norm": "L3"}, x)
	refuse(t, "want rank 1 or 2", "Normalizer", nil, floats([]int{1, 1, 1}, 1))
	refuse(t, "want rank 1 or 2", "Normalizer", nil, floats([]int{}, 1))

	v := run(t, "FeatureVectorizer", nil, 1, x, shaped(longs(5, 6), 2, 1), floats([]int{2, 2}, 7, 8, 9, 10))[0]
	near(t, "FeatureVectorizer", v, 1, 2, 5, 7, 8, 3, 4, 6, 9, 10)
	if !cmp.Equal(v.Shape, []int{2, 5}) {
		t.Errorf("shape %v", v.Shape)
	}
	near(t, "one row", run(t, "FeatureVectorizer", nil, 1, floats([]int{2}, 1, 2), longs(3))[0], 1, 2, 3)
	refuse(t, "inputs of 2 and 1 rows", "FeatureVectorizer", nil, x, longs(3))
	refuse(t, "no inputs", "FeatureVectorizer", nil)
	refuse(t, "input 1 is missing", "FeatureVectorizer", nil, x, nil)

	e := run(t, "ArrayFeatureExtractor", nil, 1, floats([]int{2, 3}, 0, 1, 2, 3, 4, 5), longs(2, 0))[0]
	near(t, "ArrayFeatureExtractor", e, 2, 0, 5, 3)
	if !cmp.Equal(e.Shape, []int{2, 2}) {
		t.Errorf("shape %v", e.Shape)
	}
	one := run(t, "ArrayFeatureExtractor", nil, 1, texts("a", "b", "c"), longs(1, 1))[0]
	if !cmp.Equal(one.Strings, []string{"b", "b"}) || !cmp.Equal(one.Shape, []int{1, 2}) {
		t.Errorf("%q of shape %v", one.Strings, one.Shape)
	}
	refuse(t, "column 3 of 3", "ArrayFeatureExtractor", nil, texts("a", "b", "c"), longs(3))
	refuse(t, "column -1 of 3", "ArrayFeatureExtractor", nil, texts("a", "b", "c"), longs(-1))
	refuse(t, "input is a scalar", "ArrayFeatureExtractor", nil, floats([]int{}, 1), longs(0))
}

func TestLinearModels(t *testing.T) {
	t.Parallel()
	x := floats([]int{2, 2}, 1, 2, -1, 3)
	two := graph.Attrs{"coefficients": []float32{1, 10, 2, -1}, "intercepts": []float32{0.5, 0}, "targets": int64(2)}
	near(t, "two targets", run(t, "LinearRegressor", two, 1, x)[0], 21.5, 0, 29.5, -5)
	near(t, "no intercepts", run(t, "LinearRegressor", graph.Attrs{"coefficients": []float32{1, 10}}, 1, x)[0], 21, 29)
	two["post_transform"] = "LOGISTIC"
	near(t, "logistic", run(t, "LinearRegressor", two, 1, floats([]int{2}, 0, 0))[0], 1/(1+math.Exp(-0.5)), 0.5)
	refuse(t, "4 coefficients and 2 intercepts for 2 targets of 3 features", "LinearRegressor", two, floats([]int{3}, 1, 2, 3))
	refuse(t, "2 coefficients and 2 intercepts for 1 targets", "LinearRegressor", graph.Attrs{"coefficients": []float32{1, 2}, "intercepts": []float32{1, 2}}, x)
	refuse(t, `post_transform "X"`, "LinearRegressor", graph.Attrs{"coefficients": []float32{1, 10}, "post_transform": "X"}, x)

	three := graph.Attrs{"coefficients": []float32{1, 0, 0, 1, 1, 1}, "intercepts": []float32{0, 0, -4}, "classlabels_strings": []string{"a", "b", "c"}}
	out := run(t, "LinearClassifier", three, 2, floats([]int{3, 2}, 2, 1, 1, 2, 5, 5))
	if !cmp.Equal(out[0].Strings, []string{"a", "b", "c"}) || !cmp.Equal(out[1].Shape, []int{3, 3}) {
		t.Errorf("%q of shape %v", out[0].Strings, out[1].Shape)
	}
	near(t, "scores", out[1], 2, 1, -1, 1, 2, -1, 5, 5, 6)
	three["post_transform"] = "SOFTMAX"
	s := math.Exp(-1) + math.Exp(-3) + 1
	near(t, "softmax", run(t, "LinearClassifier", three, 2, floats([]int{2}, 2, 1))[1], 1/s, math.Exp(-1)/s, math.Exp(-3)/s)

	// One row of coefficients and two labels: the score is that of the second.
	binary := graph.Attrs{"coefficients": []float32{1, -1}, "intercepts": []float32{0}, "classlabels_ints": []int64{7, 8}}
	out = run(t, "LinearClassifier", binary, 2, floats([]int{3, 2}, 3, 1, 1, 3, 1, 1))
	near(t, "labels", out[0], 8, 7, 7)
	near(t, "two scores of one", out[1], -1, 2, 3, -2, 1, 0)
	binary["post_transform"] = "LOGISTIC"
	out = run(t, "LinearClassifier", binary, 2, floats([]int{2}, 3, 1))
	p := 1 / (1 + math.Exp(-2))
	near(t, "two logistic scores of one", out[1], 1-p, p)
	near(t, "labels alone", run(t, "LinearClassifier", binary, 1, floats([]int{2}, 3, 1))[0], 8)
	refuse(t, "want rank 1 or 2", "LinearClassifier", binary, floats([]int{1, 1, 2}, 1, 2))
}

func TestTransforms(t *testing.T) {
	t.Parallel()
	e := math.Exp
	for _, tt := range []struct {
		name     string
		in, want []float64
	}{
		{"NONE", []float64{1, 2}, []float64{1, 2}},
		{"", []float64{1, 2}, []float64{1, 2}},
		{"LOGISTIC", []float64{0, 1}, []float64{0.5, 1 / (1 + e(-1))}},
		{"LOGISTIC", []float64{3}, []float64{3}},
		{"SOFTMAX", []float64{0, 1}, []float64{1 / (1 + e(1)), e(1) / (1 + e(1))}},
		{"SOFTMAX", []float64{1000, 1000}, []float64{0.5, 0.5}},
		{"SOFTMAX", []float64{3}, []float64{3}},
		{"SOFTMAX_ZERO", []float64{0, 2, 1}, []float64{0, 1 / (1 + e(-1)), e(-1) / (1 + e(-1))}},
		{"SOFTMAX_ZERO", []float64{0, 0}, []float64{0, 0}},
		// The quantile of 0.975 is 1.959963985 by tables; a single score is transformed too.
		{"PROBIT", []float64{0.5, 0.975}, []float64{0, 1.959963984540054}},
		{"PROBIT", []float64{0.025}, []float64{-1.959963984540054}},
	} {
		f := transforms[tt.name]
		got := append([]float64{}, tt.in...)
		f.apply(got)
		near(t, tt.name, tensor.From(tensor.Float64, []int{len(got)}, got), tt.want...)
	}
}

// TestRegressors aggregates the votes of the two trees of stump: 1 or 2 and 10 or 20.
func TestRegressors(t *testing.T) {
	t.Parallel()
	x := floats([]int{1, 2}, 2, 1) // the second leaf, the first leaf: 2 and 10
	of := func(change graph.Attrs) graph.Attrs {
		a := stump("target", []int64{0, 0, 0, 0}, []float32{1, 2, 10, 20})
		for k, v := range change {
			a[k] = v
		}
		return a
	}
	for agg, want := range map[string]float64{"": 12, "SUM": 12, "AVERAGE": 6, "MIN": 2, "MAX": 10} {
		a := of(nil)
		if agg != "" {
			a["aggregate_function"] = agg
		}
		near(t, agg, run(t, "TreeEnsembleRegressor", a, 1, x)[0], want)
	}
	near(t, "base", run(t, "TreeEnsembleRegressor", of(graph.Attrs{"base_values": []float32{0.5}}), 1, x)[0], 12.5)
	targets := graph.Attrs{"target_ids": []int64{0, 1, 0, 1}, "n_targets": int64(3), "base_values": []float32{100, 200, 300}}
	near(t, "targets", run(t, "TreeEnsembleRegressor", of(targets), 1, x)[0], 110, 202, 300)
	refuse(t, "2 base values for 1 targets", "TreeEnsembleRegressor", of(graph.Attrs{"base_values": []float32{1, 2}}), x)
	refuse(t, "n_targets 0", "TreeEnsembleRegressor", of(graph.Attrs{"n_targets": int64(0)}), x)
	for want, change := range map[string]graph.Attrs{
		"leaf votes for target 1 of 1":                      {"target_ids": []int64{0, 0, 0, 1}},
		"leaf votes for target -1 of 1":                     {"target_ids": []int64{0, 0, 0, -1}},
		"leaf attributes of lengths 4, 4, 4, 3":             {"target_weights": []float32{1, 2, 3}},
		"leaf attributes of lengths 4, 4, 3, 4":             {"target_ids": []int64{1, 2, 3}},
		"leaf attributes of lengths 4, 3, 4, 4":             {"target_nodeids": []int64{1, 2, 3}},
		"weight for node 9 of tree 1, which does not exist": {"target_nodeids": []int64{1, 2, 1, 9}},
		"tree attributes of lengths 6 and 5":                {"nodes_nodeids": []int64{0, 1, 2, 0, 1}},
		`tree node mode "BRANCH"`:                           {"nodes_modes": []string{"BRANCH", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"}},
		"tree node 3 asks for feature -1":                   {"nodes_featureids": []int64{0, 0, 0, -1, 0, 0}},
		"model asks for 3 features, input is 1x2":           {"nodes_featureids": []int64{0, 0, 0, 2, 0, 0}},
		"3 roots for 2 trees":                               {"nodes_truenodeids": []int64{2, 0, 0, 1, 0, 0}},
		"tree node -1 of 6":                                 {"nodes_modes": []string{"BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "BRANCH_GT"}, "nodes_truenodeids": []int64{1, 0, 0, 1, 0, 7}, "nodes_falsenodeids": []int64{2, 0, 0, 2, 0, 7}},
		`post_transform "Y"`:                                {"post_transform": "Y"},
	} {
		refuse(t, want, "TreeEnsembleRegressor", of(change), x)
	}
}

// TestBranches walks one branch of every mode with values below, at and above its own, and a
// missing one.
func TestBranches(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	x := floats([]int{4, 1}, 1, 2, 3, nan)
	for mode, want := range map[string][4]float64{
		"BRANCH_LEQ": {1, 1, 0, 0}, "BRANCH_LT": {1, 0, 0, 0}, "BRANCH_GTE": {0, 1, 1, 0}, "BRANCH_GT": {0, 0, 1, 0}, "BRANCH_EQ": {0, 1, 0, 0}, "BRANCH_NEQ": {1, 0, 1, 1},
	} {
		for track := range int64(2) {
			a := graph.Attrs{
				"nodes_treeids": []int64{0, 0, 0}, "nodes_nodeids": []int64{0, 1, 2}, "nodes_featureids": []int64{0, 0, 0}, "nodes_values": []float32{2, 0, 0},
				"nodes_modes": []string{mode, "LEAF", "LEAF"}, "nodes_truenodeids": []int64{1, 0, 0}, "nodes_falsenodeids": []int64{2, 0, 0},
				"nodes_missing_value_tracks_true": []int64{track, 0, 0},
				"target_treeids":                  []int64{0, 0}, "target_nodeids": []int64{1, 2}, "target_ids": []int64{0, 0}, "target_weights": []float32{1, 0},
			}
			w := want
			if track == 1 {
				w[3] = 1
			}
			near(t, mode, run(t, "TreeEnsembleRegressor", a, 1, x)[0], w[:]...)
		}
	}
}

// ensemble is a TreeEnsemble of two trees: x0 <= 1 leads to leaf 0 or 1, x1 among 3 and 4 to leaf
// 2 or 3.
func ensemble(change graph.Attrs) graph.Attrs {
	nan := float32(math.NaN())
	a := graph.Attrs{
		"tree_roots": []int64{0, 1}, "nodes_featureids": []int64{0, 1}, "nodes_splits": floats([]int{2}, 1, 0),
		"nodes_modes":       tensor.From(tensor.Uint8, []int{2}, []uint8{0, 6}),
		"nodes_truenodeids": []int64{0, 2}, "nodes_trueleafs": []int64{1, 1}, "nodes_falsenodeids": []int64{1, 3}, "nodes_falseleafs": []int64{1, 1},
		"leaf_weights": floats([]int{4}, 1, 2, 10, 20), "leaf_targetids": []int64{0, 0, 0, 0}, "membership_values": floats([]int{3}, 3, 4, nan),
	}
	for k, v := range change {
		a[k] = v
	}
	return a
}

func TestTreeEnsemble(t *testing.T) {
	t.Parallel()
	x := floats([]int{4, 2}, 1, 3, 2, 4, 1, 5, 2, 0)
	near(t, "sum", run(t, "TreeEnsemble", ensemble(nil), 1, x)[0], 11, 12, 21, 22)
	near(t, "average", run(t, "TreeEnsemble", ensemble(graph.Attrs{"aggregate_function": int64(0)}), 1, x)[0], 5.5, 6, 10.5, 11)
	near(t, "minimum", run(t, "TreeEnsemble", ensemble(graph.Attrs{"aggregate_function": int64(2)}), 1, x)[0], 1, 2, 1, 2)
	near(t, "maximum", run(t, "TreeEnsemble", ensemble(graph.Attrs{"aggregate_function": int64(3)}), 1, x)[0], 10, 10, 20, 20)
	// A branch below another: node 0 leads to node 1 where x0 <= 1.
	deep := graph.Attrs{"tree_roots": []int64{0}, "nodes_truenodeids": []int64{1, 2}, "nodes_trueleafs": []int64{0, 1}}
	near(t, "two levels", run(t, "TreeEnsemble", ensemble(deep), 1, x)[0], 10, 2, 20, 2)
	two := graph.Attrs{"n_targets": int64(2), "leaf_targetids": []int64{0, 1, 1, 0}, "post_transform": int64(2)}
	half := run(t, "TreeEnsemble", ensemble(two), 1, floats([]int{1, 2}, 1, 3))[0]
	near(t, "logistic", half, 1/(1+math.Exp(-1)), 1/(1+math.Exp(-10)))
	// Two sets of members, the second begins behind the mark of the first.
	nan := float32(math.NaN())
	sets := graph.Attrs{"nodes_modes": tensor.From(tensor.Uint8, []int{2}, []uint8{6, 6}), "membership_values": floats([]int{4}, 7, nan, 3, nan)}
	near(t, "sets", run(t, "TreeEnsemble", ensemble(sets), 1, floats([]int{3, 2}, 7, 3, 3, 7, 7, 7))[0], 11, 22, 21)
	if out := run(t, "TreeEnsemble", ensemble(nil), 1, tensor.From(tensor.Float64, []int{1, 2}, []float64{1, 3}))[0]; out.Type != tensor.Float64 {
		t.Errorf("type %v", out.Type)
	}
	for want, change := range map[string]graph.Attrs{
		"aggregate_function 4":                    {"aggregate_function": int64(4)},
		"aggregate_function -1":                   {"aggregate_function": int64(-1)},
		"post_transform 5":                        {"post_transform": int64(5)},
		"post_transform -1":                       {"post_transform": int64(-1)},
		"tree attributes of lengths 2 and 1":      {"nodes_splits": floats([]int{1}, 1)},
		"4 leaf weights, 3 targets":               {"leaf_targetids": []int64{0, 0, 0}},
		"leaf 4 of 4":                             {"nodes_falsenodeids": []int64{1, 4}},
		"leaf -1 of 4":                            {"nodes_truenodeids": []int64{-1, 2}},
		"tree node 2 of 2":                        {"nodes_trueleafs": []int64{1, 0}},
		"tree node -1 of 2":                       {"nodes_truenodeids": []int64{-1, 2}, "nodes_trueleafs": []int64{0, 1}},
		"tree node mode 7":                        {"nodes_modes": tensor.From(tensor.Uint8, []int{2}, []uint8{0, 7})},
		"tree root 6 of 6":                        {"tree_roots": []int64{0, 6}},
		"tree root -1 of 6":                       {"tree_roots": []int64{-1}},
		"tree node 0 is reached twice":            {"nodes_trueleafs": []int64{0, 1}},
		"leaf votes for target 1 of 1":            {"leaf_targetids": []int64{0, 0, 0, 1}},
		"model asks for 3 features, input is 4x2": {"nodes_featureids": []int64{0, 2}},
	} {
		refuse(t, want, "TreeEnsemble", ensemble(change), x)
	}
}

// TestTreeClassifiers has one score a row of one tree x0 <= 1, by the rules for two classes and
// for more.
func TestTreeClassifiers(t *testing.T) {
	t.Parallel()
	tree := func(ids []int64, weights []float32, change graph.Attrs) graph.Attrs {
		a := graph.Attrs{
			"nodes_treeids": []int64{0, 0, 0}, "nodes_nodeids": []int64{0, 1, 2}, "nodes_featureids": []int64{0, 0, 0}, "nodes_values": []float32{1, 0, 0},
			"nodes_modes": []string{"BRANCH_LEQ", "LEAF", "LEAF"}, "nodes_truenodeids": []int64{1, 0, 0}, "nodes_falsenodeids": []int64{2, 0, 0},
			"class_treeids": []int64{0, 0}, "class_nodeids": []int64{1, 2}, "class_ids": ids, "class_weights": weights, "classlabels_int64s": []int64{30, 40},
		}
		for k, v := range change {
			a[k] = v
		}
		return a
	}
	x := floats([]int{2, 1}, 0, 2)
	for _, tt := range []struct {
		name   string
		attrs  graph.Attrs
		labels []float64
		scores []float64
	}{
		{"probabilities", tree([]int64{0, 0}, []float32{0.25, 0.75}, nil), []float64{30, 40}, []float64{0.75, 0.25, 0.25, 0.75}},
		{"a half is no more than a half", tree([]int64{0, 0}, []float32{0.5, 0.75}, nil), []float64{30, 40}, []float64{0.5, 0.5, 0.25, 0.75}},
		{"signed scores", tree([]int64{0, 0}, []float32{-0.25, 0.25}, nil), []float64{30, 40}, []float64{0.25, -0.25, -0.25, 0.25}},
		{
			"logistic", tree([]int64{0, 0}, []float32{-1, 1}, graph.Attrs{"post_transform": "LOGISTIC"}),
			[]float64{30, 40},
			[]float64{1 / (1 + math.Exp(-1)), 1 / (1 + math.Exp(1)), 1 / (1 + math.Exp(1)), 1 / (1 + math.Exp(-1))},
		},
		{"one base", tree([]int64{0, 0}, []float32{-1, 1}, graph.Attrs{"base_values": []float32{1.5}}), []float64{40, 40}, []float64{-0.5, 0.5, -2.5, 2.5}},
		{"three classes", tree([]int64{1, 2}, []float32{-2, 3}, graph.Attrs{"classlabels_int64s": []int64{5, 6, 7}}), []float64{6, 7}, []float64{0, -2, 0, 0, 0, 3}},
		{"three classes with bases", tree([]int64{1, 2}, []float32{-2, 3}, graph.Attrs{"classlabels_int64s": []int64{5, 6, 7}, "base_values": []float32{1, 0, 0}}), []float64{5, 7}, []float64{1, -2, 0, 1, 0, 3}},
		{
			"three classes by softmax", tree([]int64{1, 1}, []float32{0, 0}, graph.Attrs{"classlabels_int64s": []int64{5, 6, 7}, "post_transform": "SOFTMAX"}),
			[]float64{6, 6},
			[]float64{1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 3},
		},
		{"both classes vote", tree([]int64{0, 1}, []float32{0.25, 0.75}, nil), []float64{40, 40}, nil},
		{"one class", tree([]int64{0, 0}, []float32{-0.25, 0.75}, graph.Attrs{"classlabels_int64s": []int64{9}}), []float64{0, 1}, nil},
	} {
		out := run(t, "TreeEnsembleClassifier", tt.attrs, 2, x)
		near(t, tt.name+", labels", out[0], tt.labels...)
		if tt.scores != nil {
			near(t, tt.name+", scores", out[1], tt.scores...)
		}
	}
	names := tree([]int64{0, 0}, []float32{0.25, 0.75}, graph.Attrs{"classlabels_strings": []string{"no", "yes"}})
	delete(names, "classlabels_int64s")
	if out := run(t, "TreeEnsembleClassifier", names, 1, x); !cmp.Equal(out[0].Strings, []string{"no", "yes"}) {
		t.Errorf("labels %q", out[0].Strings)
	}
	refuse(t, "leaf votes for target 2 of 2", "TreeEnsembleClassifier", tree([]int64{0, 2}, []float32{1, 1}, nil), x)
	refuse(t, "model asks for 1 features", "TreeEnsembleClassifier", tree([]int64{0, 0}, []float32{1, 1}, nil), floats([]int{1, 0}))
}

func TestMachines(t *testing.T) {
	t.Parallel()
	x := floats([]int{1, 2}, 1, 2)
	for _, tt := range []struct {
		kernel string
		params []float32
		want   float64
	}{
		// vectors (3, 4) and (1, -1) with coefficients 2 and -1, rho -3
		{"LINEAR", nil, 2*(3+8) - 1*(1-2) - 3},
		{"POLY", []float32{0.5, 1, 2}, 2*6.5*6.5 - 0.5*0.5 - 3},
		{"RBF", []float32{0.25, 0, 0}, 2*math.Exp(-0.25*8) - math.Exp(-0.25*9) - 3},
		{"SIGMOID", []float32{0.5, 1, 0}, 2*math.Tanh(6.5) - math.Tanh(0.5) - 3},
	} {
		a := graph.Attrs{"kernel_type": tt.kernel, "n_supports": int64(2), "support_vectors": []float32{3, 4, 1, -1}, "coefficients": []float32{2, -1}, "rho": []float32{-3}}
		if tt.params != nil {
			a["kernel_params"] = tt.params
		}
		near(t, tt.kernel, run(t, "SVMRegressor", a, 1, x)[0], tt.want)
	}
	plane := graph.Attrs{"coefficients": []float32{1, -1}, "rho": []float32{0.5}}
	near(t, "no vectors", run(t, "SVMRegressor", plane, 1, x)[0], -0.5)
	plane["one_class"] = int64(1)
	near(t, "one class", run(t, "SVMRegressor", plane, 1, floats([]int{3, 2}, 1, 2, 2, 1, 1, 1.5))[0], -1, 1, -1)
	for want, a := range map[string]graph.Attrs{
		`kernel_type "X"`:     {"kernel_type": "X"},
		"0 kernel parameters": {"kernel_type": "RBF"},
		"2 coefficients, 3 support values, 1 rho for 2 features": {"n_supports": int64(2), "support_vectors": []float32{3, 4, 1}, "coefficients": []float32{2, -1}, "rho": []float32{0}},
		"1 coefficients, 4 support values, 1 rho for 2 features": {"n_supports": int64(2), "support_vectors": []float32{3, 4, 1, 2}, "coefficients": []float32{2}, "rho": []float32{0}},
		"0 rho for 2 features": {"n_supports": int64(1), "support_vectors": []float32{3, 4}, "coefficients": []float32{2}},
	} {
		refuse(t, want, "SVMRegressor", a, x)
	}
}

func TestMachineClassifiers(t *testing.T) {
	t.Parallel()
	// No support vectors: a score a class.
	direct := graph.Attrs{"coefficients": []float32{1, 0, 0, 1, -1, -1}, "rho": []float32{0.5}, "classlabels_ints": []int64{4, 5, 6}}
	out := run(t, "SVMClassifier", direct, 2, floats([]int{2, 2}, 1, 2, -3, -1))
	near(t, "labels", out[0], 5, 6)
	near(t, "scores", out[1], 1.5, 2.5, -2.5, -2.5, -0.5, 4.5)

	// Two classes with one vector each: the pair's score is 2 x (3 - ...) by hand.
	pair := graph.Attrs{
		"vectors_per_class": []int64{1, 1}, "support_vectors": []float32{1, 2}, "coefficients": []float32{3, -1}, "rho": []float32{-0.5}, "classlabels_strings": []string{"a", "b"},
	}
	// x = 1: 3*1 - 1*2 - 0.5 = 0.5, the first wins; x = -1: -1.5, the second.
	out = run(t, "SVMClassifier", pair, 2, floats([]int{2, 1}, 1, -1))
	if !cmp.Equal(out[0].Strings, []string{"a", "b"}) {
		t.Errorf("labels %q", out[0].Strings)
	}
	near(t, "signed pair", out[1], -0.5, 0.5, 1.5, -1.5)
	pair["coefficients"] = []float32{3, 1} // x = 1: 3 + 2 - 0.5 = 4.5
	near(t, "pair of one sign", run(t, "SVMClassifier", pair, 2, floats([]int{1, 1}, 1))[1], -3.5, 4.5)
	pair["post_transform"] = "LOGISTIC"
	near(t, "logistic pair", run(t, "SVMClassifier", pair, 2, floats([]int{1, 1}, 1))[1], 1/(1+math.Exp(4.5)), 1/(1+math.Exp(-4.5)))

	// Three classes, vectors 1, 2 | 3 | 4; coefficients in rows for the other classes.
	three := graph.Attrs{
		"vectors_per_class": []int64{2, 1, 1}, "support_vectors": []float32{1, 2, 3, 4},
		"coefficients": []float32{1, 1, -2, -3, 5, 1, 1, -1}, "rho": []float32{0.25, 0.5, 1}, "classlabels_ints": []int64{0, 1, 2},
	}
	// x = 1: 0 against 1: 1*1 + 1*2 - 2*3 + 0.25 = -2.75; 0 against 2: 5*1 + 1*2 - 3*4 + 0.5 =
	// -4.5; 1 against 2: row 1 of class 1's vector, 1*3, and row 1 of class 2's, -1*4, + 1 = 0.
	out = run(t, "SVMClassifier", three, 2, floats([]int{1, 1}, 1))
	near(t, "votes", out[0], 2)
	near(t, "pairs", out[1], -2.75, -4.5, 0)
	// x = -1: 3.25, 5.5, 2: class 0 has two votes.
	near(t, "other votes", run(t, "SVMClassifier", three, 2, floats([]int{1, 1}, -1))[0], 0)

	// Pairwise probabilities: of two classes they are the answer, sigmoid(-(v A + B)).
	pair["post_transform"], pair["prob_a"], pair["prob_b"] = "NONE", []float32{-0.5}, []float32{0.25}
	p := 1 / (1 + math.Exp(-0.5*4.5+0.25))
	got := run(t, "SVMClassifier", pair, 2, floats([]int{1, 1}, 1))[1]
	// the iteration ends at 0.005/n
	if why := optest.Differ(got, []float64{p, 1 - p}, 0.003, 0); why != "" {
		t.Errorf("two probabilities: %s", why)
	}
	three["prob_a"], three["prob_b"] = []float32{0, 0, 0}, []float32{0, 0, 0}
	near(t, "equal probabilities", run(t, "SVMClassifier", three, 2, floats([]int{1, 1}, 1))[1], 1.0/3, 1.0/3, 1.0/3)
	three["prob_b"] = []float32{-50, -50, 0} // class 0 wins each of its pairs
	got = run(t, "SVMClassifier", three, 2, floats([]int{1, 1}, 1))[1]
	if why := optest.Differ(got, []float64{1, 0, 0}, 0.01, 0); why != "" {
		t.Errorf("one sure class: %s", why)
	}
	bad := func(change graph.Attrs) graph.Attrs {
		a := graph.Attrs{}
		for _, m := range []graph.Attrs{three, change} {
			for k, v := range m {
				a[k] = v
			}
		}
		return a
	}
	x := floats([]int{1, 1}, 1)
	for want, change := range map[string]graph.Attrs{
		"no class labels":                {"classlabels_ints": []int64{}},
		"vectors_per_class [2 -1 1]":     {"vectors_per_class": []int64{2, -1, 1}},
		"4 support values, 8":            {"vectors_per_class": []int64{2, 2}},
		"3 support values, 8":            {"support_vectors": []float32{1, 2, 3}},
		"4 support values, 7":            {"coefficients": []float32{1, 1, -2, -3, 5, 1, 1}},
		"8 coefficients, 2 rho":          {"rho": []float32{1, 2}},
		"3 prob_a, 2 prob_b":             {"prob_b": []float32{1, 2}},
		"2 prob_a, 2 prob_b for 3 pairs": {"prob_a": []float32{1, 2}, "prob_b": []float32{1, 2}},
		"8 coefficients for 3 classes":   {"vectors_per_class": []int64{0, 0, 0}},
	} {
		refuse(t, want, "SVMClassifier", bad(change), x)
	}
}

func mapOf(keys, values *tensor.Tensor) *tensor.Tensor {
	return &tensor.Tensor{Type: tensor.Map, Elem: values.Type, Data: []byte{}, Elems: []*tensor.Tensor{keys, values}}
}

func TestMaps(t *testing.T) {
	t.Parallel()
	m := mapOf(longs(7, 3, 5), floats([]int{3}, 1.5, 2, 3))
	out := run(t, "DictVectorizer", graph.Attrs{"int64_vocabulary": []int64{3, 4, 7}}, 1, m)[0]
	near(t, "vocabulary", out, 2, 0, 1.5)
	if !cmp.Equal(out.Shape, []int{1, 3}) {
		t.Errorf("shape %v", out.Shape)
	}
	words := run(t, "DictVectorizer", graph.Attrs{"string_vocabulary": []string{"a", "b"}}, 1, mapOf(texts("b", "c"), texts("x", "y")))[0]
	if !cmp.Equal(words.Strings, []string{"", "x"}) {
		t.Errorf("words %q", words.Strings)
	}
	near(t, "by order of keys", run(t, "CastMap", nil, 1, m)[0], 2, 3, 1.5)
	near(t, "integers", run(t, "CastMap", graph.Attrs{"cast_to": "TO_INT64"}, 1, m)[0], 2, 3, 1)
	if got := run(t, "CastMap", graph.Attrs{"cast_to": "TO_STRING"}, 1, m)[0]; !cmp.Equal(got.Strings, []string{"2", "3", "1.5"}) {
		t.Errorf("texts %q", got.Strings)
	}
	near(t, "numbers of texts", run(t, "CastMap", nil, 1, mapOf(longs(1, 0), texts("1.5", "-2")))[0], -2, 1.5)
	if got := run(t, "CastMap", graph.Attrs{"cast_to": "TO_STRING"}, 1, mapOf(longs(1, 0), texts("x", "y")))[0]; !cmp.Equal(got.Strings, []string{"y", "x"}) {
		t.Errorf("texts %q", got.Strings)
	}
	sparse := graph.Attrs{"map_form": "SPARSE", "max_map": int64(8)}
	near(t, "by keys", run(t, "CastMap", sparse, 1, m)[0], 0, 0, 0, 2, 0, 3, 0, 1.5)
	refuse(t, "key 7 of a map of 7", "CastMap", graph.Attrs{"map_form": "SPARSE", "max_map": int64(7)}, m)
	refuse(t, "key -1 of a map of 8", "CastMap", sparse, mapOf(longs(-1), floats([]int{1}, 1)))
	refuse(t, "max_map -1", "CastMap", graph.Attrs{"map_form": "SPARSE", "max_map": int64(-1)}, m)
	refuse(t, `cast_to "X"`, "CastMap", graph.Attrs{"cast_to": "X"}, m)
	refuse(t, `value "x" is not a number`, "CastMap", nil, mapOf(longs(1), texts("x")))
	refuse(t, "input is not a map", "CastMap", nil, floats([]int{1}, 1))
	refuse(t, "map with 2 parts", "DictVectorizer", nil, mapOf(longs(1, 2), floats([]int{1}, 1)))
	refuse(t, "map with 1 parts", "DictVectorizer", nil, &tensor.Tensor{Type: tensor.Map, Data: []byte{}, Elems: []*tensor.Tensor{longs(1)}})

	z := run(t, "ZipMap", graph.Attrs{"classlabels_int64s": []int64{8, 9}}, 1, floats([]int{2}, 0.25, 0.75))[0]
	if len(z.Elems) != 1 || z.Elem != tensor.Map || z.Elems[0].Elem != tensor.Float32 {
		t.Fatalf("%+v", z)
	}
	near(t, "keys", z.Elems[0].Elems[0], 8, 9)
	near(t, "values", z.Elems[0].Elems[1], 0.25, 0.75)
	refuse(t, "3 labels for scores 2", "ZipMap", graph.Attrs{"classlabels_int64s": []int64{8, 9, 10}}, floats([]int{2}, 0.25, 0.75))
	refuse(t, "2 labels for scores 2 of float64", "ZipMap", graph.Attrs{"classlabels_int64s": []int64{8, 9}}, tensor.New(tensor.Float64, 2))
}
