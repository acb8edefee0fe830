// Package atomicfile writes files that appear whole or not at all.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Write writes data to a temporary file beside path, which then takes its name.
// An older file stays as it is when anything fails.
func Write(path string, data []byte) error {
	return Stream(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Patcher is implemented by the writers of [Stream]: what could not be known
// before the rest was written, such as a length at the beginning, is put in
// place afterwards.
type Patcher interface {
	// Patch replaces bytes that have been written, from the given offset on.
	Patch(offset int64, b []byte) error
}

type file struct {
	*bufio.Writer
	f *os.File
}

func (f file) Patch(offset int64, b []byte) error {
	if err := f.Flush(); err != nil {
		return err
	}
	_, err := f.f.WriteAt(b, offset)
	return err
}

// Stream is [Write] for content that is made piece by piece, so that it need not
// be held in memory. The writer is a [Patcher].
func Stream(path string, write func(io.Writer) error) (err error) {
	f, err := begin(path)
	if err != nil {
		return named(path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = forget(f.Name(), "")
			err = named(path, err)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<16)
	if err = write(file{w, f}); err != nil {
		return err
	}
	if err = w.Flush(); err != nil {
		return err
	}
	// Without this a power cut may leave an empty file under the final name.
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return forget(f.Name(), path)
}

// named makes an error of the file system speak of the file that was asked for: the
// temporary name is nobody's business, and is gone by then.
func named(path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "write", Path: path, Err: e.Err}
	}
	return err
}

// temporary lists the files that are being written.
var temporary struct {
	sync.Mutex
	names     map[string]bool
	abandoned bool
}

// ErrAbandoned is the error of files that were being written when the program gave up.
var ErrAbandoned = errors.New("given up")

// Abandon removes what is being written and keeps it from appearing: for a program that
// ends at once.
func Abandon() {
	temporary.Lock()
	defer temporary.Unlock()
	temporary.abandoned = true
	for name := range temporary.names {
		_ = os.Remove(name)
	}
}

// begin makes the temporary file for a path.
func begin(path string) (*os.File, error) {
	temporary.Lock()
	defer temporary.Unlock()
	if temporary.abandoned {
		return nil, ErrAbandoned
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	if temporary.names == nil {
		temporary.names = map[string]bool{}
	}
	temporary.names[f.Name()] = true
	return f, nil
}

// forget ends what begin began; with a path the file appears there.
func forget(name, path string) error {
	temporary.Lock()
	defer temporary.Unlock()
	delete(temporary.names, name)
	switch {
	case path == "":
		return os.Remove(name)
	case temporary.abandoned:
		return ErrAbandoned
	}
	return os.Rename(name, path)
}
