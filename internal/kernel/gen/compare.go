package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// relations writes comparisons of elements: bytes of 1 where they hold and of 0 elsewhere.
func relations(a *asm) {
	lanes := a.StaticGlobal("lanesInTurns")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		a.AddDatum(4*i, operand.U32(v))
	}
	for kind := range related(len(relatedNames)) {
		for r := range relation(len(relationNames)) {
			a.compare(lanes, kind, r)
			a.compareWide(kind, r)
		}
	}
}

// related is a type of elements that are compared.
type related int

const (
	floatsRelated related = iota
	intsRelated           // of 32 bits
	longsRelated          // of 64 bits
	bytesRelated
	signedRelated // bytes with a sign
)

var relatedNames = []string{"Floats", "Ints", "Longs", "U8", "S8"}

func (k related) size() int { return []int{4, 4, 8, 1, 1}[k] }

// relation is what holds or not.
type relation int

const (
	equal relation = iota
	unequal
	less
	lessEqual
)

var relationNames = []string{"equal", "unequal", "less", "lessEqual"}

// floats is the predicate of float32 that is false, or for unequal true, where an operand is NaN.
func (r relation) floats() operand.Op { return operand.U8([]uint8{0, 4, 17, 18}[r]) }

// ints is the predicate of integers.
func (r relation) ints() operand.Op { return operand.U8([]uint8{0, 4, 1, 2}[r]) }

// operandsOf loads what all comparisons have in common.
func (a *asm) operandsOf() (dst, pa, pb, n reg.Register) {
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	return load("dst"), load("a"), load("b"), load("n")
}

// compare takes a multiple of 32 elements.
func (a *asm) compare(lanes operand.Mem, kind related, r relation) {
	a.function(relationNames[r]+relatedNames[kind]+"AVX2", "func(dst, a, b *byte, n int)")
	dst, pa, pb, n := a.operandsOf()
	one := a.YMM()
	a.VPCMPEQD(one, one, one)
	a.VPABSB(one, one)
	var flip reg.VecVirtual
	if kind == bytesRelated && r > unequal {
		flip = a.YMM()
		a.VPSLLW(operand.U8(7), one, flip)
	}
	part := func(off int) reg.VecVirtual {
		x, y := a.YMM(), a.YMM()
		if kind == floatsRelated {
			a.VMOVUPS(at(pa, off), x)
			a.VCMPPS(r.floats(), at(pb, off), x, x)
			return x
		}
		a.VMOVDQU(at(pa, off), x)
		if r <= unequal {
			[]func(...operand.Op){nil, a.VPCMPEQD, a.VPCMPEQQ, a.VPCMPEQB, a.VPCMPEQB}[kind](at(pb, off), x, x)
			return x
		}
		a.VMOVDQU(at(pb, off), y)
		if flip != nil {
			a.VPXOR(flip, x, x)
			a.VPXOR(flip, y, y)
		}
		if r == lessEqual { // what is not greater
			x, y = y, x
		}
		[]func(...operand.Op){nil, a.VPCMPGTD, a.VPCMPGTQ, a.VPCMPGTB, a.VPCMPGTB}[kind](x, y, y)
		return y
	}
	a.loop(n, 32, func() {
		var m reg.VecVirtual
		switch kind.size() {
		case 1:
			m = part(0)
		case 4:
			m = a.bytesOfMasks(lanes, part(0), part(32), part(64), part(96))
		default:
			var p [4]reg.VecVirtual
			for i := range p {
				// Of each number the lower half, in the order of the numbers.
				x, y := part(64*i), part(64*i+32)
				p[i] = a.YMM()
				a.VSHUFPS(operand.U8(0x88), y, x, p[i])
				a.VPERMQ(operand.U8(0xd8), p[i], p[i])
			}
			m = a.bytesOfMasks(lanes, p[0], p[1], p[2], p[3])
		}
		if kind != floatsRelated && (r == unequal || r == lessEqual) {
			a.VPANDN(one, m, m)
		} else {
			a.VPAND(one, m, m)
		}
		a.VMOVDQU(m, at(dst, 0))
		a.ADDQ(operand.U32(uint32(32*kind.size())), pa)
		a.ADDQ(operand.U32(uint32(32*kind.size())), pb)
	}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// bytesOfMasks makes 32 bytes of as many masks of 32 bits.
func (a *asm) bytesOfMasks(lanes operand.Mem, w, x, y, z reg.VecVirtual) reg.VecVirtual {
	a.VPACKSSDW(x, w, w)
	a.VPACKSSDW(z, y, y)
	a.VPACKSSWB(y, w, w)
	// Each lane has four bytes of each register, now.
	order := a.YMM()
	a.VMOVDQU(lanes, order)
	a.VPERMD(w, order, w)
	return w
}

// compareWide takes any number of elements.
func (a *asm) compareWide(kind related, r relation) {
	a.function(relationNames[r]+relatedNames[kind]+"AVX512", "func(dst, a, b *byte, n int)")
	dst, pa, pb, n := a.operandsOf()
	one := a.ZMM()
	a.VPTERNLOGD(operand.U8(0xff), one, one, one)
	a.VPABSB(one, one)
	size := kind.size()
	each := 64 / size
	compare := map[related]func(...operand.Op){
		floatsRelated: a.VCMPPS, intsRelated: a.VPCMPD, longsRelated: a.VPCMPQ, bytesRelated: a.VPCMPUB, signedRelated: a.VPCMPB,
	}[kind]
	a.masked("elements", n, each, func(mask reg.Register) {
		x, is := a.ZMM(), r.ints()
		if kind == floatsRelated {
			is = r.floats()
		}
		y := a.ZMM()
		for i, p := range []reg.Register{pa, pb} {
			v := []reg.VecVirtual{x, y}[i]
			switch {
			case size == 1:
				a.someBytes(at(p, 0), mask, v)
			case mask == nil:
				a.VMOVDQU64(at(p, 0), v)
			case size == 4:
				a.VMOVDQU32_Z(at(p, 0), mask, v)
			default:
				a.VMOVDQU64_Z(at(p, 0), mask, v)
			}
		}
		compare(is, y, x, reg.K2)
		switch size {
		case 1:
			a.VMOVDQU8_Z(one, reg.K2, x)
			a.storeBytes(x, mask, at(dst, 0))
		default:
			a.VMOVDQU8_Z(one.AsX(), reg.K2, x.AsX())
			switch {
			case mask != nil:
				a.VMOVDQU8(x.AsX(), mask, at(dst, 0))
			case size == 4:
				a.VMOVDQU8(x.AsX(), at(dst, 0))
			default:
				a.VMOVQ(x.AsX(), at(dst, 0))
			}
		}
	}, step{pa, 64}, step{pb, 64}, step{dst, each})
	a.VZEROUPPER()
	a.RET()
}
