package golden

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/synth"
)

// Run is a model in the engine with all values kept.
type Run struct {
	Model   *graph.Model
	Session *engine.Session
}

// FindModel returns the path of a model by its file name.
func FindModel(models, name string) (string, error) {
	for _, dir := range []string{"real", "tflite_ops", "mltk", "mcu"} {
		if p := filepath.Join(models, dir, name); exists(p) {
			return p, nil
		}
	}
	return "", fmt.Errorf("model %s is not in the material", name)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// Open plans a model for inputs of seed 1.
func Open(file string, o synth.Overrides) (*Run, error) {
	m, err := tflite.Open(file)
	if err != nil {
		return nil, err
	}
	in, err := synth.Inputs(m.Main(), 1, o)
	if err != nil {
		return nil, err
	}
	return Start(m, in)
}

// Start plans a model for given inputs.
func Start(m *graph.Model, in []*tensor.Tensor) (*Run, error) {
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), KeepAll: true, Threads: 2})
	if err != nil {
		return nil, err
	}
	return &Run{Model: m, Session: s}, nil
}

// Outputs are the main graph's outputs after a run, nil for one that was not computed.
func (r *Run) Outputs() []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(r.Model.Main().Outputs))
	for i := range out {
		if t := r.Session.Output(i); t.Known() {
			out[i] = t
		}
	}
	return out
}

// Once computes one inference.
func (r *Run) Once() error { return r.Session.Run(context.Background()) }

// Close releases the model.
func (r *Run) Close() error {
	r.Session.Close()
	if r.Model.Close != nil {
		return r.Model.Close()
	}
	return nil
}

// Trouble tells in one line which operators do not run and why, "" when all do.
// Operators that only lack an input are left out.
func (r *Run) Trouble() string {
	why := map[string]int{}
	steps := r.Session.Steps()
	for g := range r.Model.Graphs {
		if g > 0 {
			steps = append(steps, r.Session.BodySteps(g)...)
		}
	}
	for _, s := range steps {
		if s.State == engine.Unsupported || s.State == engine.Failed {
			text := strings.TrimPrefix(fmt.Sprint(s.Err), "not supported: ")
			if !strings.Contains(text, s.Node.Key()) {
				text = s.Node.Key() + ": " + text
			}
			why[text]++
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(why)) {
		if why[k] > 1 {
			k = fmt.Sprintf("%s (%d)", k, why[k])
		}
		out = append(out, k)
	}
	return strings.Join(out, "; ")
}

// kindOf sorts models by the rule that their results must follow.
type kindOf uint8

const (
	plainFloat kindOf = iota // floating point, whatever type the weights are stored in
	hybrid                   // float activations with integer weights: engines differ by design
	quantised                // integer activations
)

// String returns the kind's name.
func (k kindOf) String() string { return [...]string{"float", "hybrid", "quantised"}[k] }

// kind looks at the operators of all graphs.
func kind(m *graph.Model) kindOf {
	k := plainFloat
	small := func(t tensor.Type) bool {
		switch t {
		case tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int4, tensor.Int2, tensor.Uint4:
			return true
		}
		return false
	}
	for _, g := range m.Graphs {
		for _, n := range g.Nodes {
			if n.Op == "DEQUANTIZE" && len(n.Inputs) > 0 && g.Values[n.Inputs[0]].Const != nil {
				continue
			}
			var float, weights bool
			for i, id := range n.Inputs {
				if id < 0 {
					continue
				}
				v := g.Values[id]
				if v.Const == nil && v.Quant != nil && small(v.Type) {
					return quantised
				}
				float = float || i == 0 && v.Type == tensor.Float32
				weights = weights || v.Const != nil && v.Quant != nil && small(v.Type)
			}
			if float && weights {
				k = hybrid
			}
		}
	}
	return k
}

// errorText makes errors short enough for a table.
func errorText(err error) string {
	var ne *engine.NodeError
	if errors.As(err, &ne) {
		err = ne
	}
	s := strings.ReplaceAll(err.Error(), "\n", " ")
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return s
}
