package move

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// LayoutConverter exchanges the order of pictures of bytes: [N,C,H,W] and [N,H,W,C].
type LayoutConverter struct{ N, C, Area int }

// HasSIMD tells whether there are kernels in vectors for it.
func (t LayoutConverter) HasSIMD() bool { return simd.ElementKernels().Columns() && t.C >= 16 }

// layoutArgs is what a piece of the work needs.
type layoutArgs struct {
	LayoutConverter
	dst, src []uint8
}

// layoutGrain is the number of bytes to turn that are worth a piece of work.
var layoutGrain = workers.Grain(4)

// layoutPiece is the number of positions that are turned together.
const layoutPiece = 256

// pieces is the number of pieces of an image.
func (t LayoutConverter) pieces() int { return (t.Area + layoutPiece - 1) / layoutPiece }

// at is piece i: the place of its image, its first position and the number of them.
func (t LayoutConverter) at(i int) (image, p, n int) {
	p = i % t.pieces() * layoutPiece
	return i / t.pieces() * t.C * t.Area, p, min(layoutPiece, t.Area-p)
}

// ToNHWC writes [N,C,H,W] as [N,H,W,C].
func (t LayoutConverter) ToNHWC(p *workers.Pool, dst, src []uint8) {
	workers.Do(p, t.N*t.pieces(), max(1, layoutGrain/layoutPiece/t.C), layoutArgs{t, dst, src}, func(a layoutArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			image, p, n := a.at(i)
			TransposeBytes(a.dst[image+p*a.C:], a.C, a.src[image+p:], a.Area, n, a.C)
		}
	})
}

// ToNCHW writes [N,H,W,C] as [N,C,H,W].
func (t LayoutConverter) ToNCHW(p *workers.Pool, dst, src []uint8) {
	workers.Do(p, t.N*t.pieces(), max(1, layoutGrain/layoutPiece/t.C), layoutArgs{t, dst, src}, func(a layoutArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			image, p, n := a.at(i)
			TransposeBytes(a.dst[image+p:], a.Area, a.src[image+p*a.C:], a.C, a.C, n)
		}
	})
}

// TransposeBytes exchanges rows and columns of bytes: byte j of row i of dst is byte i of row j of src, rows rows of cols bytes of dst.
func TransposeBytes(dst []uint8, stepDst int, src []uint8, stepSrc, rows, cols int) {
	if simd.ElementKernels().TurnBytes(dst, stepDst, src, stepSrc, rows, cols) {
		return
	}
	for i := range rows {
		row := dst[i*stepDst:][:cols]
		for j := range row {
			row[j] = src[j*stepSrc+i]
		}
	}
}
