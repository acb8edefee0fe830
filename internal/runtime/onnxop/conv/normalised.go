package conv

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

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
