package contrib

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// GatherBlockQuantized gathers from block-quantised data: data, indices, scales, zero_points.
// uint8 data packs several low-bit values along the last axis, which without zero points are
// centred on the middle of their range; other data is centred on 0.

// gatherBlock is its geometry.
type gatherBlock struct {
	shape         []int // of the codes
	axis, along   int   // of the gather, of the blocks
	block, blocks int
	codes, zeros  tensor.Type // how data and zero points are packed
	middle        float32
	pre, ids      int // fetches: pre × ids, each of inner codes
	inner         int
}

func newGatherBlock(c *op.Call) (*gatherBlock, error) {
	data, scales, a := c.In[0], c.In[2], c.Node.Attrs
	g := &gatherBlock{shape: slices.Clone(data.Shape), codes: data.Type, block: a.Int("block_size", 128)}
	if g.block < 1 || len(g.shape) == 0 {
		return nil, fmt.Errorf("data %s in blocks of %d", tensor.FormatShape(data.Shape), g.block)
	}
	rank := len(g.shape)
	switch data.Type {
	case tensor.Uint8:
		kinds := map[int]tensor.Type{4: tensor.Uint4, 8: tensor.Uint8}
		bits := a.Int("bits", 4)
		if g.codes = kinds[bits]; g.codes == tensor.Invalid {
			return nil, op.Unsupported("codes of %d bits", bits)
		}
		g.shape[rank-1] *= 8 / bits
		g.middle = float32(int(1) << (bits - 1))
	case tensor.Int4, tensor.Uint4:
	default:
		return nil, op.Unsupported("codes of %v", data.Type)
	}
	var err error
	if g.axis, err = op.Axis(a.Int("gather_axis", 0), rank); err != nil {
		return nil, err
	}
	if g.along, err = op.Axis(a.Int("quantize_axis", 1), rank); err != nil {
		return nil, err
	}
	g.blocks = (g.shape[g.along] + g.block - 1) / g.block
	want := slices.Clone(g.shape)
	want[g.along] = g.blocks
	if !slices.Equal(scales.Shape, want) {
		return nil, fmt.Errorf("scales %s, want %s", tensor.FormatShape(scales.Shape), tensor.FormatShape(want))
	}
	if z := c.Input(3); z != nil {
		g.zeros = z.Type
		if data.Type == tensor.Uint8 {
			g.zeros = g.codes
			per := 8 / g.codes.Bits()
			want[rank-1] = (want[rank-1] + per - 1) / per
		}
		if !slices.Equal(z.Shape, want) {
			return nil, fmt.Errorf("zero points %s, want %s", tensor.FormatShape(z.Shape), tensor.FormatShape(want))
		}
	}
	g.pre, g.ids, g.inner = tensor.Elements(g.shape[:g.axis]), c.In[1].Len(), tensor.Elements(g.shape[g.axis+1:])
	c.SetOut(0, c.In[2].Type, slices.Concat(g.shape[:g.axis], c.In[1].Shape, g.shape[g.axis+1:]))
	return g, nil
}

// code reads element i of packed values, whose rows begin on a byte boundary.
func code(x *tensor.Tensor, kind tensor.Type, i, row int) float32 {
	at := i
	if x.Type != kind { // bytes of several codes
		per := 8 / kind.Bits()
		at = i/row*((row+per-1)/per)*per + i%row
	}
	switch kind {
	case tensor.Uint8:
		return float32(x.Data[at])
	case tensor.Int4:
		return float32(int8(x.Data[at/2]>>(at%2*4)<<4) >> 4)
	}
	return float32(x.Data[at/2] >> (at % 2 * 4) & 15)
}

func prepareGatherBlock(c *op.Call) (op.Run, error) {
	g := op.Must(newGatherBlock(c))
	return func(c *op.Call) error {
		n := g.shape[g.axis]
		for i := range g.ids {
			if id := int(tensor.At(c.In[1], i)); id < -n || id >= n {
				return fmt.Errorf("index %d of %d", id, n)
			}
		}
		q := gatherArgs{g, c.In[0], c.In[1], c.Input(3), tensor.Of[float32](c.In[2]), tensor.Of[float32](c.Out[0])}
		workers.Each(c.Pool, g.pre*g.ids, max(1, 1<<12/max(1, g.inner)), q)
		return nil
	}, nil
}

// gatherArgs holds the arguments of a work item.
type gatherArgs struct {
	g                *gatherBlock
	data, ids, zeros *tensor.Tensor
	scales, y        []float32
}

// Piece computes fetches lo to hi.
func (q gatherArgs) Piece(lo, hi int) {
	g := q.g
	for i := lo; i < hi; i++ {
		id := int(tensor.At(q.ids, i%g.ids))
		if id < 0 {
			id += g.shape[g.axis]
		}
		q.fetch(q.y[i*g.inner:][:g.inner], (i/g.ids*g.shape[g.axis]+id)*g.inner)
	}
}

// fetch dequantises values starting at first: a block at a time if blocks run along the last
// axis.
func (q *gatherArgs) fetch(out []float32, first int) {
	g, last := q.g, len(q.g.shape)-1
	line, post := g.shape[last], tensor.Elements(g.shape[g.along+1:])
	lineOfScales := line
	if g.along == last {
		lineOfScales = g.blocks
	}
	for j := 0; j < len(out); {
		at, many := (first+j)/post, 1
		if post == 1 {
			in := at % line
			many = min(g.block-in%g.block, line-in, len(out)-j)
		}
		s := (at/g.shape[g.along]*g.blocks+at%g.shape[g.along]/g.block)*post + (first+j)%post
		zero := g.middle
		if q.zeros != nil {
			zero = code(q.zeros, g.zeros, s, lineOfScales)
		}
		q.block(out[j:j+many], first+j, zero, q.scales[s])
		j += many
	}
}

// block dequantises values starting at first that share a scale.
func (q *gatherArgs) block(out []float32, first int, zero, scale float32) {
	line := q.g.shape[len(q.g.shape)-1]
	if e := simd.ElementKernels(); e != nil && (q.data.Type == tensor.Uint4 || q.data.Type == tensor.Uint8 && q.g.codes == tensor.Uint4) {
		// One-byte values are contiguous.
		at := first
		if q.data.Type == tensor.Uint8 {
			at = first/line*((line+1)/2*2) + first%line
		}
		if at%2 == 0 {
			done := e.Nibbles(out, q.data.Data[at/2:], zero, scale)
			out, first = out[done:], first+done
		}
	}
	for j := range out {
		out[j] = (code(q.data, q.g.codes, first+j, line) - zero) * scale
	}
}
