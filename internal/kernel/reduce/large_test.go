package reduce

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
)

// TestLarge reduces more than one thread's share and more than one tile of columns. It uses
// integers, so that every order gives the same sum.
func TestLarge(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for _, c := range []struct {
			shape []int
			mask  []bool
		}{
			{[]int{2*rowPart + 1}, []bool{true}},
			{[]int{2 * rowPart}, []bool{true}},
			{[]int{3*rowPart + 17}, []bool{true}},
			{[]int{2, rowPart, 3}, []bool{true, true, true}},
			{[]int{5, 2*colTile + 3}, []bool{true, false}},
			{[]int{3, colTile, 7}, []bool{false, true, false}},
			{[]int{40, 3, colTile + 1}, []bool{false, true, false}},
			{[]int{300, 200}, []bool{false, true}},
			{[]int{30, 20, 100}, []bool{true, false, true}},
			{[]int{7, 331, 9}, []bool{false, true, false}},
			{[]int{501, 5}, []bool{true, false}},
			{[]int{3, 2, 63}, []bool{false, true, false}},
		} {
			n := 1
			for _, d := range c.shape {
				n *= d
			}
			in := make([]float64, n)
			for i := range in {
				in[i] = float64(i*37%101 - 50)
			}
			keep := func(a float64, _ int) float64 { return a }
			count := func(a float64, n int) float64 { return a + 1e6*float64(n) }
			elements := float64(n)
			for i, d := range c.shape {
				if !c.mask[i] {
					elements /= float64(d)
				}
			}
			for _, r := range []struct {
				name  string
				r     Reducer[float64, float64]
				start float64
				f     func(a, x float64) float64
				more  float64
			}{
				{"sum", Sum(keep), 0, func(a, x float64) float64 { return a + x }, 0},
				{"count", Sum(count), 0, func(a, x float64) float64 { return a + x }, 1e6 * elements},
				{"squares", SumSquares(keep), 0, func(a, x float64) float64 { return a + x*x }, 0},
				{"magnitudes", SumAbs(keep), 0, func(a, x float64) float64 { return a + math.Abs(x) }, 0},
				{"max", Max(math.Inf(-1)), math.Inf(-1), math.Max, 0},
				{"min", Min(math.Inf(1)), math.Inf(1), math.Min, 0},
			} {
				want := naive(c.shape, c.mask, in, r.start, r.f)
				got := make([]float64, len(want))
				run := NewRun(pool, NewPlan(c.shape, c.mask), r.r)
				for range 2 {
					run.Do(pool, got, in)
					for i, w := range want {
						if got[i] != w+r.more {
							t.Fatalf("%d threads, %s of %v along %v: element %d is %v, want %v", threads, r.name, c.shape, c.mask, i, got[i], w+r.more)
						}
					}
				}
			}
			// Signs, so that a missing or repeated factor is detected.
			signs := make([]float64, n)
			for i := range signs {
				if signs[i] = 1; i*37%101 < 50 {
					signs[i] = -1
				}
			}
			want := naive(c.shape, c.mask, signs, 1, func(a, x float64) float64 { return a * x })
			got := make([]float64, len(want))
			NewRun(pool, NewPlan(c.shape, c.mask), Product(keep)).Do(pool, got, signs)
			for i, w := range want {
				if got[i] != w {
					t.Fatalf("product of %v along %v: element %d is %v, want %v", c.shape, c.mask, i, got[i], w)
				}
			}
		}
	}
}

// TestExtremes checks that NaN takes precedence at any position.
func TestExtremes(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		acc            float64
		src            []float64
		most, smallest float64
	}{
		{0, nil, 0, 0},
		{0, []float64{1}, 1, 0},
		{0, []float64{-1, 2}, 2, -1},
		{0, []float64{2, -1}, 2, -1},
		{0, []float64{-3, -2, 5}, 5, -3},
		{0, []float64{5, -2, -3}, 5, -3},
		{9, []float64{1, 2, 3}, 9, 1},
		{nan, []float64{1, 2, 3}, nan, nan},
		{0, []float64{nan, 2, 3}, nan, nan},
		{0, []float64{1, nan, 3}, nan, nan},
		{0, []float64{1, 2, nan}, nan, nan},
		{0, []float64{1, 2, nan, 4}, nan, nan},
		{0, []float64{nan, inf, -inf, 0, 0}, nan, nan},
		{-inf, []float64{-inf, -inf}, -inf, -inf},
		{inf, []float64{inf}, inf, inf},
	} {
		if got := MaxRow(c.acc, c.src); got != c.most && (got == got || c.most == c.most) {
			t.Errorf("the most of %v and %v is %v, want %v", c.acc, c.src, got, c.most)
		}
		if got := MinRow(c.acc, c.src); got != c.smallest && (got == got || c.smallest == c.smallest) {
			t.Errorf("the least of %v and %v is %v, want %v", c.acc, c.src, got, c.smallest)
		}
	}
	pool := workers.New(2, nil)
	defer pool.Close()
	in := make([]float64, 3*rowPart)
	for _, at := range []int{0, rowPart, 3*rowPart - 1} {
		in[at] = nan
		for name, r := range map[string]Reducer[float64, float64]{"max": Max(-inf), "min": Min(inf)} {
			out := []float64{0}
			if NewRun(pool, NewPlan([]int{len(in)}, []bool{true}), r).Do(pool, out, in); out[0] == out[0] {
				t.Errorf("%s of zeros and a NaN at %d is %v", name, at, out[0])
			}
		}
		in[at] = 0
	}
}

// TestLogSumExp covers sums of exponentials that overflow a float, in rows, in columns and in
// parts.
func TestLogSumExp(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	pool := workers.New(2, nil)
	defer pool.Close()
	long := make([]float64, 2*rowPart+100)
	for i := range long {
		long[i] = 1000
	}
	rising := make([]float64, 2*rowPart+100)
	for i := range rising {
		rising[i] = float64(i) // only the last ones contribute
	}
	low := make([]float64, 2*rowPart+100)
	for i := range low {
		low[i] = -inf
	}
	last := float64(len(rising) - 1)
	for name, c := range map[string]struct {
		in   []float64
		want float64
	}{
		"nothing":         {nil, -inf},
		"one":             {[]float64{-3}, -3},
		"two":             {[]float64{1, 1}, 1 + math.Ln2},
		"plain":           {[]float64{math.Log(1), math.Log(2), math.Log(5)}, math.Log(8)},
		"falling":         {[]float64{math.Log(5), math.Log(2), math.Log(1)}, math.Log(8)},
		"large":           {[]float64{1000, 1000 + math.Log(3)}, 1000 + math.Log(4)},
		"small":           {[]float64{-1000, -1000 + math.Log(3)}, -1000 + math.Log(4)},
		"far apart":       {[]float64{0, 1e6}, 1e6},
		"minus infinity":  {[]float64{-inf, -inf}, -inf},
		"one is infinity": {[]float64{3, inf, 2}, inf},
		"two infinities":  {[]float64{inf, inf}, inf},
		"one is nothing":  {[]float64{-inf, 2}, 2},
		"NaN":             {[]float64{1, nan, 2}, nan},
		"NaN first":       {[]float64{nan, 1}, nan},
		"in parts":        {long, 1000 + math.Log(float64(len(long)))},
		"rising":          {rising, last + math.Log(1/(1-math.Exp(-1)))},
		"nothing in all":  {low, -inf},
	} {
		n := len(c.in)
		got := []float64{9}
		NewRun(pool, NewPlan([]int{n}, []bool{true}), LogSumExp[float64]()).Do(pool, got, c.in)
		check := func(how string, got float64) {
			t.Helper()
			if got != c.want && !(math.Abs(got-c.want) <= 1e-9*math.Abs(c.want)) && (got == got || c.want == c.want) {
				t.Errorf("%s, %s: %v, want %v", name, how, got, c.want)
			}
		}
		check("in a row", got[0])
		// Two columns of it, the second shifted if it is a number.
		both := make([]float64, 2*n)
		for i, v := range c.in {
			both[2*i], both[2*i+1] = v, v
		}
		two := []float64{9, 9}
		NewRun(pool, NewPlan([]int{n, 2}, []bool{true, false}), LogSumExp[float64]()).Do(pool, two, both)
		check("in columns", two[0])
		check("in the other column", two[1])
		// Rows of several axes: the outer and the inner one are reduced.
		if n > 1 && n%2 == 0 {
			apart := make([]float64, 3*n)
			for i, v := range c.in {
				for k := range 3 {
					apart[(i/(n/2)*3+k)*(n/2)+i%(n/2)] = v
				}
			}
			three := make([]float64, 3)
			NewRun(pool, NewPlan([]int{2, 3, n / 2}, []bool{true, false, true}), LogSumExp[float64]()).Do(pool, three, apart)
			for k, v := range three {
				check(fmt.Sprint("in rows of two, ", k), v)
			}
		}
	}
}

// TestPairs compares sums of two elements in float32 with those in float64, bit for bit.
func TestPairs(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(1, 2))
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-45, math.MaxFloat32, -math.MaxFloat32}
	for _, shape := range [][]int{{1, 2, 3}, {2, 5000}, {3, 2, 1500}, {7, 2, 5}} {
		n := 1
		for _, d := range shape {
			n *= d
		}
		in := make([]float32, n)
		for i := range in {
			if in[i] = float32(math.Ldexp(r.Float64()-0.5, r.IntN(80)-40)); r.IntN(6) == 0 {
				in[i] = special[r.IntN(len(special))]
			}
		}
		mask := make([]bool, len(shape))
		mask[len(shape)-2] = true
		plan := NewPlan(shape, mask)
		if columns, count := plan.Columns(); !columns || count != 2 {
			t.Fatalf("%v is a plan of %d elements a result, columns %t", shape, count, columns)
		}
		got, want := make([]float32, n/2), make([]float32, n/2)
		NewRun(pool, plan, SumPairs[float32]()).Do(pool, got, in)
		NewRun(pool, plan, Sum[float32](func(a float64, _ int) float32 { return float32(a) })).Do(pool, want, in)
		for i, w := range want {
			if g := got[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				t.Fatalf("%v: sum %d is %v, want %v", shape, i, g, w)
			}
		}
	}
}
