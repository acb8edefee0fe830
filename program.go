package opmeter

import (
	"errors"

	"github.com/opmeter/opmeter/internal/device/firmware"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/profile"
)

// ProgramOptions says how a [Program] is made.
type ProgramOptions struct {
	// Inputs says what the program is fed with, and in which shapes it runs. The
	// elements become part of it.
	Inputs Inputs
	// MaxMemory bounds the model's memory while it is planned, as in [Options].
	MaxMemory int64
}

// Program is a quantised .tflite model as portable C99 without an operating system,
// allocation or library: kernels, weights, inputs, and the order in which the operators
// run. Its outputs are those of a [Session] with the same inputs, bit for bit.
type Program struct {
	// Files holds the C sources by name. What they call of opmeter.h has to be defined
	// elsewhere (docs/reference/agent.md), unless they are compiled with MODEL_NO_AGENT.
	Files map[string][]byte
	// ArenaBytes is the memory of the device that activations, state and scratch take,
	// WeightBytes what the constants of the operators take, InputBytes the inputs.
	ArenaBytes, WeightBytes, InputBytes int64
	// Layers are the operators that it runs, in order, each by the index of its layer in
	// a profile of the model ([Count]).
	Layers []int
	// Outputs follow the model's, with the shapes that the program makes.
	Outputs []profile.Tensor
}

// UnsupportedError lists what keeps a model from becoming a [Program], one entry an
// operator.
type UnsupportedError struct {
	Layers []UnsupportedLayer
	text   string
}

// UnsupportedLayer is an operator for which there is no C.
type UnsupportedLayer struct {
	Layer int    // index of the layer in a profile of the model
	Op    string // such as "CONV_2D"
	Text  string // what is missing
}

// Error names every operator, its layer and what is missing.
func (e *UnsupportedError) Error() string { return e.text }

// NewProgram makes a C program of a model. The error is an [OptionError] for options
// that suit no model, an [UnsupportedError] where kernels are missing, or a
// [ModelError].
func NewProgram(m *Model, o ProgramOptions) (*Program, error) {
	if o.MaxMemory < 0 {
		return nil, wrong("MaxMemory", "use 0 or more, not %d", o.MaxMemory)
	}
	f, err := o.Inputs.feed(m)
	if err != nil {
		return nil, err
	}
	f.MaxBytes = m.memory(o.MaxMemory)
	id, err := m.identity()
	if err != nil {
		return nil, failed(m.g.Path, err)
	}
	var p *firmware.Program
	err = m.reading(func() error {
		ins, _, err := inputs.Inputs(m.g, f)
		if err != nil {
			return err
		}
		p, err = firmware.Generate(m.g, firmware.Options{Inputs: ins, SHA256: id.File, MaxBytes: f.MaxBytes})
		return err
	})
	if e, ok := errors.AsType[*firmware.UnsupportedError](err); ok {
		out := &UnsupportedError{text: m.g.Path + ": " + e.Error()}
		for _, x := range e.Problems {
			out.Layers = append(out.Layers, UnsupportedLayer{x.Layer, x.Op, x.Text})
		}
		return nil, out
	}
	if err != nil {
		return nil, failed(m.g.Path, err)
	}
	out := &Program{Files: p.Files, ArenaBytes: p.ArenaBytes, WeightBytes: p.WeightBytes, InputBytes: p.InputBytes}
	for _, x := range p.Ops {
		out.Layers = append(out.Layers, x.Layer)
	}
	for i, x := range p.Outputs {
		t := profile.Tensor{Name: x.Name}
		if id := m.g.Main().Outputs[i]; id >= 0 {
			t = describe.Port(m.g.Main(), id, &tensor.Tensor{Type: x.Type, Shape: x.Shape, Quant: m.g.Main().Values[id].Quant})
		}
		out.Outputs = append(out.Outputs, t)
	}
	return out, nil
}
