package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/count"
	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/machine"
	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/internal/operators"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/profile"
)

// Options says how to profile. The zero value takes one thread and the defaults
// of internal/measure.
type Options struct {
	Feed       feed.Options
	Threads    int
	Pin        bool // bind each worker to a processor
	Runs       int  // measured inferences of each pass, 0 for as many as fit Time
	Time       time.Duration
	WarmupTime time.Duration
	WarmupRuns int
	// Carry feeds outputs back as inputs of the next inference, by name.
	Carry   []Carry
	Samples bool // keep every sample in the profile, and a timeline
	// MaxMACs refuses models with more multiply-accumulates, 0 for no limit.
	MaxMACs int64
	// Progress is told what is being done and how far it is, from 0 to 1.
	Progress func(phase string, fraction float64)
	// Version of the program, for the record.
	Version string
	// LoadS is the time that opening the model took, in seconds, 0 if not known.
	LoadS float64
}

// Carry names an output of the model and the input that it becomes.
type Carry struct{ Output, Input string }

// Carries resolves names to positions in the graph's outputs and inputs.
func Carries(g *graph.Graph, cs []Carry) ([]engine.Carry, error) {
	find := func(ids []int, what, name string) (int, error) {
		for i, id := range ids {
			if id >= 0 && g.Values[id].Name == name {
				return i, nil
			}
		}
		return 0, fmt.Errorf("cannot carry: the model has no %s %q", what, name)
	}
	out := make([]engine.Carry, len(cs))
	for i, c := range cs {
		var err error
		if out[i].Output, err = find(g.Outputs, "output", c.Output); err != nil {
			return nil, err
		}
		if out[i].Input, err = find(g.Inputs, "input", c.Input); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// builder puts a profile together.
type builder struct {
	m     *graph.Model
	o     Options
	p     *profile.Profile
	s     *engine.Session
	slots []slot
	// allocated is the heap memory that one run takes, in bytes.
	allocated *int64
	// processPeak is the largest resident size of the process until the runs ended.
	processPeak *int64
	// zeros is the number of weights that may still be looked at for zeros.
	zeros int64
}

// Count makes a profile of what follows from the model alone: shapes, work,
// parameters, memory plan. Nothing is run but what planning folds.
func Count(m *graph.Model, o Options) (*profile.Profile, error) {
	b := &builder{m: m, o: o, p: newProfile(m, o), zeros: count.ZerosBudget}
	if err := b.plan(); err != nil {
		return b.p, err
	}
	defer b.s.Close()
	b.layers()
	b.outputs()
	b.staticCalls()
	b.totals()
	b.memory()
	b.findStatic()
	return b.p, nil
}

// Profile runs the model and measures every operator. When ctx ends early the
// profile holds what was measured and says so. An error means that there is
// nothing to show beyond the static counts, which the profile then holds.
//
// Profiles of one process are made one after the other, planning and first run
// included, since each needs the processors to itself.
func Profile(ctx context.Context, m *graph.Model, o Options) (*profile.Profile, error) {
	// Without the lease the context has ended: nothing will run, and the model is
	// described all the same.
	if release, err := measure.Lease(ctx); err == nil {
		defer release()
	}
	b := &builder{m: m, o: o, p: newProfile(m, o), zeros: count.ZerosBudget}
	if err := b.plan(); err != nil {
		return b.p, err
	}
	defer b.s.Close()
	err := b.measure(ctx)
	b.totals()
	b.memory()
	memoryOverTime(b.p)
	b.findStatic()
	b.findMeasured()
	slices.SortStableFunc(b.p.Findings, func(x, y profile.Finding) int {
		return cmp.Compare(rank(x), rank(y))
	})
	if err != nil && ctx.Err() == nil {
		return b.p, err
	}
	return b.p, nil
}

// rank puts problems before everything else.
func rank(f profile.Finding) int {
	if f.Severity == profile.Problem {
		return 0
	}
	return 1
}

func newProfile(m *graph.Model, o Options) *profile.Profile {
	p := &profile.Profile{
		Schema:  profile.SchemaV1,
		Created: time.Now().UTC().Format(time.RFC3339),
		Model:   describeModel(m),
		Target:  profile.Target{ID: "host", Kind: profile.TargetHost, Engine: "opmeter"},
		Settings: profile.Settings{
			Version: o.Version, Engine: "opmeter", EngineVersion: o.Version, KernelSet: "go",
			Threads: new(int64(max(o.Threads, 1))),
		},
	}
	if o.Feed.Batch > 0 {
		p.Settings.Batch = new(int64(o.Feed.Batch))
	}
	for _, c := range o.Carry {
		if p.Settings.Carry == nil {
			p.Settings.Carry = map[string]string{}
		}
		p.Settings.Carry[c.Output] = c.Input
	}
	if o.LoadS > 0 {
		p.Phases = &profile.Phases{LoadS: new(o.LoadS)}
	}
	return p
}

func (b *builder) phases() *profile.Phases {
	if b.p.Phases == nil {
		b.p.Phases = &profile.Phases{}
	}
	return b.p.Phases
}

// plan makes inputs and session.
func (b *builder) plan() error {
	limit := MemoryLimit()
	b.o.Feed.MaxBytes = limit
	ins, src, err := feed.Inputs(b.m.Main(), b.o.Feed)
	if err != nil {
		return err
	}
	b.recordInputs(ins, src)
	var pin func(worker int)
	if b.o.Pin {
		if cpus := machine.PickCPUs(max(b.o.Threads, 1)); cpus != nil {
			pin = func(w int) { _ = machine.Pin(cpus[w]) }
			for _, c := range cpus {
				b.p.Settings.PinnedCPUs = append(b.p.Settings.PinnedCPUs, int64(c))
			}
		}
	}
	carry, err := Carries(b.m.Main(), b.o.Carry)
	if err != nil {
		return err
	}
	t := time.Now()
	b.s, err = engine.New(b.m, ins, engine.Options{Registry: operators.Registry(), Threads: b.o.Threads, Pin: pin, Carry: carry, MaxBytes: limit})
	if err != nil {
		return err
	}
	b.phases().PlanS = new(time.Since(t).Seconds())
	b.slots = slots(b.s)
	return b.affordable()
}

// affordable refuses models that would keep the machine busy for longer than
// Options.MaxMACs allows.
func (b *builder) affordable() error {
	if b.o.MaxMACs == 0 {
		return nil
	}
	var sum int64
	for _, s := range b.slots {
		if s.step.State != engine.Runs {
			continue
		}
		w := count.Count(b.m, b.m.Graphs[s.step.Graph], s.step.Node, s.step.In, s.step.Out)
		if w.MACs == nil {
			continue
		}
		if sum += *w.MACs; sum > b.o.MaxMACs || sum < 0 {
			b.s.Close()
			return fmt.Errorf("one inference takes more than %.0f G multiply-accumulates, too long for a list: profile this model alone", float64(b.o.MaxMACs)/1e9)
		}
	}
	return nil
}

// MemoryLimit is what a model's values may take, in bytes: half of this
// computer's memory, or 8 GiB where that is not known.
func MemoryLimit() int {
	if n := machine.MemoryBytes(); n != nil && *n > 0 {
		return int(*n / 2)
	}
	return 8 << 30
}

func (b *builder) recordInputs(ins []*tensor.Tensor, src []feed.Source) {
	b.p.Settings.Seed = new(b.o.Feed.Seed)
	b.p.Settings.Inputs = map[string]profile.InputSource{}
	for i, id := range b.m.Main().Inputs {
		name := b.m.Main().Values[id].Name
		s := profile.InputSource{Kind: src[i].Kind, File: src[i].File, Shape: dims(ins[i].Shape), SHA256: hash(ins[i].Data)}
		b.p.Settings.Inputs[name] = s
		if b.p.Settings.InputKind == "" || s.Kind == "file" {
			b.p.Settings.InputKind = s.Kind
		}
		b.p.Model.Inputs = append(b.p.Model.Inputs, port(b.m.Main(), id, ins[i]))
	}
}

// firstRun runs once. A node that fails is taken out of the plan, so that the
// rest can be measured.
func (b *builder) firstRun(ctx context.Context) error {
	for {
		err := b.s.Run(ctx)
		if err == nil || !b.disable(err) {
			return err
		}
	}
}

// disable takes the innermost node that an error names out of the plan, or the
// next one around it where that has been done before.
func (b *builder) disable(err error) bool {
	var nodes []*engine.NodeError
	for ne := (*engine.NodeError)(nil); errors.As(err, &ne); err = ne.Err {
		nodes = append(nodes, ne)
	}
	for _, ne := range slices.Backward(nodes) {
		if b.s.Disable(ne) {
			return true
		}
	}
	return false
}

func (b *builder) measure(ctx context.Context) error {
	o := b.o
	clock := measure.NewClock()
	watch := machine.NewWatch()
	b.progress("first run", 0)
	t := time.Now()
	err := b.firstRun(ctx)
	first := time.Since(t).Seconds()
	b.slots = slots(b.s) // bodies are planned now, dynamic shapes known
	b.layers()
	b.outputs()
	if err != nil {
		b.stop(ctx, err)
		return err
	}
	if err := b.nothing(); err != nil {
		return err
	}
	b.phases().FirstRunS = new(first)

	work := newClockwork(b.slots)
	// Rows beyond the recorder's bound are sampled.
	rec := measure.NewRecorder(len(b.slots), 4096)
	tm := b.s.NewTiming()
	var events *recording
	if o.Samples {
		events = newRecording(b.slots, len(b.m.Main().Nodes), tm)
	}
	calls := make([]int64, len(b.slots))
	run := func() error { return b.s.Run(ctx) }
	var bind func() (restore func(), err error)
	if len(b.p.Settings.PinnedCPUs) > 0 {
		cpu := int(b.p.Settings.PinnedCPUs[0])
		bind = func() (func(), error) { return machine.Bind(cpu) }
	}
	watch.Begin()
	res, err := measure.Measure(ctx, measure.Options{
		Leased: true, Clock: clock, Runs: o.Runs, Time: o.Time, WarmupTime: o.WarmupTime, WarmupRuns: o.WarmupRuns, Bind: bind,
		Instrumented: func() error { return b.s.RunTimed(ctx, tm) },
		AfterInstrumented: func() {
			work.read(tm)
			rec.Add(work.self, tm.Bounds[len(tm.Bounds)-1]-tm.Bounds[0])
			if events != nil {
				events.add(tm)
			}
			for i, n := range work.calls {
				calls[i] += n
			}
		},
		Progress: func(f float64) { b.progress("measuring", f) },
	}, run)
	b.p.Host = watch.End()
	b.p.Host.ClockCostS, b.p.Host.ClockResolutionS = new(clock.Cost), new(clock.Resolution)
	b.processPeak = machine.ProcessPeakBytes() // before anything that is not the model's
	b.record(res, rec, calls)
	if events != nil {
		b.p.Timeline = events.timeline()
	}
	b.peaks(ctx)
	if !math.IsNaN(res.AllocatedBytes) && res.AllocatedBytes >= 0 {
		b.allocated = new(int64(math.Round(res.AllocatedBytes)))
	}
	if err != nil {
		b.stop(ctx, err)
	}
	return err
}

// nothing fails when no operator runs because the model contradicts itself.
// Operators that the engine merely lacks are listed instead.
func (b *builder) nothing() error {
	var failed *slot
	for i := range b.slots {
		switch s := &b.slots[i]; s.step.State {
		case engine.Runs:
			return nil
		case engine.Failed:
			if failed == nil {
				failed = s
			}
		}
	}
	if failed == nil {
		return nil
	}
	st := failed.step
	return &engine.NodeError{Graph: st.Graph, Node: st.Node, Err: st.Err}
}

func (b *builder) outputs() {
	for i, id := range b.m.Main().Outputs {
		if id < 0 {
			continue
		}
		t := b.s.Output(i)
		if t != nil && t.Type == tensor.Invalid {
			t = nil // made by a run
		}
		b.p.Model.Outputs = append(b.p.Model.Outputs, port(b.m.Main(), id, t))
	}
}

func (b *builder) progress(phase string, f float64) {
	if b.o.Progress != nil {
		b.o.Progress(phase, f)
	}
}

// stop notes why the run ended early.
func (b *builder) stop(ctx context.Context, err error) {
	if ctx.Err() != nil {
		b.p.Incomplete = "stopped before all runs were done; figures are of the runs until then"
		if c := context.Cause(ctx); c != nil && !errors.Is(c, context.Canceled) && !errors.Is(c, context.DeadlineExceeded) {
			b.p.Incomplete = c.Error()
		}
		return
	}
	b.p.Incomplete = err.Error()
}

func (b *builder) layers() {
	b.p.Layers = make([]profile.Layer, len(b.slots))
	for i, s := range b.slots {
		b.p.Layers[i] = b.layer(i, s)
	}
}

func describeModel(m *graph.Model) profile.Model {
	d := profile.Model{
		Name: m.ShortName(), Path: m.Path, Format: m.Format, Producer: m.Producer, Description: m.Description, Warnings: m.Warnings,
	}
	if m.FileBytes > 0 {
		d.FileBytes = new(m.FileBytes)
	}
	if m.IRVersion > 0 {
		d.FormatVersion = new(int64(m.IRVersion))
	}
	for dom, v := range m.Opsets {
		if d.Opsets == nil {
			d.Opsets = map[string]int64{}
		}
		if dom == "" {
			dom = "ai.onnx"
		}
		d.Opsets[dom] = int64(v)
	}
	return d
}
