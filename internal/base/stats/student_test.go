package stats

import (
	"math"
	"slices"
	"testing"
)

// TestStudent compares with closed forms for one and two degrees of freedom, and with tables.
func TestStudentP(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{0, 0.01, 0.5, 1, 1.7, 3, 12, 400} {
		for _, c := range []struct{ freedom, want float64 }{
			{1, 1 - 2/math.Pi*math.Atan(x)},
			{2, 1 - x/math.Sqrt(2+x*x)},
			{math.Inf(1), math.Erfc(x / math.Sqrt2)},
		} {
			if got := StudentP(x, c.freedom); math.Abs(got-c.want) > 1e-11 {
				t.Errorf("t %v, %v degrees: %v, want %v", x, c.freedom, got, c.want)
			}
		}
	}
	// Tables with as many digits.
	for _, c := range []struct{ p, freedom, want float64 }{
		{0.05, 1, 12.7062}, {0.05, 4, 2.7764}, {0.05, 10, 2.2281}, {0.01, 5, 4.0321}, {0.05, 120, 1.9799}, {0.05, math.Inf(1), 1.9600},
	} {
		if got := StudentQuantile(c.p, c.freedom); math.Abs(got-c.want) > 5e-4 {
			t.Errorf("%v, %v degrees: %v, want %v", c.p, c.freedom, got, c.want)
		}
	}
	for _, bad := range [][2]float64{{math.NaN(), 3}, {1, 0}, {1, math.NaN()}} {
		if got := StudentP(bad[0], bad[1]); !math.IsNaN(got) {
			t.Errorf("%v: %v, want NaN", bad, got)
		}
	}
}

func TestDiscoveries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ps   []float64
		want []bool
	}{
		{nil, []bool{}},
		{[]float64{0.04}, []bool{true}},
		{[]float64{0.04, 0.9}, []bool{false, false}},
		// The example of the paper's section 3.2: the four smallest of fifteen.
		{
			[]float64{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000},
			append(slices.Repeat([]bool{true}, 4), make([]bool, 11)...),
		},
		// The second is above its own limit; the third takes it along.
		{[]float64{0.01, 0.04, 0.04}, []bool{true, true, true}},
		{[]float64{math.NaN(), 0.05}, []bool{false, true}},
	} {
		if got := Discoveries(c.ps, 0.05); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.ps, got, c.want)
		}
	}
}
