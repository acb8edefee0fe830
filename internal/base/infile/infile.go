// Package infile opens files named by the user.
//
// A path may name anything: a pipe whose open never returns, an endless device, a folder. Only
// regular files are opened, and no more is read than the caller can use. The package imports the
// standard library only.
package infile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// KindError says that a path does not name a regular file.
type KindError struct {
	// Kind is what it names: see [Kind].
	Kind string
}

// Error returns what the path names and what was expected.
func (e *KindError) Error() string { return "is " + e.Kind + ", a file was expected" }

// SizeError says that a file exceeds the size limit.
type SizeError struct{ Most int64 }

// Error returns the limit in bytes.
func (e *SizeError) Error() string { return fmt.Sprintf("is larger than %d bytes", e.Most) }

// Open opens a regular file for reading, without blocking. Errors are a [fs.PathError], which
// wraps a [KindError] for anything but a regular file.
func Open(path string) (*os.File, fs.FileInfo, error) {
	// Opening some devices has side effects, and opening a pipe without a writer blocks. So stat
	// first, and open without blocking in case the path was replaced since.
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := regular(path, st); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	if st, err = f.Stat(); err == nil {
		err = regular(path, st)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// Read reads a whole regular file of at most the given size. Errors are a [fs.PathError], which
// may wrap a [KindError] or a [SizeError].
func Read(path string, most int64) ([]byte, error) {
	f, st, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tooLarge := &fs.PathError{Op: "read", Path: path, Err: &SizeError{most}}
	if st.Size() > most {
		return nil, tooLarge
	}
	b := make([]byte, 0, st.Size()+1)
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		case int64(len(b)) > most: // it grew
			return nil, tooLarge
		case len(b) == cap(b):
			b = append(b, 0)[:len(b)]
		}
	}
}

func regular(path string, st fs.FileInfo) error {
	if kind := Kind(st.Mode()); kind != "" {
		return &fs.PathError{Op: "open", Path: path, Err: &KindError{kind}}
	}
	return nil
}

// Kind names the kind of a file that is not regular: "a folder", "a link", "a pipe", "a socket",
// "a device". It returns "" for a regular file.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return ""
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
