package record

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// archive is a zip archive whose directory is read once, however many of its files are read. The
// file is open only while one of them is.
type archive struct {
	dir  *zip.Reader
	open func() (archiveFile, fs.FileInfo, error)
	info fs.FileInfo // when the directory was read

	mu    sync.Mutex
	file  archiveFile
	users int
}

type archiveFile interface {
	io.ReaderAt
	io.Closer
}

// newArchive reads the directory of an archive. The caller must release it.
func newArchive(open func() (archiveFile, fs.FileInfo, error)) (*archive, error) {
	a := &archive{open: open}
	if err := a.acquire(); err != nil {
		return nil, err
	}
	var err error
	if a.dir, err = zip.NewReader(a, a.info.Size()); err != nil {
		return nil, errors.Join(err, a.release())
	}
	return a, nil
}

// ReadAt reads the file, which must be acquired.
func (a *archive) ReadAt(b []byte, off int64) (int, error) {
	a.mu.Lock()
	f := a.file
	a.mu.Unlock()
	if f == nil {
		return 0, fs.ErrClosed
	}
	return f.ReadAt(b, off)
}

// acquire opens the file unless it is open.
func (a *archive) acquire() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.users == 0 {
		f, info, err := a.open()
		if err != nil {
			return err
		}
		if a.info != nil && (info.Size() != a.info.Size() || !info.ModTime().Equal(a.info.ModTime())) {
			return errors.Join(errors.New("the archive has changed"), f.Close())
		}
		a.file, a.info = f, info
	}
	a.users++
	return nil
}

// release closes the file after its last user.
func (a *archive) release() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.users == 0 {
		return nil
	}
	if a.users--; a.users > 0 {
		return nil
	}
	f := a.file
	a.file = nil
	return f.Close()
}

// entry opens the i-th file of the archive.
func (a *archive) entry(i int) (io.ReadCloser, error) {
	if err := a.acquire(); err != nil {
		return nil, err
	}
	r, err := a.dir.File[i].Open()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("zip: %w", err), a.release())
	}
	return &readCloser{Reader: r, close: func() error { return errors.Join(r.Close(), a.release()) }}, nil
}
