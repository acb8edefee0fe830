package simd

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// fusedCode is the code of a sum by the definition of fused numbers, in exact arithmetic.
func fusedCode(f Fused, sum int32) int64 {
	float := func(v float32) *big.Rat { return new(big.Rat).SetFloat64(float64(v)) }
	bits := uint32(f.Start + sum)
	v := new(big.Rat).Mul(float(math.Float32frombits(bits)), float(f.Scale))
	v.Add(v, float(f.Add))
	// The nearest whole number, ties to even.
	v.Mul(v, big.NewRat(2, 1))
	twice := new(big.Int).Div(v.Num(), v.Denom())
	exact := v.IsInt()
	n := twice.Int64()
	whole := n >> 1
	if n&1 != 0 && (!exact || whole&1 != 0) {
		whole++
	}
	return whole - fusedWhole
}

func TestFuse(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(17, 4))
	found, all := map[int]int{}, map[int]int{}
	for n := range 1500 {
		down := 1 + r.IntN(12)
		if n%8 == 0 {
			down = 1 + r.IntN(30)
		}
		s := Scales{Mul: []int32{1<<30 + r.Int32N(1<<30)}, Up: []int32{0}, Down: []int32{int32(down)}, Bias: []int32{(r.Int32N(1<<16) - 1<<15) >> r.IntN(12)}, Half: []int32{1 << (down - 1)}}
		switch r.IntN(12) {
		case 0:
			s.Mul[0] = 1 << 30
		case 1:
			s.Mul[0] = 1<<31 - 1 - r.Int32N(2)
		case 2:
			s.Mul[0] = 1<<30 + r.Int32N(3)
		case 3:
			s.Mul[0] = 0
		}
		least, most := -r.Int32N(1<<(1+r.IntN(21))), r.Int32N(1<<(1+r.IntN(21)))
		zero := r.Int32N(256) - 128
		if r.IntN(2) == 0 {
			zero = -128
		}
		lo, hi := zero, int32(127)
		if r.IntN(4) == 0 {
			lo += r.Int32N(hi - lo + 1)
			hi = lo + r.Int32N(hi-lo+1)
		}
		f, ok := s.Fuse(0, least, most, zero, lo, hi)
		all[down]++
		if !ok {
			continue
		}
		found[down]++
		check := func(sum int32) {
			if sum < least || sum > most {
				return
			}
			x := int64(sum) + int64(s.Bias[0])
			want := min(max(s.code(0, x)+int64(zero), int64(lo)), int64(hi))
			if got := min(max(fusedCode(f, sum), int64(lo)), int64(hi)); got != want {
				t.Fatalf("%+v, sums %d to %d, zero %d, limits %d and %d: %+v makes %d of %d, want %d", s, least, most, zero, lo, hi, f, got, sum, want)
			}
			if bits := f.Start + sum; bits < fusedLeast || bits >= fusedLeast+1<<23 {
				t.Fatalf("%+v, sums %d to %d: %+v lets %d leave its floats", s, least, most, f, sum)
			}
		}
		check(least)
		check(most)
		for range 20 {
			check(least + r.Int32N(most-least+1))
		}
		if s.Mul[0] == 0 || down > 22 {
			continue
		}
		// Around each place where a code begins.
		for k := int64(-2); k <= 256; k++ {
			at := ((2*k-1)<<(30+down)-1<<30)/int64(s.Mul[0]) - int64(s.Bias[0])
			if at < math.MinInt32/2 || at > math.MaxInt32/2 {
				continue
			}
			for d := int64(-2); d <= 2; d++ {
				check(int32(at + d))
			}
		}
	}
	for down, n := range all {
		// Few scales that layers have are left out.
		if down <= 7 && 100*found[down] < 90*n {
			t.Errorf("shifts by %d: numbers for %d of %d channels", down, found[down], n)
		}
	}
	t.Log(found, all)
}
