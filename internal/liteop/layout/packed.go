package layout

import (
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// widened is the byte type that stands for a packed type while its elements are
// moved.
func widened(t tensor.Type) tensor.Type {
	switch t {
	case tensor.Int4, tensor.Int2:
		return tensor.Int8
	case tensor.Uint4, tensor.Uint2, tensor.Float4E2M1:
		return tensor.Uint8
	}
	return t
}

// Unpack widens packed elements to a byte each, sign-extended for signed types.
func Unpack(dst []byte, x *tensor.Tensor) {
	bits := x.Type.Bits()
	per, mask := 8/bits, byte(1<<bits-1)
	sign := byte(0)
	if x.Type.IsSigned() {
		sign = 1 << (bits - 1)
	}
	for i := range dst {
		v := x.Data[i/per] >> (i % per * bits) & mask
		dst[i] = (v ^ sign) - sign
	}
}

// Pack is the inverse of [Unpack].
func Pack(x *tensor.Tensor, src []byte) {
	bits := x.Type.Bits()
	per, mask := 8/bits, byte(1<<bits-1)
	clear(x.Data)
	for i, v := range src {
		x.Data[i/per] |= v & mask << (i % per * bits)
	}
}

// Widened makes a Prepare function work on packed types: the inner operator sees
// bytes, and its results are packed again.
func Widened(prepare func(*op.Call) (op.Run, error)) func(*op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		packed := false
		for _, l := range [][]*tensor.Tensor{c.In, c.Out} {
			for _, x := range l {
				packed = packed || x != nil && x.Type != widened(x.Type)
			}
		}
		if !packed {
			return prepare(c)
		}
		w := *c
		w.In, w.Out = make([]*tensor.Tensor, len(c.In)), make([]*tensor.Tensor, len(c.Out))
		widen := func(x *tensor.Tensor, in bool) *tensor.Tensor {
			if x == nil || x.Type == widened(x.Type) {
				return x
			}
			y := &tensor.Tensor{Type: widened(x.Type), Shape: x.Shape, Quant: x.Quant}
			y.Alloc()
			if in && x.Known() {
				Unpack(y.Data, x)
			}
			return y
		}
		fill := func(c *op.Call, in bool) {
			for i, x := range c.In {
				w.In[i] = widen(x, in)
			}
			for i, x := range c.Out {
				w.Out[i] = widen(x, false)
			}
		}
		fill(c, true)
		run, err := prepare(&w)
		if err != nil {
			return nil, err
		}
		return func(c *op.Call) error {
			fill(c, true)
			if err := run(&w); err != nil {
				return err
			}
			for i, x := range c.Out {
				if y := w.Out[i]; x != nil && y != x {
					put(x, y)
				}
			}
			return nil
		}, nil
	}
}

// put packs a result. One whose shape was not known before takes it over, and
// the type too when it is not the one that was declared.
func put(x, y *tensor.Tensor) {
	if !x.Known() {
		if y.Type != widened(x.Type) {
			*x = *y
			return
		}
		x.Shape = y.Shape
		x.Alloc()
	}
	Pack(x, y.Data)
}
