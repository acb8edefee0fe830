package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Convolutions over [N,H,W,C] with few output channels would leave most of a channel register
// empty. A thread transposes the input of some output rows to planes, with padding and split by
// stride phase. Tiles then use output positions as columns and read each tap in place. The output
// rows, computed as one row, are transposed back. Sums keep their order, tap after tap and
// channel after channel, so results are bit-exact.

// pixelColumnPlan holds the parameters of such a convolution.
type pixelColumnPlan struct {
	lines int       // output rows computed together
	plane *NCHWPlan // of the transposed copy of that many rows
	depth int       // channels written to the copy, rounded up
	offs  []int32   // offset of each K step in the copy, the channels of a tap one after the other
}

// transposeSide is the side of the squares that [move.Turn] transposes at a time.
const transposeSide = 8

// Time to transpose a value before or after multiplying, in nanoseconds of a processor with the
// rates of [simd.Floats.Rate], measured on a Xeon with 25 shapes of 1 to 12 output channels. The
// model selects the faster algorithm if the two differ by 10 % or more.
const (
	transposeSquareTime = 0.3 // in whole squares
	transposeSingleTime = 1.6 // one by one
	borderTime          = 5   // padding of a row of a channel
	// one output channel takes as long as this many: its accumulators wait for each other
	minRowCost = 2.5
)

// planPixelColumns returns false if output channels fill registers well enough.
func (c *Float32) planPixelColumns() bool {
	s := c.s
	if c.lines == nil || !c.f.HasIndirect() || s.Groups > 1 || s.OC > c.f.Rows || s.place != (placement{}) {
		return false
	}
	all := s.planFrames(c.cg)
	if all == nil {
		return false
	}
	q := &pixelColumnPlan{depth: max(c.cg, transposeSide)}
	if c.cg == 1 {
		q.depth = 1
	}
	more := (s.KH - 1) * s.DilH
	line := max(1, all.w*len(all.phasesX)*s.StrideH*q.depth)
	q.lines = min(s.OH, max(2*more/s.StrideH, 4, groupedFrameMax/line-more/s.StrideH))
	s.OH = q.lines
	if q.plane = s.planFramesApart(c.cg, true); q.plane == nil || q.depth*q.plane.Size > 1<<30 {
		return false
	}
	if q.time(c) > pixelColumnGain*c.lineTime() {
		return false
	}
	taps := s.KH * s.KW
	q.offs = make([]int32, c.k)
	for ch := range c.cg {
		for t := range taps {
			q.offs[t*c.cg+ch] = q.plane.offs[ch*taps+t]
		}
	}
	c.pixelColumns = q
	return true
}

// pixelColumnGain is the maximum time relative to the channels-as-columns algorithm.
var pixelColumnGain = 0.9

// lineTime estimates the time of an output position with channels as columns, in nanoseconds.
func (c *Float32) lineTime() float64 {
	lanes := c.f.Taken(c.s.OC)
	if simd.Current() == simd.AMX && lanes != c.f.Cols && lanes != c.f.Half {
		// Three units add or multiply half registers, two units whole ones.
		lanes += c.f.Half / 4
	}
	return 2 * float64(c.k*lanes) / c.f.Rate()
}

// time estimates the time of an output position, in nanoseconds.
func (q *pixelColumnPlan) time(c *Float32) float64 {
	s, p := &c.s, q.plane
	area := float64(q.lines * s.OW)
	columns := float64(scratch.RoundUp((q.lines-1)*p.w+s.OW, c.f.Cols)) / area
	lines := float64(len(p.phasesY) * len(p.phasesX) * p.h)
	each := transposeSingleTime
	if q.depth > 1 && p.w >= transposeSide {
		each = transposeSquareTime
	}
	turned := lines * each * float64(q.depth*p.w)
	if s.PadT > 0 || s.PadL > 0 || (q.lines-1)*s.StrideH+p.h > s.H {
		turned += lines * borderTime * float64(s.C)
	}
	turned /= area
	switch {
	case s.OC == 1:
	case s.OC < transposeSide:
		turned += transposeSingleTime * float64(s.OC)
	default:
		turned += transposeSquareTime * float64(s.OC)
	}
	return 2*float64(c.k)*max(minRowCost, float64(s.OC))*columns/c.f.Rate() + turned
}

// pixelColumnArgs holds the arguments of a work item.
type pixelColumnArgs struct {
	c     *Float32
	x, y  []float32
	bands int // row bands of an image
}

// runPixelColumns convolves x into y.
func (c *Float32) runPixelColumns(p *workers.Pool, x, y []float32) {
	s, q := &c.s, c.pixelColumns
	lines := q.lines
	if jobs := gemm.JobCount(p, int(q.time(c)*c.f.Rate()/2)*s.N*s.OH*s.OW, c.f.Rate()/2); jobs > s.N {
		// Keep the overlap between bands small.
		lines = min(lines, max((s.OH*s.N+jobs-1)/jobs, 2*(s.KH-1)*s.DilH/s.StrideH, 1))
	}
	a := pixelColumnArgs{c, x, y, (s.OH + lines - 1) / lines}
	if t := p.Threads(); a.bands > 1 && s.N*a.bands%t > 0 {
		a.bands = min(scratch.RoundUp(a.bands, t), s.OH) // the same number for each thread
	}
	workers.Do(p, s.N*a.bands, 1, a, pixelColumnArgs.pieces)
}

// pieces computes bands lo to hi.
func (a pixelColumnArgs) pieces(lo, hi int) {
	c := a.c
	s, q, f := &c.s, c.pixelColumns, c.f
	w := q.plane.w
	// Tiles read whole panel rows at the end of the copy.
	sc, frame := scratch.Borrow(q.depth*q.plane.Size + f.Cols)
	width := padStride(scratch.RoundUp(q.lines*w, f.Cols))
	sr, workspace := scratch.Borrow(s.OC * width)
	t := gemm.Tiles.Get().(*simd.Tile)
	t.A, t.StepA, t.RowA, t.Segs, t.K, t.Offs, t.RowC = &c.weights[0], 4, 4*c.k, 1, c.k, &q.offs[0], 4*width
	gemm.SetStart(t, true, false, true)
	gemm.SetClamp(t, c.act, true)
	if c.bias != nil {
		t.BiasM = &c.bias[0]
	}
	for i := lo; i < hi; i++ {
		n := i / a.bands
		y0, y1 := gemm.Portion(i%a.bands, a.bands, s.OH)
		c.transposeFrame(frame, a.x[n*s.H*s.W*s.C:][:s.H*s.W*s.C], y0, y1)
		all := (y1-y0-1)*w + s.OW
		for p := 0; p < all; {
			t.B, t.C = &frame[p], &workspace[p]
			p += f.RunIndirect(t, s.OC, all-p, true)
		}
		y := a.y[(n*s.OH+y0)*s.OW*s.OC:][:(y1-y0)*s.OW*s.OC]
		if w == s.OW {
			transposeBack(y, workspace, width, s.OC, len(y)/s.OC)
			continue
		}
		for line := range y1 - y0 {
			transposeBack(y[line*s.OW*s.OC:], workspace[line*w:], width, s.OC, s.OW)
		}
	}
	gemm.ReleaseTile(t)
	scratch.Float32s.Put(sr)
	scratch.Float32s.Put(sc)
}

// transposeBack writes n positions of channels planes that are step values apart.
func transposeBack(y, planes []float32, step, channels, n int) {
	if channels == 1 {
		copy(y[:n], planes)
		return
	}
	move.Transpose(y, channels, planes, step, n, channels)
}

// transposeFrame writes the padded, transposed input of output rows y0 to y1 of an image.
func (c *Float32) transposeFrame(frame, x []float32, y0, y1 int) {
	s, q := &c.s, c.pixelColumns.plane
	rows := y1 - y0 + q.h - c.pixelColumns.lines
	for j, at := range q.phasesY {
		for r := range rows {
			iy := (y0+r)*s.StrideH + at - s.PadT
			for i, first := range q.phasesX {
				to := frame[((j*len(q.phasesX)+i)*q.h+r)*q.w:]
				// Value v of the row is position v·StrideW + first - PadL of the image.
				lo := min(max(0, ceil(s.PadL-first, s.StrideW)), q.w)
				hi := max(lo, min(q.w, ceil(s.W+s.PadL-first, s.StrideW)))
				if iy < 0 || iy >= s.H {
					lo, hi = q.w, q.w
				}
				if lo > 0 || hi < q.w {
					for ch := range s.C {
						line := to[ch*q.Size:][:q.w]
						clear(line[:lo])
						clear(line[hi:])
					}
				}
				if lo < hi {
					c.transposeLine(to[lo:], x[(iy*s.W+lo*s.StrideW+first-s.PadL)*s.C:], hi-lo)
				}
			}
		}
	}
}

// transposeLine writes the channels of n positions of x, one stride apart, to rows of their own.
func (c *Float32) transposeLine(dst, x []float32, n int) {
	s, size := &c.s, c.pixelColumns.plane.Size
	step := s.StrideW * s.C
	switch {
	case step == 1:
		copy(dst[:n], x)
		return
	case s.C > 1 && s.C < transposeSide:
		// A square also reads some of the following positions, if there are any.
		if whole := min(n, (len(x)-transposeSide)/step+1); len(x) >= transposeSide && whole >= transposeSide {
			move.Transpose(dst, size, x, step, transposeSide, whole)
			dst, x, n = dst[whole:], x[min(whole*step, len(x)):], n-whole
		}
	}
	if n > 0 {
		move.Transpose(dst, size, x, step, s.C, n)
	}
}
