package tflite

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Numbers of the union QuantizationDetails.
const (
	detailsBlockwise = 2
	detailsMultiAxis = 3
)

// blocks refers to tensors with scales and zero points.
type blocks struct {
	on           bool
	t            flatbuffer.Table
	scales, zero int
	size         int
	axes         []int
}

func (p *parser) quantisation(t flatbuffer.Table, r *rawTensor) {
	if !t.Valid() {
		return
	}
	v := r.v
	switch kind := t.Uint8(4, "details_type", 0); kind {
	case 0:
	case detailsBlockwise, detailsMultiAxis:
		d := t.Table(5, "details")
		r.blocks = blocks{
			on: d.Valid(), t: d, scales: int(d.Int32(0, "scales", 0)), zero: int(d.Int32(1, "zero_points", 0)),
			size: int(d.Int32(2, "block_size", 0)),
		}
		if kind == detailsMultiAxis {
			r.blocks.axes = d.Ints(3, "quantized_dimensions")
		}
		return
	default:
		p.warn("custom quantisation", "Tensor %d %q has custom quantisation (type %d): ignored.", v.ID, v.Name, kind)
		return
	}
	scale := t.Float32s(2, "scale")
	if len(scale) == 0 {
		return // minimum and maximum alone are not a quantisation
	}
	q := &tensor.Quant{Scale: scale, Zero: t.Int64s(3, "zero_point"), Axis: int(t.Int32(6, "quantized_dimension", 0))}
	switch {
	case len(q.Zero) == len(scale):
	case len(q.Zero) == 0:
		q.Zero = make([]int64, len(scale))
	case len(q.Zero) == 1:
		q.Zero = slices.Repeat(q.Zero, len(scale))
	default:
		t.Fail("zero_point", "%d zero points for %d scales", len(q.Zero), len(scale))
		return
	}
	for i, s := range scale {
		if !(s > 0) || math.IsInf(float64(s), 0) {
			p.warn("a scale that means nothing", "Tensor %d %q: scale %d is %v, and a positive number is expected.", v.ID, v.Name, i, s)
			break
		}
	}
	p.zeroPoints(v, q)
	p.fixAxis(r, q)
	v.Quant = q
}

// zeroPoints warns of zero points outside of the type's range.
func (p *parser) zeroPoints(v *graph.Value, q *tensor.Quant) {
	bits := v.Type.Bits()
	if !v.Type.IsInteger() || bits > 32 {
		return
	}
	lo, hi := int64(0), int64(1)<<bits-1
	if v.Type.IsSigned() {
		lo, hi = -1<<(bits-1), 1<<(bits-1)-1
	}
	for i, z := range q.Zero {
		if z < lo || z > hi {
			p.warn("a zero point out of range", "Tensor %d %q: zero point %d is %d, and %v reaches from %d to %d.", v.ID, v.Name, i, z, v.Type, lo, hi)
			return
		}
	}
}

// fixAxis repairs impossible channel axes. Converters have written the axis of the filter for the
// bias.
func (p *parser) fixAxis(r *rawTensor, q *tensor.Quant) {
	n := len(q.Scale)
	if n <= 1 {
		return
	}
	if q.Axis >= 0 && q.Axis < len(r.shape) && r.shape[q.Axis] == n {
		return
	}
	if len(r.shape) == 1 && r.shape[0] == n {
		q.Axis = 0
		return
	}
	p.warn("scales that do not fit the shape", "Tensor %d %q has %d scales along axis %d of shape %s.", r.v.ID, r.v.Name, n, q.Axis, tensor.FormatShape(r.shape))
}

// blockwise resolves scales that are stored in other tensors.
func (p *parser) blockwise(g *graph.Graph, r *rawTensor) {
	b := r.blocks
	if !b.on || p.r.Err() != nil {
		return
	}
	rank := len(r.shape)
	q := &tensor.Quant{Axis: rank - 1, Block: b.size}
	for _, a := range b.axes {
		if a < 0 || a >= rank {
			b.t.Fail("quantized_dimensions", "axis %d of a tensor of rank %d", a, rank)
			return
		}
	}
	if b.size < 0 || b.size == 0 && len(b.axes) == 0 {
		b.t.Fail("block_size", "block size %d", b.size)
		return
	}
	if b.size == 0 {
		q.Axis = b.axes[0]
		if len(b.axes) > 1 {
			p.warn("several channel axes", "Tensor %d %q is quantised along %d axes at once: ignored.", r.v.ID, r.v.Name, len(b.axes))
			return
		}
	}
	scales := p.constant(g, b, "scales", b.scales)
	if scales == nil {
		return
	}
	n := scales.Len()
	if !p.r.Spend(12*n, b.t) {
		return
	}
	if q.Scale = floats(scales); q.Scale == nil {
		b.t.Fail("scales", "scales of type %v", scales.Type)
		return
	}
	q.Zero = make([]int64, n)
	// 0 would be the scale tensor or an input: writers use it for "none".
	if b.zero > 0 {
		zero := p.constant(g, b, "zero_points", b.zero)
		if zero == nil {
			return
		}
		if zero.Len() != n || !integers(zero, q.Zero) {
			b.t.Fail("zero_points", "%d zero points of type %v for %d scales", zero.Len(), zero.Type, n)
			return
		}
	}
	r.v.Quant = q
	if r.v.Const != nil {
		r.v.Const.Quant = q
	}
}

func (p *parser) constant(g *graph.Graph, b blocks, field string, id int) *tensor.Tensor {
	if id < 0 || id >= len(g.Values) {
		b.t.Fail(field, "tensor %d of %d", id, len(g.Values))
		return nil
	}
	if g.Values[id].Const == nil {
		b.t.Fail(field, "tensor %d %q is not a constant", id, g.Values[id].Name)
	}
	return g.Values[id].Const
}

// floats reads scales, nil for types without scales.
func floats(x *tensor.Tensor) []float32 {
	if x.Type != tensor.Float32 && !x.Type.IsHalf() {
		return nil
	}
	out := make([]float32, x.Len())
	tensor.Read(out, x, 0)
	return out
}

// integers reads zero points.
func integers(x *tensor.Tensor, out []int64) bool {
	switch x.Type {
	case tensor.Int64, tensor.Int32, tensor.Int8, tensor.Uint8:
		tensor.Read(out, x, 0)
		return true
	}
	return false
}
