package reduce

import (
	"sync"

	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/vecmath"
)

// wideColumns is the number of neighbouring columns from which on they are normalised side by side, in vectors. Fewer are turned into rows.
const wideColumns = 32

// softmaxColumns normalises up to [element.Block] neighbouring columns of n values, stride apart; dst may be src.
func softmaxColumns(dst, src []float32, n, stride, width int) {
	room := limitRooms.Get().(*[2 * element.Block]float32) // what goes to loops in vectors does not stay on the stack
	defer limitRooms.Put(room)
	e, top, sum := simd.ElementKernels(), room[:width], room[element.Block:][:width]
	copy(top, src)
	clear(sum)
	for r := 1; r < n; r++ {
		for i, x := range src[r*stride:][:width] {
			if x > top[i] || x != x && top[i] == top[i] {
				top[i] = x
			}
		}
	}
	for r := range n {
		row := dst[r*stride:][:width]
		e.Sub(row, src[r*stride:][:width], top)
		vecmath.ExpSumTo(row, row, 0)
		e.Add(sum, sum, row)
	}
	for i, v := range sum {
		sum[i] = 1 / v
	}
	for r := range n {
		row := dst[r*stride:][:width]
		e.Mul(row, row, sum)
	}
}

// limitRooms have the largest values of columns, then their sums.
var limitRooms = sync.Pool{New: func() any { return new([2 * element.Block]float32) }}

// columnRooms hold columns that have been turned into rows.
var columnRooms = sync.Pool{New: func() any { return new([]float32) }}

// turnedColumns turns width neighbouring columns of n values, stride apart, into rows, and back when row has seen them; dst may be src.
func turnedColumns(dst, src []float32, n, stride, width int, row func(dst, src []float32)) {
	room := columnRooms.Get().(*[]float32)
	if cap(*room) < n*width {
		*room = make([]float32, n*width)
	}
	rows := (*room)[:n*width]
	kernel.Turn(rows, n, src, stride, width, n)
	for i := range width {
		r := rows[i*n:][:n]
		row(r, r)
	}
	kernel.Turn(dst, stride, rows, n, n, width)
	columnRooms.Put(room)
}
