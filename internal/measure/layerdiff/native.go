package layerdiff

import (
	"context"
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
)

// native runs a model in opmeter's own engine.
type native struct {
	m   *graph.Model
	ins []*tensor.Tensor
	o   engine.Options

	s    *engine.Session
	ids  []int
	ran  bool
	left map[int]bool // values that the current run still has to pass
	take func(id int, t *tensor.Tensor) error
	bad  map[int]error // by value: the operator that does not run, or one before it
}

// Native returns opmeter's own engine for a model. The caller holds the model's file during all
// calls.
func Native(m *graph.Model, ins []*tensor.Tensor, o engine.Options) Engine {
	return &native{m: m, ins: ins, o: o}
}

// errEnough ends a run that has passed all values.
var errEnough = errors.New("all values are there")

// Open implements [Engine]. The values become outputs of the graph, so that no fusion removes them;
// their memory is reused as soon as they were passed.
func (n *native) Open(ctx context.Context, ids []int) (missing map[int]error, bytes map[int]int, err error) {
	n.ids = ids
	g := *n.m.Main()
	g.Outputs = append(append([]int{}, ids...), g.Outputs...)
	o := n.o
	for _, id := range ids {
		o.Watch = append(o.Watch, []int{id})
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	o.Seen = n.seen
	m := weights.WithMain(n.m, &g)
	m.Signatures = nil
	if n.s, err = engine.New(m, n.ins, o); err != nil {
		return nil, nil, err
	}
	// The first run finds operators that fail, and the sizes that depend on data.
	bytes = map[int]int{}
	err = n.Values(ctx, ids, func(id int, t *tensor.Tensor) error {
		bytes[id] = t.Held()
		return nil
	})
	return n.bad, bytes, err
}

// seen passes a value that was computed.
func (n *native) seen(set int) error {
	id := n.ids[set]
	if !n.left[id] {
		return nil
	}
	delete(n.left, id)
	if t := n.s.Value(id); t.Known() && n.bad[id] == nil && !t.Type.IsContainer() {
		if err := n.take(id, t); err != nil {
			return err
		}
	}
	if len(n.left) == 0 {
		return errEnough
	}
	return nil
}

// Values implements [Engine].
func (n *native) Values(ctx context.Context, ids []int, take func(id int, t *tensor.Tensor) error) error {
	for {
		if n.ran { // state must not pass from one run to the next
			if err := n.s.Reset(); err != nil {
				return err
			}
			for i, t := range n.ins {
				n.s.SetInput(i, t)
			}
		}
		n.ran, n.take, n.left = true, take, map[int]bool{}
		for _, id := range ids {
			n.left[id] = true
		}
		n.bad = unrun(n.s)
		err := n.s.Run(ctx)
		if e, ok := errors.AsType[*engine.NodeError](err); ok && !errors.Is(err, errEnough) && n.s.Disable(e) {
			continue
		}
		if errors.Is(err, errEnough) {
			err = nil
		}
		return err
	}
}

// unrun returns the values that depend on an operator which does not run: what the engine has in
// their place are zeros.
func unrun(s *engine.Session) map[int]error {
	bad := map[int]error{}
	for _, st := range s.Steps() {
		err := st.Err
		if err != nil && (st.State == engine.Unsupported || st.State == engine.Failed) {
			err = fmt.Errorf("node %d (%s) does not run: %w", st.Node.Index, st.Node.Key(), err)
		}
		for _, id := range st.Node.Inputs {
			if id >= 0 && bad[id] != nil {
				err = bad[id]
			}
		}
		if err == nil {
			continue
		}
		for _, id := range st.Node.Outputs {
			if id >= 0 {
				bad[id] = err
			}
		}
	}
	return bad
}

// Outputs implements [Engine].
func (n *native) Outputs(ctx context.Context) ([]*tensor.Tensor, error) {
	return runAlone(ctx, n.m, n.ins, n.o)
}

// runAlone runs a model once. Outputs that depend on an operator which does not run are nil.
func runAlone(ctx context.Context, m *graph.Model, ins []*tensor.Tensor, o engine.Options) ([]*tensor.Tensor, error) {
	s, err := engine.New(m, ins, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		err := s.Run(ctx)
		if e, ok := errors.AsType[*engine.NodeError](err); ok && s.Disable(e) {
			continue
		}
		if err != nil {
			return nil, err
		}
		break
	}
	bad := unrun(s)
	out := make([]*tensor.Tensor, len(m.Main().Outputs))
	for i, id := range m.Main().Outputs {
		if t := s.Output(i); id >= 0 && bad[id] == nil && t.Known() && !t.Type.IsContainer() {
			out[i] = t.Clone()
		}
	}
	return out, nil
}

// Half implements [Engine].
func (n *native) Half() bool { return false }

// Close implements [Engine].
func (n *native) Close() {
	if n.s != nil {
		n.s.Close()
	}
}
