package tensorrt

import (
	"math"
	"path"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// consoleLog is what trtexec printed about one run.
type consoleLog struct {
	title    string // its command
	settings [][2]string
	shapes   []string
	figures  []*printed
	rates    map[string]float64 // in seconds or 1/s
	averages [3]float64         // runs; milliseconds of all of them, on the device and the host
	queries  float64
	profile  *profiled
	columns  []string // of the profile, the name of the layer apart
	nameLast bool
	bad      int64
}

// printed is a figure with its parts in milliseconds by name, such as "min".
type printed struct {
	name  string
	parts map[string]float64
}

// console reads the text of trtexec. A command, or a part that the run has already, begins the
// next run.
type console struct {
	set  *set
	cur  *consoleLog
	seen map[string]bool // parts of the current run
}

// section begins a part of the text.
func (c *console) section(name string) {
	if c.cur == nil || c.seen[name] {
		c.cur = add(c.set, &c.set.logs, &consoleLog{rates: map[string]float64{}})
		c.seen = map[string]bool{}
	}
	c.seen[name] = true
}

// part adds a part of the latest figure.
func (c *console) part(name, figure string) {
	if n := len(c.cur.figures); n > 0 {
		if v, ok := textscan.Number(figure); ok {
			c.cur.figures[n-1].parts[name] = v
		} else {
			c.cur.bad++
		}
	}
}

// figure begins a figure. The throughput stands before or after the figures of its run.
func (c *console) figure(name string) {
	c.section("figure " + name)
	c.cur.figures = append(c.cur.figures, &printed{name, map[string]float64{}})
}

var (
	onePart   = lazyregexp.New(`(min|max|mean|median|percentile\([\d.]+%\)) = ([\d.eE+-]+) ms`)
	columnGap = lazyregexp.New(`\s{2,}`)
	lastLine  = lazyregexp.New(`^(?:Throughput|throughput): ([\d.eE+-]+) qps$`)
)

// consoleRules are the lines of releases 5 to 10.
var consoleRules = textscan.Rules[*console]{
	textscan.On(`^&&&& RUNNING [^#]*# (.*)$`, func(c *console, m []string) {
		c.cur = nil
		c.section("command")
		c.cur.title = m[1]
	}),
	textscan.On(`^=== Profile \((\d+) iterations ?\) ===$`, func(c *console, m []string) {
		c.section("profile")
		n, _ := textscan.Number(m[1])
		c.cur.profile = &profiled{count: n}
	}),
	textscan.On(`^=== (Performance summary|Model Options|Build Options|Inference Options|Trace details) ===$`, func(c *console, m []string) {
		c.section(m[1])
	}),
	textscan.On(`^([A-Z][\w -]{0,40}): (min = .* ms.*)$`, func(c *console, m []string) {
		c.figure(m[1])
		for _, p := range onePart.FindAllStringSubmatch(m[2], -1) {
			c.part(p[1], p[2])
		}
	}),
	textscan.On(`^(Host Latency|Host latency|End-to-End Host Latency|Enqueue Time|GPU Compute)$`, func(c *console, m []string) { c.figure(m[1]) }),
	textscan.On(`^(min|max|mean|median|percentile): ([\d.eE+-]+) ms(?: at ([\d.]+%))?(?: |$)`, func(c *console, m []string) {
		if m[3] != "" {
			m[1] += "(" + m[3] + ")"
		}
		c.part(m[1], m[2])
	}),
	textscan.On(`^(Throughput|throughput|Total Host Walltime|walltime|total compute time|Total GPU Compute Time): ([\d.eE+-]+) (?:qps|s)$`, func(c *console, m []string) {
		c.section("rate " + m[1])
		if v, ok := textscan.Number(m[2]); ok && v > 0 { // release 7 prints 0 for an unknown rate
			c.cur.rates[m[1]] = v
		}
	}),
	textscan.On(`^Average on (\d+) runs - GPU latency: ([\d.eE+-]+) ms - Host latency: ([\d.eE+-]+) ms`, (*console).average),
	textscan.On(`^Average over (\d+) runs is ([\d.eE+-]+) ms \(host walltime is ([\d.eE+-]+) ms`, (*console).average),
	textscan.On(`^Timing trace has (\d+) queries over `, func(c *console, m []string) {
		c.section("queries")
		c.cur.queries, _ = textscan.Number(m[1])
	}),
	textscan.On(`^(Model|Batch|Precision|Selected Device|Compute Clock Rate|Streams|Iterations|Duration|Input inference shapes? ?): ?(\S.*)$`, func(c *console, m []string) {
		if key := strings.TrimSpace(m[1]); strings.HasPrefix(key, "Input") {
			c.cur.shapes = append(c.cur.shapes, m[2])
		} else if len(c.cur.settings) < 200 {
			c.cur.settings = append(c.cur.settings, [2]string{key, m[2]})
		}
	}),
	textscan.On(`^(Layer\s+Time \(ms\).*|Time ?\(ms\)\s+.*Layer)$`, func(c *console, m []string) {
		if c.cur.profile == nil || c.cur.columns != nil {
			c.section("profile")
			c.cur.profile = &profiled{}
		}
		c.cur.columns = columnGap.Split(m[1], -1)
		c.cur.nameLast = !strings.HasPrefix(m[1], "Layer")
	}),
}

// average adds the mean of a group of runs.
func (c *console) average(m []string) {
	if len(c.cur.figures) > 0 {
		c.cur = nil // the summary was the end of its run
	}
	c.section("averages of groups")
	delete(c.seen, "averages of groups")
	n, _ := textscan.Number(m[1])
	for i, v := range []float64{1, milliOf(m[2]), milliOf(m[3])} {
		c.cur.averages[i] += n * v
	}
}

func milliOf(s string) float64 {
	v, ok := textscan.Number(s)
	if !ok {
		return math.NaN()
	}
	return v
}

func matchConsole(f *record.File) record.Sure {
	return record.FindLine(f, matchLine, " qps", "=== Profile (", "GPU latency: ", "host walltime is ", "median = ", "&&&& RUNNING ")
}

// matchLine recognises a line of trtexec's summary or profile.
func matchLine(l string) record.Sure {
	l = strings.TrimSpace(textscan.Strip(l))
	switch {
	case onePart.MatchString(l), strings.HasPrefix(l, "Average o") && (strings.Contains(l, "GPU latency: ") || strings.Contains(l, "host walltime is ")),
		strings.HasPrefix(l, "=== Profile ("), strings.HasPrefix(l, "&&&& RUNNING TensorRT.trtexec"):
		return record.Certain
	case lastLine.MatchString(l):
		return record.Likely
	}
	return record.No
}

// console reads a text file.
func (s *set) console(f *record.File) error {
	c := &console{set: s}
	c.section("begin")
	return f.Lines(func(l string) {
		l = strings.TrimSpace(textscan.Strip(l))
		if !consoleRules.Apply(c, l) && c.cur.columns != nil && l != "" {
			c.cur.row(l)
		}
	})
}

// keys are the members of a row in exportProfile, by the columns of releases.
var keys = map[string]string{
	"Time (ms)": "timeMs", "Time(ms)": "timeMs", "Avg. Time (ms)": "averageMs", "Avg.(ms)": "averageMs",
	"Median Time (ms)": "medianMs", "Median(ms)": "medianMs", "Time %": "percentage", "Time(%)": "percentage",
}

// row reads a row of the profile: figures by column, before or after the name of the layer, which
// may have blanks. The row of the sum ends the table.
func (l *consoleLog) row(s string) {
	fields := strings.Fields(s)
	n := len(l.columns) - 1
	if len(fields) <= n {
		l.bad++
		return
	}
	name, figures := strings.Join(fields[:len(fields)-n], " "), fields[len(fields)-n:]
	columns := l.columns[1:]
	if l.nameLast {
		name, figures, columns = strings.Join(fields[n:], " "), fields[:n], l.columns[:n]
	}
	row := &jsontree.Value{Kind: jsontree.Object}
	put := func(key string, v *jsontree.Value) { row.Keys, row.Items = append(row.Keys, key), append(row.Items, v) }
	put("name", &jsontree.Value{Kind: jsontree.String, Text: name})
	for i, c := range columns {
		v, ok := textscan.Number(figures[i])
		if key := keys[c]; ok && key != "" {
			put(key, &jsontree.Value{Kind: jsontree.Number, Text: figures[i], Num: v})
		}
	}
	switch {
	case name == "Total":
		l.columns = nil
	case !row.Has("averageMs") && !row.Has("timeMs"), len(l.profile.rows) >= draft.MaxLayers:
		l.bad++
	default:
		l.profile.rows = append(l.profile.rows, row)
	}
}

// draft makes the draft of a run, nil if it has no content.
func (l *consoleLog) draft(name string) *draft.Draft {
	d := draft.New("tensorrt", name, "TensorRT")
	if l.profile != nil {
		layers(d, l.profile, nil)
	}
	for _, f := range l.figures {
		m := f.metric()
		switch f.name {
		case "Latency", "Host Latency", "Host latency":
			d.P.Totals.Latency = m
			for part, v := range f.parts {
				if p, ok := strings.CutPrefix(part, "percentile("); ok && part != "percentile(90%)" && part != "percentile(95%)" && part != "percentile(99%)" {
					p = strings.TrimSuffix(p, "%)")
					d.Total(profile.Quantity{Key: "latency_p" + p + "_s", Unit: "s", Name: "Latency, p" + p, Group: "Time"}, v/1e3)
				}
			}
		default:
			d.TotalMetric(profile.Quantity{Key: "summary_" + runlog.Key(f.name) + "_s", Unit: "s", Name: f.name, Group: "Time"}, m)
		}
	}
	if n := l.averages[0]; n > 0 && d.P.Totals.Latency == nil {
		d.P.Totals.Latency = draft.Metric(&profile.Metric{Mean: new(l.averages[2] / n / 1e3), N: draft.Count(int64(n), n < 1e15), Method: "mean of the averages that trtexec printed"})
	}
	if m := d.P.Totals.Latency; m != nil && m.N == nil && l.queries > 0 && l.queries < 1e15 {
		m.N = new(int64(l.queries))
	}
	for name, v := range l.rates {
		if strings.EqualFold(name, "throughput") {
			d.Total(profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}, v)
		} else {
			d.Total(profile.Quantity{Key: "summary_" + runlog.Key(name) + "_s", Unit: "s", Name: name, Group: "Time"}, v)
		}
	}
	l.describe(d)
	d.Dropped.Add("rows of the profile without their columns", l.bad)
	if d.Empty() {
		return nil
	}
	return d
}

// metric makes a figure of printed parts.
func (f *printed) metric() *profile.Metric {
	get := func(part string) *float64 {
		v, ok := f.parts[part]
		return draft.Milli(v, ok)
	}
	return draft.Metric(&profile.Metric{
		Min: get("min"), Max: get("max"), Mean: get("mean"), Median: get("median"),
		P90: get("percentile(90%)"), P95: get("percentile(95%)"), P99: get("percentile(99%)"), Method: "trtexec's summary",
	})
}

// describe sets what the run was: command, model, device, batch, shapes.
func (l *consoleLog) describe(d *draft.Draft) {
	p := d.P
	d.Note("command", l.title)
	for _, s := range l.settings {
		n, whole := textscan.Whole(s[1])
		switch {
		case s[0] == "Model":
			p.Model.Path = draft.Text(s[1])
			base := path.Base(strings.ReplaceAll(s[1], `\`, "/"))
			p.Model.Name = draft.Text(strings.TrimSuffix(base, path.Ext(base)))
		case s[0] == "Batch" && whole && n > 0:
			p.Settings.Batch = &n
		case s[0] == "Selected Device":
			p.Target.Description = draft.Text(s[1])
		case s[0] == "Compute Clock Rate":
			if hz, ok := textscan.Number(strings.TrimSuffix(s[1], " GHz")); ok && hz > 0 && hz < 1e3 {
				p.Target.ClockHz = new(hz * 1e9)
			}
		}
		d.Note(s[0], s[1])
	}
	if len(l.shapes) > 0 {
		p.Model.Description = draft.Text(strings.Join(l.shapes, ", "))
	}
}
