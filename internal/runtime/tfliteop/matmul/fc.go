// Package matmul implements TFLite's fully connected layers and batched matrix multiplications.
package matmul

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		layer.Shaped(op.Def{Name: "FULLY_CONNECTED", Types: layer.ConvTypes, Fuses: true}, shapeFC, inferFC, prepareFC),
		{Name: "BATCH_MATMUL", Types: []tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16}, Infer: inferMatmul, Prepare: prepareMatmul},
	}
	return layer.InTFLite(defs)
}

// fcShape is the product [rows, in] x [out, in]ᵀ.
type fcShape struct{ rows, in, out int }

func shapeFC(c *op.Call) (fcShape, error) {
	var s fcShape
	if err := c.NeedInputs(2); err != nil {
		return s, err
	}
	w := c.In[1].Shape
	if len(w) != 2 {
		return s, c.Errorf("weights have rank %d, 2 was expected", len(w))
	}
	s.out, s.in = w[0], w[1]
	if s.in < 1 || c.In[0].Len()%s.in != 0 {
		return s, c.Errorf("input %s does not divide into rows of %d", tensor.FormatShape(c.In[0].Shape), s.in)
	}
	s.rows = c.In[0].Len() / s.in
	if c.Has(2) && c.In[2].Len() != 0 && c.In[2].Len() != s.out {
		return s, c.Errorf("%d biases for %d outputs", c.In[2].Len(), s.out)
	}
	if f := c.Node.Attrs.Str("weights_format", "DEFAULT"); f != "DEFAULT" {
		return s, op.Unsupported("weights format %s", f)
	}
	return s, nil
}

func inferFC(c *op.Call, s fcShape) {
	shape := []int{s.rows, s.out}
	x := c.In[0].Shape
	if c.Node.Attrs.Bool("keep_num_dims", false) && len(x) > 0 && x[len(x)-1] == s.in {
		shape = append(append([]int{}, x[:len(x)-1]...), s.out)
	}
	c.SetOut(0, layer.OutType(c, c.In[0].Type), shape)
}

func prepareFC(c *op.Call, s fcShape) (op.Run, error) {
	x, w := c.In[0].Type, c.In[1].Type
	switch {
	case x == tensor.Float32 && layer.IsHybrid(w) && c.Const(1) && layer.Quantised(c.In[1]):
		return hybridFC(c, s)
	case x == tensor.Float32:
		return floatFC(c, s)
	case x == tensor.Int8 && (w == tensor.Int8 || w == tensor.Int4 || w == tensor.Int2):
		return intFC[int8](c, s)
	case x == tensor.Uint8 && w == tensor.Uint8:
		return intFC[uint8](c, s)
	case x == tensor.Int16 && (w == tensor.Int8 || w == tensor.Int4):
		return wideFC(c, s)
	}
	return nil, op.Unsupported("%v input with %v weights", x, w)
}

func floatFC(c *op.Call, s fcShape) (op.Run, error) {
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	g := gemm.Params{M: s.rows, N: s.out, K: s.in, TransB: true, Act: act, Exact: true}
	if c.Const(1) && c.In[1].Type != tensor.Float32 {
		c.Keep(c.In[1].Bytes())
	}
	if m := fourBits(c, s); m != nil {
		c.Copied(1)
		c.Kernel = m.Name()
		return func(c *op.Call) error {
			bias, err := layer.BiasOf(c, 2)
			if err == nil {
				m.Run(c.Pool, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), bias, act)
			}
			return err
		}, nil
	}
	var packed *gemm.PackedB
	// Packed even for one row: adjacent columns are then faster than rows of weights, with each
	// sum in order.
	if c.Const(1) {
		w, err := layer.Floats(c.In[1])
		if err != nil {
			return nil, err
		}
		far := c.ConstantsExceedCache()
		packed = op.Share(c, 1, fmt.Sprintf("rows %t", g.M == 1), func() *gemm.PackedB {
			c.Keep(4 * s.in * s.out)
			return gemm.PackForRows(g.M, far, s.in, s.out, w, 0, true)
		})
		c.Copied(1)
		c.Kernel = packed.Name(g)
	}
	return func(c *op.Call) (err error) {
		g := g
		if g.BiasN, err = layer.BiasOf(c, 2); err != nil {
			return err
		}
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		if packed != nil {
			gemm.MultiplyPacked(c.Pool, g, x, packed, y)
			return nil
		}
		w, err := layer.Floats(c.In[1])
		if err != nil {
			return err
		}
		gemm.Multiply(c.Pool, g, x, w, y)
		return nil
	}, nil
}

// fourBits reads constant block-quantised 4-bit weights in place for a single row; nil for others.
func fourBits(c *op.Call, s fcShape) *gemm.Int4Matrix {
	w := c.In[1]
	q := w.Quant
	if !c.Const(1) || s.rows != 1 || w.Type != tensor.Int4 || q == nil || q.Block <= 0 || q.Axis != 1 || slices.ContainsFunc(q.Zero, func(z int64) bool { return z != 0 }) {
		return nil
	}
	return gemm.NewInt4Matrix(s.in, s.out, q.Block, w.Data, q.Scale)
}

// fcMultipliers differ from those of convolution for per-tensor quantised weights: the product of
// the input scales is rounded to float32 first.
func fcMultipliers(c *op.Call, out int) ([]fixed.Multiplier, error) {
	if !layer.Quantised(c.In[1]) {
		return nil, op.Unsupported("weights without quantisation")
	}
	if len(c.In[1].Quant.Scale) > 1 {
		return layer.ChannelMultipliers(c.In[0], c.In[1], c.Out[0], out)
	}
	si, so, _, _, err := layer.InOut(c)
	product := si * c.In[1].Quant.Scale[0]
	return []fixed.Multiplier{fixed.FromReal(float64(product) / float64(so))}, err
}

func intFC[T int8 | uint8](c *op.Call, s fcShape) (op.Run, error) {
	if c.Out[0].Type != c.In[0].Type && c.Out[0].Type != tensor.Int16 {
		return nil, op.Unsupported("%v input with %v output", c.In[0].Type, c.Out[0].Type)
	}
	if c.In[1].Quant != nil && c.In[1].Quant.Block > 0 {
		return nil, op.Unsupported("blockwise weights with integer activations")
	}
	by, err := fcMultipliers(c, s.out)
	if err != nil {
		return nil, err
	}
	_, zx, err := layer.ScaleOf(c.In[0])
	if err != nil {
		return nil, err
	}
	q, err := layer.Requant(c, by)
	if err != nil {
		return nil, err
	}
	q.SetSteps(s.in, zx)
	if c.Has(2) && c.In[2].Len() > 0 {
		if c.In[2].Type != tensor.Int32 || !c.Const(2) {
			return nil, op.Unsupported("%v biases that are not constant int32", c.In[2].Type)
		}
		q.Bias = tensor.Of[int32](c.In[2])
	}
	c.Recipe = recipe.Dense{Rows: s.rows, In: s.in, Out: s.out, Zero: zx, Sums: layer.SumsOf(q)}
	// Without SIMD packing pays off from a few rows on.
	if c.Const(1) && s.rows > 0 && s.out > 0 && s.in > 0 && (simd.IntKernels() != nil || s.rows >= 4) {
		packed, err := packFC(c, s)
		if err != nil {
			return nil, err
		}
		return packedFC[T](c, s, packed, zx, &q), nil
	}
	var w []int16
	if c.Const(1) {
		if w, err = layer.Weights(c.In[1]); err != nil {
			return nil, err
		}
	}
	c.Kernel = "rows"
	xq := op.ScratchOf[int32](c, s.in)
	return func(c *op.Call) error {
		w := w
		if w == nil {
			var err error
			if w, err = layer.Weights(c.In[1]); err != nil {
				return err
			}
		}
		x := tensor.Of[T](c.In[0])
		for r := range s.rows {
			for i, v := range x[r*s.in:][:s.in] {
				xq[i] = int32(v) - zx
			}
			workers.Do(c.Pool, s.out, max(1, 16384/max(1, s.in)), rowArgs{c.Out[0], r * s.out, s.in, xq, w, &q}, rowArgs.outputs)
		}
		return nil
	}, nil
}

// packFC packs weights, once for all layers that read them.
func packFC(c *op.Call, s fcShape) (*gemm.PackedInt8, error) {
	far := c.ConstantsExceedCache()
	type packing struct {
		q   *gemm.PackedInt8
		err error
	}
	p := op.Share(c, 1, fmt.Sprintf("int8 rows %t", far && s.rows == 1), func() packing {
		c.Keep(s.in * s.out)
		q := gemm.NewPackedInt8(s.out, s.in).SetRows(s.rows, far)
		return packing{q, layer.ReadWeights(c.In[1],
			func(w []int8, zero int32) { gemm.FillInt8(c.Pool, q, w, zero, s.in, 1) },
			func(w []uint8, zero int32) { gemm.FillInt8(c.Pool, q, w, zero, s.in, 1) },
			func(w []int16) { gemm.FillInt8(c.Pool, q, w, 0, s.in, 1) })}
	})
	return p.q, p.err
}

// packedFC multiplies by the packed weights.
func packedFC[T int8 | uint8](c *op.Call, s fcShape, packed *gemm.PackedInt8, zero int32, q *quantise.Requant) op.Run {
	c.Kernel = packed.Name(s.rows)
	table := make([]gemm.ByteTable, 1)
	table[0].Fill(c.In[0].Type == tensor.Int8, zero)
	packed = packed.PrepareZero(&table[0])
	sums := op.ScratchOf[int32](c, s.rows*s.out)
	return func(c *op.Call) error {
		gemm.MultiplyInt8(c.Pool, s.rows, c.In[0].Data, table, packed, sums)
		if c.Out[0].Type == tensor.Int16 {
			quantise.RequantRows(c.Pool, tensor.Of[int16](c.Out[0]), sums, s.out, q)
			return nil
		}
		quantise.RequantRows(c.Pool, tensor.Of[T](c.Out[0]), sums, s.out, q)
		return nil
	}
}

// rowArgs holds the arguments of a work item of a row of outputs that begins at at.
type rowArgs struct {
	y      *tensor.Tensor
	at, in int
	x      []int32
	w      []int16
	q      *quantise.Requant
}

// outputs computes outputs lo to hi.
func (t rowArgs) outputs(lo, hi int) {
	for o := lo; o < hi; o++ {
		v := t.q.One(dot(t.x, t.w[o*t.in:][:t.in]), o)
		switch t.y.Type {
		case tensor.Int8:
			tensor.Of[int8](t.y)[t.at+o] = int8(v)
		case tensor.Uint8:
			tensor.Of[uint8](t.y)[t.at+o] = uint8(v)
		default:
			tensor.Of[int16](t.y)[t.at+o] = int16(v)
		}
	}
}

func dot(x []int32, w []int16) int32 {
	x = x[:len(w)]
	var a, b, d, e int32
	for len(w) >= 4 && len(x) >= 4 {
		p, q := (*[4]int32)(x), (*[4]int16)(w)
		a += p[0] * int32(q[0])
		b += p[1] * int32(q[1])
		d += p[2] * int32(q[2])
		e += p[3] * int32(q[3])
		x, w = x[4:], w[4:]
	}
	for i, v := range w {
		a += x[i] * int32(v)
	}
	return a + b + d + e
}

func wideFC(c *op.Call, s fcShape) (op.Run, error) {
	if c.Out[0].Type != tensor.Int16 {
		return nil, op.Unsupported("int16 input with %v output", c.Out[0].Type)
	}
	if !c.Const(1) || c.Has(2) && !c.Const(2) {
		return nil, op.Unsupported("int16 input with weights that are not constant")
	}
	by, err := fcMultipliers(c, s.out)
	if err != nil {
		return nil, err
	}
	q, err := layer.Requant16(c, by, 2)
	if err != nil {
		return nil, err
	}
	c.Keep(2 * s.out * s.in)
	w, err := layer.Integers(c.In[1])
	if err != nil {
		return nil, err
	}
	c.Recipe = recipe.Dense{Rows: s.rows, In: s.in, Out: s.out, Sums: layer.WideSumsOf(q)}
	if p := gemm.NewPackedInt16(s.out, s.in); s.in > 0 && p.UsesSIMD() {
		p.Fill(w, s.in, 1)
		c.Kernel = p.Name(s.rows)
		product := gemm.NewInt16(p, q)
		return layer.Direct(func(p *workers.Pool, x, y []int16) { product.Run(p, s.rows, x, y) }), nil
	}
	return layer.Ranges(s.rows*s.out, max(1, 16384/max(1, s.in)), func(y, x []int16, lo, hi int) {
		for i := lo; i < hi; i++ {
			r, o := i/s.out, i%s.out
			var acc int64
			row := x[r*s.in:][:s.in]
			for k, v := range w[o*s.in:][:s.in] {
				acc += int64(row[k]) * int64(v)
			}
			y[i] = q.One(acc, o)
		}
	}), nil
}

// hybridFC quantises each row of a float input to 8 bits and scales the integer sums back.
func hybridFC(c *op.Call, s fcShape) (op.Run, error) {
	if c.In[1].Quant.Block > 0 {
		return floatFC(c, s) // blockwise weights are used as float
	}
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	c.Keep(s.out * s.in)
	h, err := layer.NewHybrid(c.In[1], s.out, s.in, s.rows == 1 && c.ConstantsExceedCache(), c.Node.Attrs.Bool("asymmetric_quantize_inputs", false))
	if err != nil {
		return nil, err
	}
	c.Kernel = "hybrid"
	h.Together(s.rows)
	return func(c *op.Call) error {
		bias, err := layer.BiasOf(c, 2)
		if err != nil {
			return err
		}
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		h.Rows(c.Pool, s.rows, y, x, bias, act)
		return nil
	}, nil
}
