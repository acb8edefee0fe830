package math

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// Lists of element types for the definitions.
var (
	floatTypes    = []tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16}
	unsignedTypes = []tensor.Type{tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64}
	signedTypes   = []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}
	boolTypes     = []tensor.Type{tensor.Bool}
	integerTypes  = join(signedTypes, unsignedTypes)
	numberTypes   = join(floatTypes, integerTypes)
	float8Types   = []tensor.Type{tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ}
	packedTypes   = []tensor.Type{tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2, tensor.Float4E2M1, tensor.Float6E2M3, tensor.Float6E3M2}
)

func join(lists ...[]tensor.Type) []tensor.Type {
	var out []tensor.Type
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// integer is the constraint of integer elements.
type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// real is the constraint of elements with hardware floating point.
type real interface{ ~float32 | ~float64 }

// grain is the least number of elements worth giving to another thread.
const grain = 16 << 10

// prepare is the Prepare function of a variant.
type prepare = func(c *op.Call) (op.Run, error)

// DataType maps the numbers of ONNX's TensorProto.DataType.
func DataType(n int) (tensor.Type, bool) {
	if n <= 0 || n >= len(dataTypes) {
		return tensor.Invalid, false
	}
	return dataTypes[n], true
}

var dataTypes = [...]tensor.Type{
	1: tensor.Float32, 2: tensor.Uint8, 3: tensor.Int8, 4: tensor.Uint16, 5: tensor.Int16, 6: tensor.Int32, 7: tensor.Int64,
	8: tensor.String, 9: tensor.Bool, 10: tensor.Float16, 11: tensor.Float64, 12: tensor.Uint32, 13: tensor.Uint64,
	14: tensor.Complex64, 15: tensor.Complex128, 16: tensor.BFloat16, 17: tensor.Float8E4M3FN, 18: tensor.Float8E4M3FNUZ,
	19: tensor.Float8E5M2, 20: tensor.Float8E5M2FNUZ, 21: tensor.Uint4, 22: tensor.Int4, 23: tensor.Float4E2M1,
	24: tensor.Float8E8M0, 25: tensor.Uint2, 26: tensor.Int2, 27: tensor.Float6E2M3, 28: tensor.Float6E3M2,
}

func isHalf(t tensor.Type) bool { return t == tensor.Float16 || t == tensor.BFloat16 }

func badType(c *op.Call, i int) error {
	return op.Unsupported("%s of %v", c.Node.Op, c.In[i].Type)
}

// sameAs is the Infer of operators whose outputs look like input 0.
func sameAs(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, c.In[0].Shape)
	return nil
}

// sameAsBool is sameAs with a truth value for each element.
func sameAsBool(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, tensor.Bool, c.In[0].Shape)
	return nil
}

// sameTypes fails unless the present inputs from first on agree in type.
func sameTypes(c *op.Call, first int) error {
	for i := first + 1; i < len(c.In); i++ {
		if c.In[i] != nil && c.In[first] != nil && c.In[i].Type != c.In[first].Type {
			return fmt.Errorf("input %d is %v, input %d is %v", first, c.In[first].Type, i, c.In[i].Type)
		}
	}
	return nil
}

// Widen makes float16 and bfloat16 variants of an operator that is written for
// float32: half inputs are widened before each run, half outputs are rounded
// after it.
func Widen(prep prepare) prepare {
	return func(c *op.Call) (op.Run, error) {
		half := false
		for _, x := range append(append([]*tensor.Tensor{}, c.In...), c.Out...) {
			half = half || x != nil && isHalf(x.Type)
		}
		if !half {
			return prep(c)
		}
		w := *c
		w.In = make([]*tensor.Tensor, len(c.In))
		w.Out = make([]*tensor.Tensor, len(c.Out))
		for i, x := range c.In {
			w.In[i] = x
			if x == nil || !isHalf(x.Type) {
				continue
			}
			w.In[i] = &tensor.Tensor{Type: tensor.Float32, Shape: x.Shape}
			if c.Const(i) && x.Known() {
				w.In[i].Alloc()
				ReadFloats(tensor.Of[float32](w.In[i]), x)
			} else {
				w.In[i].Data = c.Scratch(4 * x.Len())
			}
		}
		for i, x := range c.Out {
			w.Out[i] = x
			if x != nil && isHalf(x.Type) {
				w.Out[i] = &tensor.Tensor{Type: tensor.Float32, Shape: x.Shape, Data: c.Scratch(4 * x.Len())}
			}
		}
		run, err := prep(&w)
		if err != nil {
			return nil, err
		}
		return func(c *op.Call) error {
			w.Env = c.Env
			for i, x := range c.In {
				switch {
				case x == nil || !isHalf(x.Type):
					w.In[i] = x
				case !c.Const(i):
					widenHalves(c.Pool, tensor.Of[float32](w.In[i]), x)
				}
			}
			if err := run(&w); err != nil {
				return err
			}
			for i, x := range c.Out {
				if x != nil && isHalf(x.Type) {
					narrowHalves(c.Pool, x, tensor.Of[float32](w.Out[i]))
				}
			}
			return nil
		}, nil
	}
}

// halves is the part of a 16-bit tensor from element lo to hi.
func halves(x *tensor.Tensor, lo, hi int) tensor.Tensor {
	return tensor.Tensor{Type: x.Type, Data: x.Data[2*lo : 2*hi]}
}

func widenHalves(p *workers.Pool, dst []float32, x *tensor.Tensor) {
	p.For(len(dst), grain/2, func(lo, hi int) {
		part := halves(x, lo, hi)
		ReadFloats(dst[lo:hi], &part)
	})
}

func narrowHalves(p *workers.Pool, x *tensor.Tensor, src []float32) {
	p.For(len(src), grain/2, func(lo, hi int) {
		part := halves(x, lo, hi)
		WriteFloats(&part, src[lo:hi])
	})
}

// ReadFloats converts the elements of any numeric tensor to float32, as many as
// dst holds.
func ReadFloats(dst []float32, x *tensor.Tensor) {
	switch x.Type {
	case tensor.Float32:
		copy(dst, tensor.Of[float32](x))
	case tensor.Float64:
		convertTo(dst, tensor.Of[float64](x))
	case tensor.Float16:
		readHalves(dst, tensor.Of[uint16](x))
	case tensor.BFloat16:
		for i, h := range tensor.Of[uint16](x)[:len(dst)] {
			dst[i] = tensor.BF16ToF32(h)
		}
	case tensor.Int8:
		convertTo(dst, tensor.Of[int8](x))
	case tensor.Int16:
		convertTo(dst, tensor.Of[int16](x))
	case tensor.Int32:
		convertTo(dst, tensor.Of[int32](x))
	case tensor.Int64:
		convertTo(dst, tensor.Of[int64](x))
	case tensor.Uint8, tensor.Bool:
		convertTo(dst, tensor.Of[uint8](x))
	case tensor.Uint16:
		convertTo(dst, tensor.Of[uint16](x))
	case tensor.Uint32:
		convertTo(dst, tensor.Of[uint32](x))
	case tensor.Uint64:
		convertTo(dst, tensor.Of[uint64](x))
	default:
		var block [blockSize]float64
		for lo := 0; lo < len(dst); lo += blockSize {
			b := block[:min(blockSize, len(dst)-lo)]
			readFloat64(b, x, lo)
			convertTo(dst[lo:lo+len(b)], b)
		}
	}
}

// readHalves has a short path for normal numbers.
func readHalves(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i, h := range src {
		if e := h & 0x7c00; e != 0 && e != 0x7c00 {
			dst[i] = math.Float32frombits(uint32(h&0x8000)<<16 | (uint32(h&0x7fff)<<13 + 112<<23))
		} else {
			dst[i] = tensor.F16ToF32(h)
		}
	}
}

// writeHalves has a short path for what becomes a normal number.
func writeHalves(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		b := math.Float32bits(f)
		// From 2^-14 to below the tie between the largest half and infinity.
		if a := b & 0x7fffffff; a-0x38800000 < 0x477ff000-0x38800000 {
			dst[i] = uint16(b>>16)&0x8000 | uint16((a-112<<23+0xfff+a>>13&1)>>13)
		} else {
			dst[i] = tensor.F32ToF16(f)
		}
	}
}

// WriteFloats rounds float32 values to the elements of a floating-point tensor.
func WriteFloats(x *tensor.Tensor, src []float32) {
	switch x.Type {
	case tensor.Float32:
		copy(tensor.Of[float32](x), src)
	case tensor.Float64:
		convertTo(tensor.Of[float64](x), src)
	case tensor.Float16:
		writeHalves(tensor.Of[uint16](x), src)
	case tensor.BFloat16:
		dst := tensor.Of[uint16](x)[:len(src)]
		for i, f := range src {
			dst[i] = tensor.F32ToBF16(f)
		}
	}
}

// convertTo converts as many elements as dst holds by the language's rules.
func convertTo[D, S tensor.Number](dst []D, src []S) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = D(v)
	}
}
