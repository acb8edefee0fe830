// Package random implements ONNX's random operators. Every node has its own generator, which
// lives as long as the session and starts from the node's seed, or from a fixed one if absent:
// runs are reproducible.
package random

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	def := func(name string, infer func(*op.Call) error, fill filler, since ...int) []op.Def {
		out := make([]op.Def, len(since))
		for i, s := range since {
			out[i] = op.Def{Name: name, Since: s, Stateful: true, Infer: infer, Prepare: prepare(fill)}
		}
		return out
	}
	return slices.Concat(
		def("RandomNormal", inferShape, normal, 1, 22),
		def("RandomNormalLike", op.Needs(1, inferLike), normal, 1, 22),
		def("RandomUniform", inferShape, uniform, 1, 22),
		def("RandomUniformLike", op.Needs(1, inferLike), uniform, 1, 22),
		def("Bernoulli", op.Needs(1, inferLike), bernoulli, 15, 22),
		def("Multinomial", op.Needs(1, inferMultinomial), multinomial, 7, 22),
	)
}

// filler writes the numbers of one run.
type filler func(c *op.Call, r *rand.Rand) error

func prepare(fill filler) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		key := fmt.Sprintf("random/%d/%d", c.Graph.Index, c.Node.Index)
		return func(c *op.Call) error {
			r, ok := c.Env.State(key).(*rand.Rand)
			if !ok {
				seed := uint64(math.Float32bits(c.Node.Attrs.Float("seed", 0)))
				place := uint64(c.Node.Index)
				if c.Node.Attrs.Has("seed") {
					place = 1 << 32 // nodes with equal seeds have equal numbers
				}
				r = rand.New(rand.NewPCG(seed, place))
				c.Env.SetState(key, r)
			}
			return fill(c, r)
		}, nil
	}
}

func dtype(c *op.Call, def tensor.Type) (tensor.Type, error) {
	t := def
	if c.Node.Attrs.Has("dtype") {
		var err error
		if t, err = elem.FromCode(c.Node.Attrs.Int("dtype", 0)); err != nil {
			return t, err
		}
	}
	if !t.IsNumber() {
		return t, op.Unsupported("random numbers of type %v", t)
	}
	return t, nil
}

func inferShape(c *op.Call) error {
	t, err := dtype(c, tensor.Float32)
	if err != nil {
		return err
	}
	shape := c.Node.Attrs.Ints("shape")
	if !c.Node.Attrs.Has("shape") {
		return fmt.Errorf("shape is missing")
	}
	return c.Result(t, shape)
}

func inferLike(c *op.Call) error {
	t, err := dtype(c, c.In[0].Type)
	if err != nil {
		return err
	}
	return c.Result(t, slices.Clone(c.In[0].Shape))
}

func normal(c *op.Call, r *rand.Rand) error {
	mean, scale := float64(c.Node.Attrs.Float("mean", 0)), float64(c.Node.Attrs.Float("scale", 1))
	tensor.Fill(c.Out[0], func(int) float64 { return mean + scale*r.NormFloat64() })
	return nil
}

func uniform(c *op.Call, r *rand.Rand) error {
	low, high := float64(c.Node.Attrs.Float("low", 0)), float64(c.Node.Attrs.Float("high", 1))
	tensor.Fill(c.Out[0], func(int) float64 { return low + (high-low)*r.Float64() })
	return nil
}

func bernoulli(c *op.Call, r *rand.Rand) error {
	p, err := tensor.All[float64](c.In[0])
	if err != nil {
		return err
	}
	tensor.Fill(c.Out[0], func(i int) float64 {
		if r.Float64() < p[i] {
			return 1
		}
		return 0
	})
	return nil
}

func inferMultinomial(c *op.Call) error {
	t, err := dtype(c, tensor.Int32)
	if err != nil {
		return err
	}
	if c.In[0].Rank() != 2 || c.In[0].Shape[1] == 0 {
		return fmt.Errorf("input is %s, not batch x classes", tensor.FormatShape(c.In[0].Shape))
	}
	return c.Result(t, []int{c.In[0].Shape[0], c.Node.Attrs.Int("sample_size", 1)})
}

// multinomial samples from unnormalised log probabilities by inverting the cumulative sum of each
// row.
func multinomial(c *op.Call, r *rand.Rand) error {
	v, err := tensor.All[float64](c.In[0])
	if err != nil {
		return err
	}
	classes, samples := c.In[0].Shape[1], c.Out[0].Shape[1]
	sum := make([]float64, classes)
	tensor.Fill(c.Out[0], func(i int) float64 {
		if i%samples == 0 {
			row := v[i/samples*classes:][:classes]
			top, total := slices.Max(row), 0.0
			for k, x := range row {
				total += math.Exp(x - top)
				sum[k] = total
			}
		}
		at, _ := slices.BinarySearch(sum, r.Float64()*sum[classes-1])
		return float64(min(at, classes-1))
	})
	return nil
}
