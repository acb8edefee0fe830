// Package atomicfile writes files that appear whole or not at all.
//
// A name that leads to something else than a regular file (a link, a pipe, a device, a
// folder) is refused: what stands there would be replaced by a file. A new file has the
// rights that the umask leaves, one that takes the place of another has those of the
// other.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/opmeter/opmeter/internal/base/infile"
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

// ErrInput is the error of [Check] for the file that the work reads.
var ErrInput = errors.New("is what is read: writing there would replace it")

// Check tells before the work whether a file can be written: errors are those that
// [Write] would have, but for a disk that is full by then. None of the inputs may be
// the file itself, under whatever name.
func Check(path string, inputs ...string) error {
	st, err := target(path)
	if err != nil {
		return named(path, err)
	}
	for _, in := range inputs {
		if other, err := os.Stat(in); st != nil && err == nil && os.SameFile(st, other) {
			return &fs.PathError{Op: "write", Path: path, Err: ErrInput}
		}
	}
	f, err := begin(path)
	if err != nil {
		return named(path, err)
	}
	return named(path, errors.Join(f.Close(), forget(f.Name(), "")))
}

// target looks at what stands where a file is to be, nil for nothing.
func target(path string) (fs.FileInfo, error) {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if kind := infile.Kind(st.Mode()); kind != "" {
		return nil, &fs.PathError{Op: "write", Path: path, Err: &infile.KindError{Kind: kind}}
	}
	return st, nil
}

// attempts bounds the search for a temporary name that is free.
const attempts = 1000

// create makes a file beside path that nobody else has, with the rights that the file
// is to have in the end, so that its content is never open to others.
func create(path string) (*os.File, error) {
	old, err := target(path)
	if err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = old.Mode().Perm() | 0o200 // a file that may be replaced need not be writable
	}
	for range attempts {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%08x", filepath.Base(path), rand.Uint32()))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil || old == nil {
			return f, err
		}
		// The umask may have taken rights that the older file has.
		if err := f.Chmod(old.Mode().Perm()); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return nil, errors.Join(err, f.Close(), os.Remove(name))
		}
		return f, nil
	}
	return nil, &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
}

// begin makes the temporary file for a path.
func begin(path string) (*os.File, error) {
	temporary.Lock()
	defer temporary.Unlock()
	if temporary.abandoned {
		return nil, ErrAbandoned
	}
	f, err := create(path)
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
