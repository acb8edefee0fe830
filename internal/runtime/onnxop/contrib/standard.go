package contrib

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/array"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/resize"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// standardDefs lists operators of the com.microsoft domain that the standard has taken over later,
// and small ones without a relative.
func standardDefs() []op.Def {
	arrays, images := array.Defs(), resize.Defs()
	return []op.Def{
		standard(arrays, "Trilu", 14),
		standard(arrays, "Pad", 13),
		withStep(standard(arrays, "Range", 11)),
		standard(images, "GridSample", 16),
		{Name: "ExpandDims", Infer: op.Needs(2, inferExpandDims), Prepare: op.Simple(func(c *op.Call) error { return copyElements(c.Out[0], c.In[0]) })},
		{Name: "Unique", Types: []tensor.Type{tensor.Float32}, Infer: op.Needs(1, inferFirstUnique), Prepare: op.Simple(runFirstUnique)},
		elem.RealDef("NGramRepeatBlock", op.Needs(2, inferRepeats), prepareRepeats, nil),
		elem.RealDef("Inverse", op.Needs(1, inferInverse), prepareInverse[float32], prepareInverse[float64]),
	}
}

// within returns an operator whose functions run within another one, which may change the call for
// them and restores it.
func within(d op.Def, change func(c *op.Call, do func() error) error) op.Def {
	infer, prepare := d.Infer, d.Prepare
	d.Infer = func(c *op.Call) error { return change(c, func() error { return infer(c) }) }
	d.Prepare = func(c *op.Call) (run op.Run, err error) {
		err = change(c, func() error { run, err = prepare(c); return err })
		if err != nil {
			return nil, err
		}
		inner := run
		return func(c *op.Call) error { return change(c, func() error { return inner(c) }) }, nil
	}
	return d
}

// standard returns an operator that is defined like the standard's at a version.
func standard(defs []op.Def, name string, version int) op.Def {
	var d op.Def
	for _, x := range defs {
		if x.Domain == graph.ONNX && x.Name == name && x.Since <= version && (d.Name == "" || x.Since > d.Since) {
			d = x
		}
	}
	as := func(c *op.Call, do func() error) error {
		own, n := c.Node, *c.Node
		n.Domain, n.Version = graph.ONNX, version
		c.Node = &n
		defer func() { c.Node = own }()
		return do()
	}
	d.Since, d.Until, d.NHWC = 1, 0, nil
	return within(d, as)
}

// withStep adds the step of 1 that a Range of this domain may leave out.
func withStep(d op.Def) op.Def {
	with := func(c *op.Call, do func() error) error {
		if c.Has(2) || len(c.In) < 2 || c.In[0] == nil {
			return do()
		}
		one := tensor.New(c.In[0].Type)
		tensor.Fill(one, func(int) float64 { return 1 })
		own := c.In
		c.In = []*tensor.Tensor{own[0], own[1], one}
		defer func() { c.In = own }()
		return do()
	}
	return within(d, with)
}

// copyElements copies the elements of a tensor of the same type and length.
func copyElements(y, x *tensor.Tensor) error {
	copy(y.Data, x.Data)
	copy(y.Strings, x.Strings)
	return nil
}

// ExpandDims: x and a scalar axis, where the result has a dimension of 1.
func inferExpandDims(c *op.Call) error {
	axes, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	if len(axes) != 1 {
		return fmt.Errorf("axis has %d elements, expected 1", len(axes))
	}
	at, err := op.Axis(axes[0], c.In[0].Rank()+1)
	if err != nil {
		return err
	}
	return c.Result(c.In[0].Type, slices.Insert(slices.Clone(c.In[0].Shape), at, 1))
}

// Unique: the values of a list in the order in which they first occur, the place of each element
// among them, and how often each occurs.
func inferFirstUnique(c *op.Call) error {
	if c.In[0].Type != tensor.Float32 {
		return op.Unsupported("%v", c.In[0].Type)
	}
	if c.In[0].Rank() != 1 {
		return fmt.Errorf("input %s, expected one dimension", tensor.FormatShape(c.In[0].Shape))
	}
	return op.ErrDynamic
}

func runFirstUnique(c *op.Call) error {
	x := tensor.Of[float32](c.In[0])
	var values []float32
	var counts []int64
	at, known := make([]int64, len(x)), map[float32]int64{}
	for i, v := range x {
		k, ok := known[v]
		if !ok {
			k = int64(len(values))
			known[v] = k
			values, counts = append(values, v), append(counts, 0)
		}
		at[i] = k
		counts[k]++
	}
	y, err := c.Make(0, tensor.Float32, []int{len(values)})
	if err != nil {
		return err
	}
	copy(tensor.Of[float32](y), values)
	for i, v := range [][]int64{at, counts} {
		if !c.Wants(1 + i) {
			continue
		}
		y, err := c.Make(1+i, tensor.Int64, []int{len(v)})
		if err != nil {
			return err
		}
		copy(tensor.Of[int64](y), v)
	}
	return nil
}

// NGramRepeatBlock: tokens [batch, length] and scores [batch, vocabulary]. Scores of tokens that
// would repeat a sequence of ngram_size tokens become -Inf.
func inferRepeats(c *op.Call) error {
	ids, scores := c.In[0].Shape, c.In[1].Shape
	if len(ids) != 2 || len(scores) != 2 || ids[0] != scores[0] || c.In[0].Type != tensor.Int64 || c.In[1].Type != tensor.Float32 {
		return fmt.Errorf("tokens %s of %v and scores %s of %v", tensor.FormatShape(ids), c.In[0].Type, tensor.FormatShape(scores), c.In[1].Type)
	}
	if n := c.Node.Attrs.Int("ngram_size", 0); n < 1 {
		return fmt.Errorf("ngram_size %d", n)
	}
	return c.Result(tensor.Float32, scores)
}

func prepareRepeats(c *op.Call) (op.Run, error) {
	size, length, words := c.Node.Attrs.Int("ngram_size", 0), c.In[0].Shape[1], c.In[1].Shape[1]
	return func(c *op.Call) error {
		y := tensor.Of[float32](c.Out[0])
		copy(y, tensor.Of[float32](c.In[1]))
		for b := range c.In[0].Shape[0] {
			ids := tensor.Of[int64](c.In[0])[b*length:][:length]
			for i := 0; i+size <= length; i++ {
				if !slices.Equal(ids[i:i+size-1], ids[length-size+1:]) {
					continue
				}
				next := ids[i+size-1]
				if next < 0 || next >= int64(words) {
					return fmt.Errorf("token %d of %d", next, words)
				}
				y[b*words+int(next)] = float32(math.Inf(-1))
			}
		}
		return nil
	}, nil
}

// Inverse: matrices [..., n, n].
func inferInverse(c *op.Call) error {
	s := c.In[0].Shape
	if len(s) < 2 || s[len(s)-1] != s[len(s)-2] {
		return fmt.Errorf("input %s, expected square matrices", tensor.FormatShape(s))
	}
	return c.Result(c.In[0].Type, s)
}

func prepareInverse[T tensor.Real](c *op.Call) (op.Run, error) {
	n := c.In[0].Shape[c.In[0].Rank()-1]
	work := op.ScratchOf[float64](c, 2*n*n)
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for ; len(x) > 0; x, y = x[n*n:], y[n*n:] {
			a, inv := work[:n*n], work[n*n:]
			clear(inv)
			for i := range a {
				a[i] = float64(x[i])
			}
			for i := range n {
				inv[i*n+i] = 1
			}
			invert(a, inv, n)
			for i, v := range inv {
				y[i] = T(v)
			}
		}
		return nil
	}, nil
}

// invert turns inv, the identity, into the inverse of a by Gauss-Jordan elimination with row
// pivoting. A singular matrix gives infinities or NaN.
func invert(a, inv []float64, n int) {
	for k := range n {
		p := k
		for i := k + 1; i < n; i++ {
			if math.Abs(a[i*n+k]) > math.Abs(a[p*n+k]) {
				p = i
			}
		}
		for j := range n {
			a[k*n+j], a[p*n+j] = a[p*n+j], a[k*n+j]
			inv[k*n+j], inv[p*n+j] = inv[p*n+j], inv[k*n+j]
		}
		by := a[k*n+k]
		for j := range n {
			a[k*n+j] /= by
			inv[k*n+j] /= by
		}
		for i := range n {
			f := a[i*n+k]
			if i == k || f == 0 {
				continue
			}
			for j := range n {
				a[i*n+j] -= f * a[k*n+j]
				inv[i*n+j] -= f * inv[k*n+j]
			}
		}
	}
}
