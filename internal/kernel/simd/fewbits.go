package simd

// FewBits are loops over weights of 2, 4 or 8 bits with a sign, which have a scale, and may have a zero point, for each block of steps of a
// column. Columns come in panels of Cols. Of 2 and 4 bits a group of steps is a word of each column, its first step in the lowest bits; of 8
// bits it is a byte of each column for each of 8 steps.
type FewBits struct {
	Set        Set
	Cols       int
	row, widen [3]func(t *BitTile) // for 2, 4 and 8 bits
}

// FewBitKernels of the current set; nil where there are none.
func FewBitKernels() *FewBits { return fewBits.pick() }

// BitSteps is the number of steps of a group of weights.
func BitSteps(bits int) int {
	if bits == 8 {
		return 8
	}
	return 32 / bits
}

// BitTile is a piece of work on a panel. Scales and zero points are those of the blocks, Cols of each.
type BitTile struct {
	Y, X   *float32
	W      *uint8
	Scales *float32
	Zeros  *int8    // nil for none
	Sums   *float32 // of x in each block, where there are zero points
	Groups int      // of a block
	Blocks int
	values *float32
}

// bitValues are the numbers of codes of two's complement: of 2 bits four times, and of 4 bits.
var bitValues = [2][16]float32{{0, 1, -2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1, -2, -1}, fourBitValues}

func (t *BitTile) loop(of *[3]func(t *BitTile), bits int) {
	i := bits/2 - bits/8 - 1 // 0, 1, 2
	t.values = &bitValues[min(i, 1)][0]
	of[i](t)
}

// Row writes to y the products of the row x with Cols columns.
func (f *FewBits) Row(t *BitTile, bits int) { t.loop(&f.row, bits) }

// Widen writes to y groups of a block in float32, of half of the columns of a panel: a row of Cols/2 for each step. W, scales and zero points
// begin with those columns.
func (f *FewBits) Widen(t *BitTile, bits int) { t.loop(&f.widen, bits) }
