package kernel

import "github.com/opmeter/opmeter/internal/workers"

// Convolutions over few positions, which would leave much of a panel empty: positions, or what their windows see,
// are rows of a product then, output channels its columns, and the result is turned.

// setFew packs constant weights where that is faster.
func (c *Conv) setFew(w []float32) {
	s := &c.s
	if c.planes == nil || c.f == nil || s.Groups > 1 || c.sparse != nil || c.tiled != nil {
		return
	}
	if c.fewCost() < c.planeCost() {
		c.few = PackB(c.k, s.OC, w, 0, true)
	}
}

// What values take that are moved and not multiplied, in nanoseconds, as measured on a Zen 4: rates of both ways over 12 shapes of 1×1 and 5
// of 3×3, 5² to 56² positions, follow from these within a tenth, and the faster one is told right but where they are
// within a few hundredths of each other.
const (
	spreadTime = 0.3  // of a value of a panel
	patchTime  = 1.6  // of a value of a patch
	turnTime   = 0.37 // of a result that is turned
	turnFar    = 1.0  // of one where results leave the second-level cache before
	turnNear   = 1 << 18
)

// planeCost is the time that a position takes as a column of a panel, in nanoseconds. A panel may be half full.
func (c *Conv) planeCost() float64 {
	area := c.s.OH * c.s.OW
	cost := c.productTime() * float64(roundUp(area, c.f.Cols/2)) / float64(area)
	if 4*c.k%sameLines == 0 {
		cost *= 1.08 // weights of all rows of a tile in one set of the cache
	}
	return cost + spreadTime*float64(c.k)
}

// fewCost is the time that it takes as a row, output channels being the columns.
func (c *Conv) fewCost() float64 {
	cost := c.productTime() * float64(roundUp(c.s.OC, c.f.Cols/2)) / float64(c.s.OC)
	if c.planes.frame {
		cost += patchTime * float64(c.k)
	}
	turned := turnTime
	switch area := c.s.OH * c.s.OW; {
	case area == 1:
		turned = 0
	case area*c.s.OC > turnNear:
		turned = turnFar
	}
	return cost + turned*float64(c.s.OC)
}

// productTime is what the products of a position take.
func (c *Conv) productTime() float64 { return float64(c.k*c.s.OC) / c.f.Rate() }

// fewRows is how many rows of a product pictures fill together, so that weights do not go by for each of them.
const fewRows = 64

// patchGrain and turnGrain are how many values gathered by patches, and turned, are worth a piece of work.
var patchGrain, turnGrain = workers.Grain(1), workers.Grain(2)

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
			workers.Do(p, g.M, max(1, patchGrain/c.k), patchArgs{c, x, patches, n}, func(a patchArgs, lo, hi int) {
				area := a.c.s.OH * a.c.s.OW
				for i := lo; i < hi; i++ {
					a.c.patch(a.rows[i*a.c.k:], a.x, a.n+i/area, i%area)
				}
			})
			GemmPacked(p, g, patches, c.few, rows)
			scratch.Put(sp)
		} else {
			GemmPacked(p, g, x[n*s.C*s.H*s.W:][:s.C*s.H*s.W], c.few, rows)
		}
		for i := range pictures {
			workers.Do(p, s.OC, max(1, turnGrain/area), fewArgs{c.results(y, n+i, 0), rows[i*area*s.OC:], area, s.OC, c.step()}, func(a fewArgs, lo, hi int) {
				Turn(a.y[lo*a.step:], a.step, a.rows[lo:], a.channels, hi-lo, a.area)
			})
		}
	}
	scratch.Put(sc)
}

// patchArgs is what a piece of gathering patches needs.
type patchArgs struct {
	c       *Conv
	x, rows []float32
	n       int // the first picture
}

// patch writes what the window at a position of picture n sees of all channels, zeros beyond the borders.
func (c *Conv) patch(dst, x []float32, n, at int) {
	s := &c.s
	y0, x0 := at/s.OW*s.StrideH-s.PadT, at%s.OW*s.StrideW-s.PadL
	lo, hi := span(s.KW, s.DilW, x0, s.W)
	dst = dst[:s.C*s.KH*s.KW]
	for ch := range s.C {
		plane := c.plane(x, n, ch)
		for ky := range s.KH {
			line := dst[(ch*s.KH+ky)*s.KW:][:s.KW]
			iy := y0 + ky*s.DilH
			if uint(iy) >= uint(s.H) || lo >= hi {
				clear(line)
				continue
			}
			clear(line[:lo])
			clear(line[hi:])
			from := iy*s.W + x0 + lo*s.DilW
			for kx := lo; kx < hi; kx++ {
				line[kx] = plane[from]
				from += s.DilW
			}
		}
	}
}

// fewArgs is what a piece of turning rows of positions into planes needs.
type fewArgs struct {
	y, rows              []float32
	area, channels, step int
}
