package control

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// A handle is a scalar resource whose only string is the key of the session's
// state.
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

// inferRead relies on the declared shape; a variable that was assigned another
// one is an error of the run.
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

// variable is that of a node's last run: mostly it is the next one's, too.
type variable struct {
	key string
	// nil before something is assigned; the same for the life of the session's state then
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
