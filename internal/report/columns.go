package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// row is a layer, or a group of layers, with what every output shows of it.
type row struct {
	index    int64 // -1 for groups
	name     string
	op       string
	count    int64 // layers in the group
	inputs   string
	outputs  string
	options  string
	note     string // why there is no time
	brief    string // the same without what placed says
	placed   string // whether the accelerator takes it, or what keeps it from that
	live     *int64
	ops      *int64
	macs     *int64
	executed *int64
	params   *int64
	read     *int64
	written  *int64
	time     *profile.Metric
	seconds  *float64
	share    *float64
	cum      *float64
	calls    *float64
	cpu      *float64 // cycles
	acc      *float64
	sim      *float64
	energy   *float64 // joules
}

func tensors(ts []profile.Tensor, constants bool) string {
	var s []string
	for _, t := range ts {
		if t.Absent || t.Constant && !constants {
			continue
		}
		s = append(s, shape(t.Shape))
	}
	return strings.Join(s, ",")
}

func shape(d []int64) string {
	if d == nil {
		return "?"
	}
	if len(d) == 0 {
		return "scalar"
	}
	s := make([]string, len(d))
	for i, v := range d {
		s[i] = strconv.FormatInt(v, 10)
		if v < 0 {
			s[i] = "?"
		}
	}
	return strings.Join(s, "x")
}

func opName(l *profile.Layer) string {
	switch l.Domain {
	case "", "ai.onnx":
		return l.Op
	}
	return l.Domain + ":" + l.Op
}

func note(l *profile.Layer) string {
	switch {
	case l.Unsupported:
		// The row names the operator already.
		if rest, ok := strings.CutPrefix(l.Reason, "not supported: operator "+opName(l)+" "); ok {
			return "not supported: " + rest
		}
		return cmp.Or(l.Reason, "not supported")
	case l.Folded:
		return "computed once at load"
	case l.FusedInto != nil:
		return "fused into " + strconv.FormatInt(*l.FusedInto, 10)
	}
	if l.Calls != nil && *l.Calls == 0 {
		return "not reached in these runs"
	}
	if strings.HasPrefix(l.Reason, "an input could not be computed") {
		return "an input was not computed"
	}
	return l.Reason
}

// Beginnings of the reasons why an accelerator does not take a layer, with the
// word for the table. The first needs no words beside: the operator is shown.
var refusals = []struct{ reason, word string }{
	{"not an ", "no: operator"},
	{"wrong type", "no: type"},
	{"limit exceeded", "no: limit"},
}

// placed says in a word or two whether the accelerator takes the layer; brief is
// what the note says beside.
func placed(l *profile.Layer) (word, brief string) {
	brief = note(l)
	if l.Accelerated != "no" {
		return l.Accelerated, brief
	}
	for i, r := range refusals {
		if !strings.HasPrefix(l.Reason, r.reason) {
			continue
		}
		if i == 0 && brief == l.Reason {
			_, brief, _ = strings.Cut(brief, "; ")
		}
		return r.word, brief
	}
	return "no", brief
}

func layerRow(l *profile.Layer) row {
	r := row{
		index: l.Index, name: l.Name, op: opName(l), count: 1, options: l.Options,
		inputs: tensors(l.Inputs, false), outputs: tensors(l.Outputs, true), note: note(l), live: l.LiveBytes,
		ops: l.Ops, macs: l.MACs, executed: l.MACsExecuted, params: l.Params,
		read: l.BytesRead, written: l.BytesWritten, time: l.Latency, share: l.Share, calls: l.Calls,
	}
	if l.Calls != nil && *l.Calls == 0 {
		r.time, r.share = nil, nil // a branch not taken
	} else if v, ok := l.Latency.Best(); ok {
		r.seconds = &v
	}
	r.cpu, r.acc, r.energy = best(l.CPUCycles), best(l.AcceleratorCycles), best(l.Energy)
	r.sim = best(l.SimulatorCycles)
	r.placed, r.brief = placed(l)
	return r
}

// best is the figure to show of a metric, nil when there is none.
func best(m *profile.Metric) *float64 {
	v, ok := m.Best()
	if !ok {
		return nil
	}
	return &v
}

// Sorts are the orders that [Options.Sort] takes.
var Sorts = []string{"index", "time", "macs", "ops", "params", "bytes", "op", "name"}

// Groups are the groupings that [Options.By] takes.
var Groups = []string{"op", "scope"}

func desc[T cmp.Ordered](a, b *T) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*b, *a)
}

func sum(a, b *int64) *int64 {
	if b == nil {
		return a
	}
	if a == nil {
		return new(*b)
	}
	return new(*a + *b)
}

// rows makes the table's rows in the order and grouping asked for.
func rows(p *profile.Profile, o Options) ([]row, error) {
	var out []row
	for i := range p.Layers {
		l := &p.Layers[i]
		if o.By == "" && !o.All && (l.Folded || l.FusedInto != nil) {
			continue
		}
		out = append(out, layerRow(l))
	}
	if o.By != "" {
		var err error
		if out, err = group(p, o.By); err != nil {
			return nil, err
		}
	}
	order := o.Sort
	if order == "" && o.By != "" {
		order = "time"
	}
	less := map[string]func(a, b row) int{
		"":       func(a, b row) int { return 0 },
		"index":  func(a, b row) int { return cmp.Compare(a.index, b.index) },
		"time":   func(a, b row) int { return desc(a.seconds, b.seconds) },
		"macs":   func(a, b row) int { return desc(a.macs, b.macs) },
		"ops":    func(a, b row) int { return desc(a.ops, b.ops) },
		"params": func(a, b row) int { return desc(a.params, b.params) },
		"bytes":  func(a, b row) int { return desc(sum(a.read, a.written), sum(b.read, b.written)) },
		"op":     func(a, b row) int { return cmp.Compare(a.op, b.op) },
		"name":   func(a, b row) int { return cmp.Compare(a.name, b.name) },
	}[order]
	if less == nil {
		return nil, fmt.Errorf("cannot sort by %q: use one of %s", order, strings.Join(Sorts, ", "))
	}
	slices.SortStableFunc(out, less)
	var c float64
	for i := range out {
		if s := out[i].share; s != nil {
			c += *s
			out[i].cum = new(c)
		}
	}
	return out, nil
}

func group(p *profile.Profile, by string) ([]row, error) {
	if !slices.Contains(Groups, by) {
		return nil, fmt.Errorf("cannot group by %q: use one of %s", by, strings.Join(Groups, ", "))
	}
	at := map[string]int{}
	var out []row
	for i := range p.Layers {
		l := &p.Layers[i]
		key := opName(l)
		if by == "scope" {
			key = cmp.Or(l.Scope, "(none)")
		}
		j, ok := at[key]
		if !ok {
			j = len(out)
			at[key] = j
			out = append(out, row{index: -1, op: key})
		}
		g, r := &out[j], layerRow(l)
		g.count++
		g.ops, g.macs, g.executed = sum(g.ops, r.ops), sum(g.macs, r.macs), sum(g.executed, r.executed)
		g.params, g.read, g.written = sum(g.params, r.params), sum(g.read, r.read), sum(g.written, r.written)
		g.seconds, g.share = sumFloat(g.seconds, r.seconds), sumFloat(g.share, r.share)
		g.cpu, g.acc, g.energy = sumFloat(g.cpu, r.cpu), sumFloat(g.acc, r.acc), sumFloat(g.energy, r.energy)
		g.sim = sumFloat(g.sim, r.sim)
	}
	return out, nil
}

func sumFloat(a, b *float64) *float64 {
	if b == nil {
		return a
	}
	if a == nil {
		return new(*b)
	}
	return new(*a + *b)
}

// column is one figure of a row.
type column struct {
	key   string // machine name, base unit at the end
	head  string // heading for people
	left  bool   // text is set flush left
	keep  int    // the lower, the sooner it is dropped when the table is too wide
	wide  int    // longest text shown in the table, 0 for no limit
	group bool   // shown for groups too
	human func(r row) string
	raw   func(r row) string
}

func intCell(f func(r row) *int64, show func(int64) string) (human, raw func(r row) string) {
	human = func(r row) string {
		if v := f(r); v != nil {
			return show(*v)
		}
		return ""
	}
	raw = func(r row) string {
		if v := f(r); v != nil {
			return strconv.FormatInt(*v, 10)
		}
		return ""
	}
	return human, raw
}

func floatCell(f func(r row) *float64, show func(float64) string) (human, raw func(r row) string) {
	human = func(r row) string {
		if v := f(r); v != nil {
			return show(*v)
		}
		return ""
	}
	raw = func(r row) string {
		if v := f(r); v != nil {
			return strconv.FormatFloat(*v, 'g', -1, 64)
		}
		return ""
	}
	return human, raw
}

func textCell(f func(r row) string) (human, raw func(r row) string) {
	return func(r row) string { return text.Clean(f(r)) }, f
}

// metricPart picks one part of the time.
func metricPart(pick func(m *profile.Metric) *float64) func(r row) *float64 {
	return func(r row) *float64 {
		if r.time == nil {
			return nil
		}
		return pick(r.time)
	}
}

// spread is half the width of the 95 % interval of the median.
func spread(r row) *float64 {
	if r.time == nil || r.time.CI95 == nil {
		return nil
	}
	if r.time.CI95[1] <= r.time.CI95[0] {
		return nil // below what the clock tells apart
	}
	return new((r.time.CI95[1] - r.time.CI95[0]) / 2)
}

func rate(r row) *float64 {
	if r.ops == nil || *r.ops == 0 || r.seconds == nil || *r.seconds <= 0 {
		return nil
	}
	return new(float64(*r.ops) / *r.seconds)
}

// columns lists every column in order of the table.
func columns() []column {
	var cs []column
	add := func(c column, human, raw func(r row) string) {
		c.human, c.raw = human, raw
		cs = append(cs, c)
	}
	text := func(key, head string, keep, wide int, group bool, f func(r row) string) {
		h, r := textCell(f)
		add(column{key: key, head: head, left: true, keep: keep, wide: wide, group: group}, h, r)
	}
	count := func(key, head string, keep int, show func(int64) string, f func(r row) *int64) {
		h, r := intCell(f, show)
		add(column{key: key, head: head, keep: keep, group: true}, h, r)
	}
	figure := func(key, head string, keep int, group bool, show func(float64) string, f func(r row) *float64) {
		h, r := floatCell(f, show)
		add(column{key: key, head: head, keep: keep, group: group}, h, r)
	}
	plain := func(n int64) string { return strconv.FormatInt(n, 10) }
	index := func(r row) *int64 {
		if r.index < 0 {
			return nil
		}
		return &r.index
	}
	h, rw := intCell(index, plain)
	add(column{key: "index", head: "#", keep: 100}, h, rw)
	text("op", "operator", 99, 34, true, func(r row) string { return r.op })
	h, rw = intCell(func(r row) *int64 { return &r.count }, plain)
	add(column{key: "layers", head: "layers", keep: 98, group: true}, h, rw)
	figure("latency_s", "time", 97, true, Duration, func(r row) *float64 { return r.seconds })
	figure("", "±", 60, false, Duration, spread)
	figure("share", "share", 96, true, Percent, func(r row) *float64 { return r.share })
	figure("", "cum.", 70, true, Percent, func(r row) *float64 { return r.cum })
	cycles := func(v float64) string { return Count(int64(v)) }
	figure("accelerator_cycles", "acc. cycles", 88, true, cycles, func(r row) *float64 { return r.acc })
	figure("simulator_cycles", "sim. cycles", 87, true, cycles, func(r row) *float64 { return r.sim })
	figure("cpu_cycles", "CPU cycles", 86, true, cycles, func(r row) *float64 { return r.cpu })
	figure("energy_j", "energy", 75, true, func(v float64) string { return Quantity(v, "J") }, func(r row) *float64 { return r.energy })
	count("macs", "MACs", 90, Count, func(r row) *int64 { return r.macs })
	count("ops", "ops", 50, Count, func(r row) *int64 { return r.ops })
	figure("ops_per_s", "op/s", 65, true, func(v float64) string { return Quantity(v, "") }, rate)
	count("params", "params", 45, Count, func(r row) *int64 { return r.params })
	count("", "bytes", 40, Bytes, func(r row) *int64 { return sum(r.read, r.written) })
	count("live_bytes", "live", 37, Bytes, func(r row) *int64 { return r.live })
	text("outputs", "output", 80, 24, false, func(r row) string { return r.outputs })
	text("inputs", "input", 30, 32, false, func(r row) string { return r.inputs })
	text("options", "options", 20, 60, false, func(r row) string { return r.options })
	text("name", "name", 35, 40, false, func(r row) string { return r.name })
	text("accelerated", "accelerated", 89, 12, false, func(r row) string { return r.placed })
	human, _ := textCell(func(r row) string { return r.brief })
	add(column{key: "note", head: "note", left: true, keep: 85, wide: 60}, human, func(r row) string { return r.note })
	part := func(key string, pick func(m *profile.Metric) *float64) {
		figure(key, "", -1, false, Duration, metricPart(pick))
	}
	part("latency_mean_s", func(m *profile.Metric) *float64 { return m.Mean })
	part("latency_min_s", func(m *profile.Metric) *float64 { return m.Min })
	part("latency_max_s", func(m *profile.Metric) *float64 { return m.Max })
	part("latency_p90_s", func(m *profile.Metric) *float64 { return m.P90 })
	part("latency_p99_s", func(m *profile.Metric) *float64 { return m.P99 })
	part("latency_stddev_s", func(m *profile.Metric) *float64 { return m.StdDev })
	part("latency_ci95_low_s", func(m *profile.Metric) *float64 {
		if m.CI95 == nil {
			return nil
		}
		return &m.CI95[0]
	})
	part("latency_ci95_high_s", func(m *profile.Metric) *float64 {
		if m.CI95 == nil {
			return nil
		}
		return &m.CI95[1]
	})
	raw := func(key string, f func(r row) *int64) {
		h, r := intCell(f, Count)
		add(column{key: key, keep: -1, group: true}, h, r)
	}
	raw("latency_n", func(r row) *int64 {
		if r.time == nil {
			return nil
		}
		return r.time.N
	})
	raw("macs_executed", func(r row) *int64 { return r.executed })
	raw("bytes_read", func(r row) *int64 { return r.read })
	raw("bytes_written", func(r row) *int64 { return r.written })
	figure("calls", "", -1, false, digits, func(r row) *float64 { return r.calls })
	return cs
}
