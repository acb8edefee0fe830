package conv

import (
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Shape describes a two-dimensional convolution. Output sizes and top/left padding are given;
// values outside the input count as zero.
type Shape struct {
	N, C, H, W       int // batch and input
	OC, OH, OW       int // output
	KH, KW           int
	StrideH, StrideW int
	DilH, DilW       int
	PadT, PadL       int
	Groups           int // 0 means 1

	place placement
}

// placement holds output strides, in elements, of a byte output over [N,H,W,C] that is not
// contiguous: between positions of a row, between rows and between images.
type placement struct{ step, line, image int }

// Outputs returns the number of output values.
func (s *Shape) Outputs() int { return s.N * s.OC * s.OH * s.OW }

// columnAsRow turns a one-column image into a one-row image, which has the same memory layout:
// kernels work row by row.
func (s *Shape) columnAsRow() {
	if s.W != 1 || s.OW != 1 || s.KW != 1 || s.PadL != 0 {
		return
	}
	s.H, s.W, s.OH, s.OW, s.KH, s.KW = 1, s.H, 1, s.OH, 1, s.KH
	s.PadT, s.PadL, s.StrideH, s.StrideW, s.DilH, s.DilW = 0, s.PadT, 1, s.StrideH, 1, s.DilH
	s.place.step = s.place.line
}

// Float32 is a prepared convolution. Run keeps no state; concurrent calls need different outputs.
type Float32 struct {
	s        Shape
	volume   *volume // of a 3-D convolution; nil for 2-D
	nhwc     bool
	weights  []float32 // packed, group after group; or as given
	unpacked bool      // weights are the given slice, not packed
	bias     []float32
	act      activation.Clamp
	// cg and og are input and output channels per group; k is the length of a patch.
	cg, og, k int
	// K steps of a pass over [N,C,H,W] panels: equal passes, so that none is short
	pass      int
	depthwise bool
	// dense is the algorithm for dense weights, algorithm the one in use.
	dense, algorithm *algorithm

	// Parameters of algorithms, nil unless planned.
	f             *simd.Floats  // GEMM kernels
	lines         *nhwcPlan     // with f and [N,H,W,C]
	planes        *NCHWPlan     // with f or windows and [N,C,H,W]
	windows       *simd.Windows // of a depthwise convolution
	repeats       *simd.Repeats // with windows, [N,H,W,C] and a channel multiplier
	strips        *stripPlan
	lanes         *tilePlan
	groups        *smallGroupPlan
	pixelColumns  *pixelColumnPlan
	direct        *directPlan
	groupedDirect *groupedDirectPlan
	winograd4     *winograd4Plan
	splitBF16     *simd.Parts

	im2row *gemm.PackedB // weights if output pixels are the rows of the GEMM
	copied bool          // panels of a 1×1 convolution are copied before multiplying
	// padding between rows of the weights, in values, over [N,C,H,W]
	rowGap int
	zeros  []float32 // input of a tap outside the image
	// sparse holds the weights of each group if skipping zeros is faster in all groups; weights
	// is nil then.
	sparse []*gemm.SparseFloat32
	taps   *tapRange // remaining taps, if some lie in the padding for every output
	// tapGemms are the taps of a dilated window that mostly lies in the padding; weights is nil
	// then.
	tapGemms []tapGemm
}

func newFloat32(s Shape, v *volume, nhwc bool, w, bias []float32, act activation.Clamp) *Float32 {
	s.Groups = max(s.Groups, 1)
	s.columnAsRow()
	seen := s.trimTaps()
	c := &Float32{s: s, volume: v, nhwc: nhwc, act: act, cg: s.C / s.Groups, og: s.OC / s.Groups, taps: seen}
	c.k = c.cg * s.KH * s.KW
	c.pass = simd.Evenly(max(c.k, 1), gemm.KBlock)
	c.depthwise = c.cg == 1 && s.Groups > 1 && v == nil
	switch {
	case s.Outputs() == 0:
	case c.depthwise:
		c.setWindows()
	case c.k > 0:
		c.setKernels()
	}
	c.choose()
	c.zeros = make([]float32, c.cg)
	w = trimmedWeights(seen, w, s.OC, c.cg, nhwc)
	c.setWeights(w, bias)
	if c.prefersIm2row() {
		c.packIm2row(w)
	}
	c.setTapGemms(w)
	c.padWeightRows()
	return c
}

// NewNHWC prepares a convolution over [N,H,W,C] with weights [OC,KH,KW,C/Groups].
func NewNHWC(s Shape, w, bias []float32, act activation.Clamp) *Float32 {
	return newFloat32(s, nil, true, w, bias, act)
}

// NewNCHW prepares a convolution over [N,C,H,W] with weights [OC,C/Groups,KH,KW].
func NewNCHW(s Shape, w, bias []float32, act activation.Clamp) *Float32 {
	return newFloat32(s, nil, false, w, bias, act)
}

// NewDepthwiseNHWC prepares a depthwise convolution over [N,H,W,C] with weights [1,KH,KW,OC], OC
// a multiple of C. s.Groups is ignored.
func NewDepthwiseNHWC(s Shape, w, bias []float32, act activation.Clamp) *Float32 {
	s.Groups = s.C
	s.columnAsRow()
	c := &Float32{s: s, nhwc: true, act: act, cg: 1, og: s.OC / s.C, k: s.KH * s.KW, depthwise: true}
	c.weights, c.unpacked, c.bias = w, true, bias
	if s.Outputs() > 0 {
		c.setWindows()
	}
	c.choose()
	c.setLanes(w)
	return c
}

// setKernels selects SIMD GEMM kernels, if available, and the layout of what they read.
func (c *Float32) setKernels() {
	if c.f = simd.FloatKernels(); c.f == nil {
		return
	}
	switch {
	case c.nhwc:
		c.lines = c.s.planNHWC(c.cg, c.og, c.f.Cols, gemm.KBlock)
		return
	case c.volume == nil:
		c.planes = c.s.PlanNCHW(c.cg)
	default:
		c.planes = c.s.planFrames(c.cg)
	}
	if c.planes == nil {
		c.f = nil
	}
}

// setWindows selects SIMD kernels for a depthwise convolution, if available.
func (c *Float32) setWindows() {
	if c.windows = simd.WindowKernels(); c.windows == nil {
		return
	}
	if c.nhwc {
		if c.og > 1 {
			c.repeats = simd.NewRepeats(c.og)
		}
		return
	}
	if c.planes = c.s.PlanNCHW(1); c.planes == nil {
		c.windows = nil
	}
}

// setLanes packs weights [KH,KW,C] of a depthwise convolution over [N,H,W,C] for strips or tiles,
// if it uses them.
func (c *Float32) setLanes(w []float32) {
	switch {
	case c.lanes != nil:
		c.lanes.set(w, c.bias, c.s.C)
	case c.strips != nil:
		c.strips.set(w, c.bias, c.s.C)
	}
}

// SetWeights replaces the weights, laid out as for the constructor, and the bias, nil for none.
// The slices must not change while they are in use.
func (c *Float32) SetWeights(w, bias []float32) {
	c.setWeights(trimmedWeights(c.taps, w, c.s.OC, c.cg, c.nhwc), bias)
}

// setWeights is SetWeights for the remaining taps.
func (c *Float32) setWeights(w, bias []float32) {
	c.bias, c.im2row, c.tapGemms, c.unpacked, c.rowGap = bias, nil, nil, false, 0
	c.algorithm = c.dense
	if c.setSparse(w); c.sparse != nil {
		c.weights, c.algorithm = nil, skippedZeros
		return
	}
	c.dense.pack(c, w)
}

// keepWeights keeps the given slice.
func (c *Float32) keepWeights(w []float32) { c.weights, c.unpacked = w, true }

// packDepthwise packs the weights of a depthwise convolution: as [KH,KW,OC] over [N,H,W,C].
func (c *Float32) packDepthwise(w []float32) {
	if !c.nhwc {
		c.keepWeights(w)
		return
	}
	if len(c.weights) != len(w) {
		c.weights = hugepages.Make[float32](len(w))
	}
	taps := c.s.KH * c.s.KW
	for o := range c.s.OC {
		for t := range taps {
			c.weights[t*c.s.OC+o] = w[o*taps+t]
		}
	}
	c.setLanes(c.weights)
}

// packPanels packs panels of output channels: columns of the GEMM over [N,H,W,C], else rows.
func (c *Float32) packPanels(w []float32) {
	width := gemm.RowsPanel
	switch {
	case c.f != nil:
		width = c.f.Cols
	case c.nhwc:
		width = gemm.ColsPanel
	}
	per := scratch.RoundUp(c.og, width) * c.k
	if len(c.weights) != per*c.s.Groups {
		c.weights = hugepages.Make[float32](per * c.s.Groups)
	}
	for g := range c.s.Groups {
		gemm.Pack(c.weights[g*per:], w[g*c.og*c.k:], c.og, c.k, width, c.k, 1)
	}
}

// setSparse lists the nonzero weights if skipping zeros is faster.
func (c *Float32) setSparse(w []float32) {
	c.sparse = nil
	if c.f == nil {
		return
	}
	turned := -1
	if c.lines != nil {
		turned = c.lines.images * c.lines.n * c.lines.count
	}
	for g := range c.s.Groups {
		s := gemm.NewSparseFloat32(c.og, c.k, w[g*c.og*c.k:], c.k, 1, turned)
		if s == nil || c.dense.time != nil && s.Cost()*c.denseTime() >= float64(c.og*c.k)*c.dense.time(c) {
			c.sparse = nil
			return
		}
		c.sparse = append(c.sparse, s)
	}
}

// Release drops the given weights if [Float32.Run] does not read them. It reports whether no
// reference is kept: [Float32.RunFloat16] reads them.
func (c *Float32) Release() bool {
	if c.algorithm == im2rowGEMM {
		c.weights, c.unpacked = nil, false
	}
	return !c.unpacked
}

// Name returns the name of the algorithm: "depthwise", "winograd" or "im2col" in plain Go;
// "direct" and the instruction set with SIMD GEMM kernels, "packed" if output pixels are rows,
// "winograd" with the instruction set, "sparse" if zeros are skipped.
func (c *Float32) Name() string {
	switch a := c.algorithm; {
	case a.label != nil:
		return a.label(c)
	case c.windows != nil:
		return a.kernel + "/" + c.windows.Floats.String()
	default:
		return gemm.ISAName(a.kernel, c.f)
	}
}

// UsesWinograd reports whether SIMD Winograd kernels compute the convolution.
func (c *Float32) UsesWinograd() bool { return c.winograd4 != nil && c.sparse == nil }

// EstimatedTime returns the approximate time of one thread for an image over [N,C,H,W], in
// nanoseconds, to choose between algorithms. It assumes dense weights.
func (c *Float32) EstimatedTime() float64 {
	switch {
	case c.dense.time != nil && c.sparse == nil:
		return c.dense.time(c)
	case c.planes == nil || c.f == nil:
		return c.productTime() * float64(c.s.OH*c.s.OW)
	}
	return c.denseTime()
}

// Run convolves x into y, both in the layout of the constructor.
func (c *Float32) Run(p *workers.Pool, x, y []float32) {
	if c.s.Outputs() > 0 {
		c.algorithm.run(c, p, x, y)
	}
}

// cut describes how work is split: each image and group into blocks of places and, if there are
// few blocks, of channels.
type cut struct {
	images, groups      int
	places, block       int // total, and per block
	blocks, parts, step int // step is the number of channels of a part
}

// cutPlaces splits places into blocks of at most most places, a multiple of width. It also splits
// channels, in multiples of unit, if there are fewer blocks than threads.
func cutPlaces(p *workers.Pool, s *Shape, places, most, width, channels, unit int) cut {
	q := cut{images: s.N, groups: s.Groups, places: places, block: max(width, min(scratch.RoundUp(places, width), most/width*width)), parts: 1}
	if t := p.Threads(); t > 1 {
		q.block = max(width, min(q.block, scratch.RoundUp((places+2*t-1)/(2*t), width)))
	}
	q.blocks = (places + q.block - 1) / q.block
	if jobs := s.N * s.Groups * q.blocks; jobs < p.Threads() {
		q.parts = max(1, min((p.Threads()+jobs-1)/max(jobs, 1), (channels+unit-1)/unit))
	}
	q.step = scratch.RoundUp((channels+q.parts-1)/q.parts, unit)
	return q
}

// pieces returns the number of work items.
func (q *cut) pieces() int { return q.images * q.groups * q.blocks * q.parts }

// piece returns image n, group g, block b and channel part of work item i.
func (q *cut) piece(i int) (n, g, b, part int) {
	part, i = i%q.parts, i/q.parts
	b, i = i%q.blocks, i/q.blocks
	return i / q.groups, i % q.groups, b, part
}

// span returns the first place p0 and the number of places np of block b.
func (q *cut) span(b int) (p0, np int) {
	p0 = b * q.block
	return p0, min(q.block, q.places-p0)
}

// channels returns the channel range of a part; all is the number of channels.
func (q *cut) channels(part, all int) (from, to int) { return part * q.step, min((part+1)*q.step, all) }

// product runs the convolution as im2col and GEMM without SIMD. Work is split into blocks of
// output positions and, if there are few of those, of output channels.
func (c *Float32) product(p *workers.Pool, x, y []float32) {
	s := &c.s
	width, wwidth := gemm.RowsPanel, gemm.ColsPanel // panel width of the patches, of the weights
	if !c.nhwc {
		width, wwidth = gemm.ColsPanel, gemm.RowsPanel
	}
	q := cutPlaces(p, s, s.OH*s.OW, scratch.Block/max(c.k, 1), width, c.og, wwidth)
	workers.Do(p, q.pieces(), 1, patchProduct{c, q, scratch.RoundUp(c.og, wwidth) * c.k, x, y}, patchProduct.pieces)
}

// patchProduct holds the arguments of a work item of product; per is the number of weights of a
// group.
type patchProduct struct {
	c    *Float32
	cut  cut
	per  int
	x, y []float32
}

func (q patchProduct) pieces(lo, hi int) {
	c, s := q.c, &q.c.s
	area, block := q.cut.places, q.cut.block
	sc, buf := scratch.Borrow(block * (c.k + 1))
	buf, line := buf[:block*c.k], buf[block*c.k:]
	for i := lo; i < hi; i++ {
		n, g, b, part := q.cut.piece(i)
		p0, np := q.cut.span(b)
		o0, o1 := q.cut.channels(part, c.og)
		if o0 >= o1 {
			continue
		}
		w := c.weights[g*q.per : (g+1)*q.per]
		if c.nhwc {
			y := q.y[n*area*s.OC:][:area*s.OC]
			c.patchesNHWC(buf, q.x[n*s.H*s.W*s.C:][:s.H*s.W*s.C], g, p0, np)
			c.tilesNHWC(buf, w, y, g, p0, np, o0, o1)
			c.clampNHWC(y[p0*s.OC:][:np*s.OC], g*c.og+o0, o1-o0)
			continue
		}
		c.patchesNCHW(buf, line, q.x[(n*s.C+g*c.cg)*s.H*s.W:][:c.cg*s.H*s.W], p0, np)
		out := q.y[(n*s.OC+g*c.og)*area:][:c.og*area]
		c.tilesNCHW(buf, w, out, g, p0, np, o0, o1)
		for o := o0; c.act.On && o < o1; o++ {
			element.Bound(out[o*area+p0:][:np], c.act.Min, c.act.Max)
		}
	}
	scratch.Float32s.Put(sc)
}
