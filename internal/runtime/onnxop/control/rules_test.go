package control

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// turn is a body that a test writes as a function.
type turn func(in []*tensor.Tensor) ([]*tensor.Tensor, error)

func (f turn) Run(in []*tensor.Tensor) ([]*tensor.Tensor, error) { return f(in) }

// shell is a graph with the given number of inputs and outputs whose content is never used.
func shell(inputs, outputs int) *graph.Graph {
	g := &graph.Graph{}
	for i := range inputs + outputs {
		g.Values = append(g.Values, &graph.Value{ID: i, Type: tensor.Int64})
		if i < inputs {
			g.Inputs = append(g.Inputs, i)
		} else {
			g.Outputs = append(g.Outputs, i)
		}
	}
	return g
}

// direct runs an operator whose bodies are functions: attributes name graphs from 1 on.
func direct(name string, attrs graph.Attrs, outputs int, bodies map[int]op.Body, graphs []*graph.Graph, in ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	c := &op.Call{
		Model: &graph.Model{Graphs: append([]*graph.Graph{{}}, graphs...)}, Node: &graph.Node{Op: name, Version: 21, Attrs: attrs}, In: in, Env: &optest.Env{Bodies: bodies},
	}
	for range outputs {
		c.Out = append(c.Out, &tensor.Tensor{})
	}
	d := op.NewRegistry(Defs()).Find("", name, 21)
	if err := d.Infer(c); err != nil && !errors.Is(err, op.ErrDynamic) {
		return nil, err
	}
	run, err := d.Prepare(c)
	if err != nil {
		return nil, err
	}
	return c.Out, run(c)
}

func one(v int64) *tensor.Tensor { return tensor.From(tensor.Int64, nil, []int64{v}) }

func values(x ...*tensor.Tensor) (out []int64) {
	for _, t := range x {
		out = append(out, tensor.Of[int64](t)...)
	}
	return out
}

func wants(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestBranches(t *testing.T) {
	t.Parallel()
	both := graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}
	result := func(v ...*tensor.Tensor) turn {
		return func([]*tensor.Tensor) ([]*tensor.Tensor, error) { return v, nil }
	}
	bodies := map[int]op.Body{1: result(one(1), one(10)), 2: result(one(2), one(20))}
	graphs := []*graph.Graph{shell(0, 2), shell(0, 2)}
	for cond, want := range map[bool][]int64{true: {1, 10}, false: {2, 20}} {
		out, err := direct("If", both, 2, bodies, graphs, boolean(cond))
		if err != nil || !cmp.Equal(values(out...), want) {
			t.Errorf("%v: %v, %v", cond, values(out...), err)
		}
	}
	_, err := direct("If", both, 1, bodies, graphs, one(1))
	wants(t, "a number", err, "condition is int64 with 1 elements, not one bool")
	_, err = direct("If", both, 1, bodies, graphs, tensor.New(tensor.Bool, 2))
	wants(t, "two conditions", err, "condition is bool with 2 elements")
	_, err = direct("If", both, 3, bodies, graphs, boolean(true))
	wants(t, "too few results", err, "then_branch has 0 inputs and 2 outputs for 3 outputs")
	_, err = direct("If", both, 2, bodies, []*graph.Graph{shell(0, 2), shell(1, 2)}, boolean(true))
	wants(t, "an input", err, "else_branch has 1 inputs")
	_, err = direct("If", graph.Attrs{"then_branch": graph.GraphRef(1)}, 1, bodies, graphs, boolean(true))
	wants(t, "no branch", err, "attribute else_branch is not a graph")
	_, err = direct("If", graph.Attrs{"then_branch": graph.GraphRef(3), "else_branch": graph.GraphRef(1)}, 1, bodies, graphs, boolean(true))
	wants(t, "a graph that is absent", err, "attribute then_branch is not a graph")
	_, err = direct("If", both, 2, map[int]op.Body{1: result(one(1), nil), 2: bodies[2]}, graphs, boolean(true))
	wants(t, "no second result", err, "output 1 was not computed")
}

// TestLoopState adds the iteration number to a state, and keeps it doubled: 0 1 3 6.
func TestLoopState(t *testing.T) {
	t.Parallel()
	body := graph.Attrs{"body": graph.GraphRef(1)}
	var turns int
	count := func(last int64) turn {
		return func(in []*tensor.Tensor) ([]*tensor.Tensor, error) {
			turns++
			i, x := tensor.Of[int64](in[0])[0], tensor.Of[int64](in[2])[0]
			if in[1].Type != tensor.Bool || in[1].Data[0] != 1 {
				t.Errorf("condition of a turn %+v", in[1])
			}
			return []*tensor.Tensor{boolean(i < last), one(x + i), one(2 * (x + i))}, nil
		}
	}
	for _, tt := range []struct {
		name  string
		trips *tensor.Tensor
		cond  *tensor.Tensor
		last  int64
		turns int
		want  []int64 // the state, then what was kept
	}{
		{"by number", one(4), nil, 0, 4, []int64{6, 0, 2, 6, 12}},
		{"by condition", nil, boolean(true), 2, 3, []int64{3, 0, 2, 6}},
		{"by both, number first", one(2), boolean(true), 9, 2, []int64{1, 0, 2}},
		{"by both, condition first", one(9), boolean(true), 0, 1, []int64{0, 0}},
		{"none", one(0), nil, 9, 0, []int64{0}},
		{"fewer than none", one(-1), nil, 9, 0, []int64{0}},
		{"not at all", one(9), boolean(false), 9, 0, []int64{0}},
	} {
		turns = 0
		out, err := direct("Loop", body, 2, map[int]op.Body{1: count(tt.last)}, []*graph.Graph{shell(3, 3)}, tt.trips, tt.cond, one(0))
		if err != nil || turns != tt.turns || !cmp.Equal(values(out...), tt.want) {
			t.Errorf("%s: %d turns, %v, %v", tt.name, turns, values(out...), err)
		}
		if out[1].Rank() < 1 || out[1].Shape[0] != tt.turns {
			t.Errorf("%s: kept %v", tt.name, out[1].Shape)
		}
	}
	in := one(7)
	out, err := direct("Loop", body, 1, map[int]op.Body{1: count(0)}, []*graph.Graph{shell(3, 3)}, one(0), nil, in)
	if err != nil || &out[0].Data[0] == &in.Data[0] {
		t.Errorf("a state without a turn shares memory with its input: %v", err)
	}
	bad := errors.New("bad")
	for _, tt := range []struct {
		name, want string
		g          *graph.Graph
		outputs    int
		f          turn
		in         []*tensor.Tensor
	}{
		{"inputs", "body has 2 inputs and 3 outputs for 1 states", shell(2, 3), 1, count(0), []*tensor.Tensor{one(1), nil, one(0)}},
		{"outputs", "body has 3 inputs and 1 outputs for 1 states", shell(3, 1), 1, count(0), []*tensor.Tensor{one(1), nil, one(0)}},
		{"results", "for 1 states and 3 outputs", shell(3, 3), 3, count(0), []*tensor.Tensor{one(1), nil, one(0)}},
		{"trip counts", "trip count is int64 with 2 elements", shell(3, 3), 1, count(0), []*tensor.Tensor{i64(1, 2), nil, one(0)}},
		{"trip count", "trip count is float32 with 1 elements", shell(3, 3), 1, count(0), []*tensor.Tensor{f32(nil, 1), nil, one(0)}},
		{"no graph", "attribute body is not a graph", nil, 1, count(0), []*tensor.Tensor{one(1), nil, one(0)}},
		{"the body's error", "bad", shell(3, 3), 1, func([]*tensor.Tensor) ([]*tensor.Tensor, error) { return nil, bad }, []*tensor.Tensor{one(1), nil, one(0)}},
		{"no condition", "condition was not computed", shell(3, 3), 1, func([]*tensor.Tensor) ([]*tensor.Tensor, error) { return []*tensor.Tensor{nil, one(1), one(1)}, nil }, []*tensor.Tensor{one(1), boolean(true), one(0)}},
		{"no state", "output 0 was not computed", shell(3, 3), 1, func([]*tensor.Tensor) ([]*tensor.Tensor, error) {
			return []*tensor.Tensor{boolean(true), nil, one(1)}, nil
		}, []*tensor.Tensor{one(1), nil, one(0)}},
	} {
		graphs := []*graph.Graph{tt.g}
		if tt.g == nil {
			graphs = nil
		}
		_, err := direct("Loop", body, tt.outputs, map[int]op.Body{1: tt.f}, graphs, tt.in...)
		wants(t, tt.name, err, tt.want)
	}
	// A body that declares its counter with the shape [1] gets that shape.
	g := shell(3, 3)
	g.Values[0].HasShape, g.Values[0].Shape = true, []int{1}
	g.Values[1].HasShape, g.Values[1].Shape = true, []int{}
	_, err = direct("Loop", body, 1, map[int]op.Body{1: turn(func(in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		if in[0].Rank() != 1 || in[1].Rank() != 0 {
			t.Errorf("counter of shape %v, condition of shape %v", in[0].Shape, in[1].Shape)
		}
		return []*tensor.Tensor{boolean(true), one(1), one(1)}, nil
	})}, []*graph.Graph{g}, one(1), nil, one(0))
	if err != nil {
		t.Error(err)
	}
}

func list(x ...*tensor.Tensor) *tensor.Tensor {
	return &tensor.Tensor{Type: tensor.Sequence, Elem: tensor.Int64, Data: []byte{}, Elems: x}
}

// TestSequenceMap maps over two sequences with an additional constant number.
func TestSequenceMap(t *testing.T) {
	t.Parallel()
	body := graph.Attrs{"body": graph.GraphRef(1)}
	sum := turn(func(in []*tensor.Tensor) ([]*tensor.Tensor, error) {
		v := values(in...)
		return []*tensor.Tensor{one(v[0] + v[1] + v[2]), one(v[0])}, nil
	})
	out, err := direct("SequenceMap", body, 2, map[int]op.Body{1: sum}, []*graph.Graph{shell(3, 2)}, list(one(1), one(2)), list(one(10), one(20)), one(100))
	if err != nil || !cmp.Equal(values(out[0].Elems...), []int64{111, 122}) || !cmp.Equal(values(out[1].Elems...), []int64{1, 2}) || out[0].Type != tensor.Sequence || out[0].Elem != tensor.Int64 {
		t.Errorf("%+v, %v", out, err)
	}
	out, err = direct("SequenceMap", body, 1, map[int]op.Body{1: sum}, []*graph.Graph{shell(1, 1)}, list())
	if err != nil || len(out[0].Elems) != 0 || out[0].Type != tensor.Sequence || out[0].Elem != tensor.Int64 {
		t.Errorf("of nothing: %+v, %v", out, err)
	}
	for _, tt := range []struct {
		name, want string
		g          *graph.Graph
		f          turn
		in         []*tensor.Tensor
	}{
		{"lengths", "input 1 has 1 elements and input 0 has 2", shell(2, 1), sum, []*tensor.Tensor{list(one(1), one(2)), list(one(1))}},
		{"no sequence", "input 0 is not a sequence", shell(1, 1), sum, []*tensor.Tensor{one(1)}},
		{"inputs", "body has 2 inputs and 1 outputs for 1 and 1", shell(2, 1), sum, []*tensor.Tensor{list()}},
		{"outputs", "body has 1 inputs and 0 outputs", shell(1, 0), sum, []*tensor.Tensor{list()}},
		{"none", "body has 0 inputs", shell(0, 1), sum, nil},
		{"missing", "input 0 is missing", shell(1, 1), sum, []*tensor.Tensor{nil}},
		{"no result", "output 0 was not computed", shell(1, 1), func([]*tensor.Tensor) ([]*tensor.Tensor, error) { return make([]*tensor.Tensor, 1), nil }, []*tensor.Tensor{list(one(1))}},
	} {
		_, err := direct("SequenceMap", body, 1, map[int]op.Body{1: tt.f}, []*graph.Graph{tt.g}, tt.in...)
		wants(t, tt.name, err, tt.want)
	}
}

func TestOptionals(t *testing.T) {
	t.Parallel()
	run := func(op string, attrs graph.Attrs, in ...*tensor.Tensor) (*tensor.Tensor, error) {
		out, err := optest.Run(Defs(), optest.Node{Op: op, Version: 18, Attrs: attrs}, in...)
		if err != nil {
			return nil, err
		}
		return out[0], nil
	}
	x := i64(3, 4)
	full, err := run("Optional", nil, x)
	if err != nil || full.Type != tensor.Optional || full.Elem != tensor.Int64 || len(full.Elems) != 1 || &full.Elems[0].Data[0] == &x.Data[0] {
		t.Fatalf("%+v, %v", full, err)
	}
	for text, want := range map[string]tensor.Type{"tensor(float16)": tensor.Float16, "seq(tensor(int8))": tensor.Sequence, "optional(tensor(int8))": tensor.Optional, "map": tensor.Invalid} {
		empty, err := run("Optional", graph.Attrs{"type": text})
		if err != nil || empty.Elem != want || len(empty.Elems) != 0 {
			t.Errorf("%s: %+v, %v", text, empty, err)
		}
		has, err := run("OptionalHasElement", nil, empty)
		if err != nil || has.Data[0] != 0 || has.Type != tensor.Bool || has.Rank() != 0 {
			t.Errorf("%s has an element: %v", text, err)
		}
		_, err = run("OptionalGetElement", nil, empty)
		wants(t, text, err, "optional has no element")
	}
	_, err = run("Optional", nil)
	wants(t, "neither", err, "neither an element nor a type is given")
	for name, in := range map[string]*tensor.Tensor{"an optional": full, "no optional": x} {
		has, err := run("OptionalHasElement", nil, in)
		got, err2 := run("OptionalGetElement", nil, in)
		if err != nil || err2 != nil || has.Data[0] != 1 || !cmp.Equal(values(got), []int64{3, 4}) || !cmp.Equal(got.Shape, []int{2}) {
			t.Errorf("%s: %v %v", name, err, err2)
		}
	}
	if has, err := run("OptionalHasElement", nil); err != nil || has.Data[0] != 0 {
		t.Errorf("nothing has an element: %v", err)
	}
	seq, err := run("OptionalGetElement", nil, list(one(5)))
	if err != nil || seq.Type != tensor.Sequence || seq.Elem != tensor.Int64 || !cmp.Equal(values(seq.Elems...), []int64{5}) {
		t.Errorf("%+v, %v", seq, err)
	}
}

// TestScanCounts rejects scans whose body has another number of values than the node.
func TestScanCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                     string
		scanned, nodeIn, nodeOut int64
		bodyInputs, bodyOutputs  int
	}{
		{"nothing scanned", 0, 1, 1, 1, 1},
		{"more scanned than given", 2, 1, 1, 1, 1},
		{"fewer outputs than states", 1, 3, 1, 3, 1},
		{"a body of more inputs", 1, 2, 1, 3, 2},
		{"a body of fewer outputs", 1, 2, 3, 2, 2},
	} {
		var in []*tensor.Tensor
		for range tt.nodeIn {
			in = append(in, tensor.From(tensor.Int64, []int{1}, []int64{1}))
		}
		attrs := graph.Attrs{"body": graph.GraphRef(1), "num_scan_inputs": tt.scanned}
		_, err := direct("Scan", attrs, int(tt.nodeOut), nil, []*graph.Graph{shell(tt.bodyInputs, tt.bodyOutputs)}, in...)
		wants(t, tt.name, err, "body has")
	}
}
