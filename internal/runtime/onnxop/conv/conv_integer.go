package conv

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/quant"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// intConv convolves integers into int32 accumulators.
type intConv struct {
	*convolution
	// Up to three dimensions use the kernel; others unfold x into col.
	planar *conv.Sums
	slabs  *slabs // of three
	x, col []int32
	block  int // output positions that col holds
	// w is the buffer for weights minus their zero points, where the kernel cannot read the
	// weights directly.
	w []int32
	// wi, xz and wz are the inputs with the weights and the zero points of x and w.
	wi, xz, wz int
	ready      bool // the weights are constant and lifted
}

// newIntConv prepares int32 sums, or a convolution that requantises directly. xi, wi, xz and wz
// are input positions.
func newIntConv(c *op.Call, xi, wi, xz, wz int, bias *tensor.Tensor, sums bool) (*intConv, error) {
	if !quant.IsByte(c.In[xi]) || !quant.IsByte(c.In[wi]) {
		return nil, op.Unsupported("%s of %v and %v", c.Node.Op, c.In[xi].Type, c.In[wi].Type)
	}
	v, err := newConvolution(c, c.In[xi], c.In[wi], bias)
	if err != nil {
		return nil, err
	}
	if z := c.Input(xz); z != nil && z.Len() != 1 {
		return nil, fmt.Errorf("input zero point %s", tensor.FormatShape(z.Shape))
	}
	if z := c.Input(wz); z != nil && z.Len() != 1 && z.Len() != v.m {
		return nil, fmt.Errorf("weight zero point %s for %d channels", tensor.FormatShape(z.Shape), v.m)
	}
	k := v.c / v.groups * tensor.Elements(v.Kernel)
	q := &intConv{convolution: v, wi: wi, xz: xz, wz: wz}
	q.ready = c.Const(wi) && (!c.Has(wz) || c.Const(wz))
	if some := k > 0 && v.n*v.m*tensor.Elements(v.Out) > 0; some && len(v.In) <= 2 {
		q.planar = conv.NewSums(v.planar2D(), c.NHWCIn, c.NHWCOut)
		c.Kernel = q.planar.Name()
	} else if some && len(v.In) == 3 {
		q.slabs = newSlabs(v, q.ready)
		q.planar = q.slabs.parts[0].planar
		q.slabs.workspace(c, sums || !q.planar.UsesSIMD())
		c.Kernel = q.planar.Name()
	} else {
		c.Kernel = "im2col"
		q.x = op.ScratchOf[int32](c, v.n*v.c*tensor.Elements(v.In))
		q.block = max(1, min(tensor.Elements(v.Out), colBytes/(4*max(k, 1))))
		q.col = op.ScratchOf[int32](c, k*q.block)
	}
	switch _, one := q.weightZero(c, q.ready); {
	case q.planar != nil && one:
	case !q.ready:
		q.w = op.ScratchOf[int32](c, v.m*k)
	default:
		if err := c.Afford(4 * v.m * k); err != nil {
			return nil, err
		}
		q.w = hugepages.Make[int32](v.m * k)
	}
	if !q.ready {
		return q, nil
	}
	q.liftWeights(c)
	if q.planar != nil { // it has packed them
		q.w = nil
		c.Copied(wi)
		c.Kernel = q.planar.Name()
	}
	return q, nil
}

// weightZero returns the zero point of the weights, if it is the same for all channels. If it is
// not known yet, it must be a scalar.
func (q *intConv) weightZero(c *op.Call, known bool) (zero int32, one bool) {
	z := c.Input(q.wz)
	if z == nil || !known {
		return 0, z == nil || z.Len() == 1
	}
	all := quant.Zeros(z)
	return quant.First(all), len(all) == 0 || slices.Min(all) == slices.Max(all)
}

// liftWeights subtracts the zero points from the weights.
func (q *intConv) liftWeights(c *op.Call) {
	w := c.In[q.wi]
	zero, one := q.weightZero(c, true)
	switch {
	case q.planar != nil && q.w == nil && one && w.Type == tensor.Int8:
		setSumWeights(q, tensor.Of[int8](w), zero)
		return
	case q.planar != nil && q.w == nil && one:
		setSumWeights(q, tensor.Of[uint8](w), zero)
		return
	}
	quant.Lift(q.w, w, 0)
	if z := quant.Zeros(c.Input(q.wz)); len(z) > 0 {
		per := len(q.w) / max(q.m, 1)
		for i := range q.w {
			q.w[i] -= z[min(i/per, len(z)-1)]
		}
	}
	if q.planar != nil {
		setSumWeights(q, q.w, 0)
	}
}

// setSumWeights passes the weights to the kernel.
func setSumWeights[W conv.SumWeight](q *intConv, w []W, zero int32) {
	if q.slabs != nil {
		setSlabs(q.slabs, w, zero)
		return
	}
	conv.SetSumWeights(q.planar, w, zero)
}

// lift reads the inputs that are not constant, and returns the zero point of x.
func (q *intConv) lift(c *op.Call, xi int) (zero int32) {
	if !q.ready {
		q.liftWeights(c)
	}
	zero = quant.Zero(c.Input(q.xz))
	switch signed := c.In[xi].Type == tensor.Int8; {
	case q.slabs != nil:
		q.slabs.setZero(signed, zero)
	case q.planar != nil:
		q.planar.SetZero(signed, zero)
	}
	return zero
}

// sums computes the convolution into y.
func (q *intConv) sums(c *op.Call, xi int, y []int32) {
	zero := q.lift(c, xi)
	if q.planar != nil {
		q.runSums(c, c.In[xi], zero, y)
		return
	}
	quant.Lift(q.x, c.In[xi], zero)
	cg, mg := q.c/q.groups, q.m/q.groups
	inArea, area := tensor.Elements(q.In), tensor.Elements(q.Out)
	k := cg * tensor.Elements(q.Kernel)
	for n := range q.n {
		for g := range q.groups {
			xs, ys := q.x[(n*q.c+g*cg)*inArea:][:cg*inArea], y[(n*q.m+g*mg)*area:]
			for p0 := 0; p0 < area; p0 += q.block {
				np := min(q.block, area-p0)
				unfold(c.Pool, q.Window, q.col, xs, cg, p0, np)
				matmul.PlainGemm(c.Pool, matmul.Matrices{M: mg, N: np, K: k, Ldc: area}, q.w[g*mg*k:], q.col, ys[p0:])
			}
		}
	}
}

func inferConvInteger(c *op.Call) error {
	if err := InferConv(&op.Call{Node: c.Node, In: c.In[:min(len(c.In), 2)], Out: c.Out}); err != nil {
		return err
	}
	c.Out[0].Type = tensor.Int32
	return nil
}

func prepareConvInteger(c *op.Call) (op.Run, error) {
	q, err := newIntConv(c, 0, 1, 2, 3, nil, true)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		q.sums(c, 0, tensor.Of[int32](c.Out[0]))
		return nil
	}, nil
}

// Inputs of QLinearConv: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias.

// InferQLinearConv checks the shapes of a quantised convolution and sets output 0.
func InferQLinearConv(c *op.Call) error {
	v, err := newConvolution(c, c.In[0], c.In[3], c.Input(8))
	if err != nil {
		return err
	}
	return c.Result(c.In[7].Type, v.shape())
}

// lastQLinearConv returns the support of a quantised convolution for channels-last order.
func lastQLinearConv(c *op.Call) op.NHWCSupport {
	v, err := newConvolution(c, c.In[0], c.In[3], c.Input(8))
	if err != nil || len(v.In) != 2 || !c.Const(3) || c.Has(5) && !c.Const(5) || !quant.IsByte(c.In[0]) {
		return op.NHWCNever
	}
	switch s := v.planar2D(); {
	case s.SupportsDepthwiseNHWC():
		return op.NHWCAll
	case !s.SupportsNHWC():
		if s.SupportsNHWCOutput() {
			return op.NHWCOutOnly
		}
		return op.NHWCNever
	case s.PrefersNHWC():
		return op.NHWCAny
	}
	return op.NHWCBoth
}

// requantised requantises the sums of channels with the scales of a QLinearConv call.
type requantised struct {
	*quantise.Rescale
	none  []int32 // biases if absent
	fixed bool    // scales and zero points are constant, and read
}

// newRequantised checks the scales for m channels.
func newRequantised(c *op.Call, m int) (*requantised, error) {
	if n := c.In[4].Len(); n != 1 && n != m || c.In[1].Len() != 1 || c.In[6].Len() != 1 || c.In[7].Len() != 1 {
		return nil, fmt.Errorf("scales of shapes %s, %s, %s", tensor.FormatShape(c.In[1].Shape),
			tensor.FormatShape(c.In[4].Shape), tensor.FormatShape(c.In[6].Shape))
	}
	if b := c.Input(8); b != nil && b.Type != tensor.Int32 {
		return nil, op.Unsupported("bias of %v", b.Type)
	}
	if !quant.IsByte(c.In[7]) {
		return nil, op.Unsupported("output of %v", c.In[7].Type)
	}
	r := &requantised{Rescale: &quantise.Rescale{Scales: make([]float32, m), Signed: c.In[7].Type == tensor.Int8}}
	r.Lo, r.Hi = quant.Limits(c.In[7].Type, c.Activation)
	if !c.Has(8) {
		r.none = make([]int32, m)
	}
	if c.Const(1) && c.Const(4) && c.Const(6) && c.Const(7) {
		r.scale(c)
		r.fixed = true
		r.Fixed = !c.Has(8) || c.Const(8)
	}
	return r, nil
}

// prepare reads the inputs of a run.
func (r *requantised) prepare(c *op.Call) {
	if r.Bias = r.none; c.Has(8) {
		r.Bias = tensor.Of[int32](c.In[8])
	}
	if !r.fixed {
		r.scale(c)
	}
}

// scale reads the scales and the zero point.
func (r *requantised) scale(c *op.Call) {
	xs, ys := float32(tensor.At(c.In[1], 0)), float32(tensor.At(c.In[6], 0))
	r.Zero = quant.Zero(c.In[7])
	for m := range r.Scales {
		r.Scales[m] = xs * float32(tensor.At(c.In[4], min(m, c.In[4].Len()-1))) / ys
	}
	r.Prepare()
}

// PrepareQLinearConv makes a quantised convolution with a quantised result.
func PrepareQLinearConv(c *op.Call) (op.Run, error) {
	q, err := newIntConv(c, 0, 3, 2, 5, c.Input(8), false)
	if err != nil {
		return nil, err
	}
	r, err := newRequantised(c, q.m)
	if err != nil {
		return nil, err
	}
	var sums []int32
	whole := q.planar == nil || !q.planar.UsesSIMD()
	if whole {
		sums = op.ScratchOf[int32](c, c.Out[0].Len())
	}
	area := tensor.Elements(q.Out)
	var y []byte // of the run, whose loop is made once
	planes := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			r.Rows(y, i*area, area, sums[i*area:], area, 1, area, i%q.m)
		}
	}
	return func(c *op.Call) error {
		r.prepare(c)
		y = c.Out[0].Data
		if !whole {
			q.runCodes(c, 0, y, r.Rescale)
			return nil
		}
		q.sums(c, 0, sums)
		c.Pool.For(q.n*q.m, max(1, 4096/max(area, 1)), planes)
		return nil
	}, nil
}
