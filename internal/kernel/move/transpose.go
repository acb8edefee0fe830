package move

import (
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

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
	move := squareOf[T]()
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

// squareOf is square, in vectors where there are any for words of this width.
func squareOf[T any]() func(dst, src []T, do, so, ni, nj, dk, ss int) {
	if simd.ElementKernels() != nil {
		if f, ok := any(squareWords).(func(dst, src []T, do, so, ni, nj, dk, ss int)); ok {
			return f
		}
	}
	return square[T]
}

// squareWords is square in vectors.
func squareWords(dst, src []uint32, do, so, ni, nj, dk, ss int) {
	if dk < 0 || ss < 0 {
		square(dst, src, do, so, ni, nj, dk, ss) // lines that go back
		return
	}
	i, j := simd.ElementKernels().Turn(dst[do:], dk, src[so:], ss, ni, nj)
	if j < nj {
		byColumn(dst, src, do+j, so+j*ss, i, nj-j, dk, ss)
	}
	if i < ni {
		byColumn(dst, src, do+i*dk, so+i, ni-i, nj, dk, ss)
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
