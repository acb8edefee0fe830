// Package draft builds the run of an imported profile: layers with hints, quantities known to
// opmeter or not, notes, and counts of skipped data. It applies size limits and the rules for
// every profile, so that importers only report the content of their files.
package draft

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// MaxLayers limits the layers of a run.
const MaxLayers = 100_000

const (
	maxText    = 4000 // bytes of a text
	maxNotes   = 400
	maxOptions = 200 // per layer
)

// Draft is a run under construction.
type Draft struct {
	P *profile.Profile
	// Q collects the descriptions of quantities that opmeter does not define.
	Q runlog.Quantities
	// Dropped counts skipped data by reason.
	Dropped runlog.Dropped
	// Lost and Missing are copied to the run.
	Lost    []profile.Loss
	Missing []profile.Missing

	hints []runlog.Hint
	notes []string
	seen  map[string]bool
	found []profile.Finding
}

// New starts a run of a format. name is the name of the model, if known; [Stem] derives one from
// a file name.
func New(format, name, engine string) *Draft {
	return &Draft{P: &profile.Profile{
		Schema: profile.SchemaV1,
		Model:  profile.Model{Name: Text(name), Format: format},
		Target: profile.Target{ID: "imported", Kind: profile.TargetImport, Engine: engine},
		Layers: []profile.Layer{},
	}}
}

// Stem returns the name of a file without up to two suffixes of at most 6 bytes each.
func Stem(f *record.File) string {
	name := f.Name
	for range 2 {
		if e := path.Ext(name); e != "" && len(e) <= 6 && len(e) < len(name) {
			name = strings.TrimSuffix(name, e)
		}
	}
	return name
}

// Text makes a text valid UTF-8 and limits its length.
func Text(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// Shape parses dimensions such as "1x28x28" with a separator. Text that is not an integer from 0
// becomes -1, unknown.
func Shape(s, sep string) []int64 {
	out := []int64{}
	for _, f := range strings.Split(s, sep) {
		n, ok := textscan.Whole(f)
		if !ok || n < 0 {
			n = -1
		}
		out = append(out, n)
	}
	return out
}

// Add appends a layer and returns its index. Beyond [MaxLayers] it counts the layer as skipped
// and returns -1.
func (d *Draft) Add(l profile.Layer, h runlog.Hint) int {
	if len(d.P.Layers) >= MaxLayers {
		d.Dropped.Add(fmt.Sprintf("more than %d layers", MaxLayers), 1)
		return -1
	}
	l.Index = int64(len(d.P.Layers))
	l.Name, l.Op, l.Kernel = Text(l.Name), Text(l.Op), Text(l.Kernel)
	if l.Op == "" {
		l.Op = "unknown"
	}
	if l.State == "" {
		l.State = profile.Ran
	}
	d.P.Layers = append(d.P.Layers, l)
	d.hints = append(d.hints, h)
	return len(d.P.Layers) - 1
}

// Layer returns a layer by index, nil if out of range.
func (d *Draft) Layer(i int) *profile.Layer {
	if i < 0 || i >= len(d.P.Layers) {
		return nil
	}
	return &d.P.Layers[i]
}

// Hint returns the hint of a layer by index, an unused one if out of range.
func (d *Draft) Hint(i int) *runlog.Hint {
	if i < 0 || i >= len(d.hints) {
		return &runlog.Hint{}
	}
	return &d.hints[i]
}

// Len returns the number of layers.
func (d *Draft) Len() int { return len(d.P.Layers) }

// Set sets a quantity of a layer, see [runlog.Quantities.Set]. Negative values of opmeter's own
// quantities, and values that are not finite, are left out and counted.
func (d *Draft) Set(i int, q profile.Quantity, v float64) {
	if l := d.Layer(i); l != nil && d.usable(q, v) {
		d.Q.Set(l, q, v)
	}
}

// NotFinite is the reason for which figures such as NaN are left out.
const NotFinite = "figures that are infinite or not a number"

// usable reports whether a quantity can have a figure. One that it cannot have is counted.
func (d *Draft) usable(q profile.Quantity, v float64) bool {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		d.Dropped.Add(NotFinite, 1)
	case v < 0 && typed(q):
		d.Dropped.Add("figures below zero", 1)
	default:
		return true
	}
	return false
}

// typed reports whether a quantity is defined by opmeter; such quantities are never negative.
func typed(q profile.Quantity) bool {
	_, ok := profile.Lookup(cmp.Or(q.Key, runlog.Key(q.Name)))
	return ok
}

// Total sets a quantity of the whole model.
func (d *Draft) Total(q profile.Quantity, v float64) {
	if d.usable(q, v) {
		d.Q.SetTotal(&d.P.Totals, q, v)
	}
}

// TotalMetric sets a quantity of the whole model including its spread; nil is ignored.
func (d *Draft) TotalMetric(q profile.Quantity, m *profile.Metric) {
	v, ok := m.Best()
	if !ok || v < 0 && typed(q) {
		return
	}
	if d.Q.SetTotal(&d.P.Totals, q, v) {
		_ = d.P.Totals.Set(cmp.Or(q.Key, runlog.Key(q.Name)), m)
	}
}

// Option adds an option to a layer; an empty value is ignored.
func (d *Draft) Option(i int, key, value string) {
	l := d.Layer(i)
	if key = snake(key); l == nil || key == "" || value == "" || len(l.Options) >= maxOptions {
		return
	}
	l.Options = append(l.Options, profile.Option{Key: key, Value: Text(value)})
}

// snake converts a key to lower case with underscores, as in options: HasBias becomes has_bias.
func snake(s string) string {
	var b strings.Builder
	small := false
	for _, r := range s {
		if r >= 'A' && r <= 'Z' {
			if small {
				b.WriteByte('_')
			}
			small = false
		} else {
			small = r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		}
		b.WriteRune(r)
	}
	return runlog.Key(b.String())
}

// Key is the key that an option of this name has.
func Key(name string) string { return snake(name) }

// Note keeps a text about the whole run without a place in the profile. All notes become one
// finding.
func (d *Draft) Note(key, value string) {
	value = strings.TrimSpace(value)
	if value == "" || len(d.notes) >= maxNotes {
		return
	}
	if len(value) > 300 {
		value = strings.ToValidUTF8(value[:300], "") + "…"
	}
	text := strings.ToValidUTF8(key+": "+value, "\ufffd")
	if d.seen[text] {
		return
	}
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.seen[text] = true
	d.notes = append(d.notes, text)
}

// Found adds a finding.
func (d *Draft) Found(id string, s profile.Severity, format string, args ...any) {
	d.found = append(d.found, profile.Finding{ID: id, Severity: s, Text: Text(fmt.Sprintf(format, args...))})
}

// Empty reports whether the draft has neither layer, time nor figure of the whole model.
func (d *Draft) Empty() bool {
	t := &d.P.Totals
	return len(d.P.Layers) == 0 && t.Latency == nil && len(t.Figures) == 0 && t.MACs == nil && t.RAMBytes == nil && t.FlashBytes == nil && t.CPUCycles == nil && d.P.Timeline == nil
}

// Run ends the draft. The profile is always valid: parts that contradict its rules are removed.
func (d *Draft) Run() *runlog.Run {
	p := d.P
	for i := range p.Layers {
		d.tidy(&p.Layers[i], i)
	}
	p.Totals.Latency = d.central(Metric(p.Totals.Latency))
	layers := map[string]bool{}
	for i := range p.Layers {
		for k := range p.Layers[i].Figures {
			layers[k] = true
		}
	}
	for _, q := range d.Q.List {
		q.Model = !layers[q.Key]
		p.Quantities = append(p.Quantities, q)
	}
	p.Findings = append(p.Findings, d.found...)
	if len(d.notes) > 0 {
		p.Findings = append(p.Findings, profile.Finding{ID: "record.settings", Severity: profile.Info, Text: "The record says: " + strings.Join(d.notes, "; ") + "."})
	}
	r := &runlog.Run{Profile: p, Hints: d.hints, Lost: d.Lost, Missing: d.Missing}
	d.Dropped.To(r)
	return r
}

// Bounds are kept by themselves where the record has neither a median nor a mean.
var (
	shortest = profile.Quantity{Key: "latency_min_s", Unit: "s", Name: "Inference, shortest", Group: "Time", Better: -1}
	longest  = profile.Quantity{Key: "latency_max_s", Unit: "s", Name: "Inference, longest", Group: "Time", Better: -1}
)

// central returns the latency of the whole, nil if it has bounds only: the shortest time stands for
// no other. The bounds become quantities of their own.
func (d *Draft) central(m *profile.Metric) *profile.Metric {
	if m == nil || m.Median != nil || m.Mean != nil {
		return m
	}
	if m.Min != nil {
		d.Total(shortest, *m.Min)
	}
	if m.Max != nil {
		d.Total(longest, *m.Max)
	}
	return nil
}

// tidy removes figures that are invalid in a profile.
func (d *Draft) tidy(l *profile.Layer, i int) {
	l.Latency, l.Total = Metric(l.Latency), Metric(l.Total)
	for _, n := range []**int64{&l.Ops, &l.MACs, &l.MLTKOps, &l.MLTKMACs, &l.Params, &l.WeightsBytes, &l.BytesRead, &l.BytesWritten} {
		if *n != nil && **n < 0 {
			*n = nil
		}
	}
	if l.Parent != nil && (*l.Parent < 0 || *l.Parent >= int64(i)) {
		l.Parent = nil
	}
	if l.FusedInto != nil && (*l.FusedInto < 0 || *l.FusedInto >= int64(len(d.P.Layers)) || *l.FusedInto == int64(i)) {
		l.FusedInto = nil
	}
	if (l.State == profile.Fused) != (l.FusedInto != nil) {
		if l.State == profile.Fused {
			l.State = profile.NotReached
		}
		l.FusedInto = nil
	}
	if l.Calls != nil && !(*l.Calls >= 0) {
		l.Calls = nil
	}
}
