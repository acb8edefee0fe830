package matmul

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// prepareEinsumReal computes an equation of two inputs as GEMMs if possible, of more inputs pair
// by pair, and any other equation line by line.
func prepareEinsumReal[T tensor.Real](c *op.Call) (op.Run, error) {
	e := op.Must(newEinsum(c))
	for _, x := range c.In {
		if x.Type != c.In[0].Type || tensor.Elements(e.size) == 0 {
			return prepareEinsumOf[T](c)
		}
	}
	if len(c.In) == 2 {
		p := newEinsumProduct[T](c, e)
		if p == nil {
			return prepareEinsumOf[T](c)
		}
		p.pack(c)
		return func(c *op.Call) error {
			p.run(c.Pool, tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0]))
			return nil
		}, nil
	}
	stages := newEinsumStages[T](c, e)
	if stages == nil {
		return prepareEinsumOf[T](c)
	}
	in := make([][]T, len(c.In), len(c.In)+len(stages))
	return func(c *op.Call) error {
		for i, x := range c.In {
			in[i] = tensor.Of[T](x)
		}
		have := in
		for _, s := range stages {
			y := s.workspace
			if y == nil {
				y = tensor.Of[T](c.Out[0])
			}
			s.run(c.Pool, have[s.a], have[s.b], y)
			have = append(have, y)
		}
		clear(in)
		return nil
	}, nil
}

// einsumProduct is an equation of two inputs as GEMMs, one for each index of the labels that are
// neither rows nor columns of the result.
type einsumProduct[T tensor.Real] struct {
	s           Matrices
	left, right int      // inputs: the right one has the last label of the result
	size        []int    // of the labels that say which product
	at          [3][]int // their steps in the left operand, the right one and the result
	a, b        einsumMatrix[T]
	// the right operand, where it is a constant and the same in all products; else nil
	packed *gemm.PackedB
}

// newEinsumProduct finds the matrices of an equation of two inputs; nil if nothing is summed, or
// the results are not contiguous.
func newEinsumProduct[T tensor.Real](c *op.Call, e *einsum) *einsumProduct[T] {
	step := tensor.Strides(e.size[:e.kept])
	only := func(d, i int) bool { return e.size[d] == 1 || e.strides[i][d] != 0 && e.strides[1-i][d] == 0 }
	end := e.kept
	for end > 0 && e.size[end-1] == 1 {
		end--
	}
	p := &einsumProduct[T]{left: 0, right: 1}
	if end > 0 && only(end-1, 0) {
		p.left, p.right = 1, 0
	}
	cols := e.kept
	for cols > 0 && only(cols-1, p.right) {
		cols--
	}
	sums := [2]int{e.kept, len(e.size)}
	if tensor.Elements(e.size[e.kept:]) == 1 || cols >= end && end > 0 && !e.together() {
		return nil
	}
	// The largest range of contiguous labels of the left operand becomes the rows.
	var rows [2]int
	for from, d := -1, 0; d <= cols; d++ {
		if d < cols && only(d, p.left) {
			if from < 0 {
				from = d
			}
			continue
		}
		if from >= 0 && tensor.Elements(e.size[from:d]) > tensor.Elements(e.size[rows[0]:rows[1]]) {
			rows = [2]int{from, d}
		}
		from = -1
	}
	for d := range cols {
		if d >= rows[0] && d < rows[1] || e.size[d] == 1 {
			continue
		}
		p.size = append(p.size, e.size[d])
		for k, s := range []int{e.strides[p.left][d], e.strides[p.right][d], step[d]} {
			p.at[k] = append(p.at[k], s)
		}
	}
	p.s = Matrices{M: tensor.Elements(e.size[rows[0]:rows[1]]), N: tensor.Elements(e.size[cols:e.kept]), K: tensor.Elements(e.size[e.kept:])}
	if p.s.Ldc = p.s.N; p.s.M > 1 {
		p.s.Ldc = step[rows[1]-1]
	}
	p.a = newEinsumMatrix[T](c, e, p.left, rows, sums)
	p.b = newEinsumMatrix[T](c, e, p.right, sums, [2]int{cols, e.kept})
	p.s.TransA, p.s.lda = p.a.turned, p.a.step
	p.s.TransB, p.s.ldb = p.b.turned, p.b.step
	return p
}

// pack packs a constant right operand.
func (p *einsumProduct[T]) pack(c *op.Call) {
	if !c.Const(p.right) || slices.Max(append(p.at[1], 0)) > 0 || p.s.M == 1 {
		return
	}
	y, ok := any(tensor.Of[T](c.In[p.right])).([]float32)
	if !ok {
		return
	}
	c.Keep(4 * p.s.K * p.s.N)
	b, step := y, p.s.ldb
	if p.b.workspace != nil {
		b, step = make([]float32, p.s.K*p.s.N), 0
		gatherStrided(b, y, p.b.size, p.b.stride)
		p.b.workspace = nil
	}
	p.packed = gemm.PackB(p.s.K, p.s.N, b, step, p.s.TransB)
	c.Packed(p.right)
	c.Kernel = p.packed.Name(gemm.Params{M: p.s.M, N: p.s.N, K: p.s.K})
}

// together reports whether the summed labels of both inputs are contiguous in memory.
func (e *einsum) together() bool {
	for d := e.kept; d < len(e.size); d++ {
		if e.size[d] > 1 && e.strides[0][d] == 1 && e.strides[1][d] == 1 {
			return true
		}
	}
	return false
}

// smallProduct is the number of multiplications up to which products run in parallel, if there
// are several for each worker.
const smallProduct = 1 << 22

func (p *einsumProduct[T]) run(w *workers.Pool, x, y, out []T) {
	if p.left == 1 {
		x, y = y, x
	}
	n := tensor.Elements(p.size)
	if p.a.workspace == nil && p.b.workspace == nil && n >= 2*w.Threads() && p.s.M*p.s.N*p.s.K <= smallProduct {
		w.For(n, 1, func(lo, hi int) { p.products(nil, x, y, out, lo, hi) })
		return
	}
	p.products(w, x, y, out, 0, n)
}

// products computes products lo to hi.
func (p *einsumProduct[T]) products(w *workers.Pool, x, y, out []T, lo, hi int) {
	at := make([]int, len(p.size))
	tensor.Unravel(lo, p.size, at)
	var last [2]int
	for i := lo; i < hi; i++ {
		var from [3]int
		for d, q := range at {
			for k := range from {
				from[k] += q * p.at[k][d]
			}
		}
		a, b := p.a.matrix(x[from[0]:], i > lo && from[0] == last[0]), p.b.matrix(y[from[1]:], i > lo && from[1] == last[1])
		y := out[from[2]:][:(p.s.M-1)*p.s.Ldc+p.s.N]
		if p.packed != nil {
			gemm.MultiplyPacked(w, gemm.Params{M: p.s.M, N: p.s.N, K: p.s.K, TransA: p.s.TransA, LDA: p.s.lda, LDC: p.s.Ldc}, any(a).([]float32), p.packed, any(y).([]float32))
		} else if p.column() {
			for i := range p.s.M {
				y[i*p.s.Ldc] = productOf(a[i*max(p.s.lda, p.s.K):][:p.s.K], b[:p.s.K])
			}
		} else {
			Gemm(w, p.s, a, b, y)
		}
		last = [2]int{from[0], from[1]}
		tensor.Next(at, p.size)
	}
}

// column reports whether the right operand is a single contiguous column and the rows on the left
// are contiguous too.
func (p *einsumProduct[T]) column() bool {
	return p.s.N == 1 && !p.s.TransA && (p.s.TransB || p.s.ldb <= 1)
}

// einsumMatrix is an operand of such a product: read in place if its rows or columns are
// contiguous, else gathered.
type einsumMatrix[T tensor.Real] struct {
	turned       bool // columns are lines
	step         int  // from line to line; 0 means tight
	workspace    []T  // for a matrix that is gathered
	size, stride []int
}

// newEinsumMatrix takes the label ranges of rows and columns.
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
	m.workspace = op.ScratchOf[T](c, high*wide)
	return m
}

// line returns the number of elements of a range of labels, and their stride in an input if it is
// uniform.
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

// matrix returns the operand that begins with x; again says that it is the same as in the last
// call.
func (m *einsumMatrix[T]) matrix(x []T, again bool) []T {
	if m.workspace == nil {
		return x
	}
	if !again {
		gatherStrided(m.workspace, x, m.size, m.stride)
	}
	return m.workspace
}

// gatherStrided writes the elements of src, whose axes have sizes and strides, contiguously.
func gatherStrided[T tensor.Number](dst, src []T, size, stride []int) {
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

// einsumStage multiplies two operands of an equation: inputs, or the results of earlier stages,
// which follow them.
type einsumStage[T tensor.Real] struct {
	a, b      int
	workspace []T // of the result; nil for the last stage
	lines     *einsum
	product   *einsumProduct[T]
}

func (s *einsumStage[T]) run(w *workers.Pool, x, y, out []T) {
	if s.product != nil {
		s.product.run(w, x, y, out)
		return
	}
	einsumLines(s.lines, w, [][]T{x, y}, out)
}

// mostBetween is how many times as large as operands and result together an intermediate result
// may be.
const mostBetween = 4

// newEinsumStages multiplies the inputs of an equation pair by pair, the pair with the smallest
// product first; nil if intermediate results would be large.
func newEinsumStages[T tensor.Real](c *op.Call, e *einsum) (stages []einsumStage[T]) {
	if len(e.strides) < 3 {
		return nil
	}
	limit := tensor.Elements(e.size[:e.kept])
	for _, x := range c.In {
		limit += x.Len()
	}
	strides := slices.Clone(e.strides)
	left := make([]int, len(strides)) // operands that are not multiplied yet
	for i := range left {
		left[i] = i
	}
	for len(left) > 1 {
		var best *einsum
		var pair [2]int
		for i := range left {
			for j := i + 1; j < len(left); j++ {
				if s := e.pair(strides, left, i, j); best == nil || tensor.Elements(s.out) < tensor.Elements(best.out) {
					best, pair = s, [2]int{i, j}
				}
			}
		}
		stage := einsumStage[T]{a: left[pair[0]], b: left[pair[1]], lines: best, product: newEinsumProduct[T](c, best)}
		if n := tensor.Elements(best.out); len(left) > 2 {
			if n > mostBetween*limit {
				return nil
			}
			stage.workspace = op.ScratchOf[T](c, n)
		}
		stages = append(stages, stage)
		left = append(slices.Delete(slices.Delete(left, pair[1], pair[1]+1), pair[0], pair[0]+1), len(strides))
		strides = append(strides, e.strideOf(best))
	}
	return stages
}

// pair returns the equation of operands i and j of those left: its result has the labels that the
// others or the final result need.
func (e *einsum) pair(strides [][]int, left []int, i, j int) *einsum {
	s := &einsum{}
	a, b := strides[left[i]], strides[left[j]]
	needed := func(d int) bool {
		if d < e.kept {
			return true
		}
		for k, o := range left {
			if k != i && k != j && strides[o][d] != 0 {
				return true
			}
		}
		return false
	}
	for _, keep := range []bool{true, false} {
		for d, n := range e.size {
			if a[d] == 0 && b[d] == 0 || needed(d) != keep {
				continue // of length one, or added up already
			}
			s.labels = append(s.labels, d)
			s.size = append(s.size, n)
		}
		if keep {
			s.kept = len(s.size)
			s.out = slices.Clone(s.size)
		}
	}
	for _, o := range [][]int{a, b} {
		own := make([]int, len(s.labels))
		for k, d := range s.labels {
			own[k] = o[d]
		}
		s.strides = append(s.strides, own)
	}
	return s
}

// strideOf returns the strides of a pair's result by the labels of the whole equation.
func (e *einsum) strideOf(s *einsum) []int {
	out := make([]int, len(e.size))
	for k, n := range tensor.Strides(s.out) {
		if s.out[k] > 1 {
			out[s.labels[k]] = n
		}
	}
	return out
}
