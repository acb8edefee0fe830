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

// intConv is the part of a convolution of 8-bit activations that both layouts share: weights as
// [gemm.PackedInt8], group after group.
type intConv struct {
	s               Shape
	cg, og, k       int
	depthwise       bool
	lastIn, lastOut bool // channels-last input and output
	// dense is the algorithm for dense weights, algorithm the one in use.
	dense, algorithm *intAlgorithm
	f                *simd.Ints // nil without SIMD
	zeroPoint        int32      // of the input
	signed           bool       // the input is int8
	// Of the current run over [N,C,H,W]: put passes planes to it, created once, so that runs do
	// not allocate.
	to  epilogue
	put putPlanes

	// Parameters of algorithms, nil unless planned.
	lines   *int8NHWC
	planes  *int8NCHW
	windows *depthwiseInt8
	wd      []int32 // weights of a depthwise convolution in plain Go
	weights []*gemm.PackedInt8
	table   gemm.ByteTable
	zeros   []uint8
}

// newIntConv selects the algorithm for a shape, whose taps that only cover padding are removed.
func newIntConv(s Shape, depthwise, lastIn, lastOut bool) intConv {
	s.Groups = max(s.Groups, 1)
	s.columnAsRow()
	c := intConv{s: s, cg: s.C / s.Groups, og: s.OC / s.Groups, depthwise: depthwise, lastIn: lastIn, lastOut: lastOut, f: simd.IntKernels()}
	c.k = c.cg * s.KH * s.KW
	for _, a := range intAlgorithms {
		if a.plan(&c) {
			c.dense, c.algorithm = a, a
			break
		}
	}
	return c
}

// SupportsNHWC reports whether a byte convolution over [N,C,H,W] can use channels-last input,
// output or both.
func (s *Shape) SupportsNHWC() bool {
	return s.C >= 16 && s.SupportsNHWCOutput()
}

// SupportsNHWCOutput reports whether it can at least write channels-last output.
func (s *Shape) SupportsNHWCOutput() bool {
	return simd.IntKernels() != nil && simd.ElementKernels().HasRescaleColumns() && s.Outputs() > 0 && (s.Groups <= 1 || s.tilesGroups()) && s.OC >= 16
}

// SupportsDepthwiseNHWC reports whether a depthwise byte convolution over [N,C,H,W] can use
// channels-last input and output. Instruction sets with strips of both layouts use it only for
// shapes that strips support.
func (s *Shape) SupportsDepthwiseNHWC() bool {
	if s.Groups <= 1 || s.Groups != s.C || s.OC != s.C || s.C < 16 || s.Outputs() == 0 || simd.IntKernels() == nil || !simd.ElementKernels().HasRescaleColumns() {
		return false
	}
	strips := simd.ByteStripKernels(3, 1)
	return strips == nil || strips.OnlyQuantised() || s.planByteStrips(1, true) != nil
}

// PrefersNHWC reports whether a convolution over [N,C,H,W] is faster with an internal transpose
// to channels-last: with too few positions to fill panels, or enough multiplications per output
// to cover the transpose.
func (s *Shape) PrefersNHWC() bool {
	return s.SupportsNHWC() && (s.KH*s.KW > 1 || s.C >= 256 || s.OH*s.OW <= 64)
}

func setWeights[W quantise.Weight](p *workers.Pool, c *intConv, w []W, zero int32) {
	switch {
	case c.planes != nil:
		// weights that change between runs are not converted to sparse
		first := c.planes.narrow == nil && c.planes.wide == nil && c.lines == nil
		if c.lines, c.algorithm = nil, c.dense; first {
			c.lines = newSparsePlanes(&c.s, w, zero)
		}
		if c.lines != nil {
			c.algorithm = skippedIntZeros
			return
		}
		fillPlanes(c.planes, &c.s, c.k, w, zero)
	case c.lines != nil:
		fillLines(p, c.lines, &c.s, w, zero)
	}
	for g, q := range c.weights {
		gemm.FillInt8(p, q, w[g*c.og*c.k:], zero, c.k, 1)
	}
}

func (c *intConv) setZero(signed bool, zero int32) {
	c.signed, c.zeroPoint = signed, zero
	c.table.Fill(signed, zero)
	scratch.Fill(c.zeros, uint8(zero))
}

// patchPiece is a work item of an 8-bit im2col convolution in plain Go.
type patchPiece struct {
	buf          []float64 // scratch for the packed patches
	line         []uint8   // scratch for a row of input
	n, g, p0, np int       // image, group, positions
	o0, o1       int       // channels of the group
}

// each calls f for work items lo to hi of q.
func (c *intConv) each(q *cut, lo, hi int, f func(t patchPiece)) {
	sc, buf := scratch.Borrow64(q.block*c.k + q.block/8 + 1)
	t := patchPiece{buf: buf[:q.block*c.k], line: scratch.AsUint8(buf[q.block*c.k:])}
	for i := lo; i < hi; i++ {
		var b, part int
		t.n, t.g, b, part = q.piece(i)
		t.p0, t.np = q.span(b)
		if t.o0, t.o1 = q.channels(part, c.og); t.o0 < t.o1 {
			f(t)
		}
	}
	scratch.Float64s.Put(sc)
}

// cut is [cutPlaces] for patches.
func (c *intConv) cut(p *workers.Pool) cut {
	return cutPlaces(p, &c.s, c.s.OH*c.s.OW, scratch.Block/2/max(c.k, 1), 4, c.og, 4)
}

// Int8 is a convolution of 8-bit activations in [N,H,W,C] with 32-bit sums.
type Int8[T int8 | uint8] struct {
	intConv
	q quantise.Requant
}

// NewInt8 prepares a convolution with weights [OC,KH,KW,C/Groups] with zero point zeroW.
func NewInt8[T int8 | uint8, W quantise.Weight](s Shape, w []W, zeroW, zero int32, q quantise.Requant) *Int8[T] {
	s.Groups = max(s.Groups, 1)
	if s.Groups > 1 && s.Groups == s.C {
		taps := s.KH * s.KW
		wd := make([]int16, len(w))
		for i, v := range w {
			wd[i%taps*s.OC+i/taps] = int16(int32(v) - zeroW)
		}
		return NewDepthwiseInt8[T](s, wd, zero, q)
	}
	seen := s.trimTaps()
	c := &Int8[T]{intConv: newIntConv(s, false, true, true), q: q}
	c.q.SetSteps(c.k, zero)
	w = trimmedWeights(seen, w, s.OC, c.cg, true)
	setWeights(nil, &c.intConv, w, zeroW)
	quantise.SumBounds[T](&c.q, w, s.OC, c.k, zeroW, zero)
	var z T
	c.setZero(z-1 < z, zero)
	return c
}

// NewDepthwiseInt8 prepares a depthwise convolution with weights [KH,KW,OC] minus their zero point;
// the slice must not change. s.Groups is ignored.
func NewDepthwiseInt8[T int8 | uint8](s Shape, w []int16, zero int32, q quantise.Requant) *Int8[T] {
	if s.C == 1 && simd.IntKernels() != nil {
		// All outputs read the same input channel: a normal convolution is faster.
		s.Groups = 1
		turned, taps := make([]int16, len(w)), s.KH*s.KW
		for i, v := range w {
			turned[i%s.OC*taps+i/s.OC] = v
		}
		return NewInt8[T](s, turned, 0, zero, q)
	}
	s.Groups = s.C
	s.columnAsRow()
	w = trimmedWeights(s.trimTaps(), w, 1, s.OC, true)
	c := &Int8[T]{intConv: newIntConv(s, true, true, true), q: q}
	c.q.SetSteps(c.k, zero)
	quantise.SumBounds[T](&c.q, w, s.OC, 1, 0, zero)
	if c.windows != nil {
		c.windows.setLanes(&c.s, w)
	} else {
		// Integer sums: a depthwise convolution has no reuse for the micro-kernel to exploit.
		for i, v := range w {
			c.wd[i] = int32(v)
		}
	}
	var z T
	c.setZero(z-1 < z, zero)
	return c
}

// Name returns the algorithm: "depthwise", "im2col", or "direct" with the instruction set of the
// SIMD kernels.
func (c *intConv) Name() string { return c.algorithm.label(c) }

// Run convolves x into y.
func (c *Int8[T]) Run(p *workers.Pool, x, y []T) {
	c.run(p, x, y, nil)
}

// Sums convolves x with the given zero point into the 32-bit sums y.
func (c *Int8[T]) Sums(p *workers.Pool, x []T, zero int32, y []int32) {
	c.setInputZero(zero)
	c.run(p, x, nil, y)
}

// setInputZero sets the input zero point.
func (c *Int8[T]) setInputZero(zero int32) {
	var z T
	if c.q.Least != nil {
		c.q.Least, c.q.Most, c.q.N = nil, nil, 0 // computed for another zero point
	}
	c.setZero(z-1 < z, zero)
}

// run writes sums if sums is not nil, else quantised values into y.
func (c *Int8[T]) run(p *workers.Pool, x, y []T, sums []int32) {
	s := &c.s
	if s.Outputs() == 0 {
		return
	}
	if sums == nil {
		c.q.Prepare(c.windows.channels(s.OC))
	}
	c.algorithm.run(&c.intConv, p, quantise.Bits(x), epilogue{sums: sums, f: c.f, y: quantise.Bits(y), q: &c.q})
}

// intPatches holds the arguments of a work item in plain Go.
type intPatches struct {
	c   *intConv
	cut cut
	x   []uint8
	to  epilogue
}

// lines computes im2col work items lo to hi over [N,H,W,C].
func (q intPatches) lines(lo, hi int) {
	c, s := q.c, &q.c.s
	c.each(&q.cut, lo, hi, func(t patchPiece) {
		c.patchesNHWC(t.buf, q.x[t.n*s.H*s.W*s.C:][:s.H*s.W*s.C], t.g, t.p0, t.np)
		var sum [16]int32
		for o := t.o0; o < t.o1; o += 4 {
			ch := min(4, t.o1-o)
			for i := 0; i < t.np; i += 4 {
				c.weights[t.g].Sums(o, t.buf[i*c.k:], &sum)
				for j := range min(4, t.np-i) {
					at := (t.n*q.cut.places+t.p0+i+j)*s.OC + t.g*c.og + o
					if q.to.sums != nil {
						copy(q.to.sums[at:][:ch], sum[4*j:])
						continue
					}
					quantise.RequantRow(q.to.y[at:][:ch], sum[4*j:], q.to.q, t.g*c.og+o)
				}
			}
		}
	})
}

// patchesNHWC packs np patches from position p0 into panels of four, in the order tap, channel.
func (c *intConv) patchesNHWC(dst []float64, x []uint8, g, p0, np int) {
	s, cg, t := &c.s, c.cg, &c.table
	for i := 0; i < np; i += 4 {
		d := dst[i*c.k:][:4*c.k]
		for ky := range s.KH {
			for kx := range s.KW {
				var v [4][]uint8
				for j := range v {
					v[j] = c.zeros
					if i+j < np {
						v[j] = tapRun(s, x, c.zeros, p0+i+j, ky, kx, g*cg, cg)
					}
				}
				v0, v1, v2, v3 := v[0][:cg], v[1][:cg], v[2][:cg], v[3][:cg]
				for j := range v0 {
					*(*[4]float64)(d) = [4]float64{t.Values[v0[j]], t.Values[v1[j]], t.Values[v2[j]], t.Values[v3[j]]}
					d = d[4:]
				}
			}
		}
	}
}

// Sums is a convolution of 8-bit activations in [N,C,H,W] that returns the 32-bit sums.
type Sums struct {
	intConv
	lanes []int16   // weights [KH,KW,OC] of a depthwise convolution with channels-last input
	taps  *tapRange // remaining taps, if some only cover padding
}

// NewSums prepares a convolution; see [SetSumWeights]. lastIn and lastOut select
// channels-last input and output. They require [Shape.SupportsNHWC], lastOut alone
// [Shape.SupportsNHWCOutput], or both [Shape.SupportsDepthwiseNHWC].
func NewSums(s Shape, lastIn, lastOut bool) *Sums {
	c := &Sums{taps: s.trimTaps()}
	c.intConv = newIntConv(s, s.Groups > 1 && s.Groups == s.C, lastIn, lastOut)
	c.to.oc, c.to.out = s.OC, s.OH*s.OW
	if !lastOut {
		c.to.area = c.to.out
	}
	c.put = func(plane, rows, at, n int, sums []int32, line int) { c.to.rows(plane, rows, at, n, sums, line) }
	return c
}

// SumWeight is a weight of a [Sums].
type SumWeight interface{ int8 | uint8 | int32 }

// SetSumWeights sets weights [OC,C/Groups,KH,KW]; their differences to the zero point are at most
// 510 in magnitude. It keeps no reference to w.
func SetSumWeights[W SumWeight](c *Sums, w []W, zero int32) {
	w = trimmedWeights(c.taps, w, c.s.OC, c.cg, false)
	taps := c.s.KH * c.s.KW
	switch {
	case c.depthwise && c.lastIn:
		c.lanes = scratch.Zeroed(c.lanes, len(w))
		for i, v := range w {
			c.lanes[i%taps*c.s.OC+i/taps] = int16(int32(v) - zero)
		}
		c.windows.setLanes(&c.s, c.lanes)
	case c.depthwise:
		sc, workspace := scratch.Borrow(len(w))
		wide := scratch.AsInt32(workspace)
		for i, v := range w {
			wide[i] = int32(v) - zero
		}
		if c.windows != nil {
			c.windows.setPlanes(&c.s, wide)
		} else {
			copy(c.wd, wide)
		}
		scratch.Float32s.Put(sc)
	case c.lines == nil || taps == 1:
		setWeights(nil, &c.intConv, w, zero)
	default:
		sc, workspace := scratch.Borrow((len(w)*int(unsafe.Sizeof(w[0])) + 3) / 4)
		last := unsafe.Slice((*W)(unsafe.Pointer(unsafe.SliceData(workspace))), len(w))
		for o := range c.s.OC {
			transposeWeights(last[o*c.k:], w[o*c.k:], taps, c.cg)
		}
		setWeights(nil, &c.intConv, last, zero)
		scratch.Float32s.Put(sc)
	}
}

// transposeWeights transposes weights into dst, which has rows rows of cols values.
func transposeWeights[W SumWeight](dst, src []W, rows, cols int) {
	switch w := any(src).(type) {
	case []int32:
		move.Transpose(any(dst).([]int32), cols, w, rows, rows, cols)
	case []int8:
		move.TransposeBytes(quantise.Bits(any(dst).([]int8)), cols, quantise.Bits(w), rows, rows, cols)
	case []uint8:
		move.TransposeBytes(any(dst).([]uint8), cols, w, rows, rows, cols)
	}
}

// SetZero sets the zero point of int8 (signed) or uint8 input.
func (c *Sums) SetZero(signed bool, zero int32) { c.setZero(signed, zero) }

// UsesSIMD reports whether SIMD kernels compute the sums.
func (c *Sums) UsesSIMD() bool { return c.algorithm.simd }

// putPlanes receives sums piece by piece while they are in the cache, from several threads: rows
// planes of one image, n positions each from position at, line apart. Each output channel of each
// image has one plane.
type putPlanes = func(plane, rows, at, n int, sums []int32, line int)

// RunRescaled convolves the bytes x into the quantised values y; it requires [Sums.UsesSIMD].
func (c *Sums) RunRescaled(p *workers.Pool, x, y []uint8, q *quantise.Rescale) {
	c.to.y, c.to.sums, c.to.r = y, nil, q
	c.algorithm.run(&c.intConv, p, x, c.to)
}

// Run convolves the bytes x into y.
func (c *Sums) Run(p *workers.Pool, x []uint8, y []int32) {
	if c.s.Outputs() == 0 {
		return
	}
	c.to.y, c.to.sums, c.to.r = nil, y, nil
	c.algorithm.run(&c.intConv, p, x, c.to)
}

// depthwise computes planes lo to hi of a depthwise convolution.
func (q intPatches) depthwise(lo, hi int) {
	c, s := q.c, &q.c.s
	area := s.OH * s.OW
	for i := lo; i < hi; i++ {
		n, o := i/s.OC, i%s.OC
		c.plane(q.to.sums[i*area:][:area], q.x[(n*s.C+o/c.og)*s.H*s.W:][:s.H*s.W], c.wd[o*c.k:][:c.k])
	}
}

// planes computes im2col work items lo to hi over [N,C,H,W].
func (q intPatches) planes(lo, hi int) {
	c, s, area := q.c, &q.c.s, q.cut.places
	c.each(&q.cut, lo, hi, func(t patchPiece) {
		c.patchesNCHW(t.buf, t.line, q.x[(t.n*s.C+t.g*c.cg)*s.H*s.W:][:c.cg*s.H*s.W], t.p0, t.np)
		out := q.to.sums[(t.n*s.OC+t.g*c.og)*area+t.p0:]
		var sum [16]int32
		for i := 0; i < t.np; i += 4 {
			n := min(4, t.np-i)
			for o := t.o0; o < t.o1; o += 4 {
				c.weights[t.g].Sums(o, t.buf[i*c.k:], &sum)
				for ch := range min(4, t.o1-o) {
					row := out[(o+ch)*area+i:][:n]
					for j := range row {
						row[j] = sum[4*j+ch]
					}
				}
			}
		}
	})
}

// patchesNCHW is Conv.patchesNCHW for 8-bit values.
func (c *intConv) patchesNCHW(dst []float64, line, x []uint8, p0, np int) {
	s, t := &c.s, &c.table
	at := 0
	for ch := range c.cg {
		plane := x[ch*s.H*s.W:][:s.H*s.W]
		for ky := range s.KH {
			for kx := range s.KW {
				l := tapRow(s, line, plane, ky, kx, p0, np, uint8(c.zeroPoint))
				d := dst[at:]
				for len(l) > 4 {
					*(*[4]float64)(d) = [4]float64{t.Values[l[0]], t.Values[l[1]], t.Values[l[2]], t.Values[l[3]]}
					l, d = l[4:], d[c.k*4:]
				}
				d = d[:4]
				clear(d)
				for j, v := range l {
					d[j] = t.Values[v]
				}
				at += 4
			}
		}
	}
}

// plane computes one plane of a depthwise convolution, tap by tap over the columns for which the
// tap lies inside.
func (c *intConv) plane(y []int32, x []uint8, w []int32) {
	s := &c.s
	signed := c.signed
	clear(y)
	for t, wv := range w {
		ky, kx := t/s.KW, t%s.KW
		off := kx*s.DilW - s.PadL
		lo, hi := span(s.OW, s.StrideW, off, s.W)
		if lo >= hi {
			continue
		}
		for oy := range s.OH {
			iy := oy*s.StrideH - s.PadT + ky*s.DilH
			if uint(iy) >= uint(s.H) {
				continue
			}
			row, src := y[oy*s.OW+lo:][:hi-lo], x[iy*s.W+lo*s.StrideW+off:]
			if signed {
				addTap(row, scratch.AsInt8(src), wv, c.zeroPoint, s.StrideW)
			} else {
				addTap(row, src, wv, c.zeroPoint, s.StrideW)
			}
		}
	}
}

// addTap adds w times the difference of every stride-th value to the zero point.
func addTap[T int8 | uint8](row []int32, src []T, w, zero int32, stride int) {
	z := -zero * w
	if stride == 1 {
		src = src[:len(row)]
		for i := range row {
			row[i] += int32(src[i])*w + z
		}
		return
	}
	at := 0
	for i := range row {
		row[i] += int32(src[at])*w + z
		at += stride
	}
}
