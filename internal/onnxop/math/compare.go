package math

import (
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// relation names a comparison.
type relation uint8

const (
	equal relation = iota
	less
	lessEqual
	greater
	greaterEqual
)

func prepareCompare(c *op.Call, k relation) (op.Run, error) {
	if err := sameTypes(c, 0); err != nil {
		return nil, err
	}
	switch c.In[0].Type {
	case tensor.Float32:
		return prepareLoops(c, compareLoops[float32](k))
	case tensor.Float64:
		return prepareLoops(c, compareLoops[float64](k))
	case tensor.Int8:
		return prepareLoops(c, compareLoops[int8](k))
	case tensor.Int16:
		return prepareLoops(c, compareLoops[int16](k))
	case tensor.Int32:
		return prepareLoops(c, compareLoops[int32](k))
	case tensor.Int64:
		return prepareLoops(c, compareLoops[int64](k))
	case tensor.Uint8:
		return prepareLoops(c, compareLoops[uint8](k))
	case tensor.Uint16:
		return prepareLoops(c, compareLoops[uint16](k))
	case tensor.Uint32:
		return prepareLoops(c, compareLoops[uint32](k))
	case tensor.Uint64:
		return prepareLoops(c, compareLoops[uint64](k))
	case tensor.Bool:
		if k == equal {
			return prepareLoops(c, compareLoops[uint8](k))
		}
	case tensor.String:
		if k == equal {
			return equalStrings(c)
		}
	}
	return nil, badType(c, 0)
}

func compareLoops[T tensor.Number](k relation) loops[T, uint8] {
	switch k {
	case equal:
		return loops[T, uint8]{vec: equalVec[T], vs: equalScalar[T], sv: func(dst []uint8, a T, b []T) { equalScalar(dst, b, a) }}
	case less:
		return loops[T, uint8]{vec: lessVec[T]}
	case lessEqual:
		return loops[T, uint8]{vec: lessEqualVec[T]}
	case greater:
		return loops[T, uint8]{vec: func(dst []uint8, a, b []T) { lessVec(dst, b, a) }}
	}
	return loops[T, uint8]{vec: func(dst []uint8, a, b []T) { lessEqualVec(dst, b, a) }}
}

func truth(b bool) uint8 {
	var v uint8
	if b {
		v = 1
	}
	return v
}

func equalVec[T tensor.Number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] == b[i])
	}
}

func equalScalar[T tensor.Number](dst []uint8, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] == b)
	}
}

func lessVec[T tensor.Number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] < b[i])
	}
}

func lessEqualVec[T tensor.Number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] <= b[i])
	}
}

func equalStrings(c *op.Call) (op.Run, error) {
	sa, sb, out, err := operandShapes(c)
	if err != nil {
		return nil, err
	}
	plan, err := NewBroadcast(out, sa, sb)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		a, b, dst := c.In[0].Strings, c.In[1].Strings, tensor.Of[uint8](c.Out[0])
		for it := plan.Runs(0, plan.Len); it.Next(); {
			for i := range it.N {
				dst[it.Dst+i] = truth(a[it.Off[0]+i*plan.Step[0]] == b[it.Off[1]+i*plan.Step[1]])
			}
		}
		return nil
	}, nil
}

// bitop names an operator of two bit patterns or truth values.
type bitop uint8

const (
	bitAnd bitop = iota
	bitOr
	bitXor
	shiftLeft
	shiftRight
)

func prepareBits(c *op.Call, k bitop) (op.Run, error) {
	if err := sameTypes(c, 0); err != nil {
		return nil, err
	}
	switch c.In[0].Type {
	case tensor.Int8:
		return prepareLoops(c, bitLoops[int8](k))
	case tensor.Int16:
		return prepareLoops(c, bitLoops[int16](k))
	case tensor.Int32:
		return prepareLoops(c, bitLoops[int32](k))
	case tensor.Int64:
		return prepareLoops(c, bitLoops[int64](k))
	case tensor.Uint8:
		return prepareLoops(c, bitLoops[uint8](k))
	case tensor.Uint16:
		return prepareLoops(c, bitLoops[uint16](k))
	case tensor.Uint32:
		return prepareLoops(c, bitLoops[uint32](k))
	case tensor.Uint64:
		return prepareLoops(c, bitLoops[uint64](k))
	}
	return nil, badType(c, 0)
}

func bitLoops[T integer](k bitop) loops[T, T] {
	var vec func(dst, a, b []T)
	switch k {
	case bitAnd:
		vec = func(dst, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] & b[i]
			}
		}
	case bitOr:
		vec = func(dst, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] | b[i]
			}
		}
	case bitXor:
		vec = func(dst, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] ^ b[i]
			}
		}
	case shiftLeft:
		// Go fills shifts by the width or more, and a negative amount read as a huge
		// one, with zeros or sign bits: the standard asks for the same.
		vec = func(dst, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] << uint64(b[i])
			}
		}
	default:
		vec = func(dst, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] >> uint64(b[i])
			}
		}
	}
	return loops[T, T]{vec: vec}
}

// prepareLogic runs the bit operators over truth values, which are 0 or 1.
func prepareLogic(c *op.Call, k bitop) (op.Run, error) {
	if c.In[0].Type != tensor.Bool {
		return nil, badType(c, 0)
	}
	if err := sameTypes(c, 0); err != nil {
		return nil, err
	}
	return prepareLoops(c, bitLoops[uint8](k))
}

func prepareShift(c *op.Call) (op.Run, error) {
	switch d := c.Node.Attrs.Str("direction", ""); d {
	case "LEFT":
		return prepareBits(c, shiftLeft)
	case "RIGHT":
		return prepareBits(c, shiftRight)
	default:
		return nil, c.Errorf("direction %q is neither LEFT nor RIGHT", d)
	}
}

func compareDefs() []op.Def {
	infer, own := inferBinary(tensor.Bool), inferBinary(tensor.Invalid)
	rel := func(name string, since int, k relation, types []tensor.Type) op.Def {
		return op.Def{
			Domain: graph.ONNX, Name: name, Since: since, Types: types, Infer: infer,
			Prepare: Widen(func(c *op.Call) (op.Run, error) { return prepareCompare(c, k) }),
		}
	}
	logic := func(name string, k bitop) op.Def {
		return op.Def{
			Domain: graph.ONNX, Name: name, Since: 1, Types: boolTypes, Infer: infer, InPlace: true,
			Prepare: func(c *op.Call) (op.Run, error) { return prepareLogic(c, k) },
		}
	}
	bits := func(name string, k bitop) op.Def {
		return op.Def{
			Domain: graph.ONNX, Name: name, Since: 18, Types: integerTypes, Infer: own, InPlace: true,
			Prepare: func(c *op.Call) (op.Run, error) { return prepareBits(c, k) },
		}
	}
	return []op.Def{
		rel("Equal", 1, equal, join(numberTypes, boolTypes, []tensor.Type{tensor.String})),
		rel("Less", 1, less, numberTypes), rel("Greater", 1, greater, numberTypes),
		rel("LessOrEqual", 12, lessEqual, numberTypes), rel("GreaterOrEqual", 12, greaterEqual, numberTypes),
		logic("And", bitAnd), logic("Or", bitOr), logic("Xor", bitXor),
		bits("BitwiseAnd", bitAnd), bits("BitwiseOr", bitOr), bits("BitwiseXor", bitXor),
		{Domain: graph.ONNX, Name: "BitShift", Since: 11, Types: integerTypes, Infer: own, InPlace: true, Prepare: prepareShift},
	}
}
