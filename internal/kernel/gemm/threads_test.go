package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"pgregory.net/rapid"
)

// TestJobs checks that work is split by its cost, and small work not at all.
func TestJobs(t *testing.T) {
	t.Parallel()
	two := workers.New(2, nil)
	t.Cleanup(two.Close)
	const rate = 10
	piece := workers.Grain(rate)
	for _, c := range []struct {
		name     string
		pool     *workers.Pool
		products int
		want     int
	}{
		{"nothing", two, 0, 1},
		{"a piece", two, piece, 1},
		{"two halves", two, piece + 1, 2},
		{"less than two pieces", two, 2*piece - 1, 2},
		{"much", two, 1000 * piece, 8},
		{"one thread", nil, 1000 * piece, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := JobCount(c.pool, c.products, rate); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestRowPortions checks how single rows are split: all panels are computed once and in order, no
// thread gets more than its share, and boundaries between the pieces of a thread, and with groups
// between threads, are at whole groups.
func TestRowPortions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const group = simd.WidePanels
		threads, all := rapid.IntRange(1, 5).Draw(t, "threads"), rapid.IntRange(1, 100).Draw(t, "panels")
		each, groups := rapid.IntRange(1, 4).Draw(t, "pieces of a thread"), rapid.Bool().Draw(t, "groups")
		at, of := 0, each*threads
		for thread := range threads {
			from := at
			for i := range each {
				begin, end := rowPortion(thread*each+i, of, threads, all, groups)
				if begin != at || end < begin {
					t.Fatalf("piece %d has panels %d to %d, want from %d on", thread*each+i, begin, end, at)
				}
				if i > 0 && (begin-from)%group != 0 {
					t.Fatalf("piece %d of thread %d begins at %d of its own panels", i, thread, begin-from)
				}
				at = end
			}
			most := (all + threads - 1) / threads
			if groups {
				most = scratch.RoundUp((scratch.RoundUp(all, group)+threads-1)/threads, group)
			}
			if at-from > most || groups && from%group != 0 {
				t.Fatalf("thread %d has panels %d to %d of %d", thread, from, at, all)
			}
		}
		if at != all {
			t.Fatalf("%d of %d panels", at, all)
		}
	})
}

// TestRowThreads checks single rows that are long enough to be split, with weights of 32, 16 and
// 8 bits.
func TestRowThreads(t *testing.T) {
	t.Parallel()
	one, two, three := workers.New(1, nil), workers.New(2, nil), workers.New(3, nil)
	defer two.Close()
	defer three.Close()
	r := rand.New(rand.NewPCG(13, 14))
	for range 20 {
		g := Params{M: 1, N: 150 + r.IntN(1000), K: 200 + r.IntN(300)}
		a, b := kernels.Random(r, g.K), kernels.Random(r, g.K*g.N)
		x, w := make([]uint8, g.K), make([]int8, g.K*g.N)
		for i := range x {
			x[i] = uint8(r.IntN(256))
		}
		for i := range w {
			w[i] = int8(r.IntN(255) - 127)
		}
		tables, codes := make([]ByteTable, 1), NewPackedInt8(g.N, g.K)
		tables[0].Fill(r.IntN(2) == 0, 3)
		FillInt8(one, codes, w, 0, 1, g.N)
		ints := func(p *workers.Pool) []int32 {
			y := make([]int32, g.N)
			MultiplyInt8(p, 1, x, tables, codes, y)
			return y
		}
		want := ints(one)
		for _, p := range []*workers.Pool{two, three} {
			if !slices.Equal(ints(p), want) {
				t.Fatalf("%+v in 8 bits differs with %d threads", g, p.Threads())
			}
		}
		for range 2 {
			packed := PackB(g.K, g.N, b, 0, false)
			floats := func(p *workers.Pool) []float32 {
				c := make([]float32, g.N)
				MultiplyPacked(p, g, a, packed, c)
				return c
			}
			want := floats(one)
			for _, p := range []*workers.Pool{two, three} {
				if !slices.Equal(floats(p), want) {
					t.Fatalf("%+v differs with %d threads", g, p.Threads())
				}
			}
			for i, v := range b { // the second time they fit 16 bits
				b[i] = math.Float32frombits(math.Float32bits(v) &^ 0xFFFF)
			}
		}
	}
}
