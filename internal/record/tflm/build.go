package tflm

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

var ticks, _ = profile.Lookup("ticks")

// runs makes runs of the groups: those of one model with the same operators and no
// benchmark's heading between are inferences of one run.
func (l *log) runs(name string, clock float64, lost int64) (out []*runlog.Run) {
	if l.model.path != "" {
		name = modelName(l.model.path)
	}
	used := map[*sums]bool{}
	var gs []*group
	for _, g := range l.groups {
		if len(g.events) > 0 || g.round != nil {
			gs = append(gs, g)
		}
	}
	var parts [][]*group
	for _, g := range gs {
		if n := len(parts); n > 0 && g.round == nil && g.title == "" && sameTags(parts[n-1][len(parts[n-1])-1], g) {
			parts[n-1] = append(parts[n-1], g)
			continue
		}
		parts = append(parts, []*group{g})
	}
	const most = 1000
	for i, part := range parts[:min(len(parts), most)] {
		n := name
		if len(parts) > 1 {
			n += " " + strconv.Itoa(i+1)
		}
		d := draft.New("tflm", n, "TensorFlow Lite Micro")
		d.Dropped.Add(fmt.Sprintf("more than %d events", maxEvents), lost)
		d.Dropped.Add(fmt.Sprintf("more than %d runs", most), int64(max(0, len(parts)-most)))
		if part[0].title != "" {
			d.P.Model.Description = draft.Text(part[0].title)
		}
		l.describe(d)
		inferences(d, part, clock)
		l.join(d)
		next := math.MaxInt
		if i+1 < len(parts) {
			next = parts[i+1][0].order
		}
		for _, t := range l.tables {
			if t.order < next && !used[t] {
				used[t] = true
				t.compare(d, clock)
			}
		}
		out = append(out, d.Run())
	}
	if len(parts) == 0 {
		for _, t := range l.tables {
			if len(t.rows) == 0 {
				continue
			}
			d := draft.New("tflm", name, "TensorFlow Lite Micro")
			l.describe(d)
			t.layers(d, clock)
			out = append(out, d.Run())
		}
		if len(out) == 0 && l.model.arena != nil {
			d := draft.New("tflm", name, "TensorFlow Lite Micro")
			l.describe(d)
			out = append(out, d.Run())
		}
	}
	return out
}

func sameTags(a, b *group) bool {
	return slices.EqualFunc(a.events, b.events, func(x, y event) bool { return x.tag == y.tag })
}

// describe sets what the benchmark prints of model, target and memory.
func (l *log) describe(d *draft.Draft) {
	m := &l.model
	if m.path != "" {
		d.P.Model.Path = draft.Text(m.path)
	}
	if m.bytes > 0 {
		d.P.Model.FileBytes = &m.bytes
	}
	for _, n := range l.notes {
		d.Note(n[0], n[1])
		if n[0] == "TARGET" {
			d.P.Target.Description = draft.Text(n[1])
		}
	}
	if total, ok := m.arena["Total"]; ok && total >= 0 {
		d.P.Totals.RAMBytes = &total
		mem := &profile.Memory{Planner: "tflm"}
		if v, ok := m.arena["NonPersistent"]; ok && v >= 0 {
			mem.ArenaBytes = &v
		}
		if v, ok := m.arena["Persistent"]; ok && v >= 0 {
			mem.PersistentBytes = &v
		}
		d.P.Memory = mem
	}
	for _, a := range m.allocs {
		key := "arena_" + runlog.Key(a[0])
		for i, part := range []string{"used", "requested", "count"} {
			if v := number(a[2+i]); v >= 0 {
				q := profile.Quantity{Key: key + "_" + part + "_bytes", Unit: "B", Name: "Arena: " + a[0] + ", " + part, Group: "Memory", Whole: true}
				if part == "count" {
					q.Key, q.Unit = key+"_count", ""
				}
				d.Total(q, float64(v))
			}
		}
	}
}

// Period is the number of operators after which the tags repeat, all of them when they do not.
// Tags that are all alike tell nothing.
func Period(tags []string) int {
	n := len(tags)
	for p := 2; p <= n/2; p++ {
		if n%p != 0 {
			continue
		}
		same, alike := true, true
		for i := p; i < n && same; i++ {
			same = tags[i] == tags[i-p]
		}
		for i := 1; i < p && alike; i++ {
			alike = tags[i] == tags[0]
		}
		if same && !alike {
			return p
		}
	}
	return n
}

// period is that of events.
func period(es []event) int {
	tags := make([]string, len(es))
	for i, e := range es {
		tags[i] = e.tag
	}
	return Period(tags)
}

// inferences makes the layers of groups of events, and their figures over the inferences.
func inferences(d *draft.Draft, gs []*group, clock float64) {
	var es []event
	for _, g := range gs {
		es = append(es, g.events...)
	}
	n := len(gs[0].events)
	switch g := gs[0]; {
	case len(gs) == 1 && g.n > 1 && int64(n)%g.n == 0:
		n = int(int64(n) / g.n)
	case n > 0 && len(gs) == 1:
		n = period(g.events)
	}
	if g := gs[0]; g.round != nil {
		whole(d, g, clock)
	}
	if n == 0 || len(es) == 0 {
		hertz(d, es, gs, clock)
		return
	}
	runs := len(es) / n
	for i := range n {
		k := d.Add(profile.Layer{Name: es[i].tag, Op: es[i].tag}, runlog.Hint{})
		if k < 0 {
			break
		}
		ts, ms := make([]float64, 0, runs), make([]float64, 0, runs)
		for r := range runs {
			e := es[r*n+i]
			ts = append(ts, float64(e.ticks))
			if e.ms > 0 {
				ms = append(ms, float64(e.ms)/1e3)
			}
		}
		set(d, k, ts, ms, clock)
	}
	if runs > 1 {
		d.P.Settings.Runs = new(int64(runs))
		d.Found("tflm.inferences", profile.Info, "The log has %d inferences of %d operators: the names repeat.", runs, n)
		if clock > 0 && gs[0].round == nil {
			var walls []float64
			for r := range runs {
				sum := int64(0)
				for i := range n {
					sum += es[r*n+i].ticks
				}
				walls = append(walls, float64(sum)/clock)
			}
			d.P.Totals.Latency, d.P.Totals.LatencySamples = draft.Samples(walls, "sum of the operators")
		}
	}
	hertz(d, es, gs, clock)
}

// set puts ticks and time of a layer over the inferences.
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
		if y.Latency, y.Samples = draft.Samples(ts, "ticks divided by the clock that was given"); len(ts) == 1 {
			y.Latency, y.Samples = draft.Value(ts[0]), nil
			y.Latency.Method = "ticks divided by the clock that was given"
		}
		return
	}
	if len(ms) > 0 && len(ms) == len(ts) {
		y.Latency, _ = draft.Samples(ms, "milliseconds as printed, cut to whole ones")
	}
}

// whole sets the time of the inferences that a benchmark printed.
func whole(d *draft.Draft, g *group, clock float64) {
	n := float64(g.n)
	d.P.Settings.Runs = &g.n
	if g.round.tag != "" {
		d.Note("benchmark", g.round.tag)
	}
	d.Total(profile.Quantity{Key: "benchmark_ticks", Unit: "cycles", Name: "Ticks of an inference", Group: "Time", Better: -1}, float64(g.round.ticks)/n)
	m := &profile.Metric{}
	switch {
	case clock > 0:
		m.Mean, m.Method = new(float64(g.round.ticks)/n/clock), "ticks divided by the clock that was given"
	case g.round.ms > 0:
		m.Mean, m.Method = new(float64(g.round.ms)/n/1e3), "milliseconds as printed, cut to whole ones"
	}
	if g.n > 1 {
		m.N = &g.n
	}
	d.P.Totals.Latency = draft.Metric(m)
}

// hertz says what is known about the clock. Printed milliseconds are the ticks divided by it
// and cut off, so that each line bounds it.
func hertz(d *draft.Draft, es []event, gs []*group, clock float64) {
	for _, g := range gs {
		if g.round != nil {
			es = append(es, *g.round)
		}
	}
	lo, hi := 0.0, math.Inf(1)
	nonzero := false
	for _, e := range es {
		nonzero = nonzero || e.ticks > 0
		if e.ms < 0 || e.ticks <= 0 {
			continue
		}
		lo = max(lo, float64(e.ticks)*1e3/float64(e.ms+1))
		if e.ms > 0 {
			hi = min(hi, float64(e.ticks)*1e3/float64(e.ms))
		}
	}
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

// join adds what the model's analysis tells of its operators, where they are those that ran.
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

// compare keeps a table of sums by tag beside the operators: what is not an operator belongs
// to the initialisation.
func (t *sums) compare(d *draft.Draft, clock float64) {
	have := map[string]float64{}
	for i := range d.P.Layers {
		v, _ := d.Layer(i).Value(ticks.Key)
		have[d.Layer(i).Op] += v
	}
	var differ []string
	for _, r := range t.rows {
		sum, ran := have[r.tag]
		if !ran {
			d.Total(profile.Quantity{Key: "init_" + runlog.Key(r.tag) + "_ticks", Unit: "cycles", Name: "Initialisation: " + r.tag + ", ticks", Group: "Time"}, float64(r.ticks))
			if clock > 0 {
				d.Total(profile.Quantity{Key: "init_" + runlog.Key(r.tag) + "_s", Unit: "s", Name: "Initialisation: " + r.tag, Group: "Time"}, float64(r.ticks)/clock)
			}
			continue
		}
		d.Total(profile.Quantity{Key: "tag_" + runlog.Key(r.tag) + "_ticks", Unit: "cycles", Name: "Sum of " + r.tag + " as recorded, ticks", Group: "Time"}, float64(r.ticks))
		if runs := d.P.Settings.Runs; sum != float64(r.ticks) && (runs == nil || *runs == 1) {
			differ = append(differ, fmt.Sprintf("%s %d and not %.0f", r.tag, r.ticks, sum))
		}
	}
	if len(differ) > 0 {
		d.Found("tflm.sums", profile.Info, "The log's table of ticks by name says something else than its operators add up to: %s.", strings.Join(differ[:min(len(differ), 20)], ", "))
	}
}

// layers makes layers of a table of sums where a file has nothing else.
func (t *sums) layers(d *draft.Draft, clock float64) {
	for _, r := range t.rows {
		if k := d.Add(profile.Layer{Name: r.tag, Op: r.tag}, runlog.Hint{}); k >= 0 {
			set(d, k, []float64{float64(r.ticks)}, nil, clock)
		}
	}
	if t.has {
		d.Total(profile.Quantity{Key: "recorded_ticks", Unit: "cycles", Name: "Ticks as recorded", Group: "Time"}, float64(t.total))
		sum := int64(0)
		for _, r := range t.rows {
			sum += r.ticks
		}
		if sum != t.total && (sum-t.total)%(1<<32) != 0 {
			d.Found("tflm.sums", profile.Info, "The table says %d ticks in all; its rows add up to %d.", t.total, sum)
		}
	}
	d.Found("tflm.tags", profile.Info, "The log has one figure for all events of a name: a layer here is such a sum.")
	hertz(d, nil, nil, clock)
}

// modelName is the name of a model by the path that a benchmark prints.
func modelName(p string) string { return strings.TrimSuffix(path.Base(p), ".tflite") }
