// Package broadcast iterates over row-major operands and a result that they broadcast to, by
// NumPy's rules, in runs that are as long as possible. It takes shapes, strides and workers; the
// caller processes the runs.
package broadcast

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
)

// Walk is a plan to iterate over up to three row-major operands and a result with NumPy
// broadcasting. Dimensions that all operands treat alike are merged: equal shapes become one run,
// and a bias or a scalar one run per row.
type Walk struct {
	Len   int    // elements of the result
	Inner int    // elements of a run
	Step  [3]int // 1 for operands that advance within a run, 0 for repeated elements
	dims  []int  // outer dimensions
	step  [3][]int
}

// maxDims bounds the merged outer dimensions.
const maxDims = 12

// New plans the iteration over up to three operands of the given shapes. It fails if an operand
// does not broadcast to out, or if more than [maxDims] dimensions remain after merging.
func New(out []int, operands ...[]int) (*Walk, error) {
	if !slices.ContainsFunc(operands, func(s []int) bool { return !slices.Equal(s, out) }) {
		return alike(out, len(operands)), nil
	}
	var full [3][]int
	for k := range full {
		full[k] = make([]int, len(out))
		if k < len(operands) {
			var err error
			if full[k], err = Strides(operands[k], out); err != nil {
				return nil, err
			}
		}
	}
	b := &Walk{Len: 1, Inner: 1, Step: [3]int{1, 1, 1}}
	for i, n := range out {
		b.Len *= n
		if n == 1 {
			continue
		}
		last := len(b.dims) - 1
		merge := last >= 0
		for k := range full {
			merge = merge && b.step[k][last] == full[k][i]*n
		}
		if merge {
			b.dims[last] *= n
			for k := range full {
				b.step[k][last] = full[k][i]
			}
			continue
		}
		b.dims = append(b.dims, n)
		for k := range full {
			b.step[k] = append(b.step[k], full[k][i])
		}
	}
	if last := len(b.dims) - 1; last >= 0 {
		b.Inner = b.dims[last]
		b.dims = b.dims[:last]
		for k := range b.Step {
			b.Step[k] = b.step[k][last]
		}
	}
	if len(b.dims) > maxDims {
		return nil, fmt.Errorf("broadcast over %d separate dimensions", len(b.dims))
	}
	return b, nil
}

// alike returns the walk over operands with the shape of the result: one run.
func alike(out []int, operands int) *Walk {
	b := &Walk{Len: 1}
	for _, n := range out {
		b.Len *= n
	}
	b.Inner = b.Len
	for k := range operands {
		b.Step[k] = 1
	}
	return b
}

// Runs iterates over the contiguous runs of a range of the result.
type Runs struct {
	Dst, N int    // offset and length of the current run in the result
	Off    [3]int // offset of the run in each operand
	b      *Walk
	end    int
	col    int
	at     [3]int
	idx    [maxDims]int
}

// Runs starts an iteration over elements lo to hi of the result. Usage:
//
//	for r := b.Runs(lo, hi); r.Next(); { ... r.Dst, r.N, r.Off ... }
func (b *Walk) Runs(lo, hi int) Runs {
	r := Runs{b: b, Dst: lo, end: hi}
	if lo >= hi {
		return r
	}
	row := lo / b.Inner
	r.col = lo % b.Inner
	for d := len(b.dims) - 1; d >= 0; d-- {
		r.idx[d] = row % b.dims[d]
		row /= b.dims[d]
		for k := range r.at {
			r.at[k] += r.idx[d] * b.step[k][d]
		}
	}
	return r
}

// Next advances to the next run and reports whether there is one.
func (r *Runs) Next() bool {
	b := r.b
	if r.N > 0 {
		r.Dst += r.N
		r.col = 0
		for d := len(b.dims) - 1; d >= 0; d-- {
			r.idx[d]++
			for k := range r.at {
				r.at[k] += b.step[k][d]
			}
			if r.idx[d] < b.dims[d] {
				break
			}
			for k := range r.at {
				r.at[k] -= b.step[k][d] * b.dims[d]
			}
			r.idx[d] = 0
		}
	}
	if r.Dst >= r.end {
		return false
	}
	r.N = min(b.Inner-r.col, r.end-r.Dst)
	for k := range r.Off {
		r.Off[k] = r.at[k] + r.col*b.Step[k]
	}
	return true
}

// Each calls f for every run of the result, in parallel; it splits long runs. grain is the
// minimum number of elements per thread. f receives the offset of the run in the result and in
// each operand, and its length. f must be safe for concurrent use.
func (b *Walk) Each(p *workers.Pool, grain int, f func(out int, at [3]int, n int)) {
	p.For(b.Len, grain, func(lo, hi int) {
		for r := b.Runs(lo, hi); r.Next(); {
			f(r.Dst, r.Off, r.N)
		}
	})
}

// Rows returns the walk over the runs: its elements are whole runs, whose distance in an operand
// is given by Step. It is nil for a single run.
func (b *Walk) Rows() *Walk {
	last := len(b.dims) - 1
	if last < 0 || b.Inner == 0 {
		return nil
	}
	r := &Walk{Len: b.Len / b.Inner, Inner: b.dims[last], dims: b.dims[:last]}
	for k := range r.Step {
		r.Step[k], r.step[k] = b.step[k][last], b.step[k][:last]
	}
	return r
}

// Strides returns the strides, in elements, with which a dense operand of the given shape is read
// as if it had the shape to: zero along repeated axes.
func Strides(shape, to []int) ([]int, error) {
	lead := len(to) - len(shape)
	if lead < 0 {
		return nil, fmt.Errorf("shape %v does not broadcast to %v", shape, to)
	}
	strides := make([]int, len(to))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		switch {
		case shape[i] == to[lead+i]:
			strides[lead+i] = n
		case shape[i] != 1:
			return nil, fmt.Errorf("shape %v does not broadcast to %v", shape, to)
		}
		n *= shape[i]
	}
	return strides, nil
}
