package activation

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// Quantised rows with SIMD are bit-exact with plain Go: steep and flat ones, short and long ones,
// sums near the end of their type.
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

// Rows of int16 in vectors have the bits of plain Go: factors that shift to either side,
// differences that saturate, sums near the end of their type.
func TestWideSoftmaxSets(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 47))
	for i := range 120 {
		rows, depth := 1+r.IntN(5), 1+r.IntN(100)
		if i%20 == 0 {
			rows, depth = 1, 65500+r.IntN(50)
		}
		spread := []int{1, 5, 1000, 1 << 16}[r.IntN(4)]
		v := make([]float64, rows*depth)
		for i := range v {
			v[i] = float64(r.IntN(spread) - spread/2)
		}
		scale := []float32{1e-9, 1e-5, 1. / 4096, 0.001, 0.05, 1, 700, 1e6}[i/2%8]
		n := optest.Lite("SOFTMAX", graph.Attrs{"beta": []float32{1, 0.3}[r.IntN(2)]}, tensor.Int16, optest.Affine(0, 1./32768))
		n.Threads = 1 + i%3
		var want []byte
		for k, set := range simd.Available() {
			undo := simd.Use(set)
			out, err := optest.Run(Defs(), n, optest.Of(tensor.Int16, optest.Affine(0, scale), []int{rows, depth}, v...))
			undo()
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				want = out[0].Data
			} else if !bytes.Equal(want, out[0].Data) {
				t.Errorf("%v: %d rows of %d, scale %v: other bits than %v", set, rows, depth, scale, simd.Available()[0])
			}
		}
	}
}

// Rows of floats, short and long ones, have the bits of plain Go in all sets, whatever the number
// of threads.
func TestFloatSoftmaxSets(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 45))
	for i := range 150 {
		rows, depth := 1+r.IntN(200), 1+r.IntN([]int{40, 40, 40, 40, 2 * longRow}[i%5])
		x := tensor.New(tensor.Float32, rows, depth)
		for i := range tensor.Of[float32](x) {
			tensor.Of[float32](x)[i] = float32(r.NormFloat64()) * []float32{1, 1, 1, 100}[r.IntN(4)]
		}
		for range r.IntN(3) {
			tensor.Of[float32](x)[r.IntN(rows*depth)] = float32([]float64{math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32}[r.IntN(4)])
		}
		n := optest.Lite("SOFTMAX", graph.Attrs{"beta": []float32{1, 0.3}[r.IntN(2)]}, tensor.Float32, nil)
		n.Threads = 1 + i%3
		var want []float32
		for k, set := range simd.Available() {
			undo := simd.Use(set)
			out, err := optest.Run(Defs(), n, x)
			undo()
			if err != nil {
				t.Fatal(err)
			}
			got := tensor.Of[float32](out[0])
			if k == 0 {
				want = got
			}
			for i, v := range want {
				if math.Float32bits(v) != math.Float32bits(got[i]) && (v == v || got[i] == got[i]) {
					t.Fatalf("%v: %d rows of %d: number %d is %v, want %v", set, rows, depth, i, got[i], v)
				}
			}
		}
	}
}
