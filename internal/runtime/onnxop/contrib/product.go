package contrib

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/conv"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/recurrent"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// newProjection prepares y[m×n] = x[m×k]·w with input wi as the k×n weights, packed once if they
// are constant float32.
func newProjection[T tensor.Real](c *op.Call, m, n, k, wi int) func(c *op.Call, x, bias, y []T) {
	if w, ok := any(elem.Elements[T](c, wi)).([]float32); ok && c.Const(wi) && n*k > 0 {
		c.Keep(4 * n * k)
		p := gemm.PackForRows(m, c.ConstantsExceedCache(), k, n, w, 0, false)
		return func(c *op.Call, x, bias, y []T) {
			g := gemm.Params{M: m, N: n, K: k, BiasN: any(bias).([]float32)}
			gemm.MultiplyPacked(c.Pool, g, any(x).([]float32), p, any(y).([]float32))
		}
	}
	return func(c *op.Call, x, bias, y []T) {
		matmul.Gemm(c.Pool, matmul.Matrices{M: m, N: n, K: k}, x, tensor.Of[T](c.In[wi]), y)
		for i := 0; i < m*n && bias != nil; i += n {
			element.AddTo(y[i:i+n], y[i:], bias)
		}
	}
}

// fusedActivation reads the activation of FusedConv and FusedGemm with its parameters, nil for
// none.
func fusedActivation(a graph.Attrs, params []float32) (recurrent.Activation, error) {
	name := a.Str("activation", "")
	at := func(i int, def float64) float64 {
		if i < len(params) {
			return float64(params[i])
		}
		return def
	}
	switch name {
	case "":
		return nil, nil
	case "Relu":
		return func(x float64) float64 { return max(x, 0) }, nil
	case "Tanh":
		return math.Tanh, nil
	case "Sigmoid":
		return recurrent.Sigmoid, nil
	case "LeakyRelu":
		al := at(0, 0.01)
		return func(x float64) float64 {
			if x < 0 {
				return al * x
			}
			return x
		}, nil
	case "Clip":
		lo, hi := at(0, -math.MaxFloat32), at(1, math.MaxFloat32)
		return func(x float64) float64 { return min(max(x, lo), hi) }, nil
	case "HardSigmoid":
		al, be := at(0, 0.2), at(1, 0.5)
		return func(x float64) float64 { return min(max(al*x+be, 0), 1) }, nil
	}
	return nil, op.Unsupported("activation %q", name)
}

func apply[T tensor.Real](p *workers.Pool, f recurrent.Activation, y []T) {
	if f == nil {
		return
	}
	p.For(len(y), 1<<12, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = T(f(float64(y[i])))
		}
	})
}

// FusedConv is Conv with an optional residual (input 3) and an activation.

func inferFusedConv(c *op.Call) error {
	if err := conv.InferConv(c); err != nil {
		return err
	}
	if z := c.Input(3); z != nil && !slices.Equal(z.Shape, c.Out[0].Shape) {
		return fmt.Errorf("residual %s for output %s", tensor.FormatShape(z.Shape), tensor.FormatShape(c.Out[0].Shape))
	}
	return nil
}

// activated adds the residual and the activation of FusedConv, or the activation of FusedGemm, to
// the result of a plain operator.
func activated[T tensor.Real](prepare elem.Prepare) elem.Prepare {
	return func(c *op.Call) (op.Run, error) {
		run, err := prepare(c)
		if err != nil {
			return nil, err
		}
		a := c.Node.Attrs
		params := a.Floats("activation_params")
		for _, n := range []string{"activation_alpha", "activation_beta"} {
			if c.Node.Op == "FusedGemm" && a.Has(n) {
				params = append(params, a.Float(n, 0))
			}
		}
		f, err := fusedActivation(a, params)
		if err != nil {
			return nil, err
		}
		return func(c *op.Call) error {
			if err := run(c); err != nil {
				return err
			}
			y := tensor.Of[T](c.Out[0])
			for i, v := range elem.Elements[T](c, 3) {
				y[i] += v
			}
			apply(c.Pool, f, y)
			return nil
		}, nil
	}
}

// FusedMatMul is MatMul with transposed operands and a factor.

// fusedOperand returns the shape of the operand after transposition.
func fusedOperand(c *op.Call, i int, letter string) (shape []int, trans, batch bool) {
	s, a := slices.Clone(c.In[i].Shape), c.Node.Attrs
	trans, batch = a.Bool("trans"+letter, false), a.Bool("transBatch"+letter, false)
	n := len(s)
	if batch && n > 2 { // the first axis goes to the place before the last but one
		s = append(append(slices.Clone(s[1:n-1]), s[0]), s[n-1])
	}
	if trans && n > 1 {
		s[n-1], s[n-2] = s[n-2], s[n-1]
	}
	return s, trans && n > 1, batch && n > 2
}

func newFusedMatMul(c *op.Call) (*matmul.Batched, bool, bool, error) {
	a, ta, ba := fusedOperand(c, 0, "A")
	b, tb, bb := fusedOperand(c, 1, "B")
	if ba || bb {
		return nil, false, false, op.Unsupported("FusedMatMul with transBatchA or transBatchB")
	}
	v, err := matmul.NewBatched(a, b)
	return v, ta, tb, err
}

func inferFusedMatMul(c *op.Call) error {
	v, _, _, err := newFusedMatMul(c)
	if err != nil {
		return err
	}
	return c.Result(c.In[0].Type, v.Out)
}

func prepareFusedMatMul[T tensor.Real](c *op.Call) (op.Run, error) {
	v, ta, tb, err := newFusedMatMul(c)
	if err != nil {
		return nil, err
	}
	alpha, act := T(c.Node.Attrs.Float("alpha", 1)), c.Activation
	return func(c *op.Call) error {
		a, b, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		v.Each(func(pa, pb, pc int) {
			matmul.Gemm(c.Pool, matmul.Matrices{M: v.M, N: v.N, K: v.K, TransA: ta, TransB: tb}, a[pa:], b[pb:], y[pc:])
		})
		if alpha != 1 {
			for i := range y {
				y[i] *= alpha
			}
		}
		elem.Clamp(act, y)
		return nil
	}, nil
}
