package index

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func topKDefs() []op.Def {
	return op.Versions(op.Def{Name: "TopK", Infer: inferTopK, Prepare: prepareTopK}, 1, 10, 11, 24)
}

func inferTopK(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	x := c.In[0]
	if !ordered(x.Type) {
		return op.Unsupported("TopK of %v", x.Type)
	}
	if x.Rank() == 0 {
		return fmt.Errorf("input has rank 0")
	}
	a, err := axisOf(c, -1)
	if err != nil {
		return err
	}
	k := c.Node.Attrs.Int("k", -1)
	if c.Node.Version >= 10 {
		if err := c.NeedInputs(2); err != nil {
			return err
		}
		v, err := op.Ints(c.In[1])
		if err != nil {
			return err
		}
		if len(v) != 1 {
			return fmt.Errorf("k has %d elements, not 1", len(v))
		}
		k = v[0]
	}
	if k < 0 || k > x.Shape[a] {
		return fmt.Errorf("k is %d of %d elements", k, x.Shape[a])
	}
	out := slices.Clone(x.Shape)
	out[a] = k
	c.SetOut(0, x.Type, out)
	c.SetOut(1, tensor.Int64, slices.Clone(out))
	return nil
}

// entry is an element with its place along the axis.
type entry[T sortable] struct {
	v T
	i int
}

func prepareTopK(c *op.Call) (op.Run, error) {
	a, err := axisOf(c, -1)
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape
	t := topK{n: s[a], inner: tensor.Elements(s[a+1:]), outer: tensor.Elements(s[:a]), largest: c.Node.Attrs.Bool("largest", true)}
	return func(c *op.Call) error {
		if c.Out[0] == nil && c.Out[1] == nil {
			return nil
		}
		t := t
		t.c = c
		w := sorter{
			topKOf[float32](&t), topKOf[float64](&t), topKOf[int8](&t), topKOf[int16](&t), topKOf[int32](&t), topKOf[int64](&t),
			topKOf[uint8](&t), topKOf[uint16](&t), topKOf[uint32](&t), topKOf[uint64](&t), topKOf[string](&t),
		}
		return w.apply(c.In[0])
	}, nil
}

type topK struct {
	c               *op.Call
	n, inner, outer int
	largest         bool
}

func topKOf[T sortable](t *topK) func(*tensor.Tensor, []T) error {
	return func(_ *tensor.Tensor, v []T) error {
		out := t.c.Out[0]
		if out == nil {
			out = t.c.Out[1]
		}
		lanes := t.outer * t.inner
		if out.Len() == 0 {
			return nil
		}
		k := out.Len() / lanes
		at := make([]int, out.Len()) // source offsets, in output order
		sign := 1
		if t.largest {
			sign = -1
		}
		before := func(a, b entry[T]) int {
			if c := order(a.v, b.v); c != 0 {
				return sign * c
			}
			return cmp.Compare(a.i, b.i)
		}
		t.c.Pool.For(lanes, max(1, 1<<13/max(t.n, 1)), func(lo, hi int) {
			var buf []entry[T]
			for l := lo; l < hi; l++ {
				o, in := l/t.inner, l%t.inner
				buf = best(buf, v[o*t.n*t.inner+in:], t.n, t.inner, k, before)
				for j, e := range buf[:k] {
					at[(o*k+j)*t.inner+in] = (o*t.n+e.i)*t.inner + in
				}
			}
		})
		if y := t.c.Out[0]; y != nil {
			b := move.Blocks{Rows: 1, At: at, Len: 1}
			b.Gather(t.c.Pool, y, t.c.In[0])
		}
		if len(t.c.Out) > 1 && t.c.Out[1] != nil {
			idx := tensor.Of[int64](t.c.Out[1])
			for i, a := range at {
				idx[i] = int64(a / t.inner % t.n)
			}
		}
		return nil
	}
}

// best returns the first k of n elements in the given order. A heap holds the
// worst of the best on top while the rest is looked through.
func best[T sortable](buf []entry[T], v []T, n, step, k int, before func(a, b entry[T]) int) []entry[T] {
	buf = buf[:0]
	if k > n/4 {
		for i := range n {
			buf = append(buf, entry[T]{v[i*step], i})
		}
		slices.SortFunc(buf, before)
		return buf
	}
	for i := range n {
		e := entry[T]{v[i*step], i}
		if len(buf) < k {
			buf = append(buf, e)
			for j := len(buf) - 1; j > 0 && before(buf[(j-1)/2], buf[j]) < 0; j = (j - 1) / 2 {
				buf[j], buf[(j-1)/2] = buf[(j-1)/2], buf[j]
			}
			continue
		}
		if before(e, buf[0]) >= 0 {
			continue
		}
		buf[0] = e
		for j := 0; ; {
			w := j
			for s := 2*j + 1; s <= 2*j+2 && s < k; s++ {
				if before(buf[w], buf[s]) < 0 {
					w = s
				}
			}
			if w == j {
				break
			}
			buf[w], buf[j] = buf[j], buf[w]
			j = w
		}
	}
	slices.SortFunc(buf, before)
	return buf
}
