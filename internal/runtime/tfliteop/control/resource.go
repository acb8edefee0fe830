package control

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// A handle is a scalar resource whose only string is the key of the session's state.
func inferHandle(c *op.Call) error {
	c.SetOut(0, tensor.Resource, []int{})
	return nil
}

func prepareHandle(c *op.Call) (op.Run, error) {
	a := c.Node.Attrs
	key := []string{"resource/" + a.Str("container", "") + "/" + a.Str("shared_name", "")}
	return func(c *op.Call) error {
		c.Out[0].Strings = key
		return nil
	}, nil
}

// key reads a handle.
func key(x *tensor.Tensor) (string, error) {
	if x == nil || x.Type != tensor.Resource || len(x.Strings) != 1 {
		return "", fmt.Errorf("not a resource handle")
	}
	return x.Strings[0], nil
}

// inferRead relies on the declared shape. A run fails if the variable has another one.
func inferRead(c *op.Call) error {
	if id := c.Node.Outputs[0]; id >= 0 {
		if v := c.Graph.Values[id]; fixed(v) {
			c.SetOut(0, v.Type, slices.Clone(v.Shape))
			return nil
		}
	}
	return op.ErrDynamic
}

func prepareRead(c *op.Call) (op.Run, error) {
	h, result, last := make(results, len(c.Out)), make([]*tensor.Tensor, 1), variable{}
	return func(c *op.Call) error {
		if err := last.find(c); err != nil {
			return err
		}
		if last.t == nil {
			return fmt.Errorf("variable %q is read before it is assigned", last.key)
		}
		result[0] = last.t
		return h.put(c, result)
	}, nil
}

// variable caches the variable of a node's last run, which the next run usually reads again.
type variable struct {
	key string
	// nil before the first assignment; afterwards the same tensor for the life of the session
	t *tensor.Tensor
}

// find looks for the variable of a call.
func (v *variable) find(c *op.Call) error {
	k, err := key(c.In[0])
	if err != nil || v.t != nil && v.key == k {
		return err
	}
	v.key = k
	v.t, _ = c.Env.State(k).(*tensor.Tensor)
	return nil
}

func prepareAssign(*op.Call) (op.Run, error) {
	var last variable
	return func(c *op.Call) error {
		if err := last.find(c); err != nil {
			return err
		}
		x := c.In[1]
		switch v := last.t; {
		case v == nil:
			last.t = x.Clone()
			c.Env.SetState(last.key, last.t)
		case v.Type == x.Type && slices.Equal(v.Shape, x.Shape):
			copy(v.Data, x.Data)
			copy(v.Strings, x.Strings)
		default:
			*v = *x.Clone()
		}
		return nil
	}, nil
}

// table maps strings to 64-bit integers or vice versa.
type table struct {
	toInt    map[string]int64
	toString map[int64]string
}

func runHashtable(c *op.Call) error {
	k := fmt.Sprintf("hashtable/%d", c.Node.Attrs.Int("table_id", 0))
	if s := c.Out[0].Strings; len(s) != 1 || s[0] != k {
		c.Out[0].Strings = []string{k}
	}
	return nil
}

// pair checks that one tensor has strings and the other 64-bit integers.
func pair(a, b *tensor.Tensor) error {
	if a.Type == tensor.String && b.Type == tensor.Int64 || a.Type == tensor.Int64 && b.Type == tensor.String {
		return nil
	}
	return op.Unsupported("a table from %v to %v", a.Type, b.Type)
}

func inferImport(c *op.Call) error {
	if c.In[1].Len() != c.In[2].Len() {
		return fmt.Errorf("%d keys with %d values", c.In[1].Len(), c.In[2].Len())
	}
	return pair(c.In[1], c.In[2])
}

// runImport fills a table once; a second import changes nothing.
func runImport(c *op.Call) error {
	k, err := key(c.In[0])
	if err != nil || c.Env.State(k) != nil {
		return err
	}
	t := &table{toInt: map[string]int64{}, toString: map[int64]string{}}
	if c.In[1].Type == tensor.String {
		v := tensor.Of[int64](c.In[2])
		for i, s := range c.In[1].Strings {
			t.toInt[s] = v[i]
		}
	} else {
		for i, n := range tensor.Of[int64](c.In[1]) {
			t.toString[n] = c.In[2].Strings[i]
		}
	}
	c.Env.SetState(k, t)
	return nil
}

// inferFind reads the table, the keys and the value for missing keys.
func inferFind(c *op.Call) error {
	if c.In[2].Len() != 1 {
		return fmt.Errorf("default has %d elements", c.In[2].Len())
	}
	c.SetOut(0, c.In[2].Type, c.In[1].Shape)
	return pair(c.In[1], c.In[2])
}

func find(c *op.Call) (*table, error) {
	k, err := key(c.In[0])
	if err != nil {
		return nil, err
	}
	t, ok := c.Env.State(k).(*table)
	if !ok {
		return nil, fmt.Errorf("table %q is read before it is filled", k)
	}
	return t, nil
}

func runFind(c *op.Call) error {
	t, err := find(c)
	if err != nil {
		return err
	}
	if keys := c.In[1]; keys.Type == tensor.String {
		lookUp(tensor.Of[int64](c.Out[0]), keys.Strings, t.toInt, tensor.Single[int64](c.In[2]))
	} else {
		lookUp(c.Out[0].Strings, tensor.Of[int64](keys), t.toString, c.In[2].Strings[0])
	}
	return nil
}

// lookUp writes the value of each key to y, and the value none for absent keys.
func lookUp[K comparable, V any](y []V, keys []K, table map[K]V, none V) {
	for i, k := range keys {
		v, ok := table[k]
		if !ok {
			v = none
		}
		y[i] = v
	}
}

func inferSize(c *op.Call) error {
	c.SetOut(0, tensor.Int64, []int{1})
	return nil
}

func runSize(c *op.Call) error {
	t, err := find(c)
	if err != nil {
		return err
	}
	tensor.Of[int64](c.Out[0])[0] = int64(len(t.toInt) + len(t.toString))
	return nil
}
