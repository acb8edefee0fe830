package openvino

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
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
	case "real_time":
		c.real = draft.Milli(v, ok && v >= 0)
	case "cpu_time":
		c.cpu = draft.Milli(v, ok && v >= 0)
	case "%":
		c.percent = draft.Known(v/100, ok)
	default:
		if m := timeColumn.FindStringSubmatch(key); m != nil {
			to := map[string]**float64{"realTime": &c.real, "cpuTime": &c.cpu}[m[1]]
			*to = draft.Known(v/perSecond[m[2]], ok && v >= 0)
			return
		}
		c.more = append(c.more, [2]string{key, brief})
	}
}

// timeColumn is the header of a column of times with its unit.
var timeColumn = lazyregexp.New(`^(realTime|cpuTime) ?\((s|ms|us|µs|ns)\)$`)

// perSecond says how many of a unit are a second.
var perSecond = map[string]float64{"s": 1, "ms": 1e3, "us": 1e6, "µs": 1e6, "ns": 1e9}

// node is a layer with the values of its requests.
type node struct {
	layer              int
	real, cpu, percent []float64
}

// blocks collects the counters of one run: those of its infer requests.
type blocks struct {
	d         *draft.Draft
	block     record.Block // of the first request
	nodes     map[string]*node
	order     []*node
	requests  int
	real, cpu []float64 // totals of requests
	kept      int
	partial   int       // requests in which the time of an executed node is unknown
	report    runReport // that the tool printed
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

// add adds the row of a request. Truncated names may be equal: nth, their order in the request,
// distinguishes them.
func (b *blocks) add(c *counter, nth int) {
	key := fmt.Sprintf("%s\x00%d", c.name, nth)
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

// request adds an infer request with its totals, nil if absent.
func (b *blocks) request(rows []*counter, real, cpu *float64) {
	seen := map[string]int{}
	sum, unknown := 0.0, int64(0)
	for _, c := range rows {
		seen[c.name]++
		b.add(c, seen[c.name])
		if c.real != nil {
			sum += *c.real
		} else if c.status == "EXECUTED" {
			unknown++
		}
	}
	if unknown > 0 {
		b.d.Dropped.Add("times of executed layers that are missing or cannot be read", unknown)
		b.partial++
	}
	if real == nil && unknown == 0 {
		real = &sum
	}
	if b.requests++; b.requests <= maxSamples {
		b.real, b.cpu = keep(b.real, real), keep(b.cpu, cpu)
	}
}

// finish puts the figures of all requests into the layers.
func (b *blocks) finish() *draft.Draft {
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
	b.report.into(d)
	if b.partial > 0 {
		total := "The latency is the total that the record has."
		if d.P.Totals.Latency == nil {
			total = "The record has no total, so that the latency is unknown."
		}
		d.Found("record.incomplete", profile.Warning, "Requests without the time of an executed layer: %d of %d. %s Shares are parts of the known times.", b.partial, b.requests, total)
	}
	return d
}

var spanText = lazyregexp.New(`^(?:(\d+) days?, )?(\d+):(\d\d):(\d\d(?:\.\d+)?)$`)

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
	n, also := strings.CutSuffix(s, "ms")
	v, ok := textscan.Decimal(n)
	if ms || also {
		return v / 1e3, ok && v >= 0
	}
	return v / 1e6, ok && v >= 0 && !math.IsInf(v, 0)
}
