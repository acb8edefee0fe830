package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// emulated returns f with the products executed by the emulator.
func emulated(t *testing.T, f *Ints) *Ints {
	t.Helper()
	m, g := &emulator{t: t}, *f
	replace := func(loops []func(x *IntTile), kind string) []func(x *IntTile) {
		var all []func(x *IntTile)
		for i, loop := range loops {
			code, rows, bytes := disassemble(t, loop), i+1, 4
			if kind == "narrow" {
				bytes = 2
			}
			all = append(all, func(x *IntTile) {
				rows := rows * (1 + x.below)
				memory := []span{
					over(unsafe.Pointer(x), int(unsafe.Sizeof(*x))),
					over(x.A, (rows-1)*x.RowA+(x.Segs-1)*x.SegA+4*x.K),
					over(x.B, x.Segs*x.K*g.Cols*bytes),
					over(unsafe.Pointer(x.C), (rows-1)*x.RowC+4*g.Cols),
				}
				switch kind {
				case "quads":
					memory = append(memory, over(unsafe.Pointer(x.Start), 4*g.Cols))
				case "transposed":
					memory = append(memory, over(unsafe.Pointer(x.Start), 4*rows))
				}
				m.call(code, unsafe.Pointer(x), memory...)
			})
		}
		return all
	}
	g.narrow, g.wide, g.quads = replace(f.narrow, "narrow"), replace(f.wide, "wide"), replace(f.quads, "quads")
	g.transposed, g.half = replace(f.transposed, "transposed"), replace(f.half, "transposed")
	if f.groups != nil {
		g.groups = emulatedGroups(t, m, f.groups)
	}
	return &g
}

// emulatedGroups holds the kernels of grouped convolutions, executed by the emulator.
func emulatedGroups(t *testing.T, m *emulator, kinds *[groupKinds][]func(x *GroupTile)) *[groupKinds][]func(x *GroupTile) {
	t.Helper()
	var all [groupKinds][]func(x *GroupTile)
	for kind, loops := range kinds {
		for i, loop := range loops {
			code, rows, kind := disassemble(t, loop), i+1, GroupKind(kind)
			all[kind] = append(all[kind], func(x *GroupTile) {
				read, from, to, p := 4*x.K, 0, 0, 0
				if kind.Small() {
					read = 16
				}
				for _, off := range unsafe.Slice(x.Offs, x.Taps) {
					from, to = min(from, p), max(to, p+read)
					if p += int(off); !kind.Small() {
						p += read
					}
				}
				m.call(code, unsafe.Pointer(x),
					over(unsafe.Pointer(x), int(unsafe.Sizeof(*x))),
					over(unsafe.Add(x.A, from), to-from+(rows-1)*x.RowA),
					over(unsafe.Pointer(x.Offs), 4*x.Taps),
					over(unsafe.Pointer(x.B), x.Taps*GroupSize(kind, 4*x.K)),
					over(unsafe.Pointer(x.C), (rows-1)*x.RowC+4*kind.Outputs()),
					over(unsafe.Pointer(x.Start), 4*kind.Outputs()))
			})
		}
	}
	return &all
}

// emulatedTiles holds the AMX kernels, executed by the emulator.
func emulatedTiles(t *testing.T, l *amxKernelSet) *amxKernelSet {
	t.Helper()
	m := &emulator{t: t}
	replace := func(loops [2]func(p *tileProgram), width int, transposed bool) (all [2]func(p *tileProgram)) {
		for i, loop := range loops {
			code := disassemble(t, loop)
			all[i] = func(p *tileProgram) {
				all := p.rows + (p.n-1)*p.moveC/p.rowC
				a, c := unsafe.Add(p.a, p.doneA), unsafe.Add(unsafe.Pointer(p.c), p.doneC)
				sizeA, more := (all-1)*p.rowA+(p.panels-1)*p.overA+(p.segs-1)*(p.steps*p.stepA+p.endA)+p.steps*p.stepA, p.panels-1
				memory := []span{
					over(unsafe.Pointer(p), int(unsafe.Sizeof(*p))),
					over(a, sizeA),
					over(p.b, more*p.nextB+(p.segs-1)*(p.steps*p.stepB+p.endB)+p.steps*p.stepB),
					over(c, (all-1)*p.rowC+4*width+more*p.overC),
				}
				switch {
				case p.start == nil:
				case transposed:
					memory = append(memory, over(unsafe.Add(unsafe.Pointer(p.start), p.doneStart), 4*all))
				default:
					memory = append(memory, over(unsafe.Pointer(p.start), 4*width+more*p.overStart))
				}
				m.call(code, unsafe.Pointer(p), memory...)
			}
		}
		return all
	}
	return &amxKernelSet{quads: replace(l.quads, amxPanelCols, false), few: replace(l.few, amxPanelCols, false), transposed: replace(l.transposed, amxPanelCols, true), half: replace(l.half, amxPanelCols/2, true), near: l.near}
}

// TestEmulatedAVXVNNI runs the 256-bit dot products on any processor with AVX2, whose kernels
// gather.
func TestEmulatedAVXVNNI(t *testing.T) {
	if !slices.Contains(Available(), AVX2) {
		t.Skip("no AVX2")
	}
	f := emulated(t, &avxVNNI)
	intTiles(t, f, rand.New(rand.NewPCG(1, 2)), 100)
	intQuads(t, f, rand.New(rand.NewPCG(3, 4)), 200)
	gatherQuads(t, f, rand.New(rand.NewPCG(5, 6)))
	groupTiles(t, f, rand.New(rand.NewPCG(7, 8)), 200)
}

// TestEmulatedAMX runs the AMX kernels on any processor.
func TestEmulatedAMX(t *testing.T) {
	l := emulatedTiles(t, &amxKernels)
	if !l.check(plainTile) {
		t.Error("the check at start fails")
	}
	f := *intKernels[AMX]
	f.matrixTiles, f.minTileRows = l, 1
	intQuads(t, &f, rand.New(rand.NewPCG(3, 4)), 300)
	panelQuads(t, &f, rand.New(rand.NewPCG(5, 6)), 150)
	lineQuads(t, &f, rand.New(rand.NewPCG(5, 6)), 60)
	// With near 0, all panels are large.
	f.matrixTiles = &amxKernelSet{quads: l.quads, few: l.few, transposed: l.transposed, half: l.half}
	intQuads(t, &f, rand.New(rand.NewPCG(7, 8)), 150)
	panelQuads(t, &f, rand.New(rand.NewPCG(9, 10)), 100)
	lineQuads(t, &f, rand.New(rand.NewPCG(9, 10)), 100)
	wrong := *l
	wrong.transposed[1] = wrong.quads[1]
	if wrong.check(plainTile) {
		t.Error("the check at start accepts other signs")
	}
}

// plainTile computes the results of the AMX kernels in plain Go.
func plainTile(t *IntTile, rows, cols int, transposed bool) {
	byteAt := func(p unsafe.Pointer, i int) uint8 { return *(*uint8)(unsafe.Add(p, i)) }
	for r := range rows {
		for j := range cols {
			c := (*int32)(unsafe.Add(unsafe.Pointer(t.C), r*t.RowC+4*j))
			switch at := 4 * j; {
			case t.more != 0:
			case transposed:
				at = 4 * r
				fallthrough
			default:
				*c = *(*int32)(unsafe.Add(unsafe.Pointer(t.Start), at))
			}
			for s := range t.Segs {
				for i := range 4 * t.K {
					x, y := byteAt(t.A, r*t.RowA+s*t.SegA+i), byteAt(t.B, ((s*t.K+i/4)*amxPanelCols+j)*4+i%4)
					if transposed {
						*c += int32(int8(x)) * int32(y)
					} else {
						*c += int32(x) * int32(int8(y))
					}
				}
			}
		}
	}
}

// TestTileProgramLayout checks the field offsets that the assembly uses.
func TestTileProgramLayout(t *testing.T) {
	t.Parallel()
	var x tileProgram
	for i, got := range []uintptr{
		unsafe.Offsetof(x.config), unsafe.Offsetof(x.a), unsafe.Offsetof(x.rowA), unsafe.Offsetof(x.stepA), unsafe.Offsetof(x.endA),
		unsafe.Offsetof(x.b), unsafe.Offsetof(x.stepB), unsafe.Offsetof(x.endB), unsafe.Offsetof(x.steps), unsafe.Offsetof(x.segs),
		unsafe.Offsetof(x.c), unsafe.Offsetof(x.rowC), unsafe.Offsetof(x.start), unsafe.Offsetof(x.rows), unsafe.Offsetof(x.n),
		unsafe.Offsetof(x.moveA), unsafe.Offsetof(x.moveC), unsafe.Offsetof(x.moveStart), unsafe.Offsetof(x.doneA), unsafe.Offsetof(x.doneC), unsafe.Offsetof(x.doneStart),
		unsafe.Offsetof(x.doneB), unsafe.Offsetof(x.panels), unsafe.Offsetof(x.each),
		unsafe.Offsetof(x.nextA), unsafe.Offsetof(x.nextB), unsafe.Offsetof(x.nextC), unsafe.Offsetof(x.nextStart), unsafe.Offsetof(x.fresh),
		unsafe.Offsetof(x.ahead), unsafe.Offsetof(x.aheadLines), unsafe.Offsetof(x.doneAhead),
	} {
		if got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
}
