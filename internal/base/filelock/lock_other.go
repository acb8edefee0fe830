//go:build !windows && (!unix || aix || solaris)

package filelock

import (
	"errors"
	"os"
)

// Try locks an open file, or fails with [ErrHeld].
func Try(*os.File) error { return errors.ErrUnsupported }

// Wait locks an open file or folder once it is free.
func Wait(*os.File) error { return errors.ErrUnsupported }

// Release ends a lock.
func Release(*os.File) error { return errors.ErrUnsupported }
