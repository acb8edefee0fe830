// Package step prepares one decode of a language model, for benchmarks of the engine alone.
package step

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// Step is a prepared decode.
type Step struct {
	*engine.Session
	Model  *graph.Model
	Inputs []*tensor.Tensor
}

// Decode prepares a decode of one token at a depth, which writes the caches in place.
func Decode(file string, depth, threads int) (*Step, error) {
	m, err := modelfile.Open(file)
	if err == nil {
		err = m.Complete()
	}
	if err != nil {
		return nil, err
	}
	l, err := llm.Detect(m, llm.Setup{})
	if err != nil {
		return nil, err
	}
	o, err := l.Feed(inputs.Options{}, llm.Phase{Batch: 1, Tokens: 1, Depth: depth, Buffers: true})
	if err != nil {
		return nil, err
	}
	in, _, err := inputs.Inputs(m, o)
	if err != nil {
		return nil, err
	}
	var pairs []engine.Carry
	for _, c := range l.Caches {
		pairs = append(pairs, engine.Carry{Output: c.Output, Input: c.Input})
	}
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Threads: threads, InPlace: pairs, Held: engine.InputBytes(in)})
	if err != nil {
		return nil, err
	}
	return &Step{s, m, in}, nil
}
