package contrib

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/norm"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// SkipLayerNormalization adds a residual and normalises the last axis. Inputs: x, skip, gamma,
// then beta (absent in the simplified form, which only divides by the root mean square) and bias.
// Outputs: y, mean, inverse deviation, sum.

// skipInputs returns the positions of beta and bias, -1 for none.
func skipInputs(c *op.Call) (beta, bias int) {
	if c.Node.Op == "SkipSimplifiedLayerNormalization" {
		return -1, 3
	}
	return 3, 4
}

func inferSkipNorm(c *op.Call) error {
	x, skip := c.In[0].Shape, c.In[1].Shape
	if len(x) < 2 || len(x) > 3 {
		return fmt.Errorf("input %s", tensor.FormatShape(x))
	}
	b, err := tensor.Broadcast(x, skip)
	if err != nil || !slices.Equal(b, x) || tensor.Elements(skip) > 0 && tensor.Elements(x)%tensor.Elements(skip) != 0 || skip[len(skip)-1] != x[len(x)-1] {
		return fmt.Errorf("skip %s for input %s", tensor.FormatShape(skip), tensor.FormatShape(x))
	}
	beta, bias := skipInputs(c)
	for _, i := range []int{2, beta, bias} {
		if v := c.Input(i); v != nil && v.Len() != x[len(x)-1] {
			return fmt.Errorf("input %d of shape %s for rows of %d", i, tensor.FormatShape(v.Shape), x[len(x)-1])
		}
	}
	stat := slices.Clone(x)
	stat[len(stat)-1] = 1
	c.SetOut(0, c.In[0].Type, slices.Clone(x))
	c.SetOut(1, tensor.Float32, stat)
	c.SetOut(2, tensor.Float32, slices.Clone(stat))
	c.SetOut(3, c.In[0].Type, slices.Clone(x))
	return nil
}

func prepareSkipNorm[T tensor.Real](c *op.Call) (op.Run, error) {
	x := c.In[0].Shape
	cols := x[len(x)-1]
	rows, skipLen := tensor.Elements(x[:len(x)-1]), c.In[1].Len()
	simple := c.Node.Op == "SkipSimplifiedLayerNormalization"
	eps := float64(c.Node.Attrs.Float("epsilon", 1e-12))
	betaAt, biasAt := skipInputs(c)
	var workspace []T
	if !c.Wants(3) {
		workspace = op.ScratchOf[T](c, rows*cols)
	}
	return op.Parallel(rows, max(1, 1<<12/max(cols, 1)), func(c *op.Call, lo, hi int) {
		in, skip, gamma := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2])
		beta, bias, y, sums := elem.Elements[T](c, betaAt), elem.Elements[T](c, biasAt), tensor.Of[T](c.Out[0]), workspace
		if c.Wants(3) {
			sums = tensor.Of[T](c.Out[3])
		}
		for i := lo; i < hi; i++ {
			src, sum, dst := in[i*cols:][:cols], sums[i*cols:][:cols], y[i*cols:][:cols]
			for j, v := range skip[i*cols%skipLen:][:cols] {
				sum[j] = src[j] + v
			}
			for j, v := range bias {
				sum[j] += v
			}
			normalizeRow(c, i, dst, sum, gamma, beta, eps, simple)
		}
	}), nil
}

// normalizeRow writes one normalised row and, if requested, its statistics to outputs 1 and 2.
func normalizeRow[T tensor.Real](c *op.Call, row int, dst, src, gamma, beta []T, eps float64, simple bool) {
	var mean, inv float64
	if simple {
		inv = norm.InverseRMS(src, eps)
		norm.Store(c, 1, row, inv)
	} else {
		mean, inv = norm.Moments(src, eps)
		norm.Store(c, 1, row, mean)
		norm.Store(c, 2, row, inv)
	}
	norm.Standardise(dst, src, mean, inv)
	norm.Affine(dst, gamma, beta)
}

// BiasAdd adds a bias per channel and a residual: x [N,S,C], bias [C], skip [N,S,C].

func inferBiasAdd(c *op.Call) error {
	x := c.In[0].Shape
	if len(x) < 1 || c.In[1].Len() != x[len(x)-1] || !slices.Equal(c.In[2].Shape, x) {
		return fmt.Errorf("input %s, bias %s, skip %s", tensor.FormatShape(x), tensor.FormatShape(c.In[1].Shape), tensor.FormatShape(c.In[2].Shape))
	}
	return elem.Same(c)
}

func prepareBiasAdd[T tensor.Real](c *op.Call) (op.Run, error) {
	cols := max(c.In[1].Len(), 1)
	return op.Parallel(c.Out[0].Len(), 1<<13, func(c *op.Call, lo, hi int) {
		x, b, s, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2]), tensor.Of[T](c.Out[0])
		for i := lo; i < hi; i++ {
			y[i] = x[i] + b[i%cols] + s[i]
		}
	}), nil
}
