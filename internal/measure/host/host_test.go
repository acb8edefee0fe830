package host

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/runtime/synth"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// TestClockwork checks that self times add up to the run, also if two steps share a body and if
// rounding would make a time negative.
func TestClockwork(t *testing.T) {
	t.Parallel()
	step := func(g, n int, bodies ...int) plan.Slot {
		return plan.Slot{Step: plan.Step{Graph: g, Node: &graph.Node{Index: n}}, Parent: -1, Bodies: bodies}
	}
	for _, tt := range []struct {
		name   string
		slots  []plan.Slot
		bounds []int64
		bodies [][]engine.BodyTime
		self   []int64
		calls  []int64
	}{
		{
			name:   "no bodies",
			slots:  []plan.Slot{step(0, 0), step(0, 1)},
			bounds: []int64{100, 130, 200},
			self:   []int64{30, 70}, calls: []int64{1, 1},
		},
		{
			name:   "a loop: its own time is what its body leaves",
			slots:  []plan.Slot{step(0, 0, 1), step(1, 0), step(1, 1), step(0, 1)},
			bounds: []int64{0, 100, 110},
			bodies: [][]engine.BodyTime{nil, {{Nanoseconds: 50, Calls: 5}, {Nanoseconds: 30, Calls: 5}}},
			self:   []int64{20, 50, 30, 10}, calls: []int64{1, 5, 5, 1},
		},
		{
			name:   "two steps share a body and are charged by their times",
			slots:  []plan.Slot{step(0, 0, 1), step(1, 0), step(0, 1, 1)},
			bounds: []int64{0, 300, 400},
			bodies: [][]engine.BodyTime{nil, {{Nanoseconds: 200, Calls: 4}}},
			self:   []int64{150, 200, 50}, calls: []int64{1, 4, 1},
		},
		{
			name:   "the body seems longer than its owner by a step of the clock",
			slots:  []plan.Slot{step(0, 0, 1), step(1, 0)},
			bounds: []int64{0, 100},
			bodies: [][]engine.BodyTime{nil, {{Nanoseconds: 101, Calls: 1}}},
			self:   []int64{0, 101}, calls: []int64{1, 1},
		},
		{
			name:   "a body that did not run",
			slots:  []plan.Slot{step(0, 0, 1), step(1, 0)},
			bounds: []int64{0, 100},
			bodies: [][]engine.BodyTime{nil, {{}}},
			self:   []int64{100, 0}, calls: []int64{1, 0},
		},
		{
			name:   "nested",
			slots:  []plan.Slot{step(0, 0, 1), step(1, 0, 2), step(2, 0)},
			bounds: []int64{0, 100},
			bodies: [][]engine.BodyTime{nil, {{Nanoseconds: 80, Calls: 2}}, {{Nanoseconds: 60, Calls: 8}}},
			self:   []int64{20, 20, 60}, calls: []int64{1, 2, 8},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newSelfTimes(tt.slots)
			for range 2 { // the second run must not depend on the first
				c.read(&engine.Timing{Bounds: tt.bounds, Waits: make([]int64, len(tt.bounds)), Bodies: tt.bodies})
			}
			if d := cmp.Diff(tt.self, c.self); d != "" {
				t.Errorf("self times (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.calls, c.calls); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

// model makes ONNX graphs for tests.
type model struct{ m *graph.Model }

func newModel(graphs int) *model {
	m := &graph.Model{Format: "onnx", Name: "test", IRVersion: 8, Opsets: map[string]int{"": 17}}
	for i := range graphs {
		m.Graphs = append(m.Graphs, &graph.Graph{Index: i, Name: "g"})
	}
	return &model{m}
}

// value adds a value to graph g and returns its id.
func (m *model) value(g int, name string, t tensor.Type, dims ...int) int {
	gr := m.m.Graphs[g]
	if dims == nil {
		dims = []int{}
	}
	gr.Values = append(gr.Values, &graph.Value{ID: len(gr.Values), Name: name, Type: t, Shape: dims, HasShape: true})
	return len(gr.Values) - 1
}

func (m *model) constant(g int, name string, x *tensor.Tensor) int {
	id := m.value(g, name, x.Type, x.Shape...)
	m.m.Graphs[g].Values[id].Const = x
	return id
}

func (m *model) node(g int, op string, in, out []int, a graph.Attrs) {
	gr := m.m.Graphs[g]
	gr.Nodes = append(gr.Nodes, &graph.Node{Index: len(gr.Nodes), Name: strings.ToLower(op), Op: op, Version: 17, Inputs: in, Outputs: out, Attrs: a})
}

// looped is a Loop of three iterations, each a 4x4 by 4x4 matrix multiplication.
func looped() *graph.Model {
	m := newModel(2)
	trips := m.constant(0, "trips", tensor.From(tensor.Int64, []int{}, []int64{3}))
	x := m.value(0, "x", tensor.Float32, 4, 4)
	y := m.value(0, "y", tensor.Float32, 4, 4)
	m.node(0, "Loop", []int{trips, -1, x}, []int{y}, graph.Attrs{"body": graph.GraphRef(1)})
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{x}, []int{y}

	i := m.value(1, "i", tensor.Int64)
	c := m.value(1, "c", tensor.Bool)
	v := m.value(1, "v", tensor.Float32, 4, 4)
	w := m.constant(1, "w", tensor.From(tensor.Float32, []int{4, 4}, make([]float32, 16)))
	c2 := m.value(1, "c2", tensor.Bool)
	v2 := m.value(1, "v2", tensor.Float32, 4, 4)
	m.node(1, "Identity", []int{c}, []int{c2}, nil)
	m.node(1, "MatMul", []int{v, w}, []int{v2}, nil)
	m.m.Graphs[1].Inputs, m.m.Graphs[1].Outputs = []int{i, c, v}, []int{c2, v2}
	m.m.Graphs[1].Parent = m.m.Graphs[0]
	return m.m
}

func options() Options { return Options{Runs: 3, WarmupTime: -1, WarmupRuns: -1, Version: "test"} }

// counted and profiled make profiles of a model.
func counted(m *graph.Model, o Options) (*profile.Profile, error) {
	o.Static = true
	return source.Collect(context.Background(), &Source{Model: m, Options: o}, source.Options{})
}

func profiled(ctx context.Context, m *graph.Model, o Options) (*profile.Profile, error) {
	return source.Collect(ctx, &Source{Model: m, Options: o}, source.Options{})
}

func TestCountLoop(t *testing.T) {
	t.Parallel()
	p, err := counted(looped(), options())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if len(p.Layers) != 3 || p.Layers[2].Op != "MatMul" {
		t.Fatalf("layers %v, want Loop, Identity, MatMul", p.Layers)
	}
	l := p.Layers[2]
	if l.Calls == nil || *l.Calls != 3 || l.MACs == nil || *l.MACs != 3*64 || *l.Parent != 0 {
		t.Errorf("MatMul: calls %v, MACs %v, parent %v; want 3, 192, 0", l.Calls, l.MACs, l.Parent)
	}
	if got := *p.Totals.MACs; got != 3*64 {
		t.Errorf("%d MACs in all, want %d", got, 3*64)
	}
	if p.Totals.Latency != nil {
		t.Error("a count has a latency")
	}
}

// TestCountBranches takes the branch that costs most where data choose, and a single iteration of
// a loop whose trip count is an input; it says so. For a record all branches keep their work.
func TestCountBranches(t *testing.T) {
	t.Parallel()
	m := newModel(4)
	c, trips := m.value(0, "c", tensor.Bool), m.value(0, "trips", tensor.Int64)
	x, y, z := m.value(0, "x", tensor.Float32, 4, 4), m.value(0, "y", tensor.Float32, 4, 4), m.value(0, "z", tensor.Float32, 4, 4)
	m.node(0, "If", []int{c}, []int{y}, graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)})
	m.node(0, "Loop", []int{trips, -1, x}, []int{z}, graph.Attrs{"body": graph.GraphRef(3)})
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{c, trips, x}, []int{y, z}
	for g, muls := range []int{0, 1, 3, 1} {
		if g == 0 {
			continue
		}
		w := m.constant(g, fmt.Sprint("w", g), tensor.From(tensor.Float32, []int{4, 4}, make([]float32, 16)))
		var v int
		outs := []int{}
		if g == 3 {
			i, again := m.value(g, "i", tensor.Int64), m.value(g, "again", tensor.Bool)
			v = m.value(g, "v", tensor.Float32, 4, 4)
			m.m.Graphs[g].Inputs, outs = []int{i, again, v}, []int{again}
		} else {
			v = m.value(g, fmt.Sprint("v", g), tensor.Float32, 4, 4)
			m.m.Graphs[g].Captures = []graph.Capture{{Inner: v, Outer: x}}
		}
		for k := range muls {
			next := m.value(g, fmt.Sprint("m", g, k), tensor.Float32, 4, 4)
			m.node(g, "MatMul", []int{v, w}, []int{next}, nil)
			v = next
		}
		m.m.Graphs[g].Outputs, m.m.Graphs[g].Parent = append(outs, v), m.m.Graphs[0]
	}
	for _, all := range []bool{false, true} {
		o := options()
		o.AllBranches = all
		p, err := counted(m.m, o)
		if err != nil {
			t.Fatal(err)
		}
		macs, want := int64((3+1)*64), "model.iterations model.branches"
		if all {
			macs, want = (1+3+1)*64, ""
		}
		var ids []string
		for _, f := range p.Findings {
			ids = append(ids, f.ID)
		}
		if got := strings.Join(ids, " "); got != want || p.Totals.MACs == nil || *p.Totals.MACs != macs {
			t.Errorf("all branches %v: findings %q, MACs %v; want %q, %d", all, got, p.Totals.MACs, want, macs)
		}
	}
}

// TestOtherBranch: a layer that cannot run is a problem only in a branch that is taken.
func TestOtherBranch(t *testing.T) {
	t.Parallel()
	for _, then := range []bool{true, false} {
		m := newModel(3)
		c, x, y := m.value(0, "c", tensor.Bool), m.value(0, "x", tensor.Float32, 4, 4), m.value(0, "y", tensor.Float32)
		m.node(0, "If", []int{c}, []int{y}, graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)})
		m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{c, x}, []int{y}
		for g, op := range []string{1: "Relu", 2: "MatMul"} {
			if g == 0 {
				continue
			}
			in, mid, out := m.value(g, "in", tensor.Float32, 4, 4), m.value(g, "mid", tensor.Float32, 4, 4), m.value(g, "out", tensor.Float32, 4, 4)
			m.node(g, "Abs", []int{in}, []int{mid}, nil)
			ins := []int{mid}
			if op == "MatMul" {
				ins = append(ins, m.constant(g, "w", tensor.New(tensor.Float32, 3, 4)))
			}
			m.node(g, op, ins, []int{out}, nil)
			m.m.Graphs[g].Captures = []graph.Capture{{Inner: in, Outer: x}}
			m.m.Graphs[g].Outputs, m.m.Graphs[g].Parent = []int{out}, m.m.Graphs[0]
		}
		o := options()
		value := 0.0
		if then {
			value = 1
		}
		o.Feed.Overrides = synth.Overrides{Fill: map[string]synth.Fill{"c": {Const: &value}}}
		p, err := profiled(t.Context(), m.m, o)
		if err != nil {
			t.Fatal(err)
		}
		states := map[string]profile.State{}
		for _, l := range p.Layers {
			states[l.Op] = l.State
		}
		want := profile.Failed
		if then {
			want = profile.NotReached
		}
		if states["MatMul"] != want || (found(p, "model.unsupported") == nil) != then {
			t.Errorf("then %v: %v, findings %v", then, states, p.Findings)
		}
	}
}

func TestProfileLoop(t *testing.T) {
	t.Parallel()
	p, err := profiled(t.Context(), looped(), options())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	loop, mul := p.Layers[0], p.Layers[2]
	if loop.Total == nil || loop.Latency == nil {
		t.Fatal("Loop lacks its time or that with its body")
	}
	if mul.Calls == nil || *mul.Calls != 3 {
		t.Errorf("MatMul: calls %v, want 3", mul.Calls)
	}
	var sum float64
	for _, l := range p.Layers {
		sum += *l.Share
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("shares add up to %g", sum)
	}
	if got := *p.Totals.Latency.N; got != 3 {
		t.Errorf("%d samples, want 3", got)
	}
	if p.Reconcile == nil || p.Reconcile.OverheadPerOperatorS == nil {
		t.Error("no reconciliation, or no cost of the instruments in it")
	}
	if p.Memory.AllocatedPerRunBytes == nil {
		t.Error("the memory that a run takes is absent")
	}
}

// chain is Relu, op, Relu over a vector of four.
func chain(op string, in int) *graph.Model {
	m := newModel(1)
	x := m.value(0, "x", tensor.Float32, 4)
	a := m.value(0, "a", tensor.Float32, 4)
	b := m.value(0, "b", tensor.Float32, 4)
	y := m.value(0, "y", tensor.Float32, 4)
	idx := m.value(0, "idx", tensor.Int64, 4)
	m.node(0, "Relu", []int{x}, []int{a}, nil)
	ins := []int{a}
	if in > 1 {
		ins = append(ins, idx)
	}
	m.node(0, op, ins, []int{b}, nil)
	m.node(0, "Relu", []int{b}, []int{y}, nil)
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{x, idx}, []int{y}
	return m.m
}

func found(p *profile.Profile, id string) *profile.Finding {
	for i := range p.Findings {
		if p.Findings[i].ID == id {
			return &p.Findings[i]
		}
	}
	return nil
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	p, err := profiled(t.Context(), chain("Frobnicate", 1), options())
	if err != nil {
		t.Fatal(err)
	}
	f := found(p, "model.unsupported")
	if f == nil || !cmp.Equal(f.Layers, []int64{1}) || !strings.Contains(f.Text, "Frobnicate") {
		t.Errorf("finding %+v, want one about layer 1", f)
	}
	for i, want := range []bool{true, false, true} {
		if got := p.Layers[i].Latency != nil; got != want {
			t.Errorf("layer %d measured: %v, want %v", i, got, want)
		}
	}
	if p.Layers[1].State != profile.Unsupported || p.Layers[1].Cause.Code != profile.ByOperator || *p.Totals.UnsupportedLayers != 1 {
		t.Errorf("layer 1 is not marked: %+v", p.Layers[1])
	}
}

// TestFailing measures the rest when a node fails while it runs, with indices beyond the data.
func TestFailing(t *testing.T) {
	t.Parallel()
	o := options()
	o.Feed.Overrides.Fill = map[string]synth.Fill{"idx": {Const: new(99.0)}}
	p, err := profiled(t.Context(), chain("Gather", 2), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	l := p.Layers[1]
	if l.Latency != nil || l.State != profile.Failed || l.Cause == nil || l.Cause.Text == "" {
		t.Errorf("Gather: %+v, want a cause and no time", l)
	}
	if p.Layers[2].Latency == nil || p.Totals.Latency == nil {
		t.Error("what follows was not measured")
	}
}

// TestEndlessWithin removes the main graph's loop when a loop within it does not end: the outer
// one would wait for the inner one in each of its iterations. The next loop has half of the time.
func TestEndlessWithin(t *testing.T) {
	t.Parallel()
	m := newModel(3)
	x, y, z := m.value(0, "x", tensor.Float32, 4), m.value(0, "y", tensor.Float32, 4), m.value(0, "z", tensor.Float32, 4)
	yes := m.constant(0, "yes", tensor.From(tensor.Bool, []int{}, []uint8{1}))
	trips := m.constant(0, "trips", tensor.From(tensor.Int64, []int{}, []int64{3}))
	m.node(0, "Loop", []int{trips, -1, x}, []int{y}, graph.Attrs{"body": graph.GraphRef(1)})
	m.node(0, "Loop", []int{-1, yes, x}, []int{z}, graph.Attrs{"body": graph.GraphRef(2)})
	m.node(0, "Neg", []int{x}, []int{m.value(0, "n", tensor.Float32, 4)}, nil)
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{x}, []int{y, z, 5}
	body := func(g int, op string, in func(v, c int) []int, a graph.Attrs) {
		i, c, v := m.value(g, "i", tensor.Int64), m.value(g, "c", tensor.Bool), m.value(g, "v", tensor.Float32, 4)
		c2, v2 := m.value(g, "c2", tensor.Bool), m.value(g, "v2", tensor.Float32, 4)
		m.node(g, "Identity", []int{c}, []int{c2}, nil)
		m.node(g, op, in(v, c), []int{v2}, a)
		m.m.Graphs[g].Inputs, m.m.Graphs[g].Outputs = []int{i, c, v}, []int{c2, v2}
		m.m.Graphs[g].Parent = m.m.Graphs[0]
	}
	body(1, "Loop", func(v, c int) []int { return []int{-1, c, v} }, graph.Attrs{"body": graph.GraphRef(3)})
	body(2, "Neg", func(v, _ int) []int { return []int{v} }, nil)
	m.m.Graphs = append(m.m.Graphs, &graph.Graph{Index: 3, Name: "g"})
	body(3, "Neg", func(v, _ int) []int { return []int{v} }, nil)
	m.m.Graphs[3].Parent = m.m.Graphs[1]
	o := options()
	o.MaxLoop = 40 * time.Millisecond
	p, err := profiled(t.Context(), m.m, o)
	if err != nil {
		t.Fatal(err)
	}
	var limits []string
	for _, l := range p.Layers {
		if l.State == profile.Failed {
			limits = append(limits, fmt.Sprint(l.Index, " ", l.Cause.Code, " ", regexp.MustCompile(`after \S+,`).FindString(l.Cause.Text)))
		}
	}
	if want := []string{"0 loop after 40ms,", "5 loop after 20ms,"}; !slices.Equal(limits, want) {
		t.Errorf("failed: %q, want %q", limits, want)
	}
	if p.Totals.Latency == nil && p.Layers[len(p.Layers)-1].Latency == nil {
		t.Error("what does not hang on the loops was not measured")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	o := options()
	o.MaxMACs = 10
	m := newModel(1)
	x, y := m.value(0, "x", tensor.Float32, 4, 4), m.value(0, "y", tensor.Float32, 4, 4)
	w := m.constant(0, "w", tensor.From(tensor.Float32, []int{4, 4}, make([]float32, 16)))
	m.node(0, "MatMul", []int{x, w}, []int{y}, nil)
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{x}, []int{y}
	if _, err := profiled(t.Context(), m.m, o); err == nil || !strings.Contains(err.Error(), "more than 0 G") {
		t.Errorf("64 MACs with a limit of 10: %v", err)
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := profiled(ctx, looped(), options())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Incomplete) != 1 || p.Incomplete[0].Cause != profile.ByCancel || len(p.Layers) == 0 {
		t.Errorf("incomplete %+v with %d layers", p.Incomplete, len(p.Layers))
	}
}

func TestInputSources(t *testing.T) {
	t.Parallel()
	o := options()
	o.Feed = inputs.Options{Zeros: true}
	p, err := profiled(t.Context(), looped(), o)
	if err != nil {
		t.Fatal(err)
	}
	if in := p.Settings.Inputs["x"]; in.Kind != "zeros" || len(in.SHA256) != 64 || !cmp.Equal(in.Shape, []int64{4, 4}) {
		t.Errorf("input %+v", in)
	}
}

// TestFusedShapesOfRuns counts layers that are fused where shapes are known only at run time: the
// value between them is never computed. NonZero gives 1x4 indices, and the loop runs three times.
func TestFusedShapesOfRuns(t *testing.T) {
	t.Parallel()
	m := newModel(2)
	x := m.value(0, "x", tensor.Float32, 4)
	trips := m.constant(0, "trips", tensor.From(tensor.Int64, nil, []int64{3}))
	y := m.value(0, "y", tensor.Float32, 4)
	m.node(0, "Loop", []int{trips, -1, x}, []int{y}, graph.Attrs{"body": graph.GraphRef(1)})
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{x}, []int{y}
	i, c, v := m.value(1, "i", tensor.Int64), m.value(1, "c", tensor.Bool), m.value(1, "v", tensor.Float32, 4)
	w, bias := m.constant(1, "w", tensor.New(tensor.Float32, 4, 4)), m.constant(1, "bias", tensor.New(tensor.Float32, 4))
	open := func(name string, kind tensor.Type) int {
		id := m.value(1, name, kind)
		m.m.Graphs[1].Values[id].HasShape = false
		return id
	}
	at, real, a, b := open("at", tensor.Int64), open("real", tensor.Float32), open("a", tensor.Float32), open("b", tensor.Float32)
	m.node(1, "NonZero", []int{v}, []int{at}, nil)
	m.node(1, "Cast", []int{at}, []int{real}, graph.Attrs{"to": int64(1)})
	m.node(1, "Gemm", []int{real, w, bias}, []int{a}, nil)
	m.node(1, "Relu", []int{a}, []int{b}, nil)
	m.m.Graphs[1].Inputs, m.m.Graphs[1].Outputs = []int{i, c, v}, []int{c, v}
	m.m.Graphs[1].Parent = m.m.Graphs[0]
	o := options()
	o.Feed.Overrides.Fill = map[string]synth.Fill{"x": {Const: new(2.0)}}
	p, err := profiled(t.Context(), m.m, o)
	if err != nil {
		t.Fatal(err)
	}
	gemm, relu := &p.Layers[3], &p.Layers[4]
	if relu.State != profile.Fused {
		t.Fatalf("Relu is %s, want fused", relu.State)
	}
	if gemm.MACs == nil || *gemm.MACs != 3*16 || *p.Totals.MACs != 3*16 {
		t.Errorf("MACs %v, calls %v, outputs %+v, want 48", gemm.MACs, gemm.Calls, gemm.Outputs)
	}
	if relu.Ops == nil || *relu.Ops != 3*4 {
		t.Errorf("Relu: ops %v, want 12", relu.Ops)
	}
}
