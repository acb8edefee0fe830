package kernel

import (
	"encoding/binary"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Weight is an integer weight before packing.
type Weight interface{ int8 | uint8 | int16 | int32 }

// fillPanels packs n channels minus their zero point: step i of channel j is v[j*vec+i*elem] -
// zero.
func fillPanels[W Weight](p *workers.Pool, w *intPanels, n int, v []W, zero int32, vec, elem int) {
	cols := w.f.Cols
	panels := (n + cols - 1) / cols
	if n > 0 && w.segs*w.seg > 0 {
		v = v[:(n-1)*vec+(w.segs*w.seg-1)*elem+1]
	}
	fits := fitsInt8(v, zero)
	if w.sums = nil; fits && w.fours && w.f.Quads() {
		w.spare.sums = zeroed(w.spare.sums, panels*cols)
		w.sums = w.spare.sums
	}
	w.sparse4of8 = nil
	src := source[W]{v, zero, n, vec, elem}
	if fits {
		w.spare.narrow = zeroed(w.spare.narrow, panels*w.panel())
		w.narrow, w.wide = w.spare.narrow, nil
		packPanels(p, w, w.narrow, src, panels)
		return
	}
	w.spare.wide = zeroed(w.spare.wide, panels*w.panel())
	w.narrow, w.wide = nil, w.spare.wide
	packPanels(p, w, w.wide, src, panels)
}

// panel returns the number of weights of a panel, including padding.
func (w *intPanels) panel() int { return w.segs * w.pairs() * w.f.Cols * w.groupSize() }

// source describes unpacked weights, see fillPanels.
type source[W Weight] struct {
	v            []W
	zero         int32
	n, vec, elem int
}

// packPanels packs all panels; each weight fits T.
func packPanels[T int8 | int16, W Weight](p *workers.Pool, w *intPanels, dst []T, src source[W], panels int) {
	workers.Each(p, panels, max(1, packGrain/max(1, w.panel())), packing[T, W]{w, dst, src})
}

// packing holds the arguments of a work item of packPanels.
type packing[T int8 | int16, W Weight] struct {
	w   *intPanels
	dst []T
	src source[W]
}

// Piece packs panels lo to hi.
func (q packing[T, W]) Piece(lo, hi int) {
	size := q.w.panel()
	for i := lo; i < hi; i++ {
		packAny(q.w, q.dst[i*size:][:size], q.src, i*q.w.f.Cols)
	}
}

// packGrain is the minimum number of weights of a packing work item: about 5 to 10 µs.
const packGrain = 1 << 13

// packAny packs the channels from j0.
func packAny[T int8 | int16, W Weight](w *intPanels, dst []T, src source[W], j0 int) {
	switch {
	case w.sums != nil && w.f.Eights:
		packEights(w, dst, src, j0)
	case src.elem == 1 && w.groupSize()*int(unsafe.Sizeof(dst[0])) == 4:
		packLines(w, dst, src, j0)
	default:
		packPanel(w, dst, src, j0)
	}
	if w.sums != nil && !w.f.Eights {
		w.sum(any(dst).([]int8), j0)
	}
}

// packLines packs 4-way groups of 8-bit weights, or pairs of 16-bit weights, whose steps are
// contiguous. It transposes a matrix of words in blocks that fit the L1 cache.
func packLines[T int8 | int16, W Weight](w *intPanels, dst []T, src source[W], j0 int) {
	cols, each, pairs := w.f.Cols, w.groupSize(), w.pairs()
	width, step := min(cols, src.n-j0), min(pairs, transposeBlock)
	sc, workspace := borrow(cols * step)
	clear(workspace)
	rows, turned := unsafe.Slice((*T)(unsafe.Pointer(&workspace[0])), each*len(workspace)), move.Words(workspace)
	words := move.Words(dst)
	e := simd.ElementKernels()
	for s := range w.segs {
		for i := 0; i < pairs; i += step {
			n, at := min(step, pairs-i), s*w.seg+i*each
			steps := min(n*each, w.seg-i*each)
			for j := range width {
				row := rows[j*step*each:][:n*each]
				subtractZero(w.f, row[:steps], src.v[(j0+j)*src.vec+at:][:steps], src.zero)
				clear(row[steps:])
			}
			out := words[(s*pairs+i)*cols:][:n*cols]
			if e != nil && e.Turn(out, cols, turned, step, n, cols) {
				continue
			}
			for i := range n {
				for j := range cols {
					out[i*cols+j] = turned[j*step+i]
				}
			}
		}
	}
	scratch.Put(sc)
}

// transposeBlock is the block length of packLines: its rows are not a multiple of a page apart.
const transposeBlock = 136

// sum computes the weight sums of the panel from channel j0, packed in 4-way groups, as dot
// products with ones.
func (w *intPanels) sum(dst []int8, j0 int) {
	sc, workspace := borrow(w.pairs() + w.f.Cols)
	ones, start := asBytes(workspace[:w.pairs()]), asInt32(workspace[w.pairs():])
	fill(ones, 1)
	clear(start)
	t := intTiles.Get().(*simd.IntTile)
	t.A, t.K, t.Segs, t.B, t.C, t.Start = unsafe.Pointer(&ones[0]), w.pairs(), w.segs, unsafe.Pointer(&dst[0]), &w.sums[j0], &start[0]
	w.f.RunQuads(t, 1, w.f.Cols)
	releaseIntTile(t)
	scratch.Put(sc)
}

// subtractZero writes weights minus their zero point.
func subtractZero[T int8 | int16, W Weight](f *simd.Ints, dst []T, w []W, zero int32) {
	switch w := any(w).(type) {
	case []int8:
		subtractZeroBytes(f, any(dst), Bits(w), true, zero)
		return
	case []uint8:
		subtractZeroBytes(f, any(dst), w, false, zero)
		return
	case []int16:
		if d, ok := any(dst).([]int16); ok && zero == 0 {
			copy(d, w)
			return
		}
	}
	for i, v := range w[:len(dst)] {
		dst[i] = T(int32(v) - zero)
	}
}

// subtractZeroBytes is subtractZero for 8-bit weights.
func subtractZeroBytes(f *simd.Ints, dst any, w []uint8, signed bool, zero int32) {
	wide, ok := dst.([]int16)
	if ok {
		f.Widen(wide, w, signed, int16(zero))
		return
	}
	d := Bits(dst.([]int8))
	if signed && zero == 0 {
		copy(d, w)
		return
	}
	z := uint8(zero)
	for len(d) >= 8 && len(w) >= 8 {
		// Eight bytes at once: set their upper bits so that no byte borrows from its neighbour,
		// then correct them.
		x, y := binary.LittleEndian.Uint64(w), uint64(z)*eachByte
		binary.LittleEndian.PutUint64(d, (x|upperBits-y&^upperBits)^((x^^y)&upperBits))
		d, w = d[8:], w[8:]
	}
	for i := range d {
		d[i] = w[i] - z
	}
}

// eachByte times a byte repeats it eight times; upperBits has the highest bit of each byte set.
const (
	eachByte  = 0x0101010101010101
	upperBits = 0x80 * eachByte
)

// packPanel packs the channels from j0: a few steps of all channels at a time, so that whole
// cache lines are used whether steps or channels are contiguous.
func packPanel[T int8 | int16, W Weight](w *intPanels, dst []T, src source[W], j0 int) {
	cols, each := w.f.Cols, w.groupSize()
	width, step := min(cols, src.n-j0), src.elem
	for s := range w.segs {
		i := 0
		if whole := w.seg / 4; width == cols && src.vec == 1 && each == 4 && packWhole(w.f, dst, src, j0+s*w.seg*step, whole) {
			dst, i = dst[whole*cols*each:], whole*each
		}
		if pairs := w.seg / 2; src.vec == 1 && each == 2 && packPairs(w.f, dst, src, width, j0+s*w.seg*step, pairs) {
			dst, i = dst[pairs*cols*each:], pairs*each
		}
		for ; i < w.seg; i += each {
			d, at := dst[:cols*each], j0*src.vec+(s*w.seg+i)*step
			dst = dst[cols*each:]
			switch {
			case i+each > w.seg: // the last steps, below
			case each == 4:
				packFours(d[:4*width], src, at)
				continue
			default:
				for j := range width {
					d[2*j], d[2*j+1] = T(int32(src.v[at])-src.zero), T(int32(src.v[at+step])-src.zero)
					at += src.vec
				}
				continue
			}
			for k := range min(each, w.seg-i) {
				for j := range width {
					d[each*j+k] = T(int32(src.v[at+j*src.vec+k*step]) - src.zero)
				}
			}
		}
	}
}

// packPairs packs n pairs of words of the channels of a panel from step offset at. It returns
// false without a kernel.
func packPairs[T int8 | int16, W Weight](f *simd.Ints, dst []T, src source[W], width, at, n int) bool {
	d, ok := any(dst).([]int16)
	v, words := any(src.v).([]int16)
	return ok && words && src.zero == 0 && n > 0 && f.Weave(d, v[at:], src.elem, width, n)
}

// packWhole packs n 4-way groups of all channels of a panel from step offset at. It returns false
// without a kernel.
func packWhole[T int8 | int16, W Weight](f *simd.Ints, dst []T, src source[W], at, n int) bool {
	d, ok := any(dst).([]int8)
	if !ok {
		return false
	}
	switch v := any(src.v[at:]).(type) {
	case []int8:
		return f.Interleave(d, Bits(v), src.elem, n, uint8(src.zero))
	case []uint8:
		return f.Interleave(d, v, src.elem, n, uint8(src.zero))
	}
	return false
}

// packEights is packPanel for kernels whose panels have two 4-way groups of a column side by
// side.
func packEights[T int8 | int16, W Weight](w *intPanels, dst []T, src source[W], j0 int) {
	cols, pairs := w.f.Cols, w.pairs()
	for s := range w.segs {
		d := dst[s*pairs*cols*w.groupSize():]
		for i := range w.seg {
			for j := range min(cols, src.n-j0) {
				v := int32(src.v[(j0+j)*src.vec+(s*w.seg+i)*src.elem]) - src.zero
				d[w.f.FourAt(pairs, i, j)] = T(v)
				w.sums[j0+j] += v
			}
		}
	}
}

// packFours packs four steps of as many channels as fit d.
func packFours[T int8 | int16, W Weight](d []T, src source[W], at int) {
	step := src.elem
	for len(d) >= 4 {
		q := d[:4]
		q[0], q[1] = T(int32(src.v[at])-src.zero), T(int32(src.v[at+step])-src.zero)
		q[2], q[3] = T(int32(src.v[at+2*step])-src.zero), T(int32(src.v[at+3*step])-src.zero)
		at, d = at+src.vec, d[4:]
	}
}

// fitsInt8 reports whether all weights minus their zero point fit int8.
func fitsInt8[W Weight](v []W, zero int32) bool {
	switch v := any(v).(type) {
	case []int8:
		return bytesFitInt8(Bits(v), zero+128, 0x80)
	case []uint8:
		return bytesFitInt8(v, zero, 0)
	case []int16:
		if zero == 0 {
			return simd.IntKernels().Fit8(v)
		}
	}
	lost := int32(0)
	for _, x := range v {
		d := int32(x) - zero
		lost |= d ^ int32(int8(d))
	}
	return lost == 0
}

// bytesFitInt8 is fitsInt8 for bytes, after XOR with turn.
func bytesFitInt8(v []uint8, zero int32, turn uint8) bool {
	if zero < 0 || zero > 255 {
		return false
	}
	if zero == 128 {
		return true
	}
	// Values from least do not fit: from zero point + 128, or, after XOR, below zero point - 128.
	least := 128 + zero
	if zero > 128 {
		least, turn = 383-zero+1, ^turn
	}
	more, flip := uint64(256-least)*eachByte, uint64(turn)*eachByte
	for ; len(v) >= 8; v = v[8:] {
		if x := binary.LittleEndian.Uint64(v) ^ flip; (x&^upperBits+more)&x&upperBits != 0 {
			return false
		}
	}
	for _, x := range v {
		if int32(x^turn) >= least {
			return false
		}
	}
	return true
}

// zeroed returns v with length n, all zero, and grows it if needed.
func zeroed[T any](v []T, n int) []T {
	if cap(v) < n {
		return hugepages.Make[T](n)
	}
	v = v[:n]
	clear(v)
	return v
}

// fillLines packs the weights of all groups.
func fillLines[W Weight](p *workers.Pool, c *convInt8NHWC, s *ConvShape, w []W, zero int32) {
	c.start = c.start[:0]
	if c.band > 0 {
		c.panels[0].fours = true
		fillBands(p, c, s, w, zero)
		return
	}
	og := s.OC / s.Groups
	k := c.panels[0].segs * c.panels[0].seg
	// weights that change between runs are not converted to sparse
	first := c.panels[0].narrow == nil && c.panels[0].wide == nil && c.sparse == nil && !c.grouped()
	gain := 1.0
	if c.sparse = nil; first {
		gain = gain4of8(source[W]{w, zero, og, k, 1}, k, c.panels[0].seg)
		for g := 1; g < len(c.panels) && gain > 1; g++ {
			gain = gain4of8(source[W]{w[g*og*k:], zero, og, k, 1}, k, c.panels[g].seg)
		}
		setSparseLines(c, og, k, w, zero, gain)
	}
	if c.sparse != nil {
		return
	}
	if c.groups != nil && fillGroups(c.groups, w[:len(c.panels)*og*k], zero) {
		for g := range c.panels {
			p := &c.panels[g]
			p.narrow, p.wide, p.sums = nil, nil, c.groups.sums
		}
		return
	}
	// All groups read one padded copy.
	fours := len(c.panels) == 1 || fitsInt8(w[:len(c.panels)*og*k], zero)
	for g := range c.panels {
		c.panels[g].fours = fours
		if fillPanels(p, &c.panels[g], og, w[g*og*k:], zero, k, 1); gain > 1 {
			c.panels[g].pack4of8()
		}
	}
}

// setSparseLines lists the nonzero weights of all groups if skipping zeros is faster in each.
// gain is the speed-up of the panels over dense panels.
func setSparseLines[W Weight](c *convInt8NHWC, og, k int, w []W, zero int32, gain float64) {
	c.sparse = nil
	for g := range c.panels {
		s := newSparseInts(og, k, c.plan.n*c.plan.count, w[g*og*k:], zero, k, 1, gain)
		if s == nil {
			c.sparse = nil
			return
		}
		c.sparse = append(c.sparse, s)
	}
	for g := range c.panels {
		p := &c.panels[g]
		p.narrow, p.wide, p.sums = nil, nil, make([]int32, c.plan.panels*p.f.Cols)
		copy(p.sums, c.sparse[g].sums)
	}
}

// fillPlanes packs the weights of all channels, k each.
func fillPlanes[W Weight](c *convInt8NCHW, s *ConvShape, k int, w []W, zero int32) {
	if w = w[:s.OC*k]; c.f.Quads() && fitsInt8(w, zero) {
		c.narrow, c.sums = zeroed(c.narrow, s.OC*c.line), zeroed(c.sums, s.OC)
		for o := range s.OC {
			row, sum := c.narrow[o*c.line:][:k], int32(0)
			for i, v := range w[o*k:][:k] {
				row[i] = int8(int32(v) - zero)
				sum += int32(v) - zero
			}
			c.sums[o] = sum
		}
		return
	}
	c.wide, c.sums = zeroed(c.wide, s.OC*c.line), nil
	for o := range s.OC {
		row := c.wide[o*c.line:][:k]
		for i, v := range w[o*k:][:k] {
			row[i] = int16(int32(v) - zero)
		}
	}
}
