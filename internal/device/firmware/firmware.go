// Package firmware writes a quantised TFLite model as a portable C program: its
// operators as calls of the integer kernels of firmware/kernels, its weights as
// constant tables, its activations in one planned arena. The outputs of the program are
// those of the engine bit for bit.
//
// What an operator computes comes from the engine that has prepared it: as a recipe of
// numbers (internal/runtime/tfliteop/recipe), or by asking the prepared operator itself, which
// gives the tables of functions of 8-bit values and the ways that moved elements go. So
// no multiplier, table or shape is worked out a second time here.
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

// Options says what to make a program of.
type Options struct {
	// Inputs are the elements that the program gets, in the order of the model's inputs;
	// their shapes are those that it is made for.
	Inputs []*tensor.Tensor
	// SHA256 of the model's file in hexadecimal digits, for [Program] to carry; may be
	// empty.
	SHA256 string
	// MaxBytes bounds the memory for planning, 0 for no limit.
	MaxBytes int
}

// Program is a model as C.
type Program struct {
	// Files holds the sources by name: model.h, model.c, model_data.h, model_data.c, the
	// kernels that they need, and opmeter.h.
	Files map[string][]byte
	// Name of the model.
	Name string
	// ArenaBytes is the memory for activations, state and scratch, WeightBytes what the
	// constants of the operators take, InputBytes the embedded inputs.
	ArenaBytes, WeightBytes, InputBytes int64
	// Ops are the operators that the program runs, in order.
	Ops []Op
	// Inputs and Outputs follow those of the model.
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

// Problem is an operator for which there is no C.
type Problem struct {
	Layer int    // index of the layer in a profile of the model
	Op    string // with its domain
	Text  string // what is missing
}

// UnsupportedError lists all operators of a model for which there is no C.
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

// Generate makes a program of a model. The error is an [UnsupportedError] where the
// kernels lack something, and one of the engine where the model cannot be planned. Like
// the engine it is called under [mapped.Guard] where the model lies in a mapped file.
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

// layers gives for every node of the main graph its place in the list of layers, which
// has those of nested graphs in between.
func layers(m *graph.Model, s *engine.Session) []plan.Slot {
	out := make([]plan.Slot, len(m.Main().Nodes))
	for i, slot := range plan.List(m, s.GraphSteps) {
		if slot.Graph == 0 {
			slot.Parent = i // of no more use: the place in the list
			out[slot.Node.Index] = slot
		}
	}
	return out
}
