package recurrent

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/libm"
	"github.com/opmeter/opmeter/internal/liteop/layer"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
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

// projection adds x·Wᵀ to sums, for float weights and, with rows quantised on
// the way, for 8-bit ones.
type projection struct {
	input  int // number of the weights among the inputs
	n, k   int
	w      []float32 // constant weights as whole or real numbers
	scales []float32 // nil for float weights
	asym   bool
	q, sum []float32
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
	p := &projection{input: input, n: t.Shape[0], k: t.Shape[1], asym: asym}
	if t.Type == tensor.Int8 || t.Type == tensor.Uint8 {
		if !c.Const(input) || !layer.Quantised(t) {
			return nil, op.Unsupported("%v weights that are not constant or have no scale", t.Type)
		}
		w, err := layer.Weights(t)
		if err != nil {
			return nil, err
		}
		p.w = make([]float32, len(w))
		for i, v := range w {
			p.w[i] = float32(v)
		}
		if p.scales = t.Quant.Scale; len(p.scales) != 1 && len(p.scales) != p.n {
			return nil, op.Unsupported("%d scales for %d rows", len(p.scales), p.n)
		}
		p.q, p.sum = make([]float32, p.k), make([]float32, p.n)
		return p, nil
	}
	if !floatType(t.Type) {
		return nil, op.Unsupported("%v weights", t.Type)
	}
	if c.Const(input) {
		var err error
		if p.w, err = layer.Floats(t); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func floatType(t tensor.Type) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.BFloat16
}

// add adds the products of rows of x to rows of dst. A nil projection adds
// nothing.
func (p *projection) add(c *op.Call, dst, x []float32, rows int) error {
	if p == nil {
		return nil
	}
	w := p.w
	if w == nil {
		var err error
		if w, err = layer.Floats(c.In[p.input]); err != nil {
			return err
		}
	}
	if p.scales == nil {
		kernel.Gemm(c.Pool, kernel.GemmParams{M: rows, N: p.n, K: p.k, TransB: true, Accumulate: true}, x, w, dst)
		return nil
	}
	for r := range rows {
		s := layer.QuantizeRow(p.q, x[r*p.k:][:p.k], p.asym)
		kernel.Gemm(c.Pool, kernel.GemmParams{M: 1, N: p.n, K: p.k, TransB: true}, p.q, w, p.sum)
		for i, v := range p.sum {
			dst[r*p.n+i] += v * s * p.scales[min(i, len(p.scales)-1)]
		}
	}
	return nil
}
