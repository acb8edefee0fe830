package simd

// FewBits are loops over weights of 2, 4 or 8 bits, which have a scale, and may have a zero point, for each block of steps of a
// column. Columns come in panels of Cols. A group of steps is a word of each column, its first step in the lowest bits.
type FewBits struct {
	Set  Set
	Cols int
	// Raw says that codes have no sign, and are around the middle of their range; others are of two's complement.
	Raw        bool
	row, widen [3]func(t *BitTile) // for 2, 4 and 8 bits
	// Of rows of digits, in sets that have such loops: what arranges them, else plain Go; how many steps of a block they take at once, and products for 2, 4 and 8 bits, of
	// one digit and three, by rows, of one with all columns.
	arrange func(t *BitDigits)
	steps   int
	digits  [3][2][]func(t *BitTile)
}

// FewBitKernels of the current set; nil where there are none.
func FewBitKernels() *FewBits { return fewBits.pick() }

// BitSteps is the number of steps of a group of weights.
func BitSteps(bits int) int { return 32 / bits }

// BitTile is a piece of work on a panel. Scales and zero points are those of the blocks, Cols of each.
type BitTile struct {
	Y, X   *float32
	W      *uint8
	Scales *float32
	Zeros  *int8    // nil for none
	Sums   *float32 // of x in each block
	Groups int      // of a block
	Blocks int
	values *float32
	middle float32
	// Of [FewBits.Digits], from row to row, in bytes: of X, of Sums and of Y.
	RowX, RowSums, RowY int
}

// bitValues are the numbers of raw codes: of 2 bits four times, and of 4 bits.
var bitValues = [2][16]float32{{-2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1}, {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}}

// bitsAt is the place of loops for so many bits.
func bitsAt(bits int) int { return bits/2 - bits/8 - 1 } // 0, 1, 2

func (t *BitTile) loop(of *[3]func(t *BitTile), bits int) {
	i := bitsAt(bits)
	t.values, t.middle = &bitValues[min(i, 1)][0], float32(int(1)<<(bits-1))
	of[i](t)
}

// Arrange writes a row x as [FewBits.Row] takes it, to whole blocks, and its sum in each of them.
func (f *FewBits) Arrange(dst, sums, x []float32, bits int) {
	block, steps := len(dst)/len(sums), BitSteps(bits)
	clear(dst[copy(dst, x):])
	for b := range sums {
		row, s := dst[b*block:][:block], float32(0)
		for _, v := range row {
			s += v
		}
		sums[b] = s
		if !f.Raw {
			continue
		}
		for g := 0; g < block; g += steps {
			by := float32(1)
			for i, v := range row[g:][:steps] {
				row[g+i] = v * by
				by /= float32(int(1) << bits)
			}
		}
	}
}

// Row writes to y the products of the row x, as [FewBits.Arrange] has it, with Cols columns.
func (f *FewBits) Row(t *BitTile, bits int) { t.loop(&f.row, bits) }

// Widen writes to y groups of a block in float32, of half of the columns of a panel: a row of Cols/2 for each step. W, scales and zero points
// begin with those columns.
func (f *FewBits) Widen(t *BitTile, bits int) { t.loop(&f.widen, bits) }
