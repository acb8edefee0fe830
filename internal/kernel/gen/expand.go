package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.ExpandTile, in bytes; a test there compares them.
const (
	expandY = 8 * iota
	expandX
	expandMasks
	expandValues
	expandSteps
)

// expand multiplies a row by panels of 32 columns of which zeros are left out: bits tell which columns of a step have a value, and the values lie one behind the
// other.
func expand(a *asm) {
	for _, kind := range []string{"Fused", "Exact"} {
		a.function("expand"+kind+"AVX512", "func(t *byte)")
		t := a.Load(a.Param("t"), a.GP64())
		y, x, masks, values, steps := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
		a.MOVQ(at(t, expandY), y)
		a.MOVQ(at(t, expandX), x)
		a.MOVQ(at(t, expandMasks), masks)
		a.MOVQ(at(t, expandValues), values)
		a.MOVQ(at(t, expandSteps), steps)
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
}
