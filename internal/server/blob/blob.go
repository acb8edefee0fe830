// Package blob keeps files under their SHA-256: models that were uploaded, profiles that were made.
// A file is there whole or not at all, and an upload that broke off goes on where it stopped.
package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

var (
	// ErrNotFound says that there is no such file.
	ErrNotFound = errors.New("no such file")
	// ErrOffset says that an upload goes on at another place than where the last one ended.
	ErrOffset = errors.New("wrong offset")
	// ErrHash says that a file is another one than its name says.
	ErrHash = errors.New("the content has another SHA-256")
	// ErrTooLarge says that a file exceeds the limit.
	ErrTooLarge = errors.New("too large")
)

// Store is a folder of files.
type Store struct {
	dir   string
	limit int64
	mu    sync.Mutex
	busy  map[string]bool // uploads that a request writes now
}

// Open uses a folder, which is made where it is absent. No file may exceed the limit in bytes.
func Open(dir string, limit int64) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "partial"), 0o700); err != nil {
		return nil, fmt.Errorf("folder for files: %w", err)
	}
	return &Store{dir: dir, limit: limit, busy: map[string]bool{}}, nil
}

// Valid reports whether a text is a SHA-256 as hexadecimal digits in lower case.
func Valid(hash string) bool {
	if len(hash) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(hash) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Path is where a file lies, for programs that read it.
func (s *Store) Path(hash string) string {
	if !Valid(hash) {
		return ""
	}
	return filepath.Join(s.dir, hash[:2], hash)
}

func (s *Store) partial(hash string) string { return filepath.Join(s.dir, "partial", hash) }

// Size returns the size of a file, ErrNotFound if it is absent.
func (s *Store) Size(hash string) (int64, error) {
	if !Valid(hash) {
		return 0, ErrNotFound
	}
	return size(s.Path(hash))
}

func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, ErrNotFound
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Open opens a file for reading.
func (s *Store) Open(hash string) (*os.File, error) {
	if _, err := s.Size(hash); err != nil {
		return nil, err
	}
	return os.Open(s.Path(hash))
}

// Offset is how much of an upload is there: where it goes on.
func (s *Store) Offset(hash string) (int64, error) {
	if n, err := s.Size(hash); err == nil {
		return n, nil
	}
	if !Valid(hash) {
		return 0, ErrNotFound
	}
	n, err := size(s.partial(hash))
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	return n, err
}

// Append writes a part of an upload. The file is complete once it has total bytes; then its hash is
// checked, and if that is another one the upload begins anew. What was read before an error is kept.
func (s *Store) Append(hash string, offset, total int64, r io.Reader) (end int64, err error) {
	switch {
	case !Valid(hash):
		return 0, ErrNotFound
	case total > s.limit:
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, total, s.limit)
	}
	if !s.take(hash) {
		return 0, fmt.Errorf("%w: another request writes this file", ErrOffset)
	}
	defer s.free(hash)
	have, err := s.Offset(hash)
	if err != nil {
		return 0, err
	}
	if _, err := s.Size(hash); err == nil {
		return have, nil // it is there already
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	switch offset {
	case have:
	case 0: // anew
		have, flags = 0, flags|os.O_TRUNC
	default:
		return have, fmt.Errorf("%w %d: expected %d, or 0 to begin anew", ErrOffset, offset, have)
	}
	f, err := os.OpenFile(s.partial(hash), flags, 0o600)
	if err != nil {
		return have, err
	}
	n, err := io.Copy(f, io.LimitReader(r, total-have))
	have += n
	if err == nil && have < total {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return have, errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return have, err
	}
	if err := s.keep(s.partial(hash), hash); err != nil {
		return 0, err
	}
	return have, nil
}

func (s *Store) take(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[hash] {
		return false
	}
	s.busy[hash] = true
	return true
}

func (s *Store) free(hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, hash)
}

// keep moves a complete upload to its place, if it is what its name says.
func (s *Store) keep(from, hash string) error {
	got, err := Hash(from)
	if err != nil {
		return err
	}
	if got != hash {
		return errors.Join(fmt.Errorf("%w: %s, expected %s", ErrHash, got, hash), os.Remove(from))
	}
	return s.place(from, hash)
}

// place moves a file to its place.
func (s *Store) place(from, hash string) error {
	to := s.Path(hash)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// Hash returns the SHA-256 of a file.
func Hash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// Put stores what a reader gives and returns its hash.
func (s *Store) Put(r io.Reader) (hash string, n int64, err error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, "partial"), "put")
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(f.Name()) // once the file has its place it has another name
	h := sha256.New()
	n, err = io.Copy(io.MultiWriter(f, h), io.LimitReader(r, s.limit+1))
	if err == nil && n > s.limit {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, s.limit)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", 0, err
	}
	hash = hex.EncodeToString(h.Sum(nil))
	return hash, n, s.place(f.Name(), hash)
}

// Remove removes a file.
func (s *Store) Remove(hash string) error {
	if !Valid(hash) {
		return ErrNotFound
	}
	err := os.Remove(s.Path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	return err
}

// All calls a function with the hash of each file.
func (s *Store) All(yield func(hash string) error) error {
	return filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
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

// Sweep removes uploads that nobody went on with since a time.
func (s *Store) Sweep(since time.Time) error {
	dir := filepath.Join(s.dir, "partial")
	files, err := os.ReadDir(dir)
	for _, e := range files {
		info, infoErr := e.Info()
		if infoErr != nil || !info.ModTime().Before(since) || !s.take(e.Name()) {
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		s.free(e.Name())
	}
	return err
}

// Busy reports whether a request writes a file now.
func (s *Store) Busy(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy[hash]
}
