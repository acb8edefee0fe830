package layer

import (
	"math"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Grain is the number of elements worth sharing out.
const Grain = 1 << 14

// Groups of element types for definitions.
var (
	FloatOnly = []tensor.Type{tensor.Float32}
	LstmTypes = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16}
	ByteTypes = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8}
	ConvTypes = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8, tensor.Int16}
	Numbers   = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int64}
)

// InTFLite puts definitions that name no domain in TFLite's.
func InTFLite(defs []op.Def) []op.Def {
	for i := range defs {
		if defs[i].Domain == "" {
			defs[i].Domain = graph.TFLite
		}
	}
	return defs
}

// InferSame gives the output the shape of input 0 and its declared type.
func InferSame(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, OutType(c, c.In[0].Type), c.In[0].Shape)
	return nil
}

// LastAxis divides x into rows.
func LastAxis(x *tensor.Tensor) (rows, depth int) {
	if x.Rank() == 0 {
		return 1, 1
	}
	depth = x.Shape[x.Rank()-1]
	if depth == 0 {
		return 0, 0
	}
	return x.Len() / depth, depth
}

// InOut are the scales of input 0 and output 0.
func InOut(c *op.Call) (si, so float32, zi, zo int32, err error) {
	if si, zi, err = ScaleOf(c.In[0]); err == nil {
		so, zo, err = ScaleOf(c.Out[0])
	}
	return
}

// MapTo applies f to every element.
func MapTo[X, Y tensor.Number](c *op.Call, f func(X) Y) {
	x, y := tensor.Of[X](c.In[0]), tensor.Of[Y](c.Out[0])
	c.Pool.For(len(y), Grain, func(lo, hi int) {
		in := x[lo:hi]
		for i, v := range in {
			y[lo+i] = f(v)
		}
	})
}

// Weights reads the filter as differences to its zero points.
func Weights(t *tensor.Tensor) ([]int16, error) {
	q, err := Integers(t)
	if err != nil {
		return nil, err
	}
	w := make([]int16, len(q))
	scale := Scales(t)
	for i, v := range q {
		_, z := scale(i)
		w[i] = int16(v - z)
	}
	return w, nil
}

// ScaleBack brings sums of a row that [QuantizeRow] has quantised, a channel each, back
// to real numbers in place: times the row's scale and that of the weights (one, or one a
// channel), plus the bias where there is one, clamped.
func ScaleBack(y []float32, scale float32, weights, bias []float32, act activation.Clamp) {
	for o, v := range y {
		f := weights[0]
		if len(weights) > 1 {
			f = weights[o]
		}
		v *= scale * f
		if bias != nil {
			v += bias[o]
		}
		if act.On {
			v = min(max(v, act.Min), act.Max)
		}
		y[o] = v
	}
}

// QuantizeRow writes x as whole numbers (less their zero point) into q and
// returns the scale. Symmetric: scale max|x|/127. Asymmetric: the range of x and
// 0 over 255 steps.
func QuantizeRow(q, x []float32, asym bool) (scale float32) {
	var lo, hi float32
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	if !asym {
		m := max(-lo, hi)
		if m == 0 {
			clear(q)
			return 1
		}
		inv := 127 / m
		for i, v := range x {
			q[i] = float32(min(max(Round(v*inv), -127), 127))
		}
		return m / 127
	}
	if lo == hi {
		clear(q)
		return 1
	}
	// The zero point is nudged to a whole number within the type.
	s := (float64(hi) - float64(lo)) / 255
	fromMin, fromMax := -128-float64(lo)/s, 127-float64(hi)/s
	z := fromMin
	if 128+math.Abs(float64(lo)/s) >= 127+math.Abs(float64(hi)/s) {
		z = fromMax
	}
	zero := int32(min(max(math.Round(z), -128), 127))
	scale = float32(s)
	inv := 1 / scale
	for i, v := range x {
		q[i] = float32(min(max(zero+Round(v*inv), -128), 127) - zero)
	}
	return scale
}
