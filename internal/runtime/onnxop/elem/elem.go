// Package elem describes element types for ONNX operators: their numbers in files, the groups
// that definitions list, definitions and shapes that follow from them, and how operators written
// for float32 serve float16 and bfloat16. Conversions of elements are in internal/model/tensor.
package elem

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// codes follows TensorProto.DataType.
var codes = [...]tensor.Type{
	1: tensor.Float32, 2: tensor.Uint8, 3: tensor.Int8, 4: tensor.Uint16, 5: tensor.Int16,
	6: tensor.Int32, 7: tensor.Int64, 8: tensor.String, 9: tensor.Bool, 10: tensor.Float16,
	11: tensor.Float64, 12: tensor.Uint32, 13: tensor.Uint64, 14: tensor.Complex64,
	15: tensor.Complex128, 16: tensor.BFloat16, 17: tensor.Float8E4M3FN,
	18: tensor.Float8E4M3FNUZ, 19: tensor.Float8E5M2, 20: tensor.Float8E5M2FNUZ,
	21: tensor.Uint4, 22: tensor.Int4, 23: tensor.Float4E2M1, 24: tensor.Float8E8M0,
	25: tensor.Uint2, 26: tensor.Int2, 27: tensor.Float6E2M3, 28: tensor.Float6E3M2,
}

// FromCode returns the element type with ONNX's number.
func FromCode(code int) (tensor.Type, error) {
	if code <= 0 || code >= len(codes) {
		return tensor.Invalid, fmt.Errorf("element type %d is not known", code)
	}
	return codes[code], nil
}

// Groups of element types for definitions. They must not be modified.
var (
	Floats   = []tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16}
	Unsigned = []tensor.Type{tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64}
	Signed   = []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}
	Bools    = []tensor.Type{tensor.Bool}
	Bytes    = []tensor.Type{tensor.Uint8, tensor.Int8}
	Integers = slices.Concat(Signed, Unsigned)
	Numbers  = slices.Concat(Floats, Integers)
	Float8s  = []tensor.Type{tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ}
	Packed   = []tensor.Type{tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2, tensor.Float4E2M1, tensor.Float6E2M3, tensor.Float6E3M2}
)

// BadType says that an operator does not take the type of input i.
func BadType(c *op.Call, i int) error { return op.Unsupported("%s of %v", c.Node.Op, c.In[i].Type) }

// Same is the Infer of operators whose outputs look like input 0.
func Same(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	return c.Result(c.In[0].Type, c.In[0].Shape)
}

// SameTruth is sameAs with a truth value for each element.
func SameTruth(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	return c.Result(tensor.Bool, c.In[0].Shape)
}

// InferBroadcast gives output 0 type t and the shape to which the given inputs broadcast.
func InferBroadcast(c *op.Call, t tensor.Type, inputs ...int) error {
	shapes := make([][]int, len(inputs))
	for i, k := range inputs {
		shapes[i] = c.In[k].Shape
	}
	out, err := tensor.Broadcast(shapes...)
	if err != nil {
		return err
	}
	return c.Result(t, out)
}

// SameTypes fails unless the present inputs from first on agree in type.
func SameTypes(c *op.Call, first int) error {
	for i := first + 1; i < len(c.In); i++ {
		if c.In[i] != nil && c.In[first] != nil && c.In[i].Type != c.In[first].Type {
			return fmt.Errorf("input %d is %v, input %d is %v", first, c.In[first].Type, i, c.In[i].Type)
		}
	}
	return nil
}

// AllLast is [op.Def.NHWC] of operators that do not depend on the positions of elements.
func AllLast(*op.Call) op.NHWCSupport { return op.NHWCAll }

// FloatsAnd adds types to the floating-point ones.
func FloatsAnd(more ...tensor.Type) []tensor.Type { return slices.Concat(Floats, more) }

// RealDef makes a definition over floating-point types.
func RealDef(name string, infer func(*op.Call) error, p32, p64 Prepare) op.Def {
	types := Floats
	if p64 == nil {
		types = []tensor.Type{tensor.Float32, tensor.Float16, tensor.BFloat16}
	}
	return op.Def{Name: name, Since: 1, Types: types, Infer: infer, Prepare: ByReal(p32, p64)}
}

// Fusing marks a definition that applies a following clamp itself.
func Fusing(d op.Def) op.Def { d.Fuses = true; return d }

// InDomain moves definitions to another domain.
func InDomain(name string, defs ...op.Def) []op.Def {
	for i := range defs {
		defs[i].Domain = name
	}
	return defs
}

// Elements returns the elements of an optional input, nil when it is absent or not known.
func Elements[T tensor.Number](c *op.Call, i int) []T {
	if x := c.Input(i); x.Known() {
		return tensor.Of[T](x)
	}
	return nil
}

// Grow returns a slice of n elements, v itself when it is large enough.
func Grow[E any](v []E, n int) []E {
	if cap(v) < n {
		return make([]E, n)
	}
	return v[:n]
}

// Clamp applies a fused activation in place.
func Clamp[T tensor.Real](act activation.Clamp, y []T) {
	if !act.On {
		return
	}
	if f, ok := any(y).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Clamp(f, f, act.Min, act.Max)
			return
		}
	}
	lo, hi := T(act.Min), T(act.Max)
	for i, v := range y {
		y[i] = min(max(v, lo), hi)
	}
}

// Scale writes x·s + t, rounded twice.
func Scale[T tensor.Real](dst, x []T, s, t T) {
	if f, ok := any(x).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Scale(any(dst).([]float32), f, float32(s), float32(t))
			return
		}
	}
	for i, v := range x {
		dst[i] = v*s + t
	}
}
