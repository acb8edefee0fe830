package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/workers"
)

// TestThreads checks that results are the same to the last bit for any number of
// threads.
func TestThreads(t *testing.T) {
	t.Parallel()
	one, three := workers.New(1, nil), workers.New(3, nil)
	defer three.Close()
	r := rand.New(rand.NewPCG(11, 12))
	for range 40 {
		c, o, groups, kernel, stride := 1+r.IntN(40), 1+r.IntN(40), 1, 1+r.IntN(3), 1+r.IntN(2)
		if r.IntN(3) == 0 {
			groups, o = c, c
		}
		s := ConvShape{N: 1, C: c, H: 14, W: 13, OC: o, KH: kernel, KW: kernel, StrideH: stride, StrideW: stride, DilH: 1, DilW: 1, PadT: 1, PadL: 1, Groups: groups}
		s.OH, s.OW = (14+2-kernel)/stride+1, (13+2-kernel)/stride+1
		x, w := random(r, c*14*13), random(r, o*c/groups*kernel*kernel)
		for _, k := range []*Conv{NewConvNCHW(s, w, nil, activation.Clamp{}), NewConvNHWC(s, w, nil, activation.Clamp{})} {
			a, b := make([]float32, o*s.OH*s.OW), make([]float32, o*s.OH*s.OW)
			k.Run(one, x, a)
			k.Run(three, x, b)
			if !slices.Equal(a, b) {
				t.Fatalf("%+v differs", s)
			}
		}
		g := GemmParams{M: 1 + r.IntN(30), N: c, K: o}
		m := random(r, g.M*g.K)
		right := random(r, g.K*g.N)
		a, b := make([]float32, g.M*g.N), make([]float32, g.M*g.N)
		Gemm(one, g, m, right, a)
		Gemm(three, g, m, right, b)
		if !slices.Equal(a, b) {
			t.Fatalf("%+v differs", g)
		}
	}
}

// TestJobs checks that work is cut by what it takes, and not at all where that is little.
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
			if got := jobsOf(c.pool, c.products, rate); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestPlaneCuts looks at how convolutions over planes are cut: every piece has work, and all pieces
// together have all of it once.
func TestPlaneCuts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pool := workers.New(rapid.IntRange(1, 5).Draw(t, "threads"), nil)
		defer pool.Close()
		groups, og := rapid.IntRange(1, 3).Draw(t, "groups"), rapid.IntRange(1, 100).Draw(t, "channels")
		side := rapid.IntRange(1, 30).Draw(t, "side")
		s := &ConvShape{Groups: groups, OC: groups * og, OH: side, OW: side}
		cols := rapid.SampledFrom([]int{4, 8, 16, 32}).Draw(t, "columns")
		q := s.cutPlanes(pool, og, rapid.IntRange(1, 3000).Draw(t, "patch"), rapid.IntRange(1, 16).Draw(t, "rows"), cols, 50)
		seen := make([]int, groups*og*q.all)
		for i := range q.jobs {
			g, n0, n1, o0, o1 := q.at(i)
			if n0 >= n1 || o0 >= o1 {
				t.Fatalf("piece %d of %d has panels %d to %d, channels %d to %d", i, q.jobs, n0, n1, o0, o1)
			}
			for o := o0; o < o1; o++ {
				for n := n0; n < n1; n++ {
					seen[(g*og+o)*q.all+n]++
				}
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("channel %d, panel %d is computed %d times", i/q.all, i%q.all, n)
			}
		}
	})
}
