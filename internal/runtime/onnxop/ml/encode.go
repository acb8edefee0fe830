package ml

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
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
	nan          int // position of the key NaN, -1 if absent

	// near holds, for integer keys that are close to each other, their positions by distance from
	// first; -1 for other integers. Otherwise it is nil.
	near  []int32
	first int64
}

func newLabelEncoder(c *op.Call) (*labelEncoder, error) {
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
	c.SetOut(0, e.values.kind, slices.Clone(c.In[0].Shape))
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

// index makes the look-up tables; the first of equal keys counts.
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

// indexNear makes the table of integer keys that are close to each other.
func (e *labelEncoder) indexNear() {
	n := e.keys.len()
	keys := e.keys.ints
	if keys == nil {
		for _, v := range e.keys.nums {
			k := int64(v)
			if float64(k) != v || k == math.MaxInt64 || k == math.MinInt64 {
				return // NaN or not an integer
			}
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 || e.keys.names != nil {
		return
	}
	first := slices.Min(keys)
	if size := uint64(slices.Max(keys)) - uint64(first); size < uint64(8*n+256) {
		e.near, e.first = make([]int32, size+1), first
		element.Fill(e.near, -1)
		for i := n - 1; i >= 0; i-- {
			e.near[keys[i]-first] = int32(i)
		}
	}
}

// places writes the key positions of elements of x, beginning with element from; the number of
// keys for an element that is not a key.
func (e *labelEncoder) places(to []int32, x *tensor.Tensor, from int) {
	none := int32(e.keys.len())
	at := func(p int, ok bool) int32 {
		if !ok {
			return none
		}
		return int32(p)
	}
	switch {
	case x.Type == tensor.String:
		for i, v := range x.Strings[from:][:len(to)] {
			p, ok := e.byName[v]
			to[i] = at(p, ok)
		}
	case x.Type == tensor.Int64:
		for i, v := range tensor.Of[int64](x)[from:][:len(to)] {
			if d := uint64(v) - uint64(e.first); e.near == nil {
				p, ok := e.byInt[v]
				to[i] = at(p, ok)
			} else if to[i] = none; d < uint64(len(e.near)) && e.near[d] >= 0 {
				to[i] = e.near[d]
			}
		}
	default:
		var workspace [labelBlock]float64
		nums := workspace[:len(to)]
		tensor.Read(nums, x, from)
		for i, v := range nums {
			k := int64(v)
			switch d := uint64(k) - uint64(e.first); {
			case v != v:
				to[i] = at(e.nan, e.nan >= 0)
			case e.near == nil:
				p, ok := e.byNumber[v]
				to[i] = at(p, ok)
			case float64(k) == v && d < uint64(len(e.near)) && e.near[d] >= 0:
				to[i] = e.near[d]
			default:
				to[i] = none
			}
		}
	}
}

// labelBlock is the number of elements that are looked up together.
const labelBlock = 256

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

func prepareLabelEncoder(c *op.Call) (op.Run, error) {
	e := op.Must(newLabelEncoder(c))
	if (e.values.kind == tensor.String) != (len(e.fallback.names) == 1) {
		return nil, fmt.Errorf("default does not have the type of the values, %v", e.values.kind)
	}
	if x := c.In[0]; x.Type != tensor.String && !x.Type.IsNumber() {
		return nil, op.Unsupported("input of %v", x.Type)
	}
	e.indexNear()
	// The values in the output's type, then the default.
	n := e.values.len()
	list := tensor.New(c.Out[0].Type, n+1)
	for p := range n {
		e.values.write(list, p, p)
	}
	e.fallback.write(list, n, 0)
	return op.Parallel(c.In[0].Len(), 1<<12, func(c *op.Call, lo, hi int) {
		x, y := c.In[0], c.Out[0]
		var workspace [labelBlock]int32
		for ; lo < hi; lo += len(workspace) {
			places := workspace[:min(len(workspace), hi-lo)]
			e.places(places, x, lo)
			if y.Type == tensor.String {
				pickPlaces(y.Strings[lo:], list.Strings, places)
				continue
			}
			switch size := y.Type.Bits() / 8; size {
			case 8:
				pickPlaces(tensor.Words[uint64](y)[lo:], tensor.Words[uint64](list), places)
			case 4:
				pickPlaces(tensor.Words[uint32](y)[lo:], tensor.Words[uint32](list), places)
			default:
				for i, p := range places {
					copy(y.Data[(lo+i)*size:][:size], list.Data[int(p)*size:])
				}
			}
		}
	}), nil
}

// pickPlaces writes the elements of list at the given positions.
func pickPlaces[E any](to, list []E, places []int32) {
	to = to[:len(places)]
	for i, p := range places {
		to[i] = list[p]
	}
}

// CategoryMapper maps names to numbers or numbers to names, by the input's type.

func inferCategoryMapper(c *op.Call) error {
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
	n := max(len(c.Node.Attrs.Ints("cats_int64s")), len(c.Node.Attrs.Strs("cats_strings")))
	if n == 0 || (c.In[0].Type == tensor.String) != (len(c.Node.Attrs.Strs("cats_strings")) > 0) {
		return fmt.Errorf("%d categories for input of %v", n, c.In[0].Type)
	}
	return c.Result(tensor.Float32, append(slices.Clone(c.In[0].Shape), n))
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
				return fmt.Errorf("element %d has no category", i)
			}
		}
		return nil
	}, nil
}
