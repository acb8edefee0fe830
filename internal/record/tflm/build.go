package tflm

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

var ticks, _ = profile.Lookup("ticks")

const (
	engine = "TensorFlow Lite Micro"
	// Methods of times.
	byClock   = "ticks divided by the clock that was given"
	byPrinted = "milliseconds as printed, cut to whole ones"
)

// draft begins a run; the path of the model takes precedence over name.
func (l *log) draft(name string) *draft.Draft {
	if p := l.model.path; p != "" {
		name = modelName(p)
	}
	d := draft.New("tflm", name, engine)
	l.describe(d)
	return d
}

// runs makes the runs. Groups of one model with equal operators and without a benchmark's heading
// between are inferences of one run. clock is in hertz, 0 if unknown.
func (l *log) runs(name string, clock float64) (out []*draft.Draft) {
	var parts [][]*group
	l.wholes()
	for _, g := range l.groups {
		if len(g.events) == 0 && g.round == nil {
			continue
		}
		if n := len(parts); n > 0 && g.round == nil && g.title == "" && len(g.setup) == 0 && sameTags(parts[n-1][len(parts[n-1])-1], g) {
			parts[n-1] = append(parts[n-1], g)
		} else {
			parts = append(parts, []*group{g})
		}
	}
	used := map[*sums]bool{}
	for i, part := range parts[:min(len(parts), draft.MaxRuns)] {
		d := l.draft(name)
		d.P.Model.Description = draft.Text(part[0].title)
		inferences(d, part, clock)
		for _, e := range part[0].setup {
			initialisation(d, e, clock)
		}
		l.join(d)
		for _, t := range l.tables {
			if !used[t] && (i+1 == len(parts) || t.order < parts[i+1][0].order) {
				used[t] = true
				t.compare(d, clock)
			}
		}
		out = append(out, d)
	}
	draft.Beyond(out, int64(max(0, len(parts)-draft.MaxRuns)))
	if len(parts) > 0 {
		return out
	}
	for _, t := range l.tables {
		if len(t.rows) > 0 {
			d := l.draft(name)
			t.layers(d, clock)
			out = append(out, d)
		}
	}
	if len(out) == 0 && len(l.model.arena) > 0 {
		out = append(out, l.draft(name))
	}
	return out
}

// wholeTag is a name that programs give to the time of a whole inference, or of its preparation.
var wholeTag = lazyregexp.New(`(?i)(init|setup|load|alloc|invoke|inference|total|run|iteration|predict|benchmark)`)

// preparation matches the names that are not those of an inference.
var preparation = lazyregexp.New(`(?i)(init|setup|load|alloc)`)

// isWhole reports whether an event is not of an operator, judging by its name.
func isWhole(e *Event) bool {
	t := opTag.FindString(e.Tag)
	return t != e.Tag && wholeTag.MatchString(e.Tag)
}

// wholes separates the events of whole inferences and of their preparation from those of
// operators: by their names, and by taking at least as long as the operators beside them.
func (l *log) wholes() {
	operators := slices.ContainsFunc(l.groups, func(g *group) bool {
		return slices.ContainsFunc(g.events, func(e Event) bool { return opTag.FindString(e.Tag) == e.Tag })
	})
	if !operators {
		return
	}
	var apart []Event // that stood alone since the last operators
	var before *group
	for _, g := range l.groups {
		if g.round != nil {
			g.setup, apart = apart, nil
			continue
		}
		if !slices.ContainsFunc(g.events, func(e Event) bool { return !isWhole(&e) }) {
			for _, e := range g.events {
				if before == nil || !before.takes(e) {
					apart = append(apart, e)
				}
			}
			g.events = nil
			continue
		}
		if i := slices.IndexFunc(g.events, func(e Event) bool { return isWhole(&e) }); i >= 0 {
			e := g.events[i]
			rest := slices.Delete(slices.Clone(g.events), i, i+1)
			was := g.events
			if g.events = rest; !g.takes(e) {
				g.events = was
			}
		}
		apart = slices.DeleteFunc(apart, g.takes)
		g.setup, apart, before = apart, nil, g
	}
	if before != nil {
		before.setup = append(before.setup, apart...)
	}
}

// takes makes an event the time of the group's inference, and reports whether it can be that.
func (g *group) takes(e Event) bool {
	if g.wall != nil || preparation.MatchString(e.Tag) || e.Ticks < ticksIn(g.events) {
		return false
	}
	g.wall = &e
	return true
}

// initialisation sets the figures of an event before the inferences.
func initialisation(d *draft.Draft, e Event, clock float64) {
	if e.Ticks < 0 {
		return
	}
	key := "init_" + runlog.Key(e.Tag)
	d.Total(profile.Quantity{Key: key + "_ticks", Unit: "cycles", Name: "Initialisation: " + e.Tag + ", ticks", Group: "Time"}, float64(e.Ticks))
	if clock > 0 {
		d.Total(profile.Quantity{Key: key + "_s", Unit: "s", Name: "Initialisation: " + e.Tag, Group: "Time"}, float64(e.Ticks)/clock)
	}
}

func sameTags(a, b *group) bool {
	return slices.EqualFunc(a.events, b.events, func(x, y Event) bool { return x.Tag == y.Tag })
}

// describe sets the benchmark's text about model, target and memory.
func (l *log) describe(d *draft.Draft) {
	m := &l.model
	d.P.Model.Path = draft.Text(m.path)
	if m.bytes > 0 {
		d.P.Model.FileBytes = &m.bytes
	}
	for _, n := range l.notes {
		d.Note(n[0], n[1])
		if n[0] == "TARGET" {
			d.P.Target.Description = draft.Text(n[1])
		}
	}
	arena := func(part string) *int64 {
		v, ok := m.arena[part]
		return draft.Count(v, ok)
	}
	if total := arena("Total"); total != nil {
		d.P.Totals.RAMBytes = total
		d.P.Memory = &profile.Memory{Planner: "tflm", ArenaBytes: arena("NonPersistent"), PersistentBytes: arena("Persistent")}
	}
	for _, a := range m.allocs {
		key := "arena_" + runlog.Key(a[0])
		for i, part := range []string{"used", "requested", "count"} {
			q := profile.Quantity{Key: key + "_" + part + "_bytes", Unit: "B", Name: "Arena: " + a[0] + ", " + part, Group: "Memory", Whole: true}
			if part == "count" {
				q.Key, q.Unit = key+"_count", ""
			}
			if v := number(a[2+i]); v >= 0 {
				d.Total(q, float64(v))
			}
		}
	}
}

// inferences makes the layers of groups of events, and their figures over the inferences.
func inferences(d *draft.Draft, gs []*group, clock float64) {
	var es []Event
	for _, g := range gs {
		es = append(es, g.events...)
	}
	g := gs[0]
	n := len(g.events)
	switch {
	case len(gs) == 1 && g.n > 1 && int64(n)%g.n == 0:
		n = int(int64(n) / g.n)
	case n > 0 && len(gs) == 1:
		tags := make([]string, n)
		for i, e := range g.events {
			tags[i] = e.Tag
		}
		n = record.Period(tags)
	}
	if g.round != nil {
		whole(d, g, clock)
	}
	runs := len(es) / max(n, 1)
	if !repair(d, es, clock) {
		for i := range es {
			es[i].MS = -1 // times of the others would be shown as the whole
		}
	}
	for i := range n {
		k := d.Add(profile.Layer{Name: es[i].Tag, Op: es[i].Tag}, runlog.Hint{})
		if k < 0 {
			break
		}
		ts, ms := make([]float64, 0, runs), make([]float64, 0, runs)
		for r := range runs {
			e := es[r*n+i]
			if e.Ticks < 0 {
				continue
			}
			ts = append(ts, float64(e.Ticks))
			if e.MS > 0 {
				ms = append(ms, float64(e.MS)/1e3)
			}
		}
		set(d, k, ts, ms, clock)
	}
	if runs > 1 && n > 0 {
		d.P.Settings.Runs = new(int64(runs))
		d.Found("tflm.inferences", profile.Info, "The log has %d inferences of %d operators: the names repeat.", runs, n)
		if clock > 0 && g.round == nil {
			var walls []float64
			for part := range slices.Chunk(es, n) {
				if readable(part) {
					walls = append(walls, float64(ticksIn(part))/clock)
				}
			}
			d.P.Totals.Latency, d.P.Totals.LatencySamples = draft.Samples(walls, "sum of the operators")
		}
	}
	walls(d, gs, clock)
	hertz(d, es, gs, clock)
}

func ticksIn(es []Event) (sum int64) {
	for _, e := range es {
		sum += max(0, e.Ticks)
	}
	return sum
}

// readable reports whether the ticks of all events are known.
func readable(es []Event) bool {
	return !slices.ContainsFunc(es, func(e Event) bool { return e.Ticks < 0 })
}

// repair gives events whose count was printed as negative their milliseconds: the printed ones are
// those of the negative count, by the same clock. It reports whether all such times are known.
func repair(d *draft.Draft, es []Event, clock float64) bool {
	unknown, wraps := int64(0), 0
	for _, e := range es {
		if e.Ticks < 0 {
			unknown++
		}
		if e.wrapped {
			wraps++
		}
	}
	d.Dropped.Add("counts of ticks that cannot be read", unknown)
	if unknown > 0 {
		d.Found("tflm.unread", profile.Warning, "%d counts of ticks cannot be read: they are not integers, negative beyond 32 bits or larger than 53 bits. Their operators have no figure, and sums lack them.", unknown)
	}
	if wraps == 0 {
		return true
	}
	lo, hi := bounds(es)
	exact := lo > 0 && hi-lo <= hi/100
	for i := range es {
		if e := &es[i]; e.wrapped && exact {
			e.MS = int64(math.Round(float64(e.Ticks) * 1e3 / Roundest(lo, hi)))
		}
	}
	text := "There are no times, since the clock is not known: give it with --clock."
	switch {
	case clock > 0:
		text = "Times are by the clock that was given."
	case exact:
		text = "Their times are by the clock that the printed milliseconds imply."
	}
	d.Found("tflm.wrapped", profile.Warning, "Counts of ticks that are negative: %d. The profiler counts 32 bits and prints them as signed, so 2^32 was added. %s", wraps, text)
	return exact
}

// set sets ticks and time of a layer over the inferences.
func set(d *draft.Draft, k int, ts, ms []float64, clock float64) {
	y := d.Layer(k)
	m, _ := draft.Samples(ts, "")
	if v, ok := m.Best(); ok {
		d.Set(k, ticks, v)
		_ = y.Set(ticks.Key, m)
	}
	if clock > 0 {
		for i := range ts {
			ts[i] /= clock
		}
		y.Latency, y.Samples = draft.Figure(ts, byClock)
	} else if len(ms) == len(ts) && len(ms) > 0 {
		y.Latency, _ = draft.Samples(ms, byPrinted)
	}
}

// walls sets the latency from the times of whole inferences, if all groups have one.
func walls(d *draft.Draft, gs []*group, clock float64) {
	var seconds []float64
	method := byClock
	for _, g := range gs {
		switch {
		case g.wall == nil:
			return
		case clock > 0:
			seconds = append(seconds, float64(g.wall.Ticks)/clock)
		case g.wall.MS > 0:
			seconds, method = append(seconds, float64(g.wall.MS)/1e3), byPrinted
		}
	}
	if len(seconds) == len(gs) {
		d.P.Totals.Latency, d.P.Totals.LatencySamples = draft.Figure(seconds, method)
	}
	d.Note("inference", gs[0].wall.Tag)
}

// whole sets the time of the inferences that a benchmark printed.
func whole(d *draft.Draft, g *group, clock float64) {
	n := float64(g.n)
	d.P.Settings.Runs = &g.n
	d.Note("benchmark", g.round.Tag)
	if g.round.Ticks < 0 {
		return
	}
	perRun := float64(g.round.Ticks) / n
	d.Total(profile.Quantity{Key: "benchmark_ticks", Unit: "cycles", Name: "Ticks of an inference", Group: "Time", Better: -1}, perRun)
	m := &profile.Metric{}
	switch {
	case clock > 0:
		m.Mean, m.Method = new(perRun/clock), byClock
	case g.round.MS > 0:
		m.Mean, m.Method = new(float64(g.round.MS)/n/1e3), byPrinted
	}
	if g.n > 1 {
		m.N = &g.n
	}
	d.P.Totals.Latency = draft.Metric(m)
}

// bounds returns the clocks between which the printed milliseconds put it. They are the ticks
// divided by it and truncated.
func bounds(es []Event) (lo, hi float64) {
	hi = math.Inf(1)
	for _, e := range es {
		count, ms := e.Ticks, e.MS
		if e.wrapped {
			count, ms = 1<<32-e.Ticks, e.signedMS
		}
		if ms < 0 || count <= 0 {
			continue
		}
		lo = max(lo, float64(count)*1e3/float64(ms+1))
		if ms > 0 {
			hi = min(hi, float64(count)*1e3/float64(ms))
		}
	}
	return lo, hi
}

// hertz reports the clock. Printed milliseconds are the ticks divided by it and truncated, so that
// each line bounds it.
func hertz(d *draft.Draft, es []Event, gs []*group, clock float64) {
	for _, g := range gs {
		if g.round != nil {
			es = append(es, *g.round)
		}
		if g.wall != nil {
			es = append(es, *g.wall)
		}
	}
	lo, hi := bounds(es)
	nonzero := slices.ContainsFunc(es, func(e Event) bool { return e.Ticks != 0 })
	bounded := lo > 0 && !math.IsInf(hi, 1) && lo < hi
	switch {
	case !nonzero && len(es) > 0:
		d.Found("tflm.ticks", profile.Warning, "All ticks are 0: the profiler's clock did not run.")
	case clock > 0 && bounded && (clock <= lo*(1-1e-9) || clock > hi*(1+1e-9)):
		d.P.Target.ClockHz = &clock
		d.Found("tflm.clock", profile.Warning, "The clock of %.6g Hz that was given contradicts the printed milliseconds, which ask for %.6g to %.6g Hz.", clock, lo, hi)
	case clock > 0:
		d.P.Target.ClockHz = &clock
	case bounded:
		d.Found("tflm.clock", profile.Warning, "The log counts ticks and does not tell their frequency. Times are the printed milliseconds, which are cut to whole ones; operators below one have none. By them the clock lies between %.6g and %.6g Hz: give it, such as --clock %.10g, for exact times.", lo, hi, Roundest(lo, hi))
	default:
		d.Found("tflm.clock", profile.Warning, "The log counts ticks and does not tell their frequency: give the profiler's clock in hertz with --clock for times.")
	}
}

// Roundest is the number in (lo, hi] with the fewest digits.
func Roundest(lo, hi float64) float64 {
	for digits := 1; digits <= 15; digits++ {
		unit := math.Pow(10, math.Floor(math.Log10(hi))-float64(digits-1))
		if v := math.Floor(hi/unit) * unit; v > lo {
			return v
		}
	}
	return hi
}

// join adds the model's analysis of its operators, if they are those that ran.
func (l *log) join(d *draft.Draft) {
	ops := slices.DeleteFunc(slices.Clone(l.model.ops), func(n modelNode) bool { return n.subtree })
	if len(ops) == 0 || len(ops) != d.Len() {
		return
	}
	for i, n := range ops {
		if n.op != d.Layer(i).Op {
			return
		}
	}
	tensors := func(ids []int64) (out []profile.Tensor) {
		for _, id := range ids {
			if t, ok := l.model.tensors[id]; ok {
				out = append(out, profile.Tensor{Name: t.name, Shape: t.shape, DType: t.dtype})
			}
		}
		return out
	}
	for i, n := range ops {
		y, h := d.Layer(i), d.Hint(i)
		y.Inputs, y.Outputs = tensors(n.ins), tensors(n.outs)
		h.Index = new(int64(i))
		for _, t := range y.Outputs {
			h.Outputs = append(h.Outputs, t.Name)
		}
		if len(y.Outputs) > 0 && y.Outputs[0].Name != "" {
			y.Name = draft.Text(y.Outputs[0].Name)
		}
	}
}

// compare adds a table of sums by tag to the operators: tags without operator belong to the
// initialisation.
func (t *sums) compare(d *draft.Draft, clock float64) {
	have := map[string]float64{}
	for i := range d.P.Layers {
		v, _ := d.Layer(i).Value(ticks.Key)
		have[d.Layer(i).Op] += v
	}
	var differ []string
	for _, r := range t.rows {
		if r.Ticks < 0 {
			d.Dropped.Add("counts of ticks that cannot be read", 1)
			continue
		}
		sum, ran := have[r.Tag]
		if !ran {
			initialisation(d, r, clock)
			continue
		}
		d.Total(profile.Quantity{Key: "tag_" + runlog.Key(r.Tag) + "_ticks", Unit: "cycles", Name: "Sum of " + r.Tag + " as recorded, ticks", Group: "Time"}, float64(r.Ticks))
		if runs := d.P.Settings.Runs; sum != float64(r.Ticks) && (runs == nil || *runs == 1) {
			differ = append(differ, fmt.Sprintf("%s %d and not %.0f", r.Tag, r.Ticks, sum))
		}
	}
	if len(differ) > 0 {
		d.Found("tflm.sums", profile.Info, "The log's table of ticks by name says something else than its operators add up to: %s.", strings.Join(differ[:min(len(differ), 20)], ", "))
	}
}

// layers makes layers of a table of sums if a file has no events.
func (t *sums) layers(d *draft.Draft, clock float64) {
	for _, r := range t.rows {
		k := d.Add(profile.Layer{Name: r.Tag, Op: r.Tag}, runlog.Hint{})
		switch {
		case r.Ticks < 0:
			d.Dropped.Add("counts of ticks that cannot be read", 1)
		case k >= 0:
			set(d, k, []float64{float64(r.Ticks)}, nil, clock)
		}
	}
	if t.has && t.total >= 0 {
		d.Total(profile.Quantity{Key: "recorded_ticks", Unit: "cycles", Name: "Ticks as recorded", Group: "Time"}, float64(t.total))
		if sum := ticksIn(t.rows); sum != t.total && (sum-t.total)%(1<<32) != 0 {
			d.Found("tflm.sums", profile.Info, "The table says %d ticks in all; its rows add up to %d.", t.total, sum)
		}
	}
	d.Found("tflm.tags", profile.Info, "The log has one figure for all events of a name: a layer here is such a sum.")
	hertz(d, nil, nil, clock)
}

// modelName is the name of a model by the path that a benchmark prints.
func modelName(p string) string { return strings.TrimSuffix(path.Base(p), ".tflite") }
