package simd

import (
	"math"
	"unsafe"
)

// The kernels of this file quantise rows of float32 to integers of one or three signed 8-bit
// digits, with a scale for each block. Low-bit weights are multiplied by the digits with 4-way
// dot products, which are exact.

// digitLimit returns the largest magnitude of an integer of one or three digits.
func digitLimit(digits int) float32 {
	if digits == 1 {
		return 127
	}
	return 0x7F7F00 // no rounding exceeds 0x7F7F7F
}

// BitRecord is the number of 32-bit values for each block of a row of digits.
const BitRecord = 8

// BitDigits holds the arguments for the conversion of a row to digits.
type BitDigits struct {
	x       *float32
	y       *uint8
	records *float32
	chunks  int // groups of 16 steps of a block
	blocks  int
	order   *[64]uint8 // of the bytes of 16 integers
	powers  *[16]float32
	store   uint64 // mask of the 32-bit words that are written for 16 steps
	line    int    // bytes for 16 steps
	limit   float32
	start   int32 // factor of the sums of digits
	// The bits of the largest magnitude of all blocks; least is the minimum over the blocks of
	// the bits of the block's largest magnitude, minus 1.
	most, least uint32
}

// digitOrders is indexed by bits (2, 4, 8) and digits (1, 3). For each digit there are four words
// of four steps. They have the order in which a shifted word of weights holds these steps in its
// bytes.
var digitOrders = func() (orders [3][2][64]uint8) {
	for i, bits := range []int{2, 4, 8} {
		for kind, digits := range []int{1, 3} {
			for at := range 64 {
				digit, word, place := at/16, at/4%4, at%4
				parts := 8 / bits
				step := word/parts*4*parts + place*parts + word%parts
				if digit < digits {
					orders[i][kind][at] = uint8(4*step + digit)
				} else {
					orders[i][kind][at] = 3 // a zero byte
				}
			}
		}
	}
	return orders
}()

var digitPowers = [16]float32{1, 1, 1, 1, 1 << 8, 1 << 8, 1 << 8, 1 << 8, 1 << 16, 1 << 16, 1 << 16, 1 << 16}

// minDigitMagnitude is the least magnitude of a nonzero block whose scale is a normal number.
const minDigitMagnitude = 0x1p-80

// digitConstants holds constants of the AVX2 kernels: the mask of the lower 4 bits of bytes, the
// sign bits of 4-bit values, 16-bit ones, and the middle of the range.
var digitConstants = func() (b [4][32]uint8) {
	middle := math.Float32bits(8)
	for i := range 32 {
		b[0][i], b[1][i], b[2][i], b[3][i] = 15, 0x88, uint8(1-i%2), uint8(middle>>(i%4*8))
	}
	return b
}()

// DigitRows returns the maximum number of rows of [LowBit.Digits] for a block size in steps. It
// returns 0 if no kernel is available.
func (f *LowBit) DigitRows(bits, digits, block int) int {
	if f.steps == 0 || block%f.steps != 0 {
		return 0
	}
	return len(f.digits[bitsIndex(bits)][digits/2])
}

// ArrangeDigits converts a row x of complete blocks for [LowBit.Digits]. It writes digits bytes
// for each value, and [BitRecord] values for each block. It reports whether the digits represent
// the row: all values must be finite, and the largest magnitude of a nonzero block must be at
// least minDigitMagnitude.
func (f *LowBit) ArrangeDigits(t *BitDigits, dst []uint8, records, x []float32, bits, digits int) bool {
	blocks := len(records) / BitRecord
	*t = BitDigits{
		x: &x[0], y: &dst[0], records: &records[0], chunks: len(x) / blocks / 16, blocks: blocks,
		order: &digitOrders[bitsIndex(bits)][digits/2], powers: &digitPowers, store: 1<<(4*digits) - 1, line: 16 * digits, limit: digitLimit(digits), start: -1 << (bits - 1),
	}
	if f.arrange != nil {
		f.arrange(t)
	} else {
		t.arrange(dst, records, x)
	}
	return t.most <= math.Float32bits(math.MaxFloat32) && t.least >= math.Float32bits(minDigitMagnitude)-1
}

// arrange is ArrangeDigits in plain Go, without the initial sums of digits.
func (t *BitDigits) arrange(dst []uint8, records, x []float32) {
	block := len(x) / t.blocks
	t.most, t.least = 0, math.MaxUint32
	for b := range t.blocks {
		row, top := x[b*block:][:block], uint32(0)
		for _, v := range row {
			// The bits of a NaN are larger than those of all numbers.
			top = max(top, math.Float32bits(v)&^(1<<31))
		}
		t.most, t.least = max(t.most, top), min(t.least, top-1)
		if top > math.Float32bits(math.MaxFloat32) {
			return
		}
		most := max(math.Float32frombits(top), minDigitMagnitude)
		by, sum := t.limit/most, int64(0)
		for c := 0; c < block; c += 16 {
			var bytes [64]uint8
			for i, v := range row[c:][:16] {
				const whole = 3 << 51 // adding it rounds to an integer
				n := int32(math.Float64bits(float64(v*by) + whole))
				sum += int64(n)
				n = (n + 0x808080) ^ 0x808080 // bytes are signed digits
				bytes[4*i], bytes[4*i+1], bytes[4*i+2] = uint8(n), uint8(n>>8), uint8(n>>16)
			}
			for i := range dst[:t.line] {
				dst[i] = bytes[t.order[i]]
			}
			dst = dst[t.line:]
		}
		records[b*BitRecord+3], records[b*BitRecord+4] = most/t.limit, float32(sum)
	}
}

// RoundDigits writes the values that one digit per element of x, a block, represents. A block that
// digits do not represent is copied.
func RoundDigits(dst, x []float32) {
	top := uint32(0)
	for _, v := range x {
		top = max(top, math.Float32bits(v)&^(1<<31))
	}
	most := math.Float32frombits(top)
	if top > math.Float32bits(math.MaxFloat32) || most < minDigitMagnitude {
		copy(dst, x)
		return
	}
	by, scale := digitLimit(1)/most, most/digitLimit(1)
	for i, v := range x {
		dst[i] = float32(math.RoundToEven(float64(v*by))) * scale
	}
}

// Digits writes to y the products of rows of digits with half of the columns of a panel; a single
// row uses all columns. X points to the digits, Sums to the records. A block has block steps.
func (f *LowBit) Digits(t *BitTile, bits, digits, rows, block int) {
	t.Groups, t.middle = block/f.steps, 1<<8 // weight of a digit
	t.values = (*float32)(unsafe.Pointer(&digitConstants))
	f.digits[bitsIndex(bits)][digits/2][rows-1](t)
}
