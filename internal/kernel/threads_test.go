package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
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
			if got := jobCount(c.pool, c.products, rate); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
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
		s := &ConvShape{Groups: groups, C: rapid.IntRange(1, 200).Draw(t, "read"), OC: groups * og, OH: side, OW: side}
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
			s := &ConvShape{Groups: 1, C: c.read, OC: c.made, OH: c.side, OW: c.side}
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
				most = roundUp((roundUp(all, group)+threads-1)/threads, group)
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
		g := GemmParams{M: 1, N: 150 + r.IntN(1000), K: 200 + r.IntN(300)}
		a, b := random(r, g.K), random(r, g.K*g.N)
		x, w := make([]uint8, g.K), make([]int8, g.K*g.N)
		for i := range x {
			x[i] = uint8(r.IntN(256))
		}
		for i := range w {
			w[i] = int8(r.IntN(255) - 127)
		}
		tables, codes := make([]ByteTable, 1), NewPackedQ(g.N, g.K)
		tables[0].Fill(r.IntN(2) == 0, 3)
		FillQ(one, codes, w, 0, 1, g.N)
		ints := func(p *workers.Pool) []int32 {
			y := make([]int32, g.N)
			GemmQ(p, 1, x, tables, codes, y)
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
				GemmPacked(p, g, a, packed, c)
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
		s := ConvShape{
			N: rapid.IntRange(1, 2).Draw(t, "images"), Groups: groups, C: groups * rapid.IntRange(3, 200).Draw(t, "channels"), OC: groups * rapid.IntRange(1, 200).Draw(t, "results"),
			OH: rapid.IntRange(1, 30).Draw(t, "height"), OW: rapid.IntRange(1, 30).Draw(t, "width"), KH: rapid.SampledFrom([]int{1, 3}).Draw(t, "window"), StrideH: 1, StrideW: 1, DilH: 1, DilW: 1,
		}
		s.KW, s.PadT, s.PadL, s.H, s.W = s.KH, s.KH/2, s.KH/2, s.OH, s.OW
		c := newConvInt8NHWC(&s, s.C/groups, s.OC/groups, false)
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
