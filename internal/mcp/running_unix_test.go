//go:build unix

package mcp_test

import "syscall"

// running reports whether a process runs.
func running(pid int) bool { return syscall.Kill(pid, 0) == nil }
