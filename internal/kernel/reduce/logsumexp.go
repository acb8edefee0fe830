package reduce

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// ScaledSum represents s·e^m, so that sums of exponentials neither overflow nor underflow.
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
	default: // x is NaN, or an earlier value was
		a.m, a.s = math.NaN(), math.NaN()
	}
	return a
}

// rescaled returns acc scaled to top, the maximum exponent of acc and src. If the result is not
// finite, it adds the elements of src one by one instead and sets done.
func rescaled[T tensor.Number](acc ScaledSum, src []T, top float64) (_ ScaledSum, done bool) {
	if math.IsInf(top, 0) || top != top {
		for _, x := range src {
			acc = acc.add(float64(x))
		}
		return acc, true
	}
	if acc.s != 0 {
		acc.s *= math.Exp(acc.m - top)
	}
	acc.m = top
	return acc, false
}

// LogSumExp computes the logarithm of the sum of exponentials.
func LogSumExp[T tensor.Number]() Reducer[T, ScaledSum] {
	r := Reducer[T, ScaledSum]{
		Start: ScaledSum{m: math.Inf(-1)},
		Row: func(acc ScaledSum, src []T) ScaledSum {
			top := acc.m
			for _, x := range src {
				top = max(top, float64(x))
			}
			acc, done := rescaled(acc, src, top)
			if done {
				return acc
			}
			for _, x := range src {
				acc.s += math.Exp(float64(x) - top)
			}
			return acc
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
	if simd.CurveKernels() != nil && simd.ElementKernels() != nil {
		if row, ok := any(scaledRow).(func(acc ScaledSum, src []T) ScaledSum); ok {
			r.Row = row
			r.Lines, _ = any(scaledLines).(func(acc []ScaledSum, src []T, step, n int))
			r.Rows, _ = any(scaledRows).(func(acc []ScaledSum, src []T, n int))
		}
	}
	return r
}

// expScratch is scratch memory for rows and columns of exponentials.
type expScratch struct {
	top, part [element.Block]float32
	turned    [rowTile * shortRow]float32
}

var expPool = sync.Pool{New: func() any { return new(expScratch) }}

// scaledRow adds exponentials relative to the maximum exponent with SIMD kernels, one block at a
// time.
func scaledRow(acc ScaledSum, src []float32) ScaledSum {
	inf := float32(math.Inf(1))
	_, most := simd.ElementKernels().Extent(src, inf, -inf)
	top := max(acc.m, float64(most))
	acc, done := rescaled(acc, src, top)
	if done {
		return acc
	}
	if float64(most) < top-100 { // they underflow to zero
		return acc
	}
	workspace, scale := expPool.Get().(*expScratch), math.Exp(float64(most)-top)
	c, sum := simd.CurveKernels(), 0.0
	for at := 0; at < len(src); at += element.Block {
		x := src[at:min(at+element.Block, len(src))]
		sum += c.ExpSum(workspace.part[:len(x)], x, most)
	}
	expPool.Put(workspace)
	acc.s += sum * scale
	return acc
}

// scaledRows is scaledRow for each of up to rowTile rows of n elements; it transposes short rows
// to vectorise over rows.
func scaledRows(acc []ScaledSum, src []float32, n int) {
	start := ScaledSum{m: math.Inf(-1)}
	if n == 0 || n >= shortRow {
		for i := range acc {
			acc[i] = scaledRow(start, src[i*n:][:n])
		}
		return
	}
	workspace := expPool.Get().(*expScratch)
	turned, rows := workspace.turned[:len(acc)*n], len(acc)
	for i := range acc {
		for k, x := range src[i*n:][:n] {
			turned[k*rows+i] = x
		}
	}
	scaledLines(acc, turned, rows, n)
	expPool.Put(workspace)
}

// scaledLines is scaledRow for each column of n lines.
func scaledLines(acc []ScaledSum, src []float32, step, n int) {
	e, c := simd.ElementKernels(), simd.CurveKernels()
	workspace := expPool.Get().(*expScratch)
	defer expPool.Put(workspace)
	inf := float32(math.Inf(1))
	for ; len(acc) > 0; acc, src = acc[min(element.Block, len(acc)):], src[min(element.Block, len(src)):] {
		sums := acc[:min(element.Block, len(acc))]
		top, part := workspace.top[:len(sums)], workspace.part[:len(sums)]
		copy(top, src)
		line := func(l int) []float32 { return src[l*step:][:len(sums)] }
		for l := 1; l < n; l++ {
			done := e.Max(top, top, line(l))
			element.MaxTo(top[done:], top[done:], line(l)[done:])
		}
		least, most := e.Extent(top, inf, -inf)
		if !(least > -inf && most < inf) {
			for i := range sums {
				sums[i] = ScaledSum{m: math.Inf(-1)}
			}
			for l := range n {
				for i, x := range line(l) {
					sums[i] = sums[i].add(float64(x))
				}
			}
			continue
		}
		for i, t := range top {
			sums[i] = ScaledSum{m: float64(t)}
		}
		for l := range n {
			e.Sub(part, line(l), top)
			c.ExpSum(part, part, 0)
			for i, v := range part {
				sums[i].s += float64(v)
			}
		}
	}
}
