package reduce

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestRowsOfSingles compares SIMD operators on rows of float32 with the same in float64.
func TestRowsOfSingles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := []int{rapid.IntRange(1, 4).Draw(t, "outer"), rapid.IntRange(1, 700).Draw(t, "n"), rapid.SampledFrom([]int{1, 1, 3, 40}).Draw(t, "inner")}
		single, double := tensor.New(tensor.Float32, shape...), tensor.New(tensor.Float64, shape...)
		step, odd := rapid.IntRange(1, 99).Draw(t, "step"), rapid.SampledFrom([]float64{0, math.Inf(1), math.NaN()}).Draw(t, "odd")
		for i := range single.Len() {
			v := float64(i*step%97-48) / 4
			if i%301 == 300 {
				v = odd
			}
			tensor.Of[float32](single)[i], tensor.Of[float64](double)[i] = float32(v), v
		}
		both := func(node optest.Node) (a, b *tensor.Tensor) {
			x, err := optest.Run(Defs(), node, single)
			if err != nil {
				t.Fatal(err)
			}
			y, err := optest.Run(Defs(), node, double)
			if err != nil {
				t.Fatal(err)
			}
			return x[0], y[0]
		}
		for _, name := range []string{"ArgMax", "ArgMin"} {
			got, want := both(optest.Node{Op: name, Version: 13, Attrs: graph.Attrs{"axis": int64(1), "select_last_index": int64(step % 2)}})
			if diff := cmp.Diff(tensor.Of[int64](want), tensor.Of[int64](got)); diff != "" {
				t.Fatalf("%s: %s", name, diff)
			}
		}
		for _, name := range []string{"ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "LogSoftmax"} {
			attrs, version := graph.Attrs{"axes": []int64{1}}, 11
			if name == "LogSoftmax" {
				attrs, version = graph.Attrs{"axis": int64(1)}, 13
			}
			got, want := both(optest.Node{Op: name, Version: version, Attrs: attrs})
			for i, w := range tensor.Of[float64](want) {
				g := float64(tensor.Of[float32](got)[i])
				// A sum is rounded once, a logarithm of a softmax four times.
				if math.Abs(g-w) > 4e-7*math.Max(math.Abs(w), 12) && !(g != g && w != w) && g != w {
					t.Fatalf("%s %v: element %d is %v, want %v", name, shape, i, g, w)
				}
			}
		}
	})
}
