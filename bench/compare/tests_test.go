package main

import (
	"math"
	"testing"
)

// TestMannWhitney compares with counts of the orders of a few values.
func TestMannWhitney(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 2.0 / 20},
		{[]float64{4, 5, 6}, []float64{1, 2, 3}, 2.0 / 20},
		{[]float64{1, 2, 4}, []float64{3, 5, 6}, 4.0 / 20},
		{[]float64{1, 4}, []float64{2, 3}, 1},
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 2.0 / 252},
	} {
		if got := mannWhitney(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v, %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
	if got := mannWhitney([]float64{1, 1, 1}, []float64{1, 1, 1}); got != 1 {
		t.Errorf("equal values: %v", got)
	}
}

// TestWelch is the usual t-test where variances and sizes are equal.
func TestWelch(t *testing.T) {
	t.Parallel()
	// Means 2 and 4, variances 1: t = -2/sqrt(2/3), four degrees of freedom, for which the
	// distribution has a closed form.
	x := 2 / math.Sqrt(2.0/3)
	u := x / math.Sqrt(4+x*x)
	want := 1 - 1.5*u*(1-u*u/3)
	if got := welch([]float64{1, 2, 3}, []float64{3, 4, 5}); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}
