// Package filelock keeps processes from working on one file at the same time. The system gives a
// lock back when its file is closed, and when the process ends, however it ends. Nobody is kept
// from reading. Where a file system has no locks, taking one fails with [errors.ErrUnsupported].
package filelock

import "errors"

// ErrHeld tells that another process, or another open file of this one, has the lock.
var ErrHeld = errors.New("locked by another process")
