package pool

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestBilinearSets: SIMD lines are bit-exact with plain Go, for sizes and numbers of channels
// that are not multiples of a register.
func TestBilinearSets(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 4))
	for i := range 60 {
		shape := []int{1 + r.IntN(2), 1 + r.IntN(7), 1 + r.IntN(7), 1 + r.IntN(40)}
		oh, ow := 1+r.IntN(15), 1+r.IntN(15)
		typ, q := tensor.Float32, (*tensor.Quant)(nil)
		if i%2 == 0 {
			typ, q = tensor.Int8, optest.Affine(3, 0.1)
		}
		v := make([]float64, tensor.Elements(shape))
		for i := range v {
			if v[i] = r.NormFloat64(); typ == tensor.Int8 {
				v[i] = float64(r.IntN(256) - 128)
			}
		}
		attrs := graph.Attrs{"align_corners": i%3 == 0, "half_pixel_centers": i%3 == 1}
		n := optest.Lite("RESIZE_BILINEAR", attrs, typ, q)
		var want []byte
		for k, set := range simd.Available() {
			undo := simd.Use(set)
			out, err := optest.Run(Defs(), n, optest.Of(typ, q, shape, v...), optest.Row(tensor.Int32, nil, float64(oh), float64(ow)))
			undo()
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				want = out[0].Data
			} else if !bytes.Equal(want, out[0].Data) {
				t.Errorf("%v: %v %v to %dx%d, %v: other bits than %v", set, typ, shape, oh, ow, fmt.Sprint(attrs), simd.Available()[0])
			}
		}
	}
}
