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
	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/internal/memplan"
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

// known returns a step's inputs, constants with their elements.
func known(g *graph.Graph, st engine.Step) []*tensor.Tensor {
	in := slices.Clone(st.In)
	for k, id := range st.Node.Inputs {
		if id >= 0 && k < len(in) && g.Values[id].Const != nil {
			in[k] = g.Values[id].Const
		}
	}
	return in
}

// staticCalls sets how often layers of bodies run where the model alone tells.
func (b *builder) staticCalls() {
	times := make([]float64, len(b.slots))
	for i, s := range b.slots {
		times[i] = 1
		if s.parent < 0 {
			continue
		}
		p := b.slots[s.parent].step
		times[i] = math.NaN()
		for _, c := range count.Bodies(b.m, p.Node, known(b.m.Graphs[p.Graph], p), p.Out) {
			if c.Graph == s.step.Graph && c.Times != nil {
				times[i] = times[s.parent] * float64(*c.Times)
			}
		}
		if c := times[i]; !math.IsNaN(c) && c != 1 {
			b.p.Layers[i].Calls = &c
		}
	}
}

// Profile runs the model and measures every operator. When ctx ends early the
// profile holds what was measured and says so. An error means that there is
// nothing to show beyond the static counts, which the profile then holds.
func Profile(ctx context.Context, m *graph.Model, o Options) (*profile.Profile, error) {
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
			Threads: profile.Ptr(int64(max(o.Threads, 1))),
		},
	}
	if o.Feed.Batch > 0 {
		p.Settings.Batch = profile.Ptr(int64(o.Feed.Batch))
	}
	for _, c := range o.Carry {
		if p.Settings.Carry == nil {
			p.Settings.Carry = map[string]string{}
		}
		p.Settings.Carry[c.Output] = c.Input
	}
	if o.LoadS > 0 {
		p.Phases = &profile.Phases{LoadS: profile.Ptr(o.LoadS)}
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
		if cpus := measure.PickCPUs(max(b.o.Threads, 1)); cpus != nil {
			pin = func(w int) { _ = measure.Pin(cpus[w]) }
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
	b.phases().PlanS = profile.Ptr(time.Since(t).Seconds())
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
	if n := measure.MemoryBytes(); n != nil && *n > 0 {
		return int(*n / 2)
	}
	return 8 << 30
}

func (b *builder) recordInputs(ins []*tensor.Tensor, src []feed.Source) {
	b.p.Settings.Seed = profile.Ptr(b.o.Feed.Seed)
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
	machine := measure.NewMachine(clock)
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
	b.phases().FirstRunS = profile.Ptr(first)

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
	var cpu *int
	if len(b.p.Settings.PinnedCPUs) > 0 {
		cpu = profile.Ptr(int(b.p.Settings.PinnedCPUs[0]))
	}
	machine.Begin()
	res, err := measure.Measure(ctx, measure.Options{
		Clock: clock, Runs: o.Runs, Time: o.Time, WarmupTime: o.WarmupTime, WarmupRuns: o.WarmupRuns, CPU: cpu,
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
	b.p.Host = machine.End()
	b.processPeak = measure.ProcessPeakBytes() // before anything that is not the model's
	b.record(res, rec, calls)
	if events != nil {
		b.p.Timeline = events.timeline()
	}
	b.peaks(ctx)
	if !math.IsNaN(res.AllocatedBytes) && res.AllocatedBytes >= 0 {
		b.allocated = profile.Ptr(int64(math.Round(res.AllocatedBytes)))
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

// record moves what was measured into the profile.
func (b *builder) record(res *measure.Result, rec *measure.Recorder, calls []int64) {
	p := b.p
	p.Settings.Runs = profile.Ptr(int64(b.o.Runs))
	if b.o.Runs == 0 {
		p.Settings.Runs = nil
	}
	if b.o.Time > 0 {
		p.Settings.TimeS = profile.Ptr(b.o.Time.Seconds())
	}
	p.Settings.Passes = "abba"
	p.Settings.GarbageCollector = "off"
	p.Totals.Latency = res.Latency()
	b.phases().Warmup = &profile.Warmup{
		TimeS: profile.Ptr(res.WarmupTime), Count: profile.Ptr(int64(res.WarmupRuns)),
		Steady: res.Stability.Steady, Reason: res.Stability.Reason,
	}
	p.Host.GCDuringRuns = profile.Ptr(int64(res.GC))
	if b.o.Samples {
		p.Totals.LatencySamples = res.Plain
	}
	b.findRun(res)
	n := rec.Runs()
	if n == 0 {
		return
	}
	for i := range p.Layers {
		l, st := &p.Layers[i], b.slots[i].step
		if st.State != engine.Runs {
			continue
		}
		l.Latency = rec.Metric(i)
		if c := float64(calls[i]) / float64(n); c != 1 {
			l.Calls = profile.Ptr(c)
		}
		if b.o.Samples {
			l.Samples = rec.Samples(i)
		}
	}
	b.shares()
	b.totalsOfBodies(rec)
	b.reconcile(res, rec)
}

// shares divides the time among the layers by their medians, which a few
// disturbed runs do not move. Layers that are not called equally often in every
// run (branches) are taken by their means.
func (b *builder) shares() {
	times := make([]float64, len(b.p.Layers))
	var sum float64
	for i := range b.p.Layers {
		l := &b.p.Layers[i]
		if l.Latency == nil {
			continue
		}
		if m := l.Latency; l.Calls != nil && *l.Calls != math.Trunc(*l.Calls) && m.Mean != nil {
			times[i] = *m.Mean
		} else if v, ok := m.Best(); ok {
			times[i] = v
		}
		sum += times[i]
	}
	if sum <= 0 {
		return
	}
	for i := range b.p.Layers {
		if l := &b.p.Layers[i]; l.Latency != nil {
			l.Share = profile.Ptr(times[i] / sum)
		}
	}
}

// totalsOfBodies gives control-flow layers their time with what they run.
func (b *builder) totalsOfBodies(rec *measure.Recorder) {
	total := make([]float64, len(b.slots))
	for i := len(b.slots) - 1; i >= 0; i-- {
		if b.slots[i].step.State == engine.Runs {
			total[i] += rec.Mean(i)
		}
		if p := b.slots[i].parent; p >= 0 {
			total[p] += total[i]
		}
	}
	for i, s := range b.slots {
		if l := &b.p.Layers[i]; len(s.bodies) > 0 && l.Latency != nil {
			l.Self = l.Latency
			l.Total = &profile.Metric{Kind: profile.Measured, Mean: profile.Ptr(total[i]), Method: "sum of the means of the layer and those inside it"}
		}
	}
}

func (b *builder) reconcile(res *measure.Result, rec *measure.Recorder) {
	if len(res.Profiled) == 0 || len(res.Plain) == 0 {
		return
	}
	_, ops, _ := rec.Totals()
	wall := measure.Mean(res.Profiled)
	r := &profile.Reconcile{
		WallS: profile.Ptr(wall), OperatorsS: profile.Ptr(ops), GapsS: profile.Ptr(wall - ops),
		PlainS: profile.Ptr(measure.Median(res.Plain)), ProfiledS: profile.Ptr(measure.Median(res.Profiled)),
		OverheadS: res.Overhead(),
	}
	r.OverheadPerOperatorS = res.Clock.EventCost()
	b.p.Reconcile = r
}

func (b *builder) layers() {
	b.p.Layers = make([]profile.Layer, len(b.slots))
	for i, s := range b.slots {
		b.p.Layers[i] = b.layer(i, s)
	}
}

// totals turns the counts of layers, which are of one call until here, into those of
// one inference, and sums what is known. Work inside bodies counts once where it is
// not known how often they run.
func (b *builder) totals() {
	t := &b.p.Totals
	t.Layers = profile.Ptr(int64(len(b.p.Layers)))
	var unsupported, uncounted int64
	for i := range b.p.Layers {
		l := &b.p.Layers[i]
		if l.Unsupported {
			unsupported++
		}
		if l.Ops == nil && !l.Folded && (l.Calls == nil || *l.Calls > 0) {
			uncounted++
		}
		times := 1.0
		if l.Calls != nil {
			times = *l.Calls
		}
		if l.Folded {
			times = 0
		}
		for _, x := range []struct{ to, from **int64 }{
			{&t.Ops, &l.Ops},
			{&t.MACs, &l.MACs},
			{&t.MACsExecuted, &l.MACsExecuted},
			{&t.MLTKOps, &l.MLTKOps},
			{&t.MLTKMACs, &l.MLTKMACs},
			{&t.BytesRead, &l.BytesRead},
			{&t.BytesWritten, &l.BytesWritten},
		} {
			if *x.from == nil {
				continue
			}
			v := int64(math.Round(float64(**x.from) * times))
			if !l.Folded {
				*x.from = profile.Ptr(v)
			}
			if *x.to != nil {
				v += **x.to
			}
			*x.to = &v
		}
	}
	t.UnsupportedLayers, t.UncountedLayers = &unsupported, &uncounted
	t.Params, t.WeightsBytes = parameters(b.m)
}

// parameters counts the elements of all constants that a node reads, each once.
func parameters(m *graph.Model) (params, bytes *int64) {
	var n, size int64
	for _, g := range m.Graphs {
		used := make([]bool, len(g.Values))
		for _, nd := range g.Nodes {
			for _, id := range nd.Inputs {
				if id >= 0 {
					used[id] = true
				}
			}
		}
		for _, v := range g.Values {
			if v.Const == nil || v.Variable || !used[v.ID] {
				continue
			}
			n += int64(v.Const.Len())
			if v.Sparse != nil {
				size += int64(v.Sparse.StoredBytes)
			} else {
				size += int64(v.Const.Bytes())
			}
		}
	}
	return &n, &size
}

func (b *builder) memory() {
	if b.processPeak == nil {
		b.processPeak = measure.ProcessPeakBytes()
	}
	arena, _ := b.s.Memory()
	scratch, peak := 0, 0
	for _, s := range b.slots {
		scratch += s.step.Scratch
	}
	mem := &profile.Memory{
		ArenaBytes: profile.Ptr(int64(arena)), Planner: "greedy by size", AlignBytes: profile.Ptr(int64(64)),
		ScratchBytes: profile.Ptr(int64(scratch)), ProcessPeakBytes: b.processPeak, AllocatedPerRunBytes: b.allocated,
	}
	plan := b.s.Plan()
	live := make([]int, len(b.m.Main().Nodes)+2)
	ends := map[[2]int]int{} // bytes of what ends at an offset and step
	for _, pl := range plan {
		if pl.First < pl.Last {
			ends[[2]int{pl.Offset, pl.Last}] = pl.Bytes
		}
	}
	for _, pl := range plan {
		// A result that takes its operand's place shares the bytes for one step.
		if pl.First < len(live) {
			live[pl.First] -= min(ends[[2]int{pl.Offset, pl.First}], pl.Bytes)
		}
		mem.Plan = append(mem.Plan, profile.Placement{
			Name: b.m.Main().Values[pl.Value].Name, Bytes: int64(pl.Bytes), Offset: int64(pl.Offset), First: int64(pl.First), Last: int64(pl.Last),
		})
		for i := pl.First; i <= pl.Last && i < len(live); i++ {
			live[i] += pl.Bytes
		}
	}
	if len(b.slots) > len(b.m.Main().Nodes) { // layers of bodies stand between
		for i, s := range b.slots {
			if s.step.Graph == 0 {
				mem.StepLayers = append(mem.StepLayers, int64(i))
			}
		}
	}
	if len(plan) > 0 {
		peak = slices.Max(live)
		b.live(live)
	}
	mem.PeakBytes = profile.Ptr(int64(peak))
	mem.TFLMArenaBytes = tflmArena(b.m)
	b.p.Memory = mem
	b.p.Totals.RAMBytes = profile.Ptr(int64(arena + scratch))
	if b.m.FileBytes > 0 {
		b.p.Totals.FlashBytes = profile.Ptr(b.m.FileBytes)
	}
}

// live notes the bytes in use while each node of the main graph runs. Layers of
// bodies have arenas of their own, and folded or fused ones do not run.
func (b *builder) live(bytes []int) {
	for i, s := range b.slots {
		if l := &b.p.Layers[i]; s.step.Graph == 0 && !l.Folded && l.FusedInto == nil {
			l.LiveBytes = profile.Ptr(int64(bytes[s.step.Node.Index]))
		}
	}
}

// tflmArena is what TensorFlow Lite Micro would plan, nil where its planner does
// not apply or the scratch memory of an operator is not known.
func tflmArena(m *graph.Model) *int64 {
	if m.Format != "tflite" {
		return nil
	}
	scratch, unknown := memplan.ReferenceScratch(m)
	if len(unknown) > 0 {
		return nil
	}
	p, err := memplan.TFLM(m, scratch)
	if err != nil {
		return nil
	}
	return profile.Ptr(int64(p.Bytes))
}

func describeModel(m *graph.Model) profile.Model {
	d := profile.Model{
		Name: m.ShortName(), Path: m.Path, Format: m.Format, Producer: m.Producer, Description: m.Description, Warnings: m.Warnings,
	}
	if m.FileBytes > 0 {
		d.FileBytes = profile.Ptr(m.FileBytes)
	}
	if m.IRVersion > 0 {
		d.FormatVersion = profile.Ptr(int64(m.IRVersion))
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
