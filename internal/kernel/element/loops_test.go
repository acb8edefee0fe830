package element

import (
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// row runs every variant of a Loops: two rows, and a scalar on either side.
func row[T, R comparable](t *testing.T, name string, l Loops[T, R], a, b []T, want []R) {
	t.Helper()
	n := len(want)
	got := make([]R, n)
	// Longer operands: only as many elements as the output has are read.
	l.Vec(got, append(slices.Clone(a), a...), append(slices.Clone(b), b...))
	if !same(got, want) {
		t.Errorf("%s of %v and %v: %v, want %v", name, a, b, got, want)
	}
	for i := range n {
		one := make([]R, 2)
		if l.VectorScalar != nil {
			if l.VectorScalar(one, []T{a[i], a[i], a[i]}, b[i]); !same(one, []R{want[i], want[i]}) {
				t.Errorf("%s of a row of %v and %v: %v, want %v", name, a[i], b[i], one, want[i])
			}
		}
		if l.ScalarVector != nil {
			if l.ScalarVector(one, a[i], []T{b[i], b[i], b[i]}); !same(one, []R{want[i], want[i]}) {
				t.Errorf("%s of %v and a row of %v: %v, want %v", name, a[i], b[i], one, want[i])
			}
		}
	}
}

// same compares with NaN equal to itself, and zeros by their sign.
func same[R comparable](a, b []R) bool {
	return slices.EqualFunc(a, b, func(x, y R) bool {
		if f, ok := any(x).(float64); ok {
			g := any(y).(float64)
			return f != f && g != g || f == g && math.Signbit(f) == math.Signbit(g)
		}
		return x == y
	})
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	a, b := []float64{7, -7, 0.5, -3, nan, 2}, []float64{2, 2, -1.5, -3, 1, nan}
	for name, c := range map[string]struct {
		l    Loops[float64, float64]
		want []float64
	}{
		"add":        {Add[float64](), []float64{9, -5, -1, -6, nan, nan}},
		"sub":        {Sub[float64](), []float64{5, -9, 2, 0, nan, nan}},
		"mul":        {Mul[float64](), []float64{14, -14, -0.75, 9, nan, nan}},
		"div":        {Div[float64](), []float64{3.5, -3.5, 0.5 / -1.5, 1, nan, nan}},
		"max":        {Max[float64](), []float64{7, 2, 0.5, -3, nan, nan}},
		"min":        {Min[float64](), []float64{2, -7, -1.5, -3, nan, nan}},
		"difference": {SquaredDifference[float64](), []float64{25, 81, 4, 0, nan, nan}},
		"prelu":      {PRelu[float64](), []float64{7, -14, 0.5, 9, nan, 2}},
		"two":        {FromFunc(math.Hypot), []float64{math.Hypot(7, 2), math.Hypot(7, 2), math.Hypot(0.5, 1.5), math.Hypot(3, 3), nan, nan}},
		"clamped":    {Clamped(Sub[float64](), -1, 4), []float64{4, -1, 2, 0, nan, nan}},
	} {
		row(t, name, c.l, a, b, c.want)
	}
	row(t, "truncated remainder", ModTrunc[float64](), []float64{7, -7, 7, -7, 6, 1}, []float64{3, 3, -3, -3, 3, 0}, []float64{1, -1, 1, -1, 0, nan})
	row(t, "floored remainder", ModFloor[float64](), []float64{7, -7, 7, -7, 6, -6, 5.5}, []float64{3, 3, -3, -3, -3, 3, 2}, []float64{1, 2, -2, -1, math.Copysign(0, -1), 0, 1.5})
	row(t, "division by zero", Div[float64](), []float64{1, -1, 0}, []float64{0, 0, 0}, []float64{inf, -inf, nan})
	row(t, "zero less zero", Sub[float64](), []float64{0}, []float64{0}, []float64{0})
}

func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	a, b := []int8{7, -7, 100, -128, 0, 5}, []int8{2, 2, 100, 1, -5, 0}
	for name, c := range map[string]struct {
		l    Loops[int8, int8]
		want []int8
	}{
		"add":       {Add[int8](), []int8{9, -5, -56, -127, -5, 5}}, // 200 wraps
		"sub":       {Sub[int8](), []int8{5, -9, 0, 127, 5, 5}},
		"mul":       {Mul[int8](), []int8{14, -14, 16, -128, 0, 0}},
		"div":       {IntDiv[int8](), []int8{3, -3, 1, -128, 0, 0}},
		"mod floor": {IntModFloor[int8](), []int8{1, 1, 0, 0, 0, 0}},
		"mod trunc": {IntModTrunc[int8](), []int8{1, -1, 0, 0, 0, 0}},
		"and":       {And[int8](), []int8{2, 0, 100, 0, 0, 0}},
		"or":        {Or[int8](), []int8{7, -5, 100, -127, -5, 5}},
		"xor":       {Xor[int8](), []int8{5, -5, 0, -127, -5, 5}},
		"max":       {Max[int8](), []int8{7, 2, 100, 1, 0, 5}},
		"min":       {Min[int8](), []int8{2, -7, 100, -128, -5, 0}},
		"prelu":     {PRelu[int8](), []int8{7, -14, 100, -128, 0, 5}},
	} {
		row(t, name, c.l, a, b, c.want)
	}
	row(t, "unsigned less", Sub[uint8](), []uint8{5, 3}, []uint8{3, 5}, []uint8{2, 254})
}

func TestComparisons(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	a, b := []float64{1, 2, 3, nan, 1, nan}, []float64{2, 2, 2, 1, nan, nan}
	for name, c := range map[string]struct {
		l    Loops[float64, uint8]
		want []uint8
	}{
		"equal":            {Equal[float64](), []uint8{0, 1, 0, 0, 0, 0}},
		"not equal":        {NotEqual[float64](), []uint8{1, 0, 1, 1, 1, 1}},
		"less":             {Less[float64](), []uint8{1, 0, 0, 0, 0, 0}},
		"less or equal":    {LessEqual[float64](), []uint8{1, 1, 0, 0, 0, 0}},
		"greater":          {Greater[float64](), []uint8{0, 0, 1, 0, 0, 0}},
		"greater or equal": {GreaterEqual[float64](), []uint8{0, 1, 1, 0, 0, 0}},
	} {
		row(t, name, c.l, a, b, c.want)
	}
	row(t, "text", Greater[string](), []string{"b", "a", "a"}, []string{"a", "b", "a"}, []uint8{1, 0, 0})
}

// TestClamp checks the bounds at the elements that reach them. NaN stays; if the bounds cross,
// the upper one wins.
func TestClamp(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		lo, hi float64
		want   []float64
	}{
		{0, 6, []float64{0, 0, 3, 6, 6, nan}},
		{3, 3, []float64{3, 3, 3, 3, 3, nan}},
		{5, 1, []float64{1, 1, 1, 1, 1, nan}},
	} {
		v := []float64{-1, 0, 3, 6, 7, nan}
		if Clamp(v, c.lo, c.hi); !same(v, c.want) {
			t.Errorf("%v to %v: %v, want %v", c.lo, c.hi, v, c.want)
		}
	}
	// Long rows are clamped in parts, the last a short one.
	n := 8*Block*2 + 3
	a, b, got := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range a {
		a[i], b[i] = float64(i), 1
	}
	Clamped(Add[float64](), 10, 4000).Vec(got, a, b)
	for i, v := range got {
		if want := min(max(float64(i)+1, 10), 4000); v != want {
			t.Fatalf("element %d is %v, want %v", i, v, want)
		}
	}
}

// TestSpread checks that repeated operands are expanded to rows if an operation has no kernel for
// them, in blocks, the last a short one.
func TestSpread(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	minus := Loops[float64, float64]{Vec: Sub[float64]().Vec}
	for _, inner := range []int{1, Block - 1, Block, Block + 1, 3*Block + 7, 20000} {
		for _, shapes := range [][2][]int{{{2, inner}, {2, 1}}, {{2, 1}, {2, inner}}, {{1}, {2, inner}}, {{2, inner}, {}}, {{2, 1}, {2, 1}}} {
			out := []int{2, inner}
			if len(shapes[0]) == 2 && len(shapes[1]) == 2 && shapes[0][1] == 1 && shapes[1][1] == 1 {
				out = []int{2, 1}
			}
			walk, err := broadcast.New(out, shapes[0], shapes[1])
			if err != nil {
				t.Fatal(err)
			}
			value := func(shape []int, r, c int, f float64) float64 {
				switch {
				case len(shape) < 2:
					return f
				case shape[1] == 1:
					return f * float64(r+1)
				}
				return f * float64(r*shape[1]+c+1)
			}
			fill := func(shape []int, f float64) []float64 {
				if len(shape) < 2 {
					return []float64{f}
				}
				var v []float64
				for r := range shape[0] {
					for c := range shape[1] {
						v = append(v, value(shape, r, c, f))
					}
				}
				return v
			}
			y := make([]float64, walk.Len)
			run := NewBinary(pool, walk, minus)
			for range 2 {
				run.Run(pool, y, fill(shapes[0], 1), fill(shapes[1], 10))
			}
			for i, v := range y {
				if want := value(shapes[0], i/out[1], i%out[1], 1) - value(shapes[1], i/out[1], i%out[1], 10); v != want {
					t.Fatalf("%v: element %d is %v, want %v", shapes, i, v, want)
				}
			}
		}
	}
}

// TestFloatLoops checks that SIMD kernels over float32 agree with plain ones for infinities,
// zeros of both signs and NaN, on every instruction set.
func TestFloatLoops(t *testing.T) {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.25, -3.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	var a, b []float32
	for _, x := range special {
		for _, y := range special {
			a, b = append(a, x), append(b, y)
		}
	}
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		for _, c := range []struct {
			name  string
			l     Loops[float32, float32]
			plain func(dst, a, b []float32)
		}{{"prelu", PRelu[float32](), preluVec[float32]}, {"max", Max[float32](), MaxTo[float32]}, {"min", Min[float32](), MinTo[float32]}} {
			want, got := make([]float32, len(a)), make([]float32, len(a))
			c.plain(want, a, b)
			c.l.Vec(got, a, b)
			bits := func(v []float32) (r []uint32) {
				for _, x := range v {
					if x != x {
						x = 0.1
					}
					r = append(r, math.Float32bits(x))
				}
				return r
			}
			if !slices.Equal(bits(got), bits(want)) {
				t.Errorf("%v: %s of %v and %v: %v, want %v", set, c.name, a, b, got, want)
			}
			if c.l.VectorScalar == nil {
				continue
			}
			for _, y := range special {
				Fill(b[:len(special)*2], y)
				c.plain(want[:11], a[:11], b[:11])
				c.l.VectorScalar(got[:11], a[:11], y)
				if !slices.Equal(bits(got[:11]), bits(want[:11])) {
					t.Errorf("%v: %s of a row and %v: %v, want %v", set, c.name, y, got[:11], want[:11])
				}
			}
		}
		undo()
	}
}

// TestDoubleLoops compares SIMD kernels over float64 with plain Go, bit for bit, on every
// instruction set.
func TestDoubleLoops(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -2.5, 1.5, math.Inf(1), math.Inf(-1), math.NaN(), 0x1p52 + 1, -0x1p60, 5e-324, 0.49999999999999994}
	var a, b []float64
	for _, x := range special {
		for _, y := range special {
			a, b = append(a, x), append(b, y)
		}
	}
	alike := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y }
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		e := simd.ElementKernels()
		for n := range len(a) {
			want, got := make([]float64, n), make([]float64, n+1)
			for name, c := range map[string]struct{ f, plain func(dst, a, b []float64) }{"max": {Max[float64]().Vec, MaxTo[float64]}, "min": {Min[float64]().Vec, MinTo[float64]}} {
				got[n] = 7
				c.f(got[:n], a, b)
				if c.plain(want, a, b); !slices.EqualFunc(got[:n], want, alike) || got[n] != 7 {
					t.Fatalf("%v: %s of %v and %v: %v, want %v", set, name, a[:n], b[:n], got, want)
				}
			}
			if e == nil {
				continue
			}
			for k, f := range []func(float64) float64{math.RoundToEven, math.Floor, math.Ceil, func(x float64) float64 {
				if x > 0 {
					return 1
				}
				if x < 0 {
					return -1
				}
				return x
			}} {
				for i := range e.WholeDoubles(simd.Doubles(k), got[:n], a) {
					if w := f(a[i]); !alike(got[i], w) {
						t.Fatalf("%v: integer %d next to %v is %v, want %v", set, k, a[i], got[i], w)
					}
				}
			}
			for i := range e.LimitDoubles(got[:n], a, -1, 1.5) {
				w := a[i]
				if w < -1 {
					w = -1
				}
				if w > 1.5 {
					w = 1.5
				}
				if !alike(got[i], w) {
					t.Fatalf("%v: %v within limits is %v, want %v", set, a[i], got[i], w)
				}
			}
			for i := range e.LimitDoubles(got[:n], b, 0, math.Inf(1)) {
				w := b[i]
				if w < 0 {
					w = 0
				}
				if !alike(got[i], w) {
					t.Fatalf("%v: %v rectified is %v, want %v", set, b[i], got[i], w)
				}
			}
		}
		undo()
	}
}
