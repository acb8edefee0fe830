package activation

import (
	"math"
	"math/bits"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/libm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/reduce"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

func prepareSoftmax(c *op.Call) (op.Run, error) {
	rows, depth := layer.LastAxis(c.In[0])
	beta := c.Node.Attrs.Float("beta", 1)
	x, y := c.In[0].Type, c.Out[0].Type
	switch {
	case c.Node.Attrs.Has(op.AttrAxis) && x == tensor.Float32 && y == tensor.Float32:
		return axisSoftmax(c, c.Node.Attrs.Int(op.AttrAxis, 0), beta)
	case c.Node.Attrs.Has(op.AttrAxis):
		return nil, op.Unsupported("%v input along an axis", x)
	case x == tensor.Float32 && y == tensor.Float32:
		if depth > 0 && depth < shortRow && simd.CurveKernels() != nil {
			return shortSoftmax(c, rows, depth, beta), nil
		}
		sums := op.ScratchOf[float32](c, SoftmaxSums*c.Pool.Threads())
		softmax := SoftmaxRows(depth)
		return layer.RangesWorker(rows, 1+4096/max(depth, 1), func(y, x []float32, worker, lo, hi int) {
			softmax(y[lo*depth:hi*depth], x[lo*depth:hi*depth], sums[worker*SoftmaxSums:][:SoftmaxSums], depth, beta)
		}), nil
	case x == tensor.Int8 && y == tensor.Int8:
		return intSoftmax[int8, int8](c, rows, depth, beta)
	case x == tensor.Int8 && y == tensor.Int16:
		return intSoftmax[int8, int16](c, rows, depth, beta)
	case x == tensor.Uint8 && y == tensor.Uint8:
		return intSoftmax[uint8, uint8](c, rows, depth, beta)
	case x == tensor.Int16 && y == tensor.Int16:
		return wideSoftmax(c, rows, depth, beta)
	}
	return nil, op.Unsupported("%v input with %v output", x, y)
}

// axisSoftmax computes the softmax along an axis, with the results of [SoftmaxRows].
func axisSoftmax(c *op.Call, axis int, beta float32) (op.Run, error) {
	shape := c.In[0].Shape
	if axis < 0 || axis >= len(shape) {
		return nil, c.Errorf("axis %d of rank %d", axis, len(shape))
	}
	outer, depth, inner := tensor.Elements(shape[:axis]), shape[axis], tensor.Elements(shape[axis+1:])
	if libm.HasSoftmaxColumns(inner) && depth > 0 {
		return layer.RangesWorker(outer*inner/simd.SoftmaxColumns, 1+4096/(simd.SoftmaxColumns*depth), func(y, x []float32, _, lo, hi int) {
			libm.SoftmaxColumns(y, x, depth, inner, lo, hi, beta)
		}), nil
	}
	// Columns of a block, shortTile at a time, are turned into rows.
	tiles := (inner + shortTile - 1) / shortTile
	rows, sums := op.ScratchOf[float32](c, shortTile*depth*c.Pool.Threads()), op.ScratchOf[float32](c, SoftmaxSums*c.Pool.Threads())
	softmax := SoftmaxRows(depth)
	return layer.RangesWorker(outer*tiles, 1, func(y, x []float32, worker, lo, hi int) {
		for u := lo; u < hi; u++ {
			col := u % tiles * shortTile
			n, at := min(shortTile, inner-col), u/tiles*depth*inner+col
			t := rows[worker*shortTile*depth:][:n*depth]
			move.Transpose(t, depth, x[at:], inner, n, depth)
			softmax(t, t, sums[worker*SoftmaxSums:][:SoftmaxSums], depth, beta)
			move.Transpose(y[at:], inner, t, depth, depth, n)
		}
	}), nil
}

// SoftmaxTile is the number of rows that are computed together, and SoftmaxSums the length of the
// scratch memory for them.
const (
	SoftmaxTile = 8
	SoftmaxSums = 3 * SoftmaxTile
)

// longRow is the length of rows from which on the cost of a call per row is negligible.
const longRow = 512

// SoftmaxRows returns a function that computes rows of depth values in float32 and with sums in
// order, as the reference kernels do; sums is scratch memory of [SoftmaxSums] numbers.
func SoftmaxRows(depth int) func(y, x, sums []float32, depth int, beta float32) {
	sub, div, extremes, curves := element.Sub[float32]().Rows, element.Div[float32](), simd.ExtremeKernels(), simd.CurveKernels()
	tops := simd.HasExtremes[float32](extremes)
	switch {
	case depth == 0:
		return func(_, _, _ []float32, _ int, _ float32) {}
	case tops && libm.HasExpDivide():
		return softmaxOverlapped
	case depth < longRow && sub != nil && div.Rows != nil && tops:
		return softmaxTiles(func(y, x, sums []float32, depth int, beta float32) {
			simd.ExtremeRows(extremes, false, sums, x, depth)
			sub(y, x, sums, depth, depth, 1, 2)
			libm.ExpOf(y, y, 0, beta)
			reduce.OrderedSums(sums, y, depth)
			if !curves.Shares(y, y, sums, depth) {
				div.Rows(y, y, sums, depth, depth, 1, 2)
			}
		})
	}
	return softmaxTiles(func(y, x, sums []float32, depth int, beta float32) {
		if tops {
			simd.ExtremeRows(extremes, false, sums, x, depth)
		}
		for i := range sums {
			if !tops {
				sums[i] = element.MaxOf(x[i*depth:][:depth])
			}
			libm.ExpOf(y[i*depth:][:depth], x[i*depth:][:depth], sums[i], beta)
		}
		reduce.OrderedSums(sums, y, depth)
		if curves.Shares(y, y, sums, depth) {
			return
		}
		for i, sum := range sums {
			row := y[i*depth:][:depth]
			div.VectorScalar(row, row, sum)
		}
	})
}

// softmaxTiles calls tile for at most [SoftmaxTile] rows at a time.
func softmaxTiles(tile func(y, x, sums []float32, depth int, beta float32)) func(y, x, sums []float32, depth int, beta float32) {
	return func(y, x, sums []float32, depth int, beta float32) {
		for len(y) > 0 {
			n := min(SoftmaxTile*depth, len(y))
			tile(y[:n], x[:n], sums[:n/depth], depth, beta)
			y, x = y[n:], x[n:]
		}
	}
}

// softmaxOverlapped divides the rows of a tile while it computes the exponentials of the next one.
func softmaxOverlapped(y, x, sums []float32, depth int, beta float32) {
	tops, totals, other := sums[:SoftmaxTile], sums[SoftmaxTile:2*SoftmaxTile], sums[2*SoftmaxTile:]
	extremes, divide := simd.ExtremeKernels(), element.Div[float32]().VectorScalar
	var last, before []float32 // the tile before, and its sums
	for len(y) > 0 {
		n := min(SoftmaxTile, len(y)/depth)
		simd.ExtremeRows(extremes, false, tops[:n], x, depth)
		for i, top := range tops[:n] {
			to, from := y[i*depth:][:depth], x[i*depth:][:depth]
			if len(last) == 0 {
				libm.ExpOf(to, from, top, beta)
				continue
			}
			libm.ExpDivide(to, from, top, beta, last[:depth], before[0])
			last, before = last[depth:], before[1:]
		}
		for len(last) > 0 {
			divide(last[:depth], last[:depth], before[0])
			last, before = last[depth:], before[1:]
		}
		before = totals[:n]
		reduce.OrderedSums(before, y[:n*depth], depth)
		last, y, x = y[:n*depth], y[n*depth:], x[n*depth:]
		totals, other = other, totals
	}
	for i := range before {
		divide(last[i*depth:][:depth], last[i*depth:][:depth], before[i])
	}
}

// Rows shorter than shortRow are computed many at a time, each in a column of shortTile, to avoid
// the fixed cost per row of some hundred clock cycles.
const shortRow, shortTile = 24, 64

// columns is the softmax of rows that are transposed to columns, element by element.
type columns struct {
	depth         int
	beta          float32
	max, sub      func(dst, a, b []float32)
	add, div      func(dst, a, b []float32)
	turned, total []float32 // of all workers
}

func shortSoftmax(c *op.Call, rows, depth int, beta float32) op.Run {
	s := &columns{
		depth: depth, beta: beta, max: element.Max[float32]().Vec, sub: element.Sub[float32]().Vec, add: element.Add[float32]().Vec, div: element.Div[float32]().Vec,
		turned: op.ScratchOf[float32](c, shortTile*depth*c.Pool.Threads()), total: op.ScratchOf[float32](c, shortTile*c.Pool.Threads()),
	}
	return layer.RangesWorker(rows, max(shortTile, 4096/depth), s.rows)
}

// rows computes rows lo to hi.
func (s *columns) rows(to, from []float32, worker, lo, hi int) {
	depth, workspace, all := s.depth, s.turned[worker*shortTile*s.depth:], s.total[worker*shortTile:]
	for ; lo < hi; lo += shortTile {
		n := min(shortTile, hi-lo)
		x, y := from[lo*depth:(lo+n)*depth], to[lo*depth:(lo+n)*depth]
		t, total := workspace[:n*depth], all[:n]
		move.Transpose(t, n, x, depth, depth, n)
		if libm.HasExpDivide() && libm.HasSoftmaxColumns(n) {
			libm.SoftmaxColumns(t, t, depth, n, 0, n/simd.SoftmaxColumns, s.beta)
			move.Transpose(y, depth, t, n, n, depth)
			continue
		}
		copy(total, t)
		for at := n; at < len(t); at += n {
			s.max(total, total, t[at:at+n])
		}
		for at := 0; at < len(t); at += n {
			s.sub(t[at:at+n], t[at:at+n], total)
		}
		libm.ExpOf(t, t, 0, s.beta)
		copy(total, t)
		for at := n; at < len(t); at += n {
			s.add(total, total, t[at:at+n])
		}
		for at := 0; at < len(t); at += n {
			s.div(t[at:at+n], t[at:at+n], total)
		}
		move.Transpose(y, depth, t, n, n, depth)
	}
}

// intSoftmax computes exponentials of differences to the row's maximum in Q5.26 and divides by
// their sum in Q12.19.
func intSoftmax[T int8 | uint8, O int8 | uint8 | int16](c *op.Call, rows, depth int, beta float32) (op.Run, error) {
	s, _, err := layer.ScaleOf(c.In[0])
	if err != nil {
		return nil, err
	}
	m := fixed.FromReal(min(float64(beta)*float64(s)*(1<<26), math.MaxInt32))
	// Differences never exceed 255.
	dmin := -int32(min(math.Floor(31*math.Ldexp(1<<26, -m.Shift)), 255))
	lo, hi := layer.Limits(c.Out[0].Type)
	width := c.Out[0].Type.Bits()
	// Their exponentials fit into a table; those of larger ones are zero. A second table holds
	// the rounded values to add up.
	var exps, rounded [256]int32
	for d := range exps {
		if -int32(d) >= dmin {
			exps[d] = fixed.Exp(m.Apply(-int32(d)), 5)
			rounded[d] = fixed.RoundShift(exps[d], 12)
		}
	}
	c.Recipe = recipe.Softmax{Rows: rows, Depth: depth, Exps: exps, Span: -dmin, Lo: lo, Hi: hi, Bits: width}
	vectors := newByteSoftmax(c, &exps, lo, hi)
	var x []T // set by each run; the closure is allocated once
	var y []O
	var data []uint8
	work := func(worker, r0, r1 int) {
		for r := r0; r < r1; r++ {
			in, out := x[r*depth:(r+1)*depth], y[r*depth:(r+1)*depth]
			if vectors != nil && depth > fewValues && vectors.row(worker, quantise.Bits(in), data[r*depth:(r+1)*depth]) {
				continue
			}
			softmaxRow(out, in, &exps, &rounded, width, lo, hi)
		}
	}
	return func(c *op.Call) error {
		x, y, data = tensor.Of[T](c.In[0]), tensor.Of[O](c.Out[0]), c.Out[0].Data
		c.Pool.ForWorker(rows, 1+2048/max(depth, 1), work)
		return nil
	}, nil
}

// fewValues is the maximum length of a row that is computed value by value: a table of all results
// costs more.
const fewValues = 24

// softmaxRow writes the softmax of a row from the exponentials of the distances to its maximum.
func softmaxRow[T int8 | uint8, O int8 | uint8 | int16](out []O, in []T, exps, rounded *[256]int32, width int, lo, hi int32) {
	top := in[0]
	for _, v := range in[1:] {
		top = max(top, v)
	}
	var sum int32
	for _, v := range in {
		sum += rounded[uint8(top-v)]
	}
	recip, e := fixed.Reciprocal(sum, 12)
	out = out[:len(in)]
	down := e + 31 - width
	if down < 1 || down > 30 {
		for i, v := range in {
			q := fixed.RoundShift(fixed.DoublingHighMul(recip, exps[uint8(top-v)]), down)
			out[i] = O(max(lo, min(q+lo, hi)))
		}
		return
	}
	// The same for non-negative numbers.
	by, half := int64(recip), int64(1)<<(down-1)
	for i, v := range in {
		q := ((by*int64(exps[uint8(top-v)])+1<<30)>>31 + half) >> (down & 31)
		out[i] = O(min(int32(q)+lo, hi))
	}
}

// byteSoftmax is the 8-bit softmax with SIMD.
type byteSoftmax struct {
	f          *simd.Softmaxes
	signed     bool
	exps       *[256]int32
	planes     [3][256]uint8 // of the rounded exponentials
	workspaces [][256]uint8  // of each worker
	lo, hi     int32
}

// newByteSoftmax returns nil if there are no kernels.
func newByteSoftmax(c *op.Call, exps *[256]int32, lo, hi int32) *byteSoftmax {
	f := simd.SoftmaxKernels()
	if f == nil || c.Out[0].Type.Bits() != 8 {
		return nil
	}
	s := &byteSoftmax{f: f, signed: c.In[0].Type == tensor.Int8, exps: exps, workspaces: make([][256]uint8, c.Pool.Threads()), lo: lo, hi: hi}
	for d, e := range exps {
		v := fixed.RoundShift(e, 12) // 2^19 at most
		s.planes[0][d], s.planes[1][d], s.planes[2][d] = uint8(v), uint8(v>>8), uint8(v>>16)
	}
	return s
}

// row returns false if the sum of so many values would overflow its type.
func (s *byteSoftmax) row(worker int, in, out []uint8) bool {
	top, sum := s.f.Sum(in, s.signed, &s.planes)
	if sum > math.MaxInt32 {
		return false
	}
	recip, e := fixed.Reciprocal(int32(sum), 12)
	down := e + 31 - 8
	if down < 1 || down > 30 {
		return false
	}
	s.f.Write(out, in, s.signed, top, s.exps, recip, down, s.lo, s.hi, &s.workspaces[worker])
	return true
}

// wideSoftmax computes int16 softmax with tables of exp and the reciprocal.
func wideSoftmax(c *op.Call, rows, depth int, beta float32) (op.Run, error) {
	s, _, err := layer.ScaleOf(c.In[0])
	if err != nil {
		return nil, err
	}
	m := fixed.FromReal(float64(s*beta) / (10.0 / 65535.0)) // the product is a float32
	c.Recipe = recipe.WideSoftmax{Rows: rows, Depth: depth, Mul: m}
	vectors := newWideVectors(c, m, rows, depth)
	return layer.Ranges(rows, 1+2048/max(depth, 1), func(y, x []int16, lo, hi int) {
		if vectors != nil {
			vectors.rows(y[lo*depth:hi*depth], x[lo*depth:hi*depth], vectors.tops[lo:hi])
			return
		}
		for r := lo; r < hi; r++ {
			wideSoftmaxRow(y[r*depth:(r+1)*depth], x[r*depth:(r+1)*depth], m)
		}
	}), nil
}

// wideVectors is the int16 softmax with SIMD.
type wideVectors struct {
	f        *simd.Tables16
	extremes *simd.Extremes
	exps     [513]int16
	by       simd.Scale16
	depth    int
	tops     []int16 // of the rows
}

// newWideVectors returns nil if there are no kernels.
func newWideVectors(c *op.Call, m fixed.Multiplier, rows, depth int) *wideVectors {
	v := &wideVectors{f: simd.TableKernels16(), extremes: simd.ExtremeKernels(), depth: depth, by: simd.Scale16{Left: int32(max(m.Shift, 0)), Mul: m.M, Down: int32(max(-m.Shift, 0))}}
	// Sums of so many numbers overflow; empty rows have no maximum.
	if v.f == nil || !simd.HasExtremes[int16](v.extremes) || depth == 0 || depth >= 1<<16 {
		return nil
	}
	v.exps, _ = fixed.SoftmaxTables()
	v.tops = op.ScratchOf[int16](c, rows)
	return v
}

func (v *wideVectors) rows(y, x, tops []int16) {
	simd.ExtremeRows(v.extremes, false, tops, x, v.depth)
	for r, top := range tops {
		row := y[r*v.depth:][:v.depth]
		recip, shift := wideQuotient(v.f.Exps(row, x[r*v.depth:][:v.depth], &v.exps, top, &v.by))
		v.f.Quotients(row, recip, shift)
	}
}

func wideSoftmaxRow(out, in []int16, m fixed.Multiplier) {
	top := in[0]
	for _, v := range in {
		top = max(top, v)
	}
	var sum int32
	for i, v := range in {
		d := m.Apply(int32(v) - int32(top))
		out[i] = fixed.Exp16(fixed.Saturate16(d + 32767))
		sum += int32(out[i])
	}
	by, shift := wideQuotient(sum)
	recip := int64(by)
	for i, v := range out {
		q := (int64(v)*recip + 1<<shift>>1) >> shift
		out[i] = int16(max(0, min(q, math.MaxInt16)))
	}
}

// wideQuotient returns the reciprocal of the sum of exponentials and the right shift that follows
// the multiplication by it.
func wideQuotient(sum int32) (recip int16, shift uint) {
	zeros := bits.LeadingZeros32(uint32(sum))
	shifted := int32((int64(sum)<<uint(max(zeros-1, 0)) + 1<<13) >> 14)
	return fixed.Reciprocal16(fixed.Saturate16(shifted - 1<<15 - 1<<16)), uint(31 - zeros)
}

func prepareLogSoftmax(c *op.Call) (op.Run, error) {
	rows, depth := layer.LastAxis(c.In[0])
	x, y := c.In[0].Type, c.Out[0].Type
	if x != y {
		return nil, op.Unsupported("%v input with %v output", x, y)
	}
	switch x {
	case tensor.Float32:
		return layer.Ranges(rows, 1+4096/max(depth, 1), func(y, x []float32, lo, hi int) {
			for r := lo; r < hi; r++ {
				logSoftmaxRow(y[r*depth:(r+1)*depth], x[r*depth:(r+1)*depth])
			}
		}), nil
	case tensor.Int8, tensor.Uint8:
		return tableLogSoftmax(c, rows, depth)
	}
	return nil, op.Unsupported("%v input", x)
}

func logSoftmaxRow(y, x []float32) {
	top := float32(math.Inf(-1))
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for _, v := range x {
		sum += libm.Exp(v - top)
	}
	l := libm.Log(sum)
	for i, v := range x {
		y[i] = v - top - l
	}
}

// tableLogSoftmax reads 8-bit values, computes in real numbers and stores.
func tableLogSoftmax(c *op.Call, rows, depth int) (op.Run, error) {
	si, so, _, zo, err := layer.InOut(c)
	if err != nil {
		return nil, err
	}
	lo, hi := layer.Limits(c.Out[0].Type)
	var table [256]float32
	for i := range table {
		if table[i] = float32(i) * si; lo < 0 {
			table[i] = float32(int8(i)) * si
		}
	}
	x, y := make([]float32, depth), make([]float32, depth)
	return func(c *op.Call) error {
		for r := range rows {
			for i, b := range c.In[0].Data[r*depth:][:depth] {
				x[i] = table[b]
			}
			logSoftmaxRow(y, x)
			for i, v := range y {
				c.Out[0].Data[r*depth+i] = byte(max(lo, min(layer.Round(v/so)+zo, hi)))
			}
		}
		return nil
	}, nil
}
