package estimate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/tflm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/profile"
)

// byHand is a target whose figures can be added up: 1000 cycles a call, 100 an operator,
// 2 a product, 10 an output of a fully connected layer, 50 an element of softmax; 100 MHz.
// Half-widths of bands are 0.2 for models and 0.5 for layers.
func byHand() *chip.Target {
	s := &chip.Structural{Family: "own", Tier: "dsp", Integer: chip.Integer{Near: 0.2, Far: 0.2, Layer: 0.5}}
	s.Integer.Cycles[cortexm.Call], s.Integer.Cycles[cortexm.Op] = 1000, 100
	s.Integer.Cycles[cortexm.DenseMAC], s.Integer.Cycles[cortexm.DenseOutput], s.Integer.Cycles[cortexm.TableElement] = 2, 10, 50
	return &chip.Target{
		ID: "board", Name: "Board", SHA256: strings.Repeat("0a", 32), Core: chip.Core{Name: "Core", PeakMACs: 2, LoadBytes: 4}, Clock: chip.Clock{Min: 10e6, Max: 200e6, Default: 100e6},
		Runtimes: []chip.Runtime{{Name: "r", Versions: "all", Cortexm: s, Builds: []chip.Build{{Name: "size", Title: "small"}, {Name: "plain"}}}, {Name: "second", Cortexm: s}},
	}
}

func estimated(t *testing.T, m *graph.Model, tg *chip.Target, o chip.Options) *profile.Profile {
	t.Helper()
	p, err := Estimate(m, tg, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	return p
}

// is compares a figure and its band; a half-width below 0 stands for no band.
func is(t *testing.T, what string, m *profile.Metric, want, low, high float64) {
	t.Helper()
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
	if m == nil || !near(best(m), want) {
		t.Errorf("%s: %+v, want %v", what, m, want)
		return
	}
	if low == high {
		if m.Band != nil {
			t.Errorf("%s: has the band %v", what, *m.Band)
		}
		return
	}
	if m.Band == nil || !near(m.Band[0], low) || !near(m.Band[1], high) {
		t.Errorf("%s: band %v, want %v to %v", what, m.Band, low, high)
	}
}

func band(v, half float64) (value, low, high float64) {
	return v, v * math.Exp(-half), v * math.Exp(half)
}

// TestFigures has everything that an estimate of two layers says: of 64 x 10 products,
// 100 + 1280 + 100 and the call, and of a softmax of 10, 100 + 500 cycles.
func TestFigures(t *testing.T) {
	t.Parallel()
	tg := byHand()
	tg.Energy = &chip.Energy{Reference: "above-idle", ElapsedCycle: 1e-9, CPUCycle: 2e-9}
	tg.Supply = &chip.Supply{Volts: 1.8}
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX")
	p := estimated(t, m, tg, chip.Options{})
	const first, second, all = 2480.0, 600.0, 3080.0
	for i, cycles := range []float64{first, second} {
		l := &p.Layers[i]
		v, low, high := band(cycles, 0.5)
		is(t, "cycles", l.CPUCycles, v, low, high)
		is(t, "time", l.Latency, v/1e8, low/1e8, high/1e8)
		is(t, "energy", l.Energy, v*3e-9, low*3e-9, high*3e-9)
		if l.State != profile.Ran || l.Cause != nil || l.Placement != nil || l.Total != nil || l.Calls != nil || l.Latency.Kind != profile.Estimated || l.Latency.Method != "structural model, r" || l.Energy.Method != "above idle at 1.8 V" {
			t.Errorf("layer %d: %+v", i, l)
		}
		if l.Share == nil || !(math.Abs(*l.Share-cycles/all) <= 1e-12) {
			t.Errorf("layer %d: share %v, want %v", i, l.Share, cycles/all)
		}
	}
	if p.Layers[0].Kernel != "dense" || p.Layers[1].Kernel != "transcendental" {
		t.Errorf("kernels %q and %q", p.Layers[0].Kernel, p.Layers[1].Kernel)
	}
	v, low, high := band(all, 0.2)
	is(t, "cycles of all", p.Totals.CPUCycles, v, low, high)
	is(t, "time of all", p.Totals.Latency, v/1e8, low/1e8, high/1e8)
	is(t, "energy of all", p.Totals.Energy, v*3e-9, v*3e-9, v*3e-9) // no band of the power is known
	if p.Totals.AcceleratorCycles != nil || p.Incomplete != nil || p.Totals.Latency.Method != "structural model, r" {
		t.Errorf("totals %+v", p.Totals)
	}
	g := &p.Target
	if g.ID != "board" || g.Kind != profile.TargetSimulator || *g.ClockHz != 1e8 || g.Description != "Board" || g.Engine != "r" || g.Accelerator != "" {
		t.Errorf("target %+v", g)
	}
	if *g.PeakOpsPerSecond != 4e8 || *g.PeakBytesPerSecond != 4e8 || g.PeakMethod != "target file: 2 multiply-accumulates of 8-bit integers per cycle of Core, 4 bytes loaded per cycle without waiting" {
		t.Errorf("peaks %v, %v, %q", *g.PeakOpsPerSecond, *g.PeakBytesPerSecond, g.PeakMethod)
	}
	if s := &p.Settings; s.Engine != "r" || s.EngineVersion != "all" || s.TargetSHA256 != tg.SHA256 {
		t.Errorf("settings %+v", s)
	}
	if p.Model.Name != "net" {
		t.Errorf("name %q", p.Model.Name)
	}
	// Options.
	for _, c := range []struct {
		o       chip.Options
		seconds float64
		version string
		engine  string
		name    string
	}{
		{chip.Options{Clock: 200e6, Name: "mine"}, all / 2e8, "all", "r", "mine"},
		{chip.Options{Clock: 10e6}, all / 1e7, "all", "r", "net"},
		{chip.Options{Runtime: "second"}, all / 1e8, "", "second", "net"},
		{chip.Options{Build: "size"}, all / 1e8, "all, small", "r", "net"},
		{chip.Options{Build: "plain"}, all / 1e8, "all, plain", "r", "net"},
	} {
		p := estimated(t, m, tg, c.o)
		if !(math.Abs(best(p.Totals.Latency)-c.seconds) <= 1e-12) || p.Settings.EngineVersion != c.version || p.Settings.Engine != c.engine || p.Model.Name != c.name {
			t.Errorf("%+v: %v s by %s %q of %s", c.o, best(p.Totals.Latency), p.Settings.Engine, p.Settings.EngineVersion, p.Model.Name)
		}
	}
	tg.Runtimes[0].Versions = ""
	if p := estimated(t, m, tg, chip.Options{Build: "size"}); p.Settings.EngineVersion != "small" {
		t.Errorf("version %q, want that of the build", p.Settings.EngineVersion)
	}
}

// TestPeaksByHand has the roofline of what the target file says.
func TestPeaksByHand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		change     func(*chip.Target)
		ops, bytes float64
		how        string
	}{
		{"nothing", func(g *chip.Target) { g.Core = chip.Core{} }, 0, 0, ""},
		{"memory only", func(g *chip.Target) { g.Core.PeakMACs = 0 }, 0, 4e8, "target file: 4 bytes loaded per cycle without waiting"},
		{"an accelerator", func(g *chip.Target) { g.Accelerator = &chip.Accelerator{Name: "mvp", PeakMACs: 8} }, 16e8, 0, "target file: 8 multiply-accumulates of 8-bit integers per cycle of MVP"},
		{"with a clock of its own", func(g *chip.Target) {
			g.Accelerator = &chip.Accelerator{Name: "mvp", PeakMACs: 8, Clock: 50e6}
		}, 8e8, 0, "target file: 8 multiply-accumulates of 8-bit integers per cycle of MVP"},
	} {
		tg := byHand()
		c.change(tg)
		b := &builder{t: tg, clock: 1e8}
		var g profile.Target
		b.peaks(&g)
		value := func(p *float64) float64 {
			if p == nil {
				return 0
			}
			return *p
		}
		if value(g.PeakOpsPerSecond) != c.ops || value(g.PeakBytesPerSecond) != c.bytes || g.PeakMethod != c.how || (g.PeakOpsPerSecond == nil) != (c.ops == 0) {
			t.Errorf("%s: %v and %v, %q", c.name, value(g.PeakOpsPerSecond), value(g.PeakBytesPerSecond), g.PeakMethod)
		}
	}
}

// TestUseErrors tells options that a target does not have, and what it has.
func TestUseErrors(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX")
	for _, c := range []struct {
		o            chip.Options
		option, want string
	}{
		{chip.Options{Runtime: "x"}, "runtime", `target board has no runtime "x"; it has r, second`},
		{chip.Options{Build: "x"}, "build", `runtime r of target board has no way of building "x"; it has size, plain`},
		{chip.Options{Runtime: "second", Build: "size"}, "build", `runtime second of target board has no way of building "size", and no other than the usual one`},
		{chip.Options{Clock: 9.9999e6}, "clock", "target board runs at 10 MHz to 200 MHz, not at 10 MHz"},
		{chip.Options{Clock: 200.5e6}, "clock", "target board runs at 10 MHz to 200 MHz, not at 200.5 MHz"},
		{chip.Options{Clock: -1}, "clock", "target board runs at 10 MHz to 200 MHz, not at -0 MHz"},
	} {
		_, err := Estimate(m, byHand(), c.o)
		var u *UseError
		if !errors.As(err, &u) || u.Option != c.option || u.Text != c.want {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
	tg := byHand()
	tg.Clock.Min = 0
	if _, err := Estimate(m, tg, chip.Options{Clock: -1e6}); err == nil || !strings.Contains(err.Error(), "runs at up to 200 MHz, not at -1 MHz") {
		t.Errorf("a clock below zero: %v", err)
	}
	if _, err := Estimate(&graph.Model{Path: "empty.onnx"}, byHand(), chip.Options{}); err == nil || err.Error() != "empty.onnx: the model has no graph" {
		t.Errorf("no graph: %v", err)
	}
}

// flow makes a model whose second operator runs graphs of n x n products and a softmax
// of n: 100 + 2 n n + 10 n and 100 + 50 n cycles. Calls cost nothing here.
func flow(op string, attrs graph.Attrs, sizes ...int) (*graph.Model, *chip.Target) {
	m := dense(tensor.Int8, 64, 10, graph.TFLite, op)
	m.Main().Nodes[1].Attrs = attrs
	for i, n := range sizes {
		g := dense(tensor.Int8, n, n, graph.TFLite, "SOFTMAX").Main()
		g.Index = i + 1
		m.Graphs = append(m.Graphs, g)
	}
	tg := byHand()
	tg.Runtimes[0].Cortexm.Integer.Cycles[cortexm.Call] = 0
	return m, tg
}

// TestFlow adds up control flow: of a condition that is not known the longer branch, with
// a band that holds the shorter one; of loops one pass. A graph of 10 takes 400 + 600
// cycles, one of 20 1100 + 1100, the layer before it 1480.
func TestFlow(t *testing.T) {
	t.Parallel()
	branch := graph.Attrs{"then_subgraph_index": graph.GraphRef(1), "else_subgraph_index": graph.GraphRef(2)}
	loop := graph.Attrs{"cond_subgraph_index": graph.GraphRef(1), "body_subgraph_index": graph.GraphRef(2)}
	swapped := graph.Attrs{"then_subgraph_index": graph.GraphRef(2), "else_subgraph_index": graph.GraphRef(1)}
	known := func(v byte) func(*graph.Model) {
		return func(m *graph.Model) {
			g := m.Main()
			g.Values = append(g.Values, &graph.Value{ID: 4, Type: tensor.Bool, HasShape: true, Const: &tensor.Tensor{Type: tensor.Bool, Data: []byte{v}}})
			g.Nodes[1].Inputs = []int{4}
		}
	}
	lows := func(main, inner float64) float64 { return main*math.Exp(-0.2) + inner*math.Exp(-0.5) }
	highs := func(main, inner float64) float64 { return main*math.Exp(0.2) + inner*math.Exp(0.5) }
	for _, c := range []struct {
		name   string
		op     string
		attrs  graph.Attrs
		change func(*graph.Model)
		inner  float64 // cycles of the graphs
		least  float64 // of the shorter way
		ran    [2]bool // the first and the second graph
		once   bool
	}{
		{"branch", "IF", branch, nil, 2200, 1000, [2]bool{false, true}, false},
		{"branch, the longer first", "IF", swapped, nil, 2200, 1000, [2]bool{false, true}, false},
		{"branch that is known", "IF", branch, known(1), 1000, 1000, [2]bool{true, false}, false},
		{"other branch that is known", "IF", branch, known(0), 2200, 2200, [2]bool{false, true}, false},
		{"loop", "WHILE", loop, nil, 3200, 3200, [2]bool{true, true}, true},
		{"call", "CALL", graph.Attrs{"subgraph": graph.GraphRef(1)}, nil, 1000, 1000, [2]bool{true, false}, false},
		{"call once", "CALL_ONCE", graph.Attrs{"init_subgraph_index": graph.GraphRef(2)}, nil, 0, 0, [2]bool{false, false}, false},
	} {
		m, tg := flow(c.op, c.attrs, 10, 20)
		if c.change != nil {
			c.change(m)
		}
		p := estimated(t, m, tg, chip.Options{})
		main := 1480.0
		if c.op == "CALL_ONCE" {
			main += 100 // an operator like others once its graph has run
		}
		l := p.Totals.Latency
		is(t, c.name, l, (main+c.inner)/1e8, lows(main, c.least)/1e8, highs(main, c.inner)/1e8)
		is(t, c.name+", cycles", p.Totals.CPUCycles, main+c.inner, lows(main, c.least), highs(main, c.inner))
		owner := &p.Layers[1]
		if (owner.Total != nil) != (c.inner > 0) || owner.Total != nil && !(math.Abs(best(owner.Total)-c.inner/1e8) <= 1e-15) {
			t.Errorf("%s: the owner takes %+v with its graphs, want %v cycles", c.name, owner.Total, c.inner)
		}
		if (lacks(p, profile.ByData) == "[1]") != c.once || has(p, "target.iterations", profile.Problem) != c.once {
			t.Errorf("%s: incomplete %+v, findings %+v", c.name, p.Incomplete, p.Findings)
		}
		for i := 2; i < len(p.Layers); i++ {
			l := &p.Layers[i]
			n := l.Inputs[0].Shape[len(l.Inputs[0].Shape)-1]
			ran := c.ran[map[int64]int{10: 0, 20: 1}[n]]
			if (l.State == profile.Ran) != ran || (l.State == profile.NotReached) == ran || (l.Latency != nil) != ran || ran != (l.Cause == nil) {
				t.Errorf("%s: a layer of %d is %s, %+v", c.name, n, l.State, l.Latency)
			}
		}
		if c.once {
			i := slices.IndexFunc(p.Findings, func(f profile.Finding) bool { return f.ID == "target.iterations" })
			if want := `Iterations depend on data: totals hold one iteration of each such loop. Set the number with --iterations NAME=N. #1 WHILE "out": 0 ops per iteration (--iterations out=N).`; p.Findings[i].Text != want || !slices.Equal(p.Findings[i].Layers, []int64{1}) {
				t.Errorf("%s: %+v", c.name, p.Findings[i])
			}
		}
	}
}

// looped estimates a model whose loop has a known number of iterations.
func looped(t *testing.T, iterations int64) *profile.Profile {
	t.Helper()
	m, tg := flow("Loop", graph.Attrs{"body": graph.GraphRef(1)}, 10)
	g, body := m.Main(), m.Graphs[1]
	g.Nodes[1].Domain = graph.ONNX
	g.Values = append(g.Values, &graph.Value{ID: 4, Type: tensor.Int64, HasShape: true, Const: tensor.From(tensor.Int64, nil, []int64{iterations})})
	g.Nodes[1].Inputs = []int{4, -1, 2}
	body.Values = append(body.Values, &graph.Value{ID: 4, Type: tensor.Int64, HasShape: true}, &graph.Value{ID: 5, Type: tensor.Bool, HasShape: true})
	body.Inputs, body.Outputs = []int{4, 5, 0}, []int{5, 3}
	return estimated(t, m, tg, chip.Options{})
}

// TestKnownLoop takes a loop as often as the file says: five times 400 and 600 cycles.
func TestKnownLoop(t *testing.T) {
	t.Parallel()
	p := looped(t, 5)
	if got := best(p.Totals.CPUCycles); !(math.Abs(got-1480-5000) <= 1e-6) {
		t.Errorf("%v cycles, want 6480", got)
	}
	if l := &p.Layers[1]; l.Total == nil || !(math.Abs(best(l.Total)-5000/1e8) <= 1e-12) || p.Incomplete != nil {
		t.Errorf("the loop takes %+v, want 5000 cycles; incomplete %+v", l.Total, p.Incomplete)
	}
	if l := &p.Layers[2]; l.Calls == nil || *l.Calls != 5 || !(math.Abs(best(l.Latency)-2000/1e8) <= 1e-12) {
		t.Errorf("a layer of it: %+v", l)
	}
}

// TestUnenteredLoop gives the reason why a loop without iterations has no time of its own.
func TestUnenteredLoop(t *testing.T) {
	t.Parallel()
	p := looped(t, 0)
	if got := best(p.Totals.CPUCycles); !(math.Abs(got-1480) <= 1e-6) || p.Incomplete != nil {
		t.Errorf("%v cycles, want those of the other layer, 1480; incomplete %+v", got, p.Incomplete)
	}
	l := &p.Layers[1]
	if l.State != profile.NoEstimate || l.Total == nil || best(l.Total) != 0 || l.Latency != nil || l.Cause == nil || !strings.HasPrefix(l.Cause.Text, "0 iterations, ") {
		t.Errorf("the loop is %s (%+v), takes %+v with its body", l.State, l.Cause, l.Total)
	}
	if l := &p.Layers[2]; l.State != profile.NotReached || l.Latency != nil {
		t.Errorf("a layer of the body: %s, %+v", l.State, l.Latency)
	}
}

// TestPartlyKnown marks what has no estimate, in totals and in words.
func TestPartlyKnown(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLiteCustom, "Foo")
	p := estimated(t, m, byHand(), chip.Options{})
	is(t, "what is known", p.Totals.CPUCycles, 2480, 2480*math.Exp(-0.2), 2480*math.Exp(0.2))
	if got := p.Totals.CPUCycles.Method; got != "structural model, r; incomplete: 1 of 2 layers" {
		t.Errorf("method %q", got)
	}
	if i := len(p.Incomplete); i != 1 || *p.Incomplete[0].Got != 1 || *p.Incomplete[0].Want != 2 || !slices.Equal(p.Incomplete[0].Layers, []int64{1}) || p.Incomplete[0].Cause != profile.ByNoFigures {
		t.Errorf("incomplete %+v", p.Incomplete)
	}
	text := func(p *profile.Profile) string {
		for _, f := range p.Findings {
			if f.ID == "target.incomplete" {
				return f.Text
			}
		}
		return ""
	}
	key := m.Main().Nodes[1].Key()
	if want := "1 of 2 layers have no estimate (" + key + "): totals are incomplete and too small."; text(p) != want {
		t.Errorf("%q, want %q", text(p), want)
	}
	for _, n := range m.Main().Nodes {
		n.Op, n.Domain = "Foo", graph.TFLiteCustom
	}
	p = estimated(t, m, byHand(), chip.Options{})
	if want := "No layer has an estimate (" + key + "): nothing can be said of time."; text(p) != want || p.Totals.Latency != nil {
		t.Errorf("%q, want %q; %+v", text(p), want, p.Totals.Latency)
	}
}

// TestParts has the pieces that figures are made of.
func TestParts(t *testing.T) {
	t.Parallel()
	fig := func(v, low, high float64) *chip.Figure { return &chip.Figure{Value: v, Low: low, High: high} }
	if got := plus(nil, fig(2, 1, 4), 3); *got != *fig(6, 3, 12) {
		t.Errorf("three times: %+v", got)
	}
	if got := plus(fig(10, 5, 20), fig(2, 1, 4), 3); *got != *fig(16, 8, 32) {
		t.Errorf("added: %+v", got)
	}
	if f := fig(1, 1, 1); plus(f, nil, 3) != f || plus(nil, nil, 1) != nil {
		t.Error("nothing added")
	}
	if metric(nil, 2, "") != nil {
		t.Error("a metric of nothing")
	}
	if m := metric(fig(3, 2, 5), 10, "how"); *m.Median != 30 || *m.Band != [2]float64{20, 50} || m.Method != "how" || m.Kind != profile.Estimated {
		t.Errorf("%+v", m)
	}
	if m := metric(fig(3, 3, 3), 10, ""); m.Band != nil {
		t.Errorf("a band of no width: %v", m.Band)
	}
	// Errors of 30 and 40 that are independent make 50; carried over together with 7 and 5
	// they make the hypotenuse of 50 and 12.
	var s spread
	s.add(nil, 1, false)
	s.add(fig(100, 85, 115), 2, false)
	s.add(fig(100, 60, 140), 1, false)
	f := fig(1000, 0, 0)
	narrow(f, &[2]float64{0.99, 1.01}, s)
	if f.Low != 950 || f.High != 1050 {
		t.Errorf("independent: %+v", f)
	}
	narrow(f, &[2]float64{0.9, 1.2}, s)
	if f.Low != 900 || f.High != 1200 {
		t.Errorf("the band of models is wider: %+v", f)
	}
	s.add(fig(100, 93, 108), 1, true)
	s.add(fig(100, 95, 104), 1, true)
	narrow(f, &[2]float64{1, 1}, s)
	if want := math.Hypot(50, 12); !(math.Abs(f.Low-(1000-want)) <= 1e-9) || !(math.Abs(f.High-(1000+want)) <= 1e-9) {
		t.Errorf("some together: %+v, want ± %v", f, want)
	}
	s.add(fig(100, -900, 100), 1, true)
	narrow(f, &[2]float64{1, 1}, s)
	if f.Low != 50 {
		t.Errorf("low end %v, want a twentieth", f.Low)
	}
	narrow(nil, &[2]float64{1, 1}, s)

	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.00 KiB", 10 << 10: "10.0 KiB", 10234: "9.99 KiB", 100 << 10: "100 KiB", 102348: "99.9 KiB", 102349: "100 KiB", 1023 << 10: "1023 KiB",
		1048064: "1.00 MiB", 1 << 20: "1.00 MiB", 5 << 29: "2.50 GiB", 5 << 40: "5120 GiB",
	} {
		if got := sized(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int]string{1: "1 layer is", 0: "0 layers are", 2: "2 layers are"} {
		if got := layers(n, "is", "are"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for code, want := range map[tflm.RefusalCode]profile.CauseCode{tflm.RefusedType: profile.ByType, tflm.RefusedMixture: profile.ByUse, tflm.RefusedOperator: profile.ByOperator} {
		if got := unsupportedCause(code); got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
	for code, want := range map[chip.MissingCode]profile.CauseCode{chip.MissingType: profile.ByType, chip.MissingShape: profile.ByShape, chip.MissingData: profile.ByNoFigures, chip.MissingOperator: profile.ByOperator} {
		if got := missingCause(code); got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
	npu := &chip.Target{Accelerator: &chip.Accelerator{Name: "npu"}}
	for _, c := range []struct {
		cost chip.LayerCost
		want *profile.Placement
	}{
		{chip.LayerCost{}, nil},
		{chip.LayerCost{Verdict: chip.Accelerated}, &profile.Placement{On: "npu"}},
		{chip.LayerCost{Verdict: chip.Accelerated, Refused: "long"}, &profile.Placement{On: "npu", Cause: profile.ByLimit, Text: "long"}},
		{chip.LayerCost{Verdict: chip.NotOperator, Reason: "a"}, &profile.Placement{On: profile.CPU, Cause: profile.ByOperator, Text: "a"}},
		{chip.LayerCost{Verdict: chip.WrongType, Reason: "b"}, &profile.Placement{On: profile.CPU, Cause: profile.ByType, Text: "b"}},
		{chip.LayerCost{Verdict: chip.Limit, Reason: "c"}, &profile.Placement{On: profile.CPU, Cause: profile.ByLimit, Text: "c"}},
	} {
		if got := placement(npu, &c.cost); (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%+v: %+v, want %+v", c.cost, got, c.want)
		}
	}
}

// said lists the findings of an estimate but for those of memory, "id severity: text".
func said(p *profile.Profile, without ...string) (out []string) {
	for _, f := range p.Findings {
		if !slices.Contains(without, f.ID) {
			out = append(out, fmt.Sprintf("%s %s: %s", f.ID, f.Severity, f.Text))
		}
	}
	return out
}

// twice is a model of a fully connected layer and another operator with the same weights.
func twice(op string, typ tensor.Type) *graph.Model {
	m := dense(typ, 64, 64, graph.TFLite, op)
	m.Main().Nodes[1].Inputs = []int{2, 1}
	return m
}

// TestSaid has the findings of estimates in words.
func TestSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		m      *graph.Model
		change func(*chip.Target)
		want   []string
	}{
		{"nothing", dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), nil, nil},
		{"another type", dense(tensor.Int16, 64, 10, graph.TFLite, "SOFTMAX"), nil, []string{"target.types warning: 1 layer computes in int16, which was not measured: int8 figures are used."}},
		{"another type that was measured", dense(tensor.Int16, 64, 10, graph.TFLite, "SOFTMAX"), func(g *chip.Target) {
			g.Runtimes[0].Cortexm.Int16 = &chip.Typed{Measured: "dense", Cycles: g.Runtimes[0].Cortexm.Integer.Cycles}
		}, nil},
		{"without sign", dense(tensor.Uint8, 64, 10, graph.TFLite, "SOFTMAX"), nil, []string{"target.types warning: 1 layer computes in uint8, which was not measured: int8 figures are used."}},
		{"without sign, two", twice("FULLY_CONNECTED", tensor.Uint8), nil, []string{"target.types warning: 2 layers compute in uint8, which was not measured: int8 figures are used."}},
		{"not measured itself", dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), func(g *chip.Target) {
			g.Runtimes[0].Calibration = &chip.Calibration{From: "another board"}
		}, []string{"target.transferred warning: This target was not measured: figures are extrapolated from another board."}},
		{"once", func() *graph.Model {
			m, _ := flow("CALL_ONCE", graph.Attrs{"init_subgraph_index": graph.GraphRef(1)}, 10)
			return m
		}(), nil, []string{"target.remark info: layer 1 (CALL_ONCE) runs its graph in the first inference only: figures are those of later ones"}},
		{"slow memory", dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX"), func(g *chip.Target) {
			cost := 100.0
			g.Memories = []chip.Memory{{Role: "external-flash", Size: 1, ReadCyclesPerByte: &cost}}
		}, []string{"target.remark info: weights are read from slow memory, which is a rough estimate"}},
		{"young operators", func() *graph.Model {
			m, _ := flow("WHILE", graph.Attrs{"cond_subgraph_index": graph.GraphRef(1), "body_subgraph_index": graph.GraphRef(1)}, 10)
			return m
		}(), func(g *chip.Target) { g.Runtimes[0].Cortexm.Family = "tflm-x" }, []string{"target.release info: TensorFlow Lite Micro takes all operators of this model from releases of 2022 on."}},
		{"operators of 2021", dense(tensor.Int8, 64, 10, graph.TFLite, "SQUEEZE"), func(g *chip.Target) { g.Runtimes[0].Cortexm.Family = "tflm-x" }, nil},
		{"young operators elsewhere", twice("BATCH_MATMUL", tensor.Int8), nil, nil},
		{"refused", dense(tensor.Int8, 64, 10, graph.TFLite, "GELU"), func(g *chip.Target) { g.Runtimes[0].Cortexm.Family = "tflm-x" }, []string{
			"target.refused problem: The runtime does not load this model: 1 layer is refused, the first, layer 1, GELU: TensorFlow Lite Micro has no kernel for it. Figures are those of the other layers.",
		}},
	} {
		tg := byHand()
		if c.change != nil {
			c.change(tg)
		}
		p := estimated(t, c.m, tg, chip.Options{})
		// What open figures of these made-up models lead to is told elsewhere.
		if got := said(p, "target.flash", "target.ram", "target.memory", "target.iterations"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestFits compares memory with what the chip has, to the byte.
func TestFits(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX") // a file of 1640 bytes
	of := func(role string, n chip.Bytes) chip.Memory { return chip.Memory{Role: role, Size: n} }
	for _, c := range []struct {
		name     string
		memories []chip.Memory
		code     *[2]chip.Bytes
		want     string
	}{
		{"nothing is known", nil, nil, ""},
		{"fits", []chip.Memory{of("flash", 1640)}, nil, "target.flash info: The model of 1.60 KiB (program code not counted) fits: Board has 1.60 KiB of flash."},
		{"a byte too little", []chip.Memory{of("flash", 1639)}, nil, "target.flash problem: The model of 1.60 KiB (program code not counted) does not fit: Board has 1.60 KiB of flash, 1 B too little."},
		{"outside", []chip.Memory{of("external-flash", 1640)}, nil, "target.flash info: The model of 1.60 KiB (program code not counted) fits: Board has 1.60 KiB of external flash."},
		{"inside before outside", []chip.Memory{of("external-flash", 4000), of("flash", 1639)}, nil, "target.flash problem: The model of 1.60 KiB (program code not counted) does not fit: Board has 1.60 KiB of flash, 1 B too little."},
		{"with code", []chip.Memory{of("flash", 6000)}, &[2]chip.Bytes{1024, 2048}, "target.flash info: The model of 1.60 KiB with 1.00 KiB to 2.00 KiB of program code, as measured images have, fits: Board has 5.86 KiB of flash."},
		{"near the limit", []chip.Memory{of("flash", 3000)}, &[2]chip.Bytes{1024, 2048}, "target.flash warning: The model of 1.60 KiB with 1.00 KiB to 2.00 KiB of program code, as measured images have, is near the limit: Board has 2.93 KiB of flash."},
		{"too much code", []chip.Memory{of("flash", 2600)}, &[2]chip.Bytes{1024, 2048}, "target.flash problem: The model of 1.60 KiB with 1.00 KiB to 2.00 KiB of program code, as measured images have, does not fit: Board has 2.54 KiB of flash, at least 64 B too little."},
		{"code and no flash", nil, &[2]chip.Bytes{1024, 2048}, ""},
	} {
		tg := byHand()
		tg.Memories, tg.Runtimes[0].Code = c.memories, c.code
		p := estimated(t, m, tg, chip.Options{})
		if got := strings.Join(said(p, "target.ram"), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestArena plans the memory of a runtime whose rules are known, and says what is not.
func TestArena(t *testing.T) {
	t.Parallel()
	m := dense(tensor.Int8, 64, 10, graph.TFLite, "SOFTMAX")
	tg := byHand()
	tg.Runtimes[0].Arena = "reference"
	tg.Memories = []chip.Memory{{Role: "ram", Size: 1024}}
	p := estimated(t, m, tg, chip.Options{})
	mem := p.Memory
	// 64 and 16 bytes, then 16 and 16. The interpreter keeps 132 bytes, 4 tensors of 12, 2 nodes of
	// 32 and options of 5 and 4: 256; data of 44 and 56 bytes; two lists and two tensors of 32.
	if *mem.ArenaBytes != 80 || *mem.PersistentBytes != 256+48+64+2*(16+32) || *mem.ScratchBytes != 0 || *p.Totals.RAMBytes != 544 || mem.Planner != "tflm" || *mem.AlignBytes != 16 {
		t.Errorf("memory %+v, RAM %v", mem, *p.Totals.RAMBytes)
	}
	if !slices.Equal(mem.StepLayers, []int64{-1, 0, 1}) || len(mem.Plan) != 3 || mem.Plan[0].Name != "in" || mem.Plan[1].Bytes != 10 || mem.Plan[1].First != 1 || mem.Plan[1].Last != 2 || mem.Plan[1].Scratch {
		t.Errorf("steps %v, plan %+v", mem.StepLayers, mem.Plan)
	}
	if !has(p, "target.ram", profile.Info) {
		t.Errorf("findings %q", said(p))
	}
	tg.Memories[0].Size = 543
	if got := said(estimated(t, m, tg, chip.Options{})); !slices.Contains(got, "target.ram problem: The arena of 544 B does not fit: Board has 543 B of RAM, 1 B too little.") {
		t.Errorf("a byte too little: %q", got)
	}
	// Working memory has the name of its operator; that of custom operators is not known.
	mean := dense(tensor.Int8, 64, 10, graph.TFLite, "MEAN")
	g := mean.Main()
	g.Values = append(g.Values, &graph.Value{ID: 4, Type: tensor.Int32, Shape: []int{1}, HasShape: true, Const: tensor.From(tensor.Int32, []int{1}, []int32{1})})
	g.Nodes[1].Inputs = []int{2, 4}
	g.Nodes[1].Attrs = graph.Attrs{"keep_dims": true}
	g.Values[3].Shape = []int{1, 1}
	p = estimated(t, mean, tg, chip.Options{})
	last := p.Memory.Plan[len(p.Memory.Plan)-1]
	// dimensions of two axes
	if !last.Scratch || last.Name != "scratch of MEAN" || *p.Memory.ScratchBytes != 8 {
		t.Errorf("working memory %+v of %d", last, *p.Memory.ScratchBytes)
	}
	custom := dense(tensor.Int8, 64, 10, graph.TFLiteCustom, "Foo")
	if got := strings.Join(said(estimated(t, custom, tg, chip.Options{})), "; "); !strings.Contains(got, "target.memory warning: The working memory of "+custom.Main().Nodes[1].Key()+" is not known; the arena may be larger.") {
		t.Errorf("a custom operator: %q", got)
	}
	// Other runtimes plan by rules of their own.
	if p := estimated(t, m, byHand(), chip.Options{}); p.Memory == nil || p.Memory.ArenaBytes != nil || p.Memory.Planner == "tflm" {
		t.Errorf("another runtime: %+v", p.Memory)
	}
}
