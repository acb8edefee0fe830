package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
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

// Random lists the tests whose expected values are random draws that nothing
// fixes: types and shapes are compared only. ONNX Runtime has no operator for
// them. The dropout tests are not here: their generator is known.
var Random = map[string]bool{
	"node/test_bernoulli":                 true,
	"node/test_bernoulli_double":          true,
	"node/test_bernoulli_double_expanded": true,
	"node/test_bernoulli_expanded":        true,
	"node/test_bernoulli_seed":            true,
	"node/test_bernoulli_seed_expanded":   true,
}

// Options says how tests are run. The zero value of all but Registry is sensible.
type Options struct {
	Registry *op.Registry
	Workers  int           // tests at the same time, 0 means 1
	Limit    time.Duration // for one test, 0 means 30 s
	Threads  int           // of the engine
	// Constants makes all inputs but the first constants of the model, as weights
	// are in real models.
	Constants bool
	// Alone asks for one output of the model at a time: what makes several makes those alone that
	// are read.
	Alone bool
	// Runs repeats each inference and judges the last, 0 means once.
	Runs int
}

// RunAll runs tests and returns a row for each in the tests' order.
func RunAll(tests []*Test, o Options) []Row {
	rows := make([]Row, len(tests))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(o.Workers, 1) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(tests) {
					return
				}
				rows[i] = Run(tests[i], o)
			}
		})
	}
	wg.Wait()
	return rows
}

// Run runs all data sets of a test. A test that is still busy after the limit
// fails; its goroutine is left behind.
func Run(t *Test, o Options) Row {
	limit := o.Limit
	if limit == 0 {
		limit = 30 * time.Second
	}
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
		if err := run(ctx, t, o); err != nil {
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

func run(ctx context.Context, t *Test, o Options) error {
	if len(t.Sets) == 0 {
		return unreadable{errors.New("no data set")}
	}
	for i, set := range t.Sets {
		turns := 1
		if o.Alone {
			turns = max(1, len(set.Outputs))
		}
		for only := range turns {
			m, err := onnx.Parse(t.Model, t.Name, "")
			if err != nil {
				return fmt.Errorf("load: %w", err)
			}
			one := set
			if g := m.Main(); turns > 1 && len(g.Outputs) == len(set.Outputs) {
				g.Outputs, one.Outputs = g.Outputs[only:only+1], set.Outputs[only:only+1]
			}
			if err := errors.Join(runSet(ctx, m, o, one, Random[t.ID()]), m.Close()); err != nil {
				if len(t.Sets) > 1 {
					err = fmt.Errorf("set %d: %w", i, err)
				}
				return err
			}
		}
	}
	return nil
}

func runSet(ctx context.Context, m *graph.Model, o Options, set DataSet, random bool) error {
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
	if o.Constants {
		in = fix(g, in)
	}
	s, err := engine.New(m, in, engine.Options{Registry: o.Registry, Threads: max(o.Threads, 1)})
	if err != nil {
		return err
	}
	defer s.Close()
	for range max(o.Runs, 1) {
		if err := s.Run(ctx); err != nil {
			return err
		}
	}
	if err := incomplete(s, m); err != nil {
		return err
	}
	return judge(g, s, set, random)
}

// fix makes all inputs but the first constants and returns the rest. Containers
// and absent inputs stay inputs.
func fix(g *graph.Graph, in []*tensor.Tensor) []*tensor.Tensor {
	var ids []int
	var rest []*tensor.Tensor
	for i, id := range g.Inputs {
		if i == 0 || in[i] == nil || in[i].Type.IsContainer() {
			ids, rest = append(ids, id), append(rest, in[i])
			continue
		}
		v := g.Values[id]
		v.Const, v.Type, v.Shape, v.HasShape = in[i], in[i].Type, in[i].Shape, true
	}
	g.Inputs = ids
	return rest
}

// judge compares the outputs with what the data set expects.
func judge(g *graph.Graph, s *engine.Session, set DataSet, random bool) error {
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
		var diff string
		if random && got != nil {
			diff = sameKind(got, want)
		} else {
			diff = Compare(got, want)
		}
		if diff != "" {
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
