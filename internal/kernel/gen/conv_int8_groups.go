package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.GroupTile, in bytes; a test there compares them.
const (
	groupA = 8 * iota
	groupRowA
	groupK
	groupTaps
	groupOffs
	groupB
	groupC
	groupRowC
	groupStart
)

// groupKind is what a tile of a convolution of groups computes: 16 or 32 outputs of a group, or
// all outputs of four groups of four channels, or of two of eight.
type groupKind string

const (
	groupOne    groupKind = "One"
	groupTwo    groupKind = "Two"
	groupFours  groupKind = "Fours"
	groupEights groupKind = "Eights"
)

func byteGroups(a *asm) {
	orders := map[groupKind]operand.Mem{groupFours: a.turnOrder(), groupEights: a.groupOrder()}
	for _, kind := range []groupKind{groupOne, groupTwo, groupFours, groupEights} {
		for rows := 1; rows <= 12; rows++ {
			a.groupTile(rows, kind, orders[kind])
		}
	}
	halves := map[groupKind]operand.Mem{
		groupFours:  a.dwords("halfFours", 0, 4, 1, 5, 2, 6, 3, 7),
		groupEights: a.dwords("halfEights", 0, 4, 2, 6, 1, 5, 3, 7),
	}
	for _, kind := range []groupKind{groupOne, groupFours, groupEights} {
		for _, dot := range []bool{false, true} {
			for rows := 1; rows <= halfGroupRows(kind, dot); rows++ {
				a.halfGroupTile(rows, kind, dot, halves[kind])
			}
		}
	}
}

// halfGroupRows is the most positions whose sums 256-bit registers hold.
func halfGroupRows(kind groupKind, dot bool) int {
	switch {
	case kind == groupEights && dot:
		return 3
	case kind == groupEights:
		return 2
	case dot:
		return 6
	}
	return 4
}

// halfGroupTile is groupTile with 256-bit registers. Without dot products, even and odd bytes are
// widened to 16 bits.
func (a *asm) halfGroupTile(rows int, kind groupKind, dot bool, byOutput operand.Mem) {
	set := "AVX2"
	if dot {
		set = "AVXVNNI"
	}
	a.function(label("group%s%d%s", kind, rows, set), "func(t *GroupTile)")
	t := a.Load(a.Param("t"), a.GP64())
	small, vecs := kind != groupOne, 2
	if kind == groupEights {
		vecs = 4
	}
	sum := func(r, v int) reg.VecPhysical { return ymm.reg(r*vecs + v) }
	free := rows * vecs
	take := func(n int) (all []reg.VecPhysical) {
		for range n {
			all = append(all, ymm.reg(free))
			free++
		}
		return all
	}
	p, start := a.groupWalk(ymm, t, rows, vecs, small, func(p *rowPointers, pb reg.Register) {
		spread := func(r int, to reg.VecPhysical) {
			if small {
				a.VBROADCASTI128(p.at(r, 0), to)
			} else {
				a.VPBROADCASTD(p.at(r, 0), to)
			}
		}
		if dot && vecs == 2 {
			b, x := take(2), take(1)[0]
			for v := range vecs {
				a.VMOVDQU(at(pb, 32*v), b[v])
			}
			for r := range rows {
				spread(r, x)
				for v := range vecs {
					a.dotInts(ymm, dotQuads, b[v], x, sum(r, v))
				}
			}
		} else if dot {
			b, x := take(1)[0], take(rows)
			for r := range rows {
				spread(r, x[r])
			}
			for v := range vecs {
				a.VMOVDQU(at(pb, 32*v), b)
				for r := range rows {
					a.dotInts(ymm, dotQuads, b, x[r], sum(r, v))
				}
			}
		} else {
			product := take(1)[0]
			weights := func(v int, b []reg.VecPhysical) {
				a.VMOVDQU(at(pb, 32*v), b[1])
				a.VPSLLW(operand.U8(8), b[1], b[0])
				a.VPSRAW(operand.U8(8), b[0], b[0])
				a.VPSRAW(operand.U8(8), b[1], b[1])
			}
			values := func(r int, x []reg.VecPhysical) {
				spread(r, x[1])
				a.VPSLLW(operand.U8(8), x[1], x[0])
				a.VPSRLW(operand.U8(8), x[0], x[0])
				a.VPSRLW(operand.U8(8), x[1], x[1])
			}
			multiply := func(b, x []reg.VecPhysical, sum reg.VecPhysical) {
				for odd := range 2 {
					a.VPMADDWD(b[odd], x[odd], product)
					a.VPADDD(product, sum, sum)
				}
			}
			if vecs == 2 {
				b, x := [][]reg.VecPhysical{take(2), take(2)}, take(2)
				weights(0, b[0])
				weights(1, b[1])
				for r := range rows {
					values(r, x)
					multiply(b[0], x, sum(r, 0))
					multiply(b[1], x, sum(r, 1))
				}
			} else {
				b, x := take(2), [][]reg.VecPhysical{take(2), take(2)}
				for r := range rows {
					values(r, x[r])
				}
				for v := range vecs {
					weights(v, b)
					for r := range rows {
						multiply(b, x[r], sum(r, v))
					}
				}
			}
		}
	})
	if small {
		free = rows * vecs
		order, low := take(1)[0], take(1)[0]
		a.VMOVDQU(byOutput, order)
		for r := range rows {
			x, y := sum(r, 0), sum(r, 1)
			if kind == groupEights {
				a.VPHADDD(y, x, x)
				a.VPHADDD(sum(r, 3), sum(r, 2), y)
			}
			a.VPERMD(x, order, x)
			a.VPERMD(y, order, y)
			if kind == groupFours { // two outputs of four groups each: 4 by 4 words change sides
				a.VPUNPCKLQDQ(y, x, low)
				a.VPUNPCKHQDQ(y, x, y)
				x, low = low, x
			}
			a.VPERM2I128(operand.U8(0x20), y, x, low)
			a.VPERM2I128(operand.U8(0x31), y, x, y)
			a.VPADDD(at(start, 0), low, sum(r, 0))
			a.VPADDD(at(start, 32), y, sum(r, 1))
			if kind == groupFours {
				low = x
			}
		}
	}
	p.set(at(t, groupC), at(t, groupRowC))
	for r := range rows {
		for v := range 2 {
			a.VMOVDQU(sum(r, v), p.at(r, 32*v))
		}
	}
	a.VZEROUPPER()
	a.RET()
}

// groupWalk gives the sums of a tile, in the first registers, what they begin with: nothing for
// small groups, whose start is added at the end. It walks along all taps, and along the channels of
// a wide group, and calls body for four channels of each group and the weights at pb.
func (a *asm) groupWalk(w width, t reg.Register, rows, vecs int, small bool, body func(p *rowPointers, pb reg.Register)) (p *rowPointers, start reg.Register) {
	start = a.GP64()
	a.MOVQ(at(t, groupStart), start)
	for i := range rows * vecs {
		from, to := at(start, w.bytes()*(i%vecs)), w.reg(i)
		switch {
		case small:
			a.zero(w, to)
		case w.masks:
			a.VMOVDQU32(from, to)
		default:
			a.VMOVDQU(from, to)
		}
	}
	p = a.rowPointers(rows)
	p.set(at(t, groupA), at(t, groupRowA))
	pb, k, taps, offs, next := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(at(t, groupB), pb)
	a.MOVQ(at(t, groupTaps), taps)
	a.MOVQ(at(t, groupOffs), offs)
	a.Label("tap")
	if !small {
		a.MOVQ(at(t, groupK), k)
		a.Label("step")
	}
	body(p, pb)
	a.ADDQ(operand.U32(uint32(w.bytes()*vecs)), pb)
	if !small {
		p.add(operand.U32(4))
		a.DECQ(k)
		a.JNZ(operand.LabelRef("step"))
	}
	a.MOVLQSX(at(offs, 0), next)
	a.ADDQ(operand.U32(4), offs)
	p.add(next)
	a.DECQ(taps)
	a.JNZ(operand.LabelRef("tap"))
	return p, start
}

// dwords is a table of words of 32 bits.
func (a *asm) dwords(name string, all ...uint32) operand.Mem {
	m := a.StaticGlobal(name)
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range all {
		a.AddDatum(4*i, operand.U32(v))
	}
	return m
}

// groupTile writes the sums of rows positions over all taps. Of a wide group four channels are
// spread over a register and multiplied by the weights of 16 outputs. Of small groups 16 channels
// of a position are repeated four times: each word, four channels, meets the weights of one
// output in each lane; words of one output are added up at the end, and put in order.
func (a *asm) groupTile(rows int, kind groupKind, byOutput operand.Mem) {
	a.function(label("group%s%dVNNI", kind, rows), "func(t *GroupTile)")
	t := a.Load(a.Param("t"), a.GP64())
	small := kind == groupFours || kind == groupEights
	vecs := 1
	if kind == groupTwo || kind == groupEights {
		vecs = 2
	}
	sum := func(r, v int) reg.VecPhysical { return zmm.reg(r*vecs + v) }
	b := [2]reg.VecPhysical{zmm.reg(rows * vecs), zmm.reg(rows*vecs + 1)}
	spread, order := zmm.reg(rows*vecs+2), zmm.reg(rows*vecs+3)
	p, start := a.groupWalk(zmm, t, rows, vecs, small, func(p *rowPointers, pb reg.Register) {
		for v := range vecs {
			a.VMOVDQU32(at(pb, 64*v), b[v])
		}
		for r := range rows {
			if small {
				a.VBROADCASTI32X4(p.at(r, 0), spread)
			} else {
				a.VPBROADCASTD(p.at(r, 0), spread)
			}
			for v := range vecs {
				a.VPDPBUSD(b[v], spread, sum(r, v))
			}
		}
	})
	if small {
		table := a.GP64()
		a.LEAQ(byOutput, table)
		a.VPMOVZXBD(operand.Mem{Base: table}, order)
		for r := range rows {
			x := sum(r, 0)
			if kind == groupEights {
				// Every other word of both, and those between.
				a.VSHUFPS(operand.U8(0x88), sum(r, 1), x, spread)
				a.VSHUFPS(operand.U8(0xdd), sum(r, 1), x, x)
				a.VPADDD(spread, x, x)
			}
			a.VPERMD(x, order, x)
			a.VPADDD(at(start, 0), x, x)
		}
	}
	p.set(at(t, groupC), at(t, groupRowC))
	for r := range rows {
		for v := range vecs {
			if small && v > 0 {
				continue
			}
			a.VMOVDQU32(sum(r, v), p.at(r, 64*v))
		}
	}
	a.VZEROUPPER()
	a.RET()
}

// groupOrder is a table of 16 bytes: in which word the sum of each output of two groups of eight
// is, of which the second register has the upper four.
func (a *asm) groupOrder() operand.Mem {
	m := a.StaticGlobal("groupOrder")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		a.AddDatum(i, operand.U8(uint8(i%4*4+i/8+i%8/4*2)))
	}
	return m
}
