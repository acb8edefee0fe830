package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// codes256 writes the AVX2 forms of the kernels of codes512 that requantise sums and transpose
// bytes.
func (a *asm) codes256(places operand.Mem) {
	for _, kind := range []sums256{sumsScaled, sumsScaledSmall} {
		a.rescale256("rescaleRows", places, kind, false)
		a.rescale256("rescaleColumns", places, kind, true)
	}
	a.rescale256("requantiseFused", places, sumsFused, true)
	a.transposeBytes256()
}

// sums256 is how sums are converted: by scales, by scales below 1/2, or by the parameters of
// simd.Fused.
type sums256 int

const (
	sumsScaled sums256 = iota
	sumsScaledSmall
	sumsFused
)

func (k sums256) signature() string {
	if k == sumsFused {
		return "func(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales, adds, bias *int32, lo, hi, sign int32)"
	}
	return rescaleParams
}

// codePacker256 requantises 16 sums in two registers to 16 bytes. The parameters are those of
// codePacker, or of simd.Fused with the zero point in their sums.
type codePacker256 struct {
	a                        *asm
	kind                     sums256
	most, zero, lo, hi, sign reg.VecVirtual
}

func (a *asm) codePacker256(kind sums256) *codePacker256 {
	p := &codePacker256{a: a, kind: kind, zero: a.YMM()}
	spread := func(name string, to reg.VecVirtual, f func(...operand.Op)) reg.VecVirtual {
		x, g := a.XMM(), a.GP32()
		a.Load(a.Param(name), g)
		a.VMOVD(g, x)
		f(x, to)
		return to
	}
	switch kind {
	case sumsFused:
		g := a.GP32()
		a.MOVL(operand.U32(math.Float32bits(fusedWhole)), g)
		a.VMOVD(g, p.zero.AsX())
		a.VPBROADCASTD(p.zero.AsX(), p.zero)
	case sumsScaled:
		p.most = a.spreadParam("most")
		fallthrough
	default:
		spread("zero", p.zero, a.VPBROADCASTW)
	}
	p.lo, p.hi, p.sign = spread("lo", a.XMM(), a.VPBROADCASTB), spread("hi", a.XMM(), a.VPBROADCASTB), spread("sign", a.XMM(), a.VPBROADCASTB)
	return p
}

// round converts sums with their bias to integers; add is for fused sums.
func (p *codePacker256) round(x, scale, add reg.Register) {
	a := p.a
	if p.kind == sumsFused {
		a.fuseSums(x, scale, add, p.zero)
		return
	}
	a.VCVTDQ2PS(x, x)
	a.VMULPS(scale, x, x)
	if p.kind == sumsScaled {
		a.VMINPS(p.most, x, x)
	}
	a.VCVTPS2DQ(x, x)
}

// pack returns the 16 quantised values.
func (p *codePacker256) pack(x [2]reg.VecVirtual) reg.Register {
	a, v, upper := p.a, x[0], p.a.XMM()
	a.VPACKSSDW(x[1], v, v)
	a.VPERMQ(operand.U8(0xd8), v, v)
	if p.kind != sumsFused {
		a.VPADDSW(p.zero, v, v)
	}
	a.VEXTRACTI128(operand.U8(1), v, upper)
	a.VPACKSSWB(upper, v.AsX(), v.AsX())
	a.VPMAXSB(p.lo, v.AsX(), v.AsX())
	a.VPMINSB(p.hi, v.AsX(), v.AsX())
	a.VPXOR(p.sign, v.AsX(), v.AsX())
	return v.AsX()
}

// storeFirstBytes writes the first n of 16 bytes, n below 16. It changes x.
func (a *asm) storeFirstBytes(name string, x, dst, n reg.Register) {
	to := a.GP64()
	a.MOVQ(dst, to)
	for _, size := range []int{8, 4, 2, 1} {
		next := operand.LabelRef(label("%s_below%d", name, size))
		a.TESTQ(operand.U32(uint32(size)), n)
		a.JZ(next)
		switch size {
		case 8:
			a.VMOVQ(x, at(to, 0))
		case 4:
			a.VMOVD(x, at(to, 0))
		case 2:
			a.VPEXTRW(operand.U8(0), x, at(to, 0))
		default:
			a.VPEXTRB(operand.U8(0), x, at(to, 0))
		}
		if size > 1 {
			a.VPSRLDQ(operand.U8(uint8(size)), x, x)
			a.ADDQ(operand.U8(uint8(size)), to)
		}
		a.Label(string(next))
	}
}

// rescale256 is rescaleRows, or rescaleColumns, 16 sums at a time.
func (a *asm) rescale256(name string, places operand.Mem, kind sums256, columns bool) {
	if kind == sumsScaledSmall {
		name += "Small"
	}
	a.function(name+"AVX2", kind.signature())
	load := func(param string) reg.Register { return a.Load(a.Param(param), a.GP64()) }
	dst, stepDst, src, stepSrc, rows, n := load("dst"), load("stepDst"), load("src"), load("stepSrc"), load("rows"), load("n")
	params := []reg.Register{load("scales"), load("bias")}
	if kind == sumsFused {
		params = append(params, load("adds"))
	}
	p := a.codePacker256(kind)
	from, to, left := a.GP64(), a.GP64(), a.GP64()
	var channels [3][2]reg.VecVirtual // scales, biases, what fused sums add
	for i := range params {
		channels[i] = [2]reg.VecVirtual{a.YMM(), a.YMM()}
		if !columns {
			channels[i][1] = channels[i][0]
		}
	}
	masks := [2]reg.VecVirtual{a.YMM(), a.YMM()}
	values := func(m operand.Mem, i int, whole bool, to reg.Register) {
		m.Disp += 32 * i
		if whole {
			a.VMOVUPS(m, to)
		} else {
			a.VPMASKMOVD(m, masks[i], to)
		}
	}
	code := func(whole bool) reg.Register {
		x := [2]reg.VecVirtual{a.YMM(), a.YMM()}
		for i := range x {
			values(at(from, 0), i, whole, x[i])
			a.VPADDD(channels[1][i], x[i], x[i])
			p.round(x[i], channels[0][i], channels[2][i])
		}
		return p.pack(x)
	}
	partMasks := func(n reg.Register) {
		for i := range masks {
			count, index := a.YMM(), a.YMM()
			a.VMOVD(n.(reg.GPVirtual).As32(), count.AsX())
			a.VPBROADCASTD(count.AsX(), count)
			table := a.GP64()
			a.LEAQ(places, table)
			a.VPMOVZXBD(at(table, 8*i), index)
			a.VPCMPGTD(index, count, masks[i])
		}
	}
	if columns {
		a.Label("block")
		a.MOVQ(src, from)
		a.MOVQ(dst, to)
		a.MOVQ(rows, left)
		part := func(whole bool, store func(x reg.Register)) {
			row := "row"
			if !whole {
				row = "part_row"
			}
			for k, from := range params {
				for i, to := range channels[k] {
					values(at(from, 0), i, whole, to)
				}
			}
			a.Label(row)
			store(code(whole))
			a.ADDQ(stepDst, to)
			a.ADDQ(stepSrc, from)
			a.DECQ(left)
			a.JNZ(operand.LabelRef(row))
		}
		a.CMPQ(n, operand.U8(16))
		a.JLT(operand.LabelRef("part"))
		part(true, func(x reg.Register) { a.VMOVDQU(x, at(to, 0)) })
		for _, p := range append(params, src) {
			a.ADDQ(operand.U8(64), p)
		}
		a.ADDQ(operand.U8(16), dst)
		a.SUBQ(operand.U8(16), n)
		a.JNZ(operand.LabelRef("block"))
		a.JMP(operand.LabelRef("end"))
		a.Label("part")
		partMasks(n)
		part(false, func(x reg.Register) { a.storeFirstBytes("columns", x, to, n) })
	} else {
		rest := a.GP64()
		a.MOVQ(n, rest)
		a.ANDQ(operand.U8(15), rest)
		partMasks(rest)
		a.Label("row")
		a.MOVQ(src, from)
		a.MOVQ(dst, to)
		a.MOVQ(n, left)
		for k, from := range params {
			a.VBROADCASTSS(at(from, 0), channels[k][0])
		}
		a.SHRQ(operand.U8(4), left)
		a.JZ(operand.LabelRef("rest"))
		a.Label("sixteen")
		a.VMOVDQU(code(true), at(to, 0))
		a.ADDQ(operand.U8(64), from)
		a.ADDQ(operand.U8(16), to)
		a.DECQ(left)
		a.JNZ(operand.LabelRef("sixteen"))
		a.Label("rest")
		a.TESTQ(rest, rest)
		a.JZ(operand.LabelRef("next"))
		a.storeFirstBytes("rows", code(false), to, rest)
		a.Label("next")
		for _, p := range params {
			a.ADDQ(operand.U8(4), p)
		}
		a.ADDQ(stepDst, dst)
		a.ADDQ(stepSrc, src)
		a.DECQ(rows)
		a.JNZ(operand.LabelRef("row"))
	}
	a.Label("end")
	a.VZEROUPPER()
	a.RET()
}

// transposeBytes256 is turnBytes for multiples of 16 columns. Rows i and i+8 share a register:
// three rounds of interleaving leave in each lane two columns of eight rows.
func (a *asm) transposeBytes256() {
	a.function("turnBytesAVX2", "func(dst *byte, stepDst int, src *byte, stepSrc, n int)")
	load := func(param string) reg.Register { return a.Load(a.Param(param), a.GP64()) }
	dst, stepDst, src, stepSrc, n := load("dst"), load("stepDst"), load("src"), load("stepSrc"), load("n")
	from, below := a.GP64(), a.GP64()
	a.Label("block")
	a.MOVQ(src, from)
	a.LEAQ(operand.Mem{Base: src, Index: stepSrc, Scale: 8}, below)
	x, free := append([]reg.VecPhysical(nil), ymmRegs[:8]...), ymmRegs[8]
	for _, v := range x {
		a.VMOVDQU(at(from, 0), v.AsX())
		a.VINSERTI128(operand.U8(1), at(below, 0), v, v)
		a.ADDQ(stepSrc, from)
		a.ADDQ(stepSrc, below)
	}
	x = a.interleaveBytes(x, free, 3)
	for _, v := range x {
		a.VPERMQ(operand.U8(0xd8), v, v)
		a.VMOVDQU(v.AsX(), at(dst, 0))
		a.ADDQ(stepDst, dst)
		a.VEXTRACTI128(operand.U8(1), v, at(dst, 0))
		a.ADDQ(stepDst, dst)
	}
	a.ADDQ(operand.U8(16), src)
	a.SUBQ(operand.U8(16), n)
	a.JNZ(operand.LabelRef("block"))
	a.VZEROUPPER()
	a.RET()
}
