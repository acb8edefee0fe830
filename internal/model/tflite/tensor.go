package tflite

import (
	"encoding/binary"
	"slices"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// rawTensor is a tensor table, decoded as far as possible on its own.
type rawTensor struct {
	t      flatbuffer.Table
	v      *graph.Value
	shape  []int // as stored
	buf    buffer
	number uint32 // of the buffer
	blocks blocks
}

func (p *parser) tensor(t flatbuffer.Table, id int, v *graph.Value) rawTensor {
	*v = graph.Value{ID: id, Name: t.String(3, "name"), Variable: t.Bool(5, "is_variable", false), Offset: -1}
	raw := rawTensor{t: t, v: v, shape: t.Ints(0, "shape"), number: t.Uint32(2, "buffer", 0)}
	code := int(t.Int8(1, "type", 0))
	if code < 0 || code >= len(tensorTypes) {
		t.Fail("type", "tensor type %d is not known", code)
		return raw
	}
	v.Type = tensorTypes[code].typ
	for i, d := range raw.shape {
		if d < -1 {
			t.Fail("shape", "dimension %d is %d", i, d)
			return raw
		}
	}
	v.Shape, v.HasShape = raw.shape, len(raw.shape) > 0 || t.Bool(8, "has_rank", false)
	if sig := t.Ints(7, "shape_signature"); len(sig) > 0 {
		p.signatureShape(t, &raw, sig)
	}
	if t.Uint32(10, "external_buffer", 0) != 0 {
		t.Fail("external_buffer", "weights in a separate file are not supported")
	}
	raw.buf = p.buffer(t, "buffer", raw.number)
	p.quantisation(t.Table(4, "quantization"), &raw)
	return raw
}

func (p *parser) signatureShape(t flatbuffer.Table, raw *rawTensor, sig []int) {
	for i, d := range sig {
		if d < -1 {
			t.Fail("shape_signature", "dimension %d is %d", i, d)
			return
		}
	}
	if len(sig) != len(raw.shape) {
		p.warn("a shape signature of another rank", "Tensor %d %q has a shape of rank %d and a signature of rank %d: the shape counts.", raw.v.ID, raw.v.Name, len(raw.shape), len(sig))
		return
	}
	raw.v.Shape = sig
	if slices.Contains(sig, -1) {
		raw.v.Placeholder = raw.shape
	}
}

// constants determines which tensors are constants and decodes their buffers.
func (p *parser) constants(g *graph.Graph, raw []rawTensor) {
	made, fed := make([]bool, len(raw)), make([]bool, len(raw))
	for _, id := range g.Inputs {
		made[id], fed[id] = true, true
	}
	for _, n := range g.Nodes {
		for _, id := range n.Outputs {
			if id >= 0 {
				made[id] = true
			}
		}
	}
	for i := range raw {
		r := &raw[i]
		sparsity := r.t.Table(6, "sparsity")
		if r.v.Variable {
			// A state has a single shape. One that is supplied from outside is an input.
			r.v.Shape, r.v.Placeholder = r.shape, nil
			r.v.Variable = !fed[i]
		}
		switch {
		case p.r.Err() != nil:
			return
		case r.v.Variable && len(r.buf.data) == 0:
			// initialised to zero
		case made[i] && !r.v.Variable:
			if len(r.buf.data) > 0 {
				p.warn("a buffer although it is computed", "Tensor %d %q has a buffer of %d bytes but is an input or computed: the buffer is ignored.", i, r.v.Name, len(r.buf.data))
			}
		case sparsity.Valid():
			p.sparse(r, sparsity)
		case len(r.buf.data) > 0:
			p.dense(r)
		case slices.Contains(r.shape, 0):
			r.v.Const = &tensor.Tensor{Type: r.v.Type, Shape: r.shape, Data: []byte{}, Quant: r.v.Quant}
		}
		if c := r.v.Const; c != nil {
			r.v.Shape, r.v.HasShape, r.v.Placeholder = c.Shape, true, nil
		}
	}
}

func (p *parser) dense(r *rawTensor) {
	v := r.v
	c := &tensor.Tensor{Type: v.Type, Shape: r.shape, Data: r.buf.data, Quant: v.Quant}
	n, err := tensor.CheckShape(v.Type, r.shape)
	switch {
	case err != nil:
		r.t.Fail("shape", "%w", err)
		return
	case v.Type == tensor.String:
		p.strings(r, c, n)
	case v.Type == tensor.Resource || v.Type == tensor.Variant:
		p.warn("a buffer of no use", "Tensor %d %q of type %v has a buffer: ignored.", v.ID, v.Name, v.Type)
		return
	case !hasBytes(v.Type, n, len(c.Data)):
		r.t.Fail("buffer", "%q: buffer %d has %d bytes, a tensor of %s %v needs %d", v.Name, r.number, len(c.Data), tensor.FormatShape(r.shape), v.Type, v.Type.Bytes(n))
		return
	}
	v.Const, v.Offset = c, r.buf.offset
}

// strings decodes a string tensor: a count, count+1 offsets from the start, characters.
func (p *parser) strings(r *rawTensor, c *tensor.Tensor, want int) {
	b := c.Data
	c.Data = []byte{}
	bad := func(format string, args ...any) {
		r.t.Fail("buffer", "strings of %q: "+format, append([]any{r.v.Name}, args...)...)
	}
	if len(b) < 4 {
		bad("%d bytes are too few", len(b))
		return
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if head := 4 + 4*(n+1); head > uint64(len(b)) {
		bad("%d offsets in %d bytes", n+1, len(b))
		return
	}
	if n != uint64(want) {
		bad("%d strings for shape %s", n, tensor.FormatShape(r.shape))
		return
	}
	if !p.r.Spend(len(b)+16*int(n), r.t) {
		return
	}
	at := func(i uint64) uint64 { return uint64(binary.LittleEndian.Uint32(b[4+4*i:])) }
	c.Strings = make([]string, n)
	for i := range n {
		lo, hi := at(i), at(i+1)
		if lo > hi || hi > uint64(len(b)) || lo < 4+4*(n+1) {
			bad("string %d lies at bytes %d to %d of %d", i, lo, hi, len(b))
			return
		}
		c.Strings[i] = string(b[lo:hi])
	}
}
