package conv

import (
	"strings"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Int16 is a convolution of 16-bit values over [N,H,W,C] that reads windows in place, as
// segments of a row of [gemm.Int16]. If windows cross the border or have an odd length, the image
// is copied with padding first. Small groups are computed together, with zero weights between
// them.
type Int16 struct {
	parts       []int16Part
	s           Shape
	lines, line int // rows of an image or its padded copy, and row length in values
	padded      bool
	// A window is read in passes of segs segments of k values each.
	passes, segs, k int
	stepPass, seg   int // in values
}

// int16Part computes outputs from channel out from input channels from in.
type int16Part struct {
	w       *gemm.Int16
	in, out int
}

// NewInt16 prepares weights [OC,KH,KW,C/Groups]. It returns nil without SIMD, if sums need
// several K ranges, and if window segments would not begin at value pairs.
func NewInt16(w []int32, q *gemm.Requant16, s Shape) *Int16 {
	s.Groups = max(1, s.Groups)
	f, cg, og := simd.IntKernels(), s.C/s.Groups, s.OC/s.Groups
	if f == nil || s.Outputs() == 0 || cg*s.KH*s.KW == 0 {
		return nil
	}
	together := min(s.Groups, max(1, f.Cols/2/og))
	for s.Groups%together > 0 {
		together--
	}
	channels := together * cg
	c := &Int16{s: s, lines: s.H, line: s.W * s.C, passes: 1, segs: s.KH, k: scratch.RoundUp(s.KW*channels, 2)}
	apart := s.KW > 1 && (s.DilW > 1 || channels != s.C)
	if apart {
		c.passes, c.segs, c.k = s.KH, s.KW, channels
		if channels%2 > 0 {
			return nil
		}
	}
	lines, columns := (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1, (s.OW-1)*s.StrideW+(s.KW-1)*s.DilW+1
	if c.padded = s.PadT != 0 || s.PadL != 0 || lines > s.H || columns > s.W || s.KW*channels%2 > 0; c.padded {
		if float64(lines)*float64(columns)*float64(s.C) > MaxFramed {
			return nil
		}
		c.lines, c.line = lines, columns*s.C
	}
	if c.seg = s.DilH * c.line; apart {
		c.stepPass, c.seg = c.seg, s.DilW*s.C
	}
	for g := 0; g < s.Groups; g += together {
		if !c.add(w, q, g, together) {
			return nil
		}
	}
	return c
}

// add adds the part of groups from first; it returns false if a sum needs several K ranges.
func (c *Int16) add(w []int32, q *gemm.Requant16, first, groups int) bool {
	s := &c.s
	cg, og := s.C/s.Groups, s.OC/s.Groups
	outputs, steps := groups*og, c.passes*c.segs*c.k
	own, line := make([]int32, outputs*steps), steps/s.KH
	for o := range outputs {
		for t := range s.KH * s.KW {
			at := o*steps + t/s.KW*line + (t%s.KW*groups+o/og)*cg
			copy(own[at:][:cg], w[((first*og+o)*s.KH*s.KW+t)*cg:])
		}
	}
	p := gemm.NewPackedInt16(outputs, steps)
	p.Fill(own, steps, 1)
	if groups < s.Groups {
		part := *q
		if q.Bias != nil {
			part.Bias = q.Bias[first*og:][:outputs]
		}
		if len(q.Mul) > 1 {
			part.Mul = q.Mul[first*og:][:outputs]
		}
		q = &part
	}
	c.parts = append(c.parts, int16Part{gemm.NewInt16(p, q), first * cg, first * og})
	return len(c.parts[len(c.parts)-1].w.Cuts) == 1
}

// Name returns the kernel name for n output positions.
func (c *Int16) Name(n int) string {
	return "direct/" + strings.TrimPrefix(c.parts[0].w.P.Name(n), "packed/")
}

// ScratchSize returns the number of int16 values of scratch memory that [Int16.Run] needs.
func (c *Int16) ScratchSize() int {
	if !c.padded {
		return 0
	}
	return c.lines*c.line + 1
}

// Run convolves x.
func (c *Int16) Run(p *workers.Pool, x, y, workspace []int16) {
	s, w := &c.s, c.parts[0].w.P
	f := w.Panels.F
	height := 4 * f.Rows
	blocks, cost := (s.OW+height-1)/height, min(s.OW, height)*w.K*len(c.parts)*scratch.RoundUp(w.N, f.Cols)+1
	for n := range s.N {
		picture := x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
		if c.padded {
			c.frame(workspace[:c.ScratchSize()], picture)
			picture = workspace
		}
		workers.Do(p, s.OH*blocks, max(1, workers.Grain(f.Rate()/4)/cost), convInt16Args{c, picture, y[n*s.OH*s.OW*s.OC:], height, blocks}, convInt16Args.rows)
	}
}

// frame copies an image with padding.
func (c *Int16) frame(workspace, x []int16) {
	s := &c.s
	workspace[len(workspace)-1] = 0
	left := min(s.PadL*s.C, c.line)
	wide := min(s.W*s.C, c.line-left)
	for i := range c.lines {
		to, y := workspace[i*c.line:][:c.line], i-s.PadT
		if uint(y) >= uint(s.H) {
			clear(to)
			continue
		}
		clear(to[:left])
		copy(to[left:], x[y*s.W*s.C:][:wide])
		clear(to[left+wide:])
	}
}

// convInt16Args holds the arguments of a work item.
type convInt16Args struct {
	c              *Int16
	x, y           []int16
	height, blocks int // positions of a block, and blocks per row
}

// rows computes blocks lo to hi of the output rows.
func (a convInt16Args) rows(lo, hi int) {
	c, s := a.c, &a.c.s
	f := c.parts[0].w.P.Panels.F
	t := gemm.IntTiles.Get().(*simd.IntTile)
	sc, workspace := scratch.Borrow(f.Rows * f.Cols)
	buf := scratch.AsInt32(workspace)
	t.Segs, t.SegA, t.K = c.segs, 2*c.seg, c.k/2
	t.RowA, t.C, t.RowC = 2*s.StrideW*s.C, &buf[0], 4*f.Cols
	for i := lo; i < hi; i++ {
		oy, first := i/a.blocks, i%a.blocks*a.height
		end := min(s.OW, first+a.height)
		for j := range c.parts {
			part := &c.parts[j]
			a.part(t, part, buf, a.x[oy*s.StrideH*c.line+part.in:], a.y[oy*s.OW*s.OC+part.out:], first, end)
		}
	}
	scratch.Float32s.Put(sc)
	gemm.ReleaseIntTile(t)
}

// part computes positions first to end of a row.
func (a convInt16Args) part(t *simd.IntTile, part *int16Part, buf []int32, from, out []int16, first, end int) {
	c, s := a.c, &a.c.s
	p, w, f := part.w.P, part.w.P.Panels, part.w.P.Panels.F
	q := gemm.Int16Args{Int16: part.w, Cuts: part.w.Cuts}
	for n := 0; n < p.N; n += f.Cols {
		width := min(f.Cols, p.N-n)
		for ox := first; ox < end; {
			rows := simd.Evenly(end-ox, f.Rows)
			for pass := range c.passes {
				t.A, t.B = unsafe.Pointer(&from[pass*c.stepPass+ox*s.StrideW*s.C]), w.At(n/f.Cols, pass*c.segs*t.K)
				t.SetContinue(pass > 0)
				f.Run(t, rows, width, w.Wide != nil)
			}
			q.Finish(out[ox*s.OC+n:], s.OC, buf, rows, width, n)
			ox += rows
		}
	}
}
