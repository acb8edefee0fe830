package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
)

// runner convolves x into y.
type runner func(c *Float32, p *workers.Pool, x, y []float32)

// algorithm is one way to compute a [Float32].
type algorithm struct {
	name   string                  // for tests and debuggers
	kernel string                  // see [Float32.Name]
	label  func(c *Float32) string // replaces kernel and the instruction set, if not nil
	// plan sets the parameters for a shape and the instruction set. It reports whether the
	// algorithm applies and is estimated to be faster than the later ones of [algorithms], whose
	// parameters are already set.
	plan func(c *Float32) bool
	pack func(c *Float32, w []float32) // sets the weights
	run  runner
	// run16 is run for float16 values; if nil, they are converted to float32 and back.
	run16 func(c *Float32, p *workers.Pool, x, y []uint16)
	// time estimates the time of an image in nanoseconds, if less than [Float32.denseTime].
	time func(c *Float32) float64
}

// algorithms lists the algorithms for dense weights, the preferred one first.
var algorithms = [...]*algorithm{
	{
		name: "depthwise tiles", kernel: "depthwise",
		plan: (*Float32).planTiles, pack: (*Float32).packDepthwise, run: (*Float32).runTiles,
	},
	{
		name: "depthwise strips", kernel: "depthwise",
		plan: (*Float32).planStrips, pack: (*Float32).packDepthwise,
		run: byLayout((*Float32).stripLines, (*Float32).stripPlanes), run16: (*Float32).float16Strips,
	},
	{
		name: "depthwise window walk", kernel: "depthwise",
		plan: func(c *Float32) bool { return c.windows != nil }, pack: (*Float32).packDepthwise,
		run: byLayout((*Float32).windowLines, (*Float32).windowPlanes), run16: (*Float32).float16Windows,
	},
	{
		name: "depthwise in plain Go", kernel: "depthwise",
		plan: func(c *Float32) bool { return c.depthwise }, pack: (*Float32).packDepthwise,
		run: byLayout((*Float32).depthwiseNHWC, (*Float32).depthwiseNCHW),
	},
	{
		name: "small groups", kernel: "direct",
		plan: (*Float32).planSmallGroups, pack: (*Float32).packSmallGroups, run: (*Float32).runSmallGroups,
	},
	{
		name: "output pixels as columns", kernel: "direct",
		plan: (*Float32).planPixelColumns, pack: (*Float32).keepWeights, run: (*Float32).runPixelColumns,
	},
	{
		name: "output channels as columns", kernel: "direct",
		plan: func(c *Float32) bool { return c.lines != nil }, pack: (*Float32).packPanels, run: eachPadded((*Float32).lineImages),
	},
	{
		name: "split bfloat16",
		plan: (*Float32).planSplitBF16, pack: (*Float32).keepWeights, run: eachImage((*Float32).imageSplitBF16),
		label: func(*Float32) string { return gemm.SplitBF16Name() }, time: (*Float32).splitBF16Time,
	},
	{
		name: "Winograd F(4×4, 3×3)", kernel: "winograd",
		plan: (*Float32).planWinograd4, pack: (*Float32).packWinograd4, run: (*Float32).runWinograd4,
		time: func(c *Float32) float64 { return c.winograd4.time(c) },
	},
	{
		name: "direct", kernel: "direct",
		plan: (*Float32).planDirect, pack: (*Float32).keepWeights, run: (*Float32).runDirect,
		run16: (*Float32).float16Panels,
	},
	{
		name: "grouped direct", kernel: "direct",
		plan: (*Float32).planGroupedDirect, pack: (*Float32).keepWeights, run: (*Float32).runGroupedDirect,
		run16: (*Float32).float16Panels,
	},
	{
		name: "gathered panels", kernel: "direct",
		plan: (*Float32).planPanels, pack: (*Float32).keepWeights, run: eachImage((*Float32).planeImage),
		run16: (*Float32).float16Panels,
	},
	{
		name: "Winograd F(2×2, 3×3)", kernel: "winograd",
		plan: (*Float32).planWinograd2, pack: (*Float32).packWinograd2, run: (*Float32).runWinograd2,
	},
	{
		name: "im2col", kernel: "im2col",
		plan: func(*Float32) bool { return true }, pack: (*Float32).packPanels, run: (*Float32).product,
	},
}

// Algorithms that replace those for dense weights, depending on the weights.
var (
	skippedZeros = &algorithm{
		name: "skipped zeros", label: func(c *Float32) string { return c.sparse[0].Name() },
		run: byLayout(eachPadded((*Float32).sparseImages), eachImage((*Float32).planeImage)), run16: (*Float32).float16Panels,
	}
	im2rowGEMM = &algorithm{name: "im2row", kernel: "packed", run: (*Float32).runIm2row}
	tapGEMMs   = &algorithm{name: "one GEMM per tap", label: (*Float32).tapGEMMName, run: (*Float32).runTapGemms}
)

// byLayout returns a runner for both layouts.
func byLayout(nhwc, nchw runner) runner {
	return func(c *Float32, p *workers.Pool, x, y []float32) {
		if c.nhwc {
			nhwc(c, p, x, y)
		} else {
			nchw(c, p, x, y)
		}
	}
}

// choose plans the algorithms for dense weights, the last one first, and selects the preferred
// one that applies.
func (c *Float32) choose() {
	for i := len(algorithms) - 1; i >= 0; i-- {
		if algorithms[i].plan(c) {
			c.dense = algorithms[i]
		}
	}
	c.algorithm = c.dense
}
