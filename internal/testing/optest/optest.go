// Package optest runs single operators in tests, through the same three stages
// as the engine but without a graph around them.
package optest

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Node describes the operator to run.
type Node struct {
	Domain, Op string
	Version    int
	Attrs      graph.Attrs
	Outputs    int           // number of outputs, 1 if 0
	OutTypes   []tensor.Type // declared types of outputs, where the operator needs them
	OutQuant   []*tensor.Quant
	Const      []bool // which inputs are constants of the model; nil: none
	Exact      bool   // see op.Call
	Threads    int    // workers, 2 if 0
}

// Env is a bare op.Env: state is a map, bodies are given.
type Env struct {
	Bodies map[int]op.Body
	Vars   map[string]any
}

// Body implements op.Env.
func (e *Env) Body(g int) (op.Body, error) {
	if b := e.Bodies[g]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("no body %d", g)
}

// State implements op.Env.
func (e *Env) State(k string) any { return e.Vars[k] }

// SetState implements op.Env.
func (e *Env) SetState(k string, v any) {
	if e.Vars == nil {
		e.Vars = map[string]any{}
	}
	e.Vars[k] = v
}

// Turn implements op.Env: loops of tests end.
func (e *Env) Turn(time.Time, bool) error { return nil }

// Hold implements op.Env.
func (e *Env) Hold(int, bool) error { return nil }

// Run infers, prepares and runs the operator once.
func Run(defs []op.Def, n Node, in ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	return RunEnv(&Env{}, defs, n, in...)
}

// RunEnv is Run with an environment that outlives the call.
func RunEnv(env op.Env, defs []op.Def, n Node, in ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	def := op.NewRegistry(defs).Find(n.Domain, n.Op, n.Version)
	if def == nil {
		return nil, op.Unknown(n.Version)
	}
	g := &graph.Graph{}
	node := &graph.Node{Domain: n.Domain, Op: n.Op, Version: n.Version, Attrs: n.Attrs}
	c := &op.Call{Model: &graph.Model{Graphs: []*graph.Graph{g}}, Graph: g, Node: node, In: in, Exact: n.Exact, Pool: workers.New(cmp.Or(n.Threads, 2), nil)}
	defer c.Pool.Close()
	for i, x := range in {
		id := -1
		if x != nil {
			v := &graph.Value{ID: len(g.Values), Type: x.Type, Shape: x.Shape, HasShape: true, Quant: x.Quant}
			if i < len(n.Const) && n.Const[i] {
				v.Const = x
			}
			id = v.ID
			g.Values = append(g.Values, v)
		}
		node.Inputs = append(node.Inputs, id)
	}
	for i := range max(n.Outputs, 1) {
		t := &tensor.Tensor{}
		if i < len(n.OutTypes) {
			t.Type = n.OutTypes[i]
		}
		if i < len(n.OutQuant) {
			t.Quant = n.OutQuant[i]
		}
		g.Values = append(g.Values, &graph.Value{ID: len(g.Values), Type: t.Type, Quant: t.Quant})
		node.Outputs = append(node.Outputs, len(g.Values)-1)
		c.Out = append(c.Out, t)
	}
	err := def.Infer(c)
	free := errors.Is(err, op.ErrDynamic)
	if err != nil && !free {
		return nil, err
	}
	c.Env = env
	var rooms op.Workspace
	rooms.Begin(c)
	run, err := def.Prepare(c)
	if err != nil {
		return nil, err
	}
	rooms.End()
	rooms.Poison()
	if !free {
		for _, t := range c.Out {
			if _, err := tensor.CheckShape(t.Type, t.Shape); err != nil {
				return nil, err
			}
			t.Alloc()
		}
	}
	if err := run(c); err != nil {
		return nil, err
	}
	return c.Out, nil
}
