package onnx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/protoread"
)

// Error reports what is wrong with a file and where.
type Error struct {
	File   string // as given to Open or Parse
	Path   string // message path, such as graph.node[12].attribute["pads"]
	Offset int64  // byte offset in the file, -1 if not a single place
	Err    error

	whole bool // Path starts at the file's root
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	}
	b.WriteString(e.Err.Error())
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " (at byte %d)", e.Offset)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorf makes an error at a byte offset.
func errorf(off int64, format string, args ...any) error {
	return &Error{Offset: off, Err: fmt.Errorf(format, args...)}
}

// under prefixes an error's path with an element. It is called on the error path only, so paths
// cost nothing without errors.
func under(err error, elem string) error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Offset: -1, Err: err}
		var w *protoread.Error
		if errors.As(err, &w) {
			e.Offset, e.Err = w.Offset, errors.New(w.Msg)
		}
	}
	switch {
	case elem == "" || e.whole:
	case e.Path == "":
		e.Path = elem
	case strings.HasPrefix(e.Path, "["):
		e.Path = elem + e.Path
	default:
		e.Path = elem + "." + e.Path
	}
	return e
}

// underAt is under for element i of a repeated field.
func underAt(err error, field string, i int) error {
	if err == nil {
		return nil
	}
	return under(err, fmt.Sprintf("%s[%d]", field, i))
}
