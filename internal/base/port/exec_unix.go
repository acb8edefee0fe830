//go:build unix

package port

import (
	"os/exec"
	"sync"
	"syscall"
)

// group is a program with all processes that it starts: a process group.
type group struct {
	mu  sync.Mutex
	pid int // 0 before the start and after the end
}

// prepare puts the program into its own process group. Ctrl-C at the terminal does not reach it:
// the port ends it.
func (g *group) prepare(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (g *group) started(c *exec.Cmd) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pid = c.Process.Pid
}

// kill kills the whole group, once: its id may be reused later.
func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid > 0 {
		// There may be not a process left.
		_ = syscall.Kill(-g.pid, syscall.SIGKILL)
		g.pid = 0
	}
}

// signalOf names the signal that ended a program, "" for none.
func signalOf(e *exec.ExitError) string {
	if s, ok := e.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return "signal " + s.Signal().String()
	}
	return ""
}
