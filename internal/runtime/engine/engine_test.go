package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// testOps are small operators with the traits that the engine depends on.
func testOps() *op.Registry { return op.NewRegistry(testDefs()) }

func testDefs() []op.Def {
	same := func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil }
	unary := func(f func(float32) float32) func(*op.Call) (op.Run, error) {
		return op.Simple(func(c *op.Call) error {
			x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
			for i := range y {
				y[i] = f(x[i])
			}
			return nil
		})
	}
	return []op.Def{
		{Name: "Twice", Infer: same, InPlace: true, Prepare: unary(func(v float32) float32 { return 2 * v })},
		{Name: "Inc", Infer: same, Prepare: unary(func(v float32) float32 { return v + 1 })},
		{Name: "Relu", Infer: same, Prepare: unary(func(v float32) float32 { return max(v, 0) })},
		{Name: "Boom", Infer: same, Prepare: unary(func(v float32) float32 { panic("boom") })},
		{Name: "Half", Infer: same, Prepare: func(c *op.Call) (op.Run, error) { return nil, op.Unsupported("halves") }},
		{Name: "Sub", Fuses: true, Infer: same, Prepare: op.Simple(func(c *op.Call) error {
			x, z, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.Out[0])
			for i := range y {
				y[i] = x[i] - z[i]
				if c.Activation.On {
					y[i] = min(max(y[i], c.Activation.Min), c.Activation.Max)
				}
			}
			return nil
		})},
		// Take keeps the first n elements: its shape depends on a value.
		{Name: "Take", Infer: func(c *op.Call) error {
			n, err := op.Ints(c.In[1])
			if err != nil {
				return err
			}
			c.SetOut(0, c.In[0].Type, []int{n[0]})
			return nil
		}, Prepare: op.Simple(func(c *op.Call) error { copy(c.Out[0].Data, c.In[0].Data); return nil })},
		{Name: "Repeat", Infer: func(c *op.Call) error { return op.ErrDynamic }, Prepare: op.Simple(func(c *op.Call) error {
			g, _ := c.Node.Attrs.Graph("body")
			b, err := c.Env.Body(g)
			if err != nil {
				return err
			}
			x := c.In[0]
			for range c.Node.Attrs.Int("times", 1) {
				out, err := b.Run([]*tensor.Tensor{x})
				if err != nil {
					return err
				}
				x = out[0]
			}
			*c.Out[0] = *x.Clone()
			return nil
		})},
	}
}

func vec(v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, []int{len(v)}, v) }
func num(v int64) *tensor.Tensor      { return tensor.From(tensor.Int64, nil, []int64{v}) }

// build makes a graph from lines "Op out in in", or "Op out,out in": values are created by name,
// inputs are named x…, constants are given.
func build(index int, consts map[string]*tensor.Tensor, inputs, outputs string, lines ...string) *graph.Graph {
	g := &graph.Graph{Index: index, Name: "g"}
	ids := map[string]int{}
	id := func(name string) int {
		if name == "_" {
			return -1
		}
		if i, ok := ids[name]; ok {
			return i
		}
		v := &graph.Value{ID: len(g.Values), Name: name, Const: consts[name]}
		g.Values = append(g.Values, v)
		ids[name] = v.ID
		return v.ID
	}
	list := func(s string) (out []int) {
		for _, n := range strings.Fields(s) {
			out = append(out, id(n))
		}
		return out
	}
	g.Inputs = list(inputs)
	for i, l := range lines {
		p := strings.Fields(l)
		g.Nodes = append(g.Nodes, &graph.Node{Index: i, Op: p[0], Name: p[1], Version: 1, Outputs: list(strings.ReplaceAll(p[1], ",", " ")), Inputs: list(strings.Join(p[2:], " "))})
	}
	g.Outputs = list(outputs)
	return g
}

func start(t *testing.T, o Options, in []*tensor.Tensor, gs ...*graph.Graph) *Session {
	t.Helper()
	s, err := open(t, o, in, gs...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open is start for sessions that may be rejected. The operators of o are added to those of these
// tests.
func open(t *testing.T, o Options, in []*tensor.Tensor, gs ...*graph.Graph) (*Session, error) {
	t.Helper()
	m := &graph.Model{Graphs: gs}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	if o.Registry == nil {
		o.Registry = testOps()
	}
	s, err := New(m, in, o)
	if err == nil {
		t.Cleanup(s.Close)
	}
	return s, err
}

// with returns the operators of these tests and more.
func with(more ...op.Def) *op.Registry { return op.NewRegistry(testDefs(), more) }

func run(t *testing.T, s *Session) {
	t.Helper()
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func wantOut(t *testing.T, s *Session, i int, want ...float32) {
	t.Helper()
	if got := tensor.Of[float32](s.Output(i)); !slices.Equal(got, want) {
		t.Fatalf("output %d is %v, want %v", i, got, want)
	}
}

func states(s *Session) string {
	var b []string
	for _, st := range s.Steps() {
		b = append(b, st.State.String())
	}
	return strings.Join(b, " ")
}

func TestRun(t *testing.T) {
	t.Parallel()
	consts := map[string]*tensor.Tensor{"c": vec(3, 3, 3), "n": num(2)}
	for _, c := range []struct {
		name, in, out string
		lines         []string
		want          []float32
		states        string
	}{
		{"chain", "x", "b", []string{"Twice a x", "Inc b a"}, []float32{3, 5, 7}, "runs runs"},
		{"in place", "x", "c2", []string{"Inc a x", "Twice b a", "Twice c2 b"}, []float32{8, 12, 16}, "runs runs runs"},
		{"folded", "x", "y", []string{"Twice d c", "Sub y x d"}, []float32{-5, -4, -3}, "folded runs"},
		{"fused", "x", "y", []string{"Sub a x c", "Relu y a"}, []float32{0, 0, 0}, "runs fused"},
		{"read twice is not fused", "x", "y", []string{"Sub a x c", "Relu r a", "Sub y a r"}, []float32{-2, -1, 0}, "runs runs runs"},
		{"shape from a constant", "x", "y", []string{"Take y x n"}, []float32{1, 2}, "runs"},
		{"last use", "x", "y", []string{"Inc a x", "Inc b a", "Inc d b", "Sub y d a"}, []float32{2, 2, 2}, "runs runs runs runs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{}, []*tensor.Tensor{vec(1, 2, 3)}, build(0, consts, c.in, c.out, c.lines...))
			for range 3 {
				if err := s.Run(context.Background()); err != nil {
					t.Fatal(err)
				}
				wantOut(t, s, 0, c.want...)
			}
			if got := states(s); got != c.states {
				t.Errorf("states %q, want %q", got, c.states)
			}
			k := start(t, Options{KeepAll: true}, []*tensor.Tensor{vec(1, 2, 3)}, build(0, consts, c.in, c.out, c.lines...))
			if err := k.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			wantOut(t, k, 0, c.want...)
		})
	}
}

// TestShare: nodes that read one constant share its prepared form.
func TestShare(t *testing.T) {
	t.Parallel()
	made := 0
	add := op.Def{Name: "Add", Infer: func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil }, Prepare: func(c *op.Call) (op.Run, error) {
		by := op.Share(c, 1, c.Node.Name[:1], func() float32 { made++; return tensor.Of[float32](c.In[1])[0] })
		return func(c *op.Call) error {
			tensor.Of[float32](c.Out[0])[0] = tensor.Of[float32](c.In[0])[0] + by
			return nil
		}, nil
	}}
	consts := map[string]*tensor.Tensor{"c": vec(1), "d": vec(10), "e": vec(100)}
	g := build(0, consts, "x", "q5", "Add p1 x c", "Add p2 p1 c", "Add q3 p2 c", "Add q4 q3 d", "Add q5 q4 e")
	s := start(t, Options{Registry: with(add)}, []*tensor.Tensor{vec(1000)}, g)
	run(t, s)
	wantOut(t, s, 0, 1113)
	if made != 4 { // c in two forms, d, e
		t.Errorf("made %d times, want 4", made)
	}
}

func TestDynamicShapes(t *testing.T) {
	t.Parallel()
	s := start(t, Options{}, []*tensor.Tensor{vec(1, 2, 3), num(2)}, build(0, nil, "x n", "y", "Take a x n", "Inc b a", "Twice y b"))
	for _, n := range []int64{2, 3, 1, 3} {
		s.SetInput(1, num(n))
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		wantOut(t, s, 0, []float32{4, 6, 8}[:n]...)
	}
	// A new input shape plans again.
	s.SetInput(0, vec(5, 6))
	s.SetInput(1, num(1))
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantOut(t, s, 0, 12)
}

func TestCannotRun(t *testing.T) {
	t.Parallel()
	g := build(0, nil, "x", "y z w", "Nope a x", "Inc y a", "Twice z x", "Half w x")
	g.Values[g.Nodes[3].Outputs[0]].Type = tensor.Float32
	g.Values[g.Nodes[3].Outputs[0]].Shape = []int{3}
	g.Values[g.Nodes[3].Outputs[0]].HasShape = true
	s := start(t, Options{}, []*tensor.Tensor{vec(1, 2, 3)}, g)
	if got, want := states(s), "unsupported skipped runs unsupported"; got != want {
		t.Errorf("states %q, want %q", got, want)
	}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantOut(t, s, 1, 2, 4, 6)
	if s.Output(0) != nil {
		t.Error("an output that no one computes has a value")
	}
	wantOut(t, s, 2, 0, 0, 0) // zeros of the declared shape
}

func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	s := start(t, Options{}, []*tensor.Tensor{vec(1)}, build(0, nil, "x", "y", "Boom y x"))
	err := s.Run(context.Background())
	var ne *NodeError
	if !errors.As(err, &ne) || ne.Node.Op != "Boom" || !strings.Contains(err.Error(), `node 0 (Boom "y")`) {
		t.Fatalf("error %v does not name the node", err)
	}
}

func TestDisable(t *testing.T) {
	t.Parallel()
	s := start(t, Options{}, []*tensor.Tensor{vec(1)}, build(0, nil, "x", "z", "Boom y x", "Inc w y", "Inc z x"))
	var ne *NodeError
	if err := s.Run(context.Background()); !errors.As(err, &ne) || !s.Disable(ne) {
		t.Fatalf("cannot disable the failed node: %v", err)
	}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantOut(t, s, 0, 2)
	if got, want := states(s), "failed skipped runs"; got != want {
		t.Errorf("states %q, want %q", got, want)
	}
	if s.Disable(ne) {
		t.Error("a node is disabled twice")
	}
}

func TestBodyTimingAndCancel(t *testing.T) {
	t.Parallel()
	main := build(0, nil, "x k", "y", "Repeat y x")
	main.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1), "times": int64(5)}
	inner := build(1, nil, "v", "o", "Inc a v", "Sub o a outer")
	outer := slices.IndexFunc(inner.Values, func(v *graph.Value) bool { return v.Name == "outer" })
	inner.Captures = []graph.Capture{{Inner: outer, Outer: main.Inputs[1]}}
	inner.Parent = main
	s := start(t, Options{}, []*tensor.Tensor{vec(1, 2), vec(10, 20)}, main, inner)
	tm := s.NewTiming()
	if err := s.RunTimed(context.Background(), tm); err != nil {
		t.Fatal(err)
	}
	wantOut(t, s, 0, 1+5-50, 2+5-100)
	var sum int64
	for i, b := range tm.Bodies[1] {
		if b.Calls != 5 {
			t.Errorf("body node %d ran %d times, want 5", i, b.Calls)
		}
		sum += b.Nanoseconds
	}
	if total := tm.Bounds[1] - tm.Bounds[0]; sum > total || total <= 0 {
		t.Errorf("bodies took %d ns of %d", sum, total)
	}
	if len(s.BodySteps(1)) != 2 {
		t.Error("the body's steps are not described")
	}
	if len(tm.Events) != 0 || tm.Missed != 0 {
		t.Errorf("%d events, %d missed without room for any", len(tm.Events), tm.Missed)
	}
	tm.Events = make([]BodyEvent, 0, 7)
	for range 2 { // the second run starts over
		if err := s.RunTimed(context.Background(), tm); err != nil {
			t.Fatal(err)
		}
	}
	if len(tm.Events) != 7 || tm.Missed != 3 {
		t.Errorf("%d events, %d missed; want 7, 3", len(tm.Events), tm.Missed)
	}
	last := tm.Bounds[0]
	for i, e := range tm.Events {
		if e.Graph != 1 || int(e.Node) != i%2 || e.Start < last || e.End < e.Start || e.End > tm.Bounds[1] {
			t.Errorf("event %d is %+v after %d", i, e, last)
		}
		last = e.End
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("run after cancel: %v", err)
	}
}

func TestVariableAndCarry(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Carry: []Carry{{0, 0}}}, []*tensor.Tensor{vec(1)}, build(0, nil, "x", "y", "Twice y x"))
	for _, want := range []float32{2, 4, 8} {
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		wantOut(t, s, 0, want)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	s := start(t, Options{}, []*tensor.Tensor{vec(1, 2, 3)}, build(0, nil, "x", "y", "Inc a x", "Twice b a", "Inc y b"))
	tm := s.NewTiming()
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		if err := s.RunTimed(ctx, tm); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// TestCarry feeds outputs back and compares every run with numbers computed by hand. In the
// steady state no run allocates, because a key-value cache of any size must not be copied.
func TestCarry(t *testing.T) {
	for _, c := range []struct {
		name, in, out string
		lines         []string
		carry         []Carry
		want          func(a, b float32) (float32, float32)
	}{
		{"through one step", "x z", "y z", []string{"Twice y x"}, []Carry{{0, 0}}, func(a, b float32) (float32, float32) { return 2 * a, b }},
		{"through steps in place", "x z", "y z", []string{"Inc a x", "Twice b a", "Twice y b"}, []Carry{{0, 0}}, func(a, b float32) (float32, float32) { return 4 * (a + 1), b }},
		{"read again in the same run", "x z", "y w", []string{"Inc y x", "Sub w y z"}, []Carry{{0, 0}}, func(a, b float32) (float32, float32) { return a + 1, a + 1 - b }},
		{"two that change places", "x z", "p q", []string{"Inc p z", "Twice q x"}, []Carry{{0, 0}, {1, 1}}, func(a, b float32) (float32, float32) { return b + 1, 2 * a }},
		{"inputs that change places", "x z", "z x", nil, []Carry{{0, 0}, {1, 1}}, func(a, b float32) (float32, float32) { return b, a }},
		{"one output to both", "x z", "y y", []string{"Sub y x z"}, []Carry{{0, 0}, {1, 1}}, func(a, b float32) (float32, float32) { return a - b, a - b }},
		{"both from one output", "x z", "y z", []string{"Inc y x"}, []Carry{{0, 0}, {0, 1}}, func(a, b float32) (float32, float32) { return a + 1, b }},
	} {
		for _, keep := range []bool{false, true} {
			s := start(t, Options{Carry: c.carry, KeepAll: keep}, []*tensor.Tensor{vec(5), vec(7)}, build(0, nil, c.in, c.out, c.lines...))
			state := [2]float32{5, 7}
			for i := range 5 {
				if err := s.Run(context.Background()); err != nil {
					t.Fatal(err)
				}
				var out [2]float32
				out[0], out[1] = c.want(state[0], state[1])
				for k, v := range out {
					if got := tensor.Of[float32](s.Output(k))[0]; got != v {
						t.Fatalf("%s: output %d of run %d is %v, want %v", c.name, k, i, got, v)
					}
				}
				for _, p := range c.carry {
					state[p.Input] = out[p.Output]
				}
			}
			if n := testing.AllocsPerRun(20, func() {
				if err := s.Run(context.Background()); err != nil {
					t.Fatal(err)
				}
			}); n > 0 {
				t.Errorf("%s: %v allocations a run", c.name, n)
			}
		}
	}
}

// TestCarryAndSetInput sets an input between runs: the output that would have been fed back there
// is dropped, and the given tensor is never written.
func TestCarryAndSetInput(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Carry: []Carry{{0, 0}}}, []*tensor.Tensor{vec(1)}, build(0, nil, "x", "y", "Twice y x"))
	given := vec(10)
	for i, want := range []float32{2, 4, 20, 40} {
		if i == 2 {
			s.SetInput(0, given)
		}
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		wantOut(t, s, 0, want)
	}
	// Another shape plans again, and carrying continues.
	s.SetInput(0, vec(1, 2))
	for _, want := range [][]float32{{2, 4}, {4, 8}} {
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		wantOut(t, s, 0, want...)
	}
	if v := tensor.Of[float32](given)[0]; v != 10 {
		t.Errorf("the caller's tensor now holds %v", v)
	}
}
