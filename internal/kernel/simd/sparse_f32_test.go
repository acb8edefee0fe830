package simd

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// TestSparseLayout checks the field offsets that the assembly uses.
func TestSparseLayout(t *testing.T) {
	t.Parallel()
	var x SparseTile
	for i, got := range []uintptr{
		unsafe.Offsetof(x.X), unsafe.Offsetof(x.Panel), unsafe.Offsetof(x.Offs), unsafe.Offsetof(x.Vals), unsafe.Offsetof(x.Count),
		unsafe.Offsetof(x.Y), unsafe.Offsetof(x.RowY), unsafe.Offsetof(x.Bias), unsafe.Offsetof(x.mask), unsafe.Offsetof(x.Min),
		unsafe.Offsetof(x.bits),
	} {
		if unsafe.Sizeof(uintptr(0)) == 8 && got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
}

// TestSparseTiles compares tiles with their definition; factors include special values. It checks
// that nothing is written outside the columns.
func TestSparseTiles(t *testing.T) {
	everySet(t, func(t *testing.T) {
		f := SparseKernels()
		if f == nil {
			t.Skip("plain Go")
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 3000 {
			several, exact, odd := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(4) == 0
			rows, most := 1, f.Panels
			if several {
				rows, most = SparseRows, f.PanelsOfRows
			}
			width, steps := 1+r.IntN(most*f.Cols), 1+r.IntN(12)
			x := make([]float32, most*steps*f.Cols)
			fill(r, x, odd)
			var offs []int32
			for k := range steps {
				if r.IntN(2) == 0 {
					offs = append(offs, int32(4*k*f.Cols))
				}
			}
			count := len(offs)
			offs = append(offs, 0)
			vals, bias := make([]float32, rows*count+1), make([]float32, rows)
			fill(r, vals, odd)
			fill(r, bias, odd)
			rowY := width + r.IntN(3)
			y := make([]float32, (rows-1)*rowY+width+8)
			fill(r, y, odd)
			want := append([]float32(nil), y...)
			tile := &SparseTile{X: &x[0], Panel: 4 * steps * f.Cols, Offs: &offs[0], Vals: &vals[0], Count: count, Y: &y[0], RowY: 4 * rowY}
			if r.IntN(2) == 0 {
				tile.Bias = &bias[0]
			}
			goOn, on := r.IntN(2) == 0, r.IntN(2) == 0
			tile.SetStart(goOn)
			tile.SetClamp(on, -0.5, 0.75)
			for i := range rows {
				for j := range width {
					var s float32
					if goOn {
						s = want[i*rowY+j]
					}
					for n := range count {
						v, p := vals[n*rows+i], x[j/f.Cols*steps*f.Cols+int(offs[n])/4+j%f.Cols]
						if exact {
							s += float32(v * p)
						} else {
							s = fma(v, p, s)
						}
					}
					if tile.Bias != nil {
						s += bias[i]
					}
					if on {
						s = min(max(s, -0.5), 0.75)
					}
					want[i*rowY+j] = s
				}
			}
			f.Run(tile, several, width, exact)
			for i := range want {
				if !same(y[i], want[i]) {
					t.Fatalf("%d rows of %d columns, %d values, exact %t: value %d is %v, not %v", rows, width, count, exact, i, y[i], want[i])
				}
			}
		}
	})
}

// TestPeakLoops only runs the kernels: they have no results.
func TestPeakLoops(t *testing.T) {
	everySet(t, func(t *testing.T) {
		p := PeakLoops()
		if p == nil {
			t.Skip("plain Go")
		}
		p.Floats(3)
		p.Exact(3)
		p.Ints(3)
		if p.FloatOps <= 0 || p.IntOps <= 0 {
			t.Error("rounds without operations")
		}
	})
}
