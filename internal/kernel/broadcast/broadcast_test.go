package broadcast

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// naive copies one element at a time.
func naive[T any](shape, ds, ss []int, dst, src []T, do, so int) {
	for i := range tensor.Elements(shape) {
		d, s := do, so
		for k, r := len(shape)-1, i; k >= 0; k-- {
			d += r % shape[k] * ds[k]
			s += r % shape[k] * ss[k]
			r /= shape[k]
		}
		dst[d] = src[s]
	}
}

// TestWalk adds three broadcast operands.
func TestWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(0, 4).Draw(t, "rank")
		out := rapid.SliceOfN(rapid.IntRange(1, 9), rank, rank).Draw(t, "out")
		var shapes [3][]int
		var strides [3][]int
		var data [3][]int
		for k := range shapes {
			drop := rapid.IntRange(0, rank).Draw(t, "missing axes")
			s := slices.Clone(out[drop:])
			for i := range s {
				if rapid.Bool().Draw(t, "repeat") {
					s[i] = 1
				}
			}
			shapes[k] = s
			st, err := Strides(s, out)
			if err != nil {
				t.Fatal(err)
			}
			strides[k] = st
			data[k] = make([]int, tensor.Elements(s))
			for i := range data[k] {
				data[k][i] = (i + 1) * (1 + 1000*k)
			}
		}
		n := tensor.Elements(out)
		want, got := make([]int, n), make([]int, n)
		for k := range data {
			v := make([]int, n)
			naive(out, tensor.Strides(out), strides[k], v, data[k], 0, 0)
			for i := range v {
				want[i] += v[i]
			}
		}
		r, err := New(out, shapes[0], shapes[1], shapes[2])
		if err != nil {
			t.Fatal(err)
		}
		r.Each(nil, 1, func(o int, at [3]int, n int) {
			for i := range n {
				for k := range at {
					got[o+i] += data[k][at[k]+i*r.Step[k]]
				}
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestRunsOfRanges checks that every element is visited once, wherever a range begins.
func TestRunsOfRanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		out := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "out")
		one := slices.Clone(out)
		for i := range one {
			if rapid.Bool().Draw(t, "repeat") {
				one[i] = 1
			}
		}
		w, err := New(out, out, one)
		if err != nil {
			t.Fatal(err)
		}
		st, err := Strides(one, out)
		if err != nil {
			t.Fatal(err)
		}
		cut := rapid.IntRange(0, w.Len).Draw(t, "cut")
		next := 0
		for _, part := range [][2]int{{0, cut}, {cut, w.Len}} {
			for r := w.Runs(part[0], part[1]); r.Next(); {
				for i := range r.N {
					at := 0
					for k, rest := len(out)-1, next; k >= 0; k-- {
						at += rest % out[k] * st[k]
						rest /= out[k]
					}
					if r.Dst+i != next || r.Off[0]+i*w.Step[0] != next || r.Off[1]+i*w.Step[1] != at {
						t.Fatalf("element %d is %d with %d and %d", next, r.Dst+i, r.Off[0]+i*w.Step[0], r.Off[1]+i*w.Step[1])
					}
					next++
				}
			}
		}
		if next != w.Len {
			t.Fatalf("%d of %d elements", next, w.Len)
		}
	})
}

// TestPieces checks that every element of every operand is visited once, for any run length and
// range.
func TestPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		out := rapid.SliceOfN(rapid.IntRange(0, 7), 0, 5).Draw(t, "out")
		var strides [3][]int
		var shapes [3][]int
		for k := range shapes {
			shapes[k] = slices.Clone(out[rapid.IntRange(0, len(out)).Draw(t, "missing axes"):])
			for i := range shapes[k] {
				if rapid.Bool().Draw(t, "repeat") {
					shapes[k][i] = 1
				}
			}
			var err error
			if strides[k], err = Strides(shapes[k], out); err != nil {
				t.Fatal(err)
			}
		}
		w, err := New(out, shapes[:]...)
		if err != nil {
			t.Fatal(err)
		}
		most := rapid.IntRange(1, 40).Draw(t, "most")
		s := w.Spans(most)
		lo := rapid.IntRange(0, w.Len).Draw(t, "lo")
		hi := rapid.IntRange(lo, w.Len).Draw(t, "hi")
		next := lo
		for p := s.Pieces(lo, hi); p.Next(); {
			if p.N < 1 || p.N > most || p.Dst != next {
				t.Fatalf("%d elements at %d, up to %d at %d were expected", p.N, p.Dst, most, next)
			}
			for i := range p.N {
				for k := range shapes {
					want := 0
					for d, rest := len(out)-1, next; d >= 0; d-- {
						want += rest % out[d] * strides[k][d]
						rest /= out[d]
					}
					got := p.Off[k] + i
					if table := s.Table[k]; table != nil {
						got = p.Off[k] + table[p.Place+i]
					}
					if got != want {
						t.Fatalf("element %d is element %d of operand %d, want %d", next, got, k, want)
					}
				}
				next++
			}
		}
		if next != hi {
			t.Fatalf("elements %d to %d, want up to %d", lo, next, hi)
		}
	})
}

func TestStridesRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ shape, to []int }{{[]int{2}, []int{3}}, {[]int{1, 2}, []int{2}}, {[]int{2, 1}, []int{3, 1}}} {
		if s, err := Strides(tt.shape, tt.to); err == nil {
			t.Errorf("%v to %v gives strides %v", tt.shape, tt.to, s)
		}
	}
}
