//go:build !linux && !darwin && !freebsd && !openbsd && !netbsd && !dragonfly && !windows

package port

import (
	"errors"
	"os"
)

// tryLock fails: there are no locks on this system.
func tryLock(*os.File, bool) error { return errors.ErrUnsupported }
