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
	a.requantiseSmall256(places)
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
		a.spreadLow("zero", p.zero, a.VPBROADCASTW)
	}
	p.limits()
	return p
}

// limits loads the limits of bytes, and what they are turned with.
func (p *codePacker256) limits() {
	for _, limit := range []struct {
		name string
		to   *reg.VecVirtual
	}{{"lo", &p.lo}, {"hi", &p.hi}, {"sign", &p.sign}} {
		*limit.to = p.a.XMM()
		p.a.spreadLow(limit.name, *limit.to, p.a.VPBROADCASTB)
	}
}

// spreadLow sets all bytes or words of a register to the lowest one of a parameter.
func (a *asm) spreadLow(name string, to reg.VecVirtual, broadcast func(...operand.Op)) {
	x, g := a.XMM(), a.GP32()
	a.Load(a.Param(name), g)
	a.VMOVD(g, x)
	broadcast(x, to)
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

// partMasks256 returns the masks of the first n of 16 sums.
func (a *asm) partMasks256(places operand.Mem, n reg.Register) [2]reg.VecVirtual {
	masks := [2]reg.VecVirtual{a.YMM(), a.YMM()}
	for i := range masks {
		count, index := a.YMM(), a.YMM()
		a.VMOVD(n.(reg.GPVirtual).As32(), count.AsX())
		a.VPBROADCASTD(count.AsX(), count)
		table := a.GP64()
		a.LEAQ(places, table)
		a.VPMOVZXBD(at(table, 8*i), index)
		a.VPCMPGTD(index, count, masks[i])
	}
	return masks
}

// requantiseSmall256 is requantiseRows in 16 channels at a time, or in 8 for the last 8 or fewer.
// What rows have in common is computed once for each block, on the stack.
func (a *asm) requantiseSmall256(places operand.Mem) {
	a.function("requantiseSmallAVX2", "func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)")
	load := func(param string) reg.Register { return a.Load(a.Param(param), a.GP64()) }
	dst, stepDst, sums, stepSums, n := load("dst"), load("stepDst"), load("sums"), load("stepSums"), load("n")
	channel, from, to, left := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	const twice, down, bias, half, block = 0, 1, 2, 3, 64
	common := a.alignedLocal(4 * block)
	value := func(kind, i int) operand.Mem { return common.Offset(block*kind + 32*i) }
	p := &codePacker256{a: a, kind: sumsFused}
	p.limits()
	zero, minus, rounds := a.spreadParam("zero"), a.YMM(), a.YMM()
	a.VPCMPEQD(minus, minus, minus)
	a.VPSLLQ(operand.U8(63), minus, rounds)
	a.VPSRLQ(operand.U8(32), rounds, rounds) // 2^31
	var masks [2]reg.VecVirtual
	masked := func(m operand.Mem, i int, whole bool, to reg.Register) {
		if m.Disp += 32 * i; whole {
			a.VMOVDQU(m, to)
		} else {
			a.VPMASKMOVD(m, masks[i], to)
		}
	}
	// prepare stores the parameters of registers of channels.
	prepare := func(regs int, whole bool) {
		for i := range regs {
			param := func(name string) reg.VecVirtual {
				x := a.YMM()
				a.MOVQ(a.argument(name), from)
				masked(operand.Mem{Base: from, Index: channel, Scale: 4}, i, whole, x)
				return x
			}
			by, shift, sum, add, flip := param("twice"), param("down"), param("bias"), param("half"), a.YMM()
			a.VMOVDQU(by, value(twice, i))
			a.VMOVDQU(shift, value(down, i))
			a.VPSLLD(operand.U8(31), minus, flip)
			a.VPADDD(flip, sum, sum)
			a.VMOVDQU(sum, value(bias, i))
			// The multiplier for 2^31 that sums have more, and one less for ties of negative sums.
			a.VPSRLD(operand.U8(1), by, by)
			a.VPSUBD(by, add, add)
			a.VPADDD(minus, add, add)
			a.VPSLLVD(shift, zero, shift)
			a.VPADDD(shift, add, add)
			a.VMOVDQU(add, value(half, i))
		}
		a.Load(a.Param("rows"), left)
		a.MOVQ(sums, from)
		a.MOVQ(dst, to)
	}
	codes := func(regs int, whole bool) reg.Register {
		var x [2]reg.VecVirtual
		for i := range regs {
			sum, even, odd := a.YMM(), a.YMM(), a.YMM()
			masked(at(from, 0), i, whole, sum)
			a.VPADDD(value(bias, i), sum, sum)
			a.VPMULUDQ(value(twice, i), sum, even)
			a.VPSRLQ(operand.U8(32), sum, odd)
			a.VPMULUDQ(value(twice, i).Offset(4), odd, odd)
			a.VPADDQ(rounds, even, even)
			a.VPADDQ(rounds, odd, odd)
			a.VMOVSHDUP(even, even)
			a.VPBLENDD(operand.U8(0xaa), odd, even, even)
			a.VPADDD(value(half, i), even, even)
			a.VPSRAD(operand.U8(31), sum, sum)
			a.VPSUBD(sum, even, even)
			a.VPSRAVD(value(down, i), even, even)
			x[i] = even
		}
		if regs == 1 {
			x[1] = x[0]
		}
		return p.pack(x)
	}
	block16 := func(name string, regs int, whole bool, store func(x reg.Register)) {
		a.Label(name)
		prepare(regs, whole)
		a.Label(name + "_row")
		store(codes(regs, whole))
		a.ADDQ(stepDst, to)
		a.ADDQ(stepSums, from)
		a.DECQ(left)
		a.JNZ(operand.LabelRef(name + "_row"))
	}
	a.XORQ(channel, channel)
	a.CMPQ(n, operand.U8(16))
	a.JLT(operand.LabelRef("rest"))
	block16("block", 2, true, func(x reg.Register) { a.VMOVDQU(x, at(to, 0)) })
	a.ADDQ(operand.U8(16), channel)
	a.ADDQ(operand.U8(64), sums)
	a.ADDQ(operand.U8(16), dst)
	a.SUBQ(operand.U8(16), n)
	a.JZ(operand.LabelRef("end"))
	a.CMPQ(n, operand.U8(16))
	a.JGE(operand.LabelRef("block"))
	a.Label("rest")
	masks = a.partMasks256(places, n)
	a.CMPQ(n, operand.U8(8))
	a.JLE(operand.LabelRef("eight"))
	block16("part", 2, false, func(x reg.Register) { a.storeFirstBytes("part", x, to, n) })
	a.JMP(operand.LabelRef("end"))
	block16("eight", 1, false, func(x reg.Register) { a.storeFirstBytes("eight", x, to, n) })
	a.Label("end")
	a.VZEROUPPER()
	a.RET()
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
	var masks [2]reg.VecVirtual
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
		masks = a.partMasks256(places, n)
		part(false, func(x reg.Register) { a.storeFirstBytes("columns", x, to, n) })
	} else {
		rest := a.GP64()
		a.MOVQ(n, rest)
		a.ANDQ(operand.U8(15), rest)
		masks = a.partMasks256(places, rest)
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
