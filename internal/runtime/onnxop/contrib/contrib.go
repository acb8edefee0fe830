// Package contrib implements the layers of Microsoft's domain, which are built from the
// standard's: attention, normalisations, fused matrix multiplications and quantised operators.
package contrib

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/attention"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/conv"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/norm"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/pool"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the layers of the com.microsoft domain.
func Defs() []op.Def {
	quantized := func(name string, infer func(*op.Call) error, p elem.Prepare) op.Def {
		return op.Def{Name: name, Since: 1, Types: elem.Bytes, Infer: infer, Prepare: p}
	}
	globalPool := quantized("QLinearGlobalAveragePool", inferQLinearGlobalPool, prepareQLinearGlobalPool)
	averagePool := quantized("QLinearAveragePool", op.Needs(1, inferQLinearAveragePool), pool.OrNothing(prepareQLinearAveragePool))
	globalPool.NHWC, averagePool.NHWC = lastGlobalPool, lastAveragePool
	return append(elem.InDomain(graph.Microsoft, slices.Concat(standardDefs(), visionDefs(), []op.Def{
		elem.RealDef("SkipLayerNormalization", op.Needs(3, inferSkipNorm), prepareSkipNorm[float32], prepareSkipNorm[float64]),
		elem.RealDef("SkipSimplifiedLayerNormalization", op.Needs(3, inferSkipNorm), prepareSkipNorm[float32], prepareSkipNorm[float64]),
		elem.RealDef("SimplifiedLayerNormalization", op.Needs(2, norm.InferLayerNormalization), norm.PrepareRMSNormalization[float32], norm.PrepareRMSNormalization[float64]),
		elem.RealDef("EmbedLayerNormalization", inferEmbed, prepareEmbed[float32], prepareEmbed[float64]),
		elem.RealDef("QEmbedLayerNormalization", inferEmbed, prepareQuantEmbed, nil),
		elem.RealDef("BiasAdd", op.Needs(3, inferBiasAdd), prepareBiasAdd[float32], prepareBiasAdd[float64]),
		elem.WithCaches(elem.RealDef("Attention", op.Needs(2, inferFusedAttention), prepareFusedAttention[float32], prepareFusedAttention[float64]), prepareFusedAttention[float32], [2]int{4, 1}),
		elem.RealDef("QAttention", op.Needs(5, op.Infer(newQuantAttention)), prepareQuantAttention, nil),
		elem.WithCaches(elem.RealDef("MultiHeadAttention", op.Needs(1, inferMultiHead), prepareMultiHead[float32], prepareMultiHead[float64]), prepareMultiHead[float32], [2]int{6, 1}, [2]int{7, 2}),
		elem.WithCaches(elem.RealDef("GroupQueryAttention", inferGroupQuery, prepareGroupQuery[float32], nil), prepareGroupQuery[float32], [2]int{gqPastK, 1}, [2]int{gqPastV, 2}),
		elem.RealDef("RotaryEmbedding", op.Needs(4, op.Infer(newOffsetRotary)), prepareOffsetRotary[float32], nil),
		elem.RealDef("GatherBlockQuantized", op.Needs(3, op.Infer(newGatherBlock)), prepareGatherBlock, nil),
		elem.RealDef("MatMulBnb4", op.Needs(3, op.Infer(newBnb4)), prepareBnb4, nil),
		elem.RealDef("MatMulNBits", op.Needs(3, op.Infer(newNBits)), prepareNBits, nil),
		elem.RealDef("FusedConv", op.Needs(2, inferFusedConv), activated[float32](conv.PrepareConv32), activated[float64](conv.PrepareConvAny[float64])),
		elem.RealDef("FusedGemm", op.Needs(2, op.Infer(matmul.NewGemm)), activated[float32](matmul.PrepareGemm32), activated[float64](matmul.PrepareGemm[float64])),
		elem.Fusing(elem.RealDef("TransposeMatMul", op.Needs(2, inferFusedMatMul), prepareFusedMatMul[float32], prepareFusedMatMul[float64])),
		elem.Fusing(elem.RealDef("FusedMatMul", op.Needs(2, inferFusedMatMul), prepareFusedMatMul[float32], prepareFusedMatMul[float64])),
		elem.RealDef("CausalConvWithState", op.Needs(2, attention.InferCausalConv), attention.PrepareCausalConv[float32], nil),
		elem.RealDef("LinearAttention", op.Needs(3, attention.InferLinearAttention), attention.PrepareLinearAttention, nil),
		elem.RealDef("CDist", op.Needs(2, inferDistances), prepareDistances[float32], prepareDistances[float64]),
		{Name: "MurmurHash3", Types: hashed, Infer: op.Needs(1, inferHash), Prepare: op.Simple(runHash)},
		averagePool,
		globalPool,
		quantized("QLinearConcat", inferQLinearConcat, prepareQLinearConcat),
		quantized("QLinearConv", op.Needs(8, conv.InferQLinearConv), conv.PrepareQLinearConv),
		quantized("QGemm", op.Needs(6, op.Infer(newQGemm)), prepareQGemm),
		elem.Fusing(elem.RealDef("MatMulIntegerToFloat", op.Needs(4, inferMatMulIntegerToFloat), prepareMatMulIntegerToFloat, nil)),
		elem.RealDef("DynamicQuantizeMatMul", op.Needs(3, inferDynamicQuantizeMatMul), prepareDynamicQuantizeMatMul, nil),
	})...), expertDef())
}

// RotaryEmbedding (com.microsoft): x, position_ids ([1]: of the first token, or
// [B,S]), cos_cache, sin_cache.

func newOffsetRotary(c *op.Call) (*attention.RotaryEmbedding, error) {
	x, cos, a := c.In[0].Shape, c.In[2].Shape, c.Node.Attrs
	if len(cos) != 2 || !slices.Equal(cos, c.In[3].Shape) {
		return nil, fmt.Errorf("caches %s and %s", tensor.FormatShape(cos), tensor.FormatShape(c.In[3].Shape))
	}
	r := &attention.RotaryEmbedding{Rotary: attention.Rotary{Dim: 2 * cos[1], Interleaved: a.Bool("interleaved", false)}, Heads: a.Int("num_heads", 0)}
	switch {
	case len(x) == 4:
		r.Batch, r.Heads, r.Rows, r.Size = x[0], x[1], x[2], x[3]
	case len(x) == 3:
		if r.Packed = true; r.Heads == 0 && cos[1] > 0 {
			r.Heads = x[2] / (2 * cos[1])
		}
		if r.Heads < 1 || x[2]%r.Heads != 0 {
			return nil, fmt.Errorf("input %s with %d heads", tensor.FormatShape(x), r.Heads)
		}
		r.Batch, r.Rows, r.Size = x[0], x[1], x[2]/r.Heads
	default:
		return nil, fmt.Errorf("input %s", tensor.FormatShape(x))
	}
	if n := c.In[1].Len(); r.Dim > r.Size || n != 1 && n != r.Batch*r.Rows {
		return nil, fmt.Errorf("input %s, caches %s, position_ids %s", tensor.FormatShape(x), tensor.FormatShape(cos), tensor.FormatShape(c.In[1].Shape))
	}
	return r, elem.Same(c)
}

func prepareOffsetRotary[T tensor.Real](c *op.Call) (op.Run, error) {
	r := op.Must(newOffsetRotary(c))
	offset := c.In[1].Rank() < 2 && c.In[1].Len() == 1
	scale := T(c.Node.Attrs.Float("scale", 1))
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		cos, sin := tensor.Of[T](c.In[2]), tensor.Of[T](c.In[3])
		from, to := attention.ViewOf(x, r.Packed, r.Rows, r.Heads, r.Size), attention.ViewOf(y, r.Packed, r.Rows, r.Heads, r.Size)
		n := r.Dim / 2
		for i := range r.Batch * r.Rows {
			var p int
			if offset {
				p = int(tensor.At(c.In[1], 0)) + i%r.Rows
			} else {
				p = int(tensor.At(c.In[1], i))
			}
			if p < 0 || p >= c.In[2].Shape[0] {
				return fmt.Errorf("position %d of %d", p, c.In[2].Shape[0])
			}
			for h := range r.Heads {
				attention.Turn(&r.Rotary, to.At(i/r.Rows, h, i%r.Rows, r.Size), from.At(i/r.Rows, h, i%r.Rows, r.Size), cos[p*n:][:n], sin[p*n:][:n])
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

// CDist: A [m,k], B [n,k]. The result [m,n] holds the Euclidean distances between the rows of A
// and of B, or their squares.

func inferDistances(c *op.Call) error {
	a, b := c.In[0].Shape, c.In[1].Shape
	if len(a) != 2 || len(b) != 2 || a[1] != b[1] {
		return fmt.Errorf("rows of %s and %s are not points of one space", tensor.FormatShape(a), tensor.FormatShape(b))
	}
	if m := c.Node.Attrs.Str("metric", "sqeuclidean"); !slices.Contains([]string{"sqeuclidean", "euclidean"}, m) {
		return op.Unsupported("metric %q", m)
	}
	return c.Result(c.In[0].Type, []int{a[0], b[0]})
}

// prepareDistances computes |a|² + |b|² - 2·a·b, as ONNX Runtime does: small distances are less
// exact than the coordinates.
func prepareDistances[T tensor.Real](c *op.Call) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	m, n, k := c.In[0].Shape[0], c.In[1].Shape[0], c.In[0].Shape[1]
	root := c.Node.Attrs.Str("metric", "sqeuclidean") == "euclidean"
	lengths := make([]T, n)
	return func(c *op.Call) error {
		a, b, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		for j := range lengths {
			lengths[j] = square(b[j*k:][:k])
		}
		matmul.Gemm(c.Pool, matmul.Matrices{M: m, N: n, K: k, TransB: true}, a, b, y)
		for i := range m {
			row, length := y[i*n:][:n], square(a[i*k:][:k])
			for j, v := range row {
				d := max(length+lengths[j]-2*v, 0)
				if root {
					d = T(math.Sqrt(float64(d)))
				}
				row[j] = d
			}
		}
		return nil
	}, nil
}

// square returns the sum of squares.
func square[T tensor.Real](v []T) T {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return T(sum)
}
