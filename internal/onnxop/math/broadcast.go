package math

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// Broadcast is the walk over operands and a result.
type Broadcast = broadcast.Walk

// NewBroadcast plans the walk over operands of the given shapes; what cannot be
// walked is unsupported.
func NewBroadcast(out []int, operands ...[]int) (*Broadcast, error) {
	b, err := broadcast.New(out, operands...)
	if err != nil {
		return nil, op.Unsupported("%v", err)
	}
	return b, nil
}

// binary is a prepared element-wise operator of two operands of type T.
type binary[T, R tensor.Number] struct {
	plan *Broadcast
	vec  func(dst []R, a, b []T)
	vs   func(dst []R, a []T, b T) // may be nil
	sv   func(dst []R, a T, b []T) // may be nil
	a, b []T
	out  []R
	fill []T // two blocks a worker, to spread standing operands that vec needs as slices
	body func(worker, lo, hi int)
}

// blockSize is the number of elements that loops with intermediate buffers work
// on at a time.
const blockSize = 256

func newBinary[T, R tensor.Number](p *workers.Pool, plan *Broadcast, vec func(dst []R, a, b []T)) *binary[T, R] {
	r := &binary[T, R]{plan: plan, vec: vec, fill: make([]T, 2*blockSize*p.Threads())}
	r.body = r.work
	return r
}

// run computes out from a and b.
func (r *binary[T, R]) run(p *workers.Pool, out []R, a, b []T) {
	r.out, r.a, r.b = out, a, b
	p.ForWorker(r.plan.Len, grain, r.body)
	r.out, r.a, r.b = nil, nil, nil
}

func (r *binary[T, R]) work(worker, lo, hi int) {
	sa, sb := r.plan.Step[0], r.plan.Step[1]
	for it := r.plan.Runs(lo, hi); it.Next(); {
		dst := r.out[it.Dst : it.Dst+it.N]
		switch {
		case sa == 1 && sb == 1:
			r.vec(dst, r.a[it.Off[0]:it.Off[0]+it.N], r.b[it.Off[1]:it.Off[1]+it.N])
		case sa == 1 && r.vs != nil:
			r.vs(dst, r.a[it.Off[0]:it.Off[0]+it.N], r.b[it.Off[1]])
		case sb == 1 && r.sv != nil:
			r.sv(dst, r.a[it.Off[0]], r.b[it.Off[1]:it.Off[1]+it.N])
		default:
			r.spread(dst, it.Off[0], it.Off[1], r.fill[worker*2*blockSize:(worker+1)*2*blockSize])
		}
	}
}

// spread runs vec with standing operands copied into blocks.
func (r *binary[T, R]) spread(dst []R, oa, ob int, fill []T) {
	sa, sb := r.plan.Step[0], r.plan.Step[1]
	n := min(blockSize, len(dst))
	fa, fb := fill[:n], fill[blockSize:blockSize+n]
	if sa == 0 {
		fillSlice(fa, r.a[oa])
	}
	if sb == 0 {
		fillSlice(fb, r.b[ob])
	}
	for lo := 0; lo < len(dst); lo += n {
		n := min(n, len(dst)-lo)
		a, b := fa[:n], fb[:n]
		if sa == 1 {
			a = r.a[oa+lo : oa+lo+n]
		}
		if sb == 1 {
			b = r.b[ob+lo : ob+lo+n]
		}
		r.vec(dst[lo:lo+n], a, b)
	}
}

func fillSlice[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// operandShapes gives the shapes of inputs 0 and 1 for broadcasting and the
// result's shape. Before operator set 7 the second operand was lined up with the
// first by the attributes broadcast and axis.
func operandShapes(c *op.Call) (a, b, out []int, err error) {
	if err := c.NeedInputs(2); err != nil {
		return nil, nil, nil, err
	}
	a, b = c.In[0].Shape, c.In[1].Shape
	if c.Node.Version < 7 && c.Node.Domain == "" && c.Node.Attrs.Bool("broadcast", false) {
		if tensor.Elements(b) == 1 {
			return a, nil, a, nil
		}
		if c.Node.Attrs.Has("axis") {
			axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), len(a))
			if err != nil {
				return nil, nil, nil, err
			}
			if axis+len(b) > len(a) {
				return nil, nil, nil, c.Errorf("shape %s at axis %d does not fit %s", tensor.FormatShape(b), axis, tensor.FormatShape(a))
			}
			b = slices.Clone(b)
			for len(b) < len(a)-axis {
				b = append(b, 1)
			}
		}
	}
	out, err = tensor.Broadcast(a, b)
	return a, b, out, err
}

// inferBinary sets the result of a two-operand operator to type t, or to the
// operands' own for Invalid.
func inferBinary(t tensor.Type) func(c *op.Call) error {
	return func(c *op.Call) error {
		_, _, out, err := operandShapes(c)
		if err != nil {
			return err
		}
		ty := t
		if ty == tensor.Invalid {
			ty = c.In[0].Type
		}
		c.SetOut(0, ty, out)
		return nil
	}
}
