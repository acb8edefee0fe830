package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "files"), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func hashOf(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// An upload that broke off goes on where it stopped.
func TestResume(t *testing.T) {
	t.Parallel()
	s, data := open(t), bytes.Repeat([]byte("opmeter"), 100)
	hash := hashOf(data)
	broken := io.MultiReader(bytes.NewReader(data[:300]), iotest.ErrReader(io.ErrClosedPipe))
	if n, err := s.Append(hash, 0, 700, broken); n != 300 || !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("broken upload: %d, %v", n, err)
	}
	if _, err := s.Size(hash); !errors.Is(err, ErrNotFound) {
		t.Errorf("half a file is there: %v", err)
	}
	if n, err := s.Offset(hash); n != 300 || err != nil {
		t.Errorf("offset %d, %v", n, err)
	}
	for _, at := range []int64{299, 301, 700, -1} {
		if _, err := s.Append(hash, at, 700, bytes.NewReader(data)); !errors.Is(err, ErrOffset) {
			t.Errorf("at %d: %v", at, err)
		}
	}
	if n, err := s.Append(hash, 300, 700, bytes.NewReader(data[300:])); n != 700 || err != nil {
		t.Fatalf("rest: %d, %v", n, err)
	}
	f, err := s.Open(hash)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if n, err := s.Append(hash, 0, 700, iotest.ErrReader(io.ErrClosedPipe)); n != 700 || err != nil {
		t.Errorf("uploaded again: %d, %v", n, err)
	}
}

// An upload whose process was killed before the file had its place can begin anew or be completed.
func TestCompleteButNotKept(t *testing.T) {
	t.Parallel()
	for _, at := range []int64{0, 5} {
		s := open(t)
		hash := hashOf([]byte("model"))
		if err := os.WriteFile(s.partial(hash), []byte("model"), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Append(hash, at, 5, strings.NewReader("model"[at:])); n != 5 || err != nil {
			t.Errorf("from %d: %d, %v", at, n, err)
		}
		if _, err := s.Size(hash); err != nil {
			t.Error(err)
		}
	}
}

// A file whose content is not what its name says is dropped, and the upload begins anew.
func TestWrongContent(t *testing.T) {
	t.Parallel()
	s := open(t)
	hash := hashOf([]byte("right"))
	if _, err := s.Append(hash, 0, 5, strings.NewReader("wrong")); !errors.Is(err, ErrHash) {
		t.Errorf("wrong content: %v", err)
	}
	if n, err := s.Offset(hash); n != 0 || err != nil {
		t.Errorf("offset %d, %v", n, err)
	}
	if _, err := s.Append(hash, 0, 5, strings.NewReader("right and more")); err != nil {
		t.Error(err)
	}
}

func TestLimitsAndNames(t *testing.T) {
	t.Parallel()
	s, big := open(t), make([]byte, 1001)
	if _, err := s.Append(hashOf(big), 0, 1001, bytes.NewReader(big)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("upload: %v", err)
	}
	if _, _, err := s.Put(bytes.NewReader(big)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("put: %v", err)
	}
	left, err := os.ReadDir(filepath.Join(s.dir, "partial"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, name := range []string{"", "..", "../../../etc/passwd", strings.Repeat("A", 64), strings.Repeat("a", 63) + "/", strings.Repeat("a", 65)} {
		if _, err := s.Append(name, 0, 1, strings.NewReader("a")); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q written: %v", name, err)
		}
		if _, err := s.Open(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q opened: %v", name, err)
		}
		if err := s.Remove(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q removed: %v", name, err)
		}
	}
}

func TestPutAllRemove(t *testing.T) {
	t.Parallel()
	s := open(t)
	hash, n, err := s.Put(strings.NewReader("a profile"))
	if err != nil || n != 9 || hash != hashOf([]byte("a profile")) {
		t.Fatalf("%s, %d, %v", hash, n, err)
	}
	if _, err := s.Append(hashOf([]byte("half")), 0, 4, strings.NewReader("ha")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	var all []string
	if err := s.All(func(h string) error { all = append(all, h); return nil }); err != nil || len(all) != 1 || all[0] != hash {
		t.Errorf("all %v, %v", all, err)
	}
	if err := errors.Join(s.Sweep(time.Now().Add(time.Hour)), s.Remove(hash)); err != nil {
		t.Error(err)
	}
	if n, err := s.Offset(hashOf([]byte("half"))); n != 0 || err != nil {
		t.Errorf("swept upload: %d, %v", n, err)
	}
	if _, err := s.Size(hash); !errors.Is(err, ErrNotFound) {
		t.Errorf("removed file: %v", err)
	}
}
