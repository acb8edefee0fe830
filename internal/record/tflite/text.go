package tflite

import (
	"math"
	"path"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// Headings before the tables of the initialisation and of the measured runs.
const (
	initHeading = "Profiling Info for Benchmark Initialization"
	runHeading  = "Operator-wise Profiling Info for Regular Benchmark Runs"
)

var (
	// nodeHead matches the header of a table of operators or of the sums by type.
	nodeHead    = lazyregexp.New(`(?i)^\s*(\[node type\]|node type, (start|first|count))`)
	timingsLine = lazyregexp.New(`Timings \(microseconds\): (count=.*)$`)
	partOfLine  = lazyregexp.New(`(Init|First inference|Warmup(?: \(avg\))?|Inference(?: \(avg\))?|no stats): ([\d.eE+]+|-?(?:nan|inf))`)
	bracketed   = lazyregexp.New(`\[[^\]]+\]`)
)

// maxRows limits the rows of all tables of a file.
const maxRows = 1_000_000

// stat is a line of figures such as "count=50 first=79449 avg=79732", by name.
type stat map[string]float64

func parseStat(s string) stat {
	out := stat{}
	for _, f := range strings.Fields(s) {
		if k, v, ok := strings.Cut(f, "="); ok {
			n, ok := textscan.Number(v)
			if !ok {
				n = math.NaN() // present, and unknown
			}
			out[k] = n
		}
	}
	return out
}

// row is a line of a table of operators, or of the sums by type. Absent figures are nil.
type row struct {
	node, name            string
	avg                   float64  // milliseconds
	start, first          *float64 // milliseconds
	percent, sum, kB      *float64
	called, operatorCount float64
	unknown               bool // avg cannot be read
}

// block holds the tables of one graph.
type block struct {
	graph    string // name of a subgraph, "" for the primary one
	index    int64
	delegate bool // operators inside of delegates
	order    []row
	top      []row
	types    []row
	timings  stat
	memory   stat
}

// log is the text of one run.
type log struct {
	init, run []*block
	stats     []stat // warming up, then measured
	parts     map[string]float64
	params    [][2]string
	session   *float64              // initialisation, milliseconds
	memory    map[string][2]float64 // MB, after the initialisation and overall
	sizeMB    float64
	graph     string
	broken    int64
	unknown   int64 // rows without a readable time
}

// begun reports whether figures of a run were seen.
func (l *log) begun() bool { return len(l.run) > 0 || len(l.stats) > 0 || len(l.parts) > 0 }

type reader struct {
	logs  []*log
	cur   *log
	at    *block
	in    *[]*block // init or run of cur
	title string
	cols  textscan.Columns
	csv   bool
	table *[]row
	rows  int
	lost  int64 // runs beyond the limit
}

func readText(f *record.File) (runs []*runlog.Run, err error) {
	p := &reader{cur: &log{}}
	err = f.Lines(func(l string) { p.line(textscan.Strip(l)) })
	p.flush()
	var ds []*draft.Draft
	for _, l := range p.logs {
		name := draft.Stem(f)
		if l.graph != "" {
			name = strings.TrimSuffix(path.Base(l.graph), ".tflite")
		}
		if d := l.build(name); d != nil {
			ds = append(ds, d)
		}
	}
	draft.Beyond(ds, p.lost)
	draft.Apart(ds, false)
	for _, d := range ds {
		runs = append(runs, d.Run())
	}
	return draft.NotEmpty(runs, err)
}

// flush ends the current run.
func (p *reader) flush() {
	switch {
	case !p.cur.begun() && len(p.cur.init) == 0:
	case len(p.logs) < draft.MaxRuns:
		p.logs = append(p.logs, p.cur)
	default:
		p.lost++
	}
	p.cur = &log{}
	p.part(nil)
}

// part begins the tables of the initialisation or of the runs.
func (p *reader) part(in *[]*block) { p.in, p.at, p.table, p.title = in, nil, nil, "" }

func (p *reader) line(s string) {
	trimmed := strings.TrimSpace(s)
	if p.table != nil && !p.csv && likeRow(trimmed) {
		p.add(trimmed) // most lines of a log
		return
	}
	switch {
	case p.cur.begun() && (trimmed == "STARTING!" || strings.HasPrefix(trimmed, "Graph: [")):
		p.flush()
	case strings.HasPrefix(trimmed, initHeading):
		if len(p.cur.init) > 0 || len(p.cur.run) > 0 {
			p.flush()
		}
		p.part(&p.cur.init)
		return
	case strings.HasPrefix(trimmed, runHeading):
		if len(p.cur.run) > 0 {
			p.flush()
		}
		p.part(&p.cur.run)
		return
	}
	switch {
	case figures.Apply(p, trimmed):
		p.table = nil
	case headings.Apply(p, trimmed):
	case p.table == nil || trimmed == "" || strings.HasPrefix(trimmed, "Number of nodes executed"):
		if trimmed != "" || p.csv {
			p.table = nil
		}
	case p.csv:
		p.add(trimmed)
	}
}

// likeRow reports whether a line of text may be a row of a table, of operators or of types.
func likeRow(s string) bool {
	return strings.Count(s, "%") >= 2 && !strings.Contains(s, "ode type]")
}

// add adds a row to the current table.
func (p *reader) add(s string) {
	r, ok := p.row(s)
	if p.rows++; !ok || p.rows > maxRows {
		p.cur.broken++
		return
	}
	if r.unknown {
		p.cur.unknown++
	}
	*p.table = append(*p.table, r)
}

// figures are lines that are not a part of a table.
var figures = textscan.Rules[*reader]{
	textscan.On(`^(count=\d.*)$`, func(p *reader, m []string) {
		if p.cur.parts != nil || len(p.cur.stats) == 2 {
			p.flush() // a run has one line for its warm-up and one for its measured runs
		}
		p.cur.stats = append(p.cur.stats, parseStat(m[1]))
	}),
	textscan.On(timingsLine.String(), func(p *reader, m []string) {
		if p.at != nil {
			p.at.timings = parseStat(m[1])
		}
	}),
	textscan.On(`^(?:Subgraph \(index: .*\) )?Memory \(bytes\): (count=.*)$`, func(p *reader, m []string) {
		if p.at != nil {
			p.at.memory = parseStat(m[1])
		}
	}),
	textscan.On(`^.*nference timings in us:.*$`, func(p *reader, m []string) {
		if p.cur.parts != nil {
			p.flush()
		}
		p.cur.parts = map[string]float64{}
		for _, m := range partOfLine.FindAllStringSubmatch(m[0], -1) {
			name, _, _ := strings.Cut(m[1], " (")
			if v, ok := textscan.Number(m[2]); ok {
				p.cur.parts[name] = v
			} else if name == "Inference" {
				p.cur.parts[name] = math.NaN() // present, and unknown
			}
		}
	}),
	textscan.On(`^Initialized session in ([\d.eE+]+)ms`, func(p *reader, m []string) {
		p.cur.session = draft.Known(textscan.Number(m[1]))
	}),
	textscan.On(`^The input model file size \(MB\): ([\d.eE+]+)`, func(p *reader, m []string) {
		p.cur.sizeMB, _ = textscan.Number(m[1])
	}),
	textscan.On(`^(?:(?:P(eak) memory footprint)|Memory footprint (delta) from the start of the tool) \(MB\): init=([\d.eE+-]+) overall=([\d.eE+-]+)`, func(p *reader, m []string) {
		initialised, _ := textscan.Number(m[3])
		overall, _ := textscan.Number(m[4])
		if p.cur.memory == nil {
			p.cur.memory = map[string][2]float64{}
		}
		name := m[2]
		if m[1] != "" {
			name = "peak"
		}
		p.cur.memory[name] = [2]float64{initialised, overall}
	}),
	textscan.On(`^([#A-Za-z][^:\[\]]{1,80}?)\s?: \[(.*)\]\s*$`, func(p *reader, m []string) {
		if m[1] == "Graph" {
			p.cur.graph = m[2]
		}
		if len(p.cur.params) < 200 {
			p.cur.params = append(p.cur.params, [2]string{m[1], m[2]})
		}
	}),
	textscan.On(`^\d+ nodes observed`, func(*reader, []string) {}),
}

// headings are lines before and inside of tables.
var headings = textscan.Rules[*reader]{
	textscan.On(`^=+ ([A-Za-z][A-Za-z ]*) =+\s*$`, func(p *reader, m []string) { p.title, p.table = m[1], nil }),
	textscan.On(nodeHead.String()+`.*`, func(p *reader, m []string) { p.head(m[0]) }),
	textscan.On(`^(?:Primary graph|Subgraph) \((?:index: (\d+)(?:, )?)?(?:name: (.*))?\) .*:\s*$`, func(p *reader, m []string) {
		index, _ := textscan.Whole(m[1])
		p.open(&block{graph: m[2], index: index})
	}),
	textscan.On(`^Delegate internal:`, func(p *reader, _ []string) { p.open(&block{delegate: true}) }),
}

// open begins the tables of a graph.
func (p *reader) open(b *block) {
	if p.in == nil {
		p.in = &p.cur.run // a log without the heading, as in documents
	}
	// The last line of a graph repeats its name before the figures.
	if p.at != nil && p.at.graph == b.graph && p.at.index == b.index && p.at.delegate == b.delegate {
		return
	}
	p.part(p.in)
	p.at = b
	*p.in = append(*p.in, b)
}

// head reads the names of columns and selects the table of the rows that follow.
func (p *reader) head(s string) {
	p.csv = !strings.HasPrefix(s, "[")
	names := bracketed.FindAllString(s, -1)
	if p.csv {
		names = strings.Split(s, ", ")
	}
	for i, n := range names {
		names[i] = strings.ReplaceAll(strings.Trim(strings.TrimSpace(n), "[]"), "_", " ")
	}
	p.cols = textscan.NewColumns(names)
	types := p.cols.At("count") >= 0
	again := p.at != nil && (p.at.order != nil && !types && p.title == "Run Order" || p.at.types != nil && types)
	if p.at == nil || again {
		if again && p.in == &p.cur.run {
			p.flush() // the same table of another run, in a log without headings
		}
		p.at = nil
		p.open(&block{})
	}
	switch {
	case types:
		p.table = &p.at.types
	case p.title == "Run Order", p.title == "" && p.at.order == nil:
		p.table = &p.at.order
	default:
		p.table = &p.at.top
	}
	if len(*p.table) > 0 {
		*p.table = nil // the same table once more
	}
}

// row reads a line of the current table. The last field of CSV may have commas.
func (p *reader) row(s string) (r row, ok bool) {
	n := len(p.cols.Names())
	var fields []string
	if p.csv {
		fields = strings.SplitN(s, ", ", n)
	} else {
		fields = strings.Split(s, "\t")
		if len(fields) < n-1 {
			fields = p.blanks(s) // a terminal or a document replaced tabs by blanks
		}
		if len(fields) > n {
			fields = append(fields[:n-1:n-1], strings.Join(fields[n-1:], " "))
		}
	}
	if len(fields) < n-1 || len(fields) < 4 {
		return r, false
	}
	get := func(names ...string) *float64 { return draft.Known(p.cols.Number(fields, names...)) }
	r.node, r.name = p.cols.Text(fields, "node type"), p.cols.Text(fields, "name")
	if r.avg, ok = p.cols.Number(fields, "avg ms"); r.node == "" || p.cols.At("avg ms") < 0 {
		return r, false
	}
	r.unknown = !ok || r.avg < 0
	r.start, r.first, r.kB = get("start"), get("first"), get("mem KB")
	r.percent, r.sum = get("%", "avg %"), get("cdf%", "cdf %")
	r.called, _ = p.cols.Number(fields, "times called")
	r.operatorCount, _ = p.cols.Number(fields, "count")
	return r, true
}

// blanks splits a row without tabs: the numbers stand between the type and the name of the node,
// which may have blanks.
func (p *reader) blanks(s string) []string {
	words := strings.Fields(s)
	numbers := len(p.cols.Names()) - 1
	if p.cols.At("name") >= 0 {
		numbers--
	}
	run := 0
	for i, w := range words {
		if _, ok := textscan.Number(w); !ok || i == 0 {
			run = 0
			continue
		}
		if run++; run == numbers {
			first := i + 1 - numbers
			fields := append([]string{strings.Join(words[:first], " ")}, words[first:i+1]...)
			return append(fields, strings.Join(words[i+1:], " "))
		}
	}
	return words
}
