// Package ort reads the profiles that ONNX Runtime writes: JSON arrays with one event
// for each executed node, session, run and device kernel. All generations are read:
// with fence events and without names, with execution-plan and with node indices, ordered
// by start or by end, cut in the middle of an event.
//
// Format: the runtime's profiler writes events with cat, pid, tid, dur, ts (microseconds
// since profiling began), ph, name and args; numbers in args are strings.
package ort

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// Name is the format's name.
const Name = "onnxruntime"

// Format describes the format.
func Format() *record.Format {
	return &record.Format{
		Name: Name, Title: "ONNX Runtime profile",
		Files: "*.json, written when a session ends whose options have enable_profiling; its events as .csv or .xlsx, as pandas writes them",
		Gives: []string{"latency_s", "total_s", "calls", "bytes_read", "bytes_written", "weights_bytes", "timeline", "samples", "shapes", "memory", "phases"},
		Match: match,
		Read:  record.RunsPerFile(func(ctx context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) { return read(ctx, f) }),
	}
}

// match looks for events of a session or its nodes.
func match(f *record.File) record.Sure {
	if t := tableOf(f); t != nil {
		return t.sure
	}
	h := f.JSONHead("[{")
	if !bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(h, []byte("["))), []byte("{")) {
		return record.No
	}
	session := h.HasAny("model_loading_", "session_initialization")
	node := h.Has(`_kernel_time"`, `"op_name"`)
	if session && h.Has(`"Session"`) || node && h.Has(`"Node"`) {
		return record.Certain
	}
	return record.Likely.If(node)
}

// sessions are the readers of a file's sessions: a file of ONNX Runtime has one, but users put
// several into one file.
type sessions struct {
	list []*reader
	lost int64
}

// begin begins the next session.
func (s *sessions) begin() *reader {
	r := newReader()
	r.split = func() *reader {
		r.finish()
		return s.begin()
	}
	if len(s.list) >= draft.MaxRuns {
		s.lost++
		s.list[len(s.list)-1] = r
	} else {
		s.list = append(s.list, r)
	}
	return r
}

// last is the reader of the current session.
func (s *sessions) last() *reader { return s.list[len(s.list)-1] }

// document begins a session where a document follows another one.
func (s *sessions) document() {
	if r := s.last(); r.begun() {
		r.split()
	}
}

func read(ctx context.Context, f *record.File) ([]*runlog.Run, error) {
	var s sessions
	s.begin()
	var err error
	if t := tableOf(f); t != nil {
		err = t.read(ctx, f, &s)
	} else {
		err = f.With(func(in io.Reader) error { return scan(ctx, in, s.last, s.document) })
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, err
	}
	var runs []*runlog.Run
	for _, r := range s.list {
		if len(r.rows) > 0 || r.sessions > 0 {
			runs = append(runs, r.run(strings.TrimSuffix(path.Base(f.Name), path.Ext(f.Name)), f.Path))
		}
	}
	if len(runs) == 0 {
		return nil, cmp.Or(err, errors.New("has no event of a session or node of ONNX Runtime"))
	}
	s.last().dropped.Add(fmt.Sprintf("sessions beyond the first %d", draft.MaxRuns), s.lost)
	draft.ApartRuns(runs, false)
	return runs, nil
}

// provider is the unit of a provider's name: "cpu" for the processor.
func provider(name string) string {
	if name = strings.TrimSuffix(name, "ExecutionProvider"); name == "CPU" {
		return profile.CPU
	}
	return cmp.Or(name, profile.CPU)
}
