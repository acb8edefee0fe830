//go:build unix

package mapped

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of an open file, read-only and private.
func mapFile(f *os.File, size int) ([]byte, func() error, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
