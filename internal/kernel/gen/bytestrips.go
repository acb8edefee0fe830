package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.ByteStrip, in bytes; a test there compares them.
const (
	byteDst = 8 * iota
	byteLineDst
	byteNextDst
	byteSrc
	byteLineSrc
	byteNextSrc
	byteW
	byteNextW
	byteStart
	byteNextStart
	byteN
	byteAt
	byteTap
	byteTop
	byteReal
	byteLead
	byteLines
	byteOdd
	byteIndex
	byteMasks
	byteStores = byteMasks + 8*5
	byteEdge   = byteStores + 8
	byteSign   = byteEdge + 4
	byteFlags  = byteSign + 4
)

func byteStrips(a *asm) {
	for _, k := range []int{3, 5} {
		for step := 1; step <= 2; step++ {
			a.byteStrip(k, step, 4, false)
			for _, vecs := range []int{1, 2, 4} {
				a.byteStrip(k, step, vecs, true)
			}
		}
	}
}

// byteStrip writes the walk of a k by k window over 8-bit numbers down a strip of lines;
// see strip. Four taps of a line are multiplied and added in one step, the weights of
// those that are missing being zero. Of 64 channels (lanes) the taps are interleaved; of
// 16 positions in each of vecs registers (spread) the bytes are put where they are needed,
// from one load. Lines beyond the picture are made of the edge.
func (a *asm) byteStrip(k, step, vecs int, spread bool) {
	kind := "Lanes"
	if spread {
		kind = "Spread"
	}
	a.function(label("byte%s%dx%dby%dVNNI", kind, k, vecs, step), "func(t *byte)")
	t := a.Load(a.Param("t"), a.GP64())
	next := 0
	fresh := func() reg.VecPhysical {
		next++
		return zmm.reg(next - 1)
	}
	live, groups := (k-1)/step+1, (k+3)/4
	sums := make([][]reg.VecPhysical, live)
	for j := range sums {
		for range vecs {
			sums[j] = append(sums[j], fresh())
		}
	}
	edge, sign := fresh(), fresh()
	var temp [5]reg.VecPhysical
	for i := range temp {
		temp[i] = fresh()
	}
	field := func(off int) reg.GPVirtual {
		r := a.GP64()
		a.MOVQ(at(t, off), r)
		return r
	}
	dst0, src0, pw, start, n := field(byteDst), field(byteSrc), field(byteW), field(byteStart), field(byteN)
	src, dst, lead, lines, between, row := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	tap, left := field(byteTap), a.GP64()
	kmask := func(i int) reg.OpmaskPhysical {
		return []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3, reg.K4, reg.K5, reg.K6, reg.K7}[i]
	}
	loads := k
	var index []reg.VecPhysical
	if spread {
		loads = vecs
		p := field(byteIndex)
		for g := range groups {
			index = append(index, fresh())
			a.VMOVDQU64(at(p, 64*g), index[g])
		}
	}
	for i := range loads {
		a.KMOVQ(at(t, byteMasks+8*i), kmask(i))
	}
	a.VPBROADCASTD(at(t, byteEdge), edge)
	a.VPBROADCASTD(at(t, byteSign), sign)

	load := func(i int, m operand.Mem, to reg.VecPhysical) {
		a.VMOVDQA64(edge, to)
		a.VMOVDQU8(m, kmask(i), to)
		a.VPXORD(sign, to, to)
	}
	// add meets group g of the taps of a line with the results whose windows it is in.
	add := func(parity, g, v int, quads reg.VecPhysical) {
		for j := range live {
			ky := k - 1 - parity - j*step
			switch {
			case ky < 0:
			case spread:
				a.VPDPBUSD_BCST(at(pw, 4*(ky*groups+g)), quads, sums[j][v])
			default:
				a.VPDPBUSD(at(pw, 64*((ky*groups+g)*vecs+v)), quads, sums[j][v])
			}
		}
	}
	lines0 := 0
	line := func(parity int) {
		name := label("line%d", lines0)
		lines0++
		a.CMPQ(row, at(t, byteReal))
		a.JAE(operand.LabelRef(name + "_edge"))
		if spread {
			for v := range vecs {
				load(v, operand.Mem{Base: src, Disp: 16 * step * v}, temp[0])
				for g := range groups {
					a.VPERMB(temp[0], index[g], temp[1+g])
					add(parity, g, v, temp[1+g])
				}
			}
		} else {
			a.MOVQ(src, left)
			for g := range groups {
				there := min(4, k-4*g)
				for i := range there {
					load(4*g+i, operand.Mem{Base: left}, temp[i])
					a.ADDQ(tap, left)
				}
				x := [4]reg.VecPhysical{temp[0], temp[0], temp[0], temp[0]}
				for i := range there {
					x[i] = temp[i]
				}
				t0, t1, t2, t3, t4 := temp[0], temp[1], temp[2], temp[3], temp[4]
				a.VPUNPCKLBW(x[1], x[0], t4)
				if there == 1 {
					// All four are the same.
					a.VPUNPCKHBW(x[1], x[0], t0)
					a.VMOVDQA64(t4, t1)
					a.VMOVDQA64(t0, t2)
				} else {
					a.VPUNPCKHBW(x[1], x[0], t0)
					a.VPUNPCKLBW(x[3], x[2], t1)
					a.VPUNPCKHBW(x[3], x[2], t2)
				}
				a.VPUNPCKLWD(t1, t4, t3)
				a.VPUNPCKHWD(t1, t4, t4)
				a.VPUNPCKLWD(t2, t0, t1)
				a.VPUNPCKHWD(t2, t0, t0)
				for v, q := range []reg.VecPhysical{t3, t4, t1, t0} {
					add(parity, g, v, q)
				}
			}
		}
		a.ADDQ(at(t, byteLineSrc), src)
		a.JMP(operand.LabelRef(name + "_end"))
		a.Label(name + "_edge")
		a.VPXORD(sign, edge, temp[0])
		for g := range groups {
			for v := range vecs {
				add(parity, g, v, temp[0])
			}
		}
		a.Label(name + "_end")
		a.INCQ(row)
	}
	begin := func(j int) {
		for v := range vecs {
			if spread {
				a.VPBROADCASTD(at(start, 0), sums[j][v])
			} else {
				a.VMOVDQU64(at(start, 64*v), sums[j][v])
			}
		}
	}
	store := func() {
		if spread {
			for v := range vecs {
				a.KMOVW(at(t, byteStores+2*v), reg.K7)
				a.VMOVDQU32(sums[0][v], reg.K7, at(dst, 64*v))
			}
		} else {
			// Each register has four channels of each sixteen.
			s := sums[0]
			for i, by := range []uint8{0x44, 0xee} {
				a.VSHUFI32X4(operand.U8(by), s[1], s[0], temp[i])
				a.VSHUFI32X4(operand.U8(by), s[3], s[2], temp[2+i])
			}
			for i, by := range []uint8{0x88, 0xdd} {
				a.VSHUFI32X4(operand.U8(by), temp[2], temp[0], temp[4])
				a.VMOVDQU64(temp[4], at(dst, 64*i))
				a.VSHUFI32X4(operand.U8(by), temp[3], temp[1], temp[4])
				a.VMOVDQU64(temp[4], at(dst, 128+64*i))
			}
		}
		a.ADDQ(at(t, byteLineDst), dst)
	}

	a.Label("strip")
	a.MOVQ(src0, src)
	a.ADDQ(at(t, byteAt), src)
	a.MOVQ(dst0, dst)
	for j := range live {
		begin(j)
	}
	a.XORQ(row, row)
	a.SUBQ(at(t, byteTop), row)
	a.MOVQ(at(t, byteLead), lead)
	a.MOVQ(at(t, byteLines), lines)
	if step == 2 {
		a.MOVQ(at(t, byteOdd), between)
	}
	a.Label("line")
	line(0)
	a.DECQ(lead)
	a.JNS(operand.LabelRef("none"))
	store()
	a.Label("none")
	for j := range live - 1 {
		for v := range vecs {
			a.VMOVDQA64(sums[j+1][v], sums[j][v])
		}
	}
	begin(live - 1)
	a.DECQ(lines)
	if step == 2 {
		a.TESTQ(between, between)
		a.JZ(operand.LabelRef("all"))
		line(1)
		a.DECQ(between)
		a.TESTQ(lines, lines)
	}
	a.JNZ(operand.LabelRef("line"))
	if step == 2 {
		a.Label("all")
	}
	a.ADDQ(at(t, byteNextDst), dst0)
	a.ADDQ(at(t, byteNextSrc), src0)
	a.ADDQ(at(t, byteNextW), pw)
	a.ADDQ(at(t, byteNextStart), start)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("strip"))
	a.VZEROUPPER()
	a.RET()
}
