package math

import (
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/onnxop/elem"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// reduction names a reduction operator.
type reduction uint8

const (
	redSum reduction = iota
	redMean
	redProd
	redMax
	redMin
	redL1
	redL2
	redSumSquare
	redLogSum
	redLogSumExp
)

// reduceMask tells which dimensions are reduced. The axes are an attribute in
// older operator sets and an input in newer ones. Without axes all dimensions
// are reduced, or with noop_with_empty_axes none.
func reduceMask(c *op.Call) ([]bool, error) {
	if err := c.NeedInputs(1); err != nil {
		return nil, err
	}
	axes := c.Node.Attrs.Ints("axes")
	if x := c.Input(1); x != nil && x.Len() > 0 {
		var err error
		if axes, err = op.Ints(x); err != nil {
			return nil, err
		}
	}
	rank := c.In[0].Rank()
	mask := make([]bool, rank)
	for _, a := range axes {
		a, err := op.Axis(a, rank)
		if err != nil {
			return nil, err
		}
		mask[a] = true
	}
	if len(axes) == 0 && !c.Node.Attrs.Bool("noop_with_empty_axes", false) {
		for i := range mask {
			mask[i] = true
		}
	}
	return mask, nil
}

func inferReduce(c *op.Call) error {
	mask, err := reduceMask(c)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, reducedShape(c.In[0].Shape, mask, c.Node.Attrs.Bool("keepdims", true)))
	return nil
}

func reducedShape(shape []int, mask []bool, keep bool) []int {
	out := make([]int, 0, len(shape))
	for i, d := range shape {
		switch {
		case !mask[i]:
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// axes is a list of dimensions with their strides in elements.
type axes struct{ n, stride []int }

// offset is the place of the i-th index tuple in row-major order.
func (a *axes) offset(i int) int {
	off := 0
	for d := len(a.n) - 1; d >= 0; d-- {
		off += i % a.n[d] * a.stride[d]
		i /= a.n[d]
	}
	return off
}

func (a *axes) len() int { return tensor.Elements(a.n) }

// reducePlan splits a tensor into the dimensions that stay and those that go,
// after merging neighbours, with the innermost one apart because it is walked
// contiguously.
type reducePlan struct {
	kept, gone axes // without the innermost dimension
	inner      int  // its length
	rows       bool // the innermost dimension is reduced
	count      int  // elements behind each result
}

func newReducePlan(shape []int, mask []bool) reducePlan {
	p := reducePlan{inner: 1, rows: true, count: 1}
	var n []int
	var red []bool
	for i, d := range shape {
		if mask[i] {
			p.count *= d
		}
		switch last := len(n) - 1; {
		case d == 1:
		case last >= 0 && red[last] == mask[i]:
			n[last] *= d
		default:
			n, red = append(n, d), append(red, mask[i])
		}
	}
	stride := 1
	for i := len(n) - 1; i >= 0; i-- {
		switch {
		case i == len(n)-1:
			p.inner, p.rows = n[i], red[i]
		case red[i]:
			p.gone.n, p.gone.stride = append(p.gone.n, n[i]), append(p.gone.stride, stride)
		default:
			p.kept.n, p.kept.stride = append(p.kept.n, n[i]), append(p.kept.stride, stride)
		}
		stride *= n[i]
	}
	for _, s := range [][]int{p.kept.n, p.kept.stride, p.gone.n, p.gone.stride} {
		slices.Reverse(s)
	}
	return p
}

// reducer folds elements of type T with an accumulator of type A.
type reducer[T tensor.Number, A any] struct {
	start A
	row   func(acc A, src []T) A   // many elements into one accumulator
	cols  func(acc []A, src []T)   // each element into its own
	merge func(a, b A) A           // for sums of parts
	done  func(acc A, count int) T // the result
}

// colTile is the number of accumulators that column-wise reductions keep at a time.
const colTile = 1024

// rowPart is the size of the parts of a whole-tensor reduction. It is fixed, so
// that the result does not depend on the number of threads.
const rowPart = 32 << 10

type reduceRun[T tensor.Number, A any] struct {
	reducer[T, A]
	p       reducePlan
	in, out []T
	acc     []A // colTile for each worker
	parts   []A
	tiles   int
	body    func(worker, lo, hi int)
}

func newReduceRun[T tensor.Number, A any](pool *workers.Pool, p reducePlan, r reducer[T, A]) *reduceRun[T, A] {
	run := &reduceRun[T, A]{reducer: r, p: p}
	switch {
	case p.rows && p.kept.len() == 1 && p.gone.len() == 1 && p.inner > 2*rowPart:
		run.parts = make([]A, (p.inner+rowPart-1)/rowPart)
		run.body = func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				run.parts[i] = run.row(run.start, run.in[i*rowPart:min((i+1)*rowPart, p.inner)])
			}
		}
	case p.rows:
		run.body = run.rowWork
	default:
		run.acc = make([]A, colTile*pool.Threads())
		run.tiles = (p.inner + colTile - 1) / colTile
		run.body = run.colWork
	}
	return run
}

func (r *reduceRun[T, A]) run(pool *workers.Pool, out, in []T) {
	r.out, r.in = out, in
	switch {
	case r.parts != nil:
		pool.ForWorker(len(r.parts), 1, r.body)
		acc := r.start
		for _, a := range r.parts {
			acc = r.merge(acc, a)
		}
		out[0] = r.done(acc, r.p.count)
	case r.p.rows:
		pool.ForWorker(len(out), max(1, grain/max(1, r.p.count)), r.body)
	default:
		work := max(1, r.p.gone.len()*min(colTile, r.p.inner))
		pool.ForWorker(r.p.kept.len()*r.tiles, max(1, grain/work), r.body)
	}
	r.out, r.in = nil, nil
}

func (r *reduceRun[T, A]) rowWork(_, lo, hi int) {
	p := &r.p
	gone := p.gone.len()
	for i := lo; i < hi; i++ {
		base, acc := p.kept.offset(i), r.start
		for k := range gone {
			at := base + p.gone.offset(k)
			acc = r.row(acc, r.in[at:at+p.inner])
		}
		r.out[i] = r.done(acc, p.count)
	}
}

func (r *reduceRun[T, A]) colWork(worker, lo, hi int) {
	p := &r.p
	gone := p.gone.len()
	for u := lo; u < hi; u++ {
		row, col := u/r.tiles, u%r.tiles*colTile
		n := min(colTile, p.inner-col)
		acc := r.acc[worker*colTile : worker*colTile+n]
		fillSlice(acc, r.start)
		base := p.kept.offset(row) + col
		for k := range gone {
			at := base + p.gone.offset(k)
			r.cols(acc, r.in[at:at+n])
		}
		dst := r.out[row*p.inner+col:]
		for i, a := range acc {
			dst[i] = r.done(a, p.count)
		}
	}
}

// prepareReducer runs r. Axes that are no constants are looked at in each run.
func prepareReducer[T tensor.Number, A any](c *op.Call, r reducer[T, A]) (op.Run, error) {
	mask, err := reduceMask(c)
	if err != nil {
		return nil, err
	}
	run := newReduceRun(c.Pool, newReducePlan(c.In[0].Shape, mask), r)
	fixed := !c.Has(1) || c.Const(1)
	return func(c *op.Call) error {
		if !fixed {
			now, err := reduceMask(c)
			if err != nil {
				return err
			}
			if !slices.Equal(now, mask) {
				mask = now
				run = newReduceRun(c.Pool, newReducePlan(c.In[0].Shape, mask), r)
			}
		}
		run.run(c.Pool, tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[0]))
		return nil
	}, nil
}

func prepareReduce(c *op.Call, k reduction) (op.Run, error) {
	if f := tensor.PickNumber(c.In[0].Type, reduceReal[float32], reduceReal[float64],
		reduceInt[int8, int64], reduceInt[int16, int64], reduceInt[int32, int64], reduceInt[int64, int64],
		reduceInt[uint8, uint64], reduceInt[uint16, uint64], reduceInt[uint32, uint64], reduceInt[uint64, uint64]); f != nil {
		return f(c, k)
	}
	if c.In[0].Type == tensor.Bool && (k == redMax || k == redMin) {
		return prepareReducer(c, extreme[uint8](k, 0, 1))
	}
	return nil, badType(c, 0)
}

func reduceDefs() []op.Def {
	var out []op.Def
	for _, e := range []struct {
		name string
		kind reduction
	}{
		{"ReduceSum", redSum},
		{"ReduceMean", redMean},
		{"ReduceProd", redProd},
		{"ReduceMax", redMax},
		{"ReduceMin", redMin},
		{"ReduceL1", redL1},
		{"ReduceL2", redL2},
		{"ReduceSumSquare", redSumSquare},
		{"ReduceLogSum", redLogSum},
		{"ReduceLogSumExp", redLogSumExp},
	} {
		types := elem.Numbers
		if e.kind == redMax || e.kind == redMin {
			types = slices.Concat(elem.Numbers, elem.Bools)
		}
		out = append(out, op.Def{
			Domain: graph.ONNX, Name: e.name, Since: 1, Types: types, Infer: inferReduce,
			Prepare: elem.Widen(func(c *op.Call) (op.Run, error) { return prepareReduce(c, e.kind) }),
		})
	}
	return out
}
