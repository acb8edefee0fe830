// Package blob keeps files under their SHA-256, in a folder or in an S3-compatible store: models that
// were uploaded, profiles that were made. A file is there whole or not at all, and an upload that
// broke off goes on where it stopped.
package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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

// place is where complete files are. Those that are absent are ErrNotFound.
type place interface {
	size(hash string) (int64, error)
	open(hash string) (io.ReadSeekCloser, error)
	// add takes over a file whose content has the hash.
	add(from, hash string) error
	// link makes a file at a new path, to be read only.
	link(hash, to string) error
	remove(hash string) error
	all(yield func(hash string) error) error
}

// Store keeps files.
type Store struct {
	dir   string // of uploads that are incomplete
	files place
	limit int64
	mu    sync.Mutex
	busy  map[string]bool // uploads that a request writes now
}

// Open uses a folder, which is made where it is absent. Files are kept there, or in a bucket of
// S3 that an address such as s3://BUCKET/PREFIX names. No file may exceed the limit in bytes.
func Open(dir, where string, limit int64) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "partial"), 0o700); err != nil {
		return nil, fmt.Errorf("folder for files: %w", err)
	}
	s := &Store{dir: dir, files: folder(dir), limit: limit, busy: map[string]bool{}}
	if where == "" {
		return s, nil
	}
	b, err := openBucket(where, limit, os.Getenv)
	if err != nil {
		return nil, err
	}
	// Wrong credentials are told at the start.
	if _, err := b.list("", "1"); err != nil {
		return nil, err
	}
	s.files = b
	return s, nil
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

func (s *Store) partial(hash string) string { return filepath.Join(s.dir, "partial", hash) }

// Size returns the size of a file, ErrNotFound if it is absent.
func (s *Store) Size(hash string) (int64, error) {
	if !Valid(hash) {
		return 0, ErrNotFound
	}
	return s.files.size(hash)
}

// Open opens a file for reading.
func (s *Store) Open(hash string) (io.ReadSeekCloser, error) {
	if !Valid(hash) {
		return nil, ErrNotFound
	}
	return s.files.open(hash)
}

// Link makes a file at a new path for a program that reads it.
func (s *Store) Link(hash, to string) error {
	if !Valid(hash) {
		return ErrNotFound
	}
	return s.files.link(hash, to)
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
	return s.files.add(from, hash)
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
	return hash, n, s.files.add(f.Name(), hash)
}

// Remove removes a file.
func (s *Store) Remove(hash string) error {
	if !Valid(hash) {
		return ErrNotFound
	}
	return s.files.remove(hash)
}

// All calls a function with the hash of each file.
func (s *Store) All(yield func(hash string) error) error { return s.files.all(yield) }

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
