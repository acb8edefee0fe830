package opmeter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/ab/worker"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/profile"
)

// Timer times a loaded model in short blocks of inferences. Programs that compare alternatives
// interleave the blocks of their processes. It is for one goroutine, locked to its thread.
type Timer struct {
	timer  worker.Timer
	close  func()
	inputs []string
}

// TimedBlock is what [Timer.Block] measures.
type TimedBlock = ab.Block

// NewTimer loads a model for an engine. Of the options it uses Inputs, Threads, Carry, Exact,
// MaxLoop, MaxMemory and Engine. Errors are an [OptionError], a [ModelError] or an engine.Error. A
// model most of whose work does not run is refused: its time would be that of the rest.
func NewTimer(ctx context.Context, m *Model, o Options) (*Timer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if isProgram(o.Engine) {
		return nil, wrong("Engine", "tflm=PROGRAM has no timer: compare two such programs as commands")
	}
	if o.Engine != nil {
		return m.externalTimer(ctx, o)
	}
	s, err := NewSession(m, RunOptions{
		Inputs: o.Inputs, Threads: o.Threads, Carry: o.Carry, Exact: o.Exact, MaxLoop: o.MaxLoop, MaxMemory: o.MaxMemory,
	})
	if err != nil {
		return nil, err
	}
	if err := s.whole(o.Inputs); err != nil {
		s.Close()
		return nil, err
	}
	var inputs []string
	for _, x := range s.Inputs() {
		shape := make([]int64, len(x.Shape))
		for i, d := range x.Shape {
			shape[i] = int64(d)
		}
		inputs = append(inputs, profile.ShapeText(shape))
	}
	return &Timer{&worker.Function{Run: func() error { return s.Run(ctx) }, Parallel: o.Threads > 1}, s.Close, inputs}, nil
}

// whole returns an error where most of the work of the model does not run.
func (s *Session) whole(in Inputs) error {
	if !slices.ContainsFunc(s.s.Steps(), func(st engine.Step) bool { return st.State == engine.Unsupported || st.State == engine.Failed }) {
		return nil
	}
	p, err := Count(s.m, in)
	if err != nil {
		return err
	}
	if layers, most := p.Unrun(); most {
		l := &p.Layers[layers[0]]
		return failed(s.m.in.Graph.Path, fmt.Errorf("%d of %d layers do not run, the first is #%d %s: no latency for the model", len(layers), len(p.Layers), layers[0], l.Op))
	}
	return nil
}

// Inputs returns the shapes of the model's inputs, such as "1x3x32x32".
func (t *Timer) Inputs() []string { return t.inputs }

// Warm runs the model until its latency is steady.
func (t *Timer) Warm(ctx context.Context) error { return t.timer.Warm(ctx) }

// Block times inferences for about a duration.
func (t *Timer) Block(ctx context.Context, d time.Duration) (TimedBlock, error) {
	return t.timer.Block(ctx, d)
}

// Close ends the engine.
func (t *Timer) Close() { t.close() }

// externalTimer loads a model in an external engine.
func (m *Model) externalTimer(ctx context.Context, o Options) (*Timer, error) {
	o.SkipPeaks = true
	h, err := o.host(m)
	if err != nil {
		return nil, err
	}
	g, clean, err := m.externalOptions(&o, h, nil)
	if err != nil {
		return nil, failed(m.in.Graph.Path, err)
	}
	var inputs []string
	for i := range g.Model.Model.Inputs {
		inputs = append(inputs, profile.ShapeText(g.Model.Model.Inputs[i].Shape))
	}
	t, err := external.NewTimer(ctx, g)
	if err != nil {
		clean()
		return nil, engineError(m.in.Graph.Path, o.Engine.Name, err)
	}
	return &Timer{t, func() {
		t.Close()
		clean()
	}, inputs}, nil
}
