package kernel

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// byteStrips is what a depthwise convolution of 8-bit numbers needs to go down the lines
// of a picture in strips (see [simd.ByteStrip]).
type byteStrips struct {
	f       *simd.ByteStrips
	k, step int
	nhwc    bool
	cols    int    // neighbouring columns of [N,H,W,C] that go together, one behind the other
	weights []int8 // nil if they have more than 8 bits
	size    int    // of the weights of a strip of channels, or of a plane
	sums    []int32
	scales  []int32 // for quantised results of lines; nil until they are wanted
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
		b.cols = min(s.OW, max(1, simd.ByteLanes/s.C))
	}
	return b
}

// channels is the number of channels, of all columns that go together.
func (b *byteStrips) channels(n int) int { return n * b.cols }

// set takes weights: weight t of channel i of n lies at w[t*tap+i*channel].
func (b *byteStrips) set(n int, w []int32, tap, channel int) {
	taps := b.k * b.k
	b.weights, b.scales = nil, nil
	if !fits8(w[:n*taps], 0) {
		return
	}
	b.sums = room(b.sums, b.channels(n))
	for i := range b.sums {
		for t := range taps {
			b.sums[i] += w[t*tap+i%n*channel]
		}
	}
	if b.nhwc {
		b.weights, b.size = b.f.PackLanes(b.k, b.channels(n), func(t, i int) int8 { return int8(w[t*tap+i%n*channel]) })
		return
	}
	b.size = b.f.SpreadSize(b.k)
	b.weights = make([]int8, n*b.size)
	for i := range n {
		b.f.PackSpread(b.weights[i*b.size:][:b.size], b.k, w[i*channel:])
	}
}

// ready tells whether strips compute with the weights and a zero point: beyond the
// borders stands a number like all others.
func (b *byteStrips) ready(signed bool, zero int32) bool {
	lo, hi := int32(0), int32(255)
	if signed {
		lo, hi = -128, 127
	}
	return b != nil && b.weights != nil && lo <= zero && zero <= hi
}

var byteRooms = sync.Pool{New: func() any { return new(simd.ByteStrip) }}

func giveBytes(t *simd.ByteStrip) {
	*t = simd.ByteStrip{}
	byteRooms.Put(t)
}

// stripSums is the number of sums that stay in the first-level cache until they are
// quantised.
const stripSums = 1 << 13

// byteArgs is what a piece of the work needs.
type byteArgs struct {
	b      *byteStrips
	s      *ConvShape
	x      []uint8
	signed bool
	zero   int32
	start  []int32
	codes  bool     // lines are quantised at once, with start from byteStrips.scales
	pieces int      // of an image of [N,H,W,C]
	sink   tileSink // of lines
	put    putPlanes
}

// scaled tells whether results are quantised while they are computed, and makes the numbers for it in the first run.
func (b *byteStrips) scaled(sink *tileSink, signed bool, zero int32) bool {
	q := sink.q
	if sink.sums != nil || !q.scales.Small || !simd.EightBits(q.Zero, q.Min, q.Max) {
		return false
	}
	if b.scales == nil {
		begin := make([]int32, len(b.sums))
		start8(begin, b.sums, zero8(signed, zero))
		b.scales = make([]int32, b.f.ScalesSize(len(begin)))
		z := q.Zero
		if q.Max > math.MaxInt8 {
			z -= 128
		}
		b.f.PackScales(b.scales, begin, &q.scales, z, q.Min >= q.Zero)
	}
	return true
}

// lines convolves x over [N,H,W,C].
func (b *byteStrips) lines(p *workers.Pool, s *ConvShape, x []uint8, signed bool, zero int32, sink tileSink) {
	all := b.channels(s.C)
	_, step := simd.LaneBlocks(all)
	most := min(s.OH, max(2*b.k, stripSums/step))
	if t := p.Threads(); t > 1 {
		most = max(1, min(most, s.N*s.OH/(2*t)))
	}
	pieces := (s.OH + most - 1) / most
	args := byteArgs{b: b, s: s, x: x, signed: signed, zero: zero, pieces: pieces, sink: sink}
	var room *[]float32
	if args.codes = b.scaled(&sink, signed, zero); args.codes {
		args.start = b.scales
	} else {
		var fs []float32
		room, fs = borrow(step + all)
		args.start = asInt32(fs)[:step]
		begin := asInt32(fs)[step:]
		start8(begin, b.sums, zero8(signed, zero))
		b.f.PackStart(args.start, begin)
	}
	grain := max(1, 1<<14/max(1, s.OH/pieces*s.OW*s.C*b.k*b.k))
	workers.Do(p, s.N*pieces, grain, args, byteArgs.lines)
	if room != nil {
		scratch.Put(room)
	}
}

// lines convolves pieces lo to hi of images.
func (a byteArgs) lines(lo, hi int) {
	b, s, pieces := a.b, a.s, a.pieces
	_, step := simd.LaneBlocks(b.channels(s.C))
	t := byteRooms.Get().(*simd.ByteStrip)
	ss, fs := borrow((s.OH/pieces + 1) * step)
	sums := asInt32(fs)
	t.SetEdge(uint8(a.zero), a.signed)
	t.LineDst, t.NextDst, t.NextStart = 4*step, 4*simd.ByteLanes, 4*simd.ByteLanes
	if a.codes {
		t.SetLimits(a.sink.q.Zero, a.sink.q.Min, a.sink.q.Max)
		t.LineDst, t.NextDst, t.NextStart = s.OW*s.C, simd.ByteLanes, 4*b.f.ScalesSize(simd.ByteLanes)
	}
	t.LineSrc, t.NextSrc, t.Tap, t.NextW = s.W*s.C, simd.ByteLanes, s.C, b.size
	for i := lo; i < hi; i++ {
		n, from, to := i/pieces, i%pieces*s.OH/pieces, (i%pieces+1)*s.OH/pieces
		line := t.SetLines(b.k, b.step, from*b.step-s.PadT, s.H, to-from)
		t.Src = &a.x[(n*s.H+line)*s.W*s.C]
		for ox := 0; ox < s.OW; ox += b.cols {
			cols := min(b.cols, s.OW-ox)
			place := ((n*s.OH+from)*s.OW + ox) * s.C
			if a.codes {
				a.column(t, ox, cols, nil, a.sink.y[place:])
				continue
			}
			a.column(t, ox, cols, sums, nil)
			a.sink.put(sums, step, to-from, place, s.OW*s.C, 0, cols*s.C)
		}
	}
	scratch.Put(ss)
	giveBytes(t)
}

// column goes down column ox of a piece of a picture, or cols of them together, to sums or to quantised values.
func (a *byteArgs) column(t *simd.ByteStrip, ox, cols int, sums []int32, codes []uint8) {
	b, s := a.b, a.s
	column, see, all := ox*b.step-s.PadL, uint(0), b.channels(s.C)
	for tap := range b.k {
		if uint(column+tap) < uint(s.W) {
			see |= 1 << tap
		}
	}
	blocks, _ := simd.LaneBlocks(all)
	for i := 0; i < blocks; i += t.N {
		block := simd.LaneBlockAt(all, i)
		// Whole blocks go together.
		t.N = max(1, all/simd.ByteLanes-i)
		if b.cols > 1 {
			t.SetColumns(b.k, s.C, cols, column, s.W)
		} else {
			t.SetSeen(b.k, block.Lanes, see)
		}
		t.At, t.W, t.Start = column*s.C+block.First, &b.weights[i*b.size], &a.start[i*t.NextStart/4]
		if a.codes {
			t.Out = &codes[block.First]
		} else {
			t.Dst = &sums[block.First]
		}
		b.f.Lanes(t, b.k, b.step, block, a.codes)
	}
}

// planes convolves x over [N,C,H,W]; put gets the sums of whole planes.
func (b *byteStrips) planes(p *workers.Pool, s *ConvShape, x []uint8, signed bool, zero int32, put putPlanes) {
	out := s.OH * s.OW
	sc, room := borrow(s.C)
	start := asInt32(room)
	start8(start, b.sums, zero8(signed, zero))
	workers.Do(p, s.N*s.C, max(1, 1<<14/max(1, out*b.k*b.k)), byteArgs{b: b, s: s, x: x, signed: signed, zero: zero, start: start, put: put}, func(a byteArgs, lo, hi int) {
		b, s, x, start := a.b, a.s, a.x, a.start
		area, out := s.H*s.W, s.OH*s.OW
		t := byteRooms.Get().(*simd.ByteStrip)
		near := max(1, stripSums/out)
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
