package gemm

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// LowBitMatrix is an [n, k] matrix of block-quantised weights of 2, 4 or 8 bits, with a scale and
// optionally a zero point per block of a row. The weights stay quantised. Few float rows multiply
// them as they are read; more rows share a panel part that is widened to float32.
type LowBitMatrix struct {
	f    *simd.LowBit
	wide *simd.Floats // kernels for widened panels
	LowBitShape
	blocks int
	codes  []uint8   // column panels of groups of K steps
	scales []float32 // per block, one for each column
	zeros  []int8    // like scales; nil for none
	// offsets [blocks, n] are added, times the sum of a block's activations; nil for none.
	offsets *PackedB
}

// LowBitShape holds the width of the weights in bits, the matrix size, and the block length of a
// row.
type LowBitShape struct{ Bits, K, N, Block int }

// LowBitBlock divides all block lengths.
const LowBitBlock = 16

// Supported reports whether kernels for such a matrix exist.
func (s LowBitShape) Supported() bool {
	f, floats := simd.LowBitKernels(), simd.FloatKernels()
	return f != nil && floats != nil && 2*floats.Cols == f.Cols && s.N > 0 && s.K > 0 && s.Block > 0 && s.Block%LowBitBlock == 0 && (s.Bits == 2 || s.Bits == 4 || s.Bits == 8)
}

// lowBitMin is the minimum number of weights for which more than two rows use the low-bit format:
// smaller matrices are as fast in float32, widened once.
const lowBitMin = 1 << 17

// KeepsLowBit reports whether the weights stay in the low-bit format for the given number of
// rows.
func (s LowBitShape) KeepsLowBit(rows int) bool {
	return s.Supported() && (rows <= 2 || s.K*s.N >= lowBitMin)
}

// lowBitRows is the maximum number of rows that are multiplied one by one: widening the weights
// takes as long as two to three rows.
const lowBitRows = 3

// NewLowBitMatrix takes rows of quantised weights that fill their blocks, the first one of a byte
// in its lowest bits, and scales and zero points [n, blocks], nil for none. signed weights are in
// two's complement. Unsigned weights and their zero points are offset by the middle of their
// range. It returns nil if no kernels exist for the matrix.
func NewLowBitMatrix(s LowBitShape, codes []uint8, signed bool, scales []float32, zeros []int8) *LowBitMatrix {
	if !s.Supported() {
		return nil
	}
	f := simd.LowBitKernels()
	m := &LowBitMatrix{f: f, wide: simd.FloatKernels(), LowBitShape: s, blocks: (s.K + s.Block - 1) / s.Block}
	row := m.blocks * s.Block * s.Bits / 8
	if len(codes) != s.N*row || len(scales) != s.N*m.blocks || zeros != nil && len(zeros) != len(scales) {
		return nil
	}
	wide := scratch.RoundUp(s.N, f.Cols)
	m.codes, m.scales = hugepages.Make[uint8](wide*row), hugepages.Make[float32](wide*m.blocks)
	for j := 0; j < s.N; j += f.Cols {
		n := min(f.Cols, s.N-j)
		move.Transpose(wordsIn(m.codes[j*row:][:f.Cols*row]), f.Cols, wordsIn(codes[j*row:][:n*row]), row/4, row/4, n)
		move.Transpose(m.scales[j*m.blocks:], f.Cols, scales[j*m.blocks:], m.blocks, m.blocks, n)
	}
	if signed == f.Raw {
		flip := uint64(0x8080808080808080)
		if s.Bits < 8 {
			flip = 0x8888888888888888
		}
		if s.Bits == 2 {
			flip = 0xAAAAAAAAAAAAAAAA
		}
		for i := 0; i < len(m.codes); i += 8 {
			binary.LittleEndian.PutUint64(m.codes[i:], binary.LittleEndian.Uint64(m.codes[i:])^flip)
		}
	}
	if zeros != nil {
		m.zeros = make([]int8, wide*m.blocks)
		for i, z := range zeros {
			n, b := i/m.blocks, i%m.blocks
			m.zeros[n/f.Cols*f.Cols*m.blocks+b*f.Cols+n%f.Cols] = z
		}
	}
	return m
}

// SetOffsets adds offsets [n, blocks] to the weights of each block, for zero points that are not
// quantised values: scale·(middle of the range − zero point).
func (m *LowBitMatrix) SetOffsets(offsets []float32) {
	m.offsets = PackB(m.blocks, m.N, offsets, 0, true)
}

// wordsIn views bytes as words, or copies them if they are not aligned.
func wordsIn(b []uint8) []uint32 {
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%4 != 0 {
		moved := make([]uint32, len(b)/4)
		copy(unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(moved))), len(b)), b)
		return moved
	}
	return move.Words(b)
}

var bitTiles = sync.Pool{New: func() any { return new(simd.BitTile) }}

func releaseBitTile(t *simd.BitTile) {
	*t = simd.BitTile{}
	bitTiles.Put(t)
}

// Name returns the kernel name.
func (m *LowBitMatrix) Name() string {
	return [...]string{2: "2bits/", 4: "4bits/", 8: "8bits/"}[m.Bits] + m.f.Set.String()
}

// tile points t to the weights of a panel from a block and one of its steps, for both halves of
// the columns or for the second half.
func (m *LowBitMatrix) tile(t *simd.BitTile, panel, b, step, half int) {
	row, cols := m.blocks*m.Block*m.Bits/8, m.f.Cols
	at := half * cols / 2
	t.W = &m.codes[panel*cols*row+(b*m.Block+step)*cols*m.Bits/8+4*at]
	scale := panel*cols*m.blocks + b*cols + at
	if t.Scales, t.Zeros = &m.scales[scale], nil; m.zeros != nil {
		t.Zeros = &m.zeros[scale]
	}
}

// widen writes K steps from k0 of half a panel in float32, in whole multiples of [LowBitBlock].
func (m *LowBitMatrix) widen(dst []float32, panel, k0, steps int) {
	t := bitTiles.Get().(*simd.BitTile)
	for k := k0; k < k0+steps; {
		b := k / m.Block
		n := min((b+1)*m.Block, k0+steps) - k
		m.tile(t, panel/2, b, k%m.Block, panel%2)
		t.Y, t.Groups = &dst[(k-k0)*m.wide.Cols], (n+simd.BitSteps(m.Bits)-1)/simd.BitSteps(m.Bits)
		m.f.Widen(t, m.Bits)
		k += n
	}
	releaseBitTile(t)
}

// Run computes y[rows, n] from x[rows, k]: plus bias if present, clamped.
func (m *LowBitMatrix) Run(p *workers.Pool, rows int, x, y, bias []float32, act activation.Clamp) {
	m.run(p, rows, 3, x, y, bias, act)
}

// RunInt8 is [LowBitMatrix.Run] with activations that are rounded per block as by [RoundInt8].
func (m *LowBitMatrix) RunInt8(p *workers.Pool, rows int, x, y, bias []float32, act activation.Clamp) {
	m.run(p, rows, 1, x, y, bias, act)
}

func (m *LowBitMatrix) run(p *workers.Pool, rows, digits int, x, y, bias []float32, act activation.Clamp) {
	if m.runDigits(p, digits, rows, x, y, bias, act) {
		return
	}
	if digits == 1 {
		sc, rounded := scratch.Borrow(rows * m.K)
		defer scratch.Float32s.Put(sc)
		RoundInt8(p, m.Block, m.K, rounded, x)
		x = rounded
	}
	m.runFloat(p, rows, x, y, bias, act)
}

// addOffsets adds to y the offsets times the sums of the rows' blocks.
func (m *LowBitMatrix) addOffsets(p *workers.Pool, rows int, sums, y []float32, act activation.Clamp) {
	MultiplyPacked(p, Params{M: rows, N: m.N, K: m.blocks, Accumulate: true, Act: act}, sums, m.offsets, y)
}

// sumArgs holds the arguments of a work item that sums the blocks of rows.
type sumArgs struct {
	m       *LowBitMatrix
	x, sums []float32
}

// rows sums the blocks of rows lo to hi.
func (q sumArgs) rows(lo, hi int) {
	m := q.m
	for i := lo * m.blocks; i < hi*m.blocks; i++ {
		r, b := i/m.blocks, i%m.blocks
		sum := float32(0)
		for _, v := range q.x[r*m.K+b*m.Block : r*m.K+min((b+1)*m.Block, m.K)] {
			sum += v
		}
		q.sums[i] = sum
	}
}

// RoundInt8 writes rows of x, of length k, with each block rounded to integers from -127 to 127
// times a scale: the largest magnitude of the block divided by 127. Blocks with infinities or NaN,
// or with only the smallest values, are not rounded.
func RoundInt8(p *workers.Pool, block, k int, dst, x []float32) {
	workers.Do(p, len(x)/max(k, 1), max(1, scratch.CopyGrain/max(k, 1)), roundArgs{block, k, dst, x}, roundArgs.rows)
}

// roundArgs holds the arguments of a work item of [RoundInt8].
type roundArgs struct {
	block, k int
	dst, x   []float32
}

// rows rounds rows lo to hi.
func (q roundArgs) rows(lo, hi int) {
	for r := lo; r < hi; r++ {
		for from := r * q.k; from < (r+1)*q.k; from += q.block {
			to := min(from+q.block, (r+1)*q.k)
			simd.RoundDigits(q.dst[from:to], q.x[from:to])
		}
	}
}

// runFloat is Run with float32 multiplications.
func (m *LowBitMatrix) runFloat(p *workers.Pool, rows int, x, y, bias []float32, act activation.Clamp) {
	if m.offsets != nil {
		sc, sums := scratch.Borrow(rows * m.blocks)
		defer scratch.Float32s.Put(sc)
		workers.Do(p, rows, max(1, scratch.CopyGrain/m.K), sumArgs{m, x, sums}, sumArgs.rows)
		defer m.addOffsets(p, rows, sums, y, act)
		act = activation.Clamp{}
	}
	if rows > lowBitRows {
		g := Params{M: rows, N: m.N, K: m.K, BiasN: bias, Act: act}
		gemmPanels(p, m.wide, &g, x, Panels{few: m}, y)
		return
	}
	line := m.blocks * m.Block
	sc, sums := scratch.Borrow(rows * m.blocks)
	sp, lines := scratch.Borrow(rows * line)
	for r := range rows {
		m.f.Arrange(lines[r*line:][:line], sums[r*m.blocks:][:m.blocks], x[r*m.K:][:m.K], m.Bits)
	}
	all, cols := (m.N+m.f.Cols-1)/m.f.Cols, m.f.Cols
	grain := max(1, int(float64(workers.Grain(8))/float64(cols*m.K*rows)))
	workers.Do(p, all, grain, lowBitArgs{m, rows, lines, sums, y, bias, act}, lowBitArgs.panels)
	scratch.Float32s.Put(sp)
	scratch.Float32s.Put(sc)
}

// lowBitArgs holds the arguments of a work item for few rows.
type lowBitArgs struct {
	m       *LowBitMatrix
	rows    int
	x, sums []float32
	y, bias []float32
	act     activation.Clamp
}

// panels computes the columns of panels lo to hi.
func (q lowBitArgs) panels(lo, hi int) {
	m, e, cols := q.m, simd.ElementKernels(), q.m.f.Cols
	line := m.blocks * m.Block
	sc, workspace := scratch.Borrow(cols)
	t := bitTiles.Get().(*simd.BitTile)
	t.Groups, t.Blocks = m.Block/simd.BitSteps(m.Bits), m.blocks
	for i := lo; i < hi; i++ {
		width := min(cols, m.N-i*cols)
		m.tile(t, i, 0, 0, 0)
		for r := range q.rows {
			out := q.y[r*m.N+i*cols:][:width]
			if t.Y = &workspace[0]; width == cols {
				t.Y = &out[0]
			}
			t.X, t.Sums = &q.x[r*line], &q.sums[r*m.blocks]
			m.f.Row(t, m.Bits)
			if width < cols {
				copy(out, workspace)
			}
			if q.bias != nil {
				e.Add(out, out, q.bias[i*cols:][:width])
			}
			if q.act.On {
				e.Clamp(out, out, q.act.Min, q.act.Max)
			}
		}
	}
	releaseBitTile(t)
	scratch.Float32s.Put(sc)
}
