package gemm

import (
	"encoding/binary"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// FillPanels packs n channels minus their zero point: step i of channel j is v[j*vec+i*elem] -
// zero.
func FillPanels[W quantise.Weight](p *workers.Pool, w *IntPanels, n int, v []W, zero int32, vec, elem int) {
	cols := w.F.Cols
	panels := (n + cols - 1) / cols
	if n > 0 && w.Segs*w.Seg > 0 {
		v = v[:(n-1)*vec+(w.Segs*w.Seg-1)*elem+1]
	}
	fits := FitsInt8(v, zero)
	// Weights that change between runs are not reordered.
	fours := fits && w.Fours && w.F.Quads() && (!w.F.Saturates() || w.spare.narrow == nil && w.spare.wide == nil)
	if w.Sums, w.order, w.split = nil, nil, nil; fours {
		w.spare.sums = scratch.Zeroed(w.spare.sums, panels*cols)
		w.Sums = w.spare.sums
	}
	w.Sparse4of8 = nil
	src := Source[W]{v, zero, n, vec, elem}
	if fits {
		w.spare.narrow = scratch.Zeroed(w.spare.narrow, panels*w.panel())
		w.Narrow, w.Wide = w.spare.narrow, nil
		packPanels(p, w, w.Narrow, src, panels)
		if fours && w.F.Saturates() && !w.orderPairs(p, panels) {
			FillPanels(p, w, n, v, zero, vec, elem) // in pairs
		}
		return
	}
	w.spare.wide = scratch.Zeroed(w.spare.wide, panels*w.panel())
	w.Narrow, w.Wide = nil, w.spare.wide
	packPanels(p, w, w.Wide, src, panels)
}

// panel returns the number of weights of a panel, including padding.
func (w *IntPanels) panel() int { return w.Segs * w.Pairs() * w.F.Cols * w.GroupSize() }

// Source describes unpacked weights, see FillPanels.
type Source[W quantise.Weight] struct {
	V            []W
	Zero         int32
	N, Vec, Elem int
}

// packPanels packs all panels; each weight fits T.
func packPanels[T int8 | int16, W quantise.Weight](p *workers.Pool, w *IntPanels, dst []T, src Source[W], panels int) {
	workers.Each(p, panels, max(1, packGrain/max(1, w.panel())), packing[T, W]{w, dst, src})
}

// packing holds the arguments of a work item of packPanels.
type packing[T int8 | int16, W quantise.Weight] struct {
	w   *IntPanels
	dst []T
	src Source[W]
}

// Piece packs panels lo to hi.
func (q packing[T, W]) Piece(lo, hi int) {
	size := q.w.panel()
	for i := lo; i < hi; i++ {
		packAny(q.w, q.dst[i*size:][:size], q.src, i*q.w.F.Cols)
	}
}

// packGrain is the minimum number of weights of a packing work item: about 5 to 10 µs.
const packGrain = 1 << 13

// packAny packs the channels from j0.
func packAny[T int8 | int16, W quantise.Weight](w *IntPanels, dst []T, src Source[W], j0 int) {
	switch {
	case w.Sums != nil && w.F.QuadPairs:
		packEights(w, dst, src, j0)
	case src.Elem == 1 && w.GroupSize()*int(unsafe.Sizeof(dst[0])) == 4:
		packLines(w, dst, src, j0)
	default:
		packPanel(w, dst, src, j0)
	}
	if w.Sums != nil && !w.F.QuadPairs {
		w.sum(any(dst).([]int8), j0)
	}
}

// packLines packs 4-way groups of 8-bit weights, or pairs of 16-bit weights, whose steps are
// contiguous. It transposes a matrix of words in blocks that fit the L1 cache.
func packLines[T int8 | int16, W quantise.Weight](w *IntPanels, dst []T, src Source[W], j0 int) {
	cols, each, pairs := w.F.Cols, w.GroupSize(), w.Pairs()
	width, step := min(cols, src.N-j0), min(pairs, transposeBlock)
	sc, workspace := scratch.Borrow(cols * step)
	clear(workspace)
	rows, turned := unsafe.Slice((*T)(unsafe.Pointer(&workspace[0])), each*len(workspace)), move.Words(workspace)
	words := move.Words(dst)
	e := simd.ElementKernels()
	for s := range w.Segs {
		for i := 0; i < pairs; i += step {
			n, at := min(step, pairs-i), s*w.Seg+i*each
			steps := min(n*each, w.Seg-i*each)
			for j := range width {
				row := rows[j*step*each:][:n*each]
				subtractZero(w.F, row[:steps], src.V[(j0+j)*src.Vec+at:][:steps], src.Zero)
				clear(row[steps:])
			}
			out := words[(s*pairs+i)*cols:][:n*cols]
			if e != nil && e.Transpose(out, cols, turned, step, n, cols) {
				continue
			}
			for i := range n {
				for j := range cols {
					out[i*cols+j] = turned[j*step+i]
				}
			}
		}
	}
	scratch.Float32s.Put(sc)
}

// transposeBlock is the block length of packLines: its rows are not a multiple of a page apart.
const transposeBlock = 136

// sum computes the weight sums of the panel from channel j0, packed in 4-way groups, as dot
// products with ones.
func (w *IntPanels) sum(dst []int8, j0 int) {
	sc, workspace := scratch.Borrow(w.Pairs() + w.F.Cols)
	ones, start := scratch.AsBytes(workspace[:w.Pairs()]), scratch.AsInt32(workspace[w.Pairs():])
	scratch.Fill(ones, 1)
	clear(start)
	t := IntTiles.Get().(*simd.IntTile)
	t.A, t.K, t.Segs, t.B, t.C, t.Start = unsafe.Pointer(&ones[0]), w.Pairs(), w.Segs, unsafe.Pointer(&dst[0]), &w.Sums[j0], &start[0]
	w.F.RunQuads(t, 1, w.F.Cols)
	ReleaseIntTile(t)
	scratch.Float32s.Put(sc)
}

// subtractZero writes weights minus their zero point.
func subtractZero[T int8 | int16, W quantise.Weight](f *simd.Ints, dst []T, w []W, zero int32) {
	switch w := any(w).(type) {
	case []int8:
		subtractZeroBytes(f, any(dst), quantise.Bits(w), true, zero)
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
	d := quantise.Bits(dst.([]int8))
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
func packPanel[T int8 | int16, W quantise.Weight](w *IntPanels, dst []T, src Source[W], j0 int) {
	cols, each := w.F.Cols, w.GroupSize()
	width, step := min(cols, src.N-j0), src.Elem
	for s := range w.Segs {
		i := 0
		if whole := w.Seg / 4; width == cols && src.Vec == 1 && each == 4 && packWhole(w.F, dst, src, j0+s*w.Seg*step, whole) {
			dst, i = dst[whole*cols*each:], whole*each
		}
		if pairs := w.Seg / 2; src.Vec == 1 && each == 2 && packPairs(w.F, dst, src, width, j0+s*w.Seg*step, pairs) {
			dst, i = dst[pairs*cols*each:], pairs*each
		}
		for ; i < w.Seg; i += each {
			d, at := dst[:cols*each], j0*src.Vec+(s*w.Seg+i)*step
			dst = dst[cols*each:]
			switch {
			case i+each > w.Seg: // the last steps, below
			case each == 4:
				packFours(d[:4*width], src, at)
				continue
			default:
				for j := range width {
					d[2*j], d[2*j+1] = T(int32(src.V[at])-src.Zero), T(int32(src.V[at+step])-src.Zero)
					at += src.Vec
				}
				continue
			}
			for k := range min(each, w.Seg-i) {
				for j := range width {
					d[each*j+k] = T(int32(src.V[at+j*src.Vec+k*step]) - src.Zero)
				}
			}
		}
	}
}

// packPairs packs n pairs of words of the channels of a panel from step offset at. It returns
// false without a kernel.
func packPairs[T int8 | int16, W quantise.Weight](f *simd.Ints, dst []T, src Source[W], width, at, n int) bool {
	d, ok := any(dst).([]int16)
	v, words := any(src.V).([]int16)
	return ok && words && src.Zero == 0 && n > 0 && f.InterleavePairs(d, v[at:], src.Elem, width, n)
}

// packWhole packs n 4-way groups of all channels of a panel from step offset at. It returns false
// without a kernel.
func packWhole[T int8 | int16, W quantise.Weight](f *simd.Ints, dst []T, src Source[W], at, n int) bool {
	d, ok := any(dst).([]int8)
	if !ok {
		return false
	}
	switch v := any(src.V[at:]).(type) {
	case []int8:
		return f.Interleave(d, quantise.Bits(v), src.Elem, n, uint8(src.Zero))
	case []uint8:
		return f.Interleave(d, v, src.Elem, n, uint8(src.Zero))
	}
	return false
}

// packEights is packPanel for kernels whose panels have two 4-way groups of a column side by
// side.
func packEights[T int8 | int16, W quantise.Weight](w *IntPanels, dst []T, src Source[W], j0 int) {
	cols, pairs := w.F.Cols, w.Pairs()
	for s := range w.Segs {
		d := dst[s*pairs*cols*w.GroupSize():]
		for i := range w.Seg {
			for j := range min(cols, src.N-j0) {
				v := int32(src.V[(j0+j)*src.Vec+(s*w.Seg+i)*src.Elem]) - src.Zero
				d[w.F.QuadIndex(pairs, i, j)] = T(v)
				w.Sums[j0+j] += v
			}
		}
	}
}

// packFours packs four steps of as many channels as fit d.
func packFours[T int8 | int16, W quantise.Weight](d []T, src Source[W], at int) {
	step := src.Elem
	for len(d) >= 4 {
		q := d[:4]
		q[0], q[1] = T(int32(src.V[at])-src.Zero), T(int32(src.V[at+step])-src.Zero)
		q[2], q[3] = T(int32(src.V[at+2*step])-src.Zero), T(int32(src.V[at+3*step])-src.Zero)
		at, d = at+src.Vec, d[4:]
	}
}

// FitsInt8 reports whether all weights minus their zero point fit int8.
func FitsInt8[W quantise.Weight](v []W, zero int32) bool {
	switch v := any(v).(type) {
	case []int8:
		return bytesFitInt8(quantise.Bits(v), zero+128, 0x80)
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

// bytesFitInt8 is FitsInt8 for bytes, after XOR with turn.
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
