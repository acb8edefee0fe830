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
	each := func(f func(r, v int)) {
		for r := range rows {
			for v := range vecs {
				f(r, v)
			}
		}
	}
	start := a.GP64()
	a.MOVQ(at(t, groupStart), start)
	each(func(r, v int) {
		if small {
			a.zero(zmm, sum(r, v))
			return
		}
		a.VMOVDQU32(at(start, 64*v), sum(r, v))
	})
	p := a.rowPointers(rows)
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
	a.ADDQ(operand.U32(uint32(64*vecs)), pb)
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
