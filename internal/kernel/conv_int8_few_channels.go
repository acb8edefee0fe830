package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Int8 convolutions with few input channels, like the first layer of an image network: with 7×7
// windows and 3 channels a window row is 21 values, a third of a tile row. The input of an output
// row is copied into a band in which all values of an image column, row by row, are contiguous. A
// window is then one contiguous range of the band, and the window of the next position begins a
// stride of columns later.

// bandMax is the maximum number of values per band column: longer window rows are efficient in
// place.
const bandMax = 32

// bandSize returns the number of values per band column, 0 if bands are not used. Bands replace
// gathering from planes. Channels-last input is read in place: splitting channels costs more than
// fewer tile steps gain.
func (s *ConvShape) bandSize(f *simd.Ints, planes bool) int {
	column := s.KH * s.C
	if !planes || s.Groups > 1 || s.KH == 1 || s.DilH > 1 || s.DilW > 1 || s.C >= 16 || column > bandMax || s.OW < 4 || f == nil || !f.Quads() || !simd.ElementKernels().Columns() {
		return 0
	}
	return column
}

// planBands changes the plan to use bands.
func (c *convInt8NHWC) planBands(s *ConvShape, f *simd.Ints) {
	l := c.plan
	l.frame, l.h, l.w = true, s.OH, (s.OW-1)*s.StrideW+s.KW
	l.stepA, l.lineA = s.StrideW*c.band, l.w*c.band
	k := s.KW * c.band
	if fours := (k + 3) / 4; f.Tiled(fours, 1) {
		// All tile steps have the same length. Values behind a window have zero weights.
		k = 4 * roundUp(fours, simd.TilesOfRows(fours))
	}
	l.passes = []pass{{k: k, segs: 1}}
}

// bandSlack is the overrun of windows and of column transposes beyond the end of a band.
const bandSlack = 128

// bands writes the bands of output rows l0 to l1 of image n, padded columns x0 to x1, l.lineA
// values apart.
func (q *convInt8NHWCArgs) bands(dst []uint8, n, l0, l1, x0, x1 int) {
	s, band, cols := q.s, q.c.band, x1-x0
	rows := ((l1-l0-1)*s.StrideH + s.KH) * s.C
	sc, lines := borrow8(q.bytes * cols * (rows + simd.TurnLeast))
	q.bandLines(lines, n, l0*s.StrideH-s.PadT, rows/s.C, x0-s.PadL, cols)
	for l := range l1 - l0 {
		to, from := dst[q.bytes*l*q.c.plan.lineA:], lines[q.bytes*l*s.StrideH*s.C*cols:]
		if q.bytes == 1 {
			// The next column overwrites the excess of each column.
			move.TransposeBytes(to, band, from, cols, cols, max(band, simd.TurnLeast))
		} else {
			move.Transpose16(int16sOf(to), band, int16sOf(from), cols, cols, band)
		}
	}
	scratch.Put(sc)
}

// bandLines writes a row of cols values per channel for rows rows of image n from row y and
// column x.
func (q *convInt8NHWCArgs) bandLines(dst []uint8, n, y, rows, x, cols int) {
	s := q.s
	step := q.bytes * cols
	left := min(max(-x, 0), cols)
	right := max(min(cols, s.W-x), left)
	for r := range rows {
		iy := y + r
		for c := range s.C {
			line := dst[(r*s.C+c)*step:][:step]
			if uint(iy) >= uint(s.H) {
				fill(line, q.edge)
				continue
			}
			fill(line[:q.bytes*left], q.edge)
			fill(line[q.bytes*right:], q.edge)
			if left < right {
				q.convert(line[q.bytes*left:q.bytes*right], q.x[((n*s.C+c)*s.H+iy)*s.W+x+left:][:right-left])
			}
		}
	}
}

// fillBands packs weights [OC,KH,KW,C] in band order.
func fillBands[W Weight](p *workers.Pool, c *convInt8NHWC, s *ConvShape, w []W, zero int32) {
	k := c.plan.passes[0].k
	sc, workspace := borrow((s.OC*k*int(unsafe.Sizeof(w[0])) + 3) / 4)
	rows := unsafe.Slice((*W)(unsafe.Pointer(unsafe.SliceData(workspace))), s.OC*k)
	fill(rows, W(zero))
	for o := range s.OC {
		for y := range s.KH {
			for x := range s.KW {
				copy(rows[o*k+x*c.band+y*s.C:][:s.C], w[((o*s.KH+y)*s.KW+x)*s.C:])
			}
		}
	}
	fillPanels(p, &c.panels[0], s.OC, rows, zero, k, 1)
	scratch.Put(sc)
}
