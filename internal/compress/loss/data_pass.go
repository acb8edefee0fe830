package loss

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// withOutputs returns a model with other values as outputs.
func withOutputs(m *graph.Model, ids []int) *graph.Model {
	g := *m.Main()
	g.Outputs = ids
	out := weights.WithMain(m, &g)
	out.Signatures = nil
	return out
}

// runPass runs a model over samples and passes the values of ids to f after each run. f must copy
// what it keeps.
func runPass(ctx context.Context, m *graph.Model, data *samples.Set, ids []int, threads int, f func(run int, v values) error) error {
	return runPassBySet(ctx, m, data, [][]int{ids}, threads, func(run, _ int, v values) error { return f(run, v) })
}

// runPassBySet passes each of several sets of values to f as soon as it is complete, so that
// fewer of them are in memory at once.
func runPassBySet(ctx context.Context, m *graph.Model, data *samples.Set, sets [][]int, threads int, f func(run, set int, v values) error) error {
	g := m.Main()
	var outs []int
	watch := make([][]int, len(sets))
	made := map[int]bool{}
	for i, ids := range sets {
		for _, id := range ids {
			if g.Values[id].Const != nil || slices.Contains(g.Inputs, id) {
				continue
			}
			watch[i] = append(watch[i], id)
			if !made[id] {
				made[id], outs = true, append(outs, id)
			}
		}
	}
	if data.Runs() == 0 {
		return nil
	}
	if len(outs) == 0 && len(g.Outputs) > 0 {
		outs = g.Outputs[:1]
	}
	var s *engine.Session
	run := 0
	var failed error
	seen := func(set int) error {
		failed = f(run, set, func(id int) *tensor.Tensor {
			if id < 0 {
				return nil
			}
			if c := g.Values[id].Const; c != nil {
				return c
			}
			if k := slices.Index(g.Inputs, id); k >= 0 {
				return data.Inputs(run)[k]
			}
			if !made[id] {
				return nil
			}
			return withQuant(s.Value(id), g.Values[id])
		})
		return failed
	}
	o := engine.Options{Registry: operators.Registry(), Threads: threads, Watch: watch, Seen: seen}
	s, err := newSession(withOutputs(m, outs), data.Inputs(0), data, o)
	if err != nil {
		return err
	}
	defer s.Close()
	err = runEach(ctx, s, m, data, func(done int) error {
		run = done + 1
		return nil
	})
	return cmp.Or(failed, err)
}

// newSession makes a session that is bounded by the memory of the data's job. A node that has no
// memory is an error: outputs without it do not describe the model.
func newSession(m *graph.Model, ins []*tensor.Tensor, data *samples.Set, o engine.Options) (*engine.Session, error) {
	o.MaxBytes, o.Held = data.Memory()
	s, err := engine.New(m, ins, o)
	if err != nil || o.MaxBytes == 0 {
		return s, err
	}
	for _, st := range s.Steps() {
		if _, ok := errors.AsType[*op.LimitError](st.Err); ok {
			s.Close()
			return nil, &engine.NodeError{Graph: st.Graph, Node: st.Node, Err: st.Err}
		}
	}
	return s, nil
}

// statefulOps are parts of the names of operators with variables, resources or random numbers.
var statefulOps = []string{"Random", "RANDOM", "Bernoulli", "Multinomial", "MULTINOMIAL", "Dropout", "VAR_HANDLE", "SVDF"}

// stateful reports whether a run may depend on the previous one.
func stateful(m *graph.Model) bool {
	return slices.ContainsFunc(m.Graphs, func(g *graph.Graph) bool {
		return slices.ContainsFunc(g.Values, func(v *graph.Value) bool { return v.Variable || v.Type == tensor.Resource }) ||
			slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool {
				return slices.ContainsFunc(statefulOps, func(word string) bool { return strings.Contains(n.Op, word) })
			})
	})
}

// runEach runs a session of a model on all samples and calls f after each run. State does not pass
// from one run to the next.
func runEach(ctx context.Context, s *engine.Session, m *graph.Model, data *samples.Set, f func(run int) error) error {
	keeps := stateful(m)
	for run := range data.Runs() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := setInputs(s, data.Inputs(run), keeps && run > 0); err != nil {
			return err
		}
		if err := s.Run(ctx); err != nil {
			return fmt.Errorf("sample %d: %w", run*data.Batch+1, err)
		}
		if err := f(run); err != nil {
			return err
		}
	}
	return nil
}

// setInputs sets the inputs of a run; reset discards the state of the previous one.
func setInputs(s *engine.Session, ins []*tensor.Tensor, reset bool) error {
	if reset {
		if err := s.Reset(); err != nil {
			return err
		}
	}
	for k, t := range ins {
		s.SetInput(k, t)
	}
	return nil
}

// withQuant returns a value with the quantisation declared in the file.
func withQuant(t *tensor.Tensor, v *graph.Value) *tensor.Tensor {
	if t == nil || !t.Known() || t.Quant != nil || v.Quant == nil {
		return t
	}
	c := *t
	c.Quant = v.Quant
	return &c
}

// toReal returns the elements of a value as real numbers.
func toReal(t *tensor.Tensor) []float64 {
	out := make([]float64, t.Len())
	tensor.Read(out, t, 0)
	if q := t.Quant; q != nil && len(q.Scale) == 1 && t.Type.IsInteger() {
		for i, v := range out {
			out[i] = float64(q.Scale[0]) * (v - float64(q.Zero[0]))
		}
	}
	return out
}
