//go:build unix

package infile

import "syscall"

// nonblock keeps the open of a pipe from waiting for its writer. It has no effect on regular
// files.
const nonblock = syscall.O_NONBLOCK
