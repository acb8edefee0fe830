package fixed

import "math"

// sigmoidUp lists the entries of the reference sigmoid table that are one above the nearest
// value: the table was fitted to make interpolation unbiased.
var sigmoidUp = [...]uint8{
	4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41, 43,
	44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255,
}

// sigmoid holds 65536·σ(i/24).
var sigmoid = func() (t [256]uint16) {
	for i := range t {
		t[i] = uint16(math.Round(65536 / (1 + math.Exp(-float64(i)/24))))
	}
	for _, i := range sigmoidUp {
		t[i]++
	}
	return t
}()

// rescale16 scales a 16-bit activation to units of 1/12288. A multiplier of 0 means a
// power-of-two input scale.
func rescale16(x int16, multiplier int32, shift int) int32 {
	if multiplier == 0 {
		multiplier, shift = 3<<uint(shift), 0
	}
	var round int32
	if shift > 0 {
		round = 1 << uint(shift-1)
	}
	return (int32(x)*multiplier + round) >> uint(shift)
}

func abs(x int32) uint32 {
	if x < 0 {
		return uint32(-x)
	}
	return uint32(x)
}

// Logistic16 returns the logistic function of x·multiplier·2^-shift/12288 in Q0.15 by table
// interpolation.
func Logistic16(x int16, multiplier int32, shift int) int16 {
	v := rescale16(x, multiplier, shift)
	a := abs(v)
	y := uint32(0x7FFF << 10)
	if h := a >> 9; h < 255 {
		lo, hi := uint32(sigmoid[h]), uint32(sigmoid[h+1])
		y = lo<<9 + a&0x1FF*(hi-lo)
	}
	if v >= 0 {
		y += 1 << 9
	} else {
		y = 1<<25 - y + 1<<9 - 1
	}
	return int16(y >> 10)
}

// Tanh16 returns the hyperbolic tangent of x·multiplier·2^-shift/12288 in Q0.15, from the same
// table: tanh(x) = 2σ(2x) - 1.
func Tanh16(x int16, multiplier int32, shift int) int16 {
	v := rescale16(x, multiplier, shift)
	a := abs(v)
	y := int32(0xFFFF << 8)
	if h := a >> 8; h < 255 {
		lo, hi := int32(sigmoid[h]), int32(sigmoid[h+1])
		y = lo<<8 + int32(a&0xFF)*(hi-lo)
	}
	if v >= 0 {
		y = y - 1<<23 + 1<<7
	} else {
		y = -y + 1<<23 + 1<<7 - 1
	}
	return int16(y >> 8)
}

// Activation16 returns multiplier and shift of [Logistic16] and [Tanh16] for an input scale.
// maxPow is the largest left shift that counts as a plain power of two: 0 for the logistic
// function, 1 for tanh.
func Activation16(scale float32, maxPow int) (multiplier int32, shift int) {
	if f, e := math.Frexp(float64(scale)); f == 0.5 {
		if s := 12 + e - 1; s >= 0 && s <= maxPow {
			return 0, s
		}
	}
	m := float64(scale) * 4096 * 3
	for m <= 32767.0/2 && shift <= 30 {
		shift++
		m *= 2
	}
	return int32(m), shift
}

// Table16 is a function over all 16-bit inputs in 512 linear pieces.
type Table16 [513]int16

// NewTable16 samples f in numbers of its type: the reference kernels use float64 for softmax and
// float32 elsewhere. Values between samples are shifted by half of the interpolation error in the
// middle of the segment.
func NewTable16[F float32 | float64](inScale F, inZero int, outScale F, outZero int, f func(F) F) *Table16 {
	inMin, inMax := inScale*F(math.MinInt16-inZero), inScale*F(math.MaxInt16-inZero)
	outMin, outMax := outScale*F(math.MinInt16-outZero), outScale*F(math.MaxInt16-outZero)
	const steps = 512
	step := (inMax - inMin) / steps
	half := step / 2
	inv := 65536 / (outMax - outMin)
	limit := func(v F) int16 { return int16(max(math.MinInt16, min(v, math.MaxInt16))) }
	var t Table16
	for i := range steps {
		// Conversions prevent fused multiply-add.
		at, to := inMin+F(F(i)*step), inMin+F(F(i+1)*step)
		val, mid, next := f(at), f(at+half), f(to)
		sample := RoundHalfAway(val * inv)
		interpolated := RoundHalfAway((F(next*inv) + sample) / 2)
		bias := RoundHalfAway((interpolated - RoundHalfAway(mid*inv)) / 2)
		t[i] = limit(sample - bias)
	}
	t[steps] = limit(RoundHalfAway(f(inMax) * inv))
	return &t
}

// At returns the interpolated value.
func (t *Table16) At(x int16) int16 {
	i := 256 + int(x>>7)
	base, slope := t[i], int32(t[i+1])-int32(t[i])
	return base + int16((slope*int32(x&0x7F)+64)>>7)
}

// NewTable8 evaluates f for all 256 values of an 8-bit type; the index is the
// value's bit pattern.
func NewTable8(signed bool, inScale float32, inZero int, outScale float32, outZero int, f func(float32) float32) *[256]uint8 {
	lo, hi := 0, 255
	if signed {
		lo, hi = -128, 127
	}
	inv := 1 / outScale
	var t [256]uint8
	for q := lo; q <= hi; q++ {
		y := RoundHalfAway(f(inScale*float32(q-inZero))*inv) + float32(outZero)
		if math.IsNaN(float64(y)) {
			y = float32(outZero)
		}
		t[uint8(q)] = uint8(int(max(float32(lo), min(y, float32(hi)))))
	}
	return &t
}

// Softmax tables over 16 bits: exp on [-10, 0] and 1/(1+x) on [0, 1].
var (
	expTable        = NewTable16(10.0/65535, math.MaxInt16, 2.0/65535, 0, math.Exp)
	reciprocalTable = NewTable16(1.0/65535, math.MinInt16, 2.0/65535, 0, func(x float64) float64 { return 1 / (1 + x) })
)

// Exp16 returns exp(x) in Q0.15; x spans [-10, 0].
func Exp16(x int16) int16 { return expTable.At(x) }

// Reciprocal16 returns 1/(1+x) in Q0.15; x spans [0, 1].
func Reciprocal16(x int16) int16 { return reciprocalTable.At(x) }

// SigmoidTable returns the table of [Logistic16] and [Tanh16]: 65536·σ(i/24).
func SigmoidTable() [256]uint16 { return sigmoid }

// SoftmaxTables returns the tables of [Exp16] and [Reciprocal16].
func SoftmaxTables() (exp, reciprocal Table16) { return *expTable, *reciprocalTable }
