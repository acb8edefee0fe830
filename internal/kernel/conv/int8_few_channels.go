package conv

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
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
func (s *Shape) bandSize(f *simd.Ints, planes bool) int {
	column := s.KH * s.C
	if !planes || s.Groups > 1 || s.KH == 1 || s.DilH > 1 || s.DilW > 1 || s.C >= 16 || column > bandMax || s.OW < 4 || f == nil || !f.Quads() || !simd.ElementKernels().HasRescaleColumns() {
		return 0
	}
	return column
}

// planBands changes the plan to use bands.
func (c *int8NHWC) planBands(s *Shape, f *simd.Ints) {
	l := c.plan
	l.frame, l.h, l.w = true, s.OH, (s.OW-1)*s.StrideW+s.KW
	l.stepA, l.lineA = s.StrideW*c.band, l.w*c.band
	k := s.KW * c.band
	if fours := (k + 3) / 4; f.Tiled(fours, 1) {
		// All tile steps have the same length. Values behind a window have zero weights.
		k = 4 * scratch.RoundUp(fours, simd.TilesOfRows(fours))
	}
	l.passes = []gemm.Pass{{K: k, Segs: 1}}
}

// bandSlack is the overrun of windows and of column transposes beyond the end of a band.
const bandSlack = 128

// bands writes the bands of output rows l0 to l1 of image n, padded columns x0 to x1, l.lineA
// values apart.
func (q *int8NHWCArgs) bands(dst []uint8, n, l0, l1, x0, x1 int) {
	s, band, cols := q.s, q.c.band, x1-x0
	rows := ((l1-l0-1)*s.StrideH + s.KH) * s.C
	sc, lines := scratch.Borrow8(q.bytes * cols * (rows + simd.MinTransposeColumns))
	q.bandLines(lines, n, l0*s.StrideH-s.PadT, rows/s.C, x0-s.PadL, cols)
	for l := range l1 - l0 {
		to, from := dst[q.bytes*l*q.c.plan.lineA:], lines[q.bytes*l*s.StrideH*s.C*cols:]
		if q.bytes == 1 {
			// The next column overwrites the excess of each column.
			move.TransposeBytes(to, band, from, cols, cols, max(band, simd.MinTransposeColumns))
		} else {
			move.Transpose16(scratch.Int16sOf(to), band, scratch.Int16sOf(from), cols, cols, band)
		}
	}
	scratch.Float32s.Put(sc)
}

// bandLines writes a row of cols values per channel for rows rows of image n from row y and
// column x.
func (q *int8NHWCArgs) bandLines(dst []uint8, n, y, rows, x, cols int) {
	s := q.s
	step := q.bytes * cols
	left := min(max(-x, 0), cols)
	right := max(min(cols, s.W-x), left)
	for r := range rows {
		iy := y + r
		for c := range s.C {
			line := dst[(r*s.C+c)*step:][:step]
			if uint(iy) >= uint(s.H) {
				scratch.Fill(line, q.edge)
				continue
			}
			scratch.Fill(line[:q.bytes*left], q.edge)
			scratch.Fill(line[q.bytes*right:], q.edge)
			if left < right {
				q.convert(line[q.bytes*left:q.bytes*right], q.x[((n*s.C+c)*s.H+iy)*s.W+x+left:][:right-left])
			}
		}
	}
}

// fillBands packs weights [OC,KH,KW,C] in band order.
func fillBands[W quantise.Weight](p *workers.Pool, c *int8NHWC, s *Shape, w []W, zero int32) {
	k := c.plan.passes[0].K
	sc, workspace := scratch.Borrow((s.OC*k*int(unsafe.Sizeof(w[0])) + 3) / 4)
	rows := unsafe.Slice((*W)(unsafe.Pointer(unsafe.SliceData(workspace))), s.OC*k)
	scratch.Fill(rows, W(zero))
	for o := range s.OC {
		for y := range s.KH {
			for x := range s.KW {
				copy(rows[o*k+x*c.band+y*s.C:][:s.C], w[((o*s.KH+y)*s.KW+x)*s.C:])
			}
		}
	}
	gemm.FillPanels(p, &c.panels[0], s.OC, rows, zero, k, 1)
	scratch.Float32s.Put(sc)
}
