package main

import (
	"encoding/binary"
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.tileProgram, in bytes; a test there compares them.
const (
	progConfig = 8 * iota
	progA
	progRowA
	progStepA
	progEndA
	progB
	progStepB
	progEndB
	progSteps
	progSegs
	progC
	progRowC
	progStart
	progRows
	progBlocks
	progMoveA
	progMoveC
	progMoveStart
	progDoneA
	progDoneC
	progDoneStart
	progDoneB
	progPanels
	progEach
	progNextA
	progNextB
	progNextC
	progNextStart
	progFresh
	progAhead
	progAheadLines
	progDoneAhead
)

// Tiles of a program: sums, by row and by column; rows of a; columns of b. All rows use one in
// succession, and so do columns, of which some are loaded twice: a core has few registers behind
// the eight names of tiles, for both of its threads, and where the other thread uses tiles, too,
// products with all eight names take twice as long as those with six.
const (
	tileSums = 0
	tileRows = 4
	tileCols = 5
)

// amx writes the products of fours of 8-bit numbers with tiles: registers of up to 16 rows of 64
// bytes.
func amx(a *asm) {
	for _, k := range []intKind{quads, few, turned, half} {
		for rows := 1; rows <= 2; rows++ {
			a.tiles(rows, k)
		}
	}
	a.cpuid()
}

// Instructions of tiles, in the encoding of Intel's Software Developer's Manual; a test
// disassembles them. Go's assembler knows none.

// tileMemory writes an instruction that moves rows of 64 bytes, or fewer, between tile t and
// memory at base + off + row·index.
func (a *asm) tileMemory(name string, prefix vexPrefix, t int, base, index reg.GPPhysical, off int) {
	b, x := int(base.PhysicalIndex()), int(index.PhysicalIndex())
	code := append(vex38(prefix, false, t, x, b, 0), 0x4B)
	if off == int(int8(off)) {
		code = append(code, byte(0x44|t<<3), byte(x&7<<3|b&7), byte(off))
	} else {
		code = binary.LittleEndian.AppendUint32(append(code, byte(0x84|t<<3), byte(x&7<<3|b&7)), uint32(off))
	}
	a.raw(fmt.Sprintf("%s tile %d, %d(%s)(%s*1)", name, t, off, base.Asm(), index.Asm()), code...)
}

func (a *asm) tileLoad(t int, base, index reg.GPPhysical, off int) {
	a.tileMemory("TILELOADD", vexF2, t, base, index, off)
}

func (a *asm) tileStore(t int, base, index reg.GPPhysical, off int) {
	a.tileMemory("TILESTORED", vexF3, t, base, index, off)
}

// tileZero clears tile t.
func (a *asm) tileZero(t int) {
	a.raw(fmt.Sprintf("TILEZERO tile %d", t), append(vex38(vexF2, false, 0, 0, 0, 0), 0x49, byte(0xC0|t<<3))...)
}

// tileProduct adds to tile sum the products of rows of tile x by columns of tile y. One of both
// has signs.
func (a *asm) tileProduct(signed bool, y, x, sum int) {
	name, prefix := "TDPBUSD", vex66
	if signed {
		name, prefix = "TDPBSUD", vexF3
	}
	a.raw(fmt.Sprintf("%s tile %d, tile %d, tile %d", name, y, x, sum), append(vex38(prefix, false, 0, 0, 0, y), 0x5E, byte(0xC0|sum<<3|x))...)
}

// tileConfig takes the sizes of tiles from memory at base, and clears them.
func (a *asm) tileConfig(base reg.GPPhysical) {
	b := int(base.PhysicalIndex())
	a.raw(fmt.Sprintf("LDTILECFG (%s)", base.Asm()), append(vex38(vexNone, false, 0, 0, b, 0), 0x49, byte(b&7))...)
}

// tileRelease gives the tiles up: no thread keeps any beyond a call.
func (a *asm) tileRelease() {
	a.raw("TILERELEASE", append(vex38(vexNone, false, 0, 0, 0, 0), 0x49, 0xC0)...)
}

// bringAhead brings lines near that come next, as many as the field of p says, in each step that
// has it.
func (a *asm) bringAhead(p reg.GPPhysical, field int, ahead, left reg.GPPhysical) {
	a.MOVQ(at(p, field), left)
	a.TESTQ(left, left)
	a.JZ(operand.LabelRef("fetched"))
	a.Label("fetch")
	a.PREFETCHT1(at(ahead, 0))
	a.ADDQ(operand.U8(64), ahead)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("fetch"))
	a.Label("fetched")
}

// tiles writes a program of one or two tiles of rows by a panel of 32 columns, or by its first
// half, for blocks of as many rows, which share what it costs to set the tiles up. Sums begin
// with what start has: for each column, or turned for each row; without it with nothing if they
// are fresh, else with what c has. After the last block it goes on with the next panel. How far
// blocks and panels have come is counted in bytes and not kept in the program's pointers, which
// the garbage collector sees.
func (a *asm) tiles(rows int, kind intKind) {
	name, cols := fmt.Sprintf("%s%dAMX", kind, 16*rows), 2
	switch kind {
	case few:
		kind, cols = quads, 1
	case half:
		kind, cols = turned, 1
	}
	a.function(name, "func(p *tileProgram)")
	p := reg.RDI
	a.Load(a.Param("p"), p)
	// Registers by number: what is written in bytes has them.
	x, y, c := []reg.GPPhysical{reg.RSI, reg.R8}, reg.RBX, []reg.GPPhysical{reg.R9, reg.R10}
	rowA, line, rowC, tmp := reg.RDX, reg.RCX, reg.R11, reg.RAX
	steps, segs, ahead := reg.R12, reg.R13, reg.R14
	each := func(f func(t, r, v int)) {
		for r := range rows {
			for v := range cols {
				f(tileSums+2*r+v, r, v)
			}
		}
	}
	bases := func(first []reg.GPPhysical, field, done int, by reg.GPPhysical) {
		a.MOVQ(at(p, field), first[0])
		a.ADDQ(at(p, done), first[0])
		if rows == 2 {
			a.MOVQ(by, first[1])
			a.SHLQ(operand.U8(4), first[1])
			a.ADDQ(first[0], first[1])
		}
	}
	a.MOVQ(at(p, progConfig), tmp)
	a.tileConfig(tmp)
	a.Label("block")
	a.MOVQ(at(p, progRowC), rowC)
	bases(c, progC, progDoneC, rowC)
	a.MOVQ(at(p, progStart), tmp)
	a.TESTQ(tmp, tmp)
	a.JZ(operand.LabelRef("continue"))
	a.ADDQ(at(p, progDoneStart), tmp)
	if kind == quads {
		// All rows from one: the next one lies 0 bytes further.
		a.XORQ(line, line)
		each(func(t, _, v int) { a.tileLoad(t, tmp, line, 64*v) })
		a.JMP(operand.LabelRef("begin"))
	} else {
		a.MOVQ(at(p, progRows), steps)
		a.MOVQ(c[0], segs)
		a.Label("row")
		a.VPBROADCASTD(at(tmp, 0), reg.Z0)
		for v := range cols {
			a.VMOVUPS(reg.Z0, at(segs, 64*v))
		}
		a.ADDQ(operand.U8(4), tmp)
		a.ADDQ(rowC, segs)
		a.DECQ(steps)
		a.JNZ(operand.LabelRef("row"))
		a.VZEROUPPER()
		a.JMP(operand.LabelRef("load"))
	}
	a.Label("continue")
	a.MOVQ(at(p, progFresh), tmp)
	a.TESTQ(tmp, tmp)
	a.JZ(operand.LabelRef("load"))
	each(func(t, _, _ int) { a.tileZero(t) })
	a.JMP(operand.LabelRef("begin"))
	a.Label("load")
	each(func(t, r, v int) { a.tileLoad(t, c[r], rowC, 64*v) })
	a.Label("begin")
	a.MOVQ(at(p, progRowA), rowA)
	bases(x, progA, progDoneA, rowA)
	a.MOVQ(at(p, progB), y)
	a.ADDQ(at(p, progDoneB), y)
	a.MOVQ(at(p, progAhead), ahead)
	a.ADDQ(at(p, progDoneAhead), ahead)
	a.MOVQ(operand.U32(128), line)
	a.MOVQ(at(p, progSegs), segs)
	a.Label("segment")
	a.MOVQ(at(p, progSteps), steps)
	a.Label("step")
	a.bringAhead(p, progAheadLines, ahead, tmp)
	for r, there := 0, -1; r < rows; r++ {
		a.tileLoad(tileRows, x[r], rowA, 0)
		for i := range cols {
			v := (i + r) % cols // the second row begins with what the first one ended with
			if v != there {
				a.tileLoad(tileCols, y, line, 64*v)
				there = v
			}
			a.tileProduct(kind == turned, tileCols, tileRows, tileSums+2*r+v)
		}
	}
	further := func(fieldA, fieldB int) {
		for r := range rows {
			a.ADDQ(at(p, fieldA), x[r])
		}
		a.ADDQ(at(p, fieldB), y)
	}
	further(progStepA, progStepB)
	a.DECQ(steps)
	a.JNZ(operand.LabelRef("step"))
	further(progEndA, progEndB)
	a.DECQ(segs)
	a.JNZ(operand.LabelRef("segment"))
	each(func(t, r, v int) { a.tileStore(t, c[r], rowC, 64*v) })
	add := func(pairs [][2]int) {
		for _, f := range pairs {
			a.MOVQ(at(p, f[0]), tmp)
			a.ADDQ(tmp, at(p, f[1]))
		}
	}
	a.SUBQ(at(p, progAhead), ahead)
	a.MOVQ(ahead, at(p, progDoneAhead))
	add([][2]int{{progMoveA, progDoneA}, {progMoveC, progDoneC}, {progMoveStart, progDoneStart}})
	a.DECQ(at(p, progBlocks))
	a.JNZ(operand.LabelRef("block"))
	a.MOVQ(at(p, progEach), tmp)
	a.MOVQ(tmp, at(p, progBlocks))
	add([][2]int{{progNextA, progDoneA}, {progNextB, progDoneB}, {progNextC, progDoneC}, {progNextStart, progDoneStart}})
	a.MOVQ(at(p, progDoneB), tmp)
	a.MOVQ(tmp, at(p, progDoneAhead))
	a.DECQ(at(p, progPanels))
	a.JNZ(operand.LabelRef("block"))
	a.tileRelease()
	a.RET()
}

// cpuid asks the processor what it is.
func (a *asm) cpuid() {
	a.function("cpuid", "func(leaf, sub uint32) (ax, bx, cx, dx uint32)")
	a.Load(a.Param("leaf"), reg.EAX)
	a.Load(a.Param("sub"), reg.ECX)
	a.CPUID()
	for i, r := range []reg.Register{reg.EAX, reg.EBX, reg.ECX, reg.EDX} {
		a.Store(r, a.ReturnIndex(i))
	}
	a.RET()
}
