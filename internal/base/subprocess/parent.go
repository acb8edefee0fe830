package subprocess

import (
	"io"
	"os"
	"strings"
	"syscall"
)

// ParentVariable is the environment variable of programs that hold a pipe to this one open:
// "stdin" is standard input, as for the Python package, "fd:3" is descriptor 3, as for npm.
const ParentVariable = "OPMETER_PARENT"

// HeldByStdin is the setting by which a program tells its child that it holds standard input open.
const HeldByStdin = ParentVariable + "=stdin"

// WatchParent returns the standard input. Where the parent holds it open, that is empty. At the end
// of the parent's pipe it calls gone: a parent that was killed leaves no work behind.
func WatchParent(in io.Reader, gone func()) io.Reader {
	pipe, rest := in, io.Reader(strings.NewReader(""))
	switch os.Getenv(ParentVariable) {
	case "stdin":
	case "fd:3":
		syscall.CloseOnExec(3)
		pipe, rest = os.NewFile(3, "parent"), in
	default:
		return in
	}
	_ = os.Unsetenv(ParentVariable) // what this program starts has other descriptors
	go func() {
		if _, err := io.Copy(io.Discard, pipe); err != nil {
			return // no such pipe
		}
		gone()
	}()
	return rest
}
