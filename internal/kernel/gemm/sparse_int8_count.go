package gemm

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Counting zeros of 8-bit weights before they are listed, in words of eight.

// sampleSparseInts samples the weights and reports whether counting the zeros is worth the time.
// 8-bit weights of any model have some zeros; few of them are adjacent.
func sampleSparseInts[W quantise.Weight](src Source[W], k int) bool {
	const sample, side = 512, simd.SparseRows
	down, along := max(1, src.N/side), max(1, k/side)
	every := max(1, down*along/sample) | 1
	bytes, zero := weightBytes(src), uint32(uint8(src.Zero))*0x01010101
	zeros, rows, steps, seen := 0, 0, 0, 0
	for i := 0; i < down*along; i += every {
		r0, k0 := i/along*side, i%along*side
		if bytes != nil && r0+side <= src.N && k0+side <= k {
			any := uint64(0)
			for r := range side {
				v := nonZeroBytes(uint64(binary.LittleEndian.Uint32(bytes[(r0+r)*src.Vec+k0:]) ^ zero))
				zeros += side - bits.OnesCount64(v)
				if any |= v; v == 0 {
					rows++
				}
			}
			steps += side - bits.OnesCount64(any)
			seen++
			continue
		}
		var inRow, inStep [side]int
		for r := range min(side, src.N-r0) {
			for c := range min(side, k-k0) {
				if int32(src.V[(r0+r)*src.Vec+(k0+c)*src.Elem]) == src.Zero {
					inRow[r]++
					inStep[c]++
				}
			}
		}
		seen++
		for j := range side {
			zeros += inRow[j]
			rows += inRow[j] / side
			steps += inStep[j] / side
		}
	}
	return zeros >= 6*seen || rows >= seen/4 || steps >= seen/4
}

// weightBytes returns 8-bit weights with contiguous rows; nil for others, and for a zero point
// that is outside the weight type.
func weightBytes[W quantise.Weight](src Source[W]) []uint8 {
	var w W
	if unsafe.Sizeof(w) != 1 || src.Elem != 1 || int32(W(src.Zero)) != src.Zero {
		return nil
	}
	return unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(src.V))), len(src.V))
}

// stageRows writes steps of n weight rows, from step k0 of row r, minus their zero point; rows
// are SparseSteps apart.
func stageRows[W quantise.Weight](dst []int8, src Source[W], r, n, k0, steps int) {
	if bytes := weightBytes(src); bytes != nil && src.Zero == 0 {
		// Unsigned weights that fit 8 bits minus their zero point are below 128.
		for i := range n {
			copy(unsafe.Slice((*uint8)(unsafe.Pointer(&dst[i*SparseSteps])), steps), bytes[(r+i)*src.Vec+k0:])
		}
		return
	}
	if src.Elem == 1 {
		for i := range n {
			row := dst[i*SparseSteps:][:steps]
			for j, v := range src.V[(r+i)*src.Vec+k0:][:steps] {
				row[j] = int8(int32(v) - src.Zero)
			}
		}
		return
	}
	for j := range steps {
		from := src.V[r*src.Vec+(k0+j)*src.Elem:]
		for i := range n {
			dst[i*SparseSteps+j] = int8(int32(from[i*src.Vec]) - src.Zero)
		}
	}
}

// loadEight returns the weights of steps i to i+7 of a row as the bytes of a word, 0 from step
// steps.
func loadEight(row []int8, i, steps int) (v uint64) {
	if i+8 <= steps {
		return binary.LittleEndian.Uint64(unsafe.Slice((*uint8)(unsafe.Pointer(&row[i])), 8))
	}
	for j, w := range row[i:steps] {
		v |= uint64(uint8(w)) << (8 * j)
	}
	return v
}

// highBits has the highest bit of each byte set.
const highBits = 0x8080808080808080

// nonZeroBytes sets the highest bit of each byte that is not zero.
func nonZeroBytes(v uint64) uint64 { return ((v&^highBits + ^uint64(highBits)) | v) & highBits }

// sumBytes adds up at most SparseSteps steps of a row.
func sumBytes(row []int8, steps int) int32 {
	const odd = 0x00ff00ff00ff00ff
	// 16 bits each, which hold the sums of all words: less than 2·255·SparseSteps/8
	lanes := uint64(0)
	for i := 0; i < steps; i += 8 {
		v := loadEight(row, i, steps) ^ highBits // each byte plus 128
		lanes += v&odd + v>>8&odd
	}
	sum := lanes>>48 + lanes>>32&0xffff + lanes>>16&0xffff + lanes&0xffff
	return int32(sum) - int32(128*scratch.RoundUp(steps, 8))
}

// countFours adds up the groups of some steps of n ≤ SparseRows rows.
func countFours(near []int8, n, steps int, fours *[simd.SparseKinds]int, rest *int) {
	var single [simd.SparseRows]int
	neighbours, together := 0, 0
	for i := 0; i < steps; i += 8 {
		any := uint64(0)
		for r := range n {
			v := nonZeroBytes(loadEight(near[r*SparseSteps:], i, steps))
			any |= v
			single[r] += bits.OnesCount64(v)
			// A nonzero half carries into the bits above it.
			neighbours += int((v&math.MaxUint32 + math.MaxUint32) >> 32)
			neighbours += int((v>>32 + math.MaxUint32) >> 32)
		}
		together += bits.OnesCount64(any)
	}
	fours[simd.SparseFours] += neighbours
	for _, m := range single[:n] {
		fours[simd.SparseRow] += (m + 3) / 4
		if n < simd.SparseRows {
			*rest += (m + 3) / 4
		}
	}
	if n == simd.SparseRows {
		fours[simd.SparseRowsTogether] += n * ((together + 3) / 4)
	}
}
