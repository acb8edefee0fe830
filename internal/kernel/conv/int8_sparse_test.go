package conv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

func TestSparseIntConvs(t *testing.T) {
	kernels.SparseSets(t, 10, func(t *testing.T, r *rand.Rand, pool *workers.Pool) func() bool {
		s := anyConv(r)
		if s.Groups == s.C {
			s.Groups = 1
			s.C = 16 + r.IntN(40)
		}
		if r.IntN(2) == 0 && s.Groups == 1 {
			s.C, s.OC = s.C+32, s.OC+32
		}
		k := s.C / s.Groups * s.KH * s.KW
		w, x := kernels.Pruned(r, s.OC*k, k), kernels.BytesOf(r, s.N*s.C*s.H*s.W)
		signed := r.IntN(2) == 0
		zero := kernels.Value(uint8(r.Uint32()), signed)
		area := s.OH * s.OW
		want := make([]int32, s.Outputs())
		build := func(lastIn, lastOut bool) *Sums {
			c := NewSums(s, lastIn, lastOut)
			SetSumWeights(c, w, 0)
			c.SetZero(signed, zero)
			return c
		}
		sets.Go(func() { build(false, false).Run(pool, x, want) })
		q := quantise.Rescale{Zero: kernels.Value(128, signed) + 128, Lo: 3, Hi: 120, Signed: signed, Bias: randomWeights(r, s.OC)}
		for range s.OC {
			q.Scales = append(q.Scales, 0.0001+r.Float32()*0.002)
		}
		q.Prepare()
		codes := make([]uint8, len(want))
		for i, v := range want {
			codes[i] = q.Quantise(v, i/area%s.OC)
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
			c := NewInt8[uint8](s, wn, 0, zero, rq)
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
		t.Skip("the race detector, which -short implies, drops pooled buffers")
	}
	if simd.SparseIntKernels() == nil {
		t.Skip("dense kernels only")
	}
	r, pool := rand.New(rand.NewPCG(1, 2)), workers.New(1, nil)
	defer pool.Close()
	s := Shape{N: 1, C: 64, H: 14, W: 14, OC: 64, OH: 14, OW: 14, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1}
	w := make([]int32, s.OC*s.C*9)
	for i := range w {
		if r.IntN(10) == 0 {
			w[i] = 1
		}
	}
	x, y := kernels.BytesOf(r, s.C*14*14), make([]int32, s.OC*14*14)
	c := NewSums(s, false, false)
	SetSumWeights(c, w, 0)
	p, tables := gemm.NewPackedInt8(64, 576), make([]gemm.ByteTable, 1)
	p.Fill(w, 576, 1)
	tables[0].Fill(true, 3)
	if !p.UsesSparse(64) {
		t.Fatal("zeros are not left out")
	}
	rows, sums := kernels.BytesOf(r, 64*576), make([]int32, 64*64)
	for name, run := range map[string]func(){
		c.Name(): func() { c.Run(pool, x, y) },
		"gemm":   func() { gemm.MultiplyInt8(pool, 64, rows, tables, p, sums) },
	} {
		run()
		if n := testing.AllocsPerRun(20, run); n > 0.5 {
			t.Errorf("%s allocates %v times a run", name, n)
		}
	}
}
