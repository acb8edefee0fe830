package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// testOps are small operators with the traits that planning depends on. Control-flow operators
// have the names of the formats and do everything at run time.
func testOps() *op.Registry {
	same := func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil }
	ran := op.Simple(func(c *op.Call) error { copy(c.Out[0].Data, c.In[0].Data); return nil })
	dynamic := func(*op.Call) error { return op.ErrDynamic }
	def := func(domain, name string, infer func(*op.Call) error) op.Def {
		return op.Def{Domain: domain, Name: name, Infer: infer, Prepare: ran}
	}
	defs := []op.Def{
		def("", "Same", same), def("", "Relu", same), def("", "Clip", same),
		def("", "Boom", func(*op.Call) error { panic("boom") }),
		def("", "Wrong", func(*op.Call) error { return errors.New("contradiction") }),
		def("", "Huge", func(c *op.Call) error { c.SetOut(0, tensor.Float32, []int{1 << 20, 1 << 20}); return nil }),
		{Name: "Random", Infer: same, Prepare: ran, Stateful: true},
		{Name: "Lame", Infer: same, Prepare: func(*op.Call) (op.Run, error) { return nil, op.Unsupported("this") }},
		{Name: "Sub", Infer: same, Prepare: ran, Fuses: true},
		{Name: "Shape", ShapeOnly: true, Infer: func(c *op.Call) error {
			c.SetOut(0, tensor.Int64, []int{c.In[0].Rank()})
			return nil
		}, Prepare: op.Simple(func(c *op.Call) error {
			for i, d := range c.In[0].Shape {
				tensor.Of[int64](c.Out[0])[i] = int64(d)
			}
			return nil
		})},
		{Name: "Double", Infer: same, Prepare: op.Simple(func(c *op.Call) error {
			for i, v := range tensor.Of[int64](c.In[0]) {
				tensor.Of[int64](c.Out[0])[i] = 2 * v
			}
			return nil
		})},
		// Grow concatenates the value with itself: its shape changes in each iteration.
		def("", "Grow", func(c *op.Call) error { c.SetOut(0, c.In[0].Type, []int{2 * c.In[0].Len()}); return nil }),
		def("", "Fill", func(c *op.Call) error {
			s, err := op.Ints(c.In[0])
			if err == nil {
				c.SetOut(0, tensor.Float32, s)
			}
			return err
		}),
		def("", "True", func(c *op.Call) error { c.SetOut(0, tensor.Bool, nil); return nil }),
	}
	for _, n := range []string{"If", "Loop", "Scan", "Other"} {
		defs = append(defs, def("", n, dynamic))
	}
	for _, n := range []string{"IF", "WHILE", "CALL", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "CALL_ONCE"} {
		d := def(graph.TFLite, n, dynamic)
		d.Stateful = true
		defs = append(defs, d)
	}
	return op.NewRegistry(defs)
}

// build makes a graph from lines "Op out[,out] in in"; constants are given by name.
func build(index int, consts map[string]*tensor.Tensor, inputs, outputs string, lines ...string) *graph.Graph {
	g := &graph.Graph{Index: index, Name: fmt.Sprintf("g%d", index)}
	ids := map[string]int{}
	list := func(names []string) (out []int) {
		for _, n := range names {
			if n == "_" {
				out = append(out, -1)
				continue
			}
			if _, ok := ids[n]; !ok {
				ids[n] = len(g.Values)
				g.Values = append(g.Values, &graph.Value{ID: len(g.Values), Name: n, Const: consts[n]})
			}
			out = append(out, ids[n])
		}
		return out
	}
	g.Inputs = list(strings.Fields(inputs))
	for i, l := range lines {
		p := strings.Fields(l)
		g.Nodes = append(g.Nodes, &graph.Node{Index: i, Op: p[0], Name: p[1], Version: 13, Inputs: list(p[2:]), Outputs: list(strings.Split(p[1], ","))})
	}
	g.Outputs = list(strings.Fields(outputs))
	return g
}

func id(g *graph.Graph, name string) int {
	return slices.IndexFunc(g.Values, func(v *graph.Value) bool { return v.Name == name })
}

// within makes g a body of outer that captures the named values.
func within(g, outer *graph.Graph, names ...string) *graph.Graph {
	g.Parent = outer
	for _, n := range names {
		g.Captures = append(g.Captures, graph.Capture{Inner: id(g, n), Outer: id(outer, n)})
	}
	return g
}

func f32(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float32, shape...) }

func i64(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }

func made(t *testing.T, o Options, in []*tensor.Tensor, gs ...*graph.Graph) *Plan {
	t.Helper()
	m := &graph.Model{Graphs: gs}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	o.Registry = testOps()
	p, err := Make(m, in, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func states(steps []Step) string {
	var out []string
	for _, s := range steps {
		out = append(out, s.State.String())
	}
	return strings.Join(out, " ")
}

// shown formats a value's type and shape, "?" when it is unknown.
func shown(p *Plan, g int, name string) string {
	f := p.Model.Graphs[g]
	if len(p.graphs[g]) == 0 {
		return "unplanned"
	}
	t := p.known(g, id(f, name))
	if t == nil {
		return "?"
	}
	return fmt.Sprintf("%v %s", t.Type, tensor.FormatShape(t.Shape))
}

func TestFold(t *testing.T) {
	t.Parallel()
	consts := map[string]*tensor.Tensor{"c": f32(3), "s": i64(2, 3)}
	for _, tt := range []struct {
		name   string
		lines  []string
		o      Options
		states string
		y      string
	}{
		{"constants", []string{"Same a c", "Sub y x a"}, Options{}, "folded runs", "float32 4x5"},
		{"shape of an input", []string{"Shape a x", "Double b a", "Fill y b"}, Options{}, "folded folded folded", "float32 8x10"},
		{"shape from a constant", []string{"Double a s", "Fill y a"}, Options{}, "folded folded", "float32 4x6"},
		{"over the size limit", []string{"Double a s", "Fill y a"}, Options{FoldBytes: 31}, "folded runs", "?"},
		{"over the memory limit", []string{"Double a s", "Fill y a"}, Options{MaxBytes: 15}, "failed skipped", "?"},
		{"just within the memory limit", []string{"Double a s", "Fill y a"}, Options{MaxBytes: 96}, "folded folded", "float32 4x6"},
		{"random numbers", []string{"Random y c"}, Options{}, "runs", "float32 3"},
		{"a shape that depends on elements", []string{"Fill y n"}, Options{}, "runs", "?"},
		{"what cannot be computed", []string{"Lame a s", "Fill y a"}, Options{}, "folded runs", "?"},
		{"no operator", []string{"Nope a x", "Same b a", "Same y x"}, Options{}, "unsupported skipped runs", "float32 4x5"},
		{"contradiction", []string{"Wrong a x", "Same y x"}, Options{}, "failed runs", "float32 4x5"},
		{"panic", []string{"Boom a x", "Same y x"}, Options{}, "failed runs", "float32 4x5"},
		{"too large", []string{"Huge a x", "Same y a"}, Options{MaxBytes: 1 << 30}, "failed skipped", "?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &tensor.Tensor{Type: tensor.Int64, Shape: []int{2}}
			p := made(t, tt.o, []*tensor.Tensor{f32(4, 5), n}, build(0, consts, "x n", "y", tt.lines...))
			if got := states(p.Steps(0)); got != tt.states {
				t.Errorf("states %q, want %q", got, tt.states)
			}
			if got := shown(p, 0, "y"); got != tt.y {
				t.Errorf("y is %s, want %s", got, tt.y)
			}
		})
	}
}

// TestDecide takes only shapes from the elements of inputs: nodes that compute with the elements
// still run in every inference.
func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		n      *tensor.Tensor
		lines  []string
		states string
		y      string
	}{
		{"elements", i64(7, 8), []string{"Fill y n"}, "runs", "float32 7x8"},
		{"through others", i64(7, 8), []string{"Double a n", "Fill b a", "Same y b"}, "runs runs runs", "float32 14x16"},
		{"no elements", &tensor.Tensor{Type: tensor.Int64, Shape: []int{2}}, []string{"Fill y n"}, "runs", "?"},
		{"no integers", f32(2), []string{"Fill y n"}, "runs", "?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := made(t, Options{}, []*tensor.Tensor{f32(4, 5), tt.n}, build(0, nil, "x n", "y", tt.lines...))
			if got := states(p.Steps(0)); got != tt.states {
				t.Errorf("states %q, want %q", got, tt.states)
			}
			if got := shown(p, 0, "y"); got != tt.y {
				t.Errorf("y is %s, want %s", got, tt.y)
			}
			y := p.Main.Known(id(p.Model.Main(), "y"))
			if got := y != nil && y.Known(); got {
				t.Error("a value of a run is known before it")
			}
		})
	}
}

// TestDeclaredStandsIn uses the declared shapes for the outputs of a node that does not run.
func TestDeclaredStandsIn(t *testing.T) {
	t.Parallel()
	g := build(0, nil, "x", "y", "Nope a x", "Same y a")
	v := g.Values[id(g, "a")]
	v.Type, v.Shape, v.HasShape = tensor.Int8, []int{2, 2}, true
	p := made(t, Options{}, []*tensor.Tensor{f32(3)}, g)
	if got := states(p.Steps(0)) + " " + shown(p, 0, "y"); got != "unsupported runs int8 2x2" {
		t.Error(got)
	}
}

// TestScratch gives operators an input that is never written: known or not, they are listed as
// unsupported, and their readers use the declared shape.
func TestScratch(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Nope", "Same"} {
		g := build(0, nil, "x", "y", name+" a s x", "Same y a")
		g.Values[id(g, "s")].Scratch = true
		v := g.Values[id(g, "a")]
		v.Type, v.Shape, v.HasShape = tensor.Int8, []int{2, 2}, true
		p := made(t, Options{}, []*tensor.Tensor{f32(3)}, g)
		if got := states(p.Steps(0)) + " " + shown(p, 0, "y"); got != "unsupported runs int8 2x2" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestActivation(t *testing.T) {
	t.Parallel()
	consts := map[string]*tensor.Tensor{"lo": tensor.From(tensor.Float32, nil, []float32{-1}), "hi": tensor.From(tensor.Float32, nil, []float32{1}), "w": f32(3), "six": tensor.From(tensor.Float16, nil, []uint16{0x4600})}
	half := tensor.New(tensor.Float16, 3)
	for _, tt := range []struct {
		name   string
		lines  []string
		o      Options
		states string
	}{
		{"clamp", []string{"Sub a x w", "Relu y a"}, Options{}, "runs fused"},
		{"limits", []string{"Sub a x w", "Clip y a lo hi"}, Options{}, "runs fused"},
		{"limits that are folded", []string{"Same l lo", "Sub a x w", "Clip y a l hi"}, Options{}, "folded runs fused"},
		{"limits that cross", []string{"Sub a x w", "Clip y a hi lo"}, Options{}, "runs runs"},
		{"limits of the run", []string{"Sub a x w", "Clip y a x"}, Options{}, "runs runs"},
		{"two clamps", []string{"Sub a x w", "Relu b a", "Relu y b"}, Options{}, "runs fused runs"},
		{"read twice", []string{"Sub a x w", "Relu b a", "Sub y a b"}, Options{}, "runs runs runs"},
		{"an output", []string{"Sub y x w", "Relu b y"}, Options{}, "runs runs"},
		{"cannot clamp", []string{"Same a x", "Relu y a"}, Options{}, "runs runs"},
		{"everything kept", []string{"Sub a x w", "Relu y a"}, Options{KeepAll: true}, "runs runs"},
		{"folded", []string{"Sub a w w", "Relu y a"}, Options{}, "folded folded"},
		{"integers", []string{"Sub a n n", "Relu y a"}, Options{}, "runs runs"},
		{"halves", []string{"Sub a h h", "Relu y a"}, Options{}, "runs fused"},
		{"limits of halves", []string{"Sub a h h", "Clip y a six"}, Options{}, "runs fused"},
		{"halves, exact", []string{"Sub a h h", "Relu y a"}, Options{Exact: true}, "runs runs"},
		{"halves and others", []string{"Sub a h x", "Relu y a"}, Options{}, "runs runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := made(t, tt.o, []*tensor.Tensor{f32(3), i64(1), half}, build(0, consts, "x n h", "y", tt.lines...))
			steps := p.Steps(0)
			if got := states(steps); got != tt.states {
				t.Fatalf("states %q, want %q", got, tt.states)
			}
			for i, s := range steps {
				for k, x := range s.Out {
					if x == nil {
						t.Errorf("output %d of step %d has no shape", k, i)
					}
				}
				if s.State == Fused && (s.Into < 0 || steps[s.Into].State != Runs || !slices.Contains(steps[s.Into].Fused, i)) {
					t.Errorf("step %d is fused into %d, which does not compute it, or does not know", i, s.Into)
				}
			}
		})
	}
}

// TestHolds: a limit that changes when rounded to 16 bits cannot be applied after rounding.
func TestHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t    tensor.Type
		v    float32
		want bool
	}{
		{tensor.Float32, 0.1, true},
		{tensor.Float16, 0.1, false},
		{tensor.BFloat16, 0.1, false},
		{tensor.Float16, 6, true},
		{tensor.BFloat16, 6, true},
		{tensor.Float16, 257.25, true},
		{tensor.BFloat16, 257.25, false},
		{tensor.Float16, 1e6, false},
		{tensor.Float16, -math.MaxFloat32, true},
		{tensor.BFloat16, float32(math.Inf(1)), true},
	} {
		if got := representable(c.t, c.v); got != c.want {
			t.Errorf("%v of %v: %v", c.v, c.t, got)
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		gs   func() []*graph.Graph
		y    string
		body string // value b of graph 1
	}{
		{"If, both alike", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "If y c")
			m.Nodes[0].Attrs = graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}
			return []*graph.Graph{m, within(build(1, nil, "", "b", "Same b x"), m, "x"), within(build(2, nil, "", "b", "Relu b x"), m, "x")}
		}, "float32 4x5", "float32 4x5"},
		{"If, different dimensions", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "If y c")
			m.Nodes[0].Attrs = graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}
			return []*graph.Graph{m, within(build(1, nil, "", "b", "Same b x"), m, "x"), build(2, map[string]*tensor.Tensor{"k": f32(4, 9)}, "", "b", "Same b k")}
		}, "float32 4x?", "float32 4x5"},
		{"If, known condition", func() []*graph.Graph {
			m := build(0, map[string]*tensor.Tensor{"k": tensor.New(tensor.Bool)}, "x c", "y", "If y k")
			m.Nodes[0].Attrs = graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}
			return []*graph.Graph{m, within(build(1, nil, "", "b", "Same b x"), m, "x"), build(2, map[string]*tensor.Tensor{"k": f32(9)}, "", "b", "Same b k")}
		}, "float32 9", "float32 4x5"},
		{"Loop that keeps its shape", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "Loop y,s _ c x")
			m.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
			return []*graph.Graph{m, build(1, nil, "i c v", "c b v", "Same b v")}
		}, "float32 4x5", "float32 4x5"},
		{"Loop that grows", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "Loop y _ c x")
			m.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
			return []*graph.Graph{m, build(1, nil, "i c v", "c b", "Grow b v")}
		}, "?", "?"},
		{"Loop of one that grows and one beside it", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "Loop z,y _ c x x")
			m.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
			return []*graph.Graph{m, build(1, nil, "i c v w", "c a b", "Grow a v", "Same b w")}
		}, "float32 4x5", "float32 4x5"},
		{"Loop whose second state follows the first", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "Loop z,y _ c x x")
			m.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
			return []*graph.Graph{m, build(1, nil, "i c v w", "c a b", "Grow a v", "Same b v")}
		}, "?", "?"},
		{"Loop, values of each turn", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "Loop z,y _ c x")
			m.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
			return []*graph.Graph{m, build(1, nil, "i c v", "c v b", "Same b v")}
		}, "float32 ?x4x5", "float32 4x5"},
		{"Scan", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "Scan z,y x x")
			m.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1), "num_scan_inputs": int64(1), "scan_input_axes": []int64{1}, "scan_output_axes": []int64{-1}}
			return []*graph.Graph{m, build(1, nil, "s v", "s b", "Same b v")}
		}, "float32 4x5", "float32 4"},
		{"another operator with a graph", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "Other y x")
			m.Nodes[0].Attrs = graph.Attrs{"g": graph.GraphRef(1)}
			return []*graph.Graph{m, build(1, nil, "v", "b", "Same b v")}
		}, "?", "?"},
		{"IF", func() []*graph.Graph {
			m := lite(build(0, nil, "x c", "y", "IF y c x"), graph.Attrs{"then_subgraph_index": graph.GraphRef(1), "else_subgraph_index": graph.GraphRef(2)})
			return []*graph.Graph{m, build(1, nil, "v", "b", "Same b v"), build(2, nil, "v", "v")}
		}, "float32 4x5", "float32 4x5"},
		{"WHILE", func() []*graph.Graph {
			m := lite(build(0, nil, "x c", "y", "WHILE y x"), graph.Attrs{"cond_subgraph_index": graph.GraphRef(2), "body_subgraph_index": graph.GraphRef(1)})
			return []*graph.Graph{m, build(1, nil, "v", "b", "Same b v"), build(2, nil, "v", "q", "True q v")}
		}, "float32 4x5", "float32 4x5"},
		{"WHILE that grows", func() []*graph.Graph {
			m := lite(build(0, nil, "x c", "y", "WHILE y x"), graph.Attrs{"cond_subgraph_index": graph.GraphRef(2), "body_subgraph_index": graph.GraphRef(1)})
			return []*graph.Graph{m, build(1, nil, "v", "b", "Grow b v"), build(2, nil, "v", "q", "True q v")}
		}, "?", "?"},
		{"CALL", func() []*graph.Graph {
			m := lite(build(0, nil, "x c", "y", "CALL y x"), graph.Attrs{"subgraph": graph.GraphRef(1)})
			return []*graph.Graph{m, build(1, nil, "v", "b", "Same b v")}
		}, "float32 4x5", "float32 4x5"},
		{"composite", func() []*graph.Graph {
			m := lite(build(0, nil, "x c", "y", "STABLEHLO_COMPOSITE y x"), graph.Attrs{"decomposition_subgraph_index": graph.GraphRef(1)})
			return []*graph.Graph{m, build(1, nil, "v", "b", "Same b v")}
		}, "float32 4x5", "float32 4x5"},
		{"case", func() []*graph.Graph {
			m := lite(build(0, nil, "x c", "y", "STABLEHLO_CASE y c x"), graph.Attrs{"branch_subgraph_indices": []graph.GraphRef{1, 2}})
			return []*graph.Graph{m, build(1, nil, "v", "b", "Same b v"), build(2, nil, "v", "b", "Grow b v")}
		}, "?", "float32 4x5"},
		{"a graph that runs itself", func() []*graph.Graph {
			m := lite(build(0, nil, "x c", "y", "CALL y x"), graph.Attrs{"subgraph": graph.GraphRef(1)})
			b := lite(build(1, nil, "v", "r", "CALL r v"), graph.Attrs{"subgraph": graph.GraphRef(1)})
			return []*graph.Graph{m, b}
		}, "?", ""},
		{"a graph that runs the main one", func() []*graph.Graph {
			m := lite(build(0, nil, "x c", "y", "CALL y x"), graph.Attrs{"subgraph": graph.GraphRef(0)})
			return []*graph.Graph{m}
		}, "?", ""},
		{"two sets of shapes", func() []*graph.Graph {
			m := build(0, nil, "x c", "y", "CALL a x", "Grow w x", "CALL y w")
			for _, i := range []int{0, 2} {
				m.Nodes[i].Domain, m.Nodes[i].Attrs = graph.TFLite, graph.Attrs{"subgraph": graph.GraphRef(1)}
			}
			return []*graph.Graph{m, build(1, nil, "v", "b", "Same b v")}
		}, "float32 40", "?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := made(t, Options{}, []*tensor.Tensor{f32(4, 5), tensor.New(tensor.Bool)}, tt.gs()...)
			if got := shown(p, 0, "y"); got != tt.y {
				t.Errorf("y is %s, want %s", got, tt.y)
			}
			if tt.body != "" {
				if got := shown(p, 1, "b"); got != tt.body {
					t.Errorf("b of the body is %s, want %s", got, tt.body)
				}
			}
			s := p.Shaped()
			if v := s.Graphs[0].Values[id(s.Graphs[0], "y")]; v.HasShape == strings.Contains(tt.y, "?") {
				t.Errorf("the shaped model has shape %v for y", v.Shape)
			}
			for i, g := range s.Graphs {
				if g.Parent != nil && g.Parent != s.Graphs[g.Parent.Index] {
					t.Errorf("graph %d is a body of another model", i)
				}
			}
		})
	}
}

func lite(g *graph.Graph, a graph.Attrs) *graph.Graph {
	g.Nodes[0].Domain, g.Nodes[0].Attrs = graph.TFLite, a
	return g
}

func TestSlots(t *testing.T) {
	t.Parallel()
	m := build(0, nil, "x", "z", "CALL y x", "Same w y", "CALL z w")
	for _, i := range []int{0, 2} {
		m.Nodes[i].Domain, m.Nodes[i].Attrs = graph.TFLite, graph.Attrs{"subgraph": graph.GraphRef(1)}
	}
	b := build(1, nil, "v", "b", "Same a v", "CALL b a")
	b.Nodes[1].Domain, b.Nodes[1].Attrs = graph.TFLite, graph.Attrs{"subgraph": graph.GraphRef(2)}
	p := made(t, Options{}, []*tensor.Tensor{f32(2)}, m, b, build(2, nil, "v", "b", "Same b v"), build(3, nil, "v", "b", "Same b v"))
	var got []string
	for _, s := range p.Slots() {
		got = append(got, fmt.Sprintf("%d.%d<%d", s.Graph, s.Node.Index, s.Parent))
	}
	if want := "0.0<-1 1.0<0 1.1<0 2.0<2 0.1<-1 0.2<-1"; strings.Join(got, " ") != want {
		t.Errorf("slots %v, want %s", got, want)
	}
	// A graph that was never planned is listed by its declarations.
	list := List(p.Model, func(int) []Step { return nil })
	if len(list) != len(got) || list[1].Runs == nil || list[1].In[0] != nil {
		t.Errorf("declared: %+v", list)
	}
}

// TestManyShapes bounds the plans of graphs that run each other with ever new shapes.
func TestManyShapes(t *testing.T) {
	t.Parallel()
	const depth = 40
	var gs []*graph.Graph
	for i := range depth {
		g := build(i, nil, "v", "b d", "CALL b v", "Grow w v", "CALL d w")
		for _, k := range []int{0, 2} {
			g.Nodes[k].Domain, g.Nodes[k].Attrs = graph.TFLite, graph.Attrs{"subgraph": graph.GraphRef(min(i+1, depth))}
		}
		gs = append(gs, g)
	}
	gs = append(gs, build(depth, nil, "v", "v"))
	p := made(t, Options{MaxBytes: 1 << 30}, []*tensor.Tensor{f32(1)}, gs...)
	for i := range gs {
		if n := len(p.graphs[i]); n > maxShapes {
			t.Errorf("graph %d was planned %d times", i, n)
		}
	}
}

// TestHostile plans self-contradictory graphs: none may panic.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, gs := range map[string]func() []*graph.Graph{
		"attributes of nowhere": func() []*graph.Graph {
			m := build(0, nil, "x", "y", "STABLEHLO_CASE y x")
			m.Nodes[0].Domain, m.Nodes[0].Attrs = graph.TFLite, graph.Attrs{"branch_subgraph_indices": []graph.GraphRef{7, -3}}
			return []*graph.Graph{m}
		},
		"no attributes": func() []*graph.Graph {
			return []*graph.Graph{build(0, nil, "x", "y", "Loop a x", "Scan b x", "If y x")}
		},
		"captures of nowhere": func() []*graph.Graph {
			m := build(0, nil, "x", "y", "If y x")
			m.Nodes[0].Attrs = graph.Attrs{"then_branch": graph.GraphRef(1)}
			b := build(1, nil, "", "b", "Same b v")
			b.Parent, b.Captures = m, []graph.Capture{{Inner: 1, Outer: 99}}
			return []*graph.Graph{m, b}
		},
		"absent outputs": func() []*graph.Graph {
			m := build(0, nil, "x", "y", "If y x")
			m.Nodes[0].Attrs = graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(1)}
			return []*graph.Graph{m, build(1, nil, "", "_")}
		},
		"axes of nowhere": func() []*graph.Graph {
			m := build(0, nil, "x", "y", "Scan z,y x x")
			m.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1), "num_scan_inputs": int64(1), "scan_input_axes": []int64{9}}
			return []*graph.Graph{m, build(1, nil, "s v", "s b", "Same b v")}
		},
		"more scanned than given": func() []*graph.Graph {
			m := build(0, nil, "x", "y", "Scan y x")
			m.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1), "num_scan_inputs": int64(1 << 40)}
			return []*graph.Graph{m, build(1, nil, "s v", "s b", "Same b v")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gs()
			p, err := Make(&graph.Model{Graphs: g}, []*tensor.Tensor{f32(2)}, Options{Registry: testOps()})
			if err != nil {
				t.Fatal(err)
			}
			p.Slots()
			p.Shaped()
		})
	}
}
