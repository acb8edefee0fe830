package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// tables gives the operators of these tests a schema table.
func tables(t *testing.T, text string, refuse func(string, ...any) error) *op.Registry {
	t.Helper()
	s, err := op.ParseSchemas(text, refuse)
	if err != nil {
		t.Fatal(err)
	}
	r := testOps()
	r.Schemas = []*op.Schemas{s}
	return r
}

const floatsOnly = "[]\nSame 1: X:float32 -> Y:float32 # axis:i\nDouble 1: X:int64 -> Y:int64\nFill 1: S:int64 -> Y:float32\nWrong 1: X:float32 -> Y:float32\n"

// TestMalformed: breaking a rule of the format is an error of the model, with its location; a
// missing feature of the runtime is not.
func TestMalformed(t *testing.T) {
	t.Parallel()
	declared := func(typ tensor.Type) func(g *graph.Graph) {
		return func(g *graph.Graph) { g.Values[id(g, "y")].Type = typ }
	}
	for _, c := range []struct {
		name, format string
		lines        []string
		change       func(g *graph.Graph)
		refuse       func(string, ...any) error
		want         string // expected in the error; empty: no error
	}{
		{"fits", "onnx", []string{"Same y x"}, nil, op.Malformed, ""},
		{"an attribute that plans give", "onnx", []string{"Same y x"}, func(g *graph.Graph) { g.Nodes[0].Attrs = graph.Attrs{op.AttrPads: int64(1)} }, op.Malformed, `attribute "opmeter.pads"`},
		{"such an attribute in another format", "tflite", []string{"Same y x"}, func(g *graph.Graph) { g.Nodes[0].Attrs = graph.Attrs{op.AttrScores: int64(1)} }, op.Malformed, `attribute "opmeter.scores"`},
		{"wrong type", "onnx", []string{"Same b x", "Same y n"}, nil, op.Malformed, `node 1 (Same "y"): `},
		{"no name", "onnx", []string{"Same y n"}, func(g *graph.Graph) { g.Nodes[0].Name = "" }, op.Malformed, "node 0 (Same): "},
		{"not supported", "onnx", []string{"Same y n"}, nil, op.Unsupported, ""},
		{"the first counts", "onnx", []string{"Same a n", "Same y n"}, nil, op.Malformed, `node 0 (Same "a"): `},
		{"declared as computed", "onnx", []string{"Same y x"}, declared(tensor.Float32), op.Malformed, ""},
		{"declared otherwise", "onnx", []string{"Same y x"}, declared(tensor.Int8), op.Malformed, "output 0 (Y) is int8 where float32 is expected"},
		{"declared as optional", "onnx", []string{"Grow y x"}, declared(tensor.Optional), op.Malformed, ""},
		{"another format", "tflite", []string{"Grow y x"}, declared(tensor.Int8), op.Malformed, ""},
		{"by what was inferred", "onnx", []string{"Grow y x"}, declared(tensor.Int8), op.Malformed, "output 0 is declared as int8 and computed as float32"},
		// The shape is known only at run time, the type before.
		{"type of an open shape", "onnx", []string{"Fill a n", "Same y a"}, nil, op.Malformed, ""},
		{"wrong type of an open shape", "onnx", []string{"Fill a n", "Double y a"}, nil, op.Malformed, `node 1 (Double "y"): `},
		{"through one that is open", "onnx", []string{"Fill a n", "Same b a", "Double y b"}, nil, op.Malformed, `node 2 (Double "y"): `},
		{"a contradiction is not a broken rule", "onnx", []string{"Wrong y x"}, nil, op.Malformed, ""},
	} {
		g := build(0, nil, "x n", "y", c.lines...)
		if c.change != nil {
			c.change(g)
		}
		n := &tensor.Tensor{Type: tensor.Int64, Shape: []int{2}}
		_, err := Make(&graph.Model{Format: c.format, Graphs: []*graph.Graph{g}}, []*tensor.Tensor{f32(2), n}, Options{Registry: tables(t, floatsOnly, c.refuse)})
		var m *MalformedError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.As(err, &m) || m.Graph != 0 || !errors.Is(err, op.ErrMalformed) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	main := build(0, nil, "x", "y", "Other y x")
	main.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
	body := build(1, map[string]*tensor.Tensor{"c": i64(1)}, "", "o", "Same o c")
	_, err := Make(&graph.Model{Format: "onnx", Graphs: []*graph.Graph{main, body}}, []*tensor.Tensor{f32(2)}, Options{Registry: tables(t, floatsOnly, op.Malformed)})
	var m *MalformedError
	if !errors.As(err, &m) || m.Graph != 1 || !strings.HasPrefix(err.Error(), `graph 1 node 0 (Same "o"): `) {
		t.Errorf("in a body: %v", err)
	}
}

func TestMakeRefuses(t *testing.T) {
	t.Parallel()
	m := &graph.Model{Graphs: []*graph.Graph{build(0, nil, "x", "y", "Same y x")}}
	for want, c := range map[string]struct {
		in []*tensor.Tensor
		o  Options
	}{
		"no operator registry":        {[]*tensor.Tensor{f32(1)}, Options{}},
		"model has 1 inputs, 0 given": {nil, Options{Registry: testOps()}},
		"model has 1 inputs, 2 given": {[]*tensor.Tensor{f32(1), f32(1)}, Options{Registry: testOps()}},
	} {
		if _, err := Make(m, c.in, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestRemarks lists attributes that an operator does not have, eight at most.
func TestRemarks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 8, 9, 20} {
		g := build(0, nil, "x", "y", slices.Repeat([]string{"Same y x"}, n+1)...)
		for i, node := range g.Nodes {
			node.Attrs = graph.Attrs{"axis": int64(1)}
			if i < n {
				node.Attrs["odd"] = int64(1)
			}
		}
		p, err := Make(&graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}}, []*tensor.Tensor{f32(2)}, Options{Registry: tables(t, floatsOnly, op.Malformed)})
		if err != nil {
			t.Fatal(err)
		}
		got := p.Remarks()
		want := min(n, 8)
		if n > 8 {
			want++
		}
		if len(got) != want {
			t.Errorf("%d odd attributes: %d remarks", n, len(got))
		}
		for i, s := range got {
			text := fmt.Sprintf("Node %d (Same) has an attribute \"odd\", which the operator does not have: it is ignored.", i)
			if i == 8 {
				text = "More nodes have attributes that their operators do not have."
			}
			if s != text {
				t.Errorf("remark %d: %q", i, s)
			}
		}
	}
}

func planned(t *testing.T, o Options, consts map[string]*tensor.Tensor, more []op.Def, lines ...string) (*Graph, *graph.Graph) {
	t.Helper()
	g := build(0, consts, "x", "y", lines...)
	o.Registry = op.NewRegistry(append(more, defsOf(testOps())...))
	p, err := New(&graph.Model{Graphs: []*graph.Graph{g}}, g, []*tensor.Tensor{f32(2)}, nil, o, Host{})
	if err != nil {
		t.Fatal(err)
	}
	return p, g
}

func defsOf(r *op.Registry) (out []op.Def) {
	for _, d := range r.All() {
		out = append(out, *d)
	}
	return out
}

// TestForce computes constants on demand. A failed one has no elements afterwards, even after a
// panic.
func TestForce(t *testing.T) {
	t.Parallel()
	same := func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil }
	more := []op.Def{
		{Name: "Burst", Infer: same, Prepare: op.Simple(func(*op.Call) error { panic("burst") })},
		{Name: "Fails", Infer: same, Prepare: op.Simple(func(c *op.Call) error { return errors.New("no way") })},
		{Name: "Wide", Infer: same, Prepare: func(c *op.Call) (op.Run, error) {
			c.Scratch(50)
			return func(*op.Call) error { return nil }, nil
		}},
	}
	for _, c := range []struct {
		name   string
		lines  []string
		limit  int
		failed int
		cause  string
		states string // expected states
	}{
		{"computed", []string{"Double a s", "Double y a"}, 0, -1, "", "folded folded"},
		{"panic", []string{"Burst y s"}, 0, 0, "burst", "folded"},
		{"panic before it", []string{"Double a s", "Burst b a", "Double y b"}, 0, 1, "burst", "folded folded folded"},
		{"error", []string{"Double a s", "Fails b a", "Double y b"}, 0, 1, "no way", "folded folded folded"},
		{"not prepared", []string{"Lame a s", "Double y a"}, 0, 0, "this", "folded folded"},
		// Two values of 16 bytes: if the second exceeds the limit, it runs each time.
		{"room for both", []string{"Double a s", "Double y a"}, 32, -1, "", "folded folded"},
		{"room for one", []string{"Double a s", "Double y a"}, 31, -1, "", "folded runs"},
		{"room for working memory", []string{"Wide y s"}, 66, -1, "", "folded"},
		{"no room for working memory", []string{"Wide y s"}, 65, -1, "", "runs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, g := planned(t, Options{MaxBytes: c.limit}, map[string]*tensor.Tensor{"s": i64(2, 3)}, more, c.lines...)
			y := id(g, "y")
			for i := range 2 { // the second call has the same result
				if i > 0 && !p.Fixed[y] {
					break // it runs in every inference now
				}
				failed, err := p.Materialise(y)
				if failed != c.failed || (err != nil) != (c.cause != "") || err != nil && !strings.Contains(err.Error(), c.cause) {
					t.Fatalf("failed %d, %v; want %d, %q", failed, err, c.failed, c.cause)
				}
			}
			if got := states(p.Steps()); got != c.states {
				t.Errorf("states %q, want %q", got, c.states)
			}
			known := c.failed < 0 && p.Tasks[len(p.Tasks)-1].State == Folded
			if p.Values[y].Known() != known {
				t.Errorf("y is known: %v, want %v", !known, known)
			}
			if c.failed >= 0 && p.Values[p.Tasks[c.failed].Node.Outputs[0]].Known() {
				t.Error("what failed has elements")
			}
			if v := p.Values[y]; c.name == "computed" && !slices.Equal(tensor.Of[int64](v), []int64{8, 12}) {
				t.Errorf("y is %v", tensor.Of[int64](v))
			}
		})
	}
	p, _ := planned(t, Options{}, nil, nil, "Same y x")
	if failed, err := p.Materialise(p.File.Inputs[0]); failed != -1 || !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("an input of the run: %d, %v", failed, err)
	}
}

// TestWorkOfFolding: constants of up to four thousand million operations are folded, larger ones
// run in every inference, and beyond a hundred they are an error.
func TestWorkOfFolding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m, k  int // m×k by k×m: 2·m·m·k operations
		state State
	}{
		{1000, 2000, Folded},
		{1000, 2001, Runs},
		{5000, 2000, Runs},
		{5000, 2001, Failed},
	} {
		consts := map[string]*tensor.Tensor{"a": f32(c.m, c.k), "b": f32(c.k, c.m)}
		g := build(0, consts, "x", "y", "MatMul y a b")
		p, err := Make(&graph.Model{Format: "onnx", Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{g}}, []*tensor.Tensor{f32(1)}, Options{Registry: operators.Registry()})
		if err != nil {
			t.Fatal(err)
		}
		st := p.Steps(0)[0]
		var we *op.WorkError
		if st.State != c.state || errors.As(st.Err, &we) != (c.state == Failed) {
			t.Errorf("%d by %d: %v, %v; want %v", c.m, c.k, st.State, st.Err, c.state)
		}
		if we != nil && (we.Limit != 100e9 || we.Want != 2*5000*5000*2001) {
			t.Errorf("%+v", we)
		}
	}
}

// TestStandInLimit: a declared shape is used for up to a gibibyte.
func TestStandInLimit(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1 << 28: "unsupported runs", 1<<28 + 1: "unsupported skipped", -1: "unsupported skipped"} {
		g := build(0, nil, "x", "y", "Nope a x", "Shape y a")
		v := g.Values[id(g, "a")]
		v.Type, v.Shape, v.HasShape = tensor.Float32, []int{n}, true
		p := made(t, Options{KeepAll: true}, []*tensor.Tensor{f32(3)}, g)
		if got := states(p.Steps(0)); strings.ReplaceAll(got, "folded", "runs") != want {
			t.Errorf("%d elements: %q, want %q", n, got, want)
		}
	}
	for limit, want := range map[int]string{40: "unsupported", 39: "unsupported"} {
		g := build(0, nil, "x", "y", "Nope a x", "Same y a")
		v := g.Values[id(g, "a")]
		v.Type, v.Shape, v.HasShape = tensor.Float32, []int{10}, true
		p := made(t, Options{MaxBytes: limit}, []*tensor.Tensor{f32(3)}, g)
		if follows := p.Steps(0)[1].State == Runs; p.Steps(0)[0].State.String() != want || follows != (limit == 40) {
			t.Errorf("limit %d: %s", limit, states(p.Steps(0)))
		}
	}
}

// TestDecidingLists: shapes depend on integer inputs of up to 4096 elements.
func TestDecidingLists(t *testing.T) {
	t.Parallel()
	first := op.Def{Name: "First", Infer: func(c *op.Call) error {
		v, err := op.Ints(c.In[0])
		if err == nil {
			c.SetOut(0, tensor.Float32, v[:1])
		}
		return err
	}, Prepare: op.Simple(func(*op.Call) error { return nil })}
	for n, known := range map[int]bool{1: true, 4096: true, 4097: false} {
		list := make([]int64, n)
		list[0] = 7
		g := build(0, nil, "x", "y", "First y x")
		p, err := Make(&graph.Model{Graphs: []*graph.Graph{g}}, []*tensor.Tensor{i64(list...)}, Options{Registry: op.NewRegistry([]op.Def{first})})
		if err != nil {
			t.Fatal(err)
		}
		y := p.Main.Known(id(g, "y"))
		if (y != nil) != known || known && !slices.Equal(y.Shape, []int{7}) {
			t.Errorf("%d numbers: %v", n, y)
		}
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	limit, boom := &op.LimitError{Want: 2, Limit: 1}, errors.New("boom")
	for _, c := range []struct {
		name  string
		do    func() error
		is    error
		text  string
		state State
	}{
		{"nothing", func() error { return nil }, nil, "", Runs},
		{"error", func() error { return boom }, boom, "boom", Failed},
		{"unsupported", func() error { return op.Unsupported("this") }, op.ErrUnsupported, "this", Unsupported},
		{"unknown", func() error { return op.Unknown(3) }, op.ErrUnknown, "version 3", Unsupported},
		{"panic", func() error { panic("boom") }, nil, "internal error: boom", Failed},
		{"limit", func() error { panic(limit) }, limit, "memory", Failed},
		{"stopped", func() error { panic(workers.ErrStopped) }, workers.ErrStopped, "stopped", Failed},
		{"types", func() error { tensor.Of[float32](tensor.New(tensor.Int64, 1)); return nil }, op.ErrUnsupported, "", Unsupported},
	} {
		err := Guard(c.do)
		if (err != nil) != (c.state != Runs) || c.is != nil && !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && StateOf(err) != c.state {
			t.Errorf("%s: %v, want %v", c.name, StateOf(err), c.state)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		out   []*tensor.Tensor
		limit int
		text  string
	}{
		{[]*tensor.Tensor{f32(2), nil}, 0, ""},
		{[]*tensor.Tensor{f32(2), {}}, 0, "output 1 has no type"},
		{[]*tensor.Tensor{{Type: tensor.Float32, Shape: []int{-1}}}, 0, "negative dimension"},
		{[]*tensor.Tensor{f32(2)}, 8, ""},
		{[]*tensor.Tensor{f32(2)}, 7, "memory"},
	} {
		err := Check(&op.Call{Out: c.out, Limit: c.limit})
		if (err != nil) != (c.text != "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %v, want %q", c.out, err, c.text)
		}
	}
}

func TestBodiesOfNode(t *testing.T) {
	t.Parallel()
	n := &graph.Node{Attrs: graph.Attrs{"then": graph.GraphRef(3), "else": graph.GraphRef(1), "more": []graph.GraphRef{5, 4}, "n": int64(2)}}
	if got := Bodies(n); !slices.Equal(got, []int{1, 5, 4, 3}) {
		t.Errorf("bodies %v, want those of else, more and then", got)
	}
	if got := Bodies(&graph.Node{}); got != nil {
		t.Errorf("bodies %v of nothing", got)
	}
}

// TestClamps lists the clamping operators with their limits.
func TestClamps(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	consts := map[string]*tensor.Tensor{"lo": tensor.From(tensor.Float32, nil, []float32{-1}), "hi": tensor.From(tensor.Float32, nil, []float32{1}), "n": i64(1), "two": f32(2)}
	g := build(0, consts, "x", "y", "Same y x", "Same q lo hi n two")
	p := &Graph{File: g, Graph: g, opts: Options{FoldBytes: 1 << 20}}
	for _, v := range g.Values {
		p.Values, p.Fixed = append(p.Values, v.Const), append(p.Fixed, v.Const != nil)
	}
	in := func(names ...string) (ids []int) {
		for _, n := range names {
			if n == "_" {
				ids = append(ids, -1)
			} else {
				ids = append(ids, id(g, n))
			}
		}
		return ids
	}
	for _, c := range []struct {
		domain, op string
		version    int
		attrs      graph.Attrs
		in         []int
		want       activation.Clamp
		ok         bool
	}{
		{"", "Relu", 13, nil, in("x"), activation.Clamp{On: true, Min: 0, Max: inf}, true},
		{graph.TFLite, "RELU", 1, nil, in("x"), activation.Clamp{On: true, Min: 0, Max: inf}, true},
		{graph.TFLite, "RELU6", 1, nil, in("x"), activation.Clamp{On: true, Min: 0, Max: 6}, true},
		{"", "RELU6", 1, nil, in("x"), activation.Clamp{}, false},
		{graph.TFLite, "Relu", 1, nil, in("x"), activation.Clamp{}, false},
		{"", "Clip", 10, graph.Attrs{"min": float32(-2), "max": float32(3)}, in("x"), activation.Clamp{On: true, Min: -2, Max: 3}, true},
		{"", "Clip", 6, nil, in("x"), activation.Clamp{On: true, Min: -math.MaxFloat32, Max: math.MaxFloat32}, true},
		{"", "Clip", 11, graph.Attrs{"min": float32(-2)}, in("x"), activation.Clamp{On: true, Min: -inf, Max: inf}, true},
		{"", "Clip", 11, nil, in("x", "lo", "hi"), activation.Clamp{On: true, Min: -1, Max: 1}, true},
		{"", "Clip", 13, nil, in("x", "_", "hi"), activation.Clamp{On: true, Min: -inf, Max: 1}, true},
		{"", "Clip", 13, nil, in("x", "lo"), activation.Clamp{On: true, Min: -1, Max: inf}, true},
		{"", "Clip", 13, nil, in("x", "lo", "lo"), activation.Clamp{On: true, Min: -1, Max: -1}, true},
		{"", "Clip", 13, nil, in("x", "hi", "lo"), activation.Clamp{}, false},
		{"", "Clip", 13, nil, in("x", "x"), activation.Clamp{}, false},
		{"", "Clip", 13, nil, in("x", "n"), activation.Clamp{}, false},
		{"", "Clip", 13, nil, in("x", "two"), activation.Clamp{}, false},
		{"", "Sigmoid", 13, nil, in("x"), activation.Clamp{}, false},
	} {
		got, ok := p.clampOf(&graph.Node{Domain: c.domain, Op: c.op, Version: c.version, Attrs: c.attrs, Inputs: c.in})
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s %d of %v: %+v, %v; want %+v", c.op, c.version, c.in, got, ok, c.want)
		}
	}
}

// TestCodes checks clamp limits as QuantizeLinear converts them, ties to even, saturated to the
// type.
func TestCodes(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		kind     tensor.Type
		scale    []float32
		zero     []int64
		min, max float32
		lo, hi   int64
	}{
		{tensor.Uint8, []float32{1}, nil, 0, 6, 0, 6},
		{tensor.Uint8, []float32{1}, []int64{10}, 0, 6, 10, 16},
		{tensor.Uint8, []float32{1}, []int64{255}, 0, inf, 255, 255},
		{tensor.Uint8, []float32{4}, []int64{0}, 0, 10, 0, 2}, // 2.5
		{tensor.Int8, []float32{4}, []int64{-128}, 0, 14, -128, -124},
		{tensor.Int8, []float32{0.01}, []int64{0}, -1, 6, -100, 127},
		{tensor.Int8, []float32{1}, []int64{127}, -300, inf, -128, 127},
		{tensor.Int8, []float32{1}, []int64{0}, -inf, inf, -128, 127},
		{tensor.Int8, nil, nil, 0, 6, -128, 127}, // scale assumed valid: no limits
		{tensor.Uint8, nil, nil, 0, 6, 0, 255},
	} {
		q := &quantised{kind: c.kind, s: c.scale, z: c.zero}
		if lo, hi := q.codes(activation.Clamp{On: true, Min: c.min, Max: c.max}); lo != c.lo || hi != c.hi {
			t.Errorf("%+v: %d to %d", c, lo, hi)
		}
	}
}

// TestUnits: the scale of a bias is the product of both scales, within the rounding of float32.
func TestUnits(t *testing.T) {
	t.Parallel()
	s := func(v ...float32) *quantised { return &quantised{s: v} }
	for _, c := range []struct {
		q, x, w *quantised
		ok      bool
	}{
		{s(0.125), s(0.5), s(0.25), true},
		{s(0.125 * (1 + 5e-7)), s(0.5), s(0.25), true},
		{s(0.125 * (1 + 3e-6)), s(0.5), s(0.25), false},
		{s(0.125, 0.5), s(0.5), s(0.25, 1), true},
		{s(0.125, 0.25), s(0.5), s(0.25, 1), false},
		{s(0.125), s(0.5), s(0.25, 0.25), true},
		{s(0.125, 0.125), s(0.5), s(0.25), false},
		{s(), s(0.5), s(0.25), false},
		{&quantised{}, s(0.5), s(0.25), false},
	} {
		b := &builder{lowering: &lowering{}}
		if got := b.hasProductScale(c.q, c.x, c.w); got != c.ok {
			t.Errorf("%v of %v by %v: %v", c.q.s, c.x.s, c.w.s, got)
		}
	}
	if b := (&builder{lowering: &lowering{lenient: true}}); !b.hasProductScale(&quantised{}, s(1), s(1)) {
		t.Error("what is not at hand is as it should be")
	}
}

func TestAgree(t *testing.T) {
	t.Parallel()
	shape := func(typ tensor.Type, d ...int) *tensor.Tensor { return &tensor.Tensor{Type: typ, Shape: d} }
	for _, c := range []struct {
		a, b *tensor.Tensor
		want []int // nil: unknown
	}{
		{shape(tensor.Int8, 2, 3), shape(tensor.Int8, 2, 3), []int{2, 3}},
		{shape(tensor.Int8, 2, 3), shape(tensor.Int8, 4, 3), []int{-1, 3}},
		{shape(tensor.Int8, -1, 3), shape(tensor.Int8, -1, 5), []int{-1, -1}},
		{shape(tensor.Int8, 2), shape(tensor.Int8, 2, 1), nil},
		{shape(tensor.Int8, 2), shape(tensor.Uint8, 2), nil},
		{nil, shape(tensor.Uint8, 2), nil},
		{shape(tensor.Uint8, 2), nil, nil},
	} {
		got := agree(c.a, c.b)
		if c.want == nil && got.Type != tensor.Invalid || c.want != nil && (got.Type != c.a.Type || !slices.Equal(got.Shape, c.want)) {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
	}
	if a := shape(tensor.Int8, 2); known(a) != true || known(shape(tensor.Int8, 2, -1)) || known(nil) || known(unknown()) || !known(shape(tensor.Int8, 0)) {
		t.Error("what is known in full")
	}
}

// TestStepsOfSeveralPlans: several plans of one graph are described by what they have in common.
func TestStepsOfSeveralPlans(t *testing.T) {
	t.Parallel()
	body := build(1, nil, "v", "o", "Same o v")
	main := build(0, nil, "x z", "y q", "CALL y x", "CALL q z")
	for _, n := range main.Nodes {
		n.Domain, n.Version, n.Attrs = graph.TFLite, 1, graph.Attrs{"subgraph": graph.GraphRef(1)}
	}
	p := made(t, Options{}, []*tensor.Tensor{f32(2, 3), f32(5, 3)}, main, body)
	st := p.Steps(1)
	if len(st) != 1 || !slices.Equal(st[0].In[0].Shape, []int{-1, 3}) || !slices.Equal(st[0].Out[0].Shape, []int{-1, 3}) {
		t.Errorf("steps %+v", st)
	}
	for _, g := range []int{-1, 2} {
		if p.Steps(g) != nil {
			t.Errorf("graph %d has steps", g)
		}
	}
	m := p.Shaped()
	if v := m.Graphs[0].Values[id(main, "q")]; !v.HasShape || !slices.Equal(v.Shape, []int{5, 3}) || v.Type != tensor.Float32 {
		t.Errorf("q is %+v", v)
	}
	if v := m.Graphs[1].Values[id(body, "o")]; v.Type != tensor.Float32 || v.HasShape {
		t.Errorf("o is %+v", v)
	}
	if v := main.Values[id(main, "q")]; v.HasShape {
		t.Error("the model itself was changed")
	}
}

// TestForeign: a node of a file cannot use operators that only plans create, nor those of another
// format.
func TestForeign(t *testing.T) {
	t.Parallel()
	var defs []op.Def
	for _, domain := range []string{graph.ONNX, graph.Own, graph.TFLite, graph.TFLiteCustom, "elsewhere"} {
		d := *testOps().Find("", "Same", 13)
		d.Domain = domain
		defs = append(defs, d)
	}
	for _, c := range []struct {
		format, domain string
		want           State
	}{
		{"onnx", graph.ONNX, Runs},
		{"onnx", "elsewhere", Runs},
		{"onnx", graph.Own, Unsupported},
		{"onnx", graph.TFLite, Unsupported},
		{"onnx", graph.TFLiteCustom, Unsupported},
		{"tflite", graph.TFLite, Runs},
		{"tflite", graph.TFLiteCustom, Runs},
		{"tflite", graph.Own, Unsupported},
	} {
		g := build(0, nil, "x", "y", "Same y x")
		g.Nodes[0].Domain = c.domain
		p, err := Make(&graph.Model{Format: c.format, Graphs: []*graph.Graph{g}}, []*tensor.Tensor{f32(2)}, Options{Registry: op.NewRegistry(defs)})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Slots()[0].State; got != c.want {
			t.Errorf("%s, domain %q: %v, want %v", c.format, c.domain, got, c.want)
		}
	}
}

// TestUnread: unused outputs are dropped where the tables make them optional, and a Dropout that
// only returns its input is removed.
func TestUnread(t *testing.T) {
	t.Parallel()
	text := "[]\nSame 1: X:T -> Y:T, Z:T?, W:T?; T = float32\nMust 1: X:T -> Y:T, Z:T; T = float32\nFree 1: X:T -> Y:T?, Z:T?; T = float32\nMany 1: X:T -> Y:T, Z:T*; T = float32\n" +
		"Dropout 1: data:T -> output:T, mask:T?; T = float32 # is_test:i\nDropout 7: data:T -> output:T, mask:T?; T = float32\n" +
		"Dropout 12: data:T, ratio:T?, training:B? -> output:T, mask:B?; T = float32; B = bool\nIdentity 1: X:T -> Y:T; T = float32\n"
	s, err := op.ParseSchemas(text, op.Malformed)
	if err != nil {
		t.Fatal(err)
	}
	var defs []op.Def
	for _, name := range []string{"Same", "Must", "Free", "Many", "Dropout", "Identity"} {
		defs = append(defs, op.Def{Name: name, Since: 1, Prepare: op.Simple(func(*op.Call) error { return nil }), Infer: func(c *op.Call) error {
			for k := range c.Out {
				c.SetOut(k, tensor.Float32, c.In[0].Shape)
			}
			return nil
		}})
	}
	r := op.NewRegistry(defs)
	r.Schemas = []*op.Schemas{s}
	truth := func(v uint8) *tensor.Tensor {
		return &tensor.Tensor{Type: tensor.Bool, Shape: []int{}, Data: []byte{v}}
	}
	for _, c := range []struct {
		name    string
		line    string
		version int
		attrs   graph.Attrs
		outputs string
		keepAll bool
		op      string
		made    []bool
	}{
		{"the last ones", "Same y,z,w x", 13, nil, "y", false, "Same", []bool{true}},
		{"one between others", "Same y,z,w x", 13, nil, "y w", false, "Same", []bool{true, false, true}},
		{"all that are read", "Same y,z,w x", 13, nil, "y z w", false, "Same", []bool{true, true, true}},
		{"everything is asked for", "Same y,z,w x", 13, nil, "y", true, "Same", []bool{true, true, true}},
		{"what must be made", "Must y,z x", 13, nil, "y", false, "Must", []bool{true, true}},
		{"the first one", "Free y,z x", 13, nil, "z", false, "Free", []bool{false, true}},
		{"nothing is read", "Free y,z x", 13, nil, "x", false, "Free", []bool{true, true}},
		{"any number", "Many y,z x", 13, nil, "y", false, "Many", []bool{true, true}},
		{"a mask that is read", "Dropout y,z x", 7, nil, "y z", false, "Dropout", []bool{true, true}},
		{"a mask that is not", "Dropout y,z x", 7, nil, "y", false, "Identity", []bool{true}},
		{"no mask", "Dropout y x", 13, nil, "y", false, "Identity", []bool{true}},
		{"it does not train", "Dropout y x r no", 13, nil, "y", false, "Identity", []bool{true}},
		{"it trains", "Dropout y x r yes", 13, nil, "y", false, "Dropout", []bool{true}},
		{"it may train", "Dropout y x r b", 13, nil, "y", false, "Dropout", []bool{true}},
		{"before 7 it trains", "Dropout y x", 6, nil, "y", false, "Dropout", []bool{true}},
		{"unless an attribute says so", "Dropout y x", 6, graph.Attrs{"is_test": int64(1)}, "y", false, "Identity", []bool{true}},
	} {
		g := build(0, map[string]*tensor.Tensor{"r": f32(), "no": truth(0), "yes": truth(1)}, "x b", c.outputs, c.line)
		g.Nodes[0].Version, g.Nodes[0].Attrs = c.version, c.attrs
		p, err := Make(&graph.Model{Format: "onnx", Graphs: []*graph.Graph{g}}, []*tensor.Tensor{f32(2), truth(0)}, Options{Registry: r, KeepAll: c.keepAll})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		task := &p.Main.Tasks[0]
		var made []bool
		for _, x := range task.Call.Out {
			made = append(made, x != nil)
		}
		if task.Node.Op != c.op || !slices.Equal(made, c.made) {
			t.Errorf("%s: %s makes %v, want %s and %v", c.name, task.Node.Op, made, c.op, c.made)
		}
	}
}
