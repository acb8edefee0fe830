package nn

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// intMatMul multiplies int8/uint8 operands into int32 sums. Zero points may be
// one for all, one a row of a, or one a column of b.
type intMatMul struct {
	*batched
	flat   batched // the batch folded into the rows where that is possible
	b      []int32
	ai, bi int
	az, bz int
	tables []kernel.ByteTable // values of a less their zero point: one, or one a row
	// packed holds every matrix of a constant b, or the one in work.
	packed []*kernel.PackedQ
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
	q := &intMatMul{batched: v, flat: *v, ai: ai, bi: bi, az: az, bz: bz, tables: make([]kernel.ByteTable, 1)}
	if z := c.Input(az); z != nil && z.Len() != 1 && z.Len() != v.m && z.Len()*v.k != c.In[ai].Len() {
		return nil, fmt.Errorf("zero point %s for %s", tensor.FormatShape(z.Shape), tensor.FormatShape(c.In[ai].Shape))
	}
	if z := c.Input(bz); z != nil && z.Len() != 1 && z.Len() != v.n && z.Len()*v.k != c.In[bi].Len() {
		return nil, fmt.Errorf("zero point %s for %s", tensor.FormatShape(z.Shape), tensor.FormatShape(c.In[bi].Shape))
	}
	if z := c.Input(az); z != nil && z.Len() > 1 {
		q.tables = make([]kernel.ByteTable, v.m)
	} else {
		q.flat.fold()
	}
	if c.Const(bi) && (!c.Has(bz) || c.Const(bz)) {
		q.b = make([]int32, c.In[bi].Len())
		q.liftB(c)
		for at := 0; at < len(q.b); at += v.k * v.n {
			q.packed = append(q.packed, q.pack(kernel.NewPackedQ(v.n, v.k), at))
		}
		q.b, q.ready = nil, true
		return q, nil
	}
	q.b = op.ScratchOf[int32](c, c.In[bi].Len())
	q.packed = append(q.packed, kernel.NewPackedQ(v.n, v.k))
	return q, nil
}

func (q *intMatMul) pack(p *kernel.PackedQ, at int) *kernel.PackedQ {
	p.Fill(q.b[at:], 1, q.n)
	return p
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

// sums computes the product into y.
func (q *intMatMul) sums(c *op.Call, y []int32) {
	q.product(c, c.In[q.ai], zeros(c.Input(q.az)), y)
}

// product is sums for the left operand x with zero points z.
func (q *intMatMul) product(c *op.Call, x *tensor.Tensor, z []int32, y []int32) {
	if q.k == 0 || len(y) == 0 {
		clear(y)
		return
	}
	if !q.ready {
		q.liftB(c)
	}
	last := -1
	q.flat.each(func(pa, pb, pc int) {
		for i := range q.tables {
			if len(z) > 1 || pc == 0 {
				zero := first(z)
				if len(z) > 1 {
					zero = z[(pa/q.k+i)%len(z)]
				}
				q.tables[i].Fill(x.Type == tensor.Int8, zero)
			}
		}
		b := q.packed[0]
		if q.ready {
			b = q.packed[pb/(q.k*q.n)]
		} else if pb != last {
			last = pb
			q.pack(b, pb)
		}
		kernel.GemmQ(c.Pool, q.flat.m, x.Data[pa:], q.tables, b, y[pc:])
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
	sums := op.ScratchOf[int32](c, c.Out[0].Len())
	return func(c *op.Call) error {
		q.sums(c, sums)
		ys, zero := float32(tensor.At(c.In[6], 0)), first(zeros(c.In[7]))
		if as == 1 && bs == 1 {
			scale := float32(tensor.At(c.In[1], 0)) * float32(tensor.At(c.In[4], 0)) / ys
			requantize(c.Out[0], 0, sums, 0, scale, zero)
			return nil
		}
		q.each(func(pa, pb, pc int) {
			for i := range q.m {
				for j := range q.n {
					at := pc + i*q.n + j
					s := float32(tensor.At(c.In[1], (pa/max(q.k, 1)+i)%as)) * float32(tensor.At(c.In[4], (pb/max(q.k, 1)+j)%bs))
					requantize(c.Out[0], at, sums[at:at+1], 0, s/ys, zero)
				}
			}
		})
		return nil
	}, nil
}
