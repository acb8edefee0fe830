package conv

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// convQ is the layout-independent part of a convolution of 8-bit activations: weights as
// [gemm.PackedInt8], group after group.
type convQ struct {
	s         Shape
	cg, og, k int
	weights   []*gemm.PackedInt8
	zero      uint8 // input zero point, as stored byte
	table     gemm.ByteTable
	zeros     []uint8
	signed    bool
	lines     *int8NHWC      // SIMD, over [N,H,W,C]
	planes    *int8NCHW      // SIMD, over [N,C,H,W]
	windows   *depthwiseInt8 // SIMD, depthwise
}

func newConvQ(s Shape, lastIn, lastOut bool) convQ {
	s.Groups = max(s.Groups, 1)
	s.columnAsRow()
	c := convQ{s: s, cg: s.C / s.Groups, og: s.OC / s.Groups}
	c.k = c.cg * s.KH * s.KW
	if lastIn || lastOut && (c.s.SupportsNHWC() || c.s.bandSize(simd.IntKernels(), true) > 0) || c.s.PrefersNHWC() {
		c.lines = newInt8NHWC(&c.s, c.cg, c.og, !lastIn)
	} else {
		c.planes = newInt8NCHW(&c.s, c.cg)
	}
	if c.lines != nil || c.planes != nil {
		return c
	}
	for range s.Groups {
		c.weights = append(c.weights, gemm.NewPackedInt8(c.og, c.k))
	}
	c.zeros = make([]uint8, c.cg)
	return c
}

// SupportsNHWC reports whether a byte convolution over [N,C,H,W] can use channels-last input,
// output or both.
func (s *Shape) SupportsNHWC() bool {
	return s.C >= 16 && s.SupportsNHWCOutput()
}

// SupportsNHWCOutput reports whether it can at least write channels-last output.
func (s *Shape) SupportsNHWCOutput() bool {
	return simd.IntKernels() != nil && simd.ElementKernels().Columns() && s.Outputs() > 0 && (s.Groups <= 1 || s.tilesGroups()) && s.OC >= 16
}

// SupportsDepthwiseNHWC reports whether a depthwise byte convolution over [N,C,H,W] can use
// channels-last input and output.
func (s *Shape) SupportsDepthwiseNHWC() bool {
	return s.Groups > 1 && s.Groups == s.C && s.OC == s.C && s.C >= 16 && s.Outputs() > 0 && simd.IntKernels() != nil && simd.ElementKernels().Columns() && s.planByteStrips(1, true) != nil
}

// PrefersNHWC reports whether a convolution over [N,C,H,W] is faster with an internal transpose
// to channels-last: with too few positions to fill panels, or enough multiplications per output
// to cover the transpose.
func (s *Shape) PrefersNHWC() bool {
	return s.SupportsNHWC() && (s.KH*s.KW > 1 || s.C >= 256 || s.OH*s.OW <= 64)
}

func setWeights[W quantise.Weight](p *workers.Pool, c *convQ, w []W, zero int32) {
	first := false
	if c.planes != nil {
		// weights that change between runs are not converted to sparse
		first = c.planes.narrow == nil && c.planes.wide == nil && c.lines == nil
		c.lines = nil
	}
	switch {
	case c.lines != nil:
		fillLines(p, c.lines, &c.s, w, zero)
	case c.planes != nil:
		if first {
			c.lines = newSparsePlanes(&c.s, w, zero)
		}
		if c.lines != nil {
			return
		}
		fillPlanes(c.planes, &c.s, c.k, w, zero)
	}
	for g, q := range c.weights {
		gemm.FillInt8(p, q, w[g*c.og*c.k:], zero, c.k, 1)
	}
}

func (c *convQ) setZero(signed bool, zero int32) {
	c.signed = signed
	c.table.Fill(signed, zero)
	c.zero = uint8(zero)
	scratch.Fill(c.zeros, c.zero)
}

// patchPiece is a work item of an 8-bit im2col convolution in plain Go.
type patchPiece struct {
	buf          []float64 // Float32s for the packed patches
	line         []uint8   // Float32s for a row of input
	n, g, p0, np int       // image, group, positions
	o0, o1       int       // channels of the group
}

// each calls f for work items lo to hi of q.
func (c *convQ) each(q *cut, lo, hi int, f func(t patchPiece)) {
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
func (c *convQ) cut(p *workers.Pool) cut {
	return cutPlaces(p, &c.s, c.s.OH*c.s.OW, scratch.Block/2/max(c.k, 1), 4, c.og, 4)
}

// Int8 is a convolution of 8-bit activations in [N,H,W,C] with 32-bit sums.
type Int8[T int8 | uint8] struct {
	convQ
	zeroPoint int32
	q         quantise.Requant
	wd        []int32 // [KH,KW,OC] of a depthwise convolution in plain Go
	depthwise bool
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
	c := &Int8[T]{convQ: newConvQ(s, true, true), zeroPoint: zero, q: q}
	c.q.SetSteps(c.k, zero)
	w = trimmedWeights(seen, w, s.OC, c.cg, true)
	setWeights(nil, &c.convQ, w, zeroW)
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
	c := &Int8[T]{convQ: convQ{s: s, cg: 1, og: s.OC / s.C, k: s.KH * s.KW}, zeroPoint: zero, q: q, depthwise: true}
	c.q.SetSteps(c.k, zero)
	quantise.SumBounds[T](&c.q, w, s.OC, 1, 0, zero)
	if c.windows = newDepthwiseInt8(&c.s, c.og, true); c.windows != nil {
		c.windows.setLanes(&c.s, w)
	} else {
		// Integer sums: a depthwise convolution has no reuse for the micro-kernel to exploit.
		c.wd = hugepages.Make[int32](len(w))
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
func (c *Int8[T]) Name() string { return c.name(c.depthwise) }

func (c *convQ) name(depthwise bool) string {
	switch {
	case c.windows != nil:
		return "depthwise/" + c.windows.f.Ints.String()
	case depthwise:
		return "depthwise"
	case c.lines != nil && c.lines.sparse != nil:
		return c.lines.sparse[0].Name()
	case c.lines != nil:
		return c.lines.panels[0].Name("direct")
	case c.planes != nil:
		return "direct/" + c.planes.f.Set.String()
	}
	return "im2col"
}

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
	if c.zeroPoint = zero; c.q.Least != nil {
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
	switch {
	case c.windows != nil:
		c.runWindows(p, x, y, sums)
		return
	case c.depthwise:
		depthwiseQ[T]{s, c.og, x, y, sums, c.wd, c.zeroPoint, &c.q}.run(p)
		return
	}
	if c.lines != nil {
		c.runLines(p, x, y, sums)
		return
	}
	q := c.cut(p)
	workers.Each(p, q.pieces(), 1, patchesQ[T]{c, q, x, y, sums})
}

// patchesQ holds the arguments of an im2col work item.
type patchesQ[T int8 | uint8] struct {
	c    *Int8[T]
	cut  cut
	x, y []T
	sums []int32
}

// Piece computes work items lo to hi.
func (q patchesQ[T]) Piece(lo, hi int) {
	c, s := q.c, &q.c.s
	in := quantise.Bits(q.x)
	c.each(&q.cut, lo, hi, func(t patchPiece) {
		c.patchesNHWC(t.buf, in[t.n*s.H*s.W*s.C:][:s.H*s.W*s.C], t.g, t.p0, t.np)
		var sum [16]int32
		for o := t.o0; o < t.o1; o += 4 {
			ch := min(4, t.o1-o)
			for i := 0; i < t.np; i += 4 {
				c.weights[t.g].Sums(o, t.buf[i*c.k:], &sum)
				for j := range min(4, t.np-i) {
					at := (t.n*q.cut.places+t.p0+i+j)*s.OC + t.g*c.og + o
					if q.sums != nil {
						copy(q.sums[at:][:ch], sum[4*j:])
						continue
					}
					quantise.RequantRow(q.y[at:][:ch], sum[4*j:], &c.q, t.g*c.og+o)
				}
			}
		}
	})
}

// runWindows is run for a depthwise convolution with SIMD kernels.
func (c *Int8[T]) runWindows(p *workers.Pool, x, y []T, sums []int32) {
	c.windows.lines(p, &c.s, quantise.Bits(x), c.signed, c.zeroPoint, epilogue{sums: sums, f: c.windows.ints, y: quantise.Bits(y), q: &c.q})
}

// runLines is run with SIMD kernels.
func (c *Int8[T]) runLines(p *workers.Pool, x, y []T, sums []int32) {
	c.lines.run(p, &c.s, c.og, quantise.Bits(x), c.signed, c.zeroPoint, epilogue{sums: sums, f: c.lines.panels[0].F, y: quantise.Bits(y), q: &c.q})
}

// patchesNHWC packs np patches from position p0 into panels of four, in the order tap, channel.
func (c *convQ) patchesNHWC(dst []float64, x []uint8, g, p0, np int) {
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
	convQ
	wd        []int32 // weights of a depthwise convolution in plain Go
	depthwise bool
	last      bool      // depthwise with channels-last input and output
	lanes     []int16   // its weights [KH,KW,OC]
	taps      *tapRange // remaining taps, if some only cover padding
	zeroPoint int32
	to        epilogue  // of the current run
	put       putPlanes // passes planes to it: created once, so that runs do not allocate
}

// NewSums prepares a convolution; see [SetSumWeights]. lastIn and lastOut select
// channels-last input and output. They require [Shape.SupportsNHWC], lastOut alone
// [Shape.SupportsNHWCOutput], or both [Shape.SupportsDepthwiseNHWC].
func NewSums(s Shape, lastIn, lastOut bool) *Sums {
	c := &Sums{taps: s.trimTaps()}
	if s.Groups > 1 && s.Groups == s.C {
		c.convQ, c.depthwise = convQ{s: s, cg: 1, og: s.OC / s.Groups, k: s.KH * s.KW}, true
		c.last = lastIn && lastOut
		if c.windows = newDepthwiseInt8(&c.s, c.og, c.last); c.windows == nil {
			c.wd = hugepages.Make[int32](s.OC * c.k)
		}
	} else {
		c.convQ = newConvQ(s, lastIn, lastOut)
	}
	c.to.oc, c.to.out = s.OC, s.OH*s.OW
	if !lastOut {
		c.to.area = c.to.out
	}
	c.put = func(plane, rows, at, n int, sums []int32, line int) { c.to.rows(plane, rows, at, n, sums, line) }
	return c
}

// Name returns the algorithm; see [Int8.Name].
func (c *Sums) Name() string { return c.name(c.depthwise) }

// SumWeight is a weight of a [Sums].
type SumWeight interface{ int8 | uint8 | int32 }

// SetSumWeights sets weights [OC,C/Groups,KH,KW]; their differences to the zero point are at most
// 510 in magnitude. It keeps no reference to w.
func SetSumWeights[W SumWeight](c *Sums, w []W, zero int32) {
	w = trimmedWeights(c.taps, w, c.s.OC, c.cg, false)
	taps := c.s.KH * c.s.KW
	switch {
	case c.last:
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
		setWeights(nil, &c.convQ, w, zero)
	default:
		sc, workspace := scratch.Borrow((len(w)*int(unsafe.Sizeof(w[0])) + 3) / 4)
		last := unsafe.Slice((*W)(unsafe.Pointer(unsafe.SliceData(workspace))), len(w))
		for o := range c.s.OC {
			transposeWeights(last[o*c.k:], w[o*c.k:], taps, c.cg)
		}
		setWeights(nil, &c.convQ, last, zero)
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
func (c *Sums) SetZero(signed bool, zero int32) {
	c.zeroPoint = zero
	c.setZero(signed, zero)
}

// UsesSIMD reports whether SIMD kernels compute the sums.
func (c *Sums) UsesSIMD() bool { return c.windows != nil || c.planes != nil || c.lines != nil }

// putPlanes receives sums piece by piece while they are in the cache, from several threads: rows
// planes of one image, n positions each from position at, line apart. Each output channel of each
// image has one plane.
type putPlanes = func(plane, rows, at, n int, sums []int32, line int)

// RunRescaled convolves the bytes x into the quantised values y; it requires [Sums.UsesSIMD].
func (c *Sums) RunRescaled(p *workers.Pool, x, y []uint8, q *quantise.Rescale) {
	c.to.y, c.to.sums, c.to.r = y, nil, q
	c.vectors(p, x)
}

// vectors convolves x with SIMD kernels.
func (c *Sums) vectors(p *workers.Pool, x []uint8) {
	switch {
	case c.lines != nil:
		c.lines.run(p, &c.s, c.og, x, c.signed, c.zeroPoint, c.to)
	case c.last:
		c.windows.lines(p, &c.s, x, c.signed, c.zeroPoint, c.to)
	case c.windows != nil:
		c.windows.run(p, &c.s, x, c.signed, c.zeroPoint, c.put)
	default:
		c.planes.run(p, &c.s, c.og, x, c.signed, c.zeroPoint, &c.to, c.put)
	}
}

// Run convolves the bytes x into y.
func (c *Sums) Run(p *workers.Pool, x []uint8, y []int32) {
	s := &c.s
	area := s.OH * s.OW
	if c.UsesSIMD() {
		c.to.y, c.to.sums, c.to.r = nil, y, nil
		c.vectors(p, x)
		return
	}
	if s.Outputs() == 0 {
		return
	}
	if c.depthwise {
		workers.Do(p, s.N*s.OC, max(1, 1<<14/max(1, area*c.k)), sumArgs{c: c, x: x, y: y}, sumArgs.planes)
		return
	}
	q := c.cut(p)
	workers.Do(p, q.pieces(), 1, sumArgs{c, q, x, y}, sumArgs.pieces)
}

// sumArgs holds the arguments of a work item of [Sums.Run] in plain Go.
type sumArgs struct {
	c   *Sums
	cut cut
	x   []uint8
	y   []int32
}

// planes computes planes lo to hi of a depthwise convolution.
func (q sumArgs) planes(lo, hi int) {
	c, s := q.c, &q.c.s
	area := s.OH * s.OW
	for i := lo; i < hi; i++ {
		n, o := i/s.OC, i%s.OC
		c.plane(q.y[i*area:][:area], q.x[(n*s.C+o/c.og)*s.H*s.W:][:s.H*s.W], c.wd[o*c.k:][:c.k])
	}
}

// pieces computes im2col work items lo to hi.
func (q sumArgs) pieces(lo, hi int) {
	c, s, area := q.c, &q.c.s, q.cut.places
	c.each(&q.cut, lo, hi, func(t patchPiece) {
		c.patchesNCHW(t.buf, t.line, q.x[(t.n*s.C+t.g*c.cg)*s.H*s.W:][:c.cg*s.H*s.W], t.p0, t.np)
		out := q.y[(t.n*s.OC+t.g*c.og)*area+t.p0:]
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
func (c *convQ) patchesNCHW(dst []float64, line, x []uint8, p0, np int) {
	s, t := &c.s, &c.table
	at := 0
	for ch := range c.cg {
		plane := x[ch*s.H*s.W:][:s.H*s.W]
		for ky := range s.KH {
			for kx := range s.KW {
				l := tapRow(s, line, plane, ky, kx, p0, np, c.zero)
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
func (c *Sums) plane(y []int32, x []uint8, w []int32) {
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
