package simd

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// TestSparseIntLayout checks the field offsets that the assembly uses.
func TestSparseIntLayout(t *testing.T) {
	t.Parallel()
	var x SparseIntTile
	for i, got := range []uintptr{
		unsafe.Offsetof(x.X), unsafe.Offsetof(x.Offs), unsafe.Offsetof(x.Vals), unsafe.Offsetof(x.Counts), unsafe.Offsetof(x.Units), unsafe.Offsetof(x.Y),
		unsafe.Offsetof(x.RowY), unsafe.Offsetof(x.Start), unsafe.Offsetof(x.more),
	} {
		if unsafe.Sizeof(uintptr(0)) == 8 && got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
}

// TestSparseIntTiles compares tiles with their definition, including the largest values. It
// checks that nothing is written outside the columns.
func TestSparseIntTiles(t *testing.T) {
	everySet(t, func(t *testing.T) {
		f := SparseIntKernels()
		if f == nil {
			t.Skip("dense kernels only")
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			kind, units := SparseKind(r.IntN(int(SparseKinds))), 1+r.IntN(4)
			rows, width, steps := kind.Rows(), 1+r.IntN(f.Cols), 4*(1+r.IntN(20))
			x := make([]uint8, steps*f.Cols)
			for i := range x {
				if x[i] = uint8(r.Uint32()); r.IntN(4) == 0 {
					x[i] = 255
				}
			}
			var offs []uint16
			var vals []uint8
			counts, sums := make([]uint32, units), make([]int32, units*rows*f.Cols)
			for u := range units {
				counts[u] = uint32(r.IntN(12))
				for range counts[u] {
					var places [4]int // of the values of column 0
					step := 1
					if kind == SparseFours {
						at := r.IntN(steps/4) * 4 * f.Cols
						offs, step = append(offs, uint16(at)), 4
						places = [4]int{at, at + 1, at + 2, at + 3}
					} else {
						for i := range places {
							places[i] = r.IntN(steps) * f.Cols
							offs = append(offs, uint16(places[i]))
						}
					}
					for row := range rows {
						var w [4]int8
						for i := range w {
							if w[i] = int8(r.Uint32()); r.IntN(4) == 0 {
								w[i] = -128
							}
							for c := range f.Cols {
								sums[(u*rows+row)*f.Cols+c] += int32(w[i]) * int32(x[places[i]+c*step])
							}
						}
						var v [8]uint8
						f.Put(v[:], w)
						vals = append(vals, v[:f.Size()]...)
					}
				}
			}
			offs, vals = append(offs, 0), append(vals, 0)
			start, rowY := make([]int32, units*rows), f.Cols+r.IntN(3)
			y := make([]int32, (units*rows-1)*rowY+f.Cols+8)
			for i := range y {
				y[i] = int32(r.Uint32())
			}
			want, goOn := append([]int32(nil), y...), r.IntN(2) == 0
			written := f.Cols
			if f.Half(width) {
				written = f.Cols / 2
			}
			for row := range start {
				start[row] = int32(r.Uint32())
				for c := range written {
					at := row*rowY + c
					if !goOn {
						want[at] = start[row]
					}
					want[at] += sums[row*f.Cols+c]
				}
			}
			tile := &SparseIntTile{X: &x[0], Offs: &offs[0], Vals: unsafe.Pointer(&vals[0]), Counts: &counts[0], Units: units, Y: &y[0], RowY: 4 * rowY, Start: &start[0]}
			tile.SetContinue(goOn)
			f.Run(tile, kind, width)
			for i := range want {
				if y[i] != want[i] {
					t.Fatalf("kind %d, %d columns, %d units: sum %d is %d, not %d", kind, width, units, i, y[i], want[i])
				}
			}
		}
	})
	// Groups of four as pairs are listed in the order in which they are multiplied.
	pairs := SparseInts{Pairs: true}
	var v [8]uint8
	pairs.Put(v[:], [4]int8{1, -2, 3, 4})
	if got, want := binary.LittleEndian.Uint64(v[:]), uint64(0x0004_fffe_0003_0001); got != want {
		t.Errorf("pairs are %x, not %x", got, want)
	}
}

// TestSparseIntCosts checks that measured costs are at least those of the table, and equal to
// them if a test disables the measurement.
func TestSparseIntCosts(t *testing.T) {
	everySet(t, func(t *testing.T) {
		f := SparseIntKernels()
		if f == nil {
			t.Skip("dense kernels only")
		}
		for kind, c := range f.MeasuredCosts() {
			if c < f.Costs[kind] || f.Set != VNNI && c != f.Costs[kind] {
				t.Errorf("kind %d costs %v, in the table %v", kind, c, f.Costs[kind])
			}
		}
		defer ForceSparse4of8(1)()
		if f.MeasuredCosts() != f.Costs {
			t.Errorf("forced costs are %v, not %v", f.MeasuredCosts(), f.Costs)
		}
	})
}
