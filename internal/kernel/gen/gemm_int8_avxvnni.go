package main

import (
	"encoding/binary"
	"fmt"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avxVNNI writes the products of integers with the dot products of 256-bit registers that
// processors without AVX-512 have. Go's assembler knows only how AVX-512 encodes them.
func avxVNNI(a *asm) {
	for r := 1; r <= 6; r++ {
		for _, k := range []intKind{narrow, wide, quads, turned, half} {
			a.intTile(ymm, r, k, true)
		}
	}
	a.gatherQuads(ymm)
	a.peak("peakQuadsAVXVNNI", ymm, func(i int) { a.dotInts(ymm, dotQuads, ymm.reg(14), ymm.reg(15), ymm.reg(i)) })
}

// raw writes an instruction that the assembler does not know, with its meaning.
func (a *asm) raw(meaning string, code ...byte) {
	a.Comment(meaning)
	for ; len(code) >= 4; code = code[4:] {
		a.Instruction(&ir.Instruction{Opcode: "LONG", Operands: []operand.Op{operand.U32(binary.LittleEndian.Uint32(code))}})
	}
	for _, b := range code {
		a.Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(b)}})
	}
}

// vexPrefix is a prefix that is a part of an instruction's encoding.
type vexPrefix byte

const (
	vexNone vexPrefix = iota
	vex66
	vexF3
	vexF2
)

// vex38 is the beginning of an instruction of the map 0F38 without W (Intel's Software
// Developer's Manual, volume 2, 2.3): r, x and b are the upper bits of the registers in
// ModRM.reg, SIB.index, and ModRM.rm or SIB.base; v is another register.
func vex38(prefix vexPrefix, wide bool, r, x, b, v int) []byte {
	second, third := 0x02, byte(prefix)|byte(^v&15)<<3
	for i, n := range []int{r, x, b} {
		if n < 8 {
			second |= 0x80 >> i
		}
	}
	if wide {
		third |= 4
	}
	return []byte{0xC4, byte(second), third}
}

// dotKind is the opcode of a product with 32-bit sums: of fours of 8-bit numbers, or of pairs of
// 16-bit ones.
type dotKind byte

const (
	dotQuads dotKind = 0x50
	dotPairs dotKind = 0x52
)

// dotInts adds the products of x and y to sum. In fours x has a sign, and y has none.
func (a *asm) dotInts(w width, kind dotKind, x, y, sum reg.VecPhysical) {
	switch {
	case w == zmm && kind == dotQuads:
		a.VPDPBUSD(x, y, sum)
	case w == zmm:
		a.VPDPWSSD(x, y, sum)
	default:
		m, n, d := int(x.PhysicalIndex()), int(y.PhysicalIndex()), int(sum.PhysicalIndex())
		name := map[dotKind]string{dotQuads: "VPDPBUSD", dotPairs: "VPDPWSSD"}[kind]
		a.raw(fmt.Sprintf("%s Y%d, Y%d, Y%d", name, m, n, d), append(vex38(vex66, true, d, 0, m, n), byte(kind), byte(0xC0|d&7<<3|m&7))...)
	}
}
