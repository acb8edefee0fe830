//go:build unix

package infile

import "syscall"

func makePipe(path string) error { return syscall.Mkfifo(path, 0o600) }
