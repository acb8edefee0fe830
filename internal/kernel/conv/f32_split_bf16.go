package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// planSplitBF16 returns false if other algorithms are faster.
func (c *Float32) planSplitBF16() bool {
	if !c.usesPlanes() || !c.fitsSplitBF16() || c.splitBF16Time() > 0.9*c.floatsTime() {
		return false
	}
	c.splitBF16 = simd.PartKernels() // called last: the first call runs a test computation
	return c.splitBF16 != nil
}

// fitsSplitBF16 reports whether a convolution over planes can be split, with output channels as
// rows and positions as columns. It excludes few rows, shapes for which Winograd needs fewer
// multiplications, and padded inputs that exceed the L2 cache.
func (c *Float32) fitsSplitBF16() bool {
	s := &c.s
	return c.f.Cols == simd.PartCols && c.volume == nil && c.winograd4 == nil && s.Groups <= 1 && s.OC > 2*c.f.Rows && (!c.planes.frame || s.C*c.planes.Size <= gemm.SplitFrameMax)
}

// splitBF16Time estimates the time of an image in nanoseconds, measured on an Emerald Rapids Xeon
// with shared cores: multiplications, splitting weights and panels, sums, and gathering from
// padded copies.
func (c *Float32) splitBF16Time() float64 {
	s := &c.s
	m, n, k := float64(scratch.RoundUp(s.OC, simd.PartRows)), float64(scratch.RoundUp(s.OH*s.OW, simd.PartCols)), float64(c.k)
	ns := m*n*float64(scratch.RoundUp(c.k, simd.PartSteps))/110 + 0.25*(k*(m+n)+m*n)
	if c.planes.frame {
		ns += c.framesTime()*float64(s.OH*s.OW) + 0.1*k*n
	}
	return ns
}

// floatsTime is the estimate for float32 GEMM on the same processor, which [Float32.splitBF16Time]
// must beat.
func (c *Float32) floatsTime() float64 {
	s := &c.s
	area := float64(s.OH * s.OW)
	ns := area * float64(s.OC) * (c.computedColumns(s.OH*s.OW)*float64(c.k)/60 + 0.05)
	if c.planes.frame {
		ns += c.framesTime() * area
	}
	return ns
}

// imageSplitBF16 is [Float32.planeImage] with split kernels.
func (c *Float32) imageSplitBF16(p *workers.Pool, x, y []float32, n int) {
	f, area := c.f, c.s.OH*c.s.OW
	g := gemm.Params{M: c.og, N: area, K: c.k, LDA: c.k + c.rowGap, LDC: c.step(), BiasM: c.bias, Act: c.act}
	b := gemm.Panels{Data: x, Gatherer: c}
	var workspace *[]float32
	if !c.planes.frame {
		b = gemm.Panels{Data: x, Step: area, Next: f.Cols}
		if rest := area % f.Cols; rest > 0 {
			workspace, b.Tail = scratch.Borrow(f.Cols * c.k)
			gemm.Pack(b.Tail, x[area-rest:], rest, c.k, f.Cols, 1, area)
		}
	}
	gemm.SplitBF16(p, c.splitBF16, f, &g, c.weights, b, c.results(y, n, 0))
	if workspace != nil {
		scratch.Float32s.Put(workspace)
	}
}
