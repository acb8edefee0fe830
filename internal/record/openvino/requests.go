package openvino

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// reader splits a file of counters into runs, by the rule of [record.Block].
type reader struct {
	file *record.File
	d    *draft.Draft // for the whole file: notes, and losses
	runs []*blocks
	rows []*counter // of the current request
	// next says that the tool marks the current request as the next of its run; title is the
	// heading before it.
	next      bool
	title     string
	document  bool  // the next request is the first of a JSON document
	number    int64 // of the last request that has one
	apart     bool  // other text has come since the last row
	undecided bool
	lost      int64     // runs beyond the limit
	report    runReport // printed before the counters of a run, or without counters
}

// readCounters reads counters as CSV, as JSON, or as the tools print them. There is one draft for
// each run of the file.
func readCounters(f *record.File) ([]*draft.Draft, error) {
	r := &reader{file: f, d: newDraft(f), number: -1}
	var err error
	switch k := kindOf(f); k {
	case countersJSON:
		err = r.readJSON()
	default:
		var cols textscan.Columns
		err = f.Lines(func(l string) {
			l = textscan.Strip(l)
			if k == console {
				r.printed(strings.TrimSpace(l))
			} else {
				r.csv(strings.TrimSpace(l), &cols)
			}
		})
	}
	r.end(nil, nil)
	return r.finish(), err
}

// finish returns the drafts of the runs. What belongs to the file goes to the first of them.
func (r *reader) finish() []*draft.Draft {
	var out []*draft.Draft
	for _, b := range r.runs {
		out = append(out, b.finish())
	}
	if len(out) == 0 {
		r.report.into(r.d)
		out = []*draft.Draft{r.d}
	}
	draft.Apart(out, r.undecided)
	draft.Beyond(out, r.lost)
	return out
}

// add adds a row of the current request.
func (r *reader) add(c *counter) {
	c.status = strings.TrimPrefix(strings.ToUpper(c.status), "STATUS.")
	r.rows = append(r.rows, c)
	r.apart = false
}

// end ends a request with its totals, nil if absent.
func (r *reader) end(real, cpu *float64) {
	if len(r.rows) == 0 {
		return
	}
	r.request(r.rows, real, cpu)
	r.rows, r.title, r.next, r.apart = nil, "", false, false
}

// request adds a request to the run that it belongs to.
func (r *reader) request(rows []*counter, real, cpu *float64) {
	block := record.Block{Title: r.title, Next: r.next}
	for _, c := range rows {
		block.Rows = append(block.Rows, c.name+"\x00"+c.op+"\x00"+c.exec)
	}
	slices.Sort(block.Rows) // sorted reports have another order in each request
	var to *blocks
	if n := len(r.runs); n > 0 {
		switch relation := block.After(&r.runs[n-1].block); relation {
		case record.SameRun:
			to = r.runs[n-1]
		default:
			r.undecided = r.undecided || relation == record.Undecided
		}
	}
	if to == nil {
		if len(r.runs) >= draft.MaxRuns {
			r.lost++
			return
		}
		d := r.d
		if len(r.runs) > 0 {
			d = newDraft(r.file)
		}
		d.P.Model.Description = draft.Text(r.title)
		to = &blocks{d: d, block: block, nodes: map[string]*node{}, report: r.report}
		r.report = runReport{}
		r.runs = append(r.runs, to)
	}
	to.request(rows, real, cpu)
}

// csv reads a line of the CSV. A name may have separators: excess fields belong to it.
func (r *reader) csv(l string, cols *textscan.Columns) {
	row := strings.Split(strings.TrimSuffix(l, ";"), ";")
	extra := len(row) - len(cols.Names())
	// The tool writes a table for each request.
	r.next = true
	switch {
	case l == "":
		r.end(nil, nil)
	case row[0] == "layerName":
		r.end(nil, nil)
		*cols = textscan.NewColumns(row)
	case row[0] == "Total" && textscan.Cell(row, 1) == "" && textscan.Cell(row, 2) == "":
		c := r.counter(row, cols)
		r.end(c.real, c.cpu)
	case len(row) < 5 || cols.Names() == nil:
		r.d.Dropped.Add("rows with too few fields", 1)
	default:
		if extra > 0 {
			row = append([]string{strings.Join(row[:extra+1], ";")}, row[extra+1:]...)
		}
		r.add(r.counter(row, cols))
	}
}

// counter reads the fields of a row of the CSV.
func (r *reader) counter(row []string, cols *textscan.Columns) *counter {
	c := &counter{}
	for i, name := range cols.Names() {
		text := textscan.Cell(row, i)
		v, ok := textscan.Decimal(text)
		if i > 3 && textscan.NotFinite(text) {
			r.d.Dropped.Add(draft.NotFinite, 1)
		}
		c.set(name, text, text, v, ok)
	}
	return c
}

var (
	// statusWord ends the name of a node in a row of the console; columns may run together.
	statusWord = lazyregexp.New(`\s*(?:Status\.)?(EXECUTED|NOT_RUN|OPTIMIZED_OUT)\s*layerType: `)
	// fieldName begins the text of a column; releases order them differently.
	fieldName = lazyregexp.New(`(layerType|execType|realTime|cpuTime|cpu)(?: \((ms)\))?: ?`)
	request   = lazyregexp.New(`(?i)performance (?:counts|counters) for (\d+)-th infer request`)
	// heading begins a part of a document or a step of the tool.
	heading = lazyregexp.New(`^(?:#{1,6} (\S.*)|\[Step \d+/\d+\].*)$`)
	// summary is a line of the console about the whole run.
	summary = lazyregexp.New(`^(Count|Duration|Latency|Median|Average|Avg|AVG|Min|MIN|Max|MAX|Throughput|First inference time|Read model took|Compile model took)(?::| )\s*([\d.,]+)\s*(ms|FPS|iterations)?$`)
)

// consoleCounter parses a row of the console, nil for other lines.
func consoleCounter(l string) *counter {
	at := statusWord.FindStringSubmatchIndex(l)
	if at == nil {
		return nil
	}
	c := &counter{name: strings.TrimSpace(l[:at[0]]), status: l[at[2]:at[3]]}
	l = l[at[3]:]
	fields := fieldName.FindAllStringSubmatchIndex(l, -1)
	timed := false
	for i, f := range fields {
		end := len(l)
		if i+1 < len(fields) {
			end = fields[i+1][0]
		}
		text, ms := strings.TrimSpace(l[f[1]:end]), f[4] >= 0
		switch l[f[2]:f[3]] {
		case "layerType":
			c.op = text
		case "execType":
			c.exec = text
		case "realTime":
			c.real, timed = draft.Known(span(text, ms)), true
		default:
			c.cpu = draft.Known(span(text, ms))
		}
	}
	if !timed {
		return nil
	}
	return c
}

// repeats reports whether a row of the console begins another block: with the name of the first
// row, or after other text with the name of any row. The tool cuts long names, so that they may be
// equal within a block.
func (r *reader) repeats(name string) bool {
	if len(r.rows) == 0 || strings.HasSuffix(name, "...") {
		return false
	}
	return name == r.rows[0].name || r.apart && slices.ContainsFunc(r.rows, func(o *counter) bool { return o.name == name })
}

// units are the units of the total, by the words that releases print.
var units = map[string]string{"seconds": "s", "milliseconds": "ms", "microseconds": "us"}

// totalTime is the total of a request, which the tool rounds: the sum of the rows is more exact.
var totalTime = lazyregexp.New(`(?i)^total time:\s*([\d.,]+) (seconds|milliseconds|microseconds)$`)

// unknown reports whether the time of an executed node of the current request is unknown.
func (r *reader) unknown() bool {
	return slices.ContainsFunc(r.rows, func(c *counter) bool { return c.status == "EXECUTED" && c.real == nil })
}

// printed reads a line of the console.
func (r *reader) printed(l string) {
	if c := consoleCounter(l); c != nil {
		if r.repeats(c.name) {
			r.end(nil, nil)
		}
		r.add(c)
		return
	}
	if m := request.FindStringSubmatch(l); m != nil {
		r.end(nil, nil)
		n, ok := textscan.Whole(m[1])
		r.next = ok && n > r.number
		r.number = n
		return
	}
	if strings.HasPrefix(strings.ToLower(l), "total time:") {
		var total *float64
		if m := totalTime.FindStringSubmatch(l); m != nil && r.unknown() {
			v, ok := textscan.Decimal(m[1])
			total = draft.Known(v/perSecond[units[m[2]]], ok)
		}
		r.end(total, nil)
		return
	}
	if m := heading.FindStringSubmatch(l); m != nil {
		r.end(nil, nil)
		r.title = cmp.Or(m[1], r.title)
	}
	if m := summary.FindStringSubmatch(l); m != nil {
		r.end(nil, nil)
		to := &r.report
		if n := len(r.runs); n > 0 && !strings.HasSuffix(m[1], " took") {
			to = &r.runs[n-1].report
		}
		to.line(m[1], m[2], m[3])
	}
	r.apart = r.apart || l != "" || len(r.rows) > 0
}

// maxJSON limits the size of a JSON file.
const maxJSON = 64 << 20

// readJSON reads counters as JSON.
func (r *reader) readJSON() error {
	return r.file.EachJSON(maxJSON, func(v *jsontree.Value, fault error) {
		r.document = true
		r.d.Dropped.Add(draft.NotFinite, v.Odd())
		for key, item := range v.Members() {
			r.json(item)
			if k := item.Kind; k == jsontree.String || k == jsontree.Number {
				r.d.Note(key, item.Str())
			}
		}
		if fault != nil {
			r.d.Dropped.Add(fmt.Sprintf("the text is damaged: %v", fault), 1)
		}
	})
}

// json reads a request, or a list of requests.
func (r *reader) json(v *jsontree.Value) {
	for _, e := range v.List() {
		r.json(e)
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
		r.add(c)
	}
	total := func(key string) *float64 {
		f, ok := v.Get(key).Float()
		return draft.Milli(f, ok && f >= 0)
	}
	// An element of the tool's own list of requests is the next one, the first of another
	// document is not.
	r.next, r.document = !r.document, false
	r.end(total("total_real_time"), total("total_cpu_time"))
}
