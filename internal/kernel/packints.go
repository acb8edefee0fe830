package kernel

import (
	"sync/atomic"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Weight is a weight of a product of integers before it is packed.
type Weight interface{ int8 | uint8 | int16 | int32 }

// fillPanels packs n channels less their zero point: step i of channel j is v[j*vec+i*elem] - zero.
func fillPanels[W Weight](p *workers.Pool, w *intPanels, n int, v []W, zero int32, vec, elem int) {
	cols := w.f.Cols
	panels := (n + cols - 1) / cols
	w.sums = nil
	if w.fours && w.f.Quads() {
		w.sums = make([]int32, panels*cols)
	}
	w.narrow, w.wide = room(w.narrow, panels*w.panel()), nil
	src := source[W]{v, zero, n, vec, elem}
	// That a weight has more than 8 bits shows when it is packed, and is rare.
	if packPanels(p, w, w.narrow, src, panels) {
		return
	}
	w.narrow, w.sums = nil, nil
	w.wide = make([]int16, panels*w.panel())
	packPanels(p, w, w.wide, src, panels)
}

// panel is the number of weights of a panel, with those that are not there.
func (w *intPanels) panel() int { return w.segs * w.pairs() * w.f.Cols * w.each() }

// source is where weights come from, see fillPanels.
type source[W Weight] struct {
	v            []W
	zero         int32
	n, vec, elem int
}

// packPanels packs all panels and tells whether every weight has a place in T.
func packPanels[T int8 | int16, W Weight](p *workers.Pool, w *intPanels, dst []T, src source[W], panels int) bool {
	var lost atomic.Int32
	p.For(panels, max(1, packGrain/max(1, w.panel())), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if lost.Load() != 0 || !packAny(w, dst[i*w.panel():][:w.panel()], src, i*w.f.Cols) {
				lost.Store(1)
				return
			}
		}
	})
	return lost.Load() == 0
}

// packGrain is the least number of weights that are worth a piece of packing: some 20 µs.
const packGrain = 1 << 15

// packAny packs the channels from j0 on.
func packAny[T int8 | int16, W Weight](w *intPanels, dst []T, src source[W], j0 int) bool {
	if bytes, ok := any(dst).([]int8); ok && w.sums != nil && !w.f.Eights && src.elem == 1 {
		return packLines(w, bytes, src, j0)
	}
	return packPanel(w, dst, src, j0)
}

// packLines packs fours of channels whose steps lie side by side: a matrix of words with rows and columns exchanged. Their
// sums are products with ones.
func packLines[W Weight](w *intPanels, dst []int8, src source[W], j0 int) bool {
	f, cols, piece := w.f, w.f.Cols, 4*w.pairs()
	line := w.segs * piece
	sc, room := borrow(cols*line/4 + piece/4 + cols)
	defer scratch.Put(sc)
	clear(room)
	turned := asUint32(room[:cols*line/4])
	rows, ones, start := asInts8(turned), asInts8(asUint32(room[cols*line/4:][:piece/4])), asInt32(room[cols*line/4+piece/4:])
	lost := int32(0)
	for j := range min(cols, src.n-j0) {
		for s := range w.segs {
			lost |= lessZero(rows[j*line+s*piece:][:w.seg], src.v[(j0+j)*src.vec+s*w.seg:], src.zero)
		}
	}
	if lost != 0 {
		return false
	}
	words, n := unsafe.Slice((*uint32)(unsafe.Pointer(&dst[0])), len(dst)/4), line/4
	done := 0
	if e := simd.ElementKernels(); e != nil && cols%8 == 0 {
		done, _ = e.Turn(words, cols, turned, n, n, cols)
	}
	for i := done; i < n; i++ {
		for j := range cols {
			words[i*cols+j] = turned[j*n+i]
		}
	}
	for i := range ones {
		ones[i] = 1
	}
	t := intTiles.Get().(*simd.IntTile)
	t.A, t.K, t.Segs, t.B, t.C, t.Start = unsafe.Pointer(&ones[0]), w.pairs(), w.segs, unsafe.Pointer(&dst[0]), &w.sums[j0], &start[0]
	f.RunQuads(t, 1, cols)
	giveIntTile(t)
	return true
}

// lessZero writes weights less their zero point. The result is 0 where all have 8 bits.
func lessZero[W Weight](dst []int8, w []W, zero int32) (lost int32) {
	w = w[:len(dst)]
	if bytes, ok := any(w).([]int8); ok && zero == 0 {
		copy(dst, bytes)
		return 0
	}
	for i, v := range w {
		d := int32(v) - zero
		dst[i] = int8(d)
		lost |= d ^ int32(int8(d))
	}
	return lost
}

func asUint32(f []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

func asInts8(v []uint32) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// packPanel packs the channels from j0 on: a few steps of all of them at a time, so that lines of the cache are
// used whole whether steps or channels lie side by side.
func packPanel[T int8 | int16, W Weight](w *intPanels, dst []T, src source[W], j0 int) bool {
	cols, each := w.f.Cols, w.each()
	width, step := min(cols, src.n-j0), src.elem
	lost := int32(0)
	if w.sums != nil && w.f.Eights {
		return packEights(w, dst, src, j0)
	}
	for s := range w.segs {
		for i := 0; i < w.seg; i += each {
			d, at := dst[:cols*each], j0*src.vec+(s*w.seg+i)*step
			dst = dst[cols*each:]
			switch {
			case i+each > w.seg: // the last steps, below
			case each == 4:
				lost |= packFours(d, src, at, w.sums[j0:][:width])
				continue
			default:
				for j := range width {
					a, b := int32(src.v[at])-src.zero, int32(src.v[at+step])-src.zero
					d[2*j], d[2*j+1] = T(a), T(b)
					lost |= (a ^ int32(T(a))) | (b ^ int32(T(b)))
					at += src.vec
				}
				continue
			}
			for k := range min(each, w.seg-i) {
				for j := range width {
					v := int32(src.v[at+j*src.vec+k*step]) - src.zero
					d[each*j+k] = T(v)
					lost |= v ^ int32(T(v))
					if w.sums != nil {
						w.sums[j0+j] += v
					}
				}
			}
		}
	}
	return lost == 0
}

// packEights is packPanel for sets whose panels have two fours of a column side by side.
func packEights[T int8 | int16, W Weight](w *intPanels, dst []T, src source[W], j0 int) bool {
	cols, pairs := w.f.Cols, w.pairs()
	lost := int32(0)
	for s := range w.segs {
		d := dst[s*pairs*cols*w.each():]
		for i := range w.seg {
			for j := range min(cols, src.n-j0) {
				v := int32(src.v[(j0+j)*src.vec+(s*w.seg+i)*src.elem]) - src.zero
				t := T(v)
				d[w.f.FourAt(pairs, i, j)] = t
				lost |= v ^ int32(t)
				w.sums[j0+j] += v
			}
		}
	}
	return lost == 0
}

// packFours packs four steps of the channels whose sums are given. The result is 0 where all weights have a place in T.
func packFours[T int8 | int16, W Weight](d []T, src source[W], at int, sums []int32) (lost int32) {
	step := src.elem
	for j := range sums {
		q := d[4*j:][:4]
		v0, v1 := int32(src.v[at])-src.zero, int32(src.v[at+step])-src.zero
		v2, v3 := int32(src.v[at+2*step])-src.zero, int32(src.v[at+3*step])-src.zero
		q[0], q[1], q[2], q[3] = T(v0), T(v1), T(v2), T(v3)
		lost |= (v0 ^ int32(q[0])) | (v1 ^ int32(q[1])) | (v2 ^ int32(q[2])) | (v3 ^ int32(q[3]))
		sums[j] += v0 + v1 + v2 + v3
		at += src.vec
	}
	return lost
}

// fits8 tells whether weights less their zero point have at most 8 bits.
func fits8[W Weight](v []W, zero int32) bool {
	lost := int32(0)
	for _, x := range v {
		d := int32(x) - zero
		lost |= d ^ int32(int8(d))
	}
	return lost == 0
}

// room is v with a length of n and zeros.
func room[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	v = v[:n]
	clear(v)
	return v
}

// fillLines packs the weights of all groups.
func fillLines[W Weight](p *workers.Pool, c *intLines, og int, w []W, zero int32) {
	k := c.panels[0].segs * c.panels[0].seg
	// All groups read one frame.
	fours := len(c.panels) == 1 || fits8(w[:len(c.panels)*og*k], zero)
	for g := range c.panels {
		c.panels[g].fours = fours
		fillPanels(p, &c.panels[g], og, w[g*og*k:], zero, k, 1)
	}
}

// fillPlanes takes the weights of all channels, k each.
func fillPlanes[W Weight](c *intPlanes, s *ConvShape, k int, w []W, zero int32) {
	if w = w[:s.OC*k]; c.f.Quads() && fits8(w, zero) {
		c.narrow, c.sums = room(c.narrow, s.OC*c.line), room(c.sums, s.OC)
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
	c.wide, c.sums = room(c.wide, s.OC*c.line), nil
	for o := range s.OC {
		row := c.wide[o*c.line:][:k]
		for i, v := range w[o*k:][:k] {
			row[i] = int16(int32(v) - zero)
		}
	}
}
