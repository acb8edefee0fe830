package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestBitTile checks the field offsets that the kernels use: bitsY and the following constants in
// internal/kernel/gen.
func TestBitTile(t *testing.T) {
	t.Parallel()
	var x BitTile
	for i, at := range []uintptr{
		unsafe.Offsetof(x.Y), unsafe.Offsetof(x.X), unsafe.Offsetof(x.W), unsafe.Offsetof(x.Scales), unsafe.Offsetof(x.Zeros),
		unsafe.Offsetof(x.Sums), unsafe.Offsetof(x.Groups), unsafe.Offsetof(x.Blocks), unsafe.Offsetof(x.values), unsafe.Offsetof(x.middle),
		unsafe.Offsetof(x.RowX), unsafe.Offsetof(x.RowSums), unsafe.Offsetof(x.RowY),
	} {
		if unsafe.Sizeof(at) == 8 && at != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, at)
		}
	}
}

// TestBitDigits does the same for rows of digits: digitsX and the following constants.
func TestBitDigits(t *testing.T) {
	t.Parallel()
	var x BitDigits
	for i, at := range []uintptr{
		unsafe.Offsetof(x.x), unsafe.Offsetof(x.y), unsafe.Offsetof(x.records), unsafe.Offsetof(x.chunks), unsafe.Offsetof(x.blocks), unsafe.Offsetof(x.order),
		unsafe.Offsetof(x.powers), unsafe.Offsetof(x.store), unsafe.Offsetof(x.line), unsafe.Offsetof(x.limit), unsafe.Offsetof(x.most),
	} {
		if unsafe.Sizeof(at) == 8 && at != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, at)
		}
	}
}

// TestArrangeDigits checks that each instruction set has the digits of plain Go. The sums of a
// row may be rounded differently.
func TestArrangeDigits(t *testing.T) {
	t.Parallel()
	f := LowBitKernels()
	if f == nil || f.arrange == nil {
		t.Skip("plain Go converts digits")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		bits, digits, block, blocks := 2<<(i%3), 1+i/3%2*2, 16*(1+r.IntN(5)), 1+r.IntN(4)
		x := make([]float32, block*blocks)
		for i := range x {
			x[i] = float32(r.NormFloat64() * math.Exp2(float64(r.IntN(40)-30)))
		}
		if odd := []float32{1, 0, 1e-30, float32(math.NaN()), float32(math.Inf(-1))}[r.IntN(5)]; odd != 1 {
			for i := range x[:block] {
				x[i] = odd
			}
		}
		got, want := make([]uint8, len(x)*digits), make([]uint8, len(x)*digits)
		records, others := make([]float32, blocks*BitRecord), make([]float32, blocks*BitRecord)
		plain := LowBit{}
		fits := plain.ArrangeDigits(&BitDigits{}, want, others, x, bits, digits)
		if f.ArrangeDigits(&BitDigits{}, got, records, x, bits, digits) != fits {
			t.Fatalf("row %d fits: not %v", i, fits)
		}
		if !fits {
			continue
		}
		if !slices.Equal(got, want) {
			t.Fatalf("row %d: digits %d, want %d", i, got, want)
		}
		for b := range blocks {
			scale, sum := records[b*BitRecord+3], records[b*BitRecord+4]
			most := float64(digitLimit(digits)) * float64(block)
			if d := float64(sum - others[b*BitRecord+4]); scale != others[b*BitRecord+3] || math.Abs(d) > most*0x1p-22 {
				t.Fatalf("row %d, block %d: scale %v and sum %v, want %v", i, b, scale, sum, others[b*BitRecord+3:][:2])
			}
		}
	}
}
