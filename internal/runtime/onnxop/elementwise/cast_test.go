package elementwise

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestCastHalves compares conversions from and to float16 with those of single numbers.
func TestCastHalves(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for n := 1; n < 70; n++ {
		x := tensor.New(tensor.Float32, n)
		want := make([]uint16, n)
		for i := range tensor.Of[float32](x) {
			v := float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(12)-7)))
			if r.IntN(9) == 0 {
				v = []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 65519, 65520, -1e-8}[r.IntN(6)]
			}
			tensor.Of[float32](x)[i], want[i] = v, tensor.F32ToF16(v)
		}
		half, err := optest.Run(Defs(), optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(10)}}, x)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tensor.Of[uint16](half[0])); diff != "" {
			t.Fatal(diff)
		}
		back, err := optest.Run(Defs(), optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(1)}}, half[0])
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range want {
			if got, want := tensor.Of[float32](back[0])[i], tensor.F16ToF32(h); got != want && (got == got || want == want) {
				t.Fatalf("%#x became %v, want %v", h, got, want)
			}
		}
	}
}
