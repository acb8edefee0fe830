//go:build unix

package testengine

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// end ends the process by a signal.
func end(w What) {
	signal := map[What]syscall.Signal{Crash: syscall.SIGSEGV, Abort: syscall.SIGABRT, Kill: syscall.SIGKILL}[w]
	_ = syscall.Kill(os.Getpid(), signal)
	time.Sleep(time.Minute)
}

// escape puts a program into a session of its own.
func escape(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// files is how many files are open at most where a test runs.
const files = 64

// scrawl writes to whatever can be written to.
func scrawl() {
	for fd := 1; fd < files; fd++ {
		_, _ = syscall.Write(fd, []byte("this is not a message, whatever it is read as: \x00\x01\xff\xff\xff\xff\xff\xff\xff\n"))
	}
}

// shut closes every file but those that Go's own waiting needs.
func shut() {
	for fd := range files {
		_ = syscall.Close(fd)
	}
}
