package simd

import (
	"math"
	"unsafe"
)

// MaxByteStrip is the largest window size k of [ByteStrips].
const MaxByteStrip = 5

// ByteStrips holds kernels of int8 depthwise convolutions. As [Strips] do, they walk down the
// lines of an image. One step multiplies four taps of a line and adds the products.
type ByteStrips struct {
	Set Set
	// lanes is indexed by stride, window size and result (sums, quantised values). The last index
	// is the number of adjacent channels: 64, 32, 16. spread is for positions in one, two and
	// four registers.
	lanes  [3][MaxByteStrip + 1][2][3]func(t *ByteStrip)
	spread [3][MaxByteStrip + 1][3]func(t *ByteStrip)
	// pairs replaces all of them: kernels of quantised results for two times 16 channels, which
	// multiply pairs of taps as 16-bit values. It is indexed by the stride of lines and window
	// size.
	pairs *[3][MaxByteStrip + 1]func(t *ByteStrip)
}

// ByteLanes and ByteColumns are the values of a strip: channels for Lanes, and at most this
// number of positions for Spread.
const (
	ByteLanes   = 64
	ByteColumns = 64
)

// ByteStripKernels returns the kernels of the current instruction set for k×k windows with a
// stride of step, or nil if they are not available.
func ByteStripKernels(k, step int) *ByteStrips {
	f := byteStripKernels.pick()
	if f == nil || k < 0 || k > MaxByteStrip || step < 1 || step > 2 {
		return nil
	}
	if f.pairs != nil && f.pairs[2][k] == nil || f.pairs == nil && f.lanes[step][k][0][0] == nil {
		return nil
	}
	return f
}

// OnlyQuantised reports whether there are no kernels but those of quantised channels-last
// results, with 16-bit weights and for [PairLanes] channels or more, of joined columns if need be.
func (f *ByteStrips) OnlyQuantised() bool { return f.pairs != nil }

// Passes returns the number of passes for windows of k lines with a stride of step. Each pass
// computes every other line if it is two.
func (f *ByteStrips) Passes(k, step int) int {
	if f.pairs != nil && f.pairs[step][k] == nil {
		return 2 // the kernels have a stride of two
	}
	return 1
}

// tapGroups returns the number of steps for the k taps of a line.
func tapGroups(k int) int { return (k + 3) / 4 }

// ByteStrip describes a walk down N strips. Steps and offsets are in bytes.
//
// For strip s, line y of the sums is at Dst + s*NextDst + y*LineDst. The input of tap x of a
// window line for line y is at Src + s*NextSrc + At + x*Tap + y*LineSrc. Sums start from Start:
// one value for all values of a strip (Spread), or packed values, one for each (Lanes). Quantised
// values are written to Out in place of Dst.
type ByteStrip struct {
	Dst              *int32
	LineDst, NextDst int
	Out              *uint8
	Src              *uint8
	LineSrc, NextSrc int
	W                *int8
	NextW            int
	Start            *int32
	NextStart        int
	N                int
	At, Tap          int
	top, real        int // padding lines above the image, lines of the image
	lead, lines, odd int // see Strip
	index            *uint8
	masks            [MaxByteStrip]uint64
	stores           [4]uint16
	edge, sign       uint32
	// For quantised values: the XOR mask of their bits, and the rounding.
	flip, round uint32
	write       uint64 // mask of the channels that are written
	whole       uint64 // 1: all taps of a full register of channels are inside; 2: they are adjacent
	finish      uint64
	_           [8]uint8
	lo, hi      [ByteLanes]int8 // one cache line each
	// Distances from the first half of the registers to the second one, for pairs of taps.
	halfSrc, halfDst int
	// For joined columns and pairs of taps: masks of the words that each tap reads, and of those
	// that are written.
	parts    [MaxByteStrip][8]int32
	partsOut [8]int32
}

// SetLines sets the number of results of each strip, for windows of k lines with a stride of
// step. The first window starts first lines below the first line of an image of h lines; a
// negative value means above it. SetLines returns the image line at which Src starts.
func (t *ByteStrip) SetLines(k, step, first, h, out int) (from int) {
	all := (out-1)*step + k
	t.top = min(all, max(0, -first))
	from = max(0, first)
	t.real = min(all-t.top, max(0, h-from))
	t.lead = (k - 1 + step - 1) / step
	t.lines = (all + step - 1) / step
	t.odd = all - t.lines
	if t.real == 0 {
		return 0
	}
	return from
}

// SetEdge sets the padding value, as an input value, and whether input values are signed. Sums
// are computed from unsigned values; signed values are larger by 128 there.
func (t *ByteStrip) SetEdge(edge uint8, signed bool) {
	t.edge, t.sign = 0x01010101*uint32(edge), 0
	if signed {
		t.sign = 0x80808080
	}
}

// spreadTapOrder lists, for each stride and group of taps, the bytes of a load that 16 positions
// use.
var spreadTapOrder = func() (m [3][128]uint8) {
	for step := 1; step <= 2; step++ {
		for i := range m[step] {
			m[step][i] = uint8(i%64/4*step + i/64*4 + i%4)
		}
	}
	return m
}()

// Spread computes the sums of n positions. The first tap of the first position reads column first
// of w. All positions have the same weights; see PackSpread.
func (f *ByteStrips) Spread(t *ByteStrip, k, step, n, first, w int) {
	t.index = &spreadTapOrder[step][0]
	for v := range 4 {
		from := first + 16*step*v
		lo, hi := max(0, -from), min(64, w-from)
		t.masks[v] = 0
		if lo < hi {
			t.masks[v] = ^uint64(0) >> (64 - hi) &^ (1<<lo - 1)
		}
		t.stores[v] = uint16(1<<min(16, max(0, n-16*v)) - 1)
	}
	size := 0
	for 16<<size < n {
		size++
	}
	f.spread[step][k][size](t)
}

// SetSeen sets which columns the strips of a block of Lanes read, for cols adjacent columns of n
// channels. Tap x of the first column reads column first + x of w if it exists. The other columns
// read the following columns.
func (t *ByteStrip) SetSeen(k int, b *LaneBlock, n, cols, first, w int) {
	lanes := min(b.Lanes, cols*n-b.First)
	t.write = ^uint64(0) >> (64 - lanes)
	if b.halves == 1 {
		t.stores[0] = 0
		if lanes < b.Size {
			t.stores[0], t.partsOut = 1, laneMasks[1<<(lanes/4)-1]
		}
	}
	for x := range k {
		lo, hi := max(0, -(first+x)*n-b.First), min(lanes, (w-first-x)*n-b.First)
		switch {
		case b.halves == 2:
			t.stores[0], t.masks[x] = 0, uint64(boolIndex(uint(first+x) < uint(w)))
		case b.halves == 1 && lo < hi && hi-lo < b.Size:
			t.masks[x], t.parts[x] = 2, laneMasks[1<<(hi/4)-1<<(lo/4)]
		case b.halves == 1:
			t.masks[x] = uint64(boolIndex(lo < hi))
		case lo >= hi:
			t.masks[x] = 0
		case b.Size != minStripLanes:
			t.masks[x] = ^uint64(0) >> (64 - hi) &^ (1<<lo - 1)
		case x < 4: // 32-bit words of the register for four taps
			t.masks[x] = 0xf << (4 * x)
		default:
			t.masks[x] = 0xffff
		}
	}
}

// SetLimits sets the limits of quantised results; see [EightBits].
func (t *ByteStrip) SetLimits(lo, hi int32) {
	flip := int32(0)
	if t.flip = 0; hi > math.MaxInt8 {
		flip, t.flip = -128, 0x80808080
	}
	t.finish = finishOf(lo, hi)
	for i := range t.lo {
		t.lo[i], t.hi[i] = int8(lo+flip), int8(hi+flip)
	}
}

// LaneBlock is a block of channels that are computed together: Lanes channels from First on,
// counted over all columns that are computed together, in registers for Size channels. Its
// weights and its initial sums start at W and Start in those of all channels.
type LaneBlock struct {
	First, Lanes, Size, W, Start int
	round                        rounding
	// For pairs of taps: 1 if the halves of the registers hold 32 channels of a column, 2 if they
	// hold 16 channels of two columns.
	halves int
}

// PairLanes is the number of channels in half of the registers of kernels for pairs of taps.
const PairLanes = 16

// minStripLanes is the minimum number of channels for quantised results of windows of five
// lines.
const minStripLanes = 16

// LaneBlocks splits n channels of cols columns into blocks for windows of k lines. Results are
// sums or, if codes is set, quantised values. It also returns how many columns are computed
// together. For quantised values of few channels it returns no blocks. Blocks may overlap.
func (f *ByteStrips) LaneBlocks(k, n, cols int, codes bool) (all []LaneBlock, together int) {
	if f.pairs != nil {
		return pairBlocks(k, n, cols, codes), cols
	}
	size, words := ByteLanes, 1
	if codes {
		words = scaleValues
		if f.lanes[1][k][1][0] == nil {
			size, cols = minStripLanes, 1
		}
	}
	if n *= cols; size == minStripLanes && n < size {
		return nil, cols
	}
	w, start := 0, 0
	for first := 0; first < n; first += size {
		b := LaneBlock{First: first, Lanes: min(n-first, size), Size: size, W: w, Start: start}
		switch {
		case size == minStripLanes:
			b.First, b.Lanes = min(first, n-size), size
		case b.Lanes <= ByteLanes/2:
			b.Size = ByteLanes / 2
		}
		w, start = w+4*k*tapGroups(k)*b.Size, start+words*b.Size
		all = append(all, b)
	}
	return all, cols
}

// pairBlocks is LaneBlocks for pairs of taps.
func pairBlocks(k, n, cols int, codes bool) (all []LaneBlock) {
	if n *= cols; !codes || n < PairLanes {
		return nil
	}
	for first := 0; first < n; {
		b := LaneBlock{Lanes: PairLanes, Size: 2 * PairLanes, W: len(all) * pairBytes(k), Start: len(all) * scaleValues * 2 * PairLanes, halves: 2}
		switch {
		case cols > 1:
			b.Lanes, b.halves = min(2*PairLanes, n-first), 1
		case n >= 2*PairLanes && n-first > PairLanes:
			b.Lanes, b.halves = 2*PairLanes, 1
		}
		b.First = min(first, n-b.Lanes)
		first = b.First + b.Lanes
		all = append(all, b)
	}
	return all
}

// pairBytes returns the number of bytes of the weights of a block for pairs of taps: see
// packPairs.
func pairBytes(k int) int { return (k*(k/2) + (k+1)/2) * 4 * 2 * PairLanes }

// packPairs packs the weights w [k,k,n] of a block for pairs of taps: those of each line, of which
// the last column is missing, and after each second line those of the last column of both. There is
// a pair of 16-bit values for each channel. The last column of the last line has no partner.
//
// Weights of channels that up shifts to the left are shifted; up may be nil.
func packPairs(dst []int8, k int, channels []int, w []int16, n int, up []int32) {
	put := func(half, y, x int) {
		for i, ch := range channels {
			if ch < 0 {
				continue
			}
			v := w[(y*k+x)*n+ch]
			if up != nil {
				v <<= up[ch]
			}
			dst[4*i+2*half], dst[4*i+2*half+1] = int8(v), int8(v>>8)
		}
	}
	next := func() { dst = dst[4*len(channels):] }
	for y := range k {
		for x := 0; x < k-1; x += 2 {
			put(0, y, x)
			put(1, y, x+1)
			next()
		}
		if y%2 == 1 {
			put(0, y-1, k-1)
		}
		if y%2 == 1 || y == k-1 {
			put(1, y, k-1)
			next()
		}
	}
}

// pairColumns computes the N columns of a block with kernels for pairs of taps. NextSrc and NextDst
// are the distances between columns.
func (f *ByteStrips) pairColumns(t *ByteStrip, k, step int, b *LaneBlock) {
	kernel := f.pairs[step][k]
	if kernel == nil {
		kernel = f.pairs[2][k]
	}
	if t.halfSrc, t.halfDst = PairLanes, PairLanes; b.halves == 1 {
		t.whole *= 2
		kernel(t)
		return
	}
	n, at, out, src, dst := t.N, t.At, t.Out, t.NextSrc, t.NextDst
	if n > 1 {
		t.N, t.NextSrc, t.NextDst, t.halfSrc, t.halfDst = n/2, 2*src, 2*dst, src, dst
		kernel(t)
		t.NextSrc, t.NextDst = src, dst
	}
	if n%2 == 1 {
		t.N, t.At, t.Out, t.halfSrc, t.halfDst = 1, at+(n-1)*src, (*uint8)(unsafe.Add(unsafe.Pointer(out), (n-1)*dst)), 0, 0
		kernel(t)
	}
}

// Lanes computes the channels of a block, each with its own weight; see PackLanes. Results are
// sums or, if codes is set, quantised values. Quantised values need a Start from
// [ByteStrips.PackScales].
func (f *ByteStrips) Lanes(t *ByteStrip, k, step int, b *LaneBlock, codes bool) {
	t.index, t.round, t.whole = &laneTapOrder[0], uint32(b.round), 1
	whole := ^uint64(0) >> (64 - b.Size)
	if b.halves > 0 {
		whole = 1
	}
	for _, mask := range t.masks[:k] {
		if mask != whole {
			t.whole = 0
		}
	}
	if b.halves > 0 {
		f.pairColumns(t, k, step, b)
		return
	}
	f.lanes[step][k][boolIndex(codes)][ByteLanes/b.Size/2](t)
}

// laneTapOrder places four taps of each of 16 channels side by side.
var laneTapOrder = func() (m [64]uint8) {
	for i := range m {
		m[i] = uint8(i%4*16 + i/4)
	}
	return m
}()

// registers returns the number of registers of a block.
func (b *LaneBlock) registers() int {
	if b.Size == minStripLanes {
		return 1
	}
	return 4
}

// channels lists the channel of each word of all registers of a block, or -1. It returns a part
// of buf.
func (b *LaneBlock) channels(buf *[ByteLanes]int) []int {
	i := 0
	for v := range 4 {
		for at := range b.Size / 4 {
			if buf[i] = b.First + 16*(at/4) + 4*v + at%4; buf[i] >= b.First+b.Lanes {
				if buf[i] = -1; b.halves == 2 {
					buf[i] = b.First + 4*v + at%4
				}
			}
			i++
		}
	}
	return buf[:i]
}

// PackLanes packs weights w [k,k,n], of 8 bits except for [ByteStrips.OnlyQuantised], for
// [ByteStrips.Lanes]. Channels of the blocks beyond n
// repeat the n channels.
//
// up holds the shifts to the left of [Scales.Doubles], for [ByteStrips.OnlyQuantised]; otherwise it
// is nil.
func (f *ByteStrips) PackLanes(k int, blocks []LaneBlock, w []int16, n int, up []int32) []int8 {
	groups := tapGroups(k)
	last := blocks[len(blocks)-1]
	size := 4 * k * groups * last.Size
	if f.pairs != nil {
		size = pairBytes(k)
	}
	dst := make([]int8, last.W+size)
	var buf [ByteLanes]int
	for j := range blocks {
		b := &blocks[j]
		channels := b.channels(&buf)
		for i, ch := range channels {
			if ch >= n {
				channels[i] = ch % n
			}
		}
		if f.pairs != nil {
			packPairs(dst[b.W:][:size], k, channels, w, n, up)
			continue
		}
		for y := range k {
			for x := range k {
				d, from := dst[b.W+(y*groups+x/4)*4*b.Size+x%4:], w[(y*k+x)*n:][:n]
				for i, ch := range channels {
					if ch >= 0 {
						d[4*i] = int8(from[ch])
					}
				}
			}
		}
	}
	return dst
}

// PackStart packs the initial sums of the channels for [ByteStrips.Lanes].
func (f *ByteStrips) PackStart(dst, src []int32, blocks []LaneBlock) {
	var buf [ByteLanes]int
	for j := range blocks {
		b := &blocks[j]
		for word, ch := range b.channels(&buf) {
			if dst[b.Start+word] = 0; ch >= 0 {
				dst[b.Start+word] = src[ch]
			}
		}
	}
}

// scaleValues is the number of values of a channel for quantised results.
const scaleValues = 6

// TakesScales reports whether quantised results can have these scales. up is that of PackScales.
func (f *ByteStrips) TakesScales(s *Scales, up bool) bool {
	return s.Small || s.Near && up && (f.pairs != nil || !s.Doubles)
}

// PackScales packs the parameters of quantised results, for [ByteStrips.TakesScales]. It writes to
// dst, or allocates it if dst is nil. It also sets the rounding of the blocks.
//
// First come the initial sums. For each register of a block follow twice the multipliers, those
// of every other channel again, the values added to the even and to the odd products, and the
// shifts. Fused scales have the values of [Fused] instead. up reports that no result is below the
// zero point, which is a signed 8-bit value.
func (f *ByteStrips) PackScales(dst, start []int32, blocks []LaneBlock, s *Scales, zero int32, up bool) []int32 {
	for j := range blocks {
		b := &blocks[j]
		b.round = s.rounding(b.First, b.Lanes, up)
	}
	return packScales(dst, start, blocks, func(b *LaneBlock, at []int32, x, ch int) int32 {
		s.pack(at, x, ch, zero, b.round)
		// The weights are shifted as well.
		return s.start(ch, b.round) + start[ch]<<(s.Up[ch]&1) - start[ch]
	})
}

// packScales calls pack for each channel, as lane x of a register. pack writes the parameters and
// returns the value to add to the initial sum in start.
func packScales(dst, start []int32, blocks []LaneBlock, pack func(b *LaneBlock, at []int32, x, ch int) int32) []int32 {
	last := blocks[len(blocks)-1]
	if dst == nil {
		dst = make([]int32, last.Start+scaleValues*last.Size)
	}
	var buf [ByteLanes]int
	for j := range blocks {
		b := &blocks[j]
		to, words, channels := dst[b.Start:], b.Size/b.registers(), b.channels(&buf)
		for r := range b.registers() {
			at := to[b.Size+r*5*words:][:5*words]
			for x, ch := range channels[r*words:][:words] {
				if ch >= 0 {
					to[r*words+x] = start[ch] + pack(b, at, x, ch)
				}
			}
		}
	}
	return dst
}

// PackRescaled is PackScales for results as [Elements.RescaleColumns] computes them. scales has
// one entry for each channel of a column.
func (f *ByteStrips) PackRescaled(dst, start []int32, blocks []LaneBlock, scales []float32, zero int32) []int32 {
	for j := range blocks {
		blocks[j].round = roundScaled
	}
	return packScales(dst, start, blocks, func(_ *LaneBlock, at []int32, x, ch int) int32 {
		at[x], at[len(at)/5+x] = int32(math.Float32bits(scales[ch%len(scales)])), zero
		return 0
	})
}

// PackSpread packs the weights of a plane, line by line, for [ByteStrips.Spread]. dst has
// SpreadSize values.
func (f *ByteStrips) PackSpread(dst []int8, k int, w []int32) {
	line := 4 * tapGroups(k)
	clear(dst)
	for i, v := range w[:k*k] {
		dst[i/k*line+i%k] = int8(v)
	}
}

// SpreadSize returns the number of weights of a plane that PackSpread writes.
func (f *ByteStrips) SpreadSize(k int) int { return 4 * k * tapGroups(k) }
