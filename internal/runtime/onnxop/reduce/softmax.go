package reduce

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Normalisation identifies an operator that normalises along an axis.
type Normalisation uint8

// Softmax is exponentials divided by their sum, LogSoftmax its logarithm.
const (
	Softmax Normalisation = iota
	LogSoftmax
	hardmax
)

// line is a tensor viewed as [outer, n, inner] around an axis.
type line struct{ outer, n, inner int }

// softmaxLine finds the axis and sets output 0. Before operator set 13 all dimensions from the
// axis on are normalised together.
func softmaxLine(c *op.Call) (line, error) {
	shape := c.In[0].Shape
	flat := c.Node.Version < 13
	axis := c.Node.Attrs.Int("axis", -1)
	if flat {
		axis = c.Node.Attrs.Int("axis", 1)
	}
	if len(shape) == 0 || flat && axis == len(shape) {
		return line{c.In[0].Len(), 1, 1}, elem.Same(c)
	}
	axis, err := op.Axis(axis, len(shape))
	if err != nil {
		return line{}, err
	}
	l := line{tensor.Elements(shape[:axis]), shape[axis], tensor.Elements(shape[axis+1:])}
	if flat {
		l.n, l.inner = l.n*l.inner, 1
	}
	return l, elem.Same(c)
}

// InferSoftmax checks the axis and gives output 0 the shape of input 0.
var InferSoftmax = op.Infer(softmaxLine)

// PrepareSoftmax makes an operator that normalises along an axis.
func PrepareSoftmax(c *op.Call, k Normalisation) (op.Run, error) {
	l := op.Must(softmaxLine(c))
	switch c.In[0].Type {
	case tensor.Float32:
		var row func(dst, src []float32)
		switch k {
		case Softmax:
			row = softmaxRow
		case LogSoftmax:
			row = logSoftmaxRow
		case hardmax:
			row = hardmaxRow
		}
		return normalise(l, k, row), nil
	case tensor.Float64:
		var row func(dst, src []float64)
		if simd.CurveKernels().HasDoubles() {
			switch k {
			case Softmax:
				row = softmaxDoubles
			case LogSoftmax:
				row = logSoftmaxDoubles
			}
		}
		return normalise(l, k, row), nil
	}
	return nil, elem.BadType(c, 0)
}

// normalise runs over the lines. row, if not nil, handles a contiguous line.
func normalise[T tensor.Real](l line, k Normalisation, row func(dst, src []T)) op.Run {
	if l.n == 0 {
		return func(*op.Call) error { return nil }
	}
	if l.inner == 1 && row != nil {
		return op.Parallel(l.outer, max(1, element.Grain/4/l.n), func(c *op.Call, lo, hi int) {
			dst, src := tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[0])
			if f, ok := any(dst).([]float32); ok && k == Softmax {
				if simd.CurveKernels().SoftmaxRows(f[lo*l.n:hi*l.n], any(src).([]float32)[lo*l.n:], l.n) {
					return
				}
			} else if ok && k == hardmax && simd.HasExtremes[float32](simd.ExtremeKernels()) {
				rowsByTops(f[lo*l.n:hi*l.n], any(src).([]float32)[lo*l.n:], l.n, hardmaxTop)
				return
			}
			most := shortRow
			if k == LogSoftmax {
				most = shortLogs
			}
			if f, ok := any(dst).([]float32); ok && k != hardmax && l.n <= most && hi-lo >= fewRows && simd.ElementKernels() != nil {
				shortRows(f[lo*l.n:hi*l.n], any(src).([]float32)[lo*l.n:], l.n, k == LogSoftmax)
				return
			} else if ok && k == Softmax && simd.HasExtremes[float32](simd.ExtremeKernels()) {
				rowsByTops(f[lo*l.n:hi*l.n], any(src).([]float32)[lo*l.n:], l.n, softmaxTop)
				return
			}
			for i := lo; i < hi; i++ {
				row(dst[i*l.n:(i+1)*l.n], src[i*l.n:(i+1)*l.n])
			}
		})
	}
	tiles := (l.inner + element.Block - 1) / element.Block
	return op.Parallel(l.outer*tiles, max(1, element.Grain/4/(l.n*min(element.Block, max(1, l.inner)))), func(c *op.Call, lo, hi int) {
		dst, src := tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[0])
		for u := lo; u < hi; u++ {
			col := u % tiles * element.Block
			at := u/tiles*l.n*l.inner + col
			if d, ok := any(dst).([]float32); ok && row != nil && k != hardmax && simd.ElementKernels() != nil {
				columns(d[at:], any(src).([]float32)[at:], l, min(element.Block, l.inner-col), k, any(row).(func(dst, src []float32)))
				continue
			}
			tile(dst[at:], src[at:], l.n, l.inner, min(element.Block, l.inner-col), k)
		}
	})
}

// columns normalises adjacent float32 columns with SIMD.
func columns(dst, src []float32, l line, width int, k Normalisation, row func(dst, src []float32)) {
	if width >= wideColumns && (k == Softmax || l.n <= fewLogs) {
		softmaxColumns(dst, src, l.n, l.inner, width, k == LogSoftmax)
		return
	}
	const together = 16 // of them are turned
	for c := 0; c < width; c += together {
		turnedColumns(dst[c:], src[c:], l.n, l.inner, min(together, width-c), row)
	}
}

// tile normalises up to blockSize neighbouring lines of n elements, stride apart.
func tile[T tensor.Real](dst, src []T, n, stride, width int, k Normalisation) {
	if k == hardmax {
		workspace := placeWorkspaces.Get().(*[element.Block]int64)
		at := workspace[:width]
		argTile(at, src, n, stride, false, false)
		for r := range n {
			clear(dst[r*stride:][:width])
		}
		for i, r := range at {
			dst[int(r)*stride+i] = 1
		}
		placeWorkspaces.Put(workspace)
		return
	}
	var top, sum [element.Block]T
	copy(top[:width], src)
	for r := 1; r < n; r++ {
		for i, x := range src[r*stride : r*stride+width] {
			if x > top[i] || x != x && top[i] == top[i] {
				top[i] = x
			}
		}
	}
	for r := range n {
		for i, x := range src[r*stride : r*stride+width] {
			d := x - top[i]
			e := expOf(d)
			sum[i] += e
			if k == LogSoftmax {
				e = d
			}
			dst[r*stride+i] = e
		}
	}
	for i := range width {
		if k == LogSoftmax {
			sum[i] = T(math.Log(float64(sum[i])))
		} else {
			sum[i] = 1 / sum[i]
		}
	}
	for r := range n {
		row := dst[r*stride : r*stride+width]
		for i := range row {
			if k == LogSoftmax {
				row[i] -= sum[i]
			} else {
				row[i] *= sum[i]
			}
		}
	}
}

func expOf[T tensor.Real](x T) T {
	if f, ok := any(x).(float32); ok {
		return T(vecmath.Exp(f))
	}
	return T(math.Exp(float64(x)))
}

// softmaxRow writes the softmax of a row; dst may be src.
func softmaxRow(dst, src []float32) { softmaxTop(dst, src, element.MaxOf(src)) }

// softmaxTop is softmaxRow of a row with a known largest value.
func softmaxTop(dst, src []float32, top float32) {
	element.Scale(dst, dst, 1/vecmath.ExpSumTo(dst, src, top))
}

// Rows of up to shortRow values, or shortLogs for logarithms, fewRows of them or more, are
// normalised side by side: a loop over each costs more than it does.
const shortRow, shortLogs, fewRows = 16, 48, 8

// shortRows normalises rows of n values, or writes the logarithms of that: turned, so that their
// first values lie side by side, then their second ones.
func shortRows(dst, src []float32, n int, logs bool) {
	workspace := turnedWorkspaces.Get().(*[shortRow * 256]float32)
	for len(dst) > 0 {
		rows := min(256, len(workspace)/n, len(dst)/n)
		columns := workspace[:rows*n]
		move.Transpose(columns, rows, src, n, n, rows)
		softmaxColumns(columns, columns, n, rows, rows, logs)
		move.Transpose(dst, n, columns, rows, rows, n)
		dst, src = dst[rows*n:], src[rows*n:]
	}
	turnedWorkspaces.Put(workspace)
}

// rowsByTops calls f for rows of n, whose largest values are found together.
func rowsByTops(dst, src []float32, n int, f func(dst, src []float32, top float32)) {
	extremes, workspace := simd.ExtremeKernels(), expWorkspaces.Get().(*[element.Block]float32)
	for len(dst) > 0 {
		tops := workspace[:min(element.Block, len(dst)/n)]
		simd.ExtremeRows(extremes, false, tops, src, n)
		for i, top := range tops {
			f(dst[i*n:][:n], src[i*n:][:n], top)
		}
		dst, src = dst[len(tops)*n:], src[len(tops)*n:]
	}
	expWorkspaces.Put(workspace)
}

// hardmaxTop is hardmaxRow of a row with a known largest value.
func hardmaxTop(dst, src []float32, top float32) {
	at := placeIn(src, top, false)
	if at < 0 { // something is not a number
		hardmaxRow(dst, src)
		return
	}
	clear(dst)
	dst[at] = 1
}

// topDouble is the greatest of a row, no number where one is none.
func topDouble(src []float64) float64 {
	top := src[0]
	for _, x := range src[1:] {
		if x > top || x != x {
			top = x
		}
	}
	return top
}

// softmaxDoubles is softmaxRow of float64.
func softmaxDoubles(dst, src []float64) {
	inv := 1 / simd.CurveKernels().ExpDoubles(dst, src, topDouble(src))
	for i := range dst {
		dst[i] *= inv
	}
}

// logSoftmaxDoubles is logSoftmaxRow of float64.
func logSoftmaxDoubles(dst, src []float64) {
	top, sum, c := topDouble(src), 0.0, simd.CurveKernels()
	workspace := doubleWorkspaces.Get().(*[element.Block]float64)
	for at := 0; at < len(src); at += len(workspace) {
		some := src[at:min(at+len(workspace), len(src))]
		sum += c.ExpDoubles(workspace[:len(some)], some, top)
	}
	doubleWorkspaces.Put(workspace)
	less := math.Log(sum)
	for i, x := range src[:len(dst)] {
		dst[i] = x - top - less
	}
}

// hardmaxRow writes 1 for the first of the largest values of a row, and zeros; dst may be src.
func hardmaxRow(dst, src []float32) {
	at := argRow(src, false, false)
	if at < 0 {
		workspace := placeWorkspaces.Get().(*[element.Block]int64)
		argTile(workspace[:1], src, len(src), 1, false, false)
		at = int(workspace[0])
		placeWorkspaces.Put(workspace)
	}
	clear(dst[:len(src)])
	dst[at] = 1
}

// logSoftmaxRow writes the logarithm of the softmax of a row; dst may be src.
func logSoftmaxRow(dst, src []float32) {
	dst = dst[:len(src)]
	lessOne(dst, src, element.MaxOf(src))
	workspace := expWorkspaces.Get().(*[element.Block]float32)
	var sum float64
	for at := 0; at < len(dst); at += len(workspace) {
		some := dst[at:min(at+len(workspace), len(dst))]
		sum += float64(vecmath.ExpSumTo(workspace[:len(some)], some, 0))
	}
	expWorkspaces.Put(workspace)
	lessOne(dst, dst, float32(math.Log(sum)))
}

// lessOne takes a number from each of a row.
var lessOne = element.Sub[float32]().VectorScalar

// placeWorkspaces hold places of the largest values.
var placeWorkspaces = sync.Pool{New: func() any { return new([element.Block]int64) }}

// turnedWorkspaces hold short rows that have been turned.
var turnedWorkspaces = sync.Pool{New: func() any { return new([shortRow * 256]float32) }}

// expWorkspaces hold exponentials of which the sum only is wanted, doubleWorkspaces those of
// float64.
var (
	expWorkspaces    = sync.Pool{New: func() any { return new([element.Block]float32) }}
	doubleWorkspaces = sync.Pool{New: func() any { return new([element.Block]float64) }}
)

// wideColumns is the number of neighbouring columns from which on they are normalised side by
// side, in vectors. Fewer are turned into rows.
const wideColumns = 32

// fewLogs is the length of columns up to which float32 holds the sums that logarithms are taken of.
const fewLogs = 1024

// softmaxColumns normalises up to [element.Block] neighbouring columns of n values, stride apart,
// or writes the logarithms of that; dst may be src.
func softmaxColumns(dst, src []float32, n, stride, width int, logs bool) {
	// Arguments of SIMD kernels escape from the stack, so the block comes from a pool.
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
