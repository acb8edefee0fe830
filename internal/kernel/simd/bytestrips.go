package simd

// ByteStrips walk windows of depthwise convolutions over 8-bit numbers down the lines of a
// picture, as [Strips] do: four taps of a line are multiplied and added in one step.
type ByteStrips struct {
	Set Set
	// For each step and size of windows: channels side by side, and positions in one, two
	// and four registers.
	lanes  [3][MostStrip + 1]func(t *ByteStrip)
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
	if f == nil || k < 0 || k > MostStrip || step < 1 || step > 2 || f.lanes[step][k] == nil {
		return nil
	}
	return f
}

// byteGroups is the number of steps that the taps of a line take.
func byteGroups(k int) int { return (k + 3) / 4 }

// ByteStrip is a walk down N strips; steps and offsets are in bytes. Of strip s, line y of
// the sums lies at Dst + s*NextDst + y*LineDst, and what tap x of a window's line sees of
// line y at Src + s*NextSrc + At + x*Tap + y*LineSrc. Sums begin with Start, one for all
// values of a strip (Spread), or others for each, packed (Lanes).
type ByteStrip struct {
	Dst              *int32
	LineDst, NextDst int
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
	for x := range k {
		t.masks[x] = ^uint64(0) >> (64 - n) * uint64(see>>x&1)
	}
}

// SetColumns is SetSeen for cols neighbouring columns of n channels together, the first tap of the first of which
// sees column first of w.
func (t *ByteStrip) SetColumns(k, n, cols, first, w int) {
	for x := range k {
		lo, hi := max(0, -first-x), min(cols, w-first-x)
		t.masks[x] = 0
		if lo < hi {
			t.masks[x] = ^uint64(0) >> (64 - hi*n) &^ (1<<(lo*n) - 1)
		}
	}
}

// Lanes computes the sums of ByteLanes channels, with a weight for each; see PackLanes.
func (f *ByteStrips) Lanes(t *ByteStrip, k, step int) { f.lanes[step][k](t) }

// PackLanes arranges weights for [ByteStrips.Lanes] of n channels: weight i of tap t is
// w(t, i), of 8 bits. The weights of a strip are size values.
func (f *ByteStrips) PackLanes(k, n int, w func(tap, i int) int8) (dst []int8, size int) {
	groups := byteGroups(k)
	size = k * groups * 4 * 64
	dst = make([]int8, (n+ByteLanes-1)/ByteLanes*size)
	for i := range dst {
		block, at := i/size, i%size
		ky, g, v, b := at/(groups*256), at/256%groups, at/64%4, at%64
		ch, kx := block*ByteLanes+laneOf(v, b/4), 4*g+b%4
		if kx < k && ch < n {
			dst[i] = w(ky*k+kx, ch)
		}
	}
	return dst, size
}

// laneOf is the channel of word i of register v.
func laneOf(v, i int) int { return 16*(i/4) + 4*v + i%4 }

// PackStart arranges what the sums of channels begin with for [ByteStrips.Lanes].
func (f *ByteStrips) PackStart(dst, src []int32) {
	for i := range dst {
		ch := i/ByteLanes*ByteLanes + laneOf(i/16%4, i%16)
		if dst[i] = 0; ch < len(src) {
			dst[i] = src[ch]
		}
	}
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
