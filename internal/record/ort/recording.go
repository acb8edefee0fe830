package ort

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
)

// Recording joins several files of one model: profiles of sessions of one program with the same
// model and options, read one after the other. Figures are over all their inferences.
type Recording struct {
	r      *reader
	events int64
	origin int64 // when the first session began to profile, nanoseconds
}

// NewRecording makes an empty recording.
func NewRecording() *Recording { return &Recording{r: newReader()} }

// Session describes a file.
type Session struct {
	// Skip is the number of inferences at the beginning of the file that are ignored.
	Skip int
	// Disturbed reports whether the system disturbed an inference of the file, from 0; nil if
	// unknown.
	Disturbed func(inference int) bool
	// Started is the begin of profiling in nanoseconds of a clock that all sessions of the
	// recording share.
	Started int64
}

// Add reads the profile of one more session. Inferences before an error count.
func (c *Recording) Add(ctx context.Context, file io.ReadSeeker, s Session) error {
	r := c.r
	if r.runs == 0 {
		c.origin = s.Started
	}
	if r.from = math.MinInt64; s.Skip > 0 {
		from, err := c.cut(ctx, file, s.Skip)
		if err != nil {
			return err
		}
		r.from = from
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	r.disturbed, r.nth = s.Disturbed, s.Skip
	// Sessions have separate places on the timeline.
	r.shift = (s.Started - c.origin) / 1000
	again := r.sessions > 0
	load, plan := r.load, r.plan
	before := r.seen
	err := scan(ctx, file, func() *reader { return r }, nil)
	c.events += r.seen - before
	if again {
		r.load, r.plan = load, plan // loading counts once
	}
	r.args.begin()
	return err
}

// cut returns the end of the nth inference of a file in microseconds.
func (c *Recording) cut(ctx context.Context, file io.Reader, n int) (int64, error) {
	var ends []int64
	var e event
	var a arguments
	_, err := jsonscan.Each(file, jsonscan.Options{}, func(_ string, v []byte) error {
		if bytes.Contains(v, []byte(`"model_run"`)) && e.parse(v, &a) && string(e.name) == "model_run" && e.timed {
			ends = append(ends, e.ts+e.dur)
		}
		return ctx.Err()
	})
	if err != nil && ctx.Err() != nil {
		return 0, err
	}
	slices.Sort(ends)
	if len(ends) < n {
		return math.MaxInt64, nil
	}
	return ends[n-1], nil
}

// Inferences is the number of inferences so far.
func (c *Recording) Inferences() int { return c.r.runs }

// Events is the number of events in the files.
func (c *Recording) Events() int64 { return c.events }

// Run makes the run of the sessions so far, nil without inferences. More sessions may follow.
func (c *Recording) Run(name, path string) *runlog.Run {
	if c.r.runs == 0 {
		return nil
	}
	return c.r.run(name, path)
}

// scan reads a file. at returns the reader of the current session, document is called where a JSON
// document begins.
func scan(ctx context.Context, in io.Reader, at func() *reader, document func()) error {
	n := 0
	// Without whole, the scanner calls the last function, which stops the scan.
	whole := func(v []byte) bool {
		n++
		return (n&1023 != 0 || ctx.Err() == nil) && at().whole(v)
	}
	line := func(b []byte) bool { return at().line(b) }
	o := jsonscan.Options{Line: line, Whole: whole, Document: document, Stream: jsonscan.Keys("traceEvents")}
	res, err := jsonscan.Each(in, o, func(_ string, v []byte) error {
		if ctx.Err() == nil {
			at().event(v)
		}
		return ctx.Err()
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	r := at()
	if err != nil {
		r.dropped.Add(fmt.Sprintf("what follows byte %d, which cannot be read (%v)", res.Bytes, err), 1)
	}
	if res.Cut {
		r.dropped.Add("the file ends within an event", 1)
	}
	r.dropped.Add("events that are not valid JSON", res.Bad)
	r.dropped.Add("events of more than 16 MiB", res.Large)
	r.finish()
	return err
}
