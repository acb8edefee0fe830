package kernel

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Sums, differences and products of codes in vectors against the fixed-point arithmetic of the definition, for scales
// that lie near each other and far apart, zero points and limits at the ends, and lengths beside whole registers.
func TestPairQ(t *testing.T) {
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		r := rand.New(rand.NewPCG(11, 7))
		taken := 0
		for range 4000 {
			signed, product, subtract := r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(2) == 0
			scale := func() float64 { return (0.5 + r.Float64()) / float64(int(1)<<r.IntN(12)) }
			sa, sb, so := scale(), scale(), scale()
			if r.IntN(8) == 0 {
				sb = sa
			}
			least := int32(0)
			if signed {
				least = -128
			}
			code := func() int32 { return least + []int32{0, 255, int32(r.IntN(256))}[r.IntN(3)] }
			za, zb, zo := code(), code(), code()
			lo := least + int32(r.IntN(100))
			hi := lo + int32(r.IntN(156))
			shift := 20
			twice := 2 * max(sa, sb)
			ma, mb, m := fixed.FromReal(sa/twice), fixed.FromReal(sb/twice), fixed.FromReal(twice/(1<<20*so))
			p, ok := NewSumQ(signed, subtract, shift, za, zb, ma, mb, m, zo, lo, hi)
			prelu := !product && r.IntN(4) == 0
			square := !product && !prelu && r.IntN(3) == 0
			if square {
				shift = 7
			}
			switch {
			case square:
				m = fixed.FromReal(twice * twice / (1 << 14 * so))
				p, ok = NewSquareQ(signed, shift, za, zb, ma, mb, m, zo, lo, hi)
			case product:
				m = fixed.FromReal(sa * sb / so)
				p, ok = NewProductQ(signed, za, zb, m, zo, lo, hi)
			case prelu:
				ma, m = fixed.FromReal(sa/so), fixed.FromReal(sa*sb/so)
				p, ok = NewPReluQ(signed, za, zb, ma, m, zo, lo, hi)
			}
			if !ok {
				continue
			}
			taken++
			n := r.IntN(100)
			a, b, got := randomBytes(r, n), randomBytes(r, n), make([]uint8, n+1)
			p.Run(got[:n], a, b)
			for i := range n {
				x, y := value(a[i], signed)-za, value(b[i], signed)-zb
				var sum int32
				m := m
				switch {
				case prelu && x >= 0:
					sum, m = x, ma
				case prelu:
					sum = x * y
				case product:
					sum = x * y
				case square:
					sum = ma.Apply(x<<shift) - mb.Apply(y<<shift)
					sum *= sum
				case subtract:
					sum = ma.Apply(x<<shift) - mb.Apply(y<<shift)
				default:
					sum = ma.Apply(x<<shift) + mb.Apply(y<<shift)
				}
				if want := uint8(min(max(m.Apply(sum)+zo, lo), hi)); got[i] != want {
					t.Fatalf("%v: product %v, PRelu %v, difference %v, scales %v %v %v, zeros %d %d %d: %d and %d give %d, want %d", set, product, prelu, subtract, sa, sb, so, za, zb, zo, a[i], b[i], got[i], want)
				}
			}
			if got[n] != 0 {
				t.Fatalf("%v: written behind the end", set)
			}
		}
		if simd.PairKernels() != nil && taken < 1000 {
			t.Errorf("%v: %d of 4000 taken", set, taken)
		}
		undo()
	}
}
