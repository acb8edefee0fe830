// Package quant implements ONNX's operators that quantise, dequantise, and compute on 8-bit
// quantised tensors, of the standard, of Microsoft's domain and of QONNX.
//
// It may use the operators of elementwise and reduce, from which some quantised ones are built.
package quant

import (
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/reduce"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elementwise"
	onnxreduce "github.com/opmeter/opmeter/internal/runtime/onnxop/reduce"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// intRange returns the range of an integer type of up to 16 bits.
func intRange(t tensor.Type) (lo, hi float32) {
	bits := t.Bits()
	if t.IsSigned() {
		return -float32(int(1) << (bits - 1)), float32(int(1)<<(bits-1) - 1)
	}
	return 0, float32(int(1)<<bits - 1)
}

// inferQuantize takes the type of the result from output_dtype, else from the zero point, else
// uint8.
func inferQuantize(c *op.Call) error {
	t := tensor.Uint8
	if z := c.Input(2); z != nil {
		t = z.Type
	}
	if n := c.Node.Attrs.Int("output_dtype", 0); n != 0 {
		o, err := elem.FromCode(n)
		if err != nil {
			return op.Unsupported("quantisation: %v", err)
		}
		if c.Has(2) && o != t {
			return c.Errorf("output_dtype is %v, zero point is %v", o, t)
		}
		t = o
	}
	c.SetOut(0, t, c.In[0].Shape)
	_, err := callGranularity(c)
	return err
}

func callGranularity(c *op.Call) (granularity, error) {
	if z := c.Input(2); z != nil && z.Len() != c.In[1].Len() {
		return granularity{}, c.Errorf("%d zero points for %d scales", z.Len(), c.In[1].Len())
	}
	return newGranularity(c.In[0].Shape, c.In[1].Shape, c.Node.Attrs.Int("axis", 1), c.Node.Attrs.Int("block_size", 0))
}

// prepareQuantize computes saturate(round(x/scale) + zero point). The division uses the precision
// of the scale, or of the attribute "precision".
func prepareQuantize(c *op.Call) (op.Run, error) {
	prec := c.In[1].Type
	if n := c.Node.Attrs.Int("precision", 0); n != 0 {
		prec, _ = elem.FromCode(n) // an unknown one is float32
	}
	var round func(float32) float32
	switch prec {
	case tensor.Float16:
		round = func(f float32) float32 { return tensor.F16ToF32(tensor.F32ToF16(f)) }
	case tensor.BFloat16:
		round = func(f float32) float32 { return tensor.BF16ToF32(tensor.F32ToBF16(f)) }
	}
	return elem.Widen(func(c *op.Call) (op.Run, error) { return prepareQuantizeRows(c, round, prec == tensor.Float16) })(c)
}

// quantizer is a prepared QuantizeLinear with float32 input.
type quantizer struct {
	g      granularity
	x      []float32
	scale  []float32
	zero   []float32
	lo, hi float32
	round  func(float32) float32 // to the precision of the division, nil for float32
	halves bool                  // that is float16, and there are vectors
}

func prepareQuantizeRows(c *op.Call, round func(float32) float32, half bool) (op.Run, error) {
	g := op.Must(callGranularity(c))
	for i := range c.In {
		if c.In[i] != nil {
			if _, err := elementwise.Numeric(c, i); err != nil {
				return nil, err
			}
		}
	}
	q := &quantizer{g: g, scale: make([]float32, g.scales), zero: make([]float32, g.scales), round: round}
	q.halves = half && !g.vector && simd.ElementKernels() != nil
	t := c.Out[0].Type
	var work func(c *op.Call, lo, hi int)
	var codes []uint8 // one byte an element, for packed types
	if t.Bits() < 8 {
		codes = c.Scratch(g.total)
	}
	switch {
	case t.IsFloat() && tensor.Float8Table(t) != nil:
		saturate := c.Node.Attrs.Bool("saturate", true)
		work = func(c *op.Call, lo, hi int) { q.float8(t, bytesOr(codes, c.Out[0]), saturate, lo, hi) }
	case t == tensor.Int8:
		work = func(c *op.Call, lo, hi int) { quantizeRows(q, tensor.Of[int8](c.Out[0]), lo, hi) }
	case t == tensor.Uint8 || t == tensor.Uint4 || t == tensor.Uint2 || t == tensor.Int4 || t == tensor.Int2:
		work = func(c *op.Call, lo, hi int) { quantizeRows(q, bytesOr(codes, c.Out[0]), lo, hi) }
	case t == tensor.Int16:
		work = func(c *op.Call, lo, hi int) { quantizeRows(q, tensor.Of[int16](c.Out[0]), lo, hi) }
	case t == tensor.Uint16:
		work = func(c *op.Call, lo, hi int) { quantizeRows(q, tensor.Of[uint16](c.Out[0]), lo, hi) }
	default:
		return nil, op.Unsupported("quantisation to %v", t)
	}
	if !t.IsFloat() {
		q.lo, q.hi = intRange(t)
	}
	var wide []float32
	if c.In[0].Type != tensor.Float32 {
		wide = make([]float32, g.total)
	}
	return func(c *op.Call) error {
		tensor.Read(q.scale, c.In[1], 0)
		if c.Has(2) {
			tensor.Read(q.zero, c.In[2], 0)
		}
		if q.x = wide; wide == nil {
			q.x = tensor.Of[float32](c.In[0])
		} else {
			tensor.Read(wide, c.In[0], 0)
		}
		workers.Do(c.Pool, g.rows, g.grain(), c, work)
		if codes != nil {
			tensor.Pack(c.Out[0], codes)
		}
		return nil
	}, nil
}

func bytesOr(codes []uint8, x *tensor.Tensor) []uint8 {
	if codes != nil {
		return codes
	}
	return tensor.Of[uint8](x)
}

// nearest is added and subtracted to round a small float32 to an integer, ties to even: at that
// magnitude the spacing of floats is one.
const nearest = 3 << 22

func quantizeRows[T int8 | uint8 | int16 | uint16](q *quantizer, out []T, lo, hi int) {
	for r := lo; r < hi; r++ {
		a, b, s := q.g.at(r)
		x, dst := q.x[a:b], out[a:b]
		switch {
		case q.halves && unsafe.Sizeof(T(0)) == 1:
			workspace := halfWorkspaces.Get().(*halfWorkspace)
			for at := 0; at < len(x); at += element.Block {
				n := min(element.Block, len(x)-at)
				v := workspace.numbers[:n]
				copy(v, x[at:])
				workspace.round(v)
				divide(v, v, q.scale[s])
				workspace.round(v)
				toCodes(unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(dst[at:]))), n), v, 1, q.lo-q.zero[s], q.hi-q.zero[s], int32(q.zero[s]))
			}
			halfWorkspaces.Put(workspace)
		case q.round != nil || q.g.vector:
			for i, v := range x {
				k := s
				if q.g.vector {
					k += i
				}
				if q.round != nil {
					v = q.round(q.round(v) / q.scale[k])
				} else {
					v /= q.scale[k]
				}
				dst[i] = T(int32(quantizeOne(v, q.lo-q.zero[k], q.hi-q.zero[k])) + int32(q.zero[k]))
			}
		default:
			scale, zero := q.scale[s], q.zero[s]
			qlo, qhi, z := q.lo-zero, q.hi-zero, int32(zero)
			if unsafe.Sizeof(T(0)) == 1 {
				toCodes(unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)), x, scale, qlo, qhi, z)
				continue
			}
			if e := simd.ElementKernels(); e != nil {
				n := e.Quantise16(unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)), x, scale, qlo, qhi, z)
				x, dst = x[n:], dst[n:]
			}
			for i, v := range x {
				dst[i] = T(int32(quantizeOne(v/scale, qlo, qhi)) + z)
			}
		}
	}
}

// divide divides by a scalar.
var divide = element.Div[float32]().VectorScalar

// halfWorkspace is scratch memory for rounding a block of numbers to float16.
type halfWorkspace struct {
	numbers [element.Block]float32
	halves  [element.Block]uint16
}

var halfWorkspaces = sync.Pool{New: func() any { return new(halfWorkspace) }}

// round rounds numbers to float16.
func (h *halfWorkspace) round(v []float32) {
	e, halves := simd.ElementKernels(), h.halves[:len(v)]
	for i := e.ToHalf(halves, v); i < len(v); i++ {
		halves[i] = tensor.F32ToF16(v[i])
	}
	for i := e.FromHalf(v, halves); i < len(v); i++ {
		v[i] = tensor.F16ToF32(halves[i])
	}
}

// quantizeOne clamps and rounds; NaN gives the lower bound.
func quantizeOne(v, lo, hi float32) float32 {
	if !(v > lo) {
		v = lo
	}
	if v > hi {
		v = hi
	}
	return (v + nearest) - nearest
}

func (q *quantizer) float8(t tensor.Type, out []uint8, saturate bool, lo, hi int) {
	for r := lo; r < hi; r++ {
		a, b, s := q.g.at(r)
		for i, v := range q.x[a:b] {
			k := s
			if q.g.vector {
				k += i
			}
			v /= q.scale[k]
			if q.round != nil {
				v = q.round(v)
			}
			out[a+i] = tensor.F64ToFloat8(t, float64(v+q.zero[k]), saturate)
		}
	}
}

func inferDequantize(c *op.Call) error {
	t := c.In[1].Type
	if n := c.Node.Attrs.Int("output_dtype", 0); n != 0 {
		o, err := elem.FromCode(n)
		if err != nil {
			return op.Unsupported("dequantisation: %v", err)
		}
		t = o
	}
	if t == tensor.Float8E8M0 {
		t = tensor.Float32
	}
	c.SetOut(0, t, c.In[0].Shape)
	_, err := callGranularity(c)
	return err
}

// prepareDequantize computes (x - zero point)·scale.
func prepareDequantize(c *op.Call) (op.Run, error) {
	g := op.Must(callGranularity(c))
	if c.Out[0].Type != tensor.Float32 {
		return nil, op.Unsupported("dequantisation to %v", c.Out[0].Type)
	}
	if z := c.Input(2); z != nil && z.Type != c.In[0].Type {
		return nil, c.Errorf("zero point is %v, input is %v", z.Type, c.In[0].Type)
	}
	d := &dequantizer{g: g, scale: make([]float32, g.scales), zero: make([]float32, g.scales)}
	var work func(c *op.Call, lo, hi int)
	switch t := c.In[0].Type; t {
	case tensor.Int8:
		work = func(c *op.Call, lo, hi int) { dequantizeRows(d, tensor.Of[int8](c.In[0]), lo, hi) }
	case tensor.Uint8:
		work = func(c *op.Call, lo, hi int) { dequantizeRows(d, tensor.Of[uint8](c.In[0]), lo, hi) }
	case tensor.Int16:
		work = func(c *op.Call, lo, hi int) { dequantizeRows(d, tensor.Of[int16](c.In[0]), lo, hi) }
	case tensor.Uint16:
		work = func(c *op.Call, lo, hi int) { dequantizeRows(d, tensor.Of[uint16](c.In[0]), lo, hi) }
	case tensor.Int32:
		work = func(c *op.Call, lo, hi int) { dequantizeRows(d, tensor.Of[int32](c.In[0]), lo, hi) }
	default:
		if tensor.Float8Table(t) == nil && t.Bits() >= 8 || t.Bits() == 0 {
			return nil, elem.BadType(c, 0)
		}
		work = func(c *op.Call, lo, hi int) { d.small(c.In[0], lo, hi) }
	}
	return func(c *op.Call) error {
		tensor.Read(d.scale, c.In[1], 0)
		if c.Has(2) {
			tensor.Read(d.zero, c.In[2], 0)
		}
		d.out = tensor.Of[float32](c.Out[0])
		workers.Do(c.Pool, g.rows, g.grain(), c, work)
		return nil
	}, nil
}

// dequantizer is a prepared DequantizeLinear with float32 output.
type dequantizer struct {
	g           granularity
	scale, zero []float32
	out         []float32
}

func dequantizeRows[T int8 | uint8 | int16 | uint16 | int32](d *dequantizer, in []T, lo, hi int) {
	for r := lo; r < hi; r++ {
		a, b, s := d.g.at(r)
		x, dst := in[a:b], d.out[a:b]
		if !d.g.vector {
			scale, zero := d.scale[s], int32(d.zero[s])
			if unsafe.Sizeof(T(0)) == 1 {
				var least T
				toReals(dst, unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(x))), len(x)), least-1 < 0, zero, scale)
				continue
			}
			if e := simd.ElementKernels(); e != nil && unsafe.Sizeof(T(0)) == 2 {
				var least T
				n := e.Dequantise16(dst, unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x)), zero, scale, least-1 < 0)
				x, dst = x[n:], dst[n:]
			}
			for i, v := range x {
				dst[i] = float32(int32(v)-zero) * scale
			}
			continue
		}
		scale, zero := d.scale[s:s+len(x)], d.zero[s:s+len(x)]
		for i, v := range x {
			dst[i] = float32(int32(v)-int32(zero[i])) * scale[i]
		}
	}
}

// small reads packed and float8 elements in blocks.
func (d *dequantizer) small(x *tensor.Tensor, lo, hi int) {
	var block [element.Block]float64
	for r := lo; r < hi; r++ {
		a, b, s := d.g.at(r)
		for at := a; at < b; at += element.Block {
			vals := block[:min(element.Block, b-at)]
			tensor.Read(vals, x, at)
			for i, v := range vals {
				k := s
				if d.g.vector {
					k += at - a + i
				}
				d.out[at+i] = (float32(v) - d.zero[k]) * d.scale[k]
			}
		}
	}
}

// dynamicQuantizer finds the range of the input, zero included, and quantises to uint8 with it.
type dynamicQuantizer struct {
	quantizer
	out     []uint8
	extents []extent // of what each worker has seen
	see     func(worker, lo, hi int)
	rows    func(lo, hi int)
}

// extent is a range of values.
type extent struct {
	lo, hi float32
	_      [56]byte // each in a cache line of its own
}

func inferDynamic(c *op.Call) error {
	c.SetOut(1, tensor.Float32, nil)
	c.SetOut(2, tensor.Uint8, nil)
	return c.Result(tensor.Uint8, c.In[0].Shape)
}

func prepareDynamic(c *op.Call) (op.Run, error) {
	if c.In[0].Type != tensor.Float32 {
		return nil, elem.BadType(c, 0)
	}
	return newDynamicQuantizer(c).run, nil
}

func newDynamicQuantizer(c *op.Call) *dynamicQuantizer {
	q := &dynamicQuantizer{extents: make([]extent, c.Pool.Threads())}
	q.hi, q.scale, q.zero = 255, make([]float32, 1), make([]float32, 1)
	q.see = func(worker, lo, hi int) {
		e := &q.extents[worker]
		lower, upper := Extent(q.x[lo:hi])
		e.lo, e.hi = min(e.lo, lower), max(e.hi, upper)
	}
	q.rows = func(lo, hi int) { quantizeRows(&q.quantizer, q.out, lo, hi) }
	return q
}

func (q *dynamicQuantizer) run(c *op.Call) error {
	q.x = tensor.Of[float32](c.In[0])
	clear(q.extents)
	c.Pool.ForWorker(len(q.x), 2*element.Grain, q.see)
	lo, hi := q.extents[0].lo, q.extents[0].hi
	for _, e := range q.extents[1:] {
		lo, hi = min(lo, e.lo), max(hi, e.hi)
	}
	scale := (hi - lo) / 255
	zero := float32(0)
	if scale > 0 {
		zero = quantizeOne(-lo/scale, 0, 255)
	}
	if c.Wants(1) {
		tensor.Of[float32](c.Out[1])[0] = scale
	}
	if c.Wants(2) {
		tensor.Of[uint8](c.Out[2])[0] = uint8(zero)
	}
	if !c.Wants(0) {
		return nil
	}
	q.out = tensor.Of[uint8](c.Out[0])
	if scale == 0 {
		element.Fill(q.out, uint8(zero))
		return nil
	}
	q.g = granularity{total: len(q.x), row: tensorRow, rows: (len(q.x) + tensorRow - 1) / tensorRow}
	q.scale[0], q.zero[0] = scale, zero
	c.Pool.For(q.g.rows, q.g.grain(), q.rows)
	q.x, q.out = nil, nil
	return nil
}

// Extent returns the minimum and maximum of x and 0; NaN if x contains a NaN.
func Extent(x []float32) (lo, hi float32) {
	if e := simd.ElementKernels(); e != nil {
		return e.Extent(x, 0, 0)
	}
	return reduce.MinRow(0, x), reduce.MaxRow(0, x)
}

// Dynamic chooses scale and zero point of uint8 over the range of x, widened to include zero.
func Dynamic(x []float32) (scale float32, zero int32) {
	lo, hi := Extent(x)
	if lo == hi {
		return 1, 0
	}
	scale = (hi - lo) / 255
	return scale, int32(min(max(math.RoundToEven(float64(-lo/scale)), 0), 255))
}

// Defs lists the operators of this package.
func Defs() []op.Def {
	quantized := slices.Concat([]tensor.Type{tensor.Uint8, tensor.Int8, tensor.Uint16, tensor.Int16, tensor.Int32}, elem.Packed, elem.Float8s)
	def := func(name string, infer func(*op.Call) error, p elem.Prepare) op.Def {
		return op.Def{Domain: graph.Microsoft, Name: name, Since: 1, Types: elem.Bytes, Infer: infer, Prepare: p}
	}
	two := func(name string, product bool) op.Def {
		d := elem.Fusing(def(name, op.Needs(2, inferQLinear), elem.With(prepareQLinear, product)))
		d.NHWC = lastOfTwo
		return d
	}
	one := func(name string, mk func(c *op.Call) func(float32) float32) op.Def {
		d := def(name, elem.Same, prepareQTable(mk))
		d.InPlace, d.NHWC = true, elem.AllLast
		return d
	}
	defs := []op.Def{
		{Name: "DynamicQuantizeLinear", Since: 11, Types: elem.Floats[:1], Infer: op.Needs(1, inferDynamic), Prepare: prepareDynamic},
		{Domain: graph.Own, Name: "LookUp", Since: 1, Types: elem.Bytes, Infer: op.Needs(2, inferLookUp), InPlace: true, Prepare: prepareLookUp, NHWC: lastOfLookUp},
		two("QLinearAdd", false), two("QLinearMul", true),
		one("QLinearSigmoid", func(*op.Call) func(float32) float32 { return vecmath.Sigmoid }), one("QLinearLeakyRelu", leaky),
		def("QLinearSoftmax", op.Needs(1, func(c *op.Call) error { return onnxreduce.InferSoftmax(qSoftmaxCall(c)) }),
			AroundFloat(func(c *op.Call) (op.Run, error) {
				return onnxreduce.PrepareSoftmax(qSoftmaxCall(c), onnxreduce.Softmax)
			})),
		def("QLinearReduceMean", op.Needs(1, func(c *op.Call) error { return onnxreduce.InferReduce(qReduceCall(c)) }),
			AroundFloat(func(c *op.Call) (op.Run, error) { return onnxreduce.PrepareReduce(qReduceCall(c), onnxreduce.RedMean) })),
		def("QLinearWhere", inferQWhere, prepareQWhere),
	}
	for _, d := range []op.Def{{Domain: graph.ONNX, Since: 10}, {Domain: graph.Microsoft, Since: 1}} {
		defs = append(defs,
			op.Def{Domain: d.Domain, Name: "QuantizeLinear", Since: d.Since, Types: elem.FloatsAnd(tensor.Int32), Infer: op.Needs(2, inferQuantize), Prepare: prepareQuantize},
			op.Def{Domain: d.Domain, Name: "DequantizeLinear", Since: d.Since, Types: quantized, Infer: op.Needs(2, inferDequantize), Prepare: elem.Widen(prepareDequantize)})
	}
	for _, domain := range []string{graph.ONNX, "qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"} {
		defs = append(defs, op.Def{Domain: domain, Name: "Quant", Types: elem.Floats[:1], Infer: op.Needs(4, inferQuant), Prepare: prepareQuant})
	}
	return defs
}
