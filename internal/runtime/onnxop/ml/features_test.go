package ml

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestFeatureRows compares loops over rows of all types and lengths with their formulas.
func TestFeatureRows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 9))
	for _, ty := range numeric {
		for features := 1; features < 24; features++ {
			x := tensor.New(ty, 3, features)
			offset, scale, values := make([]float32, features), make([]float32, features), make([]float32, features)
			wholes := make([]int64, features)
			for j := range features {
				offset[j], scale[j], values[j], wholes[j] = float32(r.NormFloat64()), float32(r.NormFloat64()), float32(r.NormFloat64()), int64(j)<<40
			}
			tensor.Fill(x, func(int) float64 {
				if r.IntN(4) == 0 {
					return 2
				}
				return math.Round(16*r.NormFloat64()) / 4
			})
			in := make([]float64, x.Len())
			tensor.Read(in, x, 0)
			for _, test := range []struct {
				op    string
				attrs graph.Attrs
				want  func(row []float64, j int) float64
			}{
				{"Scaler", graph.Attrs{"offset": offset, "scale": scale}, func(row []float64, j int) float64 { return (row[j] - float64(offset[j])) * float64(scale[j]) }},
				{"Binarizer", graph.Attrs{"threshold": float32(0.5)}, func(row []float64, j int) float64 { return float64(tensor.Truth(row[j] > 0.5)) }},
				{"Imputer", graph.Attrs{"imputed_value_floats": values, "replaced_value_float": float32(2), "imputed_value_int64s": wholes, "replaced_value_int64": int64(2)}, func(row []float64, j int) float64 {
					switch {
					case row[j] != 2:
						return row[j]
					case ty.IsFloat():
						return float64(values[j])
					case ty == tensor.Int32:
						return float64(int32(wholes[j]))
					}
					return float64(wholes[j])
				}},
				{"Normalizer", graph.Attrs{"norm": "MAX"}, func(row []float64, j int) float64 {
					most := row[0]
					for _, v := range row {
						most = max(most, v)
					}
					return over(row[j], most)
				}},
				{"Normalizer", graph.Attrs{"norm": "L1"}, func(row []float64, j int) float64 {
					var sum float64
					for _, v := range row {
						sum += math.Abs(v)
					}
					return over(row[j], sum)
				}},
				{"Normalizer", graph.Attrs{"norm": "L2"}, func(row []float64, j int) float64 {
					var sum float64
					for _, v := range row {
						sum += v * v
					}
					return over(row[j], math.Sqrt(sum))
				}},
			} {
				out, err := optest.Run(defs, optest.Node{Domain: graph.ONNXML, Op: test.op, Version: 1, Attrs: test.attrs}, x)
				if err != nil {
					t.Fatal(err)
				}
				for i := range in {
					got, want := tensor.At(out[0], i), test.want(in[i/features*features:][:features], i%features)
					if !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
						t.Fatalf("%s %v of %v, row %v: element %d is %v, want %v", test.op, test.attrs["norm"], ty, in[i/features*features:][:features], i, got, want)
					}
				}
			}
		}
	}
}

// over is x over d, or x where there is nothing to divide by.
func over(x, d float64) float64 {
	if d == 0 {
		return x
	}
	return x / d
}

// TestTreeSteps compares walks of forests with and without their steps.
func TestTreeSteps(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 9))
	const depth = 5
	for range 50 {
		f := &forest{roots: []int{0}, targets: 1}
		for i := range 1<<(depth+1) - 1 {
			n := treeNode{mode: leafNode}
			if i < 1<<depth-1 {
				n = treeNode{mode: branchLEQ, feature: r.IntN(4), value: math.Round(2 * r.NormFloat64()), yes: 2*i + 1, no: 2*i + 2}
			}
			f.nodes = append(f.nodes, n)
		}
		if err := f.check(); err != nil || f.steps == nil {
			t.Fatalf("no steps: %v", err)
		}
		slow := *f
		slow.steps = nil
		for range 50 {
			x := make([]float64, 4)
			for j := range x {
				x[j] = math.Round(2 * r.NormFloat64())
				if r.IntN(10) == 0 {
					x[j] = math.NaN()
				}
			}
			if f.leaf(0, x) != slow.leaf(0, x) {
				t.Fatalf("%v comes to another leaf", x)
			}
			// Walks side by side, from anywhere in the tree.
			roots := []int{0, r.IntN(len(f.nodes)), r.IntN(len(f.nodes)), r.IntN(len(f.nodes))}
			for i, at := range f.fourLeaves(roots, x) {
				if &f.nodes[at] != f.leaf(roots[i], x) {
					t.Fatalf("%v comes to another leaf from %d of %v", x, i, roots)
				}
			}
		}
	}
}
