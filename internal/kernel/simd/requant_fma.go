package simd

import "math"

// This file finds parameters to requantise sums with one fused multiply-add in float32.
//
// TFLite multiplies a sum by a 31-bit multiplier, rounds, shifts, and rounds again. If no result
// is below the zero point, this is a step function: for each quantised value, the least sum that
// reaches it is known.
//
// A sum can start from the bits of a float between 2^23 and 2^24 in place of zero. If the sum
// stays in this range, its bits are a float that is larger than the first float by the sum. The
// fused multiply-add multiplies it by a scale and adds an integer so large that only integers are
// near. With its single rounding, this is another step function.
//
// [Scales.Fuse] selects the scale and the first float so that both step functions are equal for
// every possible sum. If such values are not found, sums are requantised by the definition.

// Fused holds these parameters for one channel: the initial value of the sums, which includes the
// bias; the scale; and the positive addend. A result has the bits of fusedZero plus the signed
// quantised value. Values below the lower limit may be any smaller ones.
type Fused struct {
	Start      int32
	Scale, Add float32
}

// FusedScales holds the parameters of channels, with floats as their bits; nil if absent.
type FusedScales struct{ Start, Scale, Add []int32 }

// Set sets the parameters of channel i.
func (s *FusedScales) Set(i int, f Fused) {
	s.Start[i], s.Scale[i], s.Add[i] = f.Start, int32(math.Float32bits(f.Scale)), int32(math.Float32bits(f.Add))
}

const (
	fusedMin   = 0x4b000000 // the bits of 2^23
	fusedZero  = 0x4b400000 // the bits of fusedWhole
	fusedWhole = 3 << 22
	// fusedRange is the maximum range of the sums of a channel. It leaves a choice for the first
	// float.
	fusedRange = 1 << 22
	// scaleTries is the number of scales to try on each side of the nearest one.
	scaleTries = 2
)

// Fuse finds the parameters for channel ch. Its sums without the bias are between least and most.
// The zero point and the limits are signed 8-bit values. Fuse returns false if such parameters do
// not exist or are not found.
func (s *Scales) Fuse(ch int, least, most, zero, lo, hi int32) (Fused, bool) {
	x0, x1 := int64(least)+int64(s.Bias[ch]), int64(most)+int64(s.Bias[ch])
	mul, down := int64(s.Mul[ch]), int(s.Down[ch])
	if lo < zero || x0 > x1 || x1-x0 >= fusedRange || s.Up[ch] != 0 {
		return Fused{}, false
	}
	// Positions of the sums among the integers from 2^23 to 2^24.
	first, last := int64(1<<23)-x0, int64(1<<24)-1-x1
	first, span := (first+last)/2, (last-first)/2
	top := s.quantised(ch, x1) // above the zero point
	if top+int64(zero) <= int64(lo) {
		return Fused{s.initialSum(ch, first), 0, float32(fusedWhole + int64(lo))}, true
	}
	if mul < 1<<30 || down < 1 || down > 20 {
		return Fused{}, false
	}
	q := 24 + down // scales are 24-bit integers over 2^q
	nearest := (mul + 1<<6) >> 7
	up := int64(1)
	if nearest<<7 > mul {
		up = -1
	}
	for try := range 2 * (1 + scaleTries) {
		// The nearest scale, the next one on the other side of the exact scale, and so on.
		scale := nearest + up*int64((try+1)/2)
		if try%2 == 0 {
			scale = nearest - up*int64(try/2)
		}
		if scale < 1<<23 || scale > 1<<24 {
			continue
		}
		from, to := addendRange(mul, scale, down, x0, x1, int64(lo-zero)+1, min(top+1, int64(hi-zero)))
		if from > to {
			continue
		}
		at, whole, ok := findPosition(scale, q, from, to, first, span)
		if add := whole + int64(zero) + fusedWhole; ok && 0 < add && add <= 1<<24 {
			return Fused{s.initialSum(ch, at), float32(math.Ldexp(float64(scale), -q)), float32(add)}, true
		}
	}
	return Fused{}, false
}

// rounding is the way in which sums are requantised.
type rounding uint8

const (
	roundAll   rounding = iota
	roundUp             // no result is below the zero point
	roundFused          // with the parameters of Fused
	roundings
	roundScaled = roundings // by float32 scales
)

// rounding returns the rounding for the sums of n channels from ch on. up reports that no result
// is below the zero point.
func (s *Scales) rounding(ch, n int, up bool) rounding {
	if !up {
		return roundAll
	}
	if s.Fused.Add == nil {
		return roundUp
	}
	for _, add := range s.Fused.Add[ch:][:n] {
		if add == 0 {
			return roundUp
		}
	}
	return roundFused
}

// start returns the value to add to the sum of a channel before requantisation.
func (s *Scales) start(ch int, r rounding) int32 {
	if r == roundFused {
		return s.Fused.Start[ch]
	}
	return s.Bias[ch]<<(s.Up[ch]&1) + math.MinInt32
}

// pack writes the parameters of a channel as lane x of the registers. Their order is that of
// quantiseSums in the generator or, for Fused, of fuseSums.
func (s *Scales) pack(at []int32, x, ch int, zero int32, r rounding) {
	words := len(at) / 5
	if r == roundFused {
		at[x], at[words+x], at[2*words+x] = s.Fused.Scale[ch], s.Fused.Add[ch], fusedZero
		return
	}
	half := s.Half[ch] + zero<<s.Down[ch] - int32(uint32(s.Twice[ch])>>1)
	if r == roundAll {
		half--
	}
	at[x], at[4*words+x] = s.Twice[ch], s.Down[ch]
	if x%2 == 0 {
		at[2*words+x], at[2*words+x+1] = math.MinInt32, half
		return
	}
	at[words+x-1] = s.Twice[ch]
	at[3*words+x-1], at[3*words+x] = math.MinInt32, half
}

// initialSum returns the initial value of the sums for position at among the integers.
func (s *Scales) initialSum(ch int, at int64) int32 {
	return int32(fusedMin - 1<<23 + at + int64(s.Bias[ch]))
}

// quantised returns the quantised value of a sum with its bias, before the zero point and the
// limits.
func (s *Scales) quantised(ch int, sum int64) int64 {
	t := (sum*int64(s.Mul[ch]) + 1<<30) >> 31
	half := int64(s.Half[ch])
	if t < 0 && half > 0 {
		half--
	}
	return (t + half) >> (s.Down[ch] & 63)
}

// addendRange returns the range of the addend, over 2^(24+down), for which sum·scale + addend
// rounds to the defined quantised value. The range is valid for all sums from x0 to x1 and
// quantised values from k0 - 1 to k1.
func addendRange(mul, scale int64, down int, x0, x1, k0, k1 int64) (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	// The product of the least sum of a quantised value is at least this, and exceeds it by less
	// than a multiplier. Both shifts round to the nearest.
	product := func(k int64) int64 { return (2*k-1)<<(30+down) - 1<<30 }
	code := func(x int64) int64 { return ((x*mul+1<<30)>>(30+down) + 1) >> 1 }
	// A value in the middle between two quantised values might round to either.
	middle := func(k int64) int64 { return (2*k - 1) << (23 + down) }
	// Quantised values that the least sum has reached, that other sums reach, and that no sum
	// reaches.
	reached, top := code(x0), code(x1)
	if reached >= k0 {
		from = middle(min(reached, k1)) - x0*scale + 1
	}
	if first, last := max(k0, reached+1), min(k1, top); first <= last {
		// The middles less the product of the least sum of each quantised value with the scale.
		least, most := lineExtremes(last-first+1, 1<<(24+down), -scale, 1<<(31+down), product(first)+mul-1, mul)
		from, to = max(from, middle(first)+most+1), middle(first)+least+scale-1
	}
	if top < k1 {
		to = min(to, middle(max(k0, top+1))-x1*scale-1)
	}
	if from == math.MinInt64 {
		from = to - 1<<(23+down)
	}
	if to == math.MaxInt64 {
		to = from + 1<<(23+down)
	}
	return from, to
}

// lineExtremes returns the least and the largest of a·x + b·⌊(c·x+d)/m⌋ for x from 0 to n-1. c
// and d are not negative, m and n are positive.
//
// Consider x and y = ⌊(c·x+d)/m⌋ as coordinates of a plane. The extremes are at an end or, if a
// and b have different signs, just before or after an increase of y. Over these points, it is the
// same problem with x and y exchanged. Euclid's algorithm makes it smaller step by step.
func lineExtremes(n, a, b, c, d, m int64) (least, most int64) {
	least, most = math.MaxInt64, math.MinInt64
	low, high := int64(0), int64(0) // sums of the terms removed so far
	for {
		a, c = a+b*(c/m), c%m
		low, high, d = low+b*(d/m), high+b*(d/m), d%m
		y := (c*(n-1) + d) / m
		end := a*(n-1) + b*y
		least, most = min(least, low, low+end), max(most, high, high+end)
		switch {
		case y == 0 || a >= 0 && b >= 0 || a <= 0 && b <= 0:
			return least, most
		case a < 0:
			high += a + b
		default:
			low += a + b
		}
		n, a, b, c, d, m = y, b, a, m, m-d-1, c
	}
}

// findPosition finds an integer at most span from first whose product with scale, plus a multiple
// of 2^q, is between from and to. It approaches in decreasing steps, those of Euclid's algorithm.
func findPosition(scale int64, q int, from, to, first, span int64) (at, whole int64, ok bool) {
	middle, half := from+(to-from)/2, (to-from)/2
	one := int64(1) << q
	at = first
	away := (middle - at*scale) & (one - 1)
	if away > one/2 {
		away -= one
	}
	steps, less := [2]int64{0, 1}, [2]int64{one, scale}
	for max(away, -away) > half {
		if less[1] == 0 {
			return 0, 0, false
		}
		n := nearestQuotient(away, less[1])
		at, away = at+n*steps[1], away-n*less[1]
		if max(at-first, first-at) > span {
			return 0, 0, false
		}
		n = nearestQuotient(less[0], less[1])
		steps = [2]int64{steps[1], steps[0] - n*steps[1]}
		less = [2]int64{less[1], less[0] - n*less[1]}
	}
	return at, (middle - away - at*scale) >> q, true
}

// nearestQuotient returns a/b, rounded to the nearest.
func nearestQuotient(a, b int64) int64 {
	if b < 0 {
		a, b = -a, -b
	}
	if a < 0 {
		return -((2*-a + b) / (2 * b))
	}
	return (2*a + b) / (2 * b)
}
