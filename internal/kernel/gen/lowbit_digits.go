package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.BitDigits, in bytes; a test there compares them.
const (
	digitsX = 8 * iota
	digitsY
	digitsBlock
	digitsChunks // of a block
	digitsBlocks
	digitsOrder
	digitsPowers
	digitsStore
	digitsLine
	digitsLimit // and after it the factor of the sums
	digitsMost  // and after it the least
)

// Of a block of a row of digits simd.BitRecord numbers are kept: what the sums of each digit
// begin with, the scale, and the sum of the row.
const (
	recordScale = 12
	recordSum   = 16
	recordSize  = 32
)

// leastTop, 2^-80, is the least magnitude of a block for which scales are good numbers.
const leastTop = 0x17800000

// fetchAhead is how many bytes further on weights of a single row are asked for.
const fetchAhead = 4096

// bitDigits writes blocks of a row as integers of up to three digits of 8 bits with a sign, so
// that the largest magnitude is the limit: for 16 steps the digits of each place, in the order in
// which words of weights have steps.
func (a *asm) bitDigits() {
	a.function("bitDigitsVNNI", "func(t *BitDigits)")
	t := a.Load(a.Param("t"), a.GP64())
	x, y, record, blocks, chunks, line, p := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(at(t, digitsX), x)
	a.MOVQ(at(t, digitsY), y)
	a.MOVQ(at(t, digitsBlock), record)
	a.MOVQ(at(t, digitsBlocks), blocks)
	a.MOVQ(at(t, digitsLine), line)
	most, least, top := a.GP32(), a.GP32(), a.GP32()
	a.XORL(most, most)
	a.MOVL(operand.U32(0xFFFFFFFF), least)
	magnitude, half, ones, order, powers := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
	a.VPTERNLOGD(operand.U8(255), magnitude, magnitude, magnitude)
	a.VPSRLD(operand.U8(1), magnitude, magnitude)
	a.MOVL(operand.U32(0x808080), top)
	a.VPBROADCASTD(top, half)
	a.MOVL(operand.U32(0x01010101), top)
	a.VPBROADCASTD(top, ones)
	a.MOVQ(at(t, digitsOrder), p)
	a.VMOVDQU32(at(p, 0), order)
	a.MOVQ(at(t, digitsPowers), p)
	a.VMOVUPS(at(p, 0), powers)
	a.KMOVW(at(t, digitsStore), reg.K1)
	a.MOVL(operand.U32(0x111), top) // the first sum of each digit
	a.KMOVW(top, reg.K2)
	a.Label("block")
	// The largest magnitude: as integers, among which NaN is the largest.
	v, by := a.ZMM(), a.ZMM()
	a.zero(zmm, by)
	a.MOVQ(at(t, digitsChunks), chunks)
	a.MOVQ(x, p)
	a.Label("magnitude")
	a.VPANDD(at(p, 0), magnitude, v)
	a.VPMAXUD(v, by, by)
	a.ADDQ(operand.U32(64), p)
	a.DECQ(chunks)
	a.JNZ(operand.LabelRef("magnitude"))
	a.largestWord(by, v)
	a.VMOVD(by.AsX(), top)
	a.CMPL(top, most)
	a.CMOVLHI(top, most)
	less := a.GP32()
	a.MOVL(top, less)
	a.DECL(less) // a block of zeros is none of small numbers
	a.CMPL(less, least)
	a.CMOVLCS(less, least)
	a.MOVL(operand.U32(leastTop), top)
	a.VMOVD(top, v.AsX())
	a.VPMAXUD(v.AsX(), by.AsX(), by.AsX())
	a.VMOVSS(at(t, digitsLimit), v.AsX())
	scale := a.XMM()
	a.VDIVSS(v.AsX(), by.AsX(), scale)
	a.VMOVSS(scale, at(record, recordScale))
	a.VDIVSS(by.AsX(), v.AsX(), by.AsX())
	a.VBROADCASTSS(by.AsX(), by)
	sums := a.ZMM()
	a.zero(zmm, sums)
	a.MOVQ(at(t, digitsChunks), chunks)
	a.Label("chunk")
	a.VMULPS(at(x, 0), by, v)
	a.VCVTPS2DQ(v, v)
	a.VPADDD(half, v, v) // so that bytes are digits plus 128
	a.VPXORD(half, v, v)
	a.VPERMB(v, order, v)
	a.VPDPBUSD(v, ones, sums)
	a.VMOVDQU32(v, reg.K1, at(y, 0))
	a.ADDQ(operand.U32(64), x)
	a.ADDQ(line, y)
	a.DECQ(chunks)
	a.JNZ(operand.LabelRef("chunk"))
	a.digitSums(t, record, sums, powers, v)
	a.ADDQ(operand.U32(recordSize), record)
	a.DECQ(blocks)
	a.JNZ(operand.LabelRef("block"))
	a.MOVL(most, at(t, digitsMost))
	a.MOVL(least, at(t, digitsMost+4))
	a.VZEROUPPER()
	a.RET()
}

// largestWord makes the largest of the words of v, without a sign, that of all of its lowest four.
func (a *asm) largestWord(v, spare reg.VecVirtual) {
	a.VEXTRACTI64X4(operand.U8(1), v, spare.AsY())
	a.VPMAXUD(spare.AsY(), v.AsY(), v.AsY())
	a.VEXTRACTI128(operand.U8(1), v.AsY(), spare.AsX())
	a.VPMAXUD(spare.AsX(), v.AsX(), v.AsX())
	for _, turn := range []uint8{0x4E, 0xB1} {
		a.VPSHUFD(operand.U8(turn), v.AsX(), spare.AsX())
		a.VPMAXUD(spare.AsX(), v.AsX(), v.AsX())
	}
}

// digitSums writes to a record what the sums of each digit begin with, and the sum of the row, of
// which sums has the digits' in words of each four.
func (a *asm) digitSums(t, record reg.Register, sums, powers, v reg.VecVirtual) {
	for _, turn := range []uint8{0x4E, 0xB1} {
		a.VPSHUFD(operand.U8(turn), sums, v)
		a.VPADDD(v, sums, sums)
	}
	a.VPBROADCASTD(at(t, digitsLimit+4), v)
	a.VPMULLD(v, sums, v)
	a.VPCOMPRESSD_Z(v, reg.K2, v)
	a.VPEXTRD(operand.U8(0), v.AsX(), at(record, 0))
	a.VPEXTRD(operand.U8(1), v.AsX(), at(record, 4))
	a.VPEXTRD(operand.U8(2), v.AsX(), at(record, 8))
	a.VCVTDQ2PS(sums, sums)
	a.VMULPS(powers, sums, sums)
	for _, turn := range []uint8{0x4E, 0xB1} {
		a.VSHUFF32X4(operand.U8(turn), sums, sums, v)
		a.VADDPS(v, sums, sums)
	}
	a.VMOVSS(sums.AsX(), at(record, recordSum))
}

// bitDigitRows multiplies rows of digits by half a panel, or a row by a whole one, of raw codes.
// Each digit has sums of its own, which are exact; those of a block make one number, less the
// zero points times the sum of the row, that takes the scales of both.
func (a *asm) bitDigitRows(bits, digits, rows, regs int) {
	a.function(label("bitDigits%dx%dRows%dVNNI", bits, digits, rows), "func(t *BitTile)")
	t := a.Load(a.Param("t"), a.GP64())
	reg64 := func(field int) reg.GPVirtual { return a.field(t, field) }
	codes, scales, zeros, blocks := reg64(bitsW), reg64(bitsScales), reg64(bitsZeros), reg64(bitsBlocks)
	x, record := a.rowPointers(rows), a.rowPointers(rows)
	x.set(at(t, bitsX), at(t, bitsRowX))
	record.set(at(t, bitsSums), at(t, bitsRowSums))
	left := a.GP64()
	next := 0
	vec := func() reg.VecPhysical {
		next++
		return zmm.reg(next - 1)
	}
	var all [6][4]reg.VecPhysical
	var part [6][3][4]reg.VecPhysical
	var words, some [4]reg.VecPhysical
	for i := range regs {
		words[i], some[i] = vec(), vec()
		for r := range rows {
			for d := range digits {
				part[r][d][i] = vec()
			}
			all[r][i] = vec()
			a.zero(zmm, all[r][i])
		}
	}
	each := func(f func(r, i int)) {
		for r := range rows {
			for i := range regs {
				f(r, i)
			}
		}
	}
	spare := vec()
	mask := spare
	byteMask := func() {
		if bits < 8 {
			a.VPTERNLOGD(operand.U8(255), mask, mask, mask)
			a.VPSRLW(operand.U8(16-bits), mask, mask)
			a.VPACKUSWB(mask, mask, mask)
		}
	}
	a.Label("block")
	byteMask()
	each(func(r, i int) {
		for d := range digits {
			a.VPBROADCASTD(record.at(r, 4*d), part[r][d][i])
		}
	})
	a.MOVQ(at(t, bitsGroups), left)
	a.Label("chunk")
	for step := range 4 { // a word of four steps in each column
		a.rawStep(bits, step, codes, mask, words[:regs], some[:regs])
		for r := range rows {
			for d := range digits {
				for i := range regs {
					a.VPDPBUSD_BCST(x.at(r, 16*d+4*step), some[i], part[r][d][i])
				}
			}
		}
	}
	// Weights come from memory, of which the processor asks for too little by itself. Three digits
	// compute long enough to take them from the second-level cache, which has more requests in
	// flight than the first.
	fetch := a.PREFETCHT0
	if digits == 3 {
		fetch = a.PREFETCHT1
	}
	if rows == 1 {
		for i := range 2 * bits {
			fetch(at(codes, fetchAhead+64*i))
		}
	}
	x.add(operand.U32(uint32(16 * digits)))
	a.ADDQ(operand.U32(uint32(256*bits/2)), codes)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("chunk"))
	for d := digits - 1; d >= 0; d-- {
		each(func(r, i int) {
			a.VCVTDQ2PS(part[r][d][i], part[r][d][i])
			if d < digits-1 {
				a.VFMADD132PS_BCST(at(t, bitsMiddle), part[r][d][i], part[r][digits-1][i])
			}
		})
	}
	for i := range regs { // the words are done with
		a.VMOVUPS(at(scales, 64*i), words[i])
		if rows == 1 {
			a.PREFETCHT0(at(scales, fetchAhead/4+64*i))
		}
	}
	a.TESTQ(zeros, zeros)
	a.JZ(operand.LabelRef("no_zeros"))
	for i := range regs {
		a.VPMOVSXBD(at(zeros, 16*i), some[i])
		a.VCVTDQ2PS(some[i], some[i])
	}
	a.ADDQ(operand.U32(64), zeros)
	each(func(r, i int) {
		a.VFNMADD231PS_BCST(record.at(r, recordSum), some[i], part[r][digits-1][i])
	})
	a.Label("no_zeros")
	each(func(r, i int) {
		a.VMULPS_BCST(record.at(r, recordScale), words[i], spare)
		a.VFMADD231PS(spare, part[r][digits-1][i], all[r][i])
	})
	record.add(operand.U32(recordSize))
	a.ADDQ(operand.U32(256), scales)
	a.DECQ(blocks)
	a.JNZ(operand.LabelRef("block"))
	y := a.rowPointers(rows)
	y.set(at(t, bitsY), at(t, bitsRowY))
	each(func(r, i int) { a.VMOVUPS(all[r][i], y.at(r, 64*i)) })
	a.VZEROUPPER()
	a.RET()
}

// rawStep takes codes of four steps, those of a word of each column that begin at the same bit of
// its bytes.
func (a *asm) rawStep(bits, step int, codes reg.Register, mask reg.Register, words, some []reg.VecPhysical) {
	word := bits * step / 8
	for i, from := range some {
		if turn := bits * (step % (8 / bits)); bits == 8 {
			a.VMOVDQU32(at(codes, 256*word+64*i), from)
		} else if turn == 0 {
			a.VMOVDQU32(at(codes, 256*word+64*i), words[i])
			a.VPANDD(mask, words[i], from)
		} else {
			a.VPSRLD(operand.U8(uint8(turn)), words[i], from)
			a.VPANDD(mask, from, from)
		}
	}
}

// Places in simd.digitBytes: the lowest bits of bytes, what makes codes of them raw, ones of 16
// bits, and the middle of the range.
const (
	bytesMask = 32 * iota
	bytesFlip
	bytesOnes
	bytesMiddle
)

// bitDigitRow multiplies a row of digits by a panel of codes of 4 bits with a sign, with AVX2: 32
// steps of half of the columns make sums of 16 bits, which become floats.
func (a *asm) bitDigitRow(digits int) {
	a.function(label("bitDigits4x%dRow1AVX2", digits), "func(t *BitTile)")
	t := a.Load(a.Param("t"), a.GP64())
	reg64 := func(field int) reg.GPVirtual { return a.field(t, field) }
	codes, scales, zeros, blocks := reg64(bitsW), reg64(bitsScales), reg64(bitsZeros), reg64(bitsBlocks)
	x, record, values, y := reg64(bitsX), reg64(bitsSums), reg64(bitsValues), reg64(bitsY)
	left, row, from := a.GP64(), a.GP64(), a.GP64()
	var words, some, part [2]reg.VecPhysical
	var sums [3][2]reg.VecPhysical
	next := 0
	vec := func() reg.VecPhysical {
		next++
		return ymm.reg(next - 1)
	}
	for i := range words {
		words[i], some[i], part[i] = vec(), vec(), vec()
		for d := range digits {
			sums[d][i] = vec()
		}
	}
	spread, spare := vec(), vec()
	a.zero(ymm, spare)
	for i := range 4 {
		a.VMOVUPS(spare, at(y, 32*i))
	}
	a.Label("block")
	for half := range 2 {
		chunk, noZeros := label("chunk%d", half), label("no_zeros%d", half)
		for i := range part {
			a.zero(ymm, part[i])
		}
		a.MOVQ(at(t, bitsGroups), left)
		a.MOVQ(x, row)
		a.MOVQ(codes, from)
		a.Label(chunk)
		for i := range words {
			for d := range digits {
				a.zero(ymm, sums[d][i])
			}
		}
		for word := range 4 {
			a.digitWord(digits, word, operand.Mem{Base: from, Disp: 128*word + 64*half}, row, values, words, some, sums, spread, spare)
			if half == 0 {
				a.PREFETCHT0(at(from, fetchAhead+128*word))
				a.PREFETCHT0(at(from, fetchAhead+128*word+64))
			}
		}
		a.ADDQ(operand.U32(uint32(32*digits)), row)
		a.ADDQ(operand.U32(4*128), from)
		a.VBROADCASTSS(at(t, bitsMiddle), spread)
		for i := range part {
			for d := digits - 1; d >= 0; d-- {
				a.VPMADDWD(at(values, bytesOnes), sums[d][i], sums[d][i])
				a.VCVTDQ2PS(sums[d][i], sums[d][i])
				if d < digits-1 {
					a.VFMADD213PS(sums[d][i], spread, sums[digits-1][i])
				}
			}
			a.VADDPS(sums[digits-1][i], part[i], part[i])
		}
		a.DECQ(left)
		a.JNZ(operand.LabelRef(chunk))
		for i := range some {
			a.VMOVUPS(at(values, bytesMiddle), some[i])
		}
		a.TESTQ(zeros, zeros)
		a.JZ(operand.LabelRef(noZeros))
		for i := range some {
			a.VPMOVSXBD(at(zeros, 8*i), spare)
			a.VCVTDQ2PS(spare, spare)
			a.VADDPS(spare, some[i], some[i])
		}
		a.ADDQ(operand.U32(16), zeros)
		a.Label(noZeros)
		a.VBROADCASTSS(at(record, recordSum), spread)
		a.VBROADCASTSS(at(record, recordScale), spare)
		for i := range part {
			a.VFNMADD231PS(spread, some[i], part[i])
			a.VMULPS(at(scales, 64*half+32*i), spare, some[i])
			a.VFMADD213PS(at(y, 64*half+32*i), some[i], part[i])
			a.VMOVUPS(part[i], at(y, 64*half+32*i))
		}
	}
	a.MOVQ(row, x)
	a.MOVQ(from, codes)
	a.ADDQ(operand.U32(recordSize), record)
	a.ADDQ(operand.U32(128), scales)
	a.DECQ(blocks)
	a.JNZ(operand.LabelRef("block"))
	a.VZEROUPPER()
	a.RET()
}

// digitWord adds the products of eight steps of two registers of columns: of the even ones, and
// of the odd ones.
func (a *asm) digitWord(digits, word int, codes operand.Mem, x, values reg.Register, words, some [2]reg.VecPhysical, sums [3][2]reg.VecPhysical, spread, spare reg.VecPhysical) {
	for i := range words {
		a.VMOVDQU(codes.Offset(32*i), words[i])
		a.VPXOR(at(values, bytesFlip), words[i], words[i])
		a.VPAND(at(values, bytesMask), words[i], some[i])
		a.VPSRLD(operand.U8(4), words[i], words[i])
		a.VPAND(at(values, bytesMask), words[i], words[i])
	}
	for odd, v := range [][2]reg.VecPhysical{some, words} {
		for d := range digits {
			a.VPBROADCASTD(at(x, 16*digits*(word/2)+16*d+8*(word%2)+4*odd), spread)
			a.VPMADDUBSW(spread, v[0], spare)
			a.VPMADDUBSW(spread, v[1], spread)
			a.VPADDW(spare, sums[d][0], sums[d][0])
			a.VPADDW(spread, sums[d][1], sums[d][1])
		}
	}
}
