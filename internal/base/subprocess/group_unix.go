//go:build unix

package subprocess

import (
	"os/exec"
	"syscall"
)

// group is a process group.
type group struct{ pid int }

func (g *group) prepare(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (g *group) started(c *exec.Cmd) { g.pid = c.Process.Pid }

func (g *group) kill() {
	if g.pid > 0 {
		// All of its processes may have ended.
		_ = syscall.Kill(-g.pid, syscall.SIGKILL)
	}
}
