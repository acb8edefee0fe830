package conv

import (
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Depthwise convolutions over [N,H,W,C] with small windows and stride 1 or 2 compute register
// tiles of neighbouring outputs (see [simd.LaneTile]). Tiles move along two rows of an image and
// need no padded copy.

// tilePlan holds the parameters of such a convolution.
type tilePlan struct {
	f       *simd.LaneTiles
	k, step int // the window has k×k taps
	gap     int // dilation: every gap-th row and column form an image of their own
	packed  []float32
	near    int  // channels that are computed together along a row
	far     bool // they exceed the L1 cache
}

// Tiles prefetch the input of the next tiles if the windows and weights of all channels,
// laneCacheMax values at most, stay in the L1 cache. With more channels a prefetch would evict
// values that are read next, even more so if positions are a multiple of a kilobyte apart and
// share few sets. Long rows of up to laneLongMax channels are faster then.
const (
	laneCacheMax = 1 << 13
	laneLongMax  = 1 << 9
)

// planTiles returns false if tiles do not support the shape, or if strips compute several columns
// together.
func (c *Float32) planTiles() bool {
	if c.windows == nil || !c.nhwc || c.strips != nil && (c.strips.columns.all > 0 || c.strips.joined > 0) {
		return false
	}
	s := &c.s
	if c.og != 1 || s.KH != s.KW || s.StrideH != s.StrideW || s.DilH != s.DilW || s.StrideH > 1 && s.DilH > 1 || s.OW/s.DilW < simd.MinTileColumns {
		return false
	}
	f := simd.LaneTileKernels(s.KH, s.StrideH)
	if f == nil {
		return false
	}
	size := func(results int) int { return (results-1)*s.StrideH + s.KH }
	all := size(simd.TileLines)*size(simd.MaxTileColumns) + s.KH*s.KW
	l := &tilePlan{f: f, k: s.KH, step: s.StrideH, gap: s.DilH, near: max(1, laneCacheMax/(simd.TileLanes*all)) * simd.TileLanes}
	if s.C > l.near {
		parts := (s.C + laneLongMax - 1) / laneLongMax
		l.near, l.far = scratch.RoundUp((s.C+parts-1)/parts, simd.TileLanes), true
	}
	c.lanes = l
	return true
}

// set packs weights [K,K,C].
func (l *tilePlan) set(w, bias []float32, c int) {
	l.packed = scratch.Zeroed(l.packed, l.f.Size(l.k, c))
	l.f.Pack(l.packed, w, bias, l.k, c)
}

// tilePlanArgs holds the arguments of a work item.
type tilePlanArgs struct {
	c            *Float32
	x, y         []float32
	lines, parts int // row pairs of an image, channel parts
}

var laneTilePool = sync.Pool{New: func() any { return new(simd.LaneTile) }}

// runTiles runs a depthwise convolution over [N,H,W,C].
func (c *Float32) runTiles(p *workers.Pool, x, y []float32) {
	s, l := &c.s, c.lanes
	high := (s.OH + l.gap - 1) / l.gap
	lines, parts := (high+simd.TileLines-1)/simd.TileLines, (s.C+l.near-1)/l.near
	grain := max(1, workers.Grain(stripRate)/max(1, simd.TileLines*s.OW*min(s.C, l.near)*c.k))
	workers.Do(p, s.N*l.gap*lines*parts, grain, tilePlanArgs{c, x, y, lines, parts}, func(a tilePlanArgs, lo, hi int) {
		s, l := &a.c.s, a.c.lanes
		t := laneTilePool.Get().(*simd.LaneTile)
		t.SetClamp(a.c.act.On, a.c.act.Min, a.c.act.Max)
		t.Far = l.far
		t.LineSrc, t.LineDst, t.Step = 4*l.gap*s.W*s.C, 4*l.gap*s.OW*s.C, 4*l.gap*s.C
		for i := lo; i < hi; i++ {
			part, pair, at := i%a.parts, i/a.parts%a.lines, i/a.parts/a.lines
			oy, n := at%l.gap+pair*simd.TileLines*l.gap, at/l.gap
			for ox := range min(l.gap, s.OW) {
				a.band(t, n, oy, ox, part*l.near)
			}
		}
		*t = simd.LaneTile{}
		laneTilePool.Put(t)
	})
}

// band computes the channel part from ch of image n: every gap-th row from oy, as many as a tile
// has, and every gap-th column from ox.
func (a *tilePlanArgs) band(t *simd.LaneTile, n, oy, ox, ch int) {
	s, l := &a.c.s, a.c.lanes
	gap, nc := l.gap, min(l.near, s.C-ch)
	lines, wide := min(simd.TileLines, (s.OH-oy+gap-1)/gap), (s.OW-ox+gap-1)/gap
	if lines <= 0 {
		return
	}
	y0 := oy*l.step - s.PadT
	t.First, t.End = ceil(-y0, gap), ceil(s.H-y0, gap)
	t.Src, t.W = &a.x[n*s.H*s.W*s.C], &l.packed[ch*(1+l.k*l.k)]
	cut := cutColumns(wide)
	for x, i := 0, 0; x < wide; {
		cols := cut.columns(i)
		x = min(x, wide-cols) // the last ones may overlap
		x0, size := (ox+gap*x)*l.step-s.PadL, (cols-1)*l.step+l.k
		seen := simd.SeenColumns(x0, gap, size, s.W)
		t.At, t.Dst = 4*((y0*s.W+x0)*s.C+ch), &a.y[((n*s.OH+oy)*s.OW+ox+gap*x)*s.C+ch]
		// As many tiles of the same size as read the same columns.
		for t.Tiles = 1; ; t.Tiles++ {
			i, x = i+1, x+cols
			if x+cols > wide || cut.columns(i) != cols || simd.SeenColumns((ox+gap*x)*l.step-s.PadL, gap, size, s.W) != seen {
				break
			}
		}
		l.f.Run(t, l.k, l.step, lines, cols, nc, seen)
	}
}
