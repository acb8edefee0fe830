package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/record"
	"github.com/opmeter/opmeter/study"
	"github.com/opmeter/opmeter/target"
)

// Exit statuses.
const (
	statusDone      = 0   // also for a measurement that Ctrl-C cut short with figures
	statusGate      = 1   // a gate or check failed
	statusUse       = 2   // wrong use of the command line
	statusInput     = 3   // bad input file
	statusSource    = 4   // the source failed: engine, device
	statusUndecided = 5   // a verdict was asked for, and the figures give none
	statusStopped   = 130 // stopped by Ctrl-C before there was a result; 143 by SIGTERM, 129 by SIGHUP
)

// statusError carries an exit status with an error.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func withStatus(status int, err error) error {
	if err == nil {
		return nil
	}
	return &statusError{status, err}
}

func useError(format string, args ...any) error {
	return &statusError{statusUse, fmt.Errorf(format, args...)}
}

// flags are the options of the library by their field, with the flag that sets
// them and where to look for what it takes.
var flags = map[string]struct{ flag, hint string }{
	"Threads":           {"--threads", ""},
	"Runs":              {"--runs", ""},
	"Time":              {"--time", ""},
	"Carry":             {"--carry", ""},
	"Pin":               {"--pin", ""},
	"Streams":           {"--streams", ""},
	"Rate":              {"--rate", ""},
	"Cold":              {"--cold", ""},
	"MaxMemory":         {"--max-memory", ""},
	"Lists":             {"--batch and --dim", ""},
	"Lists.Batches":     {"--batch", ""},
	"Lists.Dims":        {"--dim", ""},
	"Phases":            {"--phases", ""},
	"Phases.Prompts":    {"--prompt", ""},
	"Phases.Contexts":   {"--context", ""},
	"LimitBytes":        {"--buffer", ""},
	"Inputs.Batch":      {"--batch", ""},
	"Inputs.Shapes":     {"--shape", ""},
	"Inputs.Dims":       {"--dim", ""},
	"Inputs.Files":      {"--input", ""},
	"target":            {"--on", "opmeter targets lists them"},
	"Runtime":           {"--runtime", ""},
	"Build":             {"--runtime-build", ""},
	"ClockHz":           {"--clock", ""},
	"Journal":           {"journal", ""},
	"Engine":            {"--engine", "opmeter engines lists them"},
	"Engine.Options":    {"--engine-option", ""},
	"Format":            {"--from", "opmeter import --list names them"},
	"ClocksHz":          {"--clock", ""},
	"Arch":              {flag: "--arch"},
	"Port":              {"--port", "opmeter devices lists those connected"},
	"Speed":             {"--speed", ""},
	"Protocol":          {"--protocol", ""},
	"Until":             {"--until", ""},
	"Timeout":           {"--timeout", ""},
	"Reconnect":         {"--reconnect", ""},
	"Levels":            {"--levels", ""},
	"Structures":        {"--structure", ""},
	"Formats":           {"--precision", ""},
	"Name":              {"--name", ""},
	"Method":            {"--method", ""},
	"Metric":            {"--metric", ""},
	"Choice":            {"--choice", ""},
	"Loss":              {"--loss", ""},
	"Plan":              {"--plan", ""},
	"Goal":              {"goal", ""},
	"Exclude":           {"--exclude", ""},
	"Fit":               {"--fit", ""},
	"Kind":              {"--kind", ""},
	"Correct":           {"--correct", ""},
	"Inputs.Iterations": {"--iterations", ""},
	"Flash":             {"--option flash", ""},
	"signature":         {"--signature", ""},
}

// told puts an error of the library in words of the command line, with the exit
// status that follows from its type.
func told(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*statusError](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return errStopped
	}
	if e, ok := errors.AsType[*opmeter.OptionError](err); ok {
		return option(e, flags[e.Option].flag)
	}
	if _, ok := errors.AsType[*opmeter.TooLargeError](err); ok {
		return withStatus(statusInput, fmt.Errorf("%w: profile this model alone", err))
	}
	if errors.Is(err, opmeter.ErrMemory) {
		_, by := machine.MemoryLimit()
		err = fmt.Errorf("%w: use smaller inputs (--shape, --batch) or a higher limit (--max-memory; without it, the limit follows from %s)", err, by)
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		switch e.Code {
		case engine.BadList:
			return option(&opmeter.OptionError{Option: "Engine", Text: e.Error(), Err: err}, "--engine")
		case "no_option":
			return useError("--engine-option: %w; opmeter engines %s lists them", err, e.Engine)
		}
		return withStatus(statusSource, err)
	}
	if _, ok := errors.AsType[*compress.DataError](err); ok {
		return withStatus(statusInput, err)
	}
	if e, ok := errors.AsType[*compress.StudyError](err); ok {
		if e.Busy {
			return withStatus(statusSource, err)
		}
		if _, ok := errors.AsType[*study.ModelMismatchError](err); ok {
			err = fmt.Errorf("%w: --study names another file", err)
		}
		return withStatus(statusInput, err)
	}
	if _, ok := errors.AsType[*opmeter.NodeError](err); ok {
		return withStatus(statusSource, err)
	}
	if _, ok := errors.AsType[*opmeter.ModelError](err); ok {
		return withStatus(statusInput, err)
	}
	if _, ok := errors.AsType[*target.Error](err); ok {
		return withStatus(statusInput, err)
	}
	if _, ok := errors.AsType[*record.Error](err); ok {
		return withStatus(statusInput, err)
	}
	return withStatus(statusSource, err)
}

// diskFails reports whether an error is that of a disk that is full or broken: the command was
// right, and its input too.
func diskFails(err error) bool {
	for _, e := range diskErrors {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// option says of a flag what the library says of an option; "" is an option that no
// flag sets.
func option(e *opmeter.OptionError, flag string) error {
	hint := flags[e.Option].hint
	switch {
	case flag == "":
		return withStatus(statusUse, e)
	case hint == "":
		return useError("%s: %s", flag, e.Text)
	case strings.HasSuffix(e.Text, "?"):
		return useError("%s: %s %s", flag, e.Text, hint)
	}
	return useError("%s: %s; %s", flag, e.Text, hint)
}
