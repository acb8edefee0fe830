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

// value finds a value by its name.
func value(g *graph.Graph, name string) *graph.Value {
	return g.Values[slices.IndexFunc(g.Values, func(v *graph.Value) bool { return v.Name == name })]
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	m := &graph.Model{Graphs: []*graph.Graph{build(0, nil, "x z", "y", "Sub y x z")}}
	two := []*tensor.Tensor{vec(1), vec(1)}
	for _, c := range []struct {
		name string
		in   []*tensor.Tensor
		o    Options
		want string // empty: accepted
	}{
		{"no registry", two, Options{}, "no operator registry"},
		{"too few inputs", two[:1], Options{Registry: testOps()}, "model has 2 inputs, 1 given"},
		{"too many inputs", append(two[:2:2], vec(1)), Options{Registry: testOps()}, "model has 2 inputs, 3 given"},
		{"output below", two, Options{Registry: testOps(), Carry: []Carry{{-1, 0}}}, "cannot connect output -1 to input 0: model has 1 outputs and 2 inputs"},
		{"output above", two, Options{Registry: testOps(), Carry: []Carry{{0, 1}, {1, 0}}}, "cannot connect output 1 to input 0"},
		{"input below", two, Options{Registry: testOps(), Carry: []Carry{{0, -1}}}, "cannot connect output 0 to input -1"},
		{"input above", two, Options{Registry: testOps(), Carry: []Carry{{0, 2}}}, "cannot connect output 0 to input 2"},
		{"in place above", two, Options{Registry: testOps(), InPlace: []Carry{{1, 0}}}, "cannot connect output 1 to input 0"},
		{"first and last", two, Options{Registry: testOps(), Carry: []Carry{{0, 0}}}, ""},
		{"last input", two, Options{Registry: testOps(), Carry: []Carry{{0, 1}}}, ""},
	} {
		s, err := New(m, c.in, c.o)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			s.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// accumulate adds its input to a variable, its second input, and returns the sum.
var accumulate = op.Def{Name: "Acc", Stateful: true, Infer: func(c *op.Call) error {
	c.SetOut(0, c.In[0].Type, c.In[0].Shape)
	return nil
}, Prepare: op.Simple(func(c *op.Call) error {
	x, v, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.Out[0])
	for i := range y {
		v[i] += x[i]
		y[i] = v[i]
	}
	return nil
})}

// TestVariables: a variable starts at zero or at the file's value, persists over runs and plans,
// and restarts at Reset.
func TestVariables(t *testing.T) {
	t.Parallel()
	for _, begin := range []*tensor.Tensor{nil, vec(10, 20)} {
		g := build(0, nil, "x", "y", "Acc y x v")
		v := value(g, "v")
		v.Variable, v.Type, v.Shape, v.HasShape, v.Const = true, tensor.Float32, []int{2}, true, begin
		s := start(t, Options{Registry: with(accumulate)}, []*tensor.Tensor{vec(1, 2)}, g)
		a, b := float32(0), float32(0)
		if begin != nil {
			a, b = 10, 20
		}
		for i := range 3 {
			run(t, s)
			wantOut(t, s, 0, a+float32(i+1), b+2*float32(i+1))
		}
		if err := s.Reset(); err != nil {
			t.Fatal(err)
		}
		run(t, s)
		wantOut(t, s, 0, a+1, b+2)
		if begin != nil && !slices.Equal(tensor.Of[float32](begin), []float32{10, 20}) {
			t.Errorf("the file's first value is now %v", tensor.Of[float32](begin))
		}
	}
}

// TestVariableZeroPoint: a fresh quantised variable is filled with its zero point, which
// represents 0.
func TestVariableZeroPoint(t *testing.T) {
	t.Parallel()
	zeros := func(z ...int64) *tensor.Quant { return &tensor.Quant{Scale: make([]float32, len(z)), Zero: z} }
	for _, c := range []struct {
		typ  tensor.Type
		q    *tensor.Quant
		want int64
	}{
		{tensor.Int8, zeros(-128), -128},
		{tensor.Int8, zeros(127), 127},
		{tensor.Uint8, zeros(255), 255},
		{tensor.Uint8, zeros(0), 0},
		{tensor.Int16, zeros(-32768), -32768},
		{tensor.Int16, zeros(32767), 32767},
		{tensor.Int8, nil, 0},
		{tensor.Int8, zeros(5, 6), 0}, // per-channel zero points: no variable has them
		{tensor.Float32, zeros(3), 0}, // not quantised
	} {
		g := build(0, nil, "x", "y", "Show y x v")
		v := value(g, "v")
		v.Variable, v.Type, v.Shape, v.HasShape, v.Quant = true, c.typ, []int{3}, true, c.q
		var got []int64
		show := op.Def{Name: "Show", Stateful: true, Infer: func(c *op.Call) error { c.SetOut(0, tensor.Float32, []int{1}); return nil }, Prepare: op.Simple(func(c *op.Call) error {
			got = make([]int64, c.In[1].Len())
			tensor.Read(got, c.In[1], 0)
			return nil
		})}
		s := start(t, Options{Registry: with(show)}, []*tensor.Tensor{vec(1)}, g)
		run(t, s)
		if !slices.Equal(got, []int64{c.want, c.want, c.want}) {
			t.Errorf("%v with %+v begins as %v, want three of %d", c.typ, c.q, got, c.want)
		}
	}
}

func TestVariableTooLarge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape []int
		limit int
		fails bool
	}{
		{[]int{64}, 256, false},
		{[]int{64}, 255, true},
		{[]int{64}, 0, false},
		{[]int{-1}, 0, true},
	} {
		g := build(0, nil, "x", "y", "Acc y x v")
		v := value(g, "v")
		v.Variable, v.Type, v.Shape, v.HasShape = true, tensor.Float32, c.shape, true
		_, err := open(t, Options{Registry: with(accumulate), MaxBytes: c.limit}, []*tensor.Tensor{vec(1)}, g)
		if (err != nil) != c.fails || c.fails && !strings.Contains(err.Error(), `variable "v"`) {
			t.Errorf("shape %v within %d bytes: %v", c.shape, c.limit, err)
		}
		var le *op.LimitError
		if c.limit == 255 && (!errors.As(err, &le) || le.Want != 256 || le.Limit != 255) {
			t.Errorf("error %v does not tell the limit", err)
		}
	}
}

// TestInputQuantisation: an input has the quantisation that its value declares, else that of the
// tensor.
func TestInputQuantisation(t *testing.T) {
	t.Parallel()
	file, own := &tensor.Quant{Scale: []float32{1}, Zero: []int64{1}}, &tensor.Quant{Scale: []float32{2}, Zero: []int64{2}}
	for _, declared := range []*tensor.Quant{nil, file} {
		g := build(0, nil, "x", "y", "See y x")
		value(g, "x").Quant = declared
		var seen *tensor.Quant
		see := op.Def{Name: "See", Infer: func(c *op.Call) error { c.SetOut(0, tensor.Float32, []int{1}); return nil }, Prepare: op.Simple(func(c *op.Call) error {
			seen = c.In[0].Quant
			return nil
		})}
		x := vec(1)
		x.Quant = own
		s := start(t, Options{Registry: with(see)}, []*tensor.Tensor{x}, g)
		run(t, s)
		want := own
		if declared != nil {
			want = declared
		}
		if seen != want {
			t.Errorf("declared %v: the operator sees %v", declared, seen)
		}
	}
}

// TestTiming: a timing belongs to one plan; steps that do not run take no time, others do not
// overlap.
func TestTiming(t *testing.T) {
	t.Parallel()
	consts := map[string]*tensor.Tensor{"c": vec(3, 3, 3)}
	g := build(0, consts, "x n", "y r", "Twice d c", "Sub a x d", "Relu y a", "Nope w x", "Inc r y", "Take q x n")
	s := start(t, Options{}, []*tensor.Tensor{vec(1, 2, 3), num(1)}, g)
	if got, want := states(s), "folded runs fused unsupported runs runs"; got != want {
		t.Fatalf("states %q, want %q", got, want)
	}
	tm := s.NewTiming()
	if len(tm.Bounds) != 7 || len(tm.Bodies) != 1 {
		t.Fatalf("%d bounds and %d bodies for 6 steps of one graph", len(tm.Bounds), len(tm.Bodies))
	}
	before := now()
	if err := s.RunTimed(context.Background(), tm); err != nil {
		t.Fatal(err)
	}
	after := now()
	if tm.Bounds[0] < before || tm.Bounds[6] > after {
		t.Errorf("bounds %v are not between %d and %d", tm.Bounds, before, after)
	}
	for i, idle := range []bool{true, false, true, true, false, false} {
		d := tm.Bounds[i+1] - tm.Bounds[i]
		if d < 0 || idle && d != 0 {
			t.Errorf("step %d took %d ns", i, d)
		}
	}
	for _, n := range []int{0, 6, 8} {
		if err := s.RunTimed(context.Background(), &Timing{Bounds: make([]int64, n)}); err == nil || !strings.Contains(err.Error(), "another plan") {
			t.Errorf("%d bounds: %v", n, err)
		}
	}
}

// TestStepsTell: steps report kernel and scratch memory; bodies that never ran report none.
func TestStepsTell(t *testing.T) {
	t.Parallel()
	named := op.Def{Name: "Named", Infer: func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil }, Prepare: func(c *op.Call) (op.Run, error) {
		c.Kernel = "quick"
		c.Scratch(40)
		c.Scratch(2)
		return func(*op.Call) error { return nil }, nil
	}}
	consts := map[string]*tensor.Tensor{"c": vec(3)}
	inner := build(1, nil, "v", "o", "Inc o v")
	g := build(0, consts, "x", "y q", "Twice d c", "Sub a x d", "Relu y a", "Nope w x", "Named q x")
	s := start(t, Options{Registry: with(named)}, []*tensor.Tensor{vec(1)}, g, inner)
	var got []string
	for _, st := range s.Steps() {
		got = append(got, st.Kernel)
	}
	if want := []string{"plain", "plain", "", "", "quick"}; !slices.Equal(got, want) {
		t.Errorf("kernels %q, want %q", got, want)
	}
	if st := s.Steps(); st[4].Scratch != 42 || st[1].Scratch != 0 {
		t.Errorf("scratch %d and %d, want 42 and 0", st[4].Scratch, st[1].Scratch)
	}
	if n := len(s.GraphSteps(0)); n != 5 {
		t.Errorf("graph 0 has %d steps, want 5", n)
	}
	for _, i := range []int{-1, 1, 2} {
		if s.BodySteps(i) != nil || s.GraphSteps(i) != nil {
			t.Errorf("graph %d has steps and never ran", i)
		}
	}
	if s.BodySteps(0) != nil {
		t.Error("the main graph is not a body")
	}
}

// TestCarryOverNewPlans: Reset and Disable keep outputs that are still to be fed back.
func TestCarryOverNewPlans(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Carry: []Carry{{0, 0}}}, []*tensor.Tensor{vec(1)}, build(0, nil, "x", "y z", "Twice y x", "Inc z y"))
	run(t, s)
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	run(t, s)
	wantOut(t, s, 0, 4)
	if !s.Disable(&NodeError{Node: s.Model.Graphs[0].Nodes[1], Err: errors.New("no more")}) {
		t.Fatal("a node cannot be taken out")
	}
	run(t, s)
	wantOut(t, s, 0, 8)
	if st := s.Steps()[1]; st.State != Failed || st.Err == nil || st.Err.Error() != "no more" {
		t.Errorf("the node taken out is %v: %v", st.State, st.Err)
	}
}

// TestCarryOfOpenShape: a dynamic output is fed back as a copy, with its current shape.
func TestCarryOfOpenShape(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Carry: []Carry{{0, 0}}}, []*tensor.Tensor{vec(1, 2, 3, 4), num(3)}, build(0, nil, "x n", "y", "Take a x n", "Twice y a"))
	for _, c := range []struct {
		n    int64
		want []float32
	}{{3, []float32{2, 4, 6}}, {3, []float32{4, 8, 12}}, {2, []float32{8, 16}}, {2, []float32{16, 32}}, {1, []float32{32}}, {1, []float32{64}}} {
		s.SetInput(1, num(c.n))
		run(t, s)
		wantOut(t, s, 0, c.want...)
	}
}

func TestCarryOfText(t *testing.T) {
	t.Parallel()
	twice := op.Def{Name: "Text", Infer: func(c *op.Call) error { c.SetOut(0, tensor.String, c.In[0].Shape); return nil }, Prepare: op.Simple(func(c *op.Call) error {
		c.Out[0].Strings[0] = c.In[0].Strings[0] + "a"
		return nil
	})}
	x := tensor.New(tensor.String, 1)
	s := start(t, Options{Registry: with(twice), Carry: []Carry{{0, 0}}}, []*tensor.Tensor{x}, build(0, nil, "x", "y", "Text y x"))
	for _, want := range []string{"a", "aa", "aaa"} {
		run(t, s)
		if got := s.Output(0).Strings[0]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if x.Strings[0] != "" {
		t.Errorf("the caller's text is now %q", x.Strings[0])
	}
}

// TestInputsStay: an input is never written, whatever runs in place after it.
func TestInputsStay(t *testing.T) {
	t.Parallel()
	x := vec(1, 2, 3)
	s := start(t, Options{}, []*tensor.Tensor{x}, build(0, nil, "x", "y", "Twice a x", "Twice y a"))
	for range 2 {
		run(t, s)
		wantOut(t, s, 0, 4, 8, 12)
	}
	if got := tensor.Of[float32](x); !slices.Equal(got, []float32{1, 2, 3}) {
		t.Errorf("the input is now %v", got)
	}
}

// TestPreparation: a node that cannot be prepared or folded is reported with its cause, and nodes
// that depend on it are skipped.
func TestPreparation(t *testing.T) {
	t.Parallel()
	same := func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil }
	more := []op.Def{
		{Name: "Bad", Infer: same, Prepare: func(*op.Call) (op.Run, error) { return nil, errors.New("odd options") }},
		{Name: "Panics", Infer: same, Prepare: func(*op.Call) (op.Run, error) { panic("never mind") }},
		{Name: "Large", Infer: same, Prepare: func(c *op.Call) (op.Run, error) {
			c.Scratch(1000)
			return func(*op.Call) error { return nil }, nil
		}},
		{Name: "Refuses", Infer: func(*op.Call) error { return op.Unsupported("this use") }},
		{Name: "Same", Infer: same, Prepare: op.Simple(func(*op.Call) error { return nil })},
		{Name: "Untyped", Infer: func(*op.Call) error { return nil }},
		{Name: "Contradicts", Infer: func(*op.Call) error { return errors.New("shapes disagree") }},
	}
	consts := map[string]*tensor.Tensor{"c": vec(3)}
	for _, c := range []struct {
		lines  []string
		states string
		cause  string // cause of the first step's failure
		limit  int
	}{
		{[]string{"Bad a x", "Inc y a"}, "failed skipped", "odd options", 0},
		{[]string{"Half a x", "Inc y a"}, "unsupported skipped", "halves", 0},
		{[]string{"Panics a x", "Inc y a"}, "failed skipped", "never mind", 0},
		{[]string{"Refuses a x", "Inc y a"}, "unsupported skipped", "this use", 0},
		{[]string{"Untyped a x", "Inc y a"}, "unsupported skipped", "output 0, which is requested, is not computed", 0},
		{[]string{"Same a,b x", "Sub y a b"}, "unsupported skipped", "output 1, which is requested, is not computed", 0},
		{[]string{"Contradicts a x", "Inc y a"}, "failed skipped", "shapes disagree", 0},
		{[]string{"Large a x", "Inc y a"}, "runs runs", "", 1128},
		{[]string{"Large a x", "Inc y a"}, "failed skipped", "memory", 999},
		{[]string{"Boom a c", "Sub y x a"}, "failed skipped", "boom", 0},
		{[]string{"Boom y c"}, "failed", "boom", 0},
		{[]string{"Twice a c", "Boom b a", "Inc y b", "Inc z x"}, "folded failed skipped runs", "", 0},
	} {
		t.Run(strings.Join(c.lines, ","), func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Registry: with(more...), MaxBytes: c.limit}, []*tensor.Tensor{vec(1)}, build(0, consts, "x", "y", c.lines...))
			if got := states(s); got != c.states {
				t.Fatalf("states %q, want %q", got, c.states)
			}
			if err := s.Steps()[0].Err; (err != nil) != (c.cause != "") || err != nil && !strings.Contains(err.Error(), c.cause) {
				t.Errorf("the cause is %v, want %q", err, c.cause)
			}
			run(t, s)
		})
	}
}

// TestConstantsAreThere: a constant output is available without a run, and with KeepAll every
// value is.
func TestConstantsAreThere(t *testing.T) {
	t.Parallel()
	consts := map[string]*tensor.Tensor{"c": vec(3)}
	lines := []string{"Twice a c", "Inc b a", "Inc y b", "Inc z x"}
	s := start(t, Options{}, []*tensor.Tensor{vec(1)}, build(0, consts, "x", "y z", lines...))
	run(t, s)
	wantOut(t, s, 0, 8)
	g := build(0, consts, "x", "z", lines...)
	k := start(t, Options{KeepAll: true}, []*tensor.Tensor{vec(1)}, g)
	run(t, k)
	for name, want := range map[string]float32{"a": 6, "b": 7, "y": 8, "z": 2} {
		if v := k.Value(value(g, name).ID); v == nil || !v.Known() || tensor.Of[float32](v)[0] != want {
			t.Errorf("value %s is %v, want %v", name, v, want)
		}
	}
}

func TestNodeErrorText(t *testing.T) {
	t.Parallel()
	cause := errors.New("boom")
	for _, c := range []struct {
		e    NodeError
		want string
	}{
		{NodeError{0, &graph.Node{Index: 0, Op: "Add"}, cause}, "node 0 (Add): boom"},
		{NodeError{0, &graph.Node{Index: 7, Op: "Add", Name: "sum"}, cause}, `node 7 (Add "sum"): boom`},
		{NodeError{1, &graph.Node{Index: 2, Op: "Add"}, cause}, "graph 1 node 2 (Add): boom"},
	} {
		if got := c.e.Error(); got != c.want || !errors.Is(&c.e, cause) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestTypesInRuns: a type that is known only at run time is checked in the run, and again when it
// changes.
func TestTypesInRuns(t *testing.T) {
	t.Parallel()
	schemas, err := op.ParseSchemas("[]\nKeep 1: X:float32 -> Y:float32\n", op.Unsupported)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	first := op.Def{Name: "First", Infer: func(*op.Call) error { return op.ErrDynamic }, Prepare: op.Simple(func(c *op.Call) error {
		*c.Out[0] = *c.In[1].Clone()
		if tensor.Of[int64](c.In[0])[0] != 0 {
			*c.Out[0] = *c.In[2].Clone()
		}
		return nil
	})}
	keep := op.Def{Name: "Keep", Infer: func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil }, Prepare: op.Simple(func(c *op.Call) error {
		ran++
		copy(c.Out[0].Data, c.In[0].Data)
		return nil
	})}
	r := with(first, keep)
	r.Schemas = []*op.Schemas{schemas}
	s := start(t, Options{Registry: r}, []*tensor.Tensor{num(0), vec(1, 2), num(7)}, build(0, nil, "n x z", "y", "First a n x z", "Keep y a"))
	for i, c := range []struct {
		which int64
		fails bool
	}{{0, false}, {1, true}, {0, false}, {0, false}, {1, true}, {1, true}, {0, false}} {
		s.SetInput(0, num(c.which))
		before := ran
		err := s.Run(context.Background())
		var ne *NodeError
		if (err != nil) != c.fails || c.fails && (!errors.As(err, &ne) || ne.Node.Op != "Keep" || !errors.Is(err, op.ErrUnsupported)) {
			t.Errorf("run %d: %v", i, err)
		}
		if (ran == before) != c.fails {
			t.Errorf("run %d: the operator ran %d times", i, ran-before)
		}
	}
}

// TestTextIsCounted: strings have no size that a plan could know. They are counted when they
// exist, in steps of known and of dynamic shape.
func TestTextIsCounted(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 100)
	for _, open := range []bool{false, true} {
		text := op.Def{Name: "Text", Infer: func(c *op.Call) error {
			if open && !c.In[0].Known() {
				return op.ErrDynamic
			}
			c.SetOut(0, tensor.String, []int{2})
			return nil
		}, Prepare: op.Simple(func(c *op.Call) error {
			n := int(tensor.Of[int64](c.In[0])[0])
			c.Out[0].Strings[0], c.Out[0].Strings[1] = long[:n], ""
			return nil
		})}
		s := start(t, Options{Registry: with(text), MaxBytes: 1000}, []*tensor.Tensor{num(100)}, build(0, nil, "x", "y", "Text y x"))
		held := map[int64]int{}
		for _, n := range []int64{100, 50, 0, 100, 100} {
			s.SetInput(0, num(n))
			run(t, s)
			if was, ok := held[n]; ok && was != s.held {
				t.Errorf("open %v: %d bytes with %d characters, %d before", open, s.held, n, was)
			}
			held[n] = s.held
		}
		if d, e := held[100]-held[50], held[50]-held[0]; d != 50 || e != 50 {
			t.Errorf("open %v: 50 characters more are %d and %d bytes more", open, d, e)
		}
	}
}
