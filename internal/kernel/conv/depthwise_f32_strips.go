package conv

import (
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Depthwise convolutions with small windows and stride 1 or 2 run down the rows of an image in
// strips (see [simd.Strip]): each strip is one register of values per row. They need no padded
// copy.

// stripPlan holds the parameters of such a convolution.
type stripPlan struct {
	f       *simd.Strips
	k, step int       // the window has k×k taps
	gap     int       // dilation: every gap-th row forms an image of its own
	columns columnCut // over [N,H,W,C], if several columns are computed together
	// Over [N,H,W,C] with few channels a register holds beside neighbouring columns; 0 if unused.
	joined int
	packed []float32 // weights of each tap, repeated, and the bias
}

// columnCut splits the columns of a row into pieces that are computed together. The first ones
// have the maximum width, the others the minimum; the last ones may overlap. The zero value means
// one column at a time.
type columnCut struct{ wide, all int }

// cutColumns splits n columns.
func cutColumns(n int) (c columnCut) {
	if n < simd.MinTileColumns {
		return columnCut{}
	}
	for c.wide = n / simd.MaxTileColumns; c.wide > 0 && (n-c.wide*simd.MaxTileColumns)%simd.MinTileColumns > 0; {
		c.wide--
	}
	c.all = c.wide + (n-c.wide*simd.MaxTileColumns+simd.MinTileColumns-1)/simd.MinTileColumns
	return c
}

// columns returns the number of columns of piece i.
func (c *columnCut) columns(i int) int {
	if i < c.wide {
		return simd.MaxTileColumns
	}
	return simd.MinTileColumns
}

// Numbers of values that are kept in the cache.
const (
	stripBlock    = 1 << 13 // of planes
	stripCacheMax = 1 << 16 // of columns, in the L2 cache
)

// stripRows is the maximum number of output rows of a work item over [N,H,W,C]: more rows of a
// column are slower, see stripInputRows.
const stripRows = 16

// planStrips returns false if strips do not support the shape.
func (c *Float32) planStrips() bool {
	s := &c.s
	if !c.depthwise || s.Outputs() == 0 || simd.WindowKernels() == nil {
		return false
	}
	if s.KH != s.KW || s.StrideH != s.StrideW || s.DilH != s.DilW || s.PadL > (s.KW-1)*s.DilW || s.W < 1 {
		return false
	}
	if c.nhwc && c.og > 1 || s.DilH > 1 && (c.nhwc || s.StrideH > 1) {
		return false
	}
	pick, n := simd.SpreadStrips, s.OW
	if c.nhwc {
		pick, n = simd.LaneStrips, s.C
	}
	q := &stripPlan{f: pick(s.KH, s.StrideH, n), k: s.KH, step: s.StrideH, gap: s.DilH}
	if f := simd.LaneStrips(s.KH, s.StrideH, simd.TileLanes); c.nhwc && f != nil && s.StrideH == 1 && 2*s.C <= f.Width && f.Width%s.C == 0 {
		q.f, q.joined = f, f.Width/s.C
	}
	if q.f == nil {
		return false
	}
	for from := range min(q.gap, s.OH) {
		if _, ok := q.setLines(new(simd.Strip), s, from); !ok {
			return false
		}
	}
	// Positions a multiple of a kilobyte apart share few sets of the L1 cache.
	if c.nhwc && q.joined == 0 && q.f.HasColumns(q.k, q.step) && 4*s.C%1024 != 0 && simd.ColumnsGain(s.C) {
		q.columns = cutColumns(s.OW)
	}
	c.strips = q
	return true
}

// set packs weights [K,K,C].
func (q *stripPlan) set(w, bias []float32, c int) {
	if q.joined == 0 {
		return
	}
	q.packed = q.packed[:0]
	for _, w := range [][]float32{w, bias} {
		for ; len(w) > 0; w = w[c:] {
			for range q.joined {
				q.packed = append(q.packed, w[:c]...)
			}
		}
	}
}

// setLines sets t to the output rows from row from, every gap-th, and returns the first input row
// that they read.
func (q *stripPlan) setLines(t *simd.Strip, s *Shape, from int) (first int, ok bool) {
	top := from - s.PadT
	pad := max(0, ceil(-top, q.gap))
	first = top + pad*q.gap
	return first, t.SetLines(q.k, q.step, pad, ceil(s.H-first, q.gap), ceil(s.OH-from, q.gap))
}

// ceil returns a/b, rounded up.
func ceil(a, b int) int {
	if a > 0 {
		return (a + b - 1) / b
	}
	return a / b
}

// stripArgs holds the arguments of a work item.
type stripArgs struct {
	c      *Float32
	x, y   []float32
	pieces int // of an image of [N,H,W,C]
}

var stripPool = sync.Pool{New: func() any { return new(simd.Strip) }}

func releaseStrip(t *simd.Strip) {
	*t = simd.Strip{}
	stripPool.Put(t)
}

// stripPlanes runs a depthwise convolution over [N,C,H,W]: strips are neighbouring positions of
// all rows of a plane, one plane after the other.
func (c *Float32) stripPlanes(p *workers.Pool, x, y []float32) {
	s := &c.s
	workers.Do(p, s.N*s.C, max(1, 1<<14/max(1, c.og*s.OH*s.OW*c.k)), stripArgs{c, x, y, 0}, func(q stripArgs, lo, hi int) {
		c, s := q.c, &q.c.s
		area, out := s.H*s.W, c.og*s.OH*s.OW
		t := stripPool.Get().(*simd.Strip)
		near := max(1, stripBlock/(area+out))
		if c.og > 1 {
			near = 1
		}
		for lo < hi {
			// As many planes of one image as stay in the cache: weights start again with the next
			// image.
			end := min(hi, lo+near, (lo/s.C+1)*s.C)
			c.stripsOfPlanes(t, q.x[lo*area:], q.y[lo*out:], lo%s.C, end-lo)
			lo = end
		}
		releaseStrip(t)
	})
}

// stripsOfPlanes convolves n planes from channel ch; with a channel multiplier, the outputs of a
// single plane.
func (c *Float32) stripsOfPlanes(t *simd.Strip, x, y []float32, ch, n int) {
	s, q := &c.s, c.strips
	k, step := q.k, q.step
	t.SetClamp(c.act.On, c.act.Min, c.act.Max)
	t.LineDst, t.NextDst, t.LineSrc, t.NextSrc = 4*q.gap*s.OW, 4*s.OH*s.OW, 4*q.gap*s.W, 4*s.H*s.W
	if t.N = n; c.og > 1 {
		t.N, t.NextSrc = c.og, 0
	}
	ch *= c.og
	t.W, t.NextW, t.Tap = &c.weights[ch*c.k], 4*c.k, 4*q.gap
	t.Bias, t.NextBias = &zeroBias, 0
	if c.bias != nil {
		t.Bias, t.NextBias = &c.bias[ch], 4
	}
	for from := range min(q.gap, s.OH) {
		first, _ := q.setLines(t, s, from)
		t.Src = &x[first*s.W]
		for x0 := 0; x0 < s.OW; {
			left := x0*step - s.PadL
			width := q.f.SpreadWidth(k, step, s.OW-x0, left, q.gap, s.W)
			f := q.f.Fit(k, step, width)
			t.Dst, t.At = &y[from*s.OW+x0], 4*left
			f.SetColumns(t, k, step, width, left, q.gap, s.W)
			f.Spread(t, k, step, width)
			x0 += width
		}
	}
}

// stripRate and byteRate are approximate rates of float32 and 8-bit channels-last depthwise
// convolutions, in multiplications per nanosecond and thread.
const stripRate, byteRate = 45, 50

// stripLines runs a depthwise convolution over [N,H,W,C]: strips are neighbouring channels of one
// image column, all channels of a column before the next one.
func (c *Float32) stripLines(p *workers.Pool, x, y []float32) {
	s := &c.s
	// The columns of a window stay in the cache; the overlap at both ends of a piece is small
	// against it.
	most := max(2*c.strips.k, min(stripRows, stripCacheMax/(c.strips.k*s.C)))
	jobs := min(gemm.JobCount(p, s.N*s.OH*s.OW*s.C*c.k, stripRate), 2*p.Threads())
	if jobs > 1 {
		most = max(2*c.strips.k, min(most, s.N*s.OH/jobs))
	}
	// All pieces have at least half as many rows, so that windows end in each of them.
	pieces := (s.OH + most - 1) / most
	grain := (s.N*pieces + jobs - 1) / jobs
	workers.Do(p, s.N*pieces, grain, stripArgs{c, x, y, pieces}, func(q stripArgs, lo, hi int) {
		c, s, pieces := q.c, &q.c.s, q.pieces
		t := stripPool.Get().(*simd.Strip)
		for i := lo; i < hi; i++ {
			n, from, to := i/pieces, i%pieces*s.OH/pieces, (i%pieces+1)*s.OH/pieces
			c.stripsOfLines(t, q.x[n*s.H*s.W*s.C:], q.y[n*s.OH*s.OW*s.C:], from, to-from)
		}
		releaseStrip(t)
	})
}

// stripsOfLines convolves n output rows from oy.
func (c *Float32) stripsOfLines(t *simd.Strip, x, y []float32, oy, n int) {
	s, k, step := &c.s, c.strips.k, c.strips.step
	first := oy*step - s.PadT
	from := max(0, first) // first input row that exists
	t.SetClamp(c.act.On, c.act.Min, c.act.Max)
	if !t.SetLines(k, step, from-first, s.H-from, n) {
		panic("kernel: a piece without whole windows")
	}
	t.LineDst, t.LineSrc, t.Tap = 4*s.OW*s.C, 4*s.W*s.C, 4*s.C
	x, y = x[from*s.W*s.C:], y[oy*s.OW*s.C:]
	switch {
	case c.strips.columns.all > 0:
		t.StepW = 4 * s.C
		c.columnStrips(t, x, y)
	case c.strips.joined > 0:
		// Columns whose windows cross no side border.
		ox := min(max(0, s.PadL), s.OW)
		end := c.joinedStrips(t, x, y, ox, min(s.OW, s.W+s.PadL-k+1))
		c.singleStrips(t, x, y, 0, ox)
		c.singleStrips(t, x, y, end, s.OW)
	default:
		c.singleStrips(t, x, y, 0, s.OW)
	}
}

// joinedStrips convolves the rows that t is set to, which begin at x and y, from column ox: as
// many columns before end as fill registers. It returns the first remaining column.
func (c *Float32) joinedStrips(t *simd.Strip, x, y []float32, ox, end int) int {
	s, q := &c.s, c.strips
	if t.N = (end - ox) / q.joined; t.N <= 0 {
		return ox
	}
	width := q.f.Width
	t.StepW, t.NextDst, t.NextSrc, t.NextW = 4*width, 4*width, 4*width, 0
	t.Src, t.At, t.Dst, t.W = &x[0], 4*(ox-s.PadL)*s.C, &y[ox*s.C], &q.packed[0]
	t.Bias, t.NextBias = nil, 0
	if c.bias != nil {
		t.Bias = &q.packed[q.k*q.k*width]
	}
	q.f.SetSeen(t, q.k, width, 1<<q.k-1)
	q.f.Lanes(t, q.k, q.step, width)
	return ox + t.N*q.joined
}

// singleStrips convolves columns ox to end of the rows that t is set to, which begin at x and
// y, one column at a time.
func (c *Float32) singleStrips(t *simd.Strip, x, y []float32, ox, end int) {
	s, f, k, step := &c.s, c.strips.f, c.strips.k, c.strips.step
	t.StepW = 4 * s.C
	// All columns but those at the sides read the same taps.
	seen, wide := uint(0), 0
	for ; ox < end; ox++ {
		column, see := ox*step-s.PadL, uint(0)
		for tap := range k {
			if uint(column+tap) < uint(s.W) {
				see |= 1 << tap
			}
		}
		for c0 := 0; c0 < s.C; {
			width := min(f.Most(k, step), s.C-c0)
			t.N = (s.C - c0) / width
			t.NextDst, t.NextSrc, t.NextW = 4*width, 4*width, 4*width
			t.Src, t.At = &x[c0], 4*column*s.C
			t.Dst, t.W = &y[ox*s.C+c0], &c.weights[c0]
			t.Bias, t.NextBias = nil, 0
			if c.bias != nil {
				t.Bias, t.NextBias = &c.bias[c0], 4*width
			}
			if see != seen || width != wide {
				f.SetSeen(t, k, width, see)
				seen, wide = see, width
			}
			f.Lanes(t, k, step, width)
			c0 += t.N * width
		}
	}
}

// columnStrips convolves the rows that t is set to, which begin at x and y, several columns at
// a time.
func (c *Float32) columnStrips(t *simd.Strip, x, y []float32) {
	s, q := &c.s, c.strips
	for i, ox := 0, 0; i < q.columns.all; i++ {
		cols := q.columns.columns(i)
		ox = min(ox, s.OW-cols)
		first := ox*q.step - s.PadL
		see := simd.SeenColumns(first, 1, (cols-1)*q.step+q.k, s.W)
		for c0 := 0; c0 < s.C; {
			width := min(simd.TileLanes, s.C-c0)
			t.N = (s.C - c0) / width
			t.NextDst, t.NextSrc, t.NextW = 4*width, 4*width, 4*width
			t.Src, t.At = &x[c0], 4*first*s.C
			t.Dst, t.W = &y[ox*s.C+c0], &c.weights[c0]
			t.Bias, t.NextBias = nil, 0
			if c.bias != nil {
				t.Bias, t.NextBias = &c.bias[c0], 4*width
			}
			q.f.SetSeenColumns(t, q.k, q.step, cols, width, see)
			q.f.Columns(t, q.k, q.step, cols)
			c0 += t.N * width
		}
		ox += cols
	}
}
