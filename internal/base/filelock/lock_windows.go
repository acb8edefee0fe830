package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Windows locks are mandatory for the bytes that they cover: this range is beyond any file's end.
const place = 1 << 30 // in units of 4 GiB

// Try locks an open file, or fails with [ErrHeld].
func Try(f *os.File) error {
	return take(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
}

// Wait locks an open file once it is free.
func Wait(f *os.File) error { return take(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// Release ends a lock.
func Release(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{OffsetHigh: place})
}

func take(f *os.File, how uint32) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{OffsetHigh: place})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrHeld
	}
	return err
}
