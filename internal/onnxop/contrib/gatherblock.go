package contrib

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// GatherBlockQuantized fetches from codes with a scale for each block of them: data,
// indices, scales, zero_points. Codes of uint8 hold several of bits each along the last axis, and are
// around the middle of their range without zero points; other codes are around 0.

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
	if err := c.NeedInputs(3); err != nil {
		return nil, err
	}
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
	return g, nil
}

func inferGatherBlock(c *op.Call) error {
	g, err := newGatherBlock(c)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[2].Type, slices.Concat(g.shape[:g.axis], c.In[1].Shape, g.shape[g.axis+1:]))
	return nil
}

// code reads element i of packed codes, of which a row begins on a byte.
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
	g, err := newGatherBlock(c)
	if err != nil {
		return nil, err
	}
	rank := len(g.shape)
	n, post := g.shape[g.axis], tensor.Elements(g.shape[g.along+1:])
	line := g.shape[rank-1]
	lineOfScales := line
	if g.along == rank-1 {
		lineOfScales = g.blocks
	}
	return func(c *op.Call) error {
		y, scales, zeros := tensor.Of[float32](c.Out[0]), tensor.Of[float32](c.In[2]), c.Input(3)
		for i := range g.pre * g.ids {
			id := int(tensor.At(c.In[1], i%max(g.ids, 1)))
			if id < 0 {
				id += n
			}
			if id < 0 || id >= n {
				return fmt.Errorf("index %d of %d", id, n)
			}
			first := (i/max(g.ids, 1)*n + id) * g.inner
			out := y[i*g.inner:][:g.inner]
			for j := range out {
				e := first + j
				at := e / post
				s := (at/g.shape[g.along]*g.blocks+at%g.shape[g.along]/g.block)*post + e%post
				zero := g.middle
				if zeros != nil {
					zero = code(zeros, g.zeros, s, lineOfScales)
				}
				out[j] = (code(c.In[0], g.codes, e, line) - zero) * scales[s]
			}
		}
		return nil
	}, nil
}
