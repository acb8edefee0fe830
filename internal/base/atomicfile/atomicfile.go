// Package atomicfile writes files atomically: a file appears complete or not at all.
//
// A path that names anything but a regular file (a link, a pipe, a device, a folder) is rejected,
// because it would be replaced by a file. A new file gets the permissions that the umask leaves;
// a replaced file keeps its permissions.
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

// Write writes data to a temporary file beside path and renames it to path. An existing file is
// unchanged if anything fails.
func Write(path string, data []byte) error {
	return Stream(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Patcher is implemented by the writers of [Stream]. It fills in data that is known only after
// the rest was written, such as a length at the beginning.
type Patcher interface {
	// Patch overwrites bytes that have been written, starting at the given offset.
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

// Stream is [Write] for content that is generated incrementally, so that it need not be held in
// memory. The writer is a [Patcher].
func Stream(path string, write func(io.Writer) error) error { return stream(path, write, true) }

// Many is [Stream] for one of many files that can be computed again: it does not wait for the
// disk, which takes about a millisecond for each. A power failure may leave an empty file.
func Many(path string, write func(io.Writer) error) error { return stream(path, write, false) }

func stream(path string, write func(io.Writer) error, durable bool) (err error) {
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
	// Without this a power failure may leave an empty file under the final name.
	if durable {
		if err = f.Sync(); err != nil {
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	return forget(f.Name(), path)
}

// named replaces the temporary path in a file system error by the requested path: the temporary
// file is an implementation detail, and no longer exists.
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

// ErrAbandoned is the error of files that were being written when [Abandon] was called.
var ErrAbandoned = errors.New("given up")

// Abandon removes the temporary files and prevents them from being renamed: for a program that
// exits at once.
func Abandon() {
	temporary.Lock()
	defer temporary.Unlock()
	temporary.abandoned = true
	for name := range temporary.names {
		_ = os.Remove(name)
	}
}

// ErrInput is the error of [Check] for a file that is also an input.
var ErrInput = errors.New("is also an input: writing there would replace it")

// Check reports in advance whether a file can be written: the errors are those of [Write], except
// for a disk that fills up later. The file must not be one of the inputs, under any name.
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

// target returns the file info of the existing file, nil if it does not exist.
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

// attempts bounds the search for an unused temporary name.
const attempts = 1000

// create creates a new file beside path with its final permissions, so that its content is never
// readable by others.
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
		// The umask may have removed permissions that the existing file has.
		if err := f.Chmod(old.Mode().Perm()); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return nil, errors.Join(err, f.Close(), os.Remove(name))
		}
		return f, nil
	}
	return nil, &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
}

// begin creates the temporary file for a path.
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

// forget ends a write started by begin; if path is not empty, the file is renamed to it.
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
