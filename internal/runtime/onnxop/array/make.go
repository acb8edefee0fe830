package array

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// constantOf builds the value of a Constant node from whichever attribute holds it. A sparse
// value is either expanded by the reader or a list of values, indices and dimensions.
func constantOf(c *op.Call) (*tensor.Tensor, error) {
	for _, name := range []string{"value", "sparse_value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"} {
		switch v := c.Node.Attrs[name].(type) {
		case *tensor.Tensor:
			return v, nil
		case []*tensor.Tensor:
			return dense(v)
		case float32:
			return tensor.From(tensor.Float32, nil, []float32{v}), nil
		case []float32:
			return tensor.From(tensor.Float32, []int{len(v)}, v), nil
		case int64:
			return tensor.From(tensor.Int64, nil, []int64{v}), nil
		case []int64:
			return tensor.From(tensor.Int64, []int{len(v)}, v), nil
		case string:
			return &tensor.Tensor{Type: tensor.String, Data: []byte{}, Strings: []string{v}}, nil
		case []byte:
			return &tensor.Tensor{Type: tensor.String, Data: []byte{}, Strings: []string{string(v)}}, nil
		case []string:
			return &tensor.Tensor{Type: tensor.String, Shape: []int{len(v)}, Data: []byte{}, Strings: v}, nil
		}
	}
	return nil, errors.New("no value is given")
}

// dense expands a sparse tensor given as values, indices and dimensions. Indices are linear ([n])
// or coordinates ([n, rank]).
func dense(parts []*tensor.Tensor) (*tensor.Tensor, error) {
	if len(parts) != 3 || layout.Packed(parts[0]) {
		return nil, op.Unsupported("sparse value in this form")
	}
	dims, err := op.Ints(parts[2])
	if err != nil {
		return nil, err
	}
	n, err := tensor.CheckShape(parts[0].Type, dims)
	if err != nil {
		return nil, err
	}
	at, err := op.Ints(parts[1])
	if err != nil {
		return nil, err
	}
	nnz, st := parts[0].Len(), tensor.Strides(dims)
	if parts[1].Rank() == 2 {
		if len(at) != nnz*len(dims) {
			return nil, errors.New("sparse indices do not match the values")
		}
		linear := make([]int, nnz)
		for i := range linear {
			for k, s := range st {
				v := at[i*len(dims)+k]
				if v < 0 || v >= dims[k] {
					return nil, fmt.Errorf("sparse index %d is outside dimension %d", v, dims[k])
				}
				linear[i] += v * s
			}
		}
		at = linear
	}
	if len(at) != nnz {
		return nil, errors.New("sparse indices do not match the values")
	}
	for _, a := range at {
		if a < 0 || a >= n {
			return nil, fmt.Errorf("sparse index %d is outside %d elements", a, n)
		}
	}
	y := tensor.New(parts[0].Type, dims...)
	move.Put(layout.Of(y), layout.Of(parts[0]), at, 1)
	return y, nil
}

func inferConstant(c *op.Call) error {
	v, err := constantOf(c)
	if err != nil {
		return err
	}
	return c.Result(v.Type, slices.Clone(v.Shape))
}

func runConstant(c *op.Call) error {
	v, err := constantOf(c)
	if err != nil {
		return err
	}
	layout.Copy(c.Pool, c.Out[0], v)
	return nil
}

func inferConstantOfShape(c *op.Call) error {
	t := tensor.Float32
	if v := c.Node.Attrs.Tensor("value"); v != nil {
		if v.Len() != 1 || !v.Known() {
			return fmt.Errorf("value has %d elements", v.Len())
		}
		t = v.Type
	}
	shape, err := op.Ints(c.In[0])
	if err != nil {
		return err
	}
	if _, err := tensor.CheckShape(t, shape); err != nil {
		return err
	}
	return c.Result(t, shape)
}

// everywhere returns the value of all elements of ConstantOfShape.
func everywhere(c *op.Call) *tensor.Tensor {
	if v := c.Node.Attrs.Tensor("value"); v != nil {
		return v
	}
	return tensor.New(tensor.Float32)
}

func prepareConstantOfShape(c *op.Call) (op.Run, error) {
	v := layout.Unpack(everywhere(c))
	return func(c *op.Call) error {
		move.Fill(c.Pool, layout.Of(c.Out[0]), layout.Of(v))
		return nil
	}, nil
}

func inferEyeLike(c *op.Call) error {
	if c.In[0].Rank() != 2 {
		return fmt.Errorf("input has rank %d, not 2", c.In[0].Rank())
	}
	t := c.In[0].Type
	if c.Node.Attrs.Has("dtype") {
		var err error
		if t, err = elem.FromCode(c.Node.Attrs.Int("dtype", 0)); err != nil {
			return err
		}
	}
	if !t.IsNumber() {
		return op.Unsupported("EyeLike of %v", t)
	}
	return c.Result(t, slices.Clone(c.In[0].Shape))
}

func runEyeLike(c *op.Call) error {
	y := c.Out[0]
	cols, k := y.Shape[1], c.Node.Attrs.Int("k", 0)
	tensor.Fill(y, func(i int) float64 {
		if i%cols-i/cols == k {
			return 1
		}
		return 0
	})
	return nil
}

// rangeOf reads the scalars of Range as float64 and as integers.
func rangeOf(c *op.Call) (f [3]float64, n [3]int64, err error) {
	for i := range f {
		x := c.In[i]
		if x.Len() != 1 {
			return f, n, fmt.Errorf("input %d has %d elements, not 1", i, x.Len())
		}
		if !x.Known() {
			return f, n, op.ErrDynamic
		}
		v, err := tensor.All[float64](x)
		if err != nil {
			return f, n, err
		}
		f[i] = v[0]
		if x.Type == tensor.Int64 {
			n[i] = tensor.Single[int64](x)
		} else if x.Type.IsInteger() {
			n[i] = int64(v[0])
		}
	}
	return f, n, nil
}

func inferRange(c *op.Call) error {
	t := c.In[0].Type
	if !t.IsNumber() || c.In[1].Type != t || c.In[2].Type != t {
		return op.Unsupported("Range of %v, %v, %v", t, c.In[1].Type, c.In[2].Type)
	}
	f, n, err := rangeOf(c)
	if err != nil {
		return err
	}
	var count int
	if t.IsInteger() {
		if n[2] == 0 {
			return errors.New("delta is zero")
		}
		// Floor division of the distance, rounded away from the start.
		if span := n[1] - n[0]; (span > 0) == (n[2] > 0) && span != 0 {
			count = int(span / n[2])
			if span%n[2] != 0 {
				count++
			}
		}
	} else {
		k := math.Ceil((f[1] - f[0]) / f[2])
		if f[2] == 0 || math.IsNaN(k) || k > tensor.MaxBytes {
			return fmt.Errorf("range from %g to %g by %g has no end", f[0], f[1], f[2])
		}
		count = int(max(k, 0))
	}
	if _, err := tensor.CheckShape(t, []int{count}); err != nil {
		return err
	}
	return c.Result(t, []int{count})
}

func runRange(c *op.Call) error {
	f, n, err := rangeOf(c)
	if err != nil {
		return err
	}
	y := c.Out[0]
	switch y.Type {
	case tensor.Int64:
		for i, v := 0, tensor.Of[int64](y); i < len(v); i++ {
			v[i] = n[0] + int64(i)*n[2]
		}
	case tensor.Float32:
		start, delta := float32(f[0]), float32(f[2])
		for i, v := 0, tensor.Of[float32](y); i < len(v); i++ {
			v[i] = start + float32(i)*delta
		}
	default:
		tensor.Fill(y, func(i int) float64 { return f[0] + float64(i)*f[2] })
	}
	return nil
}
