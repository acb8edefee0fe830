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

// sparseWriter writes one tile of sparse rows. It holds the shape of the tile and its registers.
type sparseWriter struct {
	*asm
	w          width
	rows, vecs int
	exact      bool // multiply and add separately, each rounded

	t                                   reg.Register
	x, panel, panel3, offs, vals, count reg.GPVirtual
	y, rowY, flags, mask, source        reg.GPVirtual
	lie                                 rowPointers // of the results
	spread, product                     reg.VecPhysical
	xs                                  []reg.VecPhysical // of the panels, for several rows
}

// sparseTile writes the product of the nonzero values of one row by up to four panels. With four
// rows, these have their nonzero values at the same steps. The last panel may lack columns.
func (a *asm) sparseTile(w width, rows, panels int, exact bool) {
	kind := "Fused"
	if exact {
		kind = "Exact"
	}
	a.function(label("sparse%s%dx%d%s", kind, rows, panels, w.set), "func(t *SparseTile)")
	s := &sparseWriter{
		asm: a, w: w, rows: rows, vecs: 2 * panels, exact: exact, t: a.Load(a.Param("t"), a.GP64()),
	}
	s.loadFields()
	s.startSums()
	s.TESTQ(s.count, s.count)
	s.JZ(operand.LabelRef("end"))
	s.source = s.GP64()
	s.step()
	s.Label("end")
	s.addBias()
	s.finish()
}

// sum returns the register of the sums of row r and register v.
func (s *sparseWriter) sum(r, v int) reg.VecPhysical { return s.w.reg(r*s.vecs + v) }

// loadFields assigns the registers after those of the sums and loads the pointers.
func (s *sparseWriter) loadFields() {
	next := s.rows * s.vecs
	fresh := func() reg.VecPhysical {
		next++
		return s.w.reg(next - 1)
	}
	s.spread, s.product = fresh(), fresh()
	if s.rows > 1 {
		for range s.vecs {
			s.xs = append(s.xs, fresh())
		}
	}
	s.x, s.panel, s.panel3, s.offs, s.vals = s.GP64(), s.GP64(), s.GP64(), s.GP64(), s.GP64()
	s.count, s.y, s.rowY, s.flags, s.mask = s.GP64(), s.GP64(), s.GP64(), s.GP64(), s.GP64()
	s.MOVQ(at(s.t, sparseX), s.x)
	s.MOVQ(at(s.t, sparsePanel), s.panel)
	s.LEAQ(operand.Mem{Base: s.panel, Index: s.panel, Scale: 2}, s.panel3)
	s.MOVQ(at(s.t, sparseOffs), s.offs)
	s.MOVQ(at(s.t, sparseVals), s.vals)
	s.MOVQ(at(s.t, sparseCount), s.count)
	s.MOVQ(at(s.t, sparseY), s.y)
	s.MOVQ(at(s.t, sparseRow), s.rowY)
	s.MOVL(at(s.t, sparseFlags), s.flags.As32())
	row3 := s.GP64()
	if s.rows > 1 {
		s.LEAQ(operand.Mem{Base: s.rowY, Index: s.rowY, Scale: 2}, row3)
	}
	s.lie = rowPointers{a: s.asm, step: s.rowY, step3: row3, bases: []reg.GPVirtual{s.y}}
}

// forColumns runs f for all columns, or masked if columns are missing. part is the prefix of its
// labels.
func (s *sparseWriter) forColumns(part string, f func(masked bool)) {
	s.TESTL(operand.U32(flagMasked), s.flags.As32())
	s.JNZ(operand.LabelRef(part + "_masked"))
	f(false)
	s.JMP(operand.LabelRef(part + "_end"))
	s.Label(part + "_masked")
	if s.w == zmm {
		s.MOVL(at(s.t, sparseBits), s.mask.As32())
		s.KMOVD(s.mask.As32(), reg.K1)
		s.SHRL(operand.U8(16), s.mask.As32())
		s.KMOVD(s.mask.As32(), reg.K2)
	} else {
		s.MOVQ(at(s.t, sparseMask), s.mask)
	}
	f(true)
	s.Label(part + "_end")
}

// forEach runs f for each row and register of the tile.
func (s *sparseWriter) forEach(f func(r, v int)) {
	for r := range s.rows {
		for v := range s.vecs {
			f(r, v)
		}
	}
}

// startSums sets the sums to zero, or to the earlier results with flagContinue.
func (s *sparseWriter) startSums() {
	s.TESTL(operand.U32(flagContinue), s.flags.As32())
	s.JNZ(operand.LabelRef("continue"))
	s.forEach(func(r, v int) { s.zero(s.w, s.sum(r, v)) })
	s.JMP(operand.LabelRef("begin"))
	s.Label("continue")
	s.forColumns("first", func(m bool) {
		s.forEach(func(r, v int) {
			switch {
			case !m || v < s.vecs-2:
				s.VMOVUPS(s.lie.at(r, v*s.w.bytes()), s.sum(r, v))
			case s.w == zmm:
				s.VMOVUPS_Z(s.lie.at(r, v*s.w.bytes()), []reg.OpmaskPhysical{reg.K1, reg.K2}[v%2], s.sum(r, v))
			default:
				s.VMOVUPS(at(s.mask, 32*(v%2)), s.sum(r, v))
				s.VMASKMOVPS(s.lie.at(r, v*s.w.bytes()), s.sum(r, v), s.sum(r, v))
			}
		})
	})
	s.Label("begin")
}

// from returns the address of register v of the panels at the current step.
func (s *sparseWriter) from(v int) operand.Mem {
	m := operand.Mem{Base: s.source, Disp: v % 2 * s.w.bytes()}
	switch v / 2 {
	case 1:
		m.Index, m.Scale = s.panel, 1
	case 2:
		m.Index, m.Scale = s.panel, 2
	case 3:
		m.Index, m.Scale = s.panel3, 1
	}
	return m
}

// step adds the products of each nonzero value.
func (s *sparseWriter) step() {
	s.Label("step")
	s.MOVLQSX(operand.Mem{Base: s.offs}, s.source)
	s.ADDQ(s.x, s.source)
	for v := range s.xs {
		s.VMOVUPS(s.from(v), s.xs[v])
	}
	for r := range s.rows {
		s.VBROADCASTSS(at(s.vals, 4*r), s.spread)
		for v := range s.vecs {
			var of operand.Op = s.from(v)
			if s.rows > 1 {
				of = s.xs[v]
			}
			if s.exact {
				s.VMULPS(of, s.spread, s.product)
				s.VADDPS(s.product, s.sum(r, v), s.sum(r, v))
			} else {
				s.VFMADD231PS(of, s.spread, s.sum(r, v))
			}
		}
	}
	s.ADDQ(operand.U32(4), s.offs)
	s.ADDQ(operand.U32(uint32(4*s.rows)), s.vals)
	s.DECQ(s.count)
	s.JNZ(operand.LabelRef("step"))
}

// addBias adds the bias of each row, where present.
func (s *sparseWriter) addBias() {
	bias := s.GP64()
	s.MOVQ(at(s.t, sparseBias), bias)
	s.TESTQ(bias, bias)
	s.JZ(operand.LabelRef("no_bias"))
	for r := range s.rows {
		s.VBROADCASTSS(at(bias, 4*r), s.spread)
		for v := range s.vecs {
			s.VADDPS(s.spread, s.sum(r, v), s.sum(r, v))
		}
	}
	s.Label("no_bias")
}

// finish clamps and writes the results and returns.
func (s *sparseWriter) finish() {
	s.TESTL(operand.U32(flagClamp), s.flags.As32())
	s.JZ(operand.LabelRef("no_clamp"))
	s.VBROADCASTSS(at(s.t, sparseMin), s.spread)
	s.VBROADCASTSS(at(s.t, sparseMax), s.product)
	s.forEach(func(r, v int) {
		// With the sum last, a sum that is NaN stays.
		s.VMAXPS(s.sum(r, v), s.spread, s.sum(r, v))
		s.VMINPS(s.sum(r, v), s.product, s.sum(r, v))
	})
	s.Label("no_clamp")
	s.forColumns("write", func(m bool) {
		s.forEach(func(r, v int) {
			switch {
			case !m || v < s.vecs-2:
				s.VMOVUPS(s.sum(r, v), s.lie.at(r, v*s.w.bytes()))
			case s.w == zmm:
				s.VMOVUPS(s.sum(r, v), []reg.OpmaskPhysical{reg.K1, reg.K2}[v%2], s.lie.at(r, v*s.w.bytes()))
			default:
				s.VMOVUPS(at(s.mask, 32*(v%2)), s.product)
				s.VMASKMOVPS(s.sum(r, v), s.product, s.lie.at(r, v*s.w.bytes()))
			}
		})
	})
	s.VZEROUPPER()
	s.RET()
}
