package compare_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/compare"
)

// row is a layer: its time with half of the interval, and the model's nodes that it does.
func row(op string, s, half float64, nodes ...int64) profile.Layer {
	l := profile.Layer{
		Op: op, Name: op, State: profile.Ran, Latency: &profile.Metric{Kind: profile.Measured, Median: new(s), CI95: &[2]float64{s - half, s + half}},
		Provenance: &profile.Provenance{Confidence: profile.Exact},
	}
	for _, n := range nodes {
		l.Provenance.SourceNodes = append(l.Provenance.SourceNodes, profile.SourceNode{Node: n})
	}
	if len(nodes) == 0 {
		l.Provenance.Confidence = profile.Unknown
	}
	return l
}

// run is a profile of layers with a total.
func run(engine string, total, half float64, layers ...profile.Layer) *profile.Profile {
	p := &profile.Profile{
		Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost},
		Settings: profile.Settings{Engine: engine}, Layers: layers,
	}
	p.Totals.Latency = &profile.Metric{Kind: profile.Measured, Median: &total, CI95: &[2]float64{total - half, total + half}}
	for i := range p.Layers {
		p.Layers[i].Index = int64(i)
	}
	return p
}

func table(t *testing.T, ps ...*profile.Profile) *compare.Table {
	t.Helper()
	var runs []compare.Named
	for _, p := range ps {
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, compare.Named{Profile: p})
	}
	out, err := compare.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// near compares figures that are sums and quotients of a few numbers: rounding only.
func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is not known, want %v", what, want)
	} else if !(math.Abs(*got-want) <= 1e-12*max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, *got, want)
	}
}

// TestGroups compares an engine that runs node after node with one that fuses two and adds a
// layer, and one that fuses others: what is connected is one row.
func TestGroups(t *testing.T) {
	t.Parallel()
	a := run("a", 10, .1, row("Conv", 4, .1, 0), row("Relu", 1, .1, 1), row("Pool", 2, .1, 2), row("MatMul", 2, .1, 3))
	b := run("b", 9, .1, row("Reorder", .5, .1), row("FusedConv", 3, .2, 0, 1), row("Pool", 2.5, .1, 2), row("MatMul", 2, .1, 3))
	c := run("c", 8, .1, row("Conv", 3, .1, 0), row("ReluPool", 2, .1, 1, 2), row("MatMul", 1, .1, 3))
	two := table(t, a, b)
	if len(two.Groups) != 3 {
		t.Fatalf("%d groups: %+v", len(two.Groups), two.Groups)
	}
	g := two.Groups[0]
	if g.Op != "Conv" || g.Operators != 2 || !slices.Equal(g.Layers[0], []int64{0, 1}) || !slices.Equal(g.Layers[1], []int64{1}) || g.Confidence != profile.Exact {
		t.Errorf("%+v", g)
	}
	near(t, "time of a", g.Figures[0].Value, 5)
	near(t, "low", g.Figures[0].Low, 4.8)
	near(t, "high", g.Figures[0].High, 5.2)
	near(t, "time of b", g.Figures[1].Value, 3)
	near(t, "ratio", g.Ratios[1].Value, .6)
	by := math.Exp(math.Hypot(math.Hypot(.2/5, .2/3), 1.959963984540054*math.Sqrt2*.005))
	near(t, "low", g.Ratios[1].Low, .6/by)
	near(t, "high", g.Ratios[1].High, .6*by)
	if g.Ratios[1].Verdict != compare.Faster {
		t.Errorf("verdict %s", g.Ratios[1].Verdict)
	}
	r := two.Runs[1]
	near(t, "operators", r.Operators, 7.5)
	near(t, "inserted", r.Inserted, .5)
	near(t, "rest", r.Rest, 1)
	near(t, "ratio of totals", r.Ratio.Value, .9)
	if r.InsertedLayers != 1 || r.Name != "b" || two.Runs[0].Inserted != nil || two.Quantity != "latency_s" || two.Unit != "s" {
		t.Errorf("%+v", r)
	}
	three := table(t, a, b, c)
	if len(three.Groups) != 2 || !slices.Equal(three.Groups[0].Layers[0], []int64{0, 1, 2}) {
		t.Fatalf("%+v", three.Groups)
	}
	for k, want := range []float64{7, 5.5, 5} {
		near(t, fmt.Sprintf("time of %d", k), three.Groups[0].Figures[k].Value, want)
	}
}

func said(v *float64) string {
	if v == nil {
		return "absent"
	}
	return fmt.Sprint(*v)
}

// TestRest: what a total takes beside its layers is a time, so that it is never negative. It is
// absent where the intervals of both explain the difference.
func TestRest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		total, half float64
		layers      []profile.Layer
		want        *float64
	}{
		{"beyond the intervals", 10, .1, []profile.Layer{row("Conv", 8, .1, 0)}, new(2.0)},
		{"within that of the total", 10, .5, []profile.Layer{row("Conv", 9.6, 0, 0)}, nil},
		{"within those of the layers", 10, 0, []profile.Layer{row("Conv", 5, .3, 0), row("Pool", 4.6, .3, 1)}, nil},
		{"beyond both together", 10, .3, []profile.Layer{row("Conv", 9, .4, 0)}, new(1.0)},
		{"layers take longer within the intervals", 10, .5, []profile.Layer{row("Conv", 10.2, .1, 0)}, nil},
		{"layers take longer than the whole", 10, .1, []profile.Layer{row("Conv", 12, .1, 0)}, nil},
		{"equal", 10, .1, []profile.Layer{row("Conv", 4, .1, 0), row("Pool", 6, .1, 1)}, new(0.0)},
	} {
		p := run("a", tt.total, tt.half, tt.layers...)
		got := table(t, p, p).Runs[0].Rest
		if (got == nil) != (tt.want == nil) || got != nil && math.Abs(*got-*tt.want) > 1e-12 {
			t.Errorf("%s: %s, want %s", tt.name, said(got), said(tt.want))
		}
	}
}

// TestRestOfDivided: where layers are parts of the total, the rest is known within their intervals.
func TestRestOfDivided(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		wall, sum, layer float64
		want             *float64
	}{
		{"parts of the total", 10, 9.6, 9.6, new(0.4)},
		{"no rest", 10, 10, 10, new(0.0)},
		{"layers beyond the sum", 10, 9.9, 10.2, new(0.0)},
		{"sums of another time", 12, 9.6, 9.6, nil},
		{"sums beyond the total", 10, 11, 9.6, nil},
	} {
		p := run("a", 10, .5, row("Conv", c.layer, 0, 0))
		p.Reconcile = &profile.Reconcile{WallS: &c.wall, OperatorsS: &c.sum}
		got := table(t, p, p).Runs[0].Rest
		if (got == nil) != (c.want == nil) || got != nil && math.Abs(*got-*c.want) > 1e-12 {
			t.Errorf("%s: %s, want %s", c.name, said(got), said(c.want))
		}
	}
}

// TestVerdicts goes through the rule: 10 against a figure with its half interval.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		v, half float64
		want    compare.Verdict
	}{
		{11, .1, compare.Slower},
		{9, .1, compare.Faster},
		{10.1, .1, compare.Alike},
		{11, 2, compare.Open},
		{10, 2, compare.Open},
		// Two processes differ by that much without a reason.
		{10.1, 0, compare.Alike},
	} {
		got := table(t, run("a", 10, .01), run("b", tt.v, tt.half)).Runs[1].Ratio
		if got.Verdict != tt.want {
			t.Errorf("%v ± %v: %s, want %s (%v to %v)", tt.v, tt.half, got.Verdict, tt.want, *got.Low, *got.High)
		}
	}
	// An interval that leaves out 1 is a difference, whatever the verdict: the tolerance is in it.
	for _, tt := range []struct {
		v, tolerance float64 // 0: unknown
		interleaved  bool
		want         compare.Verdict
	}{
		{2.8, 0, false, compare.Faster},
		{2.8, 0.4, false, compare.Faster},
		{8, 0.4, false, compare.Open},
		{8, 0.4, true, compare.Faster},
		{20, 0.4, false, compare.Slower},
	} {
		b := run("b", tt.v, .1)
		b.Trust = &profile.Trust{Verdict: profile.Unreliable, Fit: profile.FitShares}
		if tt.tolerance > 0 {
			b.Trust.Tolerance = &tt.tolerance
		}
		x, err := compare.New([]compare.Named{{Name: "a", Profile: run("a", 10, .1)}, {Name: "b", Profile: b, Interleaved: tt.interleaved}})
		if err != nil {
			t.Fatal(err)
		}
		if r := x.Runs[1]; r.Ratio.Verdict != tt.want || r.Fit != profile.FitShares || r.Tolerance != b.Trust.Tolerance {
			t.Errorf("%+v: %+v", tt, r)
		}
	}
	b := run("b", 20, .1)
	b.Totals.Latency.CI95 = nil
	if got := table(t, run("a", 10, .1), b).Runs[1].Ratio; got.Verdict != compare.Open || got.Low != nil {
		t.Errorf("without an interval: %+v", got)
	}
}

// TestPartial has a layer without a time: the sum is not a figure to compare.
func TestPartial(t *testing.T) {
	t.Parallel()
	b := run("b", 10, .1, row("Conv", 4, .1, 0), row("Relu", 1, .1, 1))
	b.Layers[1].Latency, b.Layers[1].State = nil, profile.Lost
	b.Layers[1].Cause = &profile.Cause{Code: profile.ByRecord}
	g := table(t, run("a", 10, .1, row("ConvRelu", 5, .1, 0, 1)), b).Groups[0]
	if !g.Figures[1].Partial || g.Ratios[1].Value != nil || g.Ratios[1].Verdict != compare.Open {
		t.Errorf("%+v", g)
	}
	near(t, "what is known", g.Figures[1].Value, 4)
}

// TestBodies compares an engine that lists what a body holds with one to which the If is one layer.
func TestBodies(t *testing.T) {
	t.Parallel()
	a := run("a", 10, .1, row("If", 1, .1, 0), row("Add", 3, .1), row("Mul", 2, .1), row("Conv", 4, .1, 1))
	for i := 1; i <= 2; i++ {
		a.Layers[i].Parent = new(int64(0))
		a.Layers[i].Graph = "then"
		a.Layers[i].Provenance = &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Graph: 1, Node: int64(i)}}}
	}
	b := run("b", 9, .1, row("If", 5, .1, 0), row("Conv", 4, .1, 1))
	x := table(t, a, b)
	if len(x.Groups) != 2 {
		t.Fatalf("%+v", x.Groups)
	}
	if x.Groups[0].Kind != align.Fused || !x.Groups[0].Certain || x.Groups[1].Kind != align.Same {
		t.Errorf("kinds %s and %s", x.Groups[0].Kind, x.Groups[1].Kind)
	}
	near(t, "with bodies", x.Groups[0].Figures[0].Value, 6)
	near(t, "as one", x.Groups[0].Figures[1].Value, 5)
	if x = table(t, a, a); len(x.Groups) != 4 {
		t.Errorf("both with bodies: %d groups, want each by itself", len(x.Groups))
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	a, b := run("x", 10, .1), run("x", 10, .1)
	a.Settings.Threads, b.Settings.Threads = new(int64(1)), new(int64(2))
	a.Model.Inputs, b.Model.Inputs = []profile.Tensor{{Shape: []int64{1, 3}}}, []profile.Tensor{{Shape: []int64{2, 3}}}
	b.Trust = &profile.Trust{Verdict: profile.Fair, Doubts: []profile.Doubt{{Code: profile.DoubtFewRuns, Verdict: profile.Fair}}}
	b.Differences = []profile.Difference{{With: "a", State: profile.Equal}, {With: "a", State: profile.Differs}}
	x := table(t, a, b)
	var got []compare.NoteCode
	for _, n := range x.Notes {
		got = append(got, n.Code)
	}
	want := []compare.NoteCode{compare.OtherShapes, compare.OtherResults, compare.OtherThreads, compare.NotGood, compare.NoLayers}
	if !slices.Equal(got, want) {
		t.Errorf("notes %v, want %v", got, want)
	}
	if x.Runs[0].Name != "A" || x.Runs[1].Name != "B" || x.Runs[1].Outputs != profile.Differs || x.Runs[1].With != "a" {
		t.Errorf("%+v", x.Runs)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	a := run("a", 10, .1)
	ticks := run("b", 10, .1)
	ticks.Totals.Latency = nil
	ticks.Totals.Figures = map[string]*profile.Metric{"ticks": profile.Value(profile.Measured, 5, "")}
	for _, runs := range [][]compare.Named{nil, {{Profile: a}}, make([]compare.Named, compare.MaxRuns+1), {{Profile: a}, {Profile: ticks}}} {
		if _, err := compare.New(runs); err == nil {
			t.Errorf("%d runs are compared", len(runs))
		}
	}
	if x := table(t, ticks, ticks); x.Quantity != "ticks" || x.Unit != "ticks" {
		t.Errorf("compared are %s in %s", x.Quantity, x.Unit)
	}
}

// TestOtherName compares with a record that knows no model file: only the names tell.
func TestOtherName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"net": false, "another": true} {
		a, b := run("a", 3, 0, row("Relu", 3, 0, 0)), run("b", 3, 0, row("Relu", 3, 0))
		a.Model.SHA256, b.Model.Name = strings.Repeat("a", 64), name
		got := slices.ContainsFunc(table(t, a, b).Notes, func(n compare.Note) bool { return n.Code == compare.OtherName && slices.Equal(n.Runs, []int{1}) })
		if got != want {
			t.Errorf("%s: noted %v, want %v", name, got, want)
		}
	}
}

// TestRepeatsOfOneKind refuses repeats whose figures are of another kind or of other shapes.
func TestRepeatsOfOneKind(t *testing.T) {
	t.Parallel()
	first := run("a", 10, .1, row("Conv", 4, .1, 0))
	first.Model.Inputs = []profile.Tensor{{Name: "x", Shape: []int64{1, 8}}}
	for name, c := range map[string]struct {
		change func(p *profile.Profile)
		want   string
	}{
		"counted":   {func(p *profile.Profile) { p.Totals.Latency, p.Layers[0].Latency = nil, nil }, "measured and counted"},
		"imported":  {func(p *profile.Profile) { p.Target.Kind = profile.TargetImport }, "measured and imported"},
		"estimated": {func(p *profile.Profile) { p.Target.Kind = profile.TargetSimulator }, "measured and estimated"},
		"shapes":    {func(p *profile.Profile) { p.Model.Inputs = []profile.Tensor{{Name: "x", Shape: []int64{2, 8}}} }, "different input shapes"},
	} {
		p := run("a", 10, .1, row("Conv", 4, .1, 0))
		p.Model.Inputs = first.Model.Inputs
		c.change(p)
		_, err := compare.New([]compare.Named{{Name: "old", Profile: first, Repeats: []*profile.Profile{p}}, {Name: "new", Profile: first}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestNames keeps the names that runs were given, and numbers equal ones.
func TestNames(t *testing.T) {
	t.Parallel()
	a, b := run("a", 10, .1), run("b", 10, .1)
	x, err := compare.New([]compare.Named{{Name: "base", Profile: a}, {Name: "base", Profile: b}, {Name: "base (2)", Profile: b}})
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{x.Runs[0].Name, x.Runs[1].Name, x.Runs[2].Name}; !slices.Equal(got, []string{"base", "base (2)", "base (2) (2)"}) {
		t.Errorf("%q", got)
	}
}

// TestOneCounted compares times of the runs that have them, and names only the model that has none.
func TestOneCounted(t *testing.T) {
	t.Parallel()
	estimate := func(s float64) *profile.Profile {
		p := run("tflm", s, .1, row("Conv", s, .1, 0))
		p.Target = profile.Target{ID: "chip", Kind: profile.TargetSimulator}
		p.Totals.MACs, p.Layers[0].MACs = new(int64(8)), new(int64(8))
		return p
	}
	counted := estimate(1)
	counted.Target = profile.Target{ID: "host", Kind: profile.TargetHost}
	counted.Totals.Latency, counted.Layers[0].Latency = nil, nil
	x := table(t, estimate(1), estimate(2), counted)
	if x.Quantity != "latency_s" || x.Runs[1].Ratio.Value == nil || x.Runs[2].Ratio.Value != nil {
		t.Errorf("%s: %+v", x.Quantity, x.Runs)
	}
	got := map[compare.NoteCode][]int{}
	for _, n := range x.Notes {
		got[n.Code] = n.Runs
	}
	if !slices.Equal(got[compare.OtherKind], []int{2}) || !slices.Equal(got[compare.NoTimes], []int{2}) {
		t.Errorf("%v", got)
	}
	if x := table(t, counted, estimate(1), estimate(2)); x.Quantity != "macs" {
		t.Errorf("compared with a model: %s", x.Quantity)
	}
}

// TestTooLarge says first which targets do not run the model.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	a, b := run("a", 10, .1), run("b", 5, .1)
	a.Findings = []profile.Finding{{ID: "target.ram", Severity: profile.Info, Text: "It fits."}}
	b.Findings = []profile.Finding{{ID: "target.ram", Severity: profile.Problem, Text: "The activation peak of 384 KiB does not fit."}}
	if x := table(t, a, b); len(x.Notes) == 0 || x.Notes[0].Code != compare.TooLarge || !slices.Equal(x.Notes[0].Runs, []int{1}) {
		t.Errorf("%+v", x.Notes)
	}
}

// TestOptionErrors names the option, and the run that lacks the figure.
func TestOptionErrors(t *testing.T) {
	t.Parallel()
	a, b := run("a", 10, .1), run("b", 10, .1)
	a.Totals.Energy = profile.Value(profile.Measured, 1, "")
	for _, c := range []struct {
		o            compare.Options
		option, want string
	}{
		{compare.Options{Quantity: "energy_j"}, "Quantity", "new has no figure of energy_j"},
		{compare.Options{Quantity: "foo"}, "Quantity", `unknown quantity "foo"`},
		{compare.Options{By: "colour"}, "By", `"colour"`},
	} {
		_, err := compare.With([]compare.Named{{Name: "old", Profile: a}, {Name: "new", Profile: b}}, c.o)
		if e, ok := errors.AsType[*compare.OptionError](err); !ok || e.Option != c.option || !strings.Contains(e.Text, c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}
