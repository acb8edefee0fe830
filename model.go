package opmeter

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/profile"
)

// Model is an open model. Its weights are views into the file: it must stay open, and the file
// unchanged, while it is in use. It is safe for concurrent use.
type Model struct {
	in    *bridge.Model
	parts parts
}

func init() {
	bridge.Of = func(m any) *bridge.Model { return m.(*Model).in }
	bridge.Feed = func(in any, m *bridge.Model) (inputs.Options, error) { return in.(*Inputs).feed(m) }
	bridge.Failed = failed
	bridge.Joined = func(m, in any) (*profile.Profile, error) { return m.(*Model).count(in.(Inputs), true) }
	bridge.Estimate = func(m any, t *chip.Target, o any) (*profile.Profile, error) {
		return m.(*Model).estimate(t, o.(EstimateOptions))
	}
}

// Open reads a .tflite, .onnx, .gguf, .litertlm or .mltk.zip file, or builds the network that a .yaml file describes.
// The content of the file decides its format, not the name. Weights are mapped, not copied: if the
// file changes while the model is in use, the next use returns a [ModelError] that wraps
// [ErrChanged]. If the external data of an ONNX model is missing, only [Count] works: other uses
// return the error. The error is a [ModelError].
//
// A folder with the files of one language model is that model: its genai_config.json or config.json
// says how its inputs are named and how long they may be. The model is the decoder. [Phases] also run
// the encoder, and the decoder for the first tokens where it has a file of its own.
func Open(path string) (*Model, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		if m, err := OpenParts(path); m != nil || err != nil {
			return m, err
		}
	}
	return openFile(path)
}

// OpenParts opens one language model in several files: a folder as [Open] describes it, or an encoder
// and a decoder, or decoders without and with caches, as their names say: "encoder_model.onnx",
// "decoder_with_past_model.onnx". A config.json beside the decoder is read. The model is nil without
// an error if these are other models.
func OpenParts(paths ...string) (*Model, error) {
	find := func() (*llm.Files, error) { return llm.Group(paths) }
	if len(paths) == 1 {
		find = func() (*llm.Files, error) { return llm.Folder(paths[0]) }
	}
	f, err := find()
	if err != nil {
		return nil, modelError(strings.Join(paths, " "), err)
	}
	if f == nil {
		return nil, nil //nolint:nilnil // these are other models
	}
	return openParts(f)
}

func openFile(path string) (*Model, error) {
	t := time.Now()
	g, err := modelfile.OpenShapes(path)
	if err != nil {
		return nil, modelError(path, err)
	}
	return &Model{in: bridge.NewModel(g, nil, time.Since(t))}, nil
}

// OpenBytes reads a model from memory; data must not change while the model is in use. The name
// stands for that of a file: its extension tells a description from a model. External data of ONNX
// models cannot be read. The error is a [ModelError].
func OpenBytes(name string, data []byte) (*Model, error) {
	t := time.Now()
	g, err := modelfile.Parse(name, data)
	if err != nil {
		return nil, modelError(name, err)
	}
	return &Model{in: bridge.NewModel(g, data, time.Since(t))}, nil
}

// Close releases the file, at the latest when work that was stopped has ended. The model must not
// be used afterwards.
func (m *Model) Close() error { return errors.Join(m.in.Close(), m.parts.close()) }

// Format is "tflite", "onnx" or "gguf".
func (m *Model) Format() string { return m.in.Graph.Format }

// Name is the path or name that the model was opened with.
func (m *Model) Name() string { return m.in.Graph.Path }

// Signatures lists the signatures of a TFLite file, of which each graph has its first; nil for
// none. An inference runs the file's first graph unless [Model.Select] chooses another.
func (m *Model) Signatures() (keys []string) {
	for _, e := range m.in.Graph.Entries() {
		keys = append(keys, e.Keys[0])
	}
	return keys
}

// Select makes the graph of a signature the one that inferences run. Call it before any other use
// of the model. The error is an [OptionError].
func (m *Model) Select(signature string) error {
	g, err := m.in.Graph.Select(signature)
	if err != nil {
		return &OptionError{Option: "signature", Text: err.Error()}
	}
	if g != m.in.Graph {
		m.in = bridge.NewModel(g, g.Content, m.in.Load)
	}
	return nil
}

// Inputs lists the model's inputs: name, element type and shape, with -1 for dimensions that the
// file leaves open.
func (m *Model) Inputs() []profile.Tensor {
	return declared(m.in.Graph.Main(), m.in.Graph.Main().Inputs)
}

// Outputs lists the model's outputs like [Model.Inputs]. The shape is nil if the file does not
// declare it.
func (m *Model) Outputs() []profile.Tensor {
	return declared(m.in.Graph.Main(), m.in.Graph.Main().Outputs)
}

func declared(g *graph.Graph, ids []int) []profile.Tensor {
	out := make([]profile.Tensor, 0, len(ids))
	for _, id := range ids {
		if id >= 0 {
			out = append(out, describe.Port(g, id, nil))
		}
	}
	return out
}
