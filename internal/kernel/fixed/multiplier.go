package fixed

import (
	"math"
	"math/bits"
)

// Multiplier is a real factor M·2^Shift with M in [0.5, 1) as a Q0.31 number. A positive Shift is
// a left shift.
type Multiplier struct {
	M     int32
	Shift int
}

// FromReal decomposes a factor. Factors below 2^-32 become zero.
func FromReal(m float64) Multiplier {
	const fraction = 52 // bits of the fraction of a float64
	b := math.Float64bits(m)
	e := int(b>>fraction&0x7FF) - 1022
	if e > 1024 { // infinite, or NaN
		return Multiplier{}
	}
	// The first 31 bits of the fraction with the implicit bit, ties rounded away from zero.
	q := int64(b&(1<<fraction-1)|1<<fraction)>>(fraction-31) + 1
	if q >>= 1; m < 0 {
		q = -q
	}
	if q == 1<<31 {
		q /= 2
		e++
	}
	if e < -31 {
		return Multiplier{}
	}
	// Left shifts above 30 lose every bit anyway; the bound keeps shifts defined.
	if e > 30 {
		return Multiplier{M: math.MaxInt32, Shift: 30}
	}
	return Multiplier{M: int32(q), Shift: e}
}

// Apply scales a 32-bit accumulator with two roundings: a rounding doubling high
// multiply, then a rounding right shift.
func (m Multiplier) Apply(x int32) int32 {
	if m.Shift >= 0 {
		return DoublingHighMul(x<<uint(m.Shift), m.M)
	}
	return RoundShift(DoublingHighMul(x, m.M), -m.Shift)
}

// Apply64 scales a 64-bit accumulator, as the kernels with 16-bit activations do: the multiplier
// is reduced to 16 bits, and the result is rounded once.
func (m Multiplier) Apply64(x int64) int32 {
	r, down := m.Parts64()
	x *= r
	if down <= 0 {
		return int32(x << uint(-down))
	}
	return int32((x + 1<<uint(down-1)) >> uint(down))
}

// Parts64 returns the factor and the right shift of [Multiplier.Apply64].
func (m Multiplier) Parts64() (factor int64, down int) {
	factor = 0x7FFF
	if m.M < 0x7FFF0000 {
		factor = (int64(m.M) + 1<<15) >> 16
	}
	return factor, 15 - m.Shift
}

// Mean folds a division by count into the multiplier. It keeps as many bits of
// the quotient as fit.
func (m Multiplier) Mean(count int) Multiplier {
	if count <= 1 {
		return m
	}
	shift := 63 - bits.LeadingZeros64(uint64(count))
	shift = min(shift, 32, 31+m.Shift)
	if shift < 0 {
		return Multiplier{}
	}
	return Multiplier{M: int32((int64(m.M) << uint(shift)) / int64(count)), Shift: m.Shift - shift}
}

// DoublingHighMul returns the high half of 2·a·b, ties upwards. It saturates the only product
// that does not fit.
func DoublingHighMul(a, b int32) int32 {
	if a == math.MinInt32 && b == math.MinInt32 {
		return math.MaxInt32
	}
	return int32((int64(a)*int64(b) + 1<<30) >> 31)
}

// DoublingHighMul16 is [DoublingHighMul] on 16 bits.
func DoublingHighMul16(a, b int16) int16 {
	if a == math.MinInt16 && b == math.MinInt16 {
		return math.MaxInt16
	}
	return int16((int32(a)*int32(b) + 1<<14) >> 15)
}

// TruncatingHighMul16 returns the high half of 2·a·b rounded towards zero.
func TruncatingHighMul16(a, b int16) int16 {
	if a == math.MinInt16 && b == math.MinInt16 {
		return math.MaxInt16
	}
	return int16(int32(a) * int32(b) / (1 << 15))
}

// RoundShift divides by 2^n, ties away from zero.
func RoundShift(x int32, n int) int32 {
	if n <= 0 {
		return x
	}
	if n > 31 {
		return 0
	}
	mask := int64(1)<<uint(n) - 1
	rest := int64(x) & mask
	threshold := mask >> 1
	if x < 0 {
		threshold++
	}
	r := x >> uint(n)
	if rest > threshold {
		r++
	}
	return r
}

// ShiftLeft multiplies by 2^n and saturates.
func ShiftLeft(x int32, n int) int32 {
	y := int64(x) << uint(min(n, 32))
	return int32(max(math.MinInt32, min(y, math.MaxInt32)))
}

// Saturate16 clamps to 16 bits.
func Saturate16(x int32) int16 { return int16(max(math.MinInt16, min(x, math.MaxInt16))) }

// RoundHalfAway rounds to the nearest integer, ties away from zero.
func RoundHalfAway[F float32 | float64](x F) F { return F(math.Round(float64(x))) }
