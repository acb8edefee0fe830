package simd

// LowBit holds GEMV kernels for weights of 2, 4 or 8 bits. The weights have a scale, and
// optionally a zero point, for each block of steps of a column. Columns come in panels of Cols. A
// group of steps is one 32-bit word of each column, with the first step in the lowest bits.
type LowBit struct {
	Set  Set
	Cols int
	// Raw reports that weights are unsigned, with an offset of half their range; else they are in
	// two's complement.
	Raw        bool
	row, widen [3]func(t *BitTile) // for 2, 4 and 8 bits
	// Kernels for rows of digits, if available. arrange converts a row; if it is nil, plain Go
	// does. steps is the number of steps of a block that a kernel takes at once. digits is
	// indexed by bits (2, 4, 8), digits (1, 3) and rows; the kernel for one row takes all
	// columns.
	arrange func(t *BitDigits)
	steps   int
	digits  [3][2][]func(t *BitTile)
}

// LowBitKernels returns the kernels of the current instruction set, or nil if they are not
// available.
func LowBitKernels() *LowBit { return lowBitKernels.pick() }

// BitSteps returns the number of steps of a group of weights.
func BitSteps(bits int) int { return 32 / bits }

// BitTile holds the arguments for one panel. Each block has Cols scales and Cols zero points.
type BitTile struct {
	Y, X   *float32
	W      *uint8
	Scales *float32
	Zeros  *int8    // nil if absent
	Sums   *float32 // of x in each block
	Groups int      // of a block
	Blocks int
	values *float32
	middle float32
	// For [LowBit.Digits]: bytes from row to row of X, of Sums and of Y.
	RowX, RowSums, RowY int
}

// bitValues holds the values of raw weights: of 2 bits four times, and of 4 bits.
var bitValues = [2][16]float32{{-2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1}, {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}}

// bitsIndex returns the index of the kernels for a number of bits.
func bitsIndex(bits int) int { return bits/2 - bits/8 - 1 } // 0, 1, 2

func (t *BitTile) run(of *[3]func(t *BitTile), bits int) {
	i := bitsIndex(bits)
	t.values, t.middle = &bitValues[min(i, 1)][0], float32(int(1)<<(bits-1))
	of[i](t)
}

// Arrange converts a row x for [LowBit.Row]. It pads the row to complete blocks and writes the
// sum of each block.
func (f *LowBit) Arrange(dst, sums, x []float32, bits int) {
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

// Row writes to y the products of the row x with Cols columns. x comes from [LowBit.Arrange].
func (f *LowBit) Row(t *BitTile, bits int) { t.run(&f.row, bits) }

// Widen dequantises groups of a block to y in float32, for half of the columns of a panel: a row
// of Cols/2 values for each step. W, scales and zero points start at these columns.
func (f *LowBit) Widen(t *BitTile, bits int) { t.run(&f.widen, bits) }
