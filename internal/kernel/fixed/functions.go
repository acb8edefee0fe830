package fixed

import "math/bits"

// The functions below work on Qk.(31-k) numbers: int32 with k integer bits. A
// product of Qj and Qk by DoublingHighMul is Q(j+k).

// expNearZero computes exp(a) for a in [-1/4, 0), both Q0.31: a Taylor polynomial around -1/8.
func expNearZero(a int32) int32 {
	const (
		expEighth = 1895147668 // exp(-1/8)
		third     = 715827883
	)
	x := a + 1<<28
	x2 := DoublingHighMul(x, x)
	x3 := DoublingHighMul(x2, x)
	x4 := DoublingHighMul(x2, x2)
	rest := RoundShift(DoublingHighMul(RoundShift(x4, 2)+x3, third)+x2, 1)
	return expEighth + DoublingHighMul(expEighth, x+rest)
}

// expPowers are exp(-2^i) in Q0.31 for i from -2.
var expPowers = [...]int32{1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242}

// Exp returns exp(a) in Q0.31 for a ≤ 0 with k integer bits, k at most 5.
func Exp(a int32, k int) int32 {
	if a == 0 {
		return 1<<31 - 1
	}
	fraction := 31 - k
	quarter := int32(1) << uint(fraction-2)
	r := a&(quarter-1) - quarter
	y := expNearZero(ShiftLeft(r, k))
	rest := r - a
	for i, c := range expPowers {
		power := i - 2
		if k > power && rest&(1<<uint(fraction+power)) != 0 {
			y = DoublingHighMul(y, c)
		}
	}
	return y
}

// newton returns 2/(1+x) in Q2.29, for x in [0, 1) as Q0.31: three Newton steps from a linear
// guess.
func newton(x int32) int32 {
	const (
		c48over17 = 1515870810
		c32over17 = -1010580540
		one       = 1 << 29
	)
	half := int32((int64(x) + 1<<31 - 1 + 1) / 2) // (1+x)/2 rounded
	t := c48over17 + DoublingHighMul(half, c32over17)
	for range 3 {
		t += ShiftLeft(DoublingHighMul(t, one-DoublingHighMul(half, t)), 2)
	}
	return t
}

// OneOverOnePlus returns 1/(1+x) in Q0.31 for x in [0, 1) as Q0.31.
func OneOverOnePlus(x int32) int32 { return ShiftLeft(newton(x), 1) }

// oneMinusOverOnePlus returns (1-x)/(1+x) in Q0.31 for x in [0, 1) as Q0.31.
func oneMinusOverOnePlus(x int32) int32 { return ShiftLeft(newton(x)-1<<29, 2) }

// Logistic returns 1/(1+exp(-a)) in Q0.31 for a with k integer bits.
func Logistic(a int32, k int) int32 {
	switch {
	case a == 0:
		return 1 << 30
	case a > 0:
		return OneOverOnePlus(Exp(-a, k))
	}
	return 1<<31 - 1 - OneOverOnePlus(Exp(a, k))
}

// Tanh returns the hyperbolic tangent in Q0.31 for a with k integer bits, k at most 4.
func Tanh(a int32, k int) int32 {
	switch {
	case a == 0:
		return 0
	case a > 0:
		// Doubling moves the point: the same bits read with one integer bit more.
		return oneMinusOverOnePlus(Exp(-a, k+1))
	}
	return -oneMinusOverOnePlus(Exp(a, k+1))
}

// Reciprocal returns r in Q0.31 and e such that 1/x = r·2^-e up to rounding, for
// x > 0 with k integer bits.
func Reciprocal(x int32, k int) (r int32, e int) {
	zeros := bits.LeadingZeros32(uint32(x))
	plusOne := uint32(x) << uint(zeros)
	return OneOverOnePlus(int32(plusOne - 1<<31)), k - zeros
}

// InvSqrt returns 1/sqrt(x) as a multiplier, for x ≥ 1: five Newton steps on Q3.28.
func InvSqrt(x int32) Multiplier {
	if x <= 1 {
		return Multiplier{M: 1<<31 - 1}
	}
	shift := 11
	for x >= 1<<29 {
		x /= 4
		shift++
	}
	pairs := (bits.LeadingZeros32(uint32(x))-1)/2 - 1
	shift -= pairs
	x <<= uint(2 * pairs)
	const (
		halfThree = 1<<28 + 1<<27
		halfRoot2 = 1518500250 // sqrt(1/2) in Q0.31
	)
	in := x >> 1
	half := RoundShift(in, 1)
	y := int32(1 << 28)
	for range 5 {
		cube := ShiftLeft(DoublingHighMul(DoublingHighMul(y, y), y), 6)
		y = ShiftLeft(DoublingHighMul(halfThree, y)-DoublingHighMul(half, cube), 3)
	}
	y = DoublingHighMul(y, halfRoot2)
	if shift < 0 {
		y <<= uint(-shift)
		shift = 0
	}
	return Multiplier{M: y, Shift: -shift}
}
