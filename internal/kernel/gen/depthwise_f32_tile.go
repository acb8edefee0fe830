package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.LaneTile, in bytes; a test there compares them.
const (
	laneDst = 8 * iota
	laneLineDst
	laneSrc
	laneAt
	laneLineSrc
	laneStep
	laneW
	laneN
	laneFirst
	laneEnd
	laneTiles1
	laneNextSrc
	laneNextDst
	laneAhead
	laneMin // and Max
	laneSeen
	laneMasks // of the channels, without mask registers
	laneMax   = laneMin + 4
	laneMask  = laneSeen + 4
)

func laneTiles(a *asm) {
	for _, k := range []int{3, 5, 7} {
		for step := 1; step <= 2; step++ {
			if k == 7 && step == 2 {
				continue // more weights than there are registers
			}
			for rows := 1; rows <= 2; rows++ {
				for _, cols := range []int{3, 4} {
					for _, w := range []width{ymm, zmm} {
						newLaneTile(a, w, k, step, rows, cols, true).write()
						newLaneTile(a, w, k, step, rows, cols, false).write()
					}
				}
			}
		}
	}
}

// laneTile computes neighbouring results, rows by cols, of depthwise convolutions of k by k over
// [N,H,W,C], a register of channels at a time: a value that is read is multiplied for all results
// that see it. Products and sums are rounded apart; a result adds them up line by line, as the
// reference kernels of TFLite do, and the bias at the end.
type laneTile struct {
	*asm
	width               width
	k, step, rows, cols int
	// all lines and columns are there, and all channels, of which else a mask tells
	whole bool
	next  int
	sums  [][]reg.VecPhysical
	// of the lines of the window that are wanted at once; nil if registers are few
	weights            [][]reg.VecPhysical
	mask               reg.VecPhysical // without mask registers
	values, products   []reg.VecPhysical
	t                  reg.Register
	src, dst, w        reg.GPVirtual
	line, far, farther reg.GPVirtual // column 0, 4 and 8
	out, ahead         reg.GPVirtual
	begun              [8]bool
	apart, apart3      reg.GPVirtual
}

func newLaneTile(a *asm, w width, k, step, rows, cols int, whole bool) *laneTile {
	return &laneTile{asm: a, width: w, k: k, step: step, rows: rows, cols: cols, whole: whole}
}

func (b *laneTile) fresh(n int) (v []reg.VecPhysical) {
	for range n {
		v = append(v, b.width.reg(b.next))
		b.next++
	}
	return v
}

func (b *laneTile) field(off int) reg.GPVirtual {
	r := b.GP64()
	b.MOVQ(at(b.t, off), r)
	return r
}

// column is memory in column c of a line.
func (b *laneTile) column(c int) operand.Mem {
	m := operand.Mem{Base: []reg.GPVirtual{b.line, b.far, b.farther}[c/4]}
	switch c % 4 {
	case 1:
		m.Index, m.Scale = b.apart, 1
	case 2:
		m.Index, m.Scale = b.apart, 2
	case 3:
		m.Index, m.Scale = b.apart3, 1
	}
	return m
}

func (b *laneTile) write() {
	name := label("laneTile%dx%dx%dby%d", b.k, b.rows, b.cols, b.step)
	if !b.whole {
		name += "Edge"
	}
	b.function(name+b.width.set, "func(t *LaneTile)")
	b.t = b.Load(b.Param("t"), b.GP64())
	for range b.rows {
		b.sums = append(b.sums, b.fresh(b.cols))
	}
	size := b.width.bytes()
	products := 4
	switch {
	case b.width.masks:
		for range (b.rows-1)*b.step + 1 {
			b.weights = append(b.weights, b.fresh(b.k))
		}
	case !b.whole:
		products = 3
		b.mask = b.fresh(1)[0]
	}
	b.values, b.products = b.fresh(2), b.fresh(products)
	limits := b.fresh(2)
	b.VBROADCASTSS(at(b.t, laneMin), limits[0])
	b.VBROADCASTSS(at(b.t, laneMax), limits[1])
	b.src, b.dst, b.w = b.field(laneSrc), b.field(laneDst), b.field(laneW)
	b.ADDQ(at(b.t, laneAt), b.src)
	b.apart, b.apart3 = b.field(laneStep), b.GP64()
	b.LEAQ(operand.Mem{Base: b.apart, Index: b.apart, Scale: 2}, b.apart3)
	lineSrc, n := b.field(laneLineSrc), b.GP64()
	b.line, b.far, b.farther, b.out = b.GP64(), b.GP64(), b.GP64(), b.GP64()
	var first, end, seen reg.GPVirtual
	if b.whole {
		b.ahead = b.field(laneAhead)
	} else {
		first, end, seen = b.field(laneFirst), b.field(laneEnd), b.GP64()
		b.MOVL(at(b.t, laneSeen), seen.As32())
		if b.width.masks {
			b.KMOVW(at(b.t, laneMask), reg.K1)
		} else {
			b.MOVQ(at(b.t, laneMasks), b.line)
			b.VMOVUPS(at(b.line, 0), b.mask)
		}
	}
	b.Label("tile")
	b.MOVQ(at(b.t, laneN), n)
	b.Label("block")
	for i, s := range b.sums {
		for j, v := range s {
			if !b.whole {
				b.zero(b.width, v)
				b.begun[i*b.cols+j] = true
			} else {
				b.begun[i*b.cols+j] = false
			}
		}
	}
	b.MOVQ(b.src, b.line)
	b.MOVQ(b.dst, b.out)
	for r := range (b.rows-1)*b.step + b.k {
		if r < b.k && b.weights != nil {
			for x, v := range b.weights[r%len(b.weights)] {
				b.VMOVUPS(at(b.w, 64*(1+r*b.k+x)), v)
			}
		}
		missing := label("line%d", r)
		if !b.whole {
			b.CMPQ(first, operand.U8(uint8(r)))
			b.JG(operand.LabelRef(missing))
			b.CMPQ(end, operand.U8(uint8(r)))
			b.JLE(operand.LabelRef(missing))
		}
		b.meet(r, seen)
		b.Label(missing)
		if i := r + 1 - b.k; i >= 0 && i%b.step == 0 {
			b.store(i/b.step, limits)
			b.ADDQ(at(b.t, laneLineDst), b.out)
		}
		b.ADDQ(lineSrc, b.line)
	}
	b.ADDQ(operand.U8(uint8(size)), b.src)
	b.ADDQ(operand.U8(uint8(size)), b.dst)
	b.ADDQ(operand.U32(uint32(size*(1+b.k*b.k))), b.w)
	b.DECQ(n)
	b.JNZ(operand.LabelRef("block"))
	b.ADDQ(at(b.t, laneNextSrc), b.src)
	b.ADDQ(at(b.t, laneNextDst), b.dst)
	b.MOVQ(at(b.t, laneW), b.w)
	b.DECQ(at(b.t, laneTiles1))
	b.JNZ(operand.LabelRef("tile"))
	b.VZEROUPPER()
	b.RET()
}

// store ends line i of the results.
func (b *laneTile) store(i int, limits []reg.VecPhysical) {
	bias := b.values[0]
	b.VMOVUPS(at(b.w, 0), bias)
	for j, v := range b.sums[i] {
		b.VADDPS(bias, v, v)
		// With the sum last, a sum that is NaN stays.
		b.VMAXPS(v, limits[0], v)
		b.VMINPS(v, limits[1], v)
		m := operand.Mem{Base: b.out}
		switch j {
		case 1:
			m.Index, m.Scale = b.apart, 1
		case 2:
			m.Index, m.Scale = b.apart, 2
		case 3:
			m.Index, m.Scale = b.apart3, 1
		}
		switch {
		case b.whole:
			b.VMOVUPS(v, m)
		case b.width.masks:
			b.VMOVUPS(v, reg.K1, m)
		default:
			b.VMASKMOVPS(v, b.mask, m)
		}
	}
}

// meet multiplies the values of line r of all windows.
func (b *laneTile) meet(r int, seen reg.GPVirtual) {
	columns := (b.cols-1)*b.step + b.k
	if columns > 4 {
		b.LEAQ(operand.Mem{Base: b.line, Index: b.apart, Scale: 4}, b.far)
	}
	if columns > 8 {
		b.LEAQ(operand.Mem{Base: b.line, Index: b.apart, Scale: 8}, b.farther)
	}
	if b.whole && b.width.masks {
		// The columns that the next tile sees besides.
		ahead := b.GP64()
		b.LEAQ(operand.Mem{Base: b.line, Index: b.ahead, Scale: 1}, ahead)
		for c := range b.cols * b.step {
			if c == 4 {
				b.LEAQ(operand.Mem{Base: ahead, Index: b.apart, Scale: 4}, ahead)
			}
			m := operand.Mem{Base: ahead}
			switch c % 4 {
			case 1:
				m.Index, m.Scale = b.apart, 1
			case 2:
				m.Index, m.Scale = b.apart, 2
			case 3:
				m.Index, m.Scale = b.apart3, 1
			}
			b.PREFETCHT0(m)
		}
	}
	turn := 0
	for c := range columns {
		value := b.values[c%len(b.values)]
		missing := label("line%dcolumn%d", r, c)
		if !b.whole {
			b.TESTL(operand.U32(uint32(1<<c)), seen.As32())
			b.JZ(operand.LabelRef(missing))
			if b.width.masks {
				b.VMOVUPS_Z(b.column(c), reg.K1, value)
			} else {
				b.VMASKMOVPS(b.column(c), b.mask, value)
			}
		} else {
			b.VMOVUPS(b.column(c), value)
		}
		for i := range b.rows {
			ky := r - i*b.step
			if ky < 0 || ky >= b.k {
				continue
			}
			for j := range b.cols {
				kx := c - j*b.step
				if kx < 0 || kx >= b.k {
					continue
				}
				p := b.products[turn%len(b.products)]
				turn++
				var weight operand.Op = at(b.w, b.width.bytes()*(1+ky*b.k+kx))
				if b.weights != nil {
					weight = b.weights[ky%len(b.weights)][kx]
				}
				if n := i*b.cols + j; !b.begun[n] {
					b.begun[n] = true
					b.VMULPS(weight, value, b.sums[i][j])
					continue
				}
				b.VMULPS(weight, value, p)
				b.VADDPS(p, b.sums[i][j], b.sums[i][j])
			}
		}
		b.Label(missing)
	}
}
