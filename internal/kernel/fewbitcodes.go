package kernel

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Where a file allows activations of 8 bits, rows become codes with a scale for each block, and products are of integers: several times as
// many at once as of floats.

// bitRows are the rows of a piece of such a product.
const bitRows = 48

// TakesCodes tells whether [FewBits.RunCodes] multiplies the matrix.
func (m *FewBits) TakesCodes() bool { return m.Bits == 4 && m.f.CodeRows() > 0 }

// RunCodes is [FewBits.Run] with rows of 8-bit codes: in each block whole numbers from -127 to 127 times a 127th of the largest magnitude.
func (m *FewBits) RunCodes(p *workers.Pool, rows int, x, y, bias []float32) {
	line := m.blocks * m.Block
	sc, room := borrow(rows * line / 4)
	ss, sums := borrow(2 * rows * m.blocks)
	q := bitCodeArgs{m: m, rows: rows, x: x, y: y, bias: bias, codes: room, sums: sums}
	workers.Do(p, rows, max(1, copyGrain/line), q, bitCodeArgs.arrange)
	q.cut = (rows + bitRows - 1) / bitRows
	panels := (m.N + m.f.Cols - 1) / m.f.Cols
	grain := max(1, int(float64(workers.Grain(32))/float64(m.f.Cols*m.K*min(rows, bitRows))))
	workers.Do(p, panels*q.cut, grain, q, bitCodeArgs.panels)
	scratch.Put(ss)
	scratch.Put(sc)
}

// bitCodeArgs is what a piece of such a product needs.
type bitCodeArgs struct {
	m           *FewBits
	rows, cut   int
	x, y, bias  []float32
	codes, sums []float32 // codes: four in the place of a float
}

// arrange makes the codes of rows lo to hi: of each eight those of even steps first.
func (q bitCodeArgs) arrange(lo, hi int) {
	m := q.m
	line := m.blocks * m.Block
	codes := asBytes(q.codes)
	for r := lo; r < hi; r++ {
		row := q.x[r*m.K:][:m.K]
		for b := range m.blocks {
			from := row[min(b*m.Block, m.K):min((b+1)*m.Block, m.K)]
			to := codes[r*line+b*m.Block:][:m.Block]
			clear(to)
			top := float32(0)
			for _, v := range from {
				top = max(top, v, -v)
			}
			scale, by, sum := top/127, 127/top, int32(0)
			if top > 0 && top <= math.MaxFloat32 && by <= math.MaxFloat32 {
				for i, v := range from {
					c := int32(math.RoundToEven(float64(v * by)))
					sum += c
					to[i&^7+i%2*4+i%8/2] = uint8(c)
				}
			}
			q.sums[2*(r*m.blocks+b)], q.sums[2*(r*m.blocks+b)+1] = scale, float32(sum)
		}
	}
}

// panels computes pieces lo to hi: some rows of a panel.
func (q bitCodeArgs) panels(lo, hi int) {
	m, e := q.m, simd.ElementKernels()
	line, span := m.blocks*m.Block, m.f.Cols/2
	if q.rows == 1 {
		span = m.f.Cols
	}
	t := bitTiles.Get().(*simd.BitTile)
	sc, room := borrow(m.f.CodeRows() * span)
	for i := lo; i < hi; i++ {
		r0, r1 := portion(i%q.cut, q.cut, q.rows)
		for h := range m.f.Cols / span {
			col := i/q.cut*m.f.Cols + h*span
			width := min(span, m.N-col)
			if width <= 0 {
				continue
			}
			for r := r0; r < r1; {
				n := evenly(r1-r, m.f.CodeRows()) // one only of one row
				m.tile(t, i/q.cut, 0, 0, h)
				t.Groups, t.Blocks = m.Block/simd.BitSteps(m.Bits), m.blocks
				t.X, t.RowX = &q.codes[r*line/4], line
				t.Sums, t.RowSums = &q.sums[2*r*m.blocks], 8*m.blocks
				t.Y, t.RowY = &q.y[r*m.N+col], 4*m.N
				if width < span {
					t.Y, t.RowY = &room[0], 4*span
				}
				m.f.Codes(t, n)
				for k := range n {
					out := q.y[(r+k)*m.N+col:][:width]
					if width < span {
						copy(out, room[k*span:])
					}
					if q.bias != nil {
						e.Add(out, out, q.bias[col:][:width])
					}
				}
				r += n
			}
		}
	}
	scratch.Put(sc)
	giveBits(t)
}
