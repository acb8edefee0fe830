package conv

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

func Test4of8Gemm(t *testing.T) {
	kernels.Sparse4of8Sets(t, func(t *testing.T, r *rand.Rand, pool *workers.Pool, plain func(func())) bool {
		m, n, k := 1+r.IntN(60), 1+r.IntN(150), 8*(1+r.IntN(40))
		if r.IntN(2) == 0 {
			n = (n + 31) / 32 * 32
		}
		if r.IntN(6) == 0 {
			k -= r.IntN(8)
		}
		w, x := kernels.FourOfEight(r, n*k, k), kernels.BytesOf(r, m*k)
		zero, vec, elem := int32(0), k, 1
		if r.IntN(2) == 0 {
			turned := make([]int32, n*k)
			for i, v := range w {
				turned[i%k*n+i/k] = v
			}
			w, vec, elem = turned, 1, n
		}
		codes := make([]uint8, len(w)) // with a zero point
		for i, v := range w {
			codes[i] = uint8(v + 128)
		}
		if r.IntN(2) == 0 {
			zero = 128
		}
		tables := make([]gemm.ByteTable, []int{1, m}[r.IntN(2)])
		signed := r.IntN(2) == 0
		product := func() ([]int32, *gemm.PackedInt8) {
			r := rand.New(rand.NewPCG(7, 8))
			for i := range tables {
				tables[i].Fill(signed, kernels.Value(uint8(r.Uint32()), signed))
			}
			p := gemm.NewPackedInt8(n, k)
			if zero != 0 {
				gemm.FillInt8(pool, p, codes, zero, vec, elem)
			} else {
				gemm.FillInt8(pool, p, w, 0, vec, elem)
			}
			y := make([]int32, m*n)
			gemm.MultiplyInt8(pool, m, x, tables, p, y)
			return y, p
		}
		var want []int32
		plain(func() { want, _ = product() })
		got, p := product()
		if !slices.Equal(got, want) {
			t.Fatalf("%d×%d·%d, %s, differs", m, k, n, p.Name(m))
		}
		sifted := strings.HasPrefix(p.Name(m), "sifted/")
		// Other weights in their place, and the same again, which is not checked for sparsity.
		tables = tables[:1]
		other := randomWeights(r, n*k)
		for _, w := range [][]int32{other, w} {
			again := func(p *gemm.PackedInt8) []int32 {
				tables[0].Fill(signed, kernels.Value(77, signed))
				p.Fill(w, vec, elem)
				y := make([]int32, m*n)
				gemm.MultiplyInt8(pool, m, x, tables, p, y)
				return y
			}
			plain(func() { want = again(gemm.NewPackedInt8(n, k)) })
			if got := again(p); !slices.Equal(got, want) {
				t.Fatalf("%d×%d·%d again, %s, differs", m, k, n, p.Name(m))
			}
		}
		return sifted
	})
}

func Test4of8Conv(t *testing.T) {
	kernels.Sparse4of8Sets(t, func(t *testing.T, r *rand.Rand, pool *workers.Pool, plain func(func())) bool {
		s := anyConv(r)
		s.Groups, s.C, s.OC = 1, 8*(1+r.IntN(8)), 32*(1+r.IntN(2))-r.IntN(2)*r.IntN(32)
		k := s.C * s.KH * s.KW
		last := kernels.FourOfEight(r, s.OC*k, k) // channels last, as they are multiplied
		w, x := transpose(last, s.OC, s.KH*s.KW, s.C), kernels.BytesOf(r, s.N*s.C*s.H*s.W)
		signed := r.IntN(2) == 0
		zero := kernels.Value(uint8(r.Uint32()), signed)
		area := s.OH * s.OW
		want := make([]int32, s.Outputs())
		make1 := func(lastIn, lastOut bool) *Sums {
			c := NewSums(s, lastIn, lastOut)
			SetSumWeights(c, w, 0)
			c.SetZero(signed, zero)
			return c
		}
		plain(func() { make1(false, false).Run(pool, x, want) })
		q := quantise.Rescale{Zero: kernels.Value(128, signed) + 128, Lo: 3, Hi: 120, Signed: signed, Bias: randomWeights(r, s.OC)}
		for range s.OC {
			q.Scales = append(q.Scales, 0.0001+r.Float32()*0.002)
		}
		q.Prepare()
		codes := make([]uint8, len(want))
		for i, v := range want {
			codes[i] = q.Quantise(v, i/area%s.OC)
		}
		turned := transpose(x, s.N, s.C, s.H*s.W)
		sifted := false
		for _, lastIn := range []bool{false, true} {
			for _, lastOut := range []bool{false, true} {
				if lastIn && !s.SupportsNHWC() || lastOut && !s.SupportsNHWCOutput() {
					continue
				}
				in, out := x, codes
				if lastIn {
					in = turned
				}
				if lastOut {
					out = transpose(codes, s.N, s.OC, area)
				}
				c := make1(lastIn, lastOut)
				sifted = sifted || strings.HasPrefix(c.Name(), "sifted/")
				sameSums(t, c, pool, in, want, out, &q, lastOut)
			}
		}
		if signed {
			return sifted // the limits are for unsigned values
		}
		narrow := make([]int8, len(last))
		for i, v := range last {
			narrow[i] = int8(v)
		}
		rq := randomRequant(r, s.OC)
		quantised := transpose(want, s.N, s.OC, area)
		for i, v := range quantised {
			quantised[i] = rq.One(v, i%s.OC)
		}
		y := make([]uint8, len(want))
		c := NewInt8[uint8](s, narrow, 0, zero, rq)
		if c.Run(pool, turned, y); !slices.Equal(widen(y), quantised) {
			t.Fatalf("%+v, %s: quantised values differ", s, c.Name())
		}
		return sifted
	})
}
