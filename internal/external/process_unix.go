//go:build unix

package external

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// apart puts the child into its own process group: Ctrl-C in the terminal reaches opmeter only,
// which tells the child, and the processes that the child starts end with it.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill ends the child's process group.
func kill(c *exec.Cmd) {
	if c.Process != nil {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
	}
}

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
