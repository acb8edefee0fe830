package contrib

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// QAttention: 8-bit x [B,S,I], 8-bit weights [I,3·hidden], float bias, x_scale, weight_scale,
// mask_index, x_zero, weight_zero, past. Query, key and value are floats.

func newQuantAttention(c *op.Call) (*fusedAttention, error) {
	t, err := newFusedAttention(c)
	if err != nil {
		return nil, err
	}
	if c.In[2].Type != tensor.Float32 {
		return nil, op.Unsupported("bias of %v", c.In[2].Type)
	}
	if n := c.In[4].Len(); n != 1 && n != c.In[1].Shape[1] || c.In[3].Len() != 1 {
		return nil, fmt.Errorf("scales %s and %s", tensor.FormatShape(c.In[3].Shape), tensor.FormatShape(c.In[4].Shape))
	}
	t.outputs(c, c.In[2].Type)
	return t, nil
}

func prepareQuantAttention(c *op.Call) (op.Run, error) {
	t := op.Must(newQuantAttention(c))
	product, err := matmul.NewIntMatMul(c, 0, 6, 1, 7)
	if err != nil {
		return nil, err
	}
	n := 2*t.hidden + t.vhidden
	sums, factors := op.ScratchOf[int32](c, t.batch*t.rows*n), op.ScratchOf[float32](c, n)
	return runFusedAttention(c, t, func(c *op.Call, qkv []float32) {
		product.Sums(c, sums)
		x, w, bias := tensor.Single[float32](c.In[3]), tensor.Of[float32](c.In[4]), elem.Elements[float32](c, 2)
		for j := range factors {
			factors[j] = x * w[min(j, len(w)-1)]
		}
		for i := range t.batch * t.rows {
			for j, f := range factors {
				qkv[i*n+j] = float32(sums[i*n+j])*f + bias[j]
			}
		}
	})
}
