package tensor

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// TestFloat8RoundTrip encodes every value of every type and checks rounding half
// way between neighbours.
func TestFloat8RoundTrip(t *testing.T) {
	t.Parallel()
	for ty, m := range minifloats {
		tab := Float8Table(ty)
		codes := 256
		if b := ty.Bits(); b < 8 {
			codes = 1 << b
		}
		for c := range codes {
			v := tab[c]
			got := F64ToFloat8(ty, float64(v), false)
			if v != v {
				if tab[got] == tab[got] {
					t.Errorf("%v: NaN code %#x becomes %#x", ty, c, got)
				}
				continue
			}
			if int(got) != c {
				t.Errorf("%v: code %#x (%v) becomes %#x", ty, c, v, got)
			}
		}
		for c := range int(m.signBit) - 1 {
			lo, hi := float64(tab[c]), float64(tab[c+1])
			if hi != hi || math.IsInf(hi, 0) || hi <= lo {
				continue
			}
			even := uint8(c)
			if c%2 == 1 {
				even++
			}
			mid := (lo + hi) / 2
			if got := F64ToFloat8(ty, mid, true); got != even {
				t.Errorf("%v: %v becomes %#x, want %#x", ty, mid, got, even)
			}
			if got := F64ToFloat8(ty, math.Nextafter(mid, 0), true); got != uint8(c) {
				t.Errorf("%v: below %v becomes %#x, want %#x", ty, mid, got, c)
			}
		}
	}
}

func TestFloat8Special(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	tests := []struct {
		name     string
		ty       Type
		f        float64
		saturate bool
		want     uint8
	}{
		{"e4m3fn max", Float8E4M3FN, 1e9, true, 0x7e},
		{"e4m3fn -inf saturates", Float8E4M3FN, -inf, true, 0xfe},
		{"e4m3fn overflow", Float8E4M3FN, -1e9, false, 0xff},
		{"e4m3fn rounds down to max", Float8E4M3FN, 464, false, 0x7e},
		{"e4m3fnuz overflow", Float8E4M3FNUZ, 1e9, false, 0x80},
		{"e4m3fnuz -0", Float8E4M3FNUZ, math.Copysign(0, -1), true, 0},
		{"e4m3fnuz -tiny", Float8E4M3FNUZ, -1e-30, true, 0},
		{"e5m2 overflow", Float8E5M2, -1e9, false, 0xfc},
		{"e5m2 inf saturates", Float8E5M2, inf, true, 0x7b},
		{"e5m2 nan", Float8E5M2, nan, true, 0x7f},
		{"e5m2fnuz max", Float8E5M2FNUZ, inf, true, 0x7f},
		{"e2m1 max", Float4E2M1, -100, false, 0xf},
		{"e2m3 max", Float6E2M3, 9, false, 0x1f},
		{"e3m2 -inf", Float6E3M2, -inf, false, 0x3f},
		{"e2m1 nan", Float4E2M1, nan, false, 0x8},
	}
	for _, test := range tests {
		if got := F64ToFloat8(test.ty, test.f, test.saturate); got != test.want {
			t.Errorf("%s: %v becomes %#x, want %#x", test.name, test.f, got, test.want)
		}
	}
}

func TestE8M0(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		f    float32
		mode RoundMode
		want uint8
	}{
		{1, RoundUp, 127},
		{1.1, RoundUp, 128},
		{1.9, RoundDown, 127},
		{1.5, RoundNearest, 128},
		{1.4, RoundNearest, 127},
		{0, RoundUp, 0},
		{math.MaxFloat32, RoundUp, 0xfe},
	} {
		if got := F32ToE8M0(test.f, true, test.mode); got != test.want {
			t.Errorf("%v mode %d: %d, want %d", test.f, test.mode, got, test.want)
		}
	}
	if F32ToE8M0(math.MaxFloat32, false, RoundUp) != 0xff {
		t.Error("overflow without saturation is not NaN")
	}
}

func TestRoundOnce(t *testing.T) {
	t.Parallel()
	// Just above a tie of the narrow type, but a tie after rounding to float32.
	f := 1 + math.Ldexp(1, -11) + math.Ldexp(1, -40)
	if got := F64ToF16(f); got != 0x3c01 {
		t.Errorf("F64ToF16 = %#x", got)
	}
	f = -(1 + math.Ldexp(1, -8) + math.Ldexp(1, -40))
	if got := F64ToBF16(f); got != 0xbf81 {
		t.Errorf("F64ToBF16 = %#x", got)
	}
	for h := range 1 << 16 {
		if v := F16ToF32(uint16(h)); v == v && F64ToF16(float64(v)) != uint16(h) {
			t.Fatalf("half %#x becomes %#x", h, F64ToF16(float64(v)))
		}
	}
}

func TestPack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ty   Type
		src  []uint8
		data []byte
	}{
		{Int4, []uint8{0xf8, 7, 0xff}, []byte{0x78, 0x0f}},
		{Uint4, []uint8{15, 1, 2}, []byte{0x1f, 0x02}},
		{Int2, []uint8{0xfe, 1, 0, 0xff, 1}, []byte{0xc6, 0x01}},
		{Uint2, []uint8{3, 1, 0, 2, 1}, []byte{0x87, 0x01}},
		{Float4E2M1, []uint8{7, 15}, []byte{0xf7}},
		{Float6E2M3, []uint8{0x3f, 0, 0x21, 0x10, 0x2a}, []byte{0x3f, 0x10, 0x42, 0x2a}},
	} {
		x := New(test.ty, len(test.src))
		Pack(x, test.src)
		if !bytes.Equal(x.Data, test.data) {
			t.Errorf("%v: packed %x, want %x", test.ty, x.Data, test.data)
		}
		got := make([]uint8, len(test.src))
		Unpack(got, x, 0)
		if !bytes.Equal(got, test.src) {
			t.Errorf("%v: unpacked %x, want %x", test.ty, got, test.src)
		}
	}
}

// TestHalvesOfDoubles rounds float64 in one step, as [RoundBits] does.
func TestHalvesOfDoubles(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 6))
	special := []float64{0, math.Inf(1), math.NaN(), 65504, 65519.99, 65520, 65536, math.MaxFloat32, math.MaxFloat64, 5e-324, 0x1p-149, 0x1.8p-25, 0x1p-25, 0x1.0000000001p-25, 0x1p-134, 0x1.8p-134, 0x1.01p0, 0x1.01000001p0, 0x1.00ffffff8p0}
	for i := range 200000 {
		f := math.Float64frombits(r.Uint64())
		switch {
		case i < len(special):
			f = special[i]
		case i%3 == 0:
			f = math.Ldexp(1+float64(r.IntN(1<<12))/(1<<12), r.IntN(300)-170) // ties among them
		case i%3 == 1:
			f = r.NormFloat64() * math.Ldexp(1, r.IntN(60)-40)
		}
		for _, f := range []float64{f, -f} {
			if got, want := F64ToF16(f), F32ToF16(float32(math.Copysign(RoundBits(math.Abs(f), 10, -14), f))); got != want {
				t.Fatalf("%x in float16 is %x, want %x", f, got, want)
			}
			if got, want := F64ToBF16(f), F32ToBF16(float32(math.Copysign(RoundBits(math.Abs(f), 7, -126), f))); got != want {
				t.Fatalf("%x in bfloat16 is %x, want %x", f, got, want)
			}
		}
	}
}
