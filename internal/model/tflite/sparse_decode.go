package tflite

import (
	"encoding/binary"
	"slices"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// maxExpansion bounds the bytes of all expanded sparse constants relative to the file size: real
// models keep a tenth or more of their weights.
const maxExpansion = 64

// maxLevels bounds the depth of a sparse encoding: axes and blocked axes.
const maxLevels = 16

// level is one level of a sparse encoding: dense with a size, or compressed.
type level struct {
	size              int
	segments, indices indexes // empty for dense levels
	compressed        bool
	// The coordinate of this level contributes to axis, times stride.
	stride int
	limit  int // coordinates must stay below it
}

func (p *parser) sparse(r *rawTensor, t flatbuffer.Table) {
	v := r.v
	n, err := tensor.CheckShape(v.Type, r.shape)
	width := v.Type.Bits() / 8
	switch {
	case err != nil:
		r.t.Fail("shape", "%w", err)
		return
	case width == 0 || len(r.shape) == 0:
		t.Fail("", "a sparse tensor of type %v and rank %d", v.Type, len(r.shape))
		return
	}
	if p.expanded += n * width; p.expanded > maxExpansion*len(p.data) {
		r.t.Fail("shape", "%q: sparse tensors would expand to over %d times the size of the file", v.Name, maxExpansion)
		return
	}
	s := &graph.Sparse{TraversalOrder: t.Ints(0, "traversal_order"), BlockMap: t.Ints(1, "block_map"), StoredBytes: len(r.buf.data), StoredElements: len(r.buf.data) / width}
	levels := p.levels(t, r.shape, s)
	if levels == nil {
		return
	}
	c := tensor.New(v.Type, r.shape...)
	c.Quant = v.Quant
	if q := v.Quant; q != nil && len(q.Zero) == 1 && q.Zero[0] != 0 && width == 1 {
		// Elements that are not stored are zero in real numbers.
		for i := range c.Data {
			c.Data[i] = byte(q.Zero[0])
		}
	}
	if n == 0 {
		v.Const, v.Sparse = c, s
		return
	}
	x := sparseDecoder{src: r.buf.data, dst: c.Data, width: width, levels: levels}
	if !x.walk(0, 0, 0) {
		t.Fail("dim_metadata", "%q: the index leads outside the tensor or its %d stored elements", v.Name, s.StoredElements)
		return
	}
	v.Const, v.Sparse, v.Offset = c, s, r.buf.offset
}

// levels reads and checks the encoding of every level.
func (p *parser) levels(t flatbuffer.Table, shape []int, s *graph.Sparse) []level {
	rank, order := len(shape), s.TraversalOrder
	meta := t.Tables(2, "dim_metadata")
	if len(order) > maxLevels {
		t.Fail("traversal_order", "%d levels", len(order))
		return nil
	}
	if len(order) != rank+len(s.BlockMap) || meta.Len() != len(order) {
		t.Fail("traversal_order", "%d levels and %d descriptions for rank %d with %d blocked axes", len(order), meta.Len(), rank, len(s.BlockMap))
		return nil
	}
	seen := make([]bool, len(order))
	for i, o := range order {
		if o < 0 || o >= len(order) || seen[o] || (o < rank) != (i < rank) {
			t.Fail("traversal_order", "entry %d is %d: not a permutation", i, o)
			return nil
		}
		seen[o] = true
	}
	for i, a := range s.BlockMap {
		if a < 0 || a >= rank || slices.Contains(s.BlockMap[:i], a) {
			t.Fail("block_map", "entry %d is axis %d of %d", i, a, rank)
			return nil
		}
	}
	levels := make([]level, len(order))
	s.Compressed, s.Blocks = make([]bool, len(order)), make([]int, len(s.BlockMap))
	block := make([]int, rank) // block size by axis
	for i := range block {
		block[i] = 1
	}
	for i, o := range order {
		d := meta.At(i)
		l := &levels[i]
		l.size = int(d.Int32(1, "dense_size", 0))
		if d.Int8(0, "format", 0) != 0 {
			l.compressed = true
			l.segments = p.indexVector(d, 2, "array_segments")
			l.indices = p.indexVector(d, 4, "array_indices")
		} else if l.size < 0 {
			d.Fail("dense_size", "size %d", l.size)
		}
		if o >= rank {
			if l.compressed || l.size == 0 {
				d.Fail("format", "a block axis must be dense")
			}
			s.Blocks[o-rank] = max(l.size, 1)
			block[s.BlockMap[o-rank]] = s.Blocks[o-rank]
		}
		s.Compressed[i] = l.compressed
	}
	if p.r.Err() != nil {
		return nil
	}
	strides := tensor.Strides(shape)
	for i, o := range order {
		l := &levels[i]
		if o >= rank {
			l.stride, l.limit = strides[s.BlockMap[o-rank]], l.size
			continue
		}
		if shape[o]%block[o] != 0 {
			t.Fail("block_map", "blocks of %d do not divide dimension %d of axis %d", block[o], shape[o], o)
			return nil
		}
		l.stride, l.limit = strides[o]*block[o], shape[o]/block[o]
		if !l.compressed && l.size != l.limit {
			t.Fail("dim_metadata", "level %d has %d entries, the shape needs %d", i, l.size, l.limit)
			return nil
		}
	}
	return levels
}

// indexes are integers of 1, 2 or 4 bytes (4-byte ones are signed) in the mapped file.
type indexes struct {
	data  []byte
	width int
}

func (x *indexes) len() int { return len(x.data) / max(1, x.width) }

func (x *indexes) at(i int) int {
	switch x.width {
	case 1:
		return int(x.data[i])
	case 2:
		return int(binary.LittleEndian.Uint16(x.data[2*i:]))
	}
	return int(int32(binary.LittleEndian.Uint32(x.data[4*i:])))
}

// indexVector reads a union of vectors of three widths.
func (p *parser) indexVector(d flatbuffer.Table, slot int, name string) indexes {
	t, width := d.Table(slot+1, name), 1
	switch kind := d.Uint8(slot, name+"_type", 0); kind {
	case 1:
		width = 4
	case 2:
		width = 2
	case 3:
	default:
		d.Fail(name, "index vector of type %d", kind)
		return indexes{}
	}
	return indexes{t.Raw(0, "values", width), width}
}

// sparseDecoder walks the levels and copies stored values to their positions.
type sparseDecoder struct {
	src, dst []byte
	width    int
	levels   []level
	next     int // number of stored values consumed
}

// walk visits level i at a position within it; at is the element of the outer coordinates. It is
// false for an index outside of the tensor.
func (x *sparseDecoder) walk(i, pos, at int) bool {
	if i == len(x.levels) {
		return x.put(at, 1)
	}
	l := &x.levels[i]
	if !l.compressed {
		if i == len(x.levels)-1 && l.stride == 1 {
			return x.put(at, l.size)
		}
		for c := range l.size {
			if !x.walk(i+1, pos*l.size+c, at+c*l.stride) {
				return false
			}
		}
		return true
	}
	if pos+1 >= l.segments.len() {
		return false
	}
	lo, hi := l.segments.at(pos), l.segments.at(pos+1)
	if lo < 0 || hi < lo || hi > l.indices.len() || hi-lo > l.limit {
		return false
	}
	for k := lo; k < hi; k++ {
		c := l.indices.at(k)
		if c < 0 || c >= l.limit || !x.walk(i+1, k, at+c*l.stride) {
			return false
		}
	}
	return true
}

// put copies the next n stored values to adjacent elements from at on; false where there are
// fewer.
func (x *sparseDecoder) put(at, n int) bool {
	lo, hi := x.next*x.width, (x.next+n)*x.width
	if hi > len(x.src) {
		return false
	}
	switch dst, src := x.dst[at*x.width:], x.src[lo:hi]; len(src) {
	case 2:
		copy(dst[:2], src)
	case 4:
		copy(dst[:4], src)
	default:
		copy(dst, src)
	}
	x.next += n
	return true
}
