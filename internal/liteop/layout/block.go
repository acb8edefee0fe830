package layout

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// Block is a rectangular copy: its shape and, for each axis, how far apart
// neighbours lie in the destination and in the source, in elements. Strides may
// be zero (source only) or negative. Axes of a Block made by [NewBlock] are
// simplified: no axis of length one, no two axes that can be walked as one.
type Block struct {
	shape    []int
	dst, src []int
	n        int  // elements
	tiled    bool // the source is contiguous along the last but one axis
}

// NewBlock prepares the copy. The slices are not kept.
func NewBlock(shape, dst, src []int) *Block {
	b := &Block{n: 1}
	for i := len(shape) - 1; i >= 0; i-- {
		b.n *= shape[i]
		if shape[i] == 1 {
			continue
		}
		if k := len(b.shape) - 1; k >= 0 && dst[i] == b.dst[k]*b.shape[k] && src[i] == b.src[k]*b.shape[k] {
			b.shape[k] *= shape[i]
			continue
		}
		b.shape = append(b.shape, shape[i])
		b.dst = append(b.dst, dst[i])
		b.src = append(b.src, src[i])
	}
	slices.Reverse(b.shape)
	slices.Reverse(b.dst)
	slices.Reverse(b.src)
	b.tile()
	return b
}

// tile brings the axis along which the source is contiguous next to the last
// one, so that a transposition can walk small squares that stay in cache. The
// order of axes does not matter to the result.
func (b *Block) tile() {
	last := len(b.shape) - 1
	if last < 1 || b.dst[last] != 1 || b.src[last] == 1 || b.src[last] == 0 {
		return
	}
	j := slices.Index(b.src[:last], 1)
	if j < 0 {
		return
	}
	for _, s := range [][]int{b.shape, b.dst, b.src} {
		v := s[j]
		copy(s[j:], s[j+1:last])
		s[last-1] = v
	}
	b.tiled = true
}

// Len is the number of elements that the block copies.
func (b *Block) Len() int { return b.n }

// grain is the number of elements below which another thread is not worth it.
const grain = 16384

// tileSide is the side of the squares that transpositions walk. Where the rows
// are shorter than narrow, the walk goes along the columns instead.
const (
	tileSide = 16
	narrow   = 8
	tileLong = 2048
)

// Move copies src, from element so, to dst, from element do.
func Move[T any](p *workers.Pool, b *Block, dst, src []T, do, so int) {
	switch rank := len(b.shape); {
	case b.n == 0:
	case rank == 0:
		dst[do] = src[so]
	case rank == 1:
		ds, ss := b.dst[0], b.src[0]
		if b.n <= grain {
			row(dst, src, do, so, b.n, ds, ss)
			return
		}
		p.For(b.n, grain, func(lo, hi int) { row(dst, src, do+lo*ds, so+lo*ss, hi-lo, ds, ss) })
	case b.tiled:
		moveTiled(p, b, dst, src, do, so)
	default:
		inner := b.shape[rank-1]
		outer := b.n / inner
		if b.n <= grain {
			moveRows(b, dst, src, do, so, 0, outer)
			return
		}
		p.For(outer, max(1, grain/inner), func(lo, hi int) { moveRows(b, dst, src, do, so, lo, hi) })
	}
}

// moveRows copies rows lo to hi of the last axis.
func moveRows[T any](b *Block, dst, src []T, do, so, lo, hi int) {
	last := len(b.shape) - 1
	n, ds, ss := b.shape[last], b.dst[last], b.src[last]
	var buf [8]int
	pos := buf[:0]
	if last > len(buf) {
		pos = make([]int, 0, last)
	}
	pos = pos[:last]
	for k, r := last-1, lo; k >= 0; k-- {
		pos[k] = r % b.shape[k]
		r /= b.shape[k]
		do += pos[k] * b.dst[k]
		so += pos[k] * b.src[k]
	}
	for ; lo < hi; lo++ {
		row(dst, src, do, so, n, ds, ss)
		for k := last - 1; k >= 0; k-- {
			pos[k]++
			do += b.dst[k]
			so += b.src[k]
			if pos[k] < b.shape[k] {
				break
			}
			do -= pos[k] * b.dst[k]
			so -= pos[k] * b.src[k]
			pos[k] = 0
		}
	}
}

// row copies n elements with one stride on each side.
func row[T any](dst, src []T, do, so, n, ds, ss int) {
	switch {
	case ds == 1 && ss == 1:
		if n <= 4 {
			d, s := dst[do:do+n], src[so:so+n]
			for i := range d {
				d[i] = s[i]
			}
			return
		}
		copy(dst[do:do+n], src[so:so+n])
	case ds == 1 && ss == 0:
		v, d := src[so], dst[do:do+n]
		for i := range d {
			d[i] = v
		}
	case ds == 1:
		d := dst[do : do+n]
		for i := range d {
			d[i] = src[so]
			so += ss
		}
	case ss == 1:
		for _, v := range src[so : so+n] {
			dst[do] = v
			do += ds
		}
	default:
		for range n {
			dst[do] = src[so]
			do += ds
			so += ss
		}
	}
}

// moveTiled copies squares of the last two axes.
func moveTiled[T any](p *workers.Pool, b *Block, dst, src []T, do, so int) {
	last := len(b.shape) - 1
	rows, cols := b.shape[last-1], b.shape[last]
	dr, sc := b.dst[last-1], b.src[last]
	side := tileSide
	if cols < narrow {
		side = tileLong
	}
	strips := (rows + side - 1) / side
	work := func(lo, hi int) {
		for u := lo; u < hi; u++ {
			d0, s0 := do, so
			for k, r := last-2, u/strips; k >= 0; k-- {
				i := r % b.shape[k]
				r /= b.shape[k]
				d0 += i * b.dst[k]
				s0 += i * b.src[k]
			}
			r0 := u % strips * side
			r1 := min(r0+side, rows)
			if cols < narrow {
				for c := range cols {
					row(dst, src, d0+r0*dr+c, s0+r0+c*sc, r1-r0, dr, 1)
				}
				continue
			}
			for c0 := 0; c0 < cols; c0 += tileSide {
				c1 := min(c0+tileSide, cols)
				for r := r0; r < r1; r++ {
					d := dst[d0+r*dr+c0 : d0+r*dr+c1]
					s := s0 + r + c0*sc
					for i := range d {
						d[i] = src[s]
						s += sc
					}
				}
			}
		}
	}
	units := b.n / (rows * cols) * strips
	if b.n <= grain {
		work(0, units)
		return
	}
	p.For(units, max(1, grain/(min(side, rows)*cols)), work)
}

// BroadcastStrides returns the strides, in elements, with which a dense tensor
// of the shape is read as if it had the shape to: zero along axes that repeat.
func BroadcastStrides(shape, to []int) ([]int, error) {
	lead := len(to) - len(shape)
	if lead < 0 {
		return nil, fmt.Errorf("shape %s does not broadcast to %s", tensor.FormatShape(shape), tensor.FormatShape(to))
	}
	strides := make([]int, len(to))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		switch {
		case shape[i] == to[lead+i]:
			strides[lead+i] = n
		case shape[i] != 1:
			return nil, fmt.Errorf("shape %s does not broadcast to %s", tensor.FormatShape(shape), tensor.FormatShape(to))
		}
		n *= shape[i]
	}
	return strides, nil
}
