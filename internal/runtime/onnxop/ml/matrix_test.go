package ml

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestMatrixProducts compares products of some rows with sums one by one, with each set of
// instructions.
func TestMatrixProducts(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, rows, lines, features int, at func() float64) {
		fill := func(n int) []float64 {
			v := make([]float64, n)
			for i := range v {
				v[i] = at()
			}
			return v
		}
		values, x, start := fill(lines*features), fill(rows*features), fill(rows*lines)
		m := newMatrix(values, lines, features)
		got := append([]float64{}, start...)
		m.addProducts(got, x)
		for i, s := range start {
			size := math.Abs(s)
			for j := range features {
				p := x[i/lines*features+j] * values[i%lines*features+j]
				s, size = s+p, size+math.Abs(p)
			}
			if math.Abs(got[i]-s) > 1e-14*size {
				t.Fatalf("%d rows, %d lines of %d features: product %d is %v, want %v", rows, lines, features, i, got[i], s)
			}
		}
	}
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		k := 0.0
		for _, n := range [][3]int{{2000, 3, 10}, {1, 1, 40}, {3, 5, 1}, {2, 100, 20}, {4, 4, 17}} {
			check(t, n[0], n[1], n[2], func() float64 { k++; return math.Sin(k) })
		}
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(1, 40)
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			check(t, n.Draw(t, "rows"), n.Draw(t, "lines"), n.Draw(t, "features"), r.NormFloat64)
		})
		undo()
	}
}

// TestRowsTogether: what a row comes to does not depend on the rows beside it.
func TestRowsTogether(t *testing.T) {
	t.Parallel()
	const rows, features = 301, 5
	r := rand.New(rand.NewPCG(2, 3))
	fill := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	machine := graph.Attrs{
		"support_vectors": fill(6 * features), "coefficients": fill(12), "rho": fill(3), "vectors_per_class": []int64{2, 3, 1}, "classlabels_ints": []int64{4, 5, 6},
		"prob_a": fill(3), "prob_b": fill(3), "kernel_params": []float32{0.1, 0.5, 3},
	}
	for _, tt := range []struct {
		op    string
		attrs graph.Attrs
	}{
		{"LinearRegressor", graph.Attrs{"coefficients": fill(4 * features), "intercepts": fill(4), "targets": int64(4), "post_transform": "SOFTMAX"}},
		{"LinearClassifier", graph.Attrs{"coefficients": fill(3 * features), "intercepts": fill(3), "classlabels_ints": []int64{1, 2, 3}, "post_transform": "LOGISTIC"}},
		{"LinearClassifier", graph.Attrs{"coefficients": fill(features), "intercepts": fill(1), "classlabels_ints": []int64{1, 2}, "post_transform": "LOGISTIC"}},
		{"SVMRegressor", graph.Attrs{"kernel_type": "RBF", "kernel_params": []float32{0.1, 0, 0}, "n_supports": int64(6), "support_vectors": fill(6 * features), "coefficients": fill(6), "rho": fill(1)}},
		{"SVMClassifier", with(machine, "kernel_type", "POLY")},
		{"SVMClassifier", with(machine, "kernel_type", "SIGMOID")},
	} {
		outputs := 1
		if strings.HasSuffix(tt.op, "Classifier") {
			outputs = 2
		}
		x := fill(rows * features)
		all := run(t, tt.op, tt.attrs, outputs, floats([]int{rows, features}, x...))
		for i := range rows {
			for o, y := range run(t, tt.op, tt.attrs, outputs, floats([]int{1, features}, x[i*features:][:features]...)) {
				if size := len(y.Data); !bytes.Equal(y.Data, all[o].Data[i*size:][:size]) {
					t.Fatalf("%s: output %d of row %d alone is %v, beside others %v", tt.op, o, i, y.Data, all[o].Data[i*size:][:size])
				}
			}
		}
	}
}

// with is attributes with one more.
func with(a graph.Attrs, name string, v any) graph.Attrs {
	a = maps.Clone(a)
	a[name] = v
	return a
}

// TestKeysNearEachOther compares tables of keys with maps.
func TestKeysNearEachOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.Int64Range(-40, 300), 1, 50).Draw(t, "keys")
		keys[0] += rapid.SampledFrom([]int64{0, 0, math.MinInt64 / 2}).Draw(t, "far")
		e := &labelEncoder{keys: intColumn(nil), nan: -1}
		x := tensor.New(tensor.Int64, 400)
		for i := range x.Len() {
			tensor.Of[int64](x)[i] = int64(i - 50)
		}
		copy(tensor.Of[int64](x), []int64{math.MinInt64, math.MaxInt64, keys[0]})
		for _, k := range keys {
			e.keys.nums, e.keys.ints = append(e.keys.nums, float64(k)), append(e.keys.ints, k)
		}
		if rapid.Bool().Draw(t, "floats") {
			e.keys.kind, e.keys.ints = tensor.Float64, nil
			x = tensor.From(tensor.Float64, []int{400}, numbersOf(x))
			copy(tensor.Of[float64](x)[3:], []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0.5, math.Copysign(0, -1)})
		}
		e.index()
		want, got := make([]int32, labelBlock), make([]int32, labelBlock)
		e.places(want, x, 0)
		e.indexNear()
		e.places(got, x, 0)
		if !slices.Equal(got, want) {
			t.Fatalf("keys %v: places %v, want %v", keys, got, want)
		}
	})
}

func numbersOf(x *tensor.Tensor) []float64 {
	v, _ := numbers(nil, x)
	return v
}
