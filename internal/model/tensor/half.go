package tensor

import "math"

// F16ToF32 widens an IEEE 754 half.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 31
	man := uint32(h & 1023)
	switch exp {
	case 0:
		f := float32(man) * (1.0 / (1 << 24))
		if sign != 0 {
			return float32(math.Copysign(float64(f), -1))
		}
		return f
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// F32ToF16 rounds to the nearest half, ties to even; overflow gives infinity.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	exp := int(b>>23) & 255
	man := b & 0x7fffff
	if exp == 255 {
		if man != 0 {
			return sign | 0x7e00
		}
		return sign | 0x7c00
	}
	exp -= 112
	if exp >= 31 {
		return sign | 0x7c00
	}
	if exp <= 0 {
		if exp < -10 {
			return sign
		}
		man |= 0x800000
		sh := uint(14 - exp)
		r, rem, half := man>>sh, man&(1<<sh-1), uint32(1)<<(sh-1)
		if rem > half || rem == half && r&1 == 1 {
			r++
		}
		return sign | uint16(r)
	}
	r, rem := uint32(exp)<<10|man>>13, man&0x1fff
	if rem > 0x1000 || rem == 0x1000 && r&1 == 1 {
		r++
	}
	return sign | uint16(r)
}

// BF16ToF32 widens a bfloat16.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to the nearest bfloat16, ties to even.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
