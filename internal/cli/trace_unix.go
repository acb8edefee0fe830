//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// signalNumber is the signal that ended a program.
func signalNumber(e *exec.ExitError) (n int, name string) {
	if s, ok := e.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return int(s.Signal()), "signal " + s.Signal().String()
	}
	return 0, "a signal"
}
