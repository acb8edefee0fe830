package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Locks of Windows keep others from the bytes that they cover: this one lies where no file has any.
const place = 1 << 30 // in units of 4 GiB

// Try takes the lock of an open file, or fails with [ErrHeld].
func Try(f *os.File) error {
	return take(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
}

// Wait takes the lock of an open file when nobody else has it any more.
func Wait(f *os.File) error { return take(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func take(f *os.File, how uint32) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{OffsetHigh: place})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrHeld
	}
	return err
}
