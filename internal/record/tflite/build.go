package tflite

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Quantities that the tool has and opmeter's table lacks.
var (
	firstTime  = profile.Quantity{Key: "first_s", Unit: "s", Head: "first", Name: "Time in the first run", Group: "Time", Doc: "Time of the operator's first call, as the record says."}
	lastTime   = profile.Quantity{Key: "last_s", Unit: "s", Head: "last", Name: "Time in the last run", Group: "Time"}
	memory     = profile.Quantity{Key: "memory_change_bytes", Unit: "B", Head: "memory", Name: "Change of memory", Group: "Memory", Doc: "Change of the process's memory during the operator, as the record says."}
	recorded   = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share as recorded", Group: "Record", Doc: "Part of the time by the record's own table."}
	cumulative = profile.Quantity{Key: "recorded_cumulative_share", Unit: "1", Head: "cum. share", Name: "Cumulative share as recorded", Group: "Record", Doc: "Part of the time of this operator and those before it in the record's table."}
	operators  = profile.Quantity{Key: "recorded_operators_s", Unit: "s", Name: "Sum of operators as recorded", Group: "Time", Doc: "Time of all operators of an inference by the record's own summary."}
	ofType     = profile.Quantity{Key: "operators", Name: "Operators of this type", Group: "Record", Adds: true, Whole: true}
	p5Time     = profile.Quantity{Key: "latency_p5_s", Unit: "s", Name: "Inference, p5", Group: "Time"}
	firstRun   = profile.Quantity{Key: "first_measured_s", Unit: "s", Name: "Inference, first", Group: "Time"}
	warmup     = profile.Quantity{Key: "warmup_s", Unit: "s", Name: "Inference while warming up", Group: "Time"}
)

// initTime is the time of a step of the initialisation.
func initTime(step string) profile.Quantity {
	return profile.Quantity{Key: "init_" + runlog.Key(step) + "_s", Unit: "s", Name: "Initialisation: " + step, Group: "Time"}
}

// processMemory is the memory of the process: its "peak", or the "delta" since the tool began.
func processMemory(what string, initialised bool) profile.Quantity {
	q := profile.Quantity{Key: "memory_" + what + "_bytes", Unit: "B", Name: "Memory of the process, " + what, Group: "Memory"}
	if initialised {
		q.Key, q.Name = "memory_"+what+"_init_bytes", q.Name+", initialised"
	}
	return q
}

// delegates are the units that delegates use, where known.
var delegates = map[string]string{
	"TfLiteXNNPackDelegate": profile.CPU, "TfLiteGpuDelegateV2": "gpu", "TfLiteGpuDelegate": "gpu", "TfLiteHexagonDelegate": "hexagon",
	"TfLiteNnapiDelegate": "nnapi", "TfLiteCoreMlDelegate": "coreml", "TfLiteMetalDelegate": "gpu", "EdgeTpuDelegateForCustomOp": "edgetpu",
}

// delegated reports whether an operator's type is that of a delegate's node.
func delegated(op string) bool { return strings.Contains(strings.ToLower(op), "delegate") }

// bodies are operators that run other graphs.
var bodies = map[string]bool{"WHILE": true, "IF": true, "CALL": true, "CALL_ONCE": true, "STABLEHLO_COMPOSITE": true, "StablehloWhile": true, "STABLEHLO_WHILE": true}

// nodeName is the name of a node and its position; printf implementations of small systems write
// "ld" for the number.
var nodeName = lazyregexp.New(`^(.*?)(?:[:/](\d+|ld|lld|zu|d))?$`)

// build makes the draft of the run, nil if it has no content.
func (l *log) build(name string) *draft.Draft {
	d := draft.New("tflite-benchmark", name, "TensorFlow Lite")
	d.P.Model.Path = l.graph
	d.Dropped.Add("rows that do not have the columns of their table", l.broken)
	d.Dropped.Add("times of operators that cannot be read", l.unknown)
	for _, p := range l.params {
		l.param(d, p[0], p[1])
	}
	bars := runlog.Lanes{}
	fill(d, l.run, &bars)
	phase(d, l.init, &bars)
	l.totals(d)
	d.P.Timeline = bars.Timeline("the first operator", "mean starts and durations over all runs, as the record has them")
	if d.Empty() && d.P.Phases == nil {
		return nil
	}
	return d
}

// param keeps a parameter of the tool.
func (l *log) param(d *draft.Draft, key, value string) {
	if n, ok := whole(value); ok {
		switch strings.ToLower(key) {
		case "num threads", "#threads used for cpu inference":
			d.P.Settings.Threads = &n
		case "min num runs":
			d.P.Settings.Runs = &n
		case "min warmup runs":
			d.P.Settings.WarmupRuns = &n
		}
	}
	d.Note(key, value)
}

// whole parses a number that consists of digits.
func whole(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 43)
	return int64(n), err == nil
}

// metric makes a figure from a line of figures in microseconds.
func (s stat) metric(method string) *profile.Metric {
	if s == nil || !(s["count"] >= 1) {
		return nil
	}
	get := func(name string) *float64 {
		v, ok := s[name]
		return draft.Known(v/1e6, ok)
	}
	m := &profile.Metric{Mean: get("avg"), Median: get("median"), Min: get("min"), Max: get("max"), StdDev: get("std"), P95: get("p95"), Method: method}
	if n := s["count"]; n == math.Trunc(n) && n < 1<<53 {
		m.N = new(int64(n))
	}
	if m.Mean == nil {
		m.Mean = get("curr") // if all runs are equal, only this is printed
	}
	return draft.Metric(m)
}

// totals sets the figures of the whole model.
func (l *log) totals(d *draft.Draft) {
	p := d.P
	warm, measured := stat(nil), stat(nil)
	_, wasWarm := l.parts["Warmup"]
	switch {
	case len(l.stats) >= 2:
		warm, measured = l.stats[0], l.stats[len(l.stats)-1]
	case len(l.stats) == 1 && !wasWarm:
		measured = l.stats[0]
	case len(l.stats) == 1:
		warm = l.stats[0]
	}
	// part returns a time of the line of parts in seconds.
	part := func(name string) *float64 {
		v, ok := l.parts[name]
		return draft.Known(v/1e6, ok)
	}
	p.Totals.Latency = measured.metric("")
	if v := part("Inference"); v != nil && !central(p.Totals.Latency) {
		m := cmp.Or(p.Totals.Latency, &profile.Metric{})
		m.Mean = v
		p.Totals.Latency = draft.Metric(m)
	}
	unread := (math.IsNaN(measured["avg"]) || math.IsNaN(l.parts["Inference"])) && !central(p.Totals.Latency)
	if unread {
		d.Found("record.incomplete", profile.Warning, "The mean of the measured runs cannot be read: the latency is unknown. The sum of the operators is a figure of its own and not the latency.")
	}
	inference := draft.Fields{"p5": {Q: p5Time, Scale: 1e-6}, "first": {Q: firstRun, Scale: 1e-6}}
	for _, name := range []string{"p5", "first"} {
		if v, ok := measured[name]; ok && !math.IsNaN(v) {
			inference.Total(d, name, v)
		}
	}
	ph := profile.Phases{PlanS: positive(part("Init")), FirstRunS: positive(part("First inference"))}
	if ph.PlanS == nil && l.session != nil {
		ph.PlanS = positive(new(*l.session / 1e3))
	}
	if v, ok := warm["first"]; ok && !math.IsNaN(v) && ph.FirstRunS == nil {
		ph.FirstRunS = positive(new(v / 1e6))
	}
	if n, avg := warm["count"], warm["avg"]; n >= 1 && n < 1e15 && avg >= 0 {
		ph.Warmup = &profile.Warmup{Count: new(int64(n)), TimeS: new(n * avg / 1e6)}
	}
	if v := part("Warmup"); v != nil {
		d.Total(warmup, *v)
	}
	if ph != (profile.Phases{}) {
		p.Phases = &ph
	}
	if l.sizeMB > 0 {
		d.Total(profile.Quantity{Key: "recorded_model_bytes", Unit: "B", Name: "Model file as recorded", Group: "Memory", Doc: "Size of the model file with the digits that the record has."}, l.sizeMB*1e6)
	}
	for what, v := range l.memory {
		d.Total(processMemory(what, true), v[0]*(1<<20))
		d.Total(processMemory(what, false), v[1]*(1<<20))
	}
	for _, b := range l.run {
		if b.delegate || b.index != 0 {
			continue
		}
		if m := b.memory; m["count"] >= 1 && !math.IsNaN(m["avg"]) {
			d.Total(profile.Quantity{Key: "recorded_memory_bytes", Unit: "B", Name: "Memory of operators as recorded", Group: "Memory"}, m["avg"])
		}
		if m := b.timings.metric("sum of the operators of each run"); m != nil {
			d.TotalMetric(operators, m)
			if p.Totals.Latency == nil && !unread {
				p.Totals.Latency = m
			}
			break
		}
	}
	if sum := layerSum(p); unread && sum > 0 && p.Totals.Figures[operators.Key] == nil {
		d.TotalMetric(operators, &profile.Metric{Kind: profile.Imported, Mean: &sum, Method: "sum of the layers"})
	}
	reconcile(p)
}

// central reports whether a figure is more than bounds.
func central(m *profile.Metric) bool { return m != nil && (m.Median != nil || m.Mean != nil) }

// layerSum is the time of all layers.
func layerSum(p *profile.Profile) (sum float64) {
	for i := range p.Layers {
		v, _ := p.Layers[i].Latency.Best()
		sum += v
	}
	return sum
}

// reconcile compares the sum of the layers with the time of an inference, which was
// measured in the same runs.
func reconcile(p *profile.Profile) {
	if !central(p.Totals.Latency) {
		return
	}
	wall, _ := p.Totals.Latency.Best()
	sum := layerSum(p)
	if gaps := wall - sum; sum > 0 && gaps >= 0 {
		p.Reconcile = &profile.Reconcile{WallS: new(sum + gaps), OperatorsS: &sum, GapsS: &gaps}
	}
}

// nesting collects layers that contain others, and those that are contained.
type nesting struct {
	control, inBodies     []int // operators that run graphs, and layers of these graphs
	delegates, inDelegate []int // nodes of delegates, and layers inside of delegates
}

// add adds a layer of a block; delegate reports whether it is the node of a delegate.
func (n *nesting) add(d *draft.Draft, i int, b *block, delegate bool) {
	switch {
	case b.delegate:
		n.inDelegate = append(n.inDelegate, i)
		return
	case b.index > 0:
		n.inBodies = append(n.inBodies, i)
	}
	if delegate {
		n.delegates = append(n.delegates, i)
	}
	if bodies[d.Layer(i).Op] {
		n.control = append(n.control, i)
	}
}

func (n *nesting) apply(d *draft.Draft) {
	nest(d, n.control, n.inBodies, "control flow")
	nest(d, n.delegates, n.inDelegate, "delegates")
}

// fill makes layers of the tables of the runs.
func fill(d *draft.Draft, blocks []*block, bars *runlog.Lanes) {
	var n nesting
	for _, b := range blocks {
		rows := b.order
		switch {
		case rows != nil:
		case b.top != nil:
			rows = b.top
			d.Found("record.cut", profile.Warning, "The table of all operators is missing: the profile has those that took the longest.")
		case b.types != nil:
			rows = b.types
			d.Found("record.cut", profile.Warning, "The tables of operators are missing: each layer is the sum of a type.")
		}
		// A platform that does not measure memory prints 0 everywhere, which means unknown.
		tracked := slices.ContainsFunc(rows, func(r row) bool { return r.kB != nil && *r.kB != 0 })
		for _, r := range rows {
			if !tracked {
				r.kB = nil
			}
			i := addRow(d, &r, b)
			if i < 0 {
				break
			}
			if r.start != nil && !r.unknown && b.order != nil && !b.delegate && b.index == 0 {
				bars.Add(bars.Lane(timeline.Layer, "", "operators", ""), r.bar(int32(i), -1))
			}
			n.add(d, i, b, delegated(r.node))
		}
	}
	n.apply(d)
}

// seconds returns the time of all calls in a run. The tool divides integers: 0 calls means that
// at least one of many runs skipped the operator.
func (r *row) seconds() float64 { return r.avg * math.Max(1, r.called) / 1e3 }

// bar returns the bar of a row that has a start.
func (r *row) bar(layer, label int32) runlog.Bar {
	return runlog.Bar{Start: *r.start / 1e3, Duration: math.Max(0, r.seconds()), Layer: layer, Iteration: -1, Label: label, Type: -1, Bytes: -1}
}

// addRow makes a layer of a row.
func addRow(d *draft.Draft, r *row, b *block) int {
	l := profile.Layer{Op: r.node}
	if op, kernel, ok := strings.Cut(r.node, "/"); ok && op != "" {
		l.Op, l.Kernel = op, kernel
	}
	if on, ok := delegates[l.Op]; ok {
		l.Placement = &profile.Placement{On: on}
	}
	if b.delegate {
		l.Scope = "delegate"
	} else if b.index > 0 {
		l.Graph = cmp.Or(b.graph, "subgraph")
	}
	var h runlog.Hint
	l.Name, h = named(r.name, b)
	if delegated(l.Op) {
		h.Index = nil // the delegate added the node
	}
	i := d.Add(l, h)
	if i < 0 {
		return i
	}
	y := d.Layer(i)
	if !r.unknown {
		y.Latency = draft.Metric(&profile.Metric{Mean: new(r.seconds())})
	}
	if r.called > 1 {
		y.Calls = new(r.called)
	}
	d.SetKnown(i, firstTime, r.first, 1e-3)
	d.SetKnown(i, memory, r.kB, 1e3)
	d.SetKnown(i, recorded, r.percent, 1e-2)
	d.SetKnown(i, cumulative, r.sum, 1e-2)
	if r.operatorCount > 0 {
		y.Name = l.Op
		d.Set(i, ofType, r.operatorCount)
	}
	return i
}

// named reads the name of a node: its output tensors in brackets, then its position.
func named(s string, b *block) (string, runlog.Hint) {
	m := nodeName.FindStringSubmatch(s)
	if m == nil {
		return s, runlog.Hint{}
	}
	inner, ok := strings.CutPrefix(m[1], "[")
	inner, closed := strings.CutSuffix(inner, "]")
	h := runlog.Hint{}
	if n, whole := whole(m[2]); whole && b.index == 0 && ok {
		h.Index = &n
	}
	if ok && closed {
		s = inner
		h.Outputs = strings.Split(s, ", ")
	}
	if b.delegate {
		h = runlog.Hint{}
	}
	return s, h
}

// nest puts layers inside those whose time includes theirs. If the record does not say which of
// several owners contains them, each owner's own time is reduced by the same part.
func nest(d *draft.Draft, owners, inside []int, what string) {
	if len(owners) == 0 || len(inside) == 0 {
		return
	}
	total := func(of []int) (sum float64) {
		for _, i := range of {
			v, _ := d.Layer(i).Latency.Best()
			sum += v
		}
		return sum
	}
	whole, part := total(owners), total(inside)
	left := 0.0
	if whole > 0 {
		left = math.Max(0, 1-part/whole)
	}
	for _, i := range owners {
		y := d.Layer(i)
		if v, ok := y.Latency.Best(); ok {
			y.Total = draft.Metric(&profile.Metric{Mean: &v})
			y.Latency = draft.Metric(&profile.Metric{Mean: new(v * left), Method: "without the layers inside it"})
		}
	}
	if len(owners) > 1 {
		d.Found("record.nesting", profile.Info, "The record has the inner operators of %d operators of %s in one table. Their own times are given without the inner ones, each by the same part.", len(owners), what)
		return
	}
	for _, i := range inside {
		if i > owners[0] {
			d.Layer(i).Parent = new(int64(owners[0]))
		}
	}
}

// phase keeps the tables of the initialisation.
func phase(d *draft.Draft, blocks []*block, bars *runlog.Lanes) {
	for _, b := range blocks {
		rows := b.order
		if rows == nil {
			rows = b.top
		}
		for i := range rows {
			r := &rows[i]
			key := runlog.Key(r.node)
			if key == "" || r.unknown {
				continue
			}
			d.Total(initTime(r.node), r.seconds())
			if r.kB != nil && *r.kB != 0 {
				d.Total(profile.Quantity{Key: "init_" + key + "_bytes", Unit: "B", Name: "Change of memory: " + r.node, Group: "Memory"}, *r.kB*1e3)
			}
			if r.start != nil {
				bars.Add(bars.Lane(timeline.Host, "", "initialisation", ""), r.bar(-1, bars.Name(r.node)))
			}
		}
		d.TotalMetric(profile.Quantity{Key: "init_operators_s", Unit: "s", Name: "Initialisation: sum", Group: "Time"}, b.timings.metric(""))
	}
}
