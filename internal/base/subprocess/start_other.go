//go:build !linux

package subprocess

import "os/exec"

// Start starts a prepared command. This system binds no process to processors.
func (g *Group) Start(c *exec.Cmd, _ ...int) error {
	if err := c.Start(); err != nil {
		return err
	}
	g.Started(c)
	return nil
}
