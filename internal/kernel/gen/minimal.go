package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Winograd's minimal filtering F(4×4, 3×3); see simd.Minimal for the matrices. Numbers of one place of many tiles lie side by side, so
// that transforms are the same arithmetic on whole registers.

// Places in the table of constants, see simd.minimalConstants.
const (
	minimalA  = 4 * iota // the points are 0, a, -a, b, -b and infinity
	minimalB             //
	minimalA2            // powers
	minimalB2            //
	minimalA3            //
	minimalB3            //
	minimalP             // a²·b²
	minimalS             // a² + b²
	minimalG0            // of the weights: 1/(a²·b²)
	minimalGA            // 1/(2a²·(a²-b²)), that times a, times a²
	minimalGB = 12 * 4   // the same of b
)

// minimalSide is the side of a tile of the input, minimalPlaces the number of its places.
const (
	minimalSide   = 6
	minimalPlaces = minimalSide * minimalSide
)

func minimal(a *asm) {
	for _, w := range []width{ymm, zmm} {
		a.minimalSplit(w)
		a.minimalInput(w)
		a.minimalOutput(w)
		a.minimalWeights(w)
	}
}

// pointer loads an argument.
func (a *asm) pointer(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }

// constants spreads some of the table over registers from first on.
func (a *asm) constants(w width, table reg.Register, first int, places ...int) []reg.VecPhysical {
	out := make([]reg.VecPhysical, len(places))
	for i, p := range places {
		out[i] = w.reg(first + i)
		a.VBROADCASTSS(at(table, p), out[i])
	}
	return out
}

// turnFours exchanges rows and columns of the four by four numbers in each 128 bits of v; t is room.
func (a *asm) turnFours(v, t [4]reg.VecPhysical) {
	a.VUNPCKLPS(v[1], v[0], t[0])
	a.VUNPCKHPS(v[1], v[0], t[1])
	a.VUNPCKLPS(v[3], v[2], t[2])
	a.VUNPCKHPS(v[3], v[2], t[3])
	a.VUNPCKLPD(t[2], t[0], v[0])
	a.VUNPCKHPD(t[2], t[0], v[1])
	a.VUNPCKLPD(t[3], t[1], v[2])
	a.VUNPCKHPD(t[3], t[1], v[3])
}

// minimalSplit takes lines apart: value 4·t+j of a line goes to place t of frame j, for j from 0 to 5.
func (a *asm) minimalSplit(w width) {
	a.function("minimalSplit"+w.set, "func(dst *float32, frame, stepDst int, src *float32, stepSrc, n, lines int, order *int32)")
	dst, frame, stepDst := a.pointer("dst"), a.pointer("frame"), a.pointer("stepDst")
	src, stepSrc, n, lines := a.pointer("src"), a.pointer("stepSrc"), a.pointer("n"), a.pointer("lines")
	order := w.reg(8)
	a.VMOVUPS(at(a.pointer("order"), 0), order)
	v := [4]reg.VecPhysical{w.reg(0), w.reg(1), w.reg(2), w.reg(3)}
	t := [4]reg.VecPhysical{w.reg(4), w.reg(5), w.reg(6), w.reg(7)}
	frame3, to, from, left := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	far := a.GP64()
	a.LEAQ(operand.Mem{Base: frame, Index: frame, Scale: 2}, frame3)
	a.Label("line")
	a.MOVQ(dst, to)
	a.MOVQ(src, from)
	a.MOVQ(n, left)
	a.Label("vector")
	for i := range 4 {
		a.VMOVUPS(at(from, i*w.bytes()), v[i])
	}
	a.turnFours(v, t)
	places := []operand.Mem{at(to, 0), {Base: to, Index: frame, Scale: 1}, {Base: to, Index: frame, Scale: 2}, {Base: to, Index: frame3, Scale: 1}}
	for i := range 4 {
		a.VPERMPS(v[i], order, v[i])
		a.VMOVUPS(v[i], places[i])
	}
	// The first two of the next tile.
	for i := range 4 {
		a.VMOVUPS(at(from, 16+i*w.bytes()), v[i])
	}
	a.VUNPCKLPS(v[1], v[0], t[0])
	a.VUNPCKLPS(v[3], v[2], t[2])
	a.VUNPCKLPD(t[2], t[0], v[0])
	a.VUNPCKHPD(t[2], t[0], v[1])
	a.LEAQ(operand.Mem{Base: to, Index: frame, Scale: 4}, far)
	for i, m := range []operand.Mem{at(far, 0), {Base: far, Index: frame, Scale: 1}} {
		a.VPERMPS(v[i], order, v[i])
		a.VMOVUPS(v[i], m)
	}
	a.ADDQ(operand.U32(uint32(4*w.bytes())), from)
	a.ADDQ(operand.U32(uint32(w.bytes())), to)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("vector"))
	a.ADDQ(stepDst, dst)
	a.ADDQ(stepSrc, src)
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("line"))
	a.VZEROUPPER()
	a.RET()
}

// minimalInput writes the 36 places of n registers of tiles, which lie place bytes apart, from frames.
func (a *asm) minimalInput(w width) {
	a.function("minimalInput"+w.set, "func(dst *float32, place int, src *float32, frame, line, n int, room, constants *float32)")
	dst, place, src := a.pointer("dst"), a.pointer("place"), a.pointer("src")
	frame, line, n, room := a.pointer("frame"), a.pointer("line"), a.pointer("n"), a.pointer("room")
	k := a.constants(w, a.pointer("constants"), 10, minimalA, minimalB, minimalA2, minimalB2, minimalP, minimalS)
	kA, kB, kA2, kB2, kP, kS := k[0], k[1], k[2], k[3], k[4], k[5]
	var d [6]reg.VecPhysical
	for i := range d {
		d[i] = w.reg(i)
	}
	e1, o1, e2, o2 := w.reg(6), w.reg(7), w.reg(8), w.reg(9)
	// transform is Bᵀ·d; it returns where the results are.
	transform := func() [6]reg.VecPhysical {
		a.VMOVAPS(d[4], e1)
		a.VFNMADD231PS(d[2], kB2, e1)
		a.VMOVAPS(d[3], o1)
		a.VFNMADD231PS(d[1], kB2, o1)
		a.VMOVAPS(d[4], e2)
		a.VFNMADD231PS(d[2], kA2, e2)
		a.VMOVAPS(d[3], o2)
		a.VFNMADD231PS(d[1], kA2, o2)
		a.VFMADD213PS(d[4], kP, d[0])
		a.VFNMADD231PS(d[2], kS, d[0])
		a.VFNMADD231PS(d[3], kS, d[5])
		a.VFMADD231PS(d[1], kP, d[5])
		a.VMOVAPS(e1, d[1])
		a.VFMADD231PS(o1, kA, d[1])
		a.VFNMADD231PS(o1, kA, e1)
		a.VMOVAPS(e2, d[3])
		a.VFMADD231PS(o2, kB, d[3])
		a.VFNMADD231PS(o2, kB, e2)
		return [6]reg.VecPhysical{d[0], d[1], e1, d[3], e2, d[5]}
	}
	// Lines of frames: those of taps that leave the same remainder lie side by side.
	frames, frames3 := a.GP64(), a.GP64() // from one remainder to the next
	a.LEAQ(operand.Mem{Base: frame, Index: frame, Scale: 2}, frames)
	a.ADDQ(frames, frames)
	a.LEAQ(operand.Mem{Base: frames, Index: frames, Scale: 2}, frames3)
	p, q, left := a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(n, left)
	a.Label("vector")
	a.MOVQ(src, p)
	for j := range minimalSide {
		a.LEAQ(operand.Mem{Base: p, Index: line, Scale: 1}, q)
		for i, m := range []operand.Mem{at(p, 0), {Base: p, Index: frames, Scale: 1}, {Base: p, Index: frames, Scale: 2}, {Base: p, Index: frames3, Scale: 1}, at(q, 0), {Base: q, Index: frames, Scale: 1}} {
			a.VMOVUPS(m, d[i])
		}
		for i, v := range transform() {
			a.VMOVUPS(v, at(room, (i*minimalSide+j)*w.bytes()))
		}
		a.ADDQ(frame, p)
	}
	a.MOVQ(dst, p)
	for i := range minimalSide {
		for j := range minimalSide {
			a.VMOVUPS(at(room, (i*minimalSide+j)*w.bytes()), d[j])
		}
		for _, v := range transform() {
			a.VMOVUPS(v, at(p, 0))
			a.ADDQ(place, p)
		}
	}
	a.ADDQ(operand.U32(uint32(w.bytes())), src)
	a.ADDQ(operand.U32(uint32(w.bytes())), dst)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("vector"))
	a.VZEROUPPER()
	a.RET()
}

// minimalOutput writes lines lines of columns columns, 1 to 4 lines step bytes apart, from the sums of neighbouring tiles.
func (a *asm) minimalOutput(w width) {
	a.function("minimalOutput"+w.set, "func(dst *float32, step, lines, columns int, src *float32, place int, room, constants *float32, order, mask *int32, bias, low, high float32)")
	dst, step, lines, columns := a.pointer("dst"), a.pointer("step"), a.pointer("lines"), a.pointer("columns")
	src, place, room := a.pointer("src"), a.pointer("place"), a.pointer("room")
	k := a.constants(w, a.pointer("constants"), 10, minimalA, minimalB, minimalA2, minimalB2, minimalA3, minimalB3)
	kA, kB, kA2, kB2, kA3, kB3 := k[0], k[1], k[2], k[3], k[4], k[5]
	order, mask := a.pointer("order"), a.pointer("mask")
	var m [6]reg.VecPhysical
	for i := range m {
		m[i] = w.reg(i)
	}
	s1, d1, s2, d2 := w.reg(6), w.reg(7), w.reg(8), w.reg(9)
	// transform is Aᵀ·m; it returns where the results are.
	transform := func() [4]reg.VecPhysical {
		a.VADDPS(m[2], m[1], s1)
		a.VSUBPS(m[2], m[1], d1)
		a.VADDPS(m[4], m[3], s2)
		a.VSUBPS(m[4], m[3], d2)
		a.VADDPS(s1, m[0], m[0])
		a.VADDPS(s2, m[0], m[0])
		a.VMULPS(d1, kA, m[1])
		a.VFMADD231PS(d2, kB, m[1])
		a.VMULPS(s1, kA2, m[2])
		a.VFMADD231PS(s2, kB2, m[2])
		a.VFMADD231PS(d1, kA3, m[5])
		a.VFMADD231PS(d2, kB3, m[5])
		return [4]reg.VecPhysical{m[0], m[1], m[2], m[5]}
	}
	rest, p, left := a.GP64(), a.GP64(), a.GP64()
	full, from := a.GP64(), a.GP64()
	masks := []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3, reg.K4}
	a.Label("vector")
	place3, place5 := a.GP64(), a.GP64()
	a.MOVQ(src, p)
	a.LEAQ(operand.Mem{Base: place, Index: place, Scale: 2}, place3)
	a.LEAQ(operand.Mem{Base: place, Index: place, Scale: 4}, place5)
	// Line after line of the tile: from it the four values in its direction, for each of the six lines.
	for i := range minimalSide {
		for j, at := range []operand.Mem{at(p, 0), {Base: p, Index: place, Scale: 1}, {Base: p, Index: place, Scale: 2}, {Base: p, Index: place3, Scale: 1}, {Base: p, Index: place, Scale: 4}, {Base: p, Index: place5, Scale: 1}} {
			a.VMOVUPS(at, m[j])
		}
		for j, v := range transform() {
			a.VMOVUPS(v, at(room, (j*minimalSide+i)*w.bytes()))
		}
		if i+1 < minimalSide {
			a.LEAQ(operand.Mem{Base: p, Index: place3, Scale: 2}, p)
		}
	}
	if w == zmm {
		a.MOVQ(operand.U32(64), left)
		a.MOVQ(columns, rest)
		a.CMPQ(rest, left)
		a.CMOVQGT(left, rest)
		a.MOVQ(operand.I32(-1), full)
		a.BZHIQ(rest, full, full)
		for i, k := range masks {
			a.KMOVQ(full, k)
			if i < 3 {
				a.SHRQ(operand.U8(16), full)
			}
		}
	}
	for j := range 4 { // column j of all lines
		for i := range minimalSide {
			a.VMOVUPS(at(room, (j*minimalSide+i)*w.bytes()), m[i])
		}
		for i, v := range transform() {
			a.VMOVUPS(v, at(room, (4*minimalSide+4*i+j)*w.bytes()))
		}
	}
	a.MOVQ(dst, p)
	a.MOVQ(lines, left)
	a.LEAQ(at(room, 4*minimalSide*w.bytes()), from)
	v := [4]reg.VecPhysical{m[0], m[1], m[2], m[3]}
	t := [4]reg.VecPhysical{m[4], m[5], s1, d1}
	bias, low, high, by := s2, d2, m[4], m[5]
	a.Label("line")
	for i, name := range []string{"bias", "low", "high"} {
		x, err := a.Param(name).Resolve()
		if err != nil {
			panic(err)
		}
		a.VBROADCASTSS(x.Addr, []reg.VecPhysical{bias, low, high}[i])
	}
	a.VMOVUPS(at(order, 0), by)
	for j := range v {
		a.VMOVUPS(at(from, j*w.bytes()), v[j])
		a.VADDPS(bias, v[j], v[j])
		// With the sum last, a sum that is no number stays.
		a.VMAXPS(v[j], low, v[j])
		a.VMINPS(v[j], high, v[j])
		a.VPERMPS(v[j], by, v[j])
	}
	a.turnFours(v, t)
	if w == zmm {
		for j := range v {
			a.VMOVUPS(v[j], masks[j], at(p, j*w.bytes()))
		}
	} else {
		a.CMPQ(columns, operand.U32(32))
		a.JLT(operand.LabelRef("some"))
		for j := range v {
			a.VMOVUPS(v[j], at(p, j*w.bytes()))
		}
		a.JMP(operand.LabelRef("written"))
		a.Label("some")
		for j := range v {
			// The masks begin with ones, 16 of them.
			a.MOVQ(operand.U32(uint32(w.floats)), full)
			a.LEAQ(at(columns, -j*w.floats), rest)
			a.CMPQ(rest, full)
			a.CMOVQGT(full, rest)
			a.XORQ(full, full)
			a.TESTQ(rest, rest)
			a.CMOVQLT(full, rest)
			a.NEGQ(rest)
			a.VMOVUPS(operand.Mem{Base: mask, Index: rest, Scale: 4, Disp: 64}, t[0])
			a.VMASKMOVPS(v[j], t[0], at(p, j*w.bytes()))
		}
		a.Label("written")
	}
	a.ADDQ(step, p)
	a.ADDQ(operand.U32(uint32(4*w.bytes())), from)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("line"))
	a.ADDQ(operand.U32(uint32(w.bytes())), src)
	a.ADDQ(operand.U32(uint32(4*w.bytes())), dst)
	a.SUBQ(operand.U32(uint32(4*w.floats)), columns)
	a.JGT(operand.LabelRef("vector"))
	a.VZEROUPPER()
	a.RET()
}

// minimalWeights writes the 36 places of n filters of a register of output channels, steps of step bytes.
func (a *asm) minimalWeights(w width) {
	a.function("minimalWeights"+w.set, "func(dst *float32, place, step int, src *float32, n int, room, constants *float32)")
	dst, place, step := a.pointer("dst"), a.pointer("place"), a.pointer("step")
	src, n, room := a.pointer("src"), a.pointer("n"), a.pointer("room")
	k := a.constants(w, a.pointer("constants"), 9, minimalG0, minimalGA, minimalGA+4, minimalGA+8, minimalGB, minimalGB+4, minimalGB+8)
	g := [3]reg.VecPhysical{w.reg(0), w.reg(1), w.reg(2)}
	u := [6]reg.VecPhysical{w.reg(3), w.reg(4), w.reg(5), w.reg(6), w.reg(7), g[2]}
	transform := func() [6]reg.VecPhysical {
		a.VMULPS(g[0], k[0], u[0])
		for i := range 2 {
			c, plus, minus := k[1+3*i:], u[1+2*i], u[2+2*i]
			a.VMULPS(g[0], c[0], plus)
			a.VFMADD231PS(g[2], c[2], plus)
			a.VMOVAPS(plus, minus)
			a.VFMADD231PS(g[1], c[1], plus)
			a.VFNMADD231PS(g[1], c[1], minus)
		}
		return u
	}
	p := a.GP64()
	a.Label("filter")
	for j := range 3 {
		for i := range 3 {
			a.VMOVUPS(at(src, (3*i+j)*w.bytes()), g[i])
		}
		for i, v := range transform() {
			a.VMOVUPS(v, at(room, (3*i+j)*w.bytes()))
		}
	}
	a.MOVQ(dst, p)
	for i := range minimalSide {
		for j := range 3 {
			a.VMOVUPS(at(room, (3*i+j)*w.bytes()), g[j])
		}
		for _, v := range transform() {
			a.VMOVUPS(v, at(p, 0))
			a.ADDQ(place, p)
		}
	}
	a.ADDQ(operand.U32(uint32(9*w.bytes())), src)
	a.ADDQ(step, dst)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("filter"))
	a.VZEROUPPER()
	a.RET()
}
