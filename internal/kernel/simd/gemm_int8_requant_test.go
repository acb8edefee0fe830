package simd

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestCodeTileLayout(t *testing.T) {
	t.Parallel()
	var x CodeTile
	const first = 8 * 14
	for i, got := range []uintptr{unsafe.Offsetof(x.Out), unsafe.Offsetof(x.RowOut), unsafe.Offsetof(x.mask), unsafe.Offsetof(x.Scales), unsafe.Offsetof(x.round), unsafe.Offsetof(x.tiles), unsafe.Offsetof(x.stepA), unsafe.Offsetof(x.stepOut), unsafe.Offsetof(x.doneA), unsafe.Offsetof(x.doneOut), unsafe.Offsetof(x.finish), unsafe.Offsetof(x.lo)} {
		if unsafe.Sizeof(uintptr(0)) == 8 && got != uintptr(first+8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
	if unsafe.Offsetof(x.hi) != unsafe.Offsetof(x.lo)+64 || unsafe.Offsetof(x.flip) != unsafe.Offsetof(x.lo)+128 || unsafe.Offsetof(x.zero) != unsafe.Offsetof(x.lo)+192 {
		t.Error("limits are not adjacent")
	}
}

// TestCodeTiles compares quantised values with those of sums that are requantised after the
// product.
func TestCodeTiles(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, r *rand.Rand) {
		if !ik.HasRequantised() {
			t.Skip("no such tiles")
		}
		for n := range 3000 {
			codeTile(t, ik, r, n)
		}
	})
}

// codeTile is a case of TestCodeTiles.
func codeTile(t *testing.T, ik *Ints, r *rand.Rand, n int) {
	t.Helper()
	rows, k, cols := 1+r.IntN(3*len(ik.requant.quads)), 1+r.IntN(6), 1+r.IntN(RequantColumns)
	if ik.matrixTiles != nil {
		rows, k = 1+r.IntN(ik.Rows), 1+r.IntN(40)
	}
	if r.IntN(2) == 0 {
		cols = RequantColumns
	}
	kind := []string{"quads", "rescaled", "transposed"}[n%3]
	a, b := make([]uint8, rows*4*k), make([]uint8, 4*k*RequantColumns)
	for i := range a {
		a[i] = uint8(r.Uint32())
	}
	for i := range b {
		b[i] = uint8(r.Uint32())
	}
	scales := rows
	if kind != "transposed" {
		scales = RequantColumns
	}
	start, bias := make([]int32, max(rows, RequantColumns)), make([]int32, max(rows, RequantColumns))
	for i := range start {
		start[i], bias[i] = r.Int32()>>(8+r.IntN(20)), r.Int32()>>(8+r.IntN(20))
	}
	sums := make([]int32, rows*RequantColumns)
	tile := &CodeTile{IntTile: IntTile{A: unsafe.Pointer(&a[0]), RowA: 4 * k, K: k, Segs: 1, B: unsafe.Pointer(&b[0]), C: &sums[0], RowC: 4 * RequantColumns, Start: &start[0]}}
	if kind == "transposed" {
		tile.IntTile.inRows(rows, ik.transposed, 4)
	} else {
		tile.IntTile.inRows(rows, ik.quads, 0)
	}
	line := cols + r.IntN(5)
	got, want := make([]uint8, rows*line+1), make([]uint8, rows*line+1)
	with := append([]int32(nil), start...)
	for i := range with {
		with[i] += bias[i]
	}
	tile.Start, tile.Out, tile.RowOut = &with[0], &got[0], line
	tile.SetColumns(cols)
	tile.C = &make([]int32, rows*RequantColumns)[0]
	signed := r.IntN(2) == 0
	least, most := int32(0), int32(255)
	if signed {
		least, most = -128, 127
	}
	zero := least
	if r.IntN(3) > 0 {
		zero += r.Int32N(256)
	}
	lo, hi := least, most
	if r.IntN(2) == 0 {
		lo = zero
	}
	if kind == "quads" {
		s := scalesOf(r, scales, bias)
		packed := make([]int32, RequantScales)
		less := int32(0)
		if !signed {
			less = 128
		}
		copy(with, start)
		if r.IntN(4) > 0 {
			fuseColumns(&s, start, b, k, zero-less, lo-less, hi-less)
		}
		tile.SetRounding(s.PackRequant(packed, with[:cols], 0, cols, zero-less, lo >= zero))
		tile.SetLimits(lo, hi)
		tile.Scales = &packed[0]
		goOn(r, tile, with, rows, false)
		ik.QuadsRequantised(tile, rows)
		ik.Requantise(want, line, sums, RequantColumns, rows, cols, &s, 0, zero, lo, hi)
	} else {
		q := Rescaling{Lo: lo, Hi: hi, Zero: zero, Signed: signed, Small: true}
		reals := make([]float32, scales)
		for i := range reals {
			// The data includes ties.
			reals[i] = []float32{1.0 / 4, 1.0 / 64, r.Float32() / 2, r.Float32() / 1000}[r.IntN(4)]
		}
		tile.SetRescaling(&q)
		tile.Scales = (*int32)(unsafe.Pointer(&reals[0]))
		goOn(r, tile, with, rows, kind == "transposed")
		if kind == "transposed" {
			ik.TransposedRescaled(tile, rows)
			ElementKernels().RescaleRows(want, line, sums, RequantColumns, rows, cols, reals, bias, q)
		} else {
			ik.QuadsRescaled(tile, rows)
			ElementKernels().RescaleColumns(want, line, sums, RequantColumns, rows, cols, reals, bias, q)
		}
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("case %d, %s: %d rows of %d fours, %d columns: code %d is %d, want %d", n, kind, rows, k, cols, i, got[i], want[i])
		}
	}
}

// fuseColumns finds fused scales for the sums of a panel with k groups of four.
func fuseColumns(s *Scales, start []int32, b []uint8, k int, zero, lo, hi int32) {
	n := len(s.Mul)
	s.Fused = FusedScales{make([]int32, n), make([]int32, n), make([]int32, n)}
	for j := range n {
		least, most := start[j], start[j]
		for i := range 4 * k {
			w := int32(int8(b[i/4*4*RequantColumns+4*j+i%4]))
			least, most = least+255*min(w, 0), most+255*max(w, 0)
		}
		if f, ok := s.Fuse(j, least, most, zero, lo, hi); ok {
			s.Fused.Set(j, f)
		}
	}
}

// scalesOf returns small scales of n channels.
func scalesOf(r *rand.Rand, n int, bias []int32) Scales {
	part := func() []int32 { return make([]int32, n) }
	s := Scales{Mul: part(), Up: part(), Down: part(), Bias: bias, Twice: part(), Half: part(), Small: true}
	for i := range s.Mul {
		if s.Mul[i] = 1<<30 + r.Int32N(1<<30); r.IntN(4) == 0 {
			s.Mul[i] = 1 << 30 // sums that are ties
		}
		s.Down[i] = 1 + r.Int32N(12)
		s.Twice[i], s.Half[i] = int32(int64(s.Mul[i])*2), 1<<(s.Down[i]-1)
	}
	return s
}

// goOn makes sums continue from existing values in half of the cases.
func goOn(r *rand.Rand, tile *CodeTile, start []int32, rows int, transposed bool) {
	if r.IntN(2) == 0 {
		return
	}
	c := make([]int32, rows*RequantColumns)
	for i := range c {
		if c[i] = start[i%RequantColumns]; transposed {
			c[i] = start[i/RequantColumns]
		}
	}
	tile.C, tile.Start = &c[0], nil
	tile.SetContinue(true)
}
