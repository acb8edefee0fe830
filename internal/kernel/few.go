package kernel

import "github.com/opmeter/opmeter/internal/workers"

// Convolutions of 1×1 over few positions, which would leave much of a panel empty: positions are rows of a product
// then, output channels its columns, and the result is turned.

// setFew packs constant weights where output channels fill panels better than positions do.
func (c *Conv) setFew(w []float32) {
	s := &c.s
	if c.planes == nil || c.f == nil || c.planes.frame || s.Groups > 1 || c.sparse != nil {
		return
	}
	// A panel may be half full.
	area, half := s.OH*s.OW, c.f.Cols/2
	if 8*roundUp(area, half)*s.OC > 9*roundUp(s.OC, half)*area {
		c.few = PackB(c.k, s.OC, w, 0, true)
	}
}

// runFew convolves x into y.
func (c *Conv) runFew(p *workers.Pool, x, y []float32) {
	s := &c.s
	area := s.OH * s.OW
	g := GemmParams{M: s.N, N: s.OC, K: c.k, BiasN: c.bias, Act: c.act}
	if area == 1 {
		GemmPacked(p, g, x, c.few, y)
		return
	}
	g.M, g.LDA, g.TransA = area, area, true
	sc, rows := borrow(area * s.OC)
	for n := range s.N {
		GemmPacked(p, g, x[n*s.C*area:][:s.C*area], c.few, rows)
		workers.Do(p, s.OC, max(1, copyGrain/area), fewArgs{y[n*s.OC*area:][:s.OC*area], rows, area, s.OC}, func(a fewArgs, lo, hi int) {
			turn(a.y[lo*a.area:], a.area, a.rows[lo:], a.channels, hi-lo, a.area)
		})
	}
	scratch.Put(sc)
}

// fewArgs is what a piece of turning rows of positions into planes needs.
type fewArgs struct {
	y, rows        []float32
	area, channels int
}
