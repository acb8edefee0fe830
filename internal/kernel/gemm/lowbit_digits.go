package gemm

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Low-bit weights times float rows through int8 dot products. Each row becomes 24-bit integers
// with a scale per block, as accurate relative to the largest value of a block as float32. The
// integers are split into three 8-bit digits. Three int8 multiplications with exact sums are
// faster than one in float32. If the file allows 8-bit activations, one digit is enough.

// digitColumns is the number of columns from which on digits are faster for many rows.
const digitColumns = 256

// digitBytesMax bounds the bytes of the rows of a work item: they stay in the L2 cache while the
// panels pass.
const digitBytesMax = 1 << 19

var digitRows = sync.Pool{New: func() any { return new(simd.BitDigits) }}

// runDigits computes a multiplication with rows of the given number of digits. It returns false,
// and leaves y unchanged, if the ISA has no such kernels or digits cannot represent the rows.
func (m *LowBitMatrix) runDigits(p *workers.Pool, digits, rows int, x, y, bias []float32, act activation.Clamp) bool {
	most := m.f.DigitRows(m.Bits, digits, m.Block)
	if most == 0 || m.Block<<(m.Bits+7) > math.MaxInt32 || digits > 1 && rows > lowBitRows && (m.N < digitColumns || most == 1) {
		return false
	}
	q := digitArgs{m: m, digits: digits, rows: rows, most: most, x: x, y: y, bias: bias, act: act}
	line, records := q.line(), m.blocks*simd.BitRecord
	sc, workspace := scratch.Borrow(rows * (line/4 + records + 1))
	defer scratch.Float32s.Put(sc)
	q.codes, q.records, q.fit = workspace[:rows*line/4], workspace[rows*line/4:][:rows*records], workspace[rows*(line/4+records):]
	workers.Do(p, rows, max(1, scratch.CopyGrain/line), q, digitArgs.arrange)
	for _, fit := range q.fit {
		if fit == 0 {
			return false
		}
	}
	if m.offsets != nil {
		q.act = activation.Clamp{}
		sc, sums := scratch.Borrow(rows * m.blocks)
		defer scratch.Float32s.Put(sc)
		for i := range sums {
			r := q.records[i*simd.BitRecord:]
			sums[i] = r[3] * r[4] // scale and sum of the integers
		}
		defer m.addOffsets(p, rows, sums, y, act)
	}
	q.panels = (m.N + m.f.Cols - 1) / m.f.Cols
	of := max(most, digitBytesMax/(line+4*records))
	pieces := q.panels * ((rows + of - 1) / of)
	q.cut = pieces / q.panels
	grain := max(1, int(float64(workers.Grain(32))/float64(m.f.Cols*m.K*min(rows, of))))
	workers.Do(p, pieces, grain, q, digitArgs.multiply)
	return true
}

// digitArgs holds the arguments of a work item of runDigits.
type digitArgs struct {
	m                 *LowBitMatrix
	digits, most      int // digits of a row, and maximum number of rows of a kernel call
	rows, cut, panels int // work items: every panel of one row part, then of the next
	x, y, bias        []float32
	act               activation.Clamp
	// codes: four digits per float; fit: 1 for each row that digits represent
	codes, records, fit []float32
}

// line returns the size of the digits of a row, in bytes.
func (q *digitArgs) line() int { return q.m.blocks * q.m.Block * q.digits }

// arrange splits rows lo to hi into digits.
func (q digitArgs) arrange(lo, hi int) {
	m, line, size := q.m, q.line(), q.m.blocks*simd.BitRecord
	codes := scratch.AsBytes(q.codes)
	t := digitRows.Get().(*simd.BitDigits)
	sc, workspace := scratch.Borrow(m.Block)
	whole := m.K / m.Block
	for r := lo; r < hi; r++ {
		row, digits, records := q.x[r*m.K:][:m.K], codes[r*line:][:line], q.records[r*size:][:size]
		fit := whole == 0 || m.f.ArrangeDigits(t, digits, records[:whole*simd.BitRecord], row[:whole*m.Block], m.Bits, q.digits)
		if whole < m.blocks {
			clear(workspace[copy(workspace, row[whole*m.Block:]):])
			fit = m.f.ArrangeDigits(t, digits[whole*m.Block*q.digits:], records[whole*simd.BitRecord:], workspace, m.Bits, q.digits) && fit
		}
		if q.fit[r] = 0; fit {
			q.fit[r] = 1
		}
	}
	*t = simd.BitDigits{}
	digitRows.Put(t)
	scratch.Float32s.Put(sc)
}

// multiply computes work items lo to hi.
func (q digitArgs) multiply(lo, hi int) {
	m, e := q.m, simd.ElementKernels()
	line, size, span := q.line(), m.blocks*simd.BitRecord, m.f.Cols/2
	if q.rows == 1 || q.most == 1 {
		span = m.f.Cols
	}
	t := bitTiles.Get().(*simd.BitTile)
	sc, workspace := scratch.Borrow(q.most * span)
	for i := lo; i < hi; i++ {
		r0, r1 := Portion(i/q.panels, q.cut, q.rows)
		for h := range m.f.Cols / span {
			col := i%q.panels*m.f.Cols + h*span
			width := min(span, m.N-col)
			if width <= 0 {
				continue
			}
			for r := r0; r < r1; {
				// a single row only if it is alone or one row at a time is the maximum
				n := simd.Evenly(r1-r, q.most)
				m.tile(t, i%q.panels, 0, 0, h)
				t.Blocks = m.blocks
				t.X, t.RowX = &q.codes[r*line/4], line
				t.Sums, t.RowSums = &q.records[r*size], 4*size
				t.Y, t.RowY = &q.y[r*m.N+col], 4*m.N
				if width < span {
					t.Y, t.RowY = &workspace[0], 4*span
				}
				m.f.Digits(t, m.Bits, q.digits, n, m.Block)
				for k := range n {
					out := q.y[(r+k)*m.N+col:][:width]
					if width < span {
						copy(out, workspace[k*span:])
					}
					if q.bias != nil {
						e.Add(out, out, q.bias[col:][:width])
					}
					if q.act.On {
						e.Clamp(out, out, q.act.Min, q.act.Max)
					}
				}
				r += n
			}
		}
	}
	scratch.Float32s.Put(sc)
	releaseBitTile(t)
}
