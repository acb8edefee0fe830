package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Errors speak of the file that was asked for, and nothing is left behind.
func TestStreamErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "none", "x.csv")
	err := Write(missing, nil)
	if want := "write " + missing + ": "; err == nil || !errors.Is(err, fs.ErrNotExist) || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
		t.Errorf("no folder: %v", err)
	}
	path := filepath.Join(dir, "x.csv")
	full := errors.New("no space left")
	err = Stream(path, func(w io.Writer) error {
		return &fs.PathError{Op: "write", Path: path + ".123", Err: full}
	})
	if !errors.Is(err, full) || err.Error() != "write "+path+": no space left" {
		t.Errorf("full disk: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
