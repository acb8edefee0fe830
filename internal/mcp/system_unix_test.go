//go:build unix

package mcp_test

import "syscall"

// running reports whether a process runs.
func running(pid int) bool { return syscall.Kill(pid, 0) == nil }

// pipe makes a named pipe.
func pipe(path string) error { return syscall.Mkfifo(path, 0o600) }
