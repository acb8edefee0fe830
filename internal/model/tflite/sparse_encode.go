package tflite

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// EncodeSparse encodes a constant in the sparse layout of another one: its non-zero elements and
// those in the same blocks. Zero is the zero point if there is a single one. It is nil where the
// layout does not fit, or where dense storage is not larger.
func EncodeSparse(c *tensor.Tensor, layout *graph.Sparse) *graph.Sparse {
	p, err := pack(c, c.Quant, layout)
	if err != nil || len(p.data)+p.indexBytes() >= len(c.Data) {
		return nil
	}
	out := *layout
	out.StoredBytes = len(p.data)
	out.StoredElements = len(p.data) / p.width
	return &out
}

// sparseEncoder walks the levels of a sparse encoding and collects the stored elements.
type sparseEncoder struct {
	src   []byte
	width int
	zero  []byte // an element that is not stored
	all   []packedLevel
	data  []byte
}

// packedLevel is a level with its index lists.
type packedLevel struct {
	size, stride      int
	compressed        bool
	segments, indices []int
}

func pack(c *tensor.Tensor, q *tensor.Quant, s *graph.Sparse) (*sparseEncoder, error) {
	rank := len(c.Shape)
	p := &sparseEncoder{src: c.Data, width: c.Type.Bits() / 8}
	if p.width == 0 || rank == 0 || len(s.TraversalOrder) != rank+len(s.BlockMap) || len(s.Compressed) != len(s.TraversalOrder) || len(s.Blocks) != len(s.BlockMap) {
		return nil, fmt.Errorf("a sparse constant of type %v and rank %d with %d levels", c.Type, rank, len(s.TraversalOrder))
	}
	p.zero = make([]byte, p.width)
	if q != nil && c.Type.IsInteger() {
		if len(q.Zero) != 1 && slices.ContainsFunc(q.Zero, func(z int64) bool { return z != 0 }) || len(q.Zero) == 1 && q.Zero[0] != 0 && p.width != 1 {
			return nil, fmt.Errorf("a sparse constant of type %v with zero points %d", c.Type, q.Zero)
		}
		if len(q.Zero) == 1 && q.Zero[0] != 0 {
			p.zero[0] = byte(q.Zero[0])
		}
	}
	strides := tensor.Strides(c.Shape)
	block := slices.Repeat([]int{1}, rank)
	for i, a := range s.BlockMap {
		if a < 0 || a >= rank || s.Blocks[i] < 1 || c.Shape[a]%s.Blocks[i] != 0 {
			return nil, fmt.Errorf("blocks of %d do not divide %s", s.Blocks[i], tensor.FormatShape(c.Shape))
		}
		block[a] = s.Blocks[i]
	}
	for i, o := range s.TraversalOrder {
		l := packedLevel{compressed: s.Compressed[i]}
		switch {
		case o < 0 || o >= len(s.TraversalOrder):
			return nil, fmt.Errorf("traversal order %d", s.TraversalOrder)
		case o < rank:
			l.size, l.stride = c.Shape[o]/block[o], strides[o]*block[o]
		default:
			l.size, l.stride = s.Blocks[o-rank], strides[s.BlockMap[o-rank]]
		}
		if l.compressed {
			l.segments = []int{0}
		}
		p.all = append(p.all, l)
	}
	p.walk(0, 0)
	return p, nil
}

// walk stores the part below element at in the levels from i on.
func (p *sparseEncoder) walk(i, at int) {
	if i == len(p.all) {
		p.data = append(p.data, p.src[at*p.width:][:p.width]...)
		return
	}
	l := &p.all[i]
	for k := range l.size {
		next := at + k*l.stride
		if l.compressed {
			if p.empty(i+1, next) {
				continue
			}
			l.indices = append(l.indices, k)
		}
		p.walk(i+1, next)
	}
	if l.compressed {
		l.segments = append(l.segments, len(l.indices))
	}
}

// empty reports whether a part has only zeros.
func (p *sparseEncoder) empty(i, at int) bool {
	if i == len(p.all) {
		return bytes.Equal(p.src[at*p.width:][:p.width], p.zero)
	}
	for k := range p.all[i].size {
		if !p.empty(i+1, at+k*p.all[i].stride) {
			return false
		}
	}
	return true
}

// indexBytes is the size of the index lists as written.
func (p *sparseEncoder) indexBytes() (n int) {
	for _, l := range p.all {
		if l.compressed {
			n += len(l.segments)*indexWidth(l.segments) + len(l.indices)*indexWidth(l.indices)
		}
	}
	return n
}

// indexWidth is the smallest width, 1, 2 or 4 bytes, that holds each element of a list.
func indexWidth(v []int) int {
	switch m := slices.Max(append([]int{0}, v...)); {
	case m < 1<<8:
		return 1
	case m < 1<<16:
		return 2
	}
	return 4
}

// table returns the flatbuffer table of the encoding.
func (p *sparseEncoder) table(s *graph.Sparse) *flatbuffer.Object {
	o := &flatbuffer.Object{}
	flatbuffer.Int32s(o, 0, s.TraversalOrder)
	if len(s.BlockMap) > 0 {
		flatbuffer.Int32s(o, 1, s.BlockMap)
	}
	var levels []*flatbuffer.Object
	for _, l := range p.all {
		d := &flatbuffer.Object{}
		if l.compressed {
			d.Uint8(0, 1, 0)
			setIndices(d, 2, l.segments)
			setIndices(d, 4, l.indices)
		} else {
			d.Int32(1, int32(l.size), 0)
		}
		levels = append(levels, d)
	}
	o.Tables(2, levels)
	return o
}

// setIndices writes a union of vectors of three widths.
func setIndices(o *flatbuffer.Object, slot int, v []int) {
	t := &flatbuffer.Object{}
	kind := uint8(1)
	switch indexWidth(v) {
	case 1:
		b := make([]byte, len(v))
		for i, x := range v {
			b[i] = byte(x)
		}
		kind = 3
		t.Bytes(0, b, 4)
	case 2:
		w := make([]uint16, len(v))
		for i, x := range v {
			w[i] = uint16(x)
		}
		kind = 2
		t.Uint16s(0, w)
	default:
		flatbuffer.Int32s(t, 0, v)
	}
	o.Uint8(slot, kind, 0)
	o.Table(slot+1, t)
}
