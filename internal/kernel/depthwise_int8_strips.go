package kernel

import (
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// byteStrips is what a depthwise convolution of 8-bit numbers needs to go down the lines
// of a picture in strips (see [simd.ByteStrip]).
type byteStrips struct {
	f       *simd.ByteStrips
	k, step int
	nhwc    bool
	cols    int     // neighbouring columns of [N,H,W,C] that go together, one behind the other
	fit     bool    // weights have 8 bits
	weights []int8  // of planes
	size    int     // of the weights of a plane
	sums    []int32 // of weights
	wide    []int16 // weights of [N,H,W,C] before they are packed
	lanes   [2]byteLanes
}

// byteLanes are the weights of [N,H,W,C] for sums, or for results that are quantised while they are computed.
type byteLanes struct {
	blocks   []simd.LaneBlock
	cols     int
	weights  []int8  // nil until they are wanted
	start    []int32 // what sums begin with, if that stays the same, and scales
	fusing   fusing  // for which start was made
	rescaled byteRescale
}

// lines is the number of lines of the cache that the channels of all columns that go together fill.
func (l *byteLanes) lines() int { return lineOf(&l.blocks[len(l.blocks)-1]) + 1 }

// lineOf is the line of the cache that a block begins in.
func lineOf(b *simd.LaneBlock) int { return b.First / simd.ByteLanes }

// byteRescale is what start was made of for the rounding of ONNX.
type byteRescale struct {
	fixed  *Rescale // instead of the rest but zero
	zero   int32    // of what is convolved, as a number without a sign
	q      simd.Rescaling
	scales []float32
	bias   []int32
}

// matches tells whether it is what follows from q and a zero point.
func (of *byteRescale) matches(q *Rescale, zero int32) bool {
	if q.Fixed {
		return of.fixed == q && of.zero == zero
	}
	return of.scales != nil && of.zero == zero && of.q == q.q && slices.Equal(of.scales, q.Scales) && slices.Equal(of.bias, q.Bias)
}

// set remembers q and a zero point.
func (of *byteRescale) set(q *Rescale, zero int32) {
	of.fixed, of.zero = nil, zero
	if q.Fixed {
		of.fixed, of.scales = q, nil
		return
	}
	of.q, of.scales, of.bias = q.q, append(of.scales[:0], q.Scales...), append(of.bias[:0], q.Bias...)
}

// planByteStrips returns nil for what strips cannot do.
func (s *ConvShape) planByteStrips(og int, nhwc bool) *byteStrips {
	if og != 1 || s.KH != s.KW || s.StrideH != s.StrideW || s.DilH != 1 || s.DilW != 1 || s.W < 1 || s.H < 1 {
		return nil
	}
	f := simd.ByteStripKernels(s.KH, s.StrideH)
	if f == nil {
		return nil
	}
	b := &byteStrips{f: f, k: s.KH, step: s.StrideH, nhwc: nhwc, cols: 1}
	if nhwc && s.StrideW == 1 {
		b.cols = joinedColumns(s.C, s.OW)
	}
	return b
}

// maxJoinedColumns is the most columns that go together where a block has several channels of fewer ones.
const maxJoinedColumns = 8

// joinedColumns is how many neighbouring columns of c channels go together, so that blocks of their channels, one behind the other, have few lanes that
// nothing is in, of n columns.
func joinedColumns(c, n int) int {
	// What blocks take: half of one takes more than half as long.
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

// channels is the number of channels, of all columns that go together.
func (b *byteStrips) channels(n int) int { return n * b.cols }

// setLanes takes weights [K,K,n], which have to stay.
func (b *byteStrips) setLanes(n int, w []int16) {
	b.wide, b.lanes = w, [2]byteLanes{}
	if b.fit = fits8(w[:n*b.k*b.k], 0); b.fit {
		sumTaps(b, n, w, n, 1)
	}
}

// setPlanes takes weights [n,K,K].
func (b *byteStrips) setPlanes(n int, w []int32) {
	taps := b.k * b.k
	if b.fit = fits8(w[:n*taps], 0); !b.fit {
		return
	}
	sumTaps(b, n, w, 1, taps)
	b.size = b.f.SpreadSize(b.k)
	b.weights = make([]int8, n*b.size)
	for i := range n {
		b.f.PackSpread(b.weights[i*b.size:][:b.size], b.k, w[i*taps:])
	}
}

// sumTaps adds up weights: weight t of channel i of n lies at w[t*tap+i*channel].
func sumTaps[W int16 | int32](b *byteStrips, n int, w []W, tap, channel int) {
	b.sums = zeroed(b.sums, b.channels(n))
	for t := range b.k * b.k {
		for i := range n {
			b.sums[i] += int32(w[t*tap+i*channel])
		}
	}
	for i := n; i < len(b.sums); i++ {
		b.sums[i] = b.sums[i-n]
	}
}

// usable tells whether strips compute with the weights and a zero point: beyond the
// borders stands a number like all others.
func (b *byteStrips) usable(signed bool, zero int32) bool {
	lo, hi := int32(0), int32(255)
	if signed {
		lo, hi = -128, 127
	}
	return b != nil && b.fit && lo <= zero && zero <= hi
}

var byteStripPool = sync.Pool{New: func() any { return new(simd.ByteStrip) }}

func giveBytes(t *simd.ByteStrip) {
	*t = simd.ByteStrip{}
	byteStripPool.Put(t)
}

// maxSums is the number of sums that stay in the first-level cache until they are
// quantised.
const maxSums = 1 << 13

// byteArgs is what a piece of the work needs.
type byteArgs struct {
	b      *byteStrips
	s      *ConvShape
	x      []uint8
	signed bool
	zero   int32
	start  []int32
	l      *byteLanes // of lines
	codes  bool       // they are quantised while they are computed
	pieces int        // of an image of [N,H,W,C]
	parts  int        // of its channels
	sink   tileSink   // of lines
	put    putPlanes
}

// pack makes what lines of c channels need in the first run. It returns nil for quantised results (codes) where strips
// have none.
func (b *byteStrips) pack(c int, codes bool, q *Requant, signed bool, zero int32) *byteLanes {
	l := &b.lanes[0]
	if codes {
		if l = &b.lanes[1]; !q.scales.Small || !simd.EightBits(q.Zero, q.Min, q.Max) {
			return nil
		}
	}
	if l.weights != nil && (!codes || l.fusing == q.fusing) {
		return l
	}
	if l.weights == nil && !b.packLanes(l, c, codes) {
		return nil
	}
	if codes {
		l.fusing = q.fusing
		sc, room := borrow(c * l.cols)
		begin, z := asInt32(room), q.Zero
		start8(begin, b.sums[:len(begin)], zero8(signed, zero))
		if q.Max > math.MaxInt8 {
			z -= 128
		}
		l.start = b.f.PackScales(l.start, begin, l.blocks, &q.scales, z, q.Min >= q.Zero)
		scratch.Put(sc)
	}
	return l
}

// packLanes packs the weights of lines of c channels; false where strips have no loops for that.
func (b *byteStrips) packLanes(l *byteLanes, c int, codes bool) bool {
	if l.blocks, l.cols = b.f.LaneBlocks(b.k, c, b.cols, codes); l.blocks == nil {
		return false
	}
	l.weights = b.f.PackLanes(b.k, l.blocks, b.wide, c)
	return true
}

// packRescaled is pack for codes by q.
func (b *byteStrips) packRescaled(c int, q *Rescale, signed bool, zero int32) *byteLanes {
	l, z := &b.lanes[1], zero8(signed, zero)
	if !q.small() || l.weights == nil && !b.packLanes(l, c, true) {
		return nil
	}
	if l.rescaled.matches(q, z) {
		return l
	}
	l.rescaled.set(q, z)
	sc, room := borrow(c * l.cols)
	begin, to := asInt32(room), q.Zero
	start8(begin, b.sums[:len(begin)], z)
	for i := range begin {
		begin[i] += q.Bias[i%c]
	}
	if q.q.Hi > math.MaxInt8 {
		to -= 128
	}
	l.start = b.f.PackRescaled(l.start, begin, l.blocks, q.Scales, to)
	scratch.Put(sc)
	return l
}

// lines convolves x over [N,H,W,C].
func (b *byteStrips) lines(p *workers.Pool, s *ConvShape, x []uint8, signed bool, zero int32, sink tileSink) {
	args := byteArgs{b: b, s: s, x: x, signed: signed, zero: zero, sink: sink}
	switch {
	case sink.sums != nil:
	case sink.r != nil:
		args.l = b.packRescaled(s.C, sink.r, signed, zero)
	default:
		args.l = b.pack(s.C, true, sink.q, signed, zero)
	}
	var room *[]float32
	if args.codes = args.l != nil; args.codes {
		args.start = args.l.start
	} else {
		args.l = b.pack(s.C, false, nil, signed, zero)
		all, last := b.channels(s.C), args.l.blocks[len(args.l.blocks)-1]
		var fs []float32
		room, fs = borrow(last.Start + last.Size + all)
		begin := asInt32(fs)[last.Start+last.Size:]
		args.start = asInt32(fs)[:last.Start+last.Size]
		start8(begin, b.sums, zero8(signed, zero))
		b.f.PackStart(args.start, begin, args.l.blocks)
	}
	var jobs int
	jobs, args.pieces, args.parts = b.cut(p, s, args.l.lines())
	all := s.N * args.parts * args.pieces
	workers.Do(p, all, (all+jobs-1)/jobs, args, byteArgs.lines)
	if room != nil {
		scratch.Put(room)
	}
}

// cut says into how many jobs the work is cut, how many pieces of its lines a picture has, and how many parts of its channels, which fill so many
// lines of the cache.
func (b *byteStrips) cut(p *workers.Pool, s *ConvShape, lines int) (jobs, pieces, parts int) {
	t := p.Taking()
	most, parts := min(s.OH, stripInputRows/b.step), 1
	jobs = min(jobCount(p, s.N*s.OH*s.OW*s.C*b.k*b.k, byteRate), 2*t)
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

// smallImage is the number of positions of pictures that are cut by channels: where lines are few, a piece of them takes as long for its
// columns as for its lines, and what windows of two pieces see is much. Convolutions before them that are cut by channels, too, leave there what is read.
const smallImage = 256

// stripInputRows is the most lines of a picture that a strip goes down, besides those that windows see at its end. Lines often lie so far apart that few places of
// the first-level cache have those of one column, and pages of more lines than that are looked up more slowly: 64 lines took up to 1.4 times as long on a Xeon.
const stripInputRows = 32

// lines convolves pieces lo to hi of images, block by block of channels: their weights stay near.
func (a byteArgs) lines(lo, hi int) {
	b, s, l := a.b, a.s, a.l
	t := byteStripPool.Get().(*simd.ByteStrip)
	ss, fs := borrow(maxSums)
	t.SetEdge(uint8(a.zero), a.signed)
	t.LineSrc, t.NextSrc, t.Tap = s.W*s.C, l.cols*b.step*s.C, s.C
	if a.codes {
		if r := a.sink.r; r != nil {
			t.SetLimits(r.q.Lo, r.q.Hi)
		} else {
			t.SetLimits(a.sink.q.Min, a.sink.q.Max)
		}
		t.LineDst, t.NextDst = s.OW*s.C, l.cols*s.C
	}
	for i := lo; i < hi; i++ {
		n, part, piece := i/a.pieces/a.parts, i/a.pieces%a.parts, i%a.pieces
		from, to := portion(piece, a.pieces, s.OH)
		first, last := portion(part, a.parts, l.lines())
		line := t.SetLines(b.k, b.step, from*b.step-s.PadT, s.H, to-from)
		t.Src = &a.x[(n*s.H+line)*s.W*s.C]
		for j, end := 0, 0; j < len(l.blocks); j = end {
			// Blocks that share lines of the cache go together.
			for end < len(l.blocks) && lineOf(&l.blocks[end]) == lineOf(&l.blocks[j]) {
				end++
			}
			if at := lineOf(&l.blocks[j]); at < first || at >= last {
				continue // of another part
			}
			a.columns(t, l.blocks[j:end], to-from, (n*s.OH+from)*s.OW*s.C, asInt32(fs))
		}
	}
	scratch.Put(ss)
	giveBytes(t)
}

// byteCacheMax is the number of bytes of input and results that stay in the first-level cache for all blocks that share them.
const byteCacheMax = 1 << 14

// columns goes down all columns of a piece of a picture for blocks of channels. Results of the piece have lines lines
// and begin at place.
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
			// Columns whose taps are all there.
			n = min(most, min(inside, s.OW-ox)/cols)
		}
		for i := range blocks {
			block := &blocks[i]
			if block.First >= cols*s.C {
				break // of columns that are not there
			}
			t.SetSeen(b.k, block, s.C, cols, column, s.W)
			a.strips(t, block, n, cols, column, lines, place+ox*s.C, sums)
		}
		ox += n * cols
	}
}

// strips computes n strips of cols columns each, from column on, for a block.
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
		// The scales are those of a column.
		for at := 0; at < wide; {
			ch := (block.First + at) % s.C
			n := min(wide-at, s.C-ch)
			a.sink.put(sums[c*size+at:], block.Size, lines, place+c*cols*s.C+block.First+at, s.OW*s.C, ch, n)
			at += n
		}
	}
}

// planes convolves x over [N,C,H,W]; put gets the sums of whole planes.
func (b *byteStrips) planes(p *workers.Pool, s *ConvShape, x []uint8, signed bool, zero int32, put putPlanes) {
	out := s.OH * s.OW
	sc, room := borrow(s.C)
	start := asInt32(room)
	start8(start, b.sums, zero8(signed, zero))
	jobs := min(jobCount(p, s.N*s.C*out*b.k*b.k, byteRate), 2*p.Threads())
	workers.Do(p, s.N*s.C, (s.N*s.C+jobs-1)/jobs, byteArgs{b: b, s: s, x: x, signed: signed, zero: zero, start: start, put: put}, func(a byteArgs, lo, hi int) {
		b, s, x, start := a.b, a.s, a.x, a.start
		area, out := s.H*s.W, s.OH*s.OW
		t := byteStripPool.Get().(*simd.ByteStrip)
		near := max(1, maxSums/out)
		ss, sums := borrow(min(near, hi-lo) * out)
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
				t.Dst, t.At = &asInt32(sums)[x0], first
				b.f.Spread(t, b.k, b.step, min(simd.ByteColumns, s.OW-x0), first, s.W)
			}
			a.put(lo, end-lo, 0, out, asInt32(sums), out)
			lo = end
		}
		scratch.Put(ss)
		giveBytes(t)
	})
	scratch.Put(sc)
}
