//go:build unix

package external

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// apart puts a child into a group of its own: Ctrl-C of the terminal is for opmeter, which tells the
// child, and what the child starts ends with it.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill ends the child's group.
func kill(c *exec.Cmd) {
	if c.Process != nil {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
	}
}

// signalled is the signal that ended a process.
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
