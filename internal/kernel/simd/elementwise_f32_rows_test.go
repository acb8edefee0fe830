package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPairs(t *testing.T) {
	everyElements(t, func(t *testing.T, e *Elements, r *rand.Rand, a, b []float32, n int) {
		if !e.HasPairs() {
			return
		}
		cols := 1 + r.IntN(80)
		rows, single := (n+1)/cols, r.IntN(3)
		steps, lens := [2]int{}, [2]int{cols, cols}
		for k := range steps {
			if single == k+1 {
				lens[k] = 1
			}
			if r.IntN(2) == 0 { // otherwise a row is repeated
				steps[k] = lens[k]
			}
		}
		// Nothing is written or read outside the rows.
		operand := func(v []float32, k int) []float32 {
			if rows == 0 {
				return v
			}
			return slices.Clip(v[:(rows-1)*steps[k]+lens[k]])
		}
		for op, one := range map[RowOp]func(x, y float32) float32{
			RowAdd:    func(x, y float32) float32 { return x + y },
			RowSub:    func(x, y float32) float32 { return x - y },
			RowMul:    func(x, y float32) float32 { return x * y },
			RowDiv:    func(x, y float32) float32 { return x / y },
			RowSquare: func(x, y float32) float32 { d := float32(x - y); return d * d },
		} {
			got := make([]float32, rows*cols+1)
			got[rows*cols] = 7
			e.Pairs(op, got[:rows*cols], operand(a, 0), operand(b, 1), cols, steps[0], steps[1], single)
			sameFloats(t, "rows", got, rows*cols, func(i int) float32 {
				row, col := i/cols, i%cols
				return one(a[row*steps[0]+min(col, lens[0]-1)], b[row*steps[1]+min(col, lens[1]-1)])
			})
		}
	})
}
