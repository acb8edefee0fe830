// Package conv implements ONNX's convolutions: plain, transposed, deformable and quantised.
package conv

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		elem.Fusing(op.Def{Name: "Conv", Since: 1, Types: elem.Floats, Infer: op.Needs(2, InferConv), Prepare: prepareConv}),
		elem.Fusing(elem.RealDef("ConvTranspose", op.Needs(2, op.Infer(newTransposed)), prepareConvTranspose[float32], prepareConvTranspose[float64])),
		elem.RealDef("DeformConv", op.Needs(3, inferDeformConv), prepareDeformConv[float32], prepareDeformConv[float64]),
		{Name: "ConvInteger", Since: 10, Types: elem.Bytes, Infer: op.Needs(2, inferConvInteger), Prepare: prepareConvInteger},
		{Name: "QLinearConv", Since: 10, Fuses: true, Types: elem.Bytes, Infer: op.Needs(8, InferQLinearConv), Prepare: PrepareQLinearConv, NHWC: lastQLinearConv},
		{Domain: graph.Own, Name: "QLinearConvTranspose", Since: 1, Fuses: true, Types: elem.Bytes, Infer: op.Needs(8, op.Infer(newCodesTransposed)), Prepare: prepareCodesTransposed},
	}
}

// convolution is the checked geometry of a Conv-like node: input x [N,C,...], weights w
// [M,C/groups,...].
type convolution struct {
	*window.Window
	n, c, m, groups int
}

// newConvolution checks shapes of x, w and bias (nil for none) against the node's attributes.
func newConvolution(c *op.Call, x, w, bias *tensor.Tensor) (*convolution, error) {
	if x.Rank() < 3 || w.Rank() != x.Rank() {
		return nil, fmt.Errorf("input %s with weights %s", tensor.FormatShape(x.Shape), tensor.FormatShape(w.Shape))
	}
	v := &convolution{n: x.Shape[0], c: x.Shape[1], m: w.Shape[0], groups: c.Node.Attrs.Int("group", 1)}
	if v.groups < 1 || v.m%v.groups != 0 || v.c != w.Shape[1]*v.groups {
		return nil, fmt.Errorf("input %s, weights %s and %d groups do not agree",
			tensor.FormatShape(x.Shape), tensor.FormatShape(w.Shape), v.groups)
	}
	if k := c.Node.Attrs.Ints("kernel_shape"); k != nil && !slices.Equal(k, w.Shape[2:]) {
		return nil, fmt.Errorf("kernel_shape %v with weights %s", k, tensor.FormatShape(w.Shape))
	}
	if bias != nil && (bias.Rank() != 1 || bias.Shape[0] != v.m) {
		return nil, fmt.Errorf("bias %s for %d output channels", tensor.FormatShape(bias.Shape), v.m)
	}
	var err error
	v.Window, err = window.New(c, x.Shape[2:], w.Shape[2:], false)
	return v, err
}

func (v *convolution) shape() []int { return append([]int{v.n, v.m}, v.Out...) }

// InferConv checks the shapes of a convolution and sets the shape of output 0.
func InferConv(c *op.Call) error {
	v, err := newConvolution(c, c.In[0], c.In[1], c.Input(2))
	if err != nil {
		return err
	}
	return c.Result(c.In[0].Type, v.shape())
}

// volume returns the float32 kernel's shape of a three-dimensional convolution.
func (v *convolution) volume() (conv.Shape, conv.Depth) {
	s := conv.Shape{
		N: v.n, C: v.c, OC: v.m, Groups: v.groups, H: v.In[1], W: v.In[2], OH: v.Out[1], OW: v.Out[2], KH: v.Kernel[1], KW: v.Kernel[2],
		StrideH: v.Stride[1], StrideW: v.Stride[2], DilH: v.Dilation[1], DilW: v.Dilation[2], PadT: v.Begin[1], PadL: v.Begin[2],
	}
	return s, conv.Depth{In: v.In[0], Out: v.Out[0], Kernel: v.Kernel[0], Stride: v.Stride[0], Dilation: v.Dilation[0], Pad: v.Begin[0]}
}

// prepared makes the float32 kernel of a convolution over up to three axes; nil if absent.
func (v *convolution) prepared(w, bias []float32, act activation.Clamp) *conv.Float32 {
	if len(v.In) == 3 {
		s, d := v.volume()
		return conv.NewNCDHW(s, d, w, bias, act)
	}
	return conv.NewNCHW(v.planar2D(), w, bias, act)
}

// planar2D returns the float32 kernel's shape of a one- or two-dimensional convolution. One
// dimension, and an image of one column, become an image of height one, because kernels work
// along lines.
func (v *convolution) planar2D() conv.Shape {
	s := conv.Shape{
		N: v.n, C: v.c, OC: v.m, Groups: v.groups,
		H: 1, OH: 1, KH: 1, StrideH: 1, DilH: 1,
	}
	i := len(v.In) - 1
	s.W, s.OW, s.KW, s.StrideW, s.DilW, s.PadL = v.In[i], v.Out[i], v.Kernel[i], v.Stride[i], v.Dilation[i], v.Begin[i]
	if i == 1 && v.In[1] == 1 && v.Out[1] == 1 && v.Kernel[1] == 1 && v.Begin[1] == 0 {
		s.W, s.OW, s.KW, s.StrideW, s.DilW, s.PadL = v.In[0], v.Out[0], v.Kernel[0], v.Stride[0], v.Dilation[0], v.Begin[0]
	} else if i == 1 {
		s.H, s.OH, s.KH, s.StrideH, s.DilH, s.PadT = v.In[0], v.Out[0], v.Kernel[0], v.Stride[0], v.Dilation[0], v.Begin[0]
	}
	return s
}

// prepareConv makes a convolution of any floating-point type.
func prepareConv(c *op.Call) (op.Run, error) {
	if len(c.In) == normalised {
		return prepareNormalised(c)
	}
	if run, err := prepareHalves(c); run != nil || err != nil {
		return run, err
	}
	return elem.PrepareReal(c, PrepareConv32, PrepareConvAny[float64])
}

// prepareHalves makes a float16 convolution that widens its input when SIMD kernels read it, in
// one or two dimensions with constant weights; nil for others.
func prepareHalves(c *op.Call) (op.Run, error) {
	half := func(x *tensor.Tensor) bool { return x.Type == tensor.Float16 }
	if !half(c.In[0]) || !half(c.In[1]) || !half(c.Out[0]) || !c.Const(1) || !c.In[1].Known() || c.Has(2) && (!c.Const(2) || !c.In[2].Known() || !half(c.In[2])) {
		return nil, nil
	}
	v, err := newConvolution(c, c.In[0], c.In[1], c.Input(2))
	if err != nil || len(v.In) > 2 || v.c == 0 || tensor.Elements(c.Out[0].Shape) == 0 {
		return nil, err
	}
	wide := func(x *tensor.Tensor) []float32 {
		f := make([]float32, x.Len())
		elem.WidenTo(c.Pool, f, x)
		return f
	}
	var bias []float32
	if c.Has(2) {
		bias = wide(c.In[2])
	}
	k := conv.NewNCHW(v.planar2D(), wide(c.In[1]), bias, c.Activation)
	if !k.SupportsFloat16() {
		return nil, nil
	}
	c.Kernel = k.Name()
	return func(c *op.Call) error {
		k.RunFloat16(c.Pool, tensor.Of[uint16](c.In[0]), tensor.Of[uint16](c.Out[0]))
		return nil
	}, nil
}

// PrepareConv32 handles up to three dimensions with the shared kernel; three with constant
// weights only.
func PrepareConv32(c *op.Call) (op.Run, error) {
	v := op.Must(newConvolution(c, c.In[0], c.In[1], c.Input(2)))
	if len(v.In) > 3 || tensor.Elements(c.Out[0].Shape) == 0 || v.c == 0 {
		return PrepareConvAny[float32](c)
	}
	bias := func(c *op.Call) []float32 {
		if !c.Has(2) {
			return nil
		}
		return tensor.Of[float32](c.In[2])
	}
	act := c.Activation
	if c.Const(1) && (!c.Has(2) || c.Const(2)) {
		k := v.prepared(tensor.Of[float32](c.In[1]), bias(c), act)
		if k == nil {
			return PrepareConvAny[float32](c)
		}
		if k.Release() {
			c.Copied(1)
		} else {
			c.Packed(1)
		}
		c.Kernel = k.Name()
		return func(c *op.Call) error {
			k.Run(c.Pool, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]))
			return nil
		}, nil
	}
	if len(v.In) == 3 {
		return PrepareConvAny[float32](c)
	}
	s := v.planar2D()
	var k *conv.Float32
	c.Kernel = "unpacked"
	return func(c *op.Call) error {
		if w := tensor.Of[float32](c.In[1]); k == nil {
			k = conv.NewNCHW(s, w, bias(c), act)
		} else {
			k.SetWeights(w, bias(c))
		}
		k.Run(c.Pool, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]))
		return nil
	}, nil
}

// colBytes bounds the im2col buffer of a convolution.
const colBytes = 1 << 20

// PrepareConvAny computes a convolution by im2col and GEMM: any rank, either float type.
func PrepareConvAny[T tensor.Real](c *op.Call) (op.Run, error) {
	v := op.Must(newConvolution(c, c.In[0], c.In[1], c.Input(2)))
	taps, area := tensor.Elements(v.Kernel), tensor.Elements(v.Out)
	cg, mg := v.c/v.groups, v.m/v.groups
	k := cg * taps
	block := max(1, min(area, colBytes/(max(k, 1)*c.In[0].Type.Bits()/8)))
	col := op.ScratchOf[T](c, k*block)
	act := c.Activation
	c.Kernel = "im2col"
	return func(c *op.Call) error {
		x, w, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		inArea := tensor.Elements(v.In)
		for n := range v.n {
			for g := range v.groups {
				xs := x[(n*v.c+g*cg)*inArea:][:cg*inArea]
				ys := y[(n*v.m+g*mg)*area:][:mg*area]
				fillBias(c, ys, g*mg, area)
				for p0 := 0; p0 < area; p0 += block {
					np := min(block, area-p0)
					unfold(c.Pool, v.Window, col, xs, cg, p0, np)
					matmul.Gemm(c.Pool, matmul.Matrices{M: mg, N: np, K: k, Ldc: area, Accumulate: true}, w[g*mg*k:][:mg*k], col[:k*np], ys[p0:])
				}
			}
		}
		elem.Clamp(act, y)
		return nil
	}, nil
}

// fillBias writes input 2 from channel m0 on, or zero, to planes of area elements.
func fillBias[T tensor.Real](c *op.Call, y []T, m0, area int) {
	if !c.Has(2) {
		clear(y)
		return
	}
	b := tensor.Of[T](c.In[2])[m0:]
	for m := 0; m*area < len(y); m++ {
		row := y[m*area : (m+1)*area]
		element.Fill(row, b[m])
	}
}

// unfold writes, for each channel and tap, the input elements that output positions p0 to p0+np-1
// see through that tap (im2col); positions outside the input are zero.
func unfold[T tensor.Number](p *workers.Pool, v *window.Window, col, x []T, channels, p0, np int) {
	taps, area, rank := tensor.Elements(v.Kernel), tensor.Elements(v.In), len(v.In)
	last := rank - 1
	p.For(channels*taps, 1, func(lo, hi int) {
		var ks, os [window.MaxSpatial]int
		tap, at := ks[:rank], os[:rank]
		for r := lo; r < hi; r++ {
			tensor.Unravel(r%taps, v.Kernel, tap)
			tensor.Unravel(p0, v.Out, at)
			plane, row := x[r/taps*area:][:area], col[r*np:][:np]
			for i := 0; i < np; { // a line of the result at a time
				pos, inside := 0, true
				for d := range last {
					q := at[d]*v.Stride[d] - v.Begin[d] + tap[d]*v.Dilation[d]
					inside = inside && uint(q) < uint(v.In[d])
					pos = pos*v.In[d] + q
				}
				n := min(np-i, v.Out[last]-at[last])
				dst := row[i:][:n]
				if inside {
					q := at[last]*v.Stride[last] - v.Begin[last] + tap[last]*v.Dilation[last]
					unfoldLine(dst, plane[pos*v.In[last]:][:v.In[last]], q, v.Stride[last])
				} else {
					clear(dst)
				}
				i += n
				at[last] += n - 1
				tensor.Next(at, v.Out)
			}
		}
	})
}

// unfoldLine writes the elements of line at q, q+stride, …; positions outside are zero.
func unfoldLine[T tensor.Number](dst, line []T, q, stride int) {
	if stride != 1 {
		for i := range dst {
			dst[i] = 0
			if uint(q) < uint(len(line)) {
				dst[i] = line[q]
			}
			q += stride
		}
		return
	}
	lo := min(len(dst), max(0, -q))
	hi := max(lo, min(len(dst), len(line)-q))
	clear(dst[:lo])
	if lo < hi {
		copy(dst[lo:hi], line[q+lo:])
	}
	clear(dst[hi:])
}

// normalised is the number of inputs of a convolution into which a plan has fused a batch
// normalisation: its own, then scale, shift, mean and variance of each output channel.
const normalised = 7

// prepareNormalised multiplies constant float32 weights and bias by the factors of the batch
// normalisation.
func prepareNormalised(c *op.Call) (op.Run, error) {
	w := c.In[1]
	if !w.Known() || w.Type != tensor.Float32 || w.Rank() < 3 {
		return nil, op.Unsupported("normalised weights %v", w.Type)
	}
	channels := w.Shape[0]
	for i := 3; i < normalised; i++ {
		if x := c.In[i]; x.Type != tensor.Float32 || x.Len() != channels || !x.Known() {
			return nil, fmt.Errorf("input %d of shape %s for %d channels", i, tensor.FormatShape(x.Shape), channels)
		}
	}
	if err := c.AffordTensor(w.Type, w.Shape); err != nil {
		return nil, err
	}
	eps := float64(c.Node.Attrs.Float("epsilon", 1e-5))
	scaled, shifted := &tensor.Tensor{Type: tensor.Float32, Shape: w.Shape}, tensor.New(tensor.Float32, channels)
	c.Recycler.Alloc(scaled)
	from, to, bias := tensor.Of[float32](w), tensor.Of[float32](scaled), tensor.Of[float32](shifted)
	gamma, beta, mean, vari := tensor.Of[float32](c.In[3]), tensor.Of[float32](c.In[4]), tensor.Of[float32](c.In[5]), tensor.Of[float32](c.In[6])
	n := len(from) / max(channels, 1)
	for o := range channels {
		f := float64(gamma[o]) / math.Sqrt(float64(vari[o])+eps)
		was := 0.0
		if c.Has(2) {
			was = float64(tensor.Of[float32](c.In[2])[o])
		}
		bias[o] = float32((was-float64(mean[o]))*f + float64(beta[o]))
		for i, v := range from[o*n:][:n] {
			to[o*n+i] = float32(float64(v) * f)
		}
	}
	own, fixed := c.In, c.Fixed
	in := []*tensor.Tensor{c.In[0], scaled, shifted}
	c.In, c.Fixed = in, []bool{len(fixed) > 0 && fixed[0], true, true}
	run, err := prepareConv(c)
	c.In, c.Fixed = own, fixed
	if c.IsCopied(1) {
		c.Recycler.Free(scaled)
	}
	for i := 1; i < normalised; i++ {
		c.Copied(i)
	}
	return func(c *op.Call) error {
		own := c.In
		in[0] = own[0]
		c.In = in
		err := run(c)
		c.In = own
		return err
	}, err
}
