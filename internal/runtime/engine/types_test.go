package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// TestTypesBeforeAnything gives every operator inputs of every element type, alone and beside
// valid ones. Inputs that the tables reject never reach the operator: it neither infers nor
// prepares nor runs.
func TestTypesBeforeAnything(t *testing.T) {
	t.Parallel()
	real := operators.Registry()
	called := false
	errCalled := errors.New("called")
	var defs []op.Def
	for _, d := range real.All() {
		e := *d
		e.Infer = func(*op.Call) error { called = true; return errCalled }
		e.Prepare = func(*op.Call) (op.Run, error) { called = true; return nil, errCalled }
		defs = append(defs, e)
	}
	r := op.NewRegistry(defs)
	r.Schemas = real.Schemas
	types := []tensor.Type{tensor.Float32, tensor.Int64, tensor.Int8, tensor.Bool, tensor.String, tensor.Sequence}
	try := func(d *op.Def, in []tensor.Type) (taken bool) {
		g := &graph.Graph{Name: "g"}
		n := &graph.Node{Domain: d.Domain, Op: d.Name, Version: max(d.Since, 1)}
		var ins []*tensor.Tensor
		for i, typ := range in {
			g.Values = append(g.Values, &graph.Value{ID: i, Name: fmt.Sprint("x", i), Type: typ, Shape: []int{2}, HasShape: true})
			g.Inputs, n.Inputs = append(g.Inputs, i), append(n.Inputs, i)
			ins = append(ins, tensor.New(typ, 2))
		}
		g.Values = append(g.Values, &graph.Value{ID: len(in), Name: "y"})
		g.Outputs, n.Outputs = []int{len(in)}, []int{len(in)}
		g.Nodes = []*graph.Node{n}
		format := "onnx"
		if d.Domain == graph.TFLite || d.Domain == graph.TFLiteCustom {
			format = "tflite"
		}
		if real.Check(n, ins, []*tensor.Tensor{{}}) == nil {
			return true
		}
		called = false
		s, err := engine.New(&graph.Model{Format: format, Graphs: []*graph.Graph{g}}, ins, engine.Options{Registry: r})
		if err == nil {
			if st := s.Steps()[0]; st.State == engine.Runs || st.State == engine.Folded || st.Err == nil {
				t.Errorf("%s %s %d of %v is %v: %v", d.Domain, d.Name, d.Since, in, st.State, st.Err)
			}
			s.Close()
		} else if !errors.Is(err, op.ErrMalformed) {
			t.Errorf("%s %s %d of %v: %v", d.Domain, d.Name, d.Since, in, err)
		}
		if called {
			t.Errorf("%s %s %d was asked about %v", d.Domain, d.Name, d.Since, in)
		}
		return false
	}
	refused := 0
	for _, d := range real.All() {
		for n := 1; n <= 3; n++ {
			same := make([]tensor.Type, n)
			for _, typ := range types {
				for i := range same {
					same[i] = typ
				}
				if !try(d, same) {
					refused++
					continue
				}
				// One of them of another type.
				for i := range same {
					for _, other := range types {
						if same[i] = other; other != typ && !try(d, same) {
							refused++
						}
					}
					same[i] = typ
				}
			}
		}
	}
	if refused < 5*len(defs) {
		t.Errorf("%d combinations of %d operators are refused", refused, len(defs))
	}
}
