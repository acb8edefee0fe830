package blob

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// folder keeps files in a folder, in one subfolder for each first byte of their hashes.
type folder string

func (f folder) path(hash string) string { return filepath.Join(string(f), hash[:2], hash) }

func (f folder) size(hash string) (int64, error) { return size(f.path(hash)) }

func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, absent(err)
	}
	return info.Size(), nil
}

// absent says that a file is not there as all places do.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	return err
}

func (f folder) open(hash string) (io.ReadSeekCloser, error) {
	file, err := os.Open(f.path(hash))
	if err != nil {
		return nil, absent(err)
	}
	return file, nil
}

func (f folder) add(from, hash string) error {
	to := f.path(hash)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (f folder) link(hash, to string) error { return absent(os.Link(f.path(hash), to)) }

func (f folder) remove(hash string) error { return absent(os.Remove(f.path(hash))) }

func (f folder) all(yield func(hash string) error) error {
	return filepath.WalkDir(string(f), func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "partial":
			return fs.SkipDir
		case e.IsDir() || !Valid(e.Name()):
			return nil
		}
		return yield(e.Name())
	})
}
