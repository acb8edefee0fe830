package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// Convolutions with few output positions would leave much of a panel empty. Instead positions, or
// their patches (im2row), are the rows of a GEMM and output channels its columns; the result is
// transposed.

// prefersIm2row reports whether this algorithm is estimated to be faster with constant weights.
func (c *Float32) prefersIm2row() bool {
	return c.usesPlanes() && c.s.Groups == 1 && c.sparse == nil && c.dense.time == nil && c.im2rowCost() < c.planeCost()
}

// packIm2row packs constant weights for this algorithm.
func (c *Float32) packIm2row(w []float32) {
	s := &c.s
	c.algorithm = im2rowGEMM
	if !c.planes.frame || s.KH*s.KW == 1 && c.volume == nil {
		c.im2row = gemm.PackB(c.k, s.OC, w, 0, true)
		return
	}
	// Patches hold the channels of a tap contiguously.
	taps := s.KH * s.KW
	depths, channels := c.depths()
	turned := make([]float32, s.OC*c.k)
	for o := range s.OC {
		for d := range depths {
			move.Transpose(turned[o*c.k+d*channels:], s.C, w[o*c.k+d*taps:], depths*taps, taps, channels)
		}
	}
	c.im2row = gemm.PackB(c.k, s.OC, turned, 0, true)
}

// depths returns the number of input planes per channel that a window covers, and of channels.
func (c *Float32) depths() (depths, channels int) {
	if c.volume == nil {
		return 1, c.s.C
	}
	return c.volume.Kernel, c.volume.channels
}

// Time of moving one value, in nanoseconds, measured on a Zen 4. The model predicts both
// algorithms within 10 % over 25 shapes of 1×1 and 20 of larger windows, with 5² to 160²
// positions. It selects the faster one unless they are within a few percent.
const (
	frameTime          = 0.35 // copying a value into a padded input copy
	gatherTime         = 0.2  // gathering a value into a panel
	readTime           = 0.05 // reading a value in place
	lineTime           = 8    // a row of taps of a patch
	patchTime          = 0.1  // a value of a patch
	patchSpillTime     = 0.25 // a value of a patch that leaves the L2 cache before it is multiplied
	transposeTime      = 0.37 // transposing an output value
	transposeSpillTime = 1.0  // the same if outputs leave the L2 cache before
	transposeCacheMax  = 1 << 18
)

// planeCost returns the time of an output position as a panel column, in nanoseconds. A panel may
// be partly full.
func (c *Float32) planeCost() float64 {
	s := &c.s
	area := s.OH * s.OW
	cost := c.productTime()
	if c.direct != nil {
		return cost + c.framesTime()
	}
	cost *= c.computedColumns(area)
	each := gatherTime
	if s.KH*s.KW == 1 {
		each = readTime
	}
	if c.planes.frame {
		cost += c.framesTime()
	}
	return cost + each*float64(c.k)
}

// computedColumns returns how many columns are computed for each of the given number of columns.
func (c *Float32) computedColumns(columns int) float64 {
	whole, rest := columns/c.f.Cols*c.f.Cols, columns%c.f.Cols
	if rest > 0 {
		whole += c.f.Taken(rest)
	}
	return float64(whole) / float64(columns)
}

// framesTime returns the time of writing padded input copies per output position.
func (c *Float32) framesTime() float64 {
	return frameTime * float64(c.s.C*c.planes.Size) / float64(c.s.OH*c.s.OW)
}

// im2rowCost returns the time of an output position as a GEMM row, with output channels as
// columns.
func (c *Float32) im2rowCost() float64 {
	s := &c.s
	area := s.OH * s.OW
	cost := c.productTime() * c.computedColumns(s.OC)
	if !c.planes.frame && 4*area >= gemm.SameLines {
		cost *= 1.3 // each K step of a tile reads rows in a different page: measured on a Xeon
	}
	if c.planes.frame {
		lines, each := s.KH, patchTime
		if s.DilW > 1 {
			lines *= s.KW
		}
		if area*c.k > transposeCacheMax {
			each = patchSpillTime
		}
		cost += lineTime*float64(lines) + each*float64(c.k) + transposeTime*float64(s.C*s.H*s.W)/float64(area)
	}
	turned := transposeTime
	switch {
	case area == 1:
		turned = 0
	case area*s.OC > transposeCacheMax:
		turned = transposeSpillTime
	}
	return cost + turned*float64(s.OC)
}

// productTime returns the multiplication time of a position.
func (c *Float32) productTime() float64 { return float64(c.k*c.s.OC) / c.f.Rate() }

// im2rowBatchRows is the number of GEMM rows that images are batched to, so that the weights are
// not read again for each image.
const im2rowBatchRows = 64

// transposeGrain is the minimum number of transposed values per work item.
var transposeGrain = workers.Grain(2)

// runIm2row convolves x into y.
func (c *Float32) runIm2row(p *workers.Pool, x, y []float32) {
	s := &c.s
	area := s.OH * s.OW
	g := gemm.Params{M: s.N, N: s.OC, K: c.k, BiasN: c.bias, Act: c.act}
	if area == 1 && !c.planes.frame {
		gemm.MultiplyPacked(p, g, x, c.im2row, y)
		return
	}
	pictures := 1
	if c.planes.frame {
		pictures = min(s.N, max(1, im2rowBatchRows/area))
	} else {
		g.LDA, g.TransA = area, true
	}
	sc, rows := scratch.Borrow(pictures * area * s.OC)
	for n := 0; n < s.N; n += pictures {
		pictures = min(pictures, s.N-n)
		g.M = pictures * area
		if c.planes.frame {
			sp, patches := scratch.Borrow(g.M * c.k)
			for i := range pictures {
				c.patches(p, patches[i*area*c.k:], x, n+i)
			}
			gemm.MultiplyPacked(p, g, patches, c.im2row, rows)
			scratch.Float32s.Put(sp)
		} else {
			gemm.MultiplyPacked(p, g, x[n*s.C*s.H*s.W:][:s.C*s.H*s.W], c.im2row, rows)
		}
		for i := range pictures {
			workers.Do(p, s.OC, max(1, transposeGrain/area), im2rowArgs{c.results(y, n+i, 0), rows[i*area*s.OC:], area, s.OC, c.step()}, func(a im2rowArgs, lo, hi int) {
				move.Transpose(a.y[lo*a.step:], a.step, a.rows[lo:], a.channels, hi-lo, a.area)
			})
		}
	}
	scratch.Float32s.Put(sc)
}

// im2rowArgs holds the arguments of a work item that transposes rows of positions to planes.
type im2rowArgs struct {
	y, rows              []float32
	area, channels, step int
}

// patches writes the patches of image n, one row per output position: tap after tap, the channels
// of a tap contiguous. It transposes the image to channels-last first.
func (c *Float32) patches(p *workers.Pool, rows, x []float32, n int) {
	s := &c.s
	in := s.H * s.W
	sc, last := scratch.Borrow(in * s.C)
	a := patchArgs{c, x, last, rows, n}
	workers.Do(p, in, max(1, transposeGrain/s.C), a, patchArgs.transpose)
	workers.Do(p, s.OH*s.OW, max(1, scratch.CopyGrain/c.k), a, func(a patchArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			a.c.patch(a.rows[i*a.c.k:][:a.c.k], a.last, i)
		}
	})
	scratch.Float32s.Put(sc)
}

// patchArgs holds the arguments of a work item of patches.
type patchArgs struct {
	c             *Float32
	x, last, rows []float32
	n             int // image index
}

// transpose transposes positions lo to hi to channels-last, one depth after the other.
func (a patchArgs) transpose(lo, hi int) {
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
		move.Transpose(to, s.C, from[lo:], step, hi-lo, channels)
	}
}

// patch writes the patch of an output position from a channels-last image; padding is zero.
func (c *Float32) patch(dst, last []float32, at int) {
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
