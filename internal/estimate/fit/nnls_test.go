package fit

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestLeastSquares checks the conditions of an optimum: no gradient where the
// solution is positive, none that points inside where it is zero.
func TestLeastSquares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, rows := rapid.IntRange(1, 6).Draw(t, "n"), rapid.IntRange(1, 12).Draw(t, "rows")
		a, w := make([][]float64, rows), make([]float64, rows)
		for i := range a {
			a[i] = make([]float64, n)
			for k := range a[i] {
				a[i][k] = rapid.Float64Range(0, 2).Draw(t, "a")
			}
			w[i] = rapid.Float64Range(0.1, 2).Draw(t, "w")
		}
		lambda := rapid.Float64Range(0.1, 2).Draw(t, "lambda")
		x := leastSquares(a, w, lambda, 1)
		for k := range x {
			g := lambda * (x[k] - 1)
			for i := range a {
				g += w[i] * a[i][k] * (Dot(a[i], x) - 1)
			}
			if x[k] < 0 || x[k] > 0 && math.Abs(g) > 1e-6 || x[k] == 0 && g < -1e-6 {
				t.Fatalf("x[%d] = %v with gradient %v", k, x[k], g)
			}
		}
	})
}

func TestWeightedMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		v, w []float64
		want float64
	}{
		{"odd", []float64{3, 1, 2}, []float64{1, 1, 1}, 2},
		{"even", []float64{1, 4}, []float64{1, 1}, 2},
		{"heavy", []float64{1, 2, 9}, []float64{1, 1, 5}, 9},
		{"one", []float64{7}, []float64{0.5}, 7},
	} {
		if got := weightedMedian(c.v, c.w); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDigits(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 1.23456: "1.235", 12345.6: "12350", 1.5784e-10: "1.578e-10", 0.00012346: "0.0001235", 3e8: "3e+08"} {
		if got := Digits(v); got != want {
			t.Errorf("Digits(%v) = %s, want %s", v, got, want)
		}
	}
}
