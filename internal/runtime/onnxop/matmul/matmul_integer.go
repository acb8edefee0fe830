package matmul

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/quant"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// intMatMul multiplies int8/uint8 operands into int32 sums. Zero points may be per tensor, per
// row of a, or per column of b.
type intMatMul struct {
	*Batched
	flat   Batched // the batch folded into the rows where that is possible
	b      []int32
	ai, bi int
	az, bz int
	tables []gemm.ByteTable // values of a less their zero point: one, or one a row
	// packed holds every matrix of a constant b, or the current one of each thread.
	packed []*gemm.PackedInt8
	ready  bool
	// shared says that each thread computes some products of the batch with piece; now is the
	// current run.
	shared bool
	piece  func(worker, lo, hi int)
	now    intRun
	zs     []int32 // zero points of a in the run
}

// intRun is a run of all products: sums to y, or requantised values to out by rescale.
type intRun struct {
	c         *op.Call
	x         *tensor.Tensor
	z         []int32
	y         []int32
	out       []uint8
	rescale   *quantise.Rescale
	workspace []int32 // for sums that become codes
	last      []int   // where the matrix of b lies that a thread has packed
}

// NewIntMatMul prepares a product of 8-bit matrices; ai, az, bi and bz are the inputs with the
// operands and their zero points.
func NewIntMatMul(c *op.Call, ai, az, bi, bz int) (*intMatMul, error) {
	if !quant.IsByte(c.In[ai]) || !quant.IsByte(c.In[bi]) {
		return nil, op.Unsupported("%s of %v and %v", c.Node.Op, c.In[ai].Type, c.In[bi].Type)
	}
	v, err := NewBatched(c.In[ai].Shape, c.In[bi].Shape)
	if err != nil {
		return nil, err
	}
	q := &intMatMul{Batched: v, flat: *v, ai: ai, bi: bi, az: az, bz: bz, tables: make([]gemm.ByteTable, 1)}
	if z := c.Input(az); z != nil && z.Len() != 1 && z.Len() != v.M && z.Len()*v.K != c.In[ai].Len() {
		return nil, fmt.Errorf("zero point %s for %s", tensor.FormatShape(z.Shape), tensor.FormatShape(c.In[ai].Shape))
	}
	if z := c.Input(bz); z != nil && z.Len() != 1 && z.Len() != v.N && z.Len()*v.K != c.In[bi].Len() {
		return nil, fmt.Errorf("zero point %s for %s", tensor.FormatShape(z.Shape), tensor.FormatShape(c.In[bi].Shape))
	}
	if z := c.Input(az); z != nil && z.Len() > 1 {
		q.tables = make([]gemm.ByteTable, v.M)
	} else {
		q.flat.fold()
	}
	if c.Const(bi) && (!c.Has(bz) || c.Const(bz)) {
		q.packConst(c)
		q.ready = true
		if len(q.packed) > 0 {
			c.Kernel = q.packed[0].Name(q.flat.M)
		}
		return q, nil
	}
	c.Kernel = "unpacked"
	if z := c.Input(bz); z != nil && z.Len() > 1 {
		q.b = op.ScratchOf[int32](c, c.In[bi].Len())
	}
	n := 1
	if t := c.Pool.Threads(); len(q.tables) == 1 && q.flat.apart(t) {
		q.shared, n = true, t
	}
	for range n {
		q.packed = append(q.packed, gemm.NewPackedInt8(v.N, v.K))
	}
	q.now.last = make([]int, n)
	q.piece = q.products
	return q, nil
}

// workspace returns the number of sums that codes needs as a buffer.
func (q *intMatMul) workspace(p *workers.Pool) int {
	if q.shared {
		return p.Threads() * gemm.RescaledScratch(nil, q.M, q.N)
	}
	return gemm.RescaledScratch(p, q.flat.M, q.N)
}

// packConst packs a constant b, directly from the file if it has one zero point.
func (q *intMatMul) packConst(c *op.Call) {
	c.Keep(c.In[q.bi].Len())
	z := quant.Zeros(c.Input(q.bz))
	if len(z) > 1 && slices.Max(z) == slices.Min(z) {
		z = z[:1]
	}
	if len(z) > 1 {
		q.b = make([]int32, c.In[q.bi].Len())
		q.liftB(c)
	}
	for at := 0; at < c.In[q.bi].Len(); at += q.K * q.N {
		p := gemm.NewPackedInt8(q.N, q.K).SetRows(q.flat.M, c.ConstantsExceedCache())
		if len(z) > 1 {
			gemm.FillInt8(c.Pool, p, q.b[at:], 0, 1, q.N)
		} else {
			quant.Pack(c.Pool, p, c.In[q.bi], at, quant.First(z), 1, q.N)
		}
		q.packed = append(q.packed, p)
	}
	q.b = nil
}

// pack packs a matrix of a b that is not constant, from its first element on.
func (q *intMatMul) pack(c *op.Call, pool *workers.Pool, to *gemm.PackedInt8, at int) {
	if q.b != nil {
		to.Fill(q.b[at:], 1, q.N)
		return
	}
	quant.Pack(pool, to, c.In[q.bi], at, quant.Zero(c.Input(q.bz)), 1, q.N)
}

func (q *intMatMul) liftB(c *op.Call) {
	z := quant.Zeros(c.Input(q.bz))
	if len(z) <= 1 {
		quant.Lift(q.b, c.In[q.bi], quant.First(z))
		return
	}
	quant.Lift(q.b, c.In[q.bi], 0)
	for i := range q.b {
		// Columns of the zero points follow the matrices of the batch, if they have a batch.
		q.b[i] -= z[(i/(q.K*q.N)*q.N+i%q.N)%len(z)]
	}
}

// Sums computes the product into y.
func (q *intMatMul) Sums(c *op.Call, y []int32) { q.Product(c, c.In[q.ai], q.zeros(c), y) }

// zeros returns the zero points of a in a run.
func (q *intMatMul) zeros(c *op.Call) []int32 {
	z := quant.ZerosIn(q.zs, c.Input(q.az))
	if z != nil {
		q.zs = z
	}
	return z
}

// Product is Sums for the left operand x with zero points z.
func (q *intMatMul) Product(c *op.Call, x *tensor.Tensor, z []int32, y []int32) {
	if q.K == 0 || len(y) == 0 {
		clear(y)
		return
	}
	q.run(intRun{c: c, x: x, z: z, y: y})
}

// codes computes quantised results with the prepared r; sums is a buffer for some rows, see
// [intMatMul.workspace].
func (q *intMatMul) codes(c *op.Call, sums []int32, r *quantise.Rescale) {
	x, y := c.In[q.ai], c.Out[0].Data
	if q.K == 0 {
		clear(sums)
		for at := 0; at < len(y); at += len(sums) {
			part := y[at:min(at+len(sums), len(y))]
			quantise.RescaleMatrix(c.Pool, part, sums[:len(part)], r)
		}
		return
	}
	q.run(intRun{c: c, x: x, z: q.zeros(c), out: y, rescale: r, workspace: sums})
}

// run computes all products.
func (q *intMatMul) run(r intRun) {
	if !q.ready && q.b != nil {
		q.liftB(r.c)
	}
	r.last = q.now.last
	element.Fill(r.last, -1)
	q.now = r
	n, pool := tensor.Elements(q.flat.batch), r.c.Pool
	if q.shared {
		q.tables[0].Fill(r.x.Type == tensor.Int8, quant.First(r.z))
		pool.ForWorker(n, q.flat.together(byteRate), q.piece)
	} else {
		for i := range n {
			q.product(pool, 0, i)
		}
	}
	q.now = intRun{last: r.last}
}

// byteRate is roughly how many 8-bit multiply-accumulates a thread computes per nanosecond,
// including packing and requantisation in each run.
const byteRate = 30

// products computes the products of batch elements lo to hi, on one thread.
func (q *intMatMul) products(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		q.product(nil, worker, i)
	}
}

// product computes the product of batch element i.
func (q *intMatMul) product(pool *workers.Pool, worker, i int) {
	r, v := &q.now, &q.flat
	pa, pb, pc := v.place(i)
	for t := range q.tables {
		if !q.shared && (len(r.z) > 1 || i == 0) {
			zero := quant.First(r.z)
			if len(r.z) > 1 {
				zero = r.z[(pa/q.K+t)%len(r.z)]
			}
			q.tables[t].Fill(r.x.Type == tensor.Int8, zero)
		}
	}
	b := q.packed[worker]
	if q.ready {
		b = q.packed[pb/(q.K*q.N)]
	} else if pb != r.last[worker] {
		r.last[worker] = pb
		q.pack(r.c, pool, b, pb)
	}
	if r.out == nil {
		gemm.MultiplyInt8(pool, v.M, r.x.Data[pa:], q.tables, b, r.y[pc:])
		return
	}
	sums := r.workspace
	if q.shared {
		each := len(sums) / len(q.packed)
		sums = sums[worker*each:][:each]
	}
	gemm.MultiplyRescaled(pool, v.M, r.x.Data[pa:], q.tables, b, sums, r.rescale, r.out[pc:])
}

func inferMatMulInteger(c *op.Call) error { return InferProduct(c, 0, 1, tensor.Int32) }

func prepareMatMulInteger(c *op.Call) (op.Run, error) {
	q, err := NewIntMatMul(c, 0, 2, 1, 3)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		q.Sums(c, tensor.Of[int32](c.Out[0]))
		return nil
	}, nil
}

// Inputs of QLinearMatMul: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.

func inferQLinearMatMul(c *op.Call) error { return InferProduct(c, 0, 3, c.In[7].Type) }

func prepareQLinearMatMul(c *op.Call) (op.Run, error) {
	q, err := NewIntMatMul(c, 0, 2, 3, 5)
	if err != nil {
		return nil, err
	}
	if !quant.IsByte(c.In[7]) {
		return nil, op.Unsupported("output of %v", c.In[7].Type)
	}
	as, bs := c.In[1].Len(), c.In[4].Len()
	if as != 1 && as != q.M && as*q.K != c.In[0].Len() || bs != 1 && bs != q.N && bs*q.K != c.In[3].Len() || c.In[6].Len() != 1 || c.In[7].Len() != 1 {
		return nil, op.Unsupported("scales of shapes %s, %s, %s", tensor.FormatShape(c.In[1].Shape),
			tensor.FormatShape(c.In[4].Shape), tensor.FormatShape(c.In[6].Shape))
	}
	if as == 1 && (bs == 1 || bs == q.N) {
		sums := op.ScratchOf[int32](c, q.workspace(c.Pool))
		r := &quantise.Rescale{Scales: make([]float32, bs), Bias: make([]int32, bs)}
		return func(c *op.Call) error {
			xs, ys := float32(tensor.At(c.In[1], 0)), float32(tensor.At(c.In[6], 0))
			tensor.Read(r.Scales, c.In[4], 0)
			for i, w := range r.Scales {
				r.Scales[i] = xs * w / ys
			}
			quant.PrepareRescale(c.Out[0].Type, r, quant.Zero(c.In[7]))
			if c.Out[0].Len() > 0 {
				q.codes(c, sums, r)
			}
			return nil
		}, nil
	}
	sums := op.ScratchOf[int32](c, c.Out[0].Len())
	return func(c *op.Call) error {
		q.Sums(c, sums)
		ys, zero := float32(tensor.At(c.In[6], 0)), quant.Zero(c.In[7])
		q.Each(func(pa, pb, pc int) {
			for i := range q.M {
				for j := range q.N {
					at := pc + i*q.N + j
					s := float32(tensor.At(c.In[1], (pa/max(q.K, 1)+i)%as)) * float32(tensor.At(c.In[4], (pb/max(q.K, 1)+j)%bs))
					quant.Requantize(c.Out[0], at, sums[at:at+1], 0, s/ys, zero)
				}
			}
		})
		return nil
	}, nil
}
