package simd

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// fusedCode returns the quantised value of a sum by the definition of Fused, in exact arithmetic.
func fusedCode(f Fused, sum int32) int64 {
	float := func(v float32) *big.Rat { return new(big.Rat).SetFloat64(float64(v)) }
	bits := uint32(f.Start + sum)
	v := new(big.Rat).Mul(float(math.Float32frombits(bits)), float(f.Scale))
	v.Add(v, float(f.Add))
	// The nearest integer, ties to even.
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
			want := min(max(s.quantised(0, x)+int64(zero), int64(lo)), int64(hi))
			if got := min(max(fusedCode(f, sum), int64(lo)), int64(hi)); got != want {
				t.Fatalf("%+v, sums %d to %d, zero %d, limits %d and %d: %+v makes %d of %d, want %d", s, least, most, zero, lo, hi, f, got, sum, want)
			}
			if bits := f.Start + sum; bits < fusedMin || bits >= fusedMin+1<<23 {
				t.Fatalf("%+v, sums %d to %d: %+v %d leaves the range of its floats", s, least, most, f, sum)
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
		// Around each sum at which a quantised value starts.
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
		// Few scales of typical layers fail.
		if down <= 7 && 100*found[down] < 90*n {
			t.Errorf("shifts by %d: fused scales for %d of %d channels", down, found[down], n)
		}
	}
	t.Log(found, all)
}

// TestLineExtremes compares the extremes of a line with steps with those over all its points.
func TestLineExtremes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 9))
	for range 200_000 {
		bits := 1 + r.IntN(20)
		n, m := 1+r.Int64N(60), 1+r.Int64N(1<<bits)
		c, d := r.Int64N(3<<bits), r.Int64N(3<<bits)
		a, b := r.Int64N(1<<bits)-r.Int64N(1<<bits), r.Int64N(1<<bits)-r.Int64N(1<<bits)
		if r.IntN(2) == 0 { // the line is nearly horizontal
			a = -b*c/m + r.Int64N(5) - 2
		}
		least, most := int64(math.MaxInt64), int64(math.MinInt64)
		for x := range n {
			v := a*x + b*((c*x+d)/m)
			least, most = min(least, v), max(most, v)
		}
		if l, h := lineExtremes(n, a, b, c, d, m); l != least || h != most {
			t.Fatalf("n %d, a %d, b %d, c %d, d %d, m %d: %d and %d, want %d and %d", n, a, b, c, d, m, l, h, least, most)
		}
	}
}

// TestStairs compares step functions with a step-by-step search.
func TestStairs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 3))
	for range 100_000 {
		mul, down := 1<<30+r.Int64N(1<<30), 1+r.IntN(20)
		scale := (mul+1<<6)>>7 + r.Int64N(5) - 2
		x0 := -r.Int64N(1 << (1 + r.IntN(28)))
		if r.IntN(4) == 0 {
			x0 = -x0
		}
		x1 := x0 + r.Int64N(fusedRange)
		k0 := 1 + r.Int64N(256)
		s := Scales{Mul: []int32{int32(mul)}, Down: []int32{int32(down)}, Half: []int32{1 << (down - 1)}}
		k1 := min(s.quantised(0, x1)+1, k0+r.Int64N(256))
		if k1 < k0 {
			continue
		}
		from, to := int64(math.MinInt64), int64(math.MaxInt64)
		for k := k0; k <= k1; k++ {
			least := ((2*k-1)<<(30+down) - 1<<30 + mul - 1) / mul
			middle := (2*k - 1) << (23 + down)
			if x := max(least, x0); x <= x1 {
				from = max(from, middle-x*scale+1)
			}
			if x := min(least-1, x1); x >= x0 {
				to = min(to, middle-x*scale-1)
			}
		}
		if from == math.MinInt64 {
			from = to - 1<<(23+down)
		}
		if to == math.MaxInt64 {
			to = from + 1<<(23+down)
		}
		if f, l := addendRange(mul, scale, down, x0, x1, k0, k1); f != from || l != to {
			t.Fatalf("mul %d, scale %d, down %d, sums %d to %d, codes %d to %d: %d to %d, want %d to %d", mul, scale, down, x0, x1, k0, k1, f, l, from, to)
		}
	}
}
