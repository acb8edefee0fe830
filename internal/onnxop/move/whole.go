package move

import (
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// Aliased reports whether both tensors have the same memory, because the
// planner let the operator work in place.
func Aliased(a, b *tensor.Tensor) bool {
	return len(a.Data) > 0 && len(b.Data) > 0 && &a.Data[0] == &b.Data[0]
}

// All copies every element of src to dst, which has the same type and number of
// elements. Nothing happens when they share memory. Containers share their
// elements: those are never written after they were made.
func All(pool *workers.Pool, dst, src *tensor.Tensor) {
	if src.Type.IsContainer() {
		dst.Elems, dst.Elem = src.Elems, src.Elem
		return
	}
	if src.Type == tensor.String {
		copy(dst.Strings, src.Strings)
		return
	}
	if Aliased(dst, src) {
		return
	}
	if len(src.Data) < 1<<18 {
		copy(dst.Data, src.Data)
		return
	}
	pool.For(len(src.Data), 1<<17, func(lo, hi int) { copy(dst.Data[lo:hi], src.Data[lo:hi]) })
}

// Unpack returns x with one element a byte when its type is narrower than that,
// else x itself. Signs are not extended: the bits are only moved.
func Unpack(x *tensor.Tensor) *tensor.Tensor {
	if !Packed(x) {
		return x
	}
	y := &tensor.Tensor{Type: tensor.Uint8, Shape: x.Shape}
	if x.Data == nil {
		return y
	}
	y.Alloc()
	bits := x.Type.Bits()
	per, mask := 8/bits, byte(1)<<bits-1
	for i := range y.Data {
		y.Data[i] = x.Data[i/per] >> (i % per * bits) & mask
	}
	return y
}

// Packed reports whether x has elements narrower than a byte.
func Packed(x *tensor.Tensor) bool {
	if x == nil {
		return false
	}
	b := x.Type.Bits()
	return b > 0 && b < 8
}

// Pack writes the low bits of src's bytes to dst, the inverse of [Unpack].
func Pack(dst, src *tensor.Tensor) {
	bits := dst.Type.Bits()
	per, mask := 8/bits, byte(1)<<bits-1
	clear(dst.Data)
	for i, v := range src.Data {
		dst.Data[i/per] |= v & mask << (i % per * bits)
	}
}

// Unpacked lets a kernel that moves whole bytes take tensors with narrower
// elements: they are unpacked before the run and the outputs packed after it.
func Unpacked(run op.Run) op.Run {
	return func(c *op.Call) error {
		var t tensor.Type
		for _, x := range c.In {
			if Packed(x) {
				t = x.Type
			}
		}
		if t == tensor.Invalid {
			return run(c)
		}
		w := *c
		w.In = make([]*tensor.Tensor, len(c.In))
		for i, x := range c.In {
			w.In[i] = Unpack(x)
		}
		w.Out = make([]*tensor.Tensor, len(c.Out))
		for i, x := range c.Out {
			w.Out[i] = x
			if Packed(x) {
				w.Out[i] = tensor.New(tensor.Uint8, x.Shape...)
			}
		}
		if err := run(&w); err != nil {
			return err
		}
		for i, x := range c.Out {
			if Packed(x) {
				Pack(x, w.Out[i])
			}
		}
		return nil
	}
}
