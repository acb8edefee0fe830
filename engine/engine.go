package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/find"
)

// Engine is an external engine: a shared library (ONNX Runtime, LiteRT, OpenVINO) or a program
// with an engine compiled in (TensorFlow Lite Micro).
type Engine struct {
	// Name is "onnxruntime", "litert", "tflite", "openvino" or "tflm".
	Name string
	// Want is a prefix of the version that the library must report, "" for any.
	Want string
	// Library is the file to load, the program for tflm. Version is the version of its package,
	// "" if unknown.
	Library, Version string
	// Command is the command line of a tflm program, split into words as a shell does. Without
	// arguments it gets the model file; otherwise {model} stands for the file.
	Command string
	// ClockHz is the tick rate of such a program's clock, 0 if the program reports it.
	ClockHz float64
	// Options are the engine's own options, applied in this order.
	Options []Option
	// Helper is the program opmeter-engine, which loads the library.
	Helper string
	// Silent is how long one request, such as loading the model, may take before the engine
	// counts as hung and is ended; 0 means five minutes.
	Silent time.Duration
}

// Option is an option of an engine: a name of the engine's own, or one that opmeter engines
// lists.
type Option struct{ Key, Value string }

// Error reports a fault of an external engine.
type Error struct {
	// Engine is the engine's name.
	Engine string
	// Code is the kind of fault, such as [BadList], "not_found" or "crashed".
	Code string
	Err  error
}

// Error returns the cause's text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// BadList is the code for a list of engines that [Find] cannot read.
const BadList = "bad_list"

// Find finds engines on this computer by a list such as "opmeter,onnxruntime@1.20,litert=FILE":
// names, each with a version prefix after an "@" or a library after a "=", and for "tflm=PROGRAM" a
// command line. It returns one for each entry, nil for opmeter's own engine. The error is an
// [Error]; its text is one line that says how to get what is missing, or with code [BadList] what
// is wrong with the list.
func Find(list string) ([]*Engine, error) {
	specs, err := find.Parse(list)
	if err != nil {
		return nil, &Error{Code: BadList, Err: err}
	}
	here := find.Here()
	out := make([]*Engine, len(specs))
	for i, s := range specs {
		if s.Engine == find.Native {
			continue
		}
		f, err := s.Pick(here)
		if err != nil {
			return nil, publicError(s.Engine, err)
		}
		if f.Command != "" {
			out[i] = &Engine{Name: f.Engine, Library: f.Path, Command: f.Command}
			continue
		}
		helper, err := here.Helper()
		if err != nil {
			return nil, publicError(s.Engine, err)
		}
		out[i] = &Engine{Name: f.Engine, Library: f.Path, Version: f.Version, Helper: helper}
		if s.Library != "" {
			out[i].Want = s.Version // only the library knows its version
		}
	}
	return out, nil
}

// Installed returns the engine for models of a format, "onnx" or "tflite", that is installed on
// this computer: ONNX Runtime before OpenVINO, LiteRT before TensorFlow Lite and OpenVINO. It is
// nil without a usable library. It searches as [Find] does, and opens no library. The error is an
// [Error], for a library that cannot be opened because the program opmeter-engine is missing.
func Installed(format string) (*Engine, error) {
	here := find.Here()
	for i := range find.Engines {
		e := &find.Engines[i]
		if e.Program || !slices.Contains(e.Formats, format) {
			continue
		}
		f, err := here.Pick(e.Name, "")
		if err != nil {
			continue // absent or unusable: opmeter engines says why
		}
		helper, err := here.Helper()
		if err != nil {
			return nil, publicError(e.Name, err)
		}
		return &Engine{Name: f.Engine, Library: f.Path, Version: f.Version, Helper: helper}, nil
	}
	return nil, nil
}

// publicError gives an engine's fault its public type.
func publicError(name string, err error) error {
	if e, ok := errors.AsType[*external.Error](err); ok {
		return &Error{Engine: name, Code: string(e.Code), Err: e}
	}
	return err
}
