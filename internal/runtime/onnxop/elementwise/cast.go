package elementwise

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
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
	t, err := castTarget(c)
	if err != nil {
		return err
	}
	return c.Result(t, c.In[0].Shape)
}

func inferCastLike(c *op.Call) error { return c.Result(c.In[1].Type, c.In[0].Shape) }

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
		return v.run(c, cv), nil
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
	// Whole blocks keep packed elements of one byte on one thread.
	blocks := (c.Out[0].Len() + element.Block - 1) / element.Block
	return op.Parallel(blocks, element.Grain/element.Block, func(c *op.Call, lo, hi int) {
		tensor.Cast(c.Out[0], c.In[0], lo*element.Block, min(hi*element.Block, c.Out[0].Len()), cv)
	}), nil
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
func (v inVectors) run(c *op.Call, cv tensor.Conversion) op.Run {
	return op.Parallel(c.Out[0].Len(), element.Grain, func(c *op.Call, lo, hi int) {
		done := v.kernels.Cast(c.Out[0].Data[lo*v.sizes[1]:hi*v.sizes[1]], c.In[0].Data[lo*v.sizes[0]:hi*v.sizes[0]], v.from, v.to)
		tensor.Cast(c.Out[0], c.In[0], lo+done, hi, cv)
	})
}

// truths maps booleans to numbers: anything but zero is true.
var truths = func() (t [256]float32) {
	for i := range t[1:] {
		t[i+1] = 1
	}
	return t
}()

// castStrings casts to or from strings.
func castStrings(out, in *tensor.Tensor, cv tensor.Conversion) error {
	if in.Type == tensor.String {
		if out.Type == tensor.String {
			copy(out.Strings, in.Strings)
			return nil
		}
		return parseStrings(out, in.Strings, cv)
	}
	n := out.Len()
	if !in.Type.IsFloat() {
		var ib [element.Block]int64
		for lo := 0; lo < n; lo += element.Block {
			b := ib[:min(element.Block, n-lo)]
			tensor.Read(b, in, lo)
			for i, v := range b {
				out.Strings[lo+i] = formatInt(in.Type, v)
			}
		}
		return nil
	}
	var fb [element.Block]float64
	for lo := 0; lo < n; lo += element.Block {
		b := fb[:min(element.Block, n-lo)]
		tensor.Read(b, in, lo)
		for i, v := range b {
			out.Strings[lo+i] = FormatFloat(in.Type, v)
		}
	}
	return nil
}

func formatInt(t tensor.Type, v int64) string {
	switch t {
	case tensor.Uint64:
		return strconv.FormatUint(uint64(v), 10)
	case tensor.Bool:
		if v != 0 {
			return "True"
		}
		return "False"
	}
	return strconv.FormatInt(v, 10)
}

// FormatFloat formats a number as NumPy does: the shortest digits that read back as the same
// value of the type, with a point, or in scientific notation below 1e-4 and from the magnitude on
// at which the type runs out of exact digits.
func FormatFloat(t tensor.Type, v float64) string {
	switch {
	case v != v:
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	digits, limit := shortest(t, v), 1e16
	switch t {
	case tensor.Float64:
	case tensor.Float32:
		limit = 1e6
	default:
		limit = 1e3
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= limit) {
		return digits
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return digits
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// shortest returns scientific notation with the fewest digits that distinguish v from its
// neighbours in type t.
func shortest(t tensor.Type, v float64) string {
	switch t {
	case tensor.Float64:
		return strconv.FormatFloat(v, 'e', -1, 64)
	case tensor.Float32:
		return strconv.FormatFloat(v, 'e', -1, 32)
	}
	one := tensor.New(t, 1)
	for p := 0; p < 9; p++ {
		s := strconv.FormatFloat(v, 'e', p, 64)
		f, _ := strconv.ParseFloat(s, 64)
		var back [1]float64
		tensor.WriteFloat64(one, 0, []float64{f}, tensor.Conversion{Saturate: true})
		tensor.Read(back[:], one, 0)
		if back[0] == v {
			return s
		}
	}
	return strconv.FormatFloat(v, 'e', -1, 32)
}

// parseStrings parses numbers, "INF", "NaN" and, for booleans, words.
func parseStrings(out *tensor.Tensor, src []string, cv tensor.Conversion) error {
	var fb [element.Block]float64
	var ib [element.Block]int64
	for lo := 0; lo < len(src); lo += element.Block {
		b := src[lo:min(lo+element.Block, len(src))]
		if out.Type.IsFloat() {
			for i, s := range b {
				f, err := parseFloat(s)
				if err != nil {
					return err
				}
				fb[i] = f
			}
			tensor.WriteFloat64(out, lo, fb[:len(b)], cv)
			continue
		}
		for i, s := range b {
			v, err := parseInt(out.Type, s)
			if err != nil {
				return err
			}
			ib[i] = v
		}
		tensor.WriteInt64(out, lo, ib[:len(b)])
	}
	return nil
}

func parseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return f, nil
}

func parseInt(t tensor.Type, s string) (int64, error) {
	s = strings.TrimSpace(s)
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, nil
	}
	if v, err := strconv.ParseUint(s, 10, 64); err == nil {
		return int64(v), nil
	}
	if t == tensor.Bool {
		if b, err := strconv.ParseBool(strings.ToLower(s)); err == nil {
			return int64(tensor.Truth(b)), nil
		}
	}
	f, err := parseFloat(s)
	if t == tensor.Bool {
		return int64(tensor.Truth(f != 0)), err
	}
	return tensor.Truncate(f), err
}
