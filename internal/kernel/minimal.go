package kernel

import (
	"sync"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Winograd's minimal filtering in vectors; see [simd.Minimal]. A block of tiles is transformed for all input channels, a chunk of output
// channels after the other is multiplied by it, one matrix product for each of the 36 places, and transformed back, while both lie in
// the second-level cache. The transformed weights are four times as many as the given ones: a chunk of them goes by once for each block.

// minimalPlan is what such a convolution does in each run.
type minimalPlan struct {
	f      *simd.Minimal
	tw, th int // tiles of a line and lines of them
	strip  int // tiles of a line of a strip: of columns that are computed together; the last one may have fewer
	strips int
	block  int // tiles of a block, neighbours in a strip, line after line; fills registers
	// chunk is the number of output channels that are multiplied by a block before they are transformed, chunks how many of
	// those a group has.
	chunk, chunks int
	steps         int // input channels of a pass over a panel
}

const (
	// minimalNear bounds the transformed input of a block and the products of a chunk, in values: a part each of a usual second-level cache.
	minimalNear = 1 << 16
	// minimalChunk and minimalStrip bound what goes together.
	minimalChunk = 48
	minimalStrip = 32
)

// planMinimal returns nil for what does not gain from minimal filtering.
func (c *Conv) planMinimal() *minimalPlan {
	q := c.newMinimal()
	if q == nil || minimalGain*q.time(c) > c.denseTime() {
		return nil
	}
	return q
}

// newMinimal returns nil for what has no minimal filtering in vectors.
func (c *Conv) newMinimal() *minimalPlan {
	s, f := &c.s, simd.MinimalKernels()
	if f == nil || c.f == nil || s.KH != 3 || s.KW != 3 || s.StrideH != 1 || s.StrideW != 1 || s.DilH != 1 || s.DilW != 1 || s.PadT < 0 || s.PadL < 0 {
		return nil
	}
	q := &minimalPlan{f: f, tw: (s.OW + simd.MinimalTile - 1) / simd.MinimalTile, th: (s.OH + simd.MinimalTile - 1) / simd.MinimalTile}
	q.strip, q.strips = q.tw, 1
	if q.tw > minimalStrip+f.Lanes/2 {
		q.strip, q.strips = minimalStrip, (q.tw+minimalStrip-1)/minimalStrip
	}
	q.block = max(c.f.Cols, minimalNear/(simd.MinimalPlaces*c.cg)/c.f.Cols*c.f.Cols)
	q.block = min(q.block, roundUp(q.th*q.strip, f.Lanes))
	if q.chunks = (c.og + minimalChunk - 1) / minimalChunk; q.chunks > 1 {
		q.chunks = roundUp(q.chunks, 2) // threads take as many
	}
	q.chunk = (c.og + q.chunks - 1) / q.chunks
	q.chunks = (c.og + q.chunk - 1) / q.chunk
	q.steps = simd.Evenly(c.cg, kBlock)
	return q
}

// What the transforms take, as measured on a Zen 4, and what must be gained at least: the errors are larger.
const (
	minimalInTime  = 11.0 // nanoseconds of a tile of an input channel
	minimalOutTime = 9.0  // of an output channel
	minimalGroup   = 4000 // of each of several groups: products of few channels
	minimalRead    = 7.5  // bytes of weights in a nanosecond, from memory
	minimalGain    = 1.1
)

// time is what an image takes, in nanoseconds, about. Weights are read while those before are multiplied.
func (q *minimalPlan) time(c *Conv) float64 {
	s, all := &c.s, 0
	for i := range q.strips {
		all += roundUp(q.th*min(q.strip, q.tw-i*q.strip), q.f.Lanes)
	}
	weights, groups := float64(simd.MinimalPlaces*c.cg*s.OC), 0.0
	if s.Groups > 1 {
		groups = minimalGroup * float64(s.Groups)
	}
	return groups + max(weights*float64(all)/c.f.Rate(), 4*weights/minimalRead) + float64(all)*(minimalInTime*float64(s.C)+minimalOutTime*float64(s.OC))
}

// quick tells whether all weights have a way that is faster than products in float32.
func (c *Conv) quick() bool { return c.tiled != nil || c.parts != nil }

// quickTime is what a picture takes so, in nanoseconds, about.
func (c *Conv) quickTime() float64 {
	if c.tiled != nil {
		return c.tiled.time(c)
	}
	return c.partsTime()
}

// denseTime is that of the other ways of computing with all weights.
func (c *Conv) denseTime() float64 {
	s := &c.s
	if c.flat != nil {
		return c.flat.time(c)
	}
	cost := c.planeCost()
	if s.Groups == 1 {
		cost = min(cost, c.fewCost())
	}
	return cost * float64(s.OH*s.OW)
}

// place is the number of weights of a chunk of rows channels at a place. Vectors go over its end.
func (q *minimalPlan) place(rows, cg int) int { return rows*cg + q.f.Lanes }

// group is the number of weights of a group.
func (q *minimalPlan) group(og, cg int) int {
	return simd.MinimalPlaces * (og*cg + q.chunks*q.f.Lanes)
}

// weights are those of chunk i of group g, place after place.
func (q *minimalPlan) weights(c *Conv, g, i int) []float32 {
	from := g*q.group(c.og, c.cg) + simd.MinimalPlaces*i*q.place(q.chunk, c.cg)
	return c.weights[from:][:simd.MinimalPlaces*q.place(min(q.chunk, c.og-i*q.chunk), c.cg)]
}

// setMinimal transforms and packs weights: at a place, for each pass of steps and each tile of rows, these rows side by side.
func (c *Conv) setMinimal(w []float32) {
	q, s := c.tiled, &c.s
	if n := s.Groups * q.group(c.og, c.cg); len(c.weights) != n {
		c.weights = hugepages.Make[float32](n)
	}
	const filters = 32 // of an output channel that are turned together
	lanes := q.f.Lanes
	sc, turned := borrow(9 * filters * lanes)
	room := minimalRooms.Get().(*minimalRoom)
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
						move.Turn(turned, lanes, w[(g*c.og+o0+o)*c.k+9*(k0+k):], c.k, 9*n, high)
						q.f.Weights(dst[k0*rows+o*steps+k*high:], place, high, turned, n, &room.tiles)
					}
					o += high
				}
			}
		}
	}
	room.give()
	scratch.Put(sc)
}

// minimalRoom is what a piece of work needs beside memory for values.
type minimalRoom struct {
	tiles  simd.MinimalRoom
	copies simd.Window
}

var minimalRooms = sync.Pool{New: func() any { return new(minimalRoom) }}

// give forgets the memory that a walk points to.
func (r *minimalRoom) give() {
	r.copies = simd.Window{}
	minimalRooms.Put(r)
}

// minimalArgs is what a piece of the work needs.
type minimalArgs struct {
	c             *Conv
	x, y          []float32
	block         int // tiles of a block
	blocks        int // of a strip, but the last one
	all           int // of all strips
	parts, chunks int // parts of the channels of a group, chunks of a part
	// The only block, where threads transform a part of the input each, and the transformed input, which is nil where each has its own.
	only  minimalBlock
	input []float32
}

// runMinimal convolves x into y.
func (c *Conv) runMinimal(p *workers.Pool, x, y []float32) {
	s, q := &c.s, c.tiled
	a := minimalArgs{c: c, x: x, y: y, block: q.block, parts: 1}
	jobs := jobsOf(p, s.N*s.OC*simd.MinimalPlaces*c.cg*q.th*q.tw, c.f.Rate())
	last := q.tw - (q.strips-1)*q.strip
	a.blocks = (q.th*q.strip + a.block - 1) / a.block
	a.all = (q.strips-1)*a.blocks + (q.th*last+a.block-1)/a.block
	if whole := s.N * s.Groups * a.all; whole < jobs {
		a.parts = min((jobs+whole-1)/whole, q.chunks)
	}
	a.chunks = (q.chunks + a.parts - 1) / a.parts
	a.parts = (q.chunks + a.chunks - 1) / a.chunks
	if s.N*s.Groups*a.all == 1 && jobs > 1 {
		sc, v := borrow(q.inputRoom(c.cg, a.block))
		a.only, a.input = q.blockAt(0, &a), v
		workers.Do(p, c.cg, max(1, workers.Grain(1/minimalInTime)/a.only.all), a, func(a minimalArgs, lo, hi int) {
			room := minimalRooms.Get().(*minimalRoom)
			a.c.minimalInput(room, a.input, a.x, 0, 0, &a.only, lo, hi)
			room.give()
		})
		workers.Do(p, a.parts, 1, a, minimalArgs.pieces)
		scratch.Put(sc)
		return
	}
	workers.Do(p, s.N*s.Groups*a.all*a.parts, 1, a, minimalArgs.pieces)
}

// inputRoom is the number of values of the transformed input of a block of so many tiles.
func (q *minimalPlan) inputRoom(cg, block int) int {
	return simd.MinimalPlaces*(cg*block+q.f.Lanes) + q.f.Lanes
}

func (a minimalArgs) pieces(lo, hi int) {
	c := a.c
	s, q := &c.s, c.tiled
	lanes := q.f.Lanes
	v := a.input
	if v == nil {
		var sv *[]float32
		sv, v = borrow(q.inputRoom(c.cg, a.block))
		defer scratch.Put(sv)
	}
	sm, m := borrow(simd.MinimalPlaces*(q.chunk*a.block+lanes) + lanes)
	t, room := tiles.Get().(*simd.Tile), minimalRooms.Get().(*minimalRoom)
	var b minimalBlock
	made := -1
	for i := lo; i < hi; i++ {
		part, at := i%a.parts, i/a.parts
		g, n := at/a.all%s.Groups, at/a.all/s.Groups
		if at != made {
			made = at
			b = q.blockAt(at%a.all, &a)
			if a.input == nil {
				c.minimalInput(room, v, a.x, n, g, &b, 0, c.cg)
			}
		}
		y := c.results(a.y, n, g*c.og)
		for chunk := part * a.chunks; chunk < min(q.chunks, (part+1)*a.chunks); chunk++ {
			o := chunk * q.chunk
			rows := min(q.chunk, c.og-o)
			c.minimalProducts(t, m, v, q.weights(c, g, chunk), rows, &b)
			c.minimalOutput(room, y, m, g, o, rows, &b)
		}
	}
	room.give()
	giveTile(t)
	scratch.Put(sm)
}

// minimalBlock is a block of tiles.
type minimalBlock struct {
	left, width int // first tile of lines, tiles of a line
	from, n     int // the first of n tiles, counted line after line
	all         int // tiles that fill registers
}

// blockAt is block i of a picture.
func (q *minimalPlan) blockAt(i int, a *minimalArgs) (b minimalBlock) {
	strip := min(i/a.blocks, q.strips-1)
	b.left = strip * q.strip
	b.width = min(q.strip, q.tw-b.left)
	b.from = (i - strip*a.blocks) * a.block
	b.n = min(a.block, q.th*b.width-b.from)
	b.all = roundUp(b.n, q.f.Lanes)
	return b
}

// minimalInput transforms the tiles of a block for channels lo to hi of group g of picture n: at a place, a line of b.all tiles for each channel.
func (c *Conv) minimalInput(room *minimalRoom, v, x []float32, n, g int, b *minimalBlock, lo, hi int) {
	s, f := &c.s, c.tiled.f
	top, end := b.from/b.width, (b.from+b.n-1)/b.width+1 // lines of tiles
	lines, whole := end-top, roundUp(b.width, f.Lanes)
	// What the tiles see of a channel, with the borders in place.
	high, pitch := simd.MinimalTile*lines+2, simd.MinimalTile*whole+simd.MinimalTile
	frame := (lines+1)*b.width + f.Lanes
	sc, plane := borrow(high*pitch + simd.MinimalFrames*frame)
	frames := plane[high*pitch:]
	plane = plane[:high*pitch]
	clear(plane)
	y0, x0 := simd.MinimalTile*top-s.PadT, simd.MinimalTile*b.left-s.PadL
	ya, yb, xa, xb := max(0, y0), min(s.H, y0+high), max(0, x0), min(s.W, x0+simd.MinimalTile*b.width+2)
	windows := simd.WindowKernels()
	place := c.cg*b.all + f.Lanes
	for ch := lo; ch < hi; ch++ {
		// The lines of the next channel: any of them where there is none.
		next := c.plane(x, n, g*c.cg+min(ch+1, c.cg-1))[min(ya, s.H-1)*s.W+min(xa, s.W-1):]
		if ya < yb && xa < xb {
			windows.CopyLines(&room.copies, plane[(ya-y0)*pitch+xa-x0:], pitch, c.plane(x, n, g*c.cg+ch)[ya*s.W+xa:], s.W, 1, xb-xa, yb-ya)
		}
		for i := range simd.MinimalTile {
			n := lines
			if i < simd.MinimalSide-simd.MinimalTile {
				n++
			}
			f.Split(frames[i*simd.MinimalSide*frame:], frame, b.width, plane[i*pitch:], simd.MinimalTile*pitch, b.width, n, &next[min(i*s.W, len(next)-1)], simd.MinimalTile*s.W)
		}
		f.Input(v[ch*b.all:], place, frames[b.from-top*b.width:], frame, b.width, b.n, &room.tiles)
	}
	scratch.Put(sc)
}

// minimalProducts multiplies the transformed tiles of a block by the weights of rows output channels: at a place, a line of tiles for each.
func (c *Conv) minimalProducts(t *simd.Tile, m, v, w []float32, rows int, b *minimalBlock) {
	q, f := c.tiled, c.f
	place, in, out := q.place(rows, c.cg), c.cg*b.all+q.f.Lanes, q.chunk*b.all+q.f.Lanes
	t.Segs, t.RowA, t.RowC, t.StepB = 1, 4, 4*b.all, 4*b.all
	setClamp(t, c.act, false)
	t.BiasM, t.BiasN = nil, nil
	panels := (b.all + f.Cols - 1) / f.Cols
	for i := range simd.MinimalPlaces {
		w, v, m := w[i*place:], v[i*in:], m[i*out:]
		for k0 := 0; k0 < c.cg; k0 += q.steps {
			t.K = min(q.steps, c.cg-k0)
			setStart(t, false, false, k0 == 0)
			for o := 0; o < rows; {
				high := simd.Evenly(rows-o, f.Rows)
				at := k0*rows + o*t.K
				t.A, t.StepA = &w[at], 4*high
				next := aheadOf(w[min(len(w), at+high*t.K):], (4*high+panels-1)/panels)
				for p := 0; p < b.all; p += f.Cols {
					next.fetch(t)
					t.B, t.C = &v[k0*b.all+p], &m[o*b.all+p]
					f.Run(t, high, min(f.Cols, b.all-p), false)
				}
				o += high
			}
		}
	}
}

// minimalOutput writes the results of rows output channels from o of group g on.
func (c *Conv) minimalOutput(room *minimalRoom, y, m []float32, g, o, rows int, b *minimalBlock) {
	s, q := &c.s, c.tiled
	low, high := -inf, inf
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
			oy, ox := simd.MinimalTile*line, simd.MinimalTile*(b.left+first)
			q.f.Output(out[oy*s.OW+ox:], s.OW, min(simd.MinimalTile, s.OH-oy), min(simd.MinimalTile*n, s.OW-ox),
				m[r*b.all+at-b.from:], place, bias, low, high, &room.tiles)
			at += n
		}
	}
}
