package norm

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/pool"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// rowNorm is a normalisation over the axes from axis on; scale and bias broadcast to the input.
type rowNorm struct {
	rows, cols  int
	eps         float64
	scale, bias *spread
}

// spread maps positions of the input to those of a broadcast operand.
type spread struct {
	direct bool // one value per column
	at     []int32
	cols   int
}

// NewSpread maps an operand of shape s to an input of shape x from axis on.
func NewSpread(x, s []int, axis int) (*spread, error) {
	out, err := tensor.Broadcast(x, s)
	if err != nil || !slices.Equal(out, x) {
		return nil, fmt.Errorf("shape %s does not broadcast to %s", tensor.FormatShape(s), tensor.FormatShape(x))
	}
	cols := tensor.Elements(x[axis:])
	if tensor.Elements(s) == cols && len(s) >= len(x)-axis {
		if tail := s[len(s)-(len(x)-axis):]; slices.Equal(tail, x[axis:]) {
			return &spread{direct: true, cols: cols}, nil
		}
	}
	st := matmul.BroadcastStrides(s, len(x))
	m := &spread{cols: cols, at: make([]int32, tensor.Elements(x))}
	at := make([]int, len(x))
	for i := range m.at {
		p := 0
		for d, q := range at {
			p += q * st[d]
		}
		m.at[i] = int32(p)
		tensor.Next(at, x)
	}
	return m, nil
}

// spreadRow returns the operand's values of one row, gathered into buf if they are not
// contiguous.
func spreadRow[T tensor.Real](m *spread, v []T, row int, buf []T) []T {
	if m.direct {
		return v[:m.cols]
	}
	for j, p := range m.at[row*m.cols:][:m.cols] {
		buf[j] = v[p]
	}
	return buf[:m.cols]
}

func newRowNorm(c *op.Call, axis int, scale, bias *tensor.Tensor) (*rowNorm, error) {
	x := c.In[0]
	ax, err := op.Axis(axis, x.Rank())
	if err != nil {
		return nil, err
	}
	v := &rowNorm{rows: tensor.Elements(x.Shape[:ax]), cols: tensor.Elements(x.Shape[ax:])}
	if scale != nil {
		if v.scale, err = NewSpread(x.Shape, scale.Shape, ax); err != nil {
			return nil, fmt.Errorf("scale: %w", err)
		}
	}
	if bias != nil {
		if v.bias, err = NewSpread(x.Shape, bias.Shape, ax); err != nil {
			return nil, fmt.Errorf("bias: %w", err)
		}
	}
	return v, nil
}

// InferLayerNormalization serves LayerNormalization and SimplifiedLayerNormalization: statistics
// have the stash type, float32.
func InferLayerNormalization(c *op.Call) error {
	x := c.In[0]
	axis, err := op.Axis(c.Node.Attrs.Int("axis", -1), x.Rank())
	if err != nil {
		return err
	}
	c.SetOut(0, x.Type, slices.Clone(x.Shape))
	stat := slices.Clone(x.Shape)
	for i := axis; i < len(stat); i++ {
		stat[i] = 1
	}
	t := tensor.Float32
	if x.Type == tensor.Float64 && c.Node.Attrs.Int("stash_type", 1) == 11 {
		t = tensor.Float64
	}
	c.SetOut(1, t, stat)
	c.SetOut(2, t, slices.Clone(stat))
	return nil
}

func prepareLayerNormalization[T tensor.Real](c *op.Call) (op.Run, error) {
	v, err := newRowNorm(c, c.Node.Attrs.Int("axis", -1), c.In[1], c.Input(2))
	if err != nil {
		return nil, err
	}
	v.eps = float64(c.Node.Attrs.Float("epsilon", 1e-5))
	buf, r := op.ScratchOf[T](c, 2*v.cols*c.Pool.Threads()), simd.RowKernels()
	return op.ParallelWorkers(v.rows, max(1, 1<<12/max(v.cols, 1)), func(c *op.Call, worker, lo, hi int) {
		x, y, gamma, beta := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[1]), elem.Elements[T](c, 2)
		// Whole rows with SIMD.
		if f, ok := any(y[lo*v.cols : hi*v.cols]).([]float32); ok && r != nil && beta != nil && v.scale.direct && v.bias.direct && !c.Wants(1) && !c.Wants(2) &&
			r.LayerRows(f, any(x[lo*v.cols:]).([]float32), any(gamma[:v.cols]).([]float32), any(beta[:v.cols]).([]float32), v.eps) {
			return
		}
		b := buf[2*v.cols*worker:][:2*v.cols]
		for i := lo; i < hi; i++ {
			src, dst := x[i*v.cols:][:v.cols], y[i*v.cols:][:v.cols]
			mean, inv := Moments(src, v.eps)
			Store(c, 1, i, mean)
			Store(c, 2, i, inv)
			g := spreadRow(v.scale, gamma, i, b)
			var o []T
			if beta != nil {
				o = spreadRow(v.bias, beta, i, b[v.cols:])
			}
			Standardise(dst, src, mean, inv)
			Affine(dst, g, o)
		}
	}), nil
}

// PrepareRMSNormalization divides rows by their root mean square.
func PrepareRMSNormalization[T tensor.Real](c *op.Call) (op.Run, error) {
	v, err := newRowNorm(c, c.Node.Attrs.Int("axis", -1), c.In[1], nil)
	if err != nil {
		return nil, err
	}
	v.eps = float64(c.Node.Attrs.Float("epsilon", 1e-5))
	buf, r := op.ScratchOf[T](c, v.cols*c.Pool.Threads()), simd.RowKernels()
	return op.ParallelWorkers(v.rows, max(1, 1<<12/max(v.cols, 1)), func(c *op.Call, worker, lo, hi int) {
		x, y, gamma := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[1])
		// Whole rows with SIMD.
		if f, ok := any(y[lo*v.cols : hi*v.cols]).([]float32); ok && r != nil && v.scale.direct && !c.Wants(1) &&
			r.MeanSquareRows(f, any(x[lo*v.cols:]).([]float32), any(gamma[:v.cols]).([]float32), v.eps) {
			return
		}
		for i := lo; i < hi; i++ {
			src, dst := x[i*v.cols:][:v.cols], y[i*v.cols:][:v.cols]
			inv := InverseRMS(src, v.eps)
			Store(c, 1, i, inv)
			Standardise(dst, src, 0, inv)
			Affine(dst, spreadRow(v.scale, gamma, i, buf[v.cols*worker:][:v.cols]), nil)
		}
	}), nil
}

// InverseRMS returns one over the root mean square, with eps added to the mean.
func InverseRMS[T tensor.Real](v []T, eps float64) float64 {
	n := float64(max(len(v), 1))
	if f, ok := any(v).([]float32); ok {
		if r := simd.RowKernels(); r != nil {
			return 1 / math.Sqrt(r.Squares(f, 0)/n+eps)
		}
	}
	var q float64
	for _, x := range v {
		q += float64(x) * float64(x)
	}
	return 1 / math.Sqrt(q/n+eps)
}

// prepareLpNormalization divides by the norm along one axis; a zero norm gives zeros.
func prepareLpNormalization[T tensor.Real](c *op.Call) (op.Run, error) {
	x := c.In[0]
	axis, err := op.Axis(c.Node.Attrs.Int("axis", -1), x.Rank())
	if err != nil {
		return nil, err
	}
	p := c.Node.Attrs.Int("p", 2)
	if p != 1 && p != 2 {
		return nil, fmt.Errorf("p = %d", p)
	}
	n, inner := x.Shape[axis], tensor.Elements(x.Shape[axis+1:])
	outer := tensor.Elements(x.Shape[:axis])
	if x.Type == tensor.Float32 && simd.FoldKernels() != nil && n > 0 {
		return lpVectors(outer, n, inner, p), nil
	}
	return op.Parallel(outer*inner, max(1, 1<<12/max(n, 1)), func(c *op.Call, lo, hi int) {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for i := lo; i < hi; i++ {
			base := i/inner*n*inner + i%inner
			var s float64
			for j := range n {
				s += pool.Power(float64(x[base+j*inner]), float64(p))
			}
			by := factor(s, p)
			for j := range n {
				y[base+j*inner] = T(float64(x[base+j*inner]) * by)
			}
		}
	}), nil
}

// factor returns the factor of a line from its sum of powers: zero if all elements are zero.
func factor(s float64, p int) float64 {
	if p == 2 {
		s = math.Sqrt(s)
	}
	if s == 0 {
		return 0
	}
	return 1 / s
}

// lpColumns is the number of columns that [lpVectors] processes together.
const lpColumns = 128

// lpVectors is LpNormalization of float32 with SIMD.
func lpVectors(outer, n, inner, p int) op.Run {
	f, r, k := simd.FoldKernels(), simd.RowKernels(), simd.FoldSquares
	if p == 1 {
		k = simd.FoldMagnitudes
	}
	tiles := (inner + lpColumns - 1) / lpColumns
	workspaces := sync.Pool{New: func() any { return new([lpColumns]float64) }}
	return op.Parallel(outer*tiles, max(1, 1<<13/(n*min(inner, lpColumns))), func(c *op.Call, lo, hi int) {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		for i := lo; i < hi; i++ {
			if inner == 1 {
				row := x[i*n:][:n]
				r.Normalise(y[i*n:][:n], row, 0, factor(f.Row(k, row), p))
				continue
			}
			col := i % tiles * lpColumns
			base := i/tiles*n*inner + col
			workspace := workspaces.Get().(*[lpColumns]float64)
			by := workspace[:min(lpColumns, inner-col)]
			f.Lines(k, by, x[base:], inner, n)
			for j, s := range by {
				by[j] = factor(s, p)
			}
			for l := range n {
				src, dst := x[base+l*inner:][:len(by)], y[base+l*inner:][:len(by)]
				for j, v := range src {
					dst[j] = float32(float64(v) * by[j])
				}
			}
			workspaces.Put(workspace)
		}
	})
}

// prepareLRN normalises over neighbouring channels.
func prepareLRN[T tensor.Real](c *op.Call) (op.Run, error) {
	x, a := c.In[0], c.Node.Attrs
	if x.Rank() < 2 {
		return nil, fmt.Errorf("input %s", tensor.FormatShape(x.Shape))
	}
	size := a.Int("size", 0)
	if size < 1 {
		return nil, fmt.Errorf("size %d", size)
	}
	alpha, beta, bias := float64(a.Float("alpha", 1e-4)), float64(a.Float("beta", 0.75)), float64(a.Float("bias", 1))
	n, ch, area := x.Shape[0], x.Shape[1], tensor.Elements(x.Shape[2:])
	before, after := (size-1)/2, size-1-(size-1)/2
	if r := simd.RowKernels(); r != nil && x.Type == tensor.Float32 && beta == 0.75 {
		workspace := op.ScratchOf[float32](c, c.Pool.Threads()*area)
		return op.ParallelWorkers(n*ch, max(1, 1<<13/max(size*area, 1)), func(c *op.Call, worker, lo, hi int) {
			xs, ys := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
			sum := workspace[worker*area:][:area]
			for i := lo; i < hi; i++ {
				k := i % ch
				clear(sum)
				for j := max(k-before, 0); j <= min(k+after, ch-1); j++ {
					r.AddSquares(sum, xs[(i-k+j)*area:][:area])
				}
				r.ThreeQuarters(ys[i*area:][:area], xs[i*area:], sum, float32(bias), float32(alpha/float64(size)))
			}
		}), nil
	}
	workspace := op.ScratchOf[float64](c, c.Pool.Threads()*area)
	var xs, ys []T
	work := func(worker, lo, hi int) {
		sum := workspace[worker*area:][:area]
		for i := lo; i < hi; i++ {
			k := i % ch
			clear(sum)
			for j := max(k-before, 0); j <= min(k+after, ch-1); j++ {
				for p, v := range xs[(i-k+j)*area:][:area] {
					sum[p] += float64(v) * float64(v)
				}
			}
			dst := ys[i*area:][:area]
			for p, v := range xs[i*area:][:area] {
				dst[p] = T(float64(v) * falloff(bias+alpha/float64(size)*sum[p], beta))
			}
		}
	}
	return func(c *op.Call) error {
		xs, ys = tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		c.Pool.ForWorker(n*ch, 1, work)
		return nil
	}, nil
}

// falloff returns x to the power of -beta; nearly all models have beta = 3/4.
func falloff(x, beta float64) float64 {
	if beta == 0.75 {
		r := math.Sqrt(x)
		return 1 / (r * math.Sqrt(r))
	}
	return math.Pow(x, -beta)
}

// prepareMVN subtracts the mean and divides by the standard deviation over axes.
func prepareMVN[T tensor.Real](c *op.Call) (op.Run, error) {
	x := c.In[0]
	axes := c.Node.Attrs.Ints("axes")
	if axes == nil {
		axes = []int{0, 2, 3}
	}
	reduced := make([]bool, x.Rank())
	for _, a := range axes {
		ax, err := op.Axis(a, x.Rank())
		if err != nil {
			return nil, err
		}
		reduced[ax] = true
	}
	groups, stride := 1, make([]int, x.Rank())
	for d := x.Rank() - 1; d >= 0; d-- {
		if !reduced[d] {
			stride[d] = groups
			groups *= x.Shape[d]
		}
	}
	if groups == 0 || x.Len() == 0 {
		return func(*op.Call) error { return nil }, nil
	}
	if run := tensor.Elements(trailing(x.Shape, reduced, true)); run > 1 && x.Type == tensor.Float32 && simd.RowKernels() != nil {
		return mvnVectors(x.Shape, stride, groups, run), nil
	}
	count := float64(x.Len() / groups)
	mean, scale := op.ScratchOf[float64](c, groups), op.ScratchOf[float64](c, groups)
	// The tensor is processed in pieces: of one group, or of one element of each of consecutive
	// groups.
	together := x.Rank() > 0 && reduced[x.Rank()-1]
	piece := tensor.Elements(trailing(x.Shape, reduced, together))
	first := make([]int32, x.Len()/piece)
	for i := range first {
		rest, g := i*piece, 0
		for d := x.Rank() - 1; d >= 0; d-- {
			g += rest % x.Shape[d] * stride[d]
			rest /= x.Shape[d]
		}
		first[i] = int32(g)
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		clear(mean)
		clear(scale)
		for i, g := range first {
			x := x[i*piece:][:piece]
			if together {
				for _, v := range x {
					mean[g] += float64(v)
				}
				continue
			}
			to := mean[g:][:len(x)]
			for j, v := range x {
				to[j] += float64(v)
			}
		}
		for g := range mean {
			mean[g] /= count
		}
		for i, g := range first {
			x := x[i*piece:][:piece]
			if together {
				m, s := mean[g], 0.0
				for _, v := range x {
					d := float64(v) - m
					s += d * d
				}
				scale[g] += s
				continue
			}
			from, to := mean[g:][:len(x)], scale[g:][:len(x)]
			for j, v := range x {
				d := float64(v) - from[j]
				to[j] += d * d
			}
		}
		for g, v := range scale {
			// The operator's definition adds 1e-9 to the standard deviation.
			scale[g] = 1 / (math.Sqrt(v/count) + 1e-9)
		}
		for i, g := range first {
			x, y := x[i*piece:][:piece], y[i*piece:][:piece]
			if together {
				m, s := mean[g], scale[g]
				for j, v := range x {
					y[j] = T((float64(v) - m) * s)
				}
				continue
			}
			from, by := mean[g:][:len(x)], scale[g:][:len(x)]
			for j, v := range x {
				y[j] = T((float64(v) - from[j]) * by[j])
			}
		}
		return nil
	}, nil
}

// trailing returns the last dimensions that are all reduced, or all kept.
func trailing(shape []int, reduced []bool, wanted bool) []int {
	i := len(shape)
	for i > 0 && reduced[i-1] == wanted {
		i--
	}
	return shape[i:]
}

// mvnVectors is MeanVarianceNormalization of float32 with SIMD, for groups of contiguous runs.
func mvnVectors(shape, stride []int, groups, run int) op.Run {
	runs, at := make([][]int, groups), make([]int, len(shape))
	for begin := 0; begin < tensor.Elements(shape); begin += run {
		rest, g := begin, 0
		for d := len(shape) - 1; d >= 0; d-- {
			at[d], rest = rest%shape[d], rest/shape[d]
			g += at[d] * stride[d]
		}
		runs[g] = append(runs[g], begin)
	}
	r := simd.RowKernels()
	return op.Parallel(groups, max(1, 1<<13/(tensor.Elements(shape)/groups)), func(c *op.Call, lo, hi int) {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		for _, begins := range runs[lo:hi] {
			var sum, squares float64
			for _, b := range begins {
				sum += r.Sum(x[b:][:run])
			}
			count := float64(len(begins) * run)
			mean := sum / count
			for _, b := range begins {
				squares += r.Squares(x[b:][:run], mean)
			}
			// The operator's definition adds 1e-9 to the standard deviation.
			inv := 1 / (math.Sqrt(squares/count) + 1e-9)
			for _, b := range begins {
				r.Normalise(y[b:][:run], x[b:][:run], mean, inv)
			}
		}
	})
}
