package elementwise

import (
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// halves is a binary float16 operator, computed in float32 and rounded, one block of results at a
// time, which stays in the cache.
type halves struct {
	walk      *Broadcast
	loop      func(dst, a, b []float32)
	a, b, y   *tensor.Tensor
	workspace []float32 // two blocks a thread
	body      func(worker, lo, hi int)
}

// halfBlock is the number of results of a block.
const halfBlock = 1024

// prepareHalves runs the float32 loops on 16-bit operands.
func prepareHalves(c *op.Call, k arith) (op.Run, error) {
	plan, err := operands(c)
	if err != nil {
		return nil, err
	}
	l := realLoops[float32](k)
	if act := c.Activation; act.On {
		l = element.Clamped(l, act.Min, act.Max)
	}
	h := &halves{walk: plan, loop: l.Vec, workspace: make([]float32, 2*halfBlock*c.Pool.Threads())}
	h.body = h.work
	return func(c *op.Call) error {
		h.a, h.b, h.y = c.In[0], c.In[1], c.Out[0]
		c.Pool.ForWorker(h.walk.Len, element.Grain, h.body)
		h.a, h.b, h.y = nil, nil, nil
		return nil
	}, nil
}

func (h *halves) work(worker, lo, hi int) {
	workspace := h.workspace[worker*2*halfBlock:]
	a, b, n := workspace[:halfBlock], workspace[halfBlock:2*halfBlock], 0
	flush := func() {
		h.loop(a[:n], a[:n], b[:n])
		elem.WriteHalves(h.y, lo, a[:n])
		lo, n = lo+n, 0
	}
	for it := h.walk.Runs(lo, hi); it.Next(); {
		for at := 0; at < it.N; {
			m := min(it.N-at, halfBlock-n)
			h.take(a[n:n+m], h.a, it.Off[0], at, h.walk.Step[0])
			h.take(b[n:n+m], h.b, it.Off[1], at, h.walk.Step[1])
			if at, n = at+m, n+m; n == halfBlock {
				flush()
			}
		}
	}
	if n > 0 {
		flush()
	}
}

// take widens a part of a run of an operand, or repeats a broadcast one.
func (h *halves) take(dst []float32, x *tensor.Tensor, off, at, step int) {
	if step == 1 {
		elem.ReadHalves(dst, x, off+at)
		return
	}
	elem.ReadHalves(dst[:1], x, off)
	element.Fill(dst, dst[0])
}
