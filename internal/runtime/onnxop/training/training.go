// Package training implements the operators of ONNX's training domain: one step of an optimiser,
// and derivatives of arithmetic.
package training

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

var floats = []tensor.Type{tensor.Float32, tensor.Float64}

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		optimiser("Adagrad", 3, adagrad),
		optimiser("Momentum", 3, momentum),
		optimiser("Adam", 4, adam),
		{Domain: graph.ONNXTraining, Name: "Gradient", Since: 1, Infer: inferGradient, Prepare: prepareGradient},
	}
}

// step updates one element. s holds its value, its gradient and the accumulated values; the new
// value and accumulations are written to s[0] and s[2:].
type step func(s *[4]float64)

// optimiser makes a definition whose inputs are the learning rate, the count of updates and lists
// of the given number of parts. Outputs are the same lists without the gradients.
func optimiser(name string, parts int, prepare func(c *op.Call, rate float64, updates int64) (step, error)) op.Def {
	return op.Def{
		Domain: graph.ONNXTraining, Name: name, Since: 1, Types: floats,
		Infer: func(c *op.Call) error { return infer(c, parts) },
		Prepare: op.Simple(func(c *op.Call) error {
			rate, err := tensor.All[float64](c.In[0])
			if err != nil {
				return err
			}
			f, err := prepare(c, rate[0], tensor.Single[int64](c.In[1]))
			if err != nil {
				return err
			}
			n := (len(c.In) - 2) / parts
			for i := range n {
				if c.In[2+i].Type == tensor.Float32 {
					apply[float32](c, i, n, parts, f)
				} else {
					apply[float64](c, i, n, parts, f)
				}
			}
			return nil
		}),
	}
}

func infer(c *op.Call, parts int) error {
	n := (len(c.In) - 2) / parts
	if n < 1 || 2+n*parts != len(c.In) || len(c.Out) > n*(parts-1) {
		return fmt.Errorf("%d inputs and %d outputs do not fit lists of %d parts", len(c.In), len(c.Out), parts)
	}
	if err := c.NeedInputs(len(c.In)); err != nil {
		return err
	}
	if c.In[0].Len() != 1 || !slices.Contains(floats, c.In[0].Type) || c.In[1].Len() != 1 || c.In[1].Type != tensor.Int64 {
		return fmt.Errorf("learning rate is %v and update count %v", c.In[0].Type, c.In[1].Type)
	}
	for i := range n {
		x := c.In[2+i]
		if !slices.Contains(floats, x.Type) {
			return op.Unsupported("training of %v", x.Type)
		}
		for k := 1; k < parts; k++ {
			if y := c.In[2+k*n+i]; y.Type != x.Type || !slices.Equal(y.Shape, x.Shape) {
				return fmt.Errorf("inputs %d and %d differ in type or shape", 2+i, 2+k*n+i)
			}
		}
		for k := range parts - 1 {
			c.SetOut(k*n+i, x.Type, slices.Clone(x.Shape))
		}
	}
	return nil
}

// apply updates every element of the i-th of n tensors.
func apply[T float32 | float64](c *op.Call, i, n, parts int, f step) {
	var in, out [4][]T
	for k := range parts {
		in[k] = tensor.Of[T](c.In[2+k*n+i])
	}
	for k, to := 0, 0; k < parts; k++ {
		if k == 1 {
			continue // the gradient is not an output
		}
		if c.Wants(to*n + i) {
			out[k] = tensor.Of[T](c.Out[to*n+i])
		}
		to++
	}
	c.Pool.For(len(in[0]), 1<<14, func(lo, hi int) {
		var s [4]float64
		for j := lo; j < hi; j++ {
			for k := range parts {
				s[k] = float64(in[k][j])
			}
			f(&s)
			for k := range parts {
				if out[k] != nil {
					out[k][j] = T(s[k])
				}
			}
		}
	})
}

func attr(c *op.Call, name string, def float32) float64 {
	return float64(c.Node.Attrs.Float(name, def))
}

func adagrad(c *op.Call, rate float64, updates int64) (step, error) {
	norm, eps := attr(c, "norm_coefficient", 0), attr(c, "epsilon", 1e-6)
	r := rate / (1 + float64(updates)*attr(c, "decay_factor", 0))
	return func(s *[4]float64) {
		g := norm*s[0] + s[1]
		s[2] += g * g
		s[0] -= r * g / (math.Sqrt(s[2]) + eps)
	}, nil
}

func momentum(c *op.Call, rate float64, updates int64) (step, error) {
	norm, alpha, beta := attr(c, "norm_coefficient", 0), attr(c, "alpha", 0), attr(c, "beta", 0)
	if updates <= 0 {
		beta = 1
	}
	var nesterov bool
	switch mode := c.Node.Attrs.Str("mode", ""); mode {
	case "standard":
	case "nesterov":
		nesterov = true
	default:
		return nil, fmt.Errorf("mode is %q", mode)
	}
	return func(s *[4]float64) {
		g := norm*s[0] + s[1]
		s[2] = alpha*s[2] + beta*g
		if nesterov {
			s[0] -= rate * (g + alpha*s[2])
		} else {
			s[0] -= rate * s[2]
		}
	}, nil
}

func adam(c *op.Call, rate float64, updates int64) (step, error) {
	alpha, beta := attr(c, "alpha", 0.9), attr(c, "beta", 0.999)
	norm, post, eps := attr(c, "norm_coefficient", 0), attr(c, "norm_coefficient_post", 0), attr(c, "epsilon", 1e-6)
	r := rate
	if updates > 0 {
		t := float64(updates)
		r *= math.Sqrt(1-math.Pow(beta, t)) / (1 - math.Pow(alpha, t))
	}
	return func(s *[4]float64) {
		g := norm*s[0] + s[1]
		s[2] = alpha*s[2] + (1-alpha)*g
		s[3] = beta*s[3] + (1-beta)*g*g
		s[0] = (1 - post) * (s[0] - r*s[2]/(math.Sqrt(s[3])+eps))
	}, nil
}

// array is a value of the differentiated graph.
type array struct {
	shape []int
	v     []float64
}

func arrayOf(x *tensor.Tensor) (*array, error) {
	v, err := tensor.All[float64](x)
	return &array{x.Shape, v}, err
}

// rule computes an element of an operator's result and its derivatives by the operands. Operands
// that the operator does not have are zero.
type rule struct {
	operands int
	f        func(a, b float64) (y, da, db float64)
}

// rules lists the operators that Gradient supports: arithmetic, with broadcasting. Others are
// refused by name.
var rules = map[string]rule{
	"Identity": {1, func(a, _ float64) (y, da, db float64) { return a, 1, 0 }},
	"Neg":      {1, func(a, _ float64) (y, da, db float64) { return -a, -1, 0 }},
	"Add":      {2, func(a, b float64) (y, da, db float64) { return a + b, 1, 1 }},
	"Sub":      {2, func(a, b float64) (y, da, db float64) { return a - b, 1, -1 }},
	"Mul":      {2, func(a, b float64) (y, da, db float64) { return a * b, b, a }},
	"Div":      {2, func(a, b float64) (y, da, db float64) { return a / b, 1 / b, -a / (b * b) }},
}

// path is the part of a graph that Gradient differentiates: the nodes between xs, zs and y in
// execution order, and the values that its inputs replace.
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
	// Backward: a node is needed if a later needed node reads it.
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

// at returns the element that is broadcast to element i of a shape.
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
