package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/onnx"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Status is the outcome of a test.
type Status uint8

// Outcomes.
const (
	Pass Status = iota
	Fail
	Skip // the test itself cannot be judged
)

// String returns the outcome in lower case.
func (s Status) String() string { return [...]string{"pass", "fail", "skip"}[s] }

// Row is the result of one test.
type Row struct {
	Test   *Test
	Status Status
	Reason string // why it did not pass
}

// Random lists the tests whose expected values come from one generator's random
// numbers, which the standard does not fix: types and shapes are compared, and
// values where they do not depend on the draw. ONNX Runtime has no operator for
// the first group and fails the value comparison of the second.
var Random = map[string]bool{
	"node/test_bernoulli":                 true,
	"node/test_bernoulli_double":          true,
	"node/test_bernoulli_double_expanded": true,
	"node/test_bernoulli_expanded":        true,
	"node/test_bernoulli_seed":            true,
	"node/test_bernoulli_seed_expanded":   true,

	"node/test_training_dropout":              true,
	"node/test_training_dropout_default":      true,
	"node/test_training_dropout_default_mask": true,
	"node/test_training_dropout_mask":         true,
}

// RunAll runs tests on the given number of goroutines, each test for at most
// the limit, and returns a row for each in the tests' order.
func RunAll(tests []*Test, reg *op.Registry, workers int, limit time.Duration) []Row {
	rows := make([]Row, len(tests))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(workers, 1) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(tests) {
					return
				}
				rows[i] = Run(tests[i], reg, limit)
			}
		})
	}
	wg.Wait()
	return rows
}

// Run runs all data sets of a test. A test that is still busy after the limit
// fails; its goroutine is left behind.
func Run(t *Test, reg *op.Registry, limit time.Duration) Row {
	done := make(chan Row, 1)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	go func() {
		row := Row{Test: t}
		defer func() {
			if e := recover(); e != nil {
				row.Status, row.Reason = Fail, fmt.Sprintf("panic: %v", e)
			}
			done <- row
		}()
		if err := run(ctx, t, reg); err != nil {
			row.Status, row.Reason = Fail, err.Error()
			var u unreadable
			if errors.As(err, &u) {
				row.Status = Skip
			}
		}
	}()
	select {
	case row := <-done:
		return row
	case <-time.After(limit + time.Second):
		return Row{Test: t, Status: Fail, Reason: fmt.Sprintf("still running after %v", limit)}
	}
}

// unreadable is a data file of a test that cannot be decoded.
type unreadable struct{ error }

func run(ctx context.Context, t *Test, reg *op.Registry) error {
	m, err := onnx.Parse(t.Model, t.Name, "")
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer m.Close()
	if len(t.Sets) == 0 {
		return unreadable{errors.New("no data set")}
	}
	for i, set := range t.Sets {
		if err := runSet(ctx, m, reg, set, Random[t.ID()]); err != nil {
			if len(t.Sets) > 1 {
				err = fmt.Errorf("set %d: %w", i, err)
			}
			return err
		}
	}
	return nil
}

func runSet(ctx context.Context, m *graph.Model, reg *op.Registry, set DataSet, random bool) error {
	g := m.Main()
	in := make([]*tensor.Tensor, len(g.Inputs))
	for i, id := range g.Inputs {
		if i >= len(set.Inputs) || set.Inputs[i] == nil {
			continue
		}
		x, err := onnx.ParseValue(set.Inputs[i], g.Values[id].Type)
		if err != nil {
			return unreadable{fmt.Errorf("input %d: %w", i, err)}
		}
		in[i] = x
	}
	s, err := engine.New(m, in, engine.Options{Registry: reg, Threads: 1})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		return err
	}
	if err := incomplete(s, m); err != nil {
		return err
	}
	for i, data := range set.Outputs {
		if data == nil || i >= len(g.Outputs) {
			continue
		}
		declared := tensor.Invalid
		if id := g.Outputs[i]; id >= 0 {
			declared = g.Values[id].Type
		}
		want, err := onnx.ParseValue(data, declared)
		if err != nil {
			return unreadable{fmt.Errorf("output %d: %w", i, err)}
		}
		got := s.Output(i)
		if random && got != nil && want != nil {
			if diff := sameKind(got, want); diff != "" {
				return fmt.Errorf("output %d: %s", i, diff)
			}
			continue
		}
		if diff := Compare(got, want); diff != "" {
			return fmt.Errorf("output %d: %s", i, diff)
		}
	}
	return nil
}

// incomplete tells why a node did not run, in the main graph or in a body that
// was planned. The engine goes on without such nodes; their outputs are not
// results.
func incomplete(s *engine.Session, m *graph.Model) error {
	for i := range m.Graphs {
		steps := s.Steps()
		if i > 0 {
			steps = s.BodySteps(i)
		}
		for _, st := range steps {
			switch st.State {
			case engine.Unsupported, engine.Failed, engine.Skipped:
				return fmt.Errorf("%v: %s version %d: %w", st.State, st.Node.Key(), st.Node.Version, st.Err)
			}
		}
	}
	return nil
}
