package ml

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func inferFloat(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, tensor.Float32, slices.Clone(c.In[0].Shape))
	return nil
}

func inferSame(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, slices.Clone(c.In[0].Shape))
	return nil
}

// perFeature runs f over every element with its position in the row.
func perFeature(f func(c *op.Call, features int) (func(j int, v float64) float64, error)) func(*op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		features := 1
		if r := c.In[0].Rank(); r > 0 {
			features = max(c.In[0].Shape[r-1], 1)
		}
		g, err := f(c, features)
		if err != nil {
			return nil, err
		}
		var x []float64
		return func(c *op.Call) error {
			var err error
			if x, err = numbers(x, c.In[0]); err != nil {
				return err
			}
			for i, v := range x {
				tensor.Put(c.Out[0], i, g(i%features, v))
			}
			return nil
		}, nil
	}
}

// oneOrMany picks the value for feature j from a list of one or of all.
func oneOrMany(name string, v []float64, features int) (func(j int) float64, error) {
	switch len(v) {
	case 1:
		return func(int) float64 { return v[0] }, nil
	case features:
		return func(j int) float64 { return v[j] }, nil
	}
	return nil, fmt.Errorf("%d values of %s for %d features", len(v), name, features)
}

func scaler(c *op.Call, features int) (func(int, float64) float64, error) {
	offset, err := oneOrMany("offset", float64s(c, "offset"), features)
	if err != nil {
		return nil, err
	}
	scale, err := oneOrMany("scale", float64s(c, "scale"), features)
	if err != nil {
		return nil, err
	}
	return func(j int, v float64) float64 { return (v - offset(j)) * scale(j) }, nil
}

func binarizer(c *op.Call, _ int) (func(int, float64) float64, error) {
	t := float64(c.Node.Attrs.Float("threshold", 0))
	return func(_ int, v float64) float64 {
		if v > t {
			return 1
		}
		return 0
	}, nil
}

func imputer(c *op.Call, features int) (func(int, float64) float64, error) {
	a := c.Node.Attrs
	values, old := float64s(c, "imputed_value_floats"), float64(a.Float("replaced_value_float", 0))
	if c.In[0].Type == tensor.Int64 || c.In[0].Type == tensor.Int32 {
		values, old = nil, float64(a.Int("replaced_value_int64", 0))
		for _, v := range a.Ints("imputed_value_int64s") {
			values = append(values, float64(v))
		}
	}
	pick, err := oneOrMany("imputed values", values, features)
	if err != nil {
		return nil, err
	}
	return func(j int, v float64) float64 {
		if v == old || math.IsNaN(v) && math.IsNaN(old) {
			return pick(j)
		}
		return v
	}, nil
}

// prepareNormalizer divides rows by their largest value, their sum of absolute
// values or their length.
func prepareNormalizer(c *op.Call) (op.Run, error) {
	mode := c.Node.Attrs.Str("norm", "MAX")
	if mode != "MAX" && mode != "L1" && mode != "L2" {
		return nil, fmt.Errorf("norm %q", mode)
	}
	_, features, err := rows(c.In[0])
	if err != nil {
		return nil, err
	}
	var x []float64
	return func(c *op.Call) error {
		var err error
		if x, err = numbers(x, c.In[0]); err != nil {
			return err
		}
		for i := 0; i < len(x); i += features {
			row := x[i : i+features]
			var d float64
			switch mode {
			case "MAX":
				d = slices.Max(row)
			case "L1":
				for _, v := range row {
					d += math.Abs(v)
				}
			default:
				for _, v := range row {
					d += v * v
				}
				d = math.Sqrt(d)
			}
			for j, v := range row {
				if d != 0 {
					v /= d
				}
				tensor.Put(c.Out[0], i+j, v)
			}
		}
		return nil
	}, nil
}

// FeatureVectorizer puts the features of several inputs side by side.

func inferVectorizer(c *op.Call) error {
	if len(c.In) == 0 {
		return fmt.Errorf("no inputs")
	}
	if err := c.NeedInputs(len(c.In)); err != nil {
		return err
	}
	width, n := 0, 0
	for i, x := range c.In {
		r, f, err := rows(x)
		if err != nil {
			return err
		}
		if i > 0 && r != n {
			return fmt.Errorf("inputs of %d and %d rows", n, r)
		}
		n = r
		width += f
	}
	c.SetOut(0, tensor.Float32, []int{n, width})
	return nil
}

func runVectorizer(c *op.Call) error {
	n, width := c.Out[0].Shape[0], c.Out[0].Shape[1]
	y, at := tensor.Of[float32](c.Out[0]), 0
	for _, in := range c.In {
		_, f, err := rows(in)
		if err != nil {
			return err
		}
		x, err := numbers(nil, in)
		if err != nil {
			return err
		}
		for i := range n {
			for j, v := range x[i*f:][:f] {
				y[i*width+at+j] = float32(v)
			}
		}
		at += f
	}
	return nil
}

// ArrayFeatureExtractor takes columns by number.

func inferExtractor(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	x := c.In[0].Shape
	if len(x) == 0 {
		return fmt.Errorf("input is a scalar")
	}
	shape := append(slices.Clone(x[:len(x)-1]), c.In[1].Len())
	if len(x) == 1 {
		shape = []int{1, c.In[1].Len()}
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func runExtractor(c *op.Call) error {
	columns, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	x, y := c.In[0], c.Out[0]
	width := x.Shape[x.Rank()-1]
	for _, k := range columns {
		if k < 0 || k >= width {
			return fmt.Errorf("column %d of %d", k, width)
		}
	}
	n := 0
	if width > 0 {
		n = x.Len() / width
	}
	if x.Type == tensor.String {
		pick(y.Strings, x.Strings, columns, n, width, 1)
		return nil
	}
	w := x.Type.Bits() / 8
	if w == 0 {
		return op.Unsupported("input of %v", x.Type)
	}
	pick(y.Data, x.Data, columns, n, width, w)
	return nil
}

// pick copies elements of w units each.
func pick[E any](y, x []E, columns []int, n, width, w int) {
	for i := range n {
		for j, k := range columns {
			copy(y[(i*len(columns)+j)*w:][:w], x[(i*width+k)*w:][:w])
		}
	}
}
