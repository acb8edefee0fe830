//go:build unix

package external

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalled returns the signal that ended a process.
func signalled(st *os.ProcessState) (string, bool) {
	if st == nil {
		return "", false
	}
	w, ok := st.Sys().(syscall.WaitStatus)
	if !ok || !w.Signaled() {
		return "", false
	}
	return unix.SignalName(w.Signal()), true
}
