package profile

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/profile/timeline"
)

// begun is a builder that knows a model of three layers.
func begun(t testing.TB) *Builder {
	t.Helper()
	b := NewBuilder()
	if err := b.Describe(three()); err != nil {
		t.Fatal(err)
	}
	return b
}

func three() *Profile {
	return &Profile{
		Schema: SchemaV1, Model: Model{Name: "m"}, Target: Target{ID: "t", Kind: TargetDevice},
		Layers: []Layer{
			{Index: 0, Op: "If", State: Ran, Ops: new(int64(10))},
			{Index: 1, Op: "Conv", State: Ran, Ops: new(int64(7)), MACs: new(int64(3)), Params: new(int64(5)), Parent: new(int64(0)), Graph: "then"},
			{Index: 2, Op: "Shape", State: Folded, Constant: true, Ops: new(int64(1000))},
		},
	}
}

func send(t testing.TB, b *Builder, es ...Event) {
	t.Helper()
	for _, e := range es {
		if err := b.Send(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBuilder(t *testing.T) {
	t.Parallel()
	b := NewBuilder()
	if b.Profile() != nil {
		t.Error("a profile of nothing")
	}
	if p, err := b.Finish(); p != nil || err == nil {
		t.Error("nothing is a finished profile")
	}
	b = begun(t)
	if p := b.Profile(); len(p.Incomplete) != 1 || p.Incomplete[0].Cause != ByEnd || *p.Totals.Layers != 3 || *p.Totals.Ops != 17 || *p.Totals.Params != 5 || p.Totals.BytesRead != nil {
		t.Errorf("%+v", p.Totals)
	}
	for _, err := range []error{
		b.Measure(0, "latency_s", 1, 3), b.Measure(1, "latency_s", 6), b.Measure(0, "latency_s", 2), b.Measure(-1, "latency_s", 9, 8),
		b.Count(1, "energy_j", Value(Estimated, 4, "")), b.Measure(1, "accelerator_stalls", 5, 6),
		b.Send(Event{Refined: &Refined{Layer: 1, Kernel: "k", Placement: &Placement{On: "npu"}, Outputs: []Tensor{{Name: "y"}}}}),
		b.Send(Event{Found: &Finding{ID: "a", Severity: Info, Text: "b"}}),
		b.Send(Event{Noted: &Noted{RAMBytes: new(int64(99)), Host: &Host{OS: "linux"}, Target: &Target{ID: "t2", Kind: TargetDevice}}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(p.Incomplete) != 0 {
		t.Error("not complete:", p.Incomplete)
	}
	l := p.Layers
	if *l[0].Latency.Median != 2 || *l[0].Latency.N != 3 || cmp.Diff([]float64{1, 3, 2}, l[0].Samples) != "" || *l[0].Share != 0.25 || *l[1].Share != 0.75 || l[2].Share != nil {
		t.Errorf("%+v", l[0])
	}
	if *p.Totals.Latency.Median != 8.5 || cmp.Diff([]float64{9, 8}, p.Totals.LatencySamples) != "" || *p.Totals.RAMBytes != 99 || p.Target.ID != "t2" || p.Host.OS != "linux" {
		t.Errorf("%+v", p.Totals)
	}
	if l[1].Kernel != "k" || l[1].Placement.On != "npu" || l[1].Outputs[0].Name != "y" || len(p.Findings) != 1 {
		t.Errorf("%+v", l[1])
	}
	if m := p.Totals.Energy; *m.Median != 4 || m.Kind != Estimated || m.Method != "sum of the layers, of which 1 of 2 have a figure" {
		t.Errorf("%+v", m)
	}
	if v, _ := p.Totals.Value("accelerator_stalls"); v != 5.5 {
		t.Errorf("%v stalls", v)
	}
	if err := b.Measure(0, "latency_s", 1); err == nil || !strings.Contains(err.Error(), "nothing comes after done") {
		t.Error(err)
	}
}

// refusals are events that a builder of three layers does not take.
var refusals = []struct {
	e    Event
	want string
}{
	{Event{}, "want one part"},
	{Event{Lost: &Loss{Cause: Cause{Code: ByEnd}}, Done: &Done{}}, "want one part"},
	{Event{Described: three()}, "described before"},
	{Event{Refined: &Refined{Layer: 3, State: Ran}}, "refined: layer names layer 3 of 3"},
	{Event{Refined: &Refined{Layer: -1, State: Ran}}, "refined: layer"},
	{Event{Refined: &Refined{State: "gone"}}, "layers[0].state"},
	{Event{Refined: &Refined{State: Fused}}, "fused_into"},
	{Event{Refined: &Refined{State: Fused, FusedInto: new(int64(0))}}, "the layer itself"},
	{Event{Refined: &Refined{State: Fused, FusedInto: new(int64(9))}}, "fused_into"},
	{Event{Refined: &Refined{State: Ran, FusedInto: new(int64(1))}}, "fused_into"},
	{Event{Refined: &Refined{FusedInto: new(int64(1))}}, "state is missing"},
	{Event{Refined: &Refined{Cause: &Cause{Code: ByEnd}}}, "state is missing"},
	{Event{Refined: &Refined{State: Failed, Cause: &Cause{Code: "x"}}}, "cause.code"},
	{Event{Refined: &Refined{Placement: &Placement{}}}, "placement.on"},
	{Event{Refined: &Refined{Samples: []float64{math.NaN()}}}, "samples_s"},
	{Event{Refined: &Refined{Inputs: []Tensor{{Shape: []int64{-2}}}}}, "inputs[0].shape"},
	{Event{Measured: &Samples{Layer: new(int64(3)), Quantity: "latency_s"}}, "measured: layer"},
	{Event{Measured: &Samples{Layer: new(int64(-5)), Quantity: "latency_s"}}, "measured: layer"},
	{Event{Measured: &Samples{Quantity: "Latency"}}, "quantity: key"},
	{Event{Measured: &Samples{Quantity: "latency_s", Kind: "guess"}}, "kind"},
	{Event{Measured: &Samples{Quantity: "latency_s", Values: []float64{1, -1}}}, "values has -1 at 1"},
	{Event{Measured: &Samples{Quantity: "heat_c", Values: []float64{math.Inf(-1)}}}, "values has -Inf at 0"},
	{Event{Measured: &Samples{Quantity: "heat_c", Values: []float64{1e200}}}, "values has 1e+200"},
	{Event{Measured: &Samples{Quantity: "latency_s", Values: []float64{math.NaN()}}}, "values has NaN"},
	{Event{Measured: &Samples{Layer: new(int64(0)), Quantity: "ops", Values: []float64{1}}}, "ops is a count"},
	{Event{Measured: &Samples{Quantity: "macs", Values: []float64{1}}}, "macs is a count"},
	{Event{Measured: &Samples{Layer: new(int64(0)), Quantity: "ops_per_s", Values: []float64{1}}}, "follows from others"},
	{Event{Measured: &Samples{Layer: new(int64(0)), Quantity: "share", Values: []float64{1}}}, "follows from latency_s"},
	{Event{Measured: &Samples{Layer: new(int64(0)), Quantity: "sparsity_weights", Values: []float64{1.5}}}, "want 0 to 1"},
	{Event{Counted: &Figure{Layer: new(int64(3)), Quantity: "ops"}}, "counted: layer"},
	{Event{Counted: &Figure{Layer: new(int64(0)), Quantity: "ops", Metric: Value(Counted, 0.5, "")}}, "an integer"},
	{Event{Counted: &Figure{Layer: new(int64(0)), Quantity: "ops", Metric: Value(Counted, -1, "")}}, "layers[0].ops is -1"},
	{Event{Counted: &Figure{Quantity: "ops", Metric: Value(Counted, -1, "")}}, "totals.ops is -1"},
	{Event{Counted: &Figure{Layer: new(int64(0)), Quantity: "latency_s", Metric: &Metric{Kind: "x", Median: new(1.0)}}}, "kind"},
	{Event{Counted: &Figure{Quantity: "latency_s", Metric: Value(Measured, -1, "")}}, "negative"},
	{Event{Counted: &Figure{Quantity: "heat_c", Metric: &Metric{Median: new(1.0)}}}, "totals.figures.heat_c: kind"},
	{Event{Counted: &Figure{Layer: new(int64(0)), Quantity: "sparsity_weights", Metric: Value(Counted, 7, "")}}, "sparsity_weights is 7, want 0 to 1"},
	{Event{Counted: &Figure{Layer: new(int64(0)), Quantity: "share", Metric: Value(Counted, 1, "")}}, "follows from latency_s"},
	{Event{Counted: &Figure{Quantity: "power_w", Metric: Value(Counted, 1, "")}}, "follows from"},
	{Event{Counted: &Figure{Quantity: "a b", Metric: Value(Counted, 1, "")}}, "key"},
	{Event{Noted: &Noted{Target: &Target{}}}, "noted: target"},
	{Event{Noted: &Noted{RAMBytes: new(int64(-1))}}, "totals.ram_bytes"},
	{Event{Noted: &Noted{Latencies: []float64{-1}}}, "latency_samples_s"},
	{Event{Noted: &Noted{Quantities: []Quantity{{Key: "x"}}}}, "quantities[0]"},
	{Event{Noted: &Noted{Settings: &Settings{Batch: new(int64(-1))}}}, "settings.batch"},
	{Event{Noted: &Noted{Memory: &Memory{StepLayers: []int64{3}}}}, "memory.step_layers"},
	{Event{Noted: &Noted{Host: &Host{OS: "x"}, Timeline: &timeline.Timeline{Lanes: []timeline.Lane{{}}}}}, "timeline.lanes[0]"},
	{Event{Lost: &Loss{Layer: new(int64(3)), Cause: Cause{Code: ByEnd}}}, "lost: layer"},
	{Event{Lost: &Loss{Cause: Cause{}}}, "cause.code"},
	{Event{Lost: &Loss{Records: new(int64(-1)), Cause: Cause{Code: ByEnd}}}, "lost.records"},
	{Event{Found: &Finding{}}, "finding.id"},
	{Event{Found: &Finding{ID: "a", Severity: Info, Text: "b", Layers: []int64{3}}}, "finding.layers"},
	{Event{Done: &Done{Incomplete: []Missing{{Cause: "x"}}}}, "incomplete[0].cause"},
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	b := begun(t)
	send(t, b, Event{Measured: &Samples{Layer: new(int64(0)), Quantity: "heat_c", Values: []float64{-5}}})
	before, _ := jsonx.Marshal(b.Profile())
	for _, tt := range append(refusals, struct {
		e    Event
		want string
	}{Event{Measured: &Samples{Layer: new(int64(0)), Quantity: "heat_c", Kind: Imported, Values: []float64{1}}}, "that of earlier samples"}) {
		if err := b.Send(tt.e); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
		if after, _ := jsonx.Marshal(b.Profile()); !bytes.Equal(before, after) {
			t.Fatalf("%q changed the profile:\n%s\n%s", tt.want, before, after)
		}
	}
	if err := NewBuilder().Measure(-1, "latency_s", 1); err == nil || !strings.Contains(err.Error(), "described first") {
		t.Error(err)
	}
	if err := NewBuilder().Describe(&Profile{}); err == nil || !strings.Contains(err.Error(), "described: schema") {
		t.Error(err)
	}
}

// TestLatestFigureCounts sends samples and whole figures of one quantity in turn.
func TestLatestFigureCounts(t *testing.T) {
	t.Parallel()
	b := begun(t)
	check := func(want any, samples int) {
		t.Helper()
		l := b.Profile().Layers[0]
		if v, ok := l.Value("latency_s"); ok != (want != nil) || ok && v != want || len(l.Samples) != samples {
			t.Errorf("%v, %v and %d samples, want %v and %d", v, ok, len(l.Samples), want, samples)
		}
	}
	_ = b.Count(0, "latency_s", Value(Estimated, 50, ""))
	check(50.0, 0)
	_ = b.Measure(0, "latency_s") // no samples say nothing
	check(50.0, 0)
	_ = b.Measure(0, "latency_s", 1, 2, 3)
	check(2.0, 3)
	_ = b.Count(0, "latency_s", Value(Measured, 7, "median"))
	check(7.0, 3)
	_ = b.Measure(0, "latency_s", 4, 5)
	check(3.0, 5)
	_ = b.Count(0, "latency_s", nil)
	check(nil, 0)
}

func TestLost(t *testing.T) {
	t.Parallel()
	lost := Event{Lost: &Loss{Layer: new(int64(1)), Records: new(int64(3)), Cause: Cause{Code: ByRecord, Text: "gone"}}}
	b := begun(t)
	send(t, b, lost)
	p := b.Profile()
	if l := p.Layers[1]; l.State != Lost || l.Cause.Code != ByRecord || p.Incomplete[0].Layers[0] != 1 || *p.Incomplete[0].Want != 3 || p.Incomplete[0].Text != "gone" {
		t.Errorf("%+v %+v", l, p.Incomplete)
	}
	_ = b.Measure(1, "latency_s", 1)
	if l := b.Profile().Layers[1]; l.State != Ran || l.Cause != nil {
		t.Errorf("a layer with a time is %s", l.State)
	}
	send(t, b, lost)
	if l := b.Profile().Layers[1]; l.State != Ran {
		t.Errorf("one lost record of several makes a layer %s", l.State)
	}
	send(t, b, Event{Lost: &Loss{Layer: new(int64(2)), Cause: Cause{Code: ByRecord}}}, Event{Lost: &Loss{Cause: Cause{Code: ByRecord}}})
	if p := b.Profile(); p.Layers[2].State != Folded || len(p.Incomplete) != 5 {
		t.Errorf("%+v", p.Incomplete)
	}
}

// TestCalls: counts go with the number of calls, exactly and any number of times.
func TestCalls(t *testing.T) {
	t.Parallel()
	b := begun(t)
	ops := func(want any) {
		t.Helper()
		l := b.Profile().Layers[1]
		if v, ok := l.Value("ops"); ok != (want != nil) || ok && v != want {
			t.Errorf("%v, %v ops, want %v", v, ok, want)
		}
	}
	for _, c := range []struct{ calls, want float64 }{{3, 21}, {0.5, 4}, {0, 0}, {1.0 / 3, 2}, {7, 49}} {
		if err := b.Count(1, "calls", Value(Measured, c.calls, "")); err != nil {
			t.Fatal(err)
		}
		ops(c.want)
	}
	if p := b.Profile(); *p.Totals.Ops != 59 || *p.Layers[1].Params != 5 || *p.Layers[1].MACs != 21 {
		t.Errorf("%+v", p.Totals)
	}
	_ = b.Count(1, "ops", Value(Counted, 70, "")) // over the seven calls
	ops(70.0)
	_ = b.Count(1, "calls", Value(Measured, 2, ""))
	ops(20.0)
	_ = b.Count(1, "ops", nil)
	_ = b.Count(1, "calls", nil)
	ops(nil)
	_ = b.Count(1, "ops", Value(Counted, 1<<53, ""))
	_ = b.Count(1, "calls", Value(Measured, 512, ""))
	ops(float64(1 << 62))
	_ = b.Count(1, "calls", Value(Measured, 1024, "")) // more than 64 bits
	ops(nil)
	if p := b.Profile(); *p.Totals.Ops != 10 || *p.Totals.UncountedLayers != 1 {
		t.Errorf("%+v", p.Totals)
	}
	// Samples of calls: their mean.
	b = begun(t)
	_ = b.Measure(1, "calls", 0, 0, 0, 4)
	ops(7.0)
	_ = b.Measure(1, "calls", 8, 0, 0, 4)
	ops(14.0)
	// A layer that was described as never called says nothing about a call.
	p := three()
	p.Layers[1].Calls, p.Layers[1].Ops = new(0.0), new(int64(0))
	b = NewBuilder()
	_ = b.Describe(p)
	ops(0.0)
	_ = b.Count(1, "calls", Value(Measured, 2, ""))
	ops(nil)
}

// TestTotalsKeepWhatTheSourceKnows: a sum takes the place of no figure.
func TestTotalsKeepWhatTheSourceKnows(t *testing.T) {
	t.Parallel()
	b := begun(t)
	for _, k := range []string{"latency_s", "bytes_read", "params", "accelerator_programs", "heat_c"} {
		if err := b.Count(-1, k, Value(Measured, 77, "")); err != nil {
			t.Fatal(err)
		}
	}
	_ = b.Measure(0, "latency_s", 1)
	_ = b.Measure(0, "accelerator_programs", 1)
	_ = b.Measure(0, "heat_c", -3)
	p := b.Profile()
	for _, k := range []string{"latency_s", "bytes_read", "params", "accelerator_programs", "heat_c"} {
		if v, _ := p.Totals.Value(k); v != 77 {
			t.Errorf("%s is %v", k, v)
		}
	}
	if v, _ := p.Layers[0].Value("heat_c"); v != -3 {
		t.Errorf("%v degrees", v)
	}
	// Layers that are never reached do no work.
	send(t, b, Event{Refined: &Refined{Layer: 1, State: NotReached}})
	if p := b.Profile(); *p.Totals.Ops != 10 || *p.Totals.UncountedLayers != 0 {
		t.Error(*p.Totals.Ops, *p.Totals.UncountedLayers)
	}
}

// TestForeign: a registered quantity is described in the profile, for programs
// without it; one that does not add up has no sum.
func TestForeign(t *testing.T) {
	t.Parallel()
	if err := Register(Quantity{Key: "test_conflicts", Name: "Bank conflicts", Adds: true}); err != nil {
		t.Fatal(err)
	}
	defer forget("test_conflicts")
	b := begun(t)
	send(t, b, Event{Noted: &Noted{Quantities: []Quantity{{Key: "test_heat_c", Name: "Heat", Unit: "C"}}}}, Event{Noted: &Noted{Quantities: []Quantity{{Key: "test_heat_c", Name: "Temperature", Unit: "C"}}}})
	for i := range 2 {
		_ = b.Count(i, "test_conflicts", Value(Imported, 2, ""))
		_ = b.Count(i, "test_heat_c", Value(Imported, 40, ""))
	}
	p := b.Profile()
	if d := cmp.Diff([]string{"Temperature", "Bank conflicts"}, []string{p.Quantities[0].Name, p.Quantities[1].Name}); d != "" || len(p.Quantities) != 2 {
		t.Error(d)
	}
	if v, _ := p.Totals.Value("test_conflicts"); v != 4 {
		t.Errorf("%v conflicts", v)
	}
	if v, ok := p.Totals.Value("test_heat_c"); ok {
		t.Errorf("%v degrees in all", v)
	}
}

// TestCopies: neither the caller's profile nor a profile that was returned shares
// anything with the builder that is changed.
func TestCopies(t *testing.T) {
	t.Parallel()
	mine := three()
	mine.Layers[0].Sparsity = &Sparsity{Weights: new(0.5)}
	b := NewBuilder()
	if err := b.Describe(mine); err != nil {
		t.Fatal(err)
	}
	mine.Layers[0].Op, *mine.Layers[1].Ops, *mine.Layers[0].Sparsity.Weights = "", -5, 9
	one := b.Profile()
	if err := one.Validate(); err != nil {
		t.Fatal(err)
	}
	text, _ := jsonx.Marshal(one)
	_ = b.Count(0, "sparsity_weights", Value(Counted, 1, ""))
	_ = b.Measure(1, "latency_s", 1)
	_ = b.Count(0, "heat_c", Value(Counted, 1, ""))
	if now, _ := jsonx.Marshal(one); !bytes.Equal(text, now) {
		t.Errorf("a profile changed after it was returned:\n%s\n%s", text, now)
	}
	*one.Layers[1].Ops, one.Layers[0].State = -1, "x"
	if err := b.Profile().Validate(); err != nil {
		t.Errorf("the builder changed with a profile of it: %v", err)
	}
}

func TestBuilderConcurrently(t *testing.T) {
	t.Parallel()
	b := begun(t)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 50 {
				_ = b.Measure(g%3, "latency_s", float64(i))
				_ = b.Count(g%3, fmt.Sprintf("figure_%d", g), Value(Counted, float64(i), ""))
				_ = b.Count(1, "calls", Value(Measured, float64(i), ""))
				_ = b.Send(Event{Noted: &Noted{Quantities: []Quantity{{Key: fmt.Sprintf("figure_%d", g), Name: "x"}}}})
				p := b.Profile()
				if err := p.Validate(); err != nil {
					t.Error(err)
				}
				p.Quantities = append(p.Quantities, Quantity{})
				p.Layers[g%3].Figures["mine"] = nil
			}
		})
	}
	all.Wait()
	p, err := b.Finish()
	if err != nil || *p.Layers[0].Latency.N != 150 {
		t.Error(err)
	}
}

// drawEvent makes any event, right ones and wrong ones.
func drawEvent(t *rapid.T) Event {
	layer := func() *int64 {
		if i := rapid.Int64Range(-1, 3).Draw(t, "layer"); i >= 0 {
			return &i
		}
		return nil
	}
	real := rapid.OneOf(rapid.Float64Range(0, 10), rapid.Float64(), rapid.SampledFrom([]float64{0, 0.5, 1, 2, 1e150, math.MaxFloat64, math.NaN(), math.Inf(1), 5e-324}))
	key := rapid.SampledFrom([]string{"latency_s", "latency_s", "calls", "ops", "macs", "energy_j", "share", "params", "sparsity_weights", "sparsity_activations", "accelerator_stalls", "foreign", "power_w", "X"})
	kind := rapid.SampledFrom([]Kind{"", Measured, Imported, "x"})
	state := rapid.SampledFrom([]State{"", Ran, Fused, Lost, NotReached, Unsupported, "x"})
	code := rapid.SampledFrom([]CauseCode{ByEnd, ByRecord, ByRecord, ""})
	switch rapid.IntRange(0, 8).Draw(t, "event") {
	case 0, 1:
		return Event{Measured: &Samples{Layer: layer(), Quantity: key.Draw(t, "key"), Kind: kind.Draw(t, "kind"), Values: rapid.SliceOfN(real, 0, 8).Draw(t, "values")}}
	case 2, 3:
		f := &Figure{Layer: layer(), Quantity: key.Draw(t, "key")}
		if rapid.IntRange(0, 4).Draw(t, "gone") > 0 {
			v := real.Draw(t, "value")
			f.Metric = &Metric{Kind: kind.Draw(t, "kind"), Median: &v}
		}
		return Event{Counted: f}
	case 4:
		r := &Refined{Layer: rapid.Int64Range(-1, 3).Draw(t, "layer"), State: state.Draw(t, "state"), FusedInto: layer()}
		if rapid.Bool().Draw(t, "caused") {
			r.Cause = &Cause{Code: code.Draw(t, "code")}
		}
		if rapid.Bool().Draw(t, "placed") {
			r.Placement = &Placement{On: rapid.SampledFrom([]string{"", CPU}).Draw(t, "on")}
		}
		return Event{Refined: r}
	case 5:
		return Event{Lost: &Loss{Layer: layer(), Cause: Cause{Code: code.Draw(t, "code")}}}
	case 6:
		return Event{Noted: &Noted{
			RAMBytes: layer(), Latencies: rapid.SliceOfN(real, 0, 3).Draw(t, "latencies"),
			Quantities: []Quantity{{Key: "foreign", Name: "F", Adds: rapid.Bool().Draw(t, "adds")}},
			Reconcile:  &Reconcile{WallS: new(real.Draw(t, "wall"))},
		}}
	case 7:
		return Event{Found: &Finding{ID: "a", Severity: Info, Text: "b", Layers: rapid.SliceOfN(rapid.Int64Range(-1, 3), 0, 2).Draw(t, "layers")}}
	}
	return Event{Done: &Done{Incomplete: []Missing{{Cause: code.Draw(t, "code")}}}}
}

// TestAnyEvents: after every event of any series the profile is valid, can be saved
// and read back as it is, and an event that was refused changed nothing.
func TestAnyEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := NewBuilder()
		if rapid.IntRange(0, 9).Draw(t, "described") > 0 {
			if err := b.Describe(three()); err != nil {
				t.Fatal(err)
			}
		}
		last, _ := jsonx.Marshal(b.Profile())
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			err := b.Send(drawEvent(t))
			p := b.Profile()
			now, e := jsonx.Marshal(p)
			if e != nil {
				t.Fatal(e)
			}
			if err != nil && !bytes.Equal(last, now) {
				t.Fatalf("refused (%v), and changed:\n%s\n%s", err, last, now)
			}
			last = now
			if p == nil {
				continue
			}
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		p := b.Profile()
		if p == nil {
			return
		}
		file, err := Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Unmarshal(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, q); d != "" {
			t.Fatal(d)
		}
	})
}

// The cost of an inference is its time, or the counts that stand for it, and shares are of the
// same.
func TestCost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		figures map[string]float64
		key     string
	}{
		{map[string]float64{"ticks": 4, "instructions": 3}, "instructions"},
		{map[string]float64{"instructions": 3, "cpu_cycles": 2}, "cpu_cycles"},
		{map[string]float64{"cpu_cycles": 2, "latency_s": 1}, "latency_s"},
		{map[string]float64{"energy_j": 1}, ""},
	} {
		b := NewBuilder()
		if err := b.Describe(&Profile{
			Schema: SchemaV1, Model: Model{Name: "m"}, Target: Target{ID: "t", Kind: TargetDevice},
			Layers: []Layer{{Index: 0, Op: "a", State: Ran}, {Index: 1, Op: "b", State: Ran}},
		}); err != nil {
			t.Fatal(err)
		}
		for key, v := range tt.figures {
			for layer, v := range []float64{4 * v, v, 3 * v} {
				if err := b.Measure(layer-1, key, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		p, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		key, m := p.Cost()
		if v, ok := m.Best(); key != tt.key || ok != (key != "") || ok && v != 4*tt.figures[key] {
			t.Errorf("%v: %s %v", tt.figures, key, m)
		}
		if s := p.Layers[0].Share; (s != nil) != (key != "") || s != nil && *s != 0.25 {
			t.Errorf("%v: share %v", tt.figures, s)
		}
	}
}
