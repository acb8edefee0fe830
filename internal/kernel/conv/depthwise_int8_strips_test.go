package conv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestByteStripCodes compares depthwise convolutions with fused requantisation with plain Go, for
// all channel counts in a block and beyond, padding, strides, zero points and limits.
func TestByteStripCodes(t *testing.T) {
	t.Run("int8", func(t *testing.T) { byteStripCodes[int8](t, -128, 127, 127) })
	t.Run("uint8", func(t *testing.T) { byteStripCodes[uint8](t, 0, 255, 127) })
	t.Run("9-bit weights", func(t *testing.T) { byteStripCodes[uint8](t, 0, 255, 255) })
}

func byteStripCodes[T int8 | uint8](t *testing.T, least, most int32, weight int) {
	r := rand.New(rand.NewPCG(11, uint64(most)))
	pool := workers.New(2, nil)
	defer pool.Close()
	code := func() int32 { return least + r.Int32N(256) }
	for n := range sets.Rounds(600) {
		k, step := 3+2*r.IntN(2), 1+r.IntN(2)
		s := Shape{N: 1 + r.IntN(2), C: 1 + n/3, H: 1 + r.IntN(12), W: 1 + r.IntN(12), KH: k, KW: k, StrideH: step, StrideW: step, DilH: 1, DilW: 1, PadT: r.IntN(k), PadL: r.IntN(k)}
		if n%5 == 3 { // columns are joined
			s.C, s.W, s.StrideH, s.StrideW, step = 4+4*r.IntN(12), 1+r.IntN(40), 1, 1, 1
		}
		s.OC, s.OH, s.OW = s.C, 1+(s.H+s.PadT-1)/step, 1+(s.W+s.PadL-1)/step
		switch {
		case n%50 == 0:
			s.H, s.OH = 150, 150/step
		case n%50 == 2: // threads share these channels
			s.N, s.C, s.H, s.W, s.PadT, s.PadL = 1, 400+n, 14, 14, k/2, k/2
			s.OC, s.OH, s.OW = s.C, (s.H+step-1)/step, (s.W+step-1)/step
		}
		w := make([]int16, k*k*s.C)
		for i := range w {
			w[i] = int16(r.IntN(2*weight+1) - weight)
		}
		x := make([]T, s.N*s.H*s.W*s.C)
		for i := range x {
			if x[i] = T(code()); r.IntN(4) == 0 {
				x[i] = T([]int32{least, most}[r.IntN(2)])
			}
		}
		q := quantise.Requant{Zero: code(), Min: least, Max: most}
		switch r.IntN(3) {
		case 0:
			q.Min = q.Zero
		case 1:
			q.Min, q.Max = least+r.Int32N(20), most-r.Int32N(20)
		}
		up := r.IntN(3) / 2 * 2 // requantised rows do not support this
		for range s.OC {
			m := fixed.Multiplier{M: []int32{1 << 30, 1<<31 - 1, 1<<30 + r.Int32N(1<<30)}[r.IntN(3)], Shift: up - 1 - r.IntN(12)}
			switch r.IntN(50) { // channels whose results are all zero
			case 0:
				m.Shift -= r.IntN(30)
			case 1:
				m = fixed.Multiplier{}
			}
			q.Mul = append(q.Mul, m)
			q.Bias = append(q.Bias, r.Int32N(20000)-10000)
		}
		zero := code()
		want, wide := make([]T, s.N*s.OH*s.OW*s.OC), make([]int32, len(w))
		for i, v := range w {
			wide[i] = int32(v)
		}
		plain, prepared := s, q
		plain.Groups = s.C
		plain.columnAsRow()
		prepared.Prepare(s.OC)
		depthwiseNHWC(nil, &intConv{s: plain, og: 1, wd: wide, zeroPoint: zero}, x, epilogue{y: quantise.Bits(want), q: &prepared})
		var p *workers.Pool
		if n%2 == 0 {
			p = pool
		}
		sets.In(t, func(set simd.Set) {
			c := NewDepthwiseInt8[T](s, w, zero, q)
			got := make([]T, len(want))
			c.Run(p, x, got)
			if slices.Equal(got, want) {
				return
			}
			i := 0
			for got[i] == want[i] {
				i++
			}
			t.Fatalf("case %d, %v, %s: %+v, zero point %d, %d between %d and %d: value %d is %d, want %d", n, set, c.Name(), s, zero, q.Zero, q.Min, q.Max, i, got[i], want[i])
		})
	}
}

// TestByteStripCuts checks how strips are split for two threads: small images by channels, others
// by rows, in pieces of several rows.
func TestByteStripCuts(t *testing.T) {
	t.Parallel()
	two := workers.New(2, nil)
	t.Cleanup(two.Close)
	for _, c := range []struct {
		name                string
		s                   Shape
		jobs, pieces, parts int
	}{
		{"small", Shape{N: 1, C: 960, H: 7, W: 7, OH: 7, OW: 7, KH: 3}, 2, 1, 2},
		{"many taps", Shape{N: 1, C: 1152, H: 7, W: 7, OH: 7, OW: 7, KH: 5}, 4, 1, 4},
		{"few channels", Shape{N: 1, C: 192, H: 14, W: 14, OH: 14, OW: 14, KH: 3}, 2, 2, 1},
		{"few lines", Shape{N: 1, C: 960, H: 20, W: 20, OH: 20, OW: 20, KH: 5}, 2, 2, 1},
		{"large", Shape{N: 1, C: 96, H: 112, W: 112, OH: 112, OW: 112, KH: 3}, 4, 4, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := &byteStrips{k: c.s.KH, step: 1}
			jobs, pieces, parts := b.cut(two, &c.s, (c.s.C+simd.ByteLanes-1)/simd.ByteLanes)
			if jobs != c.jobs || pieces != c.pieces || parts != c.parts {
				t.Errorf("%d jobs of %d pieces and %d parts, want %d, %d and %d", jobs, pieces, parts, c.jobs, c.pieces, c.parts)
			}
			if jobs, pieces, parts = b.cut(nil, &c.s, 1); jobs != 1 || parts != 1 || pieces > 4 {
				t.Errorf("one thread: %d jobs of %d pieces and %d parts", jobs, pieces, parts)
			}
		})
	}
}

// TestDepthwiseLast compares quantised depthwise convolutions with plain Go, channels first and
// last. The first shapes use channels-last if byte transposes exist.
func TestDepthwiseLast(t *testing.T) {
	fixed := []Shape{
		{N: 1, C: 144, OH: 9, OW: 11, H: 9, W: 11, KH: 3, StrideH: 1, PadT: 1, PadL: 1},
		{N: 2, C: 96, OH: 6, OW: 6, H: 12, W: 12, KH: 3, StrideH: 2, PadT: 0, PadL: 0},
		{N: 1, C: 16, OH: 5, OW: 40, H: 5, W: 40, KH: 5, StrideH: 1, PadT: 2, PadL: 2},
		{N: 1, C: 600, OH: 7, OW: 7, H: 7, W: 7, KH: 5, StrideH: 1, PadT: 2, PadL: 2},
		{N: 1, C: 1032, OH: 7, OW: 7, H: 14, W: 14, KH: 3, StrideH: 2, PadT: 0, PadL: 0},
	}
	r := rand.New(rand.NewPCG(19, 20))
	last := map[simd.Set]int{}
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for i := range sets.Rounds(80) {
			s := Shape{N: 1 + r.IntN(2), C: 16 + r.IntN(180), OH: 1 + r.IntN(12), OW: 1 + r.IntN(30), KH: 3 + 2*r.IntN(2), StrideH: 1 + r.IntN(2), PadT: r.IntN(4), PadL: r.IntN(4)}
			s.H, s.W = max(1, (s.OH-1)*s.StrideH+s.KH-s.PadT-r.IntN(3)), max(1, (s.OW-1)*s.StrideH+s.KH-s.PadL-r.IntN(3))
			if i < len(fixed) {
				s = fixed[i]
			}
			s.OC, s.Groups, s.KW, s.StrideW, s.DilH, s.DilW = s.C, s.C, s.KH, s.StrideH, 1, 1
			sets.In(t, func(set simd.Set) {
				if s.SupportsDepthwiseNHWC() {
					last[set]++
				}
			})
			testIntConv(t, r, pool, s)
		}
	}
	sets.In(t, func(set simd.Set) {
		if simd.ByteStripKernels(3, 1) != nil && simd.ElementKernels().HasRescaleColumns() && last[set] < 2*len(fixed) {
			t.Fatalf("%d convolutions have their channels last", last[set])
		}
	})
}
