//go:build !unix

package external

import (
	"os"
	"os/exec"
)

func apart(*exec.Cmd) {}

func kill(c *exec.Cmd) {
	if c.Process != nil {
		_ = c.Process.Kill()
	}
}

func signalled(*os.ProcessState) (string, bool) { return "", false }
