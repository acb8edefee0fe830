package matmul

import (
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
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
	a, b := op.ScratchOf[T](c, s.M*s.K), op.ScratchOf[T](c, s.K*s.N)
	axes := func(i int, parts ...[2]int) (size, stride []int) {
		for _, p := range parts {
			size = append(size, e.size[p[0]:p[1]]...)
			stride = append(stride, e.strides[i][p[0]:p[1]]...)
		}
		return size, stride
	}
	sums := [2]int{e.kept, len(e.size)}
	aSize, aStride := axes(left, [2]int{batch, cols}, sums)
	bSize, bStride := axes(right, sums, [2]int{cols, e.kept})
	return func(c *op.Call) error {
		x, w, y := tensor.Of[T](c.In[left]), tensor.Of[T](c.In[right]), tensor.Of[T](c.Out[0])
		at := make([]int, batch)
		for i := range tensor.Elements(e.size[:batch]) {
			xs, ws := 0, 0
			for d, p := range at {
				xs += p * e.strides[left][d]
				ws += p * e.strides[right][d]
			}
			gatherStrided(a, x[xs:], aSize, aStride)
			gatherStrided(b, w[ws:], bSize, bStride)
			Gemm(c.Pool, s, a, b, y[i*s.M*s.N:][:s.M*s.N])
			tensor.Next(at, e.size[:batch])
		}
		return nil
	}, nil
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
