package choose

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

func value(v float64) *profile.Metric { return profile.Value(profile.Measured, v, "") }

func between(lo, v, hi float64) *profile.Metric {
	m := value(v)
	m.CI95 = &[2]float64{lo, hi}
	return m
}

func sparse(level float64) study.Change {
	return study.Change{Structure: study.Unstructured, Level: level}
}

// example has three layers of a millisecond each in a model of four. Pruned to 0.5 and 0.9, the
// first loses much, the others little.
func example() Options {
	o := Options{
		Speed: &study.Speed{SpeedSettings: study.SpeedSettings{Name: "latency"}, Latency: value(0.004)},
		Loss:  &study.Loss{LossSettings: study.LossSettings{Name: "drop", Metric: "accuracy", Higher: true}, Base: value(0.9)},
	}
	for i, drop := range []float64{0.1, 0.01, 0.004} {
		o.Layers = append(o.Layers, study.Layer{
			Node: i, Name: fmt.Sprint("n", i), Type: "float32", Rows: 10, Cols: 100, Params: 1010, MACs: new(int64(1000)),
		})
		o.Speed.Layers = append(o.Speed.Layers, study.LayerTime{Layer: i, Latency: value(0.001)})
		for _, level := range []float64{0.5, 0.9} {
			o.Speed.Points = append(o.Speed.Points, study.SpeedPoint{Layer: i, Change: sparse(level), Ratio: between(0.9-level, 1-level, 1.1-level)})
			d := drop * level * level
			o.Loss.Points = append(o.Loss.Points, study.LossPoint{Layer: i, Change: sparse(level), Value: between(0.9-2*d, 0.9-d, 0.9)})
		}
	}
	return o
}

func changes(p *study.Plan) (out []float64) {
	for _, c := range p.Choices {
		out = append(out, c.Change.Level)
	}
	return out
}

func best(m *profile.Metric) float64 {
	v, ok := m.Best()
	if !ok {
		return math.NaN()
	}
	return v
}

// sums in another order
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestPlan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		set  func(o *Options)
		want []float64
		loss float64
		time float64
	}{
		{"bounded loss", func(o *Options) { o.Goal.MaxLoss = new(0.012) }, []float64{0, 0.9, 0.9}, 0.01134, 0.0022},
		{"upper end of the loss", func(o *Options) { o.Goal.MaxLoss, o.Upper = new(0.012), true }, []float64{0, 0.5, 0.9}, 0.00574, 0.0026},
		{"no loss", func(o *Options) { o.Goal.MaxLoss = new(0.0) }, []float64{0, 0, 0}, 0, 0.004},
		{"speed-up", func(o *Options) { o.Goal.Speedup = new(1.5) }, []float64{0, 0.5, 0.9}, 0.00574, 0.0026},
		{"no speed-up", func(o *Options) { o.Goal.Speedup = new(1.0) }, []float64{0, 0, 0}, 0, 0.004},
		{"more speed", func(o *Options) { o.Goal.Speedup = new(2.1) }, []float64{0.5, 0.9, 0.9}, 0.03634, 0.0017},
		{"sparsity", func(o *Options) { o.Goal.Sparsity = new(0.4) }, []float64{0, 0.5, 0.9}, 0.00574, 0.0026},
		{"excluded", func(o *Options) { o.Goal.MaxLoss, o.Goal.Exclude = new(0.05), []int{2} }, []float64{0.5, 0.9, 0}, 0.0331, 0.0026},
		{"kept", func(o *Options) { o.Goal.MaxLoss, o.Keep = new(0.05), map[int]study.Cause{0: study.First} }, []float64{0, 0.9, 0.9}, 0.01134, 0.0022},
		{"macs", func(o *Options) { o.Goal.MaxLoss, o.Goal.Cost = new(0.012), MACs }, []float64{0, 0.9, 0.9}, 0.01134, 0.0022},
		{"structure left out", func(o *Options) {
			o.Goal.MaxLoss, o.WithoutStructures = new(1.0), []study.Structure{study.Unstructured}
		}, []float64{0, 0, 0}, 0, 0.004},
	} {
		o := example()
		tt.set(&o)
		p, err := Plan(o)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := changes(p); !slices.Equal(got, tt.want) || !near(best(p.Predicted.Loss), tt.loss) || !near(best(p.Predicted.LatencyS), tt.time) {
			t.Errorf("%s: %v, loss %v, time %v; want %v, %v, %v", tt.name, got, best(p.Predicted.Loss), best(p.Predicted.LatencyS), tt.want, tt.loss, tt.time)
		}
		if *p.Gap != 0 || p.Adds != Drops {
			t.Errorf("%s: gap %v, adds %q", tt.name, *p.Gap, p.Adds)
		}
		n := 0
		for i, f := range p.Front {
			if f.Chosen {
				n++
			}
			if i > 0 && (f.Cost <= p.Front[i-1].Cost || f.Loss >= p.Front[i-1].Loss) {
				t.Errorf("%s: front %v after %v", tt.name, f, p.Front[i-1])
			}
		}
		if n != 1 {
			t.Errorf("%s: %d points are chosen", tt.name, n)
		}
		again, _ := Plan(o)
		if d := cmp.Diff(p, again); d != "" {
			t.Errorf("%s: another plan the second time: %s", tt.name, d)
		}
	}
}

func TestPredictions(t *testing.T) {
	t.Parallel()
	o := example()
	o.Goal.MaxLoss = new(0.012)
	p, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	out := p.Predicted
	if *out.Zeros != 1800 || *out.Params != 3030 || *out.MACs != 1200 || *out.Bytes != 12120 || !near(best(out.Speedup), 4/2.2) {
		t.Errorf("%+v", out)
	}
	half := math.Hypot(0.0081, 0.00324)
	if b := out.Loss.Band; !near(b[0], 0.01134-half) || !near(b[1], 0.01134+half) {
		t.Errorf("loss %v", *b)
	}
	if b := out.LatencyS.Band; !near(b[0], 0.002) || !near(b[1], 0.0024) {
		t.Errorf("time %v", *b)
	}
	if b := out.Speedup.Band; !near(b[0], 4/2.4) || !near(b[1], 2) {
		t.Errorf("speed-up %v", *b)
	}
	if len(p.NextSteps) != 1 || p.NextSteps[0].Layer != 0 || p.NextSteps[0].Change != sparse(0.5) || !near(*p.NextSteps[0].Rate, 0.0005/0.025) {
		t.Errorf("moves %+v", p.NextSteps)
	}
	if c := p.Choices[0]; c.Cause != study.Spent || *c.TimeS != 0.001 || *c.LossValue != 0 {
		t.Errorf("dense layer: %+v", c)
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	o := example()
	o.Goal.MaxLoss = new(1.0)
	o.Layers[0].Fixed = study.NoZero
	for i := range o.Speed.Points {
		switch x := &o.Speed.Points[i]; x.Layer {
		case 1:
			x.Ratio, x.Cause = nil, study.NoKernel
		case 2:
			x.Ratio = value(1.5)
		}
	}
	o.Layers = append(o.Layers, study.Layer{Node: 3, Rows: 1, Cols: 1, Params: 1})
	p, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []study.Cause{study.NoZero, study.NoKernel, study.NoGain, study.NoData} {
		if got := p.Choices[i]; got.Cause != want || !got.Change.IsZero() {
			t.Errorf("layer %d: %+v, want %s", i, got, want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		goal study.Goal
		best float64
	}{
		{study.Goal{Speedup: new(10.0)}, 4 / 1.3},
		{study.Goal{MaxLoss: new(-0.1)}, 0},
		{study.Goal{Sparsity: new(0.95)}, 0.9},
		{study.Goal{Size: new(int64(100))}, 12120},
	} {
		o := example()
		o.Goal = tt.goal
		_, err := Plan(o)
		var u *UnreachableError
		if !errors.As(err, &u) || !near(u.Best, tt.best) {
			t.Errorf("%+v: %v, want %v", tt.goal, err, tt.best)
		}
	}
	for _, g := range []study.Goal{{}, {Speedup: new(2.0), MaxLoss: new(1.0)}, {Speedup: new(0.0)}, {Sparsity: new(2.0)}, {MaxLoss: new(1.0), Cost: "beauty"}, {MaxLoss: new(1.0), Cost: Energy}} {
		o := example()
		o.Goal = g
		if _, err := Plan(o); err == nil {
			t.Errorf("%+v: a plan", g)
		}
	}
	o := example()
	o.Goal.MaxLoss = new(1.0)
	o.Loss.Base = nil
	if _, err := Plan(o); err == nil {
		t.Error("a drop from an unknown accuracy")
	}
}

// TestFormats has int8 tried alone and with structures only in the performance profile.
func TestFormats(t *testing.T) {
	t.Parallel()
	o := example()
	int8s := study.Change{Format: study.Int8}
	both := study.Change{Structure: study.Unstructured, Level: 0.5, Format: study.Int8}
	for i := range 3 {
		o.Speed.Points = append(o.Speed.Points, study.SpeedPoint{Layer: i, Change: int8s, Latency: value(0.0004)}, study.SpeedPoint{Layer: i, Change: both, Ratio: value(0.3)})
		o.Loss.Points = append(o.Loss.Points, study.LossPoint{Layer: i, Change: int8s, Value: value(0.899)})
	}
	o.Goal.MaxLoss = new(0.0061)
	p, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	// int8 for 0.001 each, layer 2 pruned by half as well for 0.001 more, layer 1 for 0.0025.
	want := []study.Change{int8s, int8s, sparse(0.9)}
	for i, c := range p.Choices {
		if c.Change != want[i] {
			t.Errorf("layer %d: %+v, want %+v", i, c.Change, want[i])
		}
	}
	cs, err := Curves(o)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(cs[2].Points, func(x Point) bool { return x.Change == both })
	if at < 0 || !near(cs[2].Points[at].Loss, 0.002) || !near(cs[2].Points[at].Cost, 0.0003) {
		t.Errorf("both changes: %+v", cs[2].Points)
	}
	o.WithoutFormats = []study.Format{study.Int8}
	if p, err = Plan(o); err != nil || p.Choices[0].Change.Format != study.OriginalFormat {
		t.Errorf("int8 left out: %+v, %v", p.Choices, err)
	}
}

// TestLevelsBetween has losses at more levels than times.
func TestLevelsBetween(t *testing.T) {
	t.Parallel()
	o := example()
	o.Loss.Points = append(o.Loss.Points, study.LossPoint{Layer: 0, Change: sparse(0.7), Value: value(0.88)}, study.LossPoint{Layer: 0, Change: sparse(0.3), Value: value(0.89)})
	o.Goal.MaxLoss = new(1.0)
	cs, err := Curves(o)
	if err != nil {
		t.Fatal(err)
	}
	var levels []float64
	for _, x := range cs[0].Points {
		levels = append(levels, x.Change.Level)
	}
	// Below the first level that was timed nothing is known.
	if want := []float64{0, 0.5, 0.7, 0.9}; !slices.Equal(levels, want) || !near(cs[0].Points[2].Cost, 0.0003) {
		t.Errorf("levels %v, want %v; %+v", levels, want, cs[0].Points)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		metric string
		higher bool
		base   *profile.Metric
		v      float64
		loss   float64
		adds   string
	}{
		{"relative_error", false, nil, 0.25, 0.25, Errors},
		{"accuracy", true, value(0.9), 0.8, 0.1, Drops},
		{"accuracy", true, value(0.9), 0.95, 0, Drops},
		{"top1", true, nil, 0.75, 0.25, Drops},
		{"cosine", true, nil, 0.75, 0.25, Angles},
		{"kl", false, nil, 0.5, 0.5, Divergences},
		{"snr_db", true, nil, 20, 0.01, Noise},
		{"command", false, value(2), 3, 1, Drops},
		{"magnitude", false, nil, 3, 3, Ranks},
	} {
		m, err := MetricOf(&study.Loss{LossSettings: study.LossSettings{Metric: tt.metric, Higher: tt.higher}, Base: tt.base})
		if err != nil || m.Adds != tt.adds || !near(m.Loss(tt.v), tt.loss) {
			t.Errorf("%s of %v: %v (%s), %v; want %v", tt.metric, tt.v, m.Loss(tt.v), m.Adds, err, tt.loss)
		}
		if shown, ok := m.UserLoss(m.Bound(tt.v)); !ok || !near(shown, tt.v) {
			t.Errorf("%s: bound of %v shown as %v", tt.metric, tt.v, shown)
		}
	}
	o := example()
	o.Loss.Metric, o.Loss.Base = "snr_db", nil
	for i := range o.Loss.Points {
		o.Loss.Points[i].Value = value(20)
	}
	o.Goal.MaxLoss = new(16.9) // two layers of 20 dB leave 16.99 dB
	p, err := Plan(o)
	if err != nil || !near(best(p.Predicted.Loss), 20-10*math.Log10(2)) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestCorrection runs a plan that saves half of what was expected and loses twice as much.
func TestCorrection(t *testing.T) {
	t.Parallel()
	o := example()
	o.Goal.MaxLoss = new(0.012)
	p, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := MetricOf(o.Loss)
	if err != nil {
		t.Fatal(err)
	}
	if got := Correct(p, *p.Predicted.Speedup.Median, m, study.Correction{}); got != (study.Correction{}) {
		t.Errorf("a correction by nothing: %+v", got)
	}
	p.Measured = &study.Outcome{Speedup: value(4 / 3.1), Loss: value(2 * 0.01134)}
	c := Correct(p, *p.Predicted.Speedup.Median, m, study.Correction{})
	if !near(c.Gain, 0.5) || !near(c.Loss, 2) || c.Extra != 0 {
		t.Errorf("%+v", c)
	}
	o.Correct = c
	again, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	if got := changes(again); !slices.Equal(got, []float64{0, 0.5, 0.9}) || !near(best(again.Predicted.Loss), 2*0.00574) || !near(best(again.Predicted.LatencyS), 0.0033) {
		t.Errorf("%v, loss %v, time %v", got, best(again.Predicted.Loss), best(again.Predicted.LatencyS))
	}
	if again.Correction != c || p.Correction != (study.Correction{}) {
		t.Errorf("the plans say they were corrected by %+v and %+v, want %+v and nothing", again.Correction, p.Correction, c)
	}
	again.Measured = &study.Outcome{Speedup: again.Predicted.Speedup, Loss: again.Predicted.Loss}
	if got := Correct(again, *again.Predicted.Speedup.Median, m, c); !near(got.Gain, c.Gain) || !near(got.Loss, c.Loss) {
		t.Errorf("what came true is corrected: %+v, was %+v", got, c)
	}
	p.Predicted.Loss = value(0)
	if got := Correct(p, *p.Predicted.Speedup.Median, m, study.Correction{}); got.Loss != 1 || !near(got.Extra, 0.01134) {
		t.Errorf("an unexpected loss: %+v", got)
	}
	p.Measured.Loss = value(-0.01)
	if got := Correct(p, *p.Predicted.Speedup.Median, m, study.Correction{}); got.Extra != 0 {
		t.Errorf("an unexpected gain: %+v", got)
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	l := study.Layer{Type: "float32", Rows: 10, Cols: 100, Params: 1010, Zeros: 200}
	for _, tt := range []struct {
		c     study.Change
		bytes int64
		zeros int64
	}{
		{study.Change{}, 4040, 200},
		{sparse(0.1), 4040, 200},
		{sparse(0.5), 4040, 500},
		{study.Change{Structure: study.Filter, Level: 0.5}, 2040, 500},
		{study.Change{Format: study.Int8}, 1080, 200},
		{study.Change{Format: study.Dynamic8}, 1044, 200},
		{study.Change{Format: study.Weight4}, 580, 200},
		{study.Change{Format: study.Half}, 2040, 200},
	} {
		if b, z := Bytes(&l, tt.c), Zeros(&l, tt.c); b != tt.bytes || z != tt.zeros {
			t.Errorf("%+v: %d bytes, %d zeros; want %d, %d", tt.c, b, z, tt.bytes, tt.zeros)
		}
	}
	l.Type = "int8"
	if b := Bytes(&l, study.Change{Format: study.Half}); b != 1040 {
		t.Errorf("int8 as float16: %d bytes", b)
	}
	o := example()
	o.Goal.Fit, o.Goal.Cost, o.Limit = "board", RAM, 25
	o.Costs = func(layer int, c study.Change) (float64, bool) { return 10 * (1 - c.Level), layer < 3 }
	p, err := Plan(o)
	if err != nil || !slices.Equal(changes(p), []float64{0, 0, 0.9}) && !slices.Equal(changes(p), []float64{0, 0, 0.5}) {
		t.Errorf("%+v, %v", changes(p), err)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	g := &graph.Graph{Inputs: []int{0}, Outputs: []int{5, 4}}
	for i := range 6 {
		g.Values = append(g.Values, &graph.Value{ID: i})
	}
	for i, in := range [][]int{{0}, {1}, {2}, {3}, {3}} {
		g.Nodes = append(g.Nodes, &graph.Node{Index: i, Inputs: in, Outputs: []int{i + 1}})
	}
	m := &graph.Model{Graphs: []*graph.Graph{g}}
	// Nodes 0, 1, 2 and 4 have weights; 3 passes on what 2 made.
	got := BoundaryLayers(m, []study.Layer{{Node: 1}, {Node: 0}, {Node: 2}, {Node: 4}})
	if want := map[int]study.Cause{1: study.First, 2: study.Head, 3: study.Head}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := BoundaryLayers(m, []study.Layer{{Node: 0}}); len(got) != 0 {
		t.Errorf("one layer: %v", got)
	}
}

// TestEndsOfBranches looks through an If: each branch has ends of its own, and one that only
// hands on what it captured leads on to what made that.
func TestEndsOfBranches(t *testing.T) {
	t.Parallel()
	values := func(n int) (out []*graph.Value) {
		for i := range n {
			out = append(out, &graph.Value{ID: i})
		}
		return out
	}
	node := func(i, in, out int) *graph.Node { return &graph.Node{Index: i, Inputs: []int{in}, Outputs: []int{out}} }
	choice := &graph.Node{Index: 2, Op: "If", Inputs: []int{0}, Outputs: []int{3}, Attrs: graph.Attrs{"then_branch": graph.GraphRef(1), "else_branch": graph.GraphRef(2)}}
	main := &graph.Graph{Inputs: []int{0}, Outputs: []int{3}, Values: values(4), Nodes: []*graph.Node{node(0, 0, 1), node(1, 1, 2), choice}}
	yes := &graph.Graph{Index: 1, Parent: main, Values: values(3), Outputs: []int{2}, Nodes: []*graph.Node{node(0, 0, 1), node(1, 1, 2)}, Captures: []graph.Capture{{Inner: 0, Outer: 2}}}
	no := &graph.Graph{Index: 2, Parent: main, Values: values(2), Outputs: []int{1}, Nodes: []*graph.Node{node(0, 0, 1)}, Captures: []graph.Capture{{Inner: 0, Outer: 2}}}
	m := &graph.Model{Graphs: []*graph.Graph{main, yes, no}}
	for _, tt := range []struct {
		name   string
		layers []study.Layer
		want   map[int]study.Cause
	}{
		{"all", []study.Layer{{Node: 0}, {Node: 1}, {Graph: 1, Node: 0}, {Graph: 1, Node: 1}, {Graph: 2, Node: 0}}, map[int]study.Cause{0: study.First, 3: study.Head, 4: study.Head}},
		{"one branch", []study.Layer{{Node: 0}, {Node: 1}, {Graph: 1, Node: 0}}, map[int]study.Cause{0: study.First, 1: study.Head, 2: study.Head}},
		{"branches alone", []study.Layer{{Graph: 1, Node: 0}, {Graph: 1, Node: 1}, {Graph: 2, Node: 0}}, map[int]study.Cause{0: study.First, 1: study.Head, 2: study.First}},
	} {
		if got := BoundaryLayers(m, tt.layers); !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
