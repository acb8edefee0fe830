// Package inputs provides the inputs of a run, from files or from the deterministic generator, in
// the shapes that the model, the user and the batch size determine.
//
// Integers that represent shapes, lengths, indices and the like (see package inputuse) get values
// that are valid for the model. Each input records how it was chosen.
package inputs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputuse"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/synth"
)

// Options selects the inputs. The zero value generates random inputs with seed 0.
type Options struct {
	Seed  uint64
	Zeros bool
	// Batch replaces the first dimension of inputs of rank 1 and more, 0 for none. If the
	// dimension with that name is in another position, it replaces that one.
	Batch int
	// Shapes by input name.
	Shapes map[string][]int
	// Dims by the names that the file gives to open dimensions.
	Dims map[string]int
	// Files are .npy files by input name; they determine the shape.
	Files map[string]string
	// Overrides adapts generated inputs.
	Overrides synth.Overrides
	// Iterations sets how often loops run by the name of their layer, where nothing is run.
	Iterations map[string]int64
	// MaxBytes bounds the memory of all inputs together where they have elements, 0 for no limit.
	MaxBytes int
}

// Source says how an input was chosen.
type Source struct {
	// Kind is "random", "zeros", "file", or "made" for elements that follow from their use in the
	// model.
	Kind string
	// File is the path of a file.
	File string
	// Use is what the model requires of the elements: of elements that are made, and of random
	// ones that have to be small.
	Use *inputuse.Use
	// Assumed marks open dimensions without a given size, which were set to 1 or to the value
	// that the file stores for them. Nil for none.
	Assumed []bool
}

// Inputs makes the inputs of a model's main graph, in its order.
func Inputs(m *graph.Model, o Options) ([]*tensor.Tensor, []Source, error) {
	g := m.Main()
	o, err := byValue(m, o)
	if err != nil {
		return nil, nil, err
	}
	ins, src, err := Shapes(m, o)
	if err != nil {
		return nil, nil, err
	}
	if err := affordAll(g, ins, o.MaxBytes); err != nil {
		return nil, nil, err
	}
	for k, id := range g.Inputs {
		v := g.Values[id]
		if ins[k].Known() {
			continue // read from a file, or generated for its use
		}
		if ins[k], err = generate(v, ins[k].Shape, k, &src[k], o); err != nil {
			return nil, nil, wrapInputError(v, err)
		}
		if v.Quant != nil {
			ins[k].Quant = v.Quant
		}
	}
	return ins, src, nil
}

// Shapes returns the types and shapes of the inputs that [Inputs] would make, as tensors without
// elements, except those that come from files or determine shapes.
func Shapes(m *graph.Model, o Options) ([]*tensor.Tensor, []Source, error) {
	g := m.Main()
	o, err := byValue(m, o)
	if err != nil {
		return nil, nil, err
	}
	if err := checkNames(g, o); err != nil {
		return nil, nil, err
	}
	ins, src := make([]*tensor.Tensor, len(g.Inputs)), make([]Source, len(g.Inputs))
	for k, id := range g.Inputs {
		v := g.Values[id]
		file, ok := o.Files[v.Name]
		if !ok {
			continue
		}
		x, err := npy.ReadFile(file, func(t tensor.Type, shape []int) error { return afford(t, shape, o.MaxBytes, 0) })
		if err != nil {
			return nil, nil, wrapInputError(v, err)
		}
		if v.Type != tensor.Invalid && x.Type != v.Type {
			return nil, nil, optionError("input", "%s holds %v, and input %q takes %v", file, x.Type, v.Name, v.Type)
		}
		ins[k], src[k] = x, Source{Kind: "file", File: file}
	}
	d, err := solve(g, o, ins)
	if err != nil {
		return nil, nil, err
	}
	for k, id := range g.Inputs {
		v := g.Values[id]
		if ins[k] == nil {
			shape, assumed, err := d.shape(v, o)
			if err == nil {
				err = afford(v.Type, shape, 0, 0)
			}
			if err != nil {
				return nil, nil, wrapInputError(v, err)
			}
			ins[k] = &tensor.Tensor{Type: v.Type, Shape: shape, Elem: v.Elem}
			src[k] = Source{Kind: "random", Assumed: assumed}
			// Lengths and the like determine shapes.
			if _, ok := o.Overrides.Fill[v.Name]; ok && isWideInt(v.Type) && tensor.Elements(shape) <= maxGiven {
				if ins[k], err = generate(v, shape, k, &src[k], o); err != nil {
					return nil, nil, wrapInputError(v, err)
				}
			}
		}
		ins[k].Quant = v.Quant
	}
	if err := makeValid(m, ins, src, o); err != nil {
		return nil, nil, err
	}
	return ins, src, nil
}

// maxGiven is the number of elements up to which integers that the overrides give have elements in
// [Shapes].
const maxGiven = 64

// affordAll rejects inputs that need more memory together than the limit.
func affordAll(g *graph.Graph, ins []*tensor.Tensor, limit int) error {
	if limit <= 0 {
		return nil
	}
	left := limit
	for k, x := range ins {
		if !x.Known() {
			if err := afford(x.Type, x.Shape, left, limit-left); err != nil {
				return wrapInputError(g.Values[g.Inputs[k]], err)
			}
		}
		// Never 0, which would remove the limit for the inputs that follow.
		n, _ := tensor.CheckShape(x.Type, x.Shape)
		left = max(1, left-max(x.Type.Bytes(n), x.Held()))
	}
	return nil
}

// wrapInputError adds the name of the input to an error that does not have it yet.
func wrapInputError(v *graph.Value, err error) error {
	if _, ok := errors.AsType[*OptionError](err); ok {
		return err
	}
	return fmt.Errorf("input %q: %w", v.Name, err)
}

// OptionError reports options that do not match the model. The model itself may be valid.
type OptionError struct {
	// Option is the option that does not match: "shape", "dim", "input", "batch", "carry".
	Option string
	// Text states the reason and the valid values.
	Text string
}

// Error returns the option and the text.
func (e *OptionError) Error() string { return e.Option + ": " + e.Text }

func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, args...)}
}

// byValue replaces the names that a signature of a TFLite file gives to inputs by those of the
// graph. A name of the graph comes before that of a signature.
func byValue(m *graph.Model, o Options) (Options, error) {
	if len(m.Signatures) == 0 {
		return o, nil
	}
	var err error
	if o.Shapes, err = rename(m, "shape", o.Shapes); err == nil {
		o.Files, err = rename(m, "input", o.Files)
	}
	return o, err
}

// rename is byValue for the values of one option.
func rename[T any](m *graph.Model, option string, all map[string]T) (map[string]T, error) {
	g := m.Main()
	own := func(n string) bool {
		return slices.ContainsFunc(g.Inputs, func(id int) bool { return g.Values[id].Name == n })
	}
	out := make(map[string]T, len(all))
	for n, x := range all {
		to := n
		if !own(n) {
			to = m.InputOf(n)
		}
		if _, twice := all[to]; twice && to != n {
			return nil, optionError(option, "%q and %q are the same input: give one of them", n, to)
		}
		out[to] = x
	}
	return out, nil
}

// checkNames rejects options for inputs that the model does not have.
func checkNames(g *graph.Graph, o Options) error {
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
	for n, d := range o.Shapes {
		for _, id := range g.Inputs {
			if v := g.Values[id]; v.Name == n && v.HasShape && len(d) != len(v.Shape) {
				return optionError("shape", "input %q has rank %d (%s), and %s has rank %d", n, len(v.Shape), tensor.FormatShape(v.Shape), tensor.FormatShape(d), len(d))
			}
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

// generate makes input k with the generator.
func generate(v *graph.Value, shape []int, k int, src *Source, o Options) (*tensor.Tensor, error) {
	if o.Zeros {
		src.Kind = "zeros"
		return tensor.New(v.Type, shape...), nil
	}
	var fill *synth.Fill
	if f, ok := o.Overrides.Fill[v.Name]; ok {
		fill = &f
	} else if src.Use != nil && src.Use.Below > 0 {
		fill = &synth.Fill{Mod: uint64(src.Use.Below)}
	}
	x, err := synth.Tensor(v.Type, shape, o.Seed, k, fill)
	if err != nil {
		if v.Type.IsContainer() { // files cannot contain containers
			return nil, err
		}
		return nil, optionError("input", "%q has to be given: %v", v.Name, err)
	}
	return x, nil
}

// afford rejects shapes that need more memory than the limit; others have used held bytes of it.
func afford(t tensor.Type, shape []int, limit, held int) error {
	return (&op.Call{Limit: limit, Held: held}).AffordTensor(t, shape)
}
