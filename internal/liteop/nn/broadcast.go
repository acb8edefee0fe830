package nn

import (
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// broadcast walks two inputs and an output of the NumPy-broadcast shape. Axes
// that can be walked as one are joined.
type broadcast struct {
	dims   []int
	sa, sb []int // strides, 0 along repeated axes
	inner  int   // elements of the innermost axis
	rows   int
}

func newBroadcast(a, b []int) (*broadcast, error) {
	shape, err := tensor.Broadcast(a, b)
	if err != nil {
		return nil, err
	}
	strides := func(s []int) []int {
		full := make([]int, len(shape))
		n := 1
		for i := len(s) - 1; i >= 0; i-- {
			if s[i] != 1 {
				full[len(shape)-len(s)+i] = n
			}
			n *= s[i]
		}
		return full
	}
	sa, sb := strides(a), strides(b)
	w := &broadcast{inner: 1, rows: 1}
	for i, d := range shape {
		if d == 1 {
			continue
		}
		if k := len(w.dims) - 1; k >= 0 && w.sa[k] == sa[i]*d && w.sb[k] == sb[i]*d {
			w.dims[k] *= d
			w.sa[k], w.sb[k] = sa[i], sb[i]
			continue
		}
		w.dims, w.sa, w.sb = append(w.dims, d), append(w.sa, sa[i]), append(w.sb, sb[i])
	}
	if k := len(w.dims) - 1; k >= 0 {
		w.inner = w.dims[k]
		w.rows = tensor.Elements(w.dims[:k])
	}
	return w, nil
}

// steps are the strides along the innermost axis, 0 or 1.
func (w *broadcast) steps() (a, b int) {
	if k := len(w.dims) - 1; k >= 0 {
		return min(w.sa[k], 1), min(w.sb[k], 1)
	}
	return 1, 1
}

// at returns the offsets of row r in both inputs.
func (w *broadcast) at(r int) (a, b int) {
	for k := len(w.dims) - 2; k >= 0; k-- {
		i := r % w.dims[k]
		r /= w.dims[k]
		a += i * w.sa[k]
		b += i * w.sb[k]
	}
	return a, b
}

// cut is the length that long rows are cut to, so that they can be shared out.
const cut = 1 << 13

// each calls f for pieces of rows: offsets into both inputs and the output, and
// the number of elements.
func (w *broadcast) each(p *workers.Pool, f func(a, b, out, n int)) {
	if w.inner == 0 || w.rows == 0 {
		return
	}
	pieces := (w.inner + cut - 1) / cut
	ta, tb := w.steps()
	p.For(w.rows*pieces, max(1, cut/w.inner), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			r, from := i/pieces, i%pieces*cut
			a, b := w.at(r)
			f(a+from*ta, b+from*tb, r*w.inner+from, min(cut, w.inner-from))
		}
	})
}

// spread applies f to two inputs of one type.
func spread[T, O tensor.Number](c *op.Call, w *broadcast, f func(x, y T) O) {
	x, y, out := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[O](c.Out[0])
	ta, tb := w.steps()
	w.each(c.Pool, func(a, b, o, n int) {
		dst := out[o : o+n]
		for i := range dst {
			dst[i] = f(x[a], y[b])
			a += ta
			b += tb
		}
	})
}

func inferBroadcast(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if c.In[0].Type != c.In[1].Type {
		return op.Unsupported("inputs of types %v and %v", c.In[0].Type, c.In[1].Type)
	}
	s, err := tensor.Broadcast(c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return err
	}
	// A declared output type that contradicts the inputs does not count.
	c.SetOut(0, c.In[0].Type, s)
	return nil
}
