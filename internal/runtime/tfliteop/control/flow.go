// Package control implements TFLite's control flow, calls of subgraphs, resources (variables and
// hash tables) and random numbers: operators that use services of the engine.
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
func Defs() []op.Def {
	var all []op.Def
	add := func(name string, infer func(c *op.Call) error, prepare func(c *op.Call) (op.Run, error)) {
		all = append(all, op.Def{Domain: graph.TFLite, Name: name, Infer: infer, Prepare: prepare})
	}
	add("VAR_HANDLE", inferHandle, prepareHandle)
	add("HASHTABLE", inferHandle, op.Simple(runHashtable))
	stateless := len(all)
	add("READ_VARIABLE", op.Needs(1, inferRead), prepareRead)
	add("ASSIGN_VARIABLE", op.Needs(2, inferNothing), prepareAssign)
	add("HASHTABLE_IMPORT", op.Needs(3, inferImport), op.Simple(runImport))
	add("HASHTABLE_FIND", op.Needs(3, inferFind), op.Simple(runFind))
	add("HASHTABLE_SIZE", op.Needs(1, inferSize), op.Simple(runSize))
	add("RANDOM_UNIFORM", op.Needs(1, inferRandom), prepareRandom(uniform))
	add("RANDOM_STANDARD_NORMAL", op.Needs(1, inferRandom), prepareRandom(normal))
	add("MULTINOMIAL", op.Needs(2, inferMultinomial), prepareMultinomial)
	// A subgraph may hold variables, so calls are never folded.
	add("IF", op.Needs(1, inferDeclared), prepareIf)
	add("STABLEHLO_CASE", op.Needs(1, inferDeclared), prepareCase)
	add("WHILE", inferDynamic, prepareWhile)
	add("STABLEHLO_WHILE", inferDynamic, prepareWhile)
	add("CALL", inferDeclared, prepareCall("subgraph"))
	add("STABLEHLO_COMPOSITE", inferDeclared, prepareCall("decomposition_subgraph_index"))
	add("CALL_ONCE", inferNothing, prepareCallOnce)
	for i := range all[stateless:] {
		all[stateless+i].Stateful = true
	}
	return all
}

func inferDynamic(*op.Call) error { return op.ErrDynamic }

func inferNothing(*op.Call) error { return nil }

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

// bodies returns the runners of the graphs that attributes name.
func bodies(c *op.Call, attrs ...string) (list []op.Body, err error) {
	for _, attr := range attrs {
		g, ok := c.Node.Attrs.Graph(attr)
		if !ok {
			return nil, fmt.Errorf("attribute %s is missing", attr)
		}
		b, err := c.Env.Body(g)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// call runs a graph that is not an iteration of a loop and copies its results to the outputs.
// Graphs that call others twice each, some levels deep, run as often as an endless loop.
func (h results) call(c *op.Call, b op.Body, in []*tensor.Tensor) error {
	if err := c.Env.Turn(time.Time{}, true); err != nil {
		return err
	}
	out, err := b.Run(in)
	if err != nil {
		return err
	}
	return h.put(c, out)
}

// results is the memory of the results of a node: that of the last run, if it suffices.
type results []struct {
	data  []byte
	shape []int
}

// copy makes y a copy of result i in memory that h keeps.
func (h results) copy(i int, y, r *tensor.Tensor) {
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

// put copies the results of a subgraph to the outputs.
func (h results) put(c *op.Call, from []*tensor.Tensor) error {
	if len(from) != len(c.Out) {
		return fmt.Errorf("subgraph has %d outputs, the operator %d", len(from), len(c.Out))
	}
	for i, r := range from {
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
	branches, err := bodies(c, "then_subgraph_index", "else_subgraph_index")
	if err != nil {
		return nil, err
	}
	h := make(results, len(c.Out))
	return func(c *op.Call) error {
		t, err := truth(c.In[0])
		if err != nil {
			return err
		}
		b := branches[1]
		if t {
			b = branches[0]
		}
		return h.call(c, b, c.In[1:])
	}, nil
}

// prepareCase takes the last branch for an index that is out of range.
func prepareCase(c *op.Call) (op.Run, error) {
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
	h := make(results, len(c.Out))
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
	graphs, err := bodies(c, "cond_subgraph_index", "body_subgraph_index")
	if err != nil {
		return nil, err
	}
	cond, step := graphs[0], graphs[1]
	h := make(results, len(c.Out))
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
				return h.put(c, state)
			}
			if state, err = step.Run(state); err != nil {
				return err
			}
		}
	}, nil
}

func prepareCall(attr string) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		b, err := bodies(c, attr)
		if err != nil {
			return nil, err
		}
		h := make(results, len(c.Out))
		return func(c *op.Call) error { return h.call(c, b[0], c.In) }, nil
	}
}

// prepareCallOnce runs the subgraph in the first inference of a session only.
func prepareCallOnce(c *op.Call) (op.Run, error) {
	const attr = "init_subgraph_index"
	b, err := bodies(c, attr)
	if err != nil {
		return nil, err
	}
	g, _ := c.Node.Attrs.Graph(attr)
	key, env := fmt.Sprintf("call_once/%d", g), c.Env
	return func(*op.Call) error {
		if env.State(key) != nil {
			return nil
		}
		if _, err := b[0].Run(nil); err != nil {
			return err
		}
		env.SetState(key, true)
		return nil
	}, nil
}
