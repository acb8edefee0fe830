package quant

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func TestValues(t *testing.T) {
	t.Parallel()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	tests := []struct {
		name  string
		node  optest.Node
		in    []*tensor.Tensor
		shape []int
		want  []float64
	}{
		{
			"old broadcast at an axis",
			optest.Node{Op: "Add", Version: 6, Attrs: graph.Attrs{"broadcast": int64(1), "axis": int64(0)}},
			[]*tensor.Tensor{f32([]int{2, 3}, 1, 2, 3, 4, 5, 6), f32([]int{2}, 10, 20)},
			[]int{2, 3},
			[]float64{11, 12, 13, 24, 25, 26},
		},
		{
			"old broadcast of a suffix",
			optest.Node{Op: "Mul", Version: 1, Attrs: graph.Attrs{"broadcast": int64(1)}},
			[]*tensor.Tensor{f32([]int{2, 3}, 1, 2, 3, 4, 5, 6), f32([]int{3}, 1, 2, 3)},
			[]int{2, 3},
			[]float64{1, 4, 9, 4, 10, 18},
		},
		{
			"old broadcast of a scalar",
			optest.Node{Op: "Sub", Version: 6, Attrs: graph.Attrs{"broadcast": int64(1)}},
			[]*tensor.Tensor{f32([]int{2}, 1, 2), f32([]int{1, 1}, 1)},
			[]int{2},
			[]float64{0, 1},
		},
		{"scalar minus vector", optest.Node{Op: "Sub", Version: 14}, []*tensor.Tensor{f32(nil, 10), f32([]int{2}, 1, 2)}, []int{2}, []float64{9, 8}},
		{
			"integer division truncates",
			optest.Node{Op: "Div", Version: 14},
			[]*tensor.Tensor{i64([]int{4}, -7, 7, -7, 1), i64([]int{4}, 2, -2, -2, 0)},
			[]int{4},
			[]float64{-3, -3, 3, 0},
		},
		{
			"remainder like the divisor",
			optest.Node{Op: "Mod", Version: 13},
			[]*tensor.Tensor{i64([]int{4}, -7, 7, -7, 1), i64([]int{4}, 3, -3, -3, 0)},
			[]int{4},
			[]float64{2, -2, -1, 0},
		},
		{
			"remainder of reals like the divisor",
			optest.Node{Op: "Mod", Version: 28},
			[]*tensor.Tensor{f32([]int{4}, -7, 7, 1, -1), f32([]int{4}, 3, -3, inf, inf)},
			[]int{4},
			[]float64{2, -2, 1, math.Inf(1)},
		},
		{
			"remainder of reals like the dividend",
			optest.Node{Op: "Mod", Version: 13, Attrs: graph.Attrs{"fmod": int64(1)}},
			[]*tensor.Tensor{f32([]int{2}, -7, 7), f32([]int{2}, 3, -3)},
			[]int{2},
			[]float64{-1, 1},
		},
		{"cube of an integer", optest.Node{Op: "Pow", Version: 15}, []*tensor.Tensor{i64([]int{3}, 3, -2, 1<<40), i64(nil, 3)}, []int{3}, []float64{27, -8, 0}},
		{"power of an integer", optest.Node{Op: "Pow", Version: 15}, []*tensor.Tensor{i64([]int{3}, 3, -1, 2), i64([]int{3}, 4, -3, -1)}, []int{3}, []float64{81, -1, 0}},
		{"root", optest.Node{Op: "Pow", Version: 7}, []*tensor.Tensor{f32([]int{4}, 4, 0, inf, -1), f32(nil, 0.5)}, []int{4}, []float64{2, 0, math.Inf(1), math.NaN()}},
		{"square with integer exponent", optest.Node{Op: "Pow", Version: 13}, []*tensor.Tensor{f32([]int{2}, 3, -4), i64(nil, 2)}, []int{2}, []float64{9, 16}},
		{
			"maximum of three",
			optest.Node{Op: "Max", Version: 13},
			[]*tensor.Tensor{f32([]int{2, 1}, 1, 5), f32([]int{3}, 0, 3, nan), f32(nil, 2)},
			[]int{2, 3},
			[]float64{2, 3, math.NaN(), 5, 5, math.NaN()},
		},
		{"mean of one", optest.Node{Op: "Mean", Version: 13}, []*tensor.Tensor{f32([]int{1}, 3)}, []int{1}, []float64{3}},
		{"clip with crossed bounds", optest.Node{Op: "Clip", Version: 13}, []*tensor.Tensor{f32([]int{3}, 0, 2, nan), f32(nil, 3), f32(nil, 1)}, []int{3}, []float64{1, 1, math.NaN()}},
		{"clip by attribute", optest.Node{Op: "Clip", Version: 6, Attrs: graph.Attrs{"min": float32(0), "max": float32(6)}}, []*tensor.Tensor{f32([]int{3}, -1, 3, 9)}, []int{3}, []float64{0, 3, 6}},
		{"clip from above", optest.Node{Op: "Clip", Version: 12}, []*tensor.Tensor{i64([]int{2}, 5, 9), nil, i64(nil, 7)}, []int{2}, []float64{5, 7}},
		{"slope along channels, old", optest.Node{Op: "PRelu", Version: 6}, []*tensor.Tensor{f32([]int{1, 2, 2}, -1, 1, -1, -1), f32([]int{2}, 2, 3)}, []int{1, 2, 2}, []float64{-2, 1, -3, -3}},
		{"slope along the last dimension", optest.Node{Op: "PRelu", Version: 16}, []*tensor.Tensor{f32([]int{1, 2, 2}, -1, 1, -1, -1), f32([]int{2}, 2, 3)}, []int{1, 2, 2}, []float64{-2, 1, -2, -3}},
		{
			"negative shift",
			optest.Node{Op: "BitShift", Version: 28, Attrs: graph.Attrs{"direction": "RIGHT"}},
			[]*tensor.Tensor{i64([]int{3}, -8, -8, 8), i64([]int{3}, 1, -1, 64)},
			[]int{3},
			[]float64{-4, -1, 0},
		},
		{
			"sum over the middle",
			optest.Node{Op: "ReduceSum", Version: 13, Attrs: graph.Attrs{"keepdims": int64(0)}},
			[]*tensor.Tensor{f32([]int{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8), i64([]int{1}, -2)},
			[]int{2, 2},
			[]float64{4, 6, 12, 14},
		},
		{
			"no axes, no reduction",
			optest.Node{Op: "ReduceSumSquare", Version: 18, Attrs: graph.Attrs{"noop_with_empty_axes": int64(1)}},
			[]*tensor.Tensor{f32([]int{2}, 2, 3)},
			[]int{2},
			[]float64{4, 9},
		},
		{
			"axes by attribute",
			optest.Node{Op: "ReduceMean", Version: 11, Attrs: graph.Attrs{"axes": []int64{0, 2}}},
			[]*tensor.Tensor{f32([]int{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8)},
			[]int{1, 2, 1},
			[]float64{3.5, 5.5},
		},
		{"maximum of nothing", optest.Node{Op: "ReduceMax", Version: 20}, []*tensor.Tensor{f32([]int{2, 0}), i64([]int{1}, 1)}, []int{2, 1}, []float64{math.Inf(-1), math.Inf(-1)}},
		{"smallest of no integers", optest.Node{Op: "ReduceMin", Version: 20}, []*tensor.Tensor{tensor.New(tensor.Int8, 0)}, []int{1}, []float64{127}},
		{"log of sum of large exponentials", optest.Node{Op: "ReduceLogSumExp", Version: 18}, []*tensor.Tensor{f32([]int{2}, 1000, 1000), i64([]int{1}, 0)}, []int{1}, []float64{1000 + math.Ln2}},
		{"old softmax flattens", optest.Node{Op: "Softmax", Version: 11}, []*tensor.Tensor{f32([]int{1, 2, 2}, 1, 1, 1, 1)}, []int{1, 2, 2}, []float64{0.25, 0.25, 0.25, 0.25}},
		{"softmax of the last axis", optest.Node{Op: "Softmax", Version: 13}, []*tensor.Tensor{f32([]int{1, 2, 2}, 1, 1, 1, 1)}, []int{1, 2, 2}, []float64{0.5, 0.5, 0.5, 0.5}},
		{
			"first and last maximum",
			optest.Node{Op: "ArgMax", Version: 13, Attrs: graph.Attrs{"keepdims": int64(0), "select_last_index": int64(1)}},
			[]*tensor.Tensor{f32([]int{3, 2}, 1, 5, 3, 2, 3, 5)},
			[]int{2},
			[]float64{2, 2},
		},
		{
			"sum from the end without the element",
			optest.Node{Op: "CumSum", Version: 14, Attrs: graph.Attrs{"exclusive": int64(1), "reverse": int64(1)}},
			[]*tensor.Tensor{f32([]int{3}, 1, 2, 3), i64(nil, 0)},
			[]int{3},
			[]float64{5, 3, 0},
		},
		{
			"image scaler",
			optest.Node{Op: "ImageScaler", Version: 1, Attrs: graph.Attrs{"scale": float32(2), "bias": []float32{1, -1}}},
			[]*tensor.Tensor{f32([]int{1, 2, 1, 2}, 1, 2, 3, 4)},
			[]int{1, 2, 1, 2},
			[]float64{3, 5, 5, 7},
		},
		{
			"crop",
			optest.Node{Op: "Crop", Version: 1, Attrs: graph.Attrs{"border": []int64{1, 0, 0, 1}}},
			[]*tensor.Tensor{f32([]int{1, 1, 2, 3}, 1, 2, 3, 4, 5, 6)},
			[]int{1, 1, 1, 2},
			[]float64{2, 3},
		},
		{"affine", optest.Node{Op: "Affine", Version: 1, Attrs: graph.Attrs{"alpha": float32(2), "beta": float32(1)}}, []*tensor.Tensor{f32([]int{2}, 1, 2)}, []int{2}, []float64{3, 5}},
		{
			"quantise by axis",
			optest.Node{Op: "QuantizeLinear", Version: 13, Attrs: graph.Attrs{"axis": int64(0)}},
			[]*tensor.Tensor{f32([]int{2, 2}, 1, 2.5, 1, -300), f32([]int{2}, 1, 2), number(tensor.Int8, []int{2}, 0, 1)},
			[]int{2, 2},
			[]float64{1, 2, 1, -128},
		},
		{
			"dequantise blocks of the first axis",
			optest.Node{Op: "DequantizeLinear", Version: 21, Attrs: graph.Attrs{"axis": int64(0), "block_size": int64(2)}},
			[]*tensor.Tensor{number(tensor.Int4, []int{3, 2}, 1, 2, 3, 4, -5, 6), f32([]int{2, 2}, 1, 2, 3, 4)},
			[]int{3, 2},
			[]float64{1, 4, 3, 8, -15, 24},
		},
		{
			"dequantise blocks of the last axis",
			optest.Node{Op: "DequantizeLinear", Version: 21, Attrs: graph.Attrs{"axis": int64(-1), "block_size": int64(2)}},
			[]*tensor.Tensor{number(tensor.Uint8, []int{2, 3}, 1, 2, 3, 4, 5, 6), f32([]int{2, 2}, 1, 2, 3, 4), number(tensor.Uint8, []int{2, 2}, 0, 1, 0, 1)},
			[]int{2, 3},
			[]float64{1, 2, 4, 12, 15, 20},
		},
		{
			"quantise in the Microsoft domain",
			optest.Node{Domain: graph.Microsoft, Op: "QuantizeLinear", Version: 1},
			[]*tensor.Tensor{f32([]int{3}, -1, 0.5, 99), f32(nil, 0.1), number(tensor.Uint8, nil, 10)},
			[]int{3},
			[]float64{0, 15, 255},
		},
		{
			"add quantised",
			optest.Node{Domain: graph.Microsoft, Op: "QLinearAdd", Version: 1},
			[]*tensor.Tensor{number(tensor.Int8, []int{2}, 10, -20), f32(nil, 0.5), number(tensor.Int8, nil, 0), number(tensor.Int8, nil, 3), f32(nil, 1), number(tensor.Int8, nil, 1), f32(nil, 0.25), number(tensor.Int8, nil, 2)},
			[]int{2},
			[]float64{30, -30},
		},
		{
			"multiply quantised",
			optest.Node{Domain: graph.Microsoft, Op: "QLinearMul", Version: 1},
			[]*tensor.Tensor{number(tensor.Uint8, []int{2}, 10, 20), f32(nil, 0.5), nil, number(tensor.Uint8, []int{2}, 3, 4), f32(nil, 1), nil, f32(nil, 1), nil},
			[]int{2},
			[]float64{15, 40},
		},
		{
			"leaky quantised",
			optest.Node{Domain: graph.Microsoft, Op: "QLinearLeakyRelu", Version: 1, Attrs: graph.Attrs{"alpha": float32(0.5)}},
			[]*tensor.Tensor{number(tensor.Int8, []int{2}, -10, 10), f32(nil, 1), nil, f32(nil, 1), nil},
			[]int{2},
			[]float64{-5, 10},
		},
		{
			"sigmoid quantised",
			optest.Node{Domain: graph.Microsoft, Op: "QLinearSigmoid", Version: 1},
			[]*tensor.Tensor{number(tensor.Uint8, []int{3}, 0, 128, 255), f32(nil, 1), number(tensor.Uint8, nil, 128), f32(nil, 1./256), nil},
			[]int{3},
			[]float64{0, 128, 255},
		},
		{
			"softmax quantised",
			optest.Node{Domain: graph.Microsoft, Op: "QLinearSoftmax", Version: 1, Attrs: graph.Attrs{"axis": int64(-1), "opset": int64(13)}},
			[]*tensor.Tensor{number(tensor.Uint8, []int{2, 2}, 7, 7, 0, 200), f32(nil, 0.5), nil, f32(nil, 1./256), nil},
			[]int{2, 2},
			[]float64{128, 128, 0, 255},
		},
		{
			"mean quantised",
			optest.Node{Domain: graph.Microsoft, Op: "QLinearReduceMean", Version: 1, Attrs: graph.Attrs{"axes": []int64{1}, "keepdims": int64(0)}},
			[]*tensor.Tensor{number(tensor.Int8, []int{2, 2}, 1, 3, -5, -7), f32(nil, 0.5), nil, f32(nil, 0.25), number(tensor.Int8, nil, 1)},
			[]int{2},
			[]float64{5, -11},
		},
		{
			"choice quantised",
			optest.Node{Domain: graph.Microsoft, Op: "QLinearWhere", Version: 1},
			[]*tensor.Tensor{number(tensor.Bool, []int{2}, 1, 0), number(tensor.Uint8, []int{2}, 8, 9), f32(nil, 0.5), nil, number(tensor.Uint8, nil, 3), f32(nil, 2), nil, f32(nil, 1), number(tensor.Uint8, nil, 1)},
			[]int{2},
			[]float64{5, 7},
		},
		{
			"QONNX signed",
			optest.Node{Op: "Quant", Version: 1, Attrs: graph.Attrs{"signed": int64(1), "narrow": int64(1), "rounding_mode": "ROUND"}},
			[]*tensor.Tensor{f32([]int{4}, 0.6, 1.25, 9, -9), f32(nil, 0.5), f32(nil, 0), f32(nil, 4)},
			[]int{4},
			[]float64{0.5, 1, 3.5, -3.5},
		},
		{
			"QONNX unsigned floor",
			optest.Node{Domain: "qonnx.custom_op.general", Op: "Quant", Version: 1, Attrs: graph.Attrs{"signed": int64(0), "rounding_mode": "FLOOR"}},
			[]*tensor.Tensor{f32([]int{3}, 0.99, -1, 9), f32(nil, 0.5), f32(nil, 0), f32(nil, 2)},
			[]int{3},
			[]float64{0.5, 0, 1.5},
		},
		{"gelu with bias", optest.Node{Domain: graph.Microsoft, Op: "BiasGelu", Version: 1}, []*tensor.Tensor{f32([]int{1, 2}, 1, 2), f32([]int{2}, 1, -2)}, []int{1, 2}, []float64{1.9544997361036416, 0}},
		{"swish by alpha", optest.Node{Domain: graph.Microsoft, Op: "QuickGelu", Version: 1}, []*tensor.Tensor{f32([]int{1}, 1)}, []int{1}, []float64{1 / (1 + math.Exp(-1.702))}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out := run(t, test.node, test.in...)[0]
			if !slices.Equal(out.Shape, test.shape) {
				t.Errorf("shape %v, want %v", out.Shape, test.shape)
			}
			near(t, reals(out), test.want, 1e-6)
		})
	}
}

// TestErrors checks that wrong use is reported rather than computed.
func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
	}{
		{"shapes", optest.Node{Op: "Add", Version: 14}, []*tensor.Tensor{f32([]int{2}, 1, 2), f32([]int{3}, 1, 2, 3)}},
		{"types", optest.Node{Op: "Add", Version: 14}, []*tensor.Tensor{f32([]int{1}, 1), i64([]int{1}, 1)}},
		{"missing input", optest.Node{Op: "Add", Version: 14}, []*tensor.Tensor{f32([]int{1}, 1)}},
		{"axis", optest.Node{Op: "Softmax", Version: 13, Attrs: graph.Attrs{"axis": int64(3)}}, []*tensor.Tensor{f32([]int{1}, 1)}},
		{"reduced axis", optest.Node{Op: "ReduceSum", Version: 13}, []*tensor.Tensor{f32([]int{1}, 1), i64([]int{1}, 4)}},
		{"cast target", optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(99)}}, []*tensor.Tensor{f32([]int{1}, 1)}},
		{"cast of complex", optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(1)}}, []*tensor.Tensor{tensor.New(tensor.Complex64, 1)}},
		{"widths", optest.Node{Op: "BitCast", Version: 26, Attrs: graph.Attrs{"to": int64(7)}}, []*tensor.Tensor{f32([]int{1}, 1)}},
		{"scales", optest.Node{Op: "QuantizeLinear", Version: 13}, []*tensor.Tensor{f32([]int{1, 3}, 1, 2, 3), f32([]int{2}, 1, 2)}},
		{"blocks", optest.Node{Op: "DequantizeLinear", Version: 21, Attrs: graph.Attrs{"block_size": int64(2)}}, []*tensor.Tensor{number(tensor.Int8, []int{1, 4}, 1, 2, 3, 4), f32([]int{1, 3}, 1, 2, 3)}},
		{"bound", optest.Node{Op: "Clip", Version: 13}, []*tensor.Tensor{f32([]int{1}, 1), f32([]int{2}, 1, 2)}},
		{"crop", optest.Node{Op: "Crop", Version: 1, Attrs: graph.Attrs{"border": []int64{0, 0, 9, 9}}}, []*tensor.Tensor{tensor.New(tensor.Float32, 1, 1, 4, 4)}},
		{"direction", optest.Node{Op: "BitShift", Version: 11}, []*tensor.Tensor{tensor.New(tensor.Uint8, 1), tensor.New(tensor.Uint8, 1)}},
		{"nothing to compare", optest.Node{Op: "ArgMax", Version: 13}, []*tensor.Tensor{tensor.New(tensor.Float32, 0)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if out, err := optest.Run(allDefs(), test.node, test.in...); err == nil || strings.Contains(err.Error(), "panic") {
				t.Errorf("result %v, error %v", out, err)
			}
		})
	}
}

// TestUnsupported checks that types outside an operator's list are rejected.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Add", "Exp", "Abs", "Clip", "Softmax", "ReduceMax", "ArgMax", "IsNaN", "BitwiseNot", "Less", "And"} {
		x := tensor.New(tensor.Complex64, 1)
		in := []*tensor.Tensor{x}
		if slices.Contains([]string{"Add", "Less", "And"}, name) {
			in = append(in, x)
		}
		if _, err := optest.Run(allDefs(), optest.Node{Op: name, Version: 20}, in...); !errors.Is(err, op.ErrUnsupported) {
			t.Errorf("%s of complex numbers: %v", name, err)
		}
	}
}

// TestDynamicAxes gives a reduction new axes of the same shape without planning again.
func TestDynamicAxes(t *testing.T) {
	t.Parallel()
	d := op.NewRegistry(allDefs()).Find("", "ReduceSum", 13)
	x, axes := f32([]int{2, 2}, 1, 2, 3, 4), i64([]int{1}, 0)
	g := &graph.Graph{Values: []*graph.Value{{}, {ID: 1}, {ID: 2}}}
	c := &op.Call{Graph: g, Node: &graph.Node{Op: "ReduceSum", Version: 13, Inputs: []int{0, 1}, Outputs: []int{2}}, In: []*tensor.Tensor{x, axes}, Out: []*tensor.Tensor{{}}}
	if err := d.Infer(c); err != nil {
		t.Fatal(err)
	}
	run, err := d.Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	for axis, want := range [][]float64{{4, 6}, {3, 7}} {
		tensor.Of[int64](axes)[0] = int64(axis)
		if err := d.Infer(c); err != nil {
			t.Fatal(err)
		}
		c.Out[0].Alloc()
		if err := run(c); err != nil {
			t.Fatal(err)
		}
		near(t, reals(c.Out[0]), want, 0)
	}
}

// TestFusedClamp gives Add an activation as the engine does.
func TestFusedClamp(t *testing.T) {
	t.Parallel()
	d := op.NewRegistry(allDefs()).Find("", "Add", 14)
	for _, b := range []*tensor.Tensor{f32([]int{4}, 1, 1, 1, 1), f32(nil, 1)} {
		c := &op.Call{
			Node: &graph.Node{Op: "Add", Version: 14}, In: []*tensor.Tensor{f32([]int{4}, -3, 0, 5, 9), b}, Out: []*tensor.Tensor{{}},
			Activation: activation.Clamp{On: true, Min: 0, Max: 6},
		}
		if err := d.Infer(c); err != nil {
			t.Fatal(err)
		}
		run, err := d.Prepare(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Out[0].Alloc()
		if err := run(c); err != nil {
			t.Fatal(err)
		}
		near(t, reals(c.Out[0]), []float64{0, 1, 6, 6}, 0)
	}
}

// TestLookUp looks up quantised values of both types in tables of both.
func TestLookUp(t *testing.T) {
	t.Parallel()
	for _, from := range []tensor.Type{tensor.Uint8, tensor.Int8} {
		for _, to := range []tensor.Type{tensor.Uint8, tensor.Int8} {
			x, table := tensor.New(from, 3, 100), tensor.New(to, 256)
			for i := range x.Data {
				x.Data[i] = byte(7 * i)
			}
			for i := range table.Data {
				table.Data[i] = byte(3*i + 5)
			}
			out, err := optest.Run(allDefs(), optest.Node{Domain: graph.Own, Op: "LookUp", Version: 1}, x, table)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range out[0].Data {
				if want := byte(3*7*i + 5); v != want || out[0].Type != to {
					t.Fatalf("code %d of %v is %d of %v, want %d of %v", i, from, v, out[0].Type, want, to)
				}
			}
		}
	}
}

// TestLookUpEach uses a table per channel, over planes of various sizes.
func TestLookUpEach(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{1, 3, 1, 1}, {2, 3, 7, 7}, {1, 5, 14, 14}, {2, 1, 64}, {3, 2}, {2, 3, 0, 4}} {
		x, table := tensor.New(tensor.Uint8, shape...), tensor.New(tensor.Int8, shape[1], 256)
		for i := range x.Data {
			x.Data[i] = byte(7 * i)
		}
		for i := range table.Data {
			table.Data[i] = byte(3*i + 5*(i/256))
		}
		out, err := optest.Run(allDefs(), optest.Node{Domain: graph.Own, Op: "LookUp", Version: 1}, x, table)
		if err != nil {
			t.Fatal(err)
		}
		plane := max(1, tensor.Elements(shape[2:]))
		for i, v := range out[0].Data {
			if want := byte(3*7*i + 5*(i/plane%shape[1])); v != want {
				t.Fatalf("%v: code %d is %d, want %d", shape, i, v, want)
			}
		}
	}
}
