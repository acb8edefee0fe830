package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Convolutions of 8-bit numbers whose windows see few channels, as the first ones of a picture do: of 7×7 by 3 channels a line of the window is 21
// numbers, a third of a row of a tile. What a line of results sees is copied so that all numbers of a column of the picture lie side by side, those
// of its lines one after the other: a window is one piece of that band, and that of the next position begins a step of columns further on.

// bandMax is the most values of a column of a band: lines of windows of more are long enough by themselves.
const bandMax = 32

// bandSize is the number of values of a column of bands, 0 where the convolution has none: they gain where planes would be gathered. Of a picture with its
// channels last lines of windows are read where they lie, and taking channels apart first costs more than fewer steps of tiles gain.
func (s *ConvShape) bandSize(f *simd.Ints, planes bool) int {
	column := s.KH * s.C
	if !planes || s.Groups > 1 || s.KH == 1 || s.DilH > 1 || s.DilW > 1 || s.C >= 16 || column > bandMax || s.OW < 4 || f == nil || !f.Quads() || !simd.ElementKernels().Columns() {
		return 0
	}
	return column
}

// planBands changes the plan of lines to one of bands.
func (c *intLines) planBands(s *ConvShape, f *simd.Ints) {
	l := c.plan
	l.frame, l.h, l.w = true, s.OH, (s.OW-1)*s.StrideW+s.KW
	l.stepA, l.lineA = s.StrideW*c.band, l.w*c.band
	k := s.KW * c.band
	if fours := (k + 3) / 4; f.Tiled(fours, 1) {
		// Steps of tiles are all as long. What lies behind a window has no weight.
		k = 4 * roundUp(fours, simd.TilesOfRows(fours))
	}
	l.passes = []pass{{k: k, segs: 1}}
}

// bandSlack is what windows and the turning of columns go beyond the end of a band.
const bandSlack = 128

// bands writes the bands of lines l0 to l1 of the results of image n, columns x0 to x1 of the picture with its borders, l.lineA values apart.
func (q *intLineArgs) bands(dst []uint8, n, l0, l1, x0, x1 int) {
	s, band, cols := q.s, q.c.band, x1-x0
	rows := ((l1-l0-1)*s.StrideH + s.KH) * s.C
	sc, lines := borrow8(q.bytes * cols * (rows + simd.TurnLeast))
	q.bandLines(lines, n, l0*s.StrideH-s.PadT, rows/s.C, x0-s.PadL, cols)
	for l := range l1 - l0 {
		to, from := dst[q.bytes*l*q.c.plan.lineA:], lines[q.bytes*l*s.StrideH*s.C*cols:]
		if q.bytes == 1 {
			// What a column is too long the next one covers.
			move.TurnBytes(to, band, from, cols, cols, max(band, simd.TurnLeast))
		} else {
			move.TurnHalves(int16sOf(to), band, int16sOf(from), cols, cols, band)
		}
	}
	scratch.Put(sc)
}

// bandLines writes a line of cols values for each channel of rows rows of image n from row y on, from column x on.
func (q *intLineArgs) bandLines(dst []uint8, n, y, rows, x, cols int) {
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
				q.put(line[q.bytes*left:q.bytes*right], q.x[((n*s.C+c)*s.H+iy)*s.W+x+left:][:right-left])
			}
		}
	}
}

// fillBands packs weights [OC,KH,KW,C] in the order of bands.
func fillBands[W Weight](p *workers.Pool, c *intLines, s *ConvShape, w []W, zero int32) {
	k := c.plan.passes[0].k
	sc, room := borrow((s.OC*k*int(unsafe.Sizeof(w[0])) + 3) / 4)
	rows := unsafe.Slice((*W)(unsafe.Pointer(unsafe.SliceData(room))), s.OC*k)
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
