package element

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestBinary compares every operation on rows, with a repeated operand on either side and with
// both repeated, with the operation on single elements.
func TestBinary(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	x := make([]float32, 3*700+1)
	for i := range x {
		x[i] = float32(i%13) - 6
	}
	x[5] = float32(math.NaN())
	for name, op := range map[string]struct {
		loops Loops[float32, float32]
		one   func(a, b float32) float32
	}{
		"add":        {Add[float32](), func(a, b float32) float32 { return a + b }},
		"sub":        {Sub[float32](), func(a, b float32) float32 { return a - b }},
		"mul":        {Mul[float32](), func(a, b float32) float32 { return a * b }},
		"div":        {Div[float32](), func(a, b float32) float32 { return a / b }},
		"max":        {Max[float32](), func(a, b float32) float32 { return max(a, b) }},
		"min":        {Min[float32](), func(a, b float32) float32 { return min(a, b) }},
		"difference": {SquaredDifference[float32](), func(a, b float32) float32 { return (a - b) * (a - b) }},
		"prelu": {PRelu[float32](), func(a, b float32) float32 {
			if a < 0 {
				return a * b
			}
			return a
		}},
		"clamped": {Clamped(Add[float32](), 0, 6), func(a, b float32) float32 { return min(max(a+b, 0), 6) }},
	} {
		for _, shapes := range [][2][]int{
			{{3, 700}, {3, 700}},
			{{3, 700}, {3, 1}},
			{{3, 1}, {3, 700}},
			{{3, 700}, {700}},
			{{1, 1}, {1, 1}},
			{{1}, {3, 700}},
			{{3, 1}, {1, 700}},
			{{50, 1}, {23}},
			{{23}, {50, 1}},
			{{50, 23}, {50, 1}},
			{{50, 5}, {50, 1}},
			{{50, 1}, {50, 5}},
			{{50, 5}, {5}},
			{{2, 5, 1, 70}, {5, 3, 1}},
			{{2, 1, 3, 1}, {5, 1, 65}},
			{{4, 3, 17}, {4, 1, 17}},
			{{4, 1, 80}, {4, 6, 80}},
			{{2, 1, 7, 16}, {2, 3, 1, 16}},
		} {
			out, err := tensor.Broadcast(shapes[0], shapes[1])
			if err != nil {
				t.Fatal(err)
			}
			walk, err := broadcast.New(out, shapes[0], shapes[1])
			if err != nil {
				t.Fatal(err)
			}
			y := make([]float32, walk.Len)
			NewBinary(pool, walk, op.loops).Run(pool, y, x, x[1:])
			for it := walk.Runs(0, walk.Len); it.Next(); {
				for i := range it.N {
					got, want := y[it.Dst+i], op.one(x[it.Off[0]+i*walk.Step[0]], x[1+it.Off[1]+i*walk.Step[1]])
					if got != want && (got == got || want == want) {
						t.Fatalf("%s of %v: element %d is %v, want %v", name, shapes, it.Dst+i, got, want)
					}
				}
			}
		}
	}
}

// TestShortRuns compares short rows of operands that repeat along any axes with single elements.
func TestShortRuns(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		out := []int{rapid.IntRange(1, 20).Draw(t, "outer"), rapid.IntRange(1, 90).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "row")}
		var shapes [2][]int
		var x [2][]float32
		for k := range shapes {
			shapes[k] = slices.Clone(out)
			n := 1
			for i := range shapes[k] {
				if rapid.IntRange(0, 2).Draw(t, "repeat") == 0 {
					shapes[k][i] = 1
				}
				n *= shapes[k][i]
			}
			x[k] = make([]float32, n)
			for i := range x[k] {
				x[k][i] = float32(i + 1 + 100000*k)
			}
		}
		walk, err := broadcast.New(out, shapes[0], shapes[1])
		if err != nil {
			t.Fatal(err)
		}
		y := make([]float32, walk.Len)
		NewBinary(pool, walk, Sub[float32]()).Run(pool, y, x[0], x[1])
		for it := walk.Runs(0, walk.Len); it.Next(); {
			for i := range it.N {
				if got, want := y[it.Dst+i], x[0][it.Off[0]+i*walk.Step[0]]-x[1][it.Off[1]+i*walk.Step[1]]; got != want {
					t.Fatalf("element %d is %v, want %v", it.Dst+i, got, want)
				}
			}
		}
	})
}

func TestIntegers(t *testing.T) {
	t.Parallel()
	a, b := []int8{7, -7, 7, -7, 5}, []int8{3, 3, -3, -3, 0}
	for name, test := range map[string]struct {
		loops Loops[int8, int8]
		want  []int8
	}{
		"div":       {IntDiv[int8](), []int8{2, -2, -2, 2, 0}},
		"mod floor": {IntModFloor[int8](), []int8{1, 2, -2, -1, 0}},
		"mod trunc": {IntModTrunc[int8](), []int8{1, -1, 1, -1, 0}},
		"xor":       {Xor[int8](), []int8{4, -6, -6, 4, 5}},
	} {
		got := make([]int8, len(a))
		if test.loops.Vec(got, a, b); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	less := make([]uint8, 3)
	LessEqual[string]().Vec(less, []string{"a", "b", "c"}, []string{"b", "b", "b"})
	if !slices.Equal(less, []uint8{1, 1, 0}) {
		t.Errorf("strings: %v", less)
	}
}

// TestBoundOfFloats checks that clamps keep NaN, with one limit and with two.
func TestBoundOfFloats(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		lo, hi float32
		want   []float32
	}{
		{0, inf, []float32{0, 0, 5, inf, nan}},
		{0, 3, []float32{0, 0, 3, 3, nan}},
		{-inf, 3, []float32{-7, 0, 3, 3, nan}},
	} {
		v := []float32{-7, 0, 5, inf, nan}
		Bound(v, c.lo, c.hi)
		for i, w := range c.want {
			if v[i] != w && (v[i] == v[i] || w == w) {
				t.Errorf("%v to %v: %v, want %v", c.lo, c.hi, v, c.want)
			}
		}
	}
}
