package sensiml

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Profiles makes a profile of each model that the device said something of: a layer for every
// generator in the order of slots, then the classifier. kind says how the figures came about:
// [profile.Measured] for those that were read from a device, [profile.Imported] for a recording.
func (res *Result) Profiles(kind profile.Kind) (out []*profile.Profile) {
	for i := range res.Models {
		if m := &res.Models[i]; m.Runs > 0 || m.Results > 0 {
			out = append(out, res.profile(m, kind))
		}
	}
	return out
}

func (res *Result) profile(m *ModelResult, kind profile.Kind) *profile.Profile {
	b := &profiles{res: res, m: m, kind: kind, seen: map[string]bool{}}
	p := &profile.Profile{Schema: profile.SchemaV1, Layers: []profile.Layer{}}
	b.p = p
	p.Model = profile.Model{Name: cmp.Or(m.Name, fmt.Sprintf("model %d", m.Index)), Format: "sensiml"}
	p.Target = profile.Target{ID: "device", Kind: profile.TargetDevice, Engine: "SensiML Knowledge Pack", ClockHz: res.ClockHz}
	if kind == profile.Imported {
		p.Target.ID, p.Target.Kind = "imported", profile.TargetImport
	}
	if m.Runs > 0 {
		p.Settings.Runs = new(int64(m.Runs))
	}
	if m.Warmup > 0 {
		p.Settings.WarmupRuns = new(int64(m.Warmup))
	}
	for i, l := range Layers(m) {
		r := m.Classifier
		if i < len(m.Features) {
			r = &m.Features[i]
		}
		b.layer(l, r)
	}
	if m.Whole != nil && !m.Partial {
		if m.Whole.Cycles != nil {
			p.Totals.CPUCycles = profile.Summarize(kind, m.Whole.described, "sum of the layers")
		}
		p.Totals.Latency, p.Totals.LatencySamples = b.seconds(m.Whole, "sum of the layers")
	}
	b.sums()
	b.classes()
	sum := 0.0
	for i := range p.Layers {
		if v, ok := p.Layers[i].Latency.Best(); ok {
			sum += v
		}
	}
	for i := range p.Layers {
		if v, ok := p.Layers[i].Latency.Best(); ok && sum > 0 && !m.Partial {
			p.Layers[i].Share = new(v / sum)
		}
	}
	p.Totals.Layers = new(int64(len(p.Layers)))
	for _, f := range res.Findings {
		severity := profile.Info
		if f.Warning {
			severity = profile.Warning
		}
		p.Findings = append(p.Findings, profile.Finding{ID: f.ID, Severity: severity, Text: f.Text})
	}
	if res.Incomplete != "" {
		p.Incomplete = append(p.Incomplete, profile.Missing{Cause: profile.ByEnd, Text: res.Incomplete, Got: new(int64(m.Runs))})
	}
	return p
}

// fullNames are rows whose names say what they read: those of layers need no function alone.
func fullNames(rows []Row) []Row {
	out := make([]Row, len(rows))
	for i := range rows {
		out[i].Name = rows[i].Name
	}
	return out
}

type profiles struct {
	res  *Result
	m    *ModelResult
	kind profile.Kind
	p    *profile.Profile
	seen map[string]bool
}

// options say what the generator is.
func (r *Row) options() (out []profile.Option) {
	add := func(key, value string) {
		if value != "" {
			out = append(out, profile.Option{Key: key, Value: value})
		}
	}
	add("columns", strings.Join(r.Columns, "+"))
	for _, p := range r.Params {
		add(strings.ToLower(p.Name), p.Value)
	}
	add("category", r.Category)
	if r.Slot != nil {
		add("slot", itoa(*r.Slot))
	}
	return out
}

// cause says why a row has no figure.
func (r *Row) cause() *profile.Cause {
	switch r.State {
	case NotReported:
		return &profile.Cause{Code: profile.ByRecord, Text: "its slot lies beyond the array that the device sends"}
	case NoSlot:
		return &profile.Cause{Code: profile.ByRecord, Text: "nothing tells in which slot its figure stands"}
	case Empty:
		return &profile.Cause{Code: profile.ByRecord, Text: "its slot held no figure"}
	}
	return nil
}

// Layers are those of a model without figures: its generators in the order of their slots, then the
// classifier, if it said anything of it.
func Layers(m *ModelResult) (out []profile.Layer) {
	add := func(r *Row, name, op, scope string) {
		l := profile.Layer{Index: int64(len(out)), Name: name, Op: op, Scope: scope, Options: r.options(), State: profile.Ran}
		if l.Cause = r.cause(); l.Cause != nil {
			l.State = profile.Lost
		}
		out = append(out, l)
	}
	labels := names(fullNames(m.Features))
	for i := range m.Features {
		add(&m.Features[i], labels[i], cmp.Or(m.Features[i].Function, "generator"), "features")
	}
	if m.Classifier != nil {
		add(m.Classifier, "classifier", cmp.Or(m.Type, "classifier"), "")
	}
	return out
}

func (b *profiles) layer(l profile.Layer, r *Row) {
	method := ""
	if b.m.Banks > 1 && r != b.m.Classifier {
		method = "of one segment"
	}
	if r.Cycles != nil {
		l.CPUCycles = profile.Summarize(b.kind, r.described, method)
	}
	l.Latency, l.Samples = b.seconds(r, method)
	if s := r.best(); s != nil {
		unit, key := "cycles", "cycles"
		if r.Cycles == nil {
			unit, key = "s", "s"
		}
		b.figure(&l, profile.Quantity{Key: "p5_" + key, Unit: unit, Head: "p5", Name: "5th percentile", Group: "SensiML", Doc: "A twentieth of the figures lies below it."}, s.P5)
		if s.First != nil {
			b.figure(&l, profile.Quantity{Key: "first_" + key, Unit: unit, Head: "first", Name: "First inference", Group: "SensiML", Doc: "The first figure that came, which may hold work that is done once."}, *s.First)
		}
		if s.Left > 0 {
			b.figure(&l, profile.Quantity{Key: "left_out", Head: "left out", Name: "Figures left out", Group: "SensiML", Whole: true, Doc: "Figures that contradict the device's own times or lie far outside all others, as damaged digits make them."}, float64(s.Left))
		}
	}
	b.p.Layers = append(b.p.Layers, l)
}

// seconds are the times of a row, nil where they are not known.
func (b *profiles) seconds(r *Row, method string) (*profile.Metric, []float64) {
	if r.Time == nil {
		return nil, nil
	}
	by := 1e-9
	if b.res.ClockHz != nil {
		by = 1 / *b.res.ClockHz
		method = strings.TrimPrefix(method+fmt.Sprintf(", cycles ÷ %.9g Hz", *b.res.ClockHz), ", ")
	}
	v := make([]float64, len(r.described))
	for i := range v {
		v[i] = r.described[i] * by
	}
	return profile.Summarize(b.kind, v, method), v[:min(len(v), profile.KeptSamples)]
}

// describe adds a quantity that the table lacks, once.
func (b *profiles) describe(q profile.Quantity) {
	if _, known := profile.Lookup(q.Key); !known && !b.seen[q.Key] {
		b.seen[q.Key] = true
		b.p.Quantities = append(b.p.Quantities, q)
	}
}

func (b *profiles) figure(l *profile.Layer, q profile.Quantity, v float64) {
	b.describe(q)
	_ = l.Set(q.Key, profile.Value(b.kind, v, ""))
}

func (b *profiles) total(q profile.Quantity, v float64) {
	if q.Key = strings.Trim(q.Key, "_"); len(b.seen) >= 200 {
		return
	}
	q.Model, q.Group = true, "SensiML"
	b.describe(q)
	_ = b.p.Totals.Set(q.Key, profile.Value(b.kind, v, ""))
}

// key makes a part of a key of a name.
func key(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, s), "_")
}

// sums are the roll-ups, as figures of the whole.
func (b *profiles) sums() {
	for _, x := range []struct {
		of   string
		rows []Row
	}{{"generator", b.m.ByGenerator}, {"sensor", b.m.BySensor}, {"category", b.m.ByCategory}} {
		for i := range x.rows {
			r := &x.rows[i]
			s, unit, by := r.best(), "s", "s"
			if s == nil || r.Missing > 0 {
				continue
			}
			if r.Time == nil {
				unit, by = "cycles", "cycles"
			}
			b.total(profile.Quantity{Key: x.of + "_" + key(r.Name) + "_" + by, Unit: unit, Name: "All of " + x.of + " " + r.Name, Better: -1, Doc: "Mean of the sum over its generators in an inference."}, s.Mean)
		}
	}
}

// classes are the results.
func (b *profiles) classes() {
	for _, c := range b.m.Classes {
		if c.Number < 0 {
			continue
		}
		b.total(profile.Quantity{Key: fmt.Sprintf("class_%d_count", c.Number), Name: strings.TrimSpace("Results of class " + cmp.Or(c.Label, itoa(c.Number))), Whole: true}, float64(c.N))
	}
	if b.m.Results > 0 {
		b.total(profile.Quantity{Key: "result_count", Name: "Results", Whole: true}, float64(b.m.Results))
	}
	if s := b.m.SegmentLength; s != nil {
		b.total(profile.Quantity{Key: "segment_length", Unit: "samples", Name: "Samples in a segment", Doc: "Mean over the results."}, s.Mean)
	}
	if b.m.Load != nil {
		b.total(profile.Quantity{Key: "load", Unit: "1", Name: "Load", Better: -1, Doc: "Time of an inference as a part of the time between two windows."}, *b.m.Load)
	}
}
