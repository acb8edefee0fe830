package elementwise

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

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
			got := values(t, n, x)
			wide := tensor.New(tensor.Float64, len(v))
			tensor.Read(tensor.Of[float64](wide), x, 0)
			want := values(t, n, wide)
			for i, w := range want {
				if g := got[i]; g != w && !(math.Abs(g-w) <= 2e-6+2e-6*math.Abs(w)) && !(g != g && w != w) {
					t.Fatalf("f(%v) is %v, want %v", v[i], g, w)
				}
			}
		})
	}
}

func values(t *testing.T, n optest.Node, x *tensor.Tensor) []float64 {
	t.Helper()
	out, err := optest.Run(Defs(), n, x)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tensor.All[float64](out[0])
	if err != nil {
		t.Fatal(err)
	}
	return v
}
