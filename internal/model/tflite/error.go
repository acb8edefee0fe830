package tflite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/flatbuffer"
)

// Error reports what is wrong with a model file and where.
type Error struct {
	File   string // as given to [Open] or [Parse]
	Path   string // table path in the model, "" for the file as a whole
	Offset int64  // byte offset in the model, -1 if not a single place
	Err    error
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Path != "" {
		fmt.Fprintf(&b, ": %s", e.Path)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at byte %d", e.Offset)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func fileError(file string, err error) error {
	if fe := (*flatbuffer.Error)(nil); errors.As(err, &fe) {
		return &Error{File: file, Path: fe.Path, Offset: fe.Offset, Err: fe.Err}
	}
	if te := (*Error)(nil); errors.As(err, &te) {
		return err
	}
	return &Error{File: file, Offset: -1, Err: err}
}
