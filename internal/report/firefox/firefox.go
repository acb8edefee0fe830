// Package firefox writes timelines for profiler.firefox.com.
//
// Source of the format: docs-developer and src/types of the Firefox Profiler. Its
// version moves several times a year; files of older ones are upgraded when they
// are opened, so this package stays with version 48, the last one in which every
// thread has its own tables, before they began to move.
package firefox

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Version is the version of the processed profile format.
const Version = 48

// MaxBars is the number of bars from which on only some iterations are written,
// evenly spread; the file says so. The page builds a chart of every bar.
const MaxBars = 200_000

// Write writes p: a thread for each lane, with a marker for each bar, and samples
// that last as long as nothing changes.
func Write(w io.Writer, p *profile.Profile) error {
	all := spans.Of(p)
	t := &writer{w: bufio.NewWriterSize(w, 1<<16), v: all.Thin(MaxBars), kinds: map[string]int{}, timed: map[int]bool{}}
	t.categories()
	t.meta(all)
	t.text(",\n\"libs\":[],\n\"threads\":[")
	for i := range t.v.Lanes {
		if i > 0 {
			t.text(",")
		}
		t.thread(i)
	}
	t.text("\n]}\n")
	return t.w.Flush()
}

type writer struct {
	w     *bufio.Writer // keeps the first error
	v     *spans.View
	b     []byte
	kinds map[string]int // category of each kind of work
	names []string       // of the categories
	// timed are layers whose figure is in the file.
	timed map[int]bool
}

// palette holds the colours that the page knows, besides grey for what is left.
var palette = []string{"blue", "green", "orange", "purple", "yellow", "red", "lightblue", "magenta", "brown", "darkgrey"}

// other is the category of what has none. The page wants a grey one.
const other = 0

func (t *writer) text(s string) { _, _ = t.w.WriteString(s) }

func (t *writer) string(s string) {
	t.b = jsonx.AppendString(t.b[:0], s)
	_, _ = t.w.Write(t.b)
}

func (t *writer) member(key, s string) {
	t.text(`,"` + key + `":`)
	t.string(s)
}

// categories gives each operator one, as long as there are not too many.
func (t *writer) categories() {
	t.names = []string{"Other"}
	for i := range t.v.Profile.Layers {
		op := t.v.Profile.Layers[i].Op
		if _, ok := t.kinds[op]; !ok && len(t.names) < 100 {
			t.kinds[op] = len(t.names)
			t.names = append(t.names, op)
		}
	}
}

func (t *writer) meta(all *spans.View) {
	p := t.v.Profile
	t.text(`{"meta":{"interval":1,"startTime":`)
	start := int64(0)
	if c, err := time.Parse(time.RFC3339, p.Created); err == nil {
		start = c.UnixMilli()
	}
	t.text(strconv.FormatInt(start, 10))
	t.text(`,"processType":0,"stackwalk":0,"debug":false,"version":28,"preprocessedProfileVersion":` + strconv.Itoa(Version))
	t.text(`,"symbolicated":true,"usesOnlyOneStackType":true,"doesNotUseFrameImplementation":true,"sourceCodeIsNotOnSearchfox":true`)
	t.member("product", p.Model.Name+" on "+p.Target.ID)
	t.member("importedFrom", strings.TrimSpace("opmeter "+p.Settings.Version))
	if h := p.Host; h != nil {
		if h.CPUModel != "" {
			t.member("CPUName", h.CPUModel)
		}
		if h.OS != "" {
			t.member("oscpu", strings.TrimSpace(h.OS+" "+h.Arch))
		}
	}
	t.text(`,"categories":[`)
	for i, n := range t.names {
		color := "grey"
		if i > 0 {
			t.text(",")
			color = palette[(i-1)%len(palette)]
		}
		t.text(`{"name":`)
		t.string(n)
		t.text(`,"color":"` + color + `","subcategories":["Other"]}`)
	}
	// What the page shows of a marker.
	t.text(`],"markerSchema":[{"name":"Bar","display":["marker-chart","marker-table","timeline-overview"],"tooltipLabel":"{marker.name}","tableLabel":"{marker.data.op}","chartLabel":"{marker.name}","data":[` +
		`{"key":"op","label":"Operator","format":"string","searchable":true},{"key":"layer","label":"Layer","format":"integer"},{"key":"iteration","label":"Iteration","format":"integer"},` +
		`{"key":"stall","label":"Waited","format":"duration"},{"key":"bytes","label":"Moved","format":"bytes"}]}]`)
	t.text(`,"extra":[{"label":"opmeter","entries":[`)
	first := true
	entry := func(label, s string) {
		if s == "" {
			return
		}
		if !first {
			t.text(",")
		}
		first = false
		t.text(`{"label":"` + label + `","format":"string","value":`)
		t.string(s)
		t.text("}")
	}
	entry("Times", t.v.Method)
	entry("Time 0", t.v.Origin)
	if t.v.LeftOut > 0 {
		entry("Left out", fmt.Sprintf("%d of %d bars", t.v.LeftOut, all.Size()))
	}
	if n := len(t.v.Counters) + len(t.v.Links) + len(t.v.Memories); n > 0 {
		entry("Not in this file", fmt.Sprintf("%d counters, %d links, accesses to %d memories", len(t.v.Counters), len(t.v.Links), len(t.v.Memories)))
	}
	t.text(`]}]}`)
}

// tables are those of one thread: texts, functions (one a frame) and stacks.
type tables struct {
	strings map[string]int
	texts   []string
	frames  map[frame]int
	funcs   []frame
	stacks  map[stack]int
	path    []stack
}

type frame struct {
	name, category int
	line           int64
}

type stack struct{ prefix, frame int }

func (s *tables) string(v string) int {
	i, ok := s.strings[v]
	if !ok {
		i = len(s.texts)
		s.strings[v] = i
		s.texts = append(s.texts, v)
	}
	return i
}

func (s *tables) stack(prefix int, f frame) int {
	i, ok := s.frames[f]
	if !ok {
		i = len(s.funcs)
		s.frames[f] = i
		s.funcs = append(s.funcs, f)
	}
	k := stack{prefix, i}
	j, ok := s.stacks[k]
	if !ok {
		j = len(s.path)
		s.stacks[k] = j
		s.path = append(s.path, k)
	}
	return j
}

// interval says that a stack was open for a while, in nanoseconds.
type interval struct {
	stack    int
	at, last int64
}

// marker is a bar.
type marker struct {
	bar            spans.Bar
	name, category int
}

func (t *writer) thread(lane int) {
	v, l := t.v, &t.v.Lanes[lane]
	tb := &tables{strings: map[string]int{}, frames: map[frame]int{}, stacks: map[stack]int{}}
	var samples []interval
	var markers []marker
	var open []int
	last := int64(0)
	for e := range v.Lane(lane).Events() {
		if n := len(open); n > 0 && e.At > last {
			samples = append(samples, interval{open[n-1], last, e.At - last})
		}
		last = e.At
		if e.Kind == spans.End {
			open = open[:len(open)-1]
			continue
		}
		name, f := "stall", frame{category: other}
		if !e.Bar.Stall {
			name = v.Name(l, e.Bar.Index)
			f.category = t.kinds[v.Type(l, e.Bar.Index)]
			if y := v.Layer(l, e.Bar.Index); y != nil {
				f.line = spans.Node(y) + 1
			}
		}
		f.name = tb.string(name)
		prefix := -1
		if n := len(open); n > 0 {
			prefix = open[n-1]
		}
		open = append(open, tb.stack(prefix, f))
		markers = append(markers, marker{e.Bar, f.name, f.category})
	}
	t.text("\n{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true")
	t.member("name", l.Name)
	if l.Group != "" {
		t.member("processName", l.Group)
	}
	t.text(`,"isMainThread":` + strconv.FormatBool(lane == t.main()) + `,"pid":"1","tid":` + strconv.Itoa(lane+1))
	t.samples(samples)
	t.markers(l, markers)
	t.tables(tb)
	t.text("}")
}

// main is the lane that the page shows first: not the iterations, if there is more.
func (t *writer) main() int {
	return max(0, slices.IndexFunc(t.v.Lanes, func(l timeline.Lane) bool { return l.Kind != timeline.Iteration }))
}

// column writes an array of n values.
func (t *writer) column(key string, n int, value func(i int)) {
	t.text(`,"` + key + `":[`)
	for i := range n {
		if i > 0 {
			t.text(",")
		}
		value(i)
	}
	t.text("]")
}

func (t *writer) int(v int64) {
	t.b = strconv.AppendInt(t.b[:0], v, 10)
	_, _ = t.w.Write(t.b)
}

// orNull writes -1 as null.
func (t *writer) orNull(v int) {
	if v < 0 {
		t.text("null")
		return
	}
	t.int(int64(v))
}

// millis writes nanoseconds as milliseconds, exactly.
func (t *writer) millis(ns int64) {
	t.b = strconv.AppendInt(t.b[:0], ns/1e6, 10)
	if rest := ns % 1e6; rest > 0 {
		t.b = append(t.b, '.')
		for unit := int64(1e5); rest > 0; unit /= 10 {
			t.b = append(t.b, byte('0'+rest/unit))
			rest %= unit
		}
	}
	_, _ = t.w.Write(t.b)
}

// same writes n times the same value.
func (t *writer) same(key string, n int, v string) {
	t.column(key, n, func(int) { t.text(v) })
}

func (t *writer) samples(ss []interval) {
	n := len(ss)
	t.text(",\n\"samples\":{\"length\":" + strconv.Itoa(n) + `,"weightType":"tracing-ms"`)
	t.column("stack", n, func(i int) { t.int(int64(ss[i].stack)) })
	t.column("time", n, func(i int) { t.millis(ss[i].at) })
	t.column("weight", n, func(i int) { t.millis(ss[i].last) })
	t.text("}")
}

func (t *writer) markers(l *timeline.Lane, ms []marker) {
	n := len(ms)
	t.text(",\n\"markers\":{\"length\":" + strconv.Itoa(n))
	t.column("name", n, func(i int) { t.int(int64(ms[i].name)) })
	t.column("startTime", n, func(i int) { t.millis(ms[i].bar.Start) })
	t.column("endTime", n, func(i int) { t.millis(ms[i].bar.End) })
	t.same("phase", n, "1") // an interval
	t.column("category", n, func(i int) { t.int(int64(ms[i].category)) })
	t.column("data", n, func(i int) { t.data(l, ms[i].bar) })
	t.text("}")
}

// data is what the schema in meta says of a marker.
func (t *writer) data(l *timeline.Lane, b spans.Bar) {
	if b.Stall {
		t.text("null")
		return
	}
	t.text(`{"type":"Bar","op":`)
	t.string(t.v.Type(l, b.Index))
	number := func(key string, v int64) { t.text(`,"` + key + `":` + strconv.FormatInt(v, 10)) }
	if n := spans.At(l.Layers, b.Index); n >= 0 {
		number("layer", int64(n))
		// Readers of the file have the profile's own figure, and not one of these bars alone.
		if v, ok := t.v.Profile.Layers[n].Latency.Best(); ok && l.Kind == timeline.Layer && !t.timed[n] {
			t.timed[n] = true
			t.text(`,"latency_s":` + strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	if n := spans.At(l.Iterations, b.Index); n >= 0 {
		number("iteration", int64(n))
	}
	if i := b.Index; i < len(l.Stalls) && l.Stalls[i] > 0 {
		t.text(`,"stall":`)
		t.millis(spans.Nanos(l.Stalls[i]))
	}
	if i := b.Index; i < len(l.Bytes) && l.Bytes[i] >= 0 {
		number("bytes", l.Bytes[i])
	}
	t.text("}")
}

func (t *writer) tables(tb *tables) {
	n := len(tb.path)
	category := func(i int) int64 { return int64(tb.funcs[i].category) }
	t.text(",\n\"stackTable\":{\"length\":" + strconv.Itoa(n))
	t.column("frame", n, func(i int) { t.int(int64(tb.path[i].frame)) })
	t.column("prefix", n, func(i int) { t.orNull(tb.path[i].prefix) })
	t.column("category", n, func(i int) { t.int(category(tb.path[i].frame)) })
	t.same("subcategory", n, "0")
	n = len(tb.funcs)
	line := func(i int) { t.orNull(int(tb.funcs[i].line) - btoi(tb.funcs[i].line == 0)) }
	t.text("},\n\"frameTable\":{\"length\":" + strconv.Itoa(n))
	t.same("address", n, "-1")
	t.same("inlineDepth", n, "0")
	t.column("category", n, func(i int) { t.int(category(i)) })
	t.same("subcategory", n, "0")
	t.column("func", n, func(i int) { t.int(int64(i)) })
	for _, key := range []string{"nativeSymbol", "implementation", "column"} {
		t.same(key, n, "null")
	}
	t.same("innerWindowID", n, "0")
	t.column("line", n, line)
	file := -1
	if path := t.v.Profile.Model.Path; path != "" {
		file = tb.string(path)
	}
	t.text("},\n\"funcTable\":{\"length\":" + strconv.Itoa(n))
	t.column("name", n, func(i int) { t.int(int64(tb.funcs[i].name)) })
	t.same("isJS", n, "false")
	t.same("relevantForJS", n, "false")
	t.same("resource", n, "-1")
	t.column("fileName", n, func(int) { t.orNull(file) })
	t.column("lineNumber", n, line)
	t.same("columnNumber", n, "null")
	t.text("},\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]}")
	t.text(",\n\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]}")
	t.column("stringArray", len(tb.texts), func(i int) { t.string(tb.texts[i]) })
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
