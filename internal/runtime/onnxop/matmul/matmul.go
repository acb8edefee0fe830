// Package matmul implements ONNX's matrix multiplications: MatMul, Gemm, Einsum and their
// quantised forms.
package matmul

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

var matrixInts = []tensor.Type{tensor.Int32, tensor.Int64, tensor.Uint32, tensor.Uint64}

// Defs lists the operators of this package.
func Defs() []op.Def {
	codes := elem.Fusing(elem.RealDef("CodesMatMul", op.Needs(3, op.Infer(newCodesProduct)), prepareCodesMatMul, nil))
	codes.Domain = graph.Own
	return []op.Def{
		codes,
		{Name: "MatMul", Since: 1, Types: elem.FloatsAnd(matrixInts...), Infer: op.Needs(2, inferMatMul), Prepare: prepareMatMul, Fuses: true},
		{Name: "Gemm", Since: 1, Types: elem.FloatsAnd(matrixInts...), Infer: op.Needs(2, op.Infer(NewGemm)), Prepare: prepareGemmAny, Fuses: true, AcceptsUniform: takesSame},
		{Name: "Einsum", Since: 12, Infer: op.Infer(newEinsum), Prepare: prepareEinsum},
		{Name: "MatMulInteger", Since: 10, Types: elem.Bytes, Infer: op.Needs(2, inferMatMulInteger), Prepare: prepareMatMulInteger},
		{Name: "QLinearMatMul", Since: 10, Types: elem.Bytes, Infer: op.Needs(8, inferQLinearMatMul), Prepare: prepareQLinearMatMul},
	}
}

// Batched is a MatMul with NumPy's rules: leading axes broadcast, a vector on the left is a row
// and on the right a column.
type Batched struct {
	M, N, K int
	batch   []int // broadcast leading axes
	a, b    []int // strides of the operands in matrices, by batch axis, 0 where broadcast
	Out     []int
}

// NewBatched checks the operands' shapes.
func NewBatched(a, b []int) (*Batched, error) {
	bad := fmt.Errorf("%s times %s", tensor.FormatShape(a), tensor.FormatShape(b))
	if len(a) == 0 || len(b) == 0 {
		return nil, bad
	}
	v := &Batched{M: 1, N: 1, K: a[len(a)-1]}
	ba, bb := a[:len(a)-1], b[:len(b)-1]
	if len(a) > 1 {
		v.M, ba = a[len(a)-2], a[:len(a)-2]
	}
	kb := b[len(b)-1]
	if len(b) > 1 {
		kb, v.N, bb = b[len(b)-2], b[len(b)-1], b[:len(b)-2]
	}
	if kb != v.K {
		return nil, bad
	}
	var err error
	if v.batch, err = tensor.Broadcast(ba, bb); err != nil {
		return nil, err
	}
	v.a, v.b = BroadcastStrides(ba, len(v.batch)), BroadcastStrides(bb, len(v.batch))
	v.Out = slices.Clone(v.batch)
	if len(a) > 1 {
		v.Out = append(v.Out, v.M)
	}
	if len(b) > 1 {
		v.Out = append(v.Out, v.N)
	}
	return v, nil
}

// BroadcastStrides returns row-major strides of a shape aligned to the right of rank axes, 0
// where it broadcasts.
func BroadcastStrides(shape []int, rank int) []int {
	out := make([]int, rank)
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 {
			out[rank-len(shape)+i] = n
		}
		n *= shape[i]
	}
	return out
}

// fold merges the batch into the rows if the right operand is one matrix and the left one is not
// broadcast, so that one large product remains.
func (v *Batched) fold() {
	n := tensor.Elements(v.batch)
	if n == 1 {
		v.batch, v.a, v.b = nil, nil, nil
		return
	}
	if slices.Max(v.b) != 0 || n == 0 {
		return
	}
	want := 1
	for i := len(v.batch) - 1; i >= 0; i-- {
		if v.batch[i] != 1 && v.a[i] != want {
			return
		}
		want *= v.batch[i]
	}
	v.M *= n
	v.batch, v.a, v.b = nil, nil, nil
}

// Each calls f with the indices of the matrices of every batch element.
func (v *Batched) Each(f func(a, b, c int)) { v.each(0, tensor.Elements(v.batch), f) }

// each is Each for elements lo to hi of the batch.
func (v *Batched) each(lo, hi int, f func(a, b, c int)) {
	for i := lo; i < hi; i++ {
		f(v.place(i))
	}
}

// place returns the indices of the matrices of batch element i.
func (v *Batched) place(i int) (a, b, c int) {
	rest := i
	for d := len(v.batch) - 1; d >= 0; d-- {
		at := rest % v.batch[d]
		rest /= v.batch[d]
		a += at * v.a[d]
		b += at * v.b[d]
	}
	return a * v.M * v.K, b * v.K * v.N, i * v.M * v.N
}

// apart reports whether the threads should compute some products of the batch each rather than
// all threads one product after the other.
func (v *Batched) apart(threads int) bool {
	n, small := tensor.Elements(v.batch), 1<<18
	return threads > 1 && n >= threads && (n%threads == 0 || n >= 4*threads || v.M*v.N*v.K <= small)
}

// together returns how many products of the batch make a work item, if a thread computes rate
// multiply-accumulates per nanosecond.
func (v *Batched) together(rate float64) int { return max(1, workers.Grain(rate)/max(1, v.M*v.N*v.K)) }

// InferProduct gives output 0 type t and the shape of the product of inputs a and b.
func InferProduct(c *op.Call, a, b int, t tensor.Type) error {
	v, err := NewBatched(c.In[a].Shape, c.In[b].Shape)
	if err != nil {
		return err
	}
	return c.Result(t, v.Out)
}

func inferMatMul(c *op.Call) error {
	if c.In[0].Type != c.In[1].Type {
		return fmt.Errorf("%v times %v", c.In[0].Type, c.In[1].Type)
	}
	return InferProduct(c, 0, 1, c.In[0].Type)
}

func prepareMatMul(c *op.Call) (op.Run, error) {
	if f := tensor.PickInteger(c.In[0].Type, nil, nil, prepareProduct(clampInts[int32]), prepareProduct(clampInts[int64]), nil, nil, prepareProduct(clampInts[uint32]), prepareProduct(clampInts[uint64])); f != nil {
		return f(c)
	}
	return elem.PrepareReal(c, prepareMatMul32, prepareProduct(elem.Clamp[float64]))
}

// prepareProduct makes a MatMul of types without a packed kernel; clamp applies the activation.
func prepareProduct[T float64 | int32 | int64 | uint32 | uint64](clamp func(act activation.Clamp, y []T)) elem.Prepare {
	return func(c *op.Call) (op.Run, error) {
		v, act := op.Must(NewBatched(c.In[0].Shape, c.In[1].Shape)), c.Activation
		v.fold()
		return func(c *op.Call) error {
			a, b, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
			v.Each(func(pa, pb, pc int) {
				PlainGemm(c.Pool, Matrices{M: v.M, N: v.N, K: v.K}, a[pa:], b[pb:], y[pc:])
			})
			clamp(act, y)
			return nil
		}, nil
	}
}

// clampInts is clamp for integers; values within the bounds keep all their bits.
func clampInts[T tensor.Number](act activation.Clamp, y []T) {
	if !act.On {
		return
	}
	for i, v := range y {
		switch f := float64(v); {
		case f < float64(act.Min):
			y[i] = T(act.Min)
		case f > float64(act.Max):
			y[i] = T(act.Max)
		}
	}
}

func prepareMatMul32(c *op.Call) (op.Run, error) {
	v := op.Must(NewBatched(c.In[0].Shape, c.In[1].Shape))
	v.fold()
	g := gemm.Params{M: v.M, N: v.N, K: v.K, Act: c.Activation}
	if c.Has(2) { // a plan has joined an addition
		if b := c.In[2]; !c.Const(2) || b.Type != tensor.Float32 || b.Len() != v.N || !b.Known() {
			return nil, op.Unsupported("a term %v for %d columns", b.Type, v.N)
		}
		g.BiasN = tensor.Of[float32](c.In[2])
	}
	if v.N == 1 {
		c.Kernel = gemm.GemvName()
		add := element.Add[float32]().VectorScalar
		return func(c *op.Call) error {
			y := tensor.Of[float32](c.Out[0])
			v.columns(c.Pool, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), y)
			if g.BiasN != nil {
				add(y, y, g.BiasN[0])
			}
			elem.Clamp(g.Act, y)
			return nil
		}, nil
	}
	if c.Const(1) && v.batch == nil && tensor.Elements(v.Out) > 0 {
		b := packed(c, v.M, v.K, v.N, false)
		c.Copied(1)
		c.Kernel = b.Name(g)
		return func(c *op.Call) error {
			gemm.MultiplyPacked(c.Pool, g, tensor.Of[float32](c.In[0]), b, tensor.Of[float32](c.Out[0]))
			return nil
		}, nil
	}
	c.Kernel = gemm.Name(g)
	return func(c *op.Call) error {
		v.multiply(c.Pool, g, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.Out[0]))
		return nil
	}, nil
}

// multiply runs the batch: many small products in parallel, or few large ones each on all
// workers.
func (v *Batched) multiply(p *workers.Pool, g gemm.Params, a, b, y []float32) {
	n := tensor.Elements(v.batch)
	if v.M*v.N*n == 0 {
		return
	}
	if !v.apart(p.Threads()) || v.M*v.N*v.K > 1<<22 {
		v.Each(func(pa, pb, pc int) { gemm.Multiply(p, g, a[pa:], b[pb:], y[pc:]) })
		return
	}
	workers.Do(p, n, v.together(floatRate), batch{v, g, a, b, y}, batch.products)
}

// floatRate is roughly how many multiply-accumulates without reuse a thread computes per
// nanosecond.
const floatRate = 10

// columns multiplies matrices by single columns (GEMV).
func (v *Batched) columns(p *workers.Pool, a, b, y []float32) {
	n := tensor.Elements(v.batch)
	if n == 1 {
		gemm.Gemv(p, y[:v.M], a, b[:v.K])
		return
	}
	workers.Do(p, n, max(1, columnGrain/max(1, v.M*v.K)), batch{v: v, a: a, b: b, y: y}, func(q batch, lo, hi int) {
		q.v.each(lo, hi, func(pa, pb, pc int) { gemm.Gemv(nil, q.y[pc:][:q.v.M], q.a[pa:], q.b[pb:][:q.v.K]) })
	})
}

// columnGrain is the number of multiplications of GEMVs from which another worker pays off.
const columnGrain = 1 << 15

// batch holds the arguments of a work item of batched products.
type batch struct {
	v       *Batched
	g       gemm.Params
	a, b, y []float32
}

func (q batch) products(lo, hi int) {
	for i := lo; i < hi; i++ {
		pa, pb, pc := q.v.place(i)
		gemm.Multiply(nil, q.g, q.a[pa:], q.b[pb:], q.y[pc:])
	}
}
