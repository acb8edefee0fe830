package move

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// naive copies one element at a time.
func naive(shape, ds, ss []int, dst, src Slice, do, so int) {
	for i := range tensor.Elements(shape) {
		d, s := do, so
		for k, r := len(shape)-1, i; k >= 0; k-- {
			d += r % shape[k] * ds[k]
			s += r % shape[k] * ss[k]
			r /= shape[k]
		}
		one(dst, d, src, s)
	}
}

// equal reports whether two slices hold the same elements.
func equal(a, b Slice) bool {
	return bytes.Equal(a.Bytes, b.Bytes) && slices.Equal(a.Strings, b.Strings) && a.Width == b.Width
}

// TestMove copies permuted, reversed, repeated and padded views.
func TestMove(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(0, 5).Draw(t, "rank")
		top := []int{40000, 40000, 200, 40, 12, 6}[rank]
		shape := rapid.SliceOfN(rapid.IntRange(1, top), rank, rank).Draw(t, "shape")
		order := rapid.Permutation(seq(rank)).Draw(t, "order")
		// The source is dense in a permuted order of axes, some reversed, some repeated; the
		// destination has gaps along one axis.
		ss, ds := make([]int, rank), make([]int, rank)
		n, so := 1, 0
		for _, a := range order {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				ss[a] = 0
			case 1:
				ss[a] = -n
				so += n * (shape[a] - 1)
				n *= shape[a]
			default:
				ss[a] = n
				n *= shape[a]
			}
		}
		m := 1
		for a := rank - 1; a >= 0; a-- {
			ds[a] = m
			m *= shape[a] + rapid.IntRange(0, 1).Draw(t, "gap")
		}
		if n > 1<<19 || m > 1<<19 {
			t.Skip("too large")
		}
		to := rapid.IntRange(0, 3).Draw(t, "to")
		p := New(shape, ds, ss, to, so)
		if p.Len() != tensor.Elements(shape) {
			t.Fatalf("plan of %d elements for shape %v", p.Len(), shape)
		}
		check := func(width int) {
			src, got, want := numbered(width, n), numbered(width, m+to), numbered(width, m+to)
			naive(shape, ds, ss, want, src, to, so)
			p.Run(pool, got, src)
			if !equal(want, got) {
				t.Fatalf("shape %v, strides %v to %v, width %d: results differ", shape, ss, ds, width)
			}
		}
		check(rapid.SampledFrom(widths).Draw(t, "width"))
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

var widths = []int{0, 1, 2, 4, 8, 16}

// numbered returns n different elements (within the limits of their width).
func numbered(width, n int) Slice {
	s := Slice{Width: width}
	if width == 0 {
		s.Strings = make([]string, n)
		for i := range s.Strings {
			s.Strings[i] = fmt.Sprint(i + 1)
		}
		return s
	}
	s.Bytes = tensor.New(tensor.Uint8, n*width).Data
	for i := range s.Bytes {
		e := i / width
		s.Bytes[i] = byte(e+1) ^ byte((e+1)>>8)*31 ^ byte(i%width*7)
	}
	return s
}

// TestMaps compares with copying single elements, for all widths, with padded axes and arbitrary
// axes.
func TestMaps(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(0, 4).Draw(t, "rank")
		shape := rapid.SliceOfN(rapid.IntRange(1, 6), rank, rank).Draw(t, "shape")
		if rank > 0 && rapid.Bool().Draw(t, "long") {
			shape[rank-1] = rapid.IntRange(1, 70).Draw(t, "last")
		}
		axes, out := make([][]int, rank), make([]int, rank)
		for i, n := range shape {
			switch axes[i] = seq(n); rapid.IntRange(0, 2).Draw(t, "mapped") {
			case 0:
				axes[i] = rapid.SliceOfN(rapid.IntRange(-1, n-1), 0, 9).Draw(t, "axis")
			case 1:
				before, after := rapid.IntRange(0, 3).Draw(t, "before"), rapid.IntRange(0, 10).Draw(t, "after")
				axes[i] = slices.Concat(slices.Repeat([]int{-1}, before), axes[i], slices.Repeat([]int{-1}, after))
			}
			out[i] = len(axes[i])
		}
		width := rapid.SampledFrom([]int{1, 2, 4, 8, 16}).Draw(t, "width")
		src := make([]byte, tensor.Elements(shape)*width)
		for i := range src {
			src[i] = byte(i + i/251)
		}
		value := bytes.Repeat([]byte{99}, width)
		want, got := make([]byte, tensor.Elements(out)*width), make([]byte, tensor.Elements(out)*width)
		st := tensor.Strides(shape)
		for i := range len(want) / width {
			at, inside := 0, true
			for k, r := rank-1, i; k >= 0; k-- {
				s := axes[k][r%out[k]]
				r /= out[k]
				inside = inside && s >= 0
				at += s * st[k]
			}
			from := value
			if inside {
				from = src[at*width:]
			}
			copy(want[i*width:(i+1)*width], from)
		}
		NewMaps(shape, axes).Run(pool, Slice{Bytes: got, Width: width}, Slice{Bytes: src, Width: width}, Slice{Bytes: value, Width: width})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("shape %v, axes %v, width %d: %s", shape, axes, width, diff)
		}
	})
}

// TestBlocks selects rows that are long enough for threads, and puts them back.
func TestBlocks(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	for _, width := range widths {
		for _, n := range []int{1, 5, 700} {
			src := numbered(width, 3*100*n)
			at := []int{99, 0, 50, 50, 1}
			for len(at) < 90 {
				at = append(at, at[:5]...)
			}
			dst, want := numbered(width, 3*len(at)*n), numbered(width, 3*len(at)*n)
			b := Blocks{Rows: 3, SrcRow: 100 * n, At: at, Len: n}
			b.Gather(pool, dst, src)
			for r := range 3 {
				for i, a := range at {
					for k := range n {
						one(want, (r*len(at)+i)*n+k, src, r*100*n+a*n+k)
					}
				}
			}
			if !equal(want, dst) {
				t.Fatalf("gather of width %d, blocks of %d: results differ", width, n)
			}
			back, expect := numbered(width, 100*n), numbered(width, 100*n)
			places := []int{7, -1, 9, 7}
			Put(back, src, places, n)
			for i, p := range places {
				for k := range n {
					if p >= 0 {
						one(expect, p*n+k, src, i*n+k)
					}
				}
			}
			if !equal(expect, back) {
				t.Fatalf("put of width %d, blocks of %d: results differ", width, n)
			}
		}
	}
}

// TestJoin selects runs of blocks, each as one block and block by block.
func TestJoin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Blocks{Rows: rapid.IntRange(1, 3).Draw(t, "rows"), Len: rapid.IntRange(1, 3).Draw(t, "length")}
		b.SrcRow = 40 * b.Len
		run := rapid.IntRange(1, 4).Draw(t, "run")
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			at := rapid.IntRange(0, 36).Draw(t, "at")
			for k := range run {
				b.At = append(b.At, at+k)
			}
		}
		src := numbered(4, b.Rows*b.SrcRow)
		want, got := numbered(4, b.Rows*len(b.At)*b.Len), numbered(4, b.Rows*len(b.At)*b.Len)
		b.Gather(nil, want, src)
		blocks := len(b.At)
		b.Join()
		b.Gather(nil, got, src)
		if !equal(want, got) || len(b.At) > blocks/run {
			t.Fatalf("%d blocks in runs of %d became %d: results are the same: %t", blocks, run, len(b.At), equal(want, got))
		}
	})
}

// one copies an element.
func one(dst Slice, i int, src Slice, j int) {
	if dst.Width == 0 {
		dst.Strings[i] = src.Strings[j]
		return
	}
	copy(dst.Bytes[i*dst.Width:(i+1)*dst.Width], src.Bytes[j*dst.Width:])
}

func TestFillMarkPick(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	for _, width := range widths {
		for _, n := range []int{1, 31, 33, 3 * parallelBytes} {
			v, got, want := numbered(width, 9).From(4), numbered(width, n), numbered(width, n)
			Fill(pool, got, v)
			for i := range n {
				one(want, i, v, 0)
			}
			Mark(got, v.From(1), []int{n - 1})
			one(want, n-1, v, 1)
			if !equal(want, got) {
				t.Fatalf("fill of width %d, %d elements: results differ", width, n)
			}
		}
		x, y := numbered(width, 6), numbered(width, 12).From(6)
		cond := []uint8{1, 0, 2, 0, 0, 1}
		for _, step := range [][3]int{{1, 1, 1}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}} {
			got, want := numbered(width, 6), numbered(width, 6)
			Pick(got, x, y, cond, step)
			for i := range 6 {
				if cond[i*step[0]] != 0 {
					one(want, i, x, i*step[1])
				} else {
					one(want, i, y, i*step[2])
				}
			}
			if !equal(want, got) {
				t.Fatalf("pick of width %d, steps %v: results differ", width, step)
			}
		}
	}
}

// BenchmarkTranspose reports the transpose rate for bytes; a plain copy is the bound.
func BenchmarkTranspose(b *testing.B) {
	for _, tt := range []struct{ shape, perm []int }{
		{[]int{1 << 20}, []int{0}},
		{[]int{1, 224, 224, 3}, []int{0, 3, 1, 2}},
		{[]int{1, 3, 224, 224}, []int{0, 2, 3, 1}},
		{[]int{1, 56, 56, 64}, []int{0, 3, 1, 2}},
		{[]int{64, 112, 112}, []int{1, 2, 0}},
		{[]int{1024, 1024}, []int{1, 0}},
		{[]int{1, 128, 12, 64}, []int{0, 2, 1, 3}},
		{[]int{1, 128, 12, 64}, []int{0, 2, 3, 1}},
		{[]int{1, 64, 3, 16}, []int{0, 2, 1, 3}},
		{[]int{1, 3, 64, 16}, []int{0, 2, 1, 3}},
		{[]int{1, 100, 4, 12}, []int{0, 2, 1, 3}},
		{[]int{1, 4, 100, 12}, []int{0, 2, 1, 3}},
		{[]int{1, 4, 100, 100, 8}, []int{0, 3, 1, 4, 2}},
		{[]int{1, 100, 4, 8, 100}, []int{0, 2, 4, 1, 3}},
	} {
		for _, width := range []int{4, 1} {
			b.Run(fmt.Sprint(tt.shape, tt.perm, width), func(b *testing.B) {
				n, st := tensor.Elements(tt.shape), tensor.Strides(tt.shape)
				var dims, from []int
				for _, a := range tt.perm {
					dims, from = append(dims, tt.shape[a]), append(from, st[a])
				}
				src := Slice{Bytes: tensor.New(tensor.Uint8, n*width).Data, Width: width}
				dst := Slice{Bytes: tensor.New(tensor.Uint8, n*width).Data, Width: width}
				p := View(dims, from, 0)
				b.SetBytes(int64(n * width))
				for b.Loop() {
					p.Run(nil, dst, src)
				}
			})
		}
	}
}
