package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/measure/loadfigures"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// Options configures a measurement with an external engine.
type Options struct {
	// Helper is the program opmeter-engine.
	Helper string
	// Request is sent to the child. Its folder and inputs are in the task.
	Request Request
	// Reference names the reference loop of fixed work that is interleaved with the runs.
	Reference string
	// Model is the static profile of the model: a copy of it is completed.
	Model *profile.Profile
	// Assumed is the same with the branches and iterations that are assumed where they depend on
	// data, and findings that say so. It stands for an engine that reports no operators. nil
	// stands for Model.
	Assumed *profile.Profile
	// Turn is this measurement's place among interleaved ones, nil if it is the only one. The caller
	// has waited for the first turn, in which the engine starts and loads, and leaves at the end.
	Turn *Turn
	// blocks connects a [Timer] with the child, nil without one.
	blocks *exchange
	// Accept checks the version that the library reports; nil accepts any.
	Accept func(version string) error
	// Silent is how long the child may send nothing, 0 for five minutes.
	Silent time.Duration
	// Greeting is how long the helper may take to its first message, 0 for five seconds.
	Greeting time.Duration
	// Stopping is how long the child may take to send its results after it was told to stop and
	// said that it will, 0 for [source.LastWord].
	Stopping time.Duration
	// Progress is called with the current phase.
	Progress func(phase string, fraction float64)
	// Outputs receives the outputs of the first run and the settings in effect. The events that
	// it returns are sent to the sink.
	Outputs func(ctx context.Context, got []Tensor, f *Facts) ([]profile.Event, error)
}

// Source measures a model with an external engine.
type Source struct {
	o Options
	p *process
	// about describes the opened library.
	about About
	to    source.Sink
	// covered is how each layer was joined with the model, for the coverage finding.
	covered []profile.Confidence
	latency []float64
	facts   Facts
	outputs []Tensor
	ran     bool
	// target is the target of the profile, with its measured peaks.
	target profile.Target
	round  *loadfigures.Round
	// spare says that the child may end now without loss of requested results; whole says that it
	// finished.
	spare, whole bool
	// once ends the child after the first run, when its outputs and settings were sent.
	once bool
	// greeted says that the helper sent a message as opmeter-engine does.
	greeted bool
}

// DefaultSilent is how long an engine may send nothing: libraries compile large models for
// minutes.
const DefaultSilent = 5 * time.Minute

// greeting is how long a helper may take to its first message, which it sends before it reads or
// opens anything.
const greeting = 5 * time.Second

// New returns a source.
func New(o Options) *Source {
	o.Silent, o.Greeting, o.Stopping = cmp.Or(o.Silent, DefaultSilent), cmp.Or(o.Greeting, greeting), cmp.Or(o.Stopping, source.LastWord)
	o.Request.Protocol = Protocol
	o.Request.Interleaved = o.Turn != nil
	return &Source{o: o}
}

// Patience is the maximum time that the source takes to end after it was stopped, unless the child
// says that it will end: then the source gathers, since engines write their records only then.
func (s *Source) Patience() time.Duration { return acknowledging + leaving/5 }

const (
	// acknowledging is the time that a child gets to say that it will end when it is told to.
	acknowledging = 300 * time.Millisecond
	// leaving is the time that a process gets to end after its last message.
	leaving = time.Second
)

// Ending is the phase that a child reports when it was told to stop.
const Ending = "ending"

// Starting is the phase that a child reports before it reads its request.
const Starting = "starting the engine"

// Run implements [source.Source].
func (s *Source) Run(ctx context.Context, to source.Sink) error {
	s.to = to
	s.progress(Starting, 0)
	var err error
	if s.p, err = start(s.o.Helper, &s.o.Request); err != nil {
		return err
	}
	err = s.hear(ctx)
	if e, ok := errors.AsType[*Error](err); ok && s.spare && s.to != nil {
		f := profile.Finding{ID: "engine.peaks", Severity: profile.Info, Text: fmt.Sprintf("The engine's peaks were not measured: %v.", e)}
		err, s.whole = s.to.Send(profile.Event{Found: &f}), true
	}
	if s.whole && s.to != nil {
		err = errors.Join(s.done(ctx), err)
	}
	return err
}

// hear reads the child's messages until it ends, then ends the process.
func (s *Source) hear(ctx context.Context) error {
	quick := leaving
	err := s.listen(ctx)
	if ctx.Err() != nil {
		quick = leaving / 10 // nothing is lost with what it still does
	}
	if errors.Is(err, errLate) && !s.greeted {
		quick = 0
		err = Errorf(NoHelper, "%s did not respond for %v, so opmeter ended it: %s", s.title(), s.o.Greeting, otherHelper)
	} else if errors.Is(err, errLate) {
		quick = 0
		err = Errorf(Silent, "%s did not respond for %v%s: it was ended%s", s.title(), s.o.Silent, s.doing(), s.patience())
	}
	s.p.end(quick)
	switch {
	case !errors.Is(err, errGone):
		if e, ok := errors.AsType[*Error](err); ok && e.Printed {
			e.Text = strings.TrimSuffix(e.Text, ".") + printed(s.p.stderr.Lines())
		}
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if !s.greeted {
		e := s.p.died(s.title(), 0, otherHelper)
		if e.Code == Crashed {
			e.Code = NoHelper
		}
		return e
	}
	return s.p.died(s.title(), s.o.Request.MaxMemory, "try another release of it or other options")
}

// otherHelper advises what to do about a program that does not answer as a helper.
const otherHelper = "opmeter-engine answers at once; name it with OPMETER_ENGINE, or unset that"

// errGone says that the child ended without a final message.
var errGone = errors.New("the child is gone")

// title names what failed: the program until it is known to be a helper, then the library.
func (s *Source) title() string {
	if !s.greeted {
		return "the program " + s.o.Helper
	}
	if s.about.Title == "" {
		return s.o.Request.Engine + " (" + s.o.Request.Library + ")"
	}
	return s.about.Title + " " + s.about.Version
}

// patience names the option that raises the timeout, if one applies.
func (s *Source) patience() string {
	if s.o.Request.Task == nil {
		return ""
	}
	return "; --engine-timeout gives it more time"
}

func (s *Source) doing() string {
	if s.p.doing == "" {
		return ""
	}
	return " while " + s.p.doing
}

func (s *Source) progress(phase string, f float64) {
	if s.o.Progress != nil {
		s.o.Progress(phase, f)
	}
}

// listen reads messages up to the last one. When the context ends, it tells the child to stop and
// waits for the results so far, if there are any and the child answers.
func (s *Source) listen(ctx context.Context) error {
	told, answered := false, false
	listening, cancel, release := ctx, func() {}, func() {}
	defer func() { cancel(); release() }()
	within := func(limit time.Duration) {
		cancel()
		listening, cancel = context.WithTimeout(context.WithoutCancel(ctx), limit)
	}
	for {
		wait := s.o.Silent
		if !s.greeted {
			wait = s.o.Greeting
		}
		m, err := s.p.receive(listening, wait)
		switch {
		case err != nil && errors.Is(err, listening.Err()) && !told && (s.covered != nil || s.o.Request.Alone && s.about.Engine != ""):
			told = true
			within(acknowledging)
			go func() { _ = s.p.pipe.Send(&Message{Stop: true}) }()
			continue
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errLate):
			return err
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isGone(err):
			return errGone
		case err != nil:
			return s.invalid(err)
		case m.Request != nil:
			return s.invalid(errors.New("a request, which only opmeter sends"))
		}
		s.greeted = true
		switch {
		case m.Error != nil:
			return m.Error
		case m.Done:
			s.whole = true
			return ctx.Err()
		case told && !answered && m.Progress != nil && m.Progress.Phase == Ending:
			answered = true
			within(s.o.Stopping)
			source.Gathers(s.to, true)
			release = source.Holds(ctx)
		}
		if err := s.take(ctx, m); err != nil {
			return err
		}
		if s.once && s.ran && m.Facts != nil {
			return nil
		}
	}
}

// invalid describes a message that no helper sends.
func (s *Source) invalid(err error) *Error {
	if !s.greeted {
		return Errorf(NoHelper, "%s sends invalid messages (%v): %s", s.title(), err, otherHelper)
	}
	return Errorf(Crashed, "%s sends invalid messages (%v): the library writes where it must not", s.title(), err)
}

// take handles one message.
func (s *Source) take(ctx context.Context, m *Message) error {
	switch {
	case m.About != nil:
		s.about = *m.About
		if s.o.Accept != nil {
			return s.o.Accept(s.about.Version)
		}
	case m.Progress != nil:
		s.progress(m.Progress.Phase, m.Progress.Fraction)
	case m.Block != nil || m.Turn && s.o.blocks != nil:
		return s.exchange(ctx, m.Block)
	case m.Turn:
		if s.o.Turn == nil {
			return errors.New("the child asks for a turn without others")
		}
		if err := s.o.Turn.Wait(ctx); err != nil {
			return nil //nolint:nilerr // the end of the context is noticed where messages are awaited
		}
		return s.p.pipe.Send(&Message{Go: true})
	case m.Event != nil && m.Event.Described != nil:
		return s.described(m.Event.Described, m.Hints)
	case m.Event != nil:
		return s.event(m.Event)
	case m.Facts != nil:
		s.facts = *m.Facts
	case m.Round != nil:
		s.round = m.Round
	case m.Spare:
		s.spare = true
	case m.Outputs:
		s.outputs, s.ran = m.Tensors, true
	}
	return nil
}

// described joins the executed layers with the model.
func (s *Source) described(seen *profile.Profile, hints []join.Hint) error {
	p := *s.o.Model
	p.Layers, p.Findings, p.Quantities = seen.Layers, nil, seen.Quantities
	// Memory and unsupported layers apply to opmeter's own engine.
	p.Totals.Layers, p.Totals.UncountedLayers, p.Totals.UnsupportedLayers, p.Totals.RAMBytes = nil, nil, nil, nil
	s.target = profile.Target{ID: "host", Kind: profile.TargetHost, Engine: s.title()}
	p.Target = s.target
	p.Memory = nil
	for i := range p.Layers {
		p.Layers[i].Index = int64(i)
	}
	if len(p.Layers) == 0 {
		// The engine does not report its operators: use the model's.
		m := cmp.Or(s.o.Assumed, s.o.Model)
		p.Layers = slices.Clone(m.Layers)
		p.Findings = slices.DeleteFunc(slices.Clone(m.Findings), func(f profile.Finding) bool {
			return f.ID != "model.branches" && f.ID != "model.iterations"
		})
	} else {
		join.Fill(&p, s.o.Model, join.Find(s.o.Model.Layers, p.Layers, hints))
	}
	s.covered, s.latency = make([]profile.Confidence, len(p.Layers)), make([]float64, len(p.Layers))
	for i := range p.Layers {
		if v := p.Layers[i].Provenance; v != nil {
			s.covered[i] = v.Confidence
		}
	}
	s.settings(&p.Settings)
	found := p.Findings
	p.Findings = nil
	if err := s.to.Send(profile.Event{Described: &p}); err != nil {
		return err
	}
	for i := range found {
		if err := s.to.Send(profile.Event{Found: &found[i]}); err != nil {
			return err
		}
	}
	return nil
}

// event forwards the child's events about layers and passes.
func (s *Source) event(e *profile.Event) error {
	if s.covered == nil {
		return errors.New("the child reports figures of nothing that it described")
	}
	if f := e.Counted; f != nil && f.Layer != nil && f.Quantity == "latency_s" && *f.Layer >= 0 && *f.Layer < int64(len(s.latency)) {
		s.latency[*f.Layer], _ = f.Metric.Best()
	}
	if n := e.Noted; n != nil {
		n.Settings = nil
		if t := n.Target; t != nil {
			s.target.PeakOpsPerSecond, s.target.PeakBytesPerSecond, s.target.Peaks, s.target.Levels, s.target.PeakMethod = t.PeakOpsPerSecond, t.PeakBytesPerSecond, t.Peaks, t.Levels, t.PeakMethod
			n.Target = new(s.target)
		}
	}
	return s.to.Send(*e)
}

// settings records the requested options and those in effect.
func (s *Source) settings(p *profile.Settings) {
	r := &s.o.Request
	p.Engine, p.EngineVersion, p.EngineLibrary, p.KernelSet = s.about.Title, s.about.Version, r.Library, ""
	p.Threads = new(int64(r.Task.Threads))
	p.EngineOptions = map[string]string{}
	maps.Copy(p.EngineOptions, s.facts.Settings)
	p.InPlace = s.facts.InPlace
	for _, o := range r.Task.Options {
		if _, ok := p.EngineOptions[o.Key]; !ok {
			p.EngineOptions[o.Key] = o.Value
		}
	}
	for _, c := range r.CPUs {
		p.PinnedCPUs = append(p.PinnedCPUs, int64(c))
	}
	if r.Runs > 0 {
		p.Runs = new(int64(r.Runs))
	}
	if r.Time > 0 {
		p.TimeS = new(time.Duration(r.Time).Seconds())
	}
	r.Load.Describe(p)
	p.Passes = "abba"
	p.ReferenceLoop = s.o.Reference
}

// done sends the findings about the whole run.
func (s *Source) done(ctx context.Context) error {
	var events []profile.Event
	if s.ran && s.o.Outputs != nil && ctx.Err() == nil {
		s.progress("comparing the outputs", 0)
		var err error
		if events, err = s.o.Outputs(ctx, s.outputs, &s.facts); err != nil {
			return err
		}
	}
	if f := s.coverage(); f != nil {
		events = append(events, profile.Event{Found: f})
	}
	for _, n := range s.facts.Notes {
		events = append(events, profile.Event{Found: &profile.Finding{ID: "engine.note", Severity: profile.Info, Text: n}})
	}
	for _, e := range events {
		if err := s.to.Send(e); err != nil {
			return err
		}
	}
	return nil
}

// coverage reports which share of the time was joined with the model's operators, by confidence.
func (s *Source) coverage() *profile.Finding {
	part := map[profile.Confidence]float64{}
	sum := 0.0
	for i, v := range s.latency {
		part[s.covered[i]] += v
		sum += v
	}
	if !(sum > 0) {
		return nil
	}
	sure := (part[profile.Exact] + part[profile.ByTensor]) / sum
	f := &profile.Finding{ID: "engine.join", Severity: profile.Info, Text: fmt.Sprintf("%.1f %% of the time was found in the model exactly or by tensors", 100*sure)}
	for _, h := range []profile.Confidence{profile.ByName, profile.ByOrder} {
		if v := part[h] / sum; v >= 0.0005 {
			f.Text += fmt.Sprintf(", %.1f %% %s", 100*v, h)
		}
	}
	if left := (part[profile.Unknown] + part[""]) / sum; left >= 0.0005 {
		f.Text += fmt.Sprintf("; %.1f %% is of operators that the engine put in", 100*left)
	}
	f.Text += "."
	if sure < 0.8 {
		f.Severity = profile.Warning
	}
	return f
}

// Round runs the streams of the request once and measures nothing else, for a sweep. The round is
// nil if nothing was measured; it can be set together with an error.
func Round(ctx context.Context, o Options) (*loadfigures.Round, error) {
	o.Request.Alone = true
	s := New(o)
	err := s.Run(ctx, nil)
	return s.round, err
}

// Outputs runs the model of the request once and returns its outputs and the settings in effect. It
// measures nothing: the child is ended as soon as they are there.
func Outputs(ctx context.Context, o Options) ([]Tensor, *Facts, error) {
	s := New(o)
	s.once = true
	if err := s.Run(ctx, nil); err != nil {
		return nil, nil, err
	}
	if !s.ran {
		return nil, nil, Errorf(Crashed, "%s sent no outputs", s.title())
	}
	return s.outputs, &s.facts, nil
}

// Probe opens a library in a child and asks it to describe itself.
func Probe(ctx context.Context, helper, engine, library string) (About, error) {
	s := New(Options{Helper: helper, Request: Request{Engine: engine, Library: library}, Silent: probing})
	err := s.Run(ctx, nil)
	if err == nil && s.about.Engine == "" {
		err = Errorf(Crashed, "%s did not report its version", library)
	}
	return s.about, err
}

// probing is the time limit for opening a library.
const probing = 20 * time.Second
