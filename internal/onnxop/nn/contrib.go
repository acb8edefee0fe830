package nn

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/onnxop/elem"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// microsoft lists the layers of the com.microsoft domain.
func microsoft() []op.Def {
	quantized := func(name string, infer func(*op.Call) error, p elem.Prepare) op.Def {
		return op.Def{Name: name, Since: 1, Types: smallInts, Infer: infer, Prepare: p}
	}
	return domain(graph.Microsoft,
		floats("SkipLayerNormalization", inferSkipNorm, prepareSkipNorm[float32], prepareSkipNorm[float64]),
		floats("SkipSimplifiedLayerNormalization", inferSkipNorm, prepareSkipNorm[float32], prepareSkipNorm[float64]),
		floats("SimplifiedLayerNormalization", inferLayerNormalization, prepareRMSNormalization[float32], prepareRMSNormalization[float64]),
		floats("EmbedLayerNormalization", inferEmbed, prepareEmbed[float32], prepareEmbed[float64]),
		floats("BiasAdd", inferBiasAdd, prepareBiasAdd[float32], prepareBiasAdd[float64]),
		floats("Attention", inferFusedAttention, prepareFusedAttention[float32], prepareFusedAttention[float64]),
		floats("MultiHeadAttention", inferMultiHead, prepareMultiHead[float32], prepareMultiHead[float64]),
		floats("GroupQueryAttention", inferGroupQuery, prepareGroupQuery[float32], nil),
		floats("RotaryEmbedding", inferOffsetRotary, prepareOffsetRotary[float32], nil),
		floats("MatMulNBits", inferNBits, prepareNBits, nil),
		floats("FusedConv", inferFusedConv, prepareFusedConv[float32](prepareConv32), prepareFusedConv[float64](prepareConvAny[float64])),
		floats("FusedGemm", inferGemm, prepareFusedGemm[float32](prepareGemm32), prepareFusedGemm[float64](prepareGemm[float64])),
		fusing(floats("FusedMatMul", inferFusedMatMul, prepareFusedMatMul[float32], prepareFusedMatMul[float64])),
		floats("CausalConvWithState", inferCausalConv, prepareCausalConv[float32], nil),
		floats("LinearAttention", inferLinearAttention, prepareLinearAttention, nil),
		quantized("QLinearAveragePool", inferQLinearAveragePool, prepareQLinearAveragePool),
		quantized("QLinearGlobalAveragePool", inferQLinearGlobalPool, prepareQLinearGlobalPool),
		quantized("QLinearConcat", inferQLinearConcat, prepareQLinearConcat),
		quantized("QLinearConv", inferQLinearConv, prepareQLinearConv),
		quantized("QGemm", inferQGemm, prepareQGemm),
		floats("MatMulIntegerToFloat", inferMatMulIntegerToFloat, prepareMatMulIntegerToFloat, nil),
		floats("DynamicQuantizeMatMul", inferDynamicQuantizeMatMul, prepareDynamicQuantizeMatMul, nil),
	)
}

// RotaryEmbedding (com.microsoft): x, position_ids ([1]: of the first token, or
// [B,S]), cos_cache, sin_cache.

func newOffsetRotary(c *op.Call) (*rotaryEmbedding, error) {
	if err := c.NeedInputs(4); err != nil {
		return nil, err
	}
	x, cos, a := c.In[0].Shape, c.In[2].Shape, c.Node.Attrs
	if len(cos) != 2 || !slices.Equal(cos, c.In[3].Shape) {
		return nil, fmt.Errorf("caches %s and %s", tensor.FormatShape(cos), tensor.FormatShape(c.In[3].Shape))
	}
	r := &rotaryEmbedding{Rotary: Rotary{Dim: 2 * cos[1], Interleaved: a.Bool("interleaved", false)}, heads: a.Int("num_heads", 0)}
	switch {
	case len(x) == 4:
		r.batch, r.heads, r.rows, r.Size = x[0], x[1], x[2], x[3]
	case len(x) == 3:
		if r.packed = true; r.heads == 0 && cos[1] > 0 {
			r.heads = x[2] / (2 * cos[1])
		}
		if r.heads < 1 || x[2]%r.heads != 0 {
			return nil, fmt.Errorf("input %s with %d heads", tensor.FormatShape(x), r.heads)
		}
		r.batch, r.rows, r.Size = x[0], x[1], x[2]/r.heads
	default:
		return nil, fmt.Errorf("input %s", tensor.FormatShape(x))
	}
	if n := c.In[1].Len(); r.Dim > r.Size || n != 1 && n != r.batch*r.rows {
		return nil, fmt.Errorf("input %s, caches %s, position_ids %s", tensor.FormatShape(x), tensor.FormatShape(cos), tensor.FormatShape(c.In[1].Shape))
	}
	return r, nil
}

func inferOffsetRotary(c *op.Call) error {
	if _, err := newOffsetRotary(c); err != nil {
		return err
	}
	return inferSame(c)
}

func prepareOffsetRotary[T tensor.Real](c *op.Call) (op.Run, error) {
	r, err := newOffsetRotary(c)
	if err != nil {
		return nil, err
	}
	offset := c.In[1].Rank() < 2 && c.In[1].Len() == 1
	scale := T(c.Node.Attrs.Float("scale", 1))
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		cos, sin := tensor.Of[T](c.In[2]), tensor.Of[T](c.In[3])
		from, to := viewOf(x, r.packed, r.rows, r.heads, r.Size), viewOf(y, r.packed, r.rows, r.heads, r.Size)
		n := r.Dim / 2
		for i := range r.batch * r.rows {
			var p int
			if offset {
				p = int(tensor.At(c.In[1], 0)) + i%r.rows
			} else {
				p = int(tensor.At(c.In[1], i))
			}
			if p < 0 || p >= c.In[2].Shape[0] {
				return fmt.Errorf("position %d of %d", p, c.In[2].Shape[0])
			}
			for h := range r.heads {
				Turn(&r.Rotary, to.at(i/r.rows, h, i%r.rows, r.Size), from.at(i/r.rows, h, i%r.rows, r.Size), cos[p*n:][:n], sin[p*n:][:n])
			}
		}
		if scale != 1 {
			for i := range y {
				y[i] *= scale
			}
		}
		return nil
	}, nil
}
