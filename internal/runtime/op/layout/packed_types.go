package layout

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// unpackedType returns the byte type that represents a packed type while its elements are moved;
// other types are returned unchanged.
func unpackedType(t tensor.Type) tensor.Type {
	switch t {
	case tensor.Int4, tensor.Int2:
		return tensor.Int8
	case tensor.Uint4, tensor.Uint2, tensor.Float4E2M1:
		return tensor.Uint8
	}
	return t
}

// Packed reports whether elements of x have fewer than 8 bits.
func Packed(x *tensor.Tensor) bool { return x != nil && x.Type != unpackedType(x.Type) }

// Unpack returns x with one element per byte when its type is packed, sign-extended for signed
// types, else x itself.
func Unpack(x *tensor.Tensor) *tensor.Tensor {
	if !Packed(x) {
		return x
	}
	y := &tensor.Tensor{Type: unpackedType(x.Type), Shape: x.Shape, Quant: x.Quant}
	y.Alloc()
	if !x.Known() {
		return y
	}
	bits := x.Type.Bits()
	per, mask := 8/bits, byte(1)<<bits-1
	sign := byte(0)
	if x.Type.IsSigned() {
		sign = 1 << (bits - 1)
	}
	for i := range y.Data {
		v := x.Data[i/per] >> (i % per * bits) & mask
		y.Data[i] = (v ^ sign) - sign
	}
	return y
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

// Prepare is the type of [op.Def.Prepare].
type Prepare = func(c *op.Call) (op.Run, error)

// WithUnpacked makes a Prepare function for byte-sized elements support packed types too: the
// inner operator sees unpacked bytes, and its results are packed again. Results without elements
// in memory (containers, resources) are unsupported.
func WithUnpacked(prepare Prepare) Prepare {
	return func(c *op.Call) (op.Run, error) {
		packed := false
		for _, x := range c.In {
			packed = packed || Packed(x)
		}
		for _, y := range c.Out {
			if y == nil {
				continue
			}
			packed = packed || Packed(y)
			if b := unpackedType(y.Type).Bits(); b%8 != 0 || b == 0 && y.Type != tensor.String && y.Type != tensor.Invalid {
				return nil, op.Unsupported("elements of type %v", y.Type)
			}
		}
		if !packed {
			return prepare(c)
		}
		w := *c
		fill := func(c *op.Call) {
			w.In, w.Out = make([]*tensor.Tensor, len(c.In)), make([]*tensor.Tensor, len(c.Out))
			for i, x := range c.In {
				w.In[i] = Unpack(x)
			}
			for i, y := range c.Out {
				w.Out[i] = y
				if Packed(y) {
					w.Out[i] = &tensor.Tensor{Type: unpackedType(y.Type), Shape: y.Shape, Quant: y.Quant}
					w.Out[i].Alloc()
				}
			}
		}
		fill(c)
		run, err := prepare(&w)
		c.Kernel = w.Kernel
		if err != nil {
			return nil, err
		}
		return func(c *op.Call) error {
			fill(c)
			if err := run(&w); err != nil {
				return err
			}
			for i, y := range c.Out {
				if Packed(y) {
					repack(y, w.Out[i])
				}
			}
			return nil
		}, nil
	}
}

// repack packs a result into dst. If the shape of dst was unknown, dst takes the shape of src,
// and its type too when that differs from the declared one.
func repack(dst, src *tensor.Tensor) {
	if !dst.Known() {
		if src.Type != unpackedType(dst.Type) {
			*dst = *src
			return
		}
		dst.Shape = src.Shape
		dst.Alloc()
	}
	Pack(dst, src)
}
