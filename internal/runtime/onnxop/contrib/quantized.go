package contrib

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/quant"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// QLinearConcat: y_scale, y_zero, then (x, scale, zero) for each part.

func inferQLinearConcat(c *op.Call) error {
	if len(c.In) < 5 || (len(c.In)-2)%3 != 0 {
		return fmt.Errorf("%d inputs", len(c.In))
	}
	if err := c.NeedInputs(len(c.In)); err != nil {
		return err
	}
	if !quant.IsByte(c.In[1]) {
		return op.Unsupported("output of %v", c.In[1].Type)
	}
	shape := slices.Clone(c.In[2].Shape)
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), len(shape))
	if err != nil {
		return err
	}
	shape[axis] = 0
	for i := 2; i < len(c.In); i += 3 {
		s := slices.Clone(c.In[i].Shape)
		if len(s) != len(shape) || !quant.IsByte(c.In[i]) {
			return fmt.Errorf("part %s of %v", tensor.FormatShape(s), c.In[i].Type)
		}
		n := s[axis]
		if s[axis] = shape[axis]; !slices.Equal(s, shape) {
			return fmt.Errorf("part %s does not fit", tensor.FormatShape(c.In[i].Shape))
		}
		shape[axis] += n
	}
	return c.Result(c.In[1].Type, shape)
}

func prepareQLinearConcat(c *op.Call) (op.Run, error) {
	axis := op.Must(op.Axis(c.Node.Attrs.Int("axis", 0), c.In[2].Rank()))
	outer, inner := tensor.Elements(c.Out[0].Shape[:axis]), tensor.Elements(c.Out[0].Shape[axis:])
	parts := (len(c.In) - 2) / 3
	tables, same, starts := make([][256]uint8, parts), make([]bool, parts), make([]int, parts)
	// scales finds the parts whose quantisation equals that of the result.
	scales := func(c *op.Call) {
		ys, yz := quant.ScalarScale(c, 0)
		for p := range parts {
			i := 2 + 3*p
			xs, xz := quant.ScalarScale(c, i+1)
			if same[p] = xs == ys && xz == yz && c.In[i].Type == c.Out[0].Type; !same[p] {
				quant.Translate(&tables[p], c.In[i].Type, xs, xz, c.Out[0].Type, ys, yz)
			}
		}
	}
	known := c.Known(0, 1)
	for p, at := 0, 0; p < parts; p++ {
		starts[p] = at
		at += tensor.Elements(c.In[2+3*p].Shape[axis:])
		known = known && c.Known(3+3*p, 4+3*p)
	}
	if known {
		scales(c)
		for p, at := range starts {
			if i := 2 + 3*p; same[p] && outer == 1 {
				c.NoteCopy(op.CopyRange{OutOffset: at, In: i, Bytes: c.In[i].Bytes()})
			}
		}
	}
	// Work items of parts, those of a row one after the other.
	pieces := func(c *op.Call, lo, hi int) {
		for i := lo; i < hi; i++ {
			o, p := i/parts, i%parts
			x := c.In[2+3*p]
			n := tensor.Elements(x.Shape[axis:])
			src, dst := x.Data[o*n:][:n], c.Out[0].Data[o*inner+starts[p]:][:n]
			if same[p] {
				if n > 0 && &dst[0] != &src[0] {
					copy(dst, src)
				}
			} else {
				element.Lookup(dst, src, &tables[p])
			}
		}
	}
	return func(c *op.Call) error {
		if !known {
			scales(c)
		}
		workers.Do(c.Pool, outer*parts, max(1, element.Grain*parts/max(1, inner)), c, pieces)
		return nil
	}, nil
}

// QGemm: a, a_scale, a_zero, b, b_scale, b_zero, c (int32), y_scale, y_zero.
// Without y_scale the result is float.

// qgemm is the geometry of a quantised Gemm.
type qgemm struct{ *matmul.GemmShape }

func newQGemm(c *op.Call) (*qgemm, error) {
	if !quant.IsByte(c.In[0]) || !quant.IsByte(c.In[3]) {
		return nil, op.Unsupported("QGemm of %v and %v", c.In[0].Type, c.In[3].Type)
	}
	v, err := matmul.NewGemm(&op.Call{Node: c.Node, In: []*tensor.Tensor{c.In[0], c.In[3], c.Input(6)}})
	if err != nil {
		return nil, err
	}
	kind := tensor.Float32
	if c.Has(7) {
		if kind = c.In[0].Type; c.Has(8) {
			kind = c.In[8].Type
		}
	}
	c.SetOut(0, kind, []int{v.M, v.N})
	return &qgemm{v}, nil
}

func prepareQGemm(c *op.Call) (op.Run, error) {
	v := op.Must(newQGemm(c))
	if n := c.In[4].Len(); n != 1 && n != v.N || c.In[1].Len() != 1 {
		return nil, fmt.Errorf("scales %s and %s", tensor.FormatShape(c.In[1].Shape), tensor.FormatShape(c.In[4].Shape))
	}
	if z := c.In[5].Len(); z != 1 && z != v.N {
		return nil, fmt.Errorf("zero points %s", tensor.FormatShape(c.In[5].Shape))
	}
	product := newQGemmProduct(c, v)
	scales := make([]float32, c.In[4].Len())
	r := &quantise.Rescale{Scales: make([]float32, v.N), Bias: make([]int32, v.N)}
	zeros := r.Bias
	// A per-column bias is added during requantisation, others to the sums before it.
	bias, ok := elem.Elements[int32](c, 6), c.Has(7)
	columns := ok && product.packed != nil && (!c.Has(6) || v.Cr == 0 && v.Cc == 1)
	workspace := v.M * v.N
	if columns {
		workspace = gemm.RescaledScratch(c.Pool, v.M, v.N)
	}
	sums := op.ScratchOf[int32](c, workspace)
	return func(c *op.Call) error {
		bias = elem.Elements[int32](c, 6)
		tensor.Read(scales, c.In[4], 0)
		as := v.Alpha * float32(tensor.At(c.In[1], 0))
		if ok {
			ys := float32(tensor.At(c.In[7], 0))
			for i := range r.Scales {
				r.Scales[i] = as * scales[min(i, len(scales)-1)] / ys
			}
			if r.Bias = zeros; columns && bias != nil {
				r.Bias = bias
			}
			quant.PrepareRescale(c.Out[0].Type, r, quant.Zero(c.Input(8)))
		}
		if columns {
			product.fill(c)
			gemm.MultiplyRescaled(c.Pool, v.M, c.In[0].Data, product.tables, product.packed, sums, r, c.Out[0].Data)
			return nil
		}
		product.sums(c, sums)
		if bias != nil {
			v.addBias(sums, bias)
		}
		if ok {
			quantise.RescaleMatrix(c.Pool, c.Out[0].Data, sums, r)
			return nil
		}
		y := tensor.Of[float32](c.Out[0])
		for i, s := range sums {
			y[i] = float32(s) * (as * scales[min(i%v.N, len(scales)-1)])
		}
		return nil
	}, nil
}

// addBias adds a bias of any shape that extends to that of the result.
func (v *qgemm) addBias(sums, bias []int32) {
	for i := range v.M {
		row := sums[i*v.N:][:v.N]
		for j := range row {
			row[j] += bias[i*v.Cr+j*v.Cc]
		}
	}
}

// lift widens the weights, less the zero points of the columns.
func (v *qgemm) lift(c *op.Call, b []int32) {
	quant.Lift(b, c.In[3], 0)
	bz := quant.Zeros(c.In[5])
	for i := range b {
		col := i % v.N
		if v.TransB {
			col = i / v.K
		}
		b[i] -= bz[min(col, len(bz)-1)]
	}
}

// qgemmProduct makes the sums of products: with weights packed once where they are constant.
type qgemmProduct struct {
	sums   func(c *op.Call, sums []int32)
	packed *gemm.PackedInt8 // nil where weights are not
	tables []gemm.ByteTable
}

func newQGemmProduct(c *op.Call, v *qgemm) *qgemmProduct {
	p := &qgemmProduct{tables: make([]gemm.ByteTable, 1)}
	if c.Const(3) && c.Const(5) && !v.TransA && v.K > 0 {
		c.Keep(v.N * v.K)
		w := gemm.NewPackedInt8(v.N, v.K).SetRows(v.M, c.ConstantsExceedCache())
		if v.M < 4 && !w.UsesSIMD() {
			b := make([]int32, v.K*v.N)
			v.lift(c, b)
			p.sums = thinProduct(c, v, b)
			return p
		}
		vec, elem := 1, v.N
		if v.TransB {
			vec, elem = v.K, 1
		}
		if z := quant.Zeros(c.In[5]); slices.Max(z) == slices.Min(z) {
			quant.Pack(c.Pool, w, c.In[3], 0, z[0], vec, elem)
		} else {
			b := make([]int32, v.K*v.N)
			v.lift(c, b)
			w.Fill(b, vec, elem)
		}
		c.Kernel = w.Name(v.M)
		p.packed = w
		p.sums = func(c *op.Call, sums []int32) {
			p.fill(c)
			gemm.MultiplyInt8(c.Pool, v.M, c.In[0].Data, p.tables, w, sums)
		}
		return p
	}
	c.Kernel = "unpacked"
	a, b := op.ScratchOf[int32](c, v.M*v.K), op.ScratchOf[int32](c, v.K*v.N)
	p.sums = func(c *op.Call, sums []int32) {
		quant.Lift(a, c.In[0], quant.Zero(c.In[2]))
		v.lift(c, b)
		matmul.PlainGemm(c.Pool, matmul.Matrices{M: v.M, N: v.N, K: v.K, TransA: v.TransA, TransB: v.TransB}, a, b, sums)
	}
	return p
}

// fill reads the zero point of the activations of a run.
func (p *qgemmProduct) fill(c *op.Call) {
	p.tables[0].Fill(c.In[0].Type == tensor.Int8, quant.Zero(c.In[2]))
}

// thinProduct is for few rows, where the panels of the packed kernel would be mostly
// empty: each sum walks a column of the constant weights b, which lie in one piece.
func thinProduct(c *op.Call, v *qgemm, b []int32) func(c *op.Call, sums []int32) {
	c.Kernel = "thin"
	w := b
	if !v.TransB {
		w = make([]int32, len(b))
		for i := range v.K {
			for j := range v.N {
				w[j*v.K+i] = b[i*v.N+j]
			}
		}
	}
	a := op.ScratchOf[int32](c, v.M*v.K)
	var y []int32 // of the run, whose loop is made once
	columns := func(lo, hi int) {
		for j := lo; j < hi; j++ {
			col := w[j*v.K:][:v.K]
			for i := range v.M {
				y[i*v.N+j] = dotInts(a[i*v.K:][:v.K], col)
			}
		}
	}
	return func(c *op.Call, sums []int32) {
		quant.Lift(a, c.In[0], quant.Zero(c.In[2]))
		y = sums
		c.Pool.For(v.N, max(1, 1<<14/v.K), columns)
	}
}

// dotInts adds up products in four sums side by side.
func dotInts(a, b []int32) int32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 int32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// MatMulIntegerToFloat: a, b, a_scale, b_scale, a_zero, b_zero, bias. The result is
// the integer product times the scales.

func inferMatMulIntegerToFloat(c *op.Call) error { return matmul.InferProduct(c, 0, 1, c.In[2].Type) }

func prepareMatMulIntegerToFloat(c *op.Call) (op.Run, error) {
	q, err := matmul.NewIntMatMul(c, 0, 4, 1, 5)
	if err != nil {
		return nil, err
	}
	if n := c.In[3].Len(); n != 1 && n != q.N || c.In[2].Len() != 1 {
		return nil, fmt.Errorf("scales %s and %s", tensor.FormatShape(c.In[2].Shape), tensor.FormatShape(c.In[3].Shape))
	}
	if b := c.Input(6); b != nil && b.Len() != q.N {
		return nil, fmt.Errorf("bias %s", tensor.FormatShape(b.Shape))
	}
	s := newScaling(c, q.N)
	s.act = c.Activation
	return func(c *op.Call) error {
		q.Sums(c, s.workspace(c))
		s.run(c, tensor.Single[float32](c.In[2]), tensor.Of[float32](c.In[3]), elem.Elements[float32](c, 6))
		return nil
	}, nil
}

// scaling turns integer sums into floats: times a, times b of the column, plus the column's bias.
type scaling struct {
	n          int // columns
	factors    []float32
	sums       []int32 // where the results will be: no memory of their own
	bias, y    []float32
	act        activation.Clamp
	part       func(worker, lo, hi int)
	rowsAtOnce int
}

// newScaling makes one for sums of n columns.
func newScaling(c *op.Call, n int) *scaling {
	s := &scaling{n: n, factors: op.ScratchOf[float32](c, n), rowsAtOnce: max(1, element.Grain/max(1, n))}
	s.part = s.rows
	return s
}

// workspace is for the sums that run scales.
func (s *scaling) workspace(c *op.Call) []int32 {
	s.sums = tensor.Of[int32](&tensor.Tensor{Data: c.Out[0].Data})
	return s.sums
}

func (s *scaling) run(c *op.Call, a float32, b, bias []float32) {
	for i := range s.factors {
		s.factors[i] = a * b[min(i, len(b)-1)]
	}
	s.y, s.bias = tensor.Of[float32](c.Out[0]), bias
	if s.n > 0 {
		c.Pool.ForWorker(len(s.sums)/s.n, s.rowsAtOnce, s.part)
	}
	s.y, s.sums, s.bias = nil, nil, nil
}

func (s *scaling) rows(_, lo, hi int) {
	e := simd.ElementKernels()
	for r := lo; r < hi; r++ {
		y, sums := s.y[r*s.n:][:s.n], s.sums[r*s.n:][:s.n]
		if e != nil {
			k := e.ToFloats(y, sums)
			tensor.Convert(y[k:], sums[k:])
			e.Mul(y, y, s.factors)
			if s.bias != nil {
				e.Add(y, y, s.bias)
			}
			elem.Clamp(s.act, y)
			continue
		}
		for i, v := range sums {
			y[i] = float32(v) * s.factors[i]
			if s.bias != nil {
				y[i] += s.bias[i]
			}
		}
		elem.Clamp(s.act, y)
	}
}

// DynamicQuantizeMatMul: float a, b, b_scale, b_zero, bias. The activations are
// quantised to uint8 over their range at each run.

func inferDynamicQuantizeMatMul(c *op.Call) error {
	if err := matmul.InferProduct(c, 0, 1, tensor.Float32); err != nil {
		return err
	}
	if c.In[0].Type != tensor.Float32 || !quant.IsByte(c.In[1]) {
		return op.Unsupported("%v times %v", c.In[0].Type, c.In[1].Type)
	}
	return nil
}

func prepareDynamicQuantizeMatMul(c *op.Call) (op.Run, error) {
	v := op.Must(matmul.NewBatched(c.In[0].Shape, c.In[1].Shape))
	if n := c.In[2].Len(); n != 1 && n != v.N {
		return nil, fmt.Errorf("scales %s", tensor.FormatShape(c.In[2].Shape))
	}
	if b := c.Input(4); b != nil && b.Len() != v.N {
		return nil, fmt.Errorf("bias %s", tensor.FormatShape(b.Shape))
	}
	quantized := &tensor.Tensor{Type: tensor.Uint8, Shape: c.In[0].Shape, Data: c.Scratch(c.In[0].Len())}
	in := c.In
	c.In = append([]*tensor.Tensor{quantized}, in[1:]...)
	q, err := matmul.NewIntMatMul(c, 0, -1, 1, 3)
	c.In = in
	if err != nil {
		return nil, err
	}
	s := newScaling(c, v.N)
	return func(c *op.Call) error {
		x := tensor.Of[float32](c.In[0])
		scale, zero := quant.Dynamic(x)
		quant.QuantizeReal(quantized, 0, x, scale, zero)
		q.Product(c, quantized, []int32{zero}, s.workspace(c))
		s.run(c, scale, tensor.Of[float32](c.In[2]), elem.Elements[float32](c, 4))
		return nil
	}, nil
}
