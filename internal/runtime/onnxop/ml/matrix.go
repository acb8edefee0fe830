package ml

import (
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// matrix is lines × features of float64, whose products with rows of features are wanted.
type matrix struct {
	lines, features int
	values          []float64
	turned          []float64 // features × lines, where there is a loop over them
}

func newMatrix(values []float64, lines, features int) *matrix {
	m := &matrix{lines: lines, features: features, values: values}
	// Fewer lines than three leave most of a vector empty.
	if lines >= 3 && simd.FoldKernels().HasDoubles() {
		m.turned = make([]float64, len(values))
		for i := range lines {
			for j, v := range values[i*features:][:features] {
				m.turned[j*lines+i] = v
			}
		}
	}
	return m
}

// addProducts adds to rows of sums, a sum a line, the products with as many rows of features.
func (m *matrix) addProducts(sums, x []float64) {
	f := m.features
	for ; len(sums) > 0; sums, x = sums[m.lines:], x[f:] {
		s, x := sums[:m.lines], x[:f]
		if m.turned != nil && simd.AddProducts(simd.FoldKernels(), s, x, 1, m.turned, m.lines, f) {
			continue
		}
		w := m.values
		for ; len(s) >= 4; s, w = s[4:], w[4*f:] {
			a, b, c, d := s[0], s[1], s[2], s[3]
			p, q, r, u := w[:f], w[f:][:f], w[2*f:][:f], w[3*f:][:f]
			for j, v := range x {
				a += p[j] * v
				b += q[j] * v
				c += r[j] * v
				d += u[j] * v
			}
			s[0], s[1], s[2], s[3] = a, b, c, d
		}
		for i := range s {
			s[i] += dot(w[i*f:][:f], x)
		}
	}
}

// eachRows makes the run that calls f for some rows of input 0 at a time, in parallel: with the
// number of the first one, their features as float64, width numbers of scratch for each of them
// and workspace more for all.
func eachRows(c *op.Call, width, workspace int, f func(c *op.Call, first int, x, s, workspace []float64)) (op.Run, error) {
	if !c.In[0].Type.IsNumber() {
		return nil, op.Unsupported("input of %v", c.In[0].Type)
	}
	_, features, err := rows(c.In[0])
	if err != nil {
		return nil, err
	}
	some := min(max(1, 1<<13/max(features, width, 1)), 256)
	each := some*(features+width) + workspace
	scratch := op.ScratchOf[float64](c, c.Pool.Threads()*each)
	// Made once, with the closure below: a run must not allocate.
	var call *op.Call
	work := func(worker, lo, hi int) {
		mine := scratch[worker*each:][:each]
		for ; lo < hi; lo += some {
			n := min(some, hi-lo)
			x, s := mine[:n*features], mine[some*features:][:n*width]
			tensor.Read(x, call.In[0], lo*features)
			f(call, lo, x, s, mine[some*(features+width):])
		}
	}
	return func(c *op.Call) error {
		n, _, err := rows(c.In[0])
		if err != nil {
			return err
		}
		call = c
		c.Pool.ForWorker(n, 16, work)
		return nil
	}, nil
}
