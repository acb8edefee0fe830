package pool

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func run(t *testing.T, op string, version int, attrs graph.Attrs, outputs int, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), optest.Node{Op: op, Version: version, Attrs: attrs, Outputs: outputs}, in...)
	if err != nil {
		t.Fatalf("%s %v: %v", op, attrs, err)
	}
	return out
}

func refuse(t *testing.T, want, op string, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Op: op, Version: 22, Attrs: attrs}, in...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", op, err, want)
	}
}

func near(t *testing.T, what string, got *tensor.Tensor, want ...float64) {
	t.Helper()
	if why := optest.Differ(got, want, 0, 1e-6); why != "" { // a rounding of float32
		t.Errorf("%s: %s", what, why)
	}
}

// square is an image of 3x3 with the values 1 to 9, also as a list of planes in rank 5.
func square(planes ...int) *tensor.Tensor {
	return f32(append(planes, 3, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9)
}

// TestWindows pools the square with windows of 2x2. With a further axis of one the general method
// must give the same.
func TestWindows(t *testing.T) {
	t.Parallel()
	deeper := func(a graph.Attrs) graph.Attrs {
		out := graph.Attrs{}
		for k, v := range a {
			out[k] = v
			switch list, ok := v.([]int64); {
			case !ok:
			case k == "pads":
				out[k] = []int64{0, list[0], list[1], 0, list[2], list[3]}
			default:
				out[k] = append([]int64{1}, list...)
			}
		}
		return out
	}
	k := func(more graph.Attrs) graph.Attrs {
		a := graph.Attrs{"kernel_shape": []int64{2, 2}}
		for n, v := range more {
			a[n] = v
		}
		return a
	}
	pads := []int64{1, 0, 0, 1}
	root := math.Sqrt
	for _, tt := range []struct {
		op    string
		attrs graph.Attrs
		want  []float64
	}{
		{"AveragePool", k(nil), []float64{3, 4, 6, 7}},
		{"AveragePool", k(graph.Attrs{"pads": pads}), []float64{1.5, 2.5, 3, 3, 4, 4.5, 6, 7, 7.5}},
		{"AveragePool", k(graph.Attrs{"pads": pads, "count_include_pad": int64(1)}), []float64{.75, 1.25, .75, 3, 4, 2.25, 6, 7, 3.75}},
		{"AveragePool", k(graph.Attrs{"strides": []int64{2, 2}, "ceil_mode": int64(1)}), []float64{3, 4.5, 7.5, 9}},
		{"AveragePool", k(graph.Attrs{"strides": []int64{2, 2}, "ceil_mode": int64(1), "count_include_pad": int64(1)}), []float64{3, 4.5, 7.5, 9}},
		{"AveragePool", k(graph.Attrs{"dilations": []int64{2, 2}}), []float64{5}},
		{"AveragePool", graph.Attrs{"kernel_shape": []int64{1, 2}, "strides": []int64{2, 1}}, []float64{1.5, 2.5, 7.5, 8.5}},
		{"MaxPool", k(nil), []float64{5, 6, 8, 9}},
		{"MaxPool", k(graph.Attrs{"pads": pads}), []float64{2, 3, 3, 5, 6, 6, 8, 9, 9}},
		{"MaxPool", k(graph.Attrs{"strides": []int64{2, 2}, "ceil_mode": int64(1)}), []float64{5, 6, 8, 9}},
		{"MaxPool", k(graph.Attrs{"dilations": []int64{2, 2}, "pads": []int64{1, 1, 0, 0}}), []float64{5, 6, 8, 9}},
		{"MaxPool", k(graph.Attrs{"strides": []int64{1, 2}, "pads": []int64{0, 1, 0, 0}}), []float64{4, 6, 7, 9}},
		{"LpPool", k(nil), []float64{root(1 + 4 + 16 + 25), root(4 + 9 + 25 + 36), root(16 + 25 + 49 + 64), root(25 + 36 + 64 + 81)}},
		{"LpPool", k(graph.Attrs{"p": int64(1)}), []float64{12, 16, 24, 28}},
		{"LpPool", k(graph.Attrs{"p": int64(3), "strides": []int64{2, 2}}), []float64{math.Cbrt(1 + 8 + 64 + 125)}},
		{"LpPool", k(graph.Attrs{"p": float32(1)}), []float64{12, 16, 24, 28}},
	} {
		near(t, tt.op, run(t, tt.op, 22, tt.attrs, 1, square(1, 1))[0], tt.want...)
		near(t, tt.op+" of rank 5", run(t, tt.op, 22, deeper(tt.attrs), 1, square(1, 1, 1))[0], tt.want...)
	}
	// Planes are independent; integers keep their type; nothing is below everything.
	two := f32([]int{1, 2, 1, 2}, 1, 2, -4, -3)
	row := graph.Attrs{"kernel_shape": []int64{1, 2}}
	near(t, "planes, average", run(t, "AveragePool", 22, row, 1, two)[0], 1.5, -3.5)
	near(t, "planes, maximum", run(t, "MaxPool", 22, row, 1, two)[0], 2, -3)
	near(t, "bytes", run(t, "MaxPool", 22, row, 1, tensor.From(tensor.Int8, []int{1, 2, 1, 2}, []int8{-128, -128, -5, -7}))[0], -128, -5)
	near(t, "unsigned bytes", run(t, "MaxPool", 22, row, 1, tensor.From(tensor.Uint8, []int{1, 1, 1, 2}, []uint8{200, 7}))[0], 200)
	near(t, "nothing to see", run(t, "MaxPool", 22, graph.Attrs{"kernel_shape": []int64{1}, "pads": []int64{1, 0}}, 1, tensor.From(tensor.Int8, []int{1, 1, 1}, []int8{5}))[0], -128, 5)
	near(t, "nothing to average", run(t, "AveragePool", 22, graph.Attrs{"kernel_shape": []int64{1}, "pads": []int64{1, 0}}, 1, f32([]int{1, 1, 1}, 5))[0], 0, 5)
	near(t, "nothing to average in a plane", run(t, "AveragePool", 22, graph.Attrs{"kernel_shape": []int64{1, 1}, "pads": []int64{0, 1, 0, 0}}, 1, f32([]int{1, 1, 1, 1}, 5))[0], 0, 5)
	refuse(t, "kernel_shape is missing", "MaxPool", nil, two)
	refuse(t, "input 1x2", "MaxPool", row, f32([]int{1, 2}, 1, 2))
	refuse(t, "MaxPool of int32", "MaxPool", row, tensor.New(tensor.Int32, 1, 1, 1, 2))
}

// TestIndices checks the position in the whole input of each maximum, the first of equal ones.
func TestIndices(t *testing.T) {
	t.Parallel()
	x := f32([]int{1, 2, 2, 3}, 1, 5, 5, 0, 0, 0, 7, 7, 2, 9, 9, 9)
	k := graph.Attrs{"kernel_shape": []int64{2, 2}}
	out := run(t, "MaxPool", 22, k, 2, x)
	near(t, "maxima", out[0], 5, 5, 9, 9)
	near(t, "places", out[1], 1, 1, 9, 10)
	// columns first: place (0, 1) of 2x3 is 2, (1, 0) is 1, (1, 1) is 3
	k["storage_order"] = int64(1)
	near(t, "places by columns", run(t, "MaxPool", 22, k, 2, x)[1], 2, 2, 7, 9)
	neg := run(t, "MaxPool", 22, graph.Attrs{"kernel_shape": []int64{2}}, 2, f32([]int{1, 1, 3}, float32(math.Inf(-1)), float32(math.Inf(-1)), -1))
	near(t, "infinities", neg[0], math.Inf(-1), -1)
	near(t, "places of infinities", neg[1], 0, 2)
}

func TestUnpool(t *testing.T) {
	t.Parallel()
	x, at := f32([]int{1, 1, 2, 2}, 1, 2, 3, 4), tensor.From(tensor.Int64, []int{1, 1, 2, 2}, []int64{5, 7, 13, 15})
	k := graph.Attrs{"kernel_shape": []int64{2, 2}, "strides": []int64{2, 2}}
	near(t, "unpooled", run(t, "MaxUnpool", 22, k, 1, x, at)[0], 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4)
	shape := tensor.From(tensor.Int64, []int{4}, []int64{1, 1, 5, 4})
	wider := run(t, "MaxUnpool", 22, k, 1, x, at, shape)[0]
	near(t, "longer", wider, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0)
	shape = tensor.From(tensor.Int64, []int{4}, []int64{1, 1, 4, 5})
	near(t, "wider", run(t, "MaxUnpool", 22, k, 1, x, at, shape)[0], 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 0)
	padded := graph.Attrs{"kernel_shape": []int64{3, 2}, "pads": []int64{1, 0, 0, 1}}
	if got := run(t, "MaxUnpool", 22, padded, 1, x, tensor.New(tensor.Int64, 1, 1, 2, 2))[0].Shape; !cmp.Equal(got, []int{1, 1, 3, 2}) {
		t.Errorf("shape %v", got)
	}
	index := func(v int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{1, 1, 2, 2}, []int64{v, 0, 0, 0}) }
	refuse(t, "index 16 of 16 elements", "MaxUnpool", k, x, index(16))
	refuse(t, "index -1 of 16 elements", "MaxUnpool", k, x, index(-1))
	refuse(t, "index 7 lies outside 1x1x4x3", "MaxUnpool", k, x, at, tensor.From(tensor.Int64, []int{4}, []int64{1, 1, 4, 3}))
	refuse(t, "output_shape [1 1 4] for rank 4", "MaxUnpool", k, x, at, tensor.From(tensor.Int64, []int{3}, []int64{1, 1, 4}))
	refuse(t, "with indices 1x1x4", "MaxUnpool", k, x, tensor.New(tensor.Int64, 1, 1, 4))
	refuse(t, "indices of int32", "MaxUnpool", k, x, tensor.New(tensor.Int32, 1, 1, 2, 2))
	refuse(t, "kernel_shape [2] and pads", "MaxUnpool", graph.Attrs{"kernel_shape": []int64{2}}, x, at)
	refuse(t, "and pads [1] for 2", "MaxUnpool", graph.Attrs{"kernel_shape": []int64{2, 2}, "pads": []int64{1}}, x, at)
	refuse(t, "values 2x2", "MaxUnpool", k, f32([]int{2, 2}, 1, 2, 3, 4), tensor.New(tensor.Int64, 2, 2))
}

func TestGlobal(t *testing.T) {
	t.Parallel()
	x := f32([]int{1, 2, 2, 2}, 1, 2, 3, 6, -1, -2, -2, -4)
	for _, tt := range []struct {
		op    string
		attrs graph.Attrs
		want  []float64
	}{
		{"GlobalAveragePool", nil, []float64{3, -2.25}},
		{"GlobalMaxPool", nil, []float64{6, -1}},
		{"GlobalLpPool", nil, []float64{math.Sqrt(50), 5}},
		{"GlobalLpPool", graph.Attrs{"p": int64(1)}, []float64{12, 9}},
		{"GlobalLpPool", graph.Attrs{"p": int64(3)}, []float64{math.Cbrt(252), math.Cbrt(81)}},
		{"GlobalLpPool", graph.Attrs{"p": float32(1)}, []float64{12, 9}},
	} {
		out := run(t, tt.op, 22, tt.attrs, 1, x)[0]
		near(t, tt.op, out, tt.want...)
		if !cmp.Equal(out.Shape, []int{1, 2, 1, 1}) {
			t.Errorf("%s: shape %v", tt.op, out.Shape)
		}
		refuse(t, "input 3", tt.op, tt.attrs, f32([]int{3}, 1, 2, 3))
	}
	near(t, "no plane", run(t, "GlobalMaxPool", 22, nil, 1, f32([]int{1, 2}, 3, 4))[0], 3, 4)
	for order, want := range map[float64]float64{1: 3, 2: 9, 3: 27, 0.5: math.Sqrt(3)} {
		if got := Power(-3, order); !optest.Within(got, want, 0, 1e-15) {
			t.Errorf("3 to the %v is %v", order, got)
		}
	}
}

// TestKernelBeyondAxis: a kernel that exceeds an axis by its stride gives no results, and by less
// one of a window that the axis does not fill, as in ONNX Runtime 1.32. A larger one is an error.
func TestKernelBeyondAxis(t *testing.T) {
	t.Parallel()
	for _, typ := range []tensor.Type{tensor.Float32, tensor.Float64, tensor.Int8, tensor.Uint8} {
		for _, name := range []string{"MaxPool", "AveragePool", "LpPool"} {
			if name != "MaxPool" && (typ == tensor.Int8 || typ == tensor.Uint8) {
				continue
			}
			for _, tt := range []struct {
				in, kernel, stride []int
				want               []int // nil: an error
			}{
				{[]int{2, 5}, []int{3, 2}, []int{1, 1}, []int{1, 3, 0, 4}},
				{[]int{2, 5}, []int{3, 6}, []int{1, 1}, []int{1, 3, 0, 0}},
				{[]int{2, 5}, []int{4, 2}, []int{2, 1}, []int{1, 3, 0, 4}},
				{[]int{2, 5}, []int{4, 2}, []int{1, 1}, nil},
				{[]int{2}, []int{3}, []int{1}, []int{1, 3, 0}},
				{[]int{4, 2, 4}, []int{2, 3, 2}, []int{1, 1, 1}, []int{1, 3, 3, 0, 3}},
				{[]int{1, 1}, []int{2, 2}, []int{2, 2}, []int{1, 3, 1, 1}},
				{[]int{2, 2}, []int{4, 4}, []int{3, 3}, []int{1, 3, 1, 1}},
				{[]int{2, 5}, []int{4, 2}, []int{3, 1}, []int{1, 3, 1, 4}},
			} {
				attrs := graph.Attrs{}
				for name, v := range map[string][]int{"kernel_shape": tt.kernel, "strides": tt.stride} {
					wide := make([]int64, len(v))
					for i, n := range v {
						wide[i] = int64(n)
					}
					attrs[name] = wide
				}
				x := tensor.New(typ, append([]int{1, 3}, tt.in...)...)
				out, err := optest.Run(Defs(), optest.Node{Op: name, Version: 18, Attrs: attrs}, x)
				if tt.want == nil {
					if err == nil || !strings.Contains(err.Error(), "does not fit into axis of 2") {
						t.Errorf("%s of %v: %v", name, tt.kernel, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s of %v, %v: %v", name, typ, tt.kernel, err)
				} else if !slices.Equal(out[0].Shape, tt.want) {
					t.Errorf("%s of %v: %v, want %v", name, tt.kernel, out[0].Shape, tt.want)
				}
			}
		}
	}
}

// A window that exceeds the axis takes the elements that are there. The values are those of ONNX
// Runtime 1.32, the same with ceil_mode.
func TestPartialWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op                string
		n, kernel, stride int
		want              float32
	}{
		{"MaxPool", 1, 2, 2, -1},
		{"MaxPool", 2, 4, 3, -1},
		{"AveragePool", 1, 2, 2, -1},
		{"AveragePool", 2, 4, 3, -2.5},
		{"LpPool", 1, 2, 2, 1},
		{"LpPool", 2, 4, 3, 5.477226},
	} {
		for ceil := range int64(2) {
			x := tensor.New(tensor.Float32, 1, 1, tt.n, tt.n)
			tensor.Fill(x, func(i int) float64 { return float64(-i - 1) })
			attrs := graph.Attrs{"kernel_shape": []int64{int64(tt.kernel), int64(tt.kernel)}, "strides": []int64{int64(tt.stride), int64(tt.stride)}, "ceil_mode": ceil}
			out, err := optest.Run(Defs(), optest.Node{Op: tt.op, Version: 18, Attrs: attrs}, x)
			if err != nil {
				t.Errorf("%s %d/%d: %v", tt.op, tt.n, tt.kernel, err)
				continue
			}
			if got := tensor.Of[float32](out[0]); len(got) != 1 || math.Abs(float64(got[0]-tt.want)) > 1e-6 {
				t.Errorf("%s of %d², kernel %d, ceil_mode %d: %v, want %v", tt.op, tt.n, tt.kernel, ceil, got, tt.want)
			}
		}
	}
}
