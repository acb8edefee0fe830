package kernel

import (
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// ConvShape describes a two-dimensional convolution. Output sizes and top/left
// padding are given; what lies outside the input counts as zero.
type ConvShape struct {
	N, C, H, W       int // batch and input
	OC, OH, OW       int // output
	KH, KW           int
	StrideH, StrideW int
	DilH, DilW       int
	PadT, PadL       int
	Groups           int // 0 means 1

	place placement
}

// placement says where results of bytes over [N,H,W,C] lie apart, in numbers, that are not side by side: those of neighbours of a line, of lines
// and of images.
type placement struct{ step, line, image int }

// outputs is the number of results. There is no work to cut into parts without any.
func (s *ConvShape) outputs() int { return s.N * s.OC * s.OH * s.OW }

// lay makes a line of a picture of one column, which lies in memory in the same way: work is done line by line.
func (s *ConvShape) lay() {
	if s.W != 1 || s.OW != 1 || s.KW != 1 || s.PadL != 0 {
		return
	}
	s.H, s.W, s.OH, s.OW, s.KH, s.KW = 1, s.H, 1, s.OH, 1, s.KH
	s.PadT, s.PadL, s.StrideH, s.StrideW, s.DilH, s.DilW = 0, s.PadT, 1, s.StrideH, 1, s.DilH
	s.place.step = s.place.line
}

// Conv is a prepared convolution. Run may be called from one goroutine at a time
// for each output; it keeps no state.
type Conv struct {
	s       ConvShape
	volume  *volume // of a convolution over three axes; nil for one over two
	nhwc    bool
	weights []float32 // packed, group after group; or as given
	given   bool      // weights are those that were given, not packed
	bias    []float32
	act     activation.Clamp
	// cg and og are input and output channels per group; k the length of a patch.
	cg, og, k int
	pass      int // steps of a pass over panels of [N,C,H,W]: as many in each, so that none is short
	depthwise bool
	minimal   bool          // takes Winograd's minimal filtering
	f         *simd.Floats  // of products in vectors; nil for the plain micro-kernel
	lines     *linePlan     // with f and [N,H,W,C]
	planes    *planePlan    // with f or windows and [N,C,H,W]
	direct    *directPlan   // instead of planes, where weights have no zeros to leave out
	flat      *flatPlan     // the same of groups
	groups    *groupPlan    // instead of lines, of small groups, where weights have no zeros to leave out
	positions *positionPlan // instead of lines, of few output channels, where weights have no zeros to leave out
	tiled     *minimalPlan  // minimal filtering in vectors, instead of both, where weights have no zeros to leave out
	parts     *simd.Parts   // instead of products in float32 over planes, where weights have no zeros to leave out
	windows   *simd.Windows // of a depthwise convolution in vectors
	repeats   *simd.Repeats // of one over [N,H,W,C] with several results a channel
	strips    *stripPlan    // of one that can go down the lines
	lanes     *lanePlan     // of one over [N,H,W,C] that computes tiles
	few       *PackedB      // the weights where positions are rows of a product
	copied    bool          // panels of windows of one position are copied before they are multiplied
	between   int           // values between rows of the weights, over [N,C,H,W]
	zeros     []float32     // what a tap outside the picture sees
	// sparse are the weights of each group where leaving out their zeros pays in all
	// of them; weights is nil then if it would be packed.
	sparse []*sparse
	seen   *tapCut // the taps that are left, where some see nothing
	// gaps are taps of windows that see borders with most of them; weights is nil then.
	gaps []gapTap
}

func newConv(s ConvShape, v *volume, nhwc bool, w, bias []float32, act activation.Clamp) *Conv {
	s.Groups = max(s.Groups, 1)
	s.lay()
	seen := s.cutTaps()
	c := &Conv{s: s, volume: v, nhwc: nhwc, act: act, cg: s.C / s.Groups, og: s.OC / s.Groups, seen: seen}
	c.k = c.cg * s.KH * s.KW
	c.pass = simd.Evenly(max(c.k, 1), kBlock)
	c.depthwise = c.cg == 1 && s.Groups > 1 && v == nil
	if !c.depthwise && s.outputs() > 0 && c.k > 0 {
		c.f = simd.FloatKernels()
	}
	if c.depthwise && s.outputs() > 0 {
		c.setWindows()
	}
	if c.f != nil && nhwc {
		c.lines = s.planLines(c.cg, c.og, c.f.Cols, kBlock)
		if v == nil {
			c.groups = s.planGroups(c.cg, c.og)
			c.positions = c.planPositions()
		}
	} else if c.f != nil {
		if v == nil {
			c.planes = s.planPlanes(c.cg)
		} else {
			c.planes = s.planFrames(c.cg)
		}
		if c.planes == nil {
			c.f = nil
		} else {
			if c.flat = c.planFlat(); c.flat == nil {
				c.direct = c.planDirect()
			}
			c.tiled = c.planMinimal()
			c.copied = c.copies()
			c.parts = c.planParts()
		}
	}
	c.minimal = c.f == nil && !nhwc && !c.depthwise && s.winograd(c.cg, c.og)
	c.zeros = make([]float32, c.cg)
	w = tapsOf(seen, w, s.OC, c.cg, nhwc)
	c.setWeights(w, bias)
	c.setFew(w)
	c.setGaps(w)
	c.setApart()
	return c
}

// NewConvNHWC prepares a convolution over [N,H,W,C] with weights [OC,KH,KW,C/Groups].
func NewConvNHWC(s ConvShape, w, bias []float32, act activation.Clamp) *Conv {
	return newConv(s, nil, true, w, bias, act)
}

// NewConvNCHW prepares a convolution over [N,C,H,W] with weights [OC,C/Groups,KH,KW].
func NewConvNCHW(s ConvShape, w, bias []float32, act activation.Clamp) *Conv {
	return newConv(s, nil, false, w, bias, act)
}

// NewDepthwiseNHWC prepares a depthwise convolution over [N,H,W,C] with weights
// [1,KH,KW,OC], OC a multiple of C. s.Groups is not looked at.
func NewDepthwiseNHWC(s ConvShape, w, bias []float32, act activation.Clamp) *Conv {
	s.Groups = s.C
	s.lay()
	c := &Conv{s: s, nhwc: true, act: act, cg: 1, og: s.OC / s.C, k: s.KH * s.KW, depthwise: true}
	c.weights, c.given, c.bias = w, true, bias
	if s.outputs() > 0 {
		c.setWindows()
	}
	c.setLanes(w, bias)
	return c
}

// setLanes packs weights [KH,KW,C] of a depthwise convolution over [N,H,W,C] once more, where that is wanted.
func (c *Conv) setLanes(w, bias []float32) {
	switch {
	case c.lanes != nil:
		c.lanes.set(w, bias, c.s.C)
	case c.strips != nil:
		c.strips.set(w, bias, c.s.C)
	}
}

// setWindows makes a depthwise convolution one in vectors, if there are any.
func (c *Conv) setWindows() {
	if c.windows = simd.WindowKernels(); c.windows == nil {
		return
	}
	c.strips = c.s.planStrips(c.og, c.nhwc)
	if c.nhwc {
		if c.strips == nil || c.strips.columns.all == 0 && c.strips.beside == 0 {
			c.lanes = c.s.planLanes(c.og)
		}
		if c.og > 1 {
			c.repeats = simd.NewRepeats(c.og)
		}
		return
	}
	if c.planes = c.s.planPlanes(1); c.planes == nil {
		c.windows = nil
	}
}

// SetWeights exchanges the weights, laid out as for the constructor, and the
// bias, nil for none. The slices must not change while they are in use.
func (c *Conv) SetWeights(w, bias []float32) {
	c.setWeights(tapsOf(c.seen, w, c.s.OC, c.cg, c.nhwc), bias)
}

// setWeights is SetWeights with the taps that are left.
func (c *Conv) setWeights(w, bias []float32) {
	s := c.s
	c.bias, c.few, c.gaps, c.given, c.between = bias, nil, nil, false, 0
	if c.depthwise {
		if !c.nhwc {
			c.weights, c.given = w, true
			return
		}
		if len(c.weights) != len(w) {
			c.weights = hugepages.Make[float32](len(w))
		}
		taps := s.KH * s.KW
		for o := range s.OC {
			for t := range taps {
				c.weights[t*s.OC+o] = w[o*taps+t]
			}
		}
		c.setLanes(c.weights, bias)
		return
	}
	if c.minimal {
		c.setWinograd(w)
		return
	}
	if c.setSparse(w); c.sparse != nil {
		c.weights = nil
		return
	}
	width := colsPanel
	switch {
	case c.tiled != nil:
		c.setMinimal(w)
		return
	case c.planes != nil, c.positions != nil:
		c.weights, c.given = w, true
		return
	case c.groups != nil:
		c.groups.set(w, s.OC, c.k)
		return
	case c.lines != nil:
		width = c.f.Cols
	case !c.nhwc:
		width = rowsPanel
	}
	per := roundUp(c.og, width) * c.k
	if len(c.weights) != per*s.Groups {
		c.weights = hugepages.Make[float32](per * s.Groups)
	}
	for g := range s.Groups {
		pack(c.weights[g*per:], w[g*c.og*c.k:], c.og, c.k, width, c.k, 1)
	}
}

// setSparse lists the weights that are not zero, if leaving out the others pays.
func (c *Conv) setSparse(w []float32) {
	c.sparse = nil
	if c.planes == nil && c.lines == nil {
		return
	}
	turned := -1
	if c.lines != nil {
		turned = c.lines.images * c.lines.n * c.lines.count
	}
	for g := range c.s.Groups {
		s := newSparse(c.og, c.k, w[g*c.og*c.k:], c.k, 1, turned)
		if s == nil || c.quick() && s.cost()*c.denseTime() >= float64(c.og*c.k)*c.quickTime() {
			c.sparse = nil
			return
		}
		c.sparse = append(c.sparse, s)
	}
}

// Release forgets the weights that were given where [Conv.Run] does not read them, and tells whether nothing of them is kept:
// [Conv.RunHalves] reads them.
func (c *Conv) Release() bool {
	if c.few != nil {
		c.weights, c.given = nil, false
	}
	return !c.given
}

// Name tells the way of computing: "depthwise", "winograd" or "im2col"; "direct" and
// the set of the kernels for products in vectors, "packed" where positions are few, "winograd" and the set, "sparse" where zeros are left
// out.
func (c *Conv) Name() string {
	switch {
	case c.gaps != nil:
		return c.gaps[0].weights.Name(GemmParams{M: c.gaps[0].area(), N: c.s.OC, K: c.s.C})
	case c.sparse != nil:
		return c.sparse[0].name()
	case c.tiled != nil:
		return setName("winograd", c.f)
	case c.parts != nil:
		return partsName()
	case c.few != nil:
		return setName("packed", c.f)
	case c.f != nil:
		return setName("direct", c.f)
	case c.windows != nil:
		return "depthwise/" + c.windows.Floats.String()
	case c.depthwise:
		return "depthwise"
	case c.minimal:
		return "winograd"
	}
	return "im2col"
}

// Minimal tells whether minimal filtering in vectors computes the convolution.
func (c *Conv) Minimal() bool { return c.tiled != nil && c.sparse == nil }

// Time is about what a picture of a convolution over [N,C,H,W] takes one thread, in nanoseconds, to choose between several; weights are
// taken for dense.
func (c *Conv) Time() float64 {
	switch {
	case c.quick() && c.sparse == nil:
		return c.quickTime()
	case c.planes == nil || c.f == nil:
		return c.productTime() * float64(c.s.OH*c.s.OW)
	}
	return c.denseTime()
}

// Run convolves x into y, both in the layout of the constructor.
func (c *Conv) Run(p *workers.Pool, x, y []float32) {
	switch {
	case c.s.outputs() == 0:
	case c.gaps != nil:
		c.runGaps(p, x, y)
	case c.lanes != nil:
		c.laneTiles(p, x, y)
	case c.strips != nil && c.nhwc:
		c.stripLines(p, x, y)
	case c.strips != nil:
		c.stripPlanes(p, x, y)
	case c.windows != nil && c.nhwc:
		c.windowLines(p, x, y)
	case c.windows != nil:
		c.windowPlanes(p, x, y)
	case c.depthwise && c.nhwc:
		c.depthwiseNHWC(p, x, y)
	case c.depthwise:
		c.depthwiseNCHW(p, x, y)
	case c.minimal:
		c.runWinograd(p, x, y)
	case c.groups != nil && c.sparse == nil:
		c.runGroups(p, x, y)
	case c.positions != nil && c.sparse == nil:
		c.runPositions(p, x, y)
	case c.lines != nil:
		c.runLines(p, x, y)
	case c.tiled != nil && c.sparse == nil:
		c.runMinimal(p, x, y)
	case c.few != nil:
		c.runFew(p, x, y)
	case c.planes != nil:
		c.runPlanes(p, x, y)
	default:
		c.product(p, x, y)
	}
}

// cut is how work is cut: for each image and group into blocks of places and, where those are few, of channels.
type cut struct {
	images, groups      int
	places, block       int // in all, and of a block
	blocks, parts, step int // step are the channels of a part
}

// cutPlaces cuts places into blocks of at most most places, a multiple of width, and channels where there are fewer blocks than threads; a
// part of them is a multiple of unit.
func cutPlaces(p *workers.Pool, s *ConvShape, places, most, width, channels, unit int) cut {
	q := cut{images: s.N, groups: s.Groups, places: places, block: max(width, min(roundUp(places, width), most/width*width)), parts: 1}
	if t := p.Threads(); t > 1 {
		q.block = max(width, min(q.block, roundUp((places+2*t-1)/(2*t), width)))
	}
	q.blocks = (places + q.block - 1) / q.block
	if jobs := s.N * s.Groups * q.blocks; jobs < p.Threads() {
		q.parts = max(1, min((p.Threads()+jobs-1)/max(jobs, 1), (channels+unit-1)/unit))
	}
	q.step = roundUp((channels+q.parts-1)/q.parts, unit)
	return q
}

// pieces is how many there are.
func (q *cut) pieces() int { return q.images * q.groups * q.blocks * q.parts }

// piece tells which image n, group g, block b and part of the channels piece i is.
func (q *cut) piece(i int) (n, g, b, part int) {
	part, i = i%q.parts, i/q.parts
	b, i = i%q.blocks, i/q.blocks
	return i / q.groups, i % q.groups, b, part
}

// span are the places from p0 on, np of them, of block b.
func (q *cut) span(b int) (p0, np int) {
	p0 = b * q.block
	return p0, min(q.block, q.places-p0)
}

// channels are those of a part, of all channels.
func (q *cut) channels(part, all int) (from, to int) { return part * q.step, min((part+1)*q.step, all) }

// product runs the convolution as a matrix product over patches. Work is cut into
// blocks of output positions and, where those are few, of output channels.
func (c *Conv) product(p *workers.Pool, x, y []float32) {
	s := &c.s
	width, wwidth := rowsPanel, colsPanel // of the patches, of the weights
	if !c.nhwc {
		width, wwidth = colsPanel, rowsPanel
	}
	q := cutPlaces(p, s, s.OH*s.OW, packBlock/max(c.k, 1), width, c.og, wwidth)
	workers.Do(p, q.pieces(), 1, patchProduct{c, q, roundUp(c.og, wwidth) * c.k, x, y}, patchProduct.pieces)
}

// patchProduct is what a piece of a product over patches needs; per are the weights of a group.
type patchProduct struct {
	c    *Conv
	cut  cut
	per  int
	x, y []float32
}

func (q patchProduct) pieces(lo, hi int) {
	c, s := q.c, &q.c.s
	area, block := q.cut.places, q.cut.block
	sc, buf := borrow(block * (c.k + 1))
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
	scratch.Put(sc)
}
