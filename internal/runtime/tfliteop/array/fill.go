package array

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func inferFill(c *op.Call, shape []int) error {
	if c.In[1].Len() != 1 {
		return fmt.Errorf("value of shape %s", tensor.FormatShape(c.In[1].Shape))
	}
	c.SetOut(0, c.In[1].Type, shape)
	return nil
}

func runFill(c *op.Call) error {
	move.Fill(c.Pool, layout.Of(c.Out[0]), layout.Of(c.In[1]))
	return nil
}

func runZeros(c *op.Call) error {
	move.Fill(c.Pool, layout.Of(c.Out[0]), layout.Of(tensor.New(c.Out[0].Type)))
	return nil
}

// inferRange has start, limit and step.
func inferRange(c *op.Call) error {
	t := c.In[0].Type
	for _, x := range c.In[:3] {
		if x.Type != t || x.Len() != 1 {
			return fmt.Errorf("parameter %v %s beside %v", x.Type, tensor.FormatShape(x.Shape), t)
		}
	}
	count := tensor.PickNumber(t, rangeLen[float32], nil, nil, nil, rangeLen[int32], rangeLen[int64], nil, nil, nil, nil)
	if count == nil {
		return op.Unsupported("elements of type %v", t)
	}
	n, err := count(c)
	if err == nil {
		c.SetOut(0, t, []int{n})
	}
	return err
}

func rangeLen[T float32 | int32 | int64](c *op.Call) (int, error) {
	var p [3]T
	for i, x := range c.In[:3] {
		if !x.Known() {
			return 0, op.ErrDynamic
		}
		p[i] = tensor.Single[T](x)
	}
	start, limit, step := float64(p[0]), float64(p[1]), float64(p[2])
	if step == 0 || (limit-start)/step < 0 && limit != start {
		return 0, fmt.Errorf("range from %v to %v by %v", p[0], p[1], p[2])
	}
	n := math.Ceil(math.Abs((limit - start) / step))
	if !(n <= tensor.MaxBytes) {
		return 0, fmt.Errorf("range from %v to %v by %v is too long", p[0], p[1], p[2])
	}
	return int(n), nil
}

func prepareRange(c *op.Call) (op.Run, error) {
	return tensor.PickNumber[op.Run](c.In[0].Type, runRange[float32], nil, nil, nil, runRange[int32], runRange[int64], nil, nil, nil, nil), nil
}

func runRange[T float32 | int32 | int64](c *op.Call) error {
	v, step := tensor.Single[T](c.In[0]), tensor.Single[T](c.In[2])
	y := tensor.Of[T](c.Out[0])
	for i := range y {
		y[i] = v
		v += step
	}
	return nil
}

// inferOneHot has indices, depth, the on value and the off value.
func inferOneHot(c *op.Call, depth int) error {
	if depth < 0 || c.In[2].Type != c.In[3].Type || c.In[2].Len() != 1 || c.In[3].Len() != 1 {
		return fmt.Errorf("depth %d, values %v and %v", depth, c.In[2].Type, c.In[3].Type)
	}
	x := c.In[0]
	axis, err := oneHotAxis(c)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[2].Type, slices.Insert(like(x.Shape), axis, depth))
	return nil
}

func oneHotAxis(c *op.Call) (int, error) {
	axis := c.Node.Attrs.Int("axis", 0)
	if axis == -1 {
		return c.In[0].Rank(), nil
	}
	return op.Axis(axis, c.In[0].Rank()+1)
}

func prepareOneHot(c *op.Call) (op.Run, error) {
	axis, err := oneHotAxis(c)
	if err != nil {
		return nil, err
	}
	if !c.In[0].Type.IsInteger() {
		return nil, op.Unsupported("%v indices", c.In[0].Type)
	}
	var at []int // of a run
	return func(c *op.Call) error {
		depth, inner := c.Out[0].Shape[axis], layout.Inner(c.Out[0].Shape, axis)
		at = at[:0]
		for i := range c.In[0].Len() {
			if k := int(tensor.At(c.In[0], i)); k >= 0 && k < depth {
				at = append(at, layout.OneHotOffset(i, k, depth, inner))
			}
		}
		return layout.OneHot(c, layout.Of(c.In[2]), layout.Of(c.In[3]), at)
	}, nil
}

func inferDiag(c *op.Call) error {
	x := c.In[0]
	if x.Rank() == 0 {
		return fmt.Errorf("a scalar has no diagonal")
	}
	c.SetOut(0, x.Type, append(like(x.Shape), x.Shape[x.Rank()-1]))
	return nil
}

func inferSetDiag(c *op.Call) error {
	x, d := c.In[0].Shape, c.In[1].Shape
	r := len(x)
	if r < 2 || c.In[0].Type != c.In[1].Type || !slices.Equal(d, append(like(x[:r-2]), min(x[r-2], x[r-1]))) {
		return fmt.Errorf("diagonal %s for matrices %s", tensor.FormatShape(d), tensor.FormatShape(x))
	}
	return layout.SameAsInput(c)
}

// prepareDiag writes its last input to the diagonals of zeros, or of the matrices of
// MATRIX_SET_DIAG's first input.
func prepareDiag(c *op.Call) (op.Run, error) {
	last := 0
	if c.Node.Op == "MATRIX_SET_DIAG" {
		last = 1
	}
	d, out := c.In[last].Shape, c.Out[0].Shape
	r, n := len(out), d[len(d)-1]
	p := move.New([]int{tensor.Elements(out[:r-2]), n}, []int{out[r-2] * out[r-1], out[r-1] + 1}, []int{n, 1}, 0, 0)
	return func(c *op.Call) error {
		if last > 0 {
			layout.Copy(c.Pool, c.Out[0], c.In[0])
		} else if err := runZeros(c); err != nil {
			return err
		}
		p.Run(c.Pool, layout.Of(c.Out[0]), layout.Of(c.In[last]))
		return nil
	}, nil
}

// maxGrams bounds the number of results: it grows with the power of the n-gram's size.
const maxGrams = 1 << 20

func inferSkipGram(c *op.Call) error {
	if x := c.In[0]; x.Type != tensor.String || x.Len() != 1 {
		return fmt.Errorf("input %v %s where one string is expected", x.Type, tensor.FormatShape(x.Shape))
	}
	return op.ErrDynamic
}

// prepareSkipGram lists n-grams of words with at most some words skipped between neighbours,
// longer ones first.
func prepareSkipGram(c *op.Call) (op.Run, error) {
	size, skip := c.Node.Attrs.Int("ngram_size", 0), c.Node.Attrs.Int("max_skip_size", 0)
	all := c.Node.Attrs.Bool("include_all_ngrams", false)
	if size < 1 || skip < 0 {
		return nil, fmt.Errorf("n-grams of %d words that skip %d", size, skip)
	}
	return func(c *op.Call) error {
		words := strings.Split(c.In[0].Strings[0], " ")
		var list, gram []string
		steps := 0
		var extend func(last int) error
		extend = func(last int) error {
			if steps++; steps > 16*maxGrams {
				return fmt.Errorf("too many ways to skip words")
			}
			if n := len(gram); n < size {
				end := len(words)
				if n > 0 {
					end = min(end, last+skip+2)
				}
				for i := last + 1; i < end; i++ {
					gram = append(gram, words[i])
					if err := extend(i); err != nil {
						return err
					}
					gram = gram[:n]
				}
			}
			if n := len(gram); n == size || all && n > 0 {
				if len(list) == maxGrams {
					return fmt.Errorf("more than %d n-grams", maxGrams)
				}
				list = append(list, strings.Join(gram, " "))
			}
			return nil
		}
		if err := extend(-1); err != nil {
			return err
		}
		y, err := c.Make(0, tensor.String, []int{len(list)})
		if err != nil {
			return err
		}
		copy(y.Strings, list)
		return nil
	}, nil
}
