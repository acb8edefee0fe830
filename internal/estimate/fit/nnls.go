package fit

import (
	"math"
	"slices"
)

// leastSquares minimises
//
//	sum_i w_i (a_i . x - 1)^2 + lambda sum_k (x_k - prior)^2   subject to x >= 0
//
// by coordinate descent, which converges because the penalty makes the problem
// strictly convex. Entries of a row are predictions relative to what was measured.
func leastSquares(a [][]float64, w []float64, lambda, prior float64) []float64 {
	if len(a) == 0 {
		return nil
	}
	n := len(a[0])
	q := make([][]float64, n) // quadratic part
	b := make([]float64, n)
	for k := range q {
		q[k] = make([]float64, n)
		q[k][k] = lambda
		b[k] = lambda * prior
	}
	var used []int // columns that any row has; the others stay at the prior
	for k := range n {
		if slices.ContainsFunc(a, func(row []float64) bool { return row[k] != 0 }) {
			used = append(used, k)
		}
	}
	for i, row := range a {
		for _, k := range used {
			v := row[k]
			if v == 0 {
				continue
			}
			b[k] += w[i] * v
			for _, l := range used {
				q[k][l] += w[i] * v * row[l]
			}
		}
	}
	x := make([]float64, n)
	for k := range x {
		x[k] = prior
	}
	for range 2000 {
		moved := 0.0
		for _, k := range used {
			g := b[k]
			for _, l := range used {
				if l != k {
					g -= q[k][l] * x[l]
				}
			}
			next := max(0, g/q[k][k])
			moved = max(moved, math.Abs(next-x[k]))
			x[k] = next
		}
		if moved < 1e-10 {
			break
		}
	}
	return x
}
