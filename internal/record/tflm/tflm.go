// Package tflm reads what TensorFlow Lite Micro prints: lines of its profiler, its two
// tables of ticks, the log of its benchmarks with the arena's recording and the
// model's analysis, and the table of sizes that its continuous builds keep.
//
// Source of the formats: tensorflow/lite/micro (micro_profiler.cc, recording allocator,
// tools/benchmarking) of the tflite-micro project.
package tflm

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:  "tflm",
		Title: "TensorFlow Lite Micro profiler",
		Files: "console log of MicroProfiler (Log, LogCsv, LogTicksPerTagCsv) and of the TFLM benchmarks; CSV of binary sizes",
		Gives: []string{"latency_s", "memory", "shapes", "samples"},
		Match: match,
		Read:  read,
	}
}

var (
	tookLine = regexp.MustCompile(`^(.*\S) took (-?\d+) ticks(?: \((-?\d+) ms\))?\.?\s*$`)
	opTag    = regexp.MustCompile(`(?:^|\s)([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{2,}[A-Z0-9]*)$`)
	rounds   = regexp.MustCompile(`Iterations\((\d+)\)$`)
	eventRow = regexp.MustCompile(`^(\d+),(.+),(-?\d+)$`)
	tagRow   = regexp.MustCompile(`^(.+), (-?\d+)$`)
	totalRow = regexp.MustCompile(`^"?total number of ticks"?, (-?\d+)$`)
	modelRow = regexp.MustCompile(`^=== (\S.*) ===$`)
	modelOp  = regexp.MustCompile(`^Op#(\d+) (\S+?)\((.*)\) -> *\[(.*)\]$`)
	tensor   = regexp.MustCompile(`^T#(\d+)\((.*)\) shape:\[([\d, ]*)\], type:(\w+)`)
	sizeRow  = regexp.MustCompile(`^Model size:\s+(\d+) bytes`)
	arenaRow = regexp.MustCompile(`^(Total|NonPersistent|Persistent) \|\s*(\d+) \|`)
	oldArena = regexp.MustCompile(`\[RecordingMicroAllocator\] Arena allocation (total|head|tail) (\d+) bytes`)
	allocRow = regexp.MustCompile(`^(\S[^|]*?) \|\s*(\d+) \|\s*(\d+) \|\s*(\d+) \|\s*(\d+) \|`)
	pairRow  = regexp.MustCompile(`^(TARGET|TARGET_ARCH|OPTIMIZATION|BUILD_TYPE|Git SHA|Simulated time|Input CRC32|Output CRC32|Configured arena size)\s*[=:]\s*(\S.*)$`)
)

const (
	eventHead = `"Event","Tag","Ticks"`
	tagHead   = `"Unique Tag","Total ticks across all events with that tag."`
	sizeHead  = "date,sha,text,data,bss,total"
)

func match(f *record.File) record.Sure {
	sure := record.No
	if !textscan.Any(f.Head, " took ", eventHead, tagHead, sizeHead, "[[ Table ]]", "[RecordingMicroAllocator]") {
		return sure
	}
	for _, l := range textscan.Head(f.Head, f.Whole) {
		l = strings.TrimSpace(textscan.Strip(l))
		switch {
		case strings.Contains(l, eventHead), strings.Contains(l, tagHead), l == sizeHead:
			return record.Certain
		case tookLine.MatchString(l):
			return record.Certain
		case strings.HasPrefix(l, "[[ Table ]]: Arena"), oldArena.MatchString(l):
			sure = record.Likely
		}
	}
	return sure
}

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachFile(ctx, in, func(f *record.File) ([]*runlog.Run, error) { return readFile(f, in) })
}

// event is a call of an operator, or of something else that was timed.
type event struct {
	tag   string
	ticks int64
	ms    int64 // -1 where nothing is printed
}

// group is a row of events without other text between.
type group struct {
	events []event
	round  *event // the whole of the inferences, as a benchmark prints it before them
	n      int64  // how many inferences that is of
	title  string // text before
	order  int    // of the groups and tables
}

// sums is a table of ticks by tag.
type sums struct {
	rows  []event
	total int64
	has   bool
	order int
}

// log is what a file tells of one model.
type log struct {
	groups []*group
	tables []*sums
	model  model
	notes  [][2]string
}

// model is what a benchmark prints of its model and memory.
type model struct {
	path    string
	ops     []modelNode
	tensors map[int64]tensorInfo
	bytes   int64
	arena   map[string]int64
	allocs  [][]string
}

type modelNode struct {
	op      string
	ins     []int64
	outs    []int64
	subtree bool
}

type tensorInfo struct {
	name  string
	shape []int64
	dtype string
}

// maxEvents bounds the events of a file that are kept.
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
	live   *Hooks // who takes events as they come, nil to keep them
}

func readFile(f *record.File, in *record.Input) ([]*runlog.Run, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	s := textscan.NewScanner(r)
	p := &reader{}
	p.log.model.tensors = map[int64]tensorInfo{}
	for first := true; s.Scan(); first = false {
		l := strings.TrimSpace(textscan.Strip(s.Text()))
		if first && l == sizeHead {
			return readSizes(s, f)
		}
		p.line(l)
	}
	runs := p.log.runs(draft.Stem(f), in.Clocks[""], p.lost)
	if s.Err() != nil {
		return runs, draft.At(f, s.Number(), s.Err())
	}
	if len(runs) == 0 {
		return nil, draft.ErrNothing
	}
	return runs, nil
}

// line takes a line.
func (p *reader) line(l string) {
	switch {
	case strings.HasSuffix(l, eventHead):
		p.end()
		p.csv = true
		return
	case strings.HasSuffix(l, tagHead):
		p.end()
		p.t = &sums{order: len(p.log.groups) + len(p.log.tables)}
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
			p.event(strings.TrimSpace(m[2]), m[3], "", number(m[1]))
			return
		}
	}
	if p.t != nil {
		if m := totalRow.FindStringSubmatch(l); m != nil {
			p.t.total, p.t.has = wrapped(m[1]), true
			if p.live != nil {
				p.live.table(p.t)
			}
			p.t = nil
			return
		}
		if m := tagRow.FindStringSubmatch(l); m != nil && len(p.t.rows) < maxEvents/10 {
			p.t.rows = append(p.t.rows, event{m[1], wrapped(m[2]), -1})
			return
		}
	}
	if strings.Contains(l, " took ") {
		if m := tookLine.FindStringSubmatch(l); m != nil {
			p.took(m)
			return
		}
	}
	if l == "" && !p.csv && p.g != nil {
		p.cut()
	}
	p.noise(l)
}

// end ends whatever table is under way.
func (p *reader) end() {
	p.cut()
	p.t, p.csv = nil, false
}

// cut ends a row of events.
func (p *reader) cut() {
	if p.g != nil && p.live != nil {
		p.live.Break()
	}
	p.g = nil
}

// took is a line of the profiler.
func (p *reader) took(m []string) {
	p.csv, p.t = false, nil
	if n := rounds.FindStringSubmatch(m[1]); n != nil {
		p.cut()
		if p.live != nil {
			p.live.Round(max(1, number(n[1])), wrapped(m[2]), number(m[3]))
			return
		}
		p.open()
		p.g.round = &event{m[1], wrapped(m[2]), number(m[3])}
		p.g.n = max(1, number(n[1]))
		return
	}
	tag := m[1]
	// Other text of the console may stand before the name of an operator.
	if t := opTag.FindStringSubmatch(tag); t != nil {
		tag = t[1]
	}
	p.event(tag, m[2], m[3], -1)
}

func (p *reader) open() {
	p.g = &group{title: p.title, order: len(p.log.groups) + len(p.log.tables)}
	p.title = ""
	p.log.groups = append(p.log.groups, p.g)
}

func (p *reader) event(tag, ticks, ms string, row int64) {
	if p.live != nil {
		if p.g == nil {
			p.g = &group{events: make([]event, 1)} // text between two of them may end it
		}
		p.live.Event(Event{Tag: tag, Ticks: wrapped(ticks), MS: number(ms), Row: row})
		return
	}
	if p.events++; p.events > maxEvents {
		p.lost++
		return
	}
	if p.g == nil {
		p.open()
	}
	p.g.events = append(p.g.events, event{tag, wrapped(ticks), number(ms)})
}

// wrapped reads ticks of 32 bits, which are printed as signed.
func wrapped(s string) int64 {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v >= 1<<53 || v < math.MinInt32 {
		return 0
	}
	if v < 0 {
		v += 1 << 32
	}
	return v
}

func number(s string) int64 {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < 0 {
		return -1
	}
	return v
}

// noise is any other line: it may be text between two inferences, or what a benchmark
// prints of its model.
func (p *reader) noise(l string) {
	if l == "" {
		return
	}
	m := &p.log.model
	if p.wrap != "" {
		l, p.wrap = p.wrap+" "+l, ""
	}
	switch {
	case strings.HasPrefix(l, "Op#"):
		if g := modelOp.FindStringSubmatch(l); g != nil {
			m.op(g)
		} else if len(l) < 4000 {
			p.wrap = l
		}
	case tensor.MatchString(l):
		g := tensor.FindStringSubmatch(l)
		if id := number(g[1]); id >= 0 && len(m.tensors) < draft.MaxLayers {
			m.tensors[id] = tensorInfo{g[2], integers(g[3]), strings.ToLower(g[4])}
		}
	case modelRow.MatchString(l):
		m.path = modelRow.FindStringSubmatch(l)[1]
	case sizeRow.MatchString(l):
		m.bytes = max(0, number(sizeRow.FindStringSubmatch(l)[1]))
	case arenaRow.MatchString(l):
		g := arenaRow.FindStringSubmatch(l)
		if m.arena == nil {
			m.arena = map[string]int64{}
		}
		m.arena[g[1]] = number(g[2])
	case oldArena.MatchString(l):
		g := oldArena.FindStringSubmatch(l)
		if m.arena == nil {
			m.arena = map[string]int64{}
		}
		m.arena[map[string]string{"total": "Total", "head": "NonPersistent", "tail": "Persistent"}[g[1]]] = number(g[2])
	case allocRow.MatchString(l):
		if len(m.allocs) < 100 {
			m.allocs = append(m.allocs, allocRow.FindStringSubmatch(l)[1:])
		}
	case pairRow.MatchString(l):
		if g := pairRow.FindStringSubmatch(l); len(p.log.notes) < 200 {
			p.log.notes = append(p.log.notes, [2]string{g[1], g[2]})
		}
	case p.g != nil && len(p.g.events) > 0 && strings.HasSuffix(l, ":"):
		p.cut()
		p.title = strings.TrimSuffix(l, ":")
	case strings.HasSuffix(l, ":"):
		p.title = strings.TrimSuffix(l, ":")
	}
}

// op takes an operator of the model's analysis.
func (m *model) op(g []string) {
	if len(m.ops) >= draft.MaxLayers {
		return
	}
	n := modelNode{op: g[2]}
	for _, t := range tensorRef.FindAllStringSubmatch(g[3], 1000) {
		n.ins = append(n.ins, number(t[1]))
	}
	for _, t := range tensorRef.FindAllStringSubmatch(g[4], 1000) {
		n.outs = append(n.outs, number(t[1]))
	}
	// The operators of further graphs are numbered from 0 again.
	n.subtree = len(m.ops) > 0 && (g[1] == "0" || m.ops[len(m.ops)-1].subtree)
	m.ops = append(m.ops, n)
}

var tensorRef = regexp.MustCompile(`T#(\d+)`)

func integers(s string) []int64 {
	out := []int64{}
	for _, f := range strings.Split(s, ",") {
		if f = strings.TrimSpace(f); f != "" {
			out = append(out, number(f))
		}
	}
	return out
}
