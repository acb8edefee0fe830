//go:build !unix

package cli

import "os/exec"

// signalNumber: programs end with a status here.
func signalNumber(*exec.ExitError) (n int, name string) { return 0, "the system" }
