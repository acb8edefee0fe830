package move

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// LayoutConverter converts byte images between [N,C,H,W] and [N,H,W,C].
type LayoutConverter struct{ N, C, Area int }

// HasSIMD reports whether SIMD kernels support it.
func (t LayoutConverter) HasSIMD() bool {
	return simd.ElementKernels().HasRescaleColumns() && t.C >= 16
}

// layoutArgs holds the arguments of a work item.
type layoutArgs struct {
	LayoutConverter
	dst, src []uint8
}

// layoutGrain is the minimum number of bytes per work item.
var layoutGrain = workers.Grain(4)

// layoutPiece is the number of positions that are converted together.
const layoutPiece = 256

// pieces returns the number of work items of an image.
func (t LayoutConverter) pieces() int { return (t.Area + layoutPiece - 1) / layoutPiece }

// at returns the image offset, the first position and the number of positions of work item i.
func (t LayoutConverter) at(i int) (image, p, n int) {
	p = i % t.pieces() * layoutPiece
	return i / t.pieces() * t.C * t.Area, p, min(layoutPiece, t.Area-p)
}

// ToNHWC converts [N,C,H,W] to [N,H,W,C].
func (t LayoutConverter) ToNHWC(p *workers.Pool, dst, src []uint8) {
	workers.Do(p, t.N*t.pieces(), max(1, layoutGrain/layoutPiece/t.C), layoutArgs{t, dst, src}, func(a layoutArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			image, p, n := a.at(i)
			TransposeBytes(a.dst[image+p*a.C:], a.C, a.src[image+p:], a.Area, n, a.C)
		}
	})
}

// ToNCHW converts [N,H,W,C] to [N,C,H,W].
func (t LayoutConverter) ToNCHW(p *workers.Pool, dst, src []uint8) {
	workers.Do(p, t.N*t.pieces(), max(1, layoutGrain/layoutPiece/t.C), layoutArgs{t, dst, src}, func(a layoutArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			image, p, n := a.at(i)
			TransposeBytes(a.dst[image+p:], a.Area, a.src[image+p*a.C:], a.C, a.C, n)
		}
	})
}

// TransposeBytes transposes bytes: byte j of row i of dst is byte i of row j of src; dst has rows
// rows of cols bytes.
func TransposeBytes(dst []uint8, stepDst int, src []uint8, stepSrc, rows, cols int) {
	if simd.ElementKernels().Transpose8(dst, stepDst, src, stepSrc, rows, cols) {
		return
	}
	for i := range rows {
		row := dst[i*stepDst:][:cols]
		for j := range row {
			row[j] = src[j*stepSrc+i]
		}
	}
}
