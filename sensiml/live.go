package sensiml

import (
	"maps"
	"math"
	"slices"
)

// Sizes of a Live.
const (
	// inferences of a model before the layers are told of: enough to judge figures by
	liveStart  = 8
	liveWindow = 64 // inferences that a figure is judged by
)

// Live gives the inferences of a stream one after the other, for whoever shows them as they come.
// It holds back the first few, from which it learns where figures stand and what is usual.
type Live struct {
	c       *Collector
	rules   Rules
	models  []ModelResult
	unit    string
	started bool
	taken   map[int]int
	out     []LiveInference
	late    map[int]bool
}

// LiveInference is the figures of one model in one inference.
type LiveInference struct {
	// Model is the index in Live.Models.
	Model int
	// Figures are those of the model's generators in their order, then of the classifier: counts in
	// the unit of Live.Unit, NaN if absent. Bad are the positions of those that were left
	// out because they contradict the device's own times or lie far outside.
	Figures []float64
	Bad     []int
}

// NewLive makes a Live for a pack, nil where there is no model.json.
func NewLive(p *Pack, r Rules) *Live {
	r.Warmup = 0
	return &Live{c: NewCollector(p), rules: r, taken: map[int]int{}, late: map[int]bool{}}
}

// Add takes a message, and returns the inferences that became known.
func (l *Live) Add(m *Message) []LiveInference {
	l.c.Add(m)
	if !l.started && l.c.Runs() < liveStart {
		return nil
	}
	return l.take()
}

// End says that the stream is over, and returns what was held back.
func (l *Live) End() []LiveInference {
	l.c.End()
	return l.take()
}

// Started reports whether the layers are known.
func (l *Live) Started() bool { return l.started }

// Models are the models with their generators, once started.
func (l *Live) Models() []ModelResult { return l.models }

// Unit of the figures, "cycles" or "ns", once started.
func (l *Live) Unit() string { return l.unit }

// Result is what is known beside figures: classes, what was left out, findings.
func (l *Live) Result() *Result { return l.c.Result(l.rules) }

// take analyses the inferences that were not given yet.
func (l *Live) take() []LiveInference {
	if !l.started {
		if l.c.Runs() == 0 {
			return nil
		}
		res := l.c.Result(l.rules)
		l.unit, l.started = res.Unit, true
		l.rules.Nanoseconds = res.Unit == "ns"
		for i := range res.Models {
			if m := res.Models[i]; m.Runs > 0 || len(m.Features) > 0 {
				l.models = append(l.models, m)
			}
		}
	}
	l.out = l.out[:0]
	for _, i := range slices.Sorted(maps.Keys(l.c.devices)) {
		l.model(i)
	}
	return l.out
}

// model gives the new inferences of a model.
func (l *Live) model(index int) {
	d := l.c.devices[index]
	at := slices.IndexFunc(l.models, func(m ModelResult) bool { return m.Index == index })
	if at < 0 {
		l.late[index] = l.late[index] || d.profiled
		l.c.forget(d, -1)
		return
	}
	n := l.models[at].length
	l.c.forget(d, n)
	rows := d.groups[n]
	done := min(l.taken[index], len(rows))
	if done == len(rows) {
		return
	}
	a := &analysis{d: d, rules: l.rules, res: &Result{Unit: l.unit}, frozen: &l.models[at]}
	a.model(l.c)
	// The analysis may leave rows out that say nothing by themselves.
	fresh := len(rows) - done
	from := max(0, len(a.rows)-fresh)
	for k := from; k < len(a.rows); k++ {
		l.out = append(l.out, a.inference(at, &l.models[at], k))
	}
	if len(rows) > liveWindow {
		for _, r := range rows[:len(rows)-liveWindow] {
			l.c.kept -= len(r.cycles) + len(r.times) + 2
		}
		d.groups[n] = slices.Clone(rows[len(rows)-liveWindow:])
	}
	l.taken[index] = len(d.groups[n])
}

// inference is the figures of one row.
func (a *analysis) inference(model int, told *ModelResult, k int) LiveInference {
	x := LiveInference{Model: model}
	add := func(r *Row, was *Row, raw float64) {
		v := math.NaN()
		if r.each != nil && was.State == Reported {
			v = r.each[k]
			if math.IsNaN(v) && raw != 0 {
				x.Bad = append(x.Bad, len(x.Figures))
			}
		}
		x.Figures = append(x.Figures, v)
	}
	for i := range a.out.Features {
		r := &a.out.Features[i]
		raw := 0.0
		if r.Slot != nil && *r.Slot < len(a.rows[k].cycles) {
			raw = a.rows[k].cycles[*r.Slot]
		}
		add(r, &told.Features[i], raw)
	}
	if a.out.Classifier != nil && told.Classifier != nil {
		add(a.out.Classifier, told.Classifier, a.rows[k].clf)
	}
	return x
}

// Late are the models that began to print when the layers were told of already.
func (l *Live) Late() []int {
	var out []int
	for _, i := range slices.Sorted(maps.Keys(l.late)) {
		if l.late[i] {
			out = append(out, i)
		}
	}
	return out
}
