package contrib

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestDistances compares with sums of squared differences.
func TestDistances(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, n, k := rapid.IntRange(0, 6).Draw(t, "m"), rapid.IntRange(0, 6).Draw(t, "n"), rapid.IntRange(0, 20).Draw(t, "k")
		kind := rapid.SampledFrom([]tensor.Type{tensor.Float32, tensor.Float64}).Draw(t, "type")
		metric := rapid.SampledFrom([]string{"euclidean", "sqeuclidean"}).Draw(t, "metric")
		r := source(rapid.Uint64().Draw(t, "seed"))
		a, b := random(r, kind, m, k), random(r, kind, n, k)
		got, err := optest.Run(defs, optest.Node{Op: "CDist", Domain: graph.Microsoft, Version: 1, Attrs: graph.Attrs{"metric": metric}}, a, b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m {
			for j := range n {
				var want, size float64
				for q := range k {
					x, y := tensor.At(a, i*k+q), tensor.At(b, j*k+q)
					want += (x - y) * (x - y)
					size += x*x + y*y
				}
				d := tensor.At(got[0], i*n+j)
				if metric == "euclidean" {
					d *= d
				}
				// The rounding error is that of the squares, not of the differences.
				if math.Abs(d-want) > 4e-7*size*float64(k+2) {
					t.Fatalf("distance %d, %d is %v, want %v", i, j, d, want)
				}
			}
		}
	})
	for _, s := range [][2][]int{{{2, 3}, {2, 4}}, {{3}, {2, 3}}} {
		if _, err := optest.Run(defs, optest.Node{Op: "CDist", Domain: graph.Microsoft, Version: 1}, tensor.New(tensor.Float32, s[0]...), tensor.New(tensor.Float32, s[1]...)); err == nil {
			t.Errorf("%v: no error", s)
		}
	}
}
