package resize

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func prepareResize(c *op.Call) (op.Run, error) {
	mode := c.Node.Attrs.Str("mode", "nearest")
	if mode == "nearest" {
		return prepareNearest(c)
	}
	if f := tensor.PickInteger(c.In[0].Type, prepareInterpolateInt[int8], prepareInterpolateInt[int16], prepareInterpolateInt[int32], prepareInterpolateInt[int64], prepareInterpolateInt[uint8], prepareInterpolateInt[uint16], prepareInterpolateInt[uint32], prepareInterpolateInt[uint64]); f != nil {
		return f(c)
	}
	if c.In[0].Type.IsHalf() {
		return elem.Widen(prepareInterpolate[float32])(c)
	}
	if c.In[0].Type == tensor.Float64 {
		return prepareInterpolate[float64](c)
	}
	if c.In[0].Type != tensor.Float32 {
		return nil, op.Unsupported("%s of %v", mode, c.In[0].Type)
	}
	return prepareInterpolate[float32](c)
}

// resizeConst reports whether everything that tables depend on is constant.
func resizeConst(c *op.Call) bool {
	for i := 1; i < len(c.In); i++ {
		if c.Has(i) && !c.Const(i) {
			return false
		}
	}
	return true
}

// fixed wraps build: it is called once if the node's tables are constant and in each run
// otherwise.
func fixed[P any](c *op.Call, build func(c *op.Call) (P, error)) (func(c *op.Call) (P, error), error) {
	if !resizeConst(c) {
		return build, nil
	}
	p, err := build(c)
	return func(*op.Call) (P, error) { return p, err }, err
}

// nearestPlan holds the input position of each output position, by axis.
type nearestPlan struct {
	*resize
	at     [][]int
	inside bool // no position of the last axis lies outside
	each   int  // how often each element of the last axis follows in order; 0 for something else
	kept   any  // a nearestRun of the type that was moved last: runs must not allocate
}

func prepareNearest(c *op.Call) (op.Run, error) {
	plan, err := fixed(c, func(c *op.Call) (*nearestPlan, error) {
		r, err := newResize(c)
		if err != nil {
			return nil, err
		}
		p := &nearestPlan{resize: r}
		for d, n := range r.out {
			m := make([]int, n)
			for x := range m {
				m[x] = r.pixel(d, x)
			}
			p.at = append(p.at, m)
		}
		p.look()
		return p, r.check()
	})
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		p, err := plan(c)
		if err != nil {
			return err
		}
		x, y := c.In[0], c.Out[0]
		if x.Type == tensor.String {
			nearestCopy(nil, p, x.Strings, y.Strings, "")
			return nil
		}
		// Elements are only moved, so only their width matters.
		switch v := p.extrapolation; x.Type.Bits() {
		case 8:
			nearestCopy(c.Pool, p, words[uint8](x), words[uint8](y), bits[uint8](x.Type, v))
		case 16:
			nearestCopy(c.Pool, p, words[uint16](x), words[uint16](y), bits[uint16](x.Type, v))
		case 32:
			nearestCopy(c.Pool, p, words[uint32](x), words[uint32](y), bits[uint32](x.Type, v))
		case 64:
			nearestCopy(c.Pool, p, words[uint64](x), words[uint64](y), bits[uint64](x.Type, v))
		default:
			return op.Unsupported("Resize of %v", x.Type)
		}
		return nil
	}, nil
}

// look analyses the last axis.
func (p *nearestPlan) look() {
	if len(p.at) == 0 {
		return
	}
	cols, n := p.at[len(p.at)-1], p.in[len(p.in)-1]
	p.inside = !slices.ContainsFunc(cols, func(q int) bool { return q < 0 })
	if n == 0 || len(cols)%n != 0 {
		return
	}
	p.each = len(cols) / n
	for j, q := range cols {
		if q != j/p.each {
			p.each = 0
			return
		}
	}
}

// words views the elements as unsigned integers of their width.
func words[T tensor.Number](x *tensor.Tensor) []T { return tensor.Of[T](&tensor.Tensor{Data: x.Data}) }

// bits returns the representation of v in an element type.
func bits[T uint8 | uint16 | uint32 | uint64](t tensor.Type, v float64) T {
	switch t {
	case tensor.Float32:
		return T(math.Float32bits(float32(v)))
	case tensor.Float64:
		return T(math.Float64bits(v))
	case tensor.Float16:
		return T(tensor.F32ToF16(float32(v)))
	case tensor.BFloat16:
		return T(tensor.F32ToBF16(float32(v)))
	}
	return T(int64(v))
}

func nearestCopy[E any](pool *workers.Pool, p *nearestPlan, x, y []E, outside E) {
	rank := len(p.out)
	if rank == 0 {
		copy(y, x)
		return
	}
	cols := p.at[rank-1]
	if len(cols) == 0 {
		return
	}
	r, ok := p.kept.(*nearestRun[E])
	if !ok {
		r = &nearestRun[E]{nearestPlan: p, stride: tensor.Strides(p.in), place: make([]int, pool.Threads()*placeWorkspace(rank))}
		r.work = r.rows
		p.kept = r
	}
	r.x, r.y, r.outside = x, y, outside
	pool.ForWorker(len(y)/len(cols), max(1, 1<<12/len(cols)), r.work)
}

// nearestRun is the state of a run.
type nearestRun[E any] struct {
	*nearestPlan
	x, y    []E
	outside E
	stride  []int
	place   []int // of the row in work, one a worker
	work    func(worker, lo, hi int)
}

// placeWorkspace is the memory for the position of a row, with a cache line between those of two
// workers.
func placeWorkspace(rank int) int { return rank + 8 }

// rows fills rows lo to hi.
func (p *nearestRun[E]) rows(worker, lo, hi int) {
	last := len(p.out) - 1
	cols, at := p.nearestPlan.at[last], p.place[worker*placeWorkspace(last+1):][:last]
	tensor.Unravel(lo, p.out[:last], at)
	before := -1 // where the row before came from
	for i := lo; i < hi; i++ {
		base, inside := 0, true
		for d, o := range at {
			q := p.nearestPlan.at[d][o]
			inside = inside && q >= 0
			base += q * p.stride[d]
		}
		row := p.y[i*len(cols):][:len(cols)]
		switch {
		case inside && base == before:
			copy(row, p.y[(i-1)*len(cols):])
		case inside && p.each == 2:
			pairs(row, p.x[base:][:len(cols)/2])
		case inside && p.inside:
			from := p.x[base:]
			for j, q := range cols {
				row[j] = from[q]
			}
		default:
			for j, q := range cols {
				if inside && q >= 0 {
					row[j] = p.x[base+q]
				} else {
					row[j] = p.outside
				}
			}
		}
		if before = -1; inside {
			before = base
		}
		tensor.Next(at, p.out[:last])
	}
}

// pairs writes every element twice.
func pairs[E any](dst, src []E) {
	if len(src) == 0 {
		return
	}
	switch v := any(src).(type) {
	case []uint32: // both copies with one store
		both := unsafe.Slice((*uint64)(unsafe.Pointer(&dst[0])), len(v))
		for j, x := range v {
			both[j] = uint64(x) * (1<<32 + 1)
		}
	case []uint16:
		both := unsafe.Slice((*uint32)(unsafe.Pointer(&dst[0])), len(v))
		for j, x := range v {
			both[j] = uint32(x) * (1<<16 + 1)
		}
	case []uint8:
		both := unsafe.Slice((*uint16)(unsafe.Pointer(&dst[0])), len(v))
		for j, x := range v {
			both[j] = uint16(x) * (1<<8 + 1)
		}
	default:
		for j, x := range src {
			pair := dst[2*j:][:2]
			pair[0], pair[1] = x, x
		}
	}
}

// interpolation is the list of axes that change, with their tables.
type interpolation[T tensor.Real] struct {
	*resize
	axes  []*axisTaps[T]
	shape []int // of what a run has made
}

type axisTaps[T tensor.Real] struct {
	*resizeTaps
	weight []T
	lines  *vectors.Interpolator // of float32 lines that are linear everywhere; nil for others
}

func newInterpolation[T tensor.Real](c *op.Call) (*interpolation[T], error) {
	r, err := newResize(c)
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	p := &interpolation[T]{resize: r}
	for d := range r.out {
		if r.scale[d] == 1 && r.out[d] == r.in[d] && (r.roi == nil || r.roi[d] == 0 && r.roi[len(r.in)+d] == 1) {
			continue
		}
		t := &axisTaps[T]{resizeTaps: r.table(d)}
		for _, w := range t.resizeTaps.weight {
			t.weight = append(t.weight, T(w))
		}
		if w, ok := any(t.weight).([]float32); ok && t.n == 2 && d == len(r.out)-1 && !slices.Contains(t.outside, true) {
			t.lines = vectors.NewInterpolator(r.in[d], t.at, w)
		}
		p.axes = append(p.axes, t)
	}
	// The last axis, whose values are interpolated individually, has the fewest values after axes
	// that shrink and before those that grow.
	slices.SortStableFunc(p.axes, func(a, b *axisTaps[T]) int { return cmp.Compare(p.grows(a.axis), p.grows(b.axis)) })
	return p, nil
}

// grows orders axes: those that shrink, the last one, those that grow.
func (p *interpolation[T]) grows(axis int) int {
	switch {
	case axis == len(p.in)-1:
		return 1
	case p.out[axis] > p.in[axis]:
		return 2
	}
	return 0
}

func prepareInterpolate[T tensor.Real](c *op.Call) (op.Run, error) {
	plan, err := fixed(c, newInterpolation[T])
	if err != nil {
		return nil, err
	}
	var work [2][]T
	return func(c *op.Call) error {
		p, err := plan(c)
		if err != nil {
			return err
		}
		p.run(c.Pool, tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0]), &work)
		return nil
	}, nil
}

func prepareInterpolateInt[I tensor.Number](c *op.Call) (op.Run, error) {
	plan, err := fixed(c, newInterpolation[float32])
	if err != nil {
		return nil, err
	}
	var work [2][]float32
	var in, out []float32
	return func(c *op.Call) error {
		p, err := plan(c)
		if err != nil {
			return err
		}
		x, y := tensor.Of[I](c.In[0]), tensor.Of[I](c.Out[0])
		in, out = elem.Grow(in, len(x)), elem.Grow(out, len(y))
		for i, v := range x {
			in[i] = float32(v)
		}
		p.run(c.Pool, in, out, &work)
		for i, v := range out {
			y[i] = I(v)
		}
		return nil
	}, nil
}

// run interpolates axis by axis.
func (p *interpolation[T]) run(pool *workers.Pool, x, y []T, work *[2][]T) {
	if len(y) == 0 {
		return
	}
	if len(p.axes) == 0 {
		copy(y, x)
		return
	}
	p.shape = append(p.shape[:0], p.in...)
	shape := p.shape
	src := x
	for i, t := range p.axes {
		n := shape[t.axis]
		shape[t.axis] = p.out[t.axis]
		dst := y
		if i < len(p.axes)-1 {
			work[i%2] = elem.Grow(work[i%2], tensor.Elements(shape))
			dst = work[i%2]
		}
		t.apply(pool, src, dst, tensor.Elements(shape[:t.axis]), n, tensor.Elements(shape[t.axis+1:]), T(p.extrapolation))
		src = dst
	}
}

// line interpolates along a line with contiguous values.
func (t *axisTaps[T]) line(dst, src []T, extrapolation T) {
	if t.n == 2 { // linear
		at, w := t.at[:2*len(dst)], t.weight[:2*len(dst)]
		for o := range dst {
			dst[o] = w[2*o]*src[at[2*o]] + w[2*o+1]*src[at[2*o+1]]
		}
	} else {
		for o := range dst {
			var s T
			w := t.weight[o*t.n:][:t.n]
			for k, q := range t.at[o*t.n:][:t.n] {
				s += w[k] * src[q]
			}
			dst[o] = s
		}
	}
	for o, outside := range t.outside {
		if outside {
			dst[o] = extrapolation
		}
	}
}

// apply interpolates along the middle one of three axes.
func (t *axisTaps[T]) apply(pool *workers.Pool, x, y []T, outer, n, inner int, extrapolation T) {
	m := len(t.outside)
	a := applied[T]{t: t, x: x, y: y, n: n, inner: inner, outer: outer, extrapolation: extrapolation}
	if inner == 1 {
		workers.Each(pool, outer, max(1, 1<<12/max(m*t.n, 1)), a)
		return
	}
	a.planes = max(1, min(outer, rowsTogether/inner))
	workers.Each(pool, (outer+a.planes-1)/a.planes*m, max(1, 1<<12/max(a.planes*inner*t.n, 1)), a)
}

// rowsTogether is the number of values of corresponding rows of several planes that are computed
// together, with one set of weights.
const rowsTogether = 1 << 11

// applied holds the arguments of a work item along an axis.
type applied[T tensor.Real] struct {
	t               *axisTaps[T]
	x, y            []T
	n, inner, outer int
	planes          int // whose rows go together
	extrapolation   T
}

// Piece computes lines lo to hi along the last axis, or rows along another one, for some planes
// at a time.
func (a applied[T]) Piece(lo, hi int) {
	t, m, n, inner := a.t, len(a.t.outside), a.n, a.inner
	switch {
	case inner == 1 && t.lines != nil:
		t.lines.Lines(any(a.y[lo*m:hi*m]).([]float32), any(a.x[lo*n:hi*n]).([]float32))
		return
	case inner == 1:
		for i := lo; i < hi; i++ {
			t.line(a.y[i*m:][:m], a.x[i*n:][:n], a.extrapolation)
		}
		return
	}
	sums := sumWorkspaces.Get().(*sumWorkspace)
	defer sumWorkspaces.Put(sums)
	for i := lo; i < hi; i++ {
		o, first := i%m, i/m*a.planes
		planes := min(a.outer-first, a.planes)
		dst, src := a.y[(first*m+o)*inner:], a.x[first*n*inner:]
		if t.outside[o] {
			for p := range planes {
				row := dst[p*m*inner:][:inner]
				element.Fill(row, a.extrapolation)
			}
			continue
		}
		weightedRows(sums, dst, m*inner, src, n*inner, inner, planes, t.at[o*t.n:][:t.n], t.weight[o*t.n:][:t.n])
	}
}

// sumWorkspace is scratch memory for adding up rows.
type sumWorkspace struct {
	adder   vectors.Sum
	from    []int
	weights []float32
}

var sumWorkspaces = sync.Pool{New: func() any { return new(sumWorkspace) }}

// weightedRows writes rows of n values, stepDst values apart: each is the sum of rows of a plane
// of src times their weights, and the next plane is step values further. Rows with zero weight
// are not read.
func weightedRows[T tensor.Real](workspace *sumWorkspace, dst []T, stepDst int, src []T, step, n, planes int, at []int, weights []T) {
	if dst, ok := any(dst).([]float32); ok {
		workspace.from, workspace.weights = workspace.from[:0], workspace.weights[:0]
		for k, w := range weights {
			if w != 0 {
				workspace.from, workspace.weights = append(workspace.from, at[k]*n), append(workspace.weights, float32(w))
			}
		}
		workspace.adder.Lines(dst, stepDst, any(src).([]float32), step, n, planes, workspace.from, workspace.weights)
		return
	}
	for p := range planes {
		row := dst[p*stepDst:][:n]
		clear(row)
		for k, q := range at {
			wk := weights[k]
			if wk == 0 {
				continue
			}
			for j, v := range src[p*step+q*n:][:n] {
				row[j] += wk * v
			}
		}
	}
}
