package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// softmaxes writes the parts of the softmax of codes of 8 bits: what becomes of a code depends on
// how far it is below the largest of its row only, so that tables of 256 entries have all that is
// needed. flip makes codes such without a sign.
func softmaxes(a *asm) {
	a.largestByte()
	a.sumBytes()
	a.softmaxTable()
	a.tableBelow()
}

// byteTable is a table of 256 bytes in registers.
type byteTable [4]reg.VecVirtual

func (a *asm) byteTable(p reg.Register, off int) (t byteTable) {
	for i := range t {
		t[i] = a.ZMM()
		a.VMOVDQU32(at(p, off+64*i), t[i])
	}
	return t
}

// get looks 64 bytes up, of which upper chooses those from 128 on.
func (a *asm) get(t byteTable, x reg.Register, upper reg.Register) reg.VecVirtual {
	v, w := a.ZMM(), a.ZMM()
	a.VMOVDQA32(x, v)
	a.VMOVDQA32(x, w)
	a.VPERMI2B(t[1], t[0], v)
	a.VPERMI2B(t[3], t[2], w)
	a.VMOVDQU8(w, upper, v)
	return v
}

func (a *asm) spreadByte(name string) reg.VecVirtual {
	v, g := a.ZMM(), a.GP32()
	a.MOVL(a.argument(name), g)
	a.VPBROADCASTB(g, v)
	return v
}

func (a *asm) loadBytes(m operand.Mem, mask reg.Register) reg.VecVirtual {
	v := a.ZMM()
	if mask != nil {
		a.VMOVDQU8_Z(m, mask, v)
	} else {
		a.VMOVDQU8(m, v)
	}
	return v
}

// largestByte returns the largest of n bytes after flip.
func (a *asm) largestByte() {
	a.function("largestByteVNNI", "func(src *byte, n int, flip uint32) uint64")
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	flip, most := a.spreadByte("flip"), a.ZMM()
	a.VPXORD(most, most, most)
	a.masked("bytes", n, 64, func(mask reg.Register) {
		x := a.loadBytes(at(src, 0), mask)
		a.VPXORD(flip, x, x)
		if mask != nil {
			a.VPMAXUB(x, most, mask, most)
		} else {
			a.VPMAXUB(x, most, most)
		}
	}, step{src, 64})
	r := a.GP64()
	a.VPEXTRB(operand.U8(0), a.largestOf(most), r.As32())
	a.Store(r, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

// sumBytes adds up entries of three bytes each, in planes from the lowest byte on, for how far n
// bytes are below the top.
func (a *asm) sumBytes() {
	a.function("sumBelowVNNI", "func(src *byte, n int, top, flip uint32, planes *[3][256]uint8) uint64")
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	planes := a.Load(a.Param("planes"), a.GP64())
	top, flip, none := a.spreadByte("top"), a.spreadByte("flip"), a.ZMM()
	a.VPXORD(none, none, none)
	var tables [3]byteTable
	var sums [3]reg.VecVirtual
	for i := range tables {
		tables[i], sums[i] = a.byteTable(planes, 256*i), a.ZMM()
		a.VPXORD(sums[i], sums[i], sums[i])
	}
	a.masked("bytes", n, 64, func(mask reg.Register) {
		x := a.loadBytes(at(src, 0), mask)
		a.VPXORD(flip, x, x)
		a.VPSUBB(x, top, x)
		a.VPMOVB2M(x, reg.K2)
		for i, t := range tables {
			v := a.get(t, x, reg.K2)
			if mask != nil {
				a.VMOVDQU8_Z(v, mask, v)
			}
			a.VPSADBW(none, v, v)
			a.VPADDQ(v, sums[i], sums[i])
		}
	}, step{src, 64})
	for i := 1; i < 3; i++ {
		a.VPSLLQ(operand.U8(uint8(8*i)), sums[i], sums[i])
		a.VPADDQ(sums[i], sums[0], sums[0])
	}
	a.joinLanes(sums[0], 8, a.VPADDQ)
	r := a.GP64()
	a.VMOVQ(sums[0].AsX(), r)
	a.Store(r, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

// softmaxTable writes n bytes, a multiple of 16: the lower byte of ((by·src + 2^30) / 2^31 +
// half) / 2^down + lo, at most hi; no number has a sign but lo and hi.
func (a *asm) softmaxTable() {
	a.function("softmaxTableVNNI", "func(dst *byte, src *int32, n int, by, half, down, lo, hi int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	by, half, down, lo, hi := a.spread512("by"), a.spread512("half"), a.spread512("down"), a.spread512("lo"), a.spread512("hi")
	round, c, x := a.ZMM(), a.GP64(), a.XMM()
	a.MOVQ(operand.U64(1<<30), c)
	a.VMOVQ(c, x)
	a.VPBROADCASTQ(x, round)
	a.MOVL(operand.U32(0xaaaa), c.As32())
	a.KMOVW(c.As32(), reg.K2)
	a.loop(n, 16, func() {
		v, odd := a.ZMM(), a.ZMM()
		a.VMOVDQU32(at(src, 0), v)
		a.VMOVSHDUP(v, odd)
		a.VPMULUDQ(by, v, v)
		a.VPMULUDQ(by, odd, odd)
		a.VPADDQ(round, v, v)
		a.VPADDQ(round, odd, odd)
		// Less than 2^62, so that the quotients have 31 bits: they are moved to the lower and the
		// upper halves.
		a.VPSRLQ(operand.U8(31), v, v)
		a.VPADDQ(odd, odd, odd)
		a.VMOVDQA32(odd, reg.K2, v)
		a.VPADDD(half, v, v)
		a.VPSRLVD(down, v, v)
		a.VPADDD(lo, v, v)
		a.VPMINSD(hi, v, v)
		a.VPMOVDB(v, at(dst, 0))
	}, step{src, 64}, step{dst, 16})
	a.VZEROUPPER()
	a.RET()
}

// tableBelow replaces n bytes by the entries of a table for how far they are below the top.
func (a *asm) tableBelow() {
	a.function("tableBelowVNNI", "func(dst, src *byte, n int, top, flip uint32, table *byte)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	p := a.Load(a.Param("table"), a.GP64())
	top, flip, t := a.spreadByte("top"), a.spreadByte("flip"), a.byteTable(p, 0)
	a.masked("bytes", n, 64, func(mask reg.Register) {
		x := a.loadBytes(at(src, 0), mask)
		a.VPXORD(flip, x, x)
		a.VPSUBB(x, top, x)
		a.VPMOVB2M(x, reg.K2)
		v := a.get(t, x, reg.K2)
		if mask != nil {
			a.VMOVDQU8(v, mask, at(dst, 0))
		} else {
			a.VMOVDQU8(v, at(dst, 0))
		}
	}, step{src, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}
