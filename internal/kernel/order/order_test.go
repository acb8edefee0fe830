package order

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
)

func draw(t *rapid.T) (l Lines, keys []uint64) {
	l = Lines{rapid.IntRange(1, 3).Draw(t, "outer"), rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(1, 3).Draw(t, "inner")}
	n := l.Outer * l.N * l.Inner
	return l, rapid.SliceOfN(rapid.Uint64Range(0, 5), n, n).Draw(t, "keys")
}

// TestTopK compares with a stable sort of every line.
func TestTopK(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		l, keys := draw(t)
		// the last one leaves no bits for indices
		spread := rapid.SampledFrom([]uint64{1, 1 << 32, 0x2aaaaaaaaaaaaaab}).Draw(t, "spread")
		for i := range keys {
			keys[i] *= spread
		}
		k := rapid.IntRange(0, l.N).Draw(t, "k")
		largest := rapid.Bool().Draw(t, "largest")
		at := make([]int, l.Outer*k*l.Inner)
		l.TopK(pool, at, keys, k, largest)
		for o := range l.Outer {
			for in := range l.Inner {
				line := make([]int, l.N)
				for i := range line {
					line[i] = (o*l.N+i)*l.Inner + in
				}
				slices.SortStableFunc(line, func(a, b int) int {
					if largest {
						a, b = b, a
					}
					return cmp.Compare(keys[a], keys[b])
				})
				for j := range k {
					if got := at[(o*k+j)*l.Inner+in]; got != line[j] {
						t.Fatalf("line %d,%d: number %d is element %d, want %d", o, in, j, got, line[j])
					}
				}
			}
		}
	})
}

// TestManyLines sorts lines with radix sort, one after another in the same memory.
func TestManyLines(t *testing.T) {
	t.Parallel()
	pool := workers.New(1, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(7, 4))
	for range 40 {
		l := Lines{3, radixFrom + r.IntN(300), 1}
		keys, down := make([]uint64, l.Outer*l.N), 20+r.IntN(40)
		for i := range keys {
			keys[i] = r.Uint64() >> down
		}
		k := []int{3, l.N / 2, l.N}[r.IntN(3)]
		at := make([]int, l.Outer*k)
		l.TopK(pool, at, keys, k, false)
		for o := range l.Outer {
			line := make([]int, l.N)
			for i := range line {
				line[i] = o*l.N + i
			}
			slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
			if diff := gocmp.Diff(line[:k], at[o*k:][:k]); diff != "" {
				t.Fatalf("%d of line %d of %d: %s", k, o, l.N, diff)
			}
		}
	}
}

func TestUnique(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l, keys := draw(t)
		row := func(i int) (r []uint64) {
			for o := range l.Outer {
				r = append(r, keys[(o*l.N+i)*l.Inner:][:l.Inner]...)
			}
			return r
		}
		want := Groups{Of: make([]int, l.N)}
		for i := range l.N {
			p := slices.IndexFunc(want.First, func(f int) bool { return slices.Equal(row(f), row(i)) })
			if p < 0 {
				p = len(want.First)
				want.First, want.Count = append(want.First, i), append(want.Count, 0)
			}
			want.Count[p]++
			want.Of[i] = p
		}
		if diff := gocmp.Diff(want, l.Unique(keys, false)); diff != "" {
			t.Fatalf("by first place: %s", diff)
		}
		sorted := l.Unique(keys, true)
		if !slices.IsSortedFunc(sorted.First, func(a, b int) int { return slices.Compare(row(a), row(b)) }) {
			t.Fatalf("groups %v are not in order", sorted.First)
		}
		for i, g := range sorted.Of {
			p := want.Of[i]
			if sorted.First[g] != want.First[p] || sorted.Count[g] != want.Count[p] {
				t.Fatalf("row %d: group of %d from %d, want %d from %d", i, sorted.Count[g], sorted.First[g], want.Count[p], want.First[p])
			}
		}
	})
}

// TestTopFloats compares with a stable sort of every line by keys, with NaN, zeros of both signs
// and equal values.
func TestTopFloats(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		l := Lines{1 + r.IntN(3), 1 + r.IntN([]int{5, 50, 900}[r.IntN(3)]), 1 + r.IntN(3)}
		src, keys := make([]float32, l.Outer*l.N*l.Inner), make([]uint64, l.Outer*l.N*l.Inner)
		special := []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Copysign(math.NaN(), -1)), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-45}
		for i := range src {
			switch r.IntN(4) {
			case 0:
				src[i] = special[r.IntN(len(special))]
			case 1:
				src[i] = float32(r.IntN(5) - 2)
			default:
				src[i] = math.Float32frombits(r.Uint32())
			}
			keys[i] = FloatKey(float64(src[i]))
		}
		k, largest := 1+r.IntN(l.N), r.IntN(2) == 0
		if r.IntN(4) == 0 {
			k = 1
		}
		got, want := make([]int, l.Outer*k*l.Inner), make([]int, l.Outer*k*l.Inner)
		l.TopFloats(pool, got, src, k, largest)
		for o := range l.Outer {
			for in := range l.Inner {
				line := make([]int, l.N)
				for i := range line {
					line[i] = (o*l.N+i)*l.Inner + in
				}
				slices.SortStableFunc(line, func(a, b int) int {
					if largest {
						a, b = b, a
					}
					return cmp.Compare(keys[a], keys[b])
				})
				for j := range k {
					want[(o*k+j)*l.Inner+in] = line[j]
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v, %d of it, largest %t: %v, want %v", l, k, largest, got, want)
		}
	}
}

// TestSortDescending compares with a stable sort.
func TestSortDescending(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 4))
	for range 200 {
		values := make([]float32, 1+r.IntN(1000))
		var places []int
		for i := range values {
			if values[i] = float32(r.IntN(50) - 25); r.IntN(9) == 0 {
				values[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Copysign(0, -1))}[r.IntN(4)]
			}
			if r.IntN(3) > 0 {
				places = append(places, i)
			}
		}
		want := slices.Clone(places)
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
		if SortDescending(places, values); !slices.Equal(places, want) {
			t.Fatalf("%v, want %v", places, want)
		}
	}
}
