package reduce

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f64(shape []int, v ...float64) *tensor.Tensor { return tensor.From(tensor.Float64, shape, v) }

func i64(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }

func as(typ tensor.Type, x *tensor.Tensor) *tensor.Tensor {
	y := tensor.New(typ, x.Shape...)
	tensor.Fill(y, func(i int) float64 { return tensor.At(x, i) })
	return y
}

func run(t *testing.T, op string, version int, attrs graph.Attrs, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), optest.Node{Op: op, Version: version, Attrs: attrs}, in...)
	if err != nil {
		t.Fatalf("%s %v of %v: %v", op, attrs, in[0].Type, err)
	}
	return out[0]
}

func refuse(t *testing.T, want, op string, version int, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Op: op, Version: version, Attrs: attrs}, in...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", op, err, want)
	}
}

// TestReductions reduces 1 2 3 / 4 5 6 along rows, in each type.
func TestReductions(t *testing.T) {
	t.Parallel()
	x := f64([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	for _, tt := range []struct {
		op          string
		want, whole []float64 // of reals and of integers
	}{
		{"ReduceSum", []float64{6, 15}, nil},
		{"ReduceMean", []float64{2, 5}, nil},
		{"ReduceProd", []float64{6, 120}, nil},
		{"ReduceMax", []float64{3, 6}, nil},
		{"ReduceMin", []float64{1, 4}, nil},
		{"ReduceL1", []float64{6, 15}, nil},
		{"ReduceL2", []float64{math.Sqrt(14), math.Sqrt(77)}, []float64{3, 8}},
		{"ReduceSumSquare", []float64{14, 77}, nil},
		{"ReduceLogSum", []float64{math.Log(6), math.Log(15)}, []float64{1, 2}},
		{"ReduceLogSumExp", []float64{3 + math.Log(1+math.Exp(-1)+math.Exp(-2)), 6 + math.Log(1+math.Exp(-1)+math.Exp(-2))}, []float64{3, 6}},
	} {
		for _, typ := range []tensor.Type{tensor.Float64, tensor.Float32, tensor.Int8, tensor.Int64, tensor.Uint16} {
			want, rel := tt.want, 1e-6 // of float32
			if typ.IsInteger() && tt.whole != nil {
				want = tt.whole
			}
			if why := optest.Differ(run(t, tt.op, 18, nil, as(typ, x), i64(1)), want, 0, rel); why != "" {
				t.Errorf("%s of %v: %s", tt.op, typ, why)
			}
		}
	}
	neg := f64([]int{3}, -3, 4, -5)
	for op, want := range map[string]float64{"ReduceL1": 12, "ReduceSumSquare": 50, "ReduceMax": 4, "ReduceMin": -5, "ReduceProd": 60, "ReduceSum": -4} {
		for _, typ := range []tensor.Type{tensor.Float64, tensor.Int32} {
			if why := optest.Differ(run(t, op, 18, nil, as(typ, neg)), []float64{want}, 0, 1e-12); why != "" {
				t.Errorf("%s of %v: %s", op, typ, why)
			}
		}
	}
	// Empty input: the neutral element of each.
	none := tensor.New(tensor.Float64, 0, 2)
	for op, want := range map[string]float64{"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": math.Inf(-1), "ReduceMin": math.Inf(1), "ReduceL2": 0, "ReduceLogSumExp": math.Inf(-1), "ReduceLogSum": math.Inf(-1)} {
		if why := optest.Differ(run(t, op, 20, nil, none, i64(0)), []float64{want, want}, 0, 0); why != "" {
			t.Errorf("%s of nothing: %s", op, why)
		}
	}
	for op, want := range map[string]float64{"ReduceMax": -128, "ReduceMin": 127, "ReduceMean": 0, "ReduceLogSum": 0} {
		if why := optest.Differ(run(t, op, 20, nil, tensor.New(tensor.Int8, 0, 1), i64(0)), []float64{want}, 0, 0); why != "" {
			t.Errorf("%s of no bytes: %s", op, why)
		}
	}
	truth := tensor.From(tensor.Bool, []int{2, 2}, []uint8{0, 1, 0, 0})
	if got := run(t, "ReduceMax", 20, nil, truth, i64(1)); !cmp.Equal(got.Data, []byte{1, 0}) {
		t.Errorf("any of truths: %v", got.Data)
	}
	if got := run(t, "ReduceMin", 20, nil, truth, i64(0)); !cmp.Equal(got.Data, []byte{0, 0}) || got.Type != tensor.Bool {
		t.Errorf("all of truths: %v", got.Data)
	}
	refuse(t, "ReduceSum of bool", "ReduceSum", 20, nil, truth)
}

// TestAxes: axes are an attribute or an input; none means all, or none if the node says so.
func TestAxes(t *testing.T) {
	t.Parallel()
	x := f64([]int{2, 1, 3}, 1, 2, 3, 4, 5, 6)
	for _, tt := range []struct {
		attrs graph.Attrs
		axes  *tensor.Tensor
		shape []int
		want  []float64
	}{
		{nil, nil, []int{1, 1, 1}, []float64{21}},
		{graph.Attrs{"keepdims": int64(0)}, nil, []int{}, []float64{21}},
		{nil, i64(0), []int{1, 1, 3}, []float64{5, 7, 9}},
		{nil, i64(-1), []int{2, 1, 1}, []float64{6, 15}},
		{nil, i64(0, 2), []int{1, 1, 1}, []float64{21}},
		{graph.Attrs{"keepdims": int64(0)}, i64(0), []int{1, 3}, []float64{5, 7, 9}},
		{graph.Attrs{"keepdims": int64(0)}, i64(1), []int{2, 3}, []float64{1, 2, 3, 4, 5, 6}},
		{graph.Attrs{"axes": []int64{2}}, nil, []int{2, 1, 1}, []float64{6, 15}},
		{graph.Attrs{"noop_with_empty_axes": int64(1)}, nil, []int{2, 1, 3}, []float64{1, 2, 3, 4, 5, 6}},
		{graph.Attrs{"noop_with_empty_axes": int64(1)}, i64(), []int{2, 1, 3}, []float64{1, 2, 3, 4, 5, 6}},
		{nil, i64(), []int{1, 1, 1}, []float64{21}},
		{graph.Attrs{"noop_with_empty_axes": int64(1)}, i64(0), []int{1, 1, 3}, []float64{5, 7, 9}},
	} {
		got := run(t, "ReduceSum", 13, tt.attrs, x, tt.axes)
		if why := optest.Differ(got, tt.want, 0, 0); why != "" || len(got.Shape) != len(tt.shape) || len(tt.shape) > 0 && !cmp.Equal(got.Shape, tt.shape) {
			t.Errorf("%v: shape %v, %s", tt.attrs, got.Shape, why)
		}
	}
	refuse(t, "axis 3 is outside rank 3", "ReduceSum", 13, nil, x, i64(3))
	refuse(t, "axis -4 is outside rank 3", "ReduceSum", 13, graph.Attrs{"axes": []int64{-4}}, x)
	refuse(t, "input 0 is missing", "ReduceSum", 13, nil, nil)
}

func TestArgs(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	x := f64([]int{2, 3}, 1, 7, 7, 4, 2, 2)
	for _, tt := range []struct {
		op    string
		attrs graph.Attrs
		want  []float64
		shape []int
	}{
		{"ArgMax", nil, []float64{1, 0, 0}, []int{1, 3}},
		{"ArgMax", graph.Attrs{"axis": int64(1)}, []float64{1, 0}, []int{2, 1}},
		{"ArgMax", graph.Attrs{"axis": int64(-1), "select_last_index": int64(1)}, []float64{2, 0}, []int{2, 1}},
		{"ArgMin", graph.Attrs{"axis": int64(1), "keepdims": int64(0)}, []float64{0, 1}, []int{2}},
		{"ArgMin", graph.Attrs{"axis": int64(1), "select_last_index": int64(1)}, []float64{0, 2}, []int{2, 1}},
		{"ArgMin", nil, []float64{0, 1, 1}, []int{1, 3}},
	} {
		for _, typ := range []tensor.Type{tensor.Float64, tensor.Float32, tensor.Int8, tensor.Uint64, tensor.Float16} {
			got := run(t, tt.op, 13, tt.attrs, as(typ, x))
			if why := optest.Differ(got, tt.want, 0, 0); why != "" || !cmp.Equal(got.Shape, tt.shape) || got.Type != tensor.Int64 {
				t.Errorf("%s %v of %v: %v, %s", tt.op, tt.attrs, typ, got.Shape, why)
			}
		}
	}
	// The first NaN wins.
	for _, op := range []string{"ArgMax", "ArgMin"} {
		if why := optest.Differ(run(t, op, 13, nil, f64([]int{4}, 5, nan, 9, nan)), []float64{1}, 0, 0); why != "" {
			t.Errorf("%s with NaN: %s", op, why)
		}
	}
	// Many columns of a long plane, in blocks.
	wide := tensor.New(tensor.Float32, 2, 3, 1000)
	for i := range 1000 {
		tensor.Of[float32](wide)[3000+1000*(i%3)+i] = 1
	}
	got := tensor.Of[int64](run(t, "ArgMax", 13, graph.Attrs{"axis": int64(1)}, wide))
	for i := range 1000 {
		if got[i] != 0 || got[1000+i] != int64(i%3) {
			t.Fatalf("column %d: %d and %d", i, got[i], got[1000+i])
		}
	}
	refuse(t, "no elements along axis 0", "ArgMax", 13, nil, f64([]int{0, 2}))
	refuse(t, "axis 2 is outside rank 2", "ArgMax", 13, graph.Attrs{"axis": int64(2)}, x)
	refuse(t, "ArgMax of bool", "ArgMax", 13, nil, tensor.New(tensor.Bool, 2))
}

func TestCumulative(t *testing.T) {
	t.Parallel()
	x := f64([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	ex, rev := graph.Attrs{"exclusive": int64(1)}, graph.Attrs{"reverse": int64(1)}
	both := graph.Attrs{"exclusive": int64(1), "reverse": int64(1)}
	for _, tt := range []struct {
		op    string
		attrs graph.Attrs
		axis  int64
		want  []float64
	}{
		{"CumSum", nil, 1, []float64{1, 3, 6, 4, 9, 15}},
		{"CumSum", nil, 0, []float64{1, 2, 3, 5, 7, 9}},
		{"CumSum", ex, -1, []float64{0, 1, 3, 0, 4, 9}},
		{"CumSum", rev, 1, []float64{6, 5, 3, 15, 11, 6}},
		{"CumSum", both, 1, []float64{5, 3, 0, 11, 6, 0}},
		{"CumProd", nil, 1, []float64{1, 2, 6, 4, 20, 120}},
		{"CumProd", ex, 1, []float64{1, 1, 2, 1, 4, 20}},
		{"CumProd", rev, 0, []float64{4, 10, 18, 4, 5, 6}},
		{"CumProd", both, 0, []float64{4, 5, 6, 1, 1, 1}},
	} {
		for _, typ := range []tensor.Type{tensor.Float64, tensor.Float32, tensor.Int8, tensor.Uint32} {
			if why := optest.Differ(run(t, tt.op, 26, tt.attrs, as(typ, x), i64(tt.axis)), tt.want, 0, 0); why != "" {
				t.Errorf("%s %v of %v: %s", tt.op, tt.attrs, typ, why)
			}
		}
	}
	refuse(t, "axis has 2 elements", "CumSum", 14, nil, x, i64(0, 1))
	refuse(t, "axis 2 is outside rank 2", "CumSum", 14, nil, x, i64(2))
	refuse(t, "a scalar has no axis", "CumSum", 14, nil, f64([]int{}, 1), i64(0))
	refuse(t, "CumSum of bool", "CumSum", 14, nil, tensor.New(tensor.Bool, 2), i64(0))
	refuse(t, "input 1 is missing", "CumSum", 14, nil, x)
}

// TestSoftmaxes weighs 0 and ln 3 as 1/4 and 3/4. Up to version 12 all axes from one on are
// normalised together.
func TestSoftmaxes(t *testing.T) {
	t.Parallel()
	l, inf := math.Log(3), math.Inf(-1)
	row := f64([]int{2, 2}, 0, l, 5, 5)
	cube := f64([]int{2, 2, 1}, 0, l, 0, 0)
	for _, tt := range []struct {
		op      string
		version int
		attrs   graph.Attrs
		x       *tensor.Tensor
		want    []float64
	}{
		{"Softmax", 13, nil, row, []float64{.25, .75, .5, .5}},
		{"Softmax", 13, graph.Attrs{"axis": int64(0)}, f64([]int{2, 2}, 0, 5, l, 5), []float64{.25, .5, .75, .5}},
		{"Softmax", 13, nil, cube, []float64{1, 1, 1, 1}},
		{"Softmax", 13, graph.Attrs{"axis": int64(1)}, cube, []float64{.25, .75, .5, .5}},
		{"Softmax", 11, nil, cube, []float64{.25, .75, .5, .5}},
		{"Softmax", 11, graph.Attrs{"axis": int64(0)}, f64([]int{2, 2}, 0, 0, 0, 0), []float64{.25, .25, .25, .25}},
		{"Softmax", 11, graph.Attrs{"axis": int64(2)}, f64([]int{1, 2}, 0, 1), []float64{1, 1}},
		{"Softmax", 13, nil, f64([]int{2}, 1000, 1000), []float64{.5, .5}},
		{"Softmax", 13, nil, f64([]int{3}, 0, inf, 0), []float64{.5, 0, .5}},
		{"Softmax", 13, nil, f64([]int{}, 7), []float64{1}},
		{"Softmax", 13, nil, f64([]int{0, 2}), nil},
		{"Softmax", 13, nil, f64([]int{2, 0}), nil},
		{"LogSoftmax", 13, nil, row, []float64{-math.Log(4), l - math.Log(4), -math.Ln2, -math.Ln2}},
		{"LogSoftmax", 13, graph.Attrs{"axis": int64(0)}, f64([]int{2, 2}, 0, 5, l, 5), []float64{-math.Log(4), -math.Ln2, l - math.Log(4), -math.Ln2}},
		{"Hardmax", 13, nil, f64([]int{2, 3}, 1, 3, 3, 2, 1, 0), []float64{0, 1, 0, 1, 0, 0}},
		{"Hardmax", 13, graph.Attrs{"axis": int64(0)}, f64([]int{2, 3}, 1, 3, 3, 2, 1, 3), []float64{0, 1, 1, 1, 0, 0}},
	} {
		for _, typ := range []tensor.Type{tensor.Float64, tensor.Float32} {
			// of float32
			if why := optest.Differ(run(t, tt.op, tt.version, tt.attrs, as(typ, tt.x)), tt.want, 1e-6, 1e-6); why != "" {
				t.Errorf("%s %v of %v: %s", tt.op, tt.attrs, typ, why)
			}
		}
	}
	refuse(t, "axis 2 is outside rank 2", "Softmax", 13, graph.Attrs{"axis": int64(2)}, row)
	refuse(t, "axis 3 is outside rank 2", "Softmax", 11, graph.Attrs{"axis": int64(3)}, row)
	refuse(t, "Softmax of int8", "Softmax", 13, nil, tensor.New(tensor.Int8, 2))
}
