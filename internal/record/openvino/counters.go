package openvino

import (
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

// counter is a row: a node in an infer request.
type counter struct {
	name, status, op, exec string
	real, cpu              float64 // seconds
	hasReal, hasCPU        bool
	percent                float64
	hasPercent             bool
	more                   [][2]string
}

// node is a layer with what its requests say.
type node struct {
	layer   int
	real    []float64
	cpu     []float64
	percent []float64
}

// blocks gathers the counters of infer requests.
type blocks struct {
	d        *draft.Draft
	nodes    map[string]*node
	order    []*node
	seen     map[string]int // occurrences of a name in the block under way
	requests int
	real     []float64 // total of each request
	cpu      []float64
	open     bool
	sum      float64
	kept     int
}

func newBlocks(name string) *blocks {
	return &blocks{d: draft.New("openvino", name, "OpenVINO"), nodes: map[string]*node{}, seen: map[string]int{}}
}

// states is what became of a node. A node that was not run is part of a neighbour, or
// holds data; the counters do not tell which.
var states = map[string]profile.State{"EXECUTED": profile.Ran, "NOT_RUN": profile.NotReached, "OPTIMIZED_OUT": profile.Folded, "INVALID_STATUS": profile.Failed}

// State is what became of a node by the word of its status.
func State(status string) profile.State {
	if s, ok := states[status]; ok {
		return s
	}
	return profile.NotReached
}

// maxSamples bounds the requests of which each value is kept, maxKept the values of all layers.
const (
	maxSamples = 10_000
	maxKept    = 5_000_000
)

// add takes a row. Names that were cut stand several times: they are told apart by their order.
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
	if c.hasReal {
		b.sum += c.real
	}
	if b.requests >= maxSamples || b.kept > maxKept || c.status != "EXECUTED" && c.real == 0 && c.cpu == 0 {
		return
	}
	b.kept++
	if c.hasReal {
		n.real = append(n.real, c.real)
	}
	if c.hasCPU {
		n.cpu = append(n.cpu, c.cpu)
	}
	if c.hasPercent {
		n.percent = append(n.percent, c.percent)
	}
}

// end ends a request; totals below 0 are absent.
func (b *blocks) end(real, cpu float64) {
	if !b.open {
		return
	}
	if real < 0 {
		real = b.sum
	}
	if b.requests++; b.requests <= maxSamples {
		b.real = append(b.real, real)
		if cpu >= 0 {
			b.cpu = append(b.cpu, cpu)
		}
	}
	b.open, b.sum = false, 0
	clear(b.seen)
}

// figure makes a metric of one or several values.
func figure(vs []float64) (*profile.Metric, []float64) {
	if len(vs) == 1 {
		return draft.Value(vs[0]), nil
	}
	return draft.Samples(vs, "")
}

// finish puts the figures of all requests into the layers.
func (b *blocks) finish() *draft.Draft {
	b.end(-1, -1)
	d := b.d
	for _, n := range b.order {
		l := d.Layer(n.layer)
		l.Latency, l.Samples = figure(n.real)
		if m, _ := figure(n.cpu); m != nil {
			v, _ := m.Best()
			d.Set(n.layer, CPUTime, v)
			_ = l.Set(CPUTime.Key, m)
		}
		if m, _ := figure(n.percent); m != nil {
			v, _ := m.Best()
			d.Set(n.layer, share, v)
		}
	}
	if b.requests > 0 {
		d.P.Totals.Latency, d.P.Totals.LatencySamples = figure(b.real)
		if m := d.P.Totals.Latency; m != nil {
			m.Method = "sum of the counters, as the record has it: with several streams it is not the latency"
		}
		m, _ := figure(b.cpu)
		d.TotalMetric(CPUTime, m)
		if b.requests > 1 {
			d.P.Settings.Runs = new(int64(b.requests))
		}
	}
	return d
}

// readText reads counters as CSV or as the tools print them.
func readText(f *record.File, in *record.Input, printed bool) ([]*draft.Draft, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	b := newBlocks(stemOr(f))
	var cols textscan.Columns
	for s.Scan() {
		l := textscan.Strip(s.Text())
		if printed {
			b.printed(l)
			continue
		}
		row := strings.Split(strings.TrimSuffix(strings.TrimSpace(l), ";"), ";")
		switch {
		case strings.TrimSpace(l) == "":
			b.end(-1, -1)
		case row[0] == "layerName":
			b.end(-1, -1)
			cols = textscan.NewColumns(row)
		case row[0] == "Total" && textscan.Cell(row, 1) == "" && textscan.Cell(row, 2) == "":
			real, ok := milli(textscan.Cell(row, cols.At("realTime (ms)")))
			cpu, also := milli(textscan.Cell(row, cols.At("cpuTime (ms)")))
			if !ok {
				real = -1
			}
			if !also {
				cpu = -1
			}
			b.end(real, cpu)
		case len(row) < 5 || cols.Names() == nil:
			b.d.Dropped.Add("rows with too few fields", 1)
		default:
			b.add(cells(row, cols))
		}
	}
	d := b.finish()
	if s.Err() != nil {
		return []*draft.Draft{d}, draft.At(f, s.Number(), s.Err())
	}
	return []*draft.Draft{d}, nil
}

func milli(s string) (float64, bool) {
	v, ok := textscan.Number(s)
	return v / 1e3, ok && v >= 0
}

// cells reads a row of the CSV. A name may hold the separator: what is too much belongs
// to it.
func cells(row []string, cols textscan.Columns) *counter {
	if extra := len(row) - len(cols.Names()); extra > 0 {
		row = append([]string{strings.Join(row[:extra+1], ";")}, row[extra+1:]...)
	}
	c := &counter{}
	for i, name := range cols.Names() {
		v := textscan.Cell(row, i)
		switch name {
		case "layerName":
			c.name = v
		case "execStatus":
			c.status = v
		case "layerType":
			c.op = v
		case "execType":
			c.exec = v
		case "realTime (ms)":
			c.real, c.hasReal = milli(v)
		case "cpuTime (ms)":
			c.cpu, c.hasCPU = milli(v)
		case "%":
			c.percent, c.hasPercent = textscan.Number(v)
			c.percent /= 100
		default:
			c.more = append(c.more, [2]string{name, v})
		}
	}
	return c
}

// consoleRow is a row as the tools print it; columns may run together.
var consoleRow = regexp.MustCompile(`^(.*?)\s*(?:Status\.)?(EXECUTED|NOT_RUN|OPTIMIZED_OUT)\s*layerType: (.*?)\s*realTime(?: \(ms\))?: (.*?)\s*cpu(?:Time \(ms\))?: (.*?)\s*execType: ?(.*?)\s*$`)

var request = regexp.MustCompile(`(?i)performance counts for (\d+)-th infer request`)

// printed takes a line of the console.
func (b *blocks) printed(l string) {
	if request.MatchString(l) || strings.HasPrefix(strings.ToLower(strings.TrimSpace(l)), "total time:") {
		b.end(-1, -1)
		return
	}
	m := consoleRow.FindStringSubmatch(l)
	if m == nil {
		return
	}
	c := &counter{name: strings.TrimSpace(m[1]), status: m[2], op: m[3], exec: m[6]}
	inMS := strings.Contains(l, "realTime (ms)")
	c.real, c.hasReal = span(m[4], inMS)
	c.cpu, c.hasCPU = span(m[5], inMS)
	b.add(c)
}

var spanText = regexp.MustCompile(`^(?:(\d+) days?, )?(\d+):(\d\d):(\d\d(?:\.\d+)?)$`)

// span reads a time as Python or C++ print it: h:mm:ss.ffffff, milliseconds with their
// unit, whole microseconds without.
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

// maxJSON bounds a file of counters.
const maxJSON = 64 << 20

// readJSON reads counters as JSON.
func readJSON(f *record.File, in *record.Input) ([]*draft.Draft, error) {
	text, err := f.Read(maxJSON)
	if err != nil {
		return nil, err
	}
	v, fault := jsontree.Parse(text)
	b := newBlocks(stemOr(f))
	for key, item := range v.Members() {
		b.json(item)
		if k := item.Kind; k == jsontree.String || k == jsontree.Number {
			b.d.Note(key, item.Str())
		}
	}
	d := b.finish()
	if fault != nil {
		d.Dropped.Add(fmt.Sprintf("the text is damaged: %v", fault), 1)
	}
	return []*draft.Draft{d}, nil
}

// json takes a request, or a list of them.
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
			switch key {
			case "name":
				c.name = e.Str()
			case "status":
				c.status = e.Str()
			case "node_type":
				c.op = e.Str()
			case "exec_type":
				c.exec = e.Str()
			case "real_time":
				c.real, c.hasReal = f/1e3, ok && f >= 0
			case "cpu_time":
				c.cpu, c.hasCPU = f/1e3, ok && f >= 0
			case "%":
				c.percent, c.hasPercent = f/100, ok
			default:
				c.more = append(c.more, [2]string{key, e.Brief()})
			}
		}
		b.add(c)
	}
	total := func(key string) float64 {
		if f, ok := v.Get(key).Float(); ok && f >= 0 {
			return f / 1e3
		}
		return -1
	}
	b.end(total("total_real_time"), total("total_cpu_time"))
}
