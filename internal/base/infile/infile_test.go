package infile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, n := range []int{0, 1, 511, 512, 513, 70000} {
		path := filepath.Join(dir, "f")
		want := bytes.Repeat([]byte{7}, n)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path, int64(n))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
		if n == 0 {
			continue
		}
		_, err = Read(path, int64(n)-1)
		var large *SizeError
		if !errors.As(err, &large) || large.Most != int64(n)-1 {
			t.Errorf("%d bytes under a bound of %d: %v", n, n-1, err)
		}
	}
}

// What is not a file is refused by its kind, at once: nothing else ends this test.
func TestKinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	names := map[string]string{dir: "a folder"}
	if makePipe(pipe) == nil {
		names[pipe] = "a pipe"
		if os.Symlink(pipe, link) == nil {
			names[link] = "a pipe"
		}
	}
	if _, err := os.Stat("/dev/zero"); err == nil {
		names["/dev/zero"] = "a device"
	}
	for name, want := range names {
		_, err := Read(name, 100)
		var kind *KindError
		if !errors.As(err, &kind) || kind.Kind != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		var path *fs.PathError
		if !errors.As(err, &path) || path.Path != name {
			t.Errorf("%s: the error does not name it: %v", name, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
