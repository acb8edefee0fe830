package ml

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func inferFloat(c *op.Call) error { return c.Result(tensor.Float32, slices.Clone(c.In[0].Shape)) }

// byType returns the run for the type of input 0.
func byType(c *op.Call, float32s, float64s, int32s, int64s op.Run) (op.Run, error) {
	switch c.In[0].Type {
	case tensor.Float32:
		return float32s, nil
	case tensor.Float64:
		return float64s, nil
	case tensor.Int32:
		return int32s, nil
	case tensor.Int64:
		return int64s, nil
	}
	return nil, op.Unsupported("input of %v", c.In[0].Type)
}

// eachLine applies f to rows with one element per feature.
func eachLine[D, S tensor.Number](f func(dst []D, src []S)) op.Run {
	return func(c *op.Call) error {
		features := lastAxis(c)
		src, dst := tensor.Of[S](c.In[0]), tensor.Of[D](c.Out[0])
		for at := 0; at < len(src); at += features {
			f(dst[at:][:features], src[at:][:features])
		}
		return nil
	}
}

// lastAxis returns the number of features of input 0, at least one.
func lastAxis(c *op.Call) int {
	if r := c.In[0].Rank(); r > 0 {
		return max(c.In[0].Shape[r-1], 1)
	}
	return 1
}

// oneOrMany returns one value per feature, from a list of one value or of one per feature.
func oneOrMany[T any](c *op.Call, name string, v []T) ([]T, error) {
	features := lastAxis(c)
	switch len(v) {
	case features:
		return v, nil
	case 1:
		return slices.Repeat(v, features), nil
	}
	return nil, fmt.Errorf("%d values of %s for %d features", len(v), name, features)
}

func prepareScaler(c *op.Call) (op.Run, error) {
	offset, err := oneOrMany(c, "offset", float64s(c, "offset"))
	if err != nil {
		return nil, err
	}
	scale, err := oneOrMany(c, "scale", float64s(c, "scale"))
	if err != nil {
		return nil, err
	}
	return byType(c, eachLine(scaled[float32](offset, scale)), eachLine(scaled[float64](offset, scale)), eachLine(scaled[int32](offset, scale)), eachLine(scaled[int64](offset, scale)))
}

func scaled[S tensor.Number](offset, scale []float64) func(dst []float32, src []S) {
	return func(dst []float32, src []S) {
		offset, scale := offset[:len(dst)], scale[:len(dst)]
		for j, v := range src[:len(dst)] {
			dst[j] = float32((float64(v) - offset[j]) * scale[j])
		}
	}
}

func prepareBinarizer(c *op.Call) (op.Run, error) {
	t := float64(c.Node.Attrs.Float("threshold", 0))
	return byType(c, eachLine(above[float32](t)), eachLine(above[float64](t)), eachLine(above[int32](t)), eachLine(above[int64](t)))
}

func above[T tensor.Number](t float64) func(dst, src []T) {
	return func(dst, src []T) {
		src = src[:len(dst)]
		for i, v := range src {
			dst[i] = T(tensor.Truth(float64(v) > t)) // without a branch
		}
	}
}

func prepareImputer(c *op.Call) (op.Run, error) {
	a := c.Node.Attrs
	if t := c.In[0].Type; t == tensor.Int32 || t == tensor.Int64 {
		values, err := oneOrMany(c, "imputed values", a.Ints("imputed_value_int64s"))
		if err != nil {
			return nil, err
		}
		old := a.Int("replaced_value_int64", 0)
		return byType(c, nil, nil, eachLine(imputed[int32](values, old)), eachLine(imputed[int64](values, old)))
	}
	values, err := oneOrMany(c, "imputed values", float64s(c, "imputed_value_floats"))
	if err != nil {
		return nil, err
	}
	old := float64(a.Float("replaced_value_float", 0))
	return byType(c, eachLine(imputed[float32](values, old)), eachLine(imputed[float64](values, old)), nil, nil)
}

// imputed replaces the marker of missing values, which may be NaN, by the value of the feature.
func imputed[T tensor.Number, V int | float64](values []V, old V) func(dst, src []T) {
	numbers := make([]T, len(values))
	for i, v := range values {
		numbers[i] = T(v)
	}
	missing := T(old)
	if V(missing) != old && old == old { // not representable: no element equals it
		return func(dst, src []T) { copy(dst, src) }
	}
	return func(dst, src []T) {
		numbers, src := numbers[:len(dst)], src[:len(dst)]
		if missing == missing {
			for j, v := range src {
				if v == missing {
					v = numbers[j]
				}
				dst[j] = v
			}
			return
		}
		for j, v := range src {
			if v != v {
				v = numbers[j]
			}
			dst[j] = v
		}
	}
}

// prepareNormalizer divides rows by their largest value, their sum of absolute values or their
// length.
func prepareNormalizer(c *op.Call) (op.Run, error) {
	mode := c.Node.Attrs.Str("norm", "MAX")
	if mode != "MAX" && mode != "L1" && mode != "L2" {
		return nil, fmt.Errorf("norm %q", mode)
	}
	if _, _, err := rows(c.In[0]); err != nil {
		return nil, err
	}
	return byType(c, eachLine(overSize[float32](mode)), eachLine(overSize[float64](mode)), eachLine(overSize[int32](mode)), eachLine(overSize[int64](mode)))
}

func overSize[T tensor.Number](mode string) func(dst []float32, src []T) {
	size := rowLength[T]
	switch mode {
	case "MAX":
		size = rowMax[T]
	case "L1":
		size = rowSizes[T]
	}
	return func(dst []float32, src []T) {
		d := size(src)
		if d == 0 {
			d = 1
		}
		src = src[:len(dst)]
		// Multiplication by the inverse differs by a float64 rounding only, which float32 does
		// not show.
		if by := 1 / d; !math.IsInf(by, 0) {
			for j, v := range src {
				dst[j] = float32(float64(v) * by)
			}
			return
		}
		for j, v := range src {
			dst[j] = float32(float64(v) / d)
		}
	}
}

// rowMax returns the largest element, NaN if any element is NaN.
func rowMax[T tensor.Number](row []T) float64 {
	most := row[0]
	for _, v := range row {
		if v > most {
			most = v
		} else if v != v {
			return math.NaN()
		}
	}
	return float64(most)
}

// The loops below keep four independent sums, so that additions overlap.

func rowSizes[T tensor.Number](row []T) float64 {
	var a, b, c, d float64
	for ; len(row) >= 4; row = row[4:] {
		a += math.Abs(float64(row[0]))
		b += math.Abs(float64(row[1]))
		c += math.Abs(float64(row[2]))
		d += math.Abs(float64(row[3]))
	}
	for _, v := range row {
		a += math.Abs(float64(v))
	}
	return a + b + (c + d)
}

func rowLength[T tensor.Number](row []T) float64 {
	var a, b, c, d float64
	for ; len(row) >= 4; row = row[4:] {
		p, q, r, s := float64(row[0]), float64(row[1]), float64(row[2]), float64(row[3])
		a += p * p
		b += q * q
		c += r * r
		d += s * s
	}
	for _, v := range row {
		a += float64(v) * float64(v)
	}
	return math.Sqrt(a + b + (c + d))
}

// dot computes the dot product of two rows of equal length.
func dot(x, y []float64) float64 {
	var a, b, c, d float64
	y = y[:len(x)]
	if len(x) >= 16 {
		if sum, ok := simd.Dot(simd.FoldKernels(), x, y); ok {
			return sum
		}
	}
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		a += x[0] * y[0]
		b += x[1] * y[1]
		c += x[2] * y[2]
		d += x[3] * y[3]
	}
	for i, v := range x {
		a += v * y[i]
	}
	return a + b + (c + d)
}

// FeatureVectorizer concatenates the features of several inputs.

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
	return c.Result(tensor.Float32, []int{n, width})
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

// ArrayFeatureExtractor selects columns by number.

func inferExtractor(c *op.Call) error {
	x := c.In[0].Shape
	if len(x) == 0 {
		return fmt.Errorf("input is a scalar")
	}
	shape := append(slices.Clone(x[:len(x)-1]), c.In[1].Len())
	if len(x) == 1 {
		shape = []int{1, c.In[1].Len()}
	}
	return c.Result(c.In[0].Type, shape)
}

func prepareExtractor(*op.Call) (op.Run, error) {
	var columns []int64 // of the run
	return func(c *op.Call) error {
		x, y, list := c.In[0], c.Out[0], c.In[1]
		if !list.Type.IsInteger() {
			return op.Unsupported("columns of %v", list.Type)
		}
		if n := list.Len(); len(columns) != n {
			columns = make([]int64, n)
		}
		tensor.Read(columns, list, 0)
		width := int64(x.Shape[x.Rank()-1])
		for _, k := range columns {
			if k < 0 || k >= width {
				return fmt.Errorf("column %d of %d", k, width)
			}
		}
		if x.Type == tensor.String {
			pickColumns(y.Strings, x.Strings, columns, width)
			return nil
		}
		switch x.Type.Bits() {
		case 64:
			pickColumns(tensor.Words[uint64](y), tensor.Words[uint64](x), columns, width)
		case 32:
			pickColumns(tensor.Words[uint32](y), tensor.Words[uint32](x), columns, width)
		default:
			return op.Unsupported("input of %v", x.Type)
		}
		return nil
	}, nil
}

// pickColumns copies columns of lines with width elements.
func pickColumns[E any](y, x []E, columns []int64, width int64) {
	for ; len(y) > 0 && len(columns) > 0; y, x = y[len(columns):], x[width:] {
		line, to := x[:width], y[:len(columns)]
		for j, k := range columns {
			to[j] = line[k]
		}
	}
}
