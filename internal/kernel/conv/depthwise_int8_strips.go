package conv

import (
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// byteStrips holds the parameters of an 8-bit depthwise convolution that runs down the rows of an
// image in strips (see [simd.ByteStrip]).
type byteStrips struct {
	f       *simd.ByteStrips
	k, step int
	nhwc    bool
	passes  int // of rows, see [simd.ByteStrips.Passes]
	// neighbouring columns of [N,H,W,C] that are computed together, one after the other
	cols    int
	fit     bool    // the kernels take the weights
	weights []int8  // over [N,C,H,W]
	size    int     // of the weights of a plane
	sums    []int32 // of weights
	wide    []int16 // weights of [N,H,W,C] before packing
	lanes   [2]byteLanes
}

// byteLanes holds the packed weights of [N,H,W,C], for 32-bit sums or for fused requantisation.
type byteLanes struct {
	blocks   []simd.LaneBlock
	cols     int
	weights  []int8          // nil until needed
	start    []int32         // initial accumulators, if constant, and scales
	fusing   quantise.Fusing // state for which start was made
	rescaled byteRescale
}

// lines returns the number of cache lines that the channels of all joined columns fill.
func (l *byteLanes) lines() int { return lineOf(&l.blocks[len(l.blocks)-1]) + 1 }

// lineOf returns the cache line that a block begins in.
func lineOf(b *simd.LaneBlock) int { return b.First / simd.ByteLanes }

// byteRescale holds the ONNX requantisation for which start was made.
type byteRescale struct {
	fixed  *quantise.Rescale // replaces all other fields but zero
	zero   int32             // unsigned input zero point
	q      simd.Rescaling
	scales []float32
	bias   []int32
}

// matches reports whether start was made for q and the zero point.
func (of *byteRescale) matches(q *quantise.Rescale, zero int32) bool {
	if q.Fixed {
		return of.fixed == q && of.zero == zero
	}
	return of.scales != nil && of.zero == zero && of.q == q.Q && slices.Equal(of.scales, q.Scales) && slices.Equal(of.bias, q.Bias)
}

// set records q and the zero point.
func (of *byteRescale) set(q *quantise.Rescale, zero int32) {
	of.fixed, of.zero = nil, zero
	if q.Fixed {
		of.fixed, of.scales = q, nil
		return
	}
	of.q, of.scales, of.bias = q.Q, append(of.scales[:0], q.Scales...), append(of.bias[:0], q.Bias...)
}

// planByteStrips returns nil if strips do not support the shape.
func (s *Shape) planByteStrips(og int, nhwc bool) *byteStrips {
	if og != 1 || s.KH != s.KW || s.StrideH != s.StrideW || s.DilH != 1 || s.DilW != 1 || s.W < 1 || s.H < 1 {
		return nil
	}
	f := simd.ByteStripKernels(s.KH, s.StrideH)
	if f == nil || f.OnlyQuantised() && !nhwc {
		return nil
	}
	b := &byteStrips{f: f, k: s.KH, step: s.StrideH, nhwc: nhwc, passes: f.Passes(s.KH, s.StrideH), cols: 1}
	switch {
	case !nhwc || s.StrideW > 1:
	case f.OnlyQuantised():
		b.cols = joinedPairs(s.C, s.OW)
	default:
		b.cols = joinedColumns(s.C, s.OW)
	}
	if f.OnlyQuantised() && b.channels(s.C) < simd.PairLanes {
		return nil
	}
	return b
}

// maxJoinedColumns is the maximum number of joined columns if a block holds the channels of
// several.
const maxJoinedColumns = 8

// joinedColumns returns how many of n neighbouring columns of c channels are joined, so that
// blocks of their consecutive channels have few empty lanes.
func joinedColumns(c, n int) int {
	// Relative cost of blocks: half a block takes more than half as long.
	blocks := func(cols int) float64 {
		rest := cols * c % simd.ByteLanes
		return float64(cols*c/simd.ByteLanes) + min(1, 0.6*float64((rest+simd.ByteLanes/2-1)/(simd.ByteLanes/2)))
	}
	best, least := 1, 0.97*float64(n)*blocks(1)
	for cols := 2; cols <= min(n, max(maxJoinedColumns, simd.ByteLanes/c)); cols++ {
		if t := float64(n/cols)*blocks(cols) + blocks(n%cols); t < least {
			best, least = cols, 0.97*t
		}
	}
	return best
}

// joinedPairs is joinedColumns for kernels of pairs of taps. They read and write four channels at a
// time beside the borders.
func joinedPairs(c, n int) int {
	best, least := 1, float64(n)*float64((c+simd.PairLanes-1)/simd.PairLanes)/2
	if c < simd.PairLanes {
		least = math.Inf(1)
	}
	blocks := func(cols int) float64 { return float64((cols*c + 2*simd.PairLanes - 1) / (2 * simd.PairLanes)) }
	for cols := 2; c%4 == 0 && cols <= min(n, maxJoinedColumns); cols++ {
		if t := float64(n/cols)*blocks(cols) + blocks(n%cols); t < 0.9*least {
			best, least = cols, t
		}
	}
	return best
}

// channels returns the number of channels of all joined columns.
func (b *byteStrips) channels(n int) int { return n * b.cols }

// setLanes takes weights [K,K,n]; the slice must not change.
func (b *byteStrips) setLanes(n int, w []int16) {
	b.wide, b.lanes = w, [2]byteLanes{}
	if b.fit = b.f.OnlyQuantised() || gemm.FitsInt8(w[:n*b.k*b.k], 0); b.fit {
		sumTaps(b, n, w, n, 1)
	}
}

// setPlanes takes weights [n,K,K].
func (b *byteStrips) setPlanes(n int, w []int32) {
	taps := b.k * b.k
	if b.fit = gemm.FitsInt8(w[:n*taps], 0); !b.fit {
		return
	}
	sumTaps(b, n, w, 1, taps)
	b.size = b.f.SpreadSize(b.k)
	b.weights = make([]int8, n*b.size)
	for i := range n {
		b.f.PackSpread(b.weights[i*b.size:][:b.size], b.k, w[i*taps:])
	}
}

// sumTaps adds up the weights per channel: tap t of channel i of n is w[t*tap+i*channel].
func sumTaps[W int16 | int32](b *byteStrips, n int, w []W, tap, channel int) {
	b.sums = scratch.Zeroed(b.sums, b.channels(n))
	for t := range b.k * b.k {
		for i := range n {
			b.sums[i] += int32(w[t*tap+i*channel])
		}
	}
	for i := n; i < len(b.sums); i++ {
		b.sums[i] = b.sums[i-n]
	}
}

// usable reports whether strips support the weights and the zero point: padding is stored as a
// normal 8-bit value.
func (b *byteStrips) usable(signed bool, zero int32) bool {
	lo, hi := int32(0), int32(255)
	if signed {
		lo, hi = -128, 127
	}
	return b != nil && b.fit && lo <= zero && zero <= hi
}

var byteStripPool = sync.Pool{New: func() any { return new(simd.ByteStrip) }}

func releaseByteStrip(t *simd.ByteStrip) {
	*t = simd.ByteStrip{}
	byteStripPool.Put(t)
}

// maxSums is the number of sums that stay in the L1 cache until they are requantised.
const maxSums = 1 << 13

// byteArgs holds the arguments of a work item.
type byteArgs struct {
	b      *byteStrips
	s      *Shape
	x      []uint8
	signed bool
	zero   int32
	start  []int32
	l      *byteLanes // over [N,H,W,C]
	codes  bool       // requantisation is fused
	pieces int        // of an image of [N,H,W,C]
	parts  int        // of its channels
	sink   epilogue   // over [N,H,W,C]
	put    putPlanes
}

// pack packs the weights for rows of c channels in the first run. It returns nil if requantised
// results (codes) are wanted and strips do not support them.
func (b *byteStrips) pack(c int, codes bool, q *quantise.Requant, signed bool, zero int32) *byteLanes {
	l := &b.lanes[0]
	if codes {
		if l = &b.lanes[1]; !b.f.TakesScales(&q.Scales, q.Min >= q.Zero) || !simd.EightBits(q.Zero, q.Min, q.Max) {
			return nil
		}
	}
	if l.weights != nil && (!codes || l.fusing == q.Fusing) {
		return l
	}
	var up []int32
	if codes && q.Scales.Doubles {
		up = q.Scales.Up
	}
	if l.weights == nil && !b.packLanes(l, c, codes, up) {
		return nil
	}
	if codes {
		l.fusing = q.Fusing
		sc, workspace := scratch.Borrow(c * l.cols)
		begin, z := scratch.AsInt32(workspace), q.Zero
		gemm.ZeroPointSums(begin, b.sums[:len(begin)], gemm.UnsignedZero(signed, zero))
		if q.Max > math.MaxInt8 {
			z -= 128
		}
		l.start = b.f.PackScales(l.start, begin, l.blocks, &q.Scales, z, q.Min >= q.Zero)
		scratch.Float32s.Put(sc)
	}
	return l
}

// packLanes packs the weights for rows of c channels, shifted to the left by up, which may be nil;
// false if no kernels support them.
func (b *byteStrips) packLanes(l *byteLanes, c int, codes bool, up []int32) bool {
	if l.blocks, l.cols = b.f.LaneBlocks(b.k, c, b.cols, codes); l.blocks == nil {
		return false
	}
	l.weights = b.f.PackLanes(b.k, l.blocks, b.wide, c, up)
	return true
}

// packRescaled is pack for requantisation by q.
func (b *byteStrips) packRescaled(c int, q *quantise.Rescale, signed bool, zero int32) *byteLanes {
	l, z := &b.lanes[1], gemm.UnsignedZero(signed, zero)
	if !q.SmallScales() || l.weights == nil && !b.packLanes(l, c, true, nil) {
		return nil
	}
	if l.rescaled.matches(q, z) {
		return l
	}
	l.rescaled.set(q, z)
	sc, workspace := scratch.Borrow(c * l.cols)
	begin, to := scratch.AsInt32(workspace), q.Zero
	gemm.ZeroPointSums(begin, b.sums[:len(begin)], z)
	for i := range begin {
		begin[i] += q.Bias[i%c]
	}
	if q.Q.Hi > math.MaxInt8 {
		to -= 128
	}
	l.start = b.f.PackRescaled(l.start, begin, l.blocks, q.Scales, to)
	scratch.Float32s.Put(sc)
	return l
}

// lines convolves x over [N,H,W,C]. It returns false if no kernels support the results.
func (b *byteStrips) lines(p *workers.Pool, s *Shape, x []uint8, signed bool, zero int32, sink epilogue) bool {
	args := byteArgs{b: b, s: s, x: x, signed: signed, zero: zero, sink: sink}
	switch {
	case sink.sums != nil:
	case sink.r != nil:
		args.l = b.packRescaled(s.C, sink.r, signed, zero)
	default:
		args.l = b.pack(s.C, true, sink.q, signed, zero)
	}
	var workspace *[]float32
	switch args.codes = args.l != nil; {
	case args.codes:
		args.start = args.l.start
	case b.f.OnlyQuantised():
		return false
	default:
		args.l = b.pack(s.C, false, nil, signed, zero)
		all, last := b.channels(s.C), args.l.blocks[len(args.l.blocks)-1]
		var fs []float32
		workspace, fs = scratch.Borrow(last.Start + last.Size + all)
		begin := scratch.AsInt32(fs)[last.Start+last.Size:]
		args.start = scratch.AsInt32(fs)[:last.Start+last.Size]
		gemm.ZeroPointSums(begin, b.sums, gemm.UnsignedZero(signed, zero))
		b.f.PackStart(args.start, begin, args.l.blocks)
	}
	var jobs int
	jobs, args.pieces, args.parts = b.cut(p, s, args.l.lines())
	all := s.N * args.parts * args.pieces
	workers.Do(p, all, (all+jobs-1)/jobs, args, byteArgs.lines)
	if workspace != nil {
		scratch.Float32s.Put(workspace)
	}
	return true
}

// cut returns the number of work items, of row pieces per image, and of channel parts, whose
// channels fill the given number of cache lines.
func (b *byteStrips) cut(p *workers.Pool, s *Shape, lines int) (jobs, pieces, parts int) {
	t := p.Taking()
	most, parts := min(s.OH, stripInputRows/b.step), 1
	jobs = min(gemm.JobCount(p, s.N*s.OH*s.OW*s.C*b.k*b.k, byteRate), 2*t)
	switch {
	case jobs == 1:
	case s.N*s.H*s.W <= smallImage && lines >= 3*t:
		parts = jobs
	default:
		if jobs > t && s.N*s.OH/jobs < 2*b.k {
			jobs = t
		}
		most = max(1, min(most, s.N*s.OH/jobs))
	}
	return jobs, (s.OH + most - 1) / most, parts
}

// smallImage is the number of positions of images that are split by channels. With few rows a
// piece takes as long for its columns as for its rows, and pieces overlap much. If the previous
// convolution is also split by channels, its output is in the cache of the same core.
const smallImage = 256

// stripInputRows is the maximum number of rows that a strip runs down, besides the rows that
// windows read at its end. Image rows are often so far apart that few L1 sets hold those of one
// column, and TLB misses are slower with more pages: 64 rows took up to 1.4 times as long on a
// Xeon.
const stripInputRows = 32

// lines convolves pieces lo to hi of images, one channel block after the other: their weights
// stay in the cache.
func (a byteArgs) lines(lo, hi int) {
	b, s, l := a.b, a.s, a.l
	t := byteStripPool.Get().(*simd.ByteStrip)
	ss, fs := scratch.Borrow(maxSums)
	t.SetEdge(uint8(a.zero), a.signed)
	t.LineSrc, t.NextSrc, t.Tap = s.W*s.C, l.cols*b.step*s.C, s.C
	if a.codes {
		if r := a.sink.r; r != nil {
			t.SetLimits(r.Q.Lo, r.Q.Hi)
		} else {
			t.SetLimits(a.sink.q.Min, a.sink.q.Max)
		}
		t.LineDst, t.NextDst = b.passes*s.OW*s.C, l.cols*s.C
	}
	for i := lo; i < hi; i++ {
		n, part, piece := i/a.pieces/a.parts, i/a.pieces%a.parts, i%a.pieces
		from, to := gemm.Portion(piece, a.pieces, s.OH)
		first, last := gemm.Portion(part, a.parts, l.lines())
		for j, end := 0, 0; j < len(l.blocks); j = end {
			// Blocks that share cache lines go together.
			for end < len(l.blocks) && lineOf(&l.blocks[end]) == lineOf(&l.blocks[j]) {
				end++
			}
			if at := lineOf(&l.blocks[j]); at < first || at >= last {
				continue // belongs to another part
			}
			for y := from; y < min(to, from+b.passes); y++ {
				lines := (to - y + b.passes - 1) / b.passes
				line := t.SetLines(b.k, b.passes*b.step, y*b.step-s.PadT, s.H, lines)
				t.Src = &a.x[(n*s.H+line)*s.W*s.C]
				a.columns(t, l.blocks[j:end], lines, (n*s.OH+y)*s.OW*s.C, scratch.AsInt32(fs))
			}
		}
	}
	scratch.Float32s.Put(ss)
	releaseByteStrip(t)
}

// byteCacheMax is the number of bytes of input and output that stay in the L1 cache for all
// blocks that share them.
const byteCacheMax = 1 << 14

// columns runs down all columns of a piece of an image for blocks of channels. The output of the
// piece has lines rows and begins at place.
func (a *byteArgs) columns(t *simd.ByteStrip, blocks []simd.LaneBlock, lines, place int, sums []int32) {
	b, s := a.b, a.s
	most := s.OW
	switch {
	case !a.codes:
		most = len(sums) / (lines * simd.ByteLanes)
	case len(blocks) > 1:
		most = max(1, byteCacheMax/(2*simd.ByteLanes*lines*b.step))
	}
	for ox := 0; ox < s.OW; {
		n, cols := 1, min(a.l.cols, s.OW-ox)
		column := ox*b.step - s.PadL
		if inside := (s.W-b.k+s.PadL)/b.step + 1 - ox; column >= 0 && inside > cols {
			// Columns with all taps inside the image.
			n = min(most, min(inside, s.OW-ox)/cols)
		}
		for i := range blocks {
			block := &blocks[i]
			if block.First >= cols*s.C {
				break // beyond the last column
			}
			t.SetSeen(b.k, block, s.C, cols, column, s.W)
			a.strips(t, block, n, cols, column, lines, place+ox*s.C, sums)
		}
		ox += n * cols
	}
}

// strips computes n strips of cols columns each from column column for a block.
func (a *byteArgs) strips(t *simd.ByteStrip, block *simd.LaneBlock, n, cols, column, lines, place int, sums []int32) {
	b, s := a.b, a.s
	t.N, t.At, t.W, t.Start = n, column*s.C+block.First, &a.l.weights[block.W], &a.start[block.Start]
	if a.codes {
		t.Out = &a.sink.y[place+block.First]
		b.f.Lanes(t, b.k, b.step, block, true)
		return
	}
	size := lines * block.Size
	t.Dst, t.LineDst, t.NextDst = &sums[0], 4*block.Size, 4*size
	b.f.Lanes(t, b.k, b.step, block, false)
	for c := range n {
		wide := min(cols*s.C-block.First, block.Lanes)
		if a.sink.r == nil {
			a.sink.put(sums[c*size:], block.Size, lines, place+c*cols*s.C+block.First, s.OW*s.C, block.First, wide)
			continue
		}
		// The scales of one column.
		for at := 0; at < wide; {
			ch := (block.First + at) % s.C
			n := min(wide-at, s.C-ch)
			a.sink.put(sums[c*size+at:], block.Size, lines, place+c*cols*s.C+block.First+at, s.OW*s.C, ch, n)
			at += n
		}
	}
}

// planes convolves x over [N,C,H,W]; put receives the sums of whole planes.
func (b *byteStrips) planes(p *workers.Pool, s *Shape, x []uint8, signed bool, zero int32, put putPlanes) {
	out := s.OH * s.OW
	sc, workspace := scratch.Borrow(s.C)
	start := scratch.AsInt32(workspace)
	gemm.ZeroPointSums(start, b.sums, gemm.UnsignedZero(signed, zero))
	jobs := min(gemm.JobCount(p, s.N*s.C*out*b.k*b.k, byteRate), 2*p.Threads())
	workers.Do(p, s.N*s.C, (s.N*s.C+jobs-1)/jobs, byteArgs{b: b, s: s, x: x, signed: signed, zero: zero, start: start, put: put}, func(a byteArgs, lo, hi int) {
		b, s, x, start := a.b, a.s, a.x, a.start
		area, out := s.H*s.W, s.OH*s.OW
		t := byteStripPool.Get().(*simd.ByteStrip)
		near := max(1, maxSums/out)
		ss, sums := scratch.Borrow(min(near, hi-lo) * out)
		t.SetEdge(uint8(a.zero), a.signed)
		line := t.SetLines(b.k, b.step, -s.PadT, s.H, s.OH)
		t.LineDst, t.NextDst, t.LineSrc, t.NextSrc = 4*s.OW, 4*out, s.W, area
		t.NextW, t.NextStart, t.Tap = b.size, 4, 1
		for lo < hi {
			end := min(hi, lo+near, (lo/s.C+1)*s.C)
			ch := lo % s.C
			t.Src, t.W, t.Start, t.N = &x[lo*area+line*s.W], &b.weights[ch*b.size], &start[ch], end-lo
			for x0 := 0; x0 < s.OW; x0 += simd.ByteColumns {
				first := x0*b.step - s.PadL
				t.Dst, t.At = &scratch.AsInt32(sums)[x0], first
				b.f.Spread(t, b.k, b.step, min(simd.ByteColumns, s.OW-x0), first, s.W)
			}
			a.put(lo, end-lo, 0, out, scratch.AsInt32(sums), out)
			lo = end
		}
		scratch.Float32s.Put(ss)
		releaseByteStrip(t)
	})
	scratch.Float32s.Put(sc)
}
