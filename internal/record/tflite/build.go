package tflite

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Quantities that the tool has and opmeter's table lacks.
var (
	firstTime  = profile.Quantity{Key: "first_s", Unit: "s", Head: "first", Name: "Time in the first run", Group: "Time", Doc: "Time of the operator's first call, as the record says."}
	memory     = profile.Quantity{Key: "memory_change_bytes", Unit: "B", Head: "memory", Name: "Change of memory", Group: "Memory", Doc: "Change of the process's memory during the operator, as the record says."}
	recorded   = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share as recorded", Group: "Record", Doc: "Part of the time by the record's own table."}
	cumulative = profile.Quantity{Key: "recorded_cumulative_share", Unit: "1", Head: "cum. share", Name: "Cumulative share as recorded", Group: "Record", Doc: "Part of the time of this operator and those before it in the record's table."}
	operators  = profile.Quantity{Key: "recorded_operators_s", Unit: "s", Name: "Sum of operators as recorded", Group: "Time", Doc: "Time of all operators of an inference by the record's own summary."}
)

// delegates says which unit a delegate gives work to; what is not here is not known.
var delegates = map[string]string{
	"TfLiteXNNPackDelegate": profile.CPU, "TfLiteGpuDelegateV2": "gpu", "TfLiteGpuDelegate": "gpu", "TfLiteHexagonDelegate": "hexagon",
	"TfLiteNnapiDelegate": "nnapi", "TfLiteCoreMlDelegate": "coreml", "TfLiteMetalDelegate": "gpu", "EdgeTpuDelegateForCustomOp": "edgetpu",
}

// bodies are operators that run other graphs.
var bodies = map[string]bool{"WHILE": true, "IF": true, "CALL": true, "CALL_ONCE": true, "STABLEHLO_COMPOSITE": true, "StablehloWhile": true, "STABLEHLO_WHILE": true}

// nodeName is the name of a node with the position behind it; small printfs write
// "ld" for the number.
var nodeName = regexp.MustCompile(`^(.*?)(?:[:/](\d+|ld|lld|zu|d))?$`)

// build makes the run; nil where there is nothing in it.
func (l *log) build(name string) *runlog.Run {
	d := draft.New("tflite-benchmark", name, "TensorFlow Lite")
	if l.graph != "" {
		d.P.Model.Path = l.graph
	}
	d.Dropped.Add("rows that are not row of their table", l.broken)
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
	return d.Run()
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

func whole(s string) (int64, bool) {
	var n int64
	for _, c := range s {
		if c < '0' || c > '9' || n > 1e12 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, s != ""
}

// metric makes a figure of a line of figures in microseconds.
func (s stat) metric(method string) *profile.Metric {
	if s == nil || s["count"] < 1 {
		return nil
	}
	get := func(name string) *float64 {
		if v, ok := s[name]; ok {
			return new(v / 1e6)
		}
		return nil
	}
	m := &profile.Metric{Mean: get("avg"), Median: get("median"), Min: get("min"), Max: get("max"), StdDev: get("std"), P95: get("p95"), Method: method}
	if n := s["count"]; n == math.Trunc(n) && n < 1<<53 {
		m.N = new(int64(n))
	}
	if m.Mean == nil {
		m.Mean = get("curr") // all runs alike: nothing else is printed
	}
	return draft.Metric(m)
}

// totals sets what is said of the whole.
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
	p.Totals.Latency = measured.metric("")
	if v, ok := l.parts["Inference"]; ok && p.Totals.Latency == nil {
		p.Totals.Latency = draft.Metric(&profile.Metric{Mean: new(v / 1e6)})
	}
	for _, part := range []struct{ name, key string }{{"p5", "latency_p5_s"}, {"first", "first_measured_s"}} {
		if v, ok := measured[part.name]; ok {
			d.Total(profile.Quantity{Key: part.key, Unit: "s", Name: "Inference, " + part.name, Group: "Time"}, v/1e6)
		}
	}
	ph := profile.Phases{}
	if v, ok := l.parts["Init"]; ok && v >= 0 {
		ph.PlanS = new(v / 1e6)
	} else if l.hasSession && l.session >= 0 {
		ph.PlanS = new(l.session / 1e3)
	}
	if v, ok := l.parts["First inference"]; ok && v >= 0 {
		ph.FirstRunS = new(v / 1e6)
	} else if v, ok := warm["first"]; ok && v >= 0 {
		ph.FirstRunS = new(v / 1e6)
	}
	if n, avg := warm["count"], warm["avg"]; n >= 1 && n < 1e15 && avg >= 0 {
		ph.Warmup = &profile.Warmup{Count: new(int64(n)), TimeS: new(n * avg / 1e6)}
	}
	if v, ok := l.parts["Warmup"]; ok && v >= 0 {
		d.Total(profile.Quantity{Key: "warmup_s", Unit: "s", Name: "Inference while warming up", Group: "Time"}, v/1e6)
	}
	if ph != (profile.Phases{}) {
		p.Phases = &ph
	}
	if l.sizeMB > 0 {
		d.Total(profile.Quantity{Key: "recorded_model_bytes", Unit: "B", Name: "Model file as recorded", Group: "Memory", Doc: "Size of the model file with the digits that the record has."}, l.sizeMB*1e6)
	}
	for what, v := range l.memory {
		name := map[bool]string{true: "peak", false: "delta"}[strings.HasPrefix(what, "Peak")]
		d.Total(profile.Quantity{Key: "memory_" + name + "_init_bytes", Unit: "B", Name: "Memory of the process, " + name + ", initialised", Group: "Memory"}, v[0]*(1<<20))
		d.Total(profile.Quantity{Key: "memory_" + name + "_bytes", Unit: "B", Name: "Memory of the process, " + name, Group: "Memory"}, v[1]*(1<<20))
	}
	var instrumented *profile.Metric
	for _, b := range l.run {
		if !b.delegate && b.index == 0 && instrumented == nil {
			instrumented = b.timings.metric("sum of the operators of each run")
			if m := b.memory; m["count"] >= 1 {
				d.Total(profile.Quantity{Key: "recorded_memory_bytes", Unit: "B", Name: "Memory of operators as recorded", Group: "Memory"}, m["avg"])
			}
		}
	}
	d.TotalMetric(operators, instrumented)
	if p.Totals.Latency == nil && instrumented != nil {
		p.Totals.Latency = instrumented
	}
	reconcile(p)
}

// reconcile compares the sum of the layers with the time of an inference, which was
// measured in the same runs.
func reconcile(p *profile.Profile) {
	wall, ok := p.Totals.Latency.Best()
	if !ok || len(p.Layers) == 0 {
		return
	}
	sum := 0.0
	for i := range p.Layers {
		v, _ := p.Layers[i].Latency.Best()
		sum += v
	}
	if gaps := wall - sum; sum > 0 && gaps >= 0 {
		p.Reconcile = &profile.Reconcile{WallS: new(sum + gaps), OperatorsS: &sum, GapsS: &gaps}
	}
}

// fill makes layers of what was printed of the runs.
func fill(d *draft.Draft, blocks []*block, bars *runlog.Lanes) {
	var inside []int // layers in bodies or delegates
	var owners []int
	var byDelegate []int
	var takers []int // delegate nodes
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
		// A platform that does not measure memory has 0 everywhere: nothing is known then.
		tracked := slices.ContainsFunc(rows, func(r row) bool { return r.kB != 0 })
		for _, r := range rows {
			r.hasKB = r.hasKB && tracked
			i := addRow(d, &r, b)
			if i < 0 {
				break
			}
			if r.hasStart && b.order != nil && !b.delegate && b.index == 0 {
				lane := bars.Lane(timeline.Layer, "", "operators", "")
				bars.Add(lane, runlog.Bar{Start: r.start / 1e3, Duration: math.Max(0, r.avg*calls(&r)/1e3), Layer: int32(i), Iteration: -1, Label: -1, Type: -1, Bytes: -1})
			}
			switch {
			case b.delegate:
				byDelegate = append(byDelegate, i)
			case b.graph != "" && b.index > 0 || b.index > 0:
				inside = append(inside, i)
			}
			if !b.delegate && strings.Contains(strings.ToLower(r.node), "delegate") {
				takers = append(takers, i)
			}
			if !b.delegate && bodies[d.Layer(i).Op] {
				owners = append(owners, i)
			}
		}
	}
	nest(d, owners, inside, "control flow")
	nest(d, takers, byDelegate, "delegates")
}

// calls is how often an operator was called in a run. The tool divides integers: 0
// is an operator that one of many runs left out.
func calls(r *row) float64 { return math.Max(1, r.called) }

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
		l.Graph = b.graph
		if l.Graph == "" {
			l.Graph = "subgraph"
		}
	}
	name, h := named(r.name, b)
	l.Name = name
	if delegated(l.Op) {
		h.Index = nil // the node was added to the model's
	}
	i := d.Add(l, h)
	if i < 0 {
		return i
	}
	y := d.Layer(i)
	y.Latency = draft.Metric(&profile.Metric{Mean: new(r.avg * calls(r) / 1e3)})
	if r.called > 1 {
		y.Calls = new(r.called)
	}
	for _, q := range []struct {
		has bool
		q   profile.Quantity
		v   float64
	}{{r.hasFirst, firstTime, r.first / 1e3}, {r.hasKB, memory, r.kB * 1e3}, {r.hasPercent, recorded, r.percent / 100}, {r.hasSum, cumulative, r.sum / 100}} {
		if q.has {
			d.Set(i, q.q, q.v)
		}
	}
	if r.count > 0 {
		y.Name = l.Op
		d.Set(i, profile.Quantity{Key: "operators", Name: "Operators of this type", Group: "Record", Adds: true, Whole: true}, r.count)
	}
	return i
}

// named reads the name of a node: the tensors that it makes in brackets, then its position.
func named(s string, b *block) (string, runlog.Hint) {
	m := nodeName.FindStringSubmatch(s)
	if m == nil {
		return s, runlog.Hint{}
	}
	h := runlog.Hint{}
	if n, ok := whole(m[2]); ok && !b.delegate && b.index == 0 && strings.HasPrefix(s, "[") {
		h.Index = &n
	}
	text := m[1]
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		text = text[1 : len(text)-1]
		h.Outputs = strings.Split(text, ", ")
	} else {
		text = s
	}
	if b.delegate {
		return text, runlog.Hint{}
	}
	return text, h
}

// nest puts layers inside those whose time holds theirs. Where several may hold them and
// the record does not say which, each gives up its part of the time.
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
	if len(owners) == 1 {
		for _, i := range inside {
			if i > owners[0] {
				d.Layer(i).Parent = new(int64(owners[0]))
			}
		}
		return
	}
	d.Found("record.nesting", profile.Info, "The record has the inner operators of %d operators of %s in one table. Their own times are given without the inner ones, each by the same part.", len(owners), what)
}

// phase keeps what was printed of the initialisation.
func phase(d *draft.Draft, blocks []*block, bars *runlog.Lanes) {
	for _, b := range blocks {
		rows := b.order
		if rows == nil {
			rows = b.top
		}
		for i := range rows {
			r := &rows[i]
			key := runlog.Key(r.node)
			if key == "" {
				continue
			}
			d.Total(profile.Quantity{Key: "init_" + key + "_s", Unit: "s", Name: "Initialisation: " + r.node, Group: "Time"}, r.avg*calls(r)/1e3)
			if r.hasKB && r.kB != 0 {
				d.Total(profile.Quantity{Key: "init_" + key + "_bytes", Unit: "B", Name: "Change of memory: " + r.node, Group: "Memory"}, r.kB*1e3)
			}
			if r.hasStart {
				lane := bars.Lane(timeline.Host, "", "initialisation", "")
				bars.Add(lane, runlog.Bar{Start: r.start / 1e3, Duration: math.Max(0, r.avg*calls(r)/1e3), Layer: -1, Iteration: -1, Label: bars.Name(r.node), Type: -1, Bytes: -1})
			}
		}
		if m := b.timings.metric(""); m != nil {
			d.TotalMetric(profile.Quantity{Key: "init_operators_s", Unit: "s", Name: "Initialisation: sum", Group: "Time"}, m)
		}
	}
}
