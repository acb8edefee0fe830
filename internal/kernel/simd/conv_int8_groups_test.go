package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestGroupTileLayout checks the field offsets that the assembly uses.
func TestGroupTileLayout(t *testing.T) {
	t.Parallel()
	var x GroupTile
	for i, got := range []uintptr{
		unsafe.Offsetof(x.A), unsafe.Offsetof(x.RowA), unsafe.Offsetof(x.K), unsafe.Offsetof(x.Taps), unsafe.Offsetof(x.Offs),
		unsafe.Offsetof(x.B), unsafe.Offsetof(x.C), unsafe.Offsetof(x.RowC), unsafe.Offsetof(x.Start),
	} {
		if unsafe.Sizeof(uintptr(0)) == 8 && got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
}

// TestGroupTiles compares tiles with their definition and checks that nothing is written outside
// them.
func TestGroupTiles(t *testing.T) {
	everyInts(t, func(t *testing.T, ik *Ints, r *rand.Rand) {
		if !ik.HasGroups() {
			t.Skip("no kernels in this instruction set")
		}
		groupTiles(t, ik, r, 2000)
	})
}

// groupTiles draws n tiles.
func groupTiles(t *testing.T, ik *Ints, r *rand.Rand, n int) {
	t.Helper()
	for range n {
		kind, cg, groups := GroupKind(r.IntN(groupKinds)), 4*(1+r.IntN(5)), 1
		if ik.GroupRows(kind) == 0 {
			continue
		}
		og := 1 + r.IntN(kind.Outputs())
		channels, read := cg, cg
		if kind.Small() {
			cg = 8
			if kind == GroupSmall4 {
				cg = 2 << r.IntN(2)
			}
			og, groups, channels, read = cg, 16/cg, 16, 0
		}
		rows, taps, rowA, ldc := 1+r.IntN(ik.GroupRows(kind)), 1+r.IntN(9), channels+r.IntN(20), kind.Outputs()+r.IntN(9)
		places, offs := make([]int, taps), make([]int32, taps)
		for i := range places {
			places[i] = r.IntN(300)
			if i > 0 {
				offs[i-1] = int32(places[i] - places[i-1] - read)
			}
		}
		a := make([]uint8, slices.Max(places)+(rows-1)*rowA+channels)
		for i := range a {
			a[i] = uint8(r.Uint32())
		}
		size := GroupSize(kind, cg)
		b, start, c := make([]int8, taps*size), make([]int32, kind.Outputs()), make([]int32, (rows-1)*ldc+kind.Outputs()+1)
		for _, v := range [][]int32{start, c} {
			for i := range v {
				v[i] = r.Int32() - r.Int32()
			}
		}
		want := slices.Clone(c)
		for x := range rows {
			copy(want[x*ldc:], start)
		}
		for tap, place := range places {
			for g := range groups {
				for o := range og {
					for i := range cg {
						w := int8(r.Uint32())
						b[tap*size+GroupIndex(kind, cg, g, o, i)] = w
						for x := range rows {
							want[x*ldc+g*og+o] += int32(w) * int32(a[place+x*rowA+g*cg+i])
						}
					}
				}
			}
		}
		ik.Group(&GroupTile{
			A: unsafe.Pointer(&a[places[0]]), RowA: rowA, K: cg / 4, Taps: taps, Offs: &offs[0], B: &b[0], C: &c[0], RowC: 4 * ldc, Start: &start[0],
		}, kind, rows)
		if !slices.Equal(c, want) {
			t.Fatalf("kind %d, groups of %d channels, %d outputs, %d rows, %d taps differ", kind, cg, og, rows, taps)
		}
	}
}
