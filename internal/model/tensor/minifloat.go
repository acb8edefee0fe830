package tensor

import "math"

// minifloat describes a signed floating-point type of eight or fewer bits.
type minifloat struct {
	man, bias int
	max       float64 // largest finite magnitude
	inf       bool    // has infinities
	nan       uint8   // canonical quiet NaN, 0 if the type has none
	fnuz      bool    // no negative zero; its encoding is the only NaN
	signBit   uint8
}

var minifloats = map[Type]minifloat{
	Float8E4M3FN:   {man: 3, bias: 7, max: 448, nan: 0x7f, signBit: 0x80},
	Float8E4M3FNUZ: {man: 3, bias: 8, max: 240, nan: 0x80, fnuz: true, signBit: 0x80},
	Float8E5M2:     {man: 2, bias: 15, max: 57344, inf: true, nan: 0x7f, signBit: 0x80},
	Float8E5M2FNUZ: {man: 2, bias: 16, max: 57344, nan: 0x80, fnuz: true, signBit: 0x80},
	Float4E2M1:     {man: 1, bias: 1, max: 6, signBit: 0x08},
	Float6E2M3:     {man: 3, bias: 1, max: 7.5, signBit: 0x20},
	Float6E3M2:     {man: 2, bias: 3, max: 28, signBit: 0x20},
}

// minifloatTables has the value of every encoding of every type up to eight bits.
var minifloatTables = func() (t [numTypes]*[256]float32) {
	for ty, m := range minifloats {
		t[ty] = new([256]float32)
		for c := range t[ty] {
			t[ty][c] = m.decode(uint8(c))
		}
	}
	t[Float8E8M0] = new([256]float32)
	for c := range t[Float8E8M0] {
		t[Float8E8M0][c] = float32(math.Ldexp(1, c-127))
	}
	t[Float8E8M0][255] = float32(math.NaN())
	return t
}()

func (m minifloat) decode(c uint8) float32 {
	neg := c&m.signBit != 0
	mag := int(c & (m.signBit - 1))
	exp, man := mag>>m.man, mag&(1<<m.man-1)
	top := int(m.signBit-1) >> m.man
	switch {
	case m.fnuz && c == m.nan, !m.fnuz && !m.inf && m.nan != 0 && uint8(mag) == m.nan, m.inf && exp == top && man != 0:
		return float32(math.NaN())
	case m.inf && exp == top:
		if neg {
			return float32(math.Inf(-1))
		}
		return float32(math.Inf(1))
	}
	v := math.Ldexp(float64(man), 1-m.bias-m.man)
	if exp > 0 {
		v = math.Ldexp(float64(man+1<<m.man), exp-m.bias-m.man)
	}
	if neg {
		v = math.Copysign(v, -1)
	}
	return float32(v)
}

// Float8Table returns the values of all encodings of an 8-bit, 6-bit or 4-bit floating-point
// type, nil for other types. It must not be modified.
func Float8Table(t Type) *[256]float32 {
	if t >= numTypes {
		return nil
	}
	return minifloatTables[t]
}

// F64ToFloat8 rounds to the nearest value of an 8-bit, 6-bit or 4-bit floating-point type, ties
// to even. With saturate, infinities and magnitudes that are too large give the largest finite
// value; otherwise they give infinity, or NaN if the type has no infinity. The 6-bit and 4-bit
// types have neither and always saturate; NaN becomes -0 there. Float8E8M0 is rounded up as by
// [F32ToE8M0].
func F64ToFloat8(t Type, f float64, saturate bool) uint8 {
	if t == Float8E8M0 {
		return F32ToE8M0(float32(f), saturate, RoundUp)
	}
	m := minifloats[t]
	var sign uint8
	if math.Signbit(f) {
		sign = m.signBit
	}
	if f != f {
		switch {
		case m.nan == 0:
			return m.signBit
		case m.fnuz:
			return m.nan
		}
		return sign | m.nan
	}
	a := RoundBits(math.Abs(f), m.man, 1-m.bias)
	if a > m.max {
		switch {
		case saturate || m.nan == 0:
			a = m.max
		case m.inf:
			return sign | (m.signBit-1)>>m.man<<m.man
		case m.fnuz:
			return m.nan
		default:
			return sign | m.nan
		}
	}
	if a == 0 {
		if m.fnuz {
			return 0
		}
		return sign
	}
	fr, e := math.Frexp(a) // a = fr * 2^e, fr in [0.5, 1)
	exp := e - 1 + m.bias
	if exp <= 0 {
		return sign | uint8(math.Ldexp(a, m.bias-1+m.man))
	}
	return sign | (uint8(exp<<m.man) + uint8(math.Ldexp(fr, m.man+1)) - 1<<m.man)
}

// RoundBits rounds a non-negative f to man bits after the leading one, ties to
// even, with subnormals below 2^minExp.
func RoundBits(f float64, man, minExp int) float64 {
	if f == 0 || math.IsInf(f, 0) || f != f {
		return f
	}
	_, e := math.Frexp(f)
	q := max(e-1, minExp) - man
	return math.Ldexp(math.RoundToEven(math.Ldexp(f, -q)), q)
}

// roundToOdd truncates f to float32 and sets the last bit if the result is inexact: rounding it
// to fewer bits then gives the same as rounding f.
func roundToOdd(f float64) float32 {
	r := float32(f)
	if w := float64(r); w != f && f == f {
		b := math.Float32bits(r)
		if math.Abs(w) > math.Abs(f) {
			b--
		}
		r = math.Float32frombits(b | 1)
	}
	return r
}

// F64ToF16 rounds once to the nearest half, ties to even.
func F64ToF16(f float64) uint16 {
	return F32ToF16(roundToOdd(f))
}

// F64ToBF16 rounds once to the nearest bfloat16, ties to even.
func F64ToBF16(f float64) uint16 {
	return F32ToBF16(roundToOdd(f))
}

// RoundMode is the rounding mode to a power of two.
type RoundMode uint8

// Modes: away from zero, toward zero, nearest with ties up.
const (
	RoundUp RoundMode = iota
	RoundDown
	RoundNearest
)

// F32ToE8M0 rounds the magnitude of f to a power of two. Zero gives the smallest
// power. NaN gives NaN; infinity and overflow give the largest power when
// saturating, else NaN.
func F32ToE8M0(f float32, saturate bool, mode RoundMode) uint8 {
	b := math.Float32bits(f) & 0x7fffffff
	if b >= 0x7f800000 {
		if b == 0x7f800000 && saturate {
			return 0xfe
		}
		return 0xff
	}
	e, man := b>>23, b&0x7fffff
	switch mode {
	case RoundUp:
		if man != 0 {
			e++
		}
	case RoundNearest:
		if man > 0x400000 || man == 0x400000 && e > 0 {
			e++
		}
	}
	if e == 0xff && saturate {
		return 0xfe
	}
	return uint8(e)
}

// Unpack writes the elements of a packed tensor (types below eight bits) to one byte each:
// sign-extended for Int4 and Int2, as the raw bits for others. It writes at most len(dst)
// elements from element start on.
func Unpack(dst []uint8, x *Tensor, start int) {
	bits := x.Type.Bits()
	mask := uint8(1<<bits - 1)
	var top uint8 // sign bit, 0 for unsigned types
	if x.Type.IsSigned() {
		top = 1 << (bits - 1)
	}
	for i := range dst {
		at := (start + i) * bits
		b := at / 8
		v := x.Data[b] >> (at % 8)
		if at%8+bits > 8 {
			v |= x.Data[b+1] << (8 - at%8)
		}
		dst[i] = (v&mask ^ top) - top
	}
}

// Pack is the inverse of [Unpack] for a complete tensor: it stores the low bits of each byte of
// src.
func Pack(x *Tensor, src []uint8) {
	bits := x.Type.Bits()
	mask := uint8(1<<bits - 1)
	clear(x.Data)
	for i, v := range src {
		v &= mask
		at := i * bits
		x.Data[at/8] |= v << (at % 8)
		if at%8+bits > 8 {
			x.Data[at/8+1] |= v >> (8 - at%8)
		}
	}
}
