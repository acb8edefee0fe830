package simd

import "math"

// Rows of floats become whole numbers of one digit or three, of 8 bits with a sign, times a scale for each block. Products of digits by weights of few bits are of four
// at once, and exact.

// DigitLimit is the largest magnitude of a whole number of one digit or three.
func DigitLimit(digits int) float32 {
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

// DigitRows is the most rows that [FewBits.Digits] takes, 0 in sets that have no such loops.
func (f *FewBits) DigitRows(digits int) int { return len(f.digits[0][digits/2]) }

// ArrangeDigits writes blocks of a row x of whole blocks as [FewBits.Digits] takes it: digits bytes for each value, and [BitRecord] numbers for each block. It tells whether
// that represents the row: whether it is finite, and no block has but the smallest numbers.
func (f *FewBits) ArrangeDigits(t *BitDigits, dst []uint8, records, x []float32, bits, digits int) bool {
	blocks := len(records) / BitRecord
	*t = BitDigits{
		x: &x[0], y: &dst[0], records: &records[0], chunks: len(x) / blocks / 16, blocks: blocks,
		order: &digitOrders[bitsAt(bits)][digits/2], powers: &digitPowers, store: 1<<(4*digits) - 1, line: 16 * digits, limit: DigitLimit(digits), start: -1 << (bits - 1),
	}
	f.arrange(t)
	return t.most <= math.Float32bits(math.MaxFloat32) && t.least >= math.Float32bits(leastDigits)-1
}

// Digits writes to y the products of rows of digits with half of the columns of a panel, of one row with all columns. X points to the digits, Sums to
// the records; Groups are of 16 steps.
func (f *FewBits) Digits(t *BitTile, bits, digits, rows int) {
	t.middle = 1 << 8 // what a digit is worth
	f.digits[bitsAt(bits)][digits/2][rows-1](t)
}
