package reduce

import (
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Cumulative returns a function that writes running sums, or products, along the middle one of
// three dimensions: of the elements up to each position, without its own if exclusive, from the
// end if reverse.
func Cumulative[T tensor.Number](product, exclusive, reverse bool) func(dst, src []T, outer, n, inner int) {
	step, first := element.Add[T]().Vec, T(0)
	if product {
		step, first = element.Mul[T]().Vec, 1
	}
	return func(dst, src []T, outer, n, inner int) {
		if inner == 1 {
			for o := range outer {
				runningSum(dst[o*n:][:n], src[o*n:][:n], product, exclusive, reverse)
			}
			return
		}
		for o := range outer {
			base := o * n * inner
			row := func(v []T, r int) []T {
				if reverse {
					r = n - 1 - r
				}
				return v[base+r*inner:][:inner]
			}
			for r := range n {
				switch {
				case r == 0 && exclusive:
					element.Fill(row(dst, r), first)
				case r == 0:
					copy(row(dst, r), row(src, r))
				case exclusive:
					step(row(dst, r), row(dst, r-1), row(src, r-1))
				default:
					step(row(dst, r), row(dst, r-1), row(src, r))
				}
			}
		}
	}
}

// runningSum is [Cumulative] of one line.
func runningSum[T tensor.Number](dst, src []T, product, exclusive, reverse bool) {
	if len(src) == 0 {
		return
	}
	at, by := 0, 1
	if reverse {
		at, by = len(src)-1, -1
	}
	acc, next := src[at], T(0) // next is the term that an exclusive sum adds in its next step
	if product {
		next = 1
	}
	if exclusive {
		acc, next = next, acc
	}
	dst[at] = acc
	for range len(src) - 1 {
		at += by
		x := src[at]
		if exclusive {
			x, next = next, x
		}
		if product {
			acc *= x
		} else {
			acc += x
		}
		dst[at] = acc
	}
}
