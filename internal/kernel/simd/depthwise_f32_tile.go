package simd

import (
	"math"
	"unsafe"
)

// LaneTiles compute tiles of neighbouring results of depthwise convolutions over [N,H,W,C] with windows of 3 by 3 and 5
// by 5 and steps of one or two: a value is read once for all of them that see it. They give the bits of [Windows.Lanes].
type LaneTiles struct {
	Set Set
	// For each step and size of windows, for each number of lines and of columns, inside the picture with whole registers of channels, and of all kinds.
	loops [3][MostStrip + 1][TileLines][MostTileColumns - LeastTileColumns + 1][2]func(t *LaneTile)
}

// Sizes of tiles, and the channels that they take at a time.
const (
	TileLines        = 2 // at most
	LeastTileColumns = 3
	MostTileColumns  = 4
	TileLanes        = 16
)

// LaneTileKernels of the current set for windows of k by k that go by steps; nil where there are none.
func LaneTileKernels(k, step int) *LaneTiles {
	f := laneTiles.pick()
	if f == nil || k < 0 || k > MostStrip || step < 1 || step > 2 || f.loops[step][k][0][0][0] == nil {
		return nil
	}
	return f
}

// LaneTile are Tiles neighbouring tiles of results; steps and offsets are in bytes. Column x of line y of
// the results of the first lies at Dst + y*LineDst + x*Step, of the window of its first result at Src + At + y*LineSrc +
// x*Step; only lines of the window from First to End are read. W is what [LaneTiles.Pack] writes.
type LaneTile struct {
	Dst         *float32
	LineDst     int
	Src         *float32
	At, LineSrc int
	Step        int
	W           *float32
	n           int // registers of channels
	First, End  int
	Tiles       int
	nextSrc     int
	nextDst     int
	ahead       int
	min, max    float32
	seen        uint32
	mask        uint32
	Far         bool // nothing is fetched ahead
}

// SetClamp limits the results.
func (t *LaneTile) SetClamp(on bool, lo, hi float32) {
	if t.min, t.max = lo, hi; !on {
		t.min, t.max = float32(math.Inf(-1)), float32(math.Inf(1))
	}
}

// SeenColumns tells which of n columns from first on, every gap-th, are of a picture of w columns, the first one in bit 0.
func SeenColumns(first, gap, n, w int) (seen uint32) {
	for x := range n {
		if uint(first+gap*x) < uint(w) {
			seen |= 1 << x
		}
	}
	return seen
}

// Run computes tiles of lines by cols results for n channels; the windows of a tile see columns as [SeenColumns] says.
func (f *LaneTiles) Run(t *LaneTile, k, step, lines, cols, n int, seen uint32) {
	loops := &f.loops[step][k][lines-1][cols-LeastTileColumns]
	whole, rest, tiles := n/TileLanes, n%TileLanes, t.Tiles
	columns, seenLines := (cols-1)*step+k, (lines-1)*step+k
	t.seen, t.ahead = seen, (cols*step+k-step)*t.Step
	if t.Far {
		t.ahead = 0
	}
	if whole > 0 {
		t.n, t.mask = whole, 1<<TileLanes-1
		t.nextSrc, t.nextDst = cols*step*t.Step-64*whole, cols*t.Step-64*whole
		loops[sign(seen != 1<<columns-1 || t.First > 0 || t.End < seenLines)](t)
	}
	if rest > 0 {
		dst, at, w := t.Dst, t.At, t.W
		t.Dst, t.W = moved(dst, n-rest), moved(w, (n-rest)*(1+k*k))
		t.At, t.n, t.mask, t.Tiles = at+4*(n-rest), 1, 1<<rest-1, tiles
		t.nextSrc, t.nextDst = cols*step*t.Step-64, cols*t.Step-64
		loops[1](t)
		t.Dst, t.At, t.W = dst, at, w
	}
	t.Tiles = tiles
}

// Size is the number of values that [LaneTiles.Pack] writes for n channels.
func (f *LaneTiles) Size(k, n int) int {
	return (n + TileLanes - 1) / TileLanes * TileLanes * (1 + k*k)
}

// Pack arranges weights w [k,k,n] and the bias, nil for none, so that those of some channels lie side by side.
func (f *LaneTiles) Pack(dst, w, bias []float32, k, n int) {
	clear(dst)
	for first := 0; first < n; first += TileLanes {
		lanes := min(TileLanes, n-first)
		block := dst[first*(1+k*k):]
		if bias != nil {
			for i, v := range bias[first:][:lanes] {
				block[i] = v + 0 // not -0, so that a sum of -0 is 0 afterwards, as one that began with 0
			}
		}
		for i := range k * k {
			copy(block[(1+i)*TileLanes:], w[i*n+first:][:lanes])
		}
	}
}

// moved is the place of the value n further on.
func moved(p *float32, n int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n)) }
