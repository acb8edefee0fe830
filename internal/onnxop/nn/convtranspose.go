package nn

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// newTransposed checks a ConvTranspose: x [N,C,...], w [C,M/groups,...]. The
// window is that of the convolution whose gradient this is: its input is the
// node's output and the other way round.
func newTransposed(c *op.Call) (*convolution, error) {
	x, w, a := c.In[0], c.In[1], c.Node.Attrs
	n := x.Rank() - 2
	if n < 1 || n > maxSpatial || w.Rank() != x.Rank() {
		return nil, fmt.Errorf("input %s with weights %s", tensor.FormatShape(x.Shape), tensor.FormatShape(w.Shape))
	}
	v := &convolution{n: x.Shape[0], c: x.Shape[1], groups: a.Int("group", 1), window: &window{
		out: x.Shape[2:], kernel: w.Shape[2:], in: make([]int, n), begin: make([]int, n), end: make([]int, n),
	}}
	if v.groups < 1 || v.c%v.groups != 0 || v.c != w.Shape[0] {
		return nil, fmt.Errorf("input %s, weights %s and %d groups do not agree",
			tensor.FormatShape(x.Shape), tensor.FormatShape(w.Shape), v.groups)
	}
	v.m = w.Shape[1] * v.groups
	if b := c.Input(2); b != nil && (b.Rank() != 1 || b.Shape[0] != v.m) {
		return nil, fmt.Errorf("bias %s for %d output channels", tensor.FormatShape(b.Shape), v.m)
	}
	if k := a.Ints("kernel_shape"); k != nil && !slices.Equal(k, v.kernel) {
		return nil, fmt.Errorf("kernel_shape %v with weights %s", k, tensor.FormatShape(w.Shape))
	}
	var err error
	if v.stride, err = perAxis(a.Ints("strides"), n, "strides"); err != nil {
		return nil, err
	}
	if v.dilation, err = perAxis(a.Ints("dilations"), n, "dilations"); err != nil {
		return nil, err
	}
	return v, v.transposedSizes(c)
}

// transposedSizes sets padding and output sizes of a ConvTranspose.
func (v *convolution) transposedSizes(c *op.Call) error {
	a, n := c.Node.Attrs, len(v.out)
	extra := a.Ints("output_padding")
	if extra == nil {
		extra = make([]int, n)
	}
	pads := a.Ints("pads")
	shape := a.Ints("output_shape")
	if len(shape) == n+2 {
		shape = shape[2:] // some exporters write the batch and channel sizes too
	}
	if len(extra) != n || pads != nil && len(pads) != 2*n || shape != nil && len(shape) != n {
		return fmt.Errorf("output_padding %v, pads %v or output_shape %v do not fit %d spatial axes", extra, pads, shape, n)
	}
	for _, v := range slices.Concat(extra, pads, shape) {
		if v > maxExtent || v < -maxExtent {
			return fmt.Errorf("output_padding %v, pads %v or output_shape %v", extra, pads, shape)
		}
	}
	auto := a.Str("auto_pad", "NOTSET")
	for i := range n {
		full := v.stride[i]*(v.out[i]-1) + extra[i] + (v.kernel[i]-1)*v.dilation[i] + 1
		total := -1
		switch {
		case shape != nil:
			v.in[i] = shape[i]
			total = max(full-shape[i], 0)
		case auto == "SAME_UPPER" || auto == "SAME_LOWER":
			v.in[i] = v.out[i] * v.stride[i]
			total = max(full-v.in[i], 0)
		case pads != nil && auto != "VALID":
			v.begin[i], v.end[i] = pads[i], pads[n+i]
			v.in[i] = full - pads[i] - pads[n+i]
		default:
			v.in[i] = full
		}
		if total >= 0 {
			// An odd element of padding goes to the end only for SAME_UPPER.
			v.begin[i] = total - total/2
			if auto == "SAME_UPPER" {
				v.begin[i] = total / 2
			}
			v.end[i] = total - v.begin[i]
		}
		if v.in[i] < 0 {
			return fmt.Errorf("output size %d", v.in[i])
		}
	}
	return nil
}

func inferConvTranspose(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	v, err := newTransposed(c)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, append([]int{v.n, v.m}, v.in...))
	return nil
}

func prepareConvTranspose[T tensor.Real](c *op.Call) (op.Run, error) {
	v, err := newTransposed(c)
	if err != nil {
		return nil, err
	}
	inArea, area, taps := product(v.out), product(v.in), product(v.kernel)
	cg, mg := v.c/v.groups, v.m/v.groups
	rows := mg * taps
	col := op.ScratchOf[T](c, rows*inArea)
	act := c.Activation
	return func(c *op.Call) error {
		x, w, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		for n := range v.n {
			for g := range v.groups {
				xs := x[(n*v.c+g*cg)*inArea:][:cg*inArea]
				ys := y[(n*v.m+g*mg)*area:][:mg*area]
				fillBias(c, ys, g*mg, area)
				gemm(c.Pool, matrices{m: rows, n: inArea, k: cg, transA: true}, w[g*cg*rows:][:cg*rows], xs, col)
				fold(c.Pool, v.window, ys, col, mg)
			}
		}
		clamp(act, y)
		return nil
	}, nil
}

// fold adds the rows of col (channels × taps, one element an output position of
// the window) to the input positions that each tap sees: the reverse of unfold.
func fold[T tensor.Real](p *workers.Pool, v *window, y, col []T, channels int) {
	taps, area, positions, rank := product(v.kernel), product(v.in), product(v.out), len(v.in)
	if positions == 0 {
		return
	}
	last := rank - 1
	p.For(channels, 1, func(lo, hi int) {
		var ks, os [maxSpatial]int
		tap, at := ks[:rank], os[:rank]
		for ch := lo; ch < hi; ch++ {
			plane := y[ch*area:][:area]
			for t := range taps {
				unravel(t, v.kernel, tap)
				src := col[(ch*taps+t)*positions:][:positions]
				clear(at)
				for i := 0; i < positions; i += v.out[last] {
					pos, inside := 0, true
					for d := range last {
						q := at[d]*v.stride[d] - v.begin[d] + tap[d]*v.dilation[d]
						inside = inside && uint(q) < uint(v.in[d])
						pos = pos*v.in[d] + q
					}
					if inside {
						line := plane[pos*v.in[last]:][:v.in[last]]
						q := tap[last]*v.dilation[last] - v.begin[last]
						for _, s := range src[i : i+v.out[last]] {
							if uint(q) < uint(len(line)) {
								line[q] += s
							}
							q += v.stride[last]
						}
					}
					if last > 0 {
						next(at[:last], v.out[:last])
					}
				}
			}
		}
	})
}
