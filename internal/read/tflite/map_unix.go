//go:build unix

package tflite

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// mapFile maps a file read-only and private.
func mapFile(name string) (data []byte, unmap func() error, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case st.IsDir():
		return nil, nil, errors.New("is a folder")
	case !st.Mode().IsRegular():
		return nil, nil, errors.New("is not a regular file")
	case st.Size() == 0:
		return nil, nil, errors.New("the file is empty")
	case st.Size() != int64(int(st.Size())):
		return nil, nil, fmt.Errorf("%d bytes do not fit the address space", st.Size())
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		// Some file systems cannot map.
		data, err = os.ReadFile(name)
		return data, func() error { return nil }, err
	}
	return data, sync.OnceValue(func() error { return unix.Munmap(data) }), nil
}
