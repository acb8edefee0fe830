package control

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func i64(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func boolean(v bool) *tensor.Tensor {
	x := tensor.New(tensor.Bool)
	if v {
		x.Data[0] = 1
	}
	return x
}

// build adds named values and nodes to a graph.
type build struct {
	*graph.Graph
	ids map[string]int
}

func newBuild(index int) *build {
	return &build{&graph.Graph{Index: index}, map[string]int{}}
}

func (b *build) value(name string) int {
	if name == "" {
		return -1
	}
	id, ok := b.ids[name]
	if !ok {
		id = len(b.Values)
		b.ids[name] = id
		b.Values = append(b.Values, &graph.Value{ID: id, Name: name})
	}
	return id
}

func (b *build) all(names []string) (ids []int) {
	for _, n := range names {
		ids = append(ids, b.value(n))
	}
	return ids
}

func (b *build) node(name string, version int, attrs graph.Attrs, in, out []string) {
	b.Nodes = append(b.Nodes, &graph.Node{Index: len(b.Nodes), Op: name, Version: version, Attrs: attrs, Inputs: b.all(in), Outputs: b.all(out)})
}

func names(s ...string) []string { return s }

// add is the only arithmetic that these tests need.
var add = op.Def{
	Name: "Add",
	Infer: func(c *op.Call) error {
		c.SetOut(0, c.In[0].Type, c.In[0].Shape)
		return nil
	},
	Prepare: op.Simple(func(c *op.Call) error {
		b := tensor.Of[float32](c.In[1])
		for i, v := range tensor.Of[float32](c.In[0]) {
			tensor.Of[float32](c.Out[0])[i] = v + b[i%len(b)]
		}
		return nil
	}),
}

var less = op.Def{
	Name:  "Less",
	Infer: func(c *op.Call) error { c.SetOut(0, tensor.Bool, c.In[0].Shape); return nil },
	Prepare: op.Simple(func(c *op.Call) error {
		c.Out[0].Data[0] = 0
		if tensor.Of[float32](c.In[0])[0] < tensor.Of[float32](c.In[1])[0] {
			c.Out[0].Data[0] = 1
		}
		return nil
	}),
}

var copied = op.Def{
	Name: "Identity",
	Infer: func(c *op.Call) error {
		c.SetOut(0, c.In[0].Type, c.In[0].Shape)
		return nil
	},
	Prepare: op.Simple(func(c *op.Call) error {
		copy(c.Out[0].Data, c.In[0].Data)
		c.Out[0].Elems = c.In[0].Elems
		return nil
	}),
}

// eval runs the main graph on the engine twice and returns the second result.
func eval(t *testing.T, m *graph.Model, in ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := engine.New(m, in, engine.Options{Registry: op.NewRegistry(Defs(), []op.Def{add, less, copied}), Threads: 2})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for range 2 {
		if err := s.Run(t.Context()); err != nil {
			return nil, err
		}
	}
	var out []*tensor.Tensor
	for i := range m.Main().Outputs {
		y := s.Output(i)
		if y == nil {
			t.Fatalf("output %d: %v", i, s.Steps())
		}
		out = append(out, &tensor.Tensor{Type: y.Type, Shape: y.Shape, Data: y.Data, Elems: y.Elems})
	}
	return out, nil
}

// counting is a loop whose state grows by "step" of the outer graph until it is no longer below
// 10; every iteration yields the previous state.
func counting() *graph.Model {
	body := newBuild(1)
	body.Inputs = body.all(names("i", "cond", "x"))
	body.node("Add", 1, nil, names("x", "step"), names("y"))
	body.node("Less", 1, nil, names("y", "ten"), names("more"))
	body.node("Identity", 1, nil, names("x"), names("before"))
	body.Values[body.value("ten")].Const = f32([]int{1}, 10)
	body.Values[body.value("before")].Type = tensor.Float32
	body.Values[body.value("before")].Shape = []int{1}
	body.Outputs = body.all(names("more", "y", "before"))
	main := newBuild(0)
	main.Inputs = main.all(names("trips", "cond", "x0", "step"))
	main.node("Loop", 13, graph.Attrs{"body": graph.GraphRef(1)}, names("trips", "cond", "x0"), names("x", "history"))
	main.Outputs = main.all(names("x", "history"))
	body.Parent = main.Graph
	body.Captures = []graph.Capture{{Inner: body.value("step"), Outer: main.value("step")}}
	return &graph.Model{Graphs: []*graph.Graph{main.Graph, body.Graph}}
}

func TestLoop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		trips      int64
		cond       bool
		x, history []float32
		without    []int // inputs of the node that are left out
	}{
		{name: "until the condition", trips: 99, cond: true, x: []float32{12}, history: []float32{0, 4, 8}},
		{name: "until the count", trips: 2, cond: true, x: []float32{8}, history: []float32{0, 4}},
		{name: "no turn by count", trips: 0, cond: true, x: []float32{0}},
		{name: "no turn by condition", trips: 9, x: []float32{0}},
		{name: "count alone", trips: 5, x: []float32{20}, history: []float32{0, 4, 8, 12, 16}, without: []int{1}},
		{name: "condition alone", cond: true, x: []float32{12}, history: []float32{0, 4, 8}, without: []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := counting()
			for _, i := range tt.without {
				m.Graphs[0].Nodes[0].Inputs[i] = -1
			}
			got, err := eval(t, m, tensor.From(tensor.Int64, nil, []int64{tt.trips}), boolean(tt.cond), f32([]int{1}, 0), f32([]int{1}, 4))
			if err != nil {
				t.Fatal(err)
			}
			want := []*tensor.Tensor{f32([]int{1}, tt.x...), f32([]int{len(tt.history), 1}, tt.history...)}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestIf(t *testing.T) {
	t.Parallel()
	yes, no := newBuild(1), newBuild(2)
	yes.node("Add", 1, nil, names("x", "x"), names("y"))
	yes.Outputs = yes.all(names("y"))
	no.Values = append(no.Values, &graph.Value{Const: f32([]int{2}, 5, 6)})
	no.Outputs = []int{0}
	main := newBuild(0)
	main.Inputs = main.all(names("cond", "x"))
	main.node("If", 13, graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}, names("cond"), names("y"))
	main.node("Add", 1, nil, names("y", "x"), names("z"))
	main.Outputs = main.all(names("z"))
	yes.Captures = []graph.Capture{{Inner: yes.value("x"), Outer: main.value("x")}}
	m := &graph.Model{Graphs: []*graph.Graph{main.Graph, yes.Graph, no.Graph}}
	for cond, want := range map[bool]*tensor.Tensor{true: f32([]int{1}, 9), false: f32([]int{2}, 8, 9)} {
		got, err := eval(t, m, boolean(cond), f32([]int{1}, 3))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got[0]); d != "" {
			t.Errorf("%v: %s", cond, d)
		}
	}
}

// running is a Scan that sums the positions of x and yields every sum.
func running(version int, attrs graph.Attrs, ins ...string) *graph.Model {
	body := newBuild(1)
	body.Inputs = body.all(names("s", "x"))
	body.node("Add", 1, nil, names("s", "x"), names("t"))
	body.node("Identity", 1, nil, names("t"), names("u"))
	body.Outputs = body.all(names("t", "u"))
	main := newBuild(0)
	for _, n := range ins {
		if n != "" {
			main.Inputs = append(main.Inputs, main.value(n))
		}
	}
	attrs["body"], attrs["num_scan_inputs"] = graph.GraphRef(1), int64(1)
	main.node("Scan", version, attrs, ins, names("final", "sums"))
	main.Outputs = main.all(names("final", "sums"))
	return &graph.Model{Graphs: []*graph.Graph{main.Graph, body.Graph}}
}

func TestScan(t *testing.T) {
	t.Parallel()
	x := f32([]int{2, 3}, 1, 2, 3, 10, 20, 30)
	for _, tt := range []struct {
		name  string
		attrs graph.Attrs
		state *tensor.Tensor
		want  []*tensor.Tensor
	}{
		{"rows", graph.Attrs{}, f32([]int{3}, 0, 0, 0), []*tensor.Tensor{f32([]int{3}, 11, 22, 33), f32([]int{2, 3}, 1, 2, 3, 11, 22, 33)}},
		{
			"columns",
			graph.Attrs{"scan_input_axes": []int64{-1}, "scan_output_axes": []int64{1}},
			f32([]int{2}, 0, 0),
			[]*tensor.Tensor{f32([]int{2}, 6, 60), f32([]int{2, 3}, 1, 3, 6, 10, 30, 60)},
		},
		{
			"backward",
			graph.Attrs{"scan_input_directions": []int64{1}, "scan_output_directions": []int64{1}},
			f32([]int{3}, 0, 0, 0),
			[]*tensor.Tensor{f32([]int{3}, 11, 22, 33), f32([]int{2, 3}, 11, 22, 33, 10, 20, 30)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := eval(t, running(11, tt.attrs, "s0", "x"), tt.state, x)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("version 8 with lengths", func(t *testing.T) {
		t.Parallel()
		got, err := eval(t, running(8, graph.Attrs{}, "lens", "s0", "x"), i64(2, 1), f32([]int{2, 1}, 0, 5), f32([]int{2, 2, 1}, 1, 2, 3, 4))
		if err != nil {
			t.Fatal(err)
		}
		want := []*tensor.Tensor{f32([]int{2, 1}, 3, 8), f32([]int{2, 2, 1}, 1, 3, 8, 0)}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func run(t *testing.T, n optest.Node, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	n.Version = max(n.Version, 11)
	out, err := optest.Run(Defs(), n, in...)
	if err != nil {
		t.Fatalf("%s: %v", n.Op, err)
	}
	return out[0]
}

func TestSequences(t *testing.T) {
	t.Parallel()
	a, b, c := f32([]int{1}, 1), f32([]int{2}, 2, 3), f32([]int{1}, 4)
	scalar := func(v int64) *tensor.Tensor { return tensor.From(tensor.Int64, nil, []int64{v}) }
	s := run(t, optest.Node{Op: "SequenceConstruct"}, a, b)
	if d := cmp.Diff([]*tensor.Tensor{a, b}, s.Elems); d != "" {
		t.Fatal(d)
	}
	if s.Elems[0] == a || &s.Elems[0].Data[0] == &a.Data[0] {
		t.Error("the sequence shares memory that the planner may use again")
	}
	list := func(want ...*tensor.Tensor) func(x *tensor.Tensor) string {
		return func(x *tensor.Tensor) string { return cmp.Diff(want, x.Elems) }
	}
	value := func(want *tensor.Tensor) func(x *tensor.Tensor) string {
		return func(x *tensor.Tensor) string { return cmp.Diff(want, x) }
	}
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
		diff func(*tensor.Tensor) string
	}{
		{"insert last", optest.Node{Op: "SequenceInsert"}, []*tensor.Tensor{s, c}, list(a, b, c)},
		{"insert", optest.Node{Op: "SequenceInsert"}, []*tensor.Tensor{s, c, scalar(-2)}, list(c, a, b)},
		{"erase last", optest.Node{Op: "SequenceErase"}, []*tensor.Tensor{s}, list(a)},
		{"erase", optest.Node{Op: "SequenceErase"}, []*tensor.Tensor{s, scalar(0)}, list(b)},
		{"at", optest.Node{Op: "SequenceAt"}, []*tensor.Tensor{s, scalar(-1)}, value(b)},
		{"length", optest.Node{Op: "SequenceLength"}, []*tensor.Tensor{s}, value(scalar(2))},
		{"empty", optest.Node{Op: "SequenceEmpty", Attrs: graph.Attrs{"dtype": int64(7)}}, nil, value(&tensor.Tensor{Type: tensor.Sequence, Elem: tensor.Int64, Data: []byte{}})},
		{"concat", optest.Node{Op: "ConcatFromSequence", Attrs: graph.Attrs{"axis": int64(0)}}, []*tensor.Tensor{s}, value(f32([]int{3}, 1, 2, 3))},
		{"stack", optest.Node{Op: "ConcatFromSequence", Attrs: graph.Attrs{"axis": int64(-1), "new_axis": int64(1)}}, []*tensor.Tensor{sequence(tensor.Float32, []*tensor.Tensor{b, b})}, value(f32([]int{2, 2}, 2, 2, 3, 3))},
		{"split", optest.Node{Op: "SplitToSequence"}, []*tensor.Tensor{f32([]int{3}, 1, 2, 3), scalar(2)}, list(f32([]int{2}, 1, 2), f32([]int{1}, 3))},
		{"split by lengths", optest.Node{Op: "SplitToSequence", Attrs: graph.Attrs{"axis": int64(1)}}, []*tensor.Tensor{f32([]int{1, 3}, 1, 2, 3), i64(1, 2)}, list(f32([]int{1, 1}, 1), f32([]int{1, 2}, 2, 3))},
		{"split to elements", optest.Node{Op: "SplitToSequence", Attrs: graph.Attrs{"keepdims": int64(0)}}, []*tensor.Tensor{f32([]int{2, 1}, 1, 2)}, list(f32([]int{1}, 1), f32([]int{1}, 2))},
		{"some", optest.Node{Op: "Optional", Version: 15}, []*tensor.Tensor{b}, list(b)},
		{"none", optest.Node{Op: "Optional", Version: 15, Attrs: graph.Attrs{"type": "tensor(int64)"}}, nil, value(&tensor.Tensor{Type: tensor.Optional, Elem: tensor.Int64, Data: []byte{}})},
		{"get", optest.Node{Op: "OptionalGetElement", Version: 15}, []*tensor.Tensor{{Type: tensor.Optional, Elems: []*tensor.Tensor{s}, Data: []byte{}}}, list(a, b)},
		{"get tensor", optest.Node{Op: "OptionalGetElement", Version: 18}, []*tensor.Tensor{b}, value(b)},
		{"has", optest.Node{Op: "OptionalHasElement", Version: 15}, []*tensor.Tensor{{Type: tensor.Optional, Data: []byte{}}}, value(boolean(false))},
		{"has tensor", optest.Node{Op: "OptionalHasElement", Version: 18}, []*tensor.Tensor{b}, value(boolean(true))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := tt.diff(run(t, tt.node, tt.in...)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	empty := sequence(tensor.Float32, nil)
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
	}{
		{"at", optest.Node{Op: "SequenceAt", Version: 11}, []*tensor.Tensor{empty, i64(0)}},
		{"erase", optest.Node{Op: "SequenceErase", Version: 11}, []*tensor.Tensor{empty}},
		{"insert", optest.Node{Op: "SequenceInsert", Version: 11}, []*tensor.Tensor{empty, i64(1)}},
		{"concat", optest.Node{Op: "ConcatFromSequence", Version: 11}, []*tensor.Tensor{empty}},
		{"split", optest.Node{Op: "SplitToSequence", Version: 11}, []*tensor.Tensor{i64(1, 2), i64(1, 2)}},
		{"get", optest.Node{Op: "OptionalGetElement", Version: 18}, []*tensor.Tensor{{Type: tensor.Optional, Data: []byte{}}}},
		{"loop without body", optest.Node{Op: "Loop", Version: 13}, []*tensor.Tensor{i64(1)}},
		{"if without body", optest.Node{Op: "If", Version: 13}, []*tensor.Tensor{boolean(true)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if out, err := optest.Run(Defs(), tt.node, tt.in...); err == nil {
				t.Errorf("gives %v", out[0])
			}
		})
	}
}

// TestEndlessLoop ends a loop that has neither a count nor a condition, nor a step to stop at.
func TestEndlessLoop(t *testing.T) {
	t.Parallel()
	body := newBuild(1)
	body.Inputs = body.all(names("i", "cond", "x"))
	body.Outputs = body.all(names("cond", "x"))
	main := newBuild(0)
	main.Inputs = main.all(names("x0"))
	main.node("Loop", 13, graph.Attrs{"body": graph.GraphRef(1)}, names("", "", "x0"), names("x"))
	main.Outputs = main.all(names("x"))
	m := &graph.Model{Graphs: []*graph.Graph{main.Graph, body.Graph}}
	s, err := engine.New(m, []*tensor.Tensor{f32([]int{1}, 1)}, engine.Options{Registry: op.NewRegistry(Defs())})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
