package index

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

func gatherDefs() []op.Def {
	return slices.Concat(
		op.Versions(op.Def{Name: "Gather", Infer: inferGather, Prepare: prepareGather}, 1, 11, 13),
		op.Versions(op.Def{Name: "GatherElements", Infer: inferGatherElements, Prepare: prepareGatherElements}, 11, 13),
		op.Versions(op.Def{Name: "GatherND", Infer: inferGatherND, Prepare: prepareGatherND}, 11, 12, 13),
	)
}

// axisOf resolves the axis attribute against input 0.
func axisOf(c *op.Call, def int) (int, error) {
	return op.Axis(c.Node.Attrs.Int("axis", def), c.In[0].Rank())
}

func inferGather(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if err := indexType(c.In[1]); err != nil {
		return err
	}
	a, err := axisOf(c, 0)
	if err != nil {
		return err
	}
	in := c.In[0].Shape
	c.SetOut(0, c.In[0].Type, slices.Concat(in[:a], c.In[1].Shape, in[a+1:]))
	return nil
}

func prepareGather(c *op.Call) (op.Run, error) {
	a, err := axisOf(c, 0)
	if err != nil {
		return nil, err
	}
	in := c.In[0].Shape
	n, inner, outer := in[a], tensor.Elements(in[a+1:]), tensor.Elements(in[:a])
	var at []int
	return move.Unpacked(func(c *op.Call) (err error) {
		if at, err = positions(at, c.In[1], n); err != nil {
			return err
		}
		b := move.Blocks{Rows: outer, SrcRow: n * inner, At: at, Len: inner}
		b.Gather(c.Pool, c.Out[0], c.In[0])
		return nil
	}), nil
}

func inferGatherElements(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if err := sameRank(c); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, slices.Clone(c.In[1].Shape))
	return nil
}

// sameRank checks that indices have the rank of the data and, but for the
// axis, no larger dimensions.
func sameRank(c *op.Call) error {
	if err := indexType(c.In[1]); err != nil {
		return err
	}
	a, err := axisOf(c, 0)
	if err != nil {
		return err
	}
	x, idx := c.In[0].Shape, c.In[1].Shape
	if len(idx) != len(x) {
		return fmt.Errorf("indices have rank %d and data has rank %d", len(idx), len(x))
	}
	for i, d := range idx {
		if i != a && d > x[i] {
			return fmt.Errorf("indices %s do not fit data %s", tensor.FormatShape(idx), tensor.FormatShape(x))
		}
	}
	return nil
}

// elements is the geometry that GatherElements and ScatterElements share: the
// place in data that each index names.
type elements struct {
	axis    int
	dims    []int // of the indices
	strides []int // of the data
	n       int   // length of the axis
	at      []int
}

func elementsOf(c *op.Call) (*elements, error) {
	a, err := axisOf(c, 0)
	if err != nil {
		return nil, err
	}
	return &elements{axis: a, dims: slices.Clone(c.In[1].Shape), strides: tensor.Strides(c.In[0].Shape), n: c.In[0].Shape[a]}, nil
}

// offsets turns the indices into offsets in the data.
func (e *elements) offsets(pool *workers.Pool, idx *tensor.Tensor) (at []int, err error) {
	if e.at, err = positions(e.at, idx, e.n); err != nil {
		return nil, err
	}
	at = e.at
	last := len(e.dims) - 1
	if len(at) == 0 {
		return at, nil
	}
	w, step := e.dims[last], e.strides[e.axis]
	pool.For(len(at)/w, max(1, 1<<14/w), func(lo, hi int) {
		for row := lo; row < hi; row++ {
			base, rest := 0, row
			for i := last - 1; i >= 0; i-- {
				if i != e.axis {
					base += rest % e.dims[i] * e.strides[i]
				}
				rest /= e.dims[i]
			}
			r := at[row*w : (row+1)*w]
			if e.axis == last {
				for j := range r {
					r[j] += base
				}
				continue
			}
			for j := range r {
				r[j] = base + r[j]*step + j
			}
		}
	})
	return at, nil
}

func prepareGatherElements(c *op.Call) (op.Run, error) {
	e, err := elementsOf(c)
	if err != nil {
		return nil, err
	}
	return move.Unpacked(func(c *op.Call) error {
		at, err := e.offsets(c.Pool, c.In[1])
		if err != nil {
			return err
		}
		b := move.Blocks{Rows: 1, At: at, Len: 1}
		b.Gather(c.Pool, c.Out[0], c.In[0])
		return nil
	}), nil
}

// tuples is the geometry that GatherND and ScatterND share: index tuples of
// length k name blocks of the data.
type tuples struct {
	batch, k, block int
	dims            []int // the k indexed dimensions
	at              []int
}

func tuplesOf(data, idx *tensor.Tensor, batch int) (*tuples, error) {
	if idx.Rank() == 0 || batch < 0 || batch >= idx.Rank() || batch > data.Rank() {
		return nil, fmt.Errorf("indices have rank %d with %d batch dimensions", idx.Rank(), batch)
	}
	k := idx.Shape[idx.Rank()-1]
	if k+batch > data.Rank() {
		return nil, fmt.Errorf("indices of length %d do not fit data of rank %d", k, data.Rank())
	}
	if !slices.Equal(data.Shape[:batch], idx.Shape[:batch]) {
		return nil, fmt.Errorf("batch dimensions of %s and %s differ", tensor.FormatShape(data.Shape), tensor.FormatShape(idx.Shape))
	}
	return &tuples{
		batch: tensor.Elements(data.Shape[:batch]), k: k, dims: slices.Clone(data.Shape[batch : batch+k]),
		block: tensor.Elements(data.Shape[batch+k:]),
	}, nil
}

// offsets returns for each tuple the offset of its block in units of blocks.
func (g *tuples) offsets(idx *tensor.Tensor) ([]int, error) {
	g.at = g.at[:0]
	n := tensor.Elements(idx.Shape[:idx.Rank()-1])
	var v []int64
	if idx.Type == tensor.Int64 {
		v = tensor.Of[int64](idx)
	} else {
		w, err := op.Ints(idx)
		if err != nil {
			return nil, err
		}
		for _, i := range w {
			v = append(v, int64(i))
		}
	}
	per := tensor.Elements(g.dims)
	for t := range n {
		o := 0
		for i, d := range g.dims {
			k := int(v[t*g.k+i])
			if k < 0 {
				k += d
			}
			if k < 0 || k >= d {
				return nil, fmt.Errorf("index %d is outside %d elements", v[t*g.k+i], d)
			}
			o = o*d + k
		}
		g.at = append(g.at, t/(n/g.batch)*per+o)
	}
	return g.at, nil
}

func inferGatherND(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if err := indexType(c.In[1]); err != nil {
		return err
	}
	b := c.Node.Attrs.Int("batch_dims", 0)
	g, err := tuplesOf(c.In[0], c.In[1], b)
	if err != nil {
		return err
	}
	idx := c.In[1].Shape
	c.SetOut(0, c.In[0].Type, slices.Concat(idx[:len(idx)-1], c.In[0].Shape[b+g.k:]))
	return nil
}

func prepareGatherND(c *op.Call) (op.Run, error) {
	g, err := tuplesOf(c.In[0], c.In[1], c.Node.Attrs.Int("batch_dims", 0))
	if err != nil {
		return nil, err
	}
	return move.Unpacked(func(c *op.Call) error {
		at, err := g.offsets(c.In[1])
		if err != nil {
			return err
		}
		b := move.Blocks{Rows: 1, At: at, Len: g.block}
		b.Gather(c.Pool, c.Out[0], c.In[0])
		return nil
	}), nil
}
