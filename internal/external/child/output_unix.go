//go:build unix

package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// Output reserves standard output for messages: from now on, what libraries print there goes to
// standard error.
func Output() (*os.File, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup2(2, 1); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "parent"), nil
}
