//go:build linux || darwin || freebsd || openbsd || netbsd || dragonfly

package port

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file exclusively, or shared for processes that only look. The lock ends with
// the descriptor, and so with the process.
func tryLock(f *os.File, alone bool) error {
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errHeld
	}
	return err
}
