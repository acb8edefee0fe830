package simd

import "math"

// MostByteStrip is the largest k that strips of bytes have.
const MostByteStrip = 5

// ByteStrips walk windows of depthwise convolutions over 8-bit numbers down the lines of a
// picture, as [Strips] do: four taps of a line are multiplied and added in one step.
type ByteStrips struct {
	Set Set
	// For each step and size of windows: 64, 32 and 16 channels side by side, to sums and to quantised values, and
	// positions in one, two and four registers.
	lanes  [3][MostByteStrip + 1][2][3]func(t *ByteStrip)
	spread [3][MostByteStrip + 1][3]func(t *ByteStrip)
}

// Values of a strip: channels of Lanes, and positions of Spread at most.
const (
	ByteLanes   = 64
	ByteColumns = 64
)

// ByteStripKernels of the current set for windows of k by k that go by steps; nil where
// there are none.
func ByteStripKernels(k, step int) *ByteStrips {
	f := byteStrips.pick()
	if f == nil || k < 0 || k > MostByteStrip || step < 1 || step > 2 || f.lanes[step][k][0][0] == nil {
		return nil
	}
	return f
}

// byteGroups is the number of steps that the taps of a line take.
func byteGroups(k int) int { return (k + 3) / 4 }

// ByteStrip is a walk down N strips; steps and offsets are in bytes. Of strip s, line y of
// the sums lies at Dst + s*NextDst + y*LineDst, and what tap x of a window's line sees of
// line y at Src + s*NextSrc + At + x*Tap + y*LineSrc. Sums begin with Start, one for all
// values of a strip (Spread), or others for each, packed (Lanes). Quantised values go to Out in place of Dst.
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
	top, real        int // lines of the edge above the picture, lines that there are
	lead, lines, odd int // see Strip
	index            *uint8
	masks            [MostByteStrip]uint64
	stores           [4]uint16
	edge, sign       uint32
	turn, round      uint32 // of quantised numbers: added to their bits, and how sums become such
	write            uint64 // the channels of them that are there
	whole            uint64 // all taps of a whole register of channels are
	finish           uint64
	_                [8]uint8
	lo, hi           [ByteLanes]int8 // each in one line of the cache
}

// SetLines says how many results there are of each strip, for windows of k lines with a
// step, the first of which begins first lines below the first line of a picture of h
// lines, or above it where that is negative. It returns the line at which Src begins.
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

// SetEdge says what stands beyond the borders, as a number of the picture, and whether
// numbers have a sign; sums are of numbers without one, larger by 128 then.
func (t *ByteStrip) SetEdge(edge uint8, signed bool) {
	t.edge, t.sign = 0x01010101*uint32(edge), 0
	if signed {
		t.sign = 0x80808080
	}
}

// byteIndex says for each step and group of taps which bytes from a load on 16 positions
// see.
var byteIndex = func() (m [3][128]uint8) {
	for step := 1; step <= 2; step++ {
		for i := range m[step] {
			m[step][i] = uint8(i%64/4*step + i/64*4 + i%4)
		}
	}
	return m
}()

// Spread computes the sums of n positions, the first tap of the first of which sees column
// first of w. A weight is one for all of them; see PackSpread.
func (f *ByteStrips) Spread(t *ByteStrip, k, step, n, first, w int) {
	t.index = &byteIndex[step][0]
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

// SetSeen says what strips of a block of Lanes have, of cols neighbouring columns of n channels: tap x of the first column sees column first + x
// of w, if there is one, and those of the others the next ones.
func (t *ByteStrip) SetSeen(k int, b *LaneBlock, n, cols, first, w int) {
	lanes := min(b.Lanes, cols*n-b.First)
	t.write = ^uint64(0) >> (64 - lanes)
	for x := range k {
		lo, hi := max(0, -(first+x)*n-b.First), min(lanes, (w-first-x)*n-b.First)
		switch {
		case lo >= hi:
			t.masks[x] = 0
		case b.Size != fewLanesOfStrip:
			t.masks[x] = ^uint64(0) >> (64 - hi) &^ (1<<lo - 1)
		case x < 4: // words of the register for four taps
			t.masks[x] = 0xf << (4 * x)
		default:
			t.masks[x] = 0xffff
		}
	}
}

// SetLimits says between which quantised values results lie; see [EightBits].
func (t *ByteStrip) SetLimits(lo, hi int32) {
	turn := int32(0)
	if t.turn = 0; hi > math.MaxInt8 {
		turn, t.turn = -128, 0x80808080
	}
	t.finish = finishOf(lo, hi)
	for i := range t.lo {
		t.lo[i], t.hi[i] = int8(lo+turn), int8(hi+turn)
	}
}

// LaneBlock is a block of channels that are computed together: Lanes of them from First on, of all columns that go together, with room for Size. Its
// weights and what its sums begin with lie at W and Start of those of all.
type LaneBlock struct {
	First, Lanes, Size, W, Start int
	round                        rounding
}

// fewLanesOfStrip is the least number of channels for windows of five lines that are quantised.
const fewLanesOfStrip = 16

// LaneBlocks cuts n channels of cols columns into blocks for windows of k lines, of sums or of quantised values
// (codes), and returns how many columns go together. There are no blocks of quantised values for few channels. Blocks
// may overlap.
func (f *ByteStrips) LaneBlocks(k, n, cols int, codes bool) (all []LaneBlock, together int) {
	size, words := ByteLanes, 1
	if codes {
		words = scaleKinds
		if f.lanes[1][k][1][0] == nil {
			size, cols = fewLanesOfStrip, 1
		}
	}
	if n *= cols; size == fewLanesOfStrip && n < size {
		return nil, cols
	}
	w, start := 0, 0
	for first := 0; first < n; first += size {
		b := LaneBlock{First: first, Lanes: min(n-first, size), Size: size, W: w, Start: start}
		switch {
		case size == fewLanesOfStrip:
			b.First, b.Lanes = min(first, n-size), size
		case b.Lanes <= ByteLanes/2:
			b.Size = ByteLanes / 2
		}
		w, start = w+4*k*byteGroups(k)*b.Size, start+words*b.Size
		all = append(all, b)
	}
	return all, cols
}

// Lanes computes the channels of a block, with a weight for each, see PackLanes: their sums, or (codes) quantised
// values, for which Start has what [ByteStrips.PackScales] writes.
func (f *ByteStrips) Lanes(t *ByteStrip, k, step int, b *LaneBlock, codes bool) {
	t.index, t.round, t.whole = &codeIndex[0], uint32(b.round), 1
	for _, mask := range t.masks[:k] {
		if mask != ^uint64(0)>>(64-b.Size) {
			t.whole = 0
		}
	}
	f.lanes[step][k][sign(codes)][ByteLanes/b.Size/2](t)
}

// codeIndex puts four taps of each of 16 channels side by side.
var codeIndex = func() (m [64]uint8) {
	for i := range m {
		m[i] = uint8(i%4*16 + i/4)
	}
	return m
}()

// registers is the number of those for a block.
func (b *LaneBlock) registers() int {
	if b.Size == fewLanesOfStrip {
		return 1
	}
	return 4
}

// channels lists the channels of the words of all registers of a block, -1 for none. It uses room.
func (b *LaneBlock) channels(room *[ByteLanes]int) []int {
	i := 0
	for v := range 4 {
		for at := range b.Size / 4 {
			if room[i] = b.First + 16*(at/4) + 4*v + at%4; room[i] >= b.First+b.Lanes {
				room[i] = -1
			}
			i++
		}
	}
	return room[:i]
}

// PackLanes arranges weights w [k,k,n] of 8 bits for [ByteStrips.Lanes] of blocks of channels, which are the n ones again and again.
func (f *ByteStrips) PackLanes(k int, blocks []LaneBlock, w []int16, n int) []int8 {
	groups := byteGroups(k)
	last := blocks[len(blocks)-1]
	dst := make([]int8, last.W+4*k*groups*last.Size)
	var room [ByteLanes]int
	for j := range blocks {
		b := &blocks[j]
		channels := b.channels(&room)
		for i, ch := range channels {
			if ch >= n {
				channels[i] = ch % n
			}
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

// PackStart arranges what the sums of channels begin with for [ByteStrips.Lanes].
func (f *ByteStrips) PackStart(dst, src []int32, blocks []LaneBlock) {
	var room [ByteLanes]int
	for j := range blocks {
		b := &blocks[j]
		for word, ch := range b.channels(&room) {
			if dst[b.Start+word] = 0; ch >= 0 {
				dst[b.Start+word] = src[ch]
			}
		}
	}
}

// scaleKinds are the numbers that a channel has for quantised results.
const scaleKinds = 6

// PackScales is PackStart, into dst if it has room, for [Scales.Small]: what sums begin with, and behind it for each register of a block twice
// the multipliers, those of every other channel again, what is added to the products of these and those, and shifts, or the numbers of [Fused]. up
// says that no result is below the zero point, of 8 bits with a sign. It sets how blocks round.
func (f *ByteStrips) PackScales(dst, start []int32, blocks []LaneBlock, s *Scales, zero int32, up bool) []int32 {
	for j := range blocks {
		b := &blocks[j]
		b.round = s.rounding(b.First, b.Lanes, up)
	}
	return packScales(dst, start, blocks, func(b *LaneBlock, at []int32, x, ch int) int32 {
		s.pack(at, x, ch, zero, b.round)
		return s.start(ch, b.round)
	})
}

// packScales lets pack write the numbers of each channel, as lane x of a register; it returns what its sums begin with besides start.
func packScales(dst, start []int32, blocks []LaneBlock, pack func(b *LaneBlock, at []int32, x, ch int) int32) []int32 {
	last := blocks[len(blocks)-1]
	if dst == nil {
		dst = make([]int32, last.Start+scaleKinds*last.Size)
	}
	var room [ByteLanes]int
	for j := range blocks {
		b := &blocks[j]
		to, words, channels := dst[b.Start:], b.Size/b.registers(), b.channels(&room)
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

// PackRescaled is PackScales, into dst if it has room, for codes as [Elements.RescaleColumns] makes them, by scales of as many channels as a column has.
func (f *ByteStrips) PackRescaled(dst, start []int32, blocks []LaneBlock, scales []float32, zero int32) []int32 {
	for j := range blocks {
		blocks[j].round = roundScaled
	}
	return packScales(dst, start, blocks, func(_ *LaneBlock, at []int32, x, ch int) int32 {
		at[x], at[len(at)/5+x] = int32(math.Float32bits(scales[ch%len(scales)])), zero
		return 0
	})
}

// PackSpread arranges the weights of a plane, line by line, for [ByteStrips.Spread]; dst
// has SpreadSize values.
func (f *ByteStrips) PackSpread(dst []int8, k int, w []int32) {
	line := 4 * byteGroups(k)
	clear(dst)
	for i, v := range w[:k*k] {
		dst[i/k*line+i%k] = int8(v)
	}
}

// SpreadSize is the number of weights of a plane that PackSpread writes.
func (f *ByteStrips) SpreadSize(k int) int { return 4 * k * byteGroups(k) }
