// Package chrome reads traces in the trace-event format of the Chromium project, which
// many tools write: slices of threads, counters, arrows and samples. Those that opmeter
// wrote come back with their layers.
//
// Source of the format: "Trace Event Format", the document of the Chromium project. How
// beginnings and ends find each other is that of Perfetto's importer: an end closes the innermost
// slice under way that has its name.
package chrome

import (
	"context"
	"errors"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
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

// Match recognises trace events by their keys. What other readers know better gets Maybe.
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

// maxEvent bounds one event, and one other member of the file.
const maxEvent = 64 << 20

func read(ctx context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) {
	b := newReader()
	o := jsonscan.Options{Stream: jsonscan.Keys("traceEvents", "samples"), MaxValue: maxEvent}
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
	return b.runs(f, res, err), nil
}

// member takes a member of the outermost object.
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
