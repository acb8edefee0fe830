// Package firmware writes a quantised TFLite model as a portable C program. Operators become
// calls of the integer kernels of firmware/kernels, weights become constant tables, and
// activations share one planned arena. The outputs of the program are bit-exact with the
// engine's.
//
// The definition of an operator comes from the prepared engine: either as a recipe of numbers
// (internal/runtime/tfliteop/recipe), or by probing the prepared operator, which gives tables of
// 8-bit functions and the element permutation of data movement. So no multiplier, table or shape
// is computed a second time here.
package firmware

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// Options configures the generated program.
type Options struct {
	// Inputs are the input data of the program, in the order of the model's inputs; the program
	// is specialised for their shapes.
	Inputs []*tensor.Tensor
	// SHA256 is the hash of the model file in hexadecimal digits, stored in [Program]; may be
	// empty.
	SHA256 string
	// MaxBytes limits the memory for planning, 0 for no limit.
	MaxBytes int
}

// Program is a model as C.
type Program struct {
	// Files holds the sources by name: model.h, model.c, model_data.h, model_data.c, the required
	// kernels, and opmeter.h.
	Files map[string][]byte
	// Name of the model.
	Name string
	// ArenaBytes is the memory for activations, state and scratch. WeightBytes is the size of the
	// operators' constants, InputBytes of the embedded inputs.
	ArenaBytes, WeightBytes, InputBytes int64
	// Ops are the operators that the program runs, in order.
	Ops []Op
	// Inputs and Outputs are in the model's order.
	Inputs, Outputs []Port
}

// Op is an operator of a program.
type Op struct {
	Layer int    // index of the layer in a profile of the model
	Op    string // such as "CONV_2D"
}

// Port is an input or output of a program.
type Port struct {
	Name  string
	Type  tensor.Type
	Shape []int
	Bytes int
}

// Problem is an operator that cannot be generated.
type Problem struct {
	Layer int    // index of the layer in a profile of the model
	Op    string // with its domain
	Text  string // what is missing
}

// UnsupportedError lists all operators of a model that cannot be generated.
type UnsupportedError struct{ Problems []Problem }

// Error names every operator, its layer and what is missing.
func (e *UnsupportedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no C program can be made of %d of the model's operators:", len(e.Problems))
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  layer %d, %s: %s", p.Layer, p.Op, p.Text)
	}
	return b.String()
}

// Generate converts a model to a program. The error is an [UnsupportedError] if the kernels lack
// something, and the engine's if the model cannot be planned. Like the engine, it must be called
// under [mapped.Guard] if the model is in a mapped file.
func Generate(m *graph.Model, o Options) (*Program, error) {
	if m.Format != "tflite" {
		return nil, fmt.Errorf("a C program can be made of quantised .tflite models, this one is %s", m.Format)
	}
	s, err := engine.New(m, o.Inputs, engine.Options{Registry: operators.Registry(), Threads: 1, MaxBytes: o.MaxBytes})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	g := &generator{m: m, g: m.Main(), s: s, layers: layers(m, s), values: map[int]*value{}, constants: map[int]*datum{}, needs: map[string]bool{}, known: map[string]*datum{}}
	g.lower(s.Tasks(), o.Inputs)
	if len(g.problems) > 0 {
		return nil, &UnsupportedError{g.problems}
	}
	g.place()
	return g.program(o)
}

// layers returns for every node of the main graph its index in the list of layers, which also
// contains the layers of nested graphs.
func layers(m *graph.Model, s *engine.Session) []plan.Slot {
	out := make([]plan.Slot, len(m.Main().Nodes))
	for i, slot := range plan.List(m, s.GraphSteps) {
		if slot.Graph == 0 {
			slot.Parent = i // reused for the index in the list
			out[slot.Node.Index] = slot
		}
	}
	return out
}
