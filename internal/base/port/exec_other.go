//go:build !unix && !windows

package port

import "os/exec"

// group is a program alone: this system has nothing for its children.
type group struct{ cmd *exec.Cmd }

func (g *group) prepare(*exec.Cmd)   {}
func (g *group) started(c *exec.Cmd) { g.cmd = c }

func (g *group) kill() {
	if g.cmd != nil {
		// What has ended already cannot be ended.
		_ = g.cmd.Process.Kill()
	}
}

func signalOf(*exec.ExitError) string { return "" }
