// Package mapped maps files into memory, and handles files that change while they are mapped.
//
// The bytes of a mapped file are read on access. If the file has been truncated meanwhile, an
// access causes a fault, which by default ends the process, on whatever goroutine it happens.
// [Guard] turns the fault into an error. A file that was overwritten without being truncated has
// other bytes than those that were checked when it was opened; [File.Check] detects that.
//
// The package imports infile and knows nothing of models.
package mapped

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/infile"
)

// File is a mapped file.
type File struct {
	// Data is the read-only content. It must not be used after Close.
	Data []byte

	name  string
	f     *os.File
	size  int64
	time  time.Time
	unmap func() error
	// copied says that Data is in process memory: the file could not be mapped.
	copied bool
	once   sync.Once
}

// ChangedError says that a file changed while it was mapped: the data read from it is invalid.
type ChangedError struct{ File string }

// Error says that the file changed, without its name.
func (e *ChangedError) Error() string { return "the file changed while it was in use" }

// files lists the mapped files, so that the file of a fault can be found.
var files struct {
	sync.Mutex
	list []*File
}

// Open maps a regular file. Errors are a [os.PathError].
func Open(path string) (*File, error) {
	f, _, err := infile.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := Map(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

// Map maps an open regular file and takes ownership of it: closing the mapping closes the file.
// The name is for errors. On error the caller keeps the file.
func Map(f *os.File, name string) (*File, error) {
	wrong := func(err error) error { return &os.PathError{Op: "map", Path: name, Err: err} }
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n := st.Size()
	switch {
	case !st.Mode().IsRegular():
		return nil, wrong(errors.New("not a regular file"))
	case n != int64(int(n)):
		return nil, wrong(fmt.Errorf("%d bytes do not fit the address space", n))
	}
	m := &File{name: name, f: f, size: n, time: st.ModTime(), Data: []byte{}, unmap: func() error { return nil }}
	if n > 0 {
		if m.Data, m.unmap, err = mapFile(f, int(n)); err != nil {
			// Some file systems do not support mapping.
			m.Data, m.unmap, m.copied = make([]byte, n), func() error { return nil }, true
			if _, err := io.ReadFull(io.NewSectionReader(f, 0, n), m.Data); err != nil {
				return nil, wrong(err)
			}
		}
	}
	files.Lock()
	files.list = append(files.list, m)
	files.Unlock()
	return m, nil
}

// Close removes the mapping. Closing it again does nothing.
func (m *File) Close() (err error) {
	m.once.Do(func() {
		files.Lock()
		files.list = slices.DeleteFunc(files.list, func(o *File) bool { return o == m })
		files.Unlock()
		err = errors.Join(m.unmap(), m.f.Close())
	})
	return err
}

// Check returns a [ChangedError] if the file has changed since it was mapped: its length, or its
// modification time.
func (m *File) Check() error {
	st, err := m.f.Stat()
	if err != nil || st.Size() == m.size && st.ModTime().Equal(m.time) {
		return nil //nolint:nilerr // a file system that does not tell is not evidence
	}
	return &ChangedError{m.name}
}

// Guard calls fn and returns its error, or a [ChangedError] if fn accessed missing bytes of a
// mapped file. Other panics are passed on. It covers the calling goroutine only: other goroutines
// that read mapped files need their own guard, except for those of package workers, which pass
// faults to the caller.
func Guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil {
			c := Fault(e)
			if c == nil {
				panic(e)
			}
			err = c
		}
	}()
	return fn()
}

// Fault returns the error for a recovered panic value if it is a fault in a mapped file, nil
// otherwise. Code that recovers from panics below a [Guard] must pass these on.
func Fault(e any) *ChangedError {
	fault, ok := e.(interface {
		error
		Addr() uintptr
	})
	if !ok {
		return nil
	}
	if m := find(fault.Addr()); m != nil {
		return &ChangedError{m.name}
	}
	return nil
}

// Holds reports whether bytes are in a mapped file.
func Holds(b []byte) bool {
	return len(b) > 0 && find(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) != nil
}

// Release tells the system that bytes of mapped files will not be read soon: they are dropped
// from the memory of the process, and read from the file again on access. Other bytes are
// unaffected.
func Release(b []byte) {
	if len(b) == 0 {
		return
	}
	if m := find(uintptr(unsafe.Pointer(unsafe.SliceData(b)))); m != nil && !m.copied {
		release(b)
	}
}

// find returns the file mapped at an address, nil for none.
func find(addr uintptr) *File {
	files.Lock()
	defer files.Unlock()
	for _, m := range files.list {
		if from := uintptr(unsafe.Pointer(unsafe.SliceData(m.Data))); addr >= from && addr-from < uintptr(len(m.Data)) {
			return m
		}
	}
	return nil
}
