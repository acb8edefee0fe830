package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sums writes what folds float32 in float64: sums of numbers, of their squares and of their magnitudes, and products.
func sums(a *asm) {
	for _, w := range []width{ymm, zmm} {
		for _, k := range []string{"sum", "square", "size", "product"} {
			f := &fold{asm: a, w: w, kind: k}
			f.lines()
			if w.masks || k == "size" || k == "product" {
				f.row()
			}
		}
	}
	a.addProducts()
}

// addProducts adds to n sums of float64 the products of k numbers with the lines of a matrix.
func (a *asm) addProducts() {
	a.function("addProductsAVX512", "func(dst, x *float64, stepX int, lines *float64, step, k, n int)")
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	dst, x, stepX, lines, step, k, n := load("dst"), load("x"), load("stepX"), load("lines"), load("step"), load("k"), load("n")
	p, q, left := a.GP64(), a.GP64(), a.GP64()
	columns := func(name string, vecs int, mask reg.Register) {
		var acc [4]reg.VecVirtual
		for i := range vecs {
			acc[i] = a.ZMM()
			if mask != nil {
				a.VMOVUPD_Z(at(dst, 64*i), mask, acc[i])
			} else {
				a.VMOVUPD(at(dst, 64*i), acc[i])
			}
		}
		a.MOVQ(lines, p)
		a.MOVQ(x, q)
		a.MOVQ(k, left)
		a.Label(name)
		v := a.ZMM()
		a.VBROADCASTSD(at(q, 0), v)
		for i := range vecs {
			if mask != nil {
				a.VFMADD231PD(at(p, 64*i), v, mask, acc[i])
			} else {
				a.VFMADD231PD(at(p, 64*i), v, acc[i])
			}
		}
		a.ADDQ(step, p)
		a.ADDQ(stepX, q)
		a.DECQ(left)
		a.JNZ(operand.LabelRef(name))
		for i := range vecs {
			if mask != nil {
				a.VMOVUPD(acc[i], mask, at(dst, 64*i))
			} else {
				a.VMOVUPD(acc[i], at(dst, 64*i))
			}
		}
	}
	a.Label("wide")
	a.CMPQ(n, operand.U8(32))
	a.JLT(operand.LabelRef("narrow"))
	columns("wide_line", 4, nil)
	a.ADDQ(operand.U32(256), dst)
	a.ADDQ(operand.U32(256), lines)
	a.SUBQ(operand.U8(32), n)
	a.JMP(operand.LabelRef("wide"))
	a.Label("narrow")
	a.masked("columns", n, 8, func(mask reg.Register) {
		columns("line_"+map[bool]string{false: "all", true: "some"}[mask != nil], 1, mask)
	}, step8(dst), step8(lines))
	a.VZEROUPPER()
	a.RET()
}

// step8 moves a pointer on by eight float64.
func step8(p reg.Register) step { return step{p, 64} }

// fold is one of the sums.
type fold struct {
	*asm
	w    width
	kind string
	rest reg.VecVirtual // of a number all but its sign
	mean reg.VecVirtual // nil for none
}

// each is the number of float64 in a register.
func (f *fold) each() int { return f.w.floats / 2 }

// begin sets up what the loop needs.
func (f *fold) begin() {
	if f.kind == "size" {
		f.rest = f.word(1<<63 - 1)
	}
}

// word has the same 64 bits in all lanes.
func (f *fold) word(bits uint64) reg.VecVirtual {
	v, g, x := f.vec(f.w), f.GP64(), f.XMM()
	f.MOVQ(operand.U64(bits), g)
	f.VMOVQ(g, x)
	f.VPBROADCASTQ(x, v)
	return v
}

// clear makes v what nothing folds to.
func (f *fold) clear(v reg.VecVirtual, one reg.VecVirtual) {
	if f.kind == "product" {
		f.VMOVAPD(one, v)
	} else {
		f.VXORPD(v, v, v)
	}
}

// start returns what products begin with.
func (f *fold) start() reg.VecVirtual {
	if f.kind == "product" {
		return f.word(math.Float64bits(1))
	}
	return nil
}

// add folds the numbers at m into v; of a mask those alone.
func (f *fold) add(m operand.Mem, mask reg.Register, v reg.VecVirtual) {
	x := f.vec(f.w)
	if mask != nil {
		f.VCVTPS2PD_Z(m, mask, x)
	} else {
		f.VCVTPS2PD(m, x)
	}
	if f.mean != nil {
		f.VSUBPD(f.mean, x, x)
	}
	if f.kind == "size" {
		f.VANDPD(f.rest, x, x)
	}
	switch {
	case f.kind == "product" && mask != nil:
		f.VMULPD(x, v, mask, v)
	case f.kind == "product":
		f.VMULPD(x, v, v)
	case f.kind == "square" && mask != nil:
		f.VFMADD231PD(x, x, mask, v)
	case f.kind == "square":
		f.VFMADD231PD(x, x, v)
	case mask != nil:
		f.VADDPD(x, v, mask, v)
	default:
		f.VADDPD(x, v, v)
	}
}

// join folds two results.
func (f *fold) join(x, y, to reg.Register) {
	if f.kind == "product" {
		f.VMULPD(x, y, to)
	} else {
		f.VADDPD(x, y, to)
	}
}

// lines writes results of lines of n numbers, step bytes apart; without masks n is a multiple of 4.
func (f *fold) lines() {
	f.function(f.kind+"Lines"+f.w.set, "func(dst *float64, src *float32, step, lines, n int)")
	dst, src, by := f.Load(f.Param("dst"), f.GP64()), f.Load(f.Param("src"), f.GP64()), f.Load(f.Param("step"), f.GP64())
	lines, n := f.Load(f.Param("lines"), f.GP64()), f.Load(f.Param("n"), f.GP64())
	f.begin()
	one := f.start()
	p, left := f.GP64(), f.GP64()
	size := f.w.bytes()
	columns := func(name string, vecs int, mask reg.Register) {
		var acc [4]reg.VecVirtual
		for i := range vecs {
			acc[i] = f.vec(f.w)
			f.clear(acc[i], one)
		}
		f.MOVQ(src, p)
		f.MOVQ(lines, left)
		f.Label(name)
		for i := range vecs {
			f.add(at(p, size/2*i), mask, acc[i])
		}
		f.ADDQ(by, p)
		f.DECQ(left)
		f.JNZ(operand.LabelRef(name))
		for i := range vecs {
			if mask != nil {
				f.VMOVUPD(acc[i], mask, at(dst, size*i))
			} else {
				f.VMOVUPD(acc[i], at(dst, size*i))
			}
		}
	}
	each := f.each()
	f.Label("wide")
	f.SUBQ(operand.U8(uint8(4*each)), n)
	f.JLT(operand.LabelRef("rest"))
	columns("lines4", 4, nil)
	f.ADDQ(operand.U32(uint32(2*size)), src)
	f.ADDQ(operand.U32(uint32(4*size)), dst)
	f.JMP(operand.LabelRef("wide"))
	f.Label("rest")
	f.ADDQ(operand.U8(uint8(4*each)), n)
	f.Label("narrow")
	f.SUBQ(operand.U8(uint8(each)), n)
	f.JLT(operand.LabelRef("few"))
	columns("lines1", 1, nil)
	f.ADDQ(operand.U32(uint32(size/2)), src)
	f.ADDQ(operand.U32(uint32(size)), dst)
	f.JMP(operand.LabelRef("narrow"))
	f.Label("few")
	if f.w.masks {
		f.ADDQ(operand.U8(uint8(each)), n)
		f.JZ(operand.LabelRef("end"))
		bits := f.GP64()
		f.MOVQ(operand.I32(-1), bits)
		f.BZHIQ(n, bits, bits)
		f.KMOVQ(bits, reg.K1)
		columns("lines0", 1, reg.K1)
		f.Label("end")
	}
	f.VZEROUPPER()
	f.RET()
}

// row writes the result of n numbers, without masks a multiple of 8; squares are those of what is above the mean.
func (f *fold) row() {
	mean := ""
	if f.kind == "square" {
		mean = ", mean float64"
	}
	f.function(f.kind+"Row"+f.w.set, "func(src *float32, n int"+mean+") float64")
	src, n := f.Load(f.Param("src"), f.GP64()), f.Load(f.Param("n"), f.GP64())
	f.begin()
	one := f.start()
	if f.kind == "square" {
		x := f.XMM()
		f.Load(f.Param("mean"), x)
		f.mean = f.vec(f.w)
		f.VBROADCASTSD(x, f.mean)
	}
	each, size := f.each(), f.w.bytes()
	acc := make([]reg.VecVirtual, 4)
	if !f.w.masks {
		acc = acc[:2]
	}
	for i := range acc {
		acc[i] = f.vec(f.w)
		f.clear(acc[i], one)
	}
	all := len(acc) * each
	f.Label("wide")
	f.SUBQ(operand.U8(uint8(all)), n)
	f.JLT(operand.LabelRef("rest"))
	for i, v := range acc {
		f.add(at(src, size/2*i), nil, v)
	}
	f.ADDQ(operand.U32(uint32(size/2*len(acc))), src)
	f.JMP(operand.LabelRef("wide"))
	f.Label("rest")
	if f.w.masks {
		f.ADDQ(operand.U8(uint8(all)), n)
		f.masked("few", n, each, func(mask reg.Register) { f.add(at(src, 0), mask, acc[0]) }, step{src, size / 2})
	}
	for i := len(acc) / 2; i > 0; i /= 2 {
		for k := range i {
			f.join(acc[k+i], acc[k], acc[k])
		}
	}
	v := acc[0]
	if f.w.masks {
		half := f.YMM()
		f.VEXTRACTF64X4(operand.U8(1), v, half)
		f.join(half, v.AsY(), v.AsY())
	}
	low, high := v.AsX(), f.XMM()
	f.VEXTRACTF128(operand.U8(1), v.AsY(), high)
	f.join(high, low, low)
	f.VPERMILPD(operand.U8(1), low, high)
	f.join(high, low, low)
	f.Store(low, f.ReturnIndex(0))
	f.VZEROUPPER()
	f.RET()
	f.mean = nil
}
