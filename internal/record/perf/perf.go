// Package perf reads the text of Linux's perf script: samples with their stacks.
//
// Source of the format: the manual page of perf-script and its output.
package perf

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Format reads perf's text.
func Format() *record.Format {
	return &record.Format{
		Name:  "perf",
		Title: "Linux perf script",
		Files: "text of perf script, with call graphs",
		Gives: []string{"latency_s", "with_callees_s", "cpu_cycles", "samples", "timeline"},
		Match: Match,
		Read:  record.RunPerFile(read),
	}
}

// header matches the line before a stack: program, thread, CPU, time, period, event.
var header = lazyregexp.New(`^(\S.*?)\s+(\d+)(?:/(\d+))?\s+(?:\[(\d+)\]\s+)?(\d+\.\d+):\s+(?:(\d+)\s+)?([^\s:]\S*?):?\s*$`)

// Match recognises the first line of a sample that is followed by a frame.
func Match(f *record.File) record.Sure {
	lines := bytes.Split(f.Head, []byte("\n"))
	for i, line := range lines {
		if i > 200 {
			break
		}
		if len(line) < 2000 && header.Match(bytes.TrimRight(line, "\r")) && i+1 < len(lines) && len(lines[i+1]) > 0 {
			if _, ok := frame(lines[i+1]); ok {
				return record.Certain
			}
		}
	}
	return record.No
}

// frame parses a line of a stack: address, function, library.
func frame(line []byte) (f stacks.Function, ok bool) {
	if len(line) == 0 || line[0] != ' ' && line[0] != '\t' {
		return f, false
	}
	s := strings.TrimSpace(string(line))
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return f, false
	}
	if _, err := strconv.ParseUint(strings.TrimPrefix(s[:i], "0x"), 16, 64); err != nil {
		return f, false
	}
	rest := strings.TrimSpace(s[i:])
	if strings.HasSuffix(rest, ")") {
		if i := strings.LastIndex(rest, " ("); i >= 0 {
			f.Library = rest[i+2 : len(rest)-1]
			rest = rest[:i]
		} else if rest[0] == '(' {
			f.Library, rest = rest[1:len(rest)-1], ""
		}
	}
	if i := strings.LastIndex(rest, "+0x"); i > 0 {
		if _, err := strconv.ParseUint(rest[i+3:], 16, 64); err == nil {
			rest = rest[:i] // the offset in the function
		}
	}
	f.Name = cmp.Or(rest, "[unknown]")
	return f, true
}

// reader reads line by line.
type reader struct {
	set     stacks.Set
	trace   track.Trace
	samples int
	count   int // column
	threads map[string]*thread
	now     *sample
	frames  []int32
}

type thread struct {
	chart stacks.Chart
	until int64 // end of the last sample
}

// sample is the current sample.
type sample struct {
	t      *thread
	ts     int64
	period float64 // of the event, 1 if unknown
	event  string
}

// maxThreads limits the tracks of threads.
const maxThreads = 5000

func read(ctx context.Context, f *record.File) (*runlog.Run, error) {
	b := &reader{threads: map[string]*thread{}}
	b.count, _ = b.set.Count(stacks.Samples, 1)
	end := stacks.Lines(ctx, f, func(line []byte) { b.line(bytes.TrimRight(line, "\r")) })
	b.done()
	if b.samples == 0 {
		return nil, cmp.Or(end, errors.New("no samples: want the text of perf script"))
	}
	for _, t := range b.threads {
		t.chart.End(t.until)
	}
	run := track.NewRun(f, "perf")
	stacks.Finish(run, &b.set, &b.trace, "samples of the stack: each lasts for its period, or until the next one of its thread")
	if end != nil {
		run.Lose(end.Error())
	}
	return run, nil
}

func (b *reader) line(line []byte) {
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		b.done()
	case line[0] == '#':
	case line[0] == ' ' || line[0] == '\t':
		f, ok := frame(line)
		if !ok || b.now == nil {
			// Names of some programs begin with blanks.
			if b.now != nil || !b.head(bytes.TrimSpace(line)) {
				b.set.Dropped.Add("lines that do not belong to a sample", 1)
			}
			return
		}
		if len(b.frames) < stacks.MaxDepth {
			b.frames = append(b.frames, b.set.Function(f))
		}
	default:
		b.done()
		if !b.head(line) {
			b.set.Dropped.Add("lines that do not belong to a sample", 1)
		}
	}
}

// head reads the first line of a sample.
func (b *reader) head(line []byte) bool {
	if len(line) > 2000 {
		return false
	}
	m := header.FindSubmatch(line)
	if m == nil {
		return false
	}
	seconds, fraction, _ := strings.Cut(string(m[5]), ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || s > 3e9 {
		return false
	}
	n, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	b.now = &sample{ts: s*1e9 + n, period: 1, event: string(m[7])}
	if len(m[6]) > 0 {
		if p, err := strconv.ParseFloat(string(m[6]), 64); err == nil {
			b.now.period = p
		}
	}
	id := string(m[2])
	if len(m[3]) > 0 {
		id = string(m[3])
	}
	key := string(m[1]) + "\x00" + id
	t := b.threads[key]
	if t == nil && len(b.threads) < maxThreads {
		group := string(m[1])
		if len(m[3]) > 0 {
			group += " " + string(m[2])
		}
		t = &thread{chart: stacks.Chart{Set: &b.set, Trace: &b.trace, Track: b.trace.Track(timeline.Thread, track.Clip([]byte(group)), "thread "+id)}}
		b.threads[key] = t
	}
	b.now.t = t
	return true
}

// done adds the current sample after its last frame.
func (b *reader) done() {
	s := b.now
	if s == nil {
		return
	}
	b.now = nil
	place := stacks.Root
	for i := len(b.frames) - 1; i >= 0; i-- {
		place = b.set.Call(place, b.frames[i])
	}
	b.frames = b.frames[:0]
	b.samples++
	b.set.Add(b.count, place, 1)
	if place < 0 {
		return
	}
	last := int64(0)
	q, scale, time := quantity(s.event)
	if c, ok := b.set.Count(q, scale); ok {
		b.set.Add(c, place, s.period)
	}
	if time {
		last = int64(min(s.period, 1e15))
	}
	if s.t == nil {
		return
	}
	c := &s.t.chart
	if last > 0 && s.t.until > 0 && s.ts > s.t.until+last/2 {
		c.Sample(s.t.until, stacks.Root) // the thread did not run between the samples
	}
	c.Sample(s.ts, place)
	s.t.until = max(s.t.until, s.ts+last)
}

// quantity returns the quantity that the period of an event counts.
func quantity(event string) (q profile.Quantity, scale float64, time bool) {
	name, _, _ := strings.Cut(event, ":")
	switch name {
	case "cpu-clock", "task-clock":
		return stacks.Time, 1e-9, true
	case "cycles", "cpu-cycles":
		return stacks.Cycles, 1, false
	}
	key := runlog.Key(name)
	if _, known := profile.Lookup(key); known || key == "" || key == stacks.Samples.Key {
		key = fmt.Sprintf("event_%s", cmp.Or(key, "unnamed"))
	}
	return profile.Quantity{Key: key, Name: "Event " + name, Head: name, Group: "Record", Adds: true, Doc: "Events that perf counted while the function itself ran, by the periods of its samples."}, 1, false
}
