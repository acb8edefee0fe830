package move

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// tile is the side of the square that is transposed at a time through a buffer in the L1 cache:
// both sides are then accessed in whole cache lines, whatever their strides.
const tile = 32

// thinMax is the number of rows or columns below which squares are slower. stripLen is the length
// of the strips that are transposed instead.
const thinMax, stripLen = 8, 512

// leastBytes is the minimum number of columns of [simd.Elements.Transpose8]. It gets multiples of
// bytesLeast rows at a time, up to bytesHigh.
const leastBytes, bytesLeast, bytesHigh = 16, 64, 512

// transpose copies if the destination is contiguous in the last dimension and the source in
// dimension k.
func transpose[T any](p *Plan, pool *workers.Pool, dst, src []T, k int) {
	if p.dims[k]*int(unsafe.Sizeof(*new(T))) < cacheLine {
		k = p.follow(k)
	}
	last := len(p.dims) - 1
	rows, cols := p.dims[k], p.dims[last]
	dk, ss := p.dst[k], p.src[last]
	outer := 1
	for i, d := range p.dims {
		if i != k && i != last {
			outer *= d
		}
	}
	t, ok := p.kept.(*transposition[T])
	if !ok {
		t = new(transposition[T])
		t.matrices = func(lo, hi int) {
			t.p.lines(t.k, len(t.p.dims)-1, lo, hi, func(do, so int) { t.block(do, so, 0, t.rows, 0, t.cols) })
		}
		t.bands = func(lo, hi int) { t.block(t.do, t.so, lo*t.high, min(hi*t.high, t.rows), 0, t.cols) }
		t.strips = func(lo, hi int) { t.block(t.do, t.so, 0, t.rows, lo*stripLen, min(hi*stripLen, t.cols)) }
		p.kept = t
	}
	t.p, t.dst, t.src, t.k, t.rows, t.cols, t.dk, t.ss, t.high, t.wide, t.whole = p, dst, src, k, rows, cols, dk, ss, tile, tile, false
	_, bytes := any(dst).([]uint8)
	_, words := any(dst).([]uint32)
	threads, pace := pool.Threads(), 1.0 // elements per nanosecond
	switch {
	case bytes && cols >= leastBytes && rows >= thinMax && dk > 0 && ss > 0 && simd.ElementKernels().HasRescaleColumns():
		// The byte kernel takes all columns and splits rows itself.
		t.high, t.whole, pace = min(bytesHigh, ((rows+threads-1)/threads+bytesLeast-1)/bytesLeast*bytesLeast), true, 12
	case rows < thinMax:
		t.wide = stripLen
	case cols < thinMax:
		t.high = stripLen
	case words && simd.ElementKernels() != nil, has16Bits[T]():
		pace = 3
	}
	grain := workers.Grain(pace)
	// Split few matrices into bands of rows, or into strips of columns if there are few rows;
	// distribute many matrices whole.
	switch {
	case outer*rows*cols <= grain:
		t.matrices(0, outer)
	case !t.whole && outer < threads && rows < 2*t.high && cols >= 2*stripLen:
		p.lines(k, last, 0, outer, func(do, so int) {
			t.do, t.so = do, so
			pool.For((cols+stripLen-1)/stripLen, max(1, grain/(stripLen*rows)), t.strips)
		})
	case outer >= 4*threads || outer >= threads && (outer%threads == 0 || rows*cols <= 2*grain) || rows <= t.high:
		pool.For(outer, max(1, grain/(rows*cols)), t.matrices)
	default:
		p.lines(k, last, 0, outer, func(do, so int) {
			t.do, t.so = do, so
			pool.For((rows+t.high-1)/t.high, max(1, grain/(t.high*cols)), t.bands)
		})
	}
}

// cacheLine is the size of a cache line in bytes.
const cacheLine = 64

// follow orders matrices that are adjacent in the source one after the other if the rows of one,
// counted by dimension k, use only a part of each cache line: another order would read these
// lines again later. It returns the new k.
func (p *Plan) follow(k int) int {
	before := len(p.dims) - 2 // the dimension that changes first
	if before == k {
		before--
	}
	for i := range before {
		if i == k || p.src[i] != p.dims[k] {
			continue
		}
		for _, v := range [][]int{p.dims, p.dst, p.src} {
			moved := v[i]
			copy(v[i:before], v[i+1:before+1])
			v[before] = moved
		}
		if i < k && k < before {
			k--
		}
		break
	}
	return k
}

// transposition holds the state of a transpose. The plan keeps it: runs must not allocate.
type transposition[T any] struct {
	p                                 *Plan
	dst, src                          []T
	k, rows, cols, dk, ss, high, wide int
	do, so                            int  // the matrix that is split into bands
	whole                             bool // rows are copied in their full length
	matrices, bands, strips           func(lo, hi int)
}

// block copies columns j0 to j1 of rows lo to hi of the matrix at do and so.
func (t *transposition[T]) block(do, so, lo, hi, j0, j1 int) {
	words, vectors := any(t.dst).([]uint32)
	vectors = vectors && simd.ElementKernels() != nil
	halves := has16Bits[T]()
	if bytes, ok := any(t.dst).([]uint8); ok && t.whole {
		simd.ElementKernels().Transpose8(bytes[do+lo*t.dk+j0:], t.dk, any(t.src).([]uint8)[so+lo+j0*t.ss:], t.ss, hi-lo, j1-j0)
		return
	}
	for i0 := lo; i0 < hi; i0 += t.high {
		for j := j0; j < j1; j += t.wide {
			d, s, ni, nj := do+i0*t.dk+j, so+i0+j*t.ss, min(t.high, hi-i0), min(t.wide, j1-j)
			switch {
			case t.rows < thinMax:
				if !vectors || t.ss < 2 || t.dk < 1 || !copiesWords(words[d:], any(t.src).([]uint32)[s:], ni, nj, t.dk, t.ss) {
					byRow(t.dst, t.src, d, s, ni, nj, t.dk, t.ss)
				}
			case t.cols < thinMax:
				byColumn(t.dst, t.src, d, s, ni, nj, t.dk, t.ss)
			case vectors:
				squareWords(words, any(t.src).([]uint32), d, s, ni, nj, t.dk, t.ss, (*simd.Elements).Transpose)
			case halves:
				squareWords(any(t.dst).([]uint16), any(t.src).([]uint16), d, s, ni, nj, t.dk, t.ss, (*simd.Elements).Transpose16)
			default:
				square(t.dst, t.src, d, s, ni, nj, t.dk, t.ss)
			}
		}
	}
}

// square transposes ni rows of nj columns, both at most tile: dst[do+i*dk+j] = src[so+i+j*ss].
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

// has16Bits reports whether elements have 16 bits and a SIMD transpose exists.
func has16Bits[T any]() bool {
	_, ok := any(*new(T)).(uint16)
	return ok && simd.ElementKernels().HasTranspose16()
}

// squareWords is square with SIMD kernels.
func squareWords[T any](dst, src []T, do, so, ni, nj, dk, ss int, turn func(e *simd.Elements, dst []T, stepDst int, src []T, stepSrc, rows, cols int) bool) {
	switch {
	case dk < 0 || ss < 0:
		square(dst, src, do, so, ni, nj, dk, ss) // negative strides
	case !turn(simd.ElementKernels(), dst[do:], dk, src[so:], ss, ni, nj):
		byColumn(dst, src, do, so, ni, nj, dk, ss)
	}
}

// copiesWords is square for few rows with a SIMD kernel, if one exists for words ss apart.
func copiesWords(dst, src []uint32, ni, nj, dk, ss int) bool {
	f := simd.WindowKernels()
	return f != nil && f.CopyLines(nil, asFloats(dst), dk, asFloats(src), 1, ss, nj, ni)
}

// byRow is square for few rows.
func byRow[T any](dst, src []T, do, so, ni, nj, dk, ss int) {
	if ss >= ni && dk > 0 && nj > 1 {
		// Two or three rows in a single pass, so that the source is read once.
		for ; ni == 2 || ni >= 4; ni -= 2 {
			s := src[so:][:(nj-1)*ss+2]
			a, b := dst[do:][:nj], dst[do+dk:][:nj]
			for j := range a {
				at := s[j*ss:]
				a[j], b[j] = at[0], at[1]
			}
			do, so = do+2*dk, so+2
		}
		if ni == 3 {
			s := src[so:][:(nj-1)*ss+3]
			a, b, c := dst[do:][:nj], dst[do+dk:][:nj], dst[do+2*dk:][:nj]
			for j := range a {
				at := s[j*ss:]
				a[j], b[j], c[j] = at[0], at[1], at[2]
			}
			return
		}
	}
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
	if nj == 3 && dk >= 3 && ss > 0 && ni > 1 {
		a, b, c, d := src[so:][:ni], src[so+ss:][:ni], src[so+2*ss:][:ni], dst[do:][:(ni-1)*dk+3]
		for i := range a {
			to := d[i*dk:]
			to[0], to[1], to[2] = a[i], b[i], c[i]
		}
		return
	}
	for j := range nj {
		at := do + j
		for _, v := range src[so+j*ss:][:ni] {
			dst[at] = v
			at += dk
		}
	}
}
