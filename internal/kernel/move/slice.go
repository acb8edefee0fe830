package move

import (
	"fmt"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Slice is a run of elements of one width. Functions with several Slices require equal widths.
type Slice struct {
	Bytes   []byte   // the elements, Width bytes each
	Strings []string // the elements when Width is 0
	Width   int      // 0 for strings, else 1, 2, 4, 8 or 16 bytes
}

// Len returns the number of elements.
func (s Slice) Len() int {
	if s.Width == 0 {
		return len(s.Strings)
	}
	return len(s.Bytes) / s.Width
}

// From returns s without its first n elements.
func (s Slice) From(n int) Slice {
	if s.Width == 0 {
		s.Strings = s.Strings[n:]
	} else {
		s.Bytes = s.Bytes[n*s.Width:]
	}
	return s
}

// To returns the first n elements of s.
func (s Slice) To(n int) Slice {
	if s.Width == 0 {
		s.Strings = s.Strings[:n]
	} else {
		s.Bytes = s.Bytes[:n*s.Width]
	}
	return s
}

// mover holds every function of this package for one width.
type mover interface {
	plan(p *Plan, pool *workers.Pool, dst, src Slice)
	blocks(b *Blocks, pool *workers.Pool, dst, src Slice)
	put(dst, src Slice, at []int, n int)
	mark(dst, value Slice, at []int)
	fill(pool *workers.Pool, dst, value Slice)
	maps(m *Maps, pool *workers.Pool, dst, src, value Slice)
	pick(dst, x, y Slice, cond []uint8, step [3]int)
	pickPlaces(dst, x, y Slice, cond []uint8, at [3][]int)
}

// mover returns the functions for the width of s: the only place that lists widths.
func (s Slice) mover() mover {
	switch s.Width {
	case 0:
		return words[string]{}
	case 1:
		return words[uint8]{}
	case 2:
		return words[uint16]{}
	case 4:
		return words[uint32]{}
	case 8:
		return words[uint64]{}
	case 16:
		return words[[2]uint64]{}
	}
	panic(fmt.Sprintf("move: elements of %d bytes", s.Width))
}

type words[T any] struct{}

// of views the elements as T, which has the width of s.
func (words[T]) of(s Slice) []T {
	if s.Width == 0 {
		return *(*[]T)(unsafe.Pointer(&s.Strings)) // T is string
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(s.Bytes))), len(s.Bytes)/s.Width)
}

func (w words[T]) plan(p *Plan, pool *workers.Pool, dst, src Slice) {
	run(p, pool, w.of(dst), w.of(src))
}

func (w words[T]) blocks(b *Blocks, pool *workers.Pool, dst, src Slice) {
	gather(b, pool, w.of(dst), w.of(src))
}

func (w words[T]) put(dst, src Slice, at []int, n int) { put(w.of(dst), w.of(src), at, n) }

func (w words[T]) mark(dst, value Slice, at []int) {
	d, v := w.of(dst), w.of(value)[0]
	for _, a := range at {
		d[a] = v
	}
}

func (w words[T]) fill(pool *workers.Pool, dst, value Slice) {
	d, v := w.of(dst), w.of(value)[0]
	if len(d) <= parallelElements[T]() || pool.Threads() == 1 { // sharing between threads allocates
		set(d, v)
		return
	}
	pool.For(len(d), parallelElements[T](), func(lo, hi int) { set(d[lo:hi], v) })
}

func (w words[T]) maps(m *Maps, pool *workers.Pool, dst, src, value Slice) {
	mapped(m, pool, w.of(dst), w.of(src), w.of(value)[0])
}

func (w words[T]) pick(dst, x, y Slice, cond []uint8, step [3]int) {
	pick(w.of(dst), w.of(x), w.of(y), cond, step)
}

func (w words[T]) pickPlaces(dst, x, y Slice, cond []uint8, at [3][]int) {
	pickPlaces(w.of(dst), w.of(x), w.of(y), cond, at)
}

// Fill sets every element of dst to the first of value.
func Fill(pool *workers.Pool, dst, value Slice) {
	if dst.Len() > 0 {
		dst.mover().fill(pool, dst, value)
	}
}

// Mark sets the elements of dst with the indices at to the first of value.
func Mark(dst, value Slice, at []int) { dst.mover().mark(dst, value, at) }

// Put copies block i of src, of n elements, to block at[i] of dst, in order, so that the last one
// for a block wins. It skips negative indices.
func Put(dst, src Slice, at []int, n int) { dst.mover().put(dst, src, at, n) }

func put[T any](dst, src []T, at []int, n int) {
	for i, a := range at {
		switch {
		case a < 0:
		case n == 1:
			dst[a] = src[i]
		default:
			copy(dst[a*n:(a+1)*n], src[i*n:])
		}
	}
}

// Pick sets each element of dst to that of x if cond is not zero, else to that of y. step is the
// stride of cond, x and y: 1, or 0 for a repeated element.
func Pick(dst, x, y Slice, cond []uint8, step [3]int) {
	if step[0] == 1 && simd.SelectKernels().Run(dst.Bytes, x.Bytes, y.Bytes, cond, dst.Width, step[1], step[2]) {
		return
	}
	dst.mover().pick(dst, x, y, cond, step)
}

func pick[T any](dst, x, y []T, cond []uint8, step [3]int) {
	if step[0] == 0 && len(dst) > 0 {
		if cond[0] == 0 {
			x, step[1] = y, step[2]
		}
		if step[1] == 1 {
			copy(dst, x)
		} else {
			set(dst, x[0])
		}
		return
	}
	if step == [3]int{1, 1, 1} {
		// Branch-free: conditions are unpredictable.
		c, x, y := cond[:len(dst)], x[:len(dst)], y[:len(dst)]
		for i := range dst {
			v := y[i]
			if w := x[i]; c[i] != 0 {
				v = w
			}
			dst[i] = v
		}
		return
	}
	if step[0] == 1 && step[1]+step[2] == 1 {
		pickOver(dst, x, y, cond, step[1] == 1)
		return
	}
	c, a, b := 0, 0, 0
	for i := range dst {
		if cond[c] != 0 {
			dst[i] = x[a]
		} else {
			dst[i] = y[b]
		}
		c += step[0]
		a += step[1]
		b += step[2]
	}
}

// pickOver is pick if x or y is a repeated element: y with lines.
func pickOver[T any](dst, x, y []T, cond []uint8, lines bool) {
	c := cond[:len(dst)]
	if lines {
		x, v := x[:len(dst)], y[0]
		for i, k := range c {
			w := x[i]
			if k == 0 {
				w = v
			}
			dst[i] = w
		}
		return
	}
	y, v := y[:len(dst)], x[0]
	for i, k := range c {
		w := y[i]
		if k != 0 {
			w = v
		}
		dst[i] = w
	}
}

// PickPlaces is [Pick] with tables of the indices of cond, x and y for each element of dst; a nil
// table means the same index.
func PickPlaces(dst, x, y Slice, cond []uint8, at [3][]int) {
	dst.mover().pickPlaces(dst, x, y, cond, at)
}

func pickPlaces[T any](dst, x, y []T, cond []uint8, at [3][]int) {
	for i := range dst {
		c := i
		if at[0] != nil {
			c = at[0][i]
		}
		from, k := x, 1
		if cond[c] == 0 {
			from, k = y, 2
		}
		p := i
		if at[k] != nil {
			p = at[k][i]
		}
		dst[i] = from[p]
	}
}

// cacheElements is the number of elements that are copied from the L1 cache.
const cacheElements = 2048

// set fills s with v, by doubling if it is long.
func set[T any](s []T, v T) {
	n := min(len(s), 16)
	for i := range n {
		s[i] = v
	}
	for n > 0 && n < len(s) {
		n += copy(s[n:], s[:min(n, cacheElements)])
	}
}

// setRows fills n elements of each of m rows, step apart, with v.
func setRows[T any](s []T, m, step, n int, v T) {
	at := 0
	switch {
	case n >= 16 && n <= cacheElements/4:
		var block [16]T
		set(block[:], v)
		for range m {
			d := s[at : at+n]
			for i := 16; i < n; i += 16 {
				*(*[16]T)(d[i-16:]) = block
			}
			*(*[16]T)(d[n-16:]) = block
			at += step
		}
	case n > 8:
		for range m {
			set(s[at:at+n], v)
			at += step
		}
	case n >= 4:
		for range m {
			d := s[at : at+n]
			*(*[4]T)(d) = [4]T{v, v, v, v}
			*(*[4]T)(d[n-4:]) = [4]T{v, v, v, v}
			at += step
		}
	default:
		for range m {
			for i := range s[at : at+n] {
				s[at+i] = v
			}
			at += step
		}
	}
}

// Copy copies min(len(dst), len(src)) bytes.
func Copy(pool *workers.Pool, dst, src []byte) {
	n := min(len(dst), len(src))
	workers.Do(pool, n, parallelBytes, [2][]byte{dst, src}, func(v [2][]byte, lo, hi int) { copy(v[0][lo:hi], v[1][lo:hi]) })
}
