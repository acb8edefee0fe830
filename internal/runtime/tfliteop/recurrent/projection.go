package recurrent

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/libm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// nonlinear returns an activation of recurrent layers.
func nonlinear(name string) (func(float32) float32, error) {
	switch name {
	case "NONE", "":
		return func(x float32) float32 { return x }, nil
	case "RELU":
		return func(x float32) float32 { return max(x, 0) }, nil
	case "RELU6":
		return func(x float32) float32 { return min(max(x, 0), 6) }, nil
	case "RELU_N1_TO_1":
		return func(x float32) float32 { return min(max(x, -1), 1) }, nil
	case "TANH":
		return libm.Tanh, nil
	case "SIGN_BIT":
		return func(x float32) float32 {
			if math.Signbit(float64(x)) {
				return 1
			}
			return 0
		}, nil
	}
	return nil, op.Unsupported("activation %s", name)
}

// projection adds x·Wᵀ to sums, for float weights and, with rows quantised on the fly, for 8-bit
// ones.
type projection struct {
	input  int // number of the weights among the inputs
	n, k   int
	packed *gemm.PackedB // constant weights
	hybrid *layer.Hybrid // nil for float weights
}

// newProjection returns nil when the weights are absent.
func newProjection(c *op.Call, input int, asym bool) (*projection, error) {
	t := c.Input(input)
	if t == nil || t.Len() == 0 {
		return nil, nil
	}
	if t.Rank() != 2 {
		return nil, c.Errorf("weights %d have rank %d, 2 was expected", input, t.Rank())
	}
	p := &projection{input: input, n: t.Shape[0], k: t.Shape[1]}
	if c.Const(input) {
		c.Keep(p.n * p.k * 4)
	}
	if layer.IsHybrid(t.Type) {
		if !c.Const(input) {
			return nil, op.Unsupported("%v weights that are not constant", t.Type)
		}
		var err error
		p.hybrid, err = layer.NewHybrid(t, p.n, p.k, false, asym)
		return p, err
	}
	if !floatType(t.Type) {
		return nil, op.Unsupported("%v weights", t.Type)
	}
	if c.Const(input) {
		w, err := layer.Floats(t)
		if err != nil {
			return nil, err
		}
		p.packed = gemm.PackB(p.k, p.n, w, 0, true)
	}
	return p, nil
}

func floatType(t tensor.Type) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.BFloat16
}

// add adds the products of rows of x to rows of dst. A nil projection adds nothing.
func (p *projection) add(c *op.Call, dst, x []float32, rows int) error {
	if p == nil {
		return nil
	}
	if p.hybrid != nil {
		scales := p.hybrid.Scales()
		for r := range rows {
			sums, s := p.hybrid.Row(c.Pool, x[r*p.k:])
			for i, v := range sums {
				dst[r*p.n+i] += v * (s * scales[min(i, len(scales)-1)])
			}
		}
		return nil
	}
	g := gemm.Params{M: rows, N: p.n, K: p.k, TransB: true, Accumulate: true, Exact: true}
	if p.packed != nil {
		gemm.MultiplyPacked(c.Pool, g, x, p.packed, dst)
		return nil
	}
	w, err := layer.Floats(c.In[p.input])
	if err != nil {
		return err
	}
	gemm.Multiply(c.Pool, g, x, w, dst)
	return nil
}

// weights reads projections. It keeps the first error.
type weights struct {
	c    *op.Call
	asym bool
	err  error
}

func newWeights(c *op.Call) *weights {
	return &weights{c: c, asym: c.Node.Attrs.Bool("asymmetric_quantize_inputs", false)}
}

// read returns the projection of an input, nil if it is absent.
func (w *weights) read(input int) (p *projection) {
	if w.err == nil {
		p, w.err = newProjection(w.c, input, w.asym)
	}
	return p
}

// term is an input of a gate with its weights.
type term struct {
	p *projection
	x []float32
}

// addAll adds all products of rows to dst.
func addAll(c *op.Call, dst []float32, rows int, terms ...term) error {
	for _, t := range terms {
		if err := t.p.add(c, dst, t.x, rows); err != nil {
			return err
		}
	}
	return nil
}
