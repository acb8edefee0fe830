// Package chrome reads traces in the trace-event format of the Chromium project, which many tools
// write: slices of threads, counters, arrows and samples. Traces that opmeter wrote keep their
// layers.
//
// Source of the format: "Trace Event Format", a document of the Chromium project. Beginnings and
// ends are paired as in Perfetto's importer: an end closes the innermost open slice with its
// name.
package chrome

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// Format reads trace events.
func Format() *record.Format {
	return &record.Format{
		Name:  "chrome",
		Title: "Chrome trace events",
		Files: "JSON of chrome://tracing, Perfetto's and DevTools' exports, TensorFlow's timelines and many others: a list of events, or an object with traceEvents",
		Gives: []string{"latency_s", "calls", "timeline", "options", "samples", "with_callees_s"},
		Match: Match,
		Read:  record.RunsPerFile(read),
	}
}

// Match recognises trace events by their keys. Traces that other importers read better are Maybe.
func Match(f *record.File) record.Sure {
	head := f.JSONHead("{[")
	events := head.Has(`"ph"`) && head.HasAny(`"ts"`, `"pid"`)
	object := f.JSONHead("{")
	switch {
	case object.Has(`"traceEvents"`, `"writer":"opmeter`):
		return record.Certain
	case !events && !object.Has(`"traceEvents"`), object != nil && !object.Has(`"traceEvents"`):
		return record.No
	case !events || head.HasAny(`"Session"`, `"reshape_time"`, `_kernel_time`):
		return record.Maybe
	}
	return record.Likely
}

// Limits of what is kept.
const (
	maxEvent   = 64 << 20 // bytes of an event, and of another member of the file
	maxThreads = 10_000
	maxAsync   = 1_000_000 // identifiers of asynchronous operations
	maxSamples = 2_000_000
)

func read(ctx context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) {
	b := newReader()
	o := jsonscan.Options{Stream: jsonscan.Keys("traceEvents", "samples"), MaxValue: maxEvent, Single: true}
	res, err := traceevent.Read(ctx, f, o, func(key string, e *traceevent.Event) {
		if b.e = e; key == "samples" {
			b.sample()
		} else {
			b.event()
		}
	}, b.member)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && b.events == 0 {
		return nil, err
	}
	if b.events == 0 && len(b.samples.list) == 0 {
		return nil, errors.New("no trace events: want objects with ph, ts, pid and tid")
	}
	b.trace.Dropped.Add("values that are not valid JSON", res.Bad)
	b.trace.Dropped.Add("values that are too large", res.Large)
	if res.More {
		b.trace.Dropped.Add(record.MoreDocuments, 1)
	}
	return b.runs(f, res, err), nil
}

// member reads a member of the outermost object.
func (b *reader) member(key string, v []byte) {
	switch key {
	case "stackFrames":
		b.samples.frames(v)
	case "otherData", "metadata":
		traceevent.Members(v, func(k, v []byte) {
			if len(b.head) < 100 && len(v) > 0 && v[0] == '"' {
				b.head[string(k)] = string(traceevent.Text(v))
			}
		})
		if w, ok := b.head["writer"]; ok && b.own == nil && b.events == 0 && track.IsOwn(w) {
			b.own = newOwn()
		}
	}
}

// own holds the layers of a trace that opmeter wrote.
type own struct {
	track.Own
	latency float64 // seconds, 0 if unknown
}

func newOwn() *own { return &own{} }

// bar adds a slice with its arguments. The slice of the whole run only gives the latency.
func (o *own) bar(b *reader, t *thread, s track.Slice) {
	name, kind := traceevent.Text(b.e.Name), traceevent.Text(b.e.Cat)
	if t.p.pid == "1" && t.tid == "1" {
		b.e.Each(func(k, v []byte) {
			if f, ok := jsonscan.Number(v); ok && string(k) == "latency_us" && f > 0 && f < 1e15 {
				o.latency = f / 1e6
			}
		})
		return
	}
	x := track.NewOwnBar()
	b.e.Each(func(k, v []byte) {
		switch {
		case len(v) == 0:
		case v[0] == '"':
			x.Text(jsonscan.Decode(k), string(traceevent.Text(v)))
		default:
			if f, ok := jsonscan.Number(v); ok {
				x.Number(jsonscan.Decode(k), f)
			}
		}
	})
	o.Apply(&b.trace, t.Track, &s, x, name, kind)
	b.trace.Add(t.Track, s)
}

// count parses a count, nil if it is not one.
func count(s string) *int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		return &n
	}
	return nil
}

// runs returns the run of the slices, and that of the samples.
func (b *reader) runs(f *record.File, res jsonscan.Result, err error) []*runlog.Run {
	var out []*runlog.Run
	samples := b.sampleRun(f)
	if samples == nil || b.phases['X']+b.phases['B']+b.phases['b']+b.phases['S'] > 0 {
		out = append(out, b.sliceRun(f))
	}
	if samples != nil {
		out = append(out, samples)
	}
	for _, r := range out {
		// The end of a list of events is optional.
		if res.Cut && !(res.Unclosed && f.Head[begin(f.Head)] == '[') || err != nil {
			r.Lose("the file is cut")
		}
	}
	return out
}

// sliceRun returns the run of the slices.
func (b *reader) sliceRun(f *record.File) *runlog.Run {
	p := &profile.Profile{Model: profile.Model{Name: track.Stem(f.Name), Path: f.Path, Format: "chrome"}}
	run := &runlog.Run{Profile: p}
	b.pair()
	b.nameTracks()
	if b.own != nil {
		b.ownRun(run)
	} else {
		b.otherRun(run)
	}
	if n := b.trace.Opened(); n > 0 {
		run.Found("import.open", profile.Warning, "%d slices have a beginning and no end: they are shown until the end of their thread, and count in no figure.", n)
	}
	if n := b.phases['N'] + b.phases['O'] + b.phases['D']; n > 0 {
		run.Found("import.objects", profile.Info, "The trace tells of objects in %d events, which are not read.", n)
	}
	b.trace.Dropped.To(run)
	return run
}

func (b *reader) otherRun(run *runlog.Run) {
	p := run.Profile
	b.trace.Fill(p, &b.layers, &b.flows)
	if p.Host == nil && b.head["os-name"] != "" {
		p.Host = &profile.Host{OS: b.head["os-name"], Arch: b.head["os-arch"], CPUModel: b.head["cpu-brand"]}
	}
}

func (b *reader) ownRun(run *runlog.Run) {
	p, h := run.Profile, b.head
	p.Model.Name = cmp.Or(h["model"], p.Model.Name)
	if b, err := hex.DecodeString(h["model_sha256"]); err == nil && len(b) == 32 {
		p.Model.SHA256 = hex.EncodeToString(b)
	}
	p.Target.ID = h["target"]
	if _, err := time.Parse(time.RFC3339, h["created"]); err == nil {
		p.Created = h["created"]
	}
	b.own.Fill(p, &b.trace, &b.flows, h["origin"], h["times"])
	if t := p.Timeline; t != nil {
		t.Iterations, t.Dropped = count(h["iterations_run"]), count(h["records_dropped"])
	}
	if b.own.latency > 0 {
		p.Totals.Latency = profile.Value(profile.Imported, b.own.latency, "")
	}
	if s := h["incomplete"]; s != "" {
		run.Missing = append(run.Missing, profile.Missing{Cause: profile.ByRecord, Text: s})
	}
}

// begin returns the offset of the first value.
func begin(head []byte) int {
	return max(0, bytes.IndexAny(head, "[{"))
}
