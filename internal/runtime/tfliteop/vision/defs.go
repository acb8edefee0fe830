package vision

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/flexbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := slices.Concat(suppressDefs(), detectDefs(), poseDefs(), landmarkDefs(), unpoolDefs())
	for i := range defs {
		defs[i].Types = []tensor.Type{tensor.Float32}
		if n := defs[i].Name; n == "TFLite_Detection_PostProcess" || n == "PosenetDecoderOp" {
			defs[i].Types = []tensor.Type{tensor.Float32, tensor.Uint8, tensor.Int8}
		}
	}
	return defs
}

func custom(name string, infer func(c *op.Call) error, prepare func(c *op.Call) (op.Run, error)) op.Def {
	return op.Def{Domain: graph.TFLiteCustom, Name: name, Infer: infer, Prepare: prepare}
}

// optionsOf parses a custom operator's options.
func optionsOf(c *op.Call) (flexbuffer.Value, error) {
	b, _ := c.Node.Attrs["custom_options"].([]byte)
	v, err := flexbuffer.Parse(b)
	if err != nil {
		return flexbuffer.Value{}, fmt.Errorf("custom options: %w", err)
	}
	return v, nil
}

// reals returns a function that reads a tensor as real numbers: float tensors as
// they are, 8-bit ones through their quantisation.
func reals(x *tensor.Tensor) (func(x *tensor.Tensor) []float32, error) {
	if x.Type == tensor.Float32 {
		return tensor.Of[float32], nil
	}
	if x.Type != tensor.Uint8 && x.Type != tensor.Int8 {
		return nil, op.Unsupported("elements of type %v", x.Type)
	}
	if q := x.Quant; q == nil || len(q.Scale) != 1 || len(q.Zero) != 1 {
		return nil, op.Unsupported("%v elements without one scale", x.Type)
	}
	var table [256]float32
	for i := range table {
		v := int64(i)
		if x.Type == tensor.Int8 {
			v = int64(int8(i))
		}
		table[i] = x.Quant.Scale[0] * float32(v-x.Quant.Zero[0])
	}
	y := make([]float32, x.Len())
	return func(x *tensor.Tensor) []float32 {
		for i, b := range x.Data {
			y[i] = table[b]
		}
		return y
	}, nil
}

// box is a rectangle in the order in which the operators store it.
type box struct{ y0, x0, y1, x1 float32 }

func (b box) area() float32 { return (b.y1 - b.y0) * (b.x1 - b.x0) }

// overlap is intersection over union, 0 for empty boxes.
func overlap(a, b box) float32 {
	sa, sb := a.area(), b.area()
	if sa <= 0 || sb <= 0 {
		return 0
	}
	both := max(min(a.y1, b.y1)-max(a.y0, b.y0), 0) * max(min(a.x1, b.x1)-max(a.x0, b.x0), 0)
	return both / (sa + sb - both)
}
