package openvino

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// CPUTime is the time of the host's processor for a node.
var CPUTime = profile.Quantity{Key: "cpu_time_s", Unit: "s", Head: "CPU time", Name: "Processor time", Group: "Time", Adds: true, Better: -1, Doc: "Time of the host's processor for the layer, beside the time on the device."}

var share = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share as recorded", Group: "Record", Doc: "Part of the time by the record's own table."}

// counter is a row: a node in an infer request. Absent figures are nil.
type counter struct {
	name, status, op, exec string
	real, cpu              *float64 // seconds
	percent                *float64 // a share of 1
	more                   [][2]string
}

// set sets a column of the CSV or a member of the JSON. brief is text, also for lists and objects.
func (c *counter) set(key, text, brief string, v float64, ok bool) {
	switch key {
	case "layerName", "name":
		c.name = text
	case "execStatus", "status":
		c.status = text
	case "layerType", "node_type":
		c.op = text
	case "execType", "exec_type":
		c.exec = text
	case "realTime (ms)", "real_time":
		c.real = draft.Milli(v, ok && v >= 0)
	case "cpuTime (ms)", "cpu_time":
		c.cpu = draft.Milli(v, ok && v >= 0)
	case "%":
		c.percent = draft.Known(v/100, ok)
	default:
		c.more = append(c.more, [2]string{key, brief})
	}
}

// node is a layer with the values of its requests.
type node struct {
	layer              int
	real, cpu, percent []float64
}

// blocks collects the counters of infer requests.
type blocks struct {
	d         *draft.Draft
	nodes     map[string]*node
	order     []*node
	seen      map[string]int // occurrences of a name in the current block
	requests  int
	real, cpu []float64 // totals of requests
	open      bool
	sum       float64
	kept      int
}

func newBlocks(f *record.File) *blocks {
	return &blocks{d: newDraft(f), nodes: map[string]*node{}, seen: map[string]int{}}
}

// states are the states of nodes. A node that was not run is part of a neighbour, or
// has data; the counters do not say which.
var states = map[string]profile.State{"EXECUTED": profile.Ran, "NOT_RUN": profile.NotReached, "OPTIMIZED_OUT": profile.Folded, "INVALID_STATUS": profile.Failed}

// State returns the state of a node by its status, [profile.NotReached] for an unknown status.
func State(status string) profile.State { return cmp.Or(states[status], profile.NotReached) }

// maxSamples limits the requests of which each value is kept, maxKept the values of all layers.
const (
	maxSamples = 10_000
	maxKept    = 5_000_000
)

// add adds a row. Truncated names may be equal: their order distinguishes them.
func (b *blocks) add(c *counter) {
	b.open = true
	c.status = strings.TrimPrefix(strings.ToUpper(c.status), "STATUS.")
	b.seen[c.name]++
	key := fmt.Sprintf("%s\x00%d", c.name, b.seen[c.name])
	n := b.nodes[key]
	if n == nil {
		l := profile.Layer{Name: c.name, Op: c.op, Kernel: c.exec, State: State(c.status)}
		i := b.d.Add(l, runlog.Hint{Nodes: []string{c.name}})
		if i < 0 {
			return
		}
		n = &node{layer: i}
		b.nodes[key] = n
		b.order = append(b.order, n)
		b.d.Option(i, "exec_status", c.status)
		for _, m := range c.more {
			if v, ok := textscan.Number(m[1]); ok {
				b.d.Set(i, profile.Quantity{Name: m[0]}, v)
			} else {
				b.d.Option(i, m[0], m[1])
			}
		}
	}
	l := b.d.Layer(n.layer)
	if c.status == "EXECUTED" {
		l.State = profile.Ran
	}
	none := func(v *float64) bool { return v == nil || *v == 0 }
	if c.real != nil {
		b.sum += *c.real
	}
	if b.requests >= maxSamples || b.kept > maxKept || c.status != "EXECUTED" && none(c.real) && none(c.cpu) {
		return
	}
	b.kept++
	n.real, n.cpu, n.percent = keep(n.real, c.real), keep(n.cpu, c.cpu), keep(n.percent, c.percent)
}

// keep appends a value that is known.
func keep(to []float64, v *float64) []float64 {
	if v != nil {
		to = append(to, *v)
	}
	return to
}

// end ends a request with its totals, nil if absent.
func (b *blocks) end(real, cpu *float64) {
	if !b.open {
		return
	}
	if real == nil {
		real = new(b.sum)
	}
	if b.requests++; b.requests <= maxSamples {
		b.real, b.cpu = keep(b.real, real), keep(b.cpu, cpu)
	}
	b.open, b.sum = false, 0
	clear(b.seen)
}

// finish puts the figures of all requests into the layers.
func (b *blocks) finish() *draft.Draft {
	b.end(nil, nil)
	d := b.d
	for _, n := range b.order {
		l := d.Layer(n.layer)
		l.Latency, l.Samples = draft.Figure(n.real, "")
		if m, _ := draft.Figure(n.cpu, ""); m != nil {
			v, _ := m.Best()
			d.Set(n.layer, CPUTime, v)
			_ = l.Set(CPUTime.Key, m)
		}
		if m, _ := draft.Figure(n.percent, ""); m != nil {
			v, _ := m.Best()
			d.Set(n.layer, share, v)
		}
	}
	if b.requests > 0 {
		d.P.Totals.Latency, d.P.Totals.LatencySamples = draft.Figure(b.real, "")
		if m := d.P.Totals.Latency; m != nil {
			m.Method = "sum of the counters, as the record has it: with several streams it is not the latency"
		}
		m, _ := draft.Figure(b.cpu, "")
		d.TotalMetric(CPUTime, m)
		if b.requests > 1 {
			d.P.Settings.Runs = new(int64(b.requests))
		}
	}
	return d
}

// readCounters reads counters as CSV, as JSON, or as the tools print them.
func readCounters(f *record.File) (*draft.Draft, error) {
	b := newBlocks(f)
	k := kindOf(f)
	if k == countersJSON {
		err := b.readJSON(f)
		return b.finish(), err
	}
	var cols textscan.Columns
	err := f.Lines(func(l string) {
		l = textscan.Strip(l)
		if k == console {
			b.printed(l)
		} else {
			b.csv(strings.TrimSpace(l), &cols)
		}
	})
	return b.finish(), err
}

func milli(s string) (float64, bool) {
	v, ok := textscan.Number(s)
	return v / 1e3, ok && v >= 0
}

// csv reads a line of the CSV. A name may have separators: excess fields belong to it.
func (b *blocks) csv(l string, cols *textscan.Columns) {
	row := strings.Split(strings.TrimSuffix(l, ";"), ";")
	extra := len(row) - len(cols.Names())
	switch {
	case l == "":
		b.end(nil, nil)
	case row[0] == "layerName":
		b.end(nil, nil)
		*cols = textscan.NewColumns(row)
	case row[0] == "Total" && textscan.Cell(row, 1) == "" && textscan.Cell(row, 2) == "":
		b.end(draft.Known(milli(cols.Text(row, "realTime (ms)"))), draft.Known(milli(cols.Text(row, "cpuTime (ms)"))))
	case len(row) < 5 || cols.Names() == nil:
		b.d.Dropped.Add("rows with too few fields", 1)
	default:
		if extra > 0 {
			row = append([]string{strings.Join(row[:extra+1], ";")}, row[extra+1:]...)
		}
		c := &counter{}
		for i, name := range cols.Names() {
			text := textscan.Cell(row, i)
			v, ok := textscan.Number(text)
			c.set(name, text, text, v, ok)
		}
		b.add(c)
	}
}

// consoleRow is a row as the tools print it; columns may run together.
var consoleRow = regexp.MustCompile(`^(.*?)\s*(?:Status\.)?(EXECUTED|NOT_RUN|OPTIMIZED_OUT)\s*layerType: (.*?)\s*realTime(?: \(ms\))?: (.*?)\s*cpu(?:Time \(ms\))?: (.*?)\s*execType: ?(.*?)\s*$`)

var request = regexp.MustCompile(`(?i)performance counts for (\d+)-th infer request`)

// printed reads a line of the console.
func (b *blocks) printed(l string) {
	if request.MatchString(l) || strings.HasPrefix(strings.ToLower(strings.TrimSpace(l)), "total time:") {
		b.end(nil, nil)
		return
	}
	m := consoleRow.FindStringSubmatch(l)
	if m == nil {
		return
	}
	c := &counter{name: strings.TrimSpace(m[1]), status: m[2], op: m[3], exec: m[6]}
	inMS := strings.Contains(l, "realTime (ms)")
	c.real, c.cpu = draft.Known(span(m[4], inMS)), draft.Known(span(m[5], inMS))
	b.add(c)
}

var spanText = regexp.MustCompile(`^(?:(\d+) days?, )?(\d+):(\d\d):(\d\d(?:\.\d+)?)$`)

// span parses a time as Python or C++ print it: h:mm:ss.ffffff, milliseconds with their
// unit, integer microseconds without.
func span(s string, ms bool) (float64, bool) {
	s = strings.TrimSpace(s)
	if m := spanText.FindStringSubmatch(s); m != nil {
		d, _ := textscan.Number(m[1])
		h, _ := textscan.Number(m[2])
		mi, _ := textscan.Number(m[3])
		sec, ok := textscan.Number(m[4])
		return d*24*time.Hour.Seconds() + h*3600 + mi*60 + sec, ok && d < 1e6 && h < 1e6
	}
	if n, ok := strings.CutSuffix(s, "ms"); ok {
		return milli(n)
	}
	v, ok := textscan.Number(s)
	if ms {
		return v / 1e3, ok && v >= 0
	}
	return v / 1e6, ok && v >= 0 && !math.IsInf(v, 0)
}

// maxJSON limits the size of a JSON file.
const maxJSON = 64 << 20

// readJSON reads counters as JSON.
func (b *blocks) readJSON(f *record.File) error {
	v, fault, err := f.ParseJSON(maxJSON)
	if err != nil {
		return err
	}
	for key, item := range v.Members() {
		b.json(item)
		if k := item.Kind; k == jsontree.String || k == jsontree.Number {
			b.d.Note(key, item.Str())
		}
	}
	if fault != nil {
		b.d.Dropped.Add(fmt.Sprintf("the text is damaged: %v", fault), 1)
	}
	return nil
}

// json reads a request, or a list of requests.
func (b *blocks) json(v *jsontree.Value) {
	for _, e := range v.List() {
		b.json(e)
	}
	nodes := v.Get("nodes")
	if nodes == nil {
		return
	}
	for _, n := range nodes.List() {
		c := &counter{}
		for key, e := range n.Members() {
			f, ok := e.Float()
			c.set(key, e.Str(), e.Brief(), f, ok)
		}
		b.add(c)
	}
	total := func(key string) *float64 {
		f, ok := v.Get(key).Float()
		return draft.Milli(f, ok && f >= 0)
	}
	b.end(total("total_real_time"), total("total_cpu_time"))
}
