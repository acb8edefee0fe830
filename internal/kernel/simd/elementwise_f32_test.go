package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestElementHalves compares every float16, and floats that round to them, with the conversions
// of package tensor.
func TestElementHalves(t *testing.T) {
	everySet(t, func(t *testing.T) {
		e := ElementKernels()
		if e == nil {
			t.Skip("plain Go")
		}
		halves, wide := make([]uint16, 1<<16), make([]float32, 1<<16)
		for i := range halves {
			halves[i] = uint16(i)
		}
		if n := e.FromHalf(wide, halves); n != len(wide) {
			t.Fatal(n)
		}
		for i, v := range wide {
			if want := tensor.F16ToF32(uint16(i)); v != want && (v == v || want == want) {
				t.Fatalf("float16 %#x is %v, want %v", i, v, want)
			}
		}
		n := e.FromBFloat16(wide, halves)
		for i, v := range wide[:n] {
			if want := uint32(i) << 16; math.Float32bits(v) != want {
				t.Fatalf("bfloat16 %#x is %#x", i, math.Float32bits(v))
			}
		}
		for _, inf := range []uint16{0x7c00, 0x7f80} {
			out := make([]uint16, 1<<16)
			e.ReluHalf(out, halves, inf)
			for i, h := range out {
				want := uint16(i)
				if want > 0x8000 && want <= 0x8000|inf {
					want = 0
				}
				if h != want {
					t.Fatalf("ReLU of %#x is %#x, want %#x", i, h, want)
				}
			}
		}
		r := rand.New(rand.NewPCG(3, 4))
		for range 20 {
			for i := range wide {
				if wide[i] = math.Float32frombits(r.Uint32()); i%2 == 0 {
					wide[i] = math.Float32frombits(uint32(r.IntN(64)+90)<<23 | r.Uint32()&0x7fffff)
				}
				if i%3 == 0 {
					// In the middle between two float16 values.
					wide[i] = math.Float32frombits(math.Float32bits(tensor.F16ToF32(uint16(i))) + 1<<12)
				}
			}
			e.ToHalf(halves, wide)
			for i, v := range wide {
				want := tensor.F32ToF16(v)
				if nan := v != v && tensor.F16ToF32(halves[i]) != tensor.F16ToF32(halves[i]); halves[i] != want && !nan {
					t.Fatalf("%v becomes float16 %#x, want %#x", v, halves[i], want)
				}
			}
		}
		ints, floats := make([]int32, 1000), make([]float32, 1000)
		for i := range ints {
			ints[i] = r.Int32() - r.Int32()
		}
		for i := range e.ToFloats(floats, ints) {
			if floats[i] != float32(ints[i]) {
				t.Fatalf("%d becomes %v", ints[i], floats[i])
			}
		}
	})
}

// oddFloats are values that often reveal errors in kernels.
var oddFloats = []float32{
	0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-42, -1e-45, 3e38, -3e38, 0.5, 1.5, -2.5, 1 << 24,
}

// everyElements runs f for each instruction set with elementwise kernels. The operands have
// random lengths, with one element more than is written.
func everyElements(t *testing.T, f func(t *testing.T, e *Elements, r *rand.Rand, a, b []float32, n int)) {
	everySet(t, func(t *testing.T) {
		e := ElementKernels()
		if e == nil {
			t.Skip("plain Go")
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 1000 {
			n, off := r.IntN(150), r.IntN(9)
			v := [2][]float32{}
			for k := range v {
				v[k] = make([]float32, off+n+1)[off:]
				for i := range v[k] {
					if v[k][i] = float32(r.NormFloat64() * 50); r.IntN(6) == 0 {
						v[k][i] = oddFloats[r.IntN(len(oddFloats))]
					}
				}
			}
			f(t, e, r, v[0], v[1], n)
		}
	})
}

// sameFloats compares bits, except those of NaN, and checks that nothing is written after the
// end.
func sameFloats(t *testing.T, what string, got []float32, n int, want func(i int) float32) {
	t.Helper()
	for i := range n {
		w := want(i)
		if math.Float32bits(got[i]) != math.Float32bits(w) && (got[i] == got[i] || w == w) {
			t.Fatalf("%s of %d: value %d is %v, want %v", what, n, i, got[i], w)
		}
	}
	if got[n] != 7 {
		t.Fatalf("%s of %d wrote %v past the end", what, n, got[n])
	}
}

func TestElements(t *testing.T) {
	everyElements(t, func(t *testing.T, e *Elements, r *rand.Rand, a, b []float32, n int) {
		out := make([]float32, n+1)
		out[n] = 7
		dst, s := out[:n], b[n]
		e.Add(dst, a, b)
		sameFloats(t, "a+b", out, n, func(i int) float32 { return a[i] + b[i] })
		e.AddScalar(dst, a, s)
		sameFloats(t, "a+s", out, n, func(i int) float32 { return a[i] + s })
		e.Sub(dst, a, b)
		sameFloats(t, "a-b", out, n, func(i int) float32 { return a[i] - b[i] })
		e.ScalarSub(dst, s, b)
		sameFloats(t, "s-b", out, n, func(i int) float32 { return s - b[i] })
		e.Mul(dst, a, b)
		sameFloats(t, "ab", out, n, func(i int) float32 { return a[i] * b[i] })
		e.MulScalar(dst, a, s)
		sameFloats(t, "as", out, n, func(i int) float32 { return a[i] * s })
		e.Div(dst, a, b)
		sameFloats(t, "a/b", out, n, func(i int) float32 { return a[i] / b[i] })
		e.DivScalar(dst, a, s)
		sameFloats(t, "a/s", out, n, func(i int) float32 { return a[i] / s })
		e.ScalarDiv(dst, s, b)
		sameFloats(t, "s/b", out, n, func(i int) float32 { return s / b[i] })
		inf := float32(math.Inf(1))
		for _, c := range [][2]float32{{0, 6}, {0, inf}, {-1, 1}, {float32(math.Copysign(0, -1)), 1}, {-inf, 0.5}} {
			e.Clamp(dst, a, c[0], c[1])
			sameFloats(t, "clamp", out, n, func(i int) float32 { return min(max(a[i], c[0]), c[1]) })
			limit := func(v float32) float32 {
				switch {
				case v < c[0]:
					return c[0]
				case v > c[1]:
					return c[1]
				default:
					return v
				}
			}
			e.Limit(dst, a, c[0], c[1])
			sameFloats(t, "limit", out, n, func(i int) float32 { return limit(a[i]) })
			if e.HasAddLimit() {
				e.AddLimit(dst, a, b, c[0], c[1])
				sameFloats(t, "limit of a+b", out, n, func(i int) float32 { return limit(a[i] + b[i]) })
			}
		}
		e.Scale(dst, a, b[n], b[0])
		sameFloats(t, "scale", out, n, func(i int) float32 { return float32(a[i]*b[n]) + b[0] })
	})
}

// TestElementScales compares dequantised values, and column sums with weights, with their
// definitions.
func TestElementScales(t *testing.T) {
	everyElements(t, func(t *testing.T, e *Elements, r *rand.Rand, a, b []float32, n int) {
		out := make([]float32, n+1)
		out[n] = 7
		codes, zero, scale, signed := make([]uint8, n), int32(r.IntN(384)-128), a[n], r.IntN(2) == 0
		for i := range codes {
			codes[i] = uint8(r.Uint32())
		}
		done := e.Dequantise(out[:n], codes, zero, scale, signed)
		for i := done; i < n; i++ {
			out[i] = 0
		}
		sameFloats(t, "dequantised", out, n, func(i int) float32 {
			switch v := int32(codes[i]); {
			case i >= done:
				return 0
			case signed:
				return float32(int32(int8(v))-zero) * scale
			default:
				return float32(v-zero) * scale
			}
		})
		words := make([]uint16, n+1)
		for i := range words {
			words[i] = uint16(r.Uint32())
		}
		done = e.Dequantise16(out[:n], words[:n], zero, scale, signed)
		sameFloats(t, "dequantised 16-bit value", out, n, func(i int) float32 {
			switch v := int32(words[i]); {
			case i >= done:
				return out[i]
			case signed:
				return float32(int32(int16(v))-zero) * scale
			default:
				return float32(v-zero) * scale
			}
		})
		beyond, lo := words[n], -float32(r.IntN(40000))
		hi := lo + 65535
		done = e.Quantise16(words[:n], b[:n], a[n], lo, hi, zero)
		for i := range done {
			v := b[i] / a[n]
			if !(v > lo) {
				v = lo
			}
			if want := uint16(int32(math.RoundToEven(float64(min(v, hi)))) + zero); words[i] != want {
				t.Fatalf("%v/%v is quantised to %d, want %d", b[i], a[n], words[i], want)
			}
		}
		if words[n] != beyond {
			t.Fatal("wrote past the end")
		}
		away := unsafe.Slice((*int16)(unsafe.Pointer(&words[0])), n+1)
		done = e.QuantiseAway16(away[:n], b[:n], a[n], lo, hi, zero)
		for i := range done {
			v := float64(b[i] / a[n])
			if v != v {
				v = 0
			}
			if want := int16(int32(math.Round(min(max(v, float64(lo)), float64(hi)))) + zero); away[i] != want {
				t.Fatalf("%v/%v is quantised to %d, want %d, away from zero", b[i], a[n], away[i], want)
			}
		}
		if words[n] != beyond {
			t.Fatal("wrote past the end")
		}
		cols := 1 + r.IntN(40)
		rows := n / cols
		sums, weights, bias, together := make([]int32, rows*cols), make([]float32, cols), []float32(nil), r.IntN(2) == 0
		for i := range sums {
			sums[i] = (r.Int32() - r.Int32()) >> r.IntN(31)
		}
		for i := range weights {
			weights[i] = a[r.IntN(n+1)]
		}
		if r.IntN(2) == 0 {
			for range cols {
				bias = append(bias, b[r.IntN(n+1)])
			}
		}
		var scales []float32
		if r.IntN(2) == 0 {
			for range rows {
				scales = append(scales, b[r.IntN(n+1)])
			}
		}
		step := cols + r.IntN(3)
		end := rows * step
		scaled := make([]float32, end+1)
		for i := range scaled {
			scaled[i] = 7
		}
		if !e.ScaleRows(scaled[:end], step, sums, cols, rows, weights, bias, scales, scale, together) {
			return
		}
		sameFloats(t, "scaled", scaled, end, func(i int) float32 {
			row, i := i/step, i%step
			if i >= cols {
				return 7
			}
			v, w, scale := float32(sums[row*cols+i]), weights[i], scale
			if scales != nil {
				scale = scales[row]
			}
			if together {
				v *= float32(w * scale)
			} else {
				v = float32(v*w) * scale
			}
			if bias != nil {
				v = float32(v) + bias[i%cols]
			}
			return v
		})
	})
}

func TestElementCodes(t *testing.T) {
	everyElements(t, func(t *testing.T, e *Elements, r *rand.Rand, a, _ []float32, n int) {
		lo, hi, zero := float32(-128), float32(127), int32(r.IntN(256)-128)
		if r.IntN(2) == 0 {
			lo, hi, zero = 0, 255, zero+128
		}
		lo, hi = lo-float32(zero), hi-float32(zero)
		scale := float32(r.ExpFloat64()) + 0.01
		out := make([]uint8, n+1)
		out[n] = 7
		// Divisors of all magnitudes, one in four cases, and values in the middle between two
		// quantised values or a few units away.
		if r.IntN(4) == 0 {
			scale = math.Float32frombits(r.Uint32N(255 << 23))
		}
		x := slices.Clone(a)
		for i := range x {
			if r.IntN(2) == 0 {
				middle := (float32(r.IntN(520)-260) + 0.5) * scale
				x[i] = math.Float32frombits(math.Float32bits(middle) + uint32(r.IntN(7)) - 3)
			}
		}
		done := e.Quantise(out[:n], x, scale, lo, hi, zero)
		for i := range done {
			v := x[i] / scale
			if !(v > lo) {
				v = lo
			}
			if want := uint8(int32(math.RoundToEven(float64(min(v, hi)))) + zero); out[i] != want {
				t.Fatalf("quantised %v by %v: %d, want %d", x[i], scale, out[i], want)
			}
		}
		for i := range n {
			if r.IntN(3) == 0 {
				// Ties and their neighbours.
				a[i] = (float32(r.IntN(20)-10) + []float32{0.5, 0.49999997, 0.50000006}[r.IntN(3)]) * scale
			}
		}
		done = e.QuantiseAway(out[:n], a, scale, lo, hi, zero)
		for i := range done {
			q := math.Round(float64(a[i] / scale))
			if q != q {
				q = 0
			}
			if want := uint8(int32(min(max(q, float64(lo)), float64(hi))) + zero); out[i] != want {
				t.Fatalf("quantised %v by %v with ties away: %d, want %d", a[i], scale, out[i], want)
			}
		}
		mul, add := 1/scale, float32(r.IntN(100)-50)
		rounded := make([]float32, n)
		for i := range e.RoundAway(rounded, a, mul, -128-add, 127-add) {
			q := math.Round(float64(a[i] * mul))
			want := min(max(float32(q), -128-add), 127-add)
			if rounded[i] != want && q == q {
				t.Fatalf("%v·%v is rounded to %v, want %v", a[i], mul, rounded[i], want)
			}
		}
		codes := make([]uint8, n)
		for i := range codes {
			codes[i] = uint8(r.Uint32())
		}
		for i := range e.Nibbles(rounded, codes, add, mul) {
			if want := (float32(codes[i/2]>>(i%2*4)&15) - add) * mul; rounded[i] != want {
				t.Fatalf("quantised value %d is %v, want %v", i, rounded[i], want)
			}
		}
		var whole, exact float64
		for i := range rounded {
			rounded[i] = float32(r.IntN(9) - 4)
			whole += float64(rounded[i]) * float64(rounded[i]+1)
		}
		next := make([]float32, n)
		for i, v := range rounded {
			next[i] = v + 1
		}
		if exact = float64(e.Dot(rounded, next)); exact != whole {
			t.Fatalf("the product of %d values is %v, want %v", n, exact, whole)
		}
		least, most := e.Extent(a[:n], 0, 1)
		wantLeast, wantMost := float32(0), float32(1)
		for _, v := range a[:n] {
			wantLeast, wantMost = min(wantLeast, v), max(wantMost, v)
		}
		if least != wantLeast && wantLeast == wantLeast || most != wantMost && wantMost == wantMost || (least == least) != (wantLeast == wantLeast) {
			t.Fatalf("extent %v to %v, want %v to %v", least, most, wantLeast, wantMost)
		}
		sums, bias := make([]int32, n), r.Int32N(2000)-1000
		for i := range sums {
			if sums[i] = r.Int32N(200000) - 100000; r.IntN(8) == 0 {
				sums[i] = []int32{math.MaxInt32, math.MinInt32, 0, 1 << 24, 1<<24 + 1}[r.IntN(5)]
			}
		}
		done = e.Rescale(out[:n], sums, scale/500, lo, hi, zero, bias)
		for i := range done {
			v := math.RoundToEven(float64(float32(sums[i]+bias) * (scale / 500)))
			if want := uint8(int32(min(max(v, float64(lo)), float64(hi))) + zero); out[i] != want {
				t.Fatalf("scaled %d + %d by %v: %d, want %d", sums[i], bias, scale, out[i], want)
			}
		}
		if done < n-7 || out[n] != 7 {
			t.Fatalf("%d of %d done, past the end is %d", done, n, out[n])
		}
	})
}

// TestRescales uses rows in both matrices that are further apart than they are long, with a scale
// for each row or each column.
func TestRescales(t *testing.T) {
	for _, columns := range []bool{false, true} {
		everyElements(t, func(t *testing.T, e *Elements, r *rand.Rand, _, _ []float32, n int) {
			rows := r.IntN(14)
			stepDst, stepSrc := n+r.IntN(5), n+r.IntN(20)
			q := Rescaling{Hi: 255, Signed: r.IntN(2) == 0, Small: r.IntN(2) == 0}
			if q.Signed {
				q.Lo, q.Hi = -128, 127
			}
			if q.Zero = q.Lo + r.Int32N(256); r.IntN(2) == 0 {
				q.Lo, q.Hi = q.Zero, q.Zero+r.Int32N(q.Hi-q.Zero+1)
			}
			out, sums := make([]uint8, rows*stepDst+1), make([]int32, rows*stepSrc+1)
			for i := range out {
				out[i] = 7
			}
			for i := range sums {
				if sums[i] = r.Int32N(200000) - 100000; r.IntN(8) == 0 {
					sums[i] = []int32{math.MaxInt32, math.MinInt32, 0, 1 << 24, 1<<24 + 1}[r.IntN(5)]
				}
			}
			scales, bias := make([]float32, max(n, rows)), make([]int32, max(n, rows))
			for i := range scales {
				scales[i], bias[i] = min(float32(r.ExpFloat64())/500, 0.4), r.Int32N(2000)-1000
				if r.IntN(16) == 0 {
					scales[i] = []float32{0, 1e-40, 0.49, -0.49}[r.IntN(4)]
				}
				if !q.Small && r.IntN(16) == 0 {
					scales[i] = []float32{0.5, -0.5, 1e30, -1e30}[r.IntN(4)]
				}
			}
			done := n
			if !columns {
				done = e.RescaleRows(out, stepDst, sums, stepSrc, rows, n, scales, bias, q)
			} else if !e.RescaleColumns(out, stepDst, sums, stepSrc, rows, n, scales, bias, q) {
				t.Skip("no kernel")
			}
			if done < n-7 {
				t.Fatalf("%d of %d done", done, n)
			}
			for i, got := range out {
				row, x := i/max(stepDst, 1), i%max(stepDst, 1)
				want := uint8(7)
				if row < rows && x < done {
					k := row
					if columns {
						k = x
					}
					v := math.RoundToEven(float64(float32(sums[row*stepSrc+x]+bias[k])*scales[k])) + float64(q.Zero)
					want = uint8(int32(min(max(v, float64(q.Lo)), float64(q.Hi))))
				}
				if got != want {
					t.Fatalf("row %d of %d, column %d of %d: %d, want %d", row, rows, x, n, got, want)
				}
			}
		})
	}
}

// TestDotNibbles compares dot products of 4-bit values with float64: rows that end within a
// block.
func TestDotNibbles(t *testing.T) {
	everySet(t, func(t *testing.T) {
		e := ElementKernels()
		if e == nil {
			t.Skip("plain Go")
		}
		r := rand.New(rand.NewPCG(8, 1))
		for range 300 {
			blocks, block := 1+r.IntN(6), 16*(1+r.IntN(8))
			n := blocks*block - r.IntN(block)
			x, w := make([]float32, n), make([]uint8, blocks*block/2)
			buf, sums, scales, zeros := make([]float32, blocks*block), make([]float32, blocks), make([]float32, blocks), make([]float32, blocks)
			for i := range x {
				x[i] = r.Float32() - 0.5
			}
			for i := range w {
				w[i] = uint8(r.Uint32())
			}
			for i := range scales {
				scales[i], zeros[i] = r.Float32(), float32(r.IntN(16))
			}
			SpreadNibbles(buf, sums, x)
			want, size := 0.0, 1.0
			for i, v := range x {
				q := w[i/2] >> (i % 2 * 4) & 15
				d := float64(v) * (float64(q) - float64(zeros[i/block])) * float64(scales[i/block])
				want += d
				size += math.Abs(float64(v)) * 15 * float64(scales[i/block])
			}
			// Each of the 16 lanes rounds its sum to 24 bits once for each term.
			if got := float64(e.DotNibbles(buf, w, scales, zeros, sums)); math.Abs(got-want) > size*float64(n)*0x1p-24 {
				t.Fatalf("%d values in blocks of %d: %v, want %v", n, block, got, want)
			}
		}
	})
}

// TestTranspose8 transposes matrices of bytes, completely or not at all.
func TestTranspose8(t *testing.T) {
	everySet(t, func(t *testing.T) {
		e := ElementKernels()
		if !e.HasRescaleColumns() {
			t.Skip("no kernel")
		}
		r := rand.New(rand.NewPCG(1, 8))
		for i := range 300 {
			rows, cols := r.IntN(300), r.IntN(80)
			if i == 0 {
				rows, cols = 700, 500
			}
			stepDst, stepSrc := cols+r.IntN(5), rows+r.IntN(5)
			src, dst := make([]uint8, cols*stepSrc+rows), make([]uint8, rows*stepDst+cols)
			for i := range src {
				src[i] = uint8(r.IntN(255) + 1)
			}
			if done := e.Transpose8(dst, stepDst, src, stepSrc, rows, cols); done != (cols >= 16) {
				t.Fatalf("%d by %d: done %v", rows, cols, done)
			} else if !done {
				cols = 0
			}
			for i, v := range dst {
				want := uint8(0)
				if stepDst > 0 && i/stepDst < rows && i%stepDst < cols {
					want = src[i%stepDst*stepSrc+i/stepDst]
				}
				if v != want {
					t.Fatalf("byte %d of %d by %d, %d apart: %d, want %d", i, rows, cols, stepDst, v, want)
				}
			}
		}
	})
}

// TestTranspose transposes matrices of words and checks that nothing else is written.
func TestTranspose(t *testing.T) {
	everySet(t, func(t *testing.T) {
		e := ElementKernels()
		if e == nil {
			t.Skip("plain Go")
		}
		testTranspose(t, e.Transpose, true)
		testTranspose(t, e.Transpose16, e.HasTranspose16())
	})
}

func testTranspose[T uint16 | uint32](t *testing.T, transpose func(dst []T, stepDst int, src []T, stepSrc, rows, cols int) bool, all bool) {
	r := rand.New(rand.NewPCG(1, 7))
	for range 300 {
		rows, cols := r.IntN(40), r.IntN(40)
		stepDst, stepSrc := cols+r.IntN(5), rows+r.IntN(5)
		src, dst := make([]T, cols*stepSrc+rows), make([]T, rows*stepDst+cols)
		for i := range src {
			src[i] = T(i + 1)
		}
		done := transpose(dst, stepDst, src, stepSrc, rows, cols)
		if done != (all && rows >= 8 && cols >= 8) {
			t.Fatalf("%d by %d: %v", rows, cols, done)
		}
		for i, v := range dst {
			want := T(0)
			if done && i/stepDst < rows && i%stepDst < cols {
				want = src[i%stepDst*stepSrc+i/stepDst]
			}
			if v != want {
				t.Fatalf("word %d of %d by %d, %d apart: %d, want %d", i, rows, cols, stepDst, v, want)
			}
		}
	}
}

// TestElementBytes compares with the definition: all pairs of 8-bit values, random scales.
func TestElementBytes(t *testing.T) {
	everySet(t, func(t *testing.T) {
		e := ElementKernels()
		if e == nil {
			t.Skip("plain Go")
		}
		r := rand.New(rand.NewPCG(5, 6))
		a, b, dst := make([]uint8, 1<<16), make([]uint8, 1<<16), make([]uint8, 1<<16)
		for i := range a {
			a[i], b[i] = uint8(i), uint8(i>>8)
		}
		for n := range 60 {
			signed, product := r.IntN(2) == 1, r.IntN(2) == 1
			number := func(c uint8) float32 {
				if signed {
					return float32(int8(c))
				}
				return float32(c)
			}
			lo, hi := float32(0), float32(255)
			if signed {
				lo, hi = -128, 127
			}
			za, zb, zy := number(uint8(r.Uint32())), number(uint8(r.Uint32())), number(uint8(r.Uint32()))
			sa, sb, sy := r.Float32()/8, r.Float32()/8, r.Float32()/8
			if r.IntN(4) == 0 {
				sa, sb, sy = 0.25, 0.25, 0.5 // ties
			}
			if n%8 == 7 {
				// Others with different magnitudes, and the limit of a ReLU.
				sa, sb, sy = float32(math.Ldexp(float64(sa), r.IntN(20)-10)), float32(math.Ldexp(float64(sb), r.IntN(20)-10)), sy/4
				lo = zy
			}
			q := NewCodes(sa, za, sb, zb, sy, zy, lo, hi, product)
			n := e.Combine(dst[:len(dst)-3], a, b, &q, signed, product)
			if n < len(dst)-10 {
				t.Fatal(n)
			}
			for i := range n {
				// Rounded separately: the compiler for arm64 would fuse the products and the sum.
				x, y := float32((number(a[i])-za)*sa), float32((number(b[i])-zb)*sb)
				v := x + y
				if product {
					v = x * y
				}
				v /= sy
				if !(v > lo-zy) {
					v = lo - zy
				}
				want := uint8(int32(math.RoundToEven(float64(min(v, hi-zy)))) + int32(zy))
				if dst[i] != want {
					t.Fatalf("%d and %d, signed %v, product %v, %+v: %d, want %d", a[i], b[i], signed, product, q, dst[i], want)
				}
			}
			for i := range e.MaxBytes(dst, a, b, signed) {
				want := a[i]
				if number(b[i]) > number(want) {
					want = b[i]
				}
				if dst[i] != want {
					t.Fatalf("the larger of %d and %d, signed %v: %d, want %d", a[i], b[i], signed, dst[i], want)
				}
			}
			from, to := uint8(r.Uint32()), uint8(r.Uint32())
			for i := range e.LimitBytes(dst, a, from, to, signed) {
				want := a[i]
				if number(want) < number(from) {
					want = from
				}
				if number(want) > number(to) {
					want = to
				}
				if dst[i] != want {
					t.Fatalf("%d from %d to %d, signed %v: %d, want %d", a[i], from, to, signed, dst[i], want)
				}
			}
		}
	})
}

// TestAbs covers numbers, zeros, infinities and NaN of both signs.
func TestAbs(t *testing.T) {
	everySet(t, func(t *testing.T) {
		e := ElementKernels()
		if e == nil {
			t.Skip("plain Go")
		}
		for n := range 70 {
			src, dst := make([]float32, n), make([]float32, n+1)
			for i := range src {
				src[i] = []float32{-1, 2, float32(math.Copysign(0, -1)), float32(math.Inf(-1)), float32(math.NaN()), -1e-42}[i%6]
			}
			dst[n] = -7
			e.Abs(dst[:n], src)
			for i, x := range src {
				if want := float32(math.Abs(float64(x))); dst[i] != want && want == want || math.Signbit(float64(dst[i])) {
					t.Fatalf("|%v| = %v", x, dst[i])
				}
			}
			if dst[n] != -7 {
				t.Fatalf("wrote past the end of %d", n)
			}
		}
	})
}

// TestThresholds compares kernels that use signs and limits with their definitions, bit by bit.
func TestThresholds(t *testing.T) {
	everyElements(t, func(t *testing.T, e *Elements, r *rand.Rand, a, _ []float32, n int) {
		limit, bias := float32(r.IntN(4))/2, float32(r.IntN(4)-2)/4
		for name, f := range map[string]struct {
			vectors func(dst, src []float32) int
			one     func(x float32) float32
		}{
			"softsign": {e.Softsign, func(x float32) float32 { return x / (1 + float32(math.Abs(float64(x)))) }},
			"sign": {e.Signum, func(x float32) float32 {
				switch {
				case x > 0:
					return 1
				case x < 0:
					return -1
				}
				return x
			}},
			"above": {func(dst, src []float32) int { return e.Above(dst, src, limit) }, func(x float32) float32 {
				if x > limit {
					return x
				}
				return 0
			}},
			"shrink": {func(dst, src []float32) int { return e.Shrink(dst, src, limit, bias) }, func(x float32) float32 {
				switch {
				case x < -limit:
					return x + bias
				case x > limit:
					return x - bias
				}
				return 0
			}},
		} {
			out := make([]float32, n+1)
			for i := range out {
				out[i] = 7
			}
			sameFloats(t, name, out, f.vectors(out[:n], a[:n]), func(i int) float32 { return f.one(a[i]) })
		}
	})
}
