package conv

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// int8NCHW is a SIMD int8 convolution over [N,C,H,W].
type int8NCHW struct {
	f      *simd.Ints
	plan   *NCHWPlan
	line   int     // length of the weights of an output channel, a multiple of 4
	offs   []int32 // input offsets, one per K step
	rest   []int32 // the same in the copy of a partial panel of a 1×1 convolution
	narrow []int8  // weights of 4-way kernels
	wide   []int16 // replaces narrow without 4-way kernels, or if a weight needs more than 8 bits
	sums   []int32 // of the weights of each channel, for 4-way kernels
}

// newInt8NCHW plans a convolution; nil without SIMD.
func newInt8NCHW(s *Shape, cg int) *int8NCHW {
	f := simd.IntKernels()
	if f == nil || s.Outputs() == 0 || cg == 0 {
		return nil
	}
	q := s.PlanNCHW(cg)
	if q == nil {
		return nil
	}
	k := cg * s.KH * s.KW
	c := &int8NCHW{f: f, plan: q, line: scratch.RoundUp(k, 4), offs: make([]int32, scratch.RoundUp(k, 4))}
	if !q.frame {
		c.rest = make([]int32, c.line)
		for i := range c.rest {
			c.rest[i] = int32(i * f.Cols)
		}
	}
	for i := range k {
		if c.offs[i] = int32(i * q.Size); q.frame {
			c.offs[i] = q.offs[i]
		}
	}
	return c
}

// bytes returns the size of a weight and of an activation.
func (c *int8NCHW) bytes() int {
	if c.sums != nil {
		return 1
	}
	return 2
}

// at returns the address of weight i.
func (c *int8NCHW) at(i int) unsafe.Pointer {
	if c.sums != nil {
		return unsafe.Pointer(&c.narrow[i])
	}
	return unsafe.Pointer(&c.wide[i])
}

// gather writes a panel.
func (c *int8NCHW) gather(dst, src []uint8, offs []int32, runs []simd.Run) {
	if c.sums != nil {
		c.f.GatherQuads(dst, src, offs, runs)
		return
	}
	c.f.Gather(scratch.Int16sOf(dst), scratch.Int16sOf(src), offs, runs)
}

// run convolves x; put receives the sums for a sink. With channels-last output it receives all
// channels of a work item at once.
func (c *int8NCHW) run(p *workers.Pool, s *Shape, og int, x []uint8, signed bool, zero int32, sink *epilogue, put putPlanes) {
	q, f, bytes := c.plan, c.f, c.bytes()
	area, sums := s.H*s.W, len(c.sums)
	// 1×1 windows read the input in place if its signedness fits the kernels.
	inPlace := !q.frame && bytes == 1 && signed == f.Signed
	var sc *[]float32
	var frame []uint8
	if !inPlace {
		sc, frame = scratch.Borrow8(bytes * (s.C*q.Size + f.Cols))
	}
	scs, fs := scratch.Borrow(2 * sums)
	start := scratch.AsInt32(fs)[:sums]
	gemm.ZeroPointSums(start, c.sums, f.QuadInputZero(signed, zero))
	var biased []int32
	if sums > 0 && f.HasRequantised() && sink.area > 0 && sink.r != nil && sink.r.SmallScales() {
		biased = scratch.AsInt32(fs)[sums:]
		for i, b := range sink.r.Bias[:sums] {
			biased[i] = start[i] + b
		}
	}
	for n := range s.N {
		in := x[n*s.C*area:][:s.C*area]
		args := int8NCHWArgs{c, s, og, frame, in, start, biased, signed, zero, n * s.OC, s.cutPlanes(p, og, c.line+sumCost, f.CutRows(), f.Cols, 1, f.Rate()), sink, put, inPlace}
		if inPlace {
			args.frame = in
		} else {
			workers.Do(p, s.C, max(1, scratch.CopyGrain/q.Size), args, func(q int8NCHWArgs, lo, hi int) {
				q.c.frames(q.s, q.frame, q.in, lo, hi, q.signed, q.zero)
			})
		}
		workers.Do(p, args.cut.jobs, 1, args, func(q int8NCHWArgs, lo, hi int) {
			r := q.cut.scratch()
			for i := lo; i < hi; i++ {
				g, n0, n1, o0, o1 := q.cut.at(i)
				*r.runs = q.block(scratch.AsBytes(r.buf), *r.runs, g, n0, n1, o0, o1)
			}
			r.give()
		})
	}
	scratch.Float32s.Put(scs)
	if sc != nil {
		scratch.Float32s.Put(sc)
	}
}

// int8NCHWArgs holds the arguments of a work item of an image.
type int8NCHWArgs struct {
	c         *int8NCHW
	s         *Shape
	og        int
	frame, in []uint8
	start     []int32
	biased    []int32 // start including the biases, if tiles requantise
	signed    bool
	zero      int32
	first     int // the first output plane
	cut       planeCut
	sink      *epilogue
	put       putPlanes
	inPlace   bool // frame is the input
}

// frames writes the padded copies of channels lo to hi of an image.
func (c *int8NCHW) frames(s *Shape, frame, in []uint8, lo, hi int, signed bool, zero int32) {
	q, bytes, area := c.plan, c.bytes(), s.H*s.W
	if !q.frame {
		if dst, src := frame[bytes*lo*area:bytes*hi*area], in[lo*area:hi*area]; c.sums != nil {
			c.f.QuadInput(dst, src, signed)
		} else {
			c.f.Widen(scratch.Int16sOf(dst), src, signed, int16(zero))
		}
		return
	}
	if c.sums != nil {
		for ch := lo; ch < hi; ch++ {
			frameBytes(s, q, c.f, frame[ch*q.Size:][:q.Size], in[ch*area:][:area], signed, uint8(c.f.QuadInputZero(signed, zero)))
		}
		return
	}
	workspace, plane := scratch.Borrow16(area)
	for ch := lo; ch < hi; ch++ {
		c.f.Widen(plane, in[ch*area:][:area], signed, int16(zero))
		framePlane(s, q, scratch.Int16sOf(frame[bytes*ch*q.Size:][:bytes*q.Size]), plane)
	}
	scratch.Float32s.Put(workspace)
}

// block computes output channels o0 to o1 of group g in panels n0 to n1.
func (a *int8NCHWArgs) block(buf []uint8, runs []simd.Run, g, n0, n1, o0, o1 int) []simd.Run {
	c, s, og, x := a.c, a.s, a.og, a.frame
	q, f, bytes := c.plan, c.f, c.bytes()
	area := s.OH * s.OW
	in := x[bytes*g*s.C/s.Groups*q.Size:]
	var t *simd.IntTile
	var codes *simd.CodeTile
	if a.biased != nil {
		codes = a.sink.tile()
		t, codes.RowOut = &codes.IntTile, area
	} else {
		t = gemm.IntTiles.Get().(*simd.IntTile)
	}
	// The buffer holds KBlock float32 values per column.
	most, together := gemm.KBlock*4/bytes, a.sink.area == 0
	width := (n1 - n0) * f.Cols
	height := f.Rows // rows of sums that are kept
	if c.line > most || together {
		height = o1 - o0
	}
	workspace, fs := scratch.Borrow(height * width)
	sums := scratch.AsInt32(fs)
	t.Segs, t.RowA, t.RowC = 1, bytes*c.line, 4*width
	for k0 := 0; k0 < c.line; k0 += most {
		steps := min(most, c.line-k0)
		last := k0+steps == c.line
		t.K = steps * bytes / 4
		for n := n0; n < n1; n++ {
			p0, panel := n*f.Cols, buf[(n-n0)*bytes*steps*f.Cols:]
			switch {
			case q.frame:
				runs = s.runs(q, runs[:0], p0, min(f.Cols, area-p0))
			case a.inPlace && p0+f.Cols > area:
				runs = a.gatherRest(panel, in, runs, k0, steps, p0)
				continue
			default:
				runs = append(runs[:0], simd.Run{From: int32(p0)})
			}
			c.gather(panel, in, c.offs[k0:][:steps], runs)
		}
		t.SetContinue(k0 > 0)
		for o := o0; o < o1; {
			rows, ch := f.Part(o1-o), g*og+o
			t.A = c.at(ch*c.line + k0)
			here := sums
			if height > f.Rows {
				here = sums[(o-o0)*width:]
			}
			for n := range n1 - n0 {
				t.B, t.C = unsafe.Pointer(&buf[n*bytes*steps*f.Cols]), &here[n*f.Cols]
				p0 := (n0 + n) * f.Cols
				switch cols := min(f.Cols, area-p0); {
				case codes != nil && 2*cols > f.Cols:
					t.Start = &a.biased[ch]
					if last {
						a.requant(codes, ch, rows, p0, cols)
					} else {
						f.RunTransposed(t, rows, cols)
					}
				case c.sums != nil:
					t.Start = &a.start[ch]
					f.RunTransposed(t, rows, cols)
					if last && codes != nil {
						a.put(a.first+ch, rows, p0, cols, here[n*f.Cols:], width)
					}
				default:
					f.Run(t, rows, f.Cols, true)
				}
			}
			if last && !together && codes == nil {
				a.put(a.first+ch, rows, n0*f.Cols, min(width, area-n0*f.Cols), here, width)
			}
			o += rows
		}
	}
	if together {
		a.put(a.first+g*og+o0, o1-o0, n0*f.Cols, min(width, area-n0*f.Cols), sums, width)
	}
	scratch.Float32s.Put(workspace)
	if codes != nil {
		gemm.ReleaseCodeTile(codes)
	} else {
		gemm.ReleaseIntTile(t)
	}
	return runs
}

// gatherRest writes the partial panel from position p0 from a copy, as reads beyond the last
// channel could leave the input.
func (a *int8NCHWArgs) gatherRest(panel, in []uint8, runs []simd.Run, k0, steps, p0 int) []simd.Run {
	c, area, cols := a.c, a.c.plan.Size, a.c.f.Cols
	workspace, rest := scratch.Borrow8(steps * cols)
	for i := range min(steps, a.s.C/a.s.Groups-k0) {
		copy(rest[i*cols:][:cols], in[(k0+i)*area+p0:(k0+i+1)*area])
	}
	runs = append(runs[:0], simd.Run{})
	c.gather(panel, rest, c.rest[:steps], runs)
	scratch.Float32s.Put(workspace)
	return runs
}

// requant computes the quantised values of rows channels from channel ch at cols positions from p0.
func (a *int8NCHWArgs) requant(t *simd.CodeTile, ch, rows, p0, cols int) {
	area := a.sink.area
	t.SetColumns(cols)
	t.Out = &a.sink.y[(a.first+ch)*area+p0:][:(rows-1)*area+cols][0]
	t.Scales = (*int32)(unsafe.Pointer(&a.sink.r.Scales[ch:][:rows][0]))
	a.c.f.TransposedRescaled(t, rows)
}
