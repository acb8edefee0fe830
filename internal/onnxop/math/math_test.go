package math

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/optest"
	"github.com/opmeter/opmeter/internal/tensor"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func i64(shape []int, v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, shape, v) }

// number makes a tensor of any type from reals.
func number(t tensor.Type, shape []int, v ...float64) *tensor.Tensor {
	x := tensor.New(t, shape...)
	if t == tensor.String {
		for i, f := range v {
			x.Strings[i] = FormatFloat(tensor.Float64, f)
		}
		return x
	}
	for lo := 0; lo < len(v); lo += blockSize {
		writeFloat64(x, lo, v[lo:min(lo+blockSize, len(v))], Conversion{Saturate: true})
	}
	return x
}

// reals reads any numeric tensor.
func reals(x *tensor.Tensor) []float64 {
	v := make([]float64, x.Len())
	for lo := 0; lo < len(v); lo += blockSize {
		readFloat64(v[lo:min(lo+blockSize, len(v))], x, lo)
	}
	return v
}

func run(t *testing.T, n optest.Node, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), n, in...)
	if err != nil {
		t.Fatalf("%s version %d: %v", n.Op, n.Version, err)
	}
	return out
}

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
		{"old broadcast at an axis", optest.Node{Op: "Add", Version: 6, Attrs: graph.Attrs{"broadcast": int64(1), "axis": int64(0)}},
			[]*tensor.Tensor{f32([]int{2, 3}, 1, 2, 3, 4, 5, 6), f32([]int{2}, 10, 20)}, []int{2, 3}, []float64{11, 12, 13, 24, 25, 26}},
		{"old broadcast of a suffix", optest.Node{Op: "Mul", Version: 1, Attrs: graph.Attrs{"broadcast": int64(1)}},
			[]*tensor.Tensor{f32([]int{2, 3}, 1, 2, 3, 4, 5, 6), f32([]int{3}, 1, 2, 3)}, []int{2, 3}, []float64{1, 4, 9, 4, 10, 18}},
		{"old broadcast of a scalar", optest.Node{Op: "Sub", Version: 6, Attrs: graph.Attrs{"broadcast": int64(1)}},
			[]*tensor.Tensor{f32([]int{2}, 1, 2), f32([]int{1, 1}, 1)}, []int{2}, []float64{0, 1}},
		{"scalar minus vector", optest.Node{Op: "Sub", Version: 14}, []*tensor.Tensor{f32(nil, 10), f32([]int{2}, 1, 2)}, []int{2}, []float64{9, 8}},
		{"integer division truncates", optest.Node{Op: "Div", Version: 14},
			[]*tensor.Tensor{i64([]int{4}, -7, 7, -7, 1), i64([]int{4}, 2, -2, -2, 0)}, []int{4}, []float64{-3, -3, 3, 0}},
		{"remainder like the divisor", optest.Node{Op: "Mod", Version: 13},
			[]*tensor.Tensor{i64([]int{4}, -7, 7, -7, 1), i64([]int{4}, 3, -3, -3, 0)}, []int{4}, []float64{2, -2, -1, 0}},
		{"remainder of reals like the divisor", optest.Node{Op: "Mod", Version: 28},
			[]*tensor.Tensor{f32([]int{4}, -7, 7, 1, -1), f32([]int{4}, 3, -3, inf, inf)}, []int{4}, []float64{2, -2, 1, math.Inf(1)}},
		{"remainder of reals like the dividend", optest.Node{Op: "Mod", Version: 13, Attrs: graph.Attrs{"fmod": int64(1)}},
			[]*tensor.Tensor{f32([]int{2}, -7, 7), f32([]int{2}, 3, -3)}, []int{2}, []float64{-1, 1}},
		{"power of an integer", optest.Node{Op: "Pow", Version: 15}, []*tensor.Tensor{i64([]int{3}, 3, -1, 2), i64([]int{3}, 4, -3, -1)}, []int{3}, []float64{81, -1, 0}},
		{"root", optest.Node{Op: "Pow", Version: 7}, []*tensor.Tensor{f32([]int{4}, 4, 0, inf, -1), f32(nil, 0.5)}, []int{4}, []float64{2, 0, math.Inf(1), math.NaN()}},
		{"square with integer exponent", optest.Node{Op: "Pow", Version: 13}, []*tensor.Tensor{f32([]int{2}, 3, -4), i64(nil, 2)}, []int{2}, []float64{9, 16}},
		{"maximum of three", optest.Node{Op: "Max", Version: 13},
			[]*tensor.Tensor{f32([]int{2, 1}, 1, 5), f32([]int{3}, 0, 3, nan), f32(nil, 2)}, []int{2, 3}, []float64{2, 3, math.NaN(), 5, 5, math.NaN()}},
		{"mean of one", optest.Node{Op: "Mean", Version: 13}, []*tensor.Tensor{f32([]int{1}, 3)}, []int{1}, []float64{3}},
		{"clip with crossed bounds", optest.Node{Op: "Clip", Version: 13}, []*tensor.Tensor{f32([]int{3}, 0, 2, nan), f32(nil, 3), f32(nil, 1)}, []int{3}, []float64{1, 1, math.NaN()}},
		{"clip by attribute", optest.Node{Op: "Clip", Version: 6, Attrs: graph.Attrs{"min": float32(0), "max": float32(6)}}, []*tensor.Tensor{f32([]int{3}, -1, 3, 9)}, []int{3}, []float64{0, 3, 6}},
		{"clip from above", optest.Node{Op: "Clip", Version: 12}, []*tensor.Tensor{i64([]int{2}, 5, 9), nil, i64(nil, 7)}, []int{2}, []float64{5, 7}},
		{"slope along channels, old", optest.Node{Op: "PRelu", Version: 6}, []*tensor.Tensor{f32([]int{1, 2, 2}, -1, 1, -1, -1), f32([]int{2}, 2, 3)}, []int{1, 2, 2}, []float64{-2, 1, -3, -3}},
		{"slope along the last dimension", optest.Node{Op: "PRelu", Version: 16}, []*tensor.Tensor{f32([]int{1, 2, 2}, -1, 1, -1, -1), f32([]int{2}, 2, 3)}, []int{1, 2, 2}, []float64{-2, 1, -2, -3}},
		{"negative shift", optest.Node{Op: "BitShift", Version: 28, Attrs: graph.Attrs{"direction": "RIGHT"}},
			[]*tensor.Tensor{i64([]int{3}, -8, -8, 8), i64([]int{3}, 1, -1, 64)}, []int{3}, []float64{-4, -1, 0}},
		{"sum over the middle", optest.Node{Op: "ReduceSum", Version: 13, Attrs: graph.Attrs{"keepdims": int64(0)}},
			[]*tensor.Tensor{f32([]int{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8), i64([]int{1}, -2)}, []int{2, 2}, []float64{4, 6, 12, 14}},
		{"no axes, no reduction", optest.Node{Op: "ReduceSumSquare", Version: 18, Attrs: graph.Attrs{"noop_with_empty_axes": int64(1)}},
			[]*tensor.Tensor{f32([]int{2}, 2, 3)}, []int{2}, []float64{4, 9}},
		{"axes by attribute", optest.Node{Op: "ReduceMean", Version: 11, Attrs: graph.Attrs{"axes": []int64{0, 2}}},
			[]*tensor.Tensor{f32([]int{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8)}, []int{1, 2, 1}, []float64{3.5, 5.5}},
		{"maximum of nothing", optest.Node{Op: "ReduceMax", Version: 20}, []*tensor.Tensor{f32([]int{2, 0}), i64([]int{1}, 1)}, []int{2, 1}, []float64{math.Inf(-1), math.Inf(-1)}},
		{"smallest of no integers", optest.Node{Op: "ReduceMin", Version: 20}, []*tensor.Tensor{tensor.New(tensor.Int8, 0)}, []int{1}, []float64{127}},
		{"log of sum of large exponentials", optest.Node{Op: "ReduceLogSumExp", Version: 18}, []*tensor.Tensor{f32([]int{2}, 1000, 1000), i64([]int{1}, 0)}, []int{1}, []float64{1000 + math.Ln2}},
		{"old softmax flattens", optest.Node{Op: "Softmax", Version: 11}, []*tensor.Tensor{f32([]int{1, 2, 2}, 1, 1, 1, 1)}, []int{1, 2, 2}, []float64{0.25, 0.25, 0.25, 0.25}},
		{"softmax of the last axis", optest.Node{Op: "Softmax", Version: 13}, []*tensor.Tensor{f32([]int{1, 2, 2}, 1, 1, 1, 1)}, []int{1, 2, 2}, []float64{0.5, 0.5, 0.5, 0.5}},
		{"first and last maximum", optest.Node{Op: "ArgMax", Version: 13, Attrs: graph.Attrs{"keepdims": int64(0), "select_last_index": int64(1)}},
			[]*tensor.Tensor{f32([]int{3, 2}, 1, 5, 3, 2, 3, 5)}, []int{2}, []float64{2, 2}},
		{"sum from the end without the element", optest.Node{Op: "CumSum", Version: 14, Attrs: graph.Attrs{"exclusive": int64(1), "reverse": int64(1)}},
			[]*tensor.Tensor{f32([]int{3}, 1, 2, 3), i64(nil, 0)}, []int{3}, []float64{5, 3, 0}},
		{"image scaler", optest.Node{Op: "ImageScaler", Version: 1, Attrs: graph.Attrs{"scale": float32(2), "bias": []float32{1, -1}}},
			[]*tensor.Tensor{f32([]int{1, 2, 1, 2}, 1, 2, 3, 4)}, []int{1, 2, 1, 2}, []float64{3, 5, 5, 7}},
		{"crop", optest.Node{Op: "Crop", Version: 1, Attrs: graph.Attrs{"border": []int64{1, 0, 0, 1}}},
			[]*tensor.Tensor{f32([]int{1, 1, 2, 3}, 1, 2, 3, 4, 5, 6)}, []int{1, 1, 1, 2}, []float64{2, 3}},
		{"affine", optest.Node{Op: "Affine", Version: 1, Attrs: graph.Attrs{"alpha": float32(2), "beta": float32(1)}}, []*tensor.Tensor{f32([]int{2}, 1, 2)}, []int{2}, []float64{3, 5}},
		{"quantise by axis", optest.Node{Op: "QuantizeLinear", Version: 13, Attrs: graph.Attrs{"axis": int64(0)}},
			[]*tensor.Tensor{f32([]int{2, 2}, 1, 2.5, 1, -300), f32([]int{2}, 1, 2), number(tensor.Int8, []int{2}, 0, 1)}, []int{2, 2}, []float64{1, 2, 1, -128}},
		{"dequantise blocks of the first axis", optest.Node{Op: "DequantizeLinear", Version: 21, Attrs: graph.Attrs{"axis": int64(0), "block_size": int64(2)}},
			[]*tensor.Tensor{number(tensor.Int4, []int{3, 2}, 1, 2, 3, 4, -5, 6), f32([]int{2, 2}, 1, 2, 3, 4)}, []int{3, 2}, []float64{1, 4, 3, 8, -15, 24}},
		{"dequantise blocks of the last axis", optest.Node{Op: "DequantizeLinear", Version: 21, Attrs: graph.Attrs{"axis": int64(-1), "block_size": int64(2)}},
			[]*tensor.Tensor{number(tensor.Uint8, []int{2, 3}, 1, 2, 3, 4, 5, 6), f32([]int{2, 2}, 1, 2, 3, 4), number(tensor.Uint8, []int{2, 2}, 0, 1, 0, 1)}, []int{2, 3}, []float64{1, 2, 4, 12, 15, 20}},
		{"quantise in the Microsoft domain", optest.Node{Domain: graph.Microsoft, Op: "QuantizeLinear", Version: 1},
			[]*tensor.Tensor{f32([]int{3}, -1, 0.5, 99), f32(nil, 0.1), number(tensor.Uint8, nil, 10)}, []int{3}, []float64{0, 15, 255}},
		{"add quantised", optest.Node{Domain: graph.Microsoft, Op: "QLinearAdd", Version: 1},
			[]*tensor.Tensor{number(tensor.Int8, []int{2}, 10, -20), f32(nil, 0.5), number(tensor.Int8, nil, 0), number(tensor.Int8, nil, 3), f32(nil, 1), number(tensor.Int8, nil, 1), f32(nil, 0.25), number(tensor.Int8, nil, 2)},
			[]int{2}, []float64{30, -30}},
		{"multiply quantised", optest.Node{Domain: graph.Microsoft, Op: "QLinearMul", Version: 1},
			[]*tensor.Tensor{number(tensor.Uint8, []int{2}, 10, 20), f32(nil, 0.5), nil, number(tensor.Uint8, []int{2}, 3, 4), f32(nil, 1), nil, f32(nil, 1), nil},
			[]int{2}, []float64{15, 40}},
		{"leaky quantised", optest.Node{Domain: graph.Microsoft, Op: "QLinearLeakyRelu", Version: 1, Attrs: graph.Attrs{"alpha": float32(0.5)}},
			[]*tensor.Tensor{number(tensor.Int8, []int{2}, -10, 10), f32(nil, 1), nil, f32(nil, 1), nil}, []int{2}, []float64{-5, 10}},
		{"sigmoid quantised", optest.Node{Domain: graph.Microsoft, Op: "QLinearSigmoid", Version: 1},
			[]*tensor.Tensor{number(tensor.Uint8, []int{3}, 0, 128, 255), f32(nil, 1), number(tensor.Uint8, nil, 128), f32(nil, 1./256), nil}, []int{3}, []float64{0, 128, 255}},
		{"QONNX signed", optest.Node{Op: "Quant", Version: 1, Attrs: graph.Attrs{"signed": int64(1), "narrow": int64(1), "rounding_mode": "ROUND"}},
			[]*tensor.Tensor{f32([]int{4}, 0.6, 1.25, 9, -9), f32(nil, 0.5), f32(nil, 0), f32(nil, 4)}, []int{4}, []float64{0.5, 1, 3.5, -3.5}},
		{"QONNX unsigned floor", optest.Node{Domain: "qonnx.custom_op.general", Op: "Quant", Version: 1, Attrs: graph.Attrs{"signed": int64(0), "rounding_mode": "FLOOR"}},
			[]*tensor.Tensor{f32([]int{3}, 0.99, -1, 9), f32(nil, 0.5), f32(nil, 0), f32(nil, 2)}, []int{3}, []float64{0.5, 0, 1.5}},
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

func near(t *testing.T, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	for i, g := range got {
		if w := want[i]; g != w && !(math.Abs(g-w) <= tol+tol*math.Abs(w)) && !(g != g && w != w) {
			t.Fatalf("element %d of %v is %v, want %v", i, got[:min(len(got), 20)], g, w)
		}
	}
}

// TestBroadcastProperty compares the walk with index arithmetic over random
// shapes.
func TestBroadcastProperty(t *testing.T) {
	t.Parallel()
	defs := Defs()
	rapid.Check(t, func(t *rapid.T) {
		out := rapid.SliceOfN(rapid.IntRange(1, 4), 0, 5).Draw(t, "out")
		operand := func(name string) []int {
			s := slices.Clone(out)
			for i := range s {
				if rapid.Bool().Draw(t, name) {
					s[i] = 1
				}
			}
			drop := 0
			for drop < len(s) && s[drop] == 1 && rapid.Bool().Draw(t, name+"drop") {
				drop++
			}
			return s[drop:]
		}
		a, b := operand("a"), operand("b")
		value := func(shape []int, k float32) *tensor.Tensor {
			x := tensor.New(tensor.Float32, shape...)
			for i := range tensor.Of[float32](x) {
				tensor.Of[float32](x)[i] = float32(i+1) * k
			}
			return x
		}
		x, y := value(a, 1), value(b, 100)
		shape, err := tensor.Broadcast(a, b)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Add", "Less", "Max", "Where"} {
			in := []*tensor.Tensor{x, y}
			if name == "Where" {
				cond := tensor.New(tensor.Bool, a...)
				for i := range cond.Data {
					cond.Data[i] = byte(i % 2)
				}
				in = []*tensor.Tensor{cond, x, y}
			}
			res, err := optest.Run(defs, optest.Node{Op: name, Version: 16}, in...)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(res[0].Shape, shape) {
				t.Fatalf("%s: shape %v, want %v", name, res[0].Shape, shape)
			}
			got := reals(res[0])
			for i := range got {
				ia, ib := sourceIndex(i, shape, a), sourceIndex(i, shape, b)
				va, vb := reals(x)[ia], reals(y)[ib]
				want := map[string]float64{"Add": va + vb, "Less": float64(truth(va < vb)), "Max": max(va, vb), "Where": vb}[name]
				if name == "Where" && ia%2 == 1 {
					want = va
				}
				if got[i] != want {
					t.Fatalf("%s of %v and %v: element %d is %v, want %v", name, a, b, i, got[i], want)
				}
			}
		}
	})
}

// sourceIndex maps an element of a broadcast result to an operand's element.
func sourceIndex(i int, out, shape []int) int {
	at, stride := 0, 1
	for d := len(out) - 1; d >= 0; d-- {
		j := d - (len(out) - len(shape))
		if j >= 0 {
			if shape[j] != 1 {
				at += i % out[d] * stride
			}
			stride *= shape[j]
		}
		i /= out[d]
	}
	return at
}

// TestReduceProperty compares reductions with plain sums over random shapes and
// axes, large ones included.
func TestReduceProperty(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	shapes := [][]int{{}, {7}, {3, 5}, {2, 3, 4}, {2, 3, 4, 5}, {70001}, {3, 1, 2, 1, 5}, {65, 1030}, {5, 2000, 3}, {0, 3}}
	plain := map[string]func(v []float64) float64{
		"ReduceSum": func(v []float64) (s float64) {
			for _, x := range v {
				s += x
			}
			return s
		},
		"ReduceL1": func(v []float64) (s float64) {
			for _, x := range v {
				s += math.Abs(x)
			}
			return s
		},
		"ReduceL2": func(v []float64) (s float64) {
			for _, x := range v {
				s += x * x
			}
			return math.Sqrt(s)
		},
		"ReduceMax": func(v []float64) float64 {
			if len(v) == 0 {
				return math.Inf(-1)
			}
			return slices.Max(v)
		},
		"ReduceMin": func(v []float64) float64 {
			if len(v) == 0 {
				return math.Inf(1)
			}
			return slices.Min(v)
		},
		"ReduceLogSumExp": func(v []float64) (s float64) {
			for _, x := range v {
				s += math.Exp(x)
			}
			return math.Log(s)
		},
	}
	for _, shape := range shapes {
		x := tensor.New(tensor.Float32, shape...)
		for i := range tensor.Of[float32](x) {
			tensor.Of[float32](x)[i] = float32(r.NormFloat64())
		}
		for bits := range 1 << len(shape) {
			var axes []int64
			mask := make([]bool, len(shape))
			for d := range shape {
				if bits>>d&1 == 1 {
					mask[d] = true
					axes = append(axes, int64(d-len(shape)*(d%2)))
				}
			}
			out := reducedShape(shape, mask, true)
			groups := make([][]float64, tensor.Elements(out))
			for i, v := range reals(x) {
				g := sourceIndex(i, shape, out)
				groups[g] = append(groups[g], v)
			}
			for name, f := range plain {
				want := make([]float64, len(groups))
				for i, g := range groups {
					want[i] = f(g)
				}
				got := run(t, optest.Node{Op: name, Version: 18, Attrs: graph.Attrs{"noop_with_empty_axes": int64(1)}}, x, i64([]int{len(axes)}, axes...))[0]
				if t.Failed() {
					t.Fatalf("%s of %v over %v", name, shape, axes)
				}
				near(t, reals(got), want, 1e-5)
			}
		}
	}
}

// TestCastPairs casts small numbers between all types: what both can hold must
// survive.
func TestCastPairs(t *testing.T) {
	t.Parallel()
	types := join(numberTypes, boolTypes, []tensor.Type{tensor.String}, float8Types, packedTypes)
	for from := range slices.Values(types) {
		for to := range slices.Values(types) {
			v := make([]float64, 300)
			for i := range v {
				v[i] = float64(i % 2) // every type has 0 and 1
			}
			x := number(from, []int{300}, v...)
			for n, ty := range dataTypes {
				if ty != to || to == tensor.Invalid {
					continue
				}
				y := run(t, optest.Node{Op: "Cast", Version: 25, Attrs: graph.Attrs{"to": int64(n)}}, x)[0]
				if y.Type != to {
					t.Fatalf("%v to %v gives %v", from, to, y.Type)
				}
				if to == tensor.String {
					want := map[bool]string{true: "True", false: "1"}[from == tensor.Bool]
					if from.IsFloat() || from == tensor.String {
						want = "1.0"
					}
					if y.Strings[1] != want {
						t.Errorf("%v to string gives %q, want %q", from, y.Strings[1], want)
					}
					continue
				}
				if diff := cmp.Diff(v, reals(y)); diff != "" {
					t.Errorf("%v to %v: %s", from, to, diff)
				}
			}
		}
	}
}

func TestCastValues(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	tests := []struct {
		name     string
		from, to tensor.Type
		attrs    graph.Attrs
		in, want []float64
	}{
		{"truncates", tensor.Float32, tensor.Int32, nil, []float64{-1.9, 1.9, 1e10, nan}, []float64{-1, 1, math.MinInt32, math.MinInt32}},
		{"wraps", tensor.Int32, tensor.Uint8, nil, []float64{300, -1}, []float64{44, 255}},
		{"four bits", tensor.Float32, tensor.Int4, nil, []float64{-8.5, 7.9, 8, 0}, []float64{-8, 7, -8, 0}},
		{"truth", tensor.Float16, tensor.Bool, nil, []float64{0, 0.5, -3, nan}, []float64{0, 1, 1, 1}},
		{"saturates", tensor.Float32, tensor.Float8E4M3FN, nil, []float64{1e6, -inf, 0.3}, []float64{448, -448, 0.3125}},
		{"does not saturate", tensor.Float32, tensor.Float8E5M2, graph.Attrs{"saturate": int64(0)}, []float64{1e6, -1e6}, []float64{inf, -inf}},
		{"power of two down", tensor.Float32, tensor.Float8E8M0, graph.Attrs{"round_mode": "down"}, []float64{3, 4}, []float64{2, 4}},
		{"power of two up", tensor.Float16, tensor.Float8E8M0, nil, []float64{3, 4}, []float64{4, 4}},
		{"double to half once", tensor.Float64, tensor.Float16, nil, []float64{1 + 1./2048 + 1e-12}, []float64{1 + 1./1024}},
		{"large unsigned", tensor.Float64, tensor.Uint64, nil, []float64{1 << 63}, []float64{1 << 63}},
	}
	for _, test := range tests {
		attrs := graph.Attrs{"to": int64(slices.Index(dataTypes[:], test.to))}
		for k, v := range test.attrs {
			attrs[k] = v
		}
		y := run(t, optest.Node{Op: "Cast", Version: 25, Attrs: attrs}, number(test.from, []int{len(test.in)}, test.in...))[0]
		t.Run(test.name, func(t *testing.T) { near(t, reals(y), test.want, 0) })
	}
}

func TestCastStrings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		t    tensor.Type
		v    float64
		want string
	}{
		{tensor.Float32, 1, "1.0"}, {tensor.Float32, 0.1, "0.1"}, {tensor.Float32, 1e-5, "1e-05"}, {tensor.Float32, 1234567, "1.234567e+06"},
		{tensor.Float64, 1e15, "1000000000000000.0"}, {tensor.Float64, 1e16, "1e+16"}, {tensor.Float32, math.Inf(-1), "-inf"},
		{tensor.Float16, 0.1, "0.1"}, {tensor.BFloat16, 3.140625, "3.14"},
	} {
		if got := run(t, optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(8)}}, number(test.t, []int{1}, test.v))[0].Strings[0]; got != test.want {
			t.Errorf("%v %v: %q, want %q", test.t, test.v, got, test.want)
		}
	}
	x := tensor.New(tensor.String, 5)
	copy(x.Strings, []string{"3.14", "-INF", "NaN", "1e3", " 7 "})
	near(t, reals(run(t, optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(1)}}, x)[0]), []float64{3.14, math.Inf(-1), math.NaN(), 1000, 7}, 1e-6)
	x.Strings[0] = "word"
	if _, err := optest.Run(Defs(), optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(7)}}, x); err == nil || !strings.Contains(err.Error(), `"word" is not a number`) {
		t.Errorf("error %v", err)
	}
	if got := run(t, optest.Node{Op: "Cast", Version: 1, Attrs: graph.Attrs{"to": "INT32"}}, f32([]int{1}, 2.5))[0]; got.Type != tensor.Int32 {
		t.Errorf("cast by name gives %v", got.Type)
	}
}

// TestErrors checks that wrong use is told rather than computed.
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
			if out, err := optest.Run(Defs(), test.node, test.in...); err == nil || strings.Contains(err.Error(), "panic") {
				t.Errorf("result %v, error %v", out, err)
			}
		})
	}
}

// TestEveryType runs every definition on every type that it lists, against the
// same operator in float64 where there is one.
func TestEveryType(t *testing.T) {
	t.Parallel()
	for _, d := range Defs() {
		if d.Types == nil {
			continue
		}
		t.Run(fmt.Sprintf("%s:%s/%d", d.Domain, d.Name, d.Since), func(t *testing.T) {
			t.Parallel()
			for _, ty := range d.Types {
				everyType(t, d, ty)
			}
		})
	}
}

func everyType(t *testing.T, d op.Def, ty tensor.Type) {
	in, attrs := sample(d, ty)
	n := optest.Node{Domain: d.Domain, Op: d.Name, Version: max(1, d.Since), Attrs: attrs}
	if d.Domain == graph.ONNX && d.Since < 13 && !slices.Contains([]string{"ImageScaler", "Crop"}, d.Name) {
		n.Version = 28
	}
	if d.Name == "DynamicQuantizeLinear" {
		n.Outputs = 3
	}
	out, err := optest.Run(Defs(), n, in...)
	if err != nil {
		t.Errorf("%v: %v", ty, err)
		return
	}
	if slices.Contains(d.Types, tensor.Float64) && (ty.IsInteger() && ty.Bits() >= 8 || ty.IsFloat()) && d.Name != "QuantizeLinear" &&
		(d.Name != "Sub" || ty.IsFloat() || ty.IsSigned()) {
		ref, attrs := sample(d, tensor.Float64)
		n.Attrs = attrs
		want, err := optest.Run(Defs(), n, ref...)
		if err != nil {
			t.Fatal(err)
		}
		if out[0].Type.IsFloat() || !slices.Contains([]string{"Mod", "Div", "Erf", "Cast", "CastLike", "Shrink"}, d.Name) && !strings.HasPrefix(d.Name, "Reduce") {
			if got := out[0]; got.Type == tensor.String {
				return
			}
			tol := map[tensor.Type]float64{tensor.Float16: 2e-3, tensor.BFloat16: 2e-2}[ty]
			near(t, reals(out[0]), reals(want[0]), max(tol, 1e-5))
		}
	}
}

// sample makes inputs for a definition: small positive numbers that every type
// can hold, so that results agree between types.
func sample(d op.Def, ty tensor.Type) ([]*tensor.Tensor, graph.Attrs) {
	shape := []int{1, 2, 2, 2}
	v := []float64{1, 0, 1, 1, 0, 1, 0, 1}
	x := number(ty, shape, v...)
	one, scalar := number(ty, []int{1}, 1), f32(nil, 1)
	switch d.Name {
	case "Cast":
		return []*tensor.Tensor{x}, graph.Attrs{"to": int64(1)}
	case "CastLike":
		return []*tensor.Tensor{x, scalar}, nil
	case "BitShift":
		return []*tensor.Tensor{x, one}, graph.Attrs{"direction": "LEFT"}
	case "CumSum", "CumProd":
		return []*tensor.Tensor{x, i64(nil, 1)}, nil
	case "QuantizeLinear", "DequantizeLinear":
		return []*tensor.Tensor{x, scalar}, nil
	case "QLinearAdd", "QLinearMul":
		return []*tensor.Tensor{x, scalar, nil, one, scalar, nil, scalar}, nil
	case "QLinearSigmoid", "QLinearLeakyRelu":
		return []*tensor.Tensor{x, scalar, nil, scalar}, nil
	case "Quant":
		return []*tensor.Tensor{x, scalar, f32(nil, 0), f32(nil, 8)}, nil
	case "Clip":
		return []*tensor.Tensor{x, one, one}, nil
	case "ImageScaler":
		return []*tensor.Tensor{x}, graph.Attrs{"bias": []float32{1, 2}}
	case "Crop":
		return []*tensor.Tensor{x}, graph.Attrs{"border": []int64{0, 1, 1, 0}}
	case "SwiGLU":
		return []*tensor.Tensor{x, x}, nil
	case "Add", "Sub", "Mul", "Div", "Mod", "PRelu", "Pow", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor",
		"BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max", "Min", "Sum", "Mean":
		return []*tensor.Tensor{x, one}, nil
	case "BiasGelu", "FastGelu":
		return []*tensor.Tensor{x, number(ty, []int{2}, 1, 0)}, nil
	}
	return []*tensor.Tensor{x}, nil
}

// TestUnsupported checks that types outside an operator's list are refused.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Add", "Exp", "Abs", "Clip", "Softmax", "ReduceMax", "ArgMax", "IsNaN", "BitwiseNot", "Less", "And"} {
		x := tensor.New(tensor.Complex64, 1)
		in := []*tensor.Tensor{x}
		if slices.Contains([]string{"Add", "Less", "And"}, name) {
			in = append(in, x)
		}
		if _, err := optest.Run(Defs(), optest.Node{Op: name, Version: 20}, in...); !errors.Is(err, op.ErrUnsupported) {
			t.Errorf("%s of complex numbers: %v", name, err)
		}
	}
}

// TestCurves compares the float32 loops with their float64 twins, over the range
// where models use them and at the edges.
func TestCurves(t *testing.T) {
	t.Parallel()
	for _, e := range curves() {
		t.Run(e.domain+":"+e.name, func(t *testing.T) {
			t.Parallel()
			x := tensor.New(tensor.Float32, 4003)
			v := tensor.Of[float32](x)
			for i := range v {
				v[i] = (float32(i) - 2000) / 100
			}
			v[4001], v[4002] = 0, float32(math.NaN())
			n := optest.Node{Domain: e.domain, Op: e.name, Version: 28}
			got := reals(run(t, n, x)[0])
			want := reals(run(t, n, number(tensor.Float64, []int{4003}, reals(x)...))[0])
			near(t, got, want, 2e-6)
		})
	}
}

// TestDynamicAxes gives a reduction new axes of the same shape without planning
// again.
func TestDynamicAxes(t *testing.T) {
	t.Parallel()
	d := op.NewRegistry(Defs()).Find("", "ReduceSum", 13)
	x, axes := f32([]int{2, 2}, 1, 2, 3, 4), i64([]int{1}, 0)
	g := &graph.Graph{Values: []*graph.Value{{}, {ID: 1}, {ID: 2}}}
	c := &op.Call{Graph: g, Node: &graph.Node{Op: "ReduceSum", Version: 13, Inputs: []int{0, 1}, Outputs: []int{2}}, In: []*tensor.Tensor{x, axes}, Out: []*tensor.Tensor{{}}}
	if err := d.Infer(c); err != nil {
		t.Fatal(err)
	}
	run, err := d.Variants[0].Prepare(c)
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
	d := op.NewRegistry(Defs()).Find("", "Add", 14)
	for _, b := range []*tensor.Tensor{f32([]int{4}, 1, 1, 1, 1), f32(nil, 1)} {
		c := &op.Call{Node: &graph.Node{Op: "Add", Version: 14}, In: []*tensor.Tensor{f32([]int{4}, -3, 0, 5, 9), b}, Out: []*tensor.Tensor{{}},
			Activation: op.Activation{On: true, Min: 0, Max: 6}}
		if err := d.Infer(c); err != nil {
			t.Fatal(err)
		}
		run, err := d.Variants[0].Prepare(c)
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
