package reduce

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestVectors compares float32 reductions with sequential float64 ones, on every instruction set.
// The values are small integers and halves, so that sums and squares are exact in any order;
// products are of powers of two.
func TestVectors(t *testing.T) {
	pool := workers.New(2, nil)
	defer pool.Close()
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			r := rand.New(rand.NewPCG(9, 4))
			for range 400 {
				shape, mask, n := make([]int, 1+r.IntN(4)), []bool{}, 1
				for i := range shape {
					shape[i] = 1 + r.IntN([]int{3, 12, 70}[r.IntN(3)])
					mask, n = append(mask, r.IntN(2) == 0), n*shape[i]
				}
				if n > 1<<17 {
					continue
				}
				in, wide, powers := make([]float32, n), make([]float64, n), make([]float32, n)
				for i := range in {
					in[i] = float32(r.IntN(41)-20) / 2
					wide[i], powers[i] = float64(in[i]), []float32{1, -1, 2, 0.5}[r.IntN(4)]
				}
				plan, keep := NewPlan(shape, mask), func(a float64, _ int) float32 { return float32(a) }
				check := func(what string, in []float32, run func(out []float32), start float64, f func(a, x float64) float64, tolerance float64) {
					for i, v := range in {
						wide[i] = float64(v)
					}
					want := naive(shape, mask, wide, start, f)
					got := make([]float32, len(want))
					run(got)
					for i, w := range want {
						if what == "logsumexp" {
							w = math.Log(w)
						}
						if math.Abs(float64(got[i])-w) > tolerance*(1+math.Abs(w)) {
							t.Fatalf("%s of %v along %v: element %d is %v, want %v", what, shape, mask, i, got[i], w)
						}
					}
				}
				check("sum", in, func(out []float32) { NewRun(pool, plan, Sum(keep)).Do(pool, out, in) }, 0, func(a, x float64) float64 { return a + x }, 0)
				check("squares", in, func(out []float32) { NewRun(pool, plan, SumSquares(keep)).Do(pool, out, in) }, 0, func(a, x float64) float64 { return a + x*x }, 1e-7)
				check("sizes", in, func(out []float32) { NewRun(pool, plan, SumAbs(keep)).Do(pool, out, in) }, 0, func(a, x float64) float64 { return a + math.Abs(x) }, 1e-7)
				check("max", in, func(out []float32) { NewRun(pool, plan, Max(float32(math.Inf(-1)))).Do(pool, out, in) }, math.Inf(-1), math.Max, 0)
				check("logsumexp", in, func(out []float32) { NewRun(pool, plan, LogSumExp[float32]()).Do(pool, out, in) }, 0, func(a, x float64) float64 { return a + math.Exp(x) }, 1e-6)
				if n < 100 {
					check("product", powers, func(out []float32) { NewRun(pool, plan, Product(keep)).Do(pool, out, powers) }, 1, func(a, x float64) float64 { return a * x }, 0)
				}
			}
		})
	}
}

// TestDoubleVectors is TestVectors for float64 and integers.
func TestDoubleVectors(t *testing.T) {
	pool := workers.New(2, nil)
	defer pool.Close()
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			r := rand.New(rand.NewPCG(9, 5))
			for range 400 {
				shape, mask, n := make([]int, 1+r.IntN(5)), []bool{}, 1
				for i := range shape {
					shape[i] = 1 + r.IntN([]int{3, 12, 70}[r.IntN(3)])
					mask, n = append(mask, r.IntN(2) == 0), n*shape[i]
				}
				if n > 1<<17 {
					continue
				}
				in, ints := make([]float64, n), make([]int32, n)
				for i := range in {
					in[i], ints[i] = float64(r.IntN(41)-20)/2, int32(r.Uint32())
				}
				plan, keep := NewPlan(shape, mask), func(a float64, _ int) float64 { return a }
				check := func(what string, x Reducer[float64, float64], f func(a, x float64) float64) {
					want := naive(shape, mask, in, x.Start, f)
					got := make([]float64, len(want))
					NewRun(pool, plan, x).Do(pool, got, in)
					for i, w := range want {
						if got[i] != w {
							t.Fatalf("%s of %v along %v: element %d is %v, want %v", what, shape, mask, i, got[i], w)
						}
					}
				}
				check("sum", Sum(keep), func(a, x float64) float64 { return a + x })
				check("squares", SumSquares(keep), func(a, x float64) float64 { return a + x*x })
				check("sizes", SumAbs(keep), func(a, x float64) float64 { return a + math.Abs(x) })
				check("max", Max(math.Inf(-1)), math.Max)
				check("min", Min(math.Inf(1)), math.Min)
				want := naive(shape, mask, ints, math.MinInt32, func(a, x int32) int32 { return max(a, x) })
				got := make([]int32, len(want))
				NewRun(pool, plan, Max[int32](math.MinInt32)).Do(pool, got, ints)
				for i, w := range want {
					if got[i] != w {
						t.Fatalf("max of %v along %v: element %d is %v, want %v", shape, mask, i, got[i], w)
					}
				}
			}
		})
	}
}

// TestRunning compares running sums and products along the last axis with those along a middle one.
func TestRunning(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 16 {
		product, exclusive, reverse := i&1 > 0, i&2 > 0, i&4 > 0
		n := 1 + r.IntN(20)
		src, twice := make([]float32, 3*n), make([]float32, 6*n)
		for k := range src {
			if src[k] = float32(r.IntN(5)) - 2; src[k] == 0 {
				src[k] = float32(math.Copysign(0, -1))
			}
			twice[2*k], twice[2*k+1] = src[k], src[k]
		}
		got, want := make([]float32, 3*n), make([]float32, 6*n)
		f := Cumulative[float32](product, exclusive, reverse)
		f(got, src, 3, n, 1)
		f(want, twice, 3, n, 2)
		for k, g := range got {
			if math.Float32bits(g) != math.Float32bits(want[2*k]) {
				t.Fatalf("product %t, exclusive %t, reverse %t: element %d is %v, want %v", product, exclusive, reverse, k, g, want[2*k])
			}
		}
	}
}

// TestNarrow reduces short rows of values that no order rounds, including NaN.
func TestNarrow(t *testing.T) {
	pool := workers.New(2, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(12, 13))
	sets.Every(t, func(t *testing.T, plain func(func())) {
		for range sets.Rounds(300) {
			n, rows, outer := 2+r.IntN(28), 1+r.IntN(700), 1+r.IntN(3)
			in, got, want := make([]float32, outer*n*rows), make([]float32, rows), make([]float32, rows)
			for i := range in {
				if in[i] = float32(r.IntN(41)-20) / 2; r.IntN(200) == 0 {
					in[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[r.IntN(3)]
				}
			}
			plan, keep := NewPlan([]int{outer, rows, n}, []bool{true, false, true}), func(a float64, _ int) float32 { return float32(a) }
			for what, of := range map[string]func() Reducer[float32, float64]{
				"sum": func() Reducer[float32, float64] { return Sum[float32](keep) }, "squares": func() Reducer[float32, float64] { return SumSquares[float32](keep) },
				"sizes": func() Reducer[float32, float64] { return SumAbs[float32](keep) },
			} {
				NewRun(pool, plan, of()).Do(pool, got, in)
				plain(func() { NewRun(pool, plan, of()).Do(pool, want, in) })
				sets.Agree(t, []any{what, outer, rows, n}, got, want)
			}
			for what, of := range map[string]func() Reducer[float32, float32]{
				"max": func() Reducer[float32, float32] { return Max(float32(math.Inf(-1))) }, "min": func() Reducer[float32, float32] { return Min(float32(math.Inf(1))) },
			} {
				NewRun(pool, plan, of()).Do(pool, got, in)
				plain(func() { NewRun(pool, plan, of()).Do(pool, want, in) })
				sets.Agree(t, []any{what, outer, rows, n}, got, want)
			}
		}
	})
}
