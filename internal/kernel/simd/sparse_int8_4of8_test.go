package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestSparse4of8 compares tiles of 4-of-8 panels, and their requantised sums, with those of all
// weights.
func TestSparse4of8(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, r *rand.Rand) {
		f := sparse4of8Kernels.pick()
		if f == nil || !ik.HasRequantised() {
			t.Skip("no such tiles")
		}
		for n := range 2000 {
			sparse4of8Tile(t, ik, f, r, n)
		}
	})
}

// sparse4of8Tile is a case of TestSparse4of8.
func sparse4of8Tile(t *testing.T, ik *Ints, f *Sparse4of8, r *rand.Rand, n int) {
	t.Helper()
	rows, k, segs := 1+r.IntN(3*len(f.sums)), 2*(1+r.IntN(4)), 1+r.IntN(3)
	segA := 4*k + 4*r.IntN(3)
	rowA := segs*segA + r.IntN(5)
	a, b := make([]uint8, rows*rowA), make([]int8, segs*k*4*RequantColumns)
	for i := range a {
		if a[i] = uint8(r.Uint32()); r.IntN(4) == 0 {
			a[i] = 255
		}
	}
	for q := 0; q < segs*k; q += 2 {
		for c := range RequantColumns {
			for _, i := range r.Perm(8)[:r.IntN(5)] {
				w := int8(r.Uint32())
				if r.IntN(4) == 0 {
					w = -128
				}
				b[((q+i/4)*RequantColumns+c)*4+i%4] = w
			}
		}
	}
	sieved := slices.Clone(b)
	f.Pack(sieved)
	start := make([]int32, RequantColumns)
	for i := range start {
		start[i] = r.Int32() >> (8 + r.IntN(20))
	}
	before := make([]int32, rows*RequantColumns)
	for i := range before {
		before[i] = r.Int32() >> 12
	}
	goOn := r.IntN(2) == 0
	got, want := slices.Clone(before), slices.Clone(before)
	tile := func(b []int8, c []int32) IntTile {
		x := IntTile{A: unsafe.Pointer(&a[0]), RowA: rowA, SegA: segA, K: k, Segs: segs, B: unsafe.Pointer(&b[0]), C: &c[0], RowC: 4 * RequantColumns, Start: &start[0]}
		x.SetContinue(goOn)
		return x
	}
	x := tile(b, want)
	x.inRows(rows, ik.quads, 0)
	x = tile(sieved, got)
	f.Run(&x, rows)
	if !slices.Equal(got, want) {
		t.Fatalf("%d rows of %d segments of %d groups of four: %v, not %v", rows, segs, k, got, want)
	}
	cols, s := 1+r.IntN(RequantColumns), Rescaling{Zero: r.Int32N(256) - 128, Lo: -128, Hi: 127, Signed: true}
	var round uint8
	codes := func(b []int8, packed []int32, run func(t *CodeTile, rows int)) []uint8 {
		line := cols + 3
		out := make([]uint8, rows*line)
		c := &CodeTile{IntTile: tile(b, slices.Clone(before)), Out: &out[0], RowOut: line, Scales: &packed[0]}
		c.SetColumns(cols)
		if n%2 == 0 {
			c.SetLimits(s.Lo, s.Hi)
			c.SetRounding(round)
		} else {
			c.SetRescaling(&s)
		}
		run(c, rows)
		return out
	}
	if n%2 == 0 {
		packed := make([]int32, RequantScales)
		numbers := scalesOf(r, RequantColumns, make([]int32, RequantColumns))
		round = numbers.PackRequant(packed, start, 0, RequantColumns, s.Zero, false)
		if got, want := codes(sieved, packed, f.Requantised), codes(b, packed, ik.QuadsRequantised); !slices.Equal(got, want) {
			t.Fatalf("quantised values are %v, not %v", got, want)
		}
		return
	}
	scales := make([]float32, RequantColumns)
	for i := range scales {
		scales[i] = r.Float32() * 1e-3
	}
	packed := unsafe.Slice((*int32)(unsafe.Pointer(&scales[0])), len(scales))
	if got, want := codes(sieved, packed, f.Rescaled), codes(b, packed, ik.QuadsRescaled); !slices.Equal(got, want) {
		t.Fatalf("rescaled values are %v, not %v", got, want)
	}
}

// TestSparse4of8Kernels checks that an instruction set has these kernels if they are measured to be
// faster, or if a test says so.
func TestSparse4of8Kernels(t *testing.T) {
	for _, s := range Available() {
		undo := Use(s)
		if f, gain := Sparse4of8Kernels(); f == nil && gain != 1 || f != nil && gain < minSparse4of8Gain {
			t.Errorf("%v: kernels %v, gain %v", s, f, gain)
		}
		back := ForceSparse4of8(1.5)
		if f, gain := Sparse4of8Kernels(); (f != nil) != (s == VNNI) || f != nil && gain != 1.5 {
			t.Errorf("%v, forced: kernels %v, gain %v", s, f, gain)
		}
		ForceSparse4of8(1)
		if f, _ := Sparse4of8Kernels(); f != nil {
			t.Errorf("%v, forced to be slow: kernels %v", s, f)
		}
		back()
		undo()
	}
}
