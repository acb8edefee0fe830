package elementwise

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestHalves: sums and products of 16-bit floats are those of the same numbers in float32,
// rounded: long and short runs, and operands that are scalar, broadcast, or advance.
func TestHalves(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 5))
	for _, typ := range []tensor.Type{tensor.Float16, tensor.BFloat16} {
		for i, shapes := range [][2][]int{
			{{3000}, {3000}}, {{2, 1500}, {1500}}, {{7, 9, 3}, {3}}, {{5, 1, 70}, {6, 1}}, {{1}, {2000}}, {{40, 1}, {1, 45}}, {{}, {}}, {{0, 3}, {3}},
		} {
			for _, name := range []string{"Add", "Sub", "Mul", "Div"} {
				var halves, wide [2]*tensor.Tensor
				for k, s := range shapes {
					halves[k], wide[k] = tensor.New(typ, s...), tensor.New(tensor.Float32, s...)
					for i := range wide[k].Len() {
						tensor.WriteFloat32(halves[k], i, []float32{r.Float32()*8 - 4})
						tensor.Of[float32](wide[k])[i] = float32(tensor.At(halves[k], i))
					}
				}
				run := func(in [2]*tensor.Tensor) *tensor.Tensor {
					out, err := optest.Run(Defs(), optest.Node{Op: name, Version: 14}, in[0], in[1])
					if err != nil {
						t.Fatal(err)
					}
					return out[0]
				}
				got, exact := run(halves), run(wide)
				want := tensor.New(typ, exact.Shape...)
				tensor.WriteFloat32(want, 0, tensor.Of[float32](exact))
				if got.Type != typ || !bytes.Equal(got.Data, want.Data) {
					t.Errorf("%s of %v, case %d: other bits than those of float32, rounded", name, typ, i)
				}
			}
		}
	}
}
