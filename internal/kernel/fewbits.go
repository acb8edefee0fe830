package kernel

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// FewBits is a matrix [n, k] of weights of 2, 4 or 8 bits with a scale, and maybe a zero point, for each block of a row. It stays as small as
// it is: few rows of floats are multiplied by the weights as they are read, more share a part of a panel that is widened for them.
type FewBits struct {
	f    *simd.FewBits
	wide *simd.Floats // for what is widened
	FewBitShape
	blocks int
	codes  []uint8   // panels of columns: groups of steps
	scales []float32 // for each block one a column
	zeros  []int8    // as scales; nil for none
}

// FewBitShape says of how many bits weights are, of what matrix, and how many of a row have a scale.
type FewBitShape struct{ Bits, K, N, Block int }

// FewBitLine is what blocks are multiples of.
const FewBitLine = 16

// Fits tells whether there are kernels for such a matrix.
func (s FewBitShape) Fits() bool {
	f, floats := simd.FewBitKernels(), simd.FloatKernels()
	return f != nil && floats != nil && 2*floats.Cols == f.Cols && s.N > 0 && s.K > 0 && s.Block > 0 && s.Block%FewBitLine == 0 && (s.Bits == 2 || s.Bits == 4 || s.Bits == 8)
}

// leastFewBits are the weights from which on more than two rows use them as they are: fewer are as fast in float32, widened once and for all.
const leastFewBits = 1 << 17

// Stays tells whether weights stay as small as they are, for so many rows.
func (s FewBitShape) Stays(rows int) bool { return s.Fits() && (rows <= 2 || s.K*s.N >= leastFewBits) }

// fewBitRows are the rows that are multiplied one by one: to widen the weights takes as long as two rows or three.
const fewBitRows = 3

// NewFewBits takes rows of codes, which fill their blocks and have the first code of a byte in its lowest bits, with scales and zero points
// [n, blocks], nil for none. signed says that codes are of two's complement; others, and their zero points, are less the middle of
// their range. It is nil where there are no kernels for the matrix.
func NewFewBits(s FewBitShape, codes []uint8, signed bool, scales []float32, zeros []int8) *FewBits {
	if !s.Fits() {
		return nil
	}
	f := simd.FewBitKernels()
	m := &FewBits{f: f, wide: simd.FloatKernels(), FewBitShape: s, blocks: (s.K + s.Block - 1) / s.Block}
	row := m.blocks * s.Block * s.Bits / 8
	if len(codes) != s.N*row || len(scales) != s.N*m.blocks || zeros != nil && len(zeros) != len(scales) {
		return nil
	}
	wide := roundUp(s.N, f.Cols)
	m.codes, m.scales = hugepages.Make[uint8](wide*row), hugepages.Make[float32](wide*m.blocks)
	for j := 0; j < s.N; j += f.Cols {
		n := min(f.Cols, s.N-j)
		move.Turn(wordsIn(m.codes[j*row:][:f.Cols*row]), f.Cols, wordsIn(codes[j*row:][:n*row]), row/4, row/4, n)
		move.Turn(m.scales[j*m.blocks:], f.Cols, scales[j*m.blocks:], m.blocks, m.blocks, n)
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

// wordsIn views bytes as words, or copies them where they lie between words.
func wordsIn(b []uint8) []uint32 {
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%4 != 0 {
		moved := make([]uint32, len(b)/4)
		copy(unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(moved))), len(b)), b)
		return moved
	}
	return move.Words(b)
}

var bitTiles = sync.Pool{New: func() any { return new(simd.BitTile) }}

func giveBits(t *simd.BitTile) {
	*t = simd.BitTile{}
	bitTiles.Put(t)
}

// Name is the name of the kernel.
func (m *FewBits) Name() string {
	return [...]string{2: "2bits/", 4: "4bits/", 8: "8bits/"}[m.Bits] + m.f.Set.String()
}

// tile points to the weights of a panel from a block and a step of it on, of both halves of its columns or of the second.
func (m *FewBits) tile(t *simd.BitTile, panel, b, step, half int) {
	row, cols := m.blocks*m.Block*m.Bits/8, m.f.Cols
	at := half * cols / 2
	t.W = &m.codes[panel*cols*row+(b*m.Block+step)*cols*m.Bits/8+4*at]
	scale := panel*cols*m.blocks + b*cols + at
	if t.Scales, t.Zeros = &m.scales[scale], nil; m.zeros != nil {
		t.Zeros = &m.zeros[scale]
	}
}

// widen writes steps from k0 on of half a panel, as one of floats, to whole lines of [FewBitLine] of them.
func (m *FewBits) widen(dst []float32, panel, k0, steps int) {
	t := bitTiles.Get().(*simd.BitTile)
	for k := k0; k < k0+steps; {
		b := k / m.Block
		n := min((b+1)*m.Block, k0+steps) - k
		m.tile(t, panel/2, b, k%m.Block, panel%2)
		t.Y, t.Groups = &dst[(k-k0)*m.wide.Cols], (n+simd.BitSteps(m.Bits)-1)/simd.BitSteps(m.Bits)
		m.f.Widen(t, m.Bits)
		k += n
	}
	giveBits(t)
}

// Run computes the rows y[rows, n] of the rows x[rows, k], plus the bias where there is one, clamped.
func (m *FewBits) Run(p *workers.Pool, rows int, x, y, bias []float32, act activation.Clamp) {
	if !m.digits(p, 3, rows, x, y, bias, act) {
		m.floats(p, rows, x, y, bias, act)
	}
}

// RunCodes is [FewBits.Run] with rows that may, in each block, become whole numbers from -127 to 127 times a 127th of the largest magnitude.
func (m *FewBits) RunCodes(p *workers.Pool, rows int, x, y, bias []float32, act activation.Clamp) {
	if !m.digits(p, 1, rows, x, y, bias, act) {
		m.floats(p, rows, x, y, bias, act)
	}
}

// floats is Run with products of floats.
func (m *FewBits) floats(p *workers.Pool, rows int, x, y, bias []float32, act activation.Clamp) {
	if rows > fewBitRows {
		g := GemmParams{M: rows, N: m.N, K: m.K, BiasN: bias, Act: act}
		product(p, m.wide, &g, x, panels{few: m}, y)
		return
	}
	line := m.blocks * m.Block
	sc, sums := borrow(rows * m.blocks)
	sp, lines := borrow(rows * line)
	for r := range rows {
		m.f.Arrange(lines[r*line:][:line], sums[r*m.blocks:][:m.blocks], x[r*m.K:][:m.K], m.Bits)
	}
	all, cols := (m.N+m.f.Cols-1)/m.f.Cols, m.f.Cols
	grain := max(1, int(float64(workers.Grain(8))/float64(cols*m.K*rows)))
	workers.Do(p, all, grain, fewBitArgs{m, rows, lines, sums, y, bias, act}, fewBitArgs.panels)
	scratch.Put(sp)
	scratch.Put(sc)
}

// fewBitArgs is what a piece of a product of few rows needs.
type fewBitArgs struct {
	m       *FewBits
	rows    int
	x, sums []float32
	y, bias []float32
	act     activation.Clamp
}

// panels computes the columns of panels lo to hi.
func (q fewBitArgs) panels(lo, hi int) {
	m, e, cols := q.m, simd.ElementKernels(), q.m.f.Cols
	line := m.blocks * m.Block
	sc, room := borrow(cols)
	t := bitTiles.Get().(*simd.BitTile)
	t.Groups, t.Blocks = m.Block/simd.BitSteps(m.Bits), m.blocks
	for i := lo; i < hi; i++ {
		width := min(cols, m.N-i*cols)
		m.tile(t, i, 0, 0, 0)
		for r := range q.rows {
			out := q.y[r*m.N+i*cols:][:width]
			if t.Y = &room[0]; width == cols {
				t.Y = &out[0]
			}
			t.X, t.Sums = &q.x[r*line], &q.sums[r*m.blocks]
			m.f.Row(t, m.Bits)
			if width < cols {
				copy(out, room)
			}
			if q.bias != nil {
				e.Add(out, out, q.bias[i*cols:][:width])
			}
			if q.act.On {
				e.Clamp(out, out, q.act.Min, q.act.Max)
			}
		}
	}
	giveBits(t)
	scratch.Put(sc)
}
