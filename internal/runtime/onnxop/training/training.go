// Package training holds the operators of ONNX's training domain: one step of
// an optimiser each, and derivatives through arithmetic.
package training

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

var floats = []tensor.Type{tensor.Float32, tensor.Float64}

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		optimiser("Adagrad", 3, adagrad),
		optimiser("Momentum", 3, momentum),
		optimiser("Adam", 4, adam),
		{Domain: graph.ONNXTraining, Name: "Gradient", Since: 1, Infer: inferGradient, Prepare: prepareGradient},
	}
}

// step updates one element. s holds its value, its gradient and what has been
// accumulated; the new value and accumulations are written back to s[0] and
// s[2:].
type step func(s *[4]float64)

// optimiser makes a definition with lists of the given number of parts as
// inputs, after the learning rate and the count of updates. Outputs are the same
// lists without the gradients.
func optimiser(name string, parts int, prepare func(c *op.Call, rate float64, updates int64) (step, error)) op.Def {
	return op.Def{
		Domain: graph.ONNXTraining, Name: name, Since: 1, Types: floats,
		Infer: func(c *op.Call) error { return infer(c, parts) },
		Prepare: op.Simple(func(c *op.Call) error {
			rate, err := tensor.All[float64](c.In[0])
			if err != nil {
				return err
			}
			f, err := prepare(c, rate[0], tensor.Single[int64](c.In[1]))
			if err != nil {
				return err
			}
			n := (len(c.In) - 2) / parts
			for i := range n {
				if c.In[2+i].Type == tensor.Float32 {
					apply[float32](c, i, n, parts, f)
				} else {
					apply[float64](c, i, n, parts, f)
				}
			}
			return nil
		}),
	}
}

func infer(c *op.Call, parts int) error {
	n := (len(c.In) - 2) / parts
	if n < 1 || 2+n*parts != len(c.In) || len(c.Out) > n*(parts-1) {
		return fmt.Errorf("%d inputs and %d outputs do not fit lists of %d parts", len(c.In), len(c.Out), parts)
	}
	if err := c.NeedInputs(len(c.In)); err != nil {
		return err
	}
	if c.In[0].Len() != 1 || !slices.Contains(floats, c.In[0].Type) || c.In[1].Len() != 1 || c.In[1].Type != tensor.Int64 {
		return fmt.Errorf("learning rate is %v and update count %v", c.In[0].Type, c.In[1].Type)
	}
	for i := range n {
		x := c.In[2+i]
		if !slices.Contains(floats, x.Type) {
			return op.Unsupported("training of %v", x.Type)
		}
		for k := 1; k < parts; k++ {
			if y := c.In[2+k*n+i]; y.Type != x.Type || !slices.Equal(y.Shape, x.Shape) {
				return fmt.Errorf("inputs %d and %d differ in type or shape", 2+i, 2+k*n+i)
			}
		}
		for k := range parts - 1 {
			c.SetOut(k*n+i, x.Type, slices.Clone(x.Shape))
		}
	}
	return nil
}

// apply steps every element of the i-th of n tensors.
func apply[T float32 | float64](c *op.Call, i, n, parts int, f step) {
	var in, out [4][]T
	for k := range parts {
		in[k] = tensor.Of[T](c.In[2+k*n+i])
	}
	for k, to := 0, 0; k < parts; k++ {
		if k == 1 {
			continue // the gradient is not handed on
		}
		if c.Wants(to*n + i) {
			out[k] = tensor.Of[T](c.Out[to*n+i])
		}
		to++
	}
	c.Pool.For(len(in[0]), 1<<14, func(lo, hi int) {
		var s [4]float64
		for j := lo; j < hi; j++ {
			for k := range parts {
				s[k] = float64(in[k][j])
			}
			f(&s)
			for k := range parts {
				if out[k] != nil {
					out[k][j] = T(s[k])
				}
			}
		}
	})
}

func attr(c *op.Call, name string, def float32) float64 {
	return float64(c.Node.Attrs.Float(name, def))
}

func adagrad(c *op.Call, rate float64, updates int64) (step, error) {
	norm, eps := attr(c, "norm_coefficient", 0), attr(c, "epsilon", 1e-6)
	r := rate / (1 + float64(updates)*attr(c, "decay_factor", 0))
	return func(s *[4]float64) {
		g := norm*s[0] + s[1]
		s[2] += g * g
		s[0] -= r * g / (math.Sqrt(s[2]) + eps)
	}, nil
}

func momentum(c *op.Call, rate float64, updates int64) (step, error) {
	norm, alpha, beta := attr(c, "norm_coefficient", 0), attr(c, "alpha", 0), attr(c, "beta", 0)
	if updates <= 0 {
		beta = 1
	}
	var nesterov bool
	switch mode := c.Node.Attrs.Str("mode", ""); mode {
	case "standard":
	case "nesterov":
		nesterov = true
	default:
		return nil, fmt.Errorf("mode is %q", mode)
	}
	return func(s *[4]float64) {
		g := norm*s[0] + s[1]
		s[2] = alpha*s[2] + beta*g
		if nesterov {
			s[0] -= rate * (g + alpha*s[2])
		} else {
			s[0] -= rate * s[2]
		}
	}, nil
}

func adam(c *op.Call, rate float64, updates int64) (step, error) {
	alpha, beta := attr(c, "alpha", 0.9), attr(c, "beta", 0.999)
	norm, post, eps := attr(c, "norm_coefficient", 0), attr(c, "norm_coefficient_post", 0), attr(c, "epsilon", 1e-6)
	r := rate
	if updates > 0 {
		t := float64(updates)
		r *= math.Sqrt(1-math.Pow(beta, t)) / (1 - math.Pow(alpha, t))
	}
	return func(s *[4]float64) {
		g := norm*s[0] + s[1]
		s[2] = alpha*s[2] + (1-alpha)*g
		s[3] = beta*s[3] + (1-beta)*g*g
		s[0] = (1 - post) * (s[0] - r*s[2]/(math.Sqrt(s[3])+eps))
	}, nil
}
