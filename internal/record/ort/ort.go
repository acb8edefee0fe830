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
	"context"
	"errors"
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
	b := bytes.TrimPrefix(bytes.TrimLeft(f.Head, "\ufeff \t\r\n"), []byte("["))
	if !bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) {
		return record.No
	}
	session := bytes.Contains(b, []byte("model_loading_")) || bytes.Contains(b, []byte("session_initialization"))
	node := bytes.Contains(b, []byte("_kernel_time\"")) && bytes.Contains(b, []byte(`"op_name"`))
	switch {
	case session && bytes.Contains(b, []byte(`"Session"`)), node && bytes.Contains(b, []byte(`"Node"`)):
		return record.Certain
	case node:
		return record.Likely
	}
	return record.No
}

func read(ctx context.Context, f *record.File) (*runlog.Run, error) {
	in, err := f.Open()
	if err != nil {
		return nil, &record.FileError{Path: f.Path, Err: err}
	}
	defer in.Close()
	r := newReader()
	err = r.read(ctx, in)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, err
	}
	if len(r.rows) == 0 && r.sessions == 0 {
		why := errors.New("has no event of a session or node of ONNX Runtime")
		if err != nil {
			why = err
		}
		return nil, &record.FileError{Path: f.Path, Err: why}
	}
	return r.run(strings.TrimSuffix(path.Base(f.Name), path.Ext(f.Name)), f.Path), nil
}

// provider is the unit of a provider's name: "cpu" for the processor.
func provider(name string) string {
	name = strings.TrimSuffix(name, "ExecutionProvider")
	if name == "CPU" || name == "" {
		return profile.CPU
	}
	return name
}
