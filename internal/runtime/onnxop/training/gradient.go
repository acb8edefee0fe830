package training

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// array is a value while it is differentiated.
type array struct {
	shape []int
	v     []float64
}

func arrayOf(x *tensor.Tensor) (*array, error) {
	v, err := tensor.All[float64](x)
	return &array{x.Shape, v}, err
}

// rule gives an element of an operator's result and its derivatives by the
// operands. Operands that the operator does not have are zero.
type rule struct {
	operands int
	f        func(a, b float64) (y, da, db float64)
}

// rules lists the operators that Gradient goes through: arithmetic, with
// broadcasting. Others are refused by name.
var rules = map[string]rule{
	"Identity": {1, func(a, _ float64) (y, da, db float64) { return a, 1, 0 }},
	"Neg":      {1, func(a, _ float64) (y, da, db float64) { return -a, -1, 0 }},
	"Add":      {2, func(a, b float64) (y, da, db float64) { return a + b, 1, 1 }},
	"Sub":      {2, func(a, b float64) (y, da, db float64) { return a - b, 1, -1 }},
	"Mul":      {2, func(a, b float64) (y, da, db float64) { return a * b, b, a }},
	"Div":      {2, func(a, b float64) (y, da, db float64) { return a / b, 1 / b, -a / (b * b) }},
}

// path is what a Gradient node differentiates: the nodes between xs, zs and y, in
// the order in which they run, and the values that stand for its inputs.
type path struct {
	g     *graph.Graph
	nodes []*graph.Node
	given []int // values of xs, then of zs
	xs    int
	y     int
}

func pathOf(c *op.Call) (*path, error) {
	xs, zs, y := c.Node.Attrs.Strs("xs"), c.Node.Attrs.Strs("zs"), c.Node.Attrs.Str("y", "")
	p := &path{g: c.Graph, xs: len(xs)}
	ids := map[string]int{}
	for _, v := range c.Graph.Values {
		ids[v.Name] = v.ID
	}
	for _, name := range append(slices.Concat(xs, zs), y) {
		id, ok := ids[name]
		if !ok {
			return nil, fmt.Errorf("graph has no value %q", name)
		}
		p.given = append(p.given, id)
	}
	p.y = p.given[len(p.given)-1]
	p.given = p.given[:len(p.given)-1]
	if len(c.In) != len(p.given) || len(c.Out) > len(xs) {
		return nil, fmt.Errorf("%d inputs and %d outputs for %d differentiated and %d other values", len(c.In), len(c.Out), len(xs), len(zs))
	}
	// Walking backward, a node matters when a later one that matters reads it.
	need := map[int]bool{p.y: !slices.Contains(p.given, p.y)}
	for i := min(c.Node.Index, len(c.Graph.Nodes)) - 1; i >= 0; i-- {
		n := c.Graph.Nodes[i]
		if len(n.Outputs) == 0 || !need[n.Outputs[0]] {
			continue
		}
		r, ok := rules[n.Op]
		if !ok || n.Domain != graph.ONNX || len(n.Inputs) != r.operands || slices.Contains(n.Inputs, -1) {
			return nil, op.Unsupported("derivative of %s", n.Key())
		}
		delete(need, n.Outputs[0])
		for _, id := range n.Inputs {
			if !slices.Contains(p.given, id) && c.Graph.Values[id].Const == nil {
				need[id] = true
			}
		}
		p.nodes = append(p.nodes, n)
	}
	for id, open := range need {
		if open {
			return nil, fmt.Errorf("%q depends on %q, which is not given", y, c.Graph.Values[id].Name)
		}
	}
	slices.Reverse(p.nodes)
	return p, nil
}

func inferGradient(c *op.Call) error {
	if len(c.In) == 0 {
		return errors.New("there is no input")
	}
	if err := c.NeedInputs(len(c.In)); err != nil {
		return err
	}
	p, err := pathOf(c)
	if err != nil {
		return err
	}
	for i := range p.xs {
		if !c.In[i].Type.IsNumber() || !c.In[i].Type.IsFloat() {
			return op.Unsupported("derivative by %v", c.In[i].Type)
		}
		c.SetOut(i, c.In[i].Type, slices.Clone(c.In[i].Shape))
	}
	return nil
}

func prepareGradient(c *op.Call) (op.Run, error) {
	p, err := pathOf(c)
	if err != nil {
		return nil, err
	}
	return p.run, nil
}

// run computes the values forward and the derivatives of the sum of y backward.
func (p *path) run(c *op.Call) error {
	vals, grads := map[int]*array{}, map[int]*array{}
	for i, id := range p.given {
		a, err := arrayOf(c.In[i])
		if err != nil {
			return err
		}
		vals[id] = a
	}
	operands := func(n *graph.Node) (a, b *array, err error) {
		ab := [2]*array{1: {v: []float64{0}}}
		for k, id := range n.Inputs {
			if vals[id] == nil {
				if vals[id], err = arrayOf(p.g.Values[id].Const); err != nil {
					return nil, nil, err
				}
			}
			ab[k] = vals[id]
		}
		return ab[0], ab[1], nil
	}
	for _, n := range p.nodes {
		a, b, err := operands(n)
		if err != nil {
			return err
		}
		shape, err := tensor.Broadcast(a.shape, b.shape)
		if err != nil {
			return err
		}
		y := &array{shape, make([]float64, tensor.Elements(shape))}
		for i := range y.v {
			y.v[i], _, _ = rules[n.Op].f(a.v[a.at(i, shape)], b.v[b.at(i, shape)])
		}
		vals[n.Outputs[0]] = y
	}
	grad := func(id int) *array {
		if grads[id] == nil {
			grads[id] = &array{vals[id].shape, make([]float64, len(vals[id].v))}
		}
		return grads[id]
	}
	for i := range grad(p.y).v {
		grad(p.y).v[i] = 1
	}
	for _, n := range slices.Backward(p.nodes) {
		a, b, err := operands(n)
		if err != nil {
			return err
		}
		up := grad(n.Outputs[0])
		for i, g := range up.v {
			ia, ib := a.at(i, up.shape), b.at(i, up.shape)
			_, da, db := rules[n.Op].f(a.v[ia], b.v[ib])
			grad(n.Inputs[0]).v[ia] += g * da
			if len(n.Inputs) > 1 {
				grad(n.Inputs[1]).v[ib] += g * db
			}
		}
	}
	for i, y := range c.Out {
		if y != nil {
			g := grad(p.given[i]).v
			tensor.Fill(y, func(k int) float64 { return g[k] })
		}
	}
	return nil
}

// at is the element that is broadcast to element i of a shape.
func (a *array) at(i int, shape []int) int {
	o, stride := 0, 1
	for k := len(shape) - 1; k >= len(shape)-len(a.shape); k-- {
		d := a.shape[k-len(shape)+len(a.shape)]
		if d != 1 {
			o += i % shape[k] * stride
		}
		stride *= d
		i /= shape[k]
	}
	return o
}
