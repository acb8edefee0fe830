package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// Bounds of an answer in bytes: the context of a client's model is limited.
const (
	maxAnswer = 20 << 10 // structured content
	maxText   = 6 << 10  // text
)

// figure is a value in the base unit of its key.
type figure struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty" jsonschema:"lower end of the interval"`
	High  *float64 `json:"high,omitempty" jsonschema:"upper end of the interval"`
	Kind  string   `json:"kind,omitempty" jsonschema:"counted, measured, estimated, imported or simulated"`
}

// figureOf is a metric as a figure, false if its value is unknown.
func figureOf(m *profile.Metric) (f figure, ok bool) {
	if f.Value, ok = m.Best(); !ok || !finite(f.Value) {
		return f, false
	}
	f.Kind = string(m.Kind)
	i := m.Interval()
	if i == nil {
		i = m.Band
	}
	if i != nil && finite(i[0]) && finite(i[1]) {
		f.Low, f.High = &i[0], &i[1]
	}
	return f, true
}

// finite reports whether JSON has a value.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// more says what an answer leaves out.
type more struct {
	Left   int    `json:"left" jsonschema:"number of rows that are left out"`
	Offset int    `json:"offset" jsonschema:"position of the next row, the argument offset"`
	How    string `json:"how"`
}

// page is a part of a list of rows.
type page[R any] struct {
	Rows []R   `json:"rows"`
	More *more `json:"more,omitempty"`

	all       []R
	offset    int
	what, how string // "layers"; "call layers with offset"
}

// pageOf takes at most limit rows from an offset.
func pageOf[R any](all []R, offset, limit int, what, how string) (page[R], error) {
	if offset > len(all) {
		return page[R]{}, fmt.Errorf("offset %d: there are only %d %s", offset, len(all), what)
	}
	p := page[R]{all: all, offset: offset, what: what, how: how}
	p.keep(min(limit, len(all)-offset))
	return p, nil
}

// keep leaves so many rows.
func (p *page[R]) keep(n int) {
	p.Rows, p.More = append([]R{}, p.all[p.offset:p.offset+n]...), nil
	if end := p.offset + n; end < len(p.all) {
		left := len(p.all) - end
		how := fmt.Sprintf("%d more %s: %s", left, p.what, p.how)
		if strings.HasSuffix(how, "offset") {
			how += fmt.Sprintf(" %d", end)
		}
		p.More = &more{left, end, how}
	}
}

func (p *page[R]) count() int { return len(p.Rows) }

// hint is the text about what is left out.
func (p *page[R]) hint() string {
	if p.More == nil {
		return ""
	}
	return p.More.How
}

// paged is an answer with rows that can be left out.
type paged interface {
	keep(n int)
	count() int
	hint() string
}

// bound leaves out rows of an answer until it is small enough.
func bound(answer any) error {
	for {
		b, err := json.Marshal(answer)
		if err != nil || len(b) <= maxAnswer {
			return err
		}
		p, ok := answer.(paged)
		if !ok || p.count() <= 1 {
			return fmt.Errorf("the answer has %d bytes, the limit is %d", len(b), maxAnswer)
		}
		p.keep(p.count() * maxAnswer / len(b) * 9 / 10)
	}
}

// layerRow is a layer of a list.
type layerRow struct {
	Layer   int64              `json:"layer" jsonschema:"index, the argument layer of explain_layer"`
	Op      string             `json:"op"`
	Name    string             `json:"name,omitempty"`
	State   string             `json:"state,omitempty" jsonschema:"what became of the layer, absent if it ran"`
	Figures map[string]float64 `json:"figures" jsonschema:"figures by key, such as latency_s, share, macs"`
}

// rowKeys are the figures of a layer in a list, beside the cost.
var rowKeys = []string{"macs", "params", "weights_bytes"}

// layerRows lists the layers of a profile in an order.
func layerRows(p *profile.Profile, order string) (rows []layerRow, cost string) {
	cost, _ = p.Cost()
	ls := make([]*profile.Layer, len(p.Layers))
	for i := range p.Layers {
		ls[i] = &p.Layers[i]
	}
	key := order
	if order == "time" {
		key = cost
	}
	if key != "" && key != "index" {
		sorting.Stable(ls, func(a, b *profile.Layer) int {
			x, known := a.Value(key)
			y, too := b.Value(key)
			if known != too { // unknown ones last
				return cmp.Compare(truth(too), truth(known))
			}
			return cmp.Compare(y, x)
		})
	}
	for _, l := range ls {
		r := layerRow{Layer: l.Index, Op: clip(l.Op), Name: clip(l.Name), Figures: map[string]float64{}}
		if l.State != profile.Ran {
			r.State = string(l.State)
		}
		for _, k := range append([]string{cost}, rowKeys...) {
			if v, ok := l.Value(k); ok && k != "" && finite(v) {
				r.Figures[k] = v
			}
		}
		if l.Share != nil {
			r.Figures["share"] = *l.Share
		}
		rows = append(rows, r)
	}
	return rows, cost
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mostFigures bounds the figures of an answer: records of other tools have hundreds of counters.
const mostFigures = 60

// figures lists what is known by the key of a quantity. left counts those that are left out.
func figures(p *profile.Profile, of func(key string) *profile.Metric) (list map[string]figure, left int) {
	list = map[string]figure{}
	for _, q := range p.AllQuantities() {
		f, ok := figureOf(of(q.Key))
		switch {
		case !ok:
		case len(list) == mostFigures || len(q.Key) > maxClip/2:
			left++
		default:
			list[q.Key] = f
		}
	}
	return list, left
}

// Bounds of texts.
const (
	maxClip     = 160
	maxFindings = 8
)

// clip shortens a text that stems from a file.
func clip(s string) string { return clipTo(s, maxClip) }

func clipTo(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// clipMiddle shortens an error: what is wrong often stands last.
func clipMiddle(s string, n int) string {
	if len(s) > n {
		s = s[:n*2/3] + " … " + s[len(s)-n/3:]
	}
	return clipTo(s, n+8)
}

// findings lists the texts of findings that concern a layer, or all with layer -1.
func findings(p *profile.Profile, layer int64) (list []string) {
	for _, f := range p.Findings {
		if layer >= 0 && !slices.Contains(f.Layers, layer) {
			continue
		}
		if len(list) == maxFindings {
			break
		}
		list = append(list, clipTo(agentWords(f.Text), 400))
	}
	return list
}

// missing lists what a profile lacks.
func missing(p *profile.Profile) (list []string) {
	for _, m := range p.Incomplete {
		text := string(m.Cause)
		if m.Text != "" {
			text += ": " + m.Text
		}
		if n := len(m.Layers); n > 0 {
			text += fmt.Sprintf(" (%d of %d layers)", n, len(p.Layers))
		}
		if list = append(list, clipTo(agentWords(text), 400)); len(list) == maxFindings {
			break
		}
	}
	return list
}

// opening is the first paragraph of what the program printed.
func opening(out string) []string {
	first, _, _ := strings.Cut(strings.TrimLeft(out, "\n"), "\n\n")
	lines := strings.Split(strings.TrimRight(first, "\n"), "\n")
	if len(lines) > 24 {
		lines = lines[:24]
	}
	for i := range lines {
		lines[i] = clipTo(agentWords(lines[i]), 240)
	}
	return lines
}

// seconds writes a time with a suitable unit.
func seconds(v float64) string {
	for _, u := range []struct {
		least float64
		unit  string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}} {
		if v >= u.least {
			return fmt.Sprintf("%.3g %s", v/u.least, u.unit)
		}
	}
	return fmt.Sprintf("%.3g ns", v*1e9)
}

// amount writes a count with three digits.
func amount(v float64) string {
	for _, u := range []struct {
		least float64
		unit  string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if math.Abs(v) >= u.least {
			return fmt.Sprintf("%.3g%s", v/u.least, u.unit)
		}
	}
	return fmt.Sprintf("%.3g", v)
}

// text is a line about a layer.
func (r *layerRow) text(cost string) string {
	s := fmt.Sprintf("#%d %s %s", r.Layer, r.Op, r.Name)
	v, known := r.Figures[cost]
	switch {
	case !known:
	case strings.HasSuffix(cost, "_s"):
		s += ": " + seconds(v)
	default:
		s += fmt.Sprintf(": %s (%s)", amount(v), cost)
	}
	if v, ok := r.Figures["share"]; ok {
		s += fmt.Sprintf(" (%.1f %%)", 100*v)
	}
	if v := r.Figures["macs"]; v > 0 {
		s += ", " + amount(v) + " MACs"
	}
	if r.State != "" {
		s += ", " + r.State
	}
	return s
}
