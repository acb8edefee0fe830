package fixed

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// reference rounds a·b/2^31 in big integers, ties upwards.
func reference(a, b int32) int64 {
	p := new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(int64(b)))
	p.Add(p, big.NewInt(1<<30))
	p.Rsh(p, 31) // floor
	return min(p.Int64(), math.MaxInt32)
}

func TestDoublingHighMul(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int32().Draw(t, "a"), rapid.Int32().Draw(t, "b")
		if got, want := int64(DoublingHighMul(a, b)), reference(a, b); got != want {
			t.Fatalf("%d * %d: got %d, want %d", a, b, got, want)
		}
		// The reference expresses the rounding as a nudge and a truncating division.
		p := int64(a) * int64(b)
		nudge := int64(1 << 30)
		if p < 0 {
			nudge = 1 - 1<<30
		}
		if got, want := int64(DoublingHighMul(a, b)), min((p+nudge)/(1<<31), math.MaxInt32); got != want {
			t.Fatalf("%d * %d: got %d, nudged %d", a, b, got, want)
		}
	})
}

func TestRoundShift(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x, n := rapid.Int32().Draw(t, "x"), rapid.IntRange(0, 31).Draw(t, "n")
		if got, want := RoundShift(x, n), int32(math.Round(math.Ldexp(float64(x), -n))); got != want {
			t.Fatalf("%d >> %d: got %d, want %d", x, n, got, want)
		}
	})
}

// TestFromRealBits compares with the decomposition by package math.
func TestFromRealBits(t *testing.T) {
	t.Parallel()
	want := func(m float64) Multiplier {
		if m == 0 || math.IsNaN(m) || math.IsInf(m, 0) {
			return Multiplier{}
		}
		f, e := math.Frexp(m)
		q := int64(math.Round(f * (1 << 31)))
		if q == 1<<31 {
			q /= 2
			e++
		}
		switch {
		case e < -31:
			return Multiplier{}
		case e > 30:
			return Multiplier{M: math.MaxInt32, Shift: 30}
		}
		return Multiplier{M: int32(q), Shift: e}
	}
	look := func(m float64) {
		if got, want := FromReal(m), want(m); got != want {
			t.Fatalf("%v (%016x): %v, want %v", m, math.Float64bits(m), got, want)
		}
	}
	for _, m := range []float64{0, math.NaN(), math.Inf(1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0x1p-1022, 1, math.Nextafter(1, 0), 0x1p-32, math.Nextafter(0x1p-32, 0), 0x1.00000001p0, 0x1.00000002p0, 0x1.00000003p0} {
		look(m)
		look(-m)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		look(math.Float64frombits(r.Uint64()))
		look((r.Float64() - 0.5) * math.Ldexp(1, r.IntN(80)-40))
		look(math.Ldexp(float64(r.Uint64()>>30|1)/2, r.IntN(80)-60)) // ties to be rounded
	}
}

func TestFromReal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		m    float64
		want Multiplier
	}{
		{"zero", 0, Multiplier{}},
		{"one", 1, Multiplier{1 << 30, 1}},
		{"half", 0.5, Multiplier{1 << 30, 0}},
		{"rounds up to the next power", 1 - 1e-12, Multiplier{1 << 30, 1}},
		{"too small", math.Ldexp(0.75, -32), Multiplier{}},
		{"smallest", math.Ldexp(0.75, -31), Multiplier{3 << 29, -31}},
	} {
		if got := FromReal(c.m); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.Float64Range(1e-6, 1000).Draw(t, "m")
		q := FromReal(m)
		if back := math.Ldexp(float64(q.M), q.Shift-31); math.Abs(back-m) > m*1e-9 || q.M < 1<<30 {
			t.Fatalf("%v: %v gives %v", m, q, back)
		}
		x := int32(rapid.IntRange(-1<<20, 1<<20).Draw(t, "x"))
		if want := float64(x) * m; math.Abs(want) < math.MaxInt32/2 && m < 1 {
			if got := float64(q.Apply(x)); math.Abs(got-want) > 1.0001 {
				t.Fatalf("%d * %v: got %v, want %v", x, m, got, want)
			}
			if got := float64(q.Apply64(int64(x))); math.Abs(got-want) > 0.51+math.Abs(want)/30000 {
				t.Fatalf("%d * %v in 64 bits: got %v, want %v", x, m, got, want)
			}
		}
	})
}

func TestMean(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.Float64Range(0.01, 10).Draw(t, "m"), rapid.IntRange(1, 100000).Draw(t, "n")
		q := FromReal(m).Mean(n)
		if got, want := math.Ldexp(float64(q.M), q.Shift-31), m/float64(n); math.Abs(got-want) > want*1e-8 {
			t.Fatalf("%v/%d: got %v, want %v", m, n, got, want)
		}
	})
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	real := func(q int32) float64 { return math.Ldexp(float64(q), -31) }
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(0, 5).Draw(t, "k")
		a := rapid.Int32Range(math.MinInt32, 0).Draw(t, "a")
		if got, want := real(Exp(a, k)), math.Exp(math.Ldexp(float64(a), k-31)); math.Abs(got-want) > 1e-6 {
			t.Fatalf("exp of %d in Q%d: got %v, want %v", a, k, got, want)
		}
		x := rapid.Int32Range(0, math.MaxInt32).Draw(t, "x")
		if got, want := real(OneOverOnePlus(x)), 1/(1+real(x)); math.Abs(got-want) > 1e-7 {
			t.Fatalf("1/(1+%v): got %v, want %v", real(x), got, want)
		}
		b := rapid.Int32Range(-math.MaxInt32, math.MaxInt32).Draw(t, "b")
		v := math.Ldexp(float64(b), 4-31)
		if got, want := real(Logistic(b, 4)), 1/(1+math.Exp(-v)); math.Abs(got-want) > 1e-6 {
			t.Fatalf("logistic(%v): got %v, want %v", v, got, want)
		}
		if got, want := real(Tanh(b, 4)), math.Tanh(v); math.Abs(got-want) > 1e-6 {
			t.Fatalf("tanh(%v): got %v, want %v", v, got, want)
		}
		s := rapid.Int32Range(1<<19, math.MaxInt32).Draw(t, "s")
		r, e := Reciprocal(s, 12)
		if got, want := math.Ldexp(real(r), -e), 1/math.Ldexp(float64(s), 12-31); math.Abs(got-want) > want*1e-6 {
			t.Fatalf("1/%d: got %v, want %v", s, got, want)
		}
	})
}

func TestTables(t *testing.T) {
	t.Parallel()
	sum := 0
	for _, v := range sigmoid {
		sum += int(v)
	}
	if sum != 15670629 {
		t.Errorf("the sigmoid table sums to %d", sum)
	}
	for x := math.MinInt16; x <= math.MaxInt16; x++ {
		v := float64(x) / 4096
		if got, want := float64(Logistic16(int16(x), 0, 0))/32768, 1/(1+math.Exp(-v)); math.Abs(got-want) > 5e-5 {
			t.Fatalf("logistic(%v): got %v, want %v", v, got, want)
		}
		if got, want := float64(Tanh16(int16(x), 0, 0))/32768, math.Tanh(v); math.Abs(got-want) > 1e-4 {
			t.Fatalf("tanh(%v): got %v, want %v", v, got, want)
		}
		if got, want := float64(Exp16(int16(x)))/32768, math.Exp((float64(x)-32767)*10/65535); math.Abs(got-want) > 2.5e-4 {
			t.Fatalf("exp: %d got %v, want %v", x, got, want)
		}
		if got, want := float64(Reciprocal16(int16(x)))/32768, 1/(1+(float64(x)+32768)/65535); math.Abs(got-want) > 1e-4 {
			t.Fatalf("1/(1+x): %d got %v, want %v", x, got, want)
		}
	}
	// The first is one more in float64 than in float32; the reference interpreters give this
	// value.
	for i, want := range map[int]int16{160: 24967, 161: 24928} {
		if _, q := SoftmaxTables(); q[i] != want {
			t.Errorf("1/(1+x): sample %d is %d, want %d", i, q[i], want)
		}
	}
	if m, s := Activation16(1.0/4096, 0); m != 0 || s != 0 {
		t.Errorf("scale 1/4096: multiplier %d, shift %d", m, s)
	}
	if m, s := Activation16(1.0/2048, 1); m != 0 || s != 1 {
		t.Errorf("scale 1/2048: multiplier %d, shift %d", m, s)
	}
	if m, s := Activation16(1.0/1000, 1); math.Abs(math.Ldexp(float64(m), -s)-12.288) > 1e-3 {
		t.Errorf("scale 1/1000: multiplier %d, shift %d", m, s)
	}
}

func TestInvSqrt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Int32Range(1, math.MaxInt32).Draw(t, "x")
		m := InvSqrt(x)
		// Five steps from 1 reach 2, the largest root, to 1.3e-6.
		if got, want := math.Ldexp(float64(m.M), m.Shift-31), 1/math.Sqrt(float64(x)); math.Abs(got-want) > want*3e-6 {
			t.Fatalf("1/sqrt(%d): got %v, want %v", x, got, want)
		}
	})
}
