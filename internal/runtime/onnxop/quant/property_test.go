package quant

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/reduce"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestBroadcastProperty compares the walk with index arithmetic over random shapes.
func TestBroadcastProperty(t *testing.T) {
	t.Parallel()
	defs := allDefs()
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
				want := map[string]float64{"Add": va + vb, "Less": float64(tensor.Truth(va < vb)), "Max": max(va, vb), "Where": vb}[name]
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

// TestReduceProperty compares reductions with plain sums over random shapes and axes, large ones
// included.
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
			out := reduce.ReducedShape(shape, mask, true)
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
