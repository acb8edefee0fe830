package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// odd returns elements of which many are equal or at the ends of their range.
func odd[T tensor.Number](r *rand.Rand, n int) []T {
	v := make([]T, n)
	for i := range v {
		switch f, ok := any(&v[i]).(*float32); {
		case ok && r.IntN(3) == 0:
			*f = oddFloats[r.IntN(len(oddFloats))]
		case ok:
			*f = float32(r.IntN(5) - 2)
		case r.IntN(3) == 0:
			v[i] = T(r.Uint64())
		default:
			v[i] = T(r.IntN(5)) - 2
		}
	}
	return v
}

func testRelations[T tensor.Number](t *testing.T) {
	f, r := RelationKernels(), rand.New(rand.NewPCG(5, 6))
	if !HasCompare[T](f) {
		return
	}
	for k, holds := range map[Relation]func(a, b T) bool{
		Equal: func(a, b T) bool { return a == b }, Unequal: func(a, b T) bool { return a != b },
		Less: func(a, b T) bool { return a < b }, LessEqual: func(a, b T) bool { return a <= b },
	} {
		for range 100 {
			n := r.IntN(200)
			a, b := odd[T](r, n), odd[T](r, n)
			got := make([]uint8, n+1)
			got[n] = 7
			done := Compare(f, k, got[:n], a, b)
			if n-done >= 32 || done > n {
				t.Fatalf("%d of %d elements compared", done, n)
			}
			for i := range done {
				if want := tensor.Truth(holds(a[i], b[i])); got[i] != want {
					t.Fatalf("%T: relation %d of %v and %v is %d, want %d", a[0], k, a[i], b[i], got[i], want)
				}
			}
			if got[n] != 7 {
				t.Fatalf("%T: written past the end", a[0])
			}
		}
	}
}

// TestRelations compares with Go's own comparisons.
func TestRelations(t *testing.T) {
	everySet(t, func(t *testing.T) {
		testRelations[float32](t)
		testRelations[float64](t)
		testRelations[int32](t)
		testRelations[int64](t)
		testRelations[uint8](t)
		testRelations[int8](t)
	})
}

func testIntegers[T tensor.Integer](t *testing.T) {
	e, r := ElementKernels(), rand.New(rand.NewPCG(7, 8))
	for k, f := range map[IntOp]func(a, b T) T{
		BitAnd: func(a, b T) T { return a & b }, BitOr: func(a, b T) T { return a | b }, BitXor: func(a, b T) T { return a ^ b },
		IntAdd: func(a, b T) T { return a + b }, IntSub: func(a, b T) T { return a - b }, IntMul: func(a, b T) T { return a * b },
		IntMax: func(a, b T) T { return max(a, b) }, IntMin: func(a, b T) T { return min(a, b) },
	} {
		if !HasIntegers[T](e, k) {
			continue
		}
		for range 50 {
			n := r.IntN(200)
			a, b, got := odd[T](r, n), odd[T](r, n), make([]T, n)
			done := Integers(e, k, got, a, b)
			if n-done >= 32 || done > n {
				t.Fatalf("%d of %d elements done", done, n)
			}
			for i := range done {
				if want := f(a[i], b[i]); got[i] != want {
					t.Fatalf("%T: operation %d on %v and %v is %v, want %v", a[0], k, a[i], b[i], got[i], want)
				}
			}
		}
	}
}

// TestIntegers compares with Go's own operations.
func TestIntegers(t *testing.T) {
	everySet(t, func(t *testing.T) {
		testIntegers[int8](t)
		testIntegers[uint8](t)
		testIntegers[int16](t)
		testIntegers[uint16](t)
		testIntegers[int32](t)
		testIntegers[uint32](t)
		testIntegers[int64](t)
		testIntegers[uint64](t)
		e := ElementKernels()
		src, got := odd[uint8](rand.New(rand.NewPCG(9, 9)), 100), make([]uint8, 100)
		for i := range e.XorBytes(got, src, 0xa5) {
			if got[i] != src[i]^0xa5 {
				t.Fatalf("byte %d is %d", i, got[i])
			}
		}
	})
}

// TestCasts compares with the conversions of package tensor.
func TestCasts(t *testing.T) {
	types := map[CastKind]tensor.Type{
		CastBool: tensor.Bool, CastFloat16: tensor.Float16, CastFloat: tensor.Float32, CastDouble: tensor.Float64,
		CastInt8: tensor.Int8, CastUint8: tensor.Uint8, CastInt32: tensor.Int32, CastInt64: tensor.Int64,
		CastInt16: tensor.Int16, CastUint16: tensor.Uint16, CastUint32: tensor.Uint32,
		CastUint64: tensor.Uint64, CastBFloat16: tensor.BFloat16,
	}
	everySet(t, func(t *testing.T) {
		c, r := CastKernels(), rand.New(rand.NewPCG(3, 3))
		for from, in := range types {
			for to, out := range types {
				if !c.Has(from, to) {
					continue
				}
				t.Run(fmt.Sprintf("%v to %v", in, out), func(t *testing.T) {
					for n := range 60 {
						x, y, want := tensor.New(in, n), tensor.New(out, n), tensor.New(out, n)
						for i := range n {
							v := r.NormFloat64() * []float64{1, 100, 1e5, 1e10, 1e20, 1e-8}[r.IntN(6)]
							if r.IntN(5) == 0 {
								v = float64(oddFloats[r.IntN(len(oddFloats))])
							}
							tensor.Put(x, i, v)
						}
						tensor.Cast(want, x, 0, n, tensor.Conversion{Saturate: true})
						done := c.Cast(y.Data, x.Data, from, to)
						if n-done >= 8 || done > n {
							t.Fatalf("%d of %d elements done", done, n)
						}
						for i := range done {
							g, w := tensor.At(y, i), tensor.At(want, i)
							if g != w && (g == g || w == w) {
								t.Fatalf("element %d of %d, %v, is %v, want %v", i, n, tensor.At(x, i), g, w)
							}
						}
					}
				})
			}
		}
		if c.Has(CastBool, CastFloat) {
			src, dst := []byte{0, 1, 2, 255, 0, 0, 128, 7}, tensor.New(tensor.Float32, 8)
			c.Cast(dst.Data, src, CastBool, CastFloat)
			for i, v := range tensor.Of[float32](dst) {
				if v != float32(tensor.Truth(src[i] != 0)) {
					t.Fatalf("truth value %d becomes %v", src[i], v)
				}
			}
		}
	})
}
