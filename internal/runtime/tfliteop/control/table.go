package control

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// table maps strings to 64-bit integers or the other way round.
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

// inferFind has the table, the keys and the value for missing keys.
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

// lookUp writes the value of each key to y, none for absent keys.
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
