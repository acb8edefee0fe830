package kernel

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
)

// Convolutions over few positions, which would leave much of a panel empty: positions, or what their windows see,
// are rows of a product then, output channels its columns, and the result is turned.

// setFew packs constant weights where that is faster.
func (c *Conv) setFew(w []float32) {
	s := &c.s
	if c.planes == nil || c.f == nil || s.Groups > 1 || c.sparse != nil || c.tiled != nil || c.parts != nil {
		return
	}
	if c.fewCost() >= c.planeCost() {
		return
	}
	if !c.planes.frame || s.KH*s.KW == 1 && c.volume == nil {
		c.few = PackB(c.k, s.OC, w, 0, true)
		return
	}
	// Patches have the channels of a tap side by side.
	taps := s.KH * s.KW
	depths, channels := c.depths()
	turned := make([]float32, s.OC*c.k)
	for o := range s.OC {
		for d := range depths {
			move.Turn(turned[o*c.k+d*channels:], s.C, w[o*c.k+d*taps:], depths*taps, taps, channels)
		}
	}
	c.few = PackB(c.k, s.OC, turned, 0, true)
}

// depths is the number of planes that a window sees of each channel, and that of channels.
func (c *Conv) depths() (depths, channels int) {
	if c.volume == nil {
		return 1, c.s.C
	}
	return c.volume.Kernel, c.volume.channels
}

// What values take that are moved and not multiplied, in nanoseconds, as measured on a Zen 4: rates of both ways over 25 shapes of 1×1 and 20
// of larger windows, 5² to 160² positions, follow from these within a tenth, and the faster one is told right but where they are
// within a few hundredths of each other.
const (
	frameTime  = 0.35 // of a value that is copied into a frame
	gatherTime = 0.2  // of a value of a panel that is gathered
	readTime   = 0.05 // of one that is read where it lies
	lineTime   = 8    // of a line of taps of a patch
	patchTime  = 0.1  // of a value of a patch
	patchFar   = 0.25 // of one where patches leave the second-level cache before they are multiplied
	turnTime   = 0.37 // of a result that is turned
	turnFar    = 1.0  // of one where results leave the second-level cache before
	turnNear   = 1 << 18
)

// planeCost is the time that a position takes as a column of a panel, in nanoseconds. A panel may be full in part.
func (c *Conv) planeCost() float64 {
	s := &c.s
	area := s.OH * s.OW
	cost := c.productTime()
	if c.direct != nil {
		return cost + c.framesTime()
	}
	cost *= c.taken(area)
	each := gatherTime
	if s.KH*s.KW == 1 {
		each = readTime
	}
	if c.planes.frame {
		cost += c.framesTime()
	}
	return cost + each*float64(c.k)
}

// taken is how many columns are computed for each of so many.
func (c *Conv) taken(columns int) float64 {
	whole, rest := columns/c.f.Cols*c.f.Cols, columns%c.f.Cols
	if rest > 0 {
		whole += c.f.Taken(rest)
	}
	return float64(whole) / float64(columns)
}

// framesTime is that of writing frames, for each position of the results.
func (c *Conv) framesTime() float64 {
	return frameTime * float64(c.s.C*c.planes.size) / float64(c.s.OH*c.s.OW)
}

// fewCost is the time that it takes as a row, output channels being the columns.
func (c *Conv) fewCost() float64 {
	s := &c.s
	area := s.OH * s.OW
	cost := c.productTime() * c.taken(s.OC)
	if !c.planes.frame && 4*area >= sameLines {
		cost *= 1.3 // each step of a tile reads rows in a page of its own: as measured on a Xeon
	}
	if c.planes.frame {
		lines, each := s.KH, patchTime
		if s.DilW > 1 {
			lines *= s.KW
		}
		if area*c.k > turnNear {
			each = patchFar
		}
		cost += lineTime*float64(lines) + each*float64(c.k) + turnTime*float64(s.C*s.H*s.W)/float64(area)
	}
	turned := turnTime
	switch {
	case area == 1:
		turned = 0
	case area*s.OC > turnNear:
		turned = turnFar
	}
	return cost + turned*float64(s.OC)
}

// productTime is what the products of a position take.
func (c *Conv) productTime() float64 { return float64(c.k*c.s.OC) / c.f.Rate() }

// fewRows is how many rows of a product pictures fill together, so that weights do not go by for each of them.
const fewRows = 64

// turnGrain is how many turned values are worth a piece of work.
var turnGrain = workers.Grain(2)

// runFew convolves x into y.
func (c *Conv) runFew(p *workers.Pool, x, y []float32) {
	s := &c.s
	area := s.OH * s.OW
	g := GemmParams{M: s.N, N: s.OC, K: c.k, BiasN: c.bias, Act: c.act}
	if area == 1 && !c.planes.frame {
		GemmPacked(p, g, x, c.few, y)
		return
	}
	pictures := 1
	if c.planes.frame {
		pictures = min(s.N, max(1, fewRows/area))
	} else {
		g.LDA, g.TransA = area, true
	}
	sc, rows := borrow(pictures * area * s.OC)
	for n := 0; n < s.N; n += pictures {
		pictures = min(pictures, s.N-n)
		g.M = pictures * area
		if c.planes.frame {
			sp, patches := borrow(g.M * c.k)
			for i := range pictures {
				c.patches(p, patches[i*area*c.k:], x, n+i)
			}
			GemmPacked(p, g, patches, c.few, rows)
			scratch.Put(sp)
		} else {
			GemmPacked(p, g, x[n*s.C*s.H*s.W:][:s.C*s.H*s.W], c.few, rows)
		}
		for i := range pictures {
			workers.Do(p, s.OC, max(1, turnGrain/area), fewArgs{c.results(y, n+i, 0), rows[i*area*s.OC:], area, s.OC, c.step()}, func(a fewArgs, lo, hi int) {
				move.Turn(a.y[lo*a.step:], a.step, a.rows[lo:], a.channels, hi-lo, a.area)
			})
		}
	}
	scratch.Put(sc)
}

// fewArgs is what a piece of turning rows of positions into planes needs.
type fewArgs struct {
	y, rows              []float32
	area, channels, step int
}

// patches writes what the windows of picture n see, a row for each position of the results: tap after tap, the channels of each side by
// side. For that the picture is turned first.
func (c *Conv) patches(p *workers.Pool, rows, x []float32, n int) {
	s := &c.s
	in := s.H * s.W
	sc, last := borrow(in * s.C)
	a := patchArgs{c, x, last, rows, n}
	workers.Do(p, in, max(1, turnGrain/s.C), a, patchArgs.turn)
	workers.Do(p, s.OH*s.OW, max(1, copyGrain/c.k), a, func(a patchArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			a.c.patch(a.rows[i*a.c.k:][:a.c.k], a.last, i)
		}
	})
	scratch.Put(sc)
}

// patchArgs is what a piece of gathering patches needs.
type patchArgs struct {
	c             *Conv
	x, last, rows []float32
	n             int // the picture
}

// turn writes positions lo to hi with their channels side by side, one depth after the other.
func (a patchArgs) turn(lo, hi int) {
	c, s := a.c, &a.c.s
	depths, channels := c.depths()
	for d := range depths {
		to := a.last[lo*s.C+d*channels:]
		from, step := c.planesAt(a.x, a.n, d)
		if from == nil {
			for i := range hi - lo {
				clear(to[i*s.C:][:channels])
			}
			continue
		}
		move.Turn(to, s.C, from[lo:], step, hi-lo, channels)
	}
}

// patch writes what the window at a position sees of a picture whose channels come last, zeros beyond the borders.
func (c *Conv) patch(dst, last []float32, at int) {
	s := &c.s
	y0, x0 := at/s.OW*s.StrideH-s.PadT, at%s.OW*s.StrideW-s.PadL
	lo, hi := span(s.KW, s.DilW, x0, s.W)
	for ky := range s.KH {
		line := dst[ky*s.KW*s.C:][:s.KW*s.C]
		iy := y0 + ky*s.DilH
		if uint(iy) >= uint(s.H) || lo >= hi {
			clear(line)
			continue
		}
		clear(line[:lo*s.C])
		clear(line[hi*s.C:])
		from := (iy*s.W + x0 + lo*s.DilW) * s.C
		if s.DilW == 1 {
			copy(line[lo*s.C:hi*s.C], last[from:])
			continue
		}
		for kx := lo; kx < hi; kx++ {
			copy(line[kx*s.C:][:s.C], last[from:])
			from += s.DilW * s.C
		}
	}
}
