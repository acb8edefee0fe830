package plan

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// MalformedError reports the node that breaks a rule of its format that holds for any input. The
// model is rejected, as every runtime would.
type MalformedError struct {
	Graph int
	Node  *graph.Node
	Err   error // wraps [op.ErrMalformed]
}

// Error returns graph, index, operator and name of the node, then the cause.
func (e *MalformedError) Error() string {
	where, name := "", ""
	if e.Graph > 0 {
		where = fmt.Sprintf("graph %d ", e.Graph)
	}
	if e.Node.Name != "" {
		name = fmt.Sprintf(" %q", e.Node.Name)
	}
	return fmt.Sprintf("%snode %d (%s%s): %v", where, e.Node.Index, e.Node.Key(), name, e.Err)
}

// Unwrap returns the cause.
func (e *MalformedError) Unwrap() error { return e.Err }

// Malformed returns an error for the first node of the graph, or of the bodies planned with it,
// that breaks a rule of its format; nil if all are valid.
func (g *Graph) Malformed() error {
	if g.malformed != nil {
		return g.malformed
	}
	if g.bodies != nil && g.bodies.malformed != nil {
		return g.bodies.malformed
	}
	return nil
}

// validate checks the task's inputs, attributes and declared outputs against the operator's
// schema, before elements are read, and records the output types that follow. Nodes that a pass
// has created are not checked.
func (g *Graph) validate(i int) error {
	t := &g.Tasks[i]
	if t.Node != g.File.Nodes[i] {
		return nil
	}
	in := t.Call.In
	if slices.ContainsFunc(in, untyped) {
		in = slices.Clone(in)
		for k, x := range in {
			if untyped(x) {
				in[k] = &tensor.Tensor{Type: g.types[t.Node.Inputs[k]]}
			}
		}
	}
	if g.model.Format != "gguf" { // its reader makes nodes that are right, with zero points in float32
		if err := g.opts.Registry.Check(t.Node, in, t.Call.Out); err != nil {
			return err
		}
	}
	if !g.model.ONNX() {
		return nil // operators use the declared types themselves
	}
	for k, made := range g.opts.Registry.OutputTypes(t.Node, in) {
		id := t.Node.Outputs[k]
		if id < 0 {
			continue
		}
		if err := g.matchesDeclared(k, id, made); err != nil {
			return err
		}
		if g.types[id] = made; made == tensor.Invalid {
			g.types[id] = g.File.Values[id].Type
		}
	}
	return nil
}

func untyped(x *tensor.Tensor) bool { return x != nil && x.Type == tensor.Invalid }

// validateOutputs fails if the task's outputs differ from what the file declares.
func (g *Graph) validateOutputs(i int) error {
	t := &g.Tasks[i]
	if !g.model.ONNX() || t.Node != g.File.Nodes[i] {
		return nil
	}
	for k, x := range t.Call.Out {
		if x == nil {
			continue
		}
		if err := g.matchesDeclared(k, t.Node.Outputs[k], x.Type); err != nil {
			return err
		}
	}
	return nil
}

// matchesDeclared compares the type of output k of a task, the value id, with the file's
// declaration.
func (g *Graph) matchesDeclared(k, id int, made tensor.Type) error {
	declared := g.File.Values[id].Type
	if made == tensor.Invalid || declared == tensor.Invalid || made == declared || declared == tensor.Optional {
		return nil
	}
	return op.Malformed("output %d is declared as %v and computed as %v", k, declared, made)
}

// remarkLimit bounds the remarks on one model.
const remarkLimit = 8

// newestOpset is the newest version of ONNX's operator set in the table of operators.
const newestOpset = 28

// Remarks lists attributes of the file that no operator reads, one sentence each.
func (p *Plan) Remarks() []string {
	var out []string
	if v := p.Model.Opsets[graph.ONNX]; p.Model.ONNX() && v > newestOpset {
		out = append(out, fmt.Sprintf("The model is of opset %d, newer than %d: operators that changed since then are computed by their older definition.", v, newestOpset))
	}
	for _, g := range p.Model.Graphs {
		for _, n := range g.Nodes {
			for _, a := range p.Main.opts.Registry.UnknownAttributes(n) {
				if len(out) == remarkLimit {
					return append(out, "More nodes have attributes that their operators do not have.")
				}
				out = append(out, fmt.Sprintf("Node %d (%s) has an attribute %q, which the operator does not have: it is ignored.", n.Index, n.Key(), a))
			}
		}
	}
	return out
}
