package conv

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// newTransposed checks a ConvTranspose: x [N,C,...], w [C,M/groups,...]. The window is that of
// the convolution whose gradient this is: its input is the node's output and vice versa.
func newTransposed(c *op.Call) (*convolution, error) {
	x, w, a := c.In[0], c.In[1], c.Node.Attrs
	n := x.Rank() - 2
	if n < 1 || n > window.MaxSpatial || w.Rank() != x.Rank() {
		return nil, fmt.Errorf("input %s with weights %s", tensor.FormatShape(x.Shape), tensor.FormatShape(w.Shape))
	}
	v := &convolution{n: x.Shape[0], c: x.Shape[1], groups: a.Int("group", 1), Window: &window.Window{
		Out: x.Shape[2:], Kernel: w.Shape[2:], In: make([]int, n), Begin: make([]int, n), End: make([]int, n),
	}}
	if v.groups < 1 || v.c%v.groups != 0 || v.c != w.Shape[0] {
		return nil, fmt.Errorf("input %s, weights %s and %d groups do not agree",
			tensor.FormatShape(x.Shape), tensor.FormatShape(w.Shape), v.groups)
	}
	v.m = w.Shape[1] * v.groups
	if b := c.Input(2); b != nil && (b.Rank() != 1 || b.Shape[0] != v.m) {
		return nil, fmt.Errorf("bias %s for %d output channels", tensor.FormatShape(b.Shape), v.m)
	}
	if k := a.Ints("kernel_shape"); k != nil && !slices.Equal(k, v.Kernel) {
		return nil, fmt.Errorf("kernel_shape %v with weights %s", k, tensor.FormatShape(w.Shape))
	}
	var err error
	if v.Stride, err = window.PerAxis(a.Ints("strides"), n, "strides"); err != nil {
		return nil, err
	}
	if v.Dilation, err = window.PerAxis(a.Ints("dilations"), n, "dilations"); err != nil {
		return nil, err
	}
	return v, v.transposedSizes(c)
}

// transposedSizes sets padding, output sizes and output 0 of a ConvTranspose.
func (v *convolution) transposedSizes(c *op.Call) error {
	a, n := c.Node.Attrs, len(v.Out)
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
		if v > window.MaxExtent || v < -window.MaxExtent {
			return fmt.Errorf("output_padding %v, pads %v or output_shape %v", extra, pads, shape)
		}
	}
	auto := a.Str("auto_pad", "NOTSET")
	for i := range n {
		full := v.Stride[i]*(v.Out[i]-1) + extra[i] + (v.Kernel[i]-1)*v.Dilation[i] + 1
		total := -1
		switch {
		case shape != nil:
			v.In[i] = shape[i]
			total = max(full-shape[i], 0)
		case auto == "SAME_UPPER" || auto == "SAME_LOWER":
			v.In[i] = v.Out[i] * v.Stride[i]
			total = max(full-v.In[i], 0)
		case pads != nil && auto != "VALID":
			v.Begin[i], v.End[i] = pads[i], pads[n+i]
			v.In[i] = full - pads[i] - pads[n+i]
		default:
			v.In[i] = full
		}
		if total >= 0 {
			// An odd element of padding goes to the end only for SAME_UPPER.
			v.Begin[i] = total - total/2
			if auto == "SAME_UPPER" {
				v.Begin[i] = total / 2
			}
			v.End[i] = total - v.Begin[i]
		}
		if v.In[i] < 0 {
			return fmt.Errorf("output size %d", v.In[i])
		}
	}
	return c.Result(c.In[0].Type, append([]int{v.n, v.m}, v.In...))
}

func prepareConvTranspose[T tensor.Real](c *op.Call) (op.Run, error) {
	v := op.Must(newTransposed(c))
	if inArea := tensor.Elements(v.Out); inArea > fewPositions {
		if p := newPhases(c, v); p != nil {
			return func(c *op.Call) error {
				p.run(c.Pool, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]))
				return nil
			}, nil
		}
	}
	inArea, area, taps := tensor.Elements(v.Out), tensor.Elements(v.In), tensor.Elements(v.Kernel)
	cg, mg := v.c/v.groups, v.m/v.groups
	rows := mg * taps
	col := op.ScratchOf[T](c, rows*inArea)
	act := c.Activation
	packed := packTransposed[T](c, v, inArea, rows)
	f := &folding[T]{v: v.Window, col: col}
	fold := f.channels // made once: a run must not allocate
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for n := range v.n {
			for g := range v.groups {
				xs := x[(n*v.c+g*cg)*inArea:][:cg*inArea]
				ys := y[(n*v.m+g*mg)*area:][:mg*area]
				fillBias(c, ys, g*mg, area)
				if packed != nil {
					packed.run(c, g, any(xs).([]float32), any(col).([]float32))
				} else {
					w := tensor.Of[T](c.In[1])
					matmul.Gemm(c.Pool, matmul.Matrices{M: rows, N: inArea, K: cg, TransA: true}, w[g*cg*rows:][:cg*rows], xs, col)
				}
				f.y = ys
				c.Pool.For(mg, 1, fold)
			}
		}
		elem.Clamp(act, y)
		return nil
	}, nil
}

// fewPositions is the maximum number of positions that become rows of the GEMM rather than
// columns: panels of so few columns would be mostly empty.
const fewPositions = 32

// transposedRows holds the constant weights of a transposed convolution over few positions, group
// by group, as the right-hand side of a GEMM.
type transposedRows struct {
	weights []*gemm.PackedB
	params  gemm.Params
	turned  []float32
}

// packTransposed returns nil if there are many positions, or the weights are not constant.
func packTransposed[T tensor.Real](c *op.Call, v *convolution, positions, rows int) *transposedRows {
	if c.In[1].Type != tensor.Float32 || !c.Const(1) || !c.In[1].Known() || positions > fewPositions || v.c == 0 || rows == 0 || positions == 0 {
		return nil
	}
	w, cg := tensor.Of[float32](c.In[1]), v.c/v.groups
	t := &transposedRows{params: gemm.Params{M: positions, N: rows, K: cg, LDA: positions, TransA: true}}
	for g := range v.groups {
		t.weights = append(t.weights, gemm.PackB(cg, rows, w[g*cg*rows:][:cg*rows], 0, false))
	}
	c.Copied(1)
	c.Kernel = t.weights[0].Name(t.params)
	if positions > 1 {
		t.turned = op.ScratchOf[float32](c, rows*positions)
	} else {
		t.params.LDA, t.params.TransA = 0, false
	}
	return t
}

// run multiplies the channels x of group g; col has a line of positions for each row.
func (t *transposedRows) run(c *op.Call, g int, x, col []float32) {
	if t.turned == nil {
		gemm.MultiplyPacked(c.Pool, t.params, x, t.weights[g], col)
		return
	}
	gemm.MultiplyPacked(c.Pool, t.params, x, t.weights[g], t.turned)
	move.Transpose(col, t.params.M, t.turned, t.params.N, t.params.N, t.params.M)
}

// folding adds the rows of col (channels × taps, one element per output position of the window)
// to the input positions that each tap sees (col2im): the reverse of unfold.
type folding[T tensor.Real] struct {
	v      *window.Window
	y, col []T
}

// channels adds up channels lo to hi.
func (f *folding[T]) channels(lo, hi int) {
	v, y, col := f.v, f.y, f.col
	taps, area, positions, rank := tensor.Elements(v.Kernel), tensor.Elements(v.In), tensor.Elements(v.Out), len(v.In)
	if positions == 0 {
		return
	}
	last := rank - 1
	var ks, os [window.MaxSpatial]int
	tap, at := ks[:rank], os[:rank]
	for ch := lo; ch < hi; ch++ {
		plane := y[ch*area:][:area]
		for t := range taps {
			tensor.Unravel(t, v.Kernel, tap)
			src := col[(ch*taps+t)*positions:][:positions]
			clear(at)
			for i := 0; i < positions; i += v.Out[last] {
				pos, inside := 0, true
				for d := range last {
					q := at[d]*v.Stride[d] - v.Begin[d] + tap[d]*v.Dilation[d]
					inside = inside && uint(q) < uint(v.In[d])
					pos = pos*v.In[d] + q
				}
				if inside {
					line := plane[pos*v.In[last]:][:v.In[last]]
					q := tap[last]*v.Dilation[last] - v.Begin[last]
					addApart(line, src[i:i+v.Out[last]], q, v.Stride[last])
				}
				if last > 0 {
					tensor.Next(at[:last], v.Out[:last])
				}
			}
		}
	}
}

// addApart adds the elements of src to elements of line from q on with the given step; q may be
// negative.
func addApart[T tensor.Real](line, src []T, q, step int) {
	if q < 0 {
		n := min((step-1-q)/step, len(src))
		q, src = q+n*step, src[n:]
	}
	if q >= len(line) || len(src) == 0 {
		return
	}
	line = line[q:]
	src = src[:min(len(src), (len(line)+step-1)/step)]
	at := 0
	for _, s := range src {
		line[at] += s
		at += step
	}
}
