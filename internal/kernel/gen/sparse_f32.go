package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.SparseTile, in bytes; a test there compares them.
const (
	sparseX     = 8 * iota
	sparsePanel // from one panel to the next
	sparseOffs
	sparseVals
	sparseCount
	sparseY
	sparseRow // of y
	sparseBias
	sparseMask
	sparseMin   // and Max
	sparseBits  // and Flags
	sparseMax   = sparseMin + 4
	sparseFlags = sparseBits + 4
)

func sparse(a *asm) {
	for _, w := range []width{ymm, zmm} {
		for _, exact := range []bool{false, true} {
			for panels := 1; panels <= 4; panels++ {
				a.sparseTile(w, 1, panels, exact)
			}
			a.sparseTile(w, 4, 1, exact)
			if w == zmm {
				a.sparseTile(w, 4, 2, exact)
			}
		}
	}
}

// sparseTile writes the product of the values that are not zero of one row, or of
// four rows that have them at the same steps, by a few panels, of which the last
// one may lack columns.
func (a *asm) sparseTile(w width, rows, panels int, exact bool) {
	kind := "Fused"
	if exact {
		kind = "Exact"
	}
	a.function(label("sparse%s%dx%d%s", kind, rows, panels, w.set), "func(t *SparseTile)")
	t := a.Load(a.Param("t"), a.GP64())
	vecs := 2 * panels
	sum := func(r, v int) reg.VecPhysical { return w.reg(r*vecs + v) }
	next := rows * vecs
	fresh := func() reg.VecPhysical {
		next++
		return w.reg(next - 1)
	}
	spread, product := fresh(), fresh()
	var xs []reg.VecPhysical
	if rows > 1 {
		for range vecs {
			xs = append(xs, fresh())
		}
	}
	x, panel, panel3, offs, vals, count, y, rowY, flags, mask := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(at(t, sparseX), x)
	a.MOVQ(at(t, sparsePanel), panel)
	a.LEAQ(operand.Mem{Base: panel, Index: panel, Scale: 2}, panel3)
	a.MOVQ(at(t, sparseOffs), offs)
	a.MOVQ(at(t, sparseVals), vals)
	a.MOVQ(at(t, sparseCount), count)
	a.MOVQ(at(t, sparseY), y)
	a.MOVQ(at(t, sparseRow), rowY)
	a.MOVL(at(t, sparseFlags), flags.As32())
	k1, k2 := reg.K1, reg.K2
	row3 := a.GP64()
	if rows > 1 {
		a.LEAQ(operand.Mem{Base: rowY, Index: rowY, Scale: 2}, row3)
	}
	lie := rowPointers{a: a, step: rowY, step3: row3, bases: []reg.GPVirtual{y}}
	row := lie.at
	masked := func(part string, f func(masked bool)) {
		a.TESTL(operand.U32(flagMasked), flags.As32())
		a.JNZ(operand.LabelRef(part + "_masked"))
		f(false)
		a.JMP(operand.LabelRef(part + "_end"))
		a.Label(part + "_masked")
		if w == zmm {
			a.MOVL(at(t, sparseBits), mask.As32())
			a.KMOVD(mask.As32(), k1)
			a.SHRL(operand.U8(16), mask.As32())
			a.KMOVD(mask.As32(), k2)
		} else {
			a.MOVQ(at(t, sparseMask), mask)
		}
		f(true)
		a.Label(part + "_end")
	}
	each := func(f func(r, v int)) {
		for r := range rows {
			for v := range vecs {
				f(r, v)
			}
		}
	}
	a.TESTL(operand.U32(flagContinue), flags.As32())
	a.JNZ(operand.LabelRef("continue"))
	each(func(r, v int) { a.zero(w, sum(r, v)) })
	a.JMP(operand.LabelRef("begin"))
	a.Label("continue")
	masked("first", func(m bool) {
		each(func(r, v int) {
			switch {
			case !m || v < vecs-2:
				a.VMOVUPS(row(r, v*w.bytes()), sum(r, v))
			case w == zmm:
				a.VMOVUPS_Z(row(r, v*w.bytes()), []reg.OpmaskPhysical{k1, k2}[v%2], sum(r, v))
			default:
				a.VMOVUPS(at(mask, 32*(v%2)), sum(r, v))
				a.VMASKMOVPS(row(r, v*w.bytes()), sum(r, v), sum(r, v))
			}
		})
	})
	a.Label("begin")
	a.TESTQ(count, count)
	a.JZ(operand.LabelRef("end"))
	at2 := a.GP64()
	from := func(v int) operand.Mem {
		m := operand.Mem{Base: at2, Disp: v % 2 * w.bytes()}
		switch v / 2 {
		case 1:
			m.Index, m.Scale = panel, 1
		case 2:
			m.Index, m.Scale = panel, 2
		case 3:
			m.Index, m.Scale = panel3, 1
		}
		return m
	}
	a.Label("step")
	a.MOVLQSX(operand.Mem{Base: offs}, at2)
	a.ADDQ(x, at2)
	for v := range xs {
		a.VMOVUPS(from(v), xs[v])
	}
	for r := range rows {
		a.VBROADCASTSS(at(vals, 4*r), spread)
		for v := range vecs {
			var of operand.Op = from(v)
			if rows > 1 {
				of = xs[v]
			}
			if exact {
				a.VMULPS(of, spread, product)
				a.VADDPS(product, sum(r, v), sum(r, v))
			} else {
				a.VFMADD231PS(of, spread, sum(r, v))
			}
		}
	}
	a.ADDQ(operand.U32(4), offs)
	a.ADDQ(operand.U32(uint32(4*rows)), vals)
	a.DECQ(count)
	a.JNZ(operand.LabelRef("step"))
	a.Label("end")
	bias := a.GP64()
	a.MOVQ(at(t, sparseBias), bias)
	a.TESTQ(bias, bias)
	a.JZ(operand.LabelRef("no_bias"))
	for r := range rows {
		a.VBROADCASTSS(at(bias, 4*r), spread)
		for v := range vecs {
			a.VADDPS(spread, sum(r, v), sum(r, v))
		}
	}
	a.Label("no_bias")
	a.TESTL(operand.U32(flagClamp), flags.As32())
	a.JZ(operand.LabelRef("no_clamp"))
	a.VBROADCASTSS(at(t, sparseMin), spread)
	a.VBROADCASTSS(at(t, sparseMax), product)
	each(func(r, v int) {
		// With the sum last, a sum that is NaN stays.
		a.VMAXPS(sum(r, v), spread, sum(r, v))
		a.VMINPS(sum(r, v), product, sum(r, v))
	})
	a.Label("no_clamp")
	masked("write", func(m bool) {
		each(func(r, v int) {
			switch {
			case !m || v < vecs-2:
				a.VMOVUPS(sum(r, v), row(r, v*w.bytes()))
			case w == zmm:
				a.VMOVUPS(sum(r, v), []reg.OpmaskPhysical{k1, k2}[v%2], row(r, v*w.bytes()))
			default:
				a.VMOVUPS(at(mask, 32*(v%2)), product)
				a.VMASKMOVPS(sum(r, v), product, row(r, v*w.bytes()))
			}
		})
	})
	a.VZEROUPPER()
	a.RET()
}
