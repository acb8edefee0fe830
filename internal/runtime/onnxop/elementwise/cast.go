package elementwise

import (
	"errors"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// castTarget reads the attribute "to": a number of TensorProto.DataType, or its name before
// operator set 6.
func castTarget(c *op.Call) (tensor.Type, error) {
	if c.Node.Attrs.Has("to") {
		if name := c.Node.Attrs.Str("to", ""); name != "" {
			if t, ok := dataTypeNames[name]; ok {
				return t, nil
			}
			return 0, op.Unsupported("cast to %q", name)
		}
		t, err := elem.FromCode(c.Node.Attrs.Int("to", 0))
		if err != nil {
			return 0, op.Unsupported("cast: %v", err)
		}
		return t, nil
	}
	return 0, errors.New(`attribute "to" is missing`)
}

var dataTypeNames = map[string]tensor.Type{
	"FLOAT": tensor.Float32, "UINT8": tensor.Uint8, "INT8": tensor.Int8, "UINT16": tensor.Uint16, "INT16": tensor.Int16,
	"INT32": tensor.Int32, "INT64": tensor.Int64, "STRING": tensor.String, "BOOL": tensor.Bool, "FLOAT16": tensor.Float16,
	"DOUBLE": tensor.Float64, "UINT32": tensor.Uint32, "UINT64": tensor.Uint64,
}

func inferCast(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	t, err := castTarget(c)
	if err != nil {
		return err
	}
	c.SetOut(0, t, c.In[0].Shape)
	return nil
}

func inferCastLike(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	c.SetOut(0, c.In[1].Type, c.In[0].Shape)
	return nil
}

func inferBitCast(c *op.Call) error {
	if err := inferCast(c); err != nil {
		return err
	}
	if t := c.Out[0].Type; t.Bits() != c.In[0].Type.Bits() || t.Bits() == 0 {
		return c.Errorf("bit cast of %v to %v: widths differ", c.In[0].Type, t)
	}
	return nil
}

func prepareCast(c *op.Call) (op.Run, error) {
	cv := tensor.Conversion{Saturate: c.Node.Attrs.Bool("saturate", true)}
	switch m := c.Node.Attrs.Str("round_mode", "up"); m {
	case "up":
	case "down":
		cv.Round = tensor.RoundDown
	case "nearest":
		cv.Round = tensor.RoundNearest
	default:
		return nil, c.Errorf("rounding mode %q", m)
	}
	from, to := c.In[0].Type, c.Out[0].Type
	for _, t := range []tensor.Type{from, to} {
		if !t.IsNumber() && t != tensor.String {
			return nil, op.Unsupported("cast of %v to %v", from, to)
		}
	}
	if from == tensor.String || to == tensor.String {
		return func(c *op.Call) error { return castStrings(c.Out[0], c.In[0], cv) }, nil
	}
	if to == tensor.Bool && from != to {
		if run := castTruth(from); run != nil {
			return run, nil
		}
	}
	if v, ok := vectorCast(from, to); ok {
		return v.run(cv), nil
	}
	if e := simd.ElementKernels(); e != nil && from == tensor.Int32 && to == tensor.Float32 {
		return RunUnary(func(dst []float32, src []int32) {
			n := e.ToFloats(dst, src)
			tensor.Convert(dst[n:], src[n:])
		}), nil
	}
	if e := simd.ElementKernels(); e != nil && from == tensor.Float32 && to == tensor.Float16 {
		return RunUnary(func(dst []uint16, src []float32) {
			for i := e.ToHalf(dst, src); i < len(dst); i++ {
				dst[i] = tensor.F32ToF16(src[i])
			}
		}), nil
	}
	if e := simd.ElementKernels(); e != nil && from == tensor.Float16 && to == tensor.Float32 {
		return RunUnary(func(dst []float32, src []uint16) {
			for i := e.FromHalf(dst, src); i < len(dst); i++ {
				dst[i] = tensor.F16ToF32(src[i])
			}
		}), nil
	}
	if from == tensor.Bool && to == tensor.Float32 {
		return RunUnary(func(dst []float32, src []uint8) {
			for i, v := range src[:len(dst)] {
				dst[i] = truths[v]
			}
		}), nil
	}
	type args struct {
		out, in *tensor.Tensor
		cv      tensor.Conversion
	}
	return func(c *op.Call) error {
		// Whole blocks keep packed elements of one byte on one thread.
		blocks := (c.Out[0].Len() + element.Block - 1) / element.Block
		workers.Do(c.Pool, blocks, element.Grain/element.Block, args{c.Out[0], c.In[0], cv}, func(a args, lo, hi int) {
			tensor.Cast(a.out, a.in, lo*element.Block, min(hi*element.Block, a.out.Len()), a.cv)
		})
		return nil
	}, nil
}

// castTruth returns the conversion to booleans; nil for types without a loop.
func castTruth(from tensor.Type) op.Run {
	switch from {
	case tensor.Float32:
		return runTruths[float32]()
	case tensor.Float16, tensor.BFloat16:
		return RunUnary(func(dst []uint8, src []uint16) {
			for i, h := range src[:len(dst)] {
				dst[i] = tensor.Truth(h&0x7fff != 0)
			}
		})
	case tensor.Int32:
		return runTruths[int32]()
	case tensor.Int64:
		return runTruths[int64]()
	case tensor.Int8:
		return runTruths[int8]()
	case tensor.Uint8:
		return runTruths[uint8]()
	}
	return nil
}

// runTruths compares with zeros, a block at a time.
func runTruths[T tensor.Number]() op.Run {
	zeros, unlike := make([]T, element.Block), element.NotEqual[T]().Vec
	return RunUnary(func(dst []uint8, src []T) {
		for at := 0; at < len(dst); at += element.Block {
			n := min(element.Block, len(dst)-at)
			unlike(dst[at:][:n], src[at:][:n], zeros[:n])
		}
	})
}

// castKinds maps the types that SIMD conversions support.
var castKinds = map[tensor.Type]simd.CastKind{
	tensor.Bool: simd.CastBool, tensor.Float16: simd.CastFloat16, tensor.Float32: simd.CastFloat, tensor.Float64: simd.CastDouble,
	tensor.Int8: simd.CastInt8, tensor.Uint8: simd.CastUint8, tensor.Int32: simd.CastInt32, tensor.Int64: simd.CastInt64,
	tensor.Int16: simd.CastInt16, tensor.Uint16: simd.CastUint16, tensor.Uint32: simd.CastUint32,
	tensor.Uint64: simd.CastUint64, tensor.BFloat16: simd.CastBFloat16,
}

// inVectors is a SIMD conversion.
type inVectors struct {
	kernels  *simd.Casts
	from, to simd.CastKind
	sizes    [2]int // of elements, of the input and of the output
}

// vectorCast finds the SIMD loop of a conversion.
func vectorCast(from, to tensor.Type) (inVectors, bool) {
	f, ok := castKinds[from]
	t, known := castKinds[to]
	if from == tensor.Bool && to.IsInteger() {
		f = simd.CastUint8
	}
	v := inVectors{simd.CastKernels(), f, t, [2]int{from.Bits() / 8, to.Bits() / 8}}
	return v, ok && known && v.kernels.Has(f, t)
}

// run converts with SIMD, and the rest in plain Go.
func (v inVectors) run(cv tensor.Conversion) op.Run {
	type args struct{ out, in *tensor.Tensor }
	each := func(a args, lo, hi int) {
		done := v.kernels.Cast(a.out.Data[lo*v.sizes[1]:hi*v.sizes[1]], a.in.Data[lo*v.sizes[0]:hi*v.sizes[0]], v.from, v.to)
		tensor.Cast(a.out, a.in, lo+done, hi, cv)
	}
	return func(c *op.Call) error {
		workers.Do(c.Pool, c.Out[0].Len(), element.Grain, args{c.Out[0], c.In[0]}, each)
		return nil
	}
}

// truths maps booleans to numbers: anything but zero is true.
var truths = func() (t [256]float32) {
	for i := range t[1:] {
		t[i+1] = 1
	}
	return t
}()

func castDefs() []op.Def {
	all := slices.Concat(elem.Numbers, elem.Bools, []tensor.Type{tensor.String}, elem.Float8s, []tensor.Type{tensor.Float8E8M0}, elem.Packed)
	return []op.Def{
		{Domain: graph.ONNX, Name: "Cast", Since: 1, Types: all, Infer: inferCast, Prepare: prepareCast},
		{Domain: graph.ONNX, Name: "CastLike", Since: 15, Types: all, Infer: inferCastLike, Prepare: prepareCast},
		{Domain: graph.ONNX, Name: "BitCast", Since: 26, Infer: inferBitCast, InPlace: true, Prepare: op.Simple(func(c *op.Call) error {
			copy(c.Out[0].Data, c.In[0].Data)
			return nil
		})},
	}
}
