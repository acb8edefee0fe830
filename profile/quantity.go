package profile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// Quantity describes a figure: what it is called, in which unit it stands, what it
// means. Columns of tables, headings of files, the schema and the page's columns are
// made from the table of quantities, so that a new figure is one entry of it.
type Quantity struct {
	// Key is its name in JSON and in files, ending in the base unit.
	Key string `json:"key"`
	// Unit is "s", "B", "J", "cycles" and the like, "1" for a fraction, "/s" for a
	// rate of counts, empty for a count.
	Unit string `json:"unit,omitzero"`
	// Head is the heading of a narrow column.
	Head string `json:"head,omitzero"`
	// Name is its name where there is room.
	Name string `json:"name"`
	// Doc says in a sentence or two what it means.
	Doc string `json:"doc,omitzero"`
	// Group gathers quantities for people: "Work", "Memory", "Time", "Rates",
	// "Target", "Sparsity", or that of a source.
	Group string `json:"group,omitzero"`
	// Adds says that the figures of layers add up to that of the model.
	Adds bool `json:"adds,omitzero"`
	// Better is 1 where more is better, -1 where less is, 0 where neither holds.
	Better int64 `json:"better,omitzero"`
	// Whole marks figures that are integers.
	Whole bool `json:"whole,omitzero"`
	// Model marks figures of the whole model alone, which layers have none of.
	Model bool `json:"model,omitzero"`
	// Of and Per make a quotient of other quantities: the sum of those in Of
	// divided by the sum of those in Per. Such a figure is not stored.
	Of  []string `json:"of,omitzero"`
	Per []string `json:"per,omitzero"`
}

// Derived reports whether the figure follows from others and is not stored.
func (q *Quantity) Derived() bool { return len(q.Of) > 0 }

// place is where a figure stands: one of the pointers is set. kind is that of
// a real, whose field does not say it.
type place struct {
	count  **int64
	real   **float64
	metric **Metric
	kind   Kind
}

// entry is a known quantity with its fields. One without fields stands in the map
// of figures.
type entry struct {
	Quantity
	layer func(*Layer) place
	total func(*Totals) place
}

func counted(f func(*Layer) **int64) func(*Layer) place {
	return func(l *Layer) place { return place{count: f(l)} }
}

func countedTotal(f func(*Totals) **int64) func(*Totals) place {
	return func(t *Totals) place { return place{count: f(t)} }
}

func metrics(f func(*Layer) **Metric) func(*Layer) place {
	return func(l *Layer) place { return place{metric: f(l)} }
}

func metricsTotal(f func(*Totals) **Metric) func(*Totals) place {
	return func(t *Totals) place { return place{metric: f(t)} }
}

func reals(f func(*Layer) **float64, kind func(*Layer) Kind) func(*Layer) place {
	return func(l *Layer) place { return place{real: f(l), kind: kind(l)} }
}

// always is the kind of reals that come about in one way.
func always(k Kind) func(*Layer) Kind { return func(*Layer) Kind { return k } }

// sparsity gives a field of the layer's sparsity, which may be absent.
func sparsity(f func(*Sparsity) **float64, kind Kind) func(*Layer) place {
	return func(l *Layer) place {
		if l.Sparsity == nil {
			return place{}
		}
		return place{real: f(l.Sparsity), kind: kind}
	}
}

// known is the table. Its order is that of columns where nothing else says so.
var known = struct {
	sync.RWMutex
	list []entry
	at   map[string]int
}{}

// builtin holds the keys of the table, without those that were registered.
var builtin = map[string]bool{}

func init() {
	for _, e := range table() {
		known.list = append(known.list, e)
		builtin[e.Key] = true
	}
	index()
}

func index() {
	known.at = make(map[string]int, len(known.list))
	for i := range known.list {
		known.at[known.list[i].Key] = i
	}
}

// Quantities lists the known quantities in the order of the table.
func Quantities() []Quantity {
	known.RLock()
	defer known.RUnlock()
	out := make([]Quantity, len(known.list))
	for i := range known.list {
		out[i] = known.list[i].Quantity
	}
	return out
}

// Register adds a quantity to the known ones, for programs that have figures of
// their own in every profile. Its figures stand in the maps of figures; a quotient is
// of quantities that are known and no quotients themselves. The error names what is
// wrong with it or that the key is taken. It may be called at any time, from any
// goroutine.
func Register(q Quantity) error {
	if err := q.validate(); err != nil {
		return err
	}
	q.Of, q.Per = slices.Clone(q.Of), slices.Clone(q.Per)
	known.Lock()
	defer known.Unlock()
	if _, ok := known.at[q.Key]; ok {
		return fmt.Errorf("quantity %q is there already", q.Key)
	}
	for _, k := range slices.Concat(q.Of, q.Per) {
		if i, ok := known.at[k]; !ok || known.list[i].Derived() {
			return fmt.Errorf("quantity %q is a quotient with %q, which is not known or a quotient itself", q.Key, k)
		}
	}
	known.list = append(known.list, entry{Quantity: q})
	index()
	return nil
}

// maxKey bounds the key of a quantity, in bytes.
const maxKey = 100

// isKey reports whether a text may be the key of a quantity. Package timeline has
// the same rule.
func isKey(s string) bool {
	ok := s != "" && len(s) <= maxKey
	for _, r := range s {
		ok = ok && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_')
	}
	return ok
}

// badKey is the error of a key that is none; a long one is cut.
func badKey(key string) error {
	return fmt.Errorf("key %.*q is not made of at most %d lower-case letters, digits and underscores", maxKey, key, maxKey)
}

func (q *Quantity) validate() error {
	for _, k := range slices.Concat([]string{q.Key}, q.Of, q.Per) {
		if !isKey(k) {
			return badKey(k)
		}
	}
	switch {
	case (len(q.Of) == 0) != (len(q.Per) == 0):
		return fmt.Errorf("quantity %q has one of of and per, want both or none", q.Key)
	case slices.Contains(q.Of, q.Key) || slices.Contains(q.Per, q.Key):
		return fmt.Errorf("quantity %q is a quotient with itself", q.Key)
	case q.Name == "":
		return fmt.Errorf("quantity %q has no name", q.Key)
	case q.Better < -1 || q.Better > 1:
		return fmt.Errorf("quantity %q has better %d, want -1, 0 or 1", q.Key, q.Better)
	}
	return nil
}

func lookup(key string) (entry, bool) {
	known.RLock()
	defer known.RUnlock()
	i, ok := known.at[key]
	if !ok {
		return entry{}, false
	}
	return known.list[i], true
}

// Lookup returns the known quantity with a key.
func Lookup(key string) (Quantity, bool) {
	e, ok := lookup(key)
	return e.Quantity, ok
}

// AllQuantities lists the known quantities, then those that the profile brings
// with it, then the keys of figures that no one describes: they are shown under their
// key and do not add up.
func (p *Profile) AllQuantities() []Quantity {
	out := Quantities()
	have := make(map[string]bool, len(out))
	for i := range out {
		have[out[i].Key] = true
	}
	for _, q := range p.Quantities {
		if !have[q.Key] {
			have[q.Key] = true
			out = append(out, q)
		}
	}
	for _, k := range p.foreign() {
		if !have[k] {
			out = append(out, Quantity{Key: k, Name: k})
		}
	}
	return out
}

// Figure returns the layer's figure with a key: stored, counted or derived; nil
// when it is not known. Counts and quotients come as metrics of their kind. A figure
// in the map counts where the field is empty: older files may have it there.
func (l *Layer) Figure(key string) *Metric {
	e, ok := lookup(key)
	if ok && e.Derived() {
		return quotient(&e.Quantity, l.Figure)
	}
	if ok && e.layer != nil {
		if m := e.layer(l).get(); m != nil {
			return m
		}
	}
	return l.Figures[key]
}

// Figure returns the whole model's figure with a key, like [Layer.Figure].
// Quotients leave out the work of layers that did not run: see [Profile.Rates].
func (t *Totals) Figure(key string) *Metric {
	e, ok := lookup(key)
	if ok && e.Derived() {
		return quotient(&e.Quantity, t.Figure)
	}
	if ok && e.total != nil {
		if m := e.total(t).get(); m != nil {
			return m
		}
	}
	return t.Figures[key]
}

// Value returns the figure to show of a quantity: [Metric.Best] of [Layer.Figure].
func (l *Layer) Value(key string) (v float64, ok bool) {
	// Counts are asked for often: without a metric in between.
	if e, found := lookup(key); found && e.layer != nil {
		if v, ok = e.layer(l).value(); ok {
			return v, true
		}
	}
	return l.Figure(key).Best()
}

// Value returns the figure to show of the whole model, like [Layer.Value].
func (t *Totals) Value(key string) (v float64, ok bool) { return t.Figure(key).Best() }

// Set stores a layer's figure; nil takes it away. The error says that a figure
// follows from others, that a count is not an integer, or that the key is none.
func (l *Layer) Set(key string, m *Metric) error {
	if v, known := m.Best(); known && (key == "share" || strings.HasPrefix(key, "sparsity_")) && !isFraction(v) {
		return fmt.Errorf("%s is %v, want 0 to 1", key, v)
	}
	e, ok := lookup(key)
	if ok && e.layer != nil {
		if strings.HasPrefix(key, "sparsity_") {
			return l.setSparsity(key, e, m)
		}
		return e.layer(l).set(key, m)
	}
	return store(&l.Figures, key, e, ok, m)
}

// setSparsity sets a field of the layer's sparsity in a copy of it, which other
// copies of the layer do not share, and leaves none where nothing is known.
func (l *Layer) setSparsity(key string, e entry, m *Metric) error {
	c := *l
	c.Sparsity = &Sparsity{}
	if l.Sparsity != nil {
		*c.Sparsity = *l.Sparsity
	}
	if err := e.layer(&c).set(key, m); err != nil {
		return err
	}
	if l.Sparsity == nil && m == nil {
		return nil
	}
	l.Sparsity = c.Sparsity
	return nil
}

// Set stores a figure of the whole model, like [Layer.Set].
func (t *Totals) Set(key string, m *Metric) error {
	e, ok := lookup(key)
	if ok && e.total != nil {
		return e.total(t).set(key, m)
	}
	return store(&t.Figures, key, e, ok, m)
}

func store(to *map[string]*Metric, key string, e entry, ok bool, m *Metric) error {
	if ok && e.Derived() {
		return fmt.Errorf("%s follows from %s and is not stored", key, strings.Join(slices.Concat(e.Of, e.Per), ", "))
	}
	if !isKey(key) {
		return badKey(key)
	}
	if m == nil {
		delete(*to, key)
		return nil
	}
	if *to == nil {
		*to = map[string]*Metric{}
	}
	(*to)[key] = m
	return nil
}

func (s place) value() (float64, bool) {
	switch {
	case s.count != nil && *s.count != nil:
		return float64(**s.count), true
	case s.real != nil && *s.real != nil:
		return **s.real, true
	case s.metric != nil:
		return (*s.metric).Best()
	}
	return 0, false
}

func (s place) get() *Metric {
	if s.metric != nil {
		return *s.metric
	}
	v, ok := s.value()
	if !ok {
		return nil
	}
	kind := Counted
	if s.real != nil {
		kind = s.kind
	}
	return &Metric{Kind: kind, Median: &v}
}

func (s place) set(key string, m *Metric) error {
	v, ok := m.Best()
	if m != nil && !ok {
		return fmt.Errorf("%s has no value", key)
	}
	switch {
	case s.metric != nil:
		*s.metric = m
	case s.real != nil && m == nil:
		*s.real = nil
	case s.real != nil:
		*s.real = &v
	case s.count != nil && m == nil:
		*s.count = nil
	case s.count != nil:
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return fmt.Errorf("%s is %v, want an integer", key, v)
		}
		*s.count = new(int64(v))
	default:
		return fmt.Errorf("%s cannot be set", key)
	}
	return nil
}

// quotient computes a derived figure, nil where a part is not known or the divisor
// is not above zero.
func quotient(q *Quantity, figure func(string) *Metric) *Metric {
	sum := func(keys []string) (s float64, ok bool) {
		for _, k := range keys {
			v, ok := figure(k).Best()
			if !ok {
				return 0, false
			}
			s += v
		}
		return s, true
	}
	of, ok := sum(q.Of)
	if !ok {
		return nil
	}
	per, ok := sum(q.Per)
	if !ok || !(per > 0) || math.IsInf(of/per, 0) {
		return nil
	}
	kind := Counted
	for _, k := range slices.Concat(q.Of, q.Per) {
		kind = weakest(kind, figure(k).Kind)
	}
	return &Metric{Kind: kind, Median: new(of / per)}
}

// weakest is the kind of a figure that is made of two: that of its less sure part.
func weakest(a, b Kind) Kind {
	if slices.Index(kinds, string(a)) > slices.Index(kinds, string(b)) {
		return a
	}
	return b
}

// foreign lists the keys of figures that stand in maps, over all layers and totals.
func (p *Profile) foreign() []string {
	keys := map[string]bool{}
	for k := range p.Totals.Figures {
		keys[k] = true
	}
	for i := range p.Layers {
		for k := range p.Layers[i].Figures {
			keys[k] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
