package control

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// stack collects the values that a body yields in each iteration, to be joined once at the end.
type stack struct{ items []*tensor.Tensor }

func (s *stack) push(x *tensor.Tensor) { s.items = append(s.items, x) }

// give joins the values along a new axis into output i. v declares the type and shape of one
// value, in case there are no values.
func (s *stack) give(c *op.Call, i, axis int, reverse bool, v *graph.Value) error {
	if !c.Wants(i) {
		return nil
	}
	t, shape := v.Type, v.Shape
	if len(s.items) > 0 {
		if s.items[0] == nil {
			return fmt.Errorf("output %d was not computed", i)
		}
		t, shape = s.items[0].Type, s.items[0].Shape
	} else if t == tensor.Invalid {
		t = c.Out[i].Type
	}
	if t.IsContainer() {
		return fmt.Errorf("scan output %d is a %v, not a tensor", i, t)
	}
	axis, err := op.Axis(axis, len(shape)+1)
	if err != nil {
		return err
	}
	whole := slices.Insert(slices.Clone(shape), axis, len(s.items))
	for k, d := range whole {
		whole[k] = max(d, 0) // unknown dimensions of a value that never came
	}
	y, err := c.Make(i, t, whole)
	if err != nil {
		return err
	}
	return join(c.Pool, y, s.items, axis, reverse)
}

// join writes the items one after the other along a new axis of y.
func join(pool *workers.Pool, y *tensor.Tensor, items []*tensor.Tensor, axis int, reverse bool) error {
	if len(items) == 0 {
		return nil
	}
	if reverse {
		items = slices.Clone(items)
		slices.Reverse(items)
	}
	g, err := layout.Stack(items, axis)
	if err != nil {
		return err
	}
	return collect(pool, y, items, g)
}

// collect fills y from the items.
func collect(pool *workers.Pool, y *tensor.Tensor, items []*tensor.Tensor, g layout.Geometry) error {
	c := &op.Call{In: items, Out: []*tensor.Tensor{y}, Pool: pool}
	run, err := layout.WithUnpacked(g.Run)(c)
	if err != nil {
		return err
	}
	return run(c)
}

// cut splits x along an axis into new tensors of the given sizes.
func cut(pool *workers.Pool, x *tensor.Tensor, axis int, sizes []int) ([]*tensor.Tensor, error) {
	parts := make([]*tensor.Tensor, len(sizes))
	for i, n := range sizes {
		shape := slices.Clone(x.Shape)
		shape[axis] = n
		parts[i] = tensor.New(x.Type, shape...)
	}
	c := &op.Call{In: []*tensor.Tensor{x}, Out: parts, Pool: pool}
	run, err := layout.WithUnpacked(func(c *op.Call) (op.Run, error) { return layout.Split(c, 0, x.Shape, axis, sizes) })(c)
	if err != nil {
		return nil, err
	}
	return parts, run(c)
}

// rows splits a tensor along an axis. The parts share its memory if they are contiguous.
func rows(pool *workers.Pool, x *tensor.Tensor, axis int) (func(i int) *tensor.Tensor, error) {
	n := x.Shape[axis]
	shape := slices.Delete(slices.Clone(x.Shape), axis, axis+1)
	if axis > 0 || layout.Packed(x) {
		parts, err := cut(pool, x, axis, slices.Repeat([]int{1}, n))
		return func(i int) *tensor.Tensor {
			y := *parts[i]
			y.Shape = shape
			return &y
		}, err
	}
	per := tensor.Elements(shape)
	src := layout.Of(x)
	return func(i int) *tensor.Tensor {
		y := &tensor.Tensor{Type: x.Type, Shape: shape, Data: []byte{}}
		if x.Type == tensor.String {
			y.Strings = src.Strings[i*per : (i+1)*per]
		} else {
			y.Data = src.Bytes[i*per*src.Width : (i+1)*per*src.Width]
		}
		return y
	}, nil
}

// scanShape describes the inputs and outputs of a Scan node.
type scanShape struct {
	states, ins, outs         int
	inAxes, outAxes           []int
	inDirections, outReversed []int
}

func scanOf(c *op.Call) (*scanShape, *graph.Graph, error) {
	g, err := nested(c, "body")
	if err != nil {
		return nil, nil, err
	}
	a := c.Node.Attrs
	first := 0
	if c.Node.Version < 9 {
		first = 1 // sequence_lens
	}
	s := &scanShape{ins: a.Int("num_scan_inputs", 0)}
	s.states = len(c.In) - first - s.ins
	s.outs = len(g.Outputs) - s.states
	if s.ins < 1 || s.states < 0 || s.outs < 0 || len(g.Inputs) != s.states+s.ins || len(c.Out) > len(g.Outputs) {
		return nil, nil, fmt.Errorf("body has %d inputs and %d outputs, node has %d scanned of %d inputs and %d outputs",
			len(g.Inputs), len(g.Outputs), s.ins, len(c.In)-first, len(c.Out))
	}
	for i := first; i < len(c.In); i++ {
		if !c.Has(i) {
			return nil, nil, fmt.Errorf("input %d is missing", i)
		}
	}
	list := func(name string, n int) []int {
		v := a.Ints(name)
		if v == nil {
			return make([]int, n)
		}
		if len(v) != n {
			err = fmt.Errorf("%s has %d elements, not %d", name, len(v), n)
		}
		return v
	}
	if c.Node.Version < 9 {
		s.inDirections = list("directions", s.ins)
		s.inAxes, s.outAxes, s.outReversed = make([]int, s.ins), make([]int, s.outs), make([]int, s.outs)
	} else {
		s.inAxes, s.outAxes = list("scan_input_axes", s.ins), list("scan_output_axes", s.outs)
		s.inDirections, s.outReversed = list("scan_input_directions", s.ins), list("scan_output_directions", s.outs)
	}
	return s, g, err
}

func inferScan(c *op.Call) error {
	if _, _, err := scanOf(c); err != nil {
		return err
	}
	return op.ErrDynamic
}

// scan runs the body over all positions and returns final states and stacks.
func (s *scanShape) scan(turn *turns, b op.Body, pool *workers.Pool, state, xs []*tensor.Tensor, limit int) ([]*tensor.Tensor, []stack, error) {
	in := make([]*tensor.Tensor, s.states+s.ins)
	copy(in, state)
	parts := make([]func(int) *tensor.Tensor, s.ins)
	n := -1
	for k, x := range xs {
		a, err := op.Axis(s.inAxes[k], x.Rank())
		if err != nil {
			return nil, nil, err
		}
		if n >= 0 && x.Shape[a] != n {
			return nil, nil, fmt.Errorf("scanned inputs have %d and %d positions", n, x.Shape[a])
		}
		n = x.Shape[a]
		if parts[k], err = rows(pool, x, a); err != nil {
			return nil, nil, err
		}
	}
	if limit >= 0 {
		if limit > n {
			return nil, nil, fmt.Errorf("sequence length %d is over %d positions", limit, n)
		}
		n = limit
	}
	stacks := make([]stack, s.outs)
	for t := range n {
		if err := turn.next(); err != nil {
			return nil, nil, err
		}
		for k := range xs {
			at := t
			if s.inDirections[k] != 0 {
				at = n - 1 - t
			}
			in[s.states+k] = parts[k](at)
		}
		out, err := b.Run(in)
		if err != nil {
			return nil, nil, err
		}
		if err := turn.carry(in[:s.states], out[:s.states]); err != nil {
			return nil, nil, err
		}
		copy(in, out[:s.states])
		for k := range stacks {
			if err := turn.collect(&stacks[k], out[s.states+k]); err != nil {
				return nil, nil, err
			}
		}
	}
	final := in[:s.states]
	for i, x := range final {
		final[i] = own(x)
	}
	return final, stacks, nil
}

// scanBy makes a Scan whose run has the node's geometry and its body.
func scanBy(run func(c *op.Call, s *scanShape, g *graph.Graph, b op.Body) error) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		s, g, err := scanOf(c)
		if err != nil {
			return nil, err
		}
		b, _, err := body(c, "body")
		return func(c *op.Call) error { return run(c, s, g, b) }, err
	}
}

func runScan(c *op.Call, s *scanShape, g *graph.Graph, b op.Body) error {
	turn := begin(c.Env, true)
	defer turn.end()
	final, stacks, err := s.scan(turn, b, c.Pool, c.In[:s.states], c.In[s.states:], -1)
	if err != nil {
		return err
	}
	for i, x := range final {
		if err := give(c, i, x); err != nil {
			return err
		}
	}
	for k := range stacks {
		v := g.Values[max(0, g.Outputs[s.states+k])]
		if err := stacks[k].give(c, s.states+k, s.outAxes[k], s.outReversed[k] != 0, v); err != nil {
			return err
		}
	}
	return nil
}

// runScan8 implements version 8, in which every input has a batch axis 0 and sequences may
// end early.
func runScan8(c *op.Call, s *scanShape, g *graph.Graph, b op.Body) (err error) {
	data := c.In[1:]
	for _, x := range data {
		if x.Rank() == 0 || x.Shape[0] != data[0].Shape[0] {
			return errors.New("inputs differ in their batch axis")
		}
	}
	batch := data[0].Shape[0]
	var lens []int
	if c.Has(0) {
		if lens, err = op.Ints(c.In[0]); err != nil {
			return err
		}
		if len(lens) != batch {
			return fmt.Errorf("%d sequence lengths for a batch of %d", len(lens), batch)
		}
	}
	part := make([]func(int) *tensor.Tensor, len(data))
	for k, x := range data {
		if part[k], err = rows(c.Pool, x, 0); err != nil {
			return err
		}
	}
	out := make([]stack, s.states+s.outs)
	turn := begin(c.Env, true)
	defer turn.end()
	for i := range batch {
		one := make([]*tensor.Tensor, len(data))
		for k := range data {
			one[k] = part[k](i)
		}
		limit := -1
		if lens != nil {
			limit = max(0, lens[i])
		}
		final, stacks, err := s.scan(turn, b, c.Pool, one[:s.states], one[s.states:], limit)
		if err != nil {
			return err
		}
		for k, x := range final {
			out[k].push(x)
		}
		longest := one[s.states].Shape[0]
		for k := range stacks {
			y, err := padded(c.Pool, stacks[k].items, longest, g.Values[max(0, g.Outputs[s.states+k])])
			if err != nil {
				return err
			}
			out[s.states+k].push(y)
		}
	}
	for k := range out {
		if err := out[k].give(c, k, 0, false, g.Values[max(0, g.Outputs[k])]); err != nil {
			return err
		}
	}
	return nil
}

// padded joins items along a new first axis of n positions; missing ones are zero.
func padded(pool *workers.Pool, items []*tensor.Tensor, n int, v *graph.Value) (*tensor.Tensor, error) {
	t, shape := v.Type, v.Shape
	if len(items) > 0 && items[0] != nil {
		t, shape = items[0].Type, items[0].Shape
		for len(items) < n {
			items = append(items, tensor.New(t, slices.Clone(shape)...))
		}
	} else {
		n = 0
	}
	whole := slices.Insert(slices.Clone(shape), 0, n)
	if _, err := tensor.CheckShape(t, whole); err != nil {
		return nil, err
	}
	y := tensor.New(t, whole...)
	return y, join(pool, y, items, 0, false)
}
