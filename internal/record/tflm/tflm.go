// Package tflm reads the output of TensorFlow Lite Micro: lines of its profiler, its two
// tables of ticks, the log of its benchmarks with the arena's recording and the
// model's analysis, and the table of sizes that its continuous builds keep.
//
// Source of the formats: tensorflow/lite/micro (micro_profiler.cc, recording allocator,
// tools/benchmarking) of the tflite-micro project.
package tflm

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:    "tflm",
		Title:   "TensorFlow Lite Micro profiler",
		Files:   "console log of MicroProfiler (Log, LogCsv, LogTicksPerTagCsv) and of the TFLM benchmarks; CSV of binary sizes; other CSVs of operators with ticks or times",
		Gives:   []string{"latency_s", "memory", "shapes", "samples"},
		Clocked: true,
		Logged:  true,
		Match:   match,
		Read:    record.RunsPerFile(readFile),
	}
}

var (
	tookLine = lazyregexp.New(`^(.*\S) took (-?\d+) ticks(?: \((-?\d+) ms\))?\.?\s*$`)
	opTag    = lazyregexp.New(`(?:^|\s)([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{2,}[A-Z0-9]*)$`)
	// rounds is the name of a number of inferences, such as KeywordRunNIterations(10).
	rounds   = lazyregexp.New(`(?:^|\s)[A-Za-z_]\w*\((\d+)\)$`)
	eventRow = lazyregexp.New(`^(\d+),(.+),(-?\d+)$`)
	// oddRow is a row of events whose count cannot be read, or has quotes as spreadsheets write.
	oddRow   = lazyregexp.New(`^(\d+),([^,]+),(.*)$`)
	tagRow   = lazyregexp.New(`^(.+), (-?\d+)$`)
	totalRow = lazyregexp.New(`^"?total number of ticks"?, (-?\d+)$`)
	modelOp  = lazyregexp.New(`^Op#(\d+) (\S+?)\((.*)\) -> *\[(.*)\]$`)
	// heading is a title of a document.
	heading  = lazyregexp.New(`^#{1,6} (\S.*)$`)
	oldArena = lazyregexp.New(`\[RecordingMicroAllocator\] Arena allocation (total|head|tail) (\d+) bytes`)
)

const (
	eventHead = `"Event","Tag","Ticks"`
	tagHead   = `"Unique Tag","Total ticks across all events with that tag."`
	sizeHead  = "date,sha,text,data,bss,total"
)

func match(f *record.File) record.Sure {
	sure := known(f)
	if sure == record.No && tableOf(f) != nil {
		return record.Maybe
	}
	return sure
}

// known recognises what the profiler and the benchmarks print themselves.
func known(f *record.File) record.Sure {
	arena := record.No
	sure := record.FindLine(f, func(l string) record.Sure {
		l = strings.TrimSpace(textscan.Strip(l))
		if strings.HasPrefix(l, "[[ Table ]]: Arena") || oldArena.MatchString(l) {
			arena = record.Likely
		}
		return record.Certain.If(strings.Contains(l, eventHead) || strings.Contains(l, tagHead) || l == sizeHead || tookLine.MatchString(l))
	}, " took ", eventHead, tagHead, sizeHead, "[[ Table ]]", "[RecordingMicroAllocator]")
	return max(sure, arena)
}

// group is a sequence of events without other text between.
type group struct {
	events []Event
	round  *Event  // all inferences, as a benchmark prints it before their operators
	n      int64   // number of inferences of round
	wall   *Event  // the whole inference, as a program times it beside its operators
	setup  []Event // of what was timed before and is not an inference
	title  string  // text before
	order  int     // among groups and tables
}

// sums is a table of ticks by tag.
type sums struct {
	rows  []Event
	total int64
	has   bool
	order int
}

// log is the part of a file about one model.
type log struct {
	groups []*group
	tables []*sums
	model  model
	notes  [][2]string
}

// model is the text of a benchmark about its model and memory.
type model struct {
	path    string
	ops     []modelNode
	tensors map[int64]tensorInfo
	bytes   int64
	arena   map[string]int64
	allocs  [][]string
}

type modelNode struct {
	op        string
	ins, outs []int64
	subtree   bool
}

type tensorInfo struct {
	name  string
	shape []int64
	dtype string
}

// maxEvents limits the events of a file that are kept.
const maxEvents = 2_000_000

type reader struct {
	log    log
	g      *group // nil between groups
	t      *sums
	csv    bool // rows of events follow
	title  string
	wrap   string // begin of a line of the model's analysis that a console wrapped
	events int
	lost   int64
	broken int64  // lines of the profiler that cannot be read
	done   []log  // of the models before
	live   *Hooks // receives events as they come; nil to keep them
}

func newLog() log {
	return log{model: model{tensors: map[int64]tensorInfo{}, arena: map[string]int64{}}}
}

func newReader(live *Hooks) reader { return reader{live: live, log: newLog()} }

func readFile(_ context.Context, in *record.Input, f *record.File) ([]*runlog.Run, error) {
	if t := tableOf(f); t != nil && known(f) == record.No {
		return t.read(f, in.Clocks[""])
	}
	p := newReader(nil)
	var table *sizes
	first := true
	err := f.Lines(func(raw string) {
		l := strings.TrimSpace(textscan.Strip(raw))
		switch {
		case first && l == sizeHead:
			table = &sizes{d: draft.New("tflm", draft.Stem(f), engine)}
		case table != nil:
			table.row(raw)
		default:
			p.line(l)
		}
		first = false
	})
	if table != nil {
		return draft.NotEmpty(table.runs(), err)
	}
	var ds []*draft.Draft
	for _, l := range append(p.done, p.log) {
		ds = append(ds, l.runs(draft.Stem(f), in.Clocks[""])...)
	}
	if len(ds) > 0 {
		ds[0].Dropped.Add(fmt.Sprintf("more than %d events", maxEvents), p.lost)
		ds[0].Dropped.Add("lines of the profiler that cannot be read", p.broken)
	}
	draft.Apart(ds, false)
	var runs []*runlog.Run
	for _, d := range ds {
		runs = append(runs, d.Run())
	}
	return draft.NotEmpty(runs, err)
}

func (p *reader) line(l string) {
	switch {
	case strings.HasSuffix(l, eventHead):
		p.end()
		p.csv = true
		return
	case strings.HasSuffix(l, tagHead):
		p.end()
		p.t = &sums{order: p.log.size()}
		if len(p.log.tables) < 1000 && p.live == nil {
			p.log.tables = append(p.log.tables, p.t)
		}
		return
	}
	if p.csv {
		if m := eventRow.FindStringSubmatch(l); m != nil {
			if m[1] == "0" {
				p.cut() // the counter begins again
			}
			p.event(Event{Tag: strings.TrimSpace(m[2]), Ticks: ticksOf(m[3]), MS: -1, Row: number(m[1]), wrapped: wrapped(m[3]), signedMS: -1})
			return
		}
		if m := oddRow.FindStringSubmatch(l); m != nil {
			if m[1] == "0" {
				p.cut()
			}
			e := Event{Tag: strings.TrimSpace(m[2]), Ticks: Unknown, MS: -1, Row: number(m[1]), signedMS: -1}
			if v, ok := textscan.Whole(strings.Trim(m[3], "\"' ")); ok && v >= 0 {
				e.Ticks = v
			}
			p.event(e)
			return
		}
	}
	if p.t != nil {
		if m := totalRow.FindStringSubmatch(l); m != nil {
			p.t.total, p.t.has = ticksOf(m[1]), true
			if p.live != nil {
				p.live.Table(p.t.rows, p.t.total)
			}
			p.t = nil
			return
		}
		if m := tagRow.FindStringSubmatch(l); m != nil && len(p.t.rows) < maxEvents/10 {
			p.t.rows = append(p.t.rows, Event{Tag: m[1], Ticks: ticksOf(m[2]), MS: -1, Row: -1})
			return
		}
	}
	if strings.Contains(l, " took ") {
		if m := tookLine.FindStringSubmatch(l); m != nil {
			p.took(m)
			return
		}
		if strings.Contains(l, " ticks") {
			p.broken++
		}
	}
	if l == "" && !p.csv && p.g != nil {
		p.cut()
	}
	p.other(l)
}

// end ends the current table.
func (p *reader) end() {
	p.cut()
	p.t, p.csv = nil, false
}

// cut ends a sequence of events.
func (p *reader) cut() {
	if p.g != nil && p.live != nil {
		p.live.Break()
	}
	p.g = nil
}

// took reads a line of the profiler.
func (p *reader) took(m []string) {
	p.csv, p.t = false, nil
	e := Event{Tag: m[1], Ticks: ticksOf(m[2]), MS: number(m[3]), Row: -1}
	if wrapped(m[2]) && e.MS <= 0 {
		e.wrapped, e.signedMS, e.MS = true, number(strings.TrimPrefix(m[3], "-")), -1
	}
	n := rounds.FindStringSubmatch(m[1])
	switch {
	case n != nil && p.live != nil:
		p.cut()
		p.live.Round(max(1, number(n[1])), e.Ticks, e.MS)
	case n != nil:
		p.open()
		p.g.round, p.g.n = &e, max(1, number(n[1]))
	default:
		// Other text of the console may precede the name of an operator.
		if t := opTag.FindStringSubmatch(e.Tag); t != nil {
			e.Tag = t[1]
		}
		p.event(e)
	}
}

// size returns the number of groups and tables.
func (l *log) size() int { return len(l.groups) + len(l.tables) }

func (p *reader) open() {
	p.g = &group{title: p.title, order: p.log.size()}
	p.title = ""
	p.log.groups = append(p.log.groups, p.g)
}

func (p *reader) event(e Event) {
	if p.live != nil {
		if p.g == nil {
			p.g = &group{events: make([]Event, 1)} // text between two of them may end it
		}
		p.live.Event(e)
		return
	}
	if p.events++; p.events > maxEvents {
		p.lost++
		return
	}
	if p.g == nil {
		p.open()
	}
	p.g.events = append(p.g.events, e)
}

// Unknown stands for a count of ticks that cannot be read.
const Unknown = -1

// ticksOf parses ticks, [Unknown] for what no counter of 53 bits holds. The profiler counts 32
// bits; a count that is printed as signed and negative is repaired.
func ticksOf(s string) int64 {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v >= 1<<53 || v < math.MinInt32 {
		return Unknown
	}
	if v < 0 {
		v += 1 << 32
	}
	return v
}

// wrapped reports whether [ticksOf] repairs a count.
func wrapped(s string) bool { return strings.HasPrefix(s, "-") && ticksOf(s) >= 0 }

// number parses an integer from 0, -1 for other text.
func number(s string) int64 {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < 0 {
		return -1
	}
	return v
}

// other reads any other line: text between two inferences, or text of a benchmark about its model.
func (p *reader) other(l string) {
	if l == "" {
		return
	}
	if p.wrap != "" {
		l, p.wrap = p.wrap+" "+l, ""
	}
	title, titled := strings.CutSuffix(l, ":")
	switch {
	case strings.HasPrefix(l, "Op#"):
		if g := modelOp.FindStringSubmatch(l); g != nil {
			p.log.model.op(g)
		} else if len(l) < 4000 {
			p.wrap = l
		}
	case heading.MatchString(l):
		p.cut()
		p.title = heading.FindStringSubmatch(l)[1]
	case modelTitle.MatchString(l):
		if p.log.size() > 0 && p.live == nil && len(p.done) < draft.MaxRuns {
			p.cut()
			p.done, p.log = append(p.done, p.log), newLog()
		}
		p.log.model.path = modelTitle.FindStringSubmatch(l)[1]
	case modelLines.Apply(&p.log, l):
	case titled:
		if p.g != nil && len(p.g.events) > 0 {
			p.cut()
		}
		p.title = title
	}
}

// modelTitle begins the analysis of a model.
var modelTitle = lazyregexp.New(`^=== (\S.*) ===$`)

// modelLines are lines about model, target and memory.
var modelLines = textscan.Rules[*log]{
	textscan.On(`^T#(\d+)\((.*)\) shape:\[([\d, ]*)\], type:(\w+)`, func(l *log, m []string) {
		if id := number(m[1]); id >= 0 && len(l.model.tensors) < draft.MaxLayers {
			t := tensorInfo{m[2], []int64{}, strings.ToLower(m[4])}
			for _, f := range strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' || r == ' ' }) {
				t.shape = append(t.shape, number(f))
			}
			l.model.tensors[id] = t
		}
	}),
	textscan.On(`^Model size:\s+(\d+) bytes`, func(l *log, m []string) { l.model.bytes = max(0, number(m[1])) }),
	textscan.On(`^(Total|NonPersistent|Persistent) \|\s*(\d+) \|`, func(l *log, m []string) { l.model.arena[m[1]] = number(m[2]) }),
	textscan.On(oldArena.String(), func(l *log, m []string) {
		l.model.arena[map[string]string{"total": "Total", "head": "NonPersistent", "tail": "Persistent"}[m[1]]] = number(m[2])
	}),
	textscan.On(`^(\S[^|]*?) \|\s*(\d+) \|\s*(\d+) \|\s*(\d+) \|\s*(\d+) \|`, func(l *log, m []string) {
		if len(l.model.allocs) < 100 {
			l.model.allocs = append(l.model.allocs, m[1:])
		}
	}),
	textscan.On(`^(TARGET|TARGET_ARCH|OPTIMIZATION|BUILD_TYPE|Git SHA|Simulated time|Input CRC32|Output CRC32|Configured arena size)\s*[=:]\s*(\S.*)$`, func(l *log, m []string) {
		if len(l.notes) < 200 {
			l.notes = append(l.notes, [2]string{m[1], m[2]})
		}
	}),
}

// op adds an operator of the model's analysis.
func (m *model) op(g []string) {
	if len(m.ops) >= draft.MaxLayers {
		return
	}
	// The operators of further graphs are numbered from 0 again.
	subtree := len(m.ops) > 0 && (g[1] == "0" || m.ops[len(m.ops)-1].subtree)
	m.ops = append(m.ops, modelNode{g[2], tensorIDs(g[3]), tensorIDs(g[4]), subtree})
}

var tensorRef = lazyregexp.New(`T#(\d+)`)

func tensorIDs(s string) (out []int64) {
	for _, t := range tensorRef.FindAllStringSubmatch(s, 1000) {
		out = append(out, number(t[1]))
	}
	return out
}
