package simd

import (
	"math"
	"unsafe"
)

// LaneTiles holds kernels that compute tiles of adjacent results of depthwise convolutions over
// [N,H,W,C]. Windows are 3×3 and 5×5 with strides of one or two, and 7×7 with a stride of one. A
// value is read once for all results of a tile that use it. They are bit-exact to
// [Windows.Lanes].
type LaneTiles struct {
	Set   Set
	lanes int // channels of a register, at most TileLanes
	// kernels is indexed by stride, window size, lines and columns of the tile. The last index is 0
	// for tiles inside the image with full registers of channels, and 1 for all tiles.
	kernels [3][MaxStrip + 1][TileLines][MaxTileColumns - MinTileColumns + 1][2]func(t *LaneTile)
}

// Sizes of tiles, and the maximum number of channels that they compute at a time.
const (
	TileLines      = 2 // maximum
	MinTileColumns = 3
	MaxTileColumns = 4
	TileLanes      = 16
)

// LaneTileKernels returns the kernels of the current instruction set for k×k windows with a
// stride of step, or nil if they are not available.
func LaneTileKernels(k, step int) *LaneTiles {
	f := laneTileKernels.pick()
	if f == nil || k < 0 || k > MaxStrip || step < 1 || step > 2 || f.kernels[step][k][0][0][0] == nil {
		return nil
	}
	return f
}

// LaneTile describes Tiles adjacent tiles of results. Steps and offsets are in bytes.
//
// Column x of line y of the results of the first tile is at Dst + y*LineDst + x*Step. Column x of
// line y of the window of its first result is at Src + At + y*LineSrc + x*Step. Only window lines
// from First to End are read. [LaneTiles.Pack] writes W.
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
	masks       *int32
	Far         bool // disables prefetch
}

// SetClamp limits the results.
func (t *LaneTile) SetClamp(on bool, lo, hi float32) {
	if t.min, t.max = lo, hi; !on {
		t.min, t.max = float32(math.Inf(-1)), float32(math.Inf(1))
	}
}

// SeenColumns returns which of n columns are inside an image of w columns, the first one in bit
// 0. The columns are gap apart and start at first.
func SeenColumns(first, gap, n, w int) (seen uint32) {
	for x := range n {
		if uint(first+gap*x) < uint(w) {
			seen |= 1 << x
		}
	}
	return seen
}

// Run computes tiles of lines by cols results for n channels. seen tells which columns of the
// windows are inside the image; see [SeenColumns].
func (f *LaneTiles) Run(t *LaneTile, k, step, lines, cols, n int, seen uint32) {
	kernels := &f.kernels[step][k][lines-1][cols-MinTileColumns]
	whole, rest, tiles, size := n/f.lanes, n%f.lanes, t.Tiles, 4*f.lanes
	columns, seenLines := (cols-1)*step+k, (lines-1)*step+k
	t.seen, t.ahead = seen, (cols*step+k-step)*t.Step
	if t.Far {
		t.ahead = 0
	}
	if whole > 0 {
		t.n = whole
		t.setMask(f.lanes)
		t.nextSrc, t.nextDst = cols*step*t.Step-size*whole, cols*t.Step-size*whole
		kernels[boolIndex(seen != 1<<columns-1 || t.First > 0 || t.End < seenLines)](t)
	}
	if rest > 0 {
		dst, at, w := t.Dst, t.At, t.W
		t.Dst, t.W = advance(dst, n-rest), advance(w, (n-rest)*(1+k*k))
		t.At, t.n, t.Tiles = at+4*(n-rest), 1, tiles
		t.setMask(rest)
		t.nextSrc, t.nextDst = cols*step*t.Step-size, cols*t.Step-size
		kernels[1](t)
		t.Dst, t.At, t.W = dst, at, w
	}
	t.Tiles = tiles
}

// setMask sets the channels of a register.
func (t *LaneTile) setMask(n int) { t.mask, t.masks = 1<<n-1, &columnMasks[16-n] }

// Size returns the number of values that [LaneTiles.Pack] writes for n channels.
func (f *LaneTiles) Size(k, n int) int {
	return (n + f.lanes - 1) / f.lanes * f.lanes * (1 + k*k)
}

// Pack packs weights w [k,k,n] and the bias, which may be nil, into blocks of a register of
// channels.
func (f *LaneTiles) Pack(dst, w, bias []float32, k, n int) {
	clear(dst)
	for first := 0; first < n; first += f.lanes {
		lanes := min(f.lanes, n-first)
		block := dst[first*(1+k*k):]
		if bias != nil {
			for i, v := range bias[first:][:lanes] {
				block[i] = v + 0 // -0 becomes 0, so that a sum of -0 becomes 0, as in a sum that starts from 0
			}
		}
		for i := range k * k {
			copy(block[(1+i)*f.lanes:], w[i*n+first:][:lanes])
		}
	}
}

// advance returns the address of the value n values after p.
func advance(p *float32, n int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n)) }
