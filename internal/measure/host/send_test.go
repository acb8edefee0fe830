package host

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// full fails from an event on.
type full struct {
	left int
	err  error
}

func (f *full) Send(profile.Event) error {
	if f.left--; f.left < 0 {
		return f.err
	}
	return nil
}

// TestSinkFails: any failure to send ends the run with the sink's error.
func TestSinkFails(t *testing.T) {
	t.Parallel()
	m := chain("Frobnicate", 1)
	o := options()
	o.Static = true
	var all events
	if err := (&Source{Model: m, Options: o}).Run(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 5 || all[0].Described == nil {
		t.Fatalf("%d events, the first %+v", len(all), all[0])
	}
	broken := errors.New("disk full")
	for n := range all {
		if err := (&Source{Model: m, Options: o}).Run(t.Context(), &full{n, broken}); !errors.Is(err, broken) {
			t.Errorf("event %d cannot be sent: %v", n, err)
		}
	}
	if err := (&Source{Model: m, Options: o}).Run(t.Context(), &full{len(all), broken}); err != nil {
		t.Errorf("all can be sent: %v", err)
	}
	// The results of a measurement are rejected.
	o.Static = false
	if err := (&Source{Model: m, Options: o}).Run(t.Context(), &full{len(all) + 2, broken}); !errors.Is(err, broken) {
		t.Errorf("a figure cannot be sent: %v", err)
	}
}

// TestNote: noted parts become part of the profile; others stay.
func TestNote(t *testing.T) {
	t.Parallel()
	var sent events
	was := &profile.Profile{Memory: &profile.Memory{}, Host: &profile.Host{}, Reconcile: &profile.Reconcile{}, Trust: &profile.Trust{}}
	now := *was
	r := &runner{to: &sent, p: &now}
	r.phases.LoadS = new(2.0)
	if err := r.note(profile.Noted{}); err != nil || now.Memory != was.Memory || now.Host != was.Host || now.Reconcile != was.Reconcile || now.Trust != was.Trust {
		t.Errorf("nothing noted: %+v, %v", now, err)
	}
	n := profile.Noted{Memory: &profile.Memory{}, Host: &profile.Host{}, Reconcile: &profile.Reconcile{}, Trust: &profile.Trust{}}
	if err := r.note(n); err != nil || now.Memory != n.Memory || now.Host != n.Host || now.Reconcile != n.Reconcile || now.Trust != n.Trust {
		t.Errorf("all noted: %+v, %v", now, err)
	}
	if len(sent) != 2 || sent[1].Noted.Memory != n.Memory || sent[1].Noted.Settings == nil || *sent[1].Noted.Phases.LoadS != 2 {
		t.Errorf("sent %+v", sent)
	}
}

// TestOutputsOfRun: outputs of the model get the shapes of the run, once.
func TestOutputsOfRun(t *testing.T) {
	t.Parallel()
	g := &graph.Graph{Values: []*graph.Value{{ID: 0, Name: "y"}, {ID: 1, Name: "z"}, {ID: 2, Name: "inner"}}, Outputs: []int{0, -1, 1}}
	slot := func(of int, out ...int) plan.Slot {
		s := plan.Slot{}
		s.Graph = of
		for k := range out {
			s.Out = append(s.Out, &tensor.Tensor{Type: tensor.Float32, Shape: []int{k + 2}})
		}
		s.Node = &graph.Node{Outputs: out}
		return s
	}
	r := &runner{m: &graph.Model{Graphs: []*graph.Graph{g}}, slots: []plan.Slot{slot(0, 0, 1), slot(1, 1)}, p: &profile.Profile{Model: profile.Model{Outputs: []profile.Tensor{
		{Name: "y", DType: "float32", Shape: []int64{2}}, {Name: "z", DType: "float32"},
	}}}}
	got := r.outputs()
	if len(got) != 2 || !slices.Equal(got[0].Shape, []int64{2}) || !slices.Equal(got[1].Shape, []int64{3}) || got[1].Name != "z" {
		t.Errorf("outputs %+v", got)
	}
	if again := r.outputs(); again != nil {
		t.Errorf("told a second time: %+v", again)
	}
}

// TestVerdictOfRun: the state of the computer and the passes contribute to the verdict of a real
// run.
func TestVerdictOfRun(t *testing.T) {
	t.Parallel()
	o := options()
	o.Threads, o.Runs = runtime.NumCPU()+1, 12
	p, err := profiled(t.Context(), chain("Sqrt", 1), o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Trust == nil || !slices.ContainsFunc(p.Trust.Doubts, func(d profile.Doubt) bool { return d.Code == profile.DoubtThreads }) {
		t.Errorf("more threads than processors: %+v", p.Trust)
	}
	// The steps and the gaps add up to the latency.
	if r := p.Reconcile; !(*r.GapsS >= 0) || !(*r.WallS >= *r.OperatorsS) || !(*r.WallS-*r.OperatorsS-*r.GapsS < 1e-12) {
		t.Errorf("%v s of %v s and gaps of %v s", *r.OperatorsS, *r.WallS, *r.GapsS)
	}
	// Times of layers are within their samples, and add up.
	sum := 0.0
	for _, l := range p.Layers {
		if m := l.Latency; !(*m.Median >= *m.Min) || !(*m.Median <= *m.Max) || *m.N != 12 || l.Calls != nil || l.Total != nil {
			t.Errorf("layer %d: %+v", l.Index, m)
		}
		sum += *l.Latency.Median
	}
	if d := sum - *p.Reconcile.OperatorsS; !(d <= 1e-15 && d >= -1e-15) {
		t.Errorf("layers add up to %v s, operators to %v s", sum, *p.Reconcile.OperatorsS)
	}
}

// TestMemoryCounter: the memory counter is ordered by time and repeats no value.
func TestMemoryCounter(t *testing.T) {
	t.Parallel()
	layers := []profile.Layer{{LiveBytes: new(int64(8))}, {LiveBytes: new(int64(16))}, {}}
	tl := &timeline.Timeline{Lanes: []timeline.Lane{
		{Starts: []float64{0, 5}, Durations: []float64{6, 1}, Iterations: []int32{0, 1}},
		{Starts: []float64{0, 1, 2, 5, 5.5}, Durations: make([]float64, 5), Layers: []int32{0, 2, 1, 0, 1}, Iterations: []int32{0, 0, 0, 1, 1}},
	}}
	memoryOverTime(tl, layers)
	c := tl.Counters[0]
	// The second inference begins before the first ends at 6: only its own end sets the counter
	// to zero.
	if d := cmp.Diff([]float64{0, 2, 6}, c.Times); d != "" {
		t.Errorf("times (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]float64{8, 16, 0}, c.Values); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
	few := &timeline.Timeline{Lanes: []timeline.Lane{{Starts: []float64{0}, Durations: []float64{1}, Iterations: []int32{0}}, {}}}
	if memoryOverTime(few, layers); few.Counters != nil {
		t.Errorf("a counter of one point: %+v", few.Counters)
	}
	memoryOverTime(nil, layers) // nothing was recorded
}
