package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/runtime/synth"
	"github.com/opmeter/opmeter/profile"
)

// TestBecame: every state of a step, and every reason why one does not run, has its code.
func TestBecame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state plan.State
		err   error
		want  profile.State
		code  profile.CauseCode
		text  string
	}{
		{plan.Runs, nil, profile.Ran, "", ""},
		{plan.Folded, nil, profile.Folded, "", ""},
		{plan.Fused, nil, profile.Fused, "", ""},
		{plan.Unsupported, op.Unsupported("halves"), profile.Unsupported, profile.ByUse, "halves"},
		{plan.Unsupported, fmt.Errorf("deep: %w", op.Unsupported("halves")), profile.Unsupported, profile.ByUse, "halves"},
		{plan.Unsupported, op.Unknown(7), profile.Unsupported, profile.ByOperator, "version 7"},
		{plan.Unsupported, errors.New("odd"), profile.Unsupported, profile.ByUse, "odd"},
		{plan.Skipped, errors.New("no input"), profile.Skipped, profile.ByInput, "no input"},
		{plan.Failed, errors.New("odd"), profile.Failed, profile.ByError, "odd"},
		{plan.Failed, fmt.Errorf("a: %w", &op.LimitError{Want: 2, Limit: 1}), profile.Failed, profile.ByMemory, "memory"},
		{plan.Failed, &op.WorkError{Want: 2, Limit: 1}, profile.Failed, profile.ByLimit, "operations"},
		{plan.Failed, &op.LoopError{Limit: time.Second}, profile.Failed, profile.ByLoop, "loop"},
	} {
		state, cause := profileState(&plan.Slot{Step: plan.Step{State: c.state, Err: c.err}})
		if state != c.want || (cause != nil) != (c.code != "") || cause != nil && (cause.Code != c.code || !strings.Contains(cause.Text, c.text)) {
			t.Errorf("%v with %v: %s, %+v", c.state, c.err, state, cause)
		}
	}
}

// TestStaticFindings: nodes that do not run are reported once per operator and cause, problems
// before everything else.
func TestStaticFindings(t *testing.T) {
	t.Parallel()
	unsupported := func(i int, op, why string) profile.Layer {
		return profile.Layer{Index: int64(i), Op: op, State: profile.Unsupported, Cause: &profile.Cause{Code: profile.ByUse, Text: why}}
	}
	run := func(n int) (ls []profile.Layer) {
		for i := range n {
			ls = append(ls, profile.Layer{Index: int64(20 + i), Op: "Add", State: profile.Ran})
		}
		return ls
	}
	r := &runner{m: &graph.Model{Graphs: []*graph.Graph{{}}}, p: &profile.Profile{
		Model: profile.Model{Warnings: []string{"odd padding"}},
		Layers: append([]profile.Layer{
			unsupported(0, "Frob", "no such thing"),
			{Index: 1, Op: "Gather", State: profile.Failed, Cause: &profile.Cause{Code: profile.ByError, Text: "index 9"}},
			unsupported(2, "Frob", "no such thing"),
			{Index: 3, Op: "Add", State: profile.Skipped},
			{Index: 4, Op: "Odd", State: profile.Unsupported, Cause: &profile.Cause{}},
		}, run(5)...),
	}}
	want := []string{
		"model.unsupported problem [0 2] Frob cannot run in 2 layers (no such thing). Times and results exclude the operator, and later layers were timed on zeros of the declared shape. Counts such as MACs follow",
		"model.unsupported problem [1] Gather cannot run in 1 layer (index 9).",
		"model.unsupported problem [4] Odd cannot run in 1 layer (no such operator).",
		"model.skipped problem [3] 1 layer not run,",
		"model.file warning [] The file: odd padding",
	}
	check := func(got []profile.Finding) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("findings %+v", got)
		}
		for i, f := range got {
			if s := fmt.Sprintf("%s %s %v %s", f.ID, f.Severity, f.Layers, f.Text); !strings.HasPrefix(s, want[i]) {
				t.Errorf("finding %q, want %q", s, want[i])
			}
		}
	}
	check(r.static())
	timed := want[0]
	want[0] = "model.unsupported problem [0 2] Frob cannot run in 2 layers (no such thing). Results exclude the operator. Counts such as MACs follow"
	r.o.Static = true
	check(r.static())
	r.o.Static, want[0] = false, timed
	r.p.Layers = r.p.Layers[:9] // five of nine layers
	want = append([]string{"model.unrun problem [0 1 2 3 4] Most of the work did not run (5 of 9 layers)"}, want...)
	check(r.static())
	p := &pass{runner: r}
	check(p.findings()) // and no findings about times
	r.p.Layers = slices.Clone(r.p.Layers[5:])
	r.p.Model.Warnings = nil
	for i := range r.p.Layers {
		r.p.Layers[i].Latency = profile.Value(profile.Measured, 1, "")
	}
	if got := p.findings(); len(got) != 2 || got[0].ID != "time.operators" || got[1].ID != "time.layers" {
		t.Errorf("all runs: %+v", got)
	}
}

type events []profile.Event

func (e *events) Send(x profile.Event) error {
	*e = append(*e, x)
	return nil
}

func TestProblemsFirst(t *testing.T) {
	t.Parallel()
	var sent events
	r := &runner{to: &sent}
	if err := r.find([]profile.Finding{{ID: "a", Severity: profile.Info}, {ID: "b", Severity: profile.Problem}, {ID: "c", Severity: profile.Warning}, {ID: "d", Severity: profile.Problem}}); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range sent {
		ids = append(ids, e.Found.ID)
	}
	if got := strings.Join(ids, " "); got != "b d a c" {
		t.Errorf("order %q", got)
	}
}

func TestCarries(t *testing.T) {
	t.Parallel()
	g := &graph.Graph{Values: []*graph.Value{{ID: 0, Name: "x"}, {ID: 1, Name: "past"}, {ID: 2, Name: "y"}, {ID: 3, Name: "present"}}, Inputs: []int{0, 1}, Outputs: []int{2, -1, 3}}
	got, err := Carries(g, []Carry{{"present", "past"}, {"y", "x"}})
	if err != nil || len(got) != 2 || got[0].Output != 2 || got[0].Input != 1 || got[1].Output != 0 || got[1].Input != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []struct {
		c    Carry
		want string
	}{{Carry{"x", "x"}, `the model has no output "x"`}, {Carry{"y", "y"}, `the model has no input "y"`}, {Carry{"", "x"}, `no output ""`}} {
		_, err := Carries(g, []Carry{{"y", "x"}, c.c})
		var oe *inputs.OptionError
		if !errors.As(err, &oe) || oe.Option != "carry" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.c, err)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	o := options()
	o.Runs, o.Time, o.Threads, o.Exact, o.LoadS = 5, 2*time.Second, 0, true, 1.5
	o.Carry = []Carry{{"y", "x"}}
	o.Feed.Seed = 7
	p, err := counted(looped(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := p.Settings
	if *s.Threads != 1 || *s.Seed != 7 || !s.Exact || s.EngineVersion != "test" || s.Carry["y"] != "x" || len(s.Carry) != 1 || s.Batch != nil || *p.Phases.LoadS != 1.5 {
		t.Errorf("settings %+v, phases %+v", s, p.Phases)
	}
	if s.Runs != nil || s.TimeS != nil || s.Passes != "" || p.Phases.PlanS != nil {
		t.Errorf("a count says how it was measured: %+v", s)
	}
	var phases []string
	o.Progress = func(phase string, f float64) {
		if f < 0 || f > 1 {
			t.Errorf("%s is %v done", phase, f)
		}
		if len(phases) == 0 || phases[len(phases)-1] != phase {
			phases = append(phases, phase)
		}
	}
	o.Threads, o.Exact, o.LoadS, o.Carry, o.Runs, o.Time = 2, false, 0, nil, 3, time.Minute
	p, err = profiled(t.Context(), looped(), o)
	if err != nil {
		t.Fatal(err)
	}
	s = p.Settings
	if *s.Threads != 2 || s.Exact || s.Carry != nil || *s.Runs != 3 || *s.TimeS != 60 || s.Passes != "abba" || s.GarbageCollector != "off" || s.ReferenceLoop != loop.ReferenceName || s.InputKind != "random" {
		t.Errorf("settings %+v", s)
	}
	if p.Phases.LoadS != nil || p.Phases.PlanS == nil || p.Phases.FirstRunS == nil || p.Phases.Warmup == nil {
		t.Errorf("phases %+v", p.Phases)
	}
	if want := []string{"planning", "first run", "warming up", "measuring", "peaks of this computer"}; !slices.Equal(phases, want) {
		t.Errorf("phases %q, want %q", phases, want)
	}
	o.Carry = []Carry{{"nope", "x"}}
	if _, err := profiled(t.Context(), looped(), o); err == nil || !strings.Contains(err.Error(), `no output "nope"`) {
		t.Errorf("an output that is absent: %v", err)
	}
}

// TestAffordable: a model with exactly the allowed work runs; constants do not count.
func TestAffordable(t *testing.T) {
	t.Parallel()
	layers := []profile.Layer{{MACs: new(int64(60))}, {MACs: new(int64(40))}, {MACs: new(int64(1000)), Constant: true}}
	for limit, fails := range map[int64]bool{0: false, 100: false, 99: true} {
		r := &runner{p: &profile.Profile{Layers: layers}, o: Options{MaxMACs: limit}}
		err := r.affordable()
		var large *TooLargeError
		if errors.As(err, &large) != fails || fails && large.Limit != limit {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	if got := (&TooLargeError{2_600_000_000}).Error(); got != "one inference takes more than 3 G multiply-accumulates" {
		t.Error(got)
	}
}

// TestShapesOfRuns: shapes that depend on data are those of the runs, and so are the counts that
// follow from them.
func TestShapesOfRuns(t *testing.T) {
	t.Parallel()
	m := newModel(1)
	x := m.value(0, "x", tensor.Float32, 4)
	y := m.value(0, "y", tensor.Int64)
	m.m.Graphs[0].Values[y].HasShape, m.m.Graphs[0].Values[y].Shape = false, nil
	m.node(0, "NonZero", []int{x}, []int{y}, nil)
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{x}, []int{y}
	o := options()
	o.Feed.Overrides.Fill = map[string]synth.Fill{"x": {Const: new(2.0)}}
	p, err := profiled(t.Context(), m.m, o)
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]profile.Tensor{"the layer": p.Layers[0].Outputs[0], "the model": p.Model.Outputs[0]} {
		if !slices.Equal(got.Shape, []int64{1, 4}) {
			t.Errorf("%s gives %v, want 1x4", what, got.Shape)
		}
	}
	if b := p.Layers[0].BytesWritten; b == nil || *b != 32 {
		t.Errorf("%d bytes written, want 32", *b)
	}
}

// TestContradiction: if nothing can run because the model contradicts itself, that is the error.
func TestContradiction(t *testing.T) {
	t.Parallel()
	m := newModel(1)
	x, y := m.value(0, "x", tensor.Float32, 4, 4), m.value(0, "y", tensor.Float32, 4, 4)
	w := m.constant(0, "w", tensor.From(tensor.Float32, []int{3, 4}, make([]float32, 12)))
	m.node(0, "MatMul", []int{x, w}, []int{y}, nil)
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{x}, []int{y}
	_, err := profiled(t.Context(), m.m, options())
	var c *ContradictionError
	if !errors.As(err, &c) || c.First.Node.Op != "MatMul" || c.Hint != "" || !errors.Is(err, c.First) {
		t.Errorf("error %v", err)
	}
	with := &ContradictionError{First: c.First, Hint: "Say the shape."}
	if with.Error() != c.First.Error()+". Say the shape." || c.Error() != c.First.Error() {
		t.Errorf("%q and %q", with.Error(), c.Error())
	}
	r := &runner{slots: []plan.Slot{{Step: plan.Step{State: plan.Unsupported}}, {Step: plan.Step{State: plan.Folded}}}}
	if err := r.checkContradiction(); err != nil {
		t.Errorf("an operator that is lacking: %v", err)
	}
}

// TestMemoryOfPlan: the memory plan names values and steps; with the values of
// bodies.
func TestMemoryOfPlan(t *testing.T) {
	t.Parallel()
	p, err := counted(chain("Sqrt", 1), options())
	if err != nil {
		t.Fatal(err)
	}
	m := p.Memory
	// Two values of 16 bytes are live at once, each aligned to 64.
	if *m.ArenaBytes > 128 || *m.ArenaBytes < 64 || *m.AlignBytes != 64 || m.StepLayers != nil || *m.ScratchBytes != 0 {
		t.Errorf("memory %+v", m)
	}
	names := map[string][2]int64{"y": {2, 3}}
	for _, b := range m.Plan {
		if w, ok := names[b.Name]; ok && (b.First != w[0] || b.Last != w[1] || b.Bytes != 16) {
			t.Errorf("buffer %+v", b)
		}
	}
	if len(m.Plan) != 3 {
		t.Errorf("%d buffers, want a, b and y", len(m.Plan))
	}
	if p, err = counted(looped(), options()); err != nil {
		t.Fatal(err)
	}
	// Steps of a model with bodies are its layers: the product of the body is made by layer 2.
	made := func(b profile.Buffer) bool { return b.Name == "v2" && b.First == 2 && b.Last == 2 }
	if m := p.Memory; m.StepLayers != nil || !slices.ContainsFunc(m.Plan, made) || *p.Totals.RAMBytes != *m.ArenaBytes+*m.ScratchBytes {
		t.Errorf("memory %+v", m)
	}
}

// TestInside: the cumulative time is that of the layer and of everything below it.
func TestInside(t *testing.T) {
	t.Parallel()
	slot := func(parent int, s plan.State) plan.Slot { return plan.Slot{Step: plan.Step{State: s}, Parent: parent} }
	p := &pass{
		runner:  &runner{slots: []plan.Slot{slot(-1, plan.Runs), slot(0, plan.Runs), slot(1, plan.Runs), slot(0, plan.Folded), slot(-1, plan.Runs)}},
		divided: &figures.Division{Latency: 64, Breakdown: estimator.Breakdown{Steps: []estimator.Share{{Part: 1.0 / 64}, {Part: 2.0 / 64}, {Part: 4.0 / 64}, {Part: 8.0 / 64}, {Part: 16.0 / 64}}}},
	}
	if d := cmp.Diff([]float64{7, 6, 4, 0, 16}, p.cumulativeTimes()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestPeaksAfterTheEnd: no peaks are measured after the context's end.
func TestPeaksAfterTheEnd(t *testing.T) {
	t.Parallel()
	p := &pass{runner: &runner{p: &profile.Profile{Target: profile.Target{ID: "host"}}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := p.peaks(ctx, &profile.Host{}); ok {
		t.Error("peaks after the end")
	}
}

// TestMemoryUnknown: the memory of a model of which nothing runs is unknown, not 0.
func TestMemoryUnknown(t *testing.T) {
	t.Parallel()
	m := newModel(1)
	x, y := m.value(0, "x", tensor.Float32, 4, 4), m.value(0, "y", tensor.Float32, 4, 4)
	m.node(0, "Frob", []int{x}, []int{y}, nil)
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{x}, []int{y}
	p, err := counted(m.m, options())
	if err != nil {
		t.Fatal(err)
	}
	if p.Totals.RAMBytes != nil || p.Memory.ArenaBytes != nil || p.Memory.PeakBytes != nil || p.Layers[0].LiveBytes != nil {
		t.Errorf("RAM %v, memory %+v, live %v", p.Totals.RAMBytes, p.Memory, p.Layers[0].LiveBytes)
	}
}
