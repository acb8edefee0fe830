package tflite

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

var (
	titleLine   = regexp.MustCompile(`^=+ ([A-Za-z][A-Za-z ]*) =+\s*$`)
	timingsLine = regexp.MustCompile(`Timings \(microseconds\): (count=.*)$`)
	memoryLine  = regexp.MustCompile(`^(?:Subgraph \(index: .*\) )?Memory \(bytes\): (count=.*)$`)
	statsLine   = regexp.MustCompile(`^\s*(count=\d.*)$`)
	graphLine   = regexp.MustCompile(`^(Primary graph|Subgraph) \((?:index: (\d+)(?:, )?)?(?:name: (.*))?\) .*:\s*$`)
	paramLine   = regexp.MustCompile(`^([#A-Za-z][^:\[\]]{1,80}?)\s?: \[(.*)\]\s*$`)
	sessionLine = regexp.MustCompile(`^Initialized session in ([\d.eE+]+)ms`)
	sizeLine    = regexp.MustCompile(`^The input model file size \(MB\): ([\d.eE+]+)`)
	memoryMB    = regexp.MustCompile(`^(Peak memory footprint|Memory footprint delta from the start of the tool) \(MB\): init=([\d.eE+-]+) overall=([\d.eE+-]+)`)
	partOfLine  = regexp.MustCompile(`(Init|First inference|Warmup(?: \(avg\))?|Inference(?: \(avg\))?|no stats): ([\d.eE+]+)`)
	bracketed   = regexp.MustCompile(`\[[^\]]+\]`)
	observed    = regexp.MustCompile(`^(\d+) nodes observed`)
)

// Bounds of a file: its runs, and the rows of all tables.
const (
	maxLogs = 2000
	maxRows = 1_000_000
)

// stat is a line of figures such as "count=50 first=79449 avg=79732", by name.
type stat map[string]float64

func parseStat(s string) stat {
	out := stat{}
	for _, f := range strings.Fields(s) {
		if k, v, ok := strings.Cut(f, "="); ok {
			if n, ok := textscan.Number(v); ok {
				out[k] = n
			}
		}
	}
	return out
}

// row is a line of a table of operators, or of the sums by type.
type row struct {
	node, name         string
	start, first, avg  float64 // milliseconds
	percent, sum, kB   float64
	called, count      float64
	hasStart, hasFirst bool
	hasPercent, hasSum bool
	hasKB              bool
}

// block is what is printed of one graph: its tables.
type block struct {
	graph    string // name of a subgraph, "" for the primary one
	index    int64
	delegate bool // what delegates did inside
	order    []row
	top      []row
	types    []row
	timings  stat
	memory   stat
}

// log is one run as its text tells.
type log struct {
	init, run  []*block
	stats      []stat // warming up, then measured
	parts      map[string]float64
	params     [][2]string
	session    float64
	sizeMB     float64
	memory     map[string][2]float64
	graph      string
	broken     int64
	hasSession bool
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
	op    bool // the table is one of operators
	rows  int
}

func readText(f *record.File, in *record.Input) ([]*runlog.Run, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	p := &reader{cur: &log{}}
	s := textscan.NewScanner(r)
	for s.Scan() {
		p.line(textscan.Strip(s.Text()))
	}
	p.flush()
	var runs []*runlog.Run
	for i, l := range p.logs {
		name := draft.Stem(f)
		if l.graph != "" {
			name = strings.TrimSuffix(path.Base(l.graph), ".tflite")
		}
		if len(p.logs) > 1 && l.graph == "" {
			name += " " + strconv.Itoa(i+1)
		}
		if run := l.build(name); run != nil {
			runs = append(runs, run)
		}
	}
	if s.Err() != nil {
		return runs, draft.At(f, s.Number(), s.Err())
	}
	if len(runs) == 0 {
		return nil, draft.ErrNothing
	}
	return runs, nil
}

// flush ends the run under way.
func (p *reader) flush() {
	if len(p.logs) < maxLogs && (p.cur.begun() || len(p.cur.init) > 0) {
		p.logs = append(p.logs, p.cur)
	}
	p.cur, p.at, p.in, p.table = &log{}, nil, nil, nil
}

// line takes one line.
func (p *reader) line(s string) {
	if p.table != nil && !p.csv && strings.HasPrefix(s, "\t") && !strings.Contains(s, "ode type]") {
		p.add(s) // what most lines of a log are
		return
	}
	trimmed := strings.TrimSpace(s)
	switch {
	case trimmed == "STARTING!" || strings.HasPrefix(trimmed, "Graph: ["):
		if p.cur.begun() {
			p.flush()
		}
	case strings.HasPrefix(trimmed, "Profiling Info for Benchmark Initialization"):
		if len(p.cur.init) > 0 || len(p.cur.run) > 0 {
			p.flush()
		}
		p.in, p.at, p.table, p.title = &p.cur.init, nil, nil, ""
		return
	case strings.HasPrefix(trimmed, "Operator-wise Profiling Info for Regular Benchmark Runs"):
		if len(p.cur.run) > 0 {
			p.flush()
		}
		p.in, p.at, p.table, p.title = &p.cur.run, nil, nil, ""
		return
	}
	if p.figures(trimmed) {
		p.table = nil
		return
	}
	if m := titleLine.FindStringSubmatch(trimmed); m != nil {
		p.title, p.table = m[1], nil
		return
	}
	if nodeHead.MatchString(s) {
		p.head(trimmed)
		return
	}
	if m := graphLine.FindStringSubmatch(trimmed); m != nil {
		index, _ := textscan.Whole(m[2])
		p.open(&block{graph: m[3], index: index})
		return
	}
	if strings.HasPrefix(trimmed, "Delegate internal:") {
		p.open(&block{delegate: true})
		return
	}
	if p.table == nil || trimmed == "" || strings.HasPrefix(trimmed, "Number of nodes executed") {
		if trimmed != "" || p.csv {
			p.table = nil
		}
		return
	}
	p.add(s)
}

// add takes a row of the table under way; what is none ends it.
func (p *reader) add(s string) {
	if r, ok := p.row(s); ok {
		if p.rows++; p.rows <= maxRows {
			*p.table = append(*p.table, r)
		} else {
			p.cur.broken++
		}
	} else {
		p.table = nil
	}
}

// figures takes lines that are not a part of a table.
func (p *reader) figures(s string) bool {
	l := p.cur
	switch {
	case statsLine.MatchString(s):
		if len(l.stats) < 10 {
			l.stats = append(l.stats, parseStat(s))
		}
	case timingsLine.MatchString(s):
		if p.at != nil {
			p.at.timings = parseStat(timingsLine.FindStringSubmatch(s)[1])
		}
	case memoryLine.MatchString(s):
		if p.at != nil {
			p.at.memory = parseStat(memoryLine.FindStringSubmatch(s)[1])
		}
	case strings.Contains(s, "nference timings in us:"):
		l.parts = map[string]float64{}
		for _, m := range partOfLine.FindAllStringSubmatch(s, -1) {
			if v, ok := textscan.Number(m[2]); ok {
				name, _, _ := strings.Cut(m[1], " (")
				l.parts[name] = v
			}
		}
	case sessionLine.MatchString(s):
		l.session, l.hasSession = textscan.Number(sessionLine.FindStringSubmatch(s)[1])
	case sizeLine.MatchString(s):
		l.sizeMB, _ = textscan.Number(sizeLine.FindStringSubmatch(s)[1])
	case memoryMB.MatchString(s):
		m := memoryMB.FindStringSubmatch(s)
		a, _ := textscan.Number(m[2])
		b, _ := textscan.Number(m[3])
		if l.memory == nil {
			l.memory = map[string][2]float64{}
		}
		l.memory[m[1]] = [2]float64{a, b}
	case paramLine.MatchString(s):
		m := paramLine.FindStringSubmatch(s)
		if m[1] == "Graph" {
			l.graph = m[2]
		}
		if len(l.params) < 200 {
			l.params = append(l.params, [2]string{m[1], m[2]})
		}
	case observed.MatchString(s):
	default:
		return false
	}
	return true
}

// open begins what is printed of a graph.
func (p *reader) open(b *block) {
	if p.in == nil {
		p.in = &p.cur.run // a log without the heading, as in documents
	}
	// The last line of a graph repeats its name before the figures.
	if p.at != nil && p.at.graph == b.graph && p.at.index == b.index && p.at.delegate == b.delegate {
		return
	}
	p.at, p.table, p.title = b, nil, ""
	*p.in = append(*p.in, b)
}

// head takes the names of columns and says what the rows that follow are.
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
	p.op = p.cols.At("count") < 0
	if p.at == nil || p.at.order != nil && p.op && p.title == "Run Order" {
		if p.at != nil && p.in == &p.cur.run && p.at.timings != nil {
			p.flush() // another log without headings
		}
		p.at = nil
		p.open(&block{})
	}
	switch {
	case !p.op:
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

// row reads a line of the table under way. Of CSV the last field may hold commas.
func (p *reader) row(s string) (r row, ok bool) {
	n := len(p.cols.Names())
	var fields []string
	if p.csv {
		fields = strings.SplitN(s, ", ", n)
	} else {
		s = strings.TrimRight(s, "\t ")
		fields = strings.Split(strings.TrimPrefix(s, "\t"), "\t")
		if len(fields) < n { // a terminal that made blanks of tabs
			fields = strings.Fields(s)
		}
		if len(fields) > n {
			fields = append(fields[:n-1:n-1], strings.Join(fields[n-1:], " "))
		}
	}
	if len(fields) < n-1 || len(fields) < 4 {
		p.cur.broken++
		return r, false
	}
	get := func(names ...string) (float64, bool) {
		return textscan.Number(textscan.Cell(fields, p.cols.At(names...)))
	}
	r.node = textscan.Cell(fields, p.cols.At("node type"))
	r.name = textscan.Cell(fields, p.cols.At("name"))
	if r.avg, ok = get("avg ms"); !ok || r.node == "" {
		p.cur.broken++
		return r, false
	}
	r.start, r.hasStart = get("start")
	r.first, r.hasFirst = get("first")
	r.percent, r.hasPercent = get("%", "avg %")
	r.sum, r.hasSum = get("cdf%", "cdf %")
	r.kB, r.hasKB = get("mem KB")
	r.called, _ = get("times called")
	r.count, _ = get("count")
	return r, true
}
