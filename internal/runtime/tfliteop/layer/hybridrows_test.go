package layer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestHybridRows: rows multiplied together are bit-exact with rows multiplied one by one, for
// more than one block, with one scale and with one per channel, with and without zero points and
// biases.
func TestHybridRows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 19))
	pool := workers.New(2, nil)
	defer pool.Close()
	for i := range 24 {
		rows, n, k := 1+r.IntN(80), 1+r.IntN(50), 1+r.IntN(90)
		w := make([]float64, n*k)
		for i := range w {
			w[i] = float64(r.IntN(255) - 127)
		}
		scales := []float32{0.02}
		if i%2 == 0 {
			scales = make([]float32, n)
			for i := range scales {
				scales[i] = 0.01 + r.Float32()
			}
		}
		x, bias := make([]float32, rows*k), []float32(nil)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		for row := range rows {
			rangesOf(r, x[row*k:][:k])
		}
		if i%3 == 0 {
			bias = make([]float32, n)
			for i := range bias {
				bias[i] = r.Float32()
			}
		}
		h, err := NewHybrid(optest.Of(tensor.Int8, optest.Affine(0, scales...), []int{n, k}, w...), n, k, false, i%4 < 2)
		if err != nil {
			t.Fatal(err)
		}
		act := activation.Clamp{On: i%5 == 0, Min: -1, Max: 3}
		want, got := make([]float32, rows*n), make([]float32, rows*n)
		for r := range rows {
			h.Rows(pool, 1, want[r*n:], x[r*k:], bias, act)
		}
		h.Together(rows)
		h.Rows(pool, rows, got, x, bias, act)
		if !slices.EqualFunc(got, want, func(a, b float32) bool { return a == b || a != a && b != b }) {
			t.Errorf("%d rows of %d by %d, %d scales: other numbers than row by row", rows, k, n, len(scales))
		}
	}
}

// TestHybridCodes: quantised rows, with their scales and zero points, match the integers of each
// row.
func TestHybridCodes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 5))
	for i := range 200 {
		rows, k, asym := 1+r.IntN(9), 1+r.IntN(90), i%2 == 0
		h := Hybrid{k: k, asym: asym}
		x, dst, scales, zeros := make([]float32, rows*k), make([]uint8, rows*k), make([]float32, rows), make([]int32, rows)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		for row := range rows {
			rangesOf(r, x[row*k:][:k])
		}
		h.quantiseAll(dst, make([]float32, rows*k), x, scales, zeros)
		for row := range rows {
			q := make([]float32, k)
			scale, zero := QuantiseRow(q, x[row*k:][:k], asym)
			if scale != scales[row] && scale == scale || zero != zeros[row] {
				t.Fatalf("row %d of %d of %d numbers: scale %g, zero point %d, not %g and %d", row, rows, k, scales[row], zeros[row], scale, zero)
			}
			for i, v := range q {
				if got, want := dst[row*k+i], uint8(int32(v)+zero+withoutSign); got != want {
					t.Fatalf("row %d of %d, number %d of %d: %d, not %d", row, rows, i, k, got, want)
				}
			}
		}
	}
}

// rangesOf gives a row one of the ranges that affect its quantisation.
func rangesOf(r *rand.Rand, x []float32) {
	by := float32(1)
	switch r.IntN(12) {
	case 0:
		clear(x)
	case 1:
		x[r.IntN(len(x))] = float32(math.Inf(1 - 2*r.IntN(2)))
	case 2:
		x[r.IntN(len(x))] = float32(math.NaN())
	case 3:
		by = math.SmallestNonzeroFloat32 * 100 // no scale has an inverse
	case 4:
		by = 2e38 // nor has a range an end
	case 5, 6: // zero lies between two codes, or at the end of a step
		for i := range x {
			x[i] = float32(int32(100*x[i])) / 2
		}
		x[0] = 127.5
		x[len(x)-1] = -127.5
	case 7:
		for i := range x {
			x[i] = max(x[i], -x[i])
		}
	case 8:
		for i := range x {
			x[i] = min(x[i], -x[i])
		}
	case 9:
		by = float32(math.Exp(20 * r.NormFloat64()))
	}
	for i := range x {
		x[i] *= by
	}
}
