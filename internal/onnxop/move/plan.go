package move

import (
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// parallelFrom is the number of elements from which a copy is worth spreading
// over threads.
const parallelFrom = 1 << 15

// Plan is a copy between two strided views that have the same dimensions. The
// zero value copies nothing. A Plan keeps its memory from one Set to the next,
// so that setting it again for every run costs no allocation.
type Plan struct {
	dims, dst, src []int
	dstOff, srcOff int
	empty          bool
}

// Set describes the copy: dims, the strides of both sides in elements (they may
// be zero on the source and negative on either), and the offsets of the first
// element. Dimensions of one are dropped and neighbours merged where they lie
// one after the other on both sides.
func (p *Plan) Set(dims, dst, src []int, dstOff, srcOff int) {
	p.dims, p.dst, p.src = p.dims[:0], p.dst[:0], p.src[:0]
	p.dstOff, p.srcOff, p.empty = dstOff, srcOff, false
	for i, d := range dims {
		if d == 0 {
			p.empty = true
			return
		}
		if d == 1 {
			continue
		}
		if k := len(p.dims) - 1; k >= 0 && p.dst[k] == dst[i]*d && p.src[k] == src[i]*d {
			p.dims[k] *= d
			p.dst[k], p.src[k] = dst[i], src[i]
			continue
		}
		p.dims = append(p.dims, d)
		p.dst = append(p.dst, dst[i])
		p.src = append(p.src, src[i])
	}
	if len(p.dims) == 0 {
		p.dims, p.dst, p.src = append(p.dims, 1), append(p.dst, 1), append(p.src, 1)
	}
}

// Run copies. Both tensors must have the same element width of at least a byte,
// or be strings. They must not overlap.
func (p *Plan) Run(pool *workers.Pool, dst, src *tensor.Tensor) {
	if p.empty || len(p.dims) == 0 {
		return
	}
	switch dst.Type.Bits() {
	case 0:
		run(p, pool, dst.Strings, src.Strings)
	case 8:
		run(p, pool, tensor.Of[uint8](dst), tensor.Of[uint8](src))
	case 16:
		run(p, pool, tensor.Of[uint16](dst), tensor.Of[uint16](src))
	case 32:
		run(p, pool, tensor.Of[uint32](dst), tensor.Of[uint32](src))
	case 64:
		run(p, pool, tensor.Of[uint64](dst), tensor.Of[uint64](src))
	case 128:
		run(p, pool, tensor.Of[complex128](dst), tensor.Of[complex128](src))
	default:
		panic("move: " + dst.Type.String() + " elements must be unpacked first")
	}
}

func run[T any](p *Plan, pool *workers.Pool, dst, src []T) {
	r := len(p.dims)
	last := r - 1
	ds, ss := p.dst[last], p.src[last]
	if ds == 1 && ss != 1 && ss != 0 {
		// A dimension in which the source is contiguous makes a transposition.
		for k := last - 1; k >= 0; k-- {
			if p.src[k] == 1 && p.dims[k] > 1 {
				transpose(p, pool, dst, src, k)
				return
			}
		}
	}
	n := p.dims[last]
	outer := 1
	for _, d := range p.dims[:last] {
		outer *= d
	}
	if outer == 1 {
		if n < 2*parallelFrom {
			line(dst, src, p.dstOff, p.srcOff, n, ds, ss)
			return
		}
		pool.For(n, parallelFrom, func(lo, hi int) {
			line(dst, src, p.dstOff+lo*ds, p.srcOff+lo*ss, hi-lo, ds, ss)
		})
		return
	}
	if outer*n < 2*parallelFrom {
		p.lines(last, -1, 0, outer, func(do, so int) { line(dst, src, do, so, n, ds, ss) })
		return
	}
	pool.For(outer, max(1, parallelFrom/n), func(lo, hi int) {
		p.lines(last, -1, lo, hi, func(do, so int) { line(dst, src, do, so, n, ds, ss) })
	})
}

// lines walks positions lo to hi of the dimensions other than skip1 and skip2
// in row-major order and gives the offset of each on both sides.
func (p *Plan) lines(skip1, skip2, lo, hi int, f func(dstOff, srcOff int)) {
	var buf [16]int
	at := buf[:0]
	do, so := p.dstOff, p.srcOff
	at = append(at, p.dims...)
	rest := lo
	for i := len(p.dims) - 1; i >= 0; i-- {
		at[i] = 0
		if i == skip1 || i == skip2 {
			continue
		}
		at[i] = rest % p.dims[i]
		rest /= p.dims[i]
		do += at[i] * p.dst[i]
		so += at[i] * p.src[i]
	}
	for n := lo; n < hi; n++ {
		f(do, so)
		for i := len(p.dims) - 1; i >= 0; i-- {
			if i == skip1 || i == skip2 {
				continue
			}
			at[i]++
			do += p.dst[i]
			so += p.src[i]
			if at[i] < p.dims[i] {
				break
			}
			do -= at[i] * p.dst[i]
			so -= at[i] * p.src[i]
			at[i] = 0
		}
	}
}

// line copies n elements along one dimension.
func line[T any](dst, src []T, do, so, n, ds, ss int) {
	switch {
	case ds == 1 && ss == 1:
		copy(dst[do:do+n], src[so:so+n])
	case ds == 1 && ss == 0:
		Fill(dst[do:do+n], src[so])
	case ds == 1:
		d := dst[do : do+n]
		for i := range d {
			d[i] = src[so]
			so += ss
		}
	default:
		for range n {
			dst[do] = src[so]
			do += ds
			so += ss
		}
	}
}

// Fill sets every element of s to v.
func Fill[T any](s []T, v T) {
	if len(s) < 32 {
		for i := range s {
			s[i] = v
		}
		return
	}
	s[0] = v
	for i := 1; i < len(s); i *= 2 {
		copy(s[i:], s[:i])
	}
}

// tile is the edge of the square that a transposition moves at a time, by way
// of a buffer in the first-level cache: rows of both sides are then touched in
// whole cache lines, whatever their distance.
const tile = 32

// thin is the number of rows or columns below which squares do not pay, and
// strip the length of the strips that are moved instead.
const thin, strip = 8, 512

// transpose copies when the destination is contiguous in the last dimension
// and the source in dimension k.
func transpose[T any](p *Plan, pool *workers.Pool, dst, src []T, k int) {
	last := len(p.dims) - 1
	rows, cols := p.dims[k], p.dims[last]
	dk, ss := p.dst[k], p.src[last]
	outer := 1
	for i, d := range p.dims {
		if i != k && i != last {
			outer *= d
		}
	}
	high, wide := tile, tile
	move := square[T]
	if rows < thin {
		wide, move = strip, byRow[T]
	} else if cols < thin {
		high, move = strip, byColumn[T]
	}
	block := func(do, so, lo, hi int) {
		for i0 := lo; i0 < hi; i0 += high {
			for j0 := 0; j0 < cols; j0 += wide {
				move(dst, src, do+i0*dk+j0, so+i0+j0*ss, min(high, hi-i0), min(wide, cols-j0), dk, ss)
			}
		}
	}
	if outer*rows*cols < 2*parallelFrom {
		p.lines(k, last, 0, outer, func(do, so int) { block(do, so, 0, rows) })
		return
	}
	// Few matrices are cut into bands of rows, many are shared out whole.
	if outer >= 4*pool.Threads() || rows < 2*high {
		pool.For(outer, max(1, parallelFrom/(rows*cols)), func(lo, hi int) {
			p.lines(k, last, lo, hi, func(do, so int) { block(do, so, 0, rows) })
		})
		return
	}
	p.lines(k, last, 0, outer, func(do, so int) {
		pool.For((rows+high-1)/high, max(1, parallelFrom/(high*cols)), func(lo, hi int) {
			block(do, so, lo*high, min(hi*high, rows))
		})
	})
}

// square moves ni rows of nj columns, neither above tile:
// dst[do+i*dk+j] = src[so+i+j*ss].
func square[T any](dst, src []T, do, so, ni, nj, dk, ss int) {
	var buf [tile * tile]T
	for j := range nj {
		for i, v := range src[so+j*ss:][:ni] {
			buf[(i*tile+j)&(tile*tile-1)] = v
		}
	}
	for i := range ni {
		copy(dst[do+i*dk:][:nj], buf[i*tile:])
	}
}

// byRow is square for few rows.
func byRow[T any](dst, src []T, do, so, ni, nj, dk, ss int) {
	for i := range ni {
		d, at := dst[do+i*dk:][:nj], so+i
		for j := range d {
			d[j] = src[at]
			at += ss
		}
	}
}

// byColumn is square for few columns.
func byColumn[T any](dst, src []T, do, so, ni, nj, dk, ss int) {
	for j := range nj {
		at := do + j
		for _, v := range src[so+j*ss:][:ni] {
			dst[at] = v
			at += dk
		}
	}
}
