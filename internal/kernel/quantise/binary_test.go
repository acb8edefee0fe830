package quantise

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestBinaryQ compares SIMD sums, differences and products of quantised values with the fixed-point
// definition, for similar and very different scales, extreme zero points and limits, and lengths
// off whole registers.
func TestBinaryQ(t *testing.T) {
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		r := rand.New(rand.NewPCG(11, 7))
		taken := 0
		for i := range 4000 {
			if [](func(*testing.T, *rand.Rand) bool){pairCase[int8], pairCase[uint8], pairCase[int16]}[i%3](t, r) {
				taken++
			}
		}
		if simd.PairKernels() != nil && taken < 1000 {
			t.Errorf("%v: %d of 4000 taken", set, taken)
		}
		undo()
	}
}

// pairCase tries one combination of scales and reports whether a kernel exists.
func pairCase[T Integer](t *testing.T, r *rand.Rand) bool {
	least, most := tensor.Bounds[T]()
	wide := int32(most) > 255
	scale := func() float64 { return (0.5 + r.Float64()) / float64(int(1)<<r.IntN(12)) }
	sa, sb, so := scale(), scale(), scale()
	if r.IntN(8) == 0 {
		sb = sa
	}
	code := func() T { return []T{least, most, T(r.Uint32())}[r.IntN(3)] }
	za, zb, zo := int32(code()), int32(code()), int32(code())
	lo := int32(least) + int32(r.IntN(100))
	hi := lo + int32(r.IntN(int(most)-int(least)-99))
	shift := 20
	if wide {
		shift = 15
		if r.IntN(2) == 0 {
			za, zb = 0, 0
		}
	}
	kind := []string{"sum", "difference", "product", "prelu", "square", "leaky"}[r.IntN(6)]
	twice := 2 * max(sa, sb)
	ma, mb, m := fixed.FromReal(sa/twice), fixed.FromReal(sb/twice), fixed.FromReal(twice/(float64(int(1)<<shift)*so))
	var p *Binary[T]
	var ok bool
	switch kind {
	case "sum", "difference":
		p, ok = NewAdd[T](kind == "difference", shift, za, zb, ma, mb, m, zo, lo, hi)
	case "product":
		m = fixed.FromReal(sa * sb / so)
		p, ok = NewMul[T](za, zb, m, zo, lo, hi)
	default:
		switch q := any(&p).(type) {
		case **Binary[int8]:
			*q, ma, m, ok = bytePair[int8](kind, za, zb, sa, sb, so, ma, mb, zo, lo, hi)
		case **Binary[uint8]:
			*q, ma, m, ok = bytePair[uint8](kind, za, zb, sa, sb, so, ma, mb, zo, lo, hi)
		case **Binary[int16]:
			switch kind {
			case "leaky":
				ma, m = fixed.FromReal(sa/so), fixed.FromReal(sa*sb/so)
				*q, ok = NewLeaky(za, ma, m, zo, lo, hi)
			case "square":
				m = fixed.FromReal(twice * twice / so)
				*q, ok = NewSquaredDifference[int16](0, za, zb, ma, mb, m, zo, lo, hi)
			}
		}
	}
	if !ok {
		return false
	}
	n := r.IntN(100)
	a, b, got := make([]T, n), make([]T, n), make([]T, n+1)
	for i := range n {
		a[i], b[i] = code(), code()
	}
	p.Run(got[:n], a, b)
	for i := range n {
		x, y := int32(a[i])-za, int32(b[i])-zb
		sum, by := x, m
		switch {
		case kind == "leaky" && x < 0:
		case (kind == "prelu" || kind == "leaky") && x >= 0:
			by = ma
		case kind == "prelu" || kind == "product":
			sum = x * y
		case kind == "square":
			finer := 7
			if wide {
				finer = 0
			}
			sum = ma.Apply(x<<finer) - mb.Apply(y<<finer)
			sum *= sum
		case kind == "difference":
			sum = ma.Apply(x<<shift) - mb.Apply(y<<shift)
		default:
			sum = ma.Apply(x<<shift) + mb.Apply(y<<shift)
		}
		if want := T(min(max(by.Apply(sum)+zo, lo), hi)); got[i] != want {
			t.Fatalf("%s, scales %v %v %v, zeros %d %d %d: %d and %d give %d, want %d", kind, sa, sb, so, za, zb, zo, a[i], b[i], got[i], want)
		}
	}
	if got[n] != 0 {
		t.Fatalf("%s: written behind the end", kind)
	}
	rowsCase(t, r, p, kind, code)
	return true
}

// rowsCase compares rows, one operand of which may be single, with contiguous operands.
func rowsCase[T Integer](t *testing.T, r *rand.Rand, p *Binary[T], kind string, code func() T) {
	rows, n, single := 1+r.IntN(4), 1+r.IntN(40), r.IntN(3)
	var steps [2]int
	var in, wide [2][]T
	for k := range in {
		steps[k] = r.IntN(n + 3)
		in[k], wide[k] = make([]T, (rows-1)*steps[k]+n), make([]T, rows*n)
		if single == k+1 {
			in[k] = in[k][:(rows-1)*steps[k]+1]
		}
		for i := range in[k] {
			in[k][i] = code()
		}
		for i := range wide[k] {
			at := i / n * steps[k]
			if single != k+1 {
				at += i % n
			}
			wide[k][i] = in[k][at]
		}
	}
	want, got := make([]T, rows*n), make([]T, rows*n+1)
	p.Run(want, wide[0], wide[1])
	p.Rows(got[:rows*n], in[0], in[1], n, steps[0], steps[1], single)
	if !slices.Equal(got[:rows*n], want) || got[rows*n] != 0 {
		t.Fatalf("%s: %d rows of %d, %v apart, single %d: %v, want %v", kind, rows, n, steps, single, got, want)
	}
}

// bytePair covers the operations that exist for 8-bit values only, and their multipliers.
func bytePair[T int8 | uint8](kind string, za, zb int32, sa, sb, so float64, ma, mb fixed.Multiplier, zo, lo, hi int32) (p *Binary[T], up, m fixed.Multiplier, ok bool) {
	switch twice := 2 * max(sa, sb); kind {
	case "square":
		m = fixed.FromReal(twice * twice / (1 << 14 * so))
		p, ok = NewSquaredDifference[T](7, za, zb, ma, mb, m, zo, lo, hi)
		return p, ma, m, ok
	case "prelu":
		up, m = fixed.FromReal(sa/so), fixed.FromReal(sa*sb/so)
		p, ok = NewPRelu[T](za, zb, up, m, zo, lo, hi)
	}
	return p, up, m, ok
}

// TestFloatScale compares the float32 form of multipliers with the fixed-point one for all
// products. Most multipliers have such a form.
func TestFloatScale(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 3))
	found := 0
	const tries = 60
	for range tries {
		m := fixed.FromReal((0.5 + r.Float64()) / float64(int(2)<<r.IntN(10)))
		zero := int32(r.IntN(256)) - 128
		lo, hi := -128-zero, 127-zero
		scale, bias, ok := floatScale(m, mostProduct, lo, hi)
		if !ok {
			continue
		}
		found++
		for p := int32(-mostProduct); p <= mostProduct; p++ {
			if got, want := min(max(scaledProduct(p, scale, bias), lo), hi), min(max(m.Apply(p), lo), hi); got != want {
				t.Fatalf("%d times %v gives %d, want %d", p, m, got, want)
			}
		}
	}
	if found < tries*4/5 {
		t.Errorf("%d of %d multipliers have a float32 form", found, tries)
	}
}
