//go:build darwin || freebsd || linux

package neuralengine

import (
	"errors"
	"os"
	"syscall"
)

// lock waits until no other process holds a folder and returns what gives it back; the
// system does that, too, when the process ends. Where it cannot be had, as on some network
// file systems, work goes on without: files are made only where there are none.
func lock(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return func() { _ = f.Close() }
}
