package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.ExpandTile and simd.ExpandIntTile, in bytes; a test there compares
// them.
const (
	expandY = 8 * iota
	expandX
	expandMasks
	expandValues
	expandSteps
	expandStart
)

// expandAhead is how many bytes of a list are asked for ahead of those that are read: what
// fetches lines by itself stops at the end of a page.
const expandAhead = 1024

// expand multiplies a row by panels of which zeros are left out: bits tell which columns of a
// step have a value, and the values lie one behind the other.
func expand(a *asm) {
	table := a.expandOrder()
	for _, kind := range []string{"Fused", "Exact"} {
		a.expandFloats(kind)
		a.expandFloatsAVX2(kind, table)
	}
	a.expandInts()
}

// expandFields loads what both tiles have.
func (a *asm) expandFields(t reg.Register) (y, x, masks, values, steps reg.GPVirtual) {
	return a.field(t, expandY), a.field(t, expandX), a.field(t, expandMasks), a.field(t, expandValues), a.field(t, expandSteps)
}

// expandFloats takes panels of 32 columns.
func (a *asm) expandFloats(kind string) {
	a.function("expand"+kind+"AVX512", "func(t *ExpandTile)")
	y, x, masks, values, steps := a.expandFields(a.Load(a.Param("t"), a.GP64()))
	sum := []reg.VecVirtual{a.ZMM(), a.ZMM()}
	for _, s := range sum {
		a.VPXORD(s, s, s)
	}
	a.Label("step")
	for i, s := range sum {
		bits, k, v := a.GP64(), []reg.OpmaskPhysical{reg.K1, reg.K2}[i], a.ZMM()
		a.MOVWLZX(at(masks, 2*i), bits.As32())
		a.KMOVW(bits.As32(), k)
		// From memory the instruction takes several times as long.
		a.VMOVUPS(at(values, 0), v)
		a.VEXPANDPS_Z(v, k, v)
		a.POPCNTL(bits.As32(), bits.As32())
		a.LEAQ(operand.Mem{Base: values, Index: bits, Scale: 4}, values)
		if kind == "Fused" {
			a.VFMADD231PS_BCST(at(x, 0), v, s)
		} else {
			a.VMULPS_BCST(at(x, 0), v, v)
			a.VADDPS(v, s, s)
		}
	}
	a.ADDQ(operand.U8(4), x)
	a.ADDQ(operand.U8(4), masks)
	a.DECQ(steps)
	a.JNZ(operand.LabelRef("step"))
	for i, s := range sum {
		a.VMOVUPS(s, at(y, 64*i))
	}
	a.VZEROUPPER()
	a.RET()
}

// expandOrder is a table of eight bytes for each eight bits: which of the values that come next
// belongs to a column, less than zero for none.
func (a *asm) expandOrder() operand.Mem {
	m := a.StaticGlobal("expandOrder")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for mask := range 256 {
		places := uint64(0)
		for c := range 8 {
			place := uint64(0x80)
			if mask>>c&1 == 1 {
				place = uint64(bits.OnesCount(uint(mask & (1<<c - 1))))
			}
			places |= place << (8 * c)
		}
		a.AddDatum(8*mask, operand.U64(places))
	}
	return m
}

// expandFloatsAVX2 takes panels of 16 columns. Values go to their columns by a table.
func (a *asm) expandFloatsAVX2(kind string, table operand.Mem) {
	a.function("expand"+kind+"AVX2", "func(t *ExpandTile)")
	y, x, masks, values, steps := a.expandFields(a.Load(a.Param("t"), a.GP64()))
	places := a.GP64()
	a.LEAQ(table, places)
	sum := []reg.VecVirtual{a.YMM(), a.YMM()}
	for _, s := range sum {
		a.VXORPS(s, s, s)
	}
	spread := a.YMM()
	a.Label("step")
	a.PREFETCHT0(at(values, expandAhead))
	a.VBROADCASTSS(at(x, 0), spread)
	for i, s := range sum {
		bits, order, v := a.GP64(), a.YMM(), a.YMM()
		a.MOVBLZX(at(masks, i), bits.As32())
		a.VPMOVSXBD(operand.Mem{Base: places, Index: bits, Scale: 8}, order)
		a.VPERMPS(at(values, 0), order, v)
		a.VPSRAD(operand.U8(31), order, order)
		a.VANDNPS(v, order, v)
		a.POPCNTL(bits.As32(), bits.As32())
		a.LEAQ(operand.Mem{Base: values, Index: bits, Scale: 4}, values)
		if kind == "Fused" {
			a.VFMADD231PS(spread, v, s)
		} else {
			a.VMULPS(spread, v, v)
			a.VADDPS(v, s, s)
		}
	}
	a.ADDQ(operand.U8(4), x)
	a.ADDQ(operand.U8(2), masks)
	a.DECQ(steps)
	a.JNZ(operand.LabelRef("step"))
	for i, s := range sum {
		a.VMOVUPS(s, at(y, 32*i))
	}
	a.VZEROUPPER()
	a.RET()
}

// expandInts takes panels of 32 columns of fours of 8-bit weights, by fours of codes without a
// sign. Sums begin with those of start.
func (a *asm) expandInts() {
	a.function("expandBytesVNNI", "func(t *ExpandIntTile)")
	t := a.Load(a.Param("t"), a.GP64())
	y, x, masks, values, steps := a.expandFields(t)
	start := a.field(t, expandStart)
	sum := []reg.VecVirtual{a.ZMM(), a.ZMM()}
	for i, s := range sum {
		a.VMOVDQU32(at(start, 64*i), s)
	}
	spread := a.ZMM()
	a.Label("step")
	a.PREFETCHT0(at(values, expandAhead))
	a.VPBROADCASTD(at(x, 0), spread)
	for i, s := range sum {
		count, k, v := a.GP64(), []reg.OpmaskPhysical{reg.K1, reg.K2}[i], a.ZMM()
		a.KMOVQ(at(masks, 8*i), k)
		a.VMOVDQU32(at(values, 0), v)
		a.VPEXPANDB_Z(v, k, v)
		a.POPCNTQ(at(masks, 8*i), count)
		a.ADDQ(count, values)
		a.VPDPBUSD(v, spread, s)
	}
	a.ADDQ(operand.U8(4), x)
	a.ADDQ(operand.U8(16), masks)
	a.DECQ(steps)
	a.JNZ(operand.LabelRef("step"))
	for i, s := range sum {
		a.VMOVDQU32(s, at(y, 64*i))
	}
	a.VZEROUPPER()
	a.RET()
}
