package engine_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// net builds graphs by the names of values.
type net struct {
	*graph.Graph
	ids map[string]int
}

func newNet(index int) *net {
	return &net{&graph.Graph{Index: index, Name: string(rune('a' + index))}, map[string]int{}}
}

func (n *net) id(name string) int {
	if name == "" {
		return -1
	}
	id, ok := n.ids[name]
	if !ok {
		id = len(n.Values)
		n.ids[name] = id
		n.Values = append(n.Values, &graph.Value{ID: id, Name: name})
	}
	return id
}

func (n *net) idsOf(names string) []int {
	var out []int
	for _, s := range strings.Fields(names) {
		out = append(out, n.id(strings.Trim(s, "_")))
	}
	return out
}

func (n *net) constant(name string, t *tensor.Tensor) {
	v := n.Values[n.id(name)]
	v.Type, v.Shape, v.HasShape, v.Const = t.Type, t.Shape, true, t
}

func (n *net) typed(name string, t tensor.Type, shape ...int) {
	v := n.Values[n.id(name)]
	v.Type, v.Shape, v.HasShape = t, shape, true
}

func (n *net) node(domain, name string, version int, in, out string, attrs graph.Attrs) {
	n.Nodes = append(n.Nodes, &graph.Node{Index: len(n.Nodes), Domain: domain, Op: name, Version: version, Inputs: n.idsOf(in), Outputs: n.idsOf(out), Attrs: attrs})
}

func scalarOf[T int64 | float32](t tensor.Type, v T) *tensor.Tensor {
	return tensor.From(t, []int{}, []T{v})
}

func yes() *tensor.Tensor { return tensor.From(tensor.Bool, []int{}, []uint8{1}) }

func text(s string) *tensor.Tensor {
	t := tensor.New(tensor.String, 1)
	t.Strings[0] = s
	return t
}

// looping is an ONNX model of one Loop with a state, whose body computes the next state and the
// scan output of each iteration, and an independent node beside it.
func looping(trips string, state *tensor.Tensor, body func(b *net)) *graph.Model {
	m, b := newNet(0), newNet(1)
	b.Parent = m.Graph
	b.typed("i", tensor.Int64)
	b.typed("more", tensor.Bool)
	b.Inputs = b.idsOf("i more s")
	b.node("", "Identity", 16, "more", "again", nil)
	body(b)
	b.Outputs = b.idsOf("again t y")
	m.constant("trips", scalarOf(tensor.Int64, int64(math.MaxInt64)))
	m.constant("few", scalarOf(tensor.Int64, int64(1000)))
	m.constant("true", yes())
	m.constant("s0", state)
	m.typed("x", tensor.Float32, 4)
	m.Inputs = m.idsOf("x")
	m.node("", "Loop", 16, trips+" true s0", "s1 ys", graph.Attrs{"body": graph.GraphRef(1)})
	m.node("", "Relu", 14, "x", "z", nil)
	m.Outputs = m.idsOf("s1 ys z")
	return &graph.Model{Format: "onnx", Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{m.Graph, b.Graph}}
}

// endless is a TFLite WHILE whose condition never fails.
func endless() *graph.Model {
	m, c, b := newNet(0), newNet(1), newNet(2)
	for _, n := range []*net{m, c, b} {
		n.typed("x", tensor.Float32, 4)
		n.Inputs = n.idsOf("x")
	}
	c.constant("yes", tensor.From(tensor.Bool, []int{1}, []uint8{1}))
	c.Outputs = c.idsOf("yes")
	b.typed("y", tensor.Float32, 4)
	b.node(graph.TFLite, "RELU", 1, "x", "y", nil)
	b.Outputs = b.idsOf("y")
	m.typed("y", tensor.Float32, 4)
	m.typed("z", tensor.Float32, 4)
	m.node(graph.TFLite, "WHILE", 1, "x", "y", graph.Attrs{"cond_subgraph_index": graph.GraphRef(1), "body_subgraph_index": graph.GraphRef(2)})
	m.node(graph.TFLite, "RELU", 1, "x", "z", nil)
	m.Outputs = m.idsOf("y z")
	return &graph.Model{Format: "tflite", Graphs: []*graph.Graph{m.Graph, c.Graph, b.Graph}}
}

// doubling calls the next graph twice in each of a number of graphs, so that the last one runs
// two to that power times.
func doubling(levels int) *graph.Model {
	m := &graph.Model{Format: "tflite"}
	for i := range levels + 2 {
		n := newNet(i)
		for _, v := range []string{"x", "a", "y", "z"} {
			n.typed(v, tensor.Float32, 4)
		}
		n.Inputs, n.Outputs = n.idsOf("x"), n.idsOf("y")
		call := graph.Attrs{"subgraph": graph.GraphRef(i + 1)}
		switch {
		case i > levels:
			n.node(graph.TFLite, "RELU", 1, "x", "y", nil)
		case i == 0:
			n.node(graph.TFLite, "CALL", 1, "x", "y", call)
			n.node(graph.TFLite, "RELU", 1, "x", "z", nil)
			n.Outputs = n.idsOf("y z")
		default:
			n.node(graph.TFLite, "CALL", 1, "x", "a", call)
			n.node(graph.TFLite, "CALL", 1, "a", "y", call)
		}
		m.Graphs = append(m.Graphs, n.Graph)
	}
	return m
}

func counted(b *net) {
	b.node("", "Add", 14, "s i", "t", nil)
	b.node("", "Identity", 16, "t", "y", nil)
}

// TestLoopsEnd stops endless loops and no others. The rest of the model runs.
func TestLoopsEnd(t *testing.T) {
	t.Parallel()
	const short = time.Millisecond
	zero := func() *tensor.Tensor { return scalarOf(tensor.Int64, int64(0)) }
	quiet := func(b *net) { b.node("", "Add", 14, "s i", "t", nil); b.node("", "Size", 13, "t", "y", nil) }
	nested := looping("few", zero(), func(b *net) {
		b.constant("huge", scalarOf(tensor.Int64, int64(math.MaxInt64)))
		b.node("", "Loop", 16, "huge more s", "t ys", graph.Attrs{"body": graph.GraphRef(2)})
		b.node("", "Identity", 16, "t", "y", nil)
	})
	inner := newNet(2)
	inner.Parent = nested.Graphs[1]
	inner.typed("i", tensor.Int64)
	inner.typed("more", tensor.Bool)
	inner.Inputs = inner.idsOf("i more s")
	inner.node("", "Identity", 16, "more", "again", nil)
	inner.node("", "Add", 14, "s i", "t", nil)
	inner.Outputs = inner.idsOf("again t t")
	nested.Graphs = append(nested.Graphs, inner.Graph)
	for _, tt := range []struct {
		name  string
		m     *graph.Model
		limit time.Duration
		fails bool
	}{
		{"trip count of the largest integer", looping("trips", zero(), quiet), short, true},
		{"no trip count", looping("_", zero(), quiet), short, true},
		{"WHILE", endless(), short, true},
		{"endless within one with an end", nested, short, true},
		{"graphs that call the next one twice, 40 deep", doubling(40), short, true},
		{"graphs that call the next one twice, 4 deep", doubling(4), 1, false},
		{"known end", looping("few", zero(), counted), 1, false},
		{"known end, no limit", looping("few", zero(), counted), 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := disabling(t, tt.m, engine.Options{MaxLoop: tt.limit})
			loop := (*op.LoopError)(nil)
			if tt.fails != errors.As(err, &loop) || tt.fails && loop.Limit != tt.limit {
				t.Errorf("error %v", err)
			}
		})
	}
}

// disabling runs a model without the node that fails, and returns that node's error. Any other
// error, or an independent node that does not run, is a test failure.
func disabling(t *testing.T, m *graph.Model, o engine.Options) error {
	t.Helper()
	o.Registry = operators.Registry()
	x := tensor.From(tensor.Float32, []int{4}, []float32{-1, 2, -3, 4})
	s, err := engine.New(m, []*tensor.Tensor{x}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := s.Run(t.Context())
	for err := first; err != nil; err = s.Run(t.Context()) {
		var nodes []*engine.NodeError
		loop := (*op.LoopError)(nil)
		endless := errors.As(err, &loop)
		for ne := (*engine.NodeError)(nil); errors.As(err, &ne); err = ne.Err {
			nodes = append(nodes, ne)
		}
		if endless { // as all do, else the enclosing loop would wait for the next
			slices.Reverse(nodes)
		}
		out := false
		for _, ne := range slices.Backward(nodes) {
			out = out || s.Disable(ne)
		}
		if !out {
			t.Fatalf("no node can be taken out: %v", first)
		}
	}
	z := s.Output(len(m.Main().Outputs) - 1)
	if v := tensor.Of[float32](z); len(v) != 4 || v[0] != 0 || v[1] != 2 || v[3] != 4 {
		t.Errorf("the node beside it gave %v", v)
	}
	return first
}

// TestMemoryOfRuns bounds memory that a model takes at run time and no plan knows of: what loops
// collect, strings and lists that grow.
func TestMemoryOfRuns(t *testing.T) {
	t.Parallel()
	const limit = 8 << 20
	list := func() *tensor.Tensor {
		return &tensor.Tensor{Type: tensor.Sequence, Elem: tensor.Float32, Data: []byte{}}
	}
	for _, tt := range []struct {
		name string
		m    *graph.Model
	}{
		{"yields", looping("trips", scalarOf(tensor.Int64, int64(0)), func(b *net) {
			b.constant("shape", tensor.From(tensor.Int64, []int{1}, []int64{4096}))
			b.node("", "Expand", 13, "s shape", "y", nil)
			b.node("", "Add", 14, "s i", "t", nil)
		})},
		{"text that doubles", looping("trips", text("0123456789abcdef"), func(b *net) {
			b.node("", "StringConcat", 20, "s s", "t", nil)
			b.node("", "Identity", 16, "i", "y", nil)
		})},
		{"state that doubles", looping("trips", tensor.From(tensor.Float32, []int{4}, []float32{1, 2, 3, 4}), func(b *net) {
			b.node("", "Concat", 13, "s s", "t", graph.Attrs{"axis": int64(0)})
			b.node("", "Identity", 16, "i", "y", nil)
		})},
		{"list that grows", withList(looping("trips", list(), func(b *net) {
			b.constant("shape", tensor.From(tensor.Int64, []int{1}, []int64{4096}))
			b.node("", "Expand", 13, "i shape", "e", nil)
			b.node("", "SequenceInsert", 11, "s e", "t", nil)
			b.node("", "Identity", 16, "i", "y", nil)
		}))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := disabling(t, tt.m, engine.Options{MaxBytes: limit})
			le := (*op.LimitError)(nil)
			if !errors.As(err, &le) || le.Limit > limit || le.Want <= le.Limit {
				t.Errorf("error %v", err)
			}
		})
	}
}

// withList computes the loop's first state in the model, because constants cannot be lists.
func withList(m *graph.Model) *graph.Model {
	g := m.Graphs[0]
	for _, v := range g.Values {
		if v.Name == "s0" {
			v.Const, v.Type, v.Shape, v.HasShape = nil, tensor.Sequence, nil, false
			for i, n := range g.Nodes {
				n.Index = i + 1
			}
			g.Nodes = append([]*graph.Node{{Op: "SequenceEmpty", Version: 11, Outputs: []int{v.ID}, Attrs: graph.Attrs{"dtype": int64(7)}}}, g.Nodes...)
		}
	}
	return m
}
