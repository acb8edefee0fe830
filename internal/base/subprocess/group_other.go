//go:build !unix && !windows

package subprocess

import "os/exec"

// group is a single program: this system cannot kill its children with it.
type group struct{ cmd *exec.Cmd }

func (g *group) prepare(*exec.Cmd)   {}
func (g *group) started(c *exec.Cmd) { g.cmd = c }

func (g *group) kill() {
	if g.cmd != nil {
		// A process that has ended cannot be killed.
		_ = g.cmd.Process.Kill()
	}
}
