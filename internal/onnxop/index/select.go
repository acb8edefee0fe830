package index

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func selectDefs() []op.Def {
	return slices.Concat(
		op.Versions(op.Def{Name: "OneHot", Infer: inferOneHot, Prepare: prepareOneHot}, 9, 11, 28),
		op.Versions(op.Def{Name: "NonZero", Infer: inferNonZero, Prepare: prepareNonZero}, 9, 13),
		op.Versions(op.Def{Name: "Compress", Infer: inferCompress, Prepare: prepareCompress}, 9, 11, 28),
	)
}

func inferOneHot(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	if c.In[2].Len() != 2 {
		return fmt.Errorf("values have %d elements, not 2", c.In[2].Len())
	}
	if c.In[1].Len() != 1 {
		return fmt.Errorf("depth has %d elements, not 1", c.In[1].Len())
	}
	if !c.In[0].Type.IsNumber() {
		return op.Unsupported("indices of type %v", c.In[0].Type)
	}
	a, err := op.Axis(c.Node.Attrs.Int("axis", -1), c.In[0].Rank()+1)
	if err != nil {
		return err
	}
	if !c.In[1].Known() {
		return op.ErrDynamic
	}
	d, err := tensor.All[float64](c.In[1])
	if err != nil {
		return err
	}
	if !(d[0] >= 0 && d[0] <= tensor.MaxBytes) {
		return fmt.Errorf("depth is %g", d[0])
	}
	c.SetOut(0, c.In[2].Type, slices.Insert(slices.Clone(c.In[0].Shape), a, int(d[0])))
	return nil
}

func prepareOneHot(c *op.Call) (op.Run, error) {
	a, err := op.Axis(c.Node.Attrs.Int("axis", -1), c.In[0].Rank()+1)
	if err != nil {
		return nil, err
	}
	version := c.Node.Version
	return move.Unpacked(func(c *op.Call) error {
		depth := c.Out[0].Shape[a]
		inner := tensor.Elements(c.Out[0].Shape[a+1:])
		at, err := hot(c.In[0], depth, inner, version)
		if err != nil {
			return err
		}
		y, v := c.Out[0], c.In[2]
		switch y.Type.Bits() {
		case 0:
			oneHot(y.Strings, v.Strings, at)
		case 8:
			oneHot(tensor.Of[uint8](y), tensor.Of[uint8](v), at)
		case 16:
			oneHot(tensor.Of[uint16](y), tensor.Of[uint16](v), at)
		case 32:
			oneHot(tensor.Of[uint32](y), tensor.Of[uint32](v), at)
		case 64:
			oneHot(tensor.Of[uint64](y), tensor.Of[uint64](v), at)
		default:
			oneHot(tensor.Of[complex128](y), tensor.Of[complex128](v), at)
		}
		return nil
	}), nil
}

// hot returns the output offsets that get the "on" value. Indices outside the
// depth have none; before version 11 neither have negative ones.
func hot(x *tensor.Tensor, depth, inner, version int) ([]int, error) {
	v, err := tensor.All[float64](x)
	if err != nil {
		return nil, err
	}
	at := make([]int, 0, len(v))
	for i, f := range v {
		if !(f > -1-float64(depth) && f < float64(depth)) {
			continue
		}
		k := int(f)
		if k < 0 && version >= 11 {
			k += depth
		}
		if k >= 0 {
			at = append(at, (i/inner*depth+k)*inner+i%inner)
		}
	}
	return at, nil
}

func oneHot[T any](y, values []T, at []int) {
	if len(y) == 0 {
		return
	}
	move.Fill(y, values[0])
	for _, a := range at {
		y[a] = values[1]
	}
}

// truths calls f with the offset of every element that is not zero.
func truths(x *tensor.Tensor, f func(i int)) error {
	switch x.Type {
	case tensor.Bool, tensor.Uint8, tensor.Int8:
		nonZero(tensor.Of[uint8](x), f)
	case tensor.Float16, tensor.BFloat16:
		for i, b := range tensor.Of[uint16](x) {
			if b&0x7fff != 0 {
				f(i)
			}
		}
	case tensor.Int16, tensor.Uint16:
		nonZero(tensor.Of[uint16](x), f)
	case tensor.Int32, tensor.Uint32:
		nonZero(tensor.Of[uint32](x), f)
	case tensor.Int64, tensor.Uint64:
		nonZero(tensor.Of[uint64](x), f)
	case tensor.Float32:
		nonZero(tensor.Of[float32](x), f)
	case tensor.Float64:
		nonZero(tensor.Of[float64](x), f)
	case tensor.Complex64:
		nonZero(tensor.Of[complex64](x), f)
	case tensor.Complex128:
		nonZero(tensor.Of[complex128](x), f)
	case tensor.String:
		nonZero(x.Strings, f)
	default:
		return op.Unsupported("truth of %v", x.Type)
	}
	return nil
}

func nonZero[T comparable](v []T, f func(i int)) {
	var zero T
	for i, x := range v {
		if x != zero {
			f(i)
		}
	}
}

func inferNonZero(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	if !c.In[0].Known() {
		return op.ErrDynamic
	}
	n := 0
	if err := truths(c.In[0], func(int) { n++ }); err != nil {
		return err
	}
	// A scalar has no coordinates, but its count still shows.
	c.SetOut(0, tensor.Int64, []int{c.In[0].Rank(), n})
	return nil
}

func prepareNonZero(*op.Call) (op.Run, error) {
	return func(c *op.Call) error {
		out := tensor.Of[int64](c.Out[0])
		n, k := c.Out[0].Shape[1], 0
		dims := c.In[0].Shape
		return truths(c.In[0], func(i int) {
			for d := len(dims) - 1; d >= 0; d-- {
				out[d*n+k] = int64(i % dims[d])
				i /= dims[d]
			}
			k++
		})
	}, nil
}

// chosen lists the true positions of Compress's condition below n.
func chosen(c *op.Call, buf []int, n int) ([]int, error) {
	buf = buf[:0]
	err := truths(c.In[1], func(i int) {
		if i < n {
			buf = append(buf, i)
		}
	})
	return buf, err
}

func inferCompress(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if c.In[1].Rank() != 1 {
		return errors.New("condition is not a list")
	}
	out, a, n := []int{0}, 0, c.In[0].Len()
	if c.Node.Attrs.Has("axis") {
		var err error
		if a, err = axisOf(c, 0); err != nil {
			return err
		}
		out = slices.Clone(c.In[0].Shape)
		n = out[a]
	}
	if c.In[1].Len() > n {
		return fmt.Errorf("condition has %d elements for %d", c.In[1].Len(), n)
	}
	if !c.In[1].Known() {
		return op.ErrDynamic
	}
	at, err := chosen(c, nil, n)
	if err != nil {
		return err
	}
	out[a] = len(at)
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

func prepareCompress(c *op.Call) (op.Run, error) {
	n, inner, outer := c.In[0].Len(), 1, 1
	if c.Node.Attrs.Has("axis") {
		a, err := axisOf(c, 0)
		if err != nil {
			return nil, err
		}
		s := c.In[0].Shape
		n, inner, outer = s[a], tensor.Elements(s[a+1:]), tensor.Elements(s[:a])
	}
	var at []int
	return move.Unpacked(func(c *op.Call) (err error) {
		if at, err = chosen(c, at, n); err != nil {
			return err
		}
		b := move.Blocks{Rows: outer, SrcRow: n * inner, At: at, Len: inner}
		b.Gather(c.Pool, c.Out[0], c.In[0])
		return nil
	}), nil
}
