package reduce

import (
	"math"

	"github.com/opmeter/opmeter/internal/tensor"
)

// ScaledSum stands for s·e^m, so that sums of exponentials neither overflow nor
// vanish.
type ScaledSum struct{ m, s float64 }

func (a ScaledSum) add(x float64) ScaledSum {
	switch {
	case x <= a.m:
		if a.m == x { // also for two infinities, whose difference is NaN
			a.s++
		} else {
			a.s += math.Exp(x - a.m)
		}
	case x > a.m:
		if a.s != 0 {
			a.s *= math.Exp(a.m - x)
		}
		a.m, a.s = x, a.s+1
	default: // x is NaN, or one before it was
		a.m, a.s = math.NaN(), math.NaN()
	}
	return a
}

// LogSumExp is the logarithm of the sum of exponentials.
func LogSumExp[T tensor.Number]() Reducer[T, ScaledSum] {
	return Reducer[T, ScaledSum]{
		Start: ScaledSum{m: math.Inf(-1)},
		Row: func(acc ScaledSum, src []T) ScaledSum {
			top := acc.m
			for _, x := range src {
				top = max(top, float64(x))
			}
			if math.IsInf(top, 0) || top != top {
				for _, x := range src {
					acc = acc.add(float64(x))
				}
				return acc
			}
			s := acc.s
			if s != 0 {
				s *= math.Exp(acc.m - top)
			}
			for _, x := range src {
				s += math.Exp(float64(x) - top)
			}
			return ScaledSum{top, s}
		},
		Cols: func(acc []ScaledSum, src []T) {
			for i, x := range src[:len(acc)] {
				acc[i] = acc[i].add(float64(x))
			}
		},
		Merge: func(a, b ScaledSum) ScaledSum {
			if b.s == 0 {
				return a
			}
			if a.m < b.m {
				a, b = b, a
			}
			if a.m != b.m && b.s != 0 {
				b.s *= math.Exp(b.m - a.m)
			}
			return ScaledSum{a.m, a.s + b.s}
		},
		Done: func(a ScaledSum, _ int) T {
			if a.s == 0 {
				return T(math.Inf(-1))
			}
			return T(a.m + math.Log(a.s))
		},
	}
}
