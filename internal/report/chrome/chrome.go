// Package chrome writes timelines as Chrome trace events, the JSON format of
// chrome://tracing that Perfetto and others read too.
//
// Source of the format: "Trace Event Format", the document of the Chromium
// project. The levels (model, iteration, operator) and the names of the arguments
// reshape_time to attributes are those of the profiler in Intel's Neural Engine,
// so that scripts made for its traces find what they look for.
package chrome

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/figures"
	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// FullArgs is the number of bars up to which every bar carries all figures
// of its layer; in longer traces only the first bar of each layer does, which
// keeps them in the size that viewers can open.
const FullArgs = 100_000

// modelProcess holds the whole run and what belongs to no group.
const modelProcess = 1

// Write writes p as a JSON object with one event a line, sorted by time. Every bar
// of the timeline is there.
func Write(w io.Writer, p *profile.Profile) error {
	v := spans.Of(p)
	t := &writer{w: bufio.NewWriterSize(w, 1<<16), v: v, full: v.Size() <= FullArgs, seen: make([]bool, len(p.Layers)), args: make([][]byte, len(p.Layers)), quantities: figures.Stored(p)}
	t.places()
	t.head()
	t.metadata()
	start, end := v.Span()
	whole := v.Size() > 0
	for e := range v.Events() {
		if whole && e.At >= start { // counters may have begun before
			whole = false
			t.model(start, end)
		}
		switch e.Kind {
		case spans.Begin:
			t.bar(e.Bar)
		case spans.Value:
			t.value(e)
		case spans.LinkFrom, spans.LinkTo:
			t.link(e)
		}
	}
	_, _ = t.w.WriteString("\n]\n}\n")
	return t.w.Flush()
}

type writer struct {
	w     *bufio.Writer // keeps the first error
	v     *spans.View
	b     []byte // the event being made
	comma bool
	pids  []int // of each lane
	cpids []int // of each counter
	names []string
	full  bool
	seen  []bool   // layers whose arguments were written
	args  [][]byte // arguments of each layer, made when first wanted
	// quantities are those that bars carry.
	quantities []profile.Quantity
}

// places numbers processes and threads: viewers sort strings by alphabet.
func (t *writer) places() {
	p := t.v.Profile
	t.names = []string{p.Model.Name + " on " + p.Target.ID}
	pids := map[string]int{"": modelProcess}
	for _, g := range t.v.Groups() {
		if g != "" {
			t.names = append(t.names, g)
			pids[g] = len(t.names)
		}
	}
	for i := range t.v.Lanes {
		t.pids = append(t.pids, pids[t.v.Lanes[i].Group])
	}
	for i := range t.v.Counters {
		t.cpids = append(t.cpids, pids[t.v.Counters[i].Group])
	}
}

// tid of a lane; 1 is the thread of the whole run.
func tid(lane int) int { return lane + 2 }

func (t *writer) head() {
	p, v := t.v.Profile, t.v
	b := append(t.b[:0], "{\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{"...)
	put := func(key, s string) {
		if s == "" {
			return
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = text(b, key, s)
	}
	put("writer", strings.TrimSpace("opmeter "+p.Settings.Version))
	put("model", p.Model.Name)
	put("model_sha256", p.Model.SHA256)
	put("target", p.Target.ID)
	put("created", p.Created)
	put("times", v.Method)
	put("origin", v.Origin)
	if v.Iterations != nil {
		put("iterations_run", strconv.FormatInt(*v.Iterations, 10))
	}
	if v.Dropped != nil {
		put("records_dropped", strconv.FormatInt(*v.Dropped, 10))
	}
	if !t.full {
		put("args", "only the first bar of a layer has all figures")
	}
	if n := len(v.Memories); n > 0 {
		put("left_out", fmt.Sprintf("accesses to %d memories", n))
	}
	put("incomplete", words.Incomplete(p))
	t.b = append(b, "},\n\"traceEvents\":["...)
	_, _ = t.w.Write(t.b)
}

func text(b []byte, key, s string) []byte {
	b = jsonx.AppendString(b, key)
	b = append(b, ':')
	return jsonx.AppendString(b, s)
}

// event begins an event; end finishes it.
func (t *writer) event() {
	t.b = t.b[:0]
	if t.comma {
		t.b = append(t.b, ',')
	}
	t.comma = true
	t.b = append(t.b, "\n{"...)
}

func (t *writer) end() {
	t.b = append(t.b, '}')
	_, _ = t.w.Write(t.b)
}

func (t *writer) raw(s string) { t.b = append(t.b, s...) }

func (t *writer) int(key string, v int64) {
	t.raw(key)
	t.b = strconv.AppendInt(t.b, v, 10)
}

// micros appends nanoseconds as microseconds with three decimals, exactly.
func (t *writer) micros(key string, ns int64) {
	t.int(key, ns/1000)
	t.b = append(t.b, '.', byte('0'+ns/100%10), byte('0'+ns/10%10), byte('0'+ns%10))
}

// metadata names and orders processes and threads.
func (t *writer) metadata() {
	put := func(name string, pid, tid int, value func()) {
		t.event()
		t.raw(`"ph":"M","name":"` + name + `"`)
		t.int(`,"pid":`, int64(pid))
		t.int(`,"tid":`, int64(tid))
		t.raw(`,"args":{`)
		value()
		t.raw("}")
		t.end()
	}
	named := func(s string) func() { return func() { t.b = text(t.b, "name", s) } }
	sorted := func(n int) func() { return func() { t.int(`"sort_index":`, int64(n)) } }
	for i, n := range t.names {
		put("process_name", i+1, 0, named(n))
		put("process_sort_index", i+1, 0, sorted(i+1))
	}
	put("process_labels", modelProcess, 0, func() { t.b = text(t.b, "labels", t.v.Method) })
	if t.v.Size() > 0 {
		put("thread_name", modelProcess, 1, named("inference"))
		put("thread_sort_index", modelProcess, 1, sorted(1))
	}
	for i := range t.v.Lanes {
		put("thread_name", t.pids[i], tid(i), named(t.v.Lanes[i].Name))
		put("thread_sort_index", t.pids[i], tid(i), sorted(tid(i)))
	}
}

// model writes the bar around all others.
func (t *writer) model(start, end int64) {
	t.event()
	t.raw(`"ph":"X","name":"model_inference","cat":"inference"`)
	t.int(`,"pid":`, modelProcess)
	t.raw(`,"tid":1`)
	t.micros(`,"ts":`, start)
	t.micros(`,"dur":`, end-start)
	t.raw(`,"args":{`)
	t.b = text(t.b, "model", t.v.Profile.Model.Name)
	if s, ok := t.v.Profile.Totals.Latency.Best(); ok {
		t.micros(`,"latency_us":`, spans.Nanos(s))
	}
	t.raw("}")
	t.end()
}

func (t *writer) bar(b spans.Bar) {
	l := &t.v.Lanes[b.Lane]
	t.event()
	t.raw(`"ph":"X","name":`)
	if b.Stall {
		t.raw(`"stall","cat":"stall"`)
	} else {
		t.b = jsonx.AppendString(t.b, t.v.Name(l, b.Index))
		t.raw(`,"cat":`)
		t.b = jsonx.AppendString(t.b, t.v.Type(l, b.Index))
	}
	t.int(`,"pid":`, int64(t.pids[b.Lane]))
	t.int(`,"tid":`, int64(tid(b.Lane)))
	t.micros(`,"ts":`, b.Start)
	t.micros(`,"dur":`, b.End-b.Start)
	if !b.Stall {
		t.barArgs(l, b)
	}
	t.end()
}

// barArgs writes what is known about the bar itself, then of its layer.
func (t *writer) barArgs(l *timeline.Lane, b spans.Bar) {
	i := b.Index
	t.raw(`,"args":{`)
	from := len(t.b)
	comma := func() {
		if len(t.b) > from {
			t.b = append(t.b, ',')
		}
	}
	number := func(key string, v int64) {
		comma()
		t.int(key, v)
	}
	if n := spans.At(l.Iterations, i); n >= 0 {
		number(`"iteration":`, int64(n))
	}
	if n := spans.At(l.Subnets, i); n >= 0 {
		comma()
		t.b = text(t.b, "subnet", t.v.Subnets[n])
	}
	if n := spans.At(l.Directions, i); n >= 0 {
		comma()
		t.b = text(t.b, "direction", t.v.Names[n])
	}
	if i < len(l.Bytes) && l.Bytes[i] >= 0 {
		number(`"moved_bytes":`, l.Bytes[i])
	}
	if i < len(l.Utilisation) && l.Utilisation[i] >= 0 {
		comma()
		t.raw(`"utilisation":`)
		t.b = strconv.AppendFloat(t.b, l.Utilisation[i], 'g', -1, 64)
	}
	if i < len(l.Stalls) && l.Stalls[i] > 0 {
		comma()
		t.micros(`"stall_us":`, spans.Nanos(l.Stalls[i]))
	}
	for key, v := range figures.OfBar(l, i) {
		comma()
		t.b = append(jsonx.AppendString(t.b, key), ':')
		t.b = strconv.AppendFloat(t.b, v, 'g', -1, 64)
	}
	if n := spans.At(l.Layers, i); n >= 0 {
		number(`"layer":`, int64(n))
		if l.Kind == timeline.Layer {
			t.layerArgs(n, b)
		}
	}
	t.raw("}")
}

func (t *writer) layerArgs(n int, b spans.Bar) {
	if t.v.Recorded && t.v.Profile.Target.Kind == profile.TargetHost {
		// Shapes are planned before the inferences that are recorded.
		t.raw(`,"reshape_time":"0ms"`)
	}
	t.raw(`,"forward_time":"`)
	t.b = millis(t.b, b.End-b.Start)
	t.raw(`ms"`)
	if !t.full && t.seen[n] {
		return
	}
	t.seen[n] = true
	if t.args[n] == nil {
		t.args[n] = describe(&t.v.Profile.Layers[n], t.quantities)
	}
	t.b = append(t.b, t.args[n]...)
}

// millis appends nanoseconds as milliseconds without zeros at the end.
func millis(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1e6, 10)
	s := strings.TrimRight(fmt.Sprintf("%06d", ns%1e6), "0")
	if s == "" {
		return b
	}
	return append(append(b, '.'), s...)
}

// describe makes the arguments that all bars of a layer share.
func describe(l *profile.Layer, quantities []profile.Quantity) []byte {
	b := []byte{}
	put := func(key, s string) { b = text(append(b, ','), key, s) }
	part := func(ts []profile.Tensor, f func(profile.Tensor) string) string {
		var s []string
		for _, t := range ts {
			if !t.Absent {
				s = append(s, f(t))
			}
		}
		return strings.Join(s, ",")
	}
	for _, side := range []struct {
		name string
		ts   []profile.Tensor
	}{{"input", l.Inputs}, {"output", l.Outputs}} {
		put(side.name+"_tensor_name", part(side.ts, func(t profile.Tensor) string { return t.Name }))
		put(side.name+"_type", part(side.ts, func(t profile.Tensor) string { return t.DType }))
		put(side.name+"_shape", part(side.ts, func(t profile.Tensor) string { return words.Dims(t.Shape, "*") }))
	}
	put("attributes", strings.Join(slices.Sorted(slices.Values(words.Pairs(l.Options))), ";"))
	put("op", l.Op)
	for _, s := range []struct{ key, v string }{{"scope", l.Scope}, {"graph", l.Graph}, {"kernel", l.Kernel}} {
		if s.v != "" {
			put(s.key, s.v)
		}
	}
	for i := range quantities {
		if v, ok := l.Value(quantities[i].Key); ok {
			b = append(b, `,"`+quantities[i].Key+`":`...)
			b = strconv.AppendFloat(b, v, figures.Verb(&quantities[i]), -1, 64)
		}
	}
	return b
}

// value writes a counter. Values hold until the next.
func (t *writer) value(e spans.Event) {
	c := &t.v.Counters[e.Item]
	t.event()
	t.raw(`"ph":"C","name":`)
	t.b = jsonx.AppendString(t.b, c.Name)
	t.int(`,"pid":`, int64(t.cpids[e.Item]))
	t.raw(`,"tid":0`)
	t.micros(`,"ts":`, e.At)
	t.raw(`,"args":{`)
	unit := c.Unit
	if unit == "" {
		unit = "count"
	}
	t.b = jsonx.AppendString(t.b, unit)
	t.raw(":")
	t.b = strconv.AppendFloat(t.b, c.Values[e.Index], 'g', -1, 64)
	t.raw("}")
	t.end()
}

func (t *writer) link(e spans.Event) {
	t.event()
	if e.Kind == spans.LinkFrom {
		t.raw(`"ph":"s"`)
	} else {
		t.raw(`"ph":"f","bp":"e"`) // bound to the bar around, not to the next one
	}
	t.raw(`,"name":"link","cat":"link"`)
	t.int(`,"id":`, int64(e.Item)+1)
	t.int(`,"pid":`, int64(t.pids[e.Bar.Lane]))
	t.int(`,"tid":`, int64(tid(e.Bar.Lane)))
	t.micros(`,"ts":`, e.At)
	t.end()
}
