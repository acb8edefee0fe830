package conv

import (
	"sync"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Winograd F(4×4, 3×3) with SIMD kernels; see [simd.Winograd]. A block of tiles is transformed for
// all input channels. Then each chunk of output channels is multiplied by it, one GEMM for each
// of the 36 transform positions, and transformed back while both are in the L2 cache. The
// transformed weights are four times as large as the original ones; each block reads all chunks
// once.

// winograd4Plan holds the parameters of such a convolution.
type winograd4Plan struct {
	f      *simd.Winograd
	tw, th int // tiles per row, and rows of tiles
	// tiles per row of a strip: of columns computed together; the last strip may have fewer
	strip  int
	strips int
	block  int // tiles of a block, adjacent in a strip, row after row; fills registers
	// chunk is the number of output channels that are multiplied by a block before the output
	// transform; chunks is the number of chunks of a group.
	chunk, chunks int
	steps         int // input channels of a pass over a panel
}

const (
	// winograd4CacheMax bounds the transformed input of a block and the output of a chunk, in
	// values: each takes a part of a typical L2 cache.
	winograd4CacheMax = 1 << 16
	// winograd4ChunkMax and winograd4StripMax bound the output channels of a chunk and the tiles
	// of a strip row.
	winograd4ChunkMax = 48
	winograd4StripMax = 32
)

// planWinograd4 returns false if Winograd is not faster.
func (c *Float32) planWinograd4() bool {
	if !c.usesPlanes() {
		return false
	}
	q := c.newWinograd4()
	if q == nil || winograd4Gain*q.time(c) > c.denseTime() {
		return false
	}
	c.winograd4 = q
	return true
}

// newWinograd4 returns nil if no SIMD Winograd kernels apply.
func (c *Float32) newWinograd4() *winograd4Plan {
	s, f := &c.s, simd.WinogradKernels()
	if f == nil || s.KH != 3 || s.KW != 3 || s.StrideH != 1 || s.StrideW != 1 || s.DilH != 1 || s.DilW != 1 || s.PadT < 0 || s.PadL < 0 {
		return nil
	}
	q := &winograd4Plan{f: f, tw: (s.OW + simd.WinogradTile - 1) / simd.WinogradTile, th: (s.OH + simd.WinogradTile - 1) / simd.WinogradTile}
	q.strip, q.strips = q.tw, 1
	if q.tw > winograd4StripMax+f.Lanes/2 {
		q.strip, q.strips = winograd4StripMax, (q.tw+winograd4StripMax-1)/winograd4StripMax
	}
	q.block = max(c.f.Cols, winograd4CacheMax/(simd.WinogradPositions*c.cg)/c.f.Cols*c.f.Cols)
	q.block = min(q.block, scratch.RoundUp(q.th*q.strip, f.Lanes))
	if q.chunks = (c.og + winograd4ChunkMax - 1) / winograd4ChunkMax; q.chunks > 1 {
		q.chunks = scratch.RoundUp(q.chunks, 2) // the same number for both of two threads
	}
	q.chunk = (c.og + q.chunks - 1) / q.chunks
	q.chunks = (c.og + q.chunk - 1) / q.chunk
	q.steps = simd.Evenly(c.cg, gemm.KBlock)
	return q
}

// Cost of the transforms, measured on a Zen 4, and the minimum estimated speed-up, which covers
// the errors of the estimate.
const (
	winograd4InTime    = 11.0 // nanoseconds per tile and input channel
	winograd4OutTime   = 9.0  // nanoseconds per tile and output channel
	winograd4GroupTime = 4000 // nanoseconds per group, if there are several: GEMM with few channels
	winograd4ReadRate  = 7.5  // bytes of weights per nanosecond from memory
	winograd4Gain      = 1.1
)

// time estimates the time of an image, in nanoseconds. Reading weights overlaps with multiplying
// the previous ones.
func (q *winograd4Plan) time(c *Float32) float64 {
	s, all := &c.s, 0
	for i := range q.strips {
		all += scratch.RoundUp(q.th*min(q.strip, q.tw-i*q.strip), q.f.Lanes)
	}
	weights, groups := float64(simd.WinogradPositions*c.cg*s.OC), 0.0
	if s.Groups > 1 {
		groups = winograd4GroupTime * float64(s.Groups)
	}
	return groups + max(weights*float64(all)/c.f.Rate(), 4*weights/winograd4ReadRate) + float64(all)*(winograd4InTime*float64(s.C)+winograd4OutTime*float64(s.OC))
}

// denseTime estimates the time of an image with float32 GEMM and dense weights, in nanoseconds.
func (c *Float32) denseTime() float64 {
	s := &c.s
	if c.groupedDirect != nil {
		return c.groupedDirect.time(c)
	}
	cost := c.planeCost()
	if s.Groups == 1 {
		cost = min(cost, c.im2rowCost())
	}
	return cost * float64(s.OH*s.OW)
}

// place returns the number of weights of a chunk of rows channels at a transform position.
// Kernels read one vector beyond the end.
func (q *winograd4Plan) place(rows, cg int) int { return rows*cg + q.f.Lanes }

// group returns the number of weights of a group.
func (q *winograd4Plan) group(og, cg int) int {
	return simd.WinogradPositions * (og*cg + q.chunks*q.f.Lanes)
}

// weights returns the weights of chunk i of group g, transform position after position.
func (q *winograd4Plan) weights(c *Float32, g, i int) []float32 {
	from := g*q.group(c.og, c.cg) + simd.WinogradPositions*i*q.place(q.chunk, c.cg)
	return c.weights[from:][:simd.WinogradPositions*q.place(min(q.chunk, c.og-i*q.chunk), c.cg)]
}

// packWinograd4 transforms and packs weights: for each transform position, K pass and row tile,
// the rows of the tile are interleaved.
func (c *Float32) packWinograd4(w []float32) {
	q, s := c.winograd4, &c.s
	if n := s.Groups * q.group(c.og, c.cg); len(c.weights) != n {
		c.weights = hugepages.Make[float32](n)
	}
	const filters = 32 // filters of an output channel that are transposed together
	lanes := q.f.Lanes
	sc, turned := scratch.Borrow(9 * filters * lanes)
	workspace := winograd4Pool.Get().(*winograd4Scratch)
	clear(turned)
	for g := range s.Groups {
		for i := range q.chunks {
			o0 := i * q.chunk
			rows, dst := min(q.chunk, c.og-o0), q.weights(c, g, i)
			place := q.place(rows, c.cg)
			for k0 := 0; k0 < c.cg; k0 += q.steps {
				steps := min(q.steps, c.cg-k0)
				for o := 0; o < rows; {
					high := simd.Evenly(rows-o, c.f.Rows)
					for k := 0; k < steps; k += filters {
						n := min(filters, steps-k)
						move.Transpose(turned, lanes, w[(g*c.og+o0+o)*c.k+9*(k0+k):], c.k, 9*n, high)
						q.f.Weights(dst[k0*rows+o*steps+k*high:], place, high, turned, n, &workspace.tiles)
					}
					o += high
				}
			}
		}
	}
	workspace.give()
	scratch.Float32s.Put(sc)
}

// winograd4Scratch holds the kernel arguments of a work item.
type winograd4Scratch struct {
	tiles  simd.WinogradWorkspace
	copies simd.Window
}

var winograd4Pool = sync.Pool{New: func() any { return new(winograd4Scratch) }}

// give clears the pointers and returns r to the pool.
func (r *winograd4Scratch) give() {
	r.copies = simd.Window{}
	winograd4Pool.Put(r)
}

// winograd4Args holds the arguments of a work item.
type winograd4Args struct {
	c             *Float32
	x, y          []float32
	block         int // tiles of a block
	blocks        int // of a strip, except the last one
	all           int // of all strips
	parts, chunks int // channel parts of a group, chunks of a part
	// The single block if threads share its input transform, and the transformed input; nil if
	// each work item has its own.
	only  winograd4Block
	input []float32
}

// runWinograd4 convolves x into y.
func (c *Float32) runWinograd4(p *workers.Pool, x, y []float32) {
	s, q := &c.s, c.winograd4
	a := winograd4Args{c: c, x: x, y: y, block: q.block, parts: 1}
	jobs := gemm.JobCount(p, s.N*s.OC*simd.WinogradPositions*c.cg*q.th*q.tw, c.f.Rate())
	last := q.tw - (q.strips-1)*q.strip
	a.blocks = (q.th*q.strip + a.block - 1) / a.block
	a.all = (q.strips-1)*a.blocks + (q.th*last+a.block-1)/a.block
	if whole := s.N * s.Groups * a.all; whole < jobs {
		a.parts = min((jobs+whole-1)/whole, q.chunks)
	}
	a.chunks = (q.chunks + a.parts - 1) / a.parts
	a.parts = (q.chunks + a.chunks - 1) / a.chunks
	if s.N*s.Groups*a.all == 1 && jobs > 1 {
		sc, v := scratch.Borrow(q.inputWorkspace(c.cg, a.block))
		a.only, a.input = q.blockAt(0, &a), v
		workers.Do(p, c.cg, max(1, workers.Grain(1/winograd4InTime)/a.only.all), a, func(a winograd4Args, lo, hi int) {
			workspace := winograd4Pool.Get().(*winograd4Scratch)
			a.c.winograd4Input(workspace, a.input, a.x, 0, 0, &a.only, lo, hi)
			workspace.give()
		})
		workers.Do(p, a.parts, 1, a, winograd4Args.pieces)
		scratch.Float32s.Put(sc)
		return
	}
	workers.Do(p, s.N*s.Groups*a.all*a.parts, 1, a, winograd4Args.pieces)
}

// inputWorkspace returns the number of values of the transformed input of a block.
func (q *winograd4Plan) inputWorkspace(cg, block int) int {
	return simd.WinogradPositions*(cg*block+q.f.Lanes) + q.f.Lanes
}

func (a winograd4Args) pieces(lo, hi int) {
	c := a.c
	s, q := &c.s, c.winograd4
	lanes := q.f.Lanes
	v := a.input
	if v == nil {
		var sv *[]float32
		sv, v = scratch.Borrow(q.inputWorkspace(c.cg, a.block))
		defer scratch.Float32s.Put(sv)
	}
	sm, m := scratch.Borrow(simd.WinogradPositions*(q.chunk*a.block+lanes) + lanes)
	t, workspace := gemm.Tiles.Get().(*simd.Tile), winograd4Pool.Get().(*winograd4Scratch)
	var b winograd4Block
	made := -1
	for i := lo; i < hi; i++ {
		part, at := i%a.parts, i/a.parts
		g, n := at/a.all%s.Groups, at/a.all/s.Groups
		if at != made {
			made = at
			b = q.blockAt(at%a.all, &a)
			if a.input == nil {
				c.winograd4Input(workspace, v, a.x, n, g, &b, 0, c.cg)
			}
		}
		y := c.results(a.y, n, g*c.og)
		for chunk := part * a.chunks; chunk < min(q.chunks, (part+1)*a.chunks); chunk++ {
			o := chunk * q.chunk
			rows := min(q.chunk, c.og-o)
			c.winograd4Multiply(t, m, v, q.weights(c, g, chunk), rows, &b)
			c.winograd4Output(workspace, y, m, g, o, rows, &b)
		}
	}
	workspace.give()
	gemm.ReleaseTile(t)
	scratch.Float32s.Put(sm)
}

// winograd4Block is a block of tiles.
type winograd4Block struct {
	left, width int // first tile of the rows, tiles per row
	from, n     int // index of the first of n tiles, counted row after row
	all         int // tiles rounded up to whole registers
}

// blockAt returns block i of an image.
func (q *winograd4Plan) blockAt(i int, a *winograd4Args) (b winograd4Block) {
	strip := min(i/a.blocks, q.strips-1)
	b.left = strip * q.strip
	b.width = min(q.strip, q.tw-b.left)
	b.from = (i - strip*a.blocks) * a.block
	b.n = min(a.block, q.th*b.width-b.from)
	b.all = scratch.RoundUp(b.n, q.f.Lanes)
	return b
}

// winograd4Input transforms the tiles of a block for channels lo to hi of group g of image n: at
// each transform position a row of b.all tiles per channel.
func (c *Float32) winograd4Input(workspace *winograd4Scratch, v, x []float32, n, g int, b *winograd4Block, lo, hi int) {
	s, f := &c.s, c.winograd4.f
	top, end := b.from/b.width, (b.from+b.n-1)/b.width+1 // rows of tiles
	lines, whole := end-top, scratch.RoundUp(b.width, f.Lanes)
	// The padded input of the tiles for one channel.
	high, pitch := simd.WinogradTile*lines+2, simd.WinogradTile*whole+simd.WinogradTile
	frame := (lines+1)*b.width + f.Lanes
	sc, plane := scratch.Borrow(high*pitch + simd.WinogradFrames*frame)
	frames := plane[high*pitch:]
	plane = plane[:high*pitch]
	clear(plane)
	y0, x0 := simd.WinogradTile*top-s.PadT, simd.WinogradTile*b.left-s.PadL
	ya, yb, xa, xb := max(0, y0), min(s.H, y0+high), max(0, x0), min(s.W, x0+simd.WinogradTile*b.width+2)
	windows := simd.WindowKernels()
	place := c.cg*b.all + f.Lanes
	for ch := lo; ch < hi; ch++ {
		// Prefetch the rows of the next channel; any rows if absent.
		next := c.plane(x, n, g*c.cg+min(ch+1, c.cg-1))[min(ya, s.H-1)*s.W+min(xa, s.W-1):]
		if ya < yb && xa < xb {
			windows.CopyLines(&workspace.copies, plane[(ya-y0)*pitch+xa-x0:], pitch, c.plane(x, n, g*c.cg+ch)[ya*s.W+xa:], s.W, 1, xb-xa, yb-ya)
		}
		for i := range simd.WinogradTile {
			n := lines
			if i < simd.WinogradInputTile-simd.WinogradTile {
				n++
			}
			f.Split(frames[i*simd.WinogradInputTile*frame:], frame, b.width, plane[i*pitch:], simd.WinogradTile*pitch, b.width, n, &next[min(i*s.W, len(next)-1)], simd.WinogradTile*s.W)
		}
		f.Input(v[ch*b.all:], place, frames[b.from-top*b.width:], frame, b.width, b.n, &workspace.tiles)
	}
	scratch.Float32s.Put(sc)
}

// winograd4Multiply multiplies the transformed tiles of a block by the weights of rows output
// channels: at each transform position a row of tiles per channel.
func (c *Float32) winograd4Multiply(t *simd.Tile, m, v, w []float32, rows int, b *winograd4Block) {
	q, f := c.winograd4, c.f
	place, in, out := q.place(rows, c.cg), c.cg*b.all+q.f.Lanes, q.chunk*b.all+q.f.Lanes
	t.Segs, t.RowA, t.RowC, t.StepB = 1, 4, 4*b.all, 4*b.all
	gemm.SetClamp(t, c.act, false)
	t.BiasM, t.BiasN = nil, nil
	panels := (b.all + f.Cols - 1) / f.Cols
	for i := range simd.WinogradPositions {
		w, v, m := w[i*place:], v[i*in:], m[i*out:]
		for k0 := 0; k0 < c.cg; k0 += q.steps {
			t.K = min(q.steps, c.cg-k0)
			gemm.SetStart(t, false, false, k0 == 0)
			for o := 0; o < rows; {
				high := simd.Evenly(rows-o, f.Rows)
				at := k0*rows + o*t.K
				t.A, t.StepA = &w[at], 4*high
				next := gemm.PrefetchOf(w[min(len(w), at+high*t.K):], (4*high+panels-1)/panels)
				for p := 0; p < b.all; p += f.Cols {
					next.Fetch(t, 1)
					t.B, t.C = &v[k0*b.all+p], &m[o*b.all+p]
					f.Run(t, high, min(f.Cols, b.all-p), false)
				}
				o += high
			}
		}
	}
}

// winograd4Output transforms back and writes the outputs of rows output channels from channel o
// of group g.
func (c *Float32) winograd4Output(workspace *winograd4Scratch, y, m []float32, g, o, rows int, b *winograd4Block) {
	s, q := &c.s, c.winograd4
	low, high := -gemm.Inf, gemm.Inf
	if c.act.On {
		low, high = c.act.Min, c.act.Max
	}
	place := q.chunk*b.all + q.f.Lanes
	for r := range rows {
		bias := float32(0)
		if c.bias != nil {
			bias = c.bias[g*c.og+o+r]
		}
		out := y[(o+r)*c.step():][:s.OH*s.OW]
		for at := b.from; at < b.from+b.n; {
			line, first := at/b.width, at%b.width
			n := min(b.width-first, b.from+b.n-at)
			oy, ox := simd.WinogradTile*line, simd.WinogradTile*(b.left+first)
			q.f.Output(out[oy*s.OW+ox:], s.OW, min(simd.WinogradTile, s.OH-oy), min(simd.WinogradTile*n, s.OW-ox),
				m[r*b.all+at-b.from:], place, bias, low, high, &workspace.tiles)
			at += n
		}
	}
}
