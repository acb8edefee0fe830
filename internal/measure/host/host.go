package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Options says how to profile. The zero value uses one thread and the defaults of
// internal/measure/loop.
type Options struct {
	Feed       inputs.Options
	Threads    int
	Pin        bool // bind each worker to a processor
	Runs       int  // measured inferences of each pass, 0 for as many as fit Time
	Time       time.Duration
	WarmupTime time.Duration
	WarmupRuns int
	// Carry feeds outputs back as inputs of the next inference, by name.
	Carry []Carry
	// InPlace lists outputs that may be written to the memory of inputs, by name.
	InPlace []Carry
	// Exact computes quantise-dequantise patterns in floating point, as in the file, and rounds
	// float16 values after each operator.
	Exact bool
	// KeepAll computes every operator separately and keeps its outputs.
	KeepAll bool
	// Samples keeps every sample in the profile, and a timeline.
	Samples bool
	// MaxEvents keeps a sample of the timeline, which has so many operators, but one inference at
	// least. 0 keeps none without Samples, and with it up to [loop.MaxSpans].
	MaxEvents int
	// MaxMACs rejects models with more multiply-accumulates, 0 for no limit.
	MaxMACs int64
	// MaxLoop bounds loops without a known end, see [engine.Options.MaxLoop].
	MaxLoop time.Duration
	// Streams is the number of concurrent sessions, Rate the number of inferences per second that
	// are scheduled; 0 and 1 stream measure nothing more.
	Streams int
	Rate    float64
	// Cold also measures cold inferences, "" for none.
	Cold profile.Cold
	// Progress is called with the current phase and the progress from 0 to 1.
	Progress func(phase string, fraction float64)
	// Version of the program, for the record.
	Version string
	// LoadS is the time that opening the model took, in seconds, 0 if unknown.
	LoadS float64
	// Turn waits for this measurement's turn among others, see [loop.Options].
	Turn func(context.Context) error
	// Leased says that the caller holds the lease of internal/measure/loop.
	Leased bool
	// Static stops before anything is run, except for constant folding during planning.
	Static bool
	// AllBranches describes with Static all branches of the model as if each ran, for a record that
	// says which of them did.
	AllBranches bool
}

// Carry names an output of the model and the input that it is fed back to.
type Carry struct{ Output, Input string }

// TooLargeError reports that an inference needs more work than Options.MaxMACs allows.
type TooLargeError struct{ Limit int64 }

// Error states the limit in thousand millions.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("one inference takes more than %.0f G multiply-accumulates", float64(e.Limit)/1e9)
}

// Carries resolves names to positions in the graph's outputs and inputs. The error is an
// [inputs.OptionError].
func Carries(g *graph.Graph, cs []Carry) ([]engine.Carry, error) {
	find := func(ids []int, what, name string) (int, error) {
		for i, id := range ids {
			if id >= 0 && g.Values[id].Name == name {
				return i, nil
			}
		}
		return 0, &inputs.OptionError{Option: "carry", Text: fmt.Sprintf("the model has no %s %q", what, name)}
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

// Source measures a model on this computer.
type Source struct {
	Model *graph.Model
	// Identity returns the hashes of the model; nil leaves them out.
	Identity func() (*describe.Identity, error)
	Options  Options
}

var _ source.Source = (*Source)(nil)

// runner is one run of a source.
type runner struct {
	m     *graph.Model
	o     Options
	to    source.Sink
	ins   []*tensor.Tensor
	src   []inputs.Source // how the inputs were chosen
	s     *engine.Session
	plan  *plan.Plan
	slots []plan.Slot
	calls [][]count.Calls // of each slot, by the plan
	// found explains what was assumed of loops and branches, if nothing runs.
	found []profile.Finding
	// p is the description with everything that was sent since, for findings.
	p      *profile.Profile
	phases profile.Phases
	// timeline is the timeline that was sent, nil for none; origin is its time 0 by the clock of
	// internal/measure/loop, in nanoseconds.
	timeline *timeline.Timeline
	origin   int64
}

// Run implements [source.Source]. The error of a model that cannot be planned is returned before
// anything is described; later errors are of the run.
func (s *Source) Run(ctx context.Context, to source.Sink) error {
	r := &runner{m: s.Model, o: s.Options, to: to}
	r.progress("planning", 0)
	if err := r.describe(s.Identity); err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	if r.o.Static {
		return r.find(slices.Concat(r.static(), r.found))
	}
	defer r.s.Close()
	return r.measure(ctx)
}

// describe plans the model and reports what follows from that.
func (r *runner) describe(identity func() (*describe.Identity, error)) error {
	if r.o.LoadS > 0 {
		r.phases.LoadS = &r.o.LoadS
	}
	var err error
	if r.o.Static {
		// Elements of a large batch take minutes to generate.
		r.ins, r.src, err = inputs.Shapes(r.m, r.o.Feed)
	} else {
		r.ins, r.src, err = Inputs(r.m, r.o.Feed)
	}
	if err != nil {
		return err
	}
	if _, err := Carries(r.m.Main(), r.o.Carry); err != nil {
		return err
	}
	p, err := plan.Make(r.m, r.ins, plan.Options{Registry: operators.Registry(), MaxBytes: r.o.Feed.MaxBytes, Exact: r.o.Exact, Static: r.o.Static})
	if err != nil {
		return err
	}
	if err := inputs.CheckBatch(p, r.o.Feed); err != nil {
		return err
	}
	r.plan, r.slots = p, r.sized(p.Slots())
	if err := describe.Iterate(r.m, r.slots, r.o.Feed.Iterations); err != nil {
		return err
	}
	if r.p, err = describe.Model(p, r.slots, identity); err != nil {
		return err
	}
	describe.Fed(r.p, r.src)
	if r.o.Static {
		describe.WeightStatistics(r.p, r.m, r.slots)
	}
	r.p.Target = profile.Target{ID: "host", Kind: profile.TargetHost, Engine: "opmeter"}
	r.settings()
	if err := r.affordable(); err != nil {
		return err
	}
	return r.to.Send(profile.Event{Described: r.p})
}

// slowInputs is the size of inputs from which on they take longer to generate than a plan takes to
// make, in bytes.
const slowInputs = 64 << 20

// Inputs is [inputs.Inputs] for a model that is to run. Before it generates large inputs, it fails
// with an [op.LimitError] if the model needs more memory than the limit.
func Inputs(m *graph.Model, feed inputs.Options) ([]*tensor.Tensor, []inputs.Source, error) {
	if feed.MaxBytes > 0 {
		shapes, _, err := inputs.Shapes(m, feed)
		if err != nil {
			return nil, nil, err
		}
		need := 0
		for _, x := range shapes {
			n, _ := tensor.CheckShape(x.Type, x.Shape) // Shapes has checked it
			need += max(0, x.Type.Bytes(n))
		}
		if need >= slowInputs && need <= feed.MaxBytes {
			s, err := engine.New(m, shapes, engine.Options{Registry: operators.Registry(), MaxBytes: feed.MaxBytes, Static: true})
			if err != nil {
				return nil, nil, err
			}
			arena, _ := s.Memory()
			need += s.Held() + arena
			s.Close()
			if need > feed.MaxBytes {
				return nil, nil, fmt.Errorf("the model %w", &op.LimitError{Want: need, Limit: feed.MaxBytes})
			}
		}
	}
	return inputs.Inputs(m, feed)
}

// settings records the options.
func (r *runner) settings() {
	o, s := &r.o, &r.p.Settings
	*s = profile.Settings{
		Engine: "opmeter", EngineVersion: o.Version, KernelSet: simd.Current().String(), Threads: new(int64(max(o.Threads, 1))),
		Seed: new(o.Feed.Seed), Inputs: map[string]profile.InputSource{}, Exact: o.Exact,
	}
	if o.Feed.Batch > 0 {
		s.Batch = new(int64(o.Feed.Batch))
	}
	for _, c := range o.Carry {
		if s.Carry == nil {
			s.Carry = map[string]string{}
		}
		s.Carry[c.Output] = c.Input
	}
	for i, id := range r.m.Main().Inputs {
		in := profile.InputSource{Kind: r.src[i].Kind, File: r.src[i].File, Shape: make([]int64, len(r.ins[i].Shape))}
		if r.ins[i].Known() {
			in.SHA256 = hash(r.ins[i].Data)
		}
		for k, d := range r.ins[i].Shape {
			in.Shape[k] = int64(d)
		}
		s.Inputs[r.m.Main().Values[id].Name] = in
		if s.InputKind == "" || s.InputKind == "made" || in.Kind == "file" {
			s.InputKind = in.Kind
		}
	}
	if o.Static {
		return
	}
	if o.Runs > 0 {
		s.Runs = new(int64(o.Runs))
	}
	if o.Time > 0 {
		s.TimeS = new(o.Time.Seconds())
	}
	load := o.load()
	load.Describe(s)
	s.Passes, s.GarbageCollector, s.ReferenceLoop = "abba", "off", loop.ReferenceName
}

func hash(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// affordable rejects models that would keep the machine busy for longer than Options.MaxMACs
// allows.
func (r *runner) affordable() error {
	if r.o.MaxMACs == 0 {
		return nil
	}
	if sum, ok := r.p.Select(func(l *profile.Layer) bool { return !l.Constant }).Sum("macs"); ok && sum > float64(r.o.MaxMACs) {
		return &TooLargeError{r.o.MaxMACs}
	}
	return nil
}

// prepare makes the session and reports how it computes each layer, and its memory.
func (r *runner) prepare() error {
	var pin func(worker int)
	if r.o.Pin {
		if cpus := machine.PickCPUs(max(r.o.Threads, 1)); cpus != nil {
			pin = func(w int) { _ = machine.Pin(cpus[w]) }
			for _, c := range cpus {
				r.p.Settings.PinnedCPUs = append(r.p.Settings.PinnedCPUs, int64(c))
			}
		}
	}
	o, err := r.engineOptions()
	if err != nil {
		return err
	}
	o.Pin = pin
	r.calls = r.calls[:0]
	for i := range r.slots {
		r.calls = append(r.calls, r.slots[i].Calls)
	}
	r.slots = nil // of the description: the session's replace them
	if len(r.m.Graphs) == 1 {
		r.plan = nil // the session plans the main graph itself; only bodies may never run
	}
	t := time.Now()
	if r.s, err = engine.New(r.m, r.ins, o); err != nil {
		return err
	}
	if !r.o.Static {
		r.phases.PlanS = new(time.Since(t).Seconds())
	}
	r.slots = r.list()
	if err := r.refine(); err != nil {
		return err
	}
	n := r.memory()
	if r.o.Static { // nothing will run: the plans of a large model take much memory
		if !r.o.AllBranches {
			if r.found, err = r.assume(); err != nil {
				return err
			}
		}
		r.s.Close()
		r.s, r.slots = nil, nil
	}
	return r.note(n)
}

// list describes the steps of all graphs by the engine's last run, or as planned if a graph never
// ran. The plan knows how often loops run.
func (r *runner) list() []plan.Slot {
	slots := plan.List(r.m, func(graph int) []plan.Step {
		if s := r.s.GraphSteps(graph); s != nil {
			return s
		}
		return r.plan.Steps(graph)
	})
	for i := range slots { // the list has the order of the model, whoever planned it
		slots[i].Calls = r.calls[i]
	}
	return r.sized(slots)
}

// totalInput is the position of the input of GroupQueryAttention that says how much of its buffer
// counts.
const totalInput = 6

// sized gives attention in a buffer the number of keys, and branches their choice, if an input of
// the model has it: the plan describes inputs without their elements.
func (r *runner) sized(slots []plan.Slot) []plan.Slot {
	for i := range slots {
		s := &slots[i]
		switch {
		case s.Graph != 0:
		case s.Node.Op == "GroupQueryAttention" && len(s.In) > totalInput && len(s.Node.Inputs) > totalInput:
			if x := r.input(s.Node.Inputs[totalInput]); x != nil {
				s.In = slices.Clone(s.In)
				s.In[totalInput] = x
			}
		case s.Node.Op == "If" && len(s.Node.Inputs) == 1 && !r.o.AllBranches:
			if x := r.filled(s.Node.Inputs[0]); x != nil && x.Type == tensor.Bool {
				s.Calls = chosen(s.Node, s.Calls, x.Data[0] != 0)
			}
		}
	}
	return slots
}

// input returns an input of the model with its elements, nil for other values.
func (r *runner) input(id int) *tensor.Tensor {
	if k := slices.Index(r.m.Main().Inputs, id); k >= 0 && r.ins[k].Known() {
		return r.ins[k]
	}
	return r.filled(id)
}

// filled returns an input with one element that the options set, nil for others.
func (r *runner) filled(id int) *tensor.Tensor {
	g := r.m.Main()
	k := slices.Index(g.Inputs, id)
	if k < 0 || r.ins[k].Type.Bits() == 0 || tensor.Elements(r.ins[k].Shape) != 1 {
		return nil
	}
	c := r.o.Feed.Overrides.Fill[g.Values[id].Name].Const
	if c == nil {
		return nil
	}
	x := tensor.New(r.ins[k].Type, r.ins[k].Shape...)
	tensor.Put(x, 0, *c)
	return x
}

// chosen says how often the branches of a node run whose condition is known.
func chosen(n *graph.Node, calls []count.Calls, then bool) []count.Calls {
	calls = slices.Clone(calls)
	first, ok := n.Attrs.Graph("then_branch")
	for i := range calls {
		var times int64
		if ok && (calls[i].Graph == first) == then {
			times = 1
		}
		calls[i].Times = &times
	}
	return calls
}

// assume reports the passes through graphs that the model does not determine, and explains them.
func (r *runner) assume() ([]profile.Finding, error) {
	a := describe.Assume(r.m, r.slots, func(i int) float64 {
		if w := describe.Work(r.m, &r.slots[i]); w.Ops != nil {
			return float64(*w.Ops)
		}
		return 0
	})
	passes := a.Passes()
	for i := range r.slots {
		l, n := &r.p.Layers[i], passes[r.slots[i].Graph]
		var e *profile.Event
		switch {
		case l.Parent == nil:
		case n == 0:
			l.State, l.Cause = profile.NotReached, a.Unreached(r.slots[i].Graph)
			e = &profile.Event{Refined: &profile.Refined{Layer: int64(i), State: l.State, Cause: l.Cause}}
		case l.Calls == nil && n != 1:
			e = &profile.Event{Counted: &profile.Figure{Layer: new(int64(i)), Quantity: "calls", Metric: profile.Value(profile.Counted, n, "one iteration of loops that depend on data")}}
		}
		if e != nil {
			if err := r.send(*e); err != nil {
				return nil, err
			}
		}
	}
	return a.Findings(r.p, "model", profile.Warning), nil
}

// engineOptions returns how sessions are made.
func (r *runner) engineOptions() (engine.Options, error) {
	carry, err := Carries(r.m.Main(), r.o.Carry)
	if err != nil {
		return engine.Options{}, err
	}
	inPlace, err := Carries(r.m.Main(), r.o.InPlace)
	return engine.Options{Registry: operators.Registry(), Threads: r.o.Threads, KeepAll: r.o.KeepAll, Carry: carry, InPlace: inPlace, Exact: r.o.Exact, MaxBytes: r.o.Feed.MaxBytes, Held: engine.InputBytes(r.ins), MaxLoop: r.o.MaxLoop, Static: r.o.Static}, err
}

// send passes an event on.
func (r *runner) send(e profile.Event) error { return r.to.Send(e) }

// note reports parts of the profile and updates the runner's copy.
func (r *runner) note(n profile.Noted) error {
	if n.Memory != nil {
		r.p.Memory = n.Memory
	}
	if n.Host != nil {
		r.p.Host = n.Host
	}
	if n.Reconcile != nil {
		r.p.Reconcile = n.Reconcile
	}
	if n.Trust != nil {
		r.p.Trust = n.Trust
	}
	if n.Timeline != nil {
		r.timeline = n.Timeline
	}
	n.Settings, n.Phases = new(r.p.Settings), new(r.phases)
	return r.send(profile.Event{Noted: &n})
}

// find reports findings, problems first.
func (r *runner) find(fs []profile.Finding) error {
	sorting.Stable(fs, func(a, b profile.Finding) int { return rank(a) - rank(b) })
	for i := range fs {
		if err := r.send(profile.Event{Found: &fs[i]}); err != nil {
			return err
		}
	}
	return nil
}

// rank puts problems before everything else.
func rank(f profile.Finding) int {
	if f.Severity == profile.Problem {
		return 0
	}
	return 1
}

// disable removes the innermost node that an error names from the plan, or the enclosing one if
// that was already removed. Of nested endless loops it removes the outermost, because it would
// wait for the inner one in every iteration.
func (r *runner) disable(err error) bool { return disable(r.s, err) }

func disable(s *engine.Session, err error) bool {
	var nodes []*engine.NodeError
	for ne, ok := errors.AsType[*engine.NodeError](err); ok; ne, ok = errors.AsType[*engine.NodeError](ne.Err) {
		nodes = append(nodes, ne)
	}
	if loop, ok := errors.AsType[*op.LoopError](err); ok && len(nodes) > 0 {
		nodes[0].Err = loop
	} else {
		slices.Reverse(nodes)
	}
	for _, ne := range nodes {
		if s.Disable(ne) {
			return true
		}
	}
	return false
}

func (r *runner) progress(phase string, f float64) {
	if r.o.Progress != nil {
		r.o.Progress(phase, f)
	}
}
