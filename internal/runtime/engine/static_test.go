package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// keeping is an operator that packs its constant input 1 into as many bytes; packs counts how
// often it did.
func keeping(bytes int, packs *int) op.Def {
	return op.Def{
		Name:  "Pack",
		Infer: func(c *op.Call) error { c.SetOut(0, tensor.Float32, c.In[0].Shape); return nil },
		Prepare: func(c *op.Call) (op.Run, error) {
			c.Keep(bytes)
			*packs++
			return func(c *op.Call) error { copy(c.Out[0].Data, c.In[0].Data); return nil }, nil
		},
	}
}

// TestKeep: packed weights count against the limit before they are made, together with what the
// caller has used, and the node fails if they do not fit.
func TestKeep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		limit, held int
		fits        bool
	}{
		{"no limit", 0, 0, true},
		{"both fit", 2 * 4096, 0, false}, // the arena needs 128 more
		{"all fit", 2*4096 + 128, 0, true},
		{"the caller has more", 2*4096 + 128, 1, false},
	} {
		packs := 0
		g := build(0, nil, "x", "z", "Pack y x", "Pack z y")
		s, err := open(t, Options{Registry: with(keeping(4096, &packs)), MaxBytes: c.limit, Held: c.held}, []*tensor.Tensor{vec(1)}, g)
		if err == nil {
			err = s.Run(context.Background())
			for i := range s.Steps() {
				err = errors.Join(err, s.Steps()[i].Err)
			}
		}
		var le *op.LimitError
		if c.fits != (err == nil) || !c.fits && (!errors.As(err, &le) || le.Limit != c.limit) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.fits && packs != 2 {
			t.Errorf("%s: packed %d times, want 2", c.name, packs)
		}
	}
}

// TestStatic: a session that never runs packs no large weights, and places values without
// memory for them.
func TestStatic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ bytes, packs int }{{staticBytes, 2}, {staticBytes + 1, 0}} {
		packs := 0
		g := build(0, nil, "x", "z", "Pack y x", "Pack z y")
		s := start(t, Options{Registry: with(keeping(c.bytes, &packs)), Static: true}, []*tensor.Tensor{vec(1, 2)}, g)
		if packs != c.packs {
			t.Errorf("%d bytes: packed %d times, want %d", c.bytes, packs, c.packs)
		}
		for i := range s.Steps() {
			if err := s.Steps()[i].Err; err != nil {
				t.Errorf("%d bytes: step %d: %v", c.bytes, i, err)
			}
		}
		if arena, _ := s.Memory(); arena != 128 {
			t.Errorf("arena of %d bytes, want 128", arena)
		}
		if y := s.Value(g.Outputs[0]); y.Data != nil {
			t.Errorf("the output has %d bytes, want none", len(y.Data))
		}
	}
}

// TestSmall: many nodes matter as much as large constants.
func TestSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes, bytes int
		small        bool
	}{{1, 1 << 20, true}, {1, 17 << 20, false}, {1000, 0, true}, {5000, 0, false}} {
		g := &graph.Graph{Values: []*graph.Value{{Const: &tensor.Tensor{Data: make([]byte, c.bytes)}}}, Nodes: make([]*graph.Node, c.nodes)}
		if got := isSmall(&graph.Model{Graphs: []*graph.Graph{g}}); got != c.small {
			t.Errorf("%d nodes and %d bytes: %v, want %v", c.nodes, c.bytes, got, c.small)
		}
	}
}
