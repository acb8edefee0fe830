package profile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// KeptSamples is how many samples of a quantity a builder keeps for a layer, by a
// random choice where there are more. They are what profiles are compared with.
const KeptSamples = 1000

// Builder makes a profile of events. Its profile is valid at any moment, so that
// what a source had sent before it was killed, stopped or unplugged is there. Use it
// from several goroutines as you like. What events hold is copied, but for lists of
// numbers, tensors and options: their elements are not to be changed afterwards.
type Builder struct {
	mu      sync.Mutex
	p       *Profile
	work    [][]work // by layer, in the order of scaled
	changed Layer    // the layer that an event changes
	series  map[seriesKey]*series
	order   []seriesKey
	done    bool
	journal func(Event) error
}

type seriesKey struct {
	layer    int64 // -1 for the whole
	quantity string
}

type series struct {
	*stats.Reservoir
	kind   Kind
	method string
	// replaced says that a figure came after the samples: they are kept beside it.
	replaced bool
}

// work is a count of work or traffic and the calls that it is over.
type work struct {
	count *int64
	calls float64
}

// NewBuilder makes an empty builder.
func NewBuilder() *Builder { return &Builder{series: map[seriesKey]*series{}} }

// ErrJournal is wrapped by errors of a journal's file.
var ErrJournal = errors.New("journal")

// Send takes the next event. An event that would make the profile invalid gets an
// error that names its part and field, and changes nothing; so does every event
// after the last. An error that wraps [ErrJournal] says that the event was taken and
// could not be written: the journal ends before it, and no later event gets that
// error again.
func (b *Builder) Send(e Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return fmt.Errorf("%s: nothing comes after done", e.Kind())
	}
	n := 0
	if b.p != nil {
		n = len(b.p.Layers)
	}
	if err := e.check(n, b.p != nil); err != nil {
		return err
	}
	e = deep(e)
	if err := b.apply(&e); err != nil {
		return fmt.Errorf("%s: %w", e.Kind(), err)
	}
	if b.journal != nil {
		if err := b.journal(e); err != nil {
			b.journal = nil // the line may be cut: nothing can follow it
			return fmt.Errorf("%w: %w", ErrJournal, err)
		}
	}
	return nil
}

// Describe sends the first event: what is known without running the model.
func (b *Builder) Describe(p *Profile) error { return b.Send(Event{Described: p}) }

// Measure brings samples of a layer's figure, or of the whole model's with layer -1.
func (b *Builder) Measure(layer int, quantity string, values ...float64) error {
	return b.Send(Event{Measured: &Samples{Layer: index64(layer), Quantity: quantity, Values: values}})
}

// Count brings a figure of a layer, or of the whole model with layer -1.
func (b *Builder) Count(layer int, quantity string, m *Metric) error {
	return b.Send(Event{Counted: &Figure{Layer: index64(layer), Quantity: quantity, Metric: m}})
}

// Finish ends the series of events and returns the profile, nil when no model was
// described.
func (b *Builder) Finish(incomplete ...Missing) (*Profile, error) {
	err := b.Send(Event{Done: &Done{Incomplete: incomplete}})
	return b.Profile(), err
}

func index64(layer int) *int64 {
	if layer == -1 {
		return nil
	}
	return new(int64(layer))
}

func (b *Builder) apply(e *Event) error {
	switch {
	case e.Described != nil:
		b.described(e.Described)
	case e.Refined != nil:
		return b.refined(e.Refined)
	case e.Measured != nil:
		return b.measured(e.Measured)
	case e.Counted != nil:
		return b.counted(e.Counted)
	case e.Noted != nil:
		return b.noted(e.Noted)
	case e.Lost != nil:
		b.lost(e.Lost)
	case e.Found != nil:
		b.p.Findings = append(b.p.Findings, *e.Found)
	case e.Done != nil:
		b.p.Incomplete = append(b.p.Incomplete, e.Done.Incomplete...)
		b.done = true
	}
	return nil
}

func (b *Builder) described(p *Profile) {
	b.p = p
	if p.Layers == nil {
		p.Layers = []Layer{}
	}
	b.work = make([][]work, len(p.Layers))
	for i := range p.Layers {
		counts := scaled(&p.Layers[i])
		b.work[i] = make([]work, len(counts))
		for k, v := range counts {
			b.work[i][k] = work{*v, calls(&p.Layers[i])}
		}
	}
}

// calls is the number of calls that the layer's counts are over.
func calls(l *Layer) float64 {
	if l.Calls == nil {
		return 1
	}
	return *l.Calls
}

// change applies a change to a layer when the layer is valid with it.
func (b *Builder) change(layer int64, do func(*Layer) error) error {
	l := &b.changed
	*l = b.p.Layers[layer]
	l.Figures = maps.Clone(l.Figures)
	if err := do(l); err != nil {
		return err
	}
	c := &checker{}
	c.layer(int(layer), l, len(b.p.Layers))
	if c.err == nil {
		b.p.Layers[layer] = *l
	}
	return c.err
}

func (b *Builder) refined(r *Refined) error {
	return b.change(r.Layer, func(l *Layer) error {
		if r.State != "" {
			l.State, l.Cause, l.FusedInto = r.State, r.Cause, r.FusedInto
		}
		if r.Placement != nil {
			l.Placement = r.Placement
		}
		if r.Kernel != "" {
			l.Kernel = r.Kernel
		}
		if r.Computes != "" {
			l.Computes = r.Computes
		}
		if r.Inputs != nil {
			l.Inputs = r.Inputs
		}
		if r.Outputs != nil {
			l.Outputs = r.Outputs
		}
		if r.Check != nil {
			l.Check = r.Check
		}
		if r.Samples != nil {
			l.Samples = r.Samples
		}
		return nil
	})
}

// found takes the mark of a lost record from a layer whose time has come.
func found(l *Layer, quantity string) {
	if l.State == Lost && quantity == "latency_s" {
		l.State, l.Cause = Ran, nil
	}
}

func (b *Builder) measured(m *Samples) error {
	if len(m.Values) == 0 {
		return nil
	}
	k := seriesKey{-1, m.Quantity}
	if m.Layer != nil {
		k.layer = *m.Layer
	}
	kind := cmp.Or(m.Kind, Measured)
	s := b.series[k]
	if s == nil {
		s = &series{Reservoir: stats.NewReservoir(KeptSamples), kind: kind}
		b.series[k] = s
		b.order = append(b.order, k)
	}
	if s.kind != kind {
		return fmt.Errorf("kind is %q, that of earlier samples %q", kind, s.kind)
	}
	s.method, s.replaced = cmp.Or(m.Method, s.method), false
	for _, v := range m.Values {
		s.Add(v)
	}
	if m.Layer != nil {
		found(&b.p.Layers[k.layer], m.Quantity)
	}
	return nil
}

func (b *Builder) counted(f *Figure) error {
	k := seriesKey{-1, f.Quantity}
	if f.Layer == nil {
		t := b.p.Totals
		t.Figures = maps.Clone(t.Figures)
		if err := t.Set(f.Quantity, f.Metric); err != nil {
			return err
		}
		c := &checker{}
		c.totals(&t)
		if c.err != nil {
			return c.err
		}
		b.p.Totals = t
	} else {
		k.layer = *f.Layer
		if err := b.change(k.layer, func(l *Layer) error { return b.set(l, f) }); err != nil {
			return err
		}
	}
	if s := b.series[k]; s != nil && f.Metric == nil {
		delete(b.series, k)
		b.order = slices.DeleteFunc(b.order, func(o seriesKey) bool { return o == k })
	} else if s != nil {
		s.replaced = true
	}
	return nil
}

// set sets a figure of a layer, and what goes with it.
func (b *Builder) set(l *Layer, f *Figure) error {
	before := scaled(l)
	old := make([]*int64, len(before))
	for k, v := range before {
		old[k] = *v
	}
	if err := l.Set(f.Quantity, f.Metric); err != nil {
		return err
	}
	if f.Metric != nil {
		found(l, f.Quantity)
	}
	if f.Quantity == "calls" {
		b.rescale(l)
		return nil
	}
	w := slices.Clone(b.work[l.Index])
	for k, v := range scaled(l) {
		if *v != old[k] {
			w[k] = work{*v, calls(l)}
		}
	}
	b.work[l.Index] = w
	return nil
}

// rescale puts counts in place for the layer's number of calls.
func (b *Builder) rescale(l *Layer) {
	for k, v := range scaled(l) {
		if w := b.work[l.Index][k]; w.count != nil {
			*v = times(*w.count, calls(l), w.calls)
		}
	}
}

func (b *Builder) noted(n *Noted) error {
	p := *b.p
	replace(&p.Host, n.Host)
	replace(&p.Phases, n.Phases)
	replace(&p.Reconcile, n.Reconcile)
	replace(&p.Trust, n.Trust)
	replace(&p.Memory, n.Memory)
	replace(&p.Timeline, n.Timeline)
	replace(&p.Totals.RAMBytes, n.RAMBytes)
	if n.Target != nil {
		p.Target = *n.Target
	}
	if n.Settings != nil {
		p.Settings = *n.Settings
	}
	if n.Outputs != nil {
		p.Model.Outputs = n.Outputs
	}
	if n.Differences != nil {
		p.Differences = n.Differences
	}
	if n.Latencies != nil {
		p.Totals.LatencySamples = n.Latencies
	}
	p.Quantities = slices.Clone(p.Quantities)
	for _, q := range n.Quantities {
		if i := slices.IndexFunc(p.Quantities, func(o Quantity) bool { return o.Key == q.Key }); i >= 0 {
			p.Quantities[i] = q
		} else {
			p.Quantities = append(p.Quantities, q)
		}
	}
	if err := p.Validate(); err != nil {
		return err
	}
	b.p = &p
	return nil
}

func replace[T any](to **T, v *T) {
	if v != nil {
		*to = v
	}
}

func (b *Builder) lost(l *Loss) {
	m := Missing{Cause: l.Cause.Code, Text: l.Cause.Text, Want: l.Records}
	if l.Layer != nil {
		m.Layers = []int64{*l.Layer}
		y := &b.p.Layers[*l.Layer]
		if _, timed := y.Latency.Best(); !timed && y.State == Ran && b.series[seriesKey{*l.Layer, "latency_s"}] == nil {
			y.State, y.Cause = Lost, &Cause{Code: l.Cause.Code, Text: l.Cause.Text}
		}
	}
	b.p.Incomplete = append(b.p.Incomplete, m)
}

// Take is [Builder.Profile] for a builder that gets no more events: it returns what the builder
// holds and no copy. The builder has no profile afterwards.
func (b *Builder) Take() *Profile {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.p
	if p != nil {
		b.complete(p)
	}
	b.p, b.done = nil, true
	return p
}

// Profile returns the profile of the events until now, nil before the model was
// described. Until done it says that it is incomplete. The caller may change it, but
// for what lists of numbers hold: events to come share them.
func (b *Builder) Profile() *Profile {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.p == nil {
		return nil
	}
	p := deep(b.p)
	b.complete(p)
	return p
}

// complete adds what follows from all events.
func (b *Builder) complete(p *Profile) {
	for _, k := range b.order {
		b.series[k].put(b, p, k)
	}
	p.declare()
	p.unreached()
	p.sum()
	p.shares()
	p.withhold()
	p.roofs()
	if !b.done {
		p.Incomplete = append(p.Incomplete, Missing{Cause: ByEnd})
	}
}

// put sets the figure that a series makes. Send has refused what Set would refuse.
func (s *series) put(b *Builder, p *Profile, k seriesKey) {
	kept, _ := s.Kept()
	if k.layer < 0 {
		if k.quantity == "latency_s" {
			p.Totals.LatencySamples = kept
		}
		if !s.replaced {
			_ = p.Totals.Set(k.quantity, FromSummary(s.kind, s.Summary(), s.method))
		}
		return
	}
	l := &p.Layers[k.layer]
	if k.quantity == "latency_s" {
		l.Samples = kept
	}
	if s.replaced {
		return
	}
	m := FromSummary(s.kind, s.Summary(), s.method)
	if e, ok := lookup(k.quantity); ok && e.layer != nil && e.layer(&Layer{Sparsity: &Sparsity{}}).real != nil {
		// A field of one number is a mean: half a call on average is not a median.
		m = Value(s.kind, *m.Mean, "")
	}
	_ = l.Set(k.quantity, m)
	if k.quantity == "calls" {
		b.rescale(l)
	}
}

// declare describes figures of quantities that were registered, so that a program
// without them can show the profile.
func (p *Profile) declare() {
	for _, key := range p.foreign() {
		has := func(q Quantity) bool { return q.Key == key }
		if q, ok := Lookup(key); ok && !builtin[key] && !slices.ContainsFunc(p.Quantities, has) {
			p.Quantities = append(p.Quantities, q)
		}
	}
}
