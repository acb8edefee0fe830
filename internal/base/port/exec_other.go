//go:build !unix

package port

import "os/exec"

func signalOf(*exec.ExitError) string { return "" }
