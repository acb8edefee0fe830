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
	"io"
	"path"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/profile"
)

// Name is the format's name.
const Name = "onnxruntime"

// Format describes the format.
func Format() *record.Format {
	return &record.Format{
		Name: Name, Title: "ONNX Runtime profile",
		Files: "*.json, written when a session ends whose options have enable_profiling",
		Gives: []string{"latency_s", "total_s", "calls", "bytes_read", "bytes_written", "weights_bytes", "timeline", "samples", "shapes", "memory", "phases"},
		Match: match, Read: record.RunPerFile(read),
	}
}

// match looks for events of a session or its nodes.
func match(f *record.File) record.Sure {
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

func read(ctx context.Context, f *record.File) (*runlog.Run, error) {
	r := newReader()
	err := f.With(func(in io.Reader) error { return r.read(ctx, in) })
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, err
	}
	if len(r.rows) == 0 && r.sessions == 0 {
		return nil, cmp.Or(err, errors.New("has no event of a session or node of ONNX Runtime"))
	}
	return r.run(strings.TrimSuffix(path.Base(f.Name), path.Ext(f.Name)), f.Path), nil
}

// provider is the unit of a provider's name: "cpu" for the processor.
func provider(name string) string {
	if name = strings.TrimSuffix(name, "ExecutionProvider"); name == "CPU" {
		return profile.CPU
	}
	return cmp.Or(name, profile.CPU)
}
