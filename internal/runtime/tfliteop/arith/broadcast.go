package arith

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	walk "github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Broadcast walks two inputs and an output of the NumPy-broadcast shape.
type Broadcast struct{ *walk.Walk }

// NewBroadcast plans the walk over operands of two shapes.
func NewBroadcast(a, b []int) (*Broadcast, error) {
	shape, err := tensor.Broadcast(a, b)
	if err != nil {
		return nil, err
	}
	w, err := walk.New(shape, a, b)
	return &Broadcast{w}, err
}

// steps returns the strides along a run, 0 or 1.
func (w *Broadcast) steps() (a, b int) { return w.Step[0], w.Step[1] }

// cut is the number of elements below which another thread does not pay off.
const cut = 1 << 13

// each calls f for runs, with offsets into both inputs and the output, and the number of
// elements.
func (w *Broadcast) each(p *workers.Pool, f func(a, b, out, n int)) {
	w.Each(p, cut, func(out int, at [3]int, n int) { f(at[0], at[1], out, n) })
}

// Spread applies f to two inputs of one type.
func Spread[T, O tensor.Number](c *op.Call, w *Broadcast, f func(x, y T) O) {
	x, y, out := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[O](c.Out[0])
	ta, tb := w.steps()
	w.each(c.Pool, func(a, b, o, n int) {
		dst := out[o : o+n]
		for i := range dst {
			dst[i] = f(x[a], y[b])
			a += ta
			b += tb
		}
	})
}

func inferBroadcast(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if c.In[0].Type != c.In[1].Type {
		return op.Unsupported("inputs of types %v and %v", c.In[0].Type, c.In[1].Type)
	}
	s, err := tensor.Broadcast(c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return err
	}
	// A declared output type that contradicts the inputs is ignored.
	c.SetOut(0, c.In[0].Type, s)
	return nil
}
