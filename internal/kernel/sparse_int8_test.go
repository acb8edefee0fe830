package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// pruned returns 8-bit weights with some zeros: single ones, four neighbouring steps, or four
// neighbouring rows of k steps.
func pruned(r *rand.Rand, n, k int) []int32 {
	w := make([]int32, n)
	for i := range w {
		w[i] = int32(r.IntN(256)) - 128
	}
	share := []float64{0.65, 0.8, 0.9, 0.97, 1}[r.IntN(5)]
	kind := r.IntN(3)
	for i := range w {
		switch {
		case kind == 0 && r.Float64() < share:
			w[i] = 0
		case kind == 1 && i%k%4 == 0 && r.Float64() < share:
			clear(w[i:min(i+4, (i/k+1)*k)])
		case kind == 2 && i/k%4 == 0 && r.Float64() < share:
			for j := i; j < min(n, i+4*k); j += k {
				w[j] = 0
			}
		}
	}
	return w
}

// sparseSets draws cases for one and for three threads, on instruction sets with sparse int8
// kernels: f computes a case in plain Go and returns a function that compares it on an
// instruction set and reports whether zeros are skipped.
func sparseSets(t *testing.T, least int, f func(t *testing.T, r *rand.Rand, pool *workers.Pool) func() bool) {
	defer simd.Sift(1)()
	r, sparse := rand.New(rand.NewPCG(5, 6)), map[simd.Set]int{}
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for range sets.Rounds(200) {
			compare := f(t, r, pool)
			sets.In(t, func(set simd.Set) {
				if simd.SparseIntKernels() != nil && compare() {
					sparse[set]++
				}
			})
		}
	}
	sets.In(t, func(set simd.Set) {
		if simd.SparseIntKernels() != nil && sparse[set] < sets.Rounds(400)*least/100 {
			t.Errorf("%d of %d leave zeros out", sparse[set], sets.Rounds(400))
		}
	})
}

func TestSparseIntProducts(t *testing.T) {
	sparseSets(t, 30, func(t *testing.T, r *rand.Rand, pool *workers.Pool) func() bool {
		m, n, k := 1+r.IntN(200), 1+r.IntN(100), 1+r.IntN(200)
		if r.IntN(8) == 0 {
			k = 1 + r.IntN(1200)
		}
		w, x := pruned(r, n*k, k), bytesOf(r, m*k)
		vec, elem := k, 1
		if r.IntN(2) == 0 {
			turned := make([]int32, n*k)
			for i, v := range w {
				turned[i%k*n+i/k] = v
			}
			w, vec, elem = turned, 1, n
		}
		tables := make([]ByteTable, []int{1, m}[r.IntN(2)])
		signed := r.IntN(2) == 0
		fill := func() []int32 {
			r := rand.New(rand.NewPCG(7, 8))
			for i := range tables {
				tables[i].Fill(signed, value(uint8(r.Uint32()), signed))
			}
			p := NewPackedQ(n, k)
			p.Fill(w, vec, elem)
			y := make([]int32, m*n)
			GemmQ(pool, m, x, tables, p, y)
			return y
		}
		var want []int32
		sets.Go(func() { want = fill() })
		return func() bool {
			if got := fill(); !slices.Equal(got, want) {
				t.Fatalf("%d×%d·%d differs", m, k, n)
			}
			p := NewPackedQ(n, k)
			p.Fill(w, vec, elem)
			return p.usesSparse(m)
		}
	})
}

func TestSparseIntConvs(t *testing.T) {
	sparseSets(t, 10, func(t *testing.T, r *rand.Rand, pool *workers.Pool) func() bool {
		s := anyConv(r)
		if s.Groups == s.C {
			s.Groups = 1
			s.C = 16 + r.IntN(40)
		}
		if r.IntN(2) == 0 && s.Groups == 1 {
			s.C, s.OC = s.C+32, s.OC+32
		}
		k := s.C / s.Groups * s.KH * s.KW
		w, x := pruned(r, s.OC*k, k), bytesOf(r, s.N*s.C*s.H*s.W)
		signed := r.IntN(2) == 0
		zero := value(uint8(r.Uint32()), signed)
		area := s.OH * s.OW
		want := make([]int32, s.outputs())
		build := func(lastIn, lastOut bool) *ConvSums {
			c := NewConvSums(s, lastIn, lastOut)
			SetSumWeights(c, w, 0)
			c.SetZero(signed, zero)
			return c
		}
		sets.Go(func() { build(false, false).Run(pool, x, want) })
		q := Rescale{Zero: value(128, signed) + 128, Lo: 3, Hi: 120, Signed: signed, Bias: randomWeights(r, s.OC)}
		for range s.OC {
			q.Scales = append(q.Scales, 0.0001+r.Float32()*0.002)
		}
		q.Prepare()
		codes := make([]uint8, len(want))
		for i, v := range want {
			codes[i] = q.quantise(v, i/area%s.OC)
		}
		last := transpose(x, s.N, s.C, s.H*s.W)
		wn := make([]int16, len(w))
		for i, v := range transpose(w, s.OC, s.C/s.Groups, s.KH*s.KW) {
			wn[i] = int16(v)
		}
		rq := randomRequant(r, s.OC)
		quantised := transpose(want, s.N, s.OC, area)
		for i, v := range quantised {
			quantised[i] = rq.One(v, i%s.OC)
		}
		return func() bool {
			q, sparse := q, false
			q.Prepare()
			for _, lastIn := range []bool{false, true} {
				for _, lastOut := range []bool{false, true} {
					if lastIn && !s.SupportsNHWC() || lastOut && !s.SupportsNHWCOutput() {
						continue
					}
					in, sums, out := x, want, codes
					if lastIn {
						in = last
					}
					if lastOut {
						sums, out = transpose(want, s.N, s.OC, area), transpose(codes, s.N, s.OC, area)
					}
					c := build(lastIn, lastOut)
					sparse = sparse || c.lines != nil && c.lines.sparse != nil
					sameSums(t, c, pool, in, sums, out, &q, lastOut)
					// The same weights again, as weights that change between runs.
					if SetSumWeights(c, w, 0); !lastOut {
						got := make([]int32, len(want))
						if c.Run(pool, in, got); !slices.Equal(got, sums) {
							t.Fatalf("%+v, %s again: sums differ", s, c.Name())
						}
					}
				}
			}
			if signed {
				return sparse // the limits are for unsigned values
			}
			y := make([]uint8, len(want))
			c := NewConvQ[uint8](s, wn, 0, zero, rq)
			for range 2 { // no state may remain
				if c.Run(pool, last, y); !slices.Equal(widen(y), quantised) {
					t.Fatalf("%+v, %s: quantised values differ", s, c.Name())
				}
			}
			return sparse || c.lines != nil && c.lines.sparse != nil
		}
	})
}

// TestSparseIntsAllocate checks that runs only use pooled scratch memory.
func TestSparseIntsAllocate(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which comes with -short, drops rooms that were given back")
	}
	if simd.SparseIntKernels() == nil {
		t.Skip("dense kernels only")
	}
	r, pool := rand.New(rand.NewPCG(1, 2)), workers.New(1, nil)
	defer pool.Close()
	s := ConvShape{N: 1, C: 64, H: 14, W: 14, OC: 64, OH: 14, OW: 14, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1}
	w := make([]int32, s.OC*s.C*9)
	for i := range w {
		if r.IntN(10) == 0 {
			w[i] = 1
		}
	}
	x, y := bytesOf(r, s.C*14*14), make([]int32, s.OC*14*14)
	c := NewConvSums(s, false, false)
	SetSumWeights(c, w, 0)
	p, tables := NewPackedQ(64, 576), make([]ByteTable, 1)
	p.Fill(w, 576, 1)
	tables[0].Fill(true, 3)
	if !p.usesSparse(64) {
		t.Fatal("zeros are not left out")
	}
	rows, sums := bytesOf(r, 64*576), make([]int32, 64*64)
	for name, run := range map[string]func(){
		c.Name(): func() { c.Run(pool, x, y) },
		"gemm":   func() { GemmQ(pool, 64, rows, tables, p, sums) },
	} {
		run()
		if n := testing.AllocsPerRun(20, run); n > 0.5 {
			t.Errorf("%s allocates %v times a run", name, n)
		}
	}
}
