package profile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/stats"
)

// KeptSamples is how many samples of a quantity a builder keeps for a layer, by a
// random choice where there are more. They are what profiles are compared with.
const KeptSamples = 1000

// Builder makes a profile of events. Its profile is valid at any moment, so that
// what a source had sent before it was killed, stopped or unplugged is there. Use it
// from several goroutines as you like.
type Builder struct {
	mu      sync.Mutex
	p       *Profile
	perCall []Layer // counts of one call, as described
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
}

// NewBuilder makes an empty builder.
func NewBuilder() *Builder { return &Builder{series: map[seriesKey]*series{}} }

// Send takes the next event. An event that would make the profile invalid gets an
// error that names its part and field, and changes nothing; so does every event
// after the last.
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
	if err := b.apply(&e); err != nil {
		return fmt.Errorf("%s: %w", e.Kind(), err)
	}
	if b.journal != nil {
		return b.journal(e)
	}
	return nil
}

// Describe, Measure, Count and Finish are [Builder.Send] of the events that most
// sources need.
func (b *Builder) Describe(p *Profile) error { return b.Send(Event{Described: p}) }

// Measure brings samples of a layer's figure, or of the whole model's with layer -1.
func (b *Builder) Measure(layer int, quantity string, values ...float64) error {
	return b.Send(Event{Measured: &Samples{Layer: index64(layer), Quantity: quantity, Values: values}})
}

// Count brings a figure of a layer, or of the whole model with layer -1.
func (b *Builder) Count(layer int, quantity string, m *Metric) error {
	return b.Send(Event{Counted: &Figure{Layer: index64(layer), Quantity: quantity, Metric: m}})
}

// Finish ends the series of events and returns the profile.
func (b *Builder) Finish(incomplete ...Missing) (*Profile, error) {
	err := b.Send(Event{Done: &Done{Incomplete: incomplete}})
	return b.Profile(), err
}

func index64(layer int) *int64 {
	if layer < 0 {
		return nil
	}
	return new(int64(layer))
}

func (b *Builder) apply(e *Event) error {
	switch {
	case e.Described != nil:
		b.described(e.Described)
	case e.Refined != nil:
		b.refined(e.Refined)
	case e.Measured != nil:
		b.measured(e.Measured)
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
	c := *p
	c.Layers = slices.Clone(p.Layers)
	if c.Layers == nil {
		c.Layers = []Layer{}
	}
	c.Findings, c.Incomplete, c.Quantities = slices.Clone(p.Findings), slices.Clone(p.Incomplete), slices.Clone(p.Quantities)
	c.Totals.Figures = maps.Clone(p.Totals.Figures)
	b.perCall = slices.Clone(c.Layers)
	for i := range c.Layers {
		c.Layers[i].Figures = maps.Clone(c.Layers[i].Figures)
		if n := c.Layers[i].Calls; n != nil && *n > 0 {
			b.perCall[i].ScaleCounts(1 / *n)
		}
	}
	b.p = &c
}

// scaled lists the counts that go with the number of calls.
func scaled(l *Layer) []**int64 {
	return []**int64{&l.Ops, &l.MACs, &l.MACsExecuted, &l.MLTKOps, &l.MLTKMACs, &l.BytesRead, &l.BytesWritten}
}

// scale sets the counts of a layer to those of another times a factor.
func scale(to, from *Layer, times float64) {
	src := scaled(from)
	for k, v := range scaled(to) {
		if *src[k] != nil {
			*v = new(int64(math.Round(float64(**src[k]) * times)))
		}
	}
}

// ScaleCounts multiplies the counts of work and traffic, such as by the number of
// calls.
func (l *Layer) ScaleCounts(times float64) {
	from := *l
	scale(l, &from, times)
}

func (b *Builder) refined(r *Refined) {
	l := &b.p.Layers[r.Layer]
	if r.State != "" {
		l.State, l.Cause, l.FusedInto = r.State, r.Cause, r.FusedInto
	}
	if r.Placement != nil {
		l.Placement = r.Placement
	}
	if r.Kernel != "" {
		l.Kernel = r.Kernel
	}
	if r.Inputs != nil {
		l.Inputs = r.Inputs
	}
	if r.Outputs != nil {
		l.Outputs = r.Outputs
	}
	if r.Samples != nil {
		l.Samples = r.Samples
	}
}

func (b *Builder) measured(m *Samples) {
	k := seriesKey{-1, m.Quantity}
	if m.Layer != nil {
		k.layer = *m.Layer
	}
	s := b.series[k]
	if s == nil {
		s = &series{Reservoir: stats.NewReservoir(KeptSamples), kind: m.Kind, method: m.Method}
		if s.kind == "" {
			s.kind = Measured
		}
		b.series[k] = s
		b.order = append(b.order, k)
	}
	if m.Method != "" {
		s.method = m.Method
	}
	for _, v := range m.Values {
		s.Add(v)
	}
}

func (b *Builder) counted(f *Figure) error {
	if f.Layer == nil {
		return b.p.Totals.Set(f.Quantity, f.Metric)
	}
	l := &b.p.Layers[*f.Layer]
	if err := l.Set(f.Quantity, f.Metric); err != nil {
		return err
	}
	if f.Quantity == "calls" {
		times := 1.0
		if l.Calls != nil {
			times = *l.Calls
		}
		scale(l, &b.perCall[*f.Layer], times)
	}
	return nil
}

func (b *Builder) noted(n *Noted) error {
	before := *b.p
	replace(&b.p.Host, n.Host)
	replace(&b.p.Phases, n.Phases)
	replace(&b.p.Reconcile, n.Reconcile)
	replace(&b.p.Memory, n.Memory)
	replace(&b.p.Timeline, n.Timeline)
	replace(&b.p.Totals.RAMBytes, n.RAMBytes)
	if n.Target != nil {
		b.p.Target = *n.Target
	}
	if n.Settings != nil {
		b.p.Settings = *n.Settings
	}
	if n.Outputs != nil {
		b.p.Model.Outputs = n.Outputs
	}
	if n.Latencies != nil {
		b.p.Totals.LatencySamples = n.Latencies
	}
	b.p.Quantities = append(b.p.Quantities, n.Quantities...)
	if err := b.p.Validate(); err != nil {
		*b.p = before
		return err
	}
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

// Profile returns the profile of the events until now, nil before the model was
// described. Until done it says that it is incomplete. The caller may change it.
func (b *Builder) Profile() *Profile {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.p == nil {
		return nil
	}
	p := *b.p
	p.Layers = slices.Clone(b.p.Layers)
	for i := range p.Layers {
		p.Layers[i].Figures = maps.Clone(p.Layers[i].Figures)
	}
	p.Totals.Figures = maps.Clone(b.p.Totals.Figures)
	p.Findings, p.Incomplete = slices.Clone(b.p.Findings), slices.Clone(b.p.Incomplete)
	for _, k := range b.order {
		s := b.series[k]
		m := FromSummary(s.kind, s.Summary(), s.method)
		kept, _ := s.Kept()
		if k.layer < 0 {
			_ = p.Totals.Set(k.quantity, m) // a series of a count that is not whole is left out
			if k.quantity == "latency_s" {
				p.Totals.LatencySamples = kept
			}
			continue
		}
		l := &p.Layers[k.layer]
		_ = l.Set(k.quantity, m)
		if k.quantity == "latency_s" {
			l.Samples = kept
		}
	}
	p.sum()
	p.shares()
	if !b.done {
		p.Incomplete = append(p.Incomplete, Missing{Cause: ByEnd})
	}
	return &p
}

// sum fills in totals: counts by the rule of [Totals], and other figures that add
// up where the source gave none for the whole.
func (p *Profile) sum() {
	t := &p.Totals
	t.Layers = new(int64(len(p.Layers)))
	var unsupported, uncounted int64
	ran := p.Select(func(l *Layer) bool { return !l.Constant })
	for _, l := range ran {
		if l.State == Unsupported {
			unsupported++
		}
		if l.Ops == nil && l.State != NotReached {
			uncounted++
		}
	}
	t.UnsupportedLayers = &unsupported
	t.UncountedLayers = nil
	if int(uncounted) < len(ran) || len(ran) == 0 {
		t.UncountedLayers = &uncounted
	}
	for _, q := range p.AllQuantities() {
		if !q.Adds || q.Derived() || q.Key == "share" {
			continue
		}
		e, known := lookup(q.Key)
		whole := known && e.total != nil && e.total(t).count != nil
		if !whole && t.Figure(q.Key) != nil {
			continue // the source knows better than a sum
		}
		if (q.Key == "params" || q.Key == "weights_bytes") && t.Figure(q.Key) != nil {
			continue // each constant once: layers cannot tell
		}
		ls := ran
		if !whole {
			ls = p.Select(func(*Layer) bool { return true })
		}
		if m := ls.total(q.Key); m != nil {
			_ = t.Set(q.Key, m)
		} else if whole {
			_ = t.Set(q.Key, nil)
		}
	}
}

// total is the sum of the layers' figures as a metric, nil where none is known.
func (ls Layers) total(key string) *Metric {
	v, ok := ls.Sum(key)
	if !ok {
		return nil
	}
	m := &Metric{Kind: Counted, Median: &v, Method: "sum of the layers"}
	for _, l := range ls {
		if f := l.Figure(key); f != nil && f.Kind != Counted {
			m.Kind = f.Kind
		}
	}
	if m.Kind == Counted {
		m.Method = ""
	}
	return m
}

// shares divides the time among the layers.
func (p *Profile) shares() {
	whole, ok := p.Select(func(*Layer) bool { return true }).Sum("latency_s")
	for i := range p.Layers {
		l := &p.Layers[i]
		l.Share = nil
		if v, has := l.Latency.Best(); has && ok && whole > 0 {
			l.Share = new(v / whole)
		}
	}
}
