package external

import "fmt"

// Code classifies an error of an external engine.
type Code string

// Error codes of external engines.
const (
	NoHelper   Code = "no_helper"   // opmeter-engine was not found
	NotFound   Code = "not_found"   // no library of the engine
	NotLibrary Code = "not_library" // the file is not a library, or not of this engine
	TooOld     Code = "too_old"     // older than what is supported
	NoFormat   Code = "no_format"   // the engine does not read models of this format
	Rejected   Code = "rejected"    // the engine refuses the model or its inputs
	NoProvider Code = "no_provider" // a provider, delegate or device is missing
	NoOption   Code = "no_option"   // an option or its value is unknown
	NoMemory   Code = "no_memory"
	Failed     Code = "failed"  // an inference failed
	Crashed    Code = "crashed" // the child ended by itself
	Silent     Code = "silent"  // the child does not come back
	Killed     Code = "killed"  // somebody else ended the child
)

// Error is an error of an external engine.
type Error struct {
	Code Code `json:"code"`
	// Text is the message: what the engine said, what was expected, what to do.
	Text string `json:"text"`
	// Printed says that the library printed the reason, which only the parent process sees.
	Printed bool `json:"printed,omitzero"`
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Errorf makes an [Error].
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// WithPrinted marks an error whose reason the library only prints. It returns e.
func (e *Error) WithPrinted() *Error {
	e.Printed = true
	return e
}
