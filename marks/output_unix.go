//go:build unix

package marks

import (
	"errors"
	"os"
	"syscall"
)

// nonblock keeps the opening of a named pipe that no one reads from waiting.
const nonblock = syscall.O_NONBLOCK

// descriptor makes a file of an open descriptor. It is a copy: writes to the standard output of
// a process would end that where the reader is gone.
func descriptor(n uintptr, name string) (*os.File, error) {
	d, err := syscall.Dup(int(n))
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(d)
	f := os.NewFile(uintptr(d), name)
	if st, err := f.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
		f.Close()
		return nil, errors.New("leads to a terminal, which nobody reads marks from: name a file or a pipe")
	}
	return f, nil
}
