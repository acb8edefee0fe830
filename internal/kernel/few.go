package kernel

import "github.com/opmeter/opmeter/internal/workers"

// Convolutions over few positions, which would leave much of a panel empty: positions, or what their windows see,
// are rows of a product then, output channels its columns, and the result is turned.

// setFew packs constant weights where output channels fill panels better than positions do.
func (c *Conv) setFew(w []float32) {
	s := &c.s
	if c.planes == nil || c.f == nil || s.Groups > 1 || c.sparse != nil {
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
	if area == 1 && !c.planes.frame {
		GemmPacked(p, g, x, c.few, y)
		return
	}
	if g.M = area; !c.planes.frame {
		g.LDA, g.TransA = area, true
	}
	sc, rows := borrow(area * s.OC)
	for n := range s.N {
		img := x[n*s.C*s.H*s.W:][:s.C*s.H*s.W]
		if c.planes.frame {
			sp, patches := borrow(area * c.k)
			workers.Do(p, area, max(1, copyGrain/c.k), patchArgs{s, img, patches}, func(a patchArgs, lo, hi int) {
				for at := lo; at < hi; at++ {
					a.s.patch(a.rows[at*a.s.C*a.s.KH*a.s.KW:], a.x, at)
				}
			})
			GemmPacked(p, g, patches, c.few, rows)
			scratch.Put(sp)
		} else {
			GemmPacked(p, g, img, c.few, rows)
		}
		workers.Do(p, s.OC, max(1, copyGrain/area), fewArgs{y[n*s.OC*area:][:s.OC*area], rows, area, s.OC}, func(a fewArgs, lo, hi int) {
			Turn(a.y[lo*a.area:], a.area, a.rows[lo:], a.channels, hi-lo, a.area)
		})
	}
	scratch.Put(sc)
}

// patchArgs is what a piece of gathering patches needs.
type patchArgs struct {
	s       *ConvShape
	x, rows []float32
}

// patch writes what the window at a position sees of all channels, zeros beyond the borders.
func (s *ConvShape) patch(dst, x []float32, at int) {
	y0, x0 := at/s.OW*s.StrideH-s.PadT, at%s.OW*s.StrideW-s.PadL
	lo, hi := span(s.KW, s.DilW, x0, s.W)
	dst = dst[:s.C*s.KH*s.KW]
	for c := range s.C {
		for ky := range s.KH {
			line := dst[(c*s.KH+ky)*s.KW:][:s.KW]
			iy := y0 + ky*s.DilH
			if uint(iy) >= uint(s.H) || lo >= hi {
				clear(line)
				continue
			}
			clear(line[:lo])
			clear(line[hi:])
			from := (c*s.H+iy)*s.W + x0 + lo*s.DilW
			for kx := lo; kx < hi; kx++ {
				line[kx] = x[from]
				from += s.DilW
			}
		}
	}
}

// fewArgs is what a piece of turning rows of positions into planes needs.
type fewArgs struct {
	y, rows        []float32
	area, channels int
}
