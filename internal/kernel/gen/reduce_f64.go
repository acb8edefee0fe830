package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sums writes what folds float32 in float64, and float64: sums of numbers, of their squares and
// of their magnitudes, and products.
func sums(a *asm) {
	for _, w := range []width{ymm, zmm} {
		for _, k := range []string{"sum", "square", "size", "product"} {
			f := &fold{asm: a, w: w, kind: k}
			f.lines()
			if w.masks || k == "size" || k == "product" {
				f.row()
			}
			if w.masks {
				f.doubles = true
				f.lines()
				f.row()
			}
		}
	}
	for _, k := range []struct {
		name, kind string
		size       int
	}{{"Doubles", "float64", 8}, {"Words", "int32", 4}, {"Longs", "int64", 8}} {
		a.addProducts(k.name, k.kind, k.size)
		a.products(k.name, k.kind, k.size)
	}
}

// addProducts adds to n sums the products of k numbers with the lines of a matrix, all of a type
// of some bytes.
func (a *asm) addProducts(name, kind string, size int) {
	a.function("add"+name+"AVX512", "func(dst, x *"+kind+", stepX int, lines *"+kind+", step, k, n int)")
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	dst, x, stepX, lines, by, k, n := load("dst"), load("x"), load("stepX"), load("lines"), load("step"), load("k"), load("n")
	p, q, left := a.GP64(), a.GP64(), a.GP64()
	move := func(m, v operand.Op, mask reg.Register) {
		switch {
		case mask == nil:
			a.VMOVDQU64(m, v)
		case size == 4:
			a.VMOVDQU32(m, mask, v)
		default:
			a.VMOVDQU64(m, mask, v)
		}
	}
	columns := func(name string, vecs int, mask reg.Register) {
		var acc [4]reg.VecVirtual
		for i := range vecs {
			acc[i] = a.ZMM()
			move(at(dst, 64*i), acc[i], mask)
		}
		a.MOVQ(lines, p)
		a.MOVQ(x, q)
		a.MOVQ(k, left)
		a.Label(name)
		v := a.ZMM()
		if size == 4 {
			a.VPBROADCASTD(at(q, 0), v)
		} else {
			a.VPBROADCASTQ(at(q, 0), v)
		}
		for i := range vecs {
			a.addProduct(kind, at(p, 64*i), v, acc[i], mask)
		}
		a.ADDQ(by, p)
		a.ADDQ(stepX, q)
		a.DECQ(left)
		a.JNZ(operand.LabelRef(name))
		for i := range vecs {
			move(acc[i], at(dst, 64*i), mask)
		}
	}
	a.several(n, 64/size, columns, dst, lines)
	a.VZEROUPPER()
	a.RET()
}

// addProduct adds the products of v and those at m to sums of a type.
func (a *asm) addProduct(kind string, m operand.Mem, v, sums, mask reg.Register) {
	if kind == "float64" {
		if mask != nil {
			a.VFMADD231PD(m, v, mask, sums)
		} else {
			a.VFMADD231PD(m, v, sums)
		}
		return
	}
	x := a.ZMM()
	mul, plus := a.VPMULLD, a.VPADDD
	if kind == "int64" {
		mul, plus = a.VPMULLQ, a.VPADDQ
	}
	if mask != nil {
		a.VMOVDQA64(v, x)
		mul(m, v, mask, x)
		plus(x, sums, mask, sums)
		return
	}
	mul(m, v, x)
	plus(x, sums, sums)
}

// products writes the sum of the products of n numbers, of a type of some bytes.
func (a *asm) products(name, kind string, size int) {
	a.function("dot"+name+"AVX512", "func(a, b *"+kind+", n int) "+kind)
	p, q, n := a.Load(a.Param("a"), a.GP64()), a.Load(a.Param("b"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	each := 64 / size
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = a.ZMM()
		a.zero(zmm, acc[i])
	}
	x := a.ZMM()
	a.Label("wide")
	a.SUBQ(operand.U8(uint8(4*each)), n)
	a.JLT(operand.LabelRef("rest"))
	for i, v := range acc {
		a.VMOVDQU64(at(p, 64*i), x)
		a.addProduct(kind, at(q, 64*i), x, v, nil)
	}
	a.ADDQ(operand.U32(256), p)
	a.ADDQ(operand.U32(256), q)
	a.JMP(operand.LabelRef("wide"))
	a.Label("rest")
	a.ADDQ(operand.U8(uint8(4*each)), n)
	a.masked("few", n, each, func(mask reg.Register) {
		switch {
		case mask == nil:
			a.VMOVDQU64(at(p, 0), x)
		case size == 4:
			a.VMOVDQU32_Z(at(p, 0), mask, x)
		default:
			a.VMOVDQU64_Z(at(p, 0), mask, x)
		}
		a.addProduct(kind, at(q, 0), x, acc[0], mask)
	}, step{p, 64}, step{q, 64})
	plus := map[string]func(ops ...operand.Op){"float64": a.VADDPD, "int32": a.VPADDD, "int64": a.VPADDQ}[kind]
	plus(acc[1], acc[0], acc[0])
	plus(acc[3], acc[2], acc[2])
	plus(acc[2], acc[0], acc[0])
	v := acc[0]
	a.joinLanes(v, size, plus)
	if kind == "float64" {
		a.Store(v.AsX(), a.ReturnIndex(0))
	} else {
		sum := a.GP64()
		a.VMOVQ(v.AsX(), sum)
		if size == 4 {
			a.Store(sum.As32(), a.ReturnIndex(0))
		} else {
			a.Store(sum, a.ReturnIndex(0))
		}
	}
	a.VZEROUPPER()
	a.RET()
}

// fold is one of the sums.
type fold struct {
	*asm
	w    width
	kind string
	// doubles are float64, not float32.
	doubles bool
	rest    reg.VecVirtual // of a number all but its sign
	mean    reg.VecVirtual // nil for none
}

// each is the number of float64 in a register.
func (f *fold) each() int { return f.w.floats / 2 }

// source is the type of the numbers, with what names of functions have for it, and the size of a
// register's worth of them.
func (f *fold) source() (kind, name string, size int) {
	if f.doubles {
		return "float64", "Doubles", f.w.bytes()
	}
	return "float32", "", f.w.bytes() / 2
}

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
	switch {
	case f.doubles && mask != nil:
		f.VMOVUPD_Z(m, mask, x)
	case f.doubles:
		f.VMOVUPD(m, x)
	case mask != nil:
		f.VCVTPS2PD_Z(m, mask, x)
	default:
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
	kind, name, from := f.source()
	f.function(f.kind+"Lines"+name+f.w.set, "func(dst *float64, src *"+kind+", step, lines, n int)")
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
			f.add(at(p, from*i), mask, acc[i])
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
	f.ADDQ(operand.U32(uint32(4*from)), src)
	f.ADDQ(operand.U32(uint32(4*size)), dst)
	f.JMP(operand.LabelRef("wide"))
	f.Label("rest")
	f.ADDQ(operand.U8(uint8(4*each)), n)
	f.Label("narrow")
	f.SUBQ(operand.U8(uint8(each)), n)
	f.JLT(operand.LabelRef("few"))
	columns("lines1", 1, nil)
	f.ADDQ(operand.U32(uint32(from)), src)
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

// row writes the result of n numbers, without masks a multiple of 8; squares are those of what is
// above the mean.
func (f *fold) row() {
	mean := ""
	if f.kind == "square" && !f.doubles {
		mean = ", mean float64"
	}
	kind, name, from := f.source()
	f.function(f.kind+"Row"+name+f.w.set, "func(src *"+kind+", n int"+mean+") float64")
	src, n := f.Load(f.Param("src"), f.GP64()), f.Load(f.Param("n"), f.GP64())
	f.begin()
	one := f.start()
	if mean != "" {
		x := f.XMM()
		f.Load(f.Param("mean"), x)
		f.mean = f.vec(f.w)
		f.VBROADCASTSD(x, f.mean)
	}
	each := f.each()
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
		f.add(at(src, from*i), nil, v)
	}
	f.ADDQ(operand.U32(uint32(from*len(acc))), src)
	f.JMP(operand.LabelRef("wide"))
	f.Label("rest")
	if f.w.masks {
		f.ADDQ(operand.U8(uint8(all)), n)
		f.masked("few", n, each, func(mask reg.Register) { f.add(at(src, 0), mask, acc[0]) }, step{src, from})
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

// joinLanes puts all numbers of a register, size bytes each, together into its first.
func (a *asm) joinLanes(v reg.VecVirtual, size int, plus func(ops ...operand.Op)) {
	half, low := a.YMM(), a.XMM()
	a.VEXTRACTI64X4(operand.U8(1), v, half)
	plus(half, v.AsY(), v.AsY())
	a.VEXTRACTI128(operand.U8(1), v.AsY(), low)
	plus(low, v.AsX(), v.AsX())
	for by := 8; by >= size; by /= 2 {
		a.VPSRLDQ(operand.U8(uint8(by)), v.AsX(), low)
		plus(low, v.AsX(), v.AsX())
	}
}
