package matmul

import (
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// prepareEinsumReal computes an equation of two inputs as products of matrices where its output has labels of both
// inputs first, then those of one, then those of the other; any other equation element by element.
func prepareEinsumReal[T tensor.Real](c *op.Call) (op.Run, error) {
	e, err := newEinsum(c)
	if err != nil {
		return nil, err
	}
	if len(c.In) != 2 || c.In[0].Type != c.In[1].Type || tensor.Elements(e.size) == 0 {
		return prepareEinsumOf[T](c)
	}
	left, right := 0, 1
	only := func(d, i int) bool { return e.strides[i][d] != 0 && e.strides[1-i][d] == 0 }
	batch := 0
	for batch < e.kept && !only(batch, 0) && !only(batch, 1) {
		batch++
	}
	if batch < e.kept && only(batch, right) {
		left, right = right, left
	}
	cols := batch
	for cols < e.kept && only(cols, left) {
		cols++
	}
	for d := cols; d < e.kept; d++ {
		if !only(d, right) {
			return prepareEinsumOf[T](c)
		}
	}
	s := Matrices{M: tensor.Elements(e.size[batch:cols]), N: tensor.Elements(e.size[cols:e.kept]), K: tensor.Elements(e.size[e.kept:])}
	s.Ldc = s.N
	p := &einsumProduct[T]{e: e, s: s, batch: batch, left: left, right: right}
	sums := [2]int{e.kept, len(e.size)}
	p.a = newEinsumMatrix[T](c, e, left, [2]int{batch, cols}, sums)
	p.b = newEinsumMatrix[T](c, e, right, sums, [2]int{cols, e.kept})
	p.s.TransA, p.s.lda = p.a.turned, p.a.step
	p.s.TransB, p.s.ldb = p.b.turned, p.b.step
	return func(c *op.Call) error {
		p.run(c.Pool, tensor.Of[T](c.In[left]), tensor.Of[T](c.In[right]), tensor.Of[T](c.Out[0]))
		return nil
	}, nil
}

// einsumProduct is an equation as products of matrices, one for each place of its first labels.
type einsumProduct[T tensor.Real] struct {
	e           *einsum
	s           Matrices
	batch       int // how many of the labels say which product
	left, right int
	a, b        einsumMatrix[T]
}

// smallProduct is up to how many multiplications products are computed side by side, where there are several for each worker.
const smallProduct = 1 << 22

func (p *einsumProduct[T]) run(w *workers.Pool, x, y, out []T) {
	n := tensor.Elements(p.e.size[:p.batch])
	if p.a.room == nil && p.b.room == nil && n >= 2*w.Threads() && p.s.M*p.s.N*p.s.K <= smallProduct {
		w.For(n, 1, func(lo, hi int) { p.products(nil, x, y, out, lo, hi) })
		return
	}
	p.products(w, x, y, out, 0, n)
}

// products computes products lo to hi.
func (p *einsumProduct[T]) products(w *workers.Pool, x, y, out []T, lo, hi int) {
	e, size := p.e, p.e.size[:p.batch]
	at := make([]int, p.batch)
	tensor.Unravel(lo, size, at)
	for i := lo; i < hi; i++ {
		xs, ys := 0, 0
		for d, q := range at {
			xs += q * e.strides[p.left][d]
			ys += q * e.strides[p.right][d]
		}
		Gemm(w, p.s, p.a.matrix(x[xs:]), p.b.matrix(y[ys:]), out[i*p.s.M*p.s.N:][:p.s.M*p.s.N])
		tensor.Next(at, size)
	}
}

// einsumMatrix is an operand of such a product: read where it lies if its rows or its columns are lines of memory, else
// gathered.
type einsumMatrix[T tensor.Real] struct {
	turned       bool // columns are lines
	step         int  // from line to line; 0 means tight
	room         []T  // for a matrix that is gathered
	size, stride []int
}

// newEinsumMatrix has the labels of rows and of columns, as ranges.
func newEinsumMatrix[T tensor.Real](c *op.Call, e *einsum, input int, rows, cols [2]int) (m einsumMatrix[T]) {
	high, down, okDown := e.line(input, rows)
	wide, right, okRight := e.line(input, cols)
	if okDown && okRight && high > 0 && wide > 0 {
		switch {
		case (right == 1 || wide == 1) && (down >= wide || high == 1):
			m.step = max(down, wide)
			return m
		case (down == 1 || high == 1) && (right >= high || wide == 1):
			m.turned, m.step = true, max(right, high)
			return m
		}
	}
	for _, r := range [][2]int{rows, cols} {
		m.size = append(m.size, e.size[r[0]:r[1]]...)
		m.stride = append(m.stride, e.strides[input][r[0]:r[1]]...)
	}
	m.room = op.ScratchOf[T](c, high*wide)
	return m
}

// line tells how many places labels from and to have together, and how far apart they lie in an input if that is the same everywhere.
func (e *einsum) line(input int, labels [2]int) (n, step int, ok bool) {
	n, ok = 1, true
	for d := labels[1] - 1; d >= labels[0]; d-- {
		size, s := e.size[d], e.strides[input][d]
		switch {
		case size == 1:
			continue
		case n == 1:
			step = s
		case s != n*step:
			ok = false
		}
		n *= size
	}
	return n, step, ok && (n == 1 || step > 0)
}

// matrix is the operand that begins with x.
func (m *einsumMatrix[T]) matrix(x []T) []T {
	if m.room == nil {
		return x
	}
	gatherStrided(m.room, x, m.size, m.stride)
	return m.room
}

// gatherStrided writes the elements of src, whose axes have sizes and strides, one behind the other.
func gatherStrided[T tensor.Real](dst, src []T, size, stride []int) {
	if len(size) == 0 {
		dst[0] = src[0]
		return
	}
	last := len(size) - 1
	at := make([]int, last)
	for n, step := size[last], stride[last]; len(dst) > 0; dst = dst[n:] {
		p := 0
		for d, i := range at {
			p += i * stride[d]
		}
		for k := range dst[:n] {
			dst[k] = src[p]
			p += step
		}
		tensor.Next(at, size[:last])
	}
}
