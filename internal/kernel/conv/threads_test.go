package conv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"pgregory.net/rapid"
)

// TestThreads checks that results are bit-exact for any number of threads.
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
		s := Shape{N: 1, C: c, H: 14, W: 13, OC: o, KH: kernel, KW: kernel, StrideH: stride, StrideW: stride, DilH: 1, DilW: 1, PadT: 1, PadL: 1, Groups: groups}
		s.OH, s.OW = (14+2-kernel)/stride+1, (13+2-kernel)/stride+1
		x, w := kernels.Random(r, c*14*13), kernels.Random(r, o*c/groups*kernel*kernel)
		for _, k := range []*Float32{NewNCHW(s, w, nil, activation.Clamp{}), NewNHWC(s, w, nil, activation.Clamp{})} {
			a, b := make([]float32, o*s.OH*s.OW), make([]float32, o*s.OH*s.OW)
			k.Run(one, x, a)
			k.Run(three, x, b)
			if !slices.Equal(a, b) {
				t.Fatalf("%+v differs", s)
			}
		}
		g := gemm.Params{M: 1 + r.IntN(30), N: c, K: o}
		m := kernels.Random(r, g.M*g.K)
		right := kernels.Random(r, g.K*g.N)
		a, b := make([]float32, g.M*g.N), make([]float32, g.M*g.N)
		gemm.Multiply(one, g, m, right, a)
		gemm.Multiply(three, g, m, right, b)
		if !slices.Equal(a, b) {
			t.Fatalf("%+v differs", g)
		}
	}
}

// TestPlaneCuts checks how convolutions over planes are split: every work item is non-empty, and
// together they cover all work once.
func TestPlaneCuts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pool := workers.New(rapid.IntRange(1, 5).Draw(t, "threads"), nil)
		defer pool.Close()
		groups, og := rapid.IntRange(1, 3).Draw(t, "groups"), rapid.IntRange(1, 100).Draw(t, "channels")
		side := rapid.IntRange(1, 30).Draw(t, "side")
		s := &Shape{Groups: groups, C: rapid.IntRange(1, 200).Draw(t, "read"), OC: groups * og, OH: side, OW: side}
		cols := rapid.SampledFrom([]int{4, 8, 16, 32}).Draw(t, "columns")
		q := s.cutPlanes(pool, og, rapid.IntRange(1, 3000).Draw(t, "patch"), rapid.IntRange(1, 16).Draw(t, "rows"), cols, rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "bytes"), 50)
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

// TestOwnChannels checks small planes: each of two threads computes its own channels if more
// planes are written than read or all positions stay in the cache.
func TestOwnChannels(t *testing.T) {
	t.Parallel()
	two := workers.New(2, nil)
	t.Cleanup(two.Close)
	for _, c := range []struct {
		name                 string
		read, made, side, of int
		own                  bool
	}{
		{"more made than read", 64, 384, 14, 4, true},
		{"codes", 32, 192, 28, 1, true},
		{"large planes", 32, 192, 28, 4, false},
		{"more read than made", 384, 64, 14, 4, false},
		{"near", 256, 128, 10, 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &Shape{Groups: 1, C: c.read, OC: c.made, OH: c.side, OW: c.side}
			q := s.cutPlanes(two, c.made, c.read, 12, 32, c.of, 10)
			end, begin := 0, c.made // of the first thread's channels, and of the second one's
			for i := range q.jobs {
				if _, _, _, o0, o1 := q.at(i); 2*i < q.jobs {
					end = max(end, o1)
				} else {
					begin = min(begin, o0)
				}
			}
			if own := end <= begin; own != c.own {
				t.Errorf("%d pieces, own channels: %v", q.jobs, own)
			}
		})
	}
}

// TestIntCuts checks how int8 convolutions over [N,H,W,C] are split: every work item is
// non-empty, and together they cover all work once.
func TestIntCuts(t *testing.T) {
	t.Parallel()
	if simd.IntKernels() == nil {
		t.Skip("plain Go cuts otherwise")
	}
	rapid.Check(t, func(t *rapid.T) {
		pool := workers.New(rapid.IntRange(1, 5).Draw(t, "threads"), nil)
		defer pool.Close()
		groups := rapid.IntRange(1, 3).Draw(t, "groups")
		s := Shape{
			N: rapid.IntRange(1, 2).Draw(t, "images"), Groups: groups, C: groups * rapid.IntRange(3, 200).Draw(t, "channels"), OC: groups * rapid.IntRange(1, 200).Draw(t, "results"),
			OH: rapid.IntRange(1, 30).Draw(t, "height"), OW: rapid.IntRange(1, 30).Draw(t, "width"), KH: rapid.SampledFrom([]int{1, 3}).Draw(t, "window"), StrideH: 1, StrideW: 1, DilH: 1, DilW: 1,
		}
		s.KW, s.PadT, s.PadL, s.H, s.W = s.KH, s.KH/2, s.KH/2, s.OH, s.OW
		c := newInt8NHWC(&s, s.C/groups, s.OC/groups, false)
		q := c.cut(pool, &s, rapid.Bool().Draw(t, "planes"), rapid.Bool().Draw(t, "copies"))
		l := c.plan
		seen := make([]int, l.images*q.groups*l.n*l.count*q.panels)
		for i := range q.jobs {
			n, part := q.at(i)
			if part.l0 >= part.l1 || part.p0 >= part.p1 || part.n0 >= part.n1 {
				t.Fatalf("piece %d of %d of image %d is %+v", i, q.jobs, n, part)
			}
			for line := part.l0; line < part.l1; line++ {
				for p := part.p0; p < part.p1; p++ {
					for panel := part.n0; panel < part.n1; panel++ {
						seen[(((n*q.groups+part.g)*l.n+line)*l.count+p)*q.panels+panel]++
					}
				}
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("panel %d of position %d is computed %d times", i%q.panels, i/q.panels, n)
			}
		}
	})
}
