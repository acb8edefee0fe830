package conv

import (
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// intAlgorithm is one way to compute a convolution of 8-bit activations. Functions that pack
// weights are generic and therefore not part of it: see [setWeights].
type intAlgorithm struct {
	name  string                  // for tests and debuggers
	simd  bool                    // with SIMD kernels
	label func(c *intConv) string // see [Int8.Name]
	// plan sets the parameters for a shape and the instruction set; false if it does not apply.
	plan func(c *intConv) bool
	// run convolves x and stores the sums by to, which is c.to over [N,C,H,W].
	run func(c *intConv, p *workers.Pool, x []uint8, to epilogue)
}

// intAlgorithms lists the algorithms, the preferred one first.
var intAlgorithms = [...]*intAlgorithm{
	{
		name: "depthwise", simd: true,
		label: func(c *intConv) string { return "depthwise/" + c.windows.f.Ints.String() },
		plan:  (*intConv).planWindows, run: (*intConv).runWindows,
	},
	{
		name: "depthwise in plain Go", label: func(*intConv) string { return "depthwise" },
		plan: (*intConv).planDepthwise, run: (*intConv).runDepthwise,
	},
	{
		name: "output channels as columns", simd: true, label: (*intConv).linesName,
		plan: (*intConv).planLines, run: (*intConv).runLines,
	},
	{
		name: "gathered panels", simd: true,
		label: func(c *intConv) string { return "direct/" + c.planes.f.Set.String() },
		plan:  (*intConv).planPlanes, run: (*intConv).runPlanes,
	},
	{
		name: "im2col", label: func(*intConv) string { return "im2col" },
		plan: (*intConv).planProduct, run: (*intConv).product,
	},
}

// skippedIntZeros replaces gathered panels if skipping zeros is faster.
var skippedIntZeros = &intAlgorithm{name: "skipped zeros", simd: true, label: (*intConv).linesName, run: (*intConv).runLines}

func (c *intConv) planWindows() bool {
	if c.depthwise {
		c.windows = newDepthwiseInt8(&c.s, c.og, c.lastIn)
	}
	return c.windows != nil
}

func (c *intConv) runWindows(p *workers.Pool, x []uint8, to epilogue) {
	if c.lastIn {
		c.windows.lines(p, &c.s, x, c.signed, c.zeroPoint, to)
	} else {
		c.windows.run(p, &c.s, x, c.signed, c.zeroPoint, c.put)
	}
}

func (c *intConv) planDepthwise() bool {
	if c.depthwise {
		c.wd = hugepages.Make[int32](c.s.OC * c.k)
	}
	return c.depthwise
}

func (c *intConv) planLines() bool {
	if c.lastIn || c.s.PrefersNHWC() || c.lastOut && (c.s.SupportsNHWC() || c.s.bandSize(c.f, true) > 0) {
		c.lines = newInt8NHWC(&c.s, c.cg, c.og, !c.lastIn)
	}
	return c.lines != nil
}

func (c *intConv) runLines(p *workers.Pool, x []uint8, to epilogue) {
	c.lines.run(p, &c.s, c.og, x, c.signed, c.zeroPoint, to)
}

func (c *intConv) linesName() string {
	if c.lines.sparse != nil {
		return c.lines.sparse[0].Name()
	}
	return c.lines.panels[0].Name("direct")
}

func (c *intConv) planPlanes() bool {
	c.planes = newInt8NCHW(&c.s, c.cg)
	return c.planes != nil
}

func (c *intConv) runPlanes(p *workers.Pool, x []uint8, _ epilogue) {
	c.planes.run(p, &c.s, c.og, x, c.signed, c.zeroPoint, &c.to, c.put)
}

func (c *intConv) planProduct() bool {
	for range c.s.Groups {
		c.weights = append(c.weights, gemm.NewPackedInt8(c.og, c.k))
	}
	c.zeros = make([]uint8, c.cg)
	return true
}

// product runs the convolution as im2col and GEMM without SIMD.
func (c *intConv) product(p *workers.Pool, x []uint8, to epilogue) {
	q, run := c.cut(p), intPatches.planes
	if c.lastIn {
		run = intPatches.lines
	}
	workers.Do(p, q.pieces(), 1, intPatches{c, q, x, to}, run)
}

// runDepthwise runs a depthwise convolution without SIMD.
func (c *intConv) runDepthwise(p *workers.Pool, x []uint8, to epilogue) {
	switch s := &c.s; {
	case !c.lastIn:
		grain := max(1, 1<<14/max(1, s.OH*s.OW*c.k))
		workers.Do(p, s.N*s.OC, grain, intPatches{c: c, x: x, to: to}, intPatches.depthwise)
	case c.signed:
		depthwiseNHWC(p, c, scratch.AsInt8(x), to)
	default:
		depthwiseNHWC(p, c, x, to)
	}
}
