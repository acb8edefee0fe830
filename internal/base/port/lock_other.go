//go:build !linux && !darwin && !freebsd && !openbsd && !netbsd && !dragonfly && !windows

package port

import (
	"errors"
	"os"
)

// tryLock tells that there are no locks here.
func tryLock(*os.File, bool) error { return errors.ErrUnsupported }
