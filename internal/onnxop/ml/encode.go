package ml

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// column is a list of keys or values: text or numbers of one type.
type column struct {
	kind  tensor.Type
	names []string
	nums  []float64
	ints  []int64 // exact integers, beside nums
}

func (k *column) len() int { return max(len(k.names), len(k.nums)) }

func intColumn(v []int) *column {
	k := &column{kind: tensor.Int64}
	for _, x := range v {
		k.nums, k.ints = append(k.nums, float64(x)), append(k.ints, int64(x))
	}
	return k
}

// tensorColumn reads a tensor attribute.
func tensorColumn(t *tensor.Tensor) (*column, error) {
	if t.Type == tensor.String {
		return &column{kind: t.Type, names: t.Strings}, nil
	}
	k := &column{kind: t.Type}
	var err error
	if k.nums, err = numbers(nil, t); err != nil {
		return nil, err
	}
	if t.Type == tensor.Int64 {
		k.ints = tensor.Of[int64](t)
	}
	return k, nil
}

// readColumn finds keys_* or values_* in any of the versions' forms.
func readColumn(c *op.Call, prefix string) (*column, error) {
	a := c.Node.Attrs
	if t := a.Tensor(prefix + "_tensor"); t != nil {
		return tensorColumn(t)
	}
	if s := a.Strs(prefix + "_strings"); s != nil {
		return &column{kind: tensor.String, names: s}, nil
	}
	if v := a.Ints(prefix + "_int64s"); v != nil {
		return intColumn(v), nil
	}
	if v := a.Floats(prefix + "_floats"); v != nil {
		k := &column{kind: tensor.Float32, nums: make([]float64, len(v))}
		tensor.Convert(k.nums, v)
		return k, nil
	}
	return nil, fmt.Errorf("%s are missing", prefix)
}

// labelEncoder maps keys to values.
type labelEncoder struct {
	keys, values *column
	fallback     *column // one value
	byName       map[string]int
	byNumber     map[float64]int
	byInt        map[int64]int
	nan          int // key that is not a number, -1 for none
}

func newLabelEncoder(c *op.Call) (*labelEncoder, error) {
	if err := c.NeedInputs(1); err != nil {
		return nil, err
	}
	a := c.Node.Attrs
	e := &labelEncoder{nan: -1}
	var err error
	if classes := a.Strs("classes_strings"); classes != nil { // version 1: names and their numbers
		e.keys = &column{kind: tensor.String, names: classes}
		e.values = &column{kind: tensor.Int64}
		for i := range classes {
			e.values.nums, e.values.ints = append(e.values.nums, float64(i)), append(e.values.ints, int64(i))
		}
		if c.In[0].Type == tensor.Int64 {
			e.keys, e.values = e.values, e.keys
		}
	} else if e.keys, err = readColumn(c, "keys"); err != nil {
		return nil, err
	} else if e.values, err = readColumn(c, "values"); err != nil {
		return nil, err
	}
	if e.keys.len() != e.values.len() {
		return nil, fmt.Errorf("%d keys and %d values", e.keys.len(), e.values.len())
	}
	if c.In[0].Type != e.keys.kind {
		return nil, fmt.Errorf("input of %v with keys of %v", c.In[0].Type, e.keys.kind)
	}
	if err := e.setFallback(c); err != nil {
		return nil, err
	}
	e.index()
	return e, nil
}

func (e *labelEncoder) setFallback(c *op.Call) error {
	a := c.Node.Attrs
	if t := a.Tensor("default_tensor"); t != nil && t.Len() == 1 {
		var err error
		e.fallback, err = tensorColumn(t)
		return err
	}
	switch e.values.kind {
	case tensor.String:
		e.fallback = &column{kind: tensor.String, names: []string{a.Str("default_string", "_Unused")}}
	case tensor.Float32, tensor.Float64, tensor.Float16:
		d := math.Copysign(0, -1)
		if a.Has("default_float") {
			d = float64(a.Float("default_float", 0))
		}
		e.fallback = &column{nums: []float64{d}}
	default:
		e.fallback = intColumn([]int{a.Int("default_int64", -1)})
	}
	return nil
}

// index makes the look-up tables; of equal keys the first one counts.
func (e *labelEncoder) index() {
	e.byName, e.byNumber, e.byInt = map[string]int{}, map[float64]int{}, map[int64]int{}
	for i := e.keys.len() - 1; i >= 0; i-- {
		switch {
		case e.keys.names != nil:
			e.byName[e.keys.names[i]] = i
		case e.keys.ints != nil:
			e.byInt[e.keys.ints[i]] = i
		case math.IsNaN(e.keys.nums[i]):
			e.nan = i
		default:
			e.byNumber[e.keys.nums[i]] = i
		}
	}
}

// find returns the position of element i of x among the keys, -1 for none.
func (e *labelEncoder) find(x *tensor.Tensor, nums []float64, i int) int {
	var p int
	var ok bool
	switch {
	case x.Type == tensor.String:
		p, ok = e.byName[x.Strings[i]]
	case x.Type == tensor.Int64:
		p, ok = e.byInt[tensor.Of[int64](x)[i]]
	case math.IsNaN(nums[i]):
		return e.nan
	default:
		p, ok = e.byNumber[nums[i]]
	}
	if !ok {
		return -1
	}
	return p
}

// write stores value p as element i.
func (k *column) write(y *tensor.Tensor, i, p int) {
	switch {
	case y.Type == tensor.String:
		y.Strings[i] = k.names[p]
	case y.Type == tensor.Int64 && k.ints != nil:
		tensor.Of[int64](y)[i] = k.ints[p]
	case y.Type == tensor.Int16:
		tensor.Of[int16](y)[i] = int16(k.nums[p])
	default:
		tensor.Put(y, i, k.nums[p])
	}
}

func inferLabelEncoder(c *op.Call) error {
	e, err := newLabelEncoder(c)
	if err != nil {
		return err
	}
	c.SetOut(0, e.values.kind, slices.Clone(c.In[0].Shape))
	return nil
}

func prepareLabelEncoder(c *op.Call) (op.Run, error) {
	e, err := newLabelEncoder(c)
	if err != nil {
		return nil, err
	}
	if (e.values.kind == tensor.String) != (len(e.fallback.names) == 1) {
		return nil, fmt.Errorf("default does not have the type of the values, %v", e.values.kind)
	}
	var nums []float64
	return func(c *op.Call) error {
		x := c.In[0]
		if x.Type != tensor.String && x.Type != tensor.Int64 {
			var err error
			if nums, err = numbers(nums, x); err != nil {
				return err
			}
		}
		for i := range x.Len() {
			if p := e.find(x, nums, i); p >= 0 {
				e.values.write(c.Out[0], i, p)
			} else {
				e.fallback.write(c.Out[0], i, 0)
			}
		}
		return nil
	}, nil
}

// CategoryMapper maps names to numbers or numbers to names, by the input's type.

func inferCategoryMapper(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	a := c.Node.Attrs
	if len(a.Strs("cats_strings")) != len(a.Ints("cats_int64s")) {
		return fmt.Errorf("%d names and %d numbers", len(a.Strs("cats_strings")), len(a.Ints("cats_int64s")))
	}
	switch c.In[0].Type {
	case tensor.String:
		c.SetOut(0, tensor.Int64, slices.Clone(c.In[0].Shape))
	case tensor.Int64:
		c.SetOut(0, tensor.String, slices.Clone(c.In[0].Shape))
	default:
		return op.Unsupported("input of %v", c.In[0].Type)
	}
	return nil
}

func prepareCategoryMapper(c *op.Call) (op.Run, error) {
	a := c.Node.Attrs
	names, nums := a.Strs("cats_strings"), a.Ints("cats_int64s")
	number, name := map[string]int64{}, map[int64]string{}
	for i := len(names) - 1; i >= 0; i-- {
		number[names[i]], name[int64(nums[i])] = int64(nums[i]), names[i]
	}
	noNumber, noName := int64(a.Int("default_int64", -1)), a.Str("default_string", "_Unused")
	return func(c *op.Call) error {
		x, y := c.In[0], c.Out[0]
		if x.Type == tensor.String {
			out := tensor.Of[int64](y)
			for i, s := range x.Strings {
				v, ok := number[s]
				if !ok {
					v = noNumber
				}
				out[i] = v
			}
			return nil
		}
		for i, v := range tensor.Of[int64](x) {
			s, ok := name[v]
			if !ok {
				s = noName
			}
			y.Strings[i] = s
		}
		return nil
	}, nil
}

// OneHotEncoder adds an axis of the categories.

func inferOneHot(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	n := max(len(c.Node.Attrs.Ints("cats_int64s")), len(c.Node.Attrs.Strs("cats_strings")))
	if n == 0 || (c.In[0].Type == tensor.String) != (len(c.Node.Attrs.Strs("cats_strings")) > 0) {
		return fmt.Errorf("%d categories for input of %v", n, c.In[0].Type)
	}
	c.SetOut(0, tensor.Float32, append(slices.Clone(c.In[0].Shape), n))
	return nil
}

func prepareOneHot(c *op.Call) (op.Run, error) {
	a := c.Node.Attrs
	names, nums, zeros := a.Strs("cats_strings"), a.Ints("cats_int64s"), a.Bool("zeros", true)
	n := max(len(names), len(nums))
	var x []float64
	return func(c *op.Call) error {
		y := tensor.Of[float32](c.Out[0])
		clear(y)
		in := c.In[0]
		if in.Type != tensor.String {
			var err error
			if x, err = numbers(x, in); err != nil {
				return err
			}
		}
		for i := range in.Len() {
			var k int
			if in.Type == tensor.String {
				k = slices.Index(names, in.Strings[i])
			} else {
				k = slices.Index(nums, int(x[i]))
			}
			switch {
			case k >= 0:
				y[i*n+k] = 1
			case !zeros:
				return fmt.Errorf("element %d is of no category", i)
			}
		}
		return nil
	}, nil
}
