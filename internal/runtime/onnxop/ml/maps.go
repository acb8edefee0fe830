package ml

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// ZipMap turns each row of scores into a map from class to score: a sequence of maps.

func inferZipMap(c *op.Call) error {
	_, width, err := rows(c.In[0])
	if err != nil {
		return err
	}
	if l := classLabels(c); l.len() != width || c.In[0].Type != tensor.Float32 {
		return fmt.Errorf("%d labels for scores %s of %v", l.len(), tensor.FormatShape(c.In[0].Shape), c.In[0].Type)
	}
	return op.ErrDynamic
}

func prepareZipMap(c *op.Call) (op.Run, error) {
	l := classLabels(c)
	keys := tensor.New(l.kind(), l.len())
	for k := range l.len() {
		l.write(keys, k, k)
	}
	return func(c *op.Call) error { return zip(c, keys) }, nil
}

// zip makes a map of each row. Operators that collect sequences keep the maps, so each run makes
// new ones.
func zip(c *op.Call, keys *tensor.Tensor) error {
	n, width, err := rows(c.In[0])
	if err != nil {
		return err
	}
	if keys.Len() != width {
		return fmt.Errorf("%d labels for rows of %d", keys.Len(), width)
	}
	x := tensor.Of[float32](c.In[0])
	seq := &tensor.Tensor{Type: tensor.Sequence, Elem: tensor.Map, Data: []byte{}, Elems: make([]*tensor.Tensor, 0, n)}
	for i := range n {
		v := tensor.From(tensor.Float32, []int{width}, x[i*width:][:width])
		seq.Elems = append(seq.Elems, &tensor.Tensor{Type: tensor.Map, Elem: tensor.Float32, Data: []byte{}, Elems: []*tensor.Tensor{keys, v}})
	}
	*c.Out[0] = *seq
	return nil
}

// entries returns keys and values of a map.
func entries(c *op.Call) (keys, values *tensor.Tensor, err error) {
	m := c.In[0]
	if m == nil || m.Type != tensor.Map {
		return nil, nil, fmt.Errorf("input is not a map")
	}
	if len(m.Elems) != 2 || m.Elems[0].Len() != m.Elems[1].Len() {
		return nil, nil, fmt.Errorf("map with %d parts", len(m.Elems))
	}
	return m.Elems[0], m.Elems[1], nil
}

// DictVectorizer writes a map's values at the positions of their keys in a vocabulary.

func inferDict(c *op.Call) error { return op.ErrDynamic }

func runDictVectorizer(c *op.Call) error {
	keys, values, err := entries(c)
	if err != nil {
		return err
	}
	a := c.Node.Attrs
	names, nums := a.Strs("string_vocabulary"), a.Ints("int64_vocabulary")
	y, err := c.Make(0, values.Type, []int{1, max(len(names), len(nums))})
	if err != nil {
		return err
	}
	for i := range keys.Len() {
		var k int
		if keys.Type == tensor.String {
			k = slices.Index(names, keys.Strings[i])
		} else {
			v, err := numbers(nil, keys)
			if err != nil {
				return err
			}
			k = slices.Index(nums, int(v[i]))
		}
		switch {
		case k < 0:
		case values.Type == tensor.String:
			y.Strings[k] = values.Strings[i]
		default:
			w := values.Type.Bits() / 8
			copy(y.Data[k*w:][:w], values.Data[i*w:])
		}
	}
	return nil
}

// runCastMap makes a tensor of a map's values, in the order of the keys. For a sparse map the
// keys are the positions.
func runCastMap(c *op.Call) error {
	keys, values, err := entries(c)
	if err != nil {
		return err
	}
	a := c.Node.Attrs
	kinds := map[string]tensor.Type{"TO_FLOAT": tensor.Float32, "TO_INT64": tensor.Int64, "TO_STRING": tensor.String}
	kind, ok := kinds[a.Str("cast_to", "TO_FLOAT")]
	if !ok {
		return fmt.Errorf("cast_to %q", a.Str("cast_to", ""))
	}
	at, err := op.Ints(keys)
	if err != nil {
		return err
	}
	order := op.Iota(len(at))
	slices.SortFunc(order, func(p, q int) int { return at[p] - at[q] })
	n, sparse := len(at), a.Str("map_form", "DENSE") == "SPARSE"
	if sparse {
		if n = a.Int("max_map", 1); n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("max_map %d", n)
		}
	}
	y, err := c.Make(0, kind, []int{1, n})
	if err != nil {
		return err
	}
	for i, p := range order {
		to := i
		if sparse {
			if to = at[p]; to < 0 || to >= n {
				return fmt.Errorf("key %d of a map of %d", to, n)
			}
		}
		if err := castTo(y, to, values, p); err != nil {
			return err
		}
	}
	return nil
}

// castTo converts one element between text and numbers.
func castTo(y *tensor.Tensor, to int, x *tensor.Tensor, from int) error {
	if x.Type == tensor.String && y.Type == tensor.String {
		y.Strings[to] = x.Strings[from]
		return nil
	}
	if x.Type == tensor.String {
		v, err := strconv.ParseFloat(x.Strings[from], 64)
		if err != nil {
			return fmt.Errorf("value %q is not a number", x.Strings[from])
		}
		tensor.Put(y, to, v)
		return nil
	}
	v, err := numbers(nil, x)
	if err != nil {
		return err
	}
	if y.Type == tensor.String {
		y.Strings[to] = strconv.FormatFloat(v[from], 'g', -1, 32)
		return nil
	}
	tensor.Put(y, to, v[from])
	return nil
}
