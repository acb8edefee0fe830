//go:build !linux

package subprocess

import "os/exec"

// Start starts a prepared command.
func (g *Group) Start(c *exec.Cmd) error {
	if err := c.Start(); err != nil {
		return err
	}
	g.Started(c)
	return nil
}
