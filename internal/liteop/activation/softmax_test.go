package activation

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// Rows of codes in vectors have the bits of plain Go: steep and flat ones, short and long ones, sums near the end of their type.
func TestSoftmaxSets(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 44))
	for i := range 120 {
		typ := []tensor.Type{tensor.Int8, tensor.Uint8}[i%2]
		rows, depth := 1+r.IntN(3), 1+r.IntN(300)
		if i%20 == 0 {
			depth = 4000 + r.IntN(200)
		}
		least, most, zero := 0.0, 256, int64(0)
		if typ == tensor.Int8 {
			least, zero = -128, -128
		}
		if i%5 == 0 {
			most = 1 + r.IntN(4) // nearly the same number throughout
		}
		v := make([]float64, rows*depth)
		for i := range v {
			v[i] = least + float64(r.IntN(most))
		}
		scale := []float32{0.001, 0.05, 0.1, 1, 7}[r.IntN(5)]
		n := optest.Lite("SOFTMAX", graph.Attrs{"beta": []float32{1, 0.3}[r.IntN(2)]}, typ, optest.Affine(zero, 1./256))
		var want []byte
		for k, set := range simd.Available() {
			undo := simd.Use(set)
			out, err := optest.Run(Defs(), n, optest.Of(typ, optest.Affine(5, scale), []int{rows, depth}, v...))
			undo()
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				want = out[0].Data
			} else if !bytes.Equal(want, out[0].Data) {
				t.Errorf("%v: %v, %d rows of %d, scale %v: other bits than %v", set, typ, rows, depth, scale, simd.Available()[0])
			}
		}
	}
}
