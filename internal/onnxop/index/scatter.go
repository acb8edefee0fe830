package index

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func scatterDefs() []op.Def {
	el := op.Def{Infer: inferScatterElements, Prepare: prepareScatterElements, InPlace: true}
	old := el
	old.Name, el.Name = "Scatter", "ScatterElements"
	return slices.Concat(
		op.Versions(old, 9, 11),
		op.Versions(el, 11, 13, 16, 18),
		op.Versions(op.Def{Name: "ScatterND", Infer: inferScatterND, Prepare: prepareScatterND, InPlace: true}, 11, 13, 16, 18),
	)
}

// checkUpdates checks what all scatters share and sets the output.
func checkUpdates(c *op.Call, want []int) error {
	x, u := c.In[0], c.In[2]
	if u.Type != x.Type {
		return fmt.Errorf("updates are %v and data is %v", u.Type, x.Type)
	}
	if !slices.Equal(u.Shape, want) {
		return fmt.Errorf("updates are %s, not %s", tensor.FormatShape(u.Shape), tensor.FormatShape(want))
	}
	if _, err := updater(x.Type, c.Node.Attrs.Str("reduction", "none")); err != nil {
		return err
	}
	c.SetOut(0, x.Type, slices.Clone(x.Shape))
	return nil
}

func inferScatterElements(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	if err := sameRank(c); err != nil {
		return err
	}
	return checkUpdates(c, c.In[1].Shape)
}

// scatter runs offsets through the update of the node's reduction. Updates are
// applied in order, so that the last of several for one place wins.
func scatter(c *op.Call, block int, offsets func(c *op.Call) ([]int, error)) (op.Run, error) {
	f, err := updater(c.In[0].Type, c.Node.Attrs.Str("reduction", "none"))
	if err != nil {
		return nil, err
	}
	return move.Unpacked(func(c *op.Call) error {
		at, err := offsets(c)
		if err != nil {
			return err
		}
		u := c.In[2]
		if move.Aliased(c.Out[0], u) {
			u = u.Clone() // data scattered into itself, in place
		}
		move.All(c.Pool, c.Out[0], c.In[0])
		f(c.Out[0], u, at, block)
		return nil
	}), nil
}

func prepareScatterElements(c *op.Call) (op.Run, error) {
	e, err := elementsOf(c)
	if err != nil {
		return nil, err
	}
	return scatter(c, 1, func(c *op.Call) ([]int, error) { return e.offsets(c.Pool, c.In[1]) })
}

func inferScatterND(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	if err := indexType(c.In[1]); err != nil {
		return err
	}
	g, err := tuplesOf(c.In[0], c.In[1], 0)
	if err != nil {
		return err
	}
	idx := c.In[1].Shape
	return checkUpdates(c, slices.Concat(idx[:len(idx)-1], c.In[0].Shape[g.k:]))
}

func prepareScatterND(c *op.Call) (op.Run, error) {
	g, err := tuplesOf(c.In[0], c.In[1], 0)
	if err != nil {
		return nil, err
	}
	return scatter(c, g.block, func(c *op.Call) ([]int, error) { return g.offsets(c.In[1]) })
}

// update applies blocks of updates to y at the given block numbers.
type update func(y, u *tensor.Tensor, at []int, block int)

// updater finds the update for an element type and a reduction.
func updater(t tensor.Type, reduction string) (update, error) {
	switch reduction {
	case "none", "":
		return replace(t), nil
	case "add", "mul", "max", "min":
	default:
		return nil, fmt.Errorf("reduction is %q", reduction)
	}
	switch t {
	case tensor.Float32:
		return reduce(number[float32](reduction)), nil
	case tensor.Float64:
		return reduce(number[float64](reduction)), nil
	case tensor.Int8:
		return reduce(number[int8](reduction)), nil
	case tensor.Int16:
		return reduce(number[int16](reduction)), nil
	case tensor.Int32:
		return reduce(number[int32](reduction)), nil
	case tensor.Int64:
		return reduce(number[int64](reduction)), nil
	case tensor.Uint8:
		return reduce(number[uint8](reduction)), nil
	case tensor.Uint16:
		return reduce(number[uint16](reduction)), nil
	case tensor.Uint32:
		return reduce(number[uint32](reduction)), nil
	case tensor.Uint64:
		return reduce(number[uint64](reduction)), nil
	case tensor.Float16:
		return reduce(half(reduction, tensor.F16ToF32, tensor.F32ToF16)), nil
	case tensor.BFloat16:
		return reduce(half(reduction, tensor.BF16ToF32, tensor.F32ToBF16)), nil
	case tensor.Bool:
		// Sums and products of truth values are "or" and "and".
		if reduction == "add" || reduction == "max" {
			return reduce(func(a, b uint8) uint8 { return a | b }), nil
		}
		return reduce(func(a, b uint8) uint8 { return a & b }), nil
	}
	return nil, op.Unsupported("reduction %s of %v", reduction, t)
}

func replace(t tensor.Type) update {
	if t == tensor.String {
		return func(y, u *tensor.Tensor, at []int, block int) { put(y.Strings, u.Strings, at, block) }
	}
	return func(y, u *tensor.Tensor, at []int, block int) {
		switch w := y.Type.Bits() / 8; {
		case block == 1 && w == 4:
			put(tensor.Of[uint32](y), tensor.Of[uint32](u), at, block)
		case block == 1 && w == 8:
			put(tensor.Of[uint64](y), tensor.Of[uint64](u), at, block)
		default:
			put(y.Data, u.Data, at, block*w)
		}
	}
}

func put[T any](y, u []T, at []int, block int) {
	if block == 1 {
		for i, a := range at {
			y[a] = u[i]
		}
		return
	}
	for i, a := range at {
		copy(y[a*block:(a+1)*block], u[i*block:])
	}
}

func reduce[T tensor.Number](f func(a, b T) T) update {
	return func(y, u *tensor.Tensor, at []int, block int) {
		d, s := tensor.Of[T](y), tensor.Of[T](u)
		for i, a := range at {
			dst := d[a*block : (a+1)*block]
			for j, v := range s[i*block : (i+1)*block] {
				dst[j] = f(dst[j], v)
			}
		}
	}
}

func number[T tensor.Number](reduction string) func(a, b T) T {
	switch reduction {
	case "add":
		return func(a, b T) T { return a + b }
	case "mul":
		return func(a, b T) T { return a * b }
	case "max":
		return func(a, b T) T { return max(a, b) }
	}
	return func(a, b T) T { return min(a, b) }
}

func half(reduction string, wide func(uint16) float32, narrow func(float32) uint16) func(a, b uint16) uint16 {
	f := number[float32](reduction)
	return func(a, b uint16) uint16 { return narrow(f(wide(a), wide(b))) }
}
