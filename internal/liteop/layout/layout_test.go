package layout

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
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
		// The source is dense in a permuted order of axes, some turned round, some
		// repeated; the destination has gaps along one axis.
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
		src := make([]uint16, n)
		for i := range src {
			src[i] = uint16(i + 1)
		}
		m := 1
		for a := rank - 1; a >= 0; a-- {
			ds[a] = m
			m *= shape[a] + rapid.IntRange(0, 1).Draw(t, "gap")
		}
		if n > 1<<21 || m > 1<<21 {
			t.Skip("too large")
		}
		got, want := make([]uint16, m), make([]uint16, m)
		naive(shape, ds, ss, want, src, 0, so)
		Move(pool, NewBlock(shape, ds, ss), got, src, 0, so)
		if !slices.Equal(got, want) {
			t.Fatalf("shape %v, strides %v to %v: results differ", shape, ss, ds)
		}
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// TestRows adds three broadcast operands.
func TestRows(t *testing.T) {
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
			st, err := BroadcastStrides(s, out)
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
		r, err := NewRows(out, shapes[0], shapes[1], shapes[2])
		if err != nil {
			t.Fatal(err)
		}
		r.Each(nil, func(o int, at [3]int, n int, step [3]int) {
			for i := range n {
				for k := range at {
					got[o+i] += data[k][at[k]+i*step[k]]
				}
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestPackedRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]tensor.Type{tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2}).Draw(t, "type")
		n := rapid.IntRange(0, 40).Draw(t, "n")
		x, y := tensor.New(typ, n), tensor.New(typ, n)
		copy(x.Data, rapid.SliceOfN(rapid.Byte(), len(x.Data), len(x.Data)).Draw(t, "data"))
		wide := make([]byte, n)
		Unpack(wide, x)
		Pack(y, wide)
		again := make([]byte, n)
		Unpack(again, y)
		if diff := cmp.Diff(wide, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestBroadcastStridesRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ shape, to []int }{{[]int{2}, []int{3}}, {[]int{1, 2}, []int{2}}, {[]int{2, 1}, []int{3, 1}}} {
		if s, err := BroadcastStrides(tt.shape, tt.to); err == nil {
			t.Errorf("%v to %v gives strides %v", tt.shape, tt.to, s)
		}
	}
}

func BenchmarkTranspose(b *testing.B) {
	shape := []int{64, 112, 112}
	src, dst := make([]uint32, tensor.Elements(shape)), make([]uint32, tensor.Elements(shape))
	blk := NewBlock([]int{112, 112, 64}, []int{112 * 64, 64, 1}, []int{112, 1, 112 * 112})
	b.SetBytes(int64(4 * len(src)))
	for range b.N {
		Move(nil, blk, dst, src, 0, 0)
	}
}
