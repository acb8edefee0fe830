//go:build unix

package infile

import "syscall"

// nonblock keeps the open of a pipe from waiting for its writer. Regular files do
// not know it.
const nonblock = syscall.O_NONBLOCK
