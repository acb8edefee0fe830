package reduce

import (
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
)

// wideColumns is the number of neighbouring columns from which on they are normalised side by
// side, in vectors. Fewer are turned into rows.
const wideColumns = 32

// fewLogs is the length of columns up to which float32 holds the sums that logarithms are taken of.
const fewLogs = 1024

// softmaxColumns normalises up to [element.Block] neighbouring columns of n values, stride apart,
// or writes the logarithms of that; dst may be src.
func softmaxColumns(dst, src []float32, n, stride, width int, logs bool) {
	// what goes to loops in vectors does not stay on the stack
	workspace := limitWorkspaces.Get().(*[3 * element.Block]float32)
	defer limitWorkspaces.Put(workspace)
	e, top, sum, part := simd.ElementKernels(), workspace[:width], workspace[element.Block:][:width], workspace[2*element.Block:][:width]
	copy(top, src)
	clear(sum)
	for r := 1; r < n; r++ {
		line := src[r*stride:][:width]
		done := e.Max(top, top, line)
		element.MaxTo(top[done:], top[done:], line[done:])
	}
	for r := range n {
		row := dst[r*stride:][:width]
		e.Sub(row, src[r*stride:][:width], top)
		power := row
		if logs {
			power = part
		}
		vecmath.ExpSumTo(power, row, 0)
		e.Add(sum, sum, power)
	}
	if logs {
		vecmath.LogTo(sum, sum)
	} else {
		for i, v := range sum {
			sum[i] = 1 / v
		}
	}
	for r := range n {
		row := dst[r*stride:][:width]
		if logs {
			e.Sub(row, row, sum)
		} else {
			e.Mul(row, row, sum)
		}
	}
}

// limitWorkspaces have the largest values of columns, then their sums, then the exponentials of a
// line.
var limitWorkspaces = sync.Pool{New: func() any { return new([3 * element.Block]float32) }}

// columnWorkspaces hold columns that have been turned into rows.
var columnWorkspaces = sync.Pool{New: func() any { return new([]float32) }}

// turnedColumns turns width neighbouring columns of n values, stride apart, into rows, and back
// when row has seen them; dst may be src.
func turnedColumns(dst, src []float32, n, stride, width int, row func(dst, src []float32)) {
	workspace := columnWorkspaces.Get().(*[]float32)
	if cap(*workspace) < n*width {
		*workspace = make([]float32, n*width)
	}
	rows := (*workspace)[:n*width]
	move.Transpose(rows, n, src, stride, width, n)
	for i := range width {
		r := rows[i*n:][:n]
		row(r, r)
	}
	move.Transpose(dst, stride, rows, n, n, width)
	columnWorkspaces.Put(workspace)
}
