package elem

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Prepare is the second stage of an operator.
type Prepare = func(c *op.Call) (op.Run, error)

// grain is the number of elements worth giving to another thread.
const grain = 8 << 10

// With fixes the second argument of a prepare function.
func With[K any](prepare func(c *op.Call, k K) (op.Run, error), k K) Prepare {
	return func(c *op.Call) (op.Run, error) { return prepare(c, k) }
}

// ByReal makes the second stage of an operator over floating-point tensors. The
// first floating-point input chooses: float32 and float64 have a kernel each (nil:
// not supported); halves go through float32 as in [Widen].
func ByReal(p32, p64 Prepare) Prepare {
	return func(c *op.Call) (op.Run, error) { return PrepareReal(c, p32, p64) }
}

// PrepareReal is the choice that [ByReal] makes, for operators that have further
// kernels for other types.
func PrepareReal(c *op.Call, p32, p64 Prepare) (op.Run, error) {
	kind := tensor.Invalid
	for _, x := range c.In {
		if x == nil {
			continue
		}
		if x.Type.IsHalf() {
			return widen(c, p32, nil)
		}
		if kind == tensor.Invalid && (x.Type == tensor.Float32 || x.Type == tensor.Float64) {
			kind = x.Type
		}
	}
	if p := tensor.PickReal(kind, p32, p64); p != nil {
		return p(c)
	}
	if kind == tensor.Invalid && len(c.In) > 0 && c.In[0] != nil {
		kind = c.In[0].Type
	}
	return nil, op.Unsupported("%s of %v", c.Node.Op, kind)
}

// Widen makes the float16 and bfloat16 variants of an operator that is written
// for float32: half inputs are widened before each run, constant ones once, and
// half outputs are rounded once after it.
func Widen(prepare Prepare) Prepare {
	return func(c *op.Call) (op.Run, error) {
		for _, list := range [][]*tensor.Tensor{c.In, c.Out} {
			for _, x := range list {
				if x != nil && x.Type.IsHalf() {
					return widen(c, prepare, nil)
				}
			}
		}
		return prepare(c)
	}
}

// WithCaches lets a definition of float32 and others have halves as they are in pairs of an input
// and an output, of which one may be missing: what keys and values of earlier runs are kept in.
// All other halves are widened. The pairs are the definition's Updates.
func WithCaches(d op.Def, p32 Prepare, pairs ...[2]int) op.Def {
	d.Updates = pairs
	others := d.Prepare
	d.Prepare = func(c *op.Call) (op.Run, error) {
		var keep []*tensor.Tensor
		for _, p := range pairs {
			var out *tensor.Tensor
			if c.Wants(p[1]) {
				out = c.Out[p[1]]
			}
			in := c.Input(p[0])
			if in != nil && in.Type.IsHalf() && (out == nil || out.Type == in.Type) || in == nil && out != nil && out.Type.IsHalf() {
				keep = append(keep, in, out)
			}
		}
		if keep == nil {
			return others(c)
		}
		return widen(c, p32, keep)
	}
	return d
}

// widened is a prepared operator that works on float32 twins of a call's halves.
type widened struct {
	call    op.Call
	run     op.Run
	in, out []*tensor.Tensor // nil where the call's own tensor is used
	ready   []bool           // inputs that are constant and converted
}

// widen prepares an operator of float32 for the halves of a call but those to keep.
func widen(c *op.Call, prepare Prepare, keep []*tensor.Tensor) (op.Run, error) {
	if prepare == nil {
		return nil, op.Unsupported("%s of half-precision floats", c.Node.Op)
	}
	in, out := c.In, c.Out
	w := &widened{ready: make([]bool, len(in))}
	for i, x := range in {
		w.ready[i] = x != nil && c.Const(i) && x.Known()
	}
	w.in, w.out = twins(c, in, keep, w.ready), twins(c, out, keep, nil)
	for i, x := range w.in {
		if x != nil && w.ready[i] {
			WidenTo(c.Pool, tensor.Of[float32](x), in[i])
		}
	}
	w.call = *c
	w.call.In, w.call.Out = make([]*tensor.Tensor, len(in)), make([]*tensor.Tensor, len(out))
	bind(w.call.In, in, w.in)
	bind(w.call.Out, out, w.out)
	c.In, c.Out = w.call.In, w.call.Out // so that prepare's scratch memory counts as this node's
	run, err := prepare(c)
	c.In, c.Out = in, out
	w.run = run
	for i, x := range w.in {
		switch {
		case x == nil || !w.ready[i]:
		case c.IsCopied(i):
			c.Recycler.Free(x)
		case c.IsPacked(i):
			x.Data = nil
		}
	}
	return w.exec, err
}

// twins makes a float32 tensor for each half but those to keep: with elements of its own where it
// is constant, in the node's working memory otherwise.
func twins(c *op.Call, own, keep []*tensor.Tensor, constant []bool) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(own))
	for i, x := range own {
		if x == nil || !x.Type.IsHalf() || slices.Contains(keep, x) {
			continue
		}
		f := &tensor.Tensor{Type: tensor.Float32, Shape: x.Shape}
		if out[i] = f; constant == nil || !constant[i] {
			f.Data = c.Scratch(x.Len() * 4)
			continue
		}
		if err := c.AffordTensor(f.Type, f.Shape); err != nil {
			panic(err)
		}
		c.Recycler.Alloc(f)
	}
	return out
}

// bind chooses the twin where there is one, else the own tensor.
func bind(to, own, twins []*tensor.Tensor) {
	for i, x := range own {
		to[i] = x
		if twins[i] != nil {
			to[i] = twins[i]
		}
	}
}

func (w *widened) exec(c *op.Call) error {
	for i, x := range w.in {
		if x != nil && !w.ready[i] {
			WidenTo(c.Pool, tensor.Of[float32](x), c.In[i])
		}
	}
	bind(w.call.In, c.In, w.in)
	bind(w.call.Out, c.Out, w.out)
	w.call.Env, w.call.Pool = c.Env, c.Pool
	if err := w.run(&w.call); err != nil {
		return err
	}
	for i, y := range w.out {
		if y != nil {
			NarrowTo(c.Pool, c.Out[i], tensor.Of[float32](y))
		}
	}
	return nil
}

// conversion is a tensor, and its elements in float32.
type conversion struct {
	x    *tensor.Tensor
	wide []float32
}

// WidenTo converts the elements of any tensor of numbers to float32 in parallel.
func WidenTo(p *workers.Pool, dst []float32, x *tensor.Tensor) {
	workers.Do(p, len(dst), grain, conversion{x, dst}, func(a conversion, lo, hi int) { ReadHalves(a.wide[lo:hi], a.x, lo) })
}

// ReadHalves widens elements of any tensor of numbers, fast for float16, from at on.
func ReadHalves(dst []float32, x *tensor.Tensor, at int) {
	if e := simd.ElementKernels(); e != nil && x.Type == tensor.Float16 {
		n := e.FromHalf(dst, tensor.Of[uint16](x)[at:])
		dst, at = dst[n:], at+n
	}
	tensor.Read(dst, x, at)
}

// NarrowTo rounds float32 elements into a floating-point tensor of whole bytes in parallel.
func NarrowTo(p *workers.Pool, y *tensor.Tensor, src []float32) {
	workers.Do(p, len(src), grain, conversion{y, src}, func(a conversion, lo, hi int) { WriteHalves(a.x, lo, a.wide[lo:hi]) })
}

// WriteHalves rounds elements to those of a floating-point tensor of whole bytes from at on.
func WriteHalves(y *tensor.Tensor, at int, src []float32) {
	if e := simd.ElementKernels(); e != nil && y.Type == tensor.Float16 {
		n := e.ToHalf(tensor.Of[uint16](y)[at:][:len(src)], src)
		src, at = src[n:], at+n
	}
	tensor.WriteFloat32(y, at, src)
}

// block is the number of elements that [RunHalves] converts together: a block stays in the cache.
const block = 1024

// RunHalves applies f, whose dst may be src, to the halves of input 0 as to float32, and rounds the
// results to output 0.
func RunHalves(c *op.Call, f func(dst, src []float32)) op.Run {
	workspace := make([]float32, block*c.Pool.Threads())
	return op.ParallelWorkers(c.In[0].Len(), grain, func(c *op.Call, worker, lo, hi int) {
		for lo < hi {
			v := workspace[worker*block:][:min(block, hi-lo)]
			ReadHalves(v, c.In[0], lo)
			f(v, v)
			WriteHalves(c.Out[0], lo, v)
			lo += len(v)
		}
	})
}
