package move

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Turner exchanges the order of pictures of bytes: [N,C,H,W] and [N,H,W,C].
type Turner struct{ N, C, Area int }

// Fast tells whether there are kernels in vectors for it.
func (t Turner) Fast() bool { return simd.ElementKernels().Columns() && t.C >= 16 }

// turnerArgs is what a piece of the work needs.
type turnerArgs struct {
	Turner
	dst, src []uint8
}

// turnGrain is the number of bytes to turn that are worth a piece of work.
var turnGrain = workers.Grain(4)

// turnPiece is the number of positions that are turned together.
const turnPiece = 256

// pieces is the number of pieces of an image.
func (t Turner) pieces() int { return (t.Area + turnPiece - 1) / turnPiece }

// at is piece i: the place of its image, its first position and the number of them.
func (t Turner) at(i int) (image, p, n int) {
	p = i % t.pieces() * turnPiece
	return i / t.pieces() * t.C * t.Area, p, min(turnPiece, t.Area-p)
}

// Last writes [N,C,H,W] as [N,H,W,C].
func (t Turner) Last(p *workers.Pool, dst, src []uint8) {
	workers.Do(p, t.N*t.pieces(), max(1, turnGrain/turnPiece/t.C), turnerArgs{t, dst, src}, func(a turnerArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			image, p, n := a.at(i)
			TurnBytes(a.dst[image+p*a.C:], a.C, a.src[image+p:], a.Area, n, a.C)
		}
	})
}

// First writes [N,H,W,C] as [N,C,H,W].
func (t Turner) First(p *workers.Pool, dst, src []uint8) {
	workers.Do(p, t.N*t.pieces(), max(1, turnGrain/turnPiece/t.C), turnerArgs{t, dst, src}, func(a turnerArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			image, p, n := a.at(i)
			TurnBytes(a.dst[image+p:], a.Area, a.src[image+p*a.C:], a.C, a.C, n)
		}
	})
}

// TurnBytes exchanges rows and columns of bytes: byte j of row i of dst is byte i of row j of src, rows rows of cols bytes of dst.
func TurnBytes(dst []uint8, stepDst int, src []uint8, stepSrc, rows, cols int) {
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
