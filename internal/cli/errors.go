package cli

import (
	"errors"
	"fmt"

	"github.com/opmeter/opmeter"
)

// Exit statuses.
const (
	statusDone   = 0 // also for a run that Ctrl-C cut short with a result
	statusGate   = 1 // a gate or check failed
	statusUse    = 2 // wrong use of the command line
	statusInput  = 3 // bad input file
	statusSource = 4 // the source failed: engine, device
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
	"Threads":       {"--threads", ""},
	"Runs":          {"--runs", ""},
	"Time":          {"--time", ""},
	"Carry":         {"--carry", ""},
	"Inputs.Batch":  {"--batch", ""},
	"Inputs.Shapes": {"--shape", ""},
	"Inputs.Files":  {"--input", "NAME=FILE.npy feeds one"},
	"target":        {"--on", "opmeter targets lists them"},
	"Runtime":       {"--runtime", "opmeter targets lists them"},
	"ClockHz":       {"--clock", ""},
	"Journal":       {"journal", ""},
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
	if e, ok := errors.AsType[*opmeter.OptionError](err); ok {
		f, known := flags[e.Option]
		switch {
		case !known:
			return withStatus(statusUse, err)
		case f.hint != "":
			return useError("%s: %s; %s", f.flag, e.Text, f.hint)
		}
		return useError("%s: %s", f.flag, e.Text)
	}
	if _, ok := errors.AsType[*opmeter.TooLargeError](err); ok {
		return withStatus(statusInput, fmt.Errorf("%w: profile this model alone", err))
	}
	if _, ok := errors.AsType[*opmeter.NodeError](err); ok {
		return withStatus(statusSource, err)
	}
	if errors.Is(err, opmeter.ErrMemory) {
		return withStatus(statusInput, fmt.Errorf("%w: try smaller inputs with --shape or --batch", err))
	}
	if _, ok := errors.AsType[*opmeter.ModelError](err); ok {
		return withStatus(statusInput, err)
	}
	if _, ok := errors.AsType[*opmeter.TargetError](err); ok {
		return withStatus(statusInput, err)
	}
	return withStatus(statusSource, err)
}
