package reduce

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
)

// naive reduces the elements of each result one after the other.
func naive[T float64 | int32](shape []int, mask []bool, in []T, start T, f func(a, x T) T) []T {
	n, stride := 1, make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		if !mask[d] {
			stride[d] = n
			n *= shape[d]
		}
	}
	out := make([]T, n)
	for i := range out {
		out[i] = start
	}
	for i, x := range in {
		at := 0
		for d, rest := len(shape)-1, i; d >= 0; d-- {
			at += rest % shape[d] * stride[d]
			rest /= shape[d]
		}
		out[at] = f(out[at], x)
	}
	return out
}

// TestReduce compares reductions of random shapes and axes with the plain ones.
func TestReduce(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 5).Draw(t, "shape")
		mask := rapid.SliceOfN(rapid.Bool(), len(shape), len(shape)).Draw(t, "mask")
		n := 1
		for _, d := range shape {
			n *= d
		}
		in := make([]float64, n)
		for i := range in {
			in[i] = float64(i%7) - 2.5
		}
		plus := func(a, x float64) float64 { return a + x }
		keep := func(a float64, _ int) float64 { return a }
		for _, test := range []struct {
			name  string
			r     Reducer[float64, float64]
			start float64
			f     func(a, x float64) float64
		}{
			{"sum", Sum(keep), 0, plus},
			{"ordered", OrderedSum(keep), 0, plus},
			{"product", Product(keep), 1, func(a, x float64) float64 { return a * x }},
			{"max", Max(math.Inf(-1)), math.Inf(-1), math.Max},
			{"min", Min(math.Inf(1)), math.Inf(1), math.Min},
			{"squares", SumSquares(keep), 0, func(a, x float64) float64 { return a + x*x }},
			{"magnitudes", SumAbs(keep), 0, func(a, x float64) float64 { return a + math.Abs(x) }},
		} {
			want := naive(shape, mask, in, test.start, test.f)
			got := make([]float64, len(want))
			NewRun(pool, NewPlan(shape, mask), test.r).Do(pool, got, in)
			for i, w := range want {
				if got[i] != w && math.Abs(got[i]-w) > 1e-9*math.Abs(w) {
					t.Fatalf("%s of %v along %v: %v, want %v", test.name, shape, mask, got, want)
				}
			}
		}
	})
}

// TestOrder checks the exact rounding of an ordered sum, also of long rows, which other sums
// split.
func TestOrder(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	in := make([]float32, 3*rowPart)
	var want float32
	for i := range in {
		in[i] = 1 / float32(i%1000+1)
		want += in[i]
	}
	out := make([]float32, 1)
	NewRun(pool, NewPlan([]int{len(in)}, []bool{true}), OrderedSum(func(a float32, _ int) float32 { return a })).Do(pool, out, in)
	if out[0] != want {
		t.Errorf("sum is %v, want %v", out[0], want)
	}
	// Adjacent rows, some of which are summed together.
	for _, n := range []int{1, 7, 100} {
		rows := 203
		sums := make([]float32, rows)
		NewRun(pool, NewPlan([]int{rows, n}, []bool{false, true}), OrderedSum(func(a float32, _ int) float32 { return a })).Do(pool, sums, in)
		for r, got := range sums {
			var want float32
			for _, v := range in[r*n:][:n] {
				want += v
			}
			if got != want {
				t.Errorf("row %d of %d: sum is %v, want %v", r, n, got, want)
			}
		}
	}
}

// TestOrderOfGroups checks the same for groups of channels, whose sums are computed together.
func TestOrderOfGroups(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	for _, groups := range []int{1, 3, 8, 70} {
		const images, positions, n = 2, 50, 3
		in := make([]float32, images*positions*groups*n)
		for i := range in {
			in[i] = 1 / float32(i%977+1)
		}
		sums := make([]float32, images*groups)
		plan := NewPlan([]int{images, positions, groups, n}, []bool{false, true, false, true})
		NewRun(pool, plan, OrderedSum(func(a float32, _ int) float32 { return a })).Do(pool, sums, in)
		for i, got := range sums {
			var want float32
			for p := range positions {
				for _, v := range in[((i/groups*positions+p)*groups+i%groups)*n:][:n] {
					want += v
				}
			}
			if got != want {
				t.Errorf("group %d of %d: sum is %v, want %v", i, groups, got, want)
			}
		}
	}
}

func TestCumulative(t *testing.T) {
	t.Parallel()
	src := []int32{1, 2, 3, 4, 5, 6}
	for _, test := range []struct {
		product, exclusive, reverse bool
		want                        [6]int32
	}{
		{false, false, false, [6]int32{1, 2, 4, 6, 9, 12}},
		{false, true, false, [6]int32{0, 0, 1, 2, 4, 6}},
		{false, false, true, [6]int32{9, 12, 8, 10, 5, 6}},
		{true, true, true, [6]int32{15, 24, 5, 6, 1, 1}},
	} {
		var dst [6]int32
		Cumulative[int32](test.product, test.exclusive, test.reverse)(dst[:], src, 1, 3, 2)
		if dst != test.want {
			t.Errorf("%+v: %v", test, dst)
		}
	}
}
