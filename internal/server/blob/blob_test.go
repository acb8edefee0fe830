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

	"github.com/opmeter/opmeter/internal/testing/s3"
)

// both runs a test with files in a folder and in a bucket.
func both(t *testing.T, test func(t *testing.T, open func() *Store)) {
	t.Parallel()
	opened := func(t *testing.T) *Store {
		s, err := Open(filepath.Join(t.TempDir(), "files"), "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		test(t, func() *Store { return opened(t) })
	})
	t.Run("bucket", func(t *testing.T) {
		t.Parallel()
		fake := s3.New(t)
		test(t, func() *Store {
			s := opened(t)
			s.files = bucketOf(t, fake)
			return s
		})
	})
}

func hashOf(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// An upload that broke off goes on where it stopped.
func TestResume(t *testing.T) { both(t, testResume) }

func testResume(t *testing.T, open func() *Store) {
	s, data := open(), bytes.Repeat([]byte("opmeter"), 100)
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
func TestCompleteButNotKept(t *testing.T) { both(t, testCompleteButNotKept) }

func testCompleteButNotKept(t *testing.T, open func() *Store) {
	for _, at := range []int64{0, 5} {
		s := open()
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
func TestWrongContent(t *testing.T) { both(t, testWrongContent) }

func testWrongContent(t *testing.T, open func() *Store) {
	s := open()
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

func TestLimitsAndNames(t *testing.T) { both(t, testLimitsAndNames) }

func testLimitsAndNames(t *testing.T, open func() *Store) {
	s, big := open(), make([]byte, 1001)
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
		if err := s.Link(name, filepath.Join(t.TempDir(), "link")); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q linked: %v", name, err)
		}
		if err := s.Remove(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q removed: %v", name, err)
		}
	}
}

func TestPutAllRemove(t *testing.T) { both(t, testPutAllRemove) }

func testPutAllRemove(t *testing.T, open func() *Store) {
	s := open()
	hash, n, err := s.Put(strings.NewReader("a profile"))
	if err != nil || n != 9 || hash != hashOf([]byte("a profile")) {
		t.Fatalf("%s, %d, %v", hash, n, err)
	}
	to := filepath.Join(t.TempDir(), "link")
	if err := s.Link(hash, to); err != nil {
		t.Error(err)
	} else if b, err := os.ReadFile(to); string(b) != "a profile" {
		t.Errorf("linked %q, %v", b, err)
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
	if err := s.Remove(hash); !errors.Is(err, ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}
}

// Readers go to any place, as downloads of a part do.
func TestSeek(t *testing.T) { both(t, testSeek) }

func testSeek(t *testing.T, open func() *Store) {
	s := open()
	hash, _, err := s.Put(strings.NewReader("0123456789"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Open(hash)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		offset int64
		whence int
		at     int64
		want   string
	}{{0, io.SeekEnd, 10, ""}, {0, io.SeekStart, 0, "012"}, {2, io.SeekCurrent, 5, "567"}, {-2, io.SeekEnd, 8, "89"}, {1, io.SeekStart, 1, "123"}} {
		at, err := f.Seek(c.offset, c.whence)
		if err != nil || at != c.at {
			t.Errorf("%+v: at %d, %v", c, at, err)
		}
		b, err := io.ReadAll(io.LimitReader(f, 3))
		if string(b) != c.want || err != nil {
			t.Errorf("%+v: read %q, %v", c, b, err)
		}
	}
	if _, err := f.Seek(-1, io.SeekStart); err == nil {
		t.Error("a place before the start was accepted")
	}
	// An empty file is a file.
	if hash, _, err = s.Put(strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Size(hash); n != 0 || err != nil {
		t.Errorf("empty file: %d, %v", n, err)
	}
}
