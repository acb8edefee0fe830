package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// attrs: loops need no stack check.
const attrs = attr.NOSPLIT

// width is a kind of vector registers.
type width struct {
	set    string // ending of function names
	floats int    // float32 in a register
	regs   int    // registers there are
	masks  bool   // registers for masks
}

var (
	ymm = width{"AVX2", 8, 16, false}
	zmm = width{"AVX512", 16, 32, true}
	// ymm512 are registers of eight values with the masks, and in the number, of AVX-512.
	ymm512 = width{"HalfAVX512", 8, 32, true}
)

func (w width) bytes() int { return 4 * w.floats }

// reg returns physical register i. Loops that use nearly all registers name them
// themselves: an allocator would have to guess.
func (w width) reg(i int) reg.VecPhysical {
	if w.floats == 8 {
		return ymmRegs[i]
	}
	return zmmRegs[i]
}

// vec returns a new virtual register.
func (a *asm) vec(w width) reg.VecVirtual {
	if w.floats == 8 {
		return a.YMM()
	}
	return a.ZMM()
}

var ymmRegs = []reg.VecPhysical{
	reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15, reg.Y16, reg.Y17, reg.Y18, reg.Y19,
	reg.Y20, reg.Y21, reg.Y22, reg.Y23, reg.Y24, reg.Y25, reg.Y26, reg.Y27, reg.Y28, reg.Y29, reg.Y30, reg.Y31,
}

var zmmRegs = []reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19,
	reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

var maskRegs = []reg.OpmaskPhysical{reg.K0, reg.K1, reg.K2, reg.K3, reg.K4, reg.K5, reg.K6, reg.K7}

// at is memory at p + off bytes.
func at(p reg.Register, off int) operand.Mem { return operand.Mem{Base: p, Disp: off} }

// alignedLocal returns n bytes of the stack that begin a cache line.
func (a *asm) alignedLocal(n int) operand.Mem {
	const line = 64
	start, all := a.GP64(), a.AllocLocal(n+line)
	a.LEAQ(all.Offset(line-1), start)
	a.ANDQ(operand.I32(-line), start)
	return at(start, 0)
}

// zero clears v.
func (a *asm) zero(w width, v reg.Register) {
	if w.masks {
		a.VPXORD(v, v, v)
		return
	}
	a.VXORPS(v, v, v)
}

// and writes the bits that x and y have.
func (a *asm) and(w width, x operand.Op, y, to reg.Register) {
	if w.masks {
		a.VPANDD(x, y, to)
		return
	}
	a.VPAND(x, y, to)
}

// label makes a name for a jump that is unlike all others of the file's functions.
func label(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// rowPointers find rows that lie equally far apart: four from each base, by one
// register with the step and one with three times the step.
type rowPointers struct {
	a           *asm
	step, step3 reg.GPVirtual
	bases       []reg.GPVirtual
}

func (a *asm) rowPointers(n int) *rowPointers {
	p := &rowPointers{a: a, step: a.GP64(), step3: a.GP64()}
	for range (n + 3) / 4 {
		p.bases = append(p.bases, a.GP64())
	}
	return p
}

// field is a register with a field of a tile.
func (a *asm) field(tile reg.Register, field int) reg.GPVirtual {
	g := a.GP64()
	a.MOVQ(at(tile, field), g)
	return g
}

// set points to the rows from first on, by bytes apart.
func (p *rowPointers) set(first, by operand.Mem) {
	p.a.MOVQ(by, p.step)
	p.a.LEAQ(operand.Mem{Base: p.step, Index: p.step, Scale: 2}, p.step3)
	p.a.MOVQ(first, p.bases[0])
	for i := 1; i < len(p.bases); i++ {
		p.a.LEAQ(operand.Mem{Base: p.bases[i-1], Index: p.step, Scale: 4}, p.bases[i])
	}
}

// at is memory in row r.
func (p *rowPointers) at(r, off int) operand.Mem {
	m := operand.Mem{Base: p.bases[r/4], Disp: off}
	switch r % 4 {
	case 1:
		m.Index, m.Scale = p.step, 1
	case 2:
		m.Index, m.Scale = p.step, 2
	case 3:
		m.Index, m.Scale = p.step3, 1
	}
	return m
}

// add moves along all rows.
func (p *rowPointers) add(by operand.Op) {
	for _, base := range p.bases {
		p.a.ADDQ(by, base)
	}
}
