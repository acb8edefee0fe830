package simd

import "math"

// ByteStrips walk windows of depthwise convolutions over 8-bit numbers down the lines of a
// picture, as [Strips] do: four taps of a line are multiplied and added in one step.
type ByteStrips struct {
	Set Set
	// For each step and size of windows: channels side by side, 64 or 32 of them, to sums or to 8-bit numbers, and
	// positions in one, two and four registers.
	lanes  [3][MostStrip + 1][2][2]func(t *ByteStrip)
	spread [3][MostStrip + 1][3]func(t *ByteStrip)
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
	if f == nil || k < 0 || k > MostStrip || step < 1 || step > 2 || f.lanes[step][k][0][0] == nil {
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
	masks            [MostStrip]uint64
	stores           [4]uint16
	edge, sign       uint32
	turn, up         uint32 // of quantised numbers: added to their bits, and whether none is below the zero point
	write            uint64 // the channels of them that are there
	lo, hi           [ByteLanes]int8
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

// SetSeen says what strips of n channels have for Lanes: bit x of see tells whether tap x
// sees a column that is there.
func (t *ByteStrip) SetSeen(k, n int, see uint) {
	t.write = ^uint64(0) >> (64 - n)
	for x := range k {
		t.masks[x] = ^uint64(0) >> (64 - n) * uint64(see>>x&1)
	}
}

// SetColumns is SetSeen for cols neighbouring columns of n channels together, the first tap of the first of which
// sees column first of w.
func (t *ByteStrip) SetColumns(k, n, cols, first, w int) {
	t.write = ^uint64(0) >> (64 - cols*n)
	for x := range k {
		lo, hi := max(0, -first-x), min(cols, w-first-x)
		t.masks[x] = 0
		if lo < hi {
			t.masks[x] = ^uint64(0) >> (64 - hi*n) &^ (1<<(lo*n) - 1)
		}
	}
}

// SetLimits says between which quantised values results lie, and their zero point; see [EightBits].
func (t *ByteStrip) SetLimits(zero, lo, hi int32) {
	turn := int32(0)
	if t.turn = 0; hi > math.MaxInt8 {
		turn, t.turn = -128, 0x80808080
	}
	t.up = uint32(sign(lo >= zero))
	for i := range t.lo {
		t.lo[i], t.hi[i] = int8(lo+turn), int8(hi+turn)
	}
}

// Lanes computes the sums of as many channels as a block has, with a weight for each; see PackLanes. Where
// codes is set it quantises them, and Start has what [ByteStrips.PackScales] writes.
func (f *ByteStrips) Lanes(t *ByteStrip, k, step int, b LaneBlock, codes bool) {
	f.lanes[step][k][sign(b.Size() < ByteLanes)][sign(codes)](t)
}

// LaneBlock is a block of channels that are computed together: Lanes of them from First on.
type LaneBlock struct{ First, Lanes int }

// Size is the number of channels that are computed: 64 or 32.
func (b LaneBlock) Size() int {
	if b.Lanes <= ByteLanes/2 {
		return ByteLanes / 2
	}
	return ByteLanes
}

// LaneBlockAt is block i of n channels. All before the last one have ByteLanes.
func LaneBlockAt(n, i int) LaneBlock { return LaneBlock{i * ByteLanes, min(n-i*ByteLanes, ByteLanes)} }

// LaneBlocks is the number of blocks of n channels, and that of the channels that are computed.
func LaneBlocks(n int) (blocks, size int) {
	blocks = (n + ByteLanes - 1) / ByteLanes
	if blocks == 0 {
		return 0, 0
	}
	last := LaneBlockAt(n, blocks-1)
	return blocks, last.First + last.Size()
}

// channel is the channel of word i of all registers of a block, -1 for none.
func (b LaneBlock) channel(i int) int {
	words := b.Size() / 4
	v, at := i/words, i%words
	if ch := 16*(at/4) + 4*v + at%4; ch < b.Lanes {
		return b.First + ch
	}
	return -1
}

// PackLanes arranges weights for [ByteStrips.Lanes] of n channels: weight i of tap t is
// w(t, i), of 8 bits. The weights of a whole block are size values.
func (f *ByteStrips) PackLanes(k, n int, w func(tap, i int) int8) (dst []int8, size int) {
	groups := byteGroups(k)
	blocks, lanes := LaneBlocks(n)
	dst = make([]int8, 0, lanes*4*k*groups)
	for i := range blocks {
		b := LaneBlockAt(n, i)
		for at := range k * groups {
			for word := range b.Size() {
				for x := range 4 {
					v, ch, kx := int8(0), b.channel(word), at%groups*4+x
					if kx < k && ch >= 0 {
						v = w(at/groups*k+kx, ch)
					}
					dst = append(dst, v)
				}
			}
		}
	}
	return dst, 4 * k * groups * ByteLanes
}

// PackStart arranges what the sums of channels begin with for [ByteStrips.Lanes].
func (f *ByteStrips) PackStart(dst, src []int32) {
	blocks, _ := LaneBlocks(len(src))
	for i := range blocks {
		b := LaneBlockAt(len(src), i)
		for word := range b.Size() {
			if dst[b.First+word] = 0; b.channel(word) >= 0 {
				dst[b.First+word] = src[b.channel(word)]
			}
		}
	}
}

// scaleKinds are the numbers that a channel has for quantised results.
const scaleKinds = 6

// PackScales is PackStart for [Scales.Small], in scaleKinds times the room: what sums begin with, and behind it for
// each register of a block twice the multipliers, those of every other channel again, what is added to the products
// of these and those, and shifts. up says that no result is below the zero point, of 8 bits with a sign.
func (f *ByteStrips) PackScales(dst, start []int32, s *Scales, zero int32, up bool) {
	blocks, _ := LaneBlocks(len(start))
	for i := range blocks {
		b := LaneBlockAt(len(start), i)
		size, words := b.Size(), b.Size()/4
		for word := range size {
			ch := b.channel(word)
			if ch < 0 {
				continue
			}
			dst[word] = start[ch] + s.Bias[ch] + math.MinInt32
			at := dst[size+word/words*5*words:][:5*words]
			x := word % words
			half := s.Half[ch] + zero<<s.Down[ch] - int32(uint32(s.Twice[ch])>>1)
			if !up {
				half--
			}
			at[x], at[4*words+x] = s.Twice[ch], s.Down[ch]
			if x%2 == 0 {
				at[2*words+x], at[2*words+x+1] = math.MinInt32, half
				continue
			}
			at[words+x-1] = s.Twice[ch]
			at[3*words+x-1], at[3*words+x] = math.MinInt32, half
		}
		dst = dst[scaleKinds*size:]
	}
}

// ScalesSize is the number of values that PackScales writes for n channels.
func (f *ByteStrips) ScalesSize(n int) int {
	_, size := LaneBlocks(n)
	return scaleKinds * size
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
