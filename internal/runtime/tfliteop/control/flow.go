package control

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def { return slices.Concat(flowDefs(), variableDefs(), tableDefs(), randomDefs()) }

func flowDefs() []op.Def {
	lite := func(name string, infer func(c *op.Call) error, prepare func(c *op.Call) (op.Run, error)) op.Def {
		// A subgraph may hold variables, so that no call of one is ever folded.
		return op.Def{Domain: graph.TFLite, Name: name, Infer: infer, Prepare: prepare, Stateful: true}
	}
	return []op.Def{
		lite("IF", inferDeclared, prepareIf),
		lite("STABLEHLO_CASE", inferDeclared, prepareCase),
		lite("WHILE", inferDynamic, prepareWhile),
		lite("STABLEHLO_WHILE", inferDynamic, prepareWhile),
		lite("CALL", inferDeclared, prepareCall("subgraph")),
		lite("STABLEHLO_COMPOSITE", inferDeclared, prepareCall("decomposition_subgraph_index")),
		lite("CALL_ONCE", func(*op.Call) error { return nil }, prepareCallOnce),
	}
}

func inferDynamic(*op.Call) error { return op.ErrDynamic }

// inferDeclared uses the shapes that the file declares for the outputs if the inputs have their
// declared shapes. Otherwise the shapes are determined at run time.
func inferDeclared(c *op.Call) error {
	for i, x := range c.In {
		if x == nil {
			continue
		}
		if v := c.Graph.Values[c.Node.Inputs[i]]; !fixed(v) || !slices.Equal(v.Shape, x.Shape) || v.Type != x.Type {
			return op.ErrDynamic
		}
	}
	for i := range c.Out {
		if c.Wants(i) && !fixed(c.Graph.Values[c.Node.Outputs[i]]) {
			return op.ErrDynamic
		}
	}
	for i := range c.Out {
		if c.Wants(i) {
			v := c.Graph.Values[c.Node.Outputs[i]]
			c.SetOut(i, v.Type, slices.Clone(v.Shape))
		}
	}
	return nil
}

// fixed reports whether a value's type and shape are fully declared.
func fixed(v *graph.Value) bool {
	return v.HasShape && v.Type != tensor.Invalid && !slices.ContainsFunc(v.Shape, func(d int) bool { return d < 0 })
}

// body returns the runner of the graph that an attribute names.
func body(c *op.Call, attr string) (op.Body, error) {
	g, ok := c.Node.Attrs.Graph(attr)
	if !ok {
		return nil, fmt.Errorf("attribute %s is missing", attr)
	}
	return c.Env.Body(g)
}

// call runs a graph that is not a turn of a loop, and hands its results out. Graphs that
// call others twice each, some levels deep, run as often as an endless loop.
func (h handed) call(c *op.Call, b op.Body, in []*tensor.Tensor) error {
	if err := c.Env.Turn(time.Time{}, true); err != nil {
		return err
	}
	out, err := b.Run(in)
	if err != nil {
		return err
	}
	return h.put(c, out)
}

// handed is memory of results that a node returns: that of the last run, where it suffices.
type handed []struct {
	data  []byte
	shape []int
}

// copy makes y a copy of result i, which it keeps the memory of.
func (h handed) copy(i int, y, r *tensor.Tensor) {
	q := y.Quant
	defer func() { y.Quant = cmp.Or(q, y.Quant) }()
	if r.Data == nil || r.Type == tensor.String || r.Type.IsContainer() || r.Type == tensor.Resource {
		*y = *r.Clone()
		return
	}
	*y = *r
	k := &h[i]
	if !slices.Equal(k.shape, r.Shape) {
		k.shape = slices.Clone(r.Shape)
	}
	if y.Shape = k.shape; cap(k.data) < len(r.Data) || k.data == nil {
		y.Alloc()
		k.data = y.Data
	}
	y.Data = k.data[:len(r.Data)]
	copy(y.Data, r.Data)
}

// put hands copies of the results of a subgraph out.
func (h handed) put(c *op.Call, results []*tensor.Tensor) error {
	if len(results) != len(c.Out) {
		return fmt.Errorf("subgraph has %d outputs, the operator %d", len(results), len(c.Out))
	}
	for i, r := range results {
		if !c.Wants(i) {
			continue
		}
		y := c.Out[i]
		switch {
		case r == nil:
			return fmt.Errorf("output %d of the subgraph is absent", i)
		case !y.Known() || y.Type == tensor.Invalid:
			h.copy(i, y, r)
		case y.Type != r.Type || !slices.Equal(y.Shape, r.Shape):
			return fmt.Errorf("output %d of the subgraph is %v %s where %v %s is declared", i,
				r.Type, tensor.FormatShape(r.Shape), y.Type, tensor.FormatShape(y.Shape))
		case y.Type == tensor.String || y.Type == tensor.Resource:
			y.Strings = slices.Clone(r.Strings)
		default:
			copy(y.Data, r.Data)
		}
	}
	return nil
}

// truth reads a condition of one element.
func truth(x *tensor.Tensor) (bool, error) {
	if x == nil || x.Type != tensor.Bool || len(x.Data) != 1 {
		return false, fmt.Errorf("condition is not a single bool")
	}
	return x.Data[0] != 0, nil
}

func prepareIf(c *op.Call) (op.Run, error) {
	if err := c.NeedInputs(1); err != nil {
		return nil, err
	}
	yes, err := body(c, "then_subgraph_index")
	if err != nil {
		return nil, err
	}
	no, err := body(c, "else_subgraph_index")
	if err != nil {
		return nil, err
	}
	h := make(handed, len(c.Out))
	return func(c *op.Call) error {
		b := no
		t, err := truth(c.In[0])
		if err != nil {
			return err
		}
		if t {
			b = yes
		}
		return h.call(c, b, c.In[1:])
	}, nil
}

// prepareCase takes the last branch for an index that is out of range.
func prepareCase(c *op.Call) (op.Run, error) {
	if err := c.NeedInputs(1); err != nil {
		return nil, err
	}
	refs, _ := c.Node.Attrs["branch_subgraph_indices"].([]graph.GraphRef)
	if len(refs) == 0 {
		for _, g := range c.Node.Attrs.Ints("branch_subgraph_indices") {
			refs = append(refs, graph.GraphRef(g))
		}
	}
	var branches []op.Body
	for _, g := range refs {
		b, err := c.Env.Body(int(g))
		if err != nil {
			return nil, err
		}
		branches = append(branches, b)
	}
	if len(branches) == 0 {
		return nil, fmt.Errorf("no branches")
	}
	h := make(handed, len(c.Out))
	return func(c *op.Call) error {
		at, err := op.Ints(c.In[0])
		if err != nil {
			return err
		}
		if len(at) != 1 {
			return fmt.Errorf("index has %d elements", len(at))
		}
		i := at[0]
		if i < 0 || i >= len(branches) {
			i = len(branches) - 1
		}
		return h.call(c, branches[i], c.In[1:])
	}, nil
}

func prepareWhile(c *op.Call) (op.Run, error) {
	cond, err := body(c, "cond_subgraph_index")
	if err != nil {
		return nil, err
	}
	step, err := body(c, "body_subgraph_index")
	if err != nil {
		return nil, err
	}
	h := make(handed, len(c.Out))
	return func(c *op.Call) error {
		state := c.In
		began := time.Now()
		for {
			if err := c.Env.Turn(began, false); err != nil {
				return err
			}
			out, err := cond.Run(state)
			if err != nil {
				return err
			}
			if len(out) != 1 {
				return fmt.Errorf("condition has %d outputs", len(out))
			}
			again, err := truth(out[0])
			if err != nil {
				return err
			}
			if !again {
				break
			}
			if state, err = step.Run(state); err != nil {
				return err
			}
		}
		return h.put(c, state)
	}, nil
}

func prepareCall(attr string) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		b, err := body(c, attr)
		if err != nil {
			return nil, err
		}
		h := make(handed, len(c.Out))
		return func(c *op.Call) error { return h.call(c, b, c.In) }, nil
	}
}

// prepareCallOnce runs the subgraph in the first inference of a session only.
func prepareCallOnce(c *op.Call) (op.Run, error) {
	g, ok := c.Node.Attrs.Graph("init_subgraph_index")
	if !ok {
		return nil, fmt.Errorf("attribute init_subgraph_index is missing")
	}
	b, err := c.Env.Body(g)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("call_once/%d", g)
	env := c.Env
	return func(*op.Call) error {
		if env.State(key) != nil {
			return nil
		}
		if _, err := b.Run(nil); err != nil {
			return err
		}
		env.SetState(key, true)
		return nil
	}, nil
}
