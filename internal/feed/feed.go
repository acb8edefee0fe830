// Package feed makes the inputs of a run: from files, or by the deterministic
// generator, in the shapes that the model, the user and the batch size ask for.
package feed

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/npy"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/synth"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Options says what to feed. The zero value makes random inputs of seed 0.
type Options struct {
	Seed  uint64
	Zeros bool
	// Batch replaces the first dimension of inputs of rank 1 and more, 0 for none.
	Batch int
	// Shapes by input name.
	Shapes map[string][]int
	// Files of .npy by input name; their shape counts.
	Files map[string]string
	// Overrides adapts generated inputs.
	Overrides synth.Overrides
	// MaxBytes bounds the memory of all inputs, 0 for no limit.
	MaxBytes int
}

// defaultIndices is the generator's own bound of integers of 32 bits and more.
const defaultIndices = 100

// Source tells where an input came from: "random", "zeros" or "file".
type Source struct {
	Kind string
	File string
}

// Inputs makes the inputs of a graph, in its order.
func Inputs(g *graph.Graph, o Options) ([]*tensor.Tensor, []Source, error) {
	if err := names(g, o); err != nil {
		return nil, nil, err
	}
	ins := make([]*tensor.Tensor, len(g.Inputs))
	src := make([]Source, len(g.Inputs))
	for k, id := range g.Inputs {
		v := g.Values[id]
		var err error
		if ins[k], src[k], err = input(v, k, o, rowLimit(g, id)); err != nil {
			return nil, nil, of(v, err)
		}
		if o.MaxBytes > 0 {
			// Never 0, which would lift the limit for the inputs that follow.
			o.MaxBytes = max(1, o.MaxBytes-ins[k].Bytes())
		}
		if v.Quant != nil {
			ins[k].Quant = v.Quant
		}
	}
	return ins, src, nil
}

// of says which input an error is about, where it does not itself.
func of(v *graph.Value, err error) error {
	if _, ok := errors.AsType[*OptionError](err); ok {
		return err
	}
	return fmt.Errorf("input %q: %w", v.Name, err)
}

// Shapes returns the types and shapes of the inputs that [Inputs] would make, as
// tensors without elements.
func Shapes(g *graph.Graph, o Options) ([]*tensor.Tensor, error) {
	if err := names(g, o); err != nil {
		return nil, err
	}
	out := make([]*tensor.Tensor, len(g.Inputs))
	for k, id := range g.Inputs {
		v := g.Values[id]
		if _, ok := o.Files[v.Name]; ok {
			x, _, err := input(v, k, o, 0)
			if err != nil {
				return nil, of(v, err)
			}
			out[k] = &tensor.Tensor{Type: x.Type, Shape: x.Shape, Quant: v.Quant}
			continue
		}
		shape, err := shapeOf(v, o)
		if err != nil {
			return nil, of(v, err)
		}
		out[k] = &tensor.Tensor{Type: v.Type, Shape: shape, Elem: v.Elem, Quant: v.Quant}
	}
	return out, nil
}

// shapeOf is the shape that the options give an input.
func shapeOf(v *graph.Value, o Options) ([]int, error) {
	shape := synth.Shape(v)
	if d, ok := o.Overrides.Dims[v.Name]; ok {
		shape = slices.Clone(d)
	}
	if d, ok := o.Shapes[v.Name]; ok {
		if v.HasShape && len(d) != len(v.Shape) {
			return nil, optionError("shape", "input %q has rank %d (%s), and %s has rank %d", v.Name, len(v.Shape), tensor.FormatShape(v.Shape), tensor.FormatShape(d), len(d))
		}
		shape = slices.Clone(d)
	} else if o.Batch > 0 && len(shape) > 0 {
		shape[0] = o.Batch
	}
	return shape, afford(v.Type, shape, o.MaxBytes)
}

// OptionError tells that the options do not fit the model, which itself may be
// sound.
type OptionError struct {
	// Option is what does not fit: "shape", "input", "batch", "carry".
	Option string
	// Text says why and what would fit.
	Text string
}

// Error names the option and what would fit.
func (e *OptionError) Error() string { return e.Option + ": " + e.Text }

func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, args...)}
}

// names refuses options for inputs that the model does not have.
func names(g *graph.Graph, o Options) error {
	var known []string
	for _, id := range g.Inputs {
		known = append(known, g.Values[id].Name)
	}
	check := func(option, name string) error {
		if slices.Contains(known, name) {
			return nil
		}
		return optionError(option, "the model has no input %q; its inputs are %s", name, quoteAll(known))
	}
	for n := range o.Shapes {
		if err := check("shape", n); err != nil {
			return err
		}
	}
	for n := range o.Files {
		if err := check("input", n); err != nil {
			return err
		}
	}
	return nil
}

func quoteAll(s []string) string {
	q := make([]string, len(s))
	for i, v := range s {
		q[i] = strconv.Quote(v)
	}
	if len(q) == 0 {
		return "none"
	}
	return strings.Join(q, ", ")
}

// rowLimit is the number of rows of the smallest constant table that input id
// indexes directly, 0 when it indexes none. Larger random indices would make a
// model fail that runs well on real data.
func rowLimit(g *graph.Graph, id int) uint64 {
	var least uint64
	for _, n := range g.Nodes {
		table, index, axis := 0, 1, n.Attrs.Int("axis", 0)
		switch n.Op {
		case "Gather", "GATHER":
		case "EMBEDDING_LOOKUP":
			table, index, axis = 1, 0, 0
		default:
			continue
		}
		if len(n.Inputs) < 2 || n.Inputs[index] != id || n.Inputs[table] < 0 {
			continue
		}
		t := g.Values[n.Inputs[table]].Const
		if t == nil || axis < 0 || axis >= len(t.Shape) || t.Shape[axis] < 1 {
			continue
		}
		if d := uint64(t.Shape[axis]); least == 0 || d < least {
			least = d
		}
	}
	return least
}

func input(v *graph.Value, k int, o Options, rows uint64) (*tensor.Tensor, Source, error) {
	if file, ok := o.Files[v.Name]; ok {
		x, err := npy.ReadFile(file, func(t tensor.Type, shape []int) error { return afford(t, shape, o.MaxBytes) })
		if err != nil {
			return nil, Source{}, err
		}
		if v.Type != tensor.Invalid && x.Type != v.Type {
			return nil, Source{}, optionError("input", "%s holds %v, and input %q takes %v", file, x.Type, v.Name, v.Type)
		}
		return x, Source{Kind: "file", File: file}, nil
	}
	shape, err := shapeOf(v, o)
	if err != nil {
		return nil, Source{}, err
	}
	if o.Zeros {
		return tensor.New(v.Type, shape...), Source{Kind: "zeros"}, nil
	}
	var fill *synth.Fill
	if f, ok := o.Overrides.Fill[v.Name]; ok {
		fill = &f
	} else if rows > 0 && rows < defaultIndices {
		fill = &synth.Fill{Mod: rows}
	}
	x, err := synth.Tensor(v.Type, shape, o.Seed, k, fill)
	if err != nil {
		return nil, Source{}, optionError("input", "%q has to be given: %v", v.Name, err)
	}
	return x, Source{Kind: "random"}, nil
}

// afford refuses shapes that need more memory than there is.
func afford(t tensor.Type, shape []int, limit int) error {
	return (&op.Call{Limit: limit}).AffordTensor(t, shape)
}

// ParseShape reads "1x224x224x3" (also with commas); "scalar" is rank 0.
func ParseShape(s string) ([]int, error) {
	if s == "scalar" || s == "" {
		return []int{}, nil
	}
	parts := strings.Split(strings.ReplaceAll(s, ",", "x"), "x")
	out := make([]int, len(parts))
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a shape such as 1x224x224x3", s)
		}
		out[i] = n
	}
	return out, nil
}
