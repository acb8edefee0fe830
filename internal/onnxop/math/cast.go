package math

import (
	"errors"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// castTarget reads the attribute "to": a number of TensorProto.DataType, or its
// name before operator set 6.
func castTarget(c *op.Call) (tensor.Type, error) {
	if c.Node.Attrs.Has("to") {
		if name := c.Node.Attrs.Str("to", ""); name != "" {
			if t, ok := dataTypeNames[name]; ok {
				return t, nil
			}
			return 0, op.Unsupported("cast to %q", name)
		}
		if t, ok := DataType(c.Node.Attrs.Int("to", 0)); ok {
			return t, nil
		}
		return 0, op.Unsupported("cast to data type %d", c.Node.Attrs.Int("to", 0))
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

// Conversion says how values that the target cannot hold are treated. It only
// matters for targets of eight bits and fewer.
type Conversion struct {
	Saturate bool             // float8: largest value instead of infinity or NaN
	Round    tensor.RoundMode // Float8E8M0
}

func prepareCast(c *op.Call) (op.Run, error) {
	cv := Conversion{Saturate: c.Node.Attrs.Bool("saturate", true)}
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
	if run := directCast(from, to); run != nil {
		return run, nil
	}
	switch {
	case !castable(from) || !castable(to):
		return nil, op.Unsupported("cast of %v to %v", from, to)
	case from == tensor.String || to == tensor.String:
		return func(c *op.Call) error { return castStrings(c.Out[0], c.In[0], cv) }, nil
	}
	return func(c *op.Call) error {
		out, in := c.Out[0], c.In[0]
		// Whole blocks keep packed elements of one byte on one thread.
		n := out.Len()
		c.Pool.For((n+blockSize-1)/blockSize, grain/blockSize, func(lo, hi int) {
			castRange(out, in, lo*blockSize, min(hi*blockSize, n), cv)
		})
		return nil
	}, nil
}

func castable(t tensor.Type) bool {
	return t.IsFloat() || t.IsInteger() || t == tensor.Bool || t == tensor.String
}

// directCast has loops for the pairs that models use; others go through blocks
// of int64 or float64.
func directCast(from, to tensor.Type) op.Run {
	if from == to && from != tensor.String {
		return func(c *op.Call) error { copy(c.Out[0].Data, c.In[0].Data); return nil }
	}
	switch from {
	case tensor.Float32:
		return castFrom[float32](to)
	case tensor.Float64:
		return castFrom[float64](to)
	case tensor.Int32:
		return castFrom[int32](to)
	case tensor.Int64:
		return castFrom[int64](to)
	case tensor.Uint8, tensor.Bool:
		return castFrom[uint8](to)
	case tensor.Int8:
		return castFrom[int8](to)
	case tensor.Float16, tensor.BFloat16:
		if to == tensor.Float32 {
			return func(c *op.Call) error { widenHalves(c.Pool, tensor.Of[float32](c.Out[0]), c.In[0]); return nil }
		}
	}
	return nil
}

func castFrom[S tensor.Number](to tensor.Type) op.Run {
	switch to {
	case tensor.Float32:
		return runUnary(convertTo[float32, S])
	case tensor.Float64:
		return runUnary(convertTo[float64, S])
	case tensor.Bool:
		return runUnary(func(dst []uint8, src []S) {
			src = src[:len(dst)]
			for i, x := range src {
				dst[i] = truth(x != 0)
			}
		})
	}
	var z S
	switch any(z).(type) {
	case float32, float64:
		// Go leaves float values outside the integer's range to the machine; the
		// general path gives the same result everywhere.
		return nil
	}
	switch to {
	case tensor.Int32:
		return runUnary(convertTo[int32, S])
	case tensor.Int64:
		return runUnary(convertTo[int64, S])
	}
	return nil
}

// castRange converts elements lo to hi by blocks: through int64 between integers,
// through float64 otherwise. Both hold every value of the narrower types.
func castRange(out, in *tensor.Tensor, lo, hi int, cv Conversion) {
	viaInt := !in.Type.IsFloat()
	var ib [blockSize]int64
	var fb [blockSize]float64
	for ; lo < hi; lo += blockSize {
		n := min(blockSize, hi-lo)
		if viaInt {
			readInt64(ib[:n], in, lo)
			if !out.Type.IsFloat() {
				writeInt64(out, lo, ib[:n])
				continue
			}
			if in.Type == tensor.Uint64 {
				for i, v := range ib[:n] {
					fb[i] = float64(uint64(v))
				}
			} else {
				convertTo(fb[:n], ib[:n])
			}
		} else {
			readFloat64(fb[:n], in, lo)
		}
		writeFloat64(out, lo, fb[:n], cv)
	}
}

func castDefs() []op.Def {
	all := join(numberTypes, boolTypes, []tensor.Type{tensor.String}, float8Types, []tensor.Type{tensor.Float8E8M0}, packedTypes)
	return []op.Def{
		{Domain: graph.ONNX, Name: "Cast", Since: 1, Types: all, Infer: inferCast, Prepare: prepareCast},
		{Domain: graph.ONNX, Name: "CastLike", Since: 15, Types: all, Infer: inferCastLike, Prepare: prepareCast},
		{Domain: graph.ONNX, Name: "BitCast", Since: 26, Infer: inferBitCast, InPlace: true, Prepare: op.Simple(func(c *op.Call) error {
			copy(c.Out[0].Data, c.In[0].Data)
			return nil
		})},
	}
}
