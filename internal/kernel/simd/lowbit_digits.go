package simd

import (
	"math"
	"unsafe"
)

// Rows of floats become whole numbers of one digit or three, of 8 bits with a sign, times a scale for each block. Products of digits by weights of few bits are of four
// at once, and exact.

// digitLimit is the largest magnitude of a whole number of one digit or three.
func digitLimit(digits int) float32 {
	if digits == 1 {
		return 127
	}
	return 0x7F7F00 // no rounding makes it more than 0x7F7F7F
}

// BitRecord is how many numbers of 32 bits there are for each block of a row of digits.
const BitRecord = 8

// BitDigits is a row that becomes digits.
type BitDigits struct {
	x           *float32
	y           *uint8
	records     *float32
	chunks      int // of 16 steps, of a block
	blocks      int
	order       *[64]uint8 // of the bytes of 16 numbers
	powers      *[16]float32
	store       uint64 // the words of 16 bytes' lines that are written
	line        int    // bytes of 16 steps
	limit       float32
	start       int32  // what sums of digits are multiplied by
	most, least uint32 // of the bits of the blocks' largest magnitudes, and of one less
}

// digitOrders are for 2, 4 and 8 bits, of one digit and three: of each digit four words of four steps, in the order in which a word of weights that is
// shifted has them in its bytes.
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
					orders[i][kind][at] = 3 // there are zeros
				}
			}
		}
	}
	return orders
}()

var digitPowers = [16]float32{1, 1, 1, 1, 1 << 8, 1 << 8, 1 << 8, 1 << 8, 1 << 16, 1 << 16, 1 << 16, 1 << 16}

// leastDigits is the least magnitude of a block, but for zero, whose scale is a good number.
const leastDigits = 0x1p-80

// digitBytes are what loops of AVX2 need: the lowest bits of bytes, the signs of codes of 4 bits, ones of 16 bits, and the middle of the range.
var digitBytes = func() (b [4][32]uint8) {
	middle := math.Float32bits(8)
	for i := range 32 {
		b[0][i], b[1][i], b[2][i], b[3][i] = 15, 0x88, uint8(1-i%2), uint8(middle>>(i%4*8))
	}
	return b
}()

// DigitRows is the most rows that [FewBits.Digits] takes, of blocks of so many steps; 0 in sets that have no such loops.
func (f *FewBits) DigitRows(bits, digits, block int) int {
	if f.steps == 0 || block%f.steps != 0 {
		return 0
	}
	return len(f.digits[bitsAt(bits)][digits/2])
}

// ArrangeDigits writes blocks of a row x of whole blocks as [FewBits.Digits] takes it: digits bytes for each value, and [BitRecord] numbers for each block. It tells whether
// that represents the row: whether it is finite, and no block has but the smallest numbers.
func (f *FewBits) ArrangeDigits(t *BitDigits, dst []uint8, records, x []float32, bits, digits int) bool {
	blocks := len(records) / BitRecord
	*t = BitDigits{
		x: &x[0], y: &dst[0], records: &records[0], chunks: len(x) / blocks / 16, blocks: blocks,
		order: &digitOrders[bitsAt(bits)][digits/2], powers: &digitPowers, store: 1<<(4*digits) - 1, line: 16 * digits, limit: digitLimit(digits), start: -1 << (bits - 1),
	}
	if f.arrange != nil {
		f.arrange(t)
	} else {
		t.arrange(dst, records, x)
	}
	return t.most <= math.Float32bits(math.MaxFloat32) && t.least >= math.Float32bits(leastDigits)-1
}

// arrange is ArrangeDigits in plain Go, without what the sums of digits begin with.
func (t *BitDigits) arrange(dst []uint8, records, x []float32) {
	block := len(x) / t.blocks
	t.most, t.least = 0, math.MaxUint32
	for b := range t.blocks {
		row, top := x[b*block:][:block], uint32(0)
		for _, v := range row {
			top = max(top, math.Float32bits(v)&^(1<<31)) // what is no number is more than all others
		}
		t.most, t.least = max(t.most, top), min(t.least, top-1)
		if top > math.Float32bits(math.MaxFloat32) {
			return
		}
		most := max(math.Float32frombits(top), leastDigits)
		by, sum := t.limit/most, int64(0)
		for c := 0; c < block; c += 16 {
			var bytes [64]uint8
			for i, v := range row[c:][:16] {
				const whole = 3 << 51 // a sum with it is rounded to a whole number
				n := int32(math.Float64bits(float64(v*by) + whole))
				sum += int64(n)
				n = (n + 0x808080) ^ 0x808080 // bytes are digits
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

// Digits writes to y the products of rows of digits with half of the columns of a panel, of one row with all columns. X points to the digits, Sums to
// the records; a block has so many steps.
func (f *FewBits) Digits(t *BitTile, bits, digits, rows, block int) {
	t.Groups, t.middle = block/f.steps, 1<<8 // what a digit is worth
	t.values = (*float32)(unsafe.Pointer(&digitBytes))
	f.digits[bitsAt(bits)][digits/2][rows-1](t)
}
