package conv

import (
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// conv3D is a convolution over [N,D,H,W,C] with a filter [KD,KH,KW,C,OC], or its transpose with a
// filter [KD,KH,KW,OC,C].
type conv3D struct {
	n, c, oc            int
	in, out, k, s, d, p [3]int
	data, bias          int // input numbers; 1 is the filter
}

// options reads strides and dilation factors.
func (v *conv3D) options(c *op.Call) error {
	for i, a := range []string{"d", "h", "w"} {
		v.s[i] = c.Node.Attrs.Int("stride_"+a, 1)
		v.d[i] = max(1, c.Node.Attrs.Int("dilation_"+a+"_factor", 1))
		if v.s[i] < 1 || v.k[i] < 1 {
			return c.Errorf("stride %d, filter %d", v.s[i], v.k[i])
		}
	}
	return nil
}

func shapeConv3D(c *op.Call) (*conv3D, error) {
	for i := range 2 {
		if err := layer.NeedRank(c, i, 5); err != nil {
			return nil, err
		}
	}
	x, w := c.In[0].Shape, c.In[1].Shape
	v := &conv3D{bias: 2, n: x[0], c: x[4], oc: w[4], in: [3]int(x[1:4]), k: [3]int(w[:3])}
	if err := v.options(c); err != nil {
		return nil, err
	}
	if w[3] != v.c {
		return nil, op.Unsupported("filter takes %d channels, input has %d", w[3], v.c)
	}
	if c.Has(2) && c.In[2].Len() != v.oc {
		return nil, c.Errorf("%d biases for %d channels", c.In[2].Len(), v.oc)
	}
	for i := range 3 {
		a := layer.Slide(v.in[i], v.k[i], v.s[i], v.d[i], layer.IsSame(c))
		v.out[i], v.p[i] = a.Out, a.Pad
	}
	return v, nil
}

func inferConv3D(c *op.Call, v *conv3D) {
	c.SetOut(0, layer.OutType(c, c.In[v.data].Type), []int{v.n, v.out[0], v.out[1], v.out[2], v.oc})
}

func prepareConv3D(c *op.Call, v *conv3D) (op.Run, error) {
	if c.In[0].Type != tensor.Float32 {
		return nil, op.Unsupported("%v input", c.In[0].Type)
	}
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	w, bias, both, err := v.constants(c)
	if err != nil {
		return nil, err
	}
	if both {
		if volume := v.vectors(w, bias, act); volume != nil {
			c.Copied(1)
			c.Kernel = volume.Name()
			return layer.Direct(volume.Run), nil
		}
	}
	g := gemm.Params{N: v.oc, K: v.k[0] * v.k[1] * v.k[2] * v.c, Act: act, Exact: true}
	positions := v.n * v.out[0] * v.out[1] * v.out[2]
	chunk := min(positions, max(gathered/max(1, g.K), 64))
	rows := op.ScratchOf[float32](c, chunk*g.K)
	var packed *gemm.PackedB
	if c.Const(1) {
		packed = gemm.PackB(g.K, g.N, w, 0, false)
		c.Copied(1)
		c.Kernel = packed.Name(g)
	}
	var x []float32 // set by each run; the closure is allocated once
	first := 0
	gather := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v.window(rows[i*g.K:][:g.K], first+i, x)
		}
	}
	return func(c *op.Call) (err error) {
		x = tensor.Of[float32](c.In[0])
		y := tensor.Of[float32](c.Out[0])
		g := g
		var w []float32
		if packed == nil {
			w, g.BiasN, err = layer.FloatPair(c, 1, 2)
		} else {
			g.BiasN, err = layer.BiasOf(c, 2)
		}
		if err != nil {
			return err
		}
		for p := 0; p < positions; p += chunk {
			first, g.M = p, min(chunk, positions-p)
			c.Pool.For(g.M, max(1, layer.Grain/max(1, g.K)), gather)
			if packed != nil {
				gemm.MultiplyPacked(c.Pool, g, rows, packed, y[p*v.oc:])
			} else {
				gemm.Multiply(c.Pool, g, rows, w, y[p*v.oc:])
			}
		}
		return nil
	}, nil
}

// gathered is the maximum number of input values that are gathered for one matrix multiplication:
// as many as a second-level cache holds beside weights.
const gathered = 1 << 16

// split turns a position into batch and coordinates.
func split(p int, dims [3]int) (n int, at [3]int) {
	for i := 2; i >= 0; i-- {
		at[i] = p % dims[i]
		p /= dims[i]
	}
	return p, at
}

// window writes the window of position p, zeros where it leaves the input. The product with the
// filter then has its sums in the order of the reference kernels: by tap, then by channel, the
// bias at the end.
func (v *conv3D) window(row []float32, p int, x []float32) {
	n, o := split(p, v.out)
	line := v.k[2] * v.c
	left := o[2]*v.s[2] - v.p[2]
	for kd := range v.k[0] {
		d := o[0]*v.s[0] - v.p[0] + kd*v.d[0]
		for kh := range v.k[1] {
			to := row[(kd*v.k[1]+kh)*line:][:line]
			h := o[1]*v.s[1] - v.p[1] + kh*v.d[1]
			if uint(d) >= uint(v.in[0]) || uint(h) >= uint(v.in[1]) {
				clear(to)
				continue
			}
			from := x[((n*v.in[0]+d)*v.in[1]+h)*v.in[2]*v.c:][:v.in[2]*v.c]
			if v.d[2] == 1 && left >= 0 && left+v.k[2] <= v.in[2] {
				copy(to, from[left*v.c:])
				continue
			}
			for kw := range v.k[2] {
				if w := left + kw*v.d[2]; uint(w) < uint(v.in[2]) {
					copy(to[kw*v.c:][:v.c], from[w*v.c:])
				} else {
					clear(to[kw*v.c:][:v.c])
				}
			}
		}
	}
}

// shapeConv3DTranspose: inputs are output shape, filter, data, bias.
func shapeConv3DTranspose(c *op.Call) (*conv3D, error) {
	for _, i := range []int{1, 2} {
		if err := layer.NeedRank(c, i, 5); err != nil {
			return nil, err
		}
	}
	if !c.Has(0) {
		return nil, c.Errorf("input 0 (the output shape) is missing")
	}
	shape, err := op.Ints(c.In[0])
	if err != nil {
		return nil, err
	}
	if len(shape) != 5 {
		return nil, c.Errorf("output shape %v", shape)
	}
	if _, err := tensor.CheckShape(tensor.Float32, shape); err != nil {
		return nil, err
	}
	x, w := c.In[2].Shape, c.In[1].Shape
	v := &conv3D{data: 2, bias: 3, n: x[0], c: x[4], oc: w[3], in: [3]int(x[1:4]), out: [3]int(shape[1:4]), k: [3]int(w[:3])}
	if err := v.options(c); err != nil {
		return nil, err
	}
	if w[4] != v.c || shape[0] != v.n || shape[4] != v.oc || c.Has(3) && c.In[3].Len() != v.oc {
		return nil, c.Errorf("output shape %v, filter %s and input %s do not fit", shape, tensor.FormatShape(w), tensor.FormatShape(x))
	}
	if layer.IsSame(c) {
		for i := range 3 {
			v.p[i] = max(0, (v.in[i]-1)*v.s[i]+(v.k[i]-1)*v.d[i]+1-v.out[i]) / 2
		}
	}
	return v, nil
}

func prepareConv3DTranspose(c *op.Call, v *conv3D) (op.Run, error) {
	if c.In[2].Type != tensor.Float32 {
		return nil, op.Unsupported("%v input", c.In[2].Type)
	}
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	w, bias, both, err := v.constants(c)
	if err != nil {
		return nil, err
	}
	if both {
		if run, err := v.transposedPlanes(c, w, bias, act); run != nil || err != nil {
			return run, err
		}
	}
	var x, y []float32 // set by each run; the closure is allocated once
	// Each output gathers the inputs that would scatter into it.
	positions := func(lo, hi int) {
		for p := lo; p < hi; p++ {
			v.gather(p, x, y[p*v.oc:][:v.oc], w, bias)
			if act.On {
				element.Bound(y[p*v.oc:][:v.oc], act.Min, act.Max)
			}
		}
	}
	return func(c *op.Call) (err error) {
		x, y = tensor.Of[float32](c.In[2]), tensor.Of[float32](c.Out[0])
		if w, bias, err = layer.FloatPair(c, 1, 3); err != nil {
			return err
		}
		c.Pool.For(v.n*v.out[0]*v.out[1]*v.out[2], max(1, layer.Grain/max(1, v.k[0]*v.k[1]*v.k[2]*v.c*v.oc)), positions)
		return nil
	}, nil
}

// gather computes the output channels of position p. The reference scatters input
// after input: taps from the last to the first meet the inputs in that order.
func (v *conv3D) gather(p int, x, out, w, bias []float32) {
	clear(out)
	n, o := split(p, v.out)
	for t := v.k[0]*v.k[1]*v.k[2] - 1; t >= 0; t-- {
		_, k := split(t, v.k)
		at, inside := n, true
		for i := range 3 {
			q := o[i] + v.p[i] - k[i]*v.d[i]
			inside = inside && q >= 0 && q%v.s[i] == 0 && q/v.s[i] < v.in[i]
			at = at*v.in[i] + q/v.s[i]
		}
		if !inside {
			continue
		}
		src := x[at*v.c:][:v.c]
		for j := range out {
			f := w[(t*v.oc+j)*v.c:][:len(src)]
			for i, e := range src {
				out[j] += e * f[i]
			}
		}
	}
	for j, b := range bias {
		out[j] += b
	}
}

// constants returns the filter if it is constant, and the bias if both are constant or absent.
func (v *conv3D) constants(c *op.Call) (w, bias []float32, both bool, err error) {
	if !c.Const(1) {
		return nil, nil, false, nil
	}
	if w, err = layer.Floats(c.In[1]); err == nil && (!c.Has(v.bias) || c.Const(v.bias)) {
		bias, err = layer.Floats(c.Input(v.bias))
		both = true
	}
	return w, bias, both, err
}

// vectors returns the SIMD kernel that reads the input in place; nil if it is absent.
func (v *conv3D) vectors(w, bias []float32, act activation.Clamp) *conv.NDHWC {
	return conv.NewNDHWC(conv.Shape{
		N: v.n, C: v.c, H: v.in[1], W: v.in[2], OC: v.oc, OH: v.out[1], OW: v.out[2], KH: v.k[1], KW: v.k[2],
		StrideH: v.s[1], StrideW: v.s[2], DilH: v.d[1], DilW: v.d[2], PadT: v.p[1], PadL: v.p[2],
	}, conv.Depth{In: v.in[0], Out: v.out[0], Kernel: v.k[0], Stride: v.s[0], Dilation: v.d[0], Pad: v.p[0]}, w, bias, act)
}

// transposedPlanes is a 3D transposed convolution with SIMD: each plane of the input adds 2D
// transposed convolutions to planes of the output, in order. It returns nil without SIMD, and for
// dilated taps.
func (v *conv3D) transposedPlanes(c *op.Call, w, bias []float32, act activation.Clamp) (op.Run, error) {
	if v.d[1] != 1 || v.d[2] != 1 {
		return nil, nil
	}
	taps, s := v.k[1]*v.k[2], conv.TransposedShape{
		N: 1, H: v.in[1], W: v.in[2], C: v.c, OC: v.oc, OH: v.out[1], OW: v.out[2], KH: v.k[1], KW: v.k[2],
		StrideH: v.s[1], StrideW: v.s[2], PadT: v.p[1], PadL: v.p[2],
	}
	// The filter has the output channels after the taps.
	turned := make([]float32, taps*v.oc*v.c)
	planes := make([]*conv.Transposed, v.k[0])
	for kd := range planes {
		for i := range taps * v.oc {
			copy(turned[(i%v.oc*taps+i/v.oc)*v.c:][:v.c], w[(kd*taps*v.oc+i)*v.c:])
		}
		if planes[kd] = conv.NewTransposed(s, turned); planes[kd] == nil {
			return nil, nil
		}
	}
	finish, err := newFinish(c, v.n*v.out[0]*v.out[1]*v.out[2], v.oc, act)
	if err != nil {
		return nil, err
	}
	c.Copied(1)
	c.Kernel = planes[0].Name()
	in, out := v.in[1]*v.in[2]*v.c, v.out[1]*v.out[2]*v.oc
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[2]), tensor.Of[float32](c.Out[0])
		clear(y)
		for i := range v.n * v.in[0] {
			for kd, t := range planes {
				d := i%v.in[0]*v.s[0] - v.p[0] + kd*v.d[0]
				if uint(d) < uint(v.out[0]) {
					t.Add(c.Pool, x[i*in:][:in], y[(i/v.in[0]*v.out[0]+d)*out:][:out])
				}
			}
		}
		finish.run(c.Pool, y, bias)
		return nil
	}, nil
}
