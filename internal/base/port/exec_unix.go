//go:build unix

package port

import (
	"os/exec"
	"syscall"
)

// signalOf names the signal that ended a program, "" for none.
func signalOf(e *exec.ExitError) string {
	if s, ok := e.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return "signal " + s.Signal().String()
	}
	return ""
}
