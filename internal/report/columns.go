package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// column is one figure or text of a row.
type column struct {
	key      string            // machine name, base unit at the end; "" where only people want it
	head     string            // heading for people
	quantity *profile.Quantity // that it shows, nil for none
	left     bool              // text is set flush left
	// the lower, the sooner it is dropped when the table is too wide; below 0 it is never there
	keep int
	wide int // longest text shown in the table, 0 for no limit
	// width to which text may be cut before the column is left out, 0 for not at all
	flex     int
	terminal bool   // of terminals only
	needed   bool   // files have it though it be empty
	tail     bool   // what is cut loses its beginning: names differ at the end
	group    bool   // shown for groups too
	only     string // the one of [Groups] that has it, "" for all
	details  bool   // only shown with details
	human    func(r *row) string
	raw      func(r *row) string
}

// hidden is [column.keep] of what only files have.
const hidden = -1

// keeps says how much the table needs a quantity. One that is not here is shown
// where some layer has it.
var keeps = map[string]int{
	"latency_s": 97, "share": 96, "total_s": 58, "expected_s": 73, "checked_s": 72, "against_expected": 74,
	"accelerator_cycles": 88, "simulator_cycles": 87, "cpu_cycles": 79, "instructions": 78, "ticks": 77, "energy_j": 75,
	"macs": 90, "ops": 50, "ops_per_s": 65, "params": 45, "live_bytes": 37,
	"calls": hidden, "macs_per_s": hidden, "bytes_per_s": hidden, "ops_per_byte": hidden, "energy_per_mac_j": hidden, "energy_per_op_j": hidden, "power_w": hidden,
	"weights_bytes": hidden, "bytes_read": hidden, "bytes_written": hidden, "macs_executed": hidden, "mltk_ops": hidden, "mltk_macs": hidden,
	"sparsity_weights": hidden, "sparsity_activations": hidden,
	"accelerator_programs": hidden, "accelerator_instructions": hidden, "accelerator_stalls": hidden, "accelerator_no_ops": hidden,
}

// nameKeep is how much the table needs what tells layers apart.
const nameKeep = 80

// foreignKeep is how much the table needs quantities that are not in the list. Those
// that a record brings with it may be many: the table shows the first of them, files and
// page have all.
const (
	foreignKeep = 55
	foreignMost = 3
)

// columns lists every column in order of the table: what says which row it is, the
// quantities, texts, and the parts of the time, which only files have.
func columns(p *profile.Profile) []column {
	cs := []column{
		textual("index", "#", 100, 0, false, func(r *row) string {
			if l := r.layer(); l != nil {
				return strconv.FormatInt(l.Index, 10)
			}
			return ""
		}),
		textual("op", "operator", 99, 34, true, (*row).op),
		textual("layers", "layers", 98, 0, true, func(r *row) string { return strconv.Itoa(len(r.Layers)) }),
	}
	cs[0].left, cs[2].left = false, false
	cs[0].needed, cs[1].needed = true, true
	foreign := 0
	for _, q := range p.AllQuantities() {
		if q.Model {
			continue
		}
		cs = append(cs, figured(q))
		if _, known := profile.Lookup(q.Key); !known {
			if foreign++; foreign > foreignMost {
				cs[len(cs)-1].keep = hidden
			}
		}
		switch q.Key { // what people want to see beside
		case "latency_s":
			cs = append(cs, numeric("", "±", 60, false, Duration, spread))
			cs = append(cs, blockColumns()...)
		case "share":
			cs = append(cs, place(), bar(), numeric("", "cum.", 70, true, Percent, func(r *row) (float64, bool) {
				if r.cum == nil {
					return 0, false
				}
				return *r.cum, true
			}))
		case "params":
			cs = append(cs, activeParams(), numeric("", "bytes", 40, true, func(v float64) string { return Bytes(int64(v)) }, (*row).bytes))
		}
	}
	of := func(f func(l *profile.Layer) string) func(*row) string {
		return func(r *row) string {
			if l := r.layer(); l != nil {
				return f(l)
			}
			return ""
		}
	}
	note := textual(noteKey, "note", 85, 60, false, of(func(l *profile.Layer) string { return words.Note(l, true) }))
	note.raw = of(func(l *profile.Layer) string { return words.Note(l, false) })
	cs = append(
		cs,
		textual("outputs", "output", nameKeep, 24, false, func(r *row) string {
			if l := r.like(); l != nil {
				return shapes(l.Outputs, true)
			}
			return ""
		}).cutTo(leastText),
		textual("inputs", "input", 30, 32, false, of(func(l *profile.Layer) string { return shapes(l.Inputs, false) })).cutTo(leastText),
		textual("options", "options", 20, 60, false, of(words.Options)).cutTo(leastText),
		name(),
		textual("accelerated", "accelerated", placedKeep(p), 12, false, of(words.Placed)),
		note,
		textual("state", "state", hidden, 12, false, of(func(l *profile.Layer) string { return string(l.State) })),
	)
	return append(cs, parts()...)
}

// placedKeep is how long the table keeps the column of accelerated layers: it says nothing where
// all of them run on the processor and nobody asked for more.
func placedKeep(p *profile.Profile) int {
	if p.Target.Accelerator != "" || slices.ContainsFunc(p.Layers, func(l profile.Layer) bool {
		yes, known := l.Accelerated()
		return known && (yes || l.Placement.Cause != "")
	}) {
		return 89
	}
	return hidden
}

// columnsFor lists the columns that go with the grouping.
func columnsFor(p *profile.Profile, o Options) []column {
	g := groupingOf(o.By)
	cs := slices.DeleteFunc(columns(p), func(c column) bool {
		return g != nil && !c.group && !slices.Contains(g.also, c.key) || g == nil && c.key == "layers" || c.only != "" && c.only != o.By || c.details && !o.Details
	})
	if g != nil && g.wide > 0 {
		i := slices.IndexFunc(cs, func(c column) bool { return c.key == "op" })
		cs[i].head, cs[i].wide, cs[i].flex, cs[i].tail = g.head, g.wide, g.least, g.tail
		if label := cs[i].human; g.indent {
			cs[i].human = func(r *row) string { return strings.Repeat("  ", r.level) + label(r) }
		}
	}
	return cs
}

// parts are the columns of the parts of the time, the intervals of shares and the places.
func parts() []column {
	var cs []column
	for _, x := range []struct {
		key  string
		pick func(m *profile.Metric) *float64
	}{
		{"latency_median_s", func(m *profile.Metric) *float64 { return m.Median }},
		{"latency_mean_s", func(m *profile.Metric) *float64 { return m.Mean }},
		{"latency_min_s", func(m *profile.Metric) *float64 { return m.Min }},
		{"latency_max_s", func(m *profile.Metric) *float64 { return m.Max }},
		{"latency_p90_s", func(m *profile.Metric) *float64 { return m.P90 }},
		{"latency_p99_s", func(m *profile.Metric) *float64 { return m.P99 }},
		{"latency_stddev_s", func(m *profile.Metric) *float64 { return m.StdDev }},
		{"latency_ci95_low_s", func(m *profile.Metric) *float64 { return end(m.CI95, 0) }},
		{"latency_ci95_high_s", func(m *profile.Metric) *float64 { return end(m.CI95, 1) }},
		{"latency_n", func(m *profile.Metric) *float64 {
			if m.N == nil {
				return nil
			}
			return new(float64(*m.N))
		}},
	} {
		cs = append(cs, numeric(x.key, "", hidden, false, Duration, func(r *row) (float64, bool) {
			if m := r.figure("latency_s"); m != nil {
				if v := x.pick(m); v != nil {
					return *v, true
				}
			}
			return 0, false
		}))
	}
	for i, name := range []string{"low", "high"} {
		cs = append(cs, numeric("share_ci95_"+name, "", hidden, false, Percent, func(r *row) (float64, bool) {
			if l := r.layer(); l != nil && l.ShareCI95 != nil {
				return l.ShareCI95[i], true
			}
			return 0, false
		}))
	}
	for i, name := range []string{"first", "last"} {
		cs = append(cs, numeric("rank_"+name, "", hidden, false, digits, func(r *row) (float64, bool) {
			if l := r.layer(); l != nil && l.Rank != nil {
				return float64(l.Rank[i]), true
			}
			return 0, false
		}))
	}
	return cs
}

func end(interval *[2]float64, i int) *float64 {
	if interval == nil {
		return nil
	}
	return &interval[i]
}

// spread is the distance of the time from the further end of its 95 % interval.
func spread(r *row) (float64, bool) {
	m := r.figure("latency_s")
	iv := m.Interval()
	if iv == nil || iv == m.Band || iv[1] <= iv[0] {
		return 0, false // not known, or below what the clock tells apart
	}
	v, _ := m.Best()
	return max(iv[1]-v, v-iv[0]), true
}

// place is the range of places of a layer by time: "1", "2–3".
func place() column {
	c := textual("", "place", 59, 0, false, func(r *row) string {
		l := r.layer()
		switch {
		case l == nil || l.Rank == nil:
			return ""
		case l.Rank[0] == l.Rank[1]:
			return strconv.FormatInt(l.Rank[0], 10)
		}
		return strconv.FormatInt(l.Rank[0], 10) + "–" + strconv.FormatInt(l.Rank[1], 10)
	})
	c.left, c.details = false, true
	return c
}

func textual(key, head string, keep, wide int, group bool, f func(r *row) string) column {
	return column{key: key, head: head, left: true, keep: keep, wide: wide, group: group, human: func(r *row) string { return text.Clean(f(r)) }, raw: f}
}

func numeric(key, head string, keep int, group bool, show func(float64) string, value func(r *row) (float64, bool)) column {
	cell := func(show func(float64) string) func(r *row) string {
		return func(r *row) string {
			if v, ok := value(r); ok {
				return show(v)
			}
			return ""
		}
	}
	return column{key: key, head: head, keep: keep, group: group, human: cell(show), raw: cell(PlainNumber)}
}

// name is the layer's name. A converter joins the names of what it fused: people see the
// first.
func name() column {
	c := textual("name", "name", nameKeep+1, 40, false, (*row).name).cutTo(leastText)
	c.tail = true
	whole := c.human
	c.human = func(r *row) string {
		first, _, _ := strings.Cut(whole(r), ";")
		return first
	}
	return c
}

// shorten cuts a text of the column.
func (c *column) shorten(s string, width int) string {
	if c.tail {
		return ending(s, width)
	}
	return shorten(s, width)
}

// leastText is the width below which a column of text is not worth its width.
const leastText = 12

// cutTo is the column with texts that may be cut to a width where room is short.
func (c column) cutTo(width int) column {
	c.flex = width
	return c
}

// barWidth is the length of a bar that stands for all of the time.
const barWidth = 10

// bar draws the share of a row, for the eye: whoever reads without a terminal has the
// number beside it.
func bar() column {
	c := textual("", "", 66, 0, true, func(r *row) string {
		v, ok := r.value("share")
		if !ok || !(v > 0) {
			return ""
		}
		eighths := int(min(v, 1)*barWidth*8 + 0.5)
		s := strings.Repeat("█", eighths/8)
		if rest := eighths % 8; rest > 0 {
			s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
		}
		return s
	})
	c.terminal = true
	return c
}

// PlainNumber writes a number for machines: whole ones in full.
func PlainNumber(v float64) string {
	if v == float64(int64(v)) && v < 1<<53 && v > -1<<53 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// figured is the column of a quantity.
func figured(q profile.Quantity) column {
	keep, ok := keeps[q.Key]
	if !ok {
		keep = foreignKeep
	}
	head := q.Head
	if head == "" {
		head = q.Name
	}
	c := numeric(q.Key, text.Clean(head), keep, q.Adds || q.Derived(), inUnit(&q), func(r *row) (float64, bool) { return r.valueOf(&q) })
	c.quantity = &q
	return c
}

// inUnit returns how people read a quantity.
func inUnit(q *profile.Quantity) func(float64) string {
	unit := text.Clean(q.Unit)
	count := func(v float64) string { return Count(int64(v)) }
	show := func(v float64) string { return Quantity(v, unit) }
	switch {
	case q.Key == "against_expected": // a ratio that may be any size
		show = digits
	case unit == "s":
		show = Duration
	case unit == "B":
		show = func(v float64) string { return Bytes(int64(v)) }
	case unit == "1":
		show = Percent
	case unit == "cycles" || unit == "instr." || unit == "ticks" || unit == "" && q.Whole:
		show = count
	case unit == "":
		show = digits
	case unit == "/s":
		show = func(v float64) string { return Quantity(v, "") }
	case strings.ContainsAny(unit, "°%"): // no prefix goes with these
		show = func(v float64) string { return digits(v) + " " + unit }
	}
	return func(v float64) string {
		if v >= 1e18 || v <= -1e18 { // beyond all prefixes
			return strings.TrimSpace(strconv.FormatFloat(v, 'g', 3, 64) + " " + unit)
		}
		return show(v)
	}
}

// shapes lists the shapes of tensors.
func shapes(ts []profile.Tensor, constants bool) string {
	var s []string
	for _, t := range ts {
		if t.Absent || t.Constant && !constants {
			continue
		}
		s = append(s, words.Shape(t.Shape))
	}
	return strings.Join(s, ",")
}
