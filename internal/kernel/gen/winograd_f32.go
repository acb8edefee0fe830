package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Winograd's Winograd filtering F(4×4, 3×3); see simd.Minimal for the matrices. Numbers of one
// place of many tiles lie side by side, so that transforms are the same arithmetic on whole
// registers.

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

// winogradScratch says where the numbers of a transform wait for its second half: in registers, as
// far as there are any, or in memory.
type winogradScratch struct {
	a   *asm
	w   width
	buf reg.Register
}

// put keeps number i.
func (r *winogradScratch) put(v reg.VecPhysical, i int) {
	if first := 16; i < r.w.regs-first {
		r.a.VMOVAPS(v, r.w.reg(first+i))
		return
	}
	r.a.VMOVUPS(v, at(r.buf, i*r.w.bytes()))
}

// get brings number i back.
func (r *winogradScratch) get(i int, v reg.VecPhysical) {
	if first := 16; i < r.w.regs-first {
		r.a.VMOVAPS(r.w.reg(first+i), v)
		return
	}
	r.a.VMOVUPS(at(r.buf, i*r.w.bytes()), v)
}

// turnFours exchanges rows and columns of the four by four numbers in each 128 bits of v; t is
// scratch.
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

// minimalSplit takes lines apart: value 4·t+j of a line goes to place t of frame j, for j from 0
// to 5.
func (a *asm) minimalSplit(w width) {
	a.function("minimalSplit"+w.set, "func(dst *float32, frame, stepDst int, src *float32, stepSrc, n, lines int, order *int32, next *float32, stepNext int)")
	dst, frame, stepDst := a.pointer("dst"), a.pointer("frame"), a.pointer("stepDst")
	src, stepSrc, n, lines := a.pointer("src"), a.pointer("stepSrc"), a.pointer("n"), a.pointer("lines")
	next, stepNext, soon := a.pointer("next"), a.pointer("stepNext"), a.GP64()
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
	a.MOVQ(next, soon)
	a.MOVQ(n, left)
	a.Label("vector")
	for i := 0; i < 4*w.bytes(); i += 64 {
		a.PREFETCHT0(at(soon, i))
	}
	a.ADDQ(operand.U32(uint32(4*w.bytes())), soon)
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
	a.ADDQ(stepNext, next)
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("line"))
	a.VZEROUPPER()
	a.RET()
}

// minimalInput writes the 36 places of n registers of tiles, which lie place bytes apart, from
// frames.
func (a *asm) minimalInput(w width) {
	a.function("minimalInput"+w.set, "func(dst *float32, place int, src *float32, frame, line, n int, room, constants *float32)")
	dst, place, src := a.pointer("dst"), a.pointer("place"), a.pointer("src")
	frame, line, n := a.pointer("frame"), a.pointer("line"), a.pointer("n")
	between := &winogradScratch{a, w, a.pointer("room")}
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
			between.put(v, j*minimalSide+i)
		}
		a.ADDQ(frame, p)
	}
	a.MOVQ(dst, p)
	for i := range minimalSide {
		for j := range minimalSide {
			between.get(j*minimalSide+i, d[j])
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

// minimalOutput writes lines lines of columns columns, 1 to 4 lines step bytes apart, from the
// sums of neighbouring tiles.
func (a *asm) minimalOutput(w width) {
	a.function("minimalOutput"+w.set, "func(dst *float32, step, lines, columns int, src *float32, place int, room, constants *float32, order, mask *int32, bias, low, high float32)")
	dst, step, lines, columns := a.pointer("dst"), a.pointer("step"), a.pointer("lines"), a.pointer("columns")
	src, place := a.pointer("src"), a.pointer("place")
	between := &winogradScratch{a, w, a.pointer("room")}
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
	rest, p, full := a.GP64(), a.GP64(), a.GP64()
	masks := []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3, reg.K4}
	// From one line of a tile to the next.
	high, high3, high5 := a.GP64(), a.GP64(), a.GP64()
	a.LEAQ(operand.Mem{Base: place, Index: place, Scale: 2}, high)
	a.ADDQ(high, high)
	a.LEAQ(operand.Mem{Base: high, Index: high, Scale: 2}, high3)
	a.LEAQ(operand.Mem{Base: high, Index: high, Scale: 4}, high5)
	a.Label("vector")
	a.MOVQ(src, p)
	for j := range minimalSide {
		for i, m0 := range []operand.Mem{at(p, 0), {Base: p, Index: high, Scale: 1}, {Base: p, Index: high, Scale: 2}, {Base: p, Index: high3, Scale: 1}, {Base: p, Index: high, Scale: 4}, {Base: p, Index: high5, Scale: 1}} {
			a.VMOVUPS(m0, m[i])
		}
		for i, v := range transform() {
			between.put(v, i*minimalSide+j)
		}
		a.ADDQ(place, p)
	}
	if w == zmm {
		a.MOVQ(operand.U32(64), full)
		a.MOVQ(columns, rest)
		a.CMPQ(rest, full)
		a.CMOVQGT(full, rest)
		a.MOVQ(operand.I32(-1), full)
		a.BZHIQ(rest, full, full)
		for i, k := range masks {
			a.KMOVQ(full, k)
			if i < 3 {
				a.SHRQ(operand.U8(16), full)
			}
		}
	}
	a.MOVQ(dst, p)
	for i := range 4 {
		if i > 0 {
			a.CMPQ(lines, operand.U32(uint32(i)))
			a.JLE(operand.LabelRef("next"))
			a.ADDQ(step, p)
		}
		for j := range minimalSide {
			between.get(i*minimalSide+j, m[j])
		}
		v := transform()
		bias, low, high, by := s1, d1, s2, d2
		for i, name := range []string{"bias", "low", "high"} {
			x, err := a.Param(name).Resolve()
			if err != nil {
				panic(err)
			}
			a.VBROADCASTSS(x.Addr, []reg.VecPhysical{bias, low, high}[i])
		}
		a.VMOVUPS(at(order, 0), by)
		for j := range v {
			a.VADDPS(bias, v[j], v[j])
			// With the sum last, a sum that is NaN stays.
			a.VMAXPS(v[j], low, v[j])
			a.VMINPS(v[j], high, v[j])
			a.VPERMPS(v[j], by, v[j])
		}
		a.turnFours(v, [4]reg.VecPhysical{m[3], m[4], bias, low})
		if w == zmm {
			for j := range v {
				a.VMOVUPS(v[j], masks[j], at(p, j*w.bytes()))
			}
			continue
		}
		a.CMPQ(columns, operand.U32(32))
		a.JLT(operand.LabelRef(label("some%d", i)))
		for j := range v {
			a.VMOVUPS(v[j], at(p, j*w.bytes()))
		}
		a.JMP(operand.LabelRef(label("written%d", i)))
		a.Label(label("some%d", i))
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
			a.VMOVUPS(operand.Mem{Base: mask, Index: rest, Scale: 4, Disp: 64}, m[3])
			a.VMASKMOVPS(v[j], m[3], at(p, j*w.bytes()))
		}
		a.Label(label("written%d", i))
	}
	a.Label("next")
	a.ADDQ(operand.U32(uint32(w.bytes())), src)
	a.ADDQ(operand.U32(uint32(4*w.bytes())), dst)
	a.SUBQ(operand.U32(uint32(4*w.floats)), columns)
	a.JGT(operand.LabelRef("vector"))
	a.VZEROUPPER()
	a.RET()
}

// minimalWeights writes the 36 places of n filters of a register of output channels, steps of
// step bytes.
func (a *asm) minimalWeights(w width) {
	a.function("minimalWeights"+w.set, "func(dst *float32, place, step int, src *float32, n int, room, constants *float32)")
	dst, place, step := a.pointer("dst"), a.pointer("place"), a.pointer("step")
	src, n, buf := a.pointer("src"), a.pointer("n"), a.pointer("room")
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
			a.VMOVUPS(v, at(buf, (3*i+j)*w.bytes()))
		}
	}
	a.MOVQ(dst, p)
	for i := range minimalSide {
		for j := range 3 {
			a.VMOVUPS(at(buf, (3*i+j)*w.bytes()), g[j])
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
