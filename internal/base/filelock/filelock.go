// Package filelock prevents processes from using one file at the same time. The system releases a
// lock when the file is closed, and when the process ends for any reason. Reading is not
// prevented. If a file system has no locks, locking fails with [errors.ErrUnsupported].
package filelock

import "errors"

// ErrHeld says that another process, or another open file of this process, holds the lock.
var ErrHeld = errors.New("locked by another process")
