//go:build !windows && (!unix || aix || solaris)

package filelock

import (
	"errors"
	"os"
)

// Try takes the lock of an open file, or fails with [ErrHeld].
func Try(*os.File) error { return errors.ErrUnsupported }

// Wait takes the lock of an open file or folder when nobody else has it any more.
func Wait(*os.File) error { return errors.ErrUnsupported }
