package matmul

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/arith"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// matmul is a batch of products of m×k by k×n matrices.
type matmul struct {
	m, n, k    int
	adjX, adjY bool
	shape      []int
	x, y       []int // offsets of each product's operands, in elements
}

func shapeMatmul(c *op.Call) (*matmul, error) {
	if err := c.NeedInputs(2); err != nil {
		return nil, err
	}
	return newMatmul(c, c.In[0].Shape, c.In[1].Shape, c.Node.Attrs.Bool("adj_x", false), c.Node.Attrs.Bool("adj_y", false))
}

// newMatmul is the product of operands of two shapes, whose matrices are transposed if adjX and
// adjY.
func newMatmul(c *op.Call, x, y []int, adjX, adjY bool) (*matmul, error) {
	if len(x) < 2 || len(y) < 2 {
		return nil, c.Errorf("inputs of rank %d and %d, at least 2 was expected", len(x), len(y))
	}
	t := &matmul{adjX: adjX, adjY: adjY}
	t.m, t.k = x[len(x)-2], x[len(x)-1]
	if t.adjX {
		t.m, t.k = t.k, t.m
	}
	k, n := y[len(y)-2], y[len(y)-1]
	if t.adjY {
		k, n = n, k
	}
	t.n = n
	if k != t.k {
		return nil, c.Errorf("inner dimensions %d and %d differ", t.k, k)
	}
	bx, by := x[:len(x)-2], y[:len(y)-2]
	batch, err := tensor.Broadcast(bx, by)
	if err != nil {
		return nil, err
	}
	t.shape = append(append([]int{}, batch...), t.m, t.n)
	w, err := arith.NewBroadcast(bx, by)
	if err != nil {
		return nil, err
	}
	for r := w.Runs(0, w.Len); r.Next(); {
		for i := range r.N {
			t.x = append(t.x, (r.Off[0]+i*w.Step[0])*t.m*t.k)
			t.y = append(t.y, (r.Off[1]+i*w.Step[1])*t.k*t.n)
		}
	}
	return t, nil
}

func inferMatmul(c *op.Call) error {
	if c.Node.Attrs.Has(op.AttrScores) {
		t, err := shapeAttend(c)
		if err == nil {
			c.SetOut(0, tensor.Float32, t.shape)
		}
		return err
	}
	t, err := shapeMatmul(c)
	if err != nil {
		return err
	}
	c.SetOut(0, layer.OutType(c, c.In[0].Type), t.shape)
	return nil
}

func prepareMatmul(c *op.Call) (op.Run, error) {
	if c.Node.Attrs.Has(op.AttrScores) {
		return prepareAttend(c)
	}
	t, err := shapeMatmul(c)
	if err != nil {
		return nil, err
	}
	x, y, o := c.In[0].Type, c.In[1].Type, c.Out[0].Type
	switch {
	case x == tensor.Float32 && y == tensor.Float32:
		c.Kernel = gemm.Name(t.params())
		return t.float, nil
	case x == tensor.Float32 && y == tensor.Int8 && layer.Quantised(c.In[1]):
		c.Kernel = "hybrid"
		return t.hybrid(c)
	case x == tensor.Int8 && y == tensor.Int8 && o == tensor.Int8:
		return matmulQuant[int8, int8](c, t)
	case x == tensor.Int16 && y == tensor.Int16 && o == tensor.Int16:
		return matmulQuant[int16, int16](c, t)
	case x == tensor.Int16 && y == tensor.Int8 && o == tensor.Int16:
		return matmulQuant[int16, int8](c, t)
	case x == tensor.Int8 && y == tensor.Int8 && o == tensor.Int32:
		return t.whole(), nil
	}
	return nil, op.Unsupported("%v times %v to %v", x, y, o)
}

func (t *matmul) params() gemm.Params {
	return gemm.Params{M: t.m, N: t.n, K: t.k, TransA: t.adjX, TransB: t.adjY, Exact: true}
}

func (t *matmul) float(c *op.Call) error {
	a := batchArgs{t, c.Pool, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.Out[0])}
	if n, threads := len(t.x), c.Pool.Threads(); threads == 1 || n%threads > 0 && n < 4*threads {
		a.products(0, n)
		return nil
	}
	// Each thread computes whole products, and packs its own right-hand operands.
	a.pool = nil
	workers.Do(c.Pool, len(t.x), max(1, workers.Grain(20)/max(1, t.m*t.n*t.k)), a, batchArgs.products)
	return nil
}

// batchArgs holds the arguments of a work item of a batch of products; pool divides each product.
type batchArgs struct {
	*matmul
	pool    *workers.Pool
	x, y, o []float32
}

// products computes products lo to hi.
func (a batchArgs) products(lo, hi int) {
	t := a.matmul
	for b := lo; b < hi; b++ {
		gemm.Multiply(a.pool, t.params(), a.x[t.x[b]:][:t.m*t.k], a.y[t.y[b]:][:t.k*t.n], a.o[b*t.m*t.n:][:t.m*t.n])
	}
}

// hybrid quantises each row of the float operand. The other operand may change from run to run.
func (t *matmul) hybrid(c *op.Call) (op.Run, error) {
	if len(c.In[1].Quant.Scale) > 1 {
		return nil, op.Unsupported("float times int8 by channel")
	}
	if _, _, err := layer.ScaleOf(c.In[1]); err != nil {
		return nil, err
	}
	var turned []float32
	if t.adjX {
		turned = op.ScratchOf[float32](c, t.m*t.k)
	}
	fixed := map[int]*layer.Hybrid{} // by the place of a constant operand
	other := func(c *op.Call, at int) *layer.Hybrid {
		h := fixed[at]
		if h == nil {
			vec, elem := t.steps()
			h = layer.HybridOf(tensor.Of[int8](c.In[1])[at:][:t.k*t.n], t.n, t.k, vec, elem, c.In[1].Quant.Scale, t.m == 1 && c.Const(1) && c.ConstantsExceedCache(), c.Node.Attrs.Bool("asymmetric_quantize_inputs", false))
			h.Together(t.m)
		}
		return h
	}
	if c.Const(1) {
		for _, at := range t.y {
			fixed[at] = other(c, at)
		}
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		for b := range t.x {
			from := x[t.x[b]:][:t.m*t.k]
			if t.adjX {
				move.Transpose(turned, t.k, from, t.m, t.m, t.k)
				from = turned
			}
			other(c, t.y[b]).Rows(c.Pool, t.m, y[b*t.m*t.n:][:t.m*t.n], from, nil, activation.Clamp{})
		}
		return nil
	}, nil
}

// matmulSums calls f with the index and the value of every sum of (x-zx)·(y-zy), in plain Go.
type matmulSums[X, Y int8 | int16] struct {
	*matmul
	x      []X
	y      []Y
	zx, zy int32
	f      func(i int, acc int64)
}

func (s matmulSums[X, Y]) run(p *workers.Pool) {
	workers.Each(p, len(s.matmul.x)*s.m, max(1, layer.Grain/max(1, s.n*s.k)), s)
}

// Piece computes rows lo to hi of all products.
func (s matmulSums[X, Y]) Piece(lo, hi int) {
	t := s.matmul
	sxm, sxk := t.k, 1
	if t.adjX {
		sxm, sxk = 1, t.m
	}
	syn, syk := t.steps()
	var workspace [64]int64 // of sums of a row side by side
	for r := lo; r < hi; r++ {
		b, m := r/t.m, r%t.m
		if sxk == 1 && syk == 1 {
			row := s.x[t.x[b]+m*t.k:][:t.k]
			for n := range t.n {
				s.f(r*t.n+n, offsetDot(row, s.y[t.y[b]+n*t.k:][:t.k], s.zx, s.zy))
			}
			continue
		}
		for n0 := 0; n0 < t.n; n0 += len(workspace) {
			acc := workspace[:min(len(workspace), t.n-n0)]
			clear(acc)
			for k := range t.k {
				v := int64(s.x[t.x[b]+m*sxm+k*sxk]) - int64(s.zx)
				at := t.y[b] + k*syk + n0*syn
				if syn == 1 {
					for n, w := range s.y[at:][:len(acc)] {
						acc[n] += v * (int64(w) - int64(s.zy))
					}
					continue
				}
				for n := range acc {
					acc[n] += v * (int64(s.y[at+n*syn]) - int64(s.zy))
				}
			}
			for n, a := range acc {
				s.f(r*t.n+n0+n, a)
			}
		}
	}
}

func matmulQuant[X, Y int8 | int16](c *op.Call, t *matmul) (op.Run, error) {
	scales, zeros, err := layer.ScalesOf(c.In[0], c.In[1], c.Out[0])
	if err != nil {
		return nil, err
	}
	sx, sy, so := scales[0], scales[1], scales[2]
	zx, zy, zo := zeros[0], zeros[1], zeros[2]
	ms := []fixed.Multiplier{fixed.FromReal(float64(sx*sy) / float64(so))}
	if q := c.In[1].Quant; len(q.Scale) > 1 {
		columns := c.In[1].Rank() - 1
		if t.adjY {
			columns--
		}
		if q.Axis != columns || len(q.Scale) != t.n {
			return nil, op.Unsupported("integer products with scales along another axis than the columns")
		}
		ms = make([]fixed.Multiplier, t.n)
		for i, s := range q.Scale {
			ms[i] = fixed.FromReal(float64(sx) * float64(s) / float64(so))
		}
	}
	lo, hi := layer.Limits(c.Out[0].Type)
	wide := c.In[0].Type == tensor.Int16
	c.Recipe = recipe.MatMul{
		M: t.m, N: t.n, K: t.k, AdjX: t.adjX, AdjY: t.adjY, X: t.x, Y: t.y, ZeroX: zx, ZeroY: zy,
		Sums: recipe.Sums{Mul: ms, Zero: zo, Min: lo, Max: hi, Wide: wide},
	}
	q := quantise.Requant{Mul: ms, Zero: zo, Min: lo, Max: hi}
	q16 := &gemm.Requant16{Mul: ms, Zero: zo, Min: lo, Max: hi, Narrow: !wide}
	if w := newWide[Y](c, t, zx, zy, q16); w != nil {
		return w.run, nil
	}
	if w := t.narrow(c, zx, zy, q); w != nil {
		return w.run, nil
	}
	if w := t.few(c, zx, zy, q); w != nil {
		return w.run, nil
	}
	var out []X
	put := func(i int, acc int64) { out[i] = X(q16.One(acc, i%t.n)) }
	return func(c *op.Call) error {
		out = tensor.Of[X](c.Out[0])
		matmulSums[X, Y]{t, tensor.Of[X](c.In[0]), tensor.Of[Y](c.In[1]), zx, zy, put}.run(c.Pool)
		out = nil
		return nil
	}, nil
}

// vectors is a SIMD product of integers: its right-hand operand is packed again when it changes.
type vectors struct {
	*matmul
	zero   int32 // of the right-hand operand
	packed *gemm.PackedInt8
	at     int // offset of the packed operand, negative for none
	always bool
}

// steps returns the strides between columns of a right-hand operand, and within one.
func (t *matmul) steps() (vec, elem int) {
	if t.adjY {
		return t.k, 1
	}
	return 1, t.n
}

// suits reports whether there are SIMD kernels, and packing costs less than they save.
func (t *matmul) suits(c *op.Call) bool {
	return t.k > 0 && t.n > 0 && (c.Const(1) || t.m >= 8)
}

// other reports whether product b of a run has another right-hand operand than the packed one,
// and its offset.
func (v *vectors) other(b int) (at int, other bool) {
	at = v.y[b]
	other = at != v.at || !v.always && b == 0
	v.at = at
	return at, other
}

// wide is a product of 16-bit numbers by 8- or 16-bit numbers.
type wide[Y int8 | int16] struct {
	vectors
	turned []int16 // the left-hand operand of a product in rows, where its columns come
	times  *gemm.Int16
}

// newWide returns nil for other types, and where it is not faster.
func newWide[Y int8 | int16](c *op.Call, t *matmul, zx, zy int32, q *gemm.Requant16) *wide[Y] {
	halves := c.In[1].Type == tensor.Int16
	if c.In[0].Type != tensor.Int16 || zx != 0 || halves && zy != 0 || !t.suits(c) {
		return nil
	}
	w := &wide[Y]{vectors: vectors{t, zy, gemm.NewPackedInt16(t.n, t.k), -1, c.Const(1)}}
	if !w.packed.UsesSIMD() {
		return nil
	}
	if w.times = gemm.NewInt16(w.packed, q); halves {
		w.times = gemm.NewInt16Dynamic(w.packed, q)
	}
	if t.adjX {
		w.turned = op.ScratchOf[int16](c, t.m*t.k)
	}
	c.Kernel = w.packed.Name(w.m)
	return w
}

// run computes all products.
func (w *wide[Y]) run(c *op.Call) error {
	x, y, out := tensor.Of[int16](c.In[0]), tensor.Of[Y](c.In[1]), tensor.Of[int16](c.Out[0])
	size := w.m * w.n
	for b := range w.x {
		if at, other := w.other(b); other {
			vec, elem := w.steps()
			gemm.FillInt8(c.Pool, w.packed, y[at:][:w.k*w.n], w.zero, vec, elem)
		}
		from := x[w.x[b]:][:w.m*w.k]
		if w.adjX {
			move.Transpose16(w.turned, w.k, from, w.m, w.m, w.k)
			from = w.turned
		}
		w.times.Run(c.Pool, w.m, from, out[b*size:][:size])
	}
	return nil
}

// narrow is a product of 8-bit numbers.
type narrow struct {
	vectors
	fixed  map[int]*gemm.PackedInt8 // constant operands by their places
	table  [1]gemm.ByteTable
	turned []uint8 // the left-hand operand of a product in rows, where its columns come
	sums   []int32
	q      quantise.Requant
}

// narrow returns nil for other types, and where it is not faster.
func (t *matmul) narrow(c *op.Call, zx, zy int32, q quantise.Requant) *narrow {
	if c.In[0].Type != tensor.Int8 || !t.suits(c) {
		return nil
	}
	w := &narrow{vectors: vectors{t, zy, gemm.NewPackedInt8(t.n, t.k), -1, c.Const(1)}, q: q}
	if !w.packed.UsesSIMD() {
		return nil
	}
	w.q.SetSteps(t.k, zx)
	w.table[0].Fill(true, zx)
	w.sums = op.ScratchOf[int32](c, t.m*t.n)
	if t.adjX {
		w.turned = op.ScratchOf[uint8](c, t.m*t.k)
	}
	c.Kernel = w.packed.Name(t.m)
	if c.Const(1) {
		w.fixed = map[int]*gemm.PackedInt8{}
		for b := range t.y {
			if at, other := w.other(b); other && w.fixed[at] == nil {
				w.fixed[at] = gemm.NewPackedInt8(t.n, t.k)
				w.fill(nil, w.fixed[at], tensor.Of[int8](c.In[1])[at:])
			}
		}
	}
	return w
}

// fill packs an operand.
func (w *narrow) fill(p *workers.Pool, packed *gemm.PackedInt8, y []int8) {
	vec, elem := w.steps()
	gemm.FillInt8(p, packed, y[:w.k*w.n], w.zero, vec, elem)
}

// run computes all products.
func (w *narrow) run(c *op.Call) error {
	x, y, out := tensor.Of[int8](c.In[0]), tensor.Of[int8](c.In[1]), tensor.Of[int8](c.Out[0])
	size := w.m * w.n
	for b := range w.x {
		packed := w.fixed[w.matmul.y[b]]
		if packed == nil {
			packed = w.packed
			if at, other := w.other(b); other {
				w.fill(c.Pool, packed, y[at:])
			}
		}
		from := quantise.Bits(x[w.x[b]:][:w.m*w.k])
		if w.adjX {
			move.LayoutConverter{N: 1, C: w.k, Area: w.m}.ToNHWC(c.Pool, w.turned, from)
			from = w.turned
		}
		gemm.MultiplyInt8(c.Pool, w.m, from, w.table[:], packed, w.sums)
		quantise.RequantRows(c.Pool, out[b*size:][:size], w.sums, w.n, &w.q)
	}
	return nil
}

// few is a product of few rows of 8-bit numbers, for which packing the right-hand operand costs
// more than it saves.
type few struct {
	*matmul
	zx, zy int32
	sums   []int32
	q      quantise.Requant
}

// few returns nil for other types, and if a sum may exceed 32 bits.
func (t *matmul) few(c *op.Call, zx, zy int32, q quantise.Requant) *few {
	if c.In[0].Type != tensor.Int8 || t.adjX || t.k > math.MaxInt32/(255*255) {
		return nil
	}
	return &few{t, zx, zy, op.ScratchOf[int32](c, len(t.x)*t.m*t.n), q}
}

// run computes all products.
func (w *few) run(c *op.Call) error {
	type args struct {
		*few
		a, b []int8
	}
	workers.Do(c.Pool, len(w.x)*w.m, max(1, layer.Grain/max(1, w.n*w.k)), args{w, tensor.Of[int8](c.In[0]), tensor.Of[int8](c.In[1])}, func(q args, lo, hi int) {
		for r := lo; r < hi; r++ {
			i := r / q.m
			q.row(q.sums[r*q.n:][:q.n], q.a[q.x[i]+r%q.m*q.k:][:q.k], q.b[q.y[i]:][:q.k*q.n])
		}
	})
	quantise.RequantRows(c.Pool, tensor.Of[int8](c.Out[0]), w.sums, w.n, &w.q)
	return nil
}

// row adds up a row.
func (w *few) row(sums []int32, x, y []int8) {
	if w.adjY {
		for j := range sums {
			sums[j] = int32(offsetDot(x, y[j*w.k:][:w.k], w.zx, w.zy))
		}
		return
	}
	var all int32
	clear(sums)
	for i, v := range x {
		v := int32(v) - w.zx
		all += v
		line := y[i*w.n:][:len(sums)]
		for j, u := range line {
			sums[j] += v * int32(u)
		}
	}
	for j := range sums {
		sums[j] -= w.zy * all
	}
}

// offsetDot returns the sum of (x-zx)·(y-zy).
func offsetDot[X, Y int8 | int16](x []X, y []Y, zx, zy int32) int64 {
	y = y[:len(x)]
	var a, b int64
	i := 0
	for ; i+1 < len(x); i += 2 {
		a += int64(int32(x[i])-zx) * int64(int32(y[i])-zy)
		b += int64(int32(x[i+1])-zx) * int64(int32(y[i+1])-zy)
	}
	if i < len(x) {
		a += int64(int32(x[i])-zx) * int64(int32(y[i])-zy)
	}
	return a + b
}

// whole keeps the sums as they are.
func (t *matmul) whole() op.Run {
	var out []int32
	put := func(i int, acc int64) { out[i] = int32(acc) }
	return func(c *op.Call) error {
		out = tensor.Of[int32](c.Out[0])
		matmulSums[int8, int8]{t, tensor.Of[int8](c.In[0]), tensor.Of[int8](c.In[1]), 0, 0, put}.run(c.Pool)
		out = nil
		return nil
	}
}
