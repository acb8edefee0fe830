package device

import (
	"errors"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/device/firmware"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/profile"
)

// ProgramOptions configures [NewProgram].
type ProgramOptions struct {
	// Inputs are the shapes and the values that the program runs with. The values become part of
	// it.
	Inputs opmeter.Inputs
	// MaxMemory bounds the model's memory while it is planned, as in [opmeter.Options].
	MaxMemory int64
}

// Program is a quantised .tflite model as portable C99 without an operating system,
// allocation or library: kernels, weights, inputs, and the order in which the operators
// run. Its outputs equal those of an [opmeter.Session] with the same inputs bit for bit.
type Program struct {
	// Files holds the C sources by name. The functions of opmeter.h that they call are defined
	// elsewhere (docs/reference/agent.md), unless they are compiled with MODEL_NO_AGENT.
	Files map[string][]byte
	// ArenaBytes is the device memory of activations, state and workspaces, WeightBytes that of the
	// operators' constants, InputBytes that of the inputs.
	ArenaBytes, WeightBytes, InputBytes int64
	// Layers are the operators in the order in which they run, each by the index of its layer in a
	// profile of the model ([opmeter.Count]).
	Layers []int
	// Outputs are the model's outputs in its order, with the shapes that the program computes.
	Outputs []profile.Tensor
}

// UnsupportedError lists the operators that a [Program] cannot contain, one entry each.
type UnsupportedError struct {
	Layers []UnsupportedLayer
	text   string
}

// UnsupportedLayer is an operator without C kernel.
type UnsupportedLayer struct {
	Layer int    // index of the layer in a profile of the model
	Op    string // such as "CONV_2D"
	Text  string // what is missing
}

// Error names every operator, its layer and what is missing.
func (e *UnsupportedError) Error() string { return e.text }

// NewProgram makes a C program of a model. The error is an [opmeter.OptionError], an
// [UnsupportedError] if kernels are missing, or an [opmeter.ModelError].
func NewProgram(m *opmeter.Model, o ProgramOptions) (*Program, error) {
	if o.MaxMemory < 0 {
		return nil, wrong("MaxMemory", "use 0 or more, not %d", o.MaxMemory)
	}
	in := bridge.Of(m)
	f, err := bridge.Feed(&o.Inputs, in)
	if err != nil {
		return nil, err
	}
	if f.MaxBytes, err = in.MemoryLimit(o.MaxMemory); err != nil {
		return nil, bridge.Failed(in.Graph.Path, err)
	}
	id, err := in.Identity()
	if err != nil {
		return nil, bridge.Failed(in.Graph.Path, err)
	}
	var p *firmware.Program
	err = in.Reading(func() error {
		ins, _, err := inputs.Inputs(in.Graph, f)
		if err != nil {
			return err
		}
		p, err = firmware.Generate(in.Graph, firmware.Options{Inputs: ins, SHA256: id.File, MaxBytes: f.MaxBytes})
		return err
	})
	if e, ok := errors.AsType[*firmware.UnsupportedError](err); ok {
		out := &UnsupportedError{text: in.Graph.Path + ": " + e.Error()}
		for _, x := range e.Problems {
			out.Layers = append(out.Layers, UnsupportedLayer{x.Layer, x.Op, x.Text})
		}
		return nil, out
	}
	if err != nil {
		return nil, bridge.Failed(in.Graph.Path, err)
	}
	out := &Program{Files: p.Files, ArenaBytes: p.ArenaBytes, WeightBytes: p.WeightBytes, InputBytes: p.InputBytes}
	for _, x := range p.Ops {
		out.Layers = append(out.Layers, x.Layer)
	}
	for i, x := range p.Outputs {
		t := profile.Tensor{Name: x.Name}
		if id := in.Graph.Main().Outputs[i]; id >= 0 {
			t = describe.Port(in.Graph.Main(), id, &tensor.Tensor{Type: x.Type, Shape: x.Shape, Quant: in.Graph.Main().Values[id].Quant})
		}
		out.Outputs = append(out.Outputs, t)
	}
	return out, nil
}
