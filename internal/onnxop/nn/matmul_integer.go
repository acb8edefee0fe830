package nn

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// intMatMul multiplies int8/uint8 operands into int32 sums. Zero points may be
// one for all, one a row of a, or one a column of b.
type intMatMul struct {
	*batched
	a, b   []int32
	ai, bi int
	az, bz int
	ready  bool
}

func newIntMatMul(c *op.Call, ai, az, bi, bz int) (*intMatMul, error) {
	if !isSmallInt(c.In[ai]) || !isSmallInt(c.In[bi]) {
		return nil, op.Unsupported("%s of %v and %v", c.Node.Op, c.In[ai].Type, c.In[bi].Type)
	}
	v, err := newBatched(c.In[ai].Shape, c.In[bi].Shape)
	if err != nil {
		return nil, err
	}
	q := &intMatMul{batched: v, ai: ai, bi: bi, az: az, bz: bz}
	if z := c.Input(az); z != nil && z.Len() != 1 && z.Len() != v.m && z.Len()*v.k != c.In[ai].Len() {
		return nil, fmt.Errorf("zero point %s for %s", tensor.FormatShape(z.Shape), tensor.FormatShape(c.In[ai].Shape))
	}
	if z := c.Input(bz); z != nil && z.Len() != 1 && z.Len() != v.n && z.Len()*v.k != c.In[bi].Len() {
		return nil, fmt.Errorf("zero point %s for %s", tensor.FormatShape(z.Shape), tensor.FormatShape(c.In[bi].Shape))
	}
	q.a = scratch[int32](c, c.In[ai].Len())
	q.b = scratch[int32](c, c.In[bi].Len())
	if c.Const(bi) && (!c.Has(bz) || c.Const(bz)) {
		q.liftB(c)
		q.ready = true
	}
	return q, nil
}

func (q *intMatMul) liftB(c *op.Call) {
	z := zeros(c.Input(q.bz))
	if len(z) <= 1 {
		lift(q.b, c.In[q.bi], first(z))
		return
	}
	lift(q.b, c.In[q.bi], 0)
	for i := range q.b {
		// Columns of the zero points follow the matrices of the batch, if they do.
		q.b[i] -= z[(i/(q.k*q.n)*q.n+i%q.n)%len(z)]
	}
}

func (q *intMatMul) liftA(c *op.Call) {
	z := zeros(c.Input(q.az))
	if len(z) <= 1 {
		lift(q.a, c.In[q.ai], first(z))
		return
	}
	lift(q.a, c.In[q.ai], 0)
	for i := range q.a {
		q.a[i] -= z[i/q.k%len(z)]
	}
}

// sums computes the product into y.
func (q *intMatMul) sums(c *op.Call, y []int32) {
	if !q.ready {
		q.liftB(c)
	}
	q.liftA(c)
	q.each(func(pa, pb, pc int) {
		plainGemm(c.Pool, matrices{m: q.m, n: q.n, k: q.k}, q.a[pa:], q.b[pb:], y[pc:])
	})
}

func inferMatMulInteger(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	v, err := newBatched(c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return err
	}
	c.SetOut(0, tensor.Int32, v.out)
	return nil
}

func prepareMatMulInteger(c *op.Call) (op.Run, error) {
	q, err := newIntMatMul(c, 0, 2, 1, 3)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		q.sums(c, tensor.Of[int32](c.Out[0]))
		return nil
	}, nil
}

// Inputs of QLinearMatMul: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.

func inferQLinearMatMul(c *op.Call) error {
	if err := c.NeedInputs(8); err != nil {
		return err
	}
	v, err := newBatched(c.In[0].Shape, c.In[3].Shape)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[7].Type, v.out)
	return nil
}

func prepareQLinearMatMul(c *op.Call) (op.Run, error) {
	q, err := newIntMatMul(c, 0, 2, 3, 5)
	if err != nil {
		return nil, err
	}
	if !isSmallInt(c.In[7]) {
		return nil, op.Unsupported("output of %v", c.In[7].Type)
	}
	as, bs := c.In[1].Len(), c.In[4].Len()
	if as != 1 && as != q.m && as*q.k != c.In[0].Len() || bs != 1 && bs != q.n && bs*q.k != c.In[3].Len() || c.In[6].Len() != 1 || c.In[7].Len() != 1 {
		return nil, op.Unsupported("scales of shapes %s, %s, %s", tensor.FormatShape(c.In[1].Shape),
			tensor.FormatShape(c.In[4].Shape), tensor.FormatShape(c.In[6].Shape))
	}
	sums := scratch[int32](c, c.Out[0].Len())
	return func(c *op.Call) error {
		q.sums(c, sums)
		ys, zero := float32(number(c.In[6], 0)), first(zeros(c.In[7]))
		if as == 1 && bs == 1 {
			scale := float32(number(c.In[1], 0)) * float32(number(c.In[4], 0)) / ys
			requantize(c.Out[0], 0, sums, 0, scale, zero)
			return nil
		}
		q.each(func(pa, pb, pc int) {
			for i := range q.m {
				for j := range q.n {
					at := pc + i*q.n + j
					s := float32(number(c.In[1], (pa/max(q.k, 1)+i)%as)) * float32(number(c.In[4], (pb/max(q.k, 1)+j)%bs))
					requantize(c.Out[0], at, sums[at:at+1], 0, s/ys, zero)
				}
			}
		})
		return nil
	}, nil
}
