//go:build unix && !aix && !solaris

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Try locks an open file, or fails with [ErrHeld].
func Try(f *os.File) error { return take(f, unix.LOCK_EX|unix.LOCK_NB) }

// Wait locks an open file or folder once it is free.
func Wait(f *os.File) error { return take(f, unix.LOCK_EX) }

// Release ends a lock. It ends for processes that are being started, too: they have the file until
// they run.
func Release(f *os.File) error { return take(f, unix.LOCK_UN) }

func take(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrHeld
		case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS):
			return errors.Join(errors.ErrUnsupported, err)
		}
		return err
	}
}
